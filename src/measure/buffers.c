// SPDX-License-Identifier: Apache-2.0
//
// The buffers of a job on the worker's side: what they hold before a run, and what they
// must hold after it.
//
//   method  each buffer lies between two zones that no kernel may write. Outputs and zones
//           hold a poison before a run; a job is judged after a run with each of two
//           poisons that differ in every byte, so what was not written, or was written
//           outside, cannot agree both times.
//
// Where the device is no CPU it compares by itself, and only what it finds wrong is read
// back. A write further out than the zones is seen only if it meets another buffer.
#include "measure/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Making them -------------------------------------------------------------------------

static bool map_file(const char *path, size_t bytes, const void **at, Buf *log)
{
    *at = NULL;
    if (!*path || bytes == 0)
        return true;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        buf_printf(log, "cannot map %s: %s\n", path, strerror(errno));
    else
        *at = p;
    if (fd >= 0)
        close(fd);
    return p != MAP_FAILED;
}

bool buffer_is_input(const DeviceBuffer *b)
{
    return b->init && !b->inout && !b->expect;
}

static bool upload(const DeviceBuffers *s, const DeviceBuffer *b, Buf *log)
{
    return !b->init || s->kind->write(s->device, b->mem, b->init, b->bytes, log) == DEV_OK;
}

static bool new_mem(const DeviceBuffers *s, DeviceBuffer *b, Buf *log)
{
    b->whole = s->kind->mem_new(s->device, b->bytes + 2 * (size_t)GUARD, log);
    if (b->whole)
        b->mem = s->kind->part_new(s->device, b->whole, GUARD, b->bytes, log);
    return b->mem != NULL;
}

static bool new_image(const DeviceBuffers *s, ImageShape image, DeviceBuffer *b, Buf *log)
{
    b->is_image = true;
    if (s->kind->image_new)
        b->mem = s->kind->image_new(s->device, &image, log);
    else
        buf_printf(log, "%s devices have no images\n", s->kind->name);
    return b->mem != NULL;
}

static size_t bound_bytes(const DeviceBuffer *b)
{
    return (size_t)b->count * sizeof *b->bound;
}

static bool open_buffer(const DeviceBuffers *s, const json_t *json, DeviceBuffer *b,
                        Buf *log)
{
    b->name = xstrdup(json_text_of(json, "name"));
    b->scalar = (Scalar)json_int_of(json, "scalar", S_FLOAT);
    b->count = json_int_of(json, "count", 0);
    b->bytes = (size_t)json_int_of(json, "bytes", 0);
    b->width = (size_t)json_int_of(json, "width", 0);
    const void *bound;
    if (!map_file(json_text_of(json, "init"), b->bytes, &b->init, log) ||
        !map_file(json_text_of(json, "expect"), b->bytes, &b->expect, log) ||
        !map_file(json_text_of(json, "bound"), bound_bytes(b), &bound, log))
        return false;
    b->bound = bound;
    if (b->expect && scalar_info[b->scalar].floating)
        b->scale = check_scale(b->scalar, b->expect, b->count);
    b->spared = json_int_of(json, "spared", 0);
    b->inout = json_is_true(json_object_get(json, "inout"));
    ImageShape image = image_from_json(json_object_get(json, "image"));
    if (!(image.dims ? new_image(s, image, b, log) : new_mem(s, b, log)))
        return false;
    return upload(s, b, log);
}

// Frees *mem where it cannot be filled.
static bool upload_copy(const DeviceBuffers *s, Mem **mem, const void *from, size_t bytes)
{
    AutoBuf ignored = buf_new();
    if (!*mem)
        *mem = s->kind->mem_new(s->device, bytes, &ignored);
    if (*mem && s->kind->write(s->device, *mem, from, bytes, &ignored) != DEV_OK) {
        s->kind->mem_free(s->device, *mem);
        *mem = NULL;
    }
    return *mem != NULL;
}

// Without room for it on the device, the outputs are read back.
static void upload_expected(const DeviceBuffers *s, DeviceBuffer *b)
{
    if ((!b->bound || upload_copy(s, &b->bound_mem, b->bound, bound_bytes(b))) &&
        upload_copy(s, &b->expect_mem, b->expect, b->bytes))
        return;
    if (b->expect_mem)
        s->kind->mem_free(s->device, b->expect_mem);
    b->expect_mem = NULL;
}

bool buffers_fill(DeviceBuffers *s, const json_t *message, Buf *log)
{
    const json_t *list = json_object_get(message, "buffers");
    buffers_clear(s);
    s->tolerance = json_number_of(message, "tolerance", INFINITY);
    s->n = (int)json_array_size(list);
    s->at = xcalloc((size_t)s->n, sizeof *s->at);
    for (int i = 0; i < s->n; i++) {
        DeviceBuffer *b = &s->at[i];
        if (!open_buffer(s, json_array_get(list, (size_t)i), b, log))
            return false;
        if (b->expect && gpucheck_takes(s->gpucheck, b))
            upload_expected(s, b);
        if (buffer_is_input(b) && !b->is_image && s->gpucheck &&
            !gpucheck_sum(s->gpucheck, b, &b->sum)) {
            buf_printf(log, "the device cannot add up %s\n", b->name);
            return false;
        }
    }
    return true;
}

void buffer_free(const DeviceBuffers *s, DeviceBuffer *b)
{
    if (b->mem)
        s->kind->mem_free(s->device, b->mem);
    if (b->whole)
        s->kind->mem_free(s->device, b->whole);
    if (b->expect_mem)
        s->kind->mem_free(s->device, b->expect_mem);
    if (b->bound_mem)
        s->kind->mem_free(s->device, b->bound_mem);
    if (b->init)
        munmap((void *)(uintptr_t)b->init, b->bytes);
    if (b->expect)
        munmap((void *)(uintptr_t)b->expect, b->bytes);
    if (b->bound)
        munmap((void *)(uintptr_t)b->bound, bound_bytes(b));
    free(b->name);
}

void buffers_clear(DeviceBuffers *s)
{
    for (int i = 0; i < s->n; i++)
        buffer_free(s, &s->at[i]);
    free(s->at);
    s->at = NULL;
    s->n = 0;
}

bool buffer_scratch(const DeviceBuffers *s, int number, size_t bytes, DeviceBuffer *scratch,
                    Buf *log)
{
    char name[32];
    snprintf(name, sizeof name, "scratch %d", number);
    *scratch =
        (DeviceBuffer){.name = xstrdup(name), .scalar = S_INT, .bytes = bytes, .width = 1};
    return new_mem(s, scratch, log);
}

// Before a run ------------------------------------------------------------------------

// All bits set is no number; the other is nothing that a kernel would look for, as zero is.
// All truth values but zero are the same as all bits set.
unsigned char buffer_poison(const DeviceBuffer *b, Poison poison)
{
    return poison == POISON_FIRST ? 0xff : b->scalar == S_BOOL ? 0 : 0x5a;
}

static DeviceStatus fill(const DeviceBuffers *s, const DeviceBuffer *b, Poison poison,
                         size_t offset, size_t bytes, Buf *log)
{
    return s->kind->fill(s->device, b->whole, buffer_poison(b, poison), offset, bytes, log);
}

DeviceStatus buffers_guard(const DeviceBuffers *s, DeviceBuffer *const *used, int n,
                           Poison poison, Buf *log)
{
    DeviceStatus status = DEV_OK;
    for (int i = 0; i < n && status == DEV_OK; i++) {
        const DeviceBuffer *b = used[i];
        if (b->init && !b->is_image)
            status = fill(s, b, poison, 0, GUARD, log);
        if (b->init && !b->is_image && status == DEV_OK)
            status = fill(s, b, poison, GUARD + b->bytes, GUARD, log);
    }
    return status;
}

DeviceStatus buffers_reset(const DeviceBuffers *s, DeviceBuffer *const *used, int n,
                           Poison poison, Buf *log)
{
    DeviceStatus status = DEV_OK;
    for (int i = 0; i < n && status == DEV_OK; i++) {
        const DeviceBuffer *b = used[i];
        if (!b->init && !b->is_image)
            status = fill(s, b, poison, 0, b->bytes + 2 * (size_t)GUARD, log);
        else if (b->init && !buffer_is_input(b))
            status = s->kind->write(s->device, b->mem, b->init, b->bytes, log);
    }
    return status;
}

// After a run -------------------------------------------------------------------------

static bool holds_only(const unsigned char *p, unsigned char byte, size_t n)
{
    return p[0] == byte && memcmp(p, p + 1, n - 1) == 0;
}

// False: it was written before the start, or past the end; the log has the nearest element.
static bool zones_are_whole(const DeviceBuffer *b, const unsigned char *whole,
                            Poison poison, Buf *why)
{
    const unsigned char *start = whole + GUARD, *end = start + b->bytes;
    const unsigned char byte = buffer_poison(b, poison);
    bool before = !holds_only(whole, byte, GUARD);
    bool past = !holds_only(end, byte, GUARD);
    size_t far = 1;
    while (before && start[-(ptrdiff_t)far] == byte)
        far++;
    if (before)
        buf_printf(why, "writes before the start of `%s`: element -%zu\n", b->name,
                   (far + b->width - 1) / b->width);
    for (far = 0; past && end[far] == byte;)
        far++;
    if (past)
        buf_printf(why, "writes past the end of `%s`: element %zu\n", b->name,
                   (b->bytes + far) / b->width);
    return !before && !past;
}

static bool input_is_whole(const DeviceBuffer *b, const unsigned char *data, Buf *why)
{
    const unsigned char *init = b->init;
    size_t i = 0;
    if (!buffer_is_input(b) || memcmp(data, init, b->bytes) == 0)
        return true;
    while (data[i] == init[i])
        i++;
    buf_printf(why, "writes into the input `%s`: element %zu\n", b->name, i / b->width);
    return false;
}

// The last of ints that stand for smaller elements may not be whole.
static Check compare_all(const DeviceBuffers *s, const DeviceBuffer *b,
                         const unsigned char *data)
{
    size_t tail = b->bytes % scalar_device_bytes(b->scalar), at = b->bytes - tail;
    int64_t n = b->count - (tail != 0);
    const Allowed allowed = {b->bound, s->tolerance, b->scale};
    Check check = check_compare(b->scalar, data, b->expect, n, allowed);
    if (tail && check.first_wrong < 0) { // elements of this size are never spared
        int32_t got = 0, want = 0;
        memcpy(&got, data + at, tail);
        memcpy(&want, (const unsigned char *)b->expect + at, tail);
        check = check_compare(b->scalar, &got, &want, 1, (Allowed){NULL, 0, 1});
        check.first_wrong += check.first_wrong < 0 ? 0 : n;
    }
    return check;
}

// The element that has the first wrong byte from a word on: integers that are no ints are
// compared as such.
static int64_t wrong_element(const DeviceBuffer *b, const unsigned char *data, int64_t word)
{
    const unsigned char *expect = b->expect;
    size_t at = (size_t)word * sizeof(int32_t);
    while (at < b->bytes && data[at] == expect[at])
        at++;
    return (int64_t)(at / b->width);
}

static void compare(const DeviceBuffers *s, const DeviceBuffer *b,
                    const unsigned char *data, Verdict *verdict)
{
    Check check = compare_all(s, b, data);
    verdict->max_error = MAX(verdict->max_error, check.max_error);
    if (check.wrong <= b->spared)
        return;
    verdict->right = false;
    bool floating = scalar_info[b->scalar].floating;
    if (b->scalar == S_INT && b->width > 0 && b->width != sizeof(int32_t))
        buf_printf(&verdict->why, "%s: element %lld is not what it must be", b->name,
                   (long long)wrong_element(b, data, check.first_wrong));
    else
        buf_printf(&verdict->why,
                   floating ? "%s: element %lld is %.9g, must be %.9g"
                            : "%s: element %lld is %.0f, must be %.0f",
                   b->name, (long long)check.first_wrong, check.got, check.want);
    if (b->bound)
        buf_printf(&verdict->why, " within %.3g", (double)b->bound[check.first_wrong]);
    if (b->spared)
        buf_printf(&verdict->why, ", and so are %lld; %lld may be", (long long)check.wrong,
                   (long long)b->spared);
    buf_printf(&verdict->why, " (largest relative error %.3g)\n", check.max_error);
}

// A buffer that is read back, or lies in our memory; *spoilt: the next run must not find
// it so.
static DeviceStatus judge_here(const DeviceBuffers *s, DeviceBuffer *b, Poison poison,
                               bool *spoilt, Verdict *verdict, Buf *log)
{
    const unsigned char *whole =
        s->kind->map(s->device, b->whole, b->bytes + 2 * (size_t)GUARD, log);
    if (!whole)
        return DEV_FAILED;
    bool zones = zones_are_whole(b, whole, poison, &verdict->why);
    bool input = input_is_whole(b, whole + GUARD, &verdict->why);
    verdict->right = verdict->right && zones && input;
    *spoilt |= !zones || !input;
    if (b->expect)
        compare(s, b, whole + GUARD, verdict);
    s->kind->unmap(s->device, b->whole, whole);
    return DEV_OK;
}

static DeviceStatus restore(const DeviceBuffers *s, Buf *log)
{
    for (int i = 0; i < s->n; i++)
        if (!upload(s, &s->at[i], log))
            return DEV_FAILED;
    return DEV_OK;
}

DeviceStatus buffers_judge(const DeviceBuffers *s, DeviceBuffer *const *used, int n,
                           Poison poison, Verdict *verdict, Buf *log)
{
    DeviceStatus status = DEV_OK;
    bool *done = xcalloc((size_t)n, sizeof *done), spoilt = false;
    verdict->right = true;
    verdict->max_error = 0;
    bool asked = s->gpucheck && gpucheck_judge(s->gpucheck, used, n, poison, s->tolerance,
                                               done, &verdict->max_error);
    for (int i = 0; i < n && status == DEV_OK; i++) {
        if (used[i]->is_image || (asked && done[i]))
            continue;
        status = judge_here(s, used[i], poison, &spoilt, verdict, log);
        if (asked && used[i]->expect_mem && verdict->right)
            upload_expected(s, used[i]); // a stray write has met it
    }
    free(done);
    if (status == DEV_OK && spoilt)
        status = restore(s, log);
    return status;
}
