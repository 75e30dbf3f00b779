// SPDX-License-Identifier: Apache-2.0
//
// Tasks: on processors whose language has work-items, each work-item is a group of its own
// and does the work of many: what they share out is loops inside it.
//
//   method  The outermost loop over items or groups that is long enough is shared out among
//           at most TASKS work-items, in blocks if it is the innermost. All loops inside
//           are sequential, and barriers go.
//   why     Then loops over items can be put inside others and divided for vectors as those
//           of C are (interchange.c, blocks.c, ranges.c). PoCL makes the loops over items
//           itself, and outside of all others: plain kernels of 17 random programs were
//           0.4 to 168 times as slow as those of C, 4 times at the median
//   needs   items that do not wait for each other

#include "kir/passes.h"

enum { TASKS = 256, LONG = 32, BLOCK_LEAST = 256, BLOCK = 1024 };

typedef struct {
    Kernel *kernel;
    ArithCtx *ctx;
    Arena *arena;
    int names;
    VEC(Stm *) loops; // that are shared out
} TaskSharing;

static bool is_shared_out(const Stm *stm, const void *none)
{
    return stm->kind == ST_FOR && stm->loop != LOOP_SEQ;
}

static bool is_of_items(const Stm *stm, const void *none)
{
    return is_shared_out(stm, NULL) || (stm->kind == ST_FOR && stm->items);
}

// May what stands outside of all loops be evaluated by each task?
static bool is_repeatable(const Block *block)
{
    VEC_EACH(const Stm *, stm, block) {
        const bool part = stm->kind == ST_IF || stm->kind == ST_FOR;
        if (stm->kind == ST_FOR && stm->loop == LOOP_SEQ &&
            block_any(&stm->body, is_shared_out, NULL))
            return false;
        if (!part && stm->kind != ST_BARRIER && stm->kind != ST_INT)
            return false;
        if (stm->kind == ST_IF &&
            (!is_repeatable(&stm->body) || !is_repeatable(&stm->other)))
            return false;
    }
    return true;
}

static void make_sequential(void *arena, Block *to, Stm *stm)
{
    if (stm->kind == ST_BARRIER)
        return;
    if (is_shared_out(stm, NULL)) {
        stm->loop = LOOP_SEQ;
        stm->form = FORM_LOOP;
        stm->items = true;
    }
    VEC_PUSH(arena, to, stm);
}

// The loop in a nest of nothing but loops to share out: the outermost that is long.
static Stm *choose_loop(Stm *outer)
{
    Stm *chosen = outer;
    int64_t longest = -1;
    for (Stm *loop = outer; longest < LONG && stm_is_parallel(loop, NULL);
         loop = loop->body.at[0]) {
        int64_t extent = LONG;
        arith_is_const(loop->extent, &extent);
        if (extent > longest) {
            chosen = loop;
            longest = extent;
        }
        if (loop->body.len != 1)
            break;
    }
    return chosen;
}

// Items of a task: lanes are many, others have more to do.
static int64_t block_size(const Stm *loop)
{
    int64_t extent, least = loop->simd ? BLOCK_LEAST : 1;
    if (!arith_is_const(loop->extent, &extent))
        return loop->simd ? BLOCK : BLOCK / LONG;
    return MAX((extent + TASKS - 1) / TASKS + least - 1, least) / least * least;
}

// The iterations of a loop without others to share out go in blocks.
static void divide(TaskSharing *t, Stm *loop, int64_t size)
{
    const char *block = name_fresh(t->arena, t->kernel, "task", &t->names);
    const Division d = loop_divided(t->ctx, loop, size, block, loop->iter->name);
    Stm inner = *loop;
    inner.iter = d.iter;
    inner.extent = d.extent;
    inner.body = block_moved(t->ctx, t->arena, &loop->body, loop->iter, d.index);
    loop->iter = d.block;
    loop->extent = d.blocks;
    loop->simd = false;
    loop->body = (Block){0};
    block_add(t->arena, &loop->body, inner);
}

// What has few items is for one task.
static Stm *for_one(TaskSharing *t, Stm *stm)
{
    const char *name = name_fresh(t->arena, t->kernel, "task", &t->names);
    const Arith *zero = arith_const(t->ctx, 0), *last = arith_const(t->ctx, TASKS - 1);
    Stm one = {.kind = ST_FOR,
               .loop = LOOP_GLB,
               .iter = arith_var(t->ctx, name, zero, last),
               .extent = arith_const(t->ctx, 1)};
    VEC_PUSH(t->arena, &one.body, stm);
    block_map(t->arena, &one.body, make_sequential, t->arena);
    Stm *made = arena_copy(t->arena, &one, sizeof one);
    VEC_PUSH(t->arena, &t->loops, made);
    return made;
}

static Stm *share_out(TaskSharing *t, Stm *outer)
{
    Stm *loop = choose_loop(outer);
    int64_t size = block_any(&loop->body, is_of_items, NULL) ? 1 : block_size(loop);
    if (arith_most(loop->extent) <= size)
        return for_one(t, outer);
    if (size > 1)
        divide(t, loop, size);
    block_map(t->arena, &outer->body, make_sequential, t->arena);
    if (outer != loop) {
        outer->loop = LOOP_SEQ;
        outer->items = true;
    }
    loop->loop = LOOP_GLB;
    loop->items = false;
    loop->dim = 0;
    VEC_PUSH(t->arena, &t->loops, loop);
    return outer;
}

static void share_out_block(TaskSharing *t, Block *block)
{
    Block out = {0};
    VEC_EACH(Stm *, stm, block) {
        if (stm->kind == ST_BARRIER)
            continue;
        if (stm->kind == ST_IF) {
            share_out_block(t, &stm->body);
            share_out_block(t, &stm->other);
        }
        Stm *made = stm_is_parallel(stm, NULL) ? share_out(t, stm)
                    : stm->kind == ST_FOR      ? for_one(t, stm)
                                               : stm;
        VEC_PUSH(t->arena, &out, made);
    }
    *block = out;
}

// So many as there is work for. Returns their number.
static const Arith *launch(TaskSharing *t)
{
    int64_t most = 1;
    VEC_EACH(const Stm *, loop, &t->loops) {
        int64_t extent = TASKS;
        arith_is_const(loop->extent, &extent);
        most = MAX(most, MIN(extent, TASKS));
    }
    const Arith *tasks = arith_const(t->ctx, most);
    VEC_EACH(Stm *, loop, &t->loops) {
        int64_t extent = TASKS + 1;
        arith_is_const(loop->extent, &extent);
        loop->threads = tasks;
        loop->form = extent == most ? FORM_ONCE : extent < most ? FORM_GUARD : FORM_LOOP;
    }
    return tasks;
}

bool kernel_has_tasks(const Kernel *kernel)
{
    return !kernel->any_group && !kernel_needs_threads(kernel) &&
           !block_any(&kernel->body, stm_exchanges, NULL) && is_repeatable(&kernel->body);
}

void pass_tasks(Pass *pass, Kernel *kernel)
{
    TaskSharing t = {.kernel = kernel, .ctx = pass->ctx, .arena = pass->arena};
    share_out_block(&t, &kernel->body);
    for (int d = 0; d < 3; d++) {
        kernel->local[d] = 1;
        kernel->global[d] = arith_const(t.ctx, 1);
    }
    kernel->global[0] = launch(&t);
}
