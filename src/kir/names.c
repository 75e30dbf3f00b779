// SPDX-License-Identifier: Apache-2.0
//
// Names in a kernel: each buffer, variable and loop has one of its own.

#include "kir/passes.h"

static void take_stm(Stm *stm, void *kernel)
{
    if (stm->kind == ST_DECL)
        name_take(kernel, stm->var->name);
    if (stm->kind == ST_ARRAY)
        name_take(kernel, stm->buffer->name);
    if (stm->iter)
        name_take(kernel, stm->iter->name);
}

void name_take(Kernel *kernel, const char *name)
{
    map_put(&kernel->names, name, kernel);
}

// A kernel that the lowering did not make has not said which names it uses.
static void take_kernel(Arena *arena, Kernel *kernel)
{
    kernel->names = (Map){.arena = arena};
    for (int i = 0; i < kernel->params.len; i++)
        name_take(kernel, kernel->params.at[i]->name);
    for (int i = 0; i < kernel->sizes.len; i++)
        name_take(kernel, kernel->sizes.at[i]->name);
    for (int i = 0; i < kernel->locals.len; i++)
        name_take(kernel, kernel->locals.at[i]->name);
    block_each(&kernel->body, take_stm, kernel);
}

const char *name_fresh(Arena *arena, Kernel *kernel, const char *stem, int *next)
{
    if (!kernel->names.arena)
        take_kernel(arena, kernel);
    for (;;) {
        const char *name = arena_printf(arena, "%s%d", stem, (*next)++);
        if (map_get(&kernel->names, name))
            continue;
        name_take(kernel, name);
        return name;
    }
}
