// SPDX-License-Identifier: Apache-2.0
//
// Scalars in a device's layout: that of ir/scalars.def, the least bytes first.
#include "measure/measure.h"

size_t scalar_device_bytes(Scalar scalar)
{
    return (size_t)scalar_info[scalar].bytes;
}

size_t runner_buffer_bytes(const RunnerBuffer *buffer)
{
    return buffer->bytes ? buffer->bytes
                         : (size_t)buffer->count * scalar_device_bytes(buffer->scalar);
}

// A loop for each type, so that what does not depend on the number is done once, and those
// without a branch become vectors.
#define EACH(assignment)                                                                   \
    do {                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                    \
            assignment;                                                                    \
        return;                                                                            \
    } while (0)
#define BITS(T, scalar)                                                                    \
    EACH(((T *)to)[i] = (T)scalar_bits(scalar, scalar_round(scalar, from[i])))

void scalar_pack(Scalar scalar, const double *from, int64_t n, void *to)
{
    switch (scalar) {
    case S_BOOL: EACH(((uint8_t *)to)[i] = from[i] != 0);
    case S_FLOAT: EACH(((float *)to)[i] = (float)from[i]);
    case S_DOUBLE: EACH(((double *)to)[i] = from[i]);
    default: break;
    }
    switch (scalar_device_bytes(scalar)) {
    case 1: BITS(uint8_t, scalar);
    case 2: BITS(uint16_t, scalar);
    case 4: BITS(uint32_t, scalar);
    default: BITS(uint64_t, scalar);
    }
}

void scalar_unpack(Scalar scalar, const void *from, int64_t n, double *to)
{
    switch (scalar) {
    case S_BOOL: EACH(to[i] = ((const uint8_t *)from)[i] != 0);
    case S_INT: EACH(to[i] = ((const int32_t *)from)[i]);
    case S_FLOAT: EACH(to[i] = (double)((const float *)from)[i]);
    case S_DOUBLE: EACH(to[i] = ((const double *)from)[i]);
    default: break;
    }
    switch (scalar_device_bytes(scalar)) {
    case 1: EACH(to[i] = scalar_of_bits(scalar, ((const uint8_t *)from)[i]));
    case 2: EACH(to[i] = scalar_of_bits(scalar, ((const uint16_t *)from)[i]));
    case 4: EACH(to[i] = scalar_of_bits(scalar, ((const uint32_t *)from)[i]));
    default: EACH(to[i] = scalar_of_bits(scalar, ((const uint64_t *)from)[i]));
    }
}
#undef BITS
#undef EACH
