// SPDX-License-Identifier: Apache-2.0
//
// tune: from a question to a winner. A bound problem and options go in; the points of a
// strategy become trials, the best few are measured again, and the fastest right one is
// the result. Here too: the order in which models predict points to be fast, the plans
// that the store remembers (wisdom), and the record of a search (run.h).

#ifndef FW_TUNE_H
#define FW_TUNE_H

#include "cost/features.h"
#include "model/model.h"
#include "problem/problem.h"
#include "search/search.h"
#include "search/steps.h"
#include "store/exchange.h"
#include "store/store.h"

typedef struct TuneOptions TuneOptions;
typedef struct TuneResult TuneResult;
struct Run; // run.h

// rank.c ------------------------------------------------------------------------------

// Points in the order in which they are predicted to be fast.
typedef struct {
    const Point *point;
    int n;
    double seconds;    // spent on lowering them, on features and on predictions
    const char *model; // what predicts
} Ranking;

typedef struct Weights Weights; // calibrate/predict.h
// A model of throughput, the weights of a device, or weights and a model of slowness, which
// is what they miss (calibrate/predict.h).
typedef struct {
    Model *model;
    const Weights *weights;
} Predictor;
// The model of a file, NULL: that of the folder for such a device; with the weights that it
// asks for, the device's or those of the folder. False with a diagnostic. The model is the
// caller's, predictor_free; the weights are the arena's.
bool predictor_load(Predictor *by, const DeviceInfo *device, const char *path,
                    const char *models, Arena *arena, Diags *diags);
// The predicted time of a unit, without weights but for a factor that all units of a
// program share. False if the model or a size does not allow it.
bool predictor_seconds(const Predictor *by, const Unit *unit, const FeatureSetting *setting,
                       Arena *arena, double *seconds);
void predictor_free(Predictor *by);

// The space is that of a derivation of problem->general. All points of a small one, else
// those that are often good and their neighbours, a seeded sample, and what lies near the
// best of them. Points that cannot be lowered are left out. limit: to so many at random,
// to seconds, half of which are for going on from the best, and to kernels of so many
// statements (0: any); NULL: not. False with a diagnostic if the model needs what features
// do not tell.
typedef struct {
    int points;
    double seconds;
    int statements;
} RankLimit;
bool rank_points(const Problem *problem, const DeviceInfo *device,
                 const Derivation *derivation, const Predictor *by, const RankLimit *limit,
                 uint64_t seed, Arena *arena, Ranking *ranking, Diags *diags);

// The same, ready to predict more. NULL with a diagnostic. What it is given outlives it.
typedef struct Rank Rank;
Rank *rank_open(const Problem *problem, const DeviceInfo *device,
                const Derivation *derivation, const Predictor *by, const RankLimit *limit,
                uint64_t seed, Arena *arena, Ranking *ranking, Diags *diags);
// Predicts the logarithms of the times of n points, but for a term that all share;
// INFINITY: a point cannot be lowered, or was not looked at before the seconds were over.
void rank_predict(Rank *rank, const Point *point, int n, double seconds, double *predicted);
void rank_close(Rank *rank); // accepts NULL

// tune.c, tune_*.c ----------------------------------------------------------------------

typedef struct {
    int trials; // done, stored ones included
    double best_ns, last_ns;
    TrialStatus last;
    double elapsed_s;
    double budget_s;       // of the whole; INFINITY: not bounded by time
    int64_t budget_trials; // 0: not bounded by trials
    const char *stage;     // "reference", "search", "re-measure"
} Progress;

struct TuneOptions {
    const char *device, *strategy; // strategy NULL: that of the problem's kind
    const char *model;  // path of a fitted model, for strategies that need a ranking
    const char *models; // folder of gpu.json.gz and cpu.json.gz, where model is NULL
    const Steps *steps; // of a heuristic file, for the strategy that follows one
    const char *where;  // a constraint more on the space, or NULL
    int stage[2];       // of a strategy in two stages; 0: its own choice
    int samples;        // timed runs of every point, however slow; 0: few of slow ones
    uint64_t seed;
    InputFiles inputs; // all of inputs; others are random. Trials on them are theirs alone
    // For the whole tuning, not for the search alone; kept to a fifth or 2 s. INFINITY: not
    // bounded by time.
    double budget_s;
    int64_t budget_trials; // 0: not bounded by trials
    // The plain kernel is known to be right: of a program that one tolerance suits, its
    // outputs are the reference, and the best is run on no more inputs.
    bool by_plain;
    const char *const *also; // nalso points, tried after the plain one
    int nalso;
    double enough; // share of the roofline's speed at which it ends; 0: never
    // Without a gain of a hundredth it ends after so many trials, or so long; 0: never.
    int64_t quiet_trials;
    double quiet_s;
    const char *store;      // path of the database
    const char *out;        // folder for the kernel; NULL: it is not written
    const char *t4, *cache; // files for the trials in others' forms; NULL: none
    const char *command;    // as typed, for the record of the run (run.h); NULL: no record
    Workplace place;
    int share, npeer; // as of a RunnerConfig: other devices that take part
    const RunnerPeer *peer;
    bool fresh;       // forget stored trials first
    bool no_search;   // nothing new is tried: the best of what is stored is run again
    bool no_roofline; // nobody asks for it: copy_ns, compute_ns, roofline_ns stay 0
    void (*progress)(void *user, const Progress *progress);
    // The record so far, once a second while it searches; NULL: nobody asks.
    void (*follow)(void *user, const struct Run *run);
    // Told of each trial that was run; true ends the search there, with the best so far.
    bool (*on_trial)(void *user, const char *point, const Trial *trial);
    // Asked of the best few, fastest first, after they were found right: out holds each
    // of the n buffers that is an output as the kernel left it. False: another must do.
    bool (*accept)(void *user, const char *point, const RunnerBuffer *buffer, int n,
                   void *const *out);
    void *user;
};

// A right trial that no other beats in all objectives.
typedef struct {
    const char *point;
    GoalValues values;
} TuneFront;

struct TuneResult {
    const char *problem, *strategy, *device, *fingerprint, *target;
    const char *sandbox; // what is in force; NULL: none
    uint64_t seed;
    double elapsed_s, space_points;
    double grace_s;         // beyond the budget, until a first kernel was right
    double reference_s;     // that inputs and the reference took
    int64_t trials, reused; // reused: taken from the store
    int64_t count[TRIAL_STATUS_COUNT];
    double baseline_ns, best_ns;
    double copy_ns, compute_ns; // what the problem's bytes, and its flops, take at least
    double roofline_ns;         // the larger of the two; 0: not known
    double bytes, flops;        // that any kernel must move and do (ceiling.h)
    double in_flight_bytes;     // of the best, a multiprocessor; 0: not a GPU
    const char *point, *kernel_path, *reference;
    const char *first_pick;  // the point tried first after the plain one; NULL: not known
    const char *record_path; // NULL: none was asked
    int signal;              // that ended the search; 0: none
    const char *enough;      // why it ended before its budget; NULL: it did not
    int devices;             // that ran trials until the end
    int ranked;              // points ranked by a model; 0: none was asked
    double ranking_s;
    const char *model; // its kind
    int nlaunch;
    int64_t global[3], local[3]; // of the first launch of the best
    double max_error;
    bool checked; // the best was compared with the reference once more at the end
                  // (best_ns INFINITY: it is the plain kernel, right at small sizes)
    Rigor rigor;  // of this search
    // The goal's names, the values of the best, and the front in order of the first
    // objective where there are several.
    int nmetric, nobjective, nfront;
    const char *metric[GOAL_METRICS], *unit[GOAL_METRICS], *objective[GOAL_OBJECTIVES];
    GoalValues values;
    TuneFront *front;
};

// Tunes a bound problem; false with diagnostics if no candidate was right or the world
// failed. The result's strings live in arena.
bool tune(const Problem *problem, const TuneOptions *options, Arena *arena,
          TuneResult *result, Diags *diags);

// Runs jobs for the search of another process, which tunes the same problem with the same
// seed, until it has no more. False with diagnostics.
bool tune_serve(const Problem *problem, const TuneOptions *options, const Link *link,
                Diags *diags);

// A search that its caller leads: what to try, and what to make of it. The strategy may be
// asked or not, points may be measured or told. `device` is described already; it is
// opened, and the reference computed, when the first point is measured. NULL with
// diagnostics. Owner: tune_close. The result's texts live in arena.
typedef struct Tune Tune;
Tune *tune_open(const Problem *problem, const TuneOptions *options,
                const DeviceInfo *device, Arena *arena, TuneResult *result, Diags *diags);
void tune_close(Tune *t); // accepts NULL
const Variants *tune_variants(const Tune *t);
// The next point of the strategy; false: it has none, or none before it is told of more.
bool tune_ask(Tune *t, Point *point);
// The cost of a point, INFINITY where it cannot be used. A strategy that does not learn
// from points it did not ask for is told of its own only.
void tune_tell(Tune *t, const Point *point, double ns);
// Runs, checks, times and stores a point; one that is stored is not run again. The trial's
// log is the arena's. False with diagnostics: the world failed.
bool tune_measure(Tune *t, const Point *point, Trial *trial, Diags *diags);
// The same of n points, which are built at once.
bool tune_measure_all(Tune *t, const Point *point, int n, Diags *diags);
// Runs n points on further inputs, one set of each kind, and sets wrong[i] of those that
// are not right for all. False if that cannot be known, with diagnostics of the device.
bool tune_check_points(Tune *t, const char *const *point, int n, bool *wrong, Diags *diags);
// The time of a point that was measured and right; false: it was not, and ns is INFINITY,
// or NAN if it was not run.
bool tune_measured(Tune *t, const Point *point, double *ns);
// The fastest that was measured or told; false: none.
bool tune_best(const Tune *t, Point *point, double *ns);

// rule.c: which point for which sizes ---------------------------------------------------

// A list of kernels, of which that of the least cost is run.
typedef struct {
    const char *cost; // femtoseconds: a formula of the sizes, as arith_print writes it
    const char *point;
} RuleRow;
enum { RULE_ROWS = 8 };
typedef struct {
    RuleRow row[RULE_ROWS];
    int n;
} Rule;

// "8000000 + 250000*((N + 127)/128): lx=64 ly=4; 9000000 + ...: lx=32 ly=8", and from it;
// false: it is none. Texts: arena's.
void rule_print(Buf *out, const Rule *rule);
bool rule_parse(const char *text, Arena *arena, Rule *rule);
bool is_rule(const char *text);
// A cost in nanoseconds, as a person reads it: each formula in it printed by `print`, with
// `plus` between two.
typedef void RulePrint(Buf *out, const Arith *a, const void *user);
void rule_print_cost(Buf *out, const Arith *cost, const char *plus, RulePrint *print,
                     const void *user);
// "lx=64 ly=4: 8 + 0.25*((N + 127)/128) ns"
void rule_print_row(Buf *out, const RuleRow *row);
// The row for these sizes; -1: a cost is no formula of them.
int rule_choose(const Rule *rule, const Binding *binding, int n);
// The same of costs as they are read; each NULL if it is none.
void rule_costs(const Rule *rule, ArithCtx *ctx, const Arith **cost);
int rule_least(const Arith *const *cost, int n, ArithLookup *look_up, void *user);

// Times of points at sizes. time[p * nsize + s] in ns; INFINITY: it cannot be used there;
// NAN: it was not run there.
typedef struct {
    const Binding *const *size; // nsize of them, each nbinding sizes
    int nbinding, nsize;
    const char *const *point;
    int npoint;
    const double *time;
} RuleTimes;
// The formulas that the cost of a kernel is a sum of.
enum { RULE_TERMS = 32, RULE_ABLE = 10, RULE_POINTS = 64 };
typedef struct {
    const Arith *at[RULE_TERMS];
    int n;
} RuleTerms;
// Those of a candidate, on a device of so many units.
void rule_terms(const Unit *unit, int64_t units, RuleTerms *terms);
// The points, RULE_ABLE at most, that a rule can be made of. Returns how many.
int rule_able(const RuleTimes *times, int *point);
// The rule that the times give: of n points, with the terms of each. Texts: arena's.
void rule_learn(const RuleTimes *times, const int *able, const RuleTerms *terms, int n,
                ArithCtx *ctx, Arena *arena, Rule *rule);

// range.c: tuning for ranges of sizes ----------------------------------------------------

typedef struct {
    const char *label;                   // of the problem at these sizes
    double best_ns, chosen_ns, plain_ns; // of all points tried there, and of the rule's
} RangeSize;
typedef struct {
    TuneResult base; // its texts and counts; times are those in the middle
    Rule rule;
    const RangeSize *size;
    int nsize, kernels; // kernels: that were right, and run at these sizes
} RangeResult;
// Tunes a problem that stands for ranges of sizes (problem_spans): at some of its sizes as
// tune() does, and the best few of each at all others; and keeps the rule that these times
// give. The budget is that of all of it. False with diagnostics.
bool tune_range(const Problem *problem, const TuneOptions *options, Arena *arena,
                RangeResult *result, Diags *diags);

// wisdom.c: plans that are stored ------------------------------------------------------

enum { RIGOR_PATIENT_S = 300 }; // of search, from which on it is patient

// What makes the trials of a problem on a device comparable; texts are the arguments'.
void plan_key(const Problem *problem, uint64_t space, const DeviceInfo *device,
              StoreKey *key);

// Where a plan may come from, besides trials of the same problem on the same device.
enum { REACH_SIZES = 1, REACH_DEVICES = 2 };

typedef struct {
    const char *store; // path of the database
    const DeviceInfo *device;
    int reach;
    Rigor least;            // of the search that found it
    const Workplace *place; // where it is checked; NULL: nothing is run
    uint64_t seed;          // of the data that it is checked with
} PlanAsked;

typedef struct {
    Point point;      // of a problem that spans ranges: for sizes in the middle
    const char *rule; // of such a problem: which point for which sizes; else NULL
    bool checked; // for this problem on this device, by a search or now, and it was right
    bool other_size, other_device;
    const char *problem, *device; // the label and device it was found for; owner: arena
    const char *fingerprint;      // of that device; owner: arena
    const char *elsewhere; // that of a device that has a plan of this very problem, or NULL
    double time_ns;        // measured there; of another size: in proportion to bytes
    Rigor rigor;           // of the search that found it
} PlanFound;

// The best stored plan. Of another size, it is the fastest point of the nearest size (by
// the sum of the logarithms of the ratios) that the space here has: a prediction. One that
// was never checked for this problem on this device is built, run and compared first,
// unless there is no place for it or the device takes no kernels of the target; the outcome
// is stored, and one that is not right is passed over with a warning. 1: found; 0: nothing;
// -1 with a diagnostic: the store failed, or nothing can be run.
int plan_find(const Variants *variants, const PlanAsked *asked, Arena *arena,
              PlanFound *found, Diags *diags);
// Says of what the plan was found for, where that is not what it is used for.
void plan_warn(const PlanFound *found, const Variants *variants, const DeviceInfo *device,
               Diags *diags);

#endif
