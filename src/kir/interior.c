// SPDX-License-Identifier: Apache-2.0
//
// Interior and border: where the work of an item contains boundary conditions (min, max
// and modulo in indices, guards, the tests of constant padding), one condition decides
// whether all of them are needless, and interior items run code without any.
//
//   method  each boundary operation has a side that holds away from the border, found by
//           the ranges of its operands; the condition that it holds is collected,
//           sequential iterations are eliminated by their bounds, implied conditions are
//           dropped, and the block is rewritten with every operation replaced by that side.
//   why     on PoCL a clamp in the index keeps the compiler from vectorising across the
//           elements of an item: 25 against 62 GB/s for 5-point Jacobi, 2048 x 2048
//   warps   where items run in warps, one that is on the border takes its whole warp along:
//           the warp would run both sides, one after the other
//
// Only blocks of one work-item that synchronise with nobody are split.

#include "kir/passes.h"

enum { INTERIOR_CONDS_MAX = 64 };

// Both sides of a condition of the block, and what they are in its interior.
typedef struct {
    const Side *from, *to;
} Moved;

typedef struct {
    Pass *pass;
    const Arith *cond[INTERIOR_CONDS_MAX];
    int ncond;
    const Arith *iter[32]; // sequential loops inside the block
    int niter;
    const Arith *item; // whose neighbours run together, so many; NULL: they do not
    int64_t together;
    VEC(const Arith *) ints; // made inside the block, so that no test before it knows them
    VEC(Moved) moved;        // sides of the conditions met so far
    bool give_up;
} InteriorSplit;

static bool is_made_inside(const InteriorSplit *s, const Arith *a)
{
    for (int i = 0; i < s->ints.len; i++)
        if (arith_mentions(a, s->ints.at[i]))
            return true;
    return false;
}

// Can the verifier see that a condition of the block holds in each iteration?
static bool implies(ArithCtx *ctx, const Arith *cond, const Arith *each)
{
    if (cond == each)
        return true;
    int facts = arith_facts(ctx);
    arith_assume(ctx, cond);
    bool holds = arith_nonneg(ctx, each);
    arith_facts_reset(ctx, facts);
    return holds;
}

// The condition for all items of a warp at once, if it is linear in the item.
static const Arith *for_warp(const InteriorSplit *s, const Arith *cond)
{
    ArithCtx *ctx = s->pass->ctx;
    int64_t stride = s->item ? index_stride(ctx, cond, s->item) : 0;
    if (stride == 0 || stride == STRIDE_ANY)
        return cond;
    const Arith *first =
        arith_mulc(ctx, arith_divc(ctx, s->item, s->together), s->together);
    return arith_subst(ctx, cond, s->item,
                       arith_addc(ctx, first, stride > 0 ? 0 : s->together - 1));
}

static void need(InteriorSplit *s, const Arith *cond)
{
    ArithCtx *ctx = s->pass->ctx;
    const Arith *each = cond;
    if (s->niter)
        cond = arith_lower_bound(ctx, cond, s->iter, s->niter);
    if (!cond || s->ncond == INTERIOR_CONDS_MAX || !implies(ctx, cond, each)) {
        s->give_up = true;
        return;
    }
    int64_t lo, hi;
    const Arith *all = for_warp(s, cond);
    cond = cond_rounded(ctx, all != cond && implies(ctx, all, each) ? all : cond);
    if (arith_nonneg(ctx, cond))
        return;
    arith_range(ctx, cond, &lo, &hi);
    s->give_up |= hi < 0; // there is no interior
    for (int i = 0; i < s->ncond; i++)
        if (s->cond[i] == cond)
            return;
    s->cond[s->ncond++] = cond;
}

// Replaces every boundary operation by the side that holds in the interior.
static const Arith *inside(InteriorSplit *s, const Arith *a);

// Does it grow with the innermost variable? Mirrored positions fall, what is made of
// constants and sizes stays.
static bool grows(const Arith *a)
{
    if (a->kind != A_SUM)
        return !a->fixed;
    for (int i = a->n - 1; i >= 0; i--)
        if (!a->term[i].arg->fixed)
            return a->term[i].coef > 0;
    return false;
}

static const Arith *inside_choice(InteriorSplit *s, const Arith *a, const Arith *x,
                                  const Arith *y)
{
    ArithCtx *ctx = s->pass->ctx;
    // In max(x, y) and min(x, y), x wins where `margin` >= 0. The position itself is the
    // side that grows; ranges decide only where both do, because work-items without an
    // element widen them.
    const Arith *margin = a->kind == A_MAX ? arith_sub(ctx, x, y) : arith_sub(ctx, y, x);
    int64_t lo, hi;
    arith_range(ctx, margin, &lo, &hi);
    bool rises = grows(x), first = rises != grows(y) ? rises : lo != INT64_MIN && hi > -lo;
    need(s, first ? margin : arith_mulc(ctx, margin, -1));
    return first ? x : y;
}

// Is it the same for all items: a number of iterations only?
static bool is_of_loops(const InteriorSplit *s, const Arith *a)
{
    if (a->kind == A_VAR)
        return list_has(s->iter, s->niter, a);
    for (int i = 0; i < a->n; i++)
        if (!is_of_loops(s, a->term[i].arg))
            return false;
    return true;
}

// A modulo of an iteration alone is no boundary: it comes from two loops that became one.
static const Arith *inside_mod(InteriorSplit *s, const Arith *x, const Arith *d)
{
    ArithCtx *ctx = s->pass->ctx;
    int64_t lo, hi, n;
    arith_range(ctx, x, &lo, &hi);
    if (!arith_is_const(d, &n) || lo < 0 || hi >= 3 * n || lo > hi || is_of_loops(s, x))
        return NULL;
    int64_t k = (lo + (hi - lo) / 2) / n;
    const Arith *rest = arith_addc(ctx, x, -k * n);
    need(s, rest);
    need(s, arith_sub(ctx, arith_addc(ctx, d, -1), rest));
    return rest;
}

static const Arith *inside(InteriorSplit *s, const Arith *a)
{
    ArithCtx *ctx = s->pass->ctx;
    if (a->kind == A_CONST || a->kind == A_VAR)
        return a;
    const Arith *x = inside(s, a->term[0].arg);
    switch (a->kind) {
    case A_MIN:
    case A_MAX: return inside_choice(s, a, x, inside(s, a->term[1].arg));
    case A_MOD: {
        const Arith *d = inside(s, a->term[1].arg), *rest = inside_mod(s, x, d);
        return rest ? rest : arith_mod(ctx, x, d);
    }
    case A_DIV: return arith_div(ctx, x, inside(s, a->term[1].arg));
    case A_SUM: {
        const Arith *sum = arith_addc(ctx, arith_mulc(ctx, x, a->term[0].coef), a->value);
        for (int i = 1; i < a->n; i++)
            sum = arith_add(ctx, sum,
                            arith_mulc(ctx, inside(s, a->term[i].arg), a->term[i].coef));
        return sum;
    }
    case A_PROD:
        for (int i = 1; i < a->n; i++)
            x = arith_mul(ctx, x, inside(s, a->term[i].arg));
        return x;
    case A_CONST:
    case A_VAR: break;
    }
    return a;
}

static bool plain(const Arith *a)
{
    if (a->kind == A_MIN || a->kind == A_MAX || a->kind == A_MOD)
        return false;
    for (int i = 0; i < a->n; i++)
        if (!plain(a->term[i].arg))
            return false;
    return true;
}

static const Arith *inside_index(InteriorSplit *s, const Arith *a)
{
    return !a || plain(a) || is_made_inside(s, a) ? a : inside(s, a);
}

// Sides: what an access says it is on becomes what is known in the interior, where a
// condition has its boundary operations replaced as indices have, so that the verifier
// can see that the test implies it.

static const Side *inside_side(const InteriorSplit *s, const Side *side)
{
    for (int i = s->moved.len - 1; side && i >= 0; i--) // a value may be met again
        if (s->moved.at[i].from == side - !side->holds)
            return s->moved.at[i].to + !side->holds;
    return side;
}

static const Side *inside_sides(InteriorSplit *s, const Side *from, const KExpr *cond)
{
    Side *to = NEW_ARRAY(s->pass->arena, Side, 2);
    for (int i = 0; i < 2; i++)
        to[i] = (Side){inside_side(s, from[i].outer), cond, from[i].holds};
    VEC_PUSH(s->pass->arena, &s->moved, (Moved){from, to});
    return to;
}

// Asks for a condition; gives it as it reads in the interior.
static const KExpr *need_cond(InteriorSplit *s, const KExpr *cond)
{
    KExpr *copy = arena_copy(s->pass->arena, cond, sizeof(KExpr));
    const Arith **part = NEW_ARRAY(s->pass->arena, const Arith *, cond->n);
    for (int i = 0; i < cond->n; i++)
        need(s, part[i] = inside_index(s, cond->cond[i]));
    copy->cond = part;
    return copy;
}

// Can the test before the block ask for these conditions?
static bool can_need(const InteriorSplit *s, const KExpr *cond)
{
    if (cond->kind != K_COND)
        return false;
    for (int i = 0; i < cond->n; i++)
        if (is_made_inside(s, cond->cond[i]))
            return false;
    return true;
}

static const KExpr *inside_value(InteriorSplit *s, const KExpr *k);

static const KExpr *copy_value(InteriorSplit *s, const KExpr *k)
{
    const KExpr **arg;
    KExpr *copy = kexpr_copy(s->pass->arena, k, &arg);
    copy->arith = inside_index(s, k->arith);
    if (k->kind == K_LOAD)
        copy->side = inside_side(s, k->side);
    for (int i = 0; i < k->n; i++) {
        arg[i] = inside_value(s, k->arg[i]);
        if (i == 0 && k->side && k->kind != K_LOAD)
            copy->side = inside_sides(s, k->side, arg[0]);
    }
    return copy;
}

static const KExpr *inside_value(InteriorSplit *s, const KExpr *k)
{
    if (!k || k->kind == K_LITERAL || k->kind == K_VAR || k->kind == K_COND)
        return k;
    if (k->kind == K_OP && k->op == OP_SELECT && can_need(s, k->arg[0])) {
        const KExpr *cond = need_cond(s, k->arg[0]);
        if (k->side)
            inside_sides(s, k->side, cond);
        return inside_value(s, k->arg[1]);
    }
    return copy_value(s, k);
}

static void inside_block(InteriorSplit *s, const Block *from, Block *to);

static void inside_stm(InteriorSplit *s, const Stm *from, Block *to)
{
    if (from->kind == ST_IF && can_need(s, from->value) && !from->other.len) {
        const KExpr *cond = need_cond(s, from->value);
        if (from->side)
            inside_sides(s, from->side, cond);
        inside_block(s, &from->body, to);
        return;
    }
    Stm *stm = arena_copy(s->pass->arena, from, sizeof(Stm));
    stm->body = stm->other = (Block){0};
    stm->index = inside_index(s, from->index);
    stm->value = inside_value(s, from->value);
    if (from->side)
        stm->side = from->kind == ST_STORE ? inside_side(s, from->side)
                                           : inside_sides(s, from->side, stm->value);
    if (from->kind == ST_INT)
        VEC_PUSH(s->pass->arena, &s->ints, from->iter);
    s->give_up |= from->kind == ST_BARRIER || s->niter == COUNTOF(s->iter);
    bool loop = from->kind == ST_FOR && !s->give_up;
    if (loop)
        s->iter[s->niter++] = from->iter;
    inside_block(s, &from->body, &stm->body);
    inside_block(s, &from->other, &stm->other);
    s->niter -= loop;
    VEC_PUSH(s->pass->arena, to, stm);
}

static void inside_block(InteriorSplit *s, const Block *from, Block *to)
{
    for (int i = 0; i < from->len && !s->give_up; i++)
        inside_stm(s, from->at[i], to);
}

// Does some other condition, smaller by a constant, imply this one?
static bool implied(const InteriorSplit *s, int i)
{
    for (int k = 0; k < s->ncond; k++) {
        int64_t slack;
        if (k != i &&
            arith_is_const(arith_sub(s->pass->ctx, s->cond[i], s->cond[k]), &slack) &&
            slack > 0)
            return true;
    }
    return false;
}

static const KExpr *interior_test(const InteriorSplit *s)
{
    const Arith **cond = NEW_ARRAY(s->pass->arena, const Arith *, s->ncond);
    int n = 0;
    for (int i = 0; i < s->ncond; i++)
        if (!implied(s, i))
            cond[n++] = s->cond[i];
    return kexpr_cond(s->pass->arena, cond, n);
}

// Items of a row of a group run together, as many as there are up to a warp.
static void find_warps(InteriorSplit *s, const Kernel *kernel, const Stm *items)
{
    enum { WARP = 32 };
    const int64_t row = kernel->local[0];
    if (s->pass->options->item_loops || kernel->any_group || items->dim != 0 ||
        items->loop == LOOP_WRG || row < 2 || (row % WARP && WARP % row))
        return;
    s->item = items->iter;
    s->together = MIN(row, WARP);
}

// Do two of the conditions exclude each other?
static bool is_empty(const InteriorSplit *s)
{
    for (int i = 0; i < s->ncond; i++)
        for (int k = 0; k < i; k++) {
            int64_t lo, hi;
            arith_range(s->pass->ctx, arith_add(s->pass->ctx, s->cond[i], s->cond[k]), &lo,
                        &hi);
            if (hi < 0)
                return true;
        }
    return false;
}

static bool find_interior(InteriorSplit *s, const Block *block, Block *interior)
{
    *interior = (Block){0};
    inside_block(s, block, interior);
    return !s->give_up && s->ncond > 0 && !is_empty(s);
}

// Does the block nothing where the test does not hold?
static bool is_behind(const Block *block, const KExpr *test)
{
    const Stm *only = block->len == 1 ? block->at[0] : NULL;
    return only && only->kind == ST_IF && !only->other.len && only->value->kind == K_COND &&
           kexpr_same_cond(only->value, test);
}

static void split_block(Pass *pass, const Kernel *kernel, const Stm *items, Block *block)
{
    InteriorSplit warps = {.pass = pass}, each = {.pass = pass};
    Block interior;
    find_warps(&warps, kernel, items);
    bool found = warps.item && find_interior(&warps, block, &interior);
    if (!found && !find_interior(&each, block, &interior))
        return;
    Stm branch = {.kind = ST_IF, .body = interior};
    branch.value = interior_test(found ? &warps : &each);
    if (!is_behind(block, branch.value))
        branch.other = *block;
    *block = (Block){0};
    block_add(pass->arena, block, branch);
}

// Is it something that all items do together, or a loop over them?
static bool is_of_threads(const Stm *stm, const void *of)
{
    return (stm->kind == ST_FOR && stm->loop != LOOP_SEQ) || stm->kind == ST_BARRIER ||
           stm_exchanges(stm, of);
}

// loops: items do something together between loops of their own.
static void split_items(Pass *pass, const Kernel *kernel, Block *block, bool loops)
{
    VEC_EACH(Stm *, stm, block) {
        bool item = stm->kind == ST_FOR && (stm->loop != LOOP_SEQ || loops);
        if (item && !block_any(&stm->body, is_of_threads, NULL))
            split_block(pass, kernel, stm, &stm->body);
        else
            split_items(pass, kernel, &stm->body,
                        loops || (item && block_any(&stm->body, stm_exchanges, NULL)));
        split_items(pass, kernel, &stm->other, loops);
    }
}

void pass_interior(Pass *pass, Kernel *kernel)
{
    split_items(pass, kernel, &kernel->body, false);
}
