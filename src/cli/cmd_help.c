// SPDX-License-Identifier: Apache-2.0
//
// forewarp help: from the tables.

#include "cli/completion.h"

#include "cost/device_model.h"
#include "cost/features.h"
#include "rewrite/rewrite.h"

#include <string.h>

// One row of a topic: a name, and what it is.
typedef struct {
    const char *name;
    const char *suffix; // what may follow the name: "xyz", "123"; "": nothing
    const char *doc;
    const char *more; // shown after it: a unit; NULL: nothing
} Row;

static Row pattern_row(int i)
{
    const PatternInfo *info = &pattern_info[i];
    return (Row){info->text, info->suffix == SUFFIX_DIMS ? "23" : "", info->doc, NULL};
}

static Row operation_row(int i)
{
    return (Row){op_info[i].text, "", op_info[i].doc, NULL};
}

static Row strategy_row(int i)
{
    int n;
    const SearchKind *kind = search_all(&n)[i];
    return (Row){kind->name, "", kind->doc, NULL};
}

static Row feature_row(int i)
{
    const char *unit = feature_info[i].unit;
    return (Row){feature_info[i].name, "", feature_info[i].doc, unit[0] ? unit : NULL};
}

static Row rule_row(int i)
{
    return (Row){rule_info[i].name, "", rule_family_name[rule_info[i].family], NULL};
}

static Row model_row(int i)
{
    int n;
    const ModelKind *kind = model_all(&n)[i];
    return (Row){kind->name, "", kind->doc, NULL};
}

static Row device_row(int i)
{
    int n;
    return (Row){device_model_ids(&n)[i], "", "", NULL};
}

static Row parameter_row(int i)
{
    static const Row row[] = {
#define PARAMETER(text, suffix, doc) {text, suffix, doc, NULL},
#include "derive/parameters.def"
#undef PARAMETER
        {NULL, NULL, NULL, NULL}};
    return row[i];
}

static Row metric_row(int i)
{
    static const char time_doc[] = "one run, the least of several; what is best without "
                                   "--objective";
    if (i == 0)
        return (Row){"time", "", time_doc, "ms"};
    const MeasureRow *row = &measure_row[i - 1];
    return (Row){row->name, "", row->doc, row->unit[0] ? row->unit : NULL};
}

static int metric_count(void)
{
    return 1 + MEASURES;
}

static int parameter_count(void)
{
    int n = 0;
    while (parameter_row(n).name)
        n++;
    return n;
}

static int strategy_count(void)
{
    int n;
    search_all(&n);
    return n;
}

static int model_count(void)
{
    int n;
    model_all(&n);
    return n;
}

static int device_count(void)
{
    int n;
    device_model_ids(&n);
    return n;
}

static int pattern_count(void)
{
    return PATTERNS;
}
static int operation_count(void)
{
    return OPS;
}
static int feature_count(void)
{
    return FEATURES;
}
static int rule_count(void)
{
    return RULES;
}

static void put_row(int width, Row row)
{
    Buf name;
    buf_init(&name);
    if (strcmp(row.suffix, "xyz") == 0) // never without one
        buf_printf(&name, "%sx, %sy, %sz", row.name, row.name, row.name);
    else
        buf_printf(&name, "%s%s", row.name, strcmp(row.suffix, "1-9") == 0 ? "N" : "");
    printf("  %-*s %s%s%s%s\n", width, name.text, row.doc, row.more ? " (" : "",
           row.more ? row.more : "", row.more ? ")" : "");
    buf_release(&name);
}

static void put_rule(int i, bool family)
{
    const RuleInfo *rule = &rule_info[i];
    if (family)
        printf("%s%s\n", i ? "\n" : "", rule_family_name[rule->family]);
    printf("  %s(%s)\n      %s\n    = %s\n", rule->name, rule->args, rule->left,
           rule->right);
    if (*rule->guard)
        printf("      where: %s\n", rule->guard);
}

enum { TOPICS = 9, RULE_TOPIC = 4 };
static const struct {
    const char *name;
    int width; // of the names
    int (*count)(void);
    Row (*row)(int i);
} topics[TOPICS] = {{"patterns", 16, pattern_count, pattern_row},
                    {"operations", 8, operation_count, operation_row},
                    {"strategies", 12, strategy_count, strategy_row},
                    {"features", 22, feature_count, feature_row},
                    {"rules", 0, rule_count, rule_row},
                    {"models", 12, model_count, model_row},
                    {"device-models", 20, device_count, device_row},
                    {"parameters", 12, parameter_count, parameter_row},
                    {"metrics", 9, metric_count, metric_row}};

static int list_topic(int topic)
{
    for (int i = 0; i < topics[topic].count(); i++)
        if (topic == RULE_TOPIC)
            put_rule(i, i == 0 || rule_info[i].family != rule_info[i - 1].family);
        else
            put_row(topics[topic].width, topics[topic].row(i));
    return 0;
}

// Is the word the row's name, or the name and a suffix that it may have?
static bool names(Row row, const char *word)
{
    size_t n = strlen(row.name);
    bool number = strcmp(row.suffix, "1-9") == 0;
    if (strncmp(word, row.name, n) != 0)
        return false;
    const char *rest = word + n;
    const char *may = number ? "0123456789" : row.suffix;
    return (*rest == 0 && strcmp(row.suffix, "xyz") != 0) ||
           (*rest && rest[strspn(rest, may)] == 0 && (number || rest[1] == 0));
}

// Every row that a word names, with its topic: `min` is an operation, `random` a strategy.
static bool explain(const char *word)
{
    bool found = false;
    for (int topic = 0; topic < TOPICS; topic++)
        for (int i = 0; i < topics[topic].count(); i++)
            if (names(topics[topic].row(i), word)) {
                printf("%s (`forewarp help %s`)\n", word, topics[topic].name);
                if (topic == RULE_TOPIC)
                    put_rule(i, false);
                else
                    put_row(topics[topic].width, topics[topic].row(i));
                found = true;
            }
    return found;
}

const char *const *help_topics(int *n)
{
    static const char *name[TOPICS];
    for (int i = 0; i < TOPICS; i++)
        name[i] = topics[i].name;
    *n = TOPICS;
    return name;
}

// A name and what it is, in lines of 80 columns.
static void put_entry(FILE *out, const char *name, const char *args, const char *doc)
{
    enum { INDENT = 20, WIDTH = 80 };
    int column = fprintf(out, "  %s%s%s", name, args[0] ? " " : "", args);
    for (column = column < INDENT ? column : WIDTH; *doc; doc += strspn(doc, " ")) {
        int n = (int)strcspn(doc, " ");
        if (column + n >= WIDTH) {
            putc('\n', out);
            column = 0;
        }
        column +=
            fprintf(out, "%*s%.*s", column < INDENT ? INDENT - column : 1, "", n, doc);
        doc += n;
    }
    putc('\n', out);
}

int cli_help(FILE *out)
{
    fputs("Usage: forewarp COMMAND [OPTION...] [ARGUMENT...]\n\nCommands (`forewarp help "
          "COMMAND` for the options of one):\n",
          out);
    for (int i = 0; i < COMMANDS; i++)
        put_entry(out, commands[i].name, commands[i].args, commands[i].doc);
    fputs(
        "\nTopics (`forewarp help TOPIC`; `forewarp help slide2` or `lx` for one word):\n ",
        out);
    for (int i = 0; i < TOPICS; i++)
        fprintf(out, "%s %s", i ? "," : "", topics[i].name);
    fputs(
        "\n\nFirst steps:\n"
        "  forewarp tune PROGRAM.fw -s N=4096,M=4096   search; forewarp-out/ gets the "
        "kernel\n"
        "  forewarp tune KERNEL.json                   the same for a kernel of your own\n"
        "  forewarp report forewarp-out                what was tried, as a page of HTML\n",
        out);
    return 0;
}

int cmd_help(Options *o)
{
    if (o->completion && !completion_print(o->completion)) {
        diag_error(&o->diags, span_none, "C045",
                   "there is no completion for `%s`; there is for bash and zsh",
                   o->completion);
        return 2;
    }
    if (o->completion)
        return 0;
    const char *word = o->file ? o->file : o->point;
    if (!word)
        return cli_help(stdout);
    for (int i = 0; i < TOPICS; i++)
        if (strcmp(word, topics[i].name) == 0)
            return list_topic(i);
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0) {
            cli_command_help(&commands[i]);
            return 0;
        }
    if (explain(word))
        return 0;
    const char *name[TOPICS + COMMANDS];
    for (int i = 0; i < TOPICS + COMMANDS; i++)
        name[i] = i < TOPICS ? topics[i].name : commands[i - TOPICS].name;
    cli_unknown(o, "C009", "help on", word, name, TOPICS + COMMANDS);
    return 2;
}
