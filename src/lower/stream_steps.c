// SPDX-License-Identifier: Apache-2.0
//
// What is known of a time loop before any kernel of it is made: whether its steps can be
// done together, and what one step more keeps, reads and reaches.

#include "lower/stream.h"

#include <string.h>

// Every name that is mentioned stands for arrays in memory.
static const Env *env_of_all(Lower *l, const Expr *expr, const Env *env)
{
    if (expr->kind == E_PARAM)
        env = env_bind(l, env, expr->param,
                       buffers_new(l, expr->param->type, MEM_GLOBAL, ROLE_TEMP, 0, "any"));
    for (int i = 0; i < expr->narg; i++)
        env = env_of_all(l, expr->arg[i], env);
    return expr->fun ? env_of_all(l, expr->fun->arg[0], env) : env;
}

// What a cell's reads compile to, in reads: one of the three ways of a walk (Part) selects
// among all the places that each may be of. A compiler takes four times as long for halfs,
// which it spills: 3 and 12 s at one point of a star of radius 2.
static int64_t compiled_reads(const Grid *grid)
{
    int64_t reads = grid->reads.len, places = MAX(grid->places, reads);
    return (2 * reads + places) * (grid->scalar->scalar == S_HALF ? 4 : 1) / 3;
}

// What so many steps keep, publish and read, and how far they reach: sign times that.
static void add_steps(Stream *s, int64_t steps, int sign, TimeLoop *found)
{
    int64_t most[DIMS_MAX] = {0};
    s->steps = steps;
    s->relay = 1;
    stream_schedule(s);
    ARRAY_EACH_REF(const Field *, field, s->field, s->nfield) {
        const Grid *grid = &s->grid[field->grid];
        int64_t bytes = MAX(scalar_info[grid->scalar->scalar].bytes, 4);
        if (!field->used || field->same >= 0)
            continue;
        found->words += sign * (bytes / 4 * MAX(field->depth - 1, 0));
        if (field->age >= 0)
            found->around += sign * (bytes / 4 * (field->oldest - field->age));
        found->met += sign * (field->shared ? bytes : 0);
        found->kept += sign * (field->depth ? s->phases * bytes : 0);
        found->reads += sign * s->phases * compiled_reads(grid);
        for (int d = 0; d < s->dims; d++)
            most[d] = MAX(most[d], MAX(field->beyond[0][d], field->beyond[1][d]));
    }
    for (int d = s->shift; d < s->dims; d++)
        found->beyond[d - s->shift] += sign * most[d];
}

// One step more than a few, for the first one or two differ; or the only one.
static void add_step(Stream *s, TimeLoop *found)
{
    if (found->count > 1)
        add_steps(s, 2, -1, found);
    add_steps(s, found->count > 1 ? 3 : 1, 1, found);
}

static void add_flat(Lower *l, const Stream *walking, const Expr *loop, TimeLoop *found)
{
    Stream s = {.l = l, .f = walking->f, .env = walking->env, .from = walking->from};
    TimeLoop flat = {.count = found->count};
    s.flat = true;
    if (!stream_probe(&s, loop))
        BUG("a step is a stencil where it walks only");
    add_step(&s, &flat);
    found->flat_met = flat.met;
    found->flat_reads = flat.reads;
}

void lower_steps(Ir *ir, const Expr *stream, bool shuffle, TimeLoop *found)
{
    AutoArena *arena = arena_new(); // a probe of many reads makes views of some MB
    Unit unit = {.ir = ir, .arena = arena};
    KernelOptions options = {.shuffle = shuffle, .unroll_cap = STEPS_COPIES};
    Diags quiet = {.arena = arena};
    Lower l = {.ir = ir,
               .ctx = ir->arith,
               .arena = arena,
               .unit = &unit,
               .options = &options,
               .diags = &quiet};
    LoopCounters counting;
    if (find_counters(ir, stream, &counting))
        stream = counting.loop;
    Stream s = {.l = &l, .f = stream->fun};
    *found = (TimeLoop){.count = 0};
    arith_is_const(stream->num[0], &found->count);
    s.env = env_of_all(&l, stream->fun->arg[0], NULL);
    s.from = buffers_new(&l, stream->type, MEM_GLOBAL, ROLE_TEMP, 0, "state");
    if (stream_probe(&s, stream)) {
        add_step(&s, found);
        relay_plan(&s);
        for (int g = 0; g < s.nstate; g++)
            found->ring += ring_rows(&s, g) * scalar_info[s.grid[g].scalar->scalar].bytes;
        found->wide = 1;
        for (int g = 0; g < s.ngrid; g++) {
            found->ops += s.grid[g].reads.len;
            found->wide = MAX(found->wide, scalar_info[s.grid[g].scalar->scalar].bytes / 4);
        }
        memcpy(found->size, s.size + s.shift,
               sizeof found->size - (size_t)s.shift * sizeof *s.size);
        for (int g = 0; g < s.nstate; g++) {
            int64_t bytes = scalar_info[s.grid[g].scalar->scalar].bytes;
            found->bytes += bytes;
            found->written += s.grid[g].same < 0 ? bytes : 0;
        }
        if (s.dims == 2 && !s.shift)
            add_flat(&l, &s, stream, found);
    }
    found->dims = s.dims - s.shift;
    found->why = s.refused;
}
