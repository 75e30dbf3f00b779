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

#define __CUDACC__
#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

template <typename To, typename From> static inline To bits_as(From x)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}
typedef _Float16 half;
static inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
static inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
static inline half __ushort_as_half(unsigned short x) { return bits_as<half>(x); }
static inline unsigned short __half_as_ushort(half x) { return bits_as<unsigned short>(x); }
static inline int __double2hiint(double a)
{
    long long bits;
    memcpy(&bits, &a, sizeof bits);
    return (int)(bits >> 32);
}

struct Place {
    int x, y, z;
};
static Place threadIdx, blockIdx, blockDim, gridDim;
alignas(1024) unsigned char fw_local[227 << 10]; // what launches ask for

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
struct alignas(2) char2 {
    signed char x, y;
};
struct alignas(4) char4 {
    signed char x, y, z, w;
};
struct alignas(2) uchar2 {
    unsigned char x, y;
};
struct alignas(4) uchar4 {
    unsigned char x, y, z, w;
};
struct alignas(4) ushort2 {
    unsigned short x, y;
};
struct alignas(8) ushort4 {
    unsigned short x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(4) half2 {
    half x, y;
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
static unsigned char offered[ITEMS_MAX][64];
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

// Those of a warp wait no longer for all: it is as good here.
static inline void __syncwarp()
{
    __syncthreads();
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

template <class T> static T __shfl_xor_sync(unsigned all, T value, int mask)
{
    return __shfl_sync(all, value, current % WARP ^ mask);
}

// Fragments, as the instructions of matrix units have them --------------------------------

// Row r of a fragment of the first factor is in lanes 4*(r%8) and the three after it.
template <class T> static const T *offered_by(int lane)
{
    return (const T *)offered[current / WARP * WARP + lane];
}

// Adds up x*y over k for the sums of this lane; x(row, k) and y(k, column) find elements.
template <class C, class X, class Y>
static void add_products(C *c, C *d, int depth, X x, Y y)
{
    const int lane = current % WARP, g = lane / 4, t = lane % 4;
    for (int e = 0; e < 2; e++)
        for (int k = 0; k < depth; k++) {
            c[e] += (C)(x(g, k) * y(k, 2 * t + e));
            d[e] += (C)(x(g + 8, k) * y(k, 2 * t + e));
        }
}

template <class T> static void fw_mma(T *c, T *d, const T *x, const T *z, const T *y)
{
    const T mine[] = {x[0], x[1], z[0], z[1], y[0], y[1]};
    memcpy(offered[current], mine, sizeof mine);
    wait_for_warp(current / WARP);
    add_products(
        c, d, 8,
        [](int row, int k) {
            return offered_by<T>(row % 8 * 4 + k % 4)[row / 8 * 2 + k / 4];
        },
        [](int k, int column) { return offered_by<T>(column * 4 + k % 4)[4 + k / 4]; });
    wait_for_warp(current / WARP);
}

// An element of 16 bits: a float's upper half, or a half.
template <bool UPPER> static float widened(const void *element)
{
    unsigned short bits;
    half value;
    memcpy(&bits, element, 2);
    memcpy(&value, element, 2);
    unsigned int upper = (unsigned int)bits << 16;
    float wide;
    memcpy(&wide, &upper, 4);
    return UPPER ? wide : (float)value;
}

// A register holds two neighbours along k, and the next register of x is 8 rows on.
template <bool UPPER> static void fw_mma(float *c, float *d, const unsigned *x, const unsigned *y)
{
    memcpy(offered[current], x, 16);
    memcpy(offered[current] + 16, y, 8);
    wait_for_warp(current / WARP);
    add_products(
        c, d, 16,
        [](int row, int k) {
            return widened<UPPER>(offered_by<half>(row % 8 * 4 + k % 8 / 2) + k / 8 * 4 +
                                  row / 8 * 2 + k % 2);
        },
        [](int k, int column) {
            return widened<UPPER>(offered_by<half>(column * 4 + k % 8 / 2) + 8 + k / 8 * 2 +
                                  k % 2);
        });
    wait_for_warp(current / WARP);
}

template <bool UPPER>
static void fw_mma(unsigned *c, unsigned *d, const unsigned *x, const unsigned *y)
{
    half *sum[] = {(half *)c, (half *)d};
    float wide[] = {sum[0][0], sum[0][1], sum[1][0], sum[1][1]};
    fw_mma<false>(&wide[0], &wide[2], x, y);
    for (int i = 0; i < 4; i++)
        sum[i / 2][i % 2] = (half)wide[i];
}

template <bool TURNED> static void fw_blocks(unsigned *x, const void *row)
{
    const int t = current % 4, g = current % WARP / 4;
    memcpy(offered[current], row, 16);
    wait_for_warp(current / WARP);
    for (int q = 0; q < 4; q++)
        for (int e = 0; e < 2; e++)
            ((half *)&x[q])[e] = TURNED ? offered_by<half>(8 * q + 2 * t + e)[g]
                                        : offered_by<half>(8 * q + g)[2 * t + e];
    wait_for_warp(current / WARP);
}

// What four warps add up together: tiles in rows of 128 bytes, whose 16-byte pieces are
// exchanged by the row in its block of 1,024 bytes.
template <int N> struct fw_columns { };
static void fw_fence() {}
static void fw_together_begin() {}
static void fw_together_end() {}
template <int KEEP, int N> static void fw_together_wait(float (&)[N]) {}

template <bool UPPER> static float swizzled(const void *tile, int element)
{
    size_t at = (size_t)tile + 2 * (size_t)element;
    return widened<UPPER>((const void *)(at ^ (at >> 7 & 7) << 4));
}

template <bool TA, bool TB, bool UPPER, int N>
static void fw_together(float *c, float *d, const void *a, const void *b, fw_columns<N>)
{
    const int lane = current % WARP, g = lane / 4, t = lane % 4, first = current / WARP % 4 * 16;
    for (int j = 0; j < N; j++)
        for (int e = 0; e < 2; e++)
            for (int h = 0; h < 2; h++)
                for (int k = 0; k < 16; k++) {
                    const int row = first + 8 * h + g, column = 8 * j + 2 * t + e;
                    float *sum = h ? &d[2 * j + e] : &c[2 * j + e];
                    *sum += swizzled<UPPER>(a, TA ? row + 64 * k : row * 64 + k) *
                            swizzled<UPPER>(b, TB ? column / 64 * 4096 + column % 64 + 64 * k
                                           : column * 64 + k);
                }
}

template <int BYTES> static void fw_copy(void *to, const void *from) { memcpy(to, from, BYTES); }
static void fw_commit() {}
template <int KEEP> static void fw_wait() {}

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
    blockDim = local;
    gridDim = groups;
    body = kernel;
    body_arg = arg;
    for (blockIdx.z = 0; blockIdx.z < groups.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < groups.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < groups.x; blockIdx.x++)
                run_group(local);
}
