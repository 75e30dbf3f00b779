void passes_reference(const float *in, float *sum)
{
    double total = 0;
    for (int i = 0; i < N; i++)
        total += in[i];
    *sum = (float)total;
}
