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
    Bench *bench;
    Piece **piece; // prepared, not yet timed
    int npiece;
    bool inside; // a sandbox
} Side;

static void tell(void *user, const char *stage, int job)
{
    const Side *side = user;
    message_send(side->fd, json_pack("{s:s,s:i}", "at", stage, "job", job));
}

// Waits for the device, where this worker shares it with those of other controllers; -1: it
// does not. What comes next is told, for it has its time limit from now on.
static int take_turn(Side *side, const json_t *message, const char *stage, int job)
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

static void end(const Side *side)
{
    const char *word = bench_sick(side->bench) ? "quit" : "end";
    message_send(side->fd, json_pack("{s:b}", word, 1));
}

// The devices of one kind, or one of them; one that does not open is left out.
static void do_list(Side *side, const json_t *message)
{
    const DeviceKind *kind = device_kind(json_text_of(message, "kind"));
    const json_t *index = json_object_get(message, "index");
    int first = (int)json_integer_value(index);
    int n = !kind ? 0 : index ? first + 1 : kind->count();
    Buf log;
    buf_init(&log);
    for (int i = first; i < n; i++) {
        Device *device = kind->open(i, &log);
        if (!device)
            continue;
        json_t *info = info_to_json(kind->info(device));
        message_send(side->fd, json_pack("{s:o}", "device", info));
        kind->close(device);
    }
    message_send(side->fd, json_pack("{s:b,s:o}", "end", 1, "log", json_text(log.text)));
    buf_release(&log);
}

// In the sandbox, where it is to be in one: before the driver is loaded.
static bool is_settled(Side *side, const json_t *message, Buf *log)
{
    const json_t *wanted = json_object_get(message, "sandbox");
    if (!wanted || side->inside)
        return true;
    return side->inside = sandbox_enter(wanted, side->fd, log);
}

// Also for other buffers on the device that is open.
static void do_open(Side *side, const json_t *message)
{
    Buf log;
    buf_init(&log);
    json_t *answer = json_pack("{s:b}", "end", 1);
    if (!side->bench)
        side->bench = is_settled(side, message, &log) ? bench_open(message, &log) : NULL;
    else if (!bench_fill(side->bench, message, &log)) {
        bench_close(side->bench);
        side->bench = NULL;
    }
    if (side->bench)
        json_object_set_new(answer, "info", info_to_json(bench_info(side->bench)));
    json_object_set_new(answer, "log", json_text(log.text));
    message_send(side->fd, answer);
    buf_release(&log);
}

static void keep(Side *side, Piece *piece)
{
    side->piece = xrealloc(side->piece, sizeof(Piece *) * (size_t)(side->npiece + 1));
    side->piece[side->npiece++] = piece;
}

// Checks a piece that is built, reports, and keeps it if all is well so far.
static void finish_preparing(Side *side, Piece *piece)
{
    bool compiled = bench_compiles(side->bench);
    if (piece_ok(piece) && !compiled)
        bench_check(side->bench, piece, tell, side);
    message_send(side->fd, piece_report(piece));
    if (piece_ok(piece) && !compiled)
        keep(side, piece);
    else
        piece_free(side->bench, piece);
}

static void do_prepare(Side *side, const json_t *message)
{
    const json_t *jobs = json_object_get(message, "jobs");
    int n = (int)json_array_size(jobs);
    Piece **piece = xcalloc((size_t)n, sizeof(Piece *));
    for (int i = 0; i < n; i++) {
        const json_t *job = json_array_get(jobs, (size_t)i);
        piece[i] = piece_new(job, (int)json_int_of(job, "job", 0));
    }
    bool compiles = bench_compiles(side->bench);
    for (int i = 0, len; i < n; i += len) {
        len = bench_joint(piece + i, n - i);
        bench_build(side->bench, piece + i, len, tell, side);
        for (int k = i; compiles && k < i + len; k++) // others may run it meanwhile
            finish_preparing(side, piece[k]);
    }
    int turn = compiles ? -1 : take_turn(side, message, "build", JOINT_BUILD);
    for (int i = 0; !compiles && i < n; i++)
        if (bench_sick(side->bench))
            piece_free(side->bench, piece[i]);
        else
            finish_preparing(side, piece[i]);
    end_turn(turn);
    free(piece);
    end(side);
}

static void do_time(Side *side, const json_t *message)
{
    int number = (int)json_int_of(message, "job", 0);
    for (int i = 0; i < side->npiece; i++) {
        Piece *piece = side->piece[i];
        if (piece_number(piece) != number)
            continue;
        side->piece[i] = side->piece[--side->npiece];
        int turn = take_turn(side, message, "time", number);
        bench_time(side->bench, piece, message);
        end_turn(turn);
        message_send(side->fd, piece_report(piece));
        piece_free(side->bench, piece);
        break;
    }
    end(side);
}

static void drop_pieces(Side *side)
{
    for (int i = 0; i < side->npiece; i++)
        piece_free(side->bench, side->piece[i]);
    side->npiece = 0;
}

static void do_drop(Side *side, const json_t *message)
{
    (void)message;
    drop_pieces(side);
    end(side);
}

static const struct {
    const char *name;
    void (*run)(Side *side, const json_t *message);
    bool needs_bench;
} commands[] = {
    {"list", do_list, false}, {"open", do_open, false}, {"prepare", do_prepare, true},
    {"time", do_time, true},  {"drop", do_drop, true},
};

static void obey(Side *side, const json_t *message)
{
    const char *name = json_text_of(message, "do");
    for (int i = 0; i < COUNTOF(commands); i++)
        if (strcmp(commands[i].name, name) == 0 &&
            (side->bench || !commands[i].needs_bench))
            commands[i].run(side, message);
}

static void let_go(Side *side)
{
    drop_pieces(side);
    if (side->bench)
        bench_close(side->bench);
    free(side->piece);
}

int worker_main(int argc, char **argv)
{
    Side side = {.fd = argc > 2 ? atoi(argv[2]) : -1};
    if (argc < 3 || fcntl(side.fd, F_SETFD, FD_CLOEXEC) != 0) {
        fprintf(stderr, "%s is how forewarp starts its own workers\n", WORKER_COMMAND);
        return 2;
    }
    json_t *message;
    while ((message = message_receive(side.fd))) {
        obey(&side, message);
        json_decref(message);
        if (side.bench && bench_sick(side.bench))
            _exit(1); // letting go of a broken device may hang
    }
    let_go(&side);
    return 0;
}
