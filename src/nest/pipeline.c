// SPDX-License-Identifier: Apache-2.0
//
// The stages of a program: see pipeline.h.
//
//   method  One walk over the host level. What is read point by point without a name is
//           part of its reader, as it is in the derivation. The time of a kernel is the
//           larger of two: the bytes that it must move, and the work of its points, where
//           a stage that is not stored is computed again for all points of the windows
//           that look at it, or once for the points of a tile and its halo.
//
// It does not know caches: bytes that are read again cost nothing.

#include "nest/pipeline.h"
#include "lower/lower.h"
#include "nest/nest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const StageRates stage_rates = {4000, 30000, 3000};

// Stages --------------------------------------------------------------------------------

typedef struct {
    ReadKind kind;
    int64_t size[DIMS_MAX];
    bool window;   // a slide is around
    bool folded;   // a fold folds it, which may read it by one join
    bool joined;   // and does
    bool constant; // a border of a constant is
} How;

typedef struct {
    const Param *param;
    int stage; // -1: value is a view with something in it
    const Expr *value;
    bool results; // all its components are
    // Whose reads were last collected through the value, of which component, and how.
    int reader;
    int field;
    How how;
} Held;

typedef struct {
    int reader; // each has a number of its own
    int n;
    bool many;
    double work;
    StageRead at[ARITY_MAX];
} Reads;

typedef struct {
    Pipeline *p;
    Ir *ir;
    const Param *const *input;
    int ninput;
    struct {
        const Param *param;
        int field;
    } source[ELEMS_MAX]; // of an element that is an input
    VEC(Held) held;
    int nreader;
    bool full;
} StageFinder;

static void collect(StageFinder *f, const Expr *expr, How how, Reads *reads);

static int new_elem(StageFinder *f, const char *name, int producer, const Type *type)
{
    Script *s = &f->p->script;
    if (s->nelem == ELEMS_MAX) {
        f->full = true;
        return 0;
    }
    s->elem[s->nelem] =
        (Elem){.name = name, .producer = producer, .type = type, .is_input = producer < 0};
    return s->nelem++;
}

static int input_elem(StageFinder *f, const Param *param, int field)
{
    Script *s = &f->p->script;
    for (int e = 0; e < s->nelem; e++)
        if (s->elem[e].is_input && f->source[e].param == param &&
            f->source[e].field == field)
            return e;
    Arena *arena = f->p->arena;
    bool part = field >= 0;
    const Type *type = part ? type_field(arena, param->type, field) : param->type;
    int e = new_elem(
        f, part ? arena_printf(arena, "%s.%d", param->name, field) : param->name, -1, type);
    f->source[e].param = param;
    f->source[e].field = field;
    s->ninput++;
    return e;
}

static void add_read(Reads *reads, int elem, const How *how)
{
    StageRead read = {.elem = elem, .kind = how->kind, .constant = how->constant};
    memcpy(read.size, how->size, sizeof read.size);
    ARRAY_EACH_REF(StageRead *, old, reads->at, reads->n) {
        if (old->elem != elem)
            continue;
        if (old->kind < read.kind)
            old->kind = read.kind;
        old->constant |= read.constant;
        for (int k = 0; k < DIMS_MAX; k++)
            old->size[k] = MAX(old->size[k], read.size[k]);
        return;
    }
    reads->many |= reads->n == ARITY_MAX;
    if (!reads->many)
        reads->at[reads->n++] = read;
}

static void collect_all(StageFinder *f, const Expr *expr, How how, Reads *reads)
{
    if (expr->fun) {
        How whole = how;
        whole.kind = READ_WHOLE;
        collect_all(f, expr->fun, whole, reads);
    }
    for (int i = 0; i < expr->narg; i++)
        collect(f, expr->arg[i], how, reads);
}

// A component of a value that is a tuple, or all of it.
static const Expr *held_value(const Held *held, int field)
{
    const Expr *value = held->value;
    return field >= 0 && value->kind == E_TUPLE ? value->arg[field] : value;
}

// Has the stage at hand not looked there in that way? Names of names would be looked
// through again for each way to them.
static bool is_new_look(Held *held, const Reads *reads, int field, const How *how)
{
    if (held->reader == reads->reader && held->field == field &&
        held->how.kind == how->kind && held->how.window == how->window &&
        held->how.constant == how->constant &&
        memcmp(held->how.size, how->size, sizeof how->size) == 0)
        return false;
    held->reader = reads->reader;
    held->field = field;
    held->how = *how;
    return true;
}

static void collect_param(StageFinder *f, const Expr *expr, int field, const How *how,
                          Reads *reads)
{
    for (int i = f->held.len - 1; i >= 0; i--) {
        Held *held = &f->held.at[i];
        if (held->param != expr->param)
            continue;
        if (held->stage >= 0)
            add_read(reads, f->p->script.call[held->stage].out, how);
        else if (is_new_look(held, reads, field, how))
            collect(f, held_value(held, field), *how, reads);
        return;
    }
    for (int i = 0; i < f->ninput; i++)
        if (f->input[i] == expr->param && type_holds_array(expr->param->type))
            add_read(reads, input_elem(f, expr->param, field), how);
}

// How often a pattern's function is applied.
typedef int64_t Applied(const Expr *expr);

static int64_t always(const Expr *expr)
{
    int64_t times = 1;
    const Type *data = expr->fun && expr->narg ? expr->arg[expr->narg - 1]->type : NULL;
    const Arith *loop = expr_is(expr, P_ITERATE)        ? expr->num[0]
                        : data && data->kind == T_ARRAY ? data->len
                                                        : NULL;
    return loop && arith_is_const(loop, &times) ? times : 1;
}

static double operations(const Expr *expr, Applied *applied)
{
    double n = expr->kind == E_OP && op_info[expr->op].kind != OPK_FREE;
    if (expr->kind == E_CALL)
        n += expr->callee->body ? operations(expr->callee->body, applied)
                                : expr->callee->flops;
    for (int i = 0; i < expr->narg; i++)
        n += operations(expr->arg[i], applied);
    return n + (expr->fun ? (double)applied(expr) * operations(expr->fun, applied) : 0);
}

double pipeline_operations(const Expr *expr)
{
    return operations(expr, always);
}

static int64_t unrolled(const Expr *expr)
{
    const int64_t times = always(expr);
    return times <= UNROLL_MOST ? times : 1;
}

static int64_t stepped(const Expr *expr)
{
    return expr_is(expr, P_ITERATE) ? unrolled(expr) : 1;
}

static int64_t stepped_by_item(const Expr *expr)
{
    return type_holds_array(expr->type) ? 1 : stepped(expr);
}

double pipeline_text(const Expr *expr, TextOf of)
{
    static Applied *const applied[] = {[TEXT_ITEM] = stepped_by_item,
                                       [TEXT_PROCESSOR] = stepped,
                                       [TEXT_UNROLLED] = unrolled};
    return operations(expr, applied[of]);
}

// Windows over what lies there, with or without a border.
static How through_slide(const Expr *slide, How how)
{
    bool plain = how.kind == READ_POINT && is_window(slide, slide->dims) && !how.joined;
    how.kind = how.kind == READ_WHOLE ? READ_WHOLE : plain ? READ_WINDOW : READ_LAYOUT;
    how.window = true;
    for (int k = 0; k < slide->dims; k++) {
        int64_t size = 1;
        if (!arith_is_const(slide->num[2 * k], &size))
            how.kind = READ_WHOLE;
        how.size[k] = MAX(1, how.size[k] + size - 1);
    }
    return how;
}

static void collect_pattern(StageFinder *f, const Expr *expr, How how, Reads *reads)
{
    int data = expr->narg - 1;
    switch (expr->pattern) {
    case P_MAP:
        reads->work += pipeline_operations(expr->fun->arg[0]);
        collect_all(f, expr, how, reads);
        return;
    case P_ZIP:
    case P_UNZIP: collect_all(f, expr, how, reads); return;
    case P_SLIDE: collect(f, expr->arg[data], through_slide(expr, how), reads); return;
    case P_PAD:
        if (how.kind == READ_POINT)
            how.kind = READ_LAYOUT;
        how.constant |= expr->mode == PAD_CONSTANT;
        collect_all(f, expr, how, reads);
        return;
    default:
        if (how.folded && !how.joined && how.kind == READ_POINT &&
            expr->pattern == P_JOIN) {
            how.joined = true;
            collect_all(f, expr, how, reads);
            return;
        }
        how.kind = pattern_info[expr->pattern].group == G_VIEW && expr->pattern != P_ARRAY
                       ? MAX(how.kind, READ_LAYOUT)
                       : READ_WHOLE;
        if (how.kind == READ_LAYOUT && how.window)
            how.kind = READ_WHOLE; // windows of something moved: rare
        collect_all(f, expr, how, reads);
    }
}

static void collect(StageFinder *f, const Expr *expr, How how, Reads *reads)
{
    if (expr->kind == E_AT || expr->kind == E_OP || expr->kind == E_CALL)
        how.kind = READ_WHOLE;
    if (expr->kind == E_PATTERN)
        collect_pattern(f, expr, how, reads);
    else if (expr->kind == E_PARAM)
        collect_param(f, expr, -1, &how, reads);
    else if (expr->kind == E_GET && expr->arg[0]->kind == E_PARAM)
        collect_param(f, expr->arg[0], expr->index, &how, reads);
    else
        collect_all(f, expr, how, reads);
}

// The reads of a pattern that computes at host level.
static void collect_stage(StageFinder *f, const Expr *expr, Reads *reads)
{
    How how = {.size = {1, 1, 1}, .folded = folds_together(expr)};
    bool elements = is_map(expr) || expr->pattern == P_REDUCE;
    if (!elements)
        how.kind = READ_WHOLE;
    if (expr->fun && expr->pattern != P_ITERATE)
        reads->work += pipeline_operations(expr->fun->arg[0]);
    collect_all(f, expr, how, reads);
    for (int i = 0; i < reads->n; i++) {
        double size = 1;
        for (int k = 0; k < DIMS_MAX; k++)
            size *= (double)reads->at[i].size[k];
        reads->work += size;
    }
}

static const Elementary *kind_of(StageFinder *f, const Expr *expr, bool many)
{
    Elementary *e = NEW(f->p->arena, Elementary);
    bool alone = many || !(is_map(expr) || expr->pattern == P_REDUCE);
    e->kind = alone ? FUNCTION_ALONE : is_map(expr) ? FUNCTION_MAP : FUNCTION_SUM;
    e->name = pattern_info[expr->pattern].text;
    e->folds = expr_find(expr, is_nest, NULL);
    e->nimpl = 1;
    return e;
}

static int add_stage(StageFinder *f, const Expr *expr, const char *name, int let)
{
    Pipeline *p = f->p;
    Reads reads = {.reader = ++f->nreader};
    collect_stage(f, expr, &reads);
    int v = p->script.ncall;
    if (f->full || v == CALLS_MAX) {
        f->full = true;
        return -1;
    }
    p->script.ncall++;
    Stage *stage = &p->stage[v];
    *stage = (Stage){.name = name,
                     .expr = expr,
                     .let = let,
                     .is_map = is_map(expr),
                     .dims = is_map(expr) ? expr->dims : 0,
                     .work = reads.work,
                     .nread = reads.n};
    memcpy(stage->read, reads.at, sizeof stage->read);
    Call *call = &p->script.call[v];
    *call = (Call){.function = kind_of(f, expr, reads.many), .span = expr->span};
    call->out = new_elem(f, stage->name, v, expr->type);
    Elementary *function = (Elementary *)(uintptr_t)call->function; // ours
    function->nparam = reads.n;
    for (int i = 0; i < reads.n; i++) {
        call->in[i] = reads.at[i].elem;
        elem_add_user(&p->script.elem[call->in[i]], v);
    }
    return v;
}

// The host level ------------------------------------------------------------------------

static bool is_stage(const Expr *expr)
{
    return expr_in_group(expr, G_ALGO) && expr->pattern != P_ARRAY;
}

// Is it a component of what the kernel of a let writes, all of which are results?
static bool is_made(const StageFinder *f, const Expr *result)
{
    int field;
    const Param *param = placed_result(result, &field);
    for (int i = 0; param && i < f->held.len; i++)
        if (f->held.at[i].param == param)
            return f->held.at[i].results;
    return false;
}

static void take_result(StageFinder *f, const Expr *expr)
{
    if (is_stage(expr) && !is_made(f, expr)) {
        int stage = add_stage(f, expr, "out", -1);
        if (stage >= 0) {
            Elem *elem = &f->p->script.elem[f->p->script.call[stage].out];
            elem->is_output = elem->is_sole = true;
        }
    } else if (expr->kind == E_TUPLE) {
        for (int i = 0; i < expr->narg; i++)
            take_result(f, expr->arg[i]);
    } else if (writes_itself(expr)) {
        take_result(f, expr->arg[0]);
    } else {
        Reads reads = {.reader = ++f->nreader};
        collect(f, expr, (How){.size = {1, 1, 1}}, &reads);
        for (int i = 0; i < reads.n; i++)
            f->p->script.elem[reads.at[i].elem].is_output = true;
    }
}

static void take_chain(StageFinder *f, const Expr *expr)
{
    Pipeline *p = f->p;
    for (; expr->kind == E_LET; expr = expr->arg[1]) {
        if (p->nlet == CALLS_MAX) {
            f->full = true;
            return;
        }
        Held held = {.param = expr->param,
                     .stage = -1,
                     .value = expr->arg[0],
                     .results = makes_results(expr)};
        if (is_stage(expr->arg[0]))
            held.stage = add_stage(f, expr->arg[0], expr->param->name, p->nlet);
        if (held.stage >= 0)
            p->stage[held.stage].param = expr->param;
        p->let_stage[p->nlet++] = held.stage;
        VEC_PUSH(p->arena, &f->held, held);
    }
    take_result(f, expr);
}

// What follows from all reads -----------------------------------------------------------

// A size that is still an argument of the kernel is as good as any.
static int64_t guessed(const void *user, const Arith *len)
{
    int64_t length = 1024;
    arith_is_const(len, &length);
    return length;
}

static double scalars(const Type *type)
{
    double n = 1;
    for (; type->kind == T_ARRAY; type = type->elem)
        n *= (double)guessed(NULL, type->len);
    return n;
}

static double scalar_bytes(const Type *type)
{
    type = type_leaf(type);
    double bytes = 0;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        bytes += scalar_bytes(type->item[i]);
    if (type->kind == T_TUPLE)
        return bytes;
    return (double)scalar_info[type->scalar].bytes * MAX(type->width, 1);
}

// The axis that a map or a fold of one dimension goes along; NULL: of others.
static const Arith *axis_of(const Stage *stage)
{
    if (folds_together(stage->expr))
        return stage->expr->arg[1]->type->len;
    return stage->is_map && stage->dims == 1 ? stage->expr->type->len : NULL;
}

static bool same_axes(ArithCtx *ctx, const Type *a, const Type *b, int dims)
{
    for (int k = 0; a && b && k < dims; k++)
        if (!arith_equal(ctx, type_elem(a, k)->len, type_elem(b, k)->len))
            return false;
    return dims && a && b;
}

// The type that joins made a list of, which is the same for each part; NULL: there is none.
static const Type *joined_type(ArithCtx *ctx, const Expr *in, int dims)
{
    if (is_map(in) || is_zip(in, 1)) {
        const Type *all = joined_type(ctx, in->arg[0], dims);
        for (int i = 1; i < in->narg; i++)
            if (!same_axes(ctx, all, joined_type(ctx, in->arg[i], dims), dims))
                return NULL;
        return all;
    }
    for (; dims > 1 && expr_is(in, P_JOIN); dims--)
        in = in->arg[0];
    return dims > 1 ? NULL : in->type;
}

// What has the axes of a map in several dimensions: its type, or that of what a fold joins;
// NULL: it is neither.
static const Type *axes_of(ArithCtx *ctx, const Stage *stage, int dims)
{
    if (!stage->is_map && folds_together(stage->expr))
        return joined_type(ctx, stage->expr->arg[1], dims);
    return stage->dims == dims ? stage->expr->type : NULL;
}

static bool same_shape(ArithCtx *ctx, const Stage *a, const Stage *b)
{
    if (axis_of(a) && axis_of(b))
        return arith_equal(ctx, axis_of(a), axis_of(b));
    const int dims = MAX(a->dims, b->dims);
    return same_axes(ctx, axes_of(ctx, a, dims), axes_of(ctx, b, dims), dims);
}

static bool picks_elements(const Expr *expr, const void *none)
{
    return expr->kind == E_AT || expr_is(expr, P_GATHER) || moves_elements(expr, none);
}

// Rows of any length that an item goes through one element after the other, and a reader
// that folds them or wants them in another order: the item would keep all of a row.
static bool keeps_walked(const Stage *s, const Stage *reader)
{
    const Type *row = walks_lines(s->expr) ? s->expr->type->elem : NULL;
    return row && row->kind == T_ARRAY && !arith_is_const(row->len, NULL) &&
           reader->is_map &&
           (has_fold(reader->expr) || expr_find_pattern(reader->expr, P_SCAN) ||
            expr_find(reader->expr->fun, picks_elements, NULL));
}

// Few rows or columns that are long: folded apart from their readers, they are folded in
// parts. (A row is a group's, a column an item's.)
static bool folds_few(const Stage *s)
{
    enum { LONG_LEAST = 64 << 10, ROWS_MOST = 128 };
    enum { TALL_LEAST = 2 << 10, COLUMNS_MOST = 64 << 10 };
    const bool columns = is_map(s->expr) && reads_columns(s->expr);
    int64_t rows;
    return is_map(s->expr) && chain_split(s->expr) >= (columns ? TALL_LEAST : LONG_LEAST) &&
           arith_is_const(s->expr->type->len, &rows) &&
           rows <= (columns ? COLUMNS_MOST : ROWS_MOST);
}

// Arrays, of which an item would make all of one by itself, and that a reader reads again.
static bool makes_arrays(const Stage *s, const Stage *reader)
{
    return s->is_map && s->param && type_elem(s->expr->type, s->dims)->kind == T_ARRAY &&
           is_read_again(reader->expr, s->param);
}

// Rows of as few elements as an item has in registers, with a fold of more, or by key, that
// all of them read: each element of a reader's would find it again.
static bool makes_few(const Stage *s)
{
    enum { FEW = 16 };
    const int64_t more = FEW + 1;
    const Type *row = s->is_map ? type_elem(s->expr->type, s->dims) : NULL;
    return s->costly_rows && s->param && type_leaves(row) == 1 &&
           type_bytes(row, NULL, NULL) <= FEW * scalar_info[type_leaf(row)->scalar].bytes &&
           (expr_find(s->expr, is_long_nest, &more) ||
            expr_find_pattern(s->expr, P_REDUCEBY));
}

// In two dimensions only results that a fold reads are made with it: another array is not
// stored at all where the fold finds it again. In three none is: windows of a list lie too
// far apart. (H200, a step of conjugate gradients on 256^3 floats: 293 us, apart 211.)
static bool may_fold_with(const Pipeline *p, int fold, int made)
{
    const Stage *a = &p->stage[made], *b = &p->stage[fold];
    return a->is_map == b->is_map || a->dims == 1 || b->dims == 1 ||
           (a->is_map && a->dims == 2 &&
            p->script.elem[p->script.call[made].out].is_output &&
            pipeline_read(p, fold, made));
}

static void finish_stages(StageFinder *f)
{
    Pipeline *p = f->p;
    Script *s = &p->script;
    for (int v = 0; v < s->ncall; v++) {
        Stage *stage = &p->stage[v];
        Elem *elem = &s->elem[s->call[v].out];
        stage->points = stage->is_map ? 1 : scalars(stage->expr->type);
        const Type *type = stage->expr->type;
        for (int k = 0; k < stage->dims; k++, type = type->elem)
            stage->points *= (double)guessed(NULL, type->len);
        p->points = fmax(p->points, stage->points);
        elem->shape = v;
        for (int u = v - 1; u >= 0 && elem->shape == v; u--)
            if (same_shape(f->ir->arith, &p->stage[u], stage) && may_fold_with(p, v, u))
                elem->shape = s->elem[s->call[u].out].shape;
        elem->is_output |= !elem_is_used(elem);
        elem->is_sole |= stage->let < 0;
        stage->costly_rows = stage->is_map &&
                             type_elem(stage->expr->type, stage->dims)->kind == T_ARRAY &&
                             expr_find(stage->expr, is_nest, NULL);
        for (int i = 0; i < stage->nread; i++) {
            int from = s->elem[stage->read[i].elem].producer;
            const Stage *made = from >= 0 ? &p->stage[from] : NULL;
            stage->read[i].stored = made && (folds_few(made) || keeps_walked(made, stage) ||
                                             makes_arrays(made, stage) || makes_few(made));
            if (made && stage->read[i].kind == READ_WHOLE) {
                Elementary *e = (Elementary *)(uintptr_t)s->call[from].function;
                e->kind = MAX(e->kind, FUNCTION_SUM);
            }
        }
    }
    for (int e = 0; e < s->nelem; e++)
        s->elem[e].words =
            (int)fmin(round(type_bytes(s->elem[e].type, guessed, NULL) / p->points), 1e6);
}

// Questions -----------------------------------------------------------------------------

bool pipeline_stores(const Pipeline *p, Calls set, int stage)
{
    const Elem *elem = &p->script.elem[p->script.call[stage].out];
    return calls_have(set, stage) && elem_leaves(elem, set);
}

int pipeline_end(Calls set)
{
    return set.first + (set.set ? 64 - __builtin_clzll(set.set) : 0);
}

const StageRead *pipeline_read(const Pipeline *p, int stage, int of)
{
    const Stage *reader = &p->stage[stage];
    for (int i = 0; i < reader->nread; i++)
        if (p->script.elem[reader->read[i].elem].producer == of)
            return &reader->read[i];
    return NULL;
}

bool pipeline_reads(const Pipeline *p, int stage, int of, ReadKind kind)
{
    const StageRead *read = pipeline_read(p, stage, of);
    return read && read->kind == kind;
}

// All paths between calls of a convex set lie in it.
Set pipeline_before(const Pipeline *p, Calls set, int stage)
{
    const Set self = (Set)1 << (stage - set.first);
    Set found = self;
    for (int v = stage - 1; v >= set.first; v--) {
        const Elem *elem = &p->script.elem[p->script.call[v].out];
        if (calls_have(set, v) && (elem_users(elem, set.first) & found))
            found |= (Set)1 << (v - set.first);
    }
    return found & ~self;
}

bool pipeline_after_store(const Pipeline *p, Calls set, int stage)
{
    for (Set s = pipeline_before(p, set, stage); s; s &= s - 1)
        if (pipeline_stores(p, set, set.first + __builtin_ctzll(s)))
            return true;
    return false;
}

// Is it stored, or only read point by point by what is? So its windows are the kernel's.
static bool at_root(const Pipeline *p, Calls set, int stage)
{
    if (pipeline_stores(p, set, stage))
        return true;
    for (int v = stage + 1; v < pipeline_end(set); v++)
        if (calls_have(set, v) && pipeline_reads(p, v, stage, READ_POINT) &&
            at_root(p, set, v))
            return true;
    return false;
}

// Do windows of the kernel look at it, or at what is read of it point by point? A border of
// a constant is not one of what lies below.
static bool looked_at(const Pipeline *p, Calls set, int stage, bool below)
{
    for (int v = stage + 1; v < pipeline_end(set); v++) {
        const StageRead *read = calls_have(set, v) ? pipeline_read(p, v, stage) : NULL;
        if (read && read->kind == READ_WINDOW && p->stage[v].dims == p->stage[stage].dims &&
            !(below && read->constant) && at_root(p, set, v))
            return true;
        if (read && read->kind == READ_POINT && p->stage[v].let >= 0 &&
            p->stage[v].dims == p->stage[stage].dims && !pipeline_stores(p, set, v) &&
            looked_at(p, set, v, true))
            return true;
    }
    return false;
}

bool pipeline_tiles(const Pipeline *p, Calls set, int stage)
{
    const Stage *s = &p->stage[stage];
    return calls_have(set, stage) && !pipeline_stores(p, set, stage) && s->let >= 0 &&
           s->is_map && !pipeline_after_store(p, set, stage) &&
           looked_at(p, set, stage, false);
}

Calls pipeline_set(const Pipeline *p, const Cover *cover, int unit)
{
    return fusion_calls(&p->space->fusion.at[cover->unit[unit]]);
}

int64_t pipeline_bytes(const Pipeline *p, int stage)
{
    return (int64_t)scalar_bytes(p->stage[stage].expr->type);
}

// Two stages of which one reads the other point by point do not both have tiles: nobody
// would read the tile of the first.
static double placements(const Script *script, const Fusion *fusion)
{
    const Pipeline *p = (const void *)((const char *)script - offsetof(Pipeline, script));
    int stage[MEMBERS_MAX], n = 0, ways = 0;
    const Calls calls = fusion_calls(fusion);
    for (int v = calls.first; v < pipeline_end(calls); v++)
        if (pipeline_tiles(p, calls, v))
            stage[n++] = v;
    for (unsigned local = 0; local < 1u << n; local++) {
        bool ok = true;
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                ok &= !(local >> i & local >> k & 1) ||
                      !pipeline_reads(p, stage[i], stage[k], READ_POINT);
        ways += ok;
    }
    return ways;
}

// Times ---------------------------------------------------------------------------------

// Outputs of a group along x and along what is further out; work that a tile adds to each
// read of it.
enum { TILE_X = 64, TILE_Y = 16, TILE_WORK = 2 };
// The same where warps walk: lanes of four columns, and rows.
enum { STRIP_X = 128, STRIP_Y = 128 };

typedef struct {
    int64_t size[DIMS_MAX]; // points of the stage that a point of the kernel needs
    double tile;            // the same where a tile holds it, of one point
} Need;

double pipeline_volume(const int64_t *size)
{
    double n = 1;
    for (int k = 0; k < DIMS_MAX; k++)
        n *= (double)size[k];
    return n;
}

static double of_tile(const Need *need, int dims, int x, int y)
{
    double n = 1;
    for (int k = 0; k < dims; k++)
        n *= 1 + (double)(need->size[k] - 1) / (k == dims - 1 ? x : y);
    return n;
}

static void need_of(const Pipeline *p, Calls set, int stage, const Need *of, Need *need)
{
    *need = (Need){{1, 1, 1}, 1};
    for (int v = stage + 1; v < pipeline_end(set); v++)
        for (int i = 0; calls_have(set, v) && i < p->stage[v].nread; i++) {
            const StageRead *read = &p->stage[v].read[i];
            if (p->script.elem[read->elem].producer != stage)
                continue;
            for (int k = 0; k < DIMS_MAX; k++)
                need->size[k] =
                    MAX(need->size[k], of[v - set.first].size[k] + read->size[k] - 1);
        }
}

double pipeline_time(const Pipeline *p, Calls set, const StageRates *rates)
{
    const Script *s = &p->script;
    Need needs[PART_MAX];
    double bytes = 0, work = 0;
    for (int v = pipeline_end(set) - 1; v >= set.first; v--) {
        if (!calls_have(set, v))
            continue;
        const Stage *stage = &p->stage[v];
        Need *need = &needs[v - set.first];
        need_of(p, set, v, needs, need);
        double again = pipeline_volume(need->size) * stage->work;
        if (pipeline_tiles(p, set, v))
            again = fmin(again, of_tile(need, stage->dims, TILE_X, TILE_Y) * stage->work +
                                    TILE_WORK * pipeline_volume(need->size));
        if (p->streams)
            again = fmin(again, of_tile(need, stage->dims, STRIP_X, STRIP_Y) * stage->work);
        work += again * (stage->is_map ? stage->points : p->points);
    }
    for (int e = 0; e < s->nelem; e++) {
        int from = s->elem[e].producer;
        bool loads = (from < 0 || !calls_have(set, from)) &&
                     (elem_users(&s->elem[e], set.first) & set.set);
        if (loads || (from >= 0 && pipeline_stores(p, set, from)))
            bytes += type_bytes(s->elem[e].type, guessed, NULL);
    }
    // What is hidden behind the larger part costs a little all the same.
    double move = bytes / rates->gbs, compute = work / rates->ops;
    return fmax(move, compute) + 0.1 * fmin(move, compute) + rates->launch_ns;
}

double pipeline_least(const Pipeline *p, const StageRates *rates)
{
    double bytes = 0;
    for (int e = 0; e < p->script.nelem; e++)
        if (p->script.elem[e].is_input || p->script.elem[e].is_output)
            bytes += type_bytes(p->script.elem[e].type, guessed, NULL);
    return bytes / rates->gbs + rates->launch_ns;
}

// Entry ---------------------------------------------------------------------------------

// The stages of one region; NULL if there are not two, nor were before they became one.
static Pipeline *region_stages(Rewriter *r, const Path *region, const Param *const *input,
                               int ninput)
{
    Arena *arena = arena_new();
    Pipeline *p = NEW(arena, Pipeline);
    p->arena = p->script.arena = arena;
    p->region = *region;
    p->script.ir = r->ir;
    p->script.impls = placements;
    p->script.is_step = region->n;
    StageFinder f = {.p = p, .ir = r->ir, .input = input, .ninput = ninput};
    const Expr *as_written = r->expr;
    pipeline_normalise(r, region);
    take_chain(&f, path_find(r->expr, region));
    if (f.full || p->script.ncall < 1 + (r->expr == as_written)) {
        pipeline_free(p);
        return NULL;
    }
    finish_stages(&f);
    return p;
}

static bool goes_on(Ir *ir, const Expr *body)
{
    return body->kind == E_LET || expr_is(body, P_ITERATE) || is_loop_result(ir, body);
}

// The iterate that a chain of lets ends with, or that its last let names; NULL: neither.
static const Expr *last_iterate(Ir *ir, const Expr *body, Path *path)
{
    while (body->kind == E_LET || is_loop_result(ir, body)) {
        const bool named = body->kind == E_LET && expr_is(body->arg[0], P_ITERATE) &&
                           !goes_on(ir, body->arg[1]);
        const int next = body->kind == E_LET && !named;
        if (!path_push(path, next))
            return NULL;
        body = body->arg[next];
    }
    return expr_is(body, P_ITERATE) && path_push(path, CHILD_FUN) ? body : NULL;
}

Pipeline *pipeline_new(Ir *ir, const Expr *body, Param *const *input, int ninput,
                       const StageRates *rates, int covers, int limit, bool streams)
{
    Path inner = {0};
    Rewriter r;
    rewriter_init(&r, ir, ir->arena, body);
    const Expr *loop = last_iterate(ir, r.expr, &inner);
    Pipeline *p = NULL;
    if (loop)
        p = region_stages(&r, &inner, (const Param *const *)loop->fun->params,
                          loop->fun->nparam);
    if (!p) {
        rewriter_init(&r, ir, ir->arena, body);
        p = region_stages(&r, &(Path){0}, (const Param *const *)input, ninput);
    }
    if (!p)
        return NULL;
    p->streams = streams && !p->region.n;
    p->space = fuse_space(&p->script, limit ? limit : PIPELINE_LIMIT, p->arena);
    pipeline_find_covers(p, rates, covers);
    return p;
}

void pipeline_free(Pipeline *p)
{
    if (p)
        arena_free(p->arena);
}
