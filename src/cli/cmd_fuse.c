// SPDX-License-Identifier: Apache-2.0
//
// forewarp fuse: which calls of a script may run as one kernel, what each such kernel needs
// and moves, and the cheapest ways to cover the script.

#include "cli/cli.h"

#include <string.h>

// 123, or 9.10.11 where a number has two digits.
static void put_set(Buf *out, const Script *script, const Fusion *f)
{
    const char *separator = script->ncall > 9 ? "." : "";
    for (Set s = f->set; s; s &= s - 1)
        buf_printf(out, "%d%s", f->first + __builtin_ctzll(s) + 1,
                   s & (s - 1) ? separator : "");
}

static void put_order(Buf *out, const Script *script, const Fusion *f)
{
    const char *separator = script->ncall > 9 ? "." : "";
    for (int i = 0; i < f->ncall; i++)
        buf_printf(out, "%s%d", i ? separator : "", f->first + f->order[i] + 1);
}

static void put_elems(Buf *out, const Script *script, const Fusion *f, ElemTest *test)
{
    const char *separator = "";
    for (int e = 0; e < script->nelem; e++)
        if (fusion_place(f, e) >= 0 && test(script, f, e)) {
            buf_printf(out, "%s%s", separator, script->elem[e].name);
            separator = " ";
        }
}

json_t *cli_elems_json(const Script *script, const Fusion *f, ElemTest *test)
{
    json_t *list = json_array();
    for (int e = 0; e < script->nelem; e++)
        if (fusion_place(f, e) >= 0 && test(script, f, e))
            json_array_append_new(list, json_string(script->elem[e].name));
    return list;
}

// JSON --------------------------------------------------------------------------------

static json_t *calls_json(const Script *script)
{
    json_t *list = json_array();
    for (int v = 0; v < script->ncall; v++) {
        const Call *call = &script->call[v];
        json_t *threads = json_array();
        for (int i = 0; i < call->function->nimpl; i++)
            json_array_append_new(threads, json_integer(call->function->threads[i]));
        json_array_append_new(list,
                              json_pack("{s:i, s:s, s:s, s:o}", "number", v + 1, "result",
                                        script->elem[call->out].name, "function",
                                        call->function->name, "threads", threads));
    }
    return list;
}

// Where each element lies on chip, in words an instance.
static json_t *places_json(const Script *script, const Fusion *f)
{
    json_t *places = json_object();
    for (int i = 0; i < f->nelem; i++)
        json_object_set_new(places, script->elem[f->elem[i]].name,
                            json_integer(f->offset[i]));
    return places;
}

static json_t *fusion_json(const Script *script, const Fusion *f)
{
    json_t *order = json_array();
    for (int i = 0; i < f->ncall; i++)
        json_array_append_new(order, json_integer(f->first + f->order[i] + 1));
    return json_pack("{s:o, s:f, s:[i, i], s:o, s:i, s:o, s:f, s:o, s:o, s:i, s:i}",
                     "calls", cli_set_json(fusion_calls(f)), "orders", f->orders, "need",
                     f->need_min, f->need_max, "order", order, "allocated", f->top,
                     "places", places_json(script, f), "implementations", f->impls, "loads",
                     cli_elems_json(script, f, fusion_loads), "stores",
                     cli_elems_json(script, f, fusion_stores), "words", f->moved, "apart",
                     f->apart);
}

static json_t *cover_json(const FuseSpace *space, const Cover *cover)
{
    json_t *kernels = json_array();
    for (int i = 0; i < cover->n; i++)
        json_array_append_new(
            kernels, cli_set_json(fusion_calls(&space->fusion.at[cover->unit[i]])));
    return json_pack("{s:o, s:f}", "kernels", kernels, "words", cover->cost);
}

// Inputs are read and results written once, whatever shares a kernel.
static double least_words(const Script *script)
{
    double words = 0;
    ARRAY_EACH_REF(const Elem *, elem, script->elem, script->nelem)
        if (!elem->is_uniform &&
            (elem->is_output || (elem->is_input && elem_is_used(elem))))
            words += elem->words;
    return words;
}

static json_t *space_json(const FuseSpace *space, const Fusion *const *list,
                          const Cover *cover, int ncover, double cover_s)
{
    const Script *script = space->script;
    json_t *fusions = json_array(), *covers = json_array();
    for (int i = 0; i < space->fusion.len; i++)
        if (list[i]->ncall > 1)
            json_array_append_new(fusions, fusion_json(script, list[i]));
    for (int i = 0; i < ncover; i++)
        json_array_append_new(covers, cover_json(space, &cover[i]));
    json_t *counts = json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b}", "subsets", space->subsets, "convex",
        space->convex, "connected", space->connected, "fusions", space->fusions,
        "implementations", space->impls, "covers", space->covers, "cover_implementations",
        space->cover_impls, "covers_cut", space->covers_cut);
    bool cut = ncover && cover[0].cut;
    return json_pack("{s:s, s:o, s:i, s:b, s:i, s:b, s:f, s:o, s:o, s:o, s:f, s:f}",
                     "script", script->name, "calls", calls_json(script), "limit",
                     space->limit, "limit_cut", space->cut, "parts", space->nparts,
                     "covers_cut", cut, "least_words", least_words(script), "counts",
                     counts, "fusions", fusions, "covers", covers, "space_s",
                     space->seconds, "cover_s", cover_s);
}

// Text --------------------------------------------------------------------------------

static void print_counts(const FuseSpace *space)
{
    const Script *script = space->script;
    printf("%s: %d calls, %d inputs; fusions of at most %d\n", script->name, script->ncall,
           script->ninput, space->limit);
    if (space->subsets > 0)
        printf("  %.0f sets of calls, %.0f convex, ", space->subsets, space->convex);
    else
        printf("  ");
    printf("%.0f convex and connected: %d single, %.0f fusions\n", space->connected,
           script->ncall, space->fusions);
    printf("  %.0f implementations of fusions by threads an instance\n", space->impls);
    if (space->covers > 0)
        printf("  %s%.0f covers, %.0f with their implementations\n",
               space->covers_cut ? "at least " : "", space->covers, space->cover_impls);
}

enum { ROWS_MOST = 40 };

static void print_fusions(const FuseSpace *space, const Fusion *const *list)
{
    const Script *script = space->script;
    Buf set, order, loads, stores;
    Buf *text[] = {&set, &order, &loads, &stores};
    for (int i = 0; i < COUNTOF(text); i++)
        *text[i] = buf_new();
    printf("\n  %-10s %6s %9s %-10s %5s %6s  %11s  loads; stores\n", "calls", "orders",
           "need", "order", "words", "impls", "moved/apart");
    int shown = 0;
    for (int i = 0; i < space->fusion.len && shown < ROWS_MOST; i++) {
        const Fusion *f = list[i];
        if (f->ncall < 2)
            continue;
        for (int k = 0; k < COUNTOF(text); k++)
            buf_clear(text[k]);
        put_set(&set, script, f);
        put_order(&order, script, f);
        put_elems(&loads, script, f, fusion_loads);
        put_elems(&stores, script, f, fusion_stores);
        printf("  %-10s %6.0f %4d..%-3d %-10s %5d %6.0f  %5d/%-5d  %s; %s\n", set.text,
               f->orders, f->need_min, f->need_max, order.text, f->top, f->impls, f->moved,
               f->apart, loads.text, stores.text);
        shown++;
    }
    if (shown < space->fusions)
        printf("  ... and %.0f more\n", space->fusions - shown);
    for (int i = 0; i < COUNTOF(text); i++)
        buf_release(text[i]);
}

// How good the first cover is known to be.
static void print_known(const FuseSpace *space, const Cover *cover)
{
    if (space->nparts > 1)
        printf("  divided into %d parts of at most %d calls, no kernel has calls of two\n",
               space->nparts, PART_MAX);
    if (space->nparts > 1 || space->cut || cover->cut)
        printf("  the first is %s; no cover at all moves fewer than %.0f words\n",
               cover->cut ? "the best that was found"
                          : "the cheapest of the sets looked at",
               least_words(space->script));
}

static void print_covers(const FuseSpace *space, const Cover *cover, int ncover)
{
    AutoBuf text = buf_new();
    printf("\n  covers that move the fewest words an instance\n");
    for (int i = 0; i < ncover; i++) {
        buf_clear(&text);
        for (int k = 0; k < cover[i].n; k++) {
            buf_puts(&text, k ? "|" : "");
            put_set(&text, space->script, &space->fusion.at[cover[i].unit[k]]);
        }
        printf("  %5.0f  %s\n", cover[i].cost, text.text);
    }
    if (ncover)
        print_known(space, &cover[0]);
}

// The command -------------------------------------------------------------------------

// Each set as a unit that costs the words it moves.
static int cover_by_words(const FuseSpace *space, int k, Arena *arena, Cover **cover)
{
    int n = space->fusion.len;
    CoverUnit *unit = NEW_ARRAY(arena, CoverUnit, MAX(n, 1));
    for (int i = 0; i < n; i++)
        unit[i] =
            (CoverUnit){space->fusion.at[i].set, (double)space->fusion.at[i].moved, i};
    return cover_parts(space, unit, n, k, arena, cover);
}

static int print_text(Options *o)
{
    bool ok, library = strcmp(o->print, "library") == 0;
    if (!library && (strcmp(o->print, "program") != 0 || path_is_program(o->file))) {
        diag_error(&o->diags, span_none, "C034",
                   "fuse --print takes library, or program of a script: `%s`", o->print);
        return 2;
    }
    if (library) {
        fputs(fuse_library, stdout);
        return 0;
    }
    o->script = script_load(o->file, o->binding, o->nbinding, &o->diags, &ok);
    if (!ok)
        return 2;
    AutoBuf text = buf_new();
    script_print(&text, o->script);
    fputs(text.text, stdout);
    return 0;
}

int cmd_fuse(Options *o)
{
    if (o->print)
        return print_text(o);
    if (path_is_program(o->file))
        return cli_fuse_program(o);
    bool ok;
    Script *script = o->script =
        script_load(o->file, o->binding, o->nbinding, &o->diags, &ok);
    if (!ok)
        return 2;
    FuseSpace *space = fuse_space(script, (int)o->limit, o->arena);
    fuse_order(space);
    if (space->cut)
        diag_warning(&o->diags, span_none, "F035",
                     "there are too many sets of up to %d calls: only sets of up to %d are "
                     "considered%s",
                     space->asked, space->limit,
                     space->limit < space->limit_most ? ", larger ones in some parts" : "");
    Cover *cover;
    double start = clock_s();
    int n = cover_by_words(space, o->number ? (int)o->number : 10, o->arena, &cover);
    double cover_s = clock_s() - start;
    int nlist;
    const Fusion **list = fuse_list(space, 1, o->arena, &nlist);
    if (cli_prints(o)) {
        print_counts(space);
        print_fusions(space, list);
        print_covers(space, cover, n);
        printf("\n  space %.2f ms, covers %.2f ms\n", 1e3 * space->seconds, 1e3 * cover_s);
    }
    ok = cli_json(o, space_json(space, list, cover, n, cover_s));
    return ok ? 0 : 1;
}
