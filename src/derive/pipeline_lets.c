// SPDX-License-Identifier: Apache-2.0
//
// The host level as a chain of lets: each stage that another one looks at in windows has a
// name, whether the program gives it one or not.

#include "derive/derive_parts.h"
#include "derive/pipeline.h"

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
    return expr->kind == E_PATTERN &&
           (pattern_info[expr->pattern].group != G_VIEW || expr->pattern == P_ARRAY ||
            expr->pattern == P_SCATTER) &&
           !(expr->pattern == P_MAP && only_shows(expr->fun->arg[0]));
}

bool computes(const Expr *expr)
{
    return expr_find(expr, is_computed, NULL);
}

bool is_view(const Expr *value)
{
    return type_holds_array(value->type) && !computes(value);
}

// The way to the first map that another one, or a fold, looks at in windows and that has no
// name, or to a let there. A map that only shows what it is given is no stage. Around: what
// is around an expression.
typedef enum { AROUND_NOTHING, AROUND_READER, AROUND_WINDOW } Around;

static bool find_unnamed(const Expr *expr, Around around, Path *at)
{
    const bool reads = is_map(expr) || expr_is(expr, P_REDUCE);
    if (around == AROUND_WINDOW &&
        (expr->kind == E_LET || (is_map(expr) && computes(expr))))
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
            return;
    }
}
