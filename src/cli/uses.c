// SPDX-License-Identifier: Apache-2.0
//
// Options that have no effect in some uses of a command. They are refused, because a user
// would believe that they took effect. If the command line alone does not tell the use, the
// code that knows it refuses the option (cli_refuse).

#include "cli/cli.h"

#include <string.h>

static bool is_template(const Options *o)
{
    return path_ends(o->file, ".json");
}

static bool is_script(const Options *o)
{
    return path_is_script(o->file);
}

// Does the strategy work without a model? A heuristic file does.
static bool asks_no_model(const Options *o)
{
    const char *name = o->strategy ? o->strategy : "auto";
    const SearchKind *kind = search_find(name);
    return kind ? !kind->needs_ranking : path_ends(name, ".fwh");
}

static bool is_one_stage(const Options *o)
{
    return !o->strategy || strcmp(o->strategy, "two-stage") != 0;
}

static bool takes_no_best(const Options *o)
{
    return !o->best;
}

static bool prints_no_host(const Options *o)
{
    return !o->host;
}

static bool has_points(const Options *o)
{
    return o->points;
}

static bool prints_shares(const Options *o)
{
    return o->shares;
}

static bool prints_no_shares(const Options *o)
{
    return !o->shares;
}

static bool has_weights(const Options *o)
{
    return o->model;
}

static bool prints_library(const Options *o)
{
    return o->print;
}

static bool is_described(const Options *o)
{
    return o->device_model;
}

static bool is_linear(const Options *o)
{
    return strcmp(o->file, "linear") == 0;
}

static bool is_again(const Options *o)
{
    return o->again;
}

static bool explores_expressions(const Options *o)
{
    return !o->derived;
}

static bool is_not_again(const Options *o)
{
    return !o->again;
}

static bool runs_nothing(const Options *o)
{
    return !o->device_given;
}

static bool follows_steps(const Options *o)
{
    return o->strategy && path_ends(o->strategy, ".fwh");
}

static bool follows_no_steps(const Options *o)
{
    return !follows_steps(o);
}

// The first row that fits says it.
static const struct {
    int commands;
    bool (*is)(const Options *o);
    const char *what;
    uint64_t refused;
} uses[] = {
    {FOR_RUN | FOR_TUNE | FOR_EMIT, is_template, "templates",
     GIVEN(EXTRA) | GIVEN(LOADING)},
    {FOR_RUN | FOR_TUNE | FOR_EMIT, is_script, "scripts", GIVEN(EXTRA) | GIVEN(LOADING)},
    {FOR_TUNE, asks_no_model, "strategies other than ranked and predicted", GIVEN(MODEL)},
    {FOR_TUNE, is_one_stage, "strategies other than two-stage", GIVEN(STAGES)},
    {FOR_RUN | FOR_EMIT | FOR_FEATURES, takes_no_best, "use without --best",
     GIVEN(ANY_DEVICE)},
    {FOR_EMIT | FOR_FEATURES, takes_no_best, "use without --best", GIVEN(STORE)},
    {FOR_EMIT, prints_no_host, "use without --host", GIVEN(BINARY)},
    {FOR_EMIT | FOR_FEATURES | FOR_COUNT | FOR_FUSE | FOR_PREDICT, is_described,
     "a described device", GIVEN(DEVICE)},
    {FOR_FUSE, prints_library, "--print", ~(GIVEN(PRINT) | GIVEN(COLOUR) | GIVEN(SIZES))},
    {FOR_FUSE, is_script, "the calls of a script", GIVEN(DEVICE) | GIVEN(DEVICE_MODEL)},
    {FOR_EXPLORE, runs_nothing, "use without --device", GIVEN(SAMPLE) | GIVEN(UNCHECKED)},
    {FOR_EXPLORE, explores_expressions, "random expressions", GIVEN(MODEL)},
    {FOR_EXPLORE, is_not_again, "use without --again", GIVEN(WRITTEN)},
    {FOR_EXPLORE, is_again, "rows measured again",
     GIVEN(NUMBER) | GIVEN(THREADS) | GIVEN(DERIVED) | GIVEN(SAMPLE)},
    {FOR_PREDICT, has_points, "predictions of recorded points", GIVEN(JSON) | GIVEN(POINT)},
    {FOR_PREDICT, prints_shares, "--shares", GIVEN(MODEL) | GIVEN(POINT) | GIVEN(POINTS)},
    {FOR_PREDICT, prints_no_shares, "use without --shares",
     GIVEN(DEVICE_MODEL) | GIVEN(TARGET) | GIVEN(SEED) | GIVEN(BUDGET)},
    {FOR_PREDICT, has_weights, "weights of a file", GIVEN(DEVICE)},
    {FOR_REPLAY, follows_steps, "a heuristic file", GIVEN(REPEAT) | GIVEN(PRIOR)},
    {FOR_REPLAY, follows_no_steps, "strategies other than heuristic files", GIVEN(SIZES)},
    {FOR_FIT, is_linear, "a fit of weights",
     GIVEN(FEATURES) | GIVEN(LEAVE_OUT) | GIVEN(SEED)},
};

bool cli_refuse(Options *o, const char *what, uint64_t options)
{
    for (int i = 0; i < OPTIONS; i++)
        if (o->given & options & (uint64_t)1 << i)
            return diag_error(&o->diags, span_none, "C078", "--%s is not for %s",
                              option_rows[i].name, what);
    return true;
}

bool cli_allows(Options *o)
{
    int command = 1 << (int)(o->command - commands);
    for (int i = 0; i < COUNTOF(uses); i++)
        if (uses[i].commands & command && uses[i].is(o) &&
            !cli_refuse(o, uses[i].what, uses[i].refused))
            return false;
    return true;
}
