// SPDX-License-Identifier: Apache-2.0
//
// The valid assignments of one component as a decision diagram with counts, built depth
// first. Four things keep it small and quick:
//   - a constraint is tested as soon as its last parameter is bound, for all values of
//     that parameter at once;
//   - while many assignments lie below, ranges of the free parameters decide constraints
//     earlier: a hopeless branch is dropped, a constraint that must hold is forgotten;
//   - what lies below a node depends only on the constraints still open and the values of
//     their bound parts, so a node is looked up by these before it is built;
//   - equal nodes are stored once.
// The chain of trees of Rasch et al. (ATF, TACO 2021) gave the division into components;
// the sharing of subtrees is that of decision diagrams (Bryant, 1986).
//
// It does not look for an optimal order of parameters: a greedy one is good enough.
#include "space/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { END = 0 };
#define NONE       UINT32_MAX
#define WORK_MAX   ((int64_t)1 << 33) // operations; some seconds
#define RANGE_WORK 16                 // of an operation on ranges, of making an edge
#define EDGES_MAX  ((uint32_t)1 << 26)
#define RANGES_PAY 64 // assignments below that make a look at ranges worth it

typedef struct {
    const Constraint *constraint;
    uint64_t depths; // bits of the depths it reads
    int last;        // the deepest of them
    uint64_t bit;    // in the set of open checks; one bit may stand for several
    bool alone;      // the bit stands for this one only
} ConstraintCheck;

typedef struct {
    const Space *space;
    Component *c;
    int ncheck;
    ConstraintCheck *check;
    double value[SPACE_PARAMS_MAX];     // of bound parameters, by parameter
    ValueRange range[SPACE_PARAMS_MAX]; // of all parameters, by parameter
    double below[SPACE_PARAMS_MAX]; // raw assignments of the deeper parameters, by depth
    int32_t *alive[SPACE_PARAMS_MAX];
    SpaceMemo memo[SPACE_PARAMS_MAX]; // by depth
    uint32_t *unique;                 // nodes by their edges; NODE_FREE: a free slot
    size_t unique_cap;
    uint32_t nnode, node_cap, nedge, edge_cap;
    Edge *pending; // edges of the nodes under construction, as a stack
    size_t npending, pending_cap;
    int64_t work;
    bool failed;
} Builder;

// The order of parameters -----------------------------------------------------------

static int domain(const Space *space, int param)
{
    return space->param[param].shown.n;
}

static double raw_size(const Space *space, uint64_t params)
{
    double size = 1;
    for (int i = 0; i < space->nparam; i++)
        if (params >> i & 1)
            size *= domain(space, i);
    return size;
}

// The free parameters of the constraint that is cheapest to complete.
static uint64_t cheapest(const Space *space, uint64_t component, uint64_t bound)
{
    uint64_t best = component & ~bound;
    double best_size = INFINITY;
    for (int i = 0; i < space->constraints.len; i++) {
        uint64_t mask = space->constraints.at[i].params, rest = mask & ~bound;
        double size = raw_size(space, rest);
        if ((mask & component) && rest && size < best_size) {
            best = rest;
            best_size = size;
        }
    }
    return best;
}

static int smallest(const Space *space, uint64_t params)
{
    int best = -1;
    for (int i = 0; i < space->nparam; i++)
        if ((params >> i & 1) && (best < 0 || domain(space, i) < domain(space, best)))
            best = i;
    return best;
}

// Greedy: completes the cheapest constraint
// next; within it, small domains come first, so that few nodes lie above the values that
// are tried together.
static void order_params(Component *c, const Space *space, uint64_t params)
{
    uint64_t bound = 0;
    while (bound != params) {
        uint64_t next = cheapest(space, params, bound);
        for (; next; c->nparam++) {
            int param = smallest(space, next);
            c->param[c->nparam] = param;
            next &= ~((uint64_t)1 << param);
            bound |= (uint64_t)1 << param;
        }
    }
}

// Nodes -----------------------------------------------------------------------------

static void push_edge(Builder *b, uint32_t child, int choice)
{
    if (b->npending == b->pending_cap) {
        b->pending_cap = b->pending_cap ? 2 * b->pending_cap : 1024;
        b->pending = xrealloc(b->pending, sizeof *b->pending * b->pending_cap);
    }
    b->pending[b->npending++] = (Edge){.child = child, .choice = choice};
}

static uint64_t hash_edges(const Edge *edge, size_t n)
{
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = (uint64_t)edge[i].child << 32 | (uint32_t)edge[i].choice;
        hash = (hash ^ x) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static bool same_edges(const Component *c, uint32_t node, const Edge *edge, size_t n)
{
    if ((size_t)c->node[node].n != n)
        return false;
    const Edge *have = c->edge + c->node[node].edge;
    for (size_t i = 0; i < n; i++)
        if (have[i].child != edge[i].child || have[i].choice != edge[i].choice)
            return false;
    return true;
}

static void grow_unique(Builder *b)
{
    size_t cap = b->unique_cap ? 2 * b->unique_cap : 1024;
    uint32_t *slot = xmalloc(sizeof *slot * cap);
    for (size_t i = 0; i < cap; i++)
        slot[i] = NODE_FREE;
    for (uint32_t node = END + 1; node < b->nnode; node++) {
        const Node *at = &b->c->node[node];
        size_t i = hash_edges(b->c->edge + at->edge, (size_t)at->n) & (cap - 1);
        while (slot[i] != NODE_FREE)
            i = (i + 1) & (cap - 1);
        slot[i] = node;
    }
    free(b->unique);
    b->unique = slot;
    b->unique_cap = cap;
}

static void reserve(Builder *b, size_t nedge)
{
    while (b->nedge + nedge > b->edge_cap) {
        b->edge_cap = b->edge_cap ? 2 * b->edge_cap : 256;
        b->c->edge = xrealloc(b->c->edge, sizeof(Edge) * b->edge_cap);
    }
    if (b->nnode == b->node_cap) {
        b->node_cap = b->node_cap ? 2 * b->node_cap : 64;
        b->c->node = xrealloc(b->c->node, sizeof(Node) * b->node_cap);
    }
}

static uint32_t new_node(Builder *b, const Edge *edge, size_t n)
{
    if (b->nedge + n > EDGES_MAX) {
        b->failed = true;
        return NONE;
    }
    reserve(b, n);
    double count = 0;
    for (size_t i = 0; i < n; i++) {
        b->c->edge[b->nedge + i] = edge[i];
        b->c->edge[b->nedge + i].before = count;
        count += b->c->node[edge[i].child].count;
    }
    b->c->node[b->nnode] = (Node){count, b->nedge, (int32_t)n};
    b->nedge += (uint32_t)n;
    return b->nnode++;
}

// The node of these edges, shared with an equal one.
static uint32_t intern_node(Builder *b, const Edge *edge, size_t n)
{
    if (2 * (size_t)b->nnode >= b->unique_cap)
        grow_unique(b);
    size_t i = hash_edges(edge, n) & (b->unique_cap - 1);
    for (; b->unique[i] != NODE_FREE; i = (i + 1) & (b->unique_cap - 1))
        if (same_edges(b->c, b->unique[i], edge, n))
            return b->unique[i];
    uint32_t node = new_node(b, edge, n);
    if (node != NONE)
        b->unique[i] = node;
    return node;
}

// Depth first ---------------------------------------------------------------------------

// Keeps the choices for which a check holds; returns how many.
static int filter(Builder *b, const ConstraintCheck *check, int param, int32_t *choice,
                  int n)
{
    const double *number = b->space->param[param].number;
    int kept = 0;
    b->work += (int64_t)n * check->constraint->ncode;
    for (int from = 0; from < n; from += LANES) {
        int lanes = MIN(n - from, LANES);
        double lane[LANES], result[LANES];
        for (int i = 0; i < lanes; i++)
            lane[i] = number[choice[from + i]];
        constraint_eval(check->constraint, b->value, param, lane, lanes, result);
        for (int i = 0; i < lanes; i++) {
            choice[kept] = choice[from + i];
            kept += result[i] < 0 || result[i] > 0;
        }
    }
    return kept;
}

// The choices at a depth that pass every check completed there; the list is the depth's.
static int survivors(Builder *b, int depth, uint64_t open)
{
    int param = b->c->param[depth], n = domain(b->space, param);
    int32_t *choice = b->alive[depth];
    for (int i = 0; i < n; i++)
        choice[i] = i;
    b->work += n;
    for (int i = 0; i < b->ncheck && n > 0; i++)
        if (b->check[i].last == depth && (open & b->check[i].bit))
            n = filter(b, &b->check[i], param, choice, n);
    return n;
}

// Closes the checks that ranges show to hold; false if one cannot hold.
static bool narrow(Builder *b, int depth, uint64_t *open)
{
    ARRAY_EACH_REF(const ConstraintCheck *, check, b->check, b->ncheck) {
        if (!(*open & check->bit) || check->last <= depth || !(check->depths >> depth & 1))
            continue;
        b->work += RANGE_WORK * (int64_t)check->constraint->ncode;
        Verdict verdict = constraint_decide(check->constraint, b->range);
        if (verdict == ALWAYS_FALSE)
            return false;
        if (verdict == ALWAYS_TRUE && check->alone)
            *open &= ~check->bit;
    }
    return true;
}

static void bind(Builder *b, int depth, int choice)
{
    int param = b->c->param[depth];
    double number = b->space->param[param].number[choice];
    b->value[param] = number;
    b->range[param] = (ValueRange){number, number, false};
}

static uint64_t still_open(const Builder *b, int depth, uint64_t open)
{
    uint64_t later = 0;
    for (int i = 0; i < b->ncheck; i++)
        if (b->check[i].last > depth)
            later |= b->check[i].bit;
    return open & later;
}

static uint32_t build(Builder *b, int depth, uint64_t open);

static uint32_t branch(Builder *b, int depth, uint64_t open)
{
    int n = survivors(b, depth, open), param = b->c->param[depth];
    b->work += RANGE_WORK * (int64_t)n;
    if (b->work > WORK_MAX)
        b->failed = true;
    uint64_t later = still_open(b, depth, open);
    size_t base = b->npending;
    for (int i = 0; i < n && !b->failed; i++) {
        uint64_t left = later;
        bind(b, depth, b->alive[depth][i]);
        if (b->below[depth] >= RANGES_PAY && !narrow(b, depth, &left))
            continue;
        uint32_t child = build(b, depth + 1, left);
        if (child != NONE)
            push_edge(b, child, b->alive[depth][i]);
    }
    b->range[param] = b->space->param[param].range;
    uint32_t node = NONE;
    if (b->npending > base && !b->failed)
        node = intern_node(b, b->pending + base, b->npending - base);
    b->npending = base;
    return node;
}

// The node below the choices bound so far; NONE if no valid assignment lies there.
static uint32_t build(Builder *b, int depth, uint64_t open)
{
    if (depth == b->c->nparam)
        return END;
    SpaceMemo *memo = &b->memo[depth];
    SpaceMemoKey key;
    bool keyed = memo_key(memo, open, b->value, &key);
    uint32_t node = keyed ? memo_get(memo, &key) : NODE_FREE;
    if (node != NODE_FREE)
        return node;
    node = branch(b, depth, open);
    if (keyed && !b->failed)
        memo_put(memo, &key, node);
    return node;
}

// Set-up ----------------------------------------------------------------------------------

static ConstraintCheck check_of(const Builder *b, const Constraint *constraint)
{
    ConstraintCheck check = {.constraint = constraint};
    for (int d = 0; d < b->c->nparam; d++)
        if (constraint->params >> b->c->param[d] & 1) {
            check.depths |= (uint64_t)1 << d;
            check.last = d;
        }
    int number = MIN(b->ncheck, 63);
    check.bit = (uint64_t)1 << number;
    check.alone = number < 63;
    return check;
}

static void add_checks(Builder *b, uint64_t params)
{
    b->check = xcalloc((size_t)b->space->constraints.len, sizeof *b->check);
    for (int i = 0; i < b->space->constraints.len; i++)
        if (b->space->constraints.at[i].params & params) {
            b->check[b->ncheck] = check_of(b, &b->space->constraints.at[i]);
            b->ncheck++;
        }
}

static void watch_checks(Builder *b)
{
    uint64_t bound = 0;
    for (int d = 0; d < b->c->nparam; d++) {
        for (int i = 0; i < b->ncheck; i++)
            if (b->check[i].last >= d)
                memo_watch(&b->memo[d], b->check[i].constraint, b->check[i].bit, bound);
        bound |= (uint64_t)1 << b->c->param[d];
    }
}

static void builder_init(Builder *b, uint64_t params)
{
    double below = 1;
    for (int d = b->c->nparam - 1; d >= 0; d--) {
        int param = b->c->param[d], n = domain(b->space, param);
        b->alive[d] = xmalloc(sizeof *b->alive[d] * (size_t)n);
        b->range[param] = b->space->param[param].range;
        b->below[d] = below;
        below *= n;
    }
    add_checks(b, params);
    watch_checks(b);
    reserve(b, 0);
    b->c->node[b->nnode++] = (Node){.count = 1};
}

static void builder_release(Builder *b)
{
    for (int d = 0; d < b->c->nparam; d++) {
        free(b->alive[d]);
        memo_release(&b->memo[d]);
    }
    free(b->check);
    free(b->unique);
    free(b->pending);
}

static bool too_large(const Space *space, const Component *c, Diags *diags)
{
    return diag_error(diags, span_none, "S007",
                      "the %d parameters that share constraints with `%s` have too many "
                      "valid combinations to enumerate; add constraints or shorten "
                      "domains",
                      c->nparam, space->param[c->param[0]].shown.name);
}

bool component_build(Component *component, const Space *space, uint64_t params,
                     Diags *diags)
{
    *component = (Component){0};
    order_params(component, space, params);
    Builder b = {.space = space, .c = component};
    builder_init(&b, params);
    component->root = build(&b, 0, UINT64_MAX);
    component->count = component->root == NONE ? 0 : component->node[component->root].count;
    builder_release(&b);
    if (b.failed)
        return too_large(space, component, diags);
    return true;
}

// The node of sorted points that agree in all choices before a depth.
static uint32_t build_list(Builder *b, int depth, const Point *point, int n)
{
    if (depth == b->c->nparam)
        return END;
    size_t base = b->npending;
    for (int from = 0, to; from < n && !b->failed; from = to) {
        int choice = point[from].choice[depth];
        for (to = from + 1; to < n && point[to].choice[depth] == choice;)
            to++;
        push_edge(b, build_list(b, depth + 1, point + from, to - from), choice);
    }
    uint32_t node = NONE;
    if (n > 0 && !b->failed)
        node = intern_node(b, b->pending + base, b->npending - base);
    b->npending = base;
    return node;
}

bool component_build_list(Component *component, const Space *space, const Point *point,
                          int n, Diags *diags)
{
    *component = (Component){.nparam = space->nparam};
    for (int i = 0; i < space->nparam; i++)
        component->param[i] = i;
    Builder b = {.space = space, .c = component};
    builder_init(&b, 0);
    component->root = build_list(&b, 0, point, n);
    component->count = component->root == NONE ? 0 : component->node[component->root].count;
    builder_release(&b);
    return !b.failed || too_large(space, component, diags);
}

void component_release(Component *component)
{
    free(component->node);
    free(component->edge);
}

// Numbers ------------------------------------------------------------------------------

// The last edge that begins at or before a number of points.
static const Edge *edge_before(const Edge *edge, int n, double number)
{
    int lo = 0, hi = n;
    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;
        *(edge[mid].before <= number ? &lo : &hi) = mid;
    }
    return &edge[lo];
}

// The edge of a choice, or NULL.
static const Edge *find_edge(const Edge *edge, int n, int choice)
{
    int lo = 0, hi = n;
    while (hi - lo > 1) {
        int mid = lo + (hi - lo) / 2;
        *(edge[mid].choice <= choice ? &lo : &hi) = mid;
    }
    return edge[lo].choice == choice ? &edge[lo] : NULL;
}

static const Edge *edge_of(const Edge *edge, int n, int choice)
{
    const Edge *found = find_edge(edge, n, choice);
    if (!found)
        BUG("the point is not valid");
    return found;
}

bool component_has(const Component *component, const Point *point)
{
    uint32_t at = component->root;
    for (int d = 0; d < component->nparam && at != NONE; d++) {
        const Node *node = &component->node[at];
        const Edge *edge = find_edge(component->edge + node->edge, node->n,
                                     point->choice[component->param[d]]);
        at = edge ? edge->child : NONE;
    }
    return at != NONE;
}

void component_point(const Component *component, uint64_t number, Point *point)
{
    uint32_t at = component->root;
    for (int d = 0; d < component->nparam; d++) {
        const Node *node = &component->node[at];
        const Edge *edge =
            edge_before(component->edge + node->edge, node->n, (double)number);
        point->choice[component->param[d]] = (int16_t)edge->choice;
        number -= (uint64_t)edge->before;
        at = edge->child;
    }
}

void component_sample(const Component *component, Rng *rng, Point *point)
{
    if (component->count <= COUNT_EXACT) {
        component_point(component, rng_below(rng, (uint64_t)component->count), point);
        return;
    }
    uint32_t at = component->root;
    for (int d = 0; d < component->nparam; d++) {
        const Node *node = &component->node[at];
        const Edge *edge = edge_before(component->edge + node->edge, node->n,
                                       rng_double(rng) * node->count);
        point->choice[component->param[d]] = (int16_t)edge->choice;
        at = edge->child;
    }
}

uint64_t component_number(const Component *component, const Point *point)
{
    uint64_t number = 0;
    uint32_t at = component->root;
    for (int d = 0; d < component->nparam; d++) {
        const Node *node = &component->node[at];
        int choice = point->choice[component->param[d]];
        const Edge *edge = edge_of(component->edge + node->edge, node->n, choice);
        number += (uint64_t)edge->before;
        at = edge->child;
    }
    return number;
}
