// SPDX-License-Identifier: Apache-2.0
//
// cli: the program: main.c and one cmd_*.c a command, from the tables commands.def and
// options.def. Only this module prints.

#ifndef FW_CLI_H
#define FW_CLI_H

#include "fuse/fuse.h"
#include "model/dataset.h"
#include "plan/ceiling.h"

#include <jansson.h>

typedef struct Options Options;

typedef struct {
    const char *name, *args, *doc;
    int (*run)(Options *options);
} Command;

enum {
#define COMMAND(id, name, args, doc) CMD_##id,
#include "cli/commands.def"
#undef COMMAND
    COMMANDS
};
enum {
#define COMMAND(id, name, args, doc) FOR_##id = 1 << CMD_##id,
#include "cli/commands.def"
#undef COMMAND
    FOR_NONE = 0
};
extern const Command commands[COMMANDS];

#define COMMAND(id, name, args, doc) int cmd_##name(Options *options);
#include "cli/commands.def"
#undef COMMAND

enum { CLI_LIST_MAX = 64 };

// What the command line said; strings are the command line's own.
struct Options {
    const Command *command;
    const char *file;               // the argument, NULL if none
    const char *data;               // the second one
    const char *list[CLI_LIST_MAX]; // all, of a command that takes FILE...
    int nlist;
    Arena *arena;
    Diags diags;
    Problem *problem; // freed after the diagnostics that point into it were printed
    Script *script;   // likewise
    Binding binding[CLI_LIST_MAX];
    int nbinding;
    const char *device, *device_model, *json, *strategy, *point, *target, *store, *svg, *t4,
        *cache;
    uint64_t seed;
    double budget_s;
    int64_t budget_trials;
    int random_repeat;
    const char *features, *leave_out, *model, *prior;
    const char *csv, *derivation, *print;
    bool derived;
    int64_t number, threads, sample, limit, repeat;
    const char *where;
    int stage[2];
    bool device_given;
    Math math;
    const char *in_name[CLI_LIST_MAX], *in_file[CLI_LIST_MAX];
    int nin;
    const char *out[CLI_LIST_MAX];
    int nout;
    bool best, check, fresh, measure, quiet, bad;
};

// cmd_fuse.c: a script of calls, by its suffix .fws; tuning it, with the exit status.
bool cli_is_script(const char *path);
int cli_tune_script(Options *options, const char *out);

// The program or problem file, parsed; bound too if bind. NULL with diagnostics.
Problem *cli_problem(Options *options, bool bind);
Problem *cli_program(Options *options, bool bind); // not a template
Workplace cli_place(Options *options);             // caches under the user's cache folder
const char *cli_store(Options *options);
bool cli_json(Options *options,
              json_t *json); // takes json; true if there is nothing to write
// The point asked for by --point or --best, else the plain one. False with diagnostics.
bool cli_point(Options *options, const Ways *ways, const DeviceInfo *device, Point *point);
// The description of the device asked for, without keeping it open; false with diagnostics.
bool cli_device(Options *options, DeviceInfo *info);
// The kind of model that the command's first argument names; NULL with a diagnostic.
const ModelKind *cli_model_kind(Options *options);
// The columns that --features names, else those of the kind.
ColumnSet cli_columns(const Options *options, const ModelKind *kind);
void cli_time(Buf *out, double ns); // "1.234 ms"
// eval and fit of the model of symbolic counts.
int eval_linear(Options *options);
int fit_linear(Options *options);
// The time below which no kernel of a problem gets, with what bounds it.
typedef struct {
    Floor floor;
    double bytes, flops;
} Limit;
void cli_print_floor(const Limit *limit); // nothing where it is not known
// The floor, and the share of it that a time reaches; null where it is not known.
json_t *cli_floor_json(const Limit *limit, double ns);

#endif
