// SPDX-License-Identifier: Apache-2.0
//
// A box of values of a kernel's index variables, with an axis each, and what indices and
// conditions are in it.
//
//   method  an index is made a linear form of the axes. Where a minimum, a quotient or a
//           condition does not come out the same in the whole box, the caller is told where
//           to cut it, and looks at both pieces.

#ifndef FW_COST_BOX_H
#define FW_COST_BOX_H

#include "cost/scope.h"

enum { AXES_MAX = 16 };

// The values lo to hi of a variable. One of a loop over work-items that goes round may be
// the sum of two axes.
typedef struct {
    const BoundVar *of;
    int64_t scale, lo, hi;
} IndexAxis;

typedef struct {
    int64_t at, coef[AXES_MAX];
} LinearForm;

typedef struct {
    int64_t lo, hi; // inclusive
} IndexRange;

typedef struct {
    Scope *scope;
    bool group; // of the items of the group in the middle of the grid, not of all items
    IndexAxis axis[AXES_MAX];
    int naxis;
    bool data;    // the last that was asked for depends on data
    int cut;      // the axis to cut where the answer differs within the box,
    int64_t last; // and the last value of its first piece
} IndexBox;

// Adds the axes of all variables of a; beyond AXES_MAX, a variable has its first value.
// Returns a bit for each of its axes.
unsigned box_add(IndexBox *box, const Arith *a);
double box_points(const IndexBox *box);
// Leaves the values lo to hi of an axis; returns what it was, to be put back.
IndexAxis box_narrow(IndexBox *box, int axis, int64_t lo, int64_t hi);
// The values of a form in the box.
IndexRange box_range(const IndexBox *box, const LinearForm *form);
// False if a depends on data (`data`), or if the box is to be cut.
bool box_form(IndexBox *box, const Arith *a, LinearForm *out);
// Whether a form is everywhere (1) or nowhere (-1) at least 0; 0: the box is to be cut.
int box_sign(IndexBox *box, const LinearForm *form);
// Whether the guards hold everywhere (1) or nowhere (-1); 0: the box is to be cut.
// Conditions on data count as true.
int box_guards(IndexBox *box, const Guard *guard, int n);

#endif
