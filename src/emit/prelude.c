// SPDX-License-Identifier: Apache-2.0
//
// What all kernels of a program share: the target's head and helpers (head.c), and the
// program's functions. A function's body becomes a value of the kernel IR, so that there is
// one printer; a `let` becomes a constant before the return, or is substituted where it is
// only reached if a condition holds.

#include "emit/print.h"

#include <string.h>

// What a param stands for while a body is rewritten.
typedef struct {
    const Param *param;
    const KExpr *value;
} BoundParam;

typedef struct {
    Printer *p;
    VEC(BoundParam) bound;
    VEC(const char *) names; // of params and constants so far
    bool maybe;              // in code that is reached only under a condition
} Body;

static bool name_taken(const Body *b, const char *name)
{
    for (int i = 0; i < b->names.len; i++)
        if (!strcmp(b->names.at[i], name))
            return true;
    return false;
}

static const KExpr *new_variable(Body *b, const Param *param, const char *name)
{
    Var *var = NEW(b->p->arena, Var);
    KExpr *use = NEW(b->p->arena, KExpr);
    *var = (Var){name, param->type, true};
    *use = (KExpr){.kind = K_VAR, .type = param->type, .var = var};
    VEC_PUSH(b->p->arena, &b->names, name);
    VEC_PUSH(b->p->arena, &b->bound, ((BoundParam){param, use}));
    return use;
}

static const KExpr *bound_value(const Body *b, const Param *param)
{
    for (int i = b->bound.len - 1; i >= 0; i--)
        if (b->bound.at[i].param == param)
            return b->bound.at[i].value;
    BUG("%s is not bound in its function", param->name);
}

static const KExpr *body_value(Body *b, const Expr *expr);

static const KExpr *body_let(Body *b, const Expr *expr)
{
    const KExpr *value = body_value(b, expr->arg[0]);
    if (b->maybe) {
        VEC_PUSH(b->p->arena, &b->bound, ((BoundParam){expr->param, value}));
        return body_value(b, expr->arg[1]);
    }
    const char *name = expr->param->name;
    for (int i = 1; name_taken(b, name); i++)
        name = arena_printf(b->p->arena, "%s_%d", expr->param->name, i);
    put_form(b->p, "const %t %n = %v;\n", expr->arg[0]->type, name, value);
    new_variable(b, expr->param, name);
    return body_value(b, expr->arg[1]);
}

static const KExpr *body_value(Body *b, const Expr *expr)
{
    KExpr *e = NEW_OF(b->p->arena, KExpr, .type = expr->type, .number = expr->number,
                      .arith = expr->num[0]);
    const KExpr **arg = NEW_ARRAY(b->p->arena, const KExpr *, expr->narg);
    e->op = expr->op;
    e->callee = expr->callee;
    e->n = expr->narg;
    e->arg = arg;
    switch (expr->kind) {
    case E_LET: return body_let(b, expr);
    case E_PARAM: return bound_value(b, expr->param);
    case E_LITERAL: e->kind = K_LITERAL; return e;
    case E_NUM: e->kind = K_INDEX; return e;
    case E_OP: e->kind = K_OP; break;
    case E_CALL: e->kind = K_CALL; break;
    case E_TUPLE:
    case E_GET:
    case E_AT:
    case E_LAMBDA:
    case E_PATTERN: BUG("an array or tuple in a function of scalars");
    }
    for (int i = 0; i < expr->narg; i++) {
        bool maybe = b->maybe;
        b->maybe = maybe || expr_guards(expr, i);
        arg[i] = body_value(b, expr->arg[i]);
        b->maybe = maybe;
    }
    return e;
}

static void put_body(Printer *p, const Function *fun)
{
    Body body = {.p = p};
    for (int i = 0; i < fun->nparam; i++)
        new_variable(&body, fun->params[i], fun->params[i]->name);
    put_form(p, "return %v;\n", body_value(&body, fun->body));
}

static void put_head(Printer *p, const Function *fun)
{
    const Target *t = p->target;
    put_form(p, "%s%t ", t->callee ? t->callee : t->function, fun->result);
    put_function_name(p, fun->name);
    put(p, "(");
    for (int i = 0; i < fun->nparam; i++) {
        put_form(p, "%s%t ", i ? ", " : "", fun->params[i]->type);
        // The opaque text uses the names as they are.
        put_form(p, fun->body ? "%n" : "%s", fun->params[i]->name);
    }
    put_line(p, fun->nparam ? ")" : "void)");
}

static void put_text(Printer *p, const char *text)
{
    size_t len = strlen(text);
    while (len && strchr(" \t\n", text[len - 1]))
        len--;
    size_t skip = strspn(text, " \t\n");
    if (skip < len)
        buf_printf(p->out, "    %.*s\n", (int)(len - skip), text + skip);
}

// The types that an opaque text names.
static void put_names(Printer *p, bool begin)
{
    for (int s = 0; s < SCALARS; s++)
        if (p->target->doubts && scalar_info[s].floating && begin)
            put_line(p, "#define %s fw_%s", scalar_info[s].name, scalar_info[s].name);
        else if (p->target->doubts && scalar_info[s].floating)
            put_line(p, "#undef %s", scalar_info[s].name);
}

static void put_function(Printer *p, const Function *fun)
{
    if (!fun->body)
        put_names(p, true);
    put_head(p, fun);
    put_line(p, "{");
    p->indent = 1;
    if (fun->body)
        put_body(p, fun);
    else
        put_text(p, fun->text);
    p->indent = 0;
    put_line(p, "}");
    if (!fun->body)
        put_names(p, false);
    buf_putc(p->out, '\n');
}

static void vectors_in_functions(const Program *program, VectorSet *set)
{
    VEC_EACH(const Function *, fun, &program->funs) {
        for (int k = 0; k < fun->nparam; k++)
            vectors_add(set, fun->params[k]->type, true);
        vectors_add(set, fun->result, true);
    }
}

static void put_functions(Buf *out, const Target *target, const Program *program)
{
    Printer p;
    printer_init(&p, out, target, program);
    for (int i = 0; i < program->funs.len; i++)
        put_function(&p, program->funs.at[i]);
    printer_release(&p);
}

void put_prelude(Buf *out, const Target *target, const Program *program, const Uses *uses)
{
    size_t start = out->len;
    Uses all = {uses->vectors, NULL};
    AutoBuf functions = buf_new(), text = buf_new();
    vectors_in_functions(program, &all.vectors);
    put_functions(&functions, target, program);
    if (uses->text) {
        buf_printf(&text, "%s%s", uses->text, functions.text);
        all.text = text.text;
    }
    target->put_head(out, program, &all);
    if (!target->doubts) // whose ints are of its own
        put_scalar_helpers(out, target, program, &all);
    put_updates(out, target, program, &all);
    put_words(out, target, program, &all);
    buf_write(out, functions.text, functions.len);
    // Every part ends with an empty line, which the last does not need.
    if (out->len > start + 1 && out->text[out->len - 2] == '\n')
        out->text[--out->len] = 0;
}

void emit_prelude(Buf *out, const Target *target, const Program *program)
{
    Uses everything = {.text = NULL};
    vectors_of_program(&everything.vectors, program);
    put_prelude(out, target, program, &everything);
}
