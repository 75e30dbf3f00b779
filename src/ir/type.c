// SPDX-License-Identifier: Apache-2.0
//
// Types, and the owner of everything one text is parsed into (Ir). Scalar and vector
// types are static objects, one each; tuples and arrays are made in an arena and
// compared by structure, lengths by what arith can prove.

#include "ir/ir.h"

#include <limits.h>
#include <stdlib.h>

Ir *ir_new(void)
{
    Ir *ir = xcalloc(1, sizeof *ir);
    ir->arena = arena_new();
    ir->arith = arith_ctx_new();
    ir->next_id = 1;
    return ir;
}

void ir_free(Ir *ir)
{
    if (!ir)
        return;
    arith_ctx_free(ir->arith);
    arena_free(ir->arena);
    free(ir);
}

IrMark ir_mark(const Ir *ir)
{
    return (IrMark){arith_mark(ir->arith), arena_mark(ir->arena)};
}

void ir_release(Ir *ir, IrMark mark)
{
    arena_reset(ir->arena, mark.arena);
    arith_release(ir->arith, mark.arith);
}

const Type *type_scalar(Scalar scalar)
{
    static const Type type[SCALARS] = {
#define SCALAR(id, ...) {.kind = T_SCALAR, .scalar = S_##id},
#include "ir/scalars.def"
#undef SCALAR
    };
    return &type[scalar];
}

#define VECTOR(s, w)                                                                       \
    {                                                                                      \
        .kind = T_VECTOR, .scalar = (s), .width = (w)                                      \
    }

const Type *type_vector(Scalar scalar, int width)
{
    static const Type type[SCALARS][3] = {
#define SCALAR(id, ...) {VECTOR(S_##id, 2), VECTOR(S_##id, 4), VECTOR(S_##id, 8)},
#include "ir/scalars.def"
#undef SCALAR
    };
    if (width != 2 && width != 4 && width != 8)
        BUG("a vector of %d", width);
    return &type[scalar][width / 4];
}

const Type *type_open(Arena *arena, const char *name)
{
    return NEW_OF(arena, Type, .kind = T_SCALAR, .scalar = SCALARS, .name = name);
}

const Type *type_tuple(Arena *arena, const Type *const *item, int n)
{
    const Type **copy = COPY_ARRAY(arena, item, n);
    Type *type = NEW_OF(arena, Type, .kind = T_TUPLE, .n = n, .item = copy);
    for (int i = 0; i < n; i++)
        if (__builtin_add_overflow(type->leaves, type_leaves(item[i]), &type->leaves))
            type->leaves = INT_MAX;
    return type;
}

int type_leaves(const Type *type)
{
    type = type_leaf(type);
    return type->kind == T_TUPLE ? type->leaves : 1;
}

int type_pieces(const Type *type)
{
    int n = 0;
    if (type->kind != T_TUPLE)
        return scalar_info[type->scalar].bytes > 4 ? 2 : 1;
    for (int i = 0; i < type->n; i++)
        n += type_pieces(type->item[i]);
    return n;
}

const Type *type_array(Arena *arena, const Arith *len, const Type *elem)
{
    return NEW_OF(arena, Type, .kind = T_ARRAY, .len = len, .elem = elem);
}

static bool same_items(ArithCtx *ctx, const Type *a, const Type *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        if (!type_equal(ctx, a->item[i], b->item[i]))
            return false;
    return true;
}

bool type_equal(ArithCtx *ctx, const Type *a, const Type *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case T_SCALAR: return a->scalar == b->scalar && !a->name && !b->name;
    case T_VECTOR: return a->scalar == b->scalar && a->width == b->width;
    case T_TUPLE: return same_items(ctx, a, b);
    case T_ARRAY:
        return type_equal(ctx, a->elem, b->elem) &&
               (a->len == b->len || arith_equal(ctx, a->len, b->len));
    }
    BUG("type of kind %d", a->kind);
}

bool type_is_scalar(const Type *type)
{
    return type->kind == T_SCALAR || type->kind == T_VECTOR;
}

bool type_is_float(const Type *type)
{
    return type_is_scalar(type) && scalar_info[type->scalar].floating;
}

bool type_is_integer(const Type *type)
{
    return type_is_scalar(type) && scalar_info[type->scalar].integer;
}

bool type_holds_array(const Type *type)
{
    bool found = type->kind == T_ARRAY;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        found = found || type_holds_array(type->item[i]);
    return found;
}

void type_print(Buf *out, const Type *type)
{
    switch (type->kind) {
    case T_SCALAR:
        buf_puts(out, type->name ? type->name : scalar_info[type->scalar].name);
        return;
    case T_VECTOR:
        buf_printf(out, "%s%d", scalar_info[type->scalar].name, type->width);
        return;
    case T_TUPLE:
        for (int i = 0; i < type->n; i++) {
            buf_puts(out, i ? ", " : "(");
            type_print(out, type->item[i]);
        }
        buf_putc(out, ')');
        return;
    case T_ARRAY:
        buf_putc(out, '[');
        arith_print(out, type->len);
        buf_putc(out, ']');
        type_print(out, type->elem);
        return;
    }
}

const char *type_text(const Type *type, Arena *arena)
{
    Buf text = buf_new();
    type_print(&text, type);
    return buf_keep(&text, arena);
}

const Arith *type_count(ArithCtx *ctx, const Type *type)
{
    const Arith *sum = arith_const(ctx, 0);
    switch (type->kind) {
    case T_SCALAR: return arith_const(ctx, 1);
    case T_VECTOR: return arith_const(ctx, type->width);
    case T_ARRAY: return arith_mul(ctx, type->len, type_count(ctx, type->elem));
    case T_TUPLE:
        for (int i = 0; i < type->n; i++)
            sum = arith_add(ctx, sum, type_count(ctx, type->item[i]));
        return sum;
    }
    BUG("type of kind %d", type->kind);
}

int type_depth(const Type *type)
{
    int depth = 0;
    for (; type->kind == T_ARRAY; type = type->elem)
        depth++;
    return depth;
}

const Type *type_elem(const Type *type, int depth)
{
    for (; depth > 0; depth--) {
        if (type->kind != T_ARRAY)
            BUG("not an array of %d more dimensions", depth);
        type = type->elem;
    }
    return type;
}

const Type *type_leaf(const Type *type)
{
    return type_elem(type, type_depth(type));
}

double type_bytes(const Type *type, LengthOf *length, const void *user)
{
    double count = 1, bytes = 0;
    for (; type->kind == T_ARRAY; type = type->elem)
        count *= (double)(length ? length(user, type->len) : arith_most(type->len));
    if (type->kind != T_TUPLE)
        return count * scalar_info[type->scalar].bytes * MAX(type->width, 1);
    for (int i = 0; i < type->n; i++)
        bytes += type_bytes(type->item[i], length, user);
    return count * bytes;
}

const Type *type_tuple_of(const Type *type)
{
    type = type_leaf(type);
    return type->kind == T_TUPLE ? type : NULL;
}

const Type *type_field(Arena *arena, const Type *type, int field)
{
    if (type->kind == T_ARRAY)
        return type_array(arena, type->len, type_field(arena, type->elem, field));
    return type->item[field];
}
