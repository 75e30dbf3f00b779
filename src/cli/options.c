// SPDX-License-Identifier: Apache-2.0
//
// Reads the value of each option of options.def into Options, or reports it as wrong.

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

const OptionRow option_rows[OPTIONS] = {
#define OPTION(id, letter, name, arg, commands, doc) {letter, name, arg, commands, doc},
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
    for (char *item = strtok_r(text, ", ", &save); item;
         item = strtok_r(NULL, ", ", &save)) {
        if (o->nbinding == CLI_LIST_MAX ||
            !binding_parse(item, o->arena, &o->binding[o->nbinding]))
            return wrong(o, "-s takes NAME=VALUE,... or NAME=LOW:HIGH, whole numbers",
                         item);
        o->nbinding++;
    }
    return true;
}

// 30s, 5m, 2h, 200t, 95% or quiet:50t; a number that no clock or search comes to is a slip.
static bool parse_end(Options *o, const char *text)
{
    bool tunes = o->command == &commands[CMD_TUNE];
    bool times_only = o->command == &commands[CMD_CALIBRATE];
    const char *what = times_only ? "a budget of calibrate is 30s, 5m or 1h, above 0"
                       : tunes ? "a budget is 30s, 5m, 1h, 200t, 95% or quiet:50t, above 0"
                               : "a budget is 30s, 5m, 1h or 200t, above 0";
    bool quiet = tunes && strncmp(text, "quiet:", 6) == 0;
    const char *number = quiet ? text + 6 : text;
    char *end;
    double n = strtod(number, &end), *seconds = quiet ? &o->quiet_s : &o->budget_s;
    if (end == number || !(n > 0) || n > 1e9 || !*end || end[1])
        return wrong(o, what, text);
    switch (*end) {
    case 't':
        *(quiet ? &o->quiet_trials : &o->budget_trials) = (int64_t)n;
        return (n >= 1 && !times_only) || wrong(o, what, text);
    case 's': *seconds = n; return true;
    case 'm': *seconds = 60 * n; return true;
    case 'h': *seconds = 3600 * n; return true;
    case '%': o->share = n / 100; return (tunes && !quiet) || wrong(o, what, text);
    default: return wrong(o, what, text);
    }
}

static bool parse_budget(Options *o, char *text)
{
    char *save = NULL, *item = strtok_r(text, ",", &save);
    bool ok = item || parse_end(o, "");
    for (; ok && item; item = strtok_r(NULL, ",", &save))
        ok = parse_end(o, item);
    return ok;
}

// NAME=EXPRESSION, or the name alone of what is told anyway.
static bool parse_metric(Options *o, char *text)
{
    char *eq = strchr(text, '=');
    if (eq == text || !*text || (eq && !eq[1]))
        return wrong(o, "--metric takes NAME=EXPRESSION", text);
    if (eq)
        *eq = 0;
    GoalText metric = {text, eq ? eq + 1 : text,
                       arena_printf(o->arena, "--metric %s", text)};
    VEC_PUSH(o->arena, &o->goal.metric, metric);
    return true;
}

static bool parse_objective(Options *o, const char *text)
{
    VEC_PUSH(o->arena, &o->goal.objective, ((GoalText){NULL, text, "--objective"}));
    return *text || wrong(o, "--objective takes an expression", text);
}

// A file of its own: neither standard output, where others write, nor without a name, which
// a store loses when the command ends.
static bool parse_file(Options *o, OptionId option, char *text, const char **path)
{
    *path = text;
    return (text[0] && strcmp(text, "-") != 0) ||
           wrong(o,
                 arena_printf(o->arena, "--%s takes the name of a file",
                              option_rows[option].name),
                 text);
}

// Where nothing goes to several files, the second would be taken for written.
static bool parse_out(Options *o, char *text)
{
    if (o->nout == CLI_LIST_MAX)
        return wrong(o, "too many outputs", text);
    int command = 1 << (int)(o->command - commands);
    if (!(command & (FOR_EMIT | FOR_WISDOM | FOR_REPORT)) && strcmp(text, "-") == 0)
        return wrong(o, "--out takes a name here", text);
    o->out[o->nout++] = text;
    return o->nout == 1 || o->command == &commands[CMD_RUN] ||
           wrong(o, "-o is given twice", text);
}

// tune measures on several devices, and emit --host writes for several. Elsewhere a second
// one would be taken for used.
static bool parse_device(Options *o, char *text)
{
    bool again = o->device_given;
    o->device_given = true;
    if (o->command == &commands[CMD_TUNE] || o->command == &commands[CMD_EMIT]) {
        o->device = again ? arena_printf(o->arena, "%s,%s", o->device, text) : text;
        return true;
    }
    o->device = text;
    if (!again && !strchr(text, ','))
        return true;
    const char *what = arena_printf(o->arena, "%s takes one device, and this is %s",
                                    o->command->name, again ? "another" : "a list");
    return wrong(o, what, text);
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

enum { COUNT_MOST = 10000000 };

static bool parse_count(Options *o, OptionId option, const char *text, int64_t most,
                        int64_t *count)
{
    *count = strtoll(text, NULL, 10);
    if (is_whole(text) && *count > 0 && *count <= most)
        return true;
    const char *what = arena_printf(o->arena, "--%s takes a whole number from 1 to %lld",
                                    option_rows[option].name, (long long)most);
    return wrong(o, what, text);
}

static bool parse_math(Options *o, const char *text)
{
    return math_find(text, &o->math) ||
           wrong(o, "--math takes standard, exact, strict or fast", text);
}

static bool parse_extra(Options *o, char *text)
{
    char *save = NULL;
    for (char *at = strtok_r(text, ",", &save); at; at = strtok_r(NULL, ",", &save)) {
        int i = 0;
        while (i < EXTRAS && strcmp(extra_text[i], at) != 0)
            i++;
        if (i == EXTRAS)
            return wrong(
                o, "--extra takes images, groups, loads and banks, joined by commas", at);
        o->extra |= 1u << i;
    }
    return true;
}

static bool parse_colour(Options *o, const char *text)
{
    static const char *const when[] = {"auto", "always", "never"};
    int i = FIND_TEXT(when, COUNTOF(when), text);
    o->colour = MAX(i, 0);
    return i >= 0 || wrong(o, "--color takes auto, always or never", text);
}

static bool parse_stages(Options *o, const char *text)
{
    char end;
    return (sscanf(text, "%7d,%7d%c", &o->stage[0], &o->stage[1], &end) == 2 &&
            o->stage[0] > 0 && o->stage[1] > 0) ||
           wrong(o, "--stages takes N,M, both above 0", text);
}

bool cli_take_option(Options *o, OptionId option, char *arg)
{
    o->given |= (uint64_t)1 << option;
    switch (option) {
    case OPTION_SIZES: return parse_sizes(o, arg);
    case OPTION_DEVICE: return parse_device(o, arg);
    case OPTION_SEED:
        o->seed = strtoull(arg, NULL, 10);
        return is_whole(arg) || wrong(o, "a seed is a whole number", arg);
    case OPTION_JSON: o->json = arg; return true;
    case OPTION_STRATEGY: o->strategy = arg; return true;
    case OPTION_BUDGET: return parse_budget(o, arg);
    case OPTION_OUT: return parse_out(o, arg);
    case OPTION_IN: return parse_in(o, arg);
    case OPTION_POINT: o->point = arg; return true;
    case OPTION_BEST: o->best = true; return true;
    case OPTION_TARGET: o->target = arg; return true;
    case OPTION_ANY_DEVICE: return o->any_device = true;
    case OPTION_HOST: return o->host = true;
    case OPTION_BINARY: return o->binary = true;
    case OPTION_CHECK: o->check = true; return true;
    case OPTION_STORE: return parse_file(o, option, arg, &o->store);
    case OPTION_FRESH: o->fresh = true; return true;
    case OPTION_DEVICE_MODEL: o->device_model = arg; return true;
    case OPTION_LIVE: return o->live = true;
    case OPTION_RANDOM_REPEAT:
        o->random_repeat = atoi(arg);
        return (is_whole(arg) && o->random_repeat > 0 && strlen(arg) < 8) ||
               wrong(o, "--random-repeat takes a whole number above 0", arg);
    case OPTION_NUMBER: return parse_count(o, option, arg, COUNT_MOST, &o->number);
    case OPTION_THREADS: return parse_count(o, option, arg, COUNT_MOST, &o->threads);
    case OPTION_CSV: o->csv = arg; return true;
    case OPTION_AGAIN: o->again = arg; return true;
    case OPTION_WRITTEN: o->written = true; return true;
    case OPTION_DERIVED: o->derived = true; return true;
    case OPTION_UNCHECKED: o->unchecked = true; return true;
    case OPTION_SAMPLE: return parse_count(o, option, arg, COUNT_MOST, &o->sample);
    case OPTION_DERIVATION: o->derivation = arg; return true;
    case OPTION_PRINT: o->print = arg; return true;
    case OPTION_MODEL: o->model = arg; return true;
    case OPTION_POINTS: o->points = arg; return true;
    case OPTION_SHARES: o->shares = true; return true;
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
    case OPTION_SANDBOX: return o->sandbox = true;
    case OPTION_MEASURE: return o->measure = true;
    case OPTION_REPEAT: return parse_count(o, option, arg, COUNT_MOST, &o->repeat);
    case OPTION_LIMIT: return parse_count(o, option, arg, COUNT_MOST, &o->limit);
    case OPTION_WHERE: o->where = arg; return true;
    case OPTION_OBJECTIVE: return parse_objective(o, arg);
    case OPTION_METRIC: return parse_metric(o, arg);
    case OPTION_STAGES: return parse_stages(o, arg);
    case OPTION_SAMPLES: return parse_count(o, option, arg, TRIAL_SAMPLES, &o->samples);
    case OPTION_T4: return parse_file(o, option, arg, &o->t4);
    case OPTION_CACHE: return parse_file(o, option, arg, &o->cache);
    case OPTION_QUIET: o->quiet = true; return true;
    case OPTION_COLOUR: return parse_colour(o, arg);
    case OPTION_COMPLETION: o->completion = arg; return true;
    case OPTIONS: break;
    }
    BUG("an option out of the table");
}
