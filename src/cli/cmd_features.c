// SPDX-License-Identifier: Apache-2.0
//
// forewarp features: the static features of one candidate, on the expression as in paper
// 000 and on the kernels as they are emitted.

#include "cli/cli.h"

#include "calibrate/describe.h"
#include "cost/features.h"

typedef struct {
    Point point;
    const char *text; // of the point
    double expression[FEATURES], kernels[FEATURES];
} FoundFeatures;

static bool find_features(Options *o, const Problem *problem, const Variants *variants,
                          const DeviceInfo *info, const DeviceModel *model,
                          FoundFeatures *found)
{
    if (!cli_point(o, variants, info, &found->point))
        return false;
    const Derivation *derivation = variants->derivation;
    found->text = point_text(derive_space(derivation), &found->point, o->arena);
    Unit *unit = derive_unit(derivation, &found->point, false, o->arena, &o->diags);
    FeatureSetting setting = {model, problem->binding, problem->nbinding};
    if (!unit)
        return false;
    if (!features_unit(unit, &setting, found->kernels))
        return diag_error(&o->diags, span_none, "C031",
                          "give every size a value with -s, generic ones too");
    unit = derive_as_written(derivation, &found->point, o->arena, &o->diags);
    return unit && features_unit(unit, &setting, found->expression);
}

static void print_group(const FoundFeatures *found, FeatureGroup group)
{
    printf("\n%s%s\n", feature_group_name[group],
           group == FEATURES_PARALLELISM ? "                    expression     kernels"
                                         : "");
    for (int i = 0; i < FEATURES; i++) {
        if (feature_info[i].group != group)
            continue;
        printf("  %-22s", feature_info[i].name);
        if (i < FEATURES_PAPER)
            printf("  %10.6g", found->expression[i]);
        else
            printf("  %10s", "");
        printf("  %10.6g  %s\n", found->kernels[i], feature_info[i].unit);
    }
}

static json_t *vector_json(const double *value, int n)
{
    json_t *object = json_object();
    for (int i = 0; i < n; i++)
        json_object_set_new(object, feature_info[i].name, json_real(value[i]));
    return object;
}

static json_t *features_json(const Problem *problem, const DeviceModel *model,
                             const FoundFeatures *found)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "problem", problem_label(problem),
                     "device", model->name, "point", found->text, "expression",
                     vector_json(found->expression, FEATURES_PAPER), "kernels",
                     vector_json(found->kernels, FEATURES));
}

int cmd_features(Options *o)
{
    DeviceInfo info;
    DeviceModel model;
    FoundFeatures found;
    Variants variants;
    Problem *problem = cli_program(o, SIZES_ALL);
    if (!problem || !cli_device(o, &info))
        return 2;
    if (!o->device_model || !device_model_find(o->device_model, &model))
        describe_device(&info, &model);
    bool ok = variants_open(&variants, problem, &info, &o->diags) &&
              find_features(o, problem, &variants, &info, &model, &found);
    if (ok && cli_prints(o)) {
        printf("%s on %s, %s\n", problem_label(problem), model.name, found.text);
        for (int group = 0; group < FEATURE_GROUP_COUNT; group++)
            print_group(&found, (FeatureGroup)group);
    }
    ok = ok && cli_json(o, features_json(problem, &model, &found));
    variants_close(&variants);
    return ok ? 0 : 2;
}
