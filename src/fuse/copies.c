// SPDX-License-Identifier: Apache-2.0
//
// The functions that kernels of fusions call: copies between memory and chip by all threads
// of a block.

#include "fuse/generator.h"

#include <string.h>

// The prelude ---------------------------------------------------------------------------

static const char copy_words[] = "{\n"
                                 "    #pragma unroll 4\n"
                                 "    for (int k = lid; k < words; k += threads)\n"
                                 "        if (k < left)\n"
                                 "            to[k] = from[k];\n"
                                 "}\n";

// Where all words are there, loads may overlap: nothing is asked between them.
static const char copy_fours[] = "{\n"
                                 "    if (left >= words) {\n"
                                 "        #pragma unroll 8\n"
                                 "        for (int k = 4*lid; k < words; k += 4*threads)\n"
                                 "            %;\n"
                                 "    } else {\n"
                                 "        for (int k = 4*lid; k < left; k += 4*threads)\n"
                                 "            for (int j = k; j < left && j < k + 4; j++)\n"
                                 "                to[j] = from[j];\n"
                                 "    }\n"
                                 "}\n";

// The same without registers in between; fw_wait ends what has been begun.
static const char async_text[] =
    "__device__ __forceinline__ void fw_load_async(float *to, const float *from, int "
    "words,\n"
    "    int left, int lid, int threads)\n"
    "{\n"
    "    if (left < words) {\n"
    "        fw_load4(to, from, words, left, lid, threads);\n"
    "        return;\n"
    "    }\n"
    "    #pragma unroll 8\n"
    "    for (int k = 4*lid; k < words; k += 4*threads)\n"
    "        asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\"\n"
    "                     ::\"r\"((unsigned)__cvta_generic_to_shared(to + k)), \"l\"(from "
    "+ k)\n"
    "                     : \"memory\");\n"
    "}\n"
    "__device__ __forceinline__ void fw_wait(void)\n"
    "{\n"
    "    asm volatile(\"cp.async.wait_all;\" ::: \"memory\");\n"
    "}\n";

void copy_four(const Target *t, const char *to, const char *from, Buf *out)
{
    if (t->threads)
        buf_printf(out, "*(%sfloat4 *)(to + k) = *(const %sfloat4 *)(from + k)", to, from);
    else
        buf_puts(out, "memcpy(to + k, from + k, 16)");
}

static void put_copy(const Target *t, const char *name, const char *to, const char *from,
                     const char *body, Buf *out)
{
    buf_printf(out,
               "%svoid %s(%sfloat *%s to, %sconst float *%s from, int words, int left,\n",
               t->function, name, to, t->restricted, from, t->restricted);
    buf_printf(out, "    int lid, int threads)\n");
    for (const char *c = body; *c; c++)
        if (*c == '%')
            copy_four(t, to, from, out);
        else
            buf_putc(out, *c);
}

void fused_prelude(const char *target, Buf *out)
{
    const Target *t = target_find(target);
    const char *local = t->local_pointer, *global = t->global;
    if (!t->threads) // for routines that are text
        buf_puts(out, "#include <tgmath.h>\n");
    emit_scalar_prelude(out, t);
    buf_puts(out,
             "// All threads of a block copy `words` neighbouring words, of which `left` "
             "are there.\n");
    put_copy(t, "fw_load", local, global, copy_words, out);
    put_copy(t, "fw_store", global, local, copy_words, out);
    put_copy(t, "fw_load4", local, global, copy_fours, out);
    put_copy(t, "fw_store4", global, local, copy_fours, out);
    if (strcmp(t->name, "cuda") == 0)
        buf_puts(out, async_text);
    if (t->threads)
        strips_prelude(t, out);
    buf_putc(out, '\n');
}
