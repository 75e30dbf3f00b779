// SPDX-License-Identifier: Apache-2.0
//
// Which elements of shared memory are one item's.
//
//   method  an index differs for different items and iterations if its variables form mixed
//           radix digits, each stride wider than all that is below it. What is not of that
//           shape is taken to be anybody's.

#include "kir/passes.h"

typedef struct {
    int64_t stride, extent;
} Digit;

static const Stm *loop_of(const Access *a, const Arith *iter)
{
    for (int i = a->nloop - 1; i >= 0; i--)
        if (a->loops[i]->iter == iter)
            return a->loops[i];
    return NULL;
}

// One term of an index as a digit, which counts as long where its extent is not known; a
// group's own number is the same for all its items, if it has only one.
static bool digit_of(const Access *a, int64_t coef, const Arith *arg, Digit *digit, int *n)
{
    const Stm *loop = arg->kind == A_VAR ? loop_of(a, arg) : NULL;
    int64_t extent = INT32_MAX;
    if (!loop || coef <= 0)
        return false;
    if (loop->loop == LOOP_WRG && !a->groups && loop->form != FORM_LOOP)
        return true;
    arith_is_const(loop->extent, &extent);
    digit[*n] = (Digit){coef, extent};
    (*n)++;
    return true;
}

enum { DIGITS_MAX = 8 };

// Different items (and iterations) have different elements at this index.
bool access_is_injective(const Access *a)
{
    ArithTerm one = {1, a->index};
    bool sum = a->index->kind == A_SUM;
    const ArithTerm *term = sum ? a->index->term : &one;
    int nterm = sum ? a->index->n : a->index->kind == A_CONST ? 0 : 1, n = 0;
    Digit digit[DIGITS_MAX];
    if (nterm > DIGITS_MAX)
        return false;
    for (int i = 0; i < nterm; i++)
        if (!digit_of(a, term[i].coef, term[i].arg, digit, &n))
            return false;
    int64_t span = a->width - 1;
    for (int done = 0; done < n; done++) { // the narrowest first
        int least = done;
        for (int i = done + 1; i < n; i++)
            least = digit[i].stride < digit[least].stride ? i : least;
        Digit d = digit[least];
        digit[least] = digit[done];
        if (d.stride <= span || d.extent > INT32_MAX || d.stride >= INT32_MAX)
            return false;
        span += d.stride * (d.extent - 1);
    }
    return true;
}

// Only one item ever touches this element: each dimension of the group has a loop over its
// items around the access, and each such loop its variable in the index.
bool access_is_own(const Access *a, const int64_t local[3])
{
    bool spread[3] = {local[0] == 1, local[1] == 1, local[2] == 1};
    for (int i = 0; i < a->nloop; i++) {
        if (!loop_is_of_items(a->loops[i]))
            continue;
        if (!arith_mentions(a->index, a->loops[i]->iter))
            return false;
        spread[a->loops[i]->dim] = true;
    }
    return spread[0] && spread[1] && spread[2] && access_is_injective(a);
}
