// SPDX-License-Identifier: Apache-2.0
//
// forewarp fuse of a program: its stages as calls, which of them may be one kernel, and the
// covers by predicted time. The points of its space are tuned like any other.

#include "cli/cli.h"
#include "nest/pipeline.h"

enum { SHOWN_MOST = 40 };

static void put_stages(Buf *out, Calls calls)
{
    for (Set set = calls.set; set; set &= set - 1)
        buf_printf(out, "%d%s", calls.first + __builtin_ctzll(set) + 1,
                   set & (set - 1) ? "+" : "");
}

// Those of the set that may have a tile in local memory.
static Calls tiles_of(const Pipeline *p, const Fusion *f)
{
    Calls tiles = {f->first, 0};
    for (Set s = f->set; s; s &= s - 1)
        if (pipeline_tiles(p, fusion_calls(f), f->first + __builtin_ctzll(s)))
            tiles.set |= s & -s;
    return tiles;
}

// Text ----------------------------------------------------------------------------------

static void put_read(Buf *out, const Pipeline *p, const StageRead *read, int dims)
{
    static const char *const how[] = {[READ_POINT] = "",
                                      [READ_LAYOUT] = " moved",
                                      [READ_WINDOW] = "",
                                      [READ_WHOLE] = " all"};
    buf_printf(out, " %s%s", p->script.elem[read->elem].name, how[read->kind]);
    for (int k = 0; k < dims && read->kind == READ_WINDOW; k++)
        buf_printf(out, "%s%lld", k ? "x" : " ", (long long)read->size[k]);
}

static void print_stages(const Pipeline *p)
{
    AutoBuf reads = buf_new();
    printf("\n  %-6s %-10s %8s  reads\n", "stage", "name", "work");
    for (int v = 0; v < p->script.ncall; v++) {
        const Stage *stage = &p->stage[v];
        buf_clear(&reads);
        for (int i = 0; i < stage->nread; i++) {
            buf_puts(&reads, i ? "," : "");
            put_read(&reads, p, &stage->read[i], stage->dims);
        }
        printf("  %-6d %-10s %8.0f %s\n", v + 1, stage->name, stage->work, reads.text);
    }
}

static void print_counts(const Problem *problem, const Pipeline *p)
{
    const FuseSpace *s = p->space;
    printf("%s: %d stages, %d input%s; fusions of at most %d\n  ", problem_label(problem),
           p->script.ncall, p->script.ninput, p->script.ninput == 1 ? "" : "s", s->limit);
    if (s->subsets > 0)
        printf("%.0f sets of stages, %.0f convex, ", s->subsets, s->convex);
    printf("%.0f fusible and connected: %d single, %.0f fusions\n", s->connected,
           p->script.ncall, s->fusions);
    printf("  %.0f ways to place what fusions do not store\n", s->impls);
    if (s->covers > 0)
        printf("  %s%.0f covers, %.0f with their placements\n",
               s->covers_cut ? "at least " : "", s->covers, s->cover_impls);
}

static void print_fusions(const Pipeline *p, const Fusion *const *list, int n,
                          const StageRates *rates)
{
    AutoBuf set = buf_new(), tiles = buf_new(), time = buf_new();
    printf("\n  %-18s %11s  %-10s  %12s\n", "fusion", "bytes/apart", "tiles", "predicted");
    for (int i = 0; i < MIN(n, SHOWN_MOST); i++) {
        buf_clear(&set);
        buf_clear(&tiles);
        buf_clear(&time);
        put_stages(&set, fusion_calls(list[i]));
        put_stages(&tiles, tiles_of(p, list[i]));
        cli_time(&time, pipeline_time(p, fusion_calls(list[i]), rates));
        printf("  %-18s %5d/%-5d  %-10s  %12s\n", set.text, list[i]->moved, list[i]->apart,
               tiles.len ? tiles.text : "-", time.text);
    }
    if (n > SHOWN_MOST)
        printf("  ... and %d more\n", n - SHOWN_MOST);
}

static void print_covers(const Pipeline *p, const StageRates *rates)
{
    printf("\n  covers by predicted time, at %.0f GB/s, %.0f operations a ns, %.1f us a "
           "kernel\n",
           rates->gbs, rates->ops, rates->launch_ns / 1e3);
    for (int i = 0; i < p->ncover; i++) {
        AutoBuf time = buf_new();
        cli_time(&time, p->cover[i].cost);
        printf("  %12s  %s\n", time.text, p->label[i]);
    }
    if (p->space->nparts > 1)
        printf(
            "  divided into %d parts of at most %d stages, no kernel has stages of two\n",
            p->space->nparts, PART_MAX);
    if (p->ncover && (p->space->nparts > 1 || p->space->cut || p->cover[0].cut)) {
        AutoBuf least = buf_new();
        cli_time(&least, pipeline_least(p, rates));
        printf("  the first is %s; no cover at all takes less than %s\n",
               p->cover[0].cut ? "the best that was found"
                               : "the fastest of the sets looked at",
               least.text);
    }
    printf("\n  space %.2f ms\n", 1e3 * p->space->seconds);
}

// JSON --------------------------------------------------------------------------------

static json_t *fusion_json(const Pipeline *p, const Fusion *f, const StageRates *rates)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:f, s:i, s:i, s:f}", "stages", cli_set_json(fusion_calls(f)),
        "loads", cli_elems_json(&p->script, f, fusion_loads), "stores",
        cli_elems_json(&p->script, f, fusion_stores), "tiles", cli_set_json(tiles_of(p, f)),
        "placements", f->impls, "bytes", f->moved, "apart", f->apart, "predicted_ns",
        pipeline_time(p, fusion_calls(f), rates));
}

static json_t *stage_json(const Pipeline *p, int v)
{
    static const char *const how[] = {[READ_POINT] = "point",
                                      [READ_LAYOUT] = "layout",
                                      [READ_WINDOW] = "window",
                                      [READ_WHOLE] = "whole"};
    const Stage *stage = &p->stage[v];
    json_t *reads = json_array();
    for (int i = 0; i < stage->nread; i++) {
        json_t *size = json_array();
        for (int k = 0; k < stage->dims; k++)
            json_array_append_new(size, json_integer(stage->read[i].size[k]));
        json_array_append_new(reads,
                              json_pack("{s:s, s:s, s:o}", "array",
                                        p->script.elem[stage->read[i].elem].name, "how",
                                        how[stage->read[i].kind], "window", size));
    }
    return json_pack("{s:i, s:s, s:f, s:o}", "number", v + 1, "name", stage->name, "work",
                     stage->work, "reads", reads);
}

static json_t *cover_json(const Pipeline *p, int cover)
{
    json_t *kernels = json_array();
    for (int i = 0; i < p->cover[cover].n; i++)
        json_array_append_new(kernels, cli_set_json(pipeline_set(p, &p->cover[cover], i)));
    return json_pack("{s:s, s:o, s:f}", "cover", p->label[cover], "kernels", kernels,
                     "predicted_ns", p->cover[cover].cost);
}

static json_t *pipeline_json(const Problem *problem, const Pipeline *p,
                             const Fusion *const *list, int n, const StageRates *rates)
{
    const FuseSpace *s = p->space;
    json_t *stages = json_array(), *fusions = json_array(), *covers = json_array();
    for (int v = 0; v < p->script.ncall; v++)
        json_array_append_new(stages, stage_json(p, v));
    for (int i = 0; i < n; i++)
        json_array_append_new(fusions, fusion_json(p, list[i], rates));
    for (int i = 0; i < p->ncover; i++)
        json_array_append_new(covers, cover_json(p, i));
    json_t *counts =
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b}", "subsets", s->subsets,
                  "convex", s->convex, "connected", s->connected, "fusions", s->fusions,
                  "placements", s->impls, "covers", s->covers, "cover_placements",
                  s->cover_impls, "covers_cut", s->covers_cut);
    bool cut = p->ncover && p->cover[0].cut;
    return json_pack(
        "{s:s, s:o, s:i, s:b, s:i, s:b, s:f, s:o, s:o, s:o, s:{s:f, s:f, s:f}, "
        "s:f}",
        "program", problem_label(problem), "stages", stages, "limit", s->limit, "limit_cut",
        s->cut, "parts", s->nparts, "covers_cut", cut, "least_ns", pipeline_least(p, rates),
        "counts", counts, "fusions", fusions, "covers", covers, "rates", "gbs", rates->gbs,
        "operations_ns", rates->ops, "launch_ns", rates->launch_ns, "space_s", s->seconds);
}

// Entry ---------------------------------------------------------------------------------

// What the device asked for was measured to reach, and is now if it was not.
static bool device_rates(Options *o, const Problem *problem, StageRates *rates)
{
    DeviceInfo info;
    Ceilings c = {0};
    const Workplace place = cli_workplace(o);
    if (!cli_device(o, &info))
        return false;
    int64_t bytes = ceilings_bytes(&info, problem_bytes(problem));
    Store *store = store_open(cli_store(o), &o->diags);
    bool ok = store && ceilings_find(store, &info, &place, bytes, &c, &o->diags);
    if (ok && c.copy_gbs > 0 && c.float_gflops > 0) // a multiply-add is one operation
        *rates = (StageRates){c.copy_gbs, c.float_gflops / 2, rates->launch_ns};
    store_close(store);
    return ok;
}

static bool is_asked_right(Options *o)
{
    if (o->point)
        return diag_error(&o->diags, span_none, "C076",
                          "use `emit` to print the kernels of a point");
    return !o->device_model ||
           diag_error(&o->diags, span_none, "C078",
                      "covers of a program are ordered by measured rates, which a "
                      "described device does not have: give --device");
}

int cli_fuse_program(Options *o)
{
    StageRates rates = stage_rates;
    Problem *problem = cli_program(o, SIZES_ALL);
    if (!problem || !is_asked_right(o))
        return 2;
    if (o->device_given && !device_rates(o, problem, &rates))
        return 1;
    const Function *main = problem->bound->main;
    Pipeline *p = pipeline_new(problem->ir, main->body, main->params, main->nparam, &rates,
                               o->number ? (int)o->number : 10, (int)o->limit, false);
    if (!p) {
        diag_error(&o->diags, main->span, "C077",
                   "%s has fewer than two stages, or more than %d: maps that a name holds, "
                   "or that windows look at",
                   problem->name, CALLS_MAX);
        return 2;
    }
    if (p->space->cut)
        diag_warning(&o->diags, span_none, "F035",
                     "there are too many sets of up to %d stages: only sets of up to %d "
                     "are considered",
                     p->space->asked, p->space->limit);
    int n;
    const Fusion **list = fuse_list(p->space, 2, o->arena, &n);
    if (cli_prints(o)) {
        print_counts(problem, p);
        print_stages(p);
        print_fusions(p, list, n, &rates);
        print_covers(p, &rates);
    }
    bool ok = cli_json(o, pipeline_json(problem, p, list, n, &rates));
    pipeline_free(p);
    return ok ? 0 : 1;
}
