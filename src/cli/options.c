// SPDX-License-Identifier: Apache-2.0
//
// Reads the value of each option of options.def into Options, or reports it as wrong.

#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const OptionRow option_rows[OPTIONS] = {
#define OPTION(id, letter, name, arg, takes, commands, doc)                                \
    {letter, name, arg, commands, doc},
#include "cli/options.def"
#undef OPTION
};

static bool wrong(Options *o, const char *what, const char *text)
{
    o->bad = true;
    return diag_error(&o->diags, span_none, "C002", "%s: `%s`", what, text);
}

static bool parse_seed(Options *o, char *text)
{
    char *end;
    errno = 0;
    o->seed = strtoull(text, &end, 10);
    bool ok = *text >= '0' && *text <= '9' && !*end && errno == 0;
    return ok || wrong(o, "a seed is a whole number", text);
}

static bool parse_features(Options *o, char *text)
{
    o->features = text;
    return strcmp(text, column_set_name[COLUMNS_PAPER]) == 0 ||
           strcmp(text, column_set_name[COLUMNS_ALL]) == 0 ||
           wrong(o, "--features takes paper or all", text);
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
    VEC_PUSH(
        o->arena, &o->goal.metric,
        (GoalText){text, eq ? eq + 1 : text, arena_printf(o->arena, "--metric %s", text)});
    return true;
}

static bool parse_objective(Options *o, char *text)
{
    VEC_PUSH(o->arena, &o->goal.objective, ((GoalText){NULL, text, "--objective"}));
    return *text || wrong(o, "--objective takes an expression", text);
}

// Where nothing goes to several files, the second would be taken for written.
static bool parse_out(Options *o, char *text)
{
    if (o->nout == CLI_ARRAYS_MAX)
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
    if (!eq || eq == text || !eq[1] || o->nin == CLI_ARRAYS_MAX)
        return wrong(o, "--in takes NAME=FILE", text);
    *eq = 0;
    o->in_name[o->nin] = text;
    o->in_file[o->nin++] = eq + 1;
    return true;
}

static bool parse_math(Options *o, char *text)
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

static bool parse_colour(Options *o, char *text)
{
    static const char *const when[] = {"auto", "always", "never"};
    int i = FIND_TEXT(when, COUNTOF(when), text);
    o->colour = MAX(i, 0);
    return i >= 0 || wrong(o, "--color takes auto, always or never", text);
}

static bool parse_stages(Options *o, char *text)
{
    char end;
    return (sscanf(text, "%7d,%7d%c", &o->stage[0], &o->stage[1], &end) == 2 &&
            o->stage[0] > 0 && o->stage[1] > 0) ||
           wrong(o, "--stages takes N,M, both above 0", text);
}

enum { COUNT_MOST = 10000000 };

// How the value of an option is read. OWN_FILE: neither standard output, where others
// write, nor without a name, which a store loses when the command ends.
#define READ(function)                                                                     \
    {                                                                                      \
        .read = function                                                                   \
    }
#define FLAG(field)                                                                        \
    {                                                                                      \
        TAKES_FLAG, offsetof(Options, field)                                               \
    }
#define TEXT(field)                                                                        \
    {                                                                                      \
        TAKES_TEXT, offsetof(Options, field)                                               \
    }
#define OWN_FILE(field)                                                                    \
    {                                                                                      \
        TAKES_FILE, offsetof(Options, field)                                               \
    }
#define COUNT(field, most)                                                                 \
    {                                                                                      \
        TAKES_COUNT, offsetof(Options, field), most                                        \
    }
static const struct {
    enum { TAKES_OTHER, TAKES_FLAG, TAKES_TEXT, TAKES_FILE, TAKES_COUNT } kind;
    size_t field;
    int64_t most;
    bool (*read)(Options *o, char *text);
} takes_of[OPTIONS] = {
#define OPTION(id, letter, name, arg, takes, commands, doc) takes,
#include "cli/options.def"
#undef OPTION
};

bool cli_take_option(Options *o, OptionId option, char *arg)
{
    void *field = (char *)o + takes_of[option].field;
    const char *name = option_rows[option].name;
    long long most = takes_of[option].most;
    o->given |= (uint64_t)1 << option;
    switch (takes_of[option].kind) {
    case TAKES_FLAG: return *(bool *)field = true;
    case TAKES_TEXT: *(const char **)field = arg; return true;
    case TAKES_FILE:
        *(const char **)field = arg;
        return (arg[0] && strcmp(arg, "-") != 0) ||
               wrong(o, arena_printf(o->arena, "--%s takes the name of a file", name), arg);
    case TAKES_COUNT: {
        int64_t count = *(int64_t *)field = strtoll(arg, NULL, 10);
        const char *what =
            arena_printf(o->arena, "--%s takes a whole number from 1 to %lld", name, most);
        return (*arg && arg[strspn(arg, "0123456789")] == 0 && strlen(arg) < 19 &&
                count > 0 && count <= most) ||
               wrong(o, what, arg);
    }
    case TAKES_OTHER: break;
    }
    return takes_of[option].read(o, arg);
}
