// SPDX-License-Identifier: Apache-2.0
//
// Points of time loops and of pipelines to try first: all shapes of streams in the order of
// an estimate of their time.
//
//   method  A group of warps walks along its strip; an iteration takes as long as what its
//           multiprocessor's warps need of issue slots, of arithmetic, of what shuffles and
//           local memory share, or of memory, whichever is most, and what a barrier costs.
//           Iterations are the rows of a strip and those that it computes only to have what
//           it reads; groups run in as many turns as the card must take. So strips that
//           fill the card once, wide lanes, and deep relays come first where they fit
//           registers. What is not estimated: whatever compilers do, caches, the border.
//
// The constants of streams were fitted to 14 loops on an H200 with 7 to 63 points each, in
// two and three dimensions, float and double, radius 1 to 3. Fitted without some of these
// loops, the first point by the estimate took 1.11 times the time of the best measured of
// those left out, the best of its first three 1.02 times. Those of groups that do not walk
// are of an H100.

#include "derive/derive_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Bytes that memory moves in a cycle of a multiprocessor, and caches; cycles from a launch
// to the next, where they overlap; rows of a relay from barrier to barrier, at most.
enum { BYTES = 17, NEAR = 21, LAUNCH = 2500, BATCH = 5 };
enum { FUSE, COLS, RELAY, WARPS, LY, BY, EARLY, ROWS, NUMBERS };
static const char *const number_name[NUMBERS] = {"fuse", "cols", "relay", "warps",
                                                 "ly",   "by",   "early", "rows"};

typedef struct {
    int64_t n[NUMBERS];
    double cost;
} FirstStream;

typedef struct {
    const Derivation *d;
    const TimeLoop *loop;
    bool deep, flat; // flat: groups hold their rows and do not walk
    VEC(FirstStream) found;
    Arena *arena;
} StreamSearch;

// How a launch covers the grid.
typedef struct {
    int64_t team, resident; // warps of a group, groups of a multiprocessor
    int64_t lines, own;     // rows of a tile and columns of a strip that are written
    int64_t groups, length; // of a launch; iterations of one
} Covering;

static bool cover(const StreamSearch *s, const FirstStream *p, Covering *c)
{
    const TimeLoop *loop = s->loop;
    int64_t fuse = p->n[FUSE], cols = p->n[COLS], relay = p->n[RELAY];
    int64_t halo = fuse * loop->beyond[loop->dims - 1], width = loop->size[loop->dims - 1];
    if (relay == 1)
        halo = ceil_div(halo, cols) * cols;
    c->team = s->deep || s->flat ? p->n[LY] : relay;
    c->resident = MAX(p->n[WARPS] / c->team, 1);
    c->own = s->d->device.lanes * cols - 2 * halo;
    c->lines = s->deep || s->flat
                   ? p->n[LY] * p->n[BY] - 2 * fuse * loop->beyond[s->deep ? 1 : 0]
                   : 1;
    if (c->own < 1 || c->lines < 1)
        return false;
    if (s->flat) {
        c->length = 1;
        c->groups = ceil_div(loop->size[0], c->lines) * ceil_div(width, c->own);
        return true;
    }
    int64_t height = loop->dims > 1 ? loop->size[0] : 1;
    int64_t streams = ceil_div(height, p->n[ROWS]);
    int64_t around = loop->dims > 1 ? 2 * fuse * loop->beyond[0] : 0;
    c->length = loop->dims > 1 ? ceil_div(height, streams) + around + relay : 1;
    c->groups = streams * ceil_div(width, c->own) *
                (s->deep ? ceil_div(loop->size[1], c->lines) : 1);
    return true;
}

// Rows that a lane loads before their use.
static double rows_early(const StreamSearch *s, const FirstStream *p)
{
    return p->n[EARLY] ? (double)stream_rows(s->loop) : 1;
}

// Registers of a lane: what steps keep from row to row, also of other lanes' cells where
// these are read again, and what one row needs for a moment.
static double registers(const StreamSearch *s, const FirstStream *p)
{
    const TimeLoop *loop = s->loop;
    double steps = (double)(p->n[FUSE] / p->n[RELAY]), words = (double)loop->bytes / 4;
    double lines = s->deep ? (double)p->n[BY] : 1, cols = (double)p->n[COLS];
    double x = 2 * (double)loop->beyond[loop->dims - 1];
    double y = s->deep ? 2 * (double)loop->beyond[1] : 0;
    double around = x * lines + y * cols + (loop->around ? x * y : 0);
    return steps *
               (1.07 * cols * lines * (double)loop->words + around * (double)loop->around) +
           (0.8 + rows_early(s, p)) * cols * lines * words + (double)loop->wide * around +
           43;
}

// The lanes of a relay move rows together: does each not have as many cells of a row?
static bool is_uneven(const FirstStream *p)
{
    return p->n[COLS] % p->n[RELAY] != 0;
}

// Instructions of a lane that move rows of a relay between memory and its rings.
static double relayed(const FirstStream *p, double words)
{
    return (is_uneven(p) ? 21 : 10) * (double)ceil_div(p->n[COLS], p->n[RELAY]) * words;
}

// Warps that the four schedulers of a multiprocessor have to wait for.
static double warps_at_once(const Covering *c, int64_t groups)
{
    return (double)(4 * ceil_div(groups * c->team, 4));
}

// Cycles of an iteration on a multiprocessor that has so many groups: what arithmetic and
// what local memory and shuffles need is not done at once by so few warps.
static double iteration(const StreamSearch *s, const FirstStream *p, const Covering *c,
                        int64_t groups)
{
    const TimeLoop *loop = s->loop;
    const bool relay = p->n[RELAY] > 1;
    double steps = (double)(p->n[FUSE] / p->n[RELAY]), words = (double)loop->bytes / 4;
    double lines = s->deep ? (double)p->n[BY] : 1, cells = lines * (double)p->n[COLS];
    double warps = warps_at_once(c, groups);
    double arithmetic = steps * cells * ((double)loop->ops + 0.6);
    double shuffled = steps * lines * 2 * (double)loop->beyond[loop->dims - 1] * words;
    double met =
        s->deep ? MIN(lines, 2 * (double)loop->beyond[1]) + 2 * (double)loop->beyond[1] : 0;
    double shared =
        words * (double)p->n[COLS] *
        (relay ? 2 + 3 / (double)c->team
               : 2 * lines + steps * met * (double)loop->met / (double)MAX(loop->bytes, 1));
    double moved = relay ? relayed(p, words) : 4.6 * cells * words;
    double most = MIN(255, floor(2048.0 / (double)p->n[WARPS] / 8) * 8);
    double spilt = 2.25 * MAX(registers(s, p) - most, 0);
    double issued = 1.05 * arithmetic + shuffled + 0.24 * shared + moved + spilt + 11;
    double row = (double)(s->d->device.lanes * p->n[COLS]);
    double bytes =
        (double)(groups * loop->bytes) *
        (row * (s->deep ? (double)p->n[LY] * lines : 1) + (double)(c->own * c->lines));
    double computed = warps * MAX(issued, arithmetic * (double)loop->wide) / 4;
    double exchanged = warps * (shuffled + shared + spilt);
    double both = relay ? 0.29 : s->deep ? 0.62 : 0.57; // of the shorter, beside the longer
    double time = MAX(computed, exchanged) + both * MIN(computed, exchanged) +
                  (is_uneven(p) ? 110 : 0);
    double batch = stream_rows(loop) <= BATCH ? (double)stream_rows(loop) : 1;
    double arrives = relay ? 500 / batch : 1330 / rows_early(s, p);
    time = MAX(MAX(time, arrives), MAX(bytes / BYTES, steps * 96));
    return time + (relay ? 52 : c->team > 1 ? 148 : 10);
}

// The same of a group that does not walk: its steps one after another, each with a barrier.
static double standing(const StreamSearch *s, const FirstStream *p, const Covering *c,
                       int64_t groups)
{
    const TimeLoop *loop = s->loop;
    double words = (double)loop->bytes / 4, warps = warps_at_once(c, groups);
    double lines = (double)p->n[BY], cells = lines * (double)p->n[COLS];
    double arithmetic = cells * (double)(loop->ops + 1);
    double shuffled = lines * 2 * (double)loop->beyond[1] * words;
    double reach = 2 * (double)loop->beyond[0];
    double shared =
        (double)p->n[COLS] * (MIN(lines, reach) + reach) * (double)loop->flat_met / 4;
    double most = MIN(255, floor(2048.0 / (double)p->n[WARPS] / 8) * 8);
    double spilt = 2.3 * MAX(2 * cells * words + 40 - most, 0);
    double issued = 0.7 * arithmetic + shuffled + shared / 3 + spilt + 10;
    double computed = warps * MAX(issued, arithmetic * (double)loop->wide) / 4;
    double exchanged = warps * (shuffled + shared + spilt);
    double step = MAX(computed, exchanged) + 0.35 * MIN(computed, exchanged);
    double row = (double)(s->d->device.lanes * p->n[COLS] * p->n[LY]) * lines;
    double bytes = (double)(groups * loop->bytes) * (row + (double)(c->own * c->lines));
    double steps = (double)p->n[FUSE] * (MAX(step, 60) + 20), moved = bytes / NEAR;
    return MAX(steps, moved) + 0.5 * MIN(steps, moved) + 100; // groups overlap
}

static double estimate(const StreamSearch *s, const FirstStream *p)
{
    Covering c;
    if (!cover(s, p, &c))
        return INFINITY;
    int64_t units = MAX(s->d->device.compute_units, 1), slots = units * c.resident;
    int64_t groups = MIN(c.resident, ceil_div(c.groups, units));
    double turns = (double)ceil_div(c.groups, slots);
    if (turns > 3) // those that are done early take others
        turns = (double)c.groups / (double)slots + 0.5;
    int64_t fuse = p->n[FUSE], rest = s->loop->count % fuse;
    double launches = (double)(s->loop->count / fuse) +
                      (rest ? 0.3 + 0.7 * (double)rest / (double)fuse : 0);
    double launched = (double)ceil_div(s->loop->count, fuse) * LAUNCH;
    double walk = s->flat ? standing(s, p, &c, groups)
                          : (double)c.length * iteration(s, p, &c, groups) +
                                (s->loop->dims > 1 ? 0 : 1100);
    return launched + launches * turns * walk;
}

// The rows of a strip with which one turn, or several, fill the card best.
static void choose_rows(StreamSearch *s, FirstStream *p)
{
    const SpaceParam *rows = space_param(s->d->space, space_find(s->d->space, "rows"));
    FirstStream best = {.cost = INFINITY};
    for (int i = 0; i < rows->n; i++) {
        p->n[ROWS] = (int64_t)rows->value[i];
        if ((p->n[ROWS] == 1) != s->flat)
            continue;
        p->cost = estimate(s, p);
        if (p->cost < best.cost)
            best = *p;
    }
    if (best.cost < INFINITY)
        VEC_PUSH(s->arena, &s->found, best);
}

static void choose(StreamSearch *s, FirstStream *p, int number)
{
    if (number == ROWS) {
        bool teams = p->n[WARPS] % (s->deep || s->flat ? p->n[LY] : p->n[RELAY]) == 0 &&
                     (p->n[RELAY] == 1 || !p->n[EARLY]);
        if ((p->n[FUSE] > 1 || s->d->shape.stream) && p->n[FUSE] % p->n[RELAY] == 0 &&
            teams)
            choose_rows(s, p);
        return;
    }
    int i = space_find(s->d->space, number_name[number]);
    const SpaceParam *param = i >= 0 ? space_param(s->d->space, i) : NULL;
    bool lines = number == LY || number == BY;
    bool fixed = !param || (s->flat   ? number == RELAY || number == EARLY
                            : s->deep ? false
                                      : lines);
    p->n[number] = 1;
    for (int k = 0; k < (fixed ? 1 : param->n); k++) {
        p->n[number] = number == EARLY ? k : fixed ? 1 : (int64_t)param->value[k];
        choose(s, p, number + 1);
    }
}

static int compare(const void *a, const void *b)
{
    const FirstStream *p = a, *q = b;
    if (p->cost != q->cost)
        return p->cost < q->cost ? -1 : 1;
    return memcmp(p->n, q->n, sizeof p->n);
}

// The likely shapes, the best one first.
static void find_shapes(StreamSearch *s)
{
    s->loop = &s->d->shape.steps;
    s->deep = s->loop->dims == 3;
    for (int i = 0; i < (s->loop->flat_reads && !s->d->shape.stream ? 2 : 1); i++) {
        s->flat = i;
        choose(s, &(FirstStream){.cost = 0}, 0);
    }
    if (s->found.len)
        qsort(s->found.at, (size_t)s->found.len, sizeof *s->found.at, compare);
}

static void set_stream(const Derivation *d, const FirstStream *stream, Point *point)
{
    derive_single(d, point);
    set_number(d, point, "lx", d->device.lanes);
    for (int i = 0; i < NUMBERS; i++)
        if (i != EARLY)
            set_number(d, point, number_name[i], stream->n[i]);
    if (space_find(d->space, "early") >= 0)
        space_set(d->space, point, "early", stream->n[EARLY] ? "all" : "next");
    if (fuses_stages(d)) // which have names
        cover_apart(d, point);
}

// All steps as sweeps: what memory takes for them.
static double sweeps(const StreamSearch *s)
{
    const TimeLoop *loop = s->loop;
    double bytes = (double)(loop->count * (loop->bytes + loop->written));
    for (int k = 0; k < loop->dims; k++)
        bytes *= (double)loop->size[k];
    return 1.1 * bytes / (BYTES * (double)MAX(s->d->device.compute_units, 1)) +
           (double)(loop->count * LAUNCH);
}

// Shapes that differ in little are about as good: few of each kind are tried.
static bool is_like(const FirstStream *a, const FirstStream *b)
{
    int differ = 0;
    for (int i = 0; i < NUMBERS; i++)
        differ += a->n[i] != b->n[i];
    return differ < 2;
}

// On a processor: columns, lines and steps that caches of some sizes hold.
static int rows_first(const Derivation *d, Point *point, int max)
{
    static const int64_t cols[] = {1024, 512, 2048, 256, 128}, fuse[] = {8, 4, 16, 2};
    int n = 0;
    for (int i = 0; i < COUNTOF(cols) * COUNTOF(fuse) && n < max; i++) {
        FirstStream stream = {.n = {fuse[i / COUNTOF(cols)], cols[i % COUNTOF(cols)], 1, 1,
                                    32, 1, 0, i % 2 ? 256 : 1024}};
        memset(&point[n], 0, sizeof *point);
        set_stream(d, &stream, &point[n]);
        set_number(d, &point[n], "lx", 1);
        if (d->shape.steps.dims < 3)
            set_number(d, &point[n], "ly", 1);
        n += space_valid(d->space, &point[n]);
    }
    return n;
}

// A shape as the cover number `cover` by prediction; brief: with strips of few rows and
// more registers. False: there is no such cover.
static bool set_pass(const Derivation *d, const FirstStream *one, int cover, bool brief,
                     Point *point)
{
    enum { ROWS_MOST = 32, COLUMNS_MOST = 32, WARPS_LEAST = 8 };
    set_stream(d, one, point);
    space_set(d->space, point, "scheme", "stream");
    if (brief) {
        int64_t warps = MAX(COLUMNS_MOST / one->n[COLS], WARPS_LEAST);
        set_number(d, point, "rows", MIN(one->n[ROWS], ROWS_MOST));
        if (warps % one->n[LY] == 0) // of whole groups
            set_number(d, point, "warps", MIN(one->n[WARPS], warps));
    }
    return cover_choose(d, point, cover, false);
}

enum { PASS_COVERS = 2 }; // of a pipeline, those whose shapes are tried

static bool can_pass(const Derivation *d, const FirstStream *one)
{
    Point point;
    for (int cover = 0; cover < PASS_COVERS; cover++)
        if (set_pass(d, one, cover, true, &point) && space_valid(d->space, &point))
            return true;
    return false;
}

// The best valid shape of each width of a lane's part of a row, or tile; how many.
static int best_shapes(const StreamSearch *s, FirstStream *shape, int max)
{
    int n = 0;
    for (int i = 0; i < s->found.len && n < max; i++) {
        const int64_t *number = s->found.at[i].n;
        bool seen = false;
        for (int k = 0; k < n; k++)
            seen |= shape[k].n[COLS] == number[COLS] && shape[k].n[BY] == number[BY];
        if (!seen && can_pass(s->d, &s->found.at[i]))
            shape[n++] = s->found.at[i];
    }
    return n;
}

// All shapes in brief strips as the best cover, then in strips that fill the card; then
// some as the next cover. An estimate does not see what long windows need of registers, so
// groups are fewer than it thinks. (H200, sums of 13 x 13 floats, one kernel: 102 us in
// strips of 32 rows, 2 columns a lane, 16 warps; 134 in 256 rows; 236 in the shape that the
// estimate prefers, of 512 rows and 1 column.)
int pass_first(const Derivation *d, Point *point, int max)
{
    enum { SHAPES = 4, AGAIN = 2 };
    if (!d->shape.stream)
        return 0;
    StreamSearch s = {.d = d, .arena = arena_new()};
    FirstStream shape[SHAPES];
    find_shapes(&s);
    int n = 0, shapes = best_shapes(&s, shape, SHAPES);
    for (int cover = 0; cover < PASS_COVERS; cover++)
        for (int brief = 1; brief >= 0; brief--)
            for (int i = 0; i < (cover ? MIN(shapes, AGAIN) : shapes) && n < max; i++)
                n += set_pass(d, &shape[i], cover, brief, &point[n]) && is_new(d, point, n);
    arena_free(s.arena);
    return n;
}

int stream_first(const Derivation *d, double share, Point *point, int max)
{
    enum { FIRST = 16 };
    if (!has_stream(d) || streams_rows(d))
        return has_stream(d) ? rows_first(d, point, max) : 0;
    StreamSearch s = {.d = d, .arena = arena_new()};
    find_shapes(&s);
    int n = 0, taken[FIRST];
    for (int i = 0; i < s.found.len && n < MIN(max, FIRST); i++) {
        if (n == STREAMS_FEW && s.found.at[i].cost > share * sweeps(&s))
            break;
        bool like = false;
        for (int k = 0; k < n; k++)
            like |= is_like(&s.found.at[taken[k]], &s.found.at[i]);
        if (like)
            continue;
        memset(&point[n], 0, sizeof *point);
        set_stream(d, &s.found.at[i], &point[n]);
        if (space_valid(d->space, &point[n]))
            taken[n++] = i;
    }
    arena_free(s.arena);
    return n;
}
