// A filter in constant memory, which the host fills by its name; no extern "C".
__constant__ float weight[R + 1 + R];
__device__ int border;

__global__ void filter(const float *in, float *out)
{
    int start = (blockIdx.x * WG + threadIdx.x) * EACH;
    for (int k = 0; k < EACH; k++) {
        int i = start + k;
        float sum = 0;
        if (i >= N)
            return;
#pragma unroll UNROLL
        for (int j = -R; j <= R; j++) {
            int at = i + j;
            if (border)
                at = at < 0 ? 0 : at >= N ? N - 1 : at;
            if (at >= 0 && at < N)
                sum += weight[j + R] * in[at];
        }
        out[i] = sum;
    }
}
