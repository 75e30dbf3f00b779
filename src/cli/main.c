// SPDX-License-Identifier: Apache-2.0
//
// The command line: reads it by the tables, runs the command, prints what went wrong.
// Exit status: 0 done, 1 the work failed, 2 the command or a text was wrong.

#include "cli/cli.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const Command commands[COMMANDS] = {
#define COMMAND(id, name, args, doc) {#name, args, doc, cmd_##name},
#include "cli/commands.def"
#undef COMMAND
};

typedef struct {
    int key;
    const char *name, *arg;
    int commands;
    const char *doc;
} OptionRow;

static const OptionRow option_rows[] = {
#define OPTION(key, name, arg, commands, doc) {key, name, arg, commands, doc},
#include "cli/options.def"
#undef OPTION
};

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
    for (int i = 0; i < MATHS; i++)
        if (strcmp(math_info[i].text, text) == 0) {
            o->math = (Math)i;
            return true;
        }
    return wrong(o, "--math takes standard, exact or fast", text);
}

static bool parse_stages(Options *o, const char *text)
{
    char end;
    return (sscanf(text, "%7d,%7d%c", &o->stage[0], &o->stage[1], &end) == 2 &&
            o->stage[0] > 0 && o->stage[1] > 0) ||
           wrong(o, "--stages takes N,M, both above 0", text);
}

static bool take_option(Options *o, int key, char *arg)
{
    switch (key) {
    case 's': return parse_sizes(o, arg);
    case 'd': o->device = arg; return o->device_given = true;
    case 301:
        o->seed = strtoull(arg, NULL, 10);
        return is_whole(arg) || wrong(o, "a seed is a whole number", arg);
    case 302: o->json = arg; return true;
    case 303: o->strategy = arg; return true;
    case 'b': return parse_budget(o, arg);
    case 'o':
        if (o->nout == CLI_LIST_MAX)
            return wrong(o, "too many outputs", arg);
        o->out[o->nout++] = arg;
        return true;
    case 304: return parse_in(o, arg);
    case 'p': o->point = arg; return true;
    case 305: o->best = true; return true;
    case 't': o->target = arg; return true;
    case 306: o->check = true; return true;
    case 307: o->store = arg; return true;
    case 308: o->fresh = true; return true;
    case 311: o->device_model = arg; return true;
    case 309: o->svg = arg; return true;
    case 310:
        o->random_repeat = atoi(arg);
        return (is_whole(arg) && o->random_repeat > 0 && strlen(arg) < 8) ||
               wrong(o, "--random-repeat takes a whole number above 0", arg);
    case 'n': return parse_count(o, arg, &o->number);
    case 312: return parse_count(o, arg, &o->threads);
    case 313: o->csv = arg; return true;
    case 370: o->derived = true; return true;
    case 314: return parse_count(o, arg, &o->sample);
    case 315: o->derivation = arg; return true;
    case 316: o->print = arg; return true;
    case 317: o->model = arg; return true;
    case 318: o->leave_out = arg; return true;
    case 319:
        o->features = arg;
        return strcmp(arg, column_set_name[COLUMNS_PAPER]) == 0 ||
               strcmp(arg, column_set_name[COLUMNS_ALL]) == 0 ||
               wrong(o, "--features takes paper or all", arg);
    case 350: return parse_math(o, arg);
    case 348: o->prior = arg; return true;
    case 340: return o->measure = true;
    case 341: return parse_count(o, arg, &o->repeat);
    case 330: return parse_count(o, arg, &o->limit);
    case 360: o->where = arg; return true;
    case 361: return parse_stages(o, arg);
    case 380: o->t4 = arg; return true;
    case 381: o->cache = arg; return true;
    case 'q': o->quiet = true; return true;
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
        o->file = o->list[o->nlist++] = arg;
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
        argp_error(state,
                   wanted_args(o->command) == 1 && !takes_list(o->command)
                       ? "%s: which program?"
                       : "%s takes %s",
                   o->command->name, o->command->args);
    for (int i = 0; i < COUNTOF(option_rows); i++)
        if (option_rows[i].key == key) {
            take_option(o, key, arg);
            return 0;
        }
    return ARGP_ERR_UNKNOWN;
}

static int run_command(const Command *command, int argc, char **argv)
{
    struct argp_option table[COUNTOF(option_rows) + 1] = {0};
    int n = 0;
    for (int i = 0; i < COUNTOF(option_rows); i++)
        if (option_rows[i].commands & (1 << (int)(command - commands)))
            table[n++] = (struct argp_option){.name = option_rows[i].name,
                                              .key = option_rows[i].key,
                                              .arg = option_rows[i].arg,
                                              .doc = option_rows[i].doc};
    struct argp argp = {.options = table,
                        .parser = on_option,
                        .args_doc = command->args,
                        .doc = command->doc};
    Options options = {.command = command,
                       .device = "opencl:0",
                       .strategy = "auto",
                       .seed = 1,
                       .budget_s = INFINITY,
                       .arena = arena_new()};
    diags_init(&options.diags, options.arena);
    char *name = arena_printf(options.arena, "forewarp %s", command->name);
    argv[0] = name;
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    int status = options.bad ? 2 : command->run(&options);
    Buf text;
    buf_init(&text);
    diags_print(&text, &options.diags);
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

static int usage(FILE *out, int status)
{
    fputs("Usage: forewarp COMMAND [OPTION...] ...\n\n", out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].doc);
    fputs("\n`forewarp COMMAND --help` lists a command's options.\n", out);
    return status;
}

int main(int argc, char **argv)
{
    argp_err_exit_status = 2;
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    if (argc < 2)
        return usage(stderr, 2);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return puts("forewarp " FW_VERSION) < 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0)
        return usage(stdout, 0);
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return run_command(&commands[i], argc - 1, argv + 1);
    fprintf(stderr, "forewarp: there is no command `%s`\n", argv[1]);
    return usage(stderr, 2);
}
