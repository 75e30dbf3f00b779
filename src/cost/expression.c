// SPDX-License-Identifier: Apache-2.0
//
// Features of a lowered functional expression.
//
//   source  paper 000: Algorithm 1 (loads and stores at applications of scalar functions,
//           by address space, times the lengths of the maps around), section 4.3 (loops,
//           and where an `if` or nothing stands for one), section 4.4 (boundary conditions
//           ignored)
//   method  Values carry only where they are stored. Indexing and layout change nothing of
//           that, so both are the identity. A map that nobody lowered is computed where it
//           is read; a copy stores what it loads. Barriers that are left, and the indices
//           for cache lines, come from lowering the expression with its loops kept.
//
// Scalar operations inside a `fun` touch no memory and are not looked at.

#include "cost/lines.h"
#include "cost/walk.h"

#include <string.h>

typedef enum {
    AT_MEMORY, // stored in `space`
    AT_TUPLE,  // a tuple, or arrays of tuples: one place a component
    AT_FIELD,  // a component of what is not computed yet
    AT_READ,   // a map, a generated array, a scalar: computed where it is read
} PlaceKind;

typedef struct Place Place;
typedef struct Names Names;

struct Place {
    PlaceKind kind;
    AddrSpace space;
    const Place *const *item;
    const Place *src; // FIELD; READ of a map: its argument
    int field;
    const Expr *expr; // READ
    const Names *names;
};

// What parameters stand for; newest first.
struct Names {
    const Param *param;
    const Place *place;
    const Names *next;
};

typedef struct {
    double global[3], local[3], threads, launches, accesses, local_bytes;
} Grid;

typedef struct {
    Arena *arena;
    const LowerOptions *options;
    const FeatureSetting *setting;
    double iterations; // Algorithm 1: of all work-items together
    double exec;       // of one work-item
    double launches;
    int inside[4]; // loops of each kind around us
    int guards;    // conditions on the writing side
    bool in_kernel;
    Grid grid, main; // of this kernel; of the one with the most accesses
    double threads;  // of all launches
    double loads[3], stores[3], ifs, bodies;
    bool unbound; // a size has no value
} Count;

static const Place memory[] = {
    {.space = MEM_GLOBAL}, {.space = MEM_LOCAL}, {.space = MEM_PRIVATE}};

static const Place *eval(Count *c, const Expr *expr, const Names *names);
static void gen(Count *c, const Expr *expr, const Names *names, AddrSpace to);
static void read_place(Count *c, const Place *place, const Type *type);

// Sizes -------------------------------------------------------------------------------

static bool lookup_size(void *user, const Arith *var, int64_t *value)
{
    const Count *c = user;
    for (int i = 0; i < c->setting->nbinding; i++)
        if (strcmp(c->setting->binding[i].name, var->name) == 0) {
            *value = c->setting->binding[i].value;
            return true;
        }
    return false;
}

static double known(Count *c, const Arith *a)
{
    int64_t value = 1;
    if (!arith_is_const(a, &value) && !arith_eval(a, lookup_size, c, &value))
        c->unbound = true;
    return (double)value;
}

static void add_bytes(Count *c, const Type *type, double *bytes)
{
    const Type *tuple = type_tuple_of(type);
    double count = 1;
    while (type->kind == T_ARRAY) {
        count *= known(c, type->len);
        type = type->elem;
    }
    if (tuple)
        for (int i = 0; i < tuple->n; i++) {
            double item = 0;
            add_bytes(c, tuple->item[i], &item);
            *bytes += count * item;
        }
    else
        *bytes += count * scalar_info[type->scalar].bytes *
                  (type->kind == T_VECTOR ? type->width : 1);
}

// Places ------------------------------------------------------------------------------

static const Place *place_new(Count *c, Place place)
{
    Place *copy = NEW(c->arena, Place);
    *copy = place;
    return copy;
}

static const Place *field_of(Count *c, const Place *place, int field)
{
    switch (place->kind) {
    case AT_MEMORY: return place;
    case AT_TUPLE: return place->item[field];
    case AT_FIELD:
    case AT_READ: break;
    }
    return place_new(c, (Place){.kind = AT_FIELD, .src = place, .field = field});
}

// A scalar that is computed gets a name: it is computed once.
static const Names *bind(Count *c, const Names *names, const Param *param,
                         const Place *place, const Expr *body)
{
    if (place->kind == AT_READ && place->expr->kind != E_PATTERN &&
        type_is_scalar(param->type ? param->type : place->expr->type) &&
        expr_mentions(body, param)) {
        read_place(c, place, place->expr->type);
        place = &memory[MEM_PRIVATE];
    }
    Names *bound = NEW(c->arena, Names);
    *bound = (Names){param, place, names};
    return bound;
}

// What a map or a generated array gives where it is read.
static const Place *element_of(Count *c, const Place *place)
{
    const Expr *f = place->expr->fun;
    const Names *names = place->names;
    for (int i = 0; i < f->nparam; i++)
        names = bind(c, names, f->params[i], place->src ? place->src : &memory[MEM_PRIVATE],
                     f->arg[0]);
    return eval(c, f->arg[0], names);
}

static void load(Count *c, AddrSpace space)
{
    c->loads[space] += c->iterations;
    c->grid.accesses += space == MEM_GLOBAL ? c->iterations : 0;
}

static void store(Count *c, AddrSpace space)
{
    c->stores[space] += c->iterations;
    c->grid.accesses += space == MEM_GLOBAL ? c->iterations : 0;
    if (c->guards)
        c->ifs += c->exec * c->grid.threads * c->grid.launches;
}

// Through the functions of maps and generated arrays, to memory, a tuple or an operation.
static const Place *resolve(Count *c, const Place *place)
{
    if (place->kind == AT_FIELD) {
        const Place *src = resolve(c, place->src);
        return src->kind == AT_TUPLE ? resolve(c, src->item[place->field]) : src;
    }
    if (place->kind == AT_READ && place->expr->kind == E_PATTERN)
        return resolve(c, element_of(c, place));
    return place;
}

static void read_scalar(Count *c, const Place *place)
{
    place = resolve(c, place);
    if (place->kind == AT_MEMORY) {
        load(c, place->space);
        return;
    }
    if (place->kind != AT_READ)
        BUG("a tuple read as a scalar");
    for (int i = 0; i < place->expr->narg; i++)
        read_place(c, eval(c, place->expr->arg[i], place->names),
                   place->expr->arg[i]->type);
}

// All scalars of a value.
static void read_place(Count *c, const Place *place, const Type *type)
{
    double iterations = c->iterations, exec = c->exec;
    for (; type->kind == T_ARRAY; type = type->elem) {
        double n = known(c, type->len);
        c->iterations *= n;
        c->exec *= n;
    }
    if (type->kind == T_TUPLE)
        for (int i = 0; i < type->n; i++)
            read_place(c, field_of(c, place, i), type->item[i]);
    else
        read_scalar(c, place);
    c->iterations = iterations;
    c->exec = exec;
}

// Kernels and loops -------------------------------------------------------------------

typedef struct {
    double extent[3][3]; // by LOOP_GLB to LOOP_LCL and dimension; 0: none
} Extents;

static LoopKind loop_of(Pattern pattern)
{
    switch (pattern) {
    case P_MAPGLB: return LOOP_GLB;
    case P_MAPWRG: return LOOP_WRG;
    case P_MAPLCL: return LOOP_LCL;
    default: return LOOP_SEQ;
    }
}

static void find_extents(Count *c, const Expr *expr, bool arguments, Extents *found)
{
    LoopKind kind = expr->kind == E_PATTERN ? loop_of(expr->pattern) : LOOP_SEQ;
    if (kind != LOOP_SEQ) {
        double *extent = &found->extent[kind - LOOP_GLB][expr->par];
        *extent = MAX(*extent, known(c, expr->type->len));
    }
    if (expr->fun)
        find_extents(c, expr->fun, true, found);
    for (int i = 0; arguments && i < expr->narg; i++)
        find_extents(c, expr->arg[i], true, found);
}

static void set_grid(Count *c, const Extents *found)
{
    c->grid = (Grid){.threads = 1, .launches = c->launches};
    for (int d = 0; d < 3; d++) {
        double glb = found->extent[0][d], wrg = found->extent[1][d];
        double wanted = (double)c->options->local[d];
        double local = (glb || found->extent[2][d]) && wanted ? wanted : 1;
        double groups = glb ? (double)(((int64_t)glb + (int64_t)local - 1) / (int64_t)local)
                            : MAX(wrg, 1);
        bool given = c->options->global[d] && (glb || wrg);
        c->grid.local[d] = local;
        c->grid.global[d] = given ? (double)c->options->global[d] : groups * local;
        c->grid.threads *= c->grid.global[d];
    }
}

// Begins a kernel for what is written at host level, if we are there.
static bool begin_kernel(Count *c, const Expr *expr)
{
    if (c->in_kernel)
        return false;
    Extents found = {0};
    find_extents(c, expr, false, &found);
    set_grid(c, &found);
    c->in_kernel = true;
    c->exec = 1;
    c->iterations = c->launches;
    c->threads += c->grid.threads * c->launches;
    return true;
}

static void end_kernel(Count *c, bool begun)
{
    if (!begun)
        return;
    c->in_kernel = false;
    if (c->grid.accesses >= c->main.accesses)
        c->main = c->grid;
}

static double threads_along(const Count *c, LoopKind kind, int dim)
{
    switch (kind) {
    case LOOP_GLB: return c->grid.global[dim];
    case LOOP_WRG: return c->grid.global[dim] / c->grid.local[dim];
    case LOOP_LCL: return c->grid.local[dim];
    case LOOP_SEQ: break;
    }
    return 1;
}

typedef struct {
    double iterations, exec;
    LoopKind kind;
} Outer;

static Outer enter_loop(Count *c, LoopKind kind, int dim, bool unrolled, double n)
{
    Outer outer = {c->iterations, c->exec, kind};
    double all = c->grid.threads * c->grid.launches, threads = threads_along(c, kind, dim);
    bool inferred = kind != LOOP_LCL && !c->options->global[0];
    c->inside[kind]++;
    c->iterations *= n;
    c->exec *= n / threads;
    if (kind == LOOP_SEQ)
        c->bodies += n <= 1 || unrolled ? 0 : c->exec * all;
    else if (n < threads || (inferred && n != threads))
        c->ifs += outer.exec * all;
    else if (n > threads)
        c->bodies += c->exec * all;
    return outer;
}

static void leave_loop(Count *c, Outer outer)
{
    c->inside[outer.kind]--;
    c->iterations = outer.iterations;
    c->exec = outer.exec;
}

static bool is_unrolled(const Count *c, Pattern pattern, double n)
{
    return (pattern == P_MAPUNROLL || pattern == P_REDUNROLL) &&
           n <= c->options->unroll_cap;
}

// Values ------------------------------------------------------------------------------

static AddrSpace default_space(const Count *c)
{
    if (c->inside[LOOP_LCL] || c->inside[LOOP_GLB])
        return MEM_PRIVATE;
    return c->inside[LOOP_WRG] ? MEM_LOCAL : c->in_kernel ? MEM_PRIVATE : MEM_GLOBAL;
}

static const Place *materialise(Count *c, const Expr *expr, const Names *names,
                                AddrSpace space)
{
    if (space == MEM_PRIVATE && !c->in_kernel)
        space = MEM_GLOBAL;
    bool shared = space == MEM_LOCAL;
    gen(c, expr, names, space);
    if (shared)
        add_bytes(c, expr->type, &c->grid.local_bytes);
    return &memory[space];
}

// The combining function applied to the accumulator and each element.
static bool has_items(const Expr *expr)
{
    if (expr->kind == E_PATTERN && expr->pattern == P_MAPLCL)
        return true;
    for (int i = 0; i < expr->narg; i++)
        if (has_items(expr->arg[i]))
            return true;
    return expr->fun && has_items(expr->fun->arg[0]);
}

// How many items of a group do what stands beside its mapLcl, and not in one: all.
static double by_items(const Count *c, const Expr *function)
{
    bool all = c->inside[LOOP_WRG] && !c->inside[LOOP_LCL] && !c->inside[LOOP_SEQ] &&
               !has_items(function->arg[0]);
    return all ? c->grid.local[0] * c->grid.local[1] * c->grid.local[2] : 1;
}

static void fold(Count *c, const Expr *expr, const Names *names, const Place *in,
                 const AddrSpace *out)
{
    const Expr *f = expr->fun, *array = expr->arg[1];
    double n = known(c, array->type->len), items = by_items(c, f);
    Outer outer = enter_loop(c, LOOP_SEQ, 0, is_unrolled(c, expr->pattern, n), n);
    c->iterations *= items;
    names = bind(c, names, f->params[0], &memory[MEM_PRIVATE], f->arg[0]);
    names = bind(c, names, f->params[1], in, f->arg[0]);
    read_place(c, eval(c, f->arg[0], names), f->arg[0]->type);
    if (out)
        store(c, *out);
    leave_loop(c, outer);
}

static const Place *eval_reduce(Count *c, const Expr *expr, const Names *names)
{
    if (!c->in_kernel)
        return materialise(c, expr, names, MEM_GLOBAL);
    read_place(c, eval(c, expr->arg[0], names), expr->arg[0]->type);
    fold(c, expr, names, eval(c, expr->arg[1], names), NULL);
    return &memory[MEM_PRIVATE];
}

static const Place *eval_iterate(Count *c, const Expr *expr, const Names *names)
{
    if (!c->in_kernel)
        return materialise(c, expr, names, MEM_GLOBAL);
    const Place *state = eval(c, expr->arg[0], names);
    const Expr *f = expr->fun;
    double n = known(c, expr->num[0]);
    if (n > c->options->unroll_cap || repeat_ends(expr)) { // at most so many
        Outer outer = enter_loop(c, LOOP_SEQ, 0, false, n);
        names = bind(c, names, f->params[0], &memory[MEM_PRIVATE], f->arg[0]);
        read_place(c, eval(c, f->arg[0], names), f->arg[0]->type);
        leave_loop(c, outer);
        return &memory[MEM_PRIVATE];
    }
    for (double k = n; k > 0; k--)
        state = materialise(c, f->arg[0], bind(c, names, f->params[0], state, f->arg[0]),
                            default_space(c));
    return state;
}

static const Place *eval_items(Count *c, const Expr *expr, const Names *names)
{
    const Place **item = NEW_ARRAY(c->arena, const Place *, expr->narg);
    for (int i = 0; i < expr->narg; i++)
        item[i] = eval(c, expr->arg[i], names);
    return place_new(c, (Place){.kind = AT_TUPLE, .item = item});
}

static const Place *where_read(Count *c, const Expr *expr, const Names *names,
                               const Place *src)
{
    return place_new(c, (Place){.kind = AT_READ, .expr = expr, .names = names, .src = src});
}

static const Place *eval_pattern(Count *c, const Expr *expr, const Names *names)
{
    const Expr *last = expr->narg ? expr->arg[expr->narg - 1] : NULL;
    switch (expr->pattern) {
    case P_ZIP: return eval_items(c, expr, names);
    case P_REDUCE:
    case P_REDSEQ:
    case P_REDMATRIX:
    case P_REDUNROLL: return eval_reduce(c, expr, names);
    case P_ITERATE:
    case P_ITERSTREAM: return eval_iterate(c, expr, names);
    case P_TOGLOBAL: return materialise(c, last, names, MEM_GLOBAL);
    case P_TOLOCAL: return materialise(c, last, names, MEM_LOCAL);
    case P_TOPRIVATE: return materialise(c, last, names, MEM_PRIVATE);
    case P_MAP: return where_read(c, expr, names, eval(c, last, names));
    case P_ARRAY: return where_read(c, expr, names, NULL);
    case P_UNZIP:
    case P_SPLIT:
    case P_JOIN:
    case P_SLIDE:
    case P_PAD:
    case P_TRANSPOSE:
    case P_GATHER:
    case P_TAKE:
    case P_DROP:
    case P_ASVECTOR:
    case P_ASSCALAR: return eval(c, last, names);
    case P_SCAN:
    case P_SCANSEQ:
    case P_SCATTER:
    case P_MAPGLB:
    case P_MAPWRG:
    case P_MAPLCL:
    case P_MAPSEQ:
    case P_MAPUNROLL:
    case P_MAPSLIDE: return materialise(c, expr, names, default_space(c));
    case PATTERNS: break;
    }
    BUG("a pattern out of the table");
}

static const Place *eval_let(Count *c, const Expr *expr, const Names *names)
{
    const Place *value = eval(c, expr->arg[0], names);
    return eval(c, expr->arg[1], bind(c, names, expr->param, value, expr->arg[1]));
}

static const Place *eval_name(const Expr *expr, const Names *names)
{
    for (; names; names = names->next)
        if (names->param == expr->param)
            return names->place;
    BUG("parameter %s is not bound", expr->param->name);
}

static const Place *eval(Count *c, const Expr *expr, const Names *names)
{
    switch (expr->kind) {
    case E_LITERAL:
    case E_NUM: return &memory[MEM_PRIVATE];
    case E_PARAM: return eval_name(expr, names);
    case E_OP:
    case E_CALL: return where_read(c, expr, names, NULL);
    case E_LET: return eval_let(c, expr, names);
    case E_TUPLE: return eval_items(c, expr, names);
    case E_GET: return field_of(c, eval(c, expr->arg[0], names), expr->index);
    case E_AT:
        read_place(c, eval(c, expr->arg[1], names), expr->arg[1]->type);
        return eval(c, expr->arg[0], names);
    case E_PATTERN: return eval_pattern(c, expr, names);
    case E_LAMBDA: break;
    }
    BUG("a function is not a value");
}

// Writing -----------------------------------------------------------------------------

static void copy(Count *c, const Place *from, const Type *type, AddrSpace to)
{
    if (type->kind == T_TUPLE) {
        for (int i = 0; i < type->n; i++)
            copy(c, field_of(c, from, i), type->item[i], to);
    } else if (type->kind == T_ARRAY) {
        double n = known(c, type->len);
        bool unrolled = to == MEM_PRIVATE && n <= c->options->unroll_cap;
        Outer outer = enter_loop(c, LOOP_SEQ, 0, unrolled, n);
        copy(c, from, type->elem, to);
        leave_loop(c, outer);
    } else {
        read_scalar(c, from);
        store(c, to);
    }
}

static void gen_view(Count *c, const Expr *expr, const Names *names, AddrSpace to)
{
    const Place *from = eval(c, expr, names);
    bool begun = begin_kernel(c, expr);
    copy(c, from, expr->type, to);
    end_kernel(c, begun);
}

// Is something inside written by itself, so that the layout around it is one of the writing
// side?
static bool produces(const Expr *expr)
{
    while (expr->kind == E_LET)
        expr = expr->arg[1];
    if (expr->kind != E_PATTERN)
        return false;
    if (pattern_info[expr->pattern].group != G_VIEW && expr->pattern != P_MAP)
        return true;
    return expr->narg && produces(expr->arg[expr->narg - 1]);
}

static void gen_map(Count *c, const Expr *expr, const Names *names, AddrSpace to)
{
    const Expr *f = expr->fun, *last = expr->arg[expr->narg - 1];
    const Place *in = eval(c, last, names);
    bool begun = begin_kernel(c, expr);
    Outer outer[DIMS_MAX];
    for (int k = 0; k < expr->dims; k++) {
        double n = known(c, type_elem(expr->type, k)->len);
        outer[k] = enter_loop(c, loop_of(expr->pattern), expr->par,
                              is_unrolled(c, expr->pattern, n), n);
    }
    gen(c, f->arg[0], bind(c, names, f->params[0], in, f->arg[0]), to);
    for (int k = expr->dims - 1; k >= 0; k--)
        leave_loop(c, outer[k]);
    end_kernel(c, begun);
}

// A register window: its first elements before the loop, `step` more in each iteration.
static void gen_slide(Count *c, const Expr *expr, const Names *names, AddrSpace to)
{
    const Expr *f = expr->fun;
    const Place *in = eval(c, expr->arg[0], names);
    const Type *elem = expr->arg[0]->type->elem;
    double size = known(c, expr->num[0]), step = known(c, expr->num[1]);
    double n = known(c, expr->type->len);
    bool begun = begin_kernel(c, expr);
    for (double k = 0; k + step < size; k++)
        copy(c, in, elem, MEM_PRIVATE);
    Outer outer = enter_loop(c, LOOP_SEQ, 0, false, n);
    for (double k = MAX(size - step, 0); k < size; k++)
        copy(c, in, elem, MEM_PRIVATE);
    gen(c, f->arg[0], bind(c, names, f->params[0], &memory[MEM_PRIVATE], f->arg[0]), to);
    leave_loop(c, outer);
    end_kernel(c, begun);
}

static void gen_fold(Count *c, const Expr *expr, const Names *names, AddrSpace to,
                     bool prefixes)
{
    const Place *init = eval(c, expr->arg[0], names), *in = eval(c, expr->arg[1], names);
    bool begun = begin_kernel(c, expr);
    read_place(c, init, expr->arg[0]->type);
    fold(c, expr, names, in, prefixes ? &to : NULL);
    if (!prefixes)
        copy(c, &memory[MEM_PRIVATE], expr->type, to);
    end_kernel(c, begun);
}

// At host level the steps are launches.
static void gen_iterate(Count *c, const Expr *expr, const Names *names, AddrSpace to)
{
    const Expr *f = expr->fun;
    double launches = c->launches, steps = known(c, expr->num[0]);
    const Place *in = eval(c, expr->arg[0], names);
    if (steps < 1) {
        gen_view(c, expr->arg[0], names, to);
        return;
    }
    c->launches *= steps;
    gen(c, f->arg[0], bind(c, names, f->params[0], in, f->arg[0]), to);
    c->launches = launches;
}

static void gen_inverse(Count *c, const Expr *expr, const Names *names, AddrSpace to)
{
    const Expr *arg = expr->arg[expr->narg - 1];
    bool crops = expr->pattern == P_TAKE;
    if (!produces(arg) && expr->pattern != P_SCATTER) {
        gen_view(c, expr, names, to);
        return;
    }
    c->guards += crops;
    gen(c, arg, names, to);
    c->guards -= crops;
}

static void gen_items(Count *c, const Expr *expr, const Names *names, AddrSpace to)
{
    for (int i = 0; i < expr->narg; i++)
        gen(c, expr->arg[i], names, to);
}

static void gen_pattern(Count *c, const Expr *expr, const Names *names, AddrSpace to)
{
    switch (expr->pattern) {
    case P_MAP:
        if (layout_function(expr->fun) && produces(expr->arg[0]))
            gen_inverse(c, expr, names, to);
        else
            gen_map(c, expr, names, to);
        return;
    case P_MAPGLB:
    case P_MAPWRG:
    case P_MAPLCL:
    case P_MAPSEQ:
    case P_MAPUNROLL: gen_map(c, expr, names, to); return;
    case P_MAPSLIDE: gen_slide(c, expr, names, to); return;
    case P_SCAN:
    case P_SCANSEQ: gen_fold(c, expr, names, to, true); return;
    case P_REDUCE:
    case P_REDSEQ:
    case P_REDMATRIX:
    case P_REDUNROLL: gen_fold(c, expr, names, to, false); return;
    case P_ITERATE:
    case P_ITERSTREAM: // counted as the plain loop it means
        if (c->in_kernel)
            gen_view(c, expr, names, to);
        else
            gen_iterate(c, expr, names, to);
        return;
    case P_TOGLOBAL: gen(c, expr->arg[0], names, to); return;
    case P_ZIP: gen_items(c, expr, names, to); return;
    case P_JOIN:
    case P_SPLIT:
    case P_TRANSPOSE:
    case P_SCATTER:
    case P_TAKE:
    case P_UNZIP:
    case P_ASVECTOR:
    case P_ASSCALAR: gen_inverse(c, expr, names, to); return;
    case P_ARRAY:
    case P_SLIDE:
    case P_PAD:
    case P_GATHER:
    case P_DROP:
    case P_TOLOCAL:
    case P_TOPRIVATE: gen_view(c, expr, names, to); return;
    case PATTERNS: break;
    }
    BUG("a pattern out of the table");
}

static void gen(Count *c, const Expr *expr, const Names *names, AddrSpace to)
{
    const Expr *array = expr->kind == E_AT ? expr->arg[0] : NULL;
    bool scalar = type_is_scalar(expr->type) && c->in_kernel;
    if (expr->kind == E_LET) {
        const Place *value = eval(c, expr->arg[0], names);
        gen(c, expr->arg[1], bind(c, names, expr->param, value, expr->arg[1]), to);
    } else if (scalar && array && array->kind == E_PATTERN && array->pattern == P_MAPLCL &&
               known(c, array->type->len) == 1) { // one item writes it for all
        gen(c, array, names, to);
    } else if (scalar) {
        copy(c, eval(c, expr, names), expr->type, to);
    } else if (expr->kind == E_PATTERN) {
        gen_pattern(c, expr, names, to);
    } else if (!c->in_kernel && array && produces(array) &&
               known(c, array->type->len) == 1) {
        gen(c, array, names, to);
    } else if (expr->kind == E_TUPLE) {
        gen_items(c, expr, names, to);
    } else {
        gen_view(c, expr, names, to);
    }
}

// Cache lines and barriers ------------------------------------------------------------

typedef struct {
    ArithCtx *ctx;
    double lines, accesses; // of one work-item
} LineCount;

static void on_access(Walk *walk, void *user, const Access *a)
{
    LineCount *count = user;
    int line_bytes = walk->scope.setting->device->line_bytes;
    if (a->buffer->space != MEM_GLOBAL)
        return;
    int64_t line = MAX(line_bytes / scalar_info[a->buffer->scalar].bytes, 1);
    WarpLines found = warp_lines(&walk->scope, count->ctx, a->index, a->width, line);
    int lines = found.by_difference   ? found.by_difference
                : found.by_evaluation ? found.by_evaluation
                                      : walk->scope.lanes;
    count->lines += a->exec * lines;
    count->accesses += a->exec;
}

// With its loops kept; unrolled only where it must be.
static Unit *lower_loops(const Program *program, Expr *body, const LowerOptions *options,
                         Arena *arena, Diags *diags)
{
    LowerOptions kept = *options;
    Diags unseen;
    diags_init(&unseen, arena);
    kept.interior = false;
    kept.vector = 1;
    kept.unroll_cap = 1;
    Unit *unit = lower(program, body, &kept, arena, &unseen);
    kept.unroll_cap = options->unroll_cap;
    return unit ? unit : lower(program, body, &kept, arena, diags);
}

static bool kernel_features(const Unit *unit, const FeatureSetting *setting, Arena *arena,
                            double out[FEATURES])
{
    double lines = 0, accesses = 0, barriers = 0, all = 0;
    for (int i = 0; i < unit->kernels.len; i++) {
        Walk walk;
        LineCount count = {.ctx = unit->ir->arith};
        const Kernel *kernel = unit->kernels.at[i];
        if (!walk_kernel(&walk, arena, kernel, setting, on_access, &count))
            return false;
        const Scope *s = &walk.scope;
        double threads = 0;
        for (int k = 0; k < unit->launches.len; k++)
            if (unit->launches.at[k].kernel == kernel)
                threads +=
                    (double)s->global[0] * (double)s->global[1] * (double)s->global[2];
        lines += threads * count.lines;
        accesses += threads * count.accesses;
        barriers += threads * walk.barriers;
        all += threads;
    }
    out[FEATURE_CACHE_LINES] = accesses > 0 ? lines / accesses : 0;
    out[FEATURE_BARRIERS] = all > 0 ? barriers / all : 0;
    return true;
}

static const Names *bind_inputs(Count *c, const Function *main)
{
    const Names *names = NULL;
    for (int i = 0; i < main->nparam; i++) {
        Names *bound = NEW(c->arena, Names);
        *bound = (Names){main->params[i], &memory[MEM_GLOBAL], names};
        names = bound;
    }
    return names;
}

static void put_counts(const Count *c, double out[FEATURES])
{
    for (int d = 0; d < 3; d++) {
        out[FEATURE_GLOBAL_SIZE_0 + d] = c->main.global[d];
        out[FEATURE_LOCAL_SIZE_0 + d] = c->main.local[d];
    }
    double threads = MAX(c->threads, 1);
    out[FEATURE_LOCAL_MEMORY] = c->main.local_bytes;
    out[FEATURE_GLOBAL_STORES] = c->stores[MEM_GLOBAL] / threads;
    out[FEATURE_GLOBAL_LOADS] = c->loads[MEM_GLOBAL] / threads;
    out[FEATURE_LOCAL_STORES] = c->stores[MEM_LOCAL] / threads;
    out[FEATURE_LOCAL_LOADS] = c->loads[MEM_LOCAL] / threads;
    out[FEATURE_IFS] = c->ifs / threads;
    out[FEATURE_LOOP_BODIES] = c->bodies / threads;
}

bool features_expression(const Program *program, Expr *body, const LowerOptions *options,
                         const FeatureSetting *setting, Diags *diags, double out[FEATURES])
{
    for (int i = 0; i < FEATURES; i++)
        out[i] = 0;
    Arena *arena = arena_new();
    Unit *unit = lower_loops(program, body, options, arena, diags);
    Count c = {.arena = arena, .options = options, .setting = setting, .launches = 1};
    bool ok = unit && kernel_features(unit, setting, arena, out);
    if (ok) {
        gen(&c, body, bind_inputs(&c, program->main), MEM_GLOBAL);
        put_counts(&c, out);
    }
    arena_free(arena);
    return ok && !c.unbound;
}
