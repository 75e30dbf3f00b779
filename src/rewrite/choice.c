// SPDX-License-Identifier: Apache-2.0
//
// Folds whose function chooses, as `if c then s + x else s`, become folds by operations,
// `s + (if c then x else 0)`, which work-items can share.
//
//   source  if-conversion: Allen, Kennedy, Porterfield, Warren, POPL 1983
//   method  What a component of the state becomes is read from the outside in, through
//           tuples, conditions, names and calls. Each way ends in the component itself or
//           in one operation on it, which must be the same for all ways. Where the
//           component stays as it is, the operation is given its neutral value. Of an
//           operation as min or || this is the start value, for every state has that one
//           in it already. Several operations in turn, `(s + a) + b`, are not regrouped.

#include "rewrite/internal.h"

enum { LOOKS_OF_FOLD = 256, LOOKS_OF_COPY = 32, LITTLE = 8 };

typedef struct {
    Rewrite *rw;
    const Expr *fold;
    int i;         // the component; -1: the state is a scalar
    Op op;         // OPS: it is not known
    Expr *neutral; // stands for its neutral value
    int looks;     // how many expressions may still be looked at; a copy counts as more
} Choice;

static bool mentions_state(const Choice *c, const Expr *expr)
{
    return expr_mentions(expr, c->fold->fun->params[0]);
}

static bool is_state(const Choice *c, const Expr *expr)
{
    return element_component(expr, c->fold->fun->params[0]) == c->i;
}

static bool is_truth(const Expr *expr)
{
    return expr->kind == E_LITERAL && expr->type->scalar == S_BOOL;
}

static bool agrees(Choice *c, Op op)
{
    c->op = c->op == OPS ? op : c->op;
    return c->op == op;
}

static Expr *select_of(Choice *c, Expr *test, Expr *x, Expr *y)
{
    return expr_op(c->rw->ir, OP_SELECT, test, x, y);
}

// What the operation is given, if an expression is that operation on the component; NULL:
// it is no such.
static Expr *given(Choice *c, Expr *expr);

// The same of what has arguments in place of names, which may be copies of the state.
static Expr *given_by_copy(Choice *c, const Expr *of, Param *const *name, Expr *const *arg,
                           int n)
{
    const Expr *const *value = (const Expr *const *)arg;
    c->looks -= LOOKS_OF_COPY;
    return of ? given(c, expr_replace_all(c->rw->ir, of, name, value, n)) : NULL;
}

static Expr *given_by_let(Choice *c, Expr *let)
{
    if (mentions_state(c, let->arg[0]))
        return given_by_copy(c, let->arg[1], &let->param, let->arg, 1);
    Expr *x = given(c, let->arg[1]);
    return x && x != c->neutral ? expr_let(c->rw->ir, let->param, let->arg[0], x) : x;
}

static Expr *item_of(Choice *c, Expr *tuple, int i)
{
    return tuple->kind == E_TUPLE ? tuple->arg[i] : expr_get(c->rw->ir, tuple, i);
}

// A component of a tuple, behind names and conditions.
static Expr *given_by_item(Choice *c, const Expr *get)
{
    Expr *from = get->arg[0], **arg = from->arg;
    const int i = get->index;
    if (from->kind == E_TUPLE)
        return given(c, arg[i]);
    if (from->kind == E_LET)
        return given(c, expr_let(c->rw->ir, from->param, arg[0], item_of(c, arg[1], i)));
    if (expr_is_op(from, OP_SELECT))
        return given(c, select_of(c, arg[0], item_of(c, arg[1], i), item_of(c, arg[2], i)));
    return NULL;
}

// `if x > s then x else s` is the larger of the two, or the like. Of numbers that may be
// NaN the state must be the one that is kept where the test fails. Where keyed folds become
// atomic updates, the order of elements is not that of the program anyway.
static Expr *given_by_pick(Choice *c, Expr *const *arg)
{
    const Expr *test = arg[0];
    if (test->kind != E_OP ||
        (test->op != OP_LT && test->op != OP_LE && test->op != OP_GT && test->op != OP_GE))
        return NULL;
    const bool first = expr_equal(test->arg[0], arg[1]), stays = is_state(c, arg[2]);
    Expr *other = arg[1 + !stays];
    if (!expr_equal(test->arg[!first], arg[1]) || !expr_equal(test->arg[first], arg[2]) ||
        !is_state(c, arg[1 + stays]) || mentions_state(c, other) ||
        (!stays && type_is_float(test->arg[0]->type) && !expr_is(c->fold, P_REDUCEBY)))
        return NULL;
    const bool larger = (test->op == OP_GT || test->op == OP_GE) == first;
    return agrees(c, larger ? OP_MAXIMUM : OP_MINIMUM) ? start_value(c->rw, other) : NULL;
}

// A condition that depends on the state.
static Expr *given_by_test(Choice *c, Expr *const *arg)
{
    Expr *test = arg[0], **part = test->arg;
    if (expr_is_op(test, OP_NOT))
        return given(c, select_of(c, part[0], arg[2], arg[1]));
    if (is_state(c, test) && is_truth(arg[1]) && arg[1]->number != 0)
        return given(c, make_op(c->rw, OP_OR, test, arg[2]));
    if (is_state(c, test) && is_truth(arg[2]) && arg[2]->number == 0)
        return given(c, make_op(c->rw, OP_AND, test, arg[1]));
    const bool both = expr_is_op(test, OP_AND);
    if (!both && !expr_is_op(test, OP_OR))
        return given_by_pick(c, arg);
    Expr *rest = select_of(c, part[1], arg[1], arg[2]);
    return given(c, select_of(c, part[0], both ? rest : arg[1], both ? arg[2] : rest));
}

static Expr *given_by_choice(Choice *c, Expr *const *arg)
{
    if (is_state(c, arg[1]) && is_state(c, arg[2]))
        return c->neutral;
    if (mentions_state(c, arg[0]))
        return given_by_test(c, arg);
    Expr *x = given(c, arg[1]), *y = x ? given(c, arg[2]) : NULL;
    return x && y && x != y ? select_of(c, arg[0], x, y) : y;
}

static Expr *given_by_op(Choice *c, Expr *op)
{
    const bool minus = op->op == OP_SUB;
    for (int k = minus; k < op->narg && (minus || op_joins(op->op)); k++)
        if (is_state(c, op->arg[1 - k]) && !mentions_state(c, op->arg[k]) &&
            agrees(c, minus ? OP_ADD : op->op)) {
            Expr *x = start_value(c->rw, op->arg[k]);
            return minus ? make_op(c->rw, OP_NEG, x, NULL) : x;
        }
    return NULL;
}

static Expr *given(Choice *c, Expr *expr)
{
    if (is_state(c, expr))
        return c->neutral;
    if (c->looks-- <= 0)
        return NULL;
    if (is_truth(expr)) // true is s || true
        return agrees(c, expr->number != 0 ? OP_OR : OP_AND) ? expr : NULL;
    if (!mentions_state(c, expr))
        return NULL;
    if (expr->kind == E_LET)
        return given_by_let(c, expr);
    if (expr->kind == E_CALL)
        return given_by_copy(c, expr->callee->body, expr->callee->params, expr->arg,
                             expr->narg);
    if (expr->kind == E_GET)
        return given_by_item(c, expr);
    if (expr->kind != E_OP)
        return NULL;
    return expr_is_op(expr, OP_SELECT) ? given_by_choice(c, expr->arg)
                                       : given_by_op(c, expr);
}

// What the operation of component i is given, read off the function's body; NULL: there is
// no such operation.
static Expr *given_at(Rewrite *rw, const Expr *fold, Expr *body, const Type *type, int i,
                      Op *op)
{
    Expr *neutral = expr_new(rw->ir, E_LITERAL, body->span);
    Choice c = {rw, fold, i, OPS, neutral, LOOKS_OF_FOLD};
    Expr *value =
        type->kind != T_SCALAR ? NULL : given(&c, i < 0 ? body : item_of(&c, body, i));
    if (!value)
        return NULL;
    *op = c.op != OPS ? c.op : type->scalar == S_BOOL ? OP_OR : OP_ADD;
    const bool counts = *op == OP_ADD || *op == OP_MUL;
    *neutral = counts ? *literal_of(rw, type, *op == OP_MUL)
                      : *start_part(rw, fold->arg[0], MAX(i, 0));
    return expr_find(neutral, is_nest, NULL) ? NULL : value; // not again and again
}

// Does it combine each component with something of the element as it stands?
static bool combines(const Expr *f)
{
    const int n = f->arg[0]->kind == E_TUPLE ? f->arg[0]->narg : 0;
    bool all = n || combined(f, -1) >= 0;
    for (int i = 0; i < n; i++)
        all &= combined(f, i) >= 0;
    return all;
}

// Does it take no more operations than that, which are subtracted?
static bool is_little(const Expr *value, int *ops)
{
    bool little = value->kind != E_CALL && value->kind != E_PATTERN &&
                  (value->kind != E_OP || --*ops >= 0);
    for (int i = 0; i < value->narg && little; i++)
        little = is_little(value->arg[i], ops);
    return little;
}

// The names of what a map finds once for all components, unless that is little; what
// follows them.
static Expr *names_of_all(const Expr *fold, NamedValues *names)
{
    Expr *const whole = fold->fun->arg[0], *body = whole;
    bool little = true;
    for (int ops = LITTLE; body->kind == E_LET && names->n < PARTS_MAX &&
                           !expr_mentions(body->arg[0], fold->fun->params[0]);
         body = body->arg[1]) {
        names->param[names->n] = body->param;
        names->value[names->n++] = body->arg[0];
        little = little && is_little(body->arg[0], &ops);
    }
    if (!little && body->type->kind == T_TUPLE && !expr_is(fold, P_REDUCEBY))
        return body;
    names->n = 0;
    return whole;
}

Expr *rule_foldChoice(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const bool fold = is_nest(at, NULL) && at->dims == 1;
    const Type *type = fold ? at->fun->arg[0]->type : NULL;
    const int n = fold && type->kind == T_TUPLE ? type->n : 0;
    if (!fold || n > PARTS_MAX || combines(at->fun))
        return NULL;
    NamedValues names = {.n = 0};
    Expr *body = names_of_all(at, &names), *value[PARTS_MAX], *next[PARTS_MAX];
    Param *state = at->fun->params[0], *e = at->fun->params[1], *y = fresh(rw, "y");
    for (int i = 0; i < MAX(n, 1); i++) {
        Op op = OP_ADD;
        if (!(value[i] = given_at(rw, at, body, n ? type->item[i] : type, n ? i : -1, &op)))
            return NULL;
        next[i] = make_op(rw, op, part_of_value(rw, use(rw, state), i, MAX(n, 1)),
                          names.n ? part_of_value(rw, use(rw, y), i, n) : value[i]);
    }
    Expr *in = at->arg[1];
    if (names.n)
        in = map_by(rw, 1, e, with_names(rw, &names, expr_tuple(rw->ir, value, n)), in);
    Expr *fun =
        expr_lambda(rw->ir, (Param *[]){state, names.n ? y : e}, 2, all_parts(rw, next, n));
    return copy_of(rw, expr_pattern(rw->ir, at->pattern, 1, 0, at->num, fun,
                                    (Expr *[]){at->arg[0], in}, 2));
}
