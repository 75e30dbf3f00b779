// SPDX-License-Identifier: Apache-2.0
//
// Kernels of fusions, as OpenCL C, CUDA or C (paper 004, section 3 and Figure 1: loads,
// compute routines and stores glued together, without those of elements that stay on chip).
//
// A block computes `instances` neighbouring instances. An element on chip lies as all its
// instances one after another, so that loading and storing it is one contiguous copy. Where
// the granularity changes, instance and lane are worked out again from the thread. As C a
// block's threads are loops, one between every two barriers.

#include "fuse/generator.h"

#include "emit/emit.h"

#include <ctype.h>
#include <string.h>

// Printing ----------------------------------------------------------------------------

void gen_put(Generator *g, const char *format, ...)
{
    va_list args;
    buf_printf(g->out, "%*s", 4 * g->indent, "");
    va_start(args, format);
    buf_vprintf(g->out, format, args);
    va_end(args);
    buf_putc(g->out, '\n');
}

void gen_barrier(Generator *g)
{
    if (g->t->threads)
        gen_put(g, "%s;", g->t->barrier ? g->t->barrier : "barrier(CLK_LOCAL_MEM_FENCE)");
}

// C's asks for a number.
void gen_unroll(Generator *g)
{
    gen_put(g, "%s%s", g->t->unroll, g->t->threads ? "" : " 32");
}

void gen_ids(Generator *g)
{
    gen_put(g, "const int lid = %s%c%s, block = %s%c%s;", g->t->id[LOOP_LCL], g->t->dim[0],
            g->t->id_close, g->t->id[LOOP_WRG], g->t->dim[0], g->t->id_close);
}

void gen_entry(Generator *g, const char *name, int arrays, int ints)
{
    if (g->t->threads)
        return;
    buf_printf(g->out, "void %s_entry(void *const *arg)\n{\n    %s(", name, name);
    for (int i = 0; i < arrays + ints; i++)
        buf_printf(g->out, i < arrays ? "%sarg[%d]" : "%s*(const int *)arg[%d]",
                   i ? ", " : "", i);
    buf_puts(g->out, ");\n}\n");
}

// "3*", or nothing for 1.
static const char *times(char text[16], int factor)
{
    snprintf(text, 16, "%d*", factor);
    return factor == 1 ? "" : text;
}

static bool is_async(const Generator *g)
{
    return g->kernel->choice.copy == COPY_ASYNC && strcmp(g->t->name, "cuda") == 0;
}

static int instances(const Generator *g)
{
    return g->kernel->choice.instances;
}

const Elem *gen_elem(const Generator *g, int place)
{
    return &g->script->elem[g->fusion->elem[place]];
}

// Threads as loops begin and end between barriers.
static void open_threads(Generator *g)
{
    if (g->t->threads)
        return;
    gen_put(g, "for (int lid = 0; lid < %d; lid++) {", g->kernel->threads);
    g->indent++;
}

static void close_threads(Generator *g)
{
    if (g->t->threads)
        return;
    g->indent--;
    gen_put(g, "}");
}

static void wait_for_loads(Generator *g)
{
    if (g->pending)
        gen_put(g, "fw_wait();");
    g->pending = false;
}

static void guard(Generator *g, const ChipAccess *access, int n)
{
    if (!watch_access(g->watch, access, n))
        return;
    wait_for_loads(g);
    close_threads(g);
    gen_barrier(g);
    open_threads(g);
    g->kernel->barriers++;
}

// Loads and stores ----------------------------------------------------------------------

static ChipAccess copy_access(const Generator *g, int place, bool write)
{
    int words = gen_elem(g, place)->words;
    return (ChipAccess){.base = g->kernel->offset[place] * instances(g),
                        .stride = words,
                        .words = words,
                        .vector = g->kernel->choice.copy == COPY_WORDS ? 1 : 4,
                        .write = write};
}

typedef struct {
    char text[32];
} Address;

// Where an element's first instance lies on chip.
static Address chip(const Generator *g, int place)
{
    Address a = {"sm"};
    int at = g->kernel->offset[place] * instances(g);
    if (at)
        snprintf(a.text, sizeof a.text, "sm + %d", at);
    return a;
}

// What follows the name of what a thread holds: its index where threads are loops.
static const char *own_suffix(const Generator *g)
{
    return !g->t->threads ? "[lid]" : "";
}

static void put_load(Generator *g, int place)
{
    const Elem *e = gen_elem(g, place);
    char text[16];
    const char *by = times(text, e->words);
    if (g->loaded[place])
        return;
    g->loaded[place] = true;
    if (g->kernel->held[place] == HELD_SCALAR) {
        gen_put(g, "if (lid < %sn)", by);
        gen_put(g, "    x_%s%s = g_%s[%s(long)base + lid];", e->name, own_suffix(g),
                e->name, by);
        return;
    }
    ChipAccess access = copy_access(g, place, true);
    guard(g, &access, 1);
    const char *name = g->kernel->choice.copy == COPY_WORDS ? "fw_load"
                       : is_async(g)                        ? "fw_load_async"
                                                            : "fw_load4";
    gen_put(g, "%s(%s, g_%s + %s(long)base, %d, %sn, lid, %d);", name, chip(g, place).text,
            e->name, by, e->words * instances(g), by, g->kernel->threads);
    g->pending = g->pending || is_async(g);
}

static void put_store(Generator *g, int place)
{
    const Elem *e = gen_elem(g, place);
    char text[16];
    const char *by = times(text, e->words);
    if (g->kernel->held[place] == HELD_SCALAR) {
        gen_put(g, "if (lid < %sn)", by);
        gen_put(g, "    g_%s[%s(long)base + lid] = x_%s%s;", e->name, by, e->name,
                own_suffix(g));
        return;
    }
    ChipAccess access = copy_access(g, place, false);
    guard(g, &access, 1);
    const char *name = g->kernel->choice.copy == COPY_WORDS ? "fw_store" : "fw_store4";
    gen_put(g, "%s(g_%s + %s(long)base, %s, %d, %sn, lid, %d);", name, e->name, by,
            chip(g, place).text, e->words * instances(g), by, g->kernel->threads);
}

// Loads of what a call takes.
static void put_loads(Generator *g, const Call *call)
{
    for (int p = 0; p < call->function->nparam; p++)
        if (fusion_place(g->fusion, call->in[p]) >= 0 &&
            fusion_loads(g->script, g->fusion, call->in[p]))
            put_load(g, fusion_place(g->fusion, call->in[p]));
}

// Compute routines ----------------------------------------------------------------------

// A C compiler has caches.
static bool is_copied(const Generator *g, int elem)
{
    return g->t->threads && fused_copies(g->script, g->fusion, elem);
}

static int element_of(const Call *call, int p)
{
    return p < call->function->nparam ? call->in[p] : call->out;
}

static const Impl *chosen(const Generator *g, int step)
{
    const Call *call = &g->script->call[g->fusion->order[step]];
    return &call->function->impl[g->kernel->choice.impl[step]];
}

// One word that is the same for all, of which generated routines read a copy in a register:
// a load in each instance's branch held up the loads of the next (waxpby on an H200: 222
// us, where a sum of as many words takes 188).
static bool is_kept(const Generator *g, int elem)
{
    const Elem *e = &g->script->elem[elem];
    if (!e->is_uniform || e->words > 1 || fusion_place(g->fusion, elem) >= 0)
        return false;
    for (int step = 0; step < g->fusion->ncall; step++) {
        const Call *call = &g->script->call[g->fusion->order[step]];
        for (int p = 0; p < call->function->nparam && !chosen(g, step)->text; p++)
            if (call->in[p] == elem)
                return true;
    }
    return false;
}

static void guard_routine(Generator *g, const Call *call, const Impl *impl)
{
    ChipAccess access[ARITY_MAX + 1];
    int n = 0;
    for (int p = 0; p <= call->function->nparam; p++) {
        int place = fusion_place(g->fusion, element_of(call, p));
        if (place >= 0 && g->kernel->held[place] == HELD_MEMORY)
            access[n++] = (ChipAccess){.base = g->kernel->offset[place] * instances(g),
                                       .stride = gen_elem(g, place)->words,
                                       .words = gen_elem(g, place)->words,
                                       .map = &impl->map[p],
                                       .write = p == call->function->nparam};
    }
    guard(g, access, n);
    wait_for_loads(g);
}

void gen_title(Generator *g, const Call *call, const Impl *impl)
{
    Buf text;
    buf_init(&text);
    for (int p = 0; p < call->function->nparam; p++)
        buf_printf(&text, "%s%s", p ? ", " : "", g->script->elem[call->in[p]].name);
    gen_put(g, "// %s = %s(%s), %d thread%s an instance", g->script->elem[call->out].name,
            call->function->name, text.text, impl->lanes, impl->lanes == 1 ? "" : "s");
    buf_release(&text);
}

// Where an element is that a routine reaches by a pointer.
static const char *space_of(const Generator *g, const Call *call, int p)
{
    int elem = element_of(call, p);
    bool global = fusion_place(g->fusion, elem) < 0 && !is_copied(g, elem);
    return global ? g->t->global : g->t->local_pointer;
}

// Its words of the instance.
static const char *address_of(const Generator *g, const Call *call, const Impl *impl, int p,
                              Arena *arena)
{
    int elem = element_of(call, p), place = fusion_place(g->fusion, elem);
    char text[16];
    if (place < 0)
        return arena_printf(arena, "%s_%s", is_copied(g, elem) ? "u" : "g",
                            g->script->elem[elem].name);
    return arena_printf(arena, "%s + %s%s", chip(g, place).text,
                        times(text, gen_elem(g, place)->words),
                        impl->lanes == 1 ? "lid" : "inst");
}

static bool seen_before(const Call *call, int p)
{
    for (int k = 0; k < p; k++)
        if (element_of(call, k) == element_of(call, p))
            return true;
    return false;
}

static void put_made(Generator *g, const Call *call, const Impl *impl, Arena *arena)
{
    Held held[ARITY_MAX + 1];
    for (int p = 0; p <= call->function->nparam; p++) {
        int place = fusion_place(g->fusion, element_of(call, p));
        const char *name = g->script->elem[element_of(call, p)].name;
        bool kept = is_kept(g, element_of(call, p));
        const char *prefix = place >= 0                                  ? "x"
                             : kept || is_copied(g, element_of(call, p)) ? "u"
                                                                         : "g";
        name = arena_printf(arena, "%s_%s", prefix, name);
        held[p] = (Held){kept ? HELD_SCALAR : HELD_MEMORY, name};
        if (place < 0)
            continue;
        if (g->kernel->held[place] == HELD_MEMORY && !seen_before(call, p))
            gen_put(g, "%s%sfloat *%s = %s;", p < call->function->nparam ? "const " : "",
                    space_of(g, call, p), name, address_of(g, call, impl, p, arena));
        held[p] = (Held){g->kernel->held[place], name};
        if (held[p].kind != HELD_MEMORY)
            held[p].name = arena_printf(arena, "%s%s", name, own_suffix(g));
    }
    bool any_array = false;
    for (int p = 0; p <= call->function->nparam; p++)
        any_array = any_array || held[p].kind == HELD_ARRAY;
    routine_emit(g->script, call->function, (int)(impl - call->function->impl), held,
                 g->t->name, any_array, g->indent, NULL, NULL, g->out);
}

// Routines that are text -----------------------------------------------------------------

static const char *text_name(const Generator *g, int step)
{
    return arena_printf(g->script->arena, "%s_text%d", g->name, step);
}

static bool mentions(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at++) {
        bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (begins && !isalnum((unsigned char)at[n]) && at[n] != '_')
            return true;
    }
    return false;
}

// Sizes that the text says and its parameters do not hide.
static void put_sizes(Generator *g, const Elementary *f, const char *text)
{
    for (int i = 0; i < g->script->sizes.len; i++) {
        const Binding *size = &g->script->sizes.at[i];
        bool hidden = emit_reserved(size->name) || strcmp(size->name, "out") == 0 ||
                      strcmp(size->name, "lane") == 0;
        for (int p = 0; p < f->nparam; p++)
            hidden = hidden || strcmp(size->name, f->param[p]) == 0;
        if (!hidden && mentions(text, size->name))
            gen_put(g, "const int %s = %lld;", size->name, (long long)size->value);
    }
}

// A function of its own, so that the text sees its parameters and no name of the kernel's.
static void put_function(Generator *g, int step)
{
    const Call *call = &g->script->call[g->fusion->order[step]];
    const Elementary *f = call->function;
    const char *text = chosen(g, step)->text;
    if (!text)
        return;
    buf_printf(g->out, "%svoid %s(", g->t->function, text_name(g, step));
    for (int p = 0; p <= f->nparam; p++)
        buf_printf(g->out, "%s%sfloat *%s, ", p < f->nparam ? "const " : "",
                   space_of(g, call, p), p < f->nparam ? f->param[p] : "out");
    buf_puts(g->out, "int lane)\n{\n");
    put_sizes(g, f, text);
    gen_put(g, "{\n%s\n    }", text);
    buf_puts(g->out, "}\n");
}

static void put_functions(Generator *g)
{
    for (int step = 0; step < g->fusion->ncall; step++)
        put_function(g, step);
}

static void put_text(Generator *g, int step, Arena *arena)
{
    const Call *call = &g->script->call[g->fusion->order[step]];
    const Impl *impl = chosen(g, step);
    Buf text;
    buf_init(&text);
    for (int p = 0; p <= call->function->nparam; p++)
        buf_printf(&text, "%s, ", address_of(g, call, impl, p, arena));
    gen_put(g, "%s(%s%s);", text_name(g, step), text.text, impl->lanes > 1 ? "lane" : "0");
    buf_release(&text);
}

// A call's routine, for the threads that have an instance.
static void put_compute(Generator *g, int step, Arena *arena)
{
    const Call *call = &g->script->call[g->fusion->order[step]];
    const Impl *impl = chosen(g, step);
    gen_title(g, call, impl);
    char text[16];
    gen_put(g, "if (lid < %sn) {", times(text, impl->lanes));
    g->indent++;
    if (impl->lanes > 1)
        gen_put(g, "const int inst = lid / %d, lane = lid %% %d;", impl->lanes,
                impl->lanes);
    if (impl->text)
        put_text(g, step, arena);
    else
        put_made(g, call, impl, arena);
    g->indent--;
    gen_put(g, "}");
}

// Sums ----------------------------------------------------------------------------------

// Words of a sum that a thread keeps: in registers as long as the loop over them is
// unrolled, which takes compilers too long where threads are few.
enum { UNROLLED = 16 };
static int kept_words(const Generator *g, const Call *call)
{
    return (call->function->words[0] + g->kernel->threads - 1) / g->kernel->threads;
}

static bool is_sum(const Call *call)
{
    return call->function->kind == FUNCTION_SUM;
}

// A scalar is added by the thread that has the instance, an array by the threads that have
// its words, so that neither asks another thread before the end.
static void put_sum(Generator *g, const Call *call)
{
    int place = fusion_place(g->fusion, call->in[0]), words = call->function->words[0];
    const char *name = g->script->elem[call->out].name, *in = gen_elem(g, place)->name;
    bool memory = g->kernel->held[place] == HELD_MEMORY;
    ChipAccess access = {.base = g->kernel->offset[place] * instances(g),
                         .stride = words,
                         .words = words,
                         .map = words == 1 ? &call->function->impl[0].map[0] : NULL,
                         .by_word = words > 1};
    guard(g, &access, memory);
    wait_for_loads(g);
    gen_put(g, "// %s = sum(%s)", name, in);
    if (words == 1 && memory)
        gen_put(g, "if (lid < n)\n%*sa_%s%s += (%s)[lid];", 4 * g->indent + 4, "", name,
                own_suffix(g), chip(g, place).text);
    else if (words == 1)
        gen_put(g, "if (lid < n)\n%*sa_%s%s += x_%s%s;", 4 * g->indent + 4, "", name,
                own_suffix(g), in, own_suffix(g));
    if (words == 1)
        return;
    if (kept_words(g, call) <= UNROLLED)
        gen_unroll(g);
    gen_put(g, "for (int j = 0; j < %d; j++) {", kept_words(g, call));
    gen_put(g, "    const int k = lid + %d*j;", g->kernel->threads);
    gen_put(g, "    for (int t = 0; t < n && k < %d; t++)", words);
    gen_put(g, "        a_%s%s[j] += (%s)[%d*t + k];", name, own_suffix(g),
            chip(g, place).text, words);
    gen_put(g, "}");
}

static void put_accumulator(Generator *g, const Call *call)
{
    const char *name = g->script->elem[call->out].name;
    char each[32] = "", kept[32] = "";
    if (!g->t->threads)
        snprintf(each, sizeof each, "[%d]", g->kernel->threads);
    if (call->function->words[0] > 1)
        snprintf(kept, sizeof kept, "[%d]", kept_words(g, call));
    gen_put(g, each[0] || kept[0] ? "float a_%s%s%s = {0};" : "float a_%s%s%s = 0;", name,
            each, kept);
}

void gen_tree(Generator *g, const char *from, const char *shared, const char *to)
{
    int half = 1;
    if (!g->t->threads) {
        gen_put(g, "for (int lid = 0; lid < %d; lid++)", g->kernel->threads);
        gen_put(g, "    %s += %s[lid];", to, from);
        return;
    }
    while (2 * half < g->kernel->threads)
        half *= 2;
    gen_put(g, "%s[lid] = %s;", shared, from);
    gen_put(g, "for (int s = %d; s > 0; s /= 2) {", half);
    g->indent++;
    gen_barrier(g);
    g->indent--;
    gen_put(g, "    if (lid < s && lid + s < %d)", g->kernel->threads);
    gen_put(g, "        %s[lid] += %s[lid + s];", shared, shared);
    gen_put(g, "}");
    gen_put(g, "if (lid == 0)");
    gen_put(g, "    %s = %s[0];", to, shared);
}

static void put_part(Generator *g, const Call *call)
{
    const char *name = g->script->elem[call->out].name;
    int words = call->function->words[0];
    if (words == 1) {
        const char *from = arena_printf(g->script->arena, "a_%s", name);
        const char *shared = arena_printf(g->script->arena, "part_%s", name);
        const char *to = arena_printf(g->script->arena, "p_%s[block]", name);
        if (!g->t->threads)
            gen_put(g, "%s = 0;", to);
        gen_tree(g, from, shared, to);
        return;
    }
    open_threads(g);
    if (kept_words(g, call) <= UNROLLED)
        gen_unroll(g);
    gen_put(g, "for (int j = 0; j < %d; j++)", kept_words(g, call));
    gen_put(g, "    if (lid + %d*j < %d)", g->kernel->threads, words);
    gen_put(g, "        p_%s[%d*(long)block + lid + %d*j] = a_%s%s[j];", name, words,
            g->kernel->threads, name, own_suffix(g));
    close_threads(g);
}

static void each_sum(Generator *g, void (*what)(Generator *g, const Call *call))
{
    for (int step = 0; step < g->fusion->ncall && !g->routine; step++)
        if (is_sum(&g->script->call[g->fusion->order[step]]))
            what(g, &g->script->call[g->fusion->order[step]]);
}

static void put_shared_part(Generator *g, const Call *call)
{
    if (call->function->words[0] == 1 && g->t->threads)
        gen_put(g, "%sfloat part_%s[%d];", g->t->local, g->script->elem[call->out].name,
                g->kernel->threads);
}

static void put_step(Generator *g, int step, Arena *arena)
{
    const Call *call = &g->script->call[g->fusion->order[step]];
    put_loads(g, call);
    if (is_sum(call)) {
        put_sum(g, call);
        return;
    }
    guard_routine(g, call, &call->function->impl[g->kernel->choice.impl[step]]);
    put_compute(g, step, arena);
    if (fusion_stores(g->script, g->fusion, call->out))
        put_store(g, fusion_place(g->fusion, call->out));
}

// The kernel ------------------------------------------------------------------------------

void gen_start(Generator *g, const char *name)
{
    const Kernel kernel = {.local = {g->kernel->threads, 1, 1}};
    Printer p = {.out = g->out, .target = g->t, .lane = -1};
    buf_init(&p.line);
    g->t->put_start(&p, &kernel);
    buf_printf(g->out, "%s%s(", p.line.text, name);
    buf_release(&p.line);
}

static bool is_loaded(const Generator *g, int elem)
{
    return fusion_place(g->fusion, elem) < 0
               ? !sum_of(g->script, elem) ||
                     !(g->fusion->set >> (sum_of(g->script, elem) - g->script->call) & 1)
               : fusion_loads(g->script, g->fusion, elem);
}

void gen_head(Generator *g, const char *name)
{
    int elem[PLACES_MAX], n = fused_arguments(g->script, g->fusion, elem);
    gen_start(g, name);
    for (int i = 0; i < n; i++) {
        bool load = is_loaded(g, elem[i]);
        bool part = !load && fusion_place(g->fusion, elem[i]) < 0;
        buf_printf(g->out, "%s%sfloat *%s %s_%s, ", g->t->global, load ? "const " : "",
                   g->t->restricted, part ? "p" : "g", g->script->elem[elem[i]].name);
    }
    buf_puts(g->out, "int N)\n{\n");
}

static void put_storage(Generator *g, int extra)
{
    int words = (g->kernel->top + extra) * instances(g);
    const char *space = g->t->local;
    if (words)
        gen_put(g, "%sfloat sm[%d]%s;", space, words,
                !g->t->threads ? "" : " __attribute__((aligned(16)))");
    for (int e = 0; e < g->script->nelem; e++)
        if (is_copied(g, e))
            gen_put(g, "%sfloat u_%s[%d];", space, g->script->elem[e].name,
                    g->script->elem[e].words);
    for (int i = 0; i < g->fusion->nelem; i++) {
        const Elem *e = gen_elem(g, i);
        char each[32] = "";
        if (!g->t->threads)
            snprintf(each, sizeof each, "[%d]", g->kernel->threads);
        if (g->kernel->held[i] == HELD_SCALAR)
            gen_put(g, "float x_%s%s;", e->name, each);
        if (g->kernel->held[i] == HELD_ARRAY)
            gen_put(g, "float x_%s%s[%d];", e->name, each, e->words / g->kernel->lanes[i]);
    }
}

static void put_body(Generator *g, Arena *arena)
{
    open_threads(g);
    for (int step = 0; step < g->fusion->ncall && g->kernel->choice.early; step++)
        put_loads(g, &g->script->call[g->fusion->order[step]]);
    for (int step = 0; step < g->fusion->ncall; step++)
        put_step(g, step, arena);
    close_threads(g);
}

// What is the same for all instances is copied once a block.
static void put_common(Generator *g)
{
    bool any = false;
    for (int e = 0; e < g->script->nelem; e++)
        if (is_kept(g, e)) {
            gen_put(g, "const float u_%s = g_%s[0];", g->script->elem[e].name,
                    g->script->elem[e].name);
        } else if (is_copied(g, e)) {
            int words = g->script->elem[e].words;
            gen_put(g, "fw_load(u_%s, g_%s, %d, %d, lid, %d);", g->script->elem[e].name,
                    g->script->elem[e].name, words, words, g->kernel->threads);
            any = true;
        }
    if (any)
        gen_barrier(g);
}

// What stands around the body: blocks as loops, storage, coordinates.
static void open_block(Generator *g, int extra)
{
    int serial = fused_serial(g->kernel), block = instances(g);
    if (!g->t->threads) {
        gen_put(g, "#pragma omp parallel for");
        gen_put(g, "for (int block = 0; block < (N + %d) / %d; block++) {",
                block * serial - 1, block * serial);
        g->indent++;
    }
    put_storage(g, extra);
    each_sum(g, put_shared_part);
    each_sum(g, put_accumulator);
    if (g->t->threads)
        gen_ids(g);
    put_common(g);
    if (serial > 1) {
        if (g->kernel->top == 0 && g->t->threads)
            gen_unroll(g);
        gen_put(g, "for (int step = 0; step < %d; step++) {", serial);
        g->indent++;
        gen_put(g, "const int base = %d*(%d*block + step);", block, serial);
    } else {
        gen_put(g, "const int base = %d*block;", block);
    }
    gen_put(g, "const int n = N - base < %d ? N - base : %d;", block, block);
}

static void close_block(Generator *g)
{
    if (fused_serial(g->kernel) > 1) {
        if (g->kernel->top)
            gen_barrier(g);
        g->indent--;
        gen_put(g, "}");
    }
    each_sum(g, put_part);
    if (!g->t->threads) {
        g->indent--;
        gen_put(g, "}");
    }
    buf_puts(g->out, "}\n");
}

static Generator generator(const Script *script, FusedKernel *kernel, const char *target,
                           const char *name, Buf *out)
{
    return (Generator){.script = script,
                       .kernel = kernel,
                       .fusion = kernel->fusion,
                       .t = target_find(target),
                       .name = name,
                       .out = out,
                       .indent = 1};
}

void fused_print(const Script *script, FusedKernel *kernel, const char *target,
                 const char *name, Buf *out)
{
    Generator g = generator(script, kernel, target, name, out);
    Arena *arena = arena_new();
    kernel->barriers = 0;
    if (kernel->choice.copy == COPY_STRIPS) {
        strips_print(&g, name);
        arena_free(arena);
        return;
    }
    g.watch = watch_new(kernel->top * instances(&g), instances(&g), kernel->threads);
    put_functions(&g);
    gen_head(&g, name);
    open_block(&g, 0);
    put_body(&g, arena);
    close_block(&g);
    int elem[PLACES_MAX];
    gen_entry(&g, name, fused_arguments(script, kernel->fusion, elem), 1);
    watch_free(g.watch);
    arena_free(arena);
}

// Routines on their own -------------------------------------------------------------------

static void put_barrier(Generator *g)
{
    close_threads(g);
    gen_barrier(g);
}

// One part again and again; what it leaves on chip could be asked for at the end, so that
// no compiler drops it.
static void put_repeated(Generator *g, RoutineKind kind, Arena *arena)
{
    gen_put(g, "for (int repeat = 0; repeat < R; repeat++) {");
    g->indent++;
    open_threads(g);
    if (kind == ROUTINE_COMPUTE)
        put_compute(g, 0, arena);
    put_barrier(g);
    g->indent--;
    gen_put(g, "}");
}

static void put_moved(Generator *g, RoutineKind kind, int words)
{
    static const char *const load[] = {"fw_load", "fw_load4", "fw_load_async"};
    CopyKind copy = g->kernel->choice.copy;
    bool async = is_async(g);
    const char *name = load[copy == COPY_ASYNC && !async ? COPY_FOURS : copy];
    if (kind == ROUTINE_STORE)
        name = copy == COPY_WORDS ? "fw_store" : "fw_store4";
    open_threads(g);
    gen_put(g,
            kind == ROUTINE_STORE ? "%s(to + %d*(long)base, sm, %d, %d*n, lid, %d);"
                                  : "%s(sm, from + %d*(long)base, %d, %d*n, lid, %d);",
            name, words, words * instances(g), words, g->kernel->threads);
    if (async && kind == ROUTINE_LOAD)
        gen_put(g, "fw_wait();");
    put_barrier(g);
}

void fused_print_routine(const Script *script, FusedKernel *kernel, RoutineKind kind,
                         int words, int extra, const char *target, const char *name,
                         Buf *out)
{
    Generator g = generator(script, kernel, target, name, out);
    Arena *arena = arena_new();
    int elem[PLACES_MAX], n = fused_arguments(script, kernel->fusion, elem);
    g.routine = true;
    if (kind == ROUTINE_COMPUTE)
        put_functions(&g);
    gen_start(&g, name);
    buf_printf(out, "%sconst float *%s from, %sfloat *%s to, int N, int R)\n{\n",
               g.t->global, g.t->restricted, g.t->global, g.t->restricted);
    for (int i = 0; i < n; i++) // what is the same for all may be anything
        if (fusion_place(kernel->fusion, elem[i]) < 0)
            gen_put(&g, "const %sfloat *g_%s = from;", g.t->global,
                    script->elem[elem[i]].name);
    open_block(&g, extra);
    if (kind != ROUTINE_LOAD) {
        open_threads(&g);
        gen_put(&g, "for (int k = lid; k < %d; k += %d)",
                MAX(kernel->top, words) * instances(&g), kernel->threads);
        gen_put(&g, "    sm[k] = 1.0f;");
        put_barrier(&g);
    }
    if (kind == ROUTINE_COMPUTE || kind == ROUTINE_BARRIER)
        put_repeated(&g, kind, arena);
    else
        put_moved(&g, kind, words);
    open_threads(&g);
    gen_put(&g, "if (R < 0)");
    gen_put(&g, "    to[base + lid] = sm[lid];");
    close_threads(&g);
    close_block(&g);
    gen_entry(&g, name, 2, 2);
    arena_free(arena);
}
