// SPDX-License-Identifier: Apache-2.0
//
// Expressions: constructors, copying, replacing, hashing, comparing.
//
// Bound names are objects (Param), not strings, so that two binders never clash however
// they are spelt. Copies bind fresh params; hash and equality see bound params as the
// number of binders between use and binder (de Bruijn), so names do not matter there.
// Called functions are compared by name: names are unique within a program.

#include "ir/ir.h"

#include <string.h>

// Constructors ------------------------------------------------------------------------

Param *param_new(Ir *ir, const char *name, const Type *type)
{
    return NEW_OF(ir->arena, Param, .name = name, .type = type, .id = ir->next_id++);
}

Expr *expr_new(Ir *ir, ExprKind kind, Span span)
{
    Expr *expr = NEW(ir->arena, Expr);
    expr->kind = kind;
    expr->span = span;
    expr->dims = 1;
    return expr;
}

// Sets the arguments; the span becomes what they cover.
static Expr *with_args(Ir *ir, Expr *expr, Expr *const *arg, int n)
{
    expr->arg = NEW_ARRAY(ir->arena, Expr *, n);
    expr->narg = n;
    for (int i = 0; i < n; i++) {
        expr->arg[i] = arg[i];
        expr->span = span_join(expr->span, arg[i]->span);
    }
    return expr;
}

Expr *expr_param(Ir *ir, Param *param)
{
    Expr *expr = expr_new(ir, E_PARAM, span_none);
    expr->param = param;
    expr->type = param->type;
    return expr;
}

Expr *expr_literal(Ir *ir, double number, bool floating)
{
    Expr *expr = expr_new(ir, E_LITERAL, span_none);
    expr->number = number;
    expr->floating = floating;
    return expr;
}

Expr *expr_num(Ir *ir, const Arith *num)
{
    Expr *expr = expr_new(ir, E_NUM, span_none);
    expr->num[0] = num;
    return expr;
}

Expr *expr_op(Ir *ir, Op op, Expr *a, Expr *b, Expr *c)
{
    Expr *expr = expr_new(ir, E_OP, span_none);
    expr->op = op;
    int n = c ? 3 : b ? 2 : 1;
    if (n != op_info[op].args)
        BUG("%s of %d arguments", op_info[op].text, n);
    return with_args(ir, expr, (Expr *[]){a, b, c}, n);
}

Expr *expr_get(Ir *ir, Expr *tuple, int index)
{
    Expr *expr = expr_new(ir, E_GET, span_none);
    expr->index = index;
    return with_args(ir, expr, &tuple, 1);
}

Expr *expr_at(Ir *ir, Expr *array, Expr *index)
{
    return with_args(ir, expr_new(ir, E_AT, span_none), (Expr *[]){array, index}, 2);
}

Expr *expr_let(Ir *ir, Param *param, Expr *value, Expr *body)
{
    Expr *expr = expr_new(ir, E_LET, span_none);
    expr->param = param;
    return with_args(ir, expr, (Expr *[]){value, body}, 2);
}

Expr *expr_tuple(Ir *ir, Expr **item, int n)
{
    return with_args(ir, expr_new(ir, E_TUPLE, span_none), item, n);
}

Expr *expr_lambda(Ir *ir, Param **params, int n, Expr *body)
{
    Expr *expr = expr_new(ir, E_LAMBDA, span_none);
    expr->nparam = n;
    expr->params = COPY_ARRAY(ir->arena, params, n);
    return with_args(ir, expr, &body, 1);
}

Expr *expr_pattern(Ir *ir, Pattern pattern, int dims, int par, const Arith *const *nums,
                   Expr *fun, Expr **arg, int narg)
{
    Expr *expr = expr_new(ir, E_PATTERN, span_none);
    expr->pattern = pattern;
    expr->dims = dims;
    expr->par = par;
    expr->nnum = nums ? dims * pattern_info[pattern].num : 0;
    for (int i = 0; i < expr->nnum; i++)
        expr->num[i] = nums[i];
    expr->fun = fun;
    return with_args(ir, expr, arg, narg);
}

// Copying -----------------------------------------------------------------------------

// What a param of the original stands for in the copy, innermost first: another param,
// or an expression.
typedef struct Rename Rename;
struct Rename {
    const Param *from;
    Param *to;
    const Expr *value;
    const Rename *outer;
};

static Param *copy_param(Ir *ir, const Param *param)
{
    Param *copy = param_new(ir, param->name, param->type);
    copy->span = param->span;
    return copy;
}

static Expr *copy(Ir *ir, const Expr *expr, const Rename *env);

static Expr *copy_use(Ir *ir, const Expr *expr, const Rename *env)
{
    while (env && env->from != expr->param)
        env = env->outer;
    if (env && env->value)
        return expr_clone(ir, env->value);
    Expr *use = arena_copy(ir->arena, expr, sizeof(Expr));
    if (env)
        use->param = env->to;
    return use;
}

// Copies a lambda's params from the i-th on, then its body under all of them.
static void copy_lambda(Ir *ir, Expr *to, const Expr *from, int i, const Rename *env)
{
    if (i == from->nparam) {
        to->arg[0] = copy(ir, from->arg[0], env);
        return;
    }
    to->params[i] = copy_param(ir, from->params[i]);
    Rename rename = {from->params[i], to->params[i], NULL, env};
    copy_lambda(ir, to, from, i + 1, &rename);
}

static Expr *copy(Ir *ir, const Expr *expr, const Rename *env)
{
    if (expr->kind == E_PARAM)
        return copy_use(ir, expr, env);
    Expr *to = arena_copy(ir->arena, expr, sizeof(Expr));
    to->arg = NEW_ARRAY(ir->arena, Expr *, expr->narg);
    if (expr->kind == E_LAMBDA) {
        to->params = NEW_ARRAY(ir->arena, Param *, expr->nparam);
        copy_lambda(ir, to, expr, 0, env);
    } else if (expr->kind == E_LET) {
        to->param = copy_param(ir, expr->param);
        Rename rename = {expr->param, to->param, NULL, env};
        to->arg[0] = copy(ir, expr->arg[0], env);
        to->arg[1] = copy(ir, expr->arg[1], &rename);
    } else {
        for (int i = 0; i < expr->narg; i++)
            to->arg[i] = copy(ir, expr->arg[i], env);
        to->fun = expr->fun ? copy(ir, expr->fun, env) : NULL;
    }
    return to;
}

Expr *expr_clone(Ir *ir, const Expr *expr)
{
    return copy(ir, expr, NULL);
}

Expr *expr_replace(Ir *ir, const Expr *expr, const Param *param, const Expr *value)
{
    Rename rename = {param, NULL, value, NULL};
    return copy(ir, expr, &rename);
}

Expr *expr_replace_all(Ir *ir, const Expr *expr, Param *const *param,
                       const Expr *const *value, int n)
{
    Rename *rename = NEW_ARRAY(ir->arena, Rename, n + 1), *env = NULL;
    for (int i = 0; i < n; env = &rename[i++])
        rename[i] = (Rename){param[i], NULL, value[i], env};
    return copy(ir, expr, env);
}

// Walking -----------------------------------------------------------------------------

const Expr *expr_find(const Expr *expr, ExprTest *holds, const void *of)
{
    if (holds(expr, of))
        return expr;
    const Expr *found = expr->fun ? expr_find(expr->fun, holds, of) : NULL;
    for (int i = 0; i < expr->narg && !found; i++)
        found = expr_find(expr->arg[i], holds, of);
    return found;
}

static bool is_pattern(const Expr *expr, const void *pattern)
{
    return expr_is(expr, *(const Pattern *)pattern);
}

const Expr *expr_find_pattern(const Expr *expr, Pattern pattern)
{
    return expr_find(expr, is_pattern, &pattern);
}

bool expr_any_here(const Expr *expr, ExprTest *holds, const void *of)
{
    bool found = holds(expr, of);
    for (int i = 0; i < expr->narg && !found; i++)
        found = expr_any_here(expr->arg[i], holds, of);
    return found;
}

int expr_count(const Expr *expr, ExprTest *holds, const void *of)
{
    int n = holds(expr, of) + (expr->fun ? expr_count(expr->fun, holds, of) : 0);
    for (int i = 0; i < expr->narg; i++)
        n += expr_count(expr->arg[i], holds, of);
    return n;
}

bool expr_calls(const Expr *expr, ExprTest *holds, const void *of)
{
    return expr->kind == E_CALL &&
           (!expr->callee->body || expr_find(expr->callee->body, holds, of));
}

void expr_each(const Expr *expr, void (*visit)(const Expr *expr, void *user), void *user)
{
    visit(expr, user);
    if (expr->fun)
        expr_each(expr->fun, visit, user);
    for (int i = 0; i < expr->narg; i++)
        expr_each(expr->arg[i], visit, user);
}

Expr *expr_project(Expr *expr)
{
    for (int i = 0; i < expr->narg; i++)
        expr->arg[i] = expr_project(expr->arg[i]);
    if (expr->fun)
        expr->fun = expr_project(expr->fun);
    return expr->kind == E_GET && expr->arg[0]->kind == E_TUPLE
               ? expr->arg[0]->arg[expr->index]
               : expr;
}

bool expr_in_group(const Expr *expr, PatternGroup group)
{
    return expr->kind == E_PATTERN && pattern_info[expr->pattern].group == group;
}

bool expr_is_op(const Expr *expr, Op op)
{
    return expr->kind == E_OP && expr->op == op;
}

Scalar expr_converted(const Expr *e)
{
    return expr_is_op(e, OP_FLOAT) && e->arg[0]->type->kind == T_SCALAR
               ? e->arg[0]->type->scalar
               : S_FLOAT;
}

bool expr_is(const Expr *expr, Pattern pattern)
{
    return expr->kind == E_PATTERN && expr->pattern == pattern;
}

bool expr_is_use(const Expr *expr, const void *param)
{
    return expr->kind == E_PARAM && expr->param == param;
}

bool expr_is_at(const Expr *expr, const void *none)
{
    return expr->kind == E_AT;
}

bool expr_binds(const Expr *expr, const void *param)
{
    for (int i = 0; i < expr->nparam; i++)
        if (expr->params[i] == param)
            return true;
    return expr->kind == E_LET && expr->param == param;
}

// An index as a sum of one's own, where `at` is the value of i; NULL: it is something else.
static const Arith *index_at(ArithCtx *ctx, const Expr *e, const Param *i, const Arith *at)
{
    if (e->kind == E_NUM)
        return e->num[0];
    if (e->kind == E_LITERAL && !e->floating && !e->boolean)
        return arith_const(ctx, (int64_t)e->number);
    if (e->kind != E_OP || (e->op != OP_ADD && e->op != OP_SUB && e->op != OP_NEG))
        return expr_is_use(e, i) ? at : NULL;
    const Arith *a = index_at(ctx, e->arg[0], i, at);
    const Arith *b = e->narg > 1 ? index_at(ctx, e->arg[1], i, at) : a;
    if (!a || !b)
        return NULL;
    return e->op == OP_ADD   ? arith_add(ctx, a, b)
           : e->op == OP_SUB ? arith_sub(ctx, a, b)
                             : arith_mulc(ctx, a, -1);
}

bool expr_turns(ArithCtx *ctx, const Expr *index, const Param *i, const Arith *n)
{
    const Arith *at = arith_iter(ctx, "i", n), *place = index_at(ctx, index, i, at);
    return place && arith_equal(ctx, arith_add(ctx, place, at), arith_addc(ctx, n, -1));
}

const Expr *expr_behind_lets(const Expr *expr)
{
    while (expr->kind == E_LET)
        expr = expr->arg[1];
    return expr;
}

const Expr *expr_behind_gets(const Expr *expr)
{
    while (expr->kind == E_GET)
        expr = expr->arg[0];
    return expr;
}

const Expr *expr_added(const Expr *iterate, int i, Op *op)
{
    const Expr *next = expr_behind_lets(iterate->fun->arg[0]);
    next = next->kind == E_TUPLE ? next->arg[i] : next;
    for (int k = 0; k < 2 && next->kind == E_OP && next->narg == 2; k++) {
        const Expr *old = next->arg[k], *by = next->arg[1 - k];
        bool sum = next->op == OP_ADD || (next->op == OP_SUB && k == 0);
        *op = next->op;
        if (sum && old->kind == E_GET && old->index == i &&
            expr_is_use(old->arg[0], iterate->fun->params[0]) &&
            (by->kind == E_LITERAL || by->kind == E_NUM))
            return by;
    }
    return NULL;
}

bool expr_guards(const Expr *expr, int arg)
{
    return expr->kind == E_OP && arg > 0 &&
           (expr->op == OP_SELECT || expr->op == OP_AND || expr->op == OP_OR);
}

bool expr_mentions(const Expr *expr, const Param *param)
{
    return expr_find(expr, expr_is_use, param);
}

bool expr_mentions_any(const Expr *expr, const Param *const *param, int n)
{
    for (int i = 0; i < n; i++)
        if (expr_mentions(expr, param[i]))
            return true;
    return false;
}

bool op_decides(Op op, const Type *arg)
{
    bool whole =
        (op_info[op].types == TY_CAST && op < OP_HALF) || op_info[op].types == TY_COMP;
    return whole && scalar_info[arg->scalar].floating;
}

static bool decides(const Expr *expr, const void *none)
{
    return (expr->kind == E_OP && op_decides(expr->op, expr->arg[0]->type)) ||
           expr_calls(expr, decides, none);
}

bool expr_decides(const Expr *expr)
{
    return expr_find(expr, decides, NULL);
}

bool expr_multiplies(const Expr *fold)
{
    const Expr *body = fold->fun ? fold->fun->arg[0] : NULL;
    return body && body->kind == E_OP && body->op == OP_MUL &&
           body->type->kind == T_SCALAR && scalar_info[body->type->scalar].floating;
}

int64_t expr_fold_terms_by(const Expr *expr, LengthOf *length, const void *user)
{
    int64_t most = expr->fun ? expr_fold_terms_by(expr->fun, length, user) : 1, len = 1;
    for (int i = 0; i < expr->narg; i++) {
        int64_t terms = expr_fold_terms_by(expr->arg[i], length, user);
        most = MAX(most, terms);
    }
    if (expr->kind == E_PATTERN &&
        (expr->pattern == P_REDUCE || expr->pattern == P_REDUCEBY))
        len = length(user, expr->arg[1]->type->len);
    return most * MAX(len, 1);
}

static int64_t known_length(const void *user, const Arith *len)
{
    int64_t known = 1;
    arith_is_const(len, &known);
    return known;
}

int64_t expr_fold_terms(const Expr *expr)
{
    return expr_fold_terms_by(expr, known_length, NULL);
}

int expr_uses_item(const Expr *expr, const Param *param, int item)
{
    if (item >= 0 && expr->kind == E_GET && expr_is_use(expr->arg[0], param))
        return expr->index == item;
    int n = expr_is_use(expr, param);
    if (expr->fun)
        n += 2 * expr_uses_item(expr->fun, param, item);
    for (int i = 0; i < expr->narg && n < 2; i++)
        n += expr_uses_item(expr->arg[i], param, item);
    return MIN(n, 2);
}

int expr_uses(const Expr *expr, const Param *param)
{
    return expr_uses_item(expr, param, -1);
}

// Comparing ---------------------------------------------------------------------------

// The binders around an expression (of each side, when two are compared).
typedef struct Binders Binders;
struct Binders {
    const Param *a, *b;
    const Binders *outer;
};

static bool same(const Expr *a, const Expr *b, const Binders *env);

static bool same_use(const Expr *a, const Expr *b, const Binders *env)
{
    for (; env; env = env->outer)
        if (env->a == a->param || env->b == b->param)
            return env->a == a->param && env->b == b->param;
    return a->param == b->param;
}

static bool same_lambda(const Expr *a, const Expr *b, int i, const Binders *env)
{
    if (i == a->nparam)
        return same(a->arg[0], b->arg[0], env);
    Binders inner = {a->params[i], b->params[i], env};
    return same_lambda(a, b, i + 1, &inner);
}

// Everything but params, arguments and function.
static bool same_head(const Expr *a, const Expr *b)
{
    if (a->kind != b->kind || a->narg != b->narg || a->nnum != b->nnum)
        return false;
    for (int i = 0; i < a->nnum; i++)
        if (a->num[i] != b->num[i])
            return false;
    switch (a->kind) {
    case E_LITERAL:
        return !memcmp(&a->number, &b->number, sizeof a->number) &&
               a->floating == b->floating && a->boolean == b->boolean;
    case E_NUM: return a->num[0] == b->num[0];
    case E_OP: return a->op == b->op;
    case E_CALL: return !strcmp(a->callee->name, b->callee->name);
    case E_GET: return a->index == b->index;
    case E_LAMBDA: return a->nparam == b->nparam;
    case E_PATTERN:
        return a->pattern == b->pattern && a->dims == b->dims && a->par == b->par &&
               a->mode == b->mode && !a->fun == !b->fun;
    case E_PARAM:
    case E_LET:
    case E_TUPLE:
    case E_AT: return true;
    }
    BUG("expression of kind %d", a->kind);
}

static bool same(const Expr *a, const Expr *b, const Binders *env)
{
    if (!same_head(a, b))
        return false;
    if (a->kind == E_PARAM)
        return same_use(a, b, env);
    if (a->kind == E_LAMBDA)
        return same_lambda(a, b, 0, env);
    if (a->kind == E_LET) {
        Binders inner = {a->param, b->param, env};
        return same(a->arg[0], b->arg[0], env) && same(a->arg[1], b->arg[1], &inner);
    }
    for (int i = 0; i < a->narg; i++)
        if (!same(a->arg[i], b->arg[i], env))
            return false;
    return !a->fun || same(a->fun, b->fun, env);
}

bool expr_equal(const Expr *a, const Expr *b)
{
    return same(a, b, NULL);
}

// Hashing: the same from run to run, so that it may be stored -------------------------

static uint64_t hash_text(const char *text)
{
    return text ? hash_bytes(text, strlen(text), 1) : 0;
}

static uint64_t hash_arith(const Arith *a)
{
    uint64_t h = hash_mix((uint64_t)a->kind, (uint64_t)a->value);
    h = hash_mix(h, hash_text(a->name));
    for (int i = 0; i < a->n; i++)
        h = hash_mix(h, hash_mix((uint64_t)a->term[i].coef, hash_arith(a->term[i].arg)));
    return h;
}

static uint64_t hash_use(const Param *param, const Binders *env)
{
    uint64_t level = 1;
    for (; env; env = env->outer, level++)
        if (env->a == param)
            return level;
    return hash_text(param->name);
}

static uint64_t hash(const Expr *expr, const Binders *env);

static uint64_t hash_lambda(const Expr *expr, int i, const Binders *env)
{
    if (i == expr->nparam)
        return hash(expr->arg[0], env);
    Binders inner = {expr->params[i], NULL, env};
    return hash_lambda(expr, i + 1, &inner);
}

static uint64_t hash_head(const Expr *e)
{
    uint64_t bits = 0, h = hash_mix((uint64_t)e->kind, (uint64_t)e->narg);
    int nnum = e->kind == E_NUM ? 1 : e->nnum;
    for (int i = 0; i < nnum; i++)
        h = hash_mix(h, hash_arith(e->num[i]));
    switch (e->kind) {
    case E_LITERAL:
        memcpy(&bits, &e->number, sizeof bits);
        return hash_mix(h, hash_mix(bits, 2 * e->floating + e->boolean));
    case E_OP: return hash_mix(h, (uint64_t)e->op);
    case E_CALL: return hash_mix(h, hash_text(e->callee->name));
    case E_GET: return hash_mix(h, (uint64_t)e->index);
    case E_LAMBDA: return hash_mix(h, (uint64_t)e->nparam);
    case E_PATTERN:
        h = hash_mix(h, (uint64_t)e->pattern * 16 + (uint64_t)e->dims);
        return hash_mix(h, (uint64_t)e->par * 16 + (uint64_t)e->mode);
    case E_NUM:
    case E_PARAM:
    case E_LET:
    case E_TUPLE:
    case E_AT: return h;
    }
    BUG("expression of kind %d", e->kind);
}

static uint64_t hash(const Expr *expr, const Binders *env)
{
    uint64_t h = hash_head(expr);
    if (expr->kind == E_PARAM)
        return hash_mix(h, hash_use(expr->param, env));
    if (expr->kind == E_LAMBDA)
        return hash_mix(h, hash_lambda(expr, 0, env));
    if (expr->kind == E_LET) {
        Binders inner = {expr->param, NULL, env};
        h = hash_mix(h, hash(expr->arg[0], env));
        return hash_mix(h, hash(expr->arg[1], &inner));
    }
    for (int i = 0; i < expr->narg; i++)
        h = hash_mix(h, hash(expr->arg[i], env));
    return expr->fun ? hash_mix(h, hash(expr->fun, env)) : h;
}

uint64_t expr_hash(const Expr *expr)
{
    return hash(expr, NULL);
}

static bool type_uses(const Type *type, Scalar scalar)
{
    if (!type)
        return false;
    switch (type->kind) {
    case T_SCALAR:
    case T_VECTOR: return type->scalar == scalar;
    case T_ARRAY: return type_uses(type->elem, scalar);
    case T_TUPLE:
        for (int i = 0; i < type->n; i++)
            if (type_uses(type->item[i], scalar))
                return true;
        return false;
    }
    BUG("type of kind %d", type->kind);
}

static bool uses_scalar(const Expr *expr, const void *scalar)
{
    return type_uses(expr->type, *(const Scalar *)scalar);
}

bool function_uses(const Function *fun, Scalar scalar)
{
    for (int i = 0; i < fun->nparam; i++)
        if (type_uses(fun->params[i]->type, scalar))
            return true;
    return type_uses(fun->result, scalar) ||
           (fun->body && expr_find(fun->body, uses_scalar, &scalar));
}
