// SPDX-License-Identifier: Apache-2.0
//
// out[x][y] = in[y][x].

void transpose_reference(const float *in, float *out)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            out[x * H + y] = in[y * W + x];
}
