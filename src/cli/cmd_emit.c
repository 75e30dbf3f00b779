// SPDX-License-Identifier: Apache-2.0
//
// forewarp emit: the text of one candidate.

#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool write_text(Options *o, const Buf *text)
{
    if (!o->nout || strcmp(o->out[0], "-") == 0)
        return fputs(text->text, stdout) >= 0;
    return file_write(o->out[0], text->text, text->len) ||
           diag_world(&o->diags, "C003", "cannot write %s: %s", o->out[0], strerror(errno));
}

static bool emit_point(Options *o, const Problem *problem, const Derivation *derivation,
                       const DeviceInfo *device)
{
    Point point;
    const char *name = o->target ? o->target : device->target;
    const Target *target = target_find(name);
    if (!target)
        return diag_error(&o->diags, span_none, "C008", "there is no target `%s`", name);
    if (!cli_point(o, problem, derivation, device, &point))
        return false;
    Expr *body = derive_body(derivation, &point, &o->diags);
    LowerOptions options = derive_options(derivation, &point);
    Unit *unit = body ? lower(problem->bound, body, &options, o->arena, &o->diags) : NULL;
    if (!unit)
        return false;
    Buf text;
    buf_init(&text);
    emit_unit(&text, target, unit);
    bool ok = write_text(o, &text);
    buf_release(&text);
    return ok;
}

int cmd_emit(Options *o)
{
    DeviceInfo device;
    Problem *problem = cli_problem(o, true);
    if (!problem || !cli_device(o, &device))
        return 2;
    Derivation *derivation = derive_new(problem->bound, &device, &o->diags);
    bool ok = derivation && emit_point(o, problem, derivation, &device);
    derive_free(derivation);
    return ok ? 0 : 2;
}
