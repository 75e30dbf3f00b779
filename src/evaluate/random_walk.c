// SPDX-License-Identifier: Apache-2.0
//
// Random exploration: many ways to lower a program, each a derivation.
//
//   source  paper 000, sections 2 and 8.1: 1,000 transformed expressions of each program;
//           Lift's HighLevelRewrite, MemoryMappingRewrite and ParameterRewrite
//
// Lift applies its rules anywhere and throws away what cannot be compiled. Here each walk
// goes from one map or reduction to the next and chooses among the ways that make sense
// there, so that nearly every walk ends in an expression that can be lowered. Nothing is
// enumerated, and nothing is ranked.

#include "evaluate/random_walk.h"

#include <string.h>

const ExploreOptions explore_defaults = {
    .most_group = 256, .most_outputs = 16, .local_bytes = 48 * 1024, .tries = 20};

// Choices -----------------------------------------------------------------------------

bool chance(RandomWalk *w, int percent)
{
    return rng_below(w->rng, 100) < (uint64_t)percent;
}

int64_t pick(RandomWalk *w, const int64_t *of, int n)
{
    return of[rng_below(w->rng, (uint64_t)n)];
}

int64_t pick_power(RandomWalk *w, int64_t most)
{
    int n = 0;
    while (n < 40 && (int64_t)2 << n <= most)
        n++;
    return (int64_t)1 << rng_below(w->rng, (uint64_t)n + 1);
}

// Steps -----------------------------------------------------------------------------------

bool apply_rule(RandomWalk *w, RuleId rule, Path at, const int64_t *args, int n)
{
    RuleArgs given = {.n = n};
    for (int i = 0; i < n; i++)
        given.at[i] = args[i];
    return rewriter_rule(&w->r, &at, rule, &given);
}

bool apply_plain(RandomWalk *w, RuleId rule, Path at)
{
    return apply_rule(w, rule, at, NULL, 0);
}

const Expr *node_at(RandomWalk *w, Path at)
{
    return path_find(w->r.expr, &at);
}

// Expressions so deep that a path is full are given up.
Path below(Path at, int child)
{
    path_push(&at, child);
    return at;
}

Path functions(Path at, int n)
{
    for (int i = 0; i < n; i++)
        at = below(at, CHILD_FUN);
    return at;
}

bool needs_wrapped(const Expr *expr)
{
    if (!expr_is(expr, P_MAP))
        return false;
    const Expr *body = expr->fun->arg[0];
    return (expr_is(body, P_TRANSPOSE) || expr_is(body, P_SCATTER) ||
            expr_is(body, P_JOIN) || needs_wrapped(body)) &&
           expr_is_use(data_of(body), expr->fun->params[0]);
}

Path inwards(RandomWalk *w, Path at)
{
    for (;;) {
        const Expr *e = node_at(w, at);
        if (e && ((expr_is(e, P_GATHER) && view_inverts(e)) || expr_is(e, P_TAKE) ||
                  expr_is(e, P_JOIN) || expr_is(e, P_TRANSPOSE) || expr_is(e, P_SCATTER) ||
                  expr_is(e, P_ASSCALAR) || needs_wrapped(e)))
            at = below(at, e->narg - 1);
        else
            return at;
    }
}

// A walk ---------------------------------------------------------------------------------

static void choose_group(RandomWalk *w)
{
    static const int64_t most[3] = {256, 32, 8};
    int64_t left = w->options->most_group;
    for (int d = 0; d < 3; d++) {
        w->local[d] = pick_power(w, MIN(most[d], left));
        left /= w->local[d];
    }
}

static void walk_sites(RandomWalk *w)
{
    enum { SITES_MOST = 64 };
    for (int i = 0; i < SITES_MOST && !w->stuck; i++) {
        Path at = {0};
        switch (site_find(w, &at)) {
        case SITE_NONE: return;
        case SITE_MAP: lower_map(w, at); break;
        case SITE_REDUCE: lower_reduce(w, at); break;
        case SITE_SCAN: w->stuck |= !apply_plain(w, RULE_SCAN_SEQ, at); break;
        case SITE_COPY: {
            int64_t dims = MIN(type_depth(node_at(w, at)->type), DIMS_MAX);
            w->stuck |= !apply_rule(w, RULE_COPY, at, &dims, 1);
            break;
        }
        }
    }
    w->stuck = true;
}

static void note_local(const Expr *expr, const int64_t *local, int64_t *used)
{
    if (expr_is(expr, P_MAPLCL))
        used[expr->par] = local[expr->par];
    for (int i = 0; i < expr->narg; i++)
        note_local(expr->arg[i], local, used);
    if (expr->fun)
        note_local(expr->fun, local, used);
}

// Gathering ------------------------------------------------------------------------------

typedef struct {
    const Program *program;
    const ExploreOptions *options;
    Arena *arena;
    Ir scratch; // of one walk; shares the arithmetic of the program
    Map seen;
    Exploration *result;
} Explore;

static bool is_new(Explore *x, const Explored *found)
{
    char key[17];
    hash_hex(found->hash, key);
    const Explored *old = map_get(&x->seen, key);
    return !old || !expr_equal(old->expr, found->expr);
}

static void keep(Explore *x, Explored *found)
{
    Ir *ir = x->program->ir;
    ir->next_id = x->scratch.next_id;
    Explored *kept = arena_copy(x->arena, found, sizeof(Explored));
    kept->expr = expr_clone(ir, found->expr);
    Diags diags = {.arena = x->arena};
    if (!ir_infer_expr(ir, kept->expr, &diags))
        BUG("an explored expression has no type");
    kept->steps = (Rewriting){0};
    for (int i = 0; i < found->steps.steps.len; i++)
        VEC_PUSH(x->arena, &kept->steps.steps, found->steps.steps.at[i]);
    char key[17];
    hash_hex(found->hash, key);
    map_put(&x->seen, arena_strdup(x->arena, key), kept);
    VEC_PUSH(x->arena, &x->result->found, *kept);
}

static void walk_once(Explore *x, Rng *rng)
{
    RandomWalk w = {
        .rng = rng, .options = x->options, .local_bytes = x->options->local_bytes};
    x->scratch.next_id = x->program->ir->next_id;
    rewriter_init(&w.r, &x->scratch, x->scratch.arena, x->program->main->body);
    choose_group(&w);
    choose_stages(&w);
    walk_sites(&w);
    x->result->tried++;
    if (w.stuck) {
        x->result->stuck++;
        return;
    }
    Explored found = {.expr = w.r.expr, .steps = w.r.done, .hash = expr_hash(w.r.expr)};
    note_local(found.expr, w.local, found.local);
    if (!is_new(x, &found))
        x->result->same++;
    else if (x->options->accept && !x->options->accept(x->options->user, &found))
        x->result->refused++;
    else
        keep(x, &found);
}

Exploration *explore_random(const Program *program, uint64_t seed, int n,
                            const ExploreOptions *options, Arena *arena)
{
    Exploration *result = NEW(arena, Exploration);
    Explore x = {.program = program,
                 .options = options,
                 .arena = arena,
                 .scratch = {arena_new(), program->ir->arith, 0},
                 .result = result};
    x.seen = (Map){.arena = arena};
    Rng rng = rng_new(seed);
    ArenaMark mark = arena_mark(x.scratch.arena);
    int64_t most = (int64_t)n * MAX(options->tries, 1);
    while (result->found.len < n && result->tried < most) {
        walk_once(&x, &rng);
        arena_reset(x.scratch.arena, mark);
    }
    arena_free(x.scratch.arena);
    return result;
}
