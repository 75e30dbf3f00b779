// SPDX-License-Identifier: Apache-2.0
//
// Metrics and objectives (goal.h) as expressions of a space of their own: the parameters of
// the problem, then numbers that a trial has. A parameter or size of the name of one of
// these numbers hides it.
//
// Several objectives are one cost to a search: the geometric mean, in which a tenth less of
// one is worth a tenth more of another. A search may or may not find the best point of one
// objective alone; the front shows what it found.
#include "problem/goal.h"

#include "store/recorded.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    const SpaceExpr *expr; // NULL: what is told
    int param;             // the number that it is in expressions; -1: none
} Metric;

typedef struct {
    const char *text; // "max GFLOPS"
    const SpaceExpr *expr;
    bool most;
} Objective;

struct Goal {
    Arena *arena;
    Space *space;
    const GoalConfig *config; // while it is opened
    int nparam;               // of the problem
    int time;                 // the number of the parameter; -1: hidden
    Metric metric[GOAL_METRICS];
    int nmetric;
    Objective objective[GOAL_OBJECTIVES];
    int nobjective;
    bool weighs;
    Diags *diags;
};

// Opening -------------------------------------------------------------------------------

static bool is_hidden(const Goal *g, const char *name)
{
    bool hidden = space_find(g->space, name) >= 0;
    for (int i = 0; i < g->config->nsize; i++)
        hidden |= strcmp(g->config->size[i], name) == 0;
    return hidden;
}

// A number that expressions know by a name; -1: the name is another's.
static int add_number(Goal *g, const char *name)
{
    static const double unknown = 0;
    return is_hidden(g, name) || space_params(g->space) == SPACE_PARAMS_MAX
               ? -1
               : space_add(g->space, name, &unknown, 1);
}

static void define(Goal *g)
{
    const GoalConfig *c = g->config;
    for (int i = 0; i < c->nsize; i++)
        space_define(g->space, c->size[i], c->size_value[i]);
    if (c->flops > 0 && !is_hidden(g, "flops"))
        space_define(g->space, "flops", c->flops);
    if (c->bytes > 0 && !is_hidden(g, "bytes"))
        space_define(g->space, "bytes", c->bytes);
    g->time = add_number(g, "time");
    for (int i = 0; i < MEASURES; i++)
        g->metric[g->nmetric++] =
            (Metric){measure_row[i].name, NULL, add_number(g, measure_row[i].name)};
}

static void watch(Goal *g, const SpaceExpr *expr)
{
    for (int i = MEASURE_ENERGY; i <= MEASURE_POWER; i++)
        g->weighs |= g->metric[i].param >= 0 && space_reads(expr, g->metric[i].param);
}

static bool add_metric(Goal *g, const GoalText *text)
{
    for (int i = 0; i < g->nmetric; i++)
        if (strcmp(g->metric[i].name, text->name) == 0) {
            g->weighs |= i == MEASURE_ENERGY || i == MEASURE_POWER;
            return (i < MEASURES && strcmp(text->text, text->name) == 0) ||
                   diag_error(g->diags, span_none, "J013", "%s: `%s` is %s", text->where,
                              text->name,
                              i < MEASURES ? "a number that trials report" : "given twice");
        }
    if (g->nmetric == GOAL_METRICS)
        return diag_error(g->diags, span_none, "J013", "%s: more than %d metrics",
                          text->where, GOAL_METRICS - MEASURES);
    const SpaceExpr *expr = space_expression(g->space, text->where, text->text, g->diags);
    if (!expr)
        return false;
    watch(g, expr);
    g->metric[g->nmetric++] = (Metric){text->name, expr, add_number(g, text->name)};
    return true;
}

// A name of a metric need be no name that expressions know: "GFLOP/s".
static const SpaceExpr *read_expression(Goal *g, const GoalText *text, const char *what)
{
    for (int i = 0; i < g->nmetric; i++)
        if (strcmp(g->metric[i].name, what) == 0 && g->metric[i].param >= 0)
            return space_read(g->space, g->metric[i].param);
    return space_expression(g->space, text->where, what, g->diags);
}

static bool add_objective(Goal *g, const GoalText *text)
{
    Objective o = {0};
    const char *what = recorded_objective(text->text, &o.most);
    if (g->nobjective == GOAL_OBJECTIVES)
        return diag_error(g->diags, span_none, "J013", "%s: more than %d objectives",
                          text->where, GOAL_OBJECTIVES);
    o.expr = read_expression(g, text, what);
    if (!o.expr)
        return false;
    o.text = arena_printf(g->arena, "%s %s", o.most ? "max" : "min", what);
    watch(g, o.expr);
    g->objective[g->nobjective++] = o;
    return true;
}

Goal *goal_open(const GoalConfig *config, Diags *diags)
{
    static const GoalText time = {NULL, "min time", "objective"};
    const GoalTexts *texts = config->texts;
    Arena *arena = arena_new();
    Goal *g =
        NEW_OF(arena, Goal, .arena = arena, .space = space_like(config->space),
               .config = config, .nparam = space_params(config->space), .diags = diags);
    define(g);
    bool ok = true;
    for (int i = 0; ok && i < texts->metric.len; i++)
        ok = add_metric(g, &texts->metric.at[i]);
    for (int i = 0; ok && i < texts->objective.len; i++)
        ok = add_objective(g, &texts->objective.at[i]);
    if (ok && !texts->objective.len && g->time >= 0)
        ok = add_objective(g, &time);
    g->config = NULL;
    if (ok)
        return g;
    goal_close(g);
    return NULL;
}

void goal_close(Goal *goal)
{
    if (!goal)
        return;
    space_free(goal->space);
    arena_free(goal->arena);
}

// What it is ----------------------------------------------------------------------------

int goal_metrics(const Goal *goal)
{
    return goal->nmetric;
}

const char *goal_metric(const Goal *goal, int i)
{
    return goal->metric[i].name;
}

const char *goal_unit(int i)
{
    return i < MEASURES ? measure_row[i].unit : "";
}

int goal_objectives(const Goal *goal)
{
    return goal->nobjective;
}

const char *goal_objective(const Goal *goal, int i)
{
    return goal->objective[i].text;
}

bool goal_is_time(const Goal *goal)
{
    return goal->nobjective == 0 ||
           (goal->nobjective == 1 && strcmp(goal->objective[0].text, "min time") == 0);
}

bool goal_weighs(const Goal *goal)
{
    return goal->weighs;
}

// Values --------------------------------------------------------------------------------

// Positive, and the smaller the better, in the magnitude of nanoseconds; of what may be
// negative only the order stays.
static double cost_of(double value, bool most)
{
    if (isnan(value))
        return INFINITY;
    if (value > 0)
        return most ? 1e9 / value : 1e6 * value;
    return most ? 1e30 * (1 - value) : 1e-6 / (1 - value);
}

void goal_values(const Goal *goal, const Point *point, double time_ns,
                 const Measures *measures, GoalValues *values)
{
    double number[SPACE_PARAMS_MAX] = {0}, logs = 0;
    for (int i = 0; i < goal->nparam; i++)
        number[i] = space_value(goal->space, point, i);
    values->time_ns = time_ns;
    if (goal->time >= 0)
        number[goal->time] = time_ns * 1e-6;
    for (int i = 0; i < goal->nmetric; i++) {
        const Metric *m = &goal->metric[i];
        values->metric[i] = m->expr ? space_evaluate_numbers(m->expr, number)
                                    : measure_of(measures, (Measure)i);
        if (m->param >= 0)
            number[m->param] = values->metric[i];
    }
    for (int i = 0; i < goal->nobjective; i++) {
        const Objective *o = &goal->objective[i];
        values->objective[i] = space_evaluate_numbers(o->expr, number);
        logs += log(cost_of(values->objective[i], o->most));
    }
    values->cost = goal_is_time(goal) ? time_ns : exp(logs / goal->nobjective);
}

bool goal_beats(const Goal *goal, const GoalValues *a, const GoalValues *b)
{
    bool better = false;
    for (int i = 0; i < goal->nobjective; i++) {
        double x = cost_of(a->objective[i], goal->objective[i].most);
        double y = cost_of(b->objective[i], goal->objective[i].most);
        if (!(x <= y))
            return false;
        better |= x < y;
    }
    return better;
}
