// SPDX-License-Identifier: Apache-2.0
//
// pipeline: a program of several stages as a script of calls: a stage is a call, an array
// an element, and `fuse` finds which stages may share a kernel and the cheapest covers.
//
//   source  paper 004, section 4 (graph, fusible subgraphs, covers in order); the ways in
//           which an intermediate lives: recomputed or tiled with a halo, paper 000,
//           section 3.4; Ragan-Kelley et al., PLDI 2013, section 3
//
// It asks what the program looks like, never which device; a time is worked out of rates
// that it is given.

#ifndef FW_NEST_PIPELINE_H
#define FW_NEST_PIPELINE_H

#include "fuse/fuse.h"
#include "ir/ir.h"
#include "rewriter/rewriter.h"

// How a stage looks at an array.
typedef enum {
    READ_POINT,  // the element at its own place
    READ_LAYOUT, // one element, somewhere else
    READ_WINDOW, // constant windows a step of 1 apart, with or without a border
    READ_WHOLE,  // as it likes
} ReadKind;

typedef struct {
    int elem;
    ReadKind kind;
    int64_t size[DIMS_MAX]; // of windows, outermost first; else 1
    bool constant;          // beyond a border there is a constant
    bool stored;            // what another stage makes, and no kernel of both is to make
} StageRead;

// A map of the host level that a name holds, or that is a result; or another pattern that
// computes there.
typedef struct {
    const char *name;
    const Expr *expr;
    int let;                  // which let of the chain holds it; -1: none, it is a result
    const Param *param;       // of that let; NULL: none
    bool is_map, costly_rows; // it makes rows with folds, prefixes or keyed folds in them
    int dims;
    double points; // that it makes
    double work;   // operations and loads of a point
    int nread;
    StageRead read[ARITY_MAX];
} Stage;

enum { COVERS_KEPT = 12, PIPELINE_LIMIT = 10 };

// The host level with the stages: a chain of lets and what follows.
typedef struct {
    Arena *arena;
    Script script; // elements' words are bytes a point
    Path region;   // where the chain begins: the program's body, or an iterate's
    int nlet;
    int let_stage[CALLS_MAX]; // the stage of each let; -1: something else
    Stage stage[CALLS_MAX];
    double points; // of the largest stage
    bool streams;  // warps may keep what a kernel does not store in registers
    FuseSpace *space;
    int ncover;    // in predicted order; those that must be there come last if they are not
                   // cheap
    int by_points; // the cheapest cover whose kernels read what they do not store point by
                   // point; -1: there is none
    Cover *cover;
    const char **label; // of a cover: `1+2|3`
} Pipeline;

// Rates that times are worked out of: GB/s, operations a ns, ns a kernel.
typedef struct {
    double gbs, ops, launch_ns;
} StageRates;
// Those of a large GPU.
extern const StageRates stage_rates;

// The rewrites that make a chain of it: what windows look at has a name, lets of lets
// follow one another, views are in their places, and there is nothing that nobody uses. If
// there are more stages than a kernel may have, maps that one map alone reads, element by
// element, are part of that.
void pipeline_normalise(Rewriter *r, const Path *region);
// Maps that the map at a position reads move into its function.
void pipeline_fuse_reads(Rewriter *r, const Path *at);
// The pipeline in a bound and inferred body, with the cheapest `covers` of it; kernels of
// at most `limit` stages, 0: PIPELINE_LIMIT; streams: for warps that walk. NULL if it has
// fewer than two stages, or more than CALLS_MAX. Owner: the caller, pipeline_free.
Pipeline *pipeline_new(Ir *ir, const Expr *body, Param *const *input, int ninput,
                       const StageRates *rates, int covers, int limit, bool streams);
void pipeline_free(Pipeline *pipeline); // accepts NULL

// The units of a cover, by their first stage; the sets.
Calls pipeline_set(const Pipeline *pipeline, const Cover *cover, int unit);
// Does the set store what the stage makes?
bool pipeline_stores(const Pipeline *pipeline, Calls set, int stage);
// Those of a convex set that a stage of it needs, itself not.
Set pipeline_before(const Pipeline *pipeline, Calls set, int stage);
// Does the stage read, within its set, what the set stores?
bool pipeline_after_store(const Pipeline *pipeline, Calls set, int stage);
// May an overlapped tile of the stage be copied to local memory in a kernel of the set? A
// stage that the kernel stores must read windows of it, or one that reads it point by
// point.
bool pipeline_tiles(const Pipeline *pipeline, Calls set, int stage);
bool pipeline_reads(const Pipeline *pipeline, int stage, int of, ReadKind kind);
// What a stage reads of another one; NULL: nothing.
const StageRead *pipeline_read(const Pipeline *pipeline, int stage, int of);
int pipeline_end(Calls set);                 // one above the last stage of a set
double pipeline_volume(const int64_t *size); // of a window
// covers.c: finds the cheapest `most` covers, in order, and those that must be there.
void pipeline_find_covers(Pipeline *pipeline, const StageRates *rates, int most);
// Can readers of a stage compute it again, in a cover's kernels, or would that be too
// often?
bool pipeline_again(const Pipeline *pipeline, const Cover *cover);
double pipeline_operations(const Expr *expr); // of scalars
// Those that are written out for it. The steps of a loop are, but not those of arrays where
// an item is a thread; all short loops are, if that is wanted.
typedef enum { TEXT_ITEM, TEXT_PROCESSOR, TEXT_UNROLLED } TextOf;
double pipeline_text(const Expr *expr, TextOf of);
int64_t pipeline_bytes(const Pipeline *pipeline, int stage); // of a point
// The time of a set as one kernel, in ns, with what is cheaper for each intermediate.
double pipeline_time(const Pipeline *pipeline, Calls set, const StageRates *rates);
// No cover takes less: inputs are read and results written once.
double pipeline_least(const Pipeline *pipeline, const StageRates *rates);

#endif
