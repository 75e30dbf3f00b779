// SPDX-License-Identifier: Apache-2.0
//
// How often a condition holds: the share of the points of a box of index variables.
//
//   method  conditions that share variables belong together; those on one linear form are
//           an interval of it, whose points are counted digit by digit from the largest
//           stride down; others are tried out on all points, or on some if they are many.
//           What was tried out is remembered by a hash of the conditions and of the ranges
//           of their variables, not by the terms, which last for one candidate.
//           What a kernel asks for again is found by its terms, before any condition is
//           read. A negated guard is what is left of its absence (inclusion and exclusion).

#include "cost/scope.h"

#include <stdlib.h>
#include <string.h>

enum { VARS_MAX = 8, CONDS_MAX = 64, TRIED_MAX = 4096 };

// lo <= sum of coef[i] * var[i] <= hi, the first coef positive.
typedef struct {
    const Arith *cond;
    bool affine;
    int n;
    BoundVar *var[VARS_MAX];
    int64_t coef[VARS_MAX];
    int64_t lo, hi;
    int part; // conditions of one part share variables
} Form;

// Reading conditions ------------------------------------------------------------------

static bool add_var(Form *f, BoundVar *var, int64_t coef)
{
    for (int i = 0; i < f->n; i++)
        if (f->var[i] == var)
            return true;
    if (f->n == VARS_MAX)
        return false;
    f->var[f->n] = var;
    f->coef[f->n++] = coef;
    return true;
}

static bool is_free(const BoundVar *b)
{
    return b && (b->kind == BOUND_LOOP || b->kind == BOUND_THREAD);
}

// All free variables of a; false if it depends on data or has too many.
static bool find_vars(Scope *s, Form *f, const Arith *a)
{
    int64_t value;
    if (scope_constant(s, a, &value))
        return true;
    if (a->kind == A_VAR) {
        BoundVar *b = scope_find(s, a);
        return is_free(b) && add_var(f, b, 1);
    }
    for (int i = 0; i < a->n; i++)
        if (!find_vars(s, f, a->term[i].arg))
            return false;
    return true;
}

static bool read_affine(Scope *s, Form *f, const Arith *a)
{
    int64_t rest = a->kind == A_SUM ? a->value : 0;
    int n = a->kind == A_SUM ? a->n : 1;
    for (int i = 0; i < n; i++) {
        const Arith *arg = a->kind == A_SUM ? a->term[i].arg : a;
        int64_t coef = a->kind == A_SUM ? a->term[i].coef : 1, value;
        BoundVar *b = arg->kind == A_VAR ? scope_find(s, arg) : NULL;
        if (is_free(b)) {
            if (!add_var(f, b, coef))
                return false;
        } else if (scope_constant(s, arg, &value)) {
            rest += coef * value;
        } else {
            return false;
        }
    }
    bool flip = f->n && f->coef[0] < 0;
    for (int i = 0; flip && i < f->n; i++)
        f->coef[i] = -f->coef[i];
    f->lo = flip ? INT64_MIN : -rest;
    f->hi = flip ? rest : INT64_MAX;
    return true;
}

static bool read_form(Scope *s, Form *f, const Arith *cond)
{
    *f = (Form){.cond = cond, .affine = true};
    if (read_affine(s, f, cond))
        return true;
    *f = (Form){.cond = cond};
    return find_vars(s, f, cond);
}

// Counting ----------------------------------------------------------------------------

typedef struct {
    int n;
    int64_t stride[VARS_MAX], count[VARS_MAX]; // largest stride first, all positive
    int64_t most[VARS_MAX + 1];                // of the digits from here on
    double points[VARS_MAX + 1];
} Digits;

static double points_upto(const Digits *d, int i, int64_t limit)
{
    if (limit < 0)
        return 0;
    if (limit >= d->most[i])
        return d->points[i];
    int64_t stride = d->stride[i], rest = d->most[i + 1], full = 0;
    if (limit >= rest)
        full = MIN((limit - rest) / stride + 1, d->count[i]);
    double points = (double)full * d->points[i + 1];
    for (int64_t x = full; x < d->count[i] && x * stride <= limit; x++)
        points += points_upto(d, i + 1, limit - x * stride);
    return points;
}

// Sorts by stride and turns falling digits round; returns what was added to the form.
static int64_t make_digits(const Form *f, Digits *d)
{
    int64_t shift = 0;
    *d = (Digits){.n = f->n};
    for (int i = 0; i < f->n; i++) {
        int64_t coef = f->coef[i], stride = coef < 0 ? -coef : coef;
        shift += coef < 0 ? stride * (f->var[i]->n - 1) : 0;
        int k = i;
        for (; k > 0 && d->stride[k - 1] < stride; k--) {
            d->stride[k] = d->stride[k - 1];
            d->count[k] = d->count[k - 1];
        }
        d->stride[k] = stride;
        d->count[k] = f->var[i]->n;
    }
    d->points[f->n] = 1;
    for (int i = f->n - 1; i >= 0; i--) {
        d->most[i] = d->most[i + 1] + d->stride[i] * (d->count[i] - 1);
        d->points[i] = d->points[i + 1] * (double)d->count[i];
    }
    return shift;
}

static double share_interval(const Form *f, int64_t lo, int64_t hi)
{
    Digits d;
    int64_t shift = make_digits(f, &d);
    double upto = hi == INT64_MAX ? d.points[0] : points_upto(&d, 0, hi + shift);
    double below = lo == INT64_MIN ? 0 : points_upto(&d, 0, lo + shift - 1);
    return MAX(upto - below, 0) / d.points[0];
}

static bool lookup_at(void *user, const Arith *var, int64_t *value)
{
    BoundVar *b = scope_find(user, var);
    if (!b)
        return false;
    *value = b->at;
    return true;
}

typedef struct {
    Scope *scope;
    const Form *form;
    bool affine; // all forms of the part
    int n, part;
    BoundVar *var[VARS_MAX * 2];
    int64_t step[VARS_MAX * 2];
    int nvar;
    double held, tried;
} ShareTrial;

// What is left of [from, to] where lo <= coef * x <= hi; one of lo and hi is none.
static void narrow(int64_t *from, int64_t *to, int64_t coef, int64_t lo, int64_t hi)
{
    int64_t size = coef < 0 ? -coef : coef;
    bool below = lo == INT64_MIN; // coef * x <= hi
    if (coef == 0 && (below ? hi < 0 : lo > 0))
        *to = *from - 1;
    else if (coef && below == (coef > 0))
        *to = MIN(*to, floor_div(below ? hi : -lo, size));
    else if (coef)
        *from = MAX(*from, -floor_div(below ? hi : -lo, size));
}

static void try_point(ShareTrial *t)
{
    t->tried++;
    for (int i = 0; i < t->n; i++) {
        int64_t value;
        if (t->form[i].part == t->part &&
            arith_eval(t->form[i].cond, lookup_at, t->scope, &value) && value < 0)
            return;
    }
    t->held++;
}

// Lines of points along the last variable: on each the forms of the part are intervals.
static int64_t interval_points(const ShareTrial *t, const BoundVar *var, int64_t step)
{
    int64_t from = 0, to = var->n - 1;
    for (int i = 0; i < t->n; i++) {
        const Form *f = &t->form[i];
        if (f->part != t->part)
            continue;
        int64_t rest = 0, coef = 0;
        for (int k = 0; k < f->n; k++)
            if (f->var[k] == var)
                coef = f->coef[k];
            else
                rest += f->coef[k] * f->var[k]->at;
        narrow(&from, &to, coef, f->lo == INT64_MIN ? f->lo : f->lo - rest,
               f->hi == INT64_MAX ? f->hi : f->hi - rest);
    }
    from = (from + step - 1) / step;
    return from * step <= to ? to / step - from + 1 : 0;
}

static void try_points(ShareTrial *t, int i)
{
    if (t->affine && i == t->nvar - 1) {
        t->held += (double)interval_points(t, t->var[i], t->step[i]);
        t->tried += (double)((t->var[i]->n - 1) / t->step[i] + 1);
        return;
    }
    if (i == t->nvar) {
        try_point(t);
        return;
    }
    BoundVar *var = t->var[i];
    int64_t at = var->at;
    for (var->at = 0; var->at < var->n; var->at += t->step[i])
        try_points(t, i + 1);
    var->at = at;
}

static double share_tried(Scope *s, const Form *form, int n, int part)
{
    ShareTrial t = {.scope = s, .form = form, .n = n, .part = part, .affine = true};
    double points = 1;
    for (int i = 0; i < n; i++)
        t.affine &= form[i].part != part || form[i].affine;
    for (int i = 0; i < n; i++)
        for (int k = 0; form[i].part == part && k < form[i].n; k++) {
            int have = 0;
            while (have < t.nvar && t.var[have] != form[i].var[k])
                have++;
            if (have < t.nvar || t.nvar == COUNTOF(t.var))
                continue;
            t.step[t.nvar] = 1;
            t.var[t.nvar++] = form[i].var[k];
            points *= (double)form[i].var[k]->n;
        }
    while (points > TRIED_MAX) {
        int widest = 0;
        for (int k = 1; k < t.nvar; k++)
            if (t.var[k]->n / t.step[k] > t.var[widest]->n / t.step[widest])
                widest = k;
        t.step[widest] *= 2;
        points /= 2;
    }
    try_points(&t, 0);
    return t.held / t.tried;
}

// What was tried out -------------------------------------------------------------------

typedef struct Tried {
    uint64_t key; // 0: empty
    double share;
} Tried;

// By open addressing; when it is full it begins anew.
enum { SHARES_MOST = 1 << 14 };
struct Shares {
    int len;
    Tried slot[2 * SHARES_MOST];
};

Shares *shares_new(void)
{
    return xcalloc(1, sizeof(Shares));
}

void shares_free(Shares *shares)
{
    free(shares);
}

static Tried *find_tried(Shares *shares, uint64_t key)
{
    uint64_t at = key;
    while (shares->slot[at % COUNTOF(shares->slot)].key &&
           shares->slot[at % COUNTOF(shares->slot)].key != key)
        at++;
    return &shares->slot[at % COUNTOF(shares->slot)];
}

// The variables of a part, in the order in which they are met.
typedef struct {
    BoundVar *var[VARS_MAX * 2];
    int n;
} Met;

static uint64_t hash_var(Met *met, BoundVar *var, uint64_t hash)
{
    int at = 0;
    while (at < met->n && met->var[at] != var)
        at++;
    if (at == met->n && met->n < COUNTOF(met->var))
        met->var[met->n++] = var;
    return hash_mix(hash_mix(hash, (uint64_t)at), (uint64_t)var->n);
}

static uint64_t hash_cond(Scope *s, Met *met, const Arith *a, uint64_t hash)
{
    int64_t value;
    if (scope_constant(s, a, &value))
        return hash_mix(hash, (uint64_t)value);
    if (a->kind == A_VAR)
        return hash_var(met, scope_find(s, a), hash);
    hash = hash_mix(hash_mix(hash, a->kind), (uint64_t)a->n);
    if (a->kind == A_SUM)
        hash = hash_mix(hash, (uint64_t)a->value);
    for (int i = 0; i < a->n; i++)
        hash = hash_cond(s, met, a->term[i].arg, hash_mix(hash, (uint64_t)a->term[i].coef));
    return hash;
}

static uint64_t hash_affine(Met *met, const Form *f, uint64_t hash)
{
    hash = hash_mix(hash_mix(hash, (uint64_t)f->lo), (uint64_t)f->hi);
    for (int i = 0; i < f->n; i++)
        hash = hash_mix(hash_var(met, f->var[i], hash), (uint64_t)f->coef[i]);
    return hash;
}

static uint64_t hash_part(Scope *s, const Form *form, int n, int part)
{
    Met met = {.n = 0};
    uint64_t hash = 1;
    for (int i = 0; i < n; i++)
        if (form[i].part == part)
            hash = hash_mix(form[i].affine ? hash_affine(&met, &form[i], hash)
                                           : hash_cond(s, &met, form[i].cond, hash),
                            (uint64_t)form[i].affine);
    return hash ? hash : 1;
}

static double share_known(Scope *s, const Form *form, int n, int part)
{
    Shares *shares = s->setting->shares;
    if (!shares)
        return share_tried(s, form, n, part);
    uint64_t key = hash_part(s, form, n, part);
    Tried *tried = find_tried(shares, key);
    if (tried->key)
        return tried->share;
    if (shares->len == SHARES_MOST) {
        memset(shares, 0, sizeof *shares);
        tried = find_tried(shares, key);
    }
    shares->len++;
    *tried = (Tried){key, share_tried(s, form, n, part)};
    return tried->share;
}

// Parts -------------------------------------------------------------------------------

static bool share_vars(const Form *a, const Form *b)
{
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++)
            if (a->var[i] == b->var[k])
                return true;
    return false;
}

static void join_parts(Form *form, int n)
{
    for (int i = 0; i < n; i++) {
        form[i].part = i;
        for (int k = 0; k < i; k++) {
            int old = form[k].part;
            if (old == form[i].part || !share_vars(&form[i], &form[k]))
                continue;
            for (int j = 0; j < i; j++)
                if (form[j].part == old)
                    form[j].part = form[i].part;
        }
    }
}

static bool same_form(const Form *a, const Form *b)
{
    return a->affine && b->affine && a->n == b->n &&
           !memcmp(a->var, b->var, sizeof *a->var * (size_t)a->n) &&
           !memcmp(a->coef, b->coef, sizeof *a->coef * (size_t)a->n);
}

static double share_part(Scope *s, const Form *form, int n, int part)
{
    const Form *first = NULL;
    int64_t lo = INT64_MIN, hi = INT64_MAX;
    for (int i = 0; i < n; i++) {
        if (form[i].part != part)
            continue;
        if (!first)
            first = &form[i];
        if (!same_form(first, &form[i]))
            return share_known(s, form, n, part);
        lo = MAX(lo, form[i].lo);
        hi = MIN(hi, form[i].hi);
    }
    return first && first->affine ? share_interval(first, lo, hi)
           : first                ? share_known(s, form, n, part)
                                  : 1;
}

static double share_forms(Scope *s, const Arith *const *cond, int n)
{
    Form form[CONDS_MAX];
    int nform = 0;
    double share = 1;
    for (int i = 0; i < n; i++)
        nform += read_form(s, &form[nform], cond[i]);
    join_parts(form, nform);
    for (int part = 0; part < nform; part++)
        share *= share_part(s, form, nform, part);
    return share;
}

// The sides of a condition, and neighbouring loads, ask for the same lists of conditions.
enum { KEPT = 256 };

static double share_all(Scope *s, const Arith *const *cond, int n)
{
    uint64_t key = hash_mix(s->again, (uint64_t)n);
    for (int i = 0; i < n; i++)
        key = hash_mix(key, (uint64_t)(uintptr_t)cond[i]);
    if (!s->kept)
        s->kept = NEW_ARRAY(s->arena, Tried, KEPT);
    Tried *kept = &s->kept[key % KEPT];
    if (kept->key != key)
        *kept = (Tried){key, share_forms(s, cond, n)};
    return kept->share;
}

static double share_from(Scope *s, const Guard *guard, int n, const Arith **cond, int m)
{
    while (n > 0 && !guard->negated) {
        for (int i = 0; i < guard->n && m < CONDS_MAX; i++)
            cond[m++] = guard->cond[i];
        guard++;
        n--;
    }
    if (n == 0)
        return share_all(s, cond, m);
    double without = share_from(s, guard + 1, n - 1, cond, m);
    for (int i = 0; i < guard->n && m < CONDS_MAX; i++)
        cond[m++] = guard->cond[i];
    double with = share_from(s, guard + 1, n - 1, cond, m);
    return MAX(without - with, 0);
}

double scope_share(Scope *s, const Guard *guard, int n)
{
    const Arith *cond[CONDS_MAX];
    return n ? share_from(s, guard, n, cond, 0) : 1;
}
