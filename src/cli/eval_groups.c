// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval groups FOLDER, forewarp eval forest FOLDER: the tables of paper 001 from
// the recorded stencils of a folder (evaluate/study.h). forewarp eval picks FOLDER
// RECORD...: which model picks loadings and points best, also of recorded spaces of other
// programs.

#include "cli/cli.h"

#include "report/groups.h"
#include "report/picks.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bool eval_is_study(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool write_wanted(Options *o, const Study *study, const char *folder)
{
    bool ok = file_mkdirs(folder);
    for (int i = 0; ok && i < study->n; i++) {
        const StudyStencil *s = &study->stencil[i];
        size_t n = strlen(s->file), end = strlen(".json.gz");
        Buf text;
        buf_init(&text);
        if (study_main(study, s)) {
            report_wanted(&text, study, s);
            const char *path = arena_printf(o->arena, "%s/%.*s.fwh", folder,
                                            (int)(n > end ? n - end : n), s->file);
            ok = file_write(path, text.text, text.len);
        }
        buf_release(&text);
    }
    return ok ||
           diag_world(&o->diags, "C003", "cannot write in %s: %s", folder, strerror(errno));
}

static bool picks_text(Options *o, const Study *study, Buf *text)
{
    const Recorded *record[CLI_LIST_MAX];
    Picks picks;
    int n = 0;
    bool ok = o->nlist - 2 < PICKS_SETS ||
              diag_error(&o->diags, span_none, "C074", "at most %d records fit the table",
                         PICKS_SETS - 1);
    for (int i = 2; ok && i < o->nlist; i++)
        ok = (record[n] = recorded_read(o->list[i], &o->diags)) != NULL && ++n;
    ok = ok && picks_run(study, record, n, o->seed, o->arena, &picks, &o->diags);
    if (ok)
        report_picks(text, study, &picks);
    for (int i = 0; i < n; i++)
        recorded_free((Recorded *)(uintptr_t)record[i]);
    return ok;
}

int eval_study(Options *o)
{
    const char *heuristics = cli_share(o, "heuristics", "../heuristics");
    if (!heuristics)
        return !diag_world(&o->diags, "C070", "the heuristic files are not installed");
    Study *study = study_read(o->data, heuristics, o->seed, &o->diags);
    if (!study)
        return o->diags.world ? 1 : 2;
    Buf text;
    buf_init(&text);
    bool ok = true;
    if (strcmp(o->file, "picks") == 0)
        ok = picks_text(o, study, &text);
    else if (strcmp(o->file, "forest") == 0)
        report_forest(&text, study);
    else
        report_groups(&text, study);
    if (ok)
        fputs(text.text, stdout);
    buf_release(&text);
    ok = ok && (!o->nout || write_wanted(o, study, o->out[0]));
    study_free(study);
    return ok ? 0 : o->diags.world ? 1 : 2;
}
