// SPDX-License-Identifier: Apache-2.0
//
// Text tables. A cell is as wide as its characters, taken as one column each: no wide or
// combining characters.
#include "report/report.h"

#include <stdlib.h>

void put_duration(Buf *out, double ns, const char *micro)
{
    if (ns < 1e3)
        buf_printf(out, "%.0f ns", ns);
    else if (ns < 1e6)
        buf_printf(out, "%.1f %ss", ns * 1e-3, micro);
    else if (ns < 1e9)
        buf_printf(out, "%.3f ms", ns * 1e-6);
    else
        buf_printf(out, "%.3f s", ns * 1e-9);
}

TextTable table_new(Arena *arena, int columns)
{
    return (TextTable){.arena = arena, .columns = columns};
}

void table_put(TextTable *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    VEC_PUSH(table->arena, &table->cell, arena_vprintf(table->arena, format, args));
    va_end(args);
}

void table_row(TextTable *table, const char *const *cell, int n)
{
    for (int i = 0; i < n; i++)
        table_put(table, "%s", cell[i]);
}

// Characters of UTF-8: bytes that do not continue one.
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

static int column_width(const TextTable *t, int column)
{
    int width = 0;
    for (int i = column; i < t->cell.len; i += t->columns)
        width = MAX(width, width_of(t->cell.at[i]));
    return width;
}

static void fill(Buf *out, char c, int n)
{
    for (int i = 0; i < n; i++)
        buf_putc(out, c);
}

static void print_row(Buf *out, const TextTable *t, int row, const int *width)
{
    for (int c = 0; c < t->columns; c++) {
        const char *text = t->cell.at[row * t->columns + c];
        int blank = width[c] - width_of(text);
        fill(out, ' ', 2 + (c > 0 ? blank : 0));
        buf_puts(out, text);
        if (c == 0 && t->columns > 1)
            fill(out, ' ', blank);
    }
    buf_putc(out, '\n');
}

void table_print(Buf *out, const TextTable *t)
{
    if (t->cell.len % t->columns)
        BUG("a table of %d columns has %d cells", t->columns, t->cell.len);
    int *width = xcalloc((size_t)t->columns, sizeof *width), total = 0;
    for (int c = 0; c < t->columns; c++) {
        width[c] = column_width(t, c);
        total += width[c] + (c > 0 ? 2 : 0);
    }
    for (int row = 0; row * t->columns < t->cell.len; row++) {
        print_row(out, t, row, width);
        if (row == 0) {
            fill(out, ' ', 2);
            fill(out, '-', total);
            buf_putc(out, '\n');
        }
    }
    free(width);
}
