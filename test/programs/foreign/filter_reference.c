void filter_reference(const float *in, float *out, const float *weight, const int *border)
{
    for (int i = 0; i < N; i++) {
        float sum = 0;
        for (int j = -R; j <= R; j++) {
            int at = i + j;
            if (*border)
                at = at < 0 ? 0 : at >= N ? N - 1 : at;
            if (at >= 0 && at < N)
                sum += weight[j + R] * in[at];
        }
        out[i] = sum;
    }
}
