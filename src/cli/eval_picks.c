// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval picks KERNELS SWEEP [JUDGED]: how near to the best are the points that
// models put first, by class of program. Weights come from measured kernels. What they miss
// is learnt from the sweep, always without the class that is ranked. With JUDGED, its
// programs are ranked instead of those of the sweep. forewarp fit picks KERNELS SWEEP -o
// FILE: the model, of all classes.

#include "cli/cli.h"

#include "calibrate/calibrate.h"
#include "evaluate/picks.h"

#include <math.h>
#include <string.h>

typedef struct {
    Options *o;
    Weights weights;
    Sweep *sweep, *judged; // judged: the sweep itself, or others
} Picking;

static bool read_all(Picking *p)
{
    Options *o = p->o;
    Calibration c;
    if (o->nlist < 3)
        return diag_error(&o->diags, span_none, "C016",
                          "name the measured kernels and the timed points");
    if (!calibration_read(o->list[1], o->arena, &c, &o->diags) ||
        !(p->sweep = sweep_read(o->list[2], o->arena, &o->diags)))
        return false;
    p->judged = o->nlist < 4 ? p->sweep : sweep_read(o->list[3], o->arena, &o->diags);
    if (!p->judged)
        return false;
    if (!c.demands)
        return diag_error(&o->diags, span_none, "C016", "%s has no demands", o->list[1]);
    calibrate_fit(&c, &p->weights);
    sweep_terms(p->sweep, &p->weights, o->arena);
    if (p->judged != p->sweep)
        sweep_terms(p->judged, &p->weights, o->arena);
    return true;
}

// Rankers ---------------------------------------------------------------------------------

static void at_random(const Picking *p, TermRange terms, double *before)
{
    Rng rng = rng_new(p->o->seed);
    for (int i = 0; i < p->judged->n; i++)
        before[i] = (double)rng_below(&rng, 1u << 30);
}

// The others in any order after them.
static void tried_first(const Picking *p, TermRange terms, double *before)
{
    at_random(p, terms, before);
    for (int i = 0; i < p->judged->n; i++)
        before[i] = p->judged->turn[i] > 0 ? p->judged->turn[i] : 1e3 + before[i];
}

static void by_weights(const Picking *p, TermRange terms, double *before)
{
    for (int i = 0; i < p->judged->n; i++)
        before[i] = p->judged->known[i] ? p->judged->predicted[i] : NAN;
}

typedef struct {
    const Picking *p;
    TermRange terms;
    double *before;
} Leaving;

static void leave_class(void *user, int thread, int task)
{
    Leaving *l = user;
    const char *class = l->p->judged->classes.at[task];
    Model *model = picks_fit(l->p->sweep, class, l->terms, l->p->o->seed);
    picks_predict(l->p->judged, model, class, l->terms, l->before);
    model_free(model);
}

static void by_slowness(const Picking *p, TermRange terms, double *before)
{
    Leaving l = {.p = p, .terms = terms, .before = before};
    tasks_call(p->judged->classes.len, leave_class, &l);
}

enum { SHARES = RESOURCES + DEMANDS };
static const struct {
    const char *name;
    void (*rank)(const Picking *p, TermRange terms, double *before);
    TermRange terms;
} rankers[] = {
    {"at random", at_random, {0, 0}},
    {"the points that are tried first", tried_first, {0, 0}},
    {"weights of demands", by_weights, {0, 0}},
    {"weights, and slowness learnt from other classes", by_slowness, {0, TERMS}},
    {"the same, from shares of parts of the device alone", by_slowness, {0, RESOURCES}},
    {"the same, from shares of parts and demands alone", by_slowness, {0, SHARES}},
    {"the same, from features alone", by_slowness, {SHARES, TERMS}},
};

static json_t *ranker_json(const Sweep *s, const char *name, const double *before)
{
    json_t *list = json_array();
    for (int c = 0; c <= s->classes.len; c++) {
        bool all = c == s->classes.len;
        Picks k = picks_of(s, before, all ? -1 : c);
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:f, s:f, s:o}", "class",
                            all ? "all" : s->classes.at[c], "runs", k.runs, "first",
                            json_finite(k.first), "first_90", json_finite(k.first_90),
                            "five", json_finite(k.five), "five_90", json_finite(k.five_90),
                            "best", k.best, "near", k.near, "rank", json_finite(k.rho)));
    }
    return json_pack("{s:s, s:o}", "ranker", name, "classes", list);
}

int eval_picks(Options *o)
{
    Picking p = {.o = o};
    if (!read_all(&p))
        return o->nlist < 3 ? 2 : 1;
    json_t *list = json_array();
    double *before = NEW_ARRAY(o->arena, double, p.judged->n + 1);
    for (int i = 0; i < COUNTOF(rankers); i++) {
        rankers[i].rank(&p, rankers[i].terms, before);
        json_array_append_new(list, ranker_json(p.judged, rankers[i].name, before));
    }
    return cli_result(o, json_pack("{s:i, s:i, s:o}", "points", p.judged->n, "runs",
                                   p.judged->runs.len, "rankers", list))
               ? 0
               : 1;
}

int fit_picks(Options *o)
{
    Picking p = {.o = o};
    if (!read_all(&p))
        return o->nlist < 3 ? 2 : 1;
    Model *model = picks_fit(p.sweep, NULL, (TermRange){0, TERMS}, o->seed);
    bool ok = model_save(model, o->out[0], &o->diags);
    model_free(model);
    if (ok)
        printf("%s: slowness from %d points of %d programs and sizes\n", o->out[0],
               p.sweep->n, p.sweep->runs.len);
    return ok ? 0 : 1;
}
