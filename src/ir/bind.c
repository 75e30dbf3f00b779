// SPDX-License-Identifier: Apache-2.0
//
// Binding sizes: a copy of a program in which size variables are constants. The copy is
// inferred again, and there every condition on a length becomes a fact or an error.
//
// Codes: T020 unknown size, T021 size without a value, T022 bad value, T023 array too
// large; T013 (from inference) a length that does not fit.
#include "ir/ir.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    const Program *from;
    Program *to;
    Diags *diags;
    const Arith **var, **value; // what replaces what, n of them
    int n;
    bool all; // every size must have a value
} Bind;

// Copying ------------------------------------------------------------------------------

static const Arith *bind_arith(const Bind *b, const Arith *arith)
{
    for (int i = 0; i < b->n; i++)
        arith = arith_subst(b->to->ir->arith, arith, b->var[i], b->value[i]);
    return arith;
}

static const Type *bind_type(const Bind *b, const Type *type)
{
    Arena *arena = b->to->ir->arena;
    if (type && type->kind == T_ARRAY)
        return type_array(arena, bind_arith(b, type->len), bind_type(b, type->elem));
    if (!type || type->kind != T_TUPLE)
        return type;
    const Type **item = NEW_ARRAY(arena, const Type *, type->n);
    for (int i = 0; i < type->n; i++)
        item[i] = bind_type(b, type->item[i]);
    return type_tuple(arena, item, type->n);
}

static Function *bound_callee(const Bind *b, const Function *callee)
{
    for (int i = 0; i < b->from->funs.len; i++)
        if (b->from->funs.at[i] == callee)
            return b->to->funs.at[i];
    for (int i = 0; i < b->from->defs.len; i++)
        if (b->from->defs.at[i] == callee)
            return b->to->defs.at[i];
    BUG("call of a function outside the program");
}

// In place, on a copy.
static void bind_expr(const Bind *b, Expr *e)
{
    int nums = e->kind == E_NUM ? 1 : e->nnum;
    for (int i = 0; i < nums; i++)
        e->num[i] = bind_arith(b, e->num[i]);
    if (e->kind == E_CALL)
        e->callee = bound_callee(b, e->callee);
    for (int i = 0; i < e->narg; i++)
        bind_expr(b, e->arg[i]);
    if (e->fun)
        bind_expr(b, e->fun);
}

static Function *copy_function(const Bind *b, const Function *f)
{
    Ir *ir = b->to->ir;
    Function *copy = NEW(ir->arena, Function);
    *copy = *f;
    Expr *body = f->body ? f->body : expr_literal(ir, 0, false);
    Expr *lambda = expr_clone(ir, expr_lambda(ir, f->params, f->nparam, body));
    copy->params = lambda->params;
    copy->body = f->body ? lambda->arg[0] : NULL;
    copy->result = bind_type(b, f->result);
    for (int i = 0; i < f->nparam; i++)
        copy->params[i]->type = bind_type(b, f->params[i]->type);
    return copy;
}

static void copy_functions(Bind *b)
{
    const Program *from = b->from;
    Program *to = b->to;
    for (int i = 0; i < from->funs.len; i++)
        VEC_PUSH(to->ir->arena, &to->funs, copy_function(b, from->funs.at[i]));
    for (int i = 0; i < from->defs.len; i++)
        VEC_PUSH(to->ir->arena, &to->defs, copy_function(b, from->defs.at[i]));
    for (int i = 0; i < to->funs.len; i++)
        if (to->funs.at[i]->body)
            bind_expr(b, to->funs.at[i]->body);
    for (int i = 0; i < to->defs.len; i++)
        bind_expr(b, to->defs.at[i]->body);
    to->main = from->main ? bound_callee(b, from->main) : NULL;
}

// Sizes --------------------------------------------------------------------------------

static const char *size_names(const Program *p)
{
    const char *text = "";
    for (int i = 0; i < p->sizes.len; i++)
        text =
            arena_printf(p->ir->arena, "%s%s%s", text, i ? ", " : "", p->sizes.at[i].name);
    return p->sizes.len ? text : "none";
}

static const SizeDecl *find_size(const Program *p, const char *name)
{
    for (int i = 0; i < p->sizes.len; i++)
        if (!strcmp(p->sizes.at[i].name, name))
            return &p->sizes.at[i];
    return NULL;
}

static bool add_binding(Bind *b, const Binding *binding)
{
    const SizeDecl *size = find_size(b->from, binding->name);
    if (!size)
        return diag_error(b->diags, span_none, "T020",
                          "there is no size `%s`; the sizes of this program: %s",
                          binding->name, size_names(b->from));
    if (size->arith->kind != A_VAR)
        return diag_error(b->diags, size->span, "T022", "size %s has a value already",
                          binding->name);
    if (binding->value < 1 || binding->value > INT32_MAX)
        return diag_error(b->diags, size->span, "T022",
                          "size %s must be from 1 to %d, here %" PRId64, binding->name,
                          INT32_MAX, binding->value);
    for (int i = 0; i < b->n; i++)
        if (b->var[i] == size->arith)
            return diag_error(b->diags, size->span, "T022", "size %s is given twice",
                              binding->name);
    b->var[b->n] = size->arith;
    b->value[b->n++] = arith_const(b->to->ir->arith, binding->value);
    return true;
}

static bool copy_sizes(Bind *b)
{
    bool ok = true;
    for (int i = 0; i < b->from->sizes.len; i++) {
        SizeDecl size = b->from->sizes.at[i];
        size.arith = bind_arith(b, size.arith);
        if (b->all && !size.generic && !arith_is_const(size.arith, NULL))
            ok = diag_error(b->diags, size.span, "T021",
                            "size %s has no value: give one, as in -s %s=1024", size.name,
                            size.name);
        VEC_PUSH(b->to->ir->arena, &b->to->sizes, size);
    }
    return ok;
}

// Limits -------------------------------------------------------------------------------

static bool fits(const Bind *b, Span span, const char *what, const Type *type)
{
    int64_t count;
    bool constant = arith_is_const(type_count(b->to->ir->arith, type), &count);
    return !constant || count <= (int64_t)1 << 40 ||
           diag_error(b->diags, span, "T023", "`%s` has more than 2^40 elements", what);
}

static bool main_fits(const Bind *b)
{
    const Function *f = b->to->main;
    bool ok = !f || fits(b, f->span, f->name, f->result);
    for (int i = 0; f && i < f->nparam; i++)
        ok = fits(b, f->params[i]->span, f->params[i]->name, f->params[i]->type) && ok;
    if (arith_overflowed(b->to->ir->arith) && ok)
        ok = diag_error(b->diags, span_none, "T023",
                        "a length of the program needs more than 64 bits");
    return ok;
}

static Program *bind(const Program *program, const Binding *binding, int n, bool all,
                     Diags *diags)
{
    Arena *arena = program->ir->arena;
    Program *to = NEW(arena, Program);
    *to = (Program){.ir = program->ir,
                    .source = program->source,
                    .math = program->math,
                    .extra = program->extra};
    Bind b = {program,
              to,
              diags,
              NEW_ARRAY(arena, const Arith *, n),
              NEW_ARRAY(arena, const Arith *, n),
              0,
              all};
    (void)arith_overflowed(program->ir->arith);
    bool ok = true;
    for (int i = 0; i < n; i++)
        ok = add_binding(&b, &binding[i]) && ok;
    if (!ok || !copy_sizes(&b))
        return NULL;
    copy_functions(&b);
    return ir_infer(to, diags) && main_fits(&b) ? to : NULL;
}

Program *ir_bind(const Program *program, const Binding *binding, int n, Diags *diags)
{
    return bind(program, binding, n, true, diags);
}

Program *ir_bind_some(const Program *program, const Binding *binding, int n, Diags *diags)
{
    return bind(program, binding, n, false, diags);
}
