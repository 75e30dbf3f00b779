// SPDX-License-Identifier: Apache-2.0
//
// A runner, inside: what runner.c (opening, the calls) and round.c (the jobs of a call on
// their way through the workers) share.

#ifndef FW_MEASURE_RUNNER_H
#define FW_MEASURE_RUNNER_H

#include "measure/parts.h"
#include "measure/peers.h"

enum { WORKERS_MAX = 32, SHARE = 10 }; // SHARE: jobs a worker builds as one program

typedef enum {
    ITEM_WAITING,
    ITEM_SENT,
    ITEM_COMPILED, // by another worker than the one that is to run it
    ITEM_PREPARED,
    ITEM_DECIDED,
    ITEM_DONE
} ItemState;

typedef struct {
    const Job *job;
    int number;
    ItemState state;
    bool suspect; // to be tried by itself, in a fresh process
    bool alone;   // so, and while nothing else runs
    int worker;   // that has it
    int parcel;   // compiled together: the number of its first job
    double compile_s;
    int deaths;
    Trial trial;
} Item;

// The jobs of one call, and what is wanted of them. Kept are those from the first that is
// not done: the number-th at item[number % capacity].
typedef struct {
    Item *item;
    int capacity;
    int first, end; // the numbers at work
    RunnerNext *next;
    int samples;
    double cutoff_ns;
    json_t *out; // paths for the outputs, or NULL
    RunnerDone *done;
    void *user;
    bool streams; // goes on with what was begun
} Round;

static inline Item *item_at(const Round *round, int number)
{
    return &round->item[number % round->capacity];
}

struct Runner {
    Arena *arena;
    RunnerConfig config; // its texts are the runner's; buffer: only the sizes are looked at
    size_t *buffer_bytes;
    bool *buffer_output;
    DeviceInfo info;
    bool ahead; // the first worker runs jobs, the others compile
    Folder folder;
    char *turn; // the file by which controllers take turns on the device
    json_t *open_message;
    int most_workers, nworker; // workers there may be, and those there are
    int batch;                 // jobs at once
    double compile_s;          // that a job takes a compiler, of late; 0: not known
    Worker worker[WORKERS_MAX];
    Cache cache[WORKERS_MAX];
    int failed[WORKERS_MAX]; // starts of each since the last that succeeded
    Buf trouble;             // why the last start failed
    Round *round;            // NULL between calls, but for the one that was begun
    Round *begun;            // whose jobs are being compiled; NULL: none
    bool halted;             // the stop was due while something was waited for
    Peers *peers;            // NULL: none
};

// blame.c -----------------------------------------------------------------------------

// How a worker died.
typedef struct {
    Worker was;
    bool killed; // by somebody else
    const char *why;
} Death;
// Settles what a dead worker, the number-th, had been given.
void blame_dead(Runner *runner, int number, const Death *death);
// What is not ok and may come from outside is tried once more; true if it is so.
bool blame_outside(const Runner *runner, Item *item);

// round.c -----------------------------------------------------------------------------

// Starts one more worker, which opens its device.
bool workers_add(Runner *runner, Diags *diags);
// Gives the workers that hold buffers the present ones.
bool workers_fill(Runner *runner, Diags *diags);
// Until every worker is idle or off. False: none is left that can run a job.
bool workers_settle(Runner *runner, Diags *diags);
// Runs the round's jobs with at most so many workers where they compile ahead; frees its
// items. True too if it is halted.
bool round_run(Runner *runner, int workers, Round *round, Diags *diags);
// Has the compilers begin with the round's jobs, and waits for none of them.
bool round_begin(Runner *runner, const Round *round, Diags *diags);
void round_drop(Runner *runner); // what was begun

#endif
