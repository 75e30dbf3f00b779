// SPDX-License-Identifier: Apache-2.0
//
// measure: trials. A job (kernel text, buffers, launches) goes to a worker process that
// holds the device; it is built, run, checked against the expected outputs and timed. A
// worker that crashes or hangs becomes a trial status, and the next job goes on.
//
// The controller makes no device call. Workers are started by fork and exec, live long,
// and speak length-prefixed JSON over a socket pair; bulk data go through files mapped
// by both sides.

#ifndef FW_MEASURE_H
#define FW_MEASURE_H

#include "base/base.h"
#include "device/device.h"
#include "ir/ir.h"

#include <stdatomic.h>

#define TRIAL_STATUSES(X)                                                                  \
    X(OK, "ok")                                                                            \
    X(BUILD_FAILED, "build-failed")                                                        \
    X(OUT_OF_RESOURCES, "out-of-resources")                                                \
    X(CRASHED, "crashed")                                                                  \
    X(TIMED_OUT, "timed-out")                                                              \
    X(WRONG_RESULT, "wrong-result")                                                        \
    X(FAILED, "failed") /* any other error of the device */

typedef enum {
#define X(id, text) TRIAL_##id,
    TRIAL_STATUSES(X)
#undef X
        TRIAL_STATUS_COUNT
} TrialStatus;
extern const char *const trial_status_name[TRIAL_STATUS_COUNT];
bool trial_status_find(const char *name, TrialStatus *status); // false: there is none
// Appends how many there are of each, but for those of which there are none: " 12 ok, 1
// failed".
void trial_counts(Buf *out, const int64_t count[TRIAL_STATUS_COUNT]);

// Version of the rule by which a result is right: a stored verdict of another counts for
// nothing.
#define CHECK_VERSION "11"

enum { TRIAL_SAMPLES = 32 };

// measures.c: what a trial tells besides its time, a row of measures.def each.
typedef enum {
#define MEASURE(id, name, unit, doc) MEASURE_##id,
#include "measure/measures.def"
#undef MEASURE
    MEASURES
} Measure;
typedef struct {
    const char *name, *unit, *doc;
} MeasureRow;
extern const MeasureRow measure_row[MEASURES];
typedef struct {
    unsigned told; // a bit each; what is all 0 tells nothing
    double of[MEASURES];
} Measures;
double measure_of(const Measures *measures, Measure what); // NAN: not told
void measure_tell(Measures *measures, Measure what, double value);
void measures_print(Buf *out, const Measures *measures);   // "registers=32 energy=0.0125"
void measures_parse(Measures *measures, const char *text); // NULL: nothing is told

#define TRIAL_LIMIT_S 10.0 // to build, and to run, unless a RunnerConfig has others

typedef struct {
    TrialStatus status;
    double time_ns; // the minimum of the samples; INFINITY unless ok
    double sample_ns[TRIAL_SAMPLES];
    int nsample;
    bool cut;                          // stopped early: clearly worse than the cut-off
    double max_error;                  // largest relative error found
    Measures measures;                 // of one that is ok
    double build_s, check_s, timing_s; // where the time went
    double limit_s; // timed-out: the limit that it broke when nothing else ran; else 0
    bool outside; // not ok, by what may not be its own doing: a full disk, a lost device, a
                  // signal from elsewhere; twice, the second time when nothing else ran
    char *log;    // build log or reason; heap, owner: the trial (trial_release)
} Trial;
void trial_release(Trial *trial);

// When runners are to leave off what they do: at a time, or because somebody asks. Any
// thread may change it while runners look at it.
typedef struct Stop Stop;
struct Stop {
    _Atomic double end_s;    // by clock_s; INFINITY: never by itself
    _Atomic double grace_s;  // of the time until then: for what must be, not for samples
    const atomic_int *asked; // a signal's number: at once; 0, or NULL: nobody asks
    const Stop *of;          // due where that one is, too; NULL: none
};
// All accept NULL: never.
double stop_left_s(const Stop *stop); // until it is due, from then on 0
bool stop_due(const Stop *stop);
int stop_asked(const Stop *stop);        // the signal; 0: none
const char *stop_text(const Stop *stop); // why it is due, a sentence: "it was interrupted"

// A buffer of the problem, shared by all its jobs.
typedef struct {
    const char *name;
    Scalar scalar;
    int64_t count;    // elements
    size_t bytes;     // 0: those of count elements; less where the last int is not whole
    int width;        // bytes of an element as the kernel takes it; 0: the scalar's
    const void *init; // count elements in the device's layout (bool: one byte, half: two);
                      // NULL: an output, poisoned before each run. Without expect and
                      // inout: an input, which no job may change
    const void *expect; // what it must hold after a run; NULL: not compared
    const float *bound; // how far each element may be from that, INFINITY: it is undecided;
                        // NULL: the tolerance says it
    int64_t spared;     // so many elements may be wrong
    bool inout;         // written by the kernels too: restored before each run
    ImageShape image;   // dims 0: a buffer; images are read only
} RunnerBuffer;
size_t runner_buffer_bytes(const RunnerBuffer *buffer);

typedef struct {
    // ARG_IMAGE: a buffer, given to the kernel as an image of one dimension; ARG_LOCAL:
    // local memory (OpenCL); ARG_SYMBOL: a buffer whose contents are those of a variable of
    // the module, and which is not passed (CUDA); ARG_VALUE: the first element of what a
    // buffer holds to begin with, which is an input.
    enum {
        ARG_BUFFER,
        ARG_VALUE,
        ARG_INT,
        ARG_SCALAR,
        ARG_BITS,
        ARG_IMAGE,
        ARG_LOCAL,
        ARG_SYMBOL
    } kind;
    int buffer; // ARG_BUFFER, ARG_VALUE, ARG_SYMBOL: a RunnerBuffer's number, or nbuffer +
                // k: scratch k of the job; ARG_BITS, ARG_LOCAL: how many bytes
    int64_t number; // ARG_INT: passed as a 32-bit int
    Scalar
        scalar; // ARG_SCALAR, ARG_VALUE; ARG_IMAGE: of the buffer's elements, float or int
    double value;
    const void *bits;   // ARG_BITS: the bytes that are passed
    const char *symbol; // ARG_SYMBOL
} JobArg;

typedef struct {
    const char *kernel;
    int64_t global[3], local[3];
    int64_t local_bytes; // local memory of a group that the text does not declare
    int narg;
    const JobArg *arg;
    bool follows; // as in DeviceLaunch
} JobLaunch;

// One candidate to try. Kernel names must be unique among jobs run together, and text
// before the kernels that may be shared (user functions) is the prelude, the same for all
// jobs of a runner: several jobs are then built as one program.
typedef struct {
    const char *prelude, *source, *options;
    int nscratch;
    const int64_t *scratch_bytes;
    int nlaunch;
    const JobLaunch *launch;
    // Its launches and symbols are called what an author calls them, as of a DeviceText.
    bool named;
} Job;

// job.c: the names that the compiler is to keep; memory of the arena.
void job_names(const Job *job, Arena *arena, DeviceText *text);
// A launch for a device, whose arguments are given.
DeviceLaunch job_launch(const JobLaunch *launch, const DeviceArg *arg);
const char *job_symbol(const JobArg *arg, Arena *arena); // ARG_SYMBOL: among those names
bool job_reads(const JobArg *arg);                       // is it one, or in one?

// Text in C that judges what a run has left: JUDGE_NAME_entry(arg), arg[0] an int that it
// sets to 0 if that is right, then these buffers.
#define JUDGE_NAME "fw_judge"
typedef struct {
    const char *text, *options;
    const int *buffer;
    int n;
} RunnerJudge;

// What workers may do where the jobs are not trusted: sandbox.c. Beyond that they have no
// files, no network, and none of this environment but what compilers and drivers read.
typedef struct {
    double bytes;     // memory of a process
    const char *says; // what is in force: "landlock 7, no network, 4.5 GB"
} Sandbox;
// For a problem with so many bytes of arrays; false with a diagnostic that says what this
// system lacks. Owner: arena.
bool sandbox_describe(double problem_bytes, Sandbox *sandbox, Arena *arena, Diags *diags);

// Where the workers of runners keep files, what they are, and when they are to leave off:
// as of a RunnerConfig.
typedef struct {
    const char *folder, *worker;
    const char *device; // that computes a reference; of reference.c alone
    const Sandbox *sandbox;
    const Stop *stop;
    double patience_s; // how long a reference may take where there is a lesser one; 0: as
                       // it likes
} Workplace;

// Who runs some of a runner's jobs besides its own device (peers.h).
typedef struct PeerKind PeerKind;
typedef struct Link Link;
typedef struct {
    const PeerKind *kind;
    const char *device; // of peer_local
    const Link *link;   // of peer_remote
} RunnerPeer;

typedef struct {
    const char *device;     // "opencl:0"
    const char *worker;     // path of a program that calls worker_main; NULL: this program
    const char *folder;     // for caches and data files; made if missing
    const Sandbox *sandbox; // NULL: jobs are trusted; lives as long as the runner
    const Stop *stop;       // NULL: never; likewise
    int nbuffer;
    const RunnerBuffer *buffer;
    const RunnerJudge *judge; // NULL: none
    double
        tolerance; // where a buffer has no bounds: |x - e| <= tolerance * max(|e|, scale)
    double build_limit_s, run_limit_s; // per job; 0: TRIAL_LIMIT_S
    int samples;                       // valid timed runs wanted; 0: 5
    bool energy;                       // of right jobs, where the device counts it
    int batch;                         // jobs prepared together; 0: chosen by the device
    int workers;                       // 0: chosen by the device
    int builds; // jobs a worker builds before another takes its place; 0: 1000
    int share;  // devices that share this machine's cores, this one included; 0: 1
    int npeer;  // that take part in runner_run and runner_stream
    const RunnerPeer *peer; // they live as long as the runner
} RunnerConfig;

typedef struct Runner Runner;

// Opens the device in a worker; NULL with a diagnostic. Owner: the caller. Buffers
// may follow by runner_fill. What they point to stays as it is until others follow, or the
// runner is closed: workers map what lies in shared memory (arena_shared), and have files
// of the rest.
Runner *runner_open(const RunnerConfig *config, Diags *diags);
void runner_close(Runner *runner);
// Goes on with the buffers and the tolerance of another configuration of the same device;
// its workers stay, and what they have loaded. Peers join with the first buffers, and keep
// those: then one job at a time is run. False: as runner_open, and the runner can only be
// closed.
bool runner_fill(Runner *runner, const RunnerConfig *config, Diags *diags);
const DeviceInfo *runner_device(const Runner *runner);
int runner_peers(const Runner *runner); // that take part, and are not lost
int runner_batch(const Runner *runner); // how many jobs to hand over at once for full speed

// Runs n jobs; calls done in order of completion, once a job. A job is cut short when its
// first samples exceed 3 x cutoff_ns (INFINITY: never); done may return a lower cut-off
// for the rest. Returns false with a diagnostic only if no worker can be kept alive.
typedef double RunnerDone(void *user, int job, Trial *trial);
bool runner_run(Runner *runner, const Job *job, int n, double cutoff_ns, RunnerDone *done,
                void *user, Diags *diags);
// As runner_run for jobs that are made as they are wanted, numbered from 0; a job must stay
// as it is until done is called with its number. NULL: there is none now; it is asked for
// again when a trial is done, and it ends when there is none and nothing is under way;
// job_later: none was found for long enough, so workers get what there is and it is asked
// for again. So each device has something to do, and a GPU's compilers too, whatever is
// being timed. Calls of next and done come one at a time, with peers from any thread. When
// its stop is due, what is under way is ended, with compilers, and done is not called for
// it: true.
extern const Job job_later;
typedef const Job *RunnerNext(void *user, int number);
bool runner_stream(Runner *runner, RunnerNext *next, double cutoff_ns, RunnerDone *done,
                   void *user, Diags *diags);
// Has compilers begin with the first jobs of the runner_stream that follows, which goes on
// with the same next and user: who makes a reference meanwhile loses no time. The buffers
// may come later. Any other call that runs jobs drops them. For a runner without peers.
bool runner_begin(Runner *runner, RunnerNext *next, void *user, Diags *diags);
bool runner_begins(const Runner *runner); // whether its device has compilers for that
// As runner_run for one job, with more samples, not compared against a cut-off; the outputs
// (each RunnerBuffer without init, or inout) are copied to out[i] where that is not NULL.
// If the runner's stop is due it is a failure from outside, with a log.
bool runner_run_one(Runner *runner, const Job *job, int samples, Trial *trial, void **out,
                    Diags *diags);
// The same for who wants only the outputs: the job runs as it is checked, and the time is
// that of one run.
bool runner_compute(Runner *runner, const Job *job, Trial *trial, void **out, Diags *diags);

// The devices of all kinds, asked for in a short-lived worker: an array in arena. When stop
// is due (NULL: never) it ends with what was found until then.
int devices_list(Arena *arena, const char *worker, const Stop *stop, DeviceInfo **info,
                 Diags *diags);
bool device_check(const char *id, Diags *diags); // whether it is such a name
// The one of a name, "opencl:0". False with a diagnostic: no such name, no such device,
// stopped.
bool devices_find(Arena *arena, const char *worker, const Stop *stop, const char *id,
                  DeviceInfo *info, Diags *diags);

// The body of a worker process: argv[1] is WORKER_COMMAND. Returns the exit status.
#define WORKER_COMMAND "--worker"
int worker_main(int argc, char **argv);

// Packs doubles into a device's layout for a scalar type, and back.
size_t scalar_device_bytes(Scalar scalar);
// What small expected values are compared against: a part of the median magnitude of the
// finite ones that are not zero, so that where large terms cancel their rounding is
// allowed.
double check_scale(Scalar scalar, const void *expect, int64_t n);
void scalar_pack(Scalar scalar, const double *from, int64_t n, void *to);
void scalar_unpack(Scalar scalar, const void *from, int64_t n, double *to);

#endif
