// SPDX-License-Identifier: Apache-2.0
//
// Kernels as text: exact expectations for small ones, and for target c the text is compiled
// with the system's compiler and run against the same computation written here.

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lower/build.h"
#include "emit/emit.h"

static const Target *opencl(void)
{
    return target_find("opencl");
}

static const Target *cuda(void)
{
    return target_find("cuda");
}

static const Target *host(void)
{
    return target_find("c");
}

static void expect_kernel(Build *b, const Target *target, const char *text)
{
    Buf out = buf_new();
    emit_kernel(&out, target, &b->unit, b->kernel);
    assert_string_equal(out.text, text);
    buf_release(&out);
}

// The text of `v = value;` in a kernel of target.
static void expect_printed(Build *b, const Target *target, const KExpr *e, const char *text)
{
    Block body = {0};
    Var *v = NEW(b->arena, Var); // the statement stays in the kernel
    *v = (Var){"v", e->type, true};
    b->kernel->body = body;
    b->block = &b->kernel->body;
    assign(b, v, e);
    Buf out = buf_new();
    emit_kernel(&out, target, &b->unit, b->kernel);
    const char *start = strstr(out.text, "v = ");
    assert_non_null(start);
    start += 4;
    size_t len = strlen(text);
    if (strncmp(start, text, len) != 0 || strncmp(start + len, ";\n", 2) != 0)
        fail_msg("%s, not %s", start, text);
    buf_release(&out);
}

static void expect_cl(Build *b, const KExpr *e, const char *text)
{
    expect_printed(b, opencl(), e, text);
}

static void expect_cuda(Build *b, const KExpr *e, const char *text)
{
    expect_printed(b, cuda(), e, text);
}

static void expect_c(Build *b, const KExpr *e, const char *text)
{
    expect_printed(b, host(), e, text);
}

static const KExpr *variable(Build *b, const char *name, const Type *type)
{
    Var *var = NEW(b->arena, Var);
    *var = (Var){name, type, true};
    return use(b, var);
}

// Kernels -----------------------------------------------------------------------------

static void test_targets(void **state)
{
    (void)state;
    assert_null(target_find("fortran"));
    assert_string_equal(target_extension(opencl()), "cl");
    assert_string_equal(target_name(host()), "c");
    const char *yes[] = {"float",    "barrier", "rsqrt",  "yn",
                         "CHAR_BIT", "fw_div",  "xor_eq", "a64l"};
    for (int i = 0; i < COUNTOF(yes); i++)
        assert_true(emit_reserved(yes[i]));
    assert_false(emit_reserved("jacobi") || emit_reserved("or_e") || emit_reserved(""));
}

static void test_jacobi_opencl(void **state)
{
    (void)state;
    Build *b = build_jacobi(64);
    expect_kernel(
        b, opencl(),
        "kernel __attribute__((reqd_work_group_size(64, 4, 1)))\n"
        "void jacobi(global const float *restrict a, global float *restrict out)\n"
        "{\n"
        "    const int y = get_global_id(1);\n"
        "    const int x = get_global_id(0);\n"
        "    if (x < 64) {\n"
        "        out[64*y + x] = a[64*max(y, 1) + x - 64] + a[64*y + max(x, 1) - 1]"
        " + a[64*y + x] +\n"
        "            a[64*y + min(x, 62) + 1];\n"
        "    }\n"
        "}\n");
    build_free(b);
}

static void test_tile_opencl(void **state)
{
    (void)state;
    Build *b = build_tile(4, 1);
    expect_kernel(b, opencl(),
                  "kernel __attribute__((reqd_work_group_size(64, 1, 1)))\n"
                  "void tile(global const float *restrict a, global float *restrict out)\n"
                  "{\n"
                  "    local float tile[65];\n"
                  "\n"
                  "    const int g = get_group_id(0);\n"
                  "    const int l = get_local_id(0);\n"
                  "    tile[l + 1] = a[64*g + l];\n"
                  "    tile[l] = 0.0f;\n"
                  "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                  "    out[64*g + l] = tile[l];\n"
                  "}\n");
    build_free(b);
}

static void test_jacobi_cuda(void **state)
{
    (void)state;
    Build *b = build_jacobi(64);
    expect_kernel(
        b, cuda(),
        "extern \"C\" __global__ void __launch_bounds__(256)\n"
        "jacobi(const float *__restrict__ a, float *__restrict__ out)\n"
        "{\n"
        "    const int y = 4*blockIdx.y + threadIdx.y;\n"
        "    const int x = 64*blockIdx.x + threadIdx.x;\n"
        "    if (x < 64) {\n"
        "        out[64*y + x] = a[64*max(y, 1) + x - 64] + a[64*y + max(x, 1) - 1]"
        " + a[64*y + x] +\n"
        "            a[64*y + min(x, 62) + 1];\n"
        "    }\n"
        "}\n");
    build_free(b);
}

static void test_tile_cuda(void **state)
{
    (void)state;
    Build *b = build_tile(4, 1);
    expect_kernel(b, cuda(),
                  "extern \"C\" __global__ void __launch_bounds__(64)\n"
                  "tile(const float *__restrict__ a, float *__restrict__ out)\n"
                  "{\n"
                  "    __shared__ float tile[65];\n"
                  "\n"
                  "    const int g = blockIdx.x;\n"
                  "    const int l = threadIdx.x;\n"
                  "    tile[l + 1] = a[64*g + l];\n"
                  "    tile[l] = 0.0f;\n"
                  "    __syncthreads();\n"
                  "    out[64*g + l] = tile[l];\n"
                  "}\n");
    build_free(b);
}

static void test_tile_c(void **state)
{
    (void)state;
    Build *b = build_tile(4096, 1);
    const Program program = {.math = MATH_STANDARD};
    pass_simd(&(Pass){.ctx = b->ctx, .arena = b->arena, .program = &program}, b->kernel);
    expect_kernel(b, host(),
                  "static void tile(const float *restrict a, float *restrict out)\n"
                  "{\n"
                  "    #pragma omp parallel for\n"
                  "    for (int g = 0; g < 4096; g++) {\n"
                  "        __attribute__((aligned(64))) float tile[65];\n"
                  "\n"
                  "        #pragma omp simd\n"
                  "        for (int l = 0; l < 64; l++) {\n"
                  "            tile[l + 1] = a[64*g + l];\n"
                  "            tile[l] = 0.0f;\n"
                  "        }\n"
                  "        #pragma omp simd\n"
                  "        for (int l = 0; l < 64; l++) {\n"
                  "            out[64*g + l] = tile[l];\n"
                  "        }\n"
                  "    }\n"
                  "}\n"
                  "\n"
                  "void tile_entry(void *const *arg)\n"
                  "{\n"
                  "    tile(arg[0], arg[1]);\n"
                  "}\n");
    build_free(b);
}

// Threads are not woken for little.
static void test_small_c(void **state)
{
    (void)state;
    Build *b = build_tile(4, 1);
    Buf out = buf_new();
    emit_kernel(&out, host(), &b->unit, b->kernel);
    assert_null(strstr(out.text, "parallel"));
    buf_release(&out);
    build_free(b);
}

static void test_reduction_opencl(void **state)
{
    (void)state;
    Build *b = build_reduction(64, 8);
    expect_kernel(
        b, opencl(),
        "kernel __attribute__((reqd_work_group_size(64, 1, 1)))\n"
        "void reduction(global const float *restrict a, global float *restrict out)\n"
        "{\n"
        "    const int i = get_global_id(0);\n"
        "    float acc = 0.0f;\n"
        "    for (int j = 0; j < 8; j++) {\n"
        "        acc += a[8*i + j];\n"
        "    }\n"
        "    out[i] = acc;\n"
        "}\n");
    build_free(b);
}

static void test_strided_and_generic(void **state)
{
    (void)state;
    Build *b = build_new("generic");
    const Arith *n = arith_size(b->ctx, "N");
    const Arith *i = arith_var(b->ctx, "i", num(b, 0), arith_addc(b->ctx, n, -1));
    Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, 1);
    out->count = n;
    VEC_PUSH(b->arena, &b->kernel->sizes, n);
    Stm *s = loop(b, LOOP_GLB, 0, i, 1);
    s->extent = n;
    s->form = FORM_LOOP;
    s->threads = num(b, 1024);
    Stm *branch = stm(b, ST_IF);
    branch->value = cond(b, arith_sub(b->ctx, arith_addc(b->ctx, n, -2), i), NULL);
    b->block = &branch->body;
    store(b, out, i, literal(b, 1, FLOAT));
    b->block = &branch->other;
    store(b, out, i, literal(b, 2, FLOAT));
    b->kernel->wide = true;
    expect_kernel(b, opencl(),
                  "kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
                  "void generic(global float *restrict out, const int N)\n"
                  "{\n"
                  "    for (long i = get_global_id(0); i < N; i += 1024) {\n"
                  "        if (i + 2 <= N) {\n"
                  "            out[i] = 1.0f;\n"
                  "        } else {\n"
                  "            out[i] = 2.0f;\n"
                  "        }\n"
                  "    }\n"
                  "}\n");
    build_free(b);
}

// Values ------------------------------------------------------------------------------

static void test_literals(void **state)
{
    (void)state;
    Build *b = build_new("k");
    expect_cl(b, literal(b, 0.5, FLOAT), "0.5f");
    expect_cl(b, literal(b, 0.1, FLOAT), "0.1f");
    expect_cl(b, literal(b, 118, FLOAT), "118.0f");
    expect_cl(b, literal(b, 1e30, FLOAT), "1e+30f");
    expect_cl(b, literal(b, 0.1, type_scalar(S_DOUBLE)), "0.1");
    expect_cl(b, literal(b, 1.0 / 3, type_scalar(S_DOUBLE)), "0.3333333333333333");
    expect_cl(b, literal(b, 0.5, type_scalar(S_HALF)), "(half)0.5f");
    expect_cl(b, literal(b, 7, type_scalar(S_INT)), "7");
    expect_cl(b, literal(b, 1, type_scalar(S_BOOL)), "true");
    expect_cl(b, literal(b, -INFINITY, FLOAT), "-INFINITY");
    expect_cl(b, literal(b, INFINITY, type_scalar(S_DOUBLE)), "(double)INFINITY");
    expect_cl(b, literal(b, NAN, FLOAT), "NAN");
    expect_cl(b, literal(b, 0.5, type_vector(S_FLOAT, 4)), "(float4)(0.5f)");
    expect_c(b, literal(b, 0.5, type_vector(S_FLOAT, 2)), "(float2){0.5f, 0.5f}");
    build_free(b);
}

static void test_parentheses(void **state)
{
    (void)state;
    Build *b = build_new("k");
    const KExpr *x = variable(b, "x", FLOAT), *y = variable(b, "y", FLOAT);
    const KExpr *sum = sum_of(b, x, y), *five = literal(b, 5, FLOAT);
    const Type *bools = type_scalar(S_BOOL);
    expect_cl(b, op(b, OP_MUL, FLOAT, five, sum, NULL), "5.0f*(x + y)");
    expect_cl(b, op(b, OP_DIV, FLOAT, sum, five, NULL), "(x + y) / 5.0f");
    expect_cl(b, op(b, OP_SUB, FLOAT, x, sum, NULL), "x - (x + y)");
    expect_cl(b, op(b, OP_SUB, FLOAT, sum, x, NULL), "x + y - x");
    expect_cl(b, op(b, OP_NEG, FLOAT, sum, NULL, NULL), "-(x + y)");
    const KExpr *less = op(b, OP_LT, bools, x, y, NULL);
    const KExpr *both = op(b, OP_AND, bools, less, less, NULL);
    expect_cl(b, op(b, OP_NOT, bools, both, NULL, NULL), "!(x < y && x < y)");
    expect_cl(b, op(b, OP_OR, bools, less, both, NULL), "x < y || (x < y && x < y)");
    const KExpr *choice = op(b, OP_SELECT, FLOAT, both, x, y);
    expect_cl(b, sum_of(b, choice, x), "(x < y && x < y ? x : y) + x");
    expect_cl(b, op(b, OP_SELECT, FLOAT, less, x, choice),
              "x < y ? x : x < y && x < y ? x : y");
    build_free(b);
}

static void test_operations(void **state)
{
    (void)state;
    Build *b = build_new("k");
    const Type *ints = type_scalar(S_INT), *doubles = type_scalar(S_DOUBLE);
    const KExpr *x = variable(b, "x", FLOAT), *n = variable(b, "n", ints);
    const KExpr *d = variable(b, "d", doubles);
    const KExpr *smaller = op(b, OP_MINIMUM, FLOAT, x, n, NULL);
    expect_cl(b, smaller, "fmin(x, (float)n)");
    expect_c(b, smaller, "fw_lesserf(x, (float)n)");
    expect_cl(b, op(b, OP_MAXIMUM, ints, n, n, NULL), "max(n, n)");
    expect_c(b, op(b, OP_MAXIMUM, ints, n, n, NULL), "fw_max(n, n)");
    expect_c(b, op(b, OP_SQRT, doubles, d, NULL, NULL), "sqrt(d)");
    expect_c(b, op(b, OP_RSQRT, FLOAT, x, NULL, NULL), "fw_rsqrtf(x)");
    expect_cl(b, op(b, OP_DIV, ints, n, n, NULL), "fw_div(n, n)");
    expect_cl(b, op(b, OP_MOD, ints, n, n, NULL), "fw_mod(n, n)");
    expect_cl(b, op(b, OP_ABS, ints, n, NULL, NULL), "fw_abs(n)");
    expect_cl(b, op(b, OP_FLOAT, FLOAT, d, NULL, NULL), "(float)d");
    expect_cl(b, op(b, OP_FLOAT, FLOAT, x, NULL, NULL), "x");
    build_free(b);
}

static void test_integers(void **state)
{
    (void)state;
    Build *b = build_new("k");
    ArithCtx *c = b->ctx;
    const Arith *y = iter_var(b, "y", 100), *x = iter_var(b, "x", 100), *k = num(b, 7);
    const Arith *at = plus(b, x, arith_mulc(c, y, 4096));
    expect_cl(b, index_value(b, arith_addc(c, at, -1)), "4096*y + x - 1");
    expect_cl(b, index_value(b, arith_div(c, x, k)), "x/7");
    const Arith *any = arith_var(c, "z", NULL, NULL);
    expect_cl(b, index_value(b, arith_div(c, any, k)), "fw_div(z, 7)");
    expect_c(b, index_value(b, arith_mod(c, any, k)), "fw_mod(z, 7)");
    expect_cl(b, index_value(b, arith_mulc(c, arith_div(c, arith_addc(c, x, 2), k), 64)),
              "64*((x + 2)/7)");
    expect_cl(b, index_value(b, arith_sub(c, num(b, 99), x)), "99 - x");
    expect_cl(b, index_value(b, arith_mulc(c, x, -1)), "-x");
    expect_c(b, index_value(b, arith_min(c, x, y)), "fw_min(x, y)");
    const KExpr *i = index_value(b, arith_addc(c, x, -1));
    expect_cl(b, op(b, OP_MUL, type_scalar(S_INT), i, i, NULL),
              "(int)((uint)(x - 1)*(uint)(x - 1))");
    expect_cl(b, op(b, OP_FLOAT, FLOAT, i, NULL, NULL), "(float)(x - 1)");
    build_free(b);
}

static void test_conditions(void **state)
{
    (void)state;
    Build *b = build_new("k");
    ArithCtx *c = b->ctx;
    const Arith *x = iter_var(b, "x", 4096), *y = iter_var(b, "y", 4096);
    const Arith *low = arith_addc(c, x, -1), *high = arith_sub(c, num(b, 4094), x);
    expect_cl(b, cond(b, low, NULL), "x >= 1");
    expect_cl(b, cond(b, low, high), "x >= 1 && x <= 4094");
    expect_cl(b, cond(b, arith_sub(c, y, x), NULL), "x <= y");
    expect_cl(b, cond(b, arith_addc(c, arith_sub(c, y, x), -1), NULL), "x < y");
    expect_cl(b, cond(b, arith_addc(c, arith_sub(c, y, x), 3), NULL), "x <= y + 3");
    expect_cl(b, cond(b, arith_addc(c, arith_sub(c, y, x), -3), NULL), "x + 3 <= y");
    expect_cl(b, cond(b, num(b, 0), NULL), "true");
    expect_cl(b,
              op(b, OP_SELECT, FLOAT, cond(b, low, high), literal(b, 1, FLOAT),
                 literal(b, 0, FLOAT)),
              "x >= 1 && x <= 4094 ? 1.0f : 0.0f");
    expect_cl(b, op(b, OP_NOT, type_scalar(S_BOOL), cond(b, low, NULL), NULL, NULL),
              "!(x >= 1)");
    build_free(b);
}

static void test_vectors(void **state)
{
    (void)state;
    Build *b = build_new("k");
    const Type *four = type_vector(S_FLOAT, 4), *two = type_vector(S_FLOAT, 2);
    const Buffer *a = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, 4096);
    const Arith *i = iter_var(b, "i", 512);
    KExpr *e = value(b, K_LOAD, four);
    e->buffer = a;
    e->arith = arith_mulc(b->ctx, i, 4);
    expect_cl(b, e, "*(global const float4 *)&a[4*i]");
    expect_c(b, e, "*(const fw_float4 *)&a[4*i]");
    KExpr *odd = value(b, K_LOAD, four);
    odd->buffer = a;
    odd->arith = arith_addc(b->ctx, e->arith, 1);
    expect_cl(b, odd, "vload4(0, &a[4*i + 1])");
    KExpr *lane = value(b, K_LANE, FLOAT);
    const KExpr *v = variable(b, "w", two), *arg[] = {v};
    lane->arg = arg;
    lane->n = 1;
    lane->lane = 1;
    expect_cl(b, lane, "w.s1");
    expect_c(b, lane, "w[1]");
    const KExpr *scaled = op(b, OP_MUL, two, literal(b, 2, two), v, NULL);
    expect_cl(b, scaled, "2.0f*w");
    expect_c(b, scaled, "2.0f*w");
    expect_cl(b, op(b, OP_SQRT, two, scaled, NULL, NULL), "sqrt(2.0f*w)");
    expect_c(b, op(b, OP_SQRT, two, scaled, NULL, NULL),
             "(float2){sqrtf(2.0f*w[0]), sqrtf(2.0f*w[1])}");
    const KExpr *less = op(b, OP_LT, type_vector(S_BOOL, 2), v, literal(b, 0, two), NULL);
    expect_cl(b, op(b, OP_SELECT, two, less, v, scaled),
              "(float2)(w.s0 < 0.0f ? w.s0 : 2.0f*w.s0, w.s1 < 0.0f ? w.s1 : 2.0f*w.s1)");
    build_free(b);
}

// Structs: infix arithmetic on whole ones, everything else by component; only aligned ones
// are loaded and stored whole.
static void test_vectors_cuda(void **state)
{
    (void)state;
    Build *b = build_new("k");
    const Type *four = type_vector(S_FLOAT, 4), *two = type_vector(S_FLOAT, 2);
    const Buffer *a = buffer(b, "a", MEM_GLOBAL, ROLE_INPUT, 4096);
    const Arith *i = iter_var(b, "i", 512), *aligned = arith_mulc(b->ctx, i, 4);
    KExpr *whole = value(b, K_LOAD, four), *odd = value(b, K_LOAD, four);
    whole->buffer = odd->buffer = a;
    whole->arith = aligned;
    odd->arith = arith_addc(b->ctx, aligned, 1);
    expect_cuda(b, whole, "*(const float4 *)&a[4*i]");
    expect_cuda(b, odd, "float4{a[4*i + 1], a[4*i + 2], a[4*i + 3], a[4*i + 4]}");
    const KExpr *v = variable(b, "w", two);
    const KExpr *scaled = op(b, OP_MUL, two, literal(b, 2, two), v, NULL);
    expect_cuda(b, scaled, "2.0f*w");
    expect_cuda(b, op(b, OP_SQRT, two, scaled, NULL, NULL),
                "float2{sqrtf(2.0f*w.x), sqrtf(2.0f*w.y)}");
    expect_cuda(b, op(b, OP_NEG, two, v, NULL, NULL), "float2{-w.x, -w.y}");
    build_free(b);
}

static void test_vector_store_cuda(void **state)
{
    (void)state;
    Build *b = build_new("k");
    const Type *two = type_vector(S_FLOAT, 2);
    const Buffer *out = buffer(b, "out", MEM_GLOBAL, ROLE_OUTPUT, 4096);
    store(b, out, num(b, 8), variable(b, "v", two));
    store(b, out, num(b, 11), variable(b, "v", two));
    expect_kernel(b, cuda(),
                  "extern \"C\" __global__ void __launch_bounds__(1)\n"
                  "k(float *__restrict__ out)\n"
                  "{\n"
                  "    *(float2 *)&out[8] = v;\n"
                  "    out[11] = v.x;\n"
                  "    out[12] = v.y;\n"
                  "}\n");
    build_free(b);
}

static void test_operations_cuda(void **state)
{
    (void)state;
    Build *b = build_new("k");
    const Type *half = type_scalar(S_HALF), *wide = type_scalar(S_DOUBLE);
    const Type *whole = type_scalar(S_INT);
    const KExpr *x = variable(b, "x", FLOAT), *h = variable(b, "h", half);
    const KExpr *d = variable(b, "d", wide), *n = variable(b, "n", whole);
    expect_cuda(b, op(b, OP_RSQRT, FLOAT, x, NULL, NULL), "rsqrtf(x)");
    expect_cuda(b, op(b, OP_RSQRT, wide, d, NULL, NULL), "rsqrt(d)");
    expect_cuda(b, op(b, OP_MAXIMUM, half, h, literal(b, 1, half), NULL),
                "__hmax(h, (half)1.0f)");
    expect_cuda(b, op(b, OP_MINIMUM, whole, n, literal(b, 3, whole), NULL), "min(n, 3)");
    expect_cuda(b, op(b, OP_DIV, whole, n, literal(b, 3, whole), NULL), "fw_div(n, 3)");
    build_free(b);
}

static void test_taken_names(void **state)
{
    (void)state;
    Build *b = build_new("k");
    expect_cl(b, variable(b, "local", FLOAT), "local_");
    Function fun = {.name = "f"};
    VEC_PUSH(b->arena, &b->program.funs, &fun);
    expect_cl(b, variable(b, "f", FLOAT), "f_");
    build_free(b);
}

// Functions ---------------------------------------------------------------------------

static Function *new_function(Build *b, const char *name, const char *first)
{
    Function *fun = NEW(b->arena, Function);
    fun->name = name;
    fun->nparam = 2;
    fun->params = NEW_ARRAY(b->arena, Param *, 2);
    fun->params[0] = param_new(b->ir, first, FLOAT);
    fun->params[1] = param_new(b->ir, "y", FLOAT);
    fun->result = FLOAT;
    VEC_PUSH(b->arena, &b->program.funs, fun);
    return fun;
}

static Expr *typed(Expr *expr, const Type *type)
{
    expr->type = type;
    return expr;
}

static Expr *product(Build *b, Param *p, Param *q)
{
    return typed(expr_op(b->ir, OP_MUL, expr_param(b->ir, p), expr_param(b->ir, q), NULL),
                 FLOAT);
}

// Where several launches follow each other, each kernel begins by waiting.
static void test_follow(void **state)
{
    (void)state;
    Build *b = build_tile(4, 0);
    Launch launch = {
        .kernel = b->kernel, .buffer = b->kernel->params.at, .global = b->kernel->global};
    for (int n = 1; n < 4; n++) {
        VEC_PUSH(b->arena, &b->unit.launches, launch);
        Buf out = buf_new();
        emit_kernel(&out, cuda(), &b->unit, b->kernel);
        assert_int_equal(strstr(out.text, "{\n    fw_follow();\n") != NULL, n > 1);
        assert_int_equal(emit_follows(cuda(), &b->unit), n > 1);
        buf_clear(&out);
        emit_kernel(&out, opencl(), &b->unit, b->kernel);
        assert_null(strstr(out.text, "fw_follow"));
        assert_false(emit_follows(opencl(), &b->unit));
        buf_release(&out);
    }
    build_free(b);
}

static void test_functions(void **state)
{
    (void)state;
    Build *b = build_new("k");
    Function *f = new_function(b, "dot", "half");
    Param *t = param_new(b->ir, "y", FLOAT); // the name is taken already
    Expr *sum = typed(expr_op(b->ir, OP_ADD, expr_param(b->ir, t),
                              typed(expr_literal(b->ir, 5, false), FLOAT), NULL),
                      FLOAT);
    f->body = typed(expr_let(b->ir, t, product(b, f->params[0], f->params[1]), sum), FLOAT);
    Function *g = new_function(b, "g", "x");
    g->text = "\n    return x + y;\n  ";
    Buf out = buf_new();
    emit_prelude(&out, opencl(), &b->program);
    const char *tail = strstr(out.text, "\nfloat dot_(");
    assert_non_null(tail);
    assert_string_equal(tail, "\nfloat dot_(float half_, float y)\n"
                              "{\n"
                              "    const float y_1 = half_*y;\n"
                              "    return y_1 + 5.0f;\n"
                              "}\n"
                              "\nfloat g(float x, float y)\n"
                              "{\n"
                              "    return x + y;\n"
                              "}\n");
    assert_null(strstr(out.text, "fp64"));
    g->result = type_scalar(S_DOUBLE);
    buf_clear(&out);
    emit_prelude(&out, opencl(), &b->program);
    assert_non_null(strstr(out.text, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"));
    buf_release(&out);
    build_free(b);
}

// Halfs that are folded by key become floats, of which the program itself has none.
static void test_vectors_of_words(void **state)
{
    (void)state;
    Build *b = build_new("k");
    Function *f = new_function(b, "h", "x");
    f->result = f->params[0]->type = f->params[1]->type = type_scalar(S_HALF);
    f->body = expr_param(b->ir, f->params[0]);
    f->body->type = f->result;
    Buf out = buf_new();
    emit_prelude(&out, target_find("cuda"), &b->program);
    assert_non_null(strstr(out.text, "struct __align__(16) half8 {"));
    assert_non_null(strstr(out.text, "struct __align__(32) float8 {"));
    assert_null(strstr(out.text, "double8"));
    buf_release(&out);
    build_free(b);
}

// A let under a condition must not be computed before it.
static void test_conditional_let(void **state)
{
    (void)state;
    Build *b = build_new("k");
    Function *f = new_function(b, "f", "x");
    Param *t = param_new(b->ir, "t", FLOAT);
    Expr *let =
        typed(expr_let(b->ir, t, product(b, f->params[0], f->params[1]), product(b, t, t)),
              FLOAT);
    Expr *less = typed(expr_op(b->ir, OP_LT, expr_param(b->ir, f->params[0]),
                               expr_param(b->ir, f->params[1]), NULL),
                       type_scalar(S_BOOL));
    f->body =
        typed(expr_op(b->ir, OP_SELECT, less, let, expr_param(b->ir, f->params[0])), FLOAT);
    Buf out = buf_new();
    emit_prelude(&out, opencl(), &b->program);
    assert_non_null(strstr(out.text, "    return x < y ? x*y*(x*y) : x;\n"));
    buf_release(&out);
    build_free(b);
}

// Whole files -------------------------------------------------------------------------

static void test_unit(void **state)
{
    (void)state;
    Build *b = build_tile(4, 0);
    Function main_def = {.name = "copy"};
    SizeDecl size = {.name = "N", .arith = num(b, 256)};
    b->program.main = &main_def;
    VEC_PUSH(b->arena, &b->program.sizes, size);
    Launch launch = {
        .kernel = b->kernel, .buffer = b->kernel->params.at, .global = b->kernel->global};
    VEC_PUSH(b->arena, &b->unit.launches, launch);
    b->program.math = MATH_EXACT; // for which CUDA needs no options
    Buf out = buf_new();
    emit_unit(&out, opencl(), &b->unit);
    const char *options =
        "//\n// Compiler options: -cl-fp32-correctly-rounded-divide-sqrt\n\nkernel ";
    assert_non_null(strstr(out.text, options));
    buf_clear(&out);
    emit_unit(&out, cuda(), &b->unit);
    const char *head =
        "// copy: N = 256\n"
        "//\n"
        "// Launches, in order:\n"
        "//   tile, global (256, 1, 1), local (64, 1, 1), arguments (a, out)\n"
        "\n";
    assert_int_equal(strncmp(out.text, head, strlen(head)), 0);
    // It uses no helper, and no vectors.
    assert_int_equal(strncmp(out.text + strlen(head), "extern \"C\"", 10), 0);
    buf_clear(&out);
    Var v = {"v", type_vector(S_FLOAT, 8), true};
    b->block = &b->kernel->body;
    assign(b, &v, op(b, OP_ADD, v.type, use(b, &v), use(b, &v), NULL));
    store(b, b->kernel->params.at[1],
          arith_div(b->ctx, arith_var(b->ctx, "z", NULL, NULL), num(b, 7)),
          literal(b, INFINITY, FLOAT));
    b->program.funs.len = 0;
    emit_unit(&out, cuda(), &b->unit);
    assert_non_null(strstr(out.text, "int fw_div("));
    assert_non_null(strstr(out.text, "#define INFINITY"));
    assert_null(strstr(out.text, "fw_divl("));
    buf_release(&out);
    build_free(b);
}

typedef void Entry(void *const *arg);

// Compiles and runs the kernel as C on in, after the passes that candidates go through.
static void run_c(Build *b, float *in, float *out)
{
    char dir[] = "/tmp/fw_emit_XXXXXX", path[64], command[256], symbol[64];
    static const KernelOptions plain;
    Pass pass = {b->ctx, b->arena, NULL, &plain};
    pass_barriers(&pass, b->kernel);
    pass_loads(&pass, b->kernel);
    pass_indices(&pass, b->kernel);
    Buf text = buf_new();
    emit_unit(&text, host(), &b->unit);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/k.c", dir);
    assert_true(file_write(path, text.text, text.len));
    snprintf(command, sizeof command,
             "cc -O1 -Wall -Werror -fopenmp -shared -fPIC -o %s/k.so %s -lm", dir, path);
    assert_int_equal(system(command), 0);
    unlink(path);
    snprintf(path, sizeof path, "%s/k.so", dir);
    void *library = dlopen(path, RTLD_NOW);
    assert_non_null(library);
    snprintf(symbol, sizeof symbol, "%s_entry", b->kernel->name);
    Entry *entry;
    *(void **)&entry = dlsym(library, symbol);
    assert_non_null(entry);
    entry((void *[]){in, out});
    unlink(path);
    rmdir(dir);
    buf_release(&text);
}

enum { N = 16 };

static float at_clamped(const float *a, int y, int x)
{
    return a[N * MIN(MAX(y, 0), N - 1) + MIN(MAX(x, 0), N - 1)];
}

static void test_run_c(void **state)
{
    (void)state;
    float in[512], out[512] = {0};
    for (int i = 0; i < 512; i++)
        in[i] = (float)(i * i % 101);
    Build *b = build_jacobi(N);
    run_c(b, in, out);
    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++) {
            float want = at_clamped(in, y - 1, x) + at_clamped(in, y, x - 1) +
                         at_clamped(in, y, x) + at_clamped(in, y, x + 1);
            assert_float_equal(out[N * y + x], want, 0);
        }
    build_free(b);
    b = build_tile(8, 0);
    run_c(b, in, out);
    for (int i = 0; i < 512; i++)
        assert_float_equal(out[i], in[i], 0);
    build_free(b);
    b = build_reduction(64, 8);
    run_c(b, in, out);
    for (int i = 0; i < 64; i++) {
        float want = 0;
        for (int j = 0; j < 8; j++)
            want += in[8 * i + j];
        assert_float_equal(out[i], want, 0);
    }
    build_free(b);
}

// An exchange within a warp, which OpenCL has a helper for: only where it is used.
static void test_shuffle(void **state)
{
    (void)state;
    Build *b = build_new("k");
    const KExpr *x = variable(b, "x", FLOAT);
    KExpr e = {.kind = K_SHUFFLE,
               .type = FLOAT,
               .n = 1,
               .arg = &x,
               .arith = arith_addc(b->ctx, iter_var(b, "lane", 32), 1)};
    expect_printed(b, cuda(), &e, "__shfl_sync(0xffffffffu, x, lane + 1)");
    expect_printed(b, opencl(), &e, "fw_shuffle(x, lane + 1)");
    Buf with, without;
    with = buf_new();
    without = buf_new();
    emit_unit(&with, opencl(), &b->unit);
    assert_non_null(strstr(with.text, "shfl.sync.idx.b32"));
    b->kernel->body.len = 0;
    emit_unit(&without, opencl(), &b->unit);
    assert_null(strstr(without.text, "shfl"));
    buf_release(&with);
    buf_release(&without);
    build_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_jacobi_opencl),
        cmocka_unit_test(test_tile_opencl),
        cmocka_unit_test(test_jacobi_cuda),
        cmocka_unit_test(test_tile_cuda),
        cmocka_unit_test(test_tile_c),
        cmocka_unit_test(test_small_c),
        cmocka_unit_test(test_reduction_opencl),
        cmocka_unit_test(test_strided_and_generic),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_parentheses),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_vectors_cuda),
        cmocka_unit_test(test_vector_store_cuda),
        cmocka_unit_test(test_operations_cuda),
        cmocka_unit_test(test_taken_names),
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_vectors_of_words),
        cmocka_unit_test(test_conditional_let),
        cmocka_unit_test(test_unit),
        cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_run_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
