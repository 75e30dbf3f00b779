// SPDX-License-Identifier: Apache-2.0
//
// The tables of the language as arrays: scalar types, operations, patterns, and the
// words of the boundary kinds. The rows themselves are in ops.def and patterns.def.

#include "ir/ir.h"

const ScalarInfo scalar_info[SCALARS] = {
#define SCALAR(id, name, kind, bytes, digits, dtype, opencl, c, vectors)                   \
    {name,                                                                                 \
     SCALAR_##kind,                                                                        \
     bytes,                                                                                \
     digits,                                                                               \
     dtype,                                                                                \
     opencl,                                                                               \
     c,                                                                                    \
     S_##vectors,                                                                          \
     SCALAR_##kind == SCALAR_FLOAT,                                                        \
     SCALAR_##kind == SCALAR_SIGNED || SCALAR_##kind == SCALAR_UNSIGNED},
#include "ir/scalars.def"
#undef SCALAR
};

bool scalar_is_short(Scalar scalar)
{
    return scalar == S_HALF || scalar == S_BF16;
}

Scalar scalar_word(Scalar scalar)
{
    const ScalarInfo *info = &scalar_info[scalar];
    if (scalar == S_BOOL || info->bytes >= 4)
        return scalar;
    return info->floating ? S_FLOAT : info->kind == SCALAR_UNSIGNED ? S_UINT : S_INT;
}

Op op_cast(Scalar to)
{
    static const Op op[SCALARS] = {
#define SCALAR(id, ...) OP_##id,
#include "ir/scalars.def"
#undef SCALAR
    };
    return op[to];
}

const OpInfo op_info[OPS] = {
#define OP(id, text, args, form, types, kind, value, doc)                                  \
    {text, args, FORM_##form, TY_##types, OPK_##kind, doc},
#include "ir/ops.def"
#undef OP
};

const MathInfo math_info[MATHS] = {
#define MATH(id, text, help) {text, help},
#include "ir/math.def"
#undef MATH
};

const char *const extra_text[EXTRAS] = {
#define EXTRA(id, text, help) text,
#include "ir/extras.def"
#undef EXTRA
};

bool op_is_rounded(Op op)
{
    OpKind kind = op_info[op].kind;
    return op == OP_SQRT || op == OP_RSQRT || (kind != OPK_EXP && kind != OPK_SPECIAL);
}

bool op_updates(Op op)
{
    return op == OP_ADD || op == OP_MUL || op == OP_MINIMUM || op == OP_MAXIMUM;
}

bool op_joins(Op op)
{
    return op_updates(op) || op == OP_AND || op == OP_OR;
}

bool math_find(const char *text, Math *math)
{
    int i = FIND(math_info, MATHS, text, text);
    if (i >= 0)
        *math = (Math)i;
    return i >= 0;
}

const PatternInfo pattern_info[PATTERNS] = {
#define PATTERN(id, text, group, fun, num, data, suffix, doc)                              \
    {text, G_##group, fun, num, data, SUFFIX_##suffix, doc},
#include "ir/patterns.def"
#undef PATTERN
};

const char *const pad_mode_name[PAD_CONSTANT] = {"clamp", "mirror", "wrap", "unread"};

bool view_inverts(const Expr *view)
{
    switch (view->pattern) {
    case P_GATHER: return view->fun->turns;
    case P_JOIN:
    case P_SPLIT:
    case P_TRANSPOSE:
    case P_TAKE:
    case P_UNZIP:
    case P_SCATTER:
    case P_ASSCALAR:
    case P_ASVECTOR: return true;
    default: return false;
    }
}
