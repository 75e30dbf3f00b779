// SPDX-License-Identifier: Apache-2.0
//
// The devices there are. Each kind is asked in a worker of its own, so that a broken
// driver of one kind hides no other.
#include "measure/parts.h"

#include <string.h>

static const double LIST_LIMIT_S = 60;

typedef VEC(DeviceInfo) Infos;

static void take_answer(Infos *infos, Arena *arena, const char *kind, const json_t *message,
                        Diags *diags)
{
    const json_t *devices = json_object_get(message, "devices");
    int found = (int)json_array_size(devices);
    for (int i = 0; i < found; i++) {
        DeviceInfo info;
        info_from_json(json_array_get(devices, (size_t)i), &info);
        VEC_PUSH(arena, infos, info);
    }
    const char *log = json_text_of(message, "log"), *advice = device_kind(kind)->advice;
    if (*log)
        diag_warning(diags, span_none, "", "some %s devices do not open: %s", kind, log);
    else if (found == 0 && advice)
        diag_warning(diags, span_none, "", "no %s device found: %s", kind, advice);
}

// A worker that somebody killed before its answer is asked once more.
static void list_kind(Infos *infos, Arena *arena, const char *kind,
                      const WorkerPlace *place, const Stop *stop, Diags *diags)
{
    json_t *answer = NULL;
    AutoBuf why = buf_new();
    bool ended = true, killed = true;
    for (int round = 0; round < 2 && killed; round++) {
        Worker worker;
        if (!worker_start(&worker, place, diags))
            return;
        worker_send(&worker, json_pack("{s:s,s:s}", "do", "list", "kind", kind), STAGE_LIST,
                    0, LIST_LIMIT_S);
        ended = worker_wait(&worker, 1, stop, true, &answer) && !answer;
        buf_clear(&why);
        killed = worker_end(&worker, &why) && ended;
    }
    if (answer)
        take_answer(infos, arena, kind, answer, diags);
    else if (ended)
        diag_warning(diags, span_none, "", "asking for %s devices failed: %s", kind,
                     why.text);
    json_decref(answer);
}

static bool open_temp(TempFolder *folder, Diags *diags)
{
    return temp_open(folder, temp_parent(), "forewarp-list") ||
           diag_world(diags, "",
                      "cannot make a temporary folder: set TMPDIR to a writable one");
}

int devices_list(Arena *arena, const char *worker, const Stop *stop, DeviceInfo **info,
                 Diags *diags)
{
    int n;
    const DeviceKind *const *kind = device_kinds(&n);
    Infos infos = {0};
    TempFolder folder;
    if (!open_temp(&folder, diags))
        return 0;
    WorkerPlace place = {.program = worker,
                         .cache = folder.path,
                         .temp = folder.path,
                         .log = arena_printf(arena, "%s/log", folder.path)};
    for (int i = 0; i < n && !stop_due(stop); i++)
        list_kind(&infos, arena, kind[i]->name, &place, stop, diags);
    temp_close(&folder);
    *info = infos.at;
    return infos.len;
}

bool devices_find(Arena *arena, const char *worker, const Stop *stop, const char *id,
                  DeviceInfo *info, Diags *diags)
{
    Diags quiet = {.arena = arena};
    TempFolder folder;
    DeviceInfo *others;
    AutoBuf present = buf_new();
    if (!device_check(id, diags) || !open_temp(&folder, diags))
        return false;
    RunnerConfig config = {
        .device = id, .worker = worker, .folder = folder.path, .stop = stop, .workers = 1};
    Runner *runner = runner_open(&config, &quiet);
    const char *why = runner ? NULL : quiet.list.at[0].message;
    if (runner)
        *info = *runner_device(runner);
    runner_close(runner);
    temp_close(&folder);
    int n = why ? devices_list(arena, worker, stop, &others, &quiet) : 0;
    for (int i = 0; i < n; i++)
        buf_printf(&present, "%s-d %s (%s)", i ? ", " : "; try ", others[i].id,
                   others[i].name);
    return !why || diag_world(diags, "C007", "%s%s", why, present.text);
}
