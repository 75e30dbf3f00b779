// SPDX-License-Identifier: Apache-2.0
//
// exchange: trials in the forms that other tuners read: T4 results and Kernel Tuner's cache
// files.
//
//   source  TuningSchema, T4 1.0.0; Kernel Tuner 1.4.0, util.py (store_cache)

#ifndef FW_STORE_EXCHANGE_H
#define FW_STORE_EXCHANGE_H

#include "measure/measure.h"
#include "search/encode.h"

// One trial; times in the units of a Trial.
typedef struct {
    Point point;
    TrialStatus status;
    double time_ns;
    const double *sample_ns;
    int nsample;
    double build_s, check_s, timing_s;
    double spent_s;   // the whole of it, of a stored trial of which no more is known
    double at_s;      // when it ended, from the start of the run
    bool stored, cut; // known before the run; stopped early
    bool held;        // by the cache file that is gone on with
    Measures measures;
    const double *metric; // as many as the Exchange names; NAN: not known
    const char *log;      // the first line of it, or ""
    const char *when;     // "2026-01-31 12:00:00.000000+00:00"
} ExchangeTrial;

typedef struct {
    const char *device, *kernel;
    const int64_t *size; // of the problem
    int nsize;
    const Space *space;
    LaunchShapes launches; // written to cache files: keys that other readers pass over
    const ExchangeTrial *trial;
    int n;
    int nmetric;
    const char *const *metric; // names
    int nobjective;
    const char *const *objective; // "max GFLOP/s"
} Exchange;

// False with a diagnostic: the file cannot be written.
bool exchange_write_t4(const char *path, const Exchange *exchange, Diags *diags);
// As Kernel Tuner writes it. body: of the file that is gone on with, which stays as it is
// before what is new; NULL: none is.
bool exchange_write_cache(const char *path, const Exchange *exchange, const char *body,
                          Diags *diags);
// A trial of a cache file; its times are those of the file, nothing in it was checked here.
typedef void ExchangeEach(void *user, const ExchangeTrial *trial);
// Reads a cache file of this device, kernel, size and these parameters, to go on with:
// calls each for every point of the space in it. *body: its text without its end; owner:
// arena. False with a diagnostic: it cannot be read, or is of something else.
bool exchange_read_cache(const char *path, const Exchange *of, Arena *arena,
                         const char **body, ExchangeEach *each, void *user, Diags *diags);
// The time now, as in ExchangeTrial; owner: arena.
const char *exchange_now(Arena *arena);

#endif
