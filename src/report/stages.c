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

// The largest first stage up to a size that was looked at.
static const StageFirst *first_up_to(const Stages *stages, int first)
{
    const StageFirst *found = NULL;
    for (int f = 0; f < STAGE_FIRSTS; f++)
        if (stages->first[f].first && (stage_first[f] <= first || !found))
            found = &stages->first[f];
    return found;
}

enum { PICK_NUMBERS = 9 };
static const int pick_decimals[PICK_NUMBERS] = {1, 3, 3, 3, 3, 3, 1, 1, 2};

static void pick_numbers(const StageFirst *one, double number[PICK_NUMBERS])
{
    static const int shown[] = {0, 1, 2, STAGE_SECONDS - 1};
    number[0] = 100 * one->error;
    number[1] = one->rank;
    for (int m = 0; m < COUNTOF(shown); m++)
        number[2 + m] = one->with[shown[m]].slowdown;
    number[6] = 100 * one->with[STAGE_SECONDS - 1].failed;
    number[7] = 100 * one->right;
    number[8] = one->fit_s;
}

// Over all records, of one kind of model.
static void put_means(Table *t, const Stages *stages, int n, const ModelKind *kind,
                      int first)
{
    double sum[PICK_NUMBERS] = {0}, number[PICK_NUMBERS];
    int records = 0;
    for (int i = 0; i < n; i++) {
        if (stages[i].kind != kind)
            continue;
        pick_numbers(first_up_to(&stages[i], first), number);
        for (int k = 0; k < PICK_NUMBERS; k++)
            sum[k] += number[k];
        records++;
    }
    table_put(t, "mean of %d", records);
    table_put(t, "%s", kind->name);
    table_put(t, "%s", "");
    for (int k = 0; k < PICK_NUMBERS; k++)
        table_number(t, sum[k] / records, pick_decimals[k]);
}

void report_pickers(Buf *out, const Stages *stages, int n, int first)
{
    static const char *const names[] = {
        "record",  "model",     "training points",  "mean error %",
        "rank",    "M = 10",    "M = 50",           "M = 100",
        "M = 200", "failing %", "failures right %", "training s"};
    Arena *arena = arena_new();
    Table t = table_new(arena, COUNTOF(names));
    int kinds = 0;
    table_row(&t, names, COUNTOF(names));
    for (int i = 0; i < n; i++) {
        const StageFirst *one = first_up_to(&stages[i], first);
        double number[PICK_NUMBERS];
        kinds += stages[i].recorded == stages[0].recorded;
        pick_numbers(one, number);
        table_put(&t, "%s", stages[i].recorded->name);
        table_put(&t, "%s", stages[i].kind->name);
        table_put(&t, "%d", one->first);
        for (int k = 0; k < PICK_NUMBERS; k++)
            table_number(&t, number[k], pick_decimals[k]);
    }
    for (int k = 0; k < kinds && n > kinds; k++)
        put_means(&t, stages, n, stages[k].kind, first);
    buf_puts(out, "second stages of M points picked by each model: the best point over the "
                  "best not seen before\n");
    table_print(out, &t);
    arena_free(arena);
}
