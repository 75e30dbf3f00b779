// SPDX-License-Identifier: Apache-2.0
//
// Cache lines of one access of a warp, as offsets from its first lane.
//
//   source  paper 000, sections 4.2.3 and 4.4

#ifndef FW_TEST_LINES_H
#define FW_TEST_LINES_H

#include "cost/scope.h"

typedef struct {
    int by_difference; // the paper's: 0 if some difference of two lanes' indices does not
                       // simplify to a number
    int by_evaluation; // 0 if the index depends on data
} WarpLines;

// The index over loop variables alone.
static const Arith *inline_ints(Scope *s, ArithCtx *ctx, const Arith *a)
{
    for (int i = s->bounds.len - 1; i >= 0; i--) {
        const BoundVar *b = s->bounds.at[i];
        if (b->kind == BOUND_INT && arith_mentions(a, b->var))
            a = arith_subst(ctx, a, b->var, b->def);
    }
    return a;
}

static bool at_first(Scope *s, const Arith *a, int64_t *value)
{
    LaneValues lanes;
    if (!scope_lanes(s, a, &lanes))
        return false;
    *value = lanes.v[0];
    return true;
}

static const Arith *common_case(Scope *s, ArithCtx *ctx, const Arith *a);

// A wrapped index goes round at most once on either side.
static const Arith *common_mod(Scope *s, ArithCtx *ctx, const Arith *x, const Arith *d)
{
    int64_t lo, hi, at, n;
    arith_range(ctx, x, &lo, &hi);
    if (!arith_is_const(d, &n) || n <= 0 || lo < 0 || hi >= 3 * n || !at_first(s, x, &at))
        return arith_mod(ctx, x, d);
    return arith_addc(ctx, x, -(at / n) * n);
}

static const Arith *common_choice(Scope *s, const Arith *a, const Arith *x, const Arith *y)
{
    int64_t vx, vy;
    if (!at_first(s, x, &vx) || !at_first(s, y, &vy))
        return a;
    return (a->kind == A_MAX ? vx >= vy : vx <= vy) ? x : y;
}

static const Arith *common_case(Scope *s, ArithCtx *ctx, const Arith *a)
{
    if (a->kind == A_CONST || a->kind == A_VAR)
        return a;
    const Arith *x = common_case(s, ctx, a->term[0].arg), *sum;
    const Arith *y = a->n > 1 ? common_case(s, ctx, a->term[1].arg) : NULL;
    switch (a->kind) {
    case A_MIN:
    case A_MAX: return common_choice(s, a, x, y);
    case A_MOD: return common_mod(s, ctx, x, y);
    case A_DIV: return arith_div(ctx, x, y);
    case A_PROD:
        for (int i = 1; i < a->n; i++)
            x = arith_mul(ctx, x, common_case(s, ctx, a->term[i].arg));
        return x;
    case A_SUM:
        sum = arith_const(ctx, a->value);
        for (int i = 0; i < a->n; i++)
            sum = arith_add(
                ctx, sum,
                arith_mulc(ctx, common_case(s, ctx, a->term[i].arg), a->term[i].coef));
        return sum;
    case A_CONST:
    case A_VAR: break;
    }
    return a;
}

// The index of another lane: every id that lanes differ in, moved by how far they differ.
static const Arith *of_lane(Scope *s, ArithCtx *ctx, const Arith *index, int lane)
{
    for (int i = 0; i < s->bounds.len; i++) {
        const BoundVar *b = s->bounds.at[i];
        if (b->kind != BOUND_THREAD || b->loop == LOOP_WRG)
            continue;
        int64_t by = s->local_id[b->dim][lane] - s->local_id[b->dim][0];
        if (by)
            index = arith_subst(ctx, index, b->var, arith_addc(ctx, b->var, by));
    }
    return index;
}

static int lines_by_difference(Scope *s, ArithCtx *ctx, const Arith *index, int width,
                               int64_t line)
{
    LaneValues offset = {0};
    for (int i = 1; i < s->lanes; i++) {
        const Arith *far = arith_sub(ctx, of_lane(s, ctx, index, i), index);
        if (!arith_is_const(far, &offset.v[i]))
            return 0;
    }
    return lanes_lines(&offset, s->lanes, width, line);
}

static int lines_by_evaluation(Scope *s, const Arith *index, int width, int64_t line)
{
    LaneValues lanes;
    if (!scope_lanes(s, index, &lanes))
        return 0;
    for (int i = lanes.uniform ? 0 : s->lanes - 1; i >= 0; i--)
        lanes.v[i] -= lanes.v[0];
    return lanes_lines(&lanes, s->lanes, width, line);
}

// line: scalars in a line. Boundary conditions are ignored: of each, the side is taken that
// holds for the warp.
static WarpLines warp_lines(Scope *s, ArithCtx *ctx, const Arith *index, int width,
                            int64_t line)
{
    index = common_case(s, ctx, inline_ints(s, ctx, index));
    return (WarpLines){lines_by_difference(s, ctx, index, width, line),
                       lines_by_evaluation(s, index, width, line)};
}

#endif
