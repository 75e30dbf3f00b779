// SPDX-License-Identifier: Apache-2.0
//
// Reductions and scans by one work-item: an accumulator in registers, and the loop that
// changes it. A step that changes an array element by element does so in place; of others
// the next value is complete before the accumulator changes.

#include "lower/internal.h"

typedef const View *NewScalar(Lower *l, const View *value, const Type *type);

typedef struct {
    const char *name; // of arrays
    NewScalar *scalar;
} Copies;

static const View *copied_leaf(Lower *l, const Type *type, const View *value,
                               const View *none, const void *user)
{
    const Copies *copies = user;
    if (type->kind != T_ARRAY)
        return copies->scalar(l, value, type);
    const View *memory = buffers_new(l, type, MEM_PRIVATE, ROLE_TEMP, 0, copies->name);
    gen_copy(l, value, memory);
    return memory;
}

// A copy of a value: private arrays, of scalars what scalar makes, or a tuple of these.
static const View *copied(Lower *l, const View *value, const Type *type, const char *name,
                          NewScalar *scalar)
{
    return view_leaves(l, type, value, NULL, copied_leaf, &(Copies){name, scalar});
}

static Var *declared(Lower *l, const View *init, const Type *type)
{
    Stm *decl = stm_add(l, ST_DECL);
    decl->value = view_read(l, init);
    return decl->var = var_new(l, "acc", type, false);
}

static const View *variable(Lower *l, const View *init, const Type *type)
{
    return view_var(l, declared(l, init, type));
}

static const View *component(Lower *l, const View *init, const Type *type)
{
    Var *var = declared(l, init, type);
    var->folds = true;
    return view_var(l, var);
}

const View *fold_variable(Lower *l, const View *value, const Type *type)
{
    return copied(l, value, type, "acc", type->kind == T_TUPLE ? component : variable);
}

// What was stored for the fold to begin with is what it changes. fold: NULL: it is none.
static const View *accumulator(Lower *l, const Expr *expr, const View *init,
                               const Type *type, const Expr *fold)
{
    if (init->kind == V_MEM && (expr_is(expr, P_TOPRIVATE) || expr_is(expr, P_TOLOCAL)))
        return init;
    if (fold && expr_multiplies(fold))
        return component(l, init, type);
    return fold ? fold_variable(l, init, type) : copied(l, init, type, "acc", variable);
}

// The value now: a variable that changes is copied.
static const View *constant(Lower *l, const View *value, const Type *type)
{
    const KExpr *now = view_read(l, value);
    bool changes = now->kind == K_VAR && !now->var->is_const;
    return view_value(l, changes ? k_kept(l, now, "next") : k_named(l, now, "next"));
}

const View *fold_next(Lower *l, const View *value, const Type *type)
{
    return copied(l, value, type, "next", constant);
}

// All components are read before any is written: they may depend on each other.
static void update(Lower *l, const View *acc, const View *value)
{
    bool scalar = acc->type->kind != T_TUPLE && acc->type->kind != T_ARRAY;
    gen_copy(l, scalar ? value : fold_next(l, value, acc->type), acc);
}

// Folds -----------------------------------------------------------------------------------

typedef struct {
    const Expr *expr;
    const Env *env;
    const View *in, *acc, *out; // out: each prefix is stored there (scan)
    const PrefixMap *map;       // NULL, or what is made of each prefix first
} Fold;

// Changes in place --------------------------------------------------------------------

static bool is_loop(const Expr *expr)
{
    return expr_is(expr, P_MAPSEQ) || expr_is(expr, P_MAPUNROLL) || expr_is(expr, P_MAPLCL);
}

// Rows of it are what is joined again.
static const Expr *below(const Expr *expr, Pattern pattern)
{
    while (expr_is(expr, pattern))
        expr = expr->arg[expr->narg - 1];
    return expr;
}

// Loops over a parameter or rows of it, down to scalars.
static bool is_spread(const Expr *body, const Param *param)
{
    if (type_is_scalar(body->type))
        return true;
    const Expr *map = below(body, P_JOIN);
    if (!is_loop(map))
        return false;
    const Expr *in = below(map->arg[0], P_SPLIT);
    return expr_is_use(in, param) && is_spread(map->fun->arg[0], map->fun->params[0]);
}

// Is it elementwise in a parameter: loops over a zip of it, which is not mentioned
// elsewhere?
static bool is_elementwise(const Expr *body, const Param *param)
{
    const Expr *map = below(body, P_JOIN);
    const Expr *zip = is_loop(map) ? below(map->arg[0], P_SPLIT) : map;
    int found = 0;
    if (!is_loop(map) || !expr_is(zip, P_ZIP) || expr_uses(map, param) != 1)
        return false;
    for (int i = 0; i < zip->narg; i++)
        found += expr_is_use(zip->arg[i], param);
    return found == 1 && is_spread(map->fun->arg[0], map->fun->params[0]);
}

// Does a fold begin with this, which nothing else in it reads?
static bool goes_on_from(const Expr *fold, const Param *param)
{
    return expr_is_use(fold->arg[0], param) && expr_uses(fold, param) == 1;
}

// Can a step change an array of registers where it is: element by element, perhaps many
// times over?
static bool changes_in_place(const Expr *body, const Param *param, const Type *type)
{
    if (type->kind != T_ARRAY || type_tuple_of(type) || body->kind == E_PARAM)
        return false;
    if (body->kind == E_LET)
        return !expr_mentions(body->arg[0], param) &&
               changes_in_place(body->arg[1], param, type);
    if (expr_is(body, P_REDSEQ) || expr_is(body, P_REDMATRIX))
        return goes_on_from(body, param) &&
               changes_in_place(body->fun->arg[0], body->fun->params[0], type);
    return body->narg > 0 && is_elementwise(body, param);
}

static void fold_into(Lower *l, const Expr *expr, const Env *env, const View *acc);

static void change_in_place(Lower *l, const Expr *body, const Env *env, const View *acc)
{
    if (body->kind == E_LET) {
        const View *value = eval(l, body->arg[0], env);
        env = env_bind_named(l, env, body->param, value, body->arg[1]);
        change_in_place(l, body->arg[1], env, acc);
    } else if (body->pattern == P_REDSEQ) {
        fold_into(l, body, env, acc);
    } else if (body->pattern == P_REDMATRIX) {
        if (!gen_matrix(l, body, env, acc))
            fold_into(l, body, env, acc);
    } else {
        gen(l, body, env, acc);
    }
}

// Is it a fold that goes on from what was folded so far?
static bool goes_further(const Expr *body, const Param *param)
{
    bool fold =
        expr_is(body, P_REDUCE) || expr_is(body, P_REDSEQ) || expr_is(body, P_REDUNROLL);
    return fold && goes_on_from(body, param);
}

void fold_element(Lower *l, const Expr *expr, const Env *env, const View *acc,
                  const View *value)
{
    const View *arg[] = {acc, value};
    const Expr *f = expr->fun;
    bool further = goes_further(f->arg[0], f->params[0]);
    if (further ||
        (acc->kind == V_MEM && changes_in_place(f->arg[0], f->params[0], acc->type))) {
        env = env_bind(l, env, f->params[0], acc);
        env = env_bind_named(l, env, f->params[1], value, f->arg[0]);
        (further ? fold_into : change_in_place)(l, f->arg[0], env, acc);
        return;
    }
    update(l, acc, apply(l, f, env, arg));
}

static void gen_of_prefix(Lower *l, const PrefixMap *map, const View *prefix,
                          const Arith *iter, const View *out)
{
    const Expr *f = map->expr->fun;
    const View *element = prefix,
               **item = NEW_ARRAY(l->arena, const View *, map->npart + 1);
    for (int i = 0; i < map->npart; i++)
        item[i] = map->part[i] ? view_elem(l, map->part[i], iter) : prefix;
    if (map->npart)
        element = view_tuple(l, map->expr->arg[0]->type->elem, item);
    gen(l, f->arg[0], env_bind_named(l, map->env, f->params[0], element, f->arg[0]), out);
}

static void fold_step(Lower *l, void *user, const Arith *iter)
{
    Fold *fold = user;
    const View *value = view_elem(l, fold->in, iter);
    if (!fold->out) {
        fold_element(l, fold->expr, fold->env, fold->acc, value);
        return;
    }
    const View *arg[] = {fold->acc, value};
    update(l, fold->acc, apply(l, fold->expr->fun, fold->env, arg));
    const View *out = view_elem(l, fold->out, iter);
    if (fold->map)
        gen_of_prefix(l, fold->map, fold->acc, iter, out);
    else
        gen_copy(l, fold->acc, out);
}

static void fold_into(Lower *l, const Expr *expr, const Env *env, const View *acc)
{
    Fold fold = {expr, env, eval(l, expr->arg[1], env), acc, NULL};
    gen_loop(l, LOOP_SEQ, 0, expr->pattern == P_REDUNROLL, fold.in->type->len, fold_step,
             &fold);
}

const View *fold_begin(Lower *l, const Expr *expr, const Env *env)
{
    return accumulator(l, expr->arg[0], eval(l, expr->arg[0], env), expr->type, expr);
}

const View *gen_fold(Lower *l, const Expr *expr, const Env *env, const View *init,
                     const View *in, const View *out, const PrefixMap *map)
{
    const Type *type = map ? expr->type->elem : out ? out->type->elem : expr->type;
    Fold fold = {expr, env, in, accumulator(l, expr->arg[0], init, type, expr), out, map};
    gen_loop(l, LOOP_SEQ, 0, expr->pattern == P_REDUNROLL, in->type->len, fold_step, &fold);
    return fold.acc;
}

// Prefixes ------------------------------------------------------------------------------

void gen_steps(Lower *l, const Expr *expr, const Env *env, bool prefixes,
               const PrefixMap *map, const View *out)
{
    const View *in = eval(l, expr->arg[1], env);
    const View *init = in->kind == V_FOLD ? NULL : eval(l, expr->arg[0], env);
    if (l->failed)
        return;
    bool begun = kernel_begin(l, expr);
    const View *last =
        init ? gen_fold(l, expr, env, init, in, prefixes ? out : NULL, map) : in->src;
    if (!prefixes)
        gen_copy(l, last, out);
    kernel_end(l, begun);
}

// The prefix that an operand is, or that a let holds for it alone; NULL: it is none.
static const Expr *prefix_of(const Expr *operand, const Expr *let)
{
    if (let && expr_is_use(operand, let->param) && expr_uses(let->arg[1], let->param) == 1)
        operand = let->arg[0];
    return expr_is(operand, P_SCAN) || expr_is(operand, P_SCANSEQ) ? operand : NULL;
}

bool gen_prefix_map(Lower *l, const Expr *expr, const Expr *let, const Env *env,
                    const View *out)
{
    if (!l->kernel || expr->kind != E_PATTERN || expr->dims != 1 ||
        (expr->pattern != P_MAP && expr->pattern != P_MAPSEQ))
        return false;
    const Expr *in = expr->arg[0], *scan = prefix_of(in, let);
    PrefixMap map = {expr, env, NULL, expr_is(in, P_ZIP) ? in->narg : 0};
    int scans = scan != NULL, at = 0;
    for (int i = 0; i < map.npart; i++)
        if (prefix_of(in->arg[i], let))
            scan = prefix_of(in->arg[i], let), scans++, at = i;
    if (scans != 1 || (let && scan != let->arg[0]))
        return false;
    map.part = NEW_ARRAY(l->arena, const View *, map.npart + 1);
    for (int i = 0; i < map.npart; i++)
        map.part[i] = i == at ? NULL : eval(l, in->arg[i], env);
    gen_steps(l, scan, env, true, &map, out);
    return true;
}

const KExpr *fold_ahead(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    bool fold = expr_is(expr, P_REDUCE);
    if (!fold || out->kind != V_GUARD || !l->options->eager || !l->block)
        return NULL;
    int before = l->block->len;
    const KExpr *value = view_read(l, eval(l, expr, env));
    if (may_go_ahead(l->ctx, value) && block_may_go_ahead(l, l->block, before))
        return value;
    l->block->len = before;
    return NULL;
}

// Repeated steps --------------------------------------------------------------------------

// Is it the state, as it was given?
static bool is_state(const Expr *expr, const Param *state)
{
    for (int i = 0; expr->kind == E_TUPLE && i < expr->narg; i++)
        if (expr->arg[i]->kind != E_GET || expr->arg[i]->index != i ||
            !is_state(expr->arg[i]->arg[0], state))
            return false;
    return expr->kind == E_TUPLE ? type_leaves(expr->type) == type_leaves(state->type)
                                 : expr_is_use(expr, state);
}

// The `if` that a function is, below names, of which one side gives back the state; which.
static const Expr *ending_if(const Expr *function, int *side)
{
    const Expr *body = expr_behind_lets(function->arg[0]);
    if (body->kind != E_OP || body->op != OP_SELECT || function->nparam > 1)
        return NULL; // one that is told the number may go on later
    *side = is_state(body->arg[2], function->params[0]) ? 2 : 1;
    return is_state(body->arg[*side], function->params[0]) ? body : NULL;
}

bool repeat_ends(const Expr *iterate)
{
    int side;
    return ending_if(iterate->fun, &side) != NULL;
}

typedef struct {
    const Expr *expr;
    const Env *env; // with the state
    const View *acc;
    Var *goes_on; // NULL: it does all steps
    bool once;    // there is one step, and no loop
} Repeat;

// The names that a step begins with.
static const Env *names_env(Lower *l, const Repeat *r)
{
    const Expr *step = r->expr->fun->arg[0];
    return env_behind_lets(l, r->env, &step);
}

static const KExpr *goes_on(Lower *l, const Repeat *r)
{
    int side;
    const Expr *ending = ending_if(r->expr->fun, &side);
    const KExpr *cond = view_read(l, eval(l, ending->arg[0], names_env(l, r)));
    return side == 2 ? cond : k_op(l, OP_NOT, cond->type, &cond, 1);
}

static void repeat_step(Lower *l, void *user, const Arith *iter)
{
    Repeat *r = user;
    int side;
    if (!r->goes_on) {
        const Env *env = step_env(l, r->env, r->expr, r->acc, iter);
        update(l, r->acc, eval(l, r->expr->fun->arg[0], env));
        return;
    }
    const Expr *step = ending_if(r->expr->fun, &side)->arg[3 - side];
    update(l, r->acc, eval(l, step, names_env(l, r)));
    if (r->once)
        return;
    add_assign(l, r->goes_on, goes_on(l, r));
}

const View *gen_repeat(Lower *l, const Expr *expr, const Env *env, const View *init)
{
    Repeat r = {.expr = expr, .acc = accumulator(l, expr->arg[0], init, expr->type, NULL)};
    r.env = env_bind(l, env, expr->fun->params[0], r.acc);
    if (repeat_ends(expr))
        r.goes_on = add_decl(l, "on", false, goes_on(l, &r));
    int64_t steps;
    Block *here = l->block;
    r.once = arith_is_const(expr->num[0], &steps) && steps == 1;
    if (r.goes_on && r.once)
        open_if(l, k_var(l, r.goes_on));
    int before = l->block->len;
    gen_loop(l, LOOP_SEQ, 0, false, expr->num[0], repeat_step, &r);
    l->block = here;
    if (r.goes_on && !r.once && l->block->len > before &&
        l->block->at[before]->kind == ST_FOR)
        l->block->at[before]->value = k_var(l, r.goes_on);
    return r.acc;
}
