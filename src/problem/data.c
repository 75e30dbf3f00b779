// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a program as the buffers of a runner, in the device's layout: one a plane,
// in the order of a unit's buffers. Values, which hold a double a scalar, are made of them
// only for the interpreter: 16384 x 16384 floats would be 2 GB, which take longer to get
// than to fill.

#include "problem/problem.h"

#include <math.h>

// Relative to the value or to a tenth of the mean one: sums of a few thousand floats in
// another order differ by up to a few 1e-5.
static const double TOLERANCE = 1e-4;
// The tolerance of narrow types is 8 units of the last place: where the machine has no such
// arithmetic, compilers round once an expression and not once an operation, which differs
// by a unit for each term that cancels.
static double tolerance_of(Scalar scalar)
{
    const ScalarInfo *info = &scalar_info[scalar];
    return info->floating && info->bytes == 2 ? ldexp(8, -info->digits) : TOLERANCE;
}

// One a plane; returns how many.
static int add_buffers(const Problem *problem, const char *name, const Type *type,
                       Arena *arena, RunnerBuffer *buffer)
{
    const Type *plane[PLANES_MOST];
    int n = MIN(type_planes(arena, type, plane, PLANES_MOST), PLANES_MOST);
    for (int k = 0; k < n; k++) {
        const Type *scalar = type_leaf(plane[k]);
        const char *own = n > 1 ? arena_printf(arena, "%s_%d", name, k) : name;
        buffer[k] = (RunnerBuffer){.name = own, .scalar = scalar->scalar};
        arith_is_const(type_count(problem->ir->arith, plane[k]), &buffer[k].count);
    }
    return n;
}

static int count_planes(const Type *type, Arena *arena)
{
    const Type *plane[PLANES_MOST];
    return MIN(type_planes(arena, type, plane, PLANES_MOST), PLANES_MOST);
}

// With inputs that are still to be filled.
static ProblemData *make_data(const Problem *problem, Arena *arena)
{
    const Function *main = problem->bound->main;
    ProblemData *data = NEW(arena, ProblemData);
    int n = count_planes(main->body->type, arena);
    for (int i = 0; i < main->nparam; i++)
        n += count_planes(main->params[i]->type, arena);
    data->buffer = NEW_ARRAY(arena, RunnerBuffer, n);
    for (int i = 0; i < main->nparam; i++)
        data->ninput += add_buffers(problem, main->params[i]->name, main->params[i]->type,
                                    arena, &data->buffer[data->ninput]);
    data->noutput =
        add_buffers(problem, "out", main->body->type, arena, &data->buffer[data->ninput]);
    data->nbuffer = data->ninput + data->noutput;
    for (int i = 0; i < data->ninput; i++)
        data->buffer[i].init = arena_shared(arena, runner_buffer_bytes(&data->buffer[i]));
    int *output = NEW_ARRAY(arena, int, MAX(data->noutput, 1));
    data->tolerance = TOLERANCE;
    for (int k = 0; k < data->noutput; k++) {
        output[k] = data->ninput + k;
        data->tolerance =
            fmax(data->tolerance, tolerance_of(data->buffer[output[k]].scalar));
    }
    data->output = output;
    return data;
}

static void pack_plane(const RunnerBuffer *buffer, const double *plane)
{
    scalar_pack(buffer->scalar, plane, buffer->count, (void *)(uintptr_t)buffer->init);
}

ProblemData *data_new(const Problem *problem, Value **inputs, Arena *arena)
{
    ProblemData *data = make_data(problem, arena);
    const RunnerBuffer *at = data->buffer;
    for (int i = 0; i < problem->bound->main->nparam; i++)
        for (int k = 0; k < inputs[i]->nplane; k++)
            pack_plane(at++, inputs[i]->plane[k]);
    return data;
}

// Where an element lies: lines are the rows of the innermost axis, of arrays with few to a
// row all elements, and of each line one element is its first mark, one its last, one its
// middle. They move by one from a line to the next, so that a fold of any other axis meets
// each at most once in as many lines as a line is long, and from a set to the next by so
// much that all lines of all sets together have theirs everywhere, if there are enough.
typedef struct {
    int64_t length, lines, shift;
    int64_t terms;   // of the longest fold, if it is long; else 0
    int64_t factors; // of the longest fold that multiplies; 0: there is none
    bool sparse;     // may most elements be 0?
    InputRange range;
} Marks;

// Number i of a buffer, for a set of inputs.
typedef double Draw(Rng *rng, Scalar scalar, const Marks *marks, int64_t i, int set);

typedef struct {
    const RunnerBuffer *buffer;
    Draw *draw;
    uint64_t seed;
    int plane;
    Marks marks;
    int set;
} Filling;

static void fill_part(void *user, int64_t from, int64_t to)
{
    const Filling *f = user;
    double chunk[RANDOM_CHUNK];
    size_t bytes = scalar_device_bytes(f->buffer->scalar);
    char *at = (char *)(uintptr_t)f->buffer->init;
    for (int64_t i = from; i < to; i += RANDOM_CHUNK) {
        int64_t n = MIN(RANDOM_CHUNK, to - i);
        Rng rng = rng_new(random_seed(f->seed, f->plane, i));
        for (int64_t k = 0; k < n; k++)
            chunk[k] = f->draw(&rng, f->buffer->scalar, &f->marks, i + k, f->set);
        scalar_pack(f->buffer->scalar, chunk, n, at + (size_t)i * bytes);
    }
}

static double usual(Rng *rng, Scalar scalar, const Marks *marks, int64_t i, int set)
{
    const int64_t below = marks->range.below;
    if (scalar_info[scalar].integer)
        return (double)rng_below(rng, (uint64_t)below);
    const double x = scalar_random(rng, scalar); // a float is from 0.5 on
    return scalar_info[scalar].floating && below ? (x - 0.5) * (double)below : x;
}

// Further inputs -------------------------------------------------------------------------

// A float that is made an integer may be an index, and what an opaque function does with
// its argument is not known.
static bool may_index(const Expr *e, const void *none)
{
    return (e->kind == E_OP && type_is_integer(e->type) &&
            scalar_info[e->arg[0]->type->scalar].floating) ||
           expr_calls(e, may_index, none);
}

static bool is_fold(const Expr *e)
{
    return e->kind == E_PATTERN &&
           (e->pattern == P_REDUCE || e->pattern == P_SCAN || e->pattern == P_REDUCEBY);
}

static bool takes_extremes(const Expr *e, const void *none)
{
    return (e->kind == E_OP && (e->op == OP_MINIMUM || e->op == OP_MAXIMUM)) ||
           expr_calls(e, takes_extremes, none);
}

// A fold that compares is not associative where one side is not a number, nor is one of
// tuples that takes the less and the greater of two.
static bool folds_decide(const Expr *e, const void *none)
{
    return is_fold(e) &&
           (expr_decides(e->fun) || (e->fun->arg[0]->type->kind == T_TUPLE &&
                                     expr_find(e->fun, takes_extremes, NULL)));
}

// The most factors of a fold.
static void count_factors(const Expr *e, void *most)
{
    int64_t n = 1, *factors = most;
    if (!is_fold(e) || !expr_multiplies(e))
        return;
    arith_is_const(e->arg[e->narg - 1]->type->len, &n);
    *factors = MAX(*factors, n);
}

enum {
    FACTORS = 24,
    LONG_FOLD = 1 << 15,
    MARKED_FROM = 4,
    SPECIAL_FROM = 16,
    SPECIAL_LINE = 61
};

static Marks marks_of(const Type *plane, int64_t count, int set)
{
    Marks m = {.length = count};
    int64_t inner = 0;
    while (plane->kind == T_ARRAY && arith_is_const(plane->len, &inner))
        plane = plane->elem;
    if (inner >= MARKED_FROM)
        m.length = inner;
    m.length = MAX(m.length, 1);
    m.lines = MAX(count / m.length, 1);
    // The marks of two sets are neighbours: on a short line, all sets mark every element.
    int64_t spread = MAX(m.lines, (m.length + MORE_SETS - 1) / MORE_SETS) | 1;
    int64_t step = m.length <= MORE_SETS ? 2 : spread;
    m.shift = set / 2 * step % m.length;
    return m;
}

// 0: the first mark.
static int64_t mark_at(const Marks *m, int64_t i)
{
    return (i % m->length + i / m->length % m->length + m->shift) % m->length;
}

// The largest and the least of a line are its marks, in turns from set to set, and what is
// nearest to 0 the middle one.
static double marked(const Marks *m, int64_t i, int set, double x, double most)
{
    int64_t mark = mark_at(m, i);
    if (m->length < MARKED_FROM)
        return x;
    if (mark == m->length / 2)
        return 0;
    bool largest = mark == (set % 2 ? m->length - 1 : 0);
    bool least = mark == (set % 2 ? 0 : m->length - 1);
    return largest ? most * 1.5 : least ? -most * 1.25 : x;
}

// In one round of four, lines are far from their neighbours: what is read from the wrong
// line shows in a fold of max or min, too.
static double level_of(const Marks *m, int64_t i, int set, int64_t apart)
{
    bool apart_now = set / MORE_KINDS % 4 == 2 && m->lines > 1 && !m->terms;
    return apart_now ? (double)(apart * (i / m->length % 3 - 1)) : 0;
}

// What a fold multiplies: nearly all are 1 or -1, so that no items of a group have factors
// whose product is beyond the numbers; one line in four has a 0.
static double factor(Rng *rng, Scalar scalar, const Marks *m, int64_t i, int set)
{
    static const double exact[] = {2, 0.5, 4, 0.25, 3, 1.5};
    double sign = rng_below(rng, 2) ? -1 : 1;
    if (rng_below(rng, (uint64_t)m->factors) >= FACTORS)
        return i / m->length % 4 == 3 && mark_at(m, i) == m->length / 2 ? 0 : sign;
    return sign * (set % MORE_KINDS == MORE_SCALES
                       ? 0.5 + (double)rng_below(rng, 1024) / 1024
                       : exact[rng_below(rng, scalar == S_BF16 ? 4 : COUNTOF(exact))]);
}

// Multiples of 1/4; of long folds whole numbers, as many of which are not 0 as a float has
// digits for. In every other round they are so few numbers that comparisons of what is
// computed often meet equal sides.
static double few_digits(Rng *rng, Scalar scalar, const Marks *m, int64_t i, int set)
{
    if (m->factors)
        return factor(rng, scalar, m, i, set);
    int narrow = scalar_is_short(scalar);
    int most = m->terms || set / MORE_KINDS % 2 ? 2 : 16 >> narrow;
    double x = (double)rng_below(rng, (uint64_t)(2 * most + 1)) - most;
    x = m->terms ? x : x / 4;
    double some = ldexp(1, scalar_info[scalar].digits - 1);
    if (x == 0 && (double)m->terms <= some)
        x = m->terms ? 1 : 0.25;
    else if ((double)m->terms > some && (double)rng_below(rng, (uint64_t)m->terms) > some)
        x = 0;
    return marked(m, i, set, x, m->terms ? 4 : 4 >> narrow) +
           level_of(m, i, set, 32 >> 2 * narrow);
}

// In every other round few are not 0: what is computed of one value alone has a narrow
// bound.
static double any_scale(Rng *rng, Scalar scalar, const Marks *m, int64_t i, int set)
{
    if (m->factors)
        return factor(rng, scalar, m, i, set);
    int most = scalar == S_HALF ? 3 : 8, power = (int)rng_below(rng, 1 << 16);
    double sign = power & 1 << 15 ? -1 : 1, x = 0.5 + (double)rng_below(rng, 1024) / 1024;
    int zeros = m->sparse && set / MORE_KINDS % 2 ? 56 : 1; // of 64
    x = power % 64 < zeros ? 0 : sign * ldexp(x, power / 64 % (2 * most + 1) - most);
    return marked(m, i, set, x, ldexp(1, most + 1));
}

// Integers may be indices, so these are of the range that they always have. The largest is
// in turns the last key and one that folds nothing. A line of fewer elements than there are
// keys would hardly meet a key twice, so in every other round it has a few neighbours only.
static double in_range(Rng *rng, Scalar scalar, const Marks *m, int64_t i, int set)
{
    int64_t mark = mark_at(m, i);
    if (m->length < MARKED_FROM || m->range.below < 3)
        return (double)rng_below(rng, (uint64_t)m->range.below);
    int64_t number = m->range.below - 2, few = MAX(m->length / 4, 2), first = 1;
    if (set / MORE_KINDS % 2 && few < number) {
        uint64_t line = hash_mix((uint64_t)set, (uint64_t)(i / m->length));
        first += (int64_t)(line % (uint64_t)(number - few + 1));
        number = few;
    }
    double x = (double)(first + (int64_t)rng_below(rng, (uint64_t)number));
    int64_t largest = (set / 2 % 2 ? m->range.below : m->range.inside) - 1;
    return mark == (set % 2 ? m->length - 1 : 0)   ? (double)largest
           : mark == (set % 2 ? 0 : m->length - 1) ? 0
                                                   : x;
}

// A round of sets has one line in four without, and one special value in each other, a
// third of the elements crowded with them; of the next round only as many lines have one as
// a line is long, so that a fold of another axis meets one; two have them in every other
// element, and between them in all.
static double special(Rng *rng, Scalar scalar, const Marks *m, int64_t i, int set)
{
    static const double values[] = {NAN, INFINITY, NAN, -INFINITY, NAN, 0};
    double x = few_digits(rng, scalar, m, i, set);
    int round = set / MORE_KINDS % 4;
    bool flat = m->lines == 1, crowd = (hash_mix(7, (uint64_t)i) & 1) == (round & 1);
    int64_t line = i / m->length, at = mark_at(m, i);
    if (flat && round == 0) { // lines of their own
        line = i / SPECIAL_LINE;
        at = (i + line) % SPECIAL_LINE;
    }
    bool alone = at == 0 && (line % 4 != 3 || m->lines < 4);
    bool found = round >= 2                                   ? crowd
                 : round == 0 && i < m->length * m->lines / 3 ? crowd
                 : round == 0                                 ? alone
                                                              : alone && line < m->length;
    return found ? values[(i + line) % COUNTOF(values)] : x;
}

// What the numbers of a further set are. Arrays of few elements are parameters: what is
// special in one is in every result.
static Filling further(const RunnerBuffer *buffer, const Type *plane, int set, bool finite,
                       int64_t terms, int64_t factors)
{
    static Draw *const draw[] = {few_digits, any_scale, special};
    bool whole = !scalar_info[buffer->scalar].floating;
    Marks m = marks_of(plane, buffer->count, set);
    m.terms = terms;
    m.factors = factors;
    m.sparse = buffer->count >= SPECIAL_FROM;
    MoreKind kind = set % MORE_KINDS;
    finite |= buffer->count < SPECIAL_FROM;
    kind = kind == MORE_SPECIAL && finite ? MORE_FEW_DIGITS : kind;
    return (Filling){
        .buffer = buffer, .draw = whole ? in_range : draw[kind], .marks = m, .set = set};
}

// Their terms in the longest fold; 0: they are of no whole numbers.
static int64_t long_terms(const Problem *problem)
{
    int64_t terms = expr_fold_terms(problem->bound->main->body);
    return terms > LONG_FOLD ? terms : 0;
}

bool data_whole(const Problem *problem)
{
    return long_terms(problem) > 0;
}

// Truth values, floats that lead to an index and, if set is below 0, all inputs are as
// usual.
static ProblemData *fill_all(const Problem *problem, int set, uint64_t seed, Arena *arena)
{
    const Function *main = problem->bound->main;
    ProblemData *data = make_data(problem, arena);
    bool finite =
        problem->bound->math == MATH_FAST || expr_find(main->body, folds_decide, NULL);
    const RunnerBuffer *at = data->buffer;
    const Type *plane[PLANES_MOST];
    int64_t factors = 0;
    expr_each(main->body, count_factors, &factors);
    const InputRange *drawn = problem_ranges(problem, data->ninput, arena);
    bool indexed = set >= 0 && expr_find(main->body, may_index, NULL);
    for (int i = 0; i < main->nparam; i++) {
        uint64_t own = hash_mix(seed, (uint64_t)i);
        int n =
            MIN(type_planes(arena, main->params[i]->type, plane, PLANES_MOST), PLANES_MOST);
        for (int k = 0; k < n; k++, at++) {
            Filling filling = {.buffer = at, .draw = usual, .seed = own, .plane = k};
            const InputRange *range = &drawn[at - data->buffer];
            bool index = indexed && range->index && scalar_info[at->scalar].floating;
            if (set >= 0 && at->scalar != S_BOOL && !index) {
                filling = further(at, plane[k], set, finite, long_terms(problem), factors);
                filling.seed = hash_mix(seed, (uint64_t)(at - data->buffer));
            }
            filling.marks.range = *range;
            parts_call(at->count, RANDOM_CHUNK, fill_part, &filling);
        }
    }
    return data;
}

ProblemData *data_random(const Problem *problem, uint64_t seed, Arena *arena)
{
    return fill_all(problem, -1, seed, arena);
}

ProblemData *data_more(const Problem *problem, int set, uint64_t seed, Arena *arena)
{
    return fill_all(problem, set, hash_mix(seed, 1001 + (uint64_t)set), arena);
}

Value **problem_inputs(const Problem *problem, uint64_t seed, Arena *arena)
{
    return data_inputs(problem, data_random(problem, seed, arena), arena);
}

Value **data_inputs(const Problem *problem, const ProblemData *data, Arena *arena)
{
    const Function *main = problem->bound->main;
    Value **input = NEW_ARRAY(arena, Value *, MAX(main->nparam, 1));
    const RunnerBuffer *at = data->buffer;
    for (int i = 0; i < main->nparam; i++) {
        input[i] = value_new(arena, main->params[i]->type);
        for (int k = 0; k < input[i]->nplane; k++, at++)
            scalar_unpack(at->scalar, at->init, at->count, input[i]->plane[k]);
    }
    return input;
}

void **data_outputs(const ProblemData *data, Arena *arena)
{
    void **out = NEW_ARRAY(arena, void *, data->nbuffer);
    for (int k = 0; k < data->noutput; k++)
        out[data->output[k]] =
            arena_shared(arena, runner_buffer_bytes(&data->buffer[data->output[k]]));
    return out;
}

void data_expect(ProblemData *data, const Value *expect, Arena *arena)
{
    for (int k = 0; k < data->noutput; k++) {
        RunnerBuffer *buffer = &data->buffer[data->ninput + k];
        void *bytes = arena_shared(arena, runner_buffer_bytes(buffer));
        scalar_pack(buffer->scalar, expect->plane[k], buffer->count, bytes);
        buffer->expect = bytes;
    }
}
