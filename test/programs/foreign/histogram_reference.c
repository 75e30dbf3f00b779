void histogram_reference(const unsigned char *in, unsigned *counts)
{
    for (int i = 0; i < N; i++)
        counts[in[i]]++;
}
