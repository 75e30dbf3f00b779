__device__ inline int at(int k)
{
    return blockIdx.x * blockDim.x + threadIdx.x + k * gridDim.x * blockDim.x;
}
