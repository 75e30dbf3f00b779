// SPDX-License-Identifier: Apache-2.0
//
// Writes trials as T4 results and as a Kernel Tuner cache file. Both keep times in
// milliseconds. A failed point has the name of its failure instead of a time, which all
// readers accept.
//
// It writes whole files at the end of a run, since the store protects the run. A cache file
// has the same bytes as one of Kernel Tuner, so each program can continue a file of the
// other.
#include "store/exchange.h"

#include "store/recorded.h"

#include "measure/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// How others name what became of a trial.
typedef struct {
    const char *invalidity, *error;
} ExchangeVerdict;

static const ExchangeVerdict verdicts[TRIAL_STATUS_COUNT] = {
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
    double value = param->value[choice];
    int form = param->form ? param->form[choice] : VALUE_WHOLE;
    return param->label          ? json_string(param->label[choice])
           : form == VALUE_TRUTH ? json_boolean(value != 0)
           : form == VALUE_REAL  ? json_real(value)
                                 : json_whole(value);
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

static bool write_text(const char *path, const char *text, Diags *diags)
{
    return file_pack(path, text, strlen(text)) ||
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
    const ExchangeVerdict *verdict = &verdicts[trial->status];
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
    json_auto_t *json =
        json_pack("{s:{s:s}, s:o, s:s}", "metadata", "timeunit", "milliseconds", "results",
                  results, "schema_version", "1.0.0");
    AUTO_FREE char *text = json_dumps(json, JSON_INDENT(1));
    return write_text(path, text, diags);
}

// JSON as Python writes it ------------------------------------------------------------

// The fewest digits that are the number, as repr has them.
static void put_real(Buf *out, double x)
{
    char text[64];
    int digits = 1;
    for (; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, x);
        if (strtod(text, NULL) == x)
            break;
    }
    snprintf(text, sizeof text, "%.*e", digits - 1, x);
    int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent >= -4 && exponent < 16)
        snprintf(text, sizeof text, "%.*f", MAX(digits - 1 - exponent, 1), x);
    buf_puts(out, text);
}

static void put_text(Buf *out, json_t *json)
{
    AUTO_FREE char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    for (char *p = text; (p = strstr(p, "\\u")); p += 2)
        for (int i = 2; i < 6 && p[i]; i++)
            p[i] = (char)tolower((unsigned char)p[i]);
    buf_puts(out, text);
}

// lines: an item a line, as indent="" makes it.
static void put_json(Buf *out, json_t *json, bool lines)
{
    const char *key, *next = lines ? ",\n" : ", ";
    json_t *value;
    size_t n = 0;
    if (json_is_array(json) && json_array_size(json)) {
        buf_puts(out, lines ? "[\n" : "[");
        for (; n < json_array_size(json); n++) {
            buf_puts(out, n ? next : "");
            put_json(out, json_array_get(json, n), lines);
        }
        buf_puts(out, lines ? "\n]" : "]");
    } else if (json_is_object(json) && json_object_size(json)) {
        buf_puts(out, lines ? "{\n" : "{");
        json_object_foreach(json, key, value)
        {
            json_auto_t *name = json_string(key);
            buf_puts(out, n++ ? next : "");
            put_text(out, name);
            buf_puts(out, ": ");
            put_json(out, value, lines);
        }
        buf_puts(out, lines ? "\n}" : "}");
    } else if (json_is_real(json)) {
        put_real(out, json_real_value(json));
    } else {
        put_text(out, json);
    }
}

static void append_json(Buf *out, json_t *json, bool lines)
{
    put_json(out, json, lines);
    json_decref(json);
}

// Kernel Tuner's cache ----------------------------------------------------------------

// The values as Python writes them, in the order of the parameters.
static void append_key(Buf *out, const Space *space, const Point *point)
{
    AutoBuf key = buf_new();
    for (int i = 0; i < space_params(space); i++) {
        const SpaceParam *param = space_param(space, i);
        int choice = point->choice[i];
        buf_puts(&key, i ? "," : "");
        json_auto_t *value = choice_json(param, choice);
        if (param->label || json_is_boolean(value))
            buf_puts(&key, param->label          ? param->label[choice]
                           : json_is_true(value) ? "True"
                                                 : "False");
        else
            put_json(&key, value, false);
    }
    append_json(out, json_string(key.text), false);
}

static json_t *extents_json(const double extent[3])
{
    return json_pack("[I, I, I]", (json_int_t)extent[0], (json_int_t)extent[1],
                     (json_int_t)extent[2]);
}

static json_t *cache_entry(const Exchange *exchange, const ExchangeTrial *trial)
{
    const LaunchShapes *launches = &exchange->launches;
    json_t *entry = json_object();
    set_choices(entry, exchange->space, &trial->point);
    if (trial->status == TRIAL_OK) {
        json_object_set_new(entry, "time", json_real(trial->time_ns * 1e-6));
        json_object_set_new(entry, "times", samples_json(trial));
    } else {
        json_object_set_new(entry, "__error__", json_string(verdicts[trial->status].error));
    }
    json_object_update_new(entry,
                           json_pack("{s:f, s:f, s:f}", "compile_time", compile_ms(trial),
                                     "verification_time", trial->check_s * 1e3,
                                     "benchmark_time", trial->timing_s * 1e3));
    for (int i = 0; trial->metric && i < exchange->nmetric; i++)
        if (isfinite(trial->metric[i]))
            json_object_set_new(entry, exchange->metric[i], json_real(trial->metric[i]));
    LaunchShape shape;
    if (launches->shape && launches->shape(launches->user, &trial->point, &shape)) {
        json_object_set_new(entry, "groups", extents_json(shape.groups));
        json_object_set_new(entry, "local", extents_json(shape.local));
    }
    json_object_update_new(entry,
                           json_pack("{s:f, s:f, s:s}", "strategy_time", 0.0,
                                     "framework_time", 0.0, "timestamp", trial->when));
    return entry;
}

static json_t *sizes_json(const Exchange *exchange)
{
    json_t *list = json_array();
    for (int i = 0; i < exchange->nsize; i++)
        json_array_append_new(list, json_integer(exchange->size[i]));
    return list;
}

// Their names; what is to be high where its name does not say so, in a key of our own.
static void set_objectives(json_t *header, const Exchange *exchange)
{
    json_t *names = json_array(), *higher = json_array();
    bool said = false;
    for (int i = 0; i < exchange->nobjective; i++) {
        const char *name = exchange->objective[i] + 4; // "min ", "max "
        bool most = strncmp(exchange->objective[i], "max", 3) == 0;
        json_array_append_new(names, json_text(name));
        json_array_append_new(higher, json_boolean(most));
        said |= most != recorded_is_rate(name);
    }
    json_object_set_new(header, "objective", names);
    if (said)
        json_object_set(header, "objective_higher_is_better", higher);
    json_decref(higher);
}

static json_t *header_json(const Exchange *exchange)
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
    json_t *header =
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "device_name", json_text(exchange->device),
                  "kernel_name", json_text(exchange->kernel), "problem_size",
                  sizes_json(exchange), "tune_params_keys", keys, "tune_params", params);
    set_objectives(header, exchange);
    return header;
}

// One entry a line, and the end that Kernel Tuner looks for when it goes on with the file.
bool exchange_write_cache(const char *path, const Exchange *exchange, const char *body,
                          Diags *diags)
{
    static const char end[] = "\n}";
    AutoBuf text = buf_new();
    if (body)
        buf_puts(&text, body);
    else {
        append_json(&text, header_json(exchange), true);
        text.len -= strlen(end);
        buf_puts(&text, ",\n\"cache\": {");
    }
    for (int i = 0; i < exchange->n; i++) {
        if (exchange->trial[i].held)
            continue;
        buf_puts(&text, text.text[text.len - 1] == '{' ? "\n" : ",\n");
        append_key(&text, exchange->space, &exchange->trial[i].point);
        buf_puts(&text, ": ");
        append_json(&text, cache_entry(exchange, &exchange->trial[i]), false);
    }
    buf_puts(&text, "}\n}");
    return write_text(path, text.text, diags);
}

// Going on with one -------------------------------------------------------------------

// Numbers of the same value are the same, alone or in a list.
static bool same_sizes(json_t *size, const Exchange *of)
{
    int n = json_is_array(size) ? (int)json_array_size(size) : 1;
    bool same = n == of->nsize;
    for (int i = 0; same && i < n; i++) {
        json_t *item = json_is_array(size) ? json_array_get(size, (size_t)i) : size;
        same = json_is_number(item) && json_number_value(item) == (double)of->size[i];
    }
    return same;
}

static bool same_params(const json_t *keys, const Exchange *of)
{
    bool same = json_array_size(keys) == (size_t)space_params(of->space);
    for (int i = 0; same && i < space_params(of->space); i++) {
        const char *name = json_string_value(json_array_get(keys, (size_t)i));
        same = name && strcmp(name, space_param(of->space, i)->name) == 0;
    }
    return same;
}

static bool is_text(const json_t *root, const char *key, const char *text)
{
    const char *found = json_string_value(json_object_get(root, key));
    return found && strcmp(found, text) == 0;
}

// What it is of that is something else; NULL: nothing.
static const char *differs(const json_t *root, const Exchange *of)
{
    if (!json_is_object(json_object_get(root, "cache")))
        return "it is not a cache file of Kernel Tuner";
    return !is_text(root, "device_name", of->device)   ? "it is of another device"
           : !is_text(root, "kernel_name", of->kernel) ? "it is of another kernel"
           : !same_sizes(json_object_get(root, "problem_size"), of)
               ? "it is of another problem size"
           : !same_params(json_object_get(root, "tune_params_keys"), of)
               ? "it has other parameters, or in another order"
               : NULL;
}

static int choice_of(const SpaceParam *param, const json_t *value)
{
    double number = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    const char *word = json_is_boolean(value) ? (json_is_true(value) ? "True" : "False")
                                              : json_string_value(value);
    for (int k = 0; k < param->n; k++)
        if (param->label ? word && strcmp(word, param->label[k]) == 0
                         : !json_is_string(value) && number == param->value[k])
            return k;
    return -1;
}

static bool read_point(const json_t *entry, const Space *space, Point *point)
{
    *point = (Point){0};
    for (int i = 0; i < space_params(space); i++) {
        const SpaceParam *param = space_param(space, i);
        int k = choice_of(param, json_object_get(entry, param->name));
        if (k < 0)
            return false;
        point->choice[i] = (int16_t)k;
    }
    return space_valid(space, point);
}

static TrialStatus read_status(const json_t *entry)
{
    const char *error = json_string_value(json_object_get(entry, "__error__"));
    const json_t *time = json_object_get(entry, "time");
    if (!error)
        error = json_string_value(time);
    for (int i = 0; error && i < TRIAL_STATUS_COUNT; i++)
        if (verdicts[i].error && strcmp(verdicts[i].error, error) == 0)
            return (TrialStatus)i;
    return !error && json_number_value(time) > 0 ? TRIAL_OK : TRIAL_FAILED;
}

static void read_entry(const json_t *entry, Arena *arena, ExchangeTrial *trial)
{
    const json_t *times = json_object_get(entry, "times");
    double *sample = NEW_ARRAY(arena, double, TRIAL_SAMPLES);
    trial->status = read_status(entry);
    trial->time_ns = trial->status == TRIAL_OK
                         ? json_number_of(entry, "time", INFINITY) * 1e6
                         : INFINITY;
    trial->nsample = (int)MIN(json_array_size(times), TRIAL_SAMPLES);
    for (int i = 0; i < trial->nsample; i++)
        sample[i] = json_number_value(json_array_get(times, (size_t)i)) * 1e6;
    trial->sample_ns = sample;
    trial->build_s = json_number_of(entry, "compile_time", 0) * 1e-3;
    trial->check_s = json_number_of(entry, "verification_time", 0) * 1e-3;
    trial->timing_s = json_number_of(entry, "benchmark_time", 0) * 1e-3;
    for (int i = 0; i < MEASURES; i++) {
        double told = json_number_of(entry, measure_row[i].name, NAN);
        if (isfinite(told))
            measure_tell(&trial->measures, (Measure)i, told);
    }
}

bool exchange_read_cache(const char *path, const Exchange *of, Arena *arena,
                         const char **body, ExchangeEach *each, void *user, Diags *diags)
{
    const char *key;
    json_t *entry;
    Buf text = buf_new();
    if (!file_read(path, FILE_DATA_MOST, &text)) {
        diag_world(diags, "Q011", "cannot read %s: %s", path, text.text);
        buf_release(&text);
        return false;
    }
    *body = arena_strndup(arena, text.text, recorded_body(text.text, text.len));
    json_auto_t *root = recorded_load(path, text.text, text.len, diags);
    const char *why = root ? differs(root, of) : NULL;
    if (why)
        diag_error(diags, span_none, "Q012",
                   "cannot continue %s: %s (--fresh starts a new file)", path, why);
    json_object_foreach(why ? NULL : json_object_get(root, "cache"), key, entry)
    {
        ExchangeTrial trial = {.stored = true, .held = true, .log = ""};
        const char *when = json_string_value(json_object_get(entry, "timestamp"));
        if (!read_point(entry, of->space, &trial.point))
            continue;
        read_entry(entry, arena, &trial);
        trial.when = when ? arena_strdup(arena, when) : "";
        each(user, &trial);
    }
    buf_release(&text);
    return root && !why;
}
