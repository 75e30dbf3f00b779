// SPDX-License-Identifier: Apache-2.0
//
// Scalar operations of the language as C, CUDA and OpenCL alike have them (C through
// <tgmath.h>), from texts of the arguments that are closed in themselves. In a format %s is
// the next argument, %1 the first.

#include "fuse/routine.h"

#include <ctype.h>

static const char *op_format(Op op)
{
    switch (op) {
    case OP_ADD: return "%s + %s";
    case OP_SUB: return "%s - %s";
    case OP_MUL: return "%s*%s";
    case OP_DIV: return "%s / %s";
    case OP_NEG: return "-%s";
    case OP_LT: return "%s < %s";
    case OP_LE: return "%s <= %s";
    case OP_GT: return "%s > %s";
    case OP_GE: return "%s >= %s";
    case OP_EQ: return "%s == %s";
    case OP_NE: return "%s != %s";
    case OP_AND: return "%s && %s";
    case OP_OR: return "%s || %s";
    case OP_NOT: return "!%s";
    case OP_SELECT: return "%s ? %s : %s";
    case OP_MINIMUM: return "fmin(%s, %s)";
    case OP_MAXIMUM: return "fmax(%s, %s)";
    case OP_ABS: return "fabs(%s)";
    case OP_SQRT: return "sqrt(%s)";
    case OP_RSQRT: return "(1.0f / sqrt(%s))";
    case OP_EXP: return "exp(%s)";
    case OP_LOG: return "log(%s)";
    case OP_POW: return "pow(%s, %s)";
    case OP_SIN: return "sin(%s)";
    case OP_COS: return "cos(%s)";
    case OP_TAN: return "tan(%s)";
    case OP_TANH: return "tanh(%s)";
    case OP_ERF: return "erf(%s)";
    case OP_FLOOR: return "floor(%s)";
    case OP_CEIL: return "ceil(%s)";
    case OP_FMA: return "fma(%s, %s, %s)";
    case OP_FLOAT: return "((float)(%s))";
    case OP_INT: return "((int)(%s))";
    case OP_MOD:
    case OP_BOOL:
    case OP_HALF:
    case OP_DOUBLE:
    case OPS: break;
    }
    return NULL;
}

// Those of ints that have no function in all three, or are rounded otherwise there.
static const char *int_format(Op op)
{
    if (op == OP_DIV)
        return "%1 / %2 - (%1 % %2 != 0 && (%1 < 0) != (%2 < 0))";
    if (op == OP_MOD)
        return "%1 % %2 + (%1 % %2 != 0 && (%1 < 0) != (%2 < 0) ? %2 : 0)";
    if (op == OP_MINIMUM)
        return "%1 < %2 ? %1 : %2";
    if (op == OP_MAXIMUM)
        return "%1 > %2 ? %1 : %2";
    return op == OP_ABS ? "%1 < 0 ? -%1 : %1" : NULL;
}

const char *operation_text(Op op, bool of_ints, const char *const *arg, Arena *arena)
{
    const char *format = of_ints ? int_format(op) : NULL;
    Buf text;
    int next = 0;
    if (!format && !(format = op_format(op)))
        return NULL;
    buf_init(&text);
    for (const char *c = format; *c; c++)
        if (c[0] == '%' && c[1] == 's')
            buf_puts(&text, arg[next++]), c++;
        else if (c[0] == '%' && isdigit((unsigned char)c[1]))
            buf_puts(&text, arg[*++c - '1']);
        else
            buf_putc(&text, *c);
    return buf_keep(&text, arena);
}
