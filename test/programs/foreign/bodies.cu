// Structs as elements and by value, vectors of three.
struct Body {
    float3 at;
    float mass;
    int kind;
};
struct Setting {
    float gravity;
    int kind;
    double soften;
};

template <int Tile> __global__ void accelerate(const Body *body, float3 *out, Setting setting, float3 wind)
{
    __shared__ Body tile[Tile];
    int i = blockIdx.x * Tile + threadIdx.x;
    float3 sum = wind;
    for (int start = 0; start < N; start += Tile) {
        if (start + threadIdx.x < N)
            tile[threadIdx.x] = body[start + threadIdx.x];
        __syncthreads();
#pragma unroll UNROLL
        for (int k = 0; k < Tile && start + k < N && i < N; k++) {
            float dx = tile[k].at.x - body[i].at.x, dy = tile[k].at.y - body[i].at.y,
                  dz = tile[k].at.z - body[i].at.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + (float)setting.soften);
            float f = tile[k].kind < setting.kind ? setting.gravity * tile[k].mass * r * r * r : 0;
            sum.x += f * dx;
            sum.y += f * dy;
            sum.z += f * dz;
        }
        __syncthreads();
    }
    if (i < N)
        out[i] = sum;
}
