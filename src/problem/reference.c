// SPDX-License-Identifier: Apache-2.0
//
// What the outputs must be, each element with a bound of how far a right kernel may be from
// it. The interpreter is the meaning of the language; the plain kernel, printed as C++
// whose numbers carry bounds of their rounding (target_reference), is what outputs are
// compared with, after it agreed with the interpreter: at the sizes themselves where that
// is quick, else at small ones.

#include "problem/pass.h"

#include <math.h>
#include <string.h>

// Scalar operations the interpreter may spend, about 2 s, for each second that a reference
// may take, and the most outputs for which it is worth a try.
enum { QUOTA_S = 5000000, INTERPRETER_OUTPUTS = 2000000 };

// With bounds an operation takes so long of a core, without a fourteenth (j2d5pt 4096 x
// 4096, 20 steps: 10 s on two cores, 0.4 s). Where that is longer than somebody waits, the
// plain kernel runs without bounds, and one tolerance stands for all elements. So it does
// where somebody says how long they may take, and bounds and their compiler turn out to
// take LATE times as long, as on a busy machine.
static const double BOUNDED_S = 3.4e-9, PATIENCE_S = 34, LATE = 1.2;

// So long is the interpreter asked in any case.
static const double LEAST_S = 0.2;

// A device of a target that has a reference computes what would take the host longer; there
// an operation takes no longer than DEVICE_S. On the host the pairs of a byte take BYTE_S,
// on one core. (H200 and 16 cores, windows of 25 to 169 points over 5600 x 5632 floats: 0.5
// to 0.8 s on the device, compiler included, 0.9 to 3.1 on the host.)
static const double HOST_S = 0.2, DEVICE_S = 5e-12, BYTE_S = 1e-9;

static double bounds_take_s(const Problem *problem, const char *device)
{
    Work work = problem_work(problem);
    return device_is_host(device)
               ? work.ops * BOUNDED_S / processors() + work.bytes * BYTE_S
               : work.ops * DEVICE_S;
}

// Where a reference is computed. The device is opened once, when it is first needed.
typedef struct {
    RunnerConfig config; // without buffers
    const Target *of;    // of the kernels that it judges
    Stop stop;           // the place's, or sooner
    double patience_s;
    double late_s;  // how long bounds may take; INFINITY: nobody waits
    Runner *runner; // NULL: not open
} RefSite;

static void site_choose(RefSite *site, const Problem *problem, const char *device,
                        const Workplace *place)
{
    const DeviceKind *kind;
    int index;
    site->of = device_parse(device, &kind, &index) ? target_find(kind->target) : NULL;
    bool may = bounds_take_s(problem, device_host_id) > HOST_S && site->of &&
               target_reference(kind->target);
    site->config = (RunnerConfig){.device = may ? device : device_host_id,
                                  .worker = place->worker,
                                  .folder = place->folder,
                                  .sandbox = place->sandbox,
                                  .stop = &site->stop,
                                  .workers = 1,
                                  .tolerance = INFINITY,
                                  .build_limit_s = 60,
                                  .run_limit_s = 240};
    site->stop = (Stop){.end_s = INFINITY, .of = place->stop};
    site->patience_s = place->patience_s > 0 ? place->patience_s : PATIENCE_S;
    site->late_s = place->patience_s > 0 ? LATE * place->patience_s : INFINITY;
    site->runner = NULL;
}

static void site_leave(RefSite *site, const char *next)
{
    runner_close(site->runner);
    site->runner = NULL;
    site->config.device = next;
}

static bool site_open(RefSite *site, Diags *diags)
{
    if (!site->runner)
        site->runner = runner_open(&site->config, diags);
    return site->runner != NULL;
}

static bool may_have_bounds(const Problem *problem, const RefSite *site)
{
    return bounds_take_s(problem, site->config.device) < site->patience_s;
}

// What cannot be done within its quota is not tried: that would cost as long.
static bool interpretable(const Problem *problem, int64_t most)
{
    int64_t outputs = 0;
    const Arith *count = type_count(problem->ir->arith, problem->bound->main->body->type);
    return !calls_opaque(problem) && arith_is_const(count, &outputs) &&
           outputs <= INTERPRETER_OUTPUTS && interpret_least(problem) <= (double)most;
}

// The plain kernel with bounds ------------------------------------------------------------

// Inputs that a launch binds to what others are bound to, too, are there a second time, as
// pairs; the scratch buffers follow them.
typedef struct {
    RunnerBuffer *buffer;
    int n;
    int *pairs; // of each input: the number of its pairs, 0: there are none
} Layout;

static Layout lay_out(const ProblemData *data, const Unit *unit, Arena *arena)
{
    Layout layout = {.buffer = NEW_ARRAY(arena, RunnerBuffer, data->nbuffer + data->ninput),
                     .n = data->nbuffer,
                     .pairs = NEW_ARRAY(arena, int, MAX(data->ninput, 1))};
    for (int i = 0; i < data->nbuffer; i++)
        layout.buffer[i] = i < data->ninput ? pairs_read(&data->buffer[i], arena)
                                            : pairs_of(&data->buffer[i], arena);
    VEC_EACH_REF(const Launch *, launch, &unit->launches)
        for (int k = 0; k < launch->kernel->params.len; k++) {
            int number = launch->buffer[k]->number;
            if (!launch->kernel->params.at[k]->formal || number >= data->ninput ||
                layout.pairs[number])
                continue;
            layout.buffer[layout.n] = pairs_of(&data->buffer[number], arena);
            layout.pairs[number] = layout.n++;
        }
    return layout;
}

static void bind_layout(const ProblemData *data, const Unit *unit, const Layout *layout,
                        Job *job, Arena *arena)
{
    JobLaunch *launch = NEW_ARRAY(arena, JobLaunch, MAX(job->nlaunch, 1));
    for (int i = 0; i < job->nlaunch; i++) {
        const Kernel *kernel = unit->launches.at[i].kernel;
        JobArg *arg = COPY_ARRAY(arena, job->launch[i].arg, job->launch[i].narg);
        for (int k = 0; k < kernel->params.len; k++) {
            if (arg[k].buffer >= data->nbuffer)
                arg[k].buffer += layout->n - data->nbuffer;
            else if (arg[k].buffer < data->ninput && kernel->params.at[k]->formal)
                arg[k].buffer = layout->pairs[arg[k].buffer];
        }
        launch[i] = job->launch[i];
        launch[i].arg = arg;
    }
    job->launch = launch;
}

// What it computes goes to raw, of each output; what building took, to the data.
static bool compute(RefSite *site, const Job *job, int nbuffer, const RunnerBuffer *buffer,
                    void **raw, ProblemData *data, Diags *diags)
{
    Trial trial = {0};
    RunnerConfig config = site->config;
    config.nbuffer = nbuffer;
    config.buffer = buffer;
    bool ok = runner_fill(site->runner, &config, diags) &&
              runner_compute(site->runner, job, &trial, raw, diags);
    if (ok && trial.status != TRIAL_OK)
        ok = diag_world(diags, "R001", "the plain kernel, the reference, failed: %s",
                        trial.log ? trial.log : trial_status_name[trial.status]);
    data->build_s = trial.build_s;
    trial_release(&trial);
    return ok;
}

static bool run_bounded(RefSite *site, const Candidate *candidate, ProblemData *data,
                        Arena *arena, Diags *diags)
{
    AutoArena *scratch = arena_new();
    Layout layout = lay_out(data, candidate->unit, scratch);
    Job job = candidate->job;
    bind_layout(data, candidate->unit, &layout, &job, scratch);
    void **raw = NEW_ARRAY(scratch, void *, layout.n);
    for (int k = data->ninput; k < data->nbuffer; k++)
        raw[k] = arena_shared(scratch, runner_buffer_bytes(&layout.buffer[k]));
    bool ok = compute(site, &job, layout.n, layout.buffer, raw, data, diags);
    for (int k = data->ninput; ok && k < data->nbuffer; k++)
        pairs_take(&data->buffer[k], raw[k], arena);
    return ok;
}

static bool run_values(RefSite *site, const Candidate *candidate, ProblemData *data,
                       Arena *arena, Diags *diags)
{
    void **raw = data_outputs(data, arena);
    bool ok = compute(site, &candidate->job, data->nbuffer, data->buffer, raw, data, diags);
    for (int k = data->ninput; ok && k < data->nbuffer; k++)
        data->buffer[k].expect = raw[k];
    return ok;
}

void reference_prelude(Buf *out, const Problem *problem, const Derivation *derivation,
                       const Target *target, const Target *of, bool few_digits)
{
    int64_t terms = derive_terms(derivation);
    buf_puts(out, of && target_is_exact(of) ? "#define FW_EXACT\n" : "");
    buf_puts(out, few_digits ? "#define FW_FEW_DIGITS\n" : "");
    buf_puts(out, data_whole(problem) ? "#define FW_WHOLE 1\n" : "");
    if (terms)
        buf_printf(out, "#define FW_TERMS %lld\n", (long long)terms);
    emit_prelude(out, target, problem->bound);
}

// Where there is little work, what the compiler spends counts more. On the host optimising
// a kernel takes it a third of a second and saves about 2 ns an operation, level 1 takes 35
// ms and saves 40 ns. Exceptions would need the C++ library, which is not linked. On a
// device operations are called: inline, 150 of them take NVRTC 3.5 s, and 0.5 as calls.
static void choose_level(const Problem *problem, const DeviceInfo *info, Candidate *made)
{
    static const double HOST_MOST = 1e8, DEVICE_MOST = 1e11;
    const bool host = language_is(info->target, LANGUAGE_C);
    Work work = problem_work(problem);
    double most = work.ops + work.bytes / sizeof(float);
    if (host)
        most /= MAX(made->unit->kernels.len, 1);
    if (most < (host ? HOST_MOST : DEVICE_MOST))
        made->job.options =
            arena_printf(problem->arena, "%s%s -DFW_LITTLE", made->job.options,
                         !host        ? ""
                         : most < 5e5 ? " -O0 -fno-exceptions"
                                      : " -O1");
}

// What the plain kernel computes with: numbers that carry bounds; those of the kernels, but
// for variables of the host, which add up as doubles do (one float that adds 8 million
// numbers is off by 7 %, so right kernels would be called wrong); just those of the
// kernels.
typedef enum { WITH_BOUNDS, WIDE_SUMS, AS_KERNELS } Numbers;

// Runs the plain point at the site: sets what is expected and, if it runs as C++,
// the bounds. For each of n sets of data; returns for how many. few_digits: so do its
// inputs have, and it asks which sums are exact.
static int run_plain(const Problem *problem, Numbers numbers, ProblemData *const *data,
                     int n, bool few_digits, RefSite *site, Arena *arena, Diags *diags)
{
    const bool bounded = numbers == WITH_BOUNDS;
    double start_s = clock_s();
    int done = 0;
    if (!site_open(site, diags))
        return 0;
    DeviceInfo info = *runner_device(site->runner);
    info.shuffle = info.in_order = false; // of numbers with bounds
    info.matrix = 0;
    info.wide_sums = numbers == WIDE_SUMS && language_is(info.target, LANGUAGE_C);
    if (bounded) // a bound beside each number
        info.local_bytes /= 2;
    // Without bounds its order is that of the points, which leave generic sizes open.
    Derivation *derivation =
        derive_new(bounded ? problem->bound : problem->general, &info, diags);
    bool ok = derivation != NULL;
    Point plain;
    AutoBuf prelude = buf_new();
    const Target *target = (bounded ? target_reference : target_find)(info.target);
    if (ok)
        reference_prelude(&prelude, problem, derivation, target, site->of, few_digits);
    Candidate candidate = {0};
    if (ok) {
        derive_reference(derivation, &plain);
        ok = candidate_make(problem, derivation, &plain, problem->name, target,
                            prelude.text, arena, &candidate, diags);
        if (ok && bounded)
            choose_level(problem, &info, &candidate);
        double made_s = clock_s() - start_s;
        for (; ok && done < n; done += ok) {
            ok = (bounded ? run_bounded : run_values)(site, &candidate, data[done], arena,
                                                      diags);
            data[done]->seconds = clock_s() - start_s;
            data[done]->build_s += done == 0 ? made_s : 0;
            start_s = clock_s();
        }
    }
    candidate_release(&candidate);
    derive_free(derivation);
    if (done < n)
        site_leave(site, site->config.device); // it may be of no more use
    return done;
}

// The interpreter ------------------------------------------------------------------------

// Compares what the reference computed with what the interpreter did, which data held.
static bool agrees(const ProblemData *data, const void *const *interpreted, Diags *diags)
{
    double far = outputs_differ(data, interpreted, COMPARE_OUTSIDE);
    return far <= data->tolerance ||
           diag_world(diags, "R001",
                      "the plain kernel as C++ cannot be the reference: it differs from "
                      "the interpreter by %.3g",
                      far);
}

static bool is_stepped(const Expr *e, const void *none)
{
    int64_t steps = 1; // as many as it turns out
    if (e->kind != E_PATTERN)
        return false;
    return e->pattern == P_ITERATE  ? !arith_is_const(e->num[0], &steps) || steps > 0
           : e->pattern == P_REDUCE ? !reduce_shares(e)
                                    : e->pattern == P_SCAN && !folds_by_parts(e);
}

// Steps make bounds so wide that a wrong kernel is within them. What the kernel computed is
// then no further from what the interpreter did than FAR times as far as a change of the
// last bit of the inputs takes the interpreter. Without steps bounds are what rounding can
// do, and elements that they do not decide are left out. interpreted: what data held.
static bool stays_near(const Problem *small, const ProblemData *data,
                       const void *const *interpreted, Arena *arena, Diags *diags)
{
    static const double FAR = 1000;
    const Expr *body = small->bound->main->body;
    Compared compared = !expr_find(body, is_stepped, NULL) ? COMPARE_DECIDED
                        : expr_decides(body)               ? COMPARE_BOUNDED
                                                           : COMPARE_ALL;
    double far = outputs_differ(data, interpreted, compared), moved;
    Diags quiet = {.arena = arena};
    if (far <= data->tolerance)
        return true;
    ProblemData *other = nudged_data(data, arena);
    if (!interpret(small, other, INTERPRETER_QUOTA, arena, &quiet))
        return true;
    const void **turned = outputs_of(other, arena);
    for (int k = data->ninput; k < data->nbuffer; k++)
        other->buffer[k].expect = interpreted[k];
    moved = outputs_differ(other, turned, compared);
    return moved == 0 || far <= FAR * moved ||
           diag_world(
               diags, "R001",
               "the plain kernel as C++ cannot be the reference: it differs from "
               "the interpreter by %.3g, and a change of the inputs' last bits by %.3g",
               far, moved);
}

// checked: how the reference was checked, if not by the interpreter.
static bool agrees_when_small(const Problem *problem, RefSite *site, const char **checked,
                              Diags *diags)
{
    AutoArena *scratch = arena_new();
    ProblemData *data;
    const char *why;
    Problem *small = problem_small(problem, scratch, &data, &why);
    if (!small && !why) {
        *checked = "by itself: the interpreter holds no integers beyond 2^53";
        return true;
    }
    if (!small)
        return diag_world(diags, "R002",
                          "the reference cannot be checked at small sizes: %s", why);
    const void **interpreted = outputs_of(data, scratch);
    bool ok = run_plain(small, WITH_BOUNDS, &data, 1, true, site, scratch, diags) &&
              agrees(data, interpreted, diags) &&
              stays_near(small, data, interpreted, scratch, diags);
    problem_free(small);
    return ok;
}

// Rounding ----------------------------------------------------------------------------

// So many times what a random walk of their roundings comes to is allowed.
static const double DRIFT = 8;

// What a fold or prefix of floating numbers adds up, and how many; NULL: it is none.
static const ScalarInfo *floats_folded(const Expr *e, int64_t *terms)
{
    const bool prefix = expr_is(e, P_SCAN);
    if (!prefix && !expr_is(e, P_REDUCE))
        return NULL;
    const Type *sum = prefix ? e->type->elem : e->type;
    *terms = expr_fold_terms(e);
    if (prefix)
        arith_is_const(e->type->len, terms);
    return sum->kind == T_SCALAR && scalar_info[sum->scalar].floating
               ? &scalar_info[sum->scalar]
               : NULL;
}

// How far rounding takes the folds of e, as often up as down: without bounds that is the
// tolerance, of halfs far more than of floats.
static void note_drift(const Expr *e, void *most)
{
    double *drift = most;
    int64_t terms;
    const ScalarInfo *sum = floats_folded(e, &terms);
    if (sum)
        *drift = fmax(*drift, DRIFT * sqrt((double)terms) * ldexp(1, -sum->digits));
}

// Where a float adds up more, its roundings go one way.
enum { FLOAT_ADDS_MOST = 1 << 15 };

static bool is_long_sum(const Expr *e, const void *none)
{
    int64_t terms;
    return floats_folded(e, &terms) && terms > FLOAT_ADDS_MOST;
}

// What is expected where there are no bounds. Shorter sums are those of the kernels: what
// cancels is off by more than a tolerance, for all of them alike.
static Numbers without_bounds(const Problem *problem)
{
    const bool wide = !problem_is_strict(problem) &&
                      expr_find(problem->bound->main->body, is_long_sum, NULL);
    return wide ? WIDE_SUMS : AS_KERNELS;
}

static void settle_folds(const Problem *problem, ProblemData *const *data, int n)
{
    double drift = 0;
    expr_each(problem->bound->main->body, note_drift, &drift);
    for (int k = 0; k < n; k++)
        data[k]->tolerance = fmax(data[k]->tolerance, drift);
}

static bool is_bounded(const ProblemData *data)
{
    return data->buffer[data->nbuffer - 1].bound != NULL;
}

// Where a program makes steps, bounds are not wider than what rounding can do; without
// bounds, that is the tolerance, and as many elements may be further off as a change of the
// inputs' last bits takes further. ahead: what those of one set come to with the numbers of
// the kernels; NULL: not known.
static void settle_rounding(const Problem *problem, ProblemData *const *data, int n,
                            ProblemData *ahead, RefSite *site, Arena *arena)
{
    const Expr *body = problem->bound->main->body;
    const bool steps = expr_find(body, is_stepped, NULL), decides = expr_decides(body);
    const bool bounded = n > 0 && is_bounded(data[0]);
    const bool spares = !bounded && !problem_is_strict(problem);
    if (n == 0 || !(steps || spares))
        return;
    AutoArena *scratch = arena_new();
    ProblemData **nudged = NEW_ARRAY(scratch, ProblemData *, n);
    bool narrow = bounded;
    for (int k = 0; bounded && k < n; k++)
        narrow &= !limits_are_wide(data[k], !decides);
    if (narrow)
        return;
    for (int k = 0; !bounded && steps && k < n; k++)
        limits_diverged(data[k], arena);
    const Numbers numbers = bounded ? AS_KERNELS : without_bounds(problem);
    const bool known = ahead && numbers == AS_KERNELS;
    for (int k = 0; k < n; k++)
        nudged[k] = known ? ahead : nudged_data(data[k], scratch);
    if (!known)
        n = run_plain(problem, numbers, nudged, n, false, site, scratch,
                      &(Diags){.arena = scratch});
    for (int k = 0; k < n; k++) {
        data[k]->seconds += nudged[k]->seconds;
        data[k]->build_s += nudged[k]->build_s;
        if (steps)
            limits_set(data[k], nudged[k], bounded, !decides);
        if (spares)
            limits_spare(data[k], nudged[k], decides, arena);
    }
}

bool reference_by_kernel(const Problem *problem, ProblemData *data)
{
    const Expr *body = problem->bound->main->body;
    bool strict = problem_is_strict(problem);
    if (!strict && (expr_decides(body) || expr_find(body, is_stepped, NULL)))
        return false;
    if (strict)
        data->tolerance = 0;
    else
        settle_folds(problem, &data, 1);
    return true;
}

// To the bit ----------------------------------------------------------------------------

// The plain kernel, whose bits those of every point must be, after it was found within its
// bounds.
static bool settle_strict(const Problem *problem, ProblemData *data, RefSite *site,
                          Arena *arena, Diags *diags)
{
    ProblemData *values = arena_copy(arena, data, sizeof(ProblemData));
    values->buffer = COPY_ARRAY(arena, data->buffer, data->nbuffer);
    if (!run_plain(problem, AS_KERNELS, &values, 1, false, site, arena, diags))
        return false;
    double far = outputs_differ(data, outputs_of(values, arena), COMPARE_OUTSIDE);
    if (far > data->tolerance)
        return diag_world(diags, "R003", "the plain kernel is wrong: its error is %.3g",
                          far);
    for (int i = data->ninput; i < data->nbuffer; i++) {
        data->buffer[i].expect = values->buffer[i].expect;
        data->buffer[i].bound = NULL;
    }
    data->tolerance = 0;
    data->seconds = values->seconds;
    data->build_s = values->build_s;
    return true;
}

// What is told of it --------------------------------------------------------------------

static const char *tell_doubt(const ProblemData *data, const char *how, Arena *arena)
{
    Doubt doubt = limits_doubt(data);
    if (doubt.undecided == 0)
        return arena_printf(arena, "%s; every element is decided", how);
    double share = (double)doubt.undecided / (double)doubt.elements;
    return arena_printf(
        arena, "%s; %lld of %lld elements (%.3g %%) are undecided by rounding%s", how,
        (long long)doubt.undecided, (long long)doubt.elements, 100 * share,
        share > 0.5 ? ": most of this program's results are not checked" : "");
}

static const char *tell(const Problem *problem, const ProblemData *data, const char *how,
                        Arena *arena)
{
    const char *why = calls_opaque(problem) ? "its C text may not know numbers with bounds"
                                            : "bounds would take long";
    how = data->lesser ? arena_printf(arena, "%s; every element within %.2g, because %s",
                                      how, data->tolerance, why)
                       : tell_doubt(data, how, arena);
    if (data->diverged)
        how = arena_printf(arena, "%s; %lld are undecided: their steps diverge", how,
                           (long long)data->diverged);
    const int64_t spared = limits_spared(data);
    if (spared)
        how = arena_printf(arena, "%s, but for %lld, as rounding takes them further", how,
                           (long long)spared);
    return problem->bound->math == MATH_STRICT
               ? arena_printf(arena, "%s; not to the bit, because of %s", how,
                              strict_exception(problem))
               : how;
}

// Runs the plain kernel with bounds, or without if they are predicted to take long, or turn
// out to. A program that decides waits for late ones: without bounds, elements whose
// decisions differ would be called wrong.
static bool run_in_time(const Problem *problem, ProblemData *data, bool few_digits,
                        RefSite *site, Arena *arena, Diags *diags)
{
    Diags before = *diags;
    if (!site_open(site, diags))
        return false;
    bool may = may_have_bounds(problem, site);
    if (!expr_decides(problem->bound->main->body))
        site->stop.end_s = clock_s() + site->late_s;
    bool ok =
        may && run_plain(problem, WITH_BOUNDS, &data, 1, few_digits, site, arena, diags);
    bool late = stop_due(&site->stop);
    site->stop.end_s = INFINITY;
    if (ok || (may && !late && !calls_opaque(problem)))
        return ok;
    *diags = before; // it was late, or C text means nothing to numbers with bounds
    return run_plain(problem, without_bounds(problem), &data, 1, false, site, arena, diags);
}

// The kernel of the problem is built and run while that of small sizes is, each by a runner
// of its own: each takes a compiler as long. Programs with steps mostly ask how far
// rounding takes them, too (settle_rounding): on a device, the runner of small sizes
// computes that meanwhile.
typedef struct {
    const Problem *problem;
    ProblemData *data;
    RefSite *site, small;
    Stop wanted; // the whole problem's: as long as small sizes may agree
    Arena *arena;
    const char *checked;
    Diags *diags, said;  // of the problem; of small sizes
    ProblemData *nudged; // NULL: not computed
    Arena *apart;        // of what the runner of small sizes computes
    bool ran, agrees;
} Both;

// On the device there may be room for one of the two only.
static bool fits_beside(const ProblemData *data, const RefSite *site)
{
    enum { ROOM = 8 };
    double bytes = 0;
    for (int i = 0; i < data->nbuffer; i++)
        bytes += (double)runner_buffer_bytes(&data->buffer[i]);
    return site->runner &&
           ROOM * bytes <= (double)runner_device(site->runner)->global_bytes;
}

// This thread has a program of its own.
static bool run_nudged(Both *b)
{
    Diags quiet = {.arena = b->apart};
    if (!fits_beside(b->nudged, &b->small))
        return false;
    Problem *own = problem_again(b->problem, &quiet);
    bool ok = problem_bind(own, b->problem->binding, b->problem->nbinding, &quiet) &&
              run_plain(own, AS_KERNELS, &b->nudged, 1, false, &b->small, b->apart, &quiet);
    problem_free(own);
    return ok;
}

static void *run_small(void *user)
{
    Both *b = user;
    b->agrees = agrees_when_small(b->problem, &b->small, &b->checked, &b->said);
    if (!b->agrees)
        b->wanted.end_s = 0;
    if (b->nudged && !(b->agrees && run_nudged(b)))
        b->nudged = NULL;
    runner_close(b->small.runner);
    return NULL;
}

// False, with what small sizes say: they do not agree.
static bool run_both(Both *b)
{
    AutoArena *scratch = arena_new();
    Diags before = *b->diags;
    b->said.arena = scratch;
    b->small = *b->site;
    b->small.config.stop = &b->small.stop;
    b->small.runner = NULL;
    b->wanted = (Stop){.end_s = INFINITY, .of = b->site->stop.of};
    b->site->stop.of = &b->wanted;
    if (!device_is_host(b->site->config.device) &&
        expr_find(b->problem->bound->main->body, is_stepped, NULL))
        b->nudged = nudged_data(b->data, b->apart);
    pthread_t thread;
    const bool beside = thread_start(&thread, run_small, b);
    if (!beside)
        run_small(b);
    // Its worker lives as long as the thread that starts it, and is used again.
    b->ran = run_in_time(b->problem, b->data, false, b->site, b->arena, b->diags);
    if (beside)
        pthread_join(thread, NULL);
    b->site->stop.of = b->wanted.of;
    if (!b->agrees) {
        *b->diags = before;
        diags_add(b->diags, &b->said, NULL);
    }
    return b->agrees;
}

static bool compute_at(const Problem *problem, ProblemData *data, RefSite *site,
                       Arena *arena, const char **how, Diags *diags)
{
    Diags quiet = {.arena = arena};
    int64_t most =
        (int64_t)fmin(INTERPRETER_QUOTA, QUOTA_S * fmax(site->patience_s, LEAST_S));
    bool interpreted =
        interpretable(problem, most) && interpret(problem, data, most, arena, &quiet);
    const Diag *wrong = refused_as_wrong(&quiet);
    if (wrong)
        return diag_error(diags, wrong->span, wrong->code, "%s", wrong->message);
    const void **values = outputs_of(data, arena);
    const Expr *opaque = calls_opaque(problem);
    const char *where = device_is_host(site->config.device) ? "" : " on the device";
    const char *checked =
        interpreted ? "as the interpreter"
        : opaque ? arena_printf(arena, "by itself: the interpreter knows no C text (`%s`)",
                                opaque->callee->name)
                 : "checked against the interpreter at small sizes";
    AutoArena *apart = arena_new();
    Both both = {.problem = problem,
                 .data = data,
                 .site = site,
                 .arena = arena,
                 .checked = checked,
                 .diags = diags,
                 .apart = apart};
    const bool alone = interpreted || opaque;
    if (!alone && !run_both(&both))
        return false;
    if (alone)
        both.ran = run_in_time(problem, data, interpreted, site, arena,
                               interpreted ? &quiet : diags);
    bool bounded = both.ran && is_bounded(data);
    data->lesser = !bounded;
    if (!both.ran) {
        *how = "interpreter, within one tolerance: the kernel with bounds cannot run here";
        return interpreted;
    }
    *how = arena_printf(arena, "plain kernel%s%s, %s",
                        bounded ? " with bounds of its rounding" : "", where, both.checked);
    if (interpreted &&
        !(agrees(data, values, diags) && stays_near(problem, data, values, arena, diags)))
        return false;
    if (!bounded)
        settle_folds(problem, &data, 1);
    settle_rounding(problem, &data, 1, both.nudged, site, arena);
    if (problem_is_strict(problem)) {
        *how = arena_printf(arena, "%s; every point must give its bits", *how);
        return settle_strict(problem, data, site, arena, diags);
    }
    *how = tell(problem, data, *how, arena);
    return true;
}

bool reference_compute(const Problem *problem, ProblemData *data, const char *device,
                       const Workplace *place, Arena *arena, const char **how, Diags *diags)
{
    RefSite site;
    Diags quiet = {.arena = arena};
    site_choose(&site, problem, device, place);
    bool ok = !device_is_host(site.config.device) &&
              compute_at(problem, data, &site, arena, how, &quiet);
    if (!ok && !device_is_host(site.config.device) && stop_due(place->stop))
        diags_add(diags, &quiet, NULL); // the host would have no time either
    else if (!ok) {
        site_leave(&site, device_host_id);
        ok = compute_at(problem, data, &site, arena, how, diags);
    }
    runner_close(site.runner);
    return ok;
}

static int more_at(const Problem *problem, int n, ProblemData *const *data, RefSite *site,
                   Arena *arena, Diags *diags)
{
    bool strict = problem_is_strict(problem),
         bounded = !strict && may_have_bounds(problem, site);
    const bool opaque = calls_opaque(problem);
    Diags quiet = {.arena = arena};
    int done = 0;
    if (bounded)
        done = run_plain(problem, WITH_BOUNDS, data, n, true, site, arena,
                         opaque ? &quiet : diags);
    bounded = bounded && (done || !opaque); // as in run_in_time
    n = bounded ? done
                : run_plain(problem, without_bounds(problem), data, n, false, site, arena,
                            diags);
    for (int set = 0; strict && set < n; set++)
        data[set]->tolerance = 0;
    if (!strict && !bounded)
        settle_folds(problem, data, n);
    if (!strict)
        settle_rounding(problem, data, n, NULL, site, arena);
    return n;
}

int reference_more(const Problem *problem, uint64_t seed, int n,
                   ProblemData *data[MORE_SETS], const char *device, const Workplace *place,
                   Arena *arena, Diags *diags)
{
    RefSite site;
    Diags quiet = {.arena = arena};
    site_choose(&site, problem, device, place);
    for (int set = 0; set < n; set++)
        data[set] = data_more(problem, set, seed, arena);
    int done = device_is_host(site.config.device)
                   ? 0
                   : more_at(problem, n, data, &site, arena, &quiet);
    if (!done) {
        site_leave(&site, device_host_id);
        done = more_at(problem, n, data, &site, arena, diags);
    }
    runner_close(site.runner);
    return done;
}
