// SPDX-License-Identifier: Apache-2.0
//
// out[x][y] = in[y][x] of an H x W matrix, a tile a group.
//
//   TX, TY     the tile               WX, WY     the group's shape
//   LOCAL      by way of local memory, so that both sides go along rows
//   PAD        a column more there: the rows of a column lie in different banks
//   DIAGONAL   groups are numbered along diagonals
//   UNROLL     the loops over an item's elements

#define GROUPS_X ((W + TX - 1) / TX)
#define GROUPS_Y ((H + TY - 1) / TY)

#if UNROLL
#define LOOP _Pragma("unroll")
#else
#define LOOP
#endif

kernel __attribute__((reqd_work_group_size(WX, WY, 1))) void
transpose(global const float *restrict in, global float *restrict out)
{
    const int lx = get_local_id(0), ly = get_local_id(1);
    int gx = get_group_id(0), gy = get_group_id(1);
    if (DIAGONAL) {
        const int number = gy * GROUPS_X + gx;
        gy = number % GROUPS_Y;
        gx = (number / GROUPS_Y + gy) % GROUPS_X;
    }
    const int x0 = gx * TX, y0 = gy * TY;
#if LOCAL
    local float tile[TY][TX + PAD];
    LOOP for (int j = 0; j < TY; j += WY)
        LOOP for (int i = 0; i < TX; i += WX) {
            const int x = x0 + lx + i, y = y0 + ly + j;
            if (x < W && y < H)
                tile[ly + j][lx + i] = in[y * W + x];
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Along rows of the output, which are columns of the tile.
    LOOP for (int k = ly * WX + lx; k < TX * TY; k += WX * WY) {
        const int x = x0 + k / TY, y = y0 + k % TY;
        if (x < W && y < H)
            out[x * H + y] = tile[k % TY][k / TY];
    }
#else
    LOOP for (int j = 0; j < TY; j += WY)
        LOOP for (int i = 0; i < TX; i += WX) {
            const int x = x0 + lx + i, y = y0 + ly + j;
            if (x < W && y < H)
                out[x * H + y] = in[y * W + x];
        }
#endif
}
