// SPDX-License-Identifier: Apache-2.0
//
// The k cheapest exact covers of a graph's calls (paper 004, section 4.3.3). The paper asks
// an integer program, and restarts it without single members of what it found. Here one
// cover is found by exact branch and bound on the lowest call that is not covered, and
// alternatives by Lawler's partition (1972): of the covers that differ from c1..cm, those
// that keep c1..c(j-1) and refuse cj, for each j, are disjoint and are all.
//
// The search has a limit of steps. If it is reached (dozens of calls with a common input),
// the covers found so far are returned, and they are not known to be the cheapest.
//
// A cover is refused if its units wait for each other in a cycle, which convex sets can do.

#include "fuse/fuse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// STEPS_*: units looked at, some ten nanoseconds each: in all, for one cover at most, and
// at least.
enum {
    KNOWN_MAX = 4000000,
    STEPS_MOST = 5000000,
    STEPS_OF_COVER = 2000000,
    STEPS_LEAST = 20000
};

typedef struct {
    Set rest; // 0: free
    double least;
} KnownCover;

typedef struct {
    double cost;
    int n;
    int unit[PART_MAX];
} FoundCover;

typedef struct {
    const Graph *graph;
    const CoverUnit *unit;
    int *by_cost;            // units, by their lowest call, then by cost a call
    int first[PART_MAX + 1]; // where those of a lowest call begin in by_cost
    double share[PART_MAX];  // the least cost a call can have: cost / calls of its unit
    KnownCover *slot;        // a hash table: least costs of sets of calls
    int nslot, nknown;
    char *refused;
    int64_t steps, steps_most; // of the cover at work
    int chosen[PART_MAX], nchosen;
    FoundCover best;
} Solver;

static KnownCover *find_slot(const Solver *s, Set rest)
{
    uint64_t i = hash_mix(rest, 1) & (uint64_t)(s->nslot - 1);
    while (s->slot[i].rest && s->slot[i].rest != rest)
        i = (i + 1) & (uint64_t)(s->nslot - 1);
    return &s->slot[i];
}

static Set all_calls(const Graph *graph)
{
    return graph->n == PART_MAX ? ~(Set)0 : ((Set)1 << graph->n) - 1;
}

// Sorts the chosen units into an order they can run in; false: they form a cycle.
static bool sort_units(const Solver *s, int *chosen, int n)
{
    Set done = 0;
    for (int k = 0; k < n; k++) {
        int i = k;
        for (; i < n; i++) {
            Set set = s->unit[chosen[i]].set, pred = 0;
            for (Set m = set; m; m &= m - 1)
                pred |= s->graph->pred[lowest(m)];
            if (!(pred & ~set & ~done))
                break;
        }
        if (i == n)
            return false;
        int unit = chosen[i];
        memmove(chosen + k + 1, chosen + k, (size_t)(i - k) * sizeof *chosen);
        chosen[k] = unit;
        done |= s->unit[unit].set;
    }
    return true;
}

static void take_cover(Solver *s, double cost)
{
    int sorted[PART_MAX];
    memcpy(sorted, s->chosen, sizeof sorted);
    if (!sort_units(s, sorted, s->nchosen))
        return;
    s->best.cost = cost;
    s->best.n = s->nchosen;
    memcpy(s->best.unit, sorted, sizeof sorted);
}

// The bound --------------------------------------------------------------------------

static void grow(Solver *s)
{
    int old = s->nslot;
    AUTO_FREE KnownCover *from = s->slot;
    s->nslot = old ? 2 * old : 1024;
    s->slot = xcalloc((size_t)s->nslot, sizeof *s->slot);
    for (int i = 0; i < old; i++)
        if (from[i].rest)
            *find_slot(s, from[i].rest) = from[i];
}

// What covering rest costs at least: cycles and refused units ignored, which makes it the
// same for all parts of a partition.
static double least(Solver *s, Set rest)
{
    if (!rest)
        return 0;
    if (s->nknown >= KNOWN_MAX || s->steps > s->steps_most) {
        double sum = 0;
        for (Set m = rest; m; m &= m - 1)
            sum += s->share[lowest(m)];
        return sum;
    }
    if (s->nslot && find_slot(s, rest)->rest)
        return find_slot(s, rest)->least;
    double best = INFINITY;
    int v = lowest(rest);
    for (int i = s->first[v]; i < s->first[v + 1]; i++) {
        const CoverUnit *u = &s->unit[s->by_cost[i]];
        s->steps++;
        if (!(u->set & ~rest) && u->cost < best)
            best = fmin(best, u->cost + least(s, rest & ~u->set));
    }
    if (s->steps > s->steps_most)
        return best; // of some units only: not to be kept
    if (2 * ++s->nknown >= s->nslot)
        grow(s);
    *find_slot(s, rest) = (KnownCover){rest, best};
    return best;
}

static void solve(Solver *s, Set rest, double cost)
{
    if (cost + least(s, rest) >= s->best.cost * (1 - 1e-12))
        return;
    if (!rest) {
        take_cover(s, cost);
        return;
    }
    int v = lowest(rest);
    for (int i = s->first[v]; i < s->first[v + 1]; i++) {
        int u = s->by_cost[i];
        if (++s->steps > s->steps_most)
            return;
        if (s->refused[u] || (s->unit[u].set & ~rest))
            continue;
        s->chosen[s->nchosen++] = u;
        solve(s, rest & ~s->unit[u].set, cost + s->unit[u].cost);
        s->nchosen--;
    }
}

// Whether the chosen units, and the calls of rest one by one, can run in some order.
static bool has_order(const Solver *s, Set rest)
{
    Set all = all_calls(s->graph), done = 0, before;
    do {
        before = done;
        for (Set m = rest & ~done; m; m &= m - 1)
            if (!(s->graph->pred[lowest(m)] & ~done))
                done |= m & -m;
        for (int k = 0; k < s->nchosen; k++) {
            Set set = s->unit[s->chosen[k]].set, pred = 0;
            for (Set m = set; m; m &= m - 1)
                pred |= s->graph->pred[lowest(m)];
            if (!(pred & ~set & ~done))
                done |= set;
        }
    } while (done != before);
    return done == all;
}

// Where the limit was met before any cover was found, as where most sets wait for each
// other: the cheapest unit a call that still leaves an order, without a step back.
static void descend(Solver *s, Set rest, double cost)
{
    while (rest) {
        int v = lowest(rest), i = s->first[v];
        for (; i < s->first[v + 1]; i++) {
            int u = s->chosen[s->nchosen] = s->by_cost[i];
            Set set = s->unit[u].set;
            if (s->refused[u] || (set & ~rest))
                continue;
            s->nchosen++;
            if (has_order(s, rest & ~set))
                break;
            s->nchosen--;
        }
        if (i == s->first[v + 1])
            return;
        rest &= ~s->unit[s->by_cost[i]].set;
        cost += s->unit[s->by_cost[i]].cost;
    }
    take_cover(s, cost);
}

// Preparation -------------------------------------------------------------------------

static int compare_units(const void *a, const void *b, void *user)
{
    const CoverUnit *unit = user;
    int i = *(const int *)a, k = *(const int *)b;
    int low = lowest(unit[i].set) - lowest(unit[k].set);
    if (low)
        return low;
    double first = unit[i].cost / __builtin_popcountll(unit[i].set);
    double second = unit[k].cost / __builtin_popcountll(unit[k].set);
    return first != second ? (first < second ? -1 : 1) : i - k;
}

static void prepare(Solver *s, int n)
{
    for (int v = 0; v < PART_MAX; v++)
        s->share[v] = INFINITY;
    for (int i = 0; i < n; i++) {
        Set set = s->unit[i].set;
        s->by_cost[i] = i;
        s->first[lowest(set) + 1]++;
        double share = s->unit[i].cost / __builtin_popcountll(set);
        for (Set m = set; m; m &= m - 1)
            s->share[lowest(m)] = fmin(s->share[lowest(m)], share);
    }
    for (int v = 0; v < PART_MAX; v++)
        s->first[v + 1] += s->first[v];
    qsort_r(s->by_cost, (size_t)n, sizeof *s->by_cost, compare_units,
            (void *)(uintptr_t)s->unit);
}

// Lawler's partition --------------------------------------------------------------------

// Covers that have the first `kept` units of `cover` and none of the refused.
typedef struct {
    FoundCover cover; // the cheapest of them
    int kept;
    int nrefused;
    int *refused;
    bool done;
} CoverPart;

typedef struct {
    Solver *solver;
    Arena *arena;
    VEC(CoverPart) parts;
    int64_t steps, most;     // taken, and in all
    int64_t of_cover, least; // for one
    bool cut;
} Partition;

static void add_part(Partition *p, const FoundCover *from, int kept, const int *refused,
                     int nrefused)
{
    Solver *s = p->solver;
    Set rest = all_calls(s->graph);
    double cost = 0;
    s->best = (FoundCover){.cost = INFINITY};
    int64_t left = p->most - p->steps;
    s->steps = 0;
    s->steps_most = MAX(MIN(left, p->of_cover), p->least);
    for (s->nchosen = 0; s->nchosen < kept; s->nchosen++) {
        int u = s->chosen[s->nchosen] = from->unit[s->nchosen];
        rest &= ~s->unit[u].set;
        cost += s->unit[u].cost;
    }
    for (int i = 0; i < nrefused; i++)
        s->refused[refused[i]] = 1;
    solve(s, rest, cost);
    s->nchosen = kept;
    if (!s->best.n && s->steps > s->steps_most)
        descend(s, rest, cost);
    p->steps += s->steps;
    p->cut |= s->steps > s->steps_most || s->nknown >= KNOWN_MAX;
    for (int i = 0; i < nrefused; i++)
        s->refused[refused[i]] = 0;
    if (!isfinite(s->best.cost))
        return;
    CoverPart part = {.cover = s->best, .kept = kept, .nrefused = nrefused};
    part.refused = COPY_ARRAY(p->arena, refused, nrefused);
    // What is kept stands first, so that the next partition keeps it too.
    int at = 0;
    FoundCover ordered = part.cover;
    for (int i = 0; i < kept; i++)
        ordered.unit[at++] = from->unit[i];
    for (int i = 0; i < part.cover.n; i++) {
        bool is_kept = false;
        for (int k = 0; k < kept; k++)
            is_kept = is_kept || from->unit[k] == part.cover.unit[i];
        if (!is_kept)
            ordered.unit[at++] = part.cover.unit[i];
    }
    part.cover = ordered;
    VEC_PUSH(p->arena, &p->parts, part);
}

static CoverPart *cheapest(Partition *p)
{
    CoverPart *best = NULL;
    VEC_EACH_REF(CoverPart *, part, &p->parts)
        if (!part->done && (!best || part->cover.cost < best->cover.cost))
            best = part;
    return best;
}

static void divide(Partition *p, const CoverPart *from)
{
    CoverPart part = *from; // parts may move
    int *refused = NEW_ARRAY(p->arena, int, part.nrefused + 1);
    memcpy(refused, part.refused, (size_t)part.nrefused * sizeof *refused);
    for (int j = part.kept; j < part.cover.n; j++) {
        refused[part.nrefused] = part.cover.unit[j];
        add_part(p, &part.cover, j, refused, part.nrefused + 1);
    }
}

static void keep_cover(Partition *p, const FoundCover *found, Cover *out)
{
    *out = (Cover){.cost = found->cost, .cut = p->cut, .n = found->n};
    out->unit = COPY_ARRAY(p->arena, found->unit, found->n);
    if (!sort_units(p->solver, out->unit, out->n))
        BUG("a cover in a cycle");
}

int cover_best(const Graph *graph, const CoverUnit *unit, int n, int k, int shares,
               Arena *arena, Cover **cover)
{
    Solver solver = {.graph = graph, .unit = unit};
    solver.by_cost = xcalloc((size_t)n + 1, sizeof *solver.by_cost);
    solver.refused = xcalloc((size_t)n + 1, 1);
    prepare(&solver, n);
    Partition partition = {.solver = &solver,
                           .arena = arena,
                           .most = STEPS_MOST / shares,
                           .of_cover = STEPS_OF_COVER / shares,
                           .least = STEPS_LEAST / shares};
    Cover *out = NEW_ARRAY(arena, Cover, MAX(k, 1));
    int found = 0;
    add_part(&partition, NULL, 0, NULL, 0);
    for (CoverPart *part; found < k && (part = cheapest(&partition)) != NULL;) {
        part->done = true;
        FoundCover best = part->cover;
        keep_cover(&partition, &best, &out[found]);
        memcpy(part->cover.unit, out[found].unit, (size_t)best.n * sizeof(int));
        if (++found < k)
            divide(&partition, part);
    }
    free(solver.by_cost);
    free(solver.refused);
    free(solver.slot);
    *cover = out;
    return found;
}
