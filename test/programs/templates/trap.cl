// Right at A=1 and A=2; computes something else at A=3, and crashes at A=4.
kernel void trap(global float *x)
{
#if A == 4
    *(volatile global int *)0 = 1;
#endif
    x[get_global_id(0)] = A == 3 ? 0.0f / 0.0f : 1;
}
