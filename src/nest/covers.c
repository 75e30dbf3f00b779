// SPDX-License-Identifier: Apache-2.0
//
// Which stages of a program share a kernel: the covers of its stages by kernels, the
// cheapest first (paper 004).

#include "nest/nest.h"
#include "nest/pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_first(const void *a, const void *b, void *user)
{
    const Pipeline *p = user;
    Calls first = fusion_calls(&p->space->fusion.at[*(const int *)a]);
    Calls second = fusion_calls(&p->space->fusion.at[*(const int *)b]);
    return first.first + __builtin_ctzll(first.set) - second.first -
           __builtin_ctzll(second.set);
}

static const char *label_of(const Pipeline *p, const Cover *cover)
{
    int *unit = NEW_ARRAY(p->arena, int, cover->n);
    AutoBuf text = buf_new();
    memcpy(unit, cover->unit, (size_t)cover->n * sizeof *unit);
    qsort_r(unit, (size_t)cover->n, sizeof *unit, by_first, (void *)(uintptr_t)p);
    for (int i = 0; i < cover->n; i++) {
        const char *separator = i ? "|" : "";
        Calls calls = fusion_calls(&p->space->fusion.at[unit[i]]);
        for (Set s = calls.set; s; s &= s - 1, separator = "+")
            buf_printf(&text, "%s%d", separator, calls.first + __builtin_ctzll(s) + 1);
    }
    return arena_strdup(p->arena, text.text);
}

// COPIES_MOST: a nest of four boxes of 3 x 3 has 729, and an item may have 64 outputs:
// 74,000 lines. A kernel of six boxes would have seven megabytes for one output.
enum { COPIES_MOST = 256 };

// How often the text of a kernel has one of its stages, a reader being a place where all
// points of its windows are computed.
static double copies(const Pipeline *p, Calls set)
{
    double n[PART_MAX] = {0}, most = 1;
    for (int v = pipeline_end(set) - 1; v >= set.first; v--) {
        double *times = &n[v - set.first];
        *times = pipeline_stores(p, set, v);
        for (int u = v + 1; u < pipeline_end(set) && calls_have(set, v); u++) {
            const StageRead *read = calls_have(set, u) ? pipeline_read(p, u, v) : NULL;
            *times += read ? n[u - set.first] * pipeline_volume(read->size) : 0;
        }
        most = fmax(most, *times);
    }
    return most;
}

bool pipeline_again(const Pipeline *p, const Cover *cover)
{
    for (int i = 0; i < cover->n; i++)
        if (copies(p, pipeline_set(p, cover, i)) > COPIES_MOST)
            return false;
    return true;
}

static bool same_units(const Cover *a, const Cover *b)
{
    int common = 0;
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++)
            common += a->unit[i] == b->unit[k];
    return common == a->n;
}

// The number of the cheapest cover by those units, which is added unless it is there; -1:
// there is none.
static int add_cover(Pipeline *p, CoverUnit *unit, int n)
{
    Cover *found;
    int at = 0;
    if (n == 0 || cover_parts(p->space, unit, n, 1, p->arena, &found) == 0)
        return -1;
    for (int i = 0; i < found->n; i++)
        found->unit[i] = unit[found->unit[i]].id;
    while (at < p->ncover && !same_units(&p->cover[at], found))
        at++;
    if (at == p->ncover)
        p->cover[p->ncover++] = *found;
    return at;
}

static int count_stored(const Pipeline *p, Calls set)
{
    int n = 0;
    for (int v = set.first; v < pipeline_end(set); v++)
        n += pipeline_stores(p, set, v);
    return n;
}

// Is it a fold to a number of what a kernel makes element by element, and stores? In
// several dimensions of nothing else: what results share would be computed for each.
static bool is_sum(const Pipeline *p, Calls set, int made, int fold)
{
    const Script *s = &p->script;
    const Elem *elem = &s->elem[s->call[made].out];
    const Expr *sum = p->stage[fold].expr;
    return p->stage[made].is_map && type_is_scalar(sum->type) && folds_together(sum) &&
           elem->shape == s->elem[s->call[fold].out].shape &&
           pipeline_stores(p, set, made) &&
           (p->stage[made].dims == 1 || count_stored(p, set) == 2);
}

// Does a kernel of the set compute what it does not store once for each reader's point?
static bool reads_points(const Pipeline *p, Calls set)
{
    for (int v = set.first; v < pipeline_end(set); v++)
        for (int u = v + 1; calls_have(set, v) && u < pipeline_end(set); u++) {
            const StageRead *read = calls_have(set, u) ? pipeline_read(p, u, v) : NULL;
            if (read && (read->kind != READ_POINT ||
                         !(p->stage[u].is_map || is_sum(p, set, v, u)) ||
                         hides_product(p->stage[v].expr, p->stage[u].expr)))
                return false;
        }
    return true;
}

// The map of prefixes that a stage is or lays out anew, as where they are made backwards;
// NULL: it is none.
static const Expr *prefixes_in(const Expr *stage)
{
    while (is_map(stage) && !chain_scan_bytes(stage))
        stage = under_layout(stage->arg[0]);
    return is_map(stage) ? stage : NULL;
}

// Would an item keep long rows of a prefix? Others of the set may read them element by
// element, in the same loop, but several elements at a time of shorter rows only, and not
// of columns, of which many items have parts. What a prefix reads element by element is
// made where it does.
static bool keeps_prefix(const Pipeline *p, Calls set)
{
    enum { KEPT_MOST = 16 << 10, READ_MOST = 128 << 10 };
    for (int v = set.first; v < pipeline_end(set); v++) {
        const Expr *prefix = calls_have(set, v) ? prefixes_in(p->stage[v].expr) : NULL;
        int64_t bytes = prefix ? chain_scan_bytes(prefix) : 0;
        for (int u = set.first; bytes > KEPT_MOST && u < pipeline_end(set); u++) {
            const StageRead *read = calls_have(set, u) ? pipeline_read(p, u, v) : NULL;
            const StageRead *made = u < v ? pipeline_read(p, v, u) : NULL;
            if (calls_have(set, u) && u != v && !(made && made->kind < READ_WINDOW) &&
                (bytes > READ_MOST || reads_columns(prefix) || !read ||
                 read->kind != READ_POINT || has_fold(p->stage[u].expr) ||
                 expr_find_pattern(p->stage[u].expr, P_SCAN)))
                return true;
        }
    }
    return false;
}

// Has the set a stage that is to be stored before another one of the set reads it? Rows
// with folds or prefixes in them that are stored would be made once more.
static bool reads_early(const Pipeline *p, Calls set)
{
    for (int u = set.first; u < pipeline_end(set); u++)
        for (int i = 0; calls_have(set, u) && i < p->stage[u].nread; i++) {
            const StageRead *read = &p->stage[u].read[i];
            const int from = p->script.elem[read->elem].producer;
            if (from >= 0 && calls_have(set, from) &&
                (read->stored ||
                 (p->stage[from].costly_rows && pipeline_stores(p, set, from))))
                return true;
        }
    return false;
}

// The best ones; if they are not among them, all stages apart, all in one kernel, and the
// cheapest where kernels go on with what they have only point by point.
void pipeline_find_covers(Pipeline *p, const StageRates *rates, int most)
{
    int nset = p->space->fusion.len, n = 0, nsingle = 0, nwhole = 0, npoint = 0;
    CoverUnit *unit = NEW_ARRAY(p->arena, CoverUnit, nset);
    CoverUnit *point = NEW_ARRAY(p->arena, CoverUnit, nset);
    CoverUnit *single = NEW_ARRAY(p->arena, CoverUnit, nset), whole[1];
    Cover *cover;
    for (int i = 0; i < nset; i++) {
        const Fusion *fusion = &p->space->fusion.at[i];
        if ((!p->streams && copies(p, fusion_calls(fusion)) > COPIES_MOST) ||
            keeps_prefix(p, fusion_calls(fusion)) || reads_early(p, fusion_calls(fusion)))
            continue;
        unit[n] =
            (CoverUnit){fusion->set, pipeline_time(p, fusion_calls(fusion), rates), i};
        if (fusion->ncall == 1)
            single[nsingle++] = unit[n];
        if (reads_points(p, fusion_calls(fusion)))
            point[npoint++] = unit[n];
        if (fusion->ncall == p->script.ncall)
            whole[nwhole++] = unit[n];
        n++;
    }
    p->ncover = cover_parts(p->space, unit, n, most, p->arena, &cover);
    p->cover = NEW_ARRAY(p->arena, Cover, p->ncover + 3);
    for (int i = 0; i < p->ncover; i++) {
        p->cover[i] = cover[i];
        for (int k = 0; k < cover[i].n; k++)
            p->cover[i].unit[k] = unit[cover[i].unit[k]].id;
    }
    add_cover(p, whole, nwhole);
    add_cover(p, single, nsingle);
    p->by_points = add_cover(p, point, npoint);
    p->label = NEW_ARRAY(p->arena, const char *, p->ncover);
    for (int i = 0; i < p->ncover; i++)
        p->label[i] = label_of(p, &p->cover[i]);
}
