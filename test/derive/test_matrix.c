// SPDX-License-Identifier: Apache-2.0
//
// Products on matrix units: that fragments, tiles and edges fit together; strips of rows
// whose copies are under way; and prefixes in one pass. CUDA's text runs on the host
// (emulate.hpp), and what it computes is compared with the plain point's.

#include "calibrate/describe.h"
#include "device/nvidia.h"
#include "problem/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "emulate.h"

typedef struct {
    const char *text;
    int64_t m, n, k;
    const char *point; // NAME=VALUE ...
    Math math;
} Case;

#define SUM(zero) "|> reduce(\\s t -> s + t.0*t.1, " zero ")"
#define WIDE      "|> reduce(\\s t -> s + float(t.0)*float(t.1), float(0))"
#define MM(type, fold)                                                                     \
    "def f(a: [M][K]" type ", b: [K][N]" type ") = a |> map(\\r -> transpose(b) |> "       \
    "map(\\c -> zip(r, c) " fold "))"

static const Case cases[] = {
    {MM("half", WIDE), 64, 64, 96, "lx=8 ly=16 mx=4 my=2 stage=32 stages=3", MATH_STANDARD},
    // Nothing divides anything.
    {MM("half", WIDE), 35, 51, 37, "lx=4 ly=16 mx=4 my=2 stage=16 load=ahead",
     MATH_STANDARD},
    {MM("half", SUM("0")), 33, 40, 50, "lx=8 ly=8 mx=2 my=4 stage=16 stages=2",
     MATH_STANDARD},
    {MM("double", SUM("0")), 40, 33, 29, "lx=8 ly=16 mx=4 my=2 stage=16", MATH_STANDARD},
    {MM("float", SUM("0")), 40, 33, 29, "lx=8 ly=8 mx=2 my=4 stage=16", MATH_FAST},
    // Groups in bands, the last of them not full.
    {MM("double", SUM("0")), 210, 40, 16, "lx=4 ly=8 mx=2 my=4 stage=16 band=4",
     MATH_STANDARD},
    // Both factors turned; neither.
    {"def f(a: [K][M]half, b: [K][N]half) = transpose(a) |> map(\\r -> transpose(b) |> "
     "map(\\c -> zip(r, c) " WIDE "))",
     40, 48, 32, "lx=4 ly=16 mx=4 my=2 stage=16 stages=4", MATH_STANDARD},
    {"def f(a: [M][K]half, b: [N][K]half) = a |> map(\\r -> b |> map(\\c -> zip(r, c) " WIDE
     "))",
     40, 48, 32, "lx=8 ly=8 mx=2 my=4 stage=16", MATH_STANDARD},
    // Four warps together: as they lie, and turned.
    {MM("half", WIDE), 128, 64, 128, "lx=4 ly=32 mx=8 my=2 stage=64 stages=2 unit=group",
     MATH_STANDARD},
    {MM("half", WIDE), 131, 70, 100, "lx=4 ly=32 mx=16 my=4 stage=64 unit=group load=ahead",
     MATH_STANDARD},
    {"def f(a: [K][M]half, b: [N][K]half) = transpose(a) |> map(\\r -> b |> map(\\c -> "
     "zip(r, c) " WIDE "))",
     256, 128, 128, "lx=4 ly=64 mx=8 my=2 stage=64 unit=group", MATH_STANDARD},
    {"def f(a: [K][M]half, b: [K][N]half) = transpose(a) |> map(\\r -> transpose(b) |> "
     "map(\\c -> zip(r, c) " WIDE "))",
     256, 128, 256, "lx=4 ly=64 mx=8 my=2 stage=64 stages=4 unit=group", MATH_STANDARD},
    {"def f(a: [K][M]bf16, b: [N][K]bf16) = transpose(a) |> map(\\r -> b |> map(\\c -> "
     "zip(r, c) " WIDE "))",
     256, 64, 192, "lx=4 ly=64 mx=8 my=4 stage=64 stages=3 unit=group", MATH_STANDARD},
    // Products under way while the next pieces are copied; longer ones than the ring.
    {MM("half", WIDE), 128, 128, 512, "lx=4 ly=64 mx=16 my=2 stage=64 stages=4 unit=group",
     MATH_STANDARD},
    {MM("half", WIDE), 256, 128, 128, "lx=4 ly=64 mx=8 my=4 stage=64 stages=4 unit=group",
     MATH_STANDARD},
    // bf16: by warps and by four together.
    {MM("bf16", WIDE), 35, 51, 37, "lx=4 ly=16 mx=4 my=2 stage=16 load=ahead",
     MATH_STANDARD},
    {MM("bf16", WIDE), 64, 64, 96, "lx=8 ly=16 mx=4 my=2 stage=32 stages=3", MATH_STANDARD},
    {MM("bf16", WIDE), 128, 128, 192, "lx=4 ly=32 mx=8 my=2 stage=64 stages=2 unit=group",
     MATH_STANDARD},
    // Integers of 8 bits, which a short type holds.
    {"def f(a: [M][K]char, b: [K][N]bf16) = a |> map(\\r -> transpose(b) |> map(\\c -> "
     "zip(r, c) " WIDE "))",
     64, 64, 96, "lx=8 ly=16 mx=4 my=2 stage=32", MATH_STANDARD},
    {"def f(a: [M][K]half, b: [K][N]uchar) = a |> map(\\r -> transpose(b) |> map(\\c -> "
     "zip(r, c) " WIDE "))",
     40, 30, 50, "lx=8 ly=8 mx=2 my=4 stage=16 load=ahead", MATH_STANDARD},
    // Short results, which neighbouring items exchange.
    {"def f(a: [M][K]half, b: [K][N]half) = a |> map(\\r -> transpose(b) |> map(\\c -> "
     "half(zip(r, c) " WIDE ")))",
     64, 64, 64, "lx=8 ly=8 mx=4 my=4 stage=16 stages=2", MATH_STANDARD},
    {"def f(a: [M][K]bf16, b: [K][N]bf16) = a |> map(\\r -> transpose(b) |> map(\\c -> "
     "bf16(zip(r, c) " WIDE ")))",
     128, 64, 64, "lx=4 ly=32 mx=8 my=2 stage=64 unit=group", MATH_STANDARD},
    // What stands before and behind the product; a batch.
    {"def f(a: [M][K]half, s: [M]half, b: [K][N]half, v: [N]float) =\n"
     "  zip(a, s) |> map(\\r -> zip(transpose(b), v) |> map(\\c -> max(0, c.1 + (zip(r.0, "
     "c.0) |> reduce(\\s t -> s + float(t.0*r.1)*float(t.1), float(0))))))",
     37, 40, 32, "lx=8 ly=8 mx=2 my=4 stage=16", MATH_STANDARD},
    {"def f(a: [3][M][K]half, b: [3][K][N]half) = zip(a, b) |> map(\\p -> p.0 |> map(\\r "
     "-> "
     "transpose(p.1) |> map(\\c -> zip(r, c) " WIDE ")))",
     33, 20, 40, "lx=4 ly=16 lz=1 mx=4 my=2 stage=16", MATH_STANDARD},
    // What is added lies beside the sums, by patterns and by index.
    {"def f(a: [M][K]half, b: [K][N]half, d: [M][N]half) = zip(a, d) |> map(\\r -> "
     "zip(transpose(b), r.1) |> map(\\c -> float(c.1) + (zip(r.0, c.0) " WIDE ")))",
     40, 33, 48, "lx=8 ly=8 mx=2 my=4 stage=16 stages=2", MATH_STANDARD},
    {"def f(a: [M][K]double, b: [K][N]double, d: [M][N]double) = array2(M, N, \\i j -> "
     "d[i][j] + reduce(+, 0, array(K, \\k -> a[i][k]*b[k][j])))",
     33, 40, 50, "lx=8 ly=8 mx=2 my=4 stage=16", MATH_STANDARD},
    // A sum that is used twice; two products of one row; rows taken by number.
    {"def f(a: [M][K]half, b: [N][K]half) = a |> map(\\r -> b |> map(\\c -> let x = zip(r, "
     "c) " WIDE " in x / (1 + exp(-x))))",
     40, 32, 50, "lx=8 ly=8 mx=2 my=4 stage=16", MATH_STANDARD},
    {"def f(x: [M][K]half, g: [N][K]half, u: [N][K]half) = x |> map(\\r -> zip(g, u) |> "
     "map(\\c -> let p = zip(r, c.0) " WIDE " in let q = zip(r, c.1) " WIDE " in p * q))",
     35, 40, 144, "lx=8 ly=8 mx=2 my=4 stage=16 stages=3", MATH_STANDARD},
    {"def f(e: [M][K]half, i: [N]int, b: [N][K]half) = i |> map(\\x -> b |> map(\\c -> "
     "zip(e[x], c) " WIDE "))",
     40, 36, 96, "lx=8 ly=16 mx=4 my=2 stage=32 stages=3", MATH_STANDARD},
    // Folds of the rows of a product, and a product of what is made of them.
    {"def f(a: [M][K]half, b: [N][K]half) = let p = a |> map(\\r -> b |> map(\\c -> zip(r, "
     "c) " WIDE ")) in p |> map(\\r -> r |> reduce(max, float(-1.0e30)))",
     40, 136, 48, "lx=8 ly=8 mx=2 my=4 stage=16 stages=2 fold=group", MATH_STANDARD},
    {"def f(q: [M][K]half, k: [N][K]half, v: [N][K]half): [M][K]half = q |> map(\\r -> let "
     "s = k |> map(\\c -> 0.125*(zip(r, c) " WIDE ")) in let m = s |> reduce(max, "
     "float(-1.0e30)) in let e = s |> map(\\x -> half(exp(x - m))) in let z = e |> "
     "reduce(\\x y -> x + float(y), float(0)) in transpose(v) |> map(\\c -> half((zip(e, "
     "c) " WIDE ") / z)))",
     40, 144, 32, "lx=8 ly=8 mx=2 my=4 stage=16 stages=2 fold=group", MATH_STANDARD},
    // Strips of rows: the last row and column are no group's and no strip's last, and are;
    // a column less than the row has; two results; rows in batches.
    {"def f(a: [M][N]float) = a |> map(\\r -> r |> scan(\\y x -> abs(0.9 * y + x), 0.0))",
     37, 131, 1, "lx=32 strip=16 stages=3", MATH_STANDARD},
    {"def f(a: [M][N]float) = a |> map(\\r -> r |> scan(\\y x -> abs(0.9 * y + x), 0.0))",
     64, 128, 1, "lx=32 strip=32 stages=4", MATH_STANDARD},
    {"def f(a: [M][N]double, b: [M][N]double) = zip(a, b) |> map(\\t -> zip(t.0, t.1) |> "
     "scan(\\y x -> abs(x.1 * y + x.0), double(0)) |> take(N - 1) |> pad(1, 0, double(0)))",
     33, 75, 1, "lx=8 strip=16 stages=2", MATH_STANDARD},
    {"def f(a: [M][N]float) = a |> map(\\r -> r |> scan(\\(n, m) x -> (n + 1, m + (x - m) "
     "/ (float(n) + 1)), (0, 0.0)) |> map(\\(n, m) -> (m, m * float(n))))",
     19, 70, 1, "lx=16 strip=64 stages=2", MATH_STANDARD},
    {"def f(a: [M][K][N]float) = a |> map(map(\\r -> r |> scan(\\y x -> min(y + x, 1.0), "
     "0.0)))",
     3, 90, 5, "lx=4 strip=32 stages=3", MATH_STANDARD},
    // Rows that are gone through from their end: elimination and substitution, of which the
    // one reads what the other stored; rows that are moved, beside prefixes from the front.
    {"def f(a: [M][N]float) = a |> map(\\r -> gather(\\i -> N - 1 - i, scan(\\y x -> "
     "abs(0.9 "
     "* y + x), 0.0, gather(\\i -> N - 1 - i, r))))",
     37, 131, 1, "lx=32 strip=16 stages=3", MATH_STANDARD},
    {"def f(a: [M][N]double) = a |> map(\\r -> let e = r |> scan(\\s x -> (1 / (4 - s.0), "
     "(x "
     "+ s.1) / (4 - s.0)), (double(0), double(0))) in e |> gather(\\i -> N - 1 - i) |> "
     "scan(\\x e -> e.1 + e.0 * x, double(0)) |> gather(\\i -> N - 1 - i))",
     33, 75, 1, "lx=8 strip=16 stages=2", MATH_STANDARD},
    {"def f(a: [M][N]float) = a |> map(\\r -> let b = gather(\\i -> N - 1 - i, "
     "zip(gather(\\i -> N - 1 - i, r), r |> gather(\\i -> N - 1 - i) |> pad(2, 0, 0) |> "
     "take(N)) |> "
     "scan(\\y x -> abs(0.5 * y + x.0 - x.1), 0.0)) in zip(r |> scan(\\y x -> abs(0.25 * y "
     "+ x), "
     "0.0), b) |> map(+))",
     41, 67, 1, "lx=32 strip=32 stages=2", MATH_STANDARD},
    // One strip holds a whole short row.
    {"def f(a: [M][N]float) = a |> map(\\r -> r |> scan(\\y x -> x + 0.5 * max(y, 0), 0))",
     41, 20, 1, "lx=8 strip=32 stages=2", MATH_STANDARD},
    // Recurrences of few rows, from their end and beside others: prefixes of pairs, and of
    // six numbers, by groups, in parts and along columns.
    {"def f(a: [M][N]float) = a |> map(\\r -> zip(r |> scan(\\y x -> y + 0.1 * (x - y), "
     "r[0]), "
     "gather(\\i -> N - 1 - i, scan(\\y x -> 0.5 * y - x, 0.0, gather(\\i -> N - 1 - i, "
     "r)))) "
     "|> map(+))",
     5, 311, 16, "lx=32 fold=group lanes=2", MATH_STANDARD},
    {"def f(a: [M]float) = a |> scan(\\s x -> (0.9 * s.0 - 0.2 * s.1 + x, s.0), (1.0, "
     "0.0)) "
     "|> map(\\s -> s.0)",
     3001, 1, 16, "lx=32 share=4 prefix=lookback", MATH_STANDARD},
    {"def f(a, b: [M][N]double) = transpose(zip2(a, b)) |> map(\\c -> scan(\\y (u, v) -> "
     "if u > "
     "v then (y + u) / 2 else v - y / 4, double(1), c)) |> transpose",
     301, 33, 16, "lx=32 parts=16 prefix=lookback", MATH_STANDARD},
    // One pass: a part more than blocks of parts have, of words and of pairs of words;
    // rows; and columns, whose items hold their part, or read it twice.
    {"def f(a: [M * 131 + 5]float) = a |> scan(+, 0.0)", 33, 1, 64,
     "lx=32 share=4 prefix=lookback", MATH_STANDARD},
    {"def f(a: [M * 131]float, b: [M * 131]double) = zip(scan(\\u v -> (u.0 + v.0, "
     "max(u.1, v.1)), (0.0, double(-9)), zip(a, b)), b) |> map(\\u v -> (u.0, u.1 - v))",
     30, 1, 64, "lx=16 share=4 prefix=lookback", MATH_STANDARD},
    {"def f(a: [M][N]int) = a |> map(scan(+, 0))", 3, 4999, 1,
     "lx=32 share=4 prefix=lookback", MATH_STANDARD},
    {"def f(a: [M][N]int) = a |> map(\\r -> let s = scan(+, 0, array(N, \\i -> r[N - 1 - "
     "i])) in array(N, \\i -> s[N - 1 - i]))",
     3, 4999, 1, "lx=32 share=4 prefix=lookback", MATH_STANDARD},
    {"def f(a: [M][N]double) = a |> transpose |> map(\\v -> v |> scan(+, double(0)) |> "
     "map(\\e -> 2 * e)) |> transpose",
     1021, 37, 64, "lx=16 ly=1 parts=64 prefix=lookback", MATH_STANDARD},
    {"def f(a: [M][N]float) = a |> transpose |> map(\\v -> v |> gather(\\i -> M - 1 - i) "
     "|> "
     "scan(+, 0.0) |> gather(\\i -> M - 1 - i)) |> transpose",
     1021, 37, 64, "lx=16 ly=1 parts=64 prefix=lookback", MATH_STANDARD},
    {"def f(a: [M][N]float) = a |> transpose |> map(scan(+, 0.0)) |> transpose", 1021, 37,
     64, "lx=32 ly=1 parts=4 prefix=lookback", MATH_STANDARD},
    // Columns that become rows, which groups copy back in strips: in one pass, in parts,
    // and whole columns in batches.
    {"def f(a: [M][N]float) = a |> transpose |> map(scan(+, 0.0))", 1021, 37, 64,
     "lx=32 ly=1 parts=64 prefix=lookback strip=16", MATH_STANDARD},
    {"def f(a: [M][N]double, b: [M]double) = a |> transpose |> map(\\v -> zip(v, b) |> "
     "map(\\x y -> x * y) |> scan(max, double(-9)) |> map(\\e -> 2 * e))",
     133, 70, 1, "lx=16 ly=1 parts=4 strip=32", MATH_STANDARD},
    {"def f(a: [M][K][N]int) = a |> map(transpose) |> map2(scan(+, 0))", 3, 45, 70,
     "lx=8 strip=32", MATH_STANDARD},
};

static bool is_product(const char *point)
{
    return strstr(point, "mx=") != NULL;
}

static void set_point(const Derivation *derivation, const char *text, Point *point)
{
    char copy[160], *save = NULL;
    Space *space = (Space *)derive_space(derivation);
    snprintf(copy, sizeof copy, "%s", text);
    derive_single(derivation, point);
    if (is_product(text) && !space_set(space, point, "product", "matrix"))
        fail_msg("no matrix units");
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        *value++ = 0;
        if (!space_set(space, point, word, value))
            fail_msg("no %s=%s", word, value);
    }
    if (!space_valid(space, point))
        fail_msg("no point: %s", text);
}

static bool run_point(const Problem *problem, const Derivation *derivation,
                      const Point *point, const ProblemData *data, bool matrix,
                      Arena *arena, Diags *diags, void **raw)
{
    Candidate candidate;
    Buf prelude;
    const Target *target = target_find("cuda");
    prelude = buf_new();
    emit_prelude(&prelude, target, problem->bound);
    assert_true(candidate_make(problem, derivation, point, "c", target,
                               buf_keep(&prelude, arena), arena, &candidate, diags));
    assert_int_equal(matrix, strstr(candidate.job.source, "fw_multiply") != NULL);
    const Space *space = derive_space(derivation);
    const bool strips =
        space_find(space, "strip") >= 0 && space_int(space, point, "strip") > 0;
    assert_int_equal(strips, strstr(candidate.job.source, "strip") != NULL);
    bool ok = emulate_candidate(&candidate, data, arena, raw);
    candidate_release(&candidate);
    return ok;
}

// Sums of that many products of numbers about 1, rounded as their type is after each.
static void compare(const ProblemData *data, void **raw, void **plain, double k)
{
    const int out = data->ninput;
    const RunnerBuffer *b = &data->buffer[out];
    Arena *arena = arena_new();
    double *x = NEW_ARRAY(arena, double, b->count), *y = NEW_ARRAY(arena, double, b->count);
    double unit = b->scalar == S_BF16     ? 0x1p-8
                  : b->scalar == S_HALF   ? 0x1p-11
                  : b->scalar == S_DOUBLE ? 0x1p-53
                                          : 0x1p-24;
    double most = 0, size = 0;
    scalar_unpack(b->scalar, raw[out], b->count, x);
    scalar_unpack(b->scalar, plain[out], b->count, y);
    for (int64_t i = 0; i < b->count; i++) {
        most = fmax(most, fabs(x[i] - y[i]));
        size = fmax(size, fabs(y[i]));
    }
    if (!(size > 0 && most <= 2 * k * unit * fmax(size, k)))
        fail_msg("%g off, of %g, k %g count %lld", most, size, k, (long long)b->count);
    arena_free(arena);
}

// Through NVIDIA's compiler, where it is.
static void compile(const Problem *problem, const Derivation *derivation,
                    const Point *point, Arena *arena, Diags *diags)
{
    Candidate candidate;
    Buf source, cubin, log;
    const Target *target = target_find("cuda");
    source = buf_new();
    cubin = buf_new();
    log = buf_new();
    Nvrtc *nvrtc = nvrtc_open(&log);
    emit_prelude(&source, target, problem->bound);
    assert_true(candidate_make(problem, derivation, point, "c", target, "", arena,
                               &candidate, diags));
    buf_puts(&source, candidate.job.source);
    const bool together = strstr(candidate.job.source, "fw_multiply_together<") != NULL;
    const DeviceText text = {.source = source.text, .options = ""};
    Buf symbols = buf_new();
    if (nvrtc && nvrtc_compile(nvrtc, &text, together ? "sm_90a" : "sm_80", NULL, &cubin,
                               &symbols, &log) != DEV_OK)
        fail_msg("%s", log.text);
    buf_release(&symbols);
    nvrtc_close(nvrtc);
    candidate_release(&candidate);
    buf_release(&source);
    buf_release(&cubin);
    buf_release(&log);
}

// A program on a GPU with matrix units.
typedef struct {
    Arena *arena;
    Diags diags;
    Problem *problem;
    Derivation *derivation;
} OnGpu;

static void gpu_open(OnGpu *g, const char *sizes, const char *text, Math math,
                     const Binding *size, int n)
{
    DeviceModel model;
    DeviceInfo info;
    g->arena = arena_new();
    g->diags = (Diags){.arena = g->arena};
    g->problem = problem_parse("case", arena_printf(g->arena, "size %s\n%s\n", sizes, text),
                               &g->diags);
    if (!g->problem || !problem_bind(g->problem, size, n, &g->diags))
        fail_msg("%s", g->diags.list.at[0].message);
    g->problem->bound->math = math;
    assert_true(device_model_find("nvidia-h200", &model));
    describe_model(&model, &info);
    describe_target("cuda", &info);
    g->derivation = derive_new(g->problem->bound, &info, &g->diags);
    assert_non_null(g->derivation);
}

static void gpu_open_case(OnGpu *g, const Case *c)
{
    const Binding size[] = {{"M", c->m}, {"N", c->n}, {"K", c->k}};
    gpu_open(g, "M, N, K", c->text, c->math, size, 3);
}

static void gpu_close(OnGpu *g)
{
    derive_free(g->derivation);
    problem_free(g->problem);
    arena_free(g->arena);
}

// The kernel of a point; candidate_release it.
static const char *gpu_source(OnGpu *g, const Point *point, Candidate *candidate)
{
    assert_true(candidate_make(g->problem, g->derivation, point, "c", target_find("cuda"),
                               "", g->arena, candidate, &g->diags));
    return candidate->job.source;
}

static bool try_case(const Case *c)
{
    OnGpu g;
    Point point, plain;
    void *raw[8] = {0}, *expected[8] = {0};
    gpu_open_case(&g, c);
    ProblemData *data = data_random(g.problem, 1, g.arena);
    derive_single(g.derivation, &plain);
    space_set(derive_space(g.derivation), &plain, "strip", "0");
    space_set(derive_space(g.derivation), &plain, "prefix", "parts");
    set_point(g.derivation, c->point, &point);
    const bool matrix = is_product(c->point);
    bool ok =
        run_point(g.problem, g.derivation, &plain, data, false, g.arena, &g.diags,
                  expected) &&
        run_point(g.problem, g.derivation, &point, data, matrix, g.arena, &g.diags, raw);
    if (ok)
        compare(data, raw, expected, (double)c->k);
    compile(g.problem, g.derivation, &point, g.arena, &g.diags);
    gpu_close(&g);
    return ok;
}

static void on_host(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(cases); i++)
        if (!try_case(&cases[i]))
            skip();
}

// Products of many sizes, types and layouts, whose points to try first use matrix units.
static const Case products[] = {
    {MM("half", WIDE), 4096, 4096, 4096, "2", MATH_STANDARD},
    {MM("half", WIDE), 4095, 4097, 4099, "2", MATH_STANDARD},
    {MM("bf16", WIDE), 64, 300, 2000, "2", MATH_STANDARD},
    {MM("double", SUM("0")), 1000, 4096, 64, "8", MATH_STANDARD},
    {MM("float", SUM("0")), 512, 512, 512, "4", MATH_FAST},
    {"def f(a: [64][M][K]half, b: [64][K][N]half) = zip(a, b) |> map(\\p -> p.0 |> map(\\r "
     "-> transpose(p.1) |> map(\\c -> zip(r, c) " WIDE ")))",
     512, 512, 512, "2", MATH_STANDARD},
    {"def f(a: [M][K]half, b: [K][N]half, v: [N]half) = a |> map(\\r -> zip(transpose(b), "
     "v) "
     "|> map(\\c -> half(max(0, float(c.1) + (zip(r, c.0) " WIDE ")))))",
     4096, 1024, 512, "2", MATH_STANDARD},
};

static void try_first(const Case *c)
{
    OnGpu g;
    Point first[24];
    gpu_open_case(&g, c);
    const Space *space = derive_space(g.derivation);
    int n = derive_first(g.derivation, first, COUNTOF(first)), units = 0, blocks = 0;
    for (int i = 0; i < n; i++) {
        blocks += strcmp(space_word(space, &first[i], "product"), "blocks") == 0;
        if (strcmp(space_word(space, &first[i], "product"), "matrix") != 0)
            continue;
        units++;
        Candidate candidate;
        assert_non_null(strstr(gpu_source(&g, &first[i], &candidate), "fw_multiply"));
        candidate_release(&candidate);
    }
    assert_true(units >= 4 && blocks >= 2);
    gpu_close(&g);
}

static void first_points(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(products); i++)
        try_first(&products[i]);
}

// Convolutions whose filters are few begin with items that copy nothing and write out the
// rows of a window; what is guarded cannot be copied at all.
static void direct_points(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool guarded;
    } known[] = {
        {"def p(x: [C][N][N]double, f: [8][C][3][3]double) = let w = x |> map(\\q -> q |> "
         "pad2(1, 1, clamp) |> slide2(3, 1)) in f |> map(\\g -> w |> transpose |> "
         "map(transpose) |> map2(\\v -> zip3(v, g) |> join |> join |> reduce(\\s t -> s + "
         "t.0 "
         "* t.1, double(0))))",
         false},
        {"def p(x: [C][N][N]float, f: [8][C][5][5]float) = array3(8, N, N, \\o i j -> "
         "reduce(+, 0.0, array(C, \\c -> reduce(+, 0.0, array(5, \\u -> reduce(+, 0.0, "
         "array(5, \\v -> if i + u >= 2 && i + u < N + 2 && j + v >= 2 && j + v < N + 2 "
         "then "
         "f[o][c][u][v] * x[c][i + u - 2][j + v - 2] else 0.0)))))))",
         true},
    };
    for (int i = 0; i < COUNTOF(known); i++) {
        OnGpu g;
        Point plain;
        gpu_open(&g, "C, N", known[i].text, MATH_STANDARD,
                 (const Binding[]){{"C", 24}, {"N", 1111}}, 2);
        const Space *space = derive_space(g.derivation);
        derive_plain(g.derivation, &plain);
        assert_string_equal(space_word(space, &plain, "product"), "blocks");
        assert_int_equal(space_int(space, &plain, "stage"), 0);
        Candidate candidate;
        const char *source = gpu_source(&g, &plain, &candidate);
        // No index is divided, and inside nothing is asked.
        assert_null(strstr(source, "%"));
        assert_null(strstr(source, "/"));
        candidate_release(&candidate);
        assert_true(space_set(space, &plain, "stage", "8"));
        assert_int_equal(space_valid(space, &plain), !known[i].guarded);
        gpu_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_host),
                                       cmocka_unit_test(first_points),
                                       cmocka_unit_test(direct_points)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
