// SPDX-License-Identifier: Apache-2.0
//
// Amortised stride fractions (paper 003, section 2.1) and bank conflicts.
//
//   method  the stride is the most common difference of the indices of neighbouring lanes
//           of a warp in the middle of the grid. The utilisation of a strided array is the
//           share of the residues modulo the stride that its accesses reach: the footprint
//           over its filled-in counterpart, away from its ends. Residues follow from how
//           the index moves with each of its variables around the middle of their ranges.
//
// Strides above RESIDUES_MOST are looked at modulo that.

#include "cost/counts_internal.h"

#include <stdlib.h>
#include <string.h>

enum { RESIDUES_MOST = 4096, BANKS = 32, BANK_BYTES = 4, VARS_MOST = 16 };

static int64_t common_difference(const LaneValues *lanes, int n)
{
    int64_t best = 0;
    int most = 0;
    for (int i = 1; i < n && !lanes->uniform; i++) {
        int64_t difference = lanes->v[i] - lanes->v[i - 1];
        int same = 0;
        for (int k = 1; k < n; k++)
            same += lanes->v[k] - lanes->v[k - 1] == difference;
        if (same > most) {
            most = same;
            best = difference;
        }
    }
    return best;
}

void stride_note(Tally *t, Touch *touch)
{
    LaneValues lanes;
    touch->data = !scope_lanes(&t->scope, touch->index, &lanes);
    touch->stride = touch->data ? 0 : llabs(common_difference(&lanes, t->scope.lanes));
}

// A wide access is served in parts of as many lanes as 128 bytes hold.
int stride_bank_degree(Tally *t, const Buffer *buffer, const Arith *index, int width)
{
    LaneValues lanes;
    if (!scope_lanes(&t->scope, index, &lanes) || lanes.uniform)
        return 0;
    int bytes = scalar_info[buffer->scalar].bytes, most = 1;
    int n = MIN(t->scope.lanes, BANKS * BANK_BYTES / MAX(bytes * width, BANK_BYTES));
    for (int i = 0; i < n; i++) {
        int64_t word = lanes.v[i] * bytes / BANK_BYTES;
        int degree = 0;
        for (int k = 0; k < n; k++) {
            int64_t other = lanes.v[k] * bytes / BANK_BYTES;
            bool seen = (other - word) % BANKS != 0;
            for (int j = 0; j < k && !seen; j++)
                seen = lanes.v[j] * bytes / BANK_BYTES == other;
            degree += !seen;
        }
        most = MAX(most, degree);
    }
    int degree = 0;
    while (degree < COUNT_DEGREES - 1 && 1 << degree < most)
        degree++;
    return degree;
}

// Utilisation ---------------------------------------------------------------------------

typedef struct {
    Scope *scope;
    BoundVar *var[VARS_MOST];
    int nvar;
    const BoundVar *moved; // one further than the middle
} Middle;

static bool lookup_middle(void *user, const Arith *var, int64_t *value)
{
    Middle *m = user;
    BoundVar *b = scope_find(m->scope, var);
    if (!b || b->kind == BOUND_DATA)
        return !b && scope_constant(m->scope, var, value);
    if (b->kind == BOUND_INT)
        return arith_eval(b->def, lookup_middle, m, value);
    *value =
        (b->kind == BOUND_SIZE ? b->at : MAX(MIN(b->n / 2, b->n - 2), 0)) + (b == m->moved);
    return true;
}

static void find_vars(Middle *m, const Arith *a)
{
    BoundVar *b = a->kind == A_VAR ? scope_find(m->scope, a) : NULL;
    if (b && b->kind == BOUND_INT)
        find_vars(m, b->def);
    if (b && (b->kind == BOUND_LOOP || b->kind == BOUND_THREAD) && b->n > 1 &&
        m->nvar < VARS_MOST && !list_has(m->var, m->nvar, b))
        m->var[m->nvar++] = b;
    for (int i = 0; i < a->n; i++)
        find_vars(m, a->term[i].arg);
}

// used := used and itself moved by 1, ..., n - 1 times step, modulo.
static void spread_residues(bool *used, int64_t modulo, int64_t step, int64_t n)
{
    bool before[RESIDUES_MOST];
    for (int64_t have = 1; have < n && step % modulo && memchr(used, 0, (size_t)modulo);) {
        int64_t more = MIN(have, n - have);
        int64_t shift = (step % modulo) * (more % modulo) % modulo;
        shift = shift < 0 ? shift + modulo : shift;
        memcpy(before, used, (size_t)modulo);
        for (int64_t i = 0; i < modulo; i++)
            used[(i + shift) % modulo] |= before[i];
        have += more;
    }
}

static void add_residues(Tally *t, const Touch *touch, int64_t modulo, bool *used)
{
    bool own[RESIDUES_MOST];
    memset(own, 0, (size_t)modulo);
    Middle m = {.scope = &t->scope};
    int64_t base, moved;
    if (!arith_eval(touch->index, lookup_middle, &m, &base))
        return;
    for (int i = 0; i < touch->width; i++)
        own[((base + i) % modulo + modulo) % modulo] = true;
    find_vars(&m, touch->index);
    for (int i = 0; i < m.nvar; i++) {
        m.moved = m.var[i];
        if (arith_eval(touch->index, lookup_middle, &m, &moved))
            spread_residues(own, modulo, moved - base, m.var[i]->n);
    }
    for (int64_t i = 0; i < modulo; i++)
        used[i] |= own[i];
}

// The utilisation by all touches of that buffer with that stride; each asks once.
static double utilisation(Tally *t, Touch *touch)
{
    bool used[RESIDUES_MOST];
    int64_t modulo = MIN(touch->stride, RESIDUES_MOST), n = 0;
    if (touch->used)
        return touch->used;
    memset(used, 0, (size_t)modulo);
    for (int i = 0; i < t->touches.len && n < modulo; i++) {
        const Touch *other = &t->touches.at[i];
        if (other->buffer != touch->buffer || other->stride != touch->stride || other->data)
            continue;
        add_residues(t, other, modulo, used);
        n = 0;
        for (int64_t k = 0; k < modulo; k++)
            n += used[k];
    }
    double share = (double)n / (double)modulo;
    VEC_EACH_REF(Touch *, other, &t->touches)
        if (other->buffer == touch->buffer && other->stride == touch->stride)
            other->used = share;
    return share;
}

// Class 0 is stride 0, class 1 stride 1, then 1/2 2/2, 1/3 2/3 3/3, 1/4 ..., 1/>4 ...
static int class_of(int64_t stride, double used)
{
    static const int first[] = {0, 1, 2, 4, 7, 11};
    int s = (int)MIN(stride, 5), parts = MIN(s, 4), part = 1;
    if (s < 2)
        return first[s];
    while (part < parts && used * parts > part + 1e-9)
        part++;
    return first[s] + part - 1;
}

void stride_classes(Tally *t)
{
    VEC_EACH_REF(Touch *, touch, &t->touches) {
        int bytes = scalar_info[touch->buffer->scalar].bytes * touch->width;
        int width = bytes <= 4 ? 0 : bytes <= 8 ? 1 : 2;
        int64_t stride = (touch->stride + touch->width - 1) / touch->width;
        int class = touch->data ? class_of(5, 0)
                                : class_of(stride, stride > 1 ? utilisation(t, touch) : 1);
        tally_item(
            t, touch->domain,
            (touch->store ? COUNT_STORE : COUNT_LOAD) + width * COUNT_STRIDES + class, 1);
    }
}
