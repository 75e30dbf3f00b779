// A sum in as many passes as the size asks for, between two arrays that change places, in
// scratch whose length depends on the group.
int count(int pass)
{
    int n = N;
    for (int k = 0; k < pass; k++)
        n = (n + WG - 1) / WG;
    return n;
}

kernel void first(global const float *in, global float *from)
{
    local float part[WG];
    int me = get_local_id(0), i = get_global_id(0);
    part[me] = i < N ? in[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0;
    for (int k = 0; k < WG && me == 0; k++)
        sum += part[k];
    if (me == 0)
        from[get_group_id(0)] = sum;
}

kernel void further(global const float *from, global float *to, int pass)
{
    int group = get_group_id(0), n = count(pass + 1);
    float sum = 0;
    for (int k = 0; k < WG && get_local_id(0) == 0; k++)
        sum += group * WG + k < n ? from[group * WG + k] : 0;
    if (get_local_id(0) == 0)
        to[group] = sum;
}

kernel void last(global const float *from, global float *sum)
{
    sum[0] = from[0];
}
