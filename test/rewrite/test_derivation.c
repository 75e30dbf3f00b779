// SPDX-License-Identifier: Apache-2.0
//
// Derivations as text, replaying them, and strategies.

#include "explored.h"

static const int64_t sizes[] = {64, 48};

// The example of paper 000, listing 2, in two dimensions and with several outputs an item.
static const char text[] = "// jacobi2d, tiled\n"
                           "tile(16, 16) @ root\n"
                           "\n"
                           "mapWrg(1, 0) @ 0   // the groups\n"
                           "toLocal(1, 0) @ 0.f.f.0.0\n"
                           "reorder(1, 8, 1) @ 0.f.f\n"
                           "splitJoin(4, 2) @ 0.f.f.0\n"
                           "mapLcl(1, 0) @ 0.f.f.0.0\n"
                           "mapSeqUnroll() @ 0.f.f.0.0.f.f\n";

static const Rewriting *parse(Example *e, const char *from, Source *source)
{
    *source = (Source){"steps", from, strlen(from)};
    return derivation_parse(e->arena, source, &e->diags);
}

static void test_listing_2(void **state)
{
    (void)state;
    Example e;
    Source source;
    example_open(&e, "jacobi2d", sizes);
    example_expect(&e);
    const Rewriting *steps = parse(&e, text, &source);
    assert_non_null(steps);
    assert_int_equal(steps->steps.len, 7);
    Expr *body = derivation_apply(e.program, steps, &e.diags);
    if (!body) {
        show_diags(&e.diags, "listing 2");
        fail();
    }
    Explored found = {.expr = body, .local = {8, 4, 0}};
    assert_true(can_lower(&e, &found));
    Value *value = value_of_body(&e, body);
    assert_non_null(value);
    assert_true(agrees(value, e.expect));
    example_close(&e);
}

// A sum in two stages by groups, as rules.
static void test_two_stages(void **state)
{
    (void)state;
    static const int64_t length[] = {1000};
    Example e;
    Source source;
    example_open(&e, "dot", length);
    example_expect(&e);
    const Rewriting *steps = parse(&e,
                                   "reduceFission() @ root\n"
                                   "partialReduce(256) @ root\n"
                                   "reduceWrg(32, 1) @ 1\n"
                                   "toGlobal() @ 1\n"
                                   "reduceAsMap() @ root\n"
                                   "reduceWrg(4, 1) @ 0\n"
                                   "toGlobal() @ 0\n",
                                   &source);
    assert_non_null(steps);
    Expr *body = derivation_apply(e.program, steps, &e.diags);
    assert_non_null(body);
    Explored found = {.expr = body, .local = {32, 0, 0}};
    assert_true(can_lower(&e, &found));
    assert_true(agrees(value_of_body(&e, body), e.expect));
    example_close(&e);
}

static void test_round_trip(void **state)
{
    (void)state;
    Example e;
    example_open(&e, "srad2", sizes);
    Exploration *x = explore_random(e.program, 3, 50, &explore_defaults, e.arena);
    assert_int_equal(x->found.len, 50);
    for (int i = 0; i < x->found.len; i++) {
        Buf first, second;
        first = buf_new();
        second = buf_new();
        derivation_print(&first, &x->found.at[i].steps);
        Source source;
        const Rewriting *read = parse(&e, first.text, &source);
        assert_non_null(read);
        derivation_print(&second, read);
        assert_string_equal(first.text, second.text);
        Expr *again = derivation_apply(e.program, read, &e.diags);
        assert_non_null(again);
        assert_true(expr_equal(again, x->found.at[i].expr));
        assert_true(expr_hash(again) == x->found.at[i].hash);
        buf_release(&first);
        buf_release(&second);
    }
    example_close(&e);
}

typedef struct {
    const char *text, *code;
    int line, col;
} Wrong;

static void test_diagnostics(void **state)
{
    (void)state;
    static const Wrong wrongs[] = {
        {"tile(16, 16) @ root\nrubbish(1) @ root\n", "R002", 2, 1},
        {"\n  (1) @ root", "R002", 2, 3},
        {"mapGlb 1) @ root", "R001", 1, 8},
        {"mapGlb(1, x) @ root", "R003", 1, 11},
        {"mapGlb() @ root", "R003", 1, 7},
        {"mapGlb(1, 2, 3, 4, 5) @ root", "R003", 1, 20},
        {"mapGlb(99999999999999999999) @ root", "R003", 1, 8},
        {"mapSeq(1) @ root", "R003", 1, 7},
        {"mapGlb(1, 0 @ root", "R001", 1, 13},
        {"mapGlb(1, 0) root", "R001", 1, 14},
        {"mapGlb(1, 0) @ f.x", "R004", 1, 16},
        {"mapGlb(1, 0) @", "R004", 1, 15},
        {"mapGlb(1, 0) @ root 0", "R001", 1, 21},
        {"mapGlb(1, 0) @ 0.0.7", "R005", 1, 1},
        {"mapGlb(1, 0) @ root\n  mapGlb(1, 0) @ root", "R006", 2, 3},
        {"mapLcl(1, 0) @ root", "R006", 1, 1},
    };
    for (int i = 0; i < COUNTOF(wrongs); i++) {
        Example e;
        Source source;
        example_open(&e, "jacobi2d", sizes);
        const Rewriting *steps = parse(&e, wrongs[i].text, &source);
        if (steps && derivation_apply(e.program, steps, &e.diags))
            fail_msg("`%s` is taken", wrongs[i].text);
        int line, col;
        assert_true(e.diags.list.len > 0);
        span_line_col(e.diags.list.at[0].span, &line, &col);
        if (strcmp(e.diags.list.at[0].code, wrongs[i].code) || line != wrongs[i].line ||
            col != wrongs[i].col)
            fail_msg("`%s`: %s at %d:%d", wrongs[i].text, e.diags.list.at[0].code, line,
                     col);
        example_close(&e);
    }
}

// Whatever the text is: a derivation or a diagnostic.
static void test_damaged_text(void **state)
{
    (void)state;
    static const char odd[] = "(),@.f0 9-\n/x\t\x80";
    Rng rng = rng_new(9);
    Example e;
    example_open(&e, "jacobi2d", sizes);
    for (int i = 0; i < 300; i++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        for (uint64_t k = 0; k <= rng_below(&rng, 3); k++)
            copy[rng_below(&rng, sizeof text - 1)] = odd[rng_below(&rng, sizeof odd)];
        Source source = {"steps", copy, sizeof text - 1};
        Diags diags = {.arena = e.arena};
        const Rewriting *steps = derivation_parse(e.arena, &source, &diags);
        bool done = steps && derivation_apply(e.program, steps, &diags);
        assert_true(done == (diags.errors == 0));
        for (int k = 0; k < diags.list.len; k++)
            assert_true(diags.list.at[k].span.end <= sizeof text - 1);
    }
    example_close(&e);
}

static void test_the_program_is_left_alone(void **state)
{
    (void)state;
    Example e;
    Source source;
    example_open(&e, "jacobi2d", sizes);
    uint64_t before = expr_hash(e.program->main->body);
    const Rewriting *steps = parse(&e, text, &source);
    assert_non_null(derivation_apply(e.program, steps, &e.diags));
    assert_true(expr_hash(e.program->main->body) == before);
    example_close(&e);
}

// Positions -----------------------------------------------------------------------------

static void test_first_positions(void **state)
{
    (void)state;
    Example e;
    example_open(&e, "stencil2d", sizes);
    Path all = {0};
    Rewriter r;
    rewriter_init(&r, e.ir, e.arena, e.program->main->body);
    uint64_t before = expr_hash(r.expr);
    assert_false(rewriter_first(&r, &all, RULE_TRANSPOSE_TWICE));
    assert_false(rewriter_rule(&r, &all, RULE_REDUCE_SEQ, &(RuleArgs){0}));
    assert_true(expr_hash(r.expr) == before && r.done.steps.len == 0);
    assert_true(rewriter_rule(&r, &all, RULE_MAP_GLB, &(RuleArgs){.n = 2, .at = {1, 0}}));
    assert_true(rewriter_first(&r, &all, RULE_REDUCE_SEQ));
    assert_int_equal(r.done.steps.len, 2);
    assert_int_equal(r.done.steps.at[1].path.n, 2); // in both functions
    Expr *again = derivation_apply(e.program, &r.done, &e.diags);
    assert_non_null(again);
    assert_true(expr_equal(again, r.expr));
    example_close(&e);

    // Outermost first, as often as there is one.
    example_open(&e, "blur", sizes);
    rewriter_init(&r, e.ir, e.arena, e.program->main->body);
    assert_true(rewriter_first(&r, &all, RULE_MAP_NEST));
    int depth = r.done.steps.at[0].path.n;
    assert_true(rewriter_first(&r, &all, RULE_MAP_NEST));
    assert_false(rewriter_first(&r, &all, RULE_MAP_NEST));
    assert_int_equal(r.done.steps.len, 2);
    assert_true(depth <= r.done.steps.at[1].path.n);
    example_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listing_2),
        cmocka_unit_test(test_two_stages),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_diagnostics),
        cmocka_unit_test(test_damaged_text),
        cmocka_unit_test(test_the_program_is_left_alone),
        cmocka_unit_test(test_first_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
