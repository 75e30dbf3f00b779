// SPDX-License-Identifier: Apache-2.0
//
// What all kernels of a program share: pragmas or headers, helpers, the program's
// functions. A function's body becomes a value of the kernel IR, so that there is one
// printer; a `let` becomes a constant before the return, or is substituted where it is only
// reached if a condition holds.

#include "emit/print.h"

#include <string.h>

// What a program uses -----------------------------------------------------------------

static bool type_uses(const Type *type, Scalar scalar)
{
    if (!type)
        return false;
    switch (type->kind) {
    case T_SCALAR:
    case T_VECTOR: return type->scalar == scalar;
    case T_ARRAY: return type_uses(type->elem, scalar);
    case T_TUPLE:
        for (int i = 0; i < type->n; i++)
            if (type_uses(type->item[i], scalar))
                return true;
        return false;
    }
    BUG("type of kind %d", type->kind);
}

static bool expr_uses(const Expr *expr, Scalar scalar)
{
    if (type_uses(expr->type, scalar))
        return true;
    for (int i = 0; i < expr->narg; i++)
        if (expr_uses(expr->arg[i], scalar))
            return true;
    return expr->fun && expr_uses(expr->fun, scalar);
}

static bool function_uses(const Function *fun, Scalar scalar)
{
    for (int i = 0; i < fun->nparam; i++)
        if (type_uses(fun->params[i]->type, scalar))
            return true;
    return type_uses(fun->result, scalar) || (fun->body && expr_uses(fun->body, scalar));
}

static bool program_uses(const Program *program, Scalar scalar)
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

static const char int_helpers[] =
    "// Division rounded down, and its remainder.\n"
    "%sint fw_div(int a, int b) { return a / b - (a %% b != 0 && (a < 0) != (b < 0)); }\n"
    "%sint fw_mod(int a, int b) { return a - fw_div(a, b)*b; }\n"
    "%slong fw_divl(long a, long b) { return a / b - (a %% b != 0 && (a < 0) != (b < 0)); "
    "}\n"
    "%slong fw_modl(long a, long b) { return a - fw_divl(a, b)*b; }\n";

static const char c_helpers[] =
    "static inline int fw_min(int a, int b) { return a < b ? a : b; }\n"
    "static inline int fw_max(int a, int b) { return a > b ? a : b; }\n"
    "static inline long fw_minl(long a, long b) { return a < b ? a : b; }\n"
    "static inline long fw_maxl(long a, long b) { return a > b ? a : b; }\n"
    "static inline float fw_rsqrtf(float x) { return 1.0f / sqrtf(x); }\n"
    "static inline double fw_rsqrt(double x) { return 1.0 / sqrt(x); }\n";

static const char c_head[] = "#include <math.h>\n"
                             "#include <stdbool.h>\n"
                             "#include <stdlib.h>\n"
                             "#include <string.h>\n\n";

static const char c_vector[] =
    "\n"
    "// Vectors, and vectors in memory at any address.\n"
    "#define FW_VECTOR(type, n)                                                     \\\n"
    "    typedef type type##n __attribute__((vector_size(n * sizeof(type))));       \\\n"
    "    typedef type##n fw_##type##n __attribute__((aligned(sizeof(type)), may_alias));\n";

static void put_vectors(Buf *out, const Program *program)
{
    buf_puts(out, c_vector);
    for (int s = 0; s < SCALARS; s++) {
        if (s != S_INT && (s == S_BOOL || !program_uses(program, (Scalar)s)))
            continue;
        for (int n = 2; n <= 8; n *= 2)
            buf_printf(out, "FW_VECTOR(%s, %d)\n", scalar_info[s].name, n);
    }
    buf_putc(out, '\n');
}

void put_c_head(Buf *out, const Program *program, bool vectors)
{
    buf_puts(out, c_head);
    if (program_uses(program, S_HALF))
        buf_puts(out, "typedef _Float16 half;\n\n");
    buf_puts(out, c_helpers);
    if (vectors)
        put_vectors(out, program);
    else
        buf_putc(out, '\n');
}

// CUDA's own vectors have no arithmetic, and there are none of 8 components, nor of 4
// halfs.
static const char cuda_vector[] =
    "// Vectors, with arithmetic component by component.\n"
    "#define FW_WIDE4(type) struct __align__(4 * sizeof(type)) type##4 { type x, y, z, w; "
    "};\n"
    "#define FW_WIDE8(type) \\\n"
    "    struct __align__(8 * sizeof(type)) type##8 { type x, y, z, w, a, b, c, d; };\n"
    "#define FW_EACH2(u, op, v) {u.x op v.x, u.y op v.y}\n"
    "#define FW_EACH4(u, op, v) {u.x op v.x, u.y op v.y, u.z op v.z, u.w op v.w}\n"
    "#define FW_EACH8(u, op, v) {u.x op v.x, u.y op v.y, u.z op v.z, u.w op v.w, \\\n"
    "                            u.a op v.a, u.b op v.b, u.c op v.c, u.d op v.d}\n"
    "#define FW_FILL2(s) {s, s}\n"
    "#define FW_FILL4(s) {s, s, s, s}\n"
    "#define FW_FILL8(s) {s, s, s, s, s, s, s, s}\n"
    "#define FW_INLINE __device__ __forceinline__\n"
    "#define FW_OPERATOR(type, n, op) \\\n"
    "    FW_INLINE type##n operator op(type##n u, type##n v) { return FW_EACH##n(u, op, "
    "v); } \\\n"
    "    FW_INLINE type##n operator op(type s, type##n v) { return type##n FW_FILL##n(s) "
    "op v; } \\\n"
    "    FW_INLINE type##n operator op(type##n u, type s) { return u op type##n "
    "FW_FILL##n(s); } \\\n"
    "    FW_INLINE type##n &operator op##=(type##n &u, type##n v) { return u = u op v; }\n"
    "#define FW_VECTOR(type, n) \\\n"
    "    FW_OPERATOR(type, n, +) FW_OPERATOR(type, n, -) FW_OPERATOR(type, n, *) \\\n"
    "    FW_OPERATOR(type, n, /)\n";

static void put_cuda_vectors(Buf *out, const Program *program)
{
    buf_puts(out, cuda_vector);
    for (int s = S_INT; s < SCALARS; s++) {
        const char *name = scalar_info[s].name;
        if (s != S_INT && !program_uses(program, (Scalar)s))
            continue;
        if (s == S_HALF)
            buf_printf(out, "FW_WIDE4(%s)\n", name);
        buf_printf(out, "FW_WIDE8(%s)\n", name);
        for (int n = 2; n <= 8; n *= 2)
            buf_printf(out, "FW_VECTOR(%s, %d)\n", name, n);
    }
    buf_putc(out, '\n');
}

static const char cuda_half[] = "#define __CUDA_NO_HALF2_OPERATORS__\n"
                                "#include <cuda_fp16.h>\n\n";

// NVRTC knows no <math.h>.
static const char cuda_constants[] = "#ifndef INFINITY\n"
                                     "#define INFINITY __int_as_float(0x7f800000)\n"
                                     "#define NAN __int_as_float(0x7fffffff)\n"
                                     "#endif\n\n";

void put_cuda_head(Buf *out, const Program *program, bool vectors)
{
    buf_puts(out, program_uses(program, S_HALF) ? cuda_half : "");
    buf_puts(out, cuda_constants);
    if (vectors)
        put_cuda_vectors(out, program);
}

void put_opencl_head(Buf *out, const Program *program, bool vectors)
{
    (void)vectors; // they are part of the language
    bool any = false;
    static const char format[] = "#pragma OPENCL EXTENSION %s : enable\n";
    if (program_uses(program, S_DOUBLE) && (any = true))
        buf_printf(out, format, "cl_khr_fp64");
    if (program_uses(program, S_HALF) && (any = true))
        buf_printf(out, format, "cl_khr_fp16");
    buf_puts(out, any ? "\n" : "");
}

// Functions ---------------------------------------------------------------------------

// What a param stands for while a body is rewritten.
typedef struct {
    const Param *param;
    const KExpr *value;
} Bound;

typedef struct {
    Printer *p;
    VEC(Bound) bound;
    VEC(const char *) names; // of params and constants so far
    bool maybe;              // in code that is reached only under a condition
} Body;

static bool name_taken(const Body *b, const char *name)
{
    for (int i = 0; i < b->names.len; i++)
        if (!strcmp(b->names.at[i], name))
            return true;
    return false;
}

static const KExpr *new_variable(Body *b, const Param *param, const char *name)
{
    Var *var = NEW(b->p->arena, Var);
    KExpr *use = NEW(b->p->arena, KExpr);
    *var = (Var){name, param->type, true};
    *use = (KExpr){.kind = K_VAR, .type = param->type, .var = var};
    VEC_PUSH(b->p->arena, &b->names, name);
    VEC_PUSH(b->p->arena, &b->bound, ((Bound){param, use}));
    return use;
}

static const KExpr *bound_value(const Body *b, const Param *param)
{
    for (int i = b->bound.len - 1; i >= 0; i--)
        if (b->bound.at[i].param == param)
            return b->bound.at[i].value;
    BUG("%s is not bound in its function", param->name);
}

static const KExpr *body_value(Body *b, const Expr *expr);

static const KExpr *body_let(Body *b, const Expr *expr)
{
    const KExpr *value = body_value(b, expr->arg[0]);
    if (b->maybe) {
        VEC_PUSH(b->p->arena, &b->bound, ((Bound){expr->param, value}));
        return body_value(b, expr->arg[1]);
    }
    const char *name = expr->param->name;
    for (int i = 1; name_taken(b, name); i++)
        name = arena_printf(b->p->arena, "%s_%d", expr->param->name, i);
    put(b->p, "const ");
    put_type(b->p, expr->arg[0]->type);
    put(b->p, " ");
    put_name(b->p, name);
    put(b->p, " = ");
    put_value(b->p, value, PREC_SELECT);
    put_line(b->p, ";");
    new_variable(b, expr->param, name);
    return body_value(b, expr->arg[1]);
}

static bool only_maybe(const Expr *expr, int i)
{
    return expr->kind == E_OP && i > 0 &&
           (expr->op == OP_SELECT || expr->op == OP_AND || expr->op == OP_OR);
}

static const KExpr *body_value(Body *b, const Expr *expr)
{
    KExpr *e = NEW(b->p->arena, KExpr);
    *e = (KExpr){.type = expr->type, .number = expr->number, .arith = expr->num[0]};
    const KExpr **arg = NEW_ARRAY(b->p->arena, const KExpr *, expr->narg);
    e->op = expr->op;
    e->callee = expr->callee;
    e->n = expr->narg;
    e->arg = arg;
    switch (expr->kind) {
    case E_LET: return body_let(b, expr);
    case E_PARAM: return bound_value(b, expr->param);
    case E_LITERAL: e->kind = K_LITERAL; return e;
    case E_NUM: e->kind = K_INDEX; return e;
    case E_OP: e->kind = K_OP; break;
    case E_CALL: e->kind = K_CALL; break;
    case E_TUPLE:
    case E_GET:
    case E_AT:
    case E_LAMBDA:
    case E_PATTERN: BUG("an array or tuple in a function of scalars");
    }
    for (int i = 0; i < expr->narg; i++) {
        bool maybe = b->maybe;
        b->maybe = maybe || only_maybe(expr, i);
        arg[i] = body_value(b, expr->arg[i]);
        b->maybe = maybe;
    }
    return e;
}

static void put_body(Printer *p, const Function *fun)
{
    Body body = {.p = p};
    for (int i = 0; i < fun->nparam; i++)
        new_variable(&body, fun->params[i], fun->params[i]->name);
    const KExpr *value = body_value(&body, fun->body);
    put(p, "return ");
    put_value(p, value, PREC_SELECT);
    put_line(p, ";");
}

static void put_head(Printer *p, const Function *fun)
{
    put(p, "%s", p->target->function);
    put_type(p, fun->result);
    put(p, " ");
    put_function_name(p, fun->name);
    put(p, "(");
    for (int i = 0; i < fun->nparam; i++) {
        put(p, i ? ", " : "");
        put_type(p, fun->params[i]->type);
        put(p, " ");
        if (fun->body)
            put_name(p, fun->params[i]->name);
        else // the opaque text uses the names as they are
            put(p, "%s", fun->params[i]->name);
    }
    put_line(p, fun->nparam ? ")" : "void)");
}

static void put_text(Printer *p, const char *text)
{
    size_t len = strlen(text);
    while (len && strchr(" \t\n", text[len - 1]))
        len--;
    size_t skip = strspn(text, " \t\n");
    if (skip < len)
        buf_printf(p->out, "    %.*s\n", (int)(len - skip), text + skip);
}

static void put_function(Printer *p, const Function *fun)
{
    buf_putc(p->out, '\n');
    put_head(p, fun);
    put_line(p, "{");
    p->indent = 1;
    if (fun->body)
        put_body(p, fun);
    else
        put_text(p, fun->text);
    p->indent = 0;
    put_line(p, "}");
}

void put_prelude(Buf *out, const Target *target, const Program *program, bool vectors)
{
    const char *f = target->function;
    target->put_head(out, program, vectors);
    buf_printf(out, int_helpers, f, f, f, f);
    Printer p;
    printer_init(&p, out, target, program);
    for (int i = 0; i < program->funs.len; i++)
        put_function(&p, program->funs.at[i]);
    printer_release(&p);
}
