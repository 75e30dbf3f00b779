// SPDX-License-Identifier: Apache-2.0
//
// The tokens of constraints: numbers, names, quoted words, and the signs of C and Python.
#include "space/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int sign_len(const char *text)
{
    static const char *const two[] = {
        "||", "&&", "==", "!=", "<=", ">=", "//", "**", "<<", ">>"};
    for (int i = 0; i < COUNTOF(two); i++)
        if (strncmp(text, two[i], 2) == 0)
            return 2;
    return 1;
}

// A point belongs to a name if a letter follows: `best.lx`.
static int name_len(const char *text)
{
    int n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_' ||
           (text[n] == '.' && isalpha((unsigned char)text[n + 1])))
        n++;
    return n;
}

static int number_len(const char *text)
{
    char *end;
    strtod(text, &end);
    return (int)(end - text);
}

// With both quotes; unterminated text ends with the source.
static int word_len(const char *text)
{
    const char *close = strchr(text + 1, text[0]);
    return close ? (int)(close + 1 - text) : (int)strlen(text);
}

ConstraintToken token_at(const char *s)
{
    unsigned char c = (unsigned char)s[0];
    if (!c)
        return (ConstraintToken){T_END, s, 0};
    if (isdigit(c) || (c == '.' && isdigit((unsigned char)s[1])))
        return (ConstraintToken){T_NUMBER, s, number_len(s)};
    if (isalpha(c) || c == '_')
        return (ConstraintToken){T_NAME, s, name_len(s)};
    if (c == '\'' || c == '"')
        return (ConstraintToken){T_WORD, s, word_len(s)};
    return (ConstraintToken){T_SIGN, s, sign_len(s)};
}
