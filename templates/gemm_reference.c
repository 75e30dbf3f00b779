// SPDX-License-Identifier: Apache-2.0
//
// c[n][m] = sum over k of a[k][m] * b[k][n].

#include <stdlib.h>

void gemm_reference(const float *a, const float *b, float *c)
{
#pragma omp parallel for
    for (int n = 0; n < N; n++) {
        float *row = c + (size_t)n * M;
        for (int m = 0; m < M; m++)
            row[m] = 0;
        for (int k = 0; k < K; k++)
            for (int m = 0; m < M; m++)
                row[m] += a[(size_t)k * M + m] * b[(size_t)k * N + n];
    }
}
