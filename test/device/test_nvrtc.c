// SPDX-License-Identifier: Apache-2.0
//
// The CUDA text of every example (at odd sizes the plain point and random ones, at sizes
// that vectors and tiles divide one of the points to try first), and of small programs of
// vectors, halfs and doubles, through NVIDIA's compiler; its cache; and CUDA where there is
// none. No GPU is needed. FW_POINTS sets the sampled points an example (1).

#include "device/nvidia.h"
#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char arch[] = "sm_90";

static Nvrtc *open_nvrtc(void)
{
    Buf log = buf_new();
    Nvrtc *nvrtc = nvrtc_open(&log);
    if (!nvrtc)
        assert_non_null(strstr(log.text, "CUDA_HOME"));
    buf_release(&log);
    if (!nvrtc)
        skip();
    return nvrtc;
}

static DeviceStatus compile(const Nvrtc *nvrtc, const char *source, const char *cache,
                            Buf *cubin, Buf *log)
{
    const DeviceText text = {.source = source, .options = ""};
    Buf symbols;
    *cubin = buf_new();
    *log = buf_new();
    symbols = buf_new();
    DeviceStatus status = nvrtc_compile(nvrtc, &text, arch, cache, cubin, &symbols, log);
    assert_int_equal(symbols.len, 0);
    buf_release(&symbols);
    return status;
}

// 1 if the text does not compile, with what the compiler says.
static int refuses(const Nvrtc *nvrtc, const char *name, const char *source)
{
    Buf cubin, log;
    DeviceStatus status = compile(nvrtc, source, NULL, &cubin, &log);
    bool ok = (status == DEV_OK && memcmp(cubin.text, "\177ELF", 4) == 0) ||
              status == DEV_OUT_OF_RESOURCES;
    if (!ok)
        print_message("%s: %s\n%s\n", name, log.text, source);
    buf_release(&cubin);
    buf_release(&log);
    return !ok;
}

// Headers that files for nvcc include; those of the toolkit where there is one.
static void test_headers(void **state)
{
    (void)state;
    Nvrtc *nvrtc = open_nvrtc();
    int wrong = refuses(nvrtc, "headers of C",
                        "#include <math.h>\n#include <stdio.h>\n#include <assert.h>\n"
                        "#include <cstdint>\n#include <limits.h>\n#include <cfloat>\n"
                        "#include <cuda_runtime.h>\n"
                        "__device__ uint8_t bytes[sizeof(int64_t)];\n"
                        "extern \"C\" __global__ void f(float *x)\n{\n"
                        "    assert(x[0] < INFINITY);\n    printf(\"%g\", FLT_MAX);\n"
                        "    x[0] = M_PI + INT_MAX + NAN + HUGE_VAL + UINT32_MAX;\n}\n");
    wrong += refuses(nvrtc, "headers of C++ and CUB",
                     "#include <limits>\n#include <cub/cub.cuh>\n"
                     "#if __has_include(<cub/block/block_reduce.cuh>)\n"
                     "extern \"C\" __global__ void f(float *x)\n{\n"
                     "    typedef cub::BlockReduce<float, 64> Reduce;\n"
                     "    __shared__ typename Reduce::TempStorage held;\n"
                     "    float sum = Reduce(held).Sum(x[threadIdx.x]);\n"
                     "    x[0] = sum + std::numeric_limits<float>::max();\n}\n#else\n"
                     "extern \"C\" __global__ void f() {}\n#endif\n");
    assert_int_equal(wrong, 0);
    nvrtc_close(nvrtc);
}

// What derive asks of an H200.
static DeviceInfo gpu(void)
{
    DeviceInfo info = {.target = "cuda",
                       .has_double = true,
                       .has_half = true,
                       .compute_units = 132,
                       .warp = 32,
                       .line_bytes = 128,
                       .max_group = 1024,
                       .max_item = {1024, 1024, 64},
                       .local_bytes = 227 * 1024,
                       .global_bytes = (int64_t)1 << 37,
                       .alloc_bytes = (int64_t)1 << 37};
    return info;
}

static bool put_point(Buf *text, const Problem *problem, const Derivation *derivation,
                      const Point *point, int number, Arena *arena, Diags *diags)
{
    Candidate candidate;
    if (!candidate_make(problem, derivation, point, arena_printf(arena, "c%d", number),
                        target_find("cuda"), "", arena, &candidate, diags))
        return false;
    buf_printf(text, "\n%s", candidate.job.source);
    candidate_release(&candidate);
    return true;
}

// The text of a problem's prelude and of n + 1 points: the plain one and n at random; for n
// 0 the first of those to try first. A
// random one may not suit the sizes, which lower then says.
static bool put_text(Buf *text, const Problem *problem, int n, Arena *arena, Diags *diags)
{
    Point first[8];
    int nfirst = 0;
    DeviceInfo device = gpu();
    Derivation *derivation = derive_new(problem->bound, &device, diags);
    Point point;
    Rng rng;
    if (!derivation)
        return false;
    rng = rng_new(7);
    emit_prelude(text, target_find("cuda"), problem->bound);
    derive_plain(derivation, &point);
    if (!n)
        nfirst = derive_first(derivation, first, COUNTOF(first));
    if (nfirst)
        point = first[0];
    bool ok = put_point(text, problem, derivation, &point, 0, arena, diags);
    for (int i = 1, tries = 0; ok && i <= n && tries < 10 * n; tries++) {
        Diags ignored = {.arena = arena};
        space_sample(derive_space(derivation), &rng, &point);
        i += put_point(text, problem, derivation, &point, i, arena, &ignored);
    }
    derive_free(derivation);
    return ok;
}

// Compiles a problem that is parsed, at odd sizes; frees it. 1 if something is wrong.
static int try_problem(const Nvrtc *nvrtc, const char *name, Problem *problem, int64_t step,
                       int n, Arena *arena, Diags *diags)
{
    static const int64_t odd[] = {37, 29, 23, 19};
    Binding binding[COUNTOF(odd)];
    int nsize = 0, wrong = 1;
    Buf text = buf_new();
    for (; problem && nsize < problem->program->sizes.len && nsize < COUNTOF(odd); nsize++)
        binding[nsize] =
            (Binding){problem->program->sizes.at[nsize].name, step * odd[nsize]};
    if (problem && problem_bind(problem, binding, nsize, diags) &&
        put_text(&text, problem, n, arena, diags))
        wrong = refuses(nvrtc, name, text.text);
    buf_clear(&text);
    diags_print(&text, diags);
    if (text.len)
        print_message("%s: %s", name, text.text);
    buf_release(&text);
    problem_free(problem);
    return wrong;
}

static int try_file(const Nvrtc *nvrtc, const char *path)
{
    const char *points = getenv("FW_POINTS");
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    int wrong = try_problem(nvrtc, path, problem_load(path, &diags), 13,
                            points ? atoi(points) : 1, arena, &diags);
    wrong += try_problem(nvrtc, path, problem_load(path, &diags), 128, 0, arena, &diags);
    arena_free(arena);
    return wrong;
}

static int try_text(const Nvrtc *nvrtc, const char *text)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    int wrong =
        try_problem(nvrtc, text, problem_parse("text", text, &diags), 8, 1, arena, &diags);
    arena_free(arena);
    return wrong;
}

static void test_examples(void **state)
{
    (void)state;
    Nvrtc *nvrtc = open_nvrtc();
    glob_t found;
    assert_int_equal(glob("examples/*.fw", 0, NULL, &found), 0);
    int wrong = 0;
    for (size_t i = 0; i < found.gl_pathc; i++)
        wrong += try_file(nvrtc, found.gl_pathv[i]);
    globfree(&found);
    nvrtc_close(nvrtc);
    assert_int_equal(wrong, 0);
}

static void test_types(void **state)
{
    (void)state;
    static const char *const text[] = {
        "size N\n"
        "def f(x: [N]float) =\n"
        "  asScalar(asVector(4, x) |> map(\\v -> 2*v + max(v, 1) - v/3))\n",
        "size N\n"
        "def f(x: [N]float) =\n"
        "  asScalar(asVector(8, x) |> map(\\v -> -v + sqrt(v)))\n",
        "size N\n"
        "def f(x: [N]int) = asScalar(asVector(2, x) |> map(\\v -> v/3 + min(v, "
        "4)))\n",
        "size N\n"
        "def f(x: [N]float) =\n"
        "  asScalar(x |> pad(1, 1, clamp) |> slide(3, 1) |> map(\\w -> w[0] + w[2])\n"
        "    |> asVector(4) |> map(\\v -> v*v))\n",
        "size N\n"
        "def f(x: [N]half): [N]half = x |> map(\\v -> max(2*v + sqrt(v), 1) / 3)\n",
        "size N\n"
        "def f(x: [N]half) = asScalar(asVector(4, x) |> map(\\v -> 2*v + v))\n",
        "size N\n"
        "def f(x: [N]half) = asScalar(asVector(2, x) |> map(\\v -> 2*v + v))\n",
        "size N\n"
        "def f(x: [N]double): [N]double = x |> map(\\v -> exp(v) + fma(v, v, 1) + "
        "rsqrt(v))\n",
        "size N\n"
        "def f(x: [N]double) = asScalar(asVector(4, x) |> map(\\v -> 2*v + "
        "v))\n",
        "size N\n"
        "def f(x: [N]float): [N]bool = x |> map(\\v -> v > 1 && int(v) % 3 == 1)\n",
        "size N\n"
        "def f(x: [N]float): float = x |> reduce(max, -1e30)\n",
    };
    Nvrtc *nvrtc = open_nvrtc();
    int wrong = 0;
    for (int i = 0; i < COUNTOF(text); i++)
        wrong += try_text(nvrtc, text[i]);
    nvrtc_close(nvrtc);
    assert_int_equal(wrong, 0);
}

// Rows longer than what a text may declare are held in local memory that the launch asks
// for, or none is asked for.
static void expect_local(const Nvrtc *nvrtc, int64_t columns, bool asks)
{
    static const char text[] =
        "size N, M\n"
        "def f(x: [N][M]float) = x |> map(\\r ->\n"
        "  let m = r |> reduce(max, -1e30) in r |> map(\\v -> exp(v - m)))\n";
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse("text", text, &diags);
    Binding binding[] = {{"N", 64}, {"M", columns}};
    assert_true(problem_bind(problem, binding, 2, &diags));
    DeviceInfo device = gpu();
    Derivation *derivation = derive_new(problem->bound, &device, &diags);
    Point point;
    Buf source, cubin, log;
    Candidate candidate;
    derive_plain(derivation, &point);
    assert_true(space_set(derive_space(derivation), &point, "hold", "local"));
    source = buf_new();
    emit_prelude(&source, target_find("cuda"), problem->bound);
    assert_true(candidate_make(problem, derivation, &point, "k", target_find("cuda"), "",
                               arena, &candidate, &diags));
    buf_puts(&source, candidate.job.source);
    bool fits = candidate.job.launch[0].local_bytes >= columns * 4;
    assert_int_equal(asks, fits);
    assert_int_equal(asks, strstr(source.text, "extern __shared__") != NULL);
    assert_int_equal(compile(nvrtc, source.text, NULL, &cubin, &log), DEV_OK);
    buf_release(&cubin);
    buf_release(&log);
    buf_release(&source);
    candidate_release(&candidate);
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
}

static void test_local(void **state)
{
    (void)state;
    Nvrtc *nvrtc = open_nvrtc();
    expect_local(nvrtc, 8192, false);
    expect_local(nvrtc, 40000, true);
    nvrtc_close(nvrtc);
}

static void test_failures(void **state)
{
    (void)state;
    Nvrtc *nvrtc = open_nvrtc();
    Buf cubin, log;
    assert_int_equal(compile(nvrtc, "__global__ void k() { nothing; }", NULL, &cubin, &log),
                     DEV_BUILD_FAILED);
    assert_non_null(strstr(log.text, "nothing"));
    buf_release(&cubin);
    buf_release(&log);
    assert_int_equal(compile(nvrtc,
                             "extern \"C\" __global__ void k(float *out)\n"
                             "{ __shared__ float a[20000]; a[threadIdx.x] = out[0];\n"
                             "  __syncthreads(); out[1] = a[5]; }",
                             NULL, &cubin, &log),
                     DEV_OUT_OF_RESOURCES);
    buf_release(&cubin);
    buf_release(&log);
    nvrtc_close(nvrtc);
}

// The only file in folder, which is there.
static char *only_file(Arena *arena, const char *folder)
{
    glob_t found;
    assert_int_equal(glob(arena_printf(arena, "%s/*", folder), 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    char *path = arena_strdup(arena, found.gl_pathv[0]);
    globfree(&found);
    return path;
}

static void expect_same(const Nvrtc *nvrtc, const char *folder, const Buf *first)
{
    Buf cubin, log;
    assert_int_equal(
        compile(nvrtc, "extern \"C\" __global__ void k() {}", folder, &cubin, &log),
        DEV_OK);
    assert_int_equal(cubin.len, first->len);
    assert_memory_equal(cubin.text, first->text, first->len);
    buf_release(&cubin);
    buf_release(&log);
}

static void test_cache(void **state)
{
    (void)state;
    Nvrtc *nvrtc = open_nvrtc();
    Arena *arena = arena_new();
    char folder[] = "/tmp/fw-nvrtc-XXXXXX";
    Buf first, log, file;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(
        compile(nvrtc, "extern \"C\" __global__ void k() {}", folder, &first, &log),
        DEV_OK);
    file = buf_new();
    const char *path = only_file(arena, folder);
    assert_true(file_read(path, FILE_DATA_MOST, &file));
    expect_same(nvrtc, folder, &first);
    // One that is cut off, or changed, is made again and replaced.
    assert_true(file_write(path, file.text, file.len / 2));
    expect_same(nvrtc, folder, &first);
    file.text[file.len - 1] ^= 1;
    assert_true(file_write(path, file.text, file.len));
    expect_same(nvrtc, folder, &first);
    buf_clear(&file);
    assert_true(file_read(only_file(arena, folder), FILE_DATA_MOST, &file));
    assert_int_equal(file.len, first.len + 16);
    unlink(path);
    rmdir(folder);
    buf_release(&file);
    buf_release(&first);
    buf_release(&log);
    arena_free(arena);
    nvrtc_close(nvrtc);
}

static const char named_text[] =
    "#define WIDTH 4\n"
    "namespace place {\n"
    "template <typename T, int N> __global__ void scale(T *x) { x[threadIdx.x] *= N; }\n"
    "}\n"
    "__constant__ float weight[9];\n"
    "__global__ void plain(float *x) { x[0] = weight[threadIdx.x]; }\n"
    "extern \"C\" __global__ void c(float *x) { x[0] = 1; }\n";

static DeviceStatus compile_named(const Nvrtc *nvrtc, const char *const *name, int n,
                                  const char *folder, Buf *symbols)
{
    const DeviceText text = {named_text, "-DX=\"1 + 1\" -DY", name, n};
    Buf cubin, log;
    cubin = buf_new();
    log = buf_new();
    buf_clear(symbols);
    DeviceStatus status = nvrtc_compile(nvrtc, &text, arch, folder, &cubin, symbols, &log);
    if (status == DEV_OK)
        assert_memory_equal(cubin.text, "\177ELF", 4);
    else
        assert_non_null(strstr(log.text, name[n - 1]));
    buf_release(&cubin);
    buf_release(&log);
    return status;
}

// What an author's names are called in the cubin; made now, and found in the cache.
static void test_names(void **state)
{
    (void)state;
    static const char *const name[] = {"place::scale<float, WIDTH>", "plain", "c",
                                       "&weight", "nothing"};
    static const char expect[] = "_ZN5place5scaleIfLi4EEEvPT_\0_Z5plainPf\0c\0weight";
    Nvrtc *nvrtc = open_nvrtc();
    Arena *arena = arena_new();
    char folder[] = "/tmp/fw-nvrtc-XXXXXX";
    Buf symbols = buf_new();
    assert_non_null(mkdtemp(folder));
    for (int again = 0; again < 2; again++) {
        assert_int_equal(compile_named(nvrtc, name, 4, folder, &symbols), DEV_OK);
        assert_int_equal(symbols.len, sizeof expect);
        assert_memory_equal(symbols.text, expect, sizeof expect);
    }
    assert_int_equal(compile_named(nvrtc, name, 5, folder, &symbols), DEV_BUILD_FAILED);
    unlink(only_file(arena, folder));
    rmdir(folder);
    buf_release(&symbols);
    arena_free(arena);
    nvrtc_close(nvrtc);
}

// With a driver there may be devices; without one there are none, and opening says why.
static void test_no_driver(void **state)
{
    (void)state;
    const DeviceKind *kind = device_kind("cuda");
    Buf log;
    if (kind->count() > 0)
        skip();
    log = buf_new();
    assert_null(kind->open(0, &log));
    assert_true(log.len > 0);
    buf_release(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples), cmocka_unit_test(test_types),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_cache),
        cmocka_unit_test(test_headers),  cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_local),    cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
