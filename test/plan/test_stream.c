// SPDX-License-Identifier: Apache-2.0
//
// Streams of several steps give, bit by bit, what as many sweeps give, and both what the
// interpreter gives: every kind of border, windows of one and two cells of reach, stars and
// boxes, a second array, two grids, whole numbers; grids smaller and larger than a strip,
// counts that the steps do not divide; grids that have an inside, too, on GPUs. On OpenCL,
// and on a GPU where there is one.

#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *text; // after the sizes and funs
    int64_t n, m, t;
    const char *steps, *cols;
    bool quick; // on OpenCL too, where PoCL takes 3 s to compile one
} Case;

typedef struct {
    const char *name, *value;
} Setting;

static const char head[] =
    "size N, M, T\n"
    "fun five(n, w, c, e, s: float): float = 0.11*n + 0.21*w + 0.3*c + 0.17*e + 0.09*s\n"
    "fun next(cell, around: int): int =\n"
    "  if around == 3 || (around == 2 && cell == 1) then 1 else 0\n";

#define STAR "five(p[0][1], p[1][0], p[1][1], p[1][2], p[2][1])"
#define WIDE                                                                               \
    "five(p[0][2] + p[1][2], p[2][0] + p[2][1], p[2][2], p[2][3], p[3][2] - p[4][2])"
#define BOX                                                                                \
    "five(p[0][0] + p[0][3], p[1][4] - p[4][1], p[2][2], p[2][0] + p[4][4], p[3][1])"
#define STEPS(body) "def f(x: [N][M]float) = iterate(T, \\a -> " body ", x)"

static const Case cases[] = {
    {STEPS("a |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\p -> " STAR ")"), 37, 29, 4,
     "2", "2", true},
    {STEPS("a |> pad2(1, 1, mirror) |> slide2(3, 1) |> map2(\\p -> " STAR ")"), 170, 264, 4,
     "3", "4", false},
    {STEPS("a |> pad2(2, 2, mirror) |> slide2(5, 1) |> map2(\\p -> " WIDE ")"), 190, 257, 3,
     "2", "2", false},
    {STEPS("a |> pad2(2, 2, 1.5) |> slide2(5, 1) |> map2(\\p -> " BOX ")"), 21, 9, 3, "2",
     "2", false},
    {STEPS("a |> pad2(1, 0, wrap) |> slide2(2, 1) |> map2(\\p -> "
           "five(p[0][0], p[1][0], p[1][1], p[0][1], p[1][1]))"),
     19, 13, 7, "3", "2", true},
    {STEPS("zip2(array2(N, M, \\i j -> i >= 1 && i <= N - 2 && j >= 1 && j <= M - 2),"
           "     a |> pad2(1, 1, clamp) |> slide2(3, 1))"
           "  |> map2(\\inner p -> if inner then " STAR " else p[1][1])"),
     133, 290, 4, "2", "2", false},
    {"def f(x, power: [N][M]float) = iterate(T, \\a -> "
     "  zip2(a |> pad2(1, 1, clamp) |> slide2(3, 1), power)"
     "    |> map2(\\p q -> q + " STAR "), x)",
     170, 220, 3, "2", "2", false},
    {"def f(old, now: [N][M]float) = iterate(T, \\u v -> (v, "
     "  zip2(u, v |> pad2(1, 1, 0) |> slide2(3, 1)) |> map2(\\q p -> " STAR " - 0.5*q)),"
     "  (old, now))",
     23, 37, 3, "3", "2", true},
    {"def f(x: [N][M]int) = iterate(T, \\a -> a |> pad2(1, 1, wrap) |> slide2(3, 1)"
     "  |> map2(\\p -> next(p[1][1], reduce(+, 0, join(p)) - p[1][1])), x)",
     11, 20, 3, "2", "2", true},
};

typedef struct {
    Rig *rig;
    ProblemData *data;
    const Target *target;
    Problem *problem;
    Derivation *derivation;
    Arena *arena;
    Diags *diags;
} Run;

// Output bytes at a point, checked against the interpreter; sets how many kernels it has.
static void run_point(Run *r, const Setting *set, int nset, void **raw, int *launches)
{
    Point point;
    Candidate candidate;
    Trial trial = {0};
    Buf prelude;
    derive_plain(r->derivation, &point);
    for (int i = 0; i < nset; i++)
        assert_true(
            space_set(derive_space(r->derivation), &point, set[i].name, set[i].value));
    assert_true(space_valid(derive_space(r->derivation), &point));
    buf_init(&prelude);
    emit_prelude(&prelude, r->target, r->problem->bound);
    assert_true(candidate_make(r->problem, r->derivation, &point, "c", r->target,
                               prelude.text, r->arena, &candidate, r->diags));
    *launches = candidate.job.nlaunch;
    for (int k = 0; k < r->data->noutput; k++)
        raw[r->data->ninput + k] =
            arena_alloc(r->arena, (size_t)r->data->expect->count[k] *
                                      scalar_device_bytes(r->data->expect->scalar[k]));
    assert_true(rig_run_one(r->rig, &candidate.job, 1, &trial, raw, r->diags));
    if (trial.status != TRIAL_OK)
        fail_msg("%s: %s", trial_status_name[trial.status], trial.log ? trial.log : "");
    trial_release(&trial);
    candidate_release(&candidate);
    buf_release(&prelude);
}

static void compare_points(Run *r, const Case *c)
{
    void *sweeps[8] = {0}, *stream[8] = {0};
    int many, few;
    run_point(r, NULL, 0, sweeps, &many);
    char lanes[16];
    snprintf(lanes, sizeof lanes, "%d", rig_device(r->rig)->lanes);
    const Setting set[] = {
        {"lx", lanes}, {"ly", "1"}, {"fuse", c->steps}, {"cols", c->cols}};
    run_point(r, set, COUNTOF(set), stream, &few);
    assert_true(few < many);
    for (int k = 0; k < r->data->noutput; k++)
        assert_memory_equal(sweeps[r->data->ninput + k], stream[r->data->ninput + k],
                            (size_t)r->data->expect->count[k] *
                                scalar_device_bytes(r->data->expect->scalar[k]));
}

static void try_case(const Case *c, const char *device)
{
    Arena *arena = arena_new();
    Diags diags;
    diags_init(&diags, arena);
    char text[2048];
    snprintf(text, sizeof text, "%s%s\n", head, c->text);
    Problem *problem = problem_parse("case", text, &diags);
    const Binding size[] = {{"N", c->n}, {"M", c->m}, {"T", c->t}};
    if (!problem || !problem_bind(problem, size, 3, &diags))
        fail_msg("%s", diags.list.at[0].message);
    Value **inputs = problem_inputs(problem, 1, arena), *expect;
    ProblemData *data = data_new(problem, inputs, arena);
    assert_true(ir_eval(problem->bound, inputs, arena, &expect, 0, &diags));
    data_expect(data, expect, arena);
    RigConfig config = {.device = device,
                        .folder = "/tmp/forewarp-test",
                        .nbuffer = data->ninput + data->noutput,
                        .buffer = data->buffer,
                        .tolerance = 1e-4,
                        .run_limit_s = 200,
                        .build_limit_s = 120};
    Run r = {rig_open(&config, &diags), data, NULL, problem, NULL, arena, &diags};
    assert_non_null(r.rig);
    r.target = target_find(rig_device(r.rig)->target);
    DeviceInfo info = *rig_device(r.rig);
    info.is_cpu = false; // the whole space, whatever the device
    r.derivation = derive_new(problem->bound, &info, &diags);
    assert_non_null(r.derivation);
    compare_points(&r, c);
    derive_free(r.derivation);
    rig_close(r.rig);
    problem_free(problem);
    arena_free(arena);
}

static void on_opencl(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(cases); i++)
        if (cases[i].quick)
            try_case(&cases[i], "opencl:0");
}

static void on_gpu(void **state)
{
    (void)state;
    if (device_kind("cuda")->count() == 0)
        skip();
    for (int i = 0; i < COUNTOF(cases); i++)
        try_case(&cases[i], "cuda:0");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_opencl),
                                       cmocka_unit_test(on_gpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
