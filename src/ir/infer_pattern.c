// SPDX-License-Identifier: Apache-2.0
//
// Type inference of patterns: one function a family of patterns with the same type rule.
//
//   source  the types of the Lift patterns (paper 000, section 3.2; Hagedorn et al.,
//           CGO 2018 for slide and pad), with lengths as symbolic integers
//
// What a length must satisfy is proved, refuted (an error here) or recorded as a
// condition of the program, to be checked when its sizes are bound.
#include "ir/internal.h"

// Messages -----------------------------------------------------------------------------

static const char *name_of(Infer *in, const Expr *e)
{
    const PatternInfo *info = &pattern_info[e->pattern];
    if (info->suffix == SUFFIX_PAR)
        return arena_printf(in->ir->arena, "%s%d", info->text, e->par);
    if (info->suffix == SUFFIX_DIMS && e->dims > 1)
        return arena_printf(in->ir->arena, "%s%d", info->text, e->dims);
    return info->text;
}

static const Arith *num(const Expr *e, int dim, int i)
{
    return e->num[dim * pattern_info[e->pattern].num + i];
}

// The pattern with the numbers of one dimension: `slide2(3, 1)`.
static const char *call_text(Infer *in, const Expr *e, int dim)
{
    const char *text = arena_printf(in->ir->arena, "%s(", name_of(in, e));
    int n = pattern_info[e->pattern].num;
    for (int i = 0; i < n; i++)
        text = arena_printf(in->ir->arena, "%s%s%s", text, i ? ", " : "",
                            infer_show_arith(in, num(e, dim, i)));
    return arena_printf(in->ir->arena, "%s)", text);
}

static const Type *wrong(Infer *in, const Expr *e, const char *code, const char *needs,
                         const Type *got)
{
    return diag_null(in->diags, e->span, code, "`%s` needs %s, not %s", name_of(in, e),
                     needs, infer_show(in, got));
}

// Conditions ---------------------------------------------------------------------------

// What a pattern needs in a dimension, as text only where it is asked for: types of the
// same program are inferred after each rewrite.
typedef struct {
    int dim;
    const char *what;
    const Arith *a; // after it; NULL: nothing
    const char *then;
    const Arith *b;
    bool bare; // the pattern is named without its numbers
} Needs;

static const char *needs_text(Infer *in, const Expr *e, const Needs *needs)
{
    const char *call =
        needs->bare ? pattern_info[e->pattern].text : call_text(in, e, needs->dim);
    return arena_printf(in->ir->arena, "%s needs %s%s%s%s", call, needs->what,
                        needs->a ? infer_show_arith(in, needs->a) : "",
                        needs->b ? needs->then : "",
                        needs->b ? infer_show_arith(in, needs->b) : "");
}

static void record(Infer *in, const Expr *e, const Arith *lhs, const Arith *rhs,
                   const Needs *needs)
{
    if (!in->program)
        return;
    VEC_EACH_REF(const Condition *, old, &in->program->conditions)
        if (old->lhs == lhs && old->rhs == rhs && old->span.start == e->span.start)
            return;
    VEC_PUSH(in->ir->arena, &in->program->conditions,
             (Condition){lhs, rhs, e->span, needs_text(in, e, needs)});
}

// lhs >= 0, where `here` is what the user should look at.
static bool need_nonneg(Infer *in, const Expr *e, const Arith *lhs, const Arith *here,
                        Needs needs)
{
    int64_t lo, hi;
    if (arith_nonneg(in->ir->arith, lhs))
        return true;
    arith_range(in->ir->arith, lhs, &lo, &hi);
    if (hi < 0)
        return diag_error(in->diags, e->span, "T013", "%s, not %s",
                          needs_text(in, e, &needs), infer_show_arith(in, here));
    record(in, e, lhs, NULL, &needs);
    return true;
}

// lhs mod rhs == 0; needs rhs positive.
static bool need_divides(Infer *in, const Expr *e, const Arith *lhs, const Arith *rhs,
                         Needs needs)
{
    int64_t rest;
    if (!arith_is_const(arith_mod(in->ir->arith, lhs, rhs), &rest)) {
        record(in, e, lhs, rhs, &needs);
        return true;
    }
    return rest == 0 || diag_error(in->diags, e->span, "T013", "%s, not %s",
                                   needs_text(in, e, &needs), infer_show_arith(in, lhs));
}

static bool need_positive(Infer *in, const Expr *e, const Arith *n, const char *what)
{
    return arith_nonneg(in->ir->arith, arith_addc(in->ir->arith, n, -1)) ||
           diag_error(in->diags, e->span, "T016", "the %s of `%s` must be positive, not %s",
                      what, name_of(in, e), infer_show_arith(in, n));
}

// Arguments ----------------------------------------------------------------------------

// zip3 of two matrices and a vector is a slip: the number counts dimensions, not arrays.
static const char *zip_hint(Infer *in, const Expr *e, const Type *got)
{
    int depth = type_depth(got);
    if (e->pattern != P_ZIP || depth == 0)
        return "";
    return arena_printf(in->ir->arena,
                        "; the number counts dimensions: `zip%s` takes any number of "
                        "arrays of %s",
                        depth == 1 ? "" : "2", depth == 1 ? "one" : "two");
}

// Infers argument i, of which a type is wanted or not, and checks that it is an array of at
// least `depth` dimensions.
static const Type *array_wanted(Infer *in, Expr *e, int i, int depth, const Type *want)
{
    const Type *type = infer_expr(in, e->arg[i], want);
    if (!type)
        return NULL;
    const Type *level = type;
    for (int d = 0; d < depth; d++, level = level->elem)
        if (level->kind != T_ARRAY)
            return diag_null(in->diags, e->span, "T006", "`%s` needs %s, not %s%s",
                             name_of(in, e),
                             depth == 1   ? "an array"
                             : depth == 2 ? "an array of arrays"
                                          : "an array of three dimensions or more",
                             infer_show(in, type), zip_hint(in, e, type));
    return type;
}

static const Type *array_argument(Infer *in, Expr *e, int i, int depth)
{
    return array_wanted(in, e, i, depth, NULL);
}

// Applies the function of the pattern: its parameters get these types.
const Type *infer_apply(Infer *in, Expr *e, const Type *const *arg, const Type *want)
{
    int n = e->pattern == P_ARRAY ? e->dims : pattern_info[e->pattern].fun;
    if (!e->fun || e->fun->kind != E_LAMBDA || e->fun->nparam != n)
        return diag_null(in->diags, e->span, "T010",
                         "`%s` needs a function of %d parameter%s", name_of(in, e), n,
                         n == 1 ? "" : "s");
    for (int i = 0; i < n; i++)
        e->fun->params[i]->type = arg[i];
    return infer_expr(in, e->fun->arg[0], want);
}

static const Type *array_of(Infer *in, const Arith *len, const Type *elem)
{
    return type_array(in->ir->arena, len, elem);
}

// An array with the outer `dims` lengths of shape around elem.
static const Type *shaped(Infer *in, const Type *shape, int dims, const Type *elem)
{
    if (dims == 0)
        return elem;
    return array_of(in, shape->len, shaped(in, shape->elem, dims - 1, elem));
}

static const Type *dims_of(Infer *in, const Arith *const *len, int dims, const Type *elem)
{
    for (int d = dims - 1; d >= 0; d--)
        elem = array_of(in, len[d], elem);
    return elem;
}

static void lengths(const Type *type, int n, const Arith **len)
{
    for (int d = 0; d < n; d++, type = type->elem)
        len[d] = type->len;
}

// The element wanted of an array wanted; NULL if that is not one of `depth` dimensions.
static const Type *wanted_elem(const Type *want, int depth)
{
    for (int d = 0; want && d < depth; d++)
        want = want->kind == T_ARRAY ? want->elem : NULL;
    return want;
}

// An array of `depth` dimensions of elements wanted, for literals, which ask for no
// lengths.
static const Type *wanted_array(Infer *in, const Type *elem, int depth)
{
    for (int d = 0; elem && d < depth; d++)
        elem = array_of(in, arith_const(in->ir->arith, 1), elem);
    return elem;
}

// The type of the argument of a view whose elements lie `from` dimensions deep in the
// result and `to` deep in the argument; item: the component of a tuple that it is, or -1.
static const Type *view_argument(Infer *in, Expr *e, int i, const Type *want, int from,
                                 int to, int item)
{
    const Type *elem = wanted_elem(want, from);
    if (item >= 0)
        elem = elem && elem->kind == T_TUPLE && item < elem->n ? elem->item[item] : NULL;
    return array_wanted(in, e, i, to, wanted_array(in, elem, to));
}

// Patterns that apply functions -------------------------------------------------------

static const Type *infer_map(Infer *in, Expr *e, const Type *want)
{
    const Type *x = array_argument(in, e, 0, e->dims);
    if (!x)
        return NULL;
    const Type *elem = type_elem(x, e->dims);
    const Type *result = infer_apply(in, e, &elem, wanted_elem(want, e->dims));
    return result ? shaped(in, x, e->dims, result) : NULL;
}

// Folds share all but their elements and their result: the accumulator's type, or NULL.
static const Type *infer_folded(Infer *in, Expr *e, const Type *elem, const Type *want)
{
    const Type *acc = infer_expr(in, e->arg[0], infer_accumulator_want(in, e, elem, want));
    if (!acc)
        return NULL;
    const Type *arg[2] = {acc, elem};
    const Type *result = infer_apply(in, e, arg, acc);
    if (!result || type_equal(in->ir->arith, acc, result))
        return result ? acc : NULL;
    return diag_null(
        in->diags, e->fun->span, "T011",
        "the function of `%s` must return %s, the type of its initial value, but "
        "returns %s",
        name_of(in, e), infer_show(in, acc), infer_show(in, result));
}

static const Type *infer_accumulator(Infer *in, Expr *e, const Type **array,
                                     const Type *want)
{
    *array = array_argument(in, e, 1, 1);
    return *array ? infer_folded(in, e, (*array)->elem, want) : NULL;
}

static const Type *infer_reduce(Infer *in, Expr *e, const Type *want)
{
    const Type *array;
    return infer_accumulator(in, e, &array, want);
}

// lookBack(f, z, t, v, i, w): the fold of the elements of t before i; v is element i, and w
// has room for what groups tell each other.
static const Type *infer_look_back(Infer *in, Expr *e, const Type *want)
{
    const Type *folded = infer_reduce(in, e, want);
    const Type *index = folded ? infer_expr(in, e->arg[3], type_scalar(S_INT)) : NULL;
    const Type *own = index ? infer_expr(in, e->arg[2], folded) : NULL;
    const Type *room = own ? array_argument(in, e, 4, 2) : NULL;
    if (!room)
        return NULL;
    if (!type_equal(in->ir->arith, own, folded))
        return wrong(in, e, "T015", "an element as its third argument", own);
    if (!type_equal(in->ir->arith, index, type_scalar(S_INT)))
        return wrong(in, e, "T015", "an int, the element's index", index);
    if (!type_equal(in->ir->arith, room->elem->elem, type_scalar(S_LONG)))
        return wrong(in, e, "T015", "rows of long as the last argument", room);
    return folded;
}

// Elements with keys, as what is folded: the type of the values beside the keys.
static const Type *keyed_value(Infer *in, Expr *e, const Type *elem)
{
    bool pair = elem->kind == T_TUPLE && elem->n == 2 && elem->item[0]->kind == T_SCALAR &&
                elem->item[0]->scalar == S_INT;
    return pair ? elem->item[1]
                : wrong(in, e, "T015", "elements (int, T), each a key and a value", elem);
}

static const Type *infer_reduce_by(Infer *in, Expr *e, const Type *want)
{
    const Type *array = array_argument(in, e, 1, 1);
    Needs needs = {.what = "a length that is not negative", .bare = true};
    if (!array || !need_nonneg(in, e, num(e, 0, 0), num(e, 0, 0), needs))
        return NULL;
    const Type *value = keyed_value(in, e, array->elem);
    const Type *acc = value ? infer_folded(in, e, value, wanted_elem(want, 1)) : NULL;
    return acc ? array_of(in, e->num[0], acc) : NULL;
}

// An array that elements with keys, in rows, update.
static const Type *infer_update(Infer *in, Expr *e, const Type *want)
{
    const Type *rows = array_argument(in, e, 1, 2);
    const Type *array = rows ? array_wanted(in, e, 0, 1, want) : NULL;
    const Type *value = array ? keyed_value(in, e, type_elem(rows, 2)) : NULL;
    const Type *arg[2] = {value ? array->elem : NULL, value};
    const Type *result = value ? infer_apply(in, e, arg, array->elem) : NULL;
    if (!result || type_equal(in->ir->arith, array->elem, result))
        return result ? array : NULL;
    return wrong(in, e, "T011", "a function that returns elements of the array", result);
}

static const Type *infer_scan(Infer *in, Expr *e, const Type *want)
{
    const Type *array, *acc = infer_accumulator(in, e, &array, wanted_elem(want, 1));
    return acc ? array_of(in, array->len, acc) : NULL;
}

static const Type *infer_iterate(Infer *in, Expr *e, const Type *want)
{
    const Type *x = infer_expr(in, e->arg[0], infer_state_want(in, e, want));
    Needs needs = {.what = "a count that is not negative", .bare = true};
    if (!x || !need_nonneg(in, e, num(e, 0, 0), num(e, 0, 0), needs))
        return NULL;
    const Type *result = infer_apply(in, e, &x, x);
    if (!result || type_equal(in->ir->arith, x, result))
        return result;
    return diag_null(
        in->diags, e->fun->span, "T011",
        "the function of `iterate` must return what it takes, %s, but returns %s",
        infer_show(in, x), infer_show(in, result));
}

// Its function takes one index a dimension.
static const Type *infer_array(Infer *in, Expr *e, const Type *want)
{
    const Type *index[DIMS_MAX];
    for (int d = 0; d < e->dims; d++) {
        index[d] = type_scalar(S_INT);
        Needs needs = {.what = "a length that is not negative", .bare = true};
        if (!need_nonneg(in, e, num(e, d, 0), num(e, d, 0), needs))
            return NULL;
    }
    const Type *elem = infer_apply(in, e, index, wanted_elem(want, e->dims));
    return elem ? dims_of(in, e->num, e->dims, elem) : NULL;
}

// gather and scatter
static const Type *infer_permute(Infer *in, Expr *e, const Type *want)
{
    const Type *x = array_wanted(in, e, 0, 1, want), *index = type_scalar(S_INT);
    const Type *result = x ? infer_apply(in, e, &index, index) : NULL;
    e->fun->turns =
        result && expr_turns(in->ir->arith, e->fun->arg[0], e->fun->params[0], x->len);
    if (!result || type_equal(in->ir->arith, result, index))
        return result ? x : NULL;
    return diag_null(in->diags, e->fun->span, "T011",
                     "the function of `%s` must return an index, an int, but returns %s",
                     name_of(in, e), infer_show(in, result));
}

// Views --------------------------------------------------------------------------------

static bool same_lengths(Infer *in, const Expr *e, const Type *a, const Type *b)
{
    const Type *x = a, *y = b;
    for (int d = 0; d < e->dims; d++, x = x->elem, y = y->elem)
        if (!arith_equal(in->ir->arith, x->len, y->len))
            return diag_error(in->diags, e->span, "T012",
                              "`%s` needs arrays of equal lengths, not %s and %s",
                              name_of(in, e), infer_show(in, a), infer_show(in, b));
    return true;
}

static const Type *infer_zip(Infer *in, Expr *e, const Type *want)
{
    const Type **item = NEW_ARRAY(in->ir->arena, const Type *, e->narg);
    bool ok = e->narg > 1 || diag_error(in->diags, e->span, "T012",
                                        "`%s` needs two arrays or more", name_of(in, e));
    bool shallow = false; // one has too few dimensions: then the others have, too
    for (int i = 0; i < e->narg && !shallow; i++) {
        const Type *x = view_argument(in, e, i, want, e->dims, e->dims, i);
        ok = x && ok;
        shallow = !x && e->arg[i]->type;
        item[i] = ok ? type_elem(x, e->dims) : NULL;
    }
    for (int i = 1; ok && i < e->narg; i++)
        ok = same_lengths(in, e, e->arg[0]->type, e->arg[i]->type);
    if (!ok)
        return NULL;
    return shaped(in, e->arg[0]->type, e->dims, type_tuple(in->ir->arena, item, e->narg));
}

// The array of tuples that is wanted of a tuple of arrays; all dimensions are before the
// tuple. NULL if they differ.
static const Type *zipped(Infer *in, const Type *want)
{
    if (!want || want->kind != T_TUPLE)
        return NULL;
    int depth = type_depth(want->item[0]);
    const Type **item = NEW_ARRAY(in->ir->arena, const Type *, want->n);
    for (int i = 0; i < want->n; i++) {
        if (type_depth(want->item[i]) != depth)
            return NULL;
        item[i] = type_leaf(want->item[i]);
    }
    return wanted_array(in, type_tuple(in->ir->arena, item, want->n), depth);
}

static const Type *infer_unzip(Infer *in, Expr *e, const Type *want)
{
    const Type *x = array_wanted(in, e, 0, 1, zipped(in, want)),
               *tuple = x ? type_tuple_of(x) : NULL;
    if (!x)
        return NULL;
    if (!tuple)
        return wrong(in, e, "T009", "an array of tuples", x);
    const Type **item = NEW_ARRAY(in->ir->arena, const Type *, tuple->n);
    for (int i = 0; i < tuple->n; i++)
        item[i] = type_field(in->ir->arena, x, i);
    return type_tuple(in->ir->arena, item, tuple->n);
}

static bool split_length(Infer *in, const Expr *e, int d, const Arith *len)
{
    const Arith *n = num(e, d, 0);
    return need_positive(in, e, n, "length") &&
           need_divides(in, e, len, n,
                        (Needs){.dim = d, .what = "a length divisible by ", .a = n});
}

static const Type *infer_split(Infer *in, Expr *e, const Type *want)
{
    const Type *x = view_argument(in, e, 0, want, 2 * e->dims, e->dims, -1);
    if (!x)
        return NULL;
    const Arith *len[2 * DIMS_MAX];
    lengths(x, e->dims, len);
    for (int d = 0; d < e->dims; d++) {
        if (!split_length(in, e, d, len[d]))
            return NULL;
        len[d] = arith_div(in->ir->arith, len[d], num(e, d, 0));
        len[e->dims + d] = num(e, d, 0);
    }
    return dims_of(in, len, 2 * e->dims, type_elem(x, e->dims));
}

static const Type *infer_join(Infer *in, Expr *e, const Type *want)
{
    const Type *x = view_argument(in, e, 0, want, e->dims, 2 * e->dims, -1);
    if (!x)
        return NULL;
    const Arith *len[2 * DIMS_MAX];
    lengths(x, 2 * e->dims, len);
    for (int d = 0; d < e->dims; d++)
        len[d] = arith_mul(in->ir->arith, len[d], len[e->dims + d]);
    return dims_of(in, len, e->dims, type_elem(x, 2 * e->dims));
}

// The number of windows over len elements, NULL if it cannot be.
static const Arith *windows(Infer *in, const Expr *e, int d, const Arith *len)
{
    const Arith *size = num(e, d, 0), *step = num(e, d, 1);
    if (!need_positive(in, e, size, "size") || !need_positive(in, e, step, "step"))
        return NULL;
    const Arith *slack = arith_sub(in->ir->arith, len, size);
    Needs least = {.dim = d, .what = "a length of at least ", .a = size};
    Needs rest = {d, "(length - ", size, ") divisible by ", step, false};
    if (!need_nonneg(in, e, slack, len, least) || !need_divides(in, e, slack, step, rest))
        return NULL;
    return arith_addc(in->ir->arith, arith_div(in->ir->arith, slack, step), 1);
}

static const Type *slide_type(Infer *in, const Expr *e, const Type *x)
{
    const Arith *len[2 * DIMS_MAX];
    lengths(x, e->dims, len);
    for (int d = 0; d < e->dims; d++) {
        len[d] = windows(in, e, d, len[d]);
        if (!len[d])
            return NULL;
        len[e->dims + d] = num(e, d, 0);
    }
    return dims_of(in, len, 2 * e->dims, type_elem(x, e->dims));
}

static const Type *infer_slide(Infer *in, Expr *e)
{
    const Type *x = array_argument(in, e, 0, e->dims);
    return x ? slide_type(in, e, x) : NULL;
}

static const Type *infer_map_slide(Infer *in, Expr *e, const Type *want)
{
    const Type *x = array_argument(in, e, 0, 1);
    const Type *slid = x ? slide_type(in, e, x) : NULL;
    const Type *result =
        slid ? infer_apply(in, e, &slid->elem, wanted_elem(want, 1)) : NULL;
    return result ? array_of(in, slid->len, result) : NULL;
}

// One padding amount: not negative, and within what the mode can reach.
static bool pad_amount(Infer *in, const Expr *e, int d, int side, const Arith *len)
{
    const Arith *n = num(e, d, side);
    if (!need_nonneg(in, e, n, n, (Needs){.dim = d, .what = "amounts not negative"}))
        return false;
    Needs reach = {.dim = d, .what = "a length of at least ", .a = n};
    Needs one = {.dim = d, .what = "a length of at least 1"};
    switch (e->mode) {
    case PAD_UNREAD:
    case PAD_CLAMP: return need_nonneg(in, e, arith_addc(in->ir->arith, len, -1), len, one);
    case PAD_MIRROR:
    case PAD_WRAP: return need_nonneg(in, e, arith_sub(in->ir->arith, len, n), len, reach);
    case PAD_CONSTANT: return true;
    }
    BUG("pad mode %d", (int)e->mode);
}

static bool pad_constant(Infer *in, Expr *e, const Type *x)
{
    const Type *type = infer_expr(in, e->arg[0], type_leaf(x));
    if (!type)
        return false;
    return type_equal(in->ir->arith, type, type_leaf(x)) ||
           diag_error(in->diags, e->arg[0]->span, "T004",
                      "the constant of `%s` must be %s, not %s", name_of(in, e),
                      infer_show(in, type_leaf(x)), infer_show(in, type));
}

static const Type *infer_pad(Infer *in, Expr *e, const Type *want)
{
    const Type *x = array_wanted(in, e, e->narg - 1, e->dims, want);
    if (!x || (e->mode == PAD_CONSTANT && !pad_constant(in, e, x)))
        return NULL;
    const Arith *len[DIMS_MAX];
    lengths(x, e->dims, len);
    for (int d = 0; d < e->dims; d++) {
        if (!pad_amount(in, e, d, 0, len[d]) || !pad_amount(in, e, d, 1, len[d]))
            return NULL;
        len[d] = arith_add(in->ir->arith, arith_add(in->ir->arith, len[d], num(e, d, 0)),
                           num(e, d, 1));
    }
    return dims_of(in, len, e->dims, type_elem(x, e->dims));
}

static const Type *infer_transpose(Infer *in, Expr *e, const Type *want)
{
    const Type *x = array_wanted(in, e, 0, 2, want);
    if (!x)
        return NULL;
    return array_of(in, x->elem->len, array_of(in, x->len, x->elem->elem));
}

// take and drop
static const Type *infer_part(Infer *in, Expr *e, const Type *want)
{
    const Type *x = array_wanted(in, e, 0, e->dims, want);
    if (!x)
        return NULL;
    const Arith *len[DIMS_MAX];
    lengths(x, e->dims, len);
    for (int d = 0; d < e->dims; d++) {
        const Arith *n = num(e, d, 0), *rest = arith_sub(in->ir->arith, len[d], n);
        Needs sign = {.dim = d, .what = "a count not negative"};
        Needs least = {.dim = d, .what = "a length of at least ", .a = n};
        if (!need_nonneg(in, e, n, n, sign) || !need_nonneg(in, e, rest, len[d], least))
            return NULL;
        len[d] = e->pattern == P_TAKE ? n : rest;
    }
    return dims_of(in, len, e->dims, type_elem(x, e->dims));
}

static const Type *infer_as_vector(Infer *in, Expr *e)
{
    const Type *x = array_argument(in, e, 0, 1);
    if (!x)
        return NULL;
    int64_t width;
    if (!arith_is_const(num(e, 0, 0), &width) || (width != 2 && width != 4 && width != 8))
        return diag_null(in->diags, e->span, "T015", "a vector has width 2, 4 or 8, not %s",
                         infer_show_arith(in, num(e, 0, 0)));
    if (x->elem->kind != T_SCALAR)
        return wrong(in, e, "T015", "an array of scalars", x);
    if (!split_length(in, e, 0, x->len))
        return NULL;
    return array_of(in, arith_divc(in->ir->arith, x->len, width),
                    type_vector(x->elem->scalar, (int)width));
}

static const Type *infer_as_scalar(Infer *in, Expr *e)
{
    const Type *x = array_argument(in, e, 0, 1);
    if (!x)
        return NULL;
    if (x->elem->kind != T_VECTOR)
        return wrong(in, e, "T015", "an array of vectors", x);
    return array_of(in, arith_mulc(in->ir->arith, x->len, x->elem->width),
                    type_scalar(x->elem->scalar));
}

// All ----------------------------------------------------------------------------------

static bool well_formed(Infer *in, const Expr *e)
{
    const PatternInfo *info = &pattern_info[e->pattern];
    if (e->nnum != e->dims * info->num)
        BUG("%s with %d numbers", name_of(in, e), e->nnum);
    int data = info->data + (e->pattern == P_PAD && e->mode == PAD_CONSTANT);
    if (info->data < 0 ? e->narg > 0 : e->narg == data)
        return true;
    return diag_error(in->diags, e->span, "T003", "`%s` takes %d array argument%s, not %d",
                      name_of(in, e), data, data == 1 ? "" : "s", e->narg);
}

const Type *infer_pattern(Infer *in, Expr *e, const Type *want)
{
    if (!well_formed(in, e))
        return NULL;
    switch (e->pattern) {
    case P_MAP:
    case P_MAPGLB:
    case P_MAPWRG:
    case P_MAPLCL:
    case P_MAPSEQ:
    case P_MAPUNROLL: return infer_map(in, e, want);
    case P_REDUCE:
    case P_REDSEQ:
    case P_REDMATRIX:
    case P_REDLANES:
    case P_REDUNROLL: return infer_reduce(in, e, want);
    case P_LOOKBACK: return infer_look_back(in, e, want);
    case P_SCAN:
    case P_SCANSEQ: return infer_scan(in, e, want);
    case P_REDUCEBY: return infer_reduce_by(in, e, want);
    case P_REDBYGLB:
    case P_REDBYOWN:
    case P_REDBYLCL: return infer_update(in, e, want);
    case P_ITERATE:
    case P_ITERSTREAM: return infer_iterate(in, e, want);
    case P_ARRAY: return infer_array(in, e, want);
    case P_ZIP: return infer_zip(in, e, want);
    case P_UNZIP: return infer_unzip(in, e, want);
    case P_SPLIT: return infer_split(in, e, want);
    case P_JOIN: return infer_join(in, e, want);
    case P_SLIDE: return infer_slide(in, e);
    case P_PAD: return infer_pad(in, e, want);
    case P_TRANSPOSE: return infer_transpose(in, e, want);
    case P_GATHER:
    case P_SCATTER: return infer_permute(in, e, want);
    case P_TAKE:
    case P_DROP: return infer_part(in, e, want);
    case P_ASVECTOR: return infer_as_vector(in, e);
    case P_ASSCALAR: return infer_as_scalar(in, e);
    case P_MAPSLIDE: return infer_map_slide(in, e, want);
    case P_TOGLOBAL:
    case P_TOLOCAL:
    case P_TOPRIVATE: return infer_expr(in, e->arg[0], want);
    case PATTERNS: break;
    }
    BUG("pattern %d", (int)e->pattern);
}
