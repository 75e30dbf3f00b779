// SPDX-License-Identifier: Apache-2.0
//
// Rules applied anywhere: random walks of random rules at random positions of the examples.
// Whatever matches must have types and keep the value.

#include "explored.h"

enum { POSITIONS_MOST = 512 };

typedef struct {
    Path at[POSITIONS_MOST];
    int n;
} Positions;

static void note_positions(const Expr *e, Path *at, Positions *positions)
{
    if (positions->n < POSITIONS_MOST)
        positions->at[positions->n++] = *at;
    for (int i = e->fun ? CHILD_FUN : 0; i < e->narg; i++) {
        if (!path_push(at, i))
            return;
        note_positions(i == CHILD_FUN ? e->fun->arg[0] : e->arg[i], at, positions);
        at->n--;
    }
}

static RuleArgs draw_args(const RuleInfo *rule, Rng *rng)
{
    static const int64_t numbers[] = {0, 1, 2, 3, 4, 8};
    int least, most;
    rule_args_range(rule, &least, &most);
    RuleArgs args = {.n = least + (int)rng_below(rng, (uint64_t)(most - least) + 1)};
    for (int i = 0; i < args.n; i++)
        args.at[i] = numbers[rng_below(rng, COUNTOF(numbers))];
    return args;
}

// One rule somewhere; the new expression, or NULL if nothing matched in many attempts.
static Expr *step(Example *e, Expr *expr, Rng *rng, int *used, Rewriting *steps)
{
    Positions positions = {.n = 0};
    Path path = {0};
    note_positions(expr, &path, &positions);
    for (int tries = 0; tries < 400; tries++) {
        const Path *at = &positions.at[rng_below(rng, (uint64_t)positions.n)];
        RuleId rule = (RuleId)rng_below(rng, RULES);
        RuleArgs args = draw_args(&rule_info[rule], rng);
        Expr *next = rewrite_at(e->ir, expr, at, rule, &args);
        if (!next)
            continue;
        used[rule]++;
        RuleStep done = {rule, args, *at, span_none};
        VEC_PUSH(e->arena, &steps->steps, done);
        return next;
    }
    return NULL;
}

static void complain(Example *e, const char *name, const Expr *expr, const Rewriting *steps)
{
    show_diags(&e->diags, name);
    show_explored(&(Explored){.expr = (Expr *)expr, .steps = *steps});
    fail_msg("%s: a rule broke the program", name);
}

enum { STEPS = 5 };

static void walk(Example *e, const char *name, Rng *rng, int *used)
{
    Expr *expr = rewrite_begin(e->ir, e->program->main->body);
    Rewriting steps = {0};
    for (int i = 0; i < STEPS; i++) {
        Expr *next = step(e, expr, rng, used, &steps);
        if (!next)
            break;
        if (!ir_infer_expr(e->ir, next, &e->diags))
            complain(e, name, next, &steps);
        expr = next;
    }
    Value *value = value_of_body(e, expr);
    if (!value || !agrees(value, e->expect))
        complain(e, name, expr, &steps);
}

static void test_rules_keep_the_value(void **state)
{
    (void)state;
    static const char *const names[] = {
        "jacobi2d", "hotspot2d",     "blur",    "stencil2d", "gemv",    "mm",
        "dot",      "convolution1d", "reverse", "wave2d",    "nbody",   "blackscholes",
        "heat3d",   "asum",          "prefix",  "transpose", "advect2d"};
    static const int64_t sizes[] = {6, 8, 4};
    int used[RULES] = {0};
    Rng rng = rng_new(3);
    for (int i = 0; i < COUNTOF(names); i++) {
        Example e;
        example_open(&e, names[i], sizes);
        example_expect(&e);
        for (int k = 0; k < 60; k++)
            walk(&e, names[i], &rng, used);
        example_close(&e);
    }
    int kinds = 0;
    for (int r = 0; r < RULES; r++)
        kinds += used[r] > 0;
    assert_true(kinds > RULES / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_keep_the_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
