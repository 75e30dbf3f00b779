// SPDX-License-Identifier: Apache-2.0
//
// fuse: a sequence of calls of elementary functions, mapped over a list of instances: the
// dependence graph, its fusible subgraphs, orders and on-chip allocations, the cheapest
// covers. The calls are those of a script, or the stages of a program.
//
//   source  paper 004 (Fousek, Filipovic, Madzin, SIGARCH CAN 39(4), 2011), sections 3 and
//   4
//
// An element is a value of one instance. It does not know kernels: those of a script are
// those of the program that it is (program.c).

#ifndef FW_FUSE_H
#define FW_FUSE_H

#include "ir/ir.h"

// A script of more calls than a set has bits is divided into parts of calls that follow
// each other: call v of a part is bit v of a set.
typedef uint64_t Set;
static inline int lowest(Set set)
{
    return __builtin_ctzll(set);
}
enum {
    PART_MAX = 64,
    PART_LEAST = 32, // calls of each part but the last
    CALLS_MAX = 1000,
    PARTS_MAX = CALLS_MAX / PART_LEAST + 1,
    ELEMS_MAX = 2024,
    ARITY_MAX = 8,
    IMPLS_MAX = 8,
    MEMBERS_MAX = 16,         // calls of a fusion
    THREADS_MAX = 1024,       // of an instance
    ELEM_WORDS_MAX = 1 << 17, // of an element
};

// read.c: scripts and libraries -----------------------------------------------------------

// A map makes an element of each instance; a sum adds its argument's over all instances, so
// that its result is known when its kernel ends; what stands alone shares no kernel.
typedef enum { FUNCTION_MAP, FUNCTION_SUM, FUNCTION_ALONE } FunctionKind;

typedef struct Elementary Elementary;
struct Elementary {
    FunctionKind kind;
    bool folds; // for each element that a map makes
    const char *name;
    Span span;
    int nparam;
    const char *param[ARITY_MAX];
    const Type *type[ARITY_MAX + 1]; // of each parameter, then of the result
    int words[ARITY_MAX + 1];
    const Function *def;    // of a map
    const Program *program; // that the def is in
    int part, parts;  // of a def whose result is a tuple: which component, of how many
    Elementary *next; // that computes the next
    int nimpl;        // implementations, the paper's: by how many threads an
    int threads[IMPLS_MAX]; // instance, which share the leading dimensions of the result
};

// Calls of one part, by their numbers in the script: first + v for bit v.
typedef struct {
    int first;
    Set set;
} Calls;

// Calls of a whole script.
typedef struct {
    uint64_t word[CALLS_MAX / 64 + 1];
} Users;

typedef struct {
    const char *name;
    const Type *type;
    const char *type_name;
    Span span;
    int words;
    int producer; // a call; -1: an input
    Users users;
    bool is_input, is_output;
    bool is_uniform; // one value for all instances
    int shape;       // elements that one kernel stores are of one shape
    bool is_sole;    // it is the only one that its kernel stores
} Elem;

typedef struct {
    const Elementary *function;
    int in[ARITY_MAX], out; // elements
    bool is_uniform;        // of uniform elements alone: made once
    Span span;
} Call;

// A definition whose arrays are as long as the arguments of a call: a function for each
// length that occurs is made of it.
typedef struct {
    const Program *program; // with its sizes
    const Function *def;
} Generic;

typedef struct Script Script;
typedef struct Fusion Fusion;

// A script as read: its calls in an order in which each comes after those it needs. The
// stages of a program are such calls too (nest/pipeline.h).
struct Script {
    Arena *arena;
    Ir *ir;
    const char *name; // of the file, without folder and suffix
    Source source;
    VEC(Binding) sizes;          // that have a value, which is theirs in all definitions
    VEC(Elementary *) functions; // the library's, then the script's own
    VEC(Generic) generics;
    VEC(Elementary *) instances; // of those, as calls ask for them
    int ncall, nelem, ninput;
    bool is_step; // its results are inputs of the same calls, once more
    Call call[CALLS_MAX];
    Elem elem[ELEMS_MAX];           // inputs first, in the order they were named
    int noutput, output[CALLS_MAX]; // elements, in the order of `return`
    // How many implementations a fusion has; NULL: the product of its calls'.
    double (*impls)(const Script *script, const Fusion *fusion);
};

// Reads a script; NULL with diagnostics that point into its source. Owner: the caller,
// script_free after the diagnostics were printed.
// size: values for the script's sizes, in place of those that it says; T, the number of
// instances, is none of them.
Script *script_load(const char *path, const Binding *size, int nsize, Diags *diags,
                    bool *ok);
Script *script_parse(const char *name, const char *text, const Binding *size, int nsize,
                     Diags *diags, bool *ok);
void script_free(Script *script); // accepts NULL
void elem_add_user(Elem *elem, int call);
Set elem_users(const Elem *elem, int first); // those from call first on that a set can hold
bool elem_is_used(const Elem *elem);
bool elem_leaves(const Elem *elem, Calls calls); // is it an output, or used by others?
bool calls_have(Calls calls, int call);
// What a script in this file is called: its name without folder and suffix, made a name.
const char *script_name(Arena *arena, const char *path);
// program.c: the program that a script is, with T open, in the language.
void script_print(Buf *out, const Script *script);
extern const char *const fuse_library; // the text of the functions that are shipped

// space.c: what may be fused -------------------------------------------------------------

// One part of a script: calls first .. first + n - 1.
typedef struct {
    const Script *script;
    int first, n;
    Set succ[PART_MAX], pred[PART_MAX]; // by an element that is passed on
    Set desc[PART_MAX], anc[PART_MAX];  // transitively
    Set adj[PART_MAX];                  // succ, pred, or an input in common
} Graph;

void graph_init(Graph *graph, const Script *script, int first, int n);
// No path leaves the set and comes back.
bool graph_convex(const Graph *graph, Set set);

// A set of calls that may run as one kernel, and what is known of it before implementations
// are chosen. A single call is one too.
struct Fusion {
    int part;
    int first; // of the part
    Set set;
    int ncall;
    int nelem; // elements it touches
    uint16_t elem[MEMBERS_MAX * (ARITY_MAX + 1)];
    int moved, apart; // words moved an instance: fused, and by the calls one by one
    double impls;     // how many implementations it has
    // By fuse_order:
    uint8_t order[MEMBERS_MAX]; // the calls as bits of set, in the order with the least
                                // need of words
    double orders;              // how many there are
    int need_min, need_max;     // words an instance that are live at once, over all orders
    int offset[MEMBERS_MAX * (ARITY_MAX + 1)]; // on chip, in words an instance
    int top;                                   // words allocated
    int nodes;                                 // of the branch and bound
};

Calls fusion_calls(const Fusion *fusion);
bool fusion_loads(const Script *script, const Fusion *fusion, int elem);
bool fusion_stores(const Script *script, const Fusion *fusion, int elem);
int fusion_place(const Fusion *fusion, int elem); // index into elem[]; -1: none of its own

typedef struct {
    const Script *script;
    int nparts; // which are searched one by one
    Graph part[PARTS_MAX];
    // Most calls in one: the least of all parts, the largest, and as it was wanted.
    int limit, limit_most, asked;
    bool cut; // of a part there are more sets of as many calls as was wanted
    VEC(Fusion) fusion;
    double subsets, convex, connected; // counts; subsets and convex 0 above 20 calls
    double fusions, impls;             // of two calls and more
    double covers, cover_impls;        // at least so many if covers_cut
    bool covers_cut;
    double seconds;
} FuseSpace;

enum { SETS_MOST = 20000 }; // of all parts

// All fusible sets of at most limit calls (0: MEMBERS_MAX), part by part; in each part of
// as many as give it no more than its share of SETS_MOST and of the steps. Owner: arena.
FuseSpace *fuse_space(const Script *script, int limit, Arena *arena);
// The order and the allocation of each, which no kernel of ours depends on.
void fuse_order(FuseSpace *space);
// Those of at least so many calls, by size, then by members, as one would list them by
// hand; *n of them. Owner: arena.
const Fusion **fuse_list(const FuseSpace *space, int calls, Arena *arena, int *n);

// When each element must be on chip, as steps of an order; first > last: not at all.
typedef struct {
    int first, last, words;
} Live;
// Offsets that keep elements apart whose steps meet, with the least top; offset[i] of an
// absent element is 0. Returns the top; *nodes the branches tried.
int fuse_allocate(const Live *live, int n, int *offset, int *nodes);
// Element i of a fusion is live from the first of its calls that touches it to the last.
Live fusion_live(const Script *script, const Fusion *fusion, int i);

// cover.c: the cheapest covers, in order -------------------------------------------------

typedef struct {
    Set set;
    double cost;
    int id; // the caller's
} CoverUnit;

typedef struct {
    double cost;
    bool cut; // the search ended at its limit: there may be cheaper ones
    int n;
    int *unit; // positions in the units given, in an order they can run in
} Cover;

// The k cheapest ways to cover every call of a part exactly once by units whose quotient
// graph has no cycle, in order of cost; returns how many there are, at most k. shares:
// among how many parts the steps of a search are divided. Owner of *cover: arena.
int cover_best(const Graph *graph, const CoverUnit *unit, int n, int k, int shares,
               Arena *arena, Cover **cover);
// divide.c: the same of all parts together, by units whose ids are positions in
// space->fusion, in their order: the cheapest sums of covers of the parts.
int cover_parts(const FuseSpace *space, const CoverUnit *unit, int n, int k, Arena *arena,
                Cover **cover);
// Where the parts of a script begin: first[0] = 0 .. first[parts] = its calls. A part ends
// where the fewest words pass on.
int script_divide(const Script *script, int *first);

#endif
