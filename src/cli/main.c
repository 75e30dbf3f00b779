// SPDX-License-Identifier: Apache-2.0
//
// The command line: reads it by the tables, runs the command, prints what went wrong.
// Exit status: 0 done, 1 the work failed, 2 the command or a text was wrong.

#include "cli/cli.h"
#include "cost/counts_sum.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const Command commands[COMMANDS] = {
#define COMMAND(id, name, args, doc) {#name, args, doc, cmd_##name},
#include "cli/commands.def"
#undef COMMAND
};

// What argp calls the option: its letter, or a number above all letters.
static int option_key(int option)
{
    return option_rows[option].letter ? option_rows[option].letter : 256 + option;
}

// How many arguments the command takes (at most two), and how many it got.
static int wanted_args(const Command *command)
{
    return !command->args[0] ? 0 : strchr(command->args, ' ') ? 2 : 1;
}

static int count_args(const Options *o)
{
    return (o->file != NULL) + (o->data != NULL);
}

// An argument that reads like the value of an option: which one.
static const char *missing_option(const Options *o, const char *arg)
{
    const DeviceKind *kind;
    int index;
    bool device = device_parse(arg, &kind, &index);
    if (device || (isupper((unsigned char)arg[0]) && strchr(arg, '=')))
        return arena_printf(o->arena, "; did you mean `-%c %s`?", device ? 'd' : 's', arg);
    return "";
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    Options *o = state->input;
    if (key == ARGP_KEY_ARG && strstr(o->command->args, "...")) {
        if (o->nlist == CLI_LIST_MAX)
            argp_error(state, "more than %d files", CLI_LIST_MAX);
        o->list[o->nlist++] = arg;
        *(o->file ? &o->data : &o->file) = o->data ? o->data : arg;
        return 0;
    }
    if (key == ARGP_KEY_ARG) {
        if (count_args(o) == wanted_args(o->command))
            argp_error(state, "unexpected argument `%s`%s", arg, missing_option(o, arg));
        *(o->file ? &o->data : &o->file) = arg;
        return 0;
    }
    if (key == ARGP_KEY_END && count_args(o) < wanted_args(o->command) &&
        isupper((unsigned char)o->command->args[0]))
        argp_error(state, "%s is missing", o->command->args);
    for (int i = 0; i < OPTIONS; i++)
        if (option_key(i) == key) {
            cli_take_option(o, (OptionId)i, arg);
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

// One argument as a shell reads it back.
static void put_argument(Buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=./,:@%^";
    if (text[0] && !text[strspn(text, plain)]) {
        buf_puts(out, text);
        return;
    }
    buf_putc(out, '\'');
    for (; *text; text++)
        buf_printf(out, *text == '\'' ? "'\\''" : "%c", *text);
    buf_putc(out, '\'');
}

static const char *command_line(Arena *arena, int argc, char **argv)
{
    Buf text = buf_new();
    buf_puts(&text, "forewarp");
    for (int i = 0; i < argc; i++) {
        buf_putc(&text, ' ');
        put_argument(&text, argv[i]);
    }
    return buf_keep(&text, arena);
}

// What argp is to read: the options of the command.
static struct argp command_argp(const Command *command,
                                struct argp_option table[OPTIONS + 1])
{
    int n = 0;
    for (int i = 0; i < OPTIONS; i++)
        if (option_rows[i].commands & (1 << (int)(command - commands)))
            table[n++] = (struct argp_option){.name = option_rows[i].name,
                                              .key = option_key(i),
                                              .arg = option_rows[i].arg,
                                              .doc = option_rows[i].doc};
    table[n] = (struct argp_option){0};
    return (struct argp){.options = table,
                         .parser = on_option,
                         .args_doc = command->args,
                         .doc = command->doc};
}

void cli_command_help(const Command *command)
{
    struct argp_option table[OPTIONS + 1];
    struct argp argp = command_argp(command, table);
    char name[64];
    snprintf(name, sizeof name, "forewarp %s", command->name);
    argp_help(&argp, stdout, ARGP_HELP_STD_HELP & ~(unsigned)ARGP_HELP_EXIT_OK, name);
}

// The exit status, once what was printed is out.
static int flushed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "forewarp: cannot write standard output: %s\n", strerror(errno));
    return 1;
}

static int run_command(const Command *command, int argc, char **argv)
{
    struct argp_option table[OPTIONS + 1];
    struct argp argp = command_argp(command, table);
    if (!cli_knows_options(command, argc, argv))
        return 2;
    Options options = {.command = command,
                       .device = cli_default_device,
                       .seed = 1,
                       .budget_s = INFINITY,
                       .arena = arena_new()};
    options.diags = (Diags){.arena = options.arena};
    options.line = command_line(options.arena, argc, argv);
    char *name = arena_printf(options.arena, "forewarp %s", command->name);
    argv[0] = name;
    errno = argp_parse(&argp, argc, argv, 0, NULL, &options);
    if (errno) { // no memory: wrong commands do not come back
        perror("forewarp");
        return 1;
    }
    int status = options.bad || !cli_allows(&options) ? 2 : command->run(&options);
    Buf text = buf_new();
    (cli_colour(&options, STDERR_FILENO) ? diags_paint : diags_print)(&text,
                                                                      &options.diags);
    cli_paint(text.text);
    buf_release(&text);
    int worst = diags_exit_status(&options.diags);
    problem_free(options.problem);
    script_free(options.script);
    arena_free(options.arena);
    status = flushed(worst ? worst : status);
    return cli_signal() ? 128 + cli_signal() : status;
}

static int no_command(const char *name)
{
    Guess guess = guess_new(name);
    AutoBuf hint = buf_new();
    for (int i = 0; i < COMMANDS; i++)
        guess_offer(&guess, commands[i].name);
    guess_print(&hint, &guess);
    fprintf(stderr, "forewarp: there is no command `%s`%s\n%s", name, hint.text,
            "`forewarp help` lists the commands.\n");
    return 2;
}

static int run(int argc, char **argv)
{
    argp_err_exit_status = 2;
    cli_guard();
    json_set_alloc_funcs(xmalloc, free); // what it cannot allocate is no fault of the text
    sum_memory();
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    if (argc < 2) {
        cli_help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return flushed(puts("forewarp " FW_VERSION) < 0);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0)
        return flushed(cli_help(stdout));
    int i = FIND(commands, COMMANDS, name, argv[1]);
    return i < 0 ? no_command(argv[1]) : run_command(&commands[i], argc - 1, argv + 1);
}

typedef struct {
    int argc;
    char **argv;
    int status;
} Main;

static void run_deep(void *user)
{
    Main *m = user;
    m->status = run(m->argc, m->argv);
}

int main(int argc, char **argv)
{
    Main m = {argc, argv, 1};
    signal(SIGXFSZ, SIG_IGN); // a file over `ulimit -f` is an error that is told
    thread_defaults();
    deep_call(run_deep, &m);
    return m.status;
}
