// SPDX-License-Identifier: Apache-2.0
//
// The launches of a point: what the problem file lists, with its conditions, repetitions
// and exchanges of arrays written out, so that a job is a plain list.

#include "problem/template.h"

#include <math.h>
#include <string.h>

static const double EXTENT_MOST = 0x1p31, AMOUNT_MOST = 0x1p30;
enum { LAUNCHES_MOST = 10000 };

typedef struct {
    const Template *t;
    Point point; // of the scope
    Arena *arena;
    Diags *diags;
    int *array; // of each argument, the one whose array it has now
    VEC(JobLaunch) made;
} LaunchMaking;

bool template_is_array(const TemplateArg *arg)
{
    return arg->values.len == 0 && !arg->local;
}

const TemplateLaunch *template_first_launch(const Template *t)
{
    const TemplateLaunch *launch = &t->launch.at[0];
    while (launch->inner.len)
        launch = &launch->inner.at[0];
    return launch;
}

static bool holds(const Template *t, const SpaceExpr *expr, const Point *point)
{
    double x = expr ? space_evaluate(t->scope, expr, point) : 1;
    return x != 0 && !isnan(x);
}

bool template_passes(const Template *t, const TemplateArg *arg, const Point *point)
{
    return holds(t, arg->when_expr, point);
}

// A whole number; false with a diagnostic.
static bool whole(const LaunchMaking *m, const SpaceExpr *expr, double least, double most,
                  const char *what, int64_t *out)
{
    double x = space_evaluate(m->t->scope, expr, &m->point);
    if (!(x >= least && x <= most && x == floor(x)))
        return diag_error(m->diags, span_none, "J008", "%s is %g at the point %s", what, x,
                          point_text(m->t->scope, &m->point, m->arena));
    *out = (int64_t)x;
    return true;
}

static bool extents(const LaunchMaking *m, const TemplateLaunch *from, JobLaunch *to)
{
    for (int d = 0; d < DIMS_MAX; d++) {
        if (!whole(m, from->local_expr[d], 1, EXTENT_MOST, "`local` of a launch",
                   &to->local[d]) ||
            !whole(m, from->global_expr[d], 1, EXTENT_MOST,
                   from->groups ? "`groups` of a launch" : "`global` of a launch",
                   &to->global[d]))
            return false;
        if (from->groups)
            to->global[d] *= to->local[d];
    }
    return true;
}

// Arguments ---------------------------------------------------------------------------

// The bytes of a value: of each member its lanes.
static JobArg value_arg(const LaunchMaking *m, const TemplateArg *arg)
{
    int bytes = arg->element->bytes * arg->width, k = 0;
    char *bits = arena_alloc(m->arena, (size_t)bytes);
    VEC_EACH_REF(const Member *, member, &arg->member)
        for (int lane = 0; lane < member->width; lane++) {
            double value = space_evaluate(m->t->scope, arg->value_expr[k++], &m->point);
            element_pack(member->element, &value, 1,
                         bits + member->offset + lane * member->element->bytes);
        }
    return (JobArg){.kind = ARG_BITS, .buffer = bytes, .bits = bits};
}

// CUDA's kernels are passed no local memory: it is the launch's.
static bool set_local(const LaunchMaking *m, const TemplateArg *arg, JobLaunch *to,
                      JobArg *made)
{
    int64_t n, bytes = arg->element->bytes * arg->width;
    if (!whole(m, arg->local_expr, 0, AMOUNT_MOST / (double)bytes, arg->name, &n))
        return false;
    if (language_is(m->t->language, LANGUAGE_CUDA))
        to->local_bytes += n * bytes;
    else
        made[to->narg++] = (JobArg){.kind = ARG_LOCAL, .buffer = (int)(n * bytes)};
    return true;
}

static bool set_args(const LaunchMaking *m, const TemplateLaunch *from, JobLaunch *to)
{
    JobArg *args = NEW_ARRAY(m->arena, JobArg, 2 * from->arg.len + 1);
    to->arg = args;
    VEC_EACH(int, i, &from->arg) {
        const TemplateArg *arg = &m->t->arg.at[i];
        if (!from->passed && !template_passes(m->t, arg, &m->point))
            continue;
        if (arg->local) {
            if (!set_local(m, arg, to, args))
                return false;
        } else if (arg->values.len) {
            args[to->narg++] = value_arg(m, arg);
        } else {
            bool variable = arg->symbol && !from->passed;
            int buffer = m->t->arg.at[m->array[i]].buffer;
            if (variable)
                args[to->narg++] =
                    (JobArg){.kind = ARG_SYMBOL, .buffer = buffer, .symbol = arg->symbol};
            if (!variable || arg->both)
                args[to->narg++] = (JobArg){.kind = ARG_BUFFER, .buffer = buffer};
        }
    }
    return true;
}

// Launches ----------------------------------------------------------------------------

static bool make_list(LaunchMaking *m, const TemplateLaunch *launch, int n);

static bool make_one(LaunchMaking *m, const TemplateLaunch *from)
{
    JobLaunch made = {.kernel = from->kernel};
    if (from->inner.len)
        return make_list(m, from->inner.at, from->inner.len);
    if (!from->global[0]) // a C function has none
        for (int d = 0; d < DIMS_MAX; d++)
            made.global[d] = made.local[d] = 1;
    else if (!extents(m, from, &made))
        return false;
    if (from->shared_expr && !whole(m, from->shared_expr, 0, AMOUNT_MOST,
                                    "the shared memory", &made.local_bytes))
        return false;
    if (!set_args(m, from, &made))
        return false;
    if (m->made.len == LAUNCHES_MOST)
        return diag_error(m->diags, span_none, "J008", "more than %d launches",
                          LAUNCHES_MOST);
    VEC_PUSH(m->arena, &m->made, made);
    return true;
}

static void exchange(LaunchMaking *m, const TemplateLaunch *launch)
{
    int a = template_arg(m->t, launch->swap[0]), b = template_arg(m->t, launch->swap[1]);
    int array = m->array[a];
    m->array[a] = m->array[b];
    m->array[b] = array;
}

static bool make_all(LaunchMaking *m, const TemplateLaunch *launch)
{
    int64_t times = 1;
    if (launch->repeat_expr &&
        !whole(m, launch->repeat_expr, 0, LOOP_MOST, "a `repeat`", &times))
        return false;
    for (int64_t i = 0; i < times; i++) {
        if (launch->loop >= 0)
            m->point.choice[launch->loop] = (int16_t)i;
        if (!holds(m->t, launch->when_expr, &m->point))
            continue;
        if (!make_one(m, launch))
            return false;
        if (launch->swap[0])
            exchange(m, launch);
    }
    return true;
}

static bool make_list(LaunchMaking *m, const TemplateLaunch *launch, int n)
{
    for (int i = 0; i < n; i++)
        if (!make_all(m, &launch[i]))
            return false;
    return true;
}

bool template_launches(const Template *t, const TemplateLaunch *launch, int n,
                       const Point *point, Arena *arena, Job *job, Diags *diags)
{
    LaunchMaking m = {.t = t, .point = *point, .arena = arena, .diags = diags};
    m.array = NEW_ARRAY(arena, int, MAX(t->arg.len, 1));
    for (int i = 0; i < t->arg.len; i++)
        m.array[i] = i;
    for (int i = 0; i < t->loop.len; i++)
        m.point.choice[t->param.len + i] = 0;
    if (!make_list(&m, launch, n))
        return false;
    if (m.made.len == 0)
        return diag_error(diags, span_none, "J008", "nothing is launched at this point");
    job->launch = m.made.at;
    job->nlaunch = m.made.len;
    return true;
}

// C functions -------------------------------------------------------------------------

// Its call from the host device's entry, by the types of the arguments.
static void print_entry(const Template *t, const TemplateLaunch *launch, const Point *point,
                        Buf *out)
{
    static const struct {
        const char *name, *c;
    } spelled[] = {{"uchar", "unsigned char"},   {"char", "signed char"},
                   {"ushort", "unsigned short"}, {"uint", "unsigned int"},
                   {"long", "long long"},        {"ulong", "unsigned long long"},
                   {"half", "unsigned short"}};
    buf_printf(out,
               "\nvoid %s_entry(void *const *arg);\nvoid %s_entry(void *const *arg)\n"
               "{\n    %s(",
               launch->kernel, launch->kernel, launch->kernel);
    for (int k = 0, n = 0; k < launch->arg.len; k++) {
        const TemplateArg *arg = &t->arg.at[launch->arg.at[k]];
        if (!launch->passed && !template_passes(t, arg, point))
            continue;
        int own = FIND(spelled, COUNTOF(spelled), name, arg->element->name);
        const char *type = own < 0 ? arg->element->name : spelled[own].c;
        buf_printf(out, "%s", n ? ", " : "");
        if (arg->values.len == 1 && arg->width == 1)
            buf_printf(out, "*(%s const *)arg[%d]", type, n++);
        else
            buf_printf(out, "arg[%d]", n++);
    }
    buf_puts(out, ");\n}\n");
}

// Prints an entry for each function once, however often it is called.
void template_entries(const Template *t, const TemplateLaunch *launch, int n,
                      const Point *point, Buf *out)
{
    for (int i = 0; i < n; i++) {
        if (launch[i].inner.len)
            template_entries(t, launch[i].inner.at, launch[i].inner.len, point, out);
        else if (!strstr(out->text,
                         arena_printf(t->arena, "\nvoid %s_entry(", launch[i].kernel)))
            print_entry(t, &launch[i], point, out);
    }
}
