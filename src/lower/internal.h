// SPDX-License-Identifier: Apache-2.0
//
// Shared by the files that lower expressions: views, the state of a lowering, and the
// constructors of kernel IR.

#ifndef FW_LOWER_INTERNAL_H
#define FW_LOWER_INTERNAL_H

#include "kir/cells.h"
#include "lower/lower.h"

// Views -------------------------------------------------------------------------------

typedef enum {
    V_MEM,    // row-major array (or one scalar) at an offset of a buffer
    V_VAR,    // a variable, readable and writable
    V_VALUE,  // a computed scalar
    V_TUPLE,  // a tuple, or arrays of tuples, as one view a component
    V_FIELD,  // one component of a view of tuples
    V_LAYOUT, // a layout pattern over src, waiting for all its indices
    V_MAP,    // an abstract map, computed where it is read
    V_ARRAY,  // an array computed from its index
    V_FILL,   // an array whose every element is fill
    V_COND,   // src where every cond >= 0, else fill
    V_GUARD,  // written only where every cond >= 0
    V_CROP,   // the writing side of take: `dims` more indices are to be guarded
    V_UNMAP,  // the writing side of a map of a layout function
    V_LATER,  // an element or a component of src, which is looked for when it is read
    V_FOLD,   // written, an element is folded by the reduceSeq expr; src: the fold so far
    V_WINDOW, // one grid of the state of a stream, in registers around the cell computed
} ViewKind;

typedef struct View View;

// What the parameters in scope stand for; shared tails, newest first.
typedef struct Env Env;
struct Env {
    const Param *param;
    const View *view;
    const Env *next;
};

enum { CONDS_MAX = 2 * DIMS_MAX };

// Elements of an array that is computed where it is read, each with the last statement that
// names it (env.c).
typedef struct {
    const Arith *index[2 * DIMS_MAX];
    const View *value;
    const Block *block;
    const Stm *last;
    int at; // where in the block the statement is
} NamedElement;
typedef struct {
    const char *name;
    VEC(NamedElement) of;
} NamedElements;

struct View {
    ViewKind kind;
    const Type *type;
    const View *src;
    const Buffer *buffer;             // MEM
    const Arith *offset;              // MEM, in scalars
    const Var *var;                   // VAR
    const KExpr *value;               // VALUE
    const View *const *item;          // TUPLE
    int field;                        // FIELD, LATER; WINDOW: which grid
    struct Stream *stream;            // WINDOW
    const Expr *expr;                 // LAYOUT, MAP, ARRAY, UNMAP: the pattern
    Pattern pattern;                  // LAYOUT
    const Arith *const *num;          // LAYOUT, CROP: the pattern's integers
    const Env *env;                   // of expr
    int dims;                         // dimensions still to be indexed
    int nindex;                       // LAYOUT, MAP, ARRAY, FOLD, WINDOW: indices so far
    const Arith *index[2 * DIMS_MAX]; // LATER: one, or the field
    int ncond;                        // COND, GUARD
    const Arith *cond[CONDS_MAX];
    const View *fill;        // COND
    NamedElements *elements; // MAP: of a name whose elements are read by several maps
};

typedef VEC(Launch) Launches;

// change.c: arrays that a step of a loop changes where they are.
typedef struct Changes Changes;

// The state of one lowering ---------------------------------------------------------------

typedef struct {
    LoopKind kind;
    int dim;
    const Arith *extent, *iter;
    bool open; // sequential: we are inside such a loop
} LoopVar;

typedef struct {
    Ir *ir;
    ArithCtx *ctx;
    Arena *arena;
    Unit *unit;
    const KernelOptions *options;
    Diags *diags;
    bool failed;
    Span at;              // the expression at hand, of the program's text
    Kernel *kernel;       // NULL between kernels (host level)
    int statements;       // added to it, and how many there are when its length is
    int look_at;          // looked at next
    Block *block;         // where statements go; NULL at host level
    const Side *side;     // what these are on
    VEC(LoopVar) loops;   // variables of loops of this kernel
    int inside[4];        // how many loops of each LoopKind we are inside
    bool fewer[3];        // along which axes a launch may have fewer items than elements
    const Arith *item[3]; // of the loop over all items of the group that we are inside
    bool lanes;           // all items of the group run what we are in (lanes.c)
    int64_t written_out;  // iterations of a kernel's loops over elements in registers
    bool shared_tile;     // a local buffer was written since the last loop began
    bool across;          // what is stored next runs along the rows of its tile
    int ahead;            // sides of ifs that are tried without their conditions
    bool stream;          // of a time loop: its stages stay where its cells are
    bool unsafe;          // what they load may not be there
    Launches launches;    // of the part being lowered
    VEC(const Arith *) steps; // numbers of the steps that it is of
    Changes *changes;         // made where they are; NULL: none
} Lower;

// view.c
const View *view_mem(Lower *l, const Buffer *buffer, const Arith *offset, const Type *type);
const View *view_value(Lower *l, const KExpr *value);
bool view_is_known(const View *view, int64_t *value); // an integer
// choose.c: the scalars of a value: one, or those of a tuple.
typedef struct {
    int n;
    const KExpr **at;
} Leaves;
Leaves read_leaves(Lower *l, const View *view, const Type *type);
// A value of a type whose scalars are those of one side or of the other, in one branch.
const View *choose_leaves(Lower *l, const Type *type, const Side *sides, const Block *yes,
                          Leaves a, const Block *no, Leaves b);
const View *eval_select(Lower *l, const Expr *expr, const Env *env);
// change.c: a step is lowered once from arrays of a state into themselves, to be looked at,
// a kernel after another or a part of one. number: stands for that of the step; once: what
// is before its maps is made once. Is it right so? Some of it may come late, by levels.
Changes *changes_new(Lower *l, const View *const *array, int n, const Arith *number,
                     bool once);
bool changes_look(Lower *l, const Block *block);
// Something within the step is launched by itself, so that its kernels are not looked at.
void changes_hide(Lower *l);
bool changes_found(Lower *l, Changes *c);
int changes_levels(const Changes *c);
bool changes_any(const Changes *c, int level); // has it anything?
// Which level is made from then on, of which step; from `lowest` to `highest` all go into
// one kernel, which is kept until the last one, each of the step before that of the level
// below. The number of that step:
void changes_make(Changes *c, const Arith *now, int level, int lowest, int highest);
const Arith *changes_number(Lower *l);
bool changes_keep(Lower *l, Kernel *kernel);
Kernel *changes_kept(Lower *l);
bool is_changed(const Lower *l, const View *out); // is it of such an array?
void gen_change(Lower *l, const Expr *expr, const Env *env, const View *out);
// The loop of a map over items; where it begins and how far it goes; NULL: over all; and
// how many items a kernel wants.
void changes_note(Lower *l, const Expr *map, int dims, const Stm *loop);
const Arith *changes_range(Lower *l, const Expr *map, int dims, const Arith **from);
const Arith *changes_extent(Lower *l, const Expr *map);
// steps.c: an iterate whose steps all items of a group take together: the state after it.
const View *gen_steps_together(Lower *l, const Expr *expr, const Env *env);
// Prefixes, which all items of a group make together if they are arrays of its items.
void gen_prefixes(Lower *l, const Expr *expr, const Env *env, const View *out);
const View *view_var(Lower *l, const Var *var);
const View *view_tuple(Lower *l, const Type *type, const View *const *item);
// What leaf makes of each array and each scalar of a type and of two views of it, of which
// either may be NULL: a tuple where the type is one.
typedef const View *LeafView(Lower *l, const Type *type, const View *a, const View *b,
                             const void *user);
const View *view_leaves(Lower *l, const Type *type, const View *a, const View *b,
                        LeafView *leaf, const void *user);
const View *view_fold(Lower *l, const Type *type, const Expr *fold, const Env *env,
                      const View *acc);
// The components of a view, or of arrays of it, as a tuple.
const View *view_components(Lower *l, const Type *type, const View *of);
const View *view_layout(Lower *l, Pattern pattern, int dims, const Arith *const *num,
                        const View *src, const Type *type);
const View *view_of(Lower *l, const Expr *expr, const Env *env, const View *src);
const View *view_elem(Lower *l, const View *view, const Arith *index);
const View *view_get(Lower *l, const View *view, int field);
const KExpr *view_read(Lower *l, const View *view); // of scalar type
// The values of a tuple of scalars that is computed behind conditions, which it asks once;
// NULL: it is none, or each value is an expression.
const View *view_read_items(Lower *l, const View *view);
// The destination that expr's argument must be written to so that expr lands in out; NULL
// if the pattern has no inverse on the writing side.
const View *view_inverse(Lower *l, const Expr *expr, const Env *env, const View *out);

// gen.c
void gen_copy(Lower *l, const View *from, const View *out);
// loop.c: the loops of maps and reductions.
typedef void LoopBody(Lower *l, void *user, const Arith *iter);
void gen_loop(Lower *l, LoopKind kind, int dim, bool unroll, const Arith *extent,
              LoopBody *body, void *user);
void add_barrier(Lower *l);
const View *eval(Lower *l, const Expr *expr, const Env *env);
const View *apply(Lower *l, const Expr *lambda, const Env *env, const View *const *arg);
const Arith *eval_index(Lower *l, const Expr *expr, const Env *env);
// A value as an index; one that is no arithmetic of indices is computed where we are.
const Arith *value_index(Lower *l, const KExpr *index, Span span);
void gen(Lower *l, const Expr *expr, const Env *env, const View *out);
const Env *env_bind(Lower *l, const Env *env, const Param *param, const View *view);
// As env_bind; a computed scalar that body uses more than once gets a name.
const Env *env_bind_named(Lower *l, const Env *env, const Param *param, const View *view,
                          const Expr *body);
// The environment of what follows the lets of an expression, which *expr is then.
const Env *env_behind_lets(Lower *l, const Env *env, const Expr **expr);
// The element of a V_MAP with all its indices that was named where we are; NULL: none was.
const View *env_element(Lower *l, const View *map);
// The element, which gets a name for those who read it again.
const View *env_keep_element(Lower *l, const View *map, const View *element);
// fold.c: an iterate by one work-item, in a loop: the state after it. It ends early where
// a step gives back the state that it was given, if its function says so by an `if`.
const View *gen_repeat(Lower *l, const Expr *expr, const Env *env, const View *init);
// A map that reads prefixes, one by one: of them, or of a zip of npart arrays with them.
typedef struct {
    const Expr *expr;
    const Env *env;
    const View **part; // NULL: the prefixes
    int npart;
} PrefixMap;
// Folds `in` from `init`; out: each prefix is stored there (scan), or what map, unless that
// is NULL, makes of it; NULL: neither.
const View *gen_fold(Lower *l, const Expr *expr, const Env *env, const View *init,
                     const View *in, const View *out, const PrefixMap *map);
// prefixes: out has what each step gives (scan), not only the last (reduce); or what the
// map, if there is one, makes of each.
void gen_steps(Lower *l, const Expr *expr, const Env *env, bool prefixes,
               const PrefixMap *map, const View *out);
// In an item, a map of a prefix, of a zip with one, or of the one that the let around it
// (or NULL) holds, is a loop with it: no array holds the prefix. False: expr is none.
bool gen_prefix_map(Lower *l, const Expr *expr, const Expr *let, const Env *env,
                    const View *out);
// A variable of a scalar, or of each of a tuple, that begins with a value.
const View *fold_variable(Lower *l, const View *value, const Type *type);
// What a fold begins with, in registers, and one step of it.
const View *fold_begin(Lower *l, const Expr *expr, const Env *env);
void fold_element(Lower *l, const Expr *expr, const Env *env, const View *acc,
                  const View *value);
// A value, computed now with all that it is made of: arrays are private.
const View *fold_next(Lower *l, const View *value, const Type *type);
// matrix.c: reduceMatrix as a statement that adds to acc; false, and nothing done, where it
// is to be a loop.
bool gen_matrix(Lower *l, const Expr *expr, const Env *env, const View *acc);
const View *lower_fail(Lower *l, Span span, const char *code, const char *format, ...)
    FW_PRINTF(4, 5);
const View *materialise(Lower *l, const Expr *expr, const Env *env, AddrSpace space);

// place.c: where the value of a let goes because it, or components of it, are results or
// are only folded; NULL: they are not.
const View *let_place(Lower *l, const Expr *let, const Env *env, const View *out);
// The components of a value go to the items, and what has none to buffers of its own; what
// counts beside a loop's arrays goes nowhere.
const View *place_rest(Lower *l, const Expr *value, const View **item);
// Is it there already: a view, or a component of each element of one?
bool in_place(const View *from, const View *out);
bool map_in_place(const Expr *map, const View *in, const View *out);

// guard.c: the two sides of a condition met here, and the way onto one: what is evaluated
// between opening and closing goes to the block, and says which side it is on.
typedef struct {
    Block *block;
    const Side *side;
    int facts;
} Outside;
const Side *sides_new(Lower *l, const KExpr *cond);
Outside side_now(const Lower *l); // to come back to, by side_close
Outside side_open(Lower *l, const Side *side, Block *block);
void side_assume(Lower *l, const Side *side); // until it is closed
void side_close(Lower *l, Outside outside);
// Opens an `if`: every cond is >= 0.
void guard_open(Lower *l, const Arith *const *cond, int n);
// fold.c: a fold in front of the guards of what it is stored to, if all that it reads
// exists whatever they say: the folds of all outputs of an item then stand in one block,
// where they may become one loop. NULL: it is no fold, or may not.
const KExpr *fold_ahead(Lower *l, const Expr *expr, const Env *env, const View *out);
// May the statements from there on run whatever any condition says?
bool block_may_go_ahead(Lower *l, const Block *block, int from);
// Takes statements that were made on a side off it. Needs: they may go ahead.
void block_leave_side(Lower *l, Block *block);

// host.c
// Have the items of a group, by y, rows of their own, each done by the items along x? Then
// local memory is for each row.
bool in_rows(const Lower *l);
const View *buffers_new(Lower *l, const Type *type, AddrSpace space, BufferRole role,
                        int param, const char *name);
// As many groups along an axis as n elements need, so many in each. Each group takes
// several in turns where the device has no launch of as many.
void launch_axis(Lower *l, Kernel *kernel, int d, const Arith *n, int64_t each);
// Begins a kernel for a pattern met at host level, if we are there; true if it did.
LoopKind pattern_loop(Pattern pattern); // the loop that a map is
bool kernel_begin(Lower *l, const Expr *expr);
void kernel_end(Lower *l, bool begun); // nothing where it was not

// counter.c: a loop some of whose state only counts, or stays as it is, as one over the
// others.
typedef struct {
    const Expr *loop;   // whose function is told the number of the step
    int n, others;      // components of the whole state, and of this one
    const Expr **value; // what each is after `number` steps; NULL: it is one of the others
    const Param *number;
} LoopCounters;
bool find_counters(Ir *ir, const Expr *loop, LoopCounters *found);
// The whole state after all steps, of which rest are the others.
const View *counted_result(Lower *l, const LoopCounters *c, const Env *env,
                           const View *rest);
// The others of a view of the whole state.
const View *counted_rest(Lower *l, const LoopCounters *c, const View *whole);
// What the function of a loop sees of the state before a step, and of its number.
const Env *step_env(Lower *l, const Env *env, const Expr *loop, const View *state,
                    const Arith *number);
// Is its function told the number of the step?
static inline bool is_told_number(const Expr *loop)
{
    return loop->fun->nparam > 1;
}

// iterate.c: arrays of scalars that a type is made of: one, or those of a tuple's
// components.
int parts_of(const Type *type);
// These of a view, in order. What could not be lowered has none.
void list_arrays(Lower *l, const View *view, const View **list, int *n);
// Prefixes that are arrays: one behind what is before it, in a kernel or as launches; the
// launches of all.
typedef struct {
    const Expr *scan;
    const Env *env;
    const View *in, *out;
} RowSteps;
void gen_row(Lower *l, const RowSteps *s, const View *before, const Arith *number);
void gen_row_steps(Lower *l, const Expr *expr, const Env *env, const View *out);
const View *gen_iterate(Lower *l, const Expr *expr, const Env *env, const View *out);
// A component of a loop at host level: only that is written to out. False, and nothing
// done, of anything else.
bool gen_component(Lower *l, const Expr *expr, const Env *env, const View *out);

// stream_reads.c: what reading the state of a stream means.
const View *window_elem(Lower *l, const View *view, const Arith *index);
const KExpr *window_read(Lower *l, const View *view);
// How many steps of an iterateStream from buffers to buffers one kernel does; 0 for any
// other pattern, and if its function is not a stencil that can be streamed.
int64_t stream_steps(Lower *l, const Expr *expr, const Env *env, const View *from,
                     const View *to);
// A kernel that does that many, at most those; first: number of the first. Needs:
// stream_steps is not 0.
void gen_stream(Lower *l, const Expr *expr, const Env *env, int64_t steps,
                const Arith *first, const View *from, const View *to);

// lanes.c: does a map by groups fold something by lanes of warps? Then all items of a group
// run its function.
bool needs_lanes(const Lower *l, const Expr *map);
void gen_by_lanes(Lower *l, const Expr *expr, const Env *env, const View *out);
// Where they do: a loop over items as a loop of each item; false: it is another loop.
bool gen_in_turns(Lower *l, LoopKind kind, int dim, const Arith *extent, LoopBody *body,
                  void *user);
const View *gen_lanes(Lower *l, const Expr *expr, const Env *env);

// look_back.c: what the elements before a group's own fold to.
const View *gen_look_back(Lower *l, const Expr *expr, const Env *env);

// by_key.c: a keyed fold into a destination; false, and nothing done, where that cannot be
// read as well.
bool gen_by_key(Lower *l, const Expr *expr, const Env *env, const View *out);
// The array that all items of the group, or of the grid, have updated.
const View *eval_by_key(Lower *l, const Expr *expr, const Env *env);

// own.c: arrays whose elements the items of a group have in registers, neighbours by turns.
// Is it an array that all items of the group write, before they do something else?
bool is_shared_out(const Lower *l, const Expr *expr);
// The memory of each item for its elements of what expr writes.
const View *own_memory(Lower *l, const Expr *expr, const View *whole);
// Where an item has the element at that index of a buffer: the index, but of such memory.
const Arith *own_index(Lower *l, const Buffer *buffer, const Arith *index);
// All items copy theirs to where an array goes; false, and nothing done, of other arrays.
bool own_copy(Lower *l, const View *from, const View *out);
// Asks for a loop over such elements to be written out.
void own_unroll(Lower *l, Stm *loop);

// build.c: kernel IR.
const KExpr *k_literal(Lower *l, double number, const Type *type);
const KExpr *k_index(Lower *l, const Arith *arith);
const KExpr *k_var(Lower *l, const Var *var);
const KExpr *k_load(Lower *l, const Buffer *buffer, const Arith *index, const Type *type);
const KExpr *k_op(Lower *l, Op op, const Type *type, const KExpr *const *arg, int n);
// The same for select, && and ||, given the two sides of the first argument.
const KExpr *k_op_sides(Lower *l, Op op, const Type *type, const KExpr *const *arg, int n,
                        const Side *sides);
const KExpr *k_call(Lower *l, const Function *callee, const Type *type,
                    const KExpr *const *arg, int n);
const KExpr *k_cond(Lower *l, const Arith *const *cond, int n);
const KExpr *k_vector(Lower *l, const Type *type, const KExpr *const *arg);
const KExpr *k_shuffle(Lower *l, const KExpr *value, const Arith *lane);
const KExpr *k_lane(Lower *l, const KExpr *vector, int lane);
Stm *stm_add(Lower *l, StmKind kind);
Stm *add_store(Lower *l, const Buffer *buffer, const Arith *index, const KExpr *value);
void add_assign(Lower *l, const Var *var, const KExpr *value);
Var *add_decl(Lower *l, const char *name, bool is_const, const KExpr *value);
Stm *open_if(Lower *l, const KExpr *cond);         // what follows is in its body
void check_length(Lower *l, const Kernel *kernel); // fails where it is only to be looked at
Var *var_new(Lower *l, const char *name, const Type *type, bool is_const);
const char *name_new(Lower *l, const char *stem);
// `cond ? a : b` if neither side needs statements, else an if statement, so that what a
// side needs (a loop, a load) happens only where the side is taken.
const KExpr *k_choose(Lower *l, const Side *sides, const Block *yes, const KExpr *a,
                      const Block *no, const KExpr *b);
// The same for n values: there is at most one `if` statement.
const KExpr *const *k_choose_all(Lower *l, const Side *sides, const Block *yes,
                                 const KExpr *const *a, const Block *no,
                                 const KExpr *const *b, int n);
// A new constant that holds the value: what a variable that changes is now, say.
const KExpr *k_kept(Lower *l, const KExpr *value, const char *name);
// A value that may be used many times: itself if it is a literal, variable or index, else
// a new constant that holds it.
const KExpr *k_named(Lower *l, const KExpr *value, const char *name);

#endif
