// SPDX-License-Identifier: Apache-2.0
//
// What OpenCL C, CUDA and C write differently in kernels of fusions, and the functions that
// these call: copies between memory and chip by all threads of a block.

#include "emit/emit.h"
#include "fuse/generator.h"

#include <string.h>

static const Dialect dialect[] = {
    {"opencl", "kernel", "", "global ", "local ", "restrict",
     "barrier(CLK_LOCAL_MEM_FENCE)", "get_local_id(0)", "get_group_id(0)", "#pragma unroll",
     "*(@float4 *)(to + k) = *(const @float4 *)(from + k)", false},
    {"cuda", "extern \"C\" __global__", "__device__ __forceinline__ ", "", "",
     "__restrict__", "__syncthreads()", "threadIdx.x", "blockIdx.x", "#pragma unroll",
     "*(@float4 *)(to + k) = *(const @float4 *)(from + k)", false},
    {"c", "static", "static inline ", "", "", "restrict", NULL, NULL, NULL,
     "#pragma GCC unroll 32", "memcpy(to + k, from + k, 16)", true},
};

const Dialect *dialect_find(const char *name)
{
    for (int i = 0; i < COUNTOF(dialect); i++)
        if (strcmp(dialect[i].name, name) == 0)
            return &dialect[i];
    BUG("no dialect for %s", name);
}

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

void dialect_four(const Dialect *d, const char *to, const char *from, Buf *out)
{
    const char *space[] = {to, from};
    int n = 0;
    for (const char *c = d->four; *c; c++)
        if (*c == '@')
            buf_puts(out, space[n++]);
        else
            buf_putc(out, *c);
}

static void put_copy(const Dialect *d, const char *name, const char *to, const char *from,
                     const char *body, Buf *out)
{
    buf_printf(out,
               "%svoid %s(%sfloat *%s to, %sconst float *%s from, int words, int left,\n",
               d->function, name, to, d->restricted, from, d->restricted);
    buf_printf(out, "    int lid, int threads)\n");
    for (const char *c = body; *c; c++)
        if (*c == '%')
            dialect_four(d, to, from, out);
        else
            buf_putc(out, *c);
}

void fused_prelude(const char *target, Buf *out)
{
    const Dialect *d = dialect_find(target);
    if (d->loops) // for routines that are text
        buf_puts(out, "#include <tgmath.h>\n");
    emit_scalar_prelude(out, target_find(target));
    buf_puts(out,
             "// All threads of a block copy `words` neighbouring words, of which `left` "
             "are there.\n");
    put_copy(d, "fw_load", d->local, d->global, copy_words, out);
    put_copy(d, "fw_store", d->global, d->local, copy_words, out);
    put_copy(d, "fw_load4", d->local, d->global, copy_fours, out);
    put_copy(d, "fw_store4", d->global, d->local, copy_fours, out);
    if (strcmp(d->name, "cuda") == 0)
        buf_puts(out, async_text);
    if (!d->loops)
        strips_prelude(d, out);
    buf_putc(out, '\n');
}
