// SPDX-License-Identifier: Apache-2.0
//
// Kernels of fusions, as OpenCL C, CUDA or C (paper 004, section 3 and Figure 1: loads,
// compute routines and stores glued together, without those of elements that stay on chip).
//
// A block computes `instances` neighbouring instances. An element on chip lies as all its
// instances one after another, so that loading and storing it is one contiguous copy. Where
// the granularity changes, instance and lane are worked out again from the thread. As C a
// block's threads are loops, one between every two barriers.

#include "fuse/barrier.h"

#include <string.h>

// What the languages write differently.
typedef struct {
    const char *name, *start, *function, *global, *local, *restricted, *barrier, *thread,
        *block, *unroll;
    const char *four; // copies four words from `from + k` to `to + k`; @: address spaces
    bool loops;       // threads are loops
} Dialect;

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

static const Dialect *find_dialect(const char *name)
{
    for (int i = 0; i < COUNTOF(dialect); i++)
        if (strcmp(dialect[i].name, name) == 0)
            return &dialect[i];
    BUG("no dialect for %s", name);
}

// The prelude ---------------------------------------------------------------------------

static const char copy_words[] = "{\n"
                                 "    for (int k = lid; k < words; k += threads)\n"
                                 "        if (k < left)\n"
                                 "            to[k] = from[k];\n"
                                 "}\n";

static const char copy_fours[] = "{\n"
                                 "    for (int k = 4*lid; k < words; k += 4*threads)\n"
                                 "        if (k + 4 <= left)\n"
                                 "            %;\n"
                                 "        else\n"
                                 "            for (int j = k; j < left && j < k + 4; j++)\n"
                                 "                to[j] = from[j];\n"
                                 "}\n";

// Ends what has been begun before the barrier that follows.
static const char async_text[] =
    "__device__ __forceinline__ void fw_load_async(float *to, const float *from, int "
    "words,\n"
    "                                              int left, int lid, int threads)\n"
    "{\n"
    "    for (int k = 4*lid; k < words; k += 4*threads)\n"
    "        if (k + 4 <= left)\n"
    "            asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\"\n"
    "                         ::\"r\"((unsigned)__cvta_generic_to_shared(to + k)),\n"
    "                           \"l\"(from + k) : \"memory\");\n"
    "        else\n"
    "            for (int j = k; j < left && j < k + 4; j++)\n"
    "                to[j] = from[j];\n"
    "}\n"
    "__device__ __forceinline__ void fw_wait(void)\n"
    "{\n"
    "    asm volatile(\"cp.async.wait_all;\" ::: \"memory\");\n"
    "}\n";

// Four words from one address space to another: the first @ is `to`, the second `from`.
static void put_four(const Dialect *d, const char *to, const char *from, Buf *out)
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
    buf_printf(out, "%svoid %s(%sfloat *to, %sconst float *from, int words, int left,\n",
               d->function, name, to, from);
    buf_printf(out, "    int lid, int threads)\n");
    for (const char *c = body; *c; c++)
        if (*c == '%')
            put_four(d, to, from, out);
        else
            buf_putc(out, *c);
}

void kernel_prelude(const char *target, Buf *out)
{
    const Dialect *d = find_dialect(target);
    if (d->loops)
        buf_puts(out, "#include <string.h>\n#include <tgmath.h>\n\n");
    buf_puts(out,
             "// All threads of a block copy `words` neighbouring words, of which `left` "
             "are there.\n");
    put_copy(d, "fw_load", d->local, d->global, copy_words, out);
    put_copy(d, "fw_store", d->global, d->local, copy_words, out);
    put_copy(d, "fw_load4", d->local, d->global, copy_fours, out);
    put_copy(d, "fw_store4", d->global, d->local, copy_fours, out);
    if (strcmp(d->name, "cuda") == 0)
        buf_puts(out, async_text);
    buf_putc(out, '\n');
}

// Printing ----------------------------------------------------------------------------

typedef struct {
    const Script *script;
    FusedKernel *kernel;
    const Fusion *fusion;
    const Dialect *d;
    Watch *watch;
    Buf *out;
    int indent;
    bool pending;            // asynchronous loads that nobody has waited for
    bool loaded[PLACES_MAX]; // elements whose load was printed
} Generator;

static void put(Generator *g, const char *format, ...) FW_PRINTF(2, 3);
static void put(Generator *g, const char *format, ...)
{
    va_list args;
    buf_printf(g->out, "%*s", 4 * g->indent, "");
    va_start(args, format);
    buf_vprintf(g->out, format, args);
    va_end(args);
    buf_putc(g->out, '\n');
}

static bool is_async(const Generator *g)
{
    return g->kernel->choice.copy == COPY_ASYNC && strcmp(g->d->name, "cuda") == 0;
}

static int instances(const Generator *g)
{
    return g->kernel->choice.instances;
}

static const Elem *elem_at(const Generator *g, int place)
{
    return &g->script->elem[g->fusion->elem[place]];
}

// Threads as loops begin and end between barriers.
static void open_threads(Generator *g)
{
    if (!g->d->loops)
        return;
    put(g, "for (int lid = 0; lid < %d; lid++) {", g->kernel->threads);
    g->indent++;
}

static void close_threads(Generator *g)
{
    if (!g->d->loops)
        return;
    g->indent--;
    put(g, "}");
}

static void wait_for_loads(Generator *g)
{
    if (g->pending)
        put(g, "fw_wait();");
    g->pending = false;
}

static void guard(Generator *g, const ChipAccess *access, int n)
{
    if (!watch_access(g->watch, access, n))
        return;
    wait_for_loads(g);
    close_threads(g);
    if (g->d->barrier)
        put(g, "%s;", g->d->barrier);
    open_threads(g);
    g->kernel->barriers++;
}

// Loads and stores ----------------------------------------------------------------------

static ChipAccess copy_access(const Generator *g, int place, bool write)
{
    int words = elem_at(g, place)->words;
    return (ChipAccess){.base = g->kernel->offset[place] * instances(g),
                        .stride = words,
                        .words = words,
                        .vector = g->kernel->choice.copy == COPY_WORDS ? 1 : 4,
                        .write = write};
}

// What follows the name of what a thread holds: its index where threads are loops.
static const char *own_suffix(const Generator *g)
{
    return g->d->loops ? "[lid]" : "";
}

static void put_load(Generator *g, int place)
{
    const Elem *e = elem_at(g, place);
    int w = e->words, i = instances(g), at = g->kernel->offset[place] * i;
    if (g->loaded[place])
        return;
    g->loaded[place] = true;
    if (g->kernel->held[place] == HELD_SCALAR) {
        put(g, "if (lid < %d*n)", w);
        put(g, "    x_%s%s = g_%s[%d*(long)base + lid];", e->name, own_suffix(g), e->name,
            w);
        return;
    }
    ChipAccess access = copy_access(g, place, true);
    guard(g, &access, 1);
    const char *name = g->kernel->choice.copy == COPY_WORDS ? "fw_load"
                       : is_async(g)                        ? "fw_load_async"
                                                            : "fw_load4";
    put(g, "%s(sm + %d, g_%s + %d*(long)base, %d, %d*n, lid, %d);", name, at, e->name, w,
        w * i, w, g->kernel->threads);
    g->pending = g->pending || is_async(g);
}

static void put_store(Generator *g, int place)
{
    const Elem *e = elem_at(g, place);
    int w = e->words, i = instances(g), at = g->kernel->offset[place] * i;
    if (g->kernel->held[place] == HELD_SCALAR) {
        put(g, "if (lid < %d*n)", w);
        put(g, "    g_%s[%d*(long)base + lid] = x_%s%s;", e->name, w, e->name,
            own_suffix(g));
        return;
    }
    ChipAccess access = copy_access(g, place, false);
    guard(g, &access, 1);
    const char *name = g->kernel->choice.copy == COPY_WORDS ? "fw_store" : "fw_store4";
    put(g, "%s(g_%s + %d*(long)base, sm + %d, %d, %d*n, lid, %d);", name, e->name, w, at,
        w * i, w, g->kernel->threads);
}

// Loads of what a call takes.
static void put_loads(Generator *g, const Call *call)
{
    for (int p = 0; p < call->function->nparam; p++)
        if (fusion_loads(g->script, g->fusion, call->in[p]))
            put_load(g, fusion_place(g->fusion, call->in[p]));
}

// Compute routines ----------------------------------------------------------------------

static int element_of(const Call *call, int p)
{
    return p < call->function->nparam ? call->in[p] : call->out;
}

static void guard_routine(Generator *g, const Call *call, const Impl *impl)
{
    ChipAccess access[ARITY_MAX + 1];
    int n = 0;
    for (int p = 0; p <= call->function->nparam; p++) {
        int place = fusion_place(g->fusion, element_of(call, p));
        if (g->kernel->held[place] == HELD_MEMORY)
            access[n++] = (ChipAccess){.base = g->kernel->offset[place] * instances(g),
                                       .stride = elem_at(g, place)->words,
                                       .words = elem_at(g, place)->words,
                                       .map = &impl->map[p],
                                       .write = p == call->function->nparam};
    }
    guard(g, access, n);
    wait_for_loads(g);
}

static void put_title(Generator *g, const Call *call, const Impl *impl)
{
    Buf text;
    buf_init(&text);
    for (int p = 0; p < call->function->nparam; p++)
        buf_printf(&text, "%s%s", p ? ", " : "", g->script->elem[call->in[p]].name);
    put(g, "// %s = %s(%s), %d thread%s an instance", g->script->elem[call->out].name,
        call->function->name, text.text, impl->lanes, impl->lanes == 1 ? "" : "s");
    buf_release(&text);
}

// The pointer by which a routine reaches an element on chip.
static void put_pointer(Generator *g, const Call *call, int p, const char *name)
{
    int place = fusion_place(g->fusion, element_of(call, p));
    bool out = p == call->function->nparam;
    if (g->kernel->held[place] == HELD_MEMORY)
        put(g, "%s%sfloat *%s = sm + %d + %d*inst;", out ? "" : "const ", g->d->local, name,
            g->kernel->offset[place] * instances(g), elem_at(g, place)->words);
}

static bool seen_before(const Call *call, int p)
{
    for (int k = 0; k < p; k++)
        if (element_of(call, k) == element_of(call, p))
            return true;
    return false;
}

static void put_made(Generator *g, const Call *call, int impl, Arena *arena)
{
    Held held[ARITY_MAX + 1];
    for (int p = 0; p <= call->function->nparam; p++) {
        int place = fusion_place(g->fusion, element_of(call, p));
        const char *name = arena_printf(arena, "x_%s", elem_at(g, place)->name);
        if (!seen_before(call, p))
            put_pointer(g, call, p, name);
        held[p] = (Held){g->kernel->held[place], name};
        if (held[p].kind != HELD_MEMORY)
            held[p].name = arena_printf(arena, "%s%s", name, own_suffix(g));
    }
    bool any_array = false;
    for (int p = 0; p <= call->function->nparam; p++)
        any_array = any_array || held[p].kind == HELD_ARRAY;
    routine_emit(g->script, call->function, impl, held, any_array ? g->d->unroll : "",
                 g->indent, g->out);
}

static void put_text(Generator *g, const Call *call, const Impl *impl)
{
    for (int p = 0; p <= call->function->nparam; p++)
        put_pointer(g, call, p,
                    p < call->function->nparam ? call->function->param[p] : "out");
    put(g, "%s", impl->text);
}

static void put_routine(Generator *g, int step, Arena *arena)
{
    const Call *call = &g->script->call[g->fusion->order[step]];
    int number = g->kernel->choice.impl[step];
    const Impl *impl = &call->function->impl[number];
    guard_routine(g, call, impl);
    put_title(g, call, impl);
    if (impl->lanes == 1)
        put(g, "if (lid < n) {");
    else
        put(g, "if (lid < %d*n) {", impl->lanes);
    g->indent++;
    if (impl->lanes == 1)
        put(g, "const int inst = lid;");
    else
        put(g, "const int inst = lid / %d, lane = lid %% %d;", impl->lanes, impl->lanes);
    if (impl->text && impl->lanes == 1)
        put(g, "const int lane = 0;");
    if (impl->text)
        put_text(g, call, impl);
    else
        put_made(g, call, number, arena);
    g->indent--;
    put(g, "}");
    int place = fusion_place(g->fusion, call->out);
    if (fusion_stores(g->script, g->fusion, call->out))
        put_store(g, place);
}

// The kernel ------------------------------------------------------------------------------

static void put_head(Generator *g, const char *name)
{
    int elem[PLACES_MAX], n = kernel_arguments(g->script, g->fusion, elem);
    buf_puts(g->out, g->d->start);
    if (strcmp(g->d->name, "opencl") == 0)
        buf_printf(g->out, " __attribute__((reqd_work_group_size(%d, 1, 1)))",
                   g->kernel->threads);
    buf_puts(g->out, " void");
    if (strcmp(g->d->name, "cuda") == 0)
        buf_printf(g->out, " __launch_bounds__(%d)", g->kernel->threads);
    buf_printf(g->out, "\n%s(", name);
    for (int i = 0; i < n; i++)
        buf_printf(g->out, "%s%sfloat *%s g_%s, ", g->d->global,
                   fusion_loads(g->script, g->fusion, elem[i]) ? "const " : "",
                   g->d->restricted, g->script->elem[elem[i]].name);
    buf_puts(g->out, "int N)\n{\n");
}

static void put_storage(Generator *g)
{
    int words = g->kernel->top * instances(g);
    const char *space = strcmp(g->d->name, "cuda") == 0 ? "__shared__ " : g->d->local;
    if (words)
        put(g, "%sfloat sm[%d]%s;", space, words,
            g->d->loops ? "" : " __attribute__((aligned(16)))");
    for (int i = 0; i < g->fusion->nelem; i++) {
        const Elem *e = elem_at(g, i);
        char each[32] = "";
        if (g->d->loops)
            snprintf(each, sizeof each, "[%d]", g->kernel->threads);
        if (g->kernel->held[i] == HELD_SCALAR)
            put(g, "float x_%s%s;", e->name, each);
        if (g->kernel->held[i] == HELD_ARRAY)
            put(g, "float x_%s%s[%d];", e->name, each, e->words / g->kernel->lanes[i]);
    }
}

static void put_body(Generator *g, Arena *arena)
{
    open_threads(g);
    for (int step = 0; step < g->fusion->ncall && g->kernel->choice.early; step++)
        put_loads(g, &g->script->call[g->fusion->order[step]]);
    for (int step = 0; step < g->fusion->ncall; step++) {
        put_loads(g, &g->script->call[g->fusion->order[step]]);
        put_routine(g, step, arena);
    }
    close_threads(g);
}

// C: the host calls by this name, with the addresses of all arguments.
static void put_entry(Generator *g, const char *name)
{
    int elem[PLACES_MAX], n = kernel_arguments(g->script, g->fusion, elem);
    buf_printf(g->out, "void %s_entry(void *const *arg)\n{\n    %s(", name, name);
    for (int i = 0; i < n; i++)
        buf_printf(g->out, "arg[%d], ", i);
    buf_printf(g->out, "*(const int *)arg[%d]);\n}\n", n);
}

void kernel_print(const Script *script, FusedKernel *kernel, const char *target,
                  const char *name, Buf *out)
{
    Generator g = {.script = script,
                   .kernel = kernel,
                   .fusion = kernel->fusion,
                   .d = find_dialect(target),
                   .out = out,
                   .indent = 1};
    int block = kernel->choice.instances;
    Arena *arena = arena_new();
    g.watch = watch_new(kernel->top * block, block, kernel->threads);
    kernel->barriers = 0;
    put_head(&g, name);
    if (g.d->loops) {
        put(&g, "#pragma omp parallel for");
        put(&g, "for (int base = 0; base < N; base += %d) {", block);
        g.indent++;
    }
    put_storage(&g);
    if (!g.d->loops)
        put(&g, "const int lid = %s, base = %d*%s;", g.d->thread, block, g.d->block);
    put(&g, "const int n = N - base < %d ? N - base : %d;", block, block);
    put_body(&g, arena);
    if (g.d->loops) {
        g.indent--;
        put(&g, "}");
    }
    buf_puts(out, "}\n");
    if (g.d->loops)
        put_entry(&g, name);
    watch_free(g.watch);
    arena_free(arena);
}
