// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval picks KERNELS SWEEP [JUDGED]: how near to the best are the points that
// models put first, by class of program. Weights come from measured kernels. What they miss
// is learnt from the sweep, always without the class that is ranked. With JUDGED, its
// programs are ranked instead of those of the sweep. forewarp eval terms KERNELS SWEEP
// [JUDGED]: the same without what tells about one subject after the other. forewarp fit
// picks KERNELS SWEEP -o FILE: the model, of all classes.

#include "cli/cli.h"

#include "calibrate/calibrate.h"
#include "evaluate/picks.h"

#include <math.h>
#include <string.h>

typedef struct {
    Options *o;
    Calibration measured;
    Weights weights;
    Sweep *sweep, *judged; // judged: the sweep itself, or others
} Picking;

// By weights that are fitted as if the demands that tell about a subject were 0 (SUBJECTS:
// none), so theirs are 0; without waves, no part of a run is its end.
static void find_terms(Picking *p, Subject without)
{
    Calibration c = p->measured;
    c.rows.at = arena_copy(p->o->arena, c.rows.at, sizeof *c.rows.at * (size_t)c.rows.len);
    VEC_EACH_REF(Measured *, row, &c.rows) {
        for (int d = 0; d < DEMANDS; d++)
            row->demand.value[d] *= demand_info[d].subject != without;
        row->demand.waves = without == SUBJECT_WAVES ? INFINITY : row->demand.waves;
    }
    calibrate_fit(&c, &p->weights);
    p->weights.overlap.drain *= without != SUBJECT_WAVES;
    sweep_terms(p->sweep, &p->weights);
    if (p->judged != p->sweep)
        sweep_terms(p->judged, &p->weights);
}

// judges: each class by what is learnt from the others.
static bool read_all(Picking *p, bool judges)
{
    Options *o = p->o;
    Calibration *c = &p->measured;
    if (o->nlist < 3)
        return diag_error(&o->diags, span_none, "C016",
                          "name the measured kernels and the timed points");
    if (!calibration_read(o->list[1], o->arena, c, &o->diags) ||
        !(p->sweep = sweep_read(o->list[2], o->arena, &o->diags)))
        return false;
    if (judges && p->sweep->classes.len < 2)
        return diag_error(&o->diags, span_none, "C016",
                          "all programs of %s are of one class: a class is ranked by what "
                          "other classes teach",
                          o->list[2]);
    p->judged = o->nlist < 4 ? p->sweep : sweep_read(o->list[3], o->arena, &o->diags);
    if (!p->judged)
        return false;
    if (!c->demands)
        return diag_error(&o->diags, span_none, "C016", "%s has no demands", o->list[1]);
    sweep_lower(p->sweep, &c->device, o->arena);
    if (p->judged != p->sweep)
        sweep_lower(p->judged, &c->device, o->arena);
    find_terms(p, SUBJECTS);
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
    int parts; // of the classes; one after the other is left out
    double *before;
} Leaving;

static void leave_classes(void *user, int thread, int task)
{
    Leaving *l = user;
    const Sweep *judged = l->p->judged;
    int n = judged->classes.len, first = task * n / l->parts;
    const char *const *out = judged->classes.at + first;
    n = (task + 1) * n / l->parts - first;
    Model *model = picks_fit(l->p->sweep, out, n, l->terms, l->p->o->seed);
    picks_predict(judged, model, out, n, l->terms, l->before);
    model_free(model);
}

static void leave_all(Leaving *l)
{
    tasks_call(l->parts, leave_classes, l);
}

static void by_slowness(const Picking *p, TermRange terms, double *before)
{
    leave_all(&(Leaving){p, terms, p->judged->classes.len, before});
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
    {"weights, and slowness learnt from other classes", by_slowness, {0, TERMS, SUBJECTS}},
    {"the same, from shares of parts of the device alone",
     by_slowness,
     {0, RESOURCES, SUBJECTS}},
    {"the same, from shares of parts and demands alone",
     by_slowness,
     {0, SHARES, SUBJECTS}},
    {"the same, from features alone", by_slowness, {SHARES, TERMS, SUBJECTS}},
};

static json_t *picks_json(const char *key, const char *of, Picks k)
{
    return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:f, s:f, s:o}", key, of, "runs",
                     k.runs, "first", json_finite(k.first), "first_90",
                     json_finite(k.first_90), "five", json_finite(k.five), "five_90",
                     json_finite(k.five_90), "best", k.best, "near", k.near, "rank",
                     json_finite(k.rho));
}

static json_t *ranker_json(const Sweep *s, const char *name, const double *before)
{
    json_t *list = json_array();
    for (int c = 0; c <= s->classes.len; c++) {
        bool all = c == s->classes.len;
        json_array_append_new(list, picks_json("class", all ? "all" : s->classes.at[c],
                                               picks_of(s, before, all ? -1 : c)));
    }
    return json_pack("{s:s, s:o}", "ranker", name, "classes", list);
}

static int end_picks(const Picking *p, const char *key, json_t *list)
{
    return cli_result(p->o, json_pack("{s:i, s:i, s:o}", "points", p->judged->n, "runs",
                                      p->judged->runs.len, key, list))
               ? 0
               : 1;
}

int eval_picks(Options *o)
{
    Picking p = {.o = o};
    if (!read_all(&p, true))
        return o->nlist < 3 ? 2 : 1;
    json_t *list = json_array();
    double *before = NEW_ARRAY(o->arena, double, p.judged->n + 1);
    for (int i = 0; i < COUNTOF(rankers); i++) {
        rankers[i].rank(&p, rankers[i].terms, before);
        json_array_append_new(list, ranker_json(p.judged, rankers[i].name, before));
    }
    return end_picks(&p, "rankers", list);
}

static void add_left_out(const Picking *p, const char *name, json_t *list,
                         const double *before)
{
    json_array_append_new(list,
                          picks_json("without", name, picks_of(p->judged, before, -1)));
}

// Two or three of ten classes are left out at a time, which takes a third of the time.
int eval_terms(Options *o)
{
    Picking p = {.o = o};
    if (!read_all(&p, true))
        return o->nlist < 3 ? 2 : 1;
    json_t *list = json_array();
    double *before = NEW_ARRAY(o->arena, double, p.judged->n + 1);
    Leaving l = {&p, {0, TERMS, SUBJECTS}, MIN(p.judged->classes.len, 4), before};
    leave_all(&l);
    add_left_out(&p, "nothing", list, before);
    by_weights(&p, l.terms, before);
    add_left_out(&p, "all of what is learnt", list, before);
    for (int s = 0; s < SUBJECTS; s++) {
        find_terms(&p, l.terms.without = s);
        leave_all(&l);
        add_left_out(&p, subject_name[s], list, before);
    }
    return end_picks(&p, "left_out", list);
}

int fit_picks(Options *o)
{
    Picking p = {.o = o};
    if (!read_all(&p, false))
        return o->nlist < 3 ? 2 : 1;
    Model *model = picks_fit(p.sweep, NULL, 0, (TermRange){0, TERMS, SUBJECTS}, o->seed);
    bool ok = model_save(model, o->out[0], &o->diags);
    model_free(model);
    if (ok)
        printf("%s: slowness from %d points of %d programs and sizes\n", o->out[0],
               p.sweep->n, p.sweep->runs.len);
    return ok ? 0 : 1;
}
