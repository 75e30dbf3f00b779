// SPDX-License-Identifier: Apache-2.0
//
// The lines of a group are put into sets, a buffer each, warp by warp.
//
//   method  accesses with a common variable part are merged into runs of scalars; a
//           sequential loop that moves by less than two lines lengthens the runs, another
//           one is walked through, 32 iterations at most; where each iteration moves all
//           lanes by as much, they are evaluated for the first one only

#include "cost/footprint.h"

#include <stdlib.h>
#include <string.h>

enum { LOOPS_MAX = 4, ITERATIONS_MAX = 32, VISITS_MAX = 256 };

typedef struct {
    int64_t first, last; // inclusive
} Lines;

// Lines of a buffer; those of the first `settled` spans are apart from each other and in
// order.
typedef struct {
    int buffer, settled;
    VEC(Lines) spans;
    int64_t len; // lines
} LineSet;

typedef struct {
    int64_t lo, hi; // scalars, inclusive
} ScalarRun;

typedef struct {
    Scope *scope;
    const FootprintPart *part;
    Arena *arena;
    LineSet *set;
    int64_t line; // scalars
    int shift;    // that many bits of a position lie within a line; -1: no power of 2
    ScalarRun *run;
    int nrun;
    BoundVar *loop[LOOPS_MAX];
    int64_t turns[LOOPS_MAX], step[LOOPS_MAX];
    int nloop, nturned; // the first of them, which do not move by steps
} FootprintVisit;

void footprint_init(Footprint *f, Arena *arena)
{
    *f = (Footprint){.arena = arena};
    table_init(&f->table, arena);
}

static int64_t constant_of(const Arith *index)
{
    return index->kind == A_SUM || index->kind == A_CONST ? index->value : 0;
}

// `x` is the sum of one term that `x + 1` is.
static int terms_of(const Arith *index, const ArithTerm **term, ArithTerm *own)
{
    *term = index->term;
    if (index->kind == A_SUM || index->kind == A_CONST)
        return index->n;
    *own = (ArithTerm){1, index};
    *term = own;
    return 1;
}

static bool differ_by_constant(const Arith *a, const Arith *b)
{
    const ArithTerm *s, *t;
    ArithTerm own[2];
    int n = terms_of(a, &s, &own[0]);
    if (n != terms_of(b, &t, &own[1]))
        return false;
    for (int i = 0; i < n; i++)
        if (s[i].arg != t[i].arg || s[i].coef != t[i].coef)
            return false;
    return true;
}

static uintptr_t hash_terms(const Arith *index)
{
    const ArithTerm *term;
    ArithTerm own;
    uint64_t hash = 0;
    for (int i = 0, n = terms_of(index, &term, &own); i < n; i++)
        hash = hash * 31 + term[i].arg->id * 7 + (uint64_t)term[i].coef;
    return (uintptr_t)hash;
}

static FootprintPart *part_of(Footprint *f, const CountedAccess *access)
{
    uintptr_t hash = hash_terms(access->index);
    for (;; hash++) {
        Key key = {(const void *)hash, access->buffer, NULL};
        int entry = table_find(&f->table, key);
        if (entry < 0) {
            FootprintPart part = {.buffer = access->buffer, .base = access->index};
            table_push(&f->table, key, f->parts.len);
            VEC_PUSH(f->arena, &f->parts, part);
            return &f->parts.at[f->parts.len - 1];
        }
        FootprintPart *part = &f->parts.at[f->table.entry.at[entry].value];
        if (differ_by_constant(part->base, access->index))
            return part;
    }
}

void footprint_add(Footprint *f, const CountedAccess *access)
{
    FootprintPart *part = part_of(f, access);
    part->width = MAX(part->width, access->width);
    int64_t constant = constant_of(access->index) - constant_of(part->base);
    VEC_PUSH(f->arena, &part->constant, constant);
}

// The set -----------------------------------------------------------------------------

static int compare_spans(const void *a, const void *b)
{
    const Lines *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static void set_settle(LineSet *set)
{
    int n = 0;
    Lines *span = set->spans.at;
    bool sorted = true;
    for (int i = 1; sorted && i < set->spans.len; i++)
        sorted = span[i - 1].first <= span[i].first;
    if (!sorted)
        qsort(span, (size_t)set->spans.len, sizeof *span, compare_spans);
    set->len = 0;
    for (int i = 0; i < set->spans.len; i++) {
        if (n && span[i].first <= span[n - 1].last + 1)
            span[n - 1].last = MAX(span[n - 1].last, span[i].last);
        else
            span[n++] = span[i];
    }
    for (int i = 0; i < n; i++)
        set->len += span[i].last - span[i].first + 1;
    set->settled = set->spans.len = n;
}

static void set_add(Arena *arena, LineSet *set, int64_t first, int64_t last)
{
    enum { SPANS_LEAST = 512 };
    Lines *before = set->spans.len ? &set->spans.at[set->spans.len - 1] : NULL;
    if (before && first >= before->first && first <= before->last + 1) {
        before->last = MAX(before->last, last);
        return;
    }
    if (set->spans.len > 2 * set->settled + SPANS_LEAST)
        set_settle(set);
    VEC_PUSH(arena, &set->spans, ((Lines){first, last}));
}

// One part ----------------------------------------------------------------------------

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int merge_runs(const FootprintPart *part, ScalarRun *run, int64_t line)
{
    int n = 0;
    qsort(part->constant.at, (size_t)part->constant.len, sizeof(int64_t), compare);
    for (int i = 0; i < part->constant.len; i++) {
        int64_t lo = part->constant.at[i], hi = lo + part->width - 1;
        if (n && lo <= run[n - 1].hi + line)
            run[n - 1].hi = MAX(run[n - 1].hi, hi);
        else
            run[n++] = (ScalarRun){lo, hi};
    }
    return n;
}

static void find_loops(FootprintVisit *v, const Arith *a)
{
    if (a->kind == A_VAR) {
        BoundVar *b = scope_find(v->scope, a);
        if (b && b->kind == BOUND_INT)
            find_loops(v, b->def);
        if (!b || (b->kind != BOUND_LOOP && (b->kind != BOUND_THREAD || b->turns < 2)))
            return;
        if (v->nloop < LOOPS_MAX && !list_has(v->loop, v->nloop, b))
            v->loop[v->nloop++] = b;
    }
    for (int i = 0; i < a->n; i++)
        find_loops(v, a->term[i].arg);
}

static int64_t first_lane(FootprintVisit *v)
{
    LaneValues lanes;
    return scope_lanes(v->scope, v->part->base, &lanes) ? lanes.v[0] : 0;
}

// By how much each iteration of a sequential loop moves a; false if not by as much each.
static bool find_step(const FootprintVisit *v, const Arith *a, const BoundVar *loop,
                      int64_t *step)
{
    *step = 0;
    if (a->kind == A_VAR) {
        const BoundVar *b = scope_find(v->scope, a);
        if (b && b->kind == BOUND_INT)
            return find_step(v, b->def, loop, step);
        *step = b == loop;
        return !*step || loop->kind == BOUND_LOOP;
    }
    for (int i = 0; i < a->n; i++) {
        int64_t part;
        if (!find_step(v, a->term[i].arg, loop, &part) || (part && a->kind != A_SUM))
            return false;
        *step += part * a->term[i].coef;
    }
    return true;
}

// Those that do not move by steps come first.
static void sort_loops(FootprintVisit *v)
{
    for (int i = 0; i < v->nloop; i++) {
        int64_t step, turns = v->turns[i];
        BoundVar *loop = v->loop[i];
        if (find_step(v, v->part->base, loop, &step)) {
            v->step[i] = step;
            continue;
        }
        int to = v->nturned++;
        v->loop[i] = v->loop[to];
        v->turns[i] = v->turns[to];
        v->step[i] = v->step[to];
        v->loop[to] = loop;
        v->turns[to] = turns;
    }
}

static int64_t turns_of(const BoundVar *loop)
{
    return loop->kind == BOUND_LOOP ? loop->n : loop->turns;
}

// Takes a sequential loop with small steps into the runs.
static bool lengthen_runs(FootprintVisit *v, BoundVar *loop)
{
    scope_look_at(v->scope, loop, 0);
    int64_t from = first_lane(v);
    scope_look_at(v->scope, loop, MIN(1, loop->n - 1));
    int64_t step = first_lane(v) - from, length = step * (loop->n - 1);
    scope_look_at(v->scope, loop, 0);
    if (llabs(step) >= 2 * v->line)
        return false;
    for (int k = 0; k < v->nrun; k++) {
        v->run[k].lo += MIN(length, 0);
        v->run[k].hi += MAX(length, 0);
    }
    return true;
}

// What is left to be walked through; returns by how much too little that is.
static double plan_turns(FootprintVisit *v)
{
    double factor = 1;
    int64_t most = MAX(VISITS_MAX / scope_warps(v->scope), 1);
    int kept = 0;
    for (int i = 0; i < v->nloop; i++) {
        BoundVar *loop = v->loop[i];
        if (loop->kind == BOUND_LOOP && lengthen_runs(v, loop))
            continue;
        v->loop[kept] = loop;
        v->turns[kept] = MIN(MIN(turns_of(loop), ITERATIONS_MAX), most);
        most = MAX(most / v->turns[kept], 1);
        factor *= (double)turns_of(loop) / (double)v->turns[kept++];
    }
    v->nloop = kept;
    sort_loops(v);
    return factor;
}

static int64_t line_of(const FootprintVisit *v, int64_t at)
{
    if (v->shift >= 0)
        return at >> v->shift;
    return at >= 0 ? at / v->line : -((-at + v->line - 1) / v->line);
}

// The runs of these lanes, in each iteration of the loops from one on.
static void add_steps(const FootprintVisit *v, int loop, int64_t first, int64_t last)
{
    if (loop < v->nloop) {
        for (int64_t i = 0; i < v->turns[loop]; i++)
            add_steps(v, loop + 1, first + i * v->step[loop], last + i * v->step[loop]);
        return;
    }
    for (int k = 0; k < v->nrun; k++)
        set_add(v->arena, v->set, line_of(v, first + v->run[k].lo),
                line_of(v, last + v->run[k].hi));
}

// Lanes no further apart than a line leave none out between them.
static void add_warp(FootprintVisit *v)
{
    LaneValues lanes;
    if (!scope_lanes(v->scope, v->part->base, &lanes))
        return;
    int n = lanes.uniform ? 1 : v->scope->lanes;
    for (int first = 0, last; first < n; first = last + 1) {
        last = first;
        while (last + 1 < n && lanes.v[last + 1] >= lanes.v[last] &&
               lanes.v[last + 1] - lanes.v[last] <= v->line)
            last++;
        add_steps(v, v->nturned, lanes.v[first], lanes.v[last]);
    }
}

static void add_turns(FootprintVisit *v, int loop)
{
    if (loop == v->nturned) {
        for (int warp = 0; warp < scope_warps(v->scope); warp++) {
            scope_warp(v->scope, warp);
            add_warp(v);
        }
        return;
    }
    for (int64_t i = 0; i < v->turns[loop]; i++) {
        scope_look_at(v->scope, v->loop[loop], i);
        add_turns(v, loop + 1);
    }
    scope_look_at(v->scope, v->loop[loop], 0);
}

typedef VEC(LineSet) LineSets;

static LineSet *set_of(Arena *arena, LineSets *sets, int buffer)
{
    for (int i = 0; i < sets->len; i++)
        if (sets->at[i].buffer == buffer)
            return &sets->at[i];
    VEC_PUSH(arena, sets, (LineSet){.buffer = buffer});
    return &sets->at[sets->len - 1];
}

double footprint_lines(const Footprint *f, Scope *scope)
{
    LineSets sets = {0};
    int64_t line_bytes = scope->setting->device->line_bytes;
    double lines = 0;
    for (int i = 0; i < f->parts.len; i++) {
        const FootprintPart *part = &f->parts.at[i];
        LineSet *set = set_of(f->arena, &sets, part->buffer->number);
        int64_t line = MAX(line_bytes / scalar_info[part->buffer->scalar].bytes, 1);
        ScalarRun *run = NEW_ARRAY(f->arena, ScalarRun, part->constant.len);
        FootprintVisit v = {.scope = scope,
                            .part = part,
                            .arena = f->arena,
                            .set = set,
                            .line = line,
                            .run = run};
        v.shift = line & (line - 1) ? -1 : __builtin_ctzll((unsigned long long)line);
        v.nrun = merge_runs(part, run, line);
        find_loops(&v, part->base);
        double factor = plan_turns(&v);
        int64_t before = set->len;
        add_turns(&v, 0);
        set_settle(set);
        lines += factor * (double)(set->len - before);
    }
    scope_warp(scope, 0);
    return lines;
}
