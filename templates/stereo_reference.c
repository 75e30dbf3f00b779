// SPDX-License-Identifier: Apache-2.0
//
// For each pixel the disparity d in 0 .. D - 1, the smallest of the best, for which the
// block of 2 R + 1 squared pixels around it in the left image differs least from the block
// d further left in the right one, by the sum of absolute differences. Beyond the edge a
// pixel is that of the edge.

#include <stdlib.h>

static int clamped(int i, int n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static int difference(const unsigned char *left, const unsigned char *right, int y, int x,
                      int d)
{
    int sum = 0;
    for (int j = -R; j <= R; j++) {
        const unsigned char *l = left + clamped(y + j, H) * W;
        const unsigned char *r = right + clamped(y + j, H) * W;
        for (int i = -R; i <= R; i++)
            sum += abs(l[clamped(x + i, W)] - r[clamped(x + i - d, W)]);
    }
    return sum;
}

void stereo_reference(const unsigned char *left, const unsigned char *right,
                      unsigned char *out)
{
#pragma omp parallel for
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            int best = 0, least = difference(left, right, y, x, 0);
            for (int d = 1; d < D; d++) {
                int sum = difference(left, right, y, x, d);
                if (sum < least) {
                    least = sum;
                    best = d;
                }
            }
            out[y * W + x] = (unsigned char)best;
        }
}
