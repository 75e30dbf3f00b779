// SPDX-License-Identifier: Apache-2.0
//
// What the files of `ir` share.

#ifndef FW_IR_INTERNAL_H
#define FW_IR_INTERNAL_H

#include "ir/ir.h"
#include "ir/names.h"

#include <setjmp.h>

// parse: the two halves of the parser. parse.c has the state, sizes, types and
// declarations, parse_expr.c the expressions.

typedef struct {
    const char *name;
    Param *param;
    int component; // of the tuple the param holds, or -1: the param itself
    int within;    // component of the param that this tuple is, or -1: the param itself
} Local;

// What a name declared at the top of the text stands for: a size or a function.
typedef struct {
    const char *name;
    Span span;
    const Arith *size;
    Function *function;
    bool broken; // its declaration has errors: uses of it are not reported again
} Global;

typedef struct {
    Ir *ir;
    Diags *diags;
    Program *program;
    const Token *token; // all of them, an END last
    int at;
    bool failed;      // in this declaration; the rest of it then reads as an END
    int depth;        // of recursion
    Span size_start;  // of the size being read
    const char *self; // the function being declared
    bool in_fun;      // patterns and arrays are not allowed
    VEC(Local) local;
    VEC(OpenName) generic; // of this def
    VEC(Global *) globals;
    Map by_name; // the globals
} Parser;

// parse.c
FW_PRINTF(4, 5) void fail(Parser *p, Span span, const char *code, const char *format, ...);
const Token *look(const Parser *p); // the next token; an END after a failure
TokenKind look_after(const Parser *p);
Token take(Parser *p);
bool accept_token(Parser *p, TokenKind kind);
Token expect(Parser *p, TokenKind kind, const char *where);
void fail_expected(Parser *p, const char *what, const char *where);
Span span_since(const Parser *p, Span start); // up to the last token taken
// Around everything recursive; leave follows also when enter fails.
bool enter(Parser *p);
void leave(Parser *p);
Global *find_global(const Parser *p, const char *name);
void fail_unknown(Parser *p, const Token *name, bool sizes_only);
// A name for something new, not a word of the language.
Token take_new_name(Parser *p, const char *what);
const Arith *parse_size(Parser *p);
const Type *parse_type(Parser *p);

// parse_expr.c
Expr *parse_expr(Parser *p);

// infer: the two halves of type inference, of expressions and of patterns.

typedef struct {
    Ir *ir;
    Program *program; // NULL: a lone expression, conditions are not collected
    Diags *diags;
    VEC(const Function *) ready;  // inferred without error
    VEC(const Function *) failed; // inferred with an error: calls stay quiet
    int inlined;                  // expressions copied so far
    int depth;                    // of recursion
    bool too_deep;                // reported already
    int attempts;                 // to find the type of an initial value
    bool int_sizes; // sizes are ints wherever they stand, as in what is checked already
    bool converts;  // a size in this body is not an int
    bool spread;    // an initial value in this body has types found by infer_initial.c
} Infer;

// Sets expr->type; NULL after an error that has been reported. A literal takes the type
// wanted (which may be NULL) where it can; nothing else is converted.
const Type *infer_expr(Infer *in, Expr *expr, const Type *want);
// The type of a pattern, whose arguments and function it infers.
const Type *infer_pattern(Infer *in, Expr *expr, const Type *want);
// Applies the function of the pattern: its parameters get these types.
const Type *infer_apply(Infer *in, Expr *e, const Type *const *arg, const Type *want);

// What an inference does that says nothing of errors, and what it undoes.
typedef struct {
    Diags *said, diags;
    int conditions;
    bool too_deep, spread;
} Quiet;
void infer_quiet(Infer *in, Quiet *quiet);
// Again as before; kept: what it found holds.
void infer_aloud(Infer *in, const Quiet *quiet, bool kept);

// infer_literal.c

// Made of number literals alone, so that its type may follow its surroundings.
bool infer_adapts(const Expr *expr);
bool infer_has_floating(const Expr *expr);             // one of these literals has a dot
bool infer_follows(const Infer *in, const Expr *expr); // of sizes, too
// Made of sizes and number literals, with a size.
bool infer_of_sizes(const Infer *in, const Expr *expr);
// The same without a floating number: computed as int, and then converted as a whole.
bool infer_is_count(const Infer *in, const Expr *expr);
// What such a one is converted to where a type is wanted; NULL: it stays an int.
const Type *infer_count_type(const Type *want);

// These write down the types that inference would not find by itself: those of literals
// and counts that are a value, because a let wants nothing of its value;
Expr *infer_pin_value(Infer *in, Expr *expr);
Expr *infer_pin_counts(Infer *in, Expr *expr);
// those that literals have from what is declared, and those of initial values.
Expr *infer_pin_declared(Infer *in, Expr *body);
void infer_pin_initials(Infer *in, Expr *body);

// infer_initial.c: the type that is wanted of the initial value of a fold, and of the
// state that iterate begins with.
const Type *infer_accumulator_want(Infer *in, Expr *e, const Type *elem, const Type *want);
const Type *infer_state_want(Infer *in, Expr *e, const Type *want);

// generic.c: a call's lengths and types for what a def leaves open.
typedef struct {
    Ir *ir;
    const Function *of;
    const Arith **size; // of each; NULL: not known yet
    const Type **type;
} Instance;
Instance instance_new(Ir *ir, const Function *of);
// Learns from a parameter's type and that of the argument, as far as they are alike.
void instance_match(Instance *instance, const Type *param, const Type *argument);
// The type with what is known; NULL if something in it is not.
const Type *instance_type(const Instance *instance, const Type *type);
const char *instance_open(const Instance *instance); // what is not known; NULL: all is
// Its own copy of the def. Needs: all is known.
Function *instance_function(const Instance *instance);

static inline const char *infer_show(Infer *in, const Type *type)
{
    return type_text(type, in->ir->arena);
}

static inline const char *infer_show_arith(Infer *in, const Arith *arith)
{
    return arith_text(arith, in->ir->arena);
}

// interp: the two halves of the interpreter, evaluation and views.

typedef struct InterpView InterpView;
typedef struct Val Val;
typedef struct InterpEnv InterpEnv;

// A value of an expression; its type says which field counts.
struct Val {
    double number;          // SCALAR
    const Val *item;        // TUPLE, VECTOR
    const InterpView *view; // ARRAY
};

// The bindings around an expression, innermost first; immutable, so views may hold them.
struct InterpEnv {
    const Param *param;
    Val val;
    const InterpEnv *outer;
};

typedef enum {
    V_STRICT,    // numbers in memory
    V_PARTIAL,   // src with its first indices given
    V_FILL,      // an array of one value
    V_COMPONENT, // component of the tuples that are the elements of src
    V_PATTERN,   // a view pattern on src: an index function
} InterpViewKind;

enum { INDEX_MAX = 32 };

// An array as a function of its indices. Nothing is copied until it is stored.
struct InterpView {
    InterpViewKind kind;
    const InterpView *src;
    const Type *type;      // STRICT, FILL: of the array
    double *const *plane;  // STRICT: the first plane of this type
    int64_t offset;        // STRICT: linear index of the outer dimensions
    Val fill;              // FILL; PATTERN pad: the constant
    int component;         // COMPONENT
    const Expr *expr;      // PATTERN
    int arity;             // PATTERN, COMPONENT: indices it needs to answer
    int64_t num[NUMS_MAX]; // PATTERN: the pattern's numbers
    int64_t len[NUMS_MAX]; // PATTERN: lengths of src, outermost first
    const InterpView *const *zipped;
    const InterpEnv *env; // PATTERN gather: of its function
    int n;                // PARTIAL
    const int64_t *index;
};

typedef struct {
    Diags *diags;
    Arena *arena; // scratch: reset after every element of an array is stored
    int64_t steps, quota;
    jmp_buf failed;
} Interp;

// Reports and leaves the evaluation.
FW_NORETURN void interp_fail(Interp *in, Span span, const char *code, const char *format,
                             ...) FW_PRINTF(4, 5);
int64_t interp_num(Interp *in, const Expr *expr, const Arith *num);
void interp_step(Interp *in, const Expr *expr, int64_t n);
Val interp_eval(Interp *in, const Expr *expr, const InterpEnv *env);
Val interp_apply(Interp *in, const Expr *lambda, const Val *arg, const InterpEnv *env);

// The value of a type that lies at a linear index of planes.
Val val_load(Interp *in, const Type *type, double *const *plane, int64_t offset);
void val_store(Interp *in, const Type *type, Val val, double *const *plane, int64_t offset);
// The element (or array of elements, if indices remain) of a view at n indices.
Val view_at(Interp *in, const InterpView *view, const int64_t *index, int n);
// The value of a view pattern on evaluated arguments.
Val view_pattern(Interp *in, const Expr *expr, const Val *arg, const InterpEnv *env);

// nesting.c: do patterns of work-items stand where they can?
bool ir_check_nesting(const Function *main, Diags *diags);

#endif
