// SPDX-License-Identifier: Apache-2.0
//
// The tables of the evaluation of 000. It only arranges numbers: model/eval.c makes them.
#include "report/knn.h"

#include "report/table.h"

static void print_figure7(Buf *out, const Eval *e, Arena *arena)
{
    static const char *const names[] = {"program", "size",    "points", "ran",
                                        "good",    "model",   "random", "fewer",
                                        "pearson", "spearman"};
    const Dataset *data = e->data;
    Table t = table_new(arena, COUNTOF(names) + 1);
    table_row(&t, names, COUNTOF(names));
    table_put(&t, "to %.0f %%", 100 * EVAL_STRICT);
    for (int i = 0; i < e->ngroup; i++) {
        const EvalGroup *g = &e->group[i];
        const DatasetGroup *d = &data->group_at[g->group];
        table_put(&t, "%s", data->program_name[d->program]);
        table_put(&t, "%s", data->size_name[d->size]);
        table_put(&t, "%d", d->n);
        table_put(&t, "%d", d->ok);
        table_put(&t, "%d", g->good);
        table_number(&t, g->model.runs, 1);
        table_number(&t, g->random.runs, 1);
        table_number(&t, g->random.runs / g->model.runs, 1);
        table_number(&t, g->pearson, 3);
        table_number(&t, g->spearman, 3);
        table_number(&t, g->model_strict.runs, 1);
    }
    buf_printf(out, "Figure 7: runs to reach %.0f %% of the best\n", 100 * e->goal);
    table_print(out, &t);
}

static void print_summary(Buf *out, const Eval *e)
{
    const EvalSummary *s = &e->summary;
    buf_printf(out,
               "\nSummary over %d program and size pairs\n"
               "  correlation          mean %.3f, from %.3f to %.3f; by rank %.3f\n"
               "  runs to %2.0f %%         model mean %.1f, median %.1f; random mean %.1f, "
               "median %.1f\n"
               "  against random       %.1f times fewer runs, %.1f times less time "
               "(geometric means)\n"
               "  best after 1, 5, 10  model %.3f %.3f %.3f; random %.3f %.3f %.3f\n",
               e->ngroup, s->pearson, s->lowest_pearson, s->highest_pearson, s->spearman,
               100 * e->goal, s->model_runs, s->median_model, s->random_runs,
               s->median_random, s->fewer_runs, s->less_time, s->after1, s->after5,
               s->after10, s->random1, s->random5, s->random10);
}

static void print_reach(Buf *out, const Eval *e, Arena *arena)
{
    const EvalReach *reach[] = {&e->summary.goal, &e->summary.strict};
    static const char *const names[] = {"runs to",     "mean",           "geometric mean",
                                        "random mean", "geometric mean", "within 5 runs"};
    Table t = table_new(arena, COUNTOF(names));
    table_row(&t, names, COUNTOF(names));
    for (int i = 0; i < COUNTOF(reach); i++) {
        table_put(&t, "%.0f %%", 100 * reach[i]->goal);
        table_number(&t, reach[i]->mean, 1);
        table_number(&t, reach[i]->geomean, 1);
        table_number(&t, reach[i]->random_mean, 1);
        table_number(&t, reach[i]->random_geomean, 1);
        table_put(&t, "%.0f %%", 100 * reach[i]->soon);
    }
    buf_puts(out, "\nHow soon, over all program and size pairs\n");
    table_print(out, &t);
}

static void print_sizes(Buf *out, const Eval *e, Arena *arena)
{
    Table t = table_new(arena, 6);
    table_put(&t, "size");
    table_put(&t, "programs");
    table_put(&t, "runs to %.0f %%", 100 * e->goal);
    table_put(&t, "runs to %.0f %%", 100 * EVAL_STRICT);
    table_put(&t, "fewer");
    table_put(&t, "pearson");
    for (int i = 0; i < e->nsize; i++) {
        const EvalSize *s = &e->size[i];
        table_put(&t, "%s", e->data->size_name[s->size]);
        table_put(&t, "%d", s->groups);
        table_number(&t, s->runs, 1);
        table_number(&t, s->strict_runs, 1);
        table_number(&t, s->fewer_runs, 1);
        table_number(&t, s->pearson, 3);
    }
    buf_puts(out, "\nBy size: means over programs\n");
    table_print(out, &t);
}

static void print_origin(Buf *out, const Eval *e)
{
    const char *device = dataset_meta(e->data, "device");
    buf_printf(out, "%s on %d points of %d programs", e->kind->name, e->data->n,
               e->data->nprogram);
    buf_printf(out, device ? ", measured on %s\n\n" : "\n\n", device);
}

void report_knn(Buf *out, const Eval *e)
{
    static void (*const part[])(Buf *, const Eval *, Arena *) = {print_figure7, print_reach,
                                                                 print_sizes};
    Arena *arena = arena_new();
    print_origin(out, e);
    for (int i = 0; i < COUNTOF(part); i++)
        part[i](out, e, arena);
    print_summary(out, e);
    arena_free(arena);
}
