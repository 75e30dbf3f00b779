// A bitonic sort: a launch a stage and a step, short steps together in local memory.
void order(private int *a, private int *b, int up)
{
    if ((*a > *b) == up) {
        int t = *a;
        *a = *b;
        *b = t;
    }
}

kernel void single(global int *x, int stage, int distance)
{
    int i = get_global_id(0), low = i / distance * 2 * distance + i % distance;
    int a = x[low], b = x[low + distance];
    order(&a, &b, (low & stage) == 0);
    x[low] = a;
    x[low + distance] = b;
}

kernel void joined(global int *x, int stage)
{
    local int part[2 * WG];
    int me = get_local_id(0), start = get_group_id(0) * 2 * WG;
    part[me] = x[start + me];
    part[me + WG] = x[start + me + WG];
    for (int distance = WG; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int low = me / distance * 2 * distance + me % distance;
        int a = part[low], b = part[low + distance];
        order(&a, &b, ((start + low) & stage) == 0);
        part[low] = a;
        part[low + distance] = b;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    x[start + me] = part[me];
    x[start + me + WG] = part[me + WG];
}
