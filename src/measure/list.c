// SPDX-License-Identifier: Apache-2.0
//
// The devices there are. Each kind is asked in a worker of its own, so that a broken
// driver of one kind hides no other.
#include "measure/parts.h"

#include <string.h>

static const double LIST_LIMIT_S = 60;

typedef VEC(DeviceInfo) Infos;

typedef struct {
    Arena *arena;
    const char *worker; // its program
    const Stop *stop;
    Infos found;
    const char *only; // the one that is looked for; NULL: all
    int index;        // its number in its kind
    const char *why;  // it was not found; NULL: nothing was said
} Listing;

static void note_end(Listing *listing, const char *kind, const json_t *message, int found,
                     Diags *diags)
{
    const char *log = json_text_of(message, "log"), *advice = device_kind(kind)->advice;
    if (listing->only && found == 0)
        listing->why = arena_printf(listing->arena, "%.*s", (int)strcspn(log, "\n"), log);
    else if (*log)
        diag_warning(diags, span_none, "", "some %s devices do not open: %s", kind, log);
    else if (found == 0 && advice)
        diag_warning(diags, span_none, "", "no %s device found: %s", kind, advice);
}

// False if the worker ended before it had answered, and why.
static bool listen_for(Listing *listing, Worker *worker, const char *kind, Buf *why,
                       Diags *diags)
{
    int before = listing->found.len;
    json_t *message;
    while (worker->state == WORKER_BUSY) {
        if (!worker_wait(worker, 1, listing->stop, &message)) {
            worker_end(worker, NULL);
            break;
        }
        const json_t *device = json_object_get(message, "device");
        if (device) {
            DeviceInfo info;
            info_from_json(device, &info);
            VEC_PUSH(listing->arena, &listing->found, info);
        } else if (message) {
            note_end(listing, kind, message, listing->found.len - before, diags);
            worker_end(worker, NULL);
        } else {
            worker_end(worker, why);
            listing->found.len = before;
            return false;
        }
        json_decref(message);
    }
    return true;
}

// A worker that ended without an answer, as one that was killed, is asked once more.
static void list_kind(Listing *listing, const char *kind, const WorkerPlace *place,
                      Diags *diags)
{
    AutoBuf why = buf_new();
    for (int round = 0; round < 2; round++) {
        Worker worker;
        if (!worker_start(&worker, place, diags))
            return;
        json_t *message = json_pack("{s:s,s:s}", "do", "list", "kind", kind);
        if (listing->only)
            json_object_set_new(message, "index", json_integer(listing->index));
        worker_send(&worker, message, STAGE_LIST, 0, LIST_LIMIT_S);
        buf_clear(&why);
        if (listen_for(listing, &worker, kind, &why, diags))
            return;
    }
    diag_warning(diags, span_none, "", "asking for %s devices failed: %s", kind, why.text);
}

static void list_kinds(Listing *listing, const DeviceKind *const *kind, int n, Diags *diags)
{
    TempFolder folder;
    if (!temp_open(&folder, temp_parent(), "forewarp-list")) {
        diag_world(diags, "",
                   "cannot make a temporary folder: set TMPDIR to a writable one");
        return;
    }
    WorkerPlace place = {.program = listing->worker,
                         .cache = folder.path,
                         .temp = folder.path,
                         .log = arena_printf(listing->arena, "%s/log", folder.path)};
    for (int i = 0; i < n && !stop_due(listing->stop); i++)
        list_kind(listing, kind[i]->name, &place, diags);
    temp_close(&folder);
}

int devices_list(Arena *arena, const char *worker, const Stop *stop, DeviceInfo **info,
                 Diags *diags)
{
    int n;
    const DeviceKind *const *kind = device_kinds(&n);
    Listing listing = {.arena = arena, .worker = worker, .stop = stop};
    list_kinds(&listing, kind, n, diags);
    *info = listing.found.at;
    return listing.found.len;
}

// There is no such device: why, and which there are. False.
static bool none_such(const Listing *listing, Diags *diags)
{
    DeviceInfo *info;
    AutoBuf present = buf_new();
    Diags ignored = {.arena = listing->arena};
    int n = devices_list(listing->arena, listing->worker, listing->stop, &info, &ignored);
    for (int i = 0; i < n; i++)
        buf_printf(&present, "%s-d %s (%s)", i ? ", " : "; try ", info[i].id, info[i].name);
    diag_world(diags, "C007", "there is no device %s%s%s%s", listing->only,
               listing->why ? ": " : "", listing->why ? listing->why : "", present.text);
    return false;
}

bool devices_find(Arena *arena, const char *worker, const Stop *stop, const char *id,
                  DeviceInfo *info, Diags *diags)
{
    const DeviceKind *kind;
    Listing listing = {.arena = arena, .worker = worker, .stop = stop, .only = id};
    int errors = diags->errors;
    if (!device_parse(id, &kind, &listing.index))
        return diag_error(
            diags, span_none, "C006",
            "a device is opencl:N, cuda:N or host, not `%s`; `forewarp devices` "
            "lists those of this machine",
            id);
    list_kinds(&listing, &kind, 1, diags);
    if (listing.found.len == 0 && stop_due(stop))
        return diag_world(diags, "C007", "forewarp did not look for the device %s: %s", id,
                          stop_text(stop));
    if (listing.found.len == 0)
        return diags->errors == errors && none_such(&listing, diags);
    *info = listing.found.at[0];
    return true;
}
