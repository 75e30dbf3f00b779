// SPDX-License-Identifier: Apache-2.0
//
// What the files that rewrite a program share: the choices of a point, and the expression
// on its way.

#ifndef FW_DERIVE_WALK_H
#define FW_DERIVE_WALK_H

#include "derive/derive_parts.h"

// What a let stores. Is all of it a result? Else components may be: which were met, all of
// it being the first bit, and component k the one of k + 1. A kernel stores no more than
// the calls of a part; a program may return a longer tuple of a let all the same.
enum { COMPONENTS_MOST = 1024 };
typedef struct {
    const Param *param;
    bool whole;
    uint64_t placed[COMPONENTS_MOST / 64];
} StoredLet;

// Who updates the arrays of keyed folds.
typedef enum { KEYS_ITEM, KEYS_GROUP, KEYS_ALL } KeysBy;

// Along which folds of rows go.
typedef struct {
    int n;
    const Arith *length[16];
} Axes;

typedef struct {
    Rewriter r;
    Axes axes;
    bool tiled, unroll, blocks;
    bool strict;        // all points give the same bits
    int64_t room;       // bytes of a row that a group may hold
    int64_t steps_room; // and of steps that it makes; more are launched one by one
    int units;          // of the device, which have groups
    bool matrix;        // of fragments, for matrix units
    bool four_warps;    // which four warps add up together
    bool stream;        // warps walk along the first axis with the rows of all stages
    bool shuffle;       // as in KernelOptions
    bool host;          // items are loops
    bool cpu;           // the device is a processor
    bool listed;        // stages of a list stand under what shows it in several dimensions
    int64_t windows;    // as in Shape
    bool one_pass;      // prefixes of a whole array look back
    bool strips;        // of the rows of items are in local memory
    bool lists;         // of small arrays are computed in local memory
    TimeLoop passes;    // what all kernels that they make so have in common
    bool any_group;     // of any shape
    int64_t stage; // elements of each row that a product copies to local memory; 0: none
    int64_t local[DIMS_MAX], block[DIMS_MAX],
        cyclic[DIMS_MAX]; // by thread dimension: x, y, z
    int64_t groups, lanes;
    int64_t items, each; // of a fold or prefix that a group shares: who is given so many
    int64_t steps;       // that an item walks
    int64_t fused, cols, strip; // steps of a kernel, columns and rows of a stream
    int64_t parts;              // of the fold of each product, for groups
    int64_t fold_parts;         // of each other fold under a map, or prefix of columns
    KeysBy keys;
    int64_t copies;    // of the array that the items of a group share
    int64_t keyed;     // keyed folds that a group does side by side
    int64_t share;     // elements of an item in a prefix of an array; 0: one loop
    bool rows;         // a work-group does a chain of nests, else a work-item
    bool near;         // but an item one of columns
    bool join;         // what items folded is joined by the lanes of warps
    int64_t beside;    // chains that a group does side by side
    int64_t line;      // items of a group that has one dimension
    bool hold;         // what a chain reads and makes stays in local memory
    Unstored unstored; // stages that are computed where they are read
    VEC(StoredLet) stored;
    int outside;        // so many of these are out of reach here
    const Param *state; // of the loop whose step this is
    bool deep;          // a position is too deep to be written
} DeriveWalk;

// derive.c: what the normal form depends on, the same for the space and for all its points.
DeriveWalk walk_start(const Derivation *d);
// What is at a position, a position below, and one rule there; false, and nothing
// changed, where it does not match.
const Expr *walk_node(const DeriveWalk *w, Path at);
Path walk_below(DeriveWalk *w, Path at, int child);
bool walk_apply(DeriveWalk *w, RuleId rule, Path at, const int64_t *args, int n);
bool walk_apply_plain(DeriveWalk *w, RuleId rule, Path at);

Path walk_under_layout(DeriveWalk *w, Path at);     // as under_layout
Path walk_inside(DeriveWalk *w, Path at, int dims); // the functions of a nest
Path walk_below_lets(DeriveWalk *w, Path at);       // what follows all lets
Path walk_last_let(DeriveWalk *w, Path at);         // of those that begin at a let
Path walk_map_below(DeriveWalk *w,
                    Path at); // under the take, if parts stick out, and the join

// derive_normal.c: the form that the shape of a program is found in, and its points begin
// with, from a position of the host level on.
void derive_normalise(DeriveWalk *w, Path at);
// Is it a map that must not be computed again for each element that reads it, or another
// layout of one?
bool is_costly(const Expr *expr);

// derive_scans.c: recurrences below a position become prefixes that items share.
void derive_scans(DeriveWalk *w, Path at);

// derive_places.c: dimensions of maps and arrays within one another.
int nest_depth(const Expr *expr);
// Nests of more maps than work-items have dimensions: the outermost two become one, again
// and again; or the innermost that are columns of a product. Where the map then is.
Path join_outer(DeriveWalk *w, Path at);
Path join_inner(DeriveWalk *w, Path at);

// derive_rows.c: the functions of rows in what is below, before the normal form. What they
// give is seen to be maps; what they store becomes stages over all rows.
void derive_results_of_rows(DeriveWalk *w, Path at);
// Prefixes that are wanted in turned order, as those of an array that is read backwards:
// in the result of a function or of the program, and of rows that items share.
void derive_turn_result(DeriveWalk *w, Path at);
Path derive_turn_outside(DeriveWalk *w, Path at);
bool derive_stays_apart(const Expr *map, int i); // such a stage, part i of what a map reads
void derive_join_rows(DeriveWalk *w, Path at);   // stages that go through the same rows
void derive_stages_of_rows(DeriveWalk *w, Path at);
void derive_results_apart(DeriveWalk *w, Path at);
void derive_name_results(DeriveWalk *w);
Path derive_joined(DeriveWalk *w, Path at); // a map as one of a list: where it then is
void derive_hold_items(DeriveWalk *w);      // small arrays that items read again
bool has_function(const Expr *expr, const void *none); // for expr_find
// Stores the components of the result there apart; false: nothing changed.
bool derive_result_apart(DeriveWalk *w, Path at);
// A kernel of its own costs more than a few elements that are made again.
enum { HOST_LEAST = 64 };

// derive_tables.c: does a let name a table of functions, as sines, that is read again?
bool derive_is_table(const Expr *let);
void derive_join_tables(DeriveWalk *w, Path at); // those of one length, one after the other
// Stages by index are those of a pipeline where others read them so, and read what they are
// made of likewise; so are those of a step.
void derive_windows_by_index(DeriveWalk *w, Path at);
// derive_apart.c: takes a chain around a product apart; false: nothing changed.
bool derive_part_chain(DeriveWalk *w, Path at);

// derive_chain.c: a map of a chain of nests; false, and nothing changed, if it is none.
bool derive_chain(DeriveWalk *w, Path at);
// Folds of the whole find again what maps make that names of the program hold; windows:
// also what they look at in windows. False: no fold reads such a map.
bool folds_again(DeriveWalk *w, bool windows);
// Is the fold of such a map done in parts?
bool chain_parts(const DeriveWalk *w, const Expr *map);
// The folds of parts, by groups whatever the point says.
bool derive_folds(DeriveWalk *w, Path at, int64_t lanes);
bool derive_by_group(DeriveWalk *w, Path at); // a chain, whatever the point says
// A map over parts of rows, of a map of what each folds: a group a part and row.
bool derive_parts_by_groups(DeriveWalk *w, Path at);
// A prefix of a whole array, or a map that reads it; likewise.
bool derive_scan(DeriveWalk *w, Path at);
// A step of prefixes that are arrays; apart derives what it is.
void derive_row_step(DeriveWalk *w, Path at, void (*apart)(DeriveWalk *w, Path at));
bool scan_splits(const DeriveWalk *w, const Expr *expr); // would that be in parts?
bool derive_scan_rows(DeriveWalk *w, Path at);           // of long rows; likewise

// The lets of a chain's function: folds get names and are shared by the items; hold is told
// of every other value. *at is then what follows them.
void derive_lets(DeriveWalk *w, Path *at, const Param *row,
                 void (*hold)(DeriveWalk *w, Path value));

// derive_by_key.c: a map of keyed folds, or one; true: what is to be folded for each key
// is a map that follows the let.
bool is_keyed_map(const Expr *expr);
bool derive_keyed_map(DeriveWalk *w, Path at);
// Its folds in parts, so that there are as many groups as the point says; what joins them
// is still to be derived, below `at`. False: nothing was done.
bool derive_keyed_parts(DeriveWalk *w, Path at);
bool join_keyed(DeriveWalk *w, Path *at); // those of a map are one: where it is
bool derive_keyed(DeriveWalk *w, Path at);

// derive_together.c: a map of small arrays through local memory; false, and nothing
// changed, if it is none.
bool derive_list(DeriveWalk *w, Path at);
// Folds at a position, or in lets there, that read one array are one fold of tuples.
void derive_join_folds(DeriveWalk *w, Path at);
// Moves the let at a position up to another level, unless it needs what is between.
bool walk_move_up(DeriveWalk *w, Path at, int to);
// The map of parts that foldTogether made.
void derive_together(DeriveWalk *w, Path at, const Together *parts);
// How the parts of a let are done; NULL: it is none of those.
const Together *together_of(const DeriveWalk *w, const Param *param);
// Does it fold the results of the parts, which are few?
bool folds_parts(const DeriveWalk *w, const Expr *expr);

#endif
