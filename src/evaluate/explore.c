// SPDX-License-Identifier: Apache-2.0
//
// Explorations: random expressions (random_walk.c) at several thread counts, random points
// of the derivation, or the best rows of an earlier exploration; features (cost), and
// times.

#include "evaluate/explore.h"

#include "derive/derive.h"
#include "evaluate/random_walk.h"

#include <math.h>
#include <string.h>

enum { OUTPUTS_MOST = 64, GROUP_LEAST = 32, DRAWS = 200, UNROLL_CAP = 64 };
enum { SAMPLES_LEAST = 3, SAMPLES_MOST = 30 };

// Measured again: rows within AGAIN_WITHIN of the best time, the AGAIN_MOST best of them.
enum { AGAIN_MOST = 100 };
static const double AGAIN_WITHIN = 1.15;

// How points are chosen by predictions: POOL says how many random points are predicted, and
// in how many seconds. One row in SHARE_FIRST is a point that is often good, one in
// SHARE_RANDOM a random one.
enum { SHARE_FIRST = 5, SHARE_RANDOM = 3 };
static const RankLimit POOL = {1000, 5};

static const double RUN_LIMIT_S = 5, UNCHECKED_LIMIT_S = 0.25, SAMPLED_BYTES = 1e9;

// One expression at one thread count, or one point of the derivation.
typedef struct {
    const Explored *of; // NULL: the point
    Point point;
    KernelOptions options;
    int64_t global[3], local[3]; // of its first launch
    double feature[FEATURES];
    double time_ns;
    const char *status; // NULL: not measured
} Lowered;

typedef struct {
    const Problem *problem;
    const ExploreRequest *request;
    ExploreResult *result;
    Diags *diags;
    Arena *arena, *scratch;
    Exploration *found;
    Derivation *derivation; // NULL: not of its points
    VEC(Lowered) rows;
    Rng rng;
    int64_t least_items;
} Explorer;

static const char vectors_mark[] = "// vectors of ";

// Half of the expressions are lowered with vector accesses.
static int vector_of(const Explored *found)
{
    return found->hash & 1 ? 4 : 1;
}

static KernelOptions options_of(const Explored *found)
{
    KernelOptions options = {.unroll_cap = UNROLL_CAP,
                             .name = "k",
                             .interior = true,
                             .vector = vector_of(found)};
    for (int d = 0; d < 3; d++)
        options.local[d] = found->local[d];
    return options;
}

// In the program's memory: the caller releases the mark.
static Expr *body_of(Explorer *x, const Lowered *row, Diags *diags)
{
    return row->of ? row->of->expr : derive_body(x->derivation, &row->point, diags);
}

// Lowers in scratch memory; the caller releases the mark. NULL if it cannot be. Verified
// once, when an expression is found, not quickly.
static Unit *lowered(Explorer *x, Expr *expr, const KernelOptions *options, bool quickly)
{
    Diags quiet = {.arena = x->scratch};
    KernelOptions quick = *options;
    quick.quick = quickly;
    return lower(x->problem->bound, expr, &quick, x->scratch, &quiet);
}

typedef struct {
    IrMark ir;
    ArenaMark scratch;
} Mark;

static Mark mark(Explorer *x)
{
    return (Mark){ir_mark(x->problem->ir), arena_mark(x->scratch)};
}

static void release(Explorer *x, Mark m)
{
    arena_reset(x->scratch, m.scratch);
    ir_release(x->problem->ir, m.ir);
}

// Generation ----------------------------------------------------------------------------

// The launch of the first kernel in constants; false if it has generic sizes.
static bool first_launch(const Unit *unit, int64_t global[3], int64_t local[3])
{
    const Kernel *kernel = unit->launches.at[0].kernel;
    for (int d = 0; d < 3; d++) {
        local[d] = kernel->local[d];
        if (!arith_is_const(kernel->global[d], &global[d]))
            return false;
    }
    return true;
}

static bool has_items(const Explorer *x, const int64_t global[3])
{
    return global[0] * global[1] * global[2] >= x->least_items;
}

static bool accept(void *user, const Explored *found)
{
    Explorer *x = user;
    int64_t global[3], local[3];
    Mark m = mark(x);
    KernelOptions options = options_of(found);
    const Unit *unit = lowered(x, found->expr, &options, false);
    bool ok = unit && first_launch(unit, global, local) && has_items(x, global);
    release(x, m);
    return ok;
}

// A GPU is not asked to run kernels with fewer work-items than one multiprocessor holds, if
// the program has that much to do: of 6,559 points of 4096 x 4096 stencils on an H200 those
// with at most 512 were 18 times slower than the best and worse, and took 80 % of the time.
static void set_least_items(Explorer *x)
{
    int64_t outputs = 0;
    const Program *program = x->problem->bound;
    arith_is_const(type_count(x->problem->ir->arith, program->main->body->type), &outputs);
    if (!x->request->model.is_cpu)
        x->least_items = MIN(x->request->model.mp_items, outputs / OUTPUTS_MOST);
}

static bool find_expressions(Explorer *x)
{
    ExploreOptions options = explore_defaults;
    options.most_group = x->request->most_group;
    options.local_bytes = x->request->local_bytes;
    options.accept = accept;
    options.user = x;
    x->found = explore_random(x->problem->bound, x->request->seed, x->request->expressions,
                              &options, x->arena);
    x->result->expressions = x->found->found.len;
    return x->found->found.len > 0 ||
           diag_world(x->diags, "X001", "no lowered expression was found");
}

// Thread counts -------------------------------------------------------------------------

// Groups that have nothing to do: more than there are tiles.
static bool wastes_groups(const Block *block)
{
    VEC_EACH(const Stm *, stm, block) {
        if (stm->kind != ST_FOR)
            continue;
        if ((stm->loop == LOOP_WRG && stm->form == FORM_GUARD) || wastes_groups(&stm->body))
            return true;
    }
    return false;
}

static bool same_shape(const Lowered *a, const Lowered *b)
{
    return a->of == b->of && memcmp(a->global, b->global, sizeof a->global) == 0 &&
           memcmp(a->local, b->local, sizeof a->local) == 0;
}

// Needs: a dimension that is used, and most_group at least GROUP_LEAST.
static void draw_local(Explorer *x, const bool used[3], int64_t local[3])
{
    int64_t group;
    do {
        group = 1;
        for (int d = 0; d < 3; d++) {
            // Only y used, say, still reaches GROUP_LEAST: up to 64.
            local[d] = used[d] ? (int64_t)1 << rng_below(&x->rng, d == 0 ? 9 : 7) : 1;
            group *= local[d];
        }
    } while (group > x->request->most_group || group < GROUP_LEAST);
}

// Fewer threads than elements in up to two dimensions, now and then.
static void draw_global(Explorer *x, const int64_t natural[3], KernelOptions *options)
{
    if (rng_below(&x->rng, 3) != 0)
        return;
    for (int d = 0; d < 3; d++) {
        int64_t groups = MAX(natural[d] / options->local[d], 1);
        int64_t fewer = groups >> rng_below(&x->rng, 4);
        options->global[d] = MAX(fewer, 1) * options->local[d];
    }
}

// Fills a row by lowering it; false if it cannot be lowered or stands there already.
static bool complete(Explorer *x, Lowered *row, int first)
{
    Mark m = mark(x);
    FeatureSetting setting = {&x->request->model, x->problem->binding,
                              x->problem->nbinding};
    Diags quiet = {.arena = x->scratch};
    Expr *body = body_of(x, row, &quiet);
    Unit *unit = body ? lowered(x, body, &row->options, true) : NULL;
    bool ok = unit && first_launch(unit, row->global, row->local) &&
              has_items(x, row->global) &&
              !wastes_groups(&unit->launches.at[0].kernel->body);
    for (int i = first; ok && row->of && i < x->rows.len; i++)
        ok = !same_shape(&x->rows.at[i], row);
    ok = ok && features_unit(unit, &setting, row->feature);
    release(x, m);
    return ok;
}

// The shape the expression was made for, then others at random.
static void add_rows(Explorer *x, const Explored *found)
{
    int first = x->rows.len;
    Lowered natural = {.of = found, .options = options_of(found)};
    bool used[3] = {false};
    bool fixed = found->local[0] || found->local[1] || found->local[2];
    for (int d = 0; d < 3; d++)
        natural.options.local[d] = fixed    ? MAX(found->local[d], 1)
                                   : d == 0 ? 64
                                            : 4 >> (d - 1);
    if (!complete(x, &natural, first))
        return;
    VEC_PUSH(x->arena, &x->rows, natural);
    bool threads = false;
    for (int d = 0; d < 3; d++)
        threads |= used[d] = natural.global[d] > 1;
    if (!threads) // one work-item does it all
        return;
    for (int draw = 0; draw < DRAWS && x->rows.len - first < x->request->threads; draw++) {
        Lowered row = {.of = found, .options = options_of(found)};
        draw_local(x, used, row.options.local);
        draw_global(x, natural.global, &row.options);
        if (complete(x, &row, first))
            VEC_PUSH(x->arena, &x->rows, row);
    }
}

static void show(const Explorer *x, int64_t done, int64_t of)
{
    if (x->request->progress)
        x->request->progress(x->request->user, "features", done, of);
}

static bool explore_expressions(Explorer *x)
{
    if (!find_expressions(x))
        return false;
    for (int i = 0; i < x->found->found.len && !stop_due(x->request->place.stop); i++) {
        add_rows(x, &x->found->found.at[i]);
        show(x, i + 1, x->found->found.len);
    }
    return true;
}

// What tune may try is a row, however slow: of its launch nothing is asked.
static bool complete_point(Explorer *x, Lowered *row)
{
    const ExploreRequest *request = x->request;
    FeatureSetting setting = {&request->model, x->problem->binding, x->problem->nbinding};
    Mark m = mark(x);
    Diags quiet = {.arena = x->scratch};
    row->options = derive_options(x->derivation, &row->point);
    Expr *body = body_of(x, row, &quiet);
    Unit *unit = body ? lowered(x, body, &row->options, true) : NULL;
    bool ok = unit && first_launch(unit, row->global, row->local) &&
              features_unit(unit, &setting, row->feature);
    release(x, m);
    return ok;
}

static bool is_new(Explorer *x, Map *seen, const Point *point)
{
    const char *text =
        arena_printf(x->arena, "%016llx",
                     (unsigned long long)point_hash(derive_space(x->derivation), point));
    if (map_get(seen, text))
        return false;
    map_put(seen, text, x);
    return true;
}

static void add_point(Explorer *x, Map *seen, const Point *point)
{
    Lowered row = {.point = *point};
    if (is_new(x, seen, point) && complete_point(x, &row))
        VEC_PUSH(x->arena, &x->rows, row);
    show(x, x->rows.len, x->request->expressions);
}

static void add_random(Explorer *x, Map *seen, int wanted)
{
    Point point;
    for (int draw = 0;
         draw < DRAWS * wanted && x->rows.len < wanted && !stop_due(x->request->place.stop);
         draw++) {
        space_sample(derive_space(x->derivation), &x->rng, &point);
        add_point(x, seen, &point);
    }
}

// A point of the space of all sizes in that of these sizes, which may have more parameters.
static void add_ranked(Explorer *x, Map *seen, const Derivation *from, const Point *given)
{
    const Space *space = derive_space(x->derivation);
    Point point;
    derive_single(x->derivation, &point);
    if (point_move(space, &point, derive_space(from), given) && space_valid(space, &point))
        add_point(x, seen, &point);
}

// Some at random of the half that is predicted to be faster, then the first ones. The
// slower half holds points of a second and more, which cost a device more than all others.
static void add_predicted(Explorer *x, Map *seen, int wanted)
{
    const ExploreRequest *request = x->request;
    Ranking ranking = {0};
    // Ranked are points for all sizes, where some are generic.
    Derivation *from = derive_new(x->problem->general, &request->info, x->diags);
    if (!from || !rank_points(x->problem, &request->info, from, request->by, &POOL,
                              request->seed, x->arena, &ranking, x->diags)) {
        derive_free(from);
        return;
    }
    int random = x->rows.len + wanted / SHARE_RANDOM;
    for (int draw = 0; draw < DRAWS && ranking.n && x->rows.len < random; draw++)
        add_ranked(x, seen, from,
                   &ranking.point[rng_below(&x->rng, (uint64_t)(ranking.n + 1) / 2)]);
    for (int i = 0; i < ranking.n && x->rows.len < wanted; i++)
        add_ranked(x, seen, from, &ranking.point[i]);
    derive_free(from);
}

// The plain point, then others at random, each once; with a predictor also points that
// are often good, and points that are predicted to be.
static bool explore_points(Explorer *x)
{
    x->derivation = derive_new(x->problem->bound, &x->request->info, x->diags);
    if (!x->derivation)
        return false;
    Map seen = {.arena = x->arena};
    int wanted = x->request->expressions, led = x->request->by != NULL;
    Point first[16];
    derive_plain(x->derivation, &first[0]);
    int n = 1 + (led ? derive_first(x->derivation, &first[1], COUNTOF(first) - 1) : 0);
    for (int i = 0; i < MIN(n, 1 + wanted / SHARE_FIRST); i++)
        add_point(x, &seen, &first[i]);
    (led ? add_predicted : add_random)(x, &seen, wanted);
    x->result->expressions = x->rows.len;
    return x->rows.len > 0 || diag_world(x->diags, "X003", "no point can be lowered");
}

// `1024`, or `1024x512` where the sizes differ.
static void write_size(const Problem *problem, Buf *csv)
{
    bool same = true;
    for (int i = 1; i < problem->nbinding; i++)
        same &= problem->binding[i].value == problem->binding[0].value;
    for (int i = 0; i < (same ? MIN(problem->nbinding, 1) : problem->nbinding); i++)
        buf_printf(csv, "%s%lld", i ? "x" : "", (long long)problem->binding[i].value);
    if (!problem->nbinding)
        buf_putc(csv, '1');
}

// Again -----------------------------------------------------------------------------------

static bool is_taken(const Explorer *x, const Dataset *data, int i)
{
    return x->request->written ||
           data->time_ns[i] <= AGAIN_WITHIN * data->group_at[data->group[i]].best_ns;
}

// The rows of this program and size that ran in near the best time, or all; best first.
static Numbered *best_rows(const Explorer *x, const Dataset *data, const char *size, int *n)
{
    Numbered *timed = NEW_ARRAY(x->arena, Numbered, data->n);
    *n = 0;
    for (int i = 0; i < data->n; i++) {
        if (strcmp(data->program_name[data->program[i]], x->problem->name) == 0 &&
            strcmp(data->size_name[data->size[i]], size) == 0 && is_taken(x, data, i))
            timed[(*n)++] =
                (Numbered){isnan(data->time_ns[i]) ? INFINITY : data->time_ns[i], i};
    }
    sort_numbered(timed, *n);
    *n = x->request->written ? *n : MIN(*n, AGAIN_MOST);
    return timed;
}

// The expression that write_steps wrote; NULL with a diagnostic.
static const Explored *read_steps(Explorer *x, const char *text)
{
    char *lines = arena_strdup(x->arena, text);
    for (char *end = lines; (end = strchr(end, ';'));)
        *end = '\n';
    Source *source = NEW_OF(x->arena, Source, "the exploration", lines, strlen(lines));
    Explored *found = NEW(x->arena, Explored);
    const Rewriting *steps = derivation_parse(x->arena, source, x->diags);
    if (!steps)
        return NULL;
    found->steps = *steps;
    found->expr = derivation_apply(x->problem->bound, steps, x->diags);
    found->hash = strstr(text, vectors_mark) != NULL;
    return found->expr ? found : NULL;
}

// Both as the table has them, of six digits. Features as written are compared where the
// expression is the same one, though the compiler may have removed other loads of it when
// it was timed.
static bool same_features(const Explorer *x, const Lowered *row, const Dataset *data,
                          int of)
{
    for (int c = 0; c < data->d; c++) {
        double value, was = matrix_row(&data->x, of)[c];
        int feature = column_feature(data->feature[c]);
        if (x->request->written &&
            (feature < 0 || feature_info[feature].source != FEATURE_SAID))
            continue;
        if (!column_value(data->feature[c], row->feature, &value) ||
            fabs(value - was) > 1e-5 * fabs(was))
            return false;
    }
    return true;
}

// The features of the expression before the compiler works on it, and the row's own time.
static bool as_written(Explorer *x, Lowered *row, const Dataset *data, int of)
{
    FeatureSetting setting = {&x->request->model, x->problem->binding,
                              x->problem->nbinding};
    Mark m = mark(x);
    Diags quiet = {.arena = x->scratch};
    Unit *unit = lower_as_written(x->problem->bound, row->of->expr, &row->options,
                                  x->scratch, &quiet);
    bool ok = unit && features_unit(unit, &setting, row->feature);
    release(x, m);
    row->time_ns = data->time_ns[of];
    row->status = data->status[of];
    return ok;
}

// With as many work-items as the expression asks for, or those that the row names: which
// of the two it was, the features tell.
static bool add_again(Explorer *x, const Dataset *data, int of)
{
    const double *launch = matrix_row(&data->x, of);
    const Explored *found = read_steps(x, data->expression[of]);
    for (int given = 0; found && given < 2; given++) {
        Lowered row = {.of = found, .options = options_of(found)};
        for (int d = 0; d < 3; d++) {
            row.options.global[d] = given ? (int64_t)launch[d] : 0;
            row.options.local[d] = (int64_t)launch[3 + d];
        }
        if (complete(x, &row, x->rows.len) && same_features(x, &row, data, of)) {
            if (x->request->written && !as_written(x, &row, data, of))
                return false;
            VEC_PUSH(x->arena, &x->rows, row);
            return true;
        }
    }
    return false;
}

static bool explore_again(Explorer *x)
{
    AutoBuf size = buf_new();
    write_size(x->problem, &size);
    const Dataset *data = x->request->again;
    int n;
    const Numbered *timed = best_rows(x, data, size.text, &n);
    for (int i = 0; i < n; i++) {
        if (!add_again(x, data, timed[i].number))
            diag_warning(x->diags, span_none, "X004",
                         "left out, because its features have changed: %s",
                         data->expression[timed[i].number]);
        show(x, i + 1, n);
    }
    x->result->expressions = x->rows.len;
    return x->rows.len > 0 ||
           diag_world(x->diags, "X003", "no row of this program and size can be lowered");
}

static bool generate(Explorer *x)
{
    double start = clock_s();
    set_least_items(x);
    if (!(x->request->again     ? explore_again
          : x->request->derived ? explore_points
                                : explore_expressions)(x))
        return false;
    x->result->rows = x->rows.len;
    x->result->generation_s = clock_s() - start;
    return true;
}

// Measuring -----------------------------------------------------------------------------

// A row on its way through the runner; its job lives in an arena of its own.
typedef struct {
    Lowered *row;
    Arena *arena;
    Candidate candidate;
} PendingRow;

typedef struct {
    Explorer *x;
    PendingRow *pending; // one a row to measure
    const Target *target;
    const char *prelude;
    double best_ns;
    int64_t done, of;
} Measuring;

static double on_trial(void *user, int job, Trial *trial)
{
    Measuring *m = user;
    const ExploreRequest *request = m->x->request;
    ExploreResult *result = m->x->result;
    PendingRow *pending = &m->pending[job];
    pending->row->status = trial_status_name[trial->status];
    pending->row->time_ns = trial->time_ns;
    result->count[trial->status]++;
    result->measured++;
    result->compilation_s += trial->build_s;
    result->execution_s += trial->check_s + trial->timing_s;
    if (trial->status == TRIAL_OK)
        m->best_ns = fmin(m->best_ns, trial->time_ns);
    else if (trial->log && result->count[trial->status] <= 3)
        diag_warning(m->x->diags, span_none, "X002", "%s: %.200s", pending->row->status,
                     trial->log);
    candidate_release(&pending->candidate);
    arena_free(pending->arena);
    pending->arena = NULL;
    m->done++;
    if (request->progress)
        request->progress(request->user, "measure", m->done, m->of);
    return m->best_ns;
}

static const Job *next_job(void *user, int number)
{
    Measuring *m = user;
    Explorer *x = m->x;
    if (number >= m->of)
        return NULL;
    PendingRow *pending = &m->pending[number];
    Mark before = mark(x);
    pending->arena = arena_new();
    Diags quiet = {.arena = pending->arena};
    KernelOptions options = pending->row->options;
    options.name = arena_printf(pending->arena, "%.80s_c%d", x->problem->name, number);
    Expr *body = body_of(x, pending->row, &quiet);
    if (!body || !candidate_build(x->problem, x->problem->bound, body, &options, m->target,
                                  m->prelude, pending->arena, &pending->candidate, &quiet))
        BUG("a row that was lowered before cannot be");
    release(x, before);
    return &pending->candidate.job;
}

// The rows to measure, in the order to do so: shuffled, so that the cut-off is soon good.
static PendingRow *chosen_rows(Explorer *x, int64_t *n)
{
    int64_t all = x->rows.len, want = x->request->sample;
    PendingRow *pending = NEW_ARRAY(x->arena, PendingRow, MAX(all, 1));
    for (int64_t i = 0; i < all; i++)
        pending[i].row = &x->rows.at[i];
    for (int64_t i = all - 1; i > 0; i--) {
        int64_t k = (int64_t)rng_below(&x->rng, (uint64_t)i + 1);
        Lowered *swapped = pending[i].row;
        pending[i].row = pending[k].row;
        pending[k].row = swapped;
    }
    *n = want && want < all ? want : all;
    return pending;
}

static bool measure_rows(Explorer *x, Runner *runner)
{
    AutoBuf prelude = buf_new();
    Measuring m = {
        .x = x, .target = target_find(runner_device(runner)->target), .best_ns = INFINITY};
    emit_prelude(&prelude, m.target, x->problem->bound);
    m.prelude = prelude.text;
    m.pending = chosen_rows(x, &m.of);
    bool ok = runner_stream(runner, next_job, INFINITY, on_trial, &m, x->diags);
    for (int64_t i = 0; i < m.of; i++)
        if (m.pending[i].arena) {
            candidate_release(&m.pending[i].candidate);
            arena_free(m.pending[i].arena);
        }
    return ok;
}

// Kernels of a few microseconds are timed more often: their times scatter more, and cost
// nothing.
static int samples_for(const Problem *problem)
{
    double fair = SAMPLED_BYTES / MAX(problem_bytes(problem), 1);
    return (int)MIN(MAX(fair, SAMPLES_LEAST), SAMPLES_MOST);
}

static bool measure(Explorer *x, Buf *device)
{
    ProblemData *data = data_random(x->problem, 1, x->arena);
    const char *how;
    const ExploreRequest *request = x->request;
    if (!request->unchecked &&
        !reference_compute(x->problem, data, request->device, &request->place, x->arena,
                           &how, x->diags))
        return false;
    RunnerConfig config = {.device = request->device,
                           .worker = request->place.worker,
                           .folder = request->place.folder,
                           .sandbox = request->place.sandbox,
                           .stop = request->place.stop,
                           .nbuffer = data->ninput + data->noutput,
                           .buffer = data->buffer,
                           .tolerance = data->tolerance,
                           .run_limit_s =
                               request->unchecked ? UNCHECKED_LIMIT_S : RUN_LIMIT_S,
                           .samples = samples_for(x->problem)};
    Runner *runner = runner_open(&config, x->diags);
    if (!runner)
        return false;
    const DeviceInfo *info = runner_device(runner);
    buf_printf(device, "# device: %s\n# fingerprint: %s\n", info->name, info->fingerprint);
    bool ok = problem_fits(x->problem, info, x->diags) && measure_rows(x, runner);
    runner_close(runner);
    return ok;
}

// Writing ---------------------------------------------------------------------------------

static void write_head(Explorer *x, const Buf *device, Buf *csv)
{
    const ExploreResult *r = x->result;
    buf_write(csv, device->text, device->len);
    if (!device->len)
        buf_printf(csv, "# device: %s\n", x->request->model.name);
    buf_printf(csv, "# command: %s\n# version: %s\n", x->request->command, CODEGEN_VERSION);
    buf_printf(csv, "# generation_s: %.3f\n# compilation_s: %.3f\n# execution_s: %.3f\n",
               r->generation_s, r->compilation_s, r->execution_s);
    buf_puts(csv, "program,size,expression,global0,global1,global2,local0,local1,local2");
    for (int i = 0; i < FEATURES; i++)
        if (feature_info[i].group != FEATURES_PARALLELISM)
            buf_printf(csv, ",%s", feature_info[i].name);
    buf_puts(csv, ",time_ns,status\n");
}

// The rules on one line, and the width of vector accesses; or the point.
static void write_steps(const Explorer *x, const Lowered *row, Buf *csv)
{
    AutoBuf text = buf_new();
    if (row->of)
        derivation_print(&text, &row->of->steps);
    else
        point_print(&text, derive_space(x->derivation), &row->point);
    if (row->of && vector_of(row->of) > 1)
        buf_printf(&text, "%s%d\n", vectors_mark, vector_of(row->of));
    buf_putc(csv, '"');
    for (size_t i = 0; i < text.len; i++)
        if (text.text[i] == '\n')
            buf_puts(csv, i + 1 < text.len ? "; " : "");
        else
            buf_putc(csv, text.text[i]);
    buf_putc(csv, '"');
}

static void write_row(Explorer *x, const Lowered *row, Buf *csv)
{
    buf_printf(csv, "%s,", x->problem->name);
    write_size(x->problem, csv);
    buf_putc(csv, ',');
    write_steps(x, row, csv);
    for (int d = 0; d < 3; d++)
        buf_printf(csv, ",%lld", (long long)row->global[d]);
    for (int d = 0; d < 3; d++)
        buf_printf(csv, ",%lld", (long long)row->local[d]);
    for (int i = 0; i < FEATURES; i++)
        if (feature_info[i].group != FEATURES_PARALLELISM)
            buf_printf(csv, ",%.6g", row->feature[i]);
    buf_putc(csv, ',');
    bool ok = row->status && strcmp(row->status, trial_status_name[TRIAL_OK]) == 0;
    if (ok)
        buf_printf(csv, "%.6g", row->time_ns);
    buf_printf(csv, ",%s\n", row->status ? row->status : "unmeasured");
}

bool explore(const Problem *problem, const ExploreRequest *request, Buf *csv,
             ExploreResult *result, Diags *diags)
{
    *result = (ExploreResult){0};
    Explorer x = {.problem = problem,
                  .request = request,
                  .result = result,
                  .diags = diags,
                  .arena = arena_new(),
                  .scratch = arena_new()};
    x.rng = rng_new(request->seed);
    AutoBuf device = buf_new();
    bool ok = generate(&x) && (!request->device || measure(&x, &device));
    if (ok) {
        write_head(&x, &device, csv);
        for (int i = 0; i < x.rows.len; i++)
            if (!request->device || x.rows.at[i].status)
                write_row(&x, &x.rows.at[i], csv);
    }
    derive_free(x.derivation);
    arena_free(x.scratch);
    arena_free(x.arena);
    return ok;
}
