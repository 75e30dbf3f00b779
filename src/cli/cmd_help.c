// SPDX-License-Identifier: Apache-2.0
//
// forewarp help: from the tables.

#include "cli/cli.h"

#include "cost/device_model.h"
#include "cost/features.h"
#include "derive/derive.h"
#include "rewrite/rewrite.h"

#include <ctype.h>
#include <string.h>

// One row of a topic: a name (NULL after the last one), and what it is.
typedef struct {
    const char *name;
    const char *suffix; // what may follow the name: "xyz", "123"; "": nothing
    const char *doc;
    const char *more; // shown after it: a unit; NULL: nothing
} HelpRow;

static HelpRow pattern_row(int i)
{
    const PatternInfo *info = &pattern_info[i];
    if (i == PATTERNS)
        return (HelpRow){0};
    return (HelpRow){info->text, info->suffix == SUFFIX_DIMS ? "23" : "", info->doc};
}

static HelpRow operation_row(int i)
{
    return i == OPS ? (HelpRow){0} : (HelpRow){op_info[i].text, "", op_info[i].doc};
}

static HelpRow word_row(int i)
{
    static const HelpRow row[] = {
        {"size", "", "declares sizes: `size N, M`; -s N=1024 gives one its value"},
        {"generic", "",
         "a size that kernels take as an argument: `size N generic 1..65536`; without it, "
         "-s N=1:65536 is the same"},
        {"range", "",
         "-s N=1024:16384 stands for all of these sizes: tune finds a few kernels that "
         "take N as an argument, and a rule that chooses; a budget of time is for all of "
         "it, one of trials (default 60t) for each of the sizes that are tuned"},
        {"multiple", "", "what values a generic size has: `1..65536 multiple 4`"},
        {"fun", "", "declares a function: `fun f(x: float): float = 2*x`"},
        {"def", "", "declares the program: `def p(a: [N]float): [N]float = map(f, a)`"},
        {"let", "", "names a value: `let s = x + y in s * s`"},
        {"if", "", "a choice: `if x < 0 then -x else x`"},
        {"inf", "", "infinity: `reduce(max, -inf)`"},
        {0}};
    return row[i];
}

static HelpRow strategy_row(int i)
{
    int n;
    const SearchKind *const *kind = search_all(&n);
    return i == n ? (HelpRow){0} : (HelpRow){kind[i]->name, "", kind[i]->doc};
}

static HelpRow feature_row(int i)
{
    if (i == FEATURES)
        return (HelpRow){0};
    const char *unit = feature_info[i].unit;
    return (HelpRow){feature_info[i].name, "", feature_info[i].doc, unit[0] ? unit : NULL};
}

static HelpRow rule_row(int i)
{
    if (i == RULES)
        return (HelpRow){0};
    return (HelpRow){rule_info[i].name, "", rule_family_name[rule_info[i].family]};
}

static HelpRow model_row(int i)
{
    int n;
    const ModelKind *const *kind = model_all(&n);
    return i == n ? (HelpRow){0} : (HelpRow){kind[i]->name, "", kind[i]->doc};
}

static HelpRow device_row(int i)
{
    int n;
    const char *const *id = device_model_ids(&n);
    return i == n ? (HelpRow){0} : (HelpRow){id[i], "", ""};
}

static HelpRow parameter_row(int i)
{
    const ParameterInfo *info = &parameter_info[i];
    return i == parameters ? (HelpRow){0} : (HelpRow){info->name, info->suffix, info->doc};
}

static HelpRow metric_row(int i)
{
    static const char time_doc[] = "one run, the least of several; what is best without "
                                   "--objective";
    static const HelpRow own[] = {
        {"flops", "", "operations on floating numbers of one run (programs only)"},
        {"bytes", "", "what any kernel must read and write in one run", "B"},
        {0}};
    if (i == 0)
        return (HelpRow){"time", "", time_doc, "ms"};
    if (i > MEASURES)
        return own[i - MEASURES - 1];
    const MeasureRow *row = &measure_row[i - 1];
    return (HelpRow){row->name, "", row->doc, row->unit[0] ? row->unit : NULL};
}

// What the codes of messages have in common that begin with a letter.
static HelpRow code_row(int i)
{
    static const HelpRow row[] = {
        {"C", "000", "commands, their options, and tuning"},
        {"D", "000", "devices, and the processes that run kernels"},
        {"F", "000", "scripts (.fws): calls, functions, and how they are fused"},
        {"G", "000", "records of tunings, of which `report` makes pages"},
        {"H", "000", "heuristic files (.fwh)"},
        {"J", "000", "problem files (.json): templates, their arguments and goals"},
        {"L", "000", "kernels that cannot be made of a program, or of one point of it"},
        {"M", "000", "models, their data sets, and calibration"},
        {"N", "000", ".npy files"},
        {"P", "000", "the text of a program: words, syntax and names"},
        {"Q", "000", "the store of trials, and exchange between stores"},
        {"R", "000", "references, the interpreter, and the text of derivations"},
        {"S", "000", "spaces: parameters, their values, and constraints"},
        {"T", "000", "types and sizes of a program"},
        {"W", "000", "wisdom files"},
        {"X", "000", "explorations, recorded spaces, and `replay`"},
        {0}};
    return row[i];
}

static void put_row(int width, HelpRow row)
{
    AutoBuf name = buf_new();
    if (strcmp(row.suffix, "xyz") == 0) // never without one
        buf_printf(&name, "%sx, %sy, %sz", row.name, row.name, row.name);
    else
        buf_printf(&name, "%s%s", row.name,
                   strcmp(row.suffix, "1-9") == 0   ? "N"
                   : strcmp(row.suffix, "000") == 0 ? "..."
                                                    : "");
    printf("  %-*s %s%s%s%s\n", width, name.text, row.doc, row.more ? " (" : "",
           row.more ? row.more : "", row.more ? ")" : "");
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

enum { TOPICS = 11, RULE_TOPIC = 5 };
static const struct {
    const char *name;
    int width;             // of the names
    HelpRow (*row)(int i); // after the last one a row without a name
} topics[TOPICS] = {{"patterns", 16, pattern_row},
                    {"operations", 8, operation_row},
                    {"words", 8, word_row},
                    {"strategies", 12, strategy_row},
                    {"features", 22, feature_row},
                    {"rules", 0, rule_row},
                    {"models", 12, model_row},
                    {"device-models", 20, device_row},
                    {"parameters", 12, parameter_row},
                    {"metrics", 9, metric_row},
                    {"codes", 5, code_row}};

static int list_topic(int topic)
{
    for (int i = 0; topics[topic].row(i).name; i++)
        if (topic == RULE_TOPIC)
            put_rule(i, i == 0 || rule_info[i].family != rule_info[i - 1].family);
        else
            put_row(topics[topic].width, topics[topic].row(i));
    return 0;
}

// Is the word the row's name, or the name and a suffix that it may have?
static bool names(HelpRow row, const char *word)
{
    size_t n = strlen(row.name);
    bool code = strcmp(row.suffix, "000") == 0;
    bool number = code || strcmp(row.suffix, "1-9") == 0;
    if (code && strlen(word) != 4) // `C` alone is a language
        return false;
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
        for (int i = 0; topics[topic].row(i).name; i++)
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

void help_put_names(Buf *out, const char *topic)
{
    for (int t = 0; t < TOPICS; t++)
        for (int i = 0; strcmp(topics[t].name, topic) == 0 && topics[t].row(i).name; i++)
            buf_printf(out, "%s%s", out->len ? " " : "", topics[t].row(i).name);
}

void help_put_topics(Buf *out)
{
    for (int i = 0; i < TOPICS; i++)
        buf_printf(out, "%s%s", i ? " " : "", topics[i].name);
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
        "\nTopics (`forewarp help TOPIC`; `forewarp help slide2`, `lx` or `budget` for one "
        "word):\n ",
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

static void put_option(const OptionRow *row)
{
    const char *of = "";
    printf("  --%s%s%s", row->name, row->arg ? "=" : "", row->arg ? row->arg : "");
    if (row->letter)
        printf(", -%c", row->letter);
    for (int i = 0; i < COMMANDS && row->commands != FOR_ALL; i++)
        if (row->commands & 1 << i) {
            printf("%s%s", *of ? of : " (", commands[i].name);
            of = ", ";
        }
    printf("%s\n      %s\n", *of ? ")" : "", row->doc);
}

// The option that is called so, without its hyphens.
static bool explain_option(const char *word)
{
    int i = FIND(option_rows, OPTIONS, name, word);
    if (i >= 0)
        put_option(&option_rows[i]);
    return i >= 0;
}

// Is it a whole word of the text?
static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) &&
            !isalnum((unsigned char)at[n]))
            return true;
    return false;
}

// Every command, option and row of a topic whose description has the word.
static bool list_mentions(const char *word)
{
    bool found = false;
    for (int i = 0; i < COMMANDS; i++)
        if (has_word(commands[i].doc, word)) {
            put_entry(stdout, commands[i].name, commands[i].args, commands[i].doc);
            found = true;
        }
    for (int i = 0; i < OPTIONS; i++)
        if (has_word(option_rows[i].doc, word)) {
            put_option(&option_rows[i]);
            found = true;
        }
    for (int t = 0; t < TOPICS; t++)
        for (int i = 0; topics[t].row(i).name; i++)
            if (has_word(topics[t].row(i).doc, word)) {
                put_entry(stdout, topics[t].row(i).name, "", topics[t].row(i).doc);
                found = true;
            }
    return found;
}

static void no_help(Options *o, const char *word)
{
    AutoBuf text = buf_new();
    Guess guess = guess_new(word);
    for (int i = 0; i < COMMANDS; i++)
        guess_offer(&guess, commands[i].name);
    for (int t = 0; t < TOPICS; t++) {
        guess_offer(&guess, topics[t].name);
        for (int i = 0; topics[t].row(i).name; i++) {
            HelpRow row = topics[t].row(i);
            bool axis = strcmp(row.suffix, "xyz") == 0; // never without one
            guess_offer(&guess, axis ? arena_printf(o->arena, "%sx", row.name) : row.name);
        }
    }
    guess_print(&text, &guess);
    diag_error(&o->diags, span_none, "C009", "there is no help on `%s`%s", word,
               text.len ? text.text : "; `forewarp help` lists the commands and topics");
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
    int topic = FIND(topics, TOPICS, name, word);
    int command = FIND(commands, COMMANDS, name, word);
    if (topic >= 0)
        return list_topic(topic);
    if (command >= 0) {
        cli_command_help(&commands[command]);
        return 0;
    }
    bool explained = explain(word);
    if (explain_option(word) || explained || (*word && list_mentions(word)))
        return 0;
    no_help(o, word);
    return 2;
}
