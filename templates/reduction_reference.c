// SPDX-License-Identifier: Apache-2.0

void reduction_reference(const float *in, float *out)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += in[i];
    *out = (float)sum;
}
