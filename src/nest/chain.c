// SPDX-License-Identifier: Apache-2.0
//
// Chains: maps whose function folds what it is given and goes on with the results. Which
// expressions are such maps, how long their folds are, and what a group must hold of them.

#include "nest/nest.h"

// What can be a chain ------------------------------------------------------------------

// Scalars of the largest array in a type; 0: there is none, -1: they are not known.
static int64_t array_scalars(const Type *type)
{
    int64_t n = 1, len, most = 0;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++) {
        n = array_scalars(type->item[i]);
        most = n < 0 || most < 0 ? -1 : MAX(most, n);
    }
    if (type->kind != T_ARRAY)
        return most;
    for (; type->kind == T_ARRAY; type = type->elem)
        n = arith_is_const(type->len, &len) ? MIN(n * MAX(len, 1), INT32_MAX) : INT32_MAX;
    return n < INT32_MAX ? n : -1;
}

bool scans_rows(const Expr *expr)
{
    if (!expr_is(expr, P_SCAN) || expr->type->elem->kind != T_ARRAY ||
        array_scalars(expr->type->elem) <= SMALL_MOST)
        return false;
    const Expr *row = under_views(expr_behind_lets(expr->fun->arg[0]));
    return is_map(row) || chain_shares(row);
}

bool launches_rows(const Expr *expr, int64_t most)
{
    enum { LAUNCHES_MOST = 1 << 16 };
    int64_t steps;
    return scans_rows(expr) && arith_is_const(expr->type->len, &steps) && steps > 0 &&
           steps <= LAUNCHES_MOST && steps_bytes(expr, false) > most;
}

static bool can_share(const Expr *expr, int64_t least)
{
    if (expr_is(expr, P_SCAN)) // in local memory, so of a length that is known
        return scan_is_long(expr, least) && folds_by_parts(expr) &&
               arith_is_const(expr->type->len, NULL);
    return fold_is_long(expr, least) && reduce_shares(expr);
}

bool chain_shares(const Expr *expr)
{
    return can_share(expr, INNER_MOST + 1);
}

static bool is_shared_fold(const Expr *expr, const void *least)
{
    return can_share(expr, *(const int64_t *)least);
}

// Such a fold, or a loop of them.
static bool shares_link(const Expr *expr, int64_t least)
{
    return can_share(expr, least) ||
           (loop_folds(expr, least) && expr_find(expr->fun, is_shared_fold, &least));
}

// How many elements the arrays that a function returns have together.
static double elements_made(const Type *type)
{
    double count = 0;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        count += elements_made(type->item[i]);
    for (; type->kind == T_ARRAY; type = type->elem)
        count = (count > 0 ? count : 1) * (double)arith_most(type->len);
    return count;
}

// Elements of a fold that is worth sharing: where an array is made, each of its elements
// would fold them again.
int64_t chain_least(const Expr *body)
{
    double count = elements_made(body->type);
    return count > 0 && count <= INNER_MOST * INNER_MOST
               ? MAX(SHARED_LEAST, (int64_t)count / INNER_MOST)
               : INNER_MOST + 1;
}

// A prefix that items cannot share would be computed by all of them.
static bool is_alone(const Expr *expr, const void *least)
{
    return expr_is(expr, P_SCAN) && !scans_rows(expr) &&
           !can_share(expr, *(const int64_t *)least);
}

// Does a body fold at its own level what items may share?
static bool folds(const Expr *body, int64_t least)
{
    const Expr *fold = link_to_name(body, least);
    if (shares_link(body, least) || (fold && shares_link(fold, least)))
        return true;
    return body->kind == E_LET &&
           (shares_link(body->arg[0], least) || folds(body->arg[1], least));
}

// What a group keeps ----------------------------------------------------------------

bool is_group_loop(const Expr *expr)
{
    const Expr *step = is_loop_of_arrays(expr) ? expr_behind_lets(expr->fun->arg[0]) : NULL;
    return step && step->kind != E_OP && arith_is_const(expr->num[0], NULL);
}

bool is_shared_loop(const Expr *expr)
{
    return is_group_loop(expr) || loop_folds(expr, ALONE_MOST + 1);
}

bool is_name(const Expr *expr)
{
    return expr_behind_gets(expr)->kind == E_PARAM;
}

// Is each of its elements found of those of arrays that have names, by simple arithmetic?
// Who reads it again reads these instead, of which there are no more.
static bool is_cheap(const Expr *array)
{
    const Expr *in = is_map(array) ? array->arg[0] : NULL;
    bool names = in != NULL;
    for (int i = 0; names && i < (is_zip(in, array->dims) ? in->narg : 1); i++)
        names = is_name(is_zip(in, array->dims) ? in->arg[i] : in);
    return names && !expr_find(array->fun, is_nest, NULL) &&
           !expr_find(array->fun, calls_function, NULL);
}

// Does a let name arrays of known lengths that a loop changes, or that are made and read
// again? The items of a group make them together, and all of them read them. (An item makes
// and keeps small ones, unless one of them takes too much work.)
static bool names_held(const Expr *let, int64_t small)
{
    if (let->kind != E_LET)
        return false;
    const Expr *given = expr_behind_lets(let->arg[0]), *value = under_views(given);
    const bool loop = is_group_loop(value);
    if (array_scalars(let->arg[0]->type) <= (loop ? MIN(small, ALONE_MOST) : small))
        return false;
    return loop || expr_is(given, P_SCATTER) ||
           (makes_array(value) && !only_reads(value) && !is_cheap(value) &&
            is_read_again(let->arg[1], let->param));
}

// Elements of the longest that a body names; 0: there is none.
static int64_t held_length(const Expr *body)
{
    const int64_t small = expr_find(body, is_large_work, NULL) ? 1 : SMALL_MOST;
    int64_t most = 0;
    for (; body->kind == E_LET; body = body->arg[1])
        if (names_held(body, small))
            most = MAX(most, array_scalars(body->arg[0]->type));
    return most;
}

bool holds_arrays(const Expr *body)
{
    return held_length(body) || scans_rows(expr_behind_lets(body));
}

// What a function names that depends on its element.
enum { OWN_MOST = 64 };
typedef struct {
    const Expr *map;
    const Param *at[OWN_MOST];
    int n;
} OwnNames;

static bool is_own(const OwnNames *own, const Param *param)
{
    return list_has(own->at, own->n, param);
}

static bool is_matrix(const Expr *expr, const void *none)
{
    enum { MATRIX_LEAST = 257 };
    return is_name(expr) && type_depth(expr->type) > 1 &&
           array_is_large(expr->type, MATRIX_LEAST);
}

bool folds_matrix(const Expr *value)
{
    return has_fold(value) && expr_find(value, is_matrix, NULL);
}

// Is it a matrix that is the same for all elements?
static bool is_shared_matrix(const Expr *expr, const void *names)
{
    const OwnNames *own = names;
    const Param *name = is_matrix(expr, NULL) ? expr_behind_gets(expr)->param : NULL;
    return name && !is_own(own, name) && !expr_find(own->map->fun, expr_binds, name);
}

// Is it a product of matrices that are large enough for items to have several of its rows
// and columns? (In a group each item reads two numbers for each product it adds.)
static bool is_large_product(const Expr *value)
{
    enum { PRODUCT_LEAST = 1024 };
    const Expr *inner = is_map(value) && value->dims == 1 ? value->fun->arg[0] : NULL;
    return inner && is_map(inner) && folds_pairs(value, inner) &&
           array_is_large(value->type, PRODUCT_LEAST);
}

// Is it a loop whose steps a group takes sooner than they are launched, though they fold
// what all elements share? (H200, 65,536 rows of 32 states, as predicted: 6.1 and 11.1 ms;
// of 64 states: 19.7 and 15.0.)
static bool is_short_loop(const Expr *value, const Expr *map)
{
    enum { TERMS_MOST = 1 << 27 }; // of a step
    int64_t rows;
    const int64_t state = is_group_loop(value) ? array_scalars(value->type) : 0;
    return state > 0 && state <= SMALL_MOST && arith_is_const(map->type->len, &rows) &&
           (double)rows * (double)(state * expr_fold_terms(value->fun)) <= TERMS_MOST;
}

int shared_stage(const Expr *map)
{
    OwnNames own = {map, {map->fun->params[0]}, 1};
    const Expr *e = map->fun->arg[0];
    for (int stage = 0; own.n < OWN_MOST; stage++, e = e->arg[1]) {
        const Expr *value = e->kind == E_LET ? e->arg[0] : e;
        if (!is_short_loop(value, map) &&
            ((has_fold(value) && expr_find(value, is_shared_matrix, &own)) ||
             is_large_product(value)))
            return stage;
        if (e->kind != E_LET)
            break;
        if (expr_mentions_any(value, own.at, own.n))
            own.at[own.n++] = e->param;
    }
    return -1;
}

// Is it a map of what is folded of each row of an array, an even number of words long?
static bool folds_rows(const Expr *expr, const void *none)
{
    const Expr *in = is_map(expr) && expr->dims == 1 ? expr->arg[0] : NULL;
    for (int i = 0; in && i < (is_zip(in, 1) ? in->narg : 1); i++) {
        const Expr *array = is_zip(in, 1) ? in->arg[i] : in;
        const Type *row = array->kind == E_PARAM ? array->type->elem : NULL;
        int64_t length;
        if (row && row->kind == T_ARRAY && row->elem->kind == T_SCALAR &&
            arith_is_const(row->len, &length) && length % 2 == 0 &&
            has_fold(expr->fun->arg[0]))
            return true;
    }
    return false;
}

bool chain_holds(const Expr *map)
{
    return held_length(chain_map(map)->fun->arg[0]) > 0;
}

bool chain_scans_rows(const Expr *map)
{
    return scans_rows(expr_behind_lets(chain_map(map)->fun->arg[0]));
}

bool reads_held_rows(const Expr *map)
{
    return chain_holds(map) && expr_find(chain_map(map)->fun->arg[0], folds_rows, NULL);
}

bool is_chain_body(const Expr *body)
{
    return (folds(body, chain_least(body)) || holds_arrays(body)) &&
           !expr_find(body, is_alone, &(int64_t){chain_least(body)});
}

// Are its elements found by time loops? They have to be in memory before anything reads
// them, which nobody would share between the groups of two maps.
static bool loops_within(const Expr *in, const void *none)
{
    return is_map(in) && expr_find_pattern(in->fun, P_ITERATE);
}

// Fewer folds than items that a GPU runs at once, which are no product's, are shared.
static bool is_few(const Expr *map)
{
    enum { FEW = 1 << 14 };
    return !is_product(map) && elements_made(map->type) < FEW;
}

// Maps around it are places only where each runs over what the one around it is given, or
// where they are few: a fold of every element of one array with every element of another is
// a product.
int chain_depth(const Expr *map)
{
    for (int depth = 1; depth <= DIMS_MAX && is_map(map) && map->dims == 1; depth++) {
        const Expr *body = map->fun->arg[0];
        if (folds(body, chain_least(body)) || holds_arrays(body))
            return is_chain_body(body) && !is_for_items(map) ? depth : 0;
        body = under_layout(body);
        if (!is_map(body) ||
            !(expr_mentions(body->arg[0], map->fun->params[0]) || is_few(map)) ||
            expr_find(map->arg[0], loops_within, NULL))
            return 0;
        map = body;
    }
    return 0;
}

static bool is_chain(const Expr *expr, const void *none)
{
    return chain_depth(expr) > 0;
}

bool has_chain(const Expr *expr)
{
    return expr_any_here(expr, is_chain, NULL);
}

static const int64_t BYTES_MOST = INT64_C(1) << 50; // a few of these add up, too

static int64_t bytes_of(const Type *type)
{
    return (int64_t)MIN(type_bytes(type, NULL, NULL), (double)BYTES_MOST);
}

bool names_number(const Expr *expr)
{
    return expr->kind == E_LET && type_is_scalar(expr->arg[0]->type) &&
           !has_fold(expr->arg[0]);
}

// The first fold of a map's function that items may share, after names of numbers.
static const Expr *fold_of_element(const Expr *map)
{
    Path at = {0};
    const Expr *body = map->fun ? map->fun->arg[0] : NULL;
    while (body && names_number(body))
        body = body->arg[1];
    return body && path_to_fold(body, &at, chain_shares) ? path_find(body, &at) : NULL;
}

int64_t chain_split(const Expr *map)
{
    int64_t len;
    const Expr *fold = chain_depth(map) == 1 && !type_holds_array(map->type->elem)
                           ? fold_of_element(map)
                           : NULL;
    return fold && arith_is_const(fold->arg[1]->type->len, &len) ? len : 0;
}

// Is the element of that map an index into rows?
static bool indexes_rows(const Expr *expr, const void *element)
{
    return expr->kind == E_AT && expr->arg[0]->kind == E_AT &&
           expr_mentions(expr->arg[1], element) &&
           !expr_mentions(expr->arg[0]->arg[1], element);
}

static bool goes_on(const Expr *expr, const void *none)
{
    return (scan_is_long(expr, ALONE_MOST + 1) && !scans_rows(expr)) ||
           (fold_is_long(expr, INNER_MOST + 1) && !reduce_shares(expr));
}

bool walks_lines(const Expr *map)
{
    return is_map(map) && map->dims == 1 && expr_find(map->fun->arg[0], goes_on, NULL);
}

bool walks_rows(const Expr *map)
{
    return walks_lines(map) && !reads_columns(map);
}

// Do neighbours of a turned array lie within one access of a warp?
static bool is_close(const Type *turned)
{
    enum { APART_MOST = 16 }; // bytes
    return bytes_of(turned->elem->elem) <= APART_MOST;
}

static bool turns_elements(const Expr *array);

static bool is_turned(const Expr *array)
{
    if (array->kind != E_PATTERN)
        return false;
    for (int i = 0; array->pattern == P_ZIP && i < array->narg; i++)
        if (is_turned(array->arg[i]))
            return true;
    if (array->pattern == P_JOIN)
        return turns_elements(array->arg[0]);
    return array->pattern == P_TRANSPOSE ? is_close(array->type)
                                         : is_map(array) && is_turned(array->arg[0]);
}

static bool goes_alone(const Expr *expr, const void *none)
{
    return fold_is_long(expr, INNER_MOST + 1) && !reduce_shares(expr);
}

bool chain_goes_alone(const Expr *map)
{
    return expr_any_here(chain_map(map)->fun->arg[0], goes_alone, NULL);
}

bool turns_array(const Expr *expr)
{
    return expr_is(is_map(expr) && expr->dims == 1 ? expr->fun->arg[0] : expr, P_TRANSPOSE);
}

// Is each of its elements turned?
static bool turns_elements(const Expr *array)
{
    return is_map(array) && array->dims == 1 && expr_is(array->fun->arg[0], P_TRANSPOSE) &&
           is_close(array->type->elem);
}

// Is it the same for the neighbours of an element, as what maps around it are given?
static bool repeats(const Expr *in)
{
    enum { LANES = 32 };
    int64_t len;
    const Expr *body = NULL;
    for (in = expr_is(in, P_JOIN) ? in->arg[0] : in; expr_is(in, P_ARRAY) && in->dims == 1;
         in = body)
        if (!expr_is(body = in->fun->arg[0], P_ARRAY))
            return arith_is_const(in->type->len, &len) && len >= LANES &&
                   !expr_mentions(body, in->fun->params[0]);
    return false;
}

// Does what is folded differ from one element of a map to the next?
static bool depends_on(const Expr *array, const Expr *map)
{
    const Expr *in = map->arg[0];
    const Param *element = map->fun->params[0];
    if (is_map(array))
        return depends_on(array->arg[0], map);
    if (array->kind == E_GET && expr_is_use(array->arg[0], element) && is_zip(in, 1))
        return !repeats(in->arg[array->index]);
    if (!is_zip(array, 1))
        return expr_mentions(array, element);
    for (int i = 0; i < array->narg; i++)
        if (depends_on(array->arg[i], map))
            return true;
    return false;
}

bool folds_same(const Expr *map)
{
    enum { ROWS_LEAST = 1024 };
    int64_t rows;
    const Expr *fold = map->type->elem->kind != T_ARRAY ? fold_of_element(map) : NULL;
    return fold && arith_is_const(map->type->len, &rows) && rows >= ROWS_LEAST &&
           !depends_on(fold->arg[1], map);
}

bool reads_columns(const Expr *map)
{
    for (int depth = chain_depth(map); depth > 1; depth--) {
        if (turns_elements(map->arg[0]))
            return true;
        map = under_layout(map->fun->arg[0]);
    }
    return is_turned(map->arg[0]) || folds_same(map) ||
           expr_find(map->fun->arg[0], indexes_rows, map->fun->params[0]);
}

bool turns_columns(const Expr *expr)
{
    const Expr *map = expr_is(expr, P_TRANSPOSE) ? expr->arg[0] : NULL;
    return map && is_map(map) && type_depth(map->type) > 1 && reads_columns(map);
}

static bool is_near(const Expr *expr, const void *none)
{
    return expr_is(expr, P_SCAN) || (keeps_order(expr) && chain_shares(expr));
}

bool reads_near(const Expr *expr)
{
    return expr_find(expr, is_near, NULL);
}

int64_t fold_elem_bytes(const Expr *expr)
{
    return keeps_order(expr) && chain_shares(expr) ? bytes_of(expr->type) : 0;
}

int64_t shared_fold_bytes(const Expr *expr)
{
    return expr_is(expr, P_REDUCE) && expr->type->kind != T_ARRAY && can_share(expr, 0)
               ? bytes_of(expr->type)
               : 0;
}

const Expr *lone_scan(const Expr *expr)
{
    const Expr *scan = scan_read(expr), *in = scan && scan != expr ? expr->arg[0] : scan;
    bool alone = scan && !link_within(scan, INNER_MOST + 1);
    for (int i = 0; alone && is_zip(in, 1) && i < in->narg; i++)
        alone = in->arg[i] == scan || !link_within(in->arg[i], INNER_MOST + 1);
    return alone ? scan : NULL;
}

int64_t scan_row_length(const Expr *map)
{
    int64_t len;
    const Expr *scan = is_map(map) && map->dims == 1 ? lone_scan(map->fun->arg[0]) : NULL;
    return scan && chain_shares(scan) && arith_is_const(scan->type->len, &len) ? len : 0;
}

int64_t scan_elem_bytes(const Expr *expr)
{
    return expr_is(expr, P_SCAN) && chain_shares(expr) ? bytes_of(expr->type->elem) : 0;
}

// What a chain holds, whose arrays take the place of others that are used no more (the pass
// reuse).
enum { HELD_MOST = 16 };

typedef struct {
    const Param *array[HELD_MOST];
    int n;
    const Expr *loop; // of whose step they are; NULL: of none
} HeldArrays;

// Is it copied as it stands? A prefix that is a row is where it was stored, the state of a
// loop is there already; but components of either are names like others.
static bool is_copied(const Expr *in, const HeldArrays *held)
{
    const Expr *loop = held ? held->loop : NULL;
    return loop && is_name(in) &&
           (in->kind != E_PARAM ||
            (scans_rows(loop) && expr_is_use(in, loop->fun->params[0])));
}

// What a group makes before it shares a fold or prefix of neighbours: what is
// computed of the elements, array by array.
static int64_t input_bytes(const Expr *in, const HeldArrays *held)
{
    int64_t bytes = 0;
    for (int i = 0; is_zip(in, 1) && i < in->narg; i++)
        bytes += input_bytes(in->arg[i], held);
    const bool made = in->kind == E_PATTERN && in->pattern != P_ARRAY;
    return !is_zip(in, 1) && (made || is_copied(in, held)) ? bytes_of(in->type) : bytes;
}

// The bytes that the items keep for a prefix: a row, padded, and what precedes each item.
// inputs: counts what is computed for it, and for a fold of neighbours, too.
static int64_t prefix_bytes(const Expr *expr, bool inputs, const HeldArrays *held)
{
    int64_t len, bytes = 0;
    const bool own = expr_is(expr, P_SCAN) && !scans_rows(expr); // those are in memory
    if (own && arith_is_const(expr->type->len, &len))
        bytes = bytes_of(expr->type) / MAX(len, 1) * (len + SCAN_MORE);
    if (inputs && (own || (keeps_order(expr) && chain_shares(expr))))
        bytes += input_bytes(expr->arg[1], held);
    return bytes;
}

typedef struct {
    LengthOf *length;
    const void *user;
    int64_t most;
} Longest;

static void note_longest(const Expr *expr, void *user)
{
    Longest *l = user;
    if (can_share(expr, 0))
        l->most = MAX(l->most, l->length(l->user, expr->arg[expr->narg - 1]->type->len));
}

const Expr *chain_map(const Expr *map)
{
    for (int depth = chain_depth(map); depth > 1; depth--)
        map = under_layout(map->fun->arg[0]);
    return map;
}

int64_t chain_length(const Expr *map, LengthOf *length, const void *user)
{
    map = chain_map(map);
    Longest longest = {length, user, 0};
    expr_each(map->fun->arg[0], note_longest, &longest);
    const Expr *given = expr_behind_lets(map->fun->arg[0]);
    const int64_t made = scans_rows(given) ? array_scalars(given->type->elem) : 0;
    return MAX(MAX(longest.most, made), held_length(map->fun->arg[0]));
}

// Is an array of scalars read by a map of it, element by element, and by nothing else that
// is still to come?
static bool ends_in(const Param *array, const Expr *let)
{
    const Expr *value = let->arg[0];
    int uses = expr_uses(value, array), found = 0;
    if (expr_mentions(let->arg[1], array) || !is_map(value) || value->dims != 1)
        return false;
    const Expr *in = value->arg[0];
    bool zip = is_zip(in, 1);
    for (int i = 0; i < (zip ? in->narg : 1); i++)
        found += expr_is_use(zip ? in->arg[i] : in, array);
    return uses == found;
}

static bool same_scalars(const Type *a, const Type *b)
{
    return a->kind == T_ARRAY && b->kind == T_ARRAY && a->len == b->len &&
           a->elem->kind == T_SCALAR && b->elem->kind == T_SCALAR &&
           a->elem->scalar == b->elem->scalar;
}

static bool takes_place(HeldArrays *held, const Expr *let)
{
    for (int i = 0; i < held->n; i++)
        if (same_scalars(held->array[i]->type, let->param->type) &&
            ends_in(held->array[i], let)) {
            held->array[i] = let->param;
            return true;
        }
    return false;
}

// The bytes of an array that a let names; those of a loop are its state's.
static int64_t name_bytes(HeldArrays *held, const Expr *let)
{
    if (let->param->type->kind != T_ARRAY || is_loop_of_arrays(let->arg[0]) ||
        takes_place(held, let))
        return 0;
    if (held->n < HELD_MOST)
        held->array[held->n++] = let->param;
    return bytes_of(let->param->type);
}

// How often the step of a loop is written out: two, each of which knows which state it
// reads, and the last of an odd number; the first of prefixes that are rows, and the
// others.
static int64_t times_written(const Expr *loop)
{
    int64_t steps = 0;
    if (scans_rows(loop))
        return 2;
    arith_is_const(loop->num[0], &steps);
    return (steps > 1 ? 2 : 0) + steps % 2;
}

// The bytes of the arrays of a group: of its prefixes, of the states of its loops, and, if
// it holds what it makes, of the arrays that it names. All but the states are there once
// for each time that the step they are of is written out. held: NULL within what each item
// does by itself.
static int64_t group_bytes(const Expr *e, bool hold, HeldArrays *held)
{
    const bool loop = held && is_shared_loop(e), steps = loop || (held && scans_rows(e));
    int64_t bytes = prefix_bytes(e, hold, held);
    if (loop && type_holds_array(e->type))
        bytes += 2 * bytes_of(e->type);
    if (held && hold && e->kind == E_LET)
        bytes += name_bytes(held, e);
    for (int i = 0; i < e->narg; i++)
        bytes += group_bytes(e->arg[i], hold, held);
    if (steps)
        return bytes + steps_bytes(e, hold);
    return e->fun ? bytes + group_bytes(e->fun->arg[0], hold, NULL) : bytes;
}

int64_t steps_bytes(const Expr *loop, bool hold)
{
    HeldArrays held = {.loop = loop};
    const int64_t step = group_bytes(loop->fun->arg[0], hold, &held);
    return times_written(loop) * MIN(step, BYTES_MOST);
}

int64_t steps_words(const Expr *e, bool steps)
{
    enum { WORDS = 1024 * 9 / 8, ARRAYS = 5 << 10 }; // each begins at a multiple of 1,024
    const bool loop = is_shared_loop(e) || scans_rows(e), prefix = expr_is(e, P_SCAN);
    int64_t bytes = 0;
    if (steps && chain_shares(e))
        bytes = WORDS * bytes_of(prefix ? e->type->elem : e->type) + (prefix ? ARRAYS : 0);
    for (int i = 0; i < e->narg; i++)
        bytes += steps_words(e->arg[i], steps);
    if (!e->fun)
        return bytes;
    const int64_t within = steps_words(e->fun->arg[0], steps || loop);
    return bytes + (loop ? times_written(e) : 1) * MIN(within, BYTES_MOST);
}

// The bytes of an element of what a map is given, but for what many have in common, and no
// group has room for.
static int64_t given_bytes(const Expr *in)
{
    const int64_t all = bytes_of(in->type->elem);
    int64_t bytes = 0;
    for (int i = 0; is_zip(in, 1) && i < in->narg; i++)
        bytes += given_bytes(in->arg[i]);
    return is_zip(in, 1) ? bytes : all > ROW_BYTES_MOST && repeats(in) ? 0 : all;
}

int64_t chain_bytes(const Expr *map)
{
    map = chain_map(map);
    HeldArrays held = {{map->fun->params[0]}, 1};
    return given_bytes(map->arg[0]) + group_bytes(map->fun->arg[0], true, &held);
}

// What a map's element is given, and a state that says where it is read.
typedef struct {
    const Param *given, *state;
    int part; // of the element; -1: all of it
} ReadAt;

static bool reads_at(const Expr *expr, const void *user)
{
    const ReadAt *r = user;
    const Expr *array = expr->kind == E_AT ? expr->arg[0] : NULL;
    if (array && r->part >= 0)
        array = array->kind == E_GET && array->index == r->part ? array->arg[0] : NULL;
    return array && expr_mentions(array, r->given) && !expr_mentions(array, r->state) &&
           expr_mentions(expr->arg[1], r->state);
}

// The same of what is given by a map of parts of it.
static bool reads_within(const Expr *expr, const void *user)
{
    const ReadAt *r = user;
    if (reads_at(expr, r))
        return true;
    const Expr *in = is_map(expr) ? expr->arg[0] : NULL;
    const bool zip = in && is_zip(in, expr->dims);
    for (int i = 0; in && i < (zip ? in->narg : 1); i++) {
        const Expr *part = zip ? in->arg[i] : in;
        const ReadAt within = {expr->fun->params[0], r->state, zip ? i : -1};
        if (expr_mentions(part, r->given) && !expr_mentions(part, r->state) &&
            expr_find(expr->fun->arg[0], reads_at, &within))
            return true;
    }
    return false;
}

static bool loops_along(const Expr *expr, const void *element)
{
    const ReadAt read = {element, is_group_loop(expr) ? expr->fun->params[0] : NULL, -1};
    return read.state && expr_find(expr->fun->arg[0], reads_within, &read);
}

bool copies_given(const Expr *map)
{
    map = chain_map(map);
    return chain_holds(map) &&
           !expr_find(map->fun->arg[0], loops_along, map->fun->params[0]);
}

int64_t chain_scan_bytes(const Expr *map)
{
    const Expr *body = chain_map(map)->fun->arg[0];
    return copies_given(map) ? chain_bytes(map)
                             : group_bytes(body, chain_holds(map), &(HeldArrays){.n = 0});
}
