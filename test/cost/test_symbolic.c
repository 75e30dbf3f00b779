// SPDX-License-Identifier: Apache-2.0
//
// Symbolic counts against an execution that counts: every work-item of every launch is run
// through the kernel IR at several sizes, odd ones included. Random parametric sets against
// brute force. Classes of strides of small kernels against what they must be.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "counting.h"
#include "examples.h"

#include "calibrate/predict.h"
#include "cost/counts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What is counted ---------------------------------------------------------------------

enum { STEPS_MOST = 60000 };

// By kind, and accesses by direction and width, whatever their stride.
typedef struct {
    double global[2][COUNT_WIDTHS], local, puts, arrays, op[12], barriers, groups;
    const Buffer *touched[2][32]; // by loads and stores of the launch at hand
    int ntouched[2];
} Truth;

static void touch_array(Run *r, const Buffer *buffer, bool store)
{
    Truth *t = r->user;
    for (int i = 0; i < t->ntouched[store]; i++)
        if (t->touched[store][i] == buffer)
            return;
    assert_true(t->ntouched[store] < COUNTOF(t->touched[store]));
    t->touched[store][t->ntouched[store]++] = buffer;
    t->arrays += (double)run_arith(r, buffer->count) * scalar_info[buffer->scalar].bytes;
}

static void count_access(Run *r, const Buffer *buffer, const Type *type, bool store)
{
    Truth *t = r->user;
    int bytes =
        scalar_info[buffer->scalar].bytes * (type->kind == T_VECTOR ? type->width : 1);
    if (buffer->space == MEM_LOCAL)
        *(store ? &t->puts : &t->local) += r->weight;
    else if (buffer->space == MEM_GLOBAL)
        touch_array(r, buffer, store);
    if (buffer->space == MEM_GLOBAL)
        t->global[store][bytes <= 4 ? 0 : bytes <= 8 ? 1 : 2] += r->weight;
}

static void count_op(Run *r, Op op, const Type *type, bool product)
{
    Truth *t = r->user;
    static const int column[] = {[OPK_ADD] = 0, [OPK_MUL] = 2,     [OPK_DIV] = 4,
                                 [OPK_EXP] = 8, [OPK_SPECIAL] = 8, [OPK_FREE] = -1};
    int k = op == OP_POW ? 6 : column[op_info[op].kind];
    double lanes = type->kind == T_VECTOR ? type->width : 1;
    if (k < 0 || !type_is_float(type) || op_info[op].types == TY_SELECT ||
        op_info[op].types == TY_CAST)
        return;
    t->op[k + (type->scalar == S_DOUBLE)] += lanes * r->weight;
    if (op == OP_FMA)
        t->op[type->scalar == S_DOUBLE] += lanes * r->weight;
    if (op == OP_FMA || ((op == OP_ADD || op == OP_SUB) && product))
        t->op[10 + (type->scalar == S_DOUBLE)] += lanes * r->weight;
}

static void count_expr(Run *r, const Expr *e)
{
    bool select = e->kind == E_OP && e->op == OP_SELECT;
    double weight = r->weight;
    if (e->kind == E_OP && e->type)
        count_op(r, e->op, e->type,
                 (e->narg > 0 && e->arg[0]->kind == E_OP && e->arg[0]->op == OP_MUL) ||
                     (e->narg > 1 && e->arg[1]->kind == E_OP && e->arg[1]->op == OP_MUL));
    if (e->kind == E_CALL && e->callee->body)
        count_expr(r, e->callee->body);
    for (int i = 0; i < e->narg; i++) {
        r->weight = select && i > 0 ? weight / 2 : weight;
        count_expr(r, e->arg[i]);
    }
    r->weight = weight;
}

static bool is_product(const KExpr *e, int i)
{
    return e->n > i && e->arg[i]->kind == K_OP && e->arg[i]->op == OP_MUL;
}

static void count_value(Run *r, const KExpr *e)
{
    if (e->kind == K_LOAD)
        count_access(r, e->buffer, e->type, false);
    else if (e->kind == K_CALL)
        count_expr(r, e->callee->body);
    else if (e->kind == K_OP && e->op != OP_SELECT)
        count_op(r, e->op, e->type, is_product(e, 0) || is_product(e, 1));
}

static void count_stm(Run *r, const Stm *stm)
{
    Truth *t = r->user;
    if (stm->kind == ST_STORE)
        count_access(r, stm->buffer, stm->value->type, true);
    else if (stm->kind == ST_BARRIER)
        t->barriers += r->weight;
}

// False if that takes more than STEPS_MOST statements.
static bool count_unit(const Unit *unit, const Binding *binding, int n, Truth *truth)
{
    Run *r = calloc(1, sizeof *r);
    *truth = (Truth){0};
    int64_t steps = 0;
    for (int i = 0; i < unit->launches.len && steps < STEPS_MOST; i++) {
        *r = (Run){.kernel = unit->launches.at[i].kernel,
                   .steps = steps,
                   .most_steps = STEPS_MOST,
                   .binding = binding,
                   .nbinding = n,
                   .user = truth,
                   .on_value = count_value,
                   .on_stm = count_stm};
        truth->ntouched[0] = truth->ntouched[1] = 0;
        truth->groups += (double)run_kernel(r);
        steps = r->steps;
    }
    free(r);
    return steps < STEPS_MOST;
}

// Comparison --------------------------------------------------------------------------

typedef struct {
    const char *path;
    int wrong, compared, refused;
    double slowest_s;
} Report;

// The sum of n properties; false if one is refused.
static bool sum_at(const Counts *c, const double *number, int first, int n,
                   const Binding *binding, int nbinding, double *symbolic, double *numeric)
{
    *symbolic = *numeric = 0;
    for (int p = first; p < first + n; p++) {
        Ratio value;
        if (counts_refused(c, p))
            return false;
        assert_true(counts_eval(c, p, binding, nbinding, &value));
        *symbolic += (double)value.num / (double)value.den;
        *numeric += number[p];
    }
    return true;
}

typedef struct {
    Report *report;
    const Counts *counts;
    const double *number;
    const Binding *binding;
    int nbinding;
    const char *point;
} Compare;

static void compare(Compare *c, const char *what, int first, int n, double want)
{
    double symbolic, numeric;
    if (!sum_at(c->counts, c->number, first, n, c->binding, c->nbinding, &symbolic,
                &numeric)) {
        c->report->refused++;
        return;
    }
    c->report->compared++;
    if (symbolic == want && fabs(numeric - want) <= 0.02 * fmax(1, want))
        return;
    print_message("%s, %s, first size %lld: %s: %.17g, at the sizes %.17g, counted %.17g\n",
                  c->report->path, c->point, (long long)c->binding[0].value, what, symbolic,
                  numeric, want);
    c->report->wrong++;
}

static void compare_all(Compare *c, const Truth *t)
{
    for (int w = 0; w < COUNT_WIDTHS; w++) {
        compare(c, "loads", COUNT_LOAD + w * COUNT_STRIDES, COUNT_STRIDES, t->global[0][w]);
        compare(c, "stores", COUNT_STORE + w * COUNT_STRIDES, COUNT_STRIDES,
                t->global[1][w]);
    }
    compare(c, "local loads", COUNT_LOCAL, COUNT_DEGREES, t->local);
    compare(c, "local stores", COUNT_PUT, 1, t->puts);
    compare(c, "arrays", COUNT_ARRAY, 1, t->arrays);
    for (int k = 0; k < 12; k++)
        compare(c, "operations", COUNT_ADD + k, 1, t->op[k]);
    compare(c, "barriers", COUNT_BARRIER, 1, t->barriers);
    compare(c, "groups", COUNT_GROUP, 1, t->groups);
}

static void try_point(Report *report, const Problem *problem, const Derivation *derivation,
                      const Point *point, Arena *arena, Diags *diags)
{
    static const int64_t sizes[][4] = {{19, 13, 11, 3}, {32, 16, 8, 3}, {21, 34, 9, 3}};
    Expr *body = derive_body(derivation, point, diags);
    KernelOptions options = derive_options(derivation, point);
    Unit *unit = lower(problem->bound, body, &options, arena, diags);
    Buf text = buf_new();
    point_print(&text, derive_space(derivation), point);
    if (!unit) { // an item that keeps a prefix needs to know its length
        assert_string_equal(diags->list.at[0].code, "L108");
        report->refused++;
        buf_release(&text);
        return;
    }
    Binding binding[4];
    int n = problem_sample(problem, NULL, 0, binding, COUNTOF(binding));
    FeatureSetting setting = {NULL, binding, n};
    double start = clock_s();
    Counts *counts = counts_new(unit, &setting);
    report->slowest_s = fmax(report->slowest_s, clock_s() - start);
    assert_non_null(counts);
    for (int k = 0; k < COUNTOF(sizes); k++) {
        double number[PROPERTIES];
        Truth truth;
        for (int i = 0; i < n; i++)
            binding[i].value = strcmp(binding[i].name, "T") == 0 ? 3 : sizes[k][i];
        if (!count_unit(unit, binding, n, &truth))
            continue; // too long to run
        assert_true(counts_numbers(unit, &setting, number));
        compare_all(&(Compare){report, counts, number, binding, n, text.text}, &truth);
    }
    counts_free(counts);
    buf_release(&text);
}

static void try_example(const char *path, void *user)
{
    Report *report = user;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    report->path = path;
    Problem *problem = problem_load(path, &diags);
    Binding rounds = {"T", 3};
    bool iterates = false;
    for (int i = 0; i < problem->program->sizes.len; i++)
        iterates |= strcmp(problem->program->sizes.at[i].name, "T") == 0;
    assert_true(problem_open(problem, &rounds, iterates, &diags));
    DeviceModel model;
    Derivation *derivation = derive_for_h200(problem, &model, &diags);
    Rng rng = rng_new(7);
    for (int i = 0; i < 2; i++) {
        Point point;
        take_point(derivation, i, &rng, &point);
        try_point(report, problem, derivation, &point, arena, &diags);
    }
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
}

static void examples_are_exact(void **state)
{
    (void)state;
    Report report = {0};
    each_example(try_example, &report);
    print_message("%d compared, %d refused, slowest %.1f ms\n", report.compared,
                  report.refused, report.slowest_s * 1e3);
    assert_int_equal(report.wrong, 0);
    assert_true(report.compared > 20 * report.refused);
}

// Random sets -----------------------------------------------------------------------------

enum { VARS = 3, BOX = 12 }; // BOX: beyond every bound at the sizes tried

static bool inside(const System *s, const int64_t *param, const int64_t *var)
{
    for (int i = 0; i < s->in.len; i++) {
        int64_t value = s->in.at[i].coef[SUM_COLS];
        for (int k = 0; k < 2; k++)
            value += s->in.at[i].coef[k] * param[k];
        for (int k = 0; k < VARS; k++)
            value += s->in.at[i].coef[SUM_LIVE + k] * var[k];
        if (value < 0)
            return false;
    }
    return true;
}

static int64_t brute_force(const System *s, const int64_t *param)
{
    int64_t n = 0, var[VARS];
    for (var[0] = -BOX; var[0] <= BOX; var[0]++)
        for (var[1] = -BOX; var[1] <= BOX; var[1]++)
            for (var[2] = -BOX; var[2] <= BOX; var[2]++)
                n += inside(s, param, var);
    return n;
}

// A box that the parameters shift, and two rows across it with small coefficients.
static System random_system(Sum *sum, Rng *rng)
{
    System s = {0};
    for (int k = 0; k < VARS; k++) {
        SumRow low = {{0}}, high = {{0}};
        low.coef[SUM_LIVE + k] = 1;
        high.coef[SUM_LIVE + k] = -1;
        high.coef[rng_below(rng, 2)] = (int64_t)rng_below(rng, 2);
        high.coef[SUM_COLS] = (int64_t)rng_below(rng, 4);
        system_add(sum, &s, &low);
        system_add(sum, &s, &high);
    }
    for (int i = 0; i < 2; i++) {
        SumRow row = {{0}};
        for (int k = 0; k < VARS; k++)
            row.coef[SUM_LIVE + k] = (int64_t)rng_below(rng, 7) - 3;
        for (int k = 0; k < 2; k++)
            row.coef[k] = (int64_t)rng_below(rng, 5) - 2;
        row.coef[SUM_COLS] = (int64_t)rng_below(rng, 9) - 4;
        system_add(sum, &s, &row);
    }
    return s;
}

static double value_at(const Sum *sum, const Pieces *pieces, const int64_t *param)
{
    double column[SUM_COLS + 1] = {(double)param[0], (double)param[1]}, total = 0;
    column[SUM_COLS] = 1;
    for (int f = 0; f < sum->floors.len; f++) {
        double value = 0;
        for (int k = 0; k <= SUM_COLS; k++)
            value += column[k] * (double)sum->floors.at[f].row.coef[k];
        column[SUM_FLOOR + f] = floor(value / (double)sum->floors.at[f].den);
    }
    for (int i = 0; i < pieces->len; i++) {
        const Piece *piece = &pieces->at[i];
        bool holds = true;
        for (int e = 0; e < 2; e++) {
            const SumRows *rows = e ? &piece->guard.eq : &piece->guard.in;
            for (int r = 0; r < rows->len; r++) {
                double value = 0;
                for (int k = 0; k <= SUM_COLS; k++)
                    value += column[k] * (double)rows->at[r].coef[k];
                holds &= e ? value == 0 : value >= 0;
            }
        }
        for (int t = 0; holds && t < piece->poly.len; t++) {
            const Term *term = &piece->poly.at[t];
            double value = (double)term->coef.num / (double)term->coef.den;
            for (int k = 0; k < SUM_COLS; k++)
                value *= pow(column[k], term->power[k]);
            total += value;
        }
    }
    return total;
}

static void random_sets_are_exact(void **state)
{
    (void)state;
    Rng rng = rng_new(3);
    int refused = 0, wrong = 0;
    for (int set = 0; set < 100; set++) {
        Arena *arena = arena_new();
        Sum sum;
        Pieces pieces = {0};
        sum_init(&sum, arena);
        sum.nparam = 2;
        for (int k = 0; k < VARS; k++)
            assert_int_equal(sum_live(&sum), SUM_LIVE + k);
        System system = random_system(&sum, &rng);
        if (!sum_count(&sum, &system, &pieces))
            refused++;
        else
            for (int64_t n = 0; n <= 8; n++)
                for (int64_t m = 0; m <= 8; m++) {
                    int64_t param[2] = {n, m};
                    double got = value_at(&sum, &pieces, param);
                    wrong += fabs(got - (double)brute_force(&system, param)) > 1e-3;
                }
        sum_release(&sum);
        arena_free(arena);
    }
    print_message("%d of 100 sets refused\n", refused);
    assert_int_equal(wrong, 0);
    assert_true(refused <= 10);
}

// Classes -------------------------------------------------------------------------------

static double count_of(const char *text, const char *property)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse("<test>", text, &diags);
    Binding size = {"N", 4096};
    assert_true(problem_bind(problem, &size, 1, &diags));
    DeviceModel model;
    Derivation *derivation = derive_for_h200(problem, &model, &diags);
    Point point;
    derive_plain(derivation, &point);
    KernelOptions options = derive_options(derivation, &point);
    Expr *body = derive_body(derivation, &point, &diags);
    Unit *unit = lower(problem->bound, body, &options, arena, &diags);
    FeatureSetting setting = {NULL, &size, 1};
    double number[PROPERTIES];
    assert_true(counts_numbers(unit, &setting, number));
    int found = counts_find(property);
    assert_true(found >= 0);
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
    return number[found];
}

static void strides_are_classed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *property;
        double count;
    } known[] = {
        {"def f(a: [N]float): [N]float = a |> map(\\x -> 2*x)",
         "global loads, 32 bits, stride 1", 4096},
        {"def f(a: [2*N]float): [N]float = a |> split(2) |> map(\\p -> p[0])",
         "global loads, 32 bits, stride 1/2", 4096},
        {"def f(a: [2*N]float): [N]float = a |> split(2) |> map(\\p -> p[0] + p[1])",
         "global loads, 32 bits, stride 2/2", 8192},
        {"def f(a: [3*N]float): [N]float = a |> split(3) |> map(\\p -> p[1])",
         "global loads, 32 bits, stride 1/3", 4096},
        {"def f(a: [3*N]float): [N]float = a |> split(3) |> map(\\p -> p[0] + p[2])",
         "global loads, 32 bits, stride 2/3", 8192},
        {"def f(a: [4*N]float): [N]float = a |> split(4) |> map(\\p -> p[0])",
         "global loads, 32 bits, stride 1/4", 4096},
        {"def f(a: [N][64]float): [N]float = a |> map(\\r -> reduce(+, 0, r))",
         "global loads, 32 bits, stride 4/>4", 4096. * 64},
        {"def f(a: [N][64]float): [N]float = a |> map(\\r -> r[5])",
         "global loads, 32 bits, stride 1/>4", 4096},
        {"def f(a: [64]double): [N]double = array(N, \\i -> reduce(\\s v -> s + v * "
         "double(i), 0, a))",
         "global loads, 64 bits, stride 0", 4096. * 64},
        {"def f(a: [N]double): [N]double = a |> map(\\x -> sqrt(x) / pow(x, x))",
         "exponentiations, double", 4096},
    };
    for (int i = 0; i < COUNTOF(known); i++) {
        char text[256];
        snprintf(text, sizeof text, "size N\n%s\n", known[i].text);
        double got = count_of(text, known[i].property);
        if (got != known[i].count)
            print_message("%s: %s: %g\n", known[i].text, known[i].property, got);
        assert_true(got == known[i].count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_are_exact),
                                       cmocka_unit_test(random_sets_are_exact),
                                       cmocka_unit_test(strides_are_classed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
