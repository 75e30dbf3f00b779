// SPDX-License-Identifier: Apache-2.0
//
// forewarp report: the records of one tuning or several as a page.

#include "cli/cli.h"
#include "report/report.h"

#include <string.h>

// NAME.html beside the kernel of a record.
static const char *page_path(const char *record, const Run *run, Arena *arena)
{
    size_t n = strlen(record), end = strlen(RUN_SUFFIX);
    if (path_ends(record, RUN_SUFFIX))
        return arena_printf(arena, "%.*s.html", (int)(n - end), record);
    return arena_printf(arena, "%s/%s.html", record, run->name);
}

const char *cli_report(Options *o, const char *const *record, int n, const char *path)
{
    Analysis a[CLI_LIST_MAX] = {{0}};
    const Analysis *of[CLI_LIST_MAX];
    bool ok = true;
    AutoBuf page = buf_new();
    for (int i = 0; i < n && ok; i++) {
        const Run *run = run_read(record[i], o->arena, &o->diags);
        ok =
            run && analyse(run, o->model, cli_models_folder(o), o->arena, &a[i], &o->diags);
        of[i] = &a[i];
    }
    if (ok) {
        report_page(&page, of, n, false);
        path = path ? path : page_path(record[0], of[0]->run, o->arena);
        ok = cli_write(o, path, &page);
    }
    for (int i = 0; i < n; i++)
        analysis_release(&a[i]);
    return ok ? path : NULL;
}

// The next time is soon: a page that cannot be written is left out.
void cli_report_live(const Run *run, const char *folder)
{
    const Analysis unknown = {.run = run};
    AutoBuf page = buf_new(), path = buf_new();
    buf_printf(&path, "%s/%s.html", folder, run->name);
    report_page(&page, (const Analysis *[]){&unknown}, 1, true);
    file_write(path.text, page.text, page.len);
}

int cmd_report(Options *o)
{
    const char *path = cli_report(o, o->list, o->nlist, o->nout ? o->out[0] : NULL);
    if (path && strcmp(path, "-") != 0)
        printf("%s\n", path);
    return path ? 0 : 1;
}
