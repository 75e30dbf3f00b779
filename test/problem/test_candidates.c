// SPDX-License-Identifier: Apache-2.0
//
// Every example, at odd sizes, lowered at random points of its space, built and run on the
// host, on OpenCL and on a GPU, against the interpreter; and every kind of border.
// Each device has other random points. FW_POINTS sets how many an example (1; more with
// `make soak`, and then the steps of an5d run on the host and plain points on OpenCL too);
// FW_DEVICE one device; FW_EXAMPLE one example.

#include "bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *example, *device;
    Candidate *candidate;
    Derivation *derivation;
    int n, wrong;
} Report;

static double on_done(void *user, int job, Trial *trial)
{
    Report *r = user;
    // Local memory of a large tile or a group's registers may not fit: that is no fault.
    if (trial->status == TRIAL_OK || trial->status == TRIAL_OUT_OF_RESOURCES)
        return INFINITY;
    Buf text = buf_new();
    point_print(&text, derive_space(r->derivation), r->candidate[job].point);
    print_message("%s on %s: %s: %s\n%s\n", r->example, r->device,
                  trial_status_name[trial->status], text.text,
                  trial->log ? trial->log : "");
    buf_release(&text);
    r->wrong++;
    return INFINITY;
}

// Sizes that tiles and vectors do not divide, and sizes that they do.
enum { SIZES = 4 };
static const int64_t odd[SIZES] = {37, 29, 23, 3}, even[SIZES] = {1024, 128, 32, 3};
// Those of kernels that take them as arguments, from 1 to 4096, multiples of 4.
static const int64_t ranged[SIZES] = {36, 28, 24, 3};

// T instances, of rows of N words.
static Problem *load_script(const char *path, const int64_t *sizes, Diags *diags)
{
    const Binding binding[] = {{"T", sizes[1]}, {"N", sizes == even ? 256 : sizes[0]}};
    Problem *problem = problem_load(path, diags);
    bool rows = strstr(problem->source.text, "size N");
    return problem_bind(problem, binding, 1 + rows, diags) ? problem : NULL;
}

static Problem *load(const char *path, const int64_t *sizes, Diags *diags)
{
    if (path_is_script(path))
        return load_script(path, sizes, diags);
    Problem *problem = problem_load(path, diags);
    Binding binding[8];
    int n = 0;
    for (; problem && n < problem->program->sizes.len && n < SIZES; n++) {
        const char *name = problem->program->sizes.at[n].name;
        binding[n] = (Binding){name, strcmp(name, "T") == 0 ? 3 : sizes[n]};
        if (sizes == ranged && binding[n].value > 3)
            binding[n].range = (SizeRange){4, 4096, 4};
    }
    if (problem && problem_bind(problem, binding, n, diags))
        return problem;
    return NULL;
}

static int points_wanted(void)
{
    const char *text = getenv("FW_POINTS");
    return text ? atoi(text) : 1;
}

static RunnerConfig limits_on(const char *device)
{
    return (RunnerConfig){.device = device,
                          .workers = 1,
                          .samples = 1,
                          .run_limit_s = 30,
                          .build_limit_s = 60};
}

enum { POINTS_FIRST = 7 };
typedef enum { POINTS_ANY, POINTS_TO_TRY_FIRST, POINTS_STAGED } Which;

// Points of a product whose groups copy tiles, each with another number of parts.
static int staged_points(const Space *space, Arena *arena, Point **point)
{
    enum { SET = 7 };
    static const char *const name[SET] = {"lx", "ly", "bx", "by", "stage", "parts", "load"};
    static const char *const value[][SET] = {{"8", "4", "2", "2", "8", "4", "ahead"},
                                             {"4", "8", "4", "2", "16", "1", "now"},
                                             {"8", "8", "2", "4", "32", "2", "ahead"}};
    *point = NEW_ARRAY(arena, Point, COUNTOF(value));
    for (int i = 0; i < COUNTOF(value); i++) {
        Point *p = &(*point)[i];
        memset(p, 0, sizeof *p);
        assert_true(space_set(space, p, "product", "blocks"));
        for (int k = 0; k < SET; k++)
            assert_true(space_set(space, p, name[k], value[i][k]));
        assert_true(space_valid(space, p));
    }
    return COUNTOF(value);
}

// The points to try first, or the plain one and random ones, other ones on other devices;
// returns how many. On OpenCL, where a compilation takes longest, one of each example is
// enough: many other tests run the plain one.
static int choose_points(const Derivation *derivation, const char *device, Which which,
                         Arena *arena, Point **point)
{
    const Space *space = derive_space(derivation);
    if (which == POINTS_STAGED)
        return staged_points(space, arena, point);
    int n = MIN(points_wanted(), (int)fmin(space_count(space), 1e6));
    *point = NEW_ARRAY(arena, Point, n + 1 + POINTS_FIRST);
    if (which == POINTS_TO_TRY_FIRST)
        return derive_first(derivation, *point, POINTS_FIRST);
    Rng rng = rng_new(7 + (uint64_t)strlen(device));
    bool plain = n != 1 || strncmp(device, "opencl", 6) != 0;
    if (plain)
        derive_plain(derivation, *point);
    for (int i = 0; i < n; i++)
        space_sample(space, &rng, &(*point)[plain + i]);
    return plain + n;
}

static bool runs_half(const Problem *problem, const DeviceInfo *info)
{
    return info->has_half || strcmp(info->target, "c") == 0 ||
           !strstr(problem->source.text, "half");
}

static int try_points(Problem *problem, const char *name, Bed *bed, Which which,
                      Arena *arena, Diags *diags)
{
    if (!bed_expect(bed, problem, arena, diags))
        return 1;
    Runner *runner = bed->runner;
    if (!runs_half(problem, runner_device(runner)))
        return 0;
    problem->general->extra |= 1u << EXTRA_BANKS;
    Derivation *derivation = bed_derive(bed, problem, diags);
    const Target *target = target_find(runner_device(runner)->target);
    Buf prelude = buf_new();
    emit_prelude(&prelude, target, problem->general);
    Point *point;
    int n = choose_points(derivation, bed->config.device, which, arena, &point);
    Candidate *candidate = NEW_ARRAY(arena, Candidate, n);
    Job *job = NEW_ARRAY(arena, Job, n);
    Report report = {name, bed->config.device, candidate, derivation, n, 0};
    for (int i = 0; i < n; i++) {
        const char *prefix = arena_printf(arena, "%s_c%d", problem->name, i);
        if (!candidate_make(problem, derivation, &point[i], prefix, target, prelude.text,
                            arena, &candidate[i], diags))
            return 1;
        job[i] = candidate[i].job;
    }
    bool ok = runner_run(runner, job, n, INFINITY, on_done, &report, diags);
    for (int i = 0; i < n; i++)
        candidate_release(&candidate[i]);
    buf_release(&prelude);
    derive_free(derivation);
    return ok ? report.wrong : 1;
}

// The problem is bound, or NULL with what diags say; it is freed.
static int try_problem(Problem *problem, const char *path, Which which, Bed *bed,
                       Arena *arena, Diags *diags)
{
    int wrong = problem ? try_points(problem, path, bed, which, arena, diags) : 1;
    Buf text = buf_new();
    diags_print(&text, diags);
    if (text.len)
        print_message("%s: %s", path, text.text);
    buf_release(&text);
    problem_free(problem);
    return wrong;
}

static int try_example(const char *path, const int64_t *sizes, Bed *bed)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Which which = sizes == even ? POINTS_TO_TRY_FIRST : POINTS_ANY;
    int wrong = try_problem(load(path, sizes, &diags), path, which, bed, arena, &diags);
    arena_free(arena);
    return wrong;
}

// One kind of border, of floats or doubles.
static int try_border(const char *border, const char *type, Bed *bed)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    const char *text = arena_printf(
        arena,
        "size N, M\n"
        "def f(a: [N][M]%s) = a |> pad2(2, 1, 1, 2, %s) |> slide2(4, 1)\n"
        "  |> map2(\\p -> 0.3*p[2][1] + 0.2*p[0][3] - 0.1*p[3][0] + 0.4*p[1][2])\n",
        type, border);
    Problem *problem = problem_parse("border", text, &diags);
    const Binding size[] = {{"N", 37}, {"M", 29}};
    if (problem && !problem_bind(problem, size, 2, &diags)) {
        problem_free(problem);
        problem = NULL;
    }
    const char *name = arena_printf(arena, "%s border of %s", border, type);
    int wrong = try_problem(problem, name, POINTS_ANY, bed, arena, &diags);
    arena_free(arena);
    return wrong;
}

static void borders(void **state)
{
    (void)state;
    static const char *const border[] = {"clamp", "mirror", "wrap", "1.5"};
    int wrong = 0;
    Bed bed;
    bed_open(&bed, limits_on("opencl:0"));
    for (int i = 0; i < COUNTOF(border) && !getenv("FW_EXAMPLE"); i++)
        wrong +=
            try_border(border[i], "float", &bed) + try_border(border[i], "double", &bed);
    bed_close(&bed);
    assert_int_equal(wrong, 0);
}

static void one_folder(const char *folder, const int64_t *sizes, Bed *bed, int *wrong,
                       int *tried)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    const char *only = getenv("FW_EXAMPLE");
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || (strcmp(dot, ".fw") != 0 && strcmp(dot, ".fws") != 0) ||
            (only && strncmp(entry->d_name, only, (size_t)(dot - entry->d_name)) != 0))
            continue;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        *wrong += try_example(path, sizes, bed);
        (*tried)++;
    }
    closedir(dir);
}

static void all_examples(const char *device)
{
    const char *on = getenv("FW_DEVICE");
    if (on && strcmp(on, device) != 0)
        skip();
    int wrong = 0, tried = 0;
    Bed bed;
    bed_open(&bed, limits_on(device));
    one_folder("examples", odd, &bed, &wrong, &tried);
    if (strcmp(device, "host") != 0 || points_wanted() > 1)
        one_folder("examples/an5d", odd, &bed, &wrong, &tried);
    else
        one_folder("bench/fusion", odd, &bed, &wrong, &tried);
    one_folder("examples/fusion", odd, &bed, &wrong, &tried);
    one_folder("test/programs", odd, &bed, &wrong, &tried);
    bed_close(&bed);
    assert_true(tried > 0);
    assert_int_equal(wrong, 0);
}

static void on_host(void **state)
{
    (void)state;
    all_examples("host");
}

static void on_opencl(void **state)
{
    (void)state;
    all_examples("opencl:0");
}

static void in_ranges(void **state)
{
    (void)state;
    int wrong = 0, tried = 0;
    Bed bed;
    bed_open(&bed, limits_on("opencl:0"));
    one_folder("examples", ranged, &bed, &wrong, &tried);
    bed_close(&bed);
    assert_int_equal(wrong, 0);
}

// A product and what follows it, for any sizes from low to 600: at a fold of that length.
static int try_product(int64_t low, int64_t depth, Bed *bed)
{
    static const char text[] =
        "size N, M, K\n"
        "def f(a: [N][K]float, b: [K][M]float, c: [M]float) = a |> map(\\row ->\n"
        "  zip(transpose(b), c) |> map(\\t -> max(0,\n"
        "    t.1 + (zip(row, t.0) |> map(*) |> reduce(+, 0)))))\n";
    const SizeRange range = {low, 600, 1};
    const Binding size[] = {
        {"N", low + 17, range}, {"M", low + 3, range}, {"K", depth, range}};
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse("product", text, &diags);
    assert_true(problem && problem_bind(problem, size, 3, &diags));
    const char *name = arena_printf(arena, "product of depth %lld", (long long)depth);
    int wrong = try_problem(problem, name, POINTS_STAGED, bed, arena, &diags);
    arena_free(arena);
    return wrong;
}

// Tiles and parts of a fold whose length is not known may leave some of it, or nothing, and
// there may be fewer elements than a tile has.
static void products_in_ranges(void **state)
{
    (void)state;
    static const int64_t depth[] = {4, 7, 15, 16, 17, 31, 32, 64, 129, 300};
    const char *only = getenv("FW_EXAMPLE");
    int wrong = 0;
    Bed bed;
    bed_open(&bed, limits_on("opencl:0"));
    for (int i = 0; i < COUNTOF(depth) && !only; i++)
        wrong += try_product(depth[i] < 16 ? 4 : 16, depth[i], &bed);
    bed_close(&bed);
    assert_int_equal(wrong, 0);
}

// The points to try first of folds and products, at sizes at which all their rules match.
static void folds(void **state)
{
    (void)state;
    static const char *const program[] = {
        "examples/mm.fw",           "examples/gemv.fw",
        "examples/dot.fw",          "examples/fusion/axpydot.fws",
        "examples/fusion/atax.fws", "examples/fusion/gemver.fws"};
    const char *device = device_kind("cuda")->count() ? "cuda:0" : "opencl:0";
    const char *only = getenv("FW_EXAMPLE");
    int wrong = 0;
    Bed bed;
    bed_open(&bed, limits_on(device));
    for (int i = 0; i < COUNTOF(program); i++)
        if (!only || strstr(program[i], only))
            wrong += try_example(program[i], even, &bed);
    bed_close(&bed);
    assert_int_equal(wrong, 0);
}

// All examples on a GPU, where there is one.
static void on_gpu(void **state)
{
    (void)state;
    if (device_kind("cuda")->count() == 0)
        skip();
    all_examples("cuda:0");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_host),   cmocka_unit_test(on_opencl),
        cmocka_unit_test(borders),   cmocka_unit_test(folds),
        cmocka_unit_test(in_ranges), cmocka_unit_test(products_in_ranges),
        cmocka_unit_test(on_gpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
