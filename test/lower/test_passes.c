// SPDX-License-Identifier: Apache-2.0
//
// Passes over small kernels made by hand: which barriers stay, which loads are shared,
// which indices are named; and what the verifier refuses.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "print.h"

static Pass pass_of(Build *b)
{
    static const KernelOptions plain;
    return (Pass){b->ctx, b->arena, NULL, &plain};
}

static int count_kind(const Block *block, StmKind kind)
{
    int n = 0;
    for (int i = 0; i < block->len; i++)
        n += (block->at[i]->kind == kind) + count_kind(&block->at[i]->body, kind) +
             count_kind(&block->at[i]->other, kind);
    return n;
}

static void expect_valid(Build *b)
{
    Diags diags = {.arena = b->arena};
    if (!kernel_verify(b->ctx, b->kernel, &diags))
        fail_msg("%s", diags.list.at[0].message);
}

static void expect_refused(Build *b, const char *code)
{
    Diags diags = {.arena = b->arena};
    assert_false(kernel_verify(b->ctx, b->kernel, &diags));
    assert_int_equal(diags.errors, 1);
    assert_string_equal(diags.list.at[0].code, code);
}

static void expect_text(Build *b, const char *text)
{
    Buf out = buf_new();
    kir_print(&out, b->kernel);
    assert_string_equal(out.text, text);
    buf_release(&out);
}

static int barriers_left(Build *b)
{
    Pass pass = pass_of(b);
    expect_valid(b);
    pass_barriers(&pass, b->kernel);
    expect_valid(b);
    return count_kind(&b->kernel->body, ST_BARRIER);
}

// Barriers ----------------------------------------------------------------------------

static void test_tile_with_neighbours(void **state)
{
    (void)state;
    Build *b = build_tile(4, 1);
    assert_int_equal(barriers_left(b), 1);
    const Stm *barrier = b->kernel->body.at[0]->body.at[1];
    assert_int_equal(barrier->kind, ST_BARRIER);
    assert_true(barrier->fence_local);
    assert_false(barrier->fence_global);
    build_free(b);
}

static void test_tile_of_own_element(void **state)
{
    (void)state;
    Build *b = build_tile(4, 0);
    assert_int_equal(barriers_left(b), 0);
    build_free(b);
}

static void test_own_element_of_wider_group(void **state)
{
    (void)state;
    Build *b = build_tile(4, 0);
    b->kernel->local[1] = 2; // two items share each element
    assert_int_equal(barriers_left(b), 1);
    build_free(b);
}

static void test_same_index_not_own(void **state)
{
    (void)state;
    Build *b = build_new("shared");
    Buffer *tile = buffer(b, "tile", MEM_LOCAL, ROLE_TEMP, 32);
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, 64);
    const Arith *g = iter_var(b, "g", 1), *l = iter_var(b, "l", 64);
    Block *group = &loop(b, LOOP_WRG, 0, g, 1)->body;
    const Arith *half = arith_divc(b->ctx, l, 2);
    loop(b, LOOP_LCL, 0, l, 64);
    store(b, tile, half, literal(b, 1, FLOAT));
    b->block = group;
    stm(b, ST_BARRIER);
    loop(b, LOOP_LCL, 0, l, 64);
    store(b, out, l, load(b, tile, half));
    b->kernel->local[0] = 64;
    assert_int_equal(barriers_left(b), 1);
    build_free(b);
}

static void test_global_fence(void **state)
{
    (void)state;
    Build *b = build_new("global");
    Buffer *t = buffer(b, "t", MEM_GLOBAL, ROLE_TEMP, 64);
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, 64);
    const Arith *g = iter_var(b, "g", 1), *l = iter_var(b, "l", 64);
    Block *group = &loop(b, LOOP_WRG, 0, g, 1)->body;
    loop(b, LOOP_LCL, 0, l, 64);
    store(b, t, l, literal(b, 1, FLOAT));
    b->block = group;
    stm(b, ST_BARRIER);
    loop(b, LOOP_LCL, 0, l, 64);
    store(b, out, l, load(b, t, arith_sub(b->ctx, num(b, 63), l)));
    b->kernel->local[0] = 64;
    assert_int_equal(barriers_left(b), 1);
    const Stm *barrier = group->at[1];
    assert_true(barrier->fence_global);
    assert_false(barrier->fence_local);
    build_free(b);
}

// for k: { tile = a[..]; barrier; out += tile[reversed]; barrier; [barrier] }
static Build *build_streaming(int barriers_at_end)
{
    Build *b = build_new("streaming");
    Buffer *a = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, 640);
    Buffer *tile = buffer(b, "tile", MEM_LOCAL, ROLE_TEMP, 64);
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, 640);
    const Arith *g = iter_var(b, "g", 1), *l = iter_var(b, "l", 64);
    const Arith *k = iter_var(b, "k", 10);
    const Arith *at = plus(b, arith_mulc(b->ctx, k, 64), l);
    loop(b, LOOP_WRG, 0, g, 1);
    Block *body = &loop(b, LOOP_SEQ, 0, k, 10)->body;
    loop(b, LOOP_LCL, 0, l, 64);
    store(b, tile, l, load(b, a, at));
    b->block = body;
    stm(b, ST_BARRIER);
    loop(b, LOOP_LCL, 0, l, 64);
    store(b, out, at, load(b, tile, arith_sub(b->ctx, num(b, 63), l)));
    b->block = body;
    for (int i = 0; i < barriers_at_end; i++)
        stm(b, ST_BARRIER);
    b->kernel->local[0] = 64;
    return b;
}

static void test_loop_keeps_both(void **state)
{
    (void)state;
    Build *b = build_streaming(1);
    assert_int_equal(barriers_left(b), 2);
    build_free(b);
}

static void test_double_barrier_once(void **state)
{
    (void)state;
    Build *b = build_streaming(2);
    assert_int_equal(barriers_left(b), 2);
    build_free(b);
}

static void test_last_barrier(void **state)
{
    (void)state;
    Build *b = build_tile(4, 1);
    stm(b, ST_BARRIER);
    assert_int_equal(barriers_left(b), 1);
    build_free(b);
}

static void test_strided_groups_keep_last_barrier(void **state)
{
    (void)state;
    Build *b = build_tile(4, 1);
    stm(b, ST_BARRIER);
    b->kernel->body.at[0]->form = FORM_LOOP;
    b->kernel->body.at[0]->threads = num(b, 2);
    assert_int_equal(barriers_left(b), 2);
    build_free(b);
}

static void test_private_work_needs_none(void **state)
{
    (void)state;
    Build *b = build_new("branches");
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, 64);
    const Arith *g = iter_var(b, "g", 8), *l = iter_var(b, "l", 64);
    Block *group = &loop(b, LOOP_WRG, 0, g, 8)->body;
    Stm *branch = stm(b, ST_IF);
    branch->value = cond(b, arith_addc(b->ctx, g, -1), NULL);
    b->block = &branch->body;
    stm(b, ST_BARRIER);
    b->block = group;
    loop(b, LOOP_LCL, 0, l, 64);
    store(b, out, l, literal(b, 1, FLOAT));
    assert_int_equal(barriers_left(b), 0);
    build_free(b);
}

// Loads -------------------------------------------------------------------------------

typedef struct {
    Build *b;
    Buffer *a, *out;
    const Arith *i;
} Simple;

// One loop over 64 items, open.
static Simple simple_new(BufferRole role)
{
    Build *b = build_new("simple");
    Simple s = {.b = b};
    s.a = buffer(b, "a", MEM_GLOBAL, role, 64);
    s.out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, 64);
    s.i = iter_var(b, "i", 64);
    loop(b, LOOP_GLB, 0, s.i, 64);
    return s;
}

static void run_loads(Build *b)
{
    Pass pass = pass_of(b);
    expect_valid(b);
    pass_loads(&pass, b->kernel);
    expect_valid(b);
}

#define HEAD "  global 1 1 1 local 1 1 1\n"

static void test_loads_shared(void **state)
{
    (void)state;
    Simple s = simple_new(ROLE_INPUT);
    Build *b = s.b;
    const KExpr *x = load(b, s.a, s.i);
    store(b, s.out, s.i, sum_of(b, x, x));
    store(b, s.out, s.i, sum_of(b, load(b, s.a, s.i), load(b, s.a, num(b, 3))));
    run_loads(b);
    expect_text(b, "kernel simple(input a: float[64], output out: float[64])\n" HEAD
                   "  glb0 i < 64 once\n"
                   "    const a_0: float = a[i]\n"
                   "    out[i] = (a_0 + a_0)\n"
                   "    out[i] = (a_0 + a[3])\n");
    build_free(b);
}

static void test_loads_after_store(void **state)
{
    (void)state;
    Simple s = simple_new(ROLE_TEMP);
    Build *b = s.b;
    store(b, s.out, s.i, load(b, s.a, s.i));
    store(b, s.a, num(b, 5), literal(b, 1, FLOAT));
    store(b, s.out, s.i, load(b, s.a, s.i));
    run_loads(b);
    assert_int_equal(count_kind(&b->kernel->body, ST_DECL), 0);
    build_free(b);
}

static void test_loads_in_select(void **state)
{
    (void)state;
    Simple s = simple_new(ROLE_INPUT);
    Build *b = s.b;
    const KExpr *inside = cond(b, arith_addc(b->ctx, s.i, -1), NULL);
    const KExpr *left = load(b, s.a, arith_addc(b->ctx, s.i, -1));
    const KExpr *choice = op(b, OP_SELECT, FLOAT, inside, left, literal(b, 0, FLOAT));
    const KExpr *here = load(b, s.a, s.i);
    const KExpr *other = op(b, OP_SELECT, FLOAT, inside, here, left);
    store(b, s.out, s.i, sum_of(b, choice, other)); // left: never certain
    store(b, s.out, s.i, sum_of(b, other, here));   // here: certain from here on
    run_loads(b);
    expect_text(b, "kernel simple(input a: float[64], output out: float[64])\n" HEAD
                   "  glb0 i < 64 once\n"
                   "    out[i] = (if(cond(i - 1 >= 0), a[i - 1], 0) + "
                   "if(cond(i - 1 >= 0), a[i], a[i - 1]))\n"
                   "    const a_0: float = a[i]\n"
                   "    out[i] = (if(cond(i - 1 >= 0), a_0, a[i - 1]) + a_0)\n");
    build_free(b);
}

static void test_loads_behind_conditions(void **state)
{
    (void)state;
    static const KernelOptions eager = {.eager = true};
    Simple s = simple_new(ROLE_INPUT);
    Build *b = s.b;
    const Arith *before = arith_addc(b->ctx, s.i, -1), *after = arith_addc(b->ctx, s.i, 1);
    const KExpr *left = op(b, OP_SELECT, FLOAT, cond(b, before, NULL), load(b, s.a, before),
                           literal(b, 0, FLOAT));
    const KExpr *same =
        op(b, OP_SELECT, FLOAT, cond(b, before, NULL),
           sum_of(b, load(b, s.a, before), load(b, s.a, s.i)), literal(b, 7, FLOAT));
    const KExpr *right =
        op(b, OP_SELECT, FLOAT,
           cond(b, arith_sub(b->ctx, arith_const(b->ctx, 63), after), NULL),
           load(b, s.a, after), load(b, s.a, s.i));
    store(b, s.out, s.i, sum_of(b, left, same));
    store(b, s.out, s.i, sum_of(b, left, right));
    Pass pass = pass_of(b);
    pass.options = &eager;
    expect_valid(b);
    pass_loads(&pass, b->kernel);
    expect_valid(b);
    // a[i + 1] is read once; what is 0 beside its condition needs it no more.
    expect_text(b, "kernel simple(input a: float[64], output out: float[64])\n" HEAD
                   "  glb0 i < 64 once\n"
                   "    const a_0: float = if(cond(i - 1 >= 0), a[i - 1], 0)\n"
                   "    const a_1: float = a[i]\n"
                   "    out[i] = (a_0 + if(cond(i - 1 >= 0), (a_0 + a_1), 7))\n"
                   "    out[i] = (a_0 + if(cond(-i + 62 >= 0), a[i + 1], a_1))\n");
    build_free(b);
}

static void test_masks(void **state)
{
    (void)state;
    static const KernelOptions plain;
    Simple s = simple_new(ROLE_INPUT);
    Build *b = s.b;
    Program program = {.math = MATH_STANDARD};
    const KExpr *inside = cond(b, arith_addc(b->ctx, s.i, -1), NULL);
    const KExpr *left = op(b, OP_SELECT, FLOAT, inside,
                           load(b, s.a, arith_addc(b->ctx, s.i, -1)), literal(b, 0, FLOAT));
    const Var *sum = declare(b, "sum", literal(b, 0, FLOAT), false);
    for (int i = 0; i < 2; i++) { // of which only the first is a sum of its own
        Stm *add = stm(b, ST_ASSIGN);
        add->var = (Var *)sum;
        add->value = i ? sum_of(b, left, load(b, s.a, s.i))
                       : sum_of(b, left, kexpr_var(b->arena, sum));
    }
    store(b, s.out, s.i, kexpr_var(b->arena, sum));
    Pass pass = {b->ctx, b->arena, &program, &plain};
    for (int strict = 1; strict >= 0; strict--) {
        program.math = strict ? MATH_STRICT : MATH_STANDARD;
        pass_masks(&pass, b->kernel);
        expect_valid(b);
        expect_text(
            b, strict ? "kernel simple(input a: float[64], output out: float[64])\n" HEAD
                        "  glb0 i < 64 once\n"
                        "    var sum: float = 0\n"
                        "    sum = (if(cond(i - 1 >= 0), a[i - 1], 0) + sum)\n"
                        "    sum = (if(cond(i - 1 >= 0), a[i - 1], 0) + a[i])\n"
                        "    out[i] = sum\n"
                      : "kernel simple(input a: float[64], output out: float[64])\n" HEAD
                        "  glb0 i < 64 once\n"
                        "    var sum: float = 0\n"
                        "    sum = if(cond(i - 1 >= 0), (sum + a[i - 1]), sum)\n"
                        "    sum = (if(cond(i - 1 >= 0), a[i - 1], 0) + a[i])\n"
                        "    out[i] = sum\n");
    }
    build_free(b);
}

static void test_loads_in_nested_blocks(void **state)
{
    (void)state;
    Simple s = simple_new(ROLE_INPUT);
    Build *b = s.b;
    const KExpr *x = load(b, s.a, s.i);
    Block *item = b->block;
    const Var *v = declare(b, "a_0", x, true); // is that load already
    Stm *branch = stm(b, ST_IF);
    branch->value = cond(b, arith_addc(b->ctx, s.i, -9), NULL);
    b->block = &branch->body;
    store(b, s.out, s.i, sum_of(b, x, load(b, s.a, num(b, 7))));
    b->block = &branch->other;
    store(b, s.out, s.i, sum_of(b, use(b, v), load(b, s.a, num(b, 7))));
    b->block = item;
    run_loads(b);
    expect_text(b, "kernel simple(input a: float[64], output out: float[64])\n" HEAD
                   "  glb0 i < 64 once\n"
                   "    const a_0: float = a[i]\n"
                   "    if cond(i - 9 >= 0)\n"
                   "      out[i] = (a_0 + a[7])\n"
                   "    else\n"
                   "      out[i] = (a_0 + a[7])\n");
    build_free(b);
}

static void test_loads_around_loop_that_stores(void **state)
{
    (void)state;
    Simple s = simple_new(ROLE_TEMP);
    Build *b = s.b;
    Block *item = b->block;
    const KExpr *x = load(b, s.a, s.i);
    store(b, s.out, s.i, x);
    loop(b, LOOP_SEQ, 0, iter_var(b, "k", 4), 4);
    store(b, s.a, s.i, sum_of(b, x, literal(b, 1, FLOAT)));
    b->block = item;
    store(b, s.out, s.i, x);
    run_loads(b);
    assert_int_equal(count_kind(&b->kernel->body, ST_DECL), 0);
    build_free(b);
}

static void test_loads_across_barrier(void **state)
{
    (void)state;
    Build *b = build_tile(4, 1);
    Stm *group = b->kernel->body.at[0];
    const Buffer *tile = b->kernel->locals.at[0];
    const Arith *l = group->body.at[0]->iter;
    b->block = &group->body;
    const KExpr *x = load(b, tile, num(b, 0));
    Block *old = b->block;
    Block fresh = {0};
    b->block = &fresh;
    declare(b, "before", x, true);
    for (int i = 0; i < old->len; i++)
        VEC_PUSH(b->arena, b->block, old->at[i]);
    loop(b, LOOP_LCL, 0, l, GROUP);
    store(b, b->kernel->params.at[1], l, x);
    group->body = fresh;
    run_loads(b);
    assert_int_equal(count_kind(&b->kernel->body, ST_DECL), 1);
    assert_int_equal(group->body.at[4]->body.at[0]->value->kind, K_LOAD);
    build_free(b);
}

// Indices -----------------------------------------------------------------------------

static void run_indices(Build *b)
{
    Pass pass = pass_of(b);
    expect_valid(b);
    pass_indices(&pass, b->kernel);
    expect_valid(b);
}

static void test_indices_named(void **state)
{
    (void)state;
    Build *b = build_new("rows");
    Buffer *a = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, 4096);
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, 4096);
    const Arith *y = iter_var(b, "y", 62), *x = iter_var(b, "x", 62);
    loop(b, LOOP_GLB, 1, y, 62);
    Block *item = &loop(b, LOOP_GLB, 0, x, 62)->body;
    const Arith *at = plus(b, arith_mulc(b->ctx, y, 64), x);
    Stm *branch = stm(b, ST_IF);
    branch->value = cond(b, arith_addc(b->ctx, x, -1), NULL);
    b->block = &branch->body;
    store(b, out, arith_addc(b->ctx, at, 65), load(b, a, arith_addc(b->ctx, at, 64)));
    b->block = item;
    store(b, out, x, load(b, a, arith_mulc(b->ctx, x, 2)));
    run_indices(b);
    expect_text(b, "kernel rows(input a: float[4096], output out: float[4096])\n" HEAD
                   "  glb1 y < 62 once\n"
                   "    glb0 x < 62 once\n"
                   "      if cond(x - 1 >= 0)\n"
                   "        int i0 = 64*y + x\n" // of the branch that has all its uses
                   "        out[i0 + 65] = a[i0 + 64]\n"
                   "      out[x] = a[2*x]\n");
    build_free(b);
}

static void test_indices_in_their_scope(void **state)
{
    (void)state;
    Build *b = build_new("scopes");
    Buffer *a = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, 4096);
    Buffer *out = buffer(b, "i0", MEM_GLOBAL, ROLE_OUTPUT, 4096);
    const Arith *y = iter_var(b, "y", 64), *k = iter_var(b, "k", 8);
    Block *item = &loop(b, LOOP_GLB, 0, y, 64)->body;
    const Arith *row = arith_mulc(b->ctx, y, 64), *at = plus(b, row, k);
    loop(b, LOOP_SEQ, 0, k, 8);
    store(b, out, at, sum_of(b, load(b, a, at), load(b, a, arith_addc(b->ctx, row, 1))));
    b->block = item;
    store(b, out, row, literal(b, 0, FLOAT));
    run_indices(b);
    expect_text(b, "kernel scopes(input a: float[4096], output i0: float[4096])\n" HEAD
                   "  glb0 y < 64 once\n"
                   "    int i2 = 64*y\n"
                   "    for k < 8\n"
                   "      int i1 = 64*y + k\n"
                   "      i0[i1] = (a[i1] + a[i2 + 1])\n"
                   "    i0[i2] = 0\n");
    build_free(b);
}

// Verifier ----------------------------------------------------------------------------

static void test_verify_accepts(void **state)
{
    (void)state;
    Build *b[] = {build_jacobi(64), build_tile(4, 1), build_reduction(64, 8)};
    for (int i = 0; i < COUNTOF(b); i++) {
        expect_valid(b[i]);
        build_free(b[i]);
    }
}

static void test_verify_scope(void **state)
{
    (void)state;
    Simple s = simple_new(ROLE_INPUT);
    s.b->block = &s.b->kernel->body;
    store(s.b, s.out, s.i, literal(s.b, 0, FLOAT));
    expect_refused(s.b, "L101");
    build_free(s.b);
}

static void test_verify_undeclared(void **state)
{
    (void)state;
    Simple s = simple_new(ROLE_INPUT);
    Var v = {"v", FLOAT, true};
    store(s.b, s.out, s.i, use(s.b, &v));
    expect_refused(s.b, "L102");
    build_free(s.b);
}

static void test_verify_input(void **state)
{
    (void)state;
    Simple s = simple_new(ROLE_INPUT);
    store(s.b, s.a, s.i, literal(s.b, 0, FLOAT));
    expect_refused(s.b, "L103");
    build_free(s.b);
}

static void test_verify_bounds(void **state)
{
    (void)state;
    Simple s = simple_new(ROLE_INPUT);
    store(s.b, s.out, arith_addc(s.b->ctx, s.i, 64), literal(s.b, 0, FLOAT));
    expect_refused(s.b, "L105");
    build_free(s.b);
}

// A barrier in group code under each of: an item's condition, a guard, a loaded condition.
// A load that is on the side where i - 1 >= 0, in a kernel that has it under `standing`.
static Build *build_guarded(const KExpr *standing, const Side *side, Build *b,
                            const Arith *i, const Arith *at)
{
    Buffer *a = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, 64);
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, 64);
    KExpr *element = (KExpr *)load(b, a, at);
    element->side = side;
    loop(b, LOOP_GLB, 0, i, 64);
    if (standing) {
        Stm *branch = stm(b, ST_IF);
        branch->value = standing;
        branch->side = standing == side->cond ? side : NULL;
        b->block = &branch->body;
    }
    store(b, out, i, element);
    return b;
}

static Side side_of(Build *b, const Arith *i)
{
    return (Side){NULL, cond(b, arith_addc(b->ctx, i, -1), NULL), true};
}

// An access that has left its condition is refused, unless another one implies it, or it is
// within its buffer anyway.
static void test_verify_sides(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) {
        Build *b = build_new("guarded");
        const Arith *i = iter_var(b, "gx", 64), *before = arith_addc(b->ctx, i, -1);
        Side side[2] = {side_of(b, i), side_of(b, i)};
        side[1].holds = false;
        const KExpr *stronger = cond(b, arith_addc(b->ctx, i, -2), NULL);
        const KExpr *weaker = cond(b, i, NULL);
        const KExpr *standing[] = {side[0].cond, stronger, weaker, NULL, NULL};
        build_guarded(standing[k], side, b, i, k == 4 ? i : before);
        if (k == 2 || k == 3)
            expect_refused(b, "L109");
        else
            expect_valid(b);
        build_free(b);
    }
}

static void test_verify_barriers(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        Build *b = build_new("divergent");
        Buffer *a = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, 64);
        const Arith *g = iter_var(b, "g", 1), *l = iter_var(b, "l", 64);
        loop(b, LOOP_WRG, 0, g, 1);
        Stm *items = loop(b, LOOP_LCL, 0, l, 64);
        Stm *branch = stm(b, ST_IF);
        branch->value = cond(b, arith_addc(b->ctx, i ? g : l, -3), NULL);
        items->form = i == 1 ? FORM_GUARD : FORM_ONCE;
        if (i == 2)
            branch->value = op(b, OP_LT, type_scalar(S_BOOL), load(b, a, num(b, 0)),
                               literal(b, 0, FLOAT), NULL);
        b->block = &branch->body;
        stm(b, ST_BARRIER);
        expect_refused(b, "L104");
        build_free(b);
    }
}

static void test_verify_nesting(void **state)
{
    (void)state;
    Build *b = build_new("nested");
    loop(b, LOOP_LCL, 0, iter_var(b, "l", 4), 4);
    expect_refused(b, "L107");
    build_free(b);
    b = build_new("twice");
    loop(b, LOOP_GLB, 0, iter_var(b, "x", 4), 4);
    loop(b, LOOP_GLB, 0, iter_var(b, "y", 4), 4);
    expect_refused(b, "L107");
    build_free(b);
}

// An accumulator across two loops over items.
static void test_verify_lives(void **state)
{
    (void)state;
    Build *b = build_new("lives");
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, 64);
    const Arith *g = iter_var(b, "g", 1), *l = iter_var(b, "l", 64);
    Block *group = &loop(b, LOOP_WRG, 0, g, 1)->body;
    const Var *acc = declare(b, "acc", literal(b, 0, FLOAT), false);
    expect_valid(b);
    loop(b, LOOP_LCL, 0, l, 64);
    store(b, out, l, use(b, acc));
    expect_valid(b);
    b->block = group;
    loop(b, LOOP_LCL, 0, l, 64);
    assign(b, acc, literal(b, 1, FLOAT));
    expect_refused(b, "L106");
    build_free(b);
}

static void test_bytes(void **state)
{
    (void)state;
    Build *b = build_tile(4, 1);
    assert_int_equal(kernel_local_bytes(b->kernel), 4 * 65);
    assert_int_equal(kernel_private_bytes(b->kernel), 0);
    Stm *array = stm(b, ST_ARRAY);
    array->buffer = buffer(b, "window", MEM_PRIVATE, ROLE_TEMP, 9);
    assert_int_equal(kernel_private_bytes(b->kernel), 36);
    build_free(b);
}

// Cost --------------------------------------------------------------------------------

// Sixteen outputs of five clamped loads: all passes in well under a millisecond, with room
// for a slow machine and for sanitizers.
static void test_cost(void **state)
{
    (void)state;
    int64_t least = INT64_MAX;
    for (int round = 0; round < 20; round++) {
        Build *b = build_jacobi(4096);
        const Buffer *a = b->kernel->params.at[0], *out = b->kernel->params.at[1];
        const Stm *row = b->kernel->body.at[0];
        const Arith *y = row->iter, *x = row->body.at[0]->iter;
        for (int j = 0; j < 16; j++) {
            const KExpr *s = literal(b, 0, FLOAT);
            const Arith *at = arith_addc(b->ctx, y, j);
            for (int k = 0; k < 5; k++) {
                const Arith *r = clamped(b, arith_addc(b->ctx, at, k % 3 - 1), 4095);
                const Arith *c = clamped(b, arith_addc(b->ctx, x, k / 2 - 1), 4095);
                s = sum_of(b, s, load(b, a, plus(b, arith_mulc(b->ctx, r, 4096), c)));
            }
            store(b, out, plus(b, arith_mulc(b->ctx, at, 4096), x), s);
        }
        Pass pass = pass_of(b);
        int64_t start = clock_ns();
        pass_barriers(&pass, b->kernel);
        pass_loads(&pass, b->kernel);
        pass_indices(&pass, b->kernel);
        least = MIN(least, clock_ns() - start);
        expect_valid(b);
        build_free(b);
    }
    print_message("passes of a kernel of 84 loads: %lld us\n", (long long)least / 1000);
    assert_true(least < 3000000);
}

// Twins -------------------------------------------------------------------------------

// out[i] = x[i] + y[i]; once: x for both; late: y is the first parameter.
static Build *build_sum(bool once, bool late)
{
    enum { N = 64 };
    Build *b = build_new("sum");
    Buffer *first = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, N);
    Buffer *second = once ? first : buffer(b, "b", MEM_GLOBAL, ROLE_INPUT, N);
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, N);
    const Arith *i = iter_var(b, "i", N);
    loop(b, LOOP_GLB, 0, i, N);
    store(b, out, i,
          sum_of(b, load(b, late ? second : first, i), load(b, late ? first : second, i)));
    return b;
}

static void expect_twins(Build *a, Build *b, const int *place)
{
    Buffer **buffer = kernel_twin(a->ctx, a->kernel, b->kernel, a->arena);
    assert_int_equal(buffer != NULL, place != NULL);
    for (int i = 0; place && i < a->kernel->params.len; i++)
        assert_ptr_equal(buffer[i], b->kernel->params.at[place[i]]);
    build_free(a);
    build_free(b);
}

static void test_twins(void **state)
{
    (void)state;
    static const int same[] = {0, 1, 2}, turned[] = {1, 0, 2};
    expect_twins(build_jacobi(16), build_jacobi(16), same);
    expect_twins(build_jacobi(16), build_jacobi(15), NULL);
    expect_twins(build_tile(4, 1), build_tile(4, 1), same);
    expect_twins(build_tile(4, 1), build_tile(4, 2), NULL);
    expect_twins(build_reduction(64, 8), build_reduction(64, 8), same);
    expect_twins(build_reduction(64, 8), build_reduction(64, 9), NULL);
    expect_twins(build_sum(false, false), build_sum(false, true), turned);
    expect_twins(build_sum(true, false), build_sum(false, false), NULL);
    expect_twins(build_sum(false, false), build_sum(true, false), NULL);
    Build *temporary = build_sum(false, false);
    temporary->kernel->params.at[0]->role = ROLE_TEMP;
    expect_twins(build_sum(false, false), temporary, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tile_with_neighbours),
        cmocka_unit_test(test_tile_of_own_element),
        cmocka_unit_test(test_own_element_of_wider_group),
        cmocka_unit_test(test_same_index_not_own),
        cmocka_unit_test(test_global_fence),
        cmocka_unit_test(test_loop_keeps_both),
        cmocka_unit_test(test_double_barrier_once),
        cmocka_unit_test(test_last_barrier),
        cmocka_unit_test(test_strided_groups_keep_last_barrier),
        cmocka_unit_test(test_private_work_needs_none),
        cmocka_unit_test(test_loads_shared),
        cmocka_unit_test(test_loads_after_store),
        cmocka_unit_test(test_loads_in_select),
        cmocka_unit_test(test_loads_behind_conditions),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_loads_in_nested_blocks),
        cmocka_unit_test(test_loads_around_loop_that_stores),
        cmocka_unit_test(test_loads_across_barrier),
        cmocka_unit_test(test_indices_named),
        cmocka_unit_test(test_indices_in_their_scope),
        cmocka_unit_test(test_verify_accepts),
        cmocka_unit_test(test_verify_scope),
        cmocka_unit_test(test_verify_undeclared),
        cmocka_unit_test(test_verify_input),
        cmocka_unit_test(test_verify_bounds),
        cmocka_unit_test(test_verify_sides),
        cmocka_unit_test(test_verify_barriers),
        cmocka_unit_test(test_verify_nesting),
        cmocka_unit_test(test_verify_lives),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_twins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
