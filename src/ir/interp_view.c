// SPDX-License-Identifier: Apache-2.0
//
// Views of the interpreter: every layout pattern as a function from the indices of its
// result to the indices of its argument.
#include "ir/internal.h"

static InterpView *view_new(Interp *in, InterpViewKind kind, const InterpView *src)
{
    InterpView *view = NEW(in->arena, InterpView);
    view->kind = kind;
    view->src = src;
    return view;
}

// Memory -------------------------------------------------------------------------------

static Val load_items(Interp *in, const Type *type, double *const *plane, int64_t offset)
{
    bool vector = type->kind == T_VECTOR;
    int n = vector ? type->width : type->n;
    Val *item = NEW_ARRAY(in->arena, Val, n);
    for (int i = 0; i < n; i++) {
        if (vector) {
            item[i].number = plane[0][offset * n + i];
        } else {
            item[i] = val_load(in, type->item[i], plane, offset);
            plane += type_leaves(type->item[i]);
        }
    }
    return (Val){.item = item};
}

Val val_load(Interp *in, const Type *type, double *const *plane, int64_t offset)
{
    if (type->kind == T_SCALAR)
        return (Val){.number = plane[0][offset]};
    if (type->kind != T_ARRAY)
        return load_items(in, type, plane, offset);
    InterpView *view = view_new(in, V_STRICT, NULL);
    view->type = type;
    view->plane = plane;
    view->offset = offset;
    return (Val){.view = view};
}

static void store_array(Interp *in, const Type *type, Val val, double *const *plane,
                        int64_t offset)
{
    int64_t len = type->len->value;
    ArenaMark mark = arena_mark(in->arena);
    in->steps += len; // of the quota, which the next operation is held to
    for (int64_t i = 0; i < len; i++) {
        Val elem = view_at(in, val.view, &i, 1);
        val_store(in, type->elem, elem, plane, offset * len + i);
        arena_reset(in->arena, mark);
    }
}

void val_store(Interp *in, const Type *type, Val val, double *const *plane, int64_t offset)
{
    switch (type->kind) {
    case T_SCALAR: plane[0][offset] = val.number; return;
    case T_VECTOR:
        for (int i = 0; i < type->width; i++)
            plane[0][offset * type->width + i] = val.item[i].number;
        return;
    case T_ARRAY: store_array(in, type, val, plane, offset); return;
    case T_TUPLE:
        for (int i = 0; i < type->n; i++) {
            val_store(in, type->item[i], val.item[i], plane, offset);
            plane += type_leaves(type->item[i]);
        }
        return;
    }
}

static Val strict_at(Interp *in, const InterpView *view, const int64_t *index, int n)
{
    const Type *type = view->type;
    int64_t offset = view->offset;
    for (int i = 0; i < n; i++, type = type->elem)
        offset = offset * type->len->value + index[i];
    return val_load(in, type, view->plane, offset);
}

static Val fill_at(Interp *in, const InterpView *view, int n)
{
    const Type *type = type_elem(view->type, n);
    if (type->kind != T_ARRAY)
        return view->fill;
    InterpView *rest = view_new(in, V_FILL, NULL);
    rest->type = type;
    rest->fill = view->fill;
    return (Val){.view = rest};
}

// Index functions ----------------------------------------------------------------------

static Val partial(Interp *in, const InterpView *view, const int64_t *index, int n)
{
    InterpView *result = view_new(in, V_PARTIAL, view);
    result->n = n;
    result->index = COPY_ARRAY(in->arena, index, n);
    return (Val){.view = result};
}

static bool pad_inside(PadMode mode, int64_t len, int64_t *i)
{
    if (*i >= 0 && *i < len)
        return true;
    switch (mode) {
    case PAD_UNREAD:
    case PAD_CLAMP: *i = *i < 0 ? 0 : len - 1; return true;
    case PAD_MIRROR: *i = *i < 0 ? -1 - *i : 2 * len - 1 - *i; return true;
    case PAD_WRAP: *i = *i < 0 ? *i + len : *i - len; return true;
    case PAD_CONSTANT: return false;
    }
    BUG("pad mode %d", (int)mode);
}

static Val pad_at(Interp *in, const InterpView *view, const int64_t *index, int n)
{
    int64_t moved[INDEX_MAX];
    bool inside = true;
    for (int d = 0; d < n; d++) {
        moved[d] = index[d];
        if (d < view->arity) {
            moved[d] -= view->num[2 * d];
            inside = pad_inside(view->expr->mode, view->len[d], &moved[d]) && inside;
        }
    }
    if (inside)
        return view_at(in, view->src, moved, n);
    const InterpView outside = {.kind = V_FILL, .type = view->type, .fill = view->fill};
    return fill_at(in, &outside, n);
}

static Val zip_at(Interp *in, const InterpView *view, const int64_t *index, int n)
{
    if (n != view->arity)
        BUG("zip of arity %d indexed by %d", view->arity, n);
    Val *item = NEW_ARRAY(in->arena, Val, view->expr->narg);
    for (int i = 0; i < view->expr->narg; i++)
        item[i] = view_at(in, view->zipped[i], index, n);
    return (Val){.item = item};
}

static Val component_at(Interp *in, const InterpView *view, const int64_t *index, int n)
{
    if (n < view->arity)
        return partial(in, view, index, n);
    Val val = view_at(in, view->src, index, view->arity).item[view->component];
    return n > view->arity ? view_at(in, val.view, index + view->arity, n - view->arity)
                           : val;
}

static Val as_vector_at(Interp *in, const InterpView *view, const int64_t *index)
{
    int width = (int)view->num[0];
    Val *item = NEW_ARRAY(in->arena, Val, width);
    for (int i = 0; i < width; i++) {
        int64_t at = index[0] * width + i;
        item[i] = view_at(in, view->src, &at, 1);
    }
    return (Val){.item = item};
}

static Val as_scalar_at(Interp *in, const InterpView *view, const int64_t *index)
{
    int width = view->expr->arg[0]->type->elem->width;
    int64_t at = index[0] / width;
    return view_at(in, view->src, &at, 1).item[index[0] % width];
}

static int64_t gather_index(Interp *in, const InterpView *view, int64_t i)
{
    Val arg = {.number = (double)i};
    double at = interp_apply(in, view->expr->fun, &arg, view->env).number;
    if (!(at >= 0 && at < (double)view->len[0]))
        interp_fail(in, view->expr->span, "R001",
                    "gather takes element %.0f of an array of %lld", at,
                    (long long)view->len[0]);
    return (int64_t)at;
}

// The first `arity` indices become `to` others; the rest follow.
static Val moved_at(Interp *in, const InterpView *view, const int64_t *head, int to,
                    const int64_t *index, int n)
{
    int64_t moved[INDEX_MAX];
    int rest = n - view->arity;
    if (to + rest > INDEX_MAX)
        interp_fail(in, view->expr->span, "R006", "more than %d dimensions", INDEX_MAX);
    for (int i = 0; i < to; i++)
        moved[i] = head[i];
    for (int i = 0; i < rest; i++)
        moved[to + i] = index[view->arity + i];
    return view_at(in, view->src, moved, to + rest);
}

// What the indices of the result become in the argument; returns how many they are.
static int move_indices(Interp *in, const InterpView *view, const int64_t *index,
                        int64_t *to)
{
    int dims = view->expr->dims;
    switch (view->expr->pattern) {
    case P_SPLIT:
        for (int d = 0; d < dims; d++)
            to[d] = index[d] * view->num[d] + index[dims + d];
        return dims;
    case P_JOIN:
        for (int d = 0; d < dims; d++) {
            to[d] = index[d] / view->len[dims + d];
            to[dims + d] = index[d] % view->len[dims + d];
        }
        return 2 * dims;
    case P_SLIDE:
    case P_MAPSLIDE:
        for (int d = 0; d < dims; d++)
            to[d] = index[d] * view->num[2 * d + 1] + index[dims + d];
        return dims;
    case P_TRANSPOSE:
        to[0] = index[1];
        to[1] = index[0];
        return 2;
    case P_GATHER: to[0] = gather_index(in, view, index[0]); return 1;
    case P_TAKE:
    case P_DROP:
        for (int d = 0; d < dims; d++)
            to[d] = index[d] + (view->expr->pattern == P_DROP ? view->num[d] : 0);
        return dims;
    default: BUG("%s is not an index function", pattern_info[view->expr->pattern].text);
    }
}

static Val pattern_at(Interp *in, const InterpView *view, const int64_t *index, int n)
{
    if (n < view->arity)
        return partial(in, view, index, n);
    if (view->expr->pattern == P_PAD)
        return pad_at(in, view, index, n);
    if (view->expr->pattern == P_ZIP)
        return zip_at(in, view, index, n);
    if (view->expr->pattern == P_ASVECTOR)
        return as_vector_at(in, view, index);
    if (view->expr->pattern == P_ASSCALAR)
        return as_scalar_at(in, view, index);
    int64_t head[NUMS_MAX];
    int to = move_indices(in, view, index, head);
    return moved_at(in, view, head, to, index, n);
}

static Val partial_at(Interp *in, const InterpView *view, const int64_t *index, int n)
{
    int64_t all[INDEX_MAX];
    if (view->n + n > INDEX_MAX)
        interp_fail(in, span_none, "R006", "more than %d dimensions", INDEX_MAX);
    for (int i = 0; i < view->n; i++)
        all[i] = view->index[i];
    for (int i = 0; i < n; i++)
        all[view->n + i] = index[i];
    return view_at(in, view->src, all, view->n + n);
}

Val view_at(Interp *in, const InterpView *view, const int64_t *index, int n)
{
    switch (view->kind) {
    case V_STRICT: return strict_at(in, view, index, n);
    case V_PARTIAL: return partial_at(in, view, index, n);
    case V_FILL: return fill_at(in, view, n);
    case V_COMPONENT: return component_at(in, view, index, n);
    case V_PATTERN: return pattern_at(in, view, index, n);
    }
    BUG("view kind %d", (int)view->kind);
}

// Building -----------------------------------------------------------------------------

static Val unzip_views(Interp *in, const Expr *e, const InterpView *src)
{
    Val *item = NEW_ARRAY(in->arena, Val, e->type->n);
    for (int i = 0; i < e->type->n; i++) {
        InterpView *view = view_new(in, V_COMPONENT, src);
        view->component = i;
        for (const Type *t = e->arg[0]->type; t->kind == T_ARRAY; t = t->elem)
            view->arity++;
        item[i].view = view;
    }
    return (Val){.item = item};
}

// How many indices of its result a pattern consumes at once.
static int arity_of(const Expr *e)
{
    bool doubles = e->pattern == P_SPLIT || e->pattern == P_SLIDE ||
                   e->pattern == P_MAPSLIDE || e->pattern == P_TRANSPOSE;
    return doubles ? 2 * e->dims : e->dims;
}

static const InterpView *const *views_of(Interp *in, const Val *arg, int n)
{
    const InterpView **view = NEW_ARRAY(in->arena, const InterpView *, n);
    for (int i = 0; i < n; i++)
        view[i] = arg[i].view;
    return view;
}

Val view_pattern(Interp *in, const Expr *e, const Val *arg, const InterpEnv *env)
{
    const InterpView *src = arg[e->narg - 1].view;
    if (e->pattern == P_UNZIP)
        return unzip_views(in, e, src);
    InterpView *view = view_new(in, V_PATTERN, src);
    view->expr = e;
    view->env = env;
    view->type = e->type;
    view->arity = arity_of(e);
    for (int i = 0; i < e->nnum; i++)
        view->num[i] = interp_num(in, e, e->num[i]);
    const Type *type = e->arg[e->narg - 1]->type;
    for (int d = 0; d < 2 * e->dims && type->kind == T_ARRAY; d++, type = type->elem)
        view->len[d] = interp_num(in, e, type->len);
    if (e->pattern == P_ZIP)
        view->zipped = views_of(in, arg, e->narg);
    if (e->pattern == P_PAD && e->mode == PAD_CONSTANT)
        view->fill = arg[0];
    return (Val){.view = view};
}
