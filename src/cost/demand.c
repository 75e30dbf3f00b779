// SPDX-License-Identifier: Apache-2.0
//
// Demands; see demand.h.

#include "cost/demand.h"

#include "cost/chain.h"
#include "cost/residency.h"

#include <math.h>

enum { SECTOR_BYTES = 32, BANKS = 32, BANK_BYTES = 4, ITEM_REGISTERS_MOST = 255 };

const DemandInfo demand_info[DEMANDS] = {
#define DEMAND(id, name, resource, subject, unit, doc)                                     \
    {name, unit, doc, RESOURCE_##resource, SUBJECT_##subject},
#include "cost/demand.def"
#undef DEMAND
};

const char *const resource_name[RESOURCES] = {
#define X(id, text) text,
    RESOURCES_DEF(X)
#undef X
};

int demand_find(const char *name)
{
    return FIND(demand_info, DEMANDS, name, name);
}

// Accesses by warps -----------------------------------------------------------------------

// How often the fullest bank is asked for different words, by lanes first to end.
static int fullest_bank(const LaneValues *lanes, int first, int end, int bytes)
{
    int degree[BANKS] = {0}, most = 1;
    int64_t last = INT64_MIN; // one beyond all before it is new
    for (int i = first; i < end; i++) {
        int64_t word = lanes->v[i] * bytes / BANK_BYTES;
        bool seen = false;
        for (int k = i - 1; word <= last && k >= first && !seen; k--)
            seen = lanes->v[k] * bytes / BANK_BYTES == word;
        last = MAX(last, word);
        int *asked = &degree[word & (BANKS - 1)];
        *asked += !seen;
        most = MAX(most, *asked);
    }
    return most;
}

// A wide access is served in parts of as many lanes as 128 bytes hold.
static double bank_turns(const LaneValues *lanes, int n, int bytes, int width)
{
    int part = MAX(BANKS * BANK_BYTES / MAX(bytes * width, BANK_BYTES), 1);
    double turns = 0;
    for (int first = 0; first < n && !lanes->uniform; first += part)
        turns += fullest_bank(lanes, first, MIN(first + part, n), bytes);
    return lanes->uniform ? 1 : turns;
}

static int sectors_of(const CountedAccess *a, int n)
{
    int64_t scalars = MAX(SECTOR_BYTES / scalar_info[a->buffer->scalar].bytes, 1);
    return a->lanes ? lanes_lines(a->lanes, n, a->width, scalars) : n;
}

// A work-item of each warp; the warps are multiplied in afterwards.
void demand_note(Demand *d, const CountedAccess *a, int lanes)
{
    double *v = d->value, exec = a->exec * a->warps;
    int bytes = scalar_info[a->buffer->scalar].bytes;
    double turns = a->lanes ? bank_turns(a->lanes, lanes, bytes, a->width) : lanes;
    v[DEMAND_ACCESS] += exec;
    if (a->buffer->space == MEM_LOCAL) {
        v[a->store ? DEMAND_PUT : DEMAND_LOCAL] += exec * turns;
        return;
    }
    v[a->store ? DEMAND_STORE : DEMAND_LINE] += exec * a->lines;
    if (a->store) {
        v[DEMAND_SECTOR] += exec * sectors_of(a, lanes);
        v[DEMAND_WRITE] += exec;
    } else if (!a->lanes || !a->lanes->uniform) {
        v[DEMAND_BANK] += exec * turns; // one place for all lanes is told to all at once
    }
}

// Loops ----------------------------------------------------------------------------------

static bool is_global_load(const KExpr *e, const void *of)
{
    return e->kind == K_LOAD && e->buffer->space == MEM_GLOBAL;
}

// Outside of sequential loops in it.
static bool block_loads(const Block *block)
{
    VEC_EACH(const Stm *, stm, block) {
        bool within = stm->kind == ST_IF || (stm->kind == ST_FOR && stm->loop != LOOP_SEQ);
        if (kexpr_any(stm->value, is_global_load, NULL) ||
            (within && (block_loads(&stm->body) || block_loads(&stm->other))))
            return true;
    }
    return false;
}

static bool is_global_store(const Stm *stm, const void *of)
{
    return stm->kind == ST_STORE && stm->buffer->space == MEM_GLOBAL;
}

// Iterations of one work-item.
static double turns_of(Scope *s, const Stm *stm)
{
    double n = (double)MAX(scope_extent(s, stm->extent), 1);
    switch (stm->loop) {
    case LOOP_SEQ: return n;
    case LOOP_GLB: return ceil(n / (double)s->global[stm->dim]);
    case LOOP_WRG: return ceil(n / (double)s->groups[stm->dim]);
    case LOOP_LCL: return ceil(n / (double)s->kernel->local[stm->dim]);
    }
    BUG("loop of kind %d", stm->loop);
}

// The most iterations around a store; loops that are written out count once.
static double store_turns(Scope *s, const Block *block)
{
    double most = 1;
    VEC_EACH(const Stm *, stm, block) {
        double turns = 1;
        if (stm->kind == ST_FOR && block_any(&stm->body, is_global_store, NULL))
            turns = turns_of(s, stm);
        if (stm->kind == ST_FOR && stm->loop == LOOP_SEQ && stm->unroll >= turns)
            turns = 1;
        most = fmax(most,
                    turns * fmax(store_turns(s, &stm->body), store_turns(s, &stm->other)));
    }
    return most;
}

// Iterations of sequential loops that load; of two sides the one with more.
static double load_turns(Scope *s, const Block *block, double around)
{
    double sum = 0;
    VEC_EACH(const Stm *, stm, block) {
        bool loop = stm->kind == ST_FOR && stm->loop == LOOP_SEQ;
        double here = loop ? around * turns_of(s, stm) : around;
        double body = load_turns(s, &stm->body, here);
        sum += loop && block_loads(&stm->body) ? here : 0;
        sum += fmax(body, load_turns(s, &stm->other, here));
    }
    return sum;
}

// One kernel ------------------------------------------------------------------------------

static double with_doubles(const double count[PROPERTIES], int property)
{
    return count[property] + 2 * count[property + 1];
}

// By lanes: a warp that is not full costs as much as one that is.
static void add_counts(Demand *d, const double count[PROPERTIES], double lanes)
{
    double *v = d->value;
    v[DEMAND_LAUNCH] = 1;
    v[DEMAND_GROUP] = count[COUNT_GROUP];
    v[DEMAND_ARRAY] = count[COUNT_ARRAY];
    v[DEMAND_OPERATE] = (with_doubles(count, COUNT_ADD) + with_doubles(count, COUNT_MUL) -
                         with_doubles(count, COUNT_FUSED)) /
                        lanes;
    v[DEMAND_DIVIDE] = with_doubles(count, COUNT_DIV) / lanes;
    v[DEMAND_POWER] = with_doubles(count, COUNT_POW) / lanes;
    v[DEMAND_SPECIAL] = with_doubles(count, COUNT_SPECIAL) / lanes;
    v[DEMAND_MEET] = count[COUNT_BARRIER] / lanes;
}

static void add_waits(Demand *d, CostWalk *w, const Kernel *kernel)
{
    double *v = d->value, waves = fmax(d->waves, 1), items = v[DEMAND_WARP];
    double phases = store_turns(&w->scope, &kernel->body);
    double fetches = load_turns(&w->scope, &kernel->body, 1) - (phases > 1 ? phases : 0);
    v[DEMAND_PHASE] = waves * phases;
    v[DEMAND_FETCH] = waves * fmax(fetches, 0);
    Chain chain = chain_of(&w->scope, kernel);
    v[DEMAND_CHAIN] = waves * chain.operations;
    v[DEMAND_SLOW] = waves * chain.slow;
    v[DEMAND_WRITE] *= waves / items;
    v[DEMAND_MEET] *= waves / items;
}

static void add_idle_units(Demand *d, double groups, const DeviceModel *device)
{
    double share = fmax(1, device->units / fmax(groups, 1));
    for (int i = 0; i < DEMANDS; i++)
        if (demand_info[i].resource == RESOURCE_CACHE ||
            demand_info[i].resource == RESOURCE_ISSUE)
            d->value[i] *= share;
}

static void finish(Demand *d, CostWalk *w, const Kernel *kernel, const double *count)
{
    const Scope *s = &w->scope;
    const DeviceModel *device = s->setting->device;
    double groups = count[COUNT_GROUP], warps = groups * scope_warps(s);
    double held = MAX(residency_groups(w, device), 1);
    double room = fmin(device->mp_registers / (double)MAX(s->group_size, s->lanes),
                       ITEM_REGISTERS_MOST);
    for (int i = 0; i < DEMANDS; i++)
        d->value[i] *= warps; // what the walk found for a work-item
    d->value[DEMAND_WARP] = warps;
    d->value[DEMAND_BODY] = warps * w->bodies;
    d->value[DEMAND_SPILL] = warps * fmax(residency_registers(w) - room, 0);
    d->waves = groups / (device->units * held);
    add_counts(d, count, (double)s->group_size / scope_warps(s));
    d->value[DEMAND_OPERATE] -= w->spared * warps;
    d->value[DEMAND_FAR] =
        count[COUNT_ARRAY] > (double)device->l2_bytes ? count[COUNT_ARRAY] : 0;
    add_waits(d, w, kernel);
    add_idle_units(d, groups, device);
}

bool demand_finish(Demand *d, CostWalk *walk, const Unit *unit, const Kernel *kernel)
{
    double count[PROPERTIES];
    int64_t launches;
    const Scope *s = &walk->scope;
    struct KeptShare *kept = s->setting->device->warp == COUNTS_WARP ? s->kept : NULL;
    if (!counts_work(unit, kernel, s->setting, kept, count, &launches))
        return false;
    d->launches = (double)launches;
    finish(d, walk, kernel, count);
    return true;
}
