// SPDX-License-Identifier: Apache-2.0
//
// Accelerations of N bodies (x, y, z, mass) by the gravity of all, with softening.
//
//   W, BODIES     the group, and the bodies of an item
//   INTERLEAVED   an item's bodies lie all items apart, not side by side
//   LOCAL, TILE   the others are copied to local memory, so many at a time
//   UNROLL        steps written out
//   INVERSE       how 1 / sqrt is computed

#define divided(x)   (1.0f / sqrt(x))
#define UNROLLED     UNROLLED_BY(UNROLL)
#define UNROLLED_BY(n) UNROLL_TEXT(unroll n)
#define UNROLL_TEXT(x) _Pragma(#x)

float4 pull(float4 sum, float4 me, float4 other, float softening)
{
    const float4 d = other - me;
    const float far = d.x * d.x + d.y * d.y + d.z * d.z + softening;
    const float inverse = INVERSE(far);
    const float strength = other.w * inverse * inverse * inverse;
    return sum + (float4)(d.x, d.y, d.z, 0) * strength;
}

kernel __attribute__((reqd_work_group_size(W, 1, 1))) void
nbody(global const float4 *restrict bodies, float softening, global float4 *restrict out)
{
    const int item = get_global_id(0), items = N / BODIES;
    float4 me[BODIES], sum[BODIES];
#define BODY(k) (INTERLEAVED ? item + (k) * items : item * BODIES + (k))
#pragma unroll
    for (int k = 0; k < BODIES; k++) {
        me[k] = bodies[BODY(k)];
        sum[k] = 0;
    }
#if LOCAL
    local float4 tile[TILE];
#endif
    for (int first = 0; first < N; first += TILE) {
#if LOCAL
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = get_local_id(0); i < TILE; i += W)
            tile[i] = bodies[first + i];
        barrier(CLK_LOCAL_MEM_FENCE);
#define OTHER(i) tile[i]
#else
#define OTHER(i) bodies[first + (i)]
#endif
        UNROLLED
        for (int i = 0; i < TILE; i++) {
            const float4 other = OTHER(i);
#pragma unroll
            for (int k = 0; k < BODIES; k++)
                sum[k] = pull(sum[k], me[k], other, softening);
        }
    }
#pragma unroll
    for (int k = 0; k < BODIES; k++)
        out[BODY(k)] = sum[k];
}
