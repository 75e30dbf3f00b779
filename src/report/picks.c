// SPDX-License-Identifier: Apache-2.0
//
// Which model picks best, as one table (picks.h).
#include "report/picks.h"

#include "report/table.h"

#include <math.h>

static void put_row(Table *t, const Picker *p, int sets)
{
    table_put(t, "%s", p->name);
    table_number(t, p->n ? (double)p->right / p->n : NAN, 2);
    table_number(t, p->n ? p->penalty : NAN, 3);
    for (int i = 0; i < sets; i++)
        for (int k = 0; k < PICKS_TAKEN; k++)
            table_number(t, p->slowdown[i][k], 3);
}

void report_picks(Buf *out, const Study *study, const Picks *picks)
{
    Arena *arena = arena_new();
    Table t = table_new(arena, 3 + PICKS_TAKEN * picks->sets);
    buf_printf(
        out,
        "Which model picks best, on %s: the loading of %d stencils (share that is the "
        "best; mean of the best time over the picked one's), and of points not seen "
        "the fastest, after at most %d training points (the best of so many picks "
        "over the best there was)\n",
        study->device, picks->picker[0].n, picks->first);
    table_put(&t, "model");
    table_put(&t, "loading");
    table_put(&t, "weighted");
    for (int i = 0; i < picks->sets; i++)
        for (int k = 0; k < PICKS_TAKEN; k++)
            table_put(&t, k ? "%s%d" : "%s %d", k ? "" : picks->set[i], picks_taken[k]);
    for (int i = 0; i < picks->n; i++)
        put_row(&t, &picks->picker[i], picks->sets);
    table_print(out, &t);
    arena_free(arena);
}
