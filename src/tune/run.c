// SPDX-License-Identifier: Apache-2.0
//
// Records of tuning as JSON (run.h). A trial is an array, its choices first: a record of
// 10,000 trials stays below 2 MB.
#include "tune/run.h"

#include "calibrate/describe.h"
#include "measure/json.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RUN_BYTES_MOST = 1 << 28 };

// Texts and numbers of a run: the same rows write and read them.
typedef struct {
    const char *key;
    size_t at;
} RunField;

#define FIELD(name)                                                                        \
    {                                                                                      \
#name, offsetof(Run, name)                                                         \
    }
static const RunField text_field[] = {
    FIELD(command),    FIELD(when),    FIELD(version),     FIELD(problem), FIELD(name),
    FIELD(file),       FIELD(kind),    FIELD(math),        FIELD(text),    FIELD(where),
    FIELD(strategy),   FIELD(model),   FIELD(reference),   FIELD(target),  FIELD(kernel),
    FIELD(best_point), FIELD(sandbox), FIELD(plain_kernel)};
static const RunField number_field[] = {
    FIELD(elapsed_s), FIELD(space_points), FIELD(baseline_ns),
    FIELD(best_ns),   FIELD(bytes),        FIELD(flops),
    FIELD(copy_ns),   FIELD(compute_ns),   FIELD(max_error)};
#undef FIELD

static const char **text_of(const Run *run, const RunField *field)
{
    return (const char **)((char *)run + field->at);
}

static double *number_of(const Run *run, const RunField *field)
{
    return (double *)((char *)run + field->at);
}

// Writing -------------------------------------------------------------------------------

static json_t *params_json(const Run *run)
{
    json_t *list = json_array();
    for (int i = 0; i < run->nparam; i++) {
        json_t *values = json_array();
        for (int k = 0; k < run->param[i].n; k++)
            json_array_append_new(values, json_string(run->param[i].value[k]));
        json_array_append_new(
            list, json_pack("{s:s, s:o}", "name", run->param[i].name, "values", values));
    }
    return list;
}

static json_t *trial_json(const Run *run, const RunTrial *trial)
{
    json_t *choices = json_array();
    for (int i = 0; i < run->nparam; i++)
        json_array_append_new(choices, json_integer(trial->point.choice[i]));
    json_t *values = json_array();
    for (int i = 0; trial->value && i < run->nmetric + run->nobjective; i++)
        json_array_append_new(values, json_finite(trial->value[i]));
    return json_pack("[o, s, o, f, f, f, f, b, b, o, o, b]", choices,
                     trial_status_name[trial->status], json_finite(trial->time_ns),
                     trial->at_s, trial->build_s, trial->check_s, trial->timing_s,
                     trial->stored, trial->cut, json_text(trial->log), values,
                     trial->front);
}

json_t *run_json(const Run *run)
{
    json_t *json = json_pack("{s:i, s:I, s:o, s:o}", "forewarp_run", RUN_VERSION, "seed",
                             (json_int_t)run->seed, "device", device_json(&run->device),
                             "parameters", params_json(run));
    for (int i = 0; i < COUNTOF(text_field); i++) {
        const char *text = *text_of(run, &text_field[i]);
        json_object_set_new(json, text_field[i].key, json_text(text));
    }
    for (int i = 0; i < COUNTOF(number_field); i++)
        json_object_set_new(json, number_field[i].key,
                            json_finite(*number_of(run, &number_field[i])));
    json_t *sizes = json_object(), *trials = json_array(), *launch = json_array();
    for (int i = 0; i < run->nsize; i++)
        json_object_set_new(sizes, run->size[i],
                            json_integer((json_int_t)run->size_value[i]));
    for (int i = 0; i < 6; i++)
        json_array_append_new(
            launch, json_integer((json_int_t)(i < 3 ? run->global[i] : run->local[i - 3])));
    for (int i = 0; i < run->n; i++)
        json_array_append_new(trials, trial_json(run, &run->trial[i]));
    json_object_set_new(json, "sizes", sizes);
    json_object_set_new(json, "launch", launch);
    json_object_set_new(json, "metrics", json_texts(run->metric, run->nmetric));
    json_object_set_new(json, "objectives", json_texts(run->objective, run->nobjective));
    json_object_set_new(json, "trials", trials);
    return json;
}

// One trial a line, so that records can be compared and searched as text.
static void print_json(Buf *out, const json_t *json)
{
    const char *key;
    json_t *value;
    buf_puts(out, "{");
    json_object_foreach((json_t *)json, key, value)
    {
        bool rows = strcmp(key, "trials") == 0;
        buf_printf(out, "%s\n\"%s\": ", out->len > 1 ? "," : "", key);
        if (rows)
            buf_puts(out, "[");
        for (size_t i = 0; i < (rows ? json_array_size(value) : 1); i++) {
            char *text = json_dumps(rows ? json_array_get(value, i) : value,
                                    JSON_ENCODE_ANY | JSON_COMPACT |
                                        JSON_REAL_PRECISION(rows ? 9 : 17));
            buf_printf(out, "%s%s%s", i ? "," : "", rows ? "\n" : "", text ? text : "null");
            free(text);
        }
        if (rows)
            buf_puts(out, "\n]");
    }
    buf_puts(out, "\n}\n");
}

bool run_write(const char *path, const Run *run, Diags *diags)
{
    json_auto_t *json = run_json(run);
    AutoBuf text = buf_new();
    print_json(&text, json);
    bool ok = file_write(path, text.text, text.len);
    if (!ok)
        diag_world(diags, "C012", "cannot write %s: %s", path, strerror(errno));
    return ok;
}

// Reading -------------------------------------------------------------------------------

static bool read_param(Run *run, const json_t *json, Arena *arena)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *values = json_object_get(json, "values");
    size_t n = json_array_size(values);
    if (!name || n < 1 || n > INT16_MAX || run->nparam == SPACE_PARAMS_MAX)
        return false;
    const char **value = NEW_ARRAY(arena, const char *, n);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(values, i));
        if (!text)
            return false;
        value[i] = arena_strdup(arena, text);
    }
    run->param[run->nparam++] = (RunParam){arena_strdup(arena, name), (int)n, value};
    return true;
}

static bool read_trial(const Run *run, const json_t *json, RunTrial *trial, Arena *arena)
{
    const json_t *choices = json_array_get(json, 0);
    if (json_array_size(json) < 10 || json_array_size(choices) != (size_t)run->nparam ||
        !trial_status_find(json_string_value(json_array_get(json, 1)), &trial->status))
        return false;
    for (int i = 0; i < run->nparam; i++) {
        json_int_t k = json_integer_value(json_array_get(choices, (size_t)i));
        if (k < 0 || k >= run->param[i].n)
            return false;
        trial->point.choice[i] = (int16_t)k;
    }
    double *number[] = {&trial->at_s, &trial->build_s, &trial->check_s, &trial->timing_s};
    for (int i = 0; i < COUNTOF(number); i++)
        *number[i] = json_number_value(json_array_get(json, (size_t)i + 3));
    double ns = json_number_value(json_array_get(json, 2));
    trial->time_ns = trial->status == TRIAL_OK && ns > 0 ? ns : INFINITY;
    trial->stored = json_is_true(json_array_get(json, 7));
    trial->cut = json_is_true(json_array_get(json, 8));
    const char *log = json_string_value(json_array_get(json, 9));
    trial->log = arena_strdup(arena, log ? log : "");
    const json_t *values = json_array_get(json, 10); // of older records nothing
    size_t n = json_array_size(values);
    double *value = NEW_ARRAY(arena, double, n + 1);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(values, i);
        value[i] = json_is_number(item) ? json_number_value(item) : NAN;
    }
    trial->front = json_is_true(json_array_get(json, 11));
    trial->value = n && n == (size_t)(run->nmetric + run->nobjective) ? value : NULL;
    return trial->status != TRIAL_OK || isfinite(trial->time_ns);
}

static bool read_trials(Run *run, const json_t *list, Arena *arena)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > INT32_MAX / 2)
        return false;
    run->trial = NEW_ARRAY(arena, RunTrial, n + 1);
    run->n = (int)n;
    for (size_t i = 0; i < n; i++)
        if (!read_trial(run, json_array_get(list, i), &run->trial[i], arena))
            return false;
    return true;
}

static bool read_sizes(Run *run, json_t *sizes, Arena *arena)
{
    const char *key;
    json_t *value;
    json_object_foreach(sizes, key, value)
    {
        if (!json_is_integer(value) || run->nsize == COUNTOF(run->size))
            return false;
        run->size[run->nsize] = arena_strdup(arena, key);
        run->size_value[run->nsize++] = json_integer_value(value);
    }
    return true;
}

// At most so many names.
static int read_names(const json_t *list, int most, const char **name, Arena *arena)
{
    int n = (int)MIN(json_array_size(list), (size_t)most);
    for (int i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(list, (size_t)i));
        name[i] = arena_strdup(arena, text ? text : "");
    }
    return n;
}

// What is wrong with it, or NULL.
static const char *read_json(Run *run, const json_t *json, Arena *arena)
{
    const json_t *params = json_object_get(json, "parameters");
    const json_t *launch = json_object_get(json, "launch");
    const json_t *version = json_object_get(json, "forewarp_run");
    if (!json_is_integer(version))
        return "it is not a record of a tuning";
    if (json_integer_value(version) != RUN_VERSION)
        return "it was written by another version";
    for (int i = 0; i < COUNTOF(text_field); i++) {
        const char *text = json_string_value(json_object_get(json, text_field[i].key));
        *text_of(run, &text_field[i]) = arena_strdup(arena, text ? text : "");
    }
    for (int i = 0; i < COUNTOF(number_field); i++) {
        const json_t *value = json_object_get(json, number_field[i].key);
        *number_of(run, &number_field[i]) =
            json_is_number(value) ? json_number_value(value) : INFINITY;
    }
    run->seed = (uint64_t)json_integer_value(json_object_get(json, "seed"));
    device_of_json(json_object_get(json, "device"), &run->device);
    for (size_t i = 0; i < 6; i++)
        (i < 3 ? &run->global[i] : &run->local[i - 3])[0] =
            json_integer_value(json_array_get(launch, i));
    for (size_t i = 0; i < json_array_size(params); i++)
        if (!read_param(run, json_array_get(params, i), arena))
            return "its parameters are damaged";
    if (!read_sizes(run, json_object_get(json, "sizes"), arena))
        return "its sizes are damaged";
    run->metric = NEW_ARRAY(arena, const char *, GOAL_METRICS);
    run->nmetric =
        read_names(json_object_get(json, "metrics"), GOAL_METRICS, run->metric, arena);
    run->nobjective = read_names(json_object_get(json, "objectives"), GOAL_OBJECTIVES,
                                 run->objective, arena);
    return read_trials(run, json_object_get(json, "trials"), arena)
               ? NULL
               : "its trials are damaged";
}

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

// The latest record in a folder; path itself if that is no folder. NULL with a diagnostic.
static const char *find_record(const char *path, Arena *arena, Diags *diags)
{
    DIR *dir = opendir(path);
    const char *found = NULL;
    struct stat latest = {0}, own;
    int n = 0;
    if (!dir)
        return path;
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *file = arena_printf(arena, "%s/%s", path, entry->d_name);
        if (!path_ends(file, RUN_SUFFIX) || stat(file, &own) != 0)
            continue;
        if (n++ == 0 || is_later(own.st_mtim, latest.st_mtim))
            found = file, latest = own;
    }
    closedir(dir);
    if (n == 0)
        diag_error(diags, span_none, "G003",
                   "%s holds no record of tuning (*" RUN_SUFFIX ")", path);
    else if (n > 1)
        diag_warning(diags, span_none, "G003",
                     "%s holds %d records; this is the latest, %s", path, n, found);
    return found;
}

Run *run_read(const char *path, Arena *arena, Diags *diags)
{
    json_error_t error;
    Run *run = NEW(arena, Run);
    path = find_record(path, arena, diags);
    if (!path)
        return NULL;
    Buf text = buf_new();
    if (!file_read(path, RUN_BYTES_MOST, &text)) {
        diag_world(diags, "G002", "cannot read %s: %s", path, text.text);
        buf_release(&text);
        return NULL;
    }
    json_auto_t *json = json_loadb(text.text, text.len, 0, &error);
    const char *wrong = json ? read_json(run, json, arena) : error.text;
    if (wrong)
        diag_error(diags, span_none, "G003", "cannot use %s: %s", path, wrong);
    buf_release(&text);
    return wrong ? NULL : run;
}

void run_point(Buf *out, const Run *run, const Point *point)
{
    for (int i = 0; i < run->nparam; i++)
        buf_printf(out, "%s%s=%s", i ? " " : "", run->param[i].name,
                   run->param[i].value[point->choice[i]]);
}
