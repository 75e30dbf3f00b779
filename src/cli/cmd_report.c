// SPDX-License-Identifier: Apache-2.0
//
// forewarp report: the record of a tuning as a page, or its plots one by one.

#include "cli/cli.h"
#include "report/run.h"

#include <errno.h>
#include <string.h>

// NAME.html beside the record's kernel, where no file is named.
static const char *page_path(Options *o, const Run *run)
{
    size_t n = strlen(o->file), end = strlen(RUN_SUFFIX);
    if (o->html)
        return o->html;
    if (n > end && strcmp(o->file + n - end, RUN_SUFFIX) == 0)
        return arena_printf(o->arena, "%.*s.html", (int)(n - end), o->file);
    return arena_printf(o->arena, "%s/%s.html", o->file, run->name);
}

static bool write_page(Options *o, const Analysis *analysis)
{
    Buf page;
    buf_init(&page);
    report_run_page(&page, analysis, o->arena);
    const char *path = page_path(o, analysis->run);
    bool ok = true;
    if (strcmp(path, "-") == 0)
        ok = cli_put(o, &page);
    else if (!(ok = file_write(path, page.text, page.len)))
        diag_world(&o->diags, "C003", "cannot write %s: %s", path, strerror(errno));
    else
        printf("%s: %d trials of %s\n", path, analysis->run->n, analysis->run->problem);
    buf_release(&page);
    return ok;
}

int cmd_report(Options *o)
{
    Analysis analysis;
    const Run *run = run_read(o->file, o->arena, &o->diags);
    if (!run)
        return 1;
    bool ok = analyse(run, o->model, cli_models_folder(o), o->arena, &analysis, &o->diags);
    if (ok && o->svg)
        ok = report_run_svg(&analysis, o->svg, o->arena, &o->diags);
    if (ok && (o->html || !o->svg))
        ok = write_page(o, &analysis);
    analysis_release(&analysis);
    return ok ? 0 : 1;
}
