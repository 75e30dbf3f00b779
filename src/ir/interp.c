// SPDX-License-Identifier: Apache-2.0
//
// The interpreter: what a program means. Strict in maps, reductions and lets, whose
// results are stored; views stay index functions (interp_view.c). Lowered patterns mean
// what their high-level twins mean.
//
// Floating operations are computed in double and rounded to their type; integers are
// two's complement with floor division; && and || stop at the first operand that decides.
// Elementary functions are those of the C library in double.
//
// Codes: R001 index outside an array, R002 scatter is not a permutation, R003 division by
// zero, R004 opaque function, R005 quota, R006 not evaluable, R007 wrong input, R008 a
// number of 64 bits that a double does not hold.
//
// It knows nothing of threads or memories, and does not try to be fast beyond not copying
// what it only looks at.
#include "ir/internal.h"

#include <inttypes.h>
#include <math.h>

#define SCALARS_MAX 0x1p30 // of one value

void interp_fail(Interp *in, Span span, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_verror(in->diags, span, code, format, args);
    va_end(args);
    longjmp(in->failed, 1);
}

void interp_step(Interp *in, const Expr *e, int64_t n)
{
    in->steps += n;
    if (in->quota && in->steps > in->quota)
        interp_fail(in, e->span, "R005", "stopped after %" PRId64 " operations", in->quota);
}

int64_t interp_num(Interp *in, const Expr *e, const Arith *num)
{
    int64_t value;
    if (!arith_is_const(num, &value))
        interp_fail(in, e->span, "R006", "a size has no value");
    return value;
}

// Operations ---------------------------------------------------------------------------

// An integer of any type wraps around. Numbers are held in doubles: of 64 bits only those
// up to 2^53 are known exactly.
static double wrap(Interp *in, const Expr *e, uint64_t x)
{
    double value = scalar_of_bits(e->type->scalar, x);
    if (fabs(value) > 0x1p53)
        interp_fail(in, e->span, "R008",
                    "a %s beyond 2^53, which the interpreter cannot hold",
                    scalar_info[e->type->scalar].name);
    return value;
}

// The operations on real numbers; min and max prefer a number to a NaN.
static double real_op(Op op, double a, double b, double c)
{
    switch (op) {
#define OP(id, text, args, form, types, kind, value, doc)                                  \
    case OP_##id:                                                                          \
        return value;
#include "ir/ops.def"
#undef OP
    case OPS: break;
    }
    BUG("operation %d", (int)op);
}

static double integer_op(Interp *in, const Expr *e, double x, double y)
{
    int64_t a = (int64_t)x, b = (int64_t)y;
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    int by = (int)(ub % (8 * (unsigned)scalar_info[e->type->scalar].bytes));
    if ((e->op == OP_MOD || e->op == OP_DIV) && b == 0)
        interp_fail(in, e->span, "R003", "division by zero");
    switch (e->op) {
    case OP_MUL: return wrap(in, e, ua * ub);
    case OP_DIV: return wrap(in, e, (uint64_t)floor_div(a, b));
    case OP_MOD: return wrap(in, e, (uint64_t)floor_mod(a, b));
    case OP_SHL: return wrap(in, e, ua << by);
    case OP_SHR: return wrap(in, e, (uint64_t)(a >> by));
    case OP_BITAND: return wrap(in, e, ua & ub);
    case OP_BITXOR: return wrap(in, e, ua ^ ub);
    case OP_BITOR: return wrap(in, e, ua | ub);
    case OP_BITNOT: return wrap(in, e, ~ua);
    default: return wrap(in, e, (uint64_t)(int64_t)real_op(e->op, x, y, 0));
    }
}

// One component of an operation, rounded to the scalar type of the result.
static double scalar_op(Interp *in, const Expr *e, const double *x)
{
    Scalar scalar = e->type->scalar;
    OpTypes types = op_info[e->op].types;
    bool from_integer = types == TY_CAST && !type_is_float(e->arg[0]->type);
    if (scalar_info[scalar].integer && (types == TY_ARITH || types == TY_INTEGER))
        return integer_op(in, e, x[0], x[1]);
    if (scalar_info[scalar].integer && from_integer)
        return wrap(in, e, scalar_bits(e->arg[0]->type->scalar, x[0]));
    double a = x[0], b = x[1], c = x[2];
    if (types == TY_FLOAT) { // its int arguments become floating first
        a = scalar_round(scalar, a);
        b = scalar_round(scalar, b);
        c = scalar_round(scalar, c);
    }
    return scalar_round(scalar, real_op(e->op, a, b, c));
}

static double component(const Type *type, const Val *val, int i)
{
    return type->kind == T_VECTOR ? val->item[i].number : val->number;
}

static Val strict_op(Interp *in, const Expr *e, const InterpEnv *env)
{
    Val arg[3] = {0};
    for (int i = 0; i < e->narg; i++)
        arg[i] = interp_eval(in, e->arg[i], env);
    bool vector = e->type->kind == T_VECTOR;
    int width = vector ? e->type->width : 1;
    interp_step(in, e, width);
    Val one = {0}, *item = vector ? NEW_ARRAY(in->arena, Val, width) : &one;
    for (int w = 0; w < width; w++) {
        double x[3] = {0};
        for (int i = 0; i < e->narg; i++)
            x[i] = component(e->arg[i]->type, &arg[i], w);
        item[w].number = scalar_op(in, e, x);
    }
    return vector ? (Val){.item = item} : one;
}

// A scalar as a value of a type that may be a vector of it.
static Val splat(Interp *in, const Type *from, Val val, const Type *to)
{
    if (to->kind != T_VECTOR || from->kind == T_VECTOR)
        return val;
    Val *item = NEW_ARRAY(in->arena, Val, to->width);
    for (int i = 0; i < to->width; i++)
        item[i] = val;
    return (Val){.item = item};
}

static Val eval_select(Interp *in, const Expr *e, const InterpEnv *env)
{
    interp_step(in, e, 1);
    const Expr *side = interp_eval(in, e->arg[0], env).number ? e->arg[1] : e->arg[2];
    return splat(in, side->type, interp_eval(in, side, env), e->type);
}

static Val eval_op(Interp *in, const Expr *e, const InterpEnv *env)
{
    if (e->op == OP_SELECT)
        return eval_select(in, e, env);
    if (e->op != OP_AND && e->op != OP_OR)
        return strict_op(in, e, env);
    interp_step(in, e, 1);
    Val left = interp_eval(in, e->arg[0], env);
    bool decided = e->op == OP_AND ? !left.number : left.number != 0;
    return decided ? left : interp_eval(in, e->arg[1], env);
}

// Names and calls ----------------------------------------------------------------------

static const InterpEnv *bind_param(Interp *in, const Param *param, Val val,
                                   const InterpEnv *outer)
{
    return NEW_OF(in->arena, InterpEnv, param, val, outer);
}

static Val lookup(const Param *param, const InterpEnv *env)
{
    for (; env; env = env->outer)
        if (env->param == param)
            return env->val;
    BUG("`%s` is not bound", param->name);
}

Val interp_apply(Interp *in, const Expr *lambda, const Val *arg, const InterpEnv *env)
{
    for (int i = 0; i < lambda->nparam; i++)
        env = bind_param(in, lambda->params[i], arg[i], env);
    return interp_eval(in, lambda->arg[0], env);
}

// Calls a fun on component w of its arguments.
static Val call_component(Interp *in, const Expr *e, const Val *arg, int w, bool vector)
{
    const Function *f = e->callee;
    const InterpEnv *env = NULL;
    for (int i = 0; i < e->narg; i++) {
        Val val = arg[i];
        if (vector && f->params[i]->type->kind == T_SCALAR)
            val = (Val){.number = component(e->arg[i]->type, &arg[i], w)};
        env = bind_param(in, f->params[i], val, env);
    }
    return splat(in, f->body->type, interp_eval(in, f->body, env), f->result);
}

static Val *eval_args(Interp *in, const Expr *e, const InterpEnv *env)
{
    Val *arg = NEW_ARRAY(in->arena, Val, e->narg);
    for (int i = 0; i < e->narg; i++)
        arg[i] = interp_eval(in, e->arg[i], env);
    return arg;
}

static Val eval_call(Interp *in, const Expr *e, const InterpEnv *env)
{
    if (!e->callee->body)
        interp_fail(in, e->span, "R004", "`%s` is C text, which is not interpreted",
                    e->callee->name);
    interp_step(in, e, 1);
    Val *arg = eval_args(in, e, env);
    if (e->type->kind != T_VECTOR || e->callee->result->kind == T_VECTOR)
        return call_component(in, e, arg, 0, false);
    Val *item = NEW_ARRAY(in->arena, Val, e->type->width);
    for (int w = 0; w < e->type->width; w++)
        item[w] = call_component(in, e, arg, w, true);
    return (Val){.item = item};
}

static Val eval_literal(Interp *in, const Expr *e)
{
    Val val = {.number = scalar_round(e->type->scalar, e->number)};
    return splat(in, type_scalar(e->type->scalar), val, e->type);
}

static Val eval_num(Interp *in, const Expr *e)
{
    int64_t value = interp_num(in, e, e->num[0]);
    if (value < INT32_MIN || value > INT32_MAX)
        interp_fail(in, e->span, "R006", "%" PRId64 " does not fit in an int", value);
    return (Val){.number = (double)value};
}

static int64_t eval_index(Interp *in, const Expr *e, const InterpEnv *env)
{
    int64_t len = interp_num(in, e, e->arg[0]->type->len);
    double i = interp_eval(in, e->arg[1], env).number;
    if (!(i >= 0 && i < (double)len))
        interp_fail(in, e->arg[1]->span, "R001",
                    "index %.0f is outside an array of %" PRId64, i, len);
    return (int64_t)i;
}

// a[i][j] is one access, so that a view sees all its indices at once.
static Val eval_at(Interp *in, const Expr *e, const InterpEnv *env)
{
    int64_t index[INDEX_MAX];
    int first = INDEX_MAX;
    while (e->kind == E_AT && first > 0) {
        index[--first] = eval_index(in, e, env);
        e = e->arg[0];
    }
    return view_at(in, interp_eval(in, e, env).view, index + first, INDEX_MAX - first);
}

// Patterns that store ------------------------------------------------------------------

static Val stored(Interp *in, const Value *value)
{
    return val_load(in, value->type, value->plane, 0);
}

// Scalars in a value; the product of lengths may be beyond int64.
static double scalars_of(Interp *in, const Expr *e, const Type *type)
{
    double n = 0;
    switch (type->kind) {
    case T_SCALAR: return 1;
    case T_VECTOR: return type->width;
    case T_ARRAY:
        return (double)interp_num(in, e, type->len) * scalars_of(in, e, type->elem);
    case T_TUPLE:
        for (int i = 0; i < type->n; i++)
            n += scalars_of(in, e, type->item[i]);
        return n;
    }
    BUG("type kind %d", (int)type->kind);
}

static Value *new_value(Interp *in, Arena *arena, const Expr *e, const Type *type)
{
    if (scalars_of(in, e, type) > SCALARS_MAX)
        interp_fail(in, e->span, "R006", "an array too large to be interpreted");
    return value_new(arena, type);
}

// The element of every index of a box of `dims` dimensions, in row-major order.
typedef Val Elem(Interp *in, const Expr *e, const int64_t *index, const InterpView *x,
                 const InterpEnv *env);

static Val store_elements(Interp *in, const Expr *e, int dims, Elem *elem,
                          const InterpView *x, const InterpEnv *env)
{
    Value *value = new_value(in, in->arena, e, e->type);
    const Type *type = type_elem(e->type, dims);
    int64_t len[DIMS_MAX], total = 1, index[DIMS_MAX];
    const Type *level = e->type;
    for (int d = 0; d < dims; d++, level = level->elem)
        total *= len[d] = level->len->value;
    ArenaMark mark = arena_mark(in->arena);
    for (int64_t at = 0; at < total; at++) {
        int64_t rest = at;
        for (int d = dims - 1; d >= 0; d--, rest /= len[d + 1])
            index[d] = rest % len[d];
        interp_step(in, e, 1);
        val_store(in, type, elem(in, e, index, x, env), value->plane, at);
        arena_reset(in->arena, mark);
    }
    return stored(in, value);
}

static Val map_elem(Interp *in, const Expr *e, const int64_t *index, const InterpView *x,
                    const InterpEnv *env)
{
    Val arg = view_at(in, x, index, e->dims);
    return interp_apply(in, e->fun, &arg, env);
}

static Val array_elem(Interp *in, const Expr *e, const int64_t *index, const InterpView *x,
                      const InterpEnv *env)
{
    Val at[DIMS_MAX];
    for (int d = 0; d < e->dims; d++)
        at[d] = (Val){.number = (double)index[d]};
    return interp_apply(in, e->fun, at, env);
}

static int64_t length_of(Interp *in, const Expr *array)
{
    return interp_num(in, array, array->type->len);
}

// One application: what it gives becomes the state *now, and *next what that was.
static void take_step(Interp *in, const Expr *e, const Val *arg, const InterpEnv *env,
                      Value **now, Value **next)
{
    Value *old = *now;
    interp_step(in, e, 1);
    val_store(in, e->type, interp_apply(in, e->fun, arg, env), (*next)->plane, 0);
    *now = *next;
    *next = old;
}

// Folds the first len elements of x, or takes so many steps where it is NULL.
static Val eval_reduce(Interp *in, const Expr *e, Val z, const InterpView *x, int64_t len,
                       const InterpEnv *env)
{
    Value *now = new_value(in, in->arena, e, e->type),
          *next = new_value(in, in->arena, e, e->type);
    val_store(in, e->type, z, now->plane, 0);
    ArenaMark mark = arena_mark(in->arena);
    for (int64_t i = 0; i < len; i++) {
        Val arg[2] = {stored(in, now), x ? view_at(in, x, &i, 1) : (Val){0}};
        take_step(in, e, arg, env, &now, &next);
        arena_reset(in->arena, mark);
    }
    return stored(in, now);
}

static Val eval_look_back(Interp *in, const Expr *e, const Val *arg, const InterpEnv *env)
{
    int64_t len = length_of(in, e->arg[1]);
    double before = arg[3].number;
    if (!(before >= 0 && before < (double)len))
        interp_fail(in, e->span, "R001", "element %.0f of %" PRId64, before, len);
    return eval_reduce(in, e, arg[0], arg[1].view, (int64_t)before, env);
}

static Val eval_scan(Interp *in, const Expr *e, Val z, const InterpView *x,
                     const InterpEnv *env)
{
    Value *value = new_value(in, in->arena, e, e->type);
    const Type *type = e->type->elem;
    int64_t len = length_of(in, e->arg[1]);
    ArenaMark mark = arena_mark(in->arena);
    for (int64_t i = 0; i < len; i++) {
        Val before = i ? val_load(in, type, value->plane, i - 1) : z;
        Val arg[2] = {before, view_at(in, x, &i, 1)};
        interp_step(in, e, 1);
        val_store(in, type, interp_apply(in, e->fun, arg, env), value->plane, i);
        arena_reset(in->arena, mark);
    }
    return stored(in, value);
}

// An element of an array changes with each of what has its key.
static void update_by(Interp *in, const Expr *e, Value *value, Val keyed,
                      const InterpEnv *env)
{
    const Type *type = e->type->elem;
    double key = keyed.item[0].number;
    interp_step(in, e, 1);
    if (!(key >= 0 && key < (double)length_of(in, e)))
        return;
    Val arg[2] = {val_load(in, type, value->plane, (int64_t)key), keyed.item[1]};
    val_store(in, type, interp_apply(in, e->fun, arg, env), value->plane, (int64_t)key);
}

static Val eval_reduce_by(Interp *in, const Expr *e, Val z, const InterpView *x,
                          const InterpEnv *env)
{
    Value *value = new_value(in, in->arena, e, e->type);
    int64_t len = length_of(in, e->arg[1]), keys = length_of(in, e);
    for (int64_t k = 0; k < keys; k++)
        val_store(in, e->type->elem, z, value->plane, k);
    ArenaMark mark = arena_mark(in->arena);
    for (int64_t i = 0; i < len; i++) {
        update_by(in, e, value, view_at(in, x, &i, 1), env);
        arena_reset(in->arena, mark);
    }
    return stored(in, value);
}

static Val eval_update(Interp *in, const Expr *e, Val before, const InterpView *x,
                       const InterpEnv *env)
{
    Value *value = new_value(in, in->arena, e, e->type);
    int64_t rows = length_of(in, e->arg[1]);
    int64_t n = interp_num(in, e->arg[1], e->arg[1]->type->elem->len);
    val_store(in, e->type, before, value->plane, 0);
    ArenaMark mark = arena_mark(in->arena);
    for (int64_t i = 0; i < rows * n; i++) {
        int64_t at[] = {i / n, i % n};
        update_by(in, e, value, view_at(in, x, at, 2), env);
        arena_reset(in->arena, mark);
    }
    return stored(in, value);
}

static int64_t scatter_target(Interp *in, const Expr *e, int64_t i, int64_t len,
                              bool *taken, const InterpEnv *env)
{
    Val arg = {.number = (double)i};
    double to = interp_apply(in, e->fun, &arg, env).number;
    if (!(to >= 0 && to < (double)len))
        interp_fail(in, e->span, "R001", "scatter to place %.0f of %" PRId64, to, len);
    if (taken[(int64_t)to])
        interp_fail(in, e->span, "R002", "scatter puts two elements at place %.0f", to);
    taken[(int64_t)to] = true;
    return (int64_t)to;
}

static Val eval_scatter(Interp *in, const Expr *e, const InterpView *x,
                        const InterpEnv *env)
{
    Value *value = new_value(in, in->arena, e, e->type);
    int64_t len = length_of(in, e->arg[0]);
    bool *taken = NEW_ARRAY(in->arena, bool, len);
    ArenaMark mark = arena_mark(in->arena);
    for (int64_t i = 0; i < len; i++) {
        interp_step(in, e, 1);
        int64_t to = scatter_target(in, e, i, len, taken, env);
        val_store(in, e->type->elem, view_at(in, x, &i, 1), value->plane, to);
        arena_reset(in->arena, mark);
    }
    return stored(in, value);
}

static Val eval_map_slide(Interp *in, const Expr *e, const Val *arg, const InterpEnv *env)
{
    Val windows = view_pattern(in, e, arg, env);
    return store_elements(in, e, 1, map_elem, windows.view, env);
}

static Val eval_pattern(Interp *in, const Expr *e, const InterpEnv *env)
{
    Val *arg = eval_args(in, e, env);
    switch (e->pattern) {
    case P_MAP:
    case P_MAPGLB:
    case P_MAPWRG:
    case P_MAPLCL:
    case P_MAPSEQ:
    case P_MAPUNROLL: return store_elements(in, e, e->dims, map_elem, arg[0].view, env);
    case P_REDUCE:
    case P_REDSEQ:
    case P_REDMATRIX:
    case P_REDLANES:
    case P_REDUNROLL:
        return eval_reduce(in, e, arg[0], arg[1].view, length_of(in, e->arg[1]), env);
    case P_LOOKBACK: return eval_look_back(in, e, arg, env);
    case P_SCAN:
    case P_SCANSEQ: return eval_scan(in, e, arg[0], arg[1].view, env);
    case P_REDUCEBY: return eval_reduce_by(in, e, arg[0], arg[1].view, env);
    case P_REDBYGLB:
    case P_REDBYOWN:
    case P_REDBYLCL: return eval_update(in, e, arg[0], arg[1].view, env);
    case P_ITERATE:
    case P_ITERSTREAM:
        return eval_reduce(in, e, arg[0], NULL, interp_num(in, e, e->num[0]), env);
    case P_ARRAY: return store_elements(in, e, e->dims, array_elem, NULL, env);
    case P_SCATTER: return eval_scatter(in, e, arg[0].view, env);
    case P_MAPSLIDE: return eval_map_slide(in, e, arg, env);
    case P_TOGLOBAL:
    case P_TOLOCAL:
    case P_TOPRIVATE: return arg[0];
    default: return view_pattern(in, e, arg, env);
    }
}

// All ----------------------------------------------------------------------------------

Val interp_eval(Interp *in, const Expr *e, const InterpEnv *env)
{
    switch (e->kind) {
    case E_LITERAL: return eval_literal(in, e);
    case E_PARAM: return lookup(e->param, env);
    case E_NUM: return eval_num(in, e);
    case E_OP: return eval_op(in, e, env);
    case E_CALL: return eval_call(in, e, env);
    case E_LET:
        env = bind_param(in, e->param, interp_eval(in, e->arg[0], env), env);
        return interp_eval(in, e->arg[1], env);
    case E_TUPLE: return (Val){.item = eval_args(in, e, env)};
    case E_GET: return interp_eval(in, e->arg[0], env).item[e->index];
    case E_AT: return eval_at(in, e, env);
    case E_PATTERN: return eval_pattern(in, e, env);
    case E_LAMBDA: break;
    }
    BUG("expression kind %d", (int)e->kind);
}

FW_NORETURN static void wrong_input(Interp *in, const Param *param, const Type *got)
{
    Buf need = buf_new(), have = buf_new();
    type_print(&need, param->type);
    type_print(&have, got);
    const char *text = arena_printf(in->diags->arena, "input `%s` must be %s, not %s",
                                    param->name, need.text, have.text);
    buf_release(&need); // interp_fail does not come back
    buf_release(&have);
    interp_fail(in, param->span, "R007", "%s", text);
}

static const InterpEnv *bind_inputs(Interp *in, const Program *program,
                                    Value *const *inputs)
{
    const Function *f = program->main;
    const InterpEnv *env = NULL;
    for (int i = 0; i < f->nparam; i++) {
        if (!type_equal(program->ir->arith, f->params[i]->type, inputs[i]->type))
            wrong_input(in, f->params[i], inputs[i]->type);
        env = bind_param(in, f->params[i], stored(in, inputs[i]), env);
    }
    return env;
}

bool ir_eval(const Program *program, Value *const *inputs, Arena *arena, Value **result,
             int64_t quota, Diags *diags)
{
    const Function *f = program->main;
    if (!f || !f->result)
        return diag_error(diags, span_none, "R006", "there is nothing to evaluate");
    Interp in = {.diags = diags, .arena = arena_new(), .quota = quota};
    bool ok = setjmp(in.failed) == 0;
    if (ok) {
        *result = new_value(&in, arena, f->body, f->result);
        const InterpEnv *env = bind_inputs(&in, program, inputs);
        Val val = interp_eval(&in, f->body, env);
        val_store(&in, f->result, val, (*result)->plane, 0);
    }
    arena_free(in.arena);
    return ok;
}
