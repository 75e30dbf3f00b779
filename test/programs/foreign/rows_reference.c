struct Setting {
    float weight[4];
    int shift;
};

void rows_reference(const float (*in)[4], float *out, const struct Setting *setting)
{
    for (int row = 0; row < H; row++) {
        double sum = setting->shift;
        for (int i = 0; i < W; i++)
            for (int d = 0; d < 3; d++)
                sum += in[row * W + i][d] * setting->weight[d];
        out[row] = (float)sum;
    }
}
