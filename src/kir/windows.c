// SPDX-License-Identifier: Apache-2.0
//
// Register windows: what an iteration of a sequential loop loads and the next one would
// load again stays in variables. A stencil that walks along an axis then loads each
// element once.
//
//   method  predictive commoning: two loads of a loop body belong together if the index of
//           one in the next iteration is the index of the other in this one, for every
//           iteration but the last, as symbolic arithmetic shows. The first is then
//           loaded before the loop and takes over the value of the other at the end of
//           each iteration. Boundary conditions need not be gone: max(i - 1, 0) of the
//           next iteration is i of this one, because i is at least 0.
//   source  Carr and Kennedy, Scalar replacement in the presence of conditional control
//           flow, 1994; register streaming of stencils: paper 001, section 4
//
// Only loops of straight-line code and a constant number of iterations, and only buffers
// that the kernel does not write. Loads in a branch of a select stay where they are.

#include "kir/passes.h"

#include <stdlib.h>

enum { NONE = -1, WINDOW_LOADS_MAX = 256 };

// Between iterations that are written out, values change their names instead of moving, and
// loads of several are in flight (j3d27pt 512^3 on an H200, 4 steps: 279 us, else 302).
// The number of outputs is limited, because compile time grows with it.
enum { UNROLL_WHOLE = 8, UNROLL_PART = 4, UNROLL_OUTPUTS = 64 };

// A load of the loop body, once for each (buffer, index, type).
typedef struct {
    const KExpr *load;
    const Arith *now, *next; // its index in an iteration that has a next one, and in that
    const Stm *decl;         // that declares a constant of just this load; or NULL
    Var *var;
    int from; // the load whose value it is in the next iteration, or NONE
    bool gives, moved;
} Load;

typedef struct {
    Pass *pass;
    Kernel *kernel;
    Arena *arena; // of this pass
    VEC(const Buffer *) written;
    Load load[WINDOW_LOADS_MAX];
    int n, names;
    Block *out;
} Windows;

static void note_store(Stm *stm, void *user)
{
    Windows *w = user;
    if (stm->kind == ST_STORE)
        VEC_PUSH(w->arena, &w->written, stm->buffer);
}

// Loads of a body ---------------------------------------------------------------------

static int number_of(const Windows *w, const KExpr *e)
{
    for (int i = 0; i < w->n; i++) {
        const KExpr *load = w->load[i].load;
        if (load->buffer == e->buffer && load->arith == e->arith && load->type == e->type)
            return i;
    }
    return NONE;
}

static void note_loads(Windows *w, const KExpr *e, const Stm *stm)
{
    if (e->kind == K_LOAD && e->buffer->space == MEM_GLOBAL &&
        !list_has(w->written.at, w->written.len, e->buffer)) {
        int i = number_of(w, e);
        if (i == NONE && w->n < WINDOW_LOADS_MAX) {
            i = w->n++;
            w->load[i] = (Load){.load = e, .from = NONE};
        }
        if (i != NONE && stm->kind == ST_DECL && stm->value == e && stm->var->is_const)
            w->load[i].decl = stm;
    }
    for (int i = 0; i < kexpr_args(e); i++)
        if (!kexpr_maybe(e, i))
            note_loads(w, e->arg[i], stm);
}

static bool straight(const Block *block)
{
    for (int i = 0; i < block->len; i++) {
        StmKind kind = block->at[i]->kind;
        if (kind != ST_DECL && kind != ST_ASSIGN && kind != ST_STORE)
            return false;
    }
    return true;
}

// Windows -----------------------------------------------------------------------------

static bool same_place(const Load *a, const Load *b)
{
    return a->load->buffer == b->load->buffer && a->load->type == b->load->type &&
           a->next == b->now;
}

static bool goes_round(const Windows *w, int i)
{
    int at = w->load[i].from;
    for (int steps = 0; at != NONE && steps <= w->n; steps++) {
        if (at == i)
            return true;
        at = w->load[at].from;
    }
    return at != NONE;
}

// What each load can be taken over from; true if one can.
static bool link_loads(Windows *w, const Stm *loop, int64_t extent)
{
    ArithCtx *ctx = w->pass->ctx;
    const Arith *now =
        arith_var(ctx, loop->iter->name, arith_const(ctx, 0), arith_const(ctx, extent - 2));
    const Arith *next = arith_addc(ctx, now, 1);
    for (int i = 0; i < w->n; i++) {
        w->load[i].now = arith_subst(ctx, w->load[i].load->arith, loop->iter, now);
        w->load[i].next = arith_subst(ctx, w->load[i].load->arith, loop->iter, next);
    }
    bool any = false;
    for (int i = 0; i < w->n; i++) {
        Load *load = &w->load[i];
        for (int k = 0; k < w->n && load->from == NONE; k++)
            if (k != i && same_place(load, &w->load[k]))
                load->from = k;
        if (goes_round(w, i))
            load->from = NONE;
        any |= load->from != NONE;
    }
    for (int i = 0; i < w->n; i++)
        if (w->load[i].from != NONE)
            w->load[w->load[i].from].gives = true;
    return any;
}

// Rewriting -----------------------------------------------------------------------------

static Var *var_of(Windows *w, Load *load)
{
    if (load->decl)
        return load->decl->var;
    Arena *arena = w->pass->arena;
    const char *stem = arena_printf(w->arena, "%s_w", load->load->buffer->name);
    return NEW_OF(arena, Var, name_fresh(arena, w->kernel, stem, &w->names),
                  load->load->type, true);
}

// Before the loop: the values of its first iteration that it does not load.
static void open_windows(Windows *w, const Stm *loop)
{
    const Arith *first = arith_const(w->pass->ctx, 0);
    ARRAY_EACH_REF(Load *, load, w->load, w->n) {
        if (load->from == NONE && !load->gives)
            continue;
        load->var = var_of(w, load);
        if (load->from == NONE)
            continue;
        load->var->is_const = false;
        KExpr *start = arena_copy(w->pass->arena, load->load, sizeof(KExpr));
        start->arith = arith_subst(w->pass->ctx, start->arith, loop->iter, first);
        block_add(w->pass->arena, w->out,
                  (Stm){.kind = ST_DECL, .var = load->var, .value = start});
    }
}

// Puts variables in place of loads; one that is not declared yet is declared here.
static const KExpr *rewrite(Windows *w, const KExpr *e, Block *body, bool certain)
{
    int i = e->kind == K_LOAD ? number_of(w, e) : NONE, n = kexpr_args(e);
    Load *load = i == NONE ? NULL : &w->load[i];
    if (load && load->var && (certain || load->moved || load->from != NONE)) {
        if (load->from == NONE && !load->moved)
            block_add(w->pass->arena, body,
                      (Stm){.kind = ST_DECL, .var = load->var, .value = e});
        load->moved = true;
        return kexpr_var(w->pass->arena, load->var);
    }
    if (n == 0)
        return e;
    const KExpr **arg, *copy = kexpr_copy(w->pass->arena, e, &arg);
    for (int k = 0; k < n; k++)
        arg[k] = rewrite(w, e->arg[k], body, certain && !kexpr_maybe(e, k));
    return copy;
}

static void rewrite_body(Windows *w, Stm *loop)
{
    Block body = {0};
    VEC_EACH(Stm *, stm, &loop->body) {
        int k = stm->kind == ST_DECL && stm->value && stm->value->kind == K_LOAD
                    ? number_of(w, stm->value)
                    : NONE;
        bool own = k != NONE && w->load[k].decl == stm;
        if (own && w->load[k].from != NONE)
            continue; // declared before the loop
        if (own)
            w->load[k].moved = true;
        else if (stm->value)
            stm->value = rewrite(w, stm->value, &body, true);
        VEC_PUSH(w->pass->arena, &body, stm);
    }
    loop->body = body;
}

// Whoever takes over the value of a load does so before it changes.
static void shift(Windows *w, int i, Block *body)
{
    Load *load = &w->load[i];
    if (load->from == NONE)
        return;
    for (int k = 0; k < w->n; k++)
        if (w->load[k].from == i)
            shift(w, k, body);
    int from = load->from;
    load->from = NONE;
    const KExpr *next = kexpr_var(w->pass->arena, w->load[from].var);
    block_add(w->pass->arena, body,
              (Stm){.kind = ST_ASSIGN, .var = load->var, .value = next});
}

static int copies(const Block *body, int64_t extent)
{
    int outputs = 0;
    for (int i = 0; i < body->len; i++)
        if (body->at[i]->kind == ST_STORE)
            outputs += MAX(body->at[i]->value->type->width, 1);
    int most = UNROLL_OUTPUTS / MAX(outputs, 1);
    int wanted = extent <= UNROLL_WHOLE ? (int)extent : UNROLL_PART;
    while (wanted > 1 && wanted > most)
        wanted /= 2;
    return wanted;
}

static void carry(Windows *w, Stm *loop, int64_t extent)
{
    w->n = 0;
    for (int i = 0; i < loop->body.len; i++)
        if (loop->body.at[i]->value)
            note_loads(w, loop->body.at[i]->value, loop->body.at[i]);
    if (!link_loads(w, loop, extent))
        return;
    loop->unroll = copies(&loop->body, extent);
    open_windows(w, loop);
    rewrite_body(w, loop);
    for (int i = 0; i < w->n; i++)
        shift(w, i, &loop->body);
}

static void look_at(void *user, Block *to, Stm *stm)
{
    Windows *w = user;
    int64_t extent;
    w->out = to;
    if (stm->kind == ST_FOR && stm->loop == LOOP_SEQ &&
        arith_is_const(stm->extent, &extent) && extent > 1 && straight(&stm->body))
        carry(w, stm, extent);
    VEC_PUSH(w->pass->arena, to, stm);
}

void pass_windows(Pass *pass, Kernel *kernel)
{
    AUTO_FREE Windows *w = xcalloc(1, sizeof *w);
    w->pass = pass;
    w->kernel = kernel;
    w->arena = arena_new();
    block_each(&kernel->body, note_store, w);
    block_map(pass->arena, &kernel->body, look_at, w);
    arena_free(w->arena);
}
