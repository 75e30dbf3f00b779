// SPDX-License-Identifier: Apache-2.0
//
// Counts of a unit: the items of all its kernels, added up at given sizes or as symbols.
//
//   source  paper 003, equation 1

#include "cost/counts_internal.h"

#include <stdlib.h>
#include <string.h>

// At given sizes ------------------------------------------------------------------------

static double array_bytes(Tally *t)
{
    double bytes = 0;
    for (int i = 0; i < t->arrays.len; i++) {
        int64_t count = 0;
        scope_constant(&t->scope, t->arrays.at[i].buffer->count, &count);
        bytes += (double)count * scalar_info[t->arrays.at[i].buffer->scalar].bytes;
    }
    return bytes;
}

static bool kernel_numbers(const Unit *unit, const Kernel *kernel,
                           const FeatureSetting *setting, struct KeptShare *kept,
                           bool accesses, double out[PROPERTIES], int64_t *launches)
{
    memset(out, 0, sizeof *out * PROPERTIES);
    AutoArena *arena = arena_new();
    Tally t;
    bool ok = tally_kernel(&t, arena, unit, kernel, setting, kept, accesses);
    if (ok) {
        static const Domain once = {.exec = 1};
        tally_item(&t, &once, COUNT_ONE, 1);
    }
    for (int i = 0; ok && i < t.items.len; i++) {
        const CountedItem *item = &t.items.at[i];
        out[item->property] += (double)item->times * item->domain->exec;
    }
    out[COUNT_GROUP] = ok ? (double)t.scope.groups[0] * (double)t.scope.groups[1] *
                                (double)t.scope.groups[2]
                          : 0;
    out[COUNT_ARRAY] = ok ? array_bytes(&t) : 0;
    *launches = t.launches;
    return ok;
}

bool counts_work(const Unit *unit, const Kernel *kernel, const FeatureSetting *setting,
                 struct KeptShare *kept, double out[PROPERTIES], int64_t *launches)
{
    return kernel_numbers(unit, kernel, setting, kept, false, out, launches);
}

bool counts_numbers(const Unit *unit, const FeatureSetting *setting, double out[PROPERTIES])
{
    double one[PROPERTIES];
    int64_t launches;
    memset(out, 0, sizeof *out * PROPERTIES);
    for (int k = 0; k < unit->kernels.len; k++) {
        if (!kernel_numbers(unit, unit->kernels.at[k], setting, NULL, true, one, &launches))
            return false;
        for (int p = 0; p < PROPERTIES; p++)
            out[p] += (double)launches * one[p];
    }
    for (int i = 0; i < COUNT_STORE - COUNT_LOAD; i++)
        out[COUNT_MINIMUM + i] = MIN(out[COUNT_LOAD + i], out[COUNT_STORE + i]);
    return true;
}

// Symbols -------------------------------------------------------------------------------

typedef struct {
    Pieces pieces;
    const char *refused;
    bool halved;
} Count;

struct Counts {
    Arena *arena;
    Symbols symbols;
    Count count[PROPERTIES];
};

static bool same_rows(const SumRows *a, const SumRows *b)
{
    if (a->len != b->len)
        return false;
    for (int i = 0; i < a->len; i++) {
        bool found = false;
        for (int k = 0; k < b->len; k++)
            found |= !memcmp(&a->at[i], &b->at[k], sizeof(SumRow));
        if (!found)
            return false;
    }
    return true;
}

// Pieces under one guard are one.
static bool add_piece(Counts *c, Pieces *to, const Piece *piece, Ratio factor)
{
    for (int i = 0; i < to->len; i++)
        if (same_rows(&to->at[i].guard.eq, &piece->guard.eq) &&
            same_rows(&to->at[i].guard.in, &piece->guard.in)) {
            bool ok = qpoly_add(c->arena, &to->at[i].poly, &piece->poly, factor);
            if (ok && !to->at[i].poly.len)
                to->at[i] = to->at[--to->len];
            return ok;
        }
    Piece copy = {.guard = piece->guard};
    bool ok = qpoly_add(c->arena, &copy.poly, &piece->poly, factor);
    if (ok && copy.poly.len)
        VEC_PUSH(c->arena, to, copy);
    return ok;
}

static void add_count(Counts *c, Count *count, const Pieces *pieces, const char *refused,
                      int halves, int64_t times)
{
    Ratio factor = ratio_new(times, (Wide)1 << MIN(halves, 100));
    count->refused = count->refused ? count->refused : refused;
    count->halved |= halves > 0;
    for (int i = 0; i < pieces->len && !count->refused; i++)
        if (!add_piece(c, &count->pieces, &pieces->at[i], factor))
            count->refused = "a number does not fit into 128 bits";
}

static bool same_domain(const Domain *a, const Domain *b)
{
    return a->nloop == b->nloop && a->nguard == b->nguard &&
           !memcmp(a->loop, b->loop, sizeof *a->loop * (size_t)a->nloop) &&
           !memcmp(a->guard, b->guard, sizeof *a->guard * (size_t)a->nguard);
}

// One domain counted, and all items of it.
static void add_domain(Counts *c, Tally *t, int first)
{
    const Domain *domain = t->items.at[first].domain;
    Pieces pieces = {0};
    bool ok = symbols_count(&c->symbols, t, domain, &pieces);
    for (int i = first; i < t->items.len; i++) {
        CountedItem *item = &t->items.at[i];
        if (!item->times || !same_domain(item->domain, domain))
            continue;
        add_count(c, &c->count[item->property], &pieces, ok ? NULL : c->symbols.sum.refused,
                  item->domain->halves, t->launches * item->times);
        item->times = 0;
    }
}

// So many times the product of three numbers of sizes.
static void add_box(Counts *c, Tally *t, int property, const Arith *const n[3],
                    int64_t times)
{
    Stm loop[3];
    const Stm *loops[3];
    for (int d = 0; d < 3; d++) {
        loop[d] = (Stm){.kind = ST_FOR,
                        .iter = arith_var(c->symbols.ctx, "box", NULL, NULL),
                        .extent = n[d],
                        .loop = LOOP_GLB,
                        .dim = d};
        loops[d] = &loop[d];
    }
    Domain domain = {.loop = loops, .nloop = 3};
    Pieces pieces = {0};
    bool ok = symbols_count(&c->symbols, t, &domain, &pieces);
    add_count(c, &c->count[property], &pieces, ok ? NULL : c->symbols.sum.refused, 0,
              t->launches * times);
}

static void add_boxes(Counts *c, Tally *t)
{
    ArithCtx *ctx = c->symbols.ctx;
    const Arith *one = arith_const(ctx, 1), *groups[3];
    for (int d = 0; d < 3; d++)
        groups[d] = arith_divc(ctx, t->kernel->global[d], t->kernel->local[d]);
    add_box(c, t, COUNT_GROUP, groups, 1);
    for (int i = 0; i < t->arrays.len; i++) {
        const Buffer *buffer = t->arrays.at[i].buffer;
        add_box(c, t, COUNT_ARRAY, (const Arith *const[]){buffer->count, one, one},
                scalar_info[buffer->scalar].bytes);
    }
}

static void add_launches(Counts *c, const Tally *t)
{
    Pieces pieces = {0};
    Piece piece = {0};
    qpoly_constant(c->arena, &piece.poly, (Ratio){1, 1});
    VEC_PUSH(c->arena, &pieces, piece);
    add_count(c, &c->count[COUNT_ONE], &pieces, NULL, 0, t->launches);
}

static int degree_of(const Term *term)
{
    int degree = 0;
    for (int k = 0; k < SUM_COLS; k++)
        degree += term->power[k];
    return degree;
}

// Highest degree first, then by columns.
static int compare_terms(const void *a, const void *b)
{
    int difference = degree_of(b) - degree_of(a);
    return difference
               ? difference
               : memcmp(((const Term *)b)->power, ((const Term *)a)->power, SUM_COLS);
}

static void sort_terms(Counts *c)
{
    for (int p = 0; p < PROPERTIES; p++)
        for (int i = 0; i < c->count[p].pieces.len; i++) {
            CountPoly *poly = &c->count[p].pieces.at[i].poly;
            qsort(poly->at, (size_t)poly->len, sizeof *poly->at, compare_terms);
        }
}

Counts *counts_new(const Unit *unit, const FeatureSetting *setting)
{
    Counts *c = xcalloc(1, sizeof *c);
    c->arena = arena_new();
    c->symbols.ctx = unit->ir->arith;
    sum_init(&c->symbols.sum, c->arena);
    bool ok = true;
    for (int k = 0; ok && k < unit->kernels.len; k++) {
        Tally t;
        ok = tally_kernel(&t, c->arena, unit, unit->kernels.at[k], setting, NULL, true);
        for (int i = 0; ok && i < t.items.len; i++)
            if (t.items.at[i].times)
                add_domain(c, &t, i);
        if (ok) {
            add_boxes(c, &t);
            add_launches(c, &t);
        }
    }
    sort_terms(c);
    if (ok)
        return c;
    counts_free(c);
    return NULL;
}

void counts_free(Counts *c)
{
    if (!c)
        return;
    sum_release(&c->symbols.sum);
    arena_free(c->arena);
    free(c);
}

// Questions -----------------------------------------------------------------------------

static bool is_minimum(int property)
{
    return property >= COUNT_MINIMUM && property <= COUNT_MINIMUM_LAST;
}

static int load_of(int minimum)
{
    return minimum - COUNT_MINIMUM + COUNT_LOAD;
}

static int store_of(int minimum)
{
    return minimum - COUNT_MINIMUM + COUNT_STORE;
}

const char *counts_refused(const Counts *c, int p)
{
    if (!is_minimum(p))
        return c->count[p].refused;
    const char *load = c->count[load_of(p)].refused;
    return load ? load : c->count[store_of(p)].refused;
}

bool counts_halved(const Counts *c, int p)
{
    return is_minimum(p) ? c->count[load_of(p)].halved || c->count[store_of(p)].halved
                         : c->count[p].halved;
}

bool counts_zero(const Counts *c, int p)
{
    return is_minimum(p) ? counts_zero(c, load_of(p)) || counts_zero(c, store_of(p))
                         : !c->count[p].pieces.len && !c->count[p].refused;
}

typedef struct {
    const Binding *binding;
    int n;
    Wide column[SUM_COLS];
} Values;

static bool lookup_size(void *user, const Arith *var, int64_t *value)
{
    const Values *v = user;
    return scope_size(v->binding, v->n, var, value);
}

static bool row_value(const Values *v, const SumRow *row, Wide *value)
{
    *value = row->coef[SUM_COLS];
    for (int k = 0; k < SUM_COLS; k++) {
        Wide part;
        if (row->coef[k] && (__builtin_mul_overflow(v->column[k], row->coef[k], &part) ||
                             __builtin_add_overflow(*value, part, value)))
            return false;
    }
    return true;
}

static Wide floor_wide(Wide a, Wide b)
{
    return a / b - (a % b != 0 && a < 0);
}

static bool set_columns(const Symbols *s, Values *v)
{
    for (int i = 0; i < s->sum.nparam; i++) {
        int64_t value;
        if (!arith_eval(s->param[i], lookup_size, v, &value))
            return false;
        v->column[i] = value;
    }
    for (int i = 0; i < s->sum.floors.len; i++) {
        const FloorRow *f = &s->sum.floors.at[i];
        Wide value;
        if (!row_value(v, &f->row, &value))
            return false;
        v->column[SUM_FLOOR + i] = floor_wide(value, f->den);
    }
    return true;
}

static bool guard_holds(const Values *v, const System *guard, bool *holds)
{
    *holds = true;
    Wide value;
    for (int i = 0; i < guard->eq.len; i++) {
        if (!row_value(v, &guard->eq.at[i], &value))
            return false;
        *holds &= value == 0;
    }
    for (int i = 0; i < guard->in.len; i++) {
        if (!row_value(v, &guard->in.at[i], &value))
            return false;
        *holds &= value >= 0;
    }
    return true;
}

static bool add_poly(const Values *v, const CountPoly *poly, Ratio *sum)
{
    for (int i = 0; i < poly->len; i++) {
        Ratio term = poly->at[i].coef;
        for (int k = 0; k < SUM_COLS; k++)
            for (int e = 0; e < poly->at[i].power[k]; e++)
                if (!ratio_mul(&term, (Ratio){v->column[k], 1}))
                    return false;
        if (!ratio_add(sum, term))
            return false;
    }
    return true;
}

static bool eval_pieces(const Counts *c, int property, const Values *v, Ratio *value)
{
    const Pieces *pieces = &c->count[property].pieces;
    *value = (Ratio){0, 1};
    for (int i = 0; i < pieces->len; i++) {
        bool holds;
        if (!guard_holds(v, &pieces->at[i].guard, &holds) ||
            (holds && !add_poly(v, &pieces->at[i].poly, value)))
            return false;
    }
    return true;
}

bool counts_eval(const Counts *c, int p, const Binding *binding, int n, Ratio *value)
{
    Values v = {.binding = binding, .n = n};
    Ratio other;
    if (counts_refused(c, p) || !set_columns(&c->symbols, &v))
        return false;
    if (!is_minimum(p))
        return eval_pieces(c, p, &v, value);
    if (!eval_pieces(c, load_of(p), &v, value) || !eval_pieces(c, store_of(p), &v, &other))
        return false;
    Ratio difference = {-other.num, other.den};
    if (!ratio_add(&difference, *value))
        return false;
    *value = difference.num > 0 ? other : *value;
    return true;
}

// Text ------------------------------------------------------------------------------------

static const struct {
    int first, n;
    const char *name, *unit;
} kinds[] = {
#define COUNTS(id, name, n, unit, doc) {COUNT_##id, n, name, unit},
#include "cost/counts.def"
#undef COUNTS
};

CountsKind counts_kind(int property)
{
    int k = COUNTS_KINDS - 1;
    while (kinds[k].first > property)
        k--;
    return (CountsKind)k;
}

const char *counts_unit(int property)
{
    return kinds[counts_kind(property)].unit;
}

void counts_name(Buf *out, int property)
{
    static const char *const stride[COUNT_STRIDES] = {
        "0",   "1",   "1/2", "2/2",  "1/3",  "2/3",  "3/3", "1/4",
        "2/4", "3/4", "4/4", "1/>4", "2/>4", "3/>4", "4/>4"};
    CountsKind kind = counts_kind(property);
    int i = property - kinds[kind].first;
    buf_puts(out, kinds[kind].name);
    if (kinds[kind].n == COUNT_WIDTHS * COUNT_STRIDES)
        buf_printf(out, ", %d bits, stride %s", 32 << i / COUNT_STRIDES,
                   stride[i % COUNT_STRIDES]);
    else if (kinds[kind].n == COUNT_DEGREES)
        buf_printf(out, ", %d to a bank", 1 << i);
    else if (kinds[kind].n == 2)
        buf_puts(out, i ? ", double" : ", float");
}

int counts_find(const char *name)
{
    AutoBuf text = buf_new();
    int found = -1;
    for (int p = 0; p < PROPERTIES && found < 0; p++) {
        buf_clear(&text);
        counts_name(&text, p);
        found = strcmp(text.text, name) == 0 ? p : -1;
    }
    return found;
}

void counts_wide(Buf *out, Wide value)
{
    char digit[48];
    int n = 0;
    bool negative = value < 0;
    do {
        int d = (int)(value % 10);
        digit[n++] = (char)('0' + (d < 0 ? -d : d));
        value /= 10;
    } while (value);
    if (negative)
        buf_putc(out, '-');
    while (n > 0)
        buf_putc(out, digit[--n]);
}

static void print_row(Buf *out, const Counts *c, const SumRow *row);

static void print_column(Buf *out, const Counts *c, int column)
{
    if (column < SUM_FLOOR) {
        const Arith *param = c->symbols.param[column];
        bool plain = param->kind == A_VAR;
        buf_puts(out, plain ? "" : "(");
        arith_print(out, param);
        buf_puts(out, plain ? "" : ")");
        return;
    }
    const FloorRow *f = &c->symbols.sum.floors.at[column - SUM_FLOOR];
    int terms = 0;
    for (int k = 0; k <= SUM_COLS; k++)
        terms += f->row.coef[k] != 0;
    buf_puts(out, terms > 1 ? "floor((" : "floor(");
    print_row(out, c, &f->row);
    buf_printf(out, "%s/%lld)", terms > 1 ? ")" : "", (long long)f->den);
}

static void print_row(Buf *out, const Counts *c, const SumRow *row)
{
    bool first = true;
    for (int k = 0; k < SUM_COLS; k++) {
        int64_t coef = row->coef[k];
        if (!coef)
            continue;
        buf_puts(out, coef < 0 ? (first ? "-" : " - ") : (first ? "" : " + "));
        if (coef != 1 && coef != -1)
            buf_printf(out, "%lld*", (long long)(coef < 0 ? -coef : coef));
        print_column(out, c, k);
        first = false;
    }
    int64_t constant = row->coef[SUM_COLS];
    if (first)
        buf_printf(out, "%lld", (long long)constant);
    else if (constant)
        buf_printf(out, " %c %lld", constant < 0 ? '-' : '+',
                   (long long)(constant < 0 ? -constant : constant));
}

static void print_term(Buf *out, const Counts *c, const Term *term, bool first)
{
    Ratio coef = term->coef;
    bool number =
        degree_of(term) == 0 || coef.den != 1 || (coef.num != 1 && coef.num != -1);
    buf_puts(out, coef.num < 0 ? (first ? "-" : " - ") : (first ? "" : " + "));
    if (number)
        counts_wide(out, coef.num < 0 ? -coef.num : coef.num);
    if (coef.den != 1) {
        buf_putc(out, '/');
        counts_wide(out, coef.den);
    }
    for (int k = 0; k < SUM_COLS; k++) {
        if (!term->power[k])
            continue;
        buf_puts(out, number ? "*" : "");
        number = true;
        print_column(out, c, k);
        if (term->power[k] > 1)
            buf_printf(out, "^%d", term->power[k]);
    }
}

static void print_guard(Buf *out, const Counts *c, const System *guard)
{
    const char *join = " if ";
    for (int e = 1; e >= 0; e--) {
        const SumRows *rows = e ? &guard->eq : &guard->in;
        for (int i = 0; i < rows->len; i++) {
            buf_puts(out, join);
            print_row(out, c, &rows->at[i]);
            buf_puts(out, e ? " = 0" : " >= 0");
            join = " and ";
        }
    }
}

static void print_pieces(Buf *out, const Counts *c, int property)
{
    const Pieces *pieces = &c->count[property].pieces;
    for (int i = 0; i < pieces->len; i++) {
        const Piece *piece = &pieces->at[i];
        bool several = pieces->len > 1 && piece->guard.eq.len + piece->guard.in.len > 0;
        buf_puts(out, i ? " + " : "");
        buf_puts(out, several ? "[" : "");
        for (int k = 0; k < piece->poly.len; k++)
            print_term(out, c, &piece->poly.at[k], k == 0);
        print_guard(out, c, &piece->guard);
        buf_puts(out, several ? "]" : "");
    }
    if (!pieces->len)
        buf_putc(out, '0');
}

void counts_print(Buf *out, const Counts *c, int p)
{
    if (!is_minimum(p)) {
        print_pieces(out, c, p);
        return;
    }
    buf_puts(out, "min(");
    print_pieces(out, c, load_of(p));
    buf_puts(out, ", ");
    print_pieces(out, c, store_of(p));
    buf_putc(out, ')');
}
