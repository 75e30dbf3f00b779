// SPDX-License-Identifier: Apache-2.0
//
// forewarp predict: the time of one candidate by the weights of a device, without running
// it, and what it is made of.

#include "cli/cli.h"

#include "plan/describe.h"
#include "plan/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Options *o;
    Problem *problem;
    Ways ways;
    Weights weights;
    Point point;
    double count[PROPERTIES], cost[PROPERTIES], total_s;
    double memory_s, arithmetic_s, launch_s; // shares of the total
} Prediction;

static bool predict(Prediction *p)
{
    Options *o = p->o;
    if (!cli_point(o, &p->ways, &p->weights.device, &p->point))
        return false;
    Expr *body = derive_body(p->ways.derivation, &p->point, &o->diags);
    LowerOptions options = derive_options(p->ways.derivation, &p->point);
    Unit *unit =
        body ? lower(p->problem->bound, body, &options, o->arena, &o->diags) : NULL;
    FeatureSetting setting = {NULL, p->problem->binding, p->problem->nbinding};
    if (!unit)
        return false;
    if (!counts_numbers(unit, &setting, p->count))
        return diag_error(&o->diags, span_none, "C031",
                          "give every size a value with -s, generic ones too");
    p->total_s = weights_predict(&p->weights, p->count, p->cost);
    return true;
}

static void add_shares(Prediction *p)
{
    for (int k = 0; k < PROPERTIES; k++) {
        CountsKind kind = counts_kind(k);
        bool arithmetic = kind >= COUNTS_ADD && kind <= COUNTS_SPECIAL;
        bool launch = kind >= COUNTS_GROUP;
        *(arithmetic ? &p->arithmetic_s
          : launch   ? &p->launch_s
                     : &p->memory_s) += p->cost[k];
    }
}

typedef struct {
    int property;
    double cost;
} Line;

static int compare_lines(const void *a, const void *b)
{
    double x = fabs(((const Line *)a)->cost), y = fabs(((const Line *)b)->cost);
    return (x < y) - (x > y);
}

static int make_lines(const Prediction *p, Line line[PROPERTIES])
{
    int n = 0;
    for (int k = 0; k < PROPERTIES; k++)
        if (p->count[k] != 0)
            line[n++] = (Line){k, p->cost[k]};
    qsort(line, (size_t)n, sizeof *line, compare_lines);
    return n;
}

// What a property without support is charged as.
static void warn_support(Prediction *p, int property, const char *name)
{
    double factor;
    int like = weights_stand_in(&p->weights, property, &factor);
    if (like == property || counts_kind(property) == COUNTS_MINIMUM)
        return;
    Buf text;
    buf_init(&text);
    if (like >= 0)
        counts_name(&text, like);
    diag_warning(&p->o->diags, span_none, "M005", "no measurement has `%s`: %s%s%s", name,
                 like >= 0 ? "it is charged as `" : "it costs nothing here", text.text,
                 like >= 0 ? "`" : "");
    buf_release(&text);
}

static json_t *print_lines(Prediction *p, bool print)
{
    Line line[PROPERTIES];
    int n = make_lines(p, line);
    json_t *list = json_array();
    Buf name;
    buf_init(&name);
    for (int i = 0; i < n; i++) {
        int k = line[i].property;
        double error = p->weights.error[k] * p->count[k];
        buf_clear(&name);
        counts_name(&name, k);
        if (print)
            printf("  %-44s  %14.0f  %12.3f us  %6.1f %%\n", name.text, p->count[k],
                   line[i].cost * 1e6, 100 * line[i].cost / p->total_s);
        warn_support(p, k, name.text);
        json_array_append_new(list,
                              json_pack("{s:s, s:f, s:f, s:f}", "property", name.text,
                                        "count", p->count[k], "us", line[i].cost * 1e6,
                                        "error_us", isfinite(error) ? error * 1e6 : -1.0));
    }
    buf_release(&name);
    return list;
}

static bool print_prediction(Prediction *p)
{
    bool print = !p->o->json || p->o->json[0] != '-';
    Buf point;
    buf_init(&point);
    point_print(&point, derive_space(p->ways.derivation), &p->point);
    add_shares(p);
    double bytes = problem_bytes(p->problem);
    if (print) {
        printf("%s on %s, %s\n", problem_label(p->problem), p->weights.device.name,
               point.text);
        printf("  %-44s  %14s  %12.3f us\n", "predicted", "", p->total_s * 1e6);
    }
    json_t *list = print_lines(p, print);
    if (print) {
        printf("  memory and barriers %.1f us, arithmetic %.1f us, launches %.1f us\n",
               p->memory_s * 1e6, p->arithmetic_s * 1e6, p->launch_s * 1e6);
        printf("  ceiling: %.1f GB/s of input and output", bytes / p->total_s * 1e-9);
        if (p->total_s > p->launch_s)
            printf(", %.1f if launches cost nothing",
                   bytes / (p->total_s - p->launch_s) * 1e-9);
        putchar('\n');
    }
    bool ok = cli_json(p->o, json_pack("{s:s, s:s, s:s, s:f, s:f, s:o}", "problem",
                                       problem_label(p->problem), "device",
                                       p->weights.device.name, "point", point.text,
                                       "predicted_us", p->total_s * 1e6, "ceiling_gb_s",
                                       bytes / p->total_s * 1e-9, "costs", list));
    buf_release(&point);
    return ok;
}

int cmd_predict(Options *o)
{
    Prediction p = {.o = o, .problem = cli_program(o, true)};
    if (!p.problem)
        return 2;
    DeviceInfo *all;
    Diags quiet;
    diags_init(&quiet, o->arena);
    int n = o->model ? 0 : devices_list(o->arena, NULL, &all, &quiet);
    const char *asked = o->device;
    for (int i = 0; i < n; i++)
        if (strcmp(all[i].id, o->device) == 0)
            asked = all[i].fingerprint;
    if (!weights_load(&p.weights, o->model, asked, &o->diags))
        return 1;
    bool ok = ways_open(&p.ways, p.problem, &p.weights.device, &o->diags) && predict(&p) &&
              print_prediction(&p);
    ways_close(&p.ways);
    return ok ? 0 : 2;
}
