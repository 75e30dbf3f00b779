// SPDX-License-Identifier: Apache-2.0
//
// interp: what the two halves of the interpreter (evaluation, views) share.

#ifndef FW_INTERP_H
#define FW_INTERP_H

#include "ir/ir.h"

#include <setjmp.h>

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

#endif
