// SPDX-License-Identifier: Apache-2.0
//
// Tuning for ranges of sizes: a few kernels, and the rule that chooses among them.
//
//   method  a few sizes stand for the range: some along its diagonal, by equal ratios, and
//           where several sizes vary its other corners, those at which one is unlike all
//           others, and some inside. The first, the middle and the last of the diagonal are
//           tuned as any problem is, corners with half of the trials; the best few kernels
//           of each are run at all of these sizes; from the times a rule is learnt
//           (rule.c), which may ask for products of sizes, too: how many outputs there are
//           says more than how long one side is. All trials are stored under the size they
//           were made at.
//
// Kernels take their sizes as arguments, so any kernel is right at any size of the range.

#include "tune/internal.h"

#include <math.h>
#include <string.h>

enum { DIAGONAL = 6, INSIDE = 6, TUNED = 3, NAMES = 4, CORNERS = 2 * NAMES };
enum { SIZES = DIAGONAL + CORNERS + INSIDE, ASKED = (1 << NAMES) - 1 };
enum { KEPT = 3, POOL = (TUNED + CORNERS) * KEPT };
// Of the budget of a kernel's trials, what is left to the runs at other sizes.
enum { TRIALS = 60, CROSS_SHARE = 5 };

typedef struct {
    const Problem *problem;
    const TuneOptions *options;
    Arena *arena;
    RangeResult *result;
    Diags *diags;
    const char *name[ASKED]; // the sizes that vary, then products of them
    int nname, nasked;
    int64_t *size[SIZES]; // the values of these
    Problem *at[SIZES];
    // Of the trials of a tuning; 0: only what was found elsewhere is run.
    double share[SIZES];
    int nsize;
    const char *point[POOL];
    int npoint;
    double time[POOL * SIZES];
    double plain_ns[SIZES], begun_s;
} RangeTuning;

// Sizes -------------------------------------------------------------------------------

static Problem *problem_at(const RangeTuning *r, const int64_t *size)
{
    const Problem *problem = r->problem;
    Binding *binding = NEW_ARRAY(r->arena, Binding, problem->nbinding + 1);
    for (int i = 0, k = 0; i < problem->nbinding; i++) {
        binding[i] = problem->binding[i];
        if (binding[i].spans)
            binding[i].value = size[k++];
        binding[i].spans = false;
    }
    Problem *own = problem_again(problem, r->diags);
    if (own->kind && problem_bind(own, binding, problem->nbinding, r->diags))
        return own;
    problem_free(own);
    return NULL;
}

// The product of the sizes whose bits are set.
static int64_t product_of(const RangeTuning *r, const int64_t *size, unsigned bits)
{
    int64_t product = 1;
    for (int k = 0; k < r->nname; k++)
        product *= bits >> k & 1 ? size[k] : 1;
    return product;
}

static void name_products(RangeTuning *r)
{
    r->nasked = r->nname;
    for (unsigned bits = 1; bits < 1u << r->nname; bits++) {
        const char *name = "";
        if ((bits & (bits - 1)) == 0)
            continue; // one size
        for (int k = 0; k < r->nname; k++)
            if (bits >> k & 1)
                name = arena_printf(r->arena, "%s%s%s", name, *name ? "*" : "", r->name[k]);
        r->name[r->nasked++] = name;
    }
}

// A size for each part of the way through the ranges; once each.
static bool add_size(RangeTuning *r, const double *part, double share)
{
    int64_t *size = NEW_ARRAY(r->arena, int64_t, ASKED);
    for (int i = 0, k = 0; i < r->problem->nbinding; i++)
        if (r->problem->binding[i].spans) {
            size[k] = size_at(&r->problem->binding[i].range, part[k]);
            k++;
        }
    for (int s = 0; s < r->nsize; s++)
        if (memcmp(r->size[s], size, (size_t)r->nname * sizeof *size) == 0) {
            r->share[s] = fmax(r->share[s], share);
            return true;
        }
    int n = r->nname;
    for (unsigned bits = 1; bits < 1u << r->nname; bits++)
        if (bits & (bits - 1))
            size[n++] = product_of(r, size, bits);
    r->at[r->nsize] = problem_at(r, size);
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
    for (int i = 1; r->nname > 1 && i <= INSIDE; i++) {
        for (int k = 0; k < r->nname; k++)
            part[k] = modf(i * sqrt(prime[k]), &whole);
        if (!add_size(r, part, 0))
            return false;
    }
    return true;
}

static bool choose_sizes(RangeTuning *r)
{
    double part[NAMES];
    for (int i = 0; i < r->problem->nbinding; i++) {
        if (!r->problem->binding[i].spans)
            continue;
        if (r->nname == NAMES)
            return diag_error(r->diags, span_none, "C095",
                              "at most %d sizes can be ranges in a tuning", NAMES);
        r->name[r->nname++] = r->problem->binding[i].name;
    }
    name_products(r);
    for (int s = 0; s < DIAGONAL; s++) {
        for (int k = 0; k < r->nname; k++)
            part[k] = (double)s / (DIAGONAL - 1);
        if (!add_size(r, part, s == 0 || s == DIAGONAL / 2 || s == DIAGONAL - 1))
            return false;
    }
    return add_corners(r) && add_inside(r);
}

// Trials ------------------------------------------------------------------------------

// Those of the options, for a part of the whole.
static TuneOptions share_options(const RangeTuning *r, double seconds, int64_t trials)
{
    TuneOptions options = *r->options;
    double left = r->begun_s + r->options->budget_s - clock_s();
    options.budget_s = MIN(seconds, MAX(left, 1));
    options.budget_trials = trials;
    options.out = NULL;
    options.command = options.t4 = options.cache = NULL;
    options.no_roofline = true;
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

static int64_t trials_at(const RangeTuning *r, int s)
{
    int64_t most = r->options->budget_trials ? r->options->budget_trials : TRIALS;
    return MAX(llround(r->share[s] * (double)most * (CROSS_SHARE - 1) / CROSS_SHARE), 1);
}

static double seconds_at(const RangeTuning *r, int s)
{
    double shares = 0;
    for (int i = 0; i < r->nsize; i++)
        shares += r->share[i];
    return r->options->budget_s * r->share[s] / shares * (CROSS_SHARE - 1) / CROSS_SHARE;
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

static bool tune_at(RangeTuning *r, int s, const DeviceInfo *device)
{
    TuneResult one;
    TuneOptions options = share_options(r, seconds_at(r, s), trials_at(r, s));
    if (!tune(r->at[s], &options, r->arena, &one, r->diags))
        return false;
    Best best = {.r = r};
    Store *store;
    int64_t session = open_session(r, r->at[s], device, &store);
    bool ok = session && store_each(store, session, keep_best, &best, r->diags);
    store_close(store);
    for (int i = 0; i < (r->share[s] < 1 ? MIN(best.n, 1) : best.n); i++)
        add_point(r, best.best[i].point);
    if (best.n == 0) // it was stored apart, or not at all: it is compared at each size
        add_point(r, one.point);
    r->plain_ns[s] = one.baseline_ns;
    TuneResult *base = &r->result->base;
    for (int i = 0; i < TRIAL_STATUS_COUNT; i++)
        one.count[i] += base->count[i];
    one.trials += base->trials;
    one.reused += base->reused;
    *base = one;
    return ok;
}

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

// The pool at a size; what is stored is not run again.
static bool run_pool(RangeTuning *r, int s, const DeviceInfo *device)
{
    TuneOptions options = share_options(r, INFINITY, 0);
    TuneResult one;
    Trial trial;
    Point point;
    Tune *t = tune_open(r->at[s], &options, device, r->arena, &one, r->diags);
    bool ok = t != NULL;
    for (int p = 0; ok && p < r->npoint; p++) {
        double *ns = &r->time[p * r->nsize + s];
        *ns = INFINITY;
        if (is_hopeless(r, p, s) ||
            !point_parse(tune_variants(t)->space, r->point[p], &point) ||
            !space_valid(tune_variants(t)->space, &point))
            continue;
        ok = tune_measure(t, &point, &trial, r->diags);
        *ns = ok ? trial.time_ns : INFINITY;
    }
    for (int i = 0; ok && i < TRIAL_STATUS_COUNT; i++)
        r->result->base.count[i] += one.count[i];
    r->result->base.trials += ok ? one.trials : 0;
    r->result->base.reused += ok ? one.reused : 0;
    if (t)
        tune_close(t);
    return ok;
}

// Sizes that were not tuned are run as long as there is time; the others are left out, and
// the times of those that stay move together.
static bool run_pools(RangeTuning *r, const DeviceInfo *device)
{
    int n = 0, at[SIZES];
    bool left_out[SIZES] = {false};
    for (int i = 0; i < 2 * r->nsize; i++) {
        const int s = i % r->nsize;
        const bool tuned = i < r->nsize; // those come first
        if ((r->share[s] > 0) != tuned)
            continue;
        left_out[s] = !tuned && clock_s() > r->begun_s + r->options->budget_s;
        if (left_out[s]) {
            problem_free(r->at[s]);
            r->at[s] = NULL;
        } else if (!run_pool(r, s, device)) {
            return false;
        }
    }
    for (int s = 0; s < r->nsize; s++)
        if (!left_out[s])
            at[n++] = s;
    for (int p = 0; p < r->npoint; p++)
        for (int k = 0; k < n; k++)
            r->time[p * n + k] = r->time[p * r->nsize + at[k]];
    for (int k = 0; k < n; k++) {
        r->size[k] = r->size[at[k]];
        r->at[k] = r->at[at[k]];
        r->plain_ns[k] = r->plain_ns[at[k]];
    }
    r->nsize = n;
    return true;
}

// The rule ----------------------------------------------------------------------------

static void conclude(RangeTuning *r)
{
    RangeResult *result = r->result;
    RuleTimes times = {.name = r->name,
                       .nname = r->nasked,
                       .size = (const int64_t *const *)r->size,
                       .nsize = r->nsize,
                       .point = r->point,
                       .npoint = r->npoint,
                       .time = r->time};
    rule_learn(&times, &result->rule);
    RangeSize *size = NEW_ARRAY(r->arena, RangeSize, r->nsize);
    for (int s = 0; s < r->nsize; s++) {
        const Problem *at = r->at[s];
        int row = rule_choose(&result->rule, at->binding, at->nbinding);
        size[s] = (RangeSize){arena_strdup(r->arena, problem_label(at)), r->size[s],
                              INFINITY, INFINITY, r->plain_ns[s]};
        for (int p = 0; p < r->npoint; p++) {
            double ns = r->time[p * r->nsize + s];
            size[s].best_ns = fmin(size[s].best_ns, ns);
            if (strcmp(r->point[p], result->rule.row[row].point) == 0)
                size[s].chosen_ns = ns;
        }
    }
    const char *kernel[RULE_ROWS];
    result->size = size;
    result->nsize = r->nsize;
    result->kernels = rule_points(&result->rule, kernel);
}

// The rule as a trial of the problem that stands for all sizes: its point is the rule.
static bool store_rule(RangeTuning *r, const DeviceInfo *device)
{
    Store *store;
    double ns = r->result->size[r->nsize / 2].chosen_ns;
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
              problem_fits(problem, &device, diags) && choose_sizes(&r);
    for (int s = 0; ok && s < r.nsize; s++)
        ok = !r.share[s] || tune_at(&r, s, &device);
    ok = ok && run_pools(&r, &device);
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
