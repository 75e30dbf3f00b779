// SPDX-License-Identifier: Apache-2.0
//
// Casts a ray for each pixel through a volume of S x S x S bytes, and composes the colours
// of a transfer function front to back; the parameters of paper 002, Table 2.
// raycasting_reference.c says what is computed.
//
//   WX, WY              work-items of a group
//   PX, PY              pixels a work-item
//   INTERLEAVED         they lie a group apart
//   IMAGE_DATA          the volume is in image memory
//   IMAGE_TRANSFER      the transfer function is; CONSTANT_TRANSFER: else in constant memory
//   LOCAL_TRANSFER      a group copies it to local memory first
//   UNROLL              steps of a ray written out

#define DRIFT_X 9001
#define DRIFT_Y (-5003)
#define DENSITY 0.05f
#define OPAQUE  0.95f
#define COLOURS 256

#define TX (WX * PX)
#define TY (WY * PY)

#if IMAGE_DATA
#define VOLUME read_only image3d_t
#else
#define VOLUME global const uchar *restrict
#endif
#if IMAGE_TRANSFER
#define TRANSFER read_only image2d_t
#elif CONSTANT_TRANSFER
#define TRANSFER constant float4 *restrict
#else
#define TRANSFER global const float4 *restrict
#endif

#if IMAGE_DATA || IMAGE_TRANSFER
constant sampler_t nearest =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
#endif

uint voxel(VOLUME volume, int z, int y, int x)
{
#if IMAGE_DATA
    return read_imageui(volume, nearest, (int4)(x, y, z, 0)).x;
#else
    return volume[((size_t)z * S + y) * S + x];
#endif
}

float4 stored_colour(TRANSFER transfer, uint i)
{
#if IMAGE_TRANSFER
    return read_imagef(transfer, nearest, (int2)((int)i, 0));
#else
    return transfer[i];
#endif
}

#if LOCAL_TRANSFER
#define COLOUR(i) colours[i]
#else
#define COLOUR(i) stored_colour(transfer, i)
#endif

#define STEP(k)                                                                            \
    if ((S % UNROLL == 0 || z + k < S) && sum.w < OPAQUE) {                                \
        const int vx = (int)((at_x + (long)(z + k) * DRIFT_X) >> 16);                      \
        const int vy = (int)((at_y + (long)(z + k) * DRIFT_Y) >> 16);                      \
        if (vx >= 0 && vx < S && vy >= 0 && vy < S) {                                      \
            const float4 c = COLOUR(voxel(volume, z + k, vy, vx));                         \
            const float part = (1 - sum.w) * (DENSITY * c.w);                              \
            sum += part * (float4)(c.x, c.y, c.z, 1);                                      \
        }                                                                                  \
    }
#define STEPS_1  STEP(0)
#define STEPS_2  STEP(0) STEP(1)
#define STEPS_4  STEPS_2 STEP(2) STEP(3)
#define STEPS_8  STEPS_4 STEP(4) STEP(5) STEP(6) STEP(7)
#define STEPS_16 STEPS_8 STEP(8) STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15)
#define JOIN(a, b)  a##b
#define STEPS_OF(n) JOIN(STEPS_, n)

kernel __attribute__((reqd_work_group_size(WX, WY, 1))) void
raycasting(VOLUME volume, TRANSFER transfer, global float4 *restrict out)
{
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int first_x = (int)get_group_id(0) * TX, first_y = (int)get_group_id(1) * TY;
#if LOCAL_TRANSFER
    local float4 colours[COLOURS];
    for (int i = ly * WX + lx; i < COLOURS; i += WX * WY)
        colours[i] = stored_colour(transfer, i);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (int py = 0; py < PY; py++)
        for (int px = 0; px < PX; px++) {
            const int x = first_x + (INTERLEAVED ? lx + px * WX : lx * PX + px);
            const int y = first_y + (INTERLEAVED ? ly + py * WY : ly * PY + py);
            if (x >= W || y >= H)
                continue;
            const long at_x = (long)x * S * 65536 / W, at_y = (long)y * S * 65536 / H;
            float4 sum = 0;
            for (int z = 0; z < S && sum.w < OPAQUE; z += UNROLL) {
                STEPS_OF(UNROLL)
            }
            out[(size_t)y * W + x] = sum;
        }
}
