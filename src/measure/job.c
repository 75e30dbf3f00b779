// SPDX-License-Identifier: Apache-2.0
//
// Questions about jobs that both sides ask.
#include "measure/measure.h"

const Job job_later;

bool job_reads(const JobArg *arg)
{
    return arg->kind == ARG_BUFFER || arg->kind == ARG_VALUE || arg->kind == ARG_IMAGE ||
           arg->kind == ARG_SYMBOL;
}

// CUDA's compiler knows a variable by its address.
const char *job_symbol(const JobArg *arg, Arena *arena)
{
    return arena_printf(arena, "&%s", arg->symbol);
}

static void add_name(DeviceText *text, const char **list, const char *name)
{
    if (FIND_TEXT(list, text->nname, name) >= 0)
        return;
    list[text->nname++] = name;
}

void job_names(const Job *job, Arena *arena, DeviceText *text)
{
    int most = 0;
    for (int i = 0; i < job->nlaunch; i++)
        most += 1 + job->launch[i].narg;
    const char **list = NEW_ARRAY(arena, const char *, most);
    text->nname = 0;
    text->name = list;
    for (int i = 0; job->named && i < job->nlaunch; i++) {
        const JobLaunch *launch = &job->launch[i];
        add_name(text, list, launch->kernel);
        for (int k = 0; k < launch->narg; k++)
            if (launch->arg[k].kind == ARG_SYMBOL)
                add_name(text, list, job_symbol(&launch->arg[k], arena));
    }
}

DeviceLaunch job_launch(const JobLaunch *from, const DeviceArg *arg)
{
    DeviceLaunch launch = {.kernel = from->kernel,
                           .local_bytes = (size_t)from->local_bytes,
                           .follows = from->follows,
                           .narg = from->narg,
                           .arg = arg};
    for (int d = 0; d < 3; d++) {
        launch.global[d] = (size_t)from->global[d];
        launch.local[d] = (size_t)from->local[d];
    }
    return launch;
}
