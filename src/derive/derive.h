// SPDX-License-Identifier: Apache-2.0
//
// derive: the parameterised derivation of a program: the space of ways to lower it, and
// the lowered expression of each point.
//
//   source  overlapped tiling, work-group mapping and copies to local memory: paper 000,
//           sections 3.3 and 3.4; block and cyclic merging (several outputs a work-item):
//           paper 001, section 4
//
// It asks what the program looks like and what the device allows, never how fast.

#ifndef FW_DERIVE_DERIVE_H
#define FW_DERIVE_DERIVE_H

#include "device/device.h"
#include "ir/ir.h"
#include "lower/lower.h"
#include "rewriter/rewriter.h"
#include "space/space.h"

// Does a parameter decide the order of folds? The column of parameters.def.
typedef enum {
    ORDER_NONE,
    ORDER_FOLD,
    ORDER_ITEMS,
    ORDER_EACH,
    ORDER_PARTS,
    ORDER_KEYS,
    ORDER_PASS,
    ORDER_UNITS,
    ORDER_CALL
} ParameterOrder;

// A row of parameters.def.
typedef struct {
    const char *name, *suffix;
    ParameterOrder order;
    const char *doc;
} ParameterInfo;
extern const ParameterInfo parameter_info[];
extern const int parameters; // how many rows

typedef struct Derivation Derivation;

// The derivation of a bound and inferred program; owner: the caller, derive_free. NULL with
// a diagnostic if a constraint of its space is wrong. The space is built when it is first
// asked for more than whether a point is valid: in three dimensions that takes 8 ms.
Derivation *derive_new(const Program *program, const DeviceInfo *device, Diags *diags);
// Why no point does several steps of the program's time loop in a kernel; NULL: some do, or
// it has no time loop.
const char *derive_unfused(const Derivation *derivation);
void derive_free(Derivation *derivation);
const Program *derive_program(const Derivation *derivation);
const Space *derive_space(const Derivation *derivation);

// One output a work-item, 256, 32 x 8 or 64 x 4 x 1 of them in a group (on a processor 64,
// 16 x 16, 64 x 4 x 1), no local memory, nothing unrolled, no border split. A program that
// is lowered already stands as it is: 64 x 1 x 1.
void derive_single(const Derivation *derivation, Point *point);
// The plain point, what tuning is measured against: that one; of a product on a GPU, whose
// items would wait for memory nearly always, the tiles that are likely the fastest.
void derive_plain(const Derivation *derivation, Point *point);
// A point that computes the same as the plain one as C in bearable time: products in blocks
// (1024 x 1024 x 1024 on two cores: 60 ms against more than 10 s).
void derive_reference(const Derivation *derivation, Point *point);
// Where that point's items share folds: terms of the longest fold, each sum of which any
// point may add in any order. In whole arrays these are as many as one accumulator adds,
// and so they are in prefixes of which no point has fewer parts. Of windows that share what
// they fold, those of a whole one, which points of other devices may fold. 0: the sums of
// an item are whole.
int64_t derive_terms(const Derivation *derivation);
enum { FIRST_MOST = 48 }; // points that are often good, at most
// Points that are often good, to try first, each once and not the plain one; returns how
// many were written.
int derive_first(const Derivation *derivation, Point *point, int max);
// How many of those, from the first on, come from an estimate of this very program, or from
// what is known of keyed folds: models see no collisions of keys.
int derive_estimated(const Derivation *derivation);

// The lowered expression of a point, in the program's Ir, inferred. NULL with a diagnostic.
Expr *derive_body(const Derivation *derivation, const Point *point, Diags *diags);
// The rules that lead there, in the memory of the program's Ir; false with a diagnostic.
bool derive_rewriting(const Derivation *derivation, const Point *point,
                      Rewriting *rewriting, Diags *diags);
// The work-group that the mapLcl of a lowered expression are written for, at most that many
// work-items; 1 where they do not say. False, and nothing set, if there are none.
bool derive_natural(const Expr *body, int64_t most, int64_t local[3]);
KernelOptions derive_options(const Derivation *derivation, const Point *point);
// The kernels of a point, in arena; quick: to be looked at, not to be printed
// (KernelOptions). NULL with a diagnostic.
Unit *derive_unit(const Derivation *derivation, const Point *point, bool quick,
                  Arena *arena, Diags *diags);
// The same with every loop and load of the expression (lower_as_written).
Unit *derive_as_written(const Derivation *derivation, const Point *point, Arena *arena,
                        Diags *diags);

#endif
