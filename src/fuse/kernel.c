// SPDX-License-Identifier: Apache-2.0
//
// A fusion with its choices made: which elements stay with one thread, where the others lie
// on chip (paper 004, section 4.3.2, for elements that are not all in shared memory).
//
// An element may stay with a thread if every routine that touches it does so by the same
// threads, each of which has a run of neighbouring words, and the indices are known when
// the kernel is compiled. One that is loaded or stored may too if that makes its copy a
// word a thread, in order.

#include "fuse/kernel.h"

#include <string.h>

const char *const copy_name[COPIES] = {"words", "fours", "async", "strips"};

static const Impl *impl_at(const Script *script, const FusedKernel *k, int step)
{
    return &script->call[k->fusion->order[step]].function->impl[k->choice.impl[step]];
}

// Row l is words [l * own, (l + 1) * own).
static bool is_own(const WordMap *map)
{
    int own = map->words / map->lanes;
    if (own * map->lanes != map->words)
        return false;
    for (int l = 0; l < map->lanes; l++)
        for (int w = 0; w < map->words; w++)
            if (map_has(map, l, w) != (w / own == l))
                return false;
    return true;
}

// The parameter of a call that is the element; nparam for its result, -1 for none.
static int parameter(const Call *call, int elem, int from)
{
    for (int p = from; p < call->function->nparam; p++)
        if (call->in[p] == elem)
            return p;
    return from <= call->function->nparam && call->out == elem ? call->function->nparam
                                                               : -1;
}

// Threads an instance that share the element with each its own words; 0: none do.
static int owners(const Script *script, const FusedKernel *k, int elem)
{
    int lanes = 0;
    for (int step = 0; step < k->fusion->ncall; step++) {
        const Call *call = &script->call[k->fusion->order[step]];
        const Impl *impl = impl_at(script, k, step);
        for (int p = parameter(call, elem, 0); p >= 0; p = parameter(call, elem, p + 1)) {
            if (!impl->is_static || !is_own(&impl->map[p]) ||
                (lanes && lanes != impl->lanes))
                return 0;
            lanes = impl->lanes;
        }
    }
    return lanes;
}

static void choose_held(const Script *script, FusedKernel *k)
{
    const Fusion *f = k->fusion;
    for (int i = 0; i < f->nelem; i++) {
        int e = f->elem[i], words = script->elem[e].words;
        int lanes = k->choice.registers ? owners(script, k, e) : 0;
        bool moves = fusion_loads(script, f, e) || fusion_stores(script, f, e);
        k->held[i] = HELD_MEMORY;
        k->lanes[i] = lanes;
        if (lanes && words == lanes)
            k->held[i] = HELD_SCALAR;
        else if (lanes && !moves)
            k->held[i] = HELD_ARRAY;
    }
}

static void find_live(const Script *script, const FusedKernel *k, Live *live)
{
    const Fusion *f = k->fusion;
    for (int i = 0; i < f->nelem; i++) {
        bool chip = k->held[i] == HELD_MEMORY;
        live[i] = chip ? fusion_live(script, f, i) : (Live){.last = -1};
        if (k->choice.early && live[i].last >= 0 && fusion_loads(script, f, f->elem[i]))
            live[i].first = 0;
    }
}

int fused_lanes(const Script *script, const FusedKernel *k)
{
    int lanes = 1;
    for (int step = 0; step < k->fusion->ncall; step++)
        lanes = MAX(lanes, impl_at(script, k, step)->lanes);
    return lanes;
}

// Elements of one value that the fusion's calls use.
static bool is_shared(const Script *script, const Fusion *f, int elem)
{
    const Elem *e = &script->elem[elem];
    return e->is_uniform && (e->users & f->set) && fusion_place(f, elem) < 0;
}

static bool is_summed(const Script *script, const Fusion *f, int elem)
{
    const Call *sum = sum_of(script, elem);
    return sum && (f->set >> (sum - script->call) & 1);
}

bool fused_copies(const Script *script, const Fusion *f, int elem)
{
    return is_shared(script, f, elem) && script->elem[elem].words > 1;
}

// Copies of what is the same for all, and the threads' parts of sums of scalars.
static int common_words(const Script *script, const FusedKernel *k)
{
    int words = 0;
    for (int e = 0; e < script->nelem; e++) {
        if (fused_copies(script, k->fusion, e))
            words += script->elem[e].words;
        if (is_summed(script, k->fusion, e) && script->elem[e].words == 1)
            words += k->threads;
    }
    return words;
}

static bool of_scalars(const Call *call)
{
    for (int p = 0; p <= call->function->nparam; p++)
        if (call->function->words[p] != 1)
            return false;
    return true;
}

const Impl *fused_strips(const Script *script, const FusedKernel *k)
{
    for (int step = 0; step < k->fusion->ncall; step++)
        if (impl_at(script, k, step)->strip)
            return impl_at(script, k, step);
    return NULL;
}

int strips_words(const Script *script, const Fusion *f)
{
    int words = 1;
    for (int step = 0; step < f->ncall; step++) {
        const Elementary *e = script->call[f->order[step]].function;
        for (int p = 0; p <= e->nparam; p++)
            words = MAX(words, e->words[p]);
    }
    return words;
}

// By strips arrays are equally long, and cut in the same way; what has but scalars is done
// by every thread of the instance, and their results are the same.
static bool make_strips(const Script *script, FusedKernel *k)
{
    const Fusion *f = k->fusion;
    const Impl *impl = fused_strips(script, k);
    int words = strips_words(script, f);
    for (int step = 0; step < f->ncall && impl; step++) {
        const Call *call = &script->call[f->order[step]];
        const Impl *own = impl_at(script, k, step);
        for (int p = 0; p <= call->function->nparam; p++)
            if (call->function->words[p] > 1 && words != call->function->words[p])
                return false;
        if (!of_scalars(call) && (own->strip != impl->strip || own->lanes != impl->lanes))
            return false;
    }
    if (!impl || words == 1)
        return false;
    for (int i = 0; i < f->nelem; i++) {
        k->held[i] = script->elem[f->elem[i]].words == 1 ? HELD_SCALAR : HELD_ARRAY;
        k->lanes[i] = impl->lanes;
    }
    k->threads = k->choice.instances * impl->lanes;
    return true;
}

bool fused_make(const Script *script, const Fusion *fusion, const Choice *choice,
                int64_t local_bytes, int64_t group_max, FusedKernel *k)
{
    Live live[PLACES_MAX];
    int nodes;
    *k = (FusedKernel){.fusion = fusion, .choice = *choice};
    if (choice->copy == COPY_STRIPS)
        return make_strips(script, k) && k->threads <= group_max;
    if (fused_strips(script, k))
        return false;
    choose_held(script, k);
    find_live(script, k, live);
    k->top = fuse_allocate(live, fusion->nelem, k->offset, &nodes);
    k->threads = choice->instances * fused_lanes(script, k);
    k->common = common_words(script, k);
    bool whole = choice->copy == COPY_WORDS || choice->instances % 4 == 0;
    return whole && k->threads <= group_max &&
           ((int64_t)k->top * choice->instances + k->common) * (int64_t)sizeof(float) <=
               local_bytes;
}

int fused_arguments(const Script *script, const Fusion *f, int *elem)
{
    int n = 0;
    for (int kind = 0; kind < 4; kind++)
        for (int e = 0; e < script->nelem; e++) {
            bool mine = fusion_place(f, e) >= 0;
            if (kind == 0   ? mine && fusion_loads(script, f, e)
                : kind == 1 ? is_shared(script, f, e)
                : kind == 2 ? mine && fusion_stores(script, f, e)
                            : is_summed(script, f, e))
                elem[n++] = e;
        }
    return n;
}

int fused_serial(const FusedKernel *k)
{
    return MAX(k->choice.serial, 1);
}

int64_t fused_count(const Script *script, const Fusion *f, int64_t instances)
{
    return call_count(&script->call[f->order[0]], instances);
}

int64_t fused_blocks(const Script *script, const FusedKernel *k, int64_t instances)
{
    int64_t block = (int64_t)k->choice.instances * fused_serial(k);
    return (fused_count(script, k->fusion, instances) + block - 1) / block;
}

int64_t fused_parts(const Script *script, const FusedKernel *k, int64_t instances)
{
    int groups = k->choice.copy == COPY_STRIPS ? k->choice.instances : 1;
    return fused_blocks(script, k, instances) * groups;
}

int64_t fused_sum_size(int words)
{
    return words == 1 ? SUM_THREADS
                      : ((int64_t)words + SUM_WORDS - 1) / SUM_WORDS * SUM_THREADS;
}

int64_t fused_local_bytes(const DeviceInfo *device)
{
    bool keeps = strcmp(device->target, "opencl") == 0 && !device->is_cpu;
    // CUDA's text declares what a block has, which is at most so much.
    int64_t most = strcmp(device->target, "cuda") == 0 ? ON_CHIP_BYTES : INT64_MAX;
    return MIN(device->local_bytes, most) - (keeps ? 1024 : 0);
}

static bool call_fits(const Script *script, const Fusion *single, int64_t local_bytes,
                      int64_t group_max)
{
    FusedKernel kernel;
    Choice choice = {.instances = 1};
    int nimpl = script->call[single->order[0]].function->nimpl;
    for (int i = 0; i < nimpl; i++)
        for (int way = 0; way < 3; way++) {
            choice.impl[0] = (uint8_t)i;
            choice.registers = way == 1;
            choice.copy = way == 2 ? COPY_STRIPS : COPY_WORDS;
            if (fused_make(script, single, &choice, local_bytes, group_max, &kernel))
                return true;
        }
    return false;
}

bool fused_fits(const FuseSpace *space, int64_t local_bytes, int64_t group_max,
                Diags *diags)
{
    const Script *script = space->graph.script;
    bool ok = true;
    for (int i = 0; i < space->fusion.len; i++) {
        const Fusion *f = &space->fusion.at[i];
        const Elem *most = &script->elem[f->elem[0]];
        if (f->ncall > 1 || call_fits(script, f, local_bytes, group_max))
            continue;
        for (int k = 1; k < f->nelem; k++)
            if (script->elem[f->elem[k]].words > most->words)
                most = &script->elem[f->elem[k]];
        ok = diag_error(diags, most->span, "F017",
                        "`%s` has %d words, and %s needs %d at once: %lld bytes, where a "
                        "block has %lld on chip; divide the element",
                        most->name, most->words, script->call[f->order[0]].function->name,
                        f->top, 4LL * f->top, (long long)local_bytes);
    }
    return ok;
}
