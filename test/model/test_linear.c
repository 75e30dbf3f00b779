// SPDX-License-Identifier: Apache-2.0
//
// Relative least squares: planted weights come back, signs are kept, and what the signs
// forbid is optimal by its gradients.

#include "model/linear.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

enum { ROWS = 60, COLUMNS = 6 };

static double linear_predict(const Linear *l, const double *row)
{
    double sum = 0;
    for (int c = 0; c < l->d; c++)
        sum += l->weight[c] * row[c];
    return sum;
}

static Matrix random_rows(Rng *rng)
{
    Matrix x = matrix_new(ROWS, COLUMNS);
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < COLUMNS - 1; c++)
            matrix_row(&x, i)[c] = exp(8 * rng_double(rng)) * (rng_double(rng) < 0.7);
    for (int i = 0; i < ROWS; i++)
        matrix_row(&x, i)[0] = 1;
    return x; // the last column stays 0
}

static void planted_weights_come_back(void **state)
{
    (void)state;
    static const double planted[COLUMNS] = {3e-6, 2e-9, 0, -1e-10, 7e-8, 0};
    static const Sign sign[COLUMNS] = {SIGN_POSITIVE, SIGN_POSITIVE, SIGN_POSITIVE,
                                       SIGN_NEGATIVE, SIGN_POSITIVE, SIGN_POSITIVE};
    Rng rng = rng_new(1);
    Matrix x = random_rows(&rng);
    double y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        y[i] = 0;
        for (int c = 0; c < COLUMNS; c++)
            y[i] += planted[c] * matrix_row(&x, i)[c];
    }
    Linear l = linear_fit(&x, y, sign);
    for (int c = 0; c < COLUMNS; c++)
        assert_true(fabs(l.weight[c] - planted[c]) <= 1e-6 * fabs(planted[c]) + 1e-18);
    assert_true(l.rms < 1e-8);
    assert_int_equal(l.support[0], ROWS);
    assert_int_equal(l.support[COLUMNS - 1], 0);
    assert_true(fabs(linear_predict(&l, matrix_row(&x, 3)) / y[3] - 1) < 1e-8);
    linear_free(&l);
    matrix_free(&x);
}

// Times that a negative weight would fit best: the constrained fit is worse than the free
// one, better than any fit without the column, and holds its sign.
static void signs_hold(void **state)
{
    (void)state;
    Rng rng = rng_new(2);
    Matrix x = random_rows(&rng);
    double y[ROWS];
    for (int i = 0; i < ROWS; i++)
        y[i] = (1e-5 + 3e-9 * matrix_row(&x, i)[1]) *
               (1 - 0.3 * (matrix_row(&x, i)[2] > 0)) * (1 + 0.05 * rng_normal(&rng));
    Sign free_sign[COLUMNS] = {SIGN_FREE}, sign[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        sign[c] = SIGN_POSITIVE;
    Linear any = linear_fit(&x, y, free_sign), held = linear_fit(&x, y, sign);
    assert_true(any.weight[2] < 0);
    for (int c = 0; c < COLUMNS; c++)
        assert_true(held.weight[c] >= 0);
    assert_true(held.rms >= any.rms && held.rms < 0.5);
    for (int c = 0; c < COLUMNS; c++) {
        double gradient = 0;
        for (int i = 0; i < ROWS; i++) {
            const double *row = matrix_row(&x, i);
            gradient += row[c] / y[i] * (1 - linear_predict(&held, row) / y[i]);
        }
        gradient *= any.weight[c] ? fabs(any.weight[c]) : 0;
        assert_true(gradient < 1e-6);
        assert_true(held.weight[c] == 0 || fabs(gradient) < 1e-6);
        assert_true(held.weight[c] == 0 || held.error[c] > 0);
    }
    linear_free(&any);
    linear_free(&held);
    matrix_free(&x);
}

// The standard error is the spread of the weight over many noisy fits.
static void errors_are_the_spread(void **state)
{
    (void)state;
    static const Sign sign[COLUMNS] = {SIGN_FREE};
    Rng rng = rng_new(3);
    Matrix x = random_rows(&rng);
    double sum = 0, squares = 0, error = 0;
    enum { FITS = 400 };
    for (int fit = 0; fit < FITS; fit++) {
        double y[ROWS];
        for (int i = 0; i < ROWS; i++)
            y[i] = (1e-5 + 2e-9 * matrix_row(&x, i)[1]) * (1 + 0.01 * rng_normal(&rng));
        Linear l = linear_fit(&x, y, sign);
        sum += l.weight[1];
        squares += l.weight[1] * l.weight[1];
        error += l.error[1] / FITS;
        linear_free(&l);
    }
    double spread = sqrt(squares / FITS - sum / FITS * sum / FITS);
    assert_true(spread > 0.8 * error && spread < 1.25 * error);
    matrix_free(&x);
}

static void fit_is_finite(const Matrix *x, const double *y)
{
    static const Sign sign[COLUMNS] = {SIGN_POSITIVE, SIGN_FREE,     SIGN_POSITIVE,
                                       SIGN_NEGATIVE, SIGN_POSITIVE, SIGN_FREE};
    Linear l = linear_fit(x, y, sign);
    for (int c = 0; c < COLUMNS; c++)
        assert_true(isfinite(l.weight[c]) && !isnan(l.error[c]));
    assert_true(isfinite(l.rms));
    linear_free(&l);
}

// Numbers that no count is: a column that holds one says nothing, and the others are
// fitted.
static void any_numbers_give_finite_weights(void **state)
{
    (void)state;
    static const double odd[] = {1e308, -1e308, 1e200, 1e-308, INFINITY, NAN, 0};
    Rng rng;
    double y[ROWS], z[ROWS];
    rng = rng_new(4);
    for (int i = 0; i < COUNTOF(odd); i++)
        for (int all = 0; all < 2; all++) {
            Matrix x = random_rows(&rng);
            for (int r = 0; r < ROWS; r++) {
                y[r] = 1 + matrix_row(&x, r)[2];
                z[r] = r % 7 ? y[r] : odd[i];
                if (all || r == 3)
                    matrix_row(&x, r)[1] = odd[i];
            }
            fit_is_finite(&x, y);
            fit_is_finite(&x, z);
            Matrix one = {.n = 1, .d = x.d, .at = x.at};
            fit_is_finite(&one, y);
            one.n = 0;
            fit_is_finite(&one, y);
            matrix_free(&x);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(planted_weights_come_back),
                                       cmocka_unit_test(any_numbers_give_finite_weights),
                                       cmocka_unit_test(signs_hold),
                                       cmocka_unit_test(errors_are_the_spread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
