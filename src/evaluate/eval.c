// SPDX-License-Identifier: Apache-2.0
//
// The evaluation of 000, sections 7 and 8, as numbers. All rows of the other programs are
// trained on: merging rows of equal features keeps that fast enough (nearest.c).
//
// Expectations. In a tie of n points of which g are good, random order reaches the first
// good one after (n + 1) / (g + 1) runs; each bad point comes before all good ones with
// probability 1 / (g + 1). After r runs the i-th lowest of n values (from 1) is the highest
// drawn with probability C(i - 1, r - 1) / C(n, r).
#include "evaluate/eval.h"

#include "measure/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double prediction, throughput, time_ns;
} RankedRow;

static int compare_candidates(const void *a, const void *b)
{
    const RankedRow *p = a, *q = b;
    if (p->prediction != q->prediction)
        return p->prediction > q->prediction ? -1 : 1;
    if (p->throughput != q->throughput)
        return p->throughput < q->throughput ? -1 : 1;
    return compare_doubles(&p->time_ns, &q->time_ns);
}

// Highest prediction first; within a tie, lowest throughput first.
static RankedRow *sorted(const double *prediction, const double *throughput,
                         const double *time_ns, int n)
{
    RankedRow *c = xcalloc((size_t)n + 1, sizeof *c);
    for (int i = 0; i < n; i++) {
        bool ran = time_ns && !isnan(time_ns[i]);
        c[i] = (RankedRow){prediction ? prediction[i] : 0, throughput[i],
                           ran ? time_ns[i] : 0};
    }
    qsort(c, (size_t)n, sizeof *c, compare_candidates);
    return c;
}

static int tie_length(const RankedRow *c, int n)
{
    int length = 1;
    while (length < n && c[length].prediction == c[0].prediction)
        length++;
    return length;
}

// Adds what a tie costs; true if a good point is in it.
static bool pay_tie(const RankedRow *c, int n, double goal, EvalCost *cost)
{
    double bad_ns = 0, good_ns = 0;
    int good = 0;
    for (int i = 0; i < n; i++) {
        bool is_good = c[i].throughput >= goal;
        good += is_good;
        *(is_good ? &good_ns : &bad_ns) += c[i].time_ns;
    }
    cost->runs += good ? (n + 1.0) / (good + 1) : n;
    cost->time_ns += good ? bad_ns / (good + 1) + good_ns / good : bad_ns;
    return good > 0;
}

EvalCost eval_cost(const double *prediction, const double *throughput,
                   const double *time_ns, int n, double goal)
{
    AUTO_FREE RankedRow *c = sorted(prediction, throughput, time_ns, n);
    EvalCost cost = {0};
    bool found = false;
    for (int i = 0, length; i < n && !found; i += length) {
        length = tie_length(c + i, n - i);
        found = pay_tie(c + i, length, goal, &cost);
    }
    return found ? cost : (EvalCost){NAN, NAN};
}

// The expected highest of `so_far` and r points drawn from c[0..n), lowest first.
static double expected_best(const RankedRow *c, int n, int r, double so_far)
{
    double probability = (double)r / n, sum = 0;
    for (int i = n; i >= r; i--) {
        sum += probability * fmax(c[i - 1].throughput, so_far);
        if (i > 1)
            probability *= (double)(i - r) / (i - 1);
    }
    return sum;
}

void eval_curve(const double *prediction, const double *throughput, int n, double *best,
                int length)
{
    AUTO_FREE RankedRow *c = sorted(prediction, throughput, NULL, n);
    double so_far = 0;
    for (int i = 0, tie; i < length; i += tie) {
        tie = tie_length(c + i, n - i);
        for (int r = 1; r <= tie && i + r <= length; r++)
            best[i + r - 1] = expected_best(c + i, tie, r, so_far);
        so_far = fmax(so_far, c[i + tie - 1].throughput);
    }
}

EvalCost eval_cost_simulated(const double *throughput, const double *time_ns, int n,
                             double goal, int repeat, uint64_t seed)
{
    EvalCost sum = {0};
    AUTO_FREE double *order = xcalloc((size_t)n + 1, sizeof *order);
    Rng rng = rng_new(seed);
    for (int k = 0; k < repeat; k++) {
        for (int i = 0; i < n; i++)
            order[i] = rng_double(&rng);
        EvalCost one = eval_cost(order, throughput, time_ns, n, goal);
        sum.runs += one.runs / repeat;
        sum.time_ns += one.time_ns / repeat;
    }
    return sum;
}

// One program at one size ---------------------------------------------------------------

// What is known of a group; the first ones stand in the result under these names.
enum {
    PEARSON,
    SPEARMAN,
    MODEL_RUNS,
    RANDOM_RUNS,
    MODEL_RUNS_STRICT,
    MODEL_NS,
    RANDOM_NS,
    COLUMNS_SHOWN,
    RANDOM_RUNS_STRICT = COLUMNS_SHOWN,
    FEWER_RUNS,
    LESS_TIME,
    MODEL_AFTER, // the best after as many runs as `afters` says
    RANDOM_AFTER = MODEL_AFTER + 3,
    EVAL_COLUMNS = RANDOM_AFTER + 3
};
static const char *const shown[COLUMNS_SHOWN] = {
    "pearson",       "spearman", "model_runs", "random_runs",
    "model_runs_95", "model_ns", "random_ns"};
static const int afters[] = {1, 5, 10};

enum { SOON = 5 }; // runs

typedef struct {
    int group; // of the dataset
    int good;  // points within the goal
    double column[EVAL_COLUMNS];
    double *model_curve, *random_curve; // the best after 1, 2, ... runs
    int curve;                          // their length
} EvalGroup;

typedef struct {
    const Dataset *data;
    const EvalOptions *options;
    Arena *arena;
    double *predicted; // a row of the dataset each
    int ngroup;        // groups with a row that ran, at least two programs
    EvalGroup *group;  // in the dataset's order
} Eval;

// The columns of a group that eval needs, side by side.
typedef struct {
    int n;
    double *predicted, *throughput, *time_ns;
} Columns;

static Columns gather(const Eval *e, const DatasetGroup *g, bool only_ok, Arena *arena)
{
    Columns c = {.predicted = NEW_ARRAY(arena, double, g->n),
                 .throughput = NEW_ARRAY(arena, double, g->n),
                 .time_ns = NEW_ARRAY(arena, double, g->n)};
    ARRAY_EACH(int, row, g->row, g->n) {
        if (only_ok && isnan(e->data->time_ns[row]))
            continue;
        c.predicted[c.n] = e->predicted[row];
        c.throughput[c.n] = e->data->throughput[row];
        c.time_ns[c.n++] = e->data->time_ns[row];
    }
    return c;
}

static void follow(EvalGroup *out, const Columns *all, Arena *arena)
{
    out->curve = MIN(all->n, EVAL_CURVE_MAX);
    out->model_curve = NEW_ARRAY(arena, double, out->curve);
    out->random_curve = NEW_ARRAY(arena, double, out->curve);
    eval_curve(all->predicted, all->throughput, all->n, out->model_curve, out->curve);
    eval_curve(NULL, all->throughput, all->n, out->random_curve, out->curve);
    for (int i = 0; i < COUNTOF(afters); i++) {
        int at = MIN(afters[i], out->curve) - 1;
        out->column[MODEL_AFTER + i] = out->model_curve[at];
        out->column[RANDOM_AFTER + i] = out->random_curve[at];
    }
}

// The cost of the order by predictions, or of random orders.
static EvalCost cost_of(const Columns *c, bool random, double goal)
{
    return eval_cost(random ? NULL : c->predicted, c->throughput, c->time_ns, c->n, goal);
}

static void eval_group(const Eval *e, EvalGroup *out)
{
    const DatasetGroup *g = &e->data->group_at[out->group];
    const EvalOptions *o = e->options;
    AutoArena *scratch = arena_new();
    Columns ran = gather(e, g, true, scratch), all = gather(e, g, false, scratch);
    double *column = out->column;
    column[PEARSON] = metric_pearson(ran.predicted, ran.throughput, ran.n);
    column[SPEARMAN] = metric_spearman(ran.predicted, ran.throughput, ran.n);
    for (int i = 0; i < ran.n; i++)
        out->good += ran.throughput[i] >= o->goal;
    EvalCost model = cost_of(&all, false, o->goal), random = cost_of(&all, true, o->goal);
    if (o->random_repeat)
        random =
            eval_cost_simulated(all.throughput, all.time_ns, all.n, o->goal,
                                o->random_repeat, hash_mix(o->seed, (uint64_t)out->group));
    column[MODEL_RUNS] = model.runs;
    column[RANDOM_RUNS] = random.runs;
    column[MODEL_NS] = model.time_ns;
    column[RANDOM_NS] = random.time_ns;
    column[MODEL_RUNS_STRICT] = cost_of(&all, false, EVAL_STRICT).runs;
    column[RANDOM_RUNS_STRICT] = cost_of(&all, true, EVAL_STRICT).runs;
    column[FEWER_RUNS] = random.runs / model.runs;
    column[LESS_TIME] = random.time_ns / model.time_ns;
    follow(out, &all, e->arena);
}

static json_t *group_json(const Eval *e, const EvalGroup *g)
{
    const DatasetGroup *d = &e->data->group_at[g->group];
    json_t *json = json_pack(
        "{s:s, s:s, s:i, s:i, s:i}", "program", e->data->program_name[d->program], "size",
        e->data->size_name[d->size], "points", d->n, "ran", d->ok, "good", g->good);
    for (int i = 0; i < COLUMNS_SHOWN; i++)
        json_object_set_new(json, shown[i], json_finite(g->column[i]));
    json_object_set_new(json, "model_best", json_numbers(g->model_curve, g->curve));
    json_object_set_new(json, "random_best", json_numbers(g->random_curve, g->curve));
    return json;
}

// Over groups ---------------------------------------------------------------------------

// Groups of a program and a size; negative: of any.
typedef struct {
    int program, size;
} Where;
static const Where everywhere = {-1, -1};

static bool is_there(const Eval *e, int i, Where where)
{
    const DatasetGroup *g = &e->data->group_at[e->group[i].group];
    return (where.program < 0 || g->program == where.program) &&
           (where.size < 0 || g->size == where.size);
}

static double lowest(const double *a, int n)
{
    double low = NAN;
    for (int i = 0; i < n; i++)
        low = fmin(low, a[i]);
    return low;
}

static double highest(const double *a, int n)
{
    double high = NAN;
    for (int i = 0; i < n; i++)
        high = fmax(high, a[i]);
    return high;
}

static double share_soon(const double *runs, int n)
{
    int soon = 0;
    for (int i = 0; i < n; i++)
        soon += runs[i] <= SOON;
    return n ? (double)soon / n : NAN;
}

// A column of many groups as one number, which stands in the result under a name.
typedef struct {
    const char *name;
    int column;
    double (*how)(const double *at, int n);
} Folded;

// Groups where it is NAN are left out.
static void set_folded(const Eval *e, Where where, const Folded *fold, int n, json_t *json)
{
    AUTO_FREE double *value = xcalloc((size_t)e->ngroup + 1, sizeof *value);
    for (; n > 0; n--, fold++) {
        int count = 0;
        for (int i = 0; i < e->ngroup; i++)
            if (is_there(e, i, where) && !isnan(e->group[i].column[fold->column]))
                value[count++] = e->group[i].column[fold->column];
        json_object_set_new(json, fold->name, json_finite(fold->how(value, count)));
    }
}

static json_t *reach_json(const Eval *e, double goal, int model, int random)
{
    const Folded folds[] = {{"mean", model, metric_mean},
                            {"geomean", model, metric_geomean},
                            {"random_mean", random, metric_mean},
                            {"random_geomean", random, metric_geomean},
                            {"within_5", model, share_soon}};
    json_t *json = json_pack("{s:f}", "goal", goal);
    set_folded(e, everywhere, folds, COUNTOF(folds), json);
    return json;
}

// The groups of one size: models that count on features of fixed scale fail at the ends.
static json_t *sizes_json(const Eval *e)
{
    static const Folded folds[] = {{"runs", MODEL_RUNS, metric_mean},
                                   {"runs_95", MODEL_RUNS_STRICT, metric_mean},
                                   {"fewer_runs", FEWER_RUNS, metric_geomean},
                                   {"pearson", PEARSON, metric_mean}};
    json_t *list = json_array();
    for (int s = 0; s < e->data->nsize; s++) {
        int groups = 0;
        for (int i = 0; i < e->ngroup; i++)
            groups += is_there(e, i, (Where){-1, s});
        if (!groups)
            continue;
        json_t *json =
            json_pack("{s:s, s:i}", "size", e->data->size_name[s], "programs", groups);
        set_folded(e, (Where){-1, s}, folds, COUNTOF(folds), json);
        json_array_append_new(list, json);
    }
    return list;
}

static json_t *programs_json(const Eval *e)
{
    static const Folded folds[] = {{"fewer_runs", FEWER_RUNS, metric_geomean},
                                   {"less_time", LESS_TIME, metric_geomean}};
    json_t *list = json_array();
    for (int p = 0; p < e->data->nprogram; p++) {
        json_t *json = json_pack("{s:s}", "program", e->data->program_name[p]);
        set_folded(e, (Where){p, -1}, folds, COUNTOF(folds), json);
        json_array_append_new(list, json);
    }
    return list;
}

static json_t *summary_json(const Eval *e)
{
    static const Folded folds[] = {
        {"pearson", PEARSON, metric_mean},
        {"lowest_pearson", PEARSON, lowest},
        {"highest_pearson", PEARSON, highest},
        {"spearman", SPEARMAN, metric_mean},
        {"model_runs", MODEL_RUNS, metric_mean},
        {"random_runs", RANDOM_RUNS, metric_mean},
        {"median_model_runs", MODEL_RUNS, metric_median},
        {"median_random_runs", RANDOM_RUNS, metric_median},
        {"fewer_runs", FEWER_RUNS, metric_geomean},
        {"less_time", LESS_TIME, metric_geomean},
        {"best_after_1", MODEL_AFTER, metric_mean},
        {"best_after_5", MODEL_AFTER + 1, metric_mean},
        {"best_after_10", MODEL_AFTER + 2, metric_mean},
        {"random_after_1", RANDOM_AFTER, metric_mean},
        {"random_after_5", RANDOM_AFTER + 1, metric_mean},
        {"random_after_10", RANDOM_AFTER + 2, metric_mean},
    };
    json_t *json = json_pack(
        "{s:[o, o]}", "reach", reach_json(e, e->options->goal, MODEL_RUNS, RANDOM_RUNS),
        reach_json(e, EVAL_STRICT, MODEL_RUNS_STRICT, RANDOM_RUNS_STRICT));
    set_folded(e, everywhere, folds, COUNTOF(folds), json);
    return json;
}

// Features ------------------------------------------------------------------------------

// Most redundant first, over the rows that ran, of all programs and sizes together.
static json_t *features_json(const Eval *e)
{
    const Dataset *data = e->data;
    double *x = NEW_ARRAY(e->arena, double, data->n),
           *y = NEW_ARRAY(e->arena, double, data->n);
    Numbered *order = NEW_ARRAY(e->arena, Numbered, data->d + 1);
    json_t *list = json_array();
    for (int f = 0; f < data->d; f++) {
        int n = 0;
        for (int i = 0; i < data->n; i++)
            if (!isnan(data->time_ns[i])) {
                x[n] = matrix_row(&data->x, i)[f];
                y[n++] = data->throughput[i];
            }
        order[f] = (Numbered){-metric_redundancy(x, y, n), f};
    }
    sort_numbered(order, data->d);
    for (int f = 0; f < data->d; f++)
        json_array_append_new(list, json_pack("{s:s, s:o}", "feature",
                                              data->feature[order[f].number], "redundancy",
                                              json_finite(0 - order[f].value)));
    return list;
}

static json_t *eval_json(const Eval *e, const ModelKind *kind)
{
    json_t *groups = json_array();
    for (int i = 0; i < e->ngroup; i++)
        json_array_append_new(groups, group_json(e, &e->group[i]));
    return json_pack("{s:s, s:s*, s:i, s:f, s:o, s:o, s:o, s:o, s:o}", "model", kind->name,
                     "device", dataset_meta(e->data, "device"), "points", e->data->n,
                     "goal", e->options->goal, "summary", summary_json(e), "features",
                     features_json(e), "programs", programs_json(e), "sizes", sizes_json(e),
                     "groups", groups);
}

json_t *eval_run(const Dataset *data, const ModelKind *kind, const EvalOptions *options,
                 Arena *arena, Diags *diags)
{
    if (data->nprogram < 2)
        return diag_null(diags, span_none, "M030",
                         "leaving one program out needs rows of at least two programs");
    Eval e = {.data = data,
              .options = options,
              .arena = arena,
              .predicted = NEW_ARRAY(arena, double, data->n),
              .group = NEW_ARRAY(arena, EvalGroup, data->ngroup)};
    for (int g = 0; g < data->ngroup; g++)
        if (data->group_at[g].ok)
            e.group[e.ngroup++].group = g;
    if (e.ngroup == 0)
        return diag_null(diags, span_none, "M031", "no row has status `ok`");
    cross_validate(kind, &data->x, data->throughput, data->program, data->nprogram,
                   options->seed, e.predicted);
    for (int i = 0; i < e.ngroup; i++)
        eval_group(&e, &e.group[i]);
    return eval_json(&e, kind);
}
