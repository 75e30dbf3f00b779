// SPDX-License-Identifier: Apache-2.0
//
// Interchange: a target whose items are a loop goes over neighbouring items inside the
// sequential loops that all of them have in common, not outside of these.
//
//   method  The body of a loop over items is divided at each such loop: what stands before
//           it, in it and after it gets a loop over the items of its own. A variable that
//           more than one of these needs becomes an array with an element for each item.
//   why     sums of 16384 columns of 4096 floats: 276 ms where each item goes down its own
//           column, 10 ms where 256 items take each row together (gcc 12, two cores)
//   needs   items that do not wait for each other, and loops of as many iterations for all
//
// It is done where neighbouring items access neighbouring elements, or the same one, and
// items would go through memory in larger steps or add up what a compiler may not reorder.
// Each item does the same as before in the same order, so no bit differs.

#include "kir/passes.h"

// NEAR: elements from one item to the next that vectors can still gather.
// STACK_MOST: bytes of arrays for all items, which are on the stack of a thread.
enum {
    NEAR = 4,
    ITERATIONS_LEAST = 17,
    ITEMS_LEAST = 16,
    CHUNKS = 16,
    GROUP_MOST = 4096,
    STACK_MOST = 1 << 18
};

// In the table: the part that declares a variable, an array or an index; then SHARED, if
// another part needs it.
enum { SHARED = -1 };

typedef struct {
    Kernel *kernel;
    ArithCtx *ctx;
    Arena *arena;
    int64_t local;       // items of a group
    const Stm *items;    // the loop over them
    const Arith *extent; // of the loops over items of a part
    int64_t count;       // its most
    const Arith *lane;   // an item in its part
    Table table;
    VEC(Buffer *) arrays; // of the entries of the table; NULL: none
    int part, parts, lanes, names;
    bool inside; // other loops that are shared out are around
    bool ok;
} Interchange;

// Where it is worth it --------------------------------------------------------------------

typedef struct {
    const Interchange *x;
    const Stm *loop;
    bool gains, loses;
} Strides;

static void note_access(Strides *s, const Buffer *buffer, const Arith *index)
{
    if (buffer->space == MEM_PRIVATE)
        return;
    int64_t across = index_stride(s->x->ctx, index, s->x->items->iter);
    int64_t along = index_stride(s->x->ctx, index, s->loop->iter);
    s->loses |= across < 0 || across > NEAR || (across > 1 && along == 1);
    s->gains |= across == 1 && along != 0 && along != 1;
}

static void note_value(const KExpr *e, void *strides)
{
    if (e->kind == K_LOAD)
        note_access(strides, e->buffer, e->arith);
}

static void note_stm(Stm *stm, void *strides)
{
    Strides *s = strides;
    kexpr_each(stm->value, note_value, s);
    if (stm->kind == ST_STORE)
        note_access(s, stm->buffer, stm->index);
    s->gains |= stm_carries(stm, s->loop);
}

static bool mentions_own(const Interchange *x, const Arith *a)
{
    if (a->kind == A_VAR &&
        (a == x->items->iter || table_find(&x->table, (Key){a, NULL, NULL}) >= 0))
        return true;
    for (int i = 0; i < a->n; i++)
        if (mentions_own(x, a->term[i].arg))
            return true;
    return false;
}

static bool is_common(const Interchange *x, const Stm *stm)
{
    if (stm->kind != ST_FOR || stm->loop != LOOP_SEQ || stm->value ||
        mentions_own(x, stm->extent) ||
        stm_iterations(stm, ITERATIONS_LEAST) < ITERATIONS_LEAST)
        return false;
    Strides s = {.x = x, .loop = stm};
    block_each(&stm->body, note_stm, &s);
    return s.gains && !s.loses;
}

// What parts share ------------------------------------------------------------------------

static void declare(Interchange *x, const void *of)
{
    table_push(&x->table, (Key){of, NULL, NULL}, x->part);
    VEC_PUSH(x->arena, &x->arrays, NULL);
}

static int entry_of(const Interchange *x, const void *of)
{
    return table_find(&x->table, (Key){of, NULL, NULL});
}

static bool is_shared(const Interchange *x, const void *of)
{
    int entry = entry_of(x, of);
    return entry >= 0 && x->table.entry.at[entry].value == SHARED;
}

static void use(Interchange *x, const void *of)
{
    int entry = entry_of(x, of);
    if (entry >= 0 && x->table.entry.at[entry].value != x->part)
        x->table.entry.at[entry].value = SHARED;
}

static void use_index(Interchange *x, const Arith *a)
{
    if (a->kind == A_VAR) {
        use(x, a);
        x->ok &= !is_shared(x, a);
    }
    for (int i = 0; i < a->n; i++)
        use_index(x, a->term[i].arg);
}

static void use_value(const KExpr *e, void *user)
{
    Interchange *x = user;
    x->ok &= e->kind != K_TILE && e->kind != K_MATRIX && e->kind != K_AWAIT &&
             e->kind != K_SHUFFLE;
    if (e->kind == K_VAR)
        use(x, e->var);
    if (e->kind == K_LOAD && e->buffer->space == MEM_PRIVATE) {
        use(x, e->buffer);
        x->ok &= e->type->kind == T_SCALAR;
    }
    if (e->arith)
        use_index(x, e->arith);
    for (int i = 0; e->cond && i < e->n; i++)
        use_index(x, e->cond[i]);
}

static void use_stm(Stm *stm, void *user)
{
    Interchange *x = user;
    static const bool known[] = {
        [ST_DECL] = true, [ST_ASSIGN] = true, [ST_STORE] = true, [ST_ARRAY] = true,
        [ST_INT] = true,  [ST_FOR] = true,    [ST_IF] = true,    [ST_WAIT] = false};
    x->ok &= known[stm->kind] && !stm->atomic;
    kexpr_each(stm->value, use_value, x);
    if (stm->index)
        use_index(x, stm->index);
    if (stm->extent)
        use_index(x, stm->extent);
    if (stm->kind == ST_DECL)
        declare(x, stm->var);
    else if (stm->kind == ST_ARRAY)
        declare(x, stm->buffer);
    else if (stm->kind == ST_INT)
        declare(x, stm->iter);
    else if (stm->var)
        use(x, stm->var);
    else if (stm->kind == ST_STORE && stm->buffer->space == MEM_PRIVATE) {
        use(x, stm->buffer);
        x->ok &= stm->value->type->kind == T_SCALAR;
    }
}

// Returns whether it has a common loop.
static bool find_parts(Interchange *x, const Block *block)
{
    bool found = false;
    VEC_EACH(Stm *, stm, block) {
        if (!is_common(x, stm)) {
            stm_each(stm, use_stm, x);
            continue;
        }
        found = true;
        x->part++;
        find_parts(x, &stm->body);
        x->part++;
    }
    return found;
}

static bool can_have_array(const Stm *stm)
{
    return stm->kind == ST_ARRAY
               ? !stm->buffer->items && arith_is_const(stm->buffer->count, NULL)
               : stm->var->type->kind == T_SCALAR && stm->var->type->scalar != S_BOOL;
}

static const void *shared_by(const Interchange *x, const Stm *stm)
{
    const void *of = stm->kind == ST_ARRAY ? (const void *)stm->buffer : stm->var;
    return (stm->kind == ST_DECL || stm->kind == ST_ARRAY) && is_shared(x, of) ? of : NULL;
}

static Scalar scalar_of(const Stm *stm)
{
    return stm->kind == ST_ARRAY ? stm->buffer->scalar : stm->var->type->scalar;
}

static int64_t elements_of(const Stm *stm)
{
    int64_t each = 1;
    if (stm->kind == ST_ARRAY)
        arith_is_const(stm->buffer->count, &each);
    return each;
}

// What an item has in arrays; sets ok to whether all of it can be.
static int64_t bytes_an_item(Interchange *x, const Block *block)
{
    int64_t bytes = 0;
    VEC_EACH(const Stm *, stm, block) {
        if (shared_by(x, stm)) {
            x->ok &= can_have_array(stm);
            bytes += x->ok ? elements_of(stm) * scalar_info[scalar_of(stm)].bytes : 0;
        }
        bytes += bytes_an_item(x, &stm->body) + bytes_an_item(x, &stm->other);
    }
    return bytes;
}

// Declares an array for each variable that parts share, with an element for each item.
static void add_arrays(Interchange *x, const Block *block, Block *to)
{
    VEC_EACH(const Stm *, stm, block) {
        const void *of = shared_by(x, stm);
        if (of) {
            Buffer *array = NEW_OF(
                x->arena, Buffer, .name = name_fresh(x->arena, x->kernel, "all", &x->names),
                .space = MEM_PRIVATE, .scalar = scalar_of(stm), .role = ROLE_TEMP,
                .count = arith_const(x->ctx, elements_of(stm) * x->count));
            x->arrays.at[entry_of(x, of)] = array;
            block_add(x->arena, to, (Stm){.kind = ST_ARRAY, .buffer = array});
        }
        add_arrays(x, &stm->body, to);
    }
}

// Parts -----------------------------------------------------------------------------------

static const Buffer *array_of(const Interchange *x, const void *of)
{
    int entry = of ? entry_of(x, of) : -1;
    return entry >= 0 ? x->arrays.at[entry] : NULL;
}

// Neighbouring items have neighbouring elements.
static const Arith *place_of(const Interchange *x, const Arith *index)
{
    const Arith *row = index ? arith_mulc(x->ctx, index, x->count) : arith_const(x->ctx, 0);
    return arith_add(x->ctx, row, x->lane);
}

static const KExpr *value_in_part(void *user, const KExpr *e)
{
    Interchange *x = user;
    const KExpr *made = kexpr_map(x->arena, e, value_in_part, x);
    const Buffer *array = array_of(x, e->kind == K_VAR ? (const void *)e->var : e->buffer);
    return array ? kexpr_load(x->arena, array, place_of(x, e->arith)) : made;
}

static void add_stm(Interchange *x, Block *to, const Stm *stm)
{
    const bool names = stm->kind == ST_DECL || stm->kind == ST_ASSIGN;
    const Buffer *array = array_of(x, names ? (const void *)stm->var : stm->buffer);
    if (array && (stm->kind == ST_ARRAY || !stm->value)) // it is declared already
        return;
    Stm *made = block_add(x->arena, to, *stm);
    if (stm->value)
        made->value = value_in_part(x, stm->value);
    if (array) {
        made->kind = ST_STORE;
        made->buffer = array;
        made->index = place_of(x, names ? NULL : made->index);
        made->var = NULL;
    }
    made->body = made->other = (Block){0};
    VEC_EACH(const Stm *, inner, &stm->body)
        add_stm(x, &made->body, inner);
    VEC_EACH(const Stm *, inner, &stm->other)
        add_stm(x, &made->other, inner);
}

static void add_parts(Interchange *x, Block *to, const Block *block)
{
    Stm *part = NULL;
    VEC_EACH(const Stm *, stm, block) {
        if (is_common(x, stm)) {
            Stm *loop = block_add(x->arena, to, *stm);
            loop->body = (Block){0};
            add_parts(x, &loop->body, &stm->body);
            part = NULL;
            continue;
        }
        if (!part)
            part = block_add(
                x->arena, to,
                (Stm){.kind = ST_FOR, .iter = x->lane, .extent = x->extent, .items = true});
        add_stm(x, &part->body, stm);
    }
}

// How many items a part has: as a group has; where no other loop is shared out, parts are
// enough for all processors. 0: too few items.
static int64_t items_of(const Interchange *x, const Stm *items)
{
    int64_t least, extent, count = MAX(x->local, ITEMS_LEAST);
    arith_range(x->ctx, items->extent, &least, &extent);
    if (items->loop == LOOP_LCL)
        count = extent <= GROUP_MOST ? extent : 0;
    while (!x->inside && count > ITEMS_LEAST && extent < count * CHUNKS)
        count /= 2;
    count = MIN(count, extent);
    return count < ITEMS_LEAST || (!x->inside && extent == count) ? 0 : count;
}

// Fewer items a part, if their arrays would be too large.
static bool fit_arrays(Interchange *x, const Stm *items)
{
    int64_t bytes = bytes_an_item(x, &items->body);
    while (items->loop != LOOP_LCL && x->count > ITEMS_LEAST &&
           x->count * bytes > STACK_MOST)
        x->count /= 2;
    return x->count * bytes <= STACK_MOST;
}

// All items of a launch are divided into loops over so many. Returns where their statements
// go, and these.
static Block *divide(Interchange *x, Block *to, const Stm *items, Block *body)
{
    const char *part = name_fresh(x->arena, x->kernel, "part", &x->parts);
    const char *lane = name_fresh(x->arena, x->kernel, "lane", &x->lanes);
    const Division d = loop_divided(x->ctx, items, x->count, part, lane);
    x->extent = d.extent;
    x->lane = d.iter;
    *body = block_moved(x->ctx, x->arena, &items->body, items->iter, d.index);
    Stm *outer = block_add(x->arena, to, *items);
    outer->iter = d.block;
    outer->extent = outer->threads = d.blocks;
    outer->body = (Block){0};
    return &outer->body;
}

static bool interchange(void *user, Block *to, const Stm *items, int around)
{
    Interchange *x = user;
    AutoArena *scratch = arena_new();
    x->items = items;
    x->inside = around > 0;
    x->count = items_of(x, items);
    x->part = 0;
    x->ok = true;
    x->arrays.len = 0;
    table_init(&x->table, scratch);
    if (!x->count || !find_parts(x, &items->body) || !fit_arrays(x, items) || !x->ok)
        return false;
    Block out = {0}, *at = &out, body = items->body;
    x->extent = items->extent;
    x->lane = items->iter;
    if (!arith_le(x->ctx, items->extent, arith_const(x->ctx, x->count)))
        at = divide(x, &out, items, &body);
    add_arrays(x, &body, at);
    x->items = &(Stm){.iter = x->lane};
    add_parts(x, at, &body);
    VEC_EACH(Stm *, stm, &out)
        VEC_PUSH(x->arena, to, stm);
    return true;
}

void pass_interchange(Pass *pass, Kernel *kernel)
{
    Interchange x = {.kernel = kernel,
                     .ctx = pass->ctx,
                     .arena = pass->arena,
                     .local = kernel->local[0]};
    block_map_items(x.arena, &kernel->body, interchange, &x);
}
