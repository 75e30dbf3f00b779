// SPDX-License-Identifier: Apache-2.0
//
// The space of paper 004, section 4: the dependence graph, its fusible subgraphs (convex,
// connected, of a limited size), the order of each with the least need of on-chip words,
// and the allocation of its elements.
//
// Sets are enumerated by extension (ESU, Wernicke 2006): each connected set once, from its
// lowest call. Orders are not walked one by one as in the paper: what is live while call v
// runs depends on the set of calls done before, not on their order, so a table over those
// sets gives the least and the greatest need and the number of orders. Offsets are found by
// branch and bound over left-justified places.

#include "fuse/fuse.h"

#include <stdlib.h>
#include <string.h>

static Set bit(int v)
{
    return (Set)1 << v;
}

// The calls above v.
static Set above(int v)
{
    return v == PART_MAX - 1 ? 0 : ~(Set)0 << (v + 1);
}

// The graph ---------------------------------------------------------------------------

static Set all_calls(const Graph *graph)
{
    return graph->n == PART_MAX ? ~(Set)0 : bit(graph->n) - 1;
}

static const Call *call_of(const Graph *graph, int v)
{
    return &graph->script->call[graph->first + v];
}

static Set maps_of(const Graph *graph, Set set)
{
    Set maps = set;
    for (Set s = set; s; s &= s - 1) {
        const Elementary *function = call_of(graph, lowest(s))->function;
        if (function->kind != FUNCTION_MAP || function->folds)
            maps &= ~bit(lowest(s));
    }
    return maps;
}

static void connect(Graph *graph, Set calls)
{
    for (Set s = calls; s; s &= s - 1)
        graph->adj[lowest(s)] |= calls;
}

// What another part makes is an input of this one; so is what a call makes for maps that
// read it and do without the call.
static void add_edges(Graph *graph, const Elem *elem)
{
    Calls part = {graph->first, all_calls(graph)};
    Set users = elem_users(elem, graph->first) & part.set;
    bool inside = calls_have(part, elem->producer);
    if (inside)
        graph->succ[elem->producer - graph->first] |= users;
    for (Set s = users; inside && s; s &= s - 1)
        graph->pred[lowest(s)] |= bit(elem->producer - graph->first);
    if (!elem->is_uniform)
        connect(graph, inside ? maps_of(graph, users) : users);
}

// The maps that make results of a step, which the next one reads.
static Set step_maps(const Graph *graph)
{
    Set maps = 0;
    for (int v = 0; graph->script->is_step && v < graph->n; v++)
        if (graph->script->elem[call_of(graph, v)->out].is_output)
            maps |= bit(v);
    return maps_of(graph, maps);
}

void graph_init(Graph *graph, const Script *script, int first, int n)
{
    *graph = (Graph){.script = script, .first = first, .n = n};
    for (int e = 0; e < script->nelem; e++)
        add_edges(graph, &script->elem[e]);
    connect(graph, step_maps(graph));
    for (int v = graph->n - 1; v >= 0; v--) {
        graph->desc[v] = graph->succ[v];
        for (Set s = graph->succ[v]; s; s &= s - 1)
            graph->desc[v] |= graph->desc[lowest(s)];
    }
    for (int v = 0; v < graph->n; v++) {
        graph->anc[v] = graph->pred[v];
        for (Set s = graph->pred[v]; s; s &= s - 1)
            graph->anc[v] |= graph->anc[lowest(s)];
        graph->adj[v] |= graph->succ[v] | graph->pred[v];
        graph->adj[v] &= ~bit(v);
    }
}

bool graph_convex(const Graph *graph, Set set)
{
    Set desc = 0, anc = 0;
    for (Set s = set; s; s &= s - 1) {
        desc |= graph->desc[lowest(s)];
        anc |= graph->anc[lowest(s)];
    }
    return !(desc & anc & ~set);
}

static bool stored(const Elem *elem, Calls calls)
{
    return calls_have(calls, elem->producer) && elem_leaves(elem, calls);
}

// What the set stores is of one shape, and nothing that must be alone is among it.
static bool stores_together(const Graph *graph, Set set)
{
    const Calls calls = {graph->first, set};
    const Elem *first = NULL;
    for (Set s = set; s; s &= s - 1) {
        const Elem *elem = &graph->script->elem[call_of(graph, lowest(s))->out];
        if (!stored(elem, calls))
            continue;
        if (first && (first->shape != elem->shape || first->is_sole || elem->is_sole))
            return false;
        first = elem;
    }
    return true;
}

// May the calls meet in a kernel? Where they may not, no larger set may. A sum is known
// only when all blocks are done, and what is made once stays apart from what every instance
// makes.
static bool may_meet(const Graph *graph, Set set)
{
    bool once = call_of(graph, lowest(set))->is_uniform;
    for (Set s = set; s; s &= s - 1) {
        const Call *call = call_of(graph, lowest(s));
        FunctionKind kind = call->function->kind;
        if (call->is_uniform != once ||
            (kind == FUNCTION_SUM && (graph->succ[lowest(s)] & set)) ||
            (kind == FUNCTION_ALONE && set != bit(lowest(s))))
            return false;
    }
    return true;
}

// A fusion's elements -------------------------------------------------------------------

Calls fusion_calls(const Fusion *fusion)
{
    return (Calls){fusion->first, fusion->set};
}

bool fusion_loads(const Script *script, const Fusion *fusion, int elem)
{
    return !calls_have(fusion_calls(fusion), script->elem[elem].producer);
}

bool fusion_stores(const Script *script, const Fusion *fusion, int elem)
{
    return stored(&script->elem[elem], fusion_calls(fusion));
}

int fusion_place(const Fusion *fusion, int elem)
{
    for (int i = 0; i < fusion->nelem; i++)
        if (fusion->elem[i] == elem)
            return i;
    return -1;
}

// What is the same for all instances takes no words of an instance.
static void add_elem(const Script *script, Fusion *fusion, int elem, bool once)
{
    if (script->elem[elem].is_uniform && !once)
        return;
    if (fusion_place(fusion, elem) < 0)
        fusion->elem[fusion->nelem++] = (uint16_t)elem;
}

static int call_words(const Script *script, const Call *call)
{
    bool sum = call->function->kind == FUNCTION_SUM;
    int words = sum ? 0 : script->elem[call->out].words;
    for (int k = 0; k < call->function->nparam; k++) {
        bool again = script->elem[call->in[k]].is_uniform && !call->is_uniform;
        for (int j = 0; j < k; j++)
            again = again || call->in[j] == call->in[k];
        words += again ? 0 : script->elem[call->in[k]].words;
    }
    return words;
}

static void collect_elems(const Script *script, Fusion *f)
{
    f->impls = 1;
    for (Set s = f->set; s; s &= s - 1) {
        const Call *call = &script->call[f->first + lowest(s)];
        f->ncall++;
        for (int k = 0; k < call->function->nparam; k++)
            add_elem(script, f, call->in[k], call->is_uniform);
        add_elem(script, f, call->out, call->is_uniform);
        f->apart += call->is_uniform ? 0 : call_words(script, call);
        f->impls *= call->function->nimpl;
    }
    bool once =
        script->call[f->first + lowest(f->set)].is_uniform; // that is nothing an instance
    for (int i = 0; i < f->nelem && !once; i++)
        if (fusion_loads(script, f, f->elem[i]) || fusion_stores(script, f, f->elem[i]))
            f->moved += script->elem[f->elem[i]].words;
    if (script->impls)
        f->impls = script->impls(script, f);
}

// Orders ------------------------------------------------------------------------------

// A fusion with its calls numbered from 0, as sets of 16 bits.
typedef struct {
    int n, nelem;
    uint8_t call[MEMBERS_MAX];
    uint16_t pred[MEMBERS_MAX];
    struct {
        int words, producer; // -1: loaded
        uint16_t users;
    } elem[MEMBERS_MAX * (ARITY_MAX + 1)];
} LocalFusion;

// By the set of calls that are done.
typedef struct {
    int least, most; // greatest need of the calls still to come, over the orders of them
    double orders;
    int8_t next; // the first of them in an order with the least need
} Rest;

static void number_calls(const Graph *graph, const Fusion *f, LocalFusion *local)
{
    int place[PART_MAX] = {0};
    for (Set s = f->set; s; s &= s - 1) {
        place[lowest(s)] = local->n;
        local->call[local->n++] = (uint8_t)lowest(s);
    }
    for (int i = 0; i < local->n; i++)
        for (Set s = graph->pred[local->call[i]] & f->set; s; s &= s - 1)
            local->pred[i] |= (uint16_t)(1 << place[lowest(s)]);
    local->nelem = f->nelem;
    for (int i = 0; i < f->nelem; i++) {
        const Elem *e = &graph->script->elem[f->elem[i]];
        bool inside = calls_have(fusion_calls(f), e->producer);
        local->elem[i].words = e->words;
        local->elem[i].producer = inside ? place[e->producer - f->first] : -1;
        for (Set s = elem_users(e, f->first) & f->set; s; s &= s - 1)
            local->elem[i].users |= (uint16_t)(1 << place[lowest(s)]);
    }
}

// The words that are on chip while call v runs, after the calls in done.
static int words_live(const LocalFusion *local, unsigned done, int v)
{
    unsigned begun = done | 1u << v;
    int words = 0;
    for (int i = 0; i < local->nelem; i++) {
        int producer = local->elem[i].producer;
        unsigned users = local->elem[i].users;
        bool made = producer >= 0 ? (begun >> producer & 1) : (users & begun) != 0;
        if (made && (producer == v || (users & ~done) != 0))
            words += local->elem[i].words;
    }
    return words;
}

static void weigh_next(const LocalFusion *local, const Rest *table, unsigned done, int v,
                       Rest *rest)
{
    const Rest *after = &table[done | 1u << v];
    int words = words_live(local, done, v);
    int least = MAX(words, after->least), most = MAX(words, after->most);
    if (rest->orders == 0 || least < rest->least) {
        rest->least = least;
        rest->next = (int8_t)v;
    }
    rest->most = MAX(rest->most, most);
    rest->orders += after->orders;
}

// Can the calls be those that are done at some time?
static bool is_begun(const LocalFusion *local, unsigned done)
{
    for (unsigned left = done; left; left &= left - 1)
        if (local->pred[__builtin_ctz(left)] & ~done)
            return false;
    return true;
}

static void choose_order(const Graph *graph, Fusion *f, Rest *table)
{
    LocalFusion local = {0};
    number_calls(graph, f, &local);
    unsigned all = (1u << local.n) - 1;
    table[all] = (Rest){.orders = 1};
    for (unsigned done = all; done-- > 0;) {
        table[done] = (Rest){.next = -1};
        int n = is_begun(&local, done) ? local.n : 0;
        for (int v = 0; v < n; v++)
            if (!(done >> v & 1) && !(local.pred[v] & ~done))
                weigh_next(&local, table, done, v, &table[done]);
    }
    f->orders = table[0].orders;
    f->need_min = table[0].least;
    f->need_max = table[0].most;
    unsigned done = 0;
    for (int step = 0; step < f->ncall; step++) {
        int v = table[done].next;
        f->order[step] = local.call[v];
        done |= 1u << v;
    }
}

// Allocation --------------------------------------------------------------------------

enum { PLACED_MAX = MEMBERS_MAX * (ARITY_MAX + 1), NODES_MAX = 20000 };

typedef struct {
    const Live *live;
    int n, need, best, nodes;
    uint16_t by_size[PLACED_MAX];
    int offset[PLACED_MAX], found[PLACED_MAX];
} Allocator;

static bool meet(const Live *a, const Live *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static bool fits(const Allocator *a, int depth, int e, int offset)
{
    ARRAY_EACH(int, o, a->by_size, depth)
        if (meet(&a->live[o], &a->live[e]) && offset < a->offset[o] + a->live[o].words &&
            a->offset[o] < offset + a->live[e].words)
            return false;
    return true;
}

// Offset 0 and the ends of the placed elements that it meets, ascending.
static int candidates(const Allocator *a, int depth, int e, int *place)
{
    int n = 0;
    place[n++] = 0;
    for (int i = 0; i < depth; i++) {
        int o = a->by_size[i], end = a->offset[o] + a->live[o].words, k = n;
        if (!meet(&a->live[o], &a->live[e]))
            continue;
        while (k > 0 && place[k - 1] > end)
            k--;
        if (k > 0 && place[k - 1] == end)
            continue;
        memmove(place + k + 1, place + k, (size_t)(n - k) * sizeof *place);
        place[k] = end;
        n++;
    }
    return n;
}

// True once the lower bound is met, or the nodes are spent.
static bool place_from(Allocator *a, int depth, int top)
{
    a->nodes++;
    if (top >= a->best)
        return false;
    if (depth == a->n) {
        a->best = top;
        memcpy(a->found, a->offset, sizeof a->found);
        return top <= a->need;
    }
    int e = a->by_size[depth], place[PLACED_MAX + 1];
    int n = candidates(a, depth, e, place);
    for (int i = 0; i < n; i++) {
        if (!fits(a, depth, e, place[i]))
            continue;
        a->offset[e] = place[i];
        if (place_from(a, depth + 1, MAX(top, place[i] + a->live[e].words)) ||
            a->nodes > NODES_MAX)
            return true;
    }
    return false;
}

static int need_of(const Live *live, int n)
{
    int need = 0;
    for (int i = 0; i < n; i++) {
        int words = 0; // live when i begins: the need is reached at some beginning
        for (int k = 0; k < n; k++)
            if (live[k].first <= live[i].first && live[i].first <= live[k].last)
                words += live[k].words;
        need = MAX(need, words);
    }
    return need;
}

int fuse_allocate(const Live *live, int n, int *offset, int *nodes)
{
    Allocator a = {.live = live, .need = need_of(live, n), .best = 1 << 30};
    for (int i = 0; i < n; i++) {
        offset[i] = 0;
        if (live[i].first > live[i].last)
            continue;
        int k = a.n++;
        for (; k > 0 && live[a.by_size[k - 1]].words < live[i].words; k--)
            a.by_size[k] = a.by_size[k - 1];
        a.by_size[k] = (uint16_t)i;
    }
    place_from(&a, 0, 0);
    for (int i = 0; i < a.n; i++)
        offset[a.by_size[i]] = a.found[a.by_size[i]];
    *nodes = a.nodes;
    return a.best;
}

Live fusion_live(const Script *script, const Fusion *f, int i)
{
    const Elem *e = &script->elem[f->elem[i]];
    const Set users = elem_users(e, f->first);
    Live live = {.first = f->ncall, .last = -1, .words = e->words};
    for (int step = 0; step < f->ncall; step++) {
        int v = f->order[step];
        if (e->producer == f->first + v || (users & bit(v))) {
            live.first = MIN(live.first, step);
            live.last = step;
        }
    }
    return live;
}

// Sets --------------------------------------------------------------------------------

// In all parts: sets looked at, those that are not fusible included, and rows of the tables
// that orders are found by.
enum { VISITS_MOST = 20 * SETS_MOST, ROWS_MOST = 256 * SETS_MOST };

typedef struct {
    FuseSpace *space;
    Arena *arena;
    const Graph *graph;
    bool keeps; // else sets are only counted
    int limit;
    int sets, visits, rows;
} FusionFinder;

static void add_fusion(FusionFinder *finder, Set set)
{
    FuseSpace *space = finder->space;
    const Graph *graph = finder->graph;
    Fusion f = {.part = (int)(graph - space->part), .first = graph->first, .set = set};
    collect_elems(space->script, &f);
    VEC_PUSH(finder->arena, &space->fusion, f);
    space->connected++;
    space->fusions += f.ncall > 1;
    space->impls += f.ncall > 1 ? f.impls : 0;
}

static bool is_spent(const FusionFinder *finder)
{
    int share = finder->space->nparts;
    return finder->sets > SETS_MOST / share || finder->visits > VISITS_MOST / share ||
           finder->rows > ROWS_MOST / share;
}

// Can no set of those that grow from this one be a fusion? All calls between its own must
// come in: none that was left out, and not too many.
static bool is_hopeless(const FusionFinder *finder, Set set, Set left_out, int size)
{
    const Graph *graph = finder->graph;
    Set desc = 0, anc = 0;
    for (Set s = set; s; s &= s - 1) {
        desc |= graph->desc[lowest(s)];
        anc |= graph->anc[lowest(s)];
    }
    Set between = desc & anc & ~set;
    return (between & left_out) || size + __builtin_popcountll(between) > finder->limit ||
           !may_meet(graph, set);
}

// Grows set by calls of ext; near: everything adjacent to it or in it so far.
static void extend(FusionFinder *finder, Set set, Set ext, Set near, int root, int size)
{
    const Graph *graph = finder->graph;
    finder->visits++;
    if (is_hopeless(finder, set, (near & ~ext & ~set) | ~above(root), size))
        return;
    if (graph_convex(graph, set) && stores_together(graph, set)) {
        finder->sets++;
        finder->rows += 1 << size;
        if (finder->keeps)
            add_fusion(finder, set);
    }
    if (size == finder->limit)
        return;
    while (ext && !is_spent(finder)) {
        int w = lowest(ext);
        ext &= ext - 1;
        Set fresh = graph->adj[w] & ~near & above(root);
        extend(finder, set | bit(w), ext | fresh, near | graph->adj[w], root, size + 1);
    }
}

static void find_sets(FusionFinder *finder)
{
    const Graph *graph = finder->graph;
    finder->sets = finder->visits = finder->rows = 0;
    for (int v = 0; v < graph->n && !is_spent(finder); v++)
        extend(finder, bit(v), graph->adj[v] & above(v), graph->adj[v] | bit(v), v, 1);
}

// The largest limit that the steps allow, then the sets. Single calls are always there.
static void search_part(FuseSpace *space, const Graph *graph, Arena *arena)
{
    FusionFinder finder = {.space = space, .arena = arena, .graph = graph, .limit = 1};
    int most = MIN(space->asked, graph->n);
    for (; finder.limit < most; finder.limit++) {
        FusionFinder next = finder;
        next.limit++;
        find_sets(&next);
        if (is_spent(&next))
            break;
    }
    finder.keeps = true;
    find_sets(&finder);
    if (finder.limit < most || space->limit < 0)
        space->limit = space->limit < 0 ? finder.limit : MIN(space->limit, finder.limit);
    space->limit_most = MAX(space->limit_most, finder.limit);
    space->cut |= finder.limit < most;
}

// Covers, counted -----------------------------------------------------------------------

enum { COUNT_CALLS = 20, COVERS_MOST = 1000000 };

typedef struct {
    FuseSpace *space;
    int first[PART_MAX + 1]; // fusions with that lowest call
    Set chosen[PART_MAX];
    int nchosen;
} FusionCounter;

// True if the sets can run one after another: no cycle between them.
static bool runs(const Graph *graph, const Set *set, int n)
{
    Set done = 0;
    bool moved = true;
    int left = n;
    while (moved && left) {
        moved = false;
        for (int i = 0; i < n; i++) {
            Set pred = 0;
            if (set[i] & done)
                continue;
            for (Set s = set[i]; s; s &= s - 1)
                pred |= graph->pred[lowest(s)];
            if (pred & ~set[i] & ~done)
                continue;
            done |= set[i];
            moved = true;
            left--;
        }
    }
    return left == 0;
}

static void count_covers(FusionCounter *c, Set rest, double impls)
{
    FuseSpace *space = c->space;
    if (space->covers >= COVERS_MOST) {
        space->covers_cut = true;
        return;
    }
    if (!rest) {
        if (runs(&space->part[0], c->chosen, c->nchosen)) {
            space->covers++;
            space->cover_impls += impls;
        }
        return;
    }
    int v = lowest(rest);
    for (int i = c->first[v]; i < c->first[v + 1]; i++) {
        const Fusion *f = &space->fusion.at[i];
        if (f->set & ~rest)
            continue;
        c->chosen[c->nchosen++] = f->set;
        count_covers(c, rest & ~f->set, impls * f->impls);
        c->nchosen--;
    }
}

static void count_all(FuseSpace *space)
{
    const Graph *graph = &space->part[0];
    if (space->nparts > 1 || graph->n > COUNT_CALLS)
        return;
    for (Set s = 1; s <= all_calls(graph); s++) {
        space->subsets++;
        space->convex += graph_convex(graph, s);
    }
    FusionCounter c = {.space = space};
    for (int i = 0; i < space->fusion.len; i++)
        c.first[lowest(space->fusion.at[i].set) + 1]++;
    for (int v = 0; v < graph->n; v++)
        c.first[v + 1] += c.first[v];
    count_covers(&c, all_calls(graph), 1);
}

FuseSpace *fuse_space(const Script *script, int limit, Arena *arena)
{
    double start = clock_s();
    int first[PARTS_MAX + 1];
    FuseSpace *space = NEW(arena, FuseSpace);
    space->script = script;
    space->nparts = script_divide(script, first);
    space->asked = MIN(limit > 0 ? limit : MEMBERS_MAX, MIN(script->ncall, MEMBERS_MAX));
    space->limit = -1;
    for (int i = 0; i < space->nparts; i++) {
        graph_init(&space->part[i], script, first[i], first[i + 1] - first[i]);
        search_part(space, &space->part[i], arena);
    }
    space->seconds = clock_s() - start;
    count_all(space);
    return space;
}

void fuse_order(FuseSpace *space)
{
    double start = clock_s();
    AUTO_FREE Rest *table = xcalloc((size_t)1 << space->limit_most, sizeof *table);
    VEC_EACH_REF(Fusion *, f, &space->fusion) {
        choose_order(&space->part[f->part], f, table);
        Live live[PLACED_MAX];
        for (int i = 0; i < f->nelem; i++)
            live[i] = fusion_live(space->script, f, i);
        f->top = fuse_allocate(live, f->nelem, f->offset, &f->nodes);
    }
    space->seconds += clock_s() - start;
}

static int by_size(const void *a, const void *b)
{
    const Fusion *f = *(const Fusion *const *)a, *g = *(const Fusion *const *)b;
    if (f->ncall != g->ncall)
        return f->ncall - g->ncall;
    if (f->first != g->first)
        return f->first - g->first;
    Set differ = f->set ^ g->set;
    return differ & -differ & f->set ? -1 : differ != 0;
}

const Fusion **fuse_list(const FuseSpace *space, int calls, Arena *arena, int *n)
{
    const Fusion **list = NEW_ARRAY(arena, const Fusion *, space->fusion.len);
    *n = 0;
    for (int i = 0; i < space->fusion.len; i++)
        if (space->fusion.at[i].ncall >= calls)
            list[(*n)++] = &space->fusion.at[i];
    qsort(list, (size_t)*n, sizeof(const Fusion *), by_size);
    return list;
}
