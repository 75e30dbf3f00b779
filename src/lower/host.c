// SPDX-License-Identifier: Apache-2.0
//
// Host level: buffers, kernels and their launch shapes, iterate as repeated launches, and
// the entry of the module.

#include "lower/internal.h"
#include "lower/passes.h"

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

// Elements from one row of a tile to the next, where they are padded; else 0.
static int64_t padded_row(const Lower *l, const Type *type)
{
    const LowerOptions *o = l->options;
    TileShape tile = {.vector = MAX(o->vector, 1), .length = {1, 1, 1}};
    int dims = 0;
    for (const Type *t = type; t->kind == T_ARRAY; t = t->elem)
        dims++;
    if (o->group)
        return 0;
    if (o->matrix && dims == 2)
        return fragment_row(type, o->depth);
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
    const Type *scalar = type_elem(type, 0);
    while (scalar->kind == T_ARRAY)
        scalar = scalar->elem;
    Buffer *buffer = NEW(l->arena, Buffer);
    *buffer = (Buffer){.name = name,
                       .space = space,
                       .scalar = scalar->scalar,
                       .row = space == MEM_LOCAL ? padded_row(l, type) : 0,
                       .role = role};
    buffer->count = mem_count(l, buffer, type);
    if (space != MEM_GLOBAL && arith_most(buffer->count) < INT32_MAX)
        buffer->count = arith_const(l->ctx, arith_most(buffer->count));
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
    buffer->param = param;
    buffer->plane = (*plane)++;
    return view_mem(l, buffer, arith_const(l->ctx, 0), type);
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
    return planes_new(l, type, space, role, param, name, &plane);
}

// Kernels ---------------------------------------------------------------------------------

// The largest extent of each kind of thread loop in each dimension; NULL if none.
typedef struct {
    const Arith *extent[4][3];
} Extents;

static LoopKind pattern_loop(Pattern pattern)
{
    switch (pattern) {
    case P_MAPGLB: return LOOP_GLB;
    case P_MAPWRG: return LOOP_WRG;
    case P_MAPLCL: return LOOP_LCL;
    default: return LOOP_SEQ;
    }
}

static void find_extents(Lower *l, const Expr *expr, bool arguments, Extents *found)
{
    if (expr->kind == E_PATTERN && pattern_info[expr->pattern].group == G_PAR) {
        const Arith **e = &found->extent[pattern_loop(expr->pattern)][expr->par];
        *e = *e ? arith_max(l->ctx, *e, expr->type->len) : expr->type->len;
    }
    if (expr->fun)
        find_extents(l, expr->fun, true, found);
    for (int i = 0; arguments && i < expr->narg; i++)
        find_extents(l, expr->arg[i], true, found);
}

static const Arith *round_up(Lower *l, const Arith *n, int64_t to)
{
    return arith_mulc(l->ctx, arith_ceil_div(l->ctx, n, arith_const(l->ctx, to)), to);
}

static void set_launch(Lower *l, Kernel *kernel, const Extents *found)
{
    kernel->any_group = l->options->any_group;
    for (int d = 0; d < 3; d++) {
        const Arith *glb = found->extent[LOOP_GLB][d], *wrg = found->extent[LOOP_WRG][d];
        kernel->any_group &= !wrg && !found->extent[LOOP_LCL][d];
        bool used = glb || found->extent[LOOP_LCL][d];
        int64_t local = used && l->options->local[d] ? l->options->local[d] : 1;
        int64_t global = l->options->global[d];
        kernel->local[d] = local;
        if (global && (glb || wrg))
            kernel->global[d] = arith_const(l->ctx, global);
        else if (glb)
            kernel->global[d] = round_up(l, glb, local);
        else
            kernel->global[d] =
                wrg ? arith_mulc(l->ctx, wrg, local) : arith_const(l->ctx, local);
    }
}

bool kernel_begin(Lower *l, const Expr *expr)
{
    if (l->kernel || l->failed)
        return false;
    Kernel *kernel = NEW(l->arena, Kernel);
    const char *stem = l->options->name ? l->options->name : l->unit->program->main->name;
    kernel->name = arena_printf(l->arena, "%s_k%d", stem, l->unit->kernels.len);
    Extents found = {0};
    find_extents(l, expr, false, &found);
    set_launch(l, kernel, &found);
    kernel->resident = l->options->resident;
    kernel->matrix = l->options->matrix;
    kernel->band = l->options->band > 1 ? l->options->band : 0;
    kernel->group = l->options->group;
    VEC_PUSH(l->arena, &l->unit->kernels, kernel);
    l->kernel = kernel;
    l->block = &kernel->body;
    l->loops.len = 0;
    l->shared_tile = false;
    map_init(&kernel->names, l->arena);
    for (int i = 0; i < l->unit->buffers.len; i++)
        name_take(kernel, l->unit->buffers.at[i]->name);
    return true;
}

// After each pass: what the kernel uses, and that it is still one.
static void check_pass(Lower *l, Kernel *kernel, const char *pass)
{
    if (l->options->quick)
        return;
    kernel_collect(l, kernel);
    if (l->options->observe)
        l->options->observe(l->options->user, pass, kernel);
    l->failed |= !kernel_verify_pass(l->ctx, kernel, l->diags);
}

static void run_passes(Lower *l, Kernel *kernel)
{
    const LowerOptions *options = l->options;
    Pass pass = {l->ctx, l->arena, options};
    kernel_collect(l, kernel);
    check_pass(l, kernel, "start");
#define PASS(name, condition)                                                              \
    if (!l->failed && (condition)) {                                                       \
        pass_##name(&pass, kernel);                                                        \
        check_pass(l, kernel, #name);                                                      \
    }
#include "lower/passes.def"
#undef PASS
    if (l->options->quick)
        kernel_collect(l, kernel);
    else if (!l->failed)
        l->failed = !kernel_verify(l->ctx, kernel, l->diags);
}

// About 150 KB of text: compilers take longer than a search waits, and the passes, of which
// some are not linear, longer than all other points together.
enum { QUICK_NODES = 20000 };

void kernel_end(Lower *l)
{
    Kernel *kernel = l->kernel;
    l->kernel = NULL;
    l->block = NULL;
    if (!l->failed && l->options->quick && block_nodes(&kernel->body) > QUICK_NODES)
        lower_fail(l, span_none, "L029", "the kernel is too long to be looked at");
    if (l->failed)
        return;
    run_passes(l, kernel);
    Launch launch = {kernel, kernel->params.at};
    VEC_PUSH(l->arena, &l->launches, launch);
}

// Iterate -----------------------------------------------------------------------------

enum { PLANES_MAX = 32 }; // as streams have

// The buffers of a view that is nothing but whole buffers; false if it is more.
static bool whole_buffers(const View *view, Buffer **buffer, int *n)
{
    if (view->kind == V_TUPLE) {
        int items = type_tuple_of(view->type)->n;
        for (int i = 0; i < items; i++)
            if (!whole_buffers(view->item[i], buffer, n))
                return false;
        return true;
    }
    int64_t offset;
    if (view->kind != V_MEM || view->buffer->space != MEM_GLOBAL || *n == PLANES_MAX ||
        !arith_is_const(view->offset, &offset) || offset != 0)
        return false;
    buffer[(*n)++] = (Buffer *)view->buffer;
    return true;
}

static void gen_view_kernel(Lower *l, const Expr *expr, const View *from, const View *out)
{
    bool begun = kernel_begin(l, expr);
    gen_copy(l, from, out);
    if (begun)
        kernel_end(l);
}

static Buffer *rebound(Buffer *buffer, Buffer **formal, Buffer **actual, int n)
{
    for (int i = 0; i < n; i++)
        if (buffer == formal[i])
            return actual[i];
    return buffer;
}

static void launch_again(Lower *l, const Launches *step, Buffer **formal, Buffer **actual,
                         int n)
{
    for (int i = 0; i < step->len; i++) {
        const Launch *from = &step->at[i];
        Buffer **buffer = NEW_ARRAY(l->arena, Buffer *, from->kernel->params.len);
        for (int k = 0; k < from->kernel->params.len; k++)
            buffer[k] = rebound(from->buffer[k], formal, actual, n);
        Launch launch = {from->kernel, buffer};
        VEC_PUSH(l->arena, &l->launches, launch);
    }
}

static const View *state_new(Lower *l, const Expr *expr, const char *name, Buffer **buffer)
{
    int n = 0;
    const View *own = buffers_new(l, expr->type, MEM_GLOBAL, ROLE_TEMP, 0, name);
    whole_buffers(own, buffer, &n);
    return own;
}

// A state in buffers of its own: what a step reads and writes.
static const View *state_buffers(Lower *l, const View *view, const Expr *expr,
                                 Buffer **buffer, bool copy)
{
    int n = 0;
    if (whole_buffers(view, buffer, &n))
        return view;
    const View *own = state_new(l, expr, "state", buffer);
    if (copy)
        gen_view_kernel(l, expr, view, own);
    return own;
}

// The launches of some steps at once, from buffers to buffers; stream: in one kernel.
static Launches step_launches(Lower *l, const Expr *expr, const Env *env, bool stream,
                              int64_t steps, const View *from, const View *to)
{
    const Expr *f = expr->fun;
    Launches before = l->launches;
    l->launches = (Launches){0};
    if (stream)
        gen_stream(l, expr, env, steps, from, to);
    else
        gen(l, f->arg[0], env_bind(l, env, f->params[0], from), to);
    Launches step = l->launches;
    l->launches = before;
    return step;
}

// How often the steps of a loop are launched, and the launches of each time: as many steps
// as go at once, then as many parts of them as are left, then single ones that are.
enum { KINDS = 3 };
typedef struct {
    int64_t times[KINDS];
    Launches launches[KINDS];
} Passes;

static Passes step_passes(Lower *l, const Expr *expr, const Env *env, int64_t count,
                          const View *from, const View *to)
{
    Passes passes = {0};
    int64_t fused = stream_steps(l, expr, env, from, to), most = MAX(fused, 1);
    int64_t part = l->options->relay > 1 && most % l->options->relay == 0
                       ? most / l->options->relay
                       : most;
    int64_t steps[KINDS] = {most, count % most / part * part, count % most % part};
    for (int i = 0; i < KINDS; i++) {
        passes.times[i] = i == 0 ? count / most : steps[i] > 0;
        if (passes.times[i])
            passes.launches[i] = step_launches(l, expr, env, fused > 0, steps[i], from, to);
    }
    return passes;
}

// Kernels of one step are made once, reading the first state and writing the second; step
// k binds their parameters to the buffers it really reads and writes. The last one writes
// the destination, so states alternate between it and one temporary. A stream does several
// steps in a kernel, and what is left of the count in others.
const View *gen_iterate(Lower *l, const Expr *expr, const Env *env, const View *out)
{
    int64_t steps;
    if (!arith_is_const(expr->num[0], &steps) || steps > 1000000)
        return lower_fail(l, expr->span, "L021", "iterate needs a constant count");
    const View *in = eval(l, expr->arg[0], env);
    if (steps == 0 || l->failed) {
        gen_view_kernel(l, expr, in, out);
        return out;
    }
    Buffer *first[PLANES_MAX], *final[PLANES_MAX], *other[PLANES_MAX];
    Buffer *formal[2 * PLANES_MAX], *actual[2 * PLANES_MAX];
    state_buffers(l, in, expr, first, true);
    const View *dest = state_buffers(l, out, expr, final, false);
    int n = 0;
    whole_buffers(dest, final, &n);
    state_new(l, expr, "state", other);
    const View *from = state_new(l, expr, "from", formal);
    const View *to = state_new(l, expr, "to", formal + n);
    for (int i = 0; i < 2 * n; i++)
        formal[i]->formal = true;
    Passes passes = step_passes(l, expr, env, steps, from, to);
    steps = passes.times[0] + passes.times[1] + passes.times[2];
    for (int64_t k = 0; k < steps && !l->failed; k++) {
        int kind = k < passes.times[0] ? 0 : k < passes.times[0] + passes.times[1] ? 1 : 2;
        bool even = (steps - 1 - k) % 2 == 0;
        for (int i = 0; i < n; i++) {
            actual[i] = k == 0 ? first[i] : even ? other[i] : final[i];
            actual[n + i] = even ? final[i] : other[i];
        }
        launch_again(l, &passes.launches[kind], formal, actual, 2 * n);
    }
    if (dest != out)
        gen_view_kernel(l, expr, dest, out);
    return out;
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

Unit *lower(const Program *program, Expr *body, const LowerOptions *options, Arena *arena,
            Diags *diags)
{
    Unit *unit = NEW(arena, Unit);
    unit->ir = program->ir;
    unit->arena = arena;
    unit->program = program;
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
