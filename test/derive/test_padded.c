// SPDX-License-Identifier: Apache-2.0
//
// Tiles whose rows are padded (--extra banks): stencils of several kinds, at odd sizes,
// with work-groups of which a warp spans several rows, against the interpreter.
#include "../problem/bed.h"

#include <string.h>

typedef struct {
    const char *path, *sizes, *point;
} Case;

static const Case cases[] = {
    {"examples/jacobi2d9.fw", "N=37,M=29", "lx=8 ly=4 bx=1 by=1"},
    {"examples/jacobi2d9.fw", "N=64,M=96", "lx=16 ly=2 bx=4 by=1 vec=4"},
    {"examples/gaussian.fw", "N=37,M=29", "lx=4 ly=8 bx=2 by=2 vec=2 border=split"},
    {"examples/blur_mirror.fw", "N=37,M=29", "lx=8 ly=2 bx=2 cx=2 by=2"},
    {"examples/srad2.fw", "N=37,M=29", "lx=16 ly=4 by=2"},
    {"examples/heat3d.fw", "N=19,M=17,K=23", "lx=8 ly=4 lz=2 by=2"},
    {"test/programs/box2d_double.fw", "N=37,M=29", "lx=8 ly=4 bx=2"},
    {"test/programs/star3d_double.fw", "N=11,M=17,K=23", "lx=4 ly=4 lz=2"},
};

static Problem *open_problem(const Case *c, Diags *diags)
{
    Problem *problem = problem_load(c->path, diags);
    assert_non_null(problem->program);
    Binding binding[3];
    int n = 0;
    for (const char *at = c->sizes; at && n < 3; at = strchr(at, ',')) {
        at += *at == ',';
        binding[n++] = (Binding){arena_strndup(diags->arena, at, 1), atoll(at + 2)};
    }
    assert_true(problem_bind(problem, binding, n, diags));
    problem->bound->extra |= 1u << EXTRA_BANKS;
    return problem;
}

static Point point_of(const Derivation *d, const Case *c, Arena *arena)
{
    Point point;
    char *save = NULL;
    derive_plain(d, &point);
    for (char *word = strtok_r(arena_strdup(arena, c->point), " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        *value++ = 0;
        assert_true(space_set(derive_space(d), &point, word, value));
    }
    assert_true(space_set(derive_space(d), &point, "scheme", "padded"));
    assert_true(space_valid(derive_space(d), &point));
    return point;
}

// Whether a tile of the kernel has rows as far apart as banks want it.
static bool has_padded(const Unit *unit)
{
    for (int i = 0; i < unit->kernels.len; i++)
        for (int k = 0; k < unit->kernels.at[i]->locals.len; k++)
            if (unit->kernels.at[i]->locals.at[k]->row)
                return true;
    return false;
}

static void try_case(const Case *c, Bed *bed)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = open_problem(c, &diags);
    assert_non_null(bed_expect(bed, problem, arena, &diags));
    Derivation *derivation = bed_derive(bed, problem, &diags);
    Point point = point_of(derivation, c, arena);
    const Target *target = target_find(runner_device(bed->runner)->target);
    Buf prelude = buf_new();
    emit_prelude(&prelude, target, problem->bound);
    Candidate candidate;
    Trial trial;
    assert_true(candidate_make(problem, derivation, &point, "c", target, prelude.text,
                               arena, &candidate, &diags));
    assert_true(has_padded(candidate.unit));
    assert_true(runner_compute(bed->runner, &candidate.job, &trial, NULL, &diags));
    if (trial.status != TRIAL_OK)
        fail_msg("%s %s: %s", c->path, c->point, trial.log ? trial.log : "");
    trial_release(&trial);
    candidate_release(&candidate);
    buf_release(&prelude);
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
}

static void run_all(const char *device)
{
    Bed bed;
    bed_open(&bed, (RunnerConfig){.device = device, .workers = 1});
    for (int i = 0; i < COUNTOF(cases); i++)
        try_case(&cases[i], &bed);
    bed_close(&bed);
}

static void on_opencl(void **state)
{
    (void)state;
    run_all("opencl:0");
}

static void on_cuda(void **state)
{
    (void)state;
    if (!device_kind("cuda")->count())
        skip();
    run_all("cuda:0");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_opencl),
                                       cmocka_unit_test(on_cuda)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
