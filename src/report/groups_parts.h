// SPDX-License-Identifier: Apache-2.0
//
// The figures and tables of paper 001, inside: what groups.c (section 8) and groups_space.c
// (section 5) share.

#ifndef FW_REPORT_GROUPS_PARTS_H
#define FW_REPORT_GROUPS_PARTS_H

#include "report/groups.h"
#include "report/table.h"

typedef struct {
    Buf *out;
    const Study *study;
    Arena *arena;
} Report;

typedef struct {
    double log_sum, sum, least, most;
    int n;
} Mean;

void mean_add(Mean *mean, double x); // x that is not above 0, or not finite, is left out
double mean_plain(const Mean *mean); // NAN of nothing

// The next stencil of the main set after s, or its first if s is NULL; NULL: none.
const StudyStencil *groups_next(const Study *study, const StudyStencil *s);
// A table under a title, its head filled in.
Table groups_table(const Report *r, const char *const *head, int n, const char *title);

void groups_spaces(const Report *r); // Figures 2 to 6

#endif
