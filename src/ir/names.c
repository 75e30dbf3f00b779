// SPDX-License-Identifier: Apache-2.0
//
// The language's own words, read off its tables, and the nearest name to a misspelt one
// (edit distance of Levenshtein, by rows).

#include "ir/names.h"

#include <string.h>

// Suffixes: none or 2, 3 for dimensions; 0, 1, 2 for a dimension of the thread grid.
static bool read_suffix(PatternSuffix suffix, const char *text, PatternWord *word)
{
    char c = text[0];
    if (c && text[1])
        return false;
    word->dims = 1;
    word->par = 0;
    switch (suffix) {
    case SUFFIX_NONE: return !c;
    case SUFFIX_DIMS: word->dims = c ? c - '0' : 1; return !c || c == '2' || c == '3';
    case SUFFIX_PAR: word->par = c - '0'; return c >= '0' && c <= '2';
    }
    BUG("pattern suffix %d", suffix);
}

bool name_is_pattern(const char *name, PatternWord *word)
{
    for (int i = 0; i < PATTERNS; i++) {
        size_t len = strlen(pattern_info[i].text);
        word->pattern = (Pattern)i;
        if (!strncmp(name, pattern_info[i].text, len) &&
            read_suffix(pattern_info[i].suffix, name + len, word))
            return true;
    }
    return false;
}

void pattern_print_name(Buf *out, Pattern pattern, int dims, int par)
{
    const PatternInfo *info = &pattern_info[pattern];
    buf_puts(out, info->text);
    if (info->suffix == SUFFIX_DIMS && dims > 1)
        buf_printf(out, "%d", dims);
    if (info->suffix == SUFFIX_PAR)
        buf_printf(out, "%d", par);
}

static bool find_op(const char *text, OpForm form, Op *op)
{
    for (int i = 0; i < OPS; i++) {
        if (op_info[i].form == form && !strcmp(op_info[i].text, text)) {
            *op = (Op)i;
            return true;
        }
    }
    return false;
}

bool name_is_op(const char *name, Op *op)
{
    return find_op(name, FORM_CALL, op) && *op != OP_SELECT;
}

bool name_is_infix(const char *text, Op *op)
{
    return find_op(text, FORM_INFIX, op);
}

int op_level(Op op)
{
    switch (op) {
    case OP_OR: return LEVEL_OR;
    case OP_AND: return LEVEL_AND;
    case OP_BITOR: return LEVEL_BITOR;
    case OP_BITXOR: return LEVEL_BITXOR;
    case OP_BITAND: return LEVEL_BITAND;
    case OP_SHL:
    case OP_SHR: return LEVEL_SHIFT;
    case OP_ADD:
    case OP_SUB: return LEVEL_SUM;
    default: return op_info[op].types == TY_COMP ? LEVEL_COMPARE : LEVEL_PRODUCT;
    }
}

const Type *name_is_type(const char *name)
{
    for (int i = 0; i < SCALARS; i++) {
        size_t len = strlen(scalar_info[i].name);
        if (strncmp(name, scalar_info[i].name, len))
            continue;
        char c = name[len];
        if (!c)
            return type_scalar((Scalar)i);
        if ((c == '2' || c == '4' || c == '8') && !name[len + 1])
            return type_vector((Scalar)i, c - '0');
    }
    return NULL;
}

bool name_is_mode(const char *name, int *mode)
{
    for (*mode = 0; *mode < COUNTOF(pad_mode_name); ++*mode)
        if (!strcmp(name, pad_mode_name[*mode]))
            return true;
    return false;
}

static bool is_keyword(const char *name)
{
    for (int i = TOK_SIZE; i <= TOK_FALSE; i++)
        if (!strcmp(name, token_text[i]))
            return true;
    return false;
}

bool name_is_reserved(const char *name)
{
    PatternWord word;
    Op op;
    int mode;
    return is_keyword(name) || name_is_pattern(name, &word) || name_is_op(name, &op) ||
           name_is_type(name) || name_is_mode(name, &mode);
}

// The nearest name --------------------------------------------------------------------

static void offer_pattern(Guess *guess, Pattern pattern)
{
    PatternSuffix suffix = pattern_info[pattern].suffix;
    int first = suffix == SUFFIX_PAR ? 0 : 1;
    int last = suffix == SUFFIX_NONE ? 1 : suffix == SUFFIX_DIMS ? DIMS_MAX : 2;
    for (int i = first; i <= last; i++) {
        AutoBuf name = buf_new();
        pattern_print_name(&name, pattern, i, i);
        guess_offer(guess, name.text);
    }
}

void guess_offer_words(Guess *guess)
{
    for (int i = 0; i < OPS; i++)
        if (op_info[i].form == FORM_CALL)
            guess_offer(guess, op_info[i].text);
    for (int i = 0; i < PATTERNS; i++)
        offer_pattern(guess, (Pattern)i);
}
