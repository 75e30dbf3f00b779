/* SPDX-License-Identifier: Apache-2.0
 *
 * forewarp: from a data-parallel program to a verified, fast kernel.
 *
 * The public interface, for C99 and C++. It needs no header of OpenCL or CUDA: queues and
 * buffers are passed as void pointers.
 *
 *   fw_problem *problem = fw_problem_load("jacobi2d.fw", "N=4096,M=4096", &message);
 *   fw_device *device = fw_device_adopt("opencl", queue, &message);
 *   fw_plan *plan = fw_plan_make(problem, device, NULL, &message);
 *   fw_executable *kernel = fw_load(plan, queue, &message);
 *   void *buffer[] = {a, out};                       // two cl_mem
 *   fw_execute(kernel, queue, buffer, 2, &message);  // as often as wanted
 *
 * The words are those of FFTW: a *problem* is what to compute, with its sizes; a *plan* is
 * a way to compute it on a device, found with a chosen *rigor*; what was found is kept as
 * *wisdom* and is used again.
 *
 * Rules that hold throughout:
 *
 *   owner    An object is freed by the function named after it; that accepts NULL.
 *            Texts and arrays returned as const belong to the object they came from, and
 *            live as long as it unless said otherwise. Arguments are not kept, except
 *            where it is said.
 *   error    A function that can fail returns NULL, 0 or -1 as it says, and leaves a text
 *            in *message (with place and caret where there is one), which the caller
 *            frees with fw_free_text; on success *message is NULL, or a warning. message
 *            may be NULL. Running out of memory ends the process, and so does a fault of
 *            forewarp's own.
 *   NULL     NULL in place of an object, a text or an address that a function needs is an
 *            error like any other: a function that can fail does so, and its message says
 *            which argument it was; a function that only asks returns NULL or 0
 *            (fw_problem_shape: -1; fw_plan_origin: FW_PLAIN). Texts and options may be
 *            NULL where the comment says so. A number out of range is treated in the same
 *            way.
 *   freeing  An object is freed once, as with free(). Passing it to any function after
 *            that, or freeing it again, is a fault of the caller that forewarp cannot
 *            detect.
 *   unit     Times are seconds, sizes are bytes.
 *   threads  There is no hidden state: different threads may use different objects at the
 *            same time, also on one device and with one store. One object is for one thread
 *            at a time, and what uses a problem counts as its use. No thread may change the
 *            environment (setenv) meanwhile: it is read. Nothing of the process is changed:
 *            neither its working folder nor its signals, its mask of modes, its locale or
 *            the memory functions of its libraries. Drivers have rules of their own: PoCL
 *            3.1 wants its first call (clGetDeviceIDs) to be over before a second thread
 *            calls it.
 *   kernels  Candidates are never run in the caller's process: worker processes build, run,
 *            check and time them (fw_worker). Only fw_execute runs a kernel here.
 *   workers  They are children of the thread that first needs them, and end with it or with
 *            the object they serve. SIGCHLD must not be ignored meanwhile, nor may others
 *            wait for any child (wait, waitpid(-1, ...)).
 *   files    Those of the store, a folder of caches under $XDG_CACHE_HOME or ~/.cache, and
 *            while the host compiles, a folder under $TMPDIR; the folders are for this user
 *            alone.
 */
#ifndef FOREWARP_H
#define FOREWARP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FW_API __attribute__((visibility("default")))
#else
#define FW_API
#endif

/* Of the library, "0.2.0". */
FW_API const char *fw_version(void);

/* Frees a text that a function gave away; accepts NULL. */
FW_API void fw_free_text(char *text);

/* Makes a program its own worker. Call it first in main:
 *
 *     int status;
 *     if (fw_worker(argc, argv, &status))
 *         return status;
 *
 * and give "/proc/self/exe" as worker. Programs that do not need the `forewarp` program,
 * which is the worker otherwise.
 *   argc, argv  as main got them
 *   status      set to the exit status if the process was a worker
 *   returns     1: this process was started as a worker, and is done; 0: it was not */
FW_API int fw_worker(int argc, char **argv, int *status);

/* Problems ------------------------------------------------------------------------- */

/* A program, a script of calls, or a template (a kernel of the user's with a problem file),
 * with its sizes. */
typedef struct fw_problem fw_problem;

/* Reads a program (.fw), a script (.fws) or a problem file (.json), or parses a program
 * from a text (name is shown in messages), and binds its sizes.
 *   sizes   "N=4096,M=4096"; "" or NULL for a program without sizes, or for the sizes
 *           that a problem file says; "N=1024:16384" for a range (fw_size)
 *   error   NULL: a syntax or type error, an unbound (also a generic) or wrong size, an
 *           unreadable file
 *   owner   the caller: fw_problem_free
 *   source  doc/language.md, doc/fusion.md and doc/problems.md have the languages */
FW_API fw_problem *fw_problem_load(const char *path, const char *sizes, char **message);
FW_API fw_problem *fw_problem_parse(const char *name, const char *text, const char *sizes,
                                    char **message);
FW_API void fw_problem_free(fw_problem *problem);

/* Says how exact float is in the kernels of a program or a script, before a plan or a
 * search is made: "standard", "exact", "strict" (the same bits from every kernel) or
 * "fast". Plans are kept apart by it.
 *   error   0: another word, or a problem that is a template, whose options say this
 *   source  doc/language.md (Exactness of float), doc/exactness.md (The same bits) */
FW_API int fw_problem_math(fw_problem *problem, const char *how, char **message);

/* "jacobi2d N=4096 M=4096": what messages and wisdom call it. */
FW_API const char *fw_problem_label(const fw_problem *problem);

/* Bytes that any kernel must move: each input read once, each output written once. Divided
 * by fw_plan_time it is the effective bandwidth. */
FW_API double fw_problem_bytes(const fw_problem *problem);

/* An array that fw_execute is given. Arrays are dense, the last index fastest. */
typedef struct {
    const char *name; /* as in the program; an array of tuples is one array a component,
                         "a_0", "a_1"; the result is "out", or "out_0", ... */
    const char *type; /* of an element in OpenCL's words: "float", "half", "int", "uchar"
                         (a bool), "float4", ... */
    int64_t count;    /* of elements */
    int64_t bytes;    /* of the whole */
    int in, out;      /* 1: read, written by the kernels */
    int image;        /* 1: an OpenCL image; count is in its pixels' channels */
    int value; /* 1: a scalar of a program, which kernels take by value: in place of a
                  buffer fw_execute is given the address of the value, in the memory of
                  this process, and reads it during the call */
} fw_argument;

/* How many arrays the problem takes: its inputs in their order, then its outputs; of a
 * template all that is no scalar, in the
 * order of the problem file. */
FW_API int fw_problem_arguments(const fw_problem *problem);
/* The i-th of them. error   0: there is none, and *argument is left alone */
FW_API int fw_problem_argument(const fw_problem *problem, int i, fw_argument *argument);

/* The extents of the i-th of them in scalars, outermost first: the width of vectors is the
 * last, and a scalar has none.
 *   extent   set to as many as there are and there is room for; NULL if room is 0
 *   returns  how many there are; -1: there is no such array */
FW_API int fw_problem_shape(const fw_problem *problem, int i, int64_t *extent, int room);

/* A size of which the kernels are not made for one value: they take it as an argument. One
 * that the program declares generic, or that is given with a range: "N=1024:16384", all of
 * them, "N=1024:16384:64", multiples of 64, "N=4096@1024:16384". The arrays above have the
 * value, which of a range alone is one in the middle. */
typedef struct {
    const char *name;
    int64_t low, high, multiple; /* it is from low to high, and a multiple of that */
    int64_t value;
} fw_size;

FW_API int fw_problem_sizes(const fw_problem *problem); /* how many are generic */
/* The i-th of them. error   0: there is none, and *size is left alone */
FW_API int fw_problem_size(const fw_problem *problem, int i, fw_size *size);
/* An extent of an array as a formula of the sizes: "N", "2*N + 1", "64".
 *   error   NULL: there is no such array or extent, or the problem is no program */
FW_API const char *fw_problem_extent(const fw_problem *problem, int i, int extent);

/* Devices ---------------------------------------------------------------------------- */

/* What there is to run on: a description, nothing is kept open. */
typedef struct fw_device fw_device;

/* By name: "opencl:0", "cuda:0", "host". A worker process looks.
 *   worker  path of the worker program; NULL: `forewarp` on PATH
 *   error   NULL: there is no such device, or no worker
 *   owner   the caller: fw_device_free */
FW_API fw_device *fw_device_open(const char *id, const char *worker, char **message);
/* The device behind a queue of the caller's.
 *   kind    "opencl": queue is a cl_command_queue; "cuda": the device of the current
 *           context; "host"; queue is not looked at in the latter two
 *   error   NULL: no such kind, no current context, the driver or NVRTC is missing
 *   owner   the caller: fw_device_free */
FW_API fw_device *fw_device_adopt(const char *kind, void *queue, char **message);
FW_API void fw_device_free(fw_device *device);
FW_API const char *fw_device_id(const fw_device *device);   /* "opencl:0" */
FW_API const char *fw_device_name(const fw_device *device); /* "NVIDIA H200" */
/* 16 hexadecimal digits: devices on which times are comparable have the same. */
FW_API const char *fw_device_fingerprint(const fw_device *device);

/* Plans ------------------------------------------------------------------------------ */

/* How much to try. A plan that an at least as rigorous search found earlier, on the same
 * kind of device by the same version, is wisdom, and is returned at once; one that was
 * never checked for this problem on this device (imported, of the nearest size, of another
 * device) is built, run and compared in a worker first, whatever the rigor, and passed
 * over, with a warning, if it is not right or there is no worker. The store keeps the
 * outcome. */
typedef enum {
    FW_MEASURE = 0, /* search until the budget, by default 30 s */
    FW_ESTIMATE,    /* nothing is tried: wisdom, the plan of the nearest size, or what a
                       model of kernels predicts to be fastest, in this order */
    FW_PATIENT,     /* search until the budget, by default 5 min */
    FW_EXHAUSTIVE,  /* try every point, until the budget if there is one */
    FW_WISDOM_ONLY /* nothing is tried: wisdom or the plan of the nearest size, else NULL */
} fw_rigor;

/* Where a plan comes from, and so how far to trust it. */
typedef enum {
    FW_MEASURED,  /* searched for now: its outputs were right, its time is measured */
    FW_WISDOM,    /* the same, of an earlier search, or of imported wisdom */
    FW_NEAREST,   /* wisdom for other sizes: its outputs are right at these; the time is not
                     measured, but in proportion */
    FW_PREDICTED, /* chosen by a model; never run */
    FW_PLAIN      /* the plain kernel: nothing is known, or that it is right at small sizes,
                     for want of time; never run at these */
} fw_origin;

/* A candidate that was tried. Its texts live for the call that is told of it, or until the
 * next fw_search_measure. */
typedef struct {
    const char *point;  /* "lx=64 ly=4 ..." */
    const char *status; /* "ok", "build-failed", "out-of-resources", "crashed", "timed-out",
                           "wrong-result", "failed" */
    double time;        /* seconds; 0 unless ok */
    double max_error;   /* largest relative error of an output */
    const char *log;    /* why it is not ok; NULL if nothing was said */
} fw_trial;

/* What a candidate computed. input[i] and output[i] are the problem's i-th array before and
 * after the run: NULL where it is not read, not written. They live for the call. */
typedef struct {
    const char *point;
    int n;
    const void *const *input;
    const void *const *output;
} fw_result;

/* How to search. Zero or NULL in a field means the default in brackets; so {0} is all of
 * them. Fields are only ever added at the end. */
typedef struct {
    fw_rigor rigor;  /* [FW_MEASURE] */
    double budget_s; /* seconds of all that the call does, but for a minute of grace until a
                        first kernel is right [by rigor] */
    long budget_trials;   /* trials, those taken from the store included [no bound] */
    const char *strategy; /* a name of `forewarp help strategies` ["auto"] */
    const char *where;    /* a constraint on the points, "lx >= 32" [none] */
    uint64_t seed;        /* of inputs and search [1] */
    const char *store;  /* database of trials [$FOREWARP_STORE, or forewarp/trials.db under
                           $XDG_DATA_HOME or ~/.local/share] */
    const char *worker; /* path of the worker program [`forewarp` on PATH] */
    const char *models; /* folder of the models that FW_ESTIMATE asks, gpu.json.gz and
                           cpu.json.gz [those installed with `forewarp`, as the worker or on
                           PATH] */
    int any_device;     /* 1: where nothing else is known, wisdom of another device will
                           do; fw_plan_foreign then names it [0: never] */
    /* Told of each trial as it ends, in the calling thread; other than 0 ends the search
     * there, with the best so far. [none] */
    int (*on_trial)(void *user, const fw_trial *trial);
    /* The caller's own check, besides forewarp's: shown what the best candidates compute,
     * fastest first, also those that wisdom holds; 0 rejects one, and the next is shown. It
     * is not asked where nothing is run: FW_ESTIMATE, FW_WISDOM_ONLY. [none] */
    int (*verify)(void *user, const fw_result *result);
    void *user; /* passed to the two */
    /* What ends the search before its budget. */
    double enough;     /* the best has this share of the speed that the device's measured
                          limits allow: 0.95 [never] */
    long quiet_trials; /* so many trials brought no gain of a hundredth [never] */
    double quiet_s;    /* so many seconds brought none [never] */
} fw_plan_options;

/* Kernels, and how they are launched, for one problem on one device. */
typedef struct fw_plan fw_plan;

/* Makes a plan. options: NULL for all defaults.
 *   error   NULL: no candidate was right and in time, none was accepted by verify, the
 *           store failed, no worker, a wrong option; FW_WISDOM_ONLY: there is no wisdom
 *   owner   the caller: fw_plan_free; it needs neither problem nor device any more
 *   source  how candidates are derived, checked and timed: ARCHITECTURE.md */
FW_API fw_plan *fw_plan_make(const fw_problem *problem, const fw_device *device,
                             const fw_plan_options *options, char **message);
FW_API void fw_plan_free(fw_plan *plan);

FW_API fw_origin fw_plan_origin(const fw_plan *plan);
/* The problem the plan was found for, if that is not the one it was asked for; else
 * NULL. */
FW_API const char *fw_plan_found_for(const fw_plan *plan);
/* The name of the device it was found on, if that is another one; else NULL. */
FW_API const char *fw_plan_foreign(const fw_plan *plan);
FW_API const char *fw_plan_source(const fw_plan *plan); /* the kernels' text */
FW_API const char *fw_plan_target(const fw_plan *plan); /* "opencl", "cuda", "c" */
FW_API const char *fw_plan_point(const fw_plan *plan);  /* "lx=64 ly=4 ..." */
/* Seconds on the device; FW_NEAREST: in proportion to the bytes; 0: not known. */
FW_API double fw_plan_time(const fw_plan *plan);
/* Of the plain kernel in the same search, in seconds; 0: not known. */
FW_API double fw_plan_baseline(const fw_plan *plan);

/* The plan as a C program that runs it without forewarp, for OpenCL 1.2, CUDA's driver
 * interface, or plain C: what `forewarp emit --host` writes.
 *   stem    of the file names: the body includes "stem.h". Functions and types begin with
 *           it, as C allows, so that programs of several stems can be linked together
 *   error   0, with a message: the kernel reads images; an #include cannot say stem. 1:
 * *header and *body are texts owner   the caller: fw_free_text */
FW_API int fw_plan_host(const fw_plan *plan, const char *stem, char **header, char **body,
                        char **message);

/* Running ---------------------------------------------------------------------------- */

/* A queue that forewarp opens in this process, for programs that have none. */
typedef struct fw_queue fw_queue;

/* OpenCL: a context and an ordered queue; CUDA: the device's primary context, which the
 * run-time interface and frameworks use too, becomes current in the calling thread; host:
 * nothing is opened.
 *   error   NULL: the device cannot be opened
 *   owner   the caller: fw_queue_free, after the executables that were loaded for it */
FW_API fw_queue *fw_queue_open(const fw_device *device, char **message);
FW_API void fw_queue_free(fw_queue *queue);
/* What fw_load and fw_execute take as queue: a cl_command_queue; else NULL. */
FW_API void *fw_queue_handle(const fw_queue *queue);

/* A plan compiled for a queue of the caller's. */
typedef struct fw_executable fw_executable;

/* Compiles a plan's kernels and allocates the buffers between them.
 *   queue   OpenCL: a cl_command_queue, whose context and device are used; CUDA: not looked
 *           at, the current context is used; C: not looked at
 *   error   NULL: the device is not the plan's, the text does not build, no memory
 *   owner   the caller: fw_executable_free, once the queue has done what was put there.
 *           The plan must live as long. */
FW_API fw_executable *fw_load(const fw_plan *plan, void *queue, char **message);
FW_API void fw_executable_free(fw_executable *executable);

/* Sets the generic sizes of all executions that follow; before, they are those of the
 * problem. Of a plan for ranges it chooses the kernels, too. Where the sizes stay, it costs
 * next to nothing; buffers between kernels grow.
 *   size    n values in the order of fw_problem_size
 *   error   0: another number of sizes, one that is not in its range or for which the
 *           program is not right, no memory. 1: done */
FW_API int fw_resize(fw_executable *executable, const int64_t *size, int n, char **message);

/* Puts the kernels into a queue, in order, and returns without waiting.
 *   queue   OpenCL: a cl_command_queue of the same context and device, ordered or not;
 *           CUDA: a CUstream or cudaStream_t, NULL for the default one; C: not looked at,
 *           and the work is done on return
 *   buffer  n handles in the order of fw_problem_argument: cl_mem; device pointers
 *           (CUdeviceptr as void *), multiples of 32, because kernels read vectors; host
 *           pointers. Of a scalar the address of its value: &alpha. Outputs must not
 *           overlap anything.
 *   error   0: a wrong number of buffers, one known to be too small or at an address that
 *           is no such multiple, an output that does overlap (nothing was put there); or a
 *           call of the driver failed. 1: done
 *
 * The buffers between kernels are the executable's, so one execution must have finished, or
 * be in the same ordered queue, before the next begins. */
FW_API int fw_execute(fw_executable *executable, void *queue, void *const *buffer, int n,
                      char **message);

/* Runs the kernels on arrays in the memory of this process, and waits.
 *   array   n pointers in the order of fw_problem_argument. A processor works in them,
 *           where elements begin at multiples of their size; else they are copied to
 *           buffers of the device, and outputs back. Outputs must not overlap anything.
 *   error   0: a wrong number of arrays, a NULL among them, an output that does overlap, no
 *           memory, or a call of the driver failed. 1: done
 *
 * With OpenCL on the queue that the executable was loaded for, with CUDA on the default
 * stream of the current context. */
FW_API int fw_run(fw_executable *executable, void *const *array, int n, char **message);

/* A search of one's own -------------------------------------------------------------- */

/* The points of a problem on a device, a strategy that may be asked for the next one, and
 * workers that measure. Each is optional: choose points oneself and have them measured; or
 * ask for points and measure them oneself. */
typedef struct fw_search fw_search;

/* options: strategy, where, seed, store, worker, models are used; NULL for all defaults.
 *   error   NULL: as fw_plan_make
 *   owner   the caller: fw_search_free. problem must live as long. */
FW_API fw_search *fw_search_open(const fw_problem *problem, const fw_device *device,
                                 const fw_plan_options *options, char **message);
FW_API void fw_search_free(fw_search *search);

FW_API double fw_search_points(const fw_search *search); /* how many are valid */
FW_API int fw_search_parameters(const fw_search *search);
/* The name of the i-th parameter, and how many values it can have (count may be NULL).
 * NULL: there is none. */
FW_API const char *fw_search_parameter(const fw_search *search, int i, int *count);
/* The k-th value of the i-th parameter as a text, until the next call; NULL: there is
 * none. */
FW_API const char *fw_search_value(fw_search *search, int i, int k);
/* 1: "lx=64 ly=4 ..." names all parameters, each with a value it can have, and breaks no
 * constraint. */
FW_API int fw_search_valid(const fw_search *search, const char *point);
/* The plain point: what anyone would write first. Until the next call. */
FW_API const char *fw_search_plain(fw_search *search);

/* The next point of the strategy, until the next call. NULL: it has none left, or none
 * before it is told of those it gave. */
FW_API const char *fw_search_ask(fw_search *search);
/* What a point took: seconds, or 0 if it cannot be used.
 *   error   0: the point is not valid */
FW_API int fw_search_tell(fw_search *search, const char *point, double seconds);
/* Builds, checks and times a point in a worker, and stores the trial; one that is stored is
 * not run again. It is not told to the strategy. trial's texts live until the next call.
 *   error   0: the point is not valid, no worker, the store failed. 1: *trial says how it
 *           went, and that may be badly */
FW_API int fw_search_measure(fw_search *search, const char *point, fw_trial *trial,
                             char **message);
/* The plan of a point; NULL: of the fastest that was measured or told. Its origin is
 * FW_MEASURED if it was measured, else FW_PREDICTED.
 *   error   NULL: no such point, or none was measured or told
 *   owner   the caller: fw_plan_free */
FW_API fw_plan *fw_search_plan(fw_search *search, const char *point, char **message);

/* Wisdom ----------------------------------------------------------------------------- */

/* The best plan of each problem, device and version in a store, as text: a JSON object a
 * line (doc/wisdom.md). store: NULL for the default one. */

/* error   NULL: the store failed. owner   the caller: fw_free_text */
FW_API char *fw_wisdom_export(const char *store, char **message);
/* Adds what a text holds: all or nothing. A trial that the store has of the same point
 * stays. Plans of other devices and versions are kept, and not used for this one.
 *   name    of the text, in messages
 *   error   -1: a wrong text, or the store failed; else how many plans were news */
FW_API int fw_wisdom_import(const char *store, const char *name, const char *text,
                            char **message);
/* Forgets all trials of a problem on a device, in a store (NULL: the default one).
 *   error   0: the store failed. 1: done, also where there were none */
FW_API int fw_wisdom_forget(const char *store, const fw_problem *problem,
                            const fw_device *device, char **message);

#ifdef __cplusplus
}
#endif

#endif
