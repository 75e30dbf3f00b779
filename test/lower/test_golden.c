// SPDX-License-Identifier: Apache-2.0
//
// Golden files of the passes over the kernel IR: golden/*.txt. Each holds a program, its
// sizes, a point of its space on an H200 (as OpenCL; streams, rings, pairs and lanes as
// CUDA, what loops over items need as C, tasks as OpenCL on a processor), the pass, and the
// kernel before and after it.
// FW_UPDATE=1 writes what came out into the files: read the difference before you commit.

#include "calibrate/describe.h"
#include "print.h"
#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char folder[] = "test/lower/golden";

// The sections of a file; `-- NAME` begins one. What stands above the first is a remark.
enum { PROGRAM, SIZES, POINT, PASS_NAME, BEFORE, AFTER, SECTIONS };
static const char *const section[SECTIONS] = {"program", "sizes",  "point",
                                              "pass",    "before", "after"};

typedef struct {
    const char *remark, *text[SECTIONS];
} Golden;

// What the pass saw and what it left.
typedef struct {
    const char *pass;
    Buf now, before, after;
    bool seen;
} Seen;

static const char *start_of(const char *text, const char *name)
{
    Buf head = buf_new();
    buf_printf(&head, "-- %s\n", name);
    const char *at = strstr(text, head.text);
    buf_release(&head);
    return at;
}

static Golden read_golden(Arena *arena, const char *path)
{
    Buf file;
    Golden golden;
    file = buf_new();
    assert_true(file_read(path, FILE_DATA_MOST, &file));
    const char *next = file.text + file.len;
    for (int i = SECTIONS - 1; i >= 0; i--) {
        const char *at = start_of(file.text, section[i]);
        if (!at)
            fail_msg("%s: no section `-- %s`", path, section[i]);
        const char *text = strchr(at, '\n') + 1;
        golden.text[i] = arena_strndup(arena, text, (size_t)(next - text));
        next = at;
    }
    golden.remark = arena_strndup(arena, file.text, (size_t)(next - file.text));
    buf_release(&file);
    return golden;
}

static void write_golden(const Golden *golden, const char *path)
{
    Buf file = buf_new();
    buf_puts(&file, golden->remark);
    for (int i = 0; i < SECTIONS; i++)
        buf_printf(&file, "-- %s\n%s", section[i], golden->text[i]);
    assert_true(file_write(path, file.text, file.len));
    buf_release(&file);
}

static const char *first_line(Arena *arena, const char *text)
{
    return arena_strndup(arena, text, strcspn(text, "\n"));
}

static void on_pass(void *user, const char *pass, const Kernel *kernel)
{
    Seen *seen = user;
    bool wanted = strcmp(pass, seen->pass) == 0;
    if (wanted)
        buf_puts(&seen->before, seen->now.text);
    buf_clear(&seen->now);
    kir_print(&seen->now, kernel);
    if (wanted)
        buf_puts(&seen->after, seen->now.text);
    seen->seen |= wanted;
}

static int read_sizes(char *text, Binding *binding, int max)
{
    int n = 0;
    char *save = NULL;
    for (char *word = strtok_r(text, ",\n", &save); word && n < max;
         word = strtok_r(NULL, ",\n", &save)) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value++ = 0;
        binding[n++] = (Binding){word, atoll(value)};
    }
    return n;
}

static void set_point(const Space *space, char *text, Point *point)
{
    char *save = NULL;
    for (char *word = strtok_r(text, " \n", &save); word;
         word = strtok_r(NULL, " \n", &save)) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value++ = 0;
        if (!space_set(space, point, word, value))
            fail_msg("%s cannot be %s", word, value);
    }
}

static void see_pass(const Golden *golden, const char *path, Seen *seen)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = problem_parse(path, golden->text[PROGRAM], &diags);
    Binding binding[4];
    int n = read_sizes(arena_strdup(arena, golden->text[SIZES]), binding, 4);
    assert_non_null(problem->program);
    assert_true(problem_bind(problem, binding, n, &diags));
    DeviceModel model;
    DeviceInfo device;
    assert_true(device_model_find("nvidia-h200", &model));
    describe_model(&model, &device);
    // Lanes exchange registers there, and copies go on by themselves.
    if (strstr(path, "/stream") || strstr(path, "/ring") || strstr(path, "/pairs") ||
        strstr(path, "/lanes"))
        describe_target("cuda", &device);
    if (strstr(path, "/ranges") || strstr(path, "/blocks") ||
        strstr(path, "/interchange") || strstr(path, "/invariants") ||
        strstr(path, "/simd"))
        describe_target("c", &device);
    device.is_cpu |= strstr(path, "/tasks") != NULL;
    problem->bound->extra |= 1u << EXTRA_BANKS;
    Derivation *derivation = derive_new(problem->bound, &device, &diags);
    Point point = {0}; // what the file does not say is the first choice
    set_point(derive_space(derivation), arena_strdup(arena, golden->text[POINT]), &point);
    Expr *body = derive_body(derivation, &point, &diags);
    KernelOptions options = derive_options(derivation, &point);
    options.observe = on_pass;
    options.user = seen;
    assert_non_null(lower(problem->bound, body, &options, arena, &diags));
    derive_free(derivation);
    problem_free(problem);
    arena_free(arena);
}

static int check_file(const char *path)
{
    Arena *arena = arena_new();
    Golden golden = read_golden(arena, path);
    Seen seen = {.pass = first_line(arena, golden.text[PASS_NAME])};
    seen.now = buf_new();
    seen.before = buf_new();
    seen.after = buf_new();
    see_pass(&golden, path, &seen);
    bool same = seen.seen && strcmp(seen.before.text, golden.text[BEFORE]) == 0 &&
                strcmp(seen.after.text, golden.text[AFTER]) == 0;
    const char *update = getenv("FW_UPDATE");
    if (!same && seen.seen && update && strcmp(update, "1") == 0) {
        golden.text[BEFORE] = seen.before.text;
        golden.text[AFTER] = seen.after.text;
        write_golden(&golden, path);
    } else if (!same) {
        print_message("%s: before %s:\n%sand after it:\n%s", path, seen.pass,
                      seen.before.text, seen.after.text);
    }
    buf_release(&seen.now);
    buf_release(&seen.before);
    buf_release(&seen.after);
    arena_free(arena);
    return !same;
}

// Every file, and at least one for every pass.
static void test_golden(void **state)
{
    (void)state;
    int wrong = 0, files = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strlen(entry->d_name) < 4 || entry->d_name[0] == '.')
            continue;
        wrong += check_file(path);
        files++;
    }
    closedir(dir);
#define PASS(name, condition)                                                              \
    assert_int_equal(access("test/lower/golden/" #name ".txt", R_OK), 0);
#include "kir/passes.def"
#undef PASS
    assert_true(files > 0);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
