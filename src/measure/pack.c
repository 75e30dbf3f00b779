// SPDX-License-Identifier: Apache-2.0
//
// Scalars in a device's layout: that of ir/scalars.def, the least bytes first.
#include "measure/measure.h"

#include <string.h>

size_t scalar_device_bytes(Scalar scalar)
{
    return (size_t)scalar_info[scalar].bytes;
}

size_t rig_buffer_bytes(const RigBuffer *buffer)
{
    return buffer->bytes ? buffer->bytes
                         : (size_t)buffer->count * scalar_device_bytes(buffer->scalar);
}

// A loop for each type, so that those without a branch become vectors.
#define EACH(assignment)                                                                   \
    do {                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                    \
            assignment;                                                                    \
        return;                                                                            \
    } while (0)

// The least bytes come first.
static void pack_bits(Scalar scalar, const double *from, int64_t n, char *to)
{
    size_t bytes = scalar_device_bytes(scalar);
    for (int64_t i = 0; i < n; i++, to += bytes) {
        uint64_t bits = scalar_bits(scalar, scalar_round(scalar, from[i]));
        memcpy(to, &bits, bytes);
    }
}

void scalar_pack(Scalar scalar, const double *from, int64_t n, void *to)
{
    switch (scalar) {
    case S_BOOL: EACH(((uint8_t *)to)[i] = from[i] != 0);
    case S_FLOAT: EACH(((float *)to)[i] = (float)from[i]);
    case S_DOUBLE: EACH(((double *)to)[i] = from[i]);
    default: pack_bits(scalar, from, n, to); return;
    }
}

static void unpack_bits(Scalar scalar, const char *from, int64_t n, double *to)
{
    size_t bytes = scalar_device_bytes(scalar);
    for (int64_t i = 0; i < n; i++, from += bytes) {
        uint64_t bits = 0;
        memcpy(&bits, from, bytes);
        to[i] = scalar_of_bits(scalar, bits);
    }
}

void scalar_unpack(Scalar scalar, const void *from, int64_t n, double *to)
{
    switch (scalar) {
    case S_BOOL: EACH(to[i] = ((const uint8_t *)from)[i] != 0);
    case S_INT: EACH(to[i] = ((const int32_t *)from)[i]);
    case S_FLOAT: EACH(to[i] = (double)((const float *)from)[i]);
    case S_DOUBLE: EACH(to[i] = ((const double *)from)[i]);
    default: unpack_bits(scalar, from, n, to); return;
    }
}
#undef EACH
