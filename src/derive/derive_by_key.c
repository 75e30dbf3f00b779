// SPDX-License-Identifier: Apache-2.0
//
// Keyed folds: who updates the array of a key's folds. An item has an array of its own for
// each part of the elements, the items of a group share one in local memory, or all items
// update the result.

#include "derive/walk.h"

#include <string.h>

// The shape -------------------------------------------------------------------------------

bool is_keyed_map(const Expr *expr)
{
    return is_map(expr) && expr->dims == 1 && expr_is(expr->fun->arg[0], P_REDUCEBY);
}

static bool has_scalar(const Type *type, bool is(const ScalarInfo *info))
{
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        if (has_scalar(type->item[i], is))
            return true;
    return type->kind == T_SCALAR && is(&scalar_info[type->scalar]);
}

static bool is_wide(const ScalarInfo *info)
{
    return info->bytes > 4;
}

// A float that a long sum leaves too few digits.
static bool is_short_float(const ScalarInfo *info)
{
    return info->floating && !is_wide(info);
}

// Is it all of a tile or a window, of whose short rows a neighbour has the next elements?
static bool joins_tile(const Expr *expr, const void *tile)
{
    enum { ROW_MOST = 16 };
    return expr_is(expr, P_JOIN) && expr_mentions(expr->arg[0], tile) &&
           arith_most(expr->arg[0]->type->elem->len) <= ROW_MOST;
}

void note_keyed(Shape *shape, const Expr *expr)
{
    const bool map = is_keyed_map(expr);
    const Expr *keyed = map ? expr->fun->arg[0] : expr;
    if (!expr_is(keyed, P_REDUCEBY))
        return;
    Keyed *k = &shape->keyed;
    const Type *elem = keyed->type->elem;
    const int64_t most = arith_most(keyed->type->len);
    k->keys = MAX(k->keys, most);
    k->bytes = MAX(k->bytes, type_bytes(keyed->type, NULL, NULL));
    k->elements = MAX(k->elements, arith_most(keyed->arg[1]->type->len));
    k->alone |= !keyed_updates(keyed);
    k->wide |= has_scalar(elem, is_wide);
    k->whole |= !map;
    if (map && reads_columns(expr))
        k->columns = MAX(k->columns, arith_most(expr->type->len));
    else if (map) {
        k->rows = MAX(k->rows, arith_most(expr->type->len));
        k->length = MAX(k->length, arith_most(keyed->arg[1]->type->len));
        k->tiles |= !!expr_find(keyed->arg[1], joins_tile, expr->fun->params[0]);
    }
    k->row = MAX(k->row, keyed_row(keyed->arg[1]));
    k->shows |= order_shows(keyed);
    k->coarse |= order_shows(keyed) && has_scalar(elem, is_short_float);
    shape->dims = MAX(shape->dims, 1);
}

enum { ITEMS_OF_GROUP = 64 }; // parts that items fold, for each group

// The parameters --------------------------------------------------------------------------

// Atomic updates of 8 bytes are CUDA's.
static bool may_update(const Derivation *d)
{
    const Keyed *k = &d->shape.keyed;
    return has_items(d) && !k->alone &&
           (!k->wide || language_is(d->device.target, LANGUAGE_CUDA)) &&
           !(k->shows && d->program->math == MATH_STRICT);
}

static bool fits(const Derivation *d)
{
    return d->shape.keyed.bytes <= (double)d->device.local_bytes;
}

// Groups without which an accumulator of floats would add up too many values: if all keys
// have as many, and also if one has nearly all.
static int64_t groups_least(const Keyed *k)
{
    enum { STAGNANT = 1 << 22 };
    const int64_t most = longest_chain(k->elements), each = k->elements / k->keys;
    return k->coarse ? MAX(ceil_div(each, most), k->elements / STAGNANT + 1) : 1;
}

// Has the result few enough values of each key, if all keys have as many?
static bool are_short(const Keyed *k)
{
    return !k->coarse || k->elements / k->keys <= longest_chain(k->elements);
}

enum { ROW_MOST = 1024 }; // of rows too short for the items of a group

static bool has_short_rows(const Keyed *k)
{
    return !k->columns && k->length && k->length <= ROW_MOST;
}

void add_keyed_groups(Derivation *d)
{
    static const int64_t groups[] = {1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096};
    space_add_ints(d->space, "groups", groups, COUNTOF(groups));
}

void add_keyed_params(Derivation *d, Diags *diags)
{
    static const int64_t lanes[] = {1, 2, 4, 8},
                         beside[] = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256},
                         copies[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
    const Keyed *k = &d->shape.keyed;
    const char *who[3] = {"item"};
    int n = 1;
    const bool group = may_update(d) && fits(d), all = may_update(d) && are_short(k);
    if (!k->keys)
        return;
    if (group)
        who[n++] = "group";
    if (all)
        who[n++] = "all";
    space_add_words(d->space, "keys", who, n);
    if (space_find(d->space, "groups") < 0)
        add_keyed_groups(d);
    if (k->whole && groups_least(k) > 1)
        constrain(d, diags, "%sgroups * (1 + %d * (keys == 'item')) >= %lld",
                  all ? "keys == 'all' or " : "", ITEMS_OF_GROUP - 1,
                  (long long)groups_least(k));
    const bool many =
        has_items(d) && fits(d) && ((group && k->columns) || has_short_rows(k));
    if ((n > 1 || many) && space_find(d->space, "lanes") < 0)
        space_add_ints(d->space, "lanes", lanes, COUNTOF(lanes));
    if (group)
        space_add_ints(d->space, "copies", copies, COUNTOF(copies));
    if (many)
        space_add_ints(d->space, "beside", beside, COUNTOF(beside));
    const char *arrays = !group ? "beside" : many ? "copies * beside" : "copies";
    if (group || many)
        constrain(d, diags, "%s == 1 or %s * %.0f <= %lld", arrays, arrays, k->bytes,
                  (long long)d->device.local_bytes);
    if (group)
        constrain(d, diags, "copies == 1 or keys == 'group'");
    if (many)
        constrain(d, diags, "beside == 1 or %s(keys == 'item' and beside == lx)",
                  group ? "keys == 'group' or " : "");
}

// As many copies as leave room for as many groups as a multiprocessor has work-items for;
// but folds of columns are done side by side, and their items meet in no element then.
static void choose_copies(const Derivation *d, Point *point)
{
    const Keyed *k = &d->shape.keyed;
    int64_t copies = 32;
    while (copies > 1 && (double)copies * k->bytes > 24 << 10)
        copies /= 2;
    set_number(d, point, k->columns && copies >= 8 ? "beside" : "copies", copies);
}

// A copy for each item, or for those that take a row of different keys, if a multiprocessor
// has room for two groups: nothing is updated by two items then.
static bool choose_own(const Derivation *d, Point *point)
{
    enum { BESIDE = 32 };
    const Keyed *k = &d->shape.keyed;
    const int64_t items = derive_param(d, point, "lx"),
                  lanes = derive_param(d, point, "lanes");
    const int64_t beside = k->columns ? BESIDE : 1, row = k->columns ? beside : k->row;
    const int64_t copies = row ? MAX(items * lanes / row, 1) : items;
    if (2.0 * (double)(copies * beside) * k->bytes > (double)d->device.local_bytes)
        return false;
    return k->columns ? try_values(d, point, "beside=%d copies=%d", BESIDE, (int)copies)
                      : try_values(d, point, "copies=%d", (int)copies);
}

// As many groups as fill a GPU, but not so many that their arrays are most of the traffic;
// that may be more than the elements where there are no more groups than multiprocessors.
static void choose_groups(const Derivation *d, Point *point, int64_t most)
{
    enum { LEAST = 16, FEW = 8 };
    const Keyed *k = &d->shape.keyed;
    const double elements = (double)k->elements;
    while (most > LEAST &&
           (double)most * k->bytes > elements * (most > d->device.compute_units ? 1 : FEW))
        most /= 2;
    while (most < groups_least(k))
        most *= 2;
    set_number(d, point, "groups", most);
}

// Enough items for a multiprocessor whose local memory has room for few arrays, and for all
// of them where there are few groups; each takes several elements at once, as it waits for
// each (H100, 32 M elements: 20,000 counters 229 us with 256 items and one element, 64 us
// with 1,024 and four; of rows of 1,408 by 256 keys 555 us with 88 groups of 256 items).
static void choose_items(const Derivation *d, Point *point)
{
    enum { ITEMS = 2048, ALL = 1 << 17, FEW = 256, MANY = 1024 };
    const Keyed *k = &d->shape.keyed;
    const int64_t beside = derive_param(d, point, "beside");
    const double arrays = derive_param(d, point, "copies") * beside;
    const double room = (double)d->device.local_bytes / MAX(k->bytes * arrays, 1);
    int64_t items = FEW;
    while (
        items < MIN(MANY, d->device.max_group) &&
        ((double)items * room < ITEMS || (k->columns && k->columns / beside * items < ALL)))
        items *= 2;
    set_number(d, point, "lx", MIN(items, d->device.max_group));
    if (d->program->math != MATH_STRICT) // all points would have them
        set_number(d, point, "lanes", k->wide ? 2 : 4);
}

// A row for each item, if a GPU has enough of both, and of room for the arrays: nothing is
// joined, and no items meet in a bank. That is for tiles, whose neighbours share lines of
// memory (H200, a million tiles of 8 x 8 floats by 9 keys: 164 us, by groups 224; rows of
// 64 583 and 222), and for what cannot be updated atomically.
static bool choose_row_each(const Derivation *d, Point *point)
{
    enum { ITEMS = 1024, GROUP = 128, GROUPS = 4, WASTE = 4 };
    const Keyed *k = &d->shape.keyed;
    int64_t lanes = k->wide ? 4 : 8;
    if (!has_short_rows(k) || (may_update(d) && !k->tiles) ||
        k->rows < (int64_t)d->device.compute_units * ITEMS ||
        k->bytes * GROUP * GROUPS > (double)d->device.local_bytes)
        return false;
    while (lanes > 1 &&
           WASTE * (ceil_div(k->length, lanes) * lanes - k->length) > k->length)
        lanes /= 2;
    return try_values(d, point, "keys=item copies=1 lx=%d beside=%d lanes=%d", GROUP, GROUP,
                      (int)lanes);
}

// How many arrays a row has: of floats one for each item, which no other updates, if that
// is not much more to clear and to join than the row has elements. Atomic updates of
// integers are as fast (H200, a million rows of 64 by 9 keys: 137 us, with 16 copies 220;
// of floats 237 and 222).
static int64_t row_copies(const Keyed *k, int64_t lanes)
{
    enum { MOST = 32, WORTH = 3, FEW = 8 };
    const int64_t items = ceil_div(k->length, lanes);
    if (k->shows && k->length == items * lanes && items <= MOST && k->keys <= WORTH * lanes)
        return items;
    int64_t copies = 1;
    while (copies < MOST && FEW * copies * k->keys <= k->length)
        copies *= 2;
    return copies;
}

// As many short rows as give each item of a group `lanes` elements, or fewer of these where
// local memory has no room for so many arrays.
static void choose_rows(const Derivation *d, Point *point)
{
    enum { ROOM = 24 << 10 };
    const Keyed *k = &d->shape.keyed;
    int64_t lanes = derive_param(d, point, "lanes"), copies, beside;
    const int64_t items = derive_param(d, point, "lx");
    for (;; lanes /= 2) {
        copies = row_copies(k, lanes);
        beside = MAX(items * lanes / k->length, 1);
        const double room = ROOM / MAX((double)copies * k->bytes, 1);
        beside = MAX(MIN(beside, (int64_t)room), 1);
        if (lanes == 1 || 2 * beside * k->length > items * lanes)
            break;
    }
    set_number(d, point, "lanes", lanes);
    set_number(d, point, "copies", copies);
    while (!set_number(d, point, "beside", beside))
        beside--;
}

static void choose_arrays(const Derivation *d, Point *point)
{
    if (derive_word(d, point, "keys", "group") && has_short_rows(&d->shape.keyed))
        choose_rows(d, point);
    else if (derive_word(d, point, "keys", "group"))
        choose_copies(d, point);
}

void keyed_plain(const Derivation *d, Point *point)
{
    if (!d->shape.keyed.keys || d->device.is_cpu)
        return;
    // The items along x share what a group folds.
    set_number(d, point, "lx", MIN(d->device.max_group, 256));
    set_number(d, point, "ly", 1);
    set_number(d, point, "lz", 1);
    choose_groups(d, point, 1024);
    if (choose_row_each(d, point))
        return;
    set_number(d, point, "lanes", has_short_rows(&d->shape.keyed) ? 4 : 1);
    if (!space_set(d->space, point, "keys", "group"))
        space_set(d->space, point, "keys", "all");
    choose_arrays(d, point);
    if (derive_word(d, point, "keys", "group") && !has_short_rows(&d->shape.keyed))
        choose_items(d, point);
}

bool keyed_first(const Derivation *d, int i, Point *point)
{
    static const struct {
        const char *keys;
        int lx, lanes, groups;
        bool own;
    } first[] = {{"group", 256, 4, 1024, true}, {"group", 512, 2, 1024, true},
                 {"group", 128, 4, 4096, true}, {"group", 1024, 2, 1024, true},
                 {"group", 128, 8, 2048, true}, {"group", 1024, 8, 1024},
                 {"group", 256, 4, 1024},       {"group", 512, 4, 256},
                 {"group", 1024, 2, 256},       {"all", 256, 4, 1024},
                 {"all", 256, 1, 1024},         {"item", 64, 1, 64}};
    if (!d->shape.keyed.keys || i >= COUNTOF(first))
        return false;
    derive_single(d, point);
    set_values(d, point, "keys=%s lx=%d lanes=%d", first[i].keys, first[i].lx,
               first[i].lanes);
    choose_groups(d, point, first[i].groups);
    if (strcmp(first[i].keys, "item") == 0 && choose_row_each(d, point))
        return true;
    if (!first[i].own || has_short_rows(&d->shape.keyed) || !choose_own(d, point))
        choose_arrays(d, point);
    return true;
}

// The derivation --------------------------------------------------------------------------

// Keyed folds of rows as one, one after the other (near 0) or side by side: where that is.
static bool join_rows(DeriveWalk *w, Path *at, int64_t near)
{
    if (!walk_apply(w, RULE_JOIN_KEYED, *at, &near, 1))
        return false;
    *at = walk_below(w, *at, 0);
    *at = near ? walk_below(w, *at, 0) : *at;
    return true;
}

// Keyed folds by groups, each one, some that are short, or those that read neighbouring
// elements side by side.
static bool keyed_groups(DeriveWalk *w, Path at)
{
    int64_t x = 0;
    const Expr *map = walk_node(w, at), *in = map->arg[0];
    const bool item = w->keys == KEYS_ITEM, columns = item || reads_columns(map),
               beside =
                   w->keyed > 1 &&
                   (columns || arith_most(map->fun->arg[0]->arg[1]->type->len) <= ROW_MOST);
    int64_t row = beside && columns      ? w->keyed
                  : expr_is(in, P_SPLIT) ? keyed_row(in->arg[0])
                                         : 0;
    row = row % w->lanes || w->copies == 1 ? 1 : MAX(row / w->lanes, 1);
    const int64_t by[] = {w->lanes, w->copies, row, w->line};
    if (beside && walk_apply(w, RULE_SPLIT_JOIN, at, &w->keyed, 1))
        at = walk_map_below(w, at);
    if (!walk_apply(w, RULE_MAP_WRG, at, &x, 1))
        return false;
    at = walk_below(w, at, CHILD_FUN);
    if (beside && !join_rows(w, &at, item ? w->lanes : columns))
        return false;
    return walk_apply(w, RULE_REDUCE_BY_LCL, at, by, COUNTOF(by));
}

// Keyed folds of the elements of a map.
bool derive_keyed_map(DeriveWalk *w, Path at)
{
    int64_t x = 0;
    if (!is_keyed_map(walk_node(w, at)))
        return false;
    const Rewriter before = rewriter_hold(&w->r);
    const bool local = w->keys == KEYS_GROUP || (w->keys == KEYS_ITEM && w->keyed > 1);
    return rewriter_end(&w->r, &before, local && keyed_groups(w, at)) ||
           walk_apply(w, RULE_MAP_GLB, at, &x, 1);
}

// Where the folds of a map are fewer groups than are wanted, groups fold parts of each.
bool derive_keyed_parts(DeriveWalk *w, Path at)
{
    enum { TURNS = 8 }; // of a group, at least
    const Expr *map = walk_node(w, at);
    int64_t folds, elements, y = 1;
    if (w->deep || w->keys != KEYS_GROUP || !is_keyed_map(map) ||
        !arith_is_const(map->type->len, &folds) ||
        !arith_is_const(map->fun->arg[0]->arg[1]->type->len, &elements))
        return false;
    const int64_t blocks = MAX(ceil_div(folds, w->keyed), 1);
    const int64_t most = elements * w->keyed / MAX(w->line * w->lanes * TURNS, 1);
    const int64_t parts = MIN(w->groups / blocks, most);
    if (parts < 2)
        return false;
    const Rewriter before = rewriter_hold(&w->r);
    return rewriter_end(
        &w->r, &before,
        walk_apply(w, RULE_KEYED_SPLIT, at, &parts, 1) &&
            walk_apply(w, RULE_MAP_WRG, walk_below(w, at, 0), &y, 1) &&
            keyed_groups(w, walk_below(w, walk_below(w, at, 0), CHILD_FUN)));
}

bool join_keyed(DeriveWalk *w, Path *at)
{
    const Expr *map = walk_node(w, *at);
    return (is_keyed_map(map) && reads_columns(map) && join_rows(w, at, 1)) ||
           join_rows(w, at, 0);
}

// Parts that items fold, as many as of groups of one warp, have arrays of their own, which
// should not be more than the elements.
static int64_t parts_of(const DeriveWalk *w, const Expr *keyed)
{
    if (w->keys == KEYS_GROUP)
        return w->groups;
    int64_t keys = MAX(arith_most(keyed->type->len), 1);
    int64_t most = arith_most(keyed->arg[1]->type->len) / keys;
    return MAX(MIN(w->groups * ITEMS_OF_GROUP, most), 1);
}

bool derive_keyed(DeriveWalk *w, Path at)
{
    if (w->keys == KEYS_ALL && walk_apply(w, RULE_REDUCE_BY_GLB, at, &w->lanes, 1))
        return false;
    int64_t items = w->keys == KEYS_GROUP ? w->line * w->lanes : 1;
    int64_t parts[] = {parts_of(w, walk_node(w, at)), items};
    const int64_t keyed = w->keyed;
    w->keyed = 1; // parts are long
    const bool apart = walk_apply(w, RULE_REDUCE_BY_PARTS, at, parts, 2) &&
                       derive_keyed_map(w, walk_below(w, at, 0));
    w->keyed = keyed;
    return apart;
}
