// SPDX-License-Identifier: Apache-2.0
//
// What a step of a stream reads: its state, and arrays between, as windows in registers.
//
//   method  The function is evaluated as it stands. An index of the state, less the place
//           of the cell that is computed, is where in the window its value is. It is a
//           constant within the grid. Near the border the program's own padding makes it
//           one of a few constants, between which the place decides: max(x - 1, 0) - x is
//           -1 or 0. A padding that wraps is a constant once the length is taken off: what
//           lies beyond the grid is then its other end, computed again. So every way to
//           treat a border, on every side, is what the program says, and nothing else.

#include "lower/stream.h"

#include <string.h>

enum { NUMBER = -1 }; // in place of a grid; and less: that of a number which changes

// The state as the function sees it -----------------------------------------------------

static const View *window_new(Stream *s, int grid, const Type *type)
{
    return NEW_OF(s->l->arena, View, .kind = V_WINDOW, .type = type, .field = grid,
                  .stream = s);
}

const View *window_elem(Lower *l, const View *view, const Arith *index)
{
    View *elem = arena_copy(l->arena, view, sizeof(View));
    elem->type = view->type->elem;
    elem->index[elem->nindex++] = index;
    return elem;
}

const View *stream_element(Stream *s, const View *grid, const Arith *const *at)
{
    for (int k = s->shift; k < s->dims; k++)
        grid = view_elem(s->l, grid, at[k]);
    return grid;
}

const View *stream_part(Stream *s, const View *state, int k)
{
    const Type *tuple = type_tuple_of(state->type);
    for (int i = 0; tuple && i < tuple->n; i++) {
        int n = parts_of(tuple->item[i]);
        if (k < n)
            return stream_part(s, view_get(s->l, state, i), k);
        k -= n;
    }
    return state;
}

// Windows of grids, from number *grid on, in place of a value of a type.
static const View *windows_of(Stream *s, const Type *type, int *grid)
{
    const Type *tuple = type_tuple_of(type);
    if (!tuple)
        return window_new(s, (*grid)++, type);
    const View **item = NEW_ARRAY(s->l->arena, const View *, tuple->n);
    for (int i = 0; i < tuple->n; i++)
        item[i] = windows_of(s, type_field(s->l->arena, type, i), grid);
    return view_tuple(s->l, type, item);
}

// Grids -----------------------------------------------------------------------------------

// Is it an array of numbers of the stream's size; of any, where that is not known yet?
static bool is_grid(Stream *s, const Type *type)
{
    int64_t size[DIMS_MAX];
    int dims = 0;
    for (; type->kind == T_ARRAY; type = type->elem, dims++)
        if (dims == DIMS_MAX || !arith_is_const(type->len, &size[dims]))
            return false;
    // OpenCL C exchanges floating numbers and int within a warp.
    bool exchanged = type->scalar == S_INT || scalar_info[type->scalar].floating;
    if (dims < 1 || type->kind != T_SCALAR || !exchanged)
        return false;
    if (s->dims)
        return dims == s->dims - s->shift &&
               memcmp(size, s->size + s->shift, (size_t)dims * sizeof *size) == 0;
    s->shift = dims == 1 || (s->flat && dims == 2);
    s->dims = dims + s->shift;
    s->size[0] = 1;
    memcpy(s->size + s->shift, size, (size_t)dims * sizeof *size);
    return true;
}

static bool are_grids(Stream *s, const Type *type)
{
    const Type *tuple = type_tuple_of(type);
    bool ok = tuple || is_grid(s, type);
    for (int i = 0; tuple && ok && i < tuple->n; i++)
        ok = are_grids(s, type_field(s->l->arena, type, i));
    return ok;
}

static void add_grids(Stream *s, const View *windows, const View *value)
{
    for (int k = 0, n = parts_of(windows->type); k < n; k++) {
        const Type *type = stream_part(s, windows, k)->type;
        type = type_leaf(type);
        Grid *grid = &s->grid[s->ngrid++]; // what it reads is known where this is not new
        grid->scalar = type;
        grid->value = value ? stream_part(s, value, k) : NULL;
    }
}

static bool reads_state(Stream *s, const View *value);

// An array that is computed from the state is kept as a stage of the step.
static const View *staged(Stream *s, const View *value)
{
    int grid = s->ngrid;
    if (s->l->failed || value->kind == V_WINDOW || !are_grids(s, value->type) ||
        grid + parts_of(value->type) > GRIDS_MAX || !reads_state(s, value))
        return value;
    const View *windows = windows_of(s, value->type, &grid);
    add_grids(s, windows, value);
    return windows;
}

// The same for maps whose elements several cells of another map read. spread: they do.
static const View *stages_inside(Stream *s, const View *view, bool spread)
{
    View *copy = arena_copy(s->l->arena, view, sizeof(View));
    switch (view->kind) {
    case V_LAYOUT:
    case V_FIELD: copy->src = stages_inside(s, view->src, true); return copy;
    case V_MAP:
        copy->src = stages_inside(s, view->src, false);
        return spread ? staged(s, copy) : copy;
    case V_TUPLE: {
        int n = type_tuple_of(view->type)->n;
        const View **item = NEW_ARRAY(s->l->arena, const View *, n);
        for (int i = 0; i < n; i++)
            item[i] = stages_inside(s, view->item[i], spread);
        copy->item = item;
        return copy;
    }
    default: return view;
    }
}

// Numbers of steps -----------------------------------------------------------------------

// Which of the steps that a kernel does, or a warp of it, is computed.
static int64_t level_of(const Stream *s)
{
    return s->reader ? s->reader->step - (s->reader->grid < s->nstate) : s->level;
}

static const KExpr *read_number(Stream *s)
{
    ArithCtx *c = s->l->ctx;
    if (s->probing || (s->trying && s->naming))
        return k_index(s->l, s->any_step);
    if (s->trying) {
        s->refused = "a step asks for its number for more than each cell";
        return k_literal(s->l, 0, type_scalar(S_INT));
    }
    const Arith *number = arith_addc(c, s->first_step, level_of(s));
    if (s->relay > 1)
        number = arith_add(c, number, arith_mulc(c, s->warp, s->steps));
    return k_index(s->l, number);
}

// Is the value of a let a number, and another one in each step?
static bool changes(const Stream *s, const Expr *let)
{
    bool changes = s->f->nparam > 1 && expr_mentions(let->arg[0], s->f->params[1]);
    for (int i = 0; i < s->changing.len && !changes; i++)
        changes = expr_mentions(let->arg[0], s->changing.at[i].param);
    return changes && type_is_scalar(let->arg[0]->type);
}

// Such a number is computed once for all cells, for each of the steps.
static const Env *name_numbers(Stream *s, const Expr *let, const Env *env)
{
    Lower *l = s->l;
    int64_t n = s->trying ? 1 : s->steps;
    Changing changing = {let->param, NEW_ARRAY(l->arena, const KExpr *, n)};
    s->naming = true;
    for (s->level = 0; s->level < n && !l->failed; s->level++)
        changing.value[s->level] =
            k_named(l, view_read(l, eval(l, let->arg[0], env)), let->param->name);
    s->naming = false;
    s->level = 0;
    VEC_PUSH(l->arena, &s->changing, changing);
    return env_bind(l, env, let->param,
                    window_new(s, NUMBER - s->changing.len, let->arg[0]->type));
}

void stream_open(Stream *s)
{
    Lower *l = s->l;
    const Expr *body = s->f->arg[0];
    s->ngrid = s->changing.len = 0;
    s->reader = NULL;
    l->stream = true;
    const View *state = windows_of(s, s->from->type, &s->ngrid);
    s->nstate = s->ngrid;
    s->ngrid = 0;
    add_grids(s, state, NULL);
    const Env *env = env_bind(l, s->env, s->f->params[0], state);
    if (s->f->nparam > 1)
        env = env_bind(l, env, s->f->params[1], window_new(s, NUMBER, type_scalar(S_INT)));
    for (; body->kind == E_LET && !l->failed; body = body->arg[1]) {
        if (changes(s, body)) {
            env = name_numbers(s, body, env);
            continue;
        }
        const View *value = eval(l, body->arg[0], env);
        if (value->type->kind == T_ARRAY)
            env = env_bind(l, env, body->param, staged(s, stages_inside(s, value, false)));
        else
            env = env_bind_named(l, env, body->param, value, body->arg[1]);
    }
    const View *result = stages_inside(s, eval(l, body, env), false);
    for (int k = 0; k < s->nstate && !l->failed; k++)
        s->grid[k].value = stream_part(s, result, k);
    for (int k = 0; k < s->ngrid && !l->failed; k++) {
        const View *value = s->grid[k].value;
        s->grid[k].same = value->kind == V_WINDOW && !value->nindex ? value->field : -1;
    }
}

// Reading -----------------------------------------------------------------------------

// a - b, with b taken off what is in a maximum or a minimum, so that its range is narrow.
static const Arith *distance(ArithCtx *c, const Arith *a, const Arith *b)
{
    for (int i = 0; a->kind == A_SUM && i < a->n; i++) {
        const Arith *part = a->term[i].arg;
        int64_t k = a->term[i].coef;
        if ((part->kind != A_MIN && part->kind != A_MAX) || (k != 1 && k != -1))
            continue;
        const Arith *rest = arith_sub(c, a, arith_mulc(c, part, k));
        const Arith *x = arith_add(c, rest, arith_mulc(c, part->term[0].arg, k));
        const Arith *y = arith_add(c, rest, arith_mulc(c, part->term[1].arg, k));
        x = distance(c, x, b);
        y = distance(c, y, b);
        return (part->kind == A_MIN) == (k > 0) ? arith_min(c, x, y) : arith_max(c, x, y);
    }
    if (a->kind == A_MIN || a->kind == A_MAX) {
        const Arith *x = distance(c, a->term[0].arg, b);
        const Arith *y = distance(c, a->term[1].arg, b);
        return a->kind == A_MIN ? arith_min(c, x, y) : arith_max(c, x, y);
    }
    return arith_sub(c, a, b);
}

// How far an index is from the cell along an axis, from lo to hi; off: what it is.
static const Arith *offset_of(Stream *s, const Arith *index, int axis, int64_t *lo,
                              int64_t *hi)
{
    ArithCtx *c = s->l->ctx;
    const Arith *size = arith_const(c, s->size[axis]);
    const Arith *off = distance(c, index, s->at[axis]);
    arith_range(c, off, lo, hi);
    if (*lo >= -REACH_MAX && *hi <= REACH_MAX)
        return off;
    int64_t round;
    if (arith_is_const(arith_mod(c, arith_sub(c, index, s->at[axis]), size), &round)) {
        *lo = *hi = round > s->size[axis] / 2 ? round - s->size[axis] : round;
        if (s->probing)
            s->wrap[axis] = true;
        off = arith_const(c, *lo);
    }
    return off;
}

static void note_read(Stream *s, const Read *read)
{
    VEC_EACH_REF(const Read *, old, &s->probing->reads)
        if (old->grid == read->grid && memcmp(old->off, read->off, sizeof old->off) == 0)
            return;
    if (s->probing->reads.len == READS_MAX)
        s->refused = "a cell reads too many others";
    else
        VEC_PUSH(s->l->arena, &s->probing->reads, *read);
}

typedef struct {
    const Arith *off[DIMS_MAX];
    int64_t lo[DIMS_MAX], hi[DIMS_MAX];
} ReadPlace;

static const KExpr *read_cell(Stream *s, const View *view, const int64_t *off)
{
    if (s->probing) {
        Read read = {.grid = view->field};
        memcpy(read.off, off, (size_t)s->dims * sizeof *off);
        s->probing->places++;
        note_read(s, &read);
        return k_literal(s->l, 0, view->type);
    }
    const Field *from =
        stream_field(s, s->reader->step - (s->reader->grid < s->nstate), view->field);
    int64_t age = s->reader->delay - off[0] - from->delay;
    if (s->in_rows)
        return window_load(s, from, age, s->dims == 3 ? off[1] : 0, off[s->dims - 1]);
    int64_t j = s->dims == 3 ? s->j + off[1] : 0;
    return k_var(s->l, cell_var(s, from, age, j, s->c + off[s->dims - 1]));
}

// The cells that may be meant, from this axis on, and what decides between them.
static const KExpr *read_places(Stream *s, const View *view, const ReadPlace *place,
                                int axis, int64_t *off)
{
    if (axis == s->dims)
        return read_cell(s, view, off);
    off[axis] = place->hi[axis];
    const KExpr *value = read_places(s, view, place, axis + 1, off);
    for (int64_t k = place->hi[axis] - 1; k >= place->lo[axis]; k--) {
        const Arith *here =
            arith_sub(s->l->ctx, arith_const(s->l->ctx, k), place->off[axis]);
        off[axis] = k;
        const KExpr *arg[] = {k_cond(s->l, &here, 1),
                              read_places(s, view, place, axis + 1, off), value};
        value = k_op(s->l, OP_SELECT, view->type, arg, 3);
    }
    return value;
}

const KExpr *window_read(Lower *l, const View *view)
{
    Stream *s = view->stream;
    ReadPlace place = {0};
    int64_t off[DIMS_MAX] = {0};
    if (view->field == NUMBER)
        return read_number(s);
    if (view->field < NUMBER)
        return s->changing.at[NUMBER - view->field - 1].value[level_of(s)];
    if (s->trying && !s->probing) {
        s->refused = "a step needs more of its state than cells around each";
        return k_literal(l, 0, view->type);
    }
    for (int k = s->shift; k < s->dims; k++) {
        place.off[k] =
            offset_of(s, view->index[k - s->shift], k, &place.lo[k], &place.hi[k]);
        if (place.lo[k] >= -REACH_MAX && place.hi[k] <= REACH_MAX)
            continue;
        if (!s->probing)
            BUG("a stream read where its first evaluation did not");
        s->refused = "a cell reads others that are not within 8 of it";
        return k_literal(l, 0, view->type);
    }
    return read_places(s, view, &place, 0, off);
}

// Conditions --------------------------------------------------------------------------

enum { SPLIT_MAX = 32 };

// Adds what must not be negative for t not to be; a maximum of two is one of them where the
// other is negative anyway.
static int split_cond(ArithCtx *c, const Arith *t, const Arith **cond, int n)
{
    int64_t lo, hi_x, hi_y;
    if (arith_nonneg(c, t) || n == SPLIT_MAX)
        return n;
    const ArithTerm *term = t->kind == A_SUM ? t->term : &t->self;
    for (int i = 0, terms = t->kind == A_SUM ? t->n : 1; i < terms; i++) {
        const Arith *part = term[i].arg;
        int64_t k = term[i].coef;
        if ((part->kind != A_MIN && part->kind != A_MAX) || (k != 1 && k != -1))
            continue;
        const Arith *rest = arith_sub(c, t, arith_mulc(c, part, k));
        const Arith *x = arith_add(c, rest, arith_mulc(c, part->term[0].arg, k));
        const Arith *y = arith_add(c, rest, arith_mulc(c, part->term[1].arg, k));
        if ((part->kind == A_MIN) == (k > 0))
            return split_cond(c, y, cond, split_cond(c, x, cond, n));
        arith_range(c, x, &lo, &hi_x);
        arith_range(c, y, &lo, &hi_y);
        if (hi_x < 0 || hi_y < 0)
            return split_cond(c, hi_x < 0 ? y : x, cond, n);
    }
    cond[n] = t;
    return n + 1;
}

static const KExpr *unmoved_cond(Stream *s, const KExpr *e)
{
    const Arith *cond[SPLIT_MAX];
    int n = 0;
    for (int i = 0; i < e->n && n < SPLIT_MAX; i++) {
        const Arith *t = e->cond[i];
        for (int k = 0; k < s->moved.len; k++)
            if (arith_mentions(t, s->moved.at[k].name))
                t = arith_subst(s->l->ctx, t, s->moved.at[k].name, s->moved.at[k].place);
        n = split_cond(s->l->ctx, t, cond, n);
    }
    return n == SPLIT_MAX ? e : k_cond(s->l, cond, n);
}

static const KExpr *unmoved(Stream *s, const KExpr *e)
{
    if (e->kind == K_COND)
        return unmoved_cond(s, e);
    if (!e->n)
        return e;
    const KExpr **arg, *copy = kexpr_copy(s->l->arena, e, &arg);
    for (int i = 0; i < e->n; i++)
        arg[i] = unmoved(s, e->arg[i]);
    return copy;
}

// What guards a load stays in the names of its index, in which it is proved.
const KExpr *stream_unmoved(Stream *s, const KExpr *value)
{
    return s->moved.len && !kexpr_any(value, kexpr_is_load, NULL) ? unmoved(s, value)
                                                                  : value;
}

// Probing -----------------------------------------------------------------------------

static bool is_array(const Stm *stm, const void *of)
{
    return stm->kind == ST_ARRAY || stm->kind == ST_BARRIER;
}

// Reads one cell of an array, into nothing; notes in grid what that reads.
static void try_cell(Stream *s, const View *value, Grid *grid)
{
    Lower *l = s->l, outer = *l;
    Block nothing = {0};
    Grid *before = s->probing;
    const Arith *at[DIMS_MAX];
    memcpy(at, s->at, sizeof at);
    ArithCtx *c = l->ctx;
    for (int k = 0; k < s->dims; k++)
        s->at[k] = arith_var(c, "at", arith_const(c, 0), arith_const(c, s->size[k] - 1));
    l->block = &nothing;
    s->probing = grid;
    for (int k = 0, n = parts_of(value->type); k < n && !l->failed; k++) {
        const View *cell = stream_element(s, stream_part(s, value, k), s->at);
        grid->picky |= stream_may_fail(s, &nothing, view_read(l, cell));
    }
    if (block_any(&nothing, is_array, NULL))
        s->refused = "a step keeps an array for each cell";
    s->probing = before;
    memcpy(s->at, at, sizeof at);
    l->block = outer.block;
    l->side = outer.side;
}

static bool reads_state(Stream *s, const View *value)
{
    const char *refused = s->refused;
    Grid grid = {0};
    try_cell(s, value, &grid);
    s->refused = refused;
    return grid.reads.len > 0 && !s->l->failed;
}

static void probe_cells(Stream *s)
{
    stream_open(s);
    for (int k = 0; k < s->ngrid && !s->l->failed; k++) {
        Grid *grid = &s->grid[k];
        try_cell(s, grid->value, grid);
        for (int i = 0; i < grid->reads.len; i++)
            for (int d = 0; d < s->dims; d++) {
                s->lo[d] = MAX(s->lo[d], -grid->reads.at[i].off[d]);
                s->hi[d] = MAX(s->hi[d], grid->reads.at[i].off[d]);
            }
    }
}

bool stream_probe(Stream *s, const Expr *loop)
{
    Lower *l = s->l, outer = *l;
    const Type *state = loop->type;
    Kernel nowhere = {.local = {1, 1, 1}};
    Block nothing = {0};
    Diags quiet = {.arena = l->arena};
    nowhere.names = (Map){.arena = l->arena};
    for (int d = 0; d < DIMS_MAX; d++)
        nowhere.global[d] = arith_const(l->ctx, 1);
    s->refused = NULL;
    s->any_step = arith_var(l->ctx, "step", arith_const(l->ctx, 0),
                            arith_addc(l->ctx, loop->num[0], -1));
    if (parts_of(state) > GRIDS_MAX || !are_grids(s, state)) {
        s->refused = "its state is not up to 32 arrays of numbers of one size";
        return false;
    }
    int buffers = l->unit->buffers.len;
    l->diags = &quiet;
    l->kernel = &nowhere;
    l->block = &nothing;
    s->trying = true;
    probe_cells(s);
    s->trying = false;
    if (l->failed || nowhere.locals.len > 0 || l->unit->buffers.len > buffers ||
        block_any(&nothing, is_array, NULL))
        s->refused =
            s->refused ? s->refused
                       : "a step is more than what each cell computes from its neighbours";
    l->unit->buffers.len = buffers;
    *l = outer;
    return !s->refused;
}
