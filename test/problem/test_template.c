// SPDX-License-Identifier: Apache-2.0
//
// Problem files: their spaces, lengths, macros and jobs, the lists of T1 files, and what is
// wrong with wrong ones.

#include "problem/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    Arena *arena;
    Diags diags;
    Problem *problem;
} Setting;

static Setting setting(void)
{
    Setting s = {.arena = arena_new()};
    s.diags = (Diags){.arena = s.arena};
    return s;
}

static void done(Setting *s)
{
    problem_free(s->problem);
    arena_free(s->arena);
}

static Template *load(Setting *s, const char *path, const Binding *binding, int n)
{
    s->problem = problem_load(path, &s->diags);
    if (!s->problem->kind || !problem_bind(s->problem, binding, n, &s->diags)) {
        Buf text = buf_new();
        diags_print(&text, &s->diags);
        print_message("%s", text.text);
        buf_release(&text);
        fail();
    }
    return s->problem->template;
}

// A problem file of the given text, beside the kernel of the tests.
static bool refused(const char *text, const char *why)
{
    Setting s = setting();
    const char *path = "test/programs/templates/refused.json";
    s.problem = problem_new(path, text, strlen(text));
    bool ok = template_load(s.problem, &s.diags);
    if (ok) {
        s.problem->kind = &problem_template;
        ok = problem_bind(s.problem, NULL, 0, &s.diags);
    }
    Buf said = buf_new();
    diags_print(&said, &s.diags);
    bool right = !ok && strstr(said.text, why) && diags_exit_status(&s.diags) == 2;
    if (!right)
        print_message("wanted `%s`, got %s: %s\n", why, ok ? "no error" : "", said.text);
    buf_release(&said);
    done(&s);
    return right;
}

// Paper 002, Table 2: convolution, raycasting, stereo. CLBlast's parameters, counted in
// Python over the whole product.
static void test_spaces(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        double raw, valid;
    } golden[] = {{"templates/convolution.json", 131072, 131072},
                  {"templates/raycasting.json", 655360, 655360},
                  {"templates/stereo.json", 2359296, 2359296},
                  {"templates/gemm.json", 663552, 120800}};
    for (int i = 0; i < COUNTOF(golden); i++) {
        Setting s = setting();
        Template *t = load(&s, golden[i].path, NULL, 0);
        assert_true(space_raw_count(t->space) == golden[i].raw);
        assert_true(space_count(t->space) == golden[i].valid);
        done(&s);
    }
}

static void test_sizes(void **state)
{
    (void)state;
    const Binding binding[] = {{"H", 30}, {"W", 17}};
    Setting s = setting();
    Template *t = load(&s, "templates/convolution.json", binding, 2);
    assert_string_equal(problem_label(s.problem), "convolution H=30 W=17");
    const TemplateArg *padded = &t->arg.at[template_arg(t, "padded")];
    assert_int_equal(padded->length[0], 34);
    assert_int_equal(padded->count, 34 * 21);
    assert_true(problem_bytes(s.problem) == 4.0 * (30 * 17 * 2 + 25));
    done(&s);
}

// The view of an image with a border shows the same numbers, and zeros around.
static void test_views(void **state)
{
    (void)state;
    const Binding binding[] = {{"H", 5}, {"W", 7}};
    Setting s = setting();
    Template *t = load(&s, "templates/convolution.json", binding, 2);
    ProblemData *data = s.problem->kind->data(s.problem, 3, NULL, s.arena, &s.diags);
    assert_non_null(data);
    const float *image = data->buffer[t->arg.at[template_arg(t, "image")].buffer].init;
    const float *padded = data->buffer[t->arg.at[template_arg(t, "padded")].buffer].init;
    for (int y = 0; y < 9; y++)
        for (int x = 0; x < 11; x++) {
            bool inside = y >= 2 && y < 7 && x >= 2 && x < 9;
            float want = inside ? image[(y - 2) * 7 + x - 2] : 0;
            assert_true(padded[y * 11 + x] == want);
        }
    const RunnerBuffer *texture =
        &data->buffer[t->arg.at[template_arg(t, "padded_texture")].buffer];
    assert_int_equal(texture->image.dims, 2);
    assert_int_equal(texture->image.size[0], 11);
    assert_int_equal(texture->image.size[1], 9);
    done(&s);
}

static void test_job(void **state)
{
    (void)state;
    const Binding binding[] = {{"H", 100}, {"W", 60}};
    Setting s = setting();
    Template *t = load(&s, "templates/convolution.json", binding, 2);
    DeviceInfo device = {.id = "opencl:0", .target = "opencl"};
    Variants variants;
    Candidate candidate;
    assert_true(variants_open(&variants, s.problem, &device, &s.diags));
    Point point = t->plain;
    assert_true(space_set(t->space, &point, "PX", "4"));
    assert_true(space_set(t->space, &point, "PADDING", "1"));
    assert_true(variants_candidate(&variants, &point, "k", s.arena, &candidate, &s.diags));
    const JobLaunch *launch = &candidate.job.launch[0];
    assert_int_equal(launch->global[0], 16);  // ceil(60 / 64) groups of 16
    assert_int_equal(launch->global[1], 112); // ceil(100 / 16)
    assert_int_equal(launch->narg, 3);
    assert_int_equal(launch->arg[0].buffer, 1); // padded, for the other three are left out
    assert_non_null(strstr(candidate.job.prelude, "#define PX 4\n"));
    assert_non_null(strstr(candidate.job.source, "#line 1 \"convolution.cl\"\n"));
    candidate_release(&candidate);
    DeviceInfo gpu = {.id = "cuda:0", .target = "cuda"};
    variants_close(&variants);
    assert_false(variants_open(&variants, s.problem, &gpu, &s.diags));
    variants_close(&variants);
    done(&s);
}

// Layout of the file does not count; its content and the kernel's text do.
static void test_hash(void **state)
{
    (void)state;
    const Binding binding[] = {{"N", 2048}};
    Setting a = setting(), b = setting();
    load(&a, "test/programs/templates/bad.json", NULL, 0);
    load(&b, "test/programs/templates/bad.json", binding, 1);
    assert_true(problem_hash(a.problem) != problem_hash(b.problem));
    done(&a);
    done(&b);
}

static void test_elements(void **state)
{
    (void)state;
    int width;
    unsigned char bytes[8];
    const double in[] = {-3, 200, 70000};
    double out[3];
    assert_null(element_find("float5", &width));
    assert_null(element_find("floaty", &width));
    const Element *element = element_find("uchar16", &width);
    assert_int_equal(width, 16);
    element_pack(element, &in[1], 1, bytes);
    assert_int_equal(bytes[0], 200);
    static const char *const names[] = {"int", "long", "float", "double"};
    for (int i = 0; i < COUNTOF(names); i++) {
        char room[24];
        element = element_find(names[i], &width);
        element_pack(element, in, 3, room);
        element_unpack(element, room, 3, out);
        assert_memory_equal(in, out, sizeof in);
    }
    element = element_find("short", &width);
    element_pack(element, in, 1, bytes);
    element_unpack(element, bytes, 1, out);
    assert_true(out[0] == -3);
}

static void check_list(const Template *t, Setting *s, const char *text, const char *want)
{
    json_t *list = list_parse(t, "here", text, &s->diags);
    assert_non_null(list);
    char *got = json_dumps(list, JSON_COMPACT);
    assert_string_equal(got, want);
    free(got);
    json_decref(list);
}

static void test_lists(void **state)
{
    (void)state;
    Setting s = setting();
    Template *t = load(&s, "test/programs/templates/bad.json", NULL, 0);
    check_list(t, &s, "[1, 2, 4]", "[1,2,4]");
    check_list(t, &s, " list(range(1, 10, 3)) ", "[1,4,7]");
    check_list(t, &s, "range(3)", "[0,1,2]");
    check_list(t, &s, "[2**i for i in range(0, 6)]", "[1,2,4,8,16,32]");
    check_list(t, &s, "[1] + [32*i for i in range(1,4)]", "[1,32,64,96]");
    check_list(t, &s, "[2**i for i in range(8) if i % 2 == 1 and i > 1]", "[8,32,128]");
    check_list(t, &s, "['a', \"b\"]", "[\"a\",\"b\"]");
    check_list(t, &s, "[0.5, True, N // 2]", "[0.5,true,512]");
    assert_null(list_parse(t, "here", "nothing", &s.diags));
    assert_null(list_parse(t, "here", "range(1, 2, 0)", &s.diags));
    assert_null(list_parse(t, "here", "[2**j for i in range(2)]", &s.diags));
    done(&s);
}

static void test_t1(void **state)
{
    (void)state;
    Setting s = setting();
    Template *t = load(&s, "test/programs/templates/t1.json", NULL, 0);
    assert_true(space_raw_count(t->space) == 6 * 4 * 2);
    // block_size_x * tile <= 64 leaves 6 + 6 + 5 + 4 pairs; `mirror` only where tile > 1.
    assert_true(space_count(t->space) == 6 + 2 * (6 + 5 + 4));
    DeviceInfo device = {.id = "opencl:0", .target = "opencl"};
    Variants variants;
    Candidate candidate;
    assert_true(variants_open(&variants, s.problem, &device, &s.diags));
    Point point = t->plain;
    assert_true(space_set(t->space, &point, "tile", "2"));
    assert_true(variants_candidate(&variants, &point, "k", s.arena, &candidate, &s.diags));
    assert_int_equal(candidate.job.launch[0].local[0], 16);
    assert_int_equal(candidate.job.launch[0].global[0], 16 * 32); // ceil(1000 / 32) groups
    assert_non_null(strstr(candidate.job.prelude, "#define grid_size_x 32\n"));
    candidate_release(&candidate);
    variants_close(&variants);
    done(&s);
}

#define FILES      "\"files\": \"bad.cl\", "
#define PARAMETERS "\"parameters\": {\"A\": [1, 2]}, "
#define ARGUMENTS  "\"arguments\": [{\"name\": \"x\", \"type\": \"float\", \"shape\": 4}], "
#define LAUNCH     "\"launch\": {\"kernel\": \"twice\", \"global\": 4, \"local\": 1}"

static void test_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"{\"files\": ", "refused.json:1:10: error J001"},
        {"[1]", "expected an object { }"},
        {"{\"file\": 1}", "file: there is no such key"},
        {"{\"files\": \"none.cl\", " PARAMETERS ARGUMENTS LAUNCH "}",
         "files: cannot read test/programs/templates/none.cl"},
        {"{\"files\": [], " PARAMETERS ARGUMENTS LAUNCH "}", "files: expected a file"},
        {"{" FILES "\"parameters\": {\"A\": []}, " ARGUMENTS LAUNCH "}",
         "parameters.A: expected 1 to 32767 values"},
        {"{" FILES "\"parameters\": {\"A\": [1, 1]}, " ARGUMENTS LAUNCH "}",
         "parameters.A[1]: the value is given twice"},
        {"{" FILES "\"parameters\": {\"A b\": [1]}, " ARGUMENTS LAUNCH "}",
         "`A b` cannot name a macro"},
        {"{" FILES PARAMETERS "\"sizes\": {\"A\": 1}, " ARGUMENTS LAUNCH "}",
         "parameters.A: the name is given twice"},
        {"{" FILES PARAMETERS ARGUMENTS "\"language\": \"metal\", " LAUNCH "}",
         "language: `metal` is not one of opencl, cuda"},
        {"{" FILES PARAMETERS "\"constraints\": [\"B > 1\"], " ARGUMENTS LAUNCH "}",
         "constraints[0]:1:1: error S002: there is no parameter `B`"},
        {"{" FILES PARAMETERS "\"constraints\": [\"A > 2\"], " ARGUMENTS LAUNCH "}",
         "no point satisfies the constraints"},
        {"{" FILES PARAMETERS "\"arguments\": [{\"name\": \"x\", \"type\": \"flot\", "
         "\"shape\": 4}], " LAUNCH "}",
         "arguments[0].type: `flot` is not an element type"},
        {"{" FILES PARAMETERS "\"arguments\": [{\"name\": \"x\", \"type\": \"float\", "
         "\"shape\": \"4 * B\"}], " LAUNCH "}",
         "arguments[0].shape:1:5: error S002"},
        {"{" FILES PARAMETERS "\"arguments\": [{\"name\": \"x\", \"type\": \"float\", "
         "\"shape\": \"4 * A\", \"access\": \"out\"}], " LAUNCH "}",
         "arguments[0].shape: it depends on parameters"},
        {"{" FILES PARAMETERS "\"arguments\": [{\"name\": \"x\", \"type\": \"float\", "
         "\"shape\": -4}], " LAUNCH "}",
         "must be a whole number from 1"},
        {"{" FILES PARAMETERS ARGUMENTS
         "\"launch\": {\"kernel\": \"twice\", \"local\": 1}}",
         "launch: expected one of `global` (work-items) and `groups`"},
        {"{" FILES PARAMETERS ARGUMENTS "\"launch\": {\"kernel\": \"twice\", \"global\": "
         "\"4 +\", \"local\": 1}}",
         "launch.global[0]:1:4: error S001"},
        {"{" FILES PARAMETERS ARGUMENTS LAUNCH
         ", \"reference\": {\"npy\": {\"x\": \"y\"}}}",
         "reference.npy.x: there is no output `x`"},
        {"{" FILES PARAMETERS ARGUMENTS LAUNCH ", \"tolerance\": -1}",
         "tolerance: expected a number of at least 0"},
    };
    bool right = true;
    for (int i = 0; i < COUNTOF(wrong); i++)
        right &= refused(wrong[i][0], wrong[i][1]);
    assert_true(right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spaces),  cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_views),   cmocka_unit_test(test_job),
        cmocka_unit_test(test_hash),    cmocka_unit_test(test_elements),
        cmocka_unit_test(test_lists),   cmocka_unit_test(test_t1),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
