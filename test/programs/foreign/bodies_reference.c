#include <math.h>

struct Body {
    float x, y, z, mass;
    int kind;
};
struct Setting {
    float gravity;
    int kind;
    double soften;
};

void bodies_reference(const struct Body *body, float (*out)[3],
                      const struct Setting *setting, const float wind[3])
{
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        double sum[3] = {wind[0], wind[1], wind[2]};
        for (int k = 0; k < N; k++) {
            double dx = body[k].x - body[i].x, dy = body[k].y - body[i].y,
                   dz = body[k].z - body[i].z;
            double r = 1 / sqrt(dx * dx + dy * dy + dz * dz + setting->soften);
            double f = body[k].kind < setting->kind
                           ? setting->gravity * body[k].mass * r * r * r
                           : 0;
            sum[0] += f * dx;
            sum[1] += f * dy;
            sum[2] += f * dz;
        }
        for (int d = 0; d < 3; d++)
            out[i][d] = (float)sum[d];
    }
}
