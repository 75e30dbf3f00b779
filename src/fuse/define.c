// SPDX-License-Identifier: Apache-2.0
//
// Functions that are definitions of the language: their types must be elements, and the
// implementations follow from their bodies. One whose parameters are as long as sizes that
// have no value is generic: a call makes an instance of it for the lengths of its
// arguments.

#include "fuse/read.h"

#include <string.h>

static bool is_element(const Type *type)
{
    if (type_words(type) > ELEM_WORDS_MAX)
        return false;
    for (; type->kind == T_ARRAY; type = type->elem)
        if (!arith_is_const(type->len, NULL))
            return false;
    return type_is_scalar(type);
}

static bool set_type(Elementary *f, int i, const Type *type, Diags *diags)
{
    if (!is_element(type))
        return diag_error(diags, f->span, "F003",
                          "`%s`: elements are scalars or arrays of them with constant "
                          "lengths, of at most %d words",
                          f->name, ELEM_WORDS_MAX);
    f->type[i] = type;
    f->words[i] = type_words(type);
    return true;
}

static bool mentions(const Expr *expr, const void *size)
{
    bool found = expr->kind == E_NUM && arith_mentions(expr->num[0], size);
    for (int i = 0; i < expr->nnum && !found; i++)
        found = arith_mentions(expr->num[i], size);
    return found;
}

// All sizes of its body have values.
static bool is_known(const Program *program, const Function *def, Diags *diags)
{
    VEC_EACH_REF(const SizeDecl *, size, &program->sizes)
        if (size->arith && size->arith->kind == A_VAR &&
            expr_find(def->body, mentions, size->arith))
            return diag_error(diags, def->span, "F016",
                              "the size `%s` has no value, and the lengths of the "
                              "parameters do not determine it",
                              size->name);
    return true;
}

// By one thread, and by as many as the leading dimensions of the result have elements.
static void count_threads(Elementary *f)
{
    int64_t threads = 1;
    for (const Type *type = f->type[f->nparam]; threads <= THREADS_MAX; type = type->elem) {
        if (f->nimpl < IMPLS_MAX)
            f->threads[f->nimpl++] = (int)threads;
        if (type->kind != T_ARRAY)
            return;
        threads *= type->len->value;
    }
}

// What computes one component of the result and those behind it.
static Elementary *define_from(Script *script, const Program *program, const Function *def,
                               int part, Diags *diags)
{
    const Type *result = def->result;
    bool tuple = result->kind == T_TUPLE;
    Elementary *f = NEW_OF(script->arena, Elementary, .name = def->name, .span = def->span,
                           .def = def, .program = program, .nparam = def->nparam,
                           .part = part, .parts = tuple ? result->n : 1);
    for (int i = 0; i < f->nparam; i++) {
        f->param[i] = def->params[i]->name;
        if (!set_type(f, i, def->params[i]->type, diags))
            return NULL;
    }
    if (!set_type(f, f->nparam, tuple ? result->item[part] : result, diags))
        return NULL;
    count_threads(f);
    if (part + 1 < f->parts)
        f->next = define_from(script, program, def, part + 1, diags);
    return part + 1 < f->parts && !f->next ? NULL : f;
}

Elementary *define_function(Script *script, const Program *program, const Function *def,
                            Diags *diags)
{
    bool tuple = def->result->kind == T_TUPLE;
    if (def->nparam < 1 || def->nparam > ARITY_MAX || (tuple && def->result->n > ARITY_MAX))
        return diag_null(diags, def->span, "F006",
                         "a function has 1 to %d parameters, and at most %d results",
                         ARITY_MAX, ARITY_MAX);
    return is_known(program, def, diags) ? define_from(script, program, def, 0, diags)
                                         : NULL;
}

// Generic definitions -------------------------------------------------------------------

typedef struct {
    const Program *program;
    Binding *binding; // of its sizes that the arguments say
    int n;
} Match;

static bool look_up(void *user, const Arith *var, int64_t *value)
{
    const Match *m = user;
    VEC_EACH_REF(const SizeDecl *, size, &m->program->sizes) {
        const Binding *known =
            size->arith == var ? binding_find(m->binding, m->n, size->name) : NULL;
        if (known) {
            *value = known->value;
            return true;
        }
    }
    return false;
}

// A length that is a size is what the first argument says.
static void learn_length(Match *m, const Arith *want, int64_t have)
{
    VEC_EACH_REF(const SizeDecl *, size, &m->program->sizes)
        if (size->arith == want && want->kind == A_VAR &&
            !binding_find(m->binding, m->n, size->name))
            m->binding[m->n++] = (Binding){size->name, have};
}

static void learn_type(Match *m, const Type *want, const Type *have)
{
    for (; want->kind == T_ARRAY && have->kind == T_ARRAY;
         want = want->elem, have = have->elem)
        learn_length(m, want->len, have->len->value);
}

static bool match_type(Match *m, const Type *want, const Type *have)
{
    int64_t len;
    for (; want->kind == T_ARRAY && have->kind == T_ARRAY;
         want = want->elem, have = have->elem)
        if (!arith_eval(want->len, look_up, m, &len) || len != have->len->value)
            return false;
    return type_equal(m->program->ir->arith, want, have);
}

static const Elementary *find_instance(const Script *script, const Statement *call,
                                       const Type *const *type)
{
    VEC_EACH(const Elementary *, f, &script->instances) {
        bool same = strcmp(f->name, call->function.text) == 0 && f->nparam == call->n;
        for (int k = 0; k < call->n && same; k++)
            same = type_equal(script->ir->arith, f->type[k], type[k]);
        if (same)
            return f;
    }
    return NULL;
}

static const Elementary *instantiate(Script *script, const Generic *g, Match *m,
                                     Diags *diags)
{
    const Program *bound = ir_bind_some(g->program, m->binding, m->n, diags);
    if (!bound)
        return NULL;
    for (int i = 0; i < g->program->defs.len; i++)
        if (g->program->defs.at[i] == g->def) {
            Elementary *f = define_function(script, bound, bound->defs.at[i], diags);
            if (f)
                VEC_PUSH(script->arena, &script->instances, f);
            return f;
        }
    BUG("a definition that is not in its program");
}

const Elementary *script_instance(Script *script, const Statement *call,
                                  const Type *const *type, Diags *diags)
{
    const Name *name = &call->function;
    const int n = call->n;
    const Elementary *known = find_instance(script, call, type);
    if (known)
        return known;
    for (int i = script->generics.len - 1; i >= 0; i--) { // the script's own first
        const Generic *g = &script->generics.at[i];
        Match m = {g->program, NEW_ARRAY(script->arena, Binding, g->program->sizes.len), 0};
        if (strcmp(g->def->name, name->text) != 0)
            continue;
        if (g->def->nparam != n)
            return diag_null(diags, name->span, "F009", "`%s` takes %d argument%s, not %d",
                             name->text, g->def->nparam, g->def->nparam == 1 ? "" : "s", n);
        for (int k = 0; k < n; k++)
            learn_type(&m, g->def->params[k]->type, type[k]);
        for (int k = 0; k < n; k++)
            if (!match_type(&m, g->def->params[k]->type, type[k]))
                return diag_null(
                    diags, name->span, "F009",
                    "argument %d of `%s` is of another type or length than its "
                    "parameter `%s`",
                    k + 1, name->text, g->def->params[k]->name);
        return instantiate(script, g, &m, diags);
    }
    return diag_null(diags, name->span, "F008",
                     "there is no function `%s`: declare it, or see `forewarp fuse SCRIPT "
                     "--print library`",
                     name->text);
}
