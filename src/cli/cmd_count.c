// SPDX-License-Identifier: Apache-2.0
//
// forewarp count: how often a kernel does each thing that takes time, as polynomials in the
// sizes, and at given sizes.

#include "cli/cli.h"

#include "calibrate/describe.h"
#include "calibrate/predict.h"

// What is counted; sizes of an example, and whether the user gave them all.
typedef struct {
    Options *o;
    Problem *problem;
    DeviceInfo device;
    Variants variants;
    Point point;
    Counts *counts;
    Binding sample[CLI_LIST_MAX];
    int nsample;
    bool given;
    double number[PROPERTIES]; // at the sample
} Counting;

static bool find_counts(Counting *c, Arena *arena)
{
    Options *o = c->o;
    if (!cli_point(o, &c->variants, &c->device, &c->point))
        return false;
    Unit *unit = derive_unit(c->variants.derivation, &c->point, false, arena, &o->diags);
    FeatureSetting setting = {NULL, c->sample, c->nsample};
    if (!unit)
        return false;
    c->counts = counts_new(unit, &setting);
    return (c->counts && counts_numbers(unit, &setting, c->number)) ||
           diag_error(&o->diags, span_none, "C031",
                      "give every size a value with -s, generic ones too");
}

// "1234", or "about 1234" where it was not counted exactly; NULL without sizes.
static const char *value_text(const Counting *c, int property)
{
    Ratio value;
    if (!c->given)
        return NULL;
    Buf text = buf_new();
    if (!counts_eval(c->counts, property, c->sample, c->nsample, &value))
        buf_printf(&text, "about %.0f", c->number[property]);
    else
        counts_wide(&text, value.num);
    if (!counts_refused(c->counts, property) && value.den != 1)
        buf_printf(&text, "/%lld", (long long)value.den);
    return buf_keep(&text, c->o->arena);
}

static void print_property(const Counting *c, int property, json_t *json)
{
    AutoBuf name = buf_new(), formula = buf_new();
    counts_name(&name, property);
    const char *refused = counts_refused(c->counts, property);
    const char *value = value_text(c, property);
    if (refused)
        buf_printf(&formula, "not counted for all sizes: %s", refused);
    else
        counts_print(&formula, c->counts, property);
    if (counts_halved(c->counts, property))
        buf_puts(&formula, "  (each side of a condition on data as a half)");
    if (cli_prints(c->o)) {
        printf("  %-44s  %s\n", name.text, formula.text);
        if (value)
            printf("  %-44s  = %s\n", "", value);
    }
    json_array_append_new(json,
                          json_pack("{s:s, s:s, s:b, s:s*, s:s*}", "property", name.text,
                                    "count", formula.text, "exact", !refused, "value",
                                    value, "unit", counts_unit(property)));
}

static bool print_counts(const Counting *c)
{
    const char *point =
        point_text(derive_space(c->variants.derivation), &c->point, c->o->arena);
    json_t *list = json_array();
    if (cli_prints(c->o)) {
        printf("%s, %s\n", c->problem->name, point);
        for (int i = 0; c->given && i < c->nsample; i++)
            printf("%s%s = %lld%s", i ? ", " : "at ", c->sample[i].name,
                   (long long)c->sample[i].value, i == c->nsample - 1 ? "\n" : "");
    }
    for (int p = 0; p < PROPERTIES; p++)
        if (!counts_zero(c->counts, p))
            print_property(c, p, list);
    return cli_json(c->o, json_pack("{s:s, s:s, s:o}", "program", c->problem->name, "point",
                                    point, "counts", list));
}

int cmd_count(Options *o)
{
    Counting c = {.o = o, .problem = cli_program(o, SIZES_LATER)};
    DeviceModel model;
    if (!c.problem || !problem_open(c.problem, o->binding, o->nbinding, &o->diags))
        return 2;
    if (o->device_given || o->device_model) {
        if (!cli_device(o, &c.device))
            return 2;
    } else if (device_model_find("nvidia-h200", &model)) {
        describe_model(&model, &c.device); // only says how large a group may be
    }
    c.nsample = problem_sample(c.problem, o->binding, o->nbinding, c.sample, CLI_LIST_MAX);
    c.given = o->nbinding == c.nsample;
    bool ok = variants_open(&c.variants, c.problem, &c.device, &o->diags) &&
              find_counts(&c, o->arena) && print_counts(&c);
    counts_free(c.counts);
    variants_close(&c.variants);
    return ok ? 0 : 2;
}
