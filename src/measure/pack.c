// SPDX-License-Identifier: Apache-2.0
//
// Scalars in a device's layout: bool one byte, half two (IEEE 754 binary16, rounded to
// the nearest even), int 32 bits.
#include "measure/measure.h"

#include <math.h>
#include <string.h>

size_t scalar_device_bytes(Scalar scalar)
{
    static const size_t bytes[SCALARS] = {
        [S_BOOL] = 1, [S_INT] = 4, [S_HALF] = 2, [S_FLOAT] = 4, [S_DOUBLE] = 8};
    return bytes[scalar];
}

size_t rig_buffer_bytes(const RigBuffer *buffer)
{
    return buffer->bytes ? buffer->bytes
                         : (size_t)buffer->count * scalar_device_bytes(buffer->scalar);
}

static uint16_t half_pack(double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double a = fabs(x);
    if (isnan(x))
        return sign | 0x7e00;
    if (a >= 65520) // half way from the largest number to the next power of two
        return sign | 0x7c00;
    if (a < 0x1p-14)
        return (uint16_t)(sign | (unsigned)nearbyint(a * 0x1p24));
    int e = ilogb(a);
    unsigned fraction = (unsigned)nearbyint(ldexp(a, 10 - e)) - 1024;
    return (uint16_t)(sign | (((unsigned)(e + 15) << 10) + fraction));
}

static double half_unpack(uint16_t h)
{
    int e = h >> 10 & 31, fraction = h & 1023;
    double a = e == 0    ? ldexp(fraction, -24)
               : e == 31 ? (fraction ? NAN : INFINITY)
                         : ldexp(1024 + fraction, e - 25);
    return h & 0x8000 ? -a : a;
}

static int32_t int_pack(double x)
{
    if (isnan(x))
        return 0;
    return x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}

// A loop for each type, so that those without a branch become vectors.
#define EACH(assignment)                                                                   \
    do {                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                    \
            assignment;                                                                    \
        return;                                                                            \
    } while (0)

void scalar_pack(Scalar scalar, const double *from, int64_t n, void *to)
{
    switch (scalar) {
    case S_BOOL: EACH(((uint8_t *)to)[i] = from[i] != 0);
    case S_INT: EACH(((int32_t *)to)[i] = int_pack(from[i]));
    case S_HALF: EACH(((uint16_t *)to)[i] = half_pack(from[i]));
    case S_FLOAT: EACH(((float *)to)[i] = (float)from[i]);
    case S_DOUBLE: EACH(((double *)to)[i] = from[i]);
    }
}

void scalar_unpack(Scalar scalar, const void *from, int64_t n, double *to)
{
    switch (scalar) {
    case S_BOOL: EACH(to[i] = ((const uint8_t *)from)[i] != 0);
    case S_INT: EACH(to[i] = ((const int32_t *)from)[i]);
    case S_HALF: EACH(to[i] = half_unpack(((const uint16_t *)from)[i]));
    case S_FLOAT: EACH(to[i] = (double)((const float *)from)[i]);
    case S_DOUBLE: EACH(to[i] = ((const double *)from)[i]);
    }
}
#undef EACH
