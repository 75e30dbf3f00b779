// SPDX-License-Identifier: Apache-2.0
//
// What completes commands, options and their values in bash and zsh, printed from the same
// tables that the program reads.
#include "cli/cli.h"

#include "device/device.h"
#include "emit/emit.h"

#include <stdio.h>
#include <string.h>

// Words --------------------------------------------------------------------------------

static void put_word(Buf *out, const char *word)
{
    buf_printf(out, "%s%s", out->len ? " " : "", word);
}

static void put_models(Buf *out, const Command *command)
{
    int n;
    AutoArena *arena = arena_new();
    const char **name = cli_model_names(command, arena, &n);
    for (int i = 0; i < n; i++)
        put_word(out, name[i]);
}

static void put_devices(Buf *out)
{
    int n;
    const DeviceKind *const *kind = device_kinds(&n);
    for (int i = 0; i < n; i++) {
        put_word(out, kind[i]->name);
        if (!device_is_host(kind[i]->name))
            buf_puts(out, ":0");
    }
}

static void put_math(Buf *out)
{
    for (int i = 0; i < MATHS; i++)
        put_word(out, math_info[i].text);
}

static void put_extras(Buf *out)
{
    for (int i = 0; i < EXTRAS; i++)
        put_word(out, extra_text[i]);
}

static void put_column_sets(Buf *out)
{
    for (int i = 0; i < COLUMN_SETS; i++)
        put_word(out, column_set_name[i]);
}

static void put_targets(Buf *out)
{
    for (int i = 0; target_at(i); i++)
        put_word(out, target_name(target_at(i)));
}

static void put_commands(Buf *out)
{
    for (int i = 0; i < COMMANDS; i++)
        put_word(out, commands[i].name);
}

static void put_topics(Buf *out)
{
    put_commands(out);
    buf_putc(out, ' ');
    help_put_topics(out);
}

// Values that are words; the others are files, or nothing is known of them.
static const struct {
    const char *option;
    void (*put)(Buf *out); // or:
    const char *words;
} values[] = {{"device", put_devices, NULL},
              {"math", put_math, NULL},
              {"extra", put_extras, NULL},
              {"features", put_column_sets, NULL},
              {"target", put_targets, NULL},
              {"print", NULL, "kernel expression derivation library"},
              {"loading", NULL, "global vector local image predicted"},
              {"color", NULL, "auto always never"},
              {"completion", NULL, "bash zsh"}};

static void value_words(Buf *out, const OptionRow *row)
{
    buf_clear(out);
    if (strcmp(row->name, "strategy") == 0)
        help_put_names(out, "strategies");
    if (strcmp(row->name, "device-model") == 0)
        help_put_names(out, "device-models");
    int i = FIND(values, COUNTOF(values), option, row->name);
    if (i >= 0 && values[i].put)
        values[i].put(out);
    else if (i >= 0)
        buf_puts(out, values[i].words);
}

static bool takes_file(const OptionRow *row)
{
    return strstr(row->arg, "FILE") || strstr(row->arg, "PATH") ||
           strstr(row->arg, "FOLDER") || strcmp(row->name, "strategy") == 0;
}

// Words for the first argument of a command; empty: files.
static void argument_words(Buf *out, const Command *command)
{
    buf_clear(out);
    if (strncmp(command->args, "MODEL", 5) == 0)
        put_models(out, command);
    else if (strcmp(command->args, "[COMMAND]") == 0)
        put_topics(out);
    else if (strchr(command->args, '|')) // "export|import|merge FILE..."
        for (const char *at = command->args; *at && *at != ' '; at++)
            buf_putc(out, *at == '|' ? ' ' : *at);
}

// bash -----------------------------------------------------------------------------------

static void bash_option(const OptionRow *row)
{
    printf("--%s", row->name);
    if (row->letter)
        printf(" | -%c", row->letter);
}

// Words for the values that have some; for the others bash goes on to the names of files.
static void bash_values(Buf *words)
{
    const OptionRow *row = option_rows;
    for (int i = 0; i < OPTIONS; i++) {
        if (row[i].arg)
            value_words(words, &row[i]);
        if (!row[i].arg || !words->len)
            continue;
        printf("    ");
        bash_option(&row[i]);
        printf(") words=\"%s\" ;;\n", words->text);
    }
    printf("    ");
    for (int i = 0, k = 0; i < OPTIONS; i++) {
        if (row[i].arg)
            value_words(words, &row[i]);
        if (!row[i].arg || words->len)
            continue;
        printf("%s", k++ ? " | " : "");
        bash_option(&row[i]);
    }
    printf(") return ;;\n");
}

static void bash_command(int command, Buf *words)
{
    const OptionRow *row = option_rows;
    printf("        %s) options=\"", commands[command].name);
    for (int i = 0; i < OPTIONS; i++) {
        if (!(row[i].commands & 1 << command))
            continue;
        printf("--%s ", row[i].name);
        if (row[i].letter)
            printf("-%c ", row[i].letter);
    }
    argument_words(words, &commands[command]);
    printf("--help\" words=\"%s\" ;;\n", words->text);
}

static void print_bash(void)
{
    AutoBuf words = buf_new();
    printf("# Completion of forewarp for bash; printed by `forewarp help --completion "
           "bash`.\n_forewarp()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local options= words= IFS=$' \\t\\n'\n"
           "    [ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    [ \"$cur\" = = ] && cur=\n"
           "    case $prev in\n");
    bash_values(&words);
    printf("    *)\n        case ${COMP_WORDS[1]} in\n");
    for (int c = 0; c < COMMANDS; c++)
        bash_command(c, &words);
    buf_clear(&words);
    put_commands(&words);
    printf("        esac\n        case $cur in -*) words=$options ;; esac\n        ;;\n    "
           "esac\n"
           "    [ \"$COMP_CWORD\" = 1 ] && words=\"%s --help --version\"\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
           "complete -o default -F _forewarp forewarp\n",
           words.text);
}

// zsh ------------------------------------------------------------------------------------

// Inside '...[...]': quotes, brackets and colons have a meaning there.
static void zsh_text(const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            printf("'\\''");
        else
            printf(strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
}

static void zsh_option(const OptionRow *row, Buf *words)
{
    printf("            ");
    if (row->letter)
        printf("'(-%c --%s)'{-%c%s,--%s%s}'[", row->letter, row->name, row->letter,
               row->arg ? "+" : "", row->name, row->arg ? "=" : "");
    else
        printf("'*--%s%s[", row->name, row->arg ? "=" : "");
    zsh_text(row->doc);
    printf("]");
    if (row->arg) {
        value_words(words, row);
        printf(":");
        zsh_text(row->arg);
        printf(":");
        if (words->len) {
            printf("(");
            zsh_text(words->text);
            printf(")");
        } else if (takes_file(row))
            printf("_files");
    }
    printf("' \\\n");
}

static void zsh_command(int command, Buf *words)
{
    const OptionRow *row = option_rows;
    printf("    %s)\n        _arguments \\\n", commands[command].name);
    for (int i = 0; i < OPTIONS; i++)
        if (row[i].commands & 1 << command)
            zsh_option(&row[i], words);
    printf("            '--help[list the options]'");
    argument_words(words, &commands[command]);
    if (words->len)
        printf(" \\\n            '1:argument:(%s)'", words->text);
    printf("%s\n        ;;\n", commands[command].args[0] && commands[command].args[0] != '['
                                   ? " \\\n            '*:file:_files'"
                                   : "");
}

static void print_zsh(void)
{
    AutoBuf words = buf_new();
    printf("#compdef forewarp\n# Completion of forewarp for zsh; printed by `forewarp help "
           "--completion zsh`.\n_forewarp()\n{\n    local -a list\n    list=(\n");
    for (int c = 0; c < COMMANDS; c++) {
        printf("        '%s:", commands[c].name);
        zsh_text(commands[c].doc);
        printf("'\n");
    }
    printf("    )\n    if (( CURRENT == 2 )); then\n        _describe command list\n"
           "        return\n    fi\n    shift words\n    (( CURRENT-- ))\n"
           "    case $words[1] in\n");
    for (int c = 0; c < COMMANDS; c++)
        zsh_command(c, &words);
    printf("    esac\n}\n_forewarp \"$@\"\n");
}

bool completion_print(const char *shell)
{
    bool bash = strcmp(shell, "bash") == 0, zsh = strcmp(shell, "zsh") == 0;
    if (bash)
        print_bash();
    if (zsh)
        print_zsh();
    return bash || zsh;
}
