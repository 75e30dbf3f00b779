// SPDX-License-Identifier: Apache-2.0
//
// Kernels of no call: a copy and an empty kernel, which are timed, and the one that adds
// the parts of a sum.

#include "fuse/generator.h"

void fused_print_copy(const char *target, const char *name, Buf *out)
{
    FusedKernel kernel = {.threads = 256};
    Generator g = {.kernel = &kernel, .t = target_find(target), .out = out, .indent = 1};
    if (!g.t->threads)
        buf_puts(out, "#include <string.h>\n\n");
    gen_start(&g, name);
    buf_printf(out, "%sconst float *%s from, %sfloat *%s to, int fours)\n{\n", g.t->global,
               g.t->restricted, g.t->global, g.t->restricted);
    if (!g.t->threads) {
        buf_puts(out, "    memcpy(to, from, 16*(size_t)fours);\n}\n");
        gen_entry(&g, name, 2, 1);
        return;
    }
    gen_ids(&g);
    gen_put(&g, "const long first = 4096L*block + 4*lid;");
    gen_unroll(&g);
    gen_put(&g, "for (long k = first; k < first + 4096; k += 1024)");
    buf_puts(out, "        ");
    copy_four(g.t, g.t->global, g.t->global, out);
    buf_puts(out, ";\n}\n");
}

// A block adds SUM_WORDS words, every eighth part by the same threads, and then these sums.
static void put_sum_of_arrays(Generator *g, int words)
{
    int slices = SUM_THREADS / SUM_WORDS;
    gen_put(g, "%sfloat all[%d];", g->t->local, SUM_THREADS);
    gen_ids(g);
    gen_put(g, "const int k = %d*block + lid %% %d;", SUM_WORDS, SUM_WORDS);
    gen_put(g, "float a = 0;");
    gen_put(g, "for (int b = lid / %d; b < blocks && k < %d; b += %d)", SUM_WORDS, words,
            slices);
    gen_put(g, "    a += part[%d*(long)b + k];", words);
    gen_put(g, "all[lid] = a;");
    gen_barrier(g);
    gen_put(g, "if (lid < %d && k < %d) {", SUM_WORDS, words);
    gen_put(g, "    for (int s = 1; s < %d; s++)", slices);
    gen_put(g, "        a += all[lid + %d*s];", SUM_WORDS);
    gen_put(g, "    sum[k] = a;");
    gen_put(g, "}");
}

void fused_print_empty(const char *target, const char *name, int threads, Buf *out)
{
    FusedKernel kernel = {.threads = threads};
    Generator g = {.kernel = &kernel, .t = target_find(target), .out = out, .indent = 1};
    gen_start(&g, name);
    buf_printf(out, "%sfloat *out, int n)\n{\n", g.t->global);
    if (g.t->threads)
        gen_ids(&g);
    gen_put(&g, "if (n < 0)");
    gen_put(&g, "    out[%s] = 0;", g.t->threads ? "block + lid" : "0");
    buf_puts(out, "}\n");
    gen_entry(&g, name, 1, 1);
}

void fused_print_sum(const char *target, const char *name, int words, Buf *out)
{
    FusedKernel kernel = {.threads = SUM_THREADS};
    Generator g = {.kernel = &kernel, .t = target_find(target), .out = out, .indent = 1};
    gen_start(&g, name);
    buf_printf(out, "%sconst float *%s part, %sfloat *%s sum, int blocks)\n{\n",
               g.t->global, g.t->restricted, g.t->global, g.t->restricted);
    if (!g.t->threads) {
        gen_put(&g, "for (int k = 0; k < %d; k++) {", words);
        gen_put(&g, "    double a = 0;");
        gen_put(&g, "    for (int b = 0; b < blocks; b++)");
        gen_put(&g, "        a += part[%d*(long)b + k];", words);
        gen_put(&g, "    sum[k] = (float)a;\n    }");
    } else if (words == 1) {
        gen_put(&g, "%sfloat all[%d];", g.t->local, SUM_THREADS);
        gen_ids(&g);
        gen_put(&g, "float a = 0;");
        gen_put(&g, "for (int b = lid; b < blocks; b += %d)", SUM_THREADS);
        gen_put(&g, "    a += part[b];");
        gen_tree(&g, "a", "all", "sum[0]");
    } else {
        put_sum_of_arrays(&g, words);
    }
    buf_puts(out, "}\n");
    gen_entry(&g, name, 2, 1);
}
