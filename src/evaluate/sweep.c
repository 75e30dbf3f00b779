// SPDX-License-Identifier: Apache-2.0
//
// Timed points of many programs; see picks.h.

#include "evaluate/picks.h"

#include "calibrate/describe.h"
#include "model/dataset.h"
#include "search/moves.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

// Reading -------------------------------------------------------------------------------

static const char *text_of(const json_t *names, const json_t *trial, Arena *arena)
{
    Buf text = buf_new();
    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *value = json_array_get(trial, i);
        buf_printf(&text, i ? " %s=" : "%s=", json_string_value(json_array_get(names, i)));
        if (json_is_string(value))
            buf_puts(&text, json_string_value(value));
        else
            buf_printf(&text, "%lld", (long long)json_integer_value(value));
    }
    return buf_keep(&text, arena);
}

static int class_of(Sweep *s, const char *name, Arena *arena)
{
    int found = FIND_TEXT(s->classes.at, s->classes.len, name);
    if (found >= 0)
        return found;
    VEC_PUSH(arena, &s->classes, name);
    return s->classes.len - 1;
}

typedef VEC(const char *) Texts;
typedef VEC(double) Times;

static bool read_trials(const json_t *names, const json_t *trials, Texts *points,
                        Times *times, Arena *arena)
{
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        const json_t *last = json_array_get(trial, json_array_size(names));
        if (json_array_size(trial) != json_array_size(names) + 1)
            return false;
        VEC_PUSH(arena, points, text_of(names, trial, arena));
        VEC_PUSH(arena, times, json_is_number(last) ? json_number_value(last) : INFINITY);
    }
    return true;
}

static bool read_run(Sweep *s, json_t *json, Texts *points, Times *times, Arena *arena)
{
    const char *class, *text, *key;
    json_t *sizes, *names, *trials, *value;
    SweepRun run = {.first = points->len};
    if (json_unpack(json, "{s:s,s:s,s:i,s:i,s:F,s:o,s:o,s:o}", "class", &class, "text",
                    &text, "seed", &run.seed, "number", &run.number, "scale", &run.bytes,
                    "sizes", &sizes, "names", &names, "trials", &trials) != 0 ||
        !read_trials(names, trials, points, times, arena))
        return false;
    run.class = arena_strdup(arena, class);
    run.text = arena_strdup(arena, text);
    run.class_number = class_of(s, run.class, arena);
    run.binding = NEW_ARRAY(arena, Binding, json_object_size(sizes) + 1);
    json_object_foreach(sizes, key, value) run.binding[run.nbinding++] =
        (Binding){arena_strdup(arena, key), json_integer_value(value)};
    run.n = points->len - run.first;
    run.best_ns = INFINITY;
    for (int i = run.first; i < points->len; i++)
        run.best_ns = fmin(run.best_ns, times->at[i]);
    if (isfinite(run.best_ns))
        VEC_PUSH(arena, &s->runs, run);
    return true;
}

static bool read_line(Sweep *s, const char *line, size_t len, Texts *points, Times *times,
                      Arena *arena)
{
    json_auto_t *json = json_loadb(line, len, 0, NULL);
    const char *fingerprint = json_string_value(json_object_get(json, "fingerprint"));
    bool ok = json && (fingerprint || read_run(s, json, points, times, arena));
    if (ok && fingerprint && !s->fingerprint) {
        const char *device = json_string_value(json_object_get(json, "device"));
        s->device = device ? arena_strdup(arena, device) : NULL;
        s->fingerprint = arena_strdup(arena, fingerprint);
    }
    return ok;
}

Sweep *sweep_read(const char *path, Arena *arena, Diags *diags)
{
    Sweep *s = NEW(arena, Sweep);
    Texts points = {0};
    Times times = {0};
    AutoBuf text = buf_new();
    bool ok = dataset_text(path, &text, diags);
    int number = 1;
    for (char *line = text.text, *end; ok && *line; line = end + (*end == '\n'), number++) {
        end = strchrnul(line, '\n');
        ok = end == line ||
             read_line(s, line, (size_t)(end - line), &points, &times, arena) ||
             diag_error(diags, span_none, "M006", "%s: line %d is not a run of bench/sweep",
                        path, number);
    }
    ok = ok && (s->runs.len || diag_error(diags, span_none, "M006", "%s has no run", path));
    s->n = points.len;
    s->point = points.at;
    s->ns = times.at;
    s->run = NEW_ARRAY(arena, int, s->n + 1);
    s->row = NEW_ARRAY(arena, int, s->n + 1);
    for (int i = 0; i < s->n; i++)
        s->row[i] = i;
    for (int r = 0; r < s->runs.len; r++)
        for (int i = 0; i < s->runs.at[r].n; i++)
            s->run[s->runs.at[r].first + i] = r;
    return ok ? s : NULL;
}

// What is known without a run -------------------------------------------------------------

typedef struct {
    Sweep *sweep;
    DeviceModel device;
    pthread_mutex_t lock; // of the arena
    Arena *arena;
} Lowering;

static int turn_of(const Space *space, const Point *first, int nfirst, const Point *point)
{
    for (int i = 0; i < nfirst; i++)
        if (point_equal(space, &first[i], point))
            return i;
    return -1;
}

// A parameter that the record does not know has its plain value. A point without fused
// steps has no strips, so their length in the record does not matter.
static bool read_point(const Derivation *derivation, const char *text, Point *point)
{
    const Space *space = derive_space(derivation);
    Point single;
    derive_single(derivation, &single);
    *point = single;
    if (!point_change(space, text, point))
        return false;
    int rows = space_find(space, "rows");
    if (rows >= 0 && !space_valid(space, point))
        point->choice[rows] = single.choice[rows];
    return space_valid(space, point);
}

static void lower_run(Lowering *l, const SweepRun *run, Problem *problem, Arena *scratch,
                      Diags *quiet)
{
    Sweep *s = l->sweep;
    Derivation *derivation = derive_new(problem->bound, &s->info, quiet);
    const Space *space = derivation ? derive_space(derivation) : NULL;
    FeatureSetting setting = {&l->device, problem->binding, problem->nbinding};
    Point point, first[16];
    int nfirst = 0;
    if (space) {
        derive_plain(derivation, first);
        nfirst = 1 + derive_first(derivation, first + 1, COUNTOF(first) - 1);
    }
    for (int i = run->first; space && i < run->first + run->n; i++) {
        ArenaMark mark = arena_mark(scratch);
        IrMark ir = ir_mark(problem->ir);
        Unit *unit = read_point(derivation, s->point[i], &point)
                         ? derive_unit(derivation, &point, true, scratch, quiet)
                         : NULL;
        s->turn[i] = turn_of(space, first, nfirst, &point);
        Demand *demand = NULL;
        int n = unit ? demand_unit(unit, &setting, scratch, &demand,
                                   matrix_row(&s->term, i) + TERMS - FEATURES)
                     : 0;
        s->nkernel[i] = n;
        pthread_mutex_lock(&l->lock);
        s->demand[i] = n ? arena_copy(l->arena, demand, sizeof *demand * (size_t)n) : NULL;
        pthread_mutex_unlock(&l->lock);
        ir_release(problem->ir, ir);
        arena_reset(scratch, mark);
    }
    derive_free(derivation);
}

static void lower_one(void *user, int thread, int task)
{
    Lowering *l = user;
    const SweepRun *run = &l->sweep->runs.at[task];
    AutoArena *scratch = arena_new();
    Diags quiet = {.arena = arena_new()};
    Problem *problem = problem_parse("sweep.fw", run->text, &quiet);
    if (problem->kind && problem_bind(problem, run->binding, run->nbinding, &quiet))
        lower_run(l, run, problem, scratch, &quiet);
    problem_free(problem);
    arena_free(quiet.arena);
}

// Files of measured kernels name a device, and do not say what its target can. Of a
// multiprocessor's local memory CUDA keeps a part.
enum { LOCAL_KEPT = 1024 };

static void complete_device(DeviceInfo *info)
{
    char kind[sizeof info->id];
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(info->id, ":"), info->id);
    const DeviceKind *known = device_kind(kind);
    if (known)
        describe_target(known->target, info);
    info->has_half = info->has_double = true;
    DeviceModel model;
    describe_device(info, &model);
    info->local_bytes = MAX(info->local_bytes, model.mp_local_bytes - LOCAL_KEPT);
}

// Takes all that is described of a device, unless it is the one that was measured.
static void find_device(const char *name, DeviceInfo *info)
{
    int n;
    DeviceModel model;
    DeviceInfo measured = *info;
    const char *const *id = device_model_ids(&n);
    for (int i = 0; name && strcmp(name, measured.name) != 0 && i < n; i++) {
        if (!device_model_find(id[i], &model) || !strstr(name, model.name))
            continue;
        describe_model(&model, info);
        snprintf(info->id, sizeof info->id, "%s", measured.id);
        snprintf(info->name, sizeof info->name, "%s", name);
    }
}

void sweep_lower(Sweep *s, const DeviceInfo *measured, Arena *arena)
{
    size_t n = (size_t)s->n;
    Lowering l = {.sweep = s, .lock = PTHREAD_MUTEX_INITIALIZER, .arena = arena};
    s->info = *measured;
    find_device(s->device, &s->info);
    complete_device(&s->info);
    describe_device(&s->info, &l.device);
    s->turn = NEW_ARRAY(arena, int, n + 1);
    s->demand = NEW_ARRAY(arena, Demand *, n + 1);
    s->nkernel = NEW_ARRAY(arena, int, n + 1);
    s->known = NEW_ARRAY(arena, bool, n + 1);
    s->predicted = NEW_ARRAY(arena, double, n + 1);
    s->term = (Matrix){s->n, TERMS, NEW_ARRAY(arena, double, n *TERMS + 1)};
    tasks_call(s->runs.len, lower_one, &l);
}

void sweep_terms(Sweep *s, const Weights *weights)
{
    Weights scaled = *weights;
    weights_scale(&scaled, &s->info);
    for (int i = 0; i < s->n; i++)
        s->known[i] = terms_demands(&scaled, s->demand[i], s->nkernel[i],
                                    matrix_row(&s->term, i), &s->predicted[i]);
}
