// SPDX-License-Identifier: Apache-2.0
//
// lower: from a functional expression to imperative kernels.
//
//   method  layout patterns become views: a scalar access walks from its use to memory
//           and leaves one index expression (Lift, CGO 2017, section 5; paper 000,
//           section 4.2.3). Patterns that write are generated into a destination view,
//           so layouts on the writing side are views too. An abstract `map` that nobody
//           lowered is computed where it is read.
//
// It knows no device: thread counts and every choice come with the expression and the
// options; what it makes is complete, and emit only prints it.

#ifndef FW_LOWER_H
#define FW_LOWER_H

#include "kir/kir.h"

// Lowers body (of the type of the program's main result, over its parameters). The program
// is bound and inferred, the body inferred. NULL with a diagnostic when the expression
// cannot be lowered so (mapLcl outside mapWrg, a barrier in divergent code, ...).
// Owner: arena.
Unit *lower(const Program *program, Expr *body, const KernelOptions *options, Arena *arena,
            Diags *diags);
// The same, but all loops and accesses of the expression stay: no pass joins or removes
// any.
Unit *lower_as_written(const Program *program, Expr *body, const KernelOptions *options,
                       Arena *arena, Diags *diags);

// The param that a result is, or of which it is a component (`*field`; -1: all); NULL: it
// is something else. The first such result of each is written when a let stores the param.
const Param *placed_result(const Expr *result, int *field);

// stream.c: what a time loop is made of whose steps may be done several in a kernel.
enum { STEPS_COPIES = 512 }; // elements of a reduction over a window that are written out
typedef struct {
    const char *why;          // they cannot: the reason; NULL: they can
    int64_t count;            // of steps
    int dims;                 // of its grids
    int64_t beyond[DIMS_MAX]; // cells that a step reads beyond those that it makes, by
                              // axis, outermost first
    int64_t size[DIMS_MAX];   // of its grids, by axis
    int64_t bytes;            // of a cell of all grids of the state
    int64_t written;          // of those that a step does not only pass on
    int64_t ops;              // cells that a step reads for each cell
    int64_t wide;             // words of its widest numbers
    // What one step more adds, or the only one has, for each cell of a lane.
    int64_t words;  // of 4 bytes: kept from one row to the next
    int64_t around; // the same of cells that other lanes have
    int64_t kept;   // bytes of rows in arrays
    int64_t met;    // bytes of those that lanes publish in local memory
    int64_t ring;   // bytes of a cell of all rows between a warp and the next, of a relay
    int64_t reads;  // what is compiled of an iteration, in cells read
    // The same where warps hold all rows at once, in two dimensions.
    int64_t flat_met, flat_reads;
} TimeLoop;
// Describes an iterateStream, whose reductions are written out. shuffle: as in
// KernelOptions.
void lower_steps(Ir *ir, const Expr *stream, bool shuffle, TimeLoop *found);

// Is a result of a step its state, or a part of it, as it stands? It is not copied.
bool is_carried(const Expr *result, const Param *state);

// Is it a time loop, or a component of one that is no counter beside its arrays
// (counter.c)? At host level the loop writes that to where it is to be.
bool is_time_loop(const Expr *expr);
bool is_loop_result(Ir *ir, const Expr *expr);

// May an iterate in a kernel end before all its steps are done: is its function an `if`
// whose one side gives back the state? Then it is a loop, however few they are.
bool repeat_ends(const Expr *iterate);

// True of a function that is only layouts of its parameter, all of them invertible: a map
// of it over what is written is where the results go.
bool layout_function(const Expr *lambda);

#endif
