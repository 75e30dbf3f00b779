// SPDX-License-Identifier: Apache-2.0
//
// Leave one group out (000, section 6): every group is predicted by a model fitted to all
// the rows of all the other groups, and to nothing else.
#include "model/model.h"

#include <stdlib.h>

static int pick(const int *group, int n, int g, bool inside, int *row)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        if ((group[i] == g) == inside)
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
    AUTO_FREE int *row = xcalloc((size_t)x->n + 1, sizeof *row);
    int ntrain = pick(group, x->n, g, false, row);
    if (ntrain == 0)
        BUG("group %d is all there is", g);
    AutoMatrix train = matrix_select(x, row, ntrain);
    AUTO_FREE double *target = targets(y, row, ntrain);
    void *fit = kind->fit(&train, target, seed);
    int ntest = pick(group, x->n, g, true, row);
    AutoMatrix test = matrix_select(x, row, ntest);
    AUTO_FREE double *answer = xcalloc((size_t)ntest + 1, sizeof *answer);
    kind->predict(fit, &test, answer);
    for (int i = 0; i < ntest; i++)
        predicted[row[i]] = answer[i];
    kind->free(fit);
}

void cross_validate(const ModelKind *kind, const Matrix *x, const double *y,
                    const int *group, int ngroup, uint64_t seed, double *predicted)
{
    for (int g = 0; g < ngroup; g++)
        predict_group(kind, x, y, group, g, seed, predicted);
}
