// SPDX-License-Identifier: Apache-2.0
//
// Pipelines in the derivation: which stages are one kernel (cover), and where those live
// that a kernel does not store (place): computed again by each reader, or as an overlapped
// tile, the stage's points with a halo, that the group copies to local memory.
//
//   source  paper 004, section 4.3.3 (covers); paper 000, section 3.4 (overlapped tiles)
//   method  rewrites alone: stages that a kernel stores become one map of tuples; a stage
//           that is not stored stays where its readers compute it; maps that stand between
//           the kernel and the windows of a tile move into the kernel's function

#include "cost/device_model.h"
#include "derive/derive_parts.h"

#include <string.h>

// Rates ---------------------------------------------------------------------------------

// Those of a large GPU, less by published rates if the device is a known one; a processor
// has the usual ones of a core in each. Nothing is measured and clocks do not count, so
// that a device's space is always the same.
StageRates cover_rates(const DeviceInfo *device)
{
    const double core_gbs = 10, core_ghz = 3;
    StageRates rates = stage_rates;
    DeviceModel large, own = {.is_cpu = device->is_cpu};
    snprintf(own.name, sizeof own.name, "%s", device->name);
    device_model_complete(&own);
    if (device->is_cpu) {
        rates.gbs = core_gbs * MAX(device->compute_units, 1);
        rates.ops = core_ghz * MAX(device->compute_units, 1) * MAX(device->warp, 1);
    } else if (own.bandwidth > 0 && device_model_find("nvidia-h200", &large)) {
        rates.gbs *= own.bandwidth / large.bandwidth;
        rates.ops *= own.gflops / large.gflops;
    }
    return rates;
}

// Parameters ----------------------------------------------------------------------------

// The share of a space's parameters that placements may take; further stages are computed
// by each reader.
enum { PLACES_MOST = SPACE_PARAMS_MAX / 2 };

static void name_place(char *name, size_t size, int stage)
{
    snprintf(name, size, "place%d", stage + 1);
}

static bool cover_tiles(const Pipeline *p, int cover, int stage)
{
    for (int i = 0; i < p->cover[cover].n; i++)
        if (pipeline_tiles(p, pipeline_set(p, &p->cover[cover], i), stage))
            return true;
    return false;
}

// Only in covers with a kernel that looks at windows of the stage.
static bool add_place(Derivation *d, int stage, Diags *diags)
{
    const Pipeline *p = d->pipeline;
    char name[16];
    bool found = false;
    AutoBuf text = buf_new();
    name_place(name, sizeof name, stage);
    buf_printf(&text, "%s == 'registers'", name);
    for (int i = 0; i < p->ncover; i++)
        if (cover_tiles(p, i, stage)) {
            buf_printf(&text, " or cover == '%s'", p->label[i]);
            found = true;
        }
    if (found) {
        space_add_words(d->space, name, (const char *const[]){"registers", "local"}, 2);
        space_constrain(d->space, text.text, diags);
    }
    return found;
}

static bool has_place(const Derivation *d, int stage)
{
    char name[16];
    name_place(name, sizeof name, stage);
    return space_find(d->space, name) >= 0;
}

// A tile that only another tile reads would not be looked at.
static void constrain_places(Derivation *d, Diags *diags)
{
    for (int v = 0; v < d->pipeline->script.ncall; v++)
        for (int u = 0; u < v; u++) {
            if (!has_place(d, u) || !has_place(d, v) ||
                !pipeline_reads(d->pipeline, v, u, READ_POINT))
                continue;
            constrain(d, diags, "place%d == 'registers' or place%d == 'registers'", u + 1,
                      v + 1);
        }
}

void constrain_placed(Derivation *d, const char *condition, Diags *diags)
{
    for (int v = 0; d->pipeline && v < d->pipeline->script.ncall; v++) {
        if (has_place(d, v))
            constrain(d, diags, "place%d == 'registers' or %s", v + 1, condition);
    }
}

// Bytes of the tiles of a group, as an expression over the parameters.
void put_tile_bytes(const Derivation *d, Buf *text)
{
    buf_printf(text, "(%s * %lld", derive_tiled(d), (long long)d->shape.tile_bytes);
    for (int v = 0; d->pipeline && v < d->pipeline->script.ncall; v++)
        if (has_place(d, v))
            buf_printf(text, " + (place%d == 'local') * %lld", v + 1,
                       (long long)pipeline_bytes(d->pipeline, v));
    buf_puts(text, ")");
}

bool add_cover_params(Derivation *d, Diags *diags)
{
    const Pipeline *p = d->pipeline;
    int places = 0;
    if (!p || p->ncover < 2)
        return false;
    space_add_words(d->space, "cover", p->label, p->ncover);
    for (int v = 0; v < p->script.ncall && places < PLACES_MOST && d->shape.window; v++)
        places += add_place(d, v, diags);
    constrain_places(d, diags);
    if (space_find(d->space, "walk") >= 0) // a tile has no room for a walk
        constrain_placed(d, "walk == 1", diags);
    return places > 0;
}

static int cover_find(const Derivation *d, int kernels)
{
    for (int i = 0; d->pipeline && i < d->pipeline->ncover; i++)
        if (d->pipeline->cover[i].n == kernels)
            return i;
    return -1;
}

const char *cover_stored(const Derivation *d)
{
    int cover = d->pipeline ? cover_find(d, d->pipeline->script.ncall) : -1;
    return cover < 0 ? NULL : d->pipeline->label[cover];
}

void cover_apart(const Derivation *d, Point *point)
{
    int param = space_find(d->space, "cover");
    if (param >= 0)
        point->choice[param] = (int16_t)cover_find(d, d->pipeline->script.ncall);
}

void cover_plain(const Derivation *d, Point *point)
{
    enum { GROUPS_LEAST = 2048 };
    int param = space_find(d->space, "cover");
    if (param < 0 || d->pipeline->by_points < 0)
        return;
    const int16_t apart = point->choice[param];
    point->choice[param] = (int16_t)d->pipeline->by_points;
    if (!space_valid(d->space, point))
        point->choice[param] = apart;
    // As many parts of folds as fill a GPU, where another kernel folds them.
    for (int64_t turns = 8; turns * GROUPS_LEAST * 256 <= d->shape.whole; turns *= 2)
        set_number(d, point, "turns", turns);
}

bool cover_choose(const Derivation *d, Point *point, int cover, bool local)
{
    int param = space_find(d->space, "cover");
    bool any = false;
    if (param < 0 || cover >= d->pipeline->ncover)
        return false;
    point->choice[param] = (int16_t)cover;
    for (int v = d->pipeline->script.ncall - 1; v >= 0 && local; v--) {
        char name[16];
        name_place(name, sizeof name, v);
        if (has_place(d, v) && cover_tiles(d->pipeline, cover, v)) {
            space_set(d->space, point, name, "local");
            if (!space_valid(d->space, point)) // what reads it is one already
                space_set(d->space, point, name, "registers");
            else
                any = true;
        }
    }
    return any || !local;
}

// The kernels of a cover ------------------------------------------------------------------

// Calls, and the maps that folds of theirs read.
enum { LETS_MOST = 2 * CALLS_MAX };

// The lets of the region, as they are at the moment.
typedef struct {
    const Derivation *d;
    const Pipeline *p;
    Rewriter *r;
    const Point *point;
    Unstored *unstored;
    bool local[CALLS_MAX]; // stages with a tile
    int n;
    int item[LETS_MOST]; // what a let holds: a stage, the first of several; -1: other
    int with[LETS_MOST]; // the stage under which a stage is held; -1: by none
    int number;          // of the next stage that a rewrite makes
    bool stored[LETS_MOST];
} LetChain;

static Path let_at(const LetChain *c, int k)
{
    Path path = c->p->region;
    while (k-- > 0)
        path_push(&path, 1);
    return path;
}

static int find_item(const LetChain *c, int stage)
{
    int k = 0;
    while (k < c->n && (c->with[stage] < 0 || c->item[k] != c->with[stage]))
        k++;
    return k;
}

static bool inline_let(LetChain *c, int stage)
{
    int k = find_item(c, stage);
    Path path = let_at(c, k);
    if (k == c->n || !rewriter_rule(c->r, &path, RULE_LET_INLINE, &(RuleArgs){0}))
        return false;
    memmove(c->item + k, c->item + k + 1, (size_t)(--c->n - k) * sizeof *c->item);
    c->with[stage] = -1;
    return true;
}

// Exchanges let k with the one before it, unless it needs that.
static bool swap_up(LetChain *c, int k)
{
    Path path = let_at(c, k - 1);
    if (!rewriter_rule(c->r, &path, RULE_LET_SWAP, &(RuleArgs){0}))
        return false;
    int item = c->item[k];
    c->item[k] = c->item[k - 1];
    c->item[k - 1] = item;
    return true;
}

// Moves let k, and what it needs, before let *first.
static bool move_before(LetChain *c, int *first, int k)
{
    while (k > *first)
        if (swap_up(c, k))
            k--;
        else if (k - 1 == *first || !move_before(c, first, k - 1))
            return false;
    ++*first;
    return true;
}

// Moves let k behind the n lets from *first on.
static bool move_behind(LetChain *c, int *first, int n, int k)
{
    while (k > *first + n)
        if (swap_up(c, k))
            k--;
        else if (!move_before(c, first, k - 1))
            return false;
    return true;
}

// Rows that nothing is folded in are made element by element, all of them together.
static void flatten_rows(LetChain *c, int k)
{
    Path value = let_at(c, k);
    path_push(&value, 0);
    for (const Expr *map = path_find(c->r->expr, &value);
         is_map(map) && !has_fold(map) &&
         rewriter_rule(c->r, &value, RULE_MAP_FLATTEN, &(RuleArgs){0});)
        map = path_find(c->r->expr, &value);
}

// Components of what has become one of the components of another map.
static void fuse_results(LetChain *c)
{
    Path end = let_at(c, c->n);
    const Expr *tuple = path_find(c->r->expr, &end);
    for (int i = 0, n = tuple->kind == E_TUPLE ? tuple->narg : 0; i < n; i++) {
        Path result = end;
        path_push(&result, i);
        rewriter_rule(c->r, &result, RULE_MAP_FUSION, &(RuleArgs){0});
    }
}

static void one_map(LetChain *c, const int *stage, int n)
{
    for (int i = 0; i < n; i++)
        flatten_rows(c, find_item(c, stage[i]));
    int first = find_item(c, stage[0]);
    for (int i = 1; i < n; i++)
        if (!move_behind(c, &first, i, find_item(c, stage[i])))
            return;
    Path path = let_at(c, first);
    if (!rewriter_rule(c->r, &path, RULE_LET_TUPLE, &(RuleArgs){1, {n}}))
        return;
    for (int i = 1; i < n; i++)
        c->with[stage[i]] = c->with[stage[0]];
    c->n -= n - 1;
    memmove(c->item + first + 1, c->item + first + n,
            (size_t)(c->n - first - 1) * sizeof *c->item);
    fuse_results(c);
}

static bool is_sum(const LetChain *c, int stage)
{
    return folds_together(c->p->stage[stage].expr);
}

// What a fold folds becomes a map in so many dimensions that a let holds, a stage with a
// number of its own.
static bool name_folded(LetChain *c, int stage, int number, int dims)
{
    int k = find_item(c, stage);
    Path let = let_at(c, k), value = let;
    path_push(&value, 0);
    if (k == c->n || c->n == LETS_MOST ||
        !rewriter_rule(c->r, &value, RULE_NAME_FOLDED, &(RuleArgs){1, {dims}}) ||
        !rewriter_rule(c->r, &let, RULE_LET_OUT, &(RuleArgs){0}))
        return false;
    memmove(c->item + k + 1, c->item + k, (size_t)(c->n++ - k) * sizeof *c->item);
    c->item[k] = c->with[number] = number;
    return true;
}

// The folds that a kernel stores, and what it stores besides, as parts by one map. Where
// the point cannot do that the folds have kernels of their own.
static void fold_together(LetChain *c, const int *stored, int n)
{
    int made[PART_MAX], dims = 1;
    bool folds = false, may = true;
    Together parts;
    for (int i = 0; i < n; i++) {
        const Stage *stage = &c->p->stage[stored[i]];
        dims = MAX(dims, stage->dims);
        if (stage->dims > 1 && !together_parts(c->d, c->point, stage->expr, &parts))
            return;
    }
    for (int i = 0; i < n; i++) {
        bool sum = is_sum(c, stored[i]);
        may = may && (!sum || may_share_pass(c->d, c->p->stage[stored[i]].expr));
        made[i] = sum ? c->number++ : stored[i];
        folds |= sum;
        if (c->number == LETS_MOST || (sum && !name_folded(c, stored[i], made[i], dims)))
            return;
    }
    if (n > 1)
        one_map(c, made, n);
    int first = find_item(c, made[0]);
    Path let = let_at(c, first), value = let;
    path_push(&value, 0);
    pipeline_fuse_reads(c->r, &value);
    if (!may ||
        !together_parts(c->d, c->point, path_find(c->r->expr, &let)->arg[0], &parts) ||
        !rewriter_rule(c->r, &let, RULE_FOLD_TOGETHER,
                       &(RuleArgs){2, {parts.rows, parts.near}}))
        return;
    c->stored[c->item[first]] |= folds;
    parts.param = path_find(c->r->expr, &let)->param;
    VEC_PUSH(c->r->arena, &c->unstored->together, parts);
}

static bool after_tile(const LetChain *c, Calls set, int stage)
{
    for (Set s = pipeline_before(c->p, set, stage); s; s &= s - 1)
        if (c->local[set.first + __builtin_ctzll(s)])
            return true;
    return false;
}

// What lies between the stores of a kernel, or between it and a tile, moves to its readers.
static void make_kernel(LetChain *c, Calls set)
{
    int stored[PART_MAX], n = 0, first = set.first;
    int end = MIN(first + PART_MAX, c->p->script.ncall);
    bool sums = false, lists = derive_word(c->d, c->point, "lists", "tiles");
    for (int v = first; v < end; v++)
        if (pipeline_stores(c->p, set, v) && c->p->stage[v].let >= 0) {
            sums |= is_sum(c, v) && (set.set & (set.set - 1));
            stored[n++] = v;
        }
    for (int v = first; v < end; v++)
        if (calls_have(set, v) && !c->local[v] && !pipeline_stores(c->p, set, v) &&
            c->p->stage[v].let >= 0 &&
            (sums || lists || after_tile(c, set, v) ||
             (n > 1 && pipeline_after_store(c->p, set, v))))
            inline_let(c, v);
    if (sums)
        fold_together(c, stored, n);
    else if (n > 1)
        one_map(c, stored, n);
    if (lists && n && !sums) {
        Path value = let_at(c, find_item(c, stored[0]));
        path_push(&value, 0);
        pipeline_fuse_reads(c->r, &value);
    }
}

static void to_global(LetChain *c, const Path *path)
{
    const Expr *value = path_find(c->r->expr, path);
    if (value && is_map(value))
        rewriter_rule(c->r, path, RULE_TO_GLOBAL, &(RuleArgs){0});
}

static int chosen_cover(const Derivation *d, const Point *point)
{
    int param = space_find(d->space, "cover");
    return param < 0 ? 0 : point->choice[param];
}

static void begin_chain(LetChain *c, const Point *point, int cover)
{
    for (int v = 0; v < c->p->script.ncall; v++) {
        char name[16];
        name_place(name, sizeof name, v);
        if (derive_word(c->d, point, name, "local") && cover_tiles(c->p, cover, v))
            c->local[v] = true;
    }
    for (int k = 0; k < c->p->nlet; k++)
        c->item[c->n++] = c->p->let_stage[k];
    c->number = c->p->script.ncall;
    memset(c->with, -1, sizeof c->with);
    for (int k = 0; k < c->n; k++)
        if (c->item[k] >= 0)
            c->with[c->item[k]] = c->item[k];
}

static void add_unstored(LetChain *c, const Param *param, int stage)
{
    VEC_PUSH(c->r->arena, &c->unstored->stages,
             (UnstoredStage){param, stage < c->p->script.ncall && c->local[stage]});
}

void cover_begin(const Derivation *d, const Point *point, Rewriter *r, Unstored *unstored)
{
    const Pipeline *p = d->pipeline;
    *unstored = (Unstored){0};
    if (!p)
        return;
    LetChain c = {.d = d, .p = p, .r = r, .point = point, .unstored = unstored};
    const Cover *cover = &p->cover[chosen_cover(d, point)];
    begin_chain(&c, point, (int)(cover - p->cover));
    for (int i = 0; i < cover->n; i++) {
        Calls set = pipeline_set(p, cover, i);
        for (int v = set.first; v < MIN(set.first + PART_MAX, p->script.ncall); v++)
            c.stored[v] |= pipeline_stores(p, set, v);
        make_kernel(&c, set);
    }
    for (int k = 0; k < c.n; k++) {
        Path path = let_at(&c, k), value = path;
        path_push(&value, 0);
        int stage = c.item[k];
        if (stage >= 0 && c.stored[stage])
            to_global(&c, &value);
        else if (stage >= 0)
            add_unstored(&c, path_find(r->expr, &path)->param, stage);
    }
}

const UnstoredStage *cover_unstored(const Unstored *unstored, const Param *param)
{
    for (int i = 0; i < unstored->stages.len; i++)
        if (unstored->stages.at[i].param == param)
            return &unstored->stages.at[i];
    return NULL;
}

static bool steps_read(const Expr *expr, const void *param)
{
    return expr_is(expr, P_ITERATE) && expr_mentions(expr->fun, param);
}

bool cover_before_steps(const Unstored *unstored, const Expr *let)
{
    enum { OPERATIONS_LEAST = 3 }; // fewer are done while what they need is read
    const Expr *value = let->arg[0];
    return !cover_unstored(unstored, let->param) && is_map(value) &&
           !expr_is(value->arg[0], P_ARRAY) &&
           pipeline_operations(value->fun->arg[0]) >= OPERATIONS_LEAST &&
           expr_find(let->arg[1], steps_read, let->param);
}

// Windows of a tile -----------------------------------------------------------------------

static bool mentions_tile(const Unstored *unstored, const Expr *expr)
{
    for (int i = 0; i < unstored->stages.len; i++)
        if (unstored->stages.at[i].local &&
            expr_mentions(expr, unstored->stages.at[i].param))
            return true;
    return false;
}

static bool rule_below(Rewriter *r, Path at, const int *step, int n, RuleId rule, int arg)
{
    for (int i = 0; i < n; i++)
        if (!path_push(&at, step[i]))
            return false;
    RuleArgs args = {.n = rule == RULE_MAP_ZIP_FUSION, .at = {arg}};
    return rewriter_rule(r, &at, rule, &args);
}

// A layout of something computed, or of a zip, one step further out.
static bool layout_out(Rewriter *r, Path at, const int *step, int n)
{
    return rule_below(r, at, step, n, RULE_LAYOUT_OF_MAP, 0) ||
           rule_below(r, at, step, n, RULE_LAYOUT_OF_ZIP, 0);
}

// One rewrite of part i of what the map reads (-1: of all it reads); false: none is needed,
// or none matches.
static bool pull_part(Rewriter *r, Path at, int i)
{
    int step[] = {0, i, 0}, n = i < 0 ? 1 : 2; // to the part
    const Expr *map = path_find(r->expr, &at), *in = map->arg[0];
    const Expr *part = i < 0 ? in : in->arg[i];
    if (is_map(part) && part->dims == map->dims)
        return rule_below(r, at, NULL, 0, i < 0 ? RULE_MAP_FUSION : RULE_MAP_ZIP_FUSION, i);
    if (!is_window(part, map->dims))
        return false;
    step[n] = 0;
    const Expr *from = part->arg[0];
    bool pad = expr_is(from, P_PAD);
    return (pad && layout_out(r, at, step, n + 1)) || layout_out(r, at, step, n);
}

void cover_pull(Rewriter *r, Path at, const Unstored *unstored)
{
    bool moved = mentions_tile(unstored, path_find(r->expr, &at));
    while (moved) {
        const Expr *map = path_find(r->expr, &at), *in = map->arg[0];
        moved = false;
        if (!is_zip(in, map->dims)) {
            moved = mentions_tile(unstored, in) && pull_part(r, at, -1);
            continue;
        }
        moved = rewriter_rule(r, &at, RULE_ZIP_FLATTEN, &(RuleArgs){0});
        for (int i = 0; !moved && i < in->narg; i++)
            moved = mentions_tile(unstored, in->arg[i]) && pull_part(r, at, i);
    }
}

bool cover_copies(const Unstored *unstored, const Expr *window, bool inputs)
{
    const Expr *from = window->arg[0];
    while (expr_is(from, P_PAD))
        from = from->arg[from->narg - 1];
    const UnstoredStage *stage =
        from->kind == E_PARAM ? cover_unstored(unstored, from->param) : NULL;
    return stage ? stage->local : inputs;
}
