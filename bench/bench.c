// SPDX-License-Identifier: Apache-2.0
//
// The performance tables, as ratios within one run (make bench):
//   compile   parse + check + lower + emit of one candidate, a core
//   stencil   jacobi2d tuned on opencl:0 against the plain kernel, the same stencil in C
//   with
//             OpenMP, and a copy
// Arguments: seconds of search a size (30), then the sizes (2048 4096).

#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Compile --------------------------------------------------------------------------------

static const Binding square[] = {{"N", 4096}, {"M", 4096}};

static Problem *bound_problem(const char *text, Diags *diags)
{
    Problem *problem = problem_parse("jacobi2d", text, diags);
    return problem && problem_bind(problem, square, 2, diags) ? problem : NULL;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Parses and checks the text anew, then derives, lowers and emits one random point.
static bool one_candidate(const char *text, const Derivation *derivation, Problem *problem,
                          Rng *rng, Arena *arena, Diags *diags)
{
    Problem *again = bound_problem(text, diags);
    Point point;
    Candidate candidate;
    Buf prelude = buf_new();
    const Target *target = target_find("opencl");
    space_sample(derive_space(derivation), rng, &point);
    ArithMark mark = arith_mark(problem->ir->arith);
    ArenaMark exprs = arena_mark(problem->ir->arena), units = arena_mark(arena);
    emit_prelude(&prelude, target, problem->bound);
    bool ok = again && candidate_make(problem, derivation, &point, "j", target,
                                      prelude.text, arena, &candidate, diags);
    if (ok)
        candidate_release(&candidate);
    arena_reset(arena, units);
    arena_reset(problem->ir->arena, exprs);
    arith_release(problem->ir->arith, mark);
    buf_release(&prelude);
    problem_free(again);
    return ok;
}

static bool bench_compile(void)
{
    enum { CANDIDATES = 2000 };
    Buf text = buf_new();
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    DeviceInfo device = {
        .max_group = 1024, .max_item = {1024, 1024, 64}, .local_bytes = 49152, .warp = 32};
    bool ok = file_read("examples/jacobi2d.fw", FILE_TEXT_MOST, &text);
    Problem *problem = ok ? bound_problem(text.text, &diags) : NULL;
    Derivation *derivation = problem ? derive_new(problem->bound, &device, &diags) : NULL;
    Rng rng = rng_new(1);
    double start = cpu_s();
    for (int i = 0; i < CANDIDATES && derivation && ok; i++)
        ok = one_candidate(text.text, derivation, problem, &rng, arena, &diags);
    double ms = 1e3 * (cpu_s() - start) / CANDIDATES;
    printf("compile   jacobi2d 4096 x 4096, text to kernel: %.3f ms a candidate, "
           "%.0f candidates a second on one core\n",
           ms, 1e3 / ms);
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
    buf_release(&text);
    return ok && ms > 0;
}

// Stencil
// ------------------------------------------------------------------------------------

static void stencil_openmp(const float *restrict a, float *restrict out, long n)
{
#pragma omp parallel for
    for (long y = 0; y < n; y++) {
        const float *up = a + (y ? y - 1 : 0) * n, *row = a + y * n;
        const float *down = a + (y < n - 1 ? y + 1 : y) * n;
        float *o = out + y * n;
        o[0] = (5 * up[0] + 12 * row[0] + 15 * row[0] + 12 * row[1] + 5 * down[0]) / 118;
        for (long x = 1; x < n - 1; x++)
            o[x] = (5 * up[x] + 12 * row[x - 1] + 15 * row[x] + 12 * row[x + 1] +
                    5 * down[x]) /
                   118;
        o[n - 1] = (5 * up[n - 1] + 12 * row[n - 2] + 15 * row[n - 1] + 12 * row[n - 1] +
                    5 * down[n - 1]) /
                   118;
    }
}

static void copy_openmp(const float *restrict a, float *restrict out, long n)
{
#pragma omp parallel for
    for (long y = 0; y < n; y++)
        memcpy(out + y * n, a + y * n, (size_t)n * sizeof *a);
}

typedef void Kernel2D(const float *restrict a, float *restrict out, long n);

static double best_of(Kernel2D *kernel, long n)
{
    float *a = aligned_alloc(64, (size_t)(n * n) * sizeof *a);
    float *out = aligned_alloc(64, (size_t)(n * n) * sizeof *out);
    for (long i = 0; i < n * n; i++)
        a[i] = 0.5f + (float)(i % 1000) * 1e-3f;
    double best = INFINITY;
    for (int i = 0; i < 25; i++) {
        double start = clock_s();
        kernel(a, out, n);
        best = fmin(best, clock_s() - start);
    }
    free(a);
    free(out);
    return best * 1e9;
}

// Tunes anew, in folders of the benchmark's own.
static bool tune_anew(const char *program, long n, const char *device, double seconds,
                      Arena *arena, TuneResult *result)
{
    Diags diags = {.arena = arena};
    char path[64];
    snprintf(path, sizeof path, "examples/%s.fw", program);
    Problem *problem = problem_load(path, &diags);
    Binding binding[] = {{"N", n}, {"M", n}};
    TuneOptions options = {.device = device,
                           .strategy = "random",
                           .seed = 1,
                           .budget_s = seconds,
                           .store = "build/bench/trials.db",
                           .out = "build/bench",
                           .place = {.folder = "build/bench/cache"},
                           .fresh = true};
    bool ok = problem && problem_bind(problem, binding, 2, &diags) &&
              tune(problem, &options, arena, result, &diags);
    Buf text = buf_new();
    diags_print(&text, &diags);
    fputs(text.text, stderr);
    buf_release(&text);
    return ok;
}

static bool bench_stencil(long n, double seconds)
{
    Arena *arena = arena_new();
    TuneResult r;
    bool ok = tune_anew("jacobi2d", n, "opencl:0", seconds, arena, &r);
    if (ok) {
        double omp = best_of(stencil_openmp, n), copy = best_of(copy_openmp, n);
        printf(
            "stencil   jacobi2d %ld x %ld on opencl:0: tuned %.1f GB/s; of OpenMP %.2f, of "
            "plain %.2f, of memcpy %.2f; %lld trials in %.0f s\n          %s\n",
            n, n, r.bytes / r.best_ns, omp / r.best_ns, r.baseline_ns / r.best_ns,
            copy / r.best_ns, (long long)r.trials, r.elapsed_s, r.point);
    }
    arena_free(arena);
    return ok;
}

// A single sweep, float, 8192 x 8192, against a copy kernel that moves as many bytes.
static bool bench_gpu(double seconds)
{
    static const char *const program[] = {"jacobi2d",   "jacobi2d9", "stencil2d",
                                          "srad1",      "hotspot2d", "srad2",
                                          "gradient2d", "gaussian"};
    bool ok = true;
    for (int i = 0; ok && i < COUNTOF(program); i++) {
        Arena *arena = arena_new();
        TuneResult r;
        ok = tune_anew(program[i], 8192, "cuda:0", seconds, arena, &r);
        if (ok)
            printf(
                "gpu       %-10s 8192 x 8192: tuned %.0f GB/s, %.1f %% of roofline; plain "
                "%.1f "
                "%%; %lld trials in %.0f s\n          %s\n",
                program[i], r.bytes / r.best_ns, 100 * r.roofline_ns / r.best_ns,
                100 * r.roofline_ns / r.baseline_ns, (long long)r.trials, r.elapsed_s,
                r.point);
        fflush(stdout);
        arena_free(arena);
    }
    return ok;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    double seconds = argc > 1 ? atof(argv[1]) : 30;
    bool ok = bench_compile();
    if (argc <= 2)
        ok = ok && bench_stencil(2048, seconds) && bench_stencil(4096, seconds);
    for (int i = 2; i < argc; i++)
        ok = ok && bench_stencil(atol(argv[i]), seconds);
    if (device_kind("cuda")->count() > 0)
        ok = ok && bench_gpu(seconds);
    return ok ? 0 : 1;
}
