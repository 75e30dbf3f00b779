// SPDX-License-Identifier: Apache-2.0

#include "cost/box.h"

#include <stdlib.h>

// The box -----------------------------------------------------------------------------

static void add_axis(IndexBox *box, const BoundVar *b, int64_t scale, int64_t n)
{
    if (box->naxis < AXES_MAX)
        box->axis[box->naxis++] = (IndexAxis){b, scale, 0, MAX(n, 1) - 1};
}

// The first value of a variable, of a loop over groups or all items that the group has.
static int64_t first_value(const IndexBox *box, const BoundVar *b)
{
    if (!box->group || b->kind != BOUND_THREAD || b->loop == LOOP_LCL)
        return 0;
    const Scope *s = box->scope;
    int64_t items = b->loop == LOOP_GLB ? s->kernel->local[b->dim] : 1;
    return MIN(s->groups[b->dim] / 2 * items, b->n - 1);
}

static void add_axes(IndexBox *box, const BoundVar *b)
{
    const Scope *s = box->scope;
    if (!box->group || b->kind != BOUND_THREAD || b->loop == LOOP_LCL) {
        add_axis(box, b, 1, b->n);
        return;
    }
    int64_t threads = scope_threads(s, b->loop, b->dim), rest = b->n - first_value(box, b);
    if (b->loop == LOOP_GLB)
        add_axis(box, b, 1, MIN(s->kernel->local[b->dim], rest));
    if (rest > threads)
        add_axis(box, b, threads, (rest - 1) / threads + 1);
}

unsigned box_add(IndexBox *box, const Arith *a)
{
    unsigned axes = 0;
    for (int i = 0; i < a->n; i++)
        axes |= box_add(box, a->term[i].arg);
    const BoundVar *b = a->kind == A_VAR ? scope_find(box->scope, a) : NULL;
    if (b && b->kind == BOUND_INT)
        return box_add(box, b->def);
    if (!b || (b->kind != BOUND_LOOP && b->kind != BOUND_THREAD))
        return axes;
    for (int round = 0; round < 2 && !axes; round++) {
        if (round == 1)
            add_axes(box, b);
        for (int i = 0; i < box->naxis; i++)
            axes |= box->axis[i].of == b ? 1u << i : 0;
    }
    return axes;
}

double box_points(const IndexBox *box)
{
    double points = 1;
    for (int i = 0; i < box->naxis; i++)
        points *= (double)(box->axis[i].hi - box->axis[i].lo + 1);
    return points;
}

IndexAxis box_narrow(IndexBox *box, int axis, int64_t lo, int64_t hi)
{
    IndexAxis whole = box->axis[axis];
    box->axis[axis].lo = lo;
    box->axis[axis].hi = hi;
    return whole;
}

// Linear forms ------------------------------------------------------------------------

static void form_add(const IndexBox *box, LinearForm *form, const LinearForm *other,
                     int64_t scale)
{
    form->at += scale * other->at;
    for (int i = 0; i < box->naxis; i++)
        form->coef[i] += scale * other->coef[i];
}

IndexRange box_range(const IndexBox *box, const LinearForm *form)
{
    IndexRange range = {form->at, form->at};
    for (int i = 0; i < box->naxis; i++) {
        int64_t lo = form->coef[i] * box->axis[i].lo, hi = form->coef[i] * box->axis[i].hi;
        range.lo += MIN(lo, hi);
        range.hi += MAX(lo, hi);
    }
    return range;
}

static int64_t form_first(const IndexBox *box, const LinearForm *form)
{
    int64_t at = form->at;
    for (int i = 0; i < box->naxis; i++)
        at += form->coef[i] * box->axis[i].lo;
    return at;
}

// Cuts the box along the axis on which the form changes most, to where the form stays in a
// range for all values of the others; or else to its first value. Returns false.
static bool cut_box(IndexBox *box, const LinearForm *form, int64_t lo, int64_t hi)
{
    IndexRange rest = box_range(box, form);
    int64_t most = 0;
    for (int i = 0; i < box->naxis; i++) {
        int64_t change = llabs(form->coef[i]) * (box->axis[i].hi - box->axis[i].lo);
        box->cut = change > most ? i : box->cut;
        most = MAX(most, change);
    }
    const IndexAxis *axis = &box->axis[box->cut];
    int64_t step = form->coef[box->cut];
    rest.lo += step < 0 ? most : 0; // at the first value
    rest.hi -= step > 0 ? most : 0;
    box->last = axis->lo;
    if (rest.lo >= lo && rest.hi <= hi)
        box->last += step > 0 ? (hi - rest.hi) / step : (rest.lo - lo) / -step;
    box->last = MIN(box->last, axis->hi - 1);
    return false;
}

int box_sign(IndexBox *box, const LinearForm *form)
{
    IndexRange range = box_range(box, form);
    if (range.lo >= 0 || range.hi < 0)
        return range.lo >= 0 ? 1 : -1;
    bool negative = form_first(box, form) < 0;
    cut_box(box, form, negative ? INT64_MIN / 2 : 0, negative ? -1 : INT64_MAX / 2);
    return 0;
}

static bool take_extreme(IndexBox *box, bool larger, LinearForm *a, const LinearForm *b)
{
    LinearForm difference = *a;
    form_add(box, &difference, b, -1);
    int sign = box_sign(box, &difference);
    if (sign && (sign > 0) != larger)
        *a = *b;
    return sign != 0;
}

static bool is_fixed(const IndexBox *box, const LinearForm *form)
{
    IndexRange range = box_range(box, form);
    return range.lo == range.hi;
}

// a = by * quotient + rest, where the rest is within `by` of a multiple in the whole box.
static bool divide(IndexBox *box, bool modulo, LinearForm *a, int64_t by)
{
    LinearForm quotient = {0}, rest = *a;
    for (int i = 0; i < box->naxis; i++)
        if (a->coef[i] && a->coef[i] % by == 0) {
            quotient.coef[i] = a->coef[i] / by;
            rest.coef[i] = 0;
        }
    IndexRange range = box_range(box, &rest);
    int64_t q = floor_div(range.lo, by);
    if (q != floor_div(range.hi, by)) {
        q = floor_div(form_first(box, &rest), by);
        return cut_box(box, &rest, q * by, q * by + by - 1);
    }
    quotient.at = q;
    rest.at -= q * by;
    *a = modulo ? rest : quotient;
    return true;
}

static bool combine_forms(IndexBox *box, ArithKind kind, LinearForm *a, LinearForm *b)
{
    if (kind == A_MIN || kind == A_MAX)
        return take_extreme(box, kind == A_MAX, a, b);
    if (kind == A_PROD && !is_fixed(box, b)) {
        LinearForm swap = *a;
        *a = *b;
        *b = swap;
    }
    if (!is_fixed(box, b))
        return cut_box(box, b, 0, -1);
    int64_t by = box_range(box, b).lo;
    if (kind == A_PROD)
        form_add(box, a, a, by - 1);
    else if (by <= 0)
        *a = (LinearForm){0};
    else
        return divide(box, kind == A_MOD, a, by);
    return true;
}

static bool add_var(IndexBox *box, const Arith *var, int64_t scale, LinearForm *out)
{
    const BoundVar *b = scope_find(box->scope, var);
    int64_t first = 0;
    if (b && b->kind == BOUND_INT) {
        LinearForm def;
        if (!box_form(box, b->def, &def))
            return false;
        form_add(box, out, &def, scale);
        return true;
    }
    bool free = b && (b->kind == BOUND_LOOP || b->kind == BOUND_THREAD);
    if (free)
        first = first_value(box, b);
    box->data = !free && !scope_constant(box->scope, var, &first);
    out->at += scale * first;
    for (int i = 0; free && i < box->naxis; i++)
        out->coef[i] += box->axis[i].of == b ? scale * box->axis[i].scale : 0;
    return !box->data;
}

bool box_form(IndexBox *box, const Arith *a, LinearForm *out)
{
    LinearForm part;
    bool sum = a->kind == A_CONST || a->kind == A_SUM;
    out->at = sum ? a->value : 0;
    for (int i = 0; i < box->naxis; i++)
        out->coef[i] = 0;
    if (a->kind == A_VAR)
        return add_var(box, a, 1, out);
    for (int i = 0; i < a->n; i++) {
        const Arith *arg = a->term[i].arg;
        if (sum && arg->kind == A_VAR) {
            if (!add_var(box, arg, a->term[i].coef, out))
                return false;
            continue;
        }
        if (!box_form(box, arg, &part))
            return false;
        if (sum || i == 0)
            form_add(box, out, &part, sum ? a->term[i].coef : 1);
        else if (!combine_forms(box, a->kind, out, &part))
            return false;
    }
    return true;
}

static int guard_sign(IndexBox *box, const Guard *guard)
{
    int all = 1;
    for (int i = 0; i < guard->n; i++) {
        LinearForm form;
        box->data = false;
        int sign = box_form(box, guard->cond[i], &form) ? box_sign(box, &form) : box->data;
        if (sign < 0)
            return guard->negated ? 1 : -1;
        all = MIN(all, sign);
    }
    return guard->negated ? -all : all;
}

int box_guards(IndexBox *box, const Guard *guard, int n)
{
    int all = 1, cut = 0;
    int64_t last = 0;
    for (int i = 0; i < n; i++) {
        int sign = guard_sign(box, &guard[i]);
        if (sign < 0)
            return -1;
        if (sign > 0)
            continue;
        all = 0;
        cut = box->cut;
        last = box->last;
    }
    box->cut = cut;
    box->last = last;
    return all;
}
