// SPDX-License-Identifier: Apache-2.0
//
// forewarp help: from the tables.

#include "cli/completion.h"

#include "cost/device_model.h"
#include "cost/features.h"
#include "rewrite/rewrite.h"

#include <string.h>

static int list_patterns(void)
{
    for (int i = 0; i < PATTERNS; i++)
        printf("  %-16s %s\n", pattern_info[i].text, pattern_info[i].doc);
    return 0;
}

static int list_operations(void)
{
    for (int i = 0; i < OPS; i++)
        printf("  %-8s %s\n", op_info[i].text, op_info[i].doc);
    return 0;
}

static int list_strategies(void)
{
    int n;
    const SearchKind *const *kind = search_all(&n);
    for (int i = 0; i < n; i++)
        printf("  %-12s %s\n", kind[i]->name, kind[i]->doc);
    return 0;
}

static int list_features(void)
{
    for (int i = 0; i < FEATURES; i++)
        printf("  %-22s %s%s%s%s\n", feature_info[i].name, feature_info[i].doc,
               feature_info[i].unit[0] ? " (" : "", feature_info[i].unit,
               feature_info[i].unit[0] ? ")" : "");
    return 0;
}

static int list_rules(void)
{
    for (int i = 0; i < RULES; i++) {
        const RuleInfo *rule = &rule_info[i];
        if (i == 0 || rule->family != rule[-1].family)
            printf("%s%s\n", i ? "\n" : "", rule_family_name[rule->family]);
        printf("  %s(%s)\n      %s\n    = %s\n", rule->name, rule->args, rule->left,
               rule->right);
        if (*rule->guard)
            printf("      where: %s\n", rule->guard);
    }
    return 0;
}

static int list_models(void)
{
    int n;
    const ModelKind *const *kind = model_all(&n);
    for (int i = 0; i < n; i++)
        printf("  %-12s %s\n", kind[i]->name, kind[i]->doc);
    return 0;
}

static int list_devices(void)
{
    int n;
    const char *const *id = device_model_ids(&n);
    for (int i = 0; i < n; i++)
        printf("  %s\n", id[i]);
    return 0;
}

enum { TOPICS = 7 };
static const char *const topic_name[TOPICS] = {
    "patterns", "operations", "strategies", "features", "rules", "models", "device-models"};
static int (*const topic_list[TOPICS])(void) = {
    list_patterns, list_operations, list_strategies, list_features,
    list_rules,    list_models,     list_devices};

const char *const *help_topics(int *n)
{
    *n = TOPICS;
    return topic_name;
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
    fputs("\nTopics (`forewarp help TOPIC`):\n ", out);
    for (int i = 0; i < TOPICS; i++)
        fprintf(out, "%s %s", i ? "," : "", topic_name[i]);
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
    if (!o->file)
        return cli_help(stdout);
    for (int i = 0; i < TOPICS; i++)
        if (strcmp(o->file, topic_name[i]) == 0)
            return topic_list[i]();
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(o->file, commands[i].name) == 0) {
            cli_command_help(&commands[i]);
            return 0;
        }
    const char *name[TOPICS + COMMANDS];
    for (int i = 0; i < TOPICS + COMMANDS; i++)
        name[i] = i < TOPICS ? topic_name[i] : commands[i - TOPICS].name;
    cli_unknown(o, "C009", "help on", o->file, name, TOPICS + COMMANDS);
    return 2;
}
