// SPDX-License-Identifier: Apache-2.0
//
// tune, inside: the state of a tuning, and what its files give each other. tune.c is the
// whole as a sentence.

#ifndef FW_TUNE_INTERNAL_H
#define FW_TUNE_INTERNAL_H

#include "measure/peers.h"
#include "tune/tune.h"

enum { FINALISTS = 5, FINAL_SAMPLES = 20 };

// A trial this run knows, by its point.
typedef struct {
    TrialStatus status;
    double time_ns, max_error;
    bool counted;    // in this run's result
    const char *log; // the first line of why it is not ok; NULL if nothing was said
    Measures measures;
    ExchangeTrial exchange;
} KnownTrial;

typedef struct {
    Point point;
    double cost; // by the goal; INFINITY: it did not come through being measured again
    double ns;   // likewise
    Measures measures;
    double first_ns;  // of its first trial
    int64_t turn;     // counts first trials
    StoreTrial again; // what the store is to know of the second; an arena's
} Finalist;

typedef struct TrialStream TrialStream;

struct Tune {
    const Problem *problem;
    const TuneOptions *options;
    Arena *arena;
    TuneResult *result;
    Diags *diags;
    const DeviceInfo *device; // the runner's, or described by the caller
    const Point *given;       // ngiven of them: to be measured next by tune_measure_all
    int ngiven;
    bool stopped;    // by options->on_trial
    double start_s;  // when tuning began
    Stop stop;       // of its runners: the part of the budget at work (tune_set_end)
    Workplace place; // the options', with that stop
    ProblemData *data;
    uint64_t data_seed; // of the data, as trials are stored with it
    bool compares;      // with the outputs of the plain kernel: they are the reference
    Runner *runner;
    Variants variants;
    const Space *space;
    Goal *goal;
    bool aimless; // right trials have no value of an objective
    struct {
        double cost; // of the best when the last gain was made
        int64_t trials;
        double at_s;
    } gain;
    double roofline_ns; // where a share of it is enough; else 0
    Store *store;
    int64_t session;
    double budget_s;       // of the whole; INFINITY: not bounded by time
    int64_t budget_trials; // of the search; 0: not bounded by trials
    struct {
        int trials; // run, the first of which was done at first_s
        double begun_s, first_s;
        double build_s, bytes; // of the longest text that was right
        double other_s;        // of all candidates, but for timing them
        double check_s;        // of that, running and comparing them
        double right_s;        // when the first was right; 0: none
    } spent;
    bool roofline_known;         // what the roofline needs is stored
    Map known;                   // point text to Known
    const char *cache_body;      // of the cache file that is gone on with; NULL: none is
    VEC(ExchangeTrial) exchange; // trials of this run, where they are to be written
    const char *kernel_text, *plain_text; // of the best and the plain point, for a record
    double followed_s;                    // when options->follow was told last
    Search *search;
    Ranking ranking; // all 0: the strategy needs none
    struct {
        Rank *rank; // NULL: nothing predicts the points that the strategy asks of
        Predictor by;
        Predictions times;
        double spent_s;
    } led;
    int asked_first; // of the points tried before the strategy's
    Point first[16];
    int nfirst;
    VEC(Point) claimed; // of wisdom and options->also, tried after the first
    int asked_claimed;
    bool has_plain;           // the first of them is the plain point
    uint64_t space_hash;      // without options->where: trials are the same
    Finalist best[FINALISTS]; // sorted
    int nbest, nagain;        // nagain: of them, timed again
    int64_t turns;            // first trials so far
    VEC(Finalist) front;      // of several objectives: right trials that none beats
    const char *last_log;     // of the last trial that failed
    struct {                  // the reference, while it is made apart
        Problem *own;
        Arena *arena;
        Diags said;
        const char *how;
        double start_s;
        pthread_t thread;
        bool running, made; // made: it has ended, and is not taken yet
    } apart;
    double set_s;       // that inputs and their reference took, once it was built
    double sets_s;      // that building it took
    Arena *scratch;     // of the stream at work
    TrialStream *begun; // the stream whose first points are being compiled, or NULL
    struct {            // the plain kernel at small sizes (tune_small.c)
        RunnerConfig config;
        pthread_t thread;
        bool running, taken; // taken: it is the result
        char *right;         // the problem for which it was; NULL: none
    } small;
};

// tune_trials.c: what is known of points -------------------------------------------------

// A copy of n samples; owner: the tuning.
const double *tune_samples(Tune *t, const double *sample, int n);
// To options->progress and follow; last_ns: INFINITY if that trial has no time.
void tune_report(Tune *t, const char *stage, TrialStatus last, double last_ns);
// If it is one of the best few, or none beats it in one of several objectives.
void tune_keep_best(Tune *t, const Point *point, double ns, const Measures *measures);
void tune_keep_front(Tune *t, const Finalist *made); // if none of the front beats it
void tune_drop(Tune *t, const Point *point); // from the front: it was wrong in the end
// The one of the n that is at this point, or NULL.
Finalist *tune_finalist(const Tune *t, Finalist *of, int n, const Point *point);
double tune_cost(const Tune *t, const Point *point, double ns, const Measures *measures);
// A trial of an earlier run, for store_each; user: the Tune.
void tune_load_stored(void *user, const StoreTrial *trial);
void tune_load_cached(void *user, const ExchangeTrial *trial); // likewise of a cache file
// Made under a name that no other of this tuning has, whose variants these are; space: its
// hash. In arena. False with a diagnostic.
bool tune_candidate_of(const Variants *variants, uint64_t space, const Point *point,
                       Arena *arena, Candidate *candidate, Diags *diags);
// The same of its own variants.
bool tune_candidate(Tune *t, const Point *point, Arena *arena, Candidate *candidate,
                    Diags *diags);
// Keeps a trial, and tells the strategy if told. False if it could not be stored.
bool tune_take_trial(Tune *t, bool told, const Point *point, Trial *trial);
// The same of a point that could not be lowered, as one that was not built.
bool tune_take_unlowered(Tune *t, bool told, const Point *point, const Diags *why);
// A trial this store already holds costs nothing; false: it holds none.
bool tune_take_known(Tune *t, bool told, const Point *point);
// What is clearly worse than this is not timed further, unless a record is wanted.
double tune_cutoff_ns(const Tune *t);

// rank.c: in the order of the model that the strategy asks; false with diagnostics.
bool tune_rank(Tune *t, Ranking *ranking);

// tune_budget.c -------------------------------------------------------------------------

typedef enum {
    BUDGET_REFERENCE,
    BUDGET_SEARCH,
    BUDGET_AFTERWARDS,
    BUDGET_CHECKS
} BudgetPart;
void tune_set_end(Tune *t, BudgetPart part); // of the stop, by what is known now
bool tune_budget_left(const Tune *t);        // to the part
// As many trials as so many seconds, and the time left, should allow at the pace so far.
int tune_trials_in(const Tune *t, double seconds, int most);
// Whether so much more may be done before the budget is over.
bool tune_has_time(const Tune *t, double seconds);
double tune_again_s(const Tune *t, double ns); // predicted, to time a candidate again
int tune_sets_in_time(const Tune *t);   // of further inputs, that the rest suffices for
bool tune_plain_is_slow(const Tune *t); // its runs would take much of the budget
void tune_spent(Tune *t, const Job *job, const Trial *trial);
// Kernels of more statements are not worth a prediction.
int tune_statements_in_time(const Tune *t);
bool tune_compiles_in_time(const Tune *t, const Job *job); // as predicted

// tune_more.c ---------------------------------------------------------------------------

// Runs the best on more inputs; one that is wrong for any is no result, and stored as
// wrong.
bool tune_check_more(Tune *t);

// tune_small.c --------------------------------------------------------------------------

// A thread that takes no signals: they are for the one that tunes. False: there is none.
bool tune_thread(pthread_t *thread, void *(*work)(void *), Tune *t);

// Checks the plain kernel at small sizes in the runner, which is not to be used until that
// has ended.
void tune_begin_small(Tune *t);
void tune_end_small(Tune *t);
void tune_await_small(Tune *t, double until_s); // its end, but no longer
// Makes it the result if the time is over without any. False: it cannot be.
bool tune_take_small(Tune *t);

// tune.c --------------------------------------------------------------------------------

// The settings of a runner for these data, without peers.
RunnerConfig tune_runner_config(const Tune *t, const ProblemData *data);

// tune_search.c -------------------------------------------------------------------------

// With what leads it, and told what is stored if it learns. False with a diagnostic.
bool tune_open_search(Tune *t);

void tune_close_search(Tune *t);

// tune_stream.c -------------------------------------------------------------------------

// Gives the next point; false: none, or none before those that were given are told.
typedef bool NextPoint(Tune *t, Point *point);
// Runs points given by `next` until it has none; false on failure.
bool tune_stream(Tune *t, NextPoint *next, bool told);
// Has the device's compilers, where it has some, begin with the first points of the next
// tune_stream, which is of the same; false on failure.
bool tune_stream_begin(Tune *t, NextPoint *next, bool told);
bool tune_reference_made(Tune *t); // has the thread that makes it ended?
void tune_stream_drop(Tune *t);    // what was begun

// tune_winner.c: false with a diagnostic ------------------------------------------------

bool tune_measure_again(Tune *t); // the best few, and sorts them
bool tune_ask_caller(Tune *t);    // puts the fastest that it accepts first
bool tune_find_roofline(Tune *t); // once
void tune_say_end(Tune *t);       // of a tuning that failed, if its time was over
// Fills the result and writes the kernel.
bool tune_conclude(Tune *t);

// tune_record.c -------------------------------------------------------------------------

// The trials in the forms of other tuners, where they are asked for, even if none was
// right.
bool tune_write_exchange(Tune *t);
// Takes what a cache file that is there holds for known. False with a diagnostic: it is of
// something else.
bool tune_read_cache(Tune *t);
// NAME.run.json beside the kernel, also of a search that found nothing.
bool tune_write_record(Tune *t);
void tune_follow(Tune *t); // to options->follow, if it is time

#endif
