// SPDX-License-Identifier: Apache-2.0
//
// The tables of the evaluation of 002. It only arranges numbers:
// evaluate/stages.c makes them.
#include "report/stages.h"

#include "report/table.h"

#include <math.h>

// Tables -------------------------------------------------------------------------------

static void print_record(Buf *out, const Stages *s)
{
    const Recorded *r = s->recorded;
    int repeated;
    double noise = recorded_noise(r, &repeated);
    buf_printf(out, "%s%s%s: %d points tried, %d ran, the best of them in %.4g us\n",
               r->name, *r->device ? " on " : "", r->device, r->n, r->nvalid,
               s->best_ns * 1e-3);
    if (repeated)
        buf_printf(out,
                   "noise: two measurements of a point are %.1f %% apart (%d points)\n",
                   100 * noise, repeated);
    buf_putc(out, '\n');
}

static void print_errors(Buf *out, const Stages *s, Arena *arena)
{
    static const char *const names[] = {
        "training points", "tried",    "mean error %", "+-",
        "median %",        "rank",     "training s",   "failures: right %",
        "larger kind %",   "missed %", "doubted %"};
    Table t = table_new(arena, COUNTOF(names));
    table_row(&t, names, COUNTOF(names));
    for (int f = 0; f < STAGE_FIRSTS; f++) {
        const StageFirst *one = &s->first[f];
        if (!one->first)
            continue;
        table_put(&t, "%d", one->first);
        table_number(&t, one->runs, 0);
        table_number(&t, 100 * one->error, 1);
        table_number(&t, 100 * one->spread, 1);
        table_number(&t, 100 * one->median, 1);
        table_number(&t, one->rank, 3);
        table_number(&t, one->fit_s, 2);
        table_number(&t, 100 * one->right, 1);
        table_number(&t, 100 * one->plain, 1);
        table_number(&t, 100 * one->missed, 1);
        table_number(&t, 100 * one->doubted, 1);
    }
    buf_printf(out,
               "Figures 4 to 7: relative error of %s on points not seen, %d repetitions\n",
               s->kind->name, s->repeats);
    table_print(out, &t);
    buf_putc(out, '\n');
}

// "1.035", and behind it the share of failing points where there are any.
static void put_cell(Table *t, const StageCell *cell, int repeats)
{
    if (cell->empty == repeats)
        table_put(t, "none ran");
    else if (cell->empty)
        table_put(t, "%.3f (%d of %d none)", cell->slowdown, cell->empty, repeats);
    else if (cell->failed >= 0.0005)
        table_put(t, "%.3f (%.1f %% fail)", cell->slowdown, 100 * cell->failed);
    else
        table_put(t, "%.3f", cell->slowdown);
}

static void print_slowdowns(Buf *out, const Stages *s, bool learnt, Arena *arena)
{
    Table t = table_new(arena, 1 + STAGE_SECONDS);
    table_put(&t, "training points");
    for (int m = 0; m < STAGE_SECONDS; m++)
        table_put(&t, "M = %d", stage_second[m]);
    for (int f = 0; f < STAGE_FIRSTS; f++) {
        const StageFirst *one = &s->first[f];
        if (!one->first)
            continue;
        table_put(&t, "%d", one->first);
        for (int m = 0; m < STAGE_SECONDS; m++)
            put_cell(&t, learnt ? &one->with[m] : &one->without[m], s->repeats);
    }
    buf_printf(out,
               "Figures 11 to 14: best of the second stage over the best point not seen "
               "before, %s\n",
               learnt ? "failures learnt" : "failures ignored as in the paper");
    table_print(out, &t);
    buf_putc(out, '\n');
}

void report_stages(Buf *out, const Stages *stages)
{
    Arena *arena = arena_new();
    print_record(out, stages);
    print_errors(out, stages, arena);
    print_slowdowns(out, stages, true, arena);
    if (stages->recorded->nvalid < stages->recorded->n)
        print_slowdowns(out, stages, false, arena);
    arena_free(arena);
}
