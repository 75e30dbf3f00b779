// SPDX-License-Identifier: Apache-2.0
//
// Drops barriers that order nothing.
//
//   method  A barrier is needed if an access that may have happened since the barriers
//           before it conflicts with one that may happen until the barriers after it: same
//           buffer, at least one of them a store, by different work-items. The accesses on
//           either side are found by walking the kernel forward and backward, around each
//           loop twice so that one iteration meets the next. Barriers are tried in order,
//           each with those that are left, so of two in a row the first goes.
//   source  Lift's barrier elimination (paper 000, section 4.2; Steuwer et al., CGO 2017),
//           on the kernel IR instead of on chains of patterns
//
// Two accesses are of the same work-item if they have the same index (pointer) under the
// same loops over items, and only one item ever touches that element (access.c). Disjoint
// indices are not looked for.

#include "kir/passes.h"

#include <string.h>

typedef enum { EV_ACCESS, EV_BARRIER, EV_LOOP, EV_IF, EV_ELSE, EV_END } EventKind;

// The kernel as a list. LOOP and IF know their END, IF also its ELSE, and END its start.
typedef struct {
    EventKind kind;
    int access, end, middle;
    bool repeats; // LOOP: one work-item runs the body several times
    Stm *barrier; // NULL once it is dropped
} Event;

typedef struct {
    Arena *arena;
    const int64_t *local; // the shape of the work-group
    bool warps;           // whose dimension x is a warp
    VEC(Access) accesses;
    VEC(Event) events;
    VEC(const Stm *) loops;
    int words; // of a set of accesses
} Flow;

enum { WARP_ITEMS = 32 };

// Collecting --------------------------------------------------------------------------

static bool same_loops(const Stm *const *a, int na, const Stm *const *b, int nb)
{
    return na == nb && (na == 0 || !memcmp(a, b, sizeof *a * (size_t)na));
}

static int intern_access(Flow *f, const Access *access)
{
    for (int i = f->accesses.len - 1; i >= 0; i--) {
        const Access *a = &f->accesses.at[i];
        if (a->buffer == access->buffer && a->index == access->index &&
            a->width == access->width && a->write == access->write &&
            same_loops(a->loops, a->nloop, f->loops.at, f->loops.len))
            return i;
    }
    VEC_PUSH(f->arena, &f->accesses, *access);
    Access *last = &f->accesses.at[f->accesses.len - 1];
    last->nloop = f->loops.len;
    last->loops = COPY_ARRAY(f->arena, f->loops.at, f->loops.len);
    return f->accesses.len - 1;
}

static void add_access(Flow *f, const Buffer *buffer, const Arith *index, const Type *type,
                       bool write)
{
    if (buffer->space != MEM_LOCAL &&
        (buffer->space != MEM_GLOBAL || buffer->role == ROLE_INPUT))
        return;
    int width = type->kind == T_VECTOR ? type->width : 1;
    Access access = {.buffer = buffer, .index = index, .width = width, .write = write};
    VEC_PUSH(f->arena, &f->events,
             (Event){.kind = EV_ACCESS, .access = intern_access(f, &access)});
}

static const Type whole = {.kind = T_VECTOR, .width = INT32_MAX};

static void add_load(const KExpr *e, void *flow)
{
    Flow *f = flow;
    if (e->kind == K_LOAD)
        add_access(f, e->buffer, e->arith, e->type, false);
    if (e->kind == K_TILE) // any element of it
        add_access(f, e->buffer, e->arith, &whole, false);
}

static int add_event(Flow *f, EventKind kind, Stm *barrier)
{
    VEC_PUSH(f->arena, &f->events, (Event){.kind = kind, .barrier = barrier});
    return f->events.len - 1;
}

static void collect(Flow *f, const Block *block);

static void collect_for(Flow *f, const Stm *stm)
{
    int start = add_event(f, EV_LOOP, NULL);
    f->events.at[start].repeats = stm->loop == LOOP_SEQ || stm->form == FORM_LOOP;
    VEC_PUSH(f->arena, &f->loops, stm);
    collect(f, &stm->body);
    f->loops.len--;
    int end = add_event(f, EV_END, NULL);
    f->events.at[start].end = end;
    f->events.at[end].end = start;
}

static void collect_if(Flow *f, const Stm *stm)
{
    int start = add_event(f, EV_IF, NULL);
    collect(f, &stm->body);
    int middle = add_event(f, EV_ELSE, NULL);
    collect(f, &stm->other);
    int end = add_event(f, EV_END, NULL);
    f->events.at[start].middle = middle;
    f->events.at[start].end = end;
    f->events.at[end].end = start;
}

static void collect(Flow *f, const Block *block)
{
    VEC_EACH(Stm *, stm, block) {
        kexpr_each(stm->value, add_load, f);
        if (stm->kind == ST_STORE)
            add_access(f, stm->buffer, stm->index, stm->value->type, true);
        else if (stm->kind == ST_BARRIER)
            add_event(f, EV_BARRIER, stm);
        else if (stm->kind == ST_FOR)
            collect_for(f, stm);
        else if (stm->kind == ST_IF)
            collect_if(f, stm);
    }
}

// Walking: which accesses reach a barrier ---------------------------------------------

typedef uint64_t *Set;

static Set set_copy(Flow *f, const uint64_t *from)
{
    return COPY_ARRAY(f->arena, from, f->words);
}

static void set_join(const Flow *f, Set set, const uint64_t *other)
{
    for (int i = 0; i < f->words; i++)
        set[i] |= other[i];
}

// Runs from event `from` to `to` (exclusive), forward (step 1) or backward (step -1), on
// the set of accesses since the last barrier; what reaches event `target` is joined into
// found.
typedef struct {
    Flow *f;
    int step, target;
    Set found;
} FlowWalk;

static void walk(FlowWalk *w, int from, int to, Set set);

static void walk_loop(FlowWalk *w, int start, int end, Set set)
{
    int first = w->step > 0 ? start + 1 : end - 1, last = w->step > 0 ? end : start;
    Set before = set_copy(w->f, set);
    walk(w, first, last, set);
    if (w->f->events.at[start].repeats) {
        set_join(w->f, set, before);
        walk(w, first, last, set);
    }
    set_join(w->f, set, before); // no iteration at all
}

static void walk_if(FlowWalk *w, int start, int end, Set set)
{
    int middle = w->f->events.at[start].middle;
    Set other = set_copy(w->f, set);
    if (w->step > 0) {
        walk(w, start + 1, middle, set);
        walk(w, middle + 1, end, other);
    } else {
        walk(w, middle - 1, start, set);
        walk(w, end - 1, middle, other);
    }
    set_join(w->f, set, other);
}

static void walk(FlowWalk *w, int from, int to, Set set)
{
    for (int i = from; i != to; i += w->step) {
        const Event *e = &w->f->events.at[i];
        if (e->kind == EV_ACCESS) {
            set[e->access / 64] |= UINT64_C(1) << e->access % 64;
        } else if (e->kind == EV_BARRIER && e->barrier) {
            if (i == w->target)
                set_join(w->f, w->found, set);
            memset(set, 0, sizeof *set * (size_t)w->f->words);
        } else if (e->kind != EV_BARRIER) {
            int start = MIN(i, e->end), end = MAX(i, e->end);
            if (w->f->events.at[start].kind == EV_LOOP)
                walk_loop(w, start, end, set);
            else
                walk_if(w, start, end, set);
            i = w->step > 0 ? end : start;
        }
    }
}

static Set reaching(Flow *f, int barrier, int step)
{
    Set set = NEW_ARRAY(f->arena, uint64_t, f->words);
    FlowWalk w = {f, step, barrier, NEW_ARRAY(f->arena, uint64_t, f->words)};
    if (step > 0)
        walk(&w, 0, f->events.len, set);
    else
        walk(&w, f->events.len - 1, -1, set);
    return w.found;
}

// Conflicts ---------------------------------------------------------------------------

// The next loop over items from the i-th on, or NULL.
static const Stm *item_loop(const Access *a, int *i)
{
    while (*i < a->nloop && !loop_is_of_items(a->loops[*i]))
        (*i)++;
    return *i < a->nloop ? a->loops[(*i)++] : NULL;
}

static bool same_items(const Access *a, const Access *b)
{
    for (int i = 0, j = 0;;) {
        const Stm *x = item_loop(a, &i), *y = item_loop(b, &j);
        if (!x || !y)
            return x == y;
        if (x->iter != y->iter || x->extent != y->extent || x->loop != y->loop ||
            x->dim != y->dim || x->form != y->form || x->threads != y->threads)
            return false;
    }
}

static bool conflict(const Flow *f, const Access *a, const Access *b)
{
    if (a->buffer != b->buffer || (!a->write && !b->write))
        return false;
    return !(a->index == b->index && a->width == b->width && same_items(a, b) &&
             access_is_own(a, f->local));
}

// How far elements of neighbours along dimension y of the group lie apart; 0: not known.
static int64_t between_rows(const Access *a)
{
    for (int i = 0; a->index->kind == A_SUM && i < a->nloop; i++) {
        const Stm *loop = a->loops[i];
        if (loop->loop != LOOP_LCL || loop->dim != 1 || loop->form != FORM_ONCE)
            continue;
        for (int k = 0; k < a->index->n; k++)
            if (a->index->term[k].arg == loop->iter)
                return a->index->term[k].coef;
    }
    return 0;
}

// Are they by items of one warp, each of which has a row of the memory of the group, if
// there are several?
static bool within_warp(const Flow *f, const Access *a, const Access *b)
{
    int64_t count, row = between_rows(a);
    return f->local[2] == 1 &&
           (f->local[1] == 1 ||
            (row > 0 && row == between_rows(b) && a->width <= row && b->width <= row &&
             arith_is_const(a->buffer->count, &count) && count == row * f->local[1]));
}

static bool has(const uint64_t *set, int i)
{
    return set[i / 64] >> i % 64 & 1;
}

// True if the barrier orders something; then its fences say in which memory.
static bool needed(Flow *f, int event)
{
    Set before = reaching(f, event, 1), after = reaching(f, event, -1);
    bool local = false, global = false;
    const Access *access = f->accesses.at;
    for (int i = 0; i < f->accesses.len; i++) {
        for (int j = 0; has(before, i) && j < f->accesses.len; j++) {
            bool *fence = access[i].buffer->space == MEM_LOCAL ? &local : &global;
            if (!*fence && has(after, j) && conflict(f, &access[i], &access[j]))
                *fence = true;
        }
    }
    f->events.at[event].barrier->fence_local = local;
    f->events.at[event].barrier->fence_global = global;
    return local || global;
}

// Do only items of the same warp meet in memory, wherever in the kernel? One that others
// pass would not keep apart what comes before it and what comes after the next one.
static bool only_warps_meet(const Flow *f)
{
    const Access *access = f->accesses.at;
    for (int i = 0; i < f->accesses.len; i++)
        for (int j = i; j < f->accesses.len; j++)
            if (conflict(f, &access[i], &access[j]) &&
                !within_warp(f, &access[i], &access[j]))
                return false;
    return true;
}

static void sweep(Block *block)
{
    int kept = 0;
    VEC_EACH(Stm *, stm, block) {
        if (stm->kind == ST_BARRIER && !stm->fence_local && !stm->fence_global)
            continue;
        sweep(&stm->body);
        sweep(&stm->other);
        block->at[kept++] = stm;
    }
    block->len = kept;
}

void pass_barriers(Pass *pass, Kernel *kernel)
{
    if (!block_any(&kernel->body, stm_is_barrier, NULL))
        return;
    Flow f = {.arena = arena_new(),
              .local = kernel->local,
              .warps = kernel->local[0] == WARP_ITEMS && !kernel->any_group};
    collect(&f, &kernel->body);
    f.words = (f.accesses.len + 63) / 64;
    const bool warp = f.warps && only_warps_meet(&f);
    for (int i = 0; i < f.events.len; i++) {
        if (f.events.at[i].barrier)
            f.events.at[i].barrier->warp = warp;
        if (f.events.at[i].barrier && !needed(&f, i))
            f.events.at[i].barrier = NULL;
    }
    arena_free(f.arena);
    sweep(&kernel->body);
}
