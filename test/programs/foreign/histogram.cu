// Counts in dynamic shared memory, several copies a block; the result is a variable of the
// module.
__device__ unsigned counts[BINS];

__global__ void histogram(const unsigned char *in)
{
    extern __shared__ unsigned local[];
    for (int i = threadIdx.x; i < COPIES * BINS; i += blockDim.x)
        local[i] = 0;
    __syncthreads();
    unsigned *mine = local + threadIdx.x % COPIES * BINS;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[in[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) {
        unsigned sum = 0;
        for (int k = 0; k < COPIES; k++)
            sum += local[k * BINS + i];
        atomicAdd(&counts[i], sum);
    }
}
