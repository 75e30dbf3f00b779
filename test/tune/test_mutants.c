// SPDX-License-Identifier: Apache-2.0
//
// Does a wrong kernel pass? Kernels of random points are spoilt, one place each, as a
// compiler might spoil them, and judged as a tuning judges its best: with the inputs of the
// search and with those besides. What passes and is wrong for other inputs, drawn anew, has
// escaped.
//
//   test_mutants FILE SIZES DEVICE SEED COUNT [WAY]   prints what became of COUNT mutants,
//   of
//                                                      those spoilers whose names begin so
//
// test/truth/mutants.py runs it over random programs.
#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Variants to spoil a text
// --------------------------------------------------------------------

typedef enum {
    BY_TEXT,   // `what` becomes `with`
    BY_NUMBER, // the number after `what` becomes one less
    BY_LINE,   // the statement with `what` is left out
    BY_STORE,  // `with`, of the element that was stored, follows the statement with `what`
} Way;

typedef struct {
    const char *name;
    Way way;
    const char *what, *with;
} Spoiler;

static const Spoiler spoilers[] = {
    {"off by one", BY_TEXT, "]", " + 1]"},
    {"off by one", BY_TEXT, "]", " - 1]"},
    {"other operation", BY_TEXT, " + ", " - "},
    {"other operation", BY_TEXT, " - ", " + "},
    {"other operation", BY_TEXT, "*", " + "},
    {"other operation", BY_TEXT, " / ", "*"},
    {"missing barrier", BY_TEXT, "barrier(", "(void)("},
    {"wrong border", BY_TEXT, "min(", "max("},
    {"wrong border", BY_TEXT, "max(", "min("},
    {"wrong border", BY_TEXT, " <= ", " < "},
    {"wrong border", BY_TEXT, " ? ", " || 1 ? "},
    {"last one dropped", BY_NUMBER, " < ", NULL},
    {"stale buffer", BY_LINE, "] = ", NULL},
    {"stale variable", BY_LINE, " += ", NULL},
    {"wrong for what is no number", BY_STORE, "] = ", "if (%s != %s) %s = 0;"},
    {"wrong for one element", BY_STORE,
     "] = ", "if (%s > 0 && &%s - (%s *)0 == 5) %s += 1;"},
    {"wrong in the last place but two", BY_STORE, "] = ", "%s += %s / 1000000;"},
};

static const char *nth(const char *text, const char *what, int n)
{
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        if (n-- == 0)
            return at;
    return NULL;
}

static int count_of(const char *text, const char *what)
{
    int n = 0;
    while (nth(text, what, n))
        n++;
    return n;
}

static const char *line_of(const char *text, const char *at)
{
    while (at > text && at[-1] != '\n')
        at--;
    return at + strspn(at, " ");
}

// `with`, in which each %s is the text of an element.
static void put_with(Buf *out, const char *with, const char *element, int len)
{
    for (; *with; with++) {
        if (with[0] == '%' && with[1] == 's') {
            buf_write(out, element, (size_t)len);
            with++;
        } else {
            buf_putc(out, *with);
        }
    }
}

// Spoils the text at one place; false: it cannot be spoilt there.
static bool spoil(const Spoiler *s, const char *text, Rng *rng, Buf *out)
{
    int n = count_of(text, s->what);
    if (n == 0)
        return false;
    const char *at = nth(text, s->what, (int)rng_below(rng, (uint64_t)n));
    const char *after = at + strlen(s->what), *line = line_of(text, at);
    buf_clear(out);
    switch (s->way) {
    case BY_TEXT:
        buf_write(out, text, (size_t)(at - text));
        buf_printf(out, "%s%s", s->with, after);
        return true;
    case BY_NUMBER: {
        char *end;
        long long number = strtoll(after, &end, 10);
        buf_write(out, text, (size_t)(after - text));
        buf_printf(out, "%lld%s", number - 1, end);
        return end != after;
    }
    case BY_LINE:
        buf_write(out, text, (size_t)(line - text));
        buf_printf(out, "if (0) %s", line);
        return true;
    case BY_STORE: {
        const char *end = strchr(at, ';');
        buf_write(out, text, (size_t)(end + 1 - text));
        buf_putc(out, ' ');
        put_with(out, s->with, line, (int)(at + 1 - line));
        buf_puts(out, end + 1);
        return !memchr(line, ' ', 6); // a declaration is no store
    }
    }
    return false;
}

// Judging ---------------------------------------------------------------------------------

enum { SETS = 1 + 2 * MORE_SETS, JUDGED = 1 + MORE_SETS };

typedef struct {
    Problem *problem;
    const char *device, *way;
    char folder[32];
    Runner *runner;
    Derivation *derivation;
    const Target *target;
    Buf prelude;
    ProblemData *data[SETS]; // the last MORE_SETS are what nobody judges by
    Arena *arena;
    Diags diags;
    Rng rng;
    int serial;
    int caught, unbuilt, passed, escaped;
} Mutants;

static RunnerConfig config_of(const Mutants *m, int set)
{
    return (RunnerConfig){.device = m->device,
                          .workers = 1,
                          .samples = 1,
                          .run_limit_s = 5,
                          .build_limit_s = 60,
                          .nbuffer = m->data[set]->nbuffer,
                          .buffer = m->data[set]->buffer,
                          .tolerance = m->data[set]->tolerance};
}

static TrialStatus judge(Mutants *m, const Job *job, int set)
{
    RunnerConfig config = config_of(m, set);
    Trial trial = {0};
    assert_true(runner_fill(m->runner, &config, &m->diags));
    assert_true(runner_compute(m->runner, job, &trial, NULL, &m->diags));
    TrialStatus status = trial.status;
    trial_release(&trial);
    return status;
}

// The first set for which the job is not right; SETS: it is for all.
static int first_wrong(Mutants *m, const Job *job, TrialStatus *status)
{
    for (int set = 0; set < SETS; set++)
        if ((*status = judge(m, job, set)) != TRIAL_OK)
            return set;
    return SETS;
}

static void judge_mutant(Mutants *m, const Spoiler *spoiler, Candidate *candidate,
                         const Buf *text)
{
    TrialStatus status;
    Job job = candidate->job;
    job.source = text->text;
    int set = first_wrong(m, &job, &status);
    if (status == TRIAL_BUILD_FAILED)
        m->unbuilt++;
    else if (set == SETS)
        m->passed++;
    else if (set < JUDGED)
        m->caught++;
    else {
        Buf point = buf_new();
        point_print(&point, derive_space(m->derivation), candidate->point);
        printf("escaped: %s, seen with set %d: %s, %s\n%s\n", spoiler->name, set,
               problem_label(m->problem), point.text, text->text);
        buf_release(&point);
        m->escaped++;
    }
}

// One mutant; false: the drawn way is none for the drawn point.
static bool try_one(Mutants *m)
{
    Point point;
    Candidate candidate;
    Arena *arena = arena_new();
    Buf text = buf_new();
    space_sample(derive_space(m->derivation), &m->rng, &point);
    const char *name = arena_printf(arena, "k%d", m->serial++);
    bool made = candidate_make(m->problem, m->derivation, &point, name, m->target,
                               m->prelude.text, arena, &candidate, &m->diags);
    const Spoiler *spoiler = &spoilers[rng_below(&m->rng, COUNTOF(spoilers))];
    bool asked = strncmp(spoiler->name, m->way, strlen(m->way)) == 0;
    bool spoilt = made && asked && spoil(spoiler, candidate.job.source, &m->rng, &text);
    if (spoilt)
        judge_mutant(m, spoiler, &candidate, &text);
    if (made)
        candidate_release(&candidate);
    buf_release(&text);
    arena_free(arena);
    return spoilt;
}

static void open_mutants(Mutants *m, const char *file, const Binding *size, int nsize,
                         const char *device, uint64_t seed)
{
    *m = (Mutants){.device = device, .way = "", .folder = "/tmp/forewarp-test-XXXXXX"};
    assert_non_null(mkdtemp(m->folder));
    m->arena = arena_new();
    m->diags = (Diags){.arena = m->arena};
    m->rng = rng_new(seed);
    const Workplace place = {.folder = m->folder};
    const char *how;
    m->problem = problem_load(file, &m->diags);
    bool ok = m->problem->kind && problem_bind(m->problem, size, nsize, &m->diags);
    m->data[0] = ok ? data_random(m->problem, 1, m->arena) : NULL;
    ok = ok &&
         reference_compute(m->problem, m->data[0], device, &place, m->arena, &how,
                           &m->diags) &&
         reference_more(m->problem, 1, MORE_SETS, m->data + 1, device, &place, m->arena,
                        &m->diags) == MORE_SETS &&
         reference_more(m->problem, 2 + seed, MORE_SETS, m->data + JUDGED, device, &place,
                        m->arena, &m->diags) == MORE_SETS;
    if (ok) {
        RunnerConfig config = config_of(m, 0);
        config.folder = place.folder;
        m->runner = runner_open(&config, &m->diags);
    }
    ok = ok && m->runner &&
         (m->derivation =
              derive_new(m->problem->bound, runner_device(m->runner), &m->diags));
    if (!ok) {
        Buf why = buf_new();
        diags_print(&why, &m->diags);
        fputs(why.text, stderr);
        buf_release(&why);
    }
    assert_true(ok);
    m->target = target_find(runner_device(m->runner)->target);
    m->prelude = buf_new();
    emit_prelude(&m->prelude, m->target, m->problem->bound);
}

static void close_mutants(Mutants *m)
{
    derive_free(m->derivation);
    runner_close(m->runner);
    buf_release(&m->prelude);
    problem_free(m->problem);
    arena_free(m->arena);
    remove_tree(m->folder);
}

static void try_some(Mutants *m, int count)
{
    for (int i = 0; i < 20 * count * (*m->way ? COUNTOF(spoilers) : 1) &&
                    m->caught + m->passed + m->escaped < count;
         i++)
        try_one(m);
    printf("%s: %d mutants caught, %d right for all inputs, %d not built, %d escaped\n",
           problem_label(m->problem), m->caught, m->passed, m->unbuilt, m->escaped);
}

// A few, of a program with decisions in doubt, and of one whose folds cancel.
static void test_mutants(void **state)
{
    (void)state;
    static const char *const file[] = {"test/truth/unsharp.fw", "test/truth/layernorm.fw"};
    const Binding size[] = {{.name = "N", .value = 19}, {.name = "M", .value = 37}};
    for (int i = 0; i < COUNTOF(file); i++) {
        Mutants m;
        open_mutants(&m, file[i], size, 2, "host", 5);
        try_some(&m, 6);
        assert_true(m.caught > 0);
        assert_int_equal(m.escaped, 0);
        close_mutants(&m);
    }
}

// "N=19,M=37"; returns how many.
static int read_sizes(char *text, Binding *size, int most)
{
    int n = 0;
    for (char *at = strtok(text, ","); at && n < most; at = strtok(NULL, ",")) {
        char *equals = strchr(at, '=');
        if (!equals)
            break;
        *equals = 0;
        size[n++] = (Binding){.name = at, .value = atoll(equals + 1)};
    }
    return n;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    if (argc == 6 || argc == 7) {
        Binding size[16];
        Mutants m;
        int n = read_sizes(argv[2], size, COUNTOF(size));
        open_mutants(&m, argv[1], size, n, argv[3], (uint64_t)atoll(argv[4]));
        m.way = argc == 7 ? argv[6] : "";
        try_some(&m, atoi(argv[5]));
        close_mutants(&m);
        return m.escaped > 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mutants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
