// SPDX-License-Identifier: Apache-2.0
//
// Folds by the lanes of warps: each item folds its own elements, the lanes of a warp give
// each other what they have, and the warps of a group, if there are several, join theirs in
// local memory.
//
//   method  The items of a group of which a fold is so run all of the group's function,
//           inside one loop over them, so that what an item has in variables stays there;
//           other loops over items inside it are loops of each item over its elements. A
//           lane folds what it has with what the next one has, then the one two lanes
//           ahead, four, eight, sixteen; then all take the first lane's. The order is that
//           of lanes.
//   source  CUDA C++ Programming Guide, warp shuffle functions

#include "lower/internal.h"

enum { LANES = 32 };

// A group ------------------------------------------------------------------------------

bool needs_lanes(const Lower *l, const Expr *map)
{
    return !l->lanes && map->pattern == P_MAPWRG &&
           !expr_find_pattern(map->fun, P_MAPWRG) &&
           expr_find_pattern(map->fun, P_REDLANES);
}

typedef struct {
    const Expr *expr;
    const Env *env;
    const View *out;
} Inside;

static void inside_step(Lower *l, void *user, const Arith *iter)
{
    const Inside *in = user;
    l->lanes = true;
    gen(l, in->expr, in->env, in->out);
    l->lanes = false;
}

void gen_by_lanes(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    Inside in = {expr, env, out};
    int64_t items = l->kernel->local[0];
    if (!l->options->shuffle || items % LANES || l->kernel->any_group)
        lower_fail(l, expr->span, "L025",
                   "reduceLanes needs groups of whole warps along x, whose lanes exchange "
                   "registers");
    else
        gen_loop(l, LOOP_LCL, 0, false, arith_const(l->ctx, items), inside_step, &in);
}

typedef struct {
    const Arith *extent, *item;
    int64_t items;
    LoopBody *body;
    void *user;
} Turns;

// One element of the item's, where there is one.
static void turn_step(Lower *l, void *user, const Arith *iter)
{
    const Turns *t = user;
    const Arith *one = arith_const(l->ctx, 1);
    const Arith *at = arith_add(l->ctx, arith_mulc(l->ctx, iter, t->items), t->item);
    const Arith *left = arith_sub(l->ctx, arith_addc(l->ctx, t->extent, -1), at);
    Outside outside = side_now(l);
    if (arith_multiple(l->ctx, t->extent) % t->items)
        guard_open(l, &left, 1);
    l->inside[LOOP_LCL]++; // an item's own work
    t->body(l, t->user, t->extent == one ? arith_const(l->ctx, 0) : at);
    l->inside[LOOP_LCL]--;
    side_close(l, outside);
}

bool gen_in_turns(Lower *l, LoopKind kind, int dim, const Arith *extent, LoopBody *body,
                  void *user)
{
    if (!l->lanes || kind != LOOP_LCL || dim != 0)
        return false;
    int64_t items = l->kernel->local[0];
    Turns t = {extent, l->item[0], items, body, user};
    const Arith *turns = arith_divc(l->ctx, arith_addc(l->ctx, extent, items - 1), items);
    gen_loop(l, LOOP_SEQ, 0, false, turns, turn_step, &t);
    return true;
}

// A fold -------------------------------------------------------------------------------

static const View *from_lane(Lower *l, const Type *type, const View *acc, const View *none,
                             const void *lane)
{
    return view_value(l, k_named(l, k_shuffle(l, view_read(l, acc), lane), "other"));
}

static const View *all_from_lane(Lower *l, const View *acc, const Type *type,
                                 const Arith *lane)
{
    return view_leaves(l, type, acc, NULL, from_lane, lane);
}

// What the warps have, one after another, by every item.
static const View *join_warps(Lower *l, const Expr *expr, const Env *env, const View *acc)
{
    int64_t warps = l->kernel->local[0] / LANES;
    const Type *type = type_array(l->arena, arith_const(l->ctx, warps), expr->type);
    const View *tile = buffers_new(l, type, MEM_LOCAL, ROLE_TEMP, 0, "tile");
    const Arith *lane = arith_mod(l->ctx, l->item[0], arith_const(l->ctx, LANES));
    const Arith *first = arith_mulc(l->ctx, lane, -1);
    Outside outside = side_now(l);
    guard_open(l, &first, 1);
    gen_copy(l, acc, view_elem(l, tile, arith_divc(l->ctx, l->item[0], LANES)));
    side_close(l, outside);
    add_barrier(l);
    l->shared_tile = true;
    return gen_fold(l, expr, env, eval(l, expr->arg[0], env), tile, NULL, NULL);
}

const View *gen_lanes(Lower *l, const Expr *expr, const Env *env)
{
    const Expr *own = expr->arg[1];
    if (!l->lanes || l->inside[LOOP_SEQ] || !expr_is(own, P_MAPLCL) || own->par != 0 ||
        own->type->len != arith_const(l->ctx, l->kernel->local[0]))
        return lower_fail(l, expr->span, "L025",
                          "reduceLanes folds what mapLcl0 gives, an element an item");
    const View *share = view_elem(l, eval(l, own->arg[0], env), l->item[0]);
    l->inside[LOOP_LCL]++;
    const View *acc = fold_variable(l, apply(l, own->fun, env, &share), expr->type);
    l->inside[LOOP_LCL]--;
    for (int64_t ahead = 1; ahead < LANES && !l->failed; ahead *= 2) {
        const Arith *lane = arith_addc(l->ctx, l->item[0], ahead);
        fold_element(l, expr, env, acc, all_from_lane(l, acc, expr->type, lane));
    }
    if (l->kernel->local[0] > LANES)
        return join_warps(l, expr, env, acc);
    return all_from_lane(l, acc, expr->type, arith_const(l->ctx, 0));
}
