// SPDX-License-Identifier: Apache-2.0
//
// Every reader of what comes from outside, as a function of bytes. Each must end with what
// it read or with diagnostics: a crash, a hang, a BUG or running out of memory is a fault.
// It says whether there were none.
// Those that take a path get a file in a folder of this process.

#ifndef FW_TEST_READERS_H
#define FW_TEST_READERS_H

#include "calibrate/calibrate.h"
#include "fuse/fuse.h"
#include "model/dataset.h"
#include "problem/npy.h"
#include "report/report.h"
#include "rewriter/rewriter.h"
#include "search/steps.h"
#include "store/recorded.h"
#include "store/wisdom.h"
#include "tune/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static const char *reader_folder(void)
{
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/dev/shm/forewarp-fuzz-XXXXXX");
        if (!mkdtemp(folder)) {
            snprintf(folder, sizeof folder, "/tmp/forewarp-fuzz-XXXXXX");
            if (!mkdtemp(folder))
                BUG("no folder can be made: %s", strerror(errno));
        }
    }
    return folder;
}

static inline void reader_folder_remove(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (folder[0] && system(command) != 0)
        fprintf(stderr, "%s is left\n", folder);
    folder[0] = 0;
}

// The input as a file; the name is the reader's.
static const char *as_file(const char *name, const uint8_t *data, size_t size)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", reader_folder(), name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        BUG("cannot write %s", path);
    return path;
}

static void show(const Diags *diags)
{
    Buf text = buf_new();
    diags_print(&text, diags);
    buf_release(&text);
}

// What readers of text need.
typedef struct {
    Arena *arena;
    Diags diags;
    Source source;
} Text;

static Text text_open(const uint8_t *data, size_t size)
{
    Text t = {.arena = arena_new()};
    t.diags = (Diags){.arena = t.arena};
    t.source = (Source){"<fuzz>", arena_strndup(t.arena, (const char *)data, size), size};
    return t;
}

static bool text_close(Text *t)
{
    bool good = t->diags.errors == 0;
    show(&t->diags);
    arena_free(t->arena);
    return good;
}

// Programs --------------------------------------------------------------------------------

static void print_again(Ir *ir, const Program *program, Diags *diags)
{
    Buf once, twice;
    once = buf_new();
    twice = buf_new();
    ir_print(&once, program);
    Source source = {"<printed>", once.text, once.len};
    Program *again = ir_parse(ir, &source, diags);
    if (!again)
        BUG("a printed program is not read:\n%s", once.text);
    ir_print(&twice, again);
    if (strcmp(once.text, twice.text) != 0)
        BUG("printed twice, two texts:\n%s\n---\n%s", once.text, twice.text);
    buf_release(&once);
    buf_release(&twice);
}

static void bind(Program *program, Diags *diags)
{
    Binding binding[8];
    int n = 0;
    for (; n < program->sizes.len && n < COUNTOF(binding); n++)
        binding[n] = (Binding){program->sizes.at[n].name, 8 + n};
    ir_bind(program, binding, n, diags);
}

static bool read_program(const uint8_t *data, size_t size)
{
    Ir *ir = ir_new();
    Diags diags = {.arena = ir->arena};
    Source source = {"<fuzz>", arena_strndup(ir->arena, (const char *)data, size), size};
    Program *program = ir_parse(ir, &source, &diags);
    if (program) {
        print_again(ir, program, &diags);
        if (ir_infer(program, &diags))
            bind(program, &diags);
    }
    bool good = diags.errors == 0;
    show(&diags);
    ir_free(ir);
    return good;
}

static bool read_script(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    bool ok;
    Script *script = script_parse("<fuzz>", t.source.text, NULL, 0, &t.diags, &ok);
    show(&t.diags); // they point into the script
    t.diags.list.len = 0;
    script_free(script);
    return text_close(&t);
}

static bool read_derivation(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    Rewriting *rewriting = derivation_parse(t.arena, &t.source, &t.diags);
    Buf text = buf_new();
    if (rewriting)
        derivation_print(&text, rewriting);
    buf_release(&text);
    return text_close(&t);
}

// Problems --------------------------------------------------------------------------------

// Beside a problem lie the kernels and references that problems name.
static void link_files(const char *from)
{
    char path[512], *folder_of = realpath(from, NULL);
    DIR *open = folder_of ? opendir(folder_of) : NULL;
    for (struct dirent *file; open && (file = readdir(open));) {
        snprintf(path, sizeof path, "%s/%s", reader_folder(), file->d_name);
        Buf target = buf_new();
        buf_printf(&target, "%s/%s", folder_of, file->d_name);
        if (symlink(target.text, path) != 0 && errno != EEXIST)
            BUG("no link %s: %s", path, strerror(errno));
        buf_release(&target);
    }
    if (open)
        closedir(open);
    free(folder_of);
}

static bool read_problem(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    if (!folder[0]) {
        link_files("templates");
        link_files("test/fuzz/seeds");
    }
    Problem *problem = problem_load(as_file("problem.json", data, size), &t.diags);
    if (problem->kind)
        problem_bind(problem, NULL, 0, &t.diags);
    show(&t.diags);
    t.diags.list.len = 0;
    problem_free(problem);
    return text_close(&t);
}

static bool read_npy(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    int64_t shape[] = {4, 6}, raw[24];
    float values[24];
    NpyLayout layout = {"<i4", shape, 2, 4};
    const char *path = as_file("a.npy", data, size);
    Diags other; // each seed is right for one of the two ways to read
    other = (Diags){.arena = t.arena};
    npy_read_raw(path, &layout, raw, &other);
    Ir *ir = ir_new();
    Source source = {"<program>", "def f(a: [4][6]float): [4][6]float = a", 38};
    Program *program = ir_parse(ir, &source, &t.diags);
    if (program && ir_infer(program, &t.diags))
        npy_read(path, program->main->params[0]->type, values, &t.diags);
    if (other.errors == 0)
        t.diags.errors = 0;
    ir_free(ir);
    return text_close(&t);
}

// Spaces ----------------------------------------------------------------------------------

static Space *sample_space(void)
{
    static const int64_t some[] = {1, 2, 4, 8, 16};
    static const char *const word[] = {"global", "tiled", "a b'c"};
    static const char *const group[] = {"fixed", "any"};
    Space *space = space_new();
    space_add_ints(space, "lx", some, 5);
    space_add_ints(space, "ly", some, 4);
    space_add_words(space, "scheme", word, 3);
    space_add_words(space, "group", group, 2);
    return space;
}

static bool read_constraint(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    Space *space = sample_space();
    if (space_constrain(space, t.source.text, &t.diags) && space_build(space, &t.diags) &&
        space_count(space) > 0) {
        Point point;
        space_point(space, 0, &point);
    }
    show(&t.diags);
    t.diags.list.len = 0;
    space_free(space);
    return text_close(&t);
}

static bool read_point(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    Space *space = sample_space();
    Point point, again;
    bool good = point_parse(space, t.source.text, &point);
    if (good) {
        Buf text = buf_new();
        point_print(&text, space, &point);
        if (!point_parse(space, text.text, &again) || !point_equal(space, &point, &again))
            BUG("a printed point reads as another: %s", text.text);
        buf_release(&text);
    }
    space_free(space);
    return text_close(&t) && good;
}

static bool read_heuristic(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    Space *space = sample_space();
    StepsSize sizes[] = {{"N", 64}, {"M", 32}};
    Steps *steps = steps_parse(&t.source, t.arena, &t.diags);
    if (steps)
        steps_check(steps, space, sizes, COUNTOF(sizes), &t.diags);
    show(&t.diags);
    t.diags.list.len = 0;
    space_free(space);
    return text_close(&t);
}

static bool read_recorded(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    recorded_free(recorded_parse("<fuzz>", t.source.text, size, &t.diags));
    return text_close(&t);
}

// Data and models -------------------------------------------------------------------------

static bool read_dataset(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    Dataset *set = dataset_parse(&t.source, t.arena, &t.diags);
    if (set)
        dataset_columns(set, COLUMNS_ALL, t.arena);
    return text_close(&t);
}

static bool read_model(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    Model *model = model_load(as_file("model.json", data, size), &t.diags);
    if (model) {
        double y[2];
        Matrix x = matrix_new(2, model->d);
        model_predict(model, &x, y);
        matrix_free(&x);
    }
    model_free(model);
    return text_close(&t);
}

static bool read_weights(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    Weights *weights = NEW(t.arena, Weights);
    double count[PROPERTIES] = {0}, cost[PROPERTIES];
    if (weights_load(weights, as_file("weights.json", data, size), NULL, &t.diags))
        weights_predict(weights, count, cost);
    return text_close(&t);
}

static bool read_calibration(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    Calibration calibration;
    calibration_read(as_file("kernels.csv", data, size), t.arena, &calibration, &t.diags);
    return text_close(&t);
}

static bool read_run(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    Analysis analysis;
    Buf page = buf_new();
    Run *run = run_read(as_file("a.run.json", data, size), t.arena, &t.diags);
    if (run && run->n < 200) {
        if (analyse(run, NULL, NULL, t.arena, &analysis, &t.diags))
            report_page(&page, (const Analysis *[]){&analysis}, 1, false);
        analysis_release(&analysis);
    }
    buf_release(&page);
    return text_close(&t);
}

static void each(void *user, const StoreTrial *trial)
{
    *(size_t *)user += strlen(trial->point) + (size_t)trial->nsample;
}

static void count_best(void *user, const StoreBest *best)
{
    *(size_t *)user += strlen(best->point) + strlen(best->key.problem);
}

// What is read is printed and read again, and is then the same.
static bool read_wisdom(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    Wisdom wisdom = {0}, again = {0};
    Buf once, twice;
    once = buf_new();
    twice = buf_new();
    if (wisdom_parse(&t.source, t.arena, &wisdom, &t.diags)) {
        wisdom_print(&once, &wisdom);
        Source source = {"<printed>", once.text, once.len};
        if (!wisdom_parse(&source, t.arena, &again, &t.diags))
            BUG("printed wisdom is not read:\n%s", once.text);
        wisdom_print(&twice, &again);
        if (strcmp(once.text, twice.text) != 0)
            BUG("printed twice, two texts:\n%s\n---\n%s", once.text, twice.text);
        wisdom_merge(t.arena, &again, &wisdom);
    }
    buf_release(&once);
    buf_release(&twice);
    return text_close(&t);
}

static bool read_store(const uint8_t *data, size_t size)
{
    Text t = text_open(data, size);
    size_t bytes = 0;
    double value = 0;
    Store *store = store_open(as_file("trials.db", data, size), &t.diags);
    for (int64_t session = 1; store && session < 3; session++)
        store_each(store, session, each, &bytes, &t.diags);
    if (store)
        store_get_ceiling(store, "f", "copy", 0, &value, &t.diags);
    if (store)
        store_each_best(store, count_best, &bytes, &t.diags);
    store_close(store);
    return text_close(&t);
}

typedef struct {
    const char *name;
    bool (*read)(const uint8_t *data, size_t size);
    const char *seeds; // files that it reads without an error, by pattern
} ReaderRow;

static const ReaderRow reader_row[] = {
    {"program", read_program, "examples/*.fw test/programs/*.fw"},
    {"script", read_script, "examples/fusion/*.fws"},
    {"derivation", read_derivation, "test/fuzz/seeds/derivation*"},
    {"problem", read_problem, "templates/*.json test/fuzz/seeds/t1.json"},
    {"npy", read_npy, "test/fuzz/seeds/*.npy"},
    {"constraint", read_constraint, "test/fuzz/seeds/constraint*"},
    {"point", read_point, "test/fuzz/seeds/point*"},
    {"heuristic", read_heuristic, "heuristics/*.fwh"},
    {"recorded", read_recorded, "test/fuzz/seeds/recorded*"},
    {"dataset", read_dataset, "test/fuzz/seeds/dataset*"},
    {"model", read_model, "test/fuzz/seeds/model*"},
    {"weights", read_weights, "test/fuzz/seeds/weights*"},
    {"calibration", read_calibration, "test/fuzz/seeds/calibration*"},
    {"run", read_run, "test/fuzz/seeds/*.run.json"},
    {"wisdom", read_wisdom, "test/fuzz/seeds/wisdom*"},
    {"store", read_store, "test/fuzz/seeds/store*"},
};
enum { READERS = COUNTOF(reader_row) };

#endif
