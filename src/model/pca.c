// SPDX-License-Identifier: Apache-2.0
//
// Principal component analysis (000, section 5.2): the eigenvectors of the covariance
// matrix, by LAPACK's dsyev. The columns are few (tens), so a decomposition of the
// covariance is preferred to one of the rows themselves.
#include "model/model.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>

static double *covariance(const Matrix *x)
{
    int d = x->d;
    double *c = xcalloc((size_t)d * (size_t)d + 1, sizeof *c);
    for (int i = 0; i < x->n; i++) {
        const double *row = matrix_row(x, i);
        for (int a = 0; a < d; a++)
            for (int b = a; b < d; b++)
                c[a * d + b] += row[a] * row[b];
    }
    for (int a = 0; a < d; a++)
        for (int b = a; b < d; b++)
            c[a * d + b] /= MAX(x->n, 1);
    return c;
}

// The sign of an eigenvector is the library's choice; ours makes it the same everywhere.
static void point_up(double *axis, int d)
{
    int largest = 0;
    for (int i = 1; i < d; i++)
        if (fabs(axis[i]) > fabs(axis[largest]) * (1 + 1e-9))
            largest = i;
    if (d > 0 && axis[largest] < 0)
        for (int i = 0; i < d; i++)
            axis[i] = -axis[i];
}

// How many of the eigenvalues, largest last, are needed.
static int count_axes(const double *value, int d, double total, double share)
{
    double held = 0;
    int n = 0;
    while (n < d && held < share * total * (1 - 1e-12))
        held += fmax(value[d - 1 - n++], 0);
    return n;
}

Pca pca_fit(const Matrix *x, double share)
{
    int d = x->d;
    double *vector = covariance(x), *value = xcalloc((size_t)d + 1, sizeof *value);
    if (d > 0 && LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'U', d, vector, d, value) != 0)
        BUG("the eigenvalues of a covariance matrix of %d columns were not found", d);
    Pca pca = {.from = d};
    for (int i = 0; i < d; i++)
        pca.total += fmax(value[i], 0);
    pca.d = count_axes(value, d, pca.total, share);
    pca.axis = xcalloc((size_t)pca.d * (size_t)d + 1, sizeof *pca.axis);
    pca.variance = xcalloc((size_t)pca.d + 1, sizeof *pca.variance);
    for (int a = 0; a < pca.d; a++) {
        pca.variance[a] = value[d - 1 - a];
        for (int i = 0; i < d; i++)
            pca.axis[a * d + i] = vector[i * d + d - 1 - a];
        point_up(pca.axis + a * d, d);
    }
    free(vector);
    free(value);
    return pca;
}

Matrix pca_apply(const Pca *pca, const Matrix *x)
{
    if (x->d != pca->from)
        BUG("components of %d columns applied to %d", pca->from, x->d);
    Matrix out = matrix_new(x->n, pca->d);
    for (int i = 0; i < x->n; i++)
        for (int a = 0; a < pca->d; a++) {
            const double *row = matrix_row(x, i), *axis = pca->axis + a * pca->from;
            double sum = 0;
            for (int c = 0; c < pca->from; c++)
                sum += row[c] * axis[c];
            matrix_row(&out, i)[a] = sum;
        }
    return out;
}

void pca_free(Pca *pca)
{
    free(pca->axis);
    free(pca->variance);
    *pca = (Pca){0};
}
