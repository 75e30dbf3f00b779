// SPDX-License-Identifier: Apache-2.0
//
// Checks a kernel, and sums up the memory it declares.
//
//   method  one walk with a scoped table of what is declared. A value is divergent if it
//           may differ between the items of a group: it mentions an item's number or
//           something loaded. Under a divergent condition, in a loop of divergent length,
//           or where some items run a loop over threads more often than others, no barrier
//           may stand.
//
// Targets without work-items run a loop over threads to its end before what follows, so
// that nothing an item keeps in a variable or a private array may outlive such a loop. An
// access records where the front end put it (guard.c). It must stand on the same sides of
// the same conditions, or the conditions around it must imply those that it has left, or
// its index must be within the buffer. An index that is never within its buffer is refused,
// too.

#include "kir/passes.h"

enum { HAVE_UNIFORM, HAVE_DIVERGENT };

// How a variable or a private array is used by loops over threads opened after it.
typedef struct {
    int depth;       // loops open at the declaration
    const Stm *loop; // the first such loop that uses it
    bool outside;    // used outside such loops, or by another
    bool written;    // in such a loop
    bool repeated;   // that loop is inside a sequential loop
} VarUse;

typedef struct {
    ArithCtx *ctx;
    const Kernel *kernel;
    Diags *diags;
    Table names; // declared things; value: HAVE_..., or for variables an index
    VEC(const Stm *) loops;
    VEC(VarUse) lives;
    VEC(const Side *) sides;  // open ones
    VEC(const KExpr *) conds; // that hold here
    Arena *arena;
    const char *divergent; // why no barrier may stand here, or NULL
    bool ok, ranges;       // ranges: those of indices are checked too
} Verifier;

enum { LOOPS_MOST = 32 }; // as many sequential loops around an access are looked at

// Scopes ------------------------------------------------------------------------------

static Key key_of(const void *p)
{
    return (Key){p, NULL, NULL};
}

static void declare(Verifier *c, const void *p, int value)
{
    table_push(&c->names, key_of(p), value);
}

static void fail(Verifier *c, const char *code, const char *what, const char *name)
{
    c->ok = diag_error(c->diags, span_none, code, "kernel %s: %s: %s", c->kernel->name,
                       name, what);
}

// Lives are kept in the same table under the variable's address plus a tag.
static const int life_tag;

static void begin_life(Verifier *c, const void *p, bool set)
{
    VarUse life = {.depth = c->loops.len, .outside = set};
    table_push(&c->names, (Key){p, &life_tag, NULL}, c->lives.len);
    VEC_PUSH(c->arena, &c->lives, life);
}

static void use_life(Verifier *c, const void *p, bool write, const char *name)
{
    int entry = table_find(&c->names, (Key){p, &life_tag, NULL});
    if (entry < 0)
        return;
    VarUse *life = &c->lives.at[c->names.entry.at[entry].value];
    const Stm *loop = NULL;
    bool repeated = false;
    for (int i = life->depth; i < c->loops.len && !loop; i++) {
        repeated |= c->loops.at[i]->loop == LOOP_SEQ;
        if (c->loops.at[i]->loop != LOOP_SEQ)
            loop = c->loops.at[i];
    }
    life->outside |=
        !loop || (life->loop && life->loop != loop) || (loop->loop != LOOP_LCL && write);
    life->loop = loop ? loop : life->loop;
    bool was_bad = life->written && (life->outside || life->repeated);
    life->repeated |= loop && repeated;
    life->written |= loop && write;
    if (!was_bad && life->written && (life->outside || life->repeated))
        fail(c, "L106", "a value of an item outlives a loop over items", name);
}

// Integers ----------------------------------------------------------------------------

// Every variable of a is in scope; says whether one of them is divergent.
static bool check_arith(Verifier *c, const Arith *a)
{
    bool divergent = false;
    if (a->kind == A_VAR) {
        int entry = table_find(&c->names, key_of(a));
        if (entry < 0)
            fail(c, "L101", "used outside the loop or block that declares it", a->name);
        return entry >= 0 && c->names.entry.at[entry].value == HAVE_DIVERGENT;
    }
    for (int i = 0; i < a->n; i++)
        divergent |= check_arith(c, a->term[i].arg);
    return divergent;
}

// Sides -------------------------------------------------------------------------------

typedef struct {
    int sides, conds;
} VerifyScope;

// Goes to where a condition holds or does not; side: as the front end has it, or NULL.
static VerifyScope open_scope(Verifier *c, const Side *side, const KExpr *cond, bool holds)
{
    VerifyScope outer = {c->sides.len, c->conds.len};
    if (side)
        VEC_PUSH(c->arena, &c->sides, side);
    if (holds && cond->kind == K_COND)
        VEC_PUSH(c->arena, &c->conds, cond);
    return outer;
}

static void close_scope(Verifier *c, VerifyScope outer)
{
    c->sides.len = outer.sides;
    c->conds.len = outer.conds;
}

static bool is_open(const Verifier *c, const Side *side)
{
    for (int i = c->sides.len - 1; i >= 0; i--)
        if (c->sides.at[i] == side)
            return true;
    return false;
}

// Is it at least 0 in each iteration of the loops around, by all that is known here?
static bool is_nonneg(Verifier *c, const Arith *a)
{
    const Arith *iter[LOOPS_MOST];
    int n = 0;
    for (int i = 0; i < c->loops.len && n < LOOPS_MOST; i++)
        if (c->loops.at[i]->loop == LOOP_SEQ)
            iter[n++] = c->loops.at[i]->iter;
    if (arith_nonneg(c->ctx, a))
        return true;
    const Arith *least = n ? arith_lower_bound(c->ctx, a, iter, n) : NULL;
    return least && arith_nonneg(c->ctx, least);
}

static bool is_implied(Verifier *c, const Side *side)
{
    const KExpr *cond = side->cond;
    if (cond->kind != K_COND || (!side->holds && cond->n > 1))
        return false;
    for (int i = 0; i < cond->n; i++) {
        const Arith *not = arith_addc(c->ctx, arith_mulc(c->ctx, cond->cond[i], -1), -1);
        if (!is_nonneg(c, side->holds ? cond->cond[i] : not ))
            return false;
    }
    return true;
}

// Is the access within its buffer, by all that is known here?
static bool is_within(Verifier *c, const Buffer *buffer, const Arith *index,
                      const Type *type)
{
    int width = type->kind == T_VECTOR ? type->width : 1;
    const Arith *last = arith_addc(c->ctx, buffer->count, -width);
    return arith_nonneg(c->ctx, index) && arith_le(c->ctx, index, last);
}

static bool left_none(const Verifier *c, const Side *side)
{
    while (side && is_open(c, side))
        side = side->outer;
    return !side;
}

// Has the access left no side that it needs?
static bool is_guarded(Verifier *c, const Side *side, const Buffer *buffer,
                       const Arith *index, const Type *type)
{
    if (left_none(c, side))
        return true;
    int facts = arith_facts(c->ctx);
    for (int i = 0; i < c->conds.len; i++)
        for (int k = 0; k < c->conds.at[i]->n; k++)
            arith_assume(c->ctx, c->conds.at[i]->cond[k]);
    while (side && (is_open(c, side) || is_implied(c, side)))
        side = side->outer;
    bool right = !side || is_within(c, buffer, index, type);
    arith_facts_reset(c->ctx, facts);
    return right;
}

static void check_range(Verifier *c, const Buffer *buffer, const Arith *index,
                        const Type *type)
{
    int64_t lo, hi, least, most;
    arith_range(c->ctx, index, &lo, &hi);
    arith_range(c->ctx, buffer->count, &least, &most);
    int width = type->kind == T_VECTOR ? type->width : 1;
    if (hi < 0 || (most != INT64_MAX && lo > most - width))
        fail(c, "L105", "an index that is always out of bounds", buffer->name);
}

// An access to a buffer, by a load or a store.
static void check_access(Verifier *c, const Buffer *buffer, const Arith *index,
                         const Type *type, const Side *side, bool write)
{
    if (table_find(&c->names, key_of(buffer)) < 0)
        fail(c, "L102", "a buffer used before its declaration", buffer->name);
    check_arith(c, index);
    if (!is_guarded(c, side, buffer, index, type))
        fail(c, "L109", "an access left the condition it is under", buffer->name);
    // Under a condition it may be one that no work-item of these sizes meets.
    if (c->ranges && !side && !c->sides.len && !c->conds.len)
        check_range(c, buffer, index, type);
    if (buffer->space == MEM_PRIVATE)
        use_life(c, buffer, write, buffer->name);
}

// Values ------------------------------------------------------------------------------

// The type of the words in which groups tell each other numbers.
static const Type word = {.kind = T_SCALAR, .scalar = S_LONG};

static bool check_value(Verifier *c, const KExpr *e);

static bool check_variable(Verifier *c, const Var *var)
{
    int entry = table_find(&c->names, key_of(var));
    if (entry < 0)
        fail(c, "L102", "a variable used before its declaration", var->name);
    use_life(c, var, false, var->name);
    return entry < 0 || c->names.entry.at[entry].value == HAVE_DIVERGENT;
}

static void check_load(Verifier *c, const KExpr *e)
{
    check_access(c, e->buffer, e->arith, e->type, e->side, false);
}

static bool check_args(Verifier *c, const KExpr *e)
{
    bool divergent = false;
    for (int i = 0; i < e->n; i++) {
        const Side *side = kexpr_side(e, i);
        VerifyScope outer = open_scope(c, side, e->arg[0], side && side->holds);
        divergent |= check_value(c, e->arg[i]);
        close_scope(c, outer);
    }
    return divergent;
}

// Checks a value; true if it is divergent.
static bool check_value(Verifier *c, const KExpr *e)
{
    bool divergent = false;
    switch (e->kind) {
    case K_LITERAL: return false;
    case K_INDEX: return check_arith(c, e->arith);
    case K_VAR: return check_variable(c, e->var);
    case K_LOAD: check_load(c, e); return true;
    case K_TILE: check_access(c, e->buffer, e->arith, e->type, NULL, false); return true;
    case K_AWAIT: check_access(c, e->buffer, e->arith, &word, NULL, false); return true;
    case K_SHUFFLE:
        check_arith(c, e->arith);
        check_value(c, e->arg[0]);
        return true;
    case K_COND:
        for (int i = 0; i < e->n; i++)
            divergent |= check_arith(c, e->cond[i]);
        return divergent;
    case K_OP:
    case K_CALL:
    case K_VECTOR:
    case K_MATRIX:
    case K_LANE: return check_args(c, e);
    }
    BUG("value of kind %d", e->kind);
}

// Statements --------------------------------------------------------------------------

static void check_block(Verifier *c, const Block *block);

static void check_inner(Verifier *c, const Block *block, const char *divergent)
{
    const char *outer = c->divergent;
    int len = c->names.entry.len;
    if (!outer)
        c->divergent = divergent;
    check_block(c, block);
    c->divergent = outer;
    table_pop(&c->names, len);
}

static bool inside(const Verifier *c, LoopKind kind)
{
    for (int i = 0; i < c->loops.len; i++)
        if (c->loops.at[i]->loop == kind)
            return true;
    return false;
}

static void check_nesting(Verifier *c, const Stm *stm)
{
    const char *name = stm->iter->name;
    for (int i = 0; i < c->loops.len; i++)
        if (c->loops.at[i]->loop == stm->loop && c->loops.at[i]->dim == stm->dim)
            fail(c, "L107", "a loop over threads inside one of the same dimension", name);
    if (stm->loop == LOOP_LCL && !inside(c, LOOP_WRG))
        fail(c, "L107", "a loop over local items outside a loop over groups", name);
    bool other = stm->loop == LOOP_GLB ? inside(c, LOOP_WRG) || inside(c, LOOP_LCL)
                                       : inside(c, LOOP_GLB);
    if (other)
        fail(c, "L107", "loops over global items and over groups mixed", name);
}

static const char *loop_divergence(const Stm *stm, bool extent_divergent)
{
    if (extent_divergent)
        return "in a loop that not all items run equally often";
    if ((stm->loop == LOOP_LCL || stm->loop == LOOP_GLB) && stm->form != FORM_ONCE)
        return "in a loop over items that some items do not run";
    return NULL;
}

static void check_for(Verifier *c, const Stm *stm)
{
    bool extent = check_arith(c, stm->extent);
    extent |= stm->value && check_value(c, stm->value);
    if (stm->loop != LOOP_SEQ)
        check_nesting(c, stm);
    if (stm->loop != LOOP_SEQ && stm->form == FORM_LOOP && !stm->threads)
        fail(c, "L107", "a strided loop over an unknown number of threads",
             stm->iter->name);
    bool item = stm->loop == LOOP_LCL || stm->loop == LOOP_GLB;
    int len = c->names.entry.len;
    declare(c, stm->iter, item || extent ? HAVE_DIVERGENT : HAVE_UNIFORM);
    VEC_PUSH(c->arena, &c->loops, stm);
    check_inner(c, &stm->body, loop_divergence(stm, extent));
    c->loops.len--;
    table_pop(&c->names, len);
}

static void check_if(Verifier *c, const Stm *stm)
{
    bool divergent = check_value(c, stm->value);
    const char *why = divergent ? "under a condition of an item" : NULL;
    VerifyScope outer = open_scope(c, stm->side ? &stm->side[0] : NULL, stm->value, true);
    check_inner(c, &stm->body, why);
    close_scope(c, outer);
    open_scope(c, stm->side ? &stm->side[1] : NULL, stm->value, false);
    check_inner(c, &stm->other, why);
    close_scope(c, outer);
}

static void check_decl(Verifier *c, const Stm *stm)
{
    bool divergent = stm->value && check_value(c, stm->value);
    bool uniform = stm->var->is_const && !divergent;
    declare(c, stm->var, uniform ? HAVE_UNIFORM : HAVE_DIVERGENT);
    if (!stm->var->is_const)
        begin_life(c, stm->var, stm->value != NULL);
}

static void check_assign(Verifier *c, const Stm *stm)
{
    check_value(c, stm->value);
    if (table_find(&c->names, key_of(stm->var)) < 0)
        fail(c, "L102", "a variable used before its declaration", stm->var->name);
    if (stm->var->is_const)
        fail(c, "L103", "a constant assigned to", stm->var->name);
    use_life(c, stm->var, true, stm->var->name);
}

static void check_array(Verifier *c, const Buffer *buffer)
{
    if (!arith_is_const(buffer->count, NULL))
        fail(c, "L108", "a private or local array without a constant size", buffer->name);
}

static void check_stm(Verifier *c, const Stm *stm)
{
    bool divergent;
    switch (stm->kind) {
    case ST_DECL: check_decl(c, stm); return;
    case ST_ASSIGN: check_assign(c, stm); return;
    case ST_STORE:
        check_value(c, stm->value);
        check_access(c, stm->buffer, stm->index, stm->value->type, stm->side, true);
        if (stm->buffer->space == MEM_GLOBAL && stm->buffer->role == ROLE_INPUT)
            fail(c, "L103", "a store to an input", stm->buffer->name);
        return;
    case ST_PUBLISH:
        check_value(c, stm->value);
        check_access(c, stm->buffer, stm->index, &word, NULL, true);
        return;
    case ST_MATRIX:
        check_value(c, stm->value);
        check_access(c, stm->buffer, stm->index, stm->value->type, NULL, true);
        if (c->divergent)
            fail(c, "L104", c->divergent, "what a warp does together");
        return;
    case ST_ARRAY:
        check_array(c, stm->buffer);
        declare(c, stm->buffer, HAVE_DIVERGENT);
        begin_life(c, stm->buffer, false);
        return;
    case ST_INT:
        divergent = stm->value ? check_value(c, stm->value) : check_arith(c, stm->index);
        declare(c, stm->iter, divergent ? HAVE_DIVERGENT : HAVE_UNIFORM);
        return;
    case ST_FOR: check_for(c, stm); return;
    case ST_IF: check_if(c, stm); return;
    case ST_BARRIER:
        if (c->divergent)
            fail(c, "L104", c->divergent, "barrier");
        return;
    case ST_COMMIT:
    case ST_WAIT: return;
    }
    BUG("statement of kind %d", stm->kind);
}

static void check_block(Verifier *c, const Block *block)
{
    for (int i = 0; i < block->len; i++)
        check_stm(c, block->at[i]);
}

static bool check_kernel(ArithCtx *ctx, const Kernel *kernel, bool ranges, Diags *diags)
{
    AutoArena *arena = arena_new();
    Verifier c = {.ctx = ctx, .kernel = kernel, .diags = diags, .arena = arena, .ok = true};
    c.ranges = ranges;
    table_init(&c.names, arena);
    for (int i = 0; i < kernel->params.len; i++)
        declare(&c, kernel->params.at[i], HAVE_UNIFORM);
    for (int i = 0; i < kernel->sizes.len; i++)
        declare(&c, kernel->sizes.at[i], HAVE_UNIFORM);
    for (int i = 0; i < kernel->locals.len; i++) {
        check_array(&c, kernel->locals.at[i]);
        declare(&c, kernel->locals.at[i], HAVE_UNIFORM);
    }
    check_block(&c, &kernel->body);
    return c.ok;
}

bool kernel_verify(ArithCtx *ctx, const Kernel *kernel, Diags *diags)
{
    return check_kernel(ctx, kernel, true, diags);
}

bool kernel_verify_pass(ArithCtx *ctx, const Kernel *kernel, Diags *diags)
{
    return check_kernel(ctx, kernel, false, diags);
}

// Memory ------------------------------------------------------------------------------

static int64_t buffer_bytes(const Buffer *buffer)
{
    int64_t count;
    if (!arith_is_const(buffer->count, &count))
        return INT64_MAX / 2;
    return count * scalar_info[buffer->scalar].bytes;
}

int64_t kernel_local_bytes(const Kernel *kernel)
{
    int64_t bytes = 0;
    for (int i = 0; i < kernel->locals.len; i++)
        bytes += MIN(buffer_bytes(kernel->locals.at[i]), INT64_MAX / 2 - bytes);
    return bytes;
}

static void add_private(Stm *stm, void *user)
{
    int64_t *bytes = user;
    if (stm->kind == ST_ARRAY)
        *bytes += MIN(buffer_bytes(stm->buffer), INT64_MAX / 2 - *bytes);
}

int64_t kernel_private_bytes(const Kernel *kernel)
{
    int64_t bytes = 0;
    block_each(&kernel->body, add_private, &bytes);
    return bytes;
}

static bool waits_inside(const Block *block, bool inside)
{
    VEC_EACH(const Stm *, stm, block) {
        bool item = stm->kind == ST_FOR && stm->loop == LOOP_LCL;
        if ((stm->kind == ST_BARRIER && inside) ||
            waits_inside(&stm->body, inside || item) || waits_inside(&stm->other, inside))
            return true;
    }
    return false;
}

bool kernel_needs_threads(const Kernel *kernel)
{
    return waits_inside(&kernel->body, false);
}
