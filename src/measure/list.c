// SPDX-License-Identifier: Apache-2.0
//
// The devices there are. Each kind is asked in a worker of its own, so that a broken
// driver of one kind hides no other.
#include "measure/parts.h"

#include <stdlib.h>

static const double LIST_LIMIT_S = 60;

typedef VEC(DeviceInfo) Infos;

typedef struct {
    Arena *arena;
    Infos found;
} Listing;

static void note_end(const char *kind, const json_t *message, int found, Diags *diags)
{
    const char *log = json_text_of(message, "log"), *advice = device_kind(kind)->advice;
    if (*log)
        diag_warning(diags, span_none, "", "some %s devices do not open: %s", kind, log);
    else if (found == 0 && advice)
        diag_warning(diags, span_none, "", "no %s device found: %s", kind, advice);
}

static void listen_for(Listing *listing, Worker *worker, const char *kind, Diags *diags)
{
    int before = listing->found.len;
    json_t *message;
    Buf why;
    buf_init(&why);
    while (worker->state == CREW_BUSY) {
        worker_wait(worker, 1, &message);
        const json_t *device = json_object_get(message, "device");
        if (device) {
            DeviceInfo info;
            info_from_json(device, &info);
            VEC_PUSH(listing->arena, &listing->found, info);
        } else if (message) {
            note_end(kind, message, listing->found.len - before, diags);
            worker_end(worker, NULL);
        } else {
            worker_end(worker, &why);
            diag_warning(diags, span_none, "", "asking for %s devices failed: %s", kind,
                         why.text);
        }
        json_decref(message);
    }
    buf_release(&why);
}

static void list_kind(Listing *listing, const char *kind, const WorkerPlace *place,
                      Diags *diags)
{
    Worker worker;
    if (!worker_start(&worker, place, diags))
        return;
    worker_send(&worker, json_pack("{s:s,s:s}", "do", "list", "kind", kind), STAGE_LIST, 0,
                LIST_LIMIT_S);
    listen_for(listing, &worker, kind, diags);
}

static char *temporary_folder(Arena *arena)
{
    const char *parent = getenv("TMPDIR");
    char *path =
        arena_printf(arena, "%s/forewarp-XXXXXX", parent && *parent ? parent : "/tmp");
    return mkdtemp(path);
}

int devices_list(Arena *arena, const char *worker, DeviceInfo **info, Diags *diags)
{
    int nkind;
    const DeviceKind *const *kind = device_kinds(&nkind);
    Listing listing = {.arena = arena};
    char *folder = temporary_folder(arena);
    *info = NULL;
    if (!folder) {
        diag_world(diags, "",
                   "cannot make a temporary folder: set TMPDIR to a writable one");
        return 0;
    }
    WorkerPlace place = {worker, folder, folder, arena_printf(arena, "%s/log", folder)};
    for (int i = 0; i < nkind; i++)
        list_kind(&listing, kind[i]->name, &place, diags);
    remove_tree(folder);
    *info = listing.found.at;
    return listing.found.len;
}
