// SPDX-License-Identifier: Apache-2.0
//
// out[i] = sum over j of m_j * (p_j - p_i) / (|p_j - p_i|^2 + softening)^(3/2); a body is
// x, y, z, m, an acceleration x, y, z, 0.

#include <math.h>

void nbody_reference(const float (*bodies)[4], float softening, float (*out)[4])
{
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        double sum[3] = {0, 0, 0};
        for (int j = 0; j < N; j++) {
            float d[3], far = softening;
            for (int k = 0; k < 3; k++) {
                d[k] = bodies[j][k] - bodies[i][k];
                far += d[k] * d[k];
            }
            float pull = bodies[j][3] / (far * sqrtf(far));
            for (int k = 0; k < 3; k++)
                sum[k] += d[k] * pull;
        }
        for (int k = 0; k < 3; k++)
            out[i][k] = (float)sum[k];
        out[i][3] = 0;
    }
}
