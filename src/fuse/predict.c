// SPDX-License-Identifier: Apache-2.0
//
// Equation 3 of paper 004: the time of a kernel from those of its routines (psi). Where the
// paper adds them up, here what bounds a kernel is asked for: words moved, arithmetic,
// waits that too few instances hide, starts of blocks.

#include "fuse/psi.h"

#include <math.h>

int64_t psi_block_bytes(const FusedKernel *k, int extra)
{
    return ((int64_t)(k->top + extra) * k->choice.instances + k->common) * 4;
}

int psi_resident(int threads, int64_t bytes)
{
    int64_t by_bytes = UNIT_BYTES / (bytes + BLOCK_BYTES);
    return (int)MAX(MIN(MIN(by_bytes, UNIT_BLOCKS), UNIT_THREADS / threads), 1);
}

// Fitted on one H200 to 650 solutions of thirteen scripts (bench/fusion.py); times in ns.
// FLOWING, BURSTS: sharpness of the maximum of what bounds a kernel, where copies flow
// beside other work, and where they pass through registers, all threads at a time.
// TOGETHER: how far waits of copies add up. FOURS_TURN: of copies by 16 bytes, of which few
// threads have one. LOOP_WAIT: waits of blocks that all repeat the same steps.
// COMPUTE_RATE: what routines of several threads an instance take among others, by what
// they take alone. READ_SHARE: of a copied word, for one that is read. LOAD_NS: of a row,
// from memory to registers; AHEAD of it if it was begun before.
static const double FLOWING = 5, BURSTS = 2.2, TOGETHER = 0.54, FOURS_TURN = 1.23,
                    LOOP_WAIT = 1.38, COMPUTE_RATE = 1.93, UNROLLED_FLIGHT = 3,
                    SUM_WORD_NS = 4.5, SUM_PART_NS = 1.3, LOAD_NS = 800, AHEAD = 0.63,
                    TREE_NS = 320, READ_SHARE = 0.89, WORD_ALONE_NS = 50, LOOP_NS = 2;
enum { UNIT_REGISTERS = 65536, OTHER_REGISTERS = 8, REGISTERS_MOST = 255 };

static bool same_routine(const Row *a, const Row *b)
{
    return a->kind == b->kind && a->function == b->function && a->impl == b->impl &&
           a->words == b->words && a->copy == b->copy;
}

static double distance(int a, int b)
{
    return fabs(log2((double)a / b));
}

// What a routine takes an instance: `rate` where enough instances are on their way to hide
// what it waits for, `wait` for one at a time.
typedef struct {
    double rate, wait; // ns; of `flight` instances at once, about the larger of rate and
                       // wait / flight
} Part;

// The larger of several bounds, and somewhat more where two are close.
static double bounds(const double *bound, int n, double sharpness)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += pow(bound[i], sharpness);
    return pow(sum, 1 / sharpness);
}

// What of a time other bounds do not explain; 0: they do.
static double beyond(double ns, double other, double sharpness)
{
    double left = pow(ns, sharpness) - pow(other, sharpness);
    return left > 0 && other < 0.8 * ns ? pow(left, 1 / sharpness) : 0;
}

// Of a CPU, the time at the nearest number of instances.
static Part nearest(const Psi *psi, const Row *like, int instances)
{
    const Row *best = NULL;
    for (int i = 0; i < psi->rows.len; i++) {
        const Row *r = &psi->rows.at[i];
        if (same_routine(r, like) && isfinite(r->ns) &&
            (!best ||
             distance(r->instances, instances) < distance(best->instances, instances)))
            best = r;
    }
    // Where it could not be timed: what has it comes first, and a trial will tell.
    return (Part){best ? best->ns : 0, 0};
}

// y = at + slope x through weighted points, neither below 0.
typedef struct {
    double n, x, y, xx, xy;
} Line;

static void line_add(Line *line, double x, double y, double weight)
{
    line->n += weight;
    line->x += weight * x;
    line->y += weight * y;
    line->xx += weight * x * x;
    line->xy += weight * x * y;
}

static void line_fit(const Line *l, double *at, double *slope)
{
    *at = *slope = 0;
    if (l->n <= 0)
        return;
    double spread = l->n * l->xx - l->x * l->x;
    *slope = spread > 1e-9 * l->n * l->xx ? (l->n * l->xy - l->x * l->y) / spread : 0;
    *at = (l->y - *slope * l->x) / l->n;
    if (*slope < 0) {
        *slope = 0;
        *at = l->y / l->n;
    } else if (*at < 0) {
        *at = 0;
        *slope = l->xy / l->xx;
    }
}

// Of a compute routine or a barrier, by least squares of relative errors.
static Part fit_compute(const Psi *psi, const Row *like)
{
    Line line = {0};
    Part part;
    for (int i = 0; i < psi->rows.len; i++) {
        const Row *r = &psi->rows.at[i];
        if (same_routine(r, like) && isfinite(r->ns) && r->ns > 0)
            line_add(&line, 1.0 / r->flight, r->ns, 1 / (r->ns * r->ns));
    }
    line_fit(&line, &part.rate, &part.wait);
    return part;
}

static int copy_rounds(const Row *row, int threads)
{
    int at_once = threads * (row->copy == COPY_WORDS ? 1 : 4);
    return (row->words * row->instances + at_once - 1) / at_once;
}

static double start_of_block(const Psi *psi, int threads)
{
    return psi->block_ns + psi->warp_ns * ((threads + 31) / 32);
}

// Of a load or a store: words at the rate of a plain copy; the wait of a block grows with
// the rounds in which its threads copy.
static Part fit_copy(const Psi *psi, const Row *like, int threads)
{
    Line line = {0};
    for (int i = 0; i < psi->rows.len; i++) {
        const Row *r = &psi->rows.at[i];
        if (r->kind != like->kind || r->words != like->words || r->copy != like->copy ||
            !isfinite(r->ns))
            continue;
        // Certain to a tenth, and to a part of what else bounds it: few are on their way
        // where that counts least.
        double other =
            fmax(r->words * psi->word_ns, start_of_block(psi, r->threads) / r->instances);
        double ns =
            beyond(r->ns, other, r->copy == COPY_ASYNC ? FLOWING : BURSTS) * r->flight;
        double error = hypot(0.1 * ns, 0.3 * other * r->flight);
        if (ns > 0)
            line_add(&line, copy_rounds(r, r->threads), ns, 1 / (error * error));
    }
    double at, slope;
    line_fit(&line, &at, &slope);
    double share = like->kind == ROUTINE_LOAD ? READ_SHARE : 1;
    return (Part){share * like->words * psi->word_ns,
                  at + slope * copy_rounds(like, threads)};
}

// What a kernel's parts take together. Copies that pass through no register, or that end in
// one, wait for memory together; others one after another.
typedef struct {
    const Psi *psi;
    const Script *script;
    const FusedKernel *kernel;
    Part compute;
    double words;             // moved: their rate
    double together, longest; // waits of copies that overlap: their sum, and the longest
    double in_turn;           // of the others
} Sum;

static void add_copy(Sum *s, RoutineKind kind, CopyKind copy, int words, bool scalar)
{
    Row row = {.kind = kind,
               .words = words,
               .copy = copy,
               .lanes = 1,
               .instances = s->kernel->choice.instances};
    Part part = s->psi->device.is_cpu ? nearest(s->psi, &row, row.instances)
                                      : fit_copy(s->psi, &row, s->kernel->threads);
    s->words += part.rate;
    if (scalar || copy == COPY_ASYNC) {
        s->together += part.wait;
        s->longest = fmax(s->longest, part.wait);
    } else {
        s->in_turn += part.wait * (copy == COPY_FOURS ? FOURS_TURN : 1);
    }
}

static void add_copies(Sum *s)
{
    const FusedKernel *k = s->kernel;
    for (int i = 0; i < k->fusion->nelem; i++) {
        int e = k->fusion->elem[i], words = s->script->elem[e].words;
        bool scalar = k->held[i] == HELD_SCALAR;
        CopyKind copy = scalar ? COPY_WORDS : k->choice.copy;
        if (fusion_loads(s->script, k->fusion, e))
            add_copy(s, ROUTINE_LOAD, copy, words, scalar);
        if (fusion_stores(s->script, k->fusion, e))
            add_copy(s, ROUTINE_STORE, copy == COPY_ASYNC ? COPY_FOURS : copy, words,
                     scalar);
    }
}

// Which of what a call touches its threads have in registers.
static double share_held(const FusedKernel *k, const Call *call)
{
    const Elementary *f = call->function;
    double held = 0, all = 0;
    for (int p = 0; p <= f->nparam; p++) {
        int place = fusion_place(k->fusion, p < f->nparam ? call->in[p] : call->out);
        all += f->words[p];
        held += place >= 0 && k->held[place] != HELD_MEMORY ? f->words[p] : 0;
    }
    return held / all;
}

static void add_routines(Sum *s, Part barrier)
{
    const FusedKernel *k = s->kernel;
    for (int step = 0; step < k->fusion->ncall; step++) {
        const Call *call = &s->script->call[k->fusion->order[step]];
        const Elementary *f = call->function;
        if (f->kind == FUNCTION_SUM) {
            s->compute.wait += SUM_WORD_NS * f->words[0] / k->threads;
            continue;
        }
        Row row = {.kind = ROUTINE_COMPUTE, .function = f, .impl = k->choice.impl[step]};
        Part part = s->psi->device.is_cpu ? nearest(s->psi, &row, k->choice.instances)
                                          : fit_compute(s->psi, &row);
        double memory = s->psi->device.is_cpu ? 1 : 1 - share_held(k, call);
        s->compute.rate += fmax(part.rate - barrier.rate, 0) * memory;
        s->compute.wait += fmax(part.wait - barrier.wait, 0) * memory;
    }
}

static int count_sums(const Script *script, const Fusion *f)
{
    int n = 0;
    for (int step = 0; step < f->ncall; step++)
        n += script->call[f->order[step]].function->kind == FUNCTION_SUM;
    return n;
}

// Registers that a thread of strips takes, roughly.
static int strip_registers(const Script *script, const FusedKernel *k)
{
    const Fusion *f = k->fusion;
    int own = strip_own(fused_strips(script, k), strips_words(script, f));
    int arrays = count_sums(script, f);
    for (int i = 0; i < f->nelem; i++)
        if (script->elem[f->elem[i]].words > 1)
            arrays += 1 + (k->choice.early && fusion_loads(script, f, f->elem[i]));
    return MIN(own * arrays + OTHER_REGISTERS, REGISTERS_MOST);
}

// Of a CPU: work-items are loops, and each barrier ends one.
static double loops_of(const Psi *psi, int lanes, double loops)
{
    return LOOP_NS * lanes * loops / psi->device.compute_units;
}

// By strips everything is in registers. An instance waits for its loads, unless they were
// begun before, and for trees.
static double predict_strips(const Psi *psi, const Script *script, const FusedKernel *k,
                             int64_t instances)
{
    const Fusion *f = k->fusion;
    int registers = strip_registers(script, k);
    int resident =
        MIN(UNIT_REGISTERS / (registers * k->threads), UNIT_THREADS / k->threads);
    double n = (double)instances, units = psi->device.compute_units, sums = 0, trees = 0;
    double each = (double)fused_blocks(script, k, instances) / units;
    double parts = (double)fused_parts(script, k, instances);
    for (int step = 0; step < f->ncall; step++) {
        const Elementary *e = script->call[f->order[step]].function;
        bool sum = e->kind == FUNCTION_SUM;
        sums += sum ? (psi->launch_ns + SUM_PART_NS * parts) / n +
                          2 * e->words[0] * parts * psi->word_ns / n
                    : 0;
        trees += !sum && e->words[e->nparam] == 1 && e->impl[k->choice.impl[step]].strip;
    }
    if (psi->device.is_cpu)
        return sums + f->moved * psi->word_ns +
               loops_of(psi, fused_strips(script, k)->lanes, f->nelem + 8 * trees);
    double flight = k->choice.instances * fmin(MAX(resident, 1), fmax(each, 1 / units));
    double load = k->choice.early && k->choice.serial > 1 ? AHEAD * LOAD_NS : LOAD_NS;
    double uneven = each < 4 ? ceil(each) / each : 1;
    double bound[] = {f->moved * psi->word_ns * READ_SHARE * (uneven < 1.3 ? uneven : 1),
                      (load + TREE_NS * trees) / units / flight,
                      start_of_block(psi, k->threads) /
                          (k->choice.instances * fused_serial(k))};
    return bounds(bound, COUNTOF(bound), FLOWING) + sums;
}

static double predict_gpu(Sum *s, Part barrier, int64_t instances)
{
    const FusedKernel *k = s->kernel;
    const Psi *psi = s->psi;
    double flight = k->choice.instances * psi_resident(k->threads, psi_block_bytes(k, 0));
    if (k->top == 0 && fused_serial(k) > 1) // a loop that is unrolled
        flight *= fmin(fused_serial(k), UNROLLED_FLIGHT);
    flight = fmin(flight, fmax((double)instances / psi->device.compute_units, 1));
    double copies = s->longest + TOGETHER * (s->together - s->longest) + s->in_turn;
    if (k->top > 0 && fused_serial(k) > 1)
        copies *= LOOP_WAIT;
    double wait = copies + s->compute.wait + barrier.wait * k->barriers;
    double rate = s->compute.rate * (fused_lanes(s->script, k) > 1 ? COMPUTE_RATE : 1);
    double bound[] = {s->words, rate + barrier.rate * k->barriers, wait / flight,
                      start_of_block(psi, k->threads) /
                          (k->choice.instances * fused_serial(k))};
    return bounds(bound, COUNTOF(bound), s->in_turn > s->longest ? BURSTS : FLOWING);
}

double psi_predict(const Psi *psi, const Script *script, const FusedKernel *k,
                   int64_t instances)
{
    if (script->call[k->fusion->order[0]].is_uniform) {
        double own = (double)strips_words(script, k->fusion) / fused_lanes(script, k);
        return (psi->launch_ns + WORD_ALONE_NS * own) / (double)instances;
    }
    Sum sum = {.psi = psi, .script = script, .kernel = k};
    Row row = {.kind = ROUTINE_BARRIER, .words = psi->barrier_words};
    double start = psi->launch_ns / (double)instances;
    if (k->choice.copy == COPY_STRIPS)
        return start + predict_strips(psi, script, k, instances);
    start += start * count_sums(script, k->fusion);
    Part barrier = psi->device.is_cpu ? nearest(psi, &row, k->choice.instances)
                                      : fit_compute(psi, &row);
    add_copies(&sum);
    add_routines(&sum, barrier);
    if (psi->device.is_cpu)
        return fmax(sum.words, sum.compute.rate) + start +
               loops_of(psi, fused_lanes(script, k), k->barriers + 1);
    return predict_gpu(&sum, barrier, instances) + start;
}
