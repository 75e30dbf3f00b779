// SPDX-License-Identifier: Apache-2.0
//
// Long lists of small arrays. An item that has one of them reads words that lie apart from
// those of its neighbours; so a group copies its part of the list to local memory,
// neighbours by neighbours, each item computes there, and what they have made is copied
// back likewise.
//
//   source  paper 004, section 3: loads and stores of instances by all threads of a block

#include "rewrite/internal.h"

bool is_small_array(const Type *type)
{
    int64_t words = static_count(type);
    return type->kind == T_ARRAY && words > 0 && words <= SMALL_MOST &&
           type_elem(type, type_depth(type))->kind == T_SCALAR;
}

static Expr *lcl(Rewrite *rw, Expr *fun, Expr *in)
{
    return make(rw, P_MAPLCL, 1, NULL, fun, in);
}

// A list of small arrays, copied by all items, v neighbours at a time where they divide it.
static Expr *copied(Rewrite *rw, const Type *type, int64_t l, int64_t v, Expr *list)
{
    int depth = type_depth(type);
    for (int k = 0; k < depth; k++)
        list = make1(rw, P_JOIN, list);
    if (v > 1 && l * static_count(type) % v == 0) {
        Param *near = fresh(rw, "near");
        Expr *each = make(rw, P_MAPUNROLL, 1, NULL, make_identity(rw), use(rw, near));
        list = make1(rw, P_JOIN,
                     lcl(rw, make_lambda(rw, near, each),
                         make_sized(rw, P_SPLIT, num(rw, v), list)));
    } else {
        list = lcl(rw, make_identity(rw), list);
    }
    for (int k = depth - 1; k >= 0; k--)
        list = make_sized(rw, P_SPLIT, type_elem(type, k)->len, list);
    return list;
}

Expr *item_list(Rewrite *rw, Param *list, bool tuple, int i)
{
    return tuple ? expr_get(rw->ir, make1(rw, P_UNZIP, use(rw, list)), i) : use(rw, list);
}

// The components of the list's elements, those that are arrays by `copy`.
static Expr *all_of(Rewrite *rw, Param *list, const Type *type, const RuleArgs *args,
                    Param **held, Expr **value, int *n)
{
    bool tuple = type->kind == T_TUPLE;
    Expr *part[PARTS_MAX];
    for (int i = 0; i < (tuple ? type->n : 1); i++) {
        const Type *each = tuple ? type->item[i] : type;
        part[i] = item_list(rw, list, tuple, i);
        if (!is_small_array(each))
            continue;
        part[i] = copied(rw, each, args->at[0], args->at[1], part[i]);
        if (!held)
            continue;
        held[*n] = fresh(rw, "held");
        value[*n] = make1(rw, P_TOLOCAL, part[i]);
        part[i] = use(rw, held[(*n)++]);
    }
    return tuple ? make_zip(rw, 1, part, type->n) : part[0];
}

static bool has_small(const Type *type)
{
    bool found = is_small_array(type);
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        found |= is_small_array(type->item[i]);
    return found;
}

// Small arrays, numbers and tuples of numbers, or a tuple of these.
static bool is_plain(const Type *type)
{
    const bool tuple = type->kind == T_TUPLE;
    bool plain = !tuple || type->n <= PARTS_MAX;
    for (int i = 0; i < (tuple ? type->n : 1); i++) {
        const Type *item = tuple ? type->item[i] : type;
        plain = plain && (is_small_array(item) || !type_holds_array(item));
    }
    return plain;
}

Expr *rule_tileList(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t l = args->at[0];
    if (!is_dims(at, P_MAP, 1) || !at_host(rw) || l < 1 || args->at[1] < 1)
        return NULL;
    const Type *in = at->arg[0]->type->elem, *out = at->type->elem;
    if (!is_plain(in) || !is_plain(out) || !(has_small(in) || has_small(out)))
        return NULL;
    Param *part = fresh(rw, "part"), *made = fresh(rw, "made"), *held[PARTS_MAX];
    Expr *value[PARTS_MAX];
    int n = 0;
    Expr *list = all_of(rw, part, in, args, held, value, &n);
    Expr *body = lcl(rw, copy_of(rw, at->fun), list);
    if (has_small(out)) {
        Expr *back = all_of(rw, made, out, args, NULL, NULL, NULL);
        body = expr_let(rw->ir, made, make1(rw, P_TOLOCAL, body), back);
    }
    while (n-- > 0)
        body = expr_let(rw->ir, held[n], value[n], body);
    const Arith *k = missing(rw, len_of(at, 0), l);
    Expr *parts =
        make_sized(rw, P_SPLIT, num(rw, l), pad_far(rw, 1, &k, copy_of(rw, at->arg[0])));
    Expr *groups = make(rw, P_MAPWRG, 1, NULL, make_lambda(rw, part, body), parts);
    return cut(rw, at, &k, 1, make1(rw, P_JOIN, groups));
}
