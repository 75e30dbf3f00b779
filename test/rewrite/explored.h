// SPDX-License-Identifier: Apache-2.0
//
// Examples loaded and bound for the tests of derivations and of exploration.

#ifndef FW_TEST_REWRITE_EXPLORED_H
#define FW_TEST_REWRITE_EXPLORED_H

#include "evaluate/random_walk.h"
#include "lower/lower.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

typedef struct {
    Ir *ir;
    Arena *arena;
    Diags diags;
    Source source;
    Program *program; // bound
    Value **input;
    Value *expect;
} Example;

static void show_diags(const Diags *diags, const char *what)
{
    Buf out = buf_new();
    diags_print(&out, diags);
    print_message("%s: %s\n", what, out.text);
    buf_release(&out);
}

// Sizes by declaration; T is always 3.
static void example_open(Example *e, const char *name, const int64_t *sizes)
{
    *e = (Example){.ir = ir_new(), .arena = arena_new()};
    e->diags = (Diags){.arena = e->arena};
    Buf text = buf_new();
    const char *path = arena_printf(e->arena, "examples/%s.fw", name);
    if (!file_read(path, FILE_DATA_MOST, &text))
        fail_msg("cannot read %s", path);
    e->source = (Source){path, arena_strdup(e->arena, text.text), text.len};
    buf_release(&text);
    Program *p = ir_parse(e->ir, &e->source, &e->diags);
    Binding binding[4];
    int n = 0;
    if (p && ir_infer(p, &e->diags))
        for (; n < p->sizes.len; n++)
            binding[n] = (Binding){p->sizes.at[n].name,
                                   strcmp(p->sizes.at[n].name, "T") ? sizes[n] : 3};
    e->program = p ? ir_bind(p, binding, n, &e->diags) : NULL;
    if (!e->program) {
        show_diags(&e->diags, name);
        fail();
    }
}

static void example_close(Example *e)
{
    ir_free(e->ir);
    arena_free(e->arena);
}

static Value *value_of_body(Example *e, Expr *body)
{
    Function main = *e->program->main;
    Program with = *e->program;
    main.body = body;
    with.main = &main;
    Value *out;
    return ir_eval(&with, e->input, e->arena, &out, 0, &e->diags) ? out : NULL;
}

static void example_expect(Example *e)
{
    const Function *main = e->program->main;
    e->input = NEW_ARRAY(e->arena, Value *, main->nparam);
    for (int i = 0; i < main->nparam; i++) {
        e->input[i] = value_new(e->arena, main->params[i]->type);
        value_random(e->input[i], 3 + (uint64_t)i);
    }
    e->expect = value_of_body(e, main->body);
    assert_non_null(e->expect);
}

// Sums may be regrouped, so nothing closer than rounding can be asked for.
static bool agrees(const Value *a, const Value *b)
{
    for (int i = 0; i < a->nplane; i++)
        for (int64_t k = 0; k < a->count[i]; k++)
            if (!(fabs(a->plane[i][k] - b->plane[i][k]) <=
                  1e-4 * fmax(1, fabs(b->plane[i][k]))))
                return false;
    return true;
}

static inline void show_explored(const Explored *found)
{
    Buf out = buf_new();
    derivation_print(&out, &found->steps);
    expr_print(&out, found->expr);
    print_message("%s\n", out.text);
    buf_release(&out);
}

// As an ExploreAccept: lowers, and forgets the kernels.
static inline bool can_lower(void *user, const Explored *found)
{
    Example *e = user;
    KernelOptions options = {.unroll_cap = 64};
    for (int d = 0; d < 3; d++)
        options.local[d] = found->local[d];
    Arena *scratch = arena_new();
    Diags diags = {.arena = scratch};
    ArithMark mark = arith_mark(e->ir->arith);
    bool ok = lower(e->program, found->expr, &options, scratch, &diags) != NULL;
    arith_release(e->ir->arith, mark);
    arena_free(scratch);
    return ok;
}

#endif
