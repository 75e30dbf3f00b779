// SPDX-License-Identifier: Apache-2.0
//
// Parts that overlap: planted weights, power and drain come back; costs add up to the time.

#include "model/overlap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { ROWS = 400, COLUMNS = 7 };

static const double weight[COLUMNS] = {5e-6, 6e-10, 2e-13, 3e-12, 1e-12, 4e-12, 0};
static const int part[COLUMNS] = {PART_ADDED, PART_START, 0, 1, 2, 2, 1};

typedef struct {
    Matrix x;
    double idle[ROWS], y[ROWS];
    Overlap planted;
} Data;

// Each row asks most of another part; the last column is never asked for.
static void make_data(Data *d, double noise)
{
    Rng rng = rng_new(3);
    d->x = matrix_new(ROWS, COLUMNS);
    d->planted = (Overlap){.d = COLUMNS, .power = 2.5, .drain = 0.3};
    memcpy(d->planted.weight, weight, sizeof weight);
    memcpy(d->planted.part, part, sizeof part);
    for (int i = 0; i < ROWS; i++) {
        double *row = matrix_row(&d->x, i);
        row[0] = 1;
        for (int c = 1; c < COLUMNS - 1; c++)
            row[c] = 1e-5 / weight[c] * exp(5 * rng_double(&rng) - 1);
        d->idle[i] = rng_double(&rng);
        d->y[i] = overlap_predict(&d->planted, row, d->idle[i], NULL) *
                  (1 + noise * (rng_double(&rng) - 0.5));
    }
}

static void fit_data(const Data *d, Overlap *o)
{
    *o = (Overlap){.d = COLUMNS};
    memcpy(o->part, part, sizeof part);
    overlap_fit(o, &d->x, d->idle, d->y);
}

static void planted_weights_come_back(void **state)
{
    (void)state;
    Data d;
    Overlap o;
    make_data(&d, 0);
    fit_data(&d, &o);
    for (int c = 0; c < COLUMNS - 1; c++)
        assert_true(fabs(o.weight[c] / weight[c] - 1) < 1e-2);
    assert_true(fabs(o.power - 2.5) < 0.03 && fabs(o.drain - 0.3) < 0.02);
    assert_true(o.rms < 1e-3);
    assert_int_equal(o.support[COLUMNS - 1], 0);
    assert_true(o.weight[COLUMNS - 1] == 0);
    matrix_free(&d.x);
}

static void errors_cover_the_noise(void **state)
{
    (void)state;
    Data d;
    Overlap o;
    make_data(&d, 0.2);
    fit_data(&d, &o);
    for (int c = 0; c < COLUMNS - 1; c++) {
        assert_true(o.error[c] > 0 && o.error[c] < 0.2 * weight[c]);
        assert_true(fabs(o.weight[c] - weight[c]) < 5 * o.error[c]);
    }
    assert_true(o.rms > 0.04 && o.rms < 0.07); // of a uniform spread of 0.2: 0.058
    matrix_free(&d.x);
}

static void costs_add_up(void **state)
{
    (void)state;
    Data d;
    make_data(&d, 0);
    for (int i = 0; i < ROWS; i++) {
        double cost[COLUMNS], sum = 0;
        double time = overlap_predict(&d.planted, matrix_row(&d.x, i), d.idle[i], cost);
        for (int c = 0; c < COLUMNS; c++) {
            assert_true(cost[c] >= 0);
            sum += cost[c];
        }
        assert_true(fabs(sum - time) < 1e-9 * time);
    }
    matrix_free(&d.x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(planted_weights_come_back),
                                       cmocka_unit_test(errors_cover_the_noise),
                                       cmocka_unit_test(costs_add_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
