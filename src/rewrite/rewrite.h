// SPDX-License-Identifier: Apache-2.0
//
// rewrite: the table of rewrite rules, strategies and derivations.
//
//   source  paper 000, sections 3.3 and 8; Steuwer et al., ICFP 2015; the rule files of
//           Lift by name, in rules.def
//
// A rule keeps the meaning of a program; which rules to apply where is a derivation, which
// is text, and can be saved, read and applied again. It knows no device and no kernel:
// whether an expression can be lowered is asked of the caller.

#ifndef FW_REWRITE_H
#define FW_REWRITE_H

#include "base/base.h"
#include "ir/ir.h"

// Rules -------------------------------------------------------------------------------

typedef enum {
    FAMILY_ALGORITHMIC,
    FAMILY_FUSION,
    FAMILY_FISSION,
    FAMILY_INTERCHANGE,
    FAMILY_SIMPLIFY,
    FAMILY_LOWERING,
    FAMILY_MEMORY,
    FAMILY_TILING,
    FAMILY_VECTOR,
    FAMILY_WINDOW,
} RuleFamily;

typedef enum {
#define RULE(id, name, args, family, left, right, guard, source) RULE_##id,
#include "rewrite/rules.def"
#undef RULE
    RULES
} RuleId;

enum { RULE_ARGS = 4 };

typedef struct {
    int n;
    int64_t at[RULE_ARGS];
} RuleArgs;

// The expressions around the one a rule is tried at, innermost first.
typedef struct Context Context;
struct Context {
    const Expr *expr;
    int child; // which argument of it, or CHILD_FUN: the body of its function
    const Context *outer;
};
enum { CHILD_FUN = -1 };

typedef struct {
    Ir *ir;
    const Context *context;
} Rewrite;

// The new expression, which shares no node with `at` and has no types yet; NULL where the
// rule does not match or its guard fails. Needs: at is inferred.
typedef Expr *RuleApply(Rewrite *rw, const Expr *at, const RuleArgs *args);

typedef struct {
    const char *name, *args;
    RuleFamily family;
    const char *left, *right, *guard, *source;
    RuleApply *apply;
} RuleInfo;
extern const RuleInfo rule_info[RULES];
extern const char *const rule_family_name[];

int rule_find(const char *name); // -1 if there is none
// How many arguments a rule takes.
void rule_args_range(const RuleInfo *rule, int *least, int *most);

// May work-items share a reduction? Its function is an operation that is associative and
// commutative, as it stands or once reduceFission took a map out of it; or it folds by
// parts.
bool reduce_shares(const Expr *reduce);
// May it be done in the pass of the map that makes what it folds (foldTogether)?
bool folds_together(const Expr *reduce);
// Do its bits show in which order that was done? Not of whole numbers, nor of the least and
// the greatest.
bool order_shows(const Expr *reduce);
// separate.c: of the elements that a fold in a map's function goes through for each of the
// map's windows, the share that is left if windows share what they fold along each axis; 1:
// it is no such fold.
double fold_share(const Expr *map, const Expr *fold);
// Does a keyed fold combine each scalar of an element with its value by an operation that
// can be atomic?
bool keyed_updates(const Expr *keyed);
// How many elements, side by side, have keys that are all different, as rows that are
// folded element by element have; 0: none are known to.
int64_t keyed_row(const Expr *elements);
// Must items fold neighbours? Not where the order is seen not to matter.
bool keeps_order(const Expr *reduce);
// Is a fold, or a prefix, the same in parts that are combined in order? Both sides are one
// type of scalars, or tuples of them, and it is so on the values that are tried.
bool folds_by_parts(const Expr *fold);
// A loop of numbers and small arrays, so many times, whose steps fold so many elements?
bool loop_folds(const Expr *expr, int64_t least);
// What is stored for each row: scatters, loops and folds by key, of arrays of so many
// scalars; and, unless it is 0, other arrays of `again` scalars that are read again and
// again.
// Loops are those of arrays, or all, those of numbers whose steps have prefixes or loops of
// arrays, too.
enum { LOOPS_NONE, LOOPS_ARRAYS, LOOPS_ALL };
typedef struct {
    int64_t least, loops, again;
    bool folds; // and folds and prefixes of rows, too
} RowStages;

const Expr *under_views(const Expr *expr); // what it shows, unless that is a zip
// One that is stored however it is read; wanted: RowStages.
bool is_row_stage(const Expr *expr, const void *wanted);
bool is_loop_of_arrays(const Expr *expr);
bool only_reads(const Expr *array);    // are its elements read elsewhere, and nothing else?
enum { ROW_BYTES_MOST = 1 << 18 };     // of a row: no group has room for more
enum { SMALL_MOST = 64 };              // elements of a small array, which an item may have
bool is_small_array(const Type *type); // of scalars
// Is a type, or one in a tuple, an array of so many scalars, or of a number not known?
bool array_is_large(const Type *type, int64_t least);
enum { TABLE_LEAST = 4096 }; // scalars that are sooner computed than read again and again
// A function as the sine, or one of the program that calls one; for expr_find.
bool calls_function(const Expr *expr, const void *none);
// The prefix that an expression is, or that a map reads element by element, alone or beside
// other arrays; NULL: there is none.
const Expr *scan_read(const Expr *expr);
// The reduction or prefix that nameFold gives a name; NULL: there is none.
const Expr *fold_to_name(const Expr *expr, int64_t least);
const Expr *link_to_name(const Expr *expr, int64_t least); // or a loop that folds so many
// The innermost of these in an expression, or in the value of a name, that is not all of
// it.
const Expr *link_within(const Expr *expr, int64_t least);
// The reduction that a function of a nest computes, which may go on with what it gives:
// the body, the value of its name, or what nameFold names; NULL: there is none.
const Expr *fold_inside(const Expr *body);

// Positions -----------------------------------------------------------------------------

// From the root inwards: an argument's number, or CHILD_FUN. As text `0.f.1`, or `root`.
enum { PATH_STEPS = 1148, CHILDREN_MAX = 1024 };
typedef struct {
    int n;
    int16_t step[PATH_STEPS];
} Path;

const Expr *path_find(const Expr *root, const Path *path); // NULL if it leads nowhere
// Appends the way down to the first reduction that fits (NULL: any) among the operands of a
// scalar; false if there is none.
bool path_to_fold(const Expr *expr, Path *at, bool (*fits)(const Expr *reduce));
bool path_push(Path *path, int child); // false if it is full
bool path_parse(const char *text, Path *path);
void path_print(Buf *out, const Path *path);

// A copy to begin with, inferred: literals are written in the type they have, so that they
// keep it wherever rules move them. Needs: body is inferred.
Expr *rewrite_begin(Ir *ir, const Expr *body);
// Applies a rule at a position; NULL where it does not match. Nodes around the position are
// copied, so the old expression stays as it is (but for types, which are inferred again for
// the new one).
Expr *rewrite_at(Ir *ir, Expr *root, const Path *path, RuleId rule, const RuleArgs *args);
// The same, but that the lets in a row that the root begins with, those on the way to the
// position, are changed and not copied: of a thousand lets each step would copy as many.
// undo->slot, if it is not NULL, takes undo->was where the step is taken back.
typedef struct {
    Expr **slot, *was;
} Undo;
Expr *rewrite_own(Ir *ir, Expr *root, const Path *path, RuleId rule, const RuleArgs *args,
                  Undo *undo);

// Looking at expressions ---------------------------------------------------------------

// Is it such a pattern over that many dimensions?
bool is_dims(const Expr *expr, Pattern p, int dims);
const Expr *data_of(const Expr *pattern);       // its array argument
const Arith *len_of(const Expr *expr, int dim); // of the type
// Is it a view whose elements cannot be written where they come to stand? (For expr_find.)
bool moves_elements(const Expr *expr, const void *none);
bool only_views(const Expr *expr);        // does it compute nothing but places?
const Expr *under_turn(const Expr *expr); // the array that it turns round; else itself
// What stands for f in map(f) if that is p(..., e) of the element e, which occurs nowhere
// else in it; NULL if not.
const Expr *inner_of(const Expr *map, Pattern p);
// Accumulator and elements are of one type, so that the contract of `reduce` lets it be
// regrouped; not where it plainly adds up something else than its elements, which breaks
// the contract but does no harm as long as nobody regroups it.
bool is_regroupable(const Expr *reduce);

#endif
