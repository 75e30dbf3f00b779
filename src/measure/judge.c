// SPDX-License-Identifier: Apache-2.0
//
// A function of the problem that judges what a run has left, instead of the comparison or
// in addition to it. The worker compiles it as the host device compiles C, and calls it
// with the buffers as this process sees them; a fault in it ends the worker, as one in a
// kernel does.
#include "measure/parts.h"

#include <stdlib.h>

struct Judge {
    const DeviceKind *kind; // the host's
    Device *device;
    Module *module;
    int n, *buffer;
};

bool judge_open(const json_t *message, Judge **made, Buf *log)
{
    const json_t *json = json_object_get(message, "judge");
    const json_t *list = json_object_get(json, "buffers");
    DeviceText text = {.source = json_text_of(json, "text"),
                       .options = json_text_of(json, "options")};
    *made = NULL;
    if (!json)
        return true;
    Judge *judge = xcalloc(1, sizeof *judge);
    judge->kind = device_kind(device_host_id);
    judge->n = (int)json_array_size(list);
    judge->buffer = xcalloc((size_t)judge->n + 1, sizeof *judge->buffer);
    for (int i = 0; i < judge->n; i++)
        judge->buffer[i] = (int)json_integer_value(json_array_get(list, (size_t)i));
    judge->device = judge->kind->open(0, log);
    *made = judge;
    return judge->device &&
           judge->kind->build(judge->device, &text, &judge->module, log) == DEV_OK;
}

void judge_close(Judge *judge)
{
    if (!judge)
        return;
    if (judge->module)
        judge->kind->module_free(judge->device, judge->module);
    if (judge->device)
        judge->kind->close(judge->device);
    free(judge->buffer);
    free(judge);
}

// What it is passed: a place for the answer, then the buffers.
static DeviceStatus call(Judge *judge, DeviceArg *arg, Buf *log)
{
    double ns;
    DeviceLaunch launch = {.kernel = JUDGE_NAME,
                           .global = {1, 1, 1},
                           .local = {1, 1, 1},
                           .narg = 1 + judge->n,
                           .arg = arg};
    return judge->kind->run(judge->device, judge->module, &launch, 1, &ns, log);
}

DeviceStatus judge_ask(Judge *judge, const DeviceBuffers *buffers, int *answer, Buf *log)
{
    AUTO_FREE DeviceArg *arg = xcalloc((size_t)judge->n + 1, sizeof *arg);
    AUTO_FREE const void **data = xcalloc((size_t)judge->n + 1, sizeof *data);
    DeviceStatus status = DEV_OK;
    *answer = 1;
    arg[0].mem = judge->kind->mem_wrap(judge->device, answer, sizeof *answer, log);
    for (int i = 0; i < judge->n && status == DEV_OK; i++) {
        const DeviceBuffer *b = &buffers->at[judge->buffer[i]];
        data[i] = buffers->kind->map(buffers->device, b->mem, b->bytes, log);
        if (data[i])
            arg[1 + i].mem = judge->kind->mem_wrap(
                judge->device, (void *)(uintptr_t)data[i], b->bytes, log);
        else
            status = DEV_FAILED;
    }
    if (status == DEV_OK)
        status = call(judge, arg, log);
    for (int i = 0; i <= judge->n; i++) {
        if (arg[i].mem)
            judge->kind->mem_free(judge->device, arg[i].mem);
        if (i < judge->n && data[i])
            buffers->kind->unmap(buffers->device, buffers->at[judge->buffer[i]].mem,
                                 data[i]);
    }
    return status;
}
