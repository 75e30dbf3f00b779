// SPDX-License-Identifier: Apache-2.0
//
// Strategies: small combinators that say where and how often rules are tried.
//
//   source  Visser, Benaissa and Tolmach, ICFP 1998; Hagedorn et al., ICFP 2020 (Elevate)

#include "rewrite/internal.h"

void rewriter_init(Rewriter *r, Ir *ir, Arena *arena, const Expr *expr)
{
    *r = (Rewriter){.ir = ir, .arena = arena, .expr = rewrite_begin(ir, expr)};
}

// Types are set again when a step is taken back: nodes are shared between versions.
static bool infer_quietly(Rewriter *r, Expr *expr)
{
    Arena *arena = arena_new();
    Diags diags;
    diags_init(&diags, arena);
    bool ok = ir_infer_expr(r->ir, expr, &diags);
    arena_free(arena);
    return ok;
}

static void go_back(Rewriter *r, Expr *expr, int steps)
{
    r->expr = expr;
    r->done.steps.len = steps;
    if (!infer_quietly(r, expr))
        BUG("an expression that had types has none");
}

bool rewriter_rule(Rewriter *r, const Path *path, RuleId rule, const RuleArgs *args)
{
    Expr *next = rewrite_at(r->ir, r->expr, path, rule, args);
    if (!next)
        return false;
    if (!infer_quietly(r, next)) {
        go_back(r, r->expr, r->done.steps.len);
        return false;
    }
    r->expr = next;
    RuleStep step = {rule, *args, *path, span_none};
    VEC_PUSH(r->arena, &r->done.steps, step);
    return true;
}

// Combinators ----------------------------------------------------------------------------

static Strategy *combine(Arena *arena, StrategyKind kind, const Strategy *a,
                         const Strategy *b)
{
    Strategy *s = NEW(arena, Strategy);
    *s = (Strategy){.kind = kind, .first = a, .second = b};
    return s;
}

const Strategy *strategy_rule(Arena *arena, RuleId rule, const int64_t *args, int n)
{
    Strategy *s = combine(arena, STRATEGY_RULE, NULL, NULL);
    s->rule = rule;
    for (int i = 0; i < n; i++)
        s->args.at[s->args.n++] = args[i];
    return s;
}

const Strategy *strategy_then(Arena *arena, const Strategy *a, const Strategy *b)
{
    return combine(arena, STRATEGY_THEN, a, b);
}

const Strategy *strategy_try(Arena *arena, const Strategy *s)
{
    return combine(arena, STRATEGY_TRY, s, NULL);
}

const Strategy *strategy_repeat(Arena *arena, const Strategy *s)
{
    return combine(arena, STRATEGY_REPEAT, s, NULL);
}

const Strategy *strategy_at(Arena *arena, const char *path, const Strategy *s)
{
    Strategy *at = combine(arena, STRATEGY_AT, s, NULL);
    if (!path_parse(path, &at->path))
        BUG("%s is not a position", path);
    return at;
}

const Strategy *strategy_topdown(Arena *arena, const Strategy *s)
{
    return combine(arena, STRATEGY_TOPDOWN, s, NULL);
}

const Strategy *strategy_bottomup(Arena *arena, const Strategy *s)
{
    return combine(arena, STRATEGY_BOTTOMUP, s, NULL);
}

// Running --------------------------------------------------------------------------------

// A repetition that goes on and on is a mistake of the strategy, not of the program.
enum { REPEAT_MOST = 1000 };

static bool run(Rewriter *r, const Strategy *s, const Path *at);

static bool run_below(Rewriter *r, const Strategy *s, const Path *at, int child)
{
    Path below = *at;
    return path_push(&below, child) && run(r, s, &below);
}

static bool run_somewhere(Rewriter *r, const Strategy *s, const Path *at)
{
    if (s->kind == STRATEGY_TOPDOWN && run(r, s->first, at))
        return true;
    const Expr *expr = path_find(r->expr, at);
    if (!expr)
        return false;
    if (expr->fun && run_below(r, s, at, CHILD_FUN))
        return true;
    for (int i = 0; i < expr->narg; i++)
        if (run_below(r, s, at, i))
            return true;
    return s->kind == STRATEGY_BOTTOMUP && run(r, s->first, at);
}

static bool run_then(Rewriter *r, const Strategy *s, const Path *at)
{
    Expr *before = r->expr;
    int steps = r->done.steps.len;
    if (!run(r, s->first, at))
        return false;
    if (run(r, s->second, at))
        return true;
    go_back(r, before, steps);
    return false;
}

static bool run(Rewriter *r, const Strategy *s, const Path *at)
{
    switch (s->kind) {
    case STRATEGY_RULE: return rewriter_rule(r, at, s->rule, &s->args);
    case STRATEGY_THEN: return run_then(r, s, at);
    case STRATEGY_TRY: run(r, s->first, at); return true;
    case STRATEGY_REPEAT:
        for (int i = 0; i < REPEAT_MOST && run(r, s->first, at); i++)
            continue;
        return true;
    case STRATEGY_AT: {
        Path below = path_join(at, &s->path);
        return run(r, s->first, &below);
    }
    case STRATEGY_TOPDOWN:
    case STRATEGY_BOTTOMUP: return run_somewhere(r, s, at);
    }
    BUG("strategy of kind %d", s->kind);
}

bool strategy_run(Rewriter *r, const Strategy *s)
{
    return run(r, s, &(Path){0});
}
