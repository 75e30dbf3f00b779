// SPDX-License-Identifier: Apache-2.0
//
// The worker process: holds the device and obeys the controller until its socket closes.
// It keeps what it has prepared until that is timed, and ends itself after a run that the
// device reported as failed, since the device may not work any more; the controller
// starts another.
#include "measure/parts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int fd;
    Executor *executor;
    PreparedJob **prepared; // prepared, not yet timed
    int nprepared;
    bool inside; // a sandbox
} WorkerSide;

static void tell(void *user, const char *stage, int job)
{
    const WorkerSide *side = user;
    message_send(side->fd, json_pack("{s:s,s:i}", "at", stage, "job", job));
}

// Waits for the device, where this worker shares it with those of other controllers; -1: it
// does not. What comes next is told, for it has its time limit from now on.
static int take_turn(WorkerSide *side, const json_t *message, const char *stage, int job)
{
    const char *path = json_string_value(json_object_get(message, "turn"));
    if (!path)
        return -1;
    tell(side, "turn", job);
    int turn = turn_take(path);
    tell(side, stage, job);
    return turn;
}

static void end_turn(int turn)
{
    if (turn >= 0)
        close(turn);
}

static void end(const WorkerSide *side)
{
    const char *word = executor_sick(side->executor) ? "quit" : "end";
    message_send(side->fd, json_pack("{s:b}", word, 1));
}

// The devices of one kind; one that does not open is left out.
static void do_list(WorkerSide *side, const json_t *message)
{
    const DeviceKind *kind = device_kind(json_text_of(message, "kind"));
    int n = kind ? kind->count() : 0;
    json_t *devices = json_array();
    AutoBuf log = buf_new();
    for (int i = 0; i < n; i++) {
        Device *device = kind->open(i, &log);
        if (!device)
            continue;
        json_array_append_new(devices, info_to_json(kind->info(device)));
        kind->close(device);
    }
    message_send(side->fd, json_pack("{s:b,s:o,s:o}", "end", 1, "devices", devices, "log",
                                     json_text(log.text)));
}

// In the sandbox, where it is to be in one: before the driver is loaded.
static bool is_settled(WorkerSide *side, const json_t *message, Buf *log)
{
    const json_t *wanted = json_object_get(message, "sandbox");
    if (!wanted || side->inside)
        return true;
    return side->inside = sandbox_enter(wanted, side->fd, log);
}

// Also for other buffers on the device that is open.
static void do_open(WorkerSide *side, const json_t *message)
{
    AutoBuf log = buf_new();
    json_t *answer = json_pack("{s:b}", "end", 1);
    if (!side->executor)
        side->executor =
            is_settled(side, message, &log) ? executor_open(message, &log) : NULL;
    else if (!executor_fill(side->executor, message, &log)) {
        executor_close(side->executor);
        side->executor = NULL;
    }
    if (side->executor)
        json_object_set_new(answer, "info", info_to_json(executor_info(side->executor)));
    json_object_set_new(answer, "log", json_text(log.text));
    message_send(side->fd, answer);
}

static void keep(WorkerSide *side, PreparedJob *prepared)
{
    side->prepared =
        xrealloc(side->prepared, sizeof(PreparedJob *) * (size_t)(side->nprepared + 1));
    side->prepared[side->nprepared++] = prepared;
}

// Checks a prepared job that is built, reports, and keeps it if all is well so far.
static void finish_preparing(WorkerSide *side, PreparedJob *prepared)
{
    bool compiled = executor_compiles(side->executor);
    if (prepared_ok(prepared) && !compiled)
        executor_check(side->executor, prepared, tell, side);
    message_send(side->fd, prepared_report(prepared));
    if (prepared_ok(prepared) && !compiled)
        keep(side, prepared);
    else
        prepared_free(side->executor, prepared);
}

static void do_prepare(WorkerSide *side, const json_t *message)
{
    const json_t *jobs = json_object_get(message, "jobs");
    int n = (int)json_array_size(jobs);
    PreparedJob **prepared = xcalloc((size_t)n, sizeof(PreparedJob *));
    for (int i = 0; i < n; i++) {
        const json_t *job = json_array_get(jobs, (size_t)i);
        prepared[i] = prepared_new(job, (int)json_int_of(job, "job", 0));
    }
    bool compiles = executor_compiles(side->executor);
    for (int i = 0, len; i < n; i += len) {
        len = executor_joint(prepared + i, n - i);
        executor_build(side->executor, prepared + i, len, tell, side);
        for (int k = i; compiles && k < i + len; k++) // others may run it meanwhile
            finish_preparing(side, prepared[k]);
    }
    int turn = compiles ? -1 : take_turn(side, message, "build", JOINT_BUILD);
    for (int i = 0; !compiles && i < n; i++)
        if (executor_sick(side->executor))
            prepared_free(side->executor, prepared[i]);
        else
            finish_preparing(side, prepared[i]);
    end_turn(turn);
    free(prepared);
    end(side);
}

static void do_time(WorkerSide *side, const json_t *message)
{
    int number = (int)json_int_of(message, "job", 0);
    for (int i = 0; i < side->nprepared; i++) {
        PreparedJob *prepared = side->prepared[i];
        if (prepared_number(prepared) != number)
            continue;
        side->prepared[i] = side->prepared[--side->nprepared];
        int turn = take_turn(side, message, "time", number);
        executor_time(side->executor, prepared, message);
        end_turn(turn);
        message_send(side->fd, prepared_report(prepared));
        prepared_free(side->executor, prepared);
        break;
    }
    end(side);
}

static void drop_pieces(WorkerSide *side)
{
    for (int i = 0; i < side->nprepared; i++)
        prepared_free(side->executor, side->prepared[i]);
    side->nprepared = 0;
}

static void do_drop(WorkerSide *side, const json_t *message)
{
    drop_pieces(side);
    end(side);
}

static const struct {
    const char *name;
    void (*run)(WorkerSide *side, const json_t *message);
    bool needs_bench;
} commands[] = {
    {"list", do_list, false}, {"open", do_open, false}, {"prepare", do_prepare, true},
    {"time", do_time, true},  {"drop", do_drop, true},
};

static void obey(WorkerSide *side, const json_t *message)
{
    const char *name = json_text_of(message, "do");
    for (int i = 0; i < COUNTOF(commands); i++)
        if (strcmp(commands[i].name, name) == 0 &&
            (side->executor || !commands[i].needs_bench))
            commands[i].run(side, message);
}

static void let_go(WorkerSide *side)
{
    drop_pieces(side);
    if (side->executor)
        executor_close(side->executor);
    free(side->prepared);
}

int worker_main(int argc, char **argv)
{
    WorkerSide side = {.fd = argc > 2 ? atoi(argv[2]) : -1};
    if (argc < 3 || fcntl(side.fd, F_SETFD, FD_CLOEXEC) != 0) {
        fprintf(stderr, "%s is how forewarp starts its own workers\n", WORKER_COMMAND);
        return 2;
    }
    json_t *message;
    while ((message = message_receive(side.fd))) {
        obey(&side, message);
        json_decref(message);
        if (side.executor && executor_sick(side.executor))
            _exit(1); // letting go of a broken device may hang
    }
    let_go(&side);
    return 0;
}
