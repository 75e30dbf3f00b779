// SPDX-License-Identifier: Apache-2.0
//
// forewarp wisdom: the best plans of the store as text, out of it, into it, and together.

#include "cli/cli.h"

#include "store/wisdom.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool put_text(Options *o, const char *path, const Wisdom *wisdom)
{
    AutoBuf text = buf_new();
    wisdom_print(&text, wisdom);
    return cli_write(o, path, &text);
}

static bool read_text(Options *o, const char *path, Wisdom *wisdom)
{
    const char *why;
    const Source *source = source_read(path, o->arena, &why);
    if (!source)
        return diag_error(&o->diags, span_none, "C001", "cannot read %s: %s", path, why);
    return wisdom_parse(source, o->arena, wisdom, &o->diags);
}

static bool export_wisdom(Options *o)
{
    Wisdom wisdom = {0};
    if (o->nlist > 2)
        return diag_error(&o->diags, span_none, "C060", "wisdom export takes one file");
    if (access(cli_store(o), F_OK) != 0) // or it would be made, and the text say nothing
        return diag_world(&o->diags, "C083", "there is no store %s: %s", cli_store(o),
                          strerror(errno));
    Store *store = store_open(cli_store(o), &o->diags);
    bool ok = store && wisdom_load(store, o->arena, &wisdom, &o->diags);
    store_close(store);
    return ok && put_text(o, o->nlist > 1 ? o->list[1] : NULL, &wisdom);
}

static bool read_all(Options *o, Wisdom *all)
{
    if (o->nlist < 2)
        return diag_error(&o->diags, span_none, "C060", "wisdom %s takes files",
                          o->list[0]);
    for (int i = 1; i < o->nlist; i++) {
        Wisdom wisdom = {0};
        if (!read_text(o, o->list[i], &wisdom))
            return false;
        wisdom_merge(o->arena, all, &wisdom);
    }
    return true;
}

static bool import_wisdom(Options *o)
{
    Wisdom wisdom = {0};
    int changed = 0, current = 0;
    if (!read_all(o, &wisdom))
        return false;
    Store *store = store_open(cli_store(o), &o->diags);
    bool ok = store && wisdom_store(store, &wisdom, &changed, &o->diags);
    store_close(store);
    for (int i = 0; i < wisdom.len; i++)
        current += strcmp(wisdom.at[i].key.version, TRIAL_VERSION) == 0;
    if (ok)
        printf("%d plans, %d of them new; %d of this version\n", wisdom.len, changed,
               current);
    return ok;
}

static bool merge_wisdom(Options *o)
{
    Wisdom wisdom = {0};
    return read_all(o, &wisdom) && put_text(o, o->nout ? o->out[0] : NULL, &wisdom);
}

int cmd_wisdom(Options *o)
{
    static const struct {
        const char *name;
        bool (*run)(Options *o);
        uint64_t refused;
    } action[] = {{"export", export_wisdom, GIVEN(OUT)},
                  {"import", import_wisdom, GIVEN(OUT)},
                  {"merge", merge_wisdom, GIVEN(STORE)}};
    const char *wanted = o->nlist ? o->list[0] : "";
    int i = FIND(action, COUNTOF(action), name, wanted);
    if (i >= 0)
        return cli_refuse(o, wanted, action[i].refused) && action[i].run(o) ? 0 : 1;
    diag_error(&o->diags, span_none, "C060",
               "wisdom takes export, import or merge, and files: `%s`", wanted);
    return 2;
}
