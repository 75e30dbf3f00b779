// SPDX-License-Identifier: Apache-2.0
//
// A ray for each pixel of a W x H image through a volume of S x S x S bytes: it enters at
// the pixel's place on the front, drifts sideways, and takes the voxel it is in at each
// step in depth. Colours of the transfer function (red, green, blue, opacity) are
// composed front to back until the ray is nearly opaque.
//
// Places are integers in units of 1/65536 of a voxel, so that every machine has the same.

#include <stddef.h>

#define DRIFT_X 9001
#define DRIFT_Y (-5003)
#define DENSITY 0.05f
#define OPAQUE  0.95f

void raycasting_reference(const unsigned char *volume, const float (*transfer)[4],
                          float (*out)[4])
{
#pragma omp parallel for schedule(dynamic, 8)
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            float sum[4] = {0, 0, 0, 0};
            for (int z = 0; z < S && sum[3] < OPAQUE; z++) {
                int vx =
                    (int)(((long long)x * S * 65536 / W + (long long)z * DRIFT_X) >> 16);
                int vy =
                    (int)(((long long)y * S * 65536 / H + (long long)z * DRIFT_Y) >> 16);
                if (vx < 0 || vx >= S || vy < 0 || vy >= S)
                    continue;
                const float *c = transfer[volume[((size_t)z * S + vy) * S + vx]];
                float part = (1 - sum[3]) * (DENSITY * c[3]);
                for (int k = 0; k < 3; k++)
                    sum[k] += part * c[k];
                sum[3] += part;
            }
            for (int k = 0; k < 4; k++)
                out[(size_t)y * W + x][k] = sum[k];
        }
}
