// SPDX-License-Identifier: Apache-2.0
//
// Features of kernels against an execution that counts: every work-item of every launch is
// run through the kernel IR, with no data; a condition on data counts half on both sides.
// And cache lines by symbolic differences against lines by evaluation.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "counting.h"
#include "examples.h"

#include "cost/walk.h"
#include "kir/passes.h"
#include "lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What is counted ---------------------------------------------------------------------

typedef struct {
    double loads[3], stores[3], barriers, ifs, bodies, threads;
    Table *lines; // lines of global memory met, or NULL
} Counts;

// Every line of 32 scalars that an access of one buffer touches.
static void note_lines(Run *r, const Buffer *buffer, const Arith *index, const Type *type)
{
    const Counts *counts = r->user;
    int64_t at;
    if (!counts->lines || buffer->space != MEM_GLOBAL || r->weight == 0 ||
        !arith_eval(index, run_lookup, r, &at))
        return;
    for (int i = 0; i < (type->kind == T_VECTOR ? type->width : 1); i++) {
        Key key = {buffer, (const void *)(uintptr_t)((at + i) / 32), NULL};
        if (table_find(counts->lines, key) < 0)
            table_push(counts->lines, key, 0);
    }
}

static void count_value(Run *r, const KExpr *e)
{
    Counts *counts = r->user;
    if (e->kind == K_LOAD) {
        counts->loads[e->buffer->space] += r->weight;
        note_lines(r, e->buffer, e->arith, e->type);
    }
}

static void count_stm(Run *r, const Stm *stm)
{
    Counts *counts = r->user;
    if (stm->kind == ST_STORE) {
        counts->stores[stm->buffer->space] += r->weight;
        note_lines(r, stm->buffer, stm->index, stm->value->type);
    } else if (stm->kind == ST_BARRIER) {
        counts->barriers += r->weight;
    } else if (stm->kind == ST_IF ||
               (stm->kind == ST_FOR && stm->loop != LOOP_SEQ && stm->form == FORM_GUARD)) {
        counts->ifs += r->weight;
    }
}

static void count_body(Run *r, const Stm *loop)
{
    Counts *counts = r->user;
    if (loop->loop == LOOP_SEQ || loop->form == FORM_LOOP)
        counts->bodies += r->weight;
}

static Run *run_new(const Kernel *kernel, Counts *counts)
{
    Run *r = calloc(1, sizeof *r);
    *r = (Run){.kernel = kernel,
               .most_steps = INT64_MAX,
               .user = counts,
               .on_value = count_value,
               .on_stm = count_stm,
               .on_body = count_body};
    return r;
}

static void count_kernel(const Kernel *kernel, Counts *counts)
{
    const int64_t *local = kernel->local;
    Run *r = run_new(kernel, counts);
    counts->threads += (double)(run_kernel(r) * local[0] * local[1] * local[2]);
    free(r);
}

// Different lines of the group in the middle of the grid.
static int group_lines(const Kernel *kernel, Arena *arena)
{
    Table lines;
    Counts counts = {.lines = &lines};
    Run *r = run_new(kernel, &counts);
    table_init(&lines, arena);
    for (int d = 0; d < 3; d++)
        r->group[d] = run_arith(r, kernel->global[d]) / kernel->local[d] / 2;
    run_group(r);
    free(r);
    return lines.entry.len;
}

// Comparison --------------------------------------------------------------------------

typedef struct {
    const char *path;
    int wrong, points, compared, stuck, accesses;
    ArithCtx *ctx;
} Report;

static void compare(Report *report, const char *what, double got, double want,
                    const char *point)
{
    if (fabs(got - want) <= 1e-9 * fmax(1, fabs(want)))
        return;
    print_message("%s, %s: %s is %.9g, counted %.9g\n", report->path, point, what, got,
                  want);
    report->wrong++;
}

static void compare_unit(Report *report, const Unit *unit, const double *got,
                         const char *point)
{
    Counts c = {0};
    for (int i = 0; i < unit->launches.len; i++)
        count_kernel(unit->launches.at[i].kernel, &c);
    compare(report, "global_loads", got[FEATURE_GLOBAL_LOADS],
            c.loads[MEM_GLOBAL] / c.threads, point);
    compare(report, "global_stores", got[FEATURE_GLOBAL_STORES],
            c.stores[MEM_GLOBAL] / c.threads, point);
    compare(report, "local_loads", got[FEATURE_LOCAL_LOADS], c.loads[MEM_LOCAL] / c.threads,
            point);
    compare(report, "local_stores", got[FEATURE_LOCAL_STORES],
            c.stores[MEM_LOCAL] / c.threads, point);
    compare(report, "barriers", got[FEATURE_BARRIERS], c.barriers / c.threads, point);
    compare(report, "ifs", got[FEATURE_IFS], c.ifs / c.threads, point);
    compare(report, "loop_bodies", got[FEATURE_LOOP_BODIES], c.bodies / c.threads, point);
}

static void on_access(CostWalk *walk, void *user, const CountedAccess *a)
{
    Report *report = user;
    if (a->buffer->space != MEM_GLOBAL || a->border)
        return;
    WarpLines lines = warp_lines(&walk->scope, report->ctx, a->index, a->width, 32);
    report->accesses++;
    if (!lines.by_difference || !lines.by_evaluation) {
        report->stuck++;
        return;
    }
    report->compared++;
    if (lines.by_difference == lines.by_evaluation)
        return;
    Buf text = buf_new();
    arith_print(&text, a->index);
    print_message("%s: %s: %d lines by difference, %d by evaluation\n", report->path,
                  text.text, lines.by_difference, lines.by_evaluation);
    buf_release(&text);
    report->wrong++;
}

static const int64_t odd[] = {37, 29, 23, 3};

static Problem *load(const char *path, int64_t times, Binding *binding, Diags *diags)
{
    Problem *problem = problem_load(path, diags);
    int n = 0;
    for (; problem && n < problem->program->sizes.len; n++) {
        const char *name = problem->program->sizes.at[n].name;
        binding[n] = (Binding){name, strcmp(name, "T") == 0 ? 3 : times ? times : odd[n]};
    }
    return problem && problem_bind(problem, binding, n, diags) ? problem : NULL;
}

// A point of an example.
typedef struct {
    Report *report;
    const Problem *problem;
    FeatureSetting setting;
    Expr *body;
    KernelOptions options;
    const char *point; // as text
    Arena *arena;
    Diags *diags;
} Case;
typedef void TryCase(const Case *c);

static Unit *lower_case(const Case *c)
{
    Unit *unit = lower(c->problem->bound, c->body, &c->options, c->arena, c->diags);
    assert_non_null(unit);
    return unit;
}

static void paper_features(const Case *c, double paper[FEATURES])
{
    const Unit *unit =
        lower_as_written(c->problem->bound, c->body, &c->options, c->arena, c->diags);
    assert_non_null(unit);
    assert_true(features_unit(unit, &c->setting, paper));
}

static void try_counts(const Case *c)
{
    const Unit *unit = lower_case(c);
    double got[FEATURES], paper[FEATURES];
    assert_true(features_unit(unit, &c->setting, got));
    compare_unit(c->report, unit, got, c->point);
    paper_features(c, paper);
    for (int i = 0; i < FEATURE_LOCAL_MEMORY; i++)
        compare(c->report, feature_info[i].name, paper[i], got[i], c->point);
    // Arrays that live one after another share it.
    compare(c->report, "local_memory_bytes",
            fmax(paper[FEATURE_LOCAL_MEMORY], got[FEATURE_LOCAL_MEMORY]),
            paper[FEATURE_LOCAL_MEMORY], c->point);
}

// Where sizes divide, nothing is a vector and no tile is loaded ahead (the last is loaded
// twice then), passes only ever remove accesses.
static void try_both(const Case *c)
{
    static const int removed[] = {FEATURE_LOCAL_STORES, FEATURE_GLOBAL_LOADS,
                                  FEATURE_LOCAL_LOADS};
    Case scalar = *c;
    scalar.options.vector = 1;
    scalar.options.ahead = false;
    double kernels[FEATURES], paper[FEATURES], vectors[FEATURES];
    assert_true(features_unit(lower_case(&scalar), &c->setting, kernels));
    assert_true(features_unit(lower_case(c), &c->setting, vectors));
    paper_features(&scalar, paper);
    if (paper[FEATURE_IFS] == 0)
        compare(c->report, "global_stores", paper[FEATURE_GLOBAL_STORES],
                kernels[FEATURE_GLOBAL_STORES], c->point);
    // An item that stores neighbours as a vector and loads them again waits for nobody.
    compare(c->report, "barriers", paper[FEATURE_BARRIERS],
            fmin(kernels[FEATURE_BARRIERS], vectors[FEATURE_BARRIERS]), c->point);
    for (int i = 0; i < COUNTOF(removed); i++)
        compare(c->report, feature_info[removed[i]].name, paper[removed[i]],
                fmax(paper[removed[i]], kernels[removed[i]]), c->point);
}

// Work-items where the device has only three groups along y and z take several elements
// each, and store what all would.
static void try_few_groups(const Case *c)
{
    enum { FEW = 3 };
    Case few = *c;
    few.options.groups = FEW;
    const Unit *unit = lower_case(c), *less = lower_case(&few);
    Counts all = {0}, got = {0};
    for (int i = 0; i < unit->launches.len; i++)
        count_kernel(unit->launches.at[i].kernel, &all);
    for (int i = 0; i < less->launches.len; i++) {
        const Kernel *kernel = less->launches.at[i].kernel;
        count_kernel(kernel, &got);
        for (int d = 1; d < 3 && !c->options.global[d]; d++) {
            int64_t items;
            assert_true(arith_is_const(kernel->global[d], &items));
            c->report->wrong += items / kernel->local[d] > FEW;
        }
    }
    compare(c->report, "global stores", got.stores[MEM_GLOBAL], all.stores[MEM_GLOBAL],
            c->point);
    c->report->compared += got.threads < all.threads;
}

static void try_lines(const Case *c)
{
    const Unit *unit = lower_case(c);
    c->report->ctx = c->problem->ir->arith;
    for (int i = 0; i < unit->kernels.len; i++) {
        CostWalk walk;
        assert_true(walk_kernel(&walk, c->arena, unit->kernels.at[i], &c->setting,
                                on_access, c->report));
    }
}

// Whole runs of scalars are counted, so a little more than is touched; loops of many
// strided iterations are extrapolated, which is too much where they share lines: one
// candidate in a hundred may be further off.
static void try_group(const Case *c)
{
    const Unit *unit = lower_case(c);
    double got[FEATURES];
    assert_true(features_unit(unit, &c->setting, got));
    if (unit->kernels.len != 1)
        return;
    int lines = group_lines(unit->kernels.at[0], c->arena);
    double ratio = got[FEATURE_LINES_GROUP] / lines;
    c->report->compared++;
    if (ratio < 0.9 || ratio > 1.15) {
        print_message("%s, %s: %g lines a group, counted %d\n", c->report->path, c->point,
                      got[FEATURE_LINES_GROUP], lines);
        c->report->wrong++;
    }
}

// What is tried of each example.
typedef struct {
    Report *report;
    int64_t size; // 0: odd ones
    int points;
    TryCase *try;
} Plan;

static void try_example(const char *path, void *user)
{
    const Plan *plan = user;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Binding binding[16];
    plan->report->path = path;
    Problem *problem = load(path, plan->size, binding, &diags);
    assert_non_null(problem);
    DeviceModel model;
    Derivation *derivation = derive_for_h200(problem, &model, &diags);
    Rng rng = rng_new(5);
    for (int i = 0; i < plan->points; i++) {
        Point point;
        Buf text;
        take_point(derivation, i, &rng, &point);
        text = buf_new();
        point_print(&text, derive_space(derivation), &point);
        plan->try(&(Case){.report = plan->report,
                          .problem = problem,
                          .setting = {&model, binding, problem->nbinding},
                          .body = derive_body(derivation, &point, &diags),
                          .options = derive_options(derivation, &point),
                          .point = buf_keep(&text, arena),
                          .arena = arena,
                          .diags = &diags});
        plan->report->points++;
    }
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
}

static Report all_examples(int64_t size, int points, TryCase *try)
{
    Report total = {0};
    each_example(try_example, &(Plan){&total, size, points, try});
    return total;
}

static void counts_are_exact(void **state)
{
    (void)state;
    Report total = all_examples(0, 4, try_counts);
    assert_true(total.points > 20);
    assert_int_equal(total.wrong, 0);
}

static void lines_of_groups(void **state)
{
    (void)state;
    Report total = all_examples(4096, 5, try_group);
    assert_true(total.wrong * 100 <= total.compared);
    assert_true(total.compared > 100);
}

static void passes_remove_accesses(void **state)
{
    (void)state;
    Report total = all_examples(512, 4, try_both);
    assert_int_equal(total.wrong, 0);
}

static void groups_may_be_few(void **state)
{
    (void)state;
    Report total = all_examples(0, 3, try_few_groups);
    assert_int_equal(total.wrong, 0);
    assert_true(total.compared > 10);
}

static void lines_agree(void **state)
{
    (void)state;
    Report total = all_examples(512, 3, try_lines);
    print_message("%d accesses, %d compared, %d stuck\n", total.accesses, total.compared,
                  total.stuck);
    assert_int_equal(total.wrong, 0);
    assert_true(total.compared > 9 * total.stuck);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_exact), cmocka_unit_test(passes_remove_accesses),
        cmocka_unit_test(groups_may_be_few), cmocka_unit_test(lines_of_groups),
        cmocka_unit_test(lines_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
