// SPDX-License-Identifier: Apache-2.0
//
// The printer: programs and expressions in the language, in one canonical form that
// parses back to the same. Patterns applied to patterns are chains of |>. Every
// construct is tried on one line first and broken only if it is wider than the page, so
// the layout depends on nothing but the expression.
//
// A bound name that would hide another one in sight, or is a word of the language, gets
// a number: rewriting copies names freely.

#include "ir/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 90, STEP = 2, PARAM_ROOM = 20 }; // columns

// The params in sight and how they are printed, innermost first.
typedef struct PrintedNames PrintedNames;
struct PrintedNames {
    const Param *param;
    const char *name;
    const PrintedNames *outer;
};

typedef struct {
    Buf *out;
    Arena *arena;           // of the names made
    const Program *program; // NULL: an expression alone
    bool flat;              // on one line, given up after stop bytes
    size_t stop;
} IrPrinter;

static void put(IrPrinter *pr, const Expr *expr, int level, int indent,
                const PrintedNames *names);

// Names -------------------------------------------------------------------------------

static const char *plain_name(const Param *param)
{
    return param->name ? param->name : "x";
}

static const char *name_of(const Param *param, const PrintedNames *names)
{
    for (; names; names = names->outer)
        if (names->param == param)
            return names->name;
    return plain_name(param);
}

// Does the text of expr contain this name for something not bound inside expr?
static bool uses_name(const Expr *expr, const char *name, const PrintedNames *names)
{
    if (expr->kind == E_PARAM)
        return !strcmp(name_of(expr->param, names), name);
    if (expr->kind == E_NUM)
        return expr->num[0]->kind == A_VAR && !strcmp(expr->num[0]->name, name);
    if (expr->kind == E_CALL && !strcmp(expr->callee->name, name))
        return true;
    for (int i = 0; i < expr->narg; i++)
        if (uses_name(expr->arg[i], name, names))
            return true;
    return expr->fun && uses_name(expr->fun, name, names);
}

static bool is_declared(const Program *program, const char *name)
{
    for (int i = 0; i < program->sizes.len; i++)
        if (!strcmp(program->sizes.at[i].name, name))
            return true;
    for (int i = 0; i < program->funs.len; i++)
        if (!strcmp(program->funs.at[i]->name, name))
            return true;
    for (int i = 0; i < program->defs.len; i++)
        if (!strcmp(program->defs.at[i]->name, name))
            return true;
    return false;
}

static bool is_taken(const IrPrinter *pr, const char *name, const PrintedNames *names)
{
    for (const PrintedNames *n = names; n; n = n->outer)
        if (!strcmp(n->name, name))
            return true;
    return (pr->program && is_declared(pr->program, name)) || name_is_reserved(name);
}

// Is the name free for a param of a lambda or let? In an expression alone what its body
// uses freely is looked up too; in a program all of that is in sight already.
static bool is_free(const IrPrinter *pr, const char *name, const Param *param,
                    const Expr *body, const PrintedNames *names)
{
    PrintedNames self = {param, "", names};
    return !is_taken(pr, name, names) &&
           (pr->program || !body || !uses_name(body, name, &self));
}

static const char *choose_name(IrPrinter *pr, const Param *param, const Expr *body,
                               const PrintedNames *names)
{
    const char *name = plain_name(param);
    int stem = (int)strlen(name);
    while (stem > 1 && name[stem - 1] >= '0' && name[stem - 1] <= '9')
        stem--;
    for (int i = 2; !is_free(pr, name, param, body, names); i++)
        name = arena_printf(pr->arena, "%.*s%d", stem, plain_name(param), i);
    return name;
}

// Layout ------------------------------------------------------------------------------

static int column(const Buf *out)
{
    size_t at = out->len;
    while (at > 0 && out->text[at - 1] != '\n')
        at--;
    return (int)(out->len - at);
}

static void newline(IrPrinter *pr, int indent)
{
    buf_printf(pr->out, "\n%*s", indent, "");
}

// Breaks the line, or only a space on a flat line.
static void soft_break(IrPrinter *pr, int indent)
{
    if (pr->flat)
        buf_putc(pr->out, ' ');
    else
        newline(pr, indent);
}

static void put_any(IrPrinter *pr, const Expr *expr, int level, int indent,
                    const PrintedNames *names);

// Prints on the rest of this line; false and nothing printed if it does not fit.
static bool put_flat(IrPrinter *pr, const Expr *expr, int level, const PrintedNames *names)
{
    Buf text, *out = pr->out;
    int room = PAGE - column(out);
    if (room <= 0)
        return false;
    text = buf_new();
    pr->out = &text;
    pr->flat = true;
    pr->stop = (size_t)room;
    put(pr, expr, level, 0, names);
    pr->out = out;
    pr->flat = false;
    bool fits = text.len <= (size_t)room;
    if (fits)
        buf_write(out, text.text, text.len);
    buf_release(&text);
    return fits;
}

static void put(IrPrinter *pr, const Expr *expr, int level, int indent,
                const PrintedNames *names)
{
    if (pr->flat ? pr->out->len > pr->stop : put_flat(pr, expr, level, names))
        return;
    put_any(pr, expr, level, indent, names);
}

// Literals ----------------------------------------------------------------------------

static void put_literal(Buf *out, const Expr *expr)
{
    char text[40];
    if (expr->boolean) {
        buf_puts(out, expr->number != 0 ? "true" : "false");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, expr->number);
        if (strtod(text, NULL) == expr->number)
            break;
    }
    if (expr->number == floor(expr->number) && fabs(expr->number) <= 0x1p53)
        snprintf(text, sizeof text, "%.0f", expr->number);
    buf_puts(out, text);
    if (expr->floating && !strpbrk(text, ".en"))
        buf_puts(out, ".0");
}

// Patterns ----------------------------------------------------------------------------

// Prints as a stage of a chain if its data is a pattern too.
static bool is_stage(const Expr *expr)
{
    return expr->kind == E_PATTERN && pattern_info[expr->pattern].data > 0 &&
           expr->arg[expr->narg - 1]->kind == E_PATTERN;
}

static int nums_shown(const Expr *expr)
{
    int group = pattern_info[expr->pattern].num;
    for (int i = group; i < expr->nnum; i++)
        if (expr->num[i] != expr->num[i - group])
            return expr->nnum;
    return MIN(group, expr->nnum);
}

// What precedes an argument: the parenthesis, or a comma and perhaps a line break.
static void open_arg(IrPrinter *pr, bool *first, bool wide, int indent)
{
    if (*first)
        buf_putc(pr->out, '(');
    else
        buf_putc(pr->out, ',');
    if (!*first && (pr->flat || !wide))
        buf_putc(pr->out, ' ');
    else if (!*first)
        newline(pr, indent);
    *first = false;
}

// The name and the arguments, without the last data argument where it is piped.
static void put_pattern(IrPrinter *pr, const Expr *e, bool piped, int indent,
                        const PrintedNames *names)
{
    bool first = true;
    pattern_print_name(pr->out, e->pattern, e->dims, e->par);
    int nums = nums_shown(e), arg = 0;
    for (int i = 0; i < nums; i++) {
        open_arg(pr, &first, false, indent);
        arith_print(pr->out, e->num[i]);
    }
    if (e->pattern == P_PAD) {
        open_arg(pr, &first, false, indent);
        if (e->mode == PAD_CONSTANT)
            put(pr, e->arg[arg++], LEVEL_ANY, indent + STEP, names);
        else
            buf_puts(pr->out, pad_mode_name[e->mode]);
    }
    if (e->fun) {
        open_arg(pr, &first, false, indent);
        put(pr, e->fun, LEVEL_ANY, indent + STEP, names);
    }
    for (; arg < e->narg - piped; arg++) {
        open_arg(pr, &first, true, indent + STEP);
        put(pr, e->arg[arg], LEVEL_ANY, indent + STEP, names);
    }
    if (!first)
        buf_putc(pr->out, ')');
}

static void put_chain(IrPrinter *pr, const Expr *expr, int indent,
                      const PrintedNames *names)
{
    const Expr *data = expr->arg[expr->narg - 1];
    if (data->kind == E_PATTERN && pattern_info[data->pattern].data > 0)
        put_chain(pr, data, indent, names);
    else
        put(pr, data, LEVEL_OR, indent + STEP, names);
    soft_break(pr, indent + STEP);
    buf_puts(pr->out, "|> ");
    put_pattern(pr, expr, true, indent + STEP, names);
}

// Expressions -------------------------------------------------------------------------

// How tightly the text of an expression holds together.
static int level_of(const Expr *expr)
{
    switch (expr->kind) {
    case E_OP:
        if (expr->op == OP_SELECT)
            return LEVEL_ANY;
        return op_info[expr->op].form == FORM_INFIX    ? op_level(expr->op)
               : op_info[expr->op].form == FORM_PREFIX ? LEVEL_PREFIX
                                                       : LEVEL_POSTFIX;
    case E_LITERAL: return expr->boolean ? LEVEL_POSTFIX : LEVEL_PREFIX;
    case E_PATTERN: return is_stage(expr) ? LEVEL_ANY : LEVEL_POSTFIX;
    case E_LET:
    case E_LAMBDA: return LEVEL_ANY;
    case E_PARAM:
    case E_NUM:
    case E_CALL:
    case E_TUPLE:
    case E_GET:
    case E_AT: return LEVEL_POSTFIX;
    }
    BUG("expression of kind %d", expr->kind);
}

static void put_args(IrPrinter *pr, const Expr *expr, int indent, const PrintedNames *names)
{
    bool first = true;
    for (int i = 0; i < expr->narg; i++) {
        open_arg(pr, &first, true, indent + STEP);
        put(pr, expr->arg[i], LEVEL_ANY, indent + STEP, names);
    }
    buf_puts(pr->out, first ? "()" : ")");
}

static void put_select(IrPrinter *pr, const Expr *expr, int indent,
                       const PrintedNames *names)
{
    static const char *const word[] = {"if ", "then ", "else "};
    for (int i = 0; i < 3; i++) {
        if (i)
            soft_break(pr, indent);
        buf_puts(pr->out, word[i]);
        put(pr, expr->arg[i], LEVEL_ANY, indent + STEP, names);
    }
}

static void put_op(IrPrinter *pr, const Expr *expr, int indent, const PrintedNames *names)
{
    const OpInfo *info = &op_info[expr->op];
    if (expr->op == OP_SELECT) {
        put_select(pr, expr, indent, names);
    } else if (info->form == FORM_CALL) {
        buf_puts(pr->out, info->text);
        put_args(pr, expr, indent, names);
    } else if (info->form == FORM_PREFIX) {
        buf_puts(pr->out, info->text);
        put(pr, expr->arg[0], LEVEL_POSTFIX, indent + STEP, names);
    } else {
        int level = op_level(expr->op);
        put(pr, expr->arg[0], level + (level == LEVEL_COMPARE), indent, names);
        soft_break(pr, indent + STEP);
        buf_printf(pr->out, "%s ", info->text);
        put(pr, expr->arg[1], level + 1, indent + STEP, names);
    }
}

static void put_let(IrPrinter *pr, const Expr *expr, int indent, const PrintedNames *names)
{
    PrintedNames inner = {expr->param, NULL, names};
    inner.name = choose_name(pr, expr->param, expr->arg[1], names);
    buf_printf(pr->out, "let %s = ", inner.name);
    put(pr, expr->arg[0], LEVEL_ANY, indent + STEP, names);
    buf_puts(pr->out, " in");
    soft_break(pr, indent);
    put(pr, expr->arg[1], LEVEL_ANY, indent, &inner);
}

// The i-th param and those after it, then the body under all of them.
static void put_lambda(IrPrinter *pr, const Expr *expr, int i, int indent,
                       const PrintedNames *names)
{
    if (i == expr->nparam) {
        buf_puts(pr->out, " ->");
        soft_break(pr, indent);
        put(pr, expr->arg[0], LEVEL_ANY, indent, names);
        return;
    }
    PrintedNames inner = {expr->params[i], NULL, names};
    inner.name = choose_name(pr, expr->params[i], expr->arg[0], names);
    buf_printf(pr->out, "%s%s", i ? " " : "\\", inner.name);
    put_lambda(pr, expr, i + 1, indent, &inner);
}

static void put_num(Buf *out, const Arith *num)
{
    bool name = num->kind == A_VAR;
    buf_puts(out, name ? "" : "size(");
    arith_print(out, num);
    buf_puts(out, name ? "" : ")");
}

static void put_bare(IrPrinter *pr, const Expr *expr, int indent, const PrintedNames *names)
{
    switch (expr->kind) {
    case E_LITERAL: put_literal(pr->out, expr); return;
    case E_PARAM: buf_puts(pr->out, name_of(expr->param, names)); return;
    case E_NUM: put_num(pr->out, expr->num[0]); return;
    case E_OP: put_op(pr, expr, indent, names); return;
    case E_LET: put_let(pr, expr, indent, names); return;
    case E_LAMBDA: put_lambda(pr, expr, 0, indent, names); return;
    case E_TUPLE: put_args(pr, expr, indent, names); return;
    case E_CALL:
        buf_puts(pr->out, expr->callee->name);
        put_args(pr, expr, indent, names);
        return;
    case E_GET:
        put(pr, expr->arg[0], LEVEL_POSTFIX, indent, names);
        buf_printf(pr->out, ".%d", expr->index);
        return;
    case E_AT:
        put(pr, expr->arg[0], LEVEL_POSTFIX, indent, names);
        buf_putc(pr->out, '[');
        put(pr, expr->arg[1], LEVEL_ANY, indent + STEP, names);
        buf_putc(pr->out, ']');
        return;
    case E_PATTERN:
        if (is_stage(expr))
            put_chain(pr, expr, indent, names);
        else
            put_pattern(pr, expr, false, indent, names);
        return;
    }
}

static void put_any(IrPrinter *pr, const Expr *expr, int level, int indent,
                    const PrintedNames *names)
{
    bool parens = level_of(expr) < level;
    if (parens)
        buf_putc(pr->out, '(');
    put_bare(pr, expr, indent, names);
    if (parens)
        buf_putc(pr->out, ')');
}

void expr_print(Buf *out, const Expr *expr)
{
    IrPrinter pr = {.out = out, .arena = arena_new()};
    put(&pr, expr, LEVEL_ANY, 0, NULL);
    arena_free(pr.arena);
}

// Programs ----------------------------------------------------------------------------

static void put_sizes(Buf *out, const Program *program)
{
    for (int i = 0; i < program->sizes.len; i++) {
        const SizeDecl *size = &program->sizes.at[i];
        buf_printf(out, "%s%s%s", i ? ", " : "size ", size->name,
                   size->generic ? " generic" : "");
        if (size->generic)
            size_range_print(out, &size->range);
    }
    if (program->sizes.len)
        buf_puts(out, "\n\n");
}

static void put_opaque(Buf *out, const Function *f)
{
    static const char from[] = "\n\"\\\t", to[] = "n\"\\t";
    buf_puts(out, " c\"");
    for (const char *c = f->text; *c; c++) {
        const char *found = strchr(from, *c);
        if (found)
            buf_putc(out, '\\');
        buf_putc(out, found ? to[found - from] : *c);
    }
    buf_printf(out, "\" flops %d\n", f->flops);
}

static void put_body(IrPrinter *pr, const Function *f, const PrintedNames *names)
{
    buf_puts(pr->out, " =");
    if (!f->body) {
        put_opaque(pr->out, f);
        return;
    }
    size_t before = pr->out->len;
    buf_putc(pr->out, ' ');
    if (f->is_def || !put_flat(pr, f->body, LEVEL_ANY, names)) {
        pr->out->text[pr->out->len = before] = 0;
        newline(pr, STEP);
        put(pr, f->body, LEVEL_ANY, STEP, names);
    }
    buf_putc(pr->out, '\n');
}

// The i-th parameter and those after it, then the rest under all of them.
static void put_params(IrPrinter *pr, const Function *f, int i, const PrintedNames *names)
{
    if (i == f->nparam) {
        buf_putc(pr->out, ')');
        if (f->result) {
            buf_puts(pr->out, ": ");
            type_print(pr->out, f->result);
        }
        put_body(pr, f, names);
        return;
    }
    PrintedNames inner = {f->params[i], NULL, names};
    inner.name = choose_name(pr, f->params[i], f->body, names);
    buf_puts(pr->out, inner.name);
    const Type *type = f->params[i]->type;
    bool last = i + 1 == f->nparam;
    if (last || !type_equal(pr->program->ir->arith, type, f->params[i + 1]->type)) {
        buf_puts(pr->out, ": ");
        type_print(pr->out, type);
    }
    if (!last)
        buf_putc(pr->out, ',');
    if (!last && column(pr->out) > PAGE - PARAM_ROOM)
        newline(pr, 2 * STEP);
    else if (!last)
        buf_putc(pr->out, ' ');
    put_params(pr, f, i + 1, &inner);
}

static void put_function(IrPrinter *pr, const Function *f)
{
    buf_printf(pr->out, "%s %s", f->is_def ? "def" : "fun", f->name);
    for (int i = 0; i < f->ngeneric; i++)
        buf_printf(pr->out, "%s%s%s", i ? ", " : "[", f->generic[i].name,
                   i + 1 == f->ngeneric ? "]" : "");
    buf_putc(pr->out, '(');
    put_params(pr, f, 0, NULL);
}

// Defs in the order of the text: those left open too.
static const Function *next_def(const Program *program, int *def, int *generic)
{
    const Function *a = *def < program->defs.len ? program->defs.at[*def] : NULL;
    const Function *b =
        *generic < program->generics.len ? program->generics.at[*generic] : NULL;
    bool first = a && (!b || a->span.start < b->span.start);
    (*(first ? def : generic))++;
    return first ? a : b;
}

void ir_print(Buf *out, const Program *program)
{
    IrPrinter pr = {.out = out, .arena = arena_new(), .program = program};
    put_sizes(out, program);
    for (int i = 0; i < program->funs.len; i++)
        put_function(&pr, program->funs.at[i]);
    int def = 0, generic = 0;
    for (int i = 0; i < program->defs.len + program->generics.len; i++) {
        if (i || program->funs.len)
            buf_putc(out, '\n');
        put_function(&pr, next_def(program, &def, &generic));
    }
    arena_free(pr.arena);
}
