// SPDX-License-Identifier: Apache-2.0
//
// Values as C, with the parentheses that are needed and no others.
//
// Where a target has no such operation on vectors (built-in functions in C, comparisons,
// calls of functions of the program), a vector is printed component by component: while
// p->lane is set, every vector below is printed as that component of it.

#include "emit/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// How tightly C's infix operations bind. Shifts and operations on bits: everything around
// and inside them has parentheses.
static Prec infix_prec(Op op)
{
    switch (op) {
    case OP_ADD:
    case OP_SUB: return PREC_SUM;
    case OP_MUL:
    case OP_DIV:
    case OP_MOD: return PREC_PRODUCT;
    case OP_EQ:
    case OP_NE: return PREC_EQUAL;
    case OP_AND: return PREC_AND;
    case OP_OR: return PREC_OR;
    default: return op_info[op].types == TY_COMP ? PREC_ORDER : PREC_SELECT;
    }
}

static bool is_infix(Op op)
{
    return op_info[op].form == FORM_INFIX;
}

// Built-in functions that are not called as the language calls them, in OpenCL C and CUDA
// and in C. Where they are not overloaded, those for float end in f.
typedef struct {
    const char *device, *c;
} Builtin;

static Builtin real_builtin(Op op)
{
    const char *text = op_info[op].text;
    switch (op) {
    case OP_MINIMUM: return (Builtin){"fmin", "fw_lesser"};
    case OP_MAXIMUM: return (Builtin){"fmax", "fw_greater"};
    case OP_ABS: return (Builtin){"fabs", "fabs"};
    case OP_RSQRT: return (Builtin){text, "fw_rsqrt"};
    case OP_EXP10: return (Builtin){text, "fw_exp10"};
    default: return (Builtin){text, text};
    }
}

// What targets have of their own is not the same to the bit: which of two zeros is the
// less, and how often a root is rounded (head.c).
static Builtin strict_builtin(Op op)
{
    switch (op) {
    case OP_MINIMUM: return (Builtin){"fw_lesser", "fw_lesser"};
    case OP_MAXIMUM: return (Builtin){"fw_greater", "fw_greater"};
    case OP_RSQRT: return (Builtin){"fw_rsqrt", "fw_rsqrt"};
    default: return real_builtin(op);
    }
}

static Builtin integer_builtin(Op op)
{
    switch (op) {
    case OP_DIV: return (Builtin){"fw_div", "fw_div"};
    case OP_MOD: return (Builtin){"fw_mod", "fw_mod"};
    case OP_MINIMUM: return (Builtin){"min", "fw_min"};
    case OP_MAXIMUM: return (Builtin){"max", "fw_max"};
    default: return (Builtin){"fw_abs", "fw_abs"};
    }
}

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
    if (fabs(x) < 1e7 && strstr(text, "e+")) // 20, not 2e+01
        snprintf(text, sizeof text, "%.0f", x);
    put(p, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", is_double ? "" : "f");
}

static void put_real(Printer *p, Scalar scalar, double x, Prec prec)
{
    bool is_double = scalar == S_DOUBLE;
    if (!is_double)
        x = (float)x;
    bool doubts = p->target->doubts;
    if (scalar == S_BF16 && !doubts) {
        put(p, "0x%x", (unsigned)scalar_bits(scalar, scalar_round(scalar, x)));
        return;
    }
    bool special = !isfinite(x);
    bool paren = !doubts && prec > PREC_UNARY && (signbit(x) || scalar == S_HALF);
    open_paren(p, paren);
    if (doubts)
        put(p, "%s", scalar_text(p, scalar));
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

// Types narrower than int have no literals; a conversion says which type is meant.
static void put_integer(Printer *p, Scalar scalar, double x, Prec prec)
{
    const ScalarInfo *info = &scalar_info[scalar];
    bool narrow = info->bytes < 4, is_signed = info->kind == SCALAR_SIGNED;
    bool paren = prec > PREC_UNARY && (x < 0 || narrow);
    const char *suffix = narrow || scalar == S_INT ? "" : is_signed ? "L" : "u";
    if (x == INT32_MIN && scalar == S_INT) {
        put(p, LEAST_INT);
        return;
    }
    open_paren(p, paren);
    if (narrow)
        put(p, "(%s)", scalar_text(p, scalar));
    put(p, "%.0f%s%s", x, suffix, scalar == S_ULONG ? "L" : "");
    close_paren(p, paren);
}

static void put_literal(Printer *p, Scalar scalar, double x, Prec prec)
{
    if (scalar == S_BOOL)
        put(p, x != 0 ? "true" : "false");
    else if (scalar_info[scalar].integer)
        put_integer(p, scalar, x, prec);
    else
        put_real(p, scalar, x, prec);
}

// Vectors -----------------------------------------------------------------------------

static bool is_vector(const Printer *p, const KExpr *e)
{
    return e->type->kind == T_VECTOR && p->lane < 0;
}

static bool is_cast(Op op)
{
    return op_info[op].types == TY_CAST;
}

// A bf16 that the target holds as its bits.
static bool is_held(const Printer *p, const KExpr *e)
{
    return e->type->scalar == S_BF16 && !p->target->doubts;
}

// Whether an operation on bf16 is one on float between two conversions. Choosing between
// values is none.
static bool in_float(const Printer *p, const KExpr *e)
{
    return e->kind == K_OP && e->op != OP_SELECT &&
           (is_held(p, e) || is_held(p, e->arg[0]));
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
    bool structs = p->target->vectors == VECTORS_STRUCT;
    if (e->kind == K_CALL)
        return e->callee->result->kind == T_VECTOR;
    if (e->kind == K_COND || e->kind == K_INDEX)
        BUG("a condition or an index of a vector type");
    if (e->kind == K_LOAD)
        return has_vector_load(p, e);
    if (e->kind != K_OP)
        return e->kind != K_LITERAL;
    if (in_float(p, e))
        return false;
    if (is_cast(e->op))
        return !structs && e->op != OP_BOOL && e->arg[0]->type->scalar != S_BOOL;
    switch (op_info[e->op].types) {
    case TY_ARITH:
    case TY_FLOAT:
        if (e->op == OP_NEG)
            return !structs;
        if (is_infix(e->op))
            return (real || e->op != OP_DIV) &&
                   (!structs || vector_arithmetic(e->type->scalar));
        return real && p->target->vectors == VECTORS_BUILTIN;
    case TY_INTEGER:
    case TY_COMP:
    case TY_LOGIC:
    case TY_SELECT:
    case TY_CAST: return false;
    }
    BUG("operation %d", e->op);
}

static void open_vector(Printer *p, const Type *type)
{
    put_form(p, "%s%t%s", p->target->before, type, p->target->open);
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

// As fw_place does.
static int64_t place_of(const TilePlaces *t, int64_t i)
{
    const int64_t at = i % (t->count * 64), place = t->turned ? at % t->count : at / 64;
    const int64_t k = t->turned ? at / t->count : at % 64;
    return i - at +
           (t->turned
                ? place / 64 * 4096 + k * 64 + ((place % 64 / 8 ^ k % 8) * 8) + place % 8
                : place * 64 + ((k / 8 ^ place % 8) * 8) + k % 8);
}

// Does a constant part of an index move its place by as much wherever the rest is? It
// does where it changes none of the bits that the rest has, nor those that exchange pieces.
static bool is_apart(Printer *p, const TilePlaces *t, const Arith *rest, int64_t part)
{
    int64_t lo, hi, low = part & -part;
    arith_range(p->ctx, rest, &lo, &hi);
    return (t->count & (t->count - 1)) == 0 && lo >= 0 && hi < low &&
           low % (t->turned ? 8 * t->count : 512) == 0;
}

// What is the same for a whole tile of a ring stays outside, and so does what is constant:
// the rest is computed once, before the loop.
static void put_place(Printer *p, const TilePlaces *places, const Arith *index)
{
    const int64_t tile = places->count * 64;
    const Arith *start = arith_const(p->ctx, 0);
    for (int i = 0; index->kind == A_SUM && i < index->n; i++)
        if (index->term[i].coef % tile == 0)
            start = arith_add(p->ctx, start,
                              arith_mulc(p->ctx, index->term[i].arg, index->term[i].coef));
    index = arith_sub(p->ctx, index, start);
    int64_t part = index->kind == A_SUM ? index->value : 0;
    const Arith *rest = arith_addc(p->ctx, index, -part);
    if (part > 0 && is_apart(p, places, rest, part)) {
        start = arith_addc(p->ctx, start, place_of(places, part));
        index = rest;
    }
    int64_t fixed;
    if (arith_is_const(index, &fixed)) {
        put_index(p, arith_addc(p->ctx, start, place_of(places, fixed)), PREC_ANY);
        return;
    }
    put_form(p, "fw_place<%l, %s>(%i)", (int64_t)places->count,
             places->turned ? "true" : "false", index);
    if (start != arith_const(p->ctx, 0)) {
        put(p, " + ");
        put_index(p, start, PREC_SUM);
    }
}

bool by_value(const Printer *p, const Buffer *buffer)
{
    return buffer->value && target_takes_values(p->target);
}

void put_element(Printer *p, const Buffer *buffer, const Arith *index)
{
    put_name(p, buffer->name);
    if (by_value(p, buffer))
        return;
    put(p, "[");
    if (buffer->places)
        put_place(p, buffer->places, index);
    else
        put_index(p, index, PREC_ANY);
    put(p, "]");
}

bool put_vector_element(Printer *p, const Buffer *buffer, const Arith *index,
                        const Type *type, bool is_const)
{
    bool any_address = p->target->unaligned[0] != 0;
    if (!any_address && (p->target->doubts || !is_aligned(p, buffer, index, type->width)))
        return false;
    put_form(p, "*(%s%s%s%t *)&%e",
             buffer->space == MEM_LOCAL ? p->target->local_pointer : p->target->global,
             is_const ? "const " : "", p->target->unaligned, type, buffer, index);
    return true;
}

static void put_vector_load(Printer *p, const KExpr *e)
{
    if (put_vector_element(p, e->buffer, e->arith, e->type, true))
        return;
    put_form(p, "vload%d(0, &%e)", e->type->width, e->buffer, e->arith);
}

static void put_load(Printer *p, const KExpr *e, Prec prec)
{
    if (p->target->image && kernel_reads_image(p->kernel, e->buffer)) {
        put_form(p, "%s%n, %i%s", p->target->image_read[e->buffer->scalar == S_INT],
                 e->buffer->name, e->arith, p->target->image_close);
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
    } else if (is_vector(p, e) && has_builtins(p)) {
        put_form(p, "convert_%t(%v)", e->type, arg);
    } else if (is_vector(p, e)) {
        put_form(p, "__builtin_convertvector(%v, %t)", arg, e->type);
    } else if (is_held(p, e)) {
        put(p, "fw_bf16(%s", arg->type->scalar == S_FLOAT ? "" : "(float)");
        put_value(p, arg, arg->type->scalar == S_FLOAT ? PREC_SELECT : PREC_UNARY);
        put(p, ")");
    } else {
        bool to_float = is_held(p, arg) && e->type->scalar == S_FLOAT;
        bool paren = prec > PREC_UNARY && !to_float;
        open_paren(p, paren);
        if (!to_float)
            put(p, "(%s)", scalar_text(p, e->type->scalar));
        put(p, is_held(p, arg) ? "fw_float(" : "");
        put_value(p, arg, is_held(p, arg) ? PREC_SELECT : PREC_UNARY);
        put(p, is_held(p, arg) ? ")" : "");
        close_paren(p, paren);
    }
}

// An argument of a built-in must have the type of the call.
static void put_argument(Printer *p, const KExpr *call, const KExpr *arg)
{
    bool same_scalar = arg->type->scalar == call->type->scalar;
    bool splat = is_vector(p, call) && !is_vector(p, arg);
    // Operations make ints of what is narrower.
    bool widened = type_is_integer(call->type) && !is_vector(p, call) &&
                   scalar_info[call->type->scalar].bytes < 4 && arg->kind == K_OP &&
                   !p->target->doubts;
    if (same_scalar && !splat && !widened) {
        put_value(p, arg, PREC_SELECT);
    } else if (arg->kind == K_LITERAL && !splat) {
        put_literal(p, call->type->scalar, arg->number, PREC_SELECT);
    } else {
        put_form(p, "(%t)", call->type);
        put_value(p, arg, PREC_UNARY);
    }
}

// What CUDA has for half itself; the others go through float.
static const char *half_builtin(const Printer *p, Op op)
{
    if (p->target->overloaded || !has_builtins(p))
        return NULL;
    return op == OP_MINIMUM   ? "__hmin"
           : op == OP_MAXIMUM ? "__hmax"
           : op == OP_ABS     ? "__habs"
                              : NULL;
}

static void put_real_name(Printer *p, const KExpr *e)
{
    bool strict = p->program->math == MATH_STRICT && !p->target->doubts;
    Builtin name = strict ? strict_builtin(e->op) : real_builtin(e->op);
    bool is_half = e->type->scalar == S_HALF, suffix = !p->target->overloaded;
    const char *own = is_half && !strict ? half_builtin(p, e->op) : NULL;
    if (own) {
        put(p, "%s", own);
        return;
    }
    put(p, "%s", suffix && is_half ? "(half)" : "");
    put(p, "%s", has_builtins(p) ? name.device : name.c);
    put(p, "%s", suffix && e->type->scalar != S_DOUBLE ? "f" : "");
}

// The helpers of C are for int, long and unsigned long, and those of division for int and
// long; OpenCL C and CUDA overload the rest.
static void put_integer_name(Printer *p, const KExpr *e)
{
    Builtin builtin = integer_builtin(e->op);
    Scalar scalar = e->type->scalar;
    const char *name = has_builtins(p) ? builtin.device : builtin.c;
    if (e->op == OP_ABS && p->target->doubts)
        name = scalar == S_LONG && p->target->c_scalars ? "labs" : "abs";
    put(p, "%s", name);
    if (name[0] == 'f' && !p->target->doubts) // fw_
        put(p, "%s",
            scalar == S_ULONG                      ? "ul"
            : scalar == S_LONG || scalar == S_UINT ? "l"
                                                   : "");
}

static void put_builtin(Printer *p, const KExpr *e)
{
    if (scalar_info[e->type->scalar].floating)
        put_real_name(p, e);
    else
        put_integer_name(p, e);
    put(p, "(");
    for (int i = 0; i < e->n; i++) {
        put(p, i ? ", " : "");
        put_argument(p, e, e->arg[i]);
    }
    put(p, ")");
}

static bool is_at_computed(const KExpr *e, const void *printer)
{
    const Printer *p = printer;
    for (int i = 0; e->kind == K_LOAD && i < p->computed.len; i++)
        if (arith_mentions(e->arith, p->computed.at[i]))
            return true;
    return false;
}

static void put_both_sides(Printer *p, const KExpr *e)
{
    put_form(p, "fw_select<%t>(%v, [&] { return %v; }, [&] { return %v; })", e->type,
             e->arg[0], e->arg[1], e->arg[2]);
}

static void put_side(Printer *p, const KExpr *e, const Type *type)
{
    if (!p->target->doubts) {
        put_value(p, e, PREC_SELECT);
        return;
    }
    put_form(p, "%t(%v)", type, e); // the sides may be of two
}

static void put_select(Printer *p, const KExpr *e, Prec prec)
{
    // Both sides can be evaluated where the condition is in doubt, unless it guards an
    // index.
    if (p->target->doubts && !kexpr_any(e->arg[1], is_at_computed, p) &&
        !kexpr_any(e->arg[2], is_at_computed, p)) {
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
    Prec own = infix_prec(e->op);
    Prec prec = own == PREC_SELECT ? PREC_UNARY : own + (i > 0);
    if (e->op == OP_OR && is_conjunction(arg))
        prec = PREC_EQUAL;
    const KExpr *same = splat_of(arg);
    bool narrow = type_is_integer(arg->type) && scalar_info[arg->type->scalar].bytes < 4;
    if (arg->kind == K_LITERAL && narrow && !is_vector(p, other))
        put_literal(p, S_INT, arg->number, prec); // both sides become int
    else if (same && is_vector(p, other) && !splat_of(other))
        put_literal(p, same->type->scalar, same->number, prec);
    else
        put_value(p, arg, prec);
}

// A double over a constant whose inverse is as exact as it, and no power of two. Not to the
// bit, where the result is subnormal.
static bool is_over(const Printer *p, const KExpr *e)
{
    int exponent;
    if (p->program->math == MATH_EXACT || p->program->math == MATH_STRICT ||
        e->op != OP_DIV || e->type->kind != T_SCALAR || e->type->scalar != S_DOUBLE ||
        e->arg[1]->kind != K_LITERAL)
        return false;
    double size = fabs(e->arg[1]->number);
    return size > 1e-200 && size < 1e200 && frexp(size, &exponent) != 0.5;
}

// The inverse as a sum of two, the first towards zero.
static void put_over(Printer *p, const KExpr *e)
{
    double d = e->arg[1]->number, high = 1 / d;
    if (fma(-d, high, 1) < 0)
        high = nextafter(high, 0);
    const double number[] = {d, high, fma(-d, high, 1) / d};
    put_form(p, "%s%v", p->target->over, e->arg[0]);
    for (int i = 0; i < COUNTOF(number); i++) {
        put(p, ", ");
        put_literal(p, S_DOUBLE, number[i], PREC_SELECT);
    }
    put(p, ")");
}

static void put_infix(Printer *p, const KExpr *e, Prec prec)
{
    Prec own = infix_prec(e->op);
    open_paren(p, prec > own);
    put_infix_arg(p, e, 0);
    put(p, e->op == OP_MUL ? "%s" : " %s ", op_info[e->op].text);
    put_infix_arg(p, e, 1);
    close_paren(p, prec > own);
}

static void put_by_form(Printer *p, const KExpr *e, Prec prec)
{
    bool prefix = op_info[e->op].form == FORM_PREFIX;
    if (p->target->over && is_over(p, e)) {
        put_over(p, e);
    } else if (is_infix(e->op)) {
        put_infix(p, e, prec);
    } else if (prefix) {
        open_paren(p, prec > PREC_UNARY);
        put(p, "%s", op_info[e->op].text);
        put_value(p, e->arg[0], PREC_POSTFIX);
        close_paren(p, prec > PREC_UNARY);
    } else {
        put_builtin(p, e);
    }
}

// Integers ------------------------------------------------------------------------------

// The unsigned type of at least 32 bits in which an operation may overflow.
static const char *unsigned_text(const Printer *p, Scalar scalar)
{
    const ScalarInfo *info = &scalar_info[scalar];
    return scalar_text(p, info->bytes < 4                 ? S_UINT
                          : info->kind == SCALAR_UNSIGNED ? scalar
                          : info->bytes == 8              ? S_ULONG
                                                          : S_UINT);
}

// The count of a shift is taken modulo the bits of the type.
static void put_shift(Printer *p, const KExpr *e, Prec prec)
{
    int mask = 8 * scalar_info[e->type->scalar].bytes - 1;
    const KExpr *by = e->arg[1];
    open_paren(p, prec > PREC_SELECT);
    if (e->op == OP_SHL && scalar_info[e->type->scalar].kind == SCALAR_SIGNED &&
        !p->target->doubts)
        put(p, "(%s)", unsigned_text(p, e->type->scalar));
    put_value(p, e->arg[0], PREC_UNARY);
    put(p, " %s ", op_info[e->op].text);
    if (by->kind == K_LITERAL || (by->kind == K_INDEX && by->arith->kind == A_CONST)) {
        int64_t count = by->kind == K_INDEX ? by->arith->value : (int64_t)by->number;
        put(p, "%d", (int)(count & mask));
    } else {
        put(p, "(");
        put_value(p, by, PREC_UNARY);
        put(p, " & %d)", mask);
    }
    close_paren(p, prec > PREC_SELECT);
}

static void put_integer_value(Printer *p, const KExpr *e, Prec prec)
{
    Scalar scalar = e->type->scalar;
    bool is_unsigned = scalar_info[scalar].kind == SCALAR_UNSIGNED;
    bool divides = e->op == OP_DIV || e->op == OP_MOD;
    if (e->op == OP_SHL || e->op == OP_SHR) {
        put_shift(p, e, prec);
    } else if (divides && is_unsigned) {
        put_infix(p, e, prec);
    } else if (divides) {
        put_builtin(p, e);
    } else if (e->op == OP_ABS && is_unsigned) {
        put_value(p, e->arg[0], prec);
    } else if (e->op == OP_MUL && scalar == S_USHORT &&
               !p->target->doubts) { // of two, an int overflows
        open_paren(p, prec > PREC_PRODUCT);
        put(p, "(%s)", unsigned_text(p, scalar));
        put_value(p, e->arg[0], PREC_UNARY);
        put(p, "*");
        put_value(p, e->arg[1], PREC_UNARY);
        close_paren(p, prec > PREC_PRODUCT);
    } else {
        put_by_form(p, e, prec);
    }
}

// The languages leave signed results that are too large undefined, and compilers conclude
// from that: v*1000000000/1000000000 became v, and a sum of what is not negative >= 0.
bool value_wraps(const Printer *p, const KExpr *e)
{
    const ScalarInfo *info = &scalar_info[e->type->scalar];
    return e->kind == K_OP && info->kind == SCALAR_SIGNED && info->bytes >= 4 &&
           !p->target->doubts && !is_vector(p, e) &&
           (e->op == OP_ADD || e->op == OP_SUB || e->op == OP_MUL || e->op == OP_NEG);
}

static void put_unsigned(Printer *p, const KExpr *e, Prec prec)
{
    int64_t number = e->kind == K_LITERAL ? (int64_t)e->number : -1;
    if (e->kind == K_INDEX)
        arith_is_const(e->arith, &number);
    if (number >= 0 && e->type->scalar == S_INT) {
        put(p, "%" PRId64 "u", number);
        return;
    }
    if (!value_wraps(p, e)) {
        open_paren(p, prec > PREC_UNARY);
        put(p, "(%s)", unsigned_text(p, e->type->scalar));
        put_value(p, e, PREC_UNARY);
        close_paren(p, prec > PREC_UNARY);
        return;
    }
    Prec own = e->op == OP_NEG ? PREC_UNARY : infix_prec(e->op);
    open_paren(p, prec > own);
    if (e->op != OP_NEG)
        put_unsigned(p, e->arg[0], own);
    put(p, e->op == OP_MUL || e->op == OP_NEG ? "%s" : " %s ", op_info[e->op].text);
    const KExpr *last = e->arg[e->n - 1];
    put_unsigned(p, last, e->op == OP_NEG && !value_wraps(p, last) ? own : own + 1);
    close_paren(p, prec > own);
}

// Whether C's result has another type than the operation's.
static bool changes_type(const Printer *p, const KExpr *e)
{
    const ScalarInfo *info = &scalar_info[e->type->scalar];
    bool least = e->op == OP_MINIMUM || e->op == OP_MAXIMUM;
    return info->bytes < 4 || value_wraps(p, e) ||
           (e->op == OP_SHL && info->kind == SCALAR_SIGNED) ||
           (least && e->type->scalar == S_UINT && !has_builtins(p));
}

static void put_integer_op(Printer *p, const KExpr *e, Prec prec)
{
    bool cast = !p->target->doubts && changes_type(p, e), paren = cast && prec > PREC_UNARY;
    open_paren(p, paren);
    if (cast)
        put(p, "(%s)", scalar_text(p, e->type->scalar));
    if (value_wraps(p, e))
        put_unsigned(p, e, PREC_UNARY);
    else
        put_integer_value(p, e, cast ? PREC_UNARY : prec);
    close_paren(p, paren);
}

// All -----------------------------------------------------------------------------------

static const KExpr *as_float(Printer *p, const KExpr *e)
{
    const Type *type = e->type->kind == T_VECTOR ? type_vector(S_FLOAT, e->type->width)
                                                 : type_scalar(S_FLOAT);
    if (!is_held(p, e))
        return e;
    KExpr *cast = arena_copy(p->arena, e, sizeof(KExpr));
    cast->type = type;
    if (e->kind == K_LITERAL)
        return cast;
    const KExpr **arg = NEW_ARRAY(p->arena, const KExpr *, 1);
    arg[0] = e;
    *cast = (KExpr){.kind = K_OP, .op = OP_FLOAT, .type = type, .arg = arg, .n = 1};
    return cast;
}

// An operation on bf16 as one on float.
static void put_in_float(Printer *p, const KExpr *e, Prec prec)
{
    const KExpr **arg = NEW_ARRAY(p->arena, const KExpr *, e->n);
    KExpr op = *e;
    for (int i = 0; i < e->n; i++)
        arg[i] = as_float(p, e->arg[i]);
    op.arg = arg;
    op.type = as_float(p, e)->type;
    put(p, is_held(p, e) ? "fw_bf16(" : "");
    put_by_form(p, &op, is_held(p, e) ? PREC_SELECT : prec);
    put(p, is_held(p, e) ? ")" : "");
}

static void put_doubtful_logic(Printer *p, const KExpr *e)
{
    put_form(p, "fw_%s(%v, [&] { return %v; })", e->op == OP_AND ? "and" : "or", e->arg[0],
             e->arg[1]);
}

static void put_op(Printer *p, const KExpr *e, Prec prec)
{
    if (e->op == OP_SELECT)
        put_select(p, e, prec);
    else if (p->target->doubts && (e->op == OP_AND || e->op == OP_OR))
        put_doubtful_logic(p, e);
    else if (is_cast(e->op))
        put_cast(p, e, prec);
    else if (in_float(p, e))
        put_in_float(p, e, prec);
    else if (type_is_integer(e->type) && !is_vector(p, e))
        put_integer_op(p, e, prec);
    else
        put_by_form(p, e, prec);
}

static void put_call(Printer *p, const KExpr *e)
{
    put_function_name(p, e->callee->name);
    put(p, "(");
    for (int i = 0; i < kexpr_args(e); i++) {
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
    put_form(p, "%s%v, %i)", p->target->shuffle, e->arg[0], e->arith);
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
    case K_TILE:
        put(p, "&");
        put_element(p, e->buffer, e->arith);
        return;
    case K_MATRIX: BUG("what a warp adds up as a value");
    case K_OP: put_op(p, e, prec); return;
    case K_CALL: put_call(p, e); return;
    case K_COND: put_conds(p, e->cond, e->n, prec); return;
    case K_VECTOR: put_vector(p, e, prec); return;
    case K_LANE: put_lane(p, e->arg[0], e->lane, prec); return;
    case K_SHUFFLE: put_shuffle(p, e); return;
    case K_AWAIT:
        put_form(p, "fw_await_%s(&%e)", scalar_info[e->type->scalar].name, e->buffer,
                 e->arith);
        return;
    }
    BUG("value of kind %d", e->kind);
}
