// SPDX-License-Identifier: Apache-2.0
//
// The key of a verdict: what trials of one problem on one device have in common. Each thing
// that a verdict depends on is changed by itself, and the key must change; what means
// nothing must leave it alone.

#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A file of a problem, and what may be in it instead.
typedef struct {
    const char *name, *text;
} File;

static void put(const char *folder, const File *file)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, file->name);
    assert_true(file_write(path, file->text, strlen(file->text)));
}

typedef struct {
    const char *file; // of the problem
    const char *sizes[2];
    int64_t value[2];
    int n;
    Math math;
    const char *fingerprint;
} Asked;

// Everything of the key but the label, as one number.
static uint64_t key_of(const char *folder, const Asked *asked)
{
    char path[256];
    Diags diags;
    StoreKey key;
    DeviceInfo device = {.max_group = 256,
                         .max_item = {256, 256, 64},
                         .compute_units = 2,
                         .warp = 32,
                         .local_bytes = 1 << 15,
                         .global_bytes = 1 << 30,
                         .alloc_bytes = 1 << 28,
                         .target = "opencl",
                         .name = "d"};
    Binding binding[2];
    Variants variants;
    diags = (Diags){.arena = arena_new()};
    snprintf(device.fingerprint, sizeof device.fingerprint, "%s", asked->fingerprint);
    snprintf(path, sizeof path, "%s/%s", folder, asked->file);
    for (int i = 0; i < asked->n; i++)
        binding[i] = (Binding){asked->sizes[i], asked->value[i]};
    Problem *problem = problem_load(path, &diags);
    if (problem->program)
        problem->program->math = asked->math;
    if (!problem->kind || !problem_bind(problem, binding, asked->n, &diags) ||
        !variants_open(&variants, problem, &device, &diags)) {
        Buf text = buf_new();
        diags_print(&text, &diags);
        fail_msg("%s: %s", path, text.text);
    }
    plan_key(problem, space_hash(variants.space), &device, &key);
    assert_string_equal(key.version, TRIAL_VERSION);
    uint64_t hash = hash_bytes(key.fingerprint, strlen(key.fingerprint), key.problem_hash);
    hash = hash_mix(hash, key.space_hash);
    variants_close(&variants);
    problem_free(problem);
    arena_free(diags.arena);
    return hash;
}

static char *make_folder(void)
{
    char *folder = xstrdup("/tmp/forewarp-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static void drop_folder(char *folder)
{
    remove_tree(folder);
    free(folder);
}

static void write_all(const char *folder, const File *file, int n)
{
    for (int i = 0; i < n; i++)
        put(folder, &file[i]);
}

// Templates -----------------------------------------------------------------------------

#define HEAD   "{\"files\": \"k.cl\", \"options\": \"-I%s -DX=1\", \"sizes\": {\"N\": 64}, "
#define PARAMS "\"parameters\": {\"A\": [1, 2]}, \"constraints\": [\"A < 9\"], "
#define ARGS                                                                               \
    "\"arguments\": [{\"name\": \"x\", \"type\": \"float\", \"shape\": [\"N\"], "          \
    "\"access\": \"out\"}, {\"name\": \"a\", \"type\": \"float\", \"shape\": [\"N\"], "    \
    "\"fill\": {\"npy\": \"a.npy\"}}, {\"name\": \"n\", \"type\": \"int\", "               \
    "\"value\": \"N\"}], "
#define LAUNCH    "\"launch\": {\"kernel\": \"k\", \"global\": [\"N\"], \"local\": [\"8\"]}, "
#define REFERENCE "\"reference\": {\"npy\": {\"x\": \"x.npy\"}}, \"tolerance\": 0.001}"

static const File file[] = {
    {"p.json", HEAD PARAMS ARGS LAUNCH REFERENCE},
    {"k.cl", "#include \"one.h\"\nkernel void k(global float *x) {}\n"},
    {"one.h", "#include \"two.h\"\n"},
    {"two.h", "#define TWO 2\n"},
    {"other.h", "// nobody includes it\n"},
    {"a.npy", "its contents"},
    {"x.npy", "what must come out"},
    {"c.json",
     HEAD PARAMS ARGS LAUNCH "\"reference\": {\"c\": \"c.c\", \"function\": \"f\"}}"},
    {"c.c", "void f(float *x, float *a, int n) {}\n"},
    {"f.json", HEAD PARAMS ARGS LAUNCH "\"reference\": {\"fw\": \"f.fw\"}}"},
    {"f.fw", "size N\ndef f(a: [N]float) = map(\\v -> 2*v, a)\n"},
    {"q.json", HEAD PARAMS ARGS LAUNCH "\"reference\": {\"file\": \"r.cl\", \"kernel\": "
                                       "\"r\", \"global\": [\"N\"], \"local\": [\"8\"]}}"},
    {"r.cl", "kernel void r(global float *x) {}\n"},
};

static const struct {
    const char *problem;
    File file;
} changed[] = {
    {"p.json", {"k.cl", "#include \"one.h\"\nkernel void k(global float *x) { }\n"}},
    {"p.json", {"one.h", "#include \"two.h\"\n\n"}},
    {"p.json", {"two.h", "#define TWO 3\n"}},
    {"p.json", {"a.npy", "other contents"}},
    {"p.json", {"x.npy", "what should come out"}},
    {"c.json", {"c.c", "void f(float *x, float *a, int n) { *x = 0; }\n"}},
    {"f.json", {"f.fw", "size N\ndef f(a: [N]float) = map(\\v -> 3*v, a)\n"}},
    {"q.json", {"r.cl", "kernel void r(global float *x) { *x = 0; }\n"}},
};

// What may stand in the problem file instead of what.
static const char *const edit[][2] = {
    {"-DX=1", "-DX=2"},
    {"\"N\": 64", "\"N\": 128"},
    {"[1, 2]", "[1, 2, 3]"},
    {"A < 9", "A < 8"},
    {"\"value\": \"N\"", "\"value\": \"N + 1\""},
    {"\"access\": \"out\"", "\"access\": \"inout\""},
    {"\"type\": \"int\"", "\"type\": \"uint\""},
    {"\"global\": [\"N\"]", "\"global\": [\"2 * N\"]"},
    {"\"local\": [\"8\"]", "\"local\": [\"4\"]"},
    {"0.001", "0.01"},
};

// The options name the folder of the headers, which is where the test runs.
static void put_problem(const char *folder, const File *of, const char *from,
                        const char *to)
{
    Buf text;
    char name[256];
    text = buf_new();
    const char *at = strstr(of->text, "%s");
    buf_printf(&text, "%.*sinclude%s", (int)(at - of->text), of->text, at + 2);
    at = from ? strstr(text.text, from) : NULL;
    assert_true(!from || at);
    Buf edited = buf_new();
    buf_printf(&edited, "%.*s%s%s", at ? (int)(at - text.text) : 0, text.text, at ? to : "",
               at ? at + strlen(from) : text.text);
    snprintf(name, sizeof name, "%s/%s", folder, of->name);
    assert_true(file_write(name, edited.text, edited.len));
    buf_release(&text);
    buf_release(&edited);
}

// Headers lie in include/ of the working folder; the rest in the problem's.
static void put_file(const char *folder, const File *f)
{
    char path[256];
    snprintf(path, sizeof path, "%s/include", folder);
    if (path_ends(f->name, ".json"))
        put_problem(folder, f, NULL, NULL);
    else
        put(path_ends(f->name, ".h") ? path : folder, f);
}

static char *template_folder(void)
{
    char *folder = make_folder(), path[256];
    snprintf(path, sizeof path, "%s/include", folder);
    assert_true(file_mkdirs(path));
    for (int i = 0; i < COUNTOF(file); i++)
        put_file(folder, &file[i]);
    return folder;
}

static void in_folder(const char *folder)
{
    assert_int_equal(chdir(folder), 0);
}

static const File *file_named(const char *name)
{
    for (int i = 0; i < COUNTOF(file); i++)
        if (strcmp(file[i].name, name) == 0)
            return &file[i];
    fail_msg("no %s", name);
    return NULL;
}

static void test_template(void **state)
{
    (void)state;
    char *folder = template_folder(), *home = realpath(".", NULL);
    in_folder(folder);
    for (int i = 0; i < COUNTOF(changed); i++) {
        Asked asked = {.file = changed[i].problem, .fingerprint = "1"};
        uint64_t before = key_of(folder, &asked);
        put_file(folder, &changed[i].file);
        if (key_of(folder, &asked) == before)
            fail_msg("%s is not in the key of %s", changed[i].file.name, asked.file);
        put_file(folder, file_named(changed[i].file.name));
        assert_true(key_of(folder, &asked) == before);
    }
    Asked asked = {.file = "p.json", .fingerprint = "1"};
    uint64_t before = key_of(folder, &asked);
    for (int i = 0; i < COUNTOF(edit); i++) {
        put_problem(folder, file_named("p.json"), edit[i][0], edit[i][1]);
        if (key_of(folder, &asked) == before)
            fail_msg("%s is not in the key", edit[i][0]);
    }
    put_problem(folder, file_named("p.json"), NULL, NULL);
    asked = (Asked){.file = "p.json", .fingerprint = "2"};
    assert_true(key_of(folder, &asked) != before);
    asked = (Asked){
        .file = "p.json", .sizes = {"N"}, .value = {256}, .n = 1, .fingerprint = "1"};
    assert_true(key_of(folder, &asked) != before);
    in_folder(home);
    free(home);
    drop_folder(folder);
}

// Layout and order of the problem file, the folder, files that it does not name.
static void test_template_alone(void **state)
{
    (void)state;
    char *folder = template_folder(), *other = template_folder(),
         *home = realpath(".", NULL);
    Asked asked = {.file = "p.json", .fingerprint = "1"};
    in_folder(folder);
    uint64_t before = key_of(folder, &asked);
    put_file(folder, &(File){"other.h", "#define OTHER\n"});
    assert_true(key_of(folder, &asked) == before);
    put_problem(folder, file_named("p.json"), "{\"files\"", "\n{\n  \"files\"");
    assert_true(key_of(folder, &asked) == before);
    put_problem(folder,
                &(File){"p.json",
                        "{" ARGS "\"options\": \"-I%s -DX=1\", " PARAMS
                        "\"files\": \"k.cl\", \"sizes\": {\"N\": 64}, " LAUNCH REFERENCE},
                NULL, NULL);
    assert_true(key_of(folder, &asked) == before);
    asked = (Asked){
        .file = "p.json", .sizes = {"N"}, .value = {64}, .n = 1, .fingerprint = "1"};
    assert_true(key_of(folder, &asked) == before);
    in_folder(other);
    assert_true(key_of(other, &asked) == before);
    in_folder(home);
    free(home);
    drop_folder(folder);
    drop_folder(other);
}

// Programs and scripts --------------------------------------------------------------------

static const struct {
    const char *name, *text, *other, *same;
    const char *size[2]; // two sizes that it has, or one
} source[] = {
    {"p.fw",
     "size N, M generic\ndef f(a: [N][M]float) = map2(\\v -> 2*v, a)\n",
     "size N, M generic\ndef f(a: [N][M]float) = map2(\\v -> 3*v, a)\n",
     "// twice\nsize N, M generic\ndef f(a: [N][M]float) =\n  map2(\\v -> 2*v, a)\n",
     {"N", "M"}},
    {"s.fws",
     "SCALAR a, b, c;\ninput a, b;\nc = add(a, b);\nreturn c;\n",
     "SCALAR a, b, c;\ninput a, b;\nc = add(b, a);\nreturn c;\n",
     NULL,
     {"T"}},
};

static void test_text(void **state)
{
    (void)state;
    char *folder = make_folder();
    for (int i = 0; i < COUNTOF(source); i++) {
        File f = {source[i].name, source[i].text};
        Asked asked = {.file = f.name, .value = {8, 16}, .fingerprint = "1"};
        while (asked.n < 2 && source[i].size[asked.n]) {
            asked.sizes[asked.n] = source[i].size[asked.n];
            asked.n++;
        }
        write_all(folder, &f, 1);
        uint64_t before = key_of(folder, &asked);
        for (int k = 0; k < asked.n; k++) {
            Asked larger = asked;
            larger.value[k] *= 2;
            if (key_of(folder, &larger) == before)
                fail_msg("%s of %s is not in the key", asked.sizes[k], f.name);
        }
        if (!path_is_script(f.name)) {
            Asked fast = asked;
            fast.math = MATH_FAST;
            assert_true(key_of(folder, &fast) != before);
        }
        Asked elsewhere = asked;
        elsewhere.fingerprint = "2";
        assert_true(key_of(folder, &elsewhere) != before);
        write_all(folder, &(File){f.name, source[i].other}, 1);
        assert_true(key_of(folder, &asked) != before);
        if (source[i].same) {
            write_all(folder, &(File){f.name, source[i].same}, 1);
            assert_true(key_of(folder, &asked) == before);
        }
    }
    drop_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_template),
                                       cmocka_unit_test(test_template_alone),
                                       cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
