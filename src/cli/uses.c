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

static bool is_linear(const Options *o)
{
    return strcmp(o->file, "linear") == 0;
}

static bool follows_steps(const Options *o)
{
    return o->strategy && path_ends(o->strategy, ".fwh");
}

static bool follows_no_steps(const Options *o)
{
    return !follows_steps(o);
}

// The first row that fits says it: all options of `with` are given, none of `without`, and
// the test, if there is one, holds.
static const struct {
    int commands;
    uint64_t refused;
    const char *what;
    uint64_t with, without;
    bool (*is)(const Options *o);
} uses[] = {
    {FOR_RUN | FOR_TUNE | FOR_EMIT, GIVEN(EXTRA) | GIVEN(LOADING), "templates",
     .is = is_template},
    {FOR_RUN | FOR_TUNE | FOR_EMIT, GIVEN(EXTRA) | GIVEN(LOADING), "scripts",
     .is = is_script},
    {FOR_TUNE, GIVEN(MODEL), "strategies other than ranked and predicted",
     .is = asks_no_model},
    {FOR_TUNE, GIVEN(STAGES), "strategies other than two-stage", .is = is_one_stage},
    {FOR_RUN | FOR_EMIT | FOR_FEATURES, GIVEN(ANY_DEVICE), "use without --best",
     .without = GIVEN(BEST)},
    {FOR_EMIT | FOR_FEATURES, GIVEN(STORE), "use without --best", .without = GIVEN(BEST)},
    {FOR_EMIT, GIVEN(BINARY), "use without --host", .without = GIVEN(HOST)},
    {FOR_EMIT | FOR_FEATURES | FOR_COUNT | FOR_FUSE | FOR_PREDICT, GIVEN(DEVICE),
     "a described device", GIVEN(DEVICE_MODEL)},
    {FOR_FUSE, ~(GIVEN(PRINT) | GIVEN(COLOUR) | GIVEN(SIZES)), "--print", GIVEN(PRINT)},
    {FOR_FUSE, GIVEN(DEVICE) | GIVEN(DEVICE_MODEL), "the calls of a script",
     .is = is_script},
    {FOR_EXPLORE, GIVEN(SAMPLE) | GIVEN(UNCHECKED), "use without --device",
     .without = GIVEN(DEVICE)},
    {FOR_EXPLORE, GIVEN(MODEL), "random expressions", .without = GIVEN(DERIVED)},
    {FOR_EXPLORE, GIVEN(WRITTEN), "use without --again", .without = GIVEN(AGAIN)},
    {FOR_EXPLORE, GIVEN(NUMBER) | GIVEN(THREADS) | GIVEN(DERIVED) | GIVEN(SAMPLE),
     "rows measured again", GIVEN(AGAIN)},
    {FOR_PREDICT, GIVEN(JSON) | GIVEN(POINT), "predictions of recorded points",
     GIVEN(POINTS)},
    {FOR_PREDICT, GIVEN(MODEL) | GIVEN(POINT) | GIVEN(POINTS), "--shares", GIVEN(SHARES)},
    {FOR_PREDICT, GIVEN(DEVICE_MODEL) | GIVEN(TARGET) | GIVEN(SEED) | GIVEN(BUDGET),
     "use without --shares", .without = GIVEN(SHARES)},
    {FOR_PREDICT, GIVEN(DEVICE), "weights of a file", GIVEN(MODEL)},
    {FOR_REPLAY, GIVEN(REPEAT) | GIVEN(PRIOR), "a heuristic file", .is = follows_steps},
    {FOR_REPLAY, GIVEN(SIZES), "strategies other than heuristic files",
     .is = follows_no_steps},
    {FOR_FIT, GIVEN(FEATURES) | GIVEN(LEAVE_OUT) | GIVEN(SEED), "a fit of weights",
     .is = is_linear},
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
        if (uses[i].commands & command && (o->given & uses[i].with) == uses[i].with &&
            !(o->given & uses[i].without) && (!uses[i].is || uses[i].is(o)) &&
            !cli_refuse(o, uses[i].what, uses[i].refused))
            return false;
    return true;
}
