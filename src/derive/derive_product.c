// SPDX-License-Identifier: Apache-2.0
//
// The parameters of products: whether a work-item folds a block of outputs in registers, or
// a warp one on matrix units, how much of each row the group copies to local memory at a
// time, and how the loops over that are run.

#include "derive/derive_parts.h"

#include <math.h>
#include <string.h>

enum { UNROLL_LOOPS = 32 };

// Both tiles in local memory, and every item copies the same number of neighbours of each.
static void constrain_stage(Derivation *d, Diags *diags)
{
    char text[256];
    snprintf(text, sizeof text, "stage == 0 or (lx*bx*cx + ly*by*cy) * stage * %d <= %lld",
             (int)sizeof(double), (long long)d->device.local_bytes);
    space_constrain(d->space, text, diags);
    space_constrain(d->space, "product != 'blocks' or (bx*cx*stage) % ly == 0", diags);
    space_constrain(d->space, "product != 'blocks' or (by*cy*stage) % lx == 0", diags);
}

// Accumulators of an item; of double they are registers twice.
enum { FRAGMENTS = 64 };

// Bytes of a factor at most, as far as the arrays say; there are none of one byte.
static int factor_bytes(const Derivation *d)
{
    int bytes = 2;
    const Function *main = d->program->main;
    for (int i = 0; i < main->nparam; i++) {
        const Type *scalar = main->params[i]->type;
        while (scalar->kind == T_ARRAY)
            scalar = scalar->elem;
        if (scalar->kind == T_SCALAR)
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
    char text[256];
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
    snprintf(text, sizeof text, "mx * my <= %d", bytes == 8 ? FRAGMENTS / 2 : FRAGMENTS);
    space_constrain(space, text, diags);
    snprintf(text, sizeof text,
             "product != 'matrix' or ((lx*2*mx + ly*my) * stage + (unit == 'warp') * "
             "8*(lx*2*mx + ly*my + 2*stage)) * stages * %d <= %lld",
             bytes, (long long)d->device.local_bytes);
    space_constrain(space, text, diags);
    snprintf(
        text, sizeof text,
        "product != 'matrix' or ((2*mx*stage) %% (ly*%d) == 0 and (my*stage) %% (lx*%d) "
        "== 0)",
        16 / bytes, 16 / bytes);
    space_constrain(space, text, diags);
    space_constrain(space,
                    "unit == 'warp' or (product == 'matrix' and lx == 4 and ly % 32 == 0 "
                    "and mx >= 8 and my <= 4 and stage == 64)",
                    diags);
}

static bool has_matrix(const Derivation *d)
{
    return space_find(d->space, "mx") >= 0;
}

// The element type of the tiles of what is folded on matrix units, and that of its sums,
// and by how many tiles; NULL: nothing is.
static const Type *matrix_type(const Expr *expr, Scalar *sums, int64_t *tiles)
{
    if (expr->kind == E_PATTERN && expr->pattern == P_REDMATRIX) {
        const Expr *sum = expr->fun->arg[0];
        while (sum->kind == E_PATTERN) // a map, or one of rows
            sum = sum->fun->arg[0];
        const Expr *factor = sum->arg[1]->arg[0];
        *sums = sum->type->scalar;
        return factor->kind == E_OP ? factor->arg[0]->type : factor->type;
    }
    const Type *found = expr->fun ? matrix_type(expr->fun->arg[0], sums, tiles) : NULL;
    if (found && !*tiles && expr->kind == E_PATTERN && expr->pattern == P_REDSEQ)
        arith_is_const(expr->arg[1]->type->len, tiles);
    for (int i = 0; i < expr->narg && !found; i++)
        found = matrix_type(expr->arg[i], sums, tiles);
    return found;
}

enum { SETTLED = 16 }; // elements of the fold in a tile of the point that is tried

void settle_matrix(Derivation *d, Diags *diags)
{
    Diags ignored;
    Point point;
    if (!has_matrix(d))
        return;
    diags_init(&ignored, diags->arena);
    derive_plain(d, &point);
    space_set(d->space, &point, "product", "matrix");
    set_number(d, &point, "lx", 4);
    set_number(d, &point, "ly", 8);
    set_number(d, &point, "lz", 1);
    set_number(d, &point, "mx", 4);
    set_number(d, &point, "my", 4);
    set_number(d, &point, "stage", SETTLED);
    const Expr *body = derive_body(d, &point, &ignored);
    Scalar sums = S_FLOAT;
    int64_t tiles = 0;
    const Type *type = body ? matrix_type(body, &sums, &tiles) : NULL;
    bool fast = d->program->math == MATH_FAST; // 10 bits of a float's 23 are multiplied
    if (!type || (type->scalar == S_FLOAT && !fast)) {
        space_constrain(d->space, "product != 'matrix'", diags);
        return;
    }
    d->shape.unit_bytes = scalar_info[type->scalar].bytes;
    d->shape.depth = MAX(tiles, 1) * SETTLED;
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
// The tiles that a multiprocessor would be done with soonest, by what limits it: its matrix
// units, what it loads from the second-level cache, and a part of what is loaded from local
// memory; or, with few groups at once, waiting. One point a shape of tiles. The constants
// are fitted to 47 points of 4096 x 4096 x 4096 on an H200.

typedef struct {
    int64_t lx, ly, mx, my, stage, stages;
    bool group;
    double cost;
} Tiles;

typedef struct {
    int64_t rows, columns, batch;
} Extents;

enum { FIRST_RINGS = 5, FIRST_AHEAD = 3, REGISTERS_MOST = 255 };

// The lengths of the result: its last two axes, and the product of the others.
static Extents extents_of(const Derivation *d)
{
    Extents e = {1, 1, 1};
    const Type *type = d->program->main->body->type;
    for (int64_t len; type->kind == T_ARRAY; type = type->elem) {
        e.batch *= e.rows;
        e.rows = e.columns;
        e.columns = arith_is_const(type->len, &len) ? len : 1024;
    }
    return e;
}

static int64_t tile_rows(const Tiles *t)
{
    return t->ly * t->my;
}

static int64_t tile_columns(const Tiles *t)
{
    return t->lx * 2 * t->mx;
}

// About how many registers an item needs.
static double registers_of(const Tiles *t, int bytes)
{
    const double words = bytes == 8 ? 2 : 1, items = (double)(t->lx * t->ly);
    double held = words * (double)(2 * t->mx * t->my);
    double fragments = t->group ? 0 : 2 * words * (double)(t->mx + t->my);
    double under_way =
        t->stages > 1
            ? 0
            : (double)((tile_rows(t) + tile_columns(t)) * t->stage) * bytes / 4 / items;
    return held + fragments + under_way + 48;
}

static double groups_at_once(const Derivation *d, const Tiles *t, int bytes)
{
    const double items = (double)(t->lx * t->ly), registers = registers_of(t, bytes);
    double tiles = (double)((tile_rows(t) + tile_columns(t)) *
                            (t->stage + (t->group ? 0 : 8)) * t->stages * bytes);
    if (registers > REGISTERS_MOST)
        return 0;
    double by_memory = floor((double)(d->device.local_bytes + 1024) / (tiles + 1024));
    return fmin(by_memory, fmin(floor(65536 / (items * registers)), floor(2048 / items)));
}

// Cycles of a multiprocessor.
static double tiles_cost(const Derivation *d, const Extents *e, const Tiles *t, int bytes)
{
    const double rows = (double)tile_rows(t), columns = (double)tile_columns(t);
    const double groups = ceil((double)e->rows / rows) *
                          ceil((double)e->columns / columns) * (double)e->batch;
    const double units = MAX(d->device.compute_units, 1), items = (double)(t->lx * t->ly);
    double most = groups_at_once(d, t, bytes), n = fmin(most, ceil(groups / units));
    if (most < 1)
        return INFINITY;
    double rate = bytes == 8 ? 128 : bytes == 4 ? 512 : t->group ? 2048 : 1024;
    double products = rows * columns / rate; // for one place of the fold, as all below
    double loads = (rows + columns) * bytes / 56;
    double fragments = t->group ? rows / 64 * (64 + columns) * bytes / 128
                                : items / 32 * 8 * (double)(t->mx + t->my) * bytes / 128;
    double limit = fmax(products, loads) + fragments / 4;
    double wait = (t->stages > 3 ? 40 : t->stages > 1 ? 150 : 550) / (double)t->stage;
    if (!t->group)
        wait += 0.7 * bytes * (double)(t->mx + t->my);
    return ceil(groups / (units * n)) *
           (fmax(n * limit, limit + wait) * (double)d->shape.depth + 1500);
}

static void set_tiles(const Derivation *d, const Tiles *t, Point *point)
{
    derive_plain(d, point);
    space_set(d->space, point, "product", "matrix");
    space_set(d->space, point, "unit", t->group ? "group" : "warp");
    space_set(d->space, point, "load", t->stages > 1 ? "now" : "ahead");
    set_number(d, point, "lx", t->lx);
    set_number(d, point, "ly", t->ly);
    set_number(d, point, "lz", 1);
    set_number(d, point, "mx", t->mx);
    set_number(d, point, "my", t->my);
    set_number(d, point, "stage", t->stage);
    set_number(d, point, "stages", t->stages);
    set_number(d, point, "band", 8);
}

// Keeps it among the best n, of which no two are of one shape.
static int keep_tiles(Tiles *best, int n, int most, const Tiles *t)
{
    int at = 0;
    while (at < n && (best[at].group != t->group || tile_rows(&best[at]) != tile_rows(t) ||
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

// Those whose tiles are copied asynchronously, or, where they cannot be, loaded ahead.
static int best_tiles(const Derivation *d, bool ring, Tiles *best, int most)
{
    static const int64_t stages[2][3] = {{1}, {4, 3, 2}}, depth[] = {64, 32, 16};
    const Extents e = extents_of(d);
    int n = 0;
    for (int i = 0; i < 2 * 3 * 4 * 5 * 4 * 3 * 3; i++) {
        int at = i;
        Tiles t = {.group = at % 2};
        Point point;
        t.lx = 4 << (at /= 2) % 3;
        t.ly = 8 << (at /= 3) % 4;
        t.mx = 2 << (at /= 4) % 5;
        t.my = 2 << (at /= 5) % 4;
        t.stage = depth[(at /= 4) % 3];
        t.stages = stages[ring][at / 3];
        if (!t.stages)
            continue;
        t.cost = tiles_cost(d, &e, &t, d->shape.unit_bytes);
        if (!isfinite(t.cost) || (n == most && best[n - 1].cost <= t.cost))
            continue;
        set_tiles(d, &t, &point);
        if (space_valid(d->space, &point))
            n = keep_tiles(best, n, most, &t);
    }
    return n;
}

static bool matrix_first(const Derivation *d, int i, Point *point)
{
    Tiles best[FIRST_RINGS + FIRST_AHEAD];
    if (!d->shape.unit_bytes)
        return false;
    int n = best_tiles(d, true, best, FIRST_RINGS);
    n += best_tiles(d, false, best + n, FIRST_AHEAD);
    if (i < n)
        set_tiles(d, &best[i], point);
    return i < n;
}

bool derive_product_first(const Derivation *d, int i, Point *point)
{
    // On an H200 at 4096 x 4096 x 4096, the best first; the last on PoCL.
    static const struct {
        int64_t lx, ly, bx, by, cx, cy, stage, resident;
        const char *load, *tiles;
    } first[] = {
        {8, 16, 4, 8, 4, 1, 8, 2, "ahead", "unroll"},
        {16, 8, 4, 8, 2, 2, 8, 2, "ahead", "unroll"},
        {16, 8, 4, 8, 2, 1, 16, 0, "ahead", "unroll"},
        {32, 8, 4, 4, 2, 2, 16, 2, "ahead", "unroll"},
        {16, 8, 4, 4, 2, 2, 16, 4, "ahead", "unroll"},
        {16, 16, 4, 8, 2, 1, 16, 2, "ahead", "unroll"},
        {16, 16, 4, 4, 2, 2, 8, 2, "ahead", "unroll"},
        {16, 1, 16, 4, 1, 1, 0, 0, "now", "loop"},
    };
    int n = d->shape.unit_bytes ? FIRST_RINGS + FIRST_AHEAD : 0;
    if (i < n && matrix_first(d, i, point))
        return true;
    i = MAX(i - n, 0);
    i += d->device.is_cpu ? COUNTOF(first) - 1 : 0;
    if (!d->shape.product || i >= COUNTOF(first))
        return false;
    derive_plain(d, point);
    space_set(d->space, point, "product", "blocks");
    space_set(d->space, point, "inner", "unroll");
    set_number(d, point, "lx", first[i].lx);
    set_number(d, point, "ly", first[i].ly);
    set_number(d, point, "bx", first[i].bx);
    set_number(d, point, "by", first[i].by);
    set_number(d, point, "cx", first[i].cx);
    set_number(d, point, "cy", first[i].cy);
    set_number(d, point, "vec", 4);
    set_number(d, point, "stage", first[i].stage);
    set_number(d, point, "resident", first[i].resident);
    space_set(d->space, point, "load", first[i].load);
    space_set(d->space, point, "tiles", first[i].tiles);
    return true;
}

void derive_reference(const Derivation *d, Point *point)
{
    derive_plain(d, point);
    if (!d->shape.product || !d->device.is_cpu)
        return;
    space_set(d->space, point, "product", "blocks");
    set_number(d, point, "lx", 1);
    set_number(d, point, "ly", 1);
    set_number(d, point, "bx", 16);
    set_number(d, point, "by", 4);
    order_plain(d, point);
}

void product_options(const Derivation *d, const Point *point, KernelOptions *options)
{
    if (space_find(d->space, "lanes") >= 0)
        options->vector = MAX(options->vector, (int)space_int(d->space, point, "lanes"));
    options->ahead = derive_word(d, point, "load", "ahead");
    options->matrix = derive_word(d, point, "product", "matrix");
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
