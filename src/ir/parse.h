// SPDX-License-Identifier: Apache-2.0
//
// What the two halves of the parser share: parse.c has the state, sizes, types and
// declarations, parse_expr.c the expressions. Nobody else includes this.

#ifndef FW_IR_PARSE_H
#define FW_IR_PARSE_H

#include "ir/names.h"

typedef struct {
    const char *name;
    Param *param;
    int component; // of the tuple the param holds, or -1: the param itself
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

#endif
