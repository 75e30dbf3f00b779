// SPDX-License-Identifier: Apache-2.0
//
// The public interface: queues, and running plans in the caller's process.

#include "api/api.h"

#include <stdlib.h>
#include <string.h>

// What a driver said, as the message.
static void give_log(const Buf *log, const char *what, char **message)
{
    size_t n = log->len;
    while (n > 0 && log->text[n - 1] == '\n')
        n--;
    if (!message)
        return;
    AutoBuf text = buf_new();
    buf_printf(&text, "forewarp: error: %s: %.*s\n", what, (int)n, log->text);
    *message = xstrdup(text.text);
}

// Gives the log of what failed, and releases it.
static bool finish(bool ok, Buf *log, const char *what, char **message)
{
    if (message)
        *message = NULL;
    if (!ok)
        give_log(log, what, message);
    buf_release(log);
    return ok;
}

// Queues ------------------------------------------------------------------------------

struct fw_queue {
    const DeviceKind *kind;
    Device *device;
};

fw_queue *fw_queue_open(const fw_device *device, char **message)
{
    int index;
    const DeviceKind *kind;
    if (!api_given(device, "device", message))
        return NULL;
    if (!device_parse(device->info.id, &kind, &index))
        BUG("a device of no kind: %s", device->info.id);
    Buf log = buf_new();
    fw_queue *queue = xcalloc(1, sizeof *queue);
    *queue = (fw_queue){kind, kind->open(index, &log)};
    if (finish(queue->device != NULL, &log, device->info.id, message))
        return queue;
    free(queue);
    return NULL;
}

void fw_queue_free(fw_queue *queue)
{
    if (queue)
        queue->kind->close(queue->device);
    free(queue);
}

void *fw_queue_handle(const fw_queue *queue)
{
    return queue ? queue->kind->queue(queue->device) : NULL;
}

// Running -----------------------------------------------------------------------------

struct fw_executable {
    Loaded *loaded;
};

static bool is_its_device(const fw_plan *plan, const Loaded *loaded, Buf *log)
{
    const DeviceInfo *device = loaded_device(loaded);
    bool same = strcmp(device->fingerprint, plan->device.fingerprint) == 0;
    if (!same)
        buf_printf(log, "the plan is for %s (%s), and this is %s (%s)", plan->device.name,
                   plan->device.driver, device->name, device->driver);
    return same;
}

fw_executable *fw_load(const fw_plan *plan, void *queue, char **message)
{
    if (!api_given(plan, "plan", message))
        return NULL;
    Buf log = buf_new();
    fw_executable *made = xcalloc(1, sizeof *made);
    made->loaded = loaded_new(&plan->recipe, queue, &log);
    bool ok = made->loaded && is_its_device(plan, made->loaded, &log);
    if (finish(ok, &log, plan->recipe.problem, message))
        return made;
    fw_executable_free(made);
    return NULL;
}

void fw_executable_free(fw_executable *executable)
{
    if (executable)
        loaded_free(executable->loaded);
    free(executable);
}

int fw_resize(fw_executable *executable, const int64_t *size, int n, char **message)
{
    if (!api_given(executable, "executable", message) ||
        (n != 0 && !api_given(size, "list of sizes", message)))
        return 0;
    Buf log = buf_new();
    bool ok = loaded_resize(executable->loaded, size, n, &log);
    return finish(ok, &log, "resize", message);
}

int fw_execute(fw_executable *executable, void *queue, void *const *buffer, int n,
               char **message)
{
    if (!api_given(executable, "executable", message) ||
        !api_given(buffer, "list of buffers", message))
        return 0;
    Buf log = buf_new();
    bool ok = loaded_run(executable->loaded, queue, buffer, n, &log);
    return finish(ok, &log, "execute", message);
}

int fw_run(fw_executable *executable, void *const *array, int n, char **message)
{
    if (!api_given(executable, "executable", message) ||
        !api_given(array, "list of arrays", message))
        return 0;
    Buf log = buf_new();
    bool ok = loaded_run_host(executable->loaded, array, n, &log);
    return finish(ok, &log, "run", message);
}
