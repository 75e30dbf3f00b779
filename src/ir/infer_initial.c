// SPDX-License-Identifier: Apache-2.0
//
// Type inference of initial values, of folds and of loops: literals in them take the types
// that the function gives back. These are found by trying.
#include "ir/internal.h"

static const Type *first_float(const Type *type)
{
    if (type->kind != T_TUPLE)
        return type_is_scalar(type) && type_is_float(type) ? type : NULL;
    const Type *found = NULL;
    for (int i = 0; i < type->n && !found; i++)
        found = first_float(type->item[i]);
    return found;
}

// What the literals of an initial value become: the elements' type, or for elements that
// are tuples their first floating component, so that `reduce(f, 0, zip(x, y))` works.
static const Type *initial_want(Infer *in, const Expr *initial, const Type *elem)
{
    if (initial->kind != E_TUPLE)
        return infer_adapts(initial) && elem->kind == T_TUPLE ? first_float(elem) : elem;
    if (elem->kind == T_TUPLE && elem->n == initial->narg)
        return elem;
    const Type **item = NEW_ARRAY(in->ir->arena, const Type *, initial->narg);
    for (int i = 0; i < initial->narg; i++) {
        item[i] = initial_want(in, initial->arg[i], elem);
        if (!item[i])
            return NULL;
    }
    return type_tuple(in->ir->arena, item, initial->narg);
}

// Each tries the function of a fold again, and those inside it.
enum { ATTEMPTS_MAX = 2000, FREE_ITEMS_MAX = 4 };

// The type of the initial value, if that wants a type and the function gives it back; says
// nothing of what is wrong.
static const Type *attempt(Infer *in, Expr *e, const Type *elem, const Type *want)
{
    Quiet quiet;
    infer_quiet(in, &quiet);
    in->attempts++;
    const Type *acc = infer_expr(in, e->arg[0], want);
    const Type *arg[2] = {acc, elem};
    const Type *result = acc ? infer_apply(in, e, arg, acc) : NULL;
    if (result && !type_equal(in->ir->arith, acc, result))
        result = NULL;
    infer_aloud(in, &quiet, result);
    return result;
}

static bool has_free_literal(const Infer *in, const Expr *initial)
{
    bool found = infer_follows(in, initial);
    for (int i = 0; i < initial->narg && initial->kind == E_TUPLE; i++)
        found = found || has_free_literal(in, initial->arg[i]);
    return found;
}

// Types of an initial value: each component is what its literal is by itself, or what the
// elements are, where the bit of the component is set.
static const Type *mixed_want(Infer *in, const Type *own, const Type *elem, unsigned bits)
{
    if (own->kind != T_TUPLE)
        return bits ? elem : own;
    const Type **item = NEW_ARRAY(in->ir->arena, const Type *, own->n);
    for (int i = 0; i < own->n; i++)
        item[i] = bits >> i & 1 ? elem->item[i] : own->item[i];
    return type_tuple(in->ir->arena, item, own->n);
}

// A type whose floating scalars are of type s, and, if so asked, its ints.
static const Type *widened(Infer *in, const Type *type, Scalar s, bool ints)
{
    if (type->kind == T_ARRAY)
        return type_array(in->ir->arena, type->len, widened(in, type->elem, s, ints));
    if (type->kind == T_SCALAR) {
        bool changes = type_is_float(type) || (ints && type->scalar == S_INT);
        return changes ? type_scalar(s) : type;
    }
    if (type->kind != T_TUPLE)
        return type;
    const Type **item = NEW_ARRAY(in->ir->arena, const Type *, type->n);
    for (int i = 0; i < type->n; i++)
        item[i] = widened(in, type->item[i], s, ints);
    return type_tuple(in->ir->arena, item, type->n);
}

static bool holds_int(const Type *type)
{
    bool found = type->kind == T_SCALAR && type->scalar == S_INT;
    for (int i = 0; type->kind == T_TUPLE && i < type->n && !found; i++)
        found = holds_int(type->item[i]);
    return found || (type->kind == T_ARRAY && holds_int(type->elem));
}

// The same for a tuple some of whose components have ints, of which the bits tell each.
static const Type *widened_some(Infer *in, const Type *own, Scalar s, unsigned bits)
{
    if (own->kind != T_TUPLE)
        return widened(in, own, s, bits & 1);
    const Type **item = NEW_ARRAY(in->ir->arena, const Type *, own->n);
    for (int i = 0; i < own->n; i++) {
        item[i] = widened(in, own->item[i], s, bits & 1);
        bits >>= holds_int(own->item[i]);
    }
    return type_tuple(in->ir->arena, item, own->n);
}

static int components_with_ints(const Type *own)
{
    int n = 0;
    for (int i = 0; own->kind == T_TUPLE && i < own->n; i++)
        n += holds_int(own->item[i]);
    return own->kind == T_TUPLE ? n : 1;
}

// The scalars in the order in which they are tried: float first, which literals with a dot
// are by themselves, then from the last of the table.
static Scalar tried(int i)
{
    const int s = SCALARS - i;
    return i == 0 ? S_FLOAT : s > S_FLOAT ? (Scalar)s : (Scalar)(s - 1);
}

// Where the types by themselves do not do: literals with a dot, in arrays too, as each
// floating type, and ints as they are, or as many of them as need it like those.
static const Type *spread_want(Infer *in, Expr *e, const Type *elem, const Type *own)
{
    int n = components_with_ints(own);
    unsigned all = (1u << MIN(n, FREE_ITEMS_MAX)) - 1, step = n > FREE_ITEMS_MAX ? all : 1;
    for (int i = 0; tried(i) > S_BOOL && !in->int_sizes; i++)
        for (unsigned bits = 0; scalar_info[tried(i)].floating && bits <= all;
             bits += step) {
            unsigned chosen = n > FREE_ITEMS_MAX && bits ? ~0u : bits;
            const Type *want = widened_some(in, own, tried(i), chosen);
            if (in->attempts < ATTEMPTS_MAX && attempt(in, e, elem, want)) {
                in->spread = true;
                return want;
            }
        }
    return NULL;
}

// The type that the function gives back to an initial value of literals: what these are by
// themselves, else what the elements are, else any scalar.
static const Type *found_want(Infer *in, Expr *e, const Type *elem, const Type *from_elem)
{
    Expr *initial = e->arg[0];
    const Type *own = infer_expr(in, initial, NULL);
    bool alike = own && from_elem && own->kind == from_elem->kind && own->n == from_elem->n;
    int n = own && own->kind == T_TUPLE ? own->n : 1;
    unsigned last = !alike ? 0 : n > FREE_ITEMS_MAX ? 1 : (1u << n) - 1;
    for (unsigned bits = 0; own && bits <= last && in->attempts < ATTEMPTS_MAX; bits++) {
        unsigned chosen = n > FREE_ITEMS_MAX && bits ? ~0u : bits;
        const Type *want = mixed_want(in, own, from_elem, chosen);
        if (attempt(in, e, elem, want))
            return want;
    }
    for (int i = 0; tried(i) > S_BOOL && infer_follows(in, initial); i++)
        if (in->attempts < ATTEMPTS_MAX && attempt(in, e, elem, type_scalar(tried(i))))
            return type_scalar(tried(i));
    const Type *spread = own ? spread_want(in, e, elem, own) : NULL;
    return spread ? spread : from_elem;
}

// The state with what is not literals, and these as the first floating component of it.
static const Type *state_want(Infer *in, const Expr *initial, const Type *own)
{
    if (initial->kind != E_TUPLE)
        return own;
    const Type *known = NULL;
    const Type **item = NEW_ARRAY(in->ir->arena, const Type *, initial->narg);
    for (int i = 0; i < initial->narg && !known; i++)
        known = infer_adapts(initial->arg[i]) ? NULL : first_float(type_leaf(own->item[i]));
    for (int i = 0; i < initial->narg; i++)
        item[i] = known && infer_adapts(initial->arg[i]) ? known : own->item[i];
    return type_tuple(in->ir->arena, item, initial->narg);
}

// What the literals of the initial value of a fold become: what is wanted of the fold if
// its function gives that back, else what it does give back.
const Type *infer_accumulator_want(Infer *in, Expr *e, const Type *elem, const Type *want)
{
    const Type *from_elem = initial_want(in, e->arg[0], elem);
    if (!has_free_literal(in, e->arg[0]))
        return from_elem;
    if (want && in->attempts < ATTEMPTS_MAX && attempt(in, e, elem, want))
        return want;
    return found_want(in, e, elem, from_elem);
}

static bool is_number(const Expr *e, const void *none)
{
    return e->kind == E_LITERAL && !e->boolean;
}

// A state whose literals all lie in arrays most often has the type that is wanted.
static const Type *settled_want(Infer *in, Expr *e, const Type *want)
{
    int attempts = in->attempts;
    if (in->int_sizes || attempts >= ATTEMPTS_MAX || !expr_find(e->arg[0], is_number, NULL))
        return want;
    if (attempt(in, e, NULL, want)) {
        in->attempts = attempts;
        return want;
    }
    Quiet quiet;
    infer_quiet(in, &quiet);
    const Type *own = infer_expr(in, e->arg[0], NULL);
    infer_aloud(in, &quiet, false);
    const Type *found = own ? spread_want(in, e, NULL, own) : NULL;
    return found ? found : want;
}

const Type *infer_state_want(Infer *in, Expr *e, const Type *want)
{
    if (!has_free_literal(in, e->arg[0]))
        return settled_want(in, e, want);
    if (want && attempt(in, e, NULL, want))
        return want;
    const Type *own = infer_expr(in, e->arg[0], NULL);
    return own ? found_want(in, e, NULL, state_want(in, e->arg[0], own)) : want;
}
