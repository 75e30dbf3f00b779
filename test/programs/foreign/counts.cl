// Counts bytes by their high bits, in REPL copies in local memory.
#define BINS (1 << LOG_BINS)
#define PER_GROUP (block_size_x * items_per_thread)

__kernel __attribute__((reqd_work_group_size(block_size_x, 1, 1))) void
counts(__global const uchar4 *restrict data, __global uint *restrict bins, const int n,
       __local uint *copies)
{
    for (int i = get_local_id(0); i < BINS * REPL; i += block_size_x)
        copies[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    __local uint *mine = copies + (get_local_id(0) % REPL) * BINS;
#pragma unroll items_per_thread
    for (int k = 0; k < items_per_thread; k++) {
        int i = get_group_id(0) * PER_GROUP + k * block_size_x + get_local_id(0);
        if (i < n) {
            atomic_inc(&mine[data[i].x >> (8 - LOG_BINS)]);
            atomic_inc(&mine[data[i].y >> (8 - LOG_BINS)]);
            atomic_inc(&mine[data[i].z >> (8 - LOG_BINS)]);
            atomic_inc(&mine[data[i].w >> (8 - LOG_BINS)]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < BINS; i += block_size_x) {
        uint sum = 0;
        for (int r = 0; r < REPL; r++)
            sum += copies[r * BINS + i];
        atomic_add(&bins[i], sum);
    }
}
