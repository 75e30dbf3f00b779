// SPDX-License-Identifier: Apache-2.0
//
// Kernel IR by text: one statement a line, every operation by its name in the language,
// fully parenthesised.

#ifndef FW_TEST_PRINT_H
#define FW_TEST_PRINT_H

#include "kir/kir.h"

static void put_value(Buf *out, const KExpr *e);

static void put_list(Buf *out, const KExpr *e)
{
    buf_putc(out, '(');
    for (int i = 0; i < e->n; i++) {
        buf_puts(out, i ? ", " : "");
        put_value(out, e->arg[i]);
    }
    buf_putc(out, ')');
}

static void put_op(Buf *out, const KExpr *e)
{
    const OpInfo *info = &op_info[e->op];
    if (info->form != FORM_INFIX) {
        buf_puts(out, info->text);
        put_list(out, e);
        return;
    }
    buf_putc(out, '(');
    put_value(out, e->arg[0]);
    buf_printf(out, " %s ", info->text);
    put_value(out, e->arg[1]);
    buf_putc(out, ')');
}

static void put_conds(Buf *out, const KExpr *e)
{
    buf_puts(out, "cond(");
    for (int i = 0; i < e->n; i++) {
        buf_puts(out, i ? ", " : "");
        arith_print(out, e->cond[i]);
        buf_puts(out, " >= 0");
    }
    buf_putc(out, ')');
}

static void put_element(Buf *out, const Buffer *buffer, const Arith *index,
                        const Type *type)
{
    buf_printf(out, "%s[", buffer->name);
    arith_print(out, index);
    if (type->kind == T_VECTOR)
        buf_printf(out, " : %d", type->width);
    buf_putc(out, ']');
}

static void put_value(Buf *out, const KExpr *e)
{
    switch (e->kind) {
    case K_LITERAL: buf_printf(out, "%.9g", e->number); return;
    case K_INDEX:
        buf_putc(out, '{');
        arith_print(out, e->arith);
        buf_putc(out, '}');
        return;
    case K_VAR: buf_puts(out, e->var->name); return;
    case K_LOAD: put_element(out, e->buffer, e->arith, e->type); return;
    case K_TILE: put_element(out, e->buffer, e->arith, e->type); return;
    case K_MATRIX:
        buf_printf(out, "matrix %d x %d groups, step %lld", e->fragments->groups[0],
                   e->fragments->groups[1], (long long)e->fragments->step);
        put_list(out, e);
        return;
    case K_OP: put_op(out, e); return;
    case K_CALL:
        buf_puts(out, e->callee->name);
        put_list(out, e);
        return;
    case K_COND: put_conds(out, e); return;
    case K_VECTOR:
        type_print(out, e->type);
        put_list(out, e);
        return;
    case K_AWAIT:
        buf_puts(out, "await ");
        put_element(out, e->buffer, e->arith, e->type);
        return;
    case K_SHUFFLE:
        buf_puts(out, "shuffle(");
        put_value(out, e->arg[0]);
        buf_puts(out, ", ");
        arith_print(out, e->arith);
        buf_putc(out, ')');
        return;
    case K_LANE:
        put_value(out, e->arg[0]);
        buf_printf(out, ".%d", e->lane);
        return;
    }
    BUG("value of kind %d", e->kind);
}

static void put_block(Buf *out, const Block *block, int indent);

static void put_for(Buf *out, const Stm *stm)
{
    static const char *const loop[] = {"seq", "glb", "wrg", "lcl"};
    static const char *const form[] = {"once", "guard", "loop"};
    if (stm->loop == LOOP_SEQ)
        buf_puts(out, "for ");
    else
        buf_printf(out, "%s%d ", loop[stm->loop], stm->dim);
    arith_print(out, stm->iter);
    buf_puts(out, " < ");
    arith_print(out, stm->extent);
    if (stm->simd)
        buf_puts(out, " simd");
    if (stm->loop == LOOP_SEQ) {
        if (stm->value) {
            buf_puts(out, " while ");
            put_value(out, stm->value);
        }
        if (stm->unroll)
            buf_printf(out, " unroll %d", stm->unroll);
        return;
    }
    buf_printf(out, " %s", form[stm->form]);
    if (stm->form == FORM_LOOP) {
        buf_puts(out, " of ");
        arith_print(out, stm->threads);
    }
}

static void put_array(Buf *out, const Buffer *buffer)
{
    buf_printf(out, "%s: %s[", buffer->name, scalar_info[buffer->scalar].name);
    arith_print(out, buffer->count);
    buf_putc(out, ']');
}

static void put_head(Buf *out, const Stm *stm)
{
    switch (stm->kind) {
    case ST_DECL:
        buf_puts(out, stm->var->is_const ? "const " : "var ");
        buf_printf(out, "%s: ", stm->var->name);
        type_print(out, stm->var->type);
        break;
    case ST_ASSIGN: buf_puts(out, stm->var->name); break;
    case ST_PUBLISH:
    case ST_MATRIX:
    case ST_STORE:
        buf_puts(out, stm->kind == ST_PUBLISH ? "publish "
                      : stm->async            ? "async "
                      : stm->apart            ? "pairs "
                                              : "");
        put_element(out, stm->buffer, stm->index, stm->value->type);
        break;
    case ST_ARRAY:
        buf_puts(out, "array ");
        put_array(out, stm->buffer);
        return;
    case ST_INT:
        buf_puts(out, "int ");
        arith_print(out, stm->iter);
        if (!stm->index)
            break;
        buf_puts(out, " = ");
        arith_print(out, stm->index);
        return;
    case ST_FOR: put_for(out, stm); return;
    case ST_IF:
        buf_puts(out, "if ");
        put_value(out, stm->value);
        return;
    case ST_COMMIT: buf_puts(out, "commit"); return;
    case ST_WAIT:
        buf_printf(out, "wait %s%d", stm->buffer ? "for products " : "", stm->keep);
        return;
    case ST_BARRIER:
        buf_printf(out, "barrier%s%s", stm->fence_local ? " local" : "",
                   stm->fence_global ? " global" : "");
        return;
    }
    if (stm->value) {
        buf_puts(out, " = ");
        put_value(out, stm->value);
    }
}

static void put_indent(Buf *out, int indent)
{
    for (int i = 0; i < indent; i++)
        buf_puts(out, "  ");
}

static void put_block(Buf *out, const Block *block, int indent)
{
    for (int i = 0; i < block->len; i++) {
        const Stm *stm = block->at[i];
        put_indent(out, indent);
        put_head(out, stm);
        buf_putc(out, '\n');
        put_block(out, &stm->body, indent + 1);
        if (stm->other.len) {
            put_indent(out, indent);
            buf_puts(out, "else\n");
            put_block(out, &stm->other, indent + 1);
        }
    }
}

static void put_params(Buf *out, const Kernel *kernel)
{
    static const char *const role[] = {"input ", "output ", "temp "};
    for (int i = 0; i < kernel->params.len; i++) {
        buf_puts(out, i ? ", " : "");
        buf_puts(out, role[kernel->params.at[i]->role]);
        put_array(out, kernel->params.at[i]);
    }
    for (int i = 0; i < kernel->sizes.len; i++) {
        buf_puts(out, i + kernel->params.len ? ", " : "");
        arith_print(out, kernel->sizes.at[i]);
    }
}

static void kir_print(Buf *out, const Kernel *kernel)
{
    buf_printf(out, "kernel %s(", kernel->name);
    put_params(out, kernel);
    buf_puts(out, ")\n  global");
    for (int i = 0; i < 3; i++) {
        buf_putc(out, ' ');
        if (kernel->global[i])
            arith_print(out, kernel->global[i]);
        else
            buf_putc(out, '-');
    }
    buf_printf(out, " local %lld %lld %lld%s\n", (long long)kernel->local[0],
               (long long)kernel->local[1], (long long)kernel->local[2],
               kernel->wide ? " wide" : "");
    for (int i = 0; i < kernel->locals.len; i++) {
        buf_puts(out, "  local ");
        put_array(out, kernel->locals.at[i]);
        buf_putc(out, '\n');
    }
    put_block(out, &kernel->body, 1);
}

#endif
