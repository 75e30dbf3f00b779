// SPDX-License-Identifier: Apache-2.0
//
// Options that a command does not have, found before argp reads the line: argp, of glibc or
// on its own, names them without a suggestion. A beginning that only one option has is
// accepted here too, as argp does. Letters, and `--opt=value` of options that exist, are
// left to argp.

#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static bool has(const Command *command, int option)
{
    return option_rows[option].commands & (1 << (int)(command - commands));
}

// Those of argp itself.
static const char *const argps[] = {"help", "usage"};

// The option that a word of n letters means to the command, OPTIONS for one of argp's or
// one that argp is to judge (the begin of several); -1: none.
static int find_long(const Command *command, const char *word, size_t n)
{
    int found = -1;
    for (int i = 0; i < COUNTOF(argps); i++)
        if (strncmp(argps[i], word, n) == 0)
            found = OPTIONS;
    for (int i = 0; i < OPTIONS; i++)
        if (has(command, i) && strncmp(option_rows[i].name, word, n) == 0) {
            if (!option_rows[i].name[n])
                return i;
            found = found < 0 ? i : OPTIONS;
        }
    return found;
}

// Does a word like -qs take the next word as the value of its last letter?
static bool letters_take_next(const Command *command, const char *letters)
{
    for (; *letters; letters++)
        for (int i = 0; i < OPTIONS; i++)
            if (has(command, i) && option_rows[i].letter == *letters && option_rows[i].arg)
                return !letters[1];
    return false;
}

// Which commands have an option of just this name; false: none.
static bool put_owners(Buf *out, const char *word, size_t n)
{
    int owners = 0;
    for (int i = 0; i < OPTIONS; i++)
        if (strlen(option_rows[i].name) == n && strncmp(option_rows[i].name, word, n) == 0)
            owners |= option_rows[i].commands;
    int left = __builtin_popcount((unsigned)owners);
    for (int i = 0, done = 0; i < COMMANDS; i++)
        if (owners & (1 << i)) {
            buf_printf(out, "%s%s",
                       !done++    ? "; it is an option of "
                       : left > 1 ? ", "
                                  : " and ",
                       commands[i].name);
            left--;
        }
    return owners;
}

static void put_hint(Buf *out, const Command *command, const char *word, size_t n)
{
    char dashed[64];
    if (put_owners(out, word, n))
        return;
    AutoBuf asked = buf_new();
    buf_printf(&asked, "--%.*s", (int)n, word);
    Guess guess = guess_new(asked.text);
    for (int i = 0; i < OPTIONS; i++)
        if (has(command, i)) {
            snprintf(dashed, sizeof dashed, "--%s", option_rows[i].name);
            guess_offer(&guess, dashed);
        }
    guess_print(out, &guess);
}

static void refuse(const Command *command, const char *word, size_t n)
{
    AutoBuf hint = buf_new();
    put_hint(&hint, command, word, n);
    fprintf(stderr,
            "forewarp %s: there is no option `--%.*s`%s\n`forewarp help %s` lists the "
            "options.\n",
            command->name, (int)n, word, hint.text, command->name);
}

bool cli_knows_options(const Command *command, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *word = argv[i];
        if (word[0] != '-' || !word[1])
            continue;
        if (word[1] != '-') {
            i += letters_take_next(command, word + 1);
            continue;
        }
        size_t n = strcspn(word + 2, "=");
        int option = find_long(command, word + 2, n);
        if (option < 0) {
            refuse(command, word + 2, n);
            return false;
        }
        if (option == OPTIONS) // help, or several: argp ends the program there
            return true;
        i += option_rows[option].arg && !word[2 + n];
    }
    return true;
}
