// Sums of rows: local memory as an argument, a struct by value, vectors of three.
struct Setting {
    float3 weight;
    int shift;
};

kernel void rows(global const float3 *in, global float *out, local float *part, struct Setting setting)
{
    int row = get_group_id(0), me = get_local_id(0);
    float sum = 0;
    for (int i = me; i < W; i += WG)
        sum += dot(in[row * W + i], setting.weight);
    part[me * PAD] = sum;
    for (int half_ = WG / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < half_)
            part[me * PAD] += part[(me + half_) * PAD];
    }
    if (me == 0)
        out[row] = part[0] + setting.shift;
}
