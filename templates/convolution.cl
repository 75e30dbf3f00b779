// SPDX-License-Identifier: Apache-2.0
//
// Convolution of an H x W image with a 5 x 5 filter, zero outside; the parameters of paper
// 002, Table 2.
//
//   WX, WY        work-items of a group        IMAGE        the input is in image memory
//   PX, PY        outputs a work-item          LOCAL        a group copies its tile first
//   INTERLEAVED   they lie a group apart       PADDING      the input has a border of zeros
//   UNROLL        the loops over the filter
//
// Tests of bounds vanish where the sizes are multiples of the tile.

#define TX      (WX * PX)
#define TY      (WY * PY)
#define TILE_W  (TX + 4)
#define TILE_H  (TY + 4)
#define EXACT_X (W % TX == 0)
#define EXACT_Y (H % TY == 0)

#if IMAGE
#define INPUT read_only image2d_t
#else
#define INPUT global const float *restrict
#endif

#if IMAGE
constant sampler_t outside_is_zero =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
#endif

// The input at a place that may be up to 2 outside the image.
float fetch(INPUT input, int y, int x)
{
#if IMAGE
    return read_imagef(input, outside_is_zero, (int2)(x + 2 * PADDING, y + 2 * PADDING)).x;
#elif PADDING
    return input[(y + 2) * (W + 4) + x + 2];
#else
    return y >= 0 && y < H && x >= 0 && x < W ? input[y * W + x] : 0;
#endif
}

kernel __attribute__((reqd_work_group_size(WX, WY, 1))) void
convolution(INPUT input, constant float *restrict filter, global float *restrict out)
{
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int first_x = (int)get_group_id(0) * TX, first_y = (int)get_group_id(1) * TY;
#if LOCAL
    local float tile[TILE_H * TILE_W];
    for (int k = ly * WX + lx; k < TILE_H * TILE_W; k += WX * WY) {
        int y = first_y + k / TILE_W - 2, x = first_x + k % TILE_W - 2;
        tile[k] = fetch(input, EXACT_Y ? y : min(y, H + 1), EXACT_X ? x : min(x, W + 1));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#define AT(y, x) tile[((y) - first_y + 2) * TILE_W + (x) - first_x + 2]
#else
#define AT(y, x) fetch(input, y, x)
#endif
    for (int py = 0; py < PY; py++)
        for (int px = 0; px < PX; px++) {
            const int x = first_x + (INTERLEAVED ? lx + px * WX : lx * PX + px);
            const int y = first_y + (INTERLEAVED ? ly + py * WY : ly * PY + py);
            if ((!EXACT_X && x >= W) || (!EXACT_Y && y >= H))
                continue;
            float sum = 0;
#if UNROLL
#pragma unroll
#else
#pragma unroll 1
#endif
            for (int j = 0; j < 5; j++)
#if UNROLL
#pragma unroll
#else
#pragma unroll 1
#endif
                for (int i = 0; i < 5; i++)
                    sum += AT(y + j - 2, x + i - 2) * filter[j * 5 + i];
            out[y * W + x] = sum;
        }
}
