// SPDX-License-Identifier: Apache-2.0

#include "problem/pass.h"

#include <math.h>

static void pass_part(void *user, int64_t from, int64_t to)
{
    RefPass *pass = user;
    Found found = {0};
    for (int64_t i = from; i < to; i += CHUNK)
        pass->chunk(pass, i, MIN(CHUNK, to - i), &found);
    pthread_mutex_lock(&pass->lock);
    pass->found.most = fmax(pass->found.most, found.most);
    pass->found.count += found.count;
    pthread_mutex_unlock(&pass->lock);
}

Found pass_run(RefPass pass)
{
    pthread_mutex_init(&pass.lock, NULL);
    parts_call(pass.buffer->count, CHUNK, pass_part, &pass);
    pthread_mutex_destroy(&pass.lock);
    return pass.found;
}

void pass_unpack(Scalar scalar, const void *from, int64_t at, int64_t n, double *to)
{
    scalar_unpack(scalar, (const char *)from + (size_t)at * scalar_device_bytes(scalar), n,
                  to);
}

void pass_pack(Scalar scalar, const double *from, int64_t at, int64_t n, char *to)
{
    scalar_pack(scalar, from, n, to + (size_t)at * scalar_device_bytes(scalar));
}
