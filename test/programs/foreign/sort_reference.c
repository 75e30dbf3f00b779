void sort_reference(int *x)
{
    for (int i = 1; i < N; i++)
        for (int k = i; k > 0 && x[k - 1] > x[k]; k--) {
            int t = x[k];
            x[k] = x[k - 1];
            x[k - 1] = t;
        }
}
