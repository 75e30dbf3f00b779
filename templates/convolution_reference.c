// SPDX-License-Identifier: Apache-2.0
//
// out[y][x] = sum of image[y + j - 2][x + i - 2] * filter[j][i], zero outside the image.

static float at(const float *image, int y, int x)
{
    return y >= 0 && y < H && x >= 0 && x < W ? image[y * W + x] : 0;
}

void convolution_reference(const float *image, const float *filter, float *out)
{
#pragma omp parallel for
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            float sum = 0;
            for (int j = 0; j < 5; j++)
                for (int i = 0; i < 5; i++)
                    sum += at(image, y + j - 2, x + i - 2) * filter[j * 5 + i];
            out[y * W + x] = sum;
        }
}
