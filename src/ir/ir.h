// SPDX-License-Identifier: Apache-2.0
//
// ir: the functional language: types, expressions, the tables of patterns and of
// scalar operations, parser, printer, type inference, verifier, interpreter.
//
//   source  the Lift IR (paper 000, section 3.2; Steuwer et al., CGO 2017) as text
//
// High-level and lowered programs are the same language: lowering (rewriting) only
// replaces `map` by mapGlb, mapSeq, ... and adds toLocal and friends.
// It does not know of kernels, devices or memory layout.

#ifndef FW_IR_H
#define FW_IR_H

#include "arith/arith.h"
#include "base/base.h"

// Types -------------------------------------------------------------------------

typedef enum {
#define SCALAR(id, ...) S_##id,
#include "ir/scalars.def"
#undef SCALAR
    SCALARS
} Scalar;
typedef enum { SCALAR_BOOL, SCALAR_SIGNED, SCALAR_UNSIGNED, SCALAR_FLOAT } ScalarKind;

typedef enum { T_SCALAR, T_VECTOR, T_TUPLE, T_ARRAY } TypeKind;

typedef struct Type Type;
struct Type {
    TypeKind kind;
    Scalar scalar;           // SCALAR, VECTOR; SCALARS: one that a def leaves open
    int width;               // VECTOR: 2, 4 or 8
    const Arith *len;        // ARRAY
    const Type *elem;        // ARRAY
    int n;                   // TUPLE
    int leaves;              // TUPLE: scalars and vectors in all, INT_MAX from there on
    const Type *const *item; // TUPLE
    const char *name;        // SCALAR that is open: as the def calls it
};

// A row of ir/scalars.def, which says what the columns are.
typedef struct {
    const char *name;
    ScalarKind kind;
    int bytes, digits;
    const char *dtype, *opencl, *c;
    Scalar vectors;
    bool floating, integer; // the kind's
} ScalarInfo;
extern const ScalarInfo scalar_info[SCALARS];
// In which the values of a type are folded by key: processors update no less than 4 bytes.
Scalar scalar_word(Scalar scalar);
bool scalar_is_short(Scalar scalar); // a floating type of 2 bytes?

// Operations and patterns ----------------------------------------------------------

typedef enum { FORM_INFIX, FORM_PREFIX, FORM_CALL } OpForm;
typedef enum {
    TY_ARITH,
    TY_INTEGER,
    TY_FLOAT,
    TY_COMP,
    TY_LOGIC,
    TY_CAST,
    TY_SELECT,
} OpTypes;
typedef enum { OPK_FREE, OPK_ADD, OPK_MUL, OPK_DIV, OPK_EXP, OPK_SPECIAL } OpKind;

typedef enum {
#define OP(id, text, args, form, types, kind, value, doc) OP_##id,
#include "ir/ops.def"
#undef OP
    OPS
} Op;

typedef struct {
    const char *text;
    int args;
    OpForm form;
    OpTypes types;
    OpKind kind;
    const char *doc;
} OpInfo;
extern const OpInfo op_info[OPS];
Op op_cast(Scalar to); // the conversion to a type

typedef enum { G_ALGO, G_VIEW, G_PAR, G_SEQ, G_MEM } PatternGroup;
typedef enum { SUFFIX_NONE, SUFFIX_DIMS, SUFFIX_PAR } PatternSuffix;

typedef enum {
#define PATTERN(id, text, group, fun, num, data, suffix, doc) P_##id,
#include "ir/patterns.def"
#undef PATTERN
    PATTERNS
} Pattern;

typedef struct {
    const char *text;
    PatternGroup group;
    int fun, num, data;
    PatternSuffix suffix;
    const char *doc;
} PatternInfo;
extern const PatternInfo pattern_info[PATTERNS];

// PAD_UNREAD: elements on which nothing depends, whichever are cheapest to read.
typedef enum { PAD_CLAMP, PAD_MIRROR, PAD_WRAP, PAD_UNREAD, PAD_CONSTANT } PadMode;
extern const char *const pad_mode_name[PAD_CONSTANT]; // clamp, mirror, wrap, unread

// Expressions ------------------------------------------------------------------------

typedef enum {
    E_LITERAL, // number; floating says how it was written (1 or 1.0); type from context
    E_PARAM,   // param
    E_NUM,     // num[0]: a symbolic integer used as an int value
    E_OP,      // op applied to arg[0..narg)
    E_CALL,    // callee (a fun or a def) applied to arg[0..narg)
    E_LET,     // let param = arg[0] in arg[1]
    E_TUPLE,   // arg[0..narg)
    E_GET,     // component `index` of arg[0]: written e.0
    E_AT,      // arg[0][arg[1]]
    E_LAMBDA,  // \params -> arg[0]; only as the function of a pattern
    E_PATTERN, // pattern with dims/par, num[], mode, fun, arg[] (the array argument last)
} ExprKind;

typedef struct Expr Expr;
typedef struct Function Function;

// A name bound by a lambda, a let, or a definition's parameter list.
typedef struct Param {
    const char *name;
    const Type *type; // of a lambda's or let's: set by inference
    Span span;
    uint32_t id; // unique in its Ir
} Param;

enum { DIMS_MAX = 3, NUMS_MAX = 2 * DIMS_MAX };

typedef struct FoldLaw FoldLaw;
struct Expr {
    ExprKind kind;
    Span span;
    const Type *type; // set by inference; NULL for lambdas
    double number;    // LITERAL
    bool floating;    // LITERAL
    bool boolean;     // LITERAL: true or false
    Param *param;     // PARAM, LET
    Op op;            // OP
    Function *callee; // CALL
    int index;        // GET
    Pattern pattern;  // PATTERN
    int dims;         // PATTERN with suffix DIMS: 1 to 3, else 1
    int par;          // PATTERN with suffix PAR: 0 to 2
    PadMode mode;     // PAD; PAD_CONSTANT: arg[0] is the constant, arg[1] the array
    int nnum; // PATTERN: dims * pattern_info.num; group by dimension, outermost first
    const Arith *num[NUMS_MAX];
    Expr *fun;  // PATTERN: a LAMBDA, or NULL
    int nparam; // LAMBDA
    Param **params;
    const FoldLaw *law; // LAMBDA of a fold: what is known of it (rewrite/laws.c), or NULL
    bool turns; // LAMBDA of gather or scatter: it turns the array round; by inference
    int narg;
    Expr **arg;
};

// A length or a scalar type that a def leaves open: A and t of `def f[A, t](a: [A]t)`.
typedef struct {
    const char *name;
    const Arith *size; // NULL: it is a type
    const Type *type;  // of scalars, open
    Function *convert; // what its name does as a function
} OpenName;

// A `fun` (scalars to a scalar, kept as a function in the kernel) or a `def` (arrays;
// inlined where it is called).
struct Function {
    const char *name;
    Span span;
    bool is_def;
    int ngeneric; // more than 0: calls have copies of it, of their lengths and types
    OpenName *generic;
    int nparam;
    Param **params;     // with their declared types
    const Type *result; // declared; NULL for a def without one until inference
    Expr *body;         // NULL if opaque
    const char *text;   // opaque: C statements, ending in a return
    int flops;          // opaque: declared cost
    double operations;  // set by inference: of the body, and of the funs that it calls
};

// What a size may be: from low to high, a multiple of a number.
typedef struct {
    int64_t low, high, multiple;
} SizeRange;
extern const SizeRange size_any; // 1 to 2^31 - 1
bool size_within(const SizeRange *range, int64_t value);
// Moves the ends to multiples within; false if none is left, or one is no size.
bool size_range_settle(SizeRange *range);
// The size that is a part of the way through the range, from 0 to 1, by ratios.
int64_t size_at(const SizeRange *range, double part);
void size_range_print(Buf *out, const SizeRange *range); // "1..65536 multiple 4"

typedef struct {
    const char *name;
    const Arith *arith;
    Span span;
    bool generic;    // stays a kernel argument
    SizeRange range; // of a generic one
    int64_t usual;   // the value that a generic one is tuned for; 0: none
} SizeDecl;

// Everything of one parsed text lives in its arena and arithmetic context.
typedef struct {
    Arena *arena;
    ArithCtx *arith;
    uint32_t next_id;
} Ir;

typedef enum {
#define MATH(id, text, help) MATH_##id,
#include "ir/math.def"
#undef MATH
    MATHS
} Math;
typedef struct {
    const char *text, *help;
} MathInfo;
extern const MathInfo math_info[MATHS];
// Whether an operation on floating numbers has one right result, to the bit: it is rounded
// correctly, or not at all.
bool op_is_rounded(Op op);
// + * min max: the order of several does not matter but for rounding, and work-items can
// each update a number in memory by one (emit/update.c).
bool op_updates(Op op);
bool op_joins(Op op); // those, && and ||: associative and commutative, of one type
// False, and nothing set, if no row has that text.
bool math_find(const char *text, Math *math);

// Ways to run a program that its space has only where they are asked for.
typedef enum {
#define EXTRA(id, text, help) EXTRA_##id,
#include "ir/extras.def"
#undef EXTRA
    EXTRAS
} Extra;
extern const char *const extra_text[EXTRAS];

typedef struct {
    Ir *ir;
    const Source *source;
    Math math;      // not said in the text: the user's choice
    unsigned extra; // likewise: a bit each of Extra
    bool generic;   // bound to numbers, with generic sizes among them
    VEC(SizeDecl) sizes;
    VEC(Function *) funs; // in order of declaration
    VEC(Function *) defs;
    VEC(Function *) generics; // defs with lengths or types left open
    Function *main;           // the last def
    // Conditions collected by inference that sizes must satisfy: lhs mod rhs == 0, or
    // lhs >= 0 when rhs is NULL; checked when sizes are bound.
    VEC(struct Condition) conditions;
} Program;

typedef struct Condition {
    const Arith *lhs, *rhs;
    Span span;
    const char *why; // "split(64) needs a length divisible by 64"
} Condition;

// type.c -----------------------------------------------------------------------------

Ir *ir_new(void); // owner: the caller, ir_free
void ir_free(Ir *ir);

// What is made after a mark is dropped by the release, so that a search over many
// candidates does not grow. Needs: marks are released in reverse order.
typedef struct {
    ArithMark arith;
    ArenaMark arena;
} IrMark;
IrMark ir_mark(const Ir *ir);
void ir_release(Ir *ir, IrMark mark);

const Type *type_scalar(Scalar scalar);
const Type *type_vector(Scalar scalar, int width);
const Type *type_open(Arena *arena, const char *name); // a scalar type that is left open
const Type *type_tuple(Arena *arena, const Type *const *item, int n);
const Type *type_array(Arena *arena, const Arith *len, const Type *elem);
bool type_equal(ArithCtx *ctx, const Type *a, const Type *b);
bool type_is_scalar(const Type *type); // SCALAR or VECTOR: held in one register
bool type_is_float(const Type *type);
bool type_is_integer(const Type *type);      // a scalar or vector of integers
bool type_holds_array(const Type *type);     // is one, or has one in a tuple
void type_print(Buf *out, const Type *type); // `[N][M]float`, `(float, int)`, `float4`
const char *type_text(const Type *type, Arena *arena); // the same; owner: arena
// Scalars and vectors of the tuples in a type: one tuple of pairs of pairs may hold more
// than can be walked.
int type_leaves(const Type *type);
// Pieces of at most 32 bits in a scalar, or in a tuple of tuples and scalars.
int type_pieces(const Type *type);
// Scalars in a value of this type, all tuple components together.
const Arith *type_count(ArithCtx *ctx, const Type *type);
// The bytes of a value with those lengths; of NULL: with the most that each may be.
typedef int64_t LengthOf(const void *user, const Arith *len);
double type_bytes(const Type *type, LengthOf *length, const void *user);
int type_depth(const Type *type);                   // array levels
const Type *type_elem(const Type *type, int depth); // strips depth array levels
const Type *type_leaf(const Type *type);            // below all array levels
const Type *type_tuple_of(const Type *type);        // the same; NULL if it is no tuple
// The type of one component of a tuple, or of arrays of tuples.
const Type *type_field(Arena *arena, const Type *type, int field);

// expr.c: constructors, used by the parser and by rewriting -------------------------------

Param *param_new(Ir *ir, const char *name, const Type *type);
Expr *expr_new(Ir *ir, ExprKind kind, Span span);
Expr *expr_param(Ir *ir, Param *param);
Expr *expr_literal(Ir *ir, double number, bool floating);
Expr *expr_num(Ir *ir, const Arith *num);
Expr *expr_op(Ir *ir, Op op, Expr *a, Expr *b, Expr *c); // b, c may be NULL
Expr *expr_get(Ir *ir, Expr *tuple, int index);
Expr *expr_at(Ir *ir, Expr *array, Expr *index);
Expr *expr_let(Ir *ir, Param *param, Expr *value, Expr *body);
Expr *expr_tuple(Ir *ir, Expr **item, int n);
Expr *expr_lambda(Ir *ir, Param **params, int n, Expr *body);
// A pattern with no, one function and any arguments; nums may be NULL.
Expr *expr_pattern(Ir *ir, Pattern pattern, int dims, int par, const Arith *const *nums,
                   Expr *fun, Expr **arg, int narg);
// A deep copy with fresh params for everything bound inside; needed before one tree is
// used in two places.
Expr *expr_clone(Ir *ir, const Expr *expr);
// A deep copy in which free occurrences of param are replaced by (clones of) value.
Expr *expr_replace(Ir *ir, const Expr *expr, const Param *param, const Expr *value);
// The same of n params at once; no value mentions one of them.
Expr *expr_replace_all(Ir *ir, const Expr *expr, Param *const *param,
                       const Expr *const *value, int n);
uint64_t expr_hash(const Expr *expr);          // up to names of bound params
bool expr_equal(const Expr *a, const Expr *b); // likewise
// Whether something holds of an expression; of: what it is asked with.
typedef bool ExprTest(const Expr *expr, const void *of);
// The first of the expression and those in it that it holds of, each before its function
// and arguments; NULL: there is none. How many there are.
const Expr *expr_find(const Expr *expr, ExprTest *holds, const void *of);
// Is a number of this type among a function's parameters, its result and the values of its
// body? Those of the functions that it calls are not looked at.
bool function_uses(const Function *function, Scalar scalar);
const Expr *expr_find_pattern(const Expr *expr, Pattern pattern);
// Does it hold of the expression or of one in it, but for those in functions?
bool expr_any_here(const Expr *expr, ExprTest *holds, const void *of);
int expr_count(const Expr *expr, ExprTest *holds, const void *of);
// Is it a call of a function that holds such an expression, or that has no body?
bool expr_calls(const Expr *expr, ExprTest *holds, const void *of);
// In that order, too.
void expr_each(const Expr *expr, void (*visit)(const Expr *expr, void *user), void *user);
// In place: components of tuples that are written out become what these have there.
Expr *expr_project(Expr *expr);
bool expr_is(const Expr *expr, Pattern pattern);          // in any number of dimensions
bool expr_in_group(const Expr *expr, PatternGroup group); // is it a pattern of that group?
bool expr_is_op(const Expr *expr, Op op);
// What a conversion to float is of; S_FLOAT: it is none.
Scalar expr_converted(const Expr *e);
bool expr_is_use(const Expr *expr, const void *param);
bool expr_is_at(const Expr *expr, const void *none);  // an element of an array
bool expr_binds(const Expr *expr, const void *param); // a let or a lambda
bool expr_mentions_any(const Expr *expr, const Param *const *param, int n);
// reads.c
// A reduction, of not fewer elements than that as far as is known?
bool fold_is_long(const Expr *expr, int64_t least);
bool scan_is_long(const Expr *expr, int64_t least);     // the same of a prefix
bool nest_is_long(const Expr *expr, int64_t least);     // of either
bool is_long_nest(const Expr *expr, const void *least); // for expr_find: of an int64_t
// One of them, or a fold by key; likewise.
bool is_nest(const Expr *expr, const void *none);
// One of them, an operation or a call; likewise.
bool is_work(const Expr *expr, const void *none);
bool makes_array(const Expr *expr); // by computing, not in another layout
// Is what a name stands for read in windows, by columns or for each element of something
// else?
bool is_read_again(const Expr *expr, const Param *name);
// The component of the element that an expression is; -1: all of it, -2: something else.
int element_component(const Expr *expr, const Param *elem);
// What is around an expression in a function: does something read its elements,
// with folds of its own, and again and again? costly: the expression has folds or prefixes;
// map: a map of the zip that it is; looks: how many expressions may still be looked at, as
// names of names are read in many ways.
typedef struct {
    bool reads, nests, again, costly;
    const Expr *map;
    int *looks;
} ReadBy;

enum { LOOKS_MOST = 100000 };

ReadBy around_arg(const Expr *expr, int i, ReadBy around); // around argument i
// Does it use component k of the element, or all of it? k < 0: any of it.
bool uses_component(const Expr *expr, const Param *elem, int k);
// Does a function of two give the same if they change places? Read off its text: true is
// certain.
bool expr_commutes(const Expr *f);
// Is it a view through which values can be written, by the inverse of its index function?
bool view_inverts(const Expr *view);
// Is the index n - 1 - i, as of an array of n elements that is turned round?
bool expr_turns(ArithCtx *ctx, const Expr *index, const Param *i, const Arith *n);
const Expr *expr_behind_lets(const Expr *expr); // what follows all of them
const Expr *expr_behind_gets(const Expr *expr); // what they take components of
// What each step of a loop adds to component i of its state, or takes off, as *op says: a
// literal or a size. NULL: it does something else.
const Expr *expr_added(const Expr *iterate, int i, Op *op);
bool expr_guards(const Expr *expr,
                 int arg); // is that argument computed only if others say so?
bool expr_mentions(const Expr *expr, const Param *param);
// Whether an operation compares floating numbers of this type, or makes whole ones of them:
// a small difference may then make a large one; whether an expression has such a one.
// Functions without a body may.
bool op_decides(Op op, const Type *arg);
bool expr_decides(const Expr *expr);
// Whether a fold or a prefix multiplies floating numbers: the product of some of them may
// be beyond all numbers where that of all is not.
bool expr_multiplies(const Expr *fold);
// Terms of the longest fold, folds of folds being one; 1: there is none. As long as they
// are known to be, or as length says.
int64_t expr_fold_terms(const Expr *expr);
int64_t expr_fold_terms_by(const Expr *expr, LengthOf *length, const void *user);
int expr_uses(const Expr *expr, const Param *param); // up to 2; under a lambda as 2
int expr_uses_item(const Expr *expr, const Param *param, int item); // of a tuple

// parse.c, print.c ---------------------------------------------------------------------

// The program, or NULL with diagnostics. Owner: ir. Names are resolved; types are not
// inferred. The source must outlive the program.
Program *ir_parse(Ir *ir, const Source *source, Diags *diags);
// In the language; parsing the result gives the same program (spans apart).
void ir_print(Buf *out, const Program *program);
void expr_print(Buf *out, const Expr *expr); // one line unless it is wide

// infer.c ------------------------------------------------------------------------------

// Sets every type, inlines calls of defs, turns function names into lambdas, and collects
// conditions; false with diagnostics. May be run again after rewriting.
bool ir_infer(Program *program, Diags *diags);
// A copy of the program with the named sizes replaced by constants, inferred again; NULL
// with diagnostics if a size is unknown, unbound (and not generic), not positive, or a
// condition fails, or an array would exceed 2^40 elements.
typedef struct {
    const char *name;
    int64_t value;   // 0: none, only a range
    SizeRange range; // makes the size generic in this range; high 0: it does not
    bool spans;      // stands for the whole range; the value is one of it
} Binding;
// "N=4096", "N=4096@1024:16384", "N=1024:16384:64": a value, a value in a range, a range
// of multiples of 64. False: the text is none; the name is the arena's.
bool binding_parse(const char *text, Arena *arena, Binding *binding);
void binding_print(Buf *out, const Binding *binding);
const Binding *binding_find(const Binding *at, int n, const char *name); // NULL: none
// The sizes that it is for: multiples, too, of what the program declares. low > high: none.
SizeRange binding_span(const Program *program, const Binding *binding);
Program *ir_bind(const Program *program, const Binding *binding, int n, Diags *diags);
// The same, with sizes that have no value left as they are.
Program *ir_bind_some(const Program *program, const Binding *binding, int n, Diags *diags);
// The same, with generic sizes left open, whose values are checked only.
Program *ir_bind_open(const Program *program, const Binding *binding, int n, Diags *diags);
// Infers the type of a (lowered) expression whose free params have types.
bool ir_infer_expr(Ir *ir, Expr *expr, Diags *diags);

// interp.c: the meaning of the language --------------------------------------------------

// An array value is stored structure-of-arrays: one flat row-major plane for each scalar
// component of the tuple tree (left to right), all extents equal to those of the arrays
// around it. Planes hold doubles already rounded to the component's scalar type.
typedef struct {
    const Type *type; // lengths constant
    int nplane;
    double **plane;
    int64_t *count; // scalars in each plane
    Scalar *scalar; // type of each plane
} Value;

Value *value_new(Arena *arena, const Type *type); // zero
// Seeded normal-looking data: floats uniform in [0.5, 1.5), ints in [0, 8), bools; each is
// exact in its type. Every RANDOM_CHUNK numbers of a plane have a generator of their own,
// seeded by random_seed of the first, so that threads can share the work.
enum { RANDOM_CHUNK = 4096 };
void value_random(Value *value, uint64_t seed);
enum { INTS_USUAL = 8 }; // integers are below
double scalar_random(Rng *rng, Scalar scalar);
static inline uint64_t random_seed(uint64_t seed, int plane, int64_t first)
{
    return hash_mix(hash_mix(seed, (uint64_t)plane), (uint64_t)first);
}
// To the nearest value of the type; of integers toward zero, not-a-number as 0.
double scalar_round(Scalar scalar, double x);
// The bits of a number that is a value of the type, and the number of bits. Of integers of
// 64 bits, those beyond 2^53 lose their last bits.
uint64_t scalar_bits(Scalar scalar, double x);
double scalar_of_bits(Scalar scalar, uint64_t bits);

// Evaluates the program's main definition on its inputs (one Value a parameter, types
// equal); all sizes bound. Results live in arena. Counts into steps if it is not NULL.
// False with diagnostics: an index out of bounds, an opaque function, out of the quota
// (scalar operations; 0: none).
bool ir_eval(const Program *program, Value *const *inputs, Arena *arena, Value **result,
             int64_t quota, Diags *diags);

#endif
