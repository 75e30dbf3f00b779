// SPDX-License-Identifier: Apache-2.0
//
// Plain row-major matrices on the heap. No algebra: the kinds of model write their own
// loops.
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

Matrix matrix_new(int n, int d)
{
    return (Matrix){n, d, xcalloc((size_t)n * (size_t)d + 1, sizeof(double))};
}

void matrix_free(Matrix *matrix)
{
    free(matrix->at);
    *matrix = (Matrix){0};
}

double *matrix_row(const Matrix *matrix, int i)
{
    return matrix->at + (size_t)i * (size_t)matrix->d;
}

Matrix matrix_select(const Matrix *matrix, const int *row, int n)
{
    Matrix some = matrix_new(n, matrix->d);
    for (int i = 0; i < n; i++)
        memcpy(matrix_row(&some, i), matrix_row(matrix, row[i]),
               sizeof(double) * (size_t)matrix->d);
    return some;
}
