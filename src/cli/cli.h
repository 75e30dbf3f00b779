// SPDX-License-Identifier: Apache-2.0
//
// cli: the program: main.c, the options (options.c) and one cmd_*.c a command, from the
// tables commands.def and options.def. Only this module prints.

#ifndef FW_CLI_H
#define FW_CLI_H

#include "calibrate/ceiling.h"
#include "fuse/fuse.h"
#include "measure/json.h"
#include "measure/peers.h"
#include "model/dataset.h"
#include "search/steps.h"
#include "tune/tune.h"

#include <pthread.h>

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
    FOR_ALL = (1 << COMMANDS) - 1
};
extern const Command commands[COMMANDS];

#define COMMAND(id, name, args, doc) int cmd_##name(Options *options);
#include "cli/commands.def"
#undef COMMAND

// A row of options.def. letter: 0 if there is none; arg: NULL if it takes none; commands: a
// set of FOR_ bits.
typedef struct {
    int letter;
    const char *name, *arg;
    int commands;
    const char *doc;
} OptionRow;
typedef enum {
#define OPTION(id, letter, name, arg, takes, commands, doc) OPTION_##id,
#include "cli/options.def"
#undef OPTION
    OPTIONS
} OptionId;
extern const OptionRow option_rows[OPTIONS];
// Reads what was given with an option; false, with a diagnostic and o->bad, if it is wrong.
// Texts are kept, and a list is cut at its commas. arg: NULL where it takes none.
bool cli_take_option(Options *o, OptionId option, char *arg);
void cli_command_help(const Command *command); // as --help, on standard output
// unknown.c. False: one of the long options is none of the command's, which was said.
bool cli_knows_options(const Command *command, int argc, char **argv);
int cli_help(FILE *out); // all commands and topics; 0

#define GIVEN(id) ((uint64_t)1 << OPTION_##id)
_Static_assert(OPTIONS <= 64, "a bit each");
// False, with a diagnostic, if one of these options is given: what (a use of the command)
// has nothing to do with them.
bool cli_refuse(Options *o, const char *what, uint64_t options);
// uses.c: false, with a diagnostic, if an option is given that means nothing to this use of
// the command, as far as the command line tells.
bool cli_allows(Options *o);

// The most of an option that may be repeated, and of --in and -o: as many as a script has.
enum { CLI_LIST_MAX = 64, CLI_ARRAYS_MAX = 1024 };

// What the command line said; strings are the command line's own.
struct Options {
    const Command *command;
    const char *line;               // the command as typed, for a shell
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
    const char *device, *device_model, *json, *strategy, *point, *target, *store, *t4,
        *cache;
    uint64_t seed;
    double budget_s;
    int64_t budget_trials;
    const char *features, *leave_out, *points, *model, *prior;
    const char *csv, *derivation, *print, *again;
    bool derived, written, unchecked;
    int64_t number, threads, sample, limit, repeat, random_repeat;
    const char *where, *loading;
    GoalTexts goal;
    double share, quiet_s; // as of TuneOptions
    int64_t quiet_trials;
    int stage[2];
    int64_t samples;
    bool device_given;
    Math math;
    const char *in_name[CLI_ARRAYS_MAX], *in_file[CLI_ARRAYS_MAX];
    int nin;
    const char *out[CLI_ARRAYS_MAX];
    int nout;
    const char *completion;
    unsigned extra; // a bit each of Extra
    uint64_t given; // a bit each of OptionId
    enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER } colour;
    bool best, any_device, host, binary, check, fresh, live, measure, mpi, quiet, sandbox,
        shares, bad;
};

// predict_shares.c: predict --shares.
bool cli_predict_shares(Options *options, Problem *problem);
// replay_steps.c: replay of a heuristic file.
int cli_replay_steps(Options *options);
// cmd_report.c: the page of n records, at path or (NULL) beside the first; where it is, or
// NULL with a diagnostic.
const char *cli_report(Options *options, const char *const *record, int n,
                       const char *path);
// NAME.html in the folder, of a run that goes on.
void cli_report_live(const struct Run *run, const char *folder);
// fuse_stages.c: fuse of a program.
int cli_fuse_program(Options *options);

// safe.c: what is printed from then on cannot command the terminal.
void cli_guard(void);
// Standard output, byte by byte unless it is a terminal; false with a diagnostic.
bool cli_put(Options *o, const Buf *text);
// Into a file, packed if its name ends with .gz, or as cli_put where it is `-` or NULL.
bool cli_write(Options *o, const char *path, const Buf *text);
// Standard error, with colours of ours: what is not ours in the text is safe.
void cli_paint(const char *text);

// mpi.c: several processes that tune together; rank 0 leads, the others serve it.
typedef struct Mpi Mpi;
// NULL with a diagnostic: there is no MPI in this build, or it does not start.
Mpi *mpi_open(Options *options);
int mpi_rank(const Mpi *mpi);          // NULL: 0
int mpi_local(const Mpi *mpi, int *n); // rank among those on this machine, and their number
const RunnerPeer *mpi_peers(const Mpi *mpi, int *n); // of rank 0
const Link *mpi_leader(const Mpi *mpi);              // of the others
// Prints the diagnostics, and returns the exit status; accepts NULL, which has none to
// print. Does not return where a rank is lost.
int mpi_close(Mpi *mpi, int status);

// The program or problem file, parsed, and bound as asked. NULL with diagnostics.
typedef enum { SIZES_LATER, SIZES_OPEN, SIZES_ALL } CliSizes; // OPEN: problem_bind_open
Problem *cli_problem(Options *options, CliSizes sizes);
const char *cli_objective(const Options *options);      // the first; NULL: none is said
Problem *cli_program(Options *options, CliSizes sizes); // not a template
// The devices that `list` names, "cuda:0,cuda:1" or "cuda:*", in an array of the arena; 0
// with a diagnostic.
int cli_devices(Options *options, const char *list, const char ***device);
// Caches under the user's cache folder; with --sandbox, what keeps the workers of the
// problem in. False with a diagnostic: the system cannot.
// What SIGINT, SIGTERM and SIGHUP make due, from the first call on: commands that get it
// end in good order. The second of a kind ends the process at once.
const Stop *cli_stop(void);
int cli_signal(void); // that came; 0: none

// Where commands run kernels that are trusted, until cli_stop is due.
Workplace cli_workplace(Options *options);
bool cli_place(Options *options, const Problem *problem, Workplace *place);
const char *cli_store(Options *options);
// A folder of files that come with the program: installed, or `beside` where it was built,
// from there. NULL: not found.
const char *cli_share(Options *options, const char *name, const char *beside);
// The folder of models that come with the program, or NULL.
const char *cli_models_folder(Options *options);
// False where standard output is to hold the result as JSON or a table, and nothing else.
bool cli_prints(const Options *options);
bool cli_json(Options *options,
              json_t *json); // takes json; true if there is nothing to write
bool cli_json_exact(Options *options, json_t *json); // numbers that read back the same
bool cli_result(Options *options, json_t *json);     // as text too (report/report.h)
json_t *cli_set_json(Calls calls); // the numbers of a set of calls, from 1
// The names of the elements that a fusion touches and the test holds for.
typedef bool ElemTest(const Script *script, const Fusion *fusion, int elem);
json_t *cli_elems_json(const Script *script, const Fusion *fusion, ElemTest *test);
// The point asked for by --point or --best, else the plain one. False with diagnostics.
// *rule: of a stored plan for ranges of sizes; else NULL.
bool cli_rule(Options *o, const Variants *variants, const DeviceInfo *device, Point *point,
              const char **rule);
bool cli_point(Options *options, const Variants *variants, const DeviceInfo *device,
               Point *point);
// The description of the device asked for, without keeping it open; false with diagnostics.
bool cli_device(Options *options, DeviceInfo *info);
extern const char cli_default_device[];
// The kind of model that the command's first argument names; NULL with a diagnostic.
const ModelKind *cli_model_kind(Options *options);
// What a command takes for MODEL, n names; owner: arena.
const char **cli_model_names(const Command *command, Arena *arena, int *n);
// "there is no WHAT `name`", with the nearest of those known, or all; false.
bool cli_unknown(Options *options, const char *code, const char *what, const char *name,
                 const char *const *known, int n);
// The files of --in, each of an input of the problem.
bool cli_inputs(Options *options, const Problem *problem, InputFiles *files);
// Reads the heuristic file that the strategy names, if it names one, and has it followed;
// false with diagnostics.
bool cli_steps(Options *options, const Steps **steps);
bool cli_no_strategy(Options *options, const char *strategy);
// The target that the options name, else the device's; NULL with diagnostics.
const Target *cli_target(Options *options, const DeviceInfo *device);
// The columns that --features names, else those of the kind.
ColumnSet cli_columns(const Options *options, const ModelKind *kind);
void cli_time(Buf *out, double ns); // "1.234 ms"
// Whether text for this file may be coloured: --color, else a terminal without NO_COLOR.
bool cli_colour(const Options *options, int file);
// eval and fit of the model of symbolic counts.
int eval_linear(Options *options);
// eval and fit of what weights miss, on timed points of many programs.
int eval_picks(Options *options);
int eval_terms(Options *options);
int fit_picks(Options *options);
// What --loading says, as a constraint joined to --where; of a bound problem.
bool cli_loading(Options *options, Problem *problem);
// eval of how stencils load their data.
int eval_loading(Options *options);
int eval_points(Options *options); // of recorded spaces
int eval_table(Options *options);  // of numbers
int fit_linear(Options *options);
// The time below which no kernel of a problem gets, with what bounds it.
typedef struct {
    Roofline roofline;
    double bytes, flops;
} Limit;
void cli_print_roofline(const Limit *limit); // nothing where it is not known
// The roofline, and the share of it that a time reaches; null where it is not known.
json_t *cli_roofline_json(const Limit *limit, double ns);

// Completion for shells, from the tables of commands and options.

// Prints the script of a shell to standard output; false if there is none for it.
bool completion_print(const char *shell);
// cmd_help.c: the topics of help, without the commands; the names that one explains.
void help_put_topics(Buf *out);
void help_put_names(Buf *out, const char *topic);

// What a long command says on standard error while it works: on a terminal one line that
// rewrites itself, elsewhere a plain line now and then.

typedef struct {
    const char *stage, *what; // "search", "trials": static texts
    int64_t done, of;         // of: 0 where it is not known
    double budget_s;          // since the screen was opened; INFINITY: none
    double best_ns;           // INFINITY: none yet
} Moment;

typedef struct {
    bool terminal, quiet, colour;
    bool shown;   // there is a line to wipe
    bool ticking; // a thread writes the line again, so that its clock goes on
    bool closed;  // the thread is to end
    pthread_t thread;
    pthread_mutex_t lock; // of all that follows, while it ticks
    pthread_cond_t wake;
    Moment moment; // the last one
    double start_s, last_s;
    const char *stage;  // at hand; static text
    double stage_s;     // when it began
    double at_s[2];     // two moments of it, about ten seconds apart,
    int64_t done_at[2]; // and what was done by then
} Screen;

Screen screen_open(const Options *options);
// Now, if the last time was long enough ago; on a terminal again every second until
// screen_close, which must follow. The screen stays where it is between the two.
void screen_show(Screen *screen, const Moment *moment);
void screen_close(Screen *screen);

#endif
