// SPDX-License-Identifier: Apache-2.0
//
// From statements to a graph of calls: names are resolved, types compared, calls put in an
// order in which each comes after what it needs; calls without a use and calls made twice
// go (paper 004 leaves both open; they would only be removed later, at a cost).

#include "fuse/read.h"

#include <string.h>

typedef struct {
    Script *script;
    const Draft *draft;
    Diags *diags;
    int nstatement;
    int *producer;                     // of each variable: a statement, -1 or INPUT
    int *argument[ARITY_MAX], *result; // of each statement: variables
    const Elementary **function;
    int *order, norder; // statements, sorted
    bool *used;         // statements that an output needs
    int *same;          // the variable that stands for this one
    int *elem;          // of each variable
} Resolver;

enum { NOBODY = -1, INPUT = -2, STATEMENTS_MAX = 1000 };

static int find_variable(const Resolver *r, const char *name)
{
    return FIND(r->draft->variables.at, r->draft->variables.len, name.text, name);
}

static int need_variable(Resolver *r, const Name *name)
{
    int v = find_variable(r, name->text);
    if (v < 0)
        diag_error(r->diags, name->span, "F007", "the variable `%s` is not declared",
                   name->text);
    return v;
}

// The sum of elements of a type over all instances.
static const Elementary *sum_function(Resolver *r, const Statement *s, const TypeName *name)
{
    const Type *type = name->type;
    if (type_leaf(type)->scalar == S_BOOL)
        return diag_null(r->diags, s->function.span, "F018", "there is no sum of %s",
                         type_text(type, r->script->arena));
    return NEW_OF(r->script->arena, Elementary, .kind = FUNCTION_SUM, .name = "sum",
                  .nparam = 1, .parts = 1, .param = {"x"}, .type = {type, type},
                  .words = {type_words(type), type_words(type)}, .nimpl = 1,
                  .threads = {1});
}

static const Elementary *need_function(Resolver *r, const Statement *s)
{
    const Type *type[ARITY_MAX];
    const Elementary *f = script_function(r->script, s->function.text, 0);
    for (int k = 0; k < s->n && !f; k++) {
        int v = find_variable(r, s->argument[k].text);
        if (v < 0)
            return NULL; // which is said of the argument
        type[k] = r->draft->variables.at[v].type->type;
    }
    f = f ? f : script_instance(r->script, s, type, r->diags);
    if (f && f->parts != s->parts)
        return diag_null(r->diags, s->function.span, "F009", "`%s` has %d result%s, not %d",
                         f->name, f->parts, f->parts == 1 ? "" : "s", s->parts);
    for (int part = 0; f && part < s->part; part++)
        f = f->next;
    return f;
}

static void check_type(Resolver *r, const Name *name, int variable, const Type *want,
                       const char *what)
{
    const TypeName *have = r->draft->variables.at[variable].type;
    if (!type_equal(r->script->ir->arith, have->type, want))
        diag_error(r->diags, name->span, "F009", "`%s` is a %s, %s; %s is %s", name->text,
                   have->name, type_text(have->type, r->script->arena), what,
                   type_text(want, r->script->arena));
}

// Variables, inputs, statements ---------------------------------------------------------

static void check_variables(Resolver *r)
{
    for (int i = 0; i < r->draft->variables.len; i++) {
        const Name *name = &r->draft->variables.at[i].name;
        r->producer[i] = NOBODY;
        if (find_variable(r, name->text) != i)
            diag_error(r->diags, name->span, "F004",
                       "the variable `%s` is already declared", name->text);
    }
}

static void set_producer(Resolver *r, const Name *name, int variable, int producer)
{
    if (r->producer[variable] == NOBODY)
        r->producer[variable] = producer;
    else
        diag_error(r->diags, name->span, "F010",
                   r->producer[variable] == INPUT
                       ? "`%s` is an input: it has a value already"
                       : "`%s` has a value already: each variable gets one",
                   name->text);
}

static const Name *input_at(const Draft *draft, int i)
{
    int n = draft->inputs.len;
    return i < n ? &draft->inputs.at[i] : &draft->uniforms.at[i - n];
}

static int count_inputs(const Draft *draft)
{
    return draft->inputs.len + draft->uniforms.len;
}

static void resolve_inputs(Resolver *r)
{
    for (int i = 0; i < count_inputs(r->draft); i++) {
        const Name *name = input_at(r->draft, i);
        int v = need_variable(r, name);
        if (v >= 0)
            set_producer(r, name, v, INPUT);
    }
}

static void resolve_statement(Resolver *r, int i)
{
    const Statement *s = &r->draft->statements.at[i];
    bool sum = strcmp(s->function.text, "sum") == 0 && s->n == 1 && s->parts == 1;
    int of = sum ? find_variable(r, s->argument[0].text) : -1;
    const Elementary *f =
        of >= 0 ? sum_function(r, s, r->draft->variables.at[of].type) : need_function(r, s);
    r->function[i] = f;
    int result = r->result[i] = need_variable(r, &s->result);
    if (result >= 0)
        set_producer(r, &s->result, result, i);
    if (f && f->nparam != s->n)
        diag_error(r->diags, s->function.span, "F009", "`%s` takes %d argument%s, not %d",
                   f->name, f->nparam, f->nparam == 1 ? "" : "s", s->n);
    for (int k = 0; k < s->n; k++) {
        int v = r->argument[k][i] = need_variable(r, &s->argument[k]);
        if (v >= 0 && f && k < f->nparam)
            check_type(r, &s->argument[k], v, f->type[k],
                       arena_printf(r->script->arena, "the parameter `%s` of %s",
                                    f->param[k], f->name));
    }
    if (result >= 0 && f)
        check_type(r, &s->result, result, f->type[f->nparam],
                   arena_printf(r->script->arena, "the result of %s", f->name));
}

static void check_defined(Resolver *r, const Name *name, int variable)
{
    if (variable >= 0 && r->producer[variable] == NOBODY)
        diag_error(r->diags, name->span, "F011",
                   "`%s` has no value: it is neither an input nor the result of a call",
                   name->text);
}

// Order -------------------------------------------------------------------------------

// Names the calls of a cycle, starting from one that lies on it.
static void report_cycle(Resolver *r, int start, const int *next)
{
    AutoBuf text = buf_new();
    const Draft *d = r->draft;
    for (int s = next[start]; s != start; s = next[s])
        buf_printf(&text, "`%s`, which needs ", d->statements.at[s].result.text);
    diag_error(r->diags, d->statements.at[start].result.span, "F012",
               "the calls form a cycle: `%s` needs %s`%s`",
               d->statements.at[start].result.text, text.text,
               d->statements.at[start].result.text);
}

// Depth first; state: 0 new, 1 being visited, 2 done. next[s]: the statement that s asked
// for last.
static bool visit(Resolver *r, int s, char *state, int *next)
{
    state[s] = 1;
    for (int k = 0; k < r->draft->statements.at[s].n; k++) {
        int p = r->producer[r->argument[k][s]];
        if (p < 0 || state[p] == 2)
            continue;
        next[s] = p;
        if (state[p] == 1) {
            report_cycle(r, p, next);
            return false;
        }
        if (!visit(r, p, state, next))
            return false;
    }
    state[s] = 2;
    r->order[r->norder++] = s;
    return true;
}

static bool sort_statements(Resolver *r)
{
    Arena *arena = r->script->arena;
    char *state = NEW_ARRAY(arena, char, r->nstatement + 1);
    int *next = NEW_ARRAY(arena, int, r->nstatement + 1);
    for (int s = 0; s < r->nstatement; s++)
        if (state[s] == 0 && !visit(r, s, state, next))
            return false;
    return true;
}

// Unused and repeated calls -------------------------------------------------------------

static void mark_used(Resolver *r, int variable)
{
    int s = r->producer[variable];
    if (s < 0 || r->used[s])
        return;
    r->used[s] = true;
    for (int k = 0; k < r->draft->statements.at[s].n; k++)
        mark_used(r, r->argument[k][s]);
}

static bool is_output(const Resolver *r, int variable)
{
    const char *name = r->draft->variables.at[variable].name.text;
    return FIND(r->draft->outputs.at, r->draft->outputs.len, text, name) >= 0;
}

static bool same_call(const Resolver *r, int a, int b)
{
    const Elementary *f = r->function[a], *g = r->function[b];
    if (f != g && !(f->kind == FUNCTION_SUM && g->kind == FUNCTION_SUM))
        return false;
    for (int k = 0; k < r->draft->statements.at[a].n; k++)
        if (r->same[r->argument[k][a]] != r->same[r->argument[k][b]])
            return false;
    return true;
}

// A later call that computes what an earlier one did, and is no output, is left out.
static void drop_repeated(Resolver *r)
{
    for (int v = 0; v < r->draft->variables.len; v++)
        r->same[v] = v;
    for (int i = 0; i < r->norder; i++)
        for (int k = 0; k < i; k++) {
            int a = r->order[k], b = r->order[i];
            if (r->used[a] && r->used[b] && same_call(r, a, b) &&
                !is_output(r, r->result[b])) {
                r->same[r->result[b]] = r->same[r->result[a]];
                r->used[b] = false;
            }
        }
}

static void warn_unused(Resolver *r)
{
    for (int s = 0; s < r->nstatement; s++)
        if (!r->used[s])
            diag_warning(r->diags, r->draft->statements.at[s].result.span, "F013",
                         "no output needs `%s`: the call is left out",
                         r->draft->statements.at[s].result.text);
}

// The graph ---------------------------------------------------------------------------

static int add_elem(Resolver *r, int variable)
{
    Script *script = r->script;
    const ScriptVariable *v = &r->draft->variables.at[variable];
    if (script->nelem == ELEMS_MAX)
        BUG("more elements than calls can have");
    Elem *e = &script->elem[script->nelem];
    *e = (Elem){.name = v->name.text,
                .type = v->type->type,
                .type_name = v->type->name,
                .span = v->name.span,
                .words = type_words(v->type->type),
                .producer = -1,
                .is_output = is_output(r, variable)};
    return r->elem[variable] = script->nelem++;
}

static void add_call(Resolver *r, int s)
{
    Script *script = r->script;
    int number = script->ncall++;
    Call *call = &script->call[number];
    call->function = r->function[s];
    call->span = r->draft->statements.at[s].result.span;
    call->is_uniform = true;
    for (int k = 0; k < r->draft->statements.at[s].n; k++) {
        call->in[k] = r->elem[r->same[r->argument[k][s]]];
        elem_add_user(&script->elem[call->in[k]], number);
        call->is_uniform = call->is_uniform && script->elem[call->in[k]].is_uniform;
    }
    call->out = add_elem(r, r->result[s]);
    script->elem[call->out].is_uniform =
        call->is_uniform || call->function->kind == FUNCTION_SUM;
    script->elem[call->out].producer = number;
}

static bool check_sums(Resolver *r)
{
    ARRAY_EACH_REF(const Call *, call, r->script->call, r->script->ncall)
        if (call->function->kind == FUNCTION_SUM && call->is_uniform)
            return diag_error(r->diags, call->span, "F018",
                              "`%s` is the same for all instances: there is nothing to sum",
                              r->script->elem[call->in[0]].name);
    return true;
}

static bool build(Resolver *r)
{
    Script *script = r->script;
    int calls = 0;
    for (int s = 0; s < r->nstatement; s++)
        calls += r->used[s];
    int inputs = count_inputs(r->draft);
    if (inputs > ELEMS_MAX - CALLS_MAX)
        return diag_error(r->diags, input_at(r->draft, 0)->span, "F014",
                          "%d inputs: a script has at most %d", inputs,
                          ELEMS_MAX - CALLS_MAX);
    if (calls > CALLS_MAX)
        return diag_error(r->diags, r->draft->statements.at[0].result.span, "F014",
                          "%d calls: a script has at most %d; divide it", calls, CALLS_MAX);
    for (int i = 0; i < inputs; i++) {
        int e = add_elem(r, find_variable(r, input_at(r->draft, i)->text));
        script->elem[e].is_input = true;
        script->elem[e].is_uniform = i >= r->draft->inputs.len;
    }
    script->ninput = script->nelem;
    for (int i = 0; i < r->norder; i++)
        if (r->used[r->order[i]])
            add_call(r, r->order[i]);
    for (int i = 0; i < r->draft->outputs.len; i++)
        script->output[script->noutput++] =
            r->elem[find_variable(r, r->draft->outputs.at[i].text)];
    return check_sums(r);
}

static void prepare(Resolver *r)
{
    Arena *arena = r->script->arena;
    int nv = r->draft->variables.len + 1, ns = r->nstatement + 1;
    r->producer = NEW_ARRAY(arena, int, nv);
    r->same = NEW_ARRAY(arena, int, nv);
    r->elem = NEW_ARRAY(arena, int, nv);
    r->result = NEW_ARRAY(arena, int, ns);
    r->order = NEW_ARRAY(arena, int, ns);
    r->used = NEW_ARRAY(arena, bool, ns);
    r->function = NEW_ARRAY(arena, const Elementary *, ns);
    for (int k = 0; k < ARITY_MAX; k++)
        r->argument[k] = NEW_ARRAY(arena, int, ns);
}

static void check_values(Resolver *r)
{
    for (int s = 0; s < r->nstatement; s++)
        for (int k = 0; k < r->draft->statements.at[s].n; k++)
            check_defined(r, &r->draft->statements.at[s].argument[k], r->argument[k][s]);
    for (int i = 0; i < r->draft->outputs.len; i++) {
        const Name *name = &r->draft->outputs.at[i];
        int v = need_variable(r, name);
        check_defined(r, name, v);
        if (v >= 0 && r->producer[v] == INPUT)
            diag_error(r->diags, name->span, "F011", "`%s` is an input, nothing to compute",
                       name->text);
        for (int k = 0; k < i; k++)
            if (strcmp(r->draft->outputs.at[k].text, name->text) == 0) {
                diag_error(r->diags, name->span, "F010", "`%s` is returned already",
                           name->text);
                break;
            }
    }
}

bool script_resolve(Script *script, const Draft *draft, Diags *diags)
{
    int errors = diags->errors;
    Resolver r = {.script = script,
                  .draft = draft,
                  .diags = diags,
                  .nstatement = draft->statements.len};
    Span end = {&script->source, (uint32_t)script->source.len,
                (uint32_t)script->source.len};
    if (r.nstatement > STATEMENTS_MAX)
        return diag_error(diags, draft->statements.at[0].result.span, "F014",
                          "more than %d calls", STATEMENTS_MAX);
    if (!draft->outputs.len)
        return diag_error(diags, end, "F015", "the script returns nothing");
    prepare(&r);
    check_variables(&r);
    resolve_inputs(&r);
    for (int s = 0; s < r.nstatement; s++)
        resolve_statement(&r, s);
    check_values(&r);
    if (diags->errors > errors || !sort_statements(&r))
        return false;
    for (int i = 0; i < draft->outputs.len; i++)
        mark_used(&r, find_variable(&r, draft->outputs.at[i].text));
    warn_unused(&r);
    drop_repeated(&r);
    return build(&r);
}
