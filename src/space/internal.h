// SPDX-License-Identifier: Apache-2.0
//
// What the files of this folder share: compiled constraints, components as decision
// diagrams, and the space that holds both. Only these files and their test include it.

#ifndef FW_SPACE_INTERNAL_H
#define FW_SPACE_INTERNAL_H

#include "space/space.h"

// token.c -----------------------------------------------------------------------------

typedef enum { T_END, T_NUMBER, T_NAME, T_WORD, T_SIGN } TokenKind;

typedef struct {
    TokenKind kind;
    const char *text;
    int len;
} ConstraintToken;

ConstraintToken token_at(const char *text); // the first, which begins there

// constraint.c, evaluate.c ------------------------------------------------------

// Binary operators on doubles a and b. NaN is poison: a division by zero yields it, every
// operator passes it on, and a constraint that ends in it is false; && and || look at
// their right side only where they would evaluate it in C.
#define CONSTRAINT_BINARY(X)                                                               \
    X(ADD, a + b)                                                                          \
    X(SUB, a - b)                                                                          \
    X(MUL, a *b)                                                                           \
    X(DIV, b == 0 ? NAN : a / b)                                                           \
    X(FLOORDIV, b == 0 ? NAN : floor_fast(a / b))                                          \
    X(MOD, modulo(a, b))                                                                   \
    X(POW, pow(a, b))                                                                      \
    X(MIN, isunordered(a, b) ? NAN : MIN(a, b))                                            \
    X(MAX, isunordered(a, b) ? NAN : MAX(a, b))                                            \
    X(LT, isunordered(a, b) ? NAN : a < b)                                                 \
    X(LE, isunordered(a, b) ? NAN : a <= b)                                                \
    X(GT, isunordered(a, b) ? NAN : a > b)                                                 \
    X(GE, isunordered(a, b) ? NAN : a >= b)                                                \
    X(EQ, isunordered(a, b) ? NAN : a == b)                                                \
    X(NE, isunordered(a, b) ? NAN : a != b)                                                \
    X(BITAND, bits_of(a, b, '&'))                                                          \
    X(BITOR, bits_of(a, b, '|'))                                                           \
    X(BITXOR, bits_of(a, b, '^'))                                                          \
    X(SHL, bits_of(a, b, '<'))                                                             \
    X(SHR, bits_of(a, b, '>'))                                                             \
    X(AND, isnan(a) ? a : a == 0 ? 0 : isnan(b) ? b : b != 0)                              \
    X(OR, isnan(a) ? a : a != 0 ? 1 : isnan(b) ? b : b != 0)                               \
    X(BOTH, isnan(a) || a == 0 ? a : b)                                                    \
    X(EITHER, isnan(a) || a != 0 ? a : b)

// Operators on one double. Rounding is to the nearest even, as Python's.
#define CONSTRAINT_UNARY(X)                                                                \
    X(NEG, -a)                                                                             \
    X(NOT, isnan(a) ? a : a == 0)                                                          \
    X(ABS, fabs(a))                                                                        \
    X(INT, trunc(a))                                                                       \
    X(ROUND, nearbyint(a))                                                                 \
    X(CEIL, ceil(a))                                                                       \
    X(FLOOR, floor(a))                                                                     \
    X(SQRT, a < 0 ? NAN : sqrt(a))                                                         \
    X(LOG2, a > 0 ? log2(a) : NAN)                                                         \
    X(LOG10, a > 0 ? log10(a) : NAN)                                                       \
    X(LOG, a > 0 ? log(a) : NAN)                                                           \
    X(BITNOT, bits_of(-1, a, '^'))

// SELECT takes `a`, the condition, `b`: a where the condition holds, else b.
typedef enum {
    OP_NUMBER,
    OP_PARAM,
#define X(id, expression) OP_##id,
    CONSTRAINT_UNARY(X) OP_UNARY_END,
    CONSTRAINT_BINARY(X)
#undef X
        OP_SELECT,
} ConstraintOp;

static inline bool is_unary(ConstraintOp op)
{
    return op > OP_PARAM && op < OP_UNARY_END;
}

static inline int arity(ConstraintOp op)
{
    return op == OP_NUMBER || op == OP_PARAM ? 0
           : is_unary(op)                    ? 1
           : op == OP_SELECT                 ? 3
                                             : 2;
}

typedef struct {
    ConstraintOp op;
    int param; // of a number how it was written: VALUE_WHOLE, ..
    double number;
} Code;

// A part of an expression, taken out of the code.
typedef struct {
    Code *code;
    int n;
} Snippet;

// A relation, with the choices of its parameters by the numbers that constraints see.
typedef struct {
    SpaceRelation is;
    const struct NumberedChoice {
        double number;
        int choice;
    } * choice[COUNTOF(((SpaceRelation *)0)->param)]; // sorted
    int nchoice[COUNTOF(((SpaceRelation *)0)->param)];
} Relation;

// One conjunct, in postfix; or a relation, and its parameters as if they were code.
typedef struct {
    const Code *code;
    int ncode;
    uint64_t params; // bits of the parameters it reads
    const Relation *relation;
    int text; // it is part of this one of Space.texts
} Constraint;

enum { LANES = 64, CONSTRAINT_STACK = 32, CONSTRAINT_CODE = 1024 };

// Values a constraint may take while some parameters are still free.
typedef struct {
    double lo, hi;
    bool poison; // or it may be poison
} ValueRange;
typedef enum { ALWAYS_FALSE, ALWAYS_TRUE, UNDECIDED } Verdict;

// Appends the conjuncts of a part of a source to the space; with `whole` it is kept there
// instead, in one piece.
bool constraint_parse(Space *space, Span span, Constraint *whole, Diags *diags);

// Reads a list by itself, which is all of the text; how many items, or -1 with diagnostics.
int constraint_items(Space *space, Span span, Snippet **item, Diags *diags);

// A copy of code in the space; and its conjuncts as constraints of the space.
Constraint constraint_of(Space *space, const Code *code, int n);
void constraint_add(Space *space, const Code *code, int n);

// Where the operand that ends before `end` begins in postfix code.
int constraint_operand(const Code *code, int end);

// Evaluates for n <= LANES values of parameter `varied` at once; value[p] is the number of
// every other one. out[i] is 0 or NaN where the constraint is false.
void constraint_eval(const Constraint *constraint, const double *value, int varied,
                     const double *lane, int n, double *out);
bool constraint_holds(const Constraint *constraint, const double *value);
// What follows from a range of every parameter alone.
ValueRange constraint_range(const Constraint *constraint, const ValueRange *param);
Verdict constraint_decide(const Constraint *constraint, const ValueRange *param);

// memo.c ------------------------------------------------------------------------------

enum { MEMO_PARTS = 96 };
#define NODE_FREE (UINT32_MAX - 1) // not a node: nothing is known

// A bound part of open constraints; checks are the bits of these.
typedef struct {
    Constraint expression;
    uint64_t checks;
} MemoPart;

typedef struct {
    int npart;
    MemoPart *part; // heap
    uint64_t *word; // keys, 1 + npart words each; heap
    uint32_t *node; // NODE_FREE: a free slot; heap
    size_t len, cap;
    int64_t lookups, hits;
    bool off;
} SpaceMemo;

typedef struct {
    uint64_t word[1 + MEMO_PARTS];
} SpaceMemoKey;

// Adds a constraint to what the nodes depend on; bound are bits of parameters.
void memo_watch(SpaceMemo *memo, const Constraint *constraint, uint64_t bit,
                uint64_t bound);
// False if the table is off.
bool memo_key(const SpaceMemo *memo, uint64_t open, const double *value, SpaceMemoKey *key);
uint32_t memo_get(SpaceMemo *memo, const SpaceMemoKey *key); // NODE_FREE if unknown
void memo_put(SpaceMemo *memo, const SpaceMemoKey *key, uint32_t node);
void memo_release(SpaceMemo *memo);

// component.c ---------------------------------------------------------------------

// Counts are doubles: exact as far as this, which is as far as points have numbers.
#define COUNT_EXACT 0x1p53

typedef struct {
    double before; // points under the edges to the left
    uint32_t child;
    int32_t choice;
} Edge;

typedef struct {
    double count;  // points below
    uint32_t edge; // the first of n, by choice
    int32_t n;
} Node;

// The valid assignments of parameters that share constraints, as a decision diagram:
// one level a parameter, equal subtrees shared.
typedef struct {
    int nparam;
    int param[SPACE_PARAMS_MAX]; // by depth
    Node *node;                  // heap; node[0] is the end, below the last level
    Edge *edge;                  // heap
    uint32_t root;
    double count;
} Component;

// The parameters are those of the mask. False with a diagnostic if it grows too large.
bool component_build(Component *component, const Space *space, uint64_t params,
                     Diags *diags);
// The same of exactly the points listed, over all parameters; points are sorted by choices.
bool component_build_list(Component *component, const Space *space, const Point *point,
                          int n, Diags *diags);
bool component_has(const Component *component, const Point *point);
void component_release(Component *component);
void component_point(const Component *component, uint64_t number, Point *point);
void component_sample(const Component *component, Rng *rng, Point *point); // uniform
uint64_t component_number(const Component *component, const Point *point);

// space.c ---------------------------------------------------------------------------

struct SpaceExpr {
    Constraint code;
};

typedef struct {
    SpaceParam shown;
    const double *number; // what constraints see; a word is its interned number
    ValueRange range;
} ParamRow;

struct Space {
    Arena *arena;
    int nparam;
    ParamRow param[SPACE_PARAMS_MAX];
    Map words;                    // word to interned number
    Map names;                    // defined name to its number
    VEC(const char *) word_texts; // by their numbers
    VEC(const char *) texts;      // constraints as given
    VEC(Constraint) constraints;
    VEC(const Relation *) relations;
    bool built, empty; // empty: a constraint without parameters is false
    bool listed;       // only the points of the list are valid
    VEC(Point) list;   // sorted by choices, none twice
    int ncomponent;
    Component component[SPACE_PARAMS_MAX];
};

// The interned number of a word; known says whether it was there before.
double space_intern(Space *space, const char *word, bool *known);
// The number of each parameter as constraints see it.
void space_numbers(const Space *space, const Point *point, double *value);

#endif
