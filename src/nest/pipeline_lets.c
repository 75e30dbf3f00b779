// SPDX-License-Identifier: Apache-2.0
//
// The host level as a chain of lets: each stage that another one looks at in windows has a
// name, whether the program gives it one or not. Chains of more stages than a kernel may
// have become shorter: maps that one map alone reads are part of it.

#include "nest/nest.h"
#include "nest/pipeline.h"

#include <string.h>

// Does a function only show what it is given, in another layout?
static bool only_shows(const Expr *expr)
{
    bool view = expr->kind == E_PATTERN && expr->pattern != P_ARRAY &&
                pattern_info[expr->pattern].group == G_VIEW;
    if (expr_is(expr, P_MAP))
        view = only_shows(expr->fun->arg[0]);
    for (int i = 0; view && i < expr->narg; i++)
        view = expr->arg[i]->kind == E_LITERAL || only_shows(expr->arg[i]);
    return view || expr->kind == E_PARAM ||
           (expr->kind == E_GET && only_shows(expr->arg[0]));
}

static bool is_computed(const Expr *expr, const void *none)
{
    const bool array = expr_is(expr, P_ARRAY);
    return expr->kind == E_PATTERN &&
           (pattern_info[expr->pattern].group != G_VIEW || array ||
            expr->pattern == P_SCATTER) &&
           !((array || expr->pattern == P_MAP) && only_shows(expr->fun->arg[0]));
}

bool expr_computes(const Expr *expr)
{
    return expr_find(expr, is_computed, NULL);
}

bool is_view(const Expr *value)
{
    return type_holds_array(value->type) && !expr_computes(value);
}

// The way to the first map that another one, or a fold, looks at in windows and that has no
// name, or to a let there. A map that only shows what it is given is no stage. Around: what
// is around an expression.
typedef enum { AROUND_NOTHING, AROUND_READER, AROUND_WINDOW } Around;

static bool find_unnamed(const Expr *expr, Around around, Path *at)
{
    const bool reads = is_map(expr) || expr_is(expr, P_REDUCE);
    if (around == AROUND_WINDOW &&
        (expr->kind == E_LET || (is_map(expr) && expr_computes(expr))))
        return true;
    bool layout = around != AROUND_WINDOW && expr->kind == E_PATTERN &&
                  expr->pattern != P_ARRAY && pattern_info[expr->pattern].group == G_VIEW;
    bool through = expr->kind == E_TUPLE || expr->kind == E_GET || reads ||
                   expr_is(expr, P_ZIP) || expr_is(expr, P_UNZIP) || expr_is(expr, P_PAD) ||
                   expr_is(expr, P_SLIDE);
    if (around == AROUND_NOTHING && reads)
        around = AROUND_READER;
    else if (around == AROUND_READER && expr_is(expr, P_SLIDE))
        around = AROUND_WINDOW;
    for (int i = 0; (through || layout) && i < expr->narg; i++) {
        if (!path_push(at, i))
            return false;
        if (find_unnamed(expr->arg[i], around, at))
            return true;
        at->n--;
    }
    return false;
}

// One more stage of an expression, or of what a let holds, has a name before it.
static bool name_stage(Rewriter *r, const Path *at)
{
    Path stage = *at;
    const Expr *expr = path_find(r->expr, at);
    if (expr->kind == E_LET && path_push(&stage, 0))
        expr = expr->arg[0];
    return (expr->kind == E_LET ||
            (find_unnamed(expr, AROUND_NOTHING, &stage) &&
             (path_find(r->expr, &stage)->kind == E_LET ||
              rewriter_rule(r, &stage, RULE_NAME_STAGE, &(RuleArgs){1, {0}})))) &&
           rewriter_rule(r, at, RULE_LET_OUT, &(RuleArgs){0});
}

void pipeline_fuse_reads(Rewriter *r, const Path *at)
{
    bool fused = true;
    while (fused) {
        const Expr *map = path_find(r->expr, at), *in = map->arg[0];
        fused = rewriter_rule(r, at, RULE_ZIP_FLATTEN, &(RuleArgs){0}) ||
                (is_map(in) && rewriter_rule(r, at, RULE_MAP_FUSION, &(RuleArgs){0}));
        for (int64_t i = 0; !fused && is_zip(in, map->dims) && i < in->narg; i++)
            fused = is_map(in->arg[i]) &&
                    rewriter_rule(r, at, RULE_MAP_ZIP_FUSION, &(RuleArgs){1, {i}});
    }
}

// The way to the map of the chain that takes an array as it is.
static bool find_reader(const Expr *expr, const Param *array, Path *at)
{
    if (is_map(expr)) {
        const Expr *in = expr->arg[0];
        bool reads = expr_is_use(in, array);
        for (int i = 0; is_zip(in, expr->dims) && i < in->narg; i++)
            reads |= expr_is_use(in->arg[i], array);
        return reads;
    }
    for (int i = 0; (expr->kind == E_LET || expr->kind == E_TUPLE) && i < expr->narg; i++) {
        if (!path_push(at, i))
            return false;
        if (find_reader(expr->arg[i], array, at))
            return true;
        at->n--;
    }
    return false;
}

// A let, whose value one map alone reads, becomes part of that.
static void fuse_with_reader(Rewriter *r, const Path *let)
{
    const Expr *at = path_find(r->expr, let), *value = at->arg[0];
    Path reader = *let;
    if (!path_push(&reader, 1) || !is_map(value) || has_fold(value) ||
        type_holds_array(type_elem(value->type, value->dims)) ||
        !find_reader(at->arg[1], at->param, &reader))
        return;
    rewriter_rule(r, &reader, RULE_ZIP_FLATTEN, &(RuleArgs){0});
    if (expr_uses(path_find(r->expr, let)->arg[1], at->param) > 1 ||
        !rewriter_rule(r, let, RULE_LET_INLINE, &(RuleArgs){0}))
        return;
    memmove(reader.step + let->n, reader.step + let->n + 1,
            (size_t)(--reader.n - let->n) * sizeof *reader.step);
    pipeline_fuse_reads(r, &reader);
}

// The lets of a region, and the way to what follows them.
typedef struct {
    int n, stages;
    Path end;
} Lets;

static Lets count_lets(const Rewriter *r, const Path *region)
{
    Lets lets = {.end = *region};
    const Expr *expr = path_find(r->expr, region);
    for (; expr->kind == E_LET && path_push(&lets.end, 1); expr = expr->arg[1]) {
        lets.n++;
        lets.stages += expr_computes(expr->arg[0]);
    }
    lets.stages += expr_computes(expr);
    return lets;
}

// The last first, as they are read once when their readers are one.
static void fuse_chains(Rewriter *r, const Path *region)
{
    Path at = count_lets(r, region).end;
    while (at.n > region->n) {
        at.n--;
        fuse_with_reader(r, &at);
    }
}

// Moves a let behind those that follow it, as far as they do not use it.
static void move_down(Rewriter *r, Path at)
{
    while (path_find(r->expr, &at)->arg[1]->kind == E_LET &&
           rewriter_rule(r, &at, RULE_LET_SWAP, &(RuleArgs){0}) && path_push(&at, 1))
        ;
}

// Does a let hold a result that is a map of elements in their own places?
static bool holds_result(const Expr *let, const Expr *results)
{
    return results->kind == E_TUPLE && has_result(results, let->param, -1) &&
           is_map(let->arg[0]) && !has_fold(let->arg[0]) &&
           !expr_find_pattern(let->arg[0]->arg[0], P_SLIDE);
}

// Results that are maps over the same elements are made by one map.
static void join_results(Rewriter *r, const Path *region)
{
    const Lets lets = count_lets(r, region);
    const Expr *tuple = path_find(r->expr, &lets.end);
    Path at = lets.end;
    while (at.n > region->n) {
        at.n--;
        if (holds_result(path_find(r->expr, &at), tuple))
            move_down(r, at);
        tuple = path_find(r->expr, &lets.end);
    }
    for (at = lets.end; at.n > region->n; at.n--) {
        Path let = at;
        let.n--;
        if (!holds_result(path_find(r->expr, &let), tuple))
            break;
    }
    for (int64_t n = lets.end.n - at.n; n > 1; n--, path_push(&at, 1))
        if (rewriter_rule(r, &at, RULE_LET_TUPLE, &(RuleArgs){1, {n}})) {
            path_push(&at, 0);
            pipeline_fuse_reads(r, &at);
            return;
        }
}

// Results that are maps of elements have names, so that a kernel may make several.
static void name_results(Rewriter *r, Path at)
{
    const Expr *tuple = path_find(r->expr, &at);
    for (int64_t i = 0, n = tuple->kind == E_TUPLE ? tuple->narg : 0; i < n; i++) {
        const Expr *result = path_find(r->expr, &at)->arg[i];
        if (is_map(result) && expr_computes(result) && !has_fold(result) &&
            rewriter_rule(r, &at, RULE_NAME_STAGE, &(RuleArgs){1, {i}}) &&
            !path_push(&at, 1))
            return;
    }
}

// Not of so many that the rewrites would take long: each looks at all of a chain.
static void fewer_stages(Rewriter *r, const Path *region)
{
    enum { LETS_FUSED = 128 };
    const Lets lets = count_lets(r, region);
    if (lets.stages <= PIPELINE_LIMIT || lets.n > LETS_FUSED)
        return;
    fuse_chains(r, region);
    if (count_lets(r, region).stages > PIPELINE_LIMIT) {
        join_results(r, region);
        fuse_chains(r, region);
    }
}

void pipeline_normalise(Rewriter *r, const Path *region)
{
    Path at = *region;
    for (const Expr *expr = path_find(r->expr, &at); expr; expr = path_find(r->expr, &at)) {
        const bool let = expr->kind == E_LET;
        const bool unused = let && !expr_mentions(expr->arg[1], expr->param);
        bool ok = (!unused && name_stage(r, &at)) ||
                  (let && (unused || is_view(expr->arg[0])) &&
                   rewriter_rule(r, &at, RULE_LET_INLINE, &(RuleArgs){0}));
        if (ok && unused)
            at = *region; // what it alone has used is unused now
        else if (!ok && (!let || !path_push(&at, 1)))
            break;
    }
    name_results(r, at);
    fewer_stages(r, region);
}
