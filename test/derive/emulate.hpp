// SPDX-License-Identifier: Apache-2.0
//
// CUDA kernels on the host, for tests where there is no GPU: what generated text needs of
// the language, and work-items that wait for each other.
//
//   method  the work-items of a group are fibers of one thread; one runs until it waits at a
//           barrier or for the other lanes of its warp. Groups run one after another.
//
// It shows wrong indices, exchanges and borders; neither races nor what memory allows.

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __device__ static
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

static inline int __double2hiint(double a)
{
    long long bits;
    memcpy(&bits, &a, sizeof bits);
    return (int)(bits >> 32);
}

struct Place {
    int x, y, z;
};
static Place threadIdx, blockIdx;
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(16) double4 {
    double x, y, z, w;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }

enum { WARP = 32, ITEMS_MAX = 1024, STACK = 1 << 16 };

struct Fiber {
    ucontext_t start;
    jmp_buf at;
    char *stack;
    bool begun, done;
    Place id;
};
static Fiber fiber[ITEMS_MAX];
static jmp_buf back;
static int current, alive, arrived, barriers;
static int lanes_arrived[ITEMS_MAX / WARP], exchanges[ITEMS_MAX / WARP];
static unsigned char offered[ITEMS_MAX][8];
static void (*body)(void *const *arg);
static void *const *body_arg;

// What a kernel is called with.
struct Any {
    void *address;
    template <class T> operator T *() const { return (T *)address; }
};

static void pause()
{
    int self = current;
    if (_setjmp(fiber[self].at) == 0)
        _longjmp(back, 1);
    threadIdx = fiber[self].id;
}

static void run_item()
{
    body(body_arg);
    fiber[current].done = true;
    alive--;
    _longjmp(back, 1);
}

static void resume(int item)
{
    Fiber *f = &fiber[item];
    current = item;
    threadIdx = f->id;
    if (_setjmp(back) != 0)
        return;
    if (f->begun)
        _longjmp(f->at, 1);
    f->begun = true;
    setcontext(&f->start);
}

static inline void __syncthreads()
{
    int before = barriers;
    if (++arrived == alive) {
        arrived = 0;
        barriers++;
    }
    while (barriers == before)
        pause();
}

static void wait_for_warp(int warp)
{
    int before = exchanges[warp];
    if (++lanes_arrived[warp] == WARP) {
        lanes_arrived[warp] = 0;
        exchanges[warp]++;
    }
    while (exchanges[warp] == before)
        pause();
}

template <class T> static T __shfl_sync(unsigned, T value, int lane)
{
    int self = current, warp = self / WARP;
    T result;
    memcpy(offered[self], &value, sizeof value);
    wait_for_warp(warp);
    memcpy(&result, offered[warp * WARP + (lane & (WARP - 1))], sizeof result);
    wait_for_warp(warp); // nobody offers again before all have read
    return result;
}

static void run_group(Place local)
{
    int items = local.x * local.y * local.z;
    alive = items;
    for (int i = 0; i < items; i++) {
        Fiber *f = &fiber[i];
        if (!f->stack)
            f->stack = (char *)malloc(STACK);
        f->begun = f->done = false;
        f->id = {i % local.x, i / local.x % local.y, i / local.x / local.y};
        getcontext(&f->start);
        f->start.uc_stack.ss_sp = f->stack;
        f->start.uc_stack.ss_size = STACK;
        f->start.uc_link = NULL;
        makecontext(&f->start, run_item, 0);
    }
    while (alive > 0)
        for (int i = 0; i < items; i++)
            if (!fiber[i].done)
                resume(i);
}

static void emulate(Place groups, Place local, void (*kernel)(void *const *arg),
                    void *const *arg)
{
    body = kernel;
    body_arg = arg;
    for (blockIdx.z = 0; blockIdx.z < groups.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < groups.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < groups.x; blockIdx.x++)
                run_group(local);
}
