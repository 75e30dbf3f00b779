// SPDX-License-Identifier: Apache-2.0
//
// The empirical stage (paper 004, section 4.3.3): the cheapest covers by prediction are
// built, compared with the unfused reference and timed; every trial is stored as it ends.
// Besides, the best without fusions and the best single kernel are tried, to compare with.

#include "fuse/tune.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// LIMIT_S: of a job; PoCL on a busy machine takes 10 s to compile a small kernel.
enum {
    LIMIT_S = 60,
    SERIAL = 8,
    SOLUTIONS = 20,
    COMBINATIONS = 20000,
    FINALISTS = 5,
    FINAL_SAMPLES = 20
};

// Few are for large elements; of equal ones the first counts.
static const int instance_choice[] = {16, 32, 64, 128, 256, 8, 4, 1};

static const Choice style[] = {
    {.copy = COPY_WORDS}, // the paper's
    {.early = true, .copy = COPY_FOURS},
    {.early = true, .registers = true, .copy = COPY_WORDS},
    {.early = true, .registers = true, .copy = COPY_WORDS, .serial = SERIAL},
    {.early = true, .registers = true, .copy = COPY_FOURS},
    {.early = true, .registers = true, .copy = COPY_ASYNC},
};

typedef struct {
    TrialStatus status;
    double time_ns, max_error;
} Known;

typedef struct {
    const Script *script;
    const FuseOptions *options;
    FuseResult *result;
    Diags *diags;
    Arena *arena;
    double start_s;
    Psi *psi;
    FuseSpace *space;
    ScriptData *data;
    Rig *rig;
    Store *store;
    int64_t session;
    Map known;
    Buf prelude;
    VEC(FusedKernel) kernels; // candidates, one a unit
    VEC(CoverUnit) units;
    Solution *solution;
    FuseTrial *trial;
    int nsolution, serial, first_random;
    int job_solution[256]; // of the jobs at hand
    bool failed;
} Tuner;

static void report(Tuner *t, const char *stage, int done)
{
    if (!t->options->progress)
        return;
    FuseProgress progress = {.done = done,
                             .wanted = t->nsolution,
                             .best_ns = t->result->best_ns,
                             .elapsed_s = clock_s() - t->start_s,
                             .stage = stage};
    t->options->progress(t->options->user, &progress);
}

// Units -------------------------------------------------------------------------------

static bool next_impls(const Script *script, const Fusion *f, uint8_t *impl, bool together)
{
    bool more = false;
    for (int i = 0; i < f->ncall; i++) {
        int n = script->call[f->order[i]].function->nimpl;
        if (together) {
            more = more || impl[i] + 1 < n;
            impl[i] = (uint8_t)MIN(impl[i] + 1, n - 1);
        } else if (++impl[i] < n) {
            return true;
        } else {
            impl[i] = 0;
        }
    }
    return more;
}

static int count_barriers(const Script *script, FusedKernel kernel, const char *target)
{
    Buf text;
    buf_init(&text);
    kernel.choice.instances = 4;
    kernel.threads = 4 * fused_lanes(script, &kernel);
    fused_print(script, &kernel, target, "count", &text);
    buf_release(&text);
    return kernel.barriers;
}

static bool has_sum(const Script *script, const Fusion *f)
{
    for (int i = 0; i < f->ncall; i++)
        if (script->call[f->order[i]].function->kind == FUNCTION_SUM)
            return true;
    return false;
}

// Blocks that sum should be few, for each stores its part, but a few for every unit.
static int serial_of_sum(const Tuner *t, int instances)
{
    double units = 8.0 * rig_device(t->rig)->compute_units;
    double serial = (double)t->options->instances / (instances * units);
    return (int)fmin(fmax(serial, 1), 64);
}

// The best number of instances of a block for these implementations in this style.
static void add_unit(Tuner *t, const Fusion *f, const uint8_t *impl, const Choice *base)
{
    const DeviceInfo *device = rig_device(t->rig);
    FusedKernel kernel, best = {0};
    Choice choice = *base;
    double least = INFINITY;
    int barriers = -1;
    memcpy(choice.impl, impl, sizeof choice.impl);
    for (int i = 0; i < COUNTOF(instance_choice); i++) {
        choice.instances = instance_choice[i];
        if (has_sum(t->script, f))
            choice.serial = serial_of_sum(t, choice.instances);
        if (!fused_make(t->script, f, &choice, fused_local_bytes(device), device->max_group,
                        &kernel))
            continue;
        if (base->serial && (kernel.top || has_sum(t->script, f)))
            return; // several at a time are for kernels of registers only
        if (barriers < 0)
            barriers = count_barriers(t->script, kernel, device->target);
        kernel.barriers = barriers;
        double ns = psi_predict(t->psi, t->script, &kernel, t->options->instances);
        if (ns < least) {
            least = ns;
            best = kernel;
        }
    }
    if (!isfinite(least))
        return;
    CoverUnit unit = {f->set, least, t->units.len};
    VEC_PUSH(t->arena, &t->units, unit);
    VEC_PUSH(t->arena, &t->kernels, best);
}

// The implementation of each call by so many threads, in strips; scalars have one.
static bool strip_impls(const Script *script, const Fusion *f, int lanes, uint8_t *impl)
{
    bool any = false;
    for (int i = 0; i < f->ncall; i++) {
        const Elementary *e = script->call[f->order[i]].function;
        int k = 0;
        while (k < e->nimpl && (!e->impl[k].strip || e->impl[k].lanes != lanes))
            k++;
        impl[i] = (uint8_t)(k < e->nimpl ? k : 0);
        any = any || k < e->nimpl;
    }
    return any;
}

static void add_strip_unit(Tuner *t, const Fusion *f, const Choice *choice)
{
    const DeviceInfo *device = rig_device(t->rig);
    FusedKernel kernel;
    if (!fused_make(t->script, f, choice, fused_local_bytes(device), device->max_group,
                    &kernel))
        return;
    double ns = psi_predict(t->psi, t->script, &kernel, t->options->instances);
    CoverUnit unit = {f->set, ns, t->units.len};
    VEC_PUSH(t->arena, &t->units, unit);
    VEC_PUSH(t->arena, &t->kernels, kernel);
}

// By strips: blocks that stay, so many for each unit of the device, or one for each few
// instances where nothing is summed.
static void add_strip_units(Tuner *t, const Fusion *f)
{
    int units = rig_device(t->rig)->compute_units;
    Choice choice = {.copy = COPY_STRIPS};
    int64_t count = fused_count(t->script, f, t->options->instances);
    for (int lanes = 32; lanes <= THREADS_MAX; lanes *= 2)
        for (int i = 1; i <= MAX(256 / lanes, 1); i *= 2) {
            if (!strip_impls(t->script, f, lanes, choice.impl))
                continue;
            choice.instances = i;
            choice.serial = 0;
            choice.early = false;
            if (!has_sum(t->script, f))
                add_strip_unit(t, f, &choice);
            for (int each = 1; each <= 16; each *= 2) {
                int64_t blocks = (int64_t)i * units * each;
                if (i * lanes * each > 2048 || (i * lanes * each < 512 && each < 16))
                    continue;
                choice.serial = (int)((count + blocks - 1) / blocks);
                for (int early = 0; early < 2 && choice.serial > 1; early++) {
                    choice.early = early;
                    add_strip_unit(t, f, &choice);
                }
            }
        }
}

static void make_units(Tuner *t)
{
    bool cuda = strcmp(rig_device(t->rig)->target, "cuda") == 0;
    double most = fmax(IMPLS_MAX, COMBINATIONS / (double)t->space->fusion.len);
    for (int i = 0; i < t->space->fusion.len; i++) {
        const Fusion *f = &t->space->fusion.at[i];
        bool together = f->impls * COUNTOF(style) > most;
        uint8_t impl[MEMBERS_MAX] = {0};
        if (strcmp(rig_device(t->rig)->target, "c") != 0)
            add_strip_units(t, f);
        do
            for (int s = 0; s < COUNTOF(style); s++)
                if (style[s].copy != COPY_ASYNC || cuda)
                    add_unit(t, f, impl, &style[s]);
        while (next_impls(t->script, f, impl, together));
    }
}

// Solutions ---------------------------------------------------------------------------

static const char *solution_text(Tuner *t, const Solution *s)
{
    Buf text;
    buf_init(&text);
    solution_print(&text, t->script, s);
    const char *copy = arena_strdup(t->arena, text.text);
    buf_release(&text);
    return copy;
}

static void add_solution(Tuner *t, const Cover *cover, const int *number)
{
    Solution *s = &t->solution[t->nsolution];
    FuseTrial *trial = &t->trial[t->nsolution];
    s->n = trial->n = cover->n;
    for (int i = 0; i < cover->n; i++) {
        s->kernel[i] = t->kernels.at[number ? number[cover->unit[i]] : cover->unit[i]];
        trial->set[i] = s->kernel[i].fusion->set;
    }
    trial->predicted_ns = cover->cost * (double)t->options->instances;
    trial->text = solution_text(t, s);
    trial->time_ns = INFINITY;
    t->nsolution++;
}

static bool same_partition(const FuseTrial *a, const FuseTrial *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++) {
        bool found = false;
        for (int k = 0; k < b->n; k++)
            found = found || a->set[i] == b->set[k];
        if (!found)
            return false;
    }
    return true;
}

static void number_partitions(Tuner *t, int n)
{
    int partitions = 0;
    for (int i = 0; i < n; i++) {
        t->trial[i].partition = partitions;
        for (int k = 0; k < i; k++)
            if (same_partition(&t->trial[i], &t->trial[k]))
                t->trial[i].partition = t->trial[k].partition;
        partitions += t->trial[i].partition == partitions;
    }
}

// The cheapest cover by units of so many calls, as one more solution.
static void add_by_size(Tuner *t, int calls)
{
    CoverUnit *unit = NEW_ARRAY(t->arena, CoverUnit, t->units.len);
    int *number = NEW_ARRAY(t->arena, int, t->units.len), n = 0;
    for (int i = 0; i < t->units.len; i++)
        if (__builtin_popcountll(t->units.at[i].set) == calls) {
            number[n] = i;
            unit[n++] = t->units.at[i];
        }
    Cover *cover;
    if (n && cover_best(&t->space->graph, unit, n, 1, t->arena, &cover) == 1)
        add_solution(t, cover, number);
}

// One of the units of a random set that has the lowest call of rest; -1: there is none.
static int random_unit(const Tuner *t, Rng *rng, Set rest)
{
    Set lowest = rest & -rest;
    int chosen = -1;
    uint64_t seen = 0;
    for (int i = 0; i < t->units.len; i++) {
        Set set = t->units.at[i].set;
        if ((set & lowest) && !(set & ~rest) && rng_below(rng, ++seen) == 0)
            chosen = i;
    }
    return chosen;
}

// Solutions drawn at random, of any cost: how well are times predicted in general?
static void add_random(Tuner *t, int wanted)
{
    const Graph *graph = &t->space->graph;
    Set all = graph->n == CALLS_MAX ? ~(Set)0 : ((Set)1 << graph->n) - 1;
    Rng rng;
    rng_seed(&rng, t->options->seed);
    for (int tries = 0; wanted > 0 && tries < 100 * wanted; tries++) {
        CoverUnit unit[CALLS_MAX];
        int number[CALLS_MAX], n = 0, u;
        for (Set rest = all; rest && (u = random_unit(t, &rng, rest)) >= 0;
             rest &= ~t->units.at[u].set) {
            number[n] = u;
            unit[n++] = t->units.at[u];
        }
        Cover *cover;
        if (cover_best(graph, unit, n, 1, t->arena, &cover) == 1) {
            add_solution(t, cover, number);
            wanted--;
        }
    }
}

static bool choose_solutions(Tuner *t, int *ranked)
{
    int k = t->options->solutions ? t->options->solutions : SOLUTIONS;
    double start = clock_s();
    Cover *cover;
    const DeviceInfo *device = rig_device(t->rig);
    if (!fused_fits(t->space, fused_local_bytes(device), device->max_group, t->diags))
        return false;
    make_units(t);
    t->result->space_s = t->space->seconds;
    double units_s = clock_s();
    int n = cover_best(&t->space->graph, t->units.at, t->units.len, k, t->arena, &cover);
    t->result->cover_s = clock_s() - units_s;
    t->result->space_s += units_s - start;
    int most = n + 2 + t->options->sample;
    t->solution = NEW_ARRAY(t->arena, Solution, most);
    t->trial = NEW_ARRAY(t->arena, FuseTrial, most);
    for (int i = 0; i < n; i++)
        add_solution(t, &cover[i], NULL);
    number_partitions(t, n);
    add_by_size(t, 1);
    if (t->script->ncall > 1)
        add_by_size(t, t->script->ncall);
    t->first_random = t->nsolution;
    add_random(t, t->options->sample);
    *ranked = n;
    return n > 0 ||
           diag_error(t->diags, t->script->elem[0].span, "F030",
                      "a call has no kernel whose parts could be timed on the device");
}

// Trials ------------------------------------------------------------------------------

static void on_stored(void *user, const StoreTrial *stored)
{
    Tuner *t = user;
    Known *known = NEW(t->arena, Known);
    *known = (Known){stored->status, stored->time_ns, stored->max_error};
    map_put(&t->known, arena_strdup(t->arena, stored->point), known);
}

static void record(Tuner *t, int number, TrialStatus status, double ns, double error)
{
    FuseTrial *trial = &t->trial[number];
    trial->status = status;
    trial->time_ns = status == TRIAL_OK ? ns : INFINITY;
    t->result->count[status]++;
    if (status != TRIAL_OK)
        return;
    t->result->best_ns = fmin(t->result->best_ns, ns);
    t->result->max_error = fmax(t->result->max_error, error);
}

static double on_trial(void *user, int job, Trial *trial)
{
    Tuner *t = user;
    int number = t->job_solution[job];
    record(t, number, trial->status, trial->time_ns, trial->max_error);
    StoreTrial stored = store_trial(t->trial[number].text, trial);
    t->failed = t->failed || !store_put(t->store, t->session, &stored, t->diags);
    report(t, "time", number + 1);
    return INFINITY;
}

static void make_job(Tuner *t, Solution *s, const char *prefix, Buf *source, Job *job)
{
    solution_job(t->script, s, t->options->instances, t->data->buffer_of, t->data->nbuffer,
                 rig_device(t->rig)->target, prefix, t->prelude.text, t->arena, source,
                 job);
}

static bool use_stored(Tuner *t, int number)
{
    const Known *known = map_get(&t->known, t->trial[number].text);
    if (!known)
        return false;
    t->trial[number].reused = true;
    t->result->reused++;
    record(t, number, known->status, known->time_ns, known->max_error);
    return true;
}

static bool run_batch(Tuner *t, int *at)
{
    Job job[256];
    Buf source[256];
    int n = 0, most = MIN(rig_batch(t->rig), COUNTOF(job));
    for (; *at < t->nsolution && n < most; (*at)++) {
        if (use_stored(t, *at))
            continue;
        buf_init(&source[n]);
        const char *prefix =
            arena_printf(t->arena, "%s_c%d_k", t->script->name, t->serial++);
        make_job(t, &t->solution[*at], prefix, &source[n], &job[n]);
        t->job_solution[n++] = *at;
    }
    bool ok = !n || rig_run(t->rig, job, n, INFINITY, on_trial, t, t->diags);
    for (int i = 0; i < n; i++)
        buf_release(&source[i]);
    return ok && !t->failed;
}

static bool run_all(Tuner *t)
{
    for (int at = 0; at < t->nsolution;)
        if (at && clock_s() - t->start_s > t->options->budget_s)
            return true; // the rest stays untried
        else if (!run_batch(t, &at))
            return false;
    return true;
}

// The fastest few, and what they are compared with, once more side by side.
static bool measure_again(Tuner *t, int ranked)
{
    int again[FINALISTS + 2], n = 0;
    for (; n < FINALISTS; n++) {
        int best = -1;
        for (int i = 0; i < ranked; i++) {
            bool taken = false;
            for (int k = 0; k < n; k++)
                taken = taken || again[k] == i;
            if (!taken && isfinite(t->trial[i].time_ns) &&
                (best < 0 || t->trial[i].time_ns < t->trial[best].time_ns))
                best = i;
        }
        if (best < 0)
            break;
        again[n] = best;
    }
    for (int i = ranked; i < t->first_random; i++)
        if (isfinite(t->trial[i].time_ns))
            again[n++] = i;
    for (int i = 0; i < n; i++) {
        Buf source;
        Job job;
        Trial trial = {0};
        buf_init(&source);
        report(t, "time again", i);
        make_job(t, &t->solution[again[i]],
                 arena_printf(t->arena, "%s_c%d_k", t->script->name, t->serial++), &source,
                 &job);
        bool ok = rig_run_one(t->rig, &job, FINAL_SAMPLES, &trial, NULL, t->diags);
        t->trial[again[i]].time_ns = trial.status == TRIAL_OK ? trial.time_ns : INFINITY;
        trial_release(&trial);
        buf_release(&source);
        if (!ok)
            return false;
    }
    return true;
}

// Conclusions -------------------------------------------------------------------------

static double rank_of(const FuseTrial *trial, int n, int which, bool predicted)
{
    double rank = 1, mine = predicted ? trial[which].predicted_ns : trial[which].time_ns;
    for (int i = 0; i < n; i++) {
        double other = predicted ? trial[i].predicted_ns : trial[i].time_ns;
        if (isfinite(trial[i].time_ns) && i != which)
            rank += other < mine ? 1 : other == mine ? 0.5 : 0;
    }
    return rank;
}

// Spearman's rank correlation over the trials that were right.
static double correlate(const FuseTrial *trial, int n)
{
    double sum = 0, a2 = 0, b2 = 0, mean = 0, count = 0;
    for (int i = 0; i < n; i++)
        count += isfinite(trial[i].time_ns);
    mean = (count + 1) / 2;
    for (int i = 0; i < n; i++)
        if (isfinite(trial[i].time_ns)) {
            double a = rank_of(trial, n, i, true) - mean;
            double b = rank_of(trial, n, i, false) - mean;
            sum += a * b;
            a2 += a * a;
            b2 += b * b;
        }
    return a2 > 0 && b2 > 0 ? sum / sqrt(a2 * b2) : 0;
}

static double time_by_size(const Tuner *t, int calls)
{
    double best = INFINITY;
    for (int i = 0; i < t->nsolution; i++) {
        bool all = true;
        for (int k = 0; k < t->trial[i].n; k++)
            all = all && __builtin_popcountll(t->trial[i].set[k]) == calls;
        if (all)
            best = fmin(best, t->trial[i].time_ns);
    }
    return best;
}

static void conclude(Tuner *t, int ranked)
{
    FuseResult *r = t->result;
    r->trial = t->trial;
    r->ntrial = ranked;
    r->best = -1;
    for (int i = 0; i < ranked; i++)
        if (isfinite(t->trial[i].time_ns) &&
            (r->best < 0 || t->trial[i].time_ns < t->trial[r->best].time_ns))
            r->best = i;
    if (r->best < 0)
        return;
    r->best_ns = t->trial[r->best].time_ns;
    r->best_partition = t->trial[r->best].partition;
    for (int i = ranked - 1; i >= 0; i--)
        if (t->trial[i].time_ns <= 1.03 * r->best_ns)
            r->within = i;
    r->unfused_ns = time_by_size(t, 1);
    r->single_ns = time_by_size(t, t->script->ncall);
    r->nrandom = t->nsolution - t->first_random;
    r->random = t->trial + t->first_random;
    r->correlation =
        r->nrandom ? correlate(r->random, r->nrandom) : correlate(t->trial, ranked);
}

static bool write_kernels(Tuner *t)
{
    static const char *const suffix[][2] = {{"opencl", "cl"}, {"cuda", "cu"}, {"c", "c"}};
    const char *target = rig_device(t->rig)->target, *extension = target;
    Solution *s = &t->solution[t->result->best];
    Buf text;
    for (int i = 0; i < COUNTOF(suffix); i++)
        if (strcmp(suffix[i][0], target) == 0)
            extension = suffix[i][1];
    if (!file_mkdirs(t->options->out))
        return diag_world(t->diags, "C011", "cannot make the folder %s: %s",
                          t->options->out, strerror(errno));
    buf_init(&text);
    solution_source(t->script, s, t->options->instances, target, &text);
    const char *path =
        arena_printf(t->arena, "%s/%s.%s", t->options->out, t->script->name, extension);
    bool ok = file_write(path, text.text, text.len);
    if (!ok)
        diag_world(t->diags, "C012", "cannot write %s: %s", path, strerror(errno));
    t->result->kernel_path = path;
    buf_release(&text);
    return ok;
}

// As many bytes as the script must move, by a kernel that only copies.
static bool time_copy(Tuner *t)
{
    static const float nothing[1];
    RigBuffer buffer = {.name = "nothing", .scalar = S_FLOAT, .count = 1, .init = nothing};
    RigConfig config = {.device = t->options->device,
                        .worker = t->options->place.worker,
                        .folder = t->options->place.folder,
                        .nbuffer = 1,
                        .buffer = &buffer};
    Rig *rig = rig_open(&config, t->diags);
    if (!rig)
        return false;
    int64_t fours = MAX((int64_t)(t->result->bytes / 32) / 1024, 1) * 1024;
    Trial trial = {0};
    bool ok = fused_time_copy(rig, fours, FINAL_SAMPLES, &trial, t->diags);
    if (trial.status == TRIAL_OK)
        t->result->copy_ns = trial.time_ns * t->result->bytes / (32.0 * (double)fours);
    trial_release(&trial);
    rig_close(rig);
    return ok;
}

// Stages ------------------------------------------------------------------------------

static bool open_all(Tuner *t)
{
    const FuseOptions *o = t->options;
    report(t, "routines", 0);
    t->psi =
        psi_open(t->script, o->device, o->store, &o->place, &t->result->routines, t->diags);
    if (!t->psi)
        return false;
    report(t, "reference", 0);
    t->data = script_data(t->script, o->instances, o->seed, &o->place, t->arena, t->diags);
    if (!t->data)
        return false;
    RigConfig config = {.device = o->device,
                        .worker = o->place.worker,
                        .folder = o->place.folder,
                        .nbuffer = t->data->nbuffer,
                        .buffer = t->data->buffer,
                        .tolerance = 1e-4,
                        .build_limit_s = LIMIT_S,
                        .run_limit_s = LIMIT_S};
    t->rig = rig_open(&config, t->diags);
    if (!t->rig)
        return false;
    const DeviceInfo *device = rig_device(t->rig);
    t->result->device = arena_strdup(t->arena, device->name);
    t->result->fingerprint = arena_strdup(t->arena, device->fingerprint);
    t->result->target = arena_strdup(t->arena, device->target);
    fused_prelude(device->target, &t->prelude);
    return true;
}

static bool open_session(Tuner *t)
{
    const DeviceInfo *device = rig_device(t->rig);
    t->store = store_open(t->options->store, t->diags);
    if (!t->store)
        return false;
    const char *problem = t->script->name;
    for (int i = 0; i < t->script->sizes.len; i++)
        problem = arena_printf(t->arena, "%s %s=%lld", problem, t->script->sizes.at[i].name,
                               (long long)t->script->sizes.at[i].value);
    StoreKey key = {
        .problem =
            arena_printf(t->arena, "%s T=%lld", problem, (long long)t->options->instances),
        .problem_hash = hash_mix(script_hash(t->script), (uint64_t)t->options->instances),
        .space_hash = hash_bytes("fuse", 4, 0),
        .fingerprint = device->fingerprint,
        .device = device->name,
        .version = FW_VERSION};
    t->session = store_session(t->store, &key, t->diags);
    return t->session &&
           (!t->options->fresh || store_forget(t->store, t->session, t->diags)) &&
           store_each(t->store, t->session, on_stored, t, t->diags);
}

static double least_bytes(const Script *script, int64_t instances)
{
    double words = 0;
    for (int e = 0; e < script->nelem; e++)
        if (script->elem[e].is_input || script->elem[e].is_output)
            words +=
                (double)(script->elem[e].words * elem_count(&script->elem[e], instances));
    return words * 4;
}

static void close_all(Tuner *t)
{
    psi_free(t->psi);
    rig_close(t->rig);
    store_close(t->store);
    buf_release(&t->prelude);
}

bool fuse_tune(const Script *script, const FuseOptions *options, Arena *arena,
               FuseResult *result, Diags *diags)
{
    Tuner t = {.script = script,
               .options = options,
               .result = result,
               .diags = diags,
               .arena = arena,
               .start_s = clock_s()};
    *result = (FuseResult){.best_ns = INFINITY,
                           .copy_ns = INFINITY,
                           .best = -1,
                           .unfused_ns = INFINITY,
                           .single_ns = INFINITY,
                           .bytes = least_bytes(script, options->instances)};
    int ranked = 0;
    buf_init(&t.prelude);
    map_init(&t.known, arena);
    t.space = fuse_space(script, options->limit, arena);
    bool ok = open_all(&t) && open_session(&t) && choose_solutions(&t, &ranked) &&
              run_all(&t) && measure_again(&t, ranked);
    if (ok) {
        conclude(&t, ranked);
        ok = result->best >= 0 ||
             diag_world(diags, "C013", "no solution was built, right and in time");
    }
    ok = ok && time_copy(&t) && write_kernels(&t);
    result->elapsed_s = clock_s() - t.start_s;
    close_all(&t);
    return ok;
}
