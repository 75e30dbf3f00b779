// SPDX-License-Identifier: Apache-2.0
//
// Kernels of no call: a copy and an empty kernel, which are timed, and the one that adds
// the parts of a sum.

#include "fuse/generator.h"

void fused_print_copy(const char *target, const char *name, Buf *out)
{
    FusedKernel kernel = {.threads = 256};
    Generator g = {.kernel = &kernel, .d = dialect_find(target), .out = out, .indent = 1};
    if (g.d->loops)
        buf_puts(out, "#include <string.h>\n\n");
    gen_start(&g, name);
    buf_printf(out, "%sconst float *%s from, %sfloat *%s to, int fours)\n{\n", g.d->global,
               g.d->restricted, g.d->global, g.d->restricted);
    if (g.d->loops) {
        buf_puts(out, "    memcpy(to, from, 16*(size_t)fours);\n}\n");
        gen_entry(&g, name, 2, 1);
        return;
    }
    gen_put(&g, "const long first = 4096L*%s + 4*%s;", g.d->block, g.d->thread);
    gen_put(&g, "%s", g.d->unroll);
    gen_put(&g, "for (long k = first; k < first + 4096; k += 1024)");
    buf_puts(out, "        ");
    dialect_four(g.d, g.d->global, g.d->global, out);
    buf_puts(out, ";\n}\n");
}

// A block adds SUM_WORDS words, every eighth part by the same threads, and then these sums.
static void put_sum_of_arrays(Generator *g, int words)
{
    int slices = SUM_THREADS / SUM_WORDS;
    gen_put(g, "%sfloat all[%d];", gen_shared(g), SUM_THREADS);
    gen_put(g, "const int lid = %s, k = %d*%s + lid %% %d;", g->d->thread, SUM_WORDS,
            g->d->block, SUM_WORDS);
    gen_put(g, "float a = 0;");
    gen_put(g, "for (int b = lid / %d; b < blocks && k < %d; b += %d)", SUM_WORDS, words,
            slices);
    gen_put(g, "    a += part[%d*(long)b + k];", words);
    gen_put(g, "all[lid] = a;");
    gen_put(g, "%s;", g->d->barrier);
    gen_put(g, "if (lid < %d && k < %d) {", SUM_WORDS, words);
    gen_put(g, "    for (int s = 1; s < %d; s++)", slices);
    gen_put(g, "        a += all[lid + %d*s];", SUM_WORDS);
    gen_put(g, "    sum[k] = a;");
    gen_put(g, "}");
}

void fused_print_empty(const char *target, const char *name, int threads, Buf *out)
{
    FusedKernel kernel = {.threads = threads};
    Generator g = {.kernel = &kernel, .d = dialect_find(target), .out = out, .indent = 1};
    gen_start(&g, name);
    buf_printf(out, "%sfloat *out, int n)\n{\n", g.d->global);
    gen_put(&g, "if (n < 0)");
    gen_put(&g, "    out[%s] = 0;", g.d->loops ? "0" : g.d->thread);
    buf_puts(out, "}\n");
    gen_entry(&g, name, 1, 1);
}

void fused_print_sum(const char *target, const char *name, int words, Buf *out)
{
    FusedKernel kernel = {.threads = SUM_THREADS};
    Generator g = {.kernel = &kernel, .d = dialect_find(target), .out = out, .indent = 1};
    gen_start(&g, name);
    buf_printf(out, "%sconst float *%s part, %sfloat *%s sum, int blocks)\n{\n",
               g.d->global, g.d->restricted, g.d->global, g.d->restricted);
    if (g.d->loops) {
        gen_put(&g, "for (int k = 0; k < %d; k++) {", words);
        gen_put(&g, "    double a = 0;");
        gen_put(&g, "    for (int b = 0; b < blocks; b++)");
        gen_put(&g, "        a += part[%d*(long)b + k];", words);
        gen_put(&g, "    sum[k] = (float)a;\n    }");
    } else if (words == 1) {
        gen_put(&g, "%sfloat all[%d];", gen_shared(&g), SUM_THREADS);
        gen_put(&g, "const int lid = %s;", g.d->thread);
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
