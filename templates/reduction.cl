// SPDX-License-Identifier: Apache-2.0
//
// The sum of N numbers in two launches.
//
//   W, GROUPS   the first launch      W2       the group of the second
//   V           width of loads        SUMS     independent sums of an item
//   CYCLIC      an item's loads lie all items apart, not side by side
//   TREE        how a group adds up: halving, doubling (of the distance), or one item

#define halving  0
#define doubling 1
#define serial   2

#define ITEMS   (W * GROUPS)
#define VECTORS (N / V)
#define EACH    ((VECTORS + ITEMS - 1) / ITEMS) // vectors an item takes

#define JOIN(a, b)  a##b
#define LOADER(v)   JOIN(vload, v)
#if V == 1
#define VEC          float
#define LOAD(i, p)   (p)[i]
#define ADD_UP(v)    (v)
#else
#define WIDE(v)      JOIN(float, v)
#define VEC          WIDE(V)
#define LOAD(i, p)   LOADER(V)(i, p)
#define ADD_UP_2(v)  ((v).s0 + (v).s1)
#define ADD_UP_4(v)  ADD_UP_2((v).lo + (v).hi)
#define ADD_UP_8(v)  ADD_UP_4((v).lo + (v).hi)
#define ADD_UP_16(v) ADD_UP_8((v).lo + (v).hi)
#define ADD_UP_N(n)  JOIN(ADD_UP_, n)
#define ADD_UP(v)    ADD_UP_N(V)(v)
#endif

// The sum over a group, in the first item.
float group_sum(float mine, local float *all, int items)
{
    const int item = get_local_id(0);
    all[item] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
#if TREE == halving
    for (int apart = items / 2; apart > 0; apart /= 2) {
        if (item < apart)
            all[item] += all[item + apart];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#elif TREE == doubling
    for (int apart = 1; apart < items; apart *= 2) {
        if (item % (2 * apart) == 0)
            all[item] += all[item + apart];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    if (item == 0)
        for (int i = 1; i < items; i++)
            all[0] += all[i];
#endif
    return all[0];
}

kernel __attribute__((reqd_work_group_size(W, 1, 1))) void
partial_sums(global const float *restrict in, global float *restrict partial)
{
    local float all[W];
    const int item = get_global_id(0);
    VEC sum[SUMS];
    for (int s = 0; s < SUMS; s++)
        sum[s] = 0;
    for (int i = 0; i < EACH; i += SUMS)
#pragma unroll
        for (int s = 0; s < SUMS; s++) {
            const int at = CYCLIC ? (i + s) * ITEMS + item : item * EACH + i + s;
            if (i + s < EACH && at < VECTORS)
                sum[s] += LOAD(at, in);
        }
    for (int s = 1; s < SUMS; s++)
        sum[0] += sum[s];
    float mine = ADD_UP(sum[0]);
    if (item == 0)
        for (int i = VECTORS * V; i < N; i++)
            mine += in[i];
    mine = group_sum(mine, all, W);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = mine;
}

kernel __attribute__((reqd_work_group_size(W2, 1, 1))) void
final_sum(global const float *restrict partial, global float *restrict out)
{
    local float all[W2];
    float mine = 0;
    for (int i = get_local_id(0); i < GROUPS; i += W2)
        mine += partial[i];
    mine = group_sum(mine, all, W2);
    if (get_local_id(0) == 0)
        out[0] = mine;
}
