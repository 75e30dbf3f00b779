// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <string.h>

const Span span_none = {0};

enum { DIAGS_KEPT = 20, EXCERPT_MOST = 200 };

// What finds an error on two ways to the same place says it once.
static bool said_before(const Diags *diags, const Diag *diag)
{
    VEC_EACH_REF(const Diag *, old, &diags->list)
        if (diag->span.source && old->span.source == diag->span.source &&
            old->span.start == diag->span.start && old->span.end == diag->span.end &&
            old->kind == diag->kind && !strcmp(old->message, diag->message))
            return true;
    return false;
}

static void keep(Diags *diags, const Diag *diag)
{
    diags->errors += diag->kind >= DIAG_ERROR;
    diags->world += diag->kind == DIAG_WORLD;
    if (diags->list.len < DIAGS_KEPT && !said_before(diags, diag))
        VEC_PUSH(diags->arena, &diags->list, *diag);
}

static void diag_add(Diags *diags, DiagKind kind, Span span, const char *code,
                     const char *format, va_list args)
{
    Diag diag = {kind, code, span, arena_vprintf(diags->arena, format, args)};
    keep(diags, &diag);
}

void diags_add(Diags *diags, const Diags *others, const Source *text)
{
    VEC_EACH_REF(const Diag *, other, &others->list) {
        Diag diag = *other;
        const bool same =
            text && diag.span.source && strcmp(diag.span.source->name, text->name) == 0;
        diag.span = same ? (Span){text, diag.span.start, diag.span.end} : span_none;
        diag.message = arena_strdup(diags->arena, other->message);
        keep(diags, &diag);
    }
}

bool diag_verror(Diags *diags, Span span, const char *code, const char *format,
                 va_list args)
{
    diag_add(diags, DIAG_ERROR, span, code, format, args);
    return false;
}

bool diag_error(Diags *diags, Span span, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_verror(diags, span, code, format, args);
    va_end(args);
    return false;
}

void *diag_null(Diags *diags, Span span, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_verror(diags, span, code, format, args);
    va_end(args);
    return NULL;
}

bool diag_world(Diags *diags, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_add(diags, DIAG_WORLD, span_none, code, format, args);
    va_end(args);
    return false;
}

void diag_warning(Diags *diags, Span span, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diag_add(diags, DIAG_WARNING, span, code, format, args);
    va_end(args);
}

static size_t line_start(const Source *source, size_t at)
{
    while (at > 0 && source->text[at - 1] != '\n')
        at--;
    return at;
}

void span_line_col(Span span, int *line, int *col)
{
    *line = 1;
    for (size_t i = 0; i < span.start; i++)
        *line += span.source->text[i] == '\n';
    *col = 1 + (int)(span.start - line_start(span.source, span.start));
}

Span span_join(Span a, Span b)
{
    if (!a.source || a.source != b.source)
        return a.source ? a : b;
    return (Span){a.source, MIN(a.start, b.start), MAX(a.end, b.end)};
}

// The source line and carets under the span; tabs are kept so that columns line up.
static void print_excerpt(Buf *out, Span span)
{
    size_t start = line_start(span.source, span.start);
    if (span.start - start > EXCERPT_MOST) // of a very long line only what is near
        start = span.start - EXCERPT_MOST / 2;
    const char *line = span.source->text + start;
    size_t len = MIN(strcspn(line, "\r\n"), (size_t)2 * EXCERPT_MOST),
           from = span.start - start;
    size_t to = MIN(MAX(span.end, span.start + 1) - start, MAX(len, from + 1));
    buf_puts(out, "    ");
    buf_shown(out, line, len);
    buf_puts(out, "\n    ");
    bool plain;
    for (size_t i = 0, n; i < to; i += n) { // a character stands in one column
        n = i < len ? text_step(line + i, len - i, &plain) : 1;
        bool first = i <= from && from < i + n;
        buf_putc(out, first                        ? '^'
                      : i > from                   ? '~'
                      : i < len && line[i] == '\t' ? '\t'
                                                   : ' ');
    }
    buf_putc(out, '\n');
}

static void put_shown(Buf *out, const char *text)
{
    buf_shown(out, text, strlen(text));
}

static void print_diag(Buf *out, const Diag *diag, bool colour)
{
    static const char *const paint[] = {"\033[36m", "\033[1;33m", "\033[1;31m",
                                        "\033[1;31m"};
    static const char *const word[] = {"note", "warning", "error", "error"};
    if (diag->span.source) {
        int line, col;
        span_line_col(diag->span, &line, &col);
        put_shown(out, diag->span.source->name);
        buf_printf(out, ":%d:%d: ", line, col);
    } else {
        buf_puts(out, "forewarp: ");
    }
    buf_puts(out, colour ? paint[diag->kind] : "");
    buf_puts(out, word[diag->kind]);
    if (diag->code[0])
        buf_printf(out, " %s", diag->code);
    buf_puts(out, colour ? "\033[0m: " : ": ");
    put_shown(out, diag->message);
    buf_putc(out, '\n');
    if (diag->span.source)
        print_excerpt(out, diag->span);
}

static void print_all(Buf *out, const Diags *diags, bool colour)
{
    for (int i = 0; i < diags->list.len; i++)
        print_diag(out, &diags->list.at[i], colour);
    if (diags->errors > DIAGS_KEPT && diags->list.len == DIAGS_KEPT)
        buf_printf(out, "forewarp: %d errors in all\n", diags->errors);
}

void diags_print(Buf *out, const Diags *diags)
{
    print_all(out, diags, false);
}

void diags_paint(Buf *out, const Diags *diags)
{
    print_all(out, diags, true);
}

int diags_exit_status(const Diags *diags)
{
    return diags->errors > diags->world ? 2 : diags->world ? 1 : 0;
}
