// SPDX-License-Identifier: Apache-2.0
//
// Streams of several steps give, bit by bit, what as many sweeps give, and both what the
// interpreter gives: every kind of border, windows of one and two cells of reach, stars and
// boxes, a second array, two grids, whole numbers; two and three dimensions; grids smaller
// and larger than a strip, counts that the steps do not divide; grids that have an inside,
// too, on GPUs. Stages of programs without a time loop, which are kernels like those of one
// step, give what kernels of their own give. On OpenCL; CUDA's text, with its shuffles, on
// the host (emulate.hpp); and on a GPU where there is one. FW_EMULATE=1: all cases on the
// host, not only the quick ones. Some programs are run with every remainder of steps:
// results of a step that have names, arrays that are handed on, steps that fail for what is
// no state. Loops drawn at random follow (loops.h), with what they only read: FW_SEED
// repeats what is printed, FW_CASES draws more; FW_ONLY=drawn_*: only these.

#include "../problem/bed.h"
#include "calibrate/describe.h"
#include "cost/counts.h"
#include "derive/derive_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emulate.h"
#include "loops.h"

typedef struct {
    const char *text; // after the sizes and funs
    int64_t n, m, t;
    const char *steps, *cols;
    bool quick; // on OpenCL and emulated too; PoCL takes 3 s to compile one
    int64_t k;  // the third size, warps of a group, rows of a lane; FLAT: two dimensions,
                // where a group that has warps walks along no rows
    const char *ly, *by;
} Case;

typedef struct {
    const char *name, *value;
} Setting;

static const char head[] =
    "size N, M, T%s\n"
    "fun five(n, w, c, e, s: float): float = 0.11*n + 0.21*w + 0.3*c + 0.17*e + 0.09*s\n"
    "fun next(cell, around: int): int =\n"
    "  if around == 3 || (around == 2 && cell == 1) then 1 else 0\n";

#define STAR "five(p[0][1], p[1][0], p[1][1], p[1][2], p[2][1])"
#define WIDE                                                                               \
    "five(p[0][2] + p[1][2], p[2][0] + p[2][1], p[2][2], p[2][3], p[3][2] - p[4][2])"
#define BOX                                                                                \
    "five(p[0][0] + p[0][3], p[1][4] - p[4][1], p[2][2], p[2][0] + p[4][4], p[3][1])"
#define STAR3                                                                              \
    "five(p[0][1][1] + p[1][0][1], p[1][1][0], p[1][1][1], p[1][1][2], "                   \
    "p[1][2][1] - p[2][1][1])"
#define WIDE3                                                                              \
    "five(p[0][2][2] + p[2][0][2], p[2][2][0] - p[1][2][2], p[2][2][2], "                  \
    "p[2][2][4] + p[2][1][2], p[2][3][2] - p[4][2][2])"
#define BOX3                                                                               \
    "five(p[0][0][0] + p[2][0][1], p[1][2][0] - p[0][1][1], p[1][1][1], "                  \
    "p[1][0][2] - p[2][1][0], p[2][2][2] - p[0][2][1])"
#define FLAT         0, NULL, NULL
#define ONCE         "once" // no time loop, but stages of which a kernel has several
#define STEPS(body)  "def f(x: [N][M]float) = iterate(T, \\a -> " body ", x)"
#define STEPS3(body) "def f(x: [N][M][K]float) = iterate(T, \\a -> " body ", x)"

static const Case cases[] = {
    {STEPS("a |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\p -> " STAR ")"), 37, 29, 4,
     "2", "2", true, FLAT},
    {STEPS("a |> pad2(1, 1, mirror) |> slide2(3, 1) |> map2(\\p -> " STAR ")"), 170, 264, 4,
     "3", "4", false, FLAT},
    {STEPS("a |> pad2(2, 2, mirror) |> slide2(5, 1) |> map2(\\p -> " WIDE ")"), 190, 257, 3,
     "2", "2", false, FLAT},
    {STEPS("a |> pad2(2, 2, 1.5) |> slide2(5, 1) |> map2(\\p -> " BOX ")"), 21, 9, 3, "2",
     "2", false, FLAT},
    {STEPS("a |> pad2(1, 0, wrap) |> slide2(2, 1) |> map2(\\p -> "
           "five(p[0][0], p[1][0], p[1][1], p[0][1], p[1][1]))"),
     19, 13, 7, "3", "2", true, FLAT},
    {STEPS("zip2(array2(N, M, \\i j -> i >= 1 && i <= N - 2 && j >= 1 && j <= M - 2),"
           "     a |> pad2(1, 1, clamp) |> slide2(3, 1))"
           "  |> map2(\\inner p -> if inner then " STAR " else p[1][1])"),
     133, 290, 4, "2", "2", false, FLAT},
    {"def f(x, power: [N][M]float) = iterate(T, \\a -> "
     "  zip2(a |> pad2(1, 1, clamp) |> slide2(3, 1), power)"
     "    |> map2(\\p q -> q + " STAR "), x)",
     170, 220, 3, "2", "2", false, FLAT},
    {"def f(old, now: [N][M]float) = iterate(T, \\u v -> (v, "
     "  zip2(u, v |> pad2(1, 1, 0) |> slide2(3, 1)) |> map2(\\q p -> " STAR " - 0.5*q)),"
     "  (old, now))",
     23, 37, 3, "3", "2", true, FLAT},
    {"def f(old, now, c: [N][M]float) = iterate(T, \\u v w -> (v, "
     "  zip2(u, w, v |> pad2(1, 1, 0) |> slide2(3, 1)) |> map2(\\q k p -> " STAR " - "
     "k*q), w),"
     "  (old, now, c))",
     17, 40, 5, "2", "1", true, FLAT},
    {"def f(x, y, z: [N][M]float) = iterate(T, \\u v w -> (w, u, "
     "  u |> pad2(1, 1, 0) |> slide2(3, 1) |> map2(\\p -> " STAR ")), (x, y, z))",
     9, 10, 2, "1", "1", true, FLAT},
    {"def f(x, y: [N][M]float) = iterate(T, \\u v -> (v, v), (x, y))", 9, 10, 3, "1", "1",
     true, FLAT},
    {"def f(x: [N][M]int) = iterate(T, \\a -> a |> pad2(1, 1, wrap) |> slide2(3, 1)"
     "  |> map2(\\p -> next(p[1][1], reduce(+, 0, join(p)) - p[1][1])), x)",
     11, 20, 3, "2", "2", true, FLAT},
    {"def f(x: [N][M]double) = iterate(T, \\a -> a |> pad2(1, 1, mirror) |> slide2(3, 1)"
     "  |> map2(\\p -> 0.3*p[1][1] + 0.2*p[0][1] - 0.1*p[1][2] + p[2][1]/3), x)",
     19, 33, 4, "2", "2", true, FLAT},
    {"def f(x: [N][M]half) = iterate(T, \\a -> a |> pad2(1, 1, clamp) |> slide2(3, 1)"
     "  |> map2(\\p -> 0.25*p[1][1] + 0.25*p[0][1] + 0.25*p[1][0] + 0.25*p[2][1]), x)",
     90, 130, 4, "2", "4", false, FLAT},
    {STEPS("a |> pad2(1, 1, wrap) |> slide2(3, 1) |> map2(\\p -> " STAR ")"
           "  |> pad2(1, 1, mirror) |> slide2(3, 1) |> map2(\\p -> p[1][1] - 0.1*p[0][2])"),
     23, 31, 4, "2", "2", true, FLAT},
    {"def f(e, h: [N][M]float) = iterate(T, \\x y -> "
     "  let z = zip2(x, y |> pad2(1, 0, 0) |> slide2(2, 1))"
     "    |> map2(\\c w -> c + 0.5*(w[1][1] - w[0][1])) in"
     "  (z, zip2(y, z |> pad2(0, 1, clamp) |> slide2(2, 1))"
     "    |> map2(\\c w -> c - 0.7*(w[0][1] - w[1][0]))), (e, h))",
     25, 33, 5, "2", "2", true, FLAT},
    {STEPS("a |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\p -> " STAR ")"), 37, 29, 5,
     "3", "2", true, 0, "4", "4"},
    {STEPS("a |> pad2(2, 2, wrap) |> slide2(5, 1) |> map2(\\p -> " BOX ")"), 170, 257, 4,
     "2", "4", false, 0, "8", "4"},
    {"def f(old, now: [N][M]float) = iterate(T, \\u v -> (v, "
     "  zip2(u, v |> pad2(1, 1, 0) |> slide2(3, 1)) |> map2(\\q p -> " STAR " - 0.5*q)),"
     "  (old, now))",
     90, 137, 7, "4", "2", false, 0, "8", "2"},
    {"def f(x: [N][M]float, k: float) = (iterate(T, \\a t w n -> let s = sin(t) * w in "
     "  let r = n % 3 in (zip2(a, a |> pad2(1, 1, clamp) |> slide2(3, 1))"
     "    |> map2(\\q p -> s*q + (if r == 0 then " STAR " else p[1][2])), t + 2, w, n - 5),"
     "  (x, 1.0, k, 7))).0",
     37, 29, 7, "3", "2", true, FLAT},
    // The inner loop of a time loop, between other stages of its step.
    {"def f(x: [N][M]float) = iterate(3, \\a -> "
     "  let b = a |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\p -> " STAR ") in"
     "  let c = iterate(T, \\q -> zip2(q |> pad2(1, 1, 0) |> slide2(3, 1), b)"
     "    |> map2(\\p e -> e - " STAR "), map2(\\e -> 0.5 * e, b)) in"
     "  zip2(a, c |> pad2(1, 1, wrap) |> slide2(3, 1))"
     "    |> map2(\\e p -> e - 0.5 * (p[1][2] - p[0][1])), x)",
     23, 37, 5, "3", "2", true, FLAT},
    {STEPS3("a |> pad3(1, 1, clamp) |> slide3(3, 1) |> map3(\\p -> " STAR3 ")"), 7, 9, 3,
     "2", "2", true, 13, "4", "2"},
    {STEPS3("a |> pad3(1, 1, mirror) |> slide3(3, 1) |> map3(\\p -> " BOX3 ")"), 11, 13, 2,
     "2", "1", true, 5, "4", "2"},
    {STEPS3("a |> pad3(1, 1, clamp) |> slide3(3, 1) |> map3(\\p -> " STAR3 ")"), 90, 67, 5,
     "3", "4", false, 261, "8", "4"},
    {STEPS3("a |> pad3(2, 2, mirror) |> slide3(5, 1) |> map3(\\p -> " WIDE3 ")"), 40, 51, 4,
     "2", "2", false, 133, "8", "2"},
    {STEPS3("a |> pad3(1, 1, 0.5) |> slide3(3, 1) |> map3(\\p -> " BOX3 ")"), 33, 57, 4,
     "2", "2", false, 141, "8", "2"},
    {STEPS3("a |> pad3(1, 1, wrap) |> slide3(3, 1) |> map3(\\p -> " STAR3 ")"), 33, 57, 4,
     "2", "2", false, 141, "4", "4"},
    {"def f(old, now: [N][M][K]float) = iterate(T, \\u v -> (v, "
     "  zip3(u, v |> pad3(1, 1, 0) |> slide3(3, 1)) |> map3(\\q p -> " STAR3 " - 0.5*q)),"
     "  (old, now))",
     33, 57, 3, "3", "1", false, 75, "8", "2"},
    {"def f(x: [N][M][K]float, c: [100]int) = let r = iterate(T, \\n a -> (n + 1, "
     "array3(N, "
     "M, K, \\i j k -> let p = pad3(1, 1, clamp, a) in 0.3*p[i][j+1][k+1] + "
     "0.2*p[i+1][j][k+1]"
     " - 0.1*p[i+1][j+1][k+2] + (if (i + n) % 2 == 0 then float(c[n]) else 0.25))), (3, "
     "x)) in"
     "  (r.1, r.0)",
     7, 9, 5, "2", "2", true, 13, "4", "2"},
    {"def f(x: [N][M]float) ="
     "  let a = x |> pad2(2, 2, clamp) |> slide2(5, 1) |> map2(\\p -> " WIDE ") in"
     "  let b = a |> map2(\\e -> 0.5*e) in"
     "  b |> pad2(1, 1, mirror) |> slide2(3, 1) |> map2(\\p -> " STAR ")",
     23, 70, 1, ONCE, "2", true, FLAT},
    {"def f(x, y: [N][M]float) ="
     "  let a = x |> pad2(1, 0, wrap) |> slide2(2, 1) |> map2(\\p -> p[0][0] - 2*p[1][1]) "
     "in"
     "  let b = zip2(a |> pad2(1, 1, 0.5) |> slide2(3, 1), y) |> map2(\\p e -> e * " STAR
     ") in"
     "  (b, b |> pad2(0, 0, 1, 1, clamp) |> slide2(1, 1, 3, 1) |> map2(\\p -> p[0][0] + "
     "p[0][2]))",
     31, 45, 1, ONCE, "1", true, FLAT},
    {"def f(x: [N][M][K]double) ="
     "  let a = x |> pad3(1, 1, clamp) |> slide3(3, 1) |> map3(\\p -> p[0][1][1] + "
     "p[1][2][1]"
     "    - p[1][1][0]) in"
     "  a |> pad3(1, 1, wrap) |> slide3(3, 1) |> map3(\\p -> p[1][0][1] + p[2][1][2])",
     19, 17, 1, ONCE, "1", true, 40, "8", "2"},
};

typedef struct {
    Runner *runner;
    ProblemData *data;
    const Target *target;
    Problem *problem;
    Derivation *derivation;
    Arena *arena;
    Diags *diags;
} Run;

// The plain point; where warps walk, with the cover of fewest kernels that has such ones;
// where they do several steps, as these need it, even if it is not plain.
static void first_point(Run *r, const char *way, Point *point)
{
    const Space *space = derive_space(r->derivation);
    if (strcmp(way, "scheme") == 0 && pass_first(r->derivation, point, 1))
        return;
    derive_plain(r->derivation, point);
    if (strcmp(way, "fuse") == 0) {
        cover_apart(r->derivation, point);
        if (space_find(space, "border") >= 0)
            assert_true(space_set(space, point, "border", "inline"));
    }
}

// That point but for what is set.
static void make_candidate(Run *r, const Setting *set, int nset, Candidate *candidate)
{
    Point point;
    Buf prelude;
    first_point(r, nset > 1 ? set[1].name : "", &point);
    for (int i = 0; i < nset; i++)
        assert_true(
            space_set(derive_space(r->derivation), &point, set[i].name, set[i].value));
    assert_true(space_valid(derive_space(r->derivation), &point));
    prelude = buf_new();
    emit_prelude(&prelude, r->target, r->problem->bound);
    assert_true(candidate_make(r->problem, r->derivation, &point, "c", r->target,
                               buf_keep(&prelude, r->arena), r->arena, candidate,
                               r->diags));
}

// Output bytes at a point, checked against the interpreter; sets how many kernels it has.
static void run_point(Run *r, const Setting *set, int nset, void **raw, int *launches)
{
    Candidate candidate;
    Trial trial = {0};
    make_candidate(r, set, nset, &candidate);
    *launches = candidate.job.nlaunch;
    // A compiler that may contract a*b + c does so here in one kernel and not in another.
    if (r->target == target_find("cuda"))
        candidate.job.options = "-fmad=false";
    assert_true(runner_compute(r->runner, &candidate.job, &trial, raw, r->diags));
    if (trial.status != TRIAL_OK)
        fail_msg("%s: %s", trial_status_name[trial.status], trial.log ? trial.log : "");
    trial_release(&trial);
    candidate_release(&candidate);
}

enum { SETTINGS = 8 };

static int draw_settings(Run *r, const Case *c, const char *lanes, Setting *set);

// What a case sets of a point; returns how many.
static int case_settings(Run *r, const Case *c, const char *lanes, Setting *set)
{
    if (!c->cols)
        return draw_settings(r, c, lanes, set);
    bool once = strcmp(c->steps, ONCE) == 0;
    const Setting all[SETTINGS] = {{"lx", strcmp(lanes, "0") == 0 ? "1" : lanes},
                                   {once ? "scheme" : "fuse", once ? "stream" : c->steps},
                                   {"ly", c->ly ? c->ly : "1"},
                                   {"cols", c->cols},
                                   {"by", c->by},
                                   {"rows", "1"}};
    memcpy(set, all, sizeof all);
    return c->k ? 5 : c->ly ? 6 : 4;
}

static void compare_outputs(const ProblemData *data, void **a, void **b)
{
    for (int k = data->ninput; k < data->ninput + data->noutput; k++)
        assert_memory_equal(a[k], b[k],
                            (size_t)data->buffer[k].count *
                                scalar_device_bytes(data->buffer[k].scalar));
}

static void compare_points(Run *r, const Case *c)
{
    void **sweeps = data_outputs(r->data, r->arena);
    void **stream = data_outputs(r->data, r->arena);
    int many, few;
    run_point(r, NULL, 0, sweeps, &many);
    char lanes[16];
    snprintf(lanes, sizeof lanes, "%d", runner_device(r->runner)->lanes);
    Setting set[SETTINGS];
    int n = case_settings(r, c, lanes, set);
    run_point(r, set, n, stream, &few);
    assert_true(n == 0 || few <= many);
    compare_outputs(r->data, sweeps, stream);
}

static Problem *case_problem(const Case *c, Diags *diags)
{
    char text[2048];
    size_t n = (size_t)snprintf(text, sizeof text, head, c->k ? ", K" : "");
    snprintf(text + n, sizeof text - n, "%s\n", c->text);
    Problem *problem = problem_parse("case", text, diags);
    const Binding size[] = {{"N", c->n}, {"M", MAX(c->m, 1)}, {"T", c->t}, {"K", c->k}};
    if (!problem || !problem_bind(problem, size, c->k ? 4 : 3, diags))
        fail_msg("%s", diags->list.at[0].message);
    return problem;
}

// A step multiplies what rounding did before it, of halfs beyond what one tolerance allows
// for all elements: these have bounds of their own.
static ProblemData *expect_halfs(Bed *bed, const Problem *problem, Arena *arena,
                                 Diags *diags)
{
    ProblemData *data = data_random(problem, 1, arena);
    Workplace place = {.folder = bed->folder};
    const char *how;
    return reference_compute(problem, data, "host", &place, arena, &how, diags) &&
                   bed_fill(bed, data, diags)
               ? data
               : NULL;
}

static void try_case(const Case *c, Bed *bed)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = case_problem(c, &diags);
    ProblemData *data = strstr(c->text, "half") ? expect_halfs(bed, problem, arena, &diags)
                                                : bed_expect(bed, problem, arena, &diags);
    assert_non_null(data);
    Run r = {bed->runner, data, NULL, problem, NULL, arena, &diags};
    r.target = target_find(runner_device(r.runner)->target);
    r.derivation = bed_derive(bed, problem, &diags);
    compare_points(&r, c);
    derive_free(r.derivation);
    problem_free(problem);
    arena_free(arena);
}

// Where lanes shuffle, stages are kernels of warps that walk, and groups may walk along
// nothing. device: NULL before a first case has opened it.
static bool can_do(const Case *c, const DeviceInfo *device)
{
    bool standing = c->ly && !c->k;
    return (device && device->shuffle) || (!standing && strcmp(c->steps, ONCE) != 0);
}

static void try_cases(const char *device, bool all)
{
    Bed bed;
    bed_open(&bed, (RunnerConfig){.device = device,
                                  .workers = 1,
                                  .samples = 1,
                                  .run_limit_s = 200,
                                  .build_limit_s = 120});
    for (int i = 0; i < COUNTOF(cases); i++)
        if ((all || cases[i].quick) &&
            can_do(&cases[i], bed.runner ? runner_device(bed.runner) : NULL))
            try_case(&cases[i], &bed);
    bed_close(&bed);
}

static void on_opencl(void **state)
{
    (void)state;
    try_cases("opencl:0", false);
}

// CUDA on the host ---------------------------------------------------------------------

// The outputs of a point, run so.
static bool emulate_point(Run *r, const Setting *set, int nset, void **raw)
{
    Candidate candidate;
    make_candidate(r, set, nset, &candidate);
    double counted[PROPERTIES];
    FeatureSetting setting = {NULL, r->problem->binding, r->problem->nbinding};
    assert_true(counts_numbers(candidate.unit, &setting, counted)); // as models ask
    bool ok = emulate_candidate(&candidate, r->data, r->arena, raw);
    candidate_release(&candidate);
    return ok;
}

static bool emulate_case(const Case *c)
{
    Arena *arena = arena_new();
    Diags diags;
    DeviceModel model;
    DeviceInfo info;
    diags = (Diags){.arena = arena};
    Problem *problem = case_problem(c, &diags);
    ProblemData *data = data_new(problem, problem_inputs(problem, 1, arena), arena);
    assert_true(device_model_find("nvidia-h200", &model));
    describe_model(&model, &info);
    describe_target("cuda", &info);
    Run r = {NULL, data, target_find("cuda"), problem, NULL, arena, &diags};
    r.derivation = derive_new(problem->bound, &info, &diags);
    assert_non_null(r.derivation);
    void *sweeps[8] = {0}, *stream[8] = {0};
    Setting set[SETTINGS];
    bool ok = emulate_point(&r, NULL, 0, sweeps) &&
              emulate_point(&r, set, case_settings(&r, c, "32", set), stream);
    if (ok)
        compare_outputs(data, sweeps, stream);
    derive_free(r.derivation);
    problem_free(problem);
    arena_free(arena);
    return ok;
}

static void on_host(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(cases); i++)
        if ((cases[i].quick || getenv("FW_EMULATE")) && !strstr(cases[i].text, "half") &&
            !emulate_case(&cases[i]))
            skip();
}

// Every remainder ------------------------------------------------------------------------

// Results of a step that have names, one of which no other reads; arrays that are
// handed on, one twice; and what divides by a difference of neighbours and looks up a sum
// of them, neither of which is right for cells that are not neighbours; numbers that count.
static const char *const remaining[] = {
    "def f(e, h, c: [N][M]float) = iterate(T, \\x y -> "
    "  let z = zip2(x, c, y |> pad2(1, 0, 0) |> slide2(2, 1))"
    "    |> map2(\\c k w -> c + k*(w[1][1] - w[0][1])) in"
    "  let y1 = zip2(y, z |> pad2(0, 1, clamp) |> slide2(2, 1))"
    "    |> map2(\\c w -> c - 0.7*(w[0][1] - w[1][0])) in (z, y1), (e, h))",
    "def f(x, y, z: [N][M]float) = iterate(T, \\u v w -> (v, v, "
    "  w |> pad2(1, 1, 0) |> slide2(3, 1) |> map2(\\p -> " STAR ")), (x, y, z))",
    "def f(x: [N][M]int, table: [97]int) = iterate(T, \\u v -> (u |> map2(\\e -> e + 1),"
    "  zip2(u |> pad2(1, 1, clamp) |> slide2(3, 1), v |> pad2(1, 1, mirror) |> slide2(3, "
    "1))"
    "    |> map2(\\d p -> (table[p[0][1] + p[1][2]] + 999/(d[1][2] - d[1][0]) +"
    "      p[1][1] % (d[2][1] - d[0][1])) % 49)),"
    "  (array2(N, M, \\i j -> 3*i + 5*j), x |> map2(\\e -> e % 49)))",
    "def f(x: [N][M]int) = iterate(T, \\a n u -> (zip2(a, a |> pad2(1, 1, wrap) |> "
    "slide2(3, "
    "1)) |> map2(\\q p -> p[0][1] - q * n + int(u) % 7), n + 2, u + 4000000000), (x, -3, "
    "uint(9)))",
};

static void each_remainder(bool one(const Case *c, void *user), const char *cols,
                           void *user)
{
    static const char *const steps[] = {"2", "3"};
    for (int i = 0; i < COUNTOF(remaining); i++)
        for (int k = 0; k < 2 * COUNTOF(steps); k++) {
            Case c = {remaining[i], 41, 70, 4 + k / 2, steps[k % 2], cols, true, FLAT};
            if (!one(&c, user))
                skip();
        }
}

static bool emulate_remainder(const Case *c, void *none)
{
    (void)none;
    return emulate_case(c);
}

static void remainders_on_host(void **state)
{
    (void)state;
    each_remainder(emulate_remainder, "2", NULL);
}

static bool try_remainder(const Case *c, void *bed)
{
    try_case(c, bed);
    return true;
}

static void remainders_in_rows(void **state)
{
    (void)state;
    Bed bed;
    bed_open(&bed, (RunnerConfig){.device = "host", .workers = 1, .samples = 1});
    each_remainder(try_remainder, "64", &bed);
    bed_close(&bed);
}

// Loops drawn at random -----------------------------------------------------------------

static const char *pick(const char *const *of, int n)
{
    return of[draw(n)];
}

// Any valid point of several steps.
static int draw_settings(Run *r, const Case *c, const char *lanes, Setting *set)
{
    bool once = c->steps;
    static const char *const
        steps[] = {"2", "3", "4", "6"},
        *const cols[] = {"1", "2", "3", "4", "5", "6"},
        *const relay[] = {"1", "2", "2", "4"}, *const ly[] = {"2", "3", "4",  "5",
                                                              "6", "8", "12", "16"},
        *const by[] = {"1", "2", "3", "4", "5", "7"},
        *const early[] = {"next", "all", "all"}, *const wide[] = {"64", "128", "256"};
    bool in_rows = strcmp(lanes, "0") == 0;
    for (int t = 0; t < 1000; t++) {
        Point point;
        bool flat = c->m && !c->k && !once && !in_rows && draw(3) == 0;
        bool lines = c->k || flat;
        const Setting all[] = {{"lx", in_rows ? "1" : lanes},
                               {once ? "scheme" : "fuse", once ? "stream" : pick(steps, 4)},
                               {"cols", in_rows ? pick(wide, 3) : pick(cols, 6)},
                               {"ly", lines ? pick(ly, 8) : "1"},
                               {"by", lines ? pick(by, 6) : "1"},
                               {"relay", c->m && !lines ? pick(relay, 4) : "1"},
                               {"early", flat ? "next" : pick(early, 3)},
                               {"rows", flat ? "1" : "16"}};
        bool ok = true;
        first_point(r, all[1].name, &point);
        int n = 0;
        for (int i = 0; ok && i < COUNTOF(all); i++)
            if (i < 3 || space_find(derive_space(r->derivation), all[i].name) >= 0) {
                set[n++] = all[i];
                ok = space_set(derive_space(r->derivation), &point, all[i].name,
                               all[i].value);
            }
        if (ok && space_valid(derive_space(r->derivation), &point))
            return n;
    }
    print_message("the space has no such point\n"); // code would be too long
    return 0;
}

static void draw_case(Case *c, Arena *arena)
{
    static const char *const border[] = {"clamp", "mirror", "wrap", "0.5", "keep", "sides"},
                             *const type[] = {"float", "double", "half", "int"};
    Drawn d = {1 + draw(3),     1 + draw(4), 1 + draw(2), type[draw(4)],
               border[draw(6)], false,       false,       draw(3) == 0};
    bool once = draw(3) == 0, named = !once && draw(2);
    d.counts &= !once && !named;
    if (named) { // few, for each has windows of its own
        d.arrays = 1 + draw(3);
        d.reach = 1 + draw(2);
    }
    d.divides = is_whole(&d) && !once && draw(2);
    if (is_whole(&d) && strcmp(d.border, "0.5") == 0)
        d.border = "7";
    d.field = !once && draw(2);
    if (d.dims == 3 && !getenv("FW_CASES")) // wide ones take a minute to compile
        d.reach = 1;
    Buf text = buf_new();
    if (once)
        put_stages(&text, &d);
    else if (named)
        put_named(&text, &d, arena);
    else
        put_loop(&text, &d, arena);
    int steps = 2 + draw(6);
    *c = (Case){.text = buf_keep(&text, arena), .t = steps, .steps = once ? ONCE : NULL};
    bool large = d.dims == 2 && draw(3) == 0; // with strips and rows that no border is near
    c->n = 2 * d.reach + 1 + draw(d.dims == 1 ? 300 : large ? 400 : d.dims == 2 ? 60 : 20);
    c->m = d.dims < 2 ? 0 : 2 * d.reach + 1 + draw(large ? 600 : d.dims == 2 ? 150 : 20);
    c->k = d.dims < 3 ? 0 : 2 * d.reach + 1 + draw(70);
}

// device: NULL: CUDA on the host.
static void drawn(const char *device, int n)
{
    const char *seed = getenv("FW_SEED"), *more = getenv("FW_CASES");
    unsigned first = seed ? (unsigned)atoi(seed) : (unsigned)time(NULL) % 1000000;
    Arena *arena = arena_new();
    Bed bed;
    if (device)
        bed_open(&bed, (RunnerConfig){.device = device,
                                      .workers = 1,
                                      .samples = 1,
                                      .run_limit_s = 200,
                                      .build_limit_s = 120});
    for (int i = 0; i < (more ? atoi(more) : n); i++) {
        Case c;
        srand(first + (unsigned)i);
        draw_case(&c, arena);
        print_message("FW_SEED=%u N=%d M=%d K=%d T=%d %s", first + (unsigned)i, (int)c.n,
                      (int)c.m, (int)c.k, (int)c.t, c.text);
        if (!device)
            emulate_case(&c);
        else if (strcmp(device, "host") == 0 || !strstr(c.text, "half")) // PoCL has none
            try_case(&c, &bed);
    }
    if (device)
        bed_close(&bed);
    arena_free(arena);
}

static void drawn_on_opencl(void **state)
{
    (void)state;
    drawn("opencl:0", 2);
}

// As a processor does several steps: in rows that stay in cache.
static void drawn_in_rows(void **state)
{
    (void)state;
    drawn("host", 6);
}

static void drawn_on_host(void **state)
{
    (void)state;
    drawn(NULL, 3);
}

static void on_gpu(void **state)
{
    (void)state;
    if (device_kind("cuda")->count() == 0)
        skip();
    try_cases("cuda:0", true);
}

// Steps that magnify what rounding does need room, others have what all have; also those
// that count what is chaos, exactly, and those of zeros and infinities, which are no less
// so for being nudged.
static const struct {
    const char *name, *text; // text NULL: of that file
    bool magnifies, zeros;   // some inputs 0, some infinite
} rounded[] = {
    {"examples/an5d/gradient2d_steps.fw", NULL, true, false},
    {"examples/an5d/j2d5pt.fw", NULL, false, false},
    {"counts",
     "size N, M, T\n"
     "def f(x: [N]float, c: [N]int) = iterate(T, \\a n -> (a |> map(\\v -> 3.9*v*(1 - "
     "v)),\n"
     "  zip(a, n) |> map(\\v k -> if v > 0.5 then k + 1 else k)), (x, c))\n",
     true, false},
    {"shortest",
     "size N, M, T\n"
     "def f(x: [N]float) = iterate(T, \\a -> a |> pad(1, 1, 0.0) |> slide(3, 1)\n"
     "  |> map(\\p -> if p[1] == 0.0 then 0.0 else min(p[0], p[2]) + 1.0), x)\n",
     false, true},
};

// The widest bound of an element, in parts of its size; infinite: one is undecided.
static double widest_bound(const ProblemData *data)
{
    double widest = 0;
    for (int k = data->ninput; k < data->nbuffer; k++) {
        const RunnerBuffer *b = &data->buffer[k];
        const float *expect = b->expect;
        for (int64_t i = 0; i < b->count && b->scalar == S_FLOAT; i++)
            if (isfinite(expect[i]))
                widest = fmax(widest, b->bound[i] / fmax(fabs(expect[i]), 0.1));
    }
    return widest;
}

static void round_one(int i, const Workplace *place)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = rounded[i].text
                           ? problem_parse(rounded[i].name, rounded[i].text, &diags)
                           : problem_load(rounded[i].name, &diags);
    assert_non_null(problem);
    const Binding size[] = {{"N", 300}, {"M", 200}, {"T", 24}};
    assert_true(problem_bind(problem, size, COUNTOF(size), &diags));
    ProblemData *data = data_random(problem, 1, arena);
    float *x = (float *)(uintptr_t)data->buffer[0].init;
    for (int k = 0; k < 100 && rounded[i].zeros; k++)
        x[k] = k % 2 ? INFINITY : 0;
    double usual = data->tolerance;
    const char *how;
    if (!reference_compute(problem, data, "host", place, arena, &how, &diags))
        fail_msg("%s: %s", rounded[i].name, diags.list.at[0].message);
    double widest = widest_bound(data);
    if (rounded[i].magnifies ? widest <= 2 * usual : widest > usual)
        fail_msg("%s: %g, not %g", rounded[i].name, widest, usual);
    problem_free(problem);
    arena_free(arena);
}

static void rounding(void **state)
{
    (void)state;
    Bed bed;
    bed_open(&bed, (RunnerConfig){0});
    Workplace place = {.folder = bed.folder};
    for (int i = 0; i < COUNTOF(rounded); i++)
        round_one(i, &place);
    bed_close(&bed);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    if (getenv("FW_ONLY")) // a name, with *
        cmocka_set_test_filter(getenv("FW_ONLY"));
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_opencl),
                                       cmocka_unit_test(on_host),
                                       cmocka_unit_test(drawn_on_opencl),
                                       cmocka_unit_test(drawn_on_host),
                                       cmocka_unit_test(drawn_in_rows),
                                       cmocka_unit_test(on_gpu),
                                       cmocka_unit_test(remainders_on_host),
                                       cmocka_unit_test(remainders_in_rows),
                                       cmocka_unit_test(rounding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
