// SPDX-License-Identifier: Apache-2.0
//
// The table, positions, and applying one rule at one of them.
//
//   method  nodes from the root to the position are copied and the rest is shared with the
//           old expression, so that a strategy can go back by keeping a pointer

#include "rewrite/internal.h"

#include <stdlib.h>
#include <string.h>

const RuleInfo rule_info[RULES] = {
#define RULE(id, name, args, family, left, right, guard, source)                           \
    [RULE_##id] = {#name, args, FAMILY_##family, left, right, guard, source, rule_##name},
#include "rewrite/rules.def"
#undef RULE
};

const char *const rule_family_name[] = {
    [FAMILY_ALGORITHMIC] = "algorithmic", [FAMILY_FUSION] = "fusion",
    [FAMILY_FISSION] = "fission",         [FAMILY_INTERCHANGE] = "interchange",
    [FAMILY_SIMPLIFY] = "simplification", [FAMILY_LOWERING] = "lowering",
    [FAMILY_MEMORY] = "memory",           [FAMILY_TILING] = "tiling",
    [FAMILY_VECTOR] = "vectorisation",    [FAMILY_WINDOW] = "register window",
};

int rule_find(const char *name)
{
    return FIND(rule_info, RULES, name, name);
}

void rule_args_range(const RuleInfo *rule, int *least, int *most)
{
    *least = *rule->args != 0;
    for (const char *p = rule->args; *p; p++)
        *least += *p == ',';
    *most = strstr(rule->args, "...") ? RULE_ARGS : *least;
}

// Positions -----------------------------------------------------------------------------

static const Expr *child_of(const Expr *expr, int child)
{
    if (child == CHILD_FUN)
        return expr->fun ? expr->fun->arg[0] : NULL;
    return child < expr->narg ? expr->arg[child] : NULL;
}

const Expr *path_find(const Expr *root, const Path *path)
{
    for (int i = 0; root && i < path->n; i++)
        root = child_of(root, path->step[i]);
    return root;
}

bool path_push(Path *path, int child)
{
    if (path->n == PATH_STEPS || child > CHILDREN_MAX)
        return false;
    path->step[path->n++] = (int16_t)child;
    return true;
}

bool path_to_fold(const Expr *expr, Path *at, bool (*fits)(const Expr *reduce))
{
    if (expr_is(expr, P_REDUCE))
        return !fits || fits(expr);
    const bool named = expr->kind == E_LET && !expr_find(expr->arg[1], is_nest, NULL);
    const bool part = expr->kind == E_OP || expr->kind == E_CALL || expr->kind == E_TUPLE ||
                      expr->kind == E_GET;
    for (int i = 0; i < (part ? expr->narg : named); i++) {
        if (!path_push(at, i))
            return false;
        if (path_to_fold(expr->arg[i], at, fits))
            return true;
        at->n--;
    }
    return false;
}

bool path_parse(const char *text, Path *path)
{
    path->n = 0;
    if (strcmp(text, "root") == 0)
        return true;
    for (const char *p = text;; p++) {
        char *end = (char *)p;
        long child = *p == 'f' ? (end++, CHILD_FUN) : strtol(p, &end, 10);
        bool digit = *p >= '0' && *p <= '9';
        if (end == p || (*p != 'f' && !digit) || child > CHILDREN_MAX ||
            !path_push(path, (int)child))
            return false;
        p = end;
        if (*p == 0)
            return true;
        if (*p != '.')
            return false;
    }
}

void path_print(Buf *out, const Path *path)
{
    if (path->n == 0)
        buf_puts(out, "root");
    for (int i = 0; i < path->n; i++) {
        if (i)
            buf_putc(out, '.');
        if (path->step[i] == CHILD_FUN)
            buf_putc(out, 'f');
        else
            buf_printf(out, "%d", path->step[i]);
    }
}

// Applying --------------------------------------------------------------------------------

static Expr *shallow(Ir *ir, const Expr *expr)
{
    Expr *copy = arena_copy(ir->arena, expr, sizeof(Expr));
    copy->arg = COPY_ARRAY(ir->arena, expr->arg, expr->narg);
    return copy;
}

static Expr *replace_child(Ir *ir, const Expr *expr, int child, Expr *with)
{
    Expr *copy = shallow(ir, expr);
    if (child == CHILD_FUN) {
        copy->fun = shallow(ir, expr->fun);
        copy->fun->arg[0] = with;
    } else {
        copy->arg[child] = with;
    }
    return copy;
}

static Expr *put_below(Rewrite *rw, const Expr *expr, const Path *at, int depth,
                       Expr *value)
{
    if (depth == at->n)
        return value;
    const int child = at->step[depth];
    Expr *below = put_below(rw, child_of(expr, child), at, depth + 1, value);
    return replace_child(rw->ir, expr, child, below);
}

Expr *put_at(Rewrite *rw, const Expr *expr, const Path *at, Expr *value)
{
    return put_below(rw, expr, at, 0, value);
}

typedef struct {
    Rewrite rw;
    const Path *path;
    RuleId rule;
    const RuleArgs *args;
    int owned; // so many nodes from the root on are the caller's: they are changed, not
               // copied
    Undo *undo;
} Application;

static Expr *set_child(Application *a, Expr *expr, int child, Expr *with)
{
    if (expr->arg[child] != with) {
        *a->undo = (Undo){&expr->arg[child], expr->arg[child]};
        expr->arg[child] = with;
    }
    return expr;
}

static Expr *apply_below(Application *a, const Expr *expr, int depth)
{
    if (depth == a->path->n)
        return rule_info[a->rule].apply(&a->rw, expr, a->args);
    int child = a->path->step[depth];
    const Expr *below = child_of(expr, child);
    if (!below)
        return NULL;
    Context context = {expr, child, a->rw.context};
    a->rw.context = &context;
    Expr *changed = apply_below(a, below, depth + 1);
    a->rw.context = context.outer;
    if (changed && depth < a->owned)
        return set_child(a, (Expr *)(uintptr_t)expr, child, changed);
    return changed ? replace_child(a->rw.ir, expr, child, changed) : NULL;
}

static bool takes_args(RuleId rule, const RuleArgs *args)
{
    int least, most;
    rule_args_range(&rule_info[rule], &least, &most);
    return args->n >= least && args->n <= most;
}

Expr *rewrite_at(Ir *ir, Expr *root, const Path *path, RuleId rule, const RuleArgs *args)
{
    Application a = {{ir, NULL}, path, rule, args, 0, NULL};
    return takes_args(rule, args) ? apply_below(&a, root, 0) : NULL;
}

Expr *rewrite_own(Ir *ir, Expr *root, const Path *path, RuleId rule, const RuleArgs *args,
                  Undo *undo)
{
    Application a = {{ir, NULL}, path, rule, args, 0, undo};
    *undo = (Undo){0};
    for (const Expr *expr = root;
         a.owned < path->n && expr->kind == E_LET && path->step[a.owned] == 1;
         expr = expr->arg[1])
        a.owned++;
    return takes_args(rule, args) ? apply_below(&a, root, 0) : NULL;
}

Expr *rewrite_begin(Ir *ir, const Expr *body)
{
    Expr *copy = expr_clone(ir, body);
    settle_literals(copy);
    AutoArena *arena = arena_new();
    Diags diags = {.arena = arena};
    if (!ir_infer_expr(ir, copy, &diags))
        BUG("an expression that had types has none");
    note_laws(ir, copy);
    return copy;
}
