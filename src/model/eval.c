// SPDX-License-Identifier: Apache-2.0
//
// The evaluation of 000, sections 7 and 8, as numbers. All rows of the other programs are
// trained on: merging rows of equal features keeps that fast enough (nearest.c).
//
// Expectations. In a tie of n points of which g are good, random order reaches the first
// good one after (n + 1) / (g + 1) runs; each bad point comes before all good ones with
// probability 1 / (g + 1). After r runs the i-th lowest of n values (from 1) is the highest
// drawn with probability C(i - 1, r - 1) / C(n, r).
#include "model/eval.h"

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
    RankedRow *c = sorted(prediction, throughput, time_ns, n);
    EvalCost cost = {0};
    bool found = false;
    for (int i = 0, length; i < n && !found; i += length) {
        length = tie_length(c + i, n - i);
        found = pay_tie(c + i, length, goal, &cost);
    }
    free(c);
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
    RankedRow *c = sorted(prediction, throughput, NULL, n);
    double so_far = 0;
    for (int i = 0, tie; i < length; i += tie) {
        tie = tie_length(c + i, n - i);
        for (int r = 1; r <= tie && i + r <= length; r++)
            best[i + r - 1] = expected_best(c + i, tie, r, so_far);
        so_far = fmax(so_far, c[i + tie - 1].throughput);
    }
    free(c);
}

EvalCost eval_cost_simulated(const double *throughput, const double *time_ns, int n,
                             double goal, int repeat, uint64_t seed)
{
    Rng rng;
    EvalCost sum = {0};
    double *order = xcalloc((size_t)n + 1, sizeof *order);
    rng_seed(&rng, seed);
    for (int k = 0; k < repeat; k++) {
        for (int i = 0; i < n; i++)
            order[i] = rng_double(&rng);
        EvalCost one = eval_cost(order, throughput, time_ns, n, goal);
        sum.runs += one.runs / repeat;
        sum.time_ns += one.time_ns / repeat;
    }
    free(order);
    return sum;
}

// One program at one size ---------------------------------------------------------------

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
    for (int i = 0; i < g->n; i++) {
        int row = g->row[i];
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
}

static void eval_group(const Eval *e, const EvalOptions *o, EvalGroup *out, Arena *arena)
{
    const DatasetGroup *g = &e->data->group_at[out->group];
    Arena *scratch = arena_new();
    Columns ran = gather(e, g, true, scratch), all = gather(e, g, false, scratch);
    out->pearson = metric_pearson(ran.predicted, ran.throughput, ran.n);
    out->spearman = metric_spearman(ran.predicted, ran.throughput, ran.n);
    for (int i = 0; i < ran.n; i++)
        out->good += ran.throughput[i] >= o->goal;
    out->model = eval_cost(all.predicted, all.throughput, all.time_ns, all.n, o->goal);
    out->random =
        o->random_repeat
            ? eval_cost_simulated(all.throughput, all.time_ns, all.n, o->goal,
                                  o->random_repeat, hash_mix(o->seed, (uint64_t)out->group))
            : eval_cost(NULL, all.throughput, all.time_ns, all.n, o->goal);
    out->model_strict =
        eval_cost(all.predicted, all.throughput, all.time_ns, all.n, EVAL_STRICT);
    out->random_strict = eval_cost(NULL, all.throughput, all.time_ns, all.n, EVAL_STRICT);
    follow(out, &all, arena);
    arena_free(scratch);
}

// Over groups ---------------------------------------------------------------------------

typedef double EvalValue(const EvalGroup *group);

static double get_pearson(const EvalGroup *g)
{
    return g->pearson;
}
static double get_spearman(const EvalGroup *g)
{
    return g->spearman;
}
static double get_model_runs(const EvalGroup *g)
{
    return g->model.runs;
}
static double get_random_runs(const EvalGroup *g)
{
    return g->random.runs;
}
static double get_strict_runs(const EvalGroup *g)
{
    return g->model_strict.runs;
}
static double get_random_strict_runs(const EvalGroup *g)
{
    return g->random_strict.runs;
}
static double get_fewer_runs(const EvalGroup *g)
{
    return g->random.runs / g->model.runs;
}
static double get_less_time(const EvalGroup *g)
{
    return g->random.time_ns / g->model.time_ns;
}

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

// Without NANs.
static int collect(const Eval *e, Where where, EvalValue *get, double *out)
{
    int n = 0;
    for (int i = 0; i < e->ngroup; i++) {
        double value = get(&e->group[i]);
        if (is_there(e, i, where) && !isnan(value))
            out[n++] = value;
    }
    return n;
}

static double fold(const Eval *e, Where where, EvalValue *get,
                   double (*how)(const double *, int))
{
    double *value = xcalloc((size_t)e->ngroup + 1, sizeof *value);
    int n = collect(e, where, get, value);
    double result = how(value, n);
    free(value);
    return result;
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

static double mean_after(const Eval *e, bool random, int runs)
{
    double sum = 0;
    for (int i = 0; i < e->ngroup; i++) {
        const EvalGroup *g = &e->group[i];
        sum += (random ? g->random_curve : g->model_curve)[MIN(runs, g->curve) - 1];
    }
    return sum / e->ngroup;
}

static double share_soon(const double *runs, int n)
{
    int soon = 0;
    for (int i = 0; i < n; i++)
        soon += runs[i] <= EVAL_SOON;
    return n ? (double)soon / n : NAN;
}

static EvalReach reach(const Eval *e, double goal, EvalValue *model, EvalValue *random)
{
    return (EvalReach){.goal = goal,
                       .mean = fold(e, everywhere, model, metric_mean),
                       .geomean = fold(e, everywhere, model, metric_geomean),
                       .random_mean = fold(e, everywhere, random, metric_mean),
                       .random_geomean = fold(e, everywhere, random, metric_geomean),
                       .soon = fold(e, everywhere, model, share_soon)};
}

static void summarise_sizes(Eval *e, Arena *arena)
{
    e->size = NEW_ARRAY(arena, EvalSize, e->data->nsize);
    for (int s = 0; s < e->data->nsize; s++) {
        Where where = {-1, s};
        int groups = 0;
        for (int i = 0; i < e->ngroup; i++)
            groups += is_there(e, i, where);
        if (groups)
            e->size[e->nsize++] =
                (EvalSize){.size = s,
                           .groups = groups,
                           .pearson = fold(e, where, get_pearson, metric_mean),
                           .runs = fold(e, where, get_model_runs, metric_mean),
                           .strict_runs = fold(e, where, get_strict_runs, metric_mean),
                           .fewer_runs = fold(e, where, get_fewer_runs, metric_geomean)};
    }
}

static void summarise(Eval *e, Arena *arena)
{
    summarise_sizes(e, arena);
    int programs = e->data->nprogram;
    e->fewer_runs = NEW_ARRAY(arena, double, programs);
    e->less_time = NEW_ARRAY(arena, double, programs);
    for (int p = 0; p < programs; p++) {
        e->fewer_runs[p] = fold(e, (Where){p, -1}, get_fewer_runs, metric_geomean);
        e->less_time[p] = fold(e, (Where){p, -1}, get_less_time, metric_geomean);
    }
    e->summary = (EvalSummary){
        .pearson = fold(e, everywhere, get_pearson, metric_mean),
        .spearman = fold(e, everywhere, get_spearman, metric_mean),
        .lowest_pearson = fold(e, everywhere, get_pearson, lowest),
        .highest_pearson = fold(e, everywhere, get_pearson, highest),
        .model_runs = fold(e, everywhere, get_model_runs, metric_mean),
        .random_runs = fold(e, everywhere, get_random_runs, metric_mean),
        .median_model = fold(e, everywhere, get_model_runs, metric_median),
        .median_random = fold(e, everywhere, get_random_runs, metric_median),
        .fewer_runs = fold(e, everywhere, get_fewer_runs, metric_geomean),
        .less_time = fold(e, everywhere, get_less_time, metric_geomean),
        .after1 = mean_after(e, false, 1),
        .after5 = mean_after(e, false, 5),
        .after10 = mean_after(e, false, 10),
        .random1 = mean_after(e, true, 1),
        .random5 = mean_after(e, true, 5),
        .random10 = mean_after(e, true, 10),
        .goal = reach(e, e->goal, get_model_runs, get_random_runs),
        .strict = reach(e, EVAL_STRICT, get_strict_runs, get_random_strict_runs),
    };
}

// Features ------------------------------------------------------------------------------

static int compare_features(const void *a, const void *b)
{
    const EvalFeature *p = a, *q = b;
    if (p->redundancy != q->redundancy)
        return p->redundancy > q->redundancy ? -1 : 1;
    return p->feature - q->feature;
}

// Over the rows that ran, of all programs and sizes together.
static void rank_features(Eval *e, Arena *arena)
{
    const Dataset *data = e->data;
    double *x = xcalloc((size_t)data->n + 1, sizeof *x);
    double *y = xcalloc((size_t)data->n + 1, sizeof *y);
    e->feature = NEW_ARRAY(arena, EvalFeature, data->d);
    for (int f = 0; f < data->d; f++) {
        int n = 0;
        for (int i = 0; i < data->n; i++)
            if (!isnan(data->time_ns[i])) {
                x[n] = matrix_row(&data->x, i)[f];
                y[n++] = data->throughput[i];
            }
        e->feature[f] = (EvalFeature){f, metric_redundancy(x, y, n)};
    }
    qsort(e->feature, (size_t)data->d, sizeof *e->feature, compare_features);
    free(x);
    free(y);
}

Eval *eval_run(const Dataset *data, const ModelKind *kind, const EvalOptions *options,
               Arena *arena, Diags *diags)
{
    if (data->nprogram < 2) {
        diag_error(diags, span_none, "M030",
                   "leaving one program out needs rows of at least two programs");
        return NULL;
    }
    Eval *e = NEW(arena, Eval);
    *e = (Eval){.data = data,
                .kind = kind,
                .goal = options->goal,
                .predicted = NEW_ARRAY(arena, double, data->n),
                .group = NEW_ARRAY(arena, EvalGroup, data->ngroup)};
    for (int g = 0; g < data->ngroup; g++)
        if (data->group_at[g].ok)
            e->group[e->ngroup++].group = g;
    if (e->ngroup == 0) {
        diag_error(diags, span_none, "M031", "no row has status `ok`");
        return NULL;
    }
    cross_validate(kind, &data->x, data->throughput, data->program, data->nprogram,
                   options->seed, e->predicted);
    for (int i = 0; i < e->ngroup; i++)
        eval_group(e, options, &e->group[i], arena);
    rank_features(e, arena);
    summarise(e, arena);
    return e;
}
