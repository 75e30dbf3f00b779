// SPDX-License-Identifier: Apache-2.0
//
// How groups of a kernel tell each other numbers: words of 64 bits in global memory, which
// were zero before the kernel.
//
//   method  Half of a word is a number of at most 32 bits, or half of one of 64; the other
//           half says that it is there. A word is written at once, so that who sees that it
//           is there sees the number, and no fence is needed.
//   source  Merrill and Garland, "Single-pass parallel prefix scan with decoupled
//           look-back", 2016, section 4.4

#include "emit/print.h"

#include <string.h>

// A number as bits and back, of OpenCL C and of C++.
typedef struct {
    Scalar scalar;
    const char *to[2], *from[2];
} WordBits;

static const WordBits word_bits[] = {
    {S_FLOAT, {"as_uint", "__float_as_uint"}, {"as_float", "__uint_as_float"}},
    {S_DOUBLE, {"as_ulong", "__double_as_longlong"}, {"as_double", "__longlong_as_double"}},
    {S_HALF, {"as_ushort", "__half_as_ushort"}, {"as_half", "__ushort_as_half"}},
    {S_INT, {"(uint)", "(unsigned)"}, {"(int)", "(int)"}},
};

// Holes: @ before a function, N name, T type, W a word's type, U the same without a sign,
// G of global memory and a space, B to bits, R from bits, H the bits' type.
static const char one_word[] = "@T fw_await_N(Gconst W *at)\n"
                               "{\n"
                               "    U word;\n"
                               "    do\n"
                               "        word = *(Gconst volatile U *)at;\n"
                               "    while (!(word >> 32));\n"
                               "    return R((H)word);\n"
                               "}\n"
                               "@void fw_publish_N(GW *at, T value)\n"
                               "{\n"
                               "    *(Gvolatile U *)at = (U)1 << 32 | B(value);\n"
                               "}\n";
static const char two_words[] = "@T fw_await_N(Gconst W *at)\n"
                                "{\n"
                                "    U low, high;\n"
                                "    do\n"
                                "        low = *(Gconst volatile U *)at;\n"
                                "    while (!(low >> 32));\n"
                                "    do\n"
                                "        high = *(Gconst volatile U *)(at + 1);\n"
                                "    while (!(high >> 32));\n"
                                "    return R((H)(high << 32 | (low & 0xffffffffu)));\n"
                                "}\n"
                                "@void fw_publish_N(GW *at, T value)\n"
                                "{\n"
                                "    const U bits = (U)B(value), there = (U)1 << 32;\n"
                                "    *(Gvolatile U *)at = there | (bits & 0xffffffffu);\n"
                                "    *(Gvolatile U *)(at + 1) = there | bits >> 32;\n"
                                "}\n";

static void put_word(Buf *out, const Target *target, const WordBits *bits)
{
    const ScalarInfo *info = &scalar_info[bits->scalar];
    const bool c = target->c_scalars;
    const char *half = info->bytes == 2  ? c ? "unsigned short" : "ushort"
                       : info->bytes > 4 ? c ? "long long" : "ulong"
                       : c               ? "unsigned"
                                         : "uint";
    const char *with[] = {target->function,
                          info->name,
                          c ? info->c : info->name,
                          "long",
                          c ? "unsigned long" : "ulong",
                          c ? "" : "global ",
                          bits->to[c],
                          bits->from[c],
                          half};
    put_with(out, info->bytes > 4 ? two_words : one_word, "@NTWUGBRH", with);
}

void put_words(Buf *out, const Target *target, const Program *program, const Uses *uses)
{
    size_t before = out->len;
    bool scans = program->main && program->main->body &&
                 expr_find_pattern(program->main->body, P_SCAN);
    if (!target->threads || target->doubts || !(uses->text || scans))
        return;
    for (int i = 0; i < COUNTOF(word_bits); i++) {
        char name[64];
        const Scalar scalar = word_bits[i].scalar;
        snprintf(name, sizeof name, "fw_publish_%s(", scalar_info[scalar].name);
        if (uses->text ? strstr(uses->text, name) != NULL : program_uses(program, scalar))
            put_word(out, target, &word_bits[i]);
    }
    if (out->len > before)
        buf_putc(out, '\n');
}
