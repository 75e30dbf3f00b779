// SPDX-License-Identifier: Apache-2.0
//
// plan: ties the modules together: a problem, its data and reference, tuning, and the plan
// that comes of it. The only module that sees all.

#ifndef FW_PLAN_H
#define FW_PLAN_H

#include "emit/emit.h"
#include "fuse/tune.h"
#include "measure/measure.h"
#include "model/model.h"
#include "plan/derive.h"
#include "search/search.h"
#include "search/steps.h"
#include "store/exchange.h"
#include "store/store.h"

// problem.c -----------------------------------------------------------------------------

typedef struct Template Template; // template.h
typedef struct ProblemKind ProblemKind;

// A program, a template or a script with its sizes bound, everything it needs in one place.
typedef struct {
    const ProblemKind *kind; // NULL if it is wrong
    Ir *ir;
    Arena *arena; // lives as long as the problem
    Source source;
    Program *program;   // as parsed and inferred; NULL if it is wrong or no program
    Program *bound;     // with its sizes; NULL if only checked, or no program
    Template *template; // NULL: no template
    Script *script;     // NULL: no script, or its sizes are not bound
    int64_t instances;  // of a script
    int limit;          // of a script, as of fuse_space: the caller's to set before binding
    const char *name;   // of the main definition
    const Binding *binding;
    int nbinding;
} Problem;

// Reads, parses and infers a file, a template's if its name ends in .json, a script's if in
// .fws, which is parsed when it is bound; kind is NULL, with diagnostics, if that fails.
// They point into the problem's source, so print them before problem_free. Owner: the
// caller.
Problem *problem_load(const char *path, Diags *diags);
bool path_is_script(const char *path);  // .fws
bool path_is_program(const char *path); // .fw
// script.c: the number of instances of a script, T among the sizes; false with a diagnostic
// if it has no value or none that can be launched.
bool script_instances(const Binding *binding, int n, int64_t *instances, Diags *diags);
Problem *problem_parse(const char *name, const char *text, Diags *diags);
void problem_free(Problem *problem); // accepts NULL
// Binds sizes; false with diagnostics.
bool problem_bind(Problem *problem, const Binding *binding, int n, Diags *diags);
uint64_t problem_hash(const Problem *problem);     // of the bound program as printed
const char *problem_label(const Problem *problem); // "jacobi2d N=4096 M=4096"
// Inputs of a program: seeded random values; owner: arena.
Value **problem_inputs(const Problem *problem, uint64_t seed, Arena *arena);
// A number of the bound program, generic sizes by their binding.
int64_t problem_number(const Problem *problem, const Arith *a);
// Bytes that any kernel must move: each input read once, each output written once.
double problem_bytes(const Problem *problem);
// Whether the arrays have room in the device's memory, and each in a buffer; false with a
// diagnostic. What kernels allocate between launches is not counted.
bool problem_fits(const Problem *problem, const DeviceInfo *device, Diags *diags);

// The types of the planes (one a scalar component) of a value; returns how many there are,
// writes at most max.
enum { PLANES_MOST = 64 };
int type_planes(Arena *arena, const Type *type, const Type **plane, int max);

// data.c: values as a rig's buffers ---------------------------------------------------

typedef struct {
    RigBuffer *buffer;
    int nbuffer, noutput;
    const int *output; // the buffer of each output
    double tolerance;  // as of a RigConfig
    double limit_s;    // to build, and to run; 0: as a RigConfig has it
    int ninput;        // of a program: input planes, then output planes
    ScriptData *script;
} ProblemData;

// Those of a program: with given inputs, and with those of problem_inputs.
ProblemData *data_new(const Problem *problem, Value **inputs, Arena *arena);
ProblemData *data_random(const Problem *problem, uint64_t seed, Arena *arena);
// Puts other contents into an input.
void data_pack(const RigBuffer *buffer, const double *plane);
Value **data_inputs(const Problem *problem, const ProblemData *data, Arena *arena);
void data_expect(ProblemData *data, const Value *expect, Arena *arena);
// Where the outputs of a run are to go, of any kind of problem: as rig_run_one takes it.
void **data_outputs(const ProblemData *data, Arena *arena);

// job.c: a candidate as a job ---------------------------------------------------------

typedef struct {
    Unit *unit; // of a program
    Job job;
    Buf source;
    const Point *point;
} Candidate;

// Lowers and emits a point; its memory is the arena's, its text is released by
// candidate_release. name: prefix of its kernels. False with diagnostics.
bool candidate_make(const Problem *problem, const Derivation *derivation,
                    const Point *point, const char *name, const Target *target,
                    const char *prelude, Arena *arena, Candidate *candidate, Diags *diags);
// The same of an expression that is lowered already; options name its kernels.
bool candidate_build(const Problem *problem, Expr *body, const LowerOptions *options,
                     const Target *target, const char *prelude, Arena *arena,
                     Candidate *candidate, Diags *diags);
void candidate_release(Candidate *candidate);

// program.c, template.c, script.c: the kinds of problem ---------------------------------

// Where the workers of a problem's rigs keep files, and what they are: as of a RigConfig.
typedef struct {
    const char *folder, *worker;
} Workplace;

// Files for inputs, in place of random values; a name is set to "" once it was used.
typedef struct {
    const char **name;
    const char *const *file;
    int n;
} InputFiles;
// The file given for an input, or for one plane of an input of tuples (`a_0`), which is
// used thereby; NULL: none.
const char *input_file(const InputFiles *files, const char *name);

// The ways to run a bound problem on a device: a space, and the candidate of each point.
typedef struct {
    const Problem *problem;
    const Target *target; // the device's
    const Space *space;
    Derivation *derivation; // of a program
    ScriptSpace *script;    // of a script
    Buf prelude;            // of a program or a script
} Ways;

// Points in the order in which they are predicted to be fast.
typedef struct {
    const Point *point;
    int n;
    double seconds;     // spent on lowering them, on features and on predictions
    const char *model;  // what predicts
    const Point *first; // to be tried before, the plain one first; NULL: the problem's own
    int nfirst;
    const Point *sample; // to be tried besides
    int nsample;
    const FuseRanking *fused; // of a script
} Ranking;

typedef struct TuneOptions TuneOptions;
typedef struct TuneResult TuneResult;

// An array that the kernels of a problem work on, in the order of a job's buffers: of a
// program its inputs, a plane each, then its outputs.
typedef struct {
    const char *name, *type; // of an element: "float", "uchar4"
    int64_t count, bytes;    // elements, and all of them
    bool in, out;            // read by the kernels, written by them
    bool image;
} Argument;

// What tuning asks of a problem, of whichever kind it is.
struct ProblemKind {
    const char *name;     // "program", "template", "script"
    const char *strategy; // where none is asked for
    bool (*bind)(Problem *problem, Diags *diags);
    void (*free)(Problem *problem);
    uint64_t (*hash)(const Problem *problem); // of what makes trials comparable
    double (*bytes)(const Problem *problem);
    double (*flops)(const Problem *problem); // NULL: counted in the program, or not known
    Argument *(*arguments)(const Problem *problem, Arena *arena, int *n);
    // Inputs, and outputs of which nothing is known yet; owner: arena.
    ProblemData *(*data)(const Problem *problem, uint64_t seed, const InputFiles *files,
                         Arena *arena, Diags *diags);
    // Computes what the outputs must be; how: in words.
    bool (*expect)(const Problem *problem, ProblemData *data, const char *device,
                   const Workplace *place, Arena *arena, const char **how, Diags *diags);
    // Writes an output, as read from its buffer, to a .npy file.
    bool (*write)(const Problem *problem, const ProblemData *data, int output,
                  const void *raw, const char *path, Diags *diags);
    bool (*open)(Ways *ways, const DeviceInfo *device, Diags *diags);
    void (*close)(Ways *ways);
    int (*first)(const Ways *ways, Point *point, int max);
    // Makes parameters that were not named (by bits) go with those that were, in an invalid
    // point; NULL: they stay as they are.
    void (*complete)(const Ways *ways, uint64_t named, Point *point);
    bool (*candidate)(const Ways *ways, const Point *point, const char *name, Arena *arena,
                      Candidate *candidate, Diags *diags);
    void (*text)(const Ways *ways, const Candidate *candidate, Buf *text);
    // Of a point that no candidate was made of; NULL: it takes one.
    bool (*shape)(const void *ways, const Point *point, LaunchShape *shape);
    // For a strategy that needs it; NULL: points of such problems are not predicted.
    bool (*rank)(const Ways *ways, const DeviceInfo *device, const TuneOptions *options,
                 const SearchKind *strategy, Arena *arena, Ranking *ranking, Diags *diags);
    // What its trials say besides; may be NULL. ranking: all 0 if none was made.
    void (*conclude)(const Ways *ways, const Ranking *ranking, const Outcome *outcome,
                     int n, const Point *best, Arena *arena, TuneResult *result);
};
extern const ProblemKind problem_program, problem_template, problem_script;

// False with a diagnostic: the device cannot run it, or the space is empty. Close it in
// either case.
bool ways_open(Ways *ways, const Problem *problem, const DeviceInfo *device, Diags *diags);
void ways_close(Ways *ways);
// One constraint more on the space; false with a diagnostic if it is wrong, or if no point
// is left.
bool ways_constrain(Ways *ways, const char *text, Diags *diags);
// The plain point, then points that are often good, each once; returns how many there are.
int ways_first(const Ways *ways, Point *point, int max);
// A point as a job, its kernels named after `name` if they can be; see candidate_make.
bool ways_candidate(const Ways *ways, const Point *point, const char *name, Arena *arena,
                    Candidate *candidate, Diags *diags);
// Launches of points; the ways must outlive them.
Launches ways_launches(const Ways *ways);
// The kernels of a candidate as a file for the user.
void ways_text(const Ways *ways, const Candidate *candidate, Buf *text);

// Starts `name` as a problem of no kind yet, with room for what it needs.
Problem *problem_new(const char *name, const char *text, size_t len);

// reference.c -------------------------------------------------------------------------

// Sets what the outputs must be: by the interpreter where that is quick; else by the plain
// kernel as C, after it was checked against the interpreter at small sizes. Of a program
// that iterates, sets the tolerance to what rounding alone can do to its results, if that
// is more. how: all of it in words. False with diagnostics.
bool reference_compute(const Problem *problem, ProblemData *data, const Workplace *place,
                       Arena *arena, const char **how, Diags *diags);

// Where compiled kernels and data files go: forewarp under $XDG_CACHE_HOME or ~/.cache.
const char *plan_cache_folder(Arena *arena);

// rank.c ------------------------------------------------------------------------------

// All points of a small space, else a seeded sample. Points that cannot be lowered are left
// out. False with a diagnostic if the model needs what features do not tell.
bool rank_points(const Problem *problem, const DeviceInfo *device, const Model *model,
                 uint64_t seed, Arena *arena, Ranking *ranking, Diags *diags);
// That of a program, as ProblemKind.rank: by a model, or by the device's weights.
bool rank_program(const Ways *ways, const DeviceInfo *device, const TuneOptions *options,
                  const SearchKind *strategy, Arena *arena, Ranking *ranking, Diags *diags);

// tune.c, tune_*.c ----------------------------------------------------------------------

typedef struct {
    int trials; // done, stored ones included
    double best_ns, last_ns;
    TrialStatus last;
    double elapsed_s;
    double budget_s;       // of the search; INFINITY: not bounded by time
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
    int sample;         // points at random besides, of a strategy that ranks
    uint64_t seed;
    double budget_s;        // INFINITY: not bounded by time
    int64_t budget_trials;  // 0: not bounded by trials
    const char *store;      // path of the database
    const char *out;        // folder for the kernel; NULL: it is not written
    const char *t4, *cache; // files for the trials in others' forms; NULL: none
    const char *command;    // as typed, for the record of the run (run.h); NULL: no record
    Workplace place;
    int share, npeer; // as of a RigConfig: other devices that take part
    const RigPeer *peer;
    bool fresh;    // forget stored trials first
    bool no_floor; // nobody asks for it: copy_ns, compute_ns, floor_ns stay 0
    void (*progress)(void *user, const Progress *progress);
    // Told of each trial that was run; true ends the search there, with the best so far.
    bool (*on_trial)(void *user, const char *point, const Trial *trial);
    // Asked of the best few, fastest first, after they were found right: out holds each
    // of the n buffers that is an output as the kernel left it. False: another must do.
    bool (*accept)(void *user, const char *point, const RigBuffer *buffer, int n,
                   void *const *out);
    void *user;
};

struct TuneResult {
    const char *problem, *strategy, *device, *fingerprint, *target;
    uint64_t seed;
    double elapsed_s, space_points;
    int64_t trials, reused; // reused: taken from the store
    int64_t count[TRIAL_STATUS_COUNT];
    double baseline_ns, best_ns;
    double copy_ns, compute_ns; // what the problem's bytes, and its flops, take at least
    double floor_ns;            // the larger of the two; 0: not known
    double bytes, flops;        // that any kernel must move and do (ceiling.h)
    double in_flight_bytes;     // of the best, a multiprocessor; 0: not a GPU
    const char *point, *kernel_path, *reference;
    const char *record_path; // NULL: none was asked
    int devices;             // that ran trials until the end
    int ranked;              // points ranked by a model; 0: none was asked
    double ranking_s;
    const char *model; // its kind
    int nlaunch;
    int64_t global[3], local[3]; // of the first launch of the best
    double max_error;
    bool checked; // the best was compared with the reference once more at the end
    Rigor rigor;  // of this search
    const FuseResult *fused; // of a script
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
const Ways *tune_ways(const Tune *t);
// The next point of the strategy; false: it has none, or none before it is told of more.
bool tune_ask(Tune *t, Point *point);
// The cost of a point, INFINITY where it cannot be used. A strategy that does not learn
// from points it did not ask for is told of its own only.
void tune_tell(Tune *t, const Point *point, double ns);
// Runs, checks, times and stores a point; one that is stored is not run again. The trial's
// log is the arena's. False with diagnostics: the world failed.
bool tune_measure(Tune *t, const Point *point, Trial *trial, Diags *diags);
// The time of a point that was measured and right; false: it was not.
bool tune_measured(Tune *t, const Point *point, double *ns);
// The fastest that was measured or told; false: none.
bool tune_best(const Tune *t, Point *point, double *ns);

// wisdom.c: plans that are stored ------------------------------------------------------

enum { RIGOR_PATIENT_S = 300 }; // of search, from which on it is patient

// What makes the trials of a problem on a device comparable; texts are the arguments'.
void plan_key(const Problem *problem, uint64_t space, const DeviceInfo *device,
              StoreKey *key);

// Where a plan may come from, besides trials of the same problem on the same device.
enum { REACH_SIZES = 1, REACH_DEVICES = 2 };

typedef struct {
    Point point;
    bool other_size, other_device;
    const char *problem, *device; // the label and device it was found for; owner: arena
    const char *fingerprint;      // of that device; owner: arena
    double time_ns;               // measured there; of another size: in proportion to bytes
    Rigor rigor;                  // of the search that found it
} PlanFound;

// The best stored plan. Of another size, it is the fastest point of the nearest size (by
// the sum of the logarithms of the ratios) that the space here has: a prediction. 1: found;
// 0: nothing; -1 with a diagnostic: the store failed.
int plan_find(const Ways *ways, const char *store, const DeviceInfo *device, int reach,
              Arena *arena, PlanFound *found, Diags *diags);
// Says of what the plan was found for, where that is not what it is used for.
void plan_warn(const PlanFound *found, const Ways *ways, const DeviceInfo *device,
               Diags *diags);

// The models that come with the program at `program` (installed, or beside where it was
// built): a folder, NULL: not found.
const char *plan_models_folder(const char *program, Arena *arena);

// Version of the code generator: trials of another one are not comparable.
#define CODEGEN_VERSION FW_VERSION "-8"

#endif
