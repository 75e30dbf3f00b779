/* SPDX-License-Identifier: Apache-2.0
 *
 * forewarp: from a data-parallel program to a verified, fast kernel.
 *
 * The public interface, for C99 and C++. All objects are opaque; every pointer returned is
 * owned by the object it came from unless its comment says otherwise. Functions that can
 * fail take `message`, where they leave a text (with place and caret where there is one)
 * that the caller frees with fw_free_text; message may be NULL.
 *
 *   fw_problem *p = fw_problem_load("jacobi2d.fw", "N=4096,M=4096", &message);
 *   fw_plan *plan = fw_plan_make(p, NULL, &message);
 *   puts(fw_plan_source(plan));
 *   fw_plan_free(plan);
 *   fw_problem_free(p);
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

/* "0.1.0" */
FW_API const char *fw_version(void);

/* Frees a message; accepts NULL. */
FW_API void fw_free_text(char *text);

/* Problems ------------------------------------------------------------------------- */

/* A program with its sizes bound. */
typedef struct fw_problem fw_problem;

/* Reads a .fw file or a problem file (.json, a kernel of the user's), or parses a text
 * (name is shown in messages), and binds its sizes. sizes   "N=4096,M=4096"; "" or NULL for
 * a program without sizes error   NULL: a syntax or type error, an unbound or wrong size,
 * an unreadable file owner   the caller: fw_problem_free */
FW_API fw_problem *fw_problem_load(const char *path, const char *sizes, char **message);
FW_API fw_problem *fw_problem_parse(const char *name, const char *text, const char *sizes,
                                    char **message);
FW_API void fw_problem_free(fw_problem *problem); /* accepts NULL */

/* Bytes any kernel must move: each input read once, each output written once.
 *   unit    bytes */
FW_API double fw_problem_bytes(const fw_problem *problem);

/* Plans ------------------------------------------------------------------------------ */

/* How to search. Zero, NULL or "" in a field means the default in brackets. */
typedef struct {
    const char *device;   /* "opencl:0", "cuda:0", "host" ["opencl:0"] */
    const char *strategy; /* a name of `forewarp help strategies` ["auto"] */
    double budget_s;      /* seconds of search [30, unless budget_trials is set] */
    long budget_trials;   /* trials, those taken from the store included [no bound] */
    uint64_t seed;        /* of inputs and search [1] */
    const char *store;    /* database of trials [the user's, as the program's] */
    const char *out;      /* folder the kernel is written to ["forewarp-out"] */
    const char *worker;   /* path of the forewarp program, which runs the kernels in a
                             process of its own ["forewarp" on PATH] */
} fw_tune_options;

/* The best verified candidate of a search. */
typedef struct fw_plan fw_plan;

/* Searches: builds, checks against the reference, and times candidates on the device.
 *   error   NULL: no device, no candidate right and in time, or the store failed
 *   owner   the caller: fw_plan_free; independent of the problem */
FW_API fw_plan *fw_plan_make(const fw_problem *problem, const fw_tune_options *options,
                             char **message);
FW_API void fw_plan_free(fw_plan *plan); /* accepts NULL */

FW_API const char *fw_plan_source(const fw_plan *plan); /* the kernels' text */
FW_API const char *fw_plan_target(const fw_plan *plan); /* "opencl", "cuda", "c" */
FW_API const char *fw_plan_point(const fw_plan *plan);  /* "lx=64 ly=4 ..." */
FW_API double fw_plan_time(const fw_plan *plan);        /* unit: seconds */
FW_API double fw_plan_baseline(const fw_plan *plan); /* the plain kernel; unit: seconds */

#ifdef __cplusplus
}
#endif

#endif
