// SPDX-License-Identifier: Apache-2.0
//
// The iterations of a domain as a system of affine rows, and their number.
//
//   method  a loop is a variable between 0 and its extent; threads that no loop uses are
//           variables too. Floor division and modulo by a constant are variables with
//           their two bounds; a minimum or maximum is two cases; a negated guard is what
//           is left of its absence (inclusion and exclusion). An expression of sizes alone
//           that is not affine is a parameter of its own. Where v*P + i occurs and i runs
//           over P values, P of sizes, both together are one variable.

#include "cost/counts_internal.h"

#include <string.h>

enum { VARS_MOST = 24, CHOICES_MOST = 6, CONDS_MOST = 64 };

typedef struct {
    const Arith *arith; // variable, division, or product of a variable and sizes
    int column;
} KnownColumn;

// A pair of variables that are one together: column `outer` stands for P * outer, and
// must occur with the same coefficient as `inner`.
typedef struct {
    const Arith *product;
    int outer, inner;
} FlatPair;

typedef struct {
    Symbols *symbols;
    const Tally *tally;
    System system;
    KnownColumn known[2 * VARS_MOST];
    int nknown;
    FlatPair flat[4];
    int nflat;
    unsigned choices; // bit k: which side the k-th minimum or maximum takes
    int nchoice;
} SystemReader;

static bool read_row(SystemReader *r, const Arith *a, SumRow *row);

static bool refuse(SystemReader *r, const char *why)
{
    return sum_refuse(&r->symbols->sum, why);
}

static bool add_scaled(SystemReader *r, SumRow *to, const SumRow *from, int64_t factor)
{
    return row_scale_add(to, from, factor) ||
           refuse(r, "a coefficient needs more than 64 bits");
}

// Sizes ---------------------------------------------------------------------------------

static const Arith *definition(const Tally *t, const Arith *var, bool *found)
{
    *found = false;
    for (int i = t->defs.len - 1; i >= 0; i--)
        if (t->defs.at[i].var == var) {
            *found = true;
            return t->defs.at[i].value;
        }
    return NULL;
}

static bool is_loop(const SystemReader *r, const Arith *var)
{
    for (int i = 0; i < r->nknown; i++)
        if (r->known[i].arith == var)
            return true;
    return false;
}

static bool of_sizes(const SystemReader *r, const Arith *a)
{
    bool found;
    if (a->kind == A_VAR) {
        definition(r->tally, a, &found);
        return !found && !is_loop(r, a);
    }
    for (int i = 0; i < a->n; i++)
        if (!of_sizes(r, a->term[i].arg))
            return false;
    return true;
}

static bool read_param(SystemReader *r, const Arith *a, SumRow *row)
{
    Sum *sum = &r->symbols->sum;
    int column = 0;
    while (column < sum->nparam && r->symbols->param[column] != a)
        column++;
    if (column == SUM_PARAMS)
        return refuse(r, "too many sizes");
    if (column == sum->nparam) {
        int64_t lo, hi;
        arith_range(r->symbols->ctx, a, &lo, &hi);
        r->symbols->param[sum->nparam++] = a;
        SumRow least = {{0}};
        least.coef[column] = 1;
        least.coef[SUM_COLS] = -lo;
        if (lo > INT32_MIN && lo <= INT32_MAX)
            VEC_PUSH(sum->arena, &sum->context, least);
    }
    row->coef[column] = 1;
    return true;
}

// Variables -------------------------------------------------------------------------------

static bool at_least_zero(SystemReader *r, const SumRow *row)
{
    system_add(&r->symbols->sum, &r->system, row);
    return true;
}

static int new_column(SystemReader *r, const Arith *a)
{
    int column = sum_live(&r->symbols->sum);
    if (r->nknown == COUNTOF(r->known))
        refuse(r, "too many variables");
    else if (column >= 0)
        r->known[r->nknown++] = (KnownColumn){a, column};
    return r->symbols->sum.refused ? -1 : column;
}

// 0 <= column < n.
static bool bound_column(SystemReader *r, int column, const SumRow *n)
{
    SumRow low = {{0}}, high = *n;
    low.coef[column] = 1;
    high.coef[column] -= 1;
    high.coef[SUM_COLS] -= 1;
    return at_least_zero(r, &low) && at_least_zero(r, &high);
}

static bool add_variable(SystemReader *r, const Arith *a, const Arith *extent)
{
    SumRow n = {{0}};
    int64_t one;
    if (!a && arith_is_const(extent, &one) && one == 1)
        return true;
    int column = new_column(r, a);
    return column >= 0 && read_row(r, extent, &n) && bound_column(r, column, &n);
}

// Terms ---------------------------------------------------------------------------------

static bool read_floor(SystemReader *r, const Arith *a, const Arith *of, int64_t c,
                       SumRow *row)
{
    SumRow inner = {{0}};
    for (int i = 0; i < r->nknown; i++)
        if (r->known[i].arith == a) {
            row->coef[r->known[i].column] = 1;
            return true;
        }
    if (!read_row(r, of, &inner))
        return false;
    bool live = false;
    for (int k = SUM_LIVE; k < SUM_FLOOR; k++)
        live |= inner.coef[k] != 0;
    if (!live)
        return sum_floor(&r->symbols->sum, &inner, c, row);
    int column = new_column(r, a);
    if (column < 0)
        return false;
    row->coef[column] = 1;
    SumRow low = inner, high = {{0}};
    low.coef[column] -= c;
    row_scale_add(&high, &low, -1);
    high.coef[SUM_COLS] += c - 1;
    return at_least_zero(r, &low) && at_least_zero(r, &high);
}

static bool read_division(SystemReader *r, const Arith *a, SumRow *row)
{
    int64_t c;
    const Arith *of = a->term[0].arg;
    ArithCtx *ctx = r->symbols->ctx;
    if (!arith_is_const(a->term[1].arg, &c))
        return of_sizes(r, a) ? read_param(r, a, row)
                              : refuse(r, "an index is divided by a size");
    if (a->kind == A_DIV)
        return read_floor(r, a, of, c, row);
    SumRow whole = {{0}}, quotient = {{0}};
    if (!read_row(r, of, &whole) ||
        !read_floor(r, arith_divc(ctx, of, c), of, c, &quotient))
        return false;
    return add_scaled(r, row, &whole, 1) && add_scaled(r, row, &quotient, -c);
}

// The case that the choices say, with the condition that it is the one.
static bool read_choice(SystemReader *r, const Arith *a, SumRow *row)
{
    SumRow one = {{0}}, other = {{0}}, difference = {{0}};
    if (!read_row(r, a->term[0].arg, &one) || !read_row(r, a->term[1].arg, &other))
        return false;
    if (r->nchoice == CHOICES_MOST)
        return refuse(r, "too many minima and maxima");
    bool second = r->choices >> r->nchoice++ & 1;
    int64_t sign = (a->kind == A_MIN) != second ? 1 : -1;
    if (!add_scaled(r, &difference, &other, sign) ||
        !add_scaled(r, &difference, &one, -sign))
        return false;
    difference.coef[SUM_COLS] -= second;
    return at_least_zero(r, &difference) && add_scaled(r, row, second ? &other : &one, 1);
}

static bool read_product(SystemReader *r, const Arith *a, SumRow *row)
{
    for (int i = 0; i < r->nflat; i++)
        if (r->flat[i].product == a) {
            row->coef[r->flat[i].outer] = 1;
            return true;
        }
    return refuse(r, "an index is multiplied by a size");
}

static bool read_variable(SystemReader *r, const Arith *a, SumRow *row)
{
    bool found;
    const Arith *def = definition(r->tally, a, &found);
    if (found)
        return def ? read_row(r, def, row) : refuse(r, "an index is read from memory");
    for (int i = 0; i < r->nflat; i++)
        for (int k = 0; k < r->nknown; k++)
            if (r->known[k].arith == a && r->known[k].column == r->flat[i].outer)
                return refuse(r, "an index is multiplied by a size");
    for (int k = 0; k < r->nknown; k++)
        if (r->known[k].arith == a) {
            row->coef[r->known[k].column] = 1;
            return true;
        }
    return read_param(r, a, row);
}

static bool read_term(SystemReader *r, const Arith *a, SumRow *row)
{
    bool sizes = a->kind != A_VAR && of_sizes(r, a);
    switch (a->kind) {
    case A_VAR: return read_variable(r, a, row);
    case A_DIV:
    case A_MOD: return read_division(r, a, row);
    case A_MIN:
    case A_MAX: return sizes ? read_param(r, a, row) : read_choice(r, a, row);
    case A_PROD: return sizes ? read_param(r, a, row) : read_product(r, a, row);
    case A_CONST:
    case A_SUM: break;
    }
    return read_row(r, a, row);
}

// Adds a to row.
static bool read_row(SystemReader *r, const Arith *a, SumRow *row)
{
    if (a->kind != A_SUM && a->kind != A_CONST)
        return read_term(r, a, row);
    row->coef[SUM_COLS] += a->value;
    for (int i = 0; i < a->n; i++) {
        SumRow term = {{0}};
        if (!read_term(r, a->term[i].arg, &term) ||
            !add_scaled(r, row, &term, a->term[i].coef))
            return false;
    }
    return true;
}

// Products --------------------------------------------------------------------------------

// The loop over n values, n a factor of the product; NULL if there is none.
static const Stm *loop_over(const Domain *d, const Arith *n)
{
    for (int i = 0; i < d->nloop; i++)
        if (d->loop[i]->extent == n)
            return d->loop[i];
    return NULL;
}

static int column_of(const SystemReader *r, const Arith *var)
{
    for (int i = 0; i < r->nknown; i++)
        if (r->known[i].arith == var)
            return r->known[i].column;
    return -1;
}

// v * P, where another loop runs over P: its column becomes v * P + that loop's.
static bool add_flat(SystemReader *r, const Domain *d, const Arith *product)
{
    ArithCtx *ctx = r->symbols->ctx;
    const Arith *factor = arith_const(ctx, 1), *var = NULL;
    for (int i = 0; i < r->nflat; i++)
        if (r->flat[i].product == product)
            return true;
    for (int i = 0; i < product->n; i++) {
        const Arith *f = product->term[i].arg;
        if (of_sizes(r, f))
            factor = arith_mul(ctx, factor, f);
        else if (var)
            return refuse(r, "two indices are multiplied");
        else
            var = f;
    }
    const Stm *inner = loop_over(d, factor), *outer = NULL;
    for (int i = 0; var && i < d->nloop; i++)
        outer = d->loop[i]->iter == var ? d->loop[i] : outer;
    if (!inner || !outer || r->nflat == COUNTOF(r->flat))
        return refuse(r, "an index is multiplied by a size");
    r->flat[r->nflat++] =
        (FlatPair){product, column_of(r, outer->iter), column_of(r, inner->iter)};
    return true;
}

static bool find_flat(SystemReader *r, const Domain *d, const Arith *a)
{
    bool found;
    const Arith *def = a->kind == A_VAR ? definition(r->tally, a, &found) : NULL;
    if (def && !find_flat(r, d, def))
        return false;
    if (a->kind == A_PROD && !of_sizes(r, a))
        return add_flat(r, d, a);
    for (int i = 0; i < a->n; i++)
        if (!find_flat(r, d, a->term[i].arg))
            return false;
    return true;
}

// Both variables occur together in every condition; the inner one is then gone.
static bool join_flat(SystemReader *r, const Domain *d, int first)
{
    ARRAY_EACH_REF(const FlatPair *, flat, r->flat, r->nflat) {
        SumRows *in = &r->system.in;
        for (int i = first; i < in->len; i++) {
            if (in->at[i].coef[flat->outer] != in->at[i].coef[flat->inner])
                return refuse(r, "an index is multiplied by a size");
            in->at[i].coef[flat->inner] = 0;
        }
        int kept = 0;
        for (int i = 0; i < in->len; i++)
            if (i >= first ||
                (!in->at[i].coef[flat->outer] && !in->at[i].coef[flat->inner]))
                in->at[kept++] = in->at[i];
        first -= in->len - kept;
        in->len = kept;
        const Arith *n = arith_const(r->symbols->ctx, 1);
        for (int i = 0; i < d->nloop; i++) {
            int column = column_of(r, d->loop[i]->iter);
            if (column == flat->outer || column == flat->inner)
                n = arith_mul(r->symbols->ctx, n, d->loop[i]->extent);
        }
        SumRow extent = {{0}};
        r->symbols->sum.alive &= ~(1U << (flat->inner - SUM_LIVE));
        if (!read_row(r, n, &extent) || !bound_column(r, flat->outer, &extent))
            return false;
    }
    return true;
}

// Domains ---------------------------------------------------------------------------------

// Threads that no loop of the domain spreads over do all of it.
static bool add_threads(SystemReader *r, const Domain *d)
{
    ArithCtx *ctx = r->symbols->ctx;
    const Kernel *kernel = r->tally->kernel;
    for (int dim = 0; dim < 3; dim++) {
        int seen[4] = {0};
        for (int i = 0; i < d->nloop; i++)
            if (d->loop[i]->loop != LOOP_SEQ && d->loop[i]->dim == dim)
                seen[d->loop[i]->loop]++;
        if (seen[LOOP_GLB] + seen[LOOP_WRG] > 1 || seen[LOOP_GLB] + seen[LOOP_LCL] > 1)
            return refuse(r, "the same threads are spread over two nested loops");
        const Arith *global = kernel->global[dim], *n = global;
        if (seen[LOOP_GLB] || (seen[LOOP_WRG] && seen[LOOP_LCL]))
            continue;
        if (seen[LOOP_WRG])
            n = arith_const(ctx, kernel->local[dim]);
        else if (seen[LOOP_LCL])
            n = arith_divc(ctx, global, kernel->local[dim]);
        if (!add_variable(r, NULL, n))
            return false;
    }
    return true;
}

static bool read_domain(SystemReader *r, const Domain *d, const Arith *const *cond,
                        int ncond)
{
    r->symbols->sum.alive = 0;
    for (int i = 0; i < d->nloop; i++)
        if (!add_variable(r, d->loop[i]->iter, d->loop[i]->extent))
            return false;
    for (int i = 0; i < ncond; i++)
        if (!find_flat(r, d, cond[i]))
            return false;
    if (!add_threads(r, d))
        return false;
    int first = r->system.in.len;
    for (int i = 0; i < ncond; i++) {
        SumRow row = {{0}};
        if (!read_row(r, cond[i], &row) || !at_least_zero(r, &row))
            return false;
    }
    return join_flat(r, d, first);
}

static void scale_pieces(Arena *arena, Pieces *pieces, int first, int64_t sign)
{
    for (int i = first; sign < 0 && i < pieces->len; i++) {
        CountPoly poly = {0};
        qpoly_add(arena, &poly, &pieces->at[i].poly, (Ratio){-1, 1});
        pieces->at[i].poly = poly;
    }
}

// All conditions hold; one case for each way the minima and maxima can fall.
static bool count_conditions(Symbols *s, const Tally *t, const Domain *d,
                             const Arith *const *cond, int ncond, int64_t sign,
                             Pieces *pieces)
{
    int first = pieces->len, nchoice = 0;
    for (unsigned choices = 0; choices < 1U << nchoice; choices++) {
        SystemReader r = {.symbols = s, .tally = t, .choices = choices};
        s->sum.refused = NULL;
        if (!read_domain(&r, d, cond, ncond) || !sum_count(&s->sum, &r.system, pieces))
            return false;
        nchoice = r.nchoice;
    }
    scale_pieces(s->sum.arena, pieces, first, sign);
    return true;
}

static bool on_data(const Tally *t, const Arith *a)
{
    bool found;
    const Arith *def = a->kind == A_VAR ? definition(t, a, &found) : NULL;
    if (a->kind == A_VAR && found)
        return !def || on_data(t, def);
    for (int i = 0; i < a->n; i++)
        if (on_data(t, a->term[i].arg))
            return true;
    return false;
}

static int add_guard(const Tally *t, const Guard *guard, const Arith **cond, int n)
{
    for (int i = 0; i < guard->n && n < CONDS_MOST; i++)
        if (!on_data(t, guard->cond[i]))
            cond[n++] = guard->cond[i];
    return n;
}

static bool count_guards(Symbols *s, const Tally *t, const Domain *d, int guard,
                         const Arith **cond, int n, int64_t sign, Pieces *pieces)
{
    while (guard < d->nguard && !d->guard[guard].negated)
        n = add_guard(t, &d->guard[guard++], cond, n);
    if (n == CONDS_MOST)
        return sum_refuse(&s->sum, "too many conditions");
    if (guard == d->nguard)
        return count_conditions(s, t, d, cond, n, sign, pieces);
    int with = add_guard(t, &d->guard[guard], cond, n);
    return count_guards(s, t, d, guard + 1, cond, with, -sign, pieces) &&
           count_guards(s, t, d, guard + 1, cond, n, sign, pieces);
}

bool symbols_count(Symbols *s, const Tally *t, const Domain *d, Pieces *pieces)
{
    const Arith *cond[CONDS_MOST];
    return count_guards(s, t, d, 0, cond, 0, 1, pieces);
}
