// SPDX-License-Identifier: Apache-2.0
//
// nest: what the nests of a program look like, as questions about expressions, and its
// stages as calls that `fuse` can cover (pipeline.h). It knows of no device, point or
// space.

#ifndef FW_NEST_NEST_H
#define FW_NEST_NEST_H

#include "ir/ir.h"
#include "rewrite/rewrite.h"

// chain.c: how many maps are around a chain of nests, the one of the chain included;
// 0: a map is none.
int chain_depth(const Expr *map);
bool has_chain(const Expr *expr);       // in what it reads, or itself
const Expr *chain_map(const Expr *map); // the innermost of these, which holds the chain
// Elements of a fold in a body that is worth sharing: where an array is made, each of its
// elements would fold them again.
int64_t chain_least(const Expr *body);
enum { SHARED_LEAST = 8 }; // and never fewer
enum { ALONE_MOST = 16 };  // elements that an item folds by itself
// Is it a fold or a prefix that the items of a group may share?
bool chain_shares(const Expr *expr);
// Is it what the function of such a map computes: folds or prefixes, shared by items?
bool is_chain_body(const Expr *body);
// Is it a loop of arrays, of a known number of steps that none of them ends, so that a
// group can take them together?
bool is_group_loop(const Expr *expr);
// Prefixes that are arrays, each made of the one before by a map: the items of a group make
// one after the other.
bool scans_rows(const Expr *expr);
// The same where a group has no more than so many bytes for its steps, of which all are
// launched one after the other.
bool launches_rows(const Expr *expr, int64_t most);
// Is it such a loop, or one of numbers whose steps fold, when a group does what is around
// it?
bool is_shared_loop(const Expr *expr);
// What a group has in local memory for the steps of one of these, but for its state; hold:
// with the arrays that they name.
int64_t steps_bytes(const Expr *loop, bool hold);
// What more than 256 items need beyond that, and folds, each time a step is written out;
// steps: it is one.
int64_t steps_words(const Expr *expr, bool steps);
bool chain_scans_rows(const Expr *map); // does the function of a chain give such prefixes?
// Does such a body name arrays that a loop changes, or that are made and read again? They
// are the group's, which holds them.
bool holds_arrays(const Expr *body);
bool chain_holds(const Expr *map); // does the function of a chain?
// Does it, and no step of a loop read a part of its own of what the map is given? Then that
// is held, too.
bool copies_given(const Expr *map);
bool is_name(const Expr *expr); // or a component of what has a name
// Do items of a group that holds arrays fold a row of one each, which lies in the banks of
// every other one?
bool reads_held_rows(const Expr *map);
bool folds_matrix(const Expr *value); // does it fold, and read a large matrix?
// Which let of a map's function, or what follows them, is the first to fold and to read a
// large matrix that all elements share? It is a product of all elements then, whose items
// read each row of the matrix for many. -1: there is none.
int shared_stage(const Expr *map);
// The bytes of all arrays of such a map that a group may hold.
int64_t chain_bytes(const Expr *map);
int64_t chain_length(const Expr *map, LengthOf *length,
                     const void *user); // elements of its longest fold or prefix
// A map of scalars made from a fold, which may be done in parts: how long it is; 0: it is
// none.
int64_t chain_split(const Expr *map);
bool names_number(const Expr *expr); // a let of a scalar that is made of no fold
// Do neighbours of a map look at neighbours, or at the same? As far as is seen.
bool reads_columns(const Expr *map);
// Do many elements of a map each fold all of one array, as nearest neighbours do? Then the
// lanes of a warp read one place of it at a time.
bool folds_same(const Expr *map);
// Would an item go through a long row, where each element needs what came of the last?
bool walks_rows(const Expr *map);
// Does the function of a chain fold a row so, which each item of a group would do?
bool chain_goes_alone(const Expr *map);
// The same, or through a long column.
bool walks_lines(const Expr *map);
// Does it turn an array, or each element of one?
bool turns_array(const Expr *expr);
bool turns_columns(const Expr *expr); // rows that are made of columns
// Do items of a chain read neighbours, a prefix or a fold that keeps the order?
bool reads_near(const Expr *expr);
int64_t fold_elem_bytes(const Expr *expr); // of a fold that keeps its order; 0: it is none
int64_t
scan_elem_bytes(const Expr *expr); // of a prefix that items may share; 0: it is none
int64_t shared_fold_bytes(const Expr *expr); // of a fold's result; 0: items do not share it
// As scan_read, of which no other long fold or prefix is a part, nor is one beside it: each
// part of it would make all of that again.
const Expr *lone_scan(const Expr *expr);
int64_t scan_row_length(const Expr *map); // of prefixes of rows; 0: it is no map of them
// What a group must have in local memory, whether it holds what it is given or not.
int64_t chain_scan_bytes(const Expr *map);
enum { SCAN_MORE = 1200 }; // elements more of a prefix by up to 256 items

// item.c: an element, or a row, of what a param names; for expr_count.
bool reads_element(const Expr *expr, const void *param);
// Does a let name a small array that is computed and read again? A work-item keeps
// it in registers.
bool is_kept_array(const Expr *let);
// Does a short array take so many operations, of what it looks up, that the items of a
// group share them? Where each item makes one alone, neighbours read far apart.
bool is_large_work(const Expr *expr, const void *none);
// Does a map make such arrays for its elements, which are small themselves, and no long
// ones? Then an item has all of an element.
bool is_for_items(const Expr *map);
bool is_whole_item(const Expr *map); // the same, or what its elements share calls functions

// places.c: maps within one another, the outermost first, and on which of their places each
// number depends that the function of the innermost folds: a bit for each map.
enum { NEST_LEVELS = 16, NEST_READS = 16 };
typedef struct {
    int levels, n;
    unsigned read[NEST_READS];
} NestReads;
NestReads nest_reads(const Expr *map);
// Does each number depend on both places, or on neither?
bool reads_alike(const NestReads *reads, int a, int b);
// Does some number depend on the one place only, and some on the other only? They are the
// rows and columns of a product.
bool reads_pairs(const NestReads *reads, int a, int b);

// ask.c
bool is_map(const Expr *expr);
bool is_zip(const Expr *expr, int dims);
// Windows over something, a step of 1 apart in every dimension.
bool is_window(const Expr *expr, int dims);
// A map in a map, over arrays that do not depend on each other, of a fold to a scalar,
// which goes on with it or not.
bool is_product(const Expr *map);
// Does an inner map fold something of both its element and that of the outer one?
bool folds_pairs(const Expr *map, const Expr *inner);
bool has_product(const Expr *expr); // anywhere
// One of the two has a product and both fold: a kernel of both would have no product.
bool hides_product(const Expr *from, const Expr *to);
bool has_fold(const Expr *expr);      // anywhere
double bytes_below(const Expr *expr); // of the arrays that it is made of
// Is component `field` (-1: all) of what the param names a result, as it stands?
bool has_result(const Expr *result, const Param *param, int field);
// Is the value of a let a map whose components are all results? Then one kernel writes
// them.
bool makes_results(const Expr *let);
// Maps written inside one another: one thread dimension each, outermost slowest.
int nested_depth(const Expr *map);
// The length of a short reduction, over a window say, which may be a loop or straight-line
// code; 0 if it is none.
int64_t reduce_length(const Expr *expr); // a constant one; 0: none
int64_t
inner_length(const Expr *expr); // of a longer one of a joined array: of its last loops
// The length of the shortest rows that an array to be folded is joined of, of those that
// are longer than `done` and whole numbers of it; 0: there are none.
int64_t fold_row(const Expr *array, int64_t done);
int64_t nested_length(const Expr *expr); // with those that it goes through at each element
// Elements of a short reduction, and of one that may be straight-line code.
enum { INNER_MOST = 64, UNROLL_MOST = 128 };
int array_dims(const Type *type); // at most DIMS_MAX
// Thread dimensions of mapGlb, mapWrg and mapLcl in an expression; 0 if it has none.
int lowered_dims(const Expr *expr);
// Does lowering write the value to memory by itself, or only look at it?
bool writes_itself(const Expr *expr);
// What is computed, whatever layout it is written in.
const Expr *under_layout(const Expr *expr);
// Is there a pattern in it that is more than layout?
bool expr_computes(const Expr *expr);
bool is_view(const Expr *value); // an array, or several, of which nothing is computed
// A map that only moves each row of what it is given, which computes nothing either.
bool moves_rows(const Expr *expr);
// Is it only another layout of what is written where it ends up: transposed, or each row?
bool is_relayout(const Expr *expr);

#endif
