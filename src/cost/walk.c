// SPDX-License-Identifier: Apache-2.0
//
// How often everything in a kernel is executed.
//
//   method  A loop over threads multiplies by extent over threads, a sequential one by its
//           extent; a condition on indices by the share of the iterations around it for
//           which it holds. So counts are exact averages over the work-items, border
//           included. A condition on data is taken to hold half of the time.
//   registers  variables and loaded values live at once, by first and last use; nothing is
//   said of what a
//           compiler adds or shares

#include "cost/walk.h"

#include <math.h>

static void walk_block(CostWalk *w, const Block *block);
static void walk_value(CostWalk *w, const KExpr *e);

// Conditions --------------------------------------------------------------------------

typedef struct {
    double exec;
    bool rare;
} Before;

// Enters one side of a condition; `leave` undoes it. The side that is taken less often is
// a border.
static Before enter(CostWalk *w, const KExpr *cond, bool negated)
{
    Before before = {.exec = w->exec};
    if (cond->kind != K_COND) {
        w->exec *= 0.5;
        w->unguarded *= 0.5;
        return before;
    }
    VEC_PUSH(w->arena, &w->guards, (Guard){cond->cond, cond->n, negated});
    w->exec = w->unguarded * scope_share(&w->scope, w->guards.at, w->guards.len);
    before.rare = 2 * w->exec < before.exec;
    w->border += before.rare;
    return before;
}

static void leave(CostWalk *w, const KExpr *cond, Before before)
{
    w->exec = before.exec;
    if (cond->kind != K_COND) {
        w->unguarded *= 2;
        return;
    }
    w->guards.len--;
    w->border -= before.rare;
}

// Values ------------------------------------------------------------------------------

static int words_of(const Type *type)
{
    int bytes = scalar_info[type->scalar].bytes;
    return (type->kind == T_VECTOR ? type->width : 1) * MAX(bytes / 4, 1);
}

static void use_var(CostWalk *w, const Var *var)
{
    int entry = table_find(&w->live, (Key){var, NULL, NULL});
    if (entry >= 0) {
        w->ranges.at[w->live.entry.at[entry].value].last = w->position;
        return;
    }
    table_push(&w->live, (Key){var, NULL, NULL}, w->ranges.len);
    VEC_PUSH(w->arena, &w->ranges,
             (WordRange){w->position, w->position, words_of(var->type)});
}

static void tell_access(CostWalk *w, CountedAccess *access)
{
    LaneValues lanes;
    Scope *s = &w->scope;
    int bytes = scalar_info[access->buffer->scalar].bytes;
    int64_t line = MAX(s->setting->device->line_bytes / bytes, 1);
    access->lines = s->lanes;
    if (scope_lanes(s, access->index, &lanes)) {
        access->lanes = &lanes;
        if (access->buffer->space == MEM_GLOBAL)
            access->lines = lanes_lines(&lanes, s->lanes, access->width, line);
    }
    w->on_access(w, w->user, access);
}

static void note_access(CostWalk *w, const Buffer *buffer, const Arith *index,
                        const Type *type, bool store)
{
    if (buffer->space == MEM_PRIVATE)
        return;
    int width = type->kind == T_VECTOR ? type->width : 1;
    (store ? w->stores : w->loads)[buffer->space] += w->exec;
    if (!store) {
        VEC_PUSH(w->arena, &w->ranges,
                 (WordRange){w->position, w->position, words_of(type)});
    }
    if (!store && buffer->space == MEM_GLOBAL && !w->border)
        w->flight += width * scalar_info[buffer->scalar].bytes;
    if (w->on_access && w->exec > 0)
        tell_access(w, &(CountedAccess){.buffer = buffer,
                                        .index = index,
                                        .width = width,
                                        .store = store,
                                        .border = w->border > 0,
                                        .exec = w->exec,
                                        .warps = w->spread});
}

static double op_flops(Op op, const Type *type)
{
    bool floating = type_is_float(type);
    double lanes = type->kind == T_VECTOR ? type->width : 1;
    if (!floating || op_info[op].kind == OPK_FREE || op_info[op].types == TY_SELECT ||
        op_info[op].types == TY_CAST)
        return 0;
    return op == OP_FMA ? 2 * lanes : lanes;
}

static double function_flops(CostWalk *w, const Function *function);

static double expr_flops(CostWalk *w, const Expr *e)
{
    double flops = 0;
    if (e->kind == E_OP && e->type)
        flops += op_flops(e->op, e->type);
    if (e->kind == E_CALL)
        flops += function_flops(w, e->callee);
    for (int i = 0; i < e->narg; i++)
        flops += expr_flops(w, e->arg[i]);
    return flops;
}

static double function_flops(CostWalk *w, const Function *function)
{
    for (int i = 0; i < w->costs.len; i++)
        if (w->costs.at[i].function == function)
            return w->costs.at[i].flops;
    double flops = function->body ? expr_flops(w, function->body) : function->flops;
    VEC_PUSH(w->arena, &w->costs, (Cost){function, flops});
    return flops;
}

static void walk_select(CostWalk *w, const KExpr *e)
{
    const KExpr *cond = e->arg[0];
    walk_value(w, cond);
    for (int side = 0; side < 2; side++) {
        Before before = enter(w, cond, side == 1);
        walk_value(w, e->arg[1 + side]);
        leave(w, cond, before);
    }
}

const double matrix_times[SCALARS] = {
    [S_HALF] = 16, [S_BF16] = 16, [S_FLOAT] = 8, [S_DOUBLE] = 2};

static void walk_matrix(CostWalk *w, const KExpr *e)
{
    const Fragments *f = e->fragments; // an item has two outputs of each 8 x 8
    const double pairs = w->exec * 2 * f->groups[0] * f->groups[1] * (double)f->step;
    const double operations = pairs * (e->type->scalar == S_DOUBLE ? 2 : 1);
    w->flops += 2 * pairs;
    w->spared += operations * (1 - 1 / matrix_times[e->arg[0]->buffer->scalar]);
}

static void walk_value(CostWalk *w, const KExpr *e)
{
    switch (e->kind) {
    case K_LITERAL:
    case K_INDEX:
    case K_COND: return;
    case K_VAR: use_var(w, e->var); return;
    case K_LOAD: note_access(w, e->buffer, e->arith, e->type, false); return;
    case K_AWAIT: note_access(w, e->buffer, e->arith, type_scalar(S_LONG), false); return;
    case K_TILE: return;
    case K_MATRIX: walk_matrix(w, e); return;
    case K_OP:
        if (e->op == OP_SELECT) {
            walk_select(w, e);
            return;
        }
        w->flops += w->exec * op_flops(e->op, e->type);
        break;
    case K_CALL: w->flops += w->exec * function_flops(w, e->callee); break;
    case K_SHUFFLE:
    case K_VECTOR:
    case K_LANE: break;
    }
    for (int i = 0; i < e->n; i++)
        walk_value(w, e->arg[i]);
}

// Statements --------------------------------------------------------------------------

// Along x a warp goes round until its last lane is done: 18 elements take 16 lanes two
// turns.
static double spread_of(const CostWalk *w, const Stm *stm, double extent)
{
    double threads = (double)scope_threads(&w->scope, stm->loop, stm->dim);
    bool lanes = stm->loop == LOOP_LCL && stm->dim == 0 && extent > 0;
    return lanes ? ceil(extent / threads) / (extent / threads) : 1;
}

static void walk_for(CostWalk *w, const Stm *stm)
{
    int64_t extent = scope_extent(&w->scope, stm->extent);
    scope_declare(&w->scope, stm, extent);
    double exec = w->exec, unguarded = w->unguarded, spread = w->spread;
    double factor = (double)extent / (double)scope_threads(&w->scope, stm->loop, stm->dim);
    w->spread *= spread_of(w, stm, (double)extent);
    bool loop = stm->loop == LOOP_SEQ || stm->form == FORM_LOOP;
    int64_t flight = w->flight;
    w->ifs += stm->loop != LOOP_SEQ && stm->form == FORM_GUARD ? exec : 0;
    w->exec *= factor;
    w->unguarded *= factor;
    w->bodies += loop ? w->exec : 0;
    w->flight = loop ? 0 : flight;
    walk_block(w, &stm->body);
    w->in_flight = MAX(w->in_flight, w->flight);
    w->flight = loop ? flight : w->flight;
    w->exec = exec;
    w->unguarded = unguarded;
    w->spread = spread;
}

static void walk_if(CostWalk *w, const Stm *stm)
{
    w->ifs += w->exec;
    walk_value(w, stm->value);
    Before before = enter(w, stm->value, false);
    walk_block(w, &stm->body);
    leave(w, stm->value, before);
    if (!stm->other.len)
        return;
    before = enter(w, stm->value, true);
    walk_block(w, &stm->other);
    leave(w, stm->value, before);
}

static void walk_stm(CostWalk *w, const Stm *stm)
{
    w->position++;
    if (stm->value && stm->kind != ST_IF)
        walk_value(w, stm->value);
    switch (stm->kind) {
    case ST_DECL:
    case ST_ASSIGN: use_var(w, stm->var); return;
    case ST_STORE: note_access(w, stm->buffer, stm->index, stm->value->type, true); return;
    case ST_PUBLISH:
        note_access(w, stm->buffer, stm->index, type_scalar(S_LONG), true);
        return;
    case ST_MATRIX:
    case ST_COMMIT:
    case ST_WAIT:
    case ST_ARRAY: return;
    case ST_INT: scope_declare(&w->scope, stm, 0); return;
    case ST_FOR: walk_for(w, stm); return;
    case ST_IF: walk_if(w, stm); return;
    case ST_BARRIER:
        w->barriers += w->exec;
        w->in_flight = MAX(w->in_flight, w->flight);
        w->flight = 0;
        return;
    }
    BUG("statement of kind %d", stm->kind);
}

static void walk_block(CostWalk *w, const Block *block)
{
    for (int i = 0; i < block->len; i++)
        walk_stm(w, block->at[i]);
}

static int most_live(CostWalk *w)
{
    int *change = NEW_ARRAY(w->arena, int, w->position + 2);
    for (int i = 0; i < w->ranges.len; i++) {
        change[w->ranges.at[i].first] += w->ranges.at[i].words;
        change[w->ranges.at[i].last + 1] -= w->ranges.at[i].words;
    }
    int live = 0, most = 0;
    for (int i = 0; i <= w->position; i++) {
        live += change[i];
        most = MAX(most, live);
    }
    return most;
}

bool walk_kernel(CostWalk *w, Arena *arena, const Kernel *kernel,
                 const FeatureSetting *setting,
                 void (*on_access)(CostWalk *walk, void *user, const CountedAccess *access),
                 void *user)
{
    *w = (CostWalk){.arena = arena, .on_access = on_access, .user = user};
    w->exec = w->unguarded = w->spread = 1;
    table_init(&w->live, arena);
    if (!scope_init(&w->scope, arena, kernel, setting))
        return false;
    walk_block(w, &kernel->body);
    w->in_flight = MAX(w->in_flight, w->flight);
    w->registers = most_live(w);
    w->held = kernel_private_bytes(kernel);
    return true;
}
