// SPDX-License-Identifier: Apache-2.0
//
// A script as a program: a call is a map over the instances that a let holds, a sum a fold
// of them, what is the same for all instances an array or a scalar. Kernels come of it as
// of any program; the sets of calls that may share one are those of its stages.

#include "fuse/fuse.h"
#include "ir/names.h"

#include <string.h>

typedef struct {
    const Script *script;
    Ir *ir;
    Program *program;
    Param *param[ELEMS_MAX]; // by which an element is known
} ProgramMaking;

static bool is_list(const ProgramMaking *m, const Call *call, int k)
{
    return !call->is_uniform && !m->script->elem[call->in[k]].is_uniform;
}

static Expr *pattern(const ProgramMaking *m, Pattern pattern, int dims, Expr *fun,
                     Expr **arg, int n)
{
    return expr_pattern(m->ir, pattern, dims, 0, NULL, fun, arg, n);
}

static Expr *lambda(const ProgramMaking *m, Param *a, Param *b, Expr *body)
{
    return expr_lambda(m->ir, (Param *[]){a, b}, b ? 2 : 1, body);
}

static Expr *zip_of(const ProgramMaking *m, Expr **arg, int n, int dims)
{
    return n == 1 ? arg[0] : pattern(m, P_ZIP, dims, NULL, arg, n);
}

// Funs keep their names; one that another function's text says otherwise gets a new one.
static void take_funs(ProgramMaking *m, const Program *from)
{
    Program *to = m->program;
    VEC_EACH(Function *, fun, &from->funs) {
        bool known = false;
        for (int k = 0; k < to->funs.len; k++)
            known |= to->funs.at[k] == fun;
        for (int k = 0; k < to->funs.len && !known; k++)
            if (strcmp(to->funs.at[k]->name, fun->name) == 0)
                fun->name = arena_printf(m->ir->arena, "%s_%d", fun->name, to->funs.len);
        if (!known)
            VEC_PUSH(m->ir->arena, &to->funs, fun);
    }
}

// The component of a tuple, below the names that it needs.
static Expr *part_of(Ir *ir, Expr *tuple, int part)
{
    if (tuple->kind == E_LET)
        tuple->arg[1] = part_of(ir, tuple->arg[1], part);
    else
        tuple = tuple->kind == E_TUPLE ? tuple->arg[part] : expr_get(ir, tuple, part);
    return tuple;
}

// What the function computes of these arguments.
static Expr *body_of(ProgramMaking *m, const Elementary *f, Expr *const *arg)
{
    const Function *def = f->def;
    Expr *body = expr_replace_all(m->ir, def->body, def->params, (const Expr *const *)arg,
                                  def->nparam);
    return f->parts > 1 ? part_of(m->ir, body, f->part) : body;
}

static Expr *map_of(ProgramMaking *m, const Call *call)
{
    const Elementary *f = call->function;
    Expr *arg[ARITY_MAX], *list[ARITY_MAX];
    Param *each = param_new(m->ir, "t", NULL);
    int n = 0, nlist = 0;
    take_funs(m, f->program);
    for (int k = 0; k < f->nparam; k++)
        n += is_list(m, call, k);
    for (int k = 0; k < f->nparam; k++) {
        Expr *whole = expr_param(m->ir, m->param[call->in[k]]);
        arg[k] = whole;
        if (!is_list(m, call, k))
            continue;
        Expr *element = expr_param(m->ir, each);
        arg[k] = n == 1 ? element : expr_get(m->ir, element, nlist);
        list[nlist++] = whole;
    }
    Expr *body = body_of(m, f, arg);
    return n ? pattern(m, P_MAP, 1, lambda(m, each, NULL, body),
                       (Expr *[]){zip_of(m, list, n, 1)}, 1)
             : body;
}

static Expr *sum_of_arrays(ProgramMaking *m, const Type *type, Param *a, Param *b)
{
    Ir *ir = m->ir;
    Expr *both[] = {expr_param(ir, a), expr_param(ir, b)};
    if (type->kind != T_ARRAY)
        return expr_op(ir, OP_ADD, both[0], both[1], NULL);
    Param *t = param_new(ir, "t", NULL);
    Param *x = param_new(ir, "x", NULL), *y = param_new(ir, "y", NULL);
    Expr *inner = expr_replace(ir, sum_of_arrays(m, type->elem, x, y), x,
                               expr_get(ir, expr_param(ir, t), 0));
    inner = expr_replace(ir, inner, y, expr_get(ir, expr_param(ir, t), 1));
    return pattern(m, P_MAP, 1, lambda(m, t, NULL, inner),
                   (Expr *[]){zip_of(m, both, 2, 1)}, 1);
}

static Expr *zeros(ProgramMaking *m, const Type *type)
{
    if (type->kind != T_ARRAY)
        return expr_literal(m->ir, 0, false);
    return expr_pattern(m->ir, P_ARRAY, 1, 0, &type->len,
                        lambda(m, param_new(m->ir, "i", NULL), NULL, zeros(m, type->elem)),
                        NULL, 0);
}

static Expr *fold_of(ProgramMaking *m, const Call *call)
{
    const Type *type = call->function->type[0];
    Param *a = param_new(m->ir, "a", NULL), *b = param_new(m->ir, "b", NULL);
    Expr *arg[] = {zeros(m, type), expr_param(m->ir, m->param[call->in[0]])};
    return pattern(m, P_REDUCE, 1, lambda(m, a, b, sum_of_arrays(m, type, a, b)), arg, 2);
}

static Expr *results(ProgramMaking *m)
{
    const Script *s = m->script;
    Expr **item = NEW_ARRAY(m->ir->arena, Expr *, s->noutput);
    for (int i = 0; i < s->noutput; i++)
        item[i] = expr_param(m->ir, m->param[s->output[i]]);
    return s->noutput == 1 ? item[0] : expr_tuple(m->ir, item, s->noutput);
}

static Expr *calls_from(ProgramMaking *m, int v)
{
    const Script *s = m->script;
    if (v == s->ncall)
        return results(m);
    const Call *call = &s->call[v];
    bool sum = call->function->kind == FUNCTION_SUM;
    Expr *value = sum ? fold_of(m, call) : map_of(m, call);
    return expr_let(m->ir, m->param[call->out], value, calls_from(m, v + 1));
}

static const char *main_name(const Script *script)
{
    bool taken = name_is_reserved(script->name);
    return taken ? arena_printf(script->arena, "%s_", script->name) : script->name;
}

void script_print(Buf *out, const Script *script)
{
    Ir *ir = script->ir;
    Program *program = NEW(ir->arena, Program);
    ProgramMaking m = {.script = script, .ir = ir, .program = program};
    Function *main = NEW(ir->arena, Function);
    const Arith *count = arith_size(ir->arith, "T");
    *program = (Program){.ir = ir, .main = main};
    VEC_PUSH(ir->arena, &program->sizes, ((SizeDecl){.name = "T", .arith = count}));
    *main = (Function){.name = main_name(script), .is_def = true, .nparam = script->ninput};
    main->params = NEW_ARRAY(ir->arena, Param *, MAX(script->ninput, 1));
    for (int e = 0; e < script->nelem; e++) {
        const Elem *elem = &script->elem[e];
        const Type *type =
            elem->is_uniform ? elem->type : type_array(ir->arena, count, elem->type);
        m.param[e] = param_new(ir, elem->name, e < script->ninput ? type : NULL);
        if (e < script->ninput)
            main->params[e] = m.param[e];
    }
    main->body = calls_from(&m, 0);
    VEC_PUSH(ir->arena, &program->defs, main);
    ir_print(out, program);
}
