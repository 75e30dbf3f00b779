// SPDX-License-Identifier: Apache-2.0
//
// --loading: how a stencil loads its data, said or predicted (paper 001, section 6.3: the
// forest picks the loading, a heuristic does the rest).

#include "cli/cli.h"

#include "evaluate/loading.h"

#include <string.h>

static const char *const where_of[LOADS] = {
    [LOAD_GLOBAL] = "scheme == 'global' and vec == 1",
    [LOAD_VECTOR] = "scheme == 'global' and vec > 1",
    [LOAD_LOCAL] = "scheme == 'tiled' and vec == 1",
    [LOAD_IMAGE] = "scheme == 'image' and vec == 1",
};

// The stencils that come with the program are of one GPU and of one processor.
static const Loadings *read_loadings(Options *o)
{
    DeviceInfo info;
    const char **device; // those that search together are of one kind
    const char *folder = cli_share(o, "stencils", "../data/stencils");
    if (!cli_devices(o, o->device, &device) ||
        !devices_find(o->arena, NULL, cli_stop(), device[0], &info, &o->diags))
        return NULL;
    if (folder)
        return loadings_read(arena_printf(o->arena, "%s/%s/loading.csv", folder,
                                          info.is_cpu ? "pocl" : "h200"),
                             o->arena, &o->diags);
    diag_world(&o->diags, "C071", "the recorded stencils are not installed");
    return NULL;
}

// A Loading; -1 with diagnostics.
static int predict(Options *o, const Problem *problem)
{
    StencilShape shape;
    if (!problem->bound || !stencil_shape(problem->bound, &shape)) {
        diag_error(
            &o->diags, span_none, "C072",
            "only the loading of a stencil can be predicted, and %s is not a stencil",
            problem->name);
        return -1;
    }
    const Loadings *table = read_loadings(o);
    int picked = table ? loadings_pick(table, &shape, o->seed) : -1;
    if (table && picked < 0)
        diag_error(&o->diags, span_none, "C071", "the recorded stencils fit no model");
    if (picked >= 0 && !o->quiet)
        fprintf(stderr, "loading: %s, as on %s\n", loading_name[picked], table->device);
    return picked;
}

static int find_loading(Options *o, const Problem *problem)
{
    int named = FIND_TEXT(loading_name, LOADS, o->loading);
    if (named >= 0)
        return named;
    if (strcmp(o->loading, "predicted") == 0)
        return predict(o, problem);
    diag_error(&o->diags, span_none, "C073",
               "--loading takes global, vector, local, image or predicted: `%s`",
               o->loading);
    return -1;
}

bool cli_loading(Options *o, Problem *problem)
{
    int loading = find_loading(o, problem);
    if (loading < 0)
        return false;
    if (problem->bound)
        problem->bound->extra |= loading == LOAD_IMAGE ? 1u << EXTRA_IMAGES : 0;
    o->where = o->where ? arena_printf(o->arena, "(%s) and %s", o->where, where_of[loading])
                        : where_of[loading];
    return true;
}
