// SPDX-License-Identifier: Apache-2.0
//
// Host level: buffers, kernels and their launch shapes, and the entry of the module.

#include "kir/passes.h"
#include "lower/internal.h"

#include <string.h>

// Buffers -------------------------------------------------------------------------------

// So much longer that what the lanes of a warp load of a tile at once lies in banks of its
// own: of 16-bit elements 16 bytes of eight rows; of others, where rows are along the fold,
// two neighbours of four lanes each; else an element of each, of every second row.
static int64_t fragment_row(const Type *type, int64_t depth)
{
    int64_t length;
    const Type *row = type->elem;
    if (type->kind != T_ARRAY || row->kind != T_ARRAY || row->elem->kind != T_SCALAR ||
        !arith_is_const(row->len, &length))
        return 0;
    int bytes = scalar_info[row->elem->scalar].bytes;
    return length + (bytes == 2 || length == depth ? 8 : 16 / bytes);
}

// Items that fill a tile [fold][places] along the fold would store to the same banks. Its
// rows are longer by so many elements, which keep vectors aligned.
static int64_t filled_across(const KernelOptions *o, const Type *type)
{
    enum { APART = 4 };
    int64_t length, depth;
    bool tile = type->kind == T_ARRAY && type->elem->kind == T_ARRAY &&
                type->elem->elem->kind == T_SCALAR && arith_is_const(type->len, &depth) &&
                depth == o->depth && arith_is_const(type->elem->len, &length);
    return tile ? length + APART : 0;
}

// Each item of a group reads an element of a list, by 16 bytes at a time where these divide
// it. Neighbours use all banks at once if elements are an odd number of times that far
// apart; what all copy is in vectors, which stay aligned. (H200, solvers and transforms of
// 16 to 64 floats: 1.05 to 1.5 times as fast.)
static int64_t listed_row(Lower *l, const Type *element)
{
    enum { VECTOR_BYTES = 16 };
    const int64_t bytes = scalar_info[type_leaf(element)->scalar].bytes;
    const int64_t apart = MAX(VECTOR_BYTES / bytes, l->options->vector);
    int64_t n;
    return arith_is_const(type_count(l->ctx, element), &n) && n % (2 * apart) == 0
               ? n + apart
               : 0;
}

// Rows of an even number of words are one word longer.
static int64_t row_apart(const Arith *length)
{
    int64_t n;
    return arith_is_const(length, &n) && n % 2 == 0 ? n + 1 : 0;
}

// Elements from one row of a tile to the next, where they are padded; else 0.
static int64_t padded_row(const Lower *l, const Type *type)
{
    const KernelOptions *o = l->options;
    TileShape tile = {.vector = MAX(o->vector, 1), .length = {1, 1, 1}};
    int dims = 0;
    for (const Type *t = type; t->kind == T_ARRAY; t = t->elem)
        dims++;
    if (o->group)
        return 0;
    if (o->apart && dims > 1)
        return row_apart(type_elem(type, dims - 1)->len);
    if (o->matrix && dims == 2)
        return fragment_row(type, o->depth);
    if (l->across && !o->padded)
        return filled_across(o, type);
    if (!o->padded || dims < 2 || dims > DIMS_MAX)
        return 0;
    for (int x = dims - 1; x >= 0; x--, type = type->elem)
        if (!arith_is_const(type->len, &tile.length[x]))
            return 0;
    for (int x = 0; x < DIMS_MAX; x++) {
        tile.local[x] = MAX(o->local[x], 1);
        tile.item[x] = MAX(o->item[x], 1);
    }
    tile.bytes = (int)scalar_info[type->scalar].bytes;
    return type->kind == T_SCALAR ? tile_row(&tile) : 0;
}

static Buffer *buffer_new(Lower *l, const Type *type, AddrSpace space, BufferRole role,
                          const char *name)
{
    const Type *scalar = type_leaf(type);
    Buffer *buffer = NEW_OF(l->arena, Buffer, .name = name, .space = space,
                            .scalar = scalar->scalar, .row_dims = 1, .role = role);
    if (space == MEM_LOCAL && l->options->lists && type_depth(type) > 1) {
        buffer->row = listed_row(l, type->elem);
        buffer->row_dims = type_depth(type) - 1;
    } else if (space == MEM_LOCAL) {
        buffer->row = padded_row(l, type);
    }
    buffer->count = mem_count(l->ctx, buffer, type);
    if (space != MEM_GLOBAL && arith_most(buffer->count) < INT32_MAX) {
        bool open = space == MEM_LOCAL && !arith_is_const(buffer->count, NULL);
        buffer->open = open ? buffer->count : NULL;
        buffer->count = arith_const(l->ctx, arith_most(buffer->count));
    }
    if (space == MEM_GLOBAL) {
        buffer->number = l->unit->buffers.len;
        VEC_PUSH(l->arena, &l->unit->buffers, buffer);
    } else if (space == MEM_LOCAL) {
        VEC_PUSH(l->arena, &l->kernel->locals, buffer);
    } else {
        stm_add(l, ST_ARRAY)->buffer = buffer;
    }
    return buffer;
}

static const View *planes_new(Lower *l, const Type *type, AddrSpace space, BufferRole role,
                              int param, const char *name, int *plane)
{
    const Type *tuple = type_tuple_of(type);
    if (tuple) {
        const View **item = NEW_ARRAY(l->arena, const View *, tuple->n);
        for (int i = 0; i < tuple->n; i++)
            item[i] = planes_new(l, type_field(l->arena, type, i), space, role, param,
                                 arena_printf(l->arena, "%s_%d", name, i), plane);
        return view_tuple(l, type, item);
    }
    if (space != MEM_GLOBAL)
        name = name_new(l, name);
    Buffer *buffer = buffer_new(l, type, space, role, name);
    buffer->value = role == ROLE_INPUT && type->kind == T_SCALAR;
    buffer->param = param;
    buffer->plane = (*plane)++;
    return view_mem(l, buffer, arith_const(l->ctx, 0), type);
}

bool in_rows(const Lower *l)
{
    return l->inside[LOOP_LCL] == 1 + l->lanes && l->item[1] && (l->lanes || !l->item[0]);
}

const View *buffers_new(Lower *l, const Type *type, AddrSpace space, BufferRole role,
                        int param, const char *name)
{
    int plane = 0;
    if (space == MEM_LOCAL && !l->kernel)
        return lower_fail(l, span_none, "L020", "toLocal outside mapWrg");
    if (space == MEM_PRIVATE && !l->kernel)
        space = MEM_GLOBAL;
    if (space == MEM_GLOBAL && role == ROLE_TEMP)
        name = arena_printf(l->arena, "%s%d", name, l->unit->buffers.len);
    if (space != MEM_LOCAL || !in_rows(l))
        return planes_new(l, type, space, role, param, name, &plane);
    type = type_array(l->arena, arith_const(l->ctx, l->kernel->local[1]), type);
    return view_elem(l, planes_new(l, type, space, role, param, name, &plane), l->item[1]);
}

// Kernels ---------------------------------------------------------------------------------

// The largest extent of each kind of thread loop in each dimension; NULL if none.
typedef struct {
    const Arith *extent[4][3];
} Extents;

LoopKind pattern_loop(Pattern pattern)
{
    switch (pattern) {
    case P_MAPGLB:
    case P_REDBYGLB: return LOOP_GLB;
    case P_MAPWRG: return LOOP_WRG;
    case P_MAPLCL:
    case P_REDBYOWN:
    case P_REDBYLCL: return LOOP_LCL;
    default: return LOOP_SEQ;
    }
}

static void find_extents(Lower *l, const Expr *expr, bool arguments, Extents *found)
{
    if (expr_in_group(expr, G_PAR)) {
        const Arith **e = &found->extent[pattern_loop(expr->pattern)][expr->par];
        const Arith *n = changes_extent(l, expr);
        *e = *e ? arith_max(l->ctx, *e, n) : n;
    }
    if (expr->fun)
        find_extents(l, expr->fun, true, found);
    for (int i = 0; arguments && i < expr->narg; i++)
        find_extents(l, expr->arg[i], true, found);
}

void launch_axis(Lower *l, Kernel *kernel, int d, const Arith *n, int64_t each)
{
    int64_t known, most = d > 0 ? l->options->groups : 0;
    int64_t turns = most ? (MAX(arith_most(n), 1) - 1) / each / most + 1 : 1;
    l->fewer[d] = turns > 1;
    bool open = turns > 1 && !arith_is_const(n, &known);
    const Arith *groups =
        arith_ceil_div(l->ctx, n, arith_const(l->ctx, open ? each : each * turns));
    if (open)
        groups = arith_min(l->ctx, groups, arith_const(l->ctx, most));
    if (arith_is_const(groups, &known) && known == 0) // a launch has a group at least
        groups = arith_const(l->ctx, 1);
    kernel->global[d] = arith_mulc(l->ctx, groups, kernel->local[d]);
}

// Groups of items that each do an element have the shape of what is there: along an axis of
// a known, short length they have no more items than its next power of two, and the others
// lie along the axis outside of it.
static void fit_group(Lower *l, const Extents *found, int64_t local[3])
{
    enum { DEEPEST = 64 }; // what devices allow along z
    for (int d = 0; d < 3; d++)
        if (found->extent[LOOP_WRG][d] || found->extent[LOOP_LCL][d] ||
            l->options->global[d] || l->options->any_group)
            return;
    for (int d = 0, up = 1; d < 2; d = up++) {
        int64_t n;
        const Arith *const *extent = found->extent[LOOP_GLB];
        while (up < 2 && !extent[up])
            up++;
        if (!extent[d] || !extent[up] || !arith_is_const(extent[d], &n))
            continue;
        for (; local[d] / 2 >= n && local[d] % 2 == 0 && local[up] < DEEPEST;
             local[up] *= 2)
            local[d] /= 2;
    }
}

static bool is_line(const Extents *found)
{
    for (int d = 1; d < 3; d++)
        if (found->extent[LOOP_GLB][d] || found->extent[LOOP_LCL][d])
            return false;
    return true;
}

static void set_launch(Lower *l, const Expr *expr, Kernel *kernel, const Extents *found)
{
    kernel->any_group = l->options->any_group;
    for (int d = 0; d < 3; d++) {
        bool used = found->extent[LOOP_GLB][d] || found->extent[LOOP_LCL][d];
        kernel->local[d] = used && l->options->local[d] ? l->options->local[d] : 1;
        if (d == 0 && used && l->options->line && is_line(found))
            kernel->local[d] = l->options->line;
    }
    if (!expr_find_pattern(expr, P_LOOKBACK)) // a group does not wait for itself
        fit_group(l, found, kernel->local);
    for (int d = 0; d < 3; d++) {
        const Arith *glb = found->extent[LOOP_GLB][d], *wrg = found->extent[LOOP_WRG][d];
        kernel->any_group &= !wrg && !found->extent[LOOP_LCL][d];
        int64_t global = l->options->global[d];
        const Arith *n = glb ? glb : wrg ? wrg : arith_const(l->ctx, 1);
        launch_axis(l, kernel, d, n, glb ? kernel->local[d] : 1);
        l->fewer[d] |= global != 0;
        if (global && (glb || wrg))
            kernel->global[d] = arith_const(l->ctx, global);
    }
}

bool kernel_begin(Lower *l, const Expr *expr)
{
    if (l->kernel || l->failed)
        return false;
    Kernel *kernel = changes_kept(l);
    if (kernel) {
        l->kernel = kernel;
        l->block = &kernel->body;
        return true;
    }
    kernel = NEW(l->arena, Kernel);
    const char *stem = l->options->name ? l->options->name : l->unit->program->main->name;
    kernel->name = arena_printf(l->arena, "%s_k%d", stem, l->unit->kernels.len);
    Extents found = {0};
    find_extents(l, expr, false, &found);
    set_launch(l, expr, kernel, &found);
    kernel->resident = l->options->resident;
    kernel->matrix = l->options->matrix && kernel->local[1] % 8 == 0;
    kernel->band = l->options->band > 1 ? l->options->band : 0;
    kernel->group = l->options->group;
    VEC_PUSH(l->arena, &l->unit->kernels, kernel);
    l->kernel = kernel;
    l->block = &kernel->body;
    l->loops.len = 0;
    l->statements = l->look_at = 0;
    l->shared_tile = false;
    l->written_out = 0;
    kernel->names = (Map){.arena = l->arena};
    for (int i = 0; i < l->unit->buffers.len; i++)
        name_take(kernel, l->unit->buffers.at[i]->name);
    VEC_EACH(const Arith *, step, &l->steps)
        name_take(kernel, step->name);
    return true;
}

// A kernel that is there already, the newest of the unit, is dropped and the older one
// launched.
static Launch launch_of(Lower *l, const Kernel *kernel)
{
    Unit *unit = l->unit;
    for (int i = 0; i < unit->kernels.len - 1 && !l->failed; i++) {
        const Kernel *old = unit->kernels.at[i];
        Buffer **buffer = kernel_twin(l->ctx, old, kernel, l->arena);
        if (buffer) {
            unit->kernels.len--;
            return (Launch){old, buffer, old->sizes.at, old->global};
        }
    }
    return (Launch){kernel, kernel->params.at, kernel->sizes.at, kernel->global};
}

void kernel_end(Lower *l, bool begun)
{
    Kernel *kernel = l->kernel;
    if (!begun)
        return;
    const bool looks = changes_look(l, &kernel->body);
    l->kernel = NULL;
    l->block = NULL;
    const bool none = looks || (!kernel->body.len && !l->failed);
    l->unit->kernels.len -= none;
    if (none || changes_keep(l, kernel))
        return;
    check_length(l, kernel);
    if (l->failed)
        return;
    Pass pass = {l->ctx, l->arena, l->unit->program, l->options, l->steps.len > 0};
    l->failed = !kernel_finish(&pass, kernel, l->diags);
    Launch launch = launch_of(l, kernel);
    VEC_PUSH(l->arena, &l->launches, launch);
}

// Entry -------------------------------------------------------------------------------

static const Env *bind_inputs(Lower *l, const Function *main)
{
    const Env *env = NULL;
    for (int i = 0; i < main->nparam; i++) {
        const Param *param = main->params[i];
        env = env_bind(l, env, param,
                       buffers_new(l, param->type, MEM_GLOBAL, ROLE_INPUT, i, param->name));
    }
    l->unit->ninput = l->unit->buffers.len;
    return env;
}

// "out", or longer where an input or a plane of one is called so.
static const char *output_name(const Lower *l)
{
    const char *name = "out";
    for (int i = 0; i < l->unit->buffers.len; i++) {
        const char *input = l->unit->buffers.at[i]->name;
        size_t len = strlen(name);
        if (strncmp(input, name, len) == 0 && (!input[len] || input[len] == '_')) {
            name = arena_printf(l->arena, "%s_", name);
            i = -1;
        }
    }
    return name;
}

Unit *lower(const Program *program, Expr *body, const KernelOptions *options, Arena *arena,
            Diags *diags)
{
    Unit *unit = NEW_OF(arena, Unit, .ir = program->ir, .arena = arena, .program = program,
                        .wide_sums = options->wide_sums);
    Lower l = {.ir = program->ir,
               .ctx = program->ir->arith,
               .arena = arena,
               .unit = unit,
               .options = options,
               .diags = diags};
    const Env *env = bind_inputs(&l, program->main);
    const View *out =
        buffers_new(&l, body->type, MEM_GLOBAL, ROLE_OUTPUT, 0, output_name(&l));
    unit->noutput = unit->buffers.len - unit->ninput;
    gen(&l, body, env, out);
    if (l.failed)
        return NULL;
    unit->launches.at = l.launches.at;
    unit->launches.len = l.launches.len;
    return unit;
}

Unit *lower_as_written(const Program *program, Expr *body, const KernelOptions *options,
                       Arena *arena, Diags *diags)
{
    KernelOptions kept = *options;
    Diags unseen = {.arena = arena};
    kept.interior = false;
    kept.as_written = true;
    kept.vector = 1;
    kept.unroll_cap = 1;
    Unit *unit = lower(program, body, &kept, arena, &unseen);
    if (unit)
        return unit;
    kept.unroll_cap = options->unroll_cap; // some loop must be unrolled
    return lower(program, body, &kept, arena, diags);
}
