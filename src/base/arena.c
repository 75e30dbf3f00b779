// SPDX-License-Identifier: Apache-2.0
//
// Bump allocation in a chain of blocks. A reset keeps the blocks for the next
// candidate, so a search over many candidates reaches a steady size.
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

typedef struct ArenaBlock ArenaBlock;
struct ArenaBlock {
    ArenaBlock *next;
    size_t size, used;
    _Alignas(max_align_t) char bytes[];
};

struct Arena {
    ArenaBlock *first, *last;
    SharedBlock *shared; // the last of them
};

enum { BLOCK_BYTES = 32 * 1024, SHARED_LEAST = 1 << 20 };

void out_of_memory(size_t size)
{
    fputs("forewarp: out of memory", stderr);
    if (size)
        fprintf(stderr, " (asked for %zu bytes)", size);
    fputs("\n", stderr);
    exit(1);
}

void arena_free_local(Arena **arena)
{
    arena_free(*arena);
}

void free_local(void *pointer)
{
    void *held;
    memcpy(&held, pointer, sizeof held);
    free(held);
}

void *xmalloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    if (!p)
        out_of_memory(size);
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        out_of_memory(n * size);
    return p;
}

void *xrealloc(void *p, size_t size)
{
    void *q = realloc(p, size ? size : 1);
    if (!q)
        out_of_memory(size);
    return q;
}

char *xstrdup(const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(xmalloc(n), text, n);
}

static ArenaBlock *block_new(size_t size)
{
    ArenaBlock *block = xmalloc(sizeof(ArenaBlock) + size);
    block->next = NULL;
    block->size = size;
    block->used = 0;
    return block;
}

Arena *arena_new(void)
{
    Arena *arena = xmalloc(sizeof *arena);
    arena->first = arena->last = block_new(BLOCK_BYTES - sizeof(ArenaBlock));
    arena->shared = NULL;
    return arena;
}

void arena_free(Arena *arena)
{
    if (!arena)
        return;
    while (arena->shared)
        arena->shared = shared_free(arena->shared);
    for (ArenaBlock *block = arena->first, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free(arena);
}

// The next kept block if it is large enough, else a new one put before it.
static ArenaBlock *next_block(ArenaBlock *last, size_t size)
{
    if (last->next && last->next->size >= size) {
        last->next->used = 0;
        return last->next;
    }
    ArenaBlock *block = block_new(MAX(size, BLOCK_BYTES - sizeof(ArenaBlock)));
    block->next = last->next;
    last->next = block;
    return block;
}

void *arena_raw(Arena *arena, size_t size)
{
    ArenaBlock *last = arena->last;
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (last->size - last->used < size)
        last = arena->last = next_block(last, size);
    void *p = last->bytes + last->used;
    last->used += size;
    return p;
}

void *arena_shared(Arena *arena, size_t size)
{
    SharedBlock *made = size < SHARED_LEAST ? NULL : shared_new(size, arena->shared);
    if (!made)
        return arena_raw(arena, size);
    arena->shared = made;
    return shared_at(made);
}

void *arena_alloc(Arena *arena, size_t size)
{
    return memset(arena_raw(arena, size), 0, size);
}

void *arena_copy(Arena *arena, const void *from, size_t size)
{
    void *copy = arena_raw(arena, size);
    return size ? memcpy(copy, from, size) : copy;
}

char *arena_strndup(Arena *arena, const char *text, size_t len)
{
    return memcpy(arena_alloc(arena, len + 1), text, len);
}

char *arena_strdup(Arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_vprintf(Arena *arena, const char *format, va_list args)
{
    Buf text = buf_new();
    buf_vprintf(&text, format, args);
    return buf_keep(&text, arena);
}

char *arena_printf(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

ArenaMark arena_mark(const Arena *arena)
{
    return (ArenaMark){arena->last, arena->last->used, arena->shared};
}

void arena_reset(Arena *arena, ArenaMark mark)
{
    arena->last = mark.block;
    arena->last->used = mark.used;
    while (arena->shared != mark.shared)
        arena->shared = shared_free(arena->shared);
}

void *vec_grow(Arena *arena, void *at, size_t item, int len, int *cap)
{
    *cap = *cap ? 2 * *cap : 8;
    if (!arena)
        return xrealloc(at, item * (size_t)*cap);
    void *grown = arena_raw(arena, item * (size_t)*cap);
    if (len)
        memcpy(grown, at, item * (size_t)len);
    return grown;
}
