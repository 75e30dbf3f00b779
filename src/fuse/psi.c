// SPDX-License-Identifier: Apache-2.0
//
// The table psi of paper 004, section 4.4, and equation 3. Routines are timed on their own:
// a compute routine, repeated with a barrier after each, on words that are on chip; a load
// or a store of a list that is larger than the caches; a barrier; the start of a kernel.
// Loads and stores of all functions are the same copies here, so they are timed by words
// and kind. The cost of working out thread coordinates where the granularity changes (t_md)
// is in the compute routines, which each do it.
//
// Between the grid's points the nearest number of instances counts, and the words held
// besides are interpolated. Times are stored once a device, by the text of their kernel.

#include "fuse/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// LIMIT_S: PoCL compiles a kernel when it first runs, on a busy machine slowly.
enum {
    LIMIT_S = 120,
    REPEATS = 16,
    INSTANCES_A_UNIT = 16384,
    GRID = 2,
    ROUTINES_MAX = 2048
};

// Instances of a block, the wanted first.
enum { SIZES = 6 };
static const int grid_gpu[SIZES] = {128, 32, 16, 8, 4, 1};
static const int grid_cpu[SIZES] = {128, 16, 8, 4, 2, 1};
static const int extra_gpu[GRID] = {0, 32}, extra_cpu[GRID] = {0, 0};

// A routine at a point of the grid.
typedef struct {
    RoutineKind kind;
    const Elementary *function; // COMPUTE
    int impl, words, threads;   // words: LOAD, STORE; threads: BARRIER
    CopyKind copy;
    int instances, extra;
    double ns; // an instance; INFINITY: it does not run
    const char *key;
} Row;

struct Psi {
    Arena *arena;
    double launch_ns;
    VEC(Row) rows;
};

// What to time ------------------------------------------------------------------------

typedef struct {
    Psi *psi;
    const Script *script;
    const FuseSpace *singles;
    DeviceInfo device;
    FusePlace place;
    Store *store;
    int64_t session;
    Map known; // key to a time
    Diags *diags;
    Arena *scratch;
    Row **row; // of the jobs
    Buf *source;
    Job *job;
    int njob;
    bool failed;
} Bench;

// Timing ------------------------------------------------------------------------------

static const char *const routine_name[ROUTINES] = {
#define X(id, text) [ROUTINE_##id] = text,
    ROUTINE_KINDS(X)
#undef X
};

// The single call in which the routine occurs.
static const Fusion *fusion_of(const Bench *b, const Row *row)
{
    for (int i = 0; i < b->singles->fusion.len; i++) {
        const Fusion *f = &b->singles->fusion.at[i];
        const Elementary *e = b->script->call[f->order[0]].function;
        bool moves = false;
        if (b->script->call[f->order[0]].is_uniform)
            continue;
        for (int p = 0; p <= e->nparam; p++)
            moves = moves || (e->words[p] == row->words && f->top >= row->words);
        if (row->kind == ROUTINE_BARRIER || (row->function ? row->function == e : moves))
            return f;
    }
    BUG("a routine of no call");
}

static void print_row(Bench *b, const Row *row, const char *name, Buf *out, int *threads)
{
    FusedKernel kernel;
    Choice choice = {.instances = row->instances, .copy = row->copy};
    choice.impl[0] = (uint8_t)row->impl;
    *threads = 0;
    if (!fused_make(b->script, fusion_of(b, row), &choice, INT64_MAX, b->device.max_group,
                    &kernel))
        return;
    int64_t bytes =
        ((int64_t)(kernel.top + row->extra) * row->instances + kernel.common) * 4;
    if (bytes > fused_local_bytes(&b->device))
        return;
    *threads = kernel.threads;
    fused_print_routine(b->script, &kernel, row->kind, row->words, row->extra,
                        b->device.target, name, out);
}

static int points(const Bench *b, const int **instances, const int **extra)
{
    *instances = b->device.is_cpu ? grid_cpu : grid_gpu;
    *extra = b->device.is_cpu ? extra_cpu : extra_gpu;
    return b->device.is_cpu ? 1 : GRID;
}

// The two largest numbers of instances that fit, and the grid's words besides.
static void add_rows(Bench *b, const Row *like)
{
    const int *instances, *extra;
    int nextra = points(b, &instances, &extra), found = 0;
    Buf text;
    buf_init(&text);
    for (int i = 0; i < SIZES && found < GRID; i++) {
        Row row = *like;
        row.instances = instances[i];
        row.ns = INFINITY;
        int threads;
        buf_clear(&text);
        print_row(b, &row, "fits", &text, &threads);
        found += threads > 0;
        for (int k = 0; k < nextra && threads; k++) {
            row.extra = extra[k];
            VEC_PUSH(b->psi->arena, &b->psi->rows, row);
        }
    }
    buf_release(&text);
}

static bool has_row(const Psi *psi, const Row *like)
{
    for (int i = 0; i < psi->rows.len; i++) {
        const Row *r = &psi->rows.at[i];
        if (r->kind == like->kind && r->function == like->function &&
            r->impl == like->impl && r->words == like->words && r->copy == like->copy)
            return true;
    }
    return false;
}

static void want(Bench *b, Row row)
{
    if (!has_row(b->psi, &row))
        add_rows(b, &row);
}

static void list_routines(Bench *b)
{
    const Script *s = b->script;
    int copies = strcmp(b->device.target, "cuda") == 0 ? COPIES : COPY_ASYNC;
    want(b, (Row){.kind = ROUTINE_BARRIER});
    for (int v = 0; v < s->ncall; v++) {
        const Call *call = &s->call[v];
        const Elementary *f = call->function;
        bool sum = f->kind == FUNCTION_SUM;
        if (call->is_uniform)
            continue;
        for (int i = 0; i < f->nimpl && !sum; i++)
            want(b, (Row){.kind = ROUTINE_COMPUTE, .function = f, .impl = i});
        for (int p = 0; p < f->nparam + !sum; p++)
            for (int c = 0; c < copies; c++) {
                if (p < f->nparam && s->elem[call->in[p]].is_uniform)
                    continue;
                want(b, (Row){.kind = ROUTINE_LOAD, .words = f->words[p], .copy = c});
                if (c != COPY_ASYNC)
                    want(b, (Row){.kind = ROUTINE_STORE, .words = f->words[p], .copy = c});
            }
    }
}

static int64_t list_length(const Bench *b)
{
    return (int64_t)b->device.compute_units * INSTANCES_A_UNIT;
}

static void add_job(Bench *b, Row *row, int threads, int64_t length, int repeats)
{
    Arena *arena = b->scratch;
    int k = b->njob++;
    const char *name = arena_printf(arena, "psi%d", k);
    int64_t *bytes = NEW_ARRAY(arena, int64_t, 2);
    JobArg *arg = NEW_ARRAY(arena, JobArg, 4);
    JobLaunch *launch = NEW(arena, JobLaunch);
    int same;
    // Besides the instances, elements that all share, which fit on chip.
    bytes[0] = bytes[1] =
        length * MAX(row->words, 1) * 4 + MAX(b->device.local_bytes, 4096);
    arg[0] = (JobArg){.kind = ARG_BUFFER, .buffer = 1};
    arg[1] = (JobArg){.kind = ARG_BUFFER, .buffer = 2};
    arg[2] = (JobArg){.kind = ARG_INT, .number = length};
    arg[3] = (JobArg){.kind = ARG_INT, .number = repeats};
    int64_t blocks = (length + row->instances - 1) / row->instances;
    *launch = (JobLaunch){.kernel = name,
                          .global = {blocks * threads, 1, 1},
                          .local = {threads, 1, 1},
                          .narg = 4,
                          .arg = arg};
    buf_init(&b->source[k]);
    print_row(b, row, name, &b->source[k], &same);
    b->job[k] = (Job){.options = "",
                      .source = b->source[k].text,
                      .nscratch = 2,
                      .scratch_bytes = bytes,
                      .nlaunch = 1,
                      .launch = launch};
    b->row[k] = row;
}

static int repeats_of(const Row *row)
{
    return row->kind == ROUTINE_COMPUTE || row->kind == ROUTINE_BARRIER ? REPEATS : 1;
}

// Takes what is known, and makes jobs of the rest.
static void find_known(Bench *b)
{
    Buf text;
    buf_init(&text);
    for (int i = 0; i < b->psi->rows.len && b->njob < ROUTINES_MAX; i++) {
        Row *row = &b->psi->rows.at[i];
        int threads;
        char hash[17];
        buf_clear(&text);
        print_row(b, row, "routine", &text, &threads);
        if (!threads)
            continue;
        hash_hex(hash_bytes(text.text, text.len, 0), hash);
        row->threads = threads;
        row->key = arena_printf(
            b->psi->arena, "%s %s/%d %d %s x%d +%d #%s", routine_name[row->kind],
            row->function ? row->function->name : "", row->impl, row->words,
            copy_name[row->copy], row->instances, row->extra, hash);
        const double *ns = map_get(&b->known, row->key);
        if (ns)
            row->ns = *ns;
        else
            add_job(b, row, threads, list_length(b), repeats_of(row));
    }
    buf_release(&text);
}

static double on_routine(void *user, int job, Trial *trial)
{
    Bench *b = user;
    Row *row = b->row[job];
    double per = (double)list_length(b) * repeats_of(row);
    if (trial->status == TRIAL_OK)
        row->ns = trial->time_ns / per;
    StoreTrial stored = {.point = row->key,
                         .status = trial->status,
                         .time_ns = row->ns,
                         .spent_s = trial->build_s + trial->timing_s,
                         .log = trial->log};
    b->failed = b->failed || !store_put(b->store, b->session, &stored, b->diags);
    return INFINITY;
}

static void on_stored(void *user, const StoreTrial *trial)
{
    Bench *b = user;
    bool again = trial->status == TRIAL_TIMED_OUT || trial->status == TRIAL_CRASHED ||
                 trial->status == TRIAL_FAILED;
    if (again)
        return;
    double *ns = NEW(b->psi->arena, double);
    *ns = trial->status == TRIAL_OK ? trial->time_ns : INFINITY;
    map_put(&b->known, arena_strdup(b->psi->arena, trial->point), ns);
}

static const char launch_key[] = "start of a kernel";

// One block that does nothing.
static bool time_launch(Bench *b, Rig *rig, const char *prelude)
{
    Row *row = &b->psi->rows.at[0];
    Trial trial = {0};
    if (!b->psi->rows.len) // no call fits the device, which is said elsewhere
        return true;
    b->njob = 0;
    add_job(b, row, row->threads, row->instances, 0);
    b->job[0].prelude = prelude;
    bool ok = rig_run_one(rig, &b->job[0], 10, &trial, NULL, b->diags);
    b->psi->launch_ns = trial.status == TRIAL_OK ? trial.time_ns : 0;
    StoreTrial stored = {.point = launch_key,
                         .status = trial.status,
                         .time_ns = trial.time_ns,
                         .log = trial.log};
    ok = ok && store_put(b->store, b->session, &stored, b->diags);
    trial_release(&trial);
    buf_release(&b->source[0]);
    return ok;
}

static bool time_all(Bench *b, const char *device)
{
    static const float nothing[1];
    RigBuffer buffer = {.name = "nothing", .scalar = S_FLOAT, .count = 1, .init = nothing};
    RigConfig config = {.device = device,
                        .worker = b->place.worker,
                        .folder = b->place.folder,
                        .nbuffer = 1,
                        .buffer = &buffer,
                        .samples = 3,
                        .build_limit_s = LIMIT_S,
                        .run_limit_s = LIMIT_S};
    Rig *rig = rig_open(&config, b->diags);
    if (!rig)
        return false;
    Buf prelude;
    buf_init(&prelude);
    fused_prelude(b->device.target, &prelude);
    for (int i = 0; i < b->njob; i++)
        b->job[i].prelude = prelude.text;
    bool ok =
        rig_run(rig, b->job, b->njob, INFINITY, on_routine, b, b->diags) && !b->failed;
    for (int i = 0; i < b->njob; i++)
        buf_release(&b->source[i]);
    ok = ok && time_launch(b, rig, prelude.text);
    buf_release(&prelude);
    rig_close(rig);
    return ok;
}

static bool find_device(Bench *b, const char *device)
{
    DeviceInfo *all;
    int n = devices_list(b->psi->arena, b->place.worker, &all, b->diags);
    for (int i = 0; i < n; i++)
        if (strcmp(all[i].id, device) == 0) {
            b->device = all[i];
            return true;
        }
    return diag_world(b->diags, "C007",
                      "there is no device %s; `forewarp devices` lists those present",
                      device);
}

static bool open_session(Bench *b, const char *path)
{
    b->store = store_open(path, b->diags);
    if (!b->store)
        return false;
    StoreKey key = {.problem = "fuse: routines",
                    .fingerprint = b->device.fingerprint,
                    .device = b->device.name,
                    .version = FW_VERSION};
    b->session = store_session(b->store, &key, b->diags);
    return b->session && store_each(b->store, b->session, on_stored, b, b->diags);
}

static bool measure(Bench *b, const char *device, int *measured)
{
    b->row = NEW_ARRAY(b->scratch, Row *, ROUTINES_MAX);
    b->job = NEW_ARRAY(b->scratch, Job, ROUTINES_MAX);
    b->source = NEW_ARRAY(b->scratch, Buf, ROUTINES_MAX);
    list_routines(b);
    find_known(b);
    *measured = b->njob;
    const double *launch = map_get(&b->known, launch_key);
    if (launch)
        b->psi->launch_ns = isfinite(*launch) ? *launch : 0;
    return (launch && !b->njob) || time_all(b, device);
}

Psi *psi_open(const Script *script, const char *device, const char *store,
              const FusePlace *place, int *measured, Diags *diags)
{
    Arena *arena = arena_new();
    Psi *psi = NEW(arena, Psi);
    psi->arena = arena;
    Bench b = {.psi = psi,
               .script = script,
               .place = *place,
               .diags = diags,
               .scratch = arena_new()};
    b.singles = fuse_space(script, 1, b.scratch);
    map_init(&b.known, arena);
    bool ok =
        find_device(&b, device) && open_session(&b, store) && measure(&b, device, measured);
    store_close(b.store);
    arena_free(b.scratch);
    if (ok)
        return psi;
    psi_free(psi);
    return NULL;
}

void psi_free(Psi *psi)
{
    if (psi)
        arena_free(psi->arena);
}

// Prediction --------------------------------------------------------------------------

static bool same_routine(const Row *a, const Row *b)
{
    return a->kind == b->kind && a->function == b->function && a->impl == b->impl &&
           a->words == b->words && a->copy == b->copy;
}

static double distance(int a, int b)
{
    return fabs(log2((double)a / b));
}

// The time at a number of instances and of extra words: of the nearest instances, between
// the extra words on both sides.
static double look_up(const Psi *psi, const Row *like, int instances, int extra)
{
    const Row *low = NULL, *high = NULL;
    for (int i = 0; i < psi->rows.len; i++) {
        const Row *r = &psi->rows.at[i];
        if (!same_routine(r, like) || !isfinite(r->ns))
            continue;
        double d = distance(r->instances, instances);
        if (!low || d < distance(low->instances, instances))
            low = high = r;
        else if (r->instances == low->instances && r->extra > high->extra)
            high = r;
    }
    if (!low) // it could not be timed: what has it comes first, and a trial will tell
        return 0;
    if (high->extra == low->extra)
        return low->ns;
    double share =
        fmin(fmax((double)(extra - low->extra), 0) / (high->extra - low->extra), 1);
    return low->ns + share * (high->ns - low->ns);
}

typedef struct {
    const Psi *psi;
    const Script *script;
    const FusedKernel *kernel;
    double memory, compute;
} Sum;

static void add_copies(Sum *s)
{
    const FusedKernel *k = s->kernel;
    for (int i = 0; i < k->fusion->nelem; i++) {
        int e = k->fusion->elem[i], words = s->script->elem[e].words;
        bool direct = k->held[i] == HELD_SCALAR;
        CopyKind copy = direct ? COPY_WORDS : k->choice.copy;
        int extra = MAX(k->top - words, 0);
        Row load = {.kind = ROUTINE_LOAD, .words = words, .copy = copy};
        Row store = {.kind = ROUTINE_STORE,
                     .words = words,
                     .copy = copy == COPY_ASYNC ? COPY_FOURS : copy};
        if (fusion_loads(s->script, k->fusion, e))
            s->memory += look_up(s->psi, &load, k->choice.instances, extra);
        if (fusion_stores(s->script, k->fusion, e))
            s->memory += look_up(s->psi, &store, k->choice.instances, extra);
    }
}

static void add_routines(Sum *s, double barrier)
{
    const FusedKernel *k = s->kernel;
    for (int step = 0; step < k->fusion->ncall; step++) {
        const Elementary *f = s->script->call[k->fusion->order[step]].function;
        if (f->kind == FUNCTION_SUM)
            continue; // it keeps pace with the loads
        Row row = {.kind = ROUTINE_COMPUTE, .function = f, .impl = k->choice.impl[step]};
        int own = 0;
        for (int p = 0; p <= f->nparam; p++)
            own += f->words[p];
        double ns = look_up(s->psi, &row, k->choice.instances, MAX(k->top - own, 0));
        s->compute += fmax(ns - barrier, 0);
    }
}

double psi_predict(const Psi *psi, const Script *script, const FusedKernel *k,
                   int64_t instances)
{
    if (script->call[k->fusion->order[0]].is_uniform)
        return psi->launch_ns / (double)instances;
    Sum sum = {.psi = psi, .script = script, .kernel = k};
    Row row = {.kind = ROUTINE_BARRIER};
    double barrier = look_up(psi, &row, k->choice.instances, 0);
    add_copies(&sum);
    add_routines(&sum, barrier);
    int launches = 1; // of the kernel, and of one for each sum
    for (int step = 0; step < k->fusion->ncall; step++)
        launches += script->call[k->fusion->order[step]].function->kind == FUNCTION_SUM;
    return fmax(sum.memory, sum.compute) + barrier * k->barriers +
           launches * psi->launch_ns / (double)instances;
}
