void ref(float *x)
{
    for (int i = 0; i < N; i++)
        x[i] = 1;
}
