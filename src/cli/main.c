// SPDX-License-Identifier: Apache-2.0
//
// The command line: reads it by the tables, runs the command, prints what went wrong.
// Exit status: 0 done, 1 the work failed, 2 the command or a text was wrong.

#include "cli/cli.h"

#include "ir/names.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const Command commands[COMMANDS] = {
#define COMMAND(id, name, args, doc) {#name, args, doc, cmd_##name},
#include "cli/commands.def"
#undef COMMAND
};

enum {
#define OPTION(id, letter, name, arg, commands, doc) OPTION_##id,
#include "cli/options.def"
#undef OPTION
    OPTIONS
};

static const OptionRow option_rows[OPTIONS] = {
#define OPTION(id, letter, name, arg, commands, doc) {letter, name, arg, commands, doc},
#include "cli/options.def"
#undef OPTION
};

const OptionRow *cli_options(int *n)
{
    *n = OPTIONS;
    return option_rows;
}

static bool wrong(Options *o, const char *what, const char *text)
{
    o->bad = true;
    return diag_error(&o->diags, span_none, "C002", "%s: `%s`", what, text);
}

static bool is_whole(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == 0 && strlen(text) < 19;
}

static bool parse_sizes(Options *o, char *text)
{
    char *save = NULL;
    for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(item, '=');
        bool negative = eq && eq[1] == '-';
        if (!eq || eq == item || !is_whole(eq + 1 + negative) ||
            o->nbinding == CLI_LIST_MAX)
            return wrong(o, "-s takes NAME=VALUE,...", item);
        *eq = 0;
        o->binding[o->nbinding++] = (Binding){item, atoll(eq + 1)};
    }
    return true;
}

// 30s, 5m, 2h, or 200t.
static bool parse_budget(Options *o, const char *text)
{
    char *end;
    double n = strtod(text, &end);
    if (end == text || !(n > 0) || !*end || end[1])
        return wrong(o, "a budget is 30s, 5m, 1h or 200t", text);
    switch (*end) {
    case 't': o->budget_trials = (int64_t)n; return n >= 1 || wrong(o, "no trials", text);
    case 's': o->budget_s = n; return true;
    case 'm': o->budget_s = 60 * n; return true;
    case 'h': o->budget_s = 3600 * n; return true;
    default: return wrong(o, "a budget is 30s, 5m, 1h or 200t", text);
    }
}

static bool parse_in(Options *o, char *text)
{
    char *eq = strchr(text, '=');
    if (!eq || eq == text || !eq[1] || o->nin == CLI_LIST_MAX)
        return wrong(o, "--in takes NAME=FILE", text);
    *eq = 0;
    o->in_name[o->nin] = text;
    o->in_file[o->nin++] = eq + 1;
    return true;
}

static bool parse_count(Options *o, const char *text, int64_t *count)
{
    *count = strtoll(text, NULL, 10);
    return (is_whole(text) && *count > 0 && *count <= 10000000) ||
           wrong(o, "a whole number above 0 is wanted", text);
}

static bool parse_math(Options *o, const char *text)
{
    return math_find(text, &o->math) ||
           wrong(o, "--math takes standard, exact or fast", text);
}

static bool parse_extra(Options *o, char *text)
{
    char *save = NULL;
    for (char *at = strtok_r(text, ",", &save); at; at = strtok_r(NULL, ",", &save)) {
        int i = 0;
        while (i < EXTRAS && strcmp(extra_text[i], at) != 0)
            i++;
        if (i == EXTRAS)
            return wrong(o, "--extra takes images, groups and loads, joined by commas", at);
        o->extra |= 1u << i;
    }
    return true;
}

static bool parse_colour(Options *o, const char *text)
{
    static const char *const when[] = {"auto", "always", "never"};
    for (int i = 0; i < COUNTOF(when); i++)
        if (strcmp(when[i], text) == 0) {
            o->colour = i;
            return true;
        }
    return wrong(o, "--color takes auto, always or never", text);
}

static bool parse_stages(Options *o, const char *text)
{
    char end;
    return (sscanf(text, "%7d,%7d%c", &o->stage[0], &o->stage[1], &end) == 2 &&
            o->stage[0] > 0 && o->stage[1] > 0) ||
           wrong(o, "--stages takes N,M, both above 0", text);
}

static bool parse_samples(Options *o, const char *text)
{
    return parse_count(o, text, &o->samples) &&
           (o->samples <= TRIAL_SAMPLES || wrong(o, "--samples takes 1 to 32", text));
}

// What argp calls the option: its letter, or a number above all letters.
static int option_key(int option)
{
    return option_rows[option].letter ? option_rows[option].letter : 256 + option;
}

static bool take_option(Options *o, int option, char *arg)
{
    switch (option) {
    case OPTION_SIZES: return parse_sizes(o, arg);
    case OPTION_DEVICE: o->device = arg; return o->device_given = true;
    case OPTION_SEED:
        o->seed = strtoull(arg, NULL, 10);
        return is_whole(arg) || wrong(o, "a seed is a whole number", arg);
    case OPTION_JSON: o->json = arg; return true;
    case OPTION_STRATEGY: o->strategy = arg; return true;
    case OPTION_BUDGET: return parse_budget(o, arg);
    case OPTION_OUT:
        if (o->nout == CLI_LIST_MAX)
            return wrong(o, "too many outputs", arg);
        o->out[o->nout++] = arg;
        return true;
    case OPTION_IN: return parse_in(o, arg);
    case OPTION_POINT: o->point = arg; return true;
    case OPTION_BEST: o->best = true; return true;
    case OPTION_TARGET: o->target = arg; return true;
    case OPTION_ANY_DEVICE: return o->any_device = true;
    case OPTION_HOST: return o->host = true;
    case OPTION_CHECK: o->check = true; return true;
    case OPTION_STORE: o->store = arg; return true;
    case OPTION_FRESH: o->fresh = true; return true;
    case OPTION_DEVICE_MODEL: o->device_model = arg; return true;
    case OPTION_SVG: o->svg = arg; return true;
    case OPTION_HTML: o->html = arg; return true;
    case OPTION_RANDOM_REPEAT:
        o->random_repeat = atoi(arg);
        return (is_whole(arg) && o->random_repeat > 0 && strlen(arg) < 8) ||
               wrong(o, "--random-repeat takes a whole number above 0", arg);
    case OPTION_NUMBER: return parse_count(o, arg, &o->number);
    case OPTION_THREADS: return parse_count(o, arg, &o->threads);
    case OPTION_CSV: o->csv = arg; return true;
    case OPTION_AGAIN: o->again = arg; return true;
    case OPTION_DERIVED: o->derived = true; return true;
    case OPTION_SAMPLE: return parse_count(o, arg, &o->sample);
    case OPTION_DERIVATION: o->derivation = arg; return true;
    case OPTION_PRINT: o->print = arg; return true;
    case OPTION_MODEL: o->model = arg; return true;
    case OPTION_POINTS: o->points = arg; return true;
    case OPTION_LEAVE_OUT: o->leave_out = arg; return true;
    case OPTION_FEATURES:
        o->features = arg;
        return strcmp(arg, column_set_name[COLUMNS_PAPER]) == 0 ||
               strcmp(arg, column_set_name[COLUMNS_ALL]) == 0 ||
               wrong(o, "--features takes paper or all", arg);
    case OPTION_LOADING: o->loading = arg; return true;
    case OPTION_EXTRA: return parse_extra(o, arg);
    case OPTION_MATH: return parse_math(o, arg);
    case OPTION_PRIOR: o->prior = arg; return true;
    case OPTION_MPI: return o->mpi = true;
    case OPTION_MEASURE: return o->measure = true;
    case OPTION_REPEAT: return parse_count(o, arg, &o->repeat);
    case OPTION_LIMIT: return parse_count(o, arg, &o->limit);
    case OPTION_WHERE: o->where = arg; return true;
    case OPTION_STAGES: return parse_stages(o, arg);
    case OPTION_SAMPLES: return parse_samples(o, arg);
    case OPTION_T4: o->t4 = arg; return true;
    case OPTION_CACHE: o->cache = arg; return true;
    case OPTION_QUIET: o->quiet = true; return true;
    case OPTION_COLOUR: return parse_colour(o, arg);
    case OPTION_COMPLETION: o->completion = arg; return true;
    default: return false;
    }
}

static bool takes_list(const Command *command)
{
    return strstr(command->args, "...") != NULL;
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

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    Options *o = state->input;
    if (key == ARGP_KEY_ARG && takes_list(o->command)) {
        if (o->nlist == CLI_LIST_MAX)
            argp_error(state, "more than %d files", CLI_LIST_MAX);
        o->list[o->nlist++] = arg;
        *(o->file ? &o->data : &o->file) = o->data ? o->data : arg;
        return 0;
    }
    if (key == ARGP_KEY_ARG) {
        if (count_args(o) == wanted_args(o->command))
            argp_error(state, "unexpected argument `%s`", arg);
        *(o->file ? &o->data : &o->file) = arg;
        return 0;
    }
    if (key == ARGP_KEY_END && count_args(o) < wanted_args(o->command) &&
        isupper((unsigned char)o->command->args[0]))
        argp_error(state, "%s is missing", o->command->args);
    for (int i = 0; i < OPTIONS; i++)
        if (option_key(i) == key) {
            take_option(o, i, arg);
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
    Buf text;
    buf_init(&text);
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

static int run_command(const Command *command, int argc, char **argv)
{
    struct argp_option table[OPTIONS + 1];
    struct argp argp = command_argp(command, table);
    Options options = {.command = command,
                       .device = "opencl:0",
                       .strategy = "auto",
                       .seed = 1,
                       .budget_s = INFINITY,
                       .arena = arena_new()};
    diags_init(&options.diags, options.arena);
    options.line = command_line(options.arena, argc, argv);
    char *name = arena_printf(options.arena, "forewarp %s", command->name);
    argv[0] = name;
    errno = argp_parse(&argp, argc, argv, 0, NULL, &options);
    if (errno) { // no memory: wrong commands do not come back
        perror("forewarp");
        return 1;
    }
    int status = options.bad ? 2 : command->run(&options);
    Buf text;
    buf_init(&text);
    (cli_colour(&options, STDERR_FILENO) ? diags_paint : diags_print)(&text,
                                                                      &options.diags);
    fputs(text.text, stderr);
    buf_release(&text);
    int worst = diags_exit_status(&options.diags);
    problem_free(options.problem);
    script_free(options.script);
    arena_free(options.arena);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "forewarp: cannot write standard output: %s\n", strerror(errno));
        return 1;
    }
    return worst ? worst : status;
}

static int no_command(const char *name)
{
    Guess guess;
    Buf hint;
    guess_init(&guess, name);
    buf_init(&hint);
    for (int i = 0; i < COMMANDS; i++)
        guess_offer(&guess, commands[i].name);
    guess_print(&hint, &guess);
    fprintf(stderr, "forewarp: there is no command `%s`%s\n%s", name, hint.text,
            "`forewarp help` lists the commands.\n");
    buf_release(&hint);
    return 2;
}

int main(int argc, char **argv)
{
    argp_err_exit_status = 2;
    json_set_alloc_funcs(xmalloc, free); // what it cannot allocate is no fault of the text
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    if (argc < 2) {
        cli_help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return puts("forewarp " FW_VERSION) < 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0)
        return cli_help(stdout);
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return run_command(&commands[i], argc - 1, argv + 1);
    return no_command(argv[1]);
}
