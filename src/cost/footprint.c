// SPDX-License-Identifier: Apache-2.0
//
// The lines of a group are put into sets, a buffer each.
//
//   method  the box of a part is the items of the group in the middle of the grid, and the
//           iterations of sequential loops. Axes that leave no line out between their steps
//           lengthen the runs of scalars, the others repeat them.

#include "cost/footprint.h"

#include "cost/box.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 1 << 14 };

// Lines of a buffer; those of the first `settled` spans are apart from each other and in
// order.
typedef struct {
    int buffer, settled;
    VEC(IndexRange) spans;
    int64_t len; // lines
} LineSet;

// A part, and its index in the piece of the box looked at.
typedef struct {
    const FootprintPart *part;
    IndexRange *run; // of its constants: scalars
    int nrun;
    bool executed;
    LinearForm form;
} PartVisit;

// Parts of one buffer whose indices and conditions have the same axes.
typedef struct {
    IndexBox box;
    Arena *arena;
    LineSet *set;
    int64_t line; // scalars
    int shift;    // that many bits of a position lie within a line; -1: no power of 2
    VEC(PartVisit) parts;
    VEC(IndexRange) runs; // room for those of parts that have the same form
    double left;          // runs that may still be added
    double seen;          // points of the box that were visited
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

// Accesses under the same innermost condition stand under the same ones.
static FootprintPart *part_of(Footprint *f, const CountedAccess *access, const Guard *guard,
                              int nguard)
{
    uintptr_t hash = hash_terms(access->index);
    const Guard *inner = nguard ? &guard[nguard - 1] : &(Guard){0};
    for (hash += inner->negated;; hash++) {
        Key key = {(const void *)hash, access->buffer, inner->cond};
        int entry = table_find(&f->table, key);
        if (entry < 0) {
            FootprintPart part = {.buffer = access->buffer,
                                  .base = access->index,
                                  .guard = NEW_ARRAY(f->arena, Guard, nguard),
                                  .nguard = nguard};
            for (int i = 0; i < nguard; i++)
                part.guard[i] = guard[i];
            table_push(&f->table, key, f->parts.len);
            VEC_PUSH(f->arena, &f->parts, part);
            return &f->parts.at[f->parts.len - 1];
        }
        FootprintPart *part = &f->parts.at[f->table.entry.at[entry].value];
        if (differ_by_constant(part->base, access->index) &&
            (!nguard || part->guard[nguard - 1].negated == inner->negated))
            return part;
    }
}

void footprint_add(Footprint *f, const CountedAccess *access, const Guard *guard,
                   int nguard)
{
    FootprintPart *part = part_of(f, access, guard, nguard);
    part->width = MAX(part->width, access->width);
    int64_t constant = constant_of(access->index) - constant_of(part->base);
    VEC_PUSH(f->arena, &part->constant, constant);
}

// The set -----------------------------------------------------------------------------

// Appends a range to those in order, or joins it with the last of them.
static int append_range(IndexRange *to, int n, IndexRange range, int64_t gap)
{
    if (n == 0 || range.lo > to[n - 1].hi + gap) {
        to[n] = range;
        return n + 1;
    }
    to[n - 1].hi = MAX(to[n - 1].hi, range.hi);
    return n;
}

// The end of those that stand in order from `first` on.
static int end_of_run(const IndexRange *range, int first, int n)
{
    int end = first + 1;
    while (end < n && range[end - 1].lo <= range[end].lo)
        end++;
    return end;
}

// Merges each second sequence in order into the one before it; returns how many ranges are
// left.
static int merge_runs(const IndexRange *from, int n, IndexRange *to, int64_t gap)
{
    int put = 0;
    for (int at = 0, first = 0; at < n; first = put) {
        int i = at, end = end_of_run(from, at, n), k = end;
        at = end < n ? end_of_run(from, end, n) : end;
        while (i < end || k < at) {
            bool second = i == end || (k < at && from[k].lo < from[i].lo);
            put = first +
                  append_range(to + first, put - first, from[second ? k++ : i++], gap);
        }
    }
    return put;
}

// Puts n ranges in order and joins those that are no further apart than `gap`; returns how
// many are left. They mostly come as a few sequences in order.
static int settle_ranges(Arena *arena, IndexRange *range, int n, int64_t gap)
{
    ArenaMark mark = arena_mark(arena);
    IndexRange *from = range, *to = NULL;
    int left = 0;
    while (end_of_run(from, 0, n) < n) {
        IndexRange *other = to ? to : NEW_RAW(arena, IndexRange, n);
        n = merge_runs(from, n, other, gap);
        to = from;
        from = other;
    }
    for (int i = 0; i < n; i++)
        left = append_range(range, left, from[i], gap);
    arena_reset(arena, mark);
    return left;
}

static void set_settle(Arena *arena, LineSet *set)
{
    set->len = 0;
    set->settled = set->spans.len = settle_ranges(arena, set->spans.at, set->spans.len, 1);
    for (int i = 0; i < set->settled; i++)
        set->len += set->spans.at[i].hi - set->spans.at[i].lo + 1;
}

static void set_add(Arena *arena, LineSet *set, int64_t first, int64_t last)
{
    enum { SPANS_LEAST = 512 };
    IndexRange *before = set->spans.len ? &set->spans.at[set->spans.len - 1] : NULL;
    if (before && first >= before->lo && first <= before->hi + 1) {
        before->hi = MAX(before->hi, last);
        return;
    }
    if (set->spans.len > 2 * set->settled + SPANS_LEAST)
        set_settle(arena, set);
    VEC_PUSH(arena, &set->spans, ((IndexRange){first, last}));
}

// One part ----------------------------------------------------------------------------

static PartVisit part_visit(Arena *arena, const FootprintPart *part, int64_t line)
{
    int n = part->constant.len;
    PartVisit visit = {.part = part, .run = NEW_ARRAY(arena, IndexRange, n)};
    for (int i = 0; i < n; i++) {
        int64_t lo = part->constant.at[i];
        visit.run[i] = (IndexRange){lo, lo + part->width - 1};
    }
    visit.nrun = settle_ranges(arena, visit.run, n, line);
    return visit;
}

// False if the box is to be cut.
static bool find_forms(FootprintVisit *v)
{
    VEC_EACH_REF(PartVisit *, part, &v->parts) {
        int sign = box_guards(&v->box, part->part->guard, part->part->nguard);
        v->box.data = false;
        part->executed = sign > 0 && box_form(&v->box, part->part->base, &part->form);
        if (sign == 0 || (sign > 0 && !part->executed && !v->box.data))
            return false;
    }
    return true;
}

// Lines -------------------------------------------------------------------------------

typedef struct {
    int axis;
    int64_t step, n;
} Stride;

static int compare_strides(const void *a, const void *b)
{
    const Stride *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

static int find_strides(const FootprintVisit *v, const LinearForm *form, Stride *stride)
{
    int n = 0;
    for (int i = 0; i < v->box.naxis; i++) {
        int64_t steps = v->box.axis[i].hi - v->box.axis[i].lo + 1;
        if (form->coef[i] && steps > 1)
            stride[n++] = (Stride){i, llabs(form->coef[i]), steps};
    }
    qsort(stride, (size_t)n, sizeof *stride, compare_strides);
    return n;
}

static void settle_runs(FootprintVisit *v)
{
    v->runs.len = settle_ranges(v->arena, v->runs.at, v->runs.len, v->line);
}

// The runs of all parts whose form is that of part `first` but for a constant.
static void gather_runs(FootprintVisit *v, int first)
{
    LinearForm *form = &v->parts.at[first].form;
    v->runs.len = 0;
    for (int i = first; i < v->parts.len; i++) {
        PartVisit *part = &v->parts.at[i];
        if (!part->executed || memcmp(part->form.coef, form->coef, sizeof form->coef) != 0)
            continue;
        int64_t shift = part->form.at - form->at;
        for (int k = 0; k < part->nrun; k++)
            VEC_PUSH(v->arena, &v->runs,
                     ((IndexRange){part->run[k].lo + shift, part->run[k].hi + shift}));
        part->executed = i == first;
    }
    settle_runs(v);
}

// Steps that leave no line out between them lengthen the runs; returns how many do.
static int lengthen_runs(FootprintVisit *v, const Stride *stride, int n)
{
    int64_t length = INT64_MAX, more = 0;
    int taken = 0;
    for (int k = 0; k < v->runs.len; k++)
        length = MIN(length, v->runs.at[k].hi - v->runs.at[k].lo);
    for (; taken < n && stride[taken].step - length - more <= v->line; taken++)
        more += stride[taken].step * (stride[taken].n - 1);
    for (int k = 0; k < v->runs.len; k++)
        v->runs.at[k].hi += more;
    settle_runs(v);
    return taken;
}

static int64_t line_of(const FootprintVisit *v, int64_t at)
{
    return v->shift >= 0 ? at >> v->shift : floor_div(at, v->line);
}

// The runs at each step of a stride; those of its steps may be the same. What is there is
// doubled until all steps are.
static void repeat_runs(FootprintVisit *v, const Stride *stride)
{
    int64_t steps = 1, more;
    for (; steps < stride->n; steps += more) {
        more = MIN(steps, stride->n - steps);
        for (int k = 0, n = v->runs.len; k < n; k++) {
            IndexRange run = v->runs.at[k];
            run.lo += more * stride->step;
            run.hi += more * stride->step;
            VEC_PUSH(v->arena, &v->runs, run);
        }
        settle_runs(v);
    }
}

static void add_lines(FootprintVisit *v, int64_t at)
{
    v->left -= v->runs.len;
    for (int k = 0; k < v->runs.len; k++)
        set_add(v->arena, v->set, line_of(v, at + v->runs.at[k].lo),
                line_of(v, at + v->runs.at[k].hi));
}

static void visit_box(FootprintVisit *v);

static void visit_piece(FootprintVisit *v, int axis, int64_t lo, int64_t hi)
{
    IndexAxis whole = box_narrow(&v->box, axis, lo, hi);
    visit_box(v);
    v->box.axis[axis] = whole;
}

static double all_runs(const FootprintVisit *v, const Stride *stride, int n)
{
    double runs = v->runs.len;
    for (int i = 0; i < n; i++)
        runs *= (double)stride[i].n;
    return runs;
}

// False if the part has more runs than may be added: the first ones along its longest
// stride were then added for all parts, and no more will be.
static bool add_part(FootprintVisit *v, int part)
{
    Stride stride[AXES_MAX];
    const LinearForm *form = &v->parts.at[part].form;
    int n = find_strides(v, form, stride);
    gather_runs(v, part);
    int64_t at = box_range(&v->box, form).lo;
    for (int k = lengthen_runs(v, stride, n); k < n; k++) {
        if (v->runs.len * (double)stride[k].n > v->left) {
            const Stride *last = &stride[n - 1];
            double share = MAX(v->left, 1) / all_runs(v, &stride[k], n - k);
            int64_t lo = v->box.axis[last->axis].lo;
            visit_piece(v, last->axis, lo, lo + (int64_t)(share * (double)(last->n - 1)));
            v->left = -1;
            return false;
        }
        repeat_runs(v, &stride[k]);
    }
    add_lines(v, at);
    return true;
}

static void add_box(FootprintVisit *v)
{
    for (int i = 0; i < v->parts.len; i++)
        if (v->parts.at[i].executed && !add_part(v, i))
            return;
    v->seen += box_points(&v->box);
}

static void visit_box(FootprintVisit *v)
{
    if (v->left-- < 0)
        return;
    if (find_forms(v)) {
        add_box(v);
        return;
    }
    int axis = v->box.cut;
    int64_t last = v->box.last;
    visit_piece(v, axis, v->box.axis[axis].lo, last);
    visit_piece(v, axis, last + 1, v->box.axis[axis].hi);
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

static bool same_axes(const FootprintVisit *a, const FootprintVisit *b)
{
    int same = 0;
    for (int i = 0; i < a->box.naxis; i++)
        for (int k = 0; k < b->box.naxis; k++)
            same += a->box.axis[i].of == b->box.axis[k].of &&
                    a->box.axis[i].scale == b->box.axis[k].scale;
    return a->set == b->set && a->box.naxis == b->box.naxis && same == a->box.naxis;
}

static double visit_lines(FootprintVisit *v)
{
    int64_t before = v->set->len;
    v->left = RUNS_MAX;
    visit_box(v);
    set_settle(v->arena, v->set);
    return v->seen > 0 ? (double)(v->set->len - before) * box_points(&v->box) / v->seen : 0;
}

double footprint_lines(const Footprint *f, Scope *scope)
{
    LineSets sets = {0};
    VEC(FootprintVisit) visits = {0};
    int64_t line_bytes = scope->setting->device->line_bytes;
    double lines = 0;
    for (int i = 0; i < f->parts.len; i++)
        set_of(f->arena, &sets, f->parts.at[i].buffer->number);
    VEC_EACH_REF(const FootprintPart *, part, &f->parts) {
        int64_t line = MAX(line_bytes / scalar_info[part->buffer->scalar].bytes, 1);
        FootprintVisit v = {
            .box = {.scope = scope, .group = true},
            .arena = f->arena,
            .set = set_of(f->arena, &sets, part->buffer->number),
            .line = line,
            .shift = line & (line - 1) ? -1 : __builtin_ctzll((unsigned long long)line)};
        box_add(&v.box, part->base);
        for (int g = 0; g < part->nguard; g++)
            for (int c = 0; c < part->guard[g].n; c++)
                box_add(&v.box, part->guard[g].cond[c]);
        int k = 0;
        while (k < visits.len && !same_axes(&visits.at[k], &v))
            k++;
        if (k == visits.len)
            VEC_PUSH(f->arena, &visits, v);
        VEC_PUSH(f->arena, &visits.at[k].parts, part_visit(f->arena, part, line));
    }
    for (int i = 0; i < visits.len; i++)
        lines += visit_lines(&visits.at[i]);
    return lines;
}
