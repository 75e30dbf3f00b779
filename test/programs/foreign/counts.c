void expect(const unsigned char *data, unsigned *bins, int n)
{
    for (int i = 0; i < 4 * n; i++)
        bins[data[i] >> (8 - LOG_BINS)]++;
}
