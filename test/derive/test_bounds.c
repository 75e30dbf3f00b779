// SPDX-License-Identifier: Apache-2.0
//
// The reference with bounds for CUDA devices: its text, run on the host (emulate.hpp),
// gives the numbers of the host's reference, each within the bounds of the other, and
// decides neither less nor more.

#include "calibrate/describe.h"
#include "device/nvidia.h"
#include "problem/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "emulate.h"

typedef struct {
    const char *text;
    int64_t n, m;
} Case;

static const Case cases[] = {
    {"def f(a: [N][M]float) = a |> map(\\r -> r |> map(\\x -> x * x + 0.1) |> "
     "reduce(+, 0))",
     13, 70},
    {"def f(a: [N][M]float4) = a |> map(\\r -> r |> map(\\x -> x * x) |> reduce(+, 0.0))",
     13, 70},
    // A row's fold, shared by the items of a group, and what follows it.
    {"def f(a: [N][M]float) = a |> map(\\r -> let m = r |> reduce(max, -1e30) in let s = r "
     "|> map(\\x -> exp(x - m)) |> reduce(+, 0) in r |> map(\\x -> exp(x - m) / s))",
     5, 300},
    {"def f(a: [N][M]float) = transpose(a) |> map(reduce(+, 0))", 40, 33},
    {"def f(a: [N]double, b: [M]double) = let s = reduce(+, 0, zip(a, a) |> map(\\x y -> x "
     "* "
     "y)) in b |> map(\\x -> x / s)",
     1000, 70},
    {"def f(a: [N][M]half, b: [M][N]bf16) = a |> map(\\r -> transpose(b) |> map(\\c -> "
     "zip(r, "
     "c) |> reduce(\\s t -> s + float(t.0) * float(t.1), float(0))))",
     20, 33},
    // Decisions: of a threshold, by a rounding, of where to read.
    {"def f(a: [N][M]float) = a |> map(map(\\x -> let y = x / 3.0 in if y * 3.0 > x then "
     "1.0 "
     "else 2.0))",
     20, 33},
    {"def f(a: [N][M]float) = a |> map(map(\\x -> int(floor(x * 10.0))))", 20, 33},
    {"def f(a: [N]float, i: [M]int) = i |> map(\\k -> let x = a[abs(k) % N] in max(x, "
     "0.5) * 0.1)",
     65, 90},
    {"def f(a: [N][M]float) = a |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\w -> "
     "0.25 * (w[0][1] + w[1][0] + w[1][2] + w[2][1]) - sqrt(abs(w[1][1])))",
     19, 23},
    {"def f(a: [N][M]half) = a |> map(map(\\x -> float(x > 0.75) * 0.1 + float(bool(x))))",
     20, 33},
    {"def f(a: [N]float) = a |> scan(+, 0)", 700, 1},
    {"def f(a: [N][M]float) = a |> map(scan(+, 0))", 9, 700},
    {"def f(a: [N][M]float) = transpose(a) |> map(scan(+, 0))", 300, 9},
    {"def f(a: [N][M]float) = a |> map(\\r -> r |> map(\\x -> (0.5 * x, x)) |> scan(\\f g "
     "-> "
     "(f.0 * g.0, g.0 * f.1 + g.1), (1.0, 0.0)) |> map(\\f -> f.1))",
     5, 300},
};

static DeviceInfo gpu(void)
{
    DeviceModel model;
    DeviceInfo info;
    assert_true(device_model_find("nvidia-h200", &model));
    describe_model(&model, &info);
    describe_target("cuda", &info);
    info.shuffle = info.in_order = false;
    info.matrix = 0;
    return info;
}

static void compile(const Candidate *candidate)
{
    Buf log, cubin, symbols, source;
    log = buf_new();
    cubin = buf_new();
    symbols = buf_new();
    source = buf_new();
    Nvrtc *nvrtc = nvrtc_open(&log);
    buf_printf(&source, "%s%s", candidate->job.prelude, candidate->job.source);
    const DeviceText text = {.source = source.text, .options = "-DFW_LITTLE"};
    if (nvrtc &&
        nvrtc_compile(nvrtc, &text, "sm_80", NULL, &cubin, &symbols, &log) != DEV_OK)
        fail_msg("%s", log.text);
    nvrtc_close(nvrtc);
    buf_release(&source);
    buf_release(&symbols);
    buf_release(&cubin);
    buf_release(&log);
}

// Runs the text for CUDA on the inputs of data: raw has pairs for the outputs. False: there
// is no compiler for C++.
static bool run_pairs(const Problem *problem, const ProblemData *data, Arena *arena,
                      void **raw, Diags *diags)
{
    Point point;
    Buf prelude;
    Candidate candidate;
    const DeviceInfo info = gpu();
    const Target *target = target_reference(info.target);
    Derivation *derivation = derive_new(problem->bound, &info, diags);
    assert_non_null(derivation);
    derive_reference(derivation, &point);
    prelude = buf_new();
    reference_prelude(&prelude, problem, derivation, target, NULL, false);
    assert_true(candidate_make(problem, derivation, &point, "r", target,
                               buf_keep(&prelude, arena), arena, &candidate, diags));
    assert_null(strstr(candidate.job.source, "strip")); // a long text
    compile(&candidate);
    ProblemData pairs = *data;
    pairs.buffer = NEW_ARRAY(arena, RunnerBuffer, data->nbuffer);
    for (int i = 0; i < data->nbuffer; i++) {
        Scalar scalar = data->buffer[i].scalar;
        bool small = scalar == S_HALF || scalar == S_BF16;
        pairs.buffer[i] = data->buffer[i];
        pairs.buffer[i].scalar = small ? S_FLOAT : scalar;
        pairs.buffer[i].count *= i < data->ninput ? 1 : 2;
        if (i < data->ninput && small) { // inputs are floats there
            double *value = NEW_ARRAY(arena, double, data->buffer[i].count);
            float *wide = NEW_ARRAY(arena, float, data->buffer[i].count);
            scalar_unpack(scalar, data->buffer[i].init, data->buffer[i].count, value);
            for (int64_t k = 0; k < data->buffer[i].count; k++)
                wide[k] = (float)value[k];
            pairs.buffer[i].init = wide;
        }
    }
    bool ok = emulate_candidate(&candidate, &pairs, arena, raw);
    candidate_release(&candidate);
    derive_free(derivation);
    return ok;
}

static void compare(const Case *c, const RunnerBuffer *b, const void *raw, Arena *arena)
{
    Scalar scalar = b->scalar == S_HALF || b->scalar == S_BF16 ? S_FLOAT : b->scalar;
    double *pair = NEW_ARRAY(arena, double, 2 * b->count);
    double *expect = NEW_ARRAY(arena, double, b->count);
    int64_t decided[2] = {0};
    scalar_unpack(scalar, raw, 2 * b->count, pair);
    scalar_unpack(b->scalar, b->expect, b->count, expect);
    for (int64_t i = 0; i < b->count; i++) {
        double by = pair[2 * i + 1], far = fabs(pair[2 * i] - expect[i]);
        bool whole = !scalar_info[b->scalar].floating;
        decided[0] += isfinite(b->bound[i]);
        decided[1] += whole ? by == 0 : isfinite(by);
        if (isfinite(b->bound[i]) && isfinite(by) && far > (double)b->bound[i] + by)
            fail_msg("%s: element %d: %g on the device, %g here, bounds %g and %g", c->text,
                     (int)i, pair[2 * i], expect[i], by, (double)b->bound[i]);
        if (!whole && b->bound[i] > 0 && isfinite(b->bound[i]) &&
            !(by > 0.05 * (double)b->bound[i] && by < 20 * (double)b->bound[i]))
            fail_msg("%s: element %d has bound %g, here %g", c->text, (int)i, by,
                     (double)b->bound[i]);
    }
    assert_int_equal(decided[0], decided[1]);
}

static void test_device(void **state)
{
    (void)state;
    for (int k = 0; k < COUNTOF(cases); k++) {
        const Case *c = &cases[k];
        Arena *arena = arena_new();
        Diags diags = {.arena = arena};
        char folder[] = "/tmp/forewarp-test-XXXXXX";
        assert_non_null(mkdtemp(folder));
        Problem *problem =
            problem_parse("f.fw", arena_printf(arena, "size N, M\n%s\n", c->text), &diags);
        const Binding binding[] = {{.name = "N", .value = c->n},
                                   {.name = "M", .value = c->m}};
        if (!problem->program || !problem_bind(problem, binding, 2, &diags))
            fail_msg("%s: %s", c->text, diags.list.at[0].message);
        ProblemData *data = data_random(problem, 1, arena);
        const Workplace place = {.folder = folder};
        const char *how;
        void **raw = NEW_ARRAY(arena, void *, data->nbuffer);
        assert_true(
            reference_compute(problem, data, "cuda:0", &place, arena, &how, &diags));
        if (run_pairs(problem, data, arena, raw, &diags))
            for (int i = data->ninput; i < data->nbuffer; i++) {
                assert_non_null(data->buffer[i].bound);
                compare(c, &data->buffer[i], raw[i], arena);
            }
        problem_free(problem);
        remove_tree(folder);
        arena_free(arena);
    }
}

// A product's sum that the reference makes of parts rounds as often as one without them.
static void test_product_terms(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    const Binding binding[] = {{.name = "N", .value = 543},
                               {.name = "M", .value = 2911},
                               {.name = "K", .value = 1259}};
    const DeviceInfo info = gpu();
    Problem *problem = problem_parse(
        "f.fw",
        "size N, M, K\ndef f(a: [N][K]float, b: [K][M]float) = a |> map(\\r -> "
        "transpose(b) |> map(\\c -> zip(r, c) |> map(*) |> reduce(+, 0)))\n",
        &diags);
    assert_true(problem_bind(problem, binding, 3, &diags));
    Derivation *derivation = derive_new(problem->bound, &info, &diags);
    assert_true(derive_terms(derivation) >= 1259);
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
}

typedef struct {
    float a, b;
} Affine;

// A program whose reference is computed on the host.
typedef struct {
    Arena *arena;
    Diags diags;
    char folder[32];
    Problem *problem;
    ProblemData *data;
    const char *device, *how;
} Judged;

static void judged_open(Judged *j)
{
    *j = (Judged){
        .arena = arena_new(), .folder = "/tmp/forewarp-test-XXXXXX", .device = "host"};
    j->diags.arena = j->arena;
    assert_non_null(mkdtemp(j->folder));
}

// patience_s: as of a Workplace.
static void judged_compute(Judged *j, const char *text, int64_t n, double patience_s)
{
    const Binding binding = {.name = "N", .value = n};
    const Workplace place = {.folder = j->folder, .patience_s = patience_s};
    if (!j->problem || !problem_bind(j->problem, &binding, 1, &j->diags))
        fail_msg("%s: %s", text, j->diags.list.at[0].message);
    j->data = data_random(j->problem, 1, j->arena);
    assert_true(reference_compute(j->problem, j->data, j->device, &place, j->arena, &j->how,
                                  &j->diags));
}

static void judged_text(Judged *j, const char *text, int64_t n, double patience_s)
{
    judged_open(j);
    j->problem = problem_parse("f.fw", text, &j->diags);
    judged_compute(j, text, n, patience_s);
}

static void judged_close(Judged *j)
{
    problem_free(j->problem);
    remove_tree(j->folder);
    arena_free(j->arena);
}

// y = a x + b of elements from `from` on, neighbours combined in a random order.
static Affine composed(const float *x, int64_t from, int64_t to, Rng *rng)
{
    if (to - from == 1)
        return (Affine){0.5f * fmaxf(fminf(x[from], 1), -1), x[from]};
    int64_t middle = from + 1 + (int64_t)rng_below(rng, (uint64_t)(to - from - 1));
    Affine f = composed(x, from, middle, rng), g = composed(x, middle, to, rng);
    float product = g.a * f.b; // a rounding of its own
    return (Affine){f.a * g.a, product + g.b};
}

// The bound of a prefix of tuples holds in whatever order neighbours are combined, and is
// no wider than what elements need that still count.
static void test_any_order(void **state)
{
    (void)state;
    enum { LENGTH = 3000, EACH = 7 };
    Judged j;
    judged_open(&j);
    j.problem = problem_load("test/truth/decay.fw", &j.diags);
    judged_compute(&j, "decay.fw", LENGTH, 0);
    const RunnerBuffer *out = &j.data->buffer[j.data->ninput];
    const float *x = j.data->buffer[0].init, *expect = out->expect;
    Rng rng = rng_new(1);
    for (int i = 0; i < LENGTH; i += EACH) {
        float y = composed(x, 0, i + 1, &rng).b;
        if (!(fabsf(y - expect[i]) <= out->bound[i]))
            fail_msg("element %d: %.9g in another order, must be %.9g within %g", i,
                     (double)y, (double)expect[i], (double)out->bound[i]);
        assert_true(out->bound[i] < 1e-4);
    }
    judged_close(&j);
}

// A comparison with what is no number is not in doubt, whatever the other side is off.
static void test_no_number(void **state)
{
    (void)state;
    Judged j;
    judged_text(&j,
                "size N\ndef f(a: [N]float) = a |> map(\\x -> let y = x / 3.0 in "
                "if sqrt(-1.0 - x * x) > y || y == sqrt(-1.0 - x * x) then 1 else 2)\n",
                100, 0);
    for (int i = 0; i < 100; i++)
        assert_true(j.data->buffer[j.data->ninput].bound[i] == 0);
    judged_close(&j);
}

// A device that takes denormals for 0 may do so with a value that is off by what was lost
// before, though the reference's own is a normal number: here p is lost, then q alone.
static void test_denormals(void **state)
{
    (void)state;
    Judged j;
    judged_open(&j);
    j.device = "cuda:0";
    j.problem = problem_parse("f.fw",
                              "size N\ndef f(a: [N]float) = a |> map(\\x -> "
                              "let p = (x + 3.0) * 1e-19 * 2.5e-20 in "
                              "let q = (x + 5.0) * 1e-19 * 2.5e-20 in (p + q) * 0.6)\n",
                              &j.diags);
    judged_compute(&j, "denormals", 100, 0);
    const RunnerBuffer *out = &j.data->buffer[j.data->ninput];
    const float *expect = out->expect;
    for (int i = 0; i < 100; i++)
        assert_true(expect[i] > 1.1755e-38f && out->bound[i] >= expect[i]);
    judged_close(&j);
}

// If the finite terms of a sum come to more than the largest float, they may be an
// infinity, and then the sum is none with the opposite one among its terms.
static void test_overflowing_terms(void **state)
{
    (void)state;
    Judged j;
    judged_text(&j,
                "size N\ndef f(a: [N]float) = a |> map(\\x -> "
                "reduce(+, 0, array(4, \\k -> x * 2e38)) + (x * 1e30) * (0 - x * 1e30))\n",
                100, 0);
    for (int i = 0; i < 100; i++)
        assert_true(isinf(j.data->buffer[j.data->ninput].bound[i]));
    judged_close(&j);
}

// 0 divided by what vanishes in the program's own types is no number there.
static void test_vanishing_divisors(void **state)
{
    (void)state;
    Judged j;
    judged_text(&j,
                "size N\ndef f(a: [N]float) = a |> map(\\x -> "
                "let w = exp(-90 * x) in 0 * w / w)\n",
                100, 0);
    const RunnerBuffer *out = &j.data->buffer[j.data->ninput];
    const float *x = j.data->buffer[0].init;
    for (int i = 0; i < 100; i++)
        assert_true(x[i] > 1.17f ? isinf(out->bound[i])
                                 : x[i] > 0.9f || out->bound[i] == 0);
    judged_close(&j);
}

// A key whose row and column are both in doubt stands for the nearest rows and columns, and
// for no places between.
static void test_keys_of_rows(void **state)
{
    (void)state;
    enum { LENGTH = 40, ROW = 10 };
    Judged j;
    judged_text(
        &j,
        "size N\ndef f(a: [N]float): [N*N]int = reduceBy(N * N, +, 0, a |> map(\\x -> "
        "let y = int(rint(x / 3.0 * 3.0 - x + 10.5)) in (y * N + y, 1)))\n",
        LENGTH, 0);
    const RunnerBuffer *out = &j.data->buffer[j.data->ninput];
    const int *bound = (const void *)out->bound;
    for (int i = 0; i < LENGTH * LENGTH; i++) {
        const bool near = abs(i / LENGTH - ROW) <= 1 && abs(i % LENGTH - ROW) <= 1;
        assert_int_equal(bound[i] != 0, near);
    }
    judged_close(&j);
}

static float squared(float x)
{
    volatile float z = x * 1e19f, large = z * z * 5;
    return large / 1e38f / 5;
}

// Steps whose numbers overflow in the program's own types, but not in the reference's, are
// undecided, though the run on changed inputs says nothing else against narrow bounds.
static void test_overflowing_steps(void **state)
{
    (void)state;
    Judged j;
    judged_text(&j,
                "size N\ndef f(a: [N]float) = iterate(2, \\s -> s |> map(\\x -> "
                "let z = x * 1e19 in z * z * 5 / 1e38 / 5), a)\n",
                100, 0);
    const RunnerBuffer *out = &j.data->buffer[j.data->ninput];
    const float *x = j.data->buffer[0].init, *expect = out->expect;
    int overflows = 0, narrow = 0;
    for (int i = 0; i < 100; i++) {
        const bool overflow = isfinite(expect[i]) && isinf(squared(squared(x[i])));
        overflows += overflow;
        narrow += out->bound[i] < 1e-4;
        assert_true(!overflow || isinf(out->bound[i]));
    }
    assert_true(overflows > 0 && narrow > 0);
    judged_close(&j);
}

static const char *const scalar[] = {"bool", "char",  "uchar", "short", "ushort",
                                     "int",  "uint",  "long",  "ulong", "half",
                                     "bf16", "float", "double"};

// One component for each type that a number can have; bool: that too.
static void print_each(Buf *out, const char *format, bool with_bool)
{
    for (int i = with_bool ? 0 : 1; i < COUNTOF(scalar); i++)
        for (const char *c = format; c == format || c[-1]; c++)
            if (*c == 'T')
                buf_puts(out, scalar[i]);
            else if (*c == 'I')
                buf_printf(out, "%d", i - 1);
            else
                buf_printf(out, "%c", *c ? *c : i + 1 < COUNTOF(scalar) ? ',' : ' ');
}

// Whatever is converted to whatever else, numbers with bounds say it: of an input, of what
// is computed, of what is decided, and in folds.
static void test_conversions(void **state)
{
    (void)state;
    static const char *const from[] = {"x", "if x == y then x else y",
                                       "if float(x) / 3.0 > 0.3 then x else y"};
    Rng rng = rng_new(4);
    for (int k = 0; k < COUNTOF(scalar); k++) {
        Judged j;
        Buf text = buf_new();
        buf_printf(&text,
                   "size N\ndef f(a, b: [N]%s) = let c = zip(a, b) |> map(\\x y -> %s) in "
                   "(map(\\v -> (",
                   scalar[k], from[rng_below(&rng, COUNTOF(from))]);
        print_each(&text, "T(v)", true);
        buf_puts(&text, "), c), c |> map(\\v -> (");
        print_each(&text, "T(v)", false);
        buf_puts(&text, ")) |> reduce(\\p q -> (");
        print_each(&text, k % 2 ? "max(p.I, q.I)" : "p.I + q.I", false);
        buf_puts(&text, "), (");
        print_each(&text, "T(0)", false);
        buf_puts(&text, ")))\n");
        judged_text(&j, text.text, 50, 0);
        if (strncmp(j.how, "plain kernel with bounds", 24) != 0)
            fail_msg("%s: %s", text.text, j.how);
        judged_close(&j);
        buf_release(&text);
    }
}

// Without bounds, what is expected of a long sum is nearer than a float that adds it up.
static void test_wide_sums(void **state)
{
    (void)state;
    enum { LENGTH = 4000000 };
    Judged j;
    judged_text(&j,
                "size N\ndef f(a: [N][3]float) = array(3, \\k -> a |> "
                "map(\\r -> 0.17 + 0.001 * r[k]) |> reduce(+, 0.0))\n",
                LENGTH, 1e-9);
    assert_null(j.data->buffer[1].bound);
    const float *a = j.data->buffer[0].init, *expect = j.data->buffer[1].expect;
    for (int k = 0; k < 3; k++) {
        double sum = 0;
        for (int i = 0; i < LENGTH; i++)
            sum += 0.17 + 0.001 * (double)a[3 * i + k];
        if (!(fabs((double)expect[k] - sum) <= 1e-6 * sum))
            fail_msg("%g is expected of a sum of %g", (double)expect[k], sum);
    }
    judged_close(&j);
}

// Nor is the tolerance of its steps what such a float is off: inputs that differ by their
// last bit are added up in the same way.
static void test_wide_steps(void **state)
{
    (void)state;
    Judged j;
    judged_text(&j,
                "size N\ndef f(a: [N][3]float) = iterate(2, \\s -> "
                "array(3, \\k -> (a |> map(\\r -> "
                "0.17 + 0.001 * r[k] * s[k]) |> reduce(+, 0.0)) / "
                "1000000), array(3, \\k -> 1.0))\n",
                4000000, 1e-9);
    assert_null(j.data->buffer[1].bound);
    if (!(j.data->tolerance < 0.01))
        fail_msg("a tolerance of %g", j.data->tolerance);
    judged_close(&j);
}

// What a program's kernels may need, when they are not known yet: of doubles, which have
// helpers that only some arithmetic does.
static void test_preludes(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse(
        "f.fw", "size N\ndef f(a: [N]double) = a |> map(\\x -> x / 3.0)\n", &diags);
    for (int math = 0; math < MATHS; math++)
        for (int i = 0; target_at(i); i++) {
            Buf text = buf_new();
            problem->program->math = (Math)math;
            emit_prelude(&text, target_at(i), problem->program);
            buf_release(&text);
        }
    problem_free(problem);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_device),
                                       cmocka_unit_test(test_any_order),
                                       cmocka_unit_test(test_no_number),
                                       cmocka_unit_test(test_conversions),
                                       cmocka_unit_test(test_wide_sums),
                                       cmocka_unit_test(test_wide_steps),
                                       cmocka_unit_test(test_preludes),
                                       cmocka_unit_test(test_denormals),
                                       cmocka_unit_test(test_product_terms),
                                       cmocka_unit_test(test_overflowing_terms),
                                       cmocka_unit_test(test_overflowing_steps),
                                       cmocka_unit_test(test_keys_of_rows),
                                       cmocka_unit_test(test_vanishing_divisors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
