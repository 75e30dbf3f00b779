// SPDX-License-Identifier: Apache-2.0
//
// Parameters of iterated stencils: how many steps a kernel does (fuse), outputs a lane
// along x (cols; 0: sweeps, a step a kernel), and rows, or planes, that a group walks along
// (rows); with shuffles, how many warps a multiprocessor is to hold (warps). In three
// dimensions ly is the warps of a group, one below another, and by the rows of a lane.
// Sweeps have the parameters of a single sweep and none of these; streams have these and
// none of those.

#include "derive/derive_parts.h"

#include <string.h>

// Registers of 32 bits that windows may take of the 255 of a lane; half of them leave most
// shapes room for everything else. What an iteration may compile to, in cells
// read: 8 s of nvrtc.
enum { WINDOW_REGISTERS = 212, READS_MOST = 6000, ROWS_LEAST = 16 };

void merge_loops(TimeLoop *all, const TimeLoop *found)
{
    if (!all->count) {
        *all = *found;
        return;
    }
    if (found->why || found->dims != all->dims)
        all->why =
            found->why ? found->why : "time loops of the program differ in dimensions";
    all->count = MIN(all->count, found->count);
    all->bytes = MAX(all->bytes, found->bytes);
    all->written = MAX(all->written, found->written);
    all->words = MAX(all->words, found->words);
    all->around = MAX(all->around, found->around);
    all->met = MAX(all->met, found->met);
    all->kept = MAX(all->kept, found->kept);
    all->reads = MAX(all->reads, found->reads);
    all->flat_met = MAX(all->flat_met, found->flat_met);
    all->flat_reads = MAX(all->flat_reads, found->flat_reads);
    all->ops = MAX(all->ops, found->ops);
    all->wide = MAX(all->wide, found->wide);
    for (int k = 0; k < found->dims; k++) {
        all->beyond[k] = MAX(all->beyond[k], found->beyond[k]);
        all->size[k] = MAX(all->size[k], found->size[k]);
    }
}

static bool is_iterate(const Expr *expr, const void *none)
{
    return expr_is(expr, P_ITERATE);
}

bool has_loop(const Expr *expr)
{
    return expr_any_here(expr, is_iterate, NULL);
}

static void note_loop(Derivation *d, Expr *iterate)
{
    TimeLoop found;
    Ir *ir = d->program->ir;
    const Expr *stream = derive_steps(ir, iterate);
    if (!stream)
        return;
    lower_steps(ir, stream, d->device.shuffle, &found);
    merge_loops(&d->shape.steps, &found);
}

void note_steps(Derivation *d, Expr *expr)
{
    if (expr_is(expr, P_ITERATE)) {
        note_loop(d, expr);
        note_steps(d, expr->fun->arg[0]);
    }
    for (int i = 0; i < expr->narg; i++)
        note_steps(d, expr->arg[i]);
}

static const int64_t step_counts[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48};

static void add_steps(Derivation *d)
{
    int n = 0;
    while (n < COUNTOF(step_counts) && step_counts[n] <= d->shape.steps.count)
        n++;
    space_add_ints(d->space, "fuse", step_counts, n);
}

// On a processor a stream is one thread, and its rows are in arrays.
bool streams_rows(const Derivation *d)
{
    return d->device.is_cpu || d->device.lanes == 0;
}

bool has_stream(const Derivation *d)
{
    const TimeLoop *s = &d->shape.steps;
    return s->count > 1 && !s->why && d->shape.dims >= s->dims &&
           (s->dims < 3 || d->shape.rectangular);
}

const char *derive_unfused(const Derivation *d)
{
    const TimeLoop *s = &d->shape.steps;
    return s->count < 2 || has_stream(d) ? NULL
           : s->why                      ? s->why
                    : "the axes of its maps are not those of its state";
}

static bool is_deep(const Derivation *d)
{
    return (d->shape.stream ? d->shape.dims : d->shape.steps.dims) == 3;
}

// Kernels of several steps whose warps hold all rows of their tile: in two dimensions,
// where lanes shuffle.
static bool has_flat(const Derivation *d)
{
    return d->shape.steps.dims == 2 && !d->shape.stream && d->device.shuffle;
}

bool has_tiles(const Derivation *d)
{
    return !streams_rows(d) &&
           (has_stream(d) ? is_deep(d) || has_flat(d) : d->shape.stream && is_deep(d));
}

// The parameters of a single sweep stay as they are where warps walk, the others where not.
// swept: when they do not walk.
static void constrain_sweeps(Derivation *d, const char *swept, Diags *diags)
{
    static const char *const param[][2] = {
        {"ly", "1"}, // in two dimensions
        {"by", "1"},        {"lz", "1"}, {"bz", "1"}, {"cz", "1"},  {"walk", "1"},
        {"bx", "1"},        {"cx", "1"}, {"cy", "1"}, {"vec", "1"}, {"border", "'inline'"},
        {"inner", "'loop'"}};
    for (int i = is_deep(d) ? 2 : 0; i < COUNTOF(param); i++)
        if (space_find(d->space, param[i][0]) >= 0)
            constrain(d, diags, "%s%s or %s == %s", swept,
                      i < 2 && has_flat(d) ? " or rows == 1" : "", param[i][0],
                      param[i][1]);
    if (has_tiles(d))
        constrain(d, diags,
                  "not (%s) or ly in (1, 2, 4, 8, 16, 32, 64) and by in (1, 2, 4, 8)",
                  swept);
    constrain(d, diags, "not (%s) or cols == 1 and rows == %d%s", swept, ROWS_LEAST,
              d->device.shuffle ? " and warps == 8" : "");
}

// Streams and tiles are groups along y and z, of which a GPU starts so many; steps as
// below.
static void constrain_grid(Derivation *d, const char *other, const char *steps,
                           const TimeLoop *s, Diags *diags)
{
    const bool deep = s->dims == 3, flat = s->dims == 2 && has_flat(d);
    const int tall = deep ? 1 : 0; // the axis of tiles
    if (s->dims > 1 && s->size[0] > GROUPS_MOST)
        constrain(d, diags, "%s or %srows * %d >= %lld", other, flat ? "rows == 1 or " : "",
                  GROUPS_MOST, (long long)s->size[0]);
    if ((deep || flat) && s->size[tall] > GROUPS_MOST)
        constrain(d, diags, "%s or %s(ly * by - %s * %lld) * %d >= %lld", other,
                  flat ? "rows > 1 or " : "", steps, (long long)(2 * s->beyond[tall]),
                  GROUPS_MOST, (long long)s->size[tall]);
}

// Rows of a lane and warps that meet in local memory, which holds them twice: the rows that
// neighbouring warps reach, or all where columns are exchanged there too, and as many warps
// around them as steps reach. other: when it is not so; steps: of a kernel, an expression.
static void constrain_tiles(Derivation *d, const char *other, const char *steps,
                            const TimeLoop *s, Diags *diags)
{
    long long line = d->device.lanes * s->met, reach = s->beyond[1];
    constrain(d, diags, "%s or %s * %lld <= ly * by", other, steps, 4 * reach);
    if (d->device.shuffle) {
        constrain(d, diags, "%s or warps %% ly == 0", other);
        constrain(d, diags, "%s or %s * (ly + 2) * cols * %lld <= %lld", other, steps,
                  4 * reach * line, (long long)d->device.local_bytes);
    } else {
        constrain(d, diags,
                  "%s or %s * ((ly + (%lld + by) // by * 2) * by * cols * %lld + "
                  "(cols + %lld) * %lld) <= %lld",
                  other, steps, reach - 1, 2 * line, (long long)s->beyond[s->dims - 1],
                  (long long)(4 * s->met), (long long)d->device.local_bytes);
    }
}

// Cells of the old state and the new one in registers, and what warps give each other.
static void constrain_flat(Derivation *d, Diags *diags)
{
    static const char *other = "rows > 1";
    TimeLoop flat = d->shape.steps;
    flat.met = flat.flat_met;
    flat.beyond[1] = flat.beyond[0];
    constrain(d, diags, "%s or lx == %d and relay == 1", other, d->device.lanes);
    if (space_find(d->space, "early") >= 0)
        constrain(d, diags, "%s or early == 'next'", other);
    constrain(d, diags, "%s or cols * by * %lld <= %d", other,
              (long long)MAX(flat.bytes / 2, 1), WINDOW_REGISTERS);
    constrain(d, diags, "%s or fuse * cols * by * %lld <= %d", other,
              (long long)MAX(flat.flat_reads, 1), READS_MOST);
    constrain_tiles(d, other, "fuse", &flat, diags);
}

// Warps that are one after another in time: in two dimensions, where lanes shuffle.
static bool has_relay(const Derivation *d)
{
    return d->shape.steps.dims == 2 && d->device.shuffle;
}

// Rings hold two rows and more of each array from warp to warp.
static void add_relay(Derivation *d, Diags *diags)
{
    const TimeLoop *s = &d->shape.steps;
    space_add_ints(d->space, "relay", (const int64_t[]){1, 2, 4, 8, 16}, 5);
    constrain(d, diags, "relay == 1 or fuse %% relay == 0 and lx == %d", d->device.lanes);
    constrain(d, diags, "relay == 1 or warps %% relay == 0");
    constrain(d, diags, "relay == 1 or (relay + 1) * cols * %lld <= %lld",
              (long long)(d->device.lanes * s->ring), (long long)d->device.local_bytes);
    int64_t pad = 4 / s->wide; // so that lanes' vectors lie in different banks
    constrain(
        d, diags,
        "relay == 1 or cols %% %lld > 0 or (relay + 1) * (cols + %lld) * %lld <= %lld",
        (long long)(2 * pad), (long long)pad, (long long)(d->device.lanes * s->ring),
        (long long)d->device.local_bytes);
    constrain(d, diags, "fuse > 1 or relay == 1");
    constrain(d, diags, "fuse <= 16 or relay > 1");
    constrain(d, diags, "cols in (1, 2, 4, 8) or relay > 1");
}

int64_t stream_rows(const TimeLoop *loop)
{
    return loop->dims > 1 ? 2 * loop->beyond[0] + 1 : 1;
}

// Where the rows of an iteration and what steps keep fit registers.
static void add_early(Derivation *d, const char *by, Diags *diags)
{
    const TimeLoop *s = &d->shape.steps;
    long long words = stream_rows(s) * MAX(s->bytes / 4, 1);
    if (stream_rows(s) == 1)
        return;
    space_add_words(d->space, "early", (const char *const[]){"next", "all"}, 2);
    constrain(d, diags, "early == 'next' or fuse > 1%s",
              has_relay(d) ? " and relay == 1" : "");
    constrain(d, diags, "early == 'next' or cols%s * (fuse * %lld + %lld) <= %d", by,
              (long long)s->words, words, WINDOW_REGISTERS);
}

bool fuses_stages(const Derivation *d)
{
    const Path *region = d->pipeline ? &d->pipeline->region : NULL;
    return region && region->n && !has_loop(path_find(d->normal.expr, region));
}

// Steps that are fused are neither staged in tiles nor covered in another way.
static void constrain_fused(Derivation *d, Diags *diags)
{
    constrain_sweeps(d, "fuse == 1", diags);
    if (space_find(d->space, "scheme") >= 0)
        constrain(d, diags, "fuse == 1 or scheme == 'global'");
    if (space_find(d->space, "cover") >= 0 && fuses_stages(d))
        constrain(d, diags, "fuse == 1 or cover == '%s'",
                  cover_stored(d) ? cover_stored(d) : "");
}

// All rows of a group stay in cache: 1 MiB, or what a device gives a group.
static void add_row_params(Derivation *d, Diags *diags)
{
    const TimeLoop *s = &d->shape.steps;
    const char *lines = is_deep(d) ? " * ly * by" : "";
    int64_t most = 1 << 20;
    if (d->device.lanes)
        most = MIN(most, d->device.local_bytes);
    add_steps(d);
    space_add_ints(d->space, "cols",
                   (const int64_t[]){1, 64, 128, 256, 512, 1024, 2048, 4096}, 8);
    space_add_ints(d->space, "rows",
                   (const int64_t[]){ROWS_LEAST, 64, 128, 256, 512, 1024, 4096}, 7);
    constrain_fused(d, diags);
    constrain(d, diags, "fuse == 1 or cols >= 64");
    constrain(d, diags, "fuse == 1 or lx == 1");
    constrain(d, diags, "fuse == 1 or (fuse + 1) * cols%s * %lld <= %lld", lines,
              (long long)s->kept, (long long)most);
    constrain(d, diags, "fuse == 1 or fuse * %lld <= cols",
              (long long)(4 * s->beyond[s->dims - 1]));
    if (is_deep(d))
        constrain(d, diags, "fuse == 1 or fuse * %lld <= ly * by",
                  (long long)(4 * s->beyond[1]));
}

// Rows, or planes, along which groups may walk; 0: not known. All kernels of a pipeline go
// along the axis of its result.
static int64_t walk_height(const Derivation *d)
{
    if (!d->shape.stream)
        return d->shape.steps.size[0];
    const Type *type = d->program->main->body->type;
    while (type->kind == T_TUPLE)
        type = type->item[0];
    int64_t height = 0;
    return type->kind == T_ARRAY && arith_is_const(type->len, &height) ? height : 0;
}

static void add_rows_value(int64_t *value, int *n, int64_t rows)
{
    for (int i = 0; i < *n; i++)
        if (value[i] == rows)
            return;
    value[(*n)++] = rows;
}

// Powers of two, and the rows of equal strips: of 512 planes, 10 strips of 52 instead of 8
// of 64. How many groups fill a card at once is seldom a power of two.
static void add_strip_rows(Derivation *d)
{
    enum { ROWS_MOST = 8192, VALUES = 120 };
    const int64_t least = is_deep(d) ? ROWS_LEAST / 2 : ROWS_LEAST, height = walk_height(d);
    int64_t value[VALUES] = {ROWS_LEAST};
    int n = 1;
    for (int64_t rows = least; rows <= (is_deep(d) ? 512 : ROWS_MOST); rows *= 2)
        add_rows_value(value, &n, rows);
    for (int64_t parts = 1; ceil_div(height, parts) >= least && n < VALUES - 1;
         parts += 1 + parts / 16)
        add_rows_value(value, &n, ceil_div(height, parts));
    if (has_flat(d))
        value[n++] = 1;
    space_add_ints(d->space, "rows", value, n);
}

static void add_walk_params(Derivation *d, bool relays)
{
    static const int64_t cols[] = {1, 2, 4, 8, 5, 6, 7, 9, 10, 11, 12, 13, 14, 16, 20, 24},
                         deep[] = {1, 2, 4, 8, 3, 6};
    if (is_deep(d))
        space_add_ints(d->space, "cols", deep, COUNTOF(deep));
    else
        space_add_ints(d->space, "cols", cols, relays ? COUNTOF(cols) : 4);
    add_strip_rows(d);
    // Registers that a compiler may use: 8 warps leave 255 each, 16 leave 128. Of 12 shapes
    // of a 5-point stencil on an H200, 20 warps made one 1.3 times as fast, and three
    // slower.
    if (d->device.shuffle)
        space_add_ints(d->space, "warps", (const int64_t[]){8, 12, 16, 20, 24, 32}, 6);
}

void add_stream_params(Derivation *d, Diags *diags)
{
    if (streams_rows(d)) {
        add_row_params(d, diags);
        return;
    }
    const TimeLoop *s = &d->shape.steps;
    const char *steps = has_relay(d) ? "fuse / relay" : "fuse";
    const char *by = is_deep(d) ? " * by" : "";
    bool relays = has_relay(d);
    add_steps(d);
    add_walk_params(d, relays);
    if (relays)
        add_relay(d, diags);
    add_early(d, by, diags);
    constrain_fused(d, diags);
    constrain(d, diags,
              d->device.shuffle && !is_deep(d) ? "fuse == 1 or lx >= %d"
                                               : "fuse == 1 or lx == %d",
              d->device.lanes);
    const char *other = has_flat(d) ? "fuse == 1 or rows == 1" : "fuse == 1";
    constrain(d, diags, "%s or %s * cols%s * %lld <= %d", other, steps, by,
              (long long)MAX(s->words, 1), WINDOW_REGISTERS);
    constrain(d, diags, "%s or %s * cols%s * %lld <= %d", other, steps, by,
              (long long)MAX(s->reads, 1), READS_MOST);
    if (has_flat(d))
        constrain_flat(d, diags);
    // At least half of a strip is written.
    constrain(d, diags, "fuse == 1 or fuse * %lld <= cols * %d",
              (long long)(4 * s->beyond[s->dims - 1]), d->device.lanes);
    if (is_deep(d))
        constrain_tiles(d, "fuse == 1", "fuse", s, diags);
    constrain_grid(d, "fuse == 1", "fuse", s, diags);
}

// Stages without a time loop ------------------------------------------------------------

// Where lanes shuffle: others would exchange every stage through local memory.
bool may_stream(const Derivation *d)
{
    return d->shape.window && d->shape.rectangular && !d->shape.steps.count &&
           d->device.lanes > 0 && d->device.shuffle && !d->device.is_cpu;
}

#define SWEPT "scheme != 'stream'"

void add_pass_params(Derivation *d, Diags *diags)
{
    add_walk_params(d, false);
    constrain_sweeps(d, SWEPT, diags);
    constrain_placed(d, SWEPT, diags);
    constrain(d, diags,
              d->device.shuffle && !is_deep(d) ? SWEPT " or lx >= %d"
                                               : SWEPT " or lx == %d",
              d->device.lanes);
}

// What the kernels of a cover keep, read and reach, and the tiles of warps that meet.
static void constrain_pass(Derivation *d, const char *cover, const TimeLoop *s,
                           Diags *diags)
{
    const char *by = is_deep(d) ? " * by" : "";
    const char *other = arena_printf(diags->arena, SWEPT " or cover != '%s'", cover);
    constrain(d, diags, "%s or cols%s * %lld <= %d", other, by, (long long)MAX(s->words, 1),
              WINDOW_REGISTERS);
    constrain(d, diags, "%s or cols%s * %lld <= %d", other, by, (long long)MAX(s->reads, 1),
              READS_MOST);
    constrain(d, diags, "%s or %lld <= cols * %d", other,
              (long long)(4 * s->beyond[s->dims - 1]), d->device.lanes);
    if (is_deep(d))
        constrain_tiles(d, other, "1", s, diags);
    constrain_grid(d, other, "1", s, diags);
}

bool settle_passes(Derivation *d, Diags *diags)
{
    Point point;
    TimeLoop *all = &d->shape.steps;
    for (int i = 0; i < d->pipeline->ncover; i++) {
        TimeLoop found;
        const char *cover = d->pipeline->label[i];
        derive_single(d, &point);
        space_set(d->space, &point, "scheme", "stream");
        if (!cover_choose(d, &point, i, false))
            return false;
        derive_passes(d, &point, &found);
        bool walked = found.count && !found.why;
        if (walked) {
            merge_loops(all, &found);
            constrain_pass(d, cover, &found, diags);
        } else {
            constrain(d, diags, SWEPT " or cover != '%s'", cover);
        }
        if (!pipeline_again(d->pipeline, &d->pipeline->cover[i]))
            constrain(d, diags, "cover != '%s'%s", cover,
                      walked ? " or scheme == 'stream'" : "");
    }
    return all->count > 0;
}
