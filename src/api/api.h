// SPDX-License-Identifier: Apache-2.0
//
// api: what the files behind include/forewarp.h share.

#ifndef FW_API_API_H
#define FW_API_API_H

#include "forewarp.h"

#include "api/recipe.h"

struct fw_problem {
    Problem *problem;
    Argument *argument;
    int nargument;
    const char *label;
    fw_size *size; // generic ones
    int nsize;
};

struct fw_device {
    DeviceInfo info;
};

struct fw_plan {
    Arena *arena;
    Recipe recipe;
    DeviceInfo device;
    fw_origin origin;
    const char *found_for, *foreign; // NULL: as asked
    double time_ns, baseline_ns;     // 0: not known
};

// Takes the diagnostics out as the message, and frees their arena.
void api_message(Diags *diags, char **message);
// False, with a message, for a NULL that the caller must not pass.
bool api_given(const void *value, const char *what, char **message);
const char *api_or(const char *text, const char *otherwise);
// The worker program; NULL with a diagnostic.
const char *api_worker(const char *worker, Arena *arena, Diags *diags);
const char *api_store(const char *store, Arena *arena);
// The options of a tuning, all but budgets and hooks; false with a diagnostic.
bool api_options(const fw_plan_options *o, const fw_device *device, Arena *arena,
                 TuneOptions *options, Diags *diags);
// What the caller is told of a trial.
fw_trial api_trial(const char *point, const Trial *trial);
// An empty plan for a device.
fw_plan *api_plan(const fw_device *device);

#endif
