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
    Launches launches; // written to cache files: keys that other readers pass over
    const ExchangeTrial *trial;
    int n;
    int nmetric;
    const char *const *metric; // names
} Exchange;

// False with a diagnostic: the file cannot be written.
bool exchange_write_t4(const char *path, const Exchange *exchange, Diags *diags);
bool exchange_write_cache(const char *path, const Exchange *exchange, Diags *diags);
// The time now, as in ExchangeTrial; owner: arena.
const char *exchange_now(Arena *arena);

#endif
