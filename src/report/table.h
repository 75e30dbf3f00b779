// SPDX-License-Identifier: Apache-2.0
//
// Text tables with aligned columns: the first to the left, the others to the right.

#ifndef FW_REPORT_TABLE_H
#define FW_REPORT_TABLE_H

#include "base/base.h"

typedef struct {
    Arena *arena;
    int columns;
    VEC(char *) cell; // row by row, the head first
} TextTable;

// "1.234 ms"; micro: how the letter of microseconds is written.
void put_duration(Buf *out, double ns, const char *micro);

TextTable table_new(Arena *arena, int columns);
// The next cell; rows fill by themselves.
void table_put(TextTable *table, const char *format, ...) FW_PRINTF(2, 3);
void table_row(TextTable *table, const char *const *cell, int n);
// The head, a line, and the rows, indented by two. Needs: complete rows.
void table_print(Buf *out, const TextTable *table);

#endif
