// SPDX-License-Identifier: Apache-2.0
//
// Views: what an array-valued expression means as accesses to memory.
//
//   method  indexing a view gives a view of the element; a layout pattern waits until it
//           has all its indices and then indexes its source with the combined ones. The
//           walk ends at a scalar in memory, a variable or a computed value (Lift, CGO
//           2017, section 5.3). On the writing side a layout pattern is replaced by its
//           inverse around the destination, so one mechanism serves both directions.
//
// Arrays of tuples are one array a component everywhere: zip and unzip cost nothing.

#include "lower/internal.h"

#include <string.h>

// Constructors ---------------------------------------------------------------------------

static View *view_new(Lower *l, ViewKind kind, const Type *type, const View *src)
{
    View *view = NEW_RAW(l->arena, View, 1);
    *view = (View){.kind = kind, .type = type, .src = src};
    return view;
}

static View *view_copy(Lower *l, const View *from, const Type *type)
{
    View *view = arena_copy(l->arena, from, sizeof(View));
    view->type = type;
    return view;
}

const View *view_mem(Lower *l, const Buffer *buffer, const Arith *offset, const Type *type)
{
    View *view = view_new(l, V_MEM, type, NULL);
    view->buffer = buffer;
    view->offset = offset;
    return view;
}

const View *view_value(Lower *l, const KExpr *value)
{
    View *view = view_new(l, V_VALUE, value->type, NULL);
    view->value = value;
    return view;
}

const View *view_var(Lower *l, const Var *var)
{
    View *view = view_new(l, V_VAR, var->type, NULL);
    view->var = var;
    return view;
}

const View *view_leaves(Lower *l, const Type *type, const View *a, const View *b,
                        LeafView *leaf, const void *user)
{
    if (type->kind != T_TUPLE)
        return leaf(l, type, a, b, user);
    const View **item = NEW_ARRAY(l->arena, const View *, type->n);
    for (int i = 0; i < type->n; i++)
        item[i] = view_leaves(l, type->item[i], a ? view_get(l, a, i) : NULL,
                              b ? view_get(l, b, i) : NULL, leaf, user);
    return view_tuple(l, type, item);
}

bool view_is_known(const View *view, int64_t *value)
{
    return view->kind == V_VALUE && view->value->kind == K_INDEX &&
           arith_is_const(view->value->arith, value);
}

const View *view_tuple(Lower *l, const Type *type, const View *const *item)
{
    View *view = view_new(l, V_TUPLE, type, NULL);
    view->item = COPY_ARRAY(l->arena, item, type_tuple_of(type)->n);
    return view;
}

const View *view_components(Lower *l, const Type *type, const View *of)
{
    int n = type_tuple_of(type)->n;
    const View **item = NEW_ARRAY(l->arena, const View *, n);
    for (int i = 0; i < n; i++)
        item[i] = view_get(l, of, i);
    return view_tuple(l, type, item);
}

const View *view_layout(Lower *l, Pattern pattern, int dims, const Arith *const *num,
                        const View *src, const Type *type)
{
    View *view = view_new(l, V_LAYOUT, type, src);
    view->pattern = pattern;
    view->dims = dims;
    view->num = num;
    return view;
}

const View *view_fold(Lower *l, const Type *type, const Expr *fold, const Env *env,
                      const View *acc)
{
    View *view = view_new(l, V_FOLD, type, acc);
    view->expr = fold;
    view->env = env;
    return view;
}

static View *view_pattern(Lower *l, ViewKind kind, const Type *type, const Expr *expr,
                          const Env *env, const View *src)
{
    View *view = view_new(l, kind, type, src);
    view->pattern = expr->pattern;
    view->dims = expr->dims;
    view->num = expr->num;
    view->expr = expr;
    view->env = env;
    return view;
}

// A pattern over an evaluated source: layout, lazy map or generated array.
const View *view_of(Lower *l, const Expr *expr, const Env *env, const View *src)
{
    if (expr->pattern == P_JOIN && src->kind == V_LAYOUT && src->pattern == P_SPLIT &&
        src->dims == expr->dims && !src->nindex)
        return src->src; // as it was
    ViewKind kind = expr->pattern == P_MAP     ? V_MAP
                    : expr->pattern == P_ARRAY ? V_ARRAY
                                               : V_LAYOUT;
    View *view = view_pattern(l, kind, expr->type, expr, env, src);
    if (expr->pattern == P_PAD && expr->mode == PAD_CONSTANT)
        view->fill = eval(l, expr->arg[0], env);
    return view;
}

// An array, or a scalar, that is `fill` everywhere.
static const View *view_filled(Lower *l, const Type *type, const View *fill)
{
    if (type->kind != T_ARRAY)
        return fill;
    View *view = view_new(l, V_FILL, type, NULL);
    view->fill = fill;
    return view;
}

static const View *view_cond(Lower *l, ViewKind kind, const Arith *const *cond, int n,
                             const View *src, const View *fill)
{
    View *view = view_new(l, kind, src->type, src);
    for (int i = 0; i < n; i++) {
        int64_t lo, hi;
        arith_range(l->ctx, cond[i], &lo, &hi);
        if (hi < 0 && kind == V_COND)
            return view_filled(l, src->type, fill);
        if (!arith_nonneg(l->ctx, cond[i]))
            view->cond[view->ncond++] = cond[i];
    }
    view->fill = fill;
    return view->ncond ? view : src;
}

// Passes walk an index as a tree, and views may double it each.
enum { INDEX_PARTS_MAX = 4000 };

// Indexing ----------------------------------------------------------------------------

// The last vector at most, so that what lies side by side can be loaded at once; NULL: its
// place is not known.
static const Arith *in_last_vector(Lower *l, const Arith *i, const Arith *len)
{
    ArithCtx *c = l->ctx;
    const int64_t width = l->options->vector, value = i->kind == A_SUM ? i->value : 0;
    const Arith *lane = arith_const(c, width > 1 ? (value % width + width) % width : 0);
    const Arith *first = arith_sub(c, i, lane), *last = arith_addc(c, len, -width);
    if (width < 2 || arith_multiple(c, first) % width || arith_multiple(c, len) % width ||
        !arith_nonneg(c, last))
        return NULL;
    first = arith_max(c, first, arith_const(c, 0));
    return arith_add(c, arith_min(c, first, last), lane);
}

static const Arith *boundary(Lower *l, PadMode mode, const Arith *i, const Arith *len)
{
    ArithCtx *c = l->ctx;
    const Arith *zero = arith_const(c, 0), *last = arith_addc(c, len, -1);
    const Arith *near = mode == PAD_UNREAD ? in_last_vector(l, i, len) : NULL;
    if (near)
        return near;
    switch (mode) {
    case PAD_UNREAD:
    case PAD_CLAMP: return arith_min(c, arith_max(c, i, zero), last);
    case PAD_MIRROR:
        i = arith_max(c, i, arith_sub(c, arith_const(c, -1), i));
        return arith_min(c, i, arith_sub(c, arith_add(c, len, last), i));
    case PAD_WRAP: return arith_mod(c, arith_add(c, i, len), len);
    case PAD_CONSTANT: break; // only read where it is within
    }
    return i;
}

// Does looking for an element make no statements, nor values?
static bool is_plain(const View *view)
{
    switch (view->kind) {
    case V_MEM:
    case V_VAR:
    case V_VALUE:
    case V_FILL:
    case V_LATER:
    case V_FOLD:
    case V_WINDOW: return true;
    case V_TUPLE:
        for (int i = 0; i < type_tuple_of(view->type)->n; i++)
            if (!is_plain(view->item[i]))
                return false;
        return true;
    case V_LAYOUT:
        return view->pattern != P_ASVECTOR && view->pattern != P_ASSCALAR &&
               is_plain(view->src);
    case V_FIELD:
    case V_COND: return is_plain(view->src);
    case V_MAP:
    case V_ARRAY:
    case V_GUARD:
    case V_CROP:
    case V_UNMAP: return false;
    }
    BUG("view of kind %d", (int)view->kind);
}

static const View *view_later(Lower *l, const View *src, const Type *type,
                              const Arith *index, int field)
{
    View *view = view_new(l, V_LATER, type, src);
    view->index[0] = index;
    view->field = field;
    return view;
}

// An element that is there only where the conditions hold.
static const View *elem_behind(Lower *l, const Arith *const cond[2], const View *src,
                               const Arith *index)
{
    const bool there = arith_nonneg(l->ctx, cond[0]) && arith_nonneg(l->ctx, cond[1]);
    return there || is_plain(src) ? view_elem(l, src, index)
                                  : view_later(l, src, src->type->elem, index, 0);
}

// What is looked for now.
static const View *look_for(Lower *l, const View *view)
{
    if (view->kind != V_LATER)
        return view;
    const View *src = look_for(l, view->src);
    return view->index[0] ? view_elem(l, src, view->index[0])
                          : view_get(l, src, view->field);
}

// The view of an element along the other dimensions; nums: how many numbers one has.
static const View *rest_of(Lower *l, const View *view, const View *src, int nums)
{
    View *rest = view_copy(l, view, view->type->elem);
    rest->src = src;
    rest->dims--;
    rest->num += nums;
    return rest;
}

static const View *at_pad(Lower *l, const View *view, const Arith *index)
{
    const Arith *len = view->src->type->len;
    const Arith *i = arith_sub(l->ctx, index, view->num[0]);
    PadMode mode = view->expr->mode;
    bool constant = mode == PAD_CONSTANT;
    const Arith *cond[] = {i, arith_sub(l->ctx, arith_addc(l->ctx, len, -1), i)};
    const View *src = constant ? elem_behind(l, cond, view->src, i)
                               : view_elem(l, view->src, boundary(l, mode, i, len));
    if (view->dims > 1)
        src = rest_of(l, view, src, 2);
    return constant ? view_cond(l, V_COND, cond, 2, src, view->fill) : src;
}

// take and drop, and the writing side of take, go one dimension at a time.
// Is the place of an element read from memory? That is read before a guard opens.
static bool is_scattered(const View *view)
{
    for (; view && view->kind != V_MEM; view = view->src)
        if (view->pattern == P_SCATTER && view->expr)
            return true;
    return false;
}

static const View *at_part(Lower *l, const View *view, const Arith *index)
{
    const Arith *i =
        view->pattern == P_DROP ? arith_add(l->ctx, index, view->num[0]) : index;
    if (view->kind == V_CROP && is_scattered(view->src))
        i = arith_min(l->ctx, i, arith_addc(l->ctx, view->num[0], -1));
    const View *src = view_elem(l, view->src, i);
    if (view->dims > 1)
        src = rest_of(l, view, src, 1);
    if (view->kind != V_CROP)
        return src;
    const Arith *cond = arith_addc(l->ctx, arith_sub(l->ctx, view->num[0], index), -1);
    return view_cond(l, V_GUARD, &cond, 1, src, NULL);
}

static int indices_wanted(const View *view)
{
    switch (view->pattern) {
    case P_SPLIT:
    case P_SLIDE: return 2 * view->dims;
    case P_TRANSPOSE: return 2;
    case P_JOIN:
    case P_MAP:
    case P_ARRAY: return view->dims;
    default: return 1;
    }
}

// Outer index o and inner index e of dimension k become o * step + e of the source.
static const View *at_windows(Lower *l, const View *v)
{
    const View *src = v->src;
    for (int k = 0; k < v->dims; k++) {
        const Arith *step = v->num[v->pattern == P_SLIDE ? 2 * k + 1 : k];
        const Arith *outer = arith_mul(l->ctx, v->index[k], step);
        src = view_elem(l, src, arith_add(l->ctx, outer, v->index[v->dims + k]));
    }
    return src;
}

static const View *at_join(Lower *l, const View *v)
{
    const View *src = v->src;
    const Arith *len[DIMS_MAX];
    for (int k = 0; k < v->dims; k++)
        len[k] = type_elem(v->src->type, v->dims + k)->len;
    for (int k = 0; k < v->dims; k++)
        src = view_elem(l, src, arith_div(l->ctx, v->index[k], len[k]));
    for (int k = 0; k < v->dims; k++)
        src = view_elem(l, src, arith_mod(l->ctx, v->index[k], len[k]));
    return src;
}

static const View *at_vector(Lower *l, const View *v)
{
    const Type *type = v->type;
    const Arith *first = arith_mul(l->ctx, v->index[0], v->num[0]);
    const View *start = view_elem(l, v->src, first);
    if (start->kind == V_MEM && v->src->kind == V_MEM)
        return view_mem(l, start->buffer, start->offset, type);
    const KExpr *lane[8];
    for (int i = 0; i < type->width; i++)
        lane[i] = view_read(l, view_elem(l, v->src, arith_addc(l->ctx, first, i)));
    return view_value(l, k_vector(l, type, lane));
}

static const View *at_scalar(Lower *l, const View *v)
{
    const Type *vector = v->src->type->elem;
    const Arith *width = arith_const(l->ctx, vector->width);
    const View *from = view_elem(l, v->src, arith_div(l->ctx, v->index[0], width));
    const Arith *lane = arith_mod(l->ctx, v->index[0], width);
    int64_t number;
    if (from->kind == V_MEM)
        return view_mem(l, from->buffer, arith_add(l->ctx, from->offset, lane), v->type);
    if (arith_is_const(lane, &number))
        return view_value(l, k_lane(l, view_read(l, from), (int)number));
    return lower_fail(l, span_none, "L010",
                      "asScalar of computed vectors needs an unrolled loop");
}

static const View *apply_index(Lower *l, const View *v, int n)
{
    const View *arg[DIMS_MAX];
    for (int i = 0; i < n; i++)
        arg[i] = view_value(l, k_index(l, v->index[i]));
    return apply(l, v->expr->fun, v->env, arg);
}

static const View *at_all(Lower *l, const View *v)
{
    switch (v->pattern) {
    case P_SPLIT:
    case P_SLIDE: return at_windows(l, v);
    case P_JOIN: return at_join(l, v);
    case P_TRANSPOSE: return view_elem(l, view_elem(l, v->src, v->index[1]), v->index[0]);
    case P_GATHER:
    case P_SCATTER: {
        const KExpr *to = view_read(l, apply_index(l, v, 1));
        return view_elem(l, v->src, value_index(l, to, v->expr->span));
    }
    case P_ASVECTOR: return at_vector(l, v);
    case P_ASSCALAR: return at_scalar(l, v);
    case P_ARRAY: return apply_index(l, v, v->dims);
    case P_MAP: {
        const View *elem = env_element(l, v);
        if (elem)
            return elem;
        elem = v->src;
        for (int k = 0; k < v->dims; k++)
            elem = view_elem(l, elem, v->index[k]);
        return env_keep_element(l, v, apply(l, v->expr->fun, v->env, &elem));
    }
    default: BUG("no view of %s", pattern_info[v->pattern].text);
    }
}

static const View *at_pending(Lower *l, const View *view, const Arith *index)
{
    if (view->pattern == P_PAD)
        return at_pad(l, view, index);
    if (view->pattern == P_TAKE || view->pattern == P_DROP)
        return at_part(l, view, index);
    View *more = view_copy(l, view, view->type->elem);
    more->index[more->nindex++] = index;
    return more->nindex == indices_wanted(more) ? at_all(l, more) : more;
}

static const View *at_tuple(Lower *l, const View *view, const Arith *index)
{
    int n = type_tuple_of(view->type)->n;
    const View **item = NEW_ARRAY(l->arena, const View *, n);
    for (int i = 0; i < n; i++)
        item[i] = view_elem(l, view->item[i], index);
    return view_tuple(l, view->type->elem, item);
}

// The writing side of map f: element `index` of the destination, seen through f.
static const View *at_unmap(Lower *l, const View *view, const Arith *index)
{
    const View *dest = view_elem(l, view->src, index);
    if (view->dims > 1)
        return rest_of(l, view, dest, 0);
    const Expr *body = view->expr->fun->arg[0];
    for (; body->kind == E_PATTERN; body = body->arg[body->narg - 1])
        dest = view_inverse(l, body, view->env, dest);
    return dest;
}

// What stands for an element or a component once lowering has failed: whoever walks over a
// type comes to its end.
static const View *view_none(Lower *l, const Type *type)
{
    View *view = view_new(l, V_VALUE, type, NULL);
    view->value = k_literal(l, 0, type_scalar(S_INT));
    return view;
}

const View *view_elem(Lower *l, const View *view, const Arith *index)
{
    if (arith_parts(l->ctx, index) > INDEX_PARTS_MAX)
        lower_fail(l, view->expr ? view->expr->span : span_none, "L022",
                   "an index through all these views has more than %d parts",
                   INDEX_PARTS_MAX);
    if (l->failed)
        return view->type->kind == T_ARRAY ? view_none(l, view->type->elem) : view;
    const Type *elem = view->type->elem;
    switch (view->kind) {
    case V_MEM: {
        const Arith *step = arith_mul(l->ctx, index, mem_count(l->ctx, view->buffer, elem));
        return view_mem(l, view->buffer, arith_add(l->ctx, view->offset, step), elem);
    }
    case V_TUPLE: return at_tuple(l, view, index);
    case V_FIELD: return view_get(l, view_elem(l, view->src, index), view->field);
    case V_FILL: return view_filled(l, elem, view->fill);
    case V_LAYOUT:
    case V_MAP:
    case V_ARRAY: return at_pending(l, view, index);
    case V_COND:
    case V_GUARD:
        return view_cond(l, view->kind, view->cond, view->ncond,
                         view_elem(l, view->src, index), view->fill);
    case V_CROP: return at_part(l, view, index);
    case V_LATER: return view_later(l, view, elem, index, 0);
    case V_FOLD: {
        View *each = view_copy(l, view, elem);
        each->nindex = 1;
        return each;
    }
    case V_WINDOW: return window_elem(l, view, index);
    case V_UNMAP: return at_unmap(l, view, index);
    case V_VAR:
    case V_VALUE: break;
    }
    BUG("indexing a scalar view");
}

const View *view_get(Lower *l, const View *view, int field)
{
    if (l->failed)
        return type_tuple_of(view->type)
                   ? view_none(l, type_field(l->arena, view->type, field))
                   : view;
    if (view->kind == V_TUPLE)
        return view->item[field];
    if (view->kind == V_COND || view->kind == V_GUARD) {
        const View *fill = view->fill;
        if (fill && fill->type->kind == T_TUPLE)
            fill = view_get(l, fill, field);
        return view_cond(l, view->kind, view->cond, view->ncond,
                         view_get(l, view->src, field), fill);
    }
    const Type *type = type_field(l->arena, view->type, field);
    if (view->kind == V_LATER)
        return view_later(l, view, type, NULL, field);
    View *part = view_new(l, V_FIELD, type, view);
    part->field = field;
    return part;
}

// Only where the conditions hold may the source be read.
static const KExpr *read_cond(Lower *l, const View *view)
{
    Block yes = {0}, no = {0};
    const Side *sides = sides_new(l, k_cond(l, view->cond, view->ncond));
    Outside outside = side_open(l, &sides[0], &yes);
    side_assume(l, &sides[0]);
    const KExpr *value = view_read(l, view->src);
    side_close(l, outside);
    side_open(l, &sides[1], &no);
    const KExpr *fill = view_read(l, view->fill);
    side_close(l, outside);
    return k_choose(l, sides, &yes, value, &no, fill);
}

const View *view_read_items(Lower *l, const View *view)
{
    if (view->kind != V_COND || view->src->kind != V_LATER || view->type->kind != T_TUPLE ||
        type_holds_array(view->type) || view->fill->type->kind != T_TUPLE || l->failed)
        return NULL;
    Block yes = {0}, no = {0};
    const Side *sides = sides_new(l, k_cond(l, view->cond, view->ncond));
    Outside outside = side_open(l, &sides[0], &yes);
    side_assume(l, &sides[0]);
    const View *src = look_for(l, view->src), *items = view_read_items(l, src);
    const Leaves value = read_leaves(l, items ? items : src, view->type);
    side_close(l, outside);
    if (!yes.len || l->failed) // each is an expression
        return NULL;
    side_open(l, &sides[1], &no);
    const Leaves fill = read_leaves(l, view->fill, view->type);
    side_close(l, outside);
    return choose_leaves(l, view->type, sides, &yes, value, &no, fill);
}

const KExpr *view_read(Lower *l, const View *view)
{
    if (l->failed)
        return k_literal(l, 0, type_scalar(S_INT));
    switch (view->kind) {
    case V_MEM: return k_load(l, view->buffer, view->offset, view->type);
    case V_VAR: return k_var(l, view->var);
    case V_VALUE: return view->value;
    case V_COND: return read_cond(l, view);
    case V_LATER: return view_read(l, look_for(l, view));
    case V_GUARD: return view_read(l, view->src);
    case V_WINDOW: return window_read(l, view);
    default: BUG("reading a view that is not a scalar");
    }
}

// The writing side --------------------------------------------------------------------

const View *view_inverse(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    const Type *type = expr->arg[expr->narg - 1]->type;
    // Split and joined arrays have their elements in the same order.
    if ((expr->pattern == P_SPLIT || expr->pattern == P_JOIN) && expr->dims == 1 &&
        out->kind == V_MEM && out->buffer->space == MEM_GLOBAL)
        return view_mem(l, out->buffer, out->offset, type);
    switch (expr->pattern) {
    case P_JOIN: { // written as if split
        const Arith **num = NEW_ARRAY(l->arena, const Arith *, expr->dims);
        for (int k = 0; k < expr->dims; k++)
            num[k] = type_elem(type, expr->dims + k)->len;
        return view_layout(l, P_SPLIT, expr->dims, num, out, type);
    }
    case P_SPLIT: return view_layout(l, P_JOIN, expr->dims, NULL, out, type);
    case P_TRANSPOSE: return view_layout(l, P_TRANSPOSE, 1, NULL, out, type);
    case P_ASSCALAR: {
        const Arith **num = NEW_ARRAY(l->arena, const Arith *, 1);
        num[0] = arith_const(l->ctx, type->elem->width);
        return view_layout(l, P_ASVECTOR, 1, num, out, type);
    }
    case P_ASVECTOR: return view_layout(l, P_ASSCALAR, 1, NULL, out, type);
    case P_GATHER: // turned round, as the way back is
    case P_SCATTER: return view_pattern(l, V_LAYOUT, type, expr, env, out);
    case P_TAKE: return view_pattern(l, V_CROP, type, expr, env, out);
    case P_MAP:
        return layout_function(expr->fun) ? view_pattern(l, V_UNMAP, type, expr, env, out)
                                          : NULL;
    case P_UNZIP: return view_components(l, type, out);
    default: return NULL;
    }
}

bool layout_function(const Expr *lambda)
{
    const Expr *body = lambda->arg[0];
    for (; body->kind == E_PATTERN; body = body->arg[body->narg - 1])
        if (!view_inverts(body) && !(body->pattern == P_MAP && layout_function(body->fun)))
            return false;
    return expr_is_use(body, lambda->params[0]) && lambda->arg[0]->kind == E_PATTERN;
}
