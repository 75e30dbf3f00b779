// SPDX-License-Identifier: Apache-2.0
//
// Opens the strategy with what leads it (a ranking by a model or by the device's weights,
// the steps of a heuristic file) and with the stored trials.

#include "tune/internal.h"

#include <math.h>
#include <string.h>

// The points for which options->where holds, which the ranking does not know.
static void keep_valid(Tune *t, const Ranking *ranking)
{
    Point *kept = NEW_ARRAY(t->arena, Point, ranking->n + 1);
    int n = 0;
    for (int i = 0; i < ranking->n; i++)
        if (space_valid(t->space, &ranking->point[i]))
            kept[n++] = ranking->point[i];
    t->search->ranking = kept;
    t->search->nranking = n;
}

// The predicted points, after the plain one, are all that is run.
static bool set_ranking(Tune *t)
{
    if (!t->variants.derivation)
        return diag_error(t->diags, span_none, "C019",
                          "strategy `%s` ranks kernels that forewarp writes; %s is a %s",
                          t->search->kind->name, t->problem->name, t->problem->kind->name);
    tune_report(t, "rank", TRIAL_OK, INFINITY);
    Ranking *ranking = &t->ranking;
    bool ok = tune_rank(t, ranking);
    t->result->model = ranking->model;
    if (ok) {
        keep_valid(t, ranking);
        t->result->ranked = ranking->n;
        t->result->ranking_s = ranking->seconds;
        t->nfirst = MIN(t->nfirst, 1);
    }
    return ok;
}

static bool is_first(const Tune *t, const Point *point)
{
    for (int i = 0; i < t->nfirst; i++)
        if (point_equal(t->space, &t->first[i], point))
            return true;
    return false;
}

static void add_first(Tune *t, const Point *point)
{
    if (t->nfirst < COUNTOF(t->first) && space_valid(t->space, point) &&
        !is_first(t, point))
        t->first[t->nfirst++] = *point;
}

// Are there enough points of the same cover? What a model misses is often the same for all
// of them.
static bool is_crowded(const Tune *t, int from, const Point *point)
{
    enum { SAME = 2 };
    int cover = space_find(t->space, "cover"), n = 0;
    for (int i = from; cover >= 0 && i < t->nfirst; i++)
        n += t->first[i].choice[cover] == point->choice[cover];
    return n >= SAME;
}

// Points that are often good. Where stages share kernels in several variants, in the order
// of what is predicted of them; not those that are put far behind the best, or are
// predicted to be as fast as the one before: the same kernels. Streams of a time loop keep
// the order of their own estimate.
static void add_often(Tune *t)
{
    static const double FAR = 1.4, SECONDS = 0.1; // FAR: of logarithms
    Point often[FIRST_MOST];
    double predicted[FIRST_MOST] = {0}, least = INFINITY, last = -INFINITY;
    bool covers = space_find(t->space, "cover") >= 0 && space_find(t->space, "fuse") < 0;
    int n = derive_first(t->variants.derivation, often, FIRST_MOST);
    if (covers)
        rank_predict(t->led.rank, often, n, SECONDS, predicted);
    for (int i = 0; i < n; i++)
        least = fmin(least, predicted[i]);
    covers = covers && isfinite(least);
    for (int k = 0; k < n; k++) {
        int next = k;
        for (int i = 0; covers && i < n; i++)
            next = predicted[i] < predicted[next] ? i : next;
        if (!covers || (predicted[next] > last && !(predicted[next] > least + FAR)))
            add_first(t, &often[next]);
        last = predicted[next];
        predicted[next] = INFINITY;
    }
}

// The best tiles of a product, or steps together, by their own estimate stay before them.
static void add_picks(Tune *t, int picks)
{
    enum { ESTIMATED = 3 };
    int estimated = MIN(derive_estimated(t->variants.derivation), ESTIMATED);
    int from = t->nfirst = t->has_plain + MIN(estimated, t->nfirst - t->has_plain);
    for (int i = 0; i < t->ranking.n && t->nfirst < from + picks; i++)
        if (!is_crowded(t, from, &t->ranking.point[i]))
            add_first(t, &t->ranking.point[i]);
    add_often(t);
    t->result->ranked = t->ranking.n;
    t->result->ranking_s = t->ranking.seconds;
    t->result->model = "slowness";
}

// What is predicted during the search takes a share of its time.
static void predict_times(void *user, const Point *point, int n, double *predicted)
{
    static const double SHARE = 0.05, AHEAD_S = 0.5;
    Tune *t = user;
    double start_s = clock_s();
    double left_s = AHEAD_S + SHARE * (start_s - t->start_s) - t->led.spent_s;
    rank_predict(t->led.rank, point, n, left_s, predicted);
    t->led.spent_s += clock_s() - start_s;
}

// What a model predicts to be fastest is tried after the plain point, before points that
// are often good, and its predictions lead the strategy; none where no model came with the
// program, and on processors, whose model knows stencils alone.
static void set_picks(Tune *t)
{
    enum { PICKS = 6, POOL = 1000 };
    static const double SECONDS = 2, SHARE = 0.05; // of the budget
    const TuneOptions *o = t->options;
    Predictor *by = &t->led.by;
    Diags quiet = {.arena = t->arena};
    if (t->device->is_cpu || !o->models || !t->variants.derivation || o->no_search ||
        !predictor_load(by, t->device, NULL, o->models, t->arena, &quiet))
        return;
    RankLimit limit = {POOL, fmin(SECONDS, SHARE * t->budget_s),
                       tune_statements_in_time(t)};
    tune_report(t, "rank", TRIAL_OK, INFINITY);
    t->led.rank = rank_open(t->problem, t->device, t->variants.derivation, by, &limit,
                            o->seed, t->arena, &t->ranking, &quiet);
    if (!t->led.rank)
        return;
    add_picks(t, PICKS);
    keep_valid(t, &t->ranking);
    t->led.times = (Predictions){predict_times, t};
    t->search->predictions = &t->led.times;
}

// The steps begin at the plain point, and are all else that is run.
static bool set_steps(Tune *t)
{
    const Problem *problem = t->problem;
    StepsSize *size = NEW_ARRAY(t->arena, StepsSize, problem->nbinding + 1);
    for (int i = 0; i < problem->nbinding; i++)
        size[i] = (StepsSize){problem->binding[i].name, (double)problem->binding[i].value};
    if (!t->options->steps)
        return diag_error(t->diags, span_none, "C041", "strategy `%s` needs a FILE.fwh",
                          t->search->kind->name);
    t->search->steps = t->options->steps;
    t->search->size = size;
    t->search->nsize = problem->nbinding;
    t->nfirst = t->has_plain;
    t->search->start = t->has_plain ? &t->first[0] : NULL;
    return steps_check(t->options->steps, t->space, size, problem->nbinding, t->diags);
}

// A strategy that learns from any point begins with what is stored.
static void tell_stored(void *user, const StoreTrial *trial)
{
    Tune *t = user;
    Point point;
    if (point_parse(t->space, trial->point, &point) && space_valid(t->space, &point))
        tune_take_known(t, true, &point);
}

bool tune_open_search(Tune *t)
{
    const char *name =
        t->options->strategy ? t->options->strategy : t->problem->kind->strategy;
    const SearchKind *kind = search_find(name);
    if (!kind)
        return diag_error(t->diags, span_none, "C010", "there is no strategy `%s`", name);
    double limit = t->options->budget_trials ? (double)t->options->budget_trials : INFINITY;
    t->search = search_open(kind, t->space, t->options->seed, limit);
    t->search->stage[0] = t->options->stage[0];
    t->search->stage[1] = t->options->stage[1];
    t->search->launches = variants_launches(&t->variants);
    t->result->strategy = kind->name;
    if (kind->learns)
        set_picks(t);
    if (kind->learns && !store_each(t->store, t->session, tell_stored, t, t->diags))
        return false;
    return (!kind->needs_ranking || set_ranking(t)) && (!kind->needs_steps || set_steps(t));
}

void tune_close_search(Tune *t)
{
    if (t->search)
        search_close(t->search);
    rank_close(t->led.rank);
    predictor_free(&t->led.by);
}
