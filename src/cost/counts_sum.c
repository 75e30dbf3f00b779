// SPDX-License-Identifier: Apache-2.0
//
// The summation; see counts_sum.h.
//
//   method  one live variable is eliminated at a time, the cheapest first: by an equality;
//           as a factor, where its bounds leave it a constant number of values; by putting
//           a tiled index together again; else, for each pair of a greatest lower and a
//           least upper bound, by Faulhaber's formula between the two. Bounds that are not
//           whole are floors: of parameters a new column, of other variables a variable of
//           its own, or else the variable is split by residues, which always ends.
//
// A lower bound just above the upper one sums to 0 by itself, so no test for integer
// emptiness is needed; the bounds are compared as rationals.

#include "cost/counts_sum.h"

#include <gmp.h>
#include <isl/aff.h>
#include <isl/ctx.h>
#include <isl/mat.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>
#include <stdlib.h>
#include <string.h>

enum { LIVES = SUM_FLOOR - SUM_LIVE, FLOORS = SUM_COLS - SUM_FLOOR, BOUNDS = 64 };
enum { OPERATIONS = 200000, DEPTH_MOST = 64, PIECES_MOST = 512, STEPS_MOST = 20000 };

void sum_init(Sum *s, Arena *arena)
{
    *s = (Sum){.arena = arena, .isl = isl_ctx_alloc()};
    if (!s->isl)
        out_of_memory(0);
    isl_options_set_on_error(s->isl, ISL_ON_ERROR_CONTINUE);
}

void sum_release(Sum *s)
{
    isl_ctx_free(s->isl);
}

static void *regrow(void *p, size_t before, size_t size)
{
    return xrealloc(p, size);
}

static void give_back(void *p, size_t size)
{
    free(p);
}

void sum_memory(void)
{
    mp_set_memory_functions(xmalloc, regrow, give_back);
}

// What isl had no memory for is no fault of the system.
bool sum_refuse(Sum *s, const char *why)
{
    if (isl_ctx_last_error(s->isl) == isl_error_alloc)
        out_of_memory(0);
    s->refused = s->refused ? s->refused : why;
    return false;
}

static bool overflow(Sum *s)
{
    return sum_refuse(s, "a number does not fit into 128 bits");
}

int sum_live(Sum *s)
{
    for (int i = 0; i < LIVES; i++)
        if (!(s->alive >> i & 1)) {
            s->alive |= 1U << i;
            return SUM_LIVE + i;
        }
    sum_refuse(s, "too many variables");
    return -1;
}

void system_add(Sum *s, System *system, const SumRow *row)
{
    VEC_PUSH(s->arena, &system->in, *row);
}

static bool is_live(uint32_t alive, int column)
{
    return column >= SUM_LIVE && column < SUM_FLOOR && (alive >> (column - SUM_LIVE) & 1);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a < 0 ? -a : a;
}

static int floor_column(Sum *s, const SumRow *row, int64_t den)
{
    for (int i = 0; i < s->floors.len; i++)
        if (s->floors.at[i].den == den && !memcmp(&s->floors.at[i].row, row, sizeof *row))
            return SUM_FLOOR + i;
    if (s->floors.len == FLOORS) {
        sum_refuse(s, "too many floors");
        return -1;
    }
    VEC_PUSH(s->arena, &s->floors, (FloorRow){*row, den});
    return SUM_FLOOR + s->floors.len - 1;
}

// row := what is left when multiples of den go to out; coefficients become small, and the
// first of them positive by floor(-x / den) = -floor((x + den - 1) / den). Returns the
// sign.
static int split_whole(SumRow *row, int64_t den, SumRow *out)
{
    int sign = 0;
    for (int k = 0; k < SUM_COLS; k++) {
        int64_t q = floor_div(row->coef[k], den), r = row->coef[k] - q * den;
        bool up = 2 * r > den || (2 * r == den && sign < 0);
        out->coef[k] = q + up;
        row->coef[k] = r - (up ? den : 0);
        sign = sign ? sign : row->coef[k] > 0 ? 1 : row->coef[k] < 0 ? -1 : 0;
    }
    if (sign < 0) {
        for (int k = 0; k <= SUM_COLS; k++)
            row->coef[k] = -row->coef[k];
        row->coef[SUM_COLS] += den - 1;
    }
    int64_t q = floor_div(row->coef[SUM_COLS], den);
    row->coef[SUM_COLS] -= q * den;
    out->coef[SUM_COLS] = sign < 0 ? -q : q;
    return sign;
}

bool sum_floor(Sum *s, const SumRow *of, int64_t den, SumRow *out)
{
    SumRow row = *of;
    int sign = split_whole(&row, den, out);
    int64_t g = den;
    for (int k = 0; k < SUM_COLS; k++)
        g = gcd(g, row.coef[k]);
    for (int k = 0; k < SUM_COLS; k++)
        row.coef[k] /= g;
    row.coef[SUM_COLS] = floor_div(row.coef[SUM_COLS], g);
    if (!sign)
        return true;
    if (den / g == 1)
        return row_scale_add(out, &row, sign) || overflow(s);
    for (int k = SUM_LIVE; k < SUM_FLOOR; k++)
        if (row.coef[k])
            BUG("a floor depends on a variable that is left");
    int column = floor_column(s, &row, den / g);
    if (column >= 0)
        out->coef[column] += sign;
    return column >= 0;
}

// A row is nearly a kilobyte: room for just as many.
static SumRows room_for(Sum *s, int n)
{
    return (SumRows){.at = NEW_ARRAY(s->arena, SumRow, n), .cap = n};
}

static SumRows copy_rows(Sum *s, const SumRows *rows)
{
    SumRows copy = room_for(s, rows->len);
    if (rows->len)
        memcpy(copy.at, rows->at, sizeof(SumRow) * (size_t)rows->len);
    copy.len = rows->len;
    return copy;
}

static System copy_system(Sum *s, const System *system)
{
    return (System){copy_rows(s, &system->eq), copy_rows(s, &system->in)};
}

// isl ---------------------------------------------------------------------------------

typedef struct {
    int column[SUM_COLS], n; // those in use
} SumColumns;

static void use_columns(bool used[SUM_COLS], const SumRows *rows)
{
    for (int i = 0; i < rows->len; i++)
        for (int k = 0; k < SUM_COLS; k++)
            used[k] |= rows->at[i].coef[k] != 0;
}

static SumColumns find_columns(const Sum *s, const System *system)
{
    bool used[SUM_COLS] = {false};
    SumColumns columns = {.n = 0};
    use_columns(used, &system->eq);
    use_columns(used, &system->in);
    for (int f = s->floors.len - 1; f >= 0; f--)
        for (int k = 0; used[SUM_FLOOR + f] && k < SUM_COLS; k++)
            used[k] |= s->floors.at[f].row.coef[k] != 0;
    for (int k = 0; k < SUM_COLS; k++)
        if (used[k])
            columns.column[columns.n++] = k;
    return columns;
}

static isl_mat *to_matrix(const Sum *s, const SumRows *rows, const SumColumns *columns)
{
    isl_mat *m = isl_mat_alloc(s->isl, (unsigned)rows->len, (unsigned)columns->n + 1);
    for (int i = 0; i < rows->len; i++)
        for (int k = 0; k <= columns->n; k++) {
            int column = k < columns->n ? columns->column[k] : SUM_COLS;
            isl_val *v = isl_val_int_from_si(s->isl, rows->at[i].coef[column]);
            m = isl_mat_set_element_val(m, i, k, v);
        }
    return m;
}

static isl_basic_set *to_set(const Sum *s, const SumRows *eq, const SumRows *in,
                             const SumColumns *columns)
{
    return isl_basic_set_from_constraint_matrices(
        isl_space_set_alloc(s->isl, 0, (unsigned)columns->n), to_matrix(s, eq, columns),
        to_matrix(s, in, columns), isl_dim_set, isl_dim_div, isl_dim_param, isl_dim_cst);
}

static bool from_matrix(Sum *s, isl_mat *m, const SumColumns *columns, SumRows *rows)
{
    int n = m ? (int)isl_mat_rows(m) : 0;
    *rows = room_for(s, n);
    for (int i = 0; i < n; i++) {
        SumRow row = {{0}};
        for (int k = 0; k <= columns->n; k++) {
            isl_val *v = isl_mat_get_element_val(m, i, k);
            row.coef[k < columns->n ? columns->column[k] : SUM_COLS] =
                isl_val_get_num_si(v);
            isl_val_free(v);
        }
        VEC_PUSH(s->arena, rows, row);
    }
    isl_mat_free(m);
    return isl_ctx_last_error(s->isl) == isl_error_none ||
           sum_refuse(s, "a coefficient needs more than 64 bits");
}

// What holds of the columns anyway: the context, and what floors are.
static SumRows known_rows(Sum *s, const SumColumns *columns)
{
    bool used[SUM_COLS] = {false};
    int floors = 0;
    for (int i = 0; i < columns->n; i++) {
        used[columns->column[i]] = true;
        floors += columns->column[i] >= SUM_FLOOR;
    }
    SumRows known = room_for(s, s->context.len + 2 * floors);
    for (int i = 0; i < s->context.len; i++) {
        bool all = true;
        for (int k = 0; k < SUM_COLS; k++)
            all &= used[k] || !s->context.at[i].coef[k];
        if (all)
            VEC_PUSH(s->arena, &known, s->context.at[i]);
    }
    for (int f = 0; f < s->floors.len; f++) {
        if (!used[SUM_FLOOR + f])
            continue;
        SumRow low = s->floors.at[f].row, high = {{0}};
        low.coef[SUM_FLOOR + f] -= s->floors.at[f].den;
        row_scale_add(&high, &low, -1);
        high.coef[SUM_COLS] += s->floors.at[f].den - 1;
        VEC_PUSH(s->arena, &known, low);
        VEC_PUSH(s->arena, &known, high);
    }
    return known;
}

// Drops what is redundant or known. False if the system is empty, or when refused.
static bool simplify(Sum *s, System *system)
{
    SumColumns columns = find_columns(s, system);
    if (!columns.n && !system->eq.len && !system->in.len)
        return true;
    SumRows none = {0}, known = known_rows(s, &columns);
    isl_basic_set *context = to_set(s, &none, &known, &columns);
    isl_basic_set *set = isl_basic_set_intersect(
        to_set(s, &system->eq, &system->in, &columns), isl_basic_set_copy(context));
    set = isl_basic_set_remove_redundancies(set); // finds what is empty as rationals
    isl_bool empty = isl_basic_set_plain_is_empty(set);
    if (empty != isl_bool_false) {
        isl_basic_set_free(set);
        isl_basic_set_free(context);
        return empty == isl_bool_true ? false : sum_refuse(s, "isl's quota is used up");
    }
    set = known.len ? isl_basic_set_gist(set, context) : set;
    if (!known.len)
        isl_basic_set_free(context);
    bool ok = set && isl_basic_set_dim(set, isl_dim_div) == 0;
    if (!ok)
        sum_refuse(s, "isl's quota is used up");
    ok = ok &&
         from_matrix(s,
                     isl_basic_set_equalities_matrix(set, isl_dim_set, isl_dim_div,
                                                     isl_dim_param, isl_dim_cst),
                     &columns, &system->eq) &&
         from_matrix(s,
                     isl_basic_set_inequalities_matrix(set, isl_dim_set, isl_dim_div,
                                                       isl_dim_param, isl_dim_cst),
                     &columns, &system->in);
    isl_basic_set_free(set);
    return ok;
}

// One variable ------------------------------------------------------------------------

typedef struct {
    System system;
    CountPoly poly;
    uint32_t alive;
    int forced; // the variable to eliminate next, or -1
} Todo;

static bool eliminate(Sum *s, Todo todo, Pieces *pieces, int depth);

static bool mentions(const CountPoly *poly, int column)
{
    return qpoly_degree(poly, column) > 0;
}

static uint32_t without(uint32_t alive, int column)
{
    return alive & ~(1U << (column - SUM_LIVE));
}

// column := by, in every row.
static bool substitute_rows(SumRows *rows, int column, const SumRow *by)
{
    for (int i = 0; i < rows->len; i++) {
        int64_t c = rows->at[i].coef[column];
        rows->at[i].coef[column] = 0;
        if (c && !row_scale_add(&rows->at[i], by, c))
            return false;
    }
    return true;
}

static bool substitute(Sum *s, Todo *t, int column, const SumRow *by)
{
    CountPoly as_poly, poly;
    if (!substitute_rows(&t->system.eq, column, by) ||
        !substitute_rows(&t->system.in, column, by) || !qpoly_row(s->arena, &as_poly, by) ||
        !qpoly_substitute(s->arena, &poly, &t->poly, column, &as_poly))
        return overflow(s);
    t->poly = poly;
    return true;
}

// An equality with coefficient 1 gives its variable away.
static bool by_equality(Sum *s, Todo *t, bool *done)
{
    SumRows *eq = &t->system.eq;
    for (int i = 0; i < eq->len; i++)
        for (int v = SUM_LIVE; v < SUM_FLOOR; v++) {
            int64_t c = eq->at[i].coef[v];
            if (!is_live(t->alive, v) || (c != 1 && c != -1))
                continue;
            SumRow by = {{0}};
            row_scale_add(&by, &eq->at[i], -c);
            by.coef[v] = 0;
            eq->at[i] = eq->at[--eq->len];
            t->alive = without(t->alive, v);
            t->forced = t->forced == v ? -1 : t->forced;
            *done = true;
            return substitute(s, t, v, &by);
        }
    return true;
}

// Other equalities of live variables become two inequalities.
static void split_equalities(Sum *s, Todo *t)
{
    SumRows *eq = &t->system.eq;
    for (int i = 0; i < eq->len;) {
        bool live = false;
        for (int v = SUM_LIVE; v < SUM_FLOOR; v++)
            live |= is_live(t->alive, v) && eq->at[i].coef[v];
        if (!live) {
            i++;
            continue;
        }
        SumRow row = eq->at[i], negative = {{0}};
        row_scale_add(&negative, &row, -1);
        system_add(s, &t->system, &row);
        system_add(s, &t->system, &negative);
        eq->at[i] = eq->at[--eq->len];
    }
}

// f <= c v <= f + k c + c - 1 holds for k + 1 values of v, whatever f is.
static bool by_factor(Sum *s, Todo *t, bool *done)
{
    SumRows *in = &t->system.in;
    for (int v = SUM_LIVE; v < SUM_FLOOR; v++) {
        int lower = -1, upper = -1, n = 0;
        if (!is_live(t->alive, v) || mentions(&t->poly, v))
            continue;
        for (int i = 0; i < in->len; i++) {
            n += in->at[i].coef[v] != 0;
            lower = in->at[i].coef[v] > 0 ? i : lower;
            upper = in->at[i].coef[v] < 0 ? i : upper;
        }
        if (n != 2 || lower < 0 || upper < 0)
            continue;
        SumRow both = in->at[lower];
        bool constant = row_scale_add(&both, &in->at[upper], 1);
        for (int k = 0; k < SUM_COLS; k++)
            constant &= both.coef[k] == 0;
        int64_t c = in->at[lower].coef[v], width = both.coef[SUM_COLS];
        if (!constant || (width + 1) % c)
            continue;
        in->at[MAX(lower, upper)] = in->at[in->len - 1];
        in->at[MIN(lower, upper)] = in->at[in->len - 2];
        in->len -= 2;
        CountPoly poly = {0};
        if (!qpoly_add(s->arena, &poly, &t->poly, ratio_new((width + 1) / c, 1)))
            return overflow(s);
        t->poly = poly;
        t->alive = without(t->alive, v);
        t->forced = -1;
        *done = true;
        return true;
    }
    return true;
}

// Item takes just the values 0 to m - 1, but for rows in which m tile goes with it; and
// rows with tile alone have it once.
static bool is_item(const Todo *t, int tile, int item, int64_t m)
{
    bool low = false, high = false;
    VEC_EACH_REF(const SumRow *, row, &t->system.in) {
        int64_t g = row->coef[item], of_tile = row->coef[tile];
        if (!g && (of_tile > 1 || of_tile < -1))
            return false;
        if (!g || of_tile == g * m)
            continue;
        bool alone = g == 1 || g == -1;
        for (int k = 0; k < SUM_COLS; k++)
            alone &= k == item || !row->coef[k];
        low |= alone && g == 1 && row->coef[SUM_COLS] == 0;
        high |= alone && g == -1 && row->coef[SUM_COLS] == m - 1;
        if (!alone)
            return false;
    }
    return low && high;
}

// tile + f >= 0 is m tile + item + m f >= 0, and -tile + f >= 0 the like, for items.
static bool align_tile(Sum *s, Todo *t, int tile, int item, int64_t m)
{
    for (int i = 0; i < t->system.in.len; i++) {
        SumRow *row = &t->system.in.at[i], scaled = {{0}};
        int64_t g = row->coef[tile];
        if (row->coef[item] || !g)
            continue;
        if (!row_scale_add(&scaled, row, m))
            return overflow(s);
        scaled.coef[item] = g;
        scaled.coef[SUM_COLS] += g < 0 ? m - 1 : 0;
        *row = scaled;
    }
    return true;
}

// m tile + item becomes one variable.
static bool join_tile(Sum *s, Todo *t, int tile, int item, int64_t m)
{
    uint32_t before = s->alive;
    s->alive = t->alive;
    int x = sum_live(s);
    s->alive = before;
    if (x < 0)
        return false;
    SumRow by = {{0}};
    by.coef[x] = 1;
    by.coef[tile] = -m;
    t->alive = without(t->alive, item) | 1U << (x - SUM_LIVE);
    t->forced = -1;
    return substitute(s, t, item, &by);
}

// The m of a row with g m tile + g item, or 0.
static int64_t tile_ratio(const Todo *t, int tile, int item)
{
    for (int i = 0; i < t->system.in.len; i++) {
        int64_t g = t->system.in.at[i].coef[item], c = t->system.in.at[i].coef[tile];
        if (g && c && c % g == 0 && c / g > 1)
            return c / g;
    }
    return 0;
}

static bool by_tile(Sum *s, Todo *t, bool *done)
{
    for (int tile = SUM_LIVE; tile < SUM_FLOOR; tile++) {
        if (!is_live(t->alive, tile) || mentions(&t->poly, tile))
            continue;
        for (int item = SUM_LIVE; item < SUM_FLOOR; item++) {
            if (!is_live(t->alive, item) || item == tile || mentions(&t->poly, item))
                continue;
            int64_t m = tile_ratio(t, tile, item);
            if (m < 2 || !is_item(t, tile, item, m))
                continue;
            *done = true;
            return align_tile(s, t, tile, item, m) && join_tile(s, t, tile, item, m);
        }
    }
    return true;
}

static bool floorable(const SumRow *row, int64_t c, uint32_t alive)
{
    for (int k = SUM_LIVE; k < SUM_FLOOR; k++)
        if (is_live(alive, k) && row->coef[k] % c)
            return false;
    return true;
}

static int choose(const Todo *t)
{
    int best = -1;
    double least = 1e300;
    for (int v = SUM_LIVE; v < SUM_FLOOR; v++) {
        if (!is_live(t->alive, v))
            continue;
        int lower = 0, upper = 0;
        double extra = 0;
        VEC_EACH_REF(const SumRow *, row, &t->system.in) {
            int64_t c = row->coef[v] < 0 ? -row->coef[v] : row->coef[v];
            lower += row->coef[v] > 0;
            upper += row->coef[v] < 0;
            if (c > 1)
                extra += floorable(row, c, without(t->alive, v)) ? 3 : 1000. * (double)c;
        }
        if (!lower || !upper)
            return -1;
        double cost = v == t->forced ? -1 : lower * upper + extra;
        if (cost < least) {
            least = cost;
            best = v;
        }
    }
    return best;
}

// floor(f / c) of the bound f becomes a variable q of its own, if a variable with
// coefficient 1 can be eliminated for it.
static bool lift_floor(Sum *s, Todo *t, int v, int bound, bool *done)
{
    SumRow f = t->system.in.at[bound];
    int64_t c = f.coef[v], size = c < 0 ? -c : c;
    for (int j = SUM_LIVE; j < SUM_FLOOR && t->forced < 0; j++) {
        bool ok = is_live(t->alive, j) && j != v && (f.coef[j] == 1 || f.coef[j] == -1);
        for (int i = 0; ok && i < t->system.in.len; i++)
            ok = t->system.in.at[i].coef[j] <= 1 && t->system.in.at[i].coef[j] >= -1;
        if (!ok)
            continue;
        uint32_t before = s->alive;
        s->alive = t->alive;
        int q = sum_live(s);
        s->alive = before;
        if (q < 0)
            return false;
        f.coef[v] = 0;
        SumRow low = f, high = {{0}}, plain = {{0}};
        low.coef[q] = -size;
        row_scale_add(&high, &low, -1);
        high.coef[SUM_COLS] += size - 1;
        plain.coef[v] = c > 0 ? 1 : -1;
        plain.coef[q] = 1;
        t->system.in.at[bound] = plain;
        system_add(s, &t->system, &low);
        system_add(s, &t->system, &high);
        t->alive |= 1U << (q - SUM_LIVE);
        t->forced = j;
        *done = true;
        return true;
    }
    return true;
}

// One case for each residue of the first variable that is in the way.
static bool split_residues(Sum *s, const Todo *t, int v, int bound, Pieces *pieces,
                           int depth)
{
    const SumRow *row = &t->system.in.at[bound];
    int64_t c = row->coef[v] < 0 ? -row->coef[v] : row->coef[v];
    int j = SUM_LIVE;
    while (!is_live(without(t->alive, v), j) || row->coef[j] % c == 0)
        j++;
    int64_t m = c / gcd(c, row->coef[j]);
    if (m > 64)
        return sum_refuse(s, "too many residues");
    for (int64_t r = 0; r < m; r++) {
        Todo part = *t;
        SumRow by = {{0}};
        by.coef[j] = m;
        by.coef[SUM_COLS] = r;
        part.system = copy_system(s, &t->system);
        part.forced = v;
        if (!substitute(s, &part, j, &by) || !eliminate(s, part, pieces, depth + 1))
            return false;
    }
    return true;
}

// Faulhaber -----------------------------------------------------------------------------

// The polynomial summed over v from ceil(lower) to floor(upper).
static bool sum_between(Sum *s, const Todo *t, int v, const SumRow *lower,
                        const SumRow *upper, CountPoly *out)
{
    SumRow low = *lower, high = *upper, below = {{0}}, last, before_first = {{0}};
    CountPoly top, minus;
    int64_t c = low.coef[v], d = -high.coef[v];
    low.coef[v] = high.coef[v] = 0;
    if (!sum_floor(s, &low, c, &below) || !sum_floor(s, &high, d, &last))
        return false;
    bool ok = row_scale_add(&before_first, &below, -1);
    before_first.coef[SUM_COLS] -= 1;
    ok = ok && qpoly_row(s->arena, &top, &last) &&
         qpoly_row(s->arena, &minus, &before_first);
    *out = (CountPoly){0};
    for (int k = 0; ok && k <= qpoly_degree(&t->poly, v); k++) {
        CountPoly part, upto, before, product;
        qpoly_part(s->arena, &part, &t->poly, v, k);
        if (!part.len)
            continue;
        ok = qpoly_faulhaber(s->arena, &upto, k, &top) &&
             qpoly_faulhaber(s->arena, &before, k, &minus) &&
             qpoly_add(s->arena, &upto, &before, (Ratio){-1, 1}) &&
             qpoly_mul(s->arena, &product, &part, &upto) &&
             qpoly_add(s->arena, out, &product, (Ratio){1, 1});
    }
    return ok || overflow(s);
}

typedef struct {
    int at[BOUNDS], n;
} Bounds;

// x * a + y * b >= 0, or > 0.
static bool add_combined(Sum *s, System *system, const SumRow *a, int64_t x,
                         const SumRow *b, int64_t y, bool strict)
{
    SumRow row = {{0}};
    if (!row_scale_add(&row, a, x) || !row_scale_add(&row, b, y))
        return overflow(s);
    row.coef[SUM_COLS] -= strict;
    system_add(s, system, &row);
    return true;
}

// Lower bound a is the greatest, upper bound b the least; of equal ones the first.
static bool restrict_to(Sum *s, const Todo *t, int v, const Bounds *lower,
                        const Bounds *upper, int a, int b, System *out)
{
    const SumRow *in = t->system.in.at, *l = &in[lower->at[a]], *u = &in[upper->at[b]];
    int64_t c = l->coef[v], d = -u->coef[v];
    *out = (System){.eq = copy_rows(s, &t->system.eq)};
    for (int i = 0; i < t->system.in.len; i++)
        if (!in[i].coef[v])
            system_add(s, out, &in[i]);
    bool ok = add_combined(s, out, l, d, u, c, false);
    for (int k = 0; ok && k < lower->n; k++) {
        const SumRow *other = &in[lower->at[k]];
        if (k != a)
            ok = add_combined(s, out, other, c, l, -other->coef[v], k < a);
    }
    for (int k = 0; ok && k < upper->n; k++) {
        const SumRow *other = &in[upper->at[k]];
        if (k != b)
            ok = add_combined(s, out, other, d, u, other->coef[v], k < b);
    }
    return ok;
}

static bool by_summation(Sum *s, const Todo *t, int v, Pieces *pieces, int depth)
{
    Bounds lower = {.n = 0}, upper = {.n = 0};
    for (int i = 0; i < t->system.in.len; i++) {
        int64_t c = t->system.in.at[i].coef[v];
        Bounds *bounds = c > 0 ? &lower : &upper;
        if (c && bounds->n == BOUNDS)
            return sum_refuse(s, "too many bounds");
        if (c)
            bounds->at[bounds->n++] = i;
    }
    for (int a = 0; a < lower.n; a++)
        for (int b = 0; b < upper.n; b++) {
            Todo part = {.alive = without(t->alive, v), .forced = -1};
            if (!restrict_to(s, t, v, &lower, &upper, a, b, &part.system))
                return false;
            if (!simplify(s, &part.system)) {
                if (s->refused)
                    return false;
                continue;
            }
            if (!sum_between(s, t, v, &t->system.in.at[lower.at[a]],
                             &t->system.in.at[upper.at[b]], &part.poly) ||
                !eliminate(s, part, pieces, depth + 1))
                return false;
        }
    return true;
}

static bool eliminate(Sum *s, Todo t, Pieces *pieces, int depth)
{
    if (depth > DEPTH_MOST || pieces->len > PIECES_MOST || s->steps++ > STEPS_MOST)
        return sum_refuse(s, "too many cases");
    for (;;) {
        bool done = false;
        if (!t.poly.len || !simplify(s, &t.system))
            return !s->refused;
        if (!t.alive) {
            VEC_PUSH(s->arena, pieces, (Piece){t.system, t.poly});
            return true;
        }
        if (!by_equality(s, &t, &done))
            return false;
        if (done)
            continue;
        split_equalities(s, &t);
        if (!by_factor(s, &t, &done) || (!done && !by_tile(s, &t, &done)))
            return false;
        if (done)
            continue;
        int v = choose(&t);
        if (v < 0)
            return sum_refuse(s, "a variable has no bound");
        int bound = -1;
        for (int i = 0; bound < 0 && i < t.system.in.len; i++) {
            int64_t c = t.system.in.at[i].coef[v], size = c < 0 ? -c : c;
            if (size > 1 && !floorable(&t.system.in.at[i], size, without(t.alive, v)))
                bound = i;
        }
        if (bound < 0)
            return by_summation(s, &t, v, pieces, depth);
        if (!lift_floor(s, &t, v, bound, &done))
            return false;
        if (!done)
            return split_residues(s, &t, v, bound, pieces, depth);
    }
}

// Parts -----------------------------------------------------------------------------------

static uint32_t lives_of(const SumRow *row)
{
    uint32_t lives = 0;
    for (int k = SUM_LIVE; k < SUM_FLOOR; k++)
        lives |= (uint32_t)(row->coef[k] != 0) << (k - SUM_LIVE);
    return lives;
}

// All variables that hang together with those of part.
static uint32_t connected(const System *system, uint32_t part)
{
    for (uint32_t before = 0; before != part;) {
        before = part;
        for (int e = 0; e < 2; e++) {
            const SumRows *rows = e ? &system->eq : &system->in;
            for (int i = 0; i < rows->len; i++) {
                uint32_t lives = lives_of(&rows->at[i]);
                part |= lives & part ? lives : 0;
            }
        }
    }
    return part;
}

// The rows over part, or without variables if part is 0, with its columns numbered from
// the first, so that equal parts look the same.
static void take_part(Sum *s, const SumRows *from, uint32_t part, SumRows *to)
{
    VEC_EACH(SumRow, row, from) {
        if (part ? !(lives_of(&row) & part) : lives_of(&row))
            continue;
        int next = SUM_LIVE;
        for (int k = SUM_LIVE; k < SUM_FLOOR; k++)
            if (part >> (k - SUM_LIVE) & 1) {
                int64_t c = row.coef[k];
                row.coef[k] = 0;
                row.coef[next++] = c;
            }
        VEC_PUSH(s->arena, to, row);
    }
}

static bool same_rows(const SumRows *a, const SumRows *b)
{
    return a->len == b->len &&
           (!a->len || !memcmp(a->at, b->at, sizeof *a->at * (size_t)a->len));
}

static const Counted *count_part(Sum *s, const System *system, uint32_t alive)
{
    VEC_EACH_REF(const Counted *, c, &s->counted)
        if (c->alive == alive && same_rows(&c->system.in, &system->in) &&
            same_rows(&c->system.eq, &system->eq))
            return c;
    Counted counted = {.system = *system, .alive = alive};
    Todo todo = {.system = copy_system(s, system), .alive = alive, .forced = -1};
    s->refused = NULL;
    isl_ctx_reset_error(s->isl);
    isl_ctx_reset_operations(s->isl);
    isl_ctx_set_max_operations(s->isl, OPERATIONS);
    qpoly_constant(s->arena, &todo.poly, (Ratio){1, 1});
    eliminate(s, todo, &counted.pieces, 0);
    counted.refused = s->refused;
    VEC_PUSH(s->arena, &s->counted, counted);
    return &s->counted.at[s->counted.len - 1];
}

static void append_rows(Sum *s, SumRows *to, const SumRows *from)
{
    for (int i = 0; i < from->len; i++)
        VEC_PUSH(s->arena, to, from->at[i]);
}

// Each piece with each: the count of two parts together.
static bool multiply(Sum *s, Pieces *product, const Pieces *by)
{
    Pieces out = {0};
    for (int i = 0; i < product->len; i++)
        for (int k = 0; k < by->len; k++) {
            Piece piece = {.guard = copy_system(s, &product->at[i].guard)};
            append_rows(s, &piece.guard.eq, &by->at[k].guard.eq);
            append_rows(s, &piece.guard.in, &by->at[k].guard.in);
            if (!qpoly_mul(s->arena, &piece.poly, &product->at[i].poly, &by->at[k].poly))
                return overflow(s);
            VEC_PUSH(s->arena, &out, piece);
        }
    *product = out;
    return out.len <= PIECES_MOST || sum_refuse(s, "too many cases");
}

bool sum_count(Sum *s, const System *system, Pieces *pieces)
{
    uint32_t left = s->alive;
    Pieces product = {0};
    Piece one = {0};
    qpoly_constant(s->arena, &one.poly, (Ratio){1, 1});
    VEC_PUSH(s->arena, &product, one);
    s->alive = 0;
    s->refused = NULL;
    for (bool more = true; more && !s->refused; more = left || more) {
        uint32_t part = left ? connected(system, left & -left) : 0;
        System own = {0};
        take_part(s, &system->eq, part, &own.eq);
        take_part(s, &system->in, part, &own.in);
        uint32_t alive = (uint32_t)((1ULL << __builtin_popcount(part)) - 1);
        const Counted *counted = count_part(s, &own, alive);
        s->refused = counted->refused;
        more = part != 0;
        left &= ~part;
        if (!s->refused)
            multiply(s, &product, &counted->pieces);
    }
    for (int i = 0; i < product.len && !s->refused; i++)
        VEC_PUSH(s->arena, pieces, product.at[i]);
    return !s->refused;
}
