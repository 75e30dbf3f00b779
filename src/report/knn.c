// SPDX-License-Identifier: Apache-2.0
//
// The tables of the evaluation of 000, and what tables and plots share. It only arranges
// numbers: model/eval.c makes them.
#include "report/knn.h"

#include "report/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const knn_stage_name[KNN_STAGES] = {"generation", "compilation", "execution"};

int report_knn_size(const Dataset *data)
{
    for (int i = 0; i < data->nsize; i++)
        if (strncmp(data->size_name[i], "4096", 4) == 0)
            return i;
    return data->nsize - 1;
}

bool report_knn_stages(const Dataset *data, const char *program, double s[KNN_STAGES])
{
    double total = 0;
    for (int i = 0; i < KNN_STAGES; i++) {
        char key[256];
        snprintf(key, sizeof key, "%s_s%s%s", knn_stage_name[i], program ? "." : "",
                 program ? program : "");
        total += s[i] = dataset_number(data, key);
    }
    return total > 0;
}

static double best_value(const Dataset *data, const DatasetGroup *g, int feature)
{
    for (int i = 0; i < g->n; i++)
        if (data->time_ns[g->row[i]] == g->best_ns)
            return matrix_row(&data->x, g->row[i])[feature];
    return NAN;
}

void report_knn_shape(const Dataset *data, int size, int group, double *share)
{
    for (int f = 0; f < data->d; f++) {
        double low = INFINITY, high = -INFINITY, sum = 0;
        int n = 0;
        for (int i = 0; i < data->n; i++) {
            double v = matrix_row(&data->x, i)[f];
            if (data->size[i] != size)
                continue;
            low = fmin(low, v);
            high = fmax(high, v);
            sum += v;
            n++;
        }
        double v = group < 0 ? sum / n : best_value(data, &data->group_at[group], f);
        share[f] = high > low ? (v - low) / (high - low) : 0;
    }
}

static void put_stages(Table *t, const char *name, const double s[KNN_STAGES])
{
    double total = s[0] + s[1] + s[2];
    table_put(t, "%s", name);
    for (int i = 0; i < KNN_STAGES; i++) {
        table_number(t, s[i], 1);
        table_number(t, 100 * s[i] / total, 1);
    }
}

static void print_figure2(Buf *out, const Eval *e, Arena *arena)
{
    static const char *const names[] = {"program", "generation s", "%", "compilation s",
                                        "%",       "execution s",  "%"};
    const Dataset *data = e->data;
    Table t = table_new(arena, COUNTOF(names));
    double s[KNN_STAGES];
    int rows = 0;
    table_row(&t, names, COUNTOF(names));
    for (int p = 0; p <= data->nprogram; p++) {
        const char *program = p < data->nprogram ? data->program_name[p] : NULL;
        if (report_knn_stages(data, program, s)) {
            put_stages(&t, program ? program : "all", s);
            rows++;
        }
    }
    buf_puts(out, "Figure 2: where the time of exploring goes\n");
    if (rows)
        table_print(out, &t);
    else
        buf_puts(out, "  the data do not say\n");
}

static void print_figure3(Buf *out, const Eval *e, Arena *arena)
{
    const Dataset *data = e->data;
    int size = report_knn_size(data), columns = 2;
    for (int i = 0; i < e->ngroup; i++)
        columns += data->group_at[e->group[i].group].size == size;
    double *share = NEW_ARRAY(arena, double, (int64_t)columns * data->d);
    Table t = table_new(arena, columns);
    table_put(&t, "feature");
    int column = 0;
    for (int i = 0; i < e->ngroup; i++) {
        const DatasetGroup *g = &data->group_at[e->group[i].group];
        if (g->size != size)
            continue;
        table_put(&t, "%s", data->program_name[g->program]);
        report_knn_shape(data, size, e->group[i].group, share + column++ * data->d);
    }
    table_put(&t, "mean of all");
    report_knn_shape(data, size, -1, share + column * data->d);
    for (int f = 0; f < data->d; f++) {
        table_put(&t, "%s", data->feature[f]);
        for (int c = 0; c <= column; c++)
            table_number(&t, share[c * data->d + f], 2);
    }
    buf_printf(out,
               "\nFigure 3: features of the best points at size %s, from the least (0) to "
               "the most (1) of all points\n",
               data->size_name[size]);
    table_print(out, &t);
}

static void print_figure4(Buf *out, const Eval *e, Arena *arena)
{
    Table t = table_new(arena, 2);
    table_put(&t, "feature");
    table_put(&t, "redundancy");
    for (int f = 0; f < e->data->d; f++) {
        table_put(&t, "%s", e->data->feature[e->feature[f].feature]);
        table_number(&t, e->feature[f].redundancy, 4);
    }
    buf_puts(out, "\nFigure 4: redundancy between each feature and throughput "
                  "(0 unrelated, 0.5 one tells the other)\n");
    table_print(out, &t);
}

static const EvalGroup *group_of(const Eval *e, int program, int size)
{
    for (int i = 0; i < e->ngroup; i++) {
        const DatasetGroup *g = &e->data->group_at[e->group[i].group];
        if (g->program == program && g->size == size)
            return &e->group[i];
    }
    return NULL;
}

static void print_correlation(Buf *out, const Eval *e, Arena *arena)
{
    const Dataset *data = e->data;
    Table t = table_new(arena, 1 + data->nsize);
    table_put(&t, "program");
    table_row(&t, data->size_name, data->nsize);
    for (int p = 0; p < data->nprogram; p++) {
        table_put(&t, "%s", data->program_name[p]);
        for (int s = 0; s < data->nsize; s++) {
            const EvalGroup *g = group_of(e, p, s);
            table_number(&t, g ? g->pearson : NAN, 3);
        }
    }
    buf_puts(out, "\nSection 7.3: correlation of predicted and measured throughput, the "
                  "program left out of training\n");
    table_print(out, &t);
}

static void print_figure5(Buf *out, const Eval *e, Arena *arena)
{
    static const int runs[] = {1, 2, 5, 10, 30, 100, 300};
    const Dataset *data = e->data;
    int size = report_knn_size(data);
    Table t = table_new(arena, 1 + COUNTOF(runs));
    table_put(&t, "program, order");
    for (int i = 0; i < COUNTOF(runs); i++)
        table_put(&t, "%d", runs[i]);
    for (int p = 0; p < data->nprogram; p++) {
        const EvalGroup *g = group_of(e, p, size);
        for (int random = 0; g && random < 2; random++) {
            table_put(&t, "%s, %s", data->program_name[p], random ? "random" : "model");
            for (int i = 0; i < COUNTOF(runs); i++)
                table_number(&t,
                             runs[i] > g->curve
                                 ? NAN
                                 : (random ? g->random_curve : g->model_curve)[runs[i] - 1],
                             3);
        }
    }
    buf_printf(out, "\nFigure 5: best throughput after so many runs, size %s\n",
               data->size_name[size]);
    table_print(out, &t);
}

static void print_figure6(Buf *out, const Eval *e, Arena *arena)
{
    Table t = table_new(arena, 3);
    table_put(&t, "program");
    table_put(&t, "fewer runs");
    table_put(&t, "less time");
    for (int p = 0; p < e->data->nprogram; p++) {
        table_put(&t, "%s", e->data->program_name[p]);
        table_number(&t, e->fewer_runs[p], 1);
        table_number(&t, e->less_time[p], 1);
    }
    table_put(&t, "geometric mean");
    table_number(&t, e->summary.fewer_runs, 1);
    table_number(&t, e->summary.less_time, 1);
    buf_printf(out,
               "\nFigure 6: to reach %.0f %% of the best, times fewer runs than random and "
               "times less kernel time\n",
               100 * e->goal);
    table_print(out, &t);
}

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
    buf_printf(out, "\nFigure 7: runs to reach %.0f %% of the best\n", 100 * e->goal);
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
    static void (*const part[])(Buf *, const Eval *, Arena *) = {
        print_figure2, print_figure3, print_figure4, print_correlation, print_figure5,
        print_figure6, print_figure7, print_reach,   print_sizes};
    Arena *arena = arena_new();
    print_origin(out, e);
    for (int i = 0; i < COUNTOF(part); i++)
        part[i](out, e, arena);
    print_summary(out, e);
    arena_free(arena);
}
