// SPDX-License-Identifier: Apache-2.0
//
// forewarp replay FILE... --strategy STEPS.fwh: a heuristic file followed on recorded
// spaces, to its end: what it tried, in which order, and what it found.

#include "cli/cli.h"

#include "evaluate/replay.h"

#include <stdlib.h>

// The best there is.
static const RecordedPoint *optimum(const Recorded *r)
{
    AUTO_FREE int *order = recorded_order(r);
    return &r->at[order[0]];
}

static void print_followed(const Recorded *r, const Followed *f, Arena *arena)
{
    printf("%s%s%s: %d of %d configurations tried in %.4g s", r->name,
           *r->device ? " on " : "", r->device, f->n, r->n, f->cost_s);
    if (f->best < 0) {
        puts(", none of them ran");
        return;
    }
    Point point;
    space_point(r->space, (uint64_t)f->best, &point);
    printf("\n  best %s %g, of all %g: %s\n", r->objective, r->at[f->best].value,
           optimum(r)->value, point_text(r->space, &point, arena));
}

// Points by their places in the file, from 0.
static json_t *followed_json(const Options *o, int i, const Recorded *r, const Followed *f)
{
    json_t *asked = json_array();
    for (int k = 0; k < f->n; k++)
        json_array_append_new(asked, json_integer(r->at[f->asked[k]].order));
    return json_pack("{s:s, s:s, s:i, s:i, s:f, s:o, s:f, s:o}", "file", o->list[i], "name",
                     r->name, "configurations", r->n, "tried", f->n, "cost_s", f->cost_s,
                     "best", f->best < 0 ? json_null() : json_real(r->at[f->best].value),
                     "optimum", optimum(r)->value, "asked", asked);
}

int cli_replay_steps(Options *o)
{
    const char *file = o->strategy;
    const Steps *steps = NULL;
    ReplayOptions options = {
        .budget_s = o->budget_s, .budget_trials = o->budget_trials, .seed = o->seed};
    StepsSize *size = NEW_ARRAY(o->arena, StepsSize, o->nbinding + 1);
    for (int i = 0; i < o->nbinding; i++)
        size[i] = (StepsSize){o->binding[i].name, (double)o->binding[i].value};
    bool ok = cli_steps(o, &steps);
    json_t *runs = json_array();
    for (int i = 0; ok && i < o->nlist; i++) {
        Followed followed;
        Recorded *r = recorded_read(o->list[i], cli_objective(o), &o->diags);
        ok = r && replay_steps(r, steps, size, o->nbinding, &options, o->arena, &followed,
                               &o->diags);
        if (ok && cli_prints(o))
            print_followed(r, &followed, o->arena);
        if (ok)
            json_array_append_new(runs, followed_json(o, i, r, &followed));
        recorded_free(r);
    }
    json_t *json = json_pack("{s:s, s:I, s:o}", "strategy", file, "seed",
                             (json_int_t)o->seed, "runs", runs);
    if (!ok)
        json_decref(json);
    return ok && cli_json(o, json) ? 0 : 1;
}
