// SPDX-License-Identifier: Apache-2.0
//
// A result of any number of dimensions is one nest, however it is written: products are
// found in it, and what is read beside its place is read in windows.

#include "derive/derive.h"
#include "problem/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static const DeviceInfo gpu = {
    .max_group = 1024, .max_item = {1024, 1024, 64}, .local_bytes = 49152, .warp = 32};

typedef struct {
    Arena *arena;
    Diags diags;
    Problem *problem;
    Derivation *derivation;
} Opened;

static void open_text(Opened *x, const char *text)
{
    x->arena = arena_new();
    x->diags = (Diags){.arena = x->arena};
    x->problem = problem_parse("test", text, &x->diags);
    assert_non_null(x->problem);
    assert_true(problem_bind(x->problem, NULL, 0, &x->diags));
    x->derivation = derive_new(x->problem->bound, &gpu, &x->diags);
    assert_non_null(x->derivation);
}

static void close_all(Opened *x)
{
    derive_free(x->derivation);
    problem_free(x->problem);
    arena_free(x->arena);
}

// Two ways to write a program, which have the same choices.
static const char *const same[][2] = {
    // Pooling: one list of rows, whose neighbours are channels.
    {"def p(x: [4][40][30][8]float) = array(4, \\n -> array3(20, 15, 8, \\i j c -> "
     "reduce(max, 0, array(2, \\p -> reduce(max, 0, array(2, \\q -> "
     "x[n][2*i + p][2*j + q][c]))))))",
     "def p(x: [160][30][8]float) = array3(80, 15, 8, \\i j c -> reduce(max, 0, array(2, "
     "\\p -> reduce(max, 0, array(2, \\q -> x[2*i + p][2*j + q][c])))))"},
    // Stages that are read beside their own place.
    {"def p(a: [52][700]float) = let s = array2(50, 700, \\i j -> a[i][j] + 2 * a[i + "
     "1][j] "
     "+ a[i + 2][j]) in array2(48, 698, \\i j -> s[i][j + 1] - 4 * s[i + 1][j + 2] + "
     "s[i + 2][j])",
     "def p(a: [52][700]float) = let s = a |> slide2(3, 1, 1, 1) |> map2(\\w -> w[0][0] + "
     "2 * w[1][0] + w[2][0]) in s |> slide2(3, 1) |> map2(\\w -> w[0][1] - 4 * w[1][2] + "
     "w[2][0])"},
};

static void test_same_choices(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(same); i++) {
        Opened a, b;
        open_text(&a, same[i][0]);
        open_text(&b, same[i][1]);
        const Space *x = derive_space(a.derivation), *y = derive_space(b.derivation);
        assert_int_equal(space_params(x), space_params(y));
        for (int k = 0; k < space_params(x); k++) {
            assert_string_equal(space_param(x, k)->name, space_param(y, k)->name);
            assert_int_equal(space_param(x, k)->n, space_param(y, k)->n);
        }
        close_all(&a);
        close_all(&b);
    }
}

static const char *const products[] = {
    "def p(x: [4][40][30][8]float, w: [3][3][8][16]float) = array2(4, 38, \\n i -> "
    "array2(28, 16, \\j o -> reduce(+, 0, array(3, \\p -> reduce(+, 0, array(3, \\q -> "
    "reduce(+, 0, array(8, \\c -> x[n][i + p][j + q][c] * w[p][q][c][o]))))))))",
    // Channels first: the pixels are the columns.
    "def p(x: [4][8][40][30]float, w: [16][8][3][3]float) = array2(4, 16, \\n o -> "
    "array2(38, 28, \\i j -> reduce(+, 0, array(8, \\c -> reduce(+, 0, join(array2(3, 3, "
    "\\p q -> x[n][c][i + p][j + q] * w[o][c][p][q])))))))",
    "def p(x: [4][5][30]float, y: [30][6][7]float) = array2(4, 5, \\a b -> array2(6, 7, "
    "\\c d -> reduce(+, 0, array(30, \\e -> x[a][b][e] * y[e][c][d]))))",
    "def p(a: [4][40][30]float, b: [30][50]float) = a |> map2(\\v -> transpose(b) |> "
    "map(\\c -> zip(v, c) |> map(*) |> reduce(+, 0)))",
    "def p(a: [2][4][40][30]float, b: [50][30]float) = a |> map3(\\v -> b |> map(\\c -> "
    "zip(v, c) |> map(*) |> reduce(+, 0)))",
    "def p(x: [40][30][8]float, w: [3][3][8][16]float) = x |> slide2(3, 1) |> map2(\\v -> "
    "array(16, \\o -> reduce(+, 0, join(join(array3(3, 3, 8, \\p q c -> v[p][q][c] * "
    "w[p][q][c][o]))))))",
};

// Both factors of each, however they are laid out, can be copied to tiles.
static void test_products(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(products); i++) {
        Opened x;
        Point point;
        open_text(&x, products[i]);
        const Space *space = derive_space(x.derivation);
        derive_plain(x.derivation, &point);
        assert_true(space_set(space, &point, "product", "blocks"));
        assert_true(space_set(space, &point, "lx", "8"));
        assert_true(space_set(space, &point, "ly", "8"));
        assert_true(space_set(space, &point, "stage", "8"));
        assert_true(space_valid(space, &point));
        Expr *body = derive_body(x.derivation, &point, &x.diags);
        assert_non_null(body);
        close_all(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_choices),
        cmocka_unit_test(test_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
