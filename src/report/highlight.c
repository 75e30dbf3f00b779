// SPDX-License-Identifier: Apache-2.0
//
// Highlighting by tokens alone: nothing is parsed, so any text, however wrong, comes out
// as it was.
#include "report/run.h"
#include "report/svg.h"

#include <ctype.h>
#include <string.h>

static const char *const keywords[] = {
#define KEYWORD(word) #word,
#define BUILTIN(word)
#define RESERVED(word)
#include "emit/reserved.def"
#undef KEYWORD
#undef BUILTIN
};

static const char *const builtins[] = {
#define KEYWORD(word)
#define BUILTIN(word) #word,
#include "emit/reserved.def"
#undef KEYWORD
#undef BUILTIN
#undef RESERVED
};

static bool is_in(const char *const *list, int n, const char *at, size_t len)
{
    for (int i = 0; i < n; i++)
        if (strlen(list[i]) == len && memcmp(list[i], at, len) == 0)
            return true;
    return false;
}

// float4, int2, ...: a keyword with a number behind it.
static size_t without_digits(const char *at, size_t len)
{
    while (len > 0 && isdigit((unsigned char)at[len - 1]))
        len--;
    return len;
}

static char word_class(const char *at, size_t len)
{
    if (is_in(builtins, COUNTOF(builtins), at, len))
        return 'b';
    if (is_in(keywords, COUNTOF(keywords), at, len) ||
        is_in(keywords, COUNTOF(keywords), at, without_digits(at, len)))
        return 'k';
    return 0;
}

static size_t up_to(const char *at, const char *end)
{
    const char *found = strstr(at, end);
    return found ? (size_t)(found - at) + strlen(end) : strlen(at);
}

static size_t string_len(const char *at)
{
    size_t n = 1;
    while (at[n] && at[n] != at[0] && at[n] != '\n')
        n += at[n] == '\\' && at[n + 1] ? 2 : 1;
    return n + (at[n] == at[0]);
}

static size_t number_len(const char *at)
{
    size_t n = 1;
    while (isalnum((unsigned char)at[n]) || at[n] == '.' ||
           ((at[n] == '+' || at[n] == '-') && strchr("eEpP", at[n - 1])))
        n++;
    return n;
}

static size_t word_len(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_')
        n++;
    return n;
}

// The token at a place: its length, and its class, 0 for none.
static size_t token(const char *at, bool line_start, char *class)
{
    unsigned char c = (unsigned char)*at;
    *class = 0;
    if (at[0] == '/' && at[1] == '/')
        return *class = 'c', strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*')
        return *class = 'c', 2 + up_to(at + 2, "*/");
    if (c == '#' && line_start)
        return *class = 'p', strcspn(at, "\n");
    if (c == '"' || c == '\'')
        return *class = 's', string_len(at);
    if (isdigit(c) || (c == '.' && isdigit((unsigned char)at[1])))
        return *class = 'n', number_len(at);
    bool plain;
    if (!isalpha(c) && c != '_')
        return text_step(at, strnlen(at, 4), &plain);
    size_t n = word_len(at);
    *class = word_class(at, n);
    return n;
}

static void put_part(Buf *out, const char *at, size_t n)
{
    Buf part;
    buf_init(&part);
    for (size_t i = 0; i < n; i++) {
        bool ends = at[i] == '\n' || i + 1 == n;
        if (at[i] != '\n')
            buf_putc(&part, at[i] == '\t' ? ' ' : at[i]);
        if (ends) {
            svg_escape(out, part.text);
            buf_clear(&part);
        }
        if (at[i] == '\n')
            buf_putc(out, '\n');
    }
    buf_release(&part);
}

void highlight_c(Buf *out, const char *text)
{
    bool line_start = true;
    while (*text) {
        char class;
        size_t n = token(text, line_start, &class);
        if (class)
            buf_printf(out, "<span class=\"%c\">", class);
        put_part(out, text, n);
        if (class)
            buf_puts(out, "</span>");
        line_start = text[n - 1] == '\n' || (line_start && isspace((unsigned char)*text));
        text += n;
    }
}
