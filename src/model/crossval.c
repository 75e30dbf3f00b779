// SPDX-License-Identifier: Apache-2.0
//
// Leave one group out (000, section 6): every group is predicted by a model fitted to all
// the rows of all the other groups, and to nothing else.
#include "model/model.h"

#include <math.h>
#include <stdlib.h>

// The rows of a group, or those to fit to, which predict it.
static int pick(const double *y, const int *group, int n, int g, bool inside, int *row)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        if (inside ? group[i] == g : group[i] != g && !isnan(y[i]))
            row[count++] = i;
    return count;
}

static double *targets(const double *y, const int *row, int n)
{
    double *some = xcalloc((size_t)n + 1, sizeof *some);
    for (int i = 0; i < n; i++)
        some[i] = y[row[i]];
    return some;
}

static void predict_group(const ModelKind *kind, const Matrix *x, const double *y,
                          const int *group, int g, uint64_t seed, double *predicted)
{
    AUTO_FREE int *row = xcalloc(2 * (size_t)x->n + 1, sizeof *row);
    int *test_row = row + x->n;
    int ntrain = pick(y, group, x->n, g, false, row);
    int ntest = pick(y, group, x->n, g, true, test_row);
    if (!ntrain || !ntest) {
        for (int i = 0; i < ntest; i++)
            predicted[test_row[i]] = NAN;
        return;
    }
    AutoMatrix train = matrix_select(x, row, ntrain);
    AUTO_FREE double *target = targets(y, row, ntrain);
    void *fit = kind->fit(&train, target, seed);
    AutoMatrix test = matrix_select(x, test_row, ntest);
    AUTO_FREE double *answer = xcalloc((size_t)ntest + 1, sizeof *answer);
    kind->predict(fit, &test, answer);
    for (int i = 0; i < ntest; i++)
        predicted[test_row[i]] = answer[i];
    kind->free(fit);
}

void cross_validate(const ModelKind *kind, const Matrix *x, const double *y,
                    const int *group, int ngroup, uint64_t seed, double *predicted)
{
    for (int g = 0; g < ngroup; g++)
        predict_group(kind, x, y, group, g, seed, predicted);
}
