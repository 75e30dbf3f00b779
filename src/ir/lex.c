// SPDX-License-Identifier: Apache-2.0
//
// The lexer. One pass from left to right over the bytes; the longest mark wins. After a
// dot only digits are taken as a number, so that `t.0.1` is two components of t.

#include "ir/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const token_text[TOKENS] = {[TOK_END] = "the end of the text",
                                        [TOK_BAD] = "an invalid token",
                                        [TOK_NAME] = "a name",
                                        [TOK_INT] = "an integer",
                                        [TOK_FLOAT] = "a number",
                                        [TOK_STRING] = "C text",
#define TOKEN(id, text) [TOK_##id] = text,
                                        TOKEN_WORDS(TOKEN) TOKEN_MARKS(TOKEN)
#undef TOKEN
};

static const int64_t integer_max = (int64_t)1 << 53;

typedef struct {
    Arena *arena;
    const Source *source;
    Diags *diags;
    size_t at;
    VEC(Token) out;
} Lexer;

// The byte `ahead` of here, NUL past the end.
static char peek(const Lexer *l, size_t ahead)
{
    size_t at = l->at + ahead;
    return at < l->source->len ? l->source->text[at] : 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static Span span_from(const Lexer *l, size_t start)
{
    return (Span){l->source, (uint32_t)start, (uint32_t)l->at};
}

static Token *push(Lexer *l, TokenKind kind, size_t start)
{
    VEC_PUSH(l->arena, &l->out, (Token){.kind = kind, .span = span_from(l, start)});
    return &l->out.at[l->out.len - 1];
}

static void skip_blank(Lexer *l)
{
    for (;;) {
        char c = peek(l, 0);
        if (c == '/' && peek(l, 1) == '/')
            while (l->at < l->source->len && peek(l, 0) != '\n')
                l->at++;
        else if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
            l->at++;
        else
            return;
    }
}

static void lex_word(Lexer *l)
{
    size_t start = l->at;
    while (is_letter(peek(l, 0)) || is_digit(peek(l, 0)))
        l->at++;
    const char *text = l->source->text + start;
    size_t len = l->at - start;
#define TOKEN(id, word)                                                                    \
    if (len == sizeof(word) - 1 && !memcmp(text, word, len)) {                             \
        push(l, TOK_##id, start);                                                          \
        return;                                                                            \
    }
    TOKEN_WORDS(TOKEN)
#undef TOKEN
    push(l, TOK_NAME, start)->text = arena_strndup(l->arena, text, len);
}

static void take_digits(Lexer *l)
{
    while (is_digit(peek(l, 0)))
        l->at++;
}

// Takes `.5` and `e-3` where they follow; true if there was either.
static bool take_fraction(Lexer *l)
{
    size_t start = l->at;
    if (peek(l, 0) == '.' && is_digit(peek(l, 1))) {
        l->at++;
        take_digits(l);
    }
    size_t sign = peek(l, 1) == '+' || peek(l, 1) == '-';
    if ((peek(l, 0) == 'e' || peek(l, 0) == 'E') && is_digit(peek(l, 1 + sign))) {
        l->at += 1 + sign;
        take_digits(l);
    }
    return l->at > start;
}

// What is glued to a number (1.0f, 2x, 1.) is an error, not a second token.
static bool take_junk(Lexer *l, bool component)
{
    bool dot = peek(l, 0) == '.' && peek(l, 1) != '.' && !component; // 1..8 is a range
    if (!dot && !is_letter(peek(l, 0)))
        return false;
    while (is_letter(peek(l, 0)) || is_digit(peek(l, 0)) || (dot && peek(l, 0) == '.'))
        l->at++;
    return true;
}

static bool has_nonzero(const char *text, size_t len)
{
    for (size_t i = 0; i < len && text[i] != 'e' && text[i] != 'E'; i++)
        if (text[i] >= '1' && text[i] <= '9')
            return true;
    return false;
}

static void push_float(Lexer *l, size_t start)
{
    const char *text = l->source->text + start;
    double number = strtod(text, NULL);
    bool lost = !isfinite(number) || (number == 0 && has_nonzero(text, l->at - start));
    if (lost)
        diag_error(l->diags, span_from(l, start), "P003",
                   "the number does not fit a double");
    push(l, lost ? TOK_BAD : TOK_FLOAT, start)->number = number;
}

static int digit_of(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// The digits of an integer from `digits` on.
static void push_integer(Lexer *l, size_t start, size_t digits, int base)
{
    int64_t integer = 0;
    for (size_t i = digits; i < l->at && integer <= integer_max; i++)
        integer = integer * base + digit_of(l->source->text[i]);
    bool lost = integer > integer_max;
    if (lost)
        diag_error(l->diags, span_from(l, start), "P003",
                   "the integer is larger than 2^53, the largest that a program can say");
    push(l, lost ? TOK_BAD : TOK_INT, start)->integer = integer;
}

// 0x and digits of base 16, as bit patterns are written.
static bool take_hexadecimal(Lexer *l)
{
    if (peek(l, 0) != '0' || peek(l, 1) != 'x' || digit_of(peek(l, 2)) < 0)
        return false;
    for (l->at += 2; digit_of(peek(l, 0)) >= 0; l->at++)
        ;
    return true;
}

static void lex_number(Lexer *l)
{
    const size_t start = l->at;
    const bool component = l->out.len && l->out.at[l->out.len - 1].kind == TOK_DOT;
    const bool hexadecimal = !component && take_hexadecimal(l);
    if (!hexadecimal)
        take_digits(l);
    const bool floating = !component && !hexadecimal && take_fraction(l);
    if (take_junk(l, component)) {
        Span span = span_from(l, start);
        diag_error(l->diags, span, "P002",
                   "`%.*s` is not a number; write 1, 0x1f, 1.0 or 1e-3, without a suffix",
                   (int)MIN(span.end - span.start, 40), l->source->text + start);
        push(l, TOK_BAD, start);
    } else if (floating) {
        push_float(l, start);
    } else if (hexadecimal) {
        push_integer(l, start, start + 2, 16);
    } else {
        push_integer(l, start, start, 10);
    }
}

// The character that \c stands for, or -1.
static int escape(char c)
{
    static const char from[] = "n\"\\t", to[] = "\n\"\\\t";
    const char *found = c ? strchr(from, c) : NULL;
    return found ? to[found - from] : -1;
}

// Reads up to the closing quote into text; NULL or what is wrong.
static const char *read_string(Lexer *l, Buf *text)
{
    for (; l->at < l->source->len; l->at++) {
        bool plain;
        char c = peek(l, 0);
        if (c == '"')
            return NULL;
        size_t n = text_step(l->source->text + l->at, l->source->len - l->at, &plain);
        if (!plain && c != '\r')
            return "a control character, or no UTF-8, inside C text";
        for (; n > 1; n--, l->at++, c = peek(l, 0))
            buf_putc(text, c);
        if (c == '\\') {
            int meant = escape(peek(l, 1));
            if (meant < 0)
                return "an escape other than \\n \\t \\\" \\\\ inside C text";
            l->at++;
            c = (char)meant;
        }
        buf_putc(text, c);
    }
    return "the C text has no closing quote";
}

static void lex_string(Lexer *l)
{
    size_t start = l->at;
    AutoBuf text = buf_new();
    l->at += 2;
    const char *wrong = read_string(l, &text);
    if (wrong) {
        size_t place = l->at < l->source->len ? l->at : start;
        l->at = MIN(l->at + 1, l->source->len);
        diag_error(l->diags, span_from(l, place), "P004", "%s", wrong);
        push(l, TOK_BAD, start);
    } else {
        l->at++;
        push(l, TOK_STRING, start)->text = arena_strdup(l->arena, text.text);
    }
}

static bool lex_mark(Lexer *l)
{
#define TOKEN(id, mark)                                                                    \
    if (peek(l, 0) == mark[0] && (!mark[1] || peek(l, 1) == mark[1])) {                    \
        l->at += sizeof(mark) - 1;                                                         \
        push(l, TOK_##id, l->at - (sizeof(mark) - 1));                                     \
        return true;                                                                       \
    }
    TOKEN_MARKS(TOKEN)
#undef TOKEN
    return false;
}

// A run of the same unusable kind of bytes is one error.
static void lex_bad(Lexer *l)
{
    size_t start = l->at;
    unsigned char c = (unsigned char)peek(l, 0);
    if (c >= 0x80) {
        while ((unsigned char)peek(l, 0) >= 0x80)
            l->at++;
        diag_error(l->diags, span_from(l, start), "P001",
                   "only ASCII may stand outside comments and C text");
    } else if (c < 0x20 || c == 0x7f) {
        while (l->at < l->source->len && peek(l, 0) == (char)c)
            l->at++;
        diag_error(l->diags, span_from(l, start), "P001", "a control byte 0x%02x", c);
    } else {
        l->at++;
        const char *hint = c == '"' ? "; C text is written c\"...\"" : "";
        diag_error(l->diags, span_from(l, start), "P001", "unexpected character `%c`%s", c,
                   hint);
    }
    push(l, TOK_BAD, start);
}

Token *lex(Arena *arena, const Source *source, Diags *diags)
{
    Lexer l = {.arena = arena, .source = source, .diags = diags};
    for (skip_blank(&l); l.at < source->len; skip_blank(&l)) {
        char c = peek(&l, 0);
        if (c == 'c' && peek(&l, 1) == '"')
            lex_string(&l);
        else if (is_letter(c))
            lex_word(&l);
        else if (is_digit(c))
            lex_number(&l);
        else if (!lex_mark(&l))
            lex_bad(&l);
    }
    if (l.out.len) // errors at the end are shown where the text ends, not on blank lines
        l.at = l.out.at[l.out.len - 1].span.end;
    push(&l, TOK_END, l.at);
    return l.out.at;
}
