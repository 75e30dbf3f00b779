// SPDX-License-Identifier: Apache-2.0
//
// Rules applied one after another: to an expression on its way, as text, and again.

#ifndef FW_REWRITER_REWRITER_H
#define FW_REWRITER_REWRITER_H

#include "rewrite/rewrite.h"

// Derivations -----------------------------------------------------------------------------

typedef struct {
    RuleId rule;
    RuleArgs args;
    Path path;
    Span span; // in the text it was read from
} RuleStep;

// Rule applications in order. The text has one a line, `rule(1, 2) @ 0.f.0`; empty lines
// and what follows // do not matter.
typedef struct {
    VEC(RuleStep) steps;
} Rewriting;

Rewriting *derivation_parse(Arena *arena, const Source *source, Diags *diags);
void derivation_print(Buf *out, const Rewriting *rewriting);
// The expression after all steps, inferred; the program is left alone. NULL with a
// diagnostic (R005 no such position, R006 the rule does not match there).
Expr *derivation_apply(const Program *program, const Rewriting *rewriting, Diags *diags);

// Strategies -----------------------------------------------------------------------------

// An expression on its way, and how it got there.
typedef struct {
    Ir *ir;
    Arena *arena; // of the steps
    Expr *expr;   // inferred
    Rewriting done;
    bool keeps;   // somebody may go back to an expression of before
    bool forgets; // how it got there is not asked for
} Rewriter;

// What may be gone back to: until its end, nothing of it is changed.
Rewriter rewriter_hold(Rewriter *r);
// Its end: goes back unless the steps since then stay. Returns whether they do.
bool rewriter_end(Rewriter *r, const Rewriter *held, bool stay);
// One that goes on from where another one is, which stays as it is.
Rewriter rewriter_again(const Rewriter *from);
// Needs: expr is inferred.
void rewriter_init(Rewriter *r, Ir *ir, Arena *arena, const Expr *expr);
// One rule at one position; false, and nothing changed, where it does not match.
bool rewriter_rule(Rewriter *r, const Path *path, RuleId rule, const RuleArgs *args);

// A rule without arguments at the first position from `at` down, outermost first, where it
// matches; false, and nothing changed, if there is none.
bool rewriter_first(Rewriter *r, const Path *at, RuleId rule);

#endif
