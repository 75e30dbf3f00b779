// SPDX-License-Identifier: Apache-2.0
//
// Expressions to statements: eval gives the view of a value and writes only what must be
// in memory; gen writes a value into a destination.
//
//   method  destination-passing translation of the functional patterns (Lift, CGO 2017,
//           section 5; Atkey, Steuwer et al., "Strategy preserving compilation", 2017)

#include "kir/passes.h"
#include "lower/internal.h"

#include <string.h>

const View *lower_fail(Lower *l, Span span, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!l->failed)
        diag_verror(l->diags, span.source ? span : l->at, code, format, args);
    va_end(args);
    l->failed = true;
    return view_value(l, k_literal(l, 0, type_scalar(S_INT)));
}

// NULL: it is bound further inside.
static const Env *env_of(const Env *env, const Param *param)
{
    while (env && env->param != param)
        env = env->next;
    return env;
}

static const View *env_find(const Env *env, const Param *param)
{
    env = env_of(env, param);
    if (!env)
        BUG("parameter %s is not bound", param->name);
    return env->view;
}

const View *apply(Lower *l, const Expr *lambda, const Env *env, const View *const *arg)
{
    for (int i = 0; i < lambda->nparam; i++)
        env = env_bind_named(l, env, lambda->params[i], arg[i], lambda->arg[0]);
    return eval(l, lambda->arg[0], env);
}

// Scalars ---------------------------------------------------------------------------------

static const Arith *index_op(Lower *l, Op op, const KExpr *const *arg)
{
    ArithCtx *c = l->ctx;
    const Arith *a = arg[0]->arith, *b = op_info[op].args > 1 ? arg[1]->arith : NULL;
    int64_t divisor;
    switch (op) {
    case OP_ADD: return arith_add(c, a, b);
    case OP_SUB: return arith_sub(c, a, b);
    case OP_MUL: return arith_mul(c, a, b);
    case OP_NEG: return arith_mulc(c, a, -1);
    case OP_DIV:
        return arith_is_const(b, &divisor) && divisor > 0 ? arith_div(c, a, b) : NULL;
    case OP_MOD:
        return arith_is_const(b, &divisor) && divisor > 0 ? arith_mod(c, a, b) : NULL;
    case OP_MINIMUM: return arith_min(c, a, b);
    case OP_MAXIMUM: return arith_max(c, a, b);
    default: return NULL;
    }
}

static const KExpr *truth(Lower *l, bool value)
{
    return k_literal(l, value, type_scalar(S_BOOL));
}

// A comparison of indices as a condition that range analysis understands, or its value if
// that is known.
static const KExpr *index_compare(Lower *l, Op op, const KExpr *const *arg)
{
    const Arith *a = arg[0]->arith, *b = arg[1]->arith, *cond;
    int64_t lo, hi;
    if (op == OP_EQ || op == OP_NE) {
        arith_range(l->ctx, arith_sub(l->ctx, a, b), &lo, &hi);
        return lo > 0 || hi < 0 || lo == hi ? truth(l, (lo == hi && !lo) == (op == OP_EQ))
                                            : NULL;
    }
    switch (op) {
    case OP_LT: cond = arith_addc(l->ctx, arith_sub(l->ctx, b, a), -1); break;
    case OP_LE: cond = arith_sub(l->ctx, b, a); break;
    case OP_GT: cond = arith_addc(l->ctx, arith_sub(l->ctx, a, b), -1); break;
    case OP_GE: cond = arith_sub(l->ctx, a, b); break;
    default: return NULL;
    }
    arith_range(l->ctx, cond, &lo, &hi);
    if (hi < 0 || arith_nonneg(l->ctx, cond))
        return truth(l, hi >= 0);
    return k_cond(l, &cond, 1);
}

static const KExpr *both_conds(Lower *l, const KExpr *a, const KExpr *b)
{
    const Arith **cond = NEW_ARRAY(l->arena, const Arith *, a->n + b->n);
    for (int i = 0; i < a->n; i++)
        cond[i] = a->cond[i];
    for (int i = 0; i < b->n; i++)
        cond[a->n + i] = b->cond[i];
    return k_cond(l, cond, a->n + b->n);
}

// Whether an int cannot hold all that is known of it: then it wraps around, which symbolic
// integers do not.
static bool overflows(Lower *l, const Arith *a)
{
    int64_t lo, hi;
    arith_range(l->ctx, a, &lo, &hi);
    return (hi > INT32_MAX && hi != INT64_MAX) || (lo < INT32_MIN && lo != INT64_MIN);
}

// Integer literals and arithmetic on indices stay symbolic.
static const KExpr *eval_op_args(Lower *l, Op op, const Type *type, const KExpr *const *arg)
{
    int n = op_info[op].args;
    bool index = true;
    for (int i = 0; i < n; i++)
        index = index && arg[i]->kind == K_INDEX;
    if (index) {
        const Arith *folded = index_op(l, op, arg);
        if (folded && !(type->scalar == S_INT && overflows(l, folded)))
            return k_index(l, folded);
        const KExpr *cond = n == 2 ? index_compare(l, op, arg) : NULL;
        if (cond)
            return cond;
    }
    return k_op(l, op, type, arg, n);
}

// && and ||: the right argument is on a side of the left one.
static const KExpr *eval_logic(Lower *l, const Expr *expr, const Env *env)
{
    bool and = expr->op == OP_AND;
    Block right = {0}, nothing = {0};
    const KExpr *a = view_read(l, eval(l, expr->arg[0], env));
    if (a->kind == K_LITERAL)
        return (a->number != 0) == and? view_read(l, eval(l, expr->arg[1], env)) : a;
    const Side *sides = sides_new(l, a);
    Outside outside = side_open(l, &sides[!and], &right);
    const KExpr *b = view_read(l, eval(l, expr->arg[1], env));
    side_close(l, outside);
    if (right.len && !block_may_go_ahead(l, &right, 0))
        return and? k_choose(l, sides, &right, b, &nothing, truth(l, false))
                  : k_choose(l, sides, &nothing, truth(l, true), &right, b);
    block_leave_side(l, &right);
    for (int i = 0; i < right.len; i++)
        VEC_PUSH(l->arena, l->block, right.at[i]);
    if (and&&a->kind == K_COND && b->kind == K_COND)
        return both_conds(l, a, b);
    if (and&&b->kind == K_LITERAL && b->number != 0)
        return a;
    return k_op_sides(l, expr->op, expr->type, (const KExpr *[]){a, b}, 2, sides);
}

static const KExpr *broadcast(Lower *l, const KExpr *value, const Type *type)
{
    if (type->kind != T_VECTOR || value->type->kind == T_VECTOR)
        return value;
    const KExpr *lane[8];
    value = k_named(l, value, "s");
    for (int i = 0; i < type->width; i++)
        lane[i] = value;
    return k_vector(l, type, lane);
}

static const View *eval_op(Lower *l, const Expr *expr, const Env *env)
{
    if (expr->op == OP_SELECT)
        return eval_select(l, expr, env);
    if (expr->op == OP_AND || expr->op == OP_OR)
        return view_value(l, eval_logic(l, expr, env));
    const KExpr *arg[3];
    for (int i = 0; i < expr->narg; i++) {
        arg[i] = view_read(l, eval(l, expr->arg[i], env));
        OpTypes types = op_info[expr->op].types;
        if (types == TY_ARITH || types == TY_INTEGER || types == TY_FLOAT)
            arg[i] = broadcast(l, arg[i], expr->type);
        // An operation on bf16 is printed lane by lane.
        if (arg[i]->type->kind == T_VECTOR && arg[i]->type->scalar == S_BF16)
            arg[i] = k_named(l, arg[i], "v");
    }
    return view_value(l, eval_op_args(l, expr->op, expr->type, arg));
}

// A function of scalars applied to vectors: lane by lane.
static const KExpr *call_lanes(Lower *l, const Expr *expr, const KExpr *const *arg)
{
    const KExpr *lane[8], *part[32];
    const Type *scalar = type_scalar(expr->type->scalar);
    for (int j = 0; j < expr->type->width; j++) {
        for (int i = 0; i < expr->narg; i++)
            part[i] = arg[i]->type->kind == T_VECTOR ? k_lane(l, arg[i], j) : arg[i];
        lane[j] = k_call(l, expr->callee, scalar, part, expr->narg);
    }
    return k_vector(l, expr->type, lane);
}

static const View *eval_call(Lower *l, const Expr *expr, const Env *env)
{
    const KExpr *arg[32] = {0};
    if (expr->narg > COUNTOF(arg))
        return lower_fail(l, expr->span, "L013", "a function of more than 32 arguments");
    bool vector = expr->type->kind == T_VECTOR;
    bool lanes = vector && expr->callee->result->kind != T_VECTOR;
    for (int i = 0; i < expr->narg; i++) {
        arg[i] = view_read(l, eval(l, expr->arg[i], env));
        arg[i] = lanes ? k_named(l, arg[i], "v") : arg[i];
    }
    if (lanes)
        return view_value(l, call_lanes(l, expr, arg));
    const KExpr *call = k_call(l, expr->callee, expr->type, arg, expr->narg);
    return view_value(l, vector ? k_named(l, call, "v") : call);
}

static const View *eval_literal(Lower *l, const Expr *expr)
{
    const Type *type = expr->type;
    if (type->kind == T_SCALAR && type->scalar == S_INT)
        return view_value(l, k_index(l, arith_const(l->ctx, (int64_t)expr->number)));
    const KExpr *value = k_literal(l, expr->number, type_scalar(type->scalar));
    return view_value(l, broadcast(l, value, type));
}

// The number that an element of an input was read as before in the block; NULL: it was not.
static const Arith *read_before(const Lower *l, const KExpr *index)
{
    for (int i = l->block->len - 1; i >= 0 && index->kind == K_LOAD; i--) {
        const Stm *stm = l->block->at[i];
        const KExpr *e = stm->kind == ST_INT ? stm->value : NULL;
        if (e && e->kind == K_LOAD && e->buffer == index->buffer &&
            e->buffer->role == ROLE_INPUT && e->arith == index->arith && !e->side &&
            !index->side && type_equal(l->ctx, e->type, index->type))
            return stm->iter;
    }
    return NULL;
}

const Arith *value_index(Lower *l, const KExpr *index, Span span)
{
    if (index->kind == K_INDEX)
        return index->arith;
    if (!l->block) {
        lower_fail(l, span, "L014", "an index read from memory outside a kernel");
        return arith_const(l->ctx, 0);
    }
    const Arith *before = read_before(l, index);
    if (before)
        return before;
    Stm *stm = stm_add(l, ST_INT);
    stm->value = index;
    stm->iter = arith_var(l->ctx, name_new(l, "at"), NULL, NULL);
    return stm->iter;
}

const Arith *eval_index(Lower *l, const Expr *expr, const Env *env)
{
    return value_index(l, view_read(l, eval(l, expr, env)), expr->span);
}

// Patterns as values ------------------------------------------------------------------

static AddrSpace default_space(const Lower *l)
{
    if ((l->inside[LOOP_LCL] > l->lanes && !in_rows(l)) || l->inside[LOOP_GLB])
        return MEM_PRIVATE;
    return l->inside[LOOP_WRG] ? MEM_LOCAL : l->kernel ? MEM_PRIVATE : MEM_GLOBAL;
}

const View *materialise(Lower *l, const Expr *expr, const Env *env, AddrSpace space)
{
    if (space == MEM_PRIVATE && type_is_scalar(expr->type) && l->kernel)
        return view_value(l, k_named(l, view_read(l, eval(l, expr, env)), "t"));
    static const char *const name[] = {"temp", "tile", "own"};
    l->across = expr_is(expr, P_TRANSPOSE);
    const View *memory = buffers_new(l, expr->type, space, ROLE_TEMP, 0, name[space]);
    l->across = false;
    if (space == MEM_PRIVATE && is_shared_out(l, expr))
        memory = own_memory(l, expr, memory);
    gen(l, expr, env, memory);
    if (space != MEM_PRIVATE && l->kernel) {
        add_barrier(l);
        l->shared_tile = true;
    }
    return memory;
}

// At host level a reduction is a kernel of its own.
static const View *eval_reduce(Lower *l, const Expr *expr, const Env *env)
{
    if (!l->kernel)
        return materialise(l, expr, env, MEM_GLOBAL);
    const View *in = eval(l, expr->arg[1], env);
    if (in->kind == V_FOLD)
        return in->src;
    return gen_fold(l, expr, env, eval(l, expr->arg[0], env), in, NULL, NULL);
}

static bool is_bound_inside(const Expr *expr, const void *env)
{
    return expr->kind == E_PARAM && !env_of(env, expr->param);
}

// Is a number used, other than for which elements of arrays from outside are read?
static bool is_used_inside(const Expr *expr, const Param *number, const Env *env)
{
    while (expr->kind == E_GET && expr->arg[0]->kind == E_TUPLE)
        expr = expr->arg[0]->arg[expr->index];
    if (expr->kind == E_AT && !expr_find(expr->arg[0], is_bound_inside, env))
        return false;
    bool used = expr_is_use(expr, number) ||
                (expr->fun && is_used_inside(expr->fun->arg[0], number, env));
    for (int i = 0; !used && i < expr->narg; i++)
        used = is_used_inside(expr->arg[i], number, env);
    return used;
}

// Has a step to be known, as its number may say where in the state it is?
static bool wants_number(const Expr *loop, int64_t steps, const Env *env)
{
    enum { FEW_STEPS = 16 };
    return is_told_number(loop) &&
           (steps <= FEW_STEPS ||
            is_used_inside(loop->fun->arg[0], loop->fun->params[1], env));
}

// Does a state have an array, and no known integer that may say where in it a step is? Then
// steps need not be written out for it to be in registers.
static bool is_array_state(const Expr *loop, const View *state, bool known)
{
    bool tuple = state->kind == V_TUPLE && state->type->kind == T_TUPLE;
    for (int i = 0; tuple && i < state->type->n; i++)
        known |= view_is_known(state->item[i], NULL);
    return !known && type_holds_array(state->type);
}

// A state after a step that is written out. Integers that are known stay so: they say
// where in the arrays a step is.
static const View *next_state(Lower *l, const Expr *value, const Env *env)
{
    env = env_behind_lets(l, env, &value);
    if (value->kind == E_TUPLE) {
        const View **item = NEW_ARRAY(l->arena, const View *, value->narg);
        for (int i = 0; i < value->narg; i++)
            item[i] = next_state(l, value->arg[i], env);
        return view_tuple(l, value->type, item);
    }
    const View *known = type_is_integer(value->type) ? eval(l, value, env) : NULL;
    return known && view_is_known(known, NULL)
               ? known
               : materialise(l, value, env, default_space(l));
}

static const View *eval_iterate(Lower *l, const Expr *expr, const Env *env)
{
    LoopCounters counting;
    if (find_counters(l->ir, expr, &counting))
        return counted_result(l, &counting, env, eval(l, counting.loop, env));
    if (!l->kernel)
        return materialise(l, expr, env, MEM_GLOBAL);
    if (expr_find_pattern(expr->fun, P_MAPLCL))
        return gen_steps_together(l, expr, env);
    int64_t steps;
    const View *state = eval(l, expr->arg[0], env);
    if (!arith_is_const(expr->num[0], &steps) || steps > l->options->unroll_cap ||
        repeat_ends(expr) ||
        (steps > 1 && (l->options->rolled ||
                       (!l->options->item_loops &&
                        is_array_state(expr, state, wants_number(expr, steps, env))))))
        return gen_repeat(l, expr, env, state);
    for (int64_t i = 0; i < steps && !l->failed; i++) {
        const Env *step = step_env(l, env, expr, state, arith_const(l->ctx, i));
        state = next_state(l, expr->fun->arg[0], step);
    }
    return state;
}

// Views of a tuple's components, or of a zip's arrays.
static const View *eval_items(Lower *l, const Expr *expr, const Env *env)
{
    const View **item = NEW_ARRAY(l->arena, const View *, expr->narg);
    for (int i = 0; i < expr->narg; i++)
        item[i] = eval(l, expr->arg[i], env);
    return view_tuple(l, expr->type, item);
}

static const View *eval_pattern(Lower *l, const Expr *expr, const Env *env)
{
    const Expr *last = expr->narg ? expr->arg[expr->narg - 1] : NULL;
    switch (expr->pattern) {
    case P_ZIP: return eval_items(l, expr, env);
    case P_UNZIP: return view_components(l, expr->type, eval(l, last, env));
    case P_REDUCE:
    case P_REDSEQ:
    case P_REDMATRIX:
    case P_REDUNROLL: return eval_reduce(l, expr, env);
    case P_REDLANES: return gen_lanes(l, expr, env);
    case P_LOOKBACK: return gen_look_back(l, expr, env);
    case P_REDBYGLB:
    case P_REDBYOWN:
    case P_REDBYLCL: return eval_by_key(l, expr, env);
    case P_ITERATE:
    case P_ITERSTREAM: return eval_iterate(l, expr, env);
    case P_TOGLOBAL:
        return l->stream ? eval(l, last, env) : materialise(l, last, env, MEM_GLOBAL);
    case P_TOLOCAL: return materialise(l, last, env, MEM_LOCAL);
    case P_TOPRIVATE: return materialise(l, last, env, MEM_PRIVATE);
    case P_SCAN:
    case P_SCANSEQ:
    case P_REDUCEBY:
    case P_SCATTER:
    case P_MAPGLB:
    case P_MAPWRG:
    case P_MAPLCL:
    case P_MAPSEQ:
    case P_MAPUNROLL:
    case P_MAPSLIDE: return materialise(l, expr, env, default_space(l));
    default: return view_of(l, expr, env, last ? eval(l, last, env) : NULL);
    }
}

static const View *eval_let(Lower *l, const Expr *expr, const Env *env)
{
    const View *value = eval(l, expr->arg[0], env);
    return eval(l, expr->arg[1], env_bind_named(l, env, expr->param, value, expr->arg[1]));
}

static const View *eval_at(Lower *l, const Expr *expr, const Env *env)
{
    const View *array = eval(l, expr->arg[0], env);
    return view_elem(l, array, eval_index(l, expr->arg[1], env));
}

const View *eval(Lower *l, const Expr *expr, const Env *env)
{
    if (l->failed)
        return view_value(l, k_literal(l, 0, type_scalar(S_INT)));
    if (expr->span.source)
        l->at = expr->span;
    switch (expr->kind) {
    case E_LITERAL: return eval_literal(l, expr);
    case E_PARAM: return env_find(env, expr->param);
    case E_NUM: return view_value(l, k_index(l, expr->num[0]));
    case E_OP: return eval_op(l, expr, env);
    case E_CALL: return eval_call(l, expr, env);
    case E_LET: return eval_let(l, expr, env);
    case E_TUPLE: return eval_items(l, expr, env);
    case E_GET: return view_get(l, eval(l, expr->arg[0], env), expr->index);
    case E_AT: return eval_at(l, expr, env);
    case E_PATTERN: return eval_pattern(l, expr, env);
    case E_LAMBDA: break;
    }
    BUG("a function is not a value");
}

// Patterns into a destination ---------------------------------------------------------

typedef struct {
    const View *from, *out;
} Copy;

static void copy_step(Lower *l, void *user, const Arith *iter)
{
    Copy *copy = user;
    gen_copy(l, view_elem(l, copy->from, iter), view_elem(l, copy->out, iter));
}

static void store(Lower *l, const View *out, const KExpr *value)
{
    if (out->kind == V_VAR) {
        add_assign(l, out->var, value);
    } else if (out->kind == V_MEM) {
        const Arith *index = own_index(l, out->buffer, out->offset);
        add_store(l, out->buffer, index, value)->side = l->side;
    } else if (!l->failed) {
        lower_fail(l, span_none, "L016", "a vector is written where it is not contiguous");
    }
}

// Opens an `if` for the guards of a scalar destination; returns what they guard.
static const View *open_guards(Lower *l, const View *out)
{
    for (; out->kind == V_GUARD; out = out->src)
        guard_open(l, out->cond, out->ncond);
    return out;
}

// A guard that can never hold: an element of a tile that lies wholly beyond the array.
static bool never_written(Lower *l, const View *out)
{
    for (; out->kind == V_GUARD; out = out->src)
        for (int i = 0; i < out->ncond; i++) {
            int64_t lo, hi;
            arith_range(l->ctx, out->cond[i], &lo, &hi);
            if (hi < 0)
                return true;
        }
    return false;
}

static void copy_scalar(Lower *l, const View *from, const View *out)
{
    if (never_written(l, out))
        return;
    Outside outside = side_now(l);
    out = open_guards(l, out);
    store(l, out, view_read(l, from));
    side_close(l, outside);
}

// In registers, if every index is a constant.
static bool is_own(const View *view)
{
    return view->kind == V_MEM && view->buffer->space == MEM_PRIVATE;
}

void gen_copy(Lower *l, const View *from, const View *out)
{
    if (l->failed)
        return;
    if (out->kind == V_FOLD && out->nindex) {
        fold_element(l, out->expr, out->env, out->src, from);
    } else if (from->type->kind == T_TUPLE) {
        for (int i = 0; i < from->type->n; i++)
            gen_copy(l, view_get(l, from, i), view_get(l, out, i));
    } else if (from->type->kind == T_ARRAY && !own_copy(l, from, out)) {
        Copy copy = {from, out};
        bool unroll = (is_own(from) || is_own(out)) && !l->options->rolled;
        gen_loop(l, LOOP_SEQ, 0, unroll, from->type->len, copy_step, &copy);
    } else if (from->type->kind != T_ARRAY) {
        copy_scalar(l, from, out);
    }
}

// What one item of the group writes for all, after what they share.
static bool is_of_one_item(const Expr *expr)
{
    int64_t len;
    expr = expr_behind_lets(expr);
    const Expr *array = expr->kind == E_AT ? expr->arg[0] : NULL;
    return array && expr_is(array, P_MAPLCL) && arith_is_const(array->type->len, &len) &&
           len == 1;
}

typedef struct {
    const Expr *expr;
    const Env *env;
    const View *in, *out;
    int dims;          // left
    const Arith *from; // the first element; NULL: 0
} MapLoop;

static void gen_map_dim(Lower *l, MapLoop *map);

// May an element be read behind the guards of the result, where its indices are known to
// need no clamp? Not where items work together on it, nor where a fold would be read ahead.
static bool is_behind_guards(const Lower *l, const MapLoop *map)
{
    const Expr *body = map->expr->fun->arg[0];
    return l->kernel && map->dims == 1 && map->expr->pattern != P_MAPWRG &&
           type_is_scalar(map->in->type->elem) && type_is_scalar(body->type) &&
           !is_of_one_item(body) && !expr_is(body, P_REDUCE);
}

static void map_step(Lower *l, void *user, const Arith *iter)
{
    MapLoop map = *(MapLoop *)user;
    Outside outside = side_now(l);
    if (map.from)
        iter = arith_add(l->ctx, map.from, iter);
    map.out = view_elem(l, map.out, iter);
    if (is_behind_guards(l, &map)) {
        if (never_written(l, map.out))
            return;
        map.out = open_guards(l, map.out);
    }
    map.in = view_elem(l, map.in, iter);
    map.dims--;
    if (map.dims > 0) {
        gen_map_dim(l, &map);
        return;
    }
    const Expr *f = map.expr->fun;
    const Env *env = env_bind_named(l, map.env, f->params[0], map.in, f->arg[0]);
    (needs_lanes(l, map.expr) ? gen_by_lanes : gen)(l, f->arg[0], env, map.out);
    side_close(l, outside);
}

static void gen_map_dim(Lower *l, MapLoop *map)
{
    const Pattern p = map->expr->pattern;
    map->from = NULL;
    const Arith *part = changes_range(l, map->expr, map->dims, &map->from);
    const int before = l->block->len;
    gen_loop(l, pattern_loop(p), map->expr->par, p == P_MAPUNROLL,
             part ? part : map->in->type->len, map_step, map);
    if (l->block->len > before)
        changes_note(l, map->expr, map->dims, l->block->at[before]);
}

static void gen_map(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    if (!needs_lanes(l, expr) && gen_prefix_map(l, expr, NULL, env, out))
        return;
    MapLoop map = {expr, env, eval(l, expr->arg[0], env), out, expr->dims};
    if (l->failed || (!l->kernel && map_in_place(expr, map.in, out)))
        return;
    bool begun = kernel_begin(l, expr);
    gen_map_dim(l, &map);
    kernel_end(l, begun);
}

// Is something inside written to memory by itself, so that the layout around it must be
// turned to the writing side?
static bool produces(const Expr *expr)
{
    expr = expr_behind_lets(expr);
    if (expr->kind != E_PATTERN)
        return false;
    PatternGroup group = pattern_info[expr->pattern].group;
    if (group != G_VIEW && expr->pattern != P_MAP)
        return true;
    return expr->narg && produces(expr->arg[expr->narg - 1]);
}

// Register window: keeps the last `size` elements and loads `step` new ones an iteration.
typedef struct {
    const Expr *expr;
    const Env *env;
    const View *in, *window, *out;
    int64_t size, step;
} SlideLoop;

static void window_load(Lower *l, SlideLoop *s, const Arith *first, int64_t from,
                        int64_t to)
{
    for (int64_t k = from; k < to; k++)
        gen_copy(l, view_elem(l, s->in, arith_addc(l->ctx, first, k)),
                 view_elem(l, s->window, arith_const(l->ctx, k)));
}

static void slide_step(Lower *l, void *user, const Arith *iter)
{
    SlideLoop *s = user;
    const Arith *first = arith_mulc(l->ctx, iter, s->step);
    window_load(l, s, first, MAX(s->size - s->step, 0), s->size);
    const Expr *f = s->expr->fun;
    gen(l, f->arg[0], env_bind(l, s->env, f->params[0], s->window),
        view_elem(l, s->out, iter));
    for (int64_t k = 0; k + s->step < s->size; k++)
        gen_copy(l, view_elem(l, s->window, arith_const(l->ctx, k + s->step)),
                 view_elem(l, s->window, arith_const(l->ctx, k)));
}

static void gen_slide(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    SlideLoop s = {.expr = expr, .env = env, .in = eval(l, expr->arg[0], env), .out = out};
    if (!arith_is_const(expr->num[0], &s.size) || !arith_is_const(expr->num[1], &s.step)) {
        lower_fail(l, expr->span, "L017", "mapSeqSlide needs a constant window");
        return;
    }
    if (l->failed)
        return;
    bool begun = kernel_begin(l, expr);
    const Type *type = type_array(l->arena, expr->num[0], s.in->type->elem);
    s.window = buffers_new(l, type, MEM_PRIVATE, ROLE_TEMP, 0, "window");
    window_load(l, &s, arith_const(l->ctx, 0), 0, s.size - s.step);
    gen_loop(l, LOOP_SEQ, 0, false, expr->type->len, slide_step, &s);
    kernel_end(l, begun);
}

static void gen_view(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    const View *from = eval(l, expr, env);
    if (l->failed || from == out || in_place(from, out))
        return;
    bool begun = kernel_begin(l, expr);
    gen_copy(l, from, out);
    kernel_end(l, begun);
}

static void gen_zip(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    for (int i = 0; i < expr->narg; i++)
        gen(l, expr->arg[i], env, view_get(l, out, i));
}

static void gen_inverse(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    const Expr *arg = expr->arg[expr->narg - 1];
    const View *inverse = produces(arg) || expr->pattern == P_SCATTER
                              ? view_inverse(l, expr, env, out)
                              : NULL;
    if (inverse)
        gen(l, arg, env, inverse);
    else
        gen_view(l, expr, env, out);
}

static bool runs_threads(const Expr *expr, const void *none)
{
    return expr_is(expr, P_MAPGLB) || expr_is(expr, P_MAPWRG);
}

static void gen_pattern(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    switch (expr->pattern) {
    case P_MAP:
        if (layout_function(expr->fun) && produces(expr->arg[0]))
            gen_inverse(l, expr, env, out);
        else
            gen_map(l, expr, env, out);
        break;
    case P_MAPGLB:
    case P_MAPWRG:
    case P_MAPLCL:
    case P_MAPSEQ:
    case P_MAPUNROLL: gen_map(l, expr, env, out); break;
    case P_MAPSLIDE: gen_slide(l, expr, env, out); break;
    case P_SCAN:
    case P_SCANSEQ:
        if (l->kernel || expr->type->elem->kind != T_ARRAY ||
            !expr_find(expr->fun, runs_threads, NULL))
            gen_prefixes(l, expr, env, out);
        else
            gen_row_steps(l, expr, env, out);
        break;
    case P_REDUCE:
    case P_REDSEQ:
    case P_REDMATRIX:
    case P_REDUNROLL: gen_steps(l, expr, env, false, NULL, out); break;
    case P_ITERATE:
    case P_ITERSTREAM:
        if (l->kernel)
            gen_view(l, expr, env, out);
        else
            gen_iterate(l, expr, env, out);
        break;
    case P_REDUCEBY:
    case P_REDBYGLB:
    case P_REDBYOWN:
    case P_REDBYLCL:
        if (!gen_by_key(l, expr, env, out))
            gen_view(l, expr, env, out);
        break;
    case P_TOGLOBAL: gen(l, expr->arg[0], env, out); break;
    case P_ZIP: gen_zip(l, expr, env, out); break;
    default:
        if (view_inverts(expr))
            gen_inverse(l, expr, env, out);
        else
            gen_view(l, expr, env, out);
    }
}

// A scalar destination: its guards are opened first, so that they cover the computation.
static void gen_scalar(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    if (never_written(l, out))
        return;
    const bool changed = is_changed(l, out);
    const KExpr *value = changed ? NULL : fold_ahead(l, expr, env, out);
    Outside outside = side_now(l);
    out = open_guards(l, out);
    if (changed)
        gen_change(l, expr, env, out);
    else
        store(l, out, value ? value : view_read(l, eval(l, expr, env)));
    side_close(l, outside);
}

// The only element of an array of one that is computed: written in place.
static bool gen_only(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    int64_t len;
    if (expr->kind != E_AT || out->kind != V_MEM || !produces(expr->arg[0]) ||
        !arith_is_const(expr->arg[0]->type->len, &len) || len != 1)
        return false;
    const Type *type = expr->arg[0]->type;
    gen(l, expr->arg[0], env, view_mem(l, out->buffer, out->offset, type));
    return true;
}

static void gen_let(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    if (gen_prefix_map(l, expr->arg[1], expr, env, out))
        return;
    const View *value = let_place(l, expr, env, out);
    if (!value)
        value = eval(l, expr->arg[0], env);
    else if (is_time_loop(expr->arg[0]))
        value = gen_iterate(l, expr->arg[0], env, value);
    else
        gen(l, expr->arg[0], env, value);
    gen(l, expr->arg[1], env_bind_named(l, env, expr->param, value, expr->arg[1]), out);
}

void gen(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    if (l->failed)
        return;
    if (out->kind == V_FOLD && out->nindex) {
        gen_copy(l, eval(l, expr, env), out);
        return;
    }
    const View *place = out;
    while (place->kind == V_GUARD)
        place = place->src;
    if (l->kernel && place->kind == V_MEM && is_of_one_item(expr)) {
        // What the items share is done by all of them, whatever guards the result.
        Outside outside = side_now(l);
        if (expr->kind == E_LET)
            gen_let(l, expr, env, out);
        else
            gen_only(l, expr, env, open_guards(l, out));
        side_close(l, outside);
        return;
    }
    if (expr->kind == E_LET && (!l->kernel || !type_is_scalar(expr->type)))
        gen_let(l, expr, env, out);
    else if (expr->kind == E_PATTERN && !(l->kernel && type_is_scalar(expr->type)))
        gen_pattern(l, expr, env, out);
    else if (type_is_scalar(expr->type) && l->kernel)
        gen_scalar(l, expr, env, out);
    else if (expr->kind == E_TUPLE)
        gen_zip(l, expr, env, out);
    else if (l->kernel ||
             !(gen_only(l, expr, env, out) || gen_component(l, expr, env, out)))
        gen_view(l, expr, env, out);
}
