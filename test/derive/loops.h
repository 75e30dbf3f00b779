// SPDX-License-Identifier: Apache-2.0
//
// Programs for test_stream.c, drawn at random: loops over arrays of every type, border and
// reach, and stages without a loop.

#ifndef FW_TEST_LOOPS_H
#define FW_TEST_LOOPS_H

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int dims, reach, arrays;
    const char *type, *border;
    bool field;   // an array that is read and not carried
    bool divides; // by a cell, which is from 1 to 97
    bool counts;  // beside the arrays a number does, and is read
} Drawn;

static inline int draw(int n)
{
    return rand() % n;
}

static inline void put_sizes(Buf *out, const Drawn *d, const char *before,
                             const char *after)
{
    for (int k = 0; k < d->dims; k++)
        buf_printf(out, "%s%c%s", before, "NMK"[k], after);
}

// Layouts of one dimension have no number.
static inline const char *dims_text(const Drawn *d)
{
    return d->dims == 1 ? "" : d->dims == 2 ? "2" : "3";
}

static inline bool is_whole(const Drawn *d)
{
    return strcmp(d->type, "int") == 0;
}

// Whole numbers stay small.
static inline const char *half_of(const Drawn *d)
{
    return is_whole(d) ? "2*" : "0.5*";
}

// An array with a border, as windows. One that differs is padded side by side.
static inline void put_windows(Buf *out, const Drawn *d, const char *array)
{
    const char *const mode[] = {"clamp", "mirror", is_whole(d) ? "3" : "0.75"};
    const char *n = dims_text(d);
    buf_puts(out, array);
    if (strcmp(d->border, "sides") == 0)
        buf_printf(out, " |> pad%s(%d, 0, %s) |> pad%s(0, %d, %s)", n, d->reach,
                   mode[draw(3)], n, d->reach, mode[draw(2)]);
    else
        buf_printf(out, " |> pad%s(%d, %d, %s)", n, d->reach, d->reach,
                   strcmp(d->border, "keep") == 0 ? "clamp" : d->border);
    buf_printf(out, " |> slide%s(%d, 1)", n, 2 * d->reach + 1);
}

static inline void put_point(Buf *out, const Drawn *d, const char *window, bool centre,
                             bool star)
{
    int along = draw(d->dims);
    buf_puts(out, window);
    for (int k = 0; k < d->dims; k++)
        buf_printf(out, "[%d]",
                   centre || (star && k != along) ? d->reach : draw(2 * d->reach + 1));
}

static inline void put_sum(Buf *out, const Drawn *d, const char *window)
{
    bool star = draw(2), whole = is_whole(d);
    buf_puts(out, whole ? "max(-999, min(999, 2*" : "0.4*");
    put_point(out, d, window, true, false);
    for (int i = 0, n = 3 + draw(4); i < n; i++) {
        buf_printf(out, whole ? " + %d*" : " + 0.%d*", 1 + draw(9) * (whole ? -1 : 11));
        put_point(out, d, window, false, star);
    }
    if (d->field)
        buf_printf(out, " + %se", half_of(d));
    if (d->counts)
        buf_printf(out, whole ? " + 3*(t %% 4)" : " + 0.25*%s(t %% 4)", d->type);
    buf_puts(out, whole ? "))" : "");
}

// Divides, if it is to; window: of cells that are at least 1.
static inline void divide(Buf *sum, const Drawn *d, const char *window)
{
    if (!d->divides)
        return;
    Buf all = buf_new();
    buf_printf(&all, "1 + (%s + %s ", sum->text, draw(2) ? "777 /" : "999 %");
    put_point(&all, d, window, false, false);
    buf_puts(&all, ") % 97");
    buf_clear(sum);
    buf_puts(sum, all.text);
    buf_release(&all);
}

static inline const char *start_of(const Drawn *d, const char *array, Arena *arena)
{
    return d->divides
               ? arena_printf(arena, "%s |> map%s(\\e -> 1 + e %% 97)", array, dims_text(d))
               : array;
}

// A cell of the next state; centre: what it keeps at the border.
static inline void put_cell(Buf *out, const Drawn *d, const char *sum)
{
    bool keep = strcmp(d->border, "keep") == 0;
    if (!keep) {
        buf_puts(out, sum);
        return;
    }
    buf_printf(out, "if inner then %s else p", sum);
    for (int k = 0; k < d->dims; k++)
        buf_printf(out, "[%d]", d->reach);
}

static inline void put_inner(Buf *out, const Drawn *d)
{
    buf_printf(out, "array%s(", dims_text(d));
    put_sizes(out, d, "", ", ");
    buf_puts(out, "\\");
    for (int k = 0; k < d->dims; k++)
        buf_printf(out, "%c ", "ijk"[k]);
    buf_puts(out, "-> ");
    for (int k = 0; k < d->dims; k++)
        buf_printf(out, "%s%c >= %d && %c <= %c - %d", k ? " && " : "", "ijk"[k],
                   d -> reach, "ijk"[k], "NMK"[k], d -> reach + 1);
    buf_putc(out, ')');
}

// One array; two time levels; two arrays that read each other.
static inline void put_loop(Buf *out, const Drawn *d, Arena *arena)
{
    Buf sum, inner;
    bool coupled = d->arrays == 2 && draw(2), keep = strcmp(d->border, "keep") == 0;
    sum = buf_new();
    inner = buf_new();
    if (keep)
        put_inner(&inner, d);
    buf_printf(out, "def f(%s%s: ", d->arrays == 2 ? "x, y" : "x", d->field ? ", z" : "");
    put_sizes(out, d, "[", "]");
    buf_printf(out, "%s) = iterate(T, %s%s -> %s", d->type,
               d->arrays == 2 ? "\\u v" : "\\v", d->counts ? " t" : "",
               d->arrays == 2 && !coupled ? "(v, "
               : coupled || d->counts     ? "("
                                          : "");
    for (int i = 0; i <= coupled; i++) {
        buf_clear(&sum);
        put_sum(&sum, d, "p");
        if (d->arrays == 2)
            buf_puts(&sum, is_whole(d) ? " - q" : " - 0.3*q");
        divide(&sum, d, "p");
        buf_printf(out, "%szip%s(%s%s", i ? ", " : "", dims_text(d),
                   inner.text ? inner.text : "", keep ? ", " : "");
        put_windows(out, d, i ? "u" : "v");
        buf_printf(out, ", %s%s)", d->arrays == 2 ? (i ? "v" : "u") : "v",
                   d->field ? ", z" : "");
        buf_printf(out, " |> map%s(\\%sp q %s-> ", dims_text(d), keep ? "inner " : "",
                   d->field ? "e " : "");
        put_cell(out, d, sum.text);
        buf_putc(out, ')');
    }
    const char *step = d->counts ? ", t + 3" : "", *first = d->counts ? ", 5" : "";
    if (d->arrays == 2)
        buf_printf(out, "%s), (%s, %s%s))\n", step, start_of(d, "x", arena),
                   start_of(d, "y", arena), first);
    else
        buf_printf(out, d->counts ? "%s), (%s%s))\n" : "%s, %s%s)\n", step,
                   start_of(d, "x", arena), first);
    buf_release(&sum);
    buf_release(&inner);
}

// Arrays each of whose next values has a name, and is made of windows of one and elements
// of another, of before the step or made in it. The next state is some of these, in any
// order.
static inline void put_named(Buf *out, const Drawn *d, Arena *arena)
{
    Buf sum = buf_new();
    const int n = d->arrays;
    const char *dims = dims_text(d);
    const char *const names = "x, y, w", *const olds = "\\v0 v1 v2";
    buf_printf(out, "def f(%.*s%s: ", 3 * n - 2, names, d->field ? ", z" : "");
    put_sizes(out, d, "[", "]");
    buf_printf(out, "%s) = iterate(T, %.*s -> ", d->type, 3 * n, olds);
    for (int i = 0; i < n; i++) {
        int from = draw(n + i), with = draw(n + i); // v0, v1, ... and then n0, n1, ...
        buf_clear(&sum);
        put_sum(&sum, d, "p");
        buf_puts(&sum, is_whole(d) ? " - q" : " - 0.3*q");
        divide(&sum, d, "p");
        buf_printf(out, "let n%d = zip%s(", i, dims);
        put_windows(out, d, arena_printf(arena, "%c%d", "vn"[from >= n], from % n));
        buf_printf(out, ", %c%d%s) |> map%s(\\p q %s-> %s) in ", "vn"[with >= n], with % n,
                   d->field ? ", z" : "", dims, d->field ? "e " : "", sum.text);
    }
    for (int i = 0; i < n; i++)
        buf_printf(out, "%s%c%d",
                   i       ? ", "
                   : n > 1 ? "("
                           : "",
                   i ? "nnnv"[draw(4)] : 'n', draw(3) ? i : draw(n));
    buf_puts(out, n > 1 ? "), (" : ", ");
    for (int i = 0; i < n; i++)
        buf_printf(out, "%s%s", i ? ", " : "",
                   start_of(d, arena_printf(arena, "%c", "xyw"[i]), arena));
    buf_puts(out, n > 1 ? "))\n" : ")\n");
    buf_release(&sum);
}

// Stages: of windows of what a stage before made, with borders of their own, of elements,
// of two arrays; the last two are results, or the last.
static inline void put_stages(Buf *out, Drawn *d)
{
    const char *const border[] = {"clamp", "mirror", "wrap", is_whole(d) ? "7" : "0.5",
                                  "sides"};
    int n = 2 + draw(4), reach = d->reach;
    const char *dims = dims_text(d);
    Buf sum = buf_new();
    buf_puts(out, "def f(v0: ");
    put_sizes(out, d, "[", "]");
    buf_printf(out, "%s) = ", d->type);
    for (int i = 1; i <= n; i++) {
        char from[8];
        int way = i < 3 ? 0 : draw(4), other = draw(i);
        snprintf(from, sizeof from, "v%d", i - 1 - (way == 1));
        buf_printf(out, "let v%d = ", i);
        if (way == 2)
            buf_printf(out, "%s |> map%s(\\q -> %sq + 1)", from, dims, half_of(d));
        else if (way == 3)
            buf_printf(out, "zip%s(%s, v%d) |> map%s(\\p q -> p - %sq)", dims, from, other,
                       dims, half_of(d));
        d->border = border[draw(5)];
        d->reach = 1 + draw(reach);
        buf_clear(&sum);
        put_sum(&sum, d, "p");
        if (way < 2) {
            put_windows(out, d, from);
            buf_printf(out, " |> map%s(\\p -> %s)", dims, sum.text);
        }
        buf_puts(out, " in ");
    }
    buf_printf(out, draw(3) ? "v%d\n" : "(v%d, v%d)\n", n, n - 1);
    d->reach = reach;
    buf_release(&sum);
}

#endif
