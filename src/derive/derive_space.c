// SPDX-License-Identifier: Apache-2.0
//
// The space of a derivation: what a program is made of decides which parameters there are.

#include "derive/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The shape of a program --------------------------------------------------------------

static void note_window(Shape *shape, const Expr *part, int dims)
{
    if (!is_window(part, dims))
        return;
    shape->window = true;
    const Type *elem = type_elem(part->arg[0]->type, dims);
    shape->tile_bytes += (int64_t)MIN(type_bytes(elem, NULL, NULL), 0x1p50);
    for (int k = 0; k < dims; k++) {
        int64_t size = 1;
        arith_is_const(part->num[2 * k], &size);
        int x = dims - 1 - k;
        shape->halo[x] = MAX(shape->halo[x], size - 1);
    }
}

static void note_inner(const Expr *expr, void *shape)
{
    Shape *s = shape;
    s->inner = MAX(s->inner, inner_length(expr));
}

static void note_items(const Expr *expr, void *shape)
{
    Shape *s = shape;
    s->item_bytes = MAX(s->item_bytes, shared_fold_bytes(expr));
}

static void note_folds(Shape *shape, const Expr *map)
{
    int64_t len = chain_split(map);
    bool columns = reads_columns(map);
    shape->columns |= columns;
    shape->same |= folds_same(map);
    shape->lines |= !columns;
    if (len > shape->fold && arith_is_const(map->type->len, &shape->folds))
        shape->fold = len;
}

// Rows of 2,048 elements are worth splitting; those of 512 groups and more are enough
// whole. Columns have parts, as folds of columns have.
static void note_scan_rows(Shape *shape, const Expr *map)
{
    int64_t rows, len = scan_row_length(map);
    shape->scan_columns |= reads_columns(map) && len > 0;
    if (reads_columns(map) && len > shape->fold &&
        arith_is_const(map->type->len, &shape->folds))
        shape->fold = len;
    if (len < 2048 || reads_columns(map))
        return;
    shape->scan = MAX(shape->scan, scan_elem_bytes(scan_read(map->fun->arg[0])));
    shape->long_rows |= arith_is_const(map->type->len, &rows) && rows < 512;
}

// What a group may hold of a row, and what it must. Rows for which it has no room are no
// chain for it: the room of others does not depend on them.
static void note_room(Shape *shape, int64_t may, int64_t must)
{
    shape->rows |= must <= shape->room;
    shape->long_rows |= may > shape->room;
    if (may <= shape->room)
        shape->row_bytes = MAX(shape->row_bytes, may);
    if (must <= shape->room)
        shape->scan_bytes = MAX(shape->scan_bytes, must);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

enum { LARGE = 4096 };

static bool usual_size(void *program, const Arith *var, int64_t *value)
{
    const Program *p = program;
    for (int i = 0; i < p->sizes.len; i++)
        if (p->sizes.at[i].arith == var)
            *value = p->sizes.at[i].usual;
    return *value > 0;
}

static int64_t most_length(const void *user, const Arith *len)
{
    return arith_most(len);
}

// A length at the sizes that are tuned for, or else the most that it may be.
static int64_t usual_length(const void *program, const Arith *len)
{
    int64_t value = 0;
    return arith_eval(len, usual_size, (void *)program, &value) ? value : arith_most(len);
}

// One that has no value, as in symbolic counts, is taken to be large, and the plain point
// has no tiles then.
static int64_t extent(Shape *shape, const Arith *len)
{
    const int64_t length = usual_length(shape->program, len);
    const bool open = length >= INT32_MAX;
    shape->open_product |= open;
    return open ? LARGE : length;
}

static int64_t least_length(const void *user, const Arith *len)
{
    const Program *program = user;
    int64_t low, high;
    arith_range(program->ir->arith, len, &low, &high);
    return MAX(low, 1);
}

// Has a product by itself a fold that rules take apart? One in a batch has groups enough.
static bool has_split(const Expr *inner, int64_t batch)
{
    Path at = {0};
    return batch == 1 && path_to_fold(inner->fun->arg[0], &at, NULL);
}

// What a product would take, whose groups may leave most of the machine idle.
static double product_cost(double outputs, double depth)
{
    enum { AT_ONCE = 64 << 10 };
    return outputs * depth / fmin(outputs, AT_ONCE);
}

// The slowest of several.
static void note_product(Shape *shape, const Expr *map, int64_t batch)
{
    const Expr *inner = map->fun->arg[0], *body = inner->fun->arg[0];
    const Arith *rows = map->type->len, *columns = inner->type->len;
    const int64_t tall = extent(shape, rows), wide = extent(shape, columns);
    const int64_t terms = expr_fold_terms_by(body, usual_length, shape->program);
    const int64_t depth = terms > 1 && terms < INT32_MAX ? terms : LARGE;
    shape->common = common_divisor(shape->common, expr_fold_terms(body));
    if (shape->product &&
        product_cost((double)tall * (double)wide * (double)batch, (double)depth) <=
            product_cost((double)shape->tall * (double)shape->wide * (double)shape->batch,
                         (double)shape->depth))
        return;
    shape->product = true;
    shape->tall = tall;
    shape->wide = wide;
    shape->batch = batch;
    shape->depth = depth;
    shape->split =
        has_split(inner, batch) ? expr_fold_terms_by(body, most_length, NULL) : 0;
    shape->least =
        least_length(shape->program, rows) * least_length(shape->program, columns);
    shape->most = (double)arith_most(rows) * (double)arith_most(columns);
    shape->taps = fold_inside(body) ? fold_row(fold_inside(body)->arg[1], 1) : 0;
    shape->integer = scalar_info[type_elem(inner->type, 1)->scalar].kind != SCALAR_FLOAT;
}

// An item may have all of a short axis: what does not depend on the place there, such as a
// cell's density for the nine directions of a lattice, is then computed once.
static void note_few(const Type *type, int dims, int64_t few[DIMS_MAX])
{
    enum { FEW = 16 };
    for (int x = dims - 1; x >= 0; x--, type = type->elem) {
        int64_t len;
        if (arith_is_const(type->len, &len) && len > 1 && len <= FEW)
            few[x] = MAX(few[x], len);
    }
}

static void note_map(Shape *shape, Expr *map)
{
    int depth = map->dims == 1 ? nested_depth(map) : map->dims;
    shape->dims = MAX(shape->dims, depth);
    expr_each(map->fun, note_inner, shape);
    if (is_product(map)) {
        note_product(shape, map, 1);
    } else if (is_product(map->fun->arg[0])) {
        note_product(shape, map->fun->arg[0], extent(shape, map->type->len));
    }
    const bool lines = walks_lines(map), columns = lines && reads_columns(map);
    shape->turned |= columns && !shape->back;
    shape->walks |= (lines && !columns) || shape->turned;
    if (chain_depth(map)) {
        shape->near |= reads_near(map);
        shape->held |= chain_holds(map);
        shape->alone |= chain_goes_alone(map);
        shape->held_rows |= reads_held_rows(map);
        note_folds(shape, map);
        note_scan_rows(shape, map);
        int64_t row = chain_length(map, usual_length, shape->program);
        int64_t short_row = chain_length(map, least_length, shape->program);
        shape->row = MAX(shape->row, row < INT32_MAX ? row : LARGE);
        shape->short_row = MAX(shape->short_row, short_row);
        note_room(shape, chain_bytes(map), chain_scan_bytes(map));
        shape->steps_words = MAX(shape->steps_words, steps_words(map, false));
    }
    if (depth != map->dims)
        return;
    shape->rectangular = true;
    const Expr *body = map->fun->arg[0];
    shape->text = fmax(shape->text, pipeline_text(body, shape->text_of));
    shape->unrolled = fmax(shape->unrolled, pipeline_text(body, TEXT_UNROLLED));
    note_few(map->type, MIN(array_dims(map->type), depth), shape->few);
    Expr *in = map->arg[0];
    note_window(shape, in, map->dims);
    for (int i = 0; is_zip(in, map->dims) && i < in->narg; i++)
        note_window(shape, in->arg[i], map->dims);
}

// A fold of rows element by element, which will be a map over columns.
static void note_rows(Shape *shape, const Expr *reduce)
{
    int64_t len;
    if (reduce->type->kind != T_ARRAY || !is_map(reduce->fun->arg[0]))
        return;
    shape->rows = shape->columns = true;
    if (arith_is_const(reduce->arg[1]->type->len, &len) && len > shape->fold &&
        arith_is_const(reduce->type->len, &shape->folds))
        shape->fold = len;
}

static bool adds_floats(const Expr *e, const void *none)
{
    return e->kind == E_OP && (e->op == OP_ADD || e->op == OP_MUL || e->op == OP_FMA) &&
           e->type->kind == T_SCALAR && scalar_info[e->type->scalar].floating;
}

static void find_shape(Shape *shape, Expr *expr, bool root)
{
    bool pattern = expr->kind == E_PATTERN, relayout = is_relayout(expr);
    bool copied = root && moves_rows(expr);
    note_keyed(shape, expr);
    if (is_map(expr) && !(root && relayout) && !copied) {
        note_map(shape, expr);
    } else if (pattern && expr->pattern == P_REDUCE) {
        shape->reduction |= reduce_shares(expr);
        shape->whole = MAX(shape->whole, expr_fold_terms(expr));
        shape->whole_work = fmax(shape->whole_work, pipeline_operations(expr));
        shape->dims = MAX(shape->dims, 1);
        note_rows(shape, expr);
        if (fold_elem_bytes(expr) > shape->order &&
            arith_is_const(expr->arg[1]->type->len, &shape->ordered))
            shape->order = fold_elem_bytes(expr);
    } else if (scan_elem_bytes(expr)) {
        shape->whole_scan = true;
        shape->scan = MAX(shape->scan, scan_elem_bytes(expr));
        int64_t len = usual_length(shape->program, expr->type->len);
        if (len < INT32_MAX && expr_find(expr->fun, adds_floats, NULL))
            shape->scan_most = MAX(shape->scan_most, len);
        shape->dims = MAX(shape->dims, 1);
    } else if (launches_rows(expr, shape->steps_room)) {
        find_shape(shape, expr->fun->arg[0], true);
    } else if (scans_rows(expr)) { // by a group
        note_room(shape, steps_bytes(expr, true), steps_bytes(expr, false));
        shape->steps_words = MAX(shape->steps_words, steps_words(expr, false));
        shape->row = MAX(shape->row, usual_length(shape->program, expr->type->elem->len));
        shape->dims = MAX(shape->dims, 1);
    } else if (pattern && expr->pattern == P_ITERATE) {
        find_shape(shape, expr->fun->arg[0], true);
    } else if (root && expr->type && expr->type->kind == T_ARRAY && expr->kind != E_LET) {
        shape->dims = MAX(shape->dims, array_dims(expr->type));
    }
    const bool turns = turns_array(expr);
    shape->back += turns;
    bool through = expr->kind == E_TUPLE || is_loop_result(shape->program->ir, expr) ||
                   (relayout && (root || !is_map(expr)));
    for (int i = 0; i < expr->narg; i++)
        find_shape(shape, expr->arg[i],
                   root && (through || (expr->kind == E_LET && i == 1)));
    shape->back -= turns;
    if (root && expr->type && expr->type->kind == T_ARRAY && (!is_map(expr) || copied) &&
        !through && expr->kind != E_LET && !(pattern && (expr->pattern == P_ITERATE)) &&
        !scan_elem_bytes(expr)) {
        shape->rectangular = true;
        note_few(expr->type, MIN(array_dims(expr->type), DIMS_MAX), shape->few);
    }
}

// The space ---------------------------------------------------------------------------

const char *const derive_axis[DIMS_MAX] = {"x", "y", "z"};

// Powers of two; the rows of a tile that warps keep are to fill the grid.
static void add_counts(Derivation *d, const char *stem, int x, int64_t most)
{
    static const int64_t between[] = {3, 5, 6, 7, 10, 12, 20, 24};
    int64_t value[24];
    int n = 0;
    for (int64_t v = 1; v <= most; v *= 2)
        value[n++] = v;
    for (int i = 0; x == 1 && has_tiles(d) && i < COUNTOF(between); i++)
        if (between[i] <= most)
            value[n++] = between[i];
    const int64_t few = strcmp(stem, "b") == 0 ? d->shape.few[x] : 0;
    bool there = few == 0;
    for (int i = 0; i < n; i++)
        there |= value[i] == few;
    if (!there)
        value[n++] = few;
    char name[8];
    snprintf(name, sizeof name, "%s%s", stem, derive_axis[x]);
    space_add_ints(d->space, name, value, n);
}

static bool has_extra(const Derivation *d, Extra extra)
{
    return d->program->extra >> extra & 1;
}

// On a CPU local memory is memory like any other.
static bool has_padded(const Derivation *d)
{
    return has_extra(d, EXTRA_BANKS) && !d->device.is_cpu && d->shape.dims > 1;
}

const char *derive_tiled(const Derivation *d)
{
    return has_padded(d) ? "(scheme == 'tiled' or scheme == 'padded')"
                         : "(scheme == 'tiled')";
}

static const char *untiled(const Derivation *d)
{
    return has_padded(d) ? "scheme != 'tiled' and scheme != 'padded'" : "scheme != 'tiled'";
}

// Local memory of a tiled group as an expression over the parameters.
static void constrain_tile(Derivation *d, bool places, Diags *diags)
{
    AutoBuf text = buf_new();
    if (!places)
        buf_printf(&text, "%s or ", untiled(d));
    for (int x = 0; x < d->shape.dims; x++) {
        buf_printf(&text, "%s(l%s*b%s*c%s + %lld", x ? " * " : "", derive_axis[x],
                   derive_axis[x], derive_axis[x], (long long)d->shape.halo[x]);
        if (x == 0 && has_padded(d))
            buf_printf(&text, " + (scheme == 'padded') * %d", TILE_PAD);
        buf_putc(&text, ')');
    }
    buf_puts(&text, " * ");
    if (places)
        put_tile_bytes(d, &text);
    else
        buf_printf(&text, "%lld", (long long)d->shape.tile_bytes);
    buf_printf(&text, " <= %lld", (long long)d->device.local_bytes);
    space_constrain(d->space, text.text, diags);
}

static void constrain_product(Derivation *d, const char *const *stem, int n, int64_t most,
                              Diags *diags)
{
    AutoBuf text = buf_new();
    for (int x = 0; x < d->shape.dims; x++)
        for (int i = 0; i < n; i++)
            buf_printf(&text, "%s%s%s", x || i ? " * " : "", stem[i], derive_axis[x]);
    buf_printf(&text, " <= %lld", (long long)most);
    space_constrain(d->space, text.text, diags);
}

// 64 outputs an item: unrolling further makes build times explode (PoCL: 1024 copies, 38
// s). Fewer where more operations than that would be written out for all of them: gcc
// compiles 20 to 110 kB of such text a second.
enum {
    ITEM_OUTPUTS = 64,
    ITEM_OPERATIONS = 8192,
    COPY_OPERATIONS = 16,
    UNROLL_CAP = UNROLL_MOST
};

// Steps that a work-item walks along the outermost dimension. Strided elements of an item
// lie between those of its neighbours, and a tile has no room for a walk.
static void add_walk(Derivation *d, Diags *diags)
{
    const int64_t steps[] = {1, 2, 4, 8, 16, 32, 64};
    space_add_ints(d->space, "walk", steps, d->device.is_cpu ? 1 : COUNTOF(steps));
    constrain(d, diags, "walk == 1 or %s and c%s == 1", untiled(d),
              derive_axis[d->shape.dims - 1]);
}

static bool only_halves(const Derivation *d)
{
    const Function *main = d->program->main;
    for (int i = 0; i < main->nparam; i++) {
        const Type *scalar = type_leaf(main->params[i]->type);
        if (scalar->kind != T_SCALAR || scalar->scalar != S_HALF)
            return false;
    }
    return true;
}

// What a study adds (ir/extras.def). A tile has the shape of its group.
static void add_extras(Derivation *d, Diags *diags)
{
    static const char *const group[] = {"fixed", "any"}, *const loads[] = {"once", "all"};
    if (has_extra(d, EXTRA_GROUPS) && d->shape.rectangular && !d->shape.product) {
        space_add_words(d->space, "group", group, 2);
        if (d->shape.window)
            constrain(d, diags, "group == 'fixed' or %s", untiled(d));
        constrain_placed(d, "group == 'fixed'", diags);
    }
    if (has_extra(d, EXTRA_LOADS))
        space_add_words(d->space, "loads", loads, 2);
}

bool sizes_are_known(const Derivation *d)
{
    for (int i = 0; i < d->program->sizes.len; i++)
        if (!arith_is_const(d->program->sizes.at[i].arith, NULL))
            return false;
    return true;
}

// A CPU's compiler makes vectors by itself where it knows the strides (hand-written float4
// on PoCL: 42 against 56 GB/s), but not where these are generic sizes (jacobi2d of 1024 x
// 1024: 0.60 ms, by float4 0.32).
bool cpu_makes_vectors(const Derivation *d)
{
    return d->device.is_cpu && sizes_are_known(d);
}

static void add_nest_params(Derivation *d, Diags *diags)
{
    const Shape *shape = &d->shape;
    // All items of a group may work on one long row, or on the array of a keyed fold.
    const bool together = shape->rows || shape->keyed.keys;
    const int64_t most_local[DIMS_MAX] = {together ? 1024 : 256, 64, 16};
    int64_t group = MIN(d->device.max_group, 1024);
    bool beside = shape->rows && shape->dims == 1; // rows of one group
    for (int x = 0; x < shape->dims + beside; x++)
        add_counts(d, "l", x, MIN(most_local[x], d->device.max_item[x]));
    constrain_product(d, (const char *const[]){"l"}, 1, group, diags);
    if (beside) {
        constrain(d, diags, "lx * ly <= %lld", (long long)group);
    }
    if (!shape->rectangular && !shape->product)
        return;
    for (int x = 0; x < shape->dims; x++) {
        add_counts(d, "b", x, x == 0 ? 16 : x == 1 ? 8 : 4);
        // On a CPU neighbouring work-items gain nothing from strided elements (a strided x
        // of 8 does not vectorise: 19 against 56 GB/s).
        add_counts(d, "c", x, d->device.is_cpu ? 1 : 4);
    }
    int64_t most = shape->product && !d->device.is_cpu ? 2 * ITEM_OUTPUTS : ITEM_OUTPUTS;
    if (!shape->product)
        most = MIN(most, MAX((int64_t)(ITEM_OPERATIONS / fmax(shape->text, 1)), 1));
    constrain_product(d, (const char *const[]){"b", "c"}, 2, most, diags);
    // One 128-bit access for several.
    space_add_ints(d->space, "vec", (const int64_t[]){1, 2, 4, 8},
                   cpu_makes_vectors(d) ? 1
                   : only_halves(d)     ? 4
                                        : 3);
    space_constrain(d->space, "bx % vec == 0", diags);
    if (!shape->window)
        return;
    bool images = has_extra(d, EXTRA_IMAGES) && d->device.has_texture;
    const char *scheme[5] = {"global", "tiled"};
    int n = 2;
    if (images)
        scheme[n++] = "image";
    if (has_padded(d))
        scheme[n++] = "padded";
    if (shape->stream)
        scheme[n++] = "stream";
    space_add_words(d->space, "scheme", scheme, n);
    if (images) // an element at a time
        space_constrain(d->space, "scheme != 'image' or vec == 1", diags);
    if (shape->dims > 1)
        add_walk(d, diags);
    constrain_tile(d, add_cover_params(d, diags), diags);
}

// Straight-line code for a short reduction, as long as an item stays below so many copies,
// of few operations each. A processor's OpenCL compiler takes minutes for 1,024.
static void add_inner(Derivation *d, Diags *diags)
{
    AutoBuf text = buf_new();
    buf_puts(&text, "inner == 'loop' or ");
    for (int x = 0; x < d->shape.dims && d->shape.rectangular; x++)
        buf_printf(&text, "b%s * c%s * ", derive_axis[x], derive_axis[x]);
    int64_t inner = d->shape.taps ? d->shape.taps : d->shape.inner;
    if (!d->shape.product)
        inner = MAX(inner, (int64_t)(d->shape.unrolled / COPY_OPERATIONS));
    buf_printf(&text, "%lld <= %d", (long long)inner, d->device.is_cpu ? 512 : 1024);
    space_add_words(d->space, "inner", (const char *const[]){"loop", "unroll"}, 2);
    space_constrain(d->space, text.text, diags);
}

static void find_pipeline(Derivation *d, const Expr *body, bool streams)
{
    const Function *main = d->program->main;
    pipeline_free(d->pipeline);
    d->pipeline = pipeline_new(d->program->ir, body, main->params, main->nparam, &d->rates,
                               COVERS_KEPT, 0, streams);
}

static void settle_normal(Derivation *d, const DeriveWalk *w)
{
    d->deep = w->deep;
    d->normal = rewriter_again(&w->r);
    if (d->pipeline)
        pipeline_normalise(&d->normal, &d->pipeline->region);
}

static double cover_time(const Pipeline *p, const StageRates *rates)
{
    double ns = 0;
    for (int i = 0; i < p->cover->n; i++)
        ns += pipeline_time(p, pipeline_set(p, p->cover, i), rates);
    return ns;
}

// Folds find again what other stages make too, where that takes clearly less than to store
// it: a map of the whole, which waits for the fold, may then make it once more.
static void settle_again(Derivation *d, DeriveWalk *w)
{
    enum { WINDOWS = 2 }; // 0: as it is; 1: not what they look at in windows
    const double gain = 0.85;
    const Shape before = d->shape;
    double least = INFINITY;
    DeriveWalk way[WINDOWS + 1] = {*w};
    bool tried[WINDOWS + 1] = {true}, changed = false;
    for (int again = 1; again <= WINDOWS; again++) {
        way[again] = *w;
        way[again].r = rewriter_again(&w->r); // rules change an expression in place
        changed |= tried[again] = folds_again(&way[again], again == WINDOWS);
    }
    if (!changed)
        return;
    find_shape(&d->shape, w->r.expr, true);
    note_steps(d, w->r.expr);
    const bool streams = may_stream(d);
    d->shape = before;
    for (int again = 0; again <= WINDOWS; again++) {
        if (!tried[again])
            continue;
        find_pipeline(d, way[again].r.expr, streams);
        double ns =
            d->pipeline && !d->pipeline->region.n ? cover_time(d->pipeline, &d->rates) : 0;
        if (ns < least * (again ? gain : 1)) {
            least = ns;
            *w = way[again];
        }
    }
}

// The bytes of a small array in local memory, where a vector may be between two; 0: it is
// none.
static int64_t small_bytes(const Type *type)
{
    enum { APART = 8, APART_BYTES = 16 };
    return is_small_array(type)
               ? (int64_t)type_bytes(type, NULL, NULL) +
                     MAX(APART * scalar_info[type_leaf(type)->scalar].bytes, APART_BYTES)
               : 0;
}

// The bytes of an element of long lists of small arrays, all in a type together.
static int64_t list_bytes(const Type *type)
{
    enum { LIST_LEAST = 4096 };
    int64_t bytes = 0, len;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        bytes += list_bytes(type->item[i]);
    return type->kind == T_ARRAY && arith_is_const(type->len, &len) && len >= LIST_LEAST
               ? small_bytes(type->elem)
               : bytes;
}

static int64_t element_bytes(const Type *type)
{
    int64_t bytes = small_bytes(type);
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        bytes += small_bytes(type->item[i]);
    return bytes;
}

// The same of elements of which an item has one each, in the kernels of an expression.
static int64_t items_bytes(const Expr *expr)
{
    int64_t most = 0;
    if (is_list(expr))
        most = element_bytes(type_elem(expr->arg[0]->type, expr->dims)) +
               element_bytes(type_elem(expr->type, expr->dims));
    const int n = expr_is(expr, P_ITERATE) ? expr->narg + 1 : expr->narg;
    for (int i = 0; i < n; i++) {
        const Expr *below = i < expr->narg ? expr->arg[i] : expr->fun->arg[0];
        const int64_t bytes = items_bytes(below);
        most = MAX(most, bytes);
    }
    return most;
}

static void add_lists(Derivation *d, Diags *diags)
{
    const Function *main = d->program->main;
    int64_t bytes = list_bytes(main->body->type);
    for (int i = 0; i < main->nparam; i++)
        bytes += list_bytes(main->params[i]->type);
    if (!has_items(d) || d->shape.lowered || d->shape.product)
        return; // a product has tiles of its own
    const int64_t items = items_bytes(d->normal.expr);
    d->items_list = items > 0;
    bytes = MAX(bytes, items);
    if (!bytes)
        return;
    space_add_words(d->space, "lists", (const char *const[]){"direct", "tiles"}, 2);
    constrain(d, diags, "lists == 'direct' or lx * %lld <= %lld", (long long)bytes,
              (long long)d->device.local_bytes);
    for (int x = 1; x < d->shape.dims; x++) {
        constrain(d, diags, "lists == 'direct' or l%s == 1", derive_axis[x]);
    }
}

static Space *make_space(Derivation *d, Diags *diags)
{
    space_free(d->space);
    d->space = space_new();
    const Shape *shape = &d->shape;
    if (shape->dims)
        add_nest_params(d, diags);
    add_extras(d, diags);
    if (shape->window)
        space_add_words(d->space, "border", (const char *const[]){"inline", "split"}, 2);
    if (shape->product)
        add_product_params(d, diags);
    if (shape->inner > 1)
        add_inner(d, diags);
    if (space_find(d->space, "cover") < 0)
        add_cover_params(d, diags);
    if (shape->dims)
        add_lists(d, diags);
    if (has_folds(shape))
        add_fold_params(d, diags);
    if (shape->reduction)
        add_group_params(d, diags);
    add_keyed_params(d, diags);
    add_strip_params(d, diags);
    if (has_stream(d))
        add_stream_params(d, diags);
    if (shape->stream)
        add_pass_params(d, diags);
    if (!space_params(d->space)) // a program with nothing to choose has one point
        space_add_ints(d->space, "lx", (const int64_t[]){1}, 1);
    return d->space;
}

static void note_prefix(const Expr *e, void *most)
{
    int64_t *terms = most, len = 0;
    if (expr_is(e, P_SCAN) && arith_is_const(e->type->len, &len) &&
        expr_find(e->fun, adds_floats, NULL))
        *terms = MAX(*terms, len);
}

// Elements of the longest prefix that adds up floats.
static int64_t longest_prefix(const Derivation *d)
{
    int64_t most = 0;
    expr_each(d->program->main->body, note_prefix, &most);
    return most;
}

// Up to so many are added in order by the reference on a GPU, whose numbers then count
// them.
enum { IN_ORDER_MOST = 1 << 15 };

void order_prefixes(const Derivation *d, Point *point)
{
    const int64_t length = longest_prefix(d);
    if (!d->device.is_cpu && length && length <= IN_ORDER_MOST)
        try_values(d, point,
                   "prefix=parts fold=item hold=again join=tree lanes=1 share=0 parts=1 "
                   "strip=0");
}

static int64_t prefix_terms(const Derivation *d)
{
    const int64_t length = longest_prefix(d);
    bool in_parts = has_long_scan(d) || (!d->device.is_cpu && length > IN_ORDER_MOST);
    return in_parts ? MIN(length, longest_chain(length)) : 0;
}

// The reference folds keys in parts, too, whose lengths are of the data: several times as
// many as keys have on average.
static int64_t keyed_terms(const Derivation *d)
{
    enum { SKEW = 8, LEAST = 64 };
    const Keyed *k = &d->shape.keyed;
    const int64_t most = MIN(k->elements, longest_chain(k->elements));
    return k->keys ? MIN(most, MAX(k->elements / k->keys * SKEW, LEAST)) : 0;
}

int64_t derive_terms(const Derivation *d)
{
    const Shape *shape = &d->shape;
    const int64_t least = MAX(MAX(prefix_terms(d), shape->windows), keyed_terms(d));
    if (shape->product) // the reference adds up parts of it, most points do not
        return MAX(least, space_find(d->space, "parts") >= 0 ? shape->split : 0);
    if (!shape->reduction && !shape->rows && !shape->scan)
        return least;
    int64_t terms = expr_fold_terms(d->program->main->body);
    return MAX(least, shape->reduction ? MIN(terms, longest_chain(shape->whole)) : terms);
}

int64_t derive_param(const Derivation *d, const Point *point, const char *name)
{
    int param = space_find(d->space, name);
    return param < 0 ? 1 : (int64_t)space_value(d->space, point, param);
}

int64_t derive_number(const Derivation *d, const Point *point, const char *stem, int x)
{
    char name[8];
    snprintf(name, sizeof name, "%s%s", stem, derive_axis[x]);
    return derive_param(d, point, name);
}

bool derive_word(const Derivation *d, const Point *point, const char *name,
                 const char *word)
{
    return space_find(d->space, name) >= 0 &&
           strcmp(space_word(d->space, point, name), word) == 0;
}

// Entry -------------------------------------------------------------------------------

static void settle_plain(Derivation *d)
{
    d->ntiles = product_first(d, d->tiles, TILES_MOST);
    if (d->device.is_cpu || d->shape.open_product || d->ntiles == 0)
        derive_single(d, &d->plain);
    else
        d->plain = d->tiles[0];
    list_plain(d, &d->plain);
}

Derivation *derive_open(const Program *program, const DeviceInfo *device, Diags *diags)
{
    Derivation *d = xcalloc(1, sizeof *d);
    d->program = program;
    d->device = *device;
    d->rates = cover_rates(device);
    d->shape.program = program;
    d->shape.text_of = d->device.is_cpu ? TEXT_PROCESSOR : TEXT_ITEM;
    d->shape.room = fold_room(d);
    d->shape.steps_room = steps_room(d);
    d->shape.dims = lowered_dims(program->main->body);
    d->shape.lowered = d->shape.dims > 0;
    DeriveWalk w = walk_start(d);
    rewriter_init(&w.r, program->ir, program->ir->arena, program->main->body);
    if (!d->shape.lowered) {
        derive_normalise(&w, (Path){0});
        settle_again(d, &w);
        d->shape.windows = w.windows;
        find_shape(&d->shape, w.r.expr, true);
        expr_each(w.r.expr, note_items, &d->shape);
        note_steps(d, w.r.expr);
        find_pipeline(d, w.r.expr, may_stream(d));
    }
    settle_normal(d, &w);
    int errors = diags->errors;
    d->shape.stream = d->pipeline && d->pipeline->streams;
    make_space(d, diags);
    if (d->shape.stream && !settle_passes(d, diags)) {
        d->shape.stream = false;
        find_pipeline(d, w.r.expr, false);
        settle_normal(d, &w);
        make_space(d, diags);
    }
    settle_products(d, diags);
    if (diags->errors > errors) {
        derive_free(d);
        return NULL;
    }
    settle_plain(d);
    return d;
}

Derivation *derive_new(const Program *program, const DeviceInfo *device, Diags *diags)
{
    int errors = diags->errors;
    Derivation *d = derive_open(program, device, diags);
    if (d && program->math == MATH_STRICT) {
        settle_order(d, diags);
        settle_plain(d);
    }
    if (diags->errors == errors)
        return d;
    derive_free(d);
    return NULL;
}

void derive_free(Derivation *d)
{
    if (d) {
        space_free(d->space);
        pipeline_free(d->pipeline);
    }
    free(d);
}

const Program *derive_program(const Derivation *d)
{
    return d->program;
}

const Space *derive_space(const Derivation *d)
{
    return d->space;
}

bool set_number(const Derivation *d, Point *point, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return space_set(d->space, point, name, text);
}

void constrain(Derivation *d, Diags *diags, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    space_constrain(d->space, arena_vprintf(diags->arena, format, args), diags);
    va_end(args);
}

// The elements of one 128-bit access, as far as a lane has that many columns.
static int stream_vector(const Derivation *d, const Point *point)
{
    const int64_t most =
        MIN(space_int(d->space, point, "cols"), 16 / MAX(d->shape.steps.bytes, 4));
    return most >= 4 ? 4 : most >= 2 ? 2 : 1;
}

KernelOptions derive_options(const Derivation *d, const Point *point)
{
    KernelOptions options = {.unroll_cap = UNROLL_CAP,
                             .groups = d->device.is_cpu ? 0 : GROUPS_MOST};
    for (int x = 0; x < DIMS_MAX; x++) {
        options.local[x] = derive_number(d, point, "l", x);
        options.item[x] = derive_number(d, point, "b", x);
    }
    options.line = d->shape.product ? line_items(d, point) : 0;
    options.vector =
        (int)(space_find(d->space, "vec") >= 0 ? space_int(d->space, point, "vec") : 1);
    options.lists = derive_word(d, point, "lists", "tiles");
    if (options.lists)
        options.vector = MAX(options.vector, 4);
    bool stream =
        derive_param(d, point, "fuse") > 1 || derive_word(d, point, "scheme", "stream");
    if (stream) {
        options.in_rows = streams_rows(d);
        options.vector = options.in_rows ? 1 : stream_vector(d, point);
        options.unroll_cap = STEPS_COPIES;
    }
    options.warps = (int)derive_param(d, point, "warps");
    options.relay = (int)derive_param(d, point, "relay");
    options.early = derive_word(d, point, "early", "all");
    options.copies = d->device.matrix > 0; // who has the one has the other
    options.tasks = d->device.is_cpu && has_items(d);
    options.item_loops = options.tasks || !has_items(d);
    options.lane_rows = (int)derive_param(d, point, "by");
    options.lanes = d->device.lanes;
    options.shuffle = d->device.shuffle;
    options.wide_sums = d->device.wide_sums;
    options.any_group = derive_word(d, point, "group", "any");
    options.all_loads = derive_word(d, point, "loads", "all");
    options.images = derive_word(d, point, "scheme", "image");
    options.padded = derive_word(d, point, "scheme", "padded");
    options.apart = derive_word(d, point, "banks", "apart");
    // Items that go through a row each have several loads on their way.
    bool items =
        derive_word(d, point, "fold", "item") || derive_word(d, point, "fold", "near");
    options.unroll_part = items && !d->device.is_cpu ? 16 : 0;
    options.eager = !d->device.is_cpu && !stream;
    // Without windows it is for vectors: what guards each element keeps them apart.
    options.interior =
        derive_word(d, point, "border", "split") ||
        (space_find(d->space, "border") < 0 && (options.vector > 1 || options.item_loops));
    if (space_find(d->space, "strip") >= 0)
        options.strip = space_int(d->space, point, "strip");
    options.room = fold_room(d);
    product_options(d, point, &options);
    // The last rows of several in a group, too.
    options.interior |= by_groups(d, point) && options.local[1] > 1 && options.vector > 1;
    return options;
}
