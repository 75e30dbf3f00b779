// SPDX-License-Identifier: Apache-2.0
//
// Running the measurement kernels; see calibrate.h.
//
//   timing  30 runs, the first 4 dropped, the minimum of the rest (paper 003, 4.2): two
//           warm-ups of the protocol and two samples are the four
//   sizes   each kernel has an equal share of what is left of the budget. Its two smallest
//           sizes come first; of the others those that should fit the share, by the work
//           they do beside what was measured. All kernels in one shape of group come first,
//           then all in their other shapes as long as there is time
//
// One runner serves all kernels: its buffers are as large as the largest needs. What the
// kernels compute is not compared; the tests of the code generator do that.

#include "calibrate/calibrate.h"
#include "calibrate/describe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    SHAPES_ONE,
    SHAPES_TWO,
    SHAPES_LINE,
    SHAPES_TILE,
    SHAPES_NARROW,
    SHAPES_BLOCKS
} Shapes;

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
#include "calibrate/calibrate.def"
#undef KERNEL
};

enum { SAMPLES = 28, DROPPED = 2, RUNS = 30, SHAPES_MOST = 9 };
static const char *const shape_points[][SHAPES_MOST] = {
    [SHAPES_ONE] = {"lx=256", "lx=128", "lx=64"},
    [SHAPES_TWO] = {"lx=16 ly=16", "lx=32 ly=16", "lx=16 ly=8"},
    [SHAPES_LINE] = {"lx=256"},
    [SHAPES_TILE] = {"lx=16 ly=16"},
    [SHAPES_NARROW] = {"lx=64 ly=4", "lx=8 ly=32", "lx=4 ly=64", "lx=1 ly=64", "lx=32 ly=1",
                       "lx=8 ly=2", "lx=2 ly=2", "lx=128 ly=1", "lx=256 ly=4"},
    [SHAPES_BLOCKS] = {"lx=32 ly=8", "lx=64 ly=2", "lx=8 ly=8", "lx=128 ly=8",
                       "lx=16 ly=4"},
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
} MadeKernel;

static void made_free(MadeKernel *made)
{
    candidate_release(&made->candidate);
    derive_free(made->derivation);
    problem_free(made->problem);
    arena_free(made->arena);
}

// False if the space lacks one of the choices.
static bool set_point(const Derivation *derivation, const char *text, Arena *arena,
                      Point *point)
{
    char *copy = arena_strdup(arena, text), *save = NULL;
    derive_single(derivation, point);
    for (char *item = strtok_r(copy, " ", &save); item; item = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(item, '=');
        *eq = 0;
        if (!space_set(derive_space(derivation), point, item, eq + 1))
            return false;
    }
    return space_valid(derive_space(derivation), point);
}

// False if the point is not valid at this size, or too large for the device.
static bool make(const KernelRow *row, int64_t n, const char *shape,
                 const DeviceInfo *device, int number, MadeKernel *made)
{
    *made = (MadeKernel){.row = row, .arena = arena_new()};
    made->candidate.source = buf_new();
    Diags quiet = {.arena = made->arena};
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
    Expr *body =
        set_point(made->derivation, arena_printf(made->arena, "%s %s", shape, row->more),
                  made->arena, point)
            ? derive_body(made->derivation, point, &quiet)
            : NULL;
    KernelOptions options = derive_options(made->derivation, point);
    options.name = arena_printf(made->arena, "m%d", number);
    for (int d = 0; row->class == CLASS_EMPTY && d < 2; d++)
        options.global[d] = n;
    AutoBuf prelude = buf_new();
    const Target *target = target_find(device->target);
    emit_prelude(&prelude, target, made->problem->bound);
    return body && candidate_build(made->problem, made->problem->bound, body, &options,
                                   target, arena_strdup(made->arena, prelude.text),
                                   made->arena, &made->candidate, &quiet);
}

// The pool ------------------------------------------------------------------------------

// Buffers that all kernels share: inputs hold the same numbers around 1.
enum { POOL_INPUTS = 6, POOL = POOL_INPUTS + 1, BATCH_MOST = 96 };
// At most this much in one: more than the nearer caches, and soon filled.
enum { BYTES_CPU = 1 << 25, BYTES_GPU = 1 << 28 };
// On a CPU other processes come between in longer runs than this.
static const double RUN_MOST_CPU_S = 10e-3;

typedef struct {
    const CalibrateOptions *options;
    Calibration *out;
    Arena *arena;
    Diags *diags;
    Runner *runner;
    float *values;
    double deadline_s;
    int64_t most_bytes;
    int number; // of kernels made, for their names
} Calibrator;

static bool open_pool(Calibrator *c)
{
    int64_t n = c->most_bytes / (int64_t)sizeof(float);
    RunnerBuffer buffer[POOL];
    uint32_t x = 1;
    c->values = xmalloc(sizeof(float) * (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        x = x * 1664525U + 1013904223U;
        c->values[i] = 0.5F + (float)(x >> 8) * (1.0F / (1 << 24));
    }
    for (int i = 0; i < POOL; i++)
        buffer[i] = (RunnerBuffer){.name = "pool",
                                   .scalar = S_FLOAT,
                                   .count = n,
                                   .init = i < POOL_INPUTS ? c->values : NULL};
    RunnerConfig config = {.device = c->options->device,
                           .worker = c->options->place.worker,
                           .folder = c->options->place.folder,
                           .stop = c->options->place.stop,
                           .nbuffer = POOL,
                           .buffer = buffer,
                           .samples = SAMPLES};
    c->runner = runner_open(&config, c->diags);
    return c->runner != NULL;
}

// The job's buffers are the pool's. False if one is too large or of another type.
static bool use_pool(const Calibrator *c, MadeKernel *made)
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

// One kernel -----------------------------------------------------------------------------

typedef struct {
    Calibrator *c;
    MadeKernel *made;
    Job job[BATCH_MOST];
    const char *shape[BATCH_MOST];
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

static bool count_row(const MadeKernel *made, double count[PROPERTIES])
{
    FeatureSetting setting = {NULL, made->problem->binding, made->problem->nbinding};
    bool ok = counts_numbers(made->candidate.unit, &setting, count);
    // The one store without which there would be no kernel.
    for (int p = 0; made->row->class == CLASS_EMPTY && p < COUNT_BARRIER; p++)
        count[p] = 0;
    return ok;
}

static bool demand_row(const Calibrator *c, const MadeKernel *made, Demand *demand)
{
    DeviceModel model;
    describe_device(&c->out->device, &model);
    FeatureSetting setting = {&model, made->problem->binding, made->problem->nbinding};
    Demand *all;
    AutoArena *scratch = arena_new();
    int n = demand_unit(made->candidate.unit, &setting, scratch, &all, NULL);
    if (n == 1)
        *demand = all[0];
    for (int d = 0; made->row->class == CLASS_EMPTY && d < DEMANDS; d++)
        if (d != DEMAND_LAUNCH && d != DEMAND_GROUP && d != DEMAND_WARP &&
            d != DEMAND_PHASE)
            demand->value[d] = 0;
    return n == 1;
}

static double on_trial(void *user, int number, Trial *trial)
{
    Batch *b = user;
    const MadeKernel *made = &b->made[number];
    const KernelRow *kernel = made->row;
    bool ok = trial->status == TRIAL_OK && !trial->cut && trial->nsample > 0;
    Measured row = {.class = kernel->class,
                    .kernel = kernel->name,
                    .point = arena_printf(b->c->arena, "%s%s%s", b->shape[number],
                                          kernel->more[0] ? " " : "", kernel->more),
                    .n = b->size[number],
                    .time_ns = ok ? kept_minimum(trial) : 0};
    if (ok && row.time_ns > 0 && count_row(made, row.count) &&
        demand_row(b->c, made, &row.demand))
        VEC_PUSH(b->c->arena, &b->c->out->rows, row);
    if (trial->status != TRIAL_OK)
        diag_warning(b->c->diags, span_none, "X003", "%s, n = %lld, %s: %s: %.200s",
                     kernel->name, (long long)row.n, row.point,
                     trial_status_name[trial->status], trial->log ? trial->log : "");
    return b->cutoff_ns;
}

// Accesses and operations, for how much longer one size runs than another.
static double work_of(const double count[PROPERTIES])
{
    double work = count[COUNT_GROUP];
    for (int p = 0; p < COUNT_BARRIER; p++)
        work += counts_kind(p) == COUNTS_ARRAY ? 0 : count[p];
    return work;
}

// What all runs of a job should take, by the largest size of the kernel that was measured;
// 0 if none was.
static double expected_s(const Calibrator *c, const MadeKernel *made)
{
    double count[PROPERTIES], expected = 0;
    int64_t largest = 0;
    VEC_EACH_REF(const Measured *, row, &c->out->rows) {
        if (strcmp(row->kernel, made->row->name) != 0 || row->n < largest)
            continue;
        largest = row->n;
        if (count_row(made, count))
            expected =
                RUNS * 1e-9 * row->time_ns * fmax(1, work_of(count) / work_of(row->count));
    }
    return expected;
}

static void add_job(Batch *b, const KernelRow *row, int64_t n, const char *shape,
                    double *left_s)
{
    Calibrator *c = b->c;
    MadeKernel *made = &b->made[b->n];
    bool ok = b->n < BATCH_MOST &&
              make(row, n, shape, &c->out->device, c->number++, made) && use_pool(c, made);
    double expected = ok ? expected_s(c, made) : 0;
    bool calm = !c->out->device.is_cpu || expected < RUNS * RUN_MOST_CPU_S;
    if (ok && calm && expected < *left_s) {
        *left_s -= expected;
        b->shape[b->n] = shape;
        b->size[b->n] = n;
        b->job[b->n++] = made->candidate.job;
    } else if (b->n < BATCH_MOST) {
        made_free(made);
    }
}

// The sizes 2^first ... 2^last, in some of its shapes of group. False if the device is
// gone.
static bool measure_sizes(Calibrator *c, const KernelRow *row, int first, int last,
                          int shape, int shapes, double share_s)
{
    AUTO_FREE Batch *b = xcalloc(1, sizeof *b);
    b->c = c;
    b->made = xcalloc(BATCH_MOST, sizeof *b->made);
    b->cutoff_ns = share_s * 1e9 / RUNS;
    double left_s = share_s;
    for (int p = first; p <= last; p += row->step)
        for (int s = shape; s < shape + shapes; s++)
            if (shape_points[row->shapes][s])
                add_job(b, row, (int64_t)1 << p, shape_points[row->shapes][s], &left_s);
    bool alive =
        !b->n || runner_run(c->runner, b->job, b->n, b->cutoff_ns, on_trial, b, c->diags);
    for (int i = 0; i < b->n; i++)
        made_free(&b->made[i]);
    free(b->made);
    return alive;
}

static bool measure_kernel(Calibrator *c, const KernelRow *row, int shape, int shapes,
                           double share_s)
{
    double start = clock_s();
    int second = row->first + row->step;
    return measure_sizes(c, row, row->first, second, shape, shapes, share_s) &&
           measure_sizes(c, row, second + row->step, row->last, shape, shapes,
                         share_s - (clock_s() - start));
}

// All of it -------------------------------------------------------------------------------

static void find_launch(Calibration *c)
{
    c->launch_ns = INFINITY;
    for (int i = 0; i < c->rows.len; i++)
        if (c->rows.at[i].class == CLASS_EMPTY)
            c->launch_ns = fmin(c->launch_ns, c->rows.at[i].time_ns);
    c->launch_ns = isfinite(c->launch_ns) ? c->launch_ns : 0;
}

// Work-items of a CPU share no accesses: groups of other shapes tell nothing new there.
static bool is_wanted(const Calibrator *c, const KernelRow *row)
{
    bool gpu_only = row->shapes == SHAPES_NARROW || row->shapes == SHAPES_BLOCKS;
    return (c->options->tests || row->class != CLASS_TEST) &&
           !(gpu_only && c->out->device.is_cpu);
}

// Has a property that was not covered before; it is from now on.
static bool covers_more(Calibrator *c, const KernelRow *row, bool covered[PROPERTIES])
{
    MadeKernel made;
    double count[PROPERTIES];
    bool more = false;
    if (make(row, (int64_t)1 << row->first, shape_points[row->shapes][0], &c->out->device,
             c->number++, &made) &&
        count_row(&made, count))
        for (int p = 0; p < PROPERTIES; p++) {
            more |= count[p] > 0 && !covered[p];
            covered[p] |= count[p] > 0;
        }
    made_free(&made);
    return more;
}

// First the kernels that tell of a property that those before do not, so that a budget that
// is too small for all leaves few without a weight. Returns how many there are.
static int find_order(Calibrator *c, const KernelRow *order[COUNTOF(kernel_rows)])
{
    bool covered[PROPERTIES] = {false}, first[COUNTOF(kernel_rows)] = {false};
    int n = 0;
    for (int i = 0; i < COUNTOF(kernel_rows); i++) {
        const KernelRow *row = &kernel_rows[i];
        first[i] =
            is_wanted(c, row) && row->class != CLASS_TEST && covers_more(c, row, covered);
        if (first[i])
            order[n++] = row;
    }
    for (int i = 0; i < COUNTOF(kernel_rows); i++)
        if (!first[i] && is_wanted(c, &kernel_rows[i]))
            order[n++] = &kernel_rows[i];
    return n;
}

// Each in the first of its shapes of group, then each in the others.
static bool measure_all(Calibrator *c)
{
    const KernelRow *order[COUNTOF(kernel_rows)];
    int n = find_order(c, order), left_out = 0;
    bool ok = true;
    for (int round = 0; ok && round < 2; round++)
        for (int i = 0; ok && i < n && !stop_due(c->options->place.stop); i++) {
            double left_s = c->deadline_s - clock_s();
            if (c->options->progress)
                c->options->progress(c->options->user, order[i]->name, round * n + i,
                                     2 * n);
            if (left_s > 0)
                ok = measure_kernel(c, order[i], round, round ? SHAPES_MOST - 1 : 1,
                                    left_s / (n - i));
            else if (!round)
                left_out++;
        }
    if (left_out)
        diag_warning(
            c->diags, span_none, "X005",
            "the budget was used up before %d of the %d kernels were run; a larger "
            "--budget makes the weights better",
            left_out, n);
    return ok;
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
    if (!devices_find(c.arena, options->place.worker, options->place.stop, options->device,
                      &out->device, diags))
        return false;
    c.most_bytes = MIN(out->device.is_cpu ? BYTES_CPU : BYTES_GPU, out->device.alloc_bytes);
    bool ok = open_pool(&c) && measure_all(&c);
    if (ok && stop_due(options->place.stop)) // few kernels make worse weights than before
        ok = diag_world(diags, "X014", "the weights are unchanged: %s",
                        stop_text(options->place.stop));
    runner_close(c.runner);
    free(c.values);
    find_launch(out);
    out->demands = true;
    return ok && (out->rows.len > 0 || diag_world(diags, "X004", "no kernel could be run"));
}

static bool is_fitted(const Calibration *c, const Measured *row)
{
    return row->class != CLASS_TEST &&
           (row->class == CLASS_EMPTY || row->time_ns >= c->launch_ns);
}

static bool is_beyond(int property)
{
    CountsKind kind = counts_kind(property);
    return kind == COUNTS_ARRAY || kind == COUNTS_PUT || kind == COUNTS_FUSED;
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

// paper: each property in a column of its own, and only those of the paper.
void calibrate_counts(const Calibration *c, bool paper, Weights *w)
{
    AutoMatrix x = matrix_new(c->rows.len, PROPERTIES);
    double *y = xcalloc((size_t)c->rows.len + 1, sizeof *y), times = 1;
    Sign sign[PROPERTIES];
    x.n = 0;
    VEC_EACH_REF(const Measured *, row, &c->rows) {
        if (!is_fitted(c, row))
            continue;
        for (int p = 0; p < PROPERTIES; p++) {
            double share = paper ? 1 : weights_share(&c->device, row->count, p);
            int column = paper ? p : column_of(p, &times);
            if (!paper || !is_beyond(p))
                matrix_row(&x, x.n)[column] += row->count[p] * share * times;
        }
        y[x.n++] = row->time_ns * 1e-9;
    }
    for (int p = 0; p < PROPERTIES; p++)
        sign[p] = counts_kind(p) == COUNTS_MINIMUM || counts_kind(p) == COUNTS_FUSED
                      ? SIGN_NEGATIVE
                      : SIGN_POSITIVE;
    Linear l = linear_fit(&x, y, sign);
    *w = (Weights){.device = c->device, .rows = l.rows, .rms = l.rms};
    for (int p = 0; p < PROPERTIES; p++) {
        int column = paper ? p : column_of(p, &times);
        w->weight[p] = times * l.weight[column];
        w->error[p] = times * l.error[column];
        w->support[p] = l.support[column];
    }
    linear_free(&l);
    free(y);
}

void calibrate_overlap(const Calibration *c, Overlap *overlap)
{
    AutoMatrix x = matrix_new(c->rows.len, DEMANDS);
    AUTO_FREE double *y = xcalloc((size_t)c->rows.len + 1, sizeof *y);
    AUTO_FREE double *idle = xcalloc((size_t)c->rows.len + 1, sizeof *idle);
    x.n = 0;
    VEC_EACH_REF(const Measured *, row, &c->rows) {
        if (!is_fitted(c, row))
            continue;
        memcpy(matrix_row(&x, x.n), row->demand.value, sizeof row->demand.value);
        idle[x.n] = demand_idle(&row->demand);
        y[x.n++] = row->time_ns * 1e-9;
    }
    weights_parts(overlap);
    overlap_fit(overlap, &x, idle, y);
}

void calibrate_fit(const Calibration *c, Weights *w)
{
    // On a CPU what goes beyond the paper did not help (doc/counts.md).
    calibrate_counts(c, c->device.is_cpu, w);
    if (c->demands && !c->device.is_cpu)
        calibrate_overlap(c, &w->overlap);
}
