void scale_reference(const float *in, float *out, float factor)
{
    for (int i = 0; i < N; i++)
        out[i] = factor * in[i];
}
