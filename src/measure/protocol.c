// SPDX-License-Identifier: Apache-2.0
//
// Messages between controller and worker: four bytes of length (the machine's order; both
// sides are one machine), then JSON. Numbers JSON cannot hold are left out or sent as
// their bits. A message is trusted: both sides are this program.
#include "measure/parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MESSAGE_MAX = 1 << 28 };

// Framing -----------------------------------------------------------------------------

static ssize_t send_some(int fd, char *bytes, size_t len)
{
    return send(fd, bytes, len, MSG_NOSIGNAL);
}

static ssize_t receive_some(int fd, char *bytes, size_t len)
{
    return recv(fd, bytes, len, 0);
}

bool message_send(int fd, json_t *message)
{
    AUTO_FREE char *text = json_dumps(message, JSON_COMPACT);
    json_decref(message);
    if (!text)
        BUG("a message that is not JSON");
    uint32_t len = (uint32_t)strlen(text);
    AutoBuf frame = buf_new();
    buf_write(&frame, &len, sizeof len);
    buf_write(&frame, text, len);
    return file_move(fd, frame.text, frame.len, send_some);
}

json_t *message_receive(int fd)
{
    uint32_t len;
    if (!file_move(fd, (char *)&len, sizeof len, receive_some) || len > MESSAGE_MAX)
        return NULL;
    AUTO_FREE char *text = xmalloc(len);
    return file_move(fd, text, len, receive_some) ? json_loadb(text, len, 0, NULL) : NULL;
}

json_t *message_take(Buf *in, bool *broken)
{
    uint32_t len;
    *broken = false;
    if (in->len < sizeof len)
        return NULL;
    memcpy(&len, in->text, sizeof len);
    *broken = len > MESSAGE_MAX;
    if (*broken || in->len < sizeof len + len)
        return NULL;
    json_t *message = json_loadb(in->text + sizeof len, len, 0, NULL);
    *broken = !message;
    in->len -= sizeof len + len;
    memmove(in->text, in->text + sizeof len + len, in->len);
    return message;
}

// Values ------------------------------------------------------------------------------

static json_t *ints_to_json(const int64_t *x, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer(x[i]));
    return list;
}

static void ints_from_json(const json_t *list, int64_t *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (int64_t)json_integer_value(json_array_get(list, (size_t)i));
}

// Devices -----------------------------------------------------------------------------

#define INFO_TEXTS(X)                                                                      \
    X(id) X(name) X(platform) X(driver) X(fingerprint) X(target) X(bus) X(limits)
#define INFO_FLAGS(X)                                                                      \
    X(is_cpu) X(has_double) X(has_half) X(has_image) X(has_texture) X(shuffle) X(in_order)
#define INFO_INTS(X)                                                                       \
    X(compute_units)                                                                       \
    X(clock_mhz)                                                                           \
    X(warp)                                                                                \
    X(matrix)                                                                              \
    X(lanes) X(line_bytes) X(max_group) X(local_bytes) X(global_bytes) X(alloc_bytes)

json_t *info_to_json(const DeviceInfo *info)
{
    json_t *json = json_object();
#define X(field) json_object_set_new(json, #field, json_text(info->field));
    INFO_TEXTS(X)
#undef X
#define X(field) json_object_set_new(json, #field, json_boolean(info->field));
    INFO_FLAGS(X)
#undef X
#define X(field) json_object_set_new(json, #field, json_integer(info->field));
    INFO_INTS(X)
#undef X
    json_object_set_new(json, "max_item", ints_to_json(info->max_item, 3));
    return json;
}

void info_from_json(const json_t *json, DeviceInfo *info)
{
    *info = (DeviceInfo){0};
#define X(field)                                                                           \
    snprintf(info->field, sizeof info->field, "%s", json_text_of(json, #field));
    INFO_TEXTS(X)
#undef X
#define X(field) info->field = json_is_true(json_object_get(json, #field));
    INFO_FLAGS(X)
#undef X
    info->compute_units = (int)json_int_of(json, "compute_units", 1);
    info->clock_mhz = (int)json_int_of(json, "clock_mhz", 0);
    info->warp = (int)json_int_of(json, "warp", 1);
    info->matrix = (int)json_int_of(json, "matrix", 0);
    info->lanes = (int)json_int_of(json, "lanes", 0);
    info->line_bytes = (int)json_int_of(json, "line_bytes", 64);
    info->max_group = json_int_of(json, "max_group", 1);
    info->local_bytes = json_int_of(json, "local_bytes", 0);
    info->global_bytes = json_int_of(json, "global_bytes", 0);
    info->alloc_bytes = json_int_of(json, "alloc_bytes", 0);
    ints_from_json(json_object_get(json, "max_item"), info->max_item, 3);
}

json_t *image_to_json(const ImageShape *image)
{
    const int64_t x[7] = {image->dims,     image->size[0], image->size[1], image->size[2],
                          image->channels, image->bytes,   image->kind};
    return ints_to_json(x, COUNTOF(x));
}

ImageShape image_from_json(const json_t *json)
{
    int64_t x[7];
    ints_from_json(json, x, COUNTOF(x));
    return (ImageShape){(int)x[0], {x[1], x[2], x[3]}, (int)x[4], (int)x[5], (char)x[6]};
}

// Jobs --------------------------------------------------------------------------------

// A scalar's value goes as its bits, so that no value is lost on the way. The last item is
// the symbol, or the bytes of ARG_BITS as a list.
static json_t *arg_to_json(const JobArg *arg)
{
    int64_t bits;
    memcpy(&bits, &arg->value, sizeof bits);
    json_t *last = json_null();
    if (arg->kind == ARG_SYMBOL)
        last = json_text(arg->symbol);
    if (arg->kind == ARG_BITS) {
        last = json_array();
        for (int i = 0; i < arg->buffer; i++)
            json_array_append_new(last, json_integer(((const uint8_t *)arg->bits)[i]));
    }
    return json_pack("[iiIiIo]", (int)arg->kind, arg->buffer, (json_int_t)arg->number,
                     (int)arg->scalar, (json_int_t)bits, last);
}

static JobArg arg_from_json(Arena *arena, const json_t *json)
{
    int64_t v[5];
    const json_t *last = json_array_get(json, 5);
    JobArg arg = {0};
    ints_from_json(json, v, 5);
    memcpy(&arg.kind, &(int){(int)v[0]}, sizeof arg.kind);
    arg.buffer = (int)v[1];
    arg.number = v[2];
    arg.scalar = (Scalar)v[3];
    memcpy(&arg.value, &v[4], sizeof arg.value);
    if (arg.kind == ARG_SYMBOL)
        arg.symbol = arena_strdup(arena, json_string_value(last));
    if (arg.kind == ARG_BITS) {
        uint8_t *bits = arena_alloc(arena, (size_t)arg.buffer);
        for (int i = 0; i < arg.buffer; i++)
            bits[i] = (uint8_t)json_integer_value(json_array_get(last, (size_t)i));
        arg.bits = bits;
    }
    return arg;
}

static json_t *launch_to_json(const JobLaunch *launch)
{
    json_t *args = json_array();
    for (int i = 0; i < launch->narg; i++)
        json_array_append_new(args, arg_to_json(&launch->arg[i]));
    return json_pack("{s:o,s:o,s:o,s:I,s:b,s:o}", "kernel", json_text(launch->kernel),
                     "global", ints_to_json(launch->global, 3), "local",
                     ints_to_json(launch->local, 3), "local_bytes",
                     (json_int_t)launch->local_bytes, "follows", launch->follows, "args",
                     args);
}

static void launch_from_json(Arena *arena, const json_t *json, JobLaunch *launch)
{
    const json_t *args = json_object_get(json, "args");
    launch->kernel = arena_strdup(arena, json_text_of(json, "kernel"));
    ints_from_json(json_object_get(json, "global"), launch->global, 3);
    ints_from_json(json_object_get(json, "local"), launch->local, 3);
    launch->local_bytes = json_int_of(json, "local_bytes", 0);
    launch->follows = json_is_true(json_object_get(json, "follows"));
    launch->narg = (int)json_array_size(args);
    JobArg *arg = NEW_ARRAY(arena, JobArg, launch->narg);
    for (int i = 0; i < launch->narg; i++)
        arg[i] = arg_from_json(arena, json_array_get(args, (size_t)i));
    launch->arg = arg;
}

json_t *job_to_json(const Job *job, int number)
{
    json_t *launches = json_array();
    for (int i = 0; i < job->nlaunch; i++)
        json_array_append_new(launches, launch_to_json(&job->launch[i]));
    return json_pack("{s:i,s:o,s:o,s:o,s:b,s:o,s:o}", "job", number, "prelude",
                     json_text(job->prelude), "source", json_text(job->source), "options",
                     json_text(job->options), "named", job->named, "scratch",
                     ints_to_json(job->scratch_bytes, job->nscratch), "launches", launches);
}

Job *job_from_json(Arena *arena, const json_t *json)
{
    const json_t *launches = json_object_get(json, "launches");
    const json_t *scratch = json_object_get(json, "scratch");
    Job *job = NEW(arena, Job);
    job->prelude = arena_strdup(arena, json_text_of(json, "prelude"));
    job->source = arena_strdup(arena, json_text_of(json, "source"));
    job->options = arena_strdup(arena, json_text_of(json, "options"));
    job->named = json_is_true(json_object_get(json, "named"));
    job->nscratch = (int)json_array_size(scratch);
    int64_t *bytes = NEW_ARRAY(arena, int64_t, job->nscratch);
    ints_from_json(scratch, bytes, job->nscratch);
    job->scratch_bytes = bytes;
    job->nlaunch = (int)json_array_size(launches);
    JobLaunch *launch = NEW_ARRAY(arena, JobLaunch, job->nlaunch);
    for (int i = 0; i < job->nlaunch; i++)
        launch_from_json(arena, json_array_get(launches, (size_t)i), &launch[i]);
    job->launch = launch;
    return job;
}

// Trials ------------------------------------------------------------------------------

const char *const trial_status_name[TRIAL_STATUS_COUNT] = {
#define X(id, text) [TRIAL_##id] = text,
    TRIAL_STATUSES(X)
#undef X
};

bool trial_status_find(const char *name, TrialStatus *status)
{
    int i = name ? FIND_TEXT(trial_status_name, TRIAL_STATUS_COUNT, name) : -1;
    if (i >= 0)
        *status = (TrialStatus)i;
    return i >= 0;
}

void trial_counts(Buf *out, const int64_t count[TRIAL_STATUS_COUNT])
{
    int n = 0;
    for (int i = 0; i < TRIAL_STATUS_COUNT; i++)
        if (count[i])
            buf_printf(out, "%s %lld %s", n++ ? "," : "", (long long)count[i],
                       trial_status_name[i]);
}

void trial_release(Trial *trial)
{
    free(trial->log);
    trial->log = NULL;
}

json_t *trial_to_json(const Trial *trial)
{
    json_t *json = json_object(), *samples = json_array();
    for (int i = 0; i < trial->nsample; i++)
        json_array_append_new(samples, json_real(trial->sample_ns[i]));
    json_object_set_new(json, "status", json_integer(trial->status));
    json_object_set_new(json, "samples", samples);
    json_object_set_new(json, "cut", json_boolean(trial->cut));
    json_set_number(json, "time_ns", trial->time_ns);
    json_set_number(json, "max_error", trial->max_error);
    json_set_number(json, "build_s", trial->build_s);
    json_set_number(json, "check_s", trial->check_s);
    json_set_number(json, "timing_s", trial->timing_s);
    json_set_number(json, "limit_s", trial->limit_s);
    json_object_set_new(json, "outside", json_boolean(trial->outside));
    json_object_set_new(json, "log", json_text(trial->log));
    AutoBuf measures = buf_new();
    measures_print(&measures, &trial->measures);
    json_object_set_new(json, "measures", json_text(measures.text));
    return json;
}

void trial_from_json(const json_t *json, Trial *trial)
{
    const json_t *samples = json_object_get(json, "samples");
    int status = (int)json_int_of(json, "status", TRIAL_FAILED);
    bool known = status >= 0 && status < TRIAL_STATUS_COUNT;
    *trial = (Trial){.status = known ? (TrialStatus)status : TRIAL_FAILED};
    trial->nsample = (int)MIN(json_array_size(samples), TRIAL_SAMPLES);
    for (int i = 0; i < trial->nsample; i++)
        trial->sample_ns[i] = json_number_value(json_array_get(samples, (size_t)i));
    trial->cut = json_is_true(json_object_get(json, "cut"));
    trial->time_ns = json_number_of(json, "time_ns", INFINITY);
    trial->max_error = json_number_of(json, "max_error", INFINITY);
    trial->build_s = json_number_of(json, "build_s", 0);
    trial->check_s = json_number_of(json, "check_s", 0);
    trial->timing_s = json_number_of(json, "timing_s", 0);
    trial->limit_s = json_number_of(json, "limit_s", 0);
    trial->outside = json_is_true(json_object_get(json, "outside"));
    trial->log = xstrdup(json_text_of(json, "log"));
    measures_parse(&trial->measures, json_text_of(json, "measures"));
}
