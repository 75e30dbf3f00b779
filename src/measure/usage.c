// SPDX-License-Identifier: Apache-2.0
//
// The time that a worker has worked, as the system counts it in /proc: what it took from
// the processor, whatever else the machine did meanwhile.
//
//   method  the threads of a kernel share its work, so the time of the busiest one is the
//           time of the kernel. The time of the compilers that the worker started is added,
//           since they run one after the other: of those that ended (the system adds it to
//           the process that waited for them) and of those at work, found as descendants of
//           the worker.
#include "measure/parts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    pid_t id, parent;
    double own_s, ended_s; // its own; of its children that it waited for
} Process;

// A process or a thread; false if it is gone.
static bool read_stat(const char *path, Process *out)
{
    char line[1024];
    unsigned long time[4];
    int parent;
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    FILE *file = fopen(path, "re");
    const char *rest = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    bool ok =
        rest && sscanf(rest, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
                       &parent, &time[0], &time[1], &time[2], &time[3]) == 5;
    if (file)
        fclose(file);
    if (ok) {
        out->parent = parent;
        out->own_s = (double)(time[0] + time[1]) * tick;
        out->ended_s = (double)(time[2] + time[3]) * tick;
    }
    return ok;
}

// The processes or threads that a folder of /proc lists. Owner of *out: the caller.
static int read_folder(const char *folder, Process **out)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int n = 0;
    *out = NULL;
    while (dir && (entry = readdir(dir))) {
        char path[128];
        Process process = {.id = (pid_t)atoi(entry->d_name)};
        snprintf(path, sizeof path, "%s/%.20s/stat", folder, entry->d_name);
        if (process.id <= 0 || !read_stat(path, &process))
            continue;
        *out = xrealloc(*out, sizeof **out * (size_t)(n + 1));
        (*out)[n++] = process;
    }
    if (dir)
        closedir(dir);
    return n;
}

static int read_threads(pid_t pid, Process **out)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/task", (int)pid);
    return read_folder(folder, out);
}

static double ended_children(pid_t pid)
{
    char path[64];
    Process process;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return read_stat(path, &process) ? process.ended_s : 0;
}

void usage_begin(Usage *usage, pid_t pid)
{
    Process *thread;
    int n = read_threads(pid, &thread);
    usage_release(usage);
    usage->pid = pid;
    usage->ended_s = ended_children(pid);
    usage->thread = xcalloc((size_t)MAX(n, 1), sizeof *usage->thread);
    usage->nthread = n;
    for (int i = 0; i < n; i++)
        usage->thread[i] = (ThreadTime){thread[i].id, thread[i].own_s};
    free(thread);
}

void usage_release(Usage *usage)
{
    free(usage->thread);
    *usage = (Usage){0};
}

static double had_before(const Usage *usage, pid_t thread)
{
    for (int i = 0; i < usage->nthread; i++)
        if (usage->thread[i].id == thread)
            return usage->thread[i].s;
    return 0;
}

static double busiest_thread(const Usage *usage)
{
    Process *thread;
    double most = 0;
    int n = read_threads(usage->pid, &thread);
    for (int i = 0; i < n; i++)
        most = MAX(most, thread[i].own_s - had_before(usage, thread[i].id));
    free(thread);
    return most;
}

// The processor time of the processes that descend from it.
static double living_children(pid_t pid)
{
    Process *process;
    double sum = 0;
    int n = read_folder("/proc", &process), nfamily = 1;
    AUTO_FREE pid_t *family = xcalloc((size_t)n + 1, sizeof *family);
    family[0] = pid;
    for (int f = 0; f < nfamily; f++)
        for (int i = 0; i < n; i++)
            if (process[i].parent == family[f] && nfamily <= n) {
                family[nfamily++] = process[i].id;
                sum += process[i].own_s + process[i].ended_s;
            }
    free(process);
    return sum;
}

double usage_s(const Usage *usage)
{
    return busiest_thread(usage) + ended_children(usage->pid) - usage->ended_s +
           living_children(usage->pid);
}
