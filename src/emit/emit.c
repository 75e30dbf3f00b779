// SPDX-License-Identifier: Apache-2.0
//
// Targets, names, lines, and whole units of text. A statement is put together on one line
// and broken where it is too wide: at the space outside most parentheses, late in the line.

#include "emit/print.h"

#include <stdlib.h>
#include <string.h>

static const Target targets[] = {
#define TARGET(id, ...) {__VA_ARGS__},
#include "emit/targets.def"
#undef TARGET
};

const Target *target_find(const char *name)
{
    for (int i = 0; i < COUNTOF(targets); i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i];
    return NULL;
}

const Target *target_at(int i)
{
    return i < COUNTOF(targets) ? &targets[i] : NULL;
}

bool target_has_threads(const Target *target)
{
    return target->threads;
}

bool target_has_images(const Target *target)
{
    return target->image != NULL;
}

const char *target_name(const Target *target)
{
    return target->name;
}

const char *target_extension(const Target *target)
{
    return target->extension;
}

const char *target_options(const Target *target, Math math)
{
    return target->math[math] ? target->math[math] : "";
}

// Names -------------------------------------------------------------------------------

static const char *const reserved[] = {
#define KEYWORD(word)  #word,
#define BUILTIN(word)  #word,
#define RESERVED(word) #word,
#include "emit/reserved.def"
#undef KEYWORD
#undef BUILTIN
#undef RESERVED
};

static int compare_word(const void *key, const void *entry)
{
    return strcmp(key, *(const char *const *)entry);
}

bool emit_reserved(const char *name)
{
    return !strncmp(name, "fw_", 3) || !strncmp(name, "__", 2) ||
           bsearch(name, reserved, COUNTOF(reserved), sizeof *reserved, compare_word);
}

void put_function_name(Printer *p, const char *name)
{
    put(p, "%s%s", name, emit_reserved(name) ? "_" : "");
}

void put_name(Printer *p, const char *name)
{
    bool taken = emit_reserved(name);
    for (int i = 0; i < p->program->funs.len && !taken; i++)
        taken = !strcmp(name, p->program->funs.at[i]->name);
    put(p, "%s%s", name, taken ? "_" : "");
}

void put_type(Printer *p, const Type *type)
{
    if (type->kind == T_SCALAR)
        put(p, "%s", scalar_info[type->scalar].name);
    else if (type->kind == T_VECTOR && p->lane >= 0)
        put(p, "%s", scalar_info[type->scalar].name);
    else if (type->kind == T_VECTOR) // there are no vectors of bool
        put(p, "%s%d", scalar_info[type->scalar == S_BOOL ? S_INT : type->scalar].name,
            type->width);
    else
        BUG("a value of type kind %d in a kernel", type->kind);
}

// Lines -------------------------------------------------------------------------------

enum { WIDTH = 100 };

void printer_init(Printer *p, Buf *out, const Target *target, const Program *program)
{
    *p = (Printer){.out = out, .target = target, .program = program, .lane = -1};
    p->ctx = program->ir->arith;
    p->arena = arena_new();
    buf_init(&p->line);
}

void printer_release(Printer *p)
{
    buf_release(&p->line);
    arena_free(p->arena);
}

void put(Printer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vprintf(&p->line, format, args);
    va_end(args);
}

static int depth_change(char c)
{
    return (c == '(' || c == '{' || c == '[') - (c == ')' || c == '}' || c == ']');
}

// Where to break a text so that at most `room` characters stay: the space with fewest
// parentheses open, rather after a comma, the last of those, in the later two thirds if
// there is one. 0: nowhere. Adds the parentheses open there to depth.
static size_t break_at(const char *text, size_t room, int *depth)
{
    size_t best = 0;
    int least = 1 << 30, now = *depth, there = now;
    for (size_t i = 0; text[i] && i <= room; i++) {
        now += depth_change(text[i]);
        if (text[i] != ' ' || i == 0)
            continue;
        int cost = 2 * now + (text[i - 1] != ',');
        if (cost <= least || best < room / 3) {
            best = i;
            least = cost;
            there = now;
        }
    }
    *depth = there;
    return best;
}

static void put_indent(Printer *p, int indent)
{
    for (int i = 0; i < indent; i++)
        buf_puts(p->out, "    ");
}

enum { DEEPEST = 3 }; // steps that a continued line is indented by

void end_line(Printer *p)
{
    const char *text = p->line.text;
    int indent = p->indent, depth = 0;
    for (;;) {
        put_indent(p, indent);
        size_t room = (size_t)MAX(WIDTH - 4 * indent, 40);
        size_t at = strlen(text) <= room ? 0 : break_at(text, room, &depth);
        if (!at)
            break;
        buf_write(p->out, text, at);
        buf_putc(p->out, '\n');
        text += at + 1;
        indent = p->indent + MIN(MAX(depth, 1), DEEPEST);
    }
    buf_puts(p->out, text);
    buf_putc(p->out, '\n');
    buf_clear(&p->line);
}

void put_line(Printer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vprintf(&p->line, format, args);
    va_end(args);
    end_line(p);
}

// Units -------------------------------------------------------------------------------

void emit_kernel(Buf *out, const Target *target, const Unit *unit, const Kernel *kernel)
{
    Printer p;
    printer_init(&p, out, target, unit->program);
    put_kernel(&p, kernel);
    printer_release(&p);
}

static void put_sizes(Printer *p)
{
    int n = p->program->sizes.len;
    const SizeDecl *size = p->program->sizes.at;
    for (int i = 0; i < n; i++) {
        int64_t value;
        put(p, "%s%s", i ? ", " : ": ", size[i].name);
        if (size[i].generic)
            put(p, " (generic)");
        else if (size[i].arith && arith_is_const(size[i].arith, &value))
            put(p, " = %lld", (long long)value);
    }
}

static void put_launch(Printer *p, const Launch *launch)
{
    const Kernel *kernel = launch->kernel;
    put(p, "//   %s, global (", kernel->name);
    for (int i = 0; i < 3; i++) {
        put(p, i ? ", " : "");
        arith_print(&p->line, kernel->global[i]);
    }
    put(p, "), local (%lld, %lld, %lld), arguments (", (long long)kernel->local[0],
        (long long)kernel->local[1], (long long)kernel->local[2]);
    for (int i = 0; i < kernel->params.len; i++)
        put(p, "%s%s%s", i ? ", " : "", launch->buffer[i]->name,
            p->target->image && kernel_reads_image(kernel, kernel->params.at[i])
                ? " as an image"
                : "");
    for (int i = 0; i < kernel->sizes.len; i++) {
        put(p, kernel->params.len + i ? ", " : "");
        arith_print(&p->line, kernel->sizes.at[i]);
    }
    put(p, ")");
    buf_write(p->out, p->line.text, p->line.len); // a comment must not be wrapped
    buf_putc(p->out, '\n');
    buf_clear(&p->line);
}

enum { LAUNCHES_SHOWN = 8 };

static void put_head(Printer *p, const Unit *unit)
{
    put(p, "// %s", unit->program->main ? unit->program->main->name : "program");
    put_sizes(p);
    buf_printf(p->out, "%s\n//\n// Launches, in order:\n", p->line.text);
    buf_clear(&p->line);
    int n = MIN(unit->launches.len, LAUNCHES_SHOWN);
    for (int i = 0; i < n; i++)
        put_launch(p, &unit->launches.at[i]);
    if (n < unit->launches.len)
        buf_printf(p->out, "//   and %d more\n", unit->launches.len - n);
    const char *options = target_options(p->target, unit->program->math);
    if (*options)
        buf_printf(p->out, "//\n// Compiler options: %s\n", options);
    buf_putc(p->out, '\n');
}

static unsigned bit_of(const Type *type, bool arithmetic)
{
    return type->kind == T_VECTOR ? vector_bit(type->scalar, type->width, arithmetic) : 0;
}

static unsigned vectors_in_value(const KExpr *e)
{
    unsigned found = bit_of(e->type, e->kind == K_OP);
    for (int i = 0; e->kind != K_COND && i < e->n; i++)
        found |= vectors_in_value(e->arg[i]);
    return found;
}

static unsigned vectors_in(const Block *block)
{
    unsigned found = 0;
    for (int i = 0; i < block->len; i++) {
        const Stm *stm = block->at[i];
        found |= stm->var ? bit_of(stm->var->type, false) : 0;
        found |= stm->value ? vectors_in_value(stm->value) : 0;
        found |= vectors_in(&stm->body) | vectors_in(&stm->other);
    }
    return found;
}

void emit_unit(Buf *out, const Target *target, const Unit *unit)
{
    Printer p;
    Buf kernels;
    Uses uses = {0};
    buf_init(&kernels);
    for (int i = 0; i < unit->kernels.len; i++) {
        uses.vectors |= vectors_in(&unit->kernels.at[i]->body);
        if (i > 0)
            buf_putc(&kernels, '\n');
        emit_kernel(&kernels, target, unit, unit->kernels.at[i]);
    }
    uses.text = kernels.text;
    printer_init(&p, out, target, unit->program);
    put_head(&p, unit);
    printer_release(&p);
    size_t before = out->len;
    put_prelude(out, target, unit->program, &uses);
    if (out->len > before)
        buf_putc(out, '\n');
    buf_write(out, kernels.text, kernels.len);
    buf_release(&kernels);
}
