// SPDX-License-Identifier: Apache-2.0
//
// Nodes of one depth, looked up by what the assignments below depend on: the constraints
// still open, and the values of the largest parts of them that are bound already. For
// `a * b * c + d <= 9` at depth 2 that is one number, a * b, however it came about.
//
// A table that seldom finds anything is dropped, since then its keys would outgrow the
// diagram.
#include "space/internal.h"

#include <stdlib.h>
#include <string.h>

enum { TRIAL_LOOKUPS = 1 << 17, SELDOM = 16 };

static uint64_t params_of(const Code *code, int n)
{
    uint64_t params = 0;
    for (int i = 0; i < n; i++)
        if (code[i].op == OP_PARAM)
            params |= (uint64_t)1 << code[i].param;
    return params;
}

static bool same_code(const Code *a, const Code *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i].op != b[i].op || a[i].param != b[i].param || a[i].number != b[i].number)
            return false;
    return true;
}

static void add_part(SpaceMemo *memo, const Code *code, int n, uint64_t bit)
{
    for (int i = 0; i < memo->npart; i++) {
        const Constraint *part = &memo->part[i].expression;
        if (part->ncode == n && same_code(part->code, code, n)) {
            memo->part[i].checks |= bit;
            return;
        }
    }
    if (memo->npart == MEMO_PARTS) {
        memo->off = true;
        return;
    }
    memo->part = xrealloc(memo->part, sizeof *memo->part * (size_t)(memo->npart + 1));
    const Constraint expression = {.code = code, .ncode = n, .params = params_of(code, n)};
    memo->part[memo->npart++] = (MemoPart){expression, bit};
}

static void collect(SpaceMemo *memo, const Code *code, int n, uint64_t bit, uint64_t bound)
{
    uint64_t params = params_of(code, n);
    if (!(params & bound))
        return;
    if (!(params & ~bound)) {
        add_part(memo, code, n, bit);
        return;
    }
    for (int end = n - 1; end > 0;) {
        int start = constraint_operand(code, end);
        collect(memo, code + start, end - start, bit, bound);
        end = start;
    }
}

void memo_watch(SpaceMemo *memo, const Constraint *constraint, uint64_t bit, uint64_t bound)
{
    if (!constraint->relation)
        collect(memo, constraint->code, constraint->ncode, bit, bound);
    for (int i = 0; constraint->relation && i < constraint->ncode; i++)
        collect(memo, &constraint->code[i], 1, bit, bound);
}

static double part_value(const Constraint *part, const double *value)
{
    double result;
    if (part->ncode == 1)
        return value[part->code->param];
    constraint_eval(part, value, -1, NULL, 1, &result);
    return result;
}

static size_t stride(const SpaceMemo *memo)
{
    return 1 + (size_t)memo->npart;
}

bool memo_key(const SpaceMemo *memo, uint64_t open, const double *value, SpaceMemoKey *key)
{
    if (memo->off)
        return false;
    key->word[0] = open;
    for (int i = 0; i < memo->npart; i++) {
        const MemoPart *part = &memo->part[i];
        double number = open & part->checks ? part_value(&part->expression, value) : 0;
        memcpy(&key->word[1 + i], &number, sizeof number);
    }
    return true;
}

static size_t slot_of(const SpaceMemo *memo, const uint64_t *word)
{
    size_t n = stride(memo), i = 0;
    for (size_t k = 0; k < n; k++)
        i = hash_mix(i, word[k]);
    for (i &= memo->cap - 1; memo->node[i] != NODE_FREE; i = (i + 1) & (memo->cap - 1))
        if (memcmp(memo->word + i * n, word, sizeof *word * n) == 0)
            break;
    return i;
}

static void store_at(SpaceMemo *memo, const uint64_t *word, uint32_t node)
{
    size_t i = slot_of(memo, word);
    memcpy(memo->word + i * stride(memo), word, sizeof *word * stride(memo));
    memo->node[i] = node;
}

static void grow(SpaceMemo *memo)
{
    SpaceMemo old = *memo;
    memo->cap = old.cap ? 2 * old.cap : 256;
    memo->word = xmalloc(sizeof *memo->word * stride(memo) * memo->cap);
    memo->node = xmalloc(sizeof *memo->node * memo->cap);
    for (size_t i = 0; i < memo->cap; i++)
        memo->node[i] = NODE_FREE;
    for (size_t i = 0; i < old.cap; i++)
        if (old.node[i] != NODE_FREE)
            store_at(memo, old.word + i * stride(memo), old.node[i]);
    free(old.word);
    free(old.node);
}

static void drop_table(SpaceMemo *memo)
{
    free(memo->word);
    free(memo->node);
    memo->word = NULL;
    memo->node = NULL;
    memo->cap = memo->len = 0;
}

uint32_t memo_get(SpaceMemo *memo, const SpaceMemoKey *key)
{
    uint32_t node = memo->cap ? memo->node[slot_of(memo, key->word)] : NODE_FREE;
    memo->lookups++;
    memo->hits += node != NODE_FREE;
    if (memo->lookups == TRIAL_LOOKUPS && memo->hits < TRIAL_LOOKUPS / SELDOM) {
        drop_table(memo);
        memo->off = true;
    }
    return node;
}

void memo_put(SpaceMemo *memo, const SpaceMemoKey *key, uint32_t node)
{
    if (memo->off)
        return;
    if (2 * memo->len >= memo->cap)
        grow(memo);
    store_at(memo, key->word, node);
    memo->len++;
}

void memo_release(SpaceMemo *memo)
{
    drop_table(memo);
    free(memo->part);
}
