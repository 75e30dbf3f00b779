// SPDX-License-Identifier: Apache-2.0
//
// measure, inside: what the files of this folder share and nobody else includes.
//
//   both sides      protocol.c (messages), pack.c (layouts)
//   the controller  runner.c (the interface), round.c (the pipeline), processes.c (worker
//                   processes), usage.c (their time), folder.c (files), list.c (the
//                   devices there are)
//   the worker      worker.c (commands), bench.c (one job), buffers.c (what it may write
//                   and must hold), check.c, gpucheck.c, rule.def, sample.c, sandbox.c
//                   (what it gives up first)
//
// Commands to a worker; it is sent one at a time, and answers until it says "end":
//   {"do":"list","kind":K[,"index":I]}         {"device":INFO}... {"end":true}
//   {"do":"open","device":ID,"buffers":[..]}   {"end":true,"info":INFO} or "log":TEXT
//   {"do":"open","device":ID,"compiler":true}  likewise; both with "sandbox":{..} where
//                                              the worker is to go into one first
//   {"do":"prepare","jobs":[JOB..]}            {"at":"build"|"run","job":k},
//                                              {"job":k,"trial":TRIAL}.. {"end":true}
//   {"do":"time","job":k,"samples":n,..}       {"job":k,"trial":TRIAL} {"end":true}
//   {"do":"drop"}                              {"end":true}: nothing is prepared any more
// A worker that is told to open its device again only changes its buffers.
// A prepared job is kept by the worker until it is timed. A compiler only builds the jobs
// that it is to prepare, for another worker to find. A worker whose device may be
// broken says {"quit":true} in place of "end", and ends.

#ifndef FW_MEASURE_PARTS_H
#define FW_MEASURE_PARTS_H

#include "measure/json.h"
#include "measure/measure.h"

#include <sys/types.h>

// protocol.c --------------------------------------------------------------------------

enum { JOINT_BUILD = -1 }; // in place of a job's number: several are built as one program

// Sends a message with its length before it; takes the message. False: the other side is
// gone.
bool message_send(int fd, json_t *message);
json_t *message_receive(int fd); // waits; NULL when the other side is gone
// Takes the first whole message out of what was received; NULL if none is whole yet.
json_t *message_take(Buf *in, bool *broken);

json_t *info_to_json(const DeviceInfo *info);
void info_from_json(const json_t *json, DeviceInfo *info);
json_t *image_to_json(const ImageShape *image);
ImageShape image_from_json(const json_t *json); // dims 0 where there is none
json_t *job_to_json(const Job *job, int number);
Job *job_from_json(Arena *arena, const json_t *json);
json_t *trial_to_json(const Trial *trial);
void trial_from_json(const json_t *json, Trial *trial);

// check.c -----------------------------------------------------------------------------

typedef struct {
    double max_error;    // relative; INFINITY where one of the two is not a number; of
                         // what is decided
    int64_t first_wrong; // -1: none
    int64_t wrong;       // how many
    double got, want;    // there
} Check;

// What an element may differ by: its bound, or, where bound is NULL, tolerance * max(|e|,
// scale); of whole numbers, nothing.
typedef struct {
    const float *bound;
    double tolerance, scale;
} Allowed;

Check check_compare(Scalar scalar, const void *got, const void *expect, int64_t n,
                    Allowed allowed);

// buffers.c ---------------------------------------------------------------------------

// What an output holds before a run, and the zones around all buffers: in the first run of
// a job, and in those that are timed. An element that is right after a run on each was
// written.
typedef enum { POISON_FIRST, POISON_AGAIN } Poison;

enum { GUARD = 16 * PART_ALIGN }; // bytes of a zone: a row of 16,384 floats

// A buffer of the problem, or a scratch buffer of a job.
typedef struct {
    char *name;
    Scalar scalar;
    int64_t count;
    size_t bytes, width;       // width: of an element as the kernel takes it
    const void *init, *expect; // mapped files; NULL: none
    const float *bound;        // likewise
    int64_t spared;            // so many elements may be wrong
    bool inout, is_image;
    double scale;
    Mem *whole;      // a zone, the buffer, a zone; NULL: an image, which is only read
    Mem *mem;        // what kernels are given
    Mem *expect_mem; // copies on the device, where it compares there
    Mem *bound_mem;
    uint32_t sum; // of what an input holds, where the device compares
} DeviceBuffer;

// No job may change it.
bool buffer_is_input(const DeviceBuffer *buffer);
// The byte that is a poison in this buffer.
unsigned char buffer_poison(const DeviceBuffer *buffer, Poison poison);

typedef struct GpuCheck GpuCheck;

typedef struct {
    const DeviceKind *kind;
    Device *device;
    GpuCheck *gpucheck; // NULL: all is compared here
    double tolerance;
    int n;
    DeviceBuffer *at;
} DeviceBuffers;

// The buffers of a message to the worker, in place of those there are; false with a log.
bool buffers_fill(DeviceBuffers *buffers, const json_t *message, Buf *log);
void buffers_clear(DeviceBuffers *buffers);
bool buffer_scratch(const DeviceBuffers *buffers, int number, size_t bytes,
                    DeviceBuffer *scratch, Buf *log);
void buffer_free(const DeviceBuffers *buffers, DeviceBuffer *buffer); // accepts what failed

// What was found of a run.
typedef struct {
    bool right;
    double max_error;
    Buf why; // what is wrong: the first element of each kind in each buffer
} Verdict;

// Poison in the zones around buffers that hold something.
DeviceStatus buffers_guard(const DeviceBuffers *buffers, DeviceBuffer *const *used, int n,
                           Poison poison, Buf *log);
// As they are before a run: poison in what is only written and in the zones around it, the
// original contents in what is read and written.
DeviceStatus buffers_reset(const DeviceBuffers *buffers, DeviceBuffer *const *used, int n,
                           Poison poison, Buf *log);
// True of a run that began with this poison: zones and inputs are as they were, and what is
// expected is there. Puts back what was spoilt.
DeviceStatus buffers_judge(const DeviceBuffers *buffers, DeviceBuffer *const *used, int n,
                           Poison poison, Verdict *verdict, Buf *log);

// gpucheck.c --------------------------------------------------------------------------

GpuCheck *gpucheck_open(const DeviceKind *kind, Device *device); // NULL: check.c must do
void gpucheck_close(GpuCheck *check);                            // accepts NULL
// Whether it can compare the buffer with a copy of what is expected; accepts NULL.
bool gpucheck_takes(const GpuCheck *check, const DeviceBuffer *buffer);
// Sets right[k] if all that buffers_judge asks of buffer k is proved; raises *max_error.
// False: nothing is known.
bool gpucheck_judge(GpuCheck *check, DeviceBuffer *const *used, int n, Poison poison,
                    double tolerance, bool *right, double *max_error);
// A number that changes with any element of the buffer; false: it is not known.
bool gpucheck_sum(GpuCheck *check, DeviceBuffer *buffer, uint32_t *sum);

// judge.c -----------------------------------------------------------------------------

typedef struct Judge Judge;

// As the message says: *judge is NULL where there is none. False with a log: it does not
// compile.
bool judge_open(const json_t *message, Judge **judge, Buf *log);
void judge_close(Judge *judge); // accepts NULL
// What it says of the buffers: 0: they are right.
DeviceStatus judge_ask(Judge *judge, const DeviceBuffers *buffers, int *answer, Buf *log);

// sample.c ----------------------------------------------------------------------------

typedef struct {
    DeviceStatus (*run)(void *user, double *time_ns, double *cpu_ns);
    void *user;
    int wanted;          // valid samples
    double cores_in_use; // that a run keeps busy; 0: every sample is valid
    double cutoff_ns;    // INFINITY: never cut
    double limit_s;      // no new sample after this
} Sampler;

// Fills the trial's times and samples.
DeviceStatus sample_take(const Sampler *sampler, Trial *trial);

// energy.c ----------------------------------------------------------------------------

typedef struct {
    bool (*work)(void *user, int runs);
    bool (*read)(void *user, double *joules); // since some time of the device's own
    void *user;
    int batch; // runs between two looks at the counter
} Meter;

// What one run takes: joules, and seconds with the pauses between runs. False: the device
// does not count energy.
bool energy_take(const Meter *meter, double *joules, double *seconds);

// bench.c: one job on the worker's side -----------------------------------------------

typedef struct Executor Executor;
typedef struct PreparedJob PreparedJob; // a prepared job

// Opens the device and fills the buffers as the message says; NULL with a log.
Executor *executor_open(const json_t *message, Buf *log);
// Other buffers, as the message says, in place of those there are; false with a log.
bool executor_fill(Executor *executor, const json_t *message, Buf *log);
void executor_close(Executor *executor);
const DeviceInfo *executor_info(const Executor *executor);
bool executor_compiles(const Executor *executor); // all that it does
bool executor_sick(
    const Executor *executor); // a run failed: the device may not work any more
// Called before the parts of a job that may hang or crash.
typedef void ExecutorTell(void *user, const char *stage, int job);
// How many of n jobs, from the first on, may be one program: preludes and options agree.
int executor_joint(PreparedJob *const *prepared, int n);
// Builds n such jobs. Those that cannot be built have a trial that says so, the others'
// trials are ok.
void executor_build(Executor *executor, PreparedJob **prepared, int n, ExecutorTell *tell,
                    void *user);
PreparedJob *prepared_new(const json_t *job, int number);
void prepared_free(Executor *executor,
                   PreparedJob *prepared); // also the program, once nobody uses it
int prepared_number(const PreparedJob *prepared);
bool prepared_ok(const PreparedJob *prepared);
json_t *prepared_report(const PreparedJob *prepared); // {"job":k,"trial":TRIAL}
// Runs the job once on poisoned outputs and judges what it wrote.
void executor_check(Executor *executor, PreparedJob *prepared, ExecutorTell *tell,
                    void *user);
// Times the job, each run on outputs with the other poison, and judges the last.
// options: samples, cutoff_ns, limit_s, "out": files to write the outputs to, "alone":
// nothing else ran on the device since the job was checked, and "energy": it is wanted.
void executor_time(Executor *executor, PreparedJob *prepared, const json_t *options);

// folder.c: files of the controller ---------------------------------------------------

// The configured folder holds, for every controller at work, a data folder of its own,
// and compile caches, each locked by the worker that uses it. Those left by a killed
// controller are removed by the next that opens the folder.
typedef struct {
    char *path;      // absolute
    bool was_open;   // others could write to it
    TempFolder data; // the controller's own folder in it
    char *own;       // in that, what workers write: outputs, temporary files
} Folder;
#define TURNS "turns" // in the folder: files by which controllers take turns

bool folder_open(Folder *folder, const char *path, Diags *diags);
void folder_close(Folder *folder);
bool folder_write(const Folder *folder, const char *name, const void *bytes, size_t len,
                  Diags *diags);

// Whether there is no room for what a compiler writes.
bool folder_is_full(const Folder *folder);

// The file by which controllers with this folder take turns on a device: the place on PCI,
// or, where that is not known, kind and index. It is made if missing: workers may not.
// Owner: the caller.
char *folder_turn_path(const Folder *folder, const char *device);
// Waits until nobody else has the turn. The file returned is closed to end one's own; -1:
// none could be made, and there are no turns.
int turn_take(const char *path);

typedef struct {
    char *path;
    int lock; // -1: not open
    int jobs; // compiled into it so far
} Cache;

// One that others use after this controller, or, where as many as there may be are in use,
// one of its own, the number-th.
bool cache_open(Cache *cache, const Folder *folder, int number, Diags *diags);
// One for this controller alone: what is compiled from jobs that are not
// trusted is loaded by nobody else.
void cache_open_own(Cache *cache, const Folder *folder, int number);
void cache_close(Cache *cache);

// usage.c: the time that a worker has worked -------------------------------------------

typedef struct {
    pid_t id;
    double s;
} ThreadTime;

typedef struct {
    pid_t pid;
    ThreadTime *thread; // what each had taken when the count began
    int nthread;
    double ended_s; // likewise, of the processes that it started
} Usage;

void usage_begin(Usage *usage, pid_t pid); // from now on
void usage_release(Usage *usage);          // accepts all 0
double usage_s(const Usage *usage);
// sandbox.c ---------------------------------------------------------------------------

json_t *sandbox_to_json(const Sandbox *sandbox, const Folder *folder);
// The worker's side: fd stays open. False with a log.
bool sandbox_enter(const json_t *wanted, int fd, Buf *log);

// processes.c: worker processes -----------------------------------------------------------

enum {
    WORKER_STACK_BYTES = 256 << 20
}; // of PoCL's threads: they hold a group's private memory
typedef enum { WORKER_OFF, WORKER_BUSY, WORKER_IDLE } WorkerState;
typedef enum {
    STAGE_NONE,
    STAGE_QUIT, // it said that it will end
    STAGE_OPEN,
    STAGE_LIST,
    STAGE_TURN, // waits until the device is free
    STAGE_BUILD,
    STAGE_RUN,
    STAGE_TIME,
} WorkerStage;
extern const char *const stage_name[];

// A limit is one of the time that the worker works, whatever else the machine does; one
// that does not work is given up after many times as long. Where it only waits, for a
// driver or a device, the limit is one of the clock.
typedef struct {
    WorkerState state;
    pid_t pid;
    int fd, log; // the socket; the file that holds what it prints
    Buf in;
    WorkerStage stage;
    int job;                 // in that stage; JOINT_BUILD: all it was sent
    int sent;                // jobs since it was started
    bool waits;              // while a job runs: the device is not this processor
    double begun_s, limit_s; // of that stage, by clock_s
    Usage usage;             // since then
    double deadline;         // when to see whether it is late, by clock_s
    bool late;               // it passed its limit
} Worker;

typedef struct {
    const char *program; // calls worker_main; NULL: this program
    const char *cache, *temp;
    const char *log; // file for what it prints
    bool bare;       // without the rest of this environment, and without a home
} WorkerPlace;

// Starts a worker, which has nothing to do yet.
bool worker_start(Worker *worker, const WorkerPlace *place, Diags *diags);
// Gives an idle worker something to do.
void worker_send(Worker *worker, json_t *message, WorkerStage stage, int job,
                 double limit_s);
void worker_enter(Worker *worker, WorkerStage stage, int job, double limit_s);
// Waits for a message of any of the workers, or a deadline. Returns a worker with
// *message set; with *message NULL: it is dead, or late. NULL: all are off, or the stop
// is due, or nothing has come and it is not to wait.
Worker *worker_wait(Worker *worker, int n, const Stop *stop, bool waits, json_t **message);
// Ends and reaps it; says how it died, and the end of what it printed. True if somebody
// else killed it: by a signal that no kernel and no library raises by itself.
bool worker_end(Worker *worker, Buf *why);

#endif
