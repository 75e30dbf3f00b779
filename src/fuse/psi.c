// SPDX-License-Identifier: Apache-2.0
//
// The table psi of paper 004, section 4.4. Routines are timed on their own:
// a compute routine, repeated with a barrier after each, on words that are on chip; a load
// or a store of a list that is larger than the caches; a barrier; the start of a kernel.
// Loads and stores of all functions are the same copies here, so they are timed by words
// and kind. The cost of working out thread coordinates where the granularity changes (t_md)
// is in the compute routines, which each do it.
//
// Between the grid's points the nearest number of instances counts, and the words held
// besides are interpolated. Times are stored once a device, by the text of their kernel.

#include "fuse/psi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// LIMIT_S: PoCL compiles a kernel when it first runs, on a busy machine slowly.
enum {
    LIMIT_S = 120,
    REPEATS = 16,
    INSTANCES_A_UNIT = 16384,
    GRID_CPU = 2,
    GRID_GPU = 3,
    COPY_WORDS_AN_INSTANCE = 32, // of the list that a plain copy is timed with
    ROUTINES_MAX = 2048
};

// Instances of a block, the wanted first.
enum { SIZES = 6 };
static const int grid_gpu[SIZES] = {128, 32, 16, 8, 4, 1};
static const int grid_cpu[SIZES] = {128, 16, 8, 4, 2, 1};
// On a GPU a block has as much on chip as it needs, and nearly all it may: so that many and
// so that few instances are on their way.
enum { LEVELS = 2 };
static const int level_gpu[LEVELS] = {0, 46 * 1024}, level_cpu[LEVELS] = {0, 0};

// What to time ------------------------------------------------------------------------

typedef struct {
    Psi *psi;
    const Script *script;
    const FuseSpace *singles;
    DeviceInfo device;
    Workplace place;
    Store *store;
    int64_t session;
    Map known;     // key to a time
    bool recorded; // and to nothing else: the text of the kernels is not asked for
    Diags *diags;
    Arena *scratch;
    Row **row; // of the jobs
    Buf *source;
    Job *job;
    int njob;
    bool failed;
} Bench;

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

static bool make_row(const Bench *b, const Row *row, FusedKernel *kernel)
{
    Choice choice = {.instances = row->instances, .copy = row->copy};
    choice.impl[0] = (uint8_t)row->impl;
    if (!fused_make(b->script, fusion_of(b, row), &choice, INT64_MAX, b->device.max_group,
                    kernel))
        return false;
    if (row->lanes)
        kernel->threads = row->instances * row->lanes;
    return kernel->threads <= b->device.max_group;
}

static void print_row(Bench *b, const Row *row, const char *name, Buf *out, int *threads)
{
    FusedKernel kernel;
    *threads = 0;
    if (!make_row(b, row, &kernel) ||
        psi_block_bytes(&kernel, row->extra) > fused_local_bytes(&b->device))
        return;
    *threads = kernel.threads;
    fused_print_routine(b->script, &kernel, row->kind, row->words, row->extra,
                        b->device.target, name, out);
}

// The first few numbers of instances that fit, each at the levels of words besides.
static void add_rows(Bench *b, const Row *like)
{
    bool cpu = b->device.is_cpu;
    const int *instances = cpu ? grid_cpu : grid_gpu, *level = cpu ? level_cpu : level_gpu;
    int found = 0;
    for (int i = 0; i < SIZES && found < (cpu ? GRID_CPU : GRID_GPU); i++) {
        Row row = *like;
        FusedKernel kernel;
        row.instances = instances[i];
        row.ns = INFINITY;
        if (!make_row(b, &row, &kernel) ||
            psi_block_bytes(&kernel, 0) > fused_local_bytes(&b->device))
            continue;
        found++;
        for (int k = 0; k < LEVELS && (k == 0 || !cpu); k++) {
            int64_t room = (level[k] - psi_block_bytes(&kernel, 0)) / 4 / row.instances;
            if (k > 0 && room <= 0)
                continue;
            row.extra = (int)MAX(room, 0);
            row.flight = row.instances *
                         psi_resident(kernel.threads, psi_block_bytes(&kernel, row.extra));
            VEC_PUSH(b->psi->arena, &b->psi->rows, row);
        }
    }
}

static bool has_row(const Psi *psi, const Row *like)
{
    for (int i = 0; i < psi->rows.len; i++) {
        const Row *r = &psi->rows.at[i];
        if (r->kind == like->kind && r->function == like->function &&
            r->impl == like->impl && r->words == like->words && r->copy == like->copy &&
            r->lanes == like->lanes)
            return true;
    }
    return false;
}

static void want(Bench *b, Row row)
{
    if (!has_row(b->psi, &row))
        add_rows(b, &row);
}

// A copy by one thread an instance, and by one a word, as far as kernels may have so many.
static void want_copies(Bench *b, RoutineKind kind, int words, int lanes)
{
    int copies = strcmp(b->device.target, "cuda") == 0 ? COPY_STRIPS : COPY_ASYNC;
    for (int c = 0; c < copies; c++) {
        Row row = {.kind = kind, .words = words, .copy = c, .lanes = 1};
        if (kind == ROUTINE_STORE && c == COPY_ASYNC)
            continue;
        want(b, row);
        row.lanes = MIN(lanes, words);
        if (row.lanes > 1 && !b->device.is_cpu)
            want(b, row);
    }
}

static int most_lanes(const Script *s)
{
    int lanes = 1;
    for (int v = 0; v < s->ncall; v++)
        for (int i = 0; i < s->call[v].function->nimpl; i++)
            if (!s->call[v].function->impl[i].strip)
                lanes = MAX(lanes, s->call[v].function->impl[i].lanes);
    return lanes;
}

static void list_routines(Bench *b)
{
    const Script *s = b->script;
    int lanes = most_lanes(s);
    for (int v = 0; v < s->ncall; v++) {
        const Call *call = &s->call[v];
        const Elementary *f = call->function;
        bool sum = f->kind == FUNCTION_SUM;
        if (call->is_uniform)
            continue;
        Row barrier = {.kind = ROUTINE_BARRIER};
        barrier.words = fusion_of(b, &barrier)->top; // that are on chip
        want(b, barrier);
        b->psi->barrier_words = barrier.words;
        for (int i = 0; i < f->nimpl && !sum; i++)
            if (!f->impl[i].strip)
                want(b, (Row){.kind = ROUTINE_COMPUTE, .function = f, .impl = i});
        for (int p = 0; p < f->nparam + !sum; p++) {
            if (p < f->nparam && s->elem[call->in[p]].is_uniform)
                continue;
            want_copies(b, ROUTINE_LOAD, f->words[p], lanes);
            want_copies(b, ROUTINE_STORE, f->words[p], lanes);
        }
    }
}

// LIST_WORDS: of a buffer, 512 MB: ten times what a GPU caches.
enum { LIST_WORDS = 1 << 27 };

static int64_t list_length(const Bench *b, int words)
{
    int64_t length = (int64_t)b->device.compute_units * INSTANCES_A_UNIT;
    return MAX(MIN(length, LIST_WORDS / MAX(words, 1)), 1);
}

// Of a compute routine the elements of one instance take as many words at most as on chip.
static int row_words(const Row *row)
{
    int words = row->kind == ROUTINE_BARRIER ? 1 : MAX(row->words, 1);
    for (int p = 0; row->function && p <= row->function->nparam; p++)
        words = MAX(words, row->function->words[p]);
    return words;
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
    bytes[0] = bytes[1] = length * row_words(row) * 4 + MAX(b->device.local_bytes, 4096);
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
            b->psi->arena, "%s %s/%d %d/%d %s x%d +%d%s%s", routine_name[row->kind],
            row->function ? row->function->name : "", row->impl, row->words, row->lanes,
            copy_name[row->copy], row->instances, row->extra, b->recorded ? "" : " #",
            b->recorded ? "" : hash);
        const double *ns = map_get(&b->known, row->key);
        if (ns)
            row->ns = *ns;
        else if (!b->recorded)
            add_job(b, row, threads, list_length(b, row_words(row)), repeats_of(row));
    }
    buf_release(&text);
}

// Timing ------------------------------------------------------------------------------

static double on_routine(void *user, int job, Trial *trial)
{
    Bench *b = user;
    Row *row = b->row[job];
    double per = (double)list_length(b, row_words(row)) * repeats_of(row);
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

// What is known of a device besides its routines.
typedef enum { LAUNCH, COPIED_WORD, BLOCK_OF_ONE, BLOCK_OF_EIGHT, GENERALS } General;
static const char *const general_key[GENERALS] = {"start of a kernel", "a copied word",
                                                  "a block of 32 threads",
                                                  "a block of 256 threads"};

enum { BLOCKS_A_UNIT = 4096 };

static bool time_general(Bench *b, Rig *rig, General what, double *ns)
{
    int64_t fours = list_length(b, COPY_WORDS_AN_INSTANCE) * COPY_WORDS_AN_INSTANCE / 4;
    int64_t blocks = (int64_t)b->device.compute_units * BLOCKS_A_UNIT;
    int threads = what == BLOCK_OF_EIGHT ? 256 : 32;
    double per = what == COPIED_WORD ? 8.0 * (double)fours
                 : what == LAUNCH    ? 1
                                     : (double)blocks;
    Trial trial = {0};
    bool ok = what == COPIED_WORD ? fused_time_copy(rig, fours, 10, &trial, b->diags)
                                  : fused_time_empty(rig, what == LAUNCH ? 1 : blocks,
                                                     threads, &trial, b->diags);
    *ns = trial.status == TRIAL_OK ? trial.time_ns / per : 0;
    StoreTrial stored = {.point = general_key[what],
                         .status = trial.status,
                         .time_ns = *ns,
                         .log = trial.log};
    ok = ok && store_put(b->store, b->session, &stored, b->diags);
    trial_release(&trial);
    return ok;
}

static void use_generals(Psi *psi, const double *ns)
{
    psi->launch_ns = ns[LAUNCH];
    psi->word_ns = ns[COPIED_WORD];
    psi->warp_ns = fmax(ns[BLOCK_OF_EIGHT] - ns[BLOCK_OF_ONE], 0) / 7;
    psi->block_ns = fmax(ns[BLOCK_OF_ONE] - psi->warp_ns, 0);
}

static bool time_all(Bench *b)
{
    static const float nothing[1];
    RigBuffer buffer = {.name = "nothing", .scalar = S_FLOAT, .count = 1, .init = nothing};
    RigConfig config = {.device = b->device.id,
                        .worker = b->place.worker,
                        .folder = b->place.folder,
                        .sandbox = b->place.sandbox,
                        .stop = b->place.stop,
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
    if (ok && stop_due(b->place.stop)) // those that were measured are stored
        ok = diag_world(b->diags, "F038", "the times of routines are not all known: %s",
                        stop_text(b->place.stop));
    double ns[GENERALS];
    for (General what = 0; what < GENERALS; what++)
        ok = ok && time_general(b, rig, what, &ns[what]);
    if (ok)
        use_generals(b->psi, ns);
    buf_release(&prelude);
    rig_close(rig);
    return ok;
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

// True if all are known.
static bool find_generals(Bench *b)
{
    double ns[GENERALS];
    bool all = true;
    for (int i = 0; i < GENERALS; i++) {
        const double *stored = map_get(&b->known, general_key[i]);
        all = all && stored;
        ns[i] = stored && isfinite(*stored) ? *stored : 0;
    }
    use_generals(b->psi, ns);
    return all;
}

static bool measure(Bench *b, int *measured)
{
    b->row = NEW_ARRAY(b->scratch, Row *, ROUTINES_MAX);
    b->job = NEW_ARRAY(b->scratch, Job, ROUTINES_MAX);
    b->source = NEW_ARRAY(b->scratch, Buf, ROUTINES_MAX);
    list_routines(b);
    find_known(b);
    *measured = b->njob;
    return (find_generals(b) && !b->njob) || time_all(b);
}

Psi *psi_open(const Script *script, const DeviceInfo *device, const char *store,
              const Workplace *place, int *measured, Diags *diags)
{
    Arena *arena = arena_new();
    Psi *psi = NEW(arena, Psi);
    *psi = (Psi){.arena = arena, .device = *device};
    Bench b = {.psi = psi,
               .script = script,
               .device = *device,
               .place = *place,
               .diags = diags,
               .scratch = arena_new()};
    b.singles = fuse_space(script, 1, b.scratch);
    map_init(&b.known, arena);
    bool ok = open_session(&b, store) && measure(&b, measured);
    store_close(b.store);
    arena_free(b.scratch);
    if (ok)
        return psi;
    psi_free(psi);
    return NULL;
}

Psi *psi_recorded(const Script *script, const DeviceInfo *device, const Map *times)
{
    Arena *arena = arena_new();
    Psi *psi = NEW(arena, Psi);
    *psi = (Psi){.arena = arena, .device = *device};
    Bench b = {.psi = psi,
               .script = script,
               .device = *device,
               .known = *times,
               .recorded = true,
               .scratch = arena_new()};
    b.singles = fuse_space(script, 1, b.scratch);
    list_routines(&b);
    find_known(&b);
    find_generals(&b);
    arena_free(b.scratch);
    return psi;
}

void psi_free(Psi *psi)
{
    if (psi)
        arena_free(psi->arena);
}
