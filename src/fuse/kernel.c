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

const char *const copy_name[COPIES] = {"words", "fours", "async"};

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
        const Elem *e = &script->elem[f->elem[i]];
        live[i] = (Live){.first = f->ncall, .last = -1, .words = e->words};
        for (int step = 0; step < f->ncall && k->held[i] == HELD_MEMORY; step++)
            if (parameter(&script->call[f->order[step]], f->elem[i], 0) >= 0) {
                live[i].first = MIN(live[i].first, step);
                live[i].last = step;
            }
        if (k->choice.early && live[i].last >= 0 && fusion_loads(script, f, f->elem[i]))
            live[i].first = 0;
    }
}

int kernel_lanes(const Script *script, const FusedKernel *k)
{
    int lanes = 1;
    for (int step = 0; step < k->fusion->ncall; step++)
        lanes = MAX(lanes, impl_at(script, k, step)->lanes);
    return lanes;
}

bool kernel_make(const Script *script, const Fusion *fusion, const Choice *choice,
                 int64_t local_bytes, int64_t group_max, FusedKernel *k)
{
    Live live[PLACES_MAX];
    int nodes;
    *k = (FusedKernel){.fusion = fusion, .choice = *choice};
    choose_held(script, k);
    find_live(script, k, live);
    k->top = fuse_allocate(live, fusion->nelem, k->offset, &nodes);
    k->threads = choice->instances * kernel_lanes(script, k);
    bool whole = choice->copy == COPY_WORDS || choice->instances % 4 == 0;
    return whole && k->threads <= group_max &&
           (int64_t)k->top * choice->instances * (int64_t)sizeof(float) <= local_bytes;
}

double kernel_flops(const Script *script, const Fusion *fusion)
{
    double flops = 0;
    for (Set s = fusion->set; s; s &= s - 1)
        flops += script->call[__builtin_ctzll(s)].function->flops;
    return flops;
}

int kernel_arguments(const Script *script, const Fusion *f, int *elem)
{
    int n = 0;
    for (int store = 0; store < 2; store++)
        for (int e = 0; e < script->nelem; e++)
            if (fusion_place(f, e) >= 0 &&
                (store ? fusion_stores(script, f, e) : fusion_loads(script, f, e)))
                elem[n++] = e;
    return n;
}
