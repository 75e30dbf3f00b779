// SPDX-License-Identifier: Apache-2.0
//
// The parameterised derivation: see derive.h. One walk over the host level of the program
// replaces each abstract map, reduction and stage by a lowered form whose holes are the
// parameters of the point.

#include "plan/derive_parts.h"

#include <stdlib.h>
#include <string.h>

// The point, as the walk wants it; dimension 0 is the outermost (slowest) one.
typedef struct {
    Ir *ir;
    const Derivation *derivation;
    bool tiled, separate, unroll;
    int64_t local[DIMS_MAX], block[DIMS_MAX],
        cyclic[DIMS_MAX]; // by thread dimension: x, y, z
    int64_t groups;
    bool window; // walking the argument of a slide
} Choice;

// Building blocks ---------------------------------------------------------------------

static Expr *pattern1(Ir *ir, Pattern p, int dims, int par, const Arith *const *nums,
                      Expr *fun, Expr *arg)
{
    return expr_pattern(ir, p, dims, par, nums, fun, &arg, 1);
}

static Expr *identity(Ir *ir)
{
    Param *p = param_new(ir, "e", NULL);
    return expr_lambda(ir, &p, 1, expr_param(ir, p));
}

// map_{k} (map_{k+1} ( ... f)) over the outer dims of an array; par counts down to 0, so
// that the innermost dimension runs along x.
static Expr *map_nest(Ir *ir, Pattern p, int dims, Expr *f, Expr *in)
{
    if (dims == 1)
        return pattern1(ir, p, 1, 0, NULL, f, in);
    Param *row = param_new(ir, "r", NULL);
    Expr *inner = map_nest(ir, p, dims - 1, f, expr_param(ir, row));
    return pattern1(ir, p, 1, dims - 1, NULL, expr_lambda(ir, &row, 1, inner), in);
}

// Applies a layout pattern under `depth` maps: map(map(... p)).
static Expr *map_layout(Ir *ir, int depth, Pattern p, Expr *fun, Expr *in)
{
    if (depth == 0)
        return pattern1(ir, p, 1, 0, NULL, fun, in);
    Param *x = param_new(ir, "r", NULL);
    Expr *inner = pattern1(ir, p, 1, 0, NULL, fun, expr_param(ir, x));
    return pattern1(ir, P_MAP, depth, 0, NULL, expr_lambda(ir, &x, 1, inner), in);
}

static const Arith *constant(Ir *ir, int64_t value)
{
    return arith_const(ir->arith, value);
}

static const Arith *len_of(const Expr *expr, int dim)
{
    return type_elem(expr->type, dim)->len;
}

// What must be added to a length so that n divides it.
static const Arith *missing(Ir *ir, const Arith *len, int64_t n)
{
    return arith_mod(ir->arith, arith_mulc(ir->arith, len, -1), constant(ir, n));
}

// Extends an array at its far ends, so that tiles of the given shape cover it; the copies
// of edge elements are read by nobody whose result is kept.
static Expr *pad_tail(Ir *ir, int dims, const int64_t *tile, const Arith *const *len,
                      Expr *in)
{
    const Arith *num[NUMS_MAX];
    bool needed = false;
    for (int k = 0; k < dims; k++) {
        num[2 * k] = constant(ir, 0);
        num[2 * k + 1] = missing(ir, len[k], tile[k]);
        needed |= num[2 * k + 1] != num[2 * k];
    }
    return needed ? pattern1(ir, P_PAD, dims, 0, num, NULL, in) : in;
}

static void unroll_inner(Expr *expr)
{
    if (inner_length(expr))
        expr->pattern = P_REDUNROLL;
    if (expr->fun)
        unroll_inner(expr->fun);
    for (int i = 0; i < expr->narg; i++)
        unroll_inner(expr->arg[i]);
}

// Nests -------------------------------------------------------------------------------

typedef struct {
    Choice *c;
    int dims;
    Expr *f, *in;               // the map and its argument
    const Arith *len[DIMS_MAX]; // of the output
    int64_t item[DIMS_MAX];     // outputs of a work-item
    int64_t tile[DIMS_MAX];     // outputs of a group
} Nest;

static int x_of(const Nest *nest, int dim)
{
    return nest->dims - 1 - dim; // thread dimension of array dimension dim
}

// The permutation that gives work-item l the elements l*block..., local*block apart:
// position (l, c, b) is element (c, l, b) of the tile (paper 001, section 4: cyclic
// merging).
static Expr *cyclic_order(Ir *ir, int64_t local, int64_t cyclic, int64_t block)
{
    Param *i = param_new(ir, "i", NULL);
    Expr *at = expr_param(ir, i);
    Expr *l =
        expr_op(ir, OP_DIV, at, expr_literal(ir, (double)(cyclic * block), false), NULL);
    Expr *rest = expr_op(ir, OP_MOD, expr_param(ir, i),
                         expr_literal(ir, (double)(cyclic * block), false), NULL);
    Expr *c = expr_op(ir, OP_DIV, rest, expr_literal(ir, (double)block, false), NULL);
    Expr *b = expr_op(ir, OP_MOD, expr_param(ir, i), expr_literal(ir, (double)block, false),
                      NULL);
    Expr *far =
        expr_op(ir, OP_MUL, c, expr_literal(ir, (double)(local * block), false), NULL);
    Expr *near = expr_op(ir, OP_MUL, l, expr_literal(ir, (double)block, false), NULL);
    Expr *to = expr_op(ir, OP_ADD, expr_op(ir, OP_ADD, far, near, NULL), b, NULL);
    return expr_lambda(ir, &i, 1, to);
}

static Expr *reorder(Nest *nest, Pattern p, Expr *tile)
{
    Choice *c = nest->c;
    for (int k = 0; k < nest->dims; k++) {
        int x = x_of(nest, k);
        if (c->cyclic[x] > 1 && c->local[x] > 1)
            tile = map_layout(c->ir, k, p,
                              cyclic_order(c->ir, c->local[x], c->cyclic[x], c->block[x]),
                              tile);
    }
    return tile;
}

static void nums_of(Ir *ir, int dims, const int64_t *n, const Arith **num)
{
    for (int k = 0; k < dims; k++)
        num[k] = constant(ir, n[k]);
}

// One group's outputs from its tile of inputs.
static Expr *group_work(Nest *nest, Expr *tile)
{
    Ir *ir = nest->c->ir;
    const Arith *num[DIMS_MAX];
    nums_of(ir, nest->dims, nest->item, num);
    Param *item = param_new(ir, "item", NULL);
    Expr *outputs = map_nest(ir, P_MAPUNROLL, nest->dims, nest->f, expr_param(ir, item));
    Expr *items =
        pattern1(ir, P_SPLIT, nest->dims, 0, num, NULL, reorder(nest, P_GATHER, tile));
    Expr *work =
        map_nest(ir, P_MAPLCL, nest->dims, expr_lambda(ir, &item, 1, outputs), items);
    return reorder(nest, P_SCATTER, pattern1(ir, P_JOIN, nest->dims, 0, NULL, NULL, work));
}

static Expr *groups_over(Nest *nest, Param *tile, Expr *work, Expr *tiles)
{
    Ir *ir = nest->c->ir;
    Expr *groups =
        map_nest(ir, P_MAPWRG, nest->dims, expr_lambda(ir, &tile, 1, work), tiles);
    return pattern1(ir, P_JOIN, nest->dims, 0, NULL, NULL, groups);
}

static Expr *crop(Nest *nest, Expr *padded)
{
    bool exact = true;
    for (int k = 0; k < nest->dims; k++)
        exact &=
            missing(nest->c->ir, nest->len[k], nest->tile[k]) == constant(nest->c->ir, 0);
    return exact ? padded
                 : pattern1(nest->c->ir, P_TAKE, nest->dims, 0, nest->len, NULL, padded);
}

static Expr *merged(Nest *nest)
{
    Ir *ir = nest->c->ir;
    const Arith *num[DIMS_MAX];
    nums_of(ir, nest->dims, nest->tile, num);
    Param *tile = param_new(ir, "tile", NULL);
    Expr *covered = pad_tail(ir, nest->dims, nest->tile, nest->len, nest->in);
    Expr *tiles = pattern1(ir, P_SPLIT, nest->dims, 0, num, NULL, covered);
    return crop(nest,
                groups_over(nest, tile, group_work(nest, expr_param(ir, tile)), tiles));
}

static bool has_window(const Expr *in, int dims)
{
    if (is_window(in, dims))
        return true;
    bool found = false;
    for (int i = 0; is_zip(in, dims) && i < in->narg; i++)
        found |= is_window(in->arg[i], dims);
    return found;
}

// Overlapped tiles of one component: the group's outputs and the halo around them.
static Expr *tiles_of(Nest *nest, Expr *part)
{
    Ir *ir = nest->c->ir;
    const Arith *num[NUMS_MAX];
    if (!is_window(part, nest->dims)) {
        nums_of(ir, nest->dims, nest->tile, num);
        return pattern1(ir, P_SPLIT, nest->dims, 0, num, NULL,
                        pad_tail(ir, nest->dims, nest->tile, nest->len, part));
    }
    for (int k = 0; k < nest->dims; k++) {
        num[2 * k] = arith_addc(ir->arith, part->num[2 * k], nest->tile[k] - 1);
        num[2 * k + 1] = constant(ir, nest->tile[k]);
    }
    Expr *covered = pad_tail(ir, nest->dims, nest->tile, nest->len, part->arg[0]);
    return pattern1(ir, P_SLIDE, nest->dims, 0, num, NULL, covered);
}

// What the group computes from: windows over a copy in local memory, or the tile itself.
static Expr *staged(Nest *nest, const Expr *part, Expr *tile, Param **local, Expr **copy)
{
    *copy = NULL;
    if (!is_window(part, nest->dims))
        return tile;
    Ir *ir = nest->c->ir;
    *local = param_new(ir, "staged", NULL);
    Expr *copied = map_nest(ir, P_MAPLCL, nest->dims, identity(ir), tile);
    *copy = pattern1(ir, P_TOLOCAL, 1, 0, NULL, NULL, copied);
    return pattern1(ir, P_SLIDE, nest->dims, 0, part->num, NULL, expr_param(ir, *local));
}

enum { PARTS_MAX = 16 };

static Expr *tiled(Nest *nest)
{
    Ir *ir = nest->c->ir;
    bool zipped = is_zip(nest->in, nest->dims);
    int n = zipped ? nest->in->narg : 1;
    Expr *tiles[PARTS_MAX], *inside[PARTS_MAX], *copy[PARTS_MAX];
    Param *local[PARTS_MAX], *tile = param_new(ir, "tile", NULL);
    for (int i = 0; i < n; i++) {
        Expr *part = zipped ? nest->in->arg[i] : nest->in, *own = expr_param(ir, tile);
        tiles[i] = tiles_of(nest, part);
        inside[i] =
            staged(nest, part, zipped ? expr_get(ir, own, i) : own, &local[i], &copy[i]);
    }
    Expr *in =
        zipped ? expr_pattern(ir, P_ZIP, nest->dims, 0, NULL, NULL, inside, n) : inside[0];
    Expr *work = group_work(nest, in);
    for (int i = n - 1; i >= 0; i--)
        if (copy[i])
            work = expr_let(ir, local[i], copy[i], work);
    Expr *all =
        zipped ? expr_pattern(ir, P_ZIP, nest->dims, 0, NULL, NULL, tiles, n) : tiles[0];
    return crop(nest, groups_over(nest, tile, work, all));
}

static bool one_each(const Nest *nest)
{
    for (int k = 0; k < nest->dims; k++)
        if (nest->item[k] != 1)
            return false;
    return true;
}

// A map over all its dimensions.
static Expr *derive_nest(Choice *c, Expr *map)
{
    Nest nest = {.c = c, .dims = map->dims, .f = map->fun, .in = map->arg[0]};
    for (int k = 0; k < nest.dims; k++) {
        int x = x_of(&nest, k);
        nest.len[k] = len_of(map, k);
        nest.item[k] = c->block[x] * c->cyclic[x];
        nest.tile[k] = nest.item[k] * c->local[x];
    }
    bool small = is_zip(nest.in, nest.dims) ? nest.in->narg <= PARTS_MAX : true;
    if (c->tiled && small && has_window(nest.in, nest.dims))
        return tiled(&nest);
    return one_each(&nest) ? map_nest(c->ir, P_MAPGLB, nest.dims, nest.f, nest.in)
                           : merged(&nest);
}

static void set_parallel(Expr *map, int depth)
{
    map->pattern = P_MAPGLB;
    map->par = depth - 1;
    if (depth > 1)
        set_parallel(tail_of_lets(map->fun->arg[0]), depth - 1);
}

static Expr *derive_map(Choice *c, Expr *map)
{
    if (c->unroll)
        unroll_inner(map->fun);
    int depth = map->dims == 1 ? nested_depth(map) : 1;
    if (depth <= 1)
        return derive_nest(c, map);
    set_parallel(map, depth);
    return map;
}

// Reductions --------------------------------------------------------------------------

// reduce(\\acc x -> acc op g(x), z) is reduce(op, z) of map(g): what is regrouped is op.
static void split_map(Ir *ir, Expr *reduce)
{
    Expr *body = reduce->fun->arg[0];
    const Type *type = reduce->type;
    Param *x = reduce->fun->params[1];
    Expr *map = pattern1(ir, P_MAP, 1, 0, NULL, expr_lambda(ir, &x, 1, body->arg[1]),
                         reduce->arg[1]);
    map->type = type_array(ir->arena, reduce->arg[1]->type->len, type);
    Param *part = param_new(ir, "part", NULL);
    Param *both[] = {reduce->fun->params[0], part};
    Expr *combined = expr_op(ir, body->op, body->arg[0], expr_param(ir, part), NULL);
    reduce->fun = expr_lambda(ir, both, 2, combined);
    reduce->arg[1] = map;
}

static Expr *fold(Ir *ir, const Expr *reduce, Expr *in)
{
    Expr *arg[] = {expr_clone(ir, reduce->arg[0]), in};
    return expr_pattern(ir, P_REDSEQ, 1, 0, NULL, expr_clone(ir, reduce->fun), arg, 2);
}

// Reduces each of `groups` equal parts in a work-group: every work-item folds the elements
// `local` apart, then one folds what they found. The result has one element a group.
static Expr *group_reduce(Choice *c, const Expr *reduce, Expr *in, const Arith *len,
                          int64_t groups)
{
    Ir *ir = c->ir;
    int64_t local = c->local[0], all = groups * local;
    const Arith *chunk = arith_ceil_div(ir->arith, len, constant(ir, all));
    const Arith *num[] = {constant(ir, 0), missing(ir, len, all)};
    if (num[1] != num[0]) {
        Expr *arg[] = {expr_clone(ir, reduce->arg[0]), in};
        in = expr_pattern(ir, P_PAD, 1, 0, num, NULL, arg, 2);
        in->mode = PAD_CONSTANT;
    }
    const Arith *part_len = arith_mulc(ir->arith, chunk, local);
    const Arith *one = constant(ir, 1), *stride = constant(ir, local);
    Param *part = param_new(ir, "part", NULL), *own = param_new(ir, "own", NULL);
    Param *found = param_new(ir, "found", NULL), *k = param_new(ir, "k", NULL);
    Expr *rows = pattern1(ir, P_SPLIT, 1, 0, &stride, NULL, expr_param(ir, part));
    Expr *columns = pattern1(ir, P_TRANSPOSE, 1, 0, NULL, NULL, rows);
    Expr *folds =
        pattern1(ir, P_MAPLCL, 1, 0, NULL,
                 expr_lambda(ir, &own, 1, fold(ir, reduce, expr_param(ir, own))), columns);
    Expr *index = expr_pattern(ir, P_ARRAY, 1, 0, &one,
                               expr_lambda(ir, &k, 1, expr_param(ir, k)), NULL, 0);
    Param *only = param_new(ir, "only", NULL);
    Expr *last =
        pattern1(ir, P_MAPLCL, 1, 0, NULL,
                 expr_lambda(ir, &only, 1, fold(ir, reduce, expr_param(ir, found))), index);
    Expr *work =
        expr_let(ir, found, pattern1(ir, P_TOLOCAL, 1, 0, NULL, NULL, folds), last);
    Expr *parts = pattern1(ir, P_SPLIT, 1, 0, &part_len, NULL, in);
    Expr *all_groups =
        pattern1(ir, P_MAPWRG, 1, 0, NULL, expr_lambda(ir, &part, 1, work), parts);
    return pattern1(ir, P_JOIN, 1, 0, NULL, NULL, all_groups);
}

static Expr *derive_reduce(Choice *c, Expr *reduce)
{
    if (!may_regroup(reduce))
        return reduce;
    Ir *ir = c->ir;
    if (folds_mapped(reduce))
        split_map(ir, reduce);
    const Arith *len = len_of(reduce->arg[1], 0);
    Expr *first = pattern1(ir, P_TOGLOBAL, 1, 0, NULL, NULL,
                           group_reduce(c, reduce, reduce->arg[1], len, c->groups));
    if (c->groups == 1)
        return expr_at(ir, first, expr_literal(ir, 0, false));
    Expr *second = pattern1(ir, P_TOGLOBAL, 1, 0, NULL, NULL,
                            group_reduce(c, reduce, first, constant(ir, c->groups), 1));
    return expr_at(ir, second, expr_literal(ir, 0, false));
}

// The host level ----------------------------------------------------------------------

static Expr *walk(Choice *c, Expr *expr, bool root);

static Expr *to_global(Ir *ir, Expr *stage, const Type *type)
{
    Expr *stored = pattern1(ir, P_TOGLOBAL, 1, 0, NULL, NULL, stage);
    stored->type = type;
    return stored;
}

// A map whose elements are read by several windows: a stage of its own, or computed again
// by each.
static void walk_stages(Choice *c, Expr *expr)
{
    bool window = c->window;
    for (int i = 0; i < expr->narg; i++) {
        Expr *arg = expr->arg[i];
        c->window = expr->pattern == P_SLIDE || (window && !is_map(expr));
        if (is_map(arg) && c->separate && c->window) {
            walk_stages(c, arg);
            expr->arg[i] = to_global(c->ir, derive_map(c, arg), arg->type);
        } else {
            expr->arg[i] = walk(c, arg, false);
        }
    }
    c->window = window;
}

// A pure re-layout of inputs is copied in parallel.
static Expr *parallel_copy(Choice *c, Expr *expr)
{
    int dims = array_dims(expr->type);
    if (dims == 0)
        return expr;
    Expr *map = pattern1(c->ir, P_MAP, dims, 0, NULL, identity(c->ir), expr);
    map->type = expr->type;
    return derive_map(c, map);
}

static Expr *walk_pattern(Choice *c, Expr *expr, bool root)
{
    if (expr->pattern == P_ITERATE) {
        walk_stages(c, expr);
        expr->fun->arg[0] = walk(c, expr->fun->arg[0], true);
        return expr;
    }
    if (root && pattern_info[expr->pattern].group == G_VIEW && writes_itself(expr)) {
        expr->arg[0] = walk(c, expr->arg[0], true);
        return expr;
    }
    walk_stages(c, expr);
    if (expr->pattern == P_REDUCE)
        return derive_reduce(c, expr);
    if (expr->pattern == P_MAP && root)
        return derive_map(c, expr);
    if (root && expr->pattern != P_SCAN)
        return parallel_copy(c, expr);
    return expr;
}

// Root: the expression is written to memory as it stands.
static Expr *walk(Choice *c, Expr *expr, bool root)
{
    switch (expr->kind) {
    case E_LET: {
        bool stage = is_map(expr->arg[0]) && c->separate;
        expr->arg[0] = walk(c, expr->arg[0], stage);
        if (stage)
            expr->arg[0] = to_global(c->ir, expr->arg[0], expr->param->type);
        expr->arg[1] = walk(c, expr->arg[1], root);
        return expr;
    }
    case E_TUPLE:
        for (int i = 0; i < expr->narg; i++)
            expr->arg[i] = walk(c, expr->arg[i], root);
        return expr;
    case E_PATTERN: return walk_pattern(c, expr, root);
    case E_OP:
    case E_CALL:
    case E_GET:
    case E_AT:
        for (int i = 0; i < expr->narg; i++)
            expr->arg[i] = walk(c, expr->arg[i], false);
        return root && expr->type->kind == T_ARRAY ? parallel_copy(c, expr) : expr;
    case E_PARAM:
        return root && expr->type->kind == T_ARRAY ? parallel_copy(c, expr) : expr;
    case E_LITERAL:
    case E_NUM:
    case E_LAMBDA: break;
    }
    return expr;
}

// Entry -------------------------------------------------------------------------------

static Choice choice_of(const Derivation *d, const Point *point)
{
    Choice c = {.ir = d->program->ir, .derivation = d};
    c.tiled = derive_word(d, point, "scheme", "tiled");
    c.unroll = derive_word(d, point, "inner", "unroll");
    c.separate = derive_word(d, point, "stages", "separate");
    c.groups =
        space_find(d->space, "groups") >= 0 ? space_int(d->space, point, "groups") : 1;
    for (int x = 0; x < DIMS_MAX; x++) {
        c.local[x] = derive_number(d, point, "l", x);
        c.block[x] = derive_number(d, point, "b", x);
        c.cyclic[x] = derive_number(d, point, "c", x);
    }
    return c;
}

Expr *derive_body(const Derivation *d, const Point *point, Diags *diags)
{
    Ir *ir = d->program->ir;
    Choice c = choice_of(d, point);
    Expr *body = expr_clone(ir, d->program->main->body);
    if (!d->shape.lowered)
        body = walk(&c, body, true);
    return ir_infer_expr(ir, body, diags) ? body : NULL;
}
