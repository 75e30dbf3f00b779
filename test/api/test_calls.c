// SPDX-License-Identifier: Apache-2.0
//
// Calls of the public interface in any order, with arguments at random: objects of several
// programs or none, texts that are right, spoilt or NULL, numbers and counts of all kinds.
// A call that fails has to say why; a crash, a leak (make SAN=1) or a fault of forewarp's
// own (BUG) is a failure of the test. FW_SEED: another sequence; FW_CALLS: how many calls.
// This program is its own worker.

#include "forewarp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 3, CALLS = 1000, ARRAYS = 8, ARRAY_BYTES = 1 << 16, TEXT_MOST = 1024 };

// A program, and sizes that it takes.
static const char *const programs[][2] = {
    {"size N\ndef twice(x: [N]float): [N]float = x |> map(\\v -> 2*v)\n", "N=64"},
    {"size N, M\ndef sums(a: [N][M]float) = a |> map(\\r -> r |> reduce(+, 0))\n",
     "N=33,M=7"},
    {"size N generic\ndef scaled(a: float, x: [N]float) = x |> map(\\v -> a*v)\n",
     "N=16:64"},
    {"size N\ndef pairs(x: [N]int, y: [N]int) = zip(x, y) |> map(\\u v -> (u + v, u > "
     "v))\n",
     "N=5"}};
static const char *const sizes[] = {NULL,      "",    "N=64", "N=33,M=7",
                                    "N=16:64", "N=0", "N=-5", "N=9223372036854775807",
                                    "M=3",     "N",   "=",    ",,"};
static const char *const points[] = {NULL, "",     "lx=1", "lx=64 lx=64",
                                     "=",  "\xff", "lx=",  "threads=-1"};
static const char *const words[] = {NULL,  "",     "auto",      "random", "lx >= 32",
                                    "1 +", "((((", "opencl:99", "host",   "cuda",
                                    "{",   "\"",   "/no/such"};
static const int numbers[] = {0, 1, 2, 3, -1, 7, INT_MAX, INT_MIN};

#define ANY(list) (list)[below(sizeof(list) / sizeof(list)[0])]

typedef struct {
    fw_executable *kernel;
    fw_plan *plan; // lives as long
    int n;         // arrays that it takes
} Loaded;

typedef struct {
    fw_device *host;
    char store[96];
    fw_problem *problem[SLOTS];
    fw_plan *plan[SLOTS];
    fw_search *search[SLOTS];
    int searched[SLOTS]; // the problem that a search needs
    Loaded loaded[SLOTS];
    _Alignas(64) char array[ARRAYS][ARRAY_BYTES];
    long failed, done; // of the calls that can fail
} World;

static uint64_t seed = 1;

static unsigned below(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

// A call that can fail: why it did is in the message.
static void judge_of(const char *call, World *w, bool ok, char *message)
{
    if (!ok && (!message || !message[0]))
        fail_msg("%s: it failed and did not say why", call);
    *(ok ? &w->done : &w->failed) += 1;
    fw_free_text(message);
}

#define judge(...) judge_of(__func__, __VA_ARGS__)

// Sometimes with a character less, another or one more.
static const char *spoilt(const char *program, char *text)
{
    strcpy(text, program);
    size_t n = strlen(text), at = below((unsigned)n);
    switch (below(8)) {
    case 0: return NULL;
    case 1: memmove(text + at, text + at + 1, n - at); break;
    case 2: text[at] = (char)(1 + below(255)); break;
    case 3: memmove(text + at + 1, text + at, n - at + 1); break;
    default:;
    }
    return text;
}

static fw_plan_options options_of(World *w)
{
    fw_plan_options o = {.rigor = below(2) ? FW_WISDOM_ONLY : FW_ESTIMATE,
                         .store = w->store,
                         .worker = "/proc/self/exe",
                         .seed = below(3)};
    if (below(4) == 0)
        o.strategy = ANY(words);
    if (below(4) == 0)
        o.where = ANY(words);
    if (below(4) == 0)
        o.enough = below(2) ? -1 : NAN;
    if (below(16) == 0)
        o.rigor = (fw_rigor)77;
    if (o.rigor != FW_ESTIMATE && o.rigor != FW_WISDOM_ONLY)
        o.budget_trials = 1, o.budget_s = 2;
    return o;
}

static void free_search(World *w, unsigned i)
{
    fw_search_free(w->search[i]);
    w->search[i] = NULL;
}

static void do_problem(World *w)
{
    char text[TEXT_MOST], *m = NULL;
    unsigned i = below(SLOTS);
    const char *const *known = ANY(programs);
    for (unsigned k = 0; k < SLOTS; k++)
        if (w->searched[k] == (int)i)
            free_search(w, k);
    fw_problem_free(w->problem[i]);
    w->problem[i] =
        below(8) ? fw_problem_parse(below(16) ? "p.fw" : NULL, spoilt(known[0], text),
                                    below(4) ? known[1] : ANY(sizes), &m)
                 : fw_problem_load(ANY(words), ANY(sizes), &m);
    judge(w, w->problem[i], m);
}

static void do_ask_problem(World *w)
{
    const fw_problem *p = w->problem[below(SLOTS)];
    fw_argument a = {0};
    fw_size size = {0};
    int64_t extent[4];
    int i = ANY(numbers), room = (int)below(5) - 1, dims;
    assert_true(!fw_problem_label(p) == !p);
    if (fw_problem_argument(p, i, &a))
        assert_true(a.name && a.type && i < fw_problem_arguments(p));
    dims = fw_problem_shape(p, i, room > 0 ? extent : NULL, room);
    assert_true(dims >= -1);
    if (fw_problem_size(p, i, &size))
        assert_true(i < fw_problem_sizes(p));
    fw_problem_extent(p, i, ANY(numbers));
    assert_true(fw_problem_bytes(p) >= 0 && fw_version());
}

static void do_device(World *w)
{
    char *m = NULL;
    const char *id = ANY(words);
    if (id && strcmp(id, "host") == 0)
        return; // is there
    fw_device *device = fw_device_open(id, below(2) ? "/no/such" : "/proc/self/exe", &m);
    judge(w, device, m);
    fw_device_free(device);
}

static void do_plan(World *w)
{
    char *m = NULL;
    unsigned i = below(SLOTS);
    fw_plan_options o = options_of(w);
    fw_plan_free(w->plan[i]);
    w->plan[i] = fw_plan_make(
        w->problem[below(SLOTS)], below(16) ? w->host : NULL,
        below(16) ? &o : &(fw_plan_options){.rigor = FW_WISDOM_ONLY, .store = w->store},
        &m);
    judge(w, w->plan[i], m);
}

static void do_ask_plan(World *w)
{
    const fw_plan *p = w->plan[below(SLOTS)];
    char *header = NULL, *body = NULL, *m = NULL;
    assert_true(!fw_plan_source(p) == !p && !fw_plan_target(p) == !p);
    assert_true(!fw_plan_point(p) == !p && fw_plan_origin(p) <= FW_PLAIN);
    fw_plan_found_for(p), fw_plan_foreign(p), fw_plan_time(p), fw_plan_baseline(p);
    bool ok = fw_plan_host(p, ANY(words), below(4) ? &header : NULL, &body, &m);
    judge(w, ok, m);
    fw_free_text(header);
    fw_free_text(body);
}

static int arrays_of(const World *w, const fw_problem *p)
{
    int n = fw_problem_arguments(p);
    for (int i = 0; i < n && n <= ARRAYS; i++) {
        fw_argument a;
        if (!fw_problem_argument(p, i, &a) || a.bytes > (int64_t)sizeof w->array[0])
            return -1;
    }
    return n <= ARRAYS ? n : -1;
}

static void free_loaded(Loaded *l)
{
    fw_executable_free(l->kernel);
    fw_plan_free(l->plan);
}

// Its arrays are long enough: all sizes are at most 64, but the very large ones, of which
// no plan exists.
static void do_load(World *w)
{
    char *m = NULL;
    unsigned i = below(SLOTS), k = below(SLOTS);
    if (below(4) != 0)
        return; // it takes a compiler
    fw_plan_options o = {
        .rigor = FW_ESTIMATE, .store = w->store, .worker = "/proc/self/exe"};
    int n = arrays_of(w, w->problem[k]);
    fw_plan *plan = n > 0 ? fw_plan_make(w->problem[k], w->host, &o, NULL) : NULL;
    free_loaded(&w->loaded[i]);
    w->loaded[i] = (Loaded){fw_load(plan, NULL, &m), plan, n};
    judge(w, w->loaded[i].kernel, m);
}

static void do_execute(World *w)
{
    char *m = NULL;
    void *list[ARRAYS];
    const Loaded *l = &w->loaded[below(SLOTS)];
    for (int i = 0; i < ARRAYS; i++)
        list[i] = w->array[i];
    int n = below(2) && l->kernel ? l->n : ANY(numbers);
    if (below(4) == 0)
        list[below(ARRAYS)] = NULL;
    void *const *given = below(8) ? list : NULL;
    bool ok = (below(2) ? fw_run(l->kernel, given, n, &m)
                        : fw_execute(l->kernel, NULL, given, n, &m));
    judge(w, ok, m);
}

static void do_resize(World *w)
{
    char *m = NULL;
    int64_t size[4];
    for (int i = 0; i < 4; i++)
        size[i] = below(4) ? (int64_t)below(65) : below(2) ? -1 : INT64_MAX;
    int n = (int)below(6) - 1;
    bool ok = fw_resize(w->loaded[below(SLOTS)].kernel, below(8) && n < 5 ? size : NULL,
                        n < 5 ? n : 0, &m);
    judge(w, ok, m);
}

static void do_search(World *w)
{
    char *m = NULL;
    unsigned i = below(SLOTS), k = below(SLOTS);
    fw_plan_options o = options_of(w);
    free_search(w, i);
    w->search[i] = fw_search_open(w->problem[k], below(16) ? w->host : NULL, &o, &m);
    w->searched[i] = (int)k;
    judge(w, w->search[i], m);
}

static void do_ask_search(World *w)
{
    fw_search *s = w->search[below(SLOTS)];
    int count = 0, i = ANY(numbers);
    char point[TEXT_MOST] = "";
    assert_true(!fw_search_plain(s) == !s && fw_search_points(s) >= 0);
    if (fw_search_parameter(s, i, &count))
        assert_true(i < fw_search_parameters(s) && count > 0 && fw_search_value(s, i, 0));
    fw_search_value(s, ANY(numbers), ANY(numbers));
    const char *asked = below(4) ? fw_search_ask(s) : ANY(points);
    snprintf(point, sizeof point, "%s", asked ? asked : "");
    bool valid = fw_search_valid(s, asked ? point : NULL);
    double seconds = below(4) ? 1e-3 : below(2) ? NAN : -1;
    assert_true(fw_search_tell(s, asked ? point : NULL, seconds) <= valid);
}

static void do_search_plan(World *w)
{
    fw_search *s = w->search[below(SLOTS)];
    fw_trial trial;
    char *m = NULL;
    fw_plan *plan = fw_search_plan(s, ANY(points), &m);
    judge(w, plan, m);
    fw_plan_free(plan);
    if (below(16) != 0)
        return; // it takes a compiler
    m = NULL;
    bool ok = fw_search_measure(s, below(2) ? fw_search_plain(s) : ANY(points), &trial, &m);
    judge(w, ok, m);
    if (ok && strcmp(trial.status, "ok") != 0)
        fail_msg("the plain point is %s: %s", trial.status, trial.log ? trial.log : "");
}

static void do_wisdom(World *w)
{
    char *m = NULL, *text;
    text = fw_wisdom_export(below(8) ? w->store : "/no/such/x.db", &m);
    judge(w, text, m);
    if (text && text[0] && below(2))
        text[below((unsigned)strlen(text))] ^= 1;
    m = NULL;
    bool ok = fw_wisdom_import(w->store, ANY(words), below(4) ? text : ANY(words), &m) >= 0;
    judge(w, ok, m);
    fw_free_text(text);
    m = NULL;
    ok =
        fw_wisdom_forget(w->store, w->problem[below(SLOTS)], below(8) ? w->host : NULL, &m);
    judge(w, ok, m);
}

static void free_all(World *w)
{
    for (unsigned i = 0; i < SLOTS; i++) // each needs a problem, of any slot
        free_search(w, i);
    for (unsigned i = 0; i < SLOTS; i++) {
        fw_problem_free(w->problem[i]);
        fw_plan_free(w->plan[i]);
        free_loaded(&w->loaded[i]);
    }
    fw_device_free(w->host);
    free(w);
}

static long environment(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 0) : otherwise;
}

static void test_any_calls(void **state)
{
    (void)state;
    static void (*const calls[])(World *) = {
        do_problem,    do_problem,     do_ask_problem, do_device, do_plan,
        do_ask_plan,   do_load,        do_execute,     do_resize, do_search,
        do_ask_search, do_search_plan, do_wisdom};
    char folder[] = "/tmp/forewarp-test-XXXXXX", command[96];
    assert_non_null(mkdtemp(folder));
    World *w = calloc(1, sizeof *w);
    snprintf(w->store, sizeof w->store, "%s/a.db", folder);
    if (!getenv("FW_TEST_CACHE")) // of tools/check, for all tests
        setenv("XDG_CACHE_HOME", folder, 1);
    w->host = fw_device_open("host", "/proc/self/exe", NULL);
    assert_non_null(w->host);
    seed = (uint64_t)environment("FW_SEED", 1);
    long n = environment("FW_CALLS", CALLS);
    for (long i = 0; i < n; i++)
        ANY(calls)(w);
    print_message("%ld calls did what was asked, %ld said why not\n", w->done, w->failed);
    assert_true(w->done > 0 && w->failed > 0);
    free_all(w);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    int status;
    if (fw_worker(argc, argv, &status))
        return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
