// SPDX-License-Identifier: Apache-2.0
//
// forewarp help: from the tables.

#include "cli/cli.h"

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

static int list_all(void)
{
    puts("forewarp COMMAND [OPTION...]\n\nCommands (`forewarp COMMAND --help` for "
         "options):");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-9s %-10s %s\n", commands[i].name, commands[i].args, commands[i].doc);
    puts("\nTopics: `forewarp help patterns`, `operations`, `strategies`, `features`, "
         "`rules`");
    return 0;
}

int cmd_help(Options *o)
{
    static const struct {
        const char *name;
        int (*list)(void);
    } topic[] = {{"patterns", list_patterns},
                 {"operations", list_operations},
                 {"strategies", list_strategies},
                 {"features", list_features},
                 {"rules", list_rules}};
    if (!o->file)
        return list_all();
    for (int i = 0; i < COUNTOF(topic); i++)
        if (strcmp(o->file, topic[i].name) == 0)
            return topic[i].list();
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(o->file, commands[i].name) == 0)
            return printf("forewarp %s %s: %s\n", commands[i].name, commands[i].args,
                          commands[i].doc) < 0;
    diag_error(&o->diags, span_none, "C009", "there is no help on `%s`", o->file);
    return 2;
}
