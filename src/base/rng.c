// SPDX-License-Identifier: Apache-2.0
//
// xoshiro256** 1.0 seeded by splitmix64 (Blackman and Vigna, 2018): the same numbers
// on every machine, so that a seed names a run.
#include "base/base.h"

#include <math.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

Rng rng_new(uint64_t seed)
{
    Rng rng;
    for (int i = 0; i < 4; i++)
        rng.s[i] = splitmix(&seed);
    return rng;
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_next(Rng *rng)
{
    uint64_t *s = rng->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

// The largest multiple of n bounds what is taken: of a power of two it is 2^64 - n, so that
// big arrays cost no division.
uint64_t rng_below(Rng *rng, uint64_t n)
{
    if ((n & (n - 1)) == 0) {
        uint64_t y;
        do
            y = rng_next(rng);
        while (y >= 0 - n);
        return y & (n - 1);
    }
    uint64_t limit = UINT64_MAX - UINT64_MAX % n, x;
    do
        x = rng_next(rng);
    while (x >= limit);
    return x % n;
}

double rng_double(Rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

double rng_normal(Rng *rng)
{
    double u = 1.0 - rng_double(rng), v = rng_double(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

static void swap(void *list, size_t size, int i, int k)
{
    char *a = (char *)list + size * (size_t)i, *b = (char *)list + size * (size_t)k;
    for (; size > 0; size--, a++, b++) {
        char was = *a;
        *a = *b;
        *b = was;
    }
}

void rng_shuffle(Rng *rng, int *at, int n)
{
    for (int i = n - 1; i > 0; i--)
        swap(at, sizeof *at, i, (int)rng_below(rng, (uint64_t)i + 1));
}

void rng_sample(Rng *rng, void *at, size_t size, int n, int m)
{
    for (int i = 0; i < m; i++)
        swap(at, size, i, i + (int)rng_below(rng, (uint64_t)(n - i)));
}
