// SPDX-License-Identifier: Apache-2.0
//
// Names the variable part of indices: a[4096*y + x - 1], a[4096*y + x + 1] become a[i0 -
// 1], a[i0 + 1] after `const int i0 = 4096*y + x`.
//
//   method  The index without its constant is the key; it belongs to the innermost block
//           that declares one of its variables. The same walk is made twice, to count the
//           accesses of each key and then to rewrite; a key with at least two accesses is
//           declared at the start of its block (after the integers it mentions), or of the
//           branch that has all of them. A key that is a constant or a variable already is
//           left alone.
//
// The new variable has the constant bounds of what it stands for; what else is known of it
// is lost, so this is the last pass. Conditions are not touched, nor are indices as values.

#include "kir/passes.h"

#include <string.h>

typedef struct {
    const Arith *part;
    const Arith *var; // in the second walk, if it has a name
    int uses;
    int home; // depth of the innermost block that has all of them, and is in no inner loop
    const int *path; // the blocks down to there
} Entry;

// An open block: the keys that belong to it (value: number of the entry), and the
// declarations to be inserted.
typedef struct {
    Table keys;
    VEC(Stm *) made;
    int number; // of blocks opened before
    bool loop;
} OpenBlock;

typedef struct {
    Pass *pass;
    Arena *arena; // of this pass
    bool rewriting;
    Table scope;      // variables, value: depth of the block; sizes are not in it
    OpenBlock *level; // by depth
    int depth, nlevel, blocks;
    VEC(Entry) entries;
    int next; // entries opened so far in this walk
    Kernel *kernel;
    int names;
} Indices;

// Entries -----------------------------------------------------------------------------

// The depth of the innermost block that declares a variable of a; 0 if none does.
static int depth_of(const Indices *x, const Arith *a)
{
    int depth = 0;
    if (a->kind == A_VAR) {
        int entry = table_find(&x->scope, (Key){a, NULL, NULL});
        return entry < 0 ? 0 : x->scope.entry.at[entry].value;
    }
    for (int i = 0; i < a->n; i++) {
        int below = depth_of(x, a->term[i].arg);
        depth = MAX(depth, below);
    }
    return depth;
}

static const Arith *new_variable(Indices *x, const Arith *part)
{
    ArithCtx *ctx = x->pass->ctx;
    int64_t lo, hi;
    arith_range(ctx, part, &lo, &hi);
    const Arith *least = lo == INT64_MIN ? NULL : arith_const(ctx, lo);
    // A variable of one value would be that number, which cannot be declared.
    const Arith *most = hi == INT64_MAX ? NULL : arith_const(ctx, lo == hi ? hi + 1 : hi);
    return arith_var(ctx, name_fresh(x->pass->arena, x->kernel, "i", &x->names), least,
                     most);
}

// The open blocks by number, from the outermost one.
static const int *open_blocks(Indices *x)
{
    int *path = NEW_ARRAY(x->arena, int, x->depth + 1);
    for (int d = 0; d <= x->depth; d++)
        path[d] = x->level[d].number;
    return path;
}

// A use here, of a key that belongs to the block of that depth.
static void note_use(Indices *x, Entry *entry, int depth)
{
    if (entry->uses++ == 0) {
        entry->path = open_blocks(x);
        for (entry->home = depth; entry->home < x->depth; entry->home++)
            if (x->level[entry->home + 1].loop)
                break;
    }
    entry->home = MIN(entry->home, x->depth);
    while (entry->home > depth && entry->path[entry->home] != x->level[entry->home].number)
        entry->home--;
}

static Entry *entry_of(Indices *x, const Arith *part)
{
    int depth = depth_of(x, part);
    Key key = {part, NULL, NULL};
    Table *keys = &x->level[depth].keys;
    int i = table_find(keys, key);
    if (i < 0 && !x->rewriting) {
        VEC_PUSH(x->arena, &x->entries, (Entry){.part = part});
    }
    if (i < 0)
        table_push(keys, key, x->next);
    Entry *entry = &x->entries.at[i < 0 ? x->next++ : keys->entry.at[i].value];
    if (!x->rewriting)
        note_use(x, entry, depth);
    else if (i < 0 && entry->uses > 1) {
        entry->var = new_variable(x, entry->part);
        VEC_PUSH(x->arena, &x->level[entry->home].made,
                 NEW_OF(x->pass->arena, Stm, .kind = ST_INT, .iter = entry->var,
                        .index = entry->part));
    }
    return entry;
}

static const Arith *visit_index(Indices *x, const Arith *index)
{
    int64_t c = index->kind == A_SUM ? index->value : 0;
    const Arith *part = c ? arith_addc(x->pass->ctx, index, -c) : index;
    if (part->kind == A_CONST || part->kind == A_VAR)
        return index;
    const Entry *entry = entry_of(x, part);
    return entry->var ? arith_addc(x->pass->ctx, entry->var, c) : index;
}

static const KExpr *visit(void *user, const KExpr *e)
{
    Indices *x = user;
    const KExpr **arg;
    bool access = (e->kind == K_LOAD || e->kind == K_TILE) && !e->buffer->places;
    const Arith *index = access ? visit_index(x, e->arith) : e->arith;
    const KExpr *made = kexpr_map(x->pass->arena, e, visit, x);
    if (index == e->arith)
        return made;
    KExpr *copy = kexpr_copy(x->pass->arena, made, &arg);
    copy->arith = index;
    return copy;
}

// Blocks ------------------------------------------------------------------------------

static void walk_block(Indices *x, Block *block, const Arith *iter);

static void walk_stm(Indices *x, Stm *stm)
{
    const KExpr *value = stm->value ? visit(x, stm->value) : NULL;
    bool store = stm->kind == ST_STORE && !stm->buffer->places;
    const Arith *index = store ? visit_index(x, stm->index) : stm->index;
    if (x->rewriting) {
        stm->value = value;
        stm->index = index;
    }
    if (stm->kind == ST_INT)
        table_push(&x->scope, (Key){stm->iter, NULL, NULL}, x->depth);
    if (stm->body.len)
        walk_block(x, &stm->body, stm->kind == ST_FOR ? stm->iter : NULL);
    if (stm->other.len)
        walk_block(x, &stm->other, NULL);
}

typedef VEC(int) Places;

// Where a declaration goes: after the last integer of the block that it mentions.
static int place_of(const Block *block, const Places *ints, const Stm *decl)
{
    for (int i = ints->len - 1; i >= 0; i--)
        if (arith_mentions(decl->index, block->at[ints->at[i]]->iter))
            return ints->at[i] + 1;
    return 0;
}

static void insert_made(Indices *x, Block *block)
{
    const OpenBlock *level = &x->level[x->depth];
    Block out = {0};
    Places ints = {0};
    if (!level->made.len)
        return;
    for (int i = 0; i < block->len; i++)
        if (block->at[i]->kind == ST_INT)
            VEC_PUSH(x->arena, &ints, i);
    // By place the first declaration there; by declaration the next one at its place,
    // from 1.
    int *first = NEW_ARRAY(x->arena, int, block->len + 1);
    int *next = NEW_ARRAY(x->arena, int, level->made.len + 1);
    for (int j = level->made.len; j > 0; j--) {
        int place = place_of(block, &ints, level->made.at[j - 1]);
        next[j] = first[place];
        first[place] = j;
    }
    for (int i = 0; i <= block->len; i++) {
        for (int j = first[i]; j; j = next[j])
            VEC_PUSH(x->pass->arena, &out, level->made.at[j - 1]);
        if (i < block->len)
            VEC_PUSH(x->pass->arena, &out, block->at[i]);
    }
    *block = out;
}

static void open_level(Indices *x)
{
    if (++x->depth < x->nlevel)
        return;
    int n = MAX(8, 2 * x->nlevel);
    OpenBlock *grown = NEW_ARRAY(x->arena, OpenBlock, n);
    if (x->nlevel)
        memcpy(grown, x->level, sizeof *grown * (size_t)x->nlevel);
    for (int i = x->nlevel; i < n; i++)
        table_init(&grown[i].keys, x->arena);
    x->level = grown;
    x->nlevel = n;
}

static void walk_block(Indices *x, Block *block, const Arith *iter)
{
    int len = x->scope.entry.len;
    open_level(x);
    x->level[x->depth].number = x->blocks++;
    x->level[x->depth].loop = iter != NULL;
    if (iter)
        table_push(&x->scope, (Key){iter, NULL, NULL}, x->depth);
    for (int i = 0; i < block->len; i++)
        walk_stm(x, block->at[i]);
    insert_made(x, block);
    table_pop(&x->scope, len);
    table_pop(&x->level[x->depth].keys, 0);
    x->level[x->depth].made.len = 0;
    x->depth--;
}

void pass_indices(Pass *pass, Kernel *kernel)
{
    Indices x = {.pass = pass, .arena = arena_new(), .depth = -1};
    table_init(&x.scope, x.arena);
    x.kernel = kernel;
    walk_block(&x, &kernel->body, NULL);
    x.rewriting = true;
    x.next = x.blocks = 0;
    walk_block(&x, &kernel->body, NULL);
    arena_free(x.arena);
}
