// SPDX-License-Identifier: Apache-2.0
//
// forewarp replay: strategies on recorded spaces, scored.

#include "cli/cli.h"
#include "evaluate/replay.h"

#include <math.h>
#include <string.h>

typedef struct {
    Options *o;
    int nspace, nkind;
    Recorded *recorded[CLI_LIST_MAX];
    ScoreSpace space[CLI_LIST_MAX];
    const SearchKind *kind[CLI_LIST_MAX];
    Replay *result; // a strategy after the other, nspace each
    ReplayOptions options;
    Recorded *prior;
} ReplayTable;

// Whether a strategy needs nothing but a space.
static bool is_free(const SearchKind *kind)
{
    return !kind->needs_ranking && !kind->needs_steps;
}

static bool add_kinds(ReplayTable *t, const char *name)
{
    int n;
    const SearchKind *const *all = search_all(&n);
    for (int i = 0; i < n && t->nkind < CLI_LIST_MAX; i++)
        if (strcmp(name, "all") == 0 ? is_free(all[i]) : strcmp(name, all[i]->name) == 0)
            t->kind[t->nkind++] = all[i];
    if (!t->nkind)
        return cli_no_strategy(t->o, name);
    return is_free(t->kind[0]) ||
           diag_error(&t->o->diags, span_none, "C040",
                      "strategy `%s` needs more than a record of times", name);
}

static bool read_spaces(ReplayTable *t)
{
    const char *objective = cli_objective(t->o);
    for (; t->nspace < t->o->nlist; t->nspace++) {
        Recorded *recorded = recorded_read(t->o->list[t->nspace], objective, &t->o->diags);
        t->recorded[t->nspace] = recorded;
        if (!recorded || !replay_space(recorded, &t->space[t->nspace], &t->o->diags))
            return false;
    }
    return true;
}

static bool read_prior(ReplayTable *t)
{
    if (t->o->prior)
        t->options.prior = t->prior =
            recorded_read(t->o->prior, cli_objective(t->o), &t->o->diags);
    return !t->o->prior || t->prior;
}

static const Replay *result_of(const ReplayTable *t, int kind, int space)
{
    return &t->result[kind * t->nspace + space];
}

static bool run_all(ReplayTable *t)
{
    Screen screen = screen_open(t->o);
    int n = t->nkind * t->nspace;
    bool ok = true;
    t->result = NEW_ARRAY(t->o->arena, Replay, n);
    for (int i = 0; i < n && ok; i++) {
        int k = i / t->nspace, s = i % t->nspace;
        screen_show(&screen, &(Moment){.stage = t->kind[k]->name,
                                       .what = "scores",
                                       .done = i,
                                       .of = n,
                                       .budget_s = INFINITY,
                                       .best_ns = INFINITY});
        ok = replay(t->recorded[s], &t->space[s], t->kind[k], &t->options, &t->result[i],
                    &t->o->diags);
    }
    screen_close(&screen);
    return ok;
}

// Text --------------------------------------------------------------------------------

static void print_space(const ReplayTable *t, int s)
{
    const Recorded *r = t->recorded[s];
    const ScoreSpace *space = &t->space[s];
    double sign = r->maximise ? -1 : 1;
    printf("%s%s%s: %d configurations, %d valid, %s %g to %g (best, median)\n", r->name,
           *r->device ? " on " : "", r->device, r->n, r->nvalid, r->objective,
           sign * space->sorted[0],
           sign *
               (space->sorted[(space->nvalid - 1) / 2] + space->sorted[space->nvalid / 2]) /
               2);
    printf("  scored from %d to %d random evaluations, %.4g s to %.4g s\n",
           space->start_evals, space->end_evals, space->start_s, space->end_s);
}

static void print_row(const char *name, const Replay *r)
{
    printf("  %-24s %7.3f %7.3f %7.3f %9.1f %% %6.0f %%\n", name, r->score.mean,
           r->score.spread, r->score.end, 100 * r->found, 100 * r->optimum_runs);
}

static double mean_score(const ReplayTable *t, int kind)
{
    double sum = 0;
    for (int s = 0; s < t->nspace; s++)
        sum += result_of(t, kind, s)->score.mean;
    return sum / t->nspace;
}

// What an evaluation took here, and the strategy's part of it; unit: microseconds.
static void evaluation_us(const ReplayTable *t, int kind, double *all, double *search)
{
    double evaluations = 0;
    *all = *search = 0;
    for (int s = 0; s < t->nspace; s++) {
        const Replay *r = result_of(t, kind, s);
        evaluations += (double)r->evaluations;
        *all += 1e6 * r->wall_s;
        *search += 1e6 * r->search_s;
    }
    *all /= evaluations;
    *search /= evaluations;
}

static void print_one(const ReplayTable *t)
{
    double all, search;
    printf("%s, %d runs a space\n", t->kind[0]->name, t->options.repeats);
    printf("  %-24s %7s %7s %7s %11s %8s\n", "space", "score", "spread", "at end",
           "best/found", "optimum");
    for (int s = 0; s < t->nspace; s++)
        print_row(t->recorded[s]->name, result_of(t, 0, s));
    if (t->nspace > 1)
        printf("  %-24s %7.3f\n", "mean", mean_score(t, 0));
    evaluation_us(t, 0, &all, &search);
    printf("  %.1f us an evaluation, %.1f us of it the strategy\n", all, search);
}

static void print_table(const ReplayTable *t)
{
    printf("%-12s %7s", "strategy", "mean");
    for (int s = 0; s < t->nspace; s++)
        printf(" %*s", (int)MAX(strlen(t->recorded[s]->name), 7), t->recorded[s]->name);
    printf(" %9s %9s\n", "us/eval", "strategy");
    for (int k = 0; k < t->nkind; k++) {
        double all, search;
        printf("%-12s %7.3f", t->kind[k]->name, mean_score(t, k));
        for (int s = 0; s < t->nspace; s++)
            printf(" %*.3f", (int)MAX(strlen(t->recorded[s]->name), 7),
                   result_of(t, k, s)->score.mean);
        evaluation_us(t, k, &all, &search);
        printf(" %9.1f %9.1f\n", all, search);
    }
}

// JSON --------------------------------------------------------------------------------

static json_t *space_json(const ReplayTable *t, int s)
{
    const Recorded *r = t->recorded[s];
    const ScoreSpace *space = &t->space[s];
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:i, s:i, s:f, s:f}", "file",
                     t->o->list[s], "name", r->name, "device", r->device, "objective",
                     r->objective, "configurations", r->n, "valid", r->nvalid, "optimum",
                     r->maximise ? -space->sorted[0] : space->sorted[0],
                     "start_evaluations", space->start_evals, "end_evaluations",
                     space->end_evals, "start_s", space->start_s, "end_s", space->end_s);
}

static json_t *result_json(const ReplayTable *t, int s, const Replay *r)
{
    json_t *curve = json_array();
    for (int i = 0; i < SCORE_POINTS; i++)
        json_array_append_new(curve, json_finite(r->score.at[i]));
    double evaluations = (double)r->evaluations;
    return json_pack("{s:s, s:f, s:f, s:f, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:o}",
                     "space", t->recorded[s]->name, "score", r->score.mean, "spread",
                     r->score.spread, "end", r->score.end, "best", json_finite(r->best),
                     "worst", json_finite(r->worst), "found", r->found, "optimum_runs",
                     r->optimum_runs, "evaluations", evaluations / t->options.repeats,
                     "evaluation_us", 1e6 * r->wall_s / evaluations, "strategy_us",
                     1e6 * r->search_s / evaluations, "performance", curve);
}

static json_t *table_json(const ReplayTable *t)
{
    json_t *spaces = json_array(), *strategies = json_array();
    for (int s = 0; s < t->nspace; s++)
        json_array_append_new(spaces, space_json(t, s));
    for (int k = 0; k < t->nkind; k++) {
        json_t *results = json_array();
        for (int s = 0; s < t->nspace; s++)
            json_array_append_new(results, result_json(t, s, result_of(t, k, s)));
        json_array_append_new(strategies,
                              json_pack("{s:s, s:f, s:o}", "strategy", t->kind[k]->name,
                                        "score", mean_score(t, k), "results", results));
    }
    return json_pack("{s:s?, s:i, s:I, s:o, s:o}", "prior",
                     t->prior ? t->prior->name : NULL, "repeat", t->options.repeats, "seed",
                     (json_int_t)t->options.seed, "spaces", spaces, "strategies",
                     strategies);
}

static bool show(ReplayTable *t)
{
    if (cli_prints(t->o)) {
        for (int s = 0; s < t->nspace; s++)
            print_space(t, s);
        if (t->prior)
            printf("with a prior: the best points of %s first\n", t->prior->name);
        if (t->nkind == 1)
            print_one(t);
        else
            print_table(t);
    }
    return cli_json(t->o, table_json(t));
}

int cmd_replay(Options *o)
{
    if (o->strategy && path_ends(o->strategy, ".fwh"))
        return cli_replay_steps(o);
    ReplayTable t = {.o = o,
                     .options = {.budget_s = o->budget_s,
                                 .budget_trials = o->budget_trials,
                                 .repeats = o->repeat ? (int)o->repeat : 100,
                                 .seed = o->seed}};
    bool ok = add_kinds(&t, o->strategy ? o->strategy : "auto") && read_spaces(&t) &&
              read_prior(&t) && run_all(&t) && show(&t);
    for (int i = 0; i < t.nspace; i++)
        score_release(&t.space[i]);
    recorded_free(t.prior);
    for (int i = 0; i < t.nspace + (t.nspace < o->nlist); i++)
        recorded_free(t.recorded[i]);
    return ok ? 0 : 1;
}
