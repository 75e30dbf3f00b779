// SPDX-License-Identifier: Apache-2.0
//
// Compute routines made of definitions of the language. A def maps arrays to one array; the
// threads of an instance share the leading dimensions of that, and the rest are loops. The
// statements are those of lower; here stand which words each thread touches, and how many
// operations there are.

#include "fuse/routine.h"

#include "emit/emit.h"
#include "fuse/read.h"

int strip_own(const Impl *impl, int words)
{
    return (int)routine_own(impl->lanes, impl->strip, words);
}

// Where all that a routine reads and writes is in memory, by strips with its thread.
static void hold_anywhere(const Elementary *f, const Impl *impl, Held *held)
{
    for (int p = 0; p <= f->nparam; p++)
        held[p] = (Held){f->words[p] == 1 ? HELD_SCALAR
                         : impl->strip    ? HELD_ARRAY
                                          : HELD_MEMORY,
                         p < f->nparam ? f->param[p] : "out"};
}

static bool routine_of(const Elementary *f, const Impl *impl, const Held *held, bool unroll,
                       Arena *arena, Diags *diags, Routine *routine)
{
    const RoutineOptions options = {.program = f->program,
                                    .def = f->def,
                                    .lanes = impl->lanes,
                                    .strip = impl->strip,
                                    .held = held,
                                    .unroll = unroll};
    return lower_routine(&options, arena, diags, routine);
}

// Words touched -----------------------------------------------------------------------

enum { LOOPS_MAX = 16 };

// A thread at a moment: what the variables of the loops around it are.
typedef struct {
    const Elementary *function;
    const Routine *routine;
    uint64_t *const *bit; // of each parameter, then of the result
    int lane, nloop;
    struct {
        const Arith *var;
        int64_t at;
    } loop[LOOPS_MAX];
} Moment;

static bool look_up(void *user, const Arith *var, int64_t *value)
{
    const Moment *now = user;
    *value = now->lane;
    for (int i = 0; i < now->nloop; i++)
        if (var == now->loop[i].var) {
            *value = now->loop[i].at;
            return true;
        }
    return var == now->routine->lane;
}

// Is the moment on a side of conditions about indices, or of what is not known here?
static bool is_reached(Moment *now, const Side *side)
{
    for (; side; side = side->outer) {
        bool holds = side->cond->kind == K_COND;
        int64_t value;
        for (int i = 0; holds && i < side->cond->n; i++) {
            if (!arith_eval(side->cond->cond[i], look_up, now, &value))
                return true;
            holds = value >= 0;
        }
        if (side->cond->kind == K_COND && holds != side->holds)
            return false;
    }
    return true;
}

// An element of a buffer, if that is a parameter or the result.
static bool touch(Moment *now, const Buffer *buffer, const Arith *index)
{
    int p = 0, n = now->function->nparam;
    int64_t w;
    while (p <= n && now->routine->held[p] != buffer)
        p++;
    if (p > n)
        return true;
    int words = now->function->words[p];
    if (!arith_eval(index, look_up, now, &w) || w < 0 || w >= words)
        return false;
    now->bit[p][now->lane * map_row_words(words) + w / 64] |= (uint64_t)1 << w % 64;
    return true;
}

static bool touch_value(Moment *now, const KExpr *e)
{
    if (!e || (e->kind == K_LOAD && !is_reached(now, e->side)))
        return true;
    bool ok = e->kind != K_LOAD || touch(now, e->buffer, e->arith);
    for (int i = 0; ok && e->kind != K_COND && i < e->n; i++)
        ok = touch_value(now, e->arg[i]);
    return ok;
}

static bool touch_block(Moment *now, const Block *block)
{
    for (int i = 0; i < block->len; i++) {
        const Stm *stm = block->at[i];
        int64_t extent = 1;
        if (!touch_value(now, stm->value) || stm->kind == ST_INT ||
            (stm->kind == ST_STORE && !touch(now, stm->buffer, stm->index)) ||
            !touch_block(now, &stm->other))
            return false;
        if (stm->kind != ST_FOR) {
            if (!touch_block(now, &stm->body))
                return false;
            continue;
        }
        if (now->nloop == LOOPS_MAX || !arith_is_const(stm->extent, &extent))
            return false;
        int mine = now->nloop++;
        now->loop[mine].var = stm->iter;
        for (int64_t k = 0; k < extent; k++) {
            now->loop[mine].at = k;
            if (!touch_block(now, &stm->body))
                return false;
        }
        now->nloop--;
    }
    return true;
}

// Operations --------------------------------------------------------------------------

static double flops_of_value(const KExpr *e)
{
    double flops = e->kind == K_OP && op_info[e->op].kind != OPK_FREE;
    for (int i = 0; e->kind != K_COND && i < e->n; i++)
        flops += flops_of_value(e->arg[i]);
    return flops;
}

// The first element of a fold is only added to the neutral one.
static double flops_of(const Block *block)
{
    double flops = 0;
    for (int i = 0; i < block->len; i++) {
        const Stm *stm = block->at[i];
        int64_t times = 1;
        if (stm->kind == ST_FOR)
            arith_is_const(stm->extent, &times);
        flops += stm->value ? flops_of_value(stm->value) : 0;
        flops -= stm->kind == ST_DECL && !stm->var->is_const && stm->value;
        flops += (double)times * (flops_of(&stm->body) + flops_of(&stm->other));
    }
    return flops;
}

// Implementations ---------------------------------------------------------------------

static bool touch_all(Script *script, Elementary *f, Impl *impl, const Routine *routine)
{
    uint64_t *bit[ARITY_MAX + 1];
    for (int p = 0; p <= f->nparam; p++) {
        bit[p] =
            NEW_ARRAY(script->arena, uint64_t, impl->lanes * map_row_words(f->words[p]));
        impl->map[p] = (WordMap){impl->lanes, f->words[p], bit[p]};
    }
    for (int lane = 0; lane < impl->lanes; lane++) {
        Moment now = {f, routine, bit, .lane = lane};
        if (!touch_block(&now, &routine->kernel->body))
            return false;
    }
    return true;
}

static bool find_maps(Script *script, Elementary *f, int i, Diags *diags)
{
    Impl *impl = &f->impl[i];
    Held held[ARITY_MAX + 1];
    Routine routine;
    ArithMark mark = arith_mark(script->ir->arith);
    Arena *arena = arena_new();
    hold_anywhere(f, impl, held);
    bool ok = routine_of(f, impl, held, false, arena, diags, &routine);
    if (ok && !impl->strip && !touch_all(script, f, impl, &routine))
        ok = diag_error(diags, f->def->span, "F016",
                        "no compute routine can be made of an index that is not known or "
                        "out of bounds");
    if (ok && !impl->strip)
        f->flops = impl->lanes * flops_of(&routine.kernel->body);
    impl->is_static = ok;
    arena_free(arena);
    arith_release(script->ir->arith, mark);
    return ok;
}

// Words of the arrays that a function takes and makes, if they are all one long array each
// and equally long; else 0.
static int strip_words(const Elementary *f)
{
    int words = 0;
    for (int p = 0; p <= f->nparam; p++) {
        const Type *t = f->type[p];
        bool flat = t->kind == T_ARRAY && t->elem->kind == T_SCALAR;
        if (t->kind == T_SCALAR)
            continue;
        if (!flat || (words && words != f->words[p]))
            return 0;
        words = f->words[p];
    }
    return words;
}

// STRIPS_LEAST: a warp has two words a thread. OWN_MOST: words of one array that a thread
// keeps in registers; with four arrays of them it has half of an NVIDIA thread's 255.
enum { STRIPS_LEAST = 64, WARP = 32, OWN_LEAST = 4, OWN_MOST = 32 };

void routine_strips(Script *script, Elementary *f)
{
    int words = strip_words(f), strip = words % 4 == 0 ? 4 : 1;
    for (int lanes = WARP; words >= STRIPS_LEAST && lanes <= THREADS_MAX; lanes *= 2) {
        Impl impl = {.lanes = lanes, .strip = strip};
        int own = strip_own(&impl, words);
        Diags unsaid;
        if (own > OWN_MOST || (own < OWN_LEAST && lanes > WARP) || f->nimpl == IMPLS_MAX)
            continue;
        diags_init(&unsaid, script->arena);
        f->impl[f->nimpl++] = impl;
        if (f->def && !find_maps(script, f, f->nimpl - 1, &unsaid)) {
            f->nimpl--;
            return;
        }
    }
}

bool routine_implementations(Script *script, Elementary *f, Diags *diags)
{
    int64_t lanes = 1;
    const Type *type = f->type[f->nparam];
    do {
        f->impl[f->nimpl++].lanes = (int)lanes;
        if (!find_maps(script, f, f->nimpl - 1, diags))
            return false;
        if (type->kind == T_ARRAY) {
            lanes *= type->len->value;
            type = type->elem;
        } else {
            type = NULL;
        }
    } while (type && lanes <= THREADS_MAX && f->nimpl < IMPLS_MAX);
    routine_strips(script, f);
    return true;
}

void routine_emit(const Script *script, const Elementary *f, int impl, const Held *held,
                  const char *target, bool unroll, int indent, PutTree *tree, void *user,
                  Buf *out)
{
    ArithMark mark = arith_mark(script->ir->arith);
    Arena *arena = arena_new();
    Program program = *f->program; // its functions are written out
    Routine r;
    int done = 0;
    Diags unsaid;
    diags_init(&unsaid, arena);
    if (!routine_of(f, &f->impl[impl], held, unroll, arena, &unsaid, &r))
        BUG("a routine that was accepted is refused");
    program.funs.len = 0;
    for (int i = 0; i < r.trees.len; i++) {
        const RoutineTree *t = &r.trees.at[i];
        emit_statements(out, target_find(target), &program, r.kernel, done, t->after,
                        indent);
        tree(user, t->var->name, t->join, indent);
        done = t->after;
    }
    emit_statements(out, target_find(target), &program, r.kernel, done, r.kernel->body.len,
                    indent);
    arena_free(arena);
    arith_release(script->ir->arith, mark);
}
