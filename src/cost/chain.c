// SPDX-License-Identifier: Apache-2.0
//
// Chains; see chain.h.
//
//   method  a variable that a loop assigns and that outlives the iteration begins a path of
//           length 0; the path of a value is the longest path of its operands and its own
//           operation. Elements of a private array count as independent variables.

#include "cost/chain.h"

// A way from a carried variable to a value; not carried: there is none.
typedef struct {
    bool carried;
    double operations, slow;
} CarriedWay;

typedef struct {
    const void *name; // Var, Buffer or Param
    CarriedWay way;
} NamedWay;

typedef struct {
    Arena *arena;
    Scope *scope;
    VEC(NamedWay) names;
    Table declared;     // in the loop that is looked at
    CarriedWay longest; // to what is carried on
} Chainer;

enum { SLOW_COST = 4 }; // beside an addition, to compare ways

static CarriedWay later(CarriedWay a, CarriedWay b)
{
    if (!a.carried || !b.carried)
        return a.carried ? a : b;
    double x = a.operations + SLOW_COST * a.slow, y = b.operations + SLOW_COST * b.slow;
    return x >= y ? a : b;
}

static void set_name(Chainer *c, const void *name, CarriedWay way)
{
    VEC_PUSH(c->arena, &c->names, (NamedWay){name, way});
}

static CarriedWay find_name(const Chainer *c, const void *name)
{
    for (int i = c->names.len - 1; i >= 0; i--)
        if (c->names.at[i].name == name)
            return c->names.at[i].way;
    return (CarriedWay){0};
}

static CarriedWay past(CarriedWay way, Op op)
{
    OpKind kind = op_info[op].kind;
    if (!way.carried || kind == OPK_FREE || op_info[op].types == TY_CAST)
        return way;
    bool slow = kind == OPK_DIV || kind == OPK_EXP || kind == OPK_SPECIAL;
    way.slow += slow;
    way.operations += !slow;
    return way;
}

// Values ---------------------------------------------------------------------------------

static CarriedWay way_expr(Chainer *c, const Expr *e);

static CarriedWay way_body(Chainer *c, const Function *function, const CarriedWay *arg,
                           int n)
{
    int names = c->names.len;
    CarriedWay way = {0};
    for (int i = 0; i < n; i++)
        way = later(way, arg[i]);
    if (!way.carried || !function->body)
        return past(way, OP_ADD);
    for (int i = 0; i < n; i++)
        set_name(c, function->params[i], arg[i]);
    way = way_expr(c, function->body);
    c->names.len = names;
    return way;
}

static CarriedWay way_expr(Chainer *c, const Expr *e)
{
    CarriedWay way = {0}, arg[16];
    int names = c->names.len;
    if (e->kind == E_PARAM)
        return find_name(c, e->param);
    if (e->kind == E_LET) {
        set_name(c, e->param, way_expr(c, e->arg[0]));
        way = way_expr(c, e->arg[1]);
        c->names.len = names;
        return way;
    }
    for (int i = 0; i < e->narg && i < COUNTOF(arg); i++) {
        arg[i] = way_expr(c, e->arg[i]);
        way = later(way, arg[i]);
    }
    if (e->kind == E_CALL)
        return way_body(c, e->callee, arg, MIN(e->narg, COUNTOF(arg)));
    return e->kind == E_OP ? past(way, e->op) : way;
}

static CarriedWay way_value(Chainer *c, const KExpr *e)
{
    CarriedWay way = {0}, arg[16];
    if (e->kind == K_VAR)
        return find_name(c, e->var);
    if (e->kind == K_LOAD)
        return e->buffer->space == MEM_PRIVATE ? find_name(c, e->buffer) : way;
    int n = e->kind == K_COND ? 0 : MIN(e->n, COUNTOF(arg));
    for (int i = 0; i < n; i++) {
        arg[i] = way_value(c, e->arg[i]);
        way = later(way, arg[i]);
    }
    if (e->kind == K_CALL)
        return way_body(c, e->callee, arg, n);
    return e->kind == K_OP ? past(way, e->op) : way;
}

// Loops ----------------------------------------------------------------------------------

static bool is_loop(const Stm *stm)
{
    return stm->kind == ST_FOR && stm->loop == LOOP_SEQ;
}

// The variable or private array that the statement gives a value; NULL if none.
static const void *target_of(const Stm *stm)
{
    if (stm->kind == ST_ASSIGN)
        return stm->var;
    return stm->kind == ST_STORE && stm->buffer->space == MEM_PRIVATE ? stm->buffer : NULL;
}

static void find_declared(Chainer *c, const Block *block)
{
    VEC_EACH(const Stm *, stm, block) {
        if (stm->kind == ST_DECL || stm->kind == ST_ARRAY) {
            const void *name = stm->kind == ST_DECL ? (const void *)stm->var : stm->buffer;
            table_push(&c->declared, (Key){name, NULL, NULL}, 0);
        }
        find_declared(c, &stm->body);
        find_declared(c, &stm->other);
    }
}

static void begin_ways(Chainer *c, const Block *block)
{
    for (int i = 0; i < block->len; i++) {
        const void *name = target_of(block->at[i]);
        if (name && table_find(&c->declared, (Key){name, NULL, NULL}) < 0 &&
            !find_name(c, name).carried)
            set_name(c, name, (CarriedWay){.carried = true});
        begin_ways(c, &block->at[i]->body);
        begin_ways(c, &block->at[i]->other);
    }
}

// One iteration; loops within are looked at by themselves.
static void follow(Chainer *c, const Block *block)
{
    VEC_EACH(const Stm *, stm, block) {
        if (is_loop(stm))
            continue;
        const void *target = target_of(stm);
        if (stm->kind == ST_DECL && stm->value)
            set_name(c, stm->var, way_value(c, stm->value));
        if (target) {
            CarriedWay way = way_value(c, stm->value);
            c->longest = later(c->longest, way);
            if (stm->kind == ST_ASSIGN)
                set_name(c, target, way);
        }
        follow(c, &stm->body);
        follow(c, &stm->other);
    }
}

static void add_loops(Chainer *c, const Block *block, double around, Chain *sum)
{
    VEC_EACH(const Stm *, stm, block) {
        int64_t extent = is_loop(stm) ? scope_extent(c->scope, stm->extent) : 1;
        double here = around * (double)MAX(extent, 0);
        if (is_loop(stm)) {
            c->names.len = 0;
            c->longest = (CarriedWay){0};
            table_init(&c->declared, c->arena);
            find_declared(c, &stm->body);
            begin_ways(c, &stm->body);
            follow(c, &stm->body);
            sum->operations += here * c->longest.operations;
            sum->slow += here * c->longest.slow;
        }
        add_loops(c, &stm->body, here, sum);
        add_loops(c, &stm->other, here, sum);
    }
}

Chain chain_of(Scope *scope, const Kernel *kernel)
{
    Chain sum = {0};
    Chainer c = {.arena = arena_new(), .scope = scope};
    add_loops(&c, &kernel->body, 1, &sum);
    arena_free(c.arena);
    return sum;
}
