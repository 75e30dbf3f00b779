// SPDX-License-Identifier: Apache-2.0
//
// Features of kernels as they are emitted.
//
//   method  counts by the walk; cache lines by evaluating each index for the lanes of a
//           warp in the middle of the grid
//
// What is estimated and not counted says so in features.def: registers, occupancy and what
// follows from them are meant for ordering candidates, not as numbers of their own.

#include "cost/demand.h"
#include "cost/footprint.h"
#include "cost/residency.h"

#include <math.h>

const FeatureInfo feature_info[FEATURES] = {
#define FEATURE(id, name, unit, group, subject, source, doc)                               \
    {#name, unit, FEATURES_##group, SUBJECT_##subject, FEATURE_##source, doc},
#include "cost/features.def"
#undef FEATURE
};

const char *const subject_name[SUBJECTS] = {
#define X(id, text) text,
    SUBJECTS_DEF(X)
#undef X
};

const char *const feature_group_name[FEATURE_GROUP_COUNT] = {
    [FEATURES_PARALLELISM] = "parallelism",
    [FEATURES_MEMORY] = "memory",
    [FEATURES_CONTROL] = "control flow and synchronisation",
    [FEATURES_EXTRA] = "beyond the paper",
};

// Sums over all work-items of all launches.
typedef struct {
    double launches, threads, groups, outputs, inputs, accesses, lines, coalesced;
    double bytes, vector_bytes, scalars_loaded, bits[3];
    double loads[3], stores[3], barriers, ifs, bodies, flops, group_lines;
} Totals;

// One kernel: per work-item what the walk finds, and what is added here.
typedef struct {
    const Kernel *kernel;
    CostWalk walk;
    Footprint footprint;
    Demand *demand; // NULL: it is not asked for
    Totals item;    // accesses to coalesced, bytes to bits
    double group_lines;
    int64_t launches, threads, groups;
} KernelFacts;

static void count_lines(KernelFacts *k, const CountedAccess *a, int64_t bytes)
{
    const Scope *scope = &k->walk.scope;
    int64_t line_bytes = scope->setting->device->line_bytes;
    int64_t least = (scope->lanes * bytes + line_bytes - 1) / line_bytes;
    k->item.lines += a->exec * a->lines;
    k->item.coalesced += a->lines <= least + 1 ? a->exec : 0;
}

static void on_access(CostWalk *walk, void *user, const CountedAccess *a)
{
    KernelFacts *k = user;
    if (k->demand)
        demand_note(k->demand, a, walk->scope.lanes);
    if (a->buffer->space != MEM_GLOBAL)
        return;
    int64_t bytes = a->width * scalar_info[a->buffer->scalar].bytes;
    k->item.accesses += a->exec;
    k->item.bytes += a->exec * (double)bytes;
    k->item.vector_bytes += a->width > 1 ? a->exec * (double)bytes : 0;
    k->item.scalars_loaded += a->store ? 0 : a->exec * a->width;
    k->item.bits[bytes <= 4 ? 0 : bytes <= 8 ? 1 : 2] += a->exec;
    count_lines(k, a, bytes);
    footprint_add(&k->footprint, a, walk->guards.at, walk->guards.len);
}

static bool kernel_facts(KernelFacts *k, Arena *arena, const Unit *unit,
                         const Kernel *kernel, const FeatureSetting *setting,
                         Demand *demand)
{
    *k = (KernelFacts){.kernel = kernel, .demand = demand};
    footprint_init(&k->footprint, arena);
    if (!walk_kernel(&k->walk, arena, kernel, setting, on_access, k) ||
        (demand && !demand_finish(demand, &k->walk, unit, kernel)))
        return false;
    const Scope *s = &k->walk.scope;
    k->groups = s->groups[0] * s->groups[1] * s->groups[2];
    k->threads = k->groups * s->group_size;
    k->group_lines = footprint_lines(&k->footprint, &k->walk.scope);
    for (int i = 0; i < unit->launches.len; i++)
        k->launches += unit->launches.at[i].kernel == kernel;
    return true;
}

static void collect_buffers(const Block *block, const Kernel *kernel, uint64_t *stored)
{
    VEC_EACH(const Stm *, stm, block) {
        for (int p = 0; stm->kind == ST_STORE && p < kernel->params.len; p++)
            if (kernel->params.at[p] == stm->buffer)
                *stored |= (uint64_t)1 << (p & 63);
        collect_buffers(&stm->body, kernel, stored);
        collect_buffers(&stm->other, kernel, stored);
    }
}

static void add_kernel(Totals *t, KernelFacts *k)
{
    double launches = (double)k->launches, threads = launches * (double)k->threads;
    uint64_t stored = 0;
    collect_buffers(&k->kernel->body, k->kernel, &stored);
    for (int p = 0; p < k->kernel->params.len; p++) {
        int64_t count = 0;
        scope_constant(&k->walk.scope, k->kernel->params.at[p]->count, &count);
        *(stored >> (p & 63) & 1 ? &t->outputs : &t->inputs) += launches * (double)count;
    }
    t->launches += launches;
    t->threads += threads;
    t->groups += launches * (double)k->groups;
    t->group_lines += launches * (double)k->groups * k->group_lines;
    t->accesses += threads * k->item.accesses;
    t->lines += threads * k->item.lines;
    t->coalesced += threads * k->item.coalesced;
    t->bytes += threads * k->item.bytes;
    t->vector_bytes += threads * k->item.vector_bytes;
    t->scalars_loaded += threads * k->item.scalars_loaded;
    t->barriers += threads * k->walk.barriers;
    t->ifs += threads * k->walk.ifs;
    t->bodies += threads * k->walk.bodies;
    t->flops += threads * k->walk.flops;
    for (int i = 0; i < 3; i++) {
        t->bits[i] += threads * k->item.bits[i];
        t->loads[i] += threads * k->walk.loads[i];
        t->stores[i] += threads * k->walk.stores[i];
    }
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void put_sizes(double *out, const KernelFacts *k)
{
    for (int d = 0; d < 3; d++) {
        out[FEATURE_GLOBAL_SIZE_0 + d] = (double)k->walk.scope.global[d];
        out[FEATURE_LOCAL_SIZE_0 + d] = (double)k->kernel->local[d];
    }
    out[FEATURE_LOCAL_MEMORY] = (double)k->walk.scope.local_bytes;
    out[FEATURE_GROUP_SIZE] = (double)k->walk.scope.group_size;
    out[FEATURE_GROUPS] = (double)k->groups;
    out[FEATURE_PRIVATE_BYTES] = (double)kernel_private_bytes(k->kernel);
}

static void put_totals(double *out, const Totals *t, double line_bytes)
{
    out[FEATURE_GLOBAL_STORES] = t->stores[MEM_GLOBAL] / t->threads;
    out[FEATURE_GLOBAL_LOADS] = t->loads[MEM_GLOBAL] / t->threads;
    out[FEATURE_LOCAL_STORES] = t->stores[MEM_LOCAL] / t->threads;
    out[FEATURE_LOCAL_LOADS] = t->loads[MEM_LOCAL] / t->threads;
    out[FEATURE_CACHE_LINES] = ratio(t->lines, t->accesses);
    out[FEATURE_BARRIERS] = t->barriers / t->threads;
    out[FEATURE_IFS] = t->ifs / t->threads;
    out[FEATURE_LOOP_BODIES] = t->bodies / t->threads;
    out[FEATURE_LAUNCHES] = t->launches;
    out[FEATURE_OUTPUTS] = t->outputs / t->threads;
    out[FEATURE_LOADS_OUTPUT] = ratio(t->scalars_loaded, t->outputs);
    out[FEATURE_REDUNDANCY] = ratio(t->scalars_loaded, t->inputs);
    out[FEATURE_BYTES_OUTPUT] = ratio(t->bytes, t->outputs);
    for (int i = 0; i < 3; i++)
        out[FEATURE_ACCESSES_32 + i] = t->bits[i] / t->threads;
    out[FEATURE_VECTOR_SHARE] = ratio(t->vector_bytes, t->bytes);
    out[FEATURE_COALESCED] = ratio(t->coalesced, t->accesses);
    out[FEATURE_LINES_GROUP] = t->group_lines / t->groups;
    out[FEATURE_LINES_OUTPUT] = ratio(t->group_lines * line_bytes, t->outputs);
    out[FEATURE_FLOPS_OUTPUT] = ratio(t->flops, t->outputs);
    out[FEATURE_INTENSITY] = ratio(t->flops, t->group_lines * line_bytes);
}

// The bytes of all buffers that a kernel is given.
static double buffer_bytes(const KernelFacts *k)
{
    double bytes = 0;
    VEC_EACH(const Buffer *, buffer, &k->kernel->params) {
        int64_t count = 0;
        scope_constant((Scope *)&k->walk.scope, buffer->count, &count);
        bytes += (double)count * scalar_info[buffer->scalar].bytes;
    }
    return bytes;
}

static void put_residency(double *out, const KernelFacts *k, const DeviceModel *m)
{
    double resident = residency_groups(&k->walk, m), units = MAX(m->units, 1);
    double least = MIN(MAX(resident, 1), ceil((double)k->groups / units));
    double items = least * (double)k->walk.scope.group_size;
    double waves = (double)k->groups / (units * MAX(resident, 1));
    out[FEATURE_L1_PRESSURE] =
        ratio(least * k->group_lines * m->line_bytes, (double)m->l1_bytes);
    out[FEATURE_L2_PRESSURE] = ratio(buffer_bytes(k), (double)m->l2_bytes);
    out[FEATURE_REGISTERS] = residency_registers(&k->walk);
    out[FEATURE_OCCUPANCY] =
        resident * (double)k->walk.scope.group_size / MAX(m->mp_items, 1);
    out[FEATURE_IN_FLIGHT] = items * (double)k->walk.in_flight;
    out[FEATURE_WAVES] = waves;
    out[FEATURE_TAIL] = waves / ceil(waves);
}

// main: what sizes and residency are those of.
static void put_features(double *out, const Totals *totals, const KernelFacts *main,
                         const DeviceModel *device)
{
    for (int i = 0; i < FEATURES; i++)
        out[i] = 0;
    put_sizes(out, main);
    put_totals(out, totals, device->line_bytes);
    put_residency(out, main, device);
}

// Either may be NULL: the demands of each kernel, the features of all of them.
static bool unit_facts(const Unit *unit, const FeatureSetting *setting, Demand *demand,
                       double *feature)
{
    AutoArena *arena = arena_new();
    Totals totals = {0};
    const KernelFacts *main = NULL;
    double most = -1;
    bool ok = unit->kernels.len > 0;
    for (int i = 0; i < unit->kernels.len && ok; i++) {
        KernelFacts *k = NEW(arena, KernelFacts);
        ok = kernel_facts(k, arena, unit, unit->kernels.at[i], setting,
                          demand ? &demand[i] : NULL);
        if (!ok)
            break;
        add_kernel(&totals, k);
        double work = (double)k->launches * (double)k->threads * k->item.accesses;
        if (work > most)
            main = k;
        most = MAX(most, work);
    }
    if (ok && feature)
        put_features(feature, &totals, main, setting->device);
    return ok;
}

bool features_unit(const Unit *unit, const FeatureSetting *setting, double out[FEATURES])
{
    return unit_facts(unit, setting, NULL, out);
}

int demand_unit(const Unit *unit, const FeatureSetting *setting, Arena *arena,
                Demand **demand, double feature[FEATURES])
{
    *demand = NEW_ARRAY(arena, Demand, unit->kernels.len + 1);
    return unit_facts(unit, setting, *demand, feature) ? unit->kernels.len : 0;
}

bool features_kernel(const Unit *unit, int number, const FeatureSetting *setting,
                     double out[FEATURES], double *bytes)
{
    AutoArena *arena = arena_new();
    Totals totals = {0};
    KernelFacts *k = NEW(arena, KernelFacts);
    bool ok = kernel_facts(k, arena, unit, unit->kernels.at[number], setting, NULL);
    if (ok) {
        *bytes = (double)k->launches * buffer_bytes(k);
        k->launches = 1;
        add_kernel(&totals, k);
        put_features(out, &totals, k, setting->device);
    }
    return ok;
}
