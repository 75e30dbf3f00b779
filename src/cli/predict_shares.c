// SPDX-License-Identifier: Apache-2.0
//
// forewarp predict --shares: how far the plain point, the best of the points that are tried
// first, and the best of a ranking are predicted to be from the roofline, without running
// them. The device may be one that is only described.
//
//   method  the models that lead a search; the roofline by the published rates of the
//   device

#include "cli/cli.h"

#include "calibrate/describe.h"
#include "calibrate/predict.h"

#include <math.h>
#include <string.h>

enum { RANKED_MOST = 3000, RANKED_S = 3 };

typedef struct {
    Options *o;
    Problem *problem;
    Derivation *derivation;
    DeviceInfo info;
    const Target *target;
    Predictor by;
    DeviceModel device;
    double roofline_s;
} Forecast;

static bool find_roofline(Forecast *s)
{
    Work work = problem_work(s->problem);
    double rate = s->device.gflops;
    Ceilings most = {s->device.bandwidth, rate, rate / 2, rate, s->info.matrix > 0};
    s->roofline_s = roofline_of(&work, &most).ns * 1e-9;
    return s->roofline_s > 0 ||
           diag_error(&s->o->diags, span_none, "C097",
                      "the rates of %s are not known: name a GPU that is described with "
                      "--device-model",
                      s->device.name);
}

// In seconds; INFINITY: it is not lowered, or not predicted.
static double ask(const Forecast *s, const Point *point)
{
    FeatureSetting setting = {&s->device, s->problem->binding, s->problem->nbinding};
    double found;
    AutoArena *scratch = arena_new();
    Diags quiet = {.arena = scratch};
    IrMark mark = ir_mark(s->problem->ir);
    Unit *unit = derive_unit(s->derivation, point, true, scratch, &quiet);
    if (!unit || !predictor_seconds(&s->by, unit, &setting, scratch, &found))
        found = INFINITY;
    ir_release(s->problem->ir, mark);
    return found;
}

// The fastest of n points.
static json_t *show(const Forecast *s, const char *what, const Point *point, int n)
{
    double least = INFINITY;
    const Point *best = point;
    for (int i = 0; i < n; i++) {
        double seconds = ask(s, &point[i]);
        best = seconds < least ? &point[i] : best;
        least = MIN(least, seconds);
    }
    if (!isfinite(least))
        return json_null();
    const char *text = point_text(derive_space(s->derivation), best, s->o->arena);
    if (cli_prints(s->o))
        printf("  %-6s %12.1f us  %6.1f %%  %s\n", what, least * 1e6,
               100 * s->roofline_s / least, text);
    return json_pack("{s:s, s:f, s:f}", "point", text, "predicted_us", least * 1e6, "share",
                     s->roofline_s / least);
}

static bool show_all(Forecast *s)
{
    Options *o = s->o;
    Point plain, first[FIRST_MOST + 2];
    Ranking ranking = {0};
    RankLimit limit = {.seconds = isfinite(o->budget_s) ? o->budget_s : RANKED_S,
                       .points = RANKED_MOST};
    if (!rank_points(s->problem, &s->info, s->derivation, &s->by, &limit, o->seed, o->arena,
                     &ranking, &o->diags))
        return false;
    derive_plain(s->derivation, &plain);
    int n = derive_first(s->derivation, first, FIRST_MOST);
    const Weights *weights = s->by.weights;
    if (cli_prints(o))
        printf("%s on %s, target %s: no kernel needs less than %.1f us\n",
               problem_label(s->problem), s->info.name, target_name(s->target),
               s->roofline_s * 1e6);
    if (cli_prints(o) && weights && *weights->from)
        printf("  by weights of an %s and the published rates of both\n", weights->from);
    json_t *json = json_pack("{s:s, s:s, s:s, s:f}", "problem", problem_label(s->problem),
                             "device", s->info.name, "target", target_name(s->target),
                             "roofline_us", s->roofline_s * 1e6);
    json_object_set_new(json, "plain", show(s, "plain", &plain, 1));
    json_object_set_new(json, "first", show(s, "first", first, n));
    first[n++] = plain; // the ranking may have had no time for those
    if (ranking.n)
        first[n++] = ranking.point[0];
    json_object_set_new(json, "best", show(s, "best", first, n));
    return cli_json(o, json);
}

bool cli_predict_shares(Options *o, Problem *problem)
{
    Forecast s = {.o = o, .problem = problem};
    const char *models = cli_models_folder(o);
    if (!models)
        return diag_error(&o->diags, span_none, "C017", "no model came with the program");
    if (!cli_device(o, &s.info))
        return false;
    if (!(s.target = cli_target(o, &s.info)))
        return false;
    describe_target(target_name(s.target), &s.info);
    describe_device(&s.info, &s.device);
    bool ok = find_roofline(&s) &&
              predictor_load(&s.by, &s.info, NULL, models, o->arena, &o->diags) &&
              (s.derivation = derive_new(problem->general, &s.info, &o->diags)) &&
              show_all(&s);
    derive_free(s.derivation);
    predictor_free(&s.by);
    return ok;
}
