// SPDX-License-Identifier: Apache-2.0
//
// Small kernels made by hand, for the tests of passes and of emit: a jacobi-like stencil
// with clamps, a tile in local memory, a reduction of each group.

#ifndef FW_TEST_BUILD_H
#define FW_TEST_BUILD_H

#include "kir/passes.h"

#define FLOAT type_scalar(S_FLOAT)

// A kernel in the making; statements go to `block`.
typedef struct {
    Ir *ir;
    ArithCtx *ctx;
    Arena *arena;
    Program program;
    Unit unit;
    Kernel *kernel;
    Block *block;
} Build;

static inline Build *build_new(const char *name)
{
    Ir *ir = ir_new();
    Build *b = NEW(ir->arena, Build);
    *b = (Build){.ir = ir, .ctx = ir->arith, .arena = ir->arena};
    b->kernel = NEW(b->arena, Kernel);
    b->kernel->name = name;
    for (int i = 0; i < 3; i++) {
        b->kernel->global[i] = arith_const(b->ctx, 1);
        b->kernel->local[i] = 1;
    }
    b->program.ir = ir;
    b->unit = (Unit){.ir = ir, .arena = b->arena, .program = &b->program};
    VEC_PUSH(b->arena, &b->unit.kernels, b->kernel);
    b->block = &b->kernel->body;
    return b;
}

static inline void build_free(Build *b)
{
    ir_free(b->ir);
}

static inline const Arith *num(Build *b, int64_t value)
{
    return arith_const(b->ctx, value);
}

static inline const Arith *plus(Build *b, const Arith *x, const Arith *y)
{
    return arith_add(b->ctx, x, y);
}

static inline const Arith *iter_var(Build *b, const char *name, int64_t extent)
{
    return arith_var(b->ctx, name, num(b, 0), num(b, extent - 1));
}

static inline const Arith *clamped(Build *b, const Arith *x, int64_t last)
{
    return arith_min(b->ctx, arith_max(b->ctx, x, num(b, 0)), num(b, last));
}

static inline Buffer *buffer(Build *b, const char *name, AddrSpace space, BufferRole role,
                             int64_t count)
{
    Buffer *buf = NEW(b->arena, Buffer);
    *buf = (Buffer){.name = name, .space = space, .scalar = S_FLOAT, .role = role};
    buf->count = num(b, count);
    if (space == MEM_GLOBAL) {
        VEC_PUSH(b->arena, &b->kernel->params, buf);
        VEC_PUSH(b->arena, &b->unit.buffers, buf);
    } else if (space == MEM_LOCAL) {
        VEC_PUSH(b->arena, &b->kernel->locals, buf);
    }
    return buf;
}

static inline KExpr *value(Build *b, KExprKind kind, const Type *type)
{
    KExpr *e = NEW(b->arena, KExpr);
    e->kind = kind;
    e->type = type;
    return e;
}

static inline const KExpr *literal(Build *b, double x, const Type *type)
{
    KExpr *e = value(b, K_LITERAL, type);
    e->number = x;
    return e;
}

static inline const KExpr *load(Build *b, const Buffer *buf, const Arith *index)
{
    KExpr *e = value(b, K_LOAD, type_scalar(buf->scalar));
    e->buffer = buf;
    e->arith = index;
    return e;
}

static inline const KExpr *use(Build *b, const Var *var)
{
    KExpr *e = value(b, K_VAR, var->type);
    e->var = var;
    return e;
}

static inline const KExpr *op(Build *b, Op what, const Type *type, const KExpr *x,
                              const KExpr *y, const KExpr *z)
{
    KExpr *e = value(b, K_OP, type);
    const KExpr **arg = NEW_ARRAY(b->arena, const KExpr *, 3);
    arg[0] = x;
    arg[1] = y;
    arg[2] = z;
    e->op = what;
    e->n = op_info[what].args;
    e->arg = arg;
    return e;
}

static inline const KExpr *sum_of(Build *b, const KExpr *x, const KExpr *y)
{
    return op(b, OP_ADD, x->type, x, y, NULL);
}

static inline const KExpr *index_value(Build *b, const Arith *a)
{
    KExpr *e = value(b, K_INDEX, type_scalar(S_INT));
    e->arith = a;
    return e;
}

static inline const KExpr *cond(Build *b, const Arith *x, const Arith *y)
{
    KExpr *e = value(b, K_COND, type_scalar(S_BOOL));
    const Arith **conds = NEW_ARRAY(b->arena, const Arith *, 2);
    conds[0] = x;
    conds[1] = y;
    e->cond = conds;
    e->n = y ? 2 : 1;
    return e;
}

static inline Stm *stm(Build *b, StmKind kind)
{
    Stm *s = NEW(b->arena, Stm);
    s->kind = kind;
    VEC_PUSH(b->arena, b->block, s);
    return s;
}

static inline const Var *declare(Build *b, const char *name, const KExpr *init,
                                 bool is_const)
{
    Var *var = NEW(b->arena, Var);
    *var = (Var){name, init->type, is_const};
    Stm *s = stm(b, ST_DECL);
    s->var = var;
    s->value = init;
    return var;
}

static inline void assign(Build *b, const Var *var, const KExpr *to)
{
    Stm *s = stm(b, ST_ASSIGN);
    s->var = (Var *)var;
    s->value = to;
}

static inline void store(Build *b, const Buffer *buf, const Arith *index, const KExpr *what)
{
    Stm *s = stm(b, ST_STORE);
    s->buffer = buf;
    s->index = index;
    s->value = what;
}

// Opens a loop: statements go into it until b->block is set back.
static inline Stm *loop(Build *b, LoopKind kind, int dim, const Arith *iter, int64_t extent)
{
    Stm *s = stm(b, ST_FOR);
    s->loop = kind;
    s->dim = dim;
    s->iter = iter;
    s->extent = num(b, extent);
    s->threads = num(b, extent);
    b->block = &s->body;
    return s;
}

// out[y][x] = a[y-1][x] + a[y][x-1] + a[y][x] + a[y][x+1], all clamped, n x n.
static inline Build *build_jacobi(int n)
{
    Build *b = build_new("jacobi");
    Buffer *a = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, n * n);
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, n * n);
    const Arith *y = iter_var(b, "y", n), *x = iter_var(b, "x", n);
    loop(b, LOOP_GLB, 1, y, n);
    loop(b, LOOP_GLB, 0, x, n)->form = FORM_GUARD;
    const Arith *row = arith_mulc(b->ctx, y, n);
    const Arith *above =
        arith_mulc(b->ctx, clamped(b, arith_addc(b->ctx, y, -1), n - 1), n);
    const Arith *left = clamped(b, arith_addc(b->ctx, x, -1), n - 1);
    const Arith *right = clamped(b, arith_addc(b->ctx, x, 1), n - 1);
    const KExpr *s =
        sum_of(b, load(b, a, plus(b, above, x)), load(b, a, plus(b, row, left)));
    s = sum_of(b, s, load(b, a, plus(b, row, x)));
    s = sum_of(b, s, load(b, a, plus(b, row, right)));
    store(b, out, plus(b, row, x), s);
    b->kernel->local[0] = 64;
    b->kernel->local[1] = 4;
    b->kernel->global[0] = b->kernel->global[1] = num(b, n);
    return b;
}

enum { GROUP = 64 };

// Each group of 64: tile[l] = a[64g + l]; barrier; out[64g + l] = tile[l + shift], in a
// buffer of 64 + shift elements.
static inline Build *build_tile(int groups, int shift)
{
    Build *b = build_new("tile");
    Buffer *a = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, groups * GROUP);
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, groups * GROUP);
    Buffer *tile = buffer(b, "tile", MEM_LOCAL, ROLE_TEMP, GROUP + shift);
    const Arith *g = iter_var(b, "g", groups), *l = iter_var(b, "l", GROUP);
    const Arith *at = plus(b, arith_mulc(b->ctx, g, GROUP), l);
    Block *group = &loop(b, LOOP_WRG, 0, g, groups)->body;
    loop(b, LOOP_LCL, 0, l, GROUP);
    store(b, tile, arith_addc(b->ctx, l, shift), load(b, a, at));
    if (shift)
        store(b, tile, l, literal(b, 0, FLOAT));
    b->block = group;
    stm(b, ST_BARRIER);
    loop(b, LOOP_LCL, 0, l, GROUP);
    store(b, out, at, load(b, tile, l));
    b->block = group;
    b->kernel->local[0] = GROUP;
    b->kernel->global[0] = num(b, groups * GROUP);
    return b;
}

// Each item: out[i] = sum of a[len*i .. len*i + len), in a loop.
static inline Build *build_reduction(int n, int len)
{
    Build *b = build_new("reduction");
    Buffer *a = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, n * len);
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, n);
    const Arith *i = iter_var(b, "i", n), *j = iter_var(b, "j", len);
    Block *item = &loop(b, LOOP_GLB, 0, i, n)->body;
    const Var *acc = declare(b, "acc", literal(b, 0, FLOAT), false);
    loop(b, LOOP_SEQ, 0, j, len);
    const Arith *at = plus(b, arith_mulc(b->ctx, i, len), j);
    assign(b, acc, sum_of(b, use(b, acc), load(b, a, at)));
    b->block = item;
    store(b, out, i, use(b, acc));
    b->kernel->local[0] = GROUP;
    b->kernel->global[0] = num(b, n);
    return b;
}

#endif
