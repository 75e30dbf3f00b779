// SPDX-License-Identifier: Apache-2.0
//
// Rules that choose a kernel by the sizes: as text, applied, and learnt from times.
//
//   method  each kernel has a cost, a sum of few formulas of the sizes: a constant, waves
//           of work-groups, waves times the iterations of loops whose length is open, and
//           the elements of inputs and outputs. Coefficients are not negative and fitted to
//           the times by least squares of their ratios (coordinate descent). The kernel of
//           the least cost is chosen. Kernels are added one at a time, that which saves
//           most on average (of logarithms), as long as it saves enough.
//   waves   work-groups are dealt to the units of a device, and the last ones may leave
//           some idle: so a cost has steps, which no threshold on a size describes.

#include "tune/tune.h"

#include <math.h>
#include <string.h>

// Text --------------------------------------------------------------------------------

bool is_rule(const char *text)
{
    return strstr(text, ": ") != NULL;
}

void rule_print(Buf *out, const Rule *rule)
{
    for (int i = 0; i < rule->n; i++)
        buf_printf(out, "%s%s: %s", i ? "; " : "", rule->row[i].cost, rule->row[i].point);
}

bool rule_parse(const char *text, Arena *arena, Rule *rule)
{
    char *copy = arena_strdup(arena, text), *save = NULL;
    *rule = (Rule){0};
    for (char *item = strtok_r(copy, ";", &save); item; item = strtok_r(NULL, ";", &save)) {
        char *colon = strchr(item, ':');
        if (rule->n == RULE_ROWS || !colon)
            return false;
        *colon++ = 0;
        rule->row[rule->n++] =
            (RuleRow){item + strspn(item, " "), colon + strspn(colon, " ")};
    }
    return rule->n > 0;
}

static const double FS_IN_NS = 1e6;

void rule_print_cost(Buf *out, const Arith *cost, const char *plus, RulePrint *print,
                     const void *user)
{
    const ArithTerm one = {1, cost}, *term = &one;
    int n = cost->kind != A_CONST;
    if (cost->kind == A_SUM)
        term = cost->term, n = cost->n;
    bool constant = cost->kind == A_CONST || (cost->kind == A_SUM && cost->value);
    if (constant)
        buf_printf(out, "%.6g", (double)cost->value / FS_IN_NS);
    for (int i = 0; i < n; i++) {
        buf_printf(out, "%s%.6g*", i || constant ? plus : "",
                   (double)term[i].coef / FS_IN_NS);
        print(out, term[i].arg, user);
    }
}

static void print_plain(Buf *out, const Arith *a, const void *user)
{
    (void)user;
    buf_puts(out, a->kind == A_VAR ? "" : "(");
    arith_print(out, a);
    buf_puts(out, a->kind == A_VAR ? "" : ")");
}

void rule_print_row(Buf *out, const RuleRow *row)
{
    ArithCtx *ctx = arith_ctx_new();
    const Arith *cost = arith_parse(ctx, row->cost);
    buf_puts(out, row->point);
    if (cost != arith_const(ctx, 0)) { // else it was not timed
        buf_puts(out, ": ");
        rule_print_cost(out, cost, " + ", print_plain, NULL);
        buf_puts(out, " ns");
    }
    arith_ctx_free(ctx);
}

// Applied -----------------------------------------------------------------------------

void rule_costs(const Rule *rule, ArithCtx *ctx, const Arith **cost)
{
    for (int i = 0; i < rule->n; i++)
        cost[i] = arith_parse(ctx, rule->row[i].cost);
}

int rule_least(const Arith *const *cost, int n, ArithLookup *look_up, void *user)
{
    int best = -1;
    int64_t least = 0, value;
    for (int i = 0; i < n; i++) {
        if (!cost[i] || !arith_eval(cost[i], look_up, user, &value))
            return -1;
        if (best < 0 || value < least) {
            best = i;
            least = value;
        }
    }
    return best;
}

typedef struct {
    const Binding *at;
    int n;
} AtSizes;

static bool look_up(void *user, const Arith *var, int64_t *value)
{
    const AtSizes *sizes = user;
    const Binding *size = binding_find(sizes->at, sizes->n, var->name);
    *value = size ? size->value : 0;
    return size;
}

int rule_choose(const Rule *rule, const Binding *binding, int n)
{
    AtSizes at = {binding, n};
    const Arith *cost[RULE_ROWS];
    ArithCtx *ctx = arith_ctx_new();
    rule_costs(rule, ctx, cost);
    int row = rule_least(cost, rule->n, look_up, &at);
    arith_ctx_free(ctx);
    return row;
}

// What a cost is made of --------------------------------------------------------------

typedef struct {
    ArithCtx *ctx;
    const Unit *unit;
    RuleTerms *terms;
} TermWalk;

static bool is_size(void *user, const Arith *var, int64_t *value)
{
    const Unit *unit = user;
    *value = 4099; // no number that makes a divisor 0
    VEC_EACH_REF(const SizeDecl *, size, &unit->program->sizes)
        if (size->arith == var)
            return true;
    return false;
}

static bool is_of_sizes(const TermWalk *w, const Arith *a)
{
    int64_t value;
    return arith_eval(a, is_size, (void *)w->unit, &value);
}

static void add_term(const TermWalk *w, const Arith *a)
{
    RuleTerms *terms = w->terms;
    for (int i = 0; i < terms->n; i++)
        if (terms->at[i] == a)
            return;
    if (terms->n < RULE_TERMS && is_of_sizes(w, a))
        terms->at[terms->n++] = a;
}

static const Arith *iterations(const TermWalk *w, const Stm *stm)
{
    if (stm->loop == LOOP_SEQ)
        return stm->extent;
    return stm->form == FORM_LOOP ? arith_ceil_div(w->ctx, stm->extent, stm->threads)
                                  : arith_const(w->ctx, 1);
}

// How often loops of an open length go round, in all waves together.
static void add_loops(const TermWalk *w, const Block *block, const Arith *times)
{
    VEC_EACH(Stm *, stm, block) {
        const Arith *inner = times;
        if (stm->kind == ST_FOR && !arith_is_const(iterations(w, stm), NULL) &&
            is_of_sizes(w, iterations(w, stm))) {
            inner = arith_mul(w->ctx, times, iterations(w, stm));
            add_term(w, inner);
        }
        add_loops(w, &stm->body, inner);
        add_loops(w, &stm->other, inner);
    }
}

// A unit that has several groups at once takes longer for them than for one, but not as
// many times as long: so waves are counted of one group a unit, and of more.
static void add_launch(const TermWalk *w, const Launch *launch, int64_t units)
{
    enum { MOST = 4 };
    const Arith *groups = arith_const(w->ctx, 1);
    for (int d = 0; d < 3; d++)
        groups = arith_mul(
            w->ctx, groups,
            arith_divc(w->ctx, launch->global[d], MAX(launch->kernel->local[d], 1)));
    add_loops(w, &launch->kernel->body, arith_const(w->ctx, 1));
    for (int each = 1; each <= MOST; each *= 2) {
        const Arith *waves =
            arith_ceil_div(w->ctx, groups, arith_const(w->ctx, units * each));
        add_term(w, waves);
        add_loops(w, &launch->kernel->body, waves);
    }
}

void rule_terms(const Unit *unit, int64_t units, RuleTerms *terms)
{
    const TermWalk w = {unit->program->ir->arith, unit, terms};
    const Arith *elements[2] = {arith_const(w.ctx, 0), arith_const(w.ctx, 0)};
    *terms = (RuleTerms){0};
    for (int i = 0; i < unit->ninput + unit->noutput; i++) {
        const Arith **sum = &elements[i >= unit->ninput];
        *sum = arith_add(w.ctx, *sum, unit->buffers.at[i]->count);
    }
    add_term(&w, arith_const(w.ctx, 1));
    add_term(&w, elements[1]);
    add_term(&w, elements[0]);
    VEC_EACH_REF(const Launch *, launch, &unit->launches) {
        bool before = false; // other launches of a kernel take in proportion to its first
        for (int k = 0; k < unit->launches.len && &unit->launches.at[k] != launch; k++)
            before |= unit->launches.at[k].kernel == launch->kernel;
        if (!before)
            add_launch(&w, launch, units);
    }
}

// Learnt ------------------------------------------------------------------------------

// A point that cannot be used counts as this many times the best.
static const double UNUSABLE = 1e6;
// What a kernel must gain: ten per cent at one of the sizes, or less at more. What gains
// less is often an accident of the sizes that were measured.
static const double GAIN = 0.1;

static double best_at(const RuleTimes *t, int s)
{
    double best = INFINITY;
    for (int p = 0; p < t->npoint; p++)
        best = fmin(best, t->time[p * t->nsize + s]);
    return best;
}

// How far the kernels that some choose by their costs are behind; a cost may be unknown.
static double loss_of(const RuleTimes *t, const double *cost, const int *chosen, int n)
{
    double loss = 0;
    for (int s = 0; s < t->nsize; s++) {
        int p = chosen[0];
        for (int i = 1; i < n; i++) {
            double own = cost[chosen[i] * t->nsize + s], least = cost[p * t->nsize + s];
            p = own < least || isnan(least) ? chosen[i] : p;
        }
        double time = t->time[p * t->nsize + s], best = best_at(t, s);
        loss += best < INFINITY ? log(time < INFINITY ? time / best : UNUSABLE) : 0;
    }
    return loss;
}

// It failed where another one works, so it may fail at sizes that were not measured, too.
static bool fails(const RuleTimes *t, int p)
{
    for (int s = 0; s < t->nsize; s++)
        if (isinf(t->time[p * t->nsize + s]) && best_at(t, s) < INFINITY)
            return true;
    return false;
}

// At most `most` of some kernels, as long as each gains enough; returns how many.
static int pick(const RuleTimes *t, const double *cost, const int *from, int nfrom,
                double gain, int most, int *chosen)
{
    double loss = INFINITY;
    for (int n = 0; n < most; n++) {
        int best = -1;
        double least = n ? loss - gain : INFINITY;
        for (int i = 0; i < nfrom; i++) {
            chosen[n] = from[i];
            double own =
                n && fails(t, from[i]) ? INFINITY : loss_of(t, cost, chosen, n + 1);
            if (own < least) {
                least = own;
                best = from[i];
            }
        }
        if (best < 0)
            return n;
        chosen[n] = best;
        loss = least;
    }
    return most;
}

// Least squares with coefficients of at least 0: of gram*x = right, one at a time.
static void fit(int n, double gram[RULE_TERMS][RULE_TERMS], const double *right, double *x)
{
    enum { SWEEPS = 2000 };
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int j = 0; j < n; j++) {
            double rest = right[j];
            for (int k = 0; k < n; k++)
                rest -= k == j ? 0 : gram[j][k] * x[k];
            x[j] = gram[j][j] > 0 ? fmax(rest / gram[j][j], 0) : 0;
        }
}

static double term_at(const RuleTimes *t, const Arith *term, int s)
{
    AtSizes at = {t->size[s], t->nbinding};
    int64_t value;
    return arith_eval(term, look_up, &at, &value) ? (double)value : 0;
}

// Four digits: the rest is noise.
static int64_t rounded(double fs)
{
    double unit = fs > 0 ? pow(10, floor(log10(fs)) - 3) : 1;
    return unit > 1 ? llround(fs / unit) * llround(unit) : llround(fs);
}

// Terms that say little are left out, so that a reader can follow the others.
static void drop_small(int n, double gram[RULE_TERMS][RULE_TERMS], const double *most,
                       const double *x)
{
    static const double LITTLE = 0.02;
    for (int k = 0; k < n; k++)
        gram[k][k] = x[k] * most[k] < LITTLE ? 0 : gram[k][k];
}

// The cost of a kernel, and what it is at each size.
static const Arith *fit_cost(const RuleTimes *t, int p, const RuleTerms *terms,
                             ArithCtx *ctx, double *cost)
{
    double gram[RULE_TERMS][RULE_TERMS] = {0}, right[RULE_TERMS] = {0}, x[RULE_TERMS] = {0};
    double most[RULE_TERMS] = {0}, row[RULE_TERMS];
    const Arith *sum = arith_const(ctx, 0);
    for (int s = 0; s < t->nsize; s++) {
        double time = t->time[p * t->nsize + s];
        if (!(time < INFINITY))
            continue;
        for (int k = 0; k < terms->n; k++) {
            row[k] = term_at(t, terms->at[k], s) / time;
            most[k] = fmax(most[k], row[k]);
            right[k] += row[k];
            for (int j = 0; j <= k; j++)
                gram[k][j] = gram[j][k] += row[k] * row[j];
        }
    }
    fit(terms->n, gram, right, x);
    drop_small(terms->n, gram, most, x);
    fit(terms->n, gram, right, x);
    for (int k = 0; k < terms->n; k++)
        sum = arith_add(ctx, sum, arith_mulc(ctx, terms->at[k], rounded(FS_IN_NS * x[k])));
    for (int s = 0; s < t->nsize; s++)
        cost[s] = term_at(t, sum, s);
    return sum;
}

int rule_able(const RuleTimes *times, int *point)
{
    int all[RULE_POINTS];
    for (int p = 0; p < times->npoint; p++)
        all[p] = p;
    return pick(times, times->time, all, times->npoint, GAIN / 5, RULE_ABLE, point);
}

void rule_learn(const RuleTimes *times, const int *able, const RuleTerms *terms, int n,
                ArithCtx *ctx, Arena *arena, Rule *rule)
{
    const Arith *sum[RULE_POINTS];
    int chosen[RULE_ROWS];
    double *cost = NEW_ARRAY(arena, double, times->npoint * times->nsize);
    for (int i = 0; i < n; i++)
        sum[able[i]] =
            fit_cost(times, able[i], &terms[i], ctx, cost + able[i] * times->nsize);
    rule->n = pick(times, cost, able, n, GAIN, RULE_ROWS, chosen);
    for (int i = 0; i < rule->n; i++)
        rule->row[i] =
            (RuleRow){arith_text(sum[chosen[i]], arena), times->point[chosen[i]]};
}
