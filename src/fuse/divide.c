// SPDX-License-Identifier: Apache-2.0
//
// Scripts of more calls than a set has bits, in parts: where a part ends, and covers of the
// whole as sums of covers of its parts.
//
//   method  Calls stand in an order in which each comes after what it needs, so a part is a
//           run of it, and parts never wait for each other in a cycle. It ends where the
//           fewest words pass from calls before to calls behind: no kernel has calls of two
//           parts, so that these words are stored and loaded again.
//
// Kernels that cross an end are not considered, so a cover of several parts is only the
// cheapest of the covers that respect the ends.

#include "fuse/fuse.h"

#include <stdlib.h>
#include <string.h>

// Calls of a set -------------------------------------------------------------------------

void elem_add_user(Elem *elem, int call)
{
    elem->users.word[call / 64] |= (uint64_t)1 << call % 64;
}

Set elem_users(const Elem *elem, int first)
{
    const uint64_t *word = &elem->users.word[first / 64];
    int shift = first % 64;
    bool last = first / 64 == COUNTOF(elem->users.word) - 1;
    return word[0] >> shift | (shift && !last ? word[1] << (64 - shift) : 0);
}

bool elem_is_used(const Elem *elem)
{
    for (int i = 0; i < COUNTOF(elem->users.word); i++)
        if (elem->users.word[i])
            return true;
    return false;
}

bool elem_leaves(const Elem *elem, Calls calls)
{
    Users of = {0};
    int shift = calls.first % 64, at = calls.first / 64;
    of.word[at] = calls.set << shift;
    if (shift && at + 1 < COUNTOF(of.word))
        of.word[at + 1] = calls.set >> (64 - shift);
    for (int i = 0; i < COUNTOF(of.word); i++)
        if (elem->users.word[i] & ~of.word[i])
            return true;
    return elem->is_output;
}

bool calls_have(Calls calls, int call)
{
    return call >= calls.first && call < calls.first + PART_MAX &&
           (calls.set >> (call - calls.first) & 1);
}

// Where parts end -------------------------------------------------------------------------

static int last_user(const Elem *elem)
{
    for (int i = COUNTOF(elem->users.word) - 1; i >= 0; i--)
        if (elem->users.word[i])
            return 64 * i + 63 - __builtin_clzll(elem->users.word[i]);
    return -1;
}

int script_divide(const Script *script, int *first)
{
    AUTO_FREE int64_t *words = xcalloc((size_t)script->ncall + 1, sizeof *words);
    int n = 0;
    // words[v]: those that calls before v pass on to call v and behind.
    ARRAY_EACH_REF(const Elem *, elem, script->elem, script->nelem)
        for (int v = elem->producer + 1; elem->producer >= 0 && v <= last_user(elem); v++)
            words[v] += elem->words;
    for (int at = 0; at < script->ncall; n++) {
        int end = MIN(at + PART_MAX, script->ncall);
        first[n] = at;
        for (int v = end - 1; end < script->ncall && v >= at + PART_LEAST; v--)
            if (words[v] < words[end])
                end = v;
        at = end;
    }
    first[n] = script->ncall;
    return n;
}

// Covers of all parts ---------------------------------------------------------------------

// A sum of covers, one of each part so far: the last of them, and the sum before.
typedef struct {
    double cost;
    bool cut;
    int before, last;
} CoverSum;

typedef struct {
    int n, ncover; // sums, covers of the part
    CoverSum *sum;
    Cover *cover;
} PartCovers;

static int by_cost(const void *a, const void *b)
{
    const CoverSum *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->before != y->before ? x->before - y->before : x->last - y->last;
}

// The k cheapest of all sums with one more part.
static void add_part(const PartCovers *before, PartCovers *stage, int k, Arena *arena)
{
    CoverSum *all = NEW_ARRAY(arena, CoverSum, before->n * stage->ncover + 1);
    int n = 0;
    for (int i = 0; i < before->n; i++)
        for (int j = 0; j < stage->ncover; j++)
            all[n++] = (CoverSum){before->sum[i].cost + stage->cover[j].cost,
                                  before->sum[i].cut || stage->cover[j].cut, i, j};
    qsort(all, (size_t)n, sizeof *all, by_cost);
    stage->sum = all;
    stage->n = MIN(n, k);
}

static Cover whole_cover(const PartCovers *stage, int parts, int sum, Arena *arena)
{
    int choice[PARTS_MAX];
    Cover cover = {.cost = stage[parts].sum[sum].cost, .cut = stage[parts].sum[sum].cut};
    for (int i = parts; i > 0; i--) {
        choice[i - 1] = stage[i].sum[sum].last;
        cover.n += stage[i].cover[choice[i - 1]].n;
        sum = stage[i].sum[sum].before;
    }
    cover.unit = NEW_ARRAY(arena, int, cover.n);
    int *unit = cover.unit;
    for (int i = 0; i < parts; i++) {
        const Cover *of = &stage[i + 1].cover[choice[i]];
        memcpy(unit, of->unit, (size_t)of->n * sizeof *unit);
        unit += of->n;
    }
    return cover;
}

int cover_parts(const FuseSpace *space, const CoverUnit *unit, int n, int k, Arena *arena,
                Cover **cover)
{
    PartCovers *stage = NEW_ARRAY(arena, PartCovers, space->nparts + 1);
    CoverSum nothing = {0};
    int at = 0;
    stage[0] = (PartCovers){.n = 1, .sum = &nothing};
    for (int i = 0; i < space->nparts; i++) {
        int first = at;
        PartCovers *next = &stage[i + 1];
        while (at < n && space->fusion.at[unit[at].id].part == i)
            at++;
        next->ncover = cover_best(&space->part[i], unit + first, at - first, k,
                                  space->nparts, arena, &next->cover);
        for (int c = 0; c < next->ncover; c++)
            for (int u = 0; u < next->cover[c].n; u++)
                next->cover[c].unit[u] += first;
        add_part(&stage[i], next, k, arena);
    }
    int found = stage[space->nparts].n;
    *cover = NEW_ARRAY(arena, Cover, found + 1);
    for (int i = 0; i < found; i++)
        (*cover)[i] = whole_cover(stage, space->nparts, i, arena);
    return found;
}
