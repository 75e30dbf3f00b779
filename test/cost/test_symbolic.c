// SPDX-License-Identifier: Apache-2.0
//
// Symbolic counts against an execution that counts: every work-item of every launch is run
// through the kernel IR at several sizes, odd ones included. Random parametric sets against
// brute force. Classes of strides of small kernels against what they must be.

#include "cost/counts.h"
#include "plan/describe.h"
#include "plan/predict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The counting execution --------------------------------------------------------------

enum { NAMES_MAX = 4096, STEPS_MOST = 60000 };

typedef struct {
    const Arith *var;
    int64_t value;
    bool known;
} Name;

// By kind, and accesses by direction and width, whatever their stride.
typedef struct {
    double global[2][COUNT_WIDTHS], local, puts, arrays, op[12], barriers, groups;
} Truth;

typedef struct {
    const Kernel *kernel;
    const Binding *binding;
    int nbinding;
    int64_t group[3], item[3];
    Name name[NAMES_MAX];
    int nname;
    double weight;
    Truth *truth;
    const Buffer *touched[64]; // by this launch, loads and stores apart
    int ntouched, steps;
} Run;

static void run_block(Run *r, const Block *block);

static bool lookup(void *user, const Arith *var, int64_t *value)
{
    Run *r = user;
    for (int i = r->nname - 1; i >= 0; i--)
        if (r->name[i].var == var) {
            *value = r->name[i].value;
            return r->name[i].known;
        }
    for (int i = 0; i < r->nbinding; i++)
        if (strcmp(r->binding[i].name, var->name) == 0) {
            *value = r->binding[i].value;
            return true;
        }
    return false;
}

static void bind_name(Run *r, const Arith *var, int64_t value, bool known)
{
    assert_true(r->nname < NAMES_MAX);
    r->name[r->nname++] = (Name){var, value, known};
}

static int64_t value_of(Run *r, const Arith *a)
{
    int64_t value;
    assert_true(arith_eval(a, lookup, r, &value));
    return value;
}

static double holds(Run *r, const KExpr *cond)
{
    if (cond->kind != K_COND)
        return 0.5;
    for (int i = 0; i < cond->n; i++) {
        int64_t value;
        if (arith_eval(cond->cond[i], lookup, r, &value) && value < 0)
            return 0;
    }
    return 1;
}

static void touch_array(Run *r, const Buffer *buffer, bool store)
{
    for (int i = store; i < r->ntouched; i += 2)
        if (r->touched[i] == buffer)
            return;
    for (; r->ntouched < COUNTOF(r->touched); r->ntouched += 2)
        if (!r->touched[r->ntouched + store])
            break;
    assert_true(r->ntouched < COUNTOF(r->touched));
    r->touched[r->ntouched + store] = buffer;
    r->ntouched += 2;
    r->truth->arrays +=
        (double)value_of(r, buffer->count) * scalar_info[buffer->scalar].bytes;
}

static void run_access(Run *r, const Buffer *buffer, const Type *type, bool store)
{
    int bytes =
        scalar_info[buffer->scalar].bytes * (type->kind == T_VECTOR ? type->width : 1);
    if (buffer->space == MEM_LOCAL)
        *(store ? &r->truth->puts : &r->truth->local) += r->weight;
    else if (buffer->space == MEM_GLOBAL)
        touch_array(r, buffer, store);
    if (buffer->space == MEM_GLOBAL)
        r->truth->global[store][bytes <= 4 ? 0 : bytes <= 8 ? 1 : 2] += r->weight;
}

static void run_op(Run *r, Op op, const Type *type, bool product)
{
    static const int column[] = {[OPK_ADD] = 0, [OPK_MUL] = 2,     [OPK_DIV] = 4,
                                 [OPK_EXP] = 8, [OPK_SPECIAL] = 8, [OPK_FREE] = -1};
    int k = op == OP_POW ? 6 : column[op_info[op].kind];
    double lanes = type->kind == T_VECTOR ? type->width : 1;
    if (k < 0 || !type_is_float(type) || op_info[op].types == TY_SELECT ||
        op_info[op].types == TY_CAST)
        return;
    r->truth->op[k + (type->scalar == S_DOUBLE)] += lanes * r->weight;
    if (op == OP_FMA)
        r->truth->op[type->scalar == S_DOUBLE] += lanes * r->weight;
    if (op == OP_FMA || ((op == OP_ADD || op == OP_SUB) && product))
        r->truth->op[10 + (type->scalar == S_DOUBLE)] += lanes * r->weight;
}

static void run_expr(Run *r, const Expr *e)
{
    bool select = e->kind == E_OP && e->op == OP_SELECT;
    double weight = r->weight;
    if (e->kind == E_OP && e->type)
        run_op(r, e->op, e->type,
               (e->narg > 0 && e->arg[0]->kind == E_OP && e->arg[0]->op == OP_MUL) ||
                   (e->narg > 1 && e->arg[1]->kind == E_OP && e->arg[1]->op == OP_MUL));
    if (e->kind == E_CALL && e->callee->body)
        run_expr(r, e->callee->body);
    for (int i = 0; i < e->narg; i++) {
        r->weight = select && i > 0 ? weight / 2 : weight;
        run_expr(r, e->arg[i]);
    }
    r->weight = weight;
}

static void run_value(Run *r, const KExpr *e)
{
    if (e->kind == K_COND)
        return;
    if (e->kind == K_LOAD)
        run_access(r, e->buffer, e->type, false);
    if (e->kind == K_CALL)
        run_expr(r, e->callee->body);
    if (e->kind == K_OP && e->op == OP_SELECT) {
        double share = holds(r, e->arg[0]), weight = r->weight;
        run_value(r, e->arg[0]);
        for (int side = 0; side < 2; side++) {
            r->weight = weight * (side ? 1 - share : share);
            run_value(r, e->arg[1 + side]);
        }
        r->weight = weight;
        return;
    }
    if (e->kind == K_OP)
        run_op(r, e->op, e->type,
               (e->n > 0 && e->arg[0]->kind == K_OP && e->arg[0]->op == OP_MUL) ||
                   (e->n > 1 && e->arg[1]->kind == K_OP && e->arg[1]->op == OP_MUL));
    for (int i = 0; i < e->n; i++)
        run_value(r, e->arg[i]);
}

static void run_for(Run *r, const Stm *stm)
{
    const int64_t *local = r->kernel->local;
    int64_t extent = value_of(r, stm->extent), d = stm->dim, first = 0, step = 1;
    int64_t groups = value_of(r, r->kernel->global[d]) / local[d];
    if (stm->loop == LOOP_GLB) {
        first = r->group[d] * local[d] + r->item[d];
        step = groups * local[d];
    } else if (stm->loop == LOOP_WRG) {
        first = r->group[d];
        step = groups;
    } else if (stm->loop == LOOP_LCL) {
        first = r->item[d];
        step = local[d];
    }
    for (int64_t i = first; i < extent; i += step) {
        int names = r->nname;
        bind_name(r, stm->iter, i, true);
        run_block(r, &stm->body);
        r->nname = names;
    }
}

static void run_if(Run *r, const Stm *stm)
{
    double share = holds(r, stm->value), weight = r->weight;
    run_value(r, stm->value);
    r->weight = weight * share;
    if (share > 0)
        run_block(r, &stm->body);
    r->weight = weight * (1 - share);
    if (share < 1)
        run_block(r, &stm->other);
    r->weight = weight;
}

static void run_block(Run *r, const Block *block)
{
    int names = r->nname;
    for (int i = 0; i < block->len && r->steps++ < STEPS_MOST; i++) {
        const Stm *stm = block->at[i];
        if (stm->value && stm->kind != ST_IF)
            run_value(r, stm->value);
        if (stm->kind == ST_INT) {
            int64_t value = 0;
            bool known = !stm->value && arith_eval(stm->index, lookup, r, &value);
            bind_name(r, stm->iter, value, known);
        } else if (stm->kind == ST_STORE) {
            run_access(r, stm->buffer, stm->value->type, true);
        } else if (stm->kind == ST_FOR) {
            run_for(r, stm);
        } else if (stm->kind == ST_IF) {
            run_if(r, stm);
        } else if (stm->kind == ST_BARRIER) {
            r->truth->barriers += r->weight;
        }
    }
    r->nname = names;
}

static void run_group(Run *r)
{
    const int64_t *local = r->kernel->local;
    r->truth->groups++;
    for (r->item[2] = 0; r->item[2] < local[2]; r->item[2]++)
        for (r->item[1] = 0; r->item[1] < local[1]; r->item[1]++)
            for (r->item[0] = 0; r->item[0] < local[0]; r->item[0]++) {
                r->weight = 1;
                run_block(r, &r->kernel->body);
            }
}

// False if that takes more than STEPS_MOST statements.
static bool run_unit(const Unit *unit, const Binding *binding, int n, Truth *truth)
{
    Run *r = calloc(1, sizeof *r);
    memset(truth, 0, sizeof *truth);
    int steps = 0;
    for (int i = 0; i < unit->launches.len && steps < STEPS_MOST; i++) {
        int64_t groups[3];
        *r = (Run){.kernel = unit->launches.at[i].kernel,
                   .steps = steps,
                   .binding = binding,
                   .nbinding = n,
                   .truth = truth};
        for (int d = 0; d < 3; d++)
            groups[d] = value_of(r, r->kernel->global[d]) / r->kernel->local[d];
        for (r->group[2] = 0; r->group[2] < groups[2]; r->group[2]++)
            for (r->group[1] = 0; r->group[1] < groups[1]; r->group[1]++)
                for (r->group[0] = 0; r->group[0] < groups[0]; r->group[0]++)
                    run_group(r);
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
static bool sum_of(const Counts *c, const double *number, int first, int n,
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
    if (!sum_of(c->counts, c->number, first, n, c->binding, c->nbinding, &symbolic,
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
    LowerOptions options = derive_options(derivation, point);
    Unit *unit = lower(problem->bound, body, &options, arena, diags);
    Buf text;
    buf_init(&text);
    point_print(&text, derive_space(derivation), point);
    assert_non_null(unit);
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
        if (!run_unit(unit, binding, n, &truth))
            continue; // too long to run
        assert_true(counts_numbers(unit, &setting, number));
        compare_all(&(Compare){report, counts, number, binding, n, text.text}, &truth);
    }
    counts_free(counts);
    buf_release(&text);
}

static void try_example(Report *report, int points)
{
    Arena *arena = arena_new();
    Diags diags;
    diags_init(&diags, arena);
    Problem *problem = problem_load(report->path, &diags);
    Binding rounds = {"T", 3};
    bool iterates = false;
    for (int i = 0; i < problem->program->sizes.len; i++)
        iterates |= strcmp(problem->program->sizes.at[i].name, "T") == 0;
    assert_true(problem_open(problem, &rounds, iterates, &diags));
    DeviceModel model;
    assert_true(device_model_find("nvidia-h200", &model));
    DeviceInfo info;
    describe_model(&model, &info);
    Derivation *derivation = derive_new(problem->bound, &info, &diags);
    assert_non_null(derivation);
    Rng rng;
    rng_seed(&rng, 7);
    for (int i = 0; i < points; i++) {
        Point point;
        if (i == 0)
            derive_plain(derivation, &point);
        else
            space_sample(derive_space(derivation), &rng, &point);
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
    DIR *dir = opendir("examples");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (len < 4 || strcmp(entry->d_name + len - 3, ".fw") != 0)
            continue;
        char path[512];
        snprintf(path, sizeof path, "examples/%s", entry->d_name);
        report.path = path;
        try_example(&report, 2);
    }
    closedir(dir);
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
        Row low = {{0}}, high = {{0}};
        low.coef[SUM_LIVE + k] = 1;
        high.coef[SUM_LIVE + k] = -1;
        high.coef[rng_below(rng, 2)] = (int64_t)rng_below(rng, 2);
        high.coef[SUM_COLS] = (int64_t)rng_below(rng, 4);
        system_add(sum, &s, &low);
        system_add(sum, &s, &high);
    }
    for (int i = 0; i < 2; i++) {
        Row row = {{0}};
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
            const Rows *rows = e ? &piece->guard.eq : &piece->guard.in;
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
    Rng rng;
    rng_seed(&rng, 3);
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
    Diags diags;
    diags_init(&diags, arena);
    Problem *problem = problem_parse("<test>", text, &diags);
    Binding size = {"N", 4096};
    assert_true(problem_bind(problem, &size, 1, &diags));
    DeviceModel model;
    assert_true(device_model_find("nvidia-h200", &model));
    DeviceInfo info;
    describe_model(&model, &info);
    Derivation *derivation = derive_new(problem->bound, &info, &diags);
    Point point;
    derive_plain(derivation, &point);
    LowerOptions options = derive_options(derivation, &point);
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
        {"def f(a: [64]double): [N]double = array(N, \\i -> reduce(+, 0, a))",
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
