// SPDX-License-Identifier: Apache-2.0
//
// infer: what the two halves of type inference (expressions, patterns) share; only they
// include it.

#ifndef FW_INFER_H
#define FW_INFER_H

#include "ir/ir.h"

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
} Infer;

// Sets expr->type; NULL after an error that has been reported. A literal takes the type
// wanted (which may be NULL) where it can; nothing else is converted.
const Type *infer_expr(Infer *in, Expr *expr, const Type *want);
// The type of a pattern, whose arguments and function it infers.
const Type *infer_pattern(Infer *in, Expr *expr, const Type *want);
// Made of number literals alone, so that its type may follow its surroundings.
bool infer_adapts(const Expr *expr);

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

#endif
