// SPDX-License-Identifier: Apache-2.0
//
// forewarp predict: the time of one candidate by the weights of a device, without running
// it, and what it is made of.

#include "cli/cli.h"

#include "calibrate/describe.h"
#include "calibrate/predict.h"
#include "model/dataset.h"
#include "store/recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A property or a demand: how much of it, and what it costs.
typedef struct {
    const char *name, *like; // like: what it is charged as, if nothing measured it
    double count, cost, error;
    bool known; // it is charged
} ChargedCount;

typedef struct {
    Options *o;
    Problem *problem;
    Variants variants;
    Weights weights;
    Point point;
    VEC(ChargedCount) lines;
    double total_s, sum_s;  // sum: of the properties, as the paper has it
    double part[RESOURCES]; // how long each part of the device is busy
    double launch_s;
} PredictCommand;

static const char *property_name(const PredictCommand *p, int property)
{
    Buf name = buf_new();
    counts_name(&name, property);
    return buf_keep(&name, p->o->arena);
}

// By properties: their costs are added up.
static void by_counts(PredictCommand *p, const double count[PROPERTIES], bool list)
{
    double cost[PROPERTIES];
    p->sum_s = weights_predict(&p->weights, count, cost);
    for (int k = 0; list && k < PROPERTIES; k++) {
        double factor;
        if (count[k] == 0)
            continue;
        int like = weights_stand_in(&p->weights, k, &factor);
        CountsKind kind = counts_kind(k); // some are not charged on every device
        bool free = kind == COUNTS_MINIMUM || kind == COUNTS_FUSED ||
                    kind == COUNTS_ARRAY || kind == COUNTS_PUT;
        VEC_PUSH(
            p->o->arena, &p->lines,
            (ChargedCount){.name = property_name(p, k),
                           .like = like >= 0 && like != k ? property_name(p, like) : NULL,
                           .count = count[k],
                           .cost = cost[k],
                           .error = p->weights.error[k] * count[k],
                           .known = like >= 0 || free});
        if (counts_kind(k) >= COUNTS_GROUP)
            p->launch_s += cost[k];
    }
    p->total_s = list ? p->sum_s : p->total_s;
}

// By demands: what is hidden behind something else costs less, or nothing.
static void by_demands(PredictCommand *p, const Demand *demand, int n)
{
    const Overlap *o = &p->weights.overlap;
    double cost[DEMANDS];
    p->total_s = weights_overlap(&p->weights, demand, n, cost);
    for (int d = 0; d < DEMANDS; d++) {
        double count = 0;
        for (int k = 0; k < n; k++)
            count += demand[k].launches * demand[k].value[d];
        p->part[demand_info[d].resource] += o->weight[d] * count;
        if (count == 0)
            continue;
        VEC_PUSH(p->o->arena, &p->lines,
                 (ChargedCount){
                     .name = demand_info[d].name,
                     .count = count,
                     .cost = cost[d],
                     .error = o->weight[d] > 0 ? cost[d] * o->error[d] / o->weight[d] : 0,
                     .known = o->support[d] > 0});
    }
    p->launch_s = cost[DEMAND_LAUNCH] + cost[DEMAND_GROUP];
}

static bool predict(PredictCommand *p)
{
    Options *o = p->o;
    DeviceModel device;
    Demand *demand;
    double count[PROPERTIES];
    if (!cli_point(o, &p->variants, &p->weights.device, &p->point))
        return false;
    Unit *unit = derive_unit(p->variants.derivation, &p->point, false, o->arena, &o->diags);
    describe_device(&p->weights.device, &device);
    FeatureSetting setting = {&device, p->problem->binding, p->problem->nbinding};
    if (!unit)
        return false;
    if (!counts_numbers(unit, &setting, count))
        return diag_error(&o->diags, span_none, "C031",
                          "give every size a value with -s, generic ones too");
    int n = p->weights.overlap.d ? demand_unit(unit, &setting, o->arena, &demand, NULL) : 0;
    by_counts(p, count, n == 0);
    if (n)
        by_demands(p, demand, n);
    return true;
}

static int compare_lines(const void *a, const void *b)
{
    double x = fabs(((const ChargedCount *)a)->cost),
           y = fabs(((const ChargedCount *)b)->cost);
    return (x < y) - (x > y);
}

static json_t *print_lines(PredictCommand *p, bool print)
{
    json_t *list = json_array();
    qsort(p->lines.at, (size_t)p->lines.len, sizeof *p->lines.at, compare_lines);
    VEC_EACH_REF(const ChargedCount *, l, &p->lines) {
        if (print)
            printf("  %-44s  %14.0f  %12.3f us  %6.1f %%\n", l->name, l->count,
                   l->cost * 1e6, 100 * l->cost / p->total_s);
        if (l->like || !l->known)
            diag_warning(&p->o->diags, span_none, "M005", "no measurement has `%s`: %s%s%s",
                         l->name, l->like ? "it is charged as `" : "it costs nothing here",
                         l->like ? l->like : "", l->like ? "`" : "");
        json_array_append_new(list,
                              json_pack("{s:s, s:f, s:f, s:f}", "property", l->name,
                                        "count", l->count, "us", l->cost * 1e6, "error_us",
                                        isfinite(l->error) ? l->error * 1e6 : -1.0));
    }
    return list;
}

// How long each part would be busy by itself: the longest is the bottleneck.
static void print_parts(const PredictCommand *p)
{
    printf("  busy by themselves:");
    for (int r = RESOURCE_GROUPS, n = 0; r < RESOURCES; r++)
        if (p->part[r] > 0)
            printf("%s %s %.1f us", n++ ? "," : "", resource_name[r], p->part[r] * 1e6);
    printf("\n  the paper's sum of properties: %.1f us\n", p->sum_s * 1e6);
}

static bool print_prediction(PredictCommand *p)
{
    bool print = cli_prints(p->o);
    const char *point =
        point_text(derive_space(p->variants.derivation), &p->point, p->o->arena);
    double bytes = problem_bytes(p->problem);
    if (print) {
        printf("%s on %s, %s\n", problem_label(p->problem), p->weights.device.name, point);
        printf("  %-44s  %14s  %12.3f us\n", "predicted", "", p->total_s * 1e6);
    }
    json_t *list = print_lines(p, print);
    if (print && p->weights.overlap.d)
        print_parts(p);
    if (print) {
        printf("  ceiling: %.1f GB/s of input and output", bytes / p->total_s * 1e-9);
        if (p->total_s > p->launch_s)
            printf(", %.1f if launches cost nothing",
                   bytes / (p->total_s - p->launch_s) * 1e-9);
        putchar('\n');
    }
    return cli_json(p->o,
                    json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:o}", "problem",
                              problem_label(p->problem), "device", p->weights.device.name,
                              "point", point, "predicted_us", p->total_s * 1e6, "sum_us",
                              p->sum_s * 1e6, "ceiling_gb_s", bytes / p->total_s * 1e-9,
                              "costs", list));
}

// Points that are asked for: of a recorded space, or lines of a text.
typedef struct {
    Recorded *recorded;
    char **line;
    int n;
} AskedPoints;

static bool read_asked(Options *o, AskedPoints *asked)
{
    *asked = (AskedPoints){0};
    if (path_ends(o->points, ".json") || path_ends(o->points, ".json.gz")) {
        asked->recorded = recorded_read(o->points, NULL, &o->diags);
        asked->n = asked->recorded ? asked->recorded->n : 0;
        return asked->recorded;
    }
    AutoBuf text = buf_new();
    bool ok = dataset_text(o->points, &text, &o->diags);
    char *copy = arena_strdup(o->arena, ok ? text.text : "");
    asked->line = NEW_ARRAY(o->arena, char *, text.len + 1);
    for (char *line; *copy && (line = strsep(&copy, "\n")); asked->n++)
        asked->line[asked->n] = line;
    return ok;
}

// In seconds; false if this version derives no such point. What it leaves out is plain.
static bool predict_point(const PredictCommand *p, const AskedPoints *asked, int number,
                          double *seconds)
{
    const Space *space = derive_space(p->variants.derivation);
    Point point, recorded;
    derive_single(p->variants.derivation, &point);
    if (asked->recorded)
        space_point(asked->recorded->space, (uint64_t)number, &recorded);
    if (!(asked->recorded
              ? point_move(space, &point, asked->recorded->space, &recorded)
              : *asked->line[number] && point_change(space, asked->line[number], &point)) ||
        !space_valid(space, &point))
        return false;
    DeviceModel device;
    AutoArena *scratch = arena_new();
    Diags quiet = {.arena = scratch};
    IrMark mark = ir_mark(p->problem->ir);
    describe_device(&p->weights.device, &device);
    FeatureSetting setting = {&device, p->problem->binding, p->problem->nbinding};
    Unit *unit = derive_unit(p->variants.derivation, &point, true, scratch, &quiet);
    bool ok = unit && predict_unit(&p->weights, unit, &setting, scratch, seconds);
    ir_release(p->problem->ir, mark);
    return ok;
}

// A line each, in the order of the file; empty where there is no such point, which of
// another problem's file are all.
static bool predict_points(PredictCommand *p)
{
    Options *o = p->o;
    AskedPoints asked;
    int known = 0;
    AutoBuf lines = buf_new();
    bool ok = read_asked(o, &asked);
    for (int i = 0; i < asked.n; i++) {
        double seconds;
        if (predict_point(p, &asked, i, &seconds)) {
            buf_printf(&lines, "%.9g", seconds * 1e9);
            known++;
        }
        buf_putc(&lines, '\n');
    }
    ok = ok && (known || diag_error(&o->diags, span_none, "C085",
                                    "%s has no point of the space of %s", o->points,
                                    problem_label(p->problem)));
    if (ok)
        fputs(lines.text, stdout);
    recorded_free(asked.recorded);
    return ok;
}

int cmd_predict(Options *o)
{
    PredictCommand p = {.o = o, .problem = cli_program(o, SIZES_ALL)};
    if (!p.problem)
        return 2;
    if (o->shares)
        return cli_predict_shares(o, p.problem) ? 0 : 2;
    DeviceInfo *all;
    Diags quiet = {.arena = o->arena};
    int n = o->model ? 0 : devices_list(o->arena, NULL, cli_stop(), &all, &quiet);
    const char *asked = o->device;
    for (int i = 0; i < n; i++)
        if (strcmp(all[i].id, o->device) == 0)
            asked = all[i].fingerprint;
    if (!weights_load(&p.weights, o->model, asked, &o->diags))
        return 1;
    bool ok = variants_open(&p.variants, p.problem, &p.weights.device, &o->diags) &&
              (o->points ? predict_points(&p) : predict(&p) && print_prediction(&p));
    variants_close(&p.variants);
    return ok ? 0 : 2;
}
