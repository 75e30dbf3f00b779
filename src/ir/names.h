// SPDX-License-Identifier: Apache-2.0
//
// names: which words the language itself uses, and what they mean. Shared by the parser
// and the printer; it does not know what a text declares.

#ifndef FW_IR_NAMES_H
#define FW_IR_NAMES_H

#include "base/base.h"
#include "ir/ir.h"

// lex: the language's text as a list of tokens. Knows words, numbers and punctuation;
// it does not know names of patterns, operations or types: those are NAME tokens.

// clang-format off
#define TOKEN_WORDS(X)                                                                     \
    X(SIZE, "size") X(FUN, "fun") X(DEF, "def") X(LET, "let") X(IN, "in") X(IF, "if")      \
    X(THEN, "then") X(ELSE, "else") X(TRUE, "true") X(FALSE, "false")
// A longer one before its own beginning.
#define TOKEN_MARKS(X)                                                                     \
    X(PIPE, "|>") X(OR, "||") X(AND, "&&") X(ARROW, "->") X(SHL, "<<") X(SHR, ">>")        \
    X(LE, "<=") X(GE, ">=") X(EQ, "==") X(NE, "!=") X(LT, "<") X(GT, ">") X(ASSIGN, "=")   \
    X(BITAND, "&") X(BITXOR, "^") X(BITOR, "|") X(BITNOT, "~") X(NOT, "!") X(PLUS, "+")    \
    X(MINUS, "-") X(TIMES, "*") X(OVER, "/") X(MOD, "%") X(LPAREN, "(") X(RPAREN, ")")     \
    X(LBRACKET, "[") X(RBRACKET, "]") X(COMMA, ",") X(COLON, ":") X(DOT, ".")              \
    X(LAMBDA, "\\") X(SEMICOLON, ";")
// clang-format on

typedef enum {
    TOK_END,    // of the text
    TOK_BAD,    // already reported
    TOK_NAME,   // text
    TOK_INT,    // integer
    TOK_FLOAT,  // number
    TOK_STRING, // text: what c"..." stands for
#define TOKEN(id, text) TOK_##id,
    TOKEN_WORDS(TOKEN) TOKEN_MARKS(TOKEN)
#undef TOKEN
        TOKENS
} TokenKind;

typedef struct {
    TokenKind kind;
    Span span;
    const char *text;
    int64_t integer; // at most 2^53, so that a double holds it
    double number;
} Token;

extern const char *const token_text[TOKENS]; // how a fixed one is written, else a name

// All tokens, an END last. Errors: reported, and a BAD token in their place.
Token *lex(Arena *arena, const Source *source, Diags *diags);

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
bool name_is_mode(const char *name, int *mode); // clamp, mirror, wrap, unread
// True if the word belongs to the language, so that nothing else may be called so.
bool name_is_reserved(const char *name);

// To "did you mean": every pattern and operation.
void guess_offer_words(Guess *guess);

#endif
