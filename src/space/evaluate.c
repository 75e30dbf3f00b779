// SPDX-License-Identifier: Apache-2.0
//
// Evaluation of compiled constraints: over many values of one parameter at once, so that
// the cost of the dispatch is shared, and over ranges, so that a constraint can be decided
// before its last parameter is bound.
//
// Numbers are doubles: integers below 2^53 are exact, also through // and %. Overlarge
// powers are not caught.
#include "space/internal.h"

#include <math.h>
#include <string.h>

// floor() without SSE4.1 is a call; beyond 2^52 every double is an integer.
static inline double floor_fast(double x)
{
    if (!(fabs(x) < 0x1p52))
        return x;
    double t = (double)(int64_t)x;
    return t > x ? t - 1 : t;
}

// Python's: the sign of the divisor. The quick form is exact for integers below 2^52;
// where rounding of fractions takes it out of [0, b), fmod decides.
static inline double modulo(double a, double b)
{
    if (b == 0)
        return NAN;
    double r = a - b * floor_fast(a / b);
    if (b > 0 ? r >= 0 && r < b : r <= 0 && r > b)
        return r;
    r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// Operations on the bits of whole numbers of at most 53 bits, as two's complement.
static double bits_of(double a, double b, char op)
{
    if (!(fabs(a) < 0x1p53 && fabs(b) < 0x1p53) || a != floor_fast(a) || b != floor_fast(b))
        return NAN;
    int64_t x = (int64_t)a, y = (int64_t)b;
    switch (op) {
    case '&': return (double)(x & y);
    case '|': return (double)(x | y);
    case '^': return (double)(x ^ y);
    case '<': return y < 0 ? NAN : ldexp(a, (int)MIN(y, 4096));
    default: return y < 0 ? NAN : floor(ldexp(a, -(int)MIN(y, 4096)));
    }
}

static void apply_lanes(ConstraintOp op, double *x, const double *y, int n)
{
    switch (op) {
#define X(id, expression)                                                                  \
    case OP_##id:                                                                          \
        for (int i = 0; i < n; i++) {                                                      \
            double a = x[i], b = y[i];                                                     \
            x[i] = expression;                                                             \
        }                                                                                  \
        return;
        CONSTRAINT_BINARY(X)
#undef X
#define X(id, expression)                                                                  \
    case OP_##id:                                                                          \
        for (int i = 0; i < n; i++) {                                                      \
            double a = x[i];                                                               \
            x[i] = expression;                                                             \
        }                                                                                  \
        return;
        CONSTRAINT_UNARY(X)
#undef X
    case OP_SELECT:
    case OP_UNARY_END:
    case OP_NUMBER:
    case OP_PARAM: BUG("no operator of one or two operands: %d", (int)op);
    }
}

int constraint_operand(const Code *code, int end)
{
    for (int need = 1; need > 0; end--)
        need += arity(code[end - 1].op) - 1;
    return end;
}

// What does not depend on the varied parameter is computed once, in lane 0.
typedef struct {
    bool uniform;
    double lane[LANES];
} Lanes;

static void spread(Lanes *x, int n)
{
    for (int i = 1; x->uniform && i < n; i++)
        x->lane[i] = x->lane[0];
    x->uniform = false;
}

static void apply_binary(ConstraintOp op, Lanes *x, Lanes *y, int n)
{
    if (!x->uniform || !y->uniform) {
        spread(x, n);
        spread(y, n);
    }
    apply_lanes(op, x->lane, y->lane, x->uniform ? 1 : n);
}

static void apply_select(Lanes *x, Lanes *condition, Lanes *otherwise, int n)
{
    spread(x, n);
    spread(condition, n);
    spread(otherwise, n);
    for (int i = 0; i < n; i++) {
        double c = condition->lane[i];
        x->lane[i] = isnan(c) ? c : c != 0 ? x->lane[i] : otherwise->lane[i];
    }
}

static void push_uniform(Lanes *x, double number)
{
    x->uniform = true;
    x->lane[0] = number;
}

static void push_varied(Lanes *x, const double *lane, int n)
{
    x->uniform = false;
    memcpy(x->lane, lane, sizeof *lane * (size_t)n);
}

// Relations -----------------------------------------------------------------------------

static int choice_of(const Relation *r, int i, double number)
{
    int lo = 0, hi = r->nchoice[i];
    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;
        *(r->choice[i][mid].number <= number ? &lo : &hi) = mid;
    }
    return r->choice[i][lo].choice;
}

static void eval_relation(const Relation *r, const double *value, int varied,
                          const double *lane, int n, double *out)
{
    int choice[COUNTOF(r->is.param)], at = -1;
    for (int i = 0; i < r->is.n; i++)
        if (r->is.param[i] == varied)
            at = i;
        else
            choice[i] = choice_of(r, i, value[r->is.param[i]]);
    for (int k = 0; k < n; k++) {
        if (at >= 0)
            choice[at] = choice_of(r, at, lane[k]);
        out[k] = r->is.holds(r->is.user, choice);
    }
}

static Verdict decide_relation(const Relation *r, const ValueRange *param)
{
    int choice[COUNTOF(r->is.param)];
    for (int i = 0; i < r->is.n; i++) {
        ValueRange range = param[r->is.param[i]];
        choice[i] = range.lo == range.hi ? choice_of(r, i, range.lo) : -1;
    }
    return r->is.holds(r->is.user, choice) ? UNDECIDED : ALWAYS_FALSE;
}

// Expressions ---------------------------------------------------------------------------

void constraint_eval(const Constraint *constraint, const double *value, int varied,
                     const double *lane, int n, double *out)
{
    if (constraint->relation) {
        eval_relation(constraint->relation, value, varied, lane, n, out);
        return;
    }
    Lanes stack[CONSTRAINT_STACK], *top = stack;
    for (const Code *code = constraint->code, *end = code + constraint->ncode; code < end;
         code++) {
        if (code->op == OP_NUMBER)
            push_uniform(top++, code->number);
        else if (code->op == OP_PARAM && code->param != varied)
            push_uniform(top++, value[code->param]);
        else if (code->op == OP_PARAM)
            push_varied(top++, lane, n);
        else if (is_unary(code->op))
            apply_lanes(code->op, top[-1].lane, NULL, top[-1].uniform ? 1 : n);
        else if (code->op == OP_SELECT)
            top -= 2, apply_select(top - 1, top, top + 1, n);
        else
            top--, apply_binary(code->op, top - 1, top, n);
    }
    spread(stack, n);
    memcpy(out, stack->lane, sizeof *out * (size_t)n);
}

bool constraint_holds(const Constraint *constraint, const double *value)
{
    double result;
    constraint_eval(constraint, value, -1, NULL, 1, &result);
    return result != 0 && !isnan(result);
}

// Ranges -----------------------------------------------------------------------------

static bool surely_false(ValueRange a)
{
    return a.lo == 0 && a.hi == 0;
}

static bool surely_true(ValueRange a)
{
    return a.lo > 0 || a.hi < 0;
}

static ValueRange truth(bool never, bool always, bool poison)
{
    return (ValueRange){always ? 1 : 0, never ? 0 : 1, poison};
}

static bool has_zero(ValueRange a)
{
    return a.lo <= 0 && a.hi >= 0;
}

// The hull of an operator that is monotone in each operand: its values at the corners.
static ValueRange corners(ConstraintOp op, ValueRange a, ValueRange b)
{
    double x[4] = {a.lo, a.lo, a.hi, a.hi}, y[4] = {b.lo, b.hi, b.lo, b.hi};
    apply_lanes(op, x, y, 4);
    ValueRange hull = {x[0], x[0], a.poison || b.poison};
    for (int i = 0; i < 4; i++) {
        if (isnan(x[i]))
            return (ValueRange){-INFINITY, INFINITY, true};
        hull.lo = MIN(hull.lo, x[i]);
        hull.hi = MAX(hull.hi, x[i]);
    }
    return hull;
}

static ValueRange range_modulo(ValueRange a, ValueRange b)
{
    bool poison = a.poison || b.poison;
    if (a.lo == a.hi && b.lo == b.hi)
        return corners(OP_MOD, a, b);
    if (a.lo >= 0 && a.hi < b.lo)
        return (ValueRange){a.lo, a.hi, poison};
    return (ValueRange){MIN(b.lo, 0), MAX(b.hi, 0), poison};
}

static ValueRange range_and(ValueRange a, ValueRange b)
{
    if (surely_false(a))
        return a;
    return truth(surely_false(b), surely_true(a) && surely_true(b), a.poison || b.poison);
}

static ValueRange range_or(ValueRange a, ValueRange b)
{
    if (surely_true(a))
        return truth(false, true, a.poison);
    return truth(surely_false(a) && surely_false(b), surely_true(b), a.poison || b.poison);
}

// Those that grow with their operand, or fall with it, take its ends.
static ValueRange range_unary(ConstraintOp op, ValueRange a)
{
    double end[2] = {a.lo, a.hi};
    if (op == OP_NOT)
        return truth(surely_true(a), surely_false(a), a.poison);
    apply_lanes(op, end, NULL, 2);
    if (isnan(end[0]) || isnan(end[1]))
        return (ValueRange){-INFINITY, INFINITY, true};
    ValueRange hull = {MIN(end[0], end[1]), MAX(end[0], end[1]), a.poison};
    if (op == OP_ABS && has_zero(a))
        hull.lo = 0;
    hull.poison |= op == OP_BITNOT && a.lo != a.hi; // of fractions in between
    return hull;
}

static ValueRange range_select(ValueRange a, ValueRange condition, ValueRange b)
{
    if (surely_true(condition) && !condition.poison)
        return a;
    if (surely_false(condition) && !condition.poison)
        return b;
    return (ValueRange){MIN(a.lo, b.lo), MAX(a.hi, b.hi),
                        a.poison || b.poison || condition.poison};
}

static ValueRange range_bits(ConstraintOp op, ValueRange a, ValueRange b)
{
    if (a.lo == a.hi && b.lo == b.hi)
        return corners(op, a, b);
    return (ValueRange){-INFINITY, INFINITY, true};
}

static ValueRange range_binary(ConstraintOp op, ValueRange a, ValueRange b)
{
    bool poison = a.poison || b.poison;
    bool apart = a.hi < b.lo || b.hi < a.lo;
    bool same = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo;
    ValueRange unknown = {-INFINITY, INFINITY, true};
    switch (op) {
    case OP_ADD:
    case OP_MUL:
    case OP_MIN:
    case OP_MAX:
    case OP_SUB: return corners(op, a, b);
    case OP_DIV:
    case OP_FLOORDIV: return has_zero(b) ? unknown : corners(op, a, b);
    case OP_MOD: return has_zero(b) ? unknown : range_modulo(a, b);
    case OP_POW: return a.lo > 0 ? corners(op, a, b) : unknown;
    case OP_LT: return truth(a.lo >= b.hi, a.hi < b.lo, poison);
    case OP_LE: return truth(a.lo > b.hi, a.hi <= b.lo, poison);
    case OP_GT: return truth(a.hi <= b.lo, a.lo > b.hi, poison);
    case OP_GE: return truth(a.hi < b.lo, a.lo >= b.hi, poison);
    case OP_EQ: return truth(apart, same, poison);
    case OP_NE: return truth(same, apart, poison);
    case OP_AND: return range_and(a, b);
    case OP_OR: return range_or(a, b);
    case OP_BOTH: return range_select(b, a, a);
    case OP_EITHER: return range_select(a, a, b);
    case OP_BITAND:
    case OP_BITOR:
    case OP_BITXOR:
    case OP_SHL:
    case OP_SHR: return range_bits(op, a, b);
    default: BUG("not a binary operator: %d", (int)op);
    }
}

ValueRange constraint_range(const Constraint *constraint, const ValueRange *param)
{
    ValueRange stack[CONSTRAINT_STACK];
    int top = -1;
    ARRAY_EACH_REF(const Code *, code, constraint->code, constraint->ncode) {
        ValueRange *a = &stack[MAX(top, 0)];
        if (code->op == OP_NUMBER)
            stack[++top] = (ValueRange){code->number, code->number, false};
        else if (code->op == OP_PARAM)
            stack[++top] = param[code->param];
        else if (is_unary(code->op))
            *a = range_unary(code->op, *a);
        else if (code->op == OP_SELECT)
            top -= 2, stack[top] = range_select(stack[top], stack[top + 1], stack[top + 2]);
        else
            top--, stack[top] = range_binary(code->op, stack[top], stack[top + 1]);
    }
    return stack[0];
}

Verdict constraint_decide(const Constraint *constraint, const ValueRange *param)
{
    if (constraint->relation)
        return decide_relation(constraint->relation, param);
    ValueRange range = constraint_range(constraint, param);
    if (surely_false(range))
        return ALWAYS_FALSE;
    return surely_true(range) && !range.poison ? ALWAYS_TRUE : UNDECIDED;
}
