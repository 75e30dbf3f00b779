// SPDX-License-Identifier: Apache-2.0
//
// Writes trials as T4 results and as a Kernel Tuner cache file. Both keep times in
// milliseconds. What failed has the name of its failure in place of a time, the form that
// all readers take.
//
// It writes whole files at the end of a run: what protects a run is the store.
#include "store/exchange.h"

#include "measure/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

// How others name what became of a trial.
typedef struct {
    const char *invalidity, *error;
} Verdict;

static const Verdict verdicts[TRIAL_STATUS_COUNT] = {
    [TRIAL_OK] = {"correct", NULL},
    [TRIAL_BUILD_FAILED] = {"compile", "CompilationFailedConfig"},
    [TRIAL_OUT_OF_RESOURCES] = {"runtime", "RuntimeFailedConfig"},
    [TRIAL_CRASHED] = {"runtime", "RuntimeFailedConfig"},
    [TRIAL_TIMED_OUT] = {"timeout", "RuntimeFailedConfig"},
    [TRIAL_WRONG_RESULT] = {"correctness", "RuntimeFailedConfig"},
    [TRIAL_FAILED] = {"runtime", "RuntimeFailedConfig"},
};

static json_t *choice_json(const SpaceParam *param, int choice)
{
    return param->label ? json_string(param->label[choice])
                        : json_whole(param->value[choice]);
}

static void set_choices(json_t *object, const Space *space, const Point *point)
{
    for (int i = 0; i < space_params(space); i++) {
        const SpaceParam *param = space_param(space, i);
        json_object_set_new(object, param->name, choice_json(param, point->choice[i]));
    }
}

static json_t *samples_json(const ExchangeTrial *trial)
{
    json_t *list = json_array();
    for (int i = 0; i < trial->nsample; i++)
        json_array_append_new(list, json_real(trial->sample_ns[i] * 1e-6));
    return list;
}

static json_t *time_json(const ExchangeTrial *trial)
{
    return trial->status == TRIAL_OK ? json_real(trial->time_ns * 1e-6)
                                     : json_string(verdicts[trial->status].error);
}

// Milliseconds spent on building; what was not told apart counts as that.
static double compile_ms(const ExchangeTrial *trial)
{
    double known = trial->build_s + trial->check_s + trial->timing_s, samples = 0;
    for (int i = 0; i < trial->nsample; i++)
        samples += trial->sample_ns[i];
    return known > 0 ? trial->build_s * 1e3
                     : fmax(trial->spent_s * 1e3 - samples * 1e-6, 0);
}

static bool write_packed(const char *path, const char *text, size_t len)
{
    gzFile file = gzopen(path, "wb9");
    bool ok = file && gzwrite(file, text, (unsigned)len) == (int)len;
    return file && gzclose(file) == Z_OK && ok;
}

static bool write_text(const char *path, const char *text, Diags *diags)
{
    size_t n = strlen(path), len = strlen(text);
    bool packed = n > 3 && strcmp(path + n - 3, ".gz") == 0;
    return (packed ? write_packed(path, text, len) : file_write(path, text, len)) ||
           diag_world(diags, "Q010", "cannot write %s: %s", path, strerror(errno));
}

const char *exchange_now(Arena *arena)
{
    struct timespec now;
    struct tm utc;
    char text[64];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc);
    return arena_printf(arena, "%s.%06ld+00:00", text, now.tv_nsec / 1000);
}

// T4 ----------------------------------------------------------------------------------

static json_t *t4_result(const Exchange *exchange, const ExchangeTrial *trial)
{
    const Verdict *verdict = &verdicts[trial->status];
    bool ok = trial->status == TRIAL_OK;
    json_t *point = json_object();
    set_choices(point, exchange->space, &trial->point);
    json_t *times = json_pack("{s:f, s:f, s:f, s:f, s:o}", "compilation", compile_ms(trial),
                              "framework", 0.0, "search_algorithm", 0.0, "validation",
                              trial->check_s * 1e3, "runtimes",
                              ok ? samples_json(trial) : json_array());
    json_t *measured = json_pack("[{s:s, s:o, s:s}]", "name", "time", "value",
                                 time_json(trial), "unit", ok ? "milliseconds" : "");
    return json_pack("{s:s, s:o, s:o, s:s, s:i, s:o, s:[s]}", "timestamp", trial->when,
                     "configuration", point, "times", times, "invalidity",
                     verdict->invalidity, "correctness", ok ? 1 : 0, "measurements",
                     measured, "objectives", "time");
}

bool exchange_write_t4(const char *path, const Exchange *exchange, Diags *diags)
{
    json_t *results = json_array();
    for (int i = 0; i < exchange->n; i++)
        json_array_append_new(results, t4_result(exchange, &exchange->trial[i]));
    json_t *json = json_pack("{s:{s:s}, s:o, s:s}", "metadata", "timeunit", "milliseconds",
                             "results", results, "schema_version", "1.0.0");
    char *text = json_dumps(json, JSON_INDENT(1));
    bool ok = write_text(path, text, diags);
    free(text);
    json_decref(json);
    return ok;
}

// Kernel Tuner's cache ----------------------------------------------------------------

static void append_json(Buf *out, json_t *json)
{
    char *text = json_dumps(json, JSON_ENCODE_ANY);
    buf_puts(out, text);
    free(text);
    json_decref(json);
}

// The values as Python writes them, in the order of the parameters.
static void append_key(Buf *out, const Space *space, const Point *point)
{
    Buf key;
    buf_init(&key);
    for (int i = 0; i < space_params(space); i++) {
        const SpaceParam *param = space_param(space, i);
        int choice = point->choice[i];
        buf_puts(&key, i ? "," : "");
        if (param->label)
            buf_puts(&key, param->label[choice]);
        else
            append_json(&key, json_whole(param->value[choice]));
    }
    append_json(out, json_string(key.text));
    buf_release(&key);
}

static json_t *extents_json(const double extent[3])
{
    return json_pack("[I, I, I]", (json_int_t)extent[0], (json_int_t)extent[1],
                     (json_int_t)extent[2]);
}

static json_t *cache_entry(const Exchange *exchange, const ExchangeTrial *trial)
{
    const Launches *launches = &exchange->launches;
    json_t *entry = json_object();
    set_choices(entry, exchange->space, &trial->point);
    json_object_set_new(entry, "time", time_json(trial));
    if (trial->status == TRIAL_OK)
        json_object_set_new(entry, "times", samples_json(trial));
    json_t *rest = json_pack("{s:f, s:f, s:f, s:f, s:f, s:s}", "compile_time",
                             compile_ms(trial), "verification_time", trial->check_s * 1e3,
                             "benchmark_time", trial->timing_s * 1e3, "strategy_time", 0.0,
                             "framework_time", 0.0, "timestamp", trial->when);
    json_object_update(entry, rest);
    json_decref(rest);
    LaunchShape shape;
    if (launches->shape && launches->shape(launches->user, &trial->point, &shape)) {
        json_object_set_new(entry, "groups", extents_json(shape.groups));
        json_object_set_new(entry, "local", extents_json(shape.local));
    }
    return entry;
}

static json_t *sizes_json(const Exchange *exchange)
{
    json_t *list = json_array();
    for (int i = 0; i < exchange->nsize; i++)
        json_array_append_new(list, json_integer(exchange->size[i]));
    return list;
}

static void append_header(Buf *out, const Exchange *exchange)
{
    json_t *keys = json_array(), *params = json_object();
    for (int i = 0; i < space_params(exchange->space); i++) {
        const SpaceParam *param = space_param(exchange->space, i);
        json_t *values = json_array();
        for (int k = 0; k < param->n; k++)
            json_array_append_new(values, choice_json(param, k));
        json_array_append_new(keys, json_string(param->name));
        json_object_set_new(params, param->name, values);
    }
    buf_puts(out, "{\n\"device_name\": ");
    append_json(out, json_string(exchange->device));
    buf_puts(out, ",\n\"kernel_name\": ");
    append_json(out, json_string(exchange->kernel));
    buf_puts(out, ",\n\"problem_size\": ");
    append_json(out, sizes_json(exchange));
    buf_puts(out, ",\n\"tune_params_keys\": ");
    append_json(out, keys);
    buf_puts(out, ",\n\"tune_params\": ");
    append_json(out, params);
    buf_puts(out, ",\n\"objective\": \"time\",\n\"cache\": {");
}

// One entry a line, and the end that Kernel Tuner looks for when it goes on with the file.
bool exchange_write_cache(const char *path, const Exchange *exchange, Diags *diags)
{
    Buf text;
    buf_init(&text);
    append_header(&text, exchange);
    for (int i = 0; i < exchange->n; i++) {
        buf_puts(&text, i ? ",\n" : "\n");
        append_key(&text, exchange->space, &exchange->trial[i].point);
        buf_puts(&text, ": ");
        append_json(&text, cache_entry(exchange, &exchange->trial[i]));
    }
    buf_puts(&text, "}\n}");
    bool ok = write_text(path, text.text, diags);
    buf_release(&text);
    return ok;
}
