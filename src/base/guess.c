// SPDX-License-Identifier: Apache-2.0
//
// The nearest of several names, for "did you mean": by the letters that differ
// (Levenshtein's distance).

#include "base/base.h"

#include <string.h>

enum { NAME_MAX_GUESSED = sizeof(((Guess *)0)->best) - 1 };

static int edit_distance(const char *a, const char *b)
{
    int row[NAME_MAX_GUESSED + 1], n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = MIN(changed, 1 + MIN(row[j], row[j - 1]));
        }
    }
    return row[n];
}

Guess guess_new(const char *name)
{
    // Half of a short name may differ, and two letters of a long one.
    return (Guess){.name = name, .distance = 1 + (int)MIN(strlen(name) / 2, 2)};
}

void guess_offer(Guess *guess, const char *candidate)
{
    if (strlen(candidate) > NAME_MAX_GUESSED || strlen(guess->name) > NAME_MAX_GUESSED)
        return;
    int distance = edit_distance(guess->name, candidate);
    bool starts = guess->best[0] && guess->best[0] != guess->name[0] &&
                  candidate[0] == guess->name[0]; // the first letter is seldom wrong
    if (distance > guess->distance || (distance == guess->distance && !starts))
        return;
    guess->distance = distance;
    strcpy(guess->best, candidate);
}

void guess_print(Buf *out, const Guess *guess)
{
    if (guess->best[0])
        buf_printf(out, "; did you mean `%s`?", guess->best);
}

void guess_print_known(Buf *out, const char *name, const char *const *known, int n)
{
    Guess guess = guess_new(name);
    for (int i = 0; i < n; i++)
        guess_offer(&guess, known[i]);
    guess_print(out, &guess);
    for (int i = 0; i < n && !guess.best[0]; i++)
        buf_printf(out, "%s%s", i == 0 ? "; there are " : ", ", known[i]);
}
