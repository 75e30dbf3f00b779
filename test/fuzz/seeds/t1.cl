kernel void scale(global float *out, global const float *in, int n, float factor)
{
    int i = get_global_id(0);
    if (i < n)
        out[i] = factor * in[i / 8];
}
