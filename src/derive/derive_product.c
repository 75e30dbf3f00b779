// SPDX-License-Identifier: Apache-2.0
//
// The parameters of products: whether a work-item folds a block of outputs in registers, or
// a warp one on matrix units, how much of each row the group copies to local memory at a
// time, and how the loops over that are run.

#include "derive/derive_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNROLL_LOOPS = 32 };

// Both tiles in local memory, twice where they leave some of the fold, with rows that may
// be padded; every item copies the same number of neighbours of each.
static void constrain_stage(Derivation *d, Diags *diags)
{
    constrain(d, diags,
              "stage == 0 or (lx*bx*cx + ly*by*cy + 8) * stage * %d * (1 + (%s%lld %% "
              "max(stage, 1) > 0)) <= %lld",
              (int)sizeof(double),
              space_find(d->space, "parts") >= 0 ? "parts > 1 or " : "",
              (long long)d->shape.common, (long long)d->device.local_bytes);
    space_constrain(d->space, "product != 'blocks' or (bx*cx*stage) % ly == 0", diags);
    space_constrain(d->space, "product != 'blocks' or (by*cy*stage) % lx == 0", diags);
}

// Accumulators of an item; of double they are registers twice.
enum { FRAGMENTS = 64 };

// Bytes of a factor at most, as far as the arrays say, whose lists are of other things;
// there are none of one byte.
static int factor_bytes(const Derivation *d)
{
    int bytes = 2;
    const Function *main = d->program->main;
    for (int i = 0; i < main->nparam; i++) {
        const Type *scalar = type_leaf(main->params[i]->type);
        if (scalar->kind == T_SCALAR && type_depth(main->params[i]->type) != 1)
            bytes = MAX(bytes, scalar_info[scalar->scalar].bytes);
    }
    return bytes;
}

static void add_unit_param(Derivation *d)
{
    space_add_words(d->space, "unit", (const char *const[]){"warp", "group"},
                    MIN(d->device.matrix, 2));
}

// Groups of 8 x 8 outputs of a warp, of which each item has two: mx and my of them. Tiles
// are padded by at most 8 elements a row, and in the shape of either factor's memory; four
// warps together read them as they lie, in rows of 64 elements.
static void add_matrix_params(Derivation *d, Diags *diags)
{
    Space *space = d->space;
    const int bytes = factor_bytes(d);
    space_add_ints(space, "mx", (const int64_t[]){1, 2, 4, 8, 16, 32}, 6);
    space_add_ints(space, "my", (const int64_t[]){1, 2, 4, 8, 16}, 5);
    space_add_ints(space, "stages", (const int64_t[]){1, 2, 3, 4, 6}, 5);
    space_constrain(space, "stages == 1 or (product == 'matrix' and load == 'now')", diags);
    space_constrain(space, "product == 'matrix' or mx * my == 1", diags);
    space_constrain(
        space,
        "product != 'matrix' or (lx % 4 == 0 and lx <= 16 and ly % 8 == 0 and mx "
        "> 1 and my > 1 and stage > 8 and tiles == 'loop')",
        diags);
    space_constrain(space, "product == 'matrix' or stage <= 32", diags);
    constrain(d, diags, "mx * my <= %d", bytes == 8 ? FRAGMENTS / 2 : FRAGMENTS);
    constrain(d, diags,
              "product != 'matrix' or ((lx*2*mx + ly*my) * stage + (unit == 'warp') * "
              "8*(lx*2*mx + ly*my + 2*stage)) * stages * %d <= %lld",
              bytes, (long long)d->device.local_bytes);
    constrain(
        d, diags,
        "product != 'matrix' or ((2*mx*stage) %% (ly*%d) == 0 and (my*stage) %% (lx*%d) "
        "== 0)",
        16 / bytes, 16 / bytes);
    space_constrain(space,
                    "unit == 'warp' or (product == 'matrix' and lx == 4 and ly % 32 == 0 "
                    "and mx >= 8 and my <= 4 and stage == 64)",
                    diags);
}

// The element type of the tiles of what is folded on matrix units, and that of its sums;
// NULL: nothing is.
static const Type *matrix_type(const Expr *expr, Scalar *sums)
{
    if (expr_is(expr, P_REDMATRIX)) {
        const Expr *sum = expr->fun->arg[0];
        while (sum->kind == E_PATTERN) // a map, or one of rows
            sum = sum->fun->arg[0];
        const Expr *factor = sum->arg[1]->arg[0];
        *sums = sum->type->scalar;
        return factor->kind == E_OP ? factor->arg[0]->type : factor->type;
    }
    const Type *found = expr->fun ? matrix_type(expr->fun->arg[0], sums) : NULL;
    for (int i = 0; i < expr->narg && !found; i++)
        found = matrix_type(expr->arg[i], sums);
    return found;
}

// What a point of products is made of; NULL: nothing.
static const Expr *product_body(const Derivation *d, const char *values, Diags *diags)
{
    Diags ignored = {.arena = diags->arena};
    Point point;
    derive_single(d, &point);
    set_values(d, &point, "%s", values);
    return derive_body(d, &point, &ignored);
}

// Can groups copy tiles of both factors? Not what is read under a guard.
static void settle_stage(Derivation *d, Diags *diags)
{
    if (space_param(d->space, space_find(d->space, "stage"))->n < 2)
        return;
    const Expr *body =
        product_body(d, "product=blocks lx=8 ly=8 lz=1 bx=4 by=4 stage=8", diags);
    d->shape.staged = body && expr_find_pattern(body, P_TOLOCAL);
    if (!d->shape.staged)
        space_constrain(d->space, "product != 'blocks' or stage == 0", diags);
}

void settle_products(Derivation *d, Diags *diags)
{
    if (d->shape.product)
        settle_stage(d, diags);
    if (space_find(d->space, "mx") < 0)
        return;
    const Expr *body =
        product_body(d, "product=matrix lx=4 ly=8 lz=1 mx=4 my=4 stage=16", diags);
    Scalar sums = S_FLOAT;
    const Type *type = body ? matrix_type(body, &sums) : NULL;
    bool fast = d->program->math == MATH_FAST; // 10 bits of a float's 23 are multiplied
    if (!type || (type->scalar == S_FLOAT && !fast)) {
        space_constrain(d->space, "product != 'matrix'", diags);
        return;
    }
    d->shape.unit_bytes = scalar_info[type->scalar].bytes;
    if (d->shape.unit_bytes != 2 || sums != S_FLOAT)
        space_constrain(d->space, "unit == 'warp'", diags);
}

void add_product_params(Derivation *d, Diags *diags)
{
    Space *space = d->space;
    bool units = d->device.matrix > 0;
    space_add_words(space, "product", (const char *const[]){"plain", "blocks", "matrix"},
                    2 + units);
    // Items that are a loop cannot wait for each other.
    bool threads = !language_is(d->device.target, LANGUAGE_C);
    space_add_ints(space, "stage", (const int64_t[]){0, 8, 16, 32, 64},
                   threads ? 4 + units : 1);
    space_add_words(space, "load", (const char *const[]){"now", "ahead"}, 2);
    space_add_words(space, "tiles", (const char *const[]){"loop", "unroll"}, 2);
    // Two groups of 256 a multiprocessor, or four of 128, bound the registers of an item to
    // 128.
    space_add_ints(space, "resident", (const int64_t[]){0, 2, 4}, d->device.is_cpu ? 1 : 3);
    space_add_ints(space, "band", (const int64_t[]){1, 4, 8, 16}, d->device.is_cpu ? 1 : 4);
    add_parts(d);
    space_constrain(space, "product == 'blocks' or (bx*by*cx*cy == 1 and vec == 1)", diags);
    space_constrain(
        space, "product != 'plain' or (stage == 0 and resident == 0 and band == 1)", diags);
    space_constrain(space, "stage > 0 or (load == 'now' and tiles == 'loop')", diags);
    if (d->shape.dims > 2) // a batch: one product a group
        space_constrain(space, "product == 'plain' or lz*bz*cz == 1", diags);
    constrain_stage(d, diags);
    if (units) {
        add_unit_param(d);
        add_matrix_params(d, diags);
    }
}

// First points ---------------------------------------------------------------------------
//
// The tiles that a multiprocessor would be done with soonest, by what limits it: the units
// that multiply, what it loads from the second-level cache, what is read from local memory,
// instructions; or, with few groups at once, waiting. One point a shape of tiles. The
// constants of matrix units are fitted to 47 points of 4096 x 4096 x 4096 on an H200, those
// of items to 240 points of eight products there.

typedef enum { UNIT_ITEM, UNIT_WARP, UNIT_GROUP } MultiplyUnit;

typedef struct {
    int64_t lx, ly, bx, by, cx, cy, stage, stages, resident, parts;
    MultiplyUnit unit;
    double cost;
} ProductTiles;

enum { FIRST_ITEMS = 6, FIRST_DIRECT = 3, FIRST_RINGS = 5, FIRST_AHEAD = 3 };
enum { REGISTERS_MOST = 255 };
enum { REGISTERS = 65536, ITEMS_AT_ONCE = 2048, USUAL_UNITS = 100 };

static int64_t tile_rows(const ProductTiles *t)
{
    return t->ly * t->by * t->cy;
}

static int64_t tile_columns(const ProductTiles *t)
{
    return t->lx * t->bx * t->cx;
}

// About how many registers an item needs.
static double registers_of(const ProductTiles *t, int bytes)
{
    const double words = bytes == 8 ? 2 : 1, items = (double)(t->lx * t->ly);
    double held = words * (double)(t->bx * t->by * t->cx * t->cy);
    double fragments = t->unit == UNIT_GROUP ? 0
                       : t->unit == UNIT_WARP
                           ? 2 * words * (double)(t->cx + t->cy)
                           : words * (double)(t->bx * t->cx + t->by * t->cy);
    double under_way =
        t->stages > 1
            ? 0
            : (double)((tile_rows(t) + tile_columns(t)) * t->stage) * bytes / 4 / items;
    return held + fragments + under_way + (t->unit == UNIT_ITEM ? 28 : 48);
}

static double groups_at_once(const Derivation *d, const ProductTiles *t, int bytes)
{
    const double items = (double)(t->lx * t->ly);
    double registers = registers_of(t, bytes), most = REGISTERS_MOST;
    double tiles =
        (double)((tile_rows(t) + tile_columns(t)) *
                 (t->stage + (t->unit == UNIT_WARP ? 8 : 0)) * t->stages * bytes);
    if (t->resident)
        most = fmin(most, REGISTERS / (items * (double)t->resident));
    if (registers > most)
        return 0;
    if (t->unit == UNIT_ITEM) // compilers take what they may, and machines give eight
        registers = fmin(8 * ceil(most / 8), 8 * ceil(1.25 * registers / 8));
    double by_memory = floor((double)(d->device.local_bytes + 1024) / (tiles + 1024));
    return fmin(by_memory,
                fmin(floor(REGISTERS / (items * registers)), floor(ITEMS_AT_ONCE / items)));
}

// What a multiprocessor needs for a place of the fold: a group, beside others and alone.
typedef struct {
    double limit, alone, start; // start: of a group, whatever it folds
} TileCost;

// Cycles of a multiprocessor for an element of the fold, in which a group finds where the
// elements of the windows are that it copies.
static double window_places(const Derivation *d, const ProductTiles *t)
{
    enum { PLACE = 20 }; // instructions for each of them
    return d->shape.taps && t->stage ? PLACE * (double)tile_columns(t) / 32 / 4 : 0;
}

static TileCost matrix_cost(const ProductTiles *t, int bytes)
{
    const double rows = (double)tile_rows(t), columns = (double)tile_columns(t);
    const bool group = t->unit == UNIT_GROUP;
    double rate = bytes == 8 ? 128 : bytes == 4 ? 512 : group ? 2048 : 1024;
    double products = rows * columns / rate;
    double loads = (rows + columns) * bytes / 56;
    double fragments =
        group ? rows / 64 * (64 + columns) * bytes / 128
              : (double)(t->lx * t->ly) / 32 * 8 * (double)(t->cx + t->cy) * bytes / 128;
    double limit = fmax(products, loads) + fragments / 4;
    double wait = (t->stages > 3 ? 40 : t->stages > 1 ? 150 : 550) / (double)t->stage;
    if (!group)
        wait += 0.7 * bytes * (double)(t->cx + t->cy);
    return (TileCost){limit, limit + wait, 1500};
}

// Wavefronts of a warp that reads b x c elements a lane, of which so many lanes differ.
static double reads_cost(double lanes, int64_t b, int64_t c, int bytes)
{
    double near = (double)b * bytes, at_once = fmin(16, near);
    double conflicts = fmax(near / at_once, 1);
    return near * (double)c / at_once *
           fmax(lanes * at_once / 128 * conflicts, at_once / 8);
}

// Without copies: the elements of the one factor are the same for the warp, those of the
// other are neighbours, of which a row of a window shares all but its ends. Fitted to 128
// points of four convolutions on an H100.
static TileCost direct_cost(const Derivation *d, const ProductTiles *t, int bytes)
{
    const double items = (double)(t->lx * t->ly), warps = ceil(items / 32);
    const double wide = (double)MIN(t->lx, 32), words = bytes / 4.0;
    const double taps = (double)MAX(d->shape.taps, 1);
    const double outputs = (double)(t->bx * t->by * t->cx * t->cy);
    double far = (double)(t->by * t->cy);
    double near = (double)t->cx * ((double)t->bx + taps - 1) / taps;
    double half = bytes == 8 || d->shape.integer ? 2 : 1;
    double multiply = warps * outputs * half / 4;
    double local = warps * (far * words * 32 / wide +
                            near * fmax(words, wide * (double)t->bx * words / 32));
    double issue = warps * (outputs + far + near) / 4;
    double loads = ((double)tile_columns(t) / taps + (double)tile_rows(t)) * bytes / 40;
    double limit =
        fmax(fmax(multiply, local), fmax(issue, loads)) + 0.3 * fmin(multiply, local);
    // At both ends of a row a group asks for each element whether it is there.
    if (d->shape.taps)
        limit *= 1 + 1.2 * fmin(1, 2 * (double)tile_columns(t) / (double)d->shape.wide);
    return (TileCost){limit, fmax(limit, outputs * half + 800 / taps), 1500};
}

static TileCost items_cost(const Derivation *d, const ProductTiles *t, int bytes)
{
    const double both = (double)(tile_rows(t) + tile_columns(t));
    const double items = (double)(t->lx * t->ly), warps = ceil(items / 32);
    const double outputs = (double)(t->bx * t->by * t->cx * t->cy);
    const double wide = (double)MIN(t->lx, 32);
    double vector = fmin((double)t->bx, 16.0 / bytes);
    double read =
        reads_cost(wide, t->bx, t->cx, bytes) + reads_cost(32 / wide, t->by, t->cy, bytes);
    double reads = (double)(t->bx * t->cx + t->by * t->cy) / vector;
    double copies = both / items * (1 / vector + 1);
    double half = bytes == 8 || d->shape.integer ? 2 : 1; // the rate of such a multiply-add
    double multiply = warps * 32 * outputs * half / 128;
    double local = warps * (read + copies);
    double issue = warps * (outputs + reads + 1.5 * copies + 1) / 4;
    double limit = fmax(fmax(multiply, local), fmax(both * bytes / 40, issue)) +
                   0.3 * fmin(multiply, local);
    if (warps < 2) // alone it waits for each of its barriers
        limit *= 1.05;
    double chain = 12 + outputs * half + 2 * reads;
    return (TileCost){limit, fmax(limit, chain) + 300 / (double)t->stage, 1500};
}

// Cycles of a multiprocessor for the kernel that joins parts, of a kernel more, and of what
// both move through memory.
static double join_cost(const Derivation *d, const ProductTiles *t, double units)
{
    enum { LAUNCH = 4000, WAIT = 30, WORDS_A_CYCLE = 4 };
    const Shape *s = &d->shape;
    const double words = (double)s->tall * (double)s->wide * (double)t->parts;
    const double left = (double)(s->depth % (8 * t->parts));
    return t->parts < 2 ? 0
                        : LAUNCH + WAIT * ((double)t->parts + 2 * left) +
                              2 * words / (units * WORDS_A_CYCLE);
}

// Cycles of a multiprocessor.
static double tiles_cost(const Derivation *d, const ProductTiles *t)
{
    const Shape *s = &d->shape;
    const double rows = (double)tile_rows(t), columns = (double)tile_columns(t);
    const int bytes = t->unit == UNIT_ITEM ? factor_bytes(d) : s->unit_bytes;
    const double groups = ceil((double)s->tall / rows) * ceil((double)s->wide / columns) *
                          (double)s->batch * (double)t->parts;
    const double units = d->device.compute_units ? d->device.compute_units : USUAL_UNITS;
    double most = groups_at_once(d, t, bytes), n = fmin(most, ceil(groups / units));
    if (most < 1)
        return INFINITY;
    TileCost c = t->unit != UNIT_ITEM ? matrix_cost(t, bytes)
                 : t->stage           ? items_cost(d, t, bytes)
                                      : direct_cost(d, t, bytes);
    const double places = window_places(d, t);
    c.limit += places;
    c.alone += places;
    // What tiles leave of a fold of windows is read element by element.
    enum { LEFT = 8 };
    const double left = s->taps && t->stage ? (double)(s->depth % t->stage) : 0;
    const double depth = (double)(s->depth / t->parts) + LEFT * left;
    double full = floor(groups / (units * n)), rest = ceil(groups / units - full * n);
    double time = full * (fmax(n * c.limit, c.alone) * depth + c.start);
    if (rest > 0)
        time += fmax(rest * c.limit, c.alone) * depth + c.start;
    return time + join_cost(d, t, units);
}

// As many parts of the fold as cost least; or so many as all points have where its order is
// the program's.
static void choose_tile_parts(const Derivation *d, ProductTiles *t)
{
    const int at = space_find(d->space, "parts");
    double least = INFINITY;
    int64_t best = 1;
    for (int i = 0; at >= 0 && i < space_param(d->space, at)->n; i++) {
        t->parts = (int64_t)space_param(d->space, at)->value[i];
        bool fits = t->parts == 1 || t->parts <= MIN(d->shape.split, d->shape.depth);
        double cost = fits && order_has(d, "parts", t->parts) ? tiles_cost(d, t) : INFINITY;
        if (cost < least) {
            least = cost;
            best = t->parts;
        }
    }
    t->parts = best;
}

static void set_tiles(const Derivation *d, const ProductTiles *t, Point *point)
{
    derive_single(d, point);
    set_values(d, point, "unit=%s load=%s lx=%d ly=%d lz=1 stage=%d stages=%d parts=%d",
               t->unit == UNIT_GROUP ? "group" : "warp",
               t->stages > 1 || !t->stage ? "now" : "ahead", (int)t->lx, (int)t->ly,
               (int)t->stage, (int)t->stages, (int)t->parts);
    if (t->unit == UNIT_ITEM)
        set_values(d, point,
                   "product=blocks cx=%d cy=%d bx=%d by=%d vec=%d resident=%d tiles=%s "
                   "inner=unroll",
                   (int)t->cx, (int)t->cy, (int)t->bx, (int)t->by, (int)MIN(t->bx, 4),
                   (int)t->resident, t->stage && t->stage <= 16 ? "unroll" : "loop");
    else
        set_values(d, point, "product=matrix mx=%d my=%d band=8", (int)t->cx, (int)t->cy);
}

// Keeps it among the best n, of which no two are of one shape.
static int keep_tiles(ProductTiles *best, int n, int most, const ProductTiles *t)
{
    int at = 0;
    while (at < n && (best[at].unit != t->unit || tile_rows(&best[at]) != tile_rows(t) ||
                      tile_columns(&best[at]) != tile_columns(t)))
        at++;
    if (at < n && best[at].cost <= t->cost)
        return n;
    if (at == n && n == most && best[n - 1].cost <= t->cost)
        return n;
    if (at == n && n < most)
        n++;
    for (at = MIN(at, most - 1); at > 0 && best[at - 1].cost > t->cost; at--)
        best[at] = best[at - 1];
    best[at] = *t;
    return n;
}

static int try_tiles(const Derivation *d, ProductTiles *best, int n, int most,
                     ProductTiles *t)
{
    Point point;
    choose_tile_parts(d, t);
    t->cost = tiles_cost(d, t);
    if (!isfinite(t->cost) || (n == most && best[n - 1].cost <= t->cost))
        return n;
    set_tiles(d, t, &point);
    return space_valid(d->space, &point) ? keep_tiles(best, n, most, t) : n;
}

// Those whose tiles are copied asynchronously, or, where they cannot be, loaded ahead.
static int best_matrix(const Derivation *d, bool ring, ProductTiles *best, int most)
{
    static const int64_t stages[2][3] = {{1}, {4, 3, 2}}, depth[] = {64, 32, 16};
    int n = 0;
    for (int i = 0; i < 2 * 3 * 4 * 5 * 4 * 3 * 3; i++) {
        int at = i;
        ProductTiles t = {.unit = at % 2 ? UNIT_GROUP : UNIT_WARP, .bx = 2, .by = 1};
        t.lx = 4 << (at /= 2) % 3;
        t.ly = 8 << (at /= 3) % 4;
        t.cx = 2 << (at /= 4) % 5;
        t.cy = 2 << (at /= 5) % 4;
        t.stage = depth[(at /= 4) % 3];
        t.stages = stages[ring][at / 3];
        n = t.stages ? try_tiles(d, best, n, most, &t) : n;
    }
    return n;
}

static int best_items(const Derivation *d, ProductTiles *best, int most)
{
    static const int64_t resident[] = {2, 4, 0};
    int n = 0;
    for (int i = 0; i < 4 * 4 * 3 * 4 * 2 * 3 * 3; i++) {
        int at = i;
        ProductTiles t = {
            .unit = UNIT_ITEM, .bx = factor_bytes(d) == 8 ? 2 : 4, .stages = 1};
        t.lx = 4 << at % 4;
        t.ly = 4 << (at /= 4) % 4;
        t.cx = 1 << (at /= 4) % 3;
        t.by = 1 << (at /= 3) % 4;
        t.cy = 1 << (at /= 4) % 2;
        t.stage = 8 << (at /= 2) % 3;
        t.resident = resident[at / 3];
        n = try_tiles(d, best, n, most, &t);
    }
    return n;
}

// Where the factors cannot be copied, or one is windows, whose overlap would be copied
// again for each of them.
static int best_direct(const Derivation *d, ProductTiles *best, int most)
{
    int n = 0;
    if (d->shape.staged && !d->shape.taps)
        return 0;
    for (int i = 0; i < 3 * 4 * 3 * 3 * 3; i++) {
        int at = i;
        ProductTiles t = {.unit = UNIT_ITEM, .stages = 1, .cy = 1};
        t.lx = 8 << at % 3;
        t.ly = 1 << (at /= 3) % 4;
        t.bx = 1 << (at /= 4) % 3;
        t.cx = 1 << (at /= 3) % 3;
        t.by = 2 << at / 3;
        n = try_tiles(d, best, n, most, &t);
    }
    return n;
}

static int by_cost(const void *a, const void *b)
{
    const double x = ((const ProductTiles *)a)->cost, y = ((const ProductTiles *)b)->cost;
    return (x > y) - (x < y);
}

// The largest power of two that is at most both.
static int64_t power_within(int64_t most, int64_t extent)
{
    while (most > MAX(extent, 1))
        most /= 2;
    return most;
}

// Items that are loops hold their outputs in vectors; no more than the largest product has.
static void set_loops(const Derivation *d, Point *point, int64_t lx)
{
    const int64_t bx = power_within(16, d->shape.wide), by = power_within(4, d->shape.tall);
    derive_single(d, point);
    if (bx * by < 16)
        return;
    set_values(d, point, "product=blocks lx=%d ly=1 lz=1 bx=%d by=%d", (int)lx, (int)bx,
               (int)by);
}

int product_first(const Derivation *d, Point *point, int max)
{
    ProductTiles best[FIRST_ITEMS + FIRST_DIRECT + FIRST_RINGS + FIRST_AHEAD];
    _Static_assert(COUNTOF(best) == TILES_MOST, "a derivation keeps all of them");
    if (!d->shape.product || max < 1)
        return 0;
    if (d->device.is_cpu) { // measured on PoCL
        set_loops(d, point, 16);
        space_set(d->space, point, "inner", "unroll");
        return space_valid(d->space, point);
    }
    int n = 0, matrix = d->shape.unit_bytes > 0;
    if (matrix) {
        n = best_matrix(d, true, best, FIRST_RINGS);
        n += best_matrix(d, false, best + n, FIRST_AHEAD);
    }
    n += best_items(d, best + n, FIRST_ITEMS);
    const int direct = best_direct(d, best + n, FIRST_DIRECT);
    n += direct;
    if (direct)
        qsort(best, (size_t)n, sizeof *best, by_cost);
    for (int i = 0; i < MIN(n, max); i++)
        set_tiles(d, &best[i], &point[i]);
    return MIN(n, max);
}

// A sum of millions of terms by one item is off by more than any other, and takes longest.
static void sum_in_parts(const Derivation *d, Point *point)
{
    const int at = space_find(d->space, "parts");
    if (at < 0 || !d->shape.split || d->program->math == MATH_STRICT)
        return;
    for (int i = space_param(d->space, at)->n - 1; i > 0; i--)
        if (try_values(d, point, "parts=%lld",
                       (long long)space_param(d->space, at)->value[i]))
            return;
}

// Strips make a text of hundreds of lines, which numbers with bounds make slow to compile.
static void leave_strips(const Derivation *d, Point *point)
{
    if (space_find(d->space, "strip") >= 0)
        try_values(d, point, "strip=0 stages=1 load=now");
}

void derive_reference(const Derivation *d, Point *point)
{
    derive_single(d, point);
    leave_strips(d, point);
    order_prefixes(d, point);
    if (d->shape.product && d->device.is_cpu) {
        set_loops(d, point, 1);
        order_plain(d, point);
    }
    if (d->shape.product)
        sum_in_parts(d, point);
}

void product_options(const Derivation *d, const Point *point, KernelOptions *options)
{
    if (space_find(d->space, "lanes") >= 0)
        options->vector = MAX(options->vector, (int)space_int(d->space, point, "lanes"));
    options->ahead = derive_word(d, point, "load", "ahead");
    options->matrix = derive_word(d, point, "product", "matrix");
    // Items that copy nothing do not wait for others, so each may take the interior's side.
    options->interior |=
        derive_word(d, point, "product", "blocks") && derive_param(d, point, "stage") == 0;
    options->group = derive_word(d, point, "unit", "group");
    options->stages = (int)derive_param(d, point, "stages");
    options->depth = derive_param(d, point, "stage");
    if (options->matrix)
        options->vector = 16 / factor_bytes(d);
    options->unroll_loops = derive_word(d, point, "tiles", "unroll") ? UNROLL_LOOPS : 0;
    if (space_find(d->space, "resident") >= 0)
        options->resident = (int)space_int(d->space, point, "resident");
    options->band = (int)derive_param(d, point, "band");
}
