// SPDX-License-Identifier: Apache-2.0
//
// Values as C, with the parentheses that are needed and no others.
//
// Where a target has no such operation on vectors (built-in functions in C, comparisons,
// calls of functions of the program), a vector is printed component by component: while
// p->lane is set, every vector below is printed as that component of it.

#include "emit/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// How an operation is written: infix, or as a call of a built-in of the device language
// (OpenCL, CUDA) or of C. Where they are not overloaded, those for float end in f.
typedef struct {
    const char *infix;
    Prec prec;
    const char *cl_real, *cl_int, *c_real, *c_int;
} OpText;

#define INFIX(text, prec)                                                                  \
    {                                                                                      \
        text, prec, NULL, NULL, NULL, NULL                                                 \
    }
static const OpText op_text[OPS] = {
    [OP_ADD] = INFIX(" + ", PREC_SUM),
    [OP_SUB] = INFIX(" - ", PREC_SUM),
    [OP_MUL] = INFIX("*", PREC_PRODUCT),
    [OP_DIV] = {" / ", PREC_PRODUCT, 0, "fw_div", 0, "fw_div"},
    [OP_MOD] = {NULL, PREC_POSTFIX, "fmod", "fw_mod", "fmod", "fw_mod"},
    [OP_LT] = INFIX(" < ", PREC_ORDER),
    [OP_LE] = INFIX(" <= ", PREC_ORDER),
    [OP_GT] = INFIX(" > ", PREC_ORDER),
    [OP_GE] = INFIX(" >= ", PREC_ORDER),
    [OP_EQ] = INFIX(" == ", PREC_EQUAL),
    [OP_NE] = INFIX(" != ", PREC_EQUAL),
    [OP_AND] = INFIX(" && ", PREC_AND),
    [OP_OR] = INFIX(" || ", PREC_OR),
    [OP_MINIMUM] = {NULL, PREC_POSTFIX, "fmin", "min", "fmin", "fw_min"},
    [OP_MAXIMUM] = {NULL, PREC_POSTFIX, "fmax", "max", "fmax", "fw_max"},
    [OP_ABS] = {NULL, PREC_POSTFIX, "fabs", "(int)abs", "fabs", "abs"},
    [OP_SQRT] = {NULL, PREC_POSTFIX, "sqrt", 0, "sqrt", 0},
    [OP_RSQRT] = {NULL, PREC_POSTFIX, "rsqrt", 0, "fw_rsqrt", 0},
    [OP_EXP] = {NULL, PREC_POSTFIX, "exp", 0, "exp", 0},
    [OP_LOG] = {NULL, PREC_POSTFIX, "log", 0, "log", 0},
    [OP_POW] = {NULL, PREC_POSTFIX, "pow", 0, "pow", 0},
    [OP_SIN] = {NULL, PREC_POSTFIX, "sin", 0, "sin", 0},
    [OP_COS] = {NULL, PREC_POSTFIX, "cos", 0, "cos", 0},
    [OP_TAN] = {NULL, PREC_POSTFIX, "tan", 0, "tan", 0},
    [OP_TANH] = {NULL, PREC_POSTFIX, "tanh", 0, "tanh", 0},
    [OP_ERF] = {NULL, PREC_POSTFIX, "erf", 0, "erf", 0},
    [OP_FLOOR] = {NULL, PREC_POSTFIX, "floor", 0, "floor", 0},
    [OP_CEIL] = {NULL, PREC_POSTFIX, "ceil", 0, "ceil", 0},
    [OP_FMA] = {NULL, PREC_POSTFIX, "fma", 0, "fma", 0},
};

static void open_paren(Printer *p, bool need)
{
    put(p, need ? "(" : "");
}

static void close_paren(Printer *p, bool need)
{
    put(p, need ? ")" : "");
}

// Literals ----------------------------------------------------------------------------

// The fewest digits that read back as the same number, with a point or an exponent.
static void put_digits(Printer *p, double x, bool is_double)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (is_double ? strtod(text, NULL) == x : strtof(text, NULL) == (float)x)
            break;
    }
    put(p, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", is_double ? "" : "f");
}

static void put_real(Printer *p, Scalar scalar, double x, Prec prec)
{
    bool is_double = scalar == S_DOUBLE;
    if (!is_double)
        x = (float)x;
    bool special = !isfinite(x), doubts = p->target->doubts;
    bool paren = !doubts && prec > PREC_UNARY && (signbit(x) || scalar == S_HALF);
    open_paren(p, paren);
    if (doubts)
        put_scalar(p, scalar);
    else if (scalar == S_HALF || (special && is_double))
        put(p, "(%s)", scalar_info[scalar].name);
    open_paren(p, doubts);
    if (isnan(x))
        put(p, "NAN");
    else if (special)
        put(p, x < 0 ? "-INFINITY" : "INFINITY");
    else
        put_digits(p, x, is_double);
    close_paren(p, paren || doubts);
}

static void put_literal(Printer *p, Scalar scalar, double x, Prec prec)
{
    if (scalar == S_BOOL)
        put(p, x != 0 ? "true" : "false");
    else if (scalar != S_INT)
        put_real(p, scalar, x, prec);
    else if (x == INT32_MIN)
        put(p, "(-2147483647 - 1)");
    else
        put(p, x < 0 && prec > PREC_UNARY ? "(%.0f)" : "%.0f", x);
}

// Vectors -----------------------------------------------------------------------------

static bool is_vector(const Printer *p, const KExpr *e)
{
    return e->type->kind == T_VECTOR && p->lane < 0;
}

static int args_of(const KExpr *e)
{
    return e->kind == K_COND ? 0 : e->n;
}

static bool is_cast(Op op)
{
    return op_info[op].types == TY_CAST;
}

// True if a vector of this width at index of buffer is aligned to its size.
static bool is_aligned(const Printer *p, const Buffer *buffer, const Arith *index,
                       int width)
{
    if (buffer->space == MEM_PRIVATE ||
        (buffer->space == MEM_LOCAL && buffer->vector < width))
        return false;
    for (int i = p->ints.len - 1; i >= 0; i--) {
        const Stm *stm = p->ints.at[i];
        if (arith_mentions(index, stm->iter))
            index = arith_subst(p->ctx, index, stm->iter, stm->index);
    }
    return arith_multiple(p->ctx, index) % width == 0;
}

// A vector in memory as one value. Structs have no load from any address.
static bool has_vector_load(const Printer *p, const KExpr *load)
{
    return load->type->scalar != S_BOOL &&
           (p->target->vectors != VECTORS_STRUCT ||
            (!p->target->doubts &&
             is_aligned(p, load->buffer, load->arith, load->type->width)));
}

// Whether the target has this operation on whole vectors.
static bool has_on_vectors(const Printer *p, const KExpr *e)
{
    bool real = scalar_info[e->type->scalar].floating;
    if (e->kind == K_CALL)
        return e->callee->result->kind == T_VECTOR;
    if (e->kind == K_COND || e->kind == K_INDEX)
        BUG("a condition or an index of a vector type");
    if (e->kind == K_LOAD)
        return has_vector_load(p, e);
    if (e->kind != K_OP)
        return e->kind != K_LITERAL;
    if (is_cast(e->op))
        return p->target->vectors != VECTORS_STRUCT && e->op != OP_BOOL &&
               e->arg[0]->type->scalar != S_BOOL;
    switch (op_info[e->op].types) {
    case TY_ARITH:
    case TY_FLOAT:
        if (e->op == OP_NEG)
            return p->target->vectors != VECTORS_STRUCT;
        if (op_text[e->op].infix)
            return real || e->op != OP_DIV;
        return real && p->target->vectors == VECTORS_BUILTIN;
    case TY_COMP:
    case TY_LOGIC:
    case TY_SELECT:
    case TY_CAST: return false;
    }
    BUG("operation %d", e->op);
}

static void open_vector(Printer *p, const Type *type)
{
    put(p, "%s", p->target->before);
    put_type(p, type);
    put(p, "%s", p->target->open);
}

// The literal that every component is; NULL if they are not all one literal.
static const KExpr *splat_of(const KExpr *e)
{
    if (e->kind == K_LITERAL)
        return e;
    if (e->kind != K_VECTOR || e->arg[0]->kind != K_LITERAL)
        return NULL;
    for (int i = 1; i < e->n; i++)
        if (e->arg[i]->kind != K_LITERAL || e->arg[i]->number != e->arg[0]->number)
            return NULL;
    return e->arg[0];
}

// (float4)(a, b, c, d), each component printed with p->lane set.
static void put_components(Printer *p, const KExpr *e)
{
    bool splat = e->kind == K_LITERAL && p->target->vectors == VECTORS_BUILTIN;
    open_vector(p, e->type);
    for (int i = 0; i < (splat ? 1 : e->type->width); i++) {
        put(p, i ? ", " : "");
        p->lane = i;
        put_value(p, e, PREC_SELECT);
        p->lane = -1;
    }
    put(p, "%s", p->target->close);
}

// Loads -------------------------------------------------------------------------------

void put_element(Printer *p, const Buffer *buffer, const Arith *index)
{
    put_name(p, buffer->name);
    if (buffer->bare)
        return;
    put(p, "[");
    put_index(p, index, PREC_ANY);
    put(p, "]");
}

bool put_vector_element(Printer *p, const Buffer *buffer, const Arith *index,
                        const Type *type, bool is_const)
{
    bool any_address = p->target->unaligned[0] != 0;
    if (!any_address && (p->target->doubts || !is_aligned(p, buffer, index, type->width)))
        return false;
    put(p, "*(%s%s%s",
        buffer->space == MEM_LOCAL ? p->target->local_pointer : p->target->global,
        is_const ? "const " : "", p->target->unaligned);
    put_type(p, type);
    put(p, " *)&");
    put_element(p, buffer, index);
    return true;
}

static void put_vector_load(Printer *p, const KExpr *e)
{
    if (put_vector_element(p, e->buffer, e->arith, e->type, true))
        return;
    put(p, "vload%d(0, &", e->type->width);
    put_element(p, e->buffer, e->arith);
    put(p, ")");
}

static void put_image_load(Printer *p, const KExpr *e)
{
    put(p, "%s", p->target->image_read[e->buffer->scalar == S_INT]);
    put_name(p, e->buffer->name);
    put(p, ", ");
    put_index(p, e->arith, PREC_ANY);
    put(p, "%s", p->target->image_close);
}

static void put_load(Printer *p, const KExpr *e, Prec prec)
{
    if (p->target->image && kernel_reads_image(p->kernel, e->buffer)) {
        put_image_load(p, e);
    } else if (is_vector(p, e)) {
        bool paren = prec > PREC_UNARY;
        open_paren(p, paren);
        put_vector_load(p, e);
        close_paren(p, paren);
    } else {
        bool lane = e->type->kind == T_VECTOR;
        put(p, p->target->doubts ? "fw_at(" : "");
        put_element(p, e->buffer, lane ? arith_addc(p->ctx, e->arith, p->lane) : e->arith);
        put(p, p->target->doubts ? ")" : "");
    }
}

// Operations --------------------------------------------------------------------------

static void put_cast(Printer *p, const KExpr *e, Prec prec)
{
    const KExpr *arg = e->arg[0];
    if (arg->type->scalar == e->type->scalar) {
        put_value(p, arg, prec);
    } else if (is_vector(p, e)) {
        put(p, p->target->threads ? "convert_" : "__builtin_convertvector(");
        if (p->target->threads) {
            put_type(p, e->type);
            put(p, "(");
        }
        put_value(p, arg, PREC_SELECT);
        if (!p->target->threads) {
            put(p, ", ");
            put_type(p, e->type);
        }
        put(p, ")");
    } else {
        bool paren = prec > PREC_UNARY;
        open_paren(p, paren);
        put(p, "(");
        put_scalar(p, e->type->scalar);
        put(p, ")");
        put_value(p, arg, PREC_UNARY);
        close_paren(p, paren);
    }
}

// An argument of a built-in must have the type of the call.
static void put_argument(Printer *p, const KExpr *call, const KExpr *arg)
{
    bool same_scalar = arg->type->scalar == call->type->scalar;
    bool splat = is_vector(p, call) && !is_vector(p, arg);
    if (same_scalar && !splat) {
        put_value(p, arg, PREC_SELECT);
    } else if (arg->kind == K_LITERAL && !splat) {
        put_literal(p, call->type->scalar, arg->number, PREC_SELECT);
    } else {
        put(p, "(");
        put_type(p, call->type);
        put(p, ")");
        put_value(p, arg, PREC_UNARY);
    }
}

static void put_builtin(Printer *p, const KExpr *e)
{
    const OpText *text = &op_text[e->op];
    Scalar scalar = e->type->scalar;
    bool real = scalar_info[scalar].floating;
    bool device = p->target->threads, suffix = real && !p->target->overloaded;
    put(p, "%s", suffix && scalar == S_HALF ? "(half)" : "");
    put(p, "%s",
        real ? (device ? text->cl_real : text->c_real)
             : (device ? text->cl_int : text->c_int));
    put(p, "%s(", suffix && scalar != S_DOUBLE ? "f" : "");
    for (int i = 0; i < e->n; i++) {
        put(p, i ? ", " : "");
        put_argument(p, e, e->arg[i]);
    }
    put(p, ")");
}

// A value that is computed where it is wanted.
static void put_later(Printer *p, const KExpr *e)
{
    put(p, "[&] { return ");
    put_value(p, e, PREC_SELECT);
    put(p, "; }");
}

static bool is_at_computed(const KExpr *e, const void *printer)
{
    const Printer *p = printer;
    for (int i = 0; e->kind == K_LOAD && i < p->computed.len; i++)
        if (arith_mentions(e->arith, p->computed.at[i]))
            return true;
    return false;
}

// Both sides can be evaluated where the condition is in doubt, unless it guards an index.
static bool has_both_sides(const Printer *p, const KExpr *e)
{
    return p->target->doubts && !kexpr_any(e->arg[1], is_at_computed, p) &&
           !kexpr_any(e->arg[2], is_at_computed, p);
}

static void put_both_sides(Printer *p, const KExpr *e)
{
    put(p, "fw_select<");
    put_type(p, e->type);
    put(p, ">(");
    put_value(p, e->arg[0], PREC_SELECT);
    for (int i = 1; i < 3; i++) {
        put(p, ", ");
        put_later(p, e->arg[i]);
    }
    put(p, ")");
}

static void put_side(Printer *p, const KExpr *e, const Type *type)
{
    if (!p->target->doubts) {
        put_value(p, e, PREC_SELECT);
        return;
    }
    put_type(p, type); // the sides may be of two
    put(p, "(");
    put_value(p, e, PREC_ANY);
    put(p, ")");
}

static void put_select(Printer *p, const KExpr *e, Prec prec)
{
    if (has_both_sides(p, e)) {
        put_both_sides(p, e);
        return;
    }
    bool paren = prec > PREC_SELECT;
    open_paren(p, paren);
    put_value(p, e->arg[0], PREC_OR);
    put(p, " ? ");
    put_side(p, e->arg[1], e->type);
    put(p, " : ");
    put_side(p, e->arg[2], e->type);
    close_paren(p, paren);
}

static bool is_conjunction(const KExpr *e)
{
    return (e->kind == K_OP && e->op == OP_AND) || (e->kind == K_COND && e->n > 1);
}

// Operand i of an infix operation. On vectors, a literal may stay a scalar; && inside ||
// needs no parentheses, but compilers and readers ask for them.
static void put_infix_arg(Printer *p, const KExpr *e, int i)
{
    const KExpr *arg = e->arg[i], *other = e->arg[1 - i];
    Prec prec = op_text[e->op].prec + (i > 0);
    if (e->op == OP_OR && is_conjunction(arg))
        prec = PREC_EQUAL;
    const KExpr *same = splat_of(arg);
    if (same && is_vector(p, other) && !splat_of(other))
        put_literal(p, same->type->scalar, same->number, prec);
    else
        put_value(p, arg, prec);
}

static void put_op(Printer *p, const KExpr *e, Prec prec)
{
    const OpText *text = &op_text[e->op];
    bool floor_div = e->op == OP_DIV && !scalar_info[e->type->scalar].floating;
    if (e->op == OP_SELECT) {
        put_select(p, e, prec);
    } else if (p->target->doubts && (e->op == OP_AND || e->op == OP_OR)) {
        put(p, e->op == OP_AND ? "fw_and(" : "fw_or(");
        put_value(p, e->arg[0], PREC_SELECT);
        put(p, ", ");
        put_later(p, e->arg[1]);
        put(p, ")");
    } else if (is_cast(e->op)) {
        put_cast(p, e, prec);
    } else if (op_info[e->op].form == FORM_PREFIX) {
        open_paren(p, prec > PREC_UNARY);
        put(p, "%s", op_info[e->op].text);
        put_value(p, e->arg[0], PREC_POSTFIX);
        close_paren(p, prec > PREC_UNARY);
    } else if (text->infix && !floor_div) {
        open_paren(p, prec > text->prec);
        put_infix_arg(p, e, 0);
        put(p, "%s", text->infix);
        put_infix_arg(p, e, 1);
        close_paren(p, prec > text->prec);
    } else {
        put_builtin(p, e);
    }
}

static void put_call(Printer *p, const KExpr *e)
{
    put_function_name(p, e->callee->name);
    put(p, "(");
    for (int i = 0; i < args_of(e); i++) {
        put(p, i ? ", " : "");
        put_value(p, e->arg[i], PREC_SELECT);
    }
    put(p, ")");
}

// Prints component `lane` of a vector: picked from a variable, computed otherwise.
static void put_lane(Printer *p, const KExpr *vector, int lane, Prec prec)
{
    int outer = p->lane;
    p->lane = lane;
    put_value(p, vector, prec);
    p->lane = outer;
}

static void put_vector(Printer *p, const KExpr *e, Prec prec)
{
    if (p->lane >= 0) {
        put_value(p, e->arg[p->lane], prec);
        return;
    }
    bool splat = splat_of(e) && p->target->vectors == VECTORS_BUILTIN;
    open_vector(p, e->type);
    for (int i = 0; i < (splat ? 1 : e->n); i++) {
        put(p, i ? ", " : "");
        put_value(p, e->arg[i], PREC_SELECT);
    }
    put(p, "%s", p->target->close);
}

static void put_shuffle(Printer *p, const KExpr *e)
{
    put(p, "%s", p->target->shuffle);
    put_value(p, e->arg[0], PREC_SELECT);
    put(p, ", ");
    put_index(p, e->arith, PREC_ANY);
    put(p, ")");
}

static void put_variable(Printer *p, const KExpr *e)
{
    put_name(p, e->var->name);
    if (e->type->kind == T_VECTOR && p->lane >= 0)
        put(p, "%s%c%s", p->target->lane, p->target->lanes[p->lane], p->target->lane_close);
}

void put_value(Printer *p, const KExpr *e, Prec prec)
{
    if (is_vector(p, e) && !has_on_vectors(p, e)) {
        put_components(p, e);
        return;
    }
    switch (e->kind) {
    case K_LITERAL: put_literal(p, e->type->scalar, e->number, prec); return;
    case K_INDEX:
        put(p, p->kernel && p->kernel->wide && e->arith->kind != A_CONST ? "(int)" : "");
        put_index(p, e->arith, p->kernel && p->kernel->wide ? PREC_UNARY : prec);
        return;
    case K_VAR: put_variable(p, e); return;
    case K_LOAD: put_load(p, e, prec); return;
    case K_OP: put_op(p, e, prec); return;
    case K_CALL: put_call(p, e); return;
    case K_COND: put_conds(p, e->cond, e->n, prec); return;
    case K_VECTOR: put_vector(p, e, prec); return;
    case K_LANE: put_lane(p, e->arg[0], e->lane, prec); return;
    case K_SHUFFLE: put_shuffle(p, e); return;
    }
    BUG("value of kind %d", e->kind);
}
