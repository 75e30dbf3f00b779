// SPDX-License-Identifier: Apache-2.0
//
// How often conditions hold: the share of the points of a box of index variables.
//
//   method  the box is cut until every condition holds in a whole piece or nowhere in it.
//           Shares of conditions that have no axis in common are multiplied. What a kernel
//           asks for again is found by its terms.

#include "cost/box.h"

enum { CONDS_MAX = 64, PIECES_MAX = 1 << 12 };

typedef struct {
    Guard guard;
    unsigned axes; // bits
    int form;      // the first of its forms in the piece looked at; -1: not known
} ShareCondition;

typedef struct {
    IndexBox box;
    ShareCondition room[CONDS_MAX], *cond[CONDS_MAX];
    LinearForm form[CONDS_MAX];
    int n, nform, left; // left: pieces that may still be looked at
} ShareCount;

static void swap(ShareCondition **a, ShareCondition **b)
{
    ShareCondition *keep = *a;
    *a = *b;
    *b = keep;
}

static double share_of(ShareCount *c, ShareCondition **cond, int n);

static double share_piece(ShareCount *c, ShareCondition **cond, int n, int axis, int64_t lo,
                          int64_t hi)
{
    IndexAxis whole = box_narrow(&c->box, axis, lo, hi);
    int nform = c->nform;
    double share = share_of(c, cond, n);
    for (int i = 0; i < n; i++)
        cond[i]->form = cond[i]->form < nform ? cond[i]->form : -1;
    c->nform = nform;
    c->box.axis[axis] = whole;
    return share * (double)(hi - lo + 1) / (double)(whole.hi - whole.lo + 1);
}

// Those that share axes with the first, directly or by others, are put first; returns how
// many they are.
static int find_related(ShareCondition **cond, int n)
{
    unsigned axes = cond[0]->axes;
    int related = 1;
    for (int i = related; i < n; i++)
        if (cond[i]->axes & axes) {
            axes |= cond[i]->axes;
            swap(&cond[related++], &cond[i]);
            i = related - 1;
        }
    return related;
}

// A form that holds in a piece holds in all parts of it.
static int condition_sign(ShareCount *c, ShareCondition *cond)
{
    const Guard *guard = &cond->guard;
    bool known = cond->form >= 0, linear = true;
    int first = known ? cond->form : c->nform, all = 1;
    if (first + guard->n > CONDS_MAX)
        return box_guards(&c->box, guard, 1);
    for (int i = 0; i < guard->n && all >= 0; i++) {
        LinearForm *form = &c->form[first + i];
        c->box.data = false;
        bool found = known || box_form(&c->box, guard->cond[i], form);
        int sign = found ? box_sign(&c->box, form) : c->box.data;
        linear &= found && (sign >= 0 || i == guard->n - 1);
        all = MIN(all, sign);
    }
    if (!known && linear) {
        cond->form = first;
        c->nform += guard->n;
    }
    return guard->negated ? -all : all;
}

// The order of the conditions is changed. After too many pieces, one half.
static double share_of(ShareCount *c, ShareCondition **cond, int n)
{
    int open = 0, axis = 0;
    int64_t last = 0;
    if (c->left-- <= 0)
        return 0.5;
    for (int i = 0; i < n; i++) {
        int sign = condition_sign(c, cond[i]);
        if (sign < 0)
            return 0;
        if (sign > 0)
            continue;
        axis = c->box.cut;
        last = c->box.last;
        swap(&cond[open++], &cond[i]);
    }
    if (open == 0)
        return 1;
    int related = find_related(cond, open);
    if (related < open)
        return share_of(c, cond, related) * share_of(c, cond + related, open - related);
    return share_piece(c, cond, open, axis, c->box.axis[axis].lo, last) +
           share_piece(c, cond, open, axis, last + 1, c->box.axis[axis].hi);
}

static void add_condition(ShareCount *c, const Guard *guard, int first, int n)
{
    if (c->n == CONDS_MAX)
        return;
    ShareCondition *cond = c->cond[c->n] = &c->room[c->n];
    cond->guard = (Guard){guard->cond + first, n, guard->negated};
    cond->axes = 0;
    cond->form = -1;
    for (int i = 0; i < n; i++)
        cond->axes |= box_add(&c->box, cond->guard.cond[i]);
    c->n++;
}

static double count_share(Scope *s, const Guard *guard, int n)
{
    ShareCount count;
    count.box = (IndexBox){.scope = s};
    count.n = count.nform = 0;
    count.left = PIECES_MAX;
    for (int i = 0; i < n; i++) {
        if (guard[i].negated)
            add_condition(&count, &guard[i], 0, guard[i].n);
        for (int k = 0; k < guard[i].n && !guard[i].negated; k++)
            add_condition(&count, &guard[i], k, 1);
    }
    return share_of(&count, count.cond, count.n);
}

// The sides of a condition, neighbouring loads, and another walk over the kernel ask for
// the same lists of conditions.
enum { KEPT = 1024 };
typedef struct KeptShare {
    uint64_t key; // 0: empty
    double share;
} KeptShare;

double scope_share(Scope *s, const Guard *guard, int n)
{
    uint64_t key = hash_mix(s->again, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        key = hash_mix(key, (uint64_t)(2 * guard[i].n + guard[i].negated));
        for (int k = 0; k < guard[i].n; k++)
            key = hash_mix(key, (uint64_t)(uintptr_t)guard[i].cond[k]);
    }
    if (!s->kept)
        s->kept = NEW_ARRAY(s->arena, KeptShare, KEPT);
    KeptShare *kept = &s->kept[key % KEPT];
    if (kept->key != key)
        *kept = (KeptShare){key, count_share(s, guard, n)};
    return kept->share;
}
