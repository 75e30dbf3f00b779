// SPDX-License-Identifier: Apache-2.0
//
// kir: kernels as imperative statements: their IR, what is asked of it, and the passes over
// it.
//
// It knows neither the expression that a kernel comes from (lower makes kernels) nor the
// language that it is printed in (emit).

#ifndef FW_KIR_KIR_H
#define FW_KIR_KIR_H

#include "arith/arith.h"
#include "base/base.h"
#include "ir/ir.h"

typedef enum { MEM_GLOBAL, MEM_LOCAL, MEM_PRIVATE } AddrSpace;

typedef enum { ROLE_INPUT, ROLE_OUTPUT, ROLE_TEMP } BufferRole;

// One array of scalars. Global ones belong to the unit, the others to a kernel.
typedef struct {
    const char *name;
    AddrSpace space;
    Scalar scalar;
    const Arith *count; // scalars
    const Arith *open;  // LOCAL: as many of them as sizes ask for; NULL: all
    BufferRole role;    // GLOBAL only
    int number;         // GLOBAL: index in Unit.buffers
    bool formal;        // stands for what a launch binds to it; never allocated
    bool value;         // INPUT: a scalar, which kernels take as an argument's value
    int plane;          // INPUT, OUTPUT: which plane of which parameter or result
    int param;
    int vector;   // LOCAL: the widest access, to which it must be aligned; 0, 1: scalars
    int64_t row;  // LOCAL: elements from one row to the next; 0: as many as are in one
    int row_dims; // of a row: 1, or those of the elements of a list
    const struct TilePlaces *places; // LOCAL: where elements lie; NULL: in order
    int items, near; // PRIVATE: of an array that items share, each has so many neighbours
                     // in turn; 0: it is all an item's
} Buffer;

// Where four warps look for the elements of a tile of halfs: in rows of 128 bytes, eight of
// which are a block. Such a row is 64 elements of the fold at a place, or of 64 places at
// an element. In row r of a block piece i of 16 bytes is where i ^ r would be.
typedef struct TilePlaces {
    int64_t count; // places of a tile: rows or columns of the group
    bool turned;   // the tile is [fold][places]
} TilePlaces;

// A variable of one work-item.
typedef struct {
    const char *name;
    const Type *type; // scalar or vector
    bool is_const;
    bool folds; // it is a component of what a fold of tuples has so far
} Var;

typedef enum {
    K_LITERAL, // number of the scalar type
    K_INDEX,   // arith, an int
    K_VAR,     // var
    K_LOAD,    // buffer[arith]; a vector type loads that many neighbours
    K_OP,      // op of arg[]
    K_CALL,    // callee of arg[]
    K_COND,    // every arith of cond[] is >= 0
    K_VECTOR,  // a vector of arg[]
    K_LANE,    // component lane of arg[0]
    K_TILE,    // buffer from arith on: an operand of
    K_MATRIX,  // sums of products of tiles arg[0] and arg[1], which a warp adds up together
    K_AWAIT,   // what another group publishes at buffer[arith], waited for
    K_SHUFFLE, // arg[0] as work-item arith of the same warp has it; all of them take part
} KExprKind;

typedef struct KExpr KExpr;

// One side of a condition that stands before a value: of an `if`, of `&&` or `||`, of a
// pad. What is on it is evaluated only where the condition holds, or does not.
typedef struct Side Side;
struct Side {
    const Side *outer; // what the condition itself is on; NULL: nothing
    const KExpr *cond;
    bool holds;
};

// How a warp goes over two tiles of local memory, [0] of rows and [1] of columns. A warp
// has groups of 8 of both.
typedef struct {
    bool together; // four warps do it, of tiles that lie in TilePlaces
    int groups[2];
    int64_t step;     // products an output
    int64_t apart[2]; // rows or columns from one group of the warp to the next
    int64_t row[2];   // elements of the tile from one row in memory to the next
    bool turned[2];   // such a row holds what is at one place of the fold
} Fragments;

struct KExpr {
    KExprKind kind;
    const Type *type;
    double number;
    const Arith *arith;
    const Var *var;
    const Buffer *buffer;
    Op op;
    const Function *callee;
    int lane;
    int n;
    const KExpr *const *arg;
    const Arith *const *cond;
    const Fragments *fragments; // MATRIX
    const Side *side; // LOAD: what it is on; OP select, && and ||: both sides, or NULL
};

typedef enum {
    ST_DECL,    // type var = value; value NULL: not initialised
    ST_ASSIGN,  // var = value
    ST_STORE,   // buffer[index] = value; a vector value stores that many neighbours
    ST_PUBLISH, // words of buffer from index on = value, for which other groups wait
    ST_MATRIX,  // adds a K_MATRIX to a private buffer of [rows][columns], from index on
    ST_ARRAY,   // declares a private buffer
    ST_INT,     // const int index-variable `iter` = index, or = value if that is not NULL
    ST_FOR,     // for iter in [0, extent), as long as value holds if that is not NULL
    ST_IF,      // if value: body, else: other
    ST_BARRIER, // all work-items of the group; memory of `fence`
    ST_COMMIT,  // ends a batch of asynchronous stores
    ST_WAIT, // until at most `keep` batches of the item's are under way; with a buffer: of
             // what adds to it, of which a MATRIX is one
} StmKind;

typedef enum { LOOP_SEQ, LOOP_GLB, LOOP_WRG, LOOP_LCL } LoopKind;

// How a loop is written (paper 000, section 4.3).
typedef enum {
    FORM_ONCE,  // as many threads as iterations: no loop
    FORM_GUARD, // more threads than iterations: an if
    FORM_LOOP,  // fewer: a loop with the threads as stride
} LoopForm;

typedef struct Stm Stm;
typedef VEC(Stm *) Block;

struct Stm {
    StmKind kind;
    Var *var;
    const Buffer *buffer;
    const Arith *index;
    const KExpr *value;
    const Side *side;     // STORE: what it is on; IF: both sides, or NULL
    const Arith *iter;    // FOR, INT: an A_VAR
    const Arith *extent;  // FOR; INT that is the place of a key: how many there are
    const Arith *threads; // FOR of threads: how many there are
    LoopKind loop;
    LoopForm form;
    bool rolled; // FOR: one copy is asked for, on a processor
    int unroll;  // FOR: iterations that the compiler is asked to write out; 0: its choice
    int dim;     // FOR of threads
    bool items;  // FOR that is SEQ: of items, so no iteration needs another
    bool simd;   // FOR: iterations may be lanes of vectors, which join what they carry
    bool fence_local, fence_global; // BARRIER
    bool warp;                      // only items of a warp of 32 wait for each other
    bool atomic; // STORE of an operation on what is there and another value: one update
    bool async; // STORE of a LOAD: goes on by itself; waited for by its item, then for all;
                // MATRIX: is only begun
    int keep;   // WAIT
    int apart;  // STORE of four: two pairs so many elements apart, of which the item stores
                // one with its neighbour's; 0: four neighbours
    Block body, other;
};

typedef struct {
    const char *name;
    Block body;
    VEC(Buffer *) params; // global buffers, in order of first use
    // Generic sizes and numbers of steps that it needs as int arguments, after the buffers.
    VEC(const Arith *) sizes;
    VEC(Buffer *) locals;
    VEC(const Function *) funs; // used, in order of declaration
    const Arith *global[3]; // work-items; a multiple of local; of numbers of launches, too
    int64_t local[3];
    VEC(const Buffer *) images; // params that are read as images, an element at a time
    int resident;               // as in KernelOptions
    bool group;                 // four warps read tiles together, not as their items do
    bool matrix;                // items are 4 x 8 a warp, x fastest
    int band;                   // rows of groups that are numbered together; 0: one
    bool any_group;             // its text holds for work-groups of any shape
    bool wide;                  // some buffer needs 64-bit indices
    Map names;                  // taken by buffers, variables and loops
} Kernel;

// One launch: buffer[i] is bound to the kernel's params.at[i], size[i] to its sizes.at[i];
// global: of the kernel, where that does not say it for each launch.
typedef struct {
    const Kernel *kernel;
    Buffer *const *buffer;
    const Arith *const *size;
    const Arith *const *global; // [3]
} Launch;

// A lowered program: its buffers, kernels, and the launches in order.
typedef struct {
    Ir *ir;
    Arena *arena;
    const Program *program;
    VEC(Buffer *) buffers; // inputs (plane by plane), outputs, temporaries
    int ninput, noutput;
    VEC(Kernel *) kernels;
    VEC(Launch) launches;
    bool wide_sums; // as in DeviceInfo
} Unit;

// What is asked of the kernels that an expression is lowered to.
typedef struct {
    int64_t local[3];  // work-group shape; 0: 1
    int64_t line;      // items of a group that has one dimension; 0: local[0]
    int64_t global[3]; // work-items; 0: one an element, rounded up to local
    int64_t groups;    // most of them along y and along z; 0: any number
    bool any_group;    // kernels that need no group's shape do not name it
    bool all_loads;    // equal loads are left
    bool as_written;   // no pass joins loops or accesses, or removes an access
    bool images;       // inputs are read as images, where all reads are of single elements
    bool interior;     // split work-items into interior and border
    bool apart;        // rows of arrays that a group holds begin in different banks
    bool padded;       // rows of tiles in local memory are apart as their banks want it
    bool lists;        // tiles in local memory are lists, of an element for each item
    int64_t item[3];   // of padded tiles: neighbouring outputs of an item; 0: 1
    int vector;        // most neighbours one load or store moves; 0 or 1: one
    int lanes;         // work-items that walk along y together; 0: iterateStream is iterate
    int warps;         // of streams that a multiprocessor should hold at once; 0: not said
    bool in_rows;      // of streams: a group is one thread, whose rows are in arrays
    int relay;         // of streams in two: warps that each do a part of the steps; 0: one
    bool early;        // streams load all rows of an iteration before it, not the next one
    bool item_loops;   // items are loops, so these may be inside of others
    bool tasks;        // these loops are in work-items, where items need not wait
    bool copies;       // memory goes to local memory by itself where an item says so
    int lane_rows;     // of streams in three dimensions: rows of a lane; 0: one
    bool matrix;       // reduceMatrix is done by matrix units; items are 4 x 8 a warp
    bool group;        // of four warps together, where they can
    int64_t depth;     // of the fold that their tiles hold at a time
    bool shuffle;      // they are a warp and exchange registers; else through local memory
    bool wide_sums;    // as in DeviceInfo
    int unroll_cap;    // most copies mapSeqUnroll makes before it falls back to a loop
    bool rolled;       // steps and copies of small arrays stay loops
    int unroll_loops;  // sequential loops of at most so many iterations ask to be unrolled
    int unroll_part; // longer ones without loops inside ask for so many iterations; 0: none
    int64_t strip;   // columns of rows of items that groups copy to local memory; 0: none
    int64_t room;    // bytes of local memory for these copies
    bool eager;      // an `if` about indices does not keep its first side from loading
    bool ahead;      // tiles are loaded while the ones before are in use
    int stages;      // pieces of a ring of tiles that are copied asynchronously; 0, 1: none
    int band; // rows of groups that run at about the same time; 0, 1: as they are numbered
    int resident;     // groups a multiprocessor should hold, which bounds registers; 0: any
    const char *name; // prefix of kernel names; NULL: the definition's name
    bool quick; // for features alone: not verified, indices as they are, and not at all
                // where there is more than a compiler could bear (QUICK_NODES)
    // Sees each kernel before the first pass ("start") and after each; NULL: nobody does.
    void (*observe)(void *user, const char *pass, const Kernel *kernel);
    void *user;
} KernelOptions;

// passes.c: runs the passes of passes.def and the verifier after each. False with a
// diagnostic.
typedef struct Pass Pass;
bool kernel_finish(Pass *pass, Kernel *kernel, Diags *diags);

// Checks a kernel: every variable declared before use, barriers in uniform code only,
// every access on the sides where it was put or provably within its buffer, none always
// outside, no store to an input. False with a diagnostic. Run at the end.
bool kernel_verify(ArithCtx *ctx, const Kernel *kernel, Diags *diags);
// The same but for indices that are always outside, which take most of the time. Run after
// each pass.
bool kernel_verify_pass(ArithCtx *ctx, const Kernel *kernel, Diags *diags);

// twin.c: is b what a is but for its buffers and names? Then the buffer of b for each
// parameter of a, else NULL. Owner: arena.
Buffer **kernel_twin(ArithCtx *ctx, const Kernel *a, const Kernel *b, Arena *arena);

// Do items of a group wait for each other inside what one of them runs? Where items are a
// loop that cannot be.
bool kernel_needs_threads(const Kernel *kernel);

// Does the kernel read the buffer as an image?
bool kernel_reads_image(const Kernel *kernel, const Buffer *buffer);

// Static facts used before building: bytes of local memory, and of private arrays of an
// item.
int64_t kernel_local_bytes(const Kernel *kernel);
int64_t kernel_private_bytes(const Kernel *kernel);

// find.c: does it hold for a value (NULL: no) or one that it is made of, for a statement or
// one in it, for any statement of a block? of: what the test is told.
typedef bool KExprTest(const KExpr *e, const void *of);
typedef bool StmTest(const Stm *stm, const void *of);
bool kexpr_any(const KExpr *e, KExprTest *holds, const void *of);
bool stm_any(const Stm *stm, StmTest *holds, const void *of);
bool block_any(const Block *block, StmTest *holds, const void *of);
int block_count(const Block *block, StmTest *holds, const void *of); // of how many
// Shows each of these, before what is in it.
typedef void KExprVisit(const KExpr *e, void *user);
typedef void StmVisit(Stm *stm, void *user);
void kexpr_each(const KExpr *e, KExprVisit *visit, void *user);
void stm_each(Stm *stm, StmVisit *visit, void *user);
void block_each(const Block *block, StmVisit *visit, void *user);
// Tests for these. Of any buffer: NULL.
bool kexpr_is_load(const KExpr *e, const void *buffer);
bool stm_loads(const Stm *stm, const void *buffer);  // in its value, not in its body
bool stm_reads(const Stm *stm, const void *var);     // likewise
bool stm_stores(const Stm *stm, const void *buffer); // it does, not its body
// Is it an array in global memory that the kernel reads and does not write?
bool kernel_only_reads(const Kernel *kernel, const Buffer *buffer);
bool stm_carries(const Stm *stm, const void *loop); // assigns what the loop's body does not
                                                    // declare, for its next iterations
// The operation by which an iteration of a loop joins a variable that it carries with
// another value; NULL: what it assigns is no such operation.
const KExpr *stm_joins(const Stm *assign, const Stm *loop);
bool stm_is_barrier(const Stm *stm, const void *of);
bool stm_is_loop(const Stm *stm, const void *of);
bool stm_is_parallel(const Stm *stm, const void *of); // a loop over those of a launch
bool stm_exchanges(const Stm *stm, const void *of);   // with other items, in its value
// How often a statement runs the innermost ones in it: `most` if it does more often, or if
// it is not known.
int64_t stm_iterations(const Stm *stm, int64_t most);
int64_t block_nodes(const Block *block); // statements and parts of values

// Puts in the place of each loop over items (in a launch, or in a group) what `map` adds to
// `to`; false: it stays, and those in it are asked. around: so many loops over threads.
typedef bool ItemLoopMap(void *user, Block *to, const Stm *loop, int around);
void block_map_items(Arena *arena, Block *block, ItemLoopMap *map, void *user);
// Puts in the place of each statement what `map` adds to `to`, those in it first.
typedef void StmMap(void *user, Block *to, Stm *stm);
void block_map(Arena *arena, Block *block, StmMap *map, void *user);

// The arguments of a value: a condition's n counts its integers instead.
static inline int kexpr_args(const KExpr *e)
{
    return e->kind == K_COND ? 0 : e->n;
}

// values.c: the value of a variable. Owner: arena.
const KExpr *kexpr_var(Arena *arena, const Var *var);
const KExpr *kexpr_load(Arena *arena, const Buffer *buffer, const Arith *index);
// That all n integers are at least 0.
const KExpr *kexpr_cond(Arena *arena, const Arith *const *cond, int n);
bool kexpr_same_cond(const KExpr *a, const KExpr *b); // of two such: the same integers
// With arguments of its own, *arg; and what map makes of each argument in its place, which
// is e itself if that is all the same.
KExpr *kexpr_copy(Arena *arena, const KExpr *e, const KExpr ***arg);
typedef const KExpr *KExprMap(void *user, const KExpr *e);
const KExpr *kexpr_map(Arena *arena, const KExpr *e, KExprMap *map, void *user);
// At the end of a block: a statement, and a constant of that value.
Stm *block_add(Arena *arena, Block *to, Stm stm);
const Var *block_name(Arena *arena, Block *to, const char *name, const KExpr *value);
// A copy with `to` in place of an integer, sides included.
Block block_moved(ArithCtx *ctx, Arena *arena, const Block *block, const Arith *from,
                  const Arith *to);
// The iterations of a loop in blocks of `size`: how many blocks, the number of one; and of
// a block how many iterations, the number of one in it and in all. Names are of the
// numbers.
typedef struct {
    const Arith *blocks, *block, *extent, *iter, *index;
} Division;
Division loop_divided(ArithCtx *ctx, const Stm *loop, int64_t size, const char *block,
                      const char *iter);
// How far an index moves where the integer does by 1; STRIDE_ANY: not by a constant.
enum { STRIDE_ANY = INT32_MAX };
int64_t index_stride(ArithCtx *ctx, const Arith *index, const Arith *var);
// Is argument i evaluated only where another one says so? Then the side it is on.
bool kexpr_maybe(const KExpr *e, int i);
const Side *kexpr_side(const KExpr *e, int i);

// values.c: the same condition (a >= 0) in the form that it has for all neighbours.
const Arith *cond_rounded(ArithCtx *ctx, const Arith *cond);

// guard.c: whether evaluating it does no harm whatever any condition says. Only such values
// may move to where the sides they are on are not.
bool may_go_ahead(ArithCtx *ctx, const KExpr *e);
// Does it divide integers by what may be 0?
bool may_trap(ArithCtx *ctx, const KExpr *e);

// names.c: a name of the form stem + number that nothing in the kernel has; *next is the
// first number tried, and left one past the one used. Owner: arena.
const char *name_fresh(Arena *arena, Kernel *kernel, const char *stem, int *next);
void name_take(Kernel *kernel, const char *name);

// banks.c: rows of a tile in local memory without bank conflicts ----------------------

enum { TILE_PAD = 32 }; // rows are less than so many elements longer than what is in them

// By dimension: x, y, z.
typedef struct {
    int64_t local[3], item[3]; // items of the group, neighbouring outputs of an item
    int64_t length[3];         // elements
    int bytes, vector;         // of an element; most of them an access moves
} TileShape;
int64_t tile_row(const TileShape *tile); // elements from one row to the next
// Turns that the first warp takes for an element of each item, with rows so far apart.
double tile_turns(const TileShape *tile, int64_t row);

#endif
