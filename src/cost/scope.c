// SPDX-License-Identifier: Apache-2.0
//
// Index variables and their values for the lanes of a warp; see scope.h.
//
//   method  a variable is evaluated when it is asked for, once for each warp (`stamp`); an
//   index is evaluated for all lanes at once lanes   local ids run fastest along x, then y,
//   then z

#include "cost/scope.h"

#include <string.h>

static BoundVar *bound_new(Scope *s, BoundKind kind, const Arith *var)
{
    BoundVar *bound = scope_find(s, var);
    if (!bound) {
        bound = NEW(s->arena, BoundVar);
        VEC_PUSH(s->arena, &s->bounds, bound);
        table_push(&s->table, (Key){var, NULL, NULL}, s->bounds.len - 1);
    }
    s->again += bound->var != NULL;
    *bound = (BoundVar){.kind = kind, .var = var};
    return bound;
}

static BoundVar *bind_size(Scope *s, const Arith *var)
{
    const FeatureSetting *f = s->setting;
    int64_t at;
    if (!scope_size(f->binding, f->nbinding, var, &at))
        return NULL;
    BoundVar *bound = NEW_OF(s->arena, BoundVar, .var = var, .at = at);
    VEC_PUSH(s->arena, &s->bounds, bound);
    table_push(&s->table, (Key){var, NULL, NULL}, s->bounds.len - 1);
    return bound;
}

BoundVar *scope_find(Scope *s, const Arith *var)
{
    BoundVar **recent = &s->recent[var->id % COUNTOF(s->recent)];
    if (*recent && (*recent)->var == var)
        return *recent;
    int entry = table_find(&s->table, (Key){var, NULL, NULL});
    if (entry < 0)
        return NULL;
    return *recent = s->bounds.at[s->table.entry.at[entry].value];
}

static bool lookup_size(void *user, const Arith *var, int64_t *value)
{
    BoundVar *bound = scope_find(user, var);
    if (!bound)
        bound = bind_size(user, var);
    if (!bound || bound->kind != BOUND_SIZE)
        return false;
    *value = bound->at;
    return true;
}

bool scope_constant(Scope *s, const Arith *a, int64_t *value)
{
    return arith_is_const(a, value) || arith_eval(a, lookup_size, s, value);
}

// What sizes ask for of arrays that are made for the largest ones.
static int64_t local_bytes(Scope *s)
{
    int64_t bytes = kernel_local_bytes(s->kernel), most, count;
    VEC_EACH(const Buffer *, buffer, &s->kernel->locals)
        if (buffer->open && scope_constant(s, buffer->open, &count) &&
            scope_constant(s, buffer->count, &most))
            bytes -= (most - count) * scalar_info[buffer->scalar].bytes;
    return bytes;
}

bool scope_init(Scope *s, Arena *arena, const Kernel *kernel, const FeatureSetting *setting)
{
    *s = (Scope){.arena = arena, .kernel = kernel, .setting = setting};
    table_init(&s->table, arena);
    s->group_size = 1;
    for (int d = 0; d < 3; d++) {
        if (!scope_constant(s, kernel->global[d], &s->global[d]))
            return false;
        s->groups[d] = s->global[d] / kernel->local[d];
        s->group_size *= kernel->local[d];
    }
    s->local_bytes = local_bytes(s);
    scope_warp(s, 0);
    return true;
}

int scope_warps(const Scope *s)
{
    int64_t warp = s->setting->device->warp;
    return (int)((s->group_size + warp - 1) / warp);
}

void scope_warp(Scope *s, int warp)
{
    int64_t width = s->setting->device->warp, first = warp * width;
    const int64_t *local = s->kernel->local;
    s->warp = warp;
    s->lanes = (int)MIN(width, s->group_size - first);
    int64_t x = first % local[0], y = first / local[0] % local[1];
    int64_t z = first / (local[0] * local[1]);
    for (int i = 0; i < s->lanes; i++) {
        s->local_id[0][i] = x;
        s->local_id[1][i] = y;
        s->local_id[2][i] = z;
        if (++x < local[0])
            continue;
        x = 0;
        if (++y < local[1])
            continue;
        y = 0;
        z++;
    }
    s->stamp++;
}

int64_t scope_threads(const Scope *s, LoopKind loop, int dim)
{
    switch (loop) {
    case LOOP_GLB: return s->global[dim];
    case LOOP_WRG: return s->groups[dim];
    case LOOP_LCL: return s->kernel->local[dim];
    case LOOP_SEQ: break;
    }
    return 1;
}

void scope_declare(Scope *s, const Stm *stm, int64_t extent)
{
    if (stm->kind == ST_INT) {
        bound_new(s, stm->value ? BOUND_DATA : BOUND_INT, stm->iter)->def = stm->index;
        return;
    }
    bool thread = stm->loop != LOOP_SEQ;
    BoundVar *bound = bound_new(s, thread ? BOUND_THREAD : BOUND_LOOP, stm->iter);
    bound->n = MAX(extent, 1);
    bound->at = thread ? 0 : bound->n / 2;
    bound->loop = stm->loop;
    bound->dim = stm->dim;
}

static void thread_lanes(const Scope *s, BoundVar *b)
{
    int64_t group = s->groups[b->dim] / 2, local = s->kernel->local[b->dim];
    LaneValues *lanes = &b->lanes;
    lanes->uniform = b->loop == LOOP_WRG || local == 1;
    int n = lanes->uniform ? 1 : s->lanes;
    for (int i = 0; i < n; i++) {
        int64_t id = s->local_id[b->dim][i];
        id = b->loop == LOOP_WRG ? group : b->loop == LOOP_GLB ? group * local + id : id;
        lanes->v[i] = MIN(id, b->n - 1);
    }
}

static const LaneValues *bound_lanes(Scope *s, const Arith *var)
{
    BoundVar *b = scope_find(s, var);
    if (!b)
        b = bind_size(s, var);
    if (!b || b->kind == BOUND_DATA)
        return NULL;
    if (b->stamp == s->stamp)
        return &b->lanes;
    b->stamp = s->stamp;
    if (b->kind == BOUND_THREAD)
        thread_lanes(s, b);
    else if (b->kind == BOUND_INT)
        return scope_lanes(s, b->def, &b->lanes) ? &b->lanes : NULL;
    else {
        b->lanes.uniform = true;
        b->lanes.v[0] = b->at;
    }
    return &b->lanes;
}

static void spread(LaneValues *lanes, int n)
{
    if (!lanes->uniform)
        return;
    for (int i = 1; i < n; i++)
        lanes->v[i] = lanes->v[0];
    lanes->uniform = false;
}

static void add_scaled(LaneValues *out, const LaneValues *in, int64_t coef, int n)
{
    if (in->uniform) {
        for (int i = 0; i < (out->uniform ? 1 : n); i++)
            out->v[i] += coef * in->v[0];
        return;
    }
    spread(out, n);
    if (coef == 1)
        for (int i = 0; i < n; i++)
            out->v[i] += in->v[i];
    else
        for (int i = 0; i < n; i++)
            out->v[i] += coef * in->v[i];
}

static int64_t combine(ArithKind kind, int64_t a, int64_t b)
{
    switch (kind) {
    case A_PROD: return a * b;
    case A_DIV: return b ? floor_div(a, b) : 0;
    case A_MOD: return b ? floor_mod(a, b) : 0;
    case A_MIN: return MIN(a, b);
    case A_MAX: return MAX(a, b);
    case A_CONST:
    case A_VAR:
    case A_SUM: break;
    }
    BUG("no operation of two integers");
}

// By a power of two, which is a shift and a mask for negative numbers too.
static void divide(bool rest, LaneValues *out, int64_t by, int n)
{
    int shift = __builtin_ctzll((unsigned long long)by);
    for (int i = 0; i < n; i++)
        out->v[i] = rest ? out->v[i] & (by - 1) : out->v[i] >> shift;
}

static void combine_lanes(ArithKind kind, LaneValues *out, const LaneValues *part, int n)
{
    int64_t by = part->v[0];
    if ((kind == A_DIV || kind == A_MOD) && part->uniform && by > 0 && !(by & (by - 1)))
        divide(kind == A_MOD, out, by, n);
    else
        for (int i = 0; i < n; i++)
            out->v[i] = combine(kind, out->v[i], part->v[part->uniform ? 0 : i]);
}

static const LaneValues *part_lanes(Scope *s, const Arith *a, LaneValues *room)
{
    if (a->kind == A_VAR)
        return bound_lanes(s, a);
    return scope_lanes(s, a, room) ? room : NULL;
}

bool scope_lanes(Scope *s, const Arith *a, LaneValues *out)
{
    LaneValues room;
    if (a->kind == A_CONST || a->kind == A_SUM) {
        out->uniform = true;
        out->v[0] = a->value;
        for (int i = 0; i < a->n; i++) {
            const LaneValues *part = part_lanes(s, a->term[i].arg, &room);
            if (!part)
                return false;
            add_scaled(out, part, a->term[i].coef, s->lanes);
        }
        return true;
    }
    const LaneValues *first = part_lanes(s, a->kind == A_VAR ? a : a->term[0].arg, &room);
    if (!first)
        return false;
    out->uniform = first->uniform;
    memcpy(out->v, first->v, sizeof *out->v * (size_t)(first->uniform ? 1 : s->lanes));
    for (int k = 1; k < a->n; k++) {
        const LaneValues *part = part_lanes(s, a->term[k].arg, &room);
        if (!part)
            return false;
        if (!part->uniform)
            spread(out, s->lanes);
        combine_lanes(a->kind, out, part, out->uniform ? 1 : s->lanes);
    }
    return true;
}

// A line beyond all before it is new; only for others is it looked whether they are.
static bool is_new(const int64_t *seen, int n, int64_t line)
{
    for (int i = n - 1; i >= 0; i--)
        if (seen[i] == line)
            return false;
    return true;
}

int lanes_lines(const LaneValues *lanes, int n, int width, int64_t line)
{
    int64_t seen[2 * LANES_MAX], most = INT64_MIN;
    int count = 0, ends = width > 1 ? 2 : 1;
    bool power = (line & (line - 1)) == 0;
    int shift = power ? __builtin_ctzll((unsigned long long)line) : 0;
    for (int i = 0; i < (lanes->uniform ? 1 : n); i++)
        for (int end = 0; end < ends; end++) {
            int64_t at = lanes->v[i] + end * (width - 1);
            int64_t l = power ? at >> shift : floor_div(at, line);
            if (l <= most && !is_new(seen, count, l))
                continue;
            seen[count++] = l;
            most = MAX(most, l);
        }
    return count;
}

static int64_t most_of_lanes(Scope *s, const Arith *extent)
{
    LaneValues lanes;
    if (!scope_lanes(s, extent, &lanes))
        return 1;
    int64_t n = lanes.v[0];
    for (int i = 1; !lanes.uniform && i < s->lanes; i++)
        n = MAX(n, lanes.v[i]);
    return n;
}

// The mean over the iterations of the innermost loop that it depends on, SAMPLES of them,
// of which some may find nothing to do.
int64_t scope_extent(Scope *s, const Arith *extent)
{
    enum { SAMPLES = 16 };
    BoundVar *loop = NULL;
    int64_t known;
    if (scope_constant(s, extent, &known))
        return MAX(known, 0);
    VEC_EACH(BoundVar *, bound, &s->bounds)
        if (bound->kind == BOUND_LOOP && arith_mentions(extent, bound->var))
            loop = bound;
    if (!loop)
        return MAX(most_of_lanes(s, extent), 0);
    int64_t middle = loop->at, samples = MIN(loop->n, SAMPLES), sum = 0;
    for (int64_t i = 0; i < samples; i++) {
        loop->at = i * loop->n / samples;
        s->stamp++;
        sum += MAX(most_of_lanes(s, extent), 0);
    }
    loop->at = middle;
    s->stamp++;
    return (sum + samples / 2) / samples;
}
