// SPDX-License-Identifier: Apache-2.0
//
// Plans that are stored: of the problem at hand, or of the same program at the nearest
// sizes. A session knows its sizes by its label, and its program by the hash that the
// program gets when it is bound to these sizes again.

#include "plan/plan.h"

#include "store/wisdom.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void plan_key(const Problem *problem, uint64_t space, const DeviceInfo *device,
              StoreKey *key)
{
    *key = (StoreKey){.problem = problem_label(problem),
                      .problem_hash = problem_hash(problem),
                      .space_hash = space,
                      .fingerprint = device->fingerprint,
                      .device = device->name,
                      .version = TRIAL_VERSION};
}

// Nearness ----------------------------------------------------------------------------

enum { SIZES_MOST = 64 };

// The sizes that a label ends in: "jacobi2d N=96 M=64". -1: it is none.
static int label_sizes(const char *label, Arena *arena, Binding *binding)
{
    char *save = NULL, *text = arena_strdup(arena, label);
    int n = 0;
    strtok_r(text, " ", &save);
    for (char *item; (item = strtok_r(NULL, " ", &save));) {
        char *eq = strchr(item, '='), *end = NULL;
        if (!eq || eq == item || n == SIZES_MOST)
            return -1;
        *eq = 0;
        binding[n++] = (Binding){item, strtoll(eq + 1, &end, 10)};
        if (*end)
            return -1;
    }
    return n;
}

// INFINITY where the sizes have other names.
static double distance(const Problem *problem, const Binding *other, int n)
{
    double sum = 0;
    if (n != problem->nbinding)
        return INFINITY;
    for (int i = 0; i < n; i++) {
        const Binding *mine = &problem->binding[i];
        if (strcmp(mine->name, other[i].name) != 0 || mine->value < 1 || other[i].value < 1)
            return INFINITY;
        sum += fabs(log2((double)mine->value / (double)other[i].value));
    }
    return sum;
}

// A stored session that may serve, as far as its key tells.
typedef struct {
    StoreBest best;
    double distance;
    Binding *binding;
    int nbinding;
} Near;

typedef struct {
    const Ways *ways;
    const DeviceInfo *device;
    int reach;
    uint64_t space;
    Arena *arena;
    StoreKey key;
    VEC(Near) near;
} Hunt;

static const double DEVICE_APART = 1e6; // farther than any size

static double session_distance(const Hunt *s, Near *near)
{
    const Problem *problem = s->ways->problem;
    const StoreKey *key = &near->best.key;
    size_t name = strlen(problem->name);
    bool device = strcmp(key->fingerprint, s->device->fingerprint) == 0;
    if (strcmp(key->version, TRIAL_VERSION) != 0 ||
        strncmp(key->problem, problem->name, name) != 0 ||
        (key->problem[name] && key->problem[name] != ' ') ||
        (!device && !(s->reach & REACH_DEVICES)))
        return INFINITY;
    near->binding = NEW_ARRAY(s->arena, Binding, SIZES_MOST);
    near->nbinding = label_sizes(key->problem, s->arena, near->binding);
    bool same = key->problem_hash == s->key.problem_hash;
    double far = same ? 0 : distance(problem, near->binding, near->nbinding);
    if (same && device && key->space_hash == s->space)
        return -1; // the very same
    return same || (s->reach & REACH_SIZES) ? far + (device ? 0 : DEVICE_APART) : INFINITY;
}

static void consider(void *user, const StoreBest *best)
{
    Hunt *s = user;
    Near near = {.best = *best};
    near.distance = session_distance(s, &near);
    if (!(near.distance < INFINITY))
        return;
    near.best.key.problem = arena_strdup(s->arena, best->key.problem);
    near.best.key.device = arena_strdup(s->arena, best->key.device);
    near.best.key.fingerprint = arena_strdup(s->arena, best->key.fingerprint);
    VEC_PUSH(s->arena, &s->near, near);
}

static int compare_near(const void *a, const void *b)
{
    const Near *p = a, *q = b;
    if (p->distance != q->distance)
        return p->distance < q->distance ? -1 : 1;
    return p->best.session < q->best.session ? -1 : 1;
}

// Taking one --------------------------------------------------------------------------

static Problem *read_again(const Problem *problem, Diags *diags)
{
    Problem *own = problem->program
                       ? problem_parse(problem->source.name, problem->source.text, diags)
                       : problem_load(problem->source.name, diags);
    own->limit = problem->limit;
    if (own->program)
        own->program->math = problem->program->math;
    return own;
}

// Is the session of this program, at its sizes? Then bytes are those of its problem.
static bool is_same_program(const Hunt *s, const Near *near, double *bytes)
{
    const Problem *problem = s->ways->problem;
    *bytes = problem_bytes(problem);
    if (near->best.key.problem_hash == s->key.problem_hash)
        return true;
    Diags quiet;
    diags_init(&quiet, arena_new());
    Problem *own = read_again(problem, &quiet);
    bool same = own->kind && problem_bind(own, near->binding, near->nbinding, &quiet) &&
                problem_hash(own) == near->best.key.problem_hash;
    if (same)
        *bytes = problem_bytes(own);
    problem_free(own);
    arena_free(quiet.arena);
    return same;
}

typedef struct {
    const Space *space;
    Point point;
    double ns;
} Fastest;

static void keep_fastest(void *user, const StoreTrial *trial)
{
    Fastest *fastest = user;
    Point point;
    if (trial->status == TRIAL_OK && trial->time_ns < fastest->ns &&
        point_parse(fastest->space, trial->point, &point) &&
        space_valid(fastest->space, &point)) {
        fastest->ns = trial->time_ns;
        fastest->point = point;
    }
}

// 1: the session has a point for the space here; 0, -1 as plan_find.
static int take(const Hunt *s, Store *store, const Near *near, PlanFound *found,
                Diags *diags)
{
    double bytes = 0;
    Fastest fastest = {.space = s->ways->space, .ns = INFINITY};
    if (!is_same_program(s, near, &bytes))
        return 0;
    if (!store_each(store, near->best.session, keep_fastest, &fastest, diags))
        return -1;
    if (!(fastest.ns < INFINITY))
        return 0;
    const StoreKey *key = &near->best.key;
    double scale = bytes > 0 ? problem_bytes(s->ways->problem) / bytes : 1;
    bool other_size = key->problem_hash != s->key.problem_hash;
    *found =
        (PlanFound){.point = fastest.point,
                    .other_size = other_size,
                    .other_device = strcmp(key->fingerprint, s->device->fingerprint) != 0,
                    .problem = key->problem,
                    .device = key->device,
                    .fingerprint = key->fingerprint,
                    .time_ns = fastest.ns * (other_size ? scale : 1),
                    .rigor = near->best.rigor};
    return 1;
}

int plan_find(const Ways *ways, const char *path, const DeviceInfo *device, int reach,
              Arena *arena, PlanFound *found, Diags *diags)
{
    Hunt s = {.ways = ways,
              .device = device,
              .reach = reach,
              .space = space_hash(ways->space),
              .arena = arena};
    if (access(path, F_OK) != 0)
        return 0;
    Store *store = store_open(path, diags);
    if (!store)
        return -1;
    plan_key(ways->problem, s.space, device, &s.key);
    int got = store_each_best(store, consider, &s, diags) ? 0 : -1;
    if (s.near.len)
        qsort(s.near.at, (size_t)s.near.len, sizeof *s.near.at, compare_near);
    for (int i = 0; got == 0 && i < s.near.len; i++)
        got = take(&s, store, &s.near.at[i], found, diags);
    store_close(store);
    return got;
}

void plan_warn(const PlanFound *found, const Ways *ways, const DeviceInfo *device,
               Diags *diags)
{
    if (found->other_size)
        diag_warning(diags, span_none, "C053",
                     "nothing is stored for %s; this is the plan of %s, predicted to be "
                     "good here and not measured",
                     problem_label(ways->problem), found->problem);
    if (!found->other_device)
        return;
    bool namesake = strcmp(found->device, device->name) == 0; // another driver, say
    diag_warning(diags, span_none, "C054",
                 "the plan was found on another device: %s%s%s, not %s%s%s", found->device,
                 namesake ? ", fingerprint " : "", namesake ? found->fingerprint : "",
                 device->name, namesake ? ", fingerprint " : "",
                 namesake ? device->fingerprint : "");
}

// Models ------------------------------------------------------------------------------

const char *plan_models_folder(const char *program, Arena *arena)
{
    static const char *const place[] = {"../share/forewarp/models", "../data/models"};
    char *self = realpath(program, NULL); // links may be relative, or in the middle
    const char *found = NULL, *name = self ? strrchr(self, '/') : NULL;
    for (int i = 0; i < COUNTOF(place) && name && !found; i++) {
        const char *folder =
            arena_printf(arena, "%.*s%s", (int)(name + 1 - self), self, place[i]);
        if (access(folder, R_OK) == 0)
            found = folder;
    }
    free(self);
    return found;
}
