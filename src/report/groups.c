// SPDX-License-Identifier: Apache-2.0
//
// Section 8 of paper 001 as text, and all of it together (groups.h). Speedups are over the
// best of Rand, and are averaged by the geometric mean, as there. Whatever the record lacks
// is left out, and how many stencils a number is of stands beside it.
#include "report/groups_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void mean_add(Mean *m, double x)
{
    if (!isfinite(x) || x <= 0)
        return;
    m->least = m->n ? fmin(m->least, x) : x;
    m->most = m->n ? fmax(m->most, x) : x;
    m->log_sum += log(x);
    m->sum += x;
    m->n++;
}

static double mean_geo(const Mean *m)
{
    return m->n ? exp(m->log_sum / m->n) : NAN;
}

double mean_plain(const Mean *m)
{
    return m->n ? m->sum / m->n : NAN;
}

const StudyStencil *groups_next(const Study *study, const StudyStencil *s)
{
    for (s = s ? s + 1 : study->stencil; s < study->stencil + study->n; s++)
        if (study_main(study, s))
            return s;
    return NULL;
}

Table groups_table(const Report *r, const char *const *head, int n, const char *title)
{
    buf_printf(r->out, "\n%s\n", title);
    Table t = table_new(r->arena, n);
    table_row(&t, head, n);
    return t;
}

// Section 8.3.1 and 8.3.2 ---------------------------------------------------------------

enum { PASSES_MOST = 3 };

static void print_passes(const Report *r)
{
    static const char *const head[] = {"passes", "stencils", "speedup", "points"};
    Table t = groups_table(r, head, COUNTOF(head),
                           "Section 8.3.1: by dimension, so many passes, the best loading");
    for (int passes = 1; passes <= PASSES_MOST; passes++) {
        Mean speedup = {0}, configs = {0};
        for (const StudyStencil *s = groups_next(r->study, NULL); s;
             s = groups_next(r->study, s)) {
            Found f = study_passes(r->study, s, passes);
            if (f.done) {
                mean_add(&speedup, s->random.ns / f.ns);
                mean_add(&configs, f.configs);
            }
        }
        table_put(&t, "%d", passes);
        table_put(&t, "%d", speedup.n);
        table_number(&t, mean_geo(&speedup), 3);
        table_number(&t, mean_plain(&configs), 0);
    }
    table_print(r->out, &t);
}

// A strategy of Table 3.
typedef enum { ROW_RANDOM, ROW_EXPERT, ROW_PREDICTED, ROW_ORACLE } RowKind;
typedef struct {
    RowKind kind;
    Studied studied;
} Strategy;

static Found found_by(const StudyStencil *s, Strategy of)
{
    switch (of.kind) {
    case ROW_RANDOM: return s->random;
    case ROW_EXPERT: return s->found[STEPS_EXPERT][LOAD_ANY];
    case ROW_PREDICTED: return study_predicted(s, of.studied);
    case ROW_ORACLE: return study_oracle(s, of.studied);
    }
    BUG("strategy of kind %d", of.kind);
}

static const Strategy strategies[] = {
    {ROW_RANDOM, 0},
    {ROW_EXPERT, 0},
    {ROW_PREDICTED, STEPS_DIMENSION},
    {ROW_PREDICTED, STEPS_OPTIMISATION},
    {ROW_PREDICTED, STEPS_HYBRID},
    {ROW_PREDICTED, STEPS_RESTRICTED},
    {ROW_ORACLE, STEPS_DIMENSION},
    {ROW_ORACLE, STEPS_OPTIMISATION},
    {ROW_ORACLE, STEPS_HYBRID},
    {ROW_ORACLE, STEPS_RESTRICTED},
};

static void put_strategy(Table *t, Strategy of)
{
    if (of.kind == ROW_RANDOM || of.kind == ROW_EXPERT)
        table_put(t, of.kind == ROW_RANDOM ? "Rand" : "ExpS");
    else
        table_put(t, "%s, %s", studied_text[of.studied],
                  of.kind == ROW_ORACLE ? "oracle" : "predicted");
}

// Over stencils where the strategy could be followed; Rand's cost over the same ones. Lists
// only: a set is what `take` says.
typedef bool Take(const Study *study, const StudyStencil *s, const void *user);

typedef struct {
    Mean speedup;
    int n, best, failed;
    double configs, kernels, build_s, run_s, cost_s, random_s;
} Summary;

static bool is_best(const StudyStencil *s, double ns)
{
    for (int i = 0; i < COUNTOF(strategies); i++) {
        Found f = found_by(s, strategies[i]);
        if (f.done && f.ns < ns)
            return false;
    }
    return true;
}

static Summary summarise(const Study *study, Strategy of, Take *take, const void *user)
{
    Summary sum = {.n = 0};
    for (int i = 0; i < study->n; i++) {
        const StudyStencil *s = &study->stencil[i];
        Found f = found_by(s, of);
        if (!take(study, s, user) || !f.done)
            continue;
        sum.n++;
        sum.failed += !isfinite(f.ns);
        mean_add(&sum.speedup, s->random.ns / f.ns);
        sum.best += isfinite(f.ns) && is_best(s, f.ns);
        sum.configs += f.configs;
        sum.kernels += f.kernels;
        sum.build_s += f.build_s;
        sum.run_s += f.run_s;
        sum.cost_s += f.cost_s;
        sum.random_s += s->random.cost_s;
    }
    return sum;
}

// Of a stencil on average: compiling, running, both; less time than Rand's, in per cent.
static void put_costs(Table *t, const Summary *sum)
{
    table_number(t, sum->build_s / sum->n, 2);
    table_number(t, sum->run_s / sum->n, 2);
    table_number(t, sum->cost_s / sum->n, 2);
    table_number(t, 100 * (1 - sum->cost_s / sum->random_s), 0);
}

static bool take_main(const Study *study, const StudyStencil *s, const void *user)
{
    (void)user;
    return study_main(study, s);
}

static bool take_variable(const Study *study, const StudyStencil *s, const void *user)
{
    (void)user;
    return study_main(study, s) && study_has(s, "variable");
}

static bool any_variable(const Study *study)
{
    bool found = false;
    for (int i = 0; i < study->n; i++)
        found |= take_variable(study, &study->stencil[i], NULL);
    return found;
}

static void print_strategies(const Report *r, Take *take, const void *user,
                             const char *title)
{
    static const char *const head[] = {"strategy", "stencils", "speedup",
                                       "best",     "points",   "build s",
                                       "run s",    "all s",    "less time than Rand, %"};
    Table t = groups_table(r, head, COUNTOF(head), title);
    for (int i = 0; i < COUNTOF(strategies); i++) {
        Summary sum = summarise(r->study, strategies[i], take, user);
        if (!sum.n)
            continue;
        put_strategy(&t, strategies[i]);
        table_put(&t, "%d", sum.n);
        table_number(&t, mean_geo(&sum.speedup), 3);
        table_put(&t, "%d", sum.best);
        table_number(&t, sum.configs / sum.n, 0);
        put_costs(&t, &sum);
    }
    table_print(r->out, &t);
}

static void print_table4(const Report *r)
{
    static const char *const head[] = {"heuristic", "loading", "stencils", "speedup",
                                       "best"};
    Table t = groups_table(
        r, head, COUNTOF(head),
        "Tables 4 and 5: each loading alone; best: it is the best of the four");
    for (int h = 0; h < STUDIED; h++)
        for (int l = 0; l < LOADS; l++) {
            Mean speedup = {0};
            int best = 0, n = 0;
            for (const StudyStencil *s = groups_next(r->study, NULL); s;
                 s = groups_next(r->study, s)) {
                const Found *f = &s->found[h][l];
                n += f->done;
                if (f->done)
                    mean_add(&speedup, s->random.ns / f->ns);
                best += f->done && s->oracle[h] == l;
            }
            if (!n)
                continue;
            table_put(&t, "%s", studied_text[h]);
            table_put(&t, "%s", loading_name[l]);
            table_put(&t, "%d", n);
            table_number(&t, mean_geo(&speedup), 3);
            table_put(&t, "%d", best);
        }
    table_print(r->out, &t);
}

typedef struct {
    int n, right;
    Mean penalty; // of the predicted over the oracle
} Accuracy;

static Accuracy accuracy_of(const Study *study, Studied h, Take *take, const void *user)
{
    Accuracy a = {0};
    for (int i = 0; i < study->n; i++) {
        const StudyStencil *s = &study->stencil[i];
        if (!take(study, s, user) || s->oracle[h] < 0 || s->predicted[h] < 0 ||
            !study_is_stencil(s))
            continue;
        Found f = study_predicted(s, h);
        a.n++;
        a.right += s->oracle[h] == s->predicted[h];
        a.penalty.sum += f.done ? s->found[h][s->oracle[h]].ns / f.ns : 0;
        a.penalty.n++;
    }
    return a;
}

// The loading that is best of most others: what a forest has to beat.
static int most_frequent(const Study *study, Studied h, const StudyStencil *s)
{
    int count[LOADS] = {0}, best = 0;
    for (const StudyStencil *k = groups_next(study, NULL); k; k = groups_next(study, k))
        if (k != s && study_is_stencil(k) && k->oracle[h] >= 0)
            count[k->oracle[h]]++;
    for (int l = 1; l < LOADS; l++)
        best = count[l] > count[best] ? l : best;
    return best;
}

static Accuracy accuracy_of_most(const Study *study, Studied h)
{
    Accuracy a = {0};
    for (const StudyStencil *s = groups_next(study, NULL); s; s = groups_next(study, s)) {
        if (!study_is_stencil(s) || s->oracle[h] < 0)
            continue;
        const Found *f = &s->found[h][most_frequent(study, h, s)];
        a.n++;
        a.right += f == &s->found[h][s->oracle[h]];
        a.penalty.n++;
        a.penalty.sum += f->done ? s->found[h][s->oracle[h]].ns / f->ns : 0;
    }
    return a;
}

static void put_accuracy(Table *t, const Accuracy *a)
{
    table_put(t, "%d", a->n);
    table_number(t, (double)a->right / a->n, 2);
    table_number(t, mean_plain(&a->penalty), 3);
}

static void print_table6(const Report *r)
{
    static const char *const head[] = {"heuristic",
                                       "stencils",
                                       "absolute",
                                       "penalty-weighted",
                                       "always the commonest",
                                       "penalty-weighted"};
    Table t = groups_table(r, head, COUNTOF(head),
                           "Table 6: accuracy of the forest, the stencil itself left out");
    for (int h = 0; h < STUDIED; h++) {
        Accuracy a = accuracy_of(r->study, (Studied)h, take_main, NULL);
        if (!a.n)
            continue;
        Accuracy most = accuracy_of_most(r->study, (Studied)h);
        table_put(&t, "%s", studied_text[h]);
        put_accuracy(&t, &a);
        table_number(&t, (double)most.right / most.n, 2);
        table_number(&t, mean_plain(&most.penalty), 3);
    }
    table_print(r->out, &t);
}

static void print_figure8(const Report *r)
{
    enum { FIRST = 7, LAST = 20 }; // tenths
    int bin[LAST + 1] = {0}, below = 0;
    Mean speedup = {0};
    for (const StudyStencil *s = groups_next(r->study, NULL); s;
         s = groups_next(r->study, s)) {
        Found f = study_predicted(s, STEPS_HYBRID);
        if (!f.done)
            continue;
        double x = s->random.ns / f.ns;
        bin[(int)fmax(FIRST, fmin(LAST, floor(x * 10)))]++;
        below += x < 1;
        mean_add(&speedup, x);
    }
    buf_puts(r->out, "\nFigure 8: speedup of hybrid with the predicted loading over Rand, "
                     "from the number given\n ");
    for (int i = FIRST; i <= LAST; i++)
        if (bin[i])
            buf_printf(r->out, "  %.1f: %d", i / 10.0, bin[i]);
    buf_printf(r->out, "\n  below 1: %d of %d; least %.2f, most %.2f\n", below, speedup.n,
               speedup.least, speedup.most);
}

static void print_vectors(const Report *r)
{
    static const char *const head[] = {"best with", "stencils", "local", "vector"};
    Table t =
        groups_table(r, head, COUNTOF(head),
                     "Section 8.3.2: hybrid with local memory and with vectors, on those "
                     "where one of them is best");
    static const Loading of[] = {LOAD_LOCAL, LOAD_VECTOR};
    for (int i = 0; i < 2; i++) {
        Mean got[2] = {0};
        for (const StudyStencil *s = groups_next(r->study, NULL); s;
             s = groups_next(r->study, s))
            for (int k = 0; k < 2 && s->oracle[STEPS_HYBRID] == (int)of[i]; k++)
                if (s->found[STEPS_HYBRID][of[k]].done)
                    mean_add(&got[k], s->random.ns / s->found[STEPS_HYBRID][of[k]].ns);
        table_put(&t, "%s", loading_name[of[i]]);
        table_put(&t, "%d", got[i].n);
        table_number(&t, mean_geo(&got[0]), 2);
        table_number(&t, mean_geo(&got[1]), 2);
    }
    table_print(r->out, &t);
}

static void print_throughput(const Report *r)
{
    Mean rate = {0};
    const StudyStencil *least = NULL, *most = NULL;
    for (const StudyStencil *s = groups_next(r->study, NULL); s;
         s = groups_next(r->study, s)) {
        Found f = study_predicted(s, STEPS_HYBRID);
        double gflops = f.done ? study_gflops(s, f.ns) : NAN;
        least = rate.n == 0 || gflops < rate.least ? s : least;
        most = rate.n == 0 || gflops > rate.most ? s : most;
        mean_add(&rate, gflops);
    }
    if (rate.n)
        buf_printf(r->out,
                   "\nSection 8.3.3: hybrid reaches %.0f GFLOPS (%s) to %.0f (%s), %.0f on "
                   "average of %d\n",
                   rate.least, least->kernel, rate.most, most->kernel, mean_plain(&rate),
                   rate.n);
}

// What the paper expected of it (section 4.7: 41 % on a line along y).
static void print_merged(const Report *r)
{
    static const char *const head[] = {"stencil", "points", "loading", "merging gains",
                                       "removal gains"};
    Table t = groups_table(
        r, head, COUNTOF(head),
        "Section 4.7: what merging in y and z gains at the best such point, and what "
        "removing equal loads gains there");
    Mean gain = {0}, removal = {0};
    for (const StudyStencil *s = groups_next(r->study, NULL); s;
         s = groups_next(r->study, s)) {
        int number = -1;
        double x = study_merged(s, &number);
        if (isnan(x))
            continue;
        Point point;
        space_point(s->record->space, (uint64_t)number, &point);
        mean_add(&gain, x);
        mean_add(&removal, study_removal(s, number));
        table_put(&t, "%s", s->kernel);
        table_number(&t, s->points, 0);
        table_put(&t, "%s", loading_name[study_loading(s->record->space, &point)]);
        table_number(&t, x, 2);
        table_number(&t, study_removal(s, number), 2);
    }
    table_print(r->out, &t);
    buf_printf(r->out, "  mean %.2f", mean_geo(&gain));
    if (removal.n)
        buf_printf(r->out, "; removal, of %d: %.2f", removal.n, mean_geo(&removal));
    buf_putc(r->out, '\n');
}

// The last point is run with the shape fixed, which ends the heuristic.
static void print_table8(const Report *r)
{
    static const char *const head[] = {"work-group", "stencils", "speedup",
                                       "points",     "kernels",  "build s",
                                       "run s",      "all s",    "less time than Rand, %"};
    static const Strategy rows[] = {{ROW_PREDICTED, STEPS_HYBRID},
                                    {ROW_PREDICTED, STEPS_VARIABLE},
                                    {ROW_ORACLE, STEPS_HYBRID},
                                    {ROW_ORACLE, STEPS_VARIABLE}};
    Table t = groups_table(
        r, head, COUNTOF(head),
        "Table 8: hybrid with the shape of the work-group fixed in each kernel, "
        "and with kernels that take any");
    for (int i = 0; i < COUNTOF(rows); i++) {
        Summary sum = summarise(r->study, rows[i], take_variable, NULL);
        if (!sum.n)
            continue;
        table_put(&t, "%s, %s", rows[i].studied == STEPS_HYBRID ? "fixed" : "any",
                  rows[i].kind == ROW_ORACLE ? "oracle" : "predicted");
        table_put(&t, "%d", sum.n);
        table_number(&t, mean_geo(&sum.speedup), 3);
        table_number(&t, sum.configs / sum.n, 0);
        table_number(&t, sum.kernels / sum.n, 0);
        put_costs(&t, &sum);
    }
    table_print(r->out, &t);
    if (!any_variable(r->study))
        buf_puts(r->out, "  the latter were not recorded\n");
}

// Other sizes and arithmetic ------------------------------------------------------------

static bool same_size(const Study *study, const StudyStencil *s, const void *user)
{
    (void)study;
    const StudyStencil *of = user;
    return s->adds == of->adds && s->muls == of->muls &&
           !memcmp(s->size, of->size, sizeof s->size);
}

static bool is_cube(const StudyStencil *s)
{
    return s->size[0] == s->size[1] && s->size[1] == s->size[2];
}

// Is it the first of its size and arithmetic?
static bool is_first(const Study *study, const StudyStencil *s)
{
    for (const StudyStencil *k = study->stencil; k < s; k++)
        if (same_size(study, k, s))
            return false;
    return true;
}

static void print_sizes(const Report *r, bool cubes, const char *title)
{
    static const char *const head[] = {"z, y, x", "stencils", "predicted",       "oracle",
                                       "Rand",    "absolute", "penalty-weighted"};
    Table t = groups_table(r, head, COUNTOF(head), title);
    int rows = 0;
    for (int i = 0; i < r->study->n; i++) {
        const StudyStencil *s = &r->study->stencil[i];
        if (s->adds + s->muls > 2 || !is_first(r->study, s) ||
            (!study_main(r->study, s) && is_cube(s) != cubes))
            continue;
        Summary of[2];
        for (int k = 0; k < 2; k++)
            of[k] = summarise(r->study,
                              (Strategy){k ? ROW_ORACLE : ROW_PREDICTED, STEPS_HYBRID},
                              same_size, s);
        Accuracy a = accuracy_of(r->study, STEPS_HYBRID, same_size, s);
        table_put(&t, "%d x %d x %d", (int)s->size[0], (int)s->size[1], (int)s->size[2]);
        table_put(&t, "%d", MAX(of[0].n, of[1].n));
        table_number(&t, mean_geo(&of[0].speedup), 3);
        table_number(&t, mean_geo(&of[1].speedup), 3);
        table_number(&t, 1, 0);
        table_number(&t, (double)a.right / a.n, 2);
        table_number(&t, mean_plain(&a.penalty), 3);
        rows++;
    }
    table_print(r->out, &t);
    if (rows < 2)
        buf_puts(r->out, "  no others were recorded\n");
}

static void print_peak(const Report *r)
{
    Mean rate = {0};
    const StudyStencil *most = NULL;
    for (int i = 0; i < r->study->n; i++) {
        const StudyStencil *s = &r->study->stencil[i];
        Found f = study_predicted(s, STEPS_HYBRID);
        double gflops = f.done ? study_gflops(s, f.ns) : NAN;
        most = gflops > (rate.n ? rate.most : 0) ? s : most;
        mean_add(&rate, gflops);
    }
    if (rate.n)
        buf_printf(r->out, "  of all %d: %.0f GFLOPS on average, at most %.0f (%s)\n",
                   rate.n, mean_plain(&rate), rate.most, most->kernel);
}

static void print_table11(const Report *r)
{
    static const char *const head[] = {"adds",   "muls",     "stencils",
                                       "ExpS",   "oracle",   "predicted",
                                       "GFLOPS", "absolute", "penalty-weighted"};
    Table t =
        groups_table(r, head, COUNTOF(head),
                     "Table 11: arithmetic for each element read, speedups over Rand");
    for (int i = 0; i < r->study->n; i++) {
        const StudyStencil *s = &r->study->stencil[i];
        if (memcmp(s->size, r->study->size, sizeof s->size) != 0 || !is_first(r->study, s))
            continue;
        Summary expert = summarise(r->study, strategies[1], same_size, s);
        Summary oracle =
            summarise(r->study, (Strategy){ROW_ORACLE, STEPS_HYBRID}, same_size, s);
        Summary predicted =
            summarise(r->study, (Strategy){ROW_PREDICTED, STEPS_HYBRID}, same_size, s);
        Accuracy a = accuracy_of(r->study, STEPS_HYBRID, same_size, s);
        Mean rate = {0};
        for (int k = 0; k < r->study->n; k++)
            if (same_size(r->study, &r->study->stencil[k], s))
                mean_add(
                    &rate,
                    study_gflops(&r->study->stencil[k],
                                 study_predicted(&r->study->stencil[k], STEPS_HYBRID).ns));
        table_put(&t, "%d", s->adds);
        table_put(&t, "%d", s->muls);
        table_put(&t, "%d", MAX(predicted.n, oracle.n));
        table_number(&t, mean_geo(&expert.speedup), 3);
        table_number(&t, mean_geo(&oracle.speedup), 3);
        table_number(&t, mean_geo(&predicted.speedup), 3);
        table_number(&t, mean_plain(&rate), 0);
        table_number(&t, (double)a.right / a.n, 2);
        table_number(&t, mean_plain(&a.penalty), 3);
    }
    table_print(r->out, &t);
    print_peak(r);
}

static void print_table12(const Report *r)
{
    static const char *const name[] = {"lx", "ly", "lz", "bx", "cx", "cy", "cz"};
    static const char *const head[] = {"stencil", "points",  "loading",      "lx", "ly",
                                       "lz",      "bx",      "cx",           "cy", "cz",
                                       "us",      "speedup", "removal gains"};
    Table t = groups_table(r, head, COUNTOF(head),
                           "Tables 12 and 13: the best configurations that hybrid finds");
    for (const StudyStencil *s = groups_next(r->study, NULL); s;
         s = groups_next(r->study, s)) {
        Found f = study_oracle(s, STEPS_HYBRID);
        if (f.best < 0)
            continue;
        const Space *space = s->record->space;
        Point point;
        space_point(space, (uint64_t)f.best, &point);
        table_put(&t, "%s", s->kernel);
        table_number(&t, s->points, 0);
        table_put(&t, "%s", loading_name[study_loading(space, &point)]);
        for (int i = 0; i < COUNTOF(name); i++) {
            int p = space_find(space, name[i]);
            table_number(&t, p < 0 ? 1 : space_value(space, &point, p), 0);
        }
        table_number(&t, f.ns * 1e-3, 1);
        table_number(&t, s->random.ns / f.ns, 2);
        table_number(&t, study_removal(s, f.best), 2);
    }
    table_print(r->out, &t);
}

// Entry ---------------------------------------------------------------------------------

static void print_head(const Report *r)
{
    int n = 0, configs = 0;
    const Study *study = r->study;
    for (int i = 0; i < study->n; i++) {
        n += study_main(study, &study->stencil[i]);
        configs += study->stencil[i].record->n;
    }
    buf_printf(r->out,
               "%d stencils on %s, %d points; %d of them at %d x %d x %d, the main set\n",
               study->n, study->device, configs, n, (int)study->size[0],
               (int)study->size[1], (int)study->size[2]);
}

void report_groups(Buf *out, const Study *study)
{
    Report r = {out, study, arena_new()};
    print_head(&r);
    groups_spaces(&r);
    print_passes(&r);
    print_strategies(&r, take_main, NULL,
                     "Tables 3 and 7: strategies; best: no other found a faster point");
    print_table4(&r);
    print_table6(&r);
    print_figure8(&r);
    print_vectors(&r);
    print_throughput(&r);
    print_merged(&r);
    print_table8(&r);
    print_sizes(&r, true, "Table 9: hybrid on other sizes, speedups over Rand");
    print_sizes(&r, false, "Table 10: hybrid on other shapes, speedups over Rand");
    print_table11(&r);
    print_table12(&r);
    arena_free(r.arena);
}

void report_forest(Buf *out, const Study *study)
{
    static const char *const head[] = {"stencil", "points", "dims",      "density",
                                       "unique",  "best",   "predicted", "of the best"};
    static const char *const axis[] = {"none", "x", "y", "z"};
    Report r = {out, study, arena_new()};
    print_head(&r);
    Table t = groups_table(
        &r, head, COUNTOF(head),
        "The loading for hybrid: the best, and what a forest fitted to all other "
        "stencils picks");
    for (int i = 0; i < study->n; i++) {
        const StudyStencil *s = &study->stencil[i];
        if (s->oracle[STEPS_HYBRID] < 0)
            continue;
        Found f = study_predicted(s, STEPS_HYBRID);
        table_put(&t, "%s", s->file);
        table_number(&t, s->points, 0);
        table_put(&t, "%d", s->dims);
        table_number(&t, s->density, 2);
        table_put(&t, "%s", axis[s->unique]);
        table_put(&t, "%s", loading_name[s->oracle[STEPS_HYBRID]]);
        table_put(&t, "%s", loading_name[MAX(s->predicted[STEPS_HYBRID], 0)]);
        table_number(&t, f.done ? study_oracle(s, STEPS_HYBRID).ns / f.ns : 0, 3);
    }
    table_print(out, &t);
    print_table6(&r);
    arena_free(r.arena);
}
