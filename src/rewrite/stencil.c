// SPDX-License-Identifier: Apache-2.0
//
// Iterated stencils in two or three dimensions: which loops may do several steps in one
// kernel.
//
//   source  AN5D (Matsumura et al., CGO 2020): temporal blocking of stencils, streamed
//           along one axis
//
// What is looked for is a function whose grids are maps over windows of its state, a step
// of 1 apart, padded in one way, that other arrays may be zipped to. Windows are read at
// constant places, or by reductions that can become straight-line code.

#include "rewrite/internal.h"

enum { NAMES_MAX = 16, REDUCED_MAX = 64 };

// The names that the state, or a part of it, has so far.
typedef struct {
    const Param *name[NAMES_MAX];
    int n;
    const Expr *pad; // the first one found
    Stencil *found;  // its dims are those of all grids
} State;

static bool is_state(const State *s, const Expr *expr)
{
    while (expr->kind == E_GET)
        expr = expr->arg[0];
    for (int i = 0; expr->kind == E_PARAM && i < s->n; i++)
        if (s->name[i] == expr->param)
            return true;
    return false;
}

static bool mentions_state(const State *s, const Expr *expr)
{
    for (int i = 0; i < s->n; i++)
        if (expr_mentions(expr, s->name[i]))
            return true;
    return false;
}

static bool constants(const Expr *expr, int64_t *num)
{
    for (int i = 0; i < expr->nnum; i++)
        if (!arith_is_const(expr->num[i], &num[i]))
            return false;
    return true;
}

static bool same_padding(State *s, const Expr *pad)
{
    if (!s->pad)
        s->pad = pad;
    return pad->mode == s->pad->mode &&
           (pad->mode != PAD_CONSTANT ||
            (pad->arg[0]->kind == E_LITERAL && expr_equal(pad->arg[0], s->pad->arg[0])));
}

static bool is_window(State *s, const Expr *slide)
{
    int64_t window[NUMS_MAX], pad[NUMS_MAX];
    const Expr *in = slide->arg[0];
    if (!is_dims(in, P_PAD, s->found->dims) || !is_state(s, in->arg[in->narg - 1]) ||
        !same_padding(s, in) || !constants(slide, window) || !constants(in, pad))
        return false;
    for (int d = 0; d < s->found->dims; d++) {
        int64_t *reach = &s->found->reach[d], after = window[2 * d] - 1 - pad[2 * d];
        if (window[2 * d + 1] != 1 || after != pad[2 * d + 1])
            return false;
        *reach = MAX(*reach, MAX(pad[2 * d], after));
    }
    return true;
}

static bool are_windows(State *s, const Expr *in)
{
    if (!mentions_state(s, in) || is_state(s, in))
        return true;
    if (is_dims(in, P_SLIDE, s->found->dims))
        return is_window(s, in);
    bool ok = is_dims(in, P_ZIP, s->found->dims);
    for (int i = 0; ok && i < in->narg; i++)
        ok = are_windows(s, in->arg[i]);
    return ok;
}

static bool at_constant_place(const Expr *at)
{
    const Expr *index = at->arg[1];
    return index->kind == E_LITERAL ||
           (index->kind == E_NUM && arith_is_const(index->num[0], NULL));
}

// What one cell is computed by: straight-line code, once reductions are unrolled.
static bool is_straight(const Expr *expr)
{
    int64_t len;
    if (expr->kind == E_AT && !at_constant_place(expr))
        return false;
    if (is(expr, P_REDUCE) || is(expr, P_REDUNROLL)) {
        if (!arith_is_const(expr->arg[1]->type->len, &len) || len > REDUCED_MAX)
            return false;
    } else if (expr->kind == E_PATTERN && pattern_info[expr->pattern].group != G_VIEW &&
               expr->pattern != P_MAP && expr->pattern != P_ARRAY) {
        return false;
    }
    for (int i = 0; i < expr->narg; i++)
        if (!is_straight(expr->arg[i]))
            return false;
    return !expr->fun || is_straight(expr->fun->arg[0]);
}

static bool are_grids(State *s, const Expr *expr)
{
    if (expr->kind == E_LET) {
        bool state = is_state(s, expr->arg[0]);
        if ((!state && mentions_state(s, expr->arg[0])) || s->n == NAMES_MAX)
            return false;
        if (state)
            s->name[s->n++] = expr->param;
        return are_grids(s, expr->arg[1]);
    }
    for (int i = 0; expr->kind == E_TUPLE && i < expr->narg; i++)
        if (!are_grids(s, expr->arg[i]))
            return false;
    return expr->kind == E_TUPLE || is_state(s, expr) ||
           (is_dims(expr, P_MAP, s->found->dims) && !mentions_state(s, expr->fun->arg[0]) &&
            is_straight(expr->fun->arg[0]) && are_windows(s, expr->arg[0]));
}

// An array of scalars of that many dimensions, or of any that a stream may have if that is
// 0, which is set.
static bool is_grid(const Type *type, Stencil *found)
{
    int dims = 0;
    for (; type->kind == T_ARRAY; type = type->elem, dims++)
        if (!arith_is_const(type->len, NULL))
            return false;
    bool ok = type->kind == T_SCALAR && type->scalar != S_BOOL &&
              (dims == found->dims || (!found->dims && (dims == 2 || dims == 3)));
    found->dims = dims;
    found->bytes += ok ? scalar_info[type->scalar].bytes : 0;
    return ok;
}

static bool is_state_type(const Type *type, Stencil *found)
{
    for (int i = 0; i < (type->kind == T_TUPLE ? type->n : 1); i++)
        if (!is_grid(type->kind == T_TUPLE ? type->item[i] : type, found))
            return false;
    return true;
}

bool iterates_stencil(const Expr *iterate, Stencil *found)
{
    *found = (Stencil){0};
    if (!is(iterate, P_ITERATE) || !arith_is_const(iterate->num[0], &found->count) ||
        found->count < 2 || !is_state_type(iterate->type, found))
        return false;
    State state = {.name = {iterate->fun->params[0]}, .n = 1, .found = found};
    return are_grids(&state, iterate->fun->arg[0]);
}

Expr *rule_iterateStream(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    Stencil found;
    for (int i = 0; i < 3; i++)
        if (args->at[i] < 1)
            return NULL;
    if (!iterates_stencil(at, &found) || !at_host(rw) || args->at[0] > found.count)
        return NULL;
    const Arith *nums[] = {at->num[0], num(rw, args->at[0]), num(rw, args->at[1]),
                           num(rw, args->at[2])};
    return make(rw, P_ITERSTREAM, 1, nums, copy_of(rw, at->fun), copy_of(rw, at->arg[0]));
}
