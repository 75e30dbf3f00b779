// SPDX-License-Identifier: Apache-2.0
//
// The parameters of folds. Of reductions and folds of rows: who folds a row, and how many
// neighbours an item takes at a time. Of products: whether a work-item folds a block of
// outputs in registers, how much of each row the group copies to local memory at a time,
// and how the loops over that are run.

#include "derive/derive_parts.h"

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

// The element type of the tiles of what is folded on matrix units, and that of its sums;
// NULL: nothing is.
static const Type *matrix_type(const Expr *expr, Scalar *sums)
{
    if (expr->kind == E_PATTERN && expr->pattern == P_REDMATRIX) {
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
    set_number(d, &point, "stage", 16);
    const Expr *body = derive_body(d, &point, &ignored);
    Scalar sums = S_FLOAT;
    const Type *type = body ? matrix_type(body, &sums) : NULL;
    bool fast = d->program->math == MATH_FAST; // 10 bits of a float's 23 are multiplied
    if (!type || (type->scalar == S_FLOAT && !fast))
        space_constrain(d->space, "product != 'matrix'", diags);
    if (type && (scalar_info[type->scalar].bytes != 2 || sums != S_FLOAT))
        space_constrain(d->space, "unit == 'warp'", diags);
}

void add_product_params(Derivation *d, Diags *diags)
{
    Space *space = d->space;
    bool units = d->device.matrix > 0;
    space_add_words(space, "product", (const char *const[]){"plain", "blocks", "matrix"},
                    2 + units);
    // Items that are a loop cannot wait for each other.
    bool threads = strcmp(d->device.target, "c") != 0;
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

// The best of 4096 x 4096 x 4096 on an H200: of halfs, of four warps together and of one,
// and of doubles.
enum { MATRIX_FIRST = 4 };

static bool matrix_first(const Derivation *d, int i, Point *point)
{
    static const struct {
        const char *unit;
        int64_t lx, ly, mx, my, stage, stages;
    } first[2][MATRIX_FIRST] = {{{"group", 4, 64, 32, 2, 64, 3},
                                 {"group", 4, 64, 16, 4, 64, 3},
                                 {"group", 4, 32, 16, 4, 64, 3},
                                 {"warp", 8, 16, 8, 8, 32, 4}},
                                {{"warp", 4, 32, 8, 4, 16, 3},
                                 {"warp", 8, 16, 4, 8, 16, 3},
                                 {"warp", 8, 16, 4, 4, 16, 4},
                                 {"warp", 8, 16, 8, 4, 16, 4}}};
    bool wide = factor_bytes(d) == 8;
    if (!has_matrix(d) || i >= MATRIX_FIRST)
        return false;
    derive_plain(d, point);
    space_set(d->space, point, "product", "matrix");
    space_set(d->space, point, "unit", first[wide][i].unit);
    set_number(d, point, "lx", first[wide][i].lx);
    set_number(d, point, "ly", first[wide][i].ly);
    set_number(d, point, "mx", first[wide][i].mx);
    set_number(d, point, "my", first[wide][i].my);
    set_number(d, point, "stage", first[wide][i].stage);
    set_number(d, point, "stages", first[wide][i].stages);
    return true;
}

bool derive_product_first(const Derivation *d, int i, Point *point)
{
    // On an H200 at 4096 x 4096 x 4096, the best first; the last on PoCL.
    static const struct {
        int64_t lx, ly, bx, by, cx, cy, stage, resident;
        const char *load, *tiles;
    } first[] = {
        {16, 8, 4, 8, 2, 1, 16, 0, "ahead", "unroll"},
        {32, 8, 4, 4, 2, 2, 16, 2, "ahead", "unroll"},
        {16, 8, 4, 4, 2, 2, 16, 4, "ahead", "unroll"},
        {16, 16, 4, 8, 2, 1, 16, 2, "ahead", "unroll"},
        {16, 16, 4, 4, 2, 2, 8, 2, "ahead", "unroll"},
        {16, 1, 16, 4, 1, 1, 0, 0, "now", "loop"},
    };
    if (matrix_first(d, i, point))
        return true;
    i -= has_matrix(d) ? MATRIX_FIRST : 0;
    i += d->device.is_cpu ? COUNTOF(first) - 1 : 0;
    if (!d->shape.product || i >= COUNTOF(first))
        return false;
    derive_plain(d, point);
    space_set(d->space, point, "product", "blocks");
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

// Besides what is held, a group needs a word an item for its folds.
static int64_t fold_room(const Derivation *d)
{
    return d->device.local_bytes - 1024 * (int)sizeof(double);
}

void settle_rows(Derivation *d)
{
    bool fits = d->shape.scan_bytes <= fold_room(d);
    d->shape.rows &= fits;
    d->shape.long_rows |= !fits || d->shape.row_bytes > fold_room(d);
}

static void add_row_params(Derivation *d, Diags *diags)
{
    space_add_words(d->space, "fold", (const char *const[]){"item", "group"}, 2);
    if (d->shape.dims > 1)
        space_constrain(d->space, "fold == 'item' or ly == 1", diags);
    if (d->shape.dims > 2)
        space_constrain(d->space, "fold == 'item' or lz == 1", diags);
    if (d->shape.dims == 1 && d->shape.rectangular)
        space_constrain(d->space, "fold == 'item' or (bx == 1 and cx == 1)", diags);
}

// Parts of each fold for groups of their own, sixteen elements each at least.
static void add_parts(Derivation *d)
{
    static const int64_t parts[] = {1, 4, 16, 64, 256};
    int n = 1;
    while (n < COUNTOF(parts) && parts[n] * 16 <= d->shape.fold)
        n++;
    if (n > 1)
        space_add_ints(d->space, "parts", parts, n);
}

// Both what a group reads and its own prefixes in local memory.
static void add_scan_params(Derivation *d, Diags *diags)
{
    char text[160];
    space_add_ints(d->space, "share", (const int64_t[]){0, 4, 8, 16, 32}, 5);
    snprintf(text, sizeof text,
             "share == 0 or (lx * share * (1 + (hold == 'local')) + %d) * %lld <= %lld",
             SCAN_MORE, (long long)d->shape.scan, (long long)fold_room(d));
    space_constrain(d->space, text, diags);
}

void add_fold_params(Derivation *d, Diags *diags)
{
    const Shape *shape = &d->shape;
    space_add_ints(d->space, "lanes", (const int64_t[]){1, 2, 4}, 3);
    if (shape->rows)
        add_row_params(d, diags);
    if (!shape->rows && !shape->scan && !shape->order)
        return;
    add_parts(d);
    bool fits = shape->row_bytes <= fold_room(d);
    space_add_words(d->space, "hold", (const char *const[]){"again", "local"},
                    1 + (fits || shape->scan));
    if (shape->scan)
        add_scan_params(d, diags);
    if (shape->scan && !fits)
        space_constrain(d->space, "share > 0 or hold == 'again'", diags);
    if (shape->order)
        return;
    // Who holds something, and who takes neighbours.
    const char *group = !shape->scan  ? "fold == 'group'"
                        : shape->rows ? "(fold == 'group' or share > 0)"
                                      : "share > 0";
    char text[96];
    snprintf(text, sizeof text, "%s or hold == 'again'", group);
    space_constrain(d->space, text, diags);
    snprintf(text, sizeof text, "%s or lanes == 1", group);
    if (!shape->reduction)
        space_constrain(d->space, text, diags);
}

// A fold that keeps its order has its parts in local memory where there are enough of them.
void add_group_params(Derivation *d, Diags *diags)
{
    static const int64_t groups[] = {1, 4, 16, 64, 256, 1024, 2048, 4096, 16384, 65536};
    space_add_ints(d->space, "groups", groups, d->shape.order ? 10 : 8);
    if (!d->shape.order)
        return;
    char text[160];
    snprintf(text, sizeof text,
             "hold == 'again' or (%lld // groups + lx * lanes) * %lld <= %lld",
             (long long)d->shape.ordered, (long long)d->shape.order,
             (long long)fold_room(d));
    space_constrain(d->space, text, diags);
}

static void choose_groups(const Derivation *d, Point *point)
{
    for (int64_t groups = 1024; groups <= 65536; groups *= 4)
        if (set_number(d, point, "groups", groups) && space_valid(d->space, point))
            return;
    set_number(d, point, "groups", 1024);
    space_set(d->space, point, "hold", "again");
}

static void choose_share(const Derivation *d, Point *point, int64_t most)
{
    for (int64_t share = most; share >= 4; share /= 2)
        if (set_number(d, point, "share", share) && space_valid(d->space, point))
            return;
    set_number(d, point, "share", 0);
}

bool derive_fold_first(const Derivation *d, int i, Point *point)
{
    // Measured on an H200: reductions of 2^26 elements, rows of 2^14.
    static const struct {
        int lx, lanes, groups, share, parts; // parts: of columns
        const char *hold;
    } first[] = {{256, 4, 1024, 16, 16, "local"},
                 {256, 4, 2048, 16, 64, "again"},
                 {128, 4, 4096, 32, 4, "local"}};
    if (!(d->shape.reduction || d->shape.rows || d->shape.scan) || i >= COUNTOF(first))
        return false;
    derive_plain(d, point);
    set_number(d, point, "lx", first[i].lx);
    set_number(d, point, "ly", 1);
    set_number(d, point, "lanes", first[i].lanes);
    set_number(d, point, "groups", first[i].groups);
    space_set(d->space, point, "fold", "group");
    space_set(d->space, point, "hold", first[i].hold);
    if (d->shape.columns) {
        space_set(d->space, point, "fold", "item");
        space_set(d->space, point, "hold", "again");
        set_number(d, point, "lanes", 1);
        set_number(d, point, "parts", first[i].parts);
    }
    if (!d->shape.rows || d->shape.long_rows)
        choose_share(d, point, first[i].share);
    if (d->shape.order && !space_valid(d->space, point))
        choose_groups(d, point);
    return true;
}

// As many as fill a GPU: of items where these read neighbouring columns, else of groups,
// which have enough to do each.
static void choose_parts(const Derivation *d, Point *point)
{
    int64_t wanted = d->shape.columns ? 1 << 18 : 1 << 10;
    int64_t least = d->shape.columns ? 16 : 2048;
    for (int64_t parts = 4; d->shape.folds * parts < 4 * wanted; parts *= 4)
        if (parts * least > d->shape.fold || !set_number(d, point, "parts", parts))
            return;
}

void fold_plain(const Derivation *d, Point *point)
{
    if (!(d->shape.rows || d->shape.scan || d->shape.reduction) || d->device.is_cpu ||
        d->shape.product)
        return;
    set_number(d, point, "lx", MIN(256, d->device.max_group));
    set_number(d, point, "ly", 1);
    set_number(d, point, "groups", 1024);
    choose_parts(d, point);
    if (d->shape.columns)
        return;
    space_set(d->space, point, "fold", "group");
    // An item reads neighbours, which lie far apart for the others.
    if (d->shape.near || d->shape.scan || d->shape.order)
        space_set(d->space, point, "hold", "local");
    if (!d->shape.rows || d->shape.long_rows)
        choose_share(d, point, 16);
    if (d->shape.order)
        choose_groups(d, point);
    if (!space_valid(d->space, point))
        space_set(d->space, point, "hold", "again");
}

void derive_reference(const Derivation *d, Point *point)
{
    derive_plain(d, point);
    if (!d->shape.product)
        return;
    space_set(d->space, point, "product", "blocks");
    set_number(d, point, "lx", 1);
    set_number(d, point, "ly", 1);
    set_number(d, point, "bx", 16);
    set_number(d, point, "by", 4);
}

void product_options(const Derivation *d, const Point *point, LowerOptions *options)
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
