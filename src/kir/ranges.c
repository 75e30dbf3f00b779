// SPDX-License-Identifier: Apache-2.0
//
// Ranges: a loop over items that begins with a condition on which item it is becomes loops
// over those for which it holds, and those before and after them, without the condition.
//
//   method  Each part of the condition is a bound of the item's number, or the same for all
//           items of the loop: then it is asked before the loop.
//   why     A compiler makes no vectors of a loop that decides for each item whether it is
//           in the interior (interior.c): int star of radius 3, 2449 x 2449, 10 ms where
//           the border is in each index, 2 ms in ranges (gcc 12, two cores)
//   needs   items that are a loop, and bounds that are known numbers from below
//
// Loops over the others count from 0, too, and say which item it is.

#include "kir/passes.h"

enum { FEW = 64 };

typedef struct {
    ArithCtx *ctx;
    Arena *arena;
    Kernel *kernel;
    int names;
    const Stm *items;
    int64_t from;             // the first item
    const Arith *to;          // behind the last one
    const Arith *const *cond; // of all items
    int ncond;
} Ranges;

// Finds the range of items for which the test holds, and its conditions that are the same
// for all items. False: those items are no range, or there is one only.
static bool find_range(Ranges *r, const KExpr *test)
{
    const Arith *iter = r->items->iter;
    const Arith **cond = NEW_ARRAY(r->arena, const Arith *, test->n);
    r->from = 0;
    r->to = r->items->extent;
    r->cond = cond;
    r->ncond = 0;
    for (int i = 0; i < test->n; i++) {
        int64_t stride = index_stride(r->ctx, test->cond[i], iter), least;
        const Arith *zero = arith_const(r->ctx, 0);
        const Arith *rest = arith_subst(r->ctx, test->cond[i], iter, zero);
        if (stride == 0) {
            cond[r->ncond++] = test->cond[i];
        } else if (stride == STRIDE_ANY) {
            return false;
        } else if (stride < 0) {
            const Arith *last = arith_divc(r->ctx, rest, -stride);
            r->to = arith_min(r->ctx, r->to, arith_addc(r->ctx, last, 1));
        } else if (arith_is_const(arith_divc(r->ctx, rest, stride), &least)) {
            r->from = MAX(r->from, -least);
        } else
            return false;
    }
    int64_t least, most;
    arith_range(r->ctx, arith_addc(r->ctx, r->to, -r->from), &least, &most);
    return most > 1;
}

static Stm *add_loop(Ranges *r, Block *to, const Arith *extent)
{
    const char *name = name_fresh(r->arena, r->kernel, "k", &r->names);
    Stm *loop = block_add(r->arena, to, *r->items);
    loop->iter = arith_iter(r->ctx, name, extent);
    loop->extent = loop->threads = extent;
    loop->body = (Block){0};
    return loop;
}

// Those for which it does.
static void add_inside(Ranges *r, Block *to, const Block *body)
{
    Stm *loop = add_loop(r, to, arith_addc(r->ctx, r->to, -r->from));
    loop->body = block_moved(r->ctx, r->arena, body, r->items->iter,
                             arith_addc(r->ctx, loop->iter, r->from));
}

// `count` items from `from` on, for which the test does not hold.
static void add_outside(Ranges *r, Block *to, const Block *body, const Arith *from,
                        const Arith *count)
{
    int64_t n;
    if (!body->len || (arith_is_const(count, &n) && n <= 0))
        return;
    Stm *loop = add_loop(r, to, count);
    if (arith_is_const(count, &n) && n <= FEW) { // to share them out would take longer
        loop->loop = LOOP_SEQ;
        loop->items = true;
    }
    const Arith *item = arith_add(r->ctx, from, loop->iter);
    if (arith_is_const(from, &n) && n == 0)
        loop->iter = r->items->iter;
    else
        block_add(r->arena, &loop->body,
                  (Stm){.kind = ST_INT, .iter = r->items->iter, .index = item});
    Block copy = block_moved(r->ctx, r->arena, body, r->items->iter, r->items->iter);
    VEC_EACH(Stm *, stm, &copy)
        VEC_PUSH(r->arena, &loop->body, stm);
}

static void add_ranges(Ranges *r, Block *to, const Stm *test)
{
    const Arith *extent = r->items->extent, *zero = arith_const(r->ctx, 0);
    const Arith *before = arith_min(r->ctx, arith_const(r->ctx, r->from), extent);
    const Arith *after = arith_max(r->ctx, r->to, before);
    if (r->ncond) {
        const KExpr *value = kexpr_cond(r->arena, r->cond, r->ncond);
        Stm *all = block_add(r->arena, to, (Stm){.kind = ST_IF, .value = value});
        add_outside(r, &all->other, &test->other, zero, extent);
        to = &all->body;
    }
    add_outside(r, to, &test->other, zero, before);
    add_inside(r, to, &test->body);
    add_outside(r, to, &test->other, after, arith_sub(r->ctx, extent, after));
}

static bool in_ranges(void *user, Block *to, const Stm *items, int around)
{
    Ranges *r = user;
    const Stm *test = items->body.len == 1 ? items->body.at[0] : NULL;
    if (!test || test->kind != ST_IF || test->value->kind != K_COND ||
        (test->side && test->other.len))
        return false;
    r->items = items;
    if (!find_range(r, test->value))
        return false;
    add_ranges(r, to, test);
    return true;
}

void pass_ranges(Pass *pass, Kernel *kernel)
{
    Ranges r = {.ctx = pass->ctx, .arena = pass->arena, .kernel = kernel};
    block_map_items(r.arena, &kernel->body, in_ranges, &r);
}
