// SPDX-License-Identifier: Apache-2.0
//
// arith: symbolic integers. Sizes, loop bounds and array indices are built from
// constants and variables by + * floor-division, modulo, min and max; every
// constructor returns the canonical, simplified, interned form, so that two
// expressions it can prove equal by normalisation are the same pointer.
//
//   source  the role of Lift's arithmetic expressions (paper 000, section 4.2.3;
//           Steuwer et al., CGO 2017); quasi-affine canonical form with intervals,
//           congruences and facts instead of Lift's rule list
//
// Division and modulo are floor division and its remainder (as in Python): for d > 0,
// e = d * (e div d) + (e mod d) and 0 <= e mod d < d. Divisors must be positive.
//
// It does not know what an array is.

#ifndef FW_ARITH_H
#define FW_ARITH_H

#include "base/base.h"

typedef struct ArithCtx ArithCtx;
typedef struct Arith Arith;

typedef enum {
    A_CONST, // value
    A_VAR,   // a variable with bounds
    A_SUM,  // value + sum of term[i].coef * term[i].arg; args are VAR, PROD, DIV, MOD, MIN,
            // MAX
    A_PROD, // term[0].arg * term[1].arg * ...: at least two factors, none CONST, PROD or
            // SUM
    A_DIV,  // term[0].arg floor-divided by term[1].arg
    A_MOD,  // term[0].arg modulo term[1].arg
    A_MIN,  // the smaller of term[0].arg and term[1].arg
    A_MAX,  // the larger
} ArithKind;

typedef struct {
    int64_t coef; // 1 except in A_SUM, never 0
    const Arith *arg;
} ArithTerm;

// Immutable and interned; the fields may be read anywhere, made only by this module.
struct Arith {
    ArithKind kind;
    bool fixed;           // made of constants, sizes and numbers of launches
    bool launch;          // VAR: differs from launch to launch, which says it
    uint32_t id;          // order of creation: terms are sorted by it
    int64_t value;        // CONST, SUM
    const char *name;     // VAR
    const Arith *lo, *hi; // VAR: inclusive bounds, NULL if unknown
    int64_t multiple;     // VAR: known to be divisible by this, at least 1
    ArithTerm self;       // 1 * this: an atom as a sum of one term
    int n;                // number of terms
    ArithTerm term[];
};

ArithCtx *arith_ctx_new(void);
void arith_ctx_free(ArithCtx *ctx); // accepts NULL

// Nodes made after a mark are dropped by the release, so that a search over many
// candidates does not grow. Needs: marks are released in reverse order.
typedef struct {
    ArenaMark arena;
    uint32_t nodes;
    int facts;
} ArithMark;
ArithMark arith_mark(const ArithCtx *ctx);
void arith_release(ArithCtx *ctx, ArithMark mark);

// Constructors -----------------------------------------------------------------

const Arith *arith_const(ArithCtx *ctx, int64_t value);
// A new variable, different from every other, with lo <= x <= hi (NULL: unbounded).
// The bounds may mention variables made earlier. The name is only for printing.
const Arith *arith_var(ArithCtx *ctx, const char *name, const Arith *lo, const Arith *hi);
// The variable of a loop of so many iterations, from 0: a variable, where arith_var would
// give the number 0, even if there is one iteration (its bounds then have room for two).
const Arith *arith_iter(ArithCtx *ctx, const char *name, const Arith *extent);
// The same, and known to be divisible by multiple, which is at least 1.
const Arith *arith_var_multiple(ArithCtx *ctx, const char *name, const Arith *lo,
                                const Arith *hi, int64_t multiple);
// A number that each launch of a kernel says, from lo to hi.
const Arith *arith_launch(ArithCtx *ctx, const char *name, int64_t lo, int64_t hi,
                          int64_t multiple);
// The variable of a size symbol: one for each name, at least 1 and below 2^31.
const Arith *arith_size(ArithCtx *ctx, const char *name);
// The one of that name with these bounds; a new one is what arith_size gives from then on.
const Arith *arith_size_within(ArithCtx *ctx, const char *name, int64_t lo, int64_t hi,
                               int64_t multiple);

const Arith *arith_add(ArithCtx *ctx, const Arith *a, const Arith *b);
const Arith *arith_sub(ArithCtx *ctx, const Arith *a, const Arith *b);
const Arith *arith_mul(ArithCtx *ctx, const Arith *a, const Arith *b);
const Arith *arith_div(ArithCtx *ctx, const Arith *a, const Arith *b);
const Arith *arith_mod(ArithCtx *ctx, const Arith *a, const Arith *b);
const Arith *arith_min(ArithCtx *ctx, const Arith *a, const Arith *b);
const Arith *arith_max(ArithCtx *ctx, const Arith *a, const Arith *b);
const Arith *arith_addc(ArithCtx *ctx, const Arith *a, int64_t c);
const Arith *arith_mulc(ArithCtx *ctx, const Arith *a, int64_t c);
const Arith *arith_divc(ArithCtx *ctx, const Arith *a, int64_t c);
const Arith *arith_ceil_div(ArithCtx *ctx, const Arith *a, const Arith *b);

// Questions ----------------------------------------------------------------------
// All are sound: true means proved; false means not proved.

bool arith_is_const(const Arith *a, int64_t *value); // value may be NULL
bool arith_nonneg(ArithCtx *ctx, const Arith *a);    // a >= 0
bool arith_le(ArithCtx *ctx, const Arith *a, const Arith *b);
bool arith_lt(ArithCtx *ctx, const Arith *a, const Arith *b);
bool arith_equal(ArithCtx *ctx, const Arith *a, const Arith *b); // a - b folds to 0
// Constant bounds, inclusive; INT64_MIN and INT64_MAX where there is none.
void arith_range(ArithCtx *ctx, const Arith *a, int64_t *lo, int64_t *hi);
// A symbolic lower bound of a in which none of the n variables occurs, by replacing each by
// the end of its range that bounds a; NULL if that is not found.
const Arith *arith_lower_bound(ArithCtx *ctx, const Arith *a, const Arith *const *var,
                               int n);
int64_t arith_multiple(ArithCtx *ctx,
                       const Arith *a); // a is a multiple of this; 0 if a is 0
bool arith_mentions(const Arith *a, const Arith *var);
// What it is at most, by the constant bounds of its variables alone; INT64_MAX: not known.
int64_t arith_most(const Arith *a);
// The nodes of a written out as a tree, which may be far more than there are in memory;
// INT_MAX from there on.
int arith_parts(const ArithCtx *ctx, const Arith *a);

// Facts: things known where we are (inside a guard), used by every question and
// simplification until the facts are reset.
void arith_assume(ArithCtx *ctx, const Arith *a); // a >= 0
int arith_facts(const ArithCtx *ctx);             // how many are held
void arith_facts_reset(ArithCtx *ctx, int count);

// Rebuilding ---------------------------------------------------------------------

// Replaces var by value everywhere (not in the bounds of other variables) and
// simplifies again under the facts of now.
const Arith *arith_subst(ArithCtx *ctx, const Arith *a, const Arith *var,
                         const Arith *value);
const Arith *arith_simplify(ArithCtx *ctx, const Arith *a); // again, with the facts of now

// Value under an assignment; false on overflow, division by zero, or when lookup fails.
typedef bool ArithLookup(void *user, const Arith *var, int64_t *value);
bool arith_eval(const Arith *a, ArithLookup *lookup, void *user, int64_t *value);

// True once any constant left the range of int64_t in this context; the expression
// then made is arbitrary. Cleared by reading.
bool arith_overflowed(ArithCtx *ctx);

void arith_print(Buf *out, const Arith *a); // as in the language: `2*i + (N - 1)/4`
const char *arith_text(const Arith *a, Arena *arena); // the same; owner: arena
// Reads what arith_print writes; unknown names become sizes. NULL on a syntax error.
const Arith *arith_parse(ArithCtx *ctx, const char *text);

#endif
