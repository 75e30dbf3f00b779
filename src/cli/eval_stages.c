// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval MODEL on recorded spaces: paper 002's figures.

#include "cli/cli.h"

#include "evaluate/stages.h"

enum { REPEATS = 2 };

bool eval_takes_records(const Options *o)
{
    return path_ends(o->data, ".json") || path_ends(o->data, ".json.gz");
}

// The largest first stage of at most so many points that the record allows, as a set.
static int largest_first(const Recorded *r, int64_t most)
{
    int found = 0;
    for (int f = 0; f < STAGE_FIRSTS; f++)
        if (stage_first[f] <= most && stages_fit(r, stage_first[f]))
            found = f;
    return 1 << found;
}

// A record that is too small is said to be so, and the others are shown.
int eval_stages(Options *o)
{
    const ModelKind *kind = cli_model_kind(o);
    Recorded *record[CLI_LIST_MAX] = {NULL};
    int repeats = o->repeat ? (int)o->repeat : REPEATS;
    if (!kind)
        return 2;
    bool read = true, whole = true;
    json_t *json = json_array();
    for (int i = 1; i < o->nlist && read; i++)
        read = (record[i] = recorded_read(o->list[i], NULL, &o->diags)) != NULL;
    for (int i = 1; i < o->nlist && read; i++) {
        int firsts = o->number ? largest_first(record[i], o->number) : STAGE_ALL;
        json_t *one = stages_run(record[i], kind, firsts, repeats, o->seed, &o->diags);
        whole &= one && json_array_append_new(json, one) == 0;
    }
    for (int i = 1; i < o->nlist; i++)
        recorded_free(record[i]);
    return cli_result(o, json) && read && whole ? 0 : 1;
}
