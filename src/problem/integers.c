// SPDX-License-Identifier: Apache-2.0
//
// How large the numbers of inputs are drawn. Numbers that lead to a key or an index are
// drawn from all keys or elements, so that keyed folds and gathers meet as many as they do
// with real data: floats (of arrays: single ones are parameters) from as large a power of
// two as leads nowhere else. A walk over the program follows the inputs, with the range of
// each number; of an array it knows what all of its elements have in common.

#include "problem/problem.h"

#include <math.h>

// What is known of a number: from low to high, made of these inputs, a bit each; of a
// tuple: its components.
typedef struct KnownInteger KnownInteger;
struct KnownInteger {
    double low, high;
    uint64_t from;
    int n;
    const KnownInteger **item;
};

typedef struct IntegerName IntegerName;
struct IntegerName {
    const Param *param;
    const KnownInteger *flow;
    const IntegerName *outer;
};

enum { INPUTS_MOST = 64, STEPS_MOST = 200000 };

typedef struct {
    Arena *arena;
    int64_t wanted[INPUTS_MOST]; // as many elements or keys; 0: it leads to none
    int64_t most[INPUTS_MOST];   // that it may be drawn from; 0: it stays as usual
    int64_t keys[INPUTS_MOST];   // of the fold with the fewest; 0: it leads to none
    uint64_t outside;            // inputs that lead to indices outside of their arrays
    uint64_t index;              // inputs that lead to any, or to what is not known
    uint64_t floats;             // inputs that are arrays of floats
    int steps;
} Walk;

static const KnownInteger *flow_at(Walk *w, const Expr *e, const IntegerName *env);

static const KnownInteger *number(Walk *w, double low, double high, uint64_t from)
{
    return NEW_OF(w->arena, KnownInteger, .low = low, .high = high, .from = from);
}

static const KnownInteger *any(Walk *w, uint64_t from)
{
    return number(w, -INFINITY, INFINITY, from);
}

static const KnownInteger *tuple(Walk *w, int n)
{
    return NEW_OF(w->arena, KnownInteger, .n = n,
                  .item = NEW_ARRAY(w->arena, const KnownInteger *, n));
}

static const KnownInteger *get(Walk *w, const KnownInteger *f, int i)
{
    return i < f->n ? f->item[i] : any(w, f->from);
}

static uint64_t made_of(const KnownInteger *f)
{
    uint64_t from = f->from;
    for (int i = 0; i < f->n; i++)
        from |= made_of(f->item[i]);
    return from;
}

// One of the two; `wide`: or what is computed from them.
static const KnownInteger *both(Walk *w, const KnownInteger *a, const KnownInteger *b,
                                bool wide)
{
    uint64_t from = made_of(a) | made_of(b);
    if (a->n != b->n || (wide && a->n == 0))
        return any(w, from);
    if (a->n == 0)
        return number(w, fmin(a->low, b->low), fmax(a->high, b->high), from);
    const KnownInteger *f = tuple(w, a->n);
    for (int i = 0; i < a->n; i++)
        f->item[i] = both(w, a->item[i], b->item[i], wide);
    return f;
}

static const IntegerName *named(Walk *w, const Param *param, const KnownInteger *flow,
                                const IntegerName *outer)
{
    return NEW_OF(w->arena, IntegerName, param, flow, outer);
}

static const KnownInteger *applied(Walk *w, const Expr *f, const KnownInteger *const *arg,
                                   const IntegerName *env)
{
    for (int i = 0; i < f->nparam; i++)
        env = named(w, f->params[i], arg[i], env);
    return flow_at(w, f->arg[0], env);
}

// Uses -----------------------------------------------------------------------------------

// A key may be outside, where it folds nothing: a few are, unless they are indices, too.
static void led_to(Walk *w, const KnownInteger *f, const Type *array, bool key)
{
    int64_t length;
    w->index |= f->from;
    if (!arith_is_const(array->len, &length))
        return;
    for (int i = 0; i < INPUTS_MOST; i++)
        if (f->from >> i & 1) {
            w->wanted[i] = MAX(w->wanted[i], length + (key ? length / 8 + 1 : 0));
            if (key && (!w->keys[i] || w->keys[i] > length))
                w->keys[i] = length;
        }
    if (!(f->low >= 0 && f->high < (double)length))
        w->outside |= key ? f->from & w->floats : f->from;
}

static const KnownInteger *position(Walk *w, const Arith *length)
{
    int64_t n;
    return arith_is_const(length, &n) ? number(w, 0, (double)n - 1, 0) : any(w, 0);
}

// Operations -----------------------------------------------------------------------------

static const KnownInteger *product_of(Walk *w, const KnownInteger *a, const KnownInteger *b)
{
    double p[] = {a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high};
    return number(w, fmin(fmin(p[0], p[1]), fmin(p[2], p[3])),
                  fmax(fmax(p[0], p[1]), fmax(p[2], p[3])), a->from | b->from);
}

// By a number above 0; whole: of integers.
static const KnownInteger *quotient(Walk *w, const KnownInteger *a, const KnownInteger *b,
                                    bool whole, uint64_t from)
{
    const double low = a->low / (a->low < 0 ? b->low : b->high),
                 high = a->high / (a->high < 0 ? b->high : b->low);
    return number(w, whole ? floor(low) : low, whole ? floor(high) : high, from);
}

// What limits floats that are made an index leads many of them to the same.
static void limited(Walk *w, const KnownInteger *a, double most)
{
    if (a->high > most)
        w->outside |= a->from & w->floats;
}

static const KnownInteger *known_op(Walk *w, const Expr *e, const KnownInteger *a,
                                    const KnownInteger *b, uint64_t from)
{
    const bool whole = type_is_integer(e->type);
    switch (e->op) {
    case OP_ADD: return number(w, a->low + b->low, a->high + b->high, from);
    case OP_SUB: return number(w, a->low - b->high, a->high - b->low, from);
    case OP_NEG: return number(w, -a->high, -a->low, from);
    case OP_MUL: return product_of(w, a, b);
    case OP_MINIMUM:
        limited(w, a, b->high + 1);
        limited(w, b, a->high + 1);
        return number(w, fmin(a->low, b->low), fmin(a->high, b->high), from);
    case OP_MAXIMUM: return number(w, fmax(a->low, b->low), fmax(a->high, b->high), from);
    case OP_ABS: return a->low >= 0 ? a : number(w, 0, fmax(-a->low, a->high), from);
    case OP_DIV:
        return b->low >= 1 || (!whole && b->low > 0) ? quotient(w, a, b, whole, from)
                                                     : any(w, from);
    case OP_MOD:
        limited(w, a, 2 * b->high - 1);
        return b->low < 1                        ? any(w, from)
               : a->low >= 0 && a->high < b->low ? a
                                                 : number(w, 0, b->high - 1, from);
    case OP_BITAND:
        return a->low >= 0 && b->low >= 0 ? number(w, 0, fmin(a->high, b->high), from)
                                          : any(w, from);
    case OP_FLOOR: return number(w, floor(a->low), floor(a->high), from);
    case OP_CEIL: return number(w, ceil(a->low), ceil(a->high), from);
    case OP_ROUND:
    case OP_RINT: return number(w, floor(a->low), ceil(a->high), from);
    default:
        return op_info[e->op].types != TY_CAST ? any(w, from)
               : whole ? number(w, trunc(a->low), trunc(a->high), from)
                       : number(w, a->low, a->high, from);
    }
}

static bool is_number(const Type *type)
{
    return type->kind == T_SCALAR &&
           (scalar_info[type->scalar].integer || scalar_info[type->scalar].floating);
}

// What may wrap around is any number.
static const KnownInteger *flow_of_op(Walk *w, const Expr *e, const IntegerName *env)
{
    const KnownInteger *arg[3] = {NULL};
    uint64_t from = 0;
    for (int i = 0; i < e->narg; i++) {
        arg[i] = flow_at(w, e->arg[i], env);
        from |= made_of(arg[i]);
    }
    if (e->op == OP_SELECT)
        return both(w, arg[1], arg[2], false);
    if (!is_number(e->type) || !is_number(e->arg[0]->type))
        return any(w, from);
    const Scalar scalar = e->type->scalar;
    const bool whole = scalar_info[scalar].integer;
    if (e->op == OP_DIV || e->op == OP_MOD)
        *(whole ? &w->index : &w->outside) |= arg[1]->from;
    const KnownInteger *f = known_op(w, e, arg[0], arg[1] ? arg[1] : arg[0], from);
    if (!whole)
        return f;
    double most = ldexp(1, 8 * scalar_info[scalar].bytes - 1);
    double least = scalar_info[scalar].kind == SCALAR_UNSIGNED ? 0 : -most;
    return f->low >= least && f->high < most ? f : any(w, from);
}

// Patterns -------------------------------------------------------------------------------

static bool same_inputs(const KnownInteger *a, const KnownInteger *b)
{
    bool same = a->from == b->from && a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = same_inputs(a->item[i], b->item[i]);
    return same;
}

// What a fold of `value` from `from` on is made of: steps are taken until none adds an
// input.
static const KnownInteger *folded(Walk *w, const Expr *e, const KnownInteger *from,
                                  const KnownInteger *value, const IntegerName *env)
{
    const KnownInteger *f = both(w, from, value, true), *before;
    do {
        before = f;
        f = both(w, f, applied(w, e->fun, (const KnownInteger *[]){f, value}, env), true);
    } while (!same_inputs(before, f));
    return f;
}

static const KnownInteger *flow_of_pattern(Walk *w, const Expr *e, const IntegerName *env)
{
    const KnownInteger *arg[DIMS_MAX] = {NULL}, *last = NULL;
    const KnownInteger *all = e->pattern == P_ZIP ? tuple(w, e->narg) : NULL;
    for (int i = 0; i < e->narg; i++) {
        last = flow_at(w, e->arg[i], env);
        if (all)
            all->item[i] = last;
        else if (i < DIMS_MAX)
            arg[i] = last;
    }
    switch (e->pattern) {
    case P_ZIP: return all;
    case P_MAP: return applied(w, e->fun, arg, env);
    case P_REDUCE:
    case P_SCAN: return folded(w, e, arg[0], arg[1], env);
    case P_REDUCEBY:
        led_to(w, get(w, arg[1], 0), e->type, true);
        return folded(w, e, arg[0], get(w, arg[1], 1), env);
    case P_ITERATE: return folded(w, e, arg[0], arg[0], env);
    case P_ARRAY:
        for (int d = 0; d < e->dims; d++)
            arg[d] = position(w, e->num[d]);
        return applied(w, e->fun, arg, env);
    case P_GATHER:
        arg[1] = position(w, e->type->len);
        led_to(w, applied(w, e->fun, &arg[1], env), e->arg[0]->type, false);
        return last;
    case P_PAD: return e->narg > 1 ? both(w, arg[0], arg[1], false) : last;
    case P_SCATTER:
        arg[1] = position(w, e->type->len);
        w->index |= made_of(applied(w, e->fun, &arg[1], env));
        return last;
    default: w->index |= e->fun ? UINT64_MAX : 0; return last;
    }
}

// All ------------------------------------------------------------------------------------

static const KnownInteger *flow_of_call(Walk *w, const Expr *e, const IntegerName *env)
{
    const IntegerName *inner = NULL;
    uint64_t from = 0;
    for (int i = 0; i < e->narg; i++) {
        const KnownInteger *f = flow_at(w, e->arg[i], env);
        inner = named(w, e->callee->params[i], f, inner);
        from |= made_of(f);
    }
    if (e->callee->body)
        return flow_at(w, e->callee->body, inner);
    w->index |= from;
    return any(w, from);
}

static const KnownInteger *flow_of_number(Walk *w, const Expr *e)
{
    int64_t n;
    if (e->kind == E_LITERAL)
        return number(w, e->number, e->number, 0);
    return arith_is_const(e->num[0], &n) ? number(w, (double)n, (double)n, 0) : any(w, 0);
}

static const KnownInteger *flow_of_name(Walk *w, const Expr *e, const IntegerName *env)
{
    while (env && env->param != e->param)
        env = env->outer;
    return env ? env->flow : any(w, 0);
}

static const KnownInteger *flow_at(Walk *w, const Expr *e, const IntegerName *env)
{
    if (++w->steps > STEPS_MOST)
        return any(w, 0);
    const KnownInteger *f;
    switch (e->kind) {
    case E_PARAM: return flow_of_name(w, e, env);
    case E_OP: return flow_of_op(w, e, env);
    case E_CALL: return flow_of_call(w, e, env);
    case E_LET:
        f = flow_at(w, e->arg[0], env);
        return flow_at(w, e->arg[1], named(w, e->param, f, env));
    case E_TUPLE:
        f = tuple(w, e->narg);
        for (int i = 0; i < e->narg; i++)
            f->item[i] = flow_at(w, e->arg[i], env);
        return f;
    case E_GET: return get(w, flow_at(w, e->arg[0], env), e->index);
    case E_AT:
        led_to(w, flow_at(w, e->arg[1], env), e->arg[0]->type, false);
        return flow_at(w, e->arg[0], env);
    case E_PATTERN: return flow_of_pattern(w, e, env);
    case E_LITERAL:
    case E_NUM: return flow_of_number(w, e);
    case E_LAMBDA: break;
    }
    BUG("expression kind %d", (int)e->kind);
}

// What is known of an input, whose planes are those from number *plane on.
static const KnownInteger *flow_of_input(Walk *w, const Type *type, const InputRange *drawn,
                                         int *plane)
{
    type = type_leaf(type);
    if (type->kind == T_TUPLE) {
        const KnownInteger *f = tuple(w, type->n);
        for (int i = 0; i < type->n; i++)
            f->item[i] = flow_of_input(w, type->item[i], drawn, plane);
        return f;
    }
    int at = (*plane)++;
    uint64_t from = at < INPUTS_MOST ? 1ull << at : 0;
    if (!from || !is_number(type))
        return any(w, from);
    const double below = (double)drawn[at].below;
    return scalar_info[type->scalar].integer ? number(w, 0, below - 1, from)
           : below > 0                       ? number(w, 0, below * (1 - 0x1p-24), from)
                                             : number(w, 0.5, 1.5, from);
}

static void walk_program(Walk *w, const Function *main, const InputRange *drawn)
{
    const IntegerName *env = NULL;
    int plane = 0;
    w->steps = 0;
    w->outside = 0;
    for (int i = 0; i < main->nparam; i++)
        env = named(w, main->params[i],
                    flow_of_input(w, main->params[i]->type, drawn, &plane), env);
    flow_at(w, main->body, env);
}

// Floats are drawn from a power of two: they are multiples of a part of it.
static int64_t power_below(int64_t n)
{
    int64_t power = 1;
    while (2 * power <= n)
        power *= 2;
    return power;
}

// What is usual, before it is known what they lead to.
static void begin_inputs(const Function *main, Walk *w, InputRange *drawn, int most)
{
    const Type *plane[PLANES_MOST];
    for (int i = 0, at = 0; i < main->nparam; i++) {
        const bool array = main->params[i]->type->kind == T_ARRAY;
        int n = type_planes(w->arena, main->params[i]->type, plane, PLANES_MOST);
        for (int k = 0; k < MIN(n, PLANES_MOST) && at < most; k++, at++) {
            const ScalarInfo *info = &scalar_info[type_leaf(plane[k])->scalar];
            const int bits = info->integer             ? 8 * info->bytes - 1
                             : info->floating && array ? info->digits - 1
                                                       : 0;
            drawn[at].below = info->floating ? 0 : INTS_USUAL;
            if (at < INPUTS_MOST) {
                w->most[at] = bits ? (int64_t)1 << MIN(bits, 30) : 0;
                w->floats |= (uint64_t)info->floating << at;
            }
        }
    }
}

static void draw_wanted(const Walk *w, InputRange *drawn)
{
    for (int i = 0; i < INPUTS_MOST; i++) {
        const int64_t wanted = MIN(w->wanted[i], w->most[i]);
        if (wanted)
            drawn[i].below = w->floats >> i & 1 ? power_below(wanted) : wanted;
    }
}

// Floats that lead outside however small they are stay as usual.
static bool draw_smaller(const Walk *w, InputRange *drawn)
{
    enum { LEAST = 2 }; // integers, so that they are not all the same
    bool smaller = false;
    for (int i = 0; i < INPUTS_MOST; i++) {
        const int64_t below = drawn[i].below;
        const bool outside_keys = w->keys[i] && below > w->keys[i];
        const int64_t less = w->floats >> i & 1 ? below / 2
                             : outside_keys     ? w->keys[i]
                                                : MAX(below / 2, LEAST);
        if (w->outside >> i & 1 && less < below) {
            drawn[i].below = less;
            smaller = true;
        }
    }
    return smaller;
}

const InputRange *problem_ranges(const Problem *problem, int n, Arena *arena)
{
    const Function *main = problem->bound->main;
    n = MAX(n, INPUTS_MOST);
    InputRange *drawn = NEW_ARRAY(arena, InputRange, n);
    Walk w = {.arena = arena_new()};
    begin_inputs(main, &w, drawn, n);
    walk_program(&w, main, drawn);
    bool smaller = w.steps <= STEPS_MOST;
    if (smaller)
        draw_wanted(&w, drawn);
    while (smaller) {
        walk_program(&w, main, drawn);
        smaller = draw_smaller(&w, drawn);
    }
    // What is outside anyway may be behind a condition.
    for (int i = 0; i < INPUTS_MOST; i++)
        if ((w.outside & ~w.floats) >> i & 1)
            drawn[i].below = w.wanted[i] ? MIN(w.wanted[i], INTS_USUAL) : INTS_USUAL;
    for (int i = 0; i < n; i++) {
        int64_t keys = i < INPUTS_MOST ? w.keys[i] : 0;
        drawn[i].inside = keys ? MIN(keys, drawn[i].below) : drawn[i].below;
        drawn[i].index = i >= INPUTS_MOST || w.steps > STEPS_MOST || w.index >> i & 1;
    }
    arena_free(w.arena);
    return drawn;
}
