// SPDX-License-Identifier: Apache-2.0
//
// What a kernel uses, read off its statements when they are final: global buffers in order
// of their numbers, generic sizes and numbers of steps, functions, and whether 32-bit
// indices suffice.

#include "kir/passes.h"

typedef struct {
    const Pass *pass;
    Kernel *kernel;
    bool sizes; // there are some
} Collect;

static void use_arith(Collect *c, const Arith *a)
{
    if (!a || !c->sizes)
        return;
    if (a->kind == A_VAR && a->fixed &&
        !list_has(c->kernel->sizes.at, c->kernel->sizes.len, a))
        VEC_PUSH(c->pass->arena, &c->kernel->sizes, a);
    for (int i = 0; i < a->n; i++)
        use_arith(c, a->term[i].arg);
}

// What the positive terms of an index reach together, in whatever order they are added;
// INT64_MAX: not known. More than its buffer holds where a guard keeps items that stick out
// from the access, but not from the sum.
static int64_t index_reach(Collect *c, const Arith *a)
{
    int64_t sum = a->kind == A_SUM ? MAX(a->value, 0) : 0;
    for (int i = 0; i < (a->kind == A_SUM ? a->n : 1); i++) {
        const ArithTerm *t = a->kind == A_SUM ? &a->term[i] : &a->self;
        int64_t lo, hi, most;
        arith_range(c->pass->ctx, t->arg, &lo, &hi);
        int64_t end = t->coef > 0 ? hi : lo;
        if (end == INT64_MIN || end == INT64_MAX ||
            __builtin_mul_overflow(t->coef, end, &most) ||
            __builtin_add_overflow(sum, MAX(most, 0), &sum))
            return INT64_MAX;
    }
    return sum;
}

static void use_index(Collect *c, const Arith *index)
{
    use_arith(c, index);
    int64_t reach = c->pass->options->quick ? 0 : index_reach(c, index);
    c->kernel->wide |= reach > INT32_MAX && reach != INT64_MAX;
}

static void use_buffer(Collect *c, const Buffer *buffer)
{
    Kernel *kernel = c->kernel;
    if (buffer->space != MEM_GLOBAL ||
        list_has(kernel->params.at, kernel->params.len, buffer))
        return;
    VEC_PUSH(c->pass->arena, &kernel->params, (Buffer *)buffer);
    int i = kernel->params.len - 1;
    for (; i > 0 && kernel->params.at[i - 1]->number > buffer->number; i--)
        kernel->params.at[i] = kernel->params.at[i - 1];
    kernel->params.at[i] = (Buffer *)buffer;
    int64_t lo, hi;
    arith_range(c->pass->ctx, buffer->count, &lo, &hi);
    kernel->wide |= hi > INT32_MAX;
}

static void use_value(const KExpr *k, void *user)
{
    Collect *c = user;
    if (k->buffer && k->arith)
        use_index(c, k->arith);
    else
        use_arith(c, k->arith);
    if (k->buffer)
        use_buffer(c, k->buffer);
    if (k->kind == K_CALL && !list_has(c->kernel->funs.at, c->kernel->funs.len, k->callee))
        VEC_PUSH(c->pass->arena, &c->kernel->funs, k->callee);
    for (int i = 0; i < k->n && k->cond; i++)
        use_arith(c, k->cond[i]);
}

static void use_stm(Stm *stm, void *user)
{
    Collect *c = user;
    if (stm->index)
        use_index(c, stm->index);
    use_arith(c, stm->extent);
    use_arith(c, stm->threads);
    kexpr_each(stm->value, use_value, c);
    if (stm->buffer)
        use_buffer(c, stm->buffer);
}

// Images --------------------------------------------------------------------------------

static bool is_vector_of(const KExpr *e, const void *buffer)
{
    return e->kind == K_LOAD && e->buffer == buffer && e->type->kind == T_VECTOR;
}

// What an image of one channel cannot give, which has single elements and no stores.
static bool is_no_image(const Stm *stm, const void *buffer)
{
    return (stm->kind == ST_STORE && stm->buffer == buffer) ||
           kexpr_any(stm->value, is_vector_of, buffer);
}

bool kernel_reads_image(const Kernel *kernel, const Buffer *buffer)
{
    return list_has(kernel->images.at, kernel->images.len, buffer);
}

static void collect_images(const Pass *pass, Kernel *kernel)
{
    kernel->images.len = 0;
    VEC_EACH(const Buffer *, buffer, &kernel->params)
        if ((buffer->scalar == S_FLOAT || buffer->scalar == S_INT) && !buffer->value &&
            !block_any(&kernel->body, is_no_image, buffer))
            VEC_PUSH(pass->arena, &kernel->images, buffer);
}

void kernel_collect(const Pass *pass, Kernel *kernel)
{
    Collect c = {pass, kernel, pass->steps};
    for (int i = 0; i < pass->program->sizes.len; i++)
        c.sizes |= !arith_is_const(pass->program->sizes.at[i].arith, NULL);
    block_each(&kernel->body, use_stm, &c);
    if (pass->options->images)
        collect_images(pass, kernel);
}
