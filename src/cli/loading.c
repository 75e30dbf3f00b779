// SPDX-License-Identifier: Apache-2.0
//
// --loading: how a stencil loads its data, said or predicted (paper 001, section 6.3: the
// forest picks the loading, a heuristic does the rest).

#include "cli/cli.h"

#include "evaluate/study.h"

#include <string.h>

static const char *const where_of[LOADS] = {
    [LOAD_GLOBAL] = "scheme == 'global' and vec == 1",
    [LOAD_VECTOR] = "scheme == 'global' and vec > 1",
    [LOAD_LOCAL] = "scheme == 'tiled' and vec == 1",
    [LOAD_IMAGE] = "scheme == 'image' and vec == 1",
};

// The stencils that come with the program are of one GPU and of one processor.
static const Study *read_study(Options *o)
{
    DeviceInfo info;
    const char **device; // those that search together are of one kind
    const char *folder = cli_share(o, "stencils", "../data/stencils");
    const char *heuristics = cli_share(o, "heuristics", "../heuristics");
    if (!cli_devices(o, o->device, &device) ||
        !devices_find(o->arena, NULL, device[0], &info, &o->diags))
        return NULL;
    if (folder && heuristics)
        return study_read(
            arena_printf(o->arena, "%s/%s", folder, info.is_cpu ? "pocl" : "h200"),
            heuristics, o->seed, &o->diags);
    diag_world(&o->diags, "C071", "the recorded stencils are not installed");
    return NULL;
}

static bool predict(Options *o, const Problem *problem, Loading *loading)
{
    StencilShape shape;
    if (!problem->bound || !stencil_shape(problem->bound, &shape))
        return diag_error(&o->diags, span_none, "C072",
                          "%s is no stencil, of which the loading could be predicted",
                          problem->name);
    const Study *study = read_study(o);
    bool ok = study && study_pick(study, STEPS_HYBRID, &shape, o->seed, loading);
    if (ok && !o->quiet)
        fprintf(stderr, "loading: %s, as on %s\n", loading_name[*loading], study->device);
    study_free((Study *)study);
    return ok;
}

static bool find_loading(Options *o, const Problem *problem, Loading *loading)
{
    for (int l = 0; l < LOADS; l++)
        if (strcmp(o->loading, loading_name[l]) == 0) {
            *loading = (Loading)l;
            return true;
        }
    if (strcmp(o->loading, "predicted") == 0)
        return predict(o, problem, loading);
    return diag_error(&o->diags, span_none, "C073",
                      "--loading takes global, vector, local, image or predicted: `%s`",
                      o->loading);
}

bool cli_loading(Options *o, Problem *problem)
{
    Loading loading;
    if (!find_loading(o, problem, &loading))
        return false;
    if (problem->bound)
        problem->bound->extra |= loading == LOAD_IMAGE ? 1u << EXTRA_IMAGES : 0;
    o->where = o->where ? arena_printf(o->arena, "(%s) and %s", o->where, where_of[loading])
                        : where_of[loading];
    return true;
}
