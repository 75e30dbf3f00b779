// SPDX-License-Identifier: Apache-2.0
//
// Points that are often good, to try first: of products and streams by an estimate, then
// those of the other patterns, and shapes that were measured among the best.

#include "derive/derive_parts.h"

#include <string.h>

// Setting parameters --------------------------------------------------------------------

static void set_all(const Derivation *d, Point *point, const char *format, va_list args)
{
    char text[256], *rest = text;
    vsnprintf(text, sizeof text, format, args);
    for (char *name; (name = strsep(&rest, "="));)
        space_set(d->space, point, name, strsep(&rest, " "));
}

void set_values(const Derivation *d, Point *point, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_all(d, point, format, args);
    va_end(args);
}

bool try_values(const Derivation *d, Point *point, const char *format, ...)
{
    Point tried = *point;
    va_list args;
    va_start(args, format);
    set_all(d, &tried, format, args);
    va_end(args);
    if (!space_valid(d->space, &tried))
        return false;
    *point = tried;
    return true;
}

// The plain point -----------------------------------------------------------------------

void derive_plain(const Derivation *d, Point *point)
{
    *point = d->plain;
}

void derive_single(const Derivation *d, Point *point)
{
    memset(point, 0, sizeof *point); // first choices: 1, inline, global, fused
    int64_t largest = MIN(d->device.max_group, 256);
    if (d->shape.lowered) {
        set_number(d, point, "lx", MIN(64, largest));
        return;
    }
    // By dimensions. A GPU starts few groups at a time (64 items of one word each: a fifth
    // of a copy), and moves rows of 128 bytes. Items that are a loop go along rows.
    static const int64_t shape[][DIMS_MAX][2] = {{{256, 1}, {32, 8}, {64, 4}},
                                                 {{256, 1}, {256, 1}, {256, 1}}};
    const int64_t *group = shape[d->device.is_cpu][MAX(d->shape.dims, 1) - 1];
    set_number(d, point, "lx", MIN(group[0], largest));
    set_number(d, point, "ly", MIN(group[1], MAX(largest / group[0], 1)));
    if (d->device.is_cpu)
        space_set(d->space, point, "border", "split");
    cover_apart(d, point);
    set_number(d, point, "groups", 64);
    fold_plain(d, point);
    keyed_plain(d, point);
    strips_plain(d, point);
    order_plain(d, point);
    cover_plain(d, point);
}

// Those to try first ----------------------------------------------------------------------

bool is_new(const Derivation *d, const Point *point, int n)
{
    for (int i = 0; i < n; i++)
        if (memcmp(&point[i], &point[n], sizeof *point) == 0)
            return false;
    return memcmp(&d->plain, &point[n], sizeof *point) != 0 &&
           space_valid(d->space, &point[n]);
}

// Work-group, outputs of an item, its walk and its vectors, with the border split off.
typedef struct {
    int lx, ly, bx, by, bz, walk, vec;
    bool split;
} Start;

// Measured among the best: on PoCL; on an H200 for the stencils of the examples, where rows
// in three dimensions are short, so that a border split off would take part of every warp.
// There what limits is the second-level cache (97 % busy), so that groups are large: tall
// ones of short walks for stars, long walks for boxes. The last ones are for rows of odd
// lengths, which have no aligned vectors.
enum { STARTS = 9 };
static const Start start_cpu[STARTS] = {
    {64, 4, 1, 1, 1, 1, 1, true},  {256, 1, 1, 1, 1, 1, 1, true},
    {16, 1, 8, 4, 1, 1, 1, true},  {32, 4, 4, 2, 1, 1, 1, true},
    {128, 1, 4, 4, 1, 1, 1, true}, {8, 4, 16, 4, 1, 1, 1, true}};
static const Start start_flat[STARTS] = {
    {32, 4, 4, 2, 1, 1, 4, true},   {64, 2, 4, 4, 1, 1, 4, true},
    {128, 2, 2, 4, 1, 1, 2, true},  {64, 4, 4, 2, 1, 1, 4, true},
    {128, 1, 4, 4, 1, 1, 4, true},  {256, 1, 1, 1, 1, 1, 1, true},
    {256, 1, 1, 8, 1, 1, 1, false}, {128, 2, 1, 8, 1, 1, 1, false},
    {128, 1, 1, 8, 1, 1, 1, true}};
static const Start start_deep[STARTS] = {
    {64, 8, 4, 1, 1, 4, 4, false},  {64, 8, 2, 4, 1, 4, 2, false},
    {64, 4, 4, 4, 1, 64, 4, false}, {64, 4, 2, 2, 1, 8, 2, false},
    {32, 4, 4, 2, 1, 4, 4, false},  {32, 8, 4, 1, 1, 4, 4, false},
    {128, 4, 2, 4, 1, 4, 2, false}, {64, 4, 2, 2, 4, 1, 2, false},
    {64, 4, 1, 2, 4, 1, 1, false}};

static void set_start(const Derivation *d, const Start *start, Point *point)
{
    derive_single(d, point);
    bool given = !d->device.is_cpu || cpu_makes_vectors(d);
    set_values(d, point,
               "lx=%d ly=%d lz=1 bx=%d by=%d bz=%d walk=%d vec=%d border=%s inner=unroll",
               start->lx, start->ly, start->bx, start->by, start->bz, start->walk,
               given ? start->vec : MIN(start->bx, 4), start->split ? "split" : "inline");
    // On PoCL what is computed again costs more than what is stored: blur of 2048 x 2048
    // takes 17.8 ms as one kernel, 4.6 as two.
    if (!d->device.is_cpu)
        cover_choose(d, point, 0, false);
}

// As a start says, but items have all of the short axes; those of such an axis lie along
// the next one.
static void set_few_start(const Derivation *d, const Start *start, Point *point)
{
    set_start(d, start, point);
    for (int x = 0; x < d->shape.dims; x++)
        if (d->shape.few[x]) {
            set_values(d, point, "l%s=1 b%s=%d", derive_axis[x], derive_axis[x],
                       (int)d->shape.few[x]);
            set_values(d, point, x == 0 ? "vec=1 ly=64" : x == 1 ? "lz=1" : "walk=1");
        }
}

// The best covers by prediction, with tiles and without. A tile has no walk.
enum { COVER_STARTS = 4 };

static bool cover_start(const Derivation *d, const Start *start, int i, Point *point)
{
    set_start(d, start, point);
    set_number(d, point, "walk", 1);
    return cover_choose(d, point, i / 2, i % 2);
}

// Loops that streams serve badly have sweeps tried soon, too.
static void mix_sweeps(Point *point, int streams, int n)
{
    enum { AHEAD = 3, SWEEPS = 4 };
    Point sweep[SWEEPS];
    if (streams <= AHEAD || n < streams + SWEEPS)
        return;
    memcpy(sweep, &point[streams], sizeof sweep);
    memmove(&point[AHEAD + SWEEPS], &point[AHEAD],
            (size_t)(streams - AHEAD) * sizeof *point);
    memcpy(&point[AHEAD], sweep, sizeof sweep);
}

// Those of products but the plain one.
static int add_products(const Derivation *d, Point *point, int max)
{
    int n = 0;
    for (int i = 0; i < MIN(d->ntiles, max); i++) {
        point[n] = d->tiles[i];
        n += is_new(d, point, n);
    }
    return n;
}

int derive_estimated(const Derivation *d)
{
    Point point[TILES_MOST];
    int tiles = add_products(d, point, TILES_MOST);
    int streams = tiles ? 0 : stream_first(d, 0.8, point, STREAMS_FEW + 1);
    int keyed = !tiles && streams <= STREAMS_FEW && keyed_first(d, 0, point);
    return tiles ? tiles : streams > STREAMS_FEW ? streams : keyed;
}

int derive_first(const Derivation *d, Point *point, int max)
{
    static bool (*const starts[])(const Derivation *d, int i, Point *point) = {
        keyed_first, list_first, strips_first, together_first};
    const Start *start = d->device.is_cpu     ? start_cpu
                         : d->shape.dims == 3 ? start_deep
                                              : start_flat;
    const int products = add_products(d, point, max);
    const int streams = stream_first(d, 1.2, point + products, max - products);
    int n = products + streams;
    n += pass_first(d, point + n, max - n);
    for (int k = 0; k < COUNTOF(starts); k++)
        for (int i = 0; n < max && starts[k](d, i, &point[n]); i++)
            n += is_new(d, point, n);
    for (int i = 0; i < 2 * COVER_STARTS && n < max && d->pipeline; i++)
        n += cover_start(d, &start[0], i, &point[n]) && is_new(d, point, n);
    for (int i = 0; n < max && derive_fold_first(d, i, &point[n]); i++)
        n += is_new(d, point, n);
    enum { FEW_STARTS = 3 };
    // Cells of a time loop that ask where they are load by vectors, and keep what the next
    // one loads, only where the border is split off. What folds by key has no such nest but
    // the one that joins what groups made.
    const int all = d->shape.keyed.keys && !d->pipeline ? 0
                    : d->shape.steps.count < 2          ? STARTS
                                                        : 2 * STARTS;
    const bool few = d->shape.few[0] || d->shape.few[1] || d->shape.few[2];
    for (int i = 0; few && i < FEW_STARTS && n < max; i++) {
        set_few_start(d, &start[i], &point[n]);
        n += is_new(d, point, n);
    }
    for (int i = 0; i < all && n < max; i++) {
        set_start(d, &start[i % STARTS], &point[n]);
        if (i >= STARTS)
            space_set(d->space, &point[n], "border", "split");
        n += is_new(d, point, n);
    }
    mix_sweeps(point + products, streams, n - products);
    for (int i = 0; i < 2 * COVER_STARTS * (STARTS - 1) && n < max && d->pipeline; i++)
        n += cover_start(d, &start[1 + i % (STARTS - 1)], i / (STARTS - 1), &point[n]) &&
             is_new(d, point, n);
    return n;
}

// The size of a group ---------------------------------------------------------------------

// Copies to local memory have the halo too, so what is computed outside them comes first.
static void note_local(const Expr *expr, bool copies, int64_t *local)
{
    int64_t len;
    bool pattern = expr->kind == E_PATTERN;
    if (pattern && expr->pattern == P_TOLOCAL && !copies)
        return;
    if (pattern && expr->pattern == P_MAPLCL && arith_is_const(expr->type->len, &len))
        local[expr->par] = MAX(local[expr->par], len);
    if (expr->fun)
        note_local(expr->fun, copies, local);
    for (int i = 0; i < expr->narg; i++)
        note_local(expr->arg[i], copies, local);
}

bool derive_natural(const Expr *body, int64_t most, int64_t local[3])
{
    int64_t plain[3] = {0}, any[3] = {0};
    note_local(body, false, plain);
    note_local(body, true, any);
    if (any[0] + any[1] + any[2] == 0)
        return false;
    for (int d = 0; d < 3; d++)
        local[d] = MAX(plain[d] > 1 ? plain[d] : any[d], 1);
    for (int d = 2; d >= 0; d--)
        while (local[d] > 1 && local[0] * local[1] * local[2] > most)
            local[d] = (local[d] + 1) / 2;
    return true;
}
