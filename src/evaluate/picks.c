// SPDX-License-Identifier: Apache-2.0
//
// Picks by each model: see picks.h.
#include "evaluate/picks.h"

#include "evaluate/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const int picks_taken[PICKS_TAKEN] = {10, 50};

// FIRST: training points; of more, networks take most of a minute for ten stencils. FOLDS:
// of stencils, each predicted from the others.
enum { FIRST = 200, FOLDS = 10, OTHERS = 4 };

// Loadings ------------------------------------------------------------------------------

static const StudyStencil **main_set(const Study *study, Arena *arena, int *n)
{
    const StudyStencil **main = NEW_ARRAY(arena, const StudyStencil *, study->n + 1);
    *n = 0;
    for (int i = 0; i < study->n; i++)
        if (study_main(study, &study->stencil[i]) && study_is_stencil(&study->stencil[i]) &&
            study->stencil[i].oracle[STEPS_HYBRID] >= 0)
            main[(*n)++] = &study->stencil[i];
    return main;
}

static double loading_ns(const StudyStencil *s, int loading)
{
    const Found *f = &s->found[STEPS_HYBRID][loading];
    return f->done ? f->ns : INFINITY;
}

static double best_ns(const StudyStencil *s)
{
    return loading_ns(s, s->oracle[STEPS_HYBRID]);
}

static void judge_loading(Picker *p, const StudyStencil *s, int picked)
{
    double share = best_ns(s) / loading_ns(s, picked);
    p->penalty = (p->penalty * p->n + share) / (p->n + 1);
    p->right += picked == s->oracle[STEPS_HYBRID];
    p->n++;
}

// A row a stencil and loading that ran.
typedef struct {
    Matrix x;
    double *y;                    // logarithm of the time over the best
    int *group, *loading, *owner; // fold, loading and stencil of each
} Rows;

static Rows make_rows(const StudyStencil *const *s, int n)
{
    size_t most = (size_t)n * LOADS + 1;
    Rows rows = {.x = matrix_new((int)most, STUDY_FEATURES + LOADS),
                 .y = xcalloc(most, sizeof(double)),
                 .group = xcalloc(most, sizeof(int)),
                 .loading = xcalloc(most, sizeof(int)),
                 .owner = xcalloc(most, sizeof(int))};
    rows.x.n = 0;
    for (int i = 0; i < n; i++)
        for (int l = 0; l < LOADS; l++) {
            if (!isfinite(loading_ns(s[i], l)))
                continue;
            int row = rows.x.n++;
            study_features(s[i], matrix_row(&rows.x, row));
            matrix_row(&rows.x, row)[STUDY_FEATURES + l] = 1;
            rows.y[row] = log(loading_ns(s[i], l) / best_ns(s[i]));
            rows.group[row] = i % FOLDS;
            rows.loading[row] = l;
            rows.owner[row] = i;
        }
    return rows;
}

static void free_rows(Rows *rows)
{
    matrix_free(&rows->x);
    free(rows->y);
    free(rows->group);
    free(rows->loading);
    free(rows->owner);
}

static void pick_by_times(const StudyStencil *const *s, int n, const ModelKind *kind,
                          uint64_t seed, Picker *p)
{
    Rows rows = make_rows(s, n);
    double *predicted = xcalloc((size_t)rows.x.n + 1, sizeof *predicted);
    cross_validate(kind, &rows.x, rows.y, rows.group, MIN(n, FOLDS), seed, predicted);
    for (int i = 0, row = 0; i < n; i++) {
        int picked = row;
        for (; row < rows.x.n && rows.owner[row] == i; row++)
            picked = predicted[row] < predicted[picked] ? row : picked;
        judge_loading(p, s[i], rows.loading[picked]);
    }
    free(predicted);
    free_rows(&rows);
}

static int commonest(const StudyStencil *const *s, int n, int without)
{
    int count[LOADS] = {0}, best = 0;
    for (int i = 0; i < n; i++)
        count[s[i]->oracle[STEPS_HYBRID]] += i != without;
    for (int l = 1; l < LOADS; l++)
        best = count[l] > count[best] ? l : best;
    return best;
}

// The loading of the point that the weights say is fastest, of those of the paper's space.
static int by_weights(const StudyStencil *s)
{
    double least = INFINITY;
    int picked = -1;
    for (int l = 0; l < LOADS; l++)
        for (int i = 0; s->part[l] && i < (int)space_count(s->part[l]); i++) {
            Point point;
            space_point(s->part[l], (uint64_t)i, &point);
            double ns = s->predicted_ns[space_number(s->record->space, &point)];
            if (ns < least && isfinite(loading_ns(s, l))) {
                least = ns;
                picked = l;
            }
        }
    return picked;
}

// Second stages -------------------------------------------------------------------------

// The largest first stage that all these records allow, as a bit of stages_run; 0: none.
static int first_of(const Recorded *record, int *first)
{
    int found = -1;
    for (int f = 0; f < STAGE_FIRSTS; f++)
        if (stage_first[f] <= FIRST && stages_fit(record, stage_first[f]))
            found = f;
    *first = found < 0 ? 0 : stage_first[found];
    return found < 0 ? 0 : 1 << found;
}

static bool stage(const Recorded *record, const ModelKind *kind, uint64_t seed,
                  double slowdown[PICKS_TAKEN], Diags *diags)
{
    Stages stages;
    int first, bit = first_of(record, &first);
    if (!bit)
        return diag_error(diags, span_none, "X013", "%s has too few points that ran",
                          record->name);
    if (!stages_run(record, kind, bit, 2, seed, &stages, diags))
        return false;
    for (int f = 0; f < STAGE_FIRSTS; f++)
        for (int k = 0; k < PICKS_TAKEN && stages.first[f].first; k++)
            for (int m = 0; m < STAGE_SECONDS; m++)
                if (stage_second[m] == picks_taken[k])
                    slowdown[k] = stages.first[f].with[m].slowdown;
    return true;
}

static bool stage_all(const StudyStencil *const *s, int n, const Recorded *const *record,
                      int nrecord, const ModelKind *kind, uint64_t seed, Picker *p,
                      Diags *diags)
{
    double sum[PICKS_TAKEN] = {0}, one[PICKS_TAKEN];
    for (int i = 0; i < n; i++) {
        if (!stage(s[i]->record, kind, seed, one, diags))
            return false;
        for (int k = 0; k < PICKS_TAKEN; k++)
            sum[k] += log(one[k]);
    }
    for (int k = 0; k < PICKS_TAKEN; k++)
        p->slowdown[0][k] = exp(sum[k] / n);
    for (int i = 0; i < nrecord; i++)
        if (!stage(record[i], kind, seed, p->slowdown[1 + i], diags))
            return false;
    return true;
}

// A point with its time and what it is picked by.
typedef struct {
    double by, ns;
} Place;

static int compare(const void *a, const void *b)
{
    const Place *p = a, *q = b;
    return compare_doubles(&p->by, &q->by);
}

static Place *places_of(const Recorded *record, const double *by)
{
    Place *place = xcalloc((size_t)record->n + 1, sizeof *place);
    for (int i = 0; i < record->n; i++) {
        double ns = recorded_cost(record, &record->at[i]);
        place[i] = (Place){by ? (isnan(by[i]) ? INFINITY : by[i]) : ns, ns};
    }
    qsort(place, (size_t)record->n, sizeof *place, compare);
    return place;
}

// The best of the m that are predicted to be fastest.
static double taken(const StudyStencil *s, int m)
{
    Place *place = places_of(s->record, s->predicted_ns);
    double best = INFINITY, all = INFINITY;
    for (int i = 0; i < s->record->n; i++) {
        best = i < m ? fmin(best, place[i].ns) : best;
        all = fmin(all, place[i].ns);
    }
    free(place);
    return best / all;
}

// What m points at random are expected to come to: the k-th fastest of n is the best of
// them with probability C(n - k, m - 1) / C(n, m).
static double at_random(const Recorded *record, int m)
{
    Place *place = places_of(record, NULL);
    int n = record->n;
    double share = (double)m / n, sum = 0, weight = 0;
    for (int k = 0; k + m <= n && isfinite(place[k].ns); k++) {
        sum += share * place[k].ns;
        weight += share;
        share *= (double)(n - m - k) / (n - k - 1);
    }
    double mean = sum / weight / place[0].ns;
    free(place);
    return mean;
}

// Entry ---------------------------------------------------------------------------------

static Picker *add_picker(Picks *picks, const char *name)
{
    Picker *p = &picks->picker[picks->n++];
    *p = (Picker){.name = name};
    for (int i = 0; i < PICKS_SETS; i++)
        for (int k = 0; k < PICKS_TAKEN; k++)
            p->slowdown[i][k] = NAN;
    return p;
}

// Those that are not asked for numbers: the paper's forest, no model, chance.
static void add_others(Picks *picks, const StudyStencil *const *s, int n,
                       const Recorded *const *record, int nrecord)
{
    Picker *votes = add_picker(picks, "forest of classes (001)");
    Picker *same = add_picker(picks, "always the commonest");
    Picker *chance = add_picker(picks, "chance");
    for (int i = 0; i < n; i++) {
        judge_loading(votes, s[i], MAX(s[i]->predicted[STEPS_HYBRID], 0));
        judge_loading(same, s[i], commonest(s, n, i));
    }
    for (int k = 0; k < PICKS_TAKEN; k++) {
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += log(at_random(s[i]->record, picks_taken[k]));
        chance->slowdown[0][k] = exp(sum / n);
        for (int i = 0; i < nrecord; i++)
            chance->slowdown[1 + i][k] = at_random(record[i], picks_taken[k]);
    }
}

static void add_weights(Picks *picks, const StudyStencil *const *s, int n)
{
    Picker *p = add_picker(picks, "counted demands (003)");
    double sum[PICKS_TAKEN] = {0};
    for (int i = 0; i < n; i++)
        if (!s[i]->predicted_ns)
            return;
    for (int i = 0; i < n; i++) {
        judge_loading(p, s[i], MAX(by_weights(s[i]), 0));
        for (int k = 0; k < PICKS_TAKEN; k++)
            sum[k] += log(taken(s[i], picks_taken[k]));
    }
    for (int k = 0; k < PICKS_TAKEN; k++)
        p->slowdown[0][k] = exp(sum[k] / n);
}

bool picks_run(const Study *study, const Recorded *const *record, int n, uint64_t seed,
               Arena *arena, Picks *picks, Diags *diags)
{
    int kinds, nmain;
    const ModelKind *const *kind = model_all(&kinds);
    const StudyStencil **s = main_set(study, arena, &nmain);
    if (nmain < 2)
        return diag_error(diags, span_none, "X013",
                          "hybrid was recorded for %d stencils: two are wanted", nmain);
    *picks = (Picks){.picker = NEW_ARRAY(arena, Picker, kinds + OTHERS),
                     .set = NEW_ARRAY(arena, const char *, n + 1),
                     .first = FIRST,
                     .sets = n + 1};
    picks->set[0] = "stencils";
    for (int i = 0; i < n; i++)
        picks->set[i + 1] = record[i]->name;
    for (int k = 0; k < kinds; k++) {
        Picker *p = add_picker(picks, kind[k]->name);
        pick_by_times(s, nmain, kind[k], seed, p);
        if (!stage_all(s, nmain, record, n, kind[k], seed, p, diags))
            return false;
    }
    add_weights(picks, s, nmain);
    add_others(picks, s, nmain, record, n);
    return true;
}
