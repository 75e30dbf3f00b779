// SPDX-License-Identifier: Apache-2.0
//
// Names and lines, for all that prints here. A statement is put together on one line and
// broken where it is too wide: at the space outside most parentheses, late in the line.

#include "emit/print.h"

#include <string.h>

// Names -------------------------------------------------------------------------------

static const char *const reserved[] = {
#define KEYWORD(words)  words,
#define BUILTIN(words)  words,
#define RESERVED(words) words,
#include "emit/reserved.def"
#undef KEYWORD
#undef BUILTIN
#undef RESERVED
};

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; len && (at = strstr(at, word)); at++)
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
            return true;
    return false;
}

bool emit_reserved(const char *name)
{
    bool found = !strncmp(name, "fw_", 3) || !strncmp(name, "__", 2);
    for (int i = 0; i < COUNTOF(reserved) && !found; i++)
        found = has_word(reserved[i], name);
    return found;
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

bool has_builtins(const Printer *p)
{
    return p->target->threads && !p->target->doubts;
}

const char *scalar_text(const Printer *p, Scalar scalar)
{
    const ScalarInfo *info = &scalar_info[scalar];
    if (p->target->doubts)
        return arena_printf(p->arena, "fw_%s", info->name);
    return p->target->c_scalars ? info->c : info->opencl;
}

void put_type(Printer *p, const Type *type)
{
    bool whole = type->kind == T_VECTOR && p->lane < 0;
    if (type->kind != T_SCALAR && type->kind != T_VECTOR)
        BUG("a value of type kind %d in a kernel", type->kind);
    Scalar vectors = scalar_info[type->scalar].vectors;
    if (!whole)
        put(p, "%s", scalar_text(p, type->scalar));
    else if (p->target->doubts && type->scalar == S_BF16)
        put(p, "%s%d", scalar_text(p, S_BF16), type->width);
    else
        put(p, "%s%s%d", p->target->doubts ? "fw_" : "", scalar_info[vectors].name,
            type->width);
}

// Lines -------------------------------------------------------------------------------

enum { WIDTH = 100 };

void printer_init(Printer *p, Buf *out, const Target *target, const Program *program)
{
    *p = (Printer){.out = out, .target = target, .program = program, .lane = -1};
    p->ctx = program->ir->arith;
    p->arena = arena_new();
    p->line = buf_new();
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

enum { DEEPEST = 3 }; // steps that a continued line is indented by

void end_line(Printer *p)
{
    const char *text = p->line.text;
    int indent = p->indent, depth = 0;
    for (;;) {
        for (int i = 0; i < indent; i++)
            buf_puts(p->out, "    ");
        size_t room = (size_t)MAX(WIDTH - 4 * indent, 40);
        size_t at = strlen(text) <= room ? 0 : break_at(text, room, &depth);
        if (!at)
            break;
        buf_write(p->out, text, at);
        buf_puts(p->out, p->line.text[0] == '#' ? " \\\n" : "\n"); // a directive goes on
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

void put_form(Printer *p, const char *form, ...)
{
    va_list args;
    va_start(args, form);
    for (; *form; form++) {
        if (*form == '\n') {
            end_line(p);
        } else if (*form != '%') {
            buf_putc(&p->line, *form);
        } else {
            switch (*++form) {
            case 's': buf_puts(&p->line, va_arg(args, const char *)); break;
            case 'd': put(p, "%d", va_arg(args, int)); break;
            case 'l': put(p, "%lld", (long long)va_arg(args, int64_t)); break;
            case 'n': put_name(p, va_arg(args, const char *)); break;
            case 't': put_type(p, va_arg(args, const Type *)); break;
            case 'v': put_value(p, va_arg(args, const KExpr *), PREC_SELECT); break;
            case 'i': put_index(p, va_arg(args, const Arith *), PREC_ANY); break;
            case 'e': {
                const Buffer *buffer = va_arg(args, const Buffer *);
                put_element(p, buffer, va_arg(args, const Arith *));
                break;
            }
            default: buf_putc(&p->line, *form);
            }
        }
    }
    va_end(args);
}
