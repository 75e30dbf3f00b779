// SPDX-License-Identifier: Apache-2.0
//
// Binding sizes: a copy of a program in which size variables are constants. The copy is
// inferred again, and there every condition on a length becomes a fact or an error.
//
// Codes: T020 unknown size, T021 size without a value, T022 bad value, T023 array empty or
// too large; T013 (from inference) a length that does not fit.
#include "ir/ir.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const Program *from;
    Program *to;
    Diags *diags;
    const Arith **var, **value; // what replaces what, n of them
    int n;
    const Binding *binding; // what was asked, nbinding of them
    int nbinding;
    bool all;  // every size must have a value
    bool open; // but for generic ones, which stay
} Bind;

// Copying ------------------------------------------------------------------------------

static const Arith *bind_arith(const Bind *b, const Arith *arith)
{
    for (int i = 0; i < b->n; i++)
        arith = arith_subst(b->to->ir->arith, arith, b->var[i], b->value[i]);
    return arith;
}

static const Type *bind_type(const Bind *b, const Type *type)
{
    Arena *arena = b->to->ir->arena;
    if (type && type->kind == T_ARRAY)
        return type_array(arena, bind_arith(b, type->len), bind_type(b, type->elem));
    if (!type || type->kind != T_TUPLE)
        return type;
    const Type **item = NEW_ARRAY(arena, const Type *, type->n);
    for (int i = 0; i < type->n; i++)
        item[i] = bind_type(b, type->item[i]);
    return type_tuple(arena, item, type->n);
}

static Function *bound_callee(const Bind *b, const Function *callee)
{
    for (int i = 0; i < b->from->funs.len; i++)
        if (b->from->funs.at[i] == callee)
            return b->to->funs.at[i];
    for (int i = 0; i < b->from->defs.len; i++)
        if (b->from->defs.at[i] == callee)
            return b->to->defs.at[i];
    BUG("call of a function outside the program");
}

// In place, on a copy.
static void bind_expr(const Bind *b, Expr *e)
{
    int nums = e->kind == E_NUM ? 1 : e->nnum;
    for (int i = 0; i < nums; i++)
        e->num[i] = bind_arith(b, e->num[i]);
    if (e->kind == E_CALL)
        e->callee = bound_callee(b, e->callee);
    for (int i = 0; i < e->narg; i++)
        bind_expr(b, e->arg[i]);
    if (e->fun)
        bind_expr(b, e->fun);
}

static Function *copy_function(const Bind *b, const Function *f)
{
    Ir *ir = b->to->ir;
    Function *copy = arena_copy(ir->arena, f, sizeof(Function));
    Expr *body = f->body ? f->body : expr_literal(ir, 0, false);
    Expr *lambda = expr_clone(ir, expr_lambda(ir, f->params, f->nparam, body));
    copy->params = lambda->params;
    copy->body = f->body ? lambda->arg[0] : NULL;
    copy->result = bind_type(b, f->result);
    for (int i = 0; i < f->nparam; i++)
        copy->params[i]->type = bind_type(b, f->params[i]->type);
    return copy;
}

static void copy_functions(Bind *b)
{
    const Program *from = b->from;
    Program *to = b->to;
    for (int i = 0; i < from->funs.len; i++)
        VEC_PUSH(to->ir->arena, &to->funs, copy_function(b, from->funs.at[i]));
    for (int i = 0; i < from->defs.len; i++)
        VEC_PUSH(to->ir->arena, &to->defs, copy_function(b, from->defs.at[i]));
    for (int i = 0; i < to->funs.len; i++)
        if (to->funs.at[i]->body)
            bind_expr(b, to->funs.at[i]->body);
    for (int i = 0; i < to->defs.len; i++)
        bind_expr(b, to->defs.at[i]->body);
    to->main = from->main ? bound_callee(b, from->main) : NULL;
}

// Ranges -------------------------------------------------------------------------------

const SizeRange size_any = {1, INT32_MAX, 1};

bool size_within(const SizeRange *range, int64_t value)
{
    return value >= range->low && value <= range->high && value % range->multiple == 0;
}

bool size_range_settle(SizeRange *range)
{
    if (range->low < 1 || range->high > INT32_MAX || range->multiple < 1 ||
        range->multiple > INT32_MAX)
        return false;
    range->low += (range->multiple - range->low % range->multiple) % range->multiple;
    range->high -= range->high % range->multiple;
    return range->low <= range->high;
}

int64_t size_at(const SizeRange *range, double part)
{
    double low = (double)range->low, high = (double)range->high;
    int64_t steps = llround(low * pow(high / low, part) / (double)range->multiple);
    return MAX(range->low, MIN(range->high, steps * range->multiple));
}

void size_range_print(Buf *out, const SizeRange *range)
{
    if (range->low > range->multiple || range->high < INT32_MAX - range->multiple)
        buf_printf(out, " %" PRId64 "..%" PRId64, range->low, range->high);
    if (range->multiple > 1)
        buf_printf(out, " multiple %" PRId64, range->multiple);
}

// Reads a whole number; false if there is none that could be a size.
static bool read_number(const char **text, int64_t *value)
{
    bool negative = **text == '-';
    size_t digits = strspn(*text + negative, "0123456789");
    *value = digits && digits < 19 ? strtoll(*text, NULL, 10) : 0;
    *text += negative + digits;
    return digits && digits < 19;
}

static bool read_range(const char **text, int64_t low, SizeRange *range)
{
    *range = (SizeRange){low, 0, 1};
    if (*(*text)++ != ':' || !read_number(text, &range->high))
        return false;
    if (**text == ':' && ((*text)++, !read_number(text, &range->multiple)))
        return false;
    return size_range_settle(range);
}

bool binding_parse(const char *text, Arena *arena, Binding *binding)
{
    const char *eq = strchr(text, '='), *at = eq ? eq + 1 : text;
    int64_t low;
    *binding = (Binding){0};
    if (!eq || eq == text || !read_number(&at, &binding->value))
        return false;
    binding->name = arena_strndup(arena, text, (size_t)(eq - text));
    if (*at == ':') {
        low = binding->value;
        binding->value = 0;
        return read_range(&at, low, &binding->range) && !*at;
    }
    if (*at == '@' &&
        (at++, !read_number(&at, &low) || !read_range(&at, low, &binding->range)))
        return false;
    return !*at;
}

void binding_print(Buf *out, const Binding *binding)
{
    const SizeRange *range = &binding->range;
    buf_printf(out, "%s=", binding->name);
    if (!binding->spans && (binding->value || !range->high))
        buf_printf(out, "%" PRId64 "%s", binding->value, range->high ? "@" : "");
    if (range->high)
        buf_printf(out, "%" PRId64 ":%" PRId64, range->low, range->high);
    if (range->multiple > 1)
        buf_printf(out, ":%" PRId64, range->multiple);
}

const Binding *binding_find(const Binding *at, int n, const char *name)
{
    int i = FIND(at, n, name, name);
    return i < 0 ? NULL : &at[i];
}

// Sizes --------------------------------------------------------------------------------

static const char *size_names(const Program *p)
{
    const char *text = "";
    for (int i = 0; i < p->sizes.len; i++)
        text =
            arena_printf(p->ir->arena, "%s%s%s", text, i ? ", " : "", p->sizes.at[i].name);
    return p->sizes.len ? text : "none";
}

static const SizeDecl *find_size(const Program *p, const char *name)
{
    for (int i = 0; i < p->sizes.len; i++)
        if (!strcmp(p->sizes.at[i].name, name))
            return &p->sizes.at[i];
    return NULL;
}

// That of the binding, which says nothing of multiples where the program does.
static SizeRange binding_range(const SizeDecl *size, const Binding *binding)
{
    SizeRange range = binding->range.high ? binding->range : size->range;
    if (range.multiple == 1)
        range.multiple = size->range.multiple;
    size_range_settle(&range);
    return range;
}

SizeRange binding_span(const Program *program, const Binding *binding)
{
    const SizeDecl *size = find_size(program, binding->name);
    return size ? binding_range(size, binding) : binding->range;
}

static bool check_range(const Bind *b, const SizeDecl *size, const Binding *binding)
{
    SizeRange range = binding_range(size, binding);
    if (range.low > range.high)
        return diag_error(
            b->diags, size->span, "T022",
            "size %s: there is no multiple of %" PRId64 " from %" PRId64 " to %" PRId64,
            binding->name, range.multiple, binding->range.low, binding->range.high);
    bool inside = size_within(&size->range, range.low) &&
                  size_within(&size->range, range.high) &&
                  range.multiple % size->range.multiple == 0;
    const SizeRange *broken = inside ? &range : &size->range;
    if (inside &&
        (size_within(&range, binding->value) || (!binding->value && binding->range.high)))
        return true;
    AutoBuf multiple = buf_new();
    if (broken->multiple > 1)
        buf_printf(&multiple, " and a multiple of %" PRId64, broken->multiple);
    if (inside)
        buf_printf(&multiple, ", not %" PRId64, binding->value);
    else
        buf_printf(&multiple, ", not %" PRId64 " to %" PRId64, range.low, range.high);
    return diag_error(b->diags, size->span, "T022",
                      "size %s must be from %" PRId64 " to %" PRId64 "%s", binding->name,
                      broken->low, broken->high, multiple.text);
}

// Does a time loop have so many steps? Each is launched, so their number must be known;
// within functions of other patterns loops are those of a work-item.
static bool counts_launches(const Expr *expr, const Arith *size)
{
    const bool loop = expr_is(expr, P_ITERATE);
    bool found = loop && arith_mentions(expr->num[0], size);
    for (int i = 0; i < expr->narg && !found; i++)
        found = counts_launches(expr->arg[i], size);
    if (loop && !found)
        found = counts_launches(expr->fun->arg[0], size);
    if (expr->kind == E_CALL && expr->callee->body && !found)
        found = counts_launches(expr->callee->body, size);
    return found;
}

static bool is_open(const Bind *b, const SizeDecl *size)
{
    const Function *main = b->from->main;
    return b->open && !(main && main->body && counts_launches(main->body, size->arith));
}

static bool add_binding(Bind *b, const Binding *binding)
{
    const SizeDecl *size = find_size(b->from, binding->name);
    if (!size)
        return diag_error(b->diags, span_none, "T020",
                          "there is no size `%s`; the sizes of this program: %s",
                          binding->name, size_names(b->from));
    if (size->arith->kind != A_VAR)
        return diag_error(b->diags, size->span, "T022", "size %s has a value already",
                          binding->name);
    if (!check_range(b, size, binding))
        return false;
    for (int i = 0; &b->binding[i] != binding; i++)
        if (!strcmp(b->binding[i].name, binding->name))
            return diag_error(b->diags, size->span, "T022", "size %s is given twice",
                              binding->name);
    SizeRange range = binding_range(size, binding);
    bool ranges = is_open(b, size) && (size->generic || binding->range.high);
    if (b->open && !ranges && binding->range.high)
        return diag_error(b->diags, size->span, "T022",
                          "size %s is a number of steps: give one value, not a range",
                          binding->name);
    if (!ranges && !binding->value)
        return true;
    if (ranges && range.low == size->range.low && range.high == size->range.high &&
        range.multiple == size->range.multiple && size->generic)
        return true;
    b->var[b->n] = size->arith;
    b->value[b->n++] = ranges ? arith_size_within(b->to->ir->arith, binding->name,
                                                  range.low, range.high, range.multiple)
                              : arith_const(b->to->ir->arith, binding->value);
    return true;
}

static const Binding *find_binding(const Bind *b, const char *name)
{
    for (int i = 0; i < b->nbinding; i++)
        if (!strcmp(b->binding[i].name, name))
            return &b->binding[i];
    return NULL;
}

static bool copy_sizes(Bind *b)
{
    bool ok = true;
    VEC_EACH(SizeDecl, size, &b->from->sizes) {
        const Binding *binding = find_binding(b, size.name);
        const bool may_open = is_open(b, &size);
        size.arith = bind_arith(b, size.arith);
        if (may_open && binding && binding->range.high) {
            size.range = binding_range(&size, binding);
            size.generic = true;
        }
        if (binding)
            size.usual = binding->value;
        bool number = arith_is_const(size.arith, NULL);
        b->to->generic |= number && (size.generic || (binding && binding->range.high));
        size.generic &= !number;
        bool open = size.generic && (may_open || (!binding && !b->open));
        if (b->all && !open && !arith_is_const(size.arith, NULL))
            ok = diag_error(b->diags, size.span, "T021",
                            "size %s has no value: give one, as in -s %s=1024", size.name,
                            size.name);
        VEC_PUSH(b->to->ir->arena, &b->to->sizes, size);
    }
    return ok;
}

// Limits -------------------------------------------------------------------------------

static bool fits(const Bind *b, Span span, const char *what, const Type *type)
{
    int64_t count;
    bool constant = arith_is_const(type_count(b->to->ir->arith, type), &count);
    return !constant || count <= (int64_t)1 << 40 ||
           diag_error(b->diags, span, "T023", "`%s` has more than 2^40 elements", what);
}

static bool has_elements(const Bind *b, Span span, const char *what, const Type *type)
{
    int64_t count;
    for (int i = 0; type->kind == T_TUPLE && i < type->n; i++)
        if (!has_elements(b, span, what, type->item[i]))
            return false;
    return type->kind == T_TUPLE ||
           !arith_is_const(type_count(b->to->ir->arith, type), &count) || count != 0 ||
           diag_error(b->diags, span, "T023", "an array of `%s` has no elements", what);
}

static bool main_fits(const Bind *b)
{
    const Function *f = b->to->main;
    bool ok = !f || fits(b, f->span, f->name, f->result);
    for (int i = 0; f && i < f->nparam; i++)
        ok = fits(b, f->params[i]->span, f->params[i]->name, f->params[i]->type) && ok;
    if (arith_overflowed(b->to->ir->arith) && ok)
        ok = diag_error(b->diags, span_none, "T023",
                        "a length of the program needs more than 64 bits");
    ok = ok && (!f || has_elements(b, f->span, f->name, f->result));
    for (int i = 0; f && i < f->nparam; i++)
        ok = ok &&
             has_elements(b, f->params[i]->span, f->params[i]->name, f->params[i]->type);
    return ok;
}

static Program *bind(const Program *program, const Binding *binding, int n, bool all,
                     bool open, Diags *diags)
{
    Arena *arena = program->ir->arena;
    Program *to = NEW_OF(arena, Program, .ir = program->ir, .source = program->source,
                         .math = program->math, .extra = program->extra);
    Bind b = {program,
              to,
              diags,
              NEW_ARRAY(arena, const Arith *, n),
              NEW_ARRAY(arena, const Arith *, n),
              0,
              binding,
              n,
              all,
              open};
    (void)arith_overflowed(program->ir->arith);
    bool ok = true;
    for (int i = 0; i < n; i++)
        ok = add_binding(&b, &binding[i]) && ok;
    if (!ok || !copy_sizes(&b))
        return NULL;
    copy_functions(&b);
    return ir_infer(to, diags) && main_fits(&b) ? to : NULL;
}

Program *ir_bind(const Program *program, const Binding *binding, int n, Diags *diags)
{
    return bind(program, binding, n, true, false, diags);
}

Program *ir_bind_some(const Program *program, const Binding *binding, int n, Diags *diags)
{
    return bind(program, binding, n, false, false, diags);
}

Program *ir_bind_open(const Program *program, const Binding *binding, int n, Diags *diags)
{
    return bind(program, binding, n, true, true, diags);
}
