// SPDX-License-Identifier: Apache-2.0
//
// Section 5 of paper 001 as text (groups.h): what the spaces of stencils are like, and the
// points that are still to be run to say so.
#include "report/groups_parts.h"

#include <math.h>
#include <string.h>

enum { STEPS_OF_SAMPLE = 10 };

// Those of three dimensions and radius 2, as in the paper; all, where there are few.
static bool of_figure2(const Study *study, const StudyStencil *s)
{
    int n = 0;
    for (const StudyStencil *k = groups_next(study, NULL); k; k = groups_next(study, k))
        n++;
    const char *radius = strstr(s->kernel, "_r2");
    return n <= STEPS_OF_SAMPLE || (s->dims == 3 && radius && !radius[3]);
}

static void print_figure2(const Report *r)
{
    const StudyStencil *one = groups_next(r->study, NULL);
    Table t = table_new(r->arena, STEPS_OF_SAMPLE + 1);
    int most = one ? one->nrand : 0;
    buf_puts(r->out, "\nFigure 2: the best of so many random points, us (+- the standard "
                     "deviation over choices of them, %)\n");
    table_put(&t, "stencil");
    for (int i = 1; i <= STEPS_OF_SAMPLE; i++)
        table_put(&t, "%d", most * i / STEPS_OF_SAMPLE);
    for (const StudyStencil *s = one; s; s = groups_next(r->study, s)) {
        if (!of_figure2(r->study, s))
            continue;
        table_put(&t, "%s", s->kernel);
        for (int i = 1; i <= STEPS_OF_SAMPLE; i++) {
            double deviation;
            int n = MAX(s->nrand * i / STEPS_OF_SAMPLE, 1);
            double ns = study_expected(s, n, &deviation);
            table_put(&t, "%.1f +-%.1f", ns * 1e-3, 100 * deviation / ns);
        }
    }
    table_print(r->out, &t);
}

enum { BINS = 10 };

static double rand_time(const StudyStencil *s, int i)
{
    double value = s->record->at[s->rand[i]].value;
    return isnan(value) ? INFINITY : value * 1e6;
}

static void print_figure3(const Report *r)
{
    static const char *const head[] = {"speedup", "points", "%"};
    int bin[BINS] = {0}, n = 0, good = 0, slow = 0, failed = 0;
    for (const StudyStencil *s = groups_next(r->study, NULL); s;
         s = groups_next(r->study, s))
        for (int i = 0; i < s->nrand; i++, n++) {
            double speedup = s->random.ns / rand_time(s, i);
            failed += speedup == 0;
            bin[MIN((int)(speedup * BINS), BINS - 1)] += speedup > 0;
            good += speedup > 0.9;
            slow += speedup > 0 && speedup < 0.1;
        }
    Table t = groups_table(r, head, COUNTOF(head),
                           "Figure 3: speedups of random points over the best of them");
    table_put(&t, "did not run");
    table_put(&t, "%d", failed);
    table_number(&t, 100.0 * failed / n, 1);
    for (int i = 0; i < BINS; i++) {
        table_put(&t, "%.1f to %.1f", i / (double)BINS, (i + 1) / (double)BINS);
        table_put(&t, "%d", bin[i]);
        table_number(&t, 100.0 * bin[i] / n, 1);
    }
    table_print(r->out, &t);
    buf_printf(r->out,
               "  within 10 %% of the best: %.1f %%; more than 10 times slower: %.1f %%\n",
               100.0 * good / n, 100.0 * slow / n);
}

static void print_choice(const Report *r, const char *name)
{
    const StudyStencil *one = groups_next(r->study, NULL);
    const Space *space = one->record->space;
    int count[64] = {0};
    double value[64];
    int n = 0;
    for (const StudyStencil *s = one; s; s = groups_next(r->study, s)) {
        int p = space_find(s->record->space, name);
        Point point;
        space_point(s->record->space, (uint64_t)s->random.best, &point);
        double v = p < 0 ? 1 : space_value(s->record->space, &point, p);
        int k = 0;
        while (k < n && value[k] != v)
            k++;
        if (k == COUNTOF(value))
            continue;
        n = MAX(n, k + 1);
        value[k] = v;
        count[k]++;
    }
    if (space_find(space, name) < 0)
        return;
    buf_printf(r->out, "  %-8s", name);
    for (double v = 1; v <= 1024; v *= 2)
        for (int k = 0; k < n; k++)
            if (value[k] == v)
                buf_printf(r->out, "  %g: %d", v, count[k]);
    buf_putc(r->out, '\n');
}

static void print_figure4(const Report *r)
{
    static const char *const name[] = {"lx", "ly", "lz", "bx", "cx", "cy", "cz"};
    int count[LOADS] = {0};
    buf_puts(r->out,
             "\nFigure 4: how many stencils have their best random point at a value\n");
    for (int i = 0; i < COUNTOF(name); i++)
        print_choice(r, name[i]);
    for (const StudyStencil *s = groups_next(r->study, NULL); s;
         s = groups_next(r->study, s)) {
        Point point;
        space_point(s->record->space, (uint64_t)s->random.best, &point);
        count[study_loading(s->record->space, &point)]++;
    }
    buf_puts(r->out, "  loading ");
    for (int l = 0; l < LOADS; l++)
        buf_printf(r->out, "  %s: %d", loading_name[l], count[l]);
    buf_putc(r->out, '\n');
}

// A histogram of speedups, those above 1 in the last bin.
typedef struct {
    int bin[BINS + 1], failed, n;
    int unknown; // points that the record lacks
    Mean mean;
} Histogram;

static void histogram_add(Histogram *h, double speedup)
{
    h->n++;
    h->failed += speedup == 0;
    if (speedup > 0)
        h->bin[MIN((int)(speedup * BINS), BINS)]++;
    mean_add(&h->mean, speedup);
}

static void print_histogram(const Report *r, const Histogram *h)
{
    if (!h->n) {
        buf_puts(r->out, "  it was not recorded\n");
        return;
    }
    if (h->unknown)
        buf_printf(r->out, "  of %d more that point was not recorded\n", h->unknown);
    buf_printf(r->out, "  did not run: %d;", h->failed);
    for (int i = 0; i < BINS; i++)
        buf_printf(r->out, "  %.1f: %d", i / (double)BINS, h->bin[i]);
    buf_printf(r->out,
               "  above 1: %d\n  mean of those that ran: %.2f; 0 for the others: %.2f",
               h->bin[BINS], mean_plain(&h->mean), h->n ? h->mean.sum / h->n : NAN);
    buf_putc(r->out, '\n');
}

// What a point of another stencil, or of its own, does here.
static void add_lookup(Histogram *h, const StudyStencil *s, const StudyStencil *from,
                       const Point *point)
{
    double ns;
    if (study_lookup(s, from, point, &ns))
        histogram_add(h, s->random.ns / ns);
    else
        h->unknown++;
}

static void print_figures56(const Report *r)
{
    const Study *study = r->study;
    Histogram own = {0}, cross = {0};
    for (const StudyStencil *s = groups_next(study, NULL); s; s = groups_next(study, s)) {
        Point point;
        if (study_has(s, "alone")) {
            study_independent(s, &point);
            add_lookup(&own, s, s, &point);
        }
        for (const StudyStencil *k = groups_next(study, NULL); k;
             k = groups_next(study, k)) {
            space_point(k->record->space, (uint64_t)k->random.best, &point);
            if (k != s && study_has(s, "more"))
                add_lookup(&cross, s, k, &point);
        }
    }
    buf_puts(r->out,
             "\nFigure 5: speedup over the best random point when each optimisation "
             "is set to its own best value\n");
    print_histogram(r, &own);
    buf_puts(r->out, "\nFigure 6: speedup of the best random point of each stencil on all "
                     "others\n");
    print_histogram(r, &cross);
}

void groups_spaces(const Report *r)
{
    print_figure2(r);
    print_figure3(r);
    print_figure4(r);
    print_figures56(r);
}

// What is wanted ------------------------------------------------------------------------

static bool put_step(Buf *out, const StudyStencil *s, const StudyStencil *from,
                     const Point *point)
{
    const Space *space = from->record->space;
    double ns;
    if (study_lookup(s, from, point, &ns))
        return false;
    const char *before = "tune ";
    for (int p = 0; p < space_params(space); p++) {
        const SpaceParam *param = space_param(space, p);
        int choice = point->choice[p];
        buf_printf(out, "%s%s = ", before, param->name);
        if (param->label)
            buf_printf(out, "'%s'", param->label[choice]);
        else
            buf_printf(out, "%g", param->value[choice]);
        before = ", ";
    }
    buf_putc(out, '\n');
    return true;
}

bool report_wanted(Buf *out, const Study *study, const StudyStencil *s)
{
    Point point;
    study_independent(s, &point);
    bool any = study_has(s, "alone") && put_step(out, s, s, &point);
    for (const StudyStencil *k = groups_next(study, NULL); k; k = groups_next(study, k)) {
        space_point(k->record->space, (uint64_t)k->random.best, &point);
        if (k != s)
            any |= put_step(out, s, k, &point);
    }
    return any;
}
