// SPDX-License-Identifier: Apache-2.0
//
// The texts of a problem file: read and joined; and the names of kernels: whether they can
// be names, and whether the texts know them. CUDA's
// may be expressions of C++, `place::scale<float, 4>`, which only the compiler reads; of
// those the last word before the first `<` is looked for.
//
// A name that a macro puts together, or that is in an included file, is not found here, so
// where there is any of these nothing is said.

#include "problem/template.h"

#include <stdlib.h>
#include <string.h>

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

static bool is_kernel_name(const char *text)
{
    return strspn(text, WORD ":<>,*&()+-/ ") == strlen(text) && text[0] &&
           !strchr("0123456789<>,*&()+-/ ", text[0]) && !strstr(text, "//") &&
           !strstr(text, "/*");
}

bool reader_kernel(const TemplateReader *r, const char *where, const char *name,
                   bool kernel)
{
    if (kernel && language_is(r->t->language, LANGUAGE_CUDA))
        return is_kernel_name(name) ||
               reader_wrong(
                   r, where,
                   "`%s` is not a name like `scale`, `place::scale` or `scale<float, 4>`",
                   name);
    return reader_is_name(name) ||
           reader_wrong(r, where, "`%s` cannot name a function: letters, digits and _",
                        name);
}

// The word that the text must have: `scale` of `place::scale<float, 4>`.
static const char *word_of(Arena *arena, const char *name)
{
    size_t n = strcspn(name, "<");
    while (n && !strchr(WORD, name[n - 1]))
        n--;
    size_t start = n;
    while (start && strchr(WORD, name[start - 1]))
        start--;
    return arena_strndup(arena, name + start, n - start);
}

static bool has_word_in(const char *text, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) && at + n <= text + len; at++)
        if ((at == text || !strchr(WORD, at[-1])) && (!at[n] || !strchr(WORD, at[n])))
            return true;
    return false;
}

static bool has_word(const char *text, const char *word)
{
    return has_word_in(text, strlen(text), word);
}

// Past the blanks and comments at `at`.
static const char *past_blanks(const char *at)
{
    for (;;) {
        const char *from = at;
        at += strspn(at, " \t\n\r\\");
        if (strncmp(at, "//", 2) == 0)
            at += strcspn(at, "\n");
        else if (strncmp(at, "/*", 2) == 0)
            at = strstr(at + 2, "*/") ? strstr(at + 2, "*/") + 2 : at + strlen(at);
        if (at == from)
            return at;
    }
}

// `int n,`, `float n)`, `size_t n =`, `<int n>`: a name after a type. If any line of the
// preprocessor names it, it is a macro there.
bool template_declares(const char *text, const char *name)
{
    static const char *const verb[] = {"return", "case", "else", "goto", "sizeof", NULL};
    bool declared = false, word = false; // word: the last token may be a type
    for (const char *at = past_blanks(text); *at; at = past_blanks(at)) {
        size_t n = strspn(at, WORD);
        const char *next = past_blanks(at + n);
        if (*at == '#') {
            size_t line = strcspn(at, "\n");
            while (at[line] && at[line - 1] == '\\')
                line += 1 + strcspn(at + line + 1, "\n");
            if (has_word_in(at, line, name))
                return false;
            at += line;
            continue;
        }
        bool same = n && n == strlen(name) && strncmp(at, name, n) == 0;
        declared |= same && word && *next && strchr(",)=;[:>", *next);
        word = n > 0;
        for (int i = 0; n && verb[i]; i++)
            word &= n != strlen(verb[i]) || strncmp(at, verb[i], n) != 0;
        at += n ? n : 1;
    }
    return declared;
}

static bool is_macro(const Template *t, const char *word)
{
    return FIND(t->param.at, t->param.len, name, word) >= 0;
}

// Words that a parenthesis follows, as a guess of what was meant.
static void offer_functions(Arena *arena, const char *text, Guess *guess)
{
    for (const char *at = text; *at;) {
        size_t n = strspn(at, WORD);
        if (n && at[n + strspn(at + n, " \n")] == '(')
            guess_offer(guess, arena_strndup(arena, at, n));
        at += n ? n : 1;
    }
}

static bool no_kernel(const TemplateReader *r, const char *where, const char *name,
                      const char *word)
{
    AutoBuf hint = buf_new();
    Guess guess = guess_new(word);
    offer_functions(r->t->arena, r->t->text, &guess);
    guess_print(&hint, &guess);
    return reader_wrong(r, where, "the files have no kernel `%s`%s", name, hint.text);
}

static bool find_kernels(const TemplateReader *r, const char *where,
                         const TemplateLaunch *launch, int n)
{
    const Template *t = r->t;
    for (int i = 0; i < n; i++) {
        const char *place = n == 1 ? where : arena_printf(t->arena, "%s[%d]", where, i);
        if (launch[i].inner.len) {
            if (!find_kernels(r, arena_printf(t->arena, "%s.launch", place),
                              launch[i].inner.at, launch[i].inner.len))
                return false;
            continue;
        }
        const char *name = launch[i].kernel, *word = word_of(t->arena, name);
        if (!has_word(t->text, word) && !is_macro(t, word) && !has_word(t->options, word))
            return no_kernel(r, arena_printf(t->arena, "%s.kernel", place), name, word);
    }
    return true;
}

// Names in braces in the options are parameters and sizes.
static bool find_braces(const TemplateReader *r)
{
    const Template *t = r->t;
    for (const char *at = t->options; (at = strchr(at, '{')); at++) {
        size_t n = strspn(at + 1, WORD);
        const char *name = arena_strndup(t->arena, at + 1, n);
        bool known = at[n + 1] != '}' || !reader_is_name(name) || is_macro(t, name);
        for (int i = 0; i < t->size.len; i++)
            known |= strcmp(t->size.at[i].name, name) == 0;
        if (!known)
            return reader_wrong(r, "options", "there is no parameter or size `%s`", name);
    }
    return true;
}

bool reader_kernels(const TemplateReader *r)
{
    const Template *t = r->t;
    if (!find_braces(r))
        return false;
    if (strstr(t->text, "##") || strstr(t->text, "include"))
        return true;
    for (int i = 0; i < t->arg.len; i++)
        if (t->arg.at[i].symbol && !has_word(t->text, t->arg.at[i].symbol))
            return reader_wrong(r, arena_printf(t->arena, "arguments[%d]", i),
                                "the files have no variable `%s`", t->arg.at[i].symbol);
    return find_kernels(r, "launch", t->launch.at, t->launch.len);
}

// Texts -------------------------------------------------------------------------------

static bool includes(const char *text)
{
    for (const char *at = text; (at = strstr(at, "include")); at += strlen("include")) {
        const char *after = at + strlen("include");
        after += strspn(after, " \t");
        if (*after == '"' || *after == '<')
            return true;
    }
    return false;
}

// Compilers run elsewhere, so the folder is said in full.
static const char *include_option(const Template *t)
{
    AUTO_FREE char *full = realpath(t->folder[0] ? t->folder : ".", NULL);
    bool blank = full && strpbrk(full, " \t");
    const char *quote = blank ? "\"" : "";
    return full ? arena_printf(t->arena, "-I%s%s%s", quote, full, quote) : "";
}

bool reader_sources(const TemplateReader *r)
{
    Template *t = r->t;
    Buf text = buf_new();
    bool ok = t->file.len > 0 || reader_wrong(r, "files", "expected a file");
    for (int i = 0; ok && i < t->file.len; i++) {
        template_line(&text, t->file.at[i]);
        ok = reader_file(r, "files", t->file.at[i], &text) != NULL;
        buf_putc(&text, '\n');
    }
    if (ok && strlen(text.text) != text.len)
        ok = reader_wrong(r, "files", "the text holds a zero byte");
    t->text = buf_keep(&text, t->arena);
    if (ok && (includes(t->text) || (t->reference.text && includes(t->reference.text))))
        t->include = include_option(t);
    return ok;
}
