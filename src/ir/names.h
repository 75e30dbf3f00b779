// SPDX-License-Identifier: Apache-2.0
//
// names: which words the language itself uses, and what they mean. Shared by the parser
// and the printer; it does not know what a text declares.

#ifndef FW_IR_NAMES_H
#define FW_IR_NAMES_H

#include "ir/ir.h"
#include "ir/lex.h"

typedef struct {
    Pattern pattern;
    int dims, par;
} PatternWord;

bool name_is_pattern(const char *name, PatternWord *word); // `slide2`, `mapGlb0`
void pattern_print_name(Buf *out, Pattern pattern, int dims, int par);
bool name_is_op(const char *name, Op *op); // of those written as calls, but not `if`
bool name_is_infix(const char *text, Op *op);

// How tightly expressions bind, loosest first.
enum {
    LEVEL_ANY, // pipes, let, if
    LEVEL_OR,
    LEVEL_AND,
    LEVEL_COMPARE,
    LEVEL_BITOR,
    LEVEL_BITXOR,
    LEVEL_BITAND,
    LEVEL_SHIFT,
    LEVEL_SUM,
    LEVEL_PRODUCT,
    LEVEL_PREFIX,
    LEVEL_POSTFIX,
};
int op_level(Op op);                            // of an infix operation
const Type *name_is_type(const char *name);     // a scalar or vector type, or NULL
bool name_is_mode(const char *name, int *mode); // clamp, mirror, wrap
// True if the word belongs to the language, so that nothing else may be called so.
bool name_is_reserved(const char *name);

// To "did you mean": every pattern and operation.
void guess_offer_words(Guess *guess);

#endif
