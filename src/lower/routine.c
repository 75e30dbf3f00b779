// SPDX-License-Identifier: Apache-2.0
//
// A function of small arrays by one of the threads that share its result: the threads take
// the leading dimensions of the result, or strips of all arrays; what it reads is found by
// the same views as in any kernel.

#include "lower/routine.h"

#include "lower/internal.h"
#include "lower/passes.h"

// What no routine is made of --------------------------------------------------------------

static bool refuse(Lower *l, Span span, const char *what)
{
    lower_fail(l, span, "F016", "no compute routine can be made of %s", what);
    return false;
}

static bool known(Lower *l, const Arith *a, Span span)
{
    const Program *program = l->unit->program;
    for (int i = 0; i < program->sizes.len; i++) {
        const SizeDecl *size = &program->sizes.at[i];
        if (size->arith && size->arith->kind == A_VAR && arith_mentions(a, size->arith))
            return refuse(l, span,
                          arena_printf(l->arena,
                                       "the size `%s`: it has no value, and the lengths of "
                                       "the parameters do not say it",
                                       size->name));
    }
    return true;
}

static bool known_type(Lower *l, const Type *type, Span span)
{
    for (; type && type->kind == T_ARRAY; type = type->elem)
        if (!known(l, type->len, span))
            return false;
    return true;
}

static bool of_scalars(const Type *type)
{
    bool all = type->kind == T_TUPLE || type_is_scalar(type);
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        all = all && of_scalars(type->item[i]);
    return all;
}

// Layouts, maps and folds are computed where they are read; the rest would be stored.
static bool can_read(Lower *l, const Expr *e)
{
    bool read = pattern_info[e->pattern].group == G_VIEW || e->pattern == P_MAP ||
                e->pattern == P_ARRAY || e->pattern == P_REDUCE;
    if (!read || e->pattern == P_SCATTER || e->pattern == P_ASVECTOR ||
        e->pattern == P_ASSCALAR)
        return refuse(
            l, e->span,
            arena_printf(l->arena, "the pattern `%s`", pattern_info[e->pattern].text));
    if (e->pattern == P_REDUCE && !of_scalars(e->type))
        return refuse(l, e->span, "a reduction to an array");
    return true;
}

static bool can_be_routine(Lower *l, const Expr *e)
{
    bool ok = known_type(l, e->type, e->span);
    for (int i = 0; ok && i < e->nnum; i++)
        ok = known(l, e->num[i], e->span);
    if (ok && e->kind == E_NUM)
        ok = known(l, e->num[0], e->span);
    if (ok && e->kind == E_PATTERN)
        ok = can_read(l, e);
    if (ok && e->kind == E_OP && (e->op == OP_HALF || e->op == OP_DOUBLE))
        ok = refuse(l, e->span,
                    arena_printf(l->arena, "the operation `%s`", op_info[e->op].text));
    if (ok && e->kind == E_CALL)
        ok = e->callee->body ? can_be_routine(l, e->callee->body)
                             : refuse(l, e->span, "a function that is C text");
    for (int i = 0; ok && i < e->narg; i++)
        ok = can_be_routine(l, e->arg[i]);
    return ok && (!e->fun || can_be_routine(l, e->fun->arg[0]));
}

// Strips ----------------------------------------------------------------------------------

int64_t routine_own(int lanes, int strip, int64_t words)
{
    int64_t all = (int64_t)lanes * strip;
    return (words + all - 1) / all * strip;
}

typedef struct {
    Block *block;
    int64_t words;
} Outer;

// One iteration needs no loop.
static const Arith *loop_over(Lower *l, const char *name, int64_t extent)
{
    if (extent == 1)
        return arith_const(l->ctx, 0);
    Stm *loop = stm_add(l, ST_FOR);
    loop->loop = LOOP_SEQ;
    loop->extent = arith_const(l->ctx, extent);
    loop->iter = arith_var(l->ctx, name_new(l, name), arith_const(l->ctx, 0),
                           arith_const(l->ctx, extent - 1));
    loop->unroll = l->options->unroll_loops ? (int)extent : 0;
    l->block = &loop->body;
    return loop->iter;
}

// The thread's words of an array of so many, one after another. Returns the word.
static const Arith *strips_begin(Lower *l, int64_t words, Outer *outer)
{
    Strips *s = l->strips;
    int64_t own = routine_own(s->lanes, s->strip, words);
    *outer = (Outer){l->block, words};
    const Arith *k = loop_over(l, "k", own / s->strip);
    const Arith *j = s->strip > 1 ? loop_over(l, "j", s->strip) : arith_const(l->ctx, 0);
    s->own = arith_add(l->ctx, arith_mulc(l->ctx, k, s->strip), j);
    s->word = arith_add(l->ctx, arith_mulc(l->ctx, k, (int64_t)s->strip * s->lanes),
                        arith_add(l->ctx, arith_mulc(l->ctx, s->lane, s->strip), j));
    if (own * s->lanes > words) {
        Stm *guard = stm_add(l, ST_IF);
        const Arith *left = arith_sub(l->ctx, arith_const(l->ctx, words - 1), s->word);
        guard->value = k_cond(l, &left, 1);
        l->block = &guard->body;
    }
    return s->word;
}

static void strips_end(Lower *l, const Outer *outer)
{
    l->block = outer->block;
    l->strips->word = NULL;
}

const Arith *strips_index(Lower *l, const Buffer *buffer, const Arith *index)
{
    const Strips *s = l->strips;
    int64_t apart;
    if (arith_is_const(buffer->count, &apart) && apart == 1)
        return index;
    if (s->word && arith_is_const(arith_sub(l->ctx, index, s->word), &apart) && apart == 0)
        return s->own;
    refuse(l, s->span, "an index that is another thread's");
    return index;
}

// How a reduction's parts are put together; OPS: they cannot be.
static Op join_of(const Expr *e)
{
    const Expr *fun = e->fun, *body = fun->arg[0];
    bool zero = e->arg[0]->kind == E_LITERAL && e->arg[0]->number == 0;
    bool joins = body->kind == E_OP && ((body->op == OP_ADD && zero) ||
                                        body->op == OP_MINIMUM || body->op == OP_MAXIMUM);
    return joins && body->arg[0]->kind == E_PARAM &&
                   body->arg[0]->param == fun->params[0] &&
                   !expr_mentions(body->arg[1], fun->params[0])
               ? body->op
               : OPS;
}

const View *strips_fold(Lower *l, const Expr *expr, const Env *env)
{
    Strips *s = l->strips;
    Op join = join_of(expr);
    int64_t words;
    if (join == OPS || l->block != &l->kernel->body || !type_is_float(expr->type) ||
        !arith_is_const(expr->arg[1]->type->len, &words)) {
        refuse(l, expr->span, "a reduction whose parts cannot be put together");
        return view_value(l, k_literal(l, 0, expr->type));
    }
    const View *start = eval(l, expr->arg[0], env), *in = eval(l, expr->arg[1], env);
    Stm *decl = stm_add(l, ST_DECL);
    decl->value = view_read(l, start);
    decl->var = var_new(l, "acc", expr->type, false);
    const View *acc = view_var(l, decl->var);
    Outer outer;
    const Arith *word = strips_begin(l, words, &outer);
    const View *arg[] = {acc, view_elem(l, in, word)};
    gen_copy(l, apply(l, expr->fun, env, arg), acc);
    strips_end(l, &outer);
    RoutineTree tree = {l->block->len, decl->var, join};
    VEC_PUSH(l->arena, &s->routine->trees, tree);
    return acc;
}

// The whole routine -----------------------------------------------------------------------

// Index d of the result: of the threads, as long as they last; then a loop.
static void share(Lower *l, const View *value, const View *out, const Arith *lane,
                  int64_t all, int64_t lanes)
{
    int64_t len;
    if (lanes == 1 || value->type->kind != T_ARRAY ||
        !arith_is_const(value->type->len, &len)) {
        gen_copy(l, value, out);
        return;
    }
    const Arith *i = arith_divc(l->ctx, lane, lanes / len);
    if (lanes != all)
        i = arith_mod(l->ctx, i, arith_const(l->ctx, len));
    share(l, view_elem(l, value, i), view_elem(l, out, i), lane, all, lanes / len);
}

// By strips, what has but scalars is done by every thread.
static void share_strips(Lower *l, const View *value, const View *out)
{
    int64_t words;
    if (value->type->kind != T_ARRAY || !arith_is_const(value->type->len, &words)) {
        gen_copy(l, value, out);
        return;
    }
    Outer outer;
    const Arith *word = strips_begin(l, words, &outer);
    gen_copy(l, view_elem(l, value, word), view_elem(l, out, word));
    strips_end(l, &outer);
}

static const View *place(Lower *l, const RoutineOptions *o, const Routine *r,
                         const Type *type, int p)
{
    const Held *held = &o->held[p];
    Buffer *buffer = (Buffer *)r->held[p];
    const Arith *count = type_count(l->ctx, type), *first = arith_const(l->ctx, 0);
    int64_t words = 1;
    arith_is_const(count, &words);
    *buffer = (Buffer){.name = held->name,
                       .space = held->kind == HELD_MEMORY ? MEM_GLOBAL : MEM_PRIVATE,
                       .scalar = S_FLOAT,
                       .count = count,
                       .bare = held->kind == HELD_SCALAR};
    if (held->kind == HELD_ARRAY && !o->strip)
        first = arith_mulc(l->ctx, r->lane, -(words / o->lanes));
    return view_mem(l, buffer, first, type);
}

// Names of the text around a routine that stand inside too, where its threads join.
static void take_names(const RoutineOptions *o, Kernel *kernel)
{
    static const char *const around[] = {"lane", "lid", "inst", "step"};
    for (int i = 0; i < COUNTOF(around); i++)
        name_take(kernel, around[i]);
    for (int p = 0; p <= o->def->nparam; p++)
        name_take(kernel, o->held[p].name);
}

bool lower_routine(const RoutineOptions *o, Arena *arena, Diags *diags, Routine *routine)
{
    const Function *def = o->def;
    LowerOptions options = {.unroll_loops = o->unroll ? INT32_MAX : 0};
    Unit unit = {.ir = o->program->ir, .arena = arena, .program = o->program};
    Strips strips = {
        .lanes = o->lanes, .strip = o->strip, .routine = routine, .span = def->span};
    Lower l = {.ir = o->program->ir,
               .ctx = o->program->ir->arith,
               .arena = arena,
               .unit = &unit,
               .options = &options,
               .diags = diags,
               .routine = true,
               .strips = o->strip ? &strips : NULL};
    const Buffer **held = NEW_ARRAY(arena, const Buffer *, def->nparam + 1);
    *routine = (Routine){.kernel = NEW(arena, Kernel), .held = held};
    l.kernel = routine->kernel;
    l.block = &routine->kernel->body;
    map_init(&routine->kernel->names, arena);
    take_names(o, routine->kernel);
    const Arith *zero = arith_const(l.ctx, 0);
    routine->lane = o->lanes == 1
                        ? zero
                        : arith_var(l.ctx, "lane", zero, arith_const(l.ctx, o->lanes - 1));
    strips.lane = routine->lane;
    const Env *env = NULL;
    for (int p = 0; p <= def->nparam; p++)
        held[p] = NEW(arena, Buffer);
    for (int p = 0; p < def->nparam; p++)
        env = env_bind(&l, env, def->params[p],
                       place(&l, o, routine, def->params[p]->type, p));
    if (!can_be_routine(&l, def->body))
        return false;
    const View *out = place(&l, o, routine, def->result, def->nparam);
    const View *value = eval(&l, def->body, env);
    if (o->strip)
        share_strips(&l, value, out);
    else
        share(&l, value, out, routine->lane, o->lanes, o->lanes);
    return !l.failed;
}
