// SPDX-License-Identifier: Apache-2.0
//
// c[n][m] = sum over k of a[k][m] * b[k][n]; the sizes are multiples of the tile.
//
//   MWG, NWG, KWG   the tile of a group, and the part of k it takes at a time
//   MDIMC, NDIMC    the group's shape; MDIMA, NDIMB its shape while it copies a and b
//   KWI             steps of k written out
//   VWM, VWN        widths of accesses along m and n
//   STRM, STRN      an item's elements lie a group apart, not side by side
//   SA, SB          a, b are copied to local memory first
//
// The parameters are CLBlast's, the kernel is not.

#define MV    (MWG / VWM)         // vectors along m of a tile
#define NV    (NWG / VWN)
#define MI    (MV / MDIMC)        // and those of an item
#define NI    (NV / NDIMC)
#define KDIMA (MDIMC * NDIMC / MDIMA)
#define KDIMB (MDIMC * NDIMC / NDIMB)

#define JOIN(a, b)  a##b
#define WIDE(width) JOIN(float, width)
#define STORE(width) JOIN(vstore, width)
#if VWM == 1
#define MVEC float
#else
#define MVEC WIDE(VWM)
#endif
#if VWN == 1
#define NVEC float
#define STORE_N(v, i, to) (to)[i] = (v)
#else
#define NVEC WIDE(VWN)
#define STORE_N(v, i, to) STORE(VWN)(v, i, to)
#endif

// The i-th vector of an item among those of a tile.
#define M_AT(item, i) (STRM ? (item) + (i) * MDIMC : (item) * MI + (i))
#define N_AT(item, i) (STRN ? (item) + (i) * NDIMC : (item) * NI + (i))

kernel __attribute__((reqd_work_group_size(MDIMC, NDIMC, 1))) void
gemm(global const MVEC *restrict a, global const NVEC *restrict b, global MVEC *restrict c)
{
    const int im = get_local_id(0), in = get_local_id(1);
    const int m0 = (int)get_group_id(0) * MV, n0 = (int)get_group_id(1) * NV;
#if SA || SB
    const int item = in * MDIMC + im;
#endif
#if SA
    local MVEC tile_a[KWG * MV];
#endif
#if SB
    local NVEC tile_b[KWG * NV];
#endif
    MVEC sum[NI * VWN][MI];
    for (int n = 0; n < NI * VWN; n++)
        for (int m = 0; m < MI; m++)
            sum[n][m] = 0;
    for (int k0 = 0; k0 < K; k0 += KWG) {
#if SA
        for (int k = item / MDIMA; k < KWG; k += KDIMA)
            for (int m = item % MDIMA; m < MV; m += MDIMA)
                tile_a[k * MV + m] = a[(k0 + k) * (M / VWM) + m0 + m];
#endif
#if SB
        for (int k = item / NDIMB; k < KWG; k += KDIMB)
            for (int n = item % NDIMB; n < NV; n += NDIMB)
                tile_b[k * NV + n] = b[(k0 + k) * (N / VWN) + n0 + n];
#endif
#if SA || SB
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        for (int kk = 0; kk < KWG; kk += KWI) {
#pragma unroll
            for (int step = 0; step < KWI; step++) {
                const int k = kk + step;
                MVEC am[MI];
                float bn[NI * VWN];
#pragma unroll
                for (int i = 0; i < MI; i++)
#if SA
                    am[i] = tile_a[k * MV + M_AT(im, i)];
#else
                    am[i] = a[(k0 + k) * (M / VWM) + m0 + M_AT(im, i)];
#endif
#pragma unroll
                for (int i = 0; i < NI; i++) {
#if SB
                    NVEC v = tile_b[k * NV + N_AT(in, i)];
#else
                    NVEC v = b[(k0 + k) * (N / VWN) + n0 + N_AT(in, i)];
#endif
                    STORE_N(v, i, bn);
                }
#pragma unroll
                for (int n = 0; n < NI * VWN; n++)
#pragma unroll
                    for (int m = 0; m < MI; m++)
                        sum[n][m] += am[m] * bn[n];
            }
        }
#if SA || SB
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }
    for (int i = 0; i < NI; i++)
        for (int w = 0; w < VWN; w++)
            for (int m = 0; m < MI; m++)
                c[((n0 + N_AT(in, i)) * VWN + w) * (M / VWM) + m0 + M_AT(im, m)] =
                    sum[i * VWN + w][m];
}
