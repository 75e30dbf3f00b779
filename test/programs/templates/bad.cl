// SPDX-License-Identifier: Apache-2.0
//
// A kernel with one fault a value of FAULT; 0 is right.

#define DIVIDES   1
#define READS     2
#define HANGS     3
#define SYNTAX    4
#define NAN_OUT   5
#define LOCAL     6
#define SILENT    7
#define WRITES    8
#define GROUP     9
#define SOMETIMES 10

kernel void twice(global const float *in, global float *out, int n, int zero)
{
    int i = get_global_id(0);
    float x = in[i];
#if FAULT == DIVIDES
    x = n / zero;
#elif FAULT == READS
    x = in[(long)(i + 1) * 1000000000000l];
#elif FAULT == HANGS
    for (volatile int k = 1; k; k += 2)
        x += k;
#elif FAULT == SYNTAX
    x = = 1;
#elif FAULT == NAN_OUT
    x = sqrt(-1 - x);
#elif FAULT == LOCAL
    local float much[1 << 28];
    much[i] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    x = much[n - 1 - i] + much[i];
#elif FAULT == WRITES
    out[(long)(i + 1) * 1000000000000l] = x;
#endif
#if FAULT == SOMETIMES
    if (i % 7)
#endif
#if FAULT != SILENT
        out[i] = 2 * x;
#endif
}
