// SPDX-License-Identifier: Apache-2.0
//
// Prediction against what an H200 took (data/h200-fusion.csv.gz): for each of 24
// scripts about fifty solutions, as they were ranked then and drawn at random, and the
// times of routines that the tables are made of. No device is asked.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuse/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SCRIPTS = 32, SOLUTIONS = 128, FIRST = 5 };

typedef struct {
    double predicted, measured;
    bool random;
} Pair;

typedef struct {
    char name[32];
    int64_t instances;
    int n;
    char *text[SOLUTIONS];
    Pair pair[SOLUTIONS];
} Recorded;

static Recorded recorded[SCRIPTS];
static int nrecorded;
static Arena *arena;
static Map times;

static Recorded *find(const char *name, int64_t instances)
{
    for (int i = 0; i < nrecorded; i++)
        if (strcmp(recorded[i].name, name) == 0)
            return &recorded[i];
    assert_true(nrecorded < SCRIPTS);
    Recorded *r = &recorded[nrecorded++];
    snprintf(r->name, sizeof r->name, "%s", name);
    r->instances = instances;
    return r;
}

static void take_line(char *line)
{
    char *field[5] = {line};
    for (int i = 1; i < 5; i++) {
        field[i] = strchr(field[i - 1], ',');
        assert_non_null(field[i]);
        *field[i]++ = 0;
    }
    double ns = strtod(field[4], NULL);
    if (strcmp(field[0], "routine") == 0) {
        double *kept = NEW(arena, double);
        *kept = ns;
        map_put(&times, arena_strdup(arena, field[3]), kept);
        return;
    }
    Recorded *r = find(field[1], atoll(field[2]));
    assert_true(r->n < SOLUTIONS);
    r->text[r->n] = arena_printf(arena, "%s", field[3]);
    r->pair[r->n++] = (Pair){.measured = ns, .random = strcmp(field[0], "random") == 0};
}

static void read_data(void)
{
    char line[4096];
    gzFile file = gzopen("data/h200-fusion.csv.gz", "rb");
    assert_non_null(file);
    assert_non_null(gzgets(file, line, sizeof line)); // the header
    while (gzgets(file, line, sizeof line))
        take_line(line);
    gzclose(file);
}

// A script of the examples, its rows as long as they were then, or of the bench.
static Script *load(const char *name, Diags *diags)
{
    static const Binding row[] = {{"N", 8192}};
    const char *path = arena_printf(arena, "examples/fusion/%s.fws", name);
    Buf text;
    buf_init(&text);
    if (!file_read(path, FILE_DATA_MOST, &text))
        path = arena_printf(arena, "bench/fusion/%s.fws", name);
    bool ok, rows = strstr(text.text, "size N") != NULL;
    Script *script = script_load(path, row, rows, diags, &ok);
    assert_true(ok);
    buf_release(&text);
    return script;
}

static void predict(Recorded *r)
{
    static const DeviceInfo h200 = {.target = "cuda",
                                    .compute_units = 132,
                                    .max_group = 1024,
                                    .local_bytes = 48 * 1024};
    Diags diags;
    diags_init(&diags, arena);
    Script *script = load(r->name, &diags);
    FuseSpace *space = fuse_space(script, 0, arena);
    Psi *psi = psi_recorded(script, &h200, &times);
    for (int i = 0; i < r->n; i++) {
        Solution *s = NEW(arena, Solution);
        Buf text;
        buf_init(&text);
        assert_true(solution_parse(space, r->text[i], &h200, s, &diags));
        for (int k = 0; k < s->n; k++) {
            fused_print(script, &s->kernel[k], h200.target, "k", &text); // its barriers
            r->pair[i].predicted += psi_predict(psi, script, &s->kernel[k], r->instances) *
                                    (double)r->instances;
        }
        buf_release(&text);
    }
    psi_free(psi);
    script_free(script);
}

static double rank_of(const Recorded *r, int which, bool predicted)
{
    const Pair *mine = &r->pair[which];
    double rank = 0;
    for (int i = 0; i < r->n; i++) {
        double other = predicted ? r->pair[i].predicted : r->pair[i].measured;
        double own = predicted ? mine->predicted : mine->measured;
        if (r->pair[i].random && i != which)
            rank += other < own ? 1 : other == own ? 0.5 : 0;
    }
    return rank;
}

// Spearman's, over the solutions drawn at random.
static double correlation(const Recorded *r)
{
    double n = 0, a = 0, b = 0, aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < r->n; i++) {
        if (!r->pair[i].random)
            continue;
        double x = rank_of(r, i, true), y = rank_of(r, i, false);
        n++;
        a += x, b += y, aa += x * x, bb += y * y, ab += x * y;
    }
    return (n * ab - a * b) / sqrt((n * aa - a * a) * (n * bb - b * b));
}

// The place, by prediction, of the first within 3 % of the fastest of all.
static int first_within(const Recorded *r)
{
    double least = INFINITY, predicted = INFINITY;
    int place = 1;
    for (int i = 0; i < r->n; i++)
        least = fmin(least, r->pair[i].measured);
    for (int i = 0; i < r->n; i++)
        if (r->pair[i].measured <= 1.03 * least)
            predicted = fmin(predicted, r->pair[i].predicted);
    for (int i = 0; i < r->n; i++)
        place += r->pair[i].predicted < predicted;
    return place;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_error(const Recorded *r)
{
    double error[SOLUTIONS];
    for (int i = 0; i < r->n; i++)
        error[i] = fabs(r->pair[i].predicted / r->pair[i].measured - 1);
    qsort(error, (size_t)r->n, sizeof *error, compare);
    return error[r->n / 2];
}

static void test_h200(void **state)
{
    (void)state;
    int among = 0;
    double rho[SCRIPTS];
    arena = arena_new();
    map_init(&times, arena);
    read_data();
    assert_true(nrecorded >= 13);
    for (int i = 0; i < nrecorded; i++) {
        Recorded *r = &recorded[i];
        predict(r);
        rho[i] = correlation(r);
        among += first_within(r) <= FIRST;
        print_message("%-10s %3d solutions, correlation %.2f, median error %2.0f %%, first "
                      "within 3 %% is number %d\n",
                      r->name, r->n, rho[i], 100 * median_error(r), first_within(r));
        assert_true(median_error(r) < 0.2);
    }
    qsort(rho, (size_t)nrecorded, sizeof *rho, compare);
    print_message("median correlation %.2f; %d of %d among the first %d\n",
                  rho[nrecorded / 2], among, nrecorded, FIRST);
    assert_true(rho[nrecorded / 2] >= 0.94);
    assert_true(rho[nrecorded / 4] >= 0.89);
    assert_true(rho[0] >= 0.6);
    assert_true(10 * among >= 9 * nrecorded);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_h200)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
