// SPDX-License-Identifier: Apache-2.0
//
// What a fold or a prefix allows: whether its parts may be folded by themselves.
//
//   method  The language promises that a fold is associative, and cannot check it. Where
//           items share a prefix, or a fold of tuples, the promise is tried on values: to
//           go on from a prefix must be the same as to fold the rest from the start value
//           and then to combine the two. The values are any at first, and then such as the
//           program folds: counts are no less than 1 where a map makes them so. Some are
//           as large as constants of the function, where it may decide (a sum that is cut
//           off at 1e6).

#include "rewrite/internal.h"

#include <math.h>

// Of TRIALS, TELLING must end in finite numbers; else nothing is known.
enum { ELEMENTS = 6, LEAVES_MOST = 8, FREE_MOST = 16, TRIALS = 64, TELLING = 4 };
enum { PARAMS_MOST = ELEMENTS * LEAVES_MOST + FREE_MOST };

// The names that a function of scalars uses from outside; false where there are too many,
// or something else than scalars.
typedef struct {
    Param *at[FREE_MOST];
    int n;
} Free;

static bool find_free(Free *f, const Expr *expr, const Expr *all)
{
    if (expr->kind == E_PATTERN)
        return false;
    if (expr->kind == E_PARAM && !expr_find(all, expr_binds, expr->param) &&
        !list_has(f->at, f->n, expr->param)) {
        if (f->n == FREE_MOST || !expr->param->type || type_holds_array(expr->param->type))
            return false;
        f->at[f->n++] = expr->param;
    }
    for (int i = 0; i < expr->narg; i++)
        if (!find_free(f, expr->arg[i], all))
            return false;
    return true;
}

// Goes on with some elements.
static Expr *folded_from(Rewrite *rw, const Expr *fold, Expr *from, Param *const *elem,
                         int n)
{
    for (int i = 0; i < n; i++) {
        Param *acc = fresh(rw, "acc");
        Expr *next =
            call_all(rw, fold->fun, (const Expr *[]){use(rw, acc), use(rw, elem[i])});
        from = expr_let(rw->ir, acc, from, next);
    }
    return from;
}

static Expr *folded(Rewrite *rw, const Expr *fold, Param *const *elem, int n)
{
    return folded_from(rw, fold, start_value(rw, fold->arg[0]), elem, n);
}

// In two parts, the first of n elements, which go on from the start value. The parts of a
// reduction may be filled up with start values, even the whole of one.
static Expr *in_two(Rewrite *rw, const Expr *fold, Param *const *elem, int n)
{
    Param *part[] = {fresh(rw, "a"), fresh(rw, "b"), fresh(rw, "e"), fresh(rw, "z")};
    int parts = expr_is(fold, P_REDUCE) ? 4 : 2;
    Expr *value[] = {folded(rw, fold, elem, n), folded(rw, fold, elem + n, ELEMENTS - n),
                     folded(rw, fold, &part[3], 1), start_value(rw, fold->arg[0])};
    Expr *all = folded(rw, fold, part, parts);
    for (int i = 0; i < parts; i++)
        all = expr_let(rw->ir, part[i], value[i], all);
    return all;
}

// In three parts, of which the last two are combined first.
static Expr *in_three(Rewrite *rw, const Expr *fold, Param *const *elem)
{
    enum { THIRD = ELEMENTS / 3 };
    Param *part[] = {fresh(rw, "a"), fresh(rw, "b"), fresh(rw, "c")};
    Expr *all = folded_from(rw, fold, use(rw, part[1]), &part[2], 1);
    Param *last = fresh(rw, "d");
    all = expr_let(rw->ir, last, all, folded_from(rw, fold, use(rw, part[0]), &last, 1));
    for (int i = 0; i < 3; i++)
        all = expr_let(rw->ir, part[i], folded(rw, fold, elem + i * THIRD, THIRD), all);
    return all;
}

// All elements in order, and the same in parts.
enum { WAYS = 4 };
static Expr *all_ways(Rewrite *rw, const Expr *fold, Param *const *elem)
{
    Expr *way[WAYS] = {folded(rw, fold, elem, ELEMENTS), in_two(rw, fold, elem, 1),
                       in_two(rw, fold, elem, ELEMENTS - 2), in_three(rw, fold, elem)};
    return expr_tuple(rw->ir, way, WAYS);
}

static bool close_enough(Scalar scalar, double a, double b)
{
    double rounding = scalar == S_BF16 ? 0.3 : scalar == S_HALF ? 0.05 : 1e-3;
    if (!scalar_info[scalar].floating || isinf(a) || isinf(b))
        return a == b;
    return (isnan(a) && isnan(b)) || fabs(a - b) <= rounding * fmax(1, fabs(a));
}

// told: of each scalar, how often it was finite.
static bool ways_agree(const Value *value, int *told)
{
    int n = value->nplane / WAYS;
    for (int p = 0; p < n; p++) {
        told[p] += isfinite(value->plane[p][0]);
        for (int way = 1; way < WAYS; way++)
            if (!close_enough(value->scalar[p], value->plane[p][0],
                              value->plane[way * n + p][0]))
                return false;
    }
    return true;
}

// Draws numbers of both signs and of some size, once in four times whole ones, and as often
// many zeros, which flags may be.
static void draw(Value *value, int seed, double by)
{
    Rng rng = rng_new((uint64_t)seed);
    value_random(value, (uint64_t)seed);
    for (int p = 0; p < value->nplane; p++) {
        Scalar scalar = value->scalar[p];
        double *x = &value->plane[p][0];
        int bits = MIN(8 * scalar_info[scalar].bytes, 52);
        bool is_unsigned = scalar_info[scalar].kind == SCALAR_UNSIGNED;
        if (scalar_info[scalar].integer && bits < 52 && seed / 64 % 4 == 3)
            *x = (double)rng_below(&rng, 1ull << bits) -
                 (is_unsigned ? 0 : ldexp(1, bits - 1));
        else if (is_unsigned)
            *x = scalar_round(scalar, *x * by);
        else if (scalar_info[scalar].integer)
            *x = scalar_round(scalar, (*x - 4) * by);
        else if (scalar != S_BOOL)
            *x = scalar_round(scalar, (*x - 1) * 4 * by);
        if (seed / 64 % 4 == 0 && rng_below(&rng, 2))
            *x = 0;
    }
}

static void shift(Value *value, double by)
{
    for (int p = 0; p < value->nplane; p++)
        if (value->scalar[p] != S_BOOL)
            value->plane[p][0] = scalar_round(value->scalar[p], value->plane[p][0] + by);
}

// Constants of a text: near them it may decide.
typedef struct {
    double *at;
    int len, cap;
    Arena *arena;
} Literals;

// A function of elements, or of the leaves that they are made of.
typedef struct {
    Function of;
    Literals literals, own; // of a sample, and of the function itself
    int *told;
    Arena *arena;
} Law;

static void note_literal(const Expr *expr, void *user)
{
    Literals *literals = user;
    if (expr->kind == E_LITERAL && expr->number != 0)
        VEC_PUSH(literals->arena, literals, expr->number);
    if (expr->kind == E_CALL && expr->callee->body)
        expr_each(expr->callee->body, note_literal, user);
}

// How large the values of a draw are. Some are as large as a constant of the function, or
// as parts of it, so that sums come to it.
static double size_of(const Law *law, int seed, int i)
{
    static const double size[] = {1, 10, 100}, part[] = {1, 0.3, 0.07};
    const int own = law->own.len, turn = seed / 4;
    if (own && seed % 4 == 2)
        return law->own.at[turn % own] * part[(turn / own + turn) % COUNTOF(part)];
    return size[(seed * 64 + i) % COUNTOF(size)];
}

static bool agrees_on(Ir *ir, Law *law, int seed)
{
    Program program = {.ir = ir, .main = &law->of};
    Diags diags = {.arena = law->arena};
    Value *in[PARAMS_MOST], *out = NULL;
    for (int i = 0; i < law->of.nparam; i++) {
        in[i] = value_new(law->arena, law->of.params[i]->type);
        draw(in[i], seed * 64 + i, size_of(law, seed, i));
        if (seed % 8 == 2) // their sums grow
            for (int p = 0; p < in[i]->nplane; p++)
                in[i]->plane[p][0] = fabs(in[i]->plane[p][0]);
        if (law->literals.len && seed % 2)
            shift(in[i], law->literals.at[(seed / 2 + i) % law->literals.len]);
    }
    return ir_eval(&program, in, law->arena, &out, 0, &diags) && ways_agree(out, law->told);
}

static bool agrees(Ir *ir, Law *law, int nscalar)
{
    law->told = NEW_ARRAY(law->arena, int, nscalar);
    for (int i = 0; i < TRIALS; i++)
        if (!agrees_on(ir, law, i))
            return false;
    for (int i = 0; i < nscalar; i++)
        if (law->told[i] < TELLING)
            return false;
    return true;
}

// Gives the elements names, where a sample makes them of leaves.
static Expr *of_leaves(Rewrite *rw, const Expr *sample, Param *const *elem,
                       Param *const *leaf, Expr *body)
{
    for (int i = 0; i < ELEMENTS; i++) {
        Expr *part[LEAVES_MOST];
        for (int k = 0; k < sample->nparam; k++)
            part[k] = use(rw, leaf[i * sample->nparam + k]);
        body = expr_let(rw->ir, elem[i], call_all(rw, sample, (const Expr *const *)part),
                        body);
    }
    return body;
}

// sample: NULL: elements are any values.
static bool parts_agree(Rewrite *rw, const Expr *fold, const Expr *sample)
{
    Arena *arena = rw->ir->arena;
    Free free = {.n = 0};
    if (!find_free(&free, fold->fun, fold->fun) ||
        !find_free(&free, fold->arg[0], fold->arg[0]) ||
        (sample && !find_free(&free, sample, sample)))
        return false;
    const Type *elem_type = data_of(fold)->type->elem;
    Param *param[PARAMS_MOST], *elem[ELEMENTS];
    int n = ELEMENTS * (sample ? sample->nparam : 1);
    for (int i = 0; i < ELEMENTS; i++)
        elem[i] = param_new(rw->ir, "x", sample ? NULL : elem_type);
    for (int i = 0; i < n; i++)
        param[i] = sample ? param_new(rw->ir, "v", sample->params[i % sample->nparam]->type)
                          : elem[i];
    for (int i = 0; i < free.n; i++)
        param[n++] = free.at[i];
    Diags diags = {.arena = arena};
    Expr *body = all_ways(rw, fold, elem);
    if (sample)
        body = of_leaves(rw, sample, elem, param, body);
    if (!ir_infer_expr(rw->ir, body, &diags))
        return false;
    Law law = {.of = {.name = "law",
                      .nparam = n,
                      .params = param,
                      .result = body->type,
                      .body = body},
               .arena = arena};
    law.literals.arena = law.own.arena = arena;
    expr_each(fold->fun, note_literal, &law.own);
    if (sample)
        expr_each(sample, note_literal, &law.literals);
    return agrees(rw->ir, &law, type_leaves(elem_type));
}

// What is known of a fold with that pattern and start value; copies of its function keep
// it.
struct FoldLaw {
    Pattern pattern;
    const Expr *start, *sample; // sample: what makes an element of scalars; NULL: unknown
    bool parts;
    bool known; // for all patterns, and not tried
};

// Tries whether it folds by parts.
static bool try_parts(const Expr *fold, const Expr *sample)
{
    const Type *to = expr_is(fold, P_SCAN) ? fold->type->elem : fold->type;
    Rewrite rw = {ir_new(), NULL};
    bool parts =
        !adds_up_others(fold->fun) && !type_holds_array(to) &&
        type_equal(rw.ir->arith, to, data_of(fold)->type->elem) &&
        (parts_agree(&rw, fold, NULL) || (sample && parts_agree(&rw, fold, sample)));
    ir_free(rw.ir);
    return parts;
}

bool folds_by_parts(const Expr *fold)
{
    if (!expr_is(fold, P_REDUCE) && !expr_is(fold, P_SCAN))
        return false;
    const FoldLaw *law = fold->fun->law;
    bool told = law && (law->known || law->pattern == fold->pattern) &&
                expr_equal(law->start, fold->arg[0]);
    return told ? law->parts : try_parts(fold, law ? law->sample : NULL);
}

void know_parts(Rewrite *rw, const Expr *fold)
{
    fold->fun->law =
        NEW_OF(rw->ir->arena, FoldLaw, .pattern = fold->pattern,
               .start = copy_of(rw, fold->arg[0]), .parts = true, .known = true);
}

// What a program folds ------------------------------------------------------------------

// Lets around an expression.
typedef struct FoldLet FoldLet;
struct FoldLet {
    const Expr *let;
    const FoldLet *outer;
};

// A chain of more maps and zips is not followed: each is copied with all below it.
enum { PATTERNS_MOST = 16 };

typedef struct {
    Rewrite rw;
    Param *leaf[LEAVES_MOST];
    int n, patterns;
} Sampled;

// An element of a list: what maps and zips make it of scalars. NULL: of too many, or of
// arrays.
static Expr *element_of_data(Sampled *s, const Expr *data, const FoldLet *bound)
{
    for (; data->kind == E_PARAM && bound; bound = bound->outer)
        if (bound->let->param == data->param)
            data = bound->let->arg[0];
    if (s->patterns++ == PATTERNS_MOST)
        return NULL;
    if (is_dims(data, P_MAP, 1)) {
        Expr *in = element_of_data(s, data_of(data), bound);
        return in ? call(&s->rw, data->fun, in) : NULL;
    }
    if (is_dims(data, P_ZIP, 1)) {
        Expr *part[PARTS_MAX];
        for (int i = 0; i < data->narg; i++)
            if (i == PARTS_MAX || !(part[i] = element_of_data(s, data->arg[i], bound)))
                return NULL;
        return expr_tuple(s->rw.ir, part, data->narg);
    }
    if (s->n == LEAVES_MOST || type_holds_array(data->type->elem))
        return NULL;
    s->leaf[s->n] = param_new(s->rw.ir, "v", data->type->elem);
    return use(&s->rw, s->leaf[s->n++]);
}

// A law is tried once, and not for each point of a space.
static void note_law(Ir *ir, const Expr *fold, const FoldLet *bound)
{
    Sampled s = {.rw = {ir, NULL}};
    const Expr *data = data_of(fold), *sample = NULL;
    const Expr *element =
        type_holds_array(data->type->elem) ? NULL : element_of_data(&s, data, bound);
    if (element && element->kind != E_PARAM)
        sample = expr_lambda(ir, arena_copy(ir->arena, s.leaf, sizeof s.leaf), s.n,
                             (Expr *)(uintptr_t)element);
    fold->fun->law = NEW_OF(ir->arena, FoldLaw, .pattern = fold->pattern,
                            .start = expr_clone(ir, fold->arg[0]), .sample = sample,
                            .parts = try_parts(fold, sample));
}

static void note_below(Ir *ir, const Expr *expr, const FoldLet *bound)
{
    bool tuples = is_dims(expr, P_REDUCE, 1) && expr->type->kind == T_TUPLE;
    if (tuples || is_dims(expr, P_SCAN, 1))
        note_law(ir, expr, bound);
    if (expr_is(expr, P_REDUCEBY) && combined(expr->fun, -1) < 0)
        note_law(ir, without_keys(ir, expr), bound);
    FoldLet let = {expr, bound};
    if (expr->fun)
        note_below(ir, expr->fun, bound);
    for (int i = 0; i < expr->narg; i++)
        note_below(ir, expr->arg[i], expr->kind == E_LET && i == 1 ? &let : bound);
}

void note_laws(Ir *ir, Expr *expr)
{
    note_below(ir, expr, NULL);
}
