// SPDX-License-Identifier: Apache-2.0
//
// Rules applied one after another to an expression, which keeps its types.

#include "rewriter/rewriter.h"

void rewriter_init(Rewriter *r, Ir *ir, Arena *arena, const Expr *expr)
{
    *r = (Rewriter){.ir = ir, .arena = arena, .expr = rewrite_begin(ir, expr)};
}

Rewriter rewriter_hold(Rewriter *r)
{
    const Rewriter before = *r;
    r->keeps = true;
    return before;
}

bool rewriter_end(Rewriter *r, const Rewriter *held, bool stay)
{
    if (!stay)
        *r = *held;
    r->keeps = held->keeps;
    return stay;
}

Rewriter rewriter_again(const Rewriter *from)
{
    Rewriter r = *from;
    r.expr = expr_clone(r.ir, r.expr);
    r.done.steps.cap = r.done.steps.len; // what follows is not theirs
    return r;
}

// Types are set again when a step is taken back: nodes are shared between versions.
static bool infer_quietly(Rewriter *r, Expr *expr)
{
    AutoArena *arena = arena_new();
    Diags diags = {.arena = arena};
    return ir_infer_expr(r->ir, expr, &diags);
}

static void go_back(Rewriter *r, Expr *expr, int steps)
{
    r->expr = expr;
    r->done.steps.len = steps;
    if (!infer_quietly(r, expr))
        BUG("an expression that had types has none");
}

// What is at a position has the type that was there: nothing around it changes. A program
// of a thousand lets would be inferred for every step otherwise, and types are never freed.
static bool infer_at(Rewriter *r, const Expr *next, const Path *path, const Type *before)
{
    Expr *changed = (Expr *)(uintptr_t)path_find(next, path); // of the copy, which is ours
    return path->n && before && infer_quietly(r, changed) &&
           type_equal(r->ir->arith, before, changed->type);
}

bool rewriter_rule(Rewriter *r, const Path *path, RuleId rule, const RuleArgs *args)
{
    const Expr *at = path_find(r->expr, path);
    Undo undo = {0};
    Expr *next = r->keeps ? rewrite_at(r->ir, r->expr, path, rule, args)
                          : rewrite_own(r->ir, r->expr, path, rule, args, &undo);
    if (!next)
        return false;
    if (!infer_at(r, next, path, at->type) && !infer_quietly(r, next)) {
        if (undo.slot)
            *undo.slot = undo.was;
        go_back(r, r->expr, r->done.steps.len);
        return false;
    }
    r->expr = next;
    if (!r->forgets) {
        VEC_PUSH(r->arena, &r->done.steps, (RuleStep){rule, *args, *path, span_none});
    }
    return true;
}

bool rewriter_first(Rewriter *r, const Path *at, RuleId rule)
{
    const Expr *expr = path_find(r->expr, at);
    if (!expr)
        return false;
    if (rewriter_rule(r, at, rule, &(RuleArgs){0}))
        return true;
    for (int i = expr->fun ? CHILD_FUN : 0; i < expr->narg; i++) {
        Path below = *at;
        if (path_push(&below, i) && rewriter_first(r, &below, rule))
            return true;
    }
    return false;
}
