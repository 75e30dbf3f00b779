// SPDX-License-Identifier: Apache-2.0
//
// forewarp eval groups FOLDER, forewarp eval forest FOLDER: the tables of paper 001 from
// the recorded stencils of a folder (plan/study.h).

#include "cli/cli.h"

#include "report/groups.h"

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
    if (strcmp(o->file, "forest") == 0)
        report_forest(&text, study);
    else
        report_groups(&text, study);
    fputs(text.text, stdout);
    buf_release(&text);
    bool ok = !o->nout || write_wanted(o, study, o->out[0]);
    study_free(study);
    return ok ? 0 : 1;
}
