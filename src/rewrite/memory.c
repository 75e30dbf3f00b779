// SPDX-License-Identifier: Apache-2.0
//
// Memory: copies, and where a value is stored.
//
//   source  paper 000, section 3.4; Lift CopyRules, OpenCLRules

#include "rewrite/internal.h"

static bool lcl_dims_fit(const Rewrite *rw, const RuleArgs *args)
{
    for (int k = 0; k < args->n; k++) {
        if (args->at[k] < 0 || args->at[k] > 2 || inside(rw, P_MAPLCL, (int)args->at[k]))
            return false;
        for (int j = 0; j < k; j++)
            if (args->at[j] == args->at[k])
                return false;
    }
    return true;
}

// An array of constant lengths in at least as many dimensions, of scalars or tuples of
// them.
static bool copyable(const Type *type, int dims)
{
    int depth = type_depth(type);
    return depth >= dims && static_count(type) > 0 &&
           !type_holds_array(type_elem(type, depth));
}

static Expr *local_copy(Rewrite *rw, const RuleArgs *args, Expr *in)
{
    Expr *copy = make_nest(rw, P_MAPLCL, args->n, args->at, make_identity(rw), in);
    return make1(rw, P_TOLOCAL, copy);
}

Expr *rule_toLocal(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (at->kind == E_LAMBDA || !copyable(at->type, args->n) || !lcl_dims_fit(rw, args) ||
        !inside(rw, P_MAPWRG, -1) || inside(rw, P_MAPLCL, -1) || inside_loop(rw))
        return NULL;
    return local_copy(rw, args, copy_of(rw, at));
}

Expr *rule_holdLocal(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    bool written = at->kind == E_PATTERN && expr_find_pattern(at, P_MAPLCL);
    if (!written || expr_is(at, P_TOLOCAL) || !copyable(at->type, 1) || !by_all_items(rw))
        return NULL;
    return make1(rw, P_TOLOCAL, copy_of(rw, at));
}

// The body with a name for a part of what the map is given; the same where it is not worth
// one.
static Expr *name_row(Rewrite *rw, Expr *body, Expr *part, const Type *type)
{
    Param *row = fresh(rw, "row");
    Expr *named = with_name(rw, copy_of(rw, body), part, row);
    bool wanted = type->kind == T_ARRAY && expr_uses(named, row) > 1 &&
                  type_bytes(type, NULL, NULL) <= ROW_BYTES_MOST;
    return wanted ? expr_let(rw->ir, row, part, named) : body;
}

Expr *rule_nameRows(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (at->kind != E_PATTERN || !at->fun || at->fun->nparam != 1 || at->nnum > 0 ||
        !(expr_is(at, P_MAP) || is_threads(at->pattern)))
        return NULL;
    Param *e = fresh(rw, at->fun->params[0]->name);
    const Type *type = at->fun->params[0]->type;
    Expr *body = expr_replace(rw->ir, at->fun->arg[0], at->fun->params[0], use(rw, e));
    Expr *named = body;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        named = name_row(rw, named, get_of(rw, e, i), type->item[i]);
    if (type->kind != T_TUPLE)
        named = name_row(rw, named, use(rw, e), type);
    if (named == body)
        return NULL;
    Expr *in = copy_of(rw, at->arg[0]);
    return expr_pattern(rw->ir, at->pattern, at->dims, at->par, NULL,
                        make_lambda(rw, e, named), &in, 1);
}

static Expr *private_copy(Rewrite *rw, const Type *type, Expr *in)
{
    int dims = type_depth(type);
    if (dims > 0)
        in = make_nest(rw, P_MAPUNROLL, dims, NULL, make_identity(rw), in);
    return make1(rw, P_TOPRIVATE, in);
}

static bool fits_private(const Type *type)
{
    int64_t count = static_count(type);
    return count > 0 && count <= SMALL_MOST &&
           !type_holds_array(type_elem(type, type_depth(type)));
}

static bool is_private(Rewrite *rw, const Expr *at)
{
    return at->kind != E_LAMBDA && !expr_is(at, P_TOPRIVATE) && fits_private(at->type) &&
           (inside(rw, P_MAPGLB, -1) || inside(rw, P_MAPLCL, -1));
}

Expr *rule_toPrivate(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return is_private(rw, at) ? private_copy(rw, at->type, start_value(rw, at)) : NULL;
}

Expr *rule_holdItem(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return is_private(rw, at) && at->type->kind == T_ARRAY
               ? make1(rw, P_TOPRIVATE, copy_of(rw, at))
               : NULL;
}

Expr *rule_toGlobal(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    bool stored =
        expr_is(at, P_TOGLOBAL) || (rw->context && expr_is(rw->context->expr, P_TOGLOBAL));
    if (at->kind != E_PATTERN || at->type->kind != T_ARRAY || stored || !at_host(rw))
        return NULL;
    return make1(rw, P_TOGLOBAL, copy_of(rw, at));
}

Expr *rule_copy(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t dims = args->at[0];
    if (at->kind == E_LAMBDA || dims < 1 || dims > DIMS_MAX || type_depth(at->type) < dims)
        return NULL;
    return make_map(rw, (int)dims, make_identity(rw), copy_of(rw, at));
}

// The same map, whose function first copies its element.
static Expr *with_copy(Rewrite *rw, const Expr *at, Param *e, Expr *copy)
{
    Param *c = fresh(rw, "copy");
    Expr *body = expr_replace(rw->ir, at->fun->arg[0], at->fun->params[0], use(rw, c));
    Expr *held = expr_let(rw->ir, c, copy, body);
    Expr *in = copy_of(rw, at->arg[0]);
    return expr_pattern(rw->ir, at->pattern, 1, at->par, NULL, make_lambda(rw, e, held),
                        &in, 1);
}

Expr *rule_copyLocal(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_MAPWRG) || !copyable(at->arg[0]->type->elem, args->n) ||
        !lcl_dims_fit(rw, args))
        return NULL;
    Param *e = fresh(rw, at->fun->params[0]->name);
    return with_copy(rw, at, e, local_copy(rw, args, use(rw, e)));
}

Expr *rule_copyPrivate(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    bool item = expr_is(at, P_MAPGLB) || expr_is(at, P_MAPLCL);
    if (!(item || (expr_is(at, P_MAPSEQ) &&
                   (inside(rw, P_MAPGLB, -1) || inside(rw, P_MAPLCL, -1)))))
        return NULL;
    const Type *type = at->arg[0]->type->elem;
    if (type->kind != T_ARRAY || !fits_private(type) ||
        expr_find_pattern(at->fun, P_MAPGLB) || expr_find_pattern(at->fun, P_MAPLCL))
        return NULL;
    Param *e = fresh(rw, at->fun->params[0]->name);
    return with_copy(rw, at, e, private_copy(rw, type, use(rw, e)));
}
