// SPDX-License-Identifier: Apache-2.0
//
// counts: how often a lowered program does each thing that takes time.
//
//   source  paper 003, sections 2 and 3.2
//   method  one walk over the kernels as they are emitted finds what each statement does
//   and
//           the set of iterations it is done for; counts_numbers counts these sets at
//           given sizes, counts_new as piecewise quasi-polynomials in the size symbols
//
// Exact where conditions are affine in indices; what is not is said to be refused. A
// condition on data is taken to hold half of the time, and that is said too. Integer
// arithmetic is not counted. It knows no device: a warp is 32 lanes, banks are 32 words of
// 32 bits.

#ifndef FW_COST_COUNTS_H
#define FW_COST_COUNTS_H

#include "cost/counts_sum.h"
#include "cost/features.h"

enum { COUNT_WIDTHS = 3, COUNT_STRIDES = 15, COUNT_DEGREES = 6, COUNTS_WARP = 32 };
struct KeptShare; // see scope.h

// The kinds, and how many properties each has.
typedef enum {
#define COUNTS(id, name, n, unit, doc) COUNTS_##id,
#include "cost/counts.def"
#undef COUNTS
    COUNTS_KINDS
} CountsKind;

// Number of the first property of each kind.
enum {
#define COUNTS(id, name, n, unit, doc) COUNT_##id, COUNT_##id##_LAST = COUNT_##id + (n)-1,
#include "cost/counts.def"
#undef COUNTS
    PROPERTIES
};

CountsKind counts_kind(int property);
const char *counts_unit(int property);
// "global loads, 32 bits, stride 1/1".
void counts_name(Buf *out, int property);
int counts_find(const char *name); // the property of that name, or -1

// At the sizes that the setting binds; its device is not asked. Sizes without a value:
// false. Shares of iterations are exact where scope_share is.
bool counts_numbers(const Unit *unit, const FeatureSetting *setting,
                    double out[PROPERTIES]);

// The same for one launch of one kernel, but for loads and stores, which are left out;
// launches: of that kernel; kept: shares that a walk of such warps found, or NULL.
bool counts_work(const Unit *unit, const Kernel *kernel, const FeatureSetting *setting,
                 struct KeptShare *kept, double out[PROPERTIES], int64_t *launches);

// Symbolic counts of one unit; sizes that the unit leaves open are the symbols.
typedef struct Counts Counts;

// The setting binds the sizes of an example, by which strides are put into classes.
// Owner: the caller, counts_free. NULL if a size has no value there.
Counts *counts_new(const Unit *unit, const FeatureSetting *setting);
void counts_free(Counts *counts); // accepts NULL
// Why this property could not be counted for all sizes, or NULL.
const char *counts_refused(const Counts *counts, int property);
// It holds conditions on data, of which each side counts half.
bool counts_halved(const Counts *counts, int property);
bool counts_zero(const Counts *counts, int property); // at all sizes
// The value at sizes, exact: whole unless halved. False on overflow of 128 bits, or if a
// size has no value, or if the property is refused.
bool counts_eval(const Counts *counts, int property, const Binding *binding, int n,
                 Ratio *value);
// `N*M if N >= 2`, several pieces joined by ` + `.
void counts_print(Buf *out, const Counts *counts, int property);
void counts_wide(Buf *out, Wide value); // in decimals

#endif
