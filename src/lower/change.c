// SPDX-License-Identifier: Apache-2.0
//
// Arrays of a loop's state that a step changes where they are: cells that stay as they are
// are neither read nor written, and only items of the others run.
//
//   method  The step is lowered once to be looked at, from the arrays into themselves. An
//           `if` that gives a cell is a branch then, each of whose sides that do not give
//           back the cell is an *arm*: what it computes is stored. Of the kernel IR it is
//           asked which cells the arms load and which they store, and on which conditions.
//           What an item loads it must find as it was before the step: each load is of the
//           item's own cell, before it is stored, or of one that no item stores. A cell
//           that one arm loads and another one stores is stored later, behind a barrier or
//           by another launch (of a factorisation: first the block, then the column).
//   proof   kir/cells.c. What is not proved is not done: then the state is there twice.
//   ranges  The conditions of the arms bound the variables of the loops over items, which
//           then begin and end there.

#include "kir/cells.h"
#include "lower/internal.h"

#include <stdlib.h>

enum { ARMS_MAX = 16, LEVELS_MAX = 3, PAIRS_MAX = 2000 };

typedef struct {
    const Expr *side; // what it stores
    int level;        // arms of a lower one are made before
} Arm;

// The range of a loop over items.
typedef struct {
    const Expr *map;
    int dims;
    const Stm *loop;
    const Arith *from[LEVELS_MAX], *len[LEVELS_MAX]; // of the arms of each level
} ChangedMap;

struct Changes {
    Cells cells;
    const Arith *number; // of the step that is looked at
    bool once;           // what is before all arms is made once, and levels by one kernel
    bool looks, keeps;
    // What is made: a level, of which step; in a kernel with others, each of the step
    // before that of the level below.
    const Arith *now;
    int level, lowest, highest;
    Kernel *kernel; // which that is, until it has all
    VEC(Arm) arms;
    VEC(ChangedMap) maps;
};

bool is_changed(const Lower *l, const View *out)
{
    while (out->kind == V_GUARD)
        out = out->src;
    return out->kind == V_MEM && l->changes && cells_array(&l->changes->cells, out->buffer);
}

// Lowering ----------------------------------------------------------------------------

// Names around a scalar, the innermost first. They are made where something asks for them,
// or what one arm needs would be loaded for all.
typedef struct OpenLets {
    const Expr *let;
    const struct OpenLets *outer;
} OpenLets;

static const Env *bind_lets(Lower *l, const Env *env, const OpenLets *lets)
{
    if (!lets)
        return env;
    env = bind_lets(l, env, lets->outer);
    const Expr *let = lets->let;
    return env_bind_named(l, env, let->param, eval(l, let->arg[0], env), let->arg[1]);
}

static bool mentions_lets(const Expr *expr, const OpenLets *lets)
{
    for (; lets; lets = lets->outer)
        if (expr_mentions(expr, lets->let->param))
            return true;
    return false;
}

static int arm_of(Lower *l, const Expr *side)
{
    Changes *c = l->changes;
    for (int i = 0; i < c->arms.len; i++)
        if (c->arms.at[i].side == side)
            return i;
    VEC_PUSH(l->arena, &c->arms, ((Arm){side, false}));
    return c->arms.len - 1;
}

static void change_cell(Lower *l, const Expr *expr, const Env *env, const OpenLets *lets,
                        const View *out)
{
    Changes *c = l->changes;
    const int before = l->block->len;
    if (mentions_lets(expr, lets))
        env = bind_lets(l, env, lets);
    const View *value = eval(l, expr, env);
    const bool keeps = value->kind == V_MEM && value->buffer == out->buffer &&
                       arith_equal(l->ctx, arith_simplify(l->ctx, value->offset),
                                   arith_simplify(l->ctx, out->offset));
    const int arm = keeps || l->failed ? NO_PART : arm_of(l, expr);
    c->keeps |= keeps;
    if (arm == NO_PART || (!c->looks && c->arms.at[arm].level != c->level)) {
        l->block->len = before;
        return;
    }
    Stm *stm = stm_add(l, ST_STORE);
    l->block->len--; // behind what the value needs
    *stm = (Stm){.kind = ST_STORE,
                 .buffer = out->buffer,
                 .index = out->offset,
                 .value = view_read(l, value),
                 .side = l->side};
    VEC_PUSH(l->arena, l->block, stm);
    for (int i = before; c->looks && i < l->block->len; i++)
        VEC_PUSH(l->arena, &c->cells.parts, ((PartStm){l->block->at[i], arm}));
}

static const KExpr *opposite(Lower *l, const KExpr *cond)
{
    if (cond->kind != K_COND || cond->n > 1)
        return k_op(l, OP_NOT, cond->type, &cond, 1);
    const Arith *less = arith_addc(l->ctx, arith_mulc(l->ctx, cond->cond[0], -1), -1);
    return k_cond(l, &less, 1);
}

static void turn_round(Lower *l, Stm *branch, Side *side)
{
    const KExpr *cond = opposite(l, side->cond);
    side[1] = (Side){side->outer, cond, true};
    side[2] = (Side){side->outer, cond, false};
    branch->body = branch->other;
    branch->other = (Block){0};
}

static void change(Lower *l, const Expr *expr, const Env *env, const OpenLets *lets,
                   const View *out);

static void change_if(Lower *l, const Expr *expr, const Env *env, const OpenLets *lets,
                      const View *out)
{
    if (mentions_lets(expr->arg[0], lets)) {
        env = bind_lets(l, env, lets);
        lets = NULL;
    }
    const KExpr *cond = view_read(l, eval(l, expr->arg[0], env));
    if (cond->kind == K_LITERAL) {
        change(l, expr->arg[cond->number != 0 ? 1 : 2], env, lets, out);
        return;
    }
    Stm *branch = stm_add(l, ST_IF);
    Side *side = NEW_ARRAY(l->arena, Side, 3);
    for (int i = 0; i < 2; i++) {
        side[i] = (Side){l->side, cond, i == 0};
        Outside outside = side_open(l, &side[i], i ? &branch->other : &branch->body);
        side_assume(l, &side[i]);
        change(l, expr->arg[1 + i], env, lets, out);
        side_close(l, outside);
    }
    if (!branch->body.len) // the other side alone is that of the opposite
        turn_round(l, branch, side++);
    branch->value = side->cond;
    branch->side = side;
    if (!branch->body.len)
        l->block->len--;
}

static void change(Lower *l, const Expr *expr, const Env *env, const OpenLets *lets,
                   const View *out)
{
    if (l->failed)
        return;
    if (expr->kind == E_LET)
        change(l, expr->arg[1], env, &(OpenLets){expr, lets}, out);
    else if (expr->kind == E_OP && expr->op == OP_SELECT)
        change_if(l, expr, env, lets, out);
    else
        change_cell(l, expr, env, lets, out);
}

void gen_change(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    change(l, expr, env, NULL, out);
}

// The verdict -------------------------------------------------------------------------

// By arms that load and arms that store: the store must be of a later level than the load,
// or of no earlier one, as an item loads its own cell before it stores it.
typedef struct {
    bool later[ARMS_MAX][ARMS_MAX], after[ARMS_MAX][ARMS_MAX];
} ArmOrder;

// Finds where an arm stores what another one, or all of them, load: it comes later. False:
// an item may load what another one has changed.
static bool find_meetings(Changes *c, ArmOrder *order)
{
    Cells *k = &c->cells;
    bool any = false, asks = false;
    VEC_EACH_REF(const CellUse *, load, &k->loads)
        VEC_EACH_REF(const CellUse *, store, &k->stores) {
            const Meeting meeting = cells_meeting(k, load, store);
            // What is loaded before all arms is loaded once, and may be stored to by what
            // comes later.
            const bool first = c->once && load->part == NO_PART && load->nloop == 0 &&
                               load->at < c->cells.stores.at[0].at;
            asks |= meeting == CELLS_OWN && load->part == NO_PART && !first;
            if (meeting == CELLS_OWN && load->part != NO_PART)
                order->after[load->part][store->part] = true;
            if (meeting != CELLS_MEET)
                continue;
            if ((load->part == NO_PART && !first) || load->part == store->part)
                return false;
            if (load->part == NO_PART)
                c->arms.at[store->part].level = 1;
            else
                order->later[load->part][store->part] = true;
            any = true;
        }
    return !any || !asks; // conditions are asked again
}

// False where there are too many, or none for arms that each load what the other stores.
static bool find_levels(Changes *c)
{
    ArmOrder order = {0};
    bool changed = find_meetings(c, &order), found = changed;
    while (changed && found) {
        changed = false;
        for (int i = 0; i < c->arms.len; i++)
            for (int j = 0; j < c->arms.len; j++) {
                const bool asked = order.later[i][j] || order.after[i][j];
                const int level = c->arms.at[i].level + order.later[i][j];
                if (!asked || c->arms.at[j].level >= level)
                    continue;
                c->arms.at[j].level = level;
                changed = true;
                found &= level < LEVELS_MAX;
            }
    }
    return found;
}

static bool is_of(const Changes *c, const CellUse *touch, int level)
{
    return touch->part == NO_PART || c->arms.at[touch->part].level == level;
}

// Do accesses of one level meet nowhere those of another one, of earlier steps?
static bool are_all_apart(Changes *c, int level, const CellUses *list, int other,
                          CellItem behind)
{
    Cells *k = &c->cells;
    k->behind = behind;
    bool apart = true;
    for (k->steps = 1; k->steps <= abs(level - other); k->steps++)
        VEC_EACH_REF(const CellUse *, touch, list)
            VEC_EACH_REF(const CellUse *, store, &k->stores) {
                if (apart && is_of(c, touch, level) && is_of(c, store, other))
                    apart = cells_meeting(k, touch, store) == CELLS_APART;
            }
    k->behind = NOBODY;
    return apart;
}

// May a level wait until later steps, with whose lower levels it is made then?
static bool may_wait(Changes *c)
{
    Cells *k = &c->cells;
    const int known = k->known, last = changes_levels(c) - 1;
    arith_assume(k->ctx, arith_addc(k->ctx, c->number, -last));
    k->known = arith_facts(k->ctx);
    bool may = last == 0 || k->kernels == 1;
    for (int i = 0; i < last; i++)
        for (int j = i + 1; may && j <= last; j++)
            may = are_all_apart(c, i, &k->loads, j, STORES) &&
                  are_all_apart(c, j, &k->loads, i, LOADS) &&
                  are_all_apart(c, j, &k->stores, i, LOADS);
    k->known = known;
    arith_facts_reset(k->ctx, known);
    return may;
}

// Ranges ------------------------------------------------------------------------------

// Which items of a loop conditions let through: from the first to before the last.
typedef struct {
    const Arith *from, *to;
} ItemRange;

// each * iter + rest >= 0, or the same of iter / by, whatever other variables of items are.
static void limit(const Cells *k, ItemRange *range, int64_t each, int64_t by,
                  const Arith *rest)
{
    ArithCtx *ctx = k->ctx;
    const Arith *least =
        arith_lower_bound(ctx, arith_mulc(ctx, rest, -1), k->own.at, k->own.len);
    if (least && each > 0) {
        least = arith_divc(ctx, arith_addc(ctx, least, each - 1), each);
        range->from = arith_max(ctx, range->from, arith_mulc(ctx, least, by));
    } else if (least) {
        const Arith *last = arith_divc(ctx, arith_mulc(ctx, least, -1), -each);
        range->to =
            arith_min(ctx, range->to, arith_mulc(ctx, arith_addc(ctx, last, 1), by));
    }
}

static void limit_by(const Cells *k, ItemRange *range, const Arith *iter, const Arith *fact)
{
    ArithCtx *ctx = k->ctx;
    const ArithTerm one = {1, fact}, *term = fact->kind == A_SUM ? fact->term : &one;
    const int n = fact->kind == A_SUM ? fact->n : 1;
    for (int i = 0; i < n; i++) {
        const Arith *arg = term[i].arg;
        int64_t by = 1;
        bool part = arg->kind == A_DIV && arg->term[0].arg == iter &&
                    arith_is_const(arg->term[1].arg, &by);
        const Arith *rest = arith_sub(ctx, fact, arith_mulc(ctx, arg, term[i].coef));
        if ((arg == iter || part) && !arith_mentions(rest, iter))
            limit(k, range, term[i].coef, by, rest);
    }
}

static ItemRange range_of(Cells *k, const CellUse *store, const Stm *loop)
{
    ItemRange range = {arith_const(k->ctx, 0), loop->extent};
    cells_assume(k, store, ANY);
    arith_facts_reset(k->ctx, k->known); // bounds hold without them
    for (int i = 0; i < k->facts.len; i++)
        limit_by(k, &range, loop->iter, k->facts.at[i]);
    cells_forget(k);
    return range;
}

// Does a loop do something else than its stores to what is changed?
typedef struct {
    const Changes *c;
    const Stm *loop;
} LoopOf;

static bool declares_array(const Stm *stm, const void *buffer)
{
    return stm->kind == ST_ARRAY && stm->buffer == buffer;
}

static bool does_more(const Stm *stm, const void *of)
{
    const LoopOf *in = of;
    return stm->kind == ST_BARRIER || stm->kind == ST_MATRIX || stm->kind == ST_PUBLISH ||
           stm_carries(stm, in->loop) || stm_exchanges(stm, NULL) ||
           (stm->kind == ST_STORE && !cells_array(&in->c->cells, stm->buffer) &&
            !block_any(&in->loop->body, declares_array, stm->buffer));
}

static bool is_in(const CellUse *store, const Stm *loop)
{
    return list_has(store->loops, store->nloop, loop);
}

// The range that the arms of a level need in all loops of a map.
static ItemRange range_of_map(Changes *c, const ChangedMap *map, int level)
{
    Cells *k = &c->cells;
    ArithCtx *ctx = k->ctx;
    ItemRange all = {0};
    VEC_EACH_REF(const ChangedMap *, same, &c->maps) {
        if (same->map != map->map || same->dims != map->dims)
            continue;
        const LoopOf of = {c, same->loop};
        if (block_any(&same->loop->body, does_more, &of))
            return (ItemRange){arith_const(ctx, 0), map->loop->extent};
        VEC_EACH_REF(const CellUse *, store, &k->stores) {
            if (!is_of(c, store, level) || !is_in(store, same->loop))
                continue;
            ItemRange one = range_of(k, store, same->loop);
            all.from = all.from ? arith_min(ctx, all.from, one.from) : one.from;
            all.to = all.to ? arith_max(ctx, all.to, one.to) : one.to;
        }
    }
    const Arith *zero = arith_const(ctx, 0);
    return all.from ? all : (ItemRange){zero, zero};
}

// Warps that begin where they would without ranges load whole sectors. A range of a known
// length is short.
static ItemRange aligned(const Cells *k, const ChangedMap *map, ItemRange range)
{
    enum { WARP_ITEMS = 32 };
    ArithCtx *ctx = k->ctx;
    if (map->loop->loop == LOOP_GLB && map->loop->dim == 0 &&
        !arith_is_const(arith_sub(ctx, range.to, range.from), NULL))
        range.from = arith_mulc(ctx, arith_divc(ctx, range.from, WARP_ITEMS), WARP_ITEMS);
    return range;
}

static void find_ranges(Changes *c)
{
    Cells *k = &c->cells;
    for (int i = 0; i < c->maps.len; i++)
        for (int level = 0; level < LEVELS_MAX; level++) {
            ChangedMap *map = &c->maps.at[i];
            const ItemRange range = aligned(k, map, range_of_map(c, map, level));
            map->from[level] = range.from;
            map->len[level] = arith_sub(k->ctx, range.to, range.from);
        }
}

void changes_note(Lower *l, const Expr *map, int dims, const Stm *loop)
{
    Changes *c = l->changes;
    const bool ranges = c && loop->kind == ST_FOR && loop->loop != LOOP_SEQ;
    if (ranges && c->looks && c->once == (loop->loop == LOOP_LCL))
        VEC_PUSH(l->arena, &c->maps,
                 ((ChangedMap){.map = map, .dims = dims, .loop = loop}));
}

static const Arith *at_step(Lower *l, const Arith *a, int level)
{
    const Changes *c = l->changes;
    const Arith *now = arith_addc(l->ctx, c->now, c->once ? 0 : -level);
    return arith_subst(l->ctx, a, c->number, now);
}

static const ChangedMap *find_map(const Lower *l, const Expr *map, int dims)
{
    const Changes *c = l->changes;
    for (int i = 0; c && !c->looks && i < c->maps.len; i++)
        if (c->maps.at[i].map == map && c->maps.at[i].dims == dims)
            return &c->maps.at[i];
    return NULL;
}

const Arith *changes_range(Lower *l, const Expr *map, int dims, const Arith **from)
{
    const ChangedMap *found = find_map(l, map, dims);
    if (!found)
        return NULL;
    const int level = l->changes->level;
    *from = at_step(l, found->from[level], level);
    return at_step(l, found->len[level], level);
}

const Arith *changes_extent(Lower *l, const Expr *map)
{
    const ChangedMap *found = find_map(l, map, 1);
    const Arith *most = arith_const(l->ctx, 1); // a launch has a group at least
    if (!found)
        return map->arg[map->narg - 1]->type->len;
    for (int i = l->changes->lowest; i <= l->changes->highest; i++)
        most = arith_max(l->ctx, most, at_step(l, found->len[i], i));
    return most;
}

// The interface -----------------------------------------------------------------------

Changes *changes_new(Lower *l, const View *const *array, int n, const Arith *number,
                     bool once)
{
    Changes *c = NEW_OF(l->arena, Changes, .number = number, .now = number, .once = once,
                        .looks = true);
    c->cells = (Cells){.ctx = l->ctx,
                       .arena = l->arena,
                       .number = number,
                       .part = NO_PART,
                       .behind = NOBODY,
                       .known = arith_facts(l->ctx)};
    for (int i = 0; i < n; i++)
        if (array[i]->kind == V_MEM && array[i]->type->kind == T_ARRAY)
            VEC_PUSH(l->arena, &c->cells.arrays,
                     NEW_OF(l->arena, CellArray, array[i]->buffer, array[i]->offset,
                            array[i]->type));
    return c;
}

bool changes_look(Lower *l, const Block *block)
{
    Changes *c = l->changes;
    if (!c || !c->looks)
        return false;
    c->cells.kernel = l->kernel;
    c->cells.in_rows = l->item[1] && in_rows(l);
    cells_look(&c->cells, block);
    return true;
}

void changes_hide(Lower *l)
{
    if (l->changes)
        l->changes->cells.unknown = true;
}

bool changes_found(Lower *l, Changes *c)
{
    Cells *k = &c->cells;
    bool found = !l->failed && c->keeps && !k->unknown && k->stores.len &&
                 c->arms.len <= ARMS_MAX && k->loads.len * k->stores.len <= PAIRS_MAX;
    if (found)
        cells_items(k);
    found = found && find_levels(c) && (c->once || may_wait(c));
    if (found)
        find_ranges(c);
    c->looks = false;
    return found;
}

bool changes_any(const Changes *c, int level)
{
    bool any = c->looks;
    VEC_EACH_REF(const Arm *, arm, &c->arms)
        any |= arm->level == level;
    return any;
}

int changes_levels(const Changes *c)
{
    int levels = 1;
    VEC_EACH_REF(const Arm *, arm, &c->arms)
        levels = MAX(levels, arm->level + 1);
    return levels;
}

void changes_make(Changes *c, const Arith *now, int level, int lowest, int highest)
{
    c->now = now;
    c->level = level;
    c->lowest = lowest;
    c->highest = highest;
}

const Arith *changes_number(Lower *l)
{
    return at_step(l, l->changes->number, l->changes->level);
}

bool changes_keep(Lower *l, Kernel *kernel)
{
    Changes *c = l->changes;
    const bool keeps = c && c->level < c->highest;
    if (keeps)
        c->kernel = kernel;
    return keeps;
}

Kernel *changes_kept(Lower *l)
{
    Kernel *kernel = l->changes ? l->changes->kernel : NULL;
    if (kernel)
        l->changes->kernel = NULL;
    return kernel;
}
