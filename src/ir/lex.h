// SPDX-License-Identifier: Apache-2.0
//
// lex: the language's text as a list of tokens. Knows words, numbers and punctuation;
// it does not know names of patterns, operations or types: those are NAME tokens.

#ifndef FW_IR_LEX_H
#define FW_IR_LEX_H

#include "base/base.h"

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

#endif
