// SPDX-License-Identifier: Apache-2.0
//
// store: the SQLite database of trials. Every trial is committed by itself, so a killed
// run loses at most the trial in flight. The only module that touches SQLite.

#ifndef FW_STORE_H
#define FW_STORE_H

#include "measure/measure.h"

typedef struct Store Store;

// What trials are comparable: same problem (program text, sizes, types), same space, same
// device and driver, same version of the code generator.
typedef struct {
    const char *problem;   // readable: "jacobi2d N=4096 M=4096"
    uint64_t problem_hash; // of the bound program as printed
    uint64_t space_hash;
    const char *fingerprint; // the device's
    const char *device;      // its name
    const char *version;     // of the code generator
} StoreKey;

typedef struct {
    const char *point; // as point_print writes it
    TrialStatus status;
    double time_ns;
    bool cut;
    double max_error;
    double spent_s; // time the trial took in all
    const char *log;
    const double *sample_ns;
    int nsample;    // 0 of one that is right: nobody measured it here, wisdom says so
    double limit_s; // timed-out: the limit that it broke; 0: not known, or not timed-out
    bool outside;   // as of the Trial: of the machine and not of the point, so never stored
    uint64_t seed;  // of the data that it ran on
    Measures measures;
} StoreTrial;

#define TRIAL_NS_MOST 1e18 // that a right trial can have taken: 30 years

// A trial of a point, as it is kept; it lends its texts and samples.
StoreTrial store_trial(const char *point, const Trial *trial);

// Opens or makes the file; NULL with a diagnostic that names it (missing folder, read-only,
// damaged, not a store, made by a newer version). A damaged file is never changed.
Store *store_open(const char *path, Diags *diags);
void store_close(Store *store);
// $FOREWARP_STORE, or forewarp/trials.db under $XDG_DATA_HOME or ~/.local/share.
void store_default_path(Buf *out);

// The number of the key's row, made if missing; 0 with a diagnostic on failure.
int64_t store_session(Store *store, const StoreKey *key, Diags *diags);
// Adds or replaces the trial of a point. False with a diagnostic (disk full, locked for
// longer than 10 s); what was stored before stays. A failure from outside is no trial.
bool store_put(Store *store, int64_t session, const StoreTrial *trial, Diags *diags);
// Gives a trial that is there another outcome, of its point measured again; what it cost,
// and its place among the others, stay.
bool store_put_again(Store *store, int64_t session, const StoreTrial *trial, Diags *diags);
// As put, but a trial that is there already stays. *added: there was none; *right: the one
// that is there now is.
bool store_add(Store *store, int64_t session, const StoreTrial *trial, bool *added,
               bool *right, Diags *diags);
// How much was tried before a search said what is best: of a session the most of all its
// searches that came to their end.
typedef enum { RIGOR_NONE, RIGOR_MEASURE, RIGOR_PATIENT, RIGOR_EXHAUSTIVE, RIGORS } Rigor;
extern const char *const rigor_name[RIGORS]; // "none", "measure", ...
// Raises what is stored of the session to `rigor`. False with a diagnostic.
bool store_put_rigor(Store *store, int64_t session, Rigor rigor, Diags *diags);

// What is known of a session: its key and its best trial. Texts live until the next call.
typedef struct {
    StoreKey key;
    int64_t session;
    Rigor rigor;
    const char *point; // of the fastest right trial
    double time_ns;
    int64_t trials;
    const char *when; // the session began: "2026-01-31 12:00:00"
} StoreBest;
// Calls each for every session that has a right trial, oldest first.
typedef void StoreEachBest(void *user, const StoreBest *best);
bool store_each_best(Store *store, StoreEachBest *each, void *user, Diags *diags);
// What became of a point that was run and compared with the reference before its use as a
// plan of the session's problem on its device, whoever thought of it: put adds or replaces.
// Calls each for every one; texts live until the next call. False with a diagnostic.
bool store_put_checked(Store *store, int64_t session, const char *point, TrialStatus status,
                       const char *log, Diags *diags);
typedef void StoreEachChecked(void *user, const char *point, TrialStatus status,
                              const char *log);
bool store_each_checked(Store *store, int64_t session, StoreEachChecked *each, void *user,
                        Diags *diags);
// Several changes at once: all of them, or none if end is told false. False with a
// diagnostic.
bool store_begin(Store *store, Diags *diags);
bool store_end(Store *store, bool keep, Diags *diags);

// Calls each for every trial of the session, oldest first; false if the file is damaged.
typedef void StoreEach(void *user, const StoreTrial *trial);
bool store_each(Store *store, int64_t session, StoreEach *each, void *user, Diags *diags);
// What a device was measured to reach, by fingerprint: `what` names a ceiling ("copy",
// "float", ...), bytes the size it was measured at (0: none). Put adds or replaces; get
// leaves *value alone where nothing is stored. False with a diagnostic.
bool store_put_ceiling(Store *store, const char *fingerprint, const char *what,
                       int64_t bytes, double value, Diags *diags);
bool store_get_ceiling(Store *store, const char *fingerprint, const char *what,
                       int64_t bytes, double *value, Diags *diags);
// Forgets the session's trials.
bool store_forget(Store *store, int64_t session, Diags *diags);

#endif
