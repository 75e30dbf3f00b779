// SPDX-License-Identifier: Apache-2.0
//
// Tuning for ranges of sizes: a few kernels, and the rule that chooses among them.
//
//   method  a few sizes stand for the range: some along its diagonal, by equal ratios, and
//           where several sizes vary its other corners, those at which one is unlike all
//           others, and some inside. The first, the middle and the last of the diagonal are
//           tuned, corners with half of the trials; the best few kernels of each are run at
//           all of these sizes; from the times a rule is learnt (rule.c). All trials are
//           stored under the size they were made at. A tuning tries the best of those
//           before it first, so that its time goes into other kernels.
//   checks  the least size is tuned as any problem is. At the others a reference may take
//           long, and kernels take their sizes as arguments: so outputs are compared with
//           those of the plain kernel, if that was right and one tolerance suits the
//           program. The best few kernels are then compared with references for further
//           inputs at small sizes that are no multiples of tiles.
//   budget  of time, a share each is for the tunings, the checks, and runs at other sizes,
//           which are left out where there is no time for them. Few sizes are tuned if each
//           would be given too few trials: nine tunings that end after the plain kernel
//           find less than one. On a processor the range ends where a kernel would take too
//           long for its share.

#include "tune/internal.h"

#include <math.h>
#include <string.h>

enum { DIAGONAL = 6, INSIDE = 12, TUNED = 3, NAMES = 4, CORNERS = 2 * NAMES };
enum { SIZES = DIAGONAL + CORNERS + INSIDE };
enum { KEPT = 4, POOL = (TUNED + CORNERS) * KEPT };
// CROSS_SHARE: one of so many trials of each kernel is left to the runs at other sizes.
// TUNED_BY and CHECKED_BY: parts of the time, after which tunings and checks are done.
enum { TRIALS = 60, CROSS_SHARE = 5, CHECKS = 3 };
static const double TUNED_BY = 0.6, CHECKED_BY = 0.75;
// What the first tuning gets at least, and in trials what each of the others does.
static const double FIRST_S = 4;
enum { WANTED = 16 };

typedef struct {
    const Problem *problem;
    const TuneOptions *options;
    Arena *arena;
    RangeResult *result;
    Diags *diags;
    int nname;            // sizes that vary
    int64_t *size[SIZES]; // the values of these
    Problem *at[SIZES];
    // Parts of the trials of a tuning; 0: only what was found elsewhere is run.
    double share[SIZES];
    int nsize, middle; // middle: that of the diagonal, if kernels were run there
    double top;        // part of the way through the ranges that is looked at
    const char *point[POOL];
    int npoint;
    double time[POOL * SIZES];
    double plain_ns[SIZES], begun_s;
    const char *found; // what the first tuning ended with
    double found_ns;   // INFINITY: it was right at small sizes, and not measured
} RangeTuning;

// Until a part of the budget is over, or somebody asks to stop.
static double left_s(const RangeTuning *r, double part)
{
    return stop_asked(r->options->place.stop)
               ? 0
               : r->begun_s + part * r->options->budget_s - clock_s();
}

// Sizes -------------------------------------------------------------------------------

static Problem *problem_at(const RangeTuning *r, const int64_t *size, Diags *diags)
{
    const Problem *problem = r->problem;
    Binding *binding = NEW_ARRAY(r->arena, Binding, problem->nbinding + 1);
    for (int i = 0, k = 0; i < problem->nbinding; i++) {
        binding[i] = problem->binding[i];
        if (binding[i].spans)
            binding[i].value = size[k++];
        binding[i].spans = false;
    }
    Problem *own = problem_again(problem, diags);
    if (own->kind && problem_bind(own, binding, problem->nbinding, diags))
        return own;
    problem_free(own);
    return NULL;
}

// A size for each part of the way through the ranges; once each.
static bool add_size(RangeTuning *r, const double *part, double share)
{
    int64_t *size = NEW_ARRAY(r->arena, int64_t, NAMES);
    for (int i = 0, k = 0; i < r->problem->nbinding; i++)
        if (r->problem->binding[i].spans) {
            size[k] = size_at(&r->problem->binding[i].range, r->top * part[k]);
            k++;
        }
    for (int s = 0; s < r->nsize; s++)
        if (memcmp(r->size[s], size, (size_t)r->nname * sizeof *size) == 0) {
            r->share[s] = fmax(r->share[s], share);
            return true;
        }
    r->at[r->nsize] = problem_at(r, size, r->diags);
    r->size[r->nsize] = size;
    r->share[r->nsize] = share;
    return r->at[r->nsize++] != NULL;
}

static bool add_corners(RangeTuning *r)
{
    double part[NAMES];
    for (int corner = 0; r->nname > 1 && corner < 2 * r->nname; corner++) {
        bool low = corner < r->nname;
        for (int k = 0; k < r->nname; k++)
            part[k] = (k == corner % r->nname) != low;
        if (!add_size(r, part, 0.5))
            return false;
    }
    return true;
}

// Spread evenly: multiples of roots of primes, but for whole numbers.
static bool add_inside(RangeTuning *r)
{
    static const double prime[NAMES] = {2, 3, 5, 7};
    double part[NAMES], whole;
    for (int i = 1; i <= INSIDE; i++) {
        for (int k = 0; k < r->nname; k++)
            part[k] = modf(i * sqrt(prime[k]), &whole);
        if (!add_size(r, part, 0))
            return false;
    }
    return true;
}

// On a processor: the part of the range in which the plain kernel, which takes so long an
// operation of a core, is quick enough.
static bool find_top(RangeTuning *r)
{
    static const double PLAIN_S = 1e-9, ALL[NAMES] = {1, 1, 1, 1}, STEP = 0.1;
    enum { RUNS = 10 };
    double most_s =
        fmin(r->problem->kind->limit_s, left_s(r, TUNED_BY) / (2 * TUNED) / RUNS);
    for (double took_s; r->top > 0; r->top -= STEP) {
        if (!add_size(r, ALL, 0))
            return false;
        Work work = problem_work(r->at[--r->nsize]);
        problem_free(r->at[r->nsize]);
        took_s = PLAIN_S * work.ops;
        if (took_s / processors() < most_s)
            break;
    }
    if (r->top < 1)
        diag_warning(
            r->diags, span_none, "C095",
            "no size above %.0f %% of the way through the range is tried: with this "
            "budget (-b) a kernel would take too long there",
            100 * (r->top = fmax(r->top, 0)));
    return true;
}

static bool choose_sizes(RangeTuning *r, const DeviceInfo *device)
{
    double part[NAMES];
    for (int i = 0; i < r->problem->nbinding; i++) {
        if (!r->problem->binding[i].spans)
            continue;
        if (r->nname == NAMES)
            return diag_error(r->diags, span_none, "C095",
                              "at most %d sizes can be ranges in a tuning", NAMES);
        r->nname++;
    }
    r->top = 1;
    if (device->is_cpu && !find_top(r))
        return false;
    for (int s = 0; s < DIAGONAL; s++) {
        for (int k = 0; k < r->nname; k++)
            part[k] = (double)s / (DIAGONAL - 1);
        if (!add_size(r, part, s == 0 || s == DIAGONAL / 2 || s == DIAGONAL - 1))
            return false;
    }
    return add_corners(r) && add_inside(r);
}

// Trials ------------------------------------------------------------------------------

// Those of the options, for one size. The plain kernel serves as a reference once it was
// right; other devices would not be given its outputs.
static TuneOptions options_at(const RangeTuning *r, double seconds, int64_t trials)
{
    TuneOptions options = *r->options;
    options.budget_s = fmax(seconds, 1);
    options.budget_trials = trials;
    options.out = NULL;
    options.command = options.t4 = options.cache = NULL;
    options.no_roofline = true;
    options.by_plain = r->plain_ns[0] > 0 && isfinite(r->plain_ns[0]) && !options.npeer;
    return options;
}

typedef struct {
    RangeTuning *r;
    struct {
        const char *point;
        double ns;
    } best[KEPT];
    int n;
} Best;

static void keep_best(void *user, const StoreTrial *trial)
{
    Best *b = user;
    if (trial->status != TRIAL_OK)
        return;
    int at = b->n < KEPT ? b->n++ : KEPT - 1;
    if (at == KEPT - 1 && b->best[at].point && !(trial->time_ns < b->best[at].ns))
        return;
    for (; at > 0 && trial->time_ns < b->best[at - 1].ns; at--)
        b->best[at] = b->best[at - 1];
    b->best[at].point = arena_strdup(b->r->arena, trial->point);
    b->best[at].ns = trial->time_ns;
}

static void add_point(RangeTuning *r, const char *point)
{
    if (FIND_TEXT(r->point, r->npoint, point) >= 0)
        return;
    if (r->npoint < POOL)
        r->point[r->npoint++] = point;
}

// 0: a budget of time alone ends it.
static int64_t trials_at(const RangeTuning *r, int s)
{
    if (isfinite(r->options->budget_s) && !r->options->budget_trials)
        return 0;
    int64_t most = r->options->budget_trials ? r->options->budget_trials : TRIALS;
    return MAX(llround(r->share[s] * (double)most * (CROSS_SHARE - 1) / CROSS_SHARE), 1);
}

// Its share of the time, or what is enough for some trials at the pace so far; and all that
// is left, if the rest is not enough for another size.
static double seconds_at(const RangeTuning *r, int s)
{
    const TuneResult *sum = &r->result->base;
    double shares = 0, left = left_s(r, TUNED_BY), pace = clock_s() - r->begun_s;
    for (int i = s; i < r->nsize; i++)
        shares += r->share[i];
    double least = s ? r->share[s] * WANTED * pace / (double)MAX(sum->trials, 1) : FIRST_S;
    double own = fmax(left * r->share[s] / shares, least);
    return left < own + least ? left : own;
}

// The store, and the session in it of trials of a problem; 0: neither.
static int64_t open_session(const RangeTuning *r, const Problem *problem,
                            const DeviceInfo *device, Store **store)
{
    StoreKey key;
    Variants variants;
    bool ok = variants_open(&variants, problem, device, r->diags);
    if (ok)
        plan_key(problem, space_hash(variants.space), device, &key);
    variants_close(&variants);
    *store = ok ? store_open(r->options->store, r->diags) : NULL;
    return *store ? store_session(*store, &key, r->diags) : 0;
}

static void add_counts(TuneResult *sum, const TuneResult *one)
{
    for (int i = 0; i < TRIAL_STATUS_COUNT; i++)
        sum->count[i] += one->count[i];
    sum->trials += one->trials;
    sum->reused += one->reused;
}

static bool tune_at(RangeTuning *r, int s, const DeviceInfo *device, Diags *diags)
{
    TuneResult one;
    TuneOptions options = options_at(r, seconds_at(r, s), trials_at(r, s));
    options.seed += (uint64_t)s; // other points, not the same ones at each size
    options.also = r->point;
    options.nalso = MIN(r->npoint, 2 * KEPT);
    if (!tune(r->at[s], &options, r->arena, &one, diags))
        return false;
    Best best = {.r = r};
    Store *store;
    int64_t session = open_session(r, r->at[s], device, &store);
    bool ok = session && store_each(store, session, keep_best, &best, diags);
    store_close(store);
    for (int i = 0; i < MIN(best.n, r->share[s] < 1 ? KEPT / 2 : KEPT); i++)
        add_point(r, best.best[i].point);
    if (best.n == 0) // it was stored apart, or not at all: it is compared at each size
        add_point(r, one.point);
    r->plain_ns[s] = one.baseline_ns;
    if (s == 0)
        r->found = one.point, r->found_ns = one.best_ns;
    add_counts(&one, &r->result->base);
    r->result->base = one;
    return ok;
}

// The first must have a kernel; of the others those that have one in the time that is left.
static bool tune_sizes(RangeTuning *r, const DeviceInfo *device)
{
    static const double LEAST_S = 1;
    bool ok = tune_at(r, 0, device, r->diags);
    for (int s = 1; ok && s < r->nsize; s++) {
        Diags quiet = {.arena = r->arena};
        bool tuned =
            r->share[s] > 0 && seconds_at(r, s) > LEAST_S && tune_at(r, s, device, &quiet);
        r->share[s] = tuned ? r->share[s] : 0;
    }
    return ok;
}

// How much longer than its budget a tuning may take, if otherwise it has no result; as in
// tune_budget.c.
static const double SLACK_S = 2;

// Checks ------------------------------------------------------------------------------

// At a small size: each extent is the least of its range that is no less than `from`, and
// some steps more. False: it is not known what is wrong there.
static bool check_at(RangeTuning *r, int check, const DeviceInfo *device, bool *wrong)
{
    static const struct {
        int from, first, next;
    } of[CHECKS] = {{60, 1, 1}, {250, 3, 2}, {1, 0, 0}};
    static const double SLACK = 0.2; // as in tune_budget.c
    int64_t size[NAMES];
    for (int i = 0, k = 0; i < r->problem->nbinding; i++) {
        const SizeRange *range = &r->problem->binding[i].range;
        int64_t least = MAX(range->low, of[check].from);
        int64_t steps = (least - 1) / MAX(range->multiple, 1) + 1 + of[check].first +
                        of[check].next * k;
        if (r->problem->binding[i].spans)
            size[k++] = MIN(steps * range->multiple, range->high);
    }
    AutoArena *scratch = arena_new();
    Diags quiet = {.arena = scratch};
    TuneResult one;
    TuneOptions options = options_at(r, left_s(r, 1), 0);
    options.strategy = "random"; // no model is asked
    Problem *problem = problem_at(r, size, &quiet);
    Tune *t = problem ? tune_open(problem, &options, device, scratch, &one, &quiet) : NULL;
    if (t)
        t->stop.end_s = clock_s() + fmax(left_s(r, CHECKED_BY + SLACK), SLACK_S);
    bool known = t && tune_check_points(t, r->point, r->npoint, wrong, &quiet);
    tune_close(t);
    problem_free(problem);
    return known;
}

// Drops the points that are wrong for further inputs.
static bool check_points(RangeTuning *r, const DeviceInfo *device)
{
    bool wrong[POOL] = {false};
    int known = 0, n = 0;
    for (int c = 0; c < CHECKS && (c == 0 || left_s(r, CHECKED_BY) > 0); c++)
        known += check_at(r, c, device, wrong);
    for (int p = 0; p < r->npoint; p++)
        if (!wrong[p])
            r->point[n++] = r->point[p];
    TuneResult *base = &r->result->base;
    base->count[TRIAL_WRONG_RESULT] += r->npoint - n;
    r->npoint = n;
    if (known)
        base->reference = arena_printf(
            r->arena, "the best kernels are right for %d more inputs at %d small sizes%s",
            MORE_KINDS * known, known,
            known < CHECKS ? ", and there was no time for others" : "");
    return n > 0 || diag_world(r->diags, "C099",
                               "no kernel is right for more inputs at small sizes");
}

// All points at all sizes -------------------------------------------------------------

// Is a point far behind at the tuned size that is nearest by ratios? Then it is not run at
// one that was not tuned.
static bool is_hopeless(const RangeTuning *r, int p, int s)
{
    static const double BEHIND = 2;
    double nearest = INFINITY, best = INFINITY, own = 0;
    for (int t = 0; t < r->nsize && !r->share[s]; t++) {
        double far = 0;
        for (int k = 0; k < r->nname; k++)
            far += fabs(log((double)r->size[t][k] / (double)r->size[s][k]));
        if (!r->share[t] || far >= nearest)
            continue;
        nearest = far;
        own = r->time[p * r->nsize + t];
        best = INFINITY;
        for (int i = 0; i < r->npoint; i++)
            best = fmin(best, r->time[i * r->nsize + t]);
    }
    return own > BEHIND * best;
}

// The pool at a size; what is stored is not run again, and nothing is if there is no time,
// unless it must be. False: it has no right kernel there.
static bool run_pool(RangeTuning *r, int s, const DeviceInfo *device, bool must)
{
    AutoArena *scratch = arena_new();
    Diags quiet = {.arena = scratch};
    const double seconds = fmax(left_s(r, 1), must ? SLACK_S : 0);
    TuneOptions options = options_at(r, seconds, 0);
    options.strategy = "random"; // no model is asked
    TuneResult one;
    Point point[POOL], wanted[POOL];
    bool valid[POOL], any = false;
    int n = 0;
    Tune *t = tune_open(r->at[s], &options, device, scratch, &one, &quiet);
    for (int p = 0; t && p < r->npoint; p++) {
        double *ns = &r->time[p * r->nsize + s];
        const Space *space = tune_variants(t)->space;
        valid[p] = !is_hopeless(r, p, s) && point_parse(space, r->point[p], &point[p]) &&
                   space_valid(space, &point[p]);
        if (valid[p] && !tune_measured(t, &point[p], ns))
            wanted[n++] = point[p];
    }
    if (t)
        t->budget_s = options.budget_s;
    if (t && must)
        t->stop.end_s = clock_s() + seconds;
    if (n && (must || left_s(r, 1) > 0))
        tune_measure_all(t, wanted, n, &quiet);
    for (int p = 0; t && p < r->npoint; p++) {
        double *ns = &r->time[p * r->nsize + s];
        *ns = is_hopeless(r, p, s) ? NAN : INFINITY;
        if (valid[p])
            tune_measured(t, &point[p], ns);
        any |= *ns < INFINITY;
    }
    add_counts(&r->result->base, &one);
    tune_close(t);
    return any;
}

// Nothing could be run once more: what the first tuning ended with is all there is, even if
// it was not timed.
static bool keep_found(RangeTuning *r)
{
    if (FIND_TEXT(r->point, r->npoint, r->found) < 0)
        return diag_world(r->diags, "C099", "no kernel could be run once more");
    r->point[0] = r->found;
    r->time[0] = r->found_ns;
    r->npoint = 1;
    return true;
}

// Sizes that were not tuned are run as long as there is time, the diagonal first: of the
// simulated products in test_rule.c, the rule of these six sizes is 99 % of the best, that
// of three and three inside 93 %. The others are left out, and the times of those that stay
// move together.
static bool run_pools(RangeTuning *r, const DeviceInfo *device)
{
    int n = 0, at[SIZES];
    bool stays[SIZES], any = false;
    for (int i = 0; i < 2 * r->nsize; i++) {
        const bool tuned = i < r->nsize; // those come first
        const int s = i % r->nsize;
        if ((r->share[s] > 0) != tuned)
            continue;
        const bool must = tuned && !any && isfinite(r->found_ns); // else there is no time
        stays[s] = (tuned || left_s(r, 1) > 0) && run_pool(r, s, device, must);
        any |= stays[s];
    }
    if (!any && !keep_found(r))
        return false;
    stays[0] |= !any;
    for (int s = 0; s < r->nsize; s++)
        if (stays[s])
            at[n++] = s;
        else
            problem_free(r->at[s]);
    for (int p = 0; p < r->npoint; p++)
        for (int k = 0; k < n; k++)
            r->time[p * n + k] = r->time[p * r->nsize + at[k]];
    for (int k = 0; k < n; k++) {
        r->middle = at[k] == DIAGONAL / 2 ? k : r->middle;
        r->size[k] = r->size[at[k]];
        r->at[k] = r->at[at[k]];
        r->plain_ns[k] = r->plain_ns[at[k]];
    }
    r->nsize = n;
    return true;
}

// The rule ----------------------------------------------------------------------------

// The terms of some points' costs, of kernels for all sizes. False with diagnostics.
static bool find_terms(RangeTuning *r, const DeviceInfo *device, const Variants *variants,
                       const int *able, int n, RuleTerms *terms)
{
    bool ok = true;
    for (int i = 0; ok && i < n; i++) {
        Point point;
        Candidate candidate;
        ok = point_parse(variants->space, r->point[able[i]], &point) &&
             variants_candidate(variants, &point, r->problem->name, r->arena, &candidate,
                                r->diags);
        if (ok) {
            rule_terms(candidate.unit, device->compute_units, &terms[i]);
            candidate_release(&candidate);
        }
    }
    return ok;
}

static bool find_rule(RangeTuning *r, const DeviceInfo *device)
{
    const Binding *size[SIZES];
    for (int s = 0; s < r->nsize; s++)
        size[s] = r->at[s]->binding;
    const RuleTimes times = {.size = size,
                             .nbinding = r->problem->nbinding,
                             .nsize = r->nsize,
                             .point = r->point,
                             .npoint = r->npoint,
                             .time = r->time};
    int able[RULE_ABLE], n = rule_able(&times, able);
    RuleTerms terms[RULE_ABLE];
    Variants variants;
    bool ok = variants_open(&variants, r->problem, device, r->diags) &&
              find_terms(r, device, &variants, able, n, terms);
    if (ok)
        rule_learn(&times, able, terms, n, r->problem->ir->arith, r->arena,
                   &r->result->rule);
    variants_close(&variants);
    return ok;
}

static void conclude(RangeTuning *r)
{
    RangeResult *result = r->result;
    RangeSize *size = NEW_ARRAY(r->arena, RangeSize, r->nsize);
    for (int s = 0; s < r->nsize; s++) {
        const Problem *at = r->at[s];
        int row = MAX(rule_choose(&result->rule, at->binding, at->nbinding), 0);
        size[s] = (RangeSize){arena_strdup(r->arena, problem_label(at)), INFINITY, INFINITY,
                              r->plain_ns[s]};
        for (int p = 0; p < r->npoint; p++) {
            double ns = r->time[p * r->nsize + s];
            size[s].best_ns = fmin(size[s].best_ns, ns);
            if (strcmp(r->point[p], result->rule.row[row].point) == 0)
                size[s].chosen_ns = ns;
        }
        if (s == r->middle) {
            result->base.point = result->rule.row[row].point;
            result->base.best_ns = size[s].chosen_ns;
            result->base.baseline_ns = r->plain_ns[s];
        }
    }
    result->size = size;
    result->nsize = r->nsize;
    result->kernels = r->npoint;
    if (r->npoint == 1)
        diag_warning(r->diags, span_none, "C095",
                     "only one kernel was right in time, so it is the one for all sizes; a "
                     "larger budget (-b) compares others");
}

// The rule as a trial of the problem that stands for all sizes: its point is the rule. If
// it was not timed, anything measured beats it. Its kernels were checked at small sizes,
// and are not once more in the middle of the range, where a reference may take minutes.
static bool store_rule(RangeTuning *r, const DeviceInfo *device)
{
    Store *store;
    double ns = fmin(r->result->size[r->middle].chosen_ns, TRIAL_NS_MOST);
    AutoBuf text = buf_new();
    rule_print(&text, &r->result->rule);
    StoreTrial trial = {.point = text.text,
                        .status = TRIAL_OK,
                        .time_ns = ns,
                        .log = "",
                        .sample_ns = &ns,
                        .nsample = 1,
                        .seed = r->options->seed};
    int64_t session = open_session(r, r->problem, device, &store);
    bool ok = session && store_forget(store, session, r->diags) &&
              store_put(store, session, &trial, r->diags) &&
              store_put_rigor(store, session, r->result->base.rigor, r->diags);
    ARRAY_EACH_REF(const RuleRow *, row, r->result->rule.row, r->result->rule.n)
        ok = ok && store_put_checked(store, session, row->point, TRIAL_OK, "", r->diags);
    store_close(store);
    return ok;
}

bool tune_range(const Problem *problem, const TuneOptions *options, Arena *arena,
                RangeResult *result, Diags *diags)
{
    DeviceInfo device;
    RangeTuning r = {.problem = problem,
                     .options = options,
                     .arena = arena,
                     .result = result,
                     .diags = diags,
                     .begun_s = clock_s()};
    *result = (RangeResult){0};
    bool ok = devices_find(arena, options->place.worker, options->place.stop,
                           options->device, &device, diags) &&
              problem_fits(problem, &device, diags) && choose_sizes(&r, &device) &&
              tune_sizes(&r, &device) && check_points(&r, &device) &&
              run_pools(&r, &device) && find_rule(&r, &device);
    if (ok) {
        conclude(&r);
        ok = store_rule(&r, &device);
        result->base.problem = problem_label(problem);
        result->base.elapsed_s = clock_s() - r.begun_s;
    }
    for (int s = 0; s < r.nsize; s++)
        problem_free(r.at[s]);
    return ok;
}
