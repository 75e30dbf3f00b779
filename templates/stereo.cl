// SPDX-License-Identifier: Apache-2.0
//
// Disparities between two images by comparing blocks; the parameters of paper 002,
// Table 2. stereo_reference.c says what is computed.
//
//   WX, WY                    work-items of a group
//   PX, PY                    pixels a work-item, side by side
//   IMAGE_LEFT, IMAGE_RIGHT   an input is in image memory
//   LOCAL_LEFT, LOCAL_RIGHT   a group copies what it needs of it to local memory first
//   UNROLL_DISPARITY, UNROLL_X, UNROLL_Y   of the loops over disparities and blocks

#define TX      (WX * PX)
#define TY      (WY * PY)
#define TILE_H  (TY + 2 * R)
#define LEFT_W  (TX + 2 * R)
#define RIGHT_W (TX + 2 * R + D - 1)

#define UNROLLED(n)    UNROLL_TEXT(unroll n)
#define UNROLL_TEXT(x) _Pragma(#x)

#if IMAGE_LEFT || IMAGE_RIGHT
constant sampler_t nearest =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
#define IMAGE_AT(p, row, column) (int)read_imageui(p, nearest, (int2)(column, row)).x
#endif
#define BUFFER_AT(p, row, column) p[(row)*W + (column)]

#if IMAGE_LEFT
#define LEFT       read_only image2d_t
#define STORED_LEFT IMAGE_AT
#else
#define LEFT       global const uchar *restrict
#define STORED_LEFT BUFFER_AT
#endif
#if IMAGE_RIGHT
#define RIGHT       read_only image2d_t
#define STORED_RIGHT IMAGE_AT
#else
#define RIGHT       global const uchar *restrict
#define STORED_RIGHT BUFFER_AT
#endif

int left_at(LEFT left, int y, int x)
{
    return STORED_LEFT(left, clamp(y, 0, H - 1), clamp(x, 0, W - 1));
}

int right_at(RIGHT right, int y, int x)
{
    return STORED_RIGHT(right, clamp(y, 0, H - 1), clamp(x, 0, W - 1));
}

kernel __attribute__((reqd_work_group_size(WX, WY, 1))) void
stereo(LEFT left, RIGHT right, global uchar *restrict out)
{
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int first_x = (int)get_group_id(0) * TX, first_y = (int)get_group_id(1) * TY;
#if LOCAL_LEFT
    local uchar left_tile[TILE_H * LEFT_W];
    for (int k = ly * WX + lx; k < TILE_H * LEFT_W; k += WX * WY)
        left_tile[k] = left_at(left, first_y + k / LEFT_W - R, first_x + k % LEFT_W - R);
#define LEFT_AT(y, x) (int)left_tile[((y) - first_y + R) * LEFT_W + (x) - first_x + R]
#else
#define LEFT_AT(y, x) left_at(left, y, x)
#endif
#if LOCAL_RIGHT
    local uchar right_tile[TILE_H * RIGHT_W];
    for (int k = ly * WX + lx; k < TILE_H * RIGHT_W; k += WX * WY)
        right_tile[k] = right_at(right, first_y + k / RIGHT_W - R,
                                 first_x + k % RIGHT_W - R - (D - 1));
#define RIGHT_AT(y, x)                                                                     \
    (int)right_tile[((y) - first_y + R) * RIGHT_W + (x) - first_x + R + D - 1]
#else
#define RIGHT_AT(y, x) right_at(right, y, x)
#endif
#if LOCAL_LEFT || LOCAL_RIGHT
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (int py = 0; py < PY; py++)
        for (int px = 0; px < PX; px++) {
            const int x = first_x + lx * PX + px, y = first_y + ly * PY + py;
            if (x >= W || y >= H)
                continue;
            int best = 0, least = INT_MAX;
            UNROLLED(UNROLL_DISPARITY)
            for (int d = 0; d < D; d++) {
                int sum = 0;
                UNROLLED(UNROLL_Y)
                for (int j = -R; j <= R; j++)
                    UNROLLED(UNROLL_X)
                    for (int i = -R; i <= R; i++)
                        sum += abs_diff(LEFT_AT(y + j, x + i), RIGHT_AT(y + j, x + i - d));
                if (sum < least) {
                    least = sum;
                    best = d;
                }
            }
            out[y * W + x] = best;
        }
}
