// SPDX-License-Identifier: Apache-2.0
//
// What stands before everything else in a program: pragmas or headers, and what a target
// lacks of what kernels use: division rounded down, vectors. Of vectors, only those that
// the kernels have.

#include "emit/print.h"

#include <string.h>

// What a program uses -----------------------------------------------------------------

bool program_uses(const Program *program, Scalar scalar)
{
    for (int i = 0; i < program->funs.len; i++)
        if (function_uses(program->funs.at[i], scalar))
            return true;
    for (int i = 0; i < program->defs.len; i++)
        if (function_uses(program->defs.at[i], scalar))
            return true;
    return false;
}

// Helpers -----------------------------------------------------------------------------

// A few lines that are needed where one of two words occurs.
typedef struct {
    const char *word[2];
    const char *text; // what stands before a function goes where it says @
} Helper;

static const Helper int_helper[] = {
    {{"fw_div(", "fw_mod("},
     "// Division rounded down, and its remainder; both wrap.\n"
     "@int fw_div(int a, int b)\n"
     "{\n"
     "    if (b == -1)\n"
     "        return (int)-(unsigned)a;\n"
     "    return a / b - (a % b != 0 && (a < 0) != (b < 0));\n"
     "}\n"
     "@int fw_mod(int a, int b)\n"
     "{\n"
     "    return (int)((unsigned)a - (unsigned)fw_div(a, b)*(unsigned)b);\n"
     "}\n"},
    {{"fw_divl(", "fw_modl("},
     "@long fw_divl(long a, long b)\n"
     "{\n"
     "    if (b == -1)\n"
     "        return (long)-(unsigned long)a;\n"
     "    return a / b - (a % b != 0 && (a < 0) != (b < 0));\n"
     "}\n"
     "@long fw_modl(long a, long b)\n"
     "{\n"
     "    return (long)((unsigned long)a - (unsigned long)fw_divl(a, b)*(unsigned "
     "long)b);\n"
     "}\n"},
    {{"fw_abs("},
     "// That of the least int wraps.\n"
     "@int fw_abs(int a)\n"
     "{\n"
     "    return a < 0 ? (int)-(unsigned)a : a;\n"
     "}\n"},
    {{"fw_absl("},
     "@long fw_absl(long a)\n"
     "{\n"
     "    return a < 0 ? (long)-(unsigned long)a : a;\n"
     "}\n"},
};

static bool needed(const Helper *helper, const Uses *uses)
{
    if (!uses->text)
        return true;
    for (int i = 0; i < 2; i++)
        if (helper->word[i] && strstr(uses->text, helper->word[i]))
            return true;
    return false;
}

void put_with(Buf *out, const char *text, const char *holes, const char *const *with)
{
    for (const char *hole; *text; text++)
        if ((hole = strchr(holes, *text)))
            buf_puts(out, with[hole - holes]);
        else
            buf_putc(out, *text);
}

static void put_helpers(Buf *out, const Helper *helper, int n, const char *function,
                        const Uses *uses)
{
    size_t before = out->len;
    for (int i = 0; i < n; i++)
        if (needed(&helper[i], uses))
            put_with(out, helper[i].text, "@", &function);
    buf_puts(out, out->len > before ? "\n" : "");
}

// A bf16 is held as the upper half of the float that it is; operations compute in float.
static const Helper bf16_helper = {
    {"fw_float(", "fw_bf16("},
    "@float fw_float(unsigned short x)\n"
    "{\n"
    "    union { unsigned int bits; float value; } y;\n"
    "    y.bits = (unsigned int)x << 16;\n"
    "    return y.value;\n"
    "}\n"
    "@unsigned short fw_bf16(float x)\n"
    "{\n"
    "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n"
    "    unsigned short y;\n"
    "    asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));\n"
    "    return y;\n"
    "#else\n"
    "    union { float value; unsigned int bits; } y;\n"
    "    y.value = x;\n"
    "    return x != x ? 0x7fc0 : (y.bits + 0x7fff + (y.bits >> 16 & 1)) >> 16;\n"
    "#endif\n"
    "}\n"};

void put_scalar_helpers(Buf *out, const Target *target, const Program *program,
                        const Uses *uses)
{
    put_helpers(out, int_helper, COUNTOF(int_helper), target->function, uses);
    if (program_uses(program, S_BF16))
        put_helpers(out, &bf16_helper, 1, target->function, uses);
}

// The bit of a width; of those that have arithmetic it stands three higher.
static unsigned width_bit(int width)
{
    return width == 2 ? 1 : width == 4 ? 2 : 4;
}

void vectors_add(VectorSet *set, const Type *type, bool arithmetic)
{
    if (type->kind != T_VECTOR)
        return;
    unsigned bit = width_bit(type->width);
    unsigned char *of = &set->of[scalar_info[type->scalar].vectors];
    *of = (unsigned char)(*of | bit | (arithmetic ? bit << 3 : 0));
}

// What compares is an int, and narrower numbers that are folded by key become words.
void vectors_of_program(VectorSet *set, const Program *program)
{
    set->of[S_INT] = 0xff;
    for (int s = 0; s < SCALARS; s++)
        if (s != S_BOOL && program_uses(program, (Scalar)s))
            set->of[scalar_info[s].vectors] =
                set->of[scalar_info[scalar_word((Scalar)s)].vectors] = 0xff;
}

static bool any_vector(const VectorSet *set, Scalar scalar, int width)
{
    return (set->of[scalar] & width_bit(width)) != 0;
}

static bool any_arithmetic(const VectorSet *set, Scalar scalar, int width)
{
    return (set->of[scalar] & width_bit(width) << 3) != 0;
}

// Whether structs of this type have infix arithmetic: C would widen narrower integers.
bool vector_arithmetic(Scalar scalar)
{
    return !scalar_info[scalar].integer || scalar_info[scalar].bytes >= 4;
}

// OpenCL ------------------------------------------------------------------------------

// Exchange within a warp, for which OpenCL C has no word; NVIDIA's takes PTX.
static const Helper shuffle_helper = {
    {"fw_shuffle(", NULL},
    "#ifdef __NV_CL_C_VERSION\n"
    "// What work-item `lane` of the warp has for x.\n"
    "int __attribute__((overloadable)) fw_shuffle(int x, int lane)\n"
    "{\n"
    "    int y;\n"
    "    __asm__ volatile(\"shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;\" : \"=r\"(y) "
    ": \"r\"(x), "
    "\"r\"(lane));\n"
    "    return y;\n"
    "}\n"
    "float __attribute__((overloadable)) fw_shuffle(float x, int lane)\n"
    "{\n"
    "    return as_float(fw_shuffle(as_int(x), lane));\n"
    "}\n"};
static const char shuffle_double[] =
    "double __attribute__((overloadable)) fw_shuffle(double x, int lane)\n"
    "{\n"
    "    int2 y = as_int2(x);\n"
    "    return as_double((int2)(fw_shuffle(y.x, lane), fw_shuffle(y.y, lane)));\n"
    "}\n";
static const char shuffle_half[] =
    "half __attribute__((overloadable)) fw_shuffle(half x, int lane)\n"
    "{\n"
    "    return as_half((short)fw_shuffle((int)as_short(x), lane));\n"
    "}\n";

static void put_shuffles(Buf *out, const Program *program, const Uses *uses)
{
    if (!needed(&shuffle_helper, uses))
        return;
    buf_puts(out, shuffle_helper.text);
    buf_puts(out, program_uses(program, S_DOUBLE) ? shuffle_double : "");
    buf_puts(out, program_uses(program, S_HALF) ? shuffle_half : "");
    buf_puts(out, "#endif\n\n");
}

// Of --math strict, of each type T, whose functions end in S: the same on every target. Two
// choices, not one of a disjunction, of which gcc 12 makes no vectors where calls are
// nested (nested calls in 3 x 3, 2048 x 2048 floats: 65 against 1 ms).
static const Helper strict_helper[] = {
    {{"fw_lesser", NULL},
     "@T fw_lesserS(T a, T b) { const T m = a < b ? a : b; return b != b ? a : m; }\n"},
    {{"fw_greater", NULL},
     "@T fw_greaterS(T a, T b) { const T m = a > b ? a : b; return b != b ? a : m; }\n"},
    {{"fw_rsqrt", NULL}, "@T fw_rsqrtS(T x) { return 1 / sqrtS(x); }\n"},
};

static void put_strict(Buf *out, int n, const char *start, const char *type,
                       const char *suffix, const Uses *uses)
{
    for (int i = 0; i < n; i++)
        if (needed(&strict_helper[i], uses))
            put_with(out, strict_helper[i].text, "@TS",
                     (const char *const[]){start, type, suffix});
}

// CUDA has them in strict programs, C in all: gcc makes no vectors of calls of fmaxf.
static void put_strict_c(Buf *out, int n, const char *start, const Uses *uses)
{
    size_t before = out->len;
    put_strict(out, n, start, "float", "f", uses);
    put_strict(out, n, start, "double", "", uses);
    buf_puts(out, out->len > before ? "\n" : "");
}

static void put_strict_opencl(Buf *out, const Program *program, const Uses *uses)
{
    static const Scalar scalars[] = {S_FLOAT, S_DOUBLE, S_HALF};
    if (program->math != MATH_STRICT)
        return;
    buf_puts(out, "#pragma OPENCL FP_CONTRACT OFF\n\n");
    size_t before = out->len;
    for (int i = 0; i < COUNTOF(scalars); i++)
        for (int n = 1; n <= 8; n *= 2) {
            char type[16];
            snprintf(type, sizeof type, n > 1 ? "%s%d" : "%s", scalar_info[scalars[i]].name,
                     n);
            if (i == 0 || program_uses(program, scalars[i]))
                put_strict(out, COUNTOF(strict_helper), "__attribute__((overloadable)) ",
                           type, "", uses);
        }
    buf_puts(out, out->len > before ? "\n" : "");
}

void put_opencl_head(Buf *out, const Program *program, const Uses *uses)
{
    bool any = false;
    static const char format[] = "#pragma OPENCL EXTENSION %s : enable\n";
    if (program_uses(program, S_DOUBLE) && (any = true))
        buf_printf(out, format, "cl_khr_fp64");
    if (program_uses(program, S_HALF) && (any = true))
        buf_printf(out, format, "cl_khr_fp16");
    buf_puts(out, any ? "\n" : "");
    put_strict_opencl(out, program, uses);
    put_shuffles(out, program, uses);
}

// C -----------------------------------------------------------------------------------

static const char c_head[] = "#include <math.h>\n"
                             "#include <stdbool.h>\n"
                             "#include <stdlib.h>\n"
                             "#include <string.h>\n\n";

static const Helper c_helper[] = {
    {{"fw_min(", NULL}, "@int fw_min(int a, int b) { return a < b ? a : b; }\n"},
    {{"fw_max(", NULL}, "@int fw_max(int a, int b) { return a > b ? a : b; }\n"},
    {{"fw_minl(", NULL}, "@long fw_minl(long a, long b) { return a < b ? a : b; }\n"},
    {{"fw_maxl(", NULL}, "@long fw_maxl(long a, long b) { return a > b ? a : b; }\n"},
    {{"fw_minul(", NULL},
     "@unsigned long fw_minul(unsigned long a, unsigned long b) { return a < b ? a : b; "
     "}\n"},
    {{"fw_maxul(", NULL},
     "@unsigned long fw_maxul(unsigned long a, unsigned long b) { return a > b ? a : b; "
     "}\n"},
    {{"fw_rsqrtf(", NULL}, "@float fw_rsqrtf(float x) { return 1.0f / sqrtf(x); }\n"},
    {{"fw_rsqrt(", NULL}, "@double fw_rsqrt(double x) { return 1.0 / sqrt(x); }\n"},
    {{"fw_exp10f(", NULL}, "@float fw_exp10f(float x) { return powf(10.0f, x); }\n"},
    {{"fw_exp10(", NULL}, "@double fw_exp10(double x) { return pow(10.0, x); }\n"},
};

// What glibc has for vectors, right to 4 units in the last place; math.h says so to those
// alone who ask for fast math. Soft-max of rows of 16384 floats, two cores: 16 ms without.
static const char c_lanes[] = "#if defined __GLIBC__ && defined __x86_64__ && defined "
                              "__GNUC__ && !defined __clang__\n"
                              "#define FW_LANES __attribute__((simd(\"notinbranch\")))\n"
                              "#if __GLIBC_PREREQ(2, 35)\n"
                              "#define FW_LANES_2_35 FW_LANES\n"
                              "#else\n"
                              "#define FW_LANES_2_35\n"
                              "#endif\n"
                              "#else\n"
                              "#define FW_LANES\n"
                              "#define FW_LANES_2_35\n"
                              "#endif\n";

// Those for float end in f. since: a part of the macro's name.
typedef struct {
    const char *name, *since;
    int args;
} LaneFunction;

static const LaneFunction c_lane[] = {
    {"exp", "", 1},        {"log", "", 1},        {"sin", "", 1},
    {"cos", "", 1},        {"pow", "", 2},        {"exp2", "_2_35", 1},
    {"expm1", "_2_35", 1}, {"log2", "_2_35", 1},  {"log10", "_2_35", 1},
    {"log1p", "_2_35", 1}, {"asin", "_2_35", 1},  {"acos", "_2_35", 1},
    {"atan", "_2_35", 1},  {"sinh", "_2_35", 1},  {"cosh", "_2_35", 1},
    {"asinh", "_2_35", 1}, {"acosh", "_2_35", 1}, {"atanh", "_2_35", 1},
    {"tan", "_2_35", 1},   {"tanh", "_2_35", 1},  {"erf", "_2_35", 1},
    {"erfc", "_2_35", 1},
};

static void put_c_lane(Buf *out, const LaneFunction *f, bool wide, const Uses *uses)
{
    AutoBuf word = buf_new();
    const char *type = wide ? "double" : "float";
    buf_printf(&word, "%s%s(", f->name, wide ? "" : "f");
    const Helper helper = {{word.text, NULL}, ""};
    if (!needed(&helper, uses))
        return;
    buf_printf(out, "FW_LANES%s %s %s%s", f->since, type, word.text, type);
    for (int i = 1; i < f->args; i++)
        buf_printf(out, ", %s", type);
    buf_puts(out, ");\n");
}

static void put_c_lanes(Buf *out, const Uses *uses)
{
    AutoBuf rows = buf_new();
    for (int i = 0; i < 2 * COUNTOF(c_lane); i++)
        put_c_lane(&rows, &c_lane[i % COUNTOF(c_lane)], i >= COUNTOF(c_lane), uses);
    if (rows.len)
        buf_printf(out, "%s%s\n", c_lanes, rows.text);
}

static const char c_vector[] =
    "// Vectors, and vectors in memory at any address.\n"
    "#define FW_VECTOR(type, name, n)                                               \\\n"
    "    typedef type name##n __attribute__((vector_size(n * sizeof(type))));       \\\n"
    "    typedef name##n fw_##name##n __attribute__((aligned(sizeof(type)), may_alias));\n";

static void put_c_vectors(Buf *out, const VectorSet *vectors)
{
    bool any = false;
    for (int s = 0; s < SCALARS; s++)
        for (int n = 2; n <= 8; n *= 2) {
            if (!any_vector(vectors, (Scalar)s, n))
                continue;
            buf_puts(out, any ? "" : c_vector);
            buf_printf(out, "FW_VECTOR(%s, %s, %d)\n", scalar_info[s].c,
                       scalar_info[s].name, n);
            any = true;
        }
    buf_puts(out, any ? "\n" : "");
}

void put_c_head(Buf *out, const Program *program, const Uses *uses)
{
    buf_puts(out, c_head);
    if (program_uses(program, S_HALF))
        buf_puts(out, "typedef _Float16 half;\n\n");
    put_c_lanes(out, uses);
    put_helpers(out, c_helper, COUNTOF(c_helper), "static inline ", uses);
    put_strict_c(out, COUNTOF(strict_helper) - 1, "static inline ", uses);
    put_c_vectors(out, &uses->vectors);
}

// CUDA --------------------------------------------------------------------------------

static const char cuda_half[] = "#define __CUDA_NO_HALF2_OPERATORS__\n"
                                "#include <cuda_fp16.h>\n\n";

// NVRTC knows no <math.h>.
static const Helper cuda_constants = {{"INFINITY", "NAN"},
                                      "#ifndef INFINITY\n"
                                      "#define INFINITY __int_as_float(0x7f800000)\n"
                                      "#define NAN __int_as_float(0x7fffffff)\n"
                                      "#endif\n"};

static const char cuda_each2[] = "#define FW_EACH2(u, op, v) {u.x op v.x, u.y op v.y}\n"
                                 "#define FW_FILL2(s) {s, s}\n";

static const char cuda_each4[] =
    "#define FW_EACH4(u, op, v) {u.x op v.x, u.y op v.y, u.z op v.z, u.w op v.w}\n"
    "#define FW_FILL4(s) {s, s, s, s}\n";

static const char cuda_each8[] =
    "#define FW_EACH8(u, op, v)                                                     \\\n"
    "    {u.x op v.x, u.y op v.y, u.z op v.z, u.w op v.w,                           \\\n"
    "     u.a op v.a, u.b op v.b, u.c op v.c, u.d op v.d}\n"
    "#define FW_FILL8(s) {s, s, s, s, s, s, s, s}\n";

static const char *const cuda_each[9] = {
    [2] = cuda_each2, [4] = cuda_each4, [8] = cuda_each8};

static const char cuda_operators[] =
    "#define FW_OPERATOR(S, T, n, op)                                               \\\n"
    "    __device__ inline T##n operator op(T##n u, T##n v) { return FW_EACH##n(u, op, v); "
    "} \\\n"
    "    __device__ inline T##n operator op(S s, T##n v) { return T##n FW_FILL##n(s) op v; "
    "} \\\n"
    "    __device__ inline T##n operator op(T##n u, S s) { return u op T##n FW_FILL##n(s); "
    "} \\\n"
    "    __device__ inline T##n &operator op##=(T##n &u, T##n v) { return u = u op v; }\n"
    "#define FW_ARITHMETIC(S, T, n)                                                 \\\n"
    "    FW_OPERATOR(S, T, n, +)                                                    \\\n"
    "    FW_OPERATOR(S, T, n, -)                                                    \\\n"
    "    FW_OPERATOR(S, T, n, *)                                                    \\\n"
    "    FW_OPERATOR(S, T, n, /)\n";

// Texts in src/emit/cuda, as host programs have theirs: instructions, and what is made of
// them.
static const char *const instructions[] = {
#include "emit/cuda/instructions.h.inc"
    NULL};
static const char *const copies[] = {
#include "emit/cuda/copies.h.inc"
    NULL};
static const char *const together[] = {
#include "emit/cuda/together.h.inc"
    NULL};
static const char *const matrix_text[] = {
#include "emit/cuda/matrix.h.inc"
    NULL};
static const char *const matrix_short[] = {
#include "emit/cuda/short.h.inc"
    NULL};
static const char *const matrix_half[] = {
#include "emit/cuda/half.h.inc"
    NULL};

// CUDA has no vectors of 8 components, nor of 4 halfs.
static void put_cuda_type(Buf *out, Scalar scalar, int width)
{
    const char *name = scalar_info[scalar].name;
    if (width == 8 || (width == 4 && scalar == S_HALF))
        buf_printf(out, "struct __align__(%d) %s%d { %s %s; };\n",
                   width * scalar_info[scalar].bytes, name, width, scalar_info[scalar].c,
                   width == 8 ? "x, y, z, w, a, b, c, d" : "x, y, z, w");
}

// The macros that the arithmetic of these vectors is made with.
static void put_cuda_macros(Buf *out, const VectorSet *vectors)
{
    bool any = false;
    for (int n = 2; n <= 8; n *= 2) {
        bool used = false;
        for (int s = 0; s < SCALARS; s++)
            used = used || any_arithmetic(vectors, (Scalar)s, n);
        if (used && !any)
            buf_puts(out, "// Arithmetic on vectors, component by component.\n");
        buf_puts(out, used ? cuda_each[n] : "");
        any = any || used;
    }
    buf_puts(out, any ? cuda_operators : "");
}

// own: the widest vectors that have arithmetic in the language; of halfs those of two.
static void put_cuda_vectors(Buf *out, const VectorSet *vectors, int own)
{
    size_t before = out->len;
    put_cuda_macros(out, vectors);
    for (int s = 0; s < SCALARS; s++)
        for (int n = 2; n <= 8; n *= 2) {
            if (!any_vector(vectors, (Scalar)s, n))
                continue;
            put_cuda_type(out, (Scalar)s, n);
            if (any_arithmetic(vectors, (Scalar)s, n) && vector_arithmetic((Scalar)s) &&
                n > (s == S_HALF ? own / 2 : own))
                buf_printf(out, "FW_ARITHMETIC(%s, %s, %d)\n", scalar_info[s].c,
                           scalar_info[s].name, n);
        }
    buf_puts(out, out->len > before ? "\n" : "");
}

// A double over a constant: ptxas makes a division of it, with a call for what is rare, and
// 110 KB of text of a loop that is 34 KB so. high + low is 1/d, high not the larger in
// size: what is infinite stays so.
//
//   source  Brisebarre, Muller, Raina: Accelerating correctly rounded floating-point
//   division
//           when the divisor is known in advance (IEEE Transactions on Computers 53, 2004)
//
// To the bit of a division for d of up to 49 bits, where no quotient is below 1e-290: the
// sum before it is rounded is within 2^-51 of a last place, and no quotient is that near
// the middle of two.
static const Helper cuda_over[MATHS] = {
    [MATH_STANDARD] =
        {{"fw_over(", NULL},
         "__device__ __forceinline__ double fw_over(double a, double d, double high, "
         "double low)\n"
         "{\n"
         "    return fma(a, high, a*low);\n"
         "}\n"},
    [MATH_FAST] = {
        {"fw_over(", NULL},
        "__device__ __forceinline__ double fw_over(double a, double d, double high, "
        "double low)\n"
        "{\n"
        "    return a*(high + low);\n"
        "}\n"}};

// Does a program fold, so that its kernels may add up products; or, loop: does it have time
// loops, whose kernels may copy rows?
static bool may_need(const Expr *expr, const void *loop)
{
    return expr->kind == E_PATTERN &&
           (*(const bool *)loop ? expr->pattern == P_ITERATE
                                : pattern_info[expr->pattern].fun == 2);
}

static bool is_used(const Program *program, const Uses *uses, const char *name, bool loop)
{
    return uses->text ? strstr(uses->text, name) != NULL
                      : program->main && expr_find(program->main->body, may_need, &loop);
}

static void put_lines(Buf *out, const char *const *line)
{
    for (; *line; line++)
        buf_puts(out, *line);
}

static void put_matrix_text(Buf *out, const Program *program, const Uses *uses)
{
    bool any = is_used(program, uses, "fw_multiply", false);
    if (any || is_used(program, uses, "fw_copy", true))
        put_lines(out, copies);
    if (!any)
        return;
    const bool half = program_uses(program, S_HALF);
    const bool any_short = half || program_uses(program, S_BF16);
    put_lines(out, instructions);
    if (any_short)
        put_lines(out, together);
    buf_puts(out, "// End of the instructions.\n\n");
    put_lines(out, matrix_text);
    if (any_short)
        put_lines(out, matrix_short);
    if (half)
        put_lines(out, matrix_half);
    buf_putc(out, '\n');
}

static const Helper cuda_helper[] = {
    // From compute capability 9 on, a launch may ask for it (DeviceLaunch.follows).
    {{"fw_follow(", NULL},
     "// Waits until the kernel before has written all that it writes.\n"
     "@void fw_follow()\n"
     "{\n"
     "#if __CUDA_ARCH__ >= 900\n"
     "    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
     "#endif\n"
     "}\n"},
    // NVRTC 13.0 and 13.5 make a loop of an odd number of steps, 35 or more, endless if an
    // index that moves by two or more is compared in it with the largest int as a constant,
    // as the first step of a fold to the least index does.
    {{"fw_most(", NULL},
     "// The largest int, which compilers do not see.\n"
     "@int fw_most()\n"
     "{\n"
     "    int x = 2147483647;\n"
     "    asm(\"\" : \"+r\"(x));\n"
     "    return x;\n"
     "}\n"},
};

void put_cuda_head(Buf *out, const Program *program, const Uses *uses)
{
    if (program_uses(program, S_DOUBLE) && cuda_over[program->math].text)
        put_helpers(out, &cuda_over[program->math], 1, "", uses);
    buf_puts(out, program_uses(program, S_HALF) ? cuda_half : "");
    put_helpers(out, &cuda_constants, 1, "", uses);
    put_helpers(out, cuda_helper, COUNTOF(cuda_helper), "__device__ __forceinline__ ",
                uses);
    if (program->math == MATH_STRICT)
        put_strict_c(out, COUNTOF(strict_helper), "__device__ __forceinline__ ", uses);
    put_cuda_vectors(out, &uses->vectors, 0);
    put_matrix_text(out, program, uses);
}

// HIP: CUDA's words, with vectors that have arithmetic, and warps of 32 or 64 lanes -------

static const Helper hip_shuffle = {
    {"fw_shuffle(", NULL},
    "template <class T> __device__ __forceinline__ T fw_shuffle(T x, int lane)\n"
    "{\n"
    "    return __shfl(x, lane, 32);\n"
    "}\n"};

void put_hip_head(Buf *out, const Program *program, const Uses *uses)
{
    buf_puts(out, "#ifndef __HIPCC_RTC__\n#include <hip/hip_runtime.h>\n");
    buf_puts(out, program_uses(program, S_HALF) ? "#include <hip/hip_fp16.h>\n" : "");
    buf_puts(out, "#endif\n\n");
    if (program_uses(program, S_DOUBLE) && cuda_over[program->math].text)
        put_helpers(out, &cuda_over[program->math], 1, "", uses);
    put_helpers(out, &cuda_constants, 1, "", uses);
    put_helpers(out, &hip_shuffle, 1, "", uses);
    if (program->math == MATH_STRICT)
        put_strict_c(out, COUNTOF(strict_helper), "__device__ __forceinline__ ", uses);
    put_cuda_vectors(out, &uses->vectors, 4);
}
