// SPDX-License-Identifier: Apache-2.0
//
// Kernels of long arrays, all in registers. The threads of an instance each have their own
// words of its arrays (Impl.strip): what one call makes and another uses stays where it is,
// a sum over instances is kept until the block ends, and a reduction inside an instance is
// put together by a tree, after which all threads have its result. So a matrix whose rows
// are instances is read once, where paper 004's tiles do not see a whole row.
//
// A block takes its instances one after another. With Choice.early it loads the next while
// it computes one: what is on its way would else be nothing while threads wait for a tree.

#include "fuse/generator.h"

#include <string.h>

// CUDA: what is read once passes the first-level cache by, where arrays that all instances
// share stay (an H200's holds 256 KB; rows of 64 KB would else push them out). Volatile, or
// compilers put off loading the next instance until this one's is done.
static const char stream4[] =
    "__device__ __forceinline__ void fw_get4(float *to, const float *from)\n"
    "{\n"
    "    asm volatile(\"ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, "
    "[%4];\"\n"
    "        : \"=f\"(to[0]), \"=f\"(to[1]), \"=f\"(to[2]), \"=f\"(to[3])\n"
    "        : \"l\"(from));\n"
    "}\n";

static void put_mover(const Target *t, const char *name, const char *to, const char *from,
                      bool load, Buf *out)
{
    buf_printf(out, "%svoid %s(%sfloat *to, const %sfloat *from)\n{\n", t->function, name,
               to, from);
    if (load)
        buf_printf(out,
                   "    const float4 v = *(const %sfloat4 *)from;\n"
                   "    to[0] = v.x;\n    to[1] = v.y;\n    to[2] = v.z;\n    to[3] = "
                   "v.w;\n}\n",
                   from);
    else
        buf_printf(out,
                   "    float4 v;\n"
                   "    v.x = from[0];\n    v.y = from[1];\n    v.z = from[2];\n    v.w = "
                   "from[3];\n    *(%sfloat4 *)to = v;\n}\n",
                   to);
}

void strips_prelude(const Target *t, Buf *out)
{
    bool cuda = strcmp(t->name, "cuda") == 0;
    buf_puts(out, "// Four words to a thread's registers and back.\n");
    if (cuda)
        buf_puts(out, stream4);
    else
        put_mover(t, "fw_get4", "", t->global, true, out);
    put_mover(t, "fw_share4", "", t->global, true, out);
    put_mover(t, "fw_put4", t->global, "", false, out);
}

// What is known of a kernel by strips.
typedef struct {
    Generator *g;
    const Impl *impl;
    int words, own, serial, instances, warps;
    bool cuda, early;
    int trees; // printed
} Strips;

static bool is_sum(const Call *call)
{
    return call->function->kind == FUNCTION_SUM;
}

static const Call *call_at(const Strips *s, int step)
{
    return &s->g->script->call[s->g->fusion->order[step]];
}

// Moving --------------------------------------------------------------------------------

// One array between a thread's registers and memory; stored: to memory.
static void put_strips(Strips *s, const char *mover, const char *own, const char *memory,
                       bool stored)
{
    Generator *g = s->g;
    int strip = s->impl->strip, step = s->impl->lanes * strip;
    gen_unroll(g);
    gen_put(g, "for (int k = 0; k < %d; k++)", s->own / strip);
    if (s->own * s->impl->lanes > s->words)
        gen_put(g, "    if (%d*k + %d*lane < %d)", step, strip, s->words);
    g->indent++;
    if (strip == 1 && stored)
        gen_put(g, "    %s[%d*k + lane] = %s[k];", memory, step, own);
    else if (strip == 1)
        gen_put(g, "    %s[k] = %s[%d*k + lane];", own, memory, step);
    else if (stored)
        gen_put(g, "    %s((%s) + %d*k + %d*lane, %s + %d*k);", mover, memory, step, strip,
                own, strip);
    else
        gen_put(g, "    %s(%s + %d*k, (%s) + %d*k + %d*lane);", mover, own, strip, memory,
                step, strip);
    g->indent--;
}

// Loads all that the kernel loads of instance `t` into variables that begin with prefix.
static void put_loads(Strips *s, const char *prefix, const char *t)
{
    Generator *g = s->g;
    for (int i = 0; i < g->fusion->nelem; i++) {
        const Elem *e = gen_elem(g, i);
        Arena *arena = g->script->arena;
        if (!fusion_loads(g->script, g->fusion, g->fusion->elem[i]))
            continue;
        if (e->words == 1)
            gen_put(g, "%s%s = g_%s[%s];", prefix, e->name, e->name, t);
        else
            put_strips(
                s, "fw_get4", arena_printf(arena, "%s%s", prefix, e->name),
                s->impl->strip == 1
                    ? arena_printf(arena, "(g_%s + %d*(long)(%s))", e->name, e->words, t)
                    : arena_printf(arena, "g_%s + %d*(long)(%s)", e->name, e->words, t),
                false);
    }
}

// Variables of the elements, of all or of those that are loaded.
static void put_variables(Strips *s, const char *prefix, bool loaded)
{
    Generator *g = s->g;
    for (int i = 0; i < g->fusion->nelem; i++) {
        const Elem *e = gen_elem(g, i);
        if (loaded && !fusion_loads(g->script, g->fusion, g->fusion->elem[i]))
            continue;
        if (e->words == 1)
            gen_put(g, "float %s%s = 0;", prefix, e->name);
        else
            gen_put(g, "float %s%s[%d] = {0};", prefix, e->name, s->own);
    }
}

// What was loaded for the next instance becomes this one's.
static void put_advance(Strips *s)
{
    Generator *g = s->g;
    for (int i = 0; i < g->fusion->nelem; i++) {
        const Elem *e = gen_elem(g, i);
        if (!fusion_loads(g->script, g->fusion, g->fusion->elem[i]))
            continue;
        if (e->words == 1) {
            gen_put(g, "x_%s = y_%s;", e->name, e->name);
            continue;
        }
        gen_unroll(g);
        gen_put(g, "for (int k = 0; k < %d; k++)", s->own);
        gen_put(g, "    x_%s[k] = y_%s[k];", e->name, e->name);
    }
}

static void put_store(Strips *s, const Elem *e)
{
    Generator *g = s->g;
    Arena *arena = g->script->arena;
    if (e->words == 1) {
        gen_put(g, "if (on && lane == 0)");
        gen_put(g, "    g_%s[t] = x_%s;", e->name, e->name);
        return;
    }
    gen_put(g, "if (on) {");
    g->indent++;
    put_strips(s, "fw_put4", arena_printf(arena, "x_%s", e->name),
               arena_printf(arena, "(g_%s + %d*(long)t)", e->name, e->words), true);
    g->indent--;
    gen_put(g, "}");
}

// Trees ---------------------------------------------------------------------------------

static const char *joined(Arena *arena, Op op, const char *a, const char *b)
{
    return op == OP_ADD ? arena_printf(arena, "%s += %s;", a, b)
                        : arena_printf(arena, "%s = %s(%s, %s);", a,
                                       op == OP_MINIMUM ? "fmin" : "fmax", a, b);
}

// Warps add by shuffles, and every thread then what the warps have. Two buffers in turn:
// when one is written again, all have passed the barrier of the other.
static void put_warp_tree(Strips *s, const char *name, Op op)
{
    Generator *g = s->g;
    Arena *arena = g->script->arena;
    const char *other = arena_printf(arena, "__shfl_xor_sync(0xffffffffu, %s, fw_d)", name);
    int warps = s->impl->lanes / 32;
    gen_put(g, "#pragma unroll");
    gen_put(g, "for (int fw_d = 16; fw_d > 0; fw_d /= 2)");
    gen_put(g, "    %s", joined(arena, op, name, other));
    if (warps == 1)
        return;
    const char *part =
        arena_printf(arena, "fw_w%d[%s]", s->trees, s->serial > 1 ? "step & 1" : "0");
    const char *first = s->instances > 1 ? arena_printf(arena, "%d*inst", warps) : "0";
    gen_put(g, "if (lid %% 32 == 0)");
    gen_put(g, "    %s[lid / 32] = %s;", part, name);
    gen_put(g, "__syncthreads();");
    gen_put(g, "%s = %s[%s];", name, part, first);
    gen_put(g, "#pragma unroll");
    gen_put(g, "for (int fw_d = 1; fw_d < %d; fw_d++)", warps);
    gen_put(g, "    %s",
            joined(arena, op, name, arena_printf(arena, "%s[%s + fw_d]", part, first)));
    g->kernel->barriers++;
}

// All trees use the same memory: each begins with a barrier, after which nobody reads what
// the one before left.
static void put_group_tree(Strips *s, const char *name, Op op)
{
    Generator *g = s->g;
    Arena *arena = g->script->arena;
    const char *part = "fw_w0";
    gen_barrier(g);
    gen_put(g, "%s[lid] = %s;", part, name);
    gen_put(g, "for (int fw_d = %d; fw_d > 0; fw_d /= 2) {", s->impl->lanes / 2);
    g->indent++;
    gen_barrier(g);
    g->indent--;
    gen_put(g, "    if (lane < fw_d)");
    gen_put(g, "        %s",
            joined(arena, op, arena_printf(arena, "%s[lid]", part),
                   arena_printf(arena, "%s[lid + fw_d]", part)));
    gen_put(g, "}");
    gen_barrier(g);
    gen_put(g, "%s = %s[lid - lane];", name, part);
    g->kernel->barriers += 2 + __builtin_ctz((unsigned)s->impl->lanes);
}

static void put_tree(void *user, const char *name, Op op, int indent)
{
    Strips *s = user;
    int outer = s->g->indent;
    s->g->indent = indent;
    if (s->cuda)
        put_warp_tree(s, name, op);
    else
        put_group_tree(s, name, op);
    s->g->indent = outer;
    s->trees++;
}

// Memory of the trees, of as many as were printed; it stands before them in the text.
static void put_tree_memory(Strips *s, int trees)
{
    Generator *g = s->g;
    if (!s->cuda && trees)
        gen_put(g, "%sfloat fw_w0[%d];", g->t->local, g->kernel->threads);
    for (int i = 0; i < trees && s->cuda; i++)
        if (s->impl->lanes > 32)
            gen_put(g, "%sfloat fw_w%d[2][%d];", g->t->local, i, g->kernel->threads / 32);
}

// Calls ---------------------------------------------------------------------------------

static void put_call(Strips *s, int step)
{
    Generator *g = s->g;
    const Call *call = call_at(s, step);
    int number = g->kernel->choice.impl[step], n = call->function->nparam;
    Arena *arena = g->script->arena;
    Held held[ARITY_MAX + 1];
    gen_title(g, call, &call->function->impl[number]);
    gen_put(g, "{");
    g->indent++;
    for (int p = 0; p <= n; p++) {
        int elem = p < n ? call->in[p] : call->out;
        const Elem *e = &g->script->elem[elem];
        if (fusion_place(g->fusion, elem) >= 0) {
            held[p] = (Held){e->words == 1 ? HELD_SCALAR : HELD_ARRAY,
                             arena_printf(arena, "x_%s", e->name)};
            continue;
        }
        held[p] = (Held){e->words == 1 ? HELD_MEMORY : HELD_ARRAY,
                         arena_printf(arena, "%s_%s", e->words == 1 ? "g" : "u", e->name)};
        if (e->words == 1)
            continue;
        held[p].name = arena_printf(arena, "u%d_%s", p, e->name);
        gen_put(g, "float %s[%d];", held[p].name, s->own);
        put_strips(s, "fw_share4", held[p].name, arena_printf(arena, "g_%s", e->name),
                   false);
    }
    routine_emit(g->script, call->function, number, held, g->t->name, true, g->indent,
                 put_tree, s, g->out);
    g->indent--;
    gen_put(g, "}");
}

static void put_sum(Strips *s, const Call *call)
{
    Generator *g = s->g;
    const Elem *in = &g->script->elem[call->in[0]];
    const char *name = g->script->elem[call->out].name;
    gen_put(g, "// %s = sum(%s)", name, in->name);
    gen_put(g, "if (on)");
    if (in->words == 1) {
        gen_put(g, "    a_%s += x_%s;", name, in->name);
        return;
    }
    g->indent++;
    gen_unroll(g);
    gen_put(g, "for (int k = 0; k < %d; k++)", s->own);
    gen_put(g, "    a_%s[k] += x_%s[k];", name, in->name);
    g->indent--;
}

static void put_part(Strips *s, const Call *call)
{
    Generator *g = s->g;
    const Elem *out = &g->script->elem[call->out];
    const char *part =
        s->instances > 1 ? arena_printf(g->script->arena, "(%d*block + inst)", s->instances)
                         : "block";
    if (out->words == 1) {
        gen_put(g, "if (lane == 0)");
        gen_put(g, "    p_%s[%s] = a_%s;", out->name, part, out->name);
        return;
    }
    put_strips(
        s, "fw_put4", arena_printf(g->script->arena, "a_%s", out->name),
        arena_printf(g->script->arena, "(p_%s + %d*(long)%s)", out->name, out->words, part),
        true);
}

// The kernel ----------------------------------------------------------------------------

static void put_start(Strips *s)
{
    Generator *g = s->g;
    gen_ids(g);
    if (s->instances > 1)
        gen_put(g, "const int inst = lid / %d, lane = lid %% %d;", s->impl->lanes,
                s->impl->lanes);
    else
        gen_put(g, "const int inst = 0, lane = lid;");
    for (int step = 0; step < g->fusion->ncall; step++) {
        const Elem *out = &g->script->elem[call_at(s, step)->out];
        if (!is_sum(call_at(s, step)))
            continue;
        if (out->words == 1)
            gen_put(g, "float a_%s = 0;", out->name);
        else
            gen_put(g, "float a_%s[%d] = {0};", out->name, s->own);
    }
    put_variables(s, "x_", false);
    if (!s->early)
        return;
    gen_put(g, "if (%d*block + inst < N) {", s->instances * s->serial);
    g->indent++;
    put_loads(s, "x_",
              arena_printf(g->script->arena, "%d*block + inst", s->instances * s->serial));
    g->indent--;
    gen_put(g, "}");
}

static void put_step_loads(Strips *s)
{
    Generator *g = s->g;
    if (s->early)
        put_variables(s, "y_", true);
    if (s->early)
        gen_put(g, "if (step + 1 < %d && t + %d < N) {", s->serial, s->instances);
    else
        gen_put(g, "if (on) {");
    g->indent++;
    put_loads(s, s->early ? "y_" : "x_",
              s->early ? arena_printf(g->script->arena, "t + %d", s->instances) : "t");
    g->indent--;
    gen_put(g, "}");
}

static void put_steps(Strips *s)
{
    Generator *g = s->g;
    if (s->serial > 1)
        gen_put(g, "#pragma unroll 1");
    if (s->serial > 1)
        gen_put(g, "for (int step = 0; step < %d; step++) {", s->serial);
    else
        gen_put(g, "{");
    g->indent++;
    if (s->serial > 1)
        gen_put(g, "const int t = %d*(%d*block + step) + inst;", s->instances, s->serial);
    else
        gen_put(g, "const int t = %d*block + inst;", s->instances);
    gen_put(g, "const int on = t < N;");
    put_step_loads(s);
    for (int step = 0; step < g->fusion->ncall; step++) {
        const Call *call = call_at(s, step);
        if (is_sum(call)) {
            put_sum(s, call);
            continue;
        }
        put_call(s, step);
        if (fusion_stores(g->script, g->fusion, call->out))
            put_store(s, &g->script->elem[call->out]);
    }
    if (s->early)
        put_advance(s);
    g->indent--;
    gen_put(g, "}");
    for (int step = 0; step < g->fusion->ncall; step++)
        if (is_sum(call_at(s, step)))
            put_part(s, call_at(s, step));
}

void strips_print(Generator *g, const char *name)
{
    Strips s = {.g = g,
                .impl = fused_strips(g->script, g->kernel),
                .serial = fused_serial(g->kernel),
                .instances = g->kernel->choice.instances,
                .cuda = strcmp(g->t->name, "cuda") == 0};
    s.early = g->kernel->choice.early && s.serial > 1;
    s.words = strips_words(g->script, g->fusion);
    s.own = strip_own(s.impl, s.words);
    Buf *out = g->out, body;
    buf_init(&body);
    g->out = &body;
    put_start(&s);
    put_steps(&s);
    g->out = out;
    gen_head(g, name);
    put_tree_memory(&s, s.trees);
    buf_puts(out, body.text);
    buf_puts(out, "}\n");
    buf_release(&body);
}
