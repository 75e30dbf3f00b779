// SPDX-License-Identifier: Apache-2.0
//
// Running the measurement kernels; see calibrate.h.
//
//   timing  30 runs, the first 4 dropped, the minimum of the rest (paper 003, 4.2): two
//           warm-ups of the protocol and two samples are the four
//   sizes   a size is left out where its runs would not fit the time the kernel has: each
//           has an equal share of what is left of the budget, and fewer sizes where those
//           before took longer than that; all kernels in one shape of
//           group come first, other shapes as long as there is time
//
// One rig serves all kernels: its buffers are as large as the largest needs. What the
// kernels compute is not compared; the tests of the code generator do that.

#include "plan/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { SHAPES_ONE, SHAPES_TWO, SHAPES_TILE } Shapes;

typedef struct {
    KernelClass class;
    const char *name, *sizes;
    int first, last, step;
    Shapes shapes;
    const char *more, *text;
} KernelRow;

static const KernelRow kernel_rows[] = {
#define KERNEL(class, name, sizes, first, last, step, shapes, more, text)                  \
    {CLASS_##class, #name, sizes, first, last, step, SHAPES_##shapes, more, text},
#include "plan/calibrate.def"
#undef KERNEL
};

enum { SAMPLES = 28, DROPPED = 2, SHAPES_MOST = 3, SIZES_LEAST = 2 };
static const char *const shape_points[][SHAPES_MOST] = {
    [SHAPES_ONE] = {"lx=256", "lx=128", "lx=512"},
    [SHAPES_TWO] = {"lx=16 ly=16", "lx=32 ly=16", "lx=16 ly=8"},
    [SHAPES_TILE] = {"lx=16 ly=16", NULL, NULL},
};

// Sizes ---------------------------------------------------------------------------------

// `n`, `n/16`, `8*n` or a number.
static int64_t size_value(const char *text, int64_t n)
{
    int64_t factor = 1, part = 1;
    const char *star = strchr(text, '*'), *slash = strchr(text, '/');
    if (!strchr(text, 'n'))
        return atoll(text);
    factor = star ? atoll(text) : 1;
    part = slash ? atoll(slash + 1) : 1;
    return factor * n / part;
}

static int bind_sizes(Arena *arena, const char *sizes, int64_t n, Binding *binding, int max)
{
    char *text = arena_strdup(arena, sizes), *save = NULL;
    int count = 0;
    for (char *item = strtok_r(text, ",", &save); item && count < max;
         item = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(item, '=');
        *eq = 0;
        binding[count++] = (Binding){item, size_value(eq + 1, n)};
    }
    return count;
}

// One kernel at one size and point --------------------------------------------------------

typedef struct {
    const KernelRow *row;
    Problem *problem;
    Derivation *derivation;
    Candidate candidate;
    Arena *arena;
} Made;

static void made_free(Made *made)
{
    candidate_release(&made->candidate);
    derive_free(made->derivation);
    problem_free(made->problem);
    arena_free(made->arena);
}

static void set_point(const Derivation *derivation, const char *text, Arena *arena,
                      Point *point)
{
    char *copy = arena_strdup(arena, text), *save = NULL;
    derive_plain(derivation, point);
    for (char *item = strtok_r(copy, " ", &save); item; item = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(item, '=');
        *eq = 0;
        space_set(derive_space(derivation), point, item, eq + 1);
    }
}

// False if the point is not valid at this size, or too large for the device.
static bool make(const KernelRow *row, int64_t n, const char *shape,
                 const DeviceInfo *device, int number, Made *made)
{
    *made = (Made){.row = row, .arena = arena_new()};
    buf_init(&made->candidate.source);
    Diags quiet;
    diags_init(&quiet, made->arena);
    Binding binding[8];
    int count = bind_sizes(made->arena, row->sizes, n, binding, COUNTOF(binding));
    made->problem = problem_parse(row->name, row->text, &quiet);
    if (!made->problem->program)
        BUG("the measurement kernel %s is wrong", row->name);
    if (!problem_bind(made->problem, binding, count, &quiet))
        return false;
    made->derivation = derive_new(made->problem->bound, device, &quiet);
    if (!made->derivation)
        return false;
    Point *point = NEW(made->arena, Point);
    set_point(made->derivation, arena_printf(made->arena, "%s %s", shape, row->more),
              made->arena, point);
    Expr *body = space_valid(derive_space(made->derivation), point)
                     ? derive_body(made->derivation, point, &quiet)
                     : NULL;
    LowerOptions options = derive_options(made->derivation, point);
    options.name = arena_printf(made->arena, "m%d", number);
    for (int d = 0; row->class == CLASS_EMPTY && d < 2; d++)
        options.global[d] = n;
    Buf prelude;
    buf_init(&prelude);
    const Target *target = target_find(device->target);
    emit_prelude(&prelude, target, made->problem->bound);
    bool ok = body && candidate_build(made->problem, body, &options, target,
                                      arena_strdup(made->arena, prelude.text), made->arena,
                                      &made->candidate, &quiet);
    buf_release(&prelude);
    return ok;
}

// The pool ------------------------------------------------------------------------------

// Buffers that all kernels share: inputs hold the same numbers around 1.
enum { POOL_INPUTS = 4, POOL = POOL_INPUTS + 1, BATCH_MOST = 16 };
// At most this much in one: more than the nearer caches, and soon filled.
enum { BYTES_CPU = 1 << 25, BYTES_GPU = 1 << 28 };

typedef struct {
    const CalibrateOptions *options;
    Calibration *out;
    Arena *arena;
    Diags *diags;
    Rig *rig;
    float *values;
    double deadline_s;
    int64_t most_bytes;
    int number; // of kernels made, for their names
    int jobs;   // done, and the time they took
    double spent_s;
} Calibrator;

static bool open_pool(Calibrator *c)
{
    int64_t n = c->most_bytes / (int64_t)sizeof(float);
    RigBuffer buffer[POOL];
    uint32_t x = 1;
    c->values = xmalloc(sizeof(float) * (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        x = x * 1664525U + 1013904223U;
        c->values[i] = 0.5F + (float)(x >> 8) * (1.0F / (1 << 24));
    }
    for (int i = 0; i < POOL; i++)
        buffer[i] = (RigBuffer){.name = "pool",
                                .scalar = S_FLOAT,
                                .count = n,
                                .init = i < POOL_INPUTS ? c->values : NULL};
    RigConfig config = {.device = c->options->device,
                        .worker = c->options->place.worker,
                        .folder = c->options->place.folder,
                        .nbuffer = POOL,
                        .buffer = buffer,
                        .samples = SAMPLES};
    c->rig = rig_open(&config, c->diags);
    return c->rig != NULL;
}

// The job's buffers are the pool's. False if one is too large or of another type.
static bool use_pool(const Calibrator *c, Made *made)
{
    const Unit *unit = made->candidate.unit;
    Job *job = &made->candidate.job;
    if (unit->ninput > POOL_INPUTS || unit->noutput > 1 || job->nscratch)
        return false;
    for (int i = 0; i < unit->buffers.len; i++) {
        int64_t count = 0;
        const Buffer *buffer = unit->buffers.at[i];
        arith_is_const(buffer->count, &count);
        if (buffer->scalar != S_FLOAT || count > c->most_bytes / (int64_t)sizeof(float))
            return false;
    }
    JobLaunch *launch = NEW_ARRAY(made->arena, JobLaunch, job->nlaunch);
    for (int i = 0; i < job->nlaunch; i++) {
        launch[i] = job->launch[i];
        JobArg *arg = NEW_ARRAY(made->arena, JobArg, launch[i].narg);
        for (int k = 0; k < launch[i].narg; k++) {
            arg[k] = launch[i].arg[k];
            if (arg[k].kind == ARG_BUFFER && arg[k].buffer >= unit->ninput)
                arg[k].buffer += POOL_INPUTS - unit->ninput;
        }
        launch[i].arg = arg;
    }
    job->launch = launch;
    return true;
}

// One kernel, all sizes -------------------------------------------------------------------

typedef struct {
    Calibrator *c;
    const char *shape;
    Made made[BATCH_MOST];
    Job job[BATCH_MOST];
    int64_t size[BATCH_MOST];
    int n;
    double cutoff_ns;
} Batch;

static double kept_minimum(const Trial *trial)
{
    double best = INFINITY;
    for (int i = MAX(MIN(DROPPED, trial->nsample - 1), 0); i < trial->nsample; i++)
        best = fmin(best, trial->sample_ns[i]);
    return best;
}

static double on_trial(void *user, int number, Trial *trial)
{
    Batch *b = user;
    const Made *made = &b->made[number];
    const KernelRow *kernel = made->row;
    bool ok = trial->status == TRIAL_OK && !trial->cut && trial->nsample > 0;
    Measured row = {.class = kernel->class,
                    .kernel = kernel->name,
                    .point = arena_printf(b->c->arena, "%s%s%s", b->shape,
                                          kernel->more[0] ? " " : "", kernel->more),
                    .n = b->size[number],
                    .time_ns = ok ? kept_minimum(trial) : 0};
    FeatureSetting setting = {NULL, made->problem->binding, made->problem->nbinding};
    ok = ok && row.time_ns > 0 && counts_numbers(made->candidate.unit, &setting, row.count);
    // The one store without which there would be no kernel.
    for (int p = 0; kernel->class == CLASS_EMPTY && p < COUNT_BARRIER; p++)
        row.count[p] = 0;
    if (ok)
        VEC_PUSH(b->c->arena, &b->c->out->rows, row);
    if (trial->status != TRIAL_OK)
        diag_warning(b->c->diags, span_none, "X003", "%s, n = %lld: %s: %.200s",
                     kernel->name, (long long)row.n, trial_status_name[trial->status],
                     trial->log ? trial->log : "");
    return b->cutoff_ns;
}

// False if the device is gone.
static bool measure_kernel(Calibrator *c, const KernelRow *row, const char *shape,
                           double share_s)
{
    // Runs so long that 30 of all sizes would not fit are cut: sizes grow at least by two.
    Batch b = {.c = c, .shape = shape, .cutoff_ns = share_s * 1e9 / (2 * 30) / 3};
    int sizes = (row->last - row->first) / row->step + 1;
    int wanted = c->jobs ? (int)fmin(share_s * c->jobs / c->spent_s, sizes) : sizes;
    int stride = (sizes - 1) / (MAX(wanted, SIZES_LEAST) - 1);
    double start = clock_s();
    for (int p = row->first; p <= row->last && b.n < BATCH_MOST;
         p += row->step * MAX(stride, 1)) {
        Made *made = &b.made[b.n];
        if (make(row, (int64_t)1 << p, shape, &c->out->device, c->number++, made) &&
            use_pool(c, made)) {
            b.size[b.n] = (int64_t)1 << p;
            b.job[b.n++] = made->candidate.job;
        } else {
            made_free(made);
        }
    }
    bool alive = rig_run(c->rig, b.job, b.n, b.cutoff_ns, on_trial, &b, c->diags);
    c->jobs += b.n;
    c->spent_s += clock_s() - start;
    for (int i = 0; i < b.n; i++)
        made_free(&b.made[i]);
    return alive;
}

// All of it -------------------------------------------------------------------------------

static bool find_device(Calibrator *c)
{
    DeviceInfo *all;
    int n = devices_list(c->arena, c->options->place.worker, &all, c->diags);
    for (int i = 0; i < n; i++)
        if (strcmp(all[i].id, c->options->device) == 0) {
            c->out->device = all[i];
            return true;
        }
    return diag_world(c->diags, "C007",
                      "there is no device %s; `forewarp devices` lists those present",
                      c->options->device);
}

static void find_launch(Calibration *c)
{
    c->launch_ns = INFINITY;
    for (int i = 0; i < c->rows.len; i++)
        if (c->rows.at[i].class == CLASS_EMPTY)
            c->launch_ns = fmin(c->launch_ns, c->rows.at[i].time_ns);
    c->launch_ns = isfinite(c->launch_ns) ? c->launch_ns : 0;
}

bool calibrate(const CalibrateOptions *options, Arena *arena, Calibration *out,
               Diags *diags)
{
    *out = (Calibration){0};
    Calibrator c = {.options = options,
                    .out = out,
                    .arena = arena,
                    .diags = diags,
                    .deadline_s = clock_s() + options->budget_s};
    if (!find_device(&c))
        return false;
    c.most_bytes = MIN(out->device.is_cpu ? BYTES_CPU : BYTES_GPU, out->device.alloc_bytes);
    bool ok = open_pool(&c);
    int n = COUNTOF(kernel_rows);
    while (!options->tests && kernel_rows[n - 1].class == CLASS_TEST)
        n--;
    for (int s = 0; ok && s < SHAPES_MOST; s++)
        for (int i = 0; ok && i < n; i++) {
            const char *shape = shape_points[kernel_rows[i].shapes][s];
            double left_s = c.deadline_s - clock_s();
            if (options->progress)
                options->progress(options->user, kernel_rows[i].name, s * n + i,
                                  SHAPES_MOST * n);
            if (shape && left_s > 0)
                ok = measure_kernel(&c, &kernel_rows[i], shape, left_s / (n - i));
            else if (shape && s == 0)
                diag_warning(diags, span_none, "X005",
                             "the budget was used up before %s: what only it tells has no "
                             "weight",
                             kernel_rows[i].name);
        }
    rig_close(c.rig);
    free(c.values);
    find_launch(out);
    return ok && (out->rows.len > 0 || diag_world(diags, "X004", "no kernel could be run"));
}

static bool is_fitted(const Calibration *c, const Measured *row)
{
    return row->class != CLASS_TEST &&
           (row->class == CLASS_EMPTY || row->time_ns >= c->launch_ns);
}

// The column that a property is fitted in, and how many times it counts there. An access
// costs by its bytes, and a load that uses all of what it strides over what one side by
// side costs: the same lines come into the cache. What comes from beyond it, the arrays
// say. In columns of their own these would only share what the arrays cost between them.
static int column_of(int property, double *times)
{
    static const int filled[] = {3, 6, 10}; // 2/2, 3/3, 4/4
    *times = 1;
    if (property > COUNT_MINIMUM_LAST)
        return property;
    int kind = property - property % (COUNT_WIDTHS * COUNT_STRIDES);
    int width = (property - kind) / COUNT_STRIDES, class = property % COUNT_STRIDES;
    *times = ldexp(1, width);
    for (int i = 0; i < COUNTOF(filled); i++)
        if (kind == COUNT_LOAD && class == filled[i])
            class = 1;
    return kind + class;
}

void calibrate_fit(const Calibration *c, Weights *w)
{
    Matrix x = matrix_new(c->rows.len, PROPERTIES);
    double *y = xcalloc((size_t)c->rows.len + 1, sizeof *y);
    Sign sign[PROPERTIES];
    x.n = 0;
    for (int i = 0; i < c->rows.len; i++) {
        const Measured *row = &c->rows.at[i];
        if (!is_fitted(c, row))
            continue;
        for (int p = 0; p < PROPERTIES; p++) {
            double times, share = weights_share(&c->device, row->count, p);
            matrix_row(&x, x.n)[column_of(p, &times)] += row->count[p] * share * times;
        }
        y[x.n++] = row->time_ns * 1e-9;
    }
    for (int p = 0; p < PROPERTIES; p++)
        sign[p] = counts_kind(p) == COUNTS_MINIMUM ? SIGN_NEGATIVE : SIGN_POSITIVE;
    Linear l = linear_fit(&x, y, sign);
    *w = (Weights){.device = c->device, .rows = l.rows, .rms = l.rms};
    for (int p = 0; p < PROPERTIES; p++) {
        double times;
        int column = column_of(p, &times);
        w->weight[p] = times * l.weight[column];
        w->error[p] = times * l.error[column];
        w->support[p] = l.support[column];
    }
    linear_free(&l);
    matrix_free(&x);
    free(y);
}
