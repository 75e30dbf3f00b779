// SPDX-License-Identifier: Apache-2.0
//
// Convolution of an H x W image with a 5 x 5 filter, zero outside; convolution.cl in CUDA,
// with the parameters that do not choose where the input lies.
//
//   WX, WY        threads of a block           LOCAL     a block copies its tile first
//   PX, PY        outputs a thread             UNROLL    the loops over the filter
//   INTERLEAVED   they lie a block apart

#define TX     (WX * PX)
#define TY     (WY * PY)
#define TILE_W (TX + 4)
#define TILE_H (TY + 4)

#if UNROLL
#define LOOP _Pragma("unroll")
#else
#define LOOP _Pragma("unroll 1")
#endif

static __device__ float fetch(const float *__restrict__ input, int y, int x)
{
    return y >= 0 && y < H && x >= 0 && x < W ? input[y * W + x] : 0;
}

extern "C" __global__ void __launch_bounds__(WX * WY)
convolution(const float *__restrict__ input, const float *__restrict__ filter, float *out)
{
    const int lx = threadIdx.x, ly = threadIdx.y;
    const int first_x = blockIdx.x * TX, first_y = blockIdx.y * TY;
#if LOCAL
    __shared__ float tile[TILE_H * TILE_W];
    for (int k = ly * WX + lx; k < TILE_H * TILE_W; k += WX * WY)
        tile[k] = fetch(input, first_y + k / TILE_W - 2, first_x + k % TILE_W - 2);
    __syncthreads();
#define AT(y, x) tile[((y) - first_y + 2) * TILE_W + (x) - first_x + 2]
#else
#define AT(y, x) fetch(input, y, x)
#endif
    for (int py = 0; py < PY; py++)
        for (int px = 0; px < PX; px++) {
            const int x = first_x + (INTERLEAVED ? lx + px * WX : lx * PX + px);
            const int y = first_y + (INTERLEAVED ? ly + py * WY : ly * PY + py);
            if (x >= W || y >= H)
                continue;
            float sum = 0;
            LOOP for (int j = 0; j < 5; j++)
                LOOP for (int i = 0; i < 5; i++)
                    sum += AT(y + j - 2, x + i - 2) * filter[j * 5 + i];
            out[y * W + x] = sum;
        }
}
