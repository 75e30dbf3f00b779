// SPDX-License-Identifier: Apache-2.0
//
// Loops: sequential, unrolled, and over threads.
//
//   source  the special cases of paper 000, section 4.3: no loop for one iteration, an
//           `if` when there are more threads than iterations

#include "lower/internal.h"

static const char *const iter_name[4][3] = {
    {"i", "i", "i"}, {"gx", "gy", "gz"}, {"wx", "wy", "wz"}, {"lx", "ly", "lz"}};

void add_barrier(Lower *l)
{
    Stm *barrier = stm_add(l, ST_BARRIER);
    barrier->fence_local = barrier->fence_global = true;
}

// One variable for all loops of a kind, dimension and extent of a kernel that are not
// inside each other: the same work-item has the same value in each, which is what barrier
// elimination looks for; sequential ones may become one loop.
static int loop_var(Lower *l, LoopKind kind, int dim, const Arith *extent)
{
    for (int i = 0; i < l->loops.len; i++) {
        const LoopVar *t = &l->loops.at[i];
        if (t->kind == kind && t->dim == dim && t->extent == extent && !t->open)
            return i;
    }
    VEC_PUSH(l->arena, &l->loops,
             (LoopVar){kind, dim, extent,
                       arith_iter(l->ctx, name_new(l, iter_name[kind][dim]), extent),
                       false});
    return l->loops.len - 1;
}

static const Arith *thread_count(Lower *l, LoopKind kind, int dim)
{
    const Kernel *kernel = l->kernel;
    switch (kind) {
    case LOOP_GLB: return kernel->global[dim];
    case LOOP_WRG: return arith_divc(l->ctx, kernel->global[dim], kernel->local[dim]);
    case LOOP_LCL: return arith_const(l->ctx, kernel->local[dim]);
    case LOOP_SEQ: break;
    }
    return arith_const(l->ctx, 1);
}

static LoopForm loop_form(Lower *l, LoopKind kind, int dim, const Arith *extent,
                          const Arith *threads)
{
    if (kind == LOOP_SEQ)
        return FORM_LOOP;
    if (extent == threads && !l->kernel->any_group)
        return FORM_ONCE;
    bool inferred = kind != LOOP_LCL && !l->fewer[dim];
    return inferred || arith_le(l->ctx, extent, threads) ? FORM_GUARD : FORM_LOOP;
}

// Where a loop's last barrier goes: into an `if` over groups that is all of the body, as no
// other group has anything to wait for. PoCL 3.1 computes wrong values where a barrier in
// such an `if` is followed by one after it in a loop (test/lower/test_passes.c).
static Block *group_block(Block *block)
{
    while (block->len == 1 && block->at[0]->kind == ST_FOR &&
           block->at[0]->loop == LOOP_WRG && block->at[0]->form == FORM_GUARD)
        block = &block->at[0]->body;
    return block;
}

// Where every item runs what an inner loop over all items encloses: it is the same item.
static bool gen_together(Lower *l, LoopKind kind, int dim, const Arith *extent,
                         LoopBody *body, void *user)
{
    if (kind != LOOP_LCL || !l->item[dim] || extent != thread_count(l, kind, dim))
        return false;
    l->inside[kind] += l->lanes && dim == 0;
    body(l, user, l->item[dim]);
    l->inside[kind] -= l->lanes && dim == 0;
    return true;
}

// Runs the body inside a loop; iter: its variable, which stands for an item if all run it.
static void gen_inside(Lower *l, LoopKind kind, int dim, bool all, const Arith *iter,
                       LoopBody *body, void *user)
{
    const Arith *outer = kind == LOOP_LCL ? l->item[dim] : NULL;
    if (kind == LOOP_LCL)
        l->item[dim] = all ? iter : NULL;
    l->inside[kind]++;
    body(l, user, iter);
    l->inside[kind]--;
    if (kind == LOOP_LCL)
        l->item[dim] = outer;
}

// Iterations that the compiler is asked to write out: all, some or none.
static int asks_unrolling(const Lower *l, LoopKind kind, bool known, int64_t n)
{
    if (kind != LOOP_SEQ || (known && n <= l->options->unroll_loops))
        return kind == LOOP_SEQ ? (int)n : 0;
    return !known || n > l->options->unroll_part ? l->options->unroll_part : 0;
}

void gen_loop(Lower *l, LoopKind kind, int dim, bool unroll, const Arith *extent,
              LoopBody *body, void *user)
{
    int64_t n = -1;
    bool known = arith_is_const(extent, &n);
    const Arith *threads = thread_count(l, kind, dim);
    if (known && n == 0) // nothing is read or written
        return;
    if (kind == LOOP_SEQ && known && (n <= 1 || (unroll && n <= l->options->unroll_cap))) {
        for (int64_t i = 0; i < n && !l->failed; i++)
            body(l, user, arith_const(l->ctx, i));
        return;
    }
    if (gen_together(l, kind, dim, extent, body, user) ||
        gen_in_turns(l, kind, dim, extent, body, user))
        return;
    bool once = n == 1 && extent == threads && !l->kernel->any_group;
    if (once && kind != LOOP_WRG) { // a group loop marks its group
        gen_inside(l, kind, dim, true, arith_const(l->ctx, 0), body, user);
        return;
    }
    int var = loop_var(l, kind, dim, extent);
    Stm *loop = stm_add(l, ST_FOR);
    *loop = (Stm){.kind = ST_FOR,
                  .unroll = asks_unrolling(l, kind, known, n),
                  .loop = kind,
                  .dim = dim,
                  .extent = extent,
                  .threads = threads,
                  .form = loop_form(l, kind, dim, extent, threads),
                  .iter = l->loops.at[var].iter};
    Block *outer = l->block;
    bool tile = l->shared_tile;
    l->shared_tile = false;
    l->loops.at[var].open = kind == LOOP_SEQ;
    l->block = &loop->body;
    gen_inside(l, kind, dim, loop->form == FORM_ONCE,
               n == 1 ? arith_const(l->ctx, 0) : loop->iter, body, user);
    l->loops.at[var].open = false;
    if (block_any(&loop->body, stm_is_loop, NULL) &&
        loop->unroll == l->options->unroll_part)
        loop->unroll = 0; // only innermost loops in part
    own_unroll(l, loop);
    // The next iteration may overwrite a tile that slower work-items still read.
    if (l->shared_tile && loop->form == FORM_LOOP && kind != LOOP_LCL) {
        l->block = group_block(&loop->body);
        add_barrier(l);
    }
    l->shared_tile |= tile;
    l->block = outer;
}
