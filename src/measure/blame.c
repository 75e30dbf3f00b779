// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a job whose worker died, and of one that fails by what may not be its own
// doing.
//
// Who is to blame when a worker dies: the job it was at, if that is the only one the
// process had. An earlier one may have spoilt the process (PoCL notices no write past a
// buffer's end), so a job that crashed among others becomes a suspect, and so do jobs
// built together when the compiler died, and jobs that were there at many deaths. When
// the rest of the batch is done each suspect is tried by itself in a fresh process. What
// else a dead worker had prepared is prepared again, which is quick with a compile cache.
//
// What may come from outside says nothing of the job: a time-out on a machine that has more
// to do, a signal from somebody else, a full disk, a device that fails. Such a job is tried
// again, once, alone: when nothing else of this runner runs. The second result counts. A
// time-out records the limit that it broke, and what still looks like trouble from outside
// is marked so, and nobody believes it later.
#include "measure/runner.h"

#include <math.h>
#include <string.h>

enum {
    DEATHS_SUSPECT = 4, // of workers a job was with, before it is tried alone
    DEATHS_MAX = 8      // before it is given up
};

static void decide(Item *item, TrialStatus status, const char *why)
{
    trial_release(&item->trial);
    item->trial = (Trial){
        .status = status, .time_ns = INFINITY, .max_error = INFINITY, .log = xstrdup(why)};
    item->state = ITEM_DECIDED;
}

static void again(Item *item, bool suspect)
{
    item->suspect |= suspect;
    item->state = ITEM_WAITING;
}

static void again_alone(Item *item)
{
    item->alone = true;
    again(item, true);
}

// Whether a failure is one of the machine: by what was said of it, or a disk that is full.
static bool is_trouble(const Runner *runner, const char *log)
{
    static const char *const said[] = {
        // The system, or a compiler in its name.
        "No space left on device", "Disk quota exceeded", "File too large",
        "Cannot allocate memory", "out of memory", "Resource temporarily unavailable",
        "Too many open files", "Input/output error", "Stale file handle",
        // A compiler of whose parts one was killed.
        "Killed signal", "signal 9 [Killed]", "unable to execute command", "was ended by",
        // Devices that are gone.
        "CL_DEVICE_NOT_AVAILABLE", "CL_DEVICE_NOT_FOUND", "CUDA_ERROR_NO_DEVICE",
        "CUDA_ERROR_INVALID_DEVICE", "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "CUDA_ERROR_ECC_UNCORRECTABLE", "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        "CUDA_ERROR_SYSTEM_NOT_READY", "CUDA_ERROR_OPERATING_SYSTEM"};
    for (int i = 0; log && i < COUNTOF(said); i++)
        if (strstr(log, said[i]))
            return true;
    return folder_is_full(&runner->folder);
}

// What becomes of the job that a dead worker was at.
static void blame(const Runner *runner, Item *item, const Death *death)
{
    bool late = death->was.late;
    bool outside = death->killed || (!late && is_trouble(runner, death->why));
    if ((late || outside) && !item->alone)
        again_alone(item);
    else if (late) {
        decide(item, TRIAL_TIMED_OUT, death->why);
        item->trial.limit_s = death->was.stage == STAGE_BUILD ? runner->config.build_limit_s
                                                              : runner->config.run_limit_s;
    } else if (death->was.sent == 1) {
        decide(item, TRIAL_CRASHED, death->why);
        item->trial.outside = outside;
    } else
        again(item, true);
}

// What becomes of another that it had. One that is given up did nothing itself.
static void note_death(Item *item, const Death *death)
{
    bool joint = death->was.stage == STAGE_BUILD && death->was.job == JOINT_BUILD;
    item->deaths += death->was.stage != STAGE_QUIT;
    if (item->deaths >= DEATHS_MAX) {
        decide(item, TRIAL_CRASHED, death->why);
        item->trial.outside = true;
    } else
        again(item, (joint && item->state == ITEM_SENT) || item->deaths >= DEATHS_SUSPECT);
}

void blame_dead(Runner *runner, int number, const Death *death)
{
    for (int i = runner->round->first; i < runner->round->end; i++) {
        Item *item = item_at(runner->round, i);
        bool held = (item->state == ITEM_SENT || item->state == ITEM_PREPARED) &&
                    item->worker == number;
        if (!held)
            continue;
        if (death->was.stage >= STAGE_BUILD && death->was.job == i)
            blame(runner, item, death);
        else
            note_death(item, death);
    }
}

bool blame_outside(const Runner *runner, Item *item)
{
    Trial *trial = &item->trial;
    bool failed = trial->status == TRIAL_FAILED;
    trial->outside =
        (failed || trial->status == TRIAL_BUILD_FAILED) && is_trouble(runner, trial->log);
    bool doubtful = (trial->outside || failed) && !item->alone;
    if (doubtful)
        again_alone(item);
    return doubtful;
}
