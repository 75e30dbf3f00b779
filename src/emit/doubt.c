// SPDX-License-Identifier: Apache-2.0
//
// The head of the reference: C++ whose numbers know how far rounding may take a kernel's
// from them. doubt.txt is its text.

#include "emit/print.h"

static const char *const lines[] = {
#include "emit/doubt.inc"
};

#define EXACT_LINES                                                                        \
    "#define FW_FAST 0\n"                                                                  \
    "#define FW_KEEPS_DENORMALS\n"                                                         \
    "#define FW_DIV_UNITS(T) 1\n"                                                          \
    "#define FW_SQRT_UNITS(T) 1\n"

// Units in the last place are two of rounding. double and half do not depend on `math`.
// FW_EXACT: these are the kernels of a target whose `standard` is exact.
static const char *const math_lines[MATHS] = {
    [MATH_STANDARD] = "#ifdef FW_EXACT\n" EXACT_LINES "#else\n"
                      "#define FW_FAST 0\n"
                      "#define FW_DIV_UNITS(T) (T::unit == 1.0 / (1 << 24) ? 5.1 : 1)\n"
                      "#define FW_SQRT_UNITS(T) (T::unit == 1.0 / (1 << 24) ? 6.1 : 1)\n"
                      "#endif\n",
    [MATH_EXACT] = EXACT_LINES,
    [MATH_STRICT] = EXACT_LINES,
    [MATH_FAST] = "#define FW_FAST 1\n"
                  "#define FW_DIV_UNITS(T) 8\n"
                  "#define FW_SQRT_UNITS(T) 8\n",
};

void put_doubt_head(Buf *out, const Program *program, const Uses *uses)
{
    buf_puts(out, math_lines[program->math]);
    for (int i = 0; i < COUNTOF(lines); i++)
        buf_puts(out, lines[i]);
}
