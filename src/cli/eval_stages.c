// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval MODEL on recorded spaces: paper 002's figures.

#include "cli/cli.h"

#include "evaluate/stages.h"

#include <math.h>
#include <string.h>

enum { REPEATS = 2 };

bool eval_takes_records(const Options *o)
{
    return path_ends(o->data, ".json") || path_ends(o->data, ".json.gz");
}

static json_t *cells_json(const StageCell *cell)
{
    json_t *list = json_array();
    for (int m = 0; m < STAGE_SECONDS; m++)
        json_array_append_new(list, json_pack("{s:i, s:o, s:o, s:f, s:i}", "second",
                                              stage_second[m], "slowdown",
                                              json_finite(cell[m].slowdown), "worst",
                                              json_finite(cell[m].worst), "failed",
                                              cell[m].failed, "empty", cell[m].empty));
    return list;
}

static json_t *first_json(const StageFirst *f)
{
    return json_pack("{s:i, s:f, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "first", f->first, "tried", f->runs, "error", json_finite(f->error),
                     "spread", json_finite(f->spread), "median", json_finite(f->median),
                     "rank", json_finite(f->rank), "training_s", f->fit_s, "failures_right",
                     json_finite(f->right), "larger_kind", json_finite(f->plain), "missed",
                     json_finite(f->missed), "doubted", json_finite(f->doubted), "second",
                     cells_json(f->with), "second_ignoring_failures",
                     cells_json(f->without));
}

static json_t *stages_json(const Stages *s)
{
    json_t *firsts = json_array(), *scatter = json_array();
    for (int f = 0; f < STAGE_FIRSTS; f++)
        if (s->first[f].first)
            json_array_append_new(firsts, first_json(&s->first[f]));
    for (int i = 0; i < s->nscatter; i++)
        json_array_append_new(scatter,
                              json_pack("[f, f]", s->actual_ns[i], s->predicted_ns[i]));
    int repeated;
    double noise = recorded_noise(s->recorded, &repeated);
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:o, s:i, s:i, s:o, s:o}", "record",
                     s->recorded->name, "device", s->recorded->device, "model",
                     s->kind->name, "points", s->recorded->n, "ran", s->recorded->nvalid,
                     "best_ns", s->best_ns, "noise", json_finite(noise), "noise_points",
                     repeated, "repeat", s->repeats, "first_stages", firsts, "scatter",
                     scatter);
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

typedef struct {
    Options *o;
    const Recorded *record[CLI_LIST_MAX];
    int nrecord;
    Stages *stages; // one a record that is not too small
    int n;
} Sheet;

static bool read_records(Sheet *sheet)
{
    for (int i = 1; i < sheet->o->nlist; i++) {
        Recorded *recorded = recorded_read(sheet->o->list[i], NULL, &sheet->o->diags);
        if (!recorded)
            return false;
        sheet->record[sheet->nrecord++] = recorded;
    }
    return true;
}

// A record that is too small is said to be so, and the others are shown.
static bool run_all(Sheet *sheet, const ModelKind *kind)
{
    Options *o = sheet->o;
    int repeats = o->repeat ? (int)o->repeat : REPEATS;
    bool ok = true;
    sheet->stages = NEW_ARRAY(o->arena, Stages, sheet->nrecord);
    for (int i = 0; i < sheet->nrecord; i++) {
        int firsts = o->number ? largest_first(sheet->record[i], o->number) : STAGE_ALL;
        bool fits = stages_run(sheet->record[i], kind, firsts, repeats, o->seed,
                               &sheet->stages[sheet->n], &o->diags);
        sheet->n += fits;
        ok &= fits;
    }
    return ok;
}

int eval_stages(Options *o)
{
    const ModelKind *kind = cli_model_kind(o);
    Sheet sheet = {.o = o};
    if (!kind)
        return 2;
    bool ok = read_records(&sheet);
    bool whole = ok && run_all(&sheet, kind);
    json_t *json = json_array();
    for (int i = 0; i < sheet.n; i++)
        json_array_append_new(json, stages_json(&sheet.stages[i]));
    ok = cli_result(o, json) && whole;
    for (int i = 0; i < sheet.nrecord; i++)
        recorded_free((Recorded *)(uintptr_t)sheet.record[i]);
    return ok ? 0 : 1;
}
