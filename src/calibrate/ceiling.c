// SPDX-License-Identifier: Apache-2.0
//
// Ceilings of a device, measured once and stored: bandwidth of a copy, rate of dependent
// multiply-adds that stay in registers. The kernels are programs of the language, lowered
// like any other.
//
//   method  the best of several shapes of each; the worker and the timing of trials
//
// It does not measure special functions, local memory, caches or matrix units.

#include "calibrate/ceiling.h"

#include "cost/walk.h"

#include <math.h>
#include <string.h>

static const char copy_text[] =
    "size N\ndef copy(a: [N]float): [N]float = map(\\x -> x, a)\n";

// 16 chains hide the latency of a multiply-add: 4 cycles on a GPU of 4 schedulers a
// multiprocessor with few warps, 4 x 2 units on a CPU. A CPU's compiler does not vectorise
// over items that contain a loop, so its items are vectors.
static const char rate_text[] =
    "size N, K\n"
    "def rate(x: [N]%s) = x |> %s map(\\m ->\n"
    "  let s = array(K, \\i -> i) |> reduceSeq(\\a i -> (\n"
    "    a.0*m + 0.25, a.1*m + 0.25, a.2*m + 0.25, a.3*m + 0.25,\n"
    "    a.4*m + 0.25, a.5*m + 0.25, a.6*m + 0.25, a.7*m + 0.25,\n"
    "    a.8*m + 0.25, a.9*m + 0.25, a.10*m + 0.25, a.11*m + 0.25,\n"
    "    a.12*m + 0.25, a.13*m + 0.25, a.14*m + 0.25, a.15*m + 0.25),\n"
    "    (m, m+1, m+2, m+3, m+4, m+5, m+6, m+7, m+8, m+9, m+10, m+11, m+12, m+13, m+14,\n"
    "     m+15)) in\n"
    "  s.0 + s.1 + s.2 + s.3 + s.4 + s.5 + s.6 + s.7 + s.8 + s.9 + s.10 + s.11 + s.12\n"
    "    + s.13 + s.14 + s.15)%s\n";
enum { CHAINS = 16, STEPS = 1024, ITEMS_UNIT = 8 * 2048, SAMPLES = 8 };

// Variants to copy; the first is that of the rate too. A row that names a value which the
// device's space lacks is passed over.
static const char *const shape[] = {
    "lx=256",
    "lx=64 bx=4",
    "lx=64 bx=8",
    "lx=256 bx=4",
    "lx=128 bx=4 vec=4",
    "lx=256 bx=4 vec=4",
    "lx=128 bx=4 cx=2 vec=4",
    "lx=256 bx=4 cx=2 vec=4",
    "lx=256 bx=4 cx=4 vec=4",
};

typedef struct {
    Arena *arena;
    Problem *problem;
    ProblemData *data;
    Runner *runner;
    Variants variants;
} Bench;

// All are measured by one runner, with the buffers of each in turn.
typedef struct {
    const DeviceInfo *device;
    const Workplace *place;
    Runner *runner;
} Site;

static bool bench_open(Bench *b, const char *name, const char *text, const Binding *binding,
                       int n, Site *site, Diags *diags)
{
    const DeviceInfo *device = site->device;
    *b = (Bench){.arena = arena_new()};
    b->problem = problem_parse(name, text, diags);
    if (!b->problem->program || !problem_bind(b->problem, binding, n, diags))
        BUG("the program `%s` is wrong", name);
    b->data = data_random(b->problem, 1, b->arena);
    RunnerConfig config = {.device = device->id,
                           .worker = site->place->worker,
                           .folder = site->place->folder,
                           .stop = site->place->stop,
                           .nbuffer = 2,
                           .buffer = b->data->buffer};
    bool ok = !site->runner || runner_fill(site->runner, &config, diags);
    if (!site->runner)
        site->runner = runner_open(&config, diags);
    b->runner = site->runner;
    return ok && b->runner && variants_open(&b->variants, b->problem, device, diags);
}

// The point that a row of the table names; false if the space has no such point.
static bool set_shape(const Bench *b, const char *text, Point *point)
{
    const Space *space = b->variants.space;
    char *save = NULL;
    variants_first(&b->variants, point, 1);
    for (char *item = strtok_r(arena_strdup(b->arena, text), " ", &save); item;
         item = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(item, '=');
        *eq = 0;
        if (!space_set(space, point, item, eq + 1))
            return false;
    }
    return space_valid(space, point);
}

// The best time of all shapes; INFINITY if none ran.
static double bench_best(Bench *b, int shapes, Diags *diags)
{
    double best = INFINITY;
    for (int i = 0; i < shapes; i++) {
        Point point;
        Candidate candidate;
        Trial trial = {0};
        if (!set_shape(b, shape[i], &point) ||
            !variants_candidate(&b->variants, &point,
                                arena_printf(b->arena, "ceiling%d", i), b->arena,
                                &candidate, diags))
            continue;
        if (runner_run_one(b->runner, &candidate.job, SAMPLES, &trial, NULL, diags) &&
            trial.status == TRIAL_OK)
            best = fmin(best, trial.time_ns);
        trial_release(&trial);
        candidate_release(&candidate);
    }
    return best;
}

// Work done in a nanosecond by the best shape; 0 if none ran. Whatever fails is no reason
// to give up what is being measured.
static double measure(const char *name, const char *text, const Binding *binding, int n,
                      int shapes, double work, Site *site)
{
    Bench b;
    AutoArena *arena = arena_new();
    Diags quiet = {.arena = arena};
    double best = INFINITY;
    if (bench_open(&b, name, text, binding, n, site, &quiet))
        best = bench_best(&b, shapes, &quiet);
    variants_close(&b.variants);
    problem_free(b.problem);
    arena_free(b.arena);
    return best < INFINITY ? work / best : 0;
}

static double measure_copy(Site *site, int64_t bytes)
{
    Binding size = {"N", bytes / 8};
    return measure("copy", copy_text, &size, 1, COUNTOF(shape), (double)bytes, site);
}

static double measure_rate(Site *site, const char *type)
{
    const DeviceInfo *device = site->device;
    char text[2 * sizeof rate_text];
    bool vectors = device->is_cpu;
    snprintf(text, sizeof text, rate_text, type, vectors ? "asVector(8) |>" : "",
             vectors ? " |> asScalar" : "");
    for (char *at; strcmp(type, "int") == 0 && (at = strstr(text, "0.25"));)
        memcpy(at, "   3", 4);
    int64_t items = (int64_t)ITEMS_UNIT * MAX(device->compute_units, 1);
    Binding size[] = {{"N", items}, {"K", STEPS}};
    double flops = 2.0 * CHAINS * STEPS * (double)items;
    return measure("rate", text, size, 2, 1, flops, site);
}

// The store -----------------------------------------------------------------------------

int64_t ceilings_bytes(const DeviceInfo *device, double bytes)
{
    int64_t most = device->is_cpu ? (int64_t)1 << 27 : (int64_t)1 << 30, n = 1 << 16;
    while (n > device->global_bytes / 4 && n > 4096)
        n /= 2;
    most = MIN(most, device->global_bytes / 4);
    if (bytes <= 0)
        bytes = (double)most;
    while (2 * n <= most && (double)n * M_SQRT2 < bytes)
        n *= 2;
    return n;
}

bool ceilings_load(Store *store, const DeviceInfo *device, int64_t bytes,
                   Ceilings *ceilings, Diags *diags)
{
    const char *id = device->fingerprint;
    ceilings->matrix = device->matrix > 0;
    return store_get_ceiling(store, id, "copy", bytes, &ceilings->copy_gbs, diags) &&
           store_get_ceiling(store, id, "float", 0, &ceilings->float_gflops, diags) &&
           store_get_ceiling(store, id, "double", 0, &ceilings->double_gflops, diags) &&
           store_get_ceiling(store, id, "int", 0, &ceilings->int_gops, diags);
}

static bool keep(Store *store, const DeviceInfo *device, const char *what, int64_t bytes,
                 double value, Diags *diags)
{
    return value <= 0 ||
           store_put_ceiling(store, device->fingerprint, what, bytes, value, diags);
}

bool ceilings_measure(Store *store, const DeviceInfo *device, const Workplace *place,
                      int64_t bytes, Ceilings *ceilings, Diags *diags)
{
    Site site = {.device = device, .place = place};
    bool ok = true;
    if (ceilings->copy_gbs <= 0) {
        ceilings->copy_gbs = measure_copy(&site, bytes);
        ok = keep(store, device, "copy", bytes, ceilings->copy_gbs, diags);
    }
    if (ok && ceilings->float_gflops <= 0) {
        ceilings->float_gflops = measure_rate(&site, "float");
        ok = keep(store, device, "float", 0, ceilings->float_gflops, diags);
    }
    if (ok && device->has_double && ceilings->double_gflops <= 0) {
        ceilings->double_gflops = measure_rate(&site, "double");
        ok = keep(store, device, "double", 0, ceilings->double_gflops, diags);
    }
    if (ok && ceilings->int_gops <= 0) {
        ceilings->int_gops = measure_rate(&site, "int");
        ok = keep(store, device, "int", 0, ceilings->int_gops, diags);
    }
    runner_close(site.runner);
    return ok;
}

bool ceilings_find(Store *store, const DeviceInfo *device, const Workplace *place,
                   int64_t bytes, Ceilings *ceilings, Diags *diags)
{
    return ceilings_load(store, device, bytes, ceilings, diags) &&
           ceilings_measure(store, device, place, bytes, ceilings, diags);
}

bool roofline_is_refuted(Roofline roofline, double ns)
{
    static const double FASTER = 1.5;
    return ns > 0 && roofline.memory_ns > FASTER * ns;
}

Roofline roofline_of(const Work *work, const Ceilings *ceilings)
{
    Roofline f = {0};
    double floats = work->float_flops, doubles = work->double_flops;
    for (int i = 0; i < SCALARS; i++) {
        const bool is_double = i == S_DOUBLE;
        const double flops = work->products[i];
        const double rate = is_double ? ceilings->double_gflops : ceilings->float_gflops;
        if (!ceilings->matrix)
            *(is_double ? &doubles : &floats) += i == S_HALF ? flops / 2 : flops;
        else if (flops > 0 && rate > 0)
            f.compute_ns = MAX(f.compute_ns, flops / (matrix_times[i] * rate));
    }
    if (ceilings->copy_gbs > 0)
        f.memory_ns = work->bytes / ceilings->copy_gbs;
    if (ceilings->float_gflops > 0)
        f.compute_ns = MAX(f.compute_ns, floats / ceilings->float_gflops);
    if (ceilings->double_gflops > 0)
        f.compute_ns = MAX(f.compute_ns, doubles / ceilings->double_gflops);
    if (ceilings->int_gops > 0)
        f.compute_ns = MAX(f.compute_ns, work->int_ops / ceilings->int_gops);
    f.ns = MAX(f.memory_ns, f.compute_ns);
    return f;
}
