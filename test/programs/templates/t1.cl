// SPDX-License-Identifier: Apache-2.0
//
// out[i] = factor * in[i], as a kernel for Kernel Tuner: it must define block_size_x.

kernel void scale(global float *out, global const float *in, int n, float factor)
{
    int first = get_group_id(0) * block_size_x * tile + get_local_id(0);
#ifndef kernel_tuner
#error not defined
#endif
    for (int k = 0; k < tile; k++) {
        int i = first + k * block_size_x;
        if (i < n)
            out[i] = mirror ? in[i] * factor : factor * in[i];
    }
}
