// SPDX-License-Identifier: Apache-2.0
//
// Binds the sizes of a template: makes its space and the lengths of its arrays, and reads
// every expression. All names are known here, so errors in expressions are found here.

#include "problem/template.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LENGTH_MOST = 0x1p40;

static bool no_size(const Template *t, const char *name, Diags *diags)
{
    AutoBuf known = buf_new();
    for (int i = 0; i < t->size.len; i++)
        buf_printf(&known, "%s%s", i ? ", " : "; its sizes: ", t->size.at[i].name);
    return diag_error(diags, span_none, "J003", "%s: there is no size `%s`%s", t->path,
                      name, known.text);
}

static bool bind_sizes(Problem *problem, Diags *diags)
{
    Template *t = problem->template;
    ARRAY_EACH_REF(const Binding *, given, problem->binding, problem->nbinding) {
        const int i = FIND(t->size.at, t->size.len, name, given->name);
        if (i < 0)
            return no_size(t, given->name, diags);
        t->size.at[i].value = given->value;
    }
    problem->binding = COPY_ARRAY(t->arena, t->size.at, t->size.len);
    problem->nbinding = t->size.len;
    return true;
}

static void define_sizes(const Template *t, Space *space)
{
    for (int i = 0; i < t->size.len; i++)
        space_define(space, t->size.at[i].name, (double)t->size.at[i].value);
}

static void add_params(const Template *t)
{
    VEC_EACH_REF(const TemplateParam *, p, &t->param)
        if (p->word)
            space_add_words(t->space, p->name, p->word, p->n);
        else
            space_write_as(t->space, space_add(t->space, p->name, p->value, p->n), p->form);
}

static bool constrain(const Template *t, Diags *diags)
{
    for (int i = 0; i < t->constraint.len; i++)
        if (!space_constrain_at(t->space, t->constraint.at[i].where,
                                t->constraint.at[i].text, diags))
            return false;
    if (!space_build(t->space, diags))
        return false;
    return space_count(t->space) > 0 ||
           diag_error(diags, span_none, "J004", "%s: no point satisfies the constraints",
                      t->path);
}

// The default point: what the file says of each parameter, else its first value. Where that
// breaks a constraint, which smaller sizes may bring about, the first point of all.
static bool set_plain(Template *t, Diags *diags)
{
    bool said = false;
    for (int i = 0; i < t->param.len; i++) {
        const TemplateParam *p = &t->param.at[i];
        said |= p->first != NULL;
        t->plain.choice[i] = 0;
        if (p->first && !space_set(t->space, &t->plain, p->name, p->first))
            return diag_error(diags, span_none, "J005",
                              "%s: parameters.%s: %s is not one of its values", t->path,
                              p->name, p->first);
    }
    if (space_valid(t->space, &t->plain))
        return true;
    if (said)
        diag_warning(diags, span_none, "J005",
                     "%s: the default point breaks a constraint; another point is used",
                     t->path);
    space_point(t->space, 0, &t->plain);
    return true;
}

// The point that is the reference, before anybody leaves out points by a further
// constraint.
static bool set_reference_point(Template *t, Diags *diags)
{
    const char *name;
    json_t *value;
    Point *point = &t->reference.at;
    *point = t->plain;
    json_object_foreach(t->reference.point, name, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        const char *word = json_is_string(value) ? json_string_value(value) : text;
        bool ok = space_set(t->space, point, name, word);
        if (!ok)
            diag_error(diags, span_none, "J005",
                       "%s: reference.point.%s: %s is not one of its values", t->path, name,
                       word);
        free(text);
        if (!ok)
            return false;
    }
    return space_valid(t->space, point) ||
           diag_error(diags, span_none, "J005",
                      "%s: reference.point: the point breaks a constraint", t->path);
}

// Lengths -----------------------------------------------------------------------------

static const char *arg_place(const Template *t, int i, const char *key)
{
    return arena_printf(t->arena, "%s: arguments[%d].%s", t->path, i, key);
}

// The value of an expression over the sizes, or the most that it is at any values of the
// parameters; varies: it has some. In T1 files a parameter in a length is its largest
// value.
static bool length_of(const Template *t, const char *where, const char *text, double least,
                      int64_t *out, bool *varies, Diags *diags)
{
    Space *space = t->kernel_tuner ? t->sizes : t->space;
    const SpaceExpr *expr = space_expression(space, where, text, diags);
    if (!expr)
        return false;
    double x = space_most(space, expr, varies);
    x = *varies ? floor(x) : x;
    *out = isfinite(x) && fabs(x) <= LENGTH_MOST ? (int64_t)x : -1;
    return (x >= least && x <= LENGTH_MOST && x == floor(x)) ||
           diag_error(diags, span_none, "J006",
                      "%s: `%s` is %g, and must be a whole number "
                      "from %g to 2^40",
                      where, text, x, least);
}

static bool bind_pad(const Template *t, int i, TemplateArg *arg, Diags *diags)
{
    const TemplateArg *of = &t->arg.at[arg->fill.of];
    bool varies = false;
    if (arg->fill.pad && !length_of(t, arg_place(t, i, "fill.pad"), arg->fill.pad, 0,
                                    &arg->pad, &varies, diags))
        return false;
    bool same = !varies && arg->ndim == of->ndim && arg->element == of->element &&
                arg->width == of->width;
    for (int d = 0; same && d < arg->ndim; d++)
        same = arg->length[d] == of->length[d] + 2 * arg->pad;
    return same ||
           diag_error(diags, span_none, "J007",
                      "%s: its shape is not that of `%s`, %" PRId64 " more on each side",
                      arg_place(t, i, "fill"), of->name, arg->pad);
}

static bool bind_shape(const Template *t, int i, TemplateArg *arg, Diags *diags)
{
    arg->count = arg->width;
    arg->varies = false;
    for (int d = 0; d < arg->ndim; d++) {
        bool varies;
        if (!length_of(t, arg_place(t, i, "shape"), arg->shape[d], 1, &arg->length[d],
                       &varies, diags))
            return false;
        arg->varies |= varies;
        if ((double)arg->count * (double)arg->length[d] > LENGTH_MOST)
            return diag_error(diags, span_none, "J006", "%s: more than 2^40 elements",
                              arg_place(t, i, "shape"));
        arg->count *= arg->length[d];
    }
    if (arg->varies && arg->access != ACCESS_IN && !arg->unchecked && !arg->part)
        return diag_error(diags, span_none, "J006",
                          "%s: it depends on parameters, so points cannot be compared; "
                          "\"check\" says which elements are (\"i < N\"; false: none)",
                          arg_place(t, i, "shape"));
    return arg->fill.kind != FILL_VIEW || bind_pad(t, i, arg, diags);
}

static bool bind_values(const Template *t, int i, TemplateArg *arg, Diags *diags)
{
    const SpaceExpr **expr = NEW_ARRAY(t->arena, const SpaceExpr *, arg->values.len);
    for (int k = 0; k < arg->values.len; k++) {
        expr[k] =
            space_expression(t->scope, arg_place(t, i, "value"), arg->values.at[k], diags);
        if (!expr[k])
            return false;
    }
    arg->value_expr = expr;
    return true;
}

// An expression; true also where there is none.
static bool bind_text(const Template *t, const char *where, const char *key,
                      const char *text, const SpaceExpr **out, Diags *diags)
{
    const char *place = arena_printf(t->arena, "%s: %s.%s", t->path, where, key);
    *out = text ? space_expression(t->scope, place, text, diags) : NULL;
    return !text || *out;
}

static bool bind_args(Template *t, Diags *diags)
{
    int buffer = 0;
    for (int i = 0; i < t->arg.len; i++) {
        TemplateArg *arg = &t->arg.at[i];
        const char *where = arena_printf(t->arena, "arguments[%d]", i);
        if (!bind_text(t, where, "if", arg->when, &arg->when_expr, diags) ||
            !bind_text(t, where, "local", arg->local, &arg->local_expr, diags) ||
            !bind_values(t, i, arg, diags) ||
            (template_is_array(arg) && !bind_shape(t, i, arg, diags)))
            return false;
        arg->buffer = template_is_array(arg) ? buffer++ : -1;
    }
    return true;
}

// Launches ----------------------------------------------------------------------------

static bool bind_list(const Template *t, const char *where, TemplateLaunch *launch, int n,
                      Diags *diags);

static bool bind_launch(const Template *t, const char *where, TemplateLaunch *launch,
                        Diags *diags)
{
    if (!bind_text(t, where, "if", launch->when, &launch->when_expr, diags) ||
        !bind_text(t, where, "repeat", launch->repeat, &launch->repeat_expr, diags) ||
        !bind_text(t, where, "shared", launch->shared, &launch->shared_expr, diags))
        return false;
    if (launch->inner.len)
        return bind_list(t, arena_printf(t->arena, "%s.launch", where), launch->inner.at,
                         launch->inner.len, diags);
    launch->arg.len = 0;
    for (int k = 0; k < (launch->argument.len ? launch->argument.len : t->arg.len); k++)
        VEC_PUSH(t->arena, &launch->arg,
                 launch->argument.len ? template_arg(t, launch->argument.at[k]) : k);
    for (int d = 0; launch->global[0] && d < DIMS_MAX; d++) {
        const char *global =
            arena_printf(t->arena, "%s[%d]", launch->groups ? "groups" : "global", d);
        const char *local = arena_printf(t->arena, "local[%d]", d);
        if (!bind_text(t, where, global, launch->global[d], &launch->global_expr[d],
                       diags) ||
            !bind_text(t, where, local, launch->local[d], &launch->local_expr[d], diags))
            return false;
    }
    return true;
}

static bool bind_list(const Template *t, const char *where, TemplateLaunch *launch, int n,
                      Diags *diags)
{
    for (int i = 0; i < n; i++)
        if (!bind_launch(t, n == 1 ? where : arena_printf(t->arena, "%s[%d]", where, i),
                         &launch[i], diags))
            return false;
    return true;
}

// A reference is passed what it names, or what the plain point is passed; a C function has
// no local memory.
static void resolve_args(const Template *t, TemplateLaunch *launch)
{
    int n = 0;
    VEC_EACH(int, i, &launch->arg) {
        if (t->reference.kind == REFERENCE_C && t->arg.at[i].local)
            continue;
        if (t->reference.kind == REFERENCE_JUDGE && !template_is_array(&t->arg.at[i]))
            continue;
        if (launch->argument.len || template_passes(t, &t->arg.at[i], &t->plain))
            launch->arg.at[n++] = i;
    }
    launch->arg.len = n;
    launch->passed = true;
}

static bool bind_launches(Template *t, Diags *diags)
{
    if (!bind_list(t, "launch", t->launch.at, t->launch.len, diags) ||
        !bind_launch(t, "reference", &t->reference.launch, diags))
        return false;
    t->reference.launch.loop = -1;
    resolve_args(t, &t->reference.launch);
    return true;
}

// The parameters without constraints, and the numbers of repetitions.
static void make_scope(Template *t)
{
    int64_t number[LOOP_MOST];
    for (int i = 0; i < LOOP_MOST; i++)
        number[i] = i;
    space_free(t->scope);
    t->scope = space_like(t->space);
    define_sizes(t, t->scope);
    for (int i = 0; i < t->loop.len; i++)
        space_add_ints(t->scope, t->loop.at[i], number, LOOP_MOST);
}

// Macros ------------------------------------------------------------------------------

// What was written as a real is one in C too: `x / 2.0` is no division of whole numbers.
static void put_choice(Buf *out, const TemplateParam *p, int choice)
{
    double value = p->value[choice];
    bool whole = value == floor(value) && fabs(value) < 0x1p53;
    if (p->word)
        buf_puts(out, p->word[choice]);
    else if (whole)
        buf_printf(out, "%.0f%s", value, p->form[choice] == VALUE_REAL ? ".0" : "");
    else
        buf_printf(out, "%.17g", value);
}

bool template_value_print(const Template *t, const Point *point, const char *name, Buf *out)
{
    int size = FIND(t->size.at, t->size.len, name, name);
    int param = FIND(t->param.at, t->param.len, name, name);
    if (size >= 0)
        buf_printf(out, "%" PRId64, t->size.at[size].value);
    else if (param >= 0)
        put_choice(out, &t->param.at[param], point->choice[param]);
    return size >= 0 || param >= 0;
}

void template_macros(const Template *t, const char *text, const Point *point, Buf *out)
{
    for (int i = 0; i < t->size.len; i++)
        if (!strchr(t->size.at[i].name, '[') &&
            !template_declares(text, t->size.at[i].name))
            buf_printf(out, "#define %s %" PRId64 "\n", t->size.at[i].name,
                       t->size.at[i].value);
    for (int i = 0; point && i < t->param.len; i++) {
        buf_printf(out, "#define %s ", t->param.at[i].name);
        put_choice(out, &t->param.at[i], point->choice[i]);
        buf_putc(out, '\n');
    }
}

bool template_bind(Problem *problem, Diags *diags)
{
    Template *t = problem->template;
    if (!bind_sizes(problem, diags))
        return false;
    space_free(t->space); // of other sizes
    t->space = space_new();
    define_sizes(t, t->sizes);
    define_sizes(t, t->space);
    add_params(t);
    make_scope(t);
    return constrain(t, diags) && set_plain(t, diags) && set_reference_point(t, diags) &&
           bind_args(t, diags) && bind_launches(t, diags);
}

void template_unbind(Template *t)
{
    space_free(t->space);
    space_free(t->scope);
    space_free(t->sizes);
    json_decref(t->json);
}
