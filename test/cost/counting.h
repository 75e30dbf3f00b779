// SPDX-License-Identifier: Apache-2.0
//
// An execution that counts, which static counts are tested against: every work-item runs
// through the kernel IR, with no data. Where a condition depends on data, both sides run,
// each with half the weight. What is counted is up to the test.

#ifndef FW_TEST_COUNTING_H
#define FW_TEST_COUNTING_H

#include "lower/lower.h"

#include <string.h>

enum { NAMES_MAX = 4096 };

typedef struct {
    const Arith *var;
    int64_t value;
    bool known;
} Name;

typedef struct Run Run;
struct Run {
    const Kernel *kernel;
    const Binding *binding; // of sizes that are left open
    int nbinding;
    int64_t group[3], item[3];
    Name name[NAMES_MAX];
    int nname;
    int64_t steps, most_steps; // statements; those after the last are left out
    double weight;             // of what is met now
    void *user;
    // Each may be NULL. A value is met before its operands, and a condition is none.
    void (*on_value)(Run *r, const KExpr *e);
    void (*on_stm)(Run *r, const Stm *stm);
    void (*on_body)(Run *r, const Stm *loop); // an iteration
};

static inline bool run_lookup(void *user, const Arith *var, int64_t *value)
{
    Run *r = user;
    for (int i = r->nname - 1; i >= 0; i--)
        if (r->name[i].var == var) {
            *value = r->name[i].value;
            return r->name[i].known;
        }
    for (int i = 0; i < r->nbinding; i++)
        if (strcmp(r->binding[i].name, var->name) == 0) {
            *value = r->binding[i].value;
            return true;
        }
    return false;
}

static inline void run_bind(Run *r, const Arith *var, int64_t value, bool known)
{
    assert_true(r->nname < NAMES_MAX);
    r->name[r->nname++] = (Name){var, value, known};
}

static inline int64_t run_arith(Run *r, const Arith *a)
{
    int64_t value;
    assert_true(arith_eval(a, run_lookup, r, &value));
    return value;
}

// 1, 0, or 1/2 if it depends on data.
static inline double run_cond(Run *r, const KExpr *cond)
{
    if (cond->kind != K_COND)
        return 0.5;
    for (int i = 0; i < cond->n; i++) {
        int64_t value;
        if (arith_eval(cond->cond[i], run_lookup, r, &value) && value < 0)
            return 0;
    }
    return 1;
}

static inline void run_value(Run *r, const KExpr *e)
{
    if (e->kind == K_COND)
        return;
    if (r->on_value)
        r->on_value(r, e);
    if (e->kind == K_OP && e->op == OP_SELECT) {
        double share = run_cond(r, e->arg[0]), weight = r->weight;
        run_value(r, e->arg[0]);
        for (int side = 0; side < 2; side++) {
            r->weight = weight * (side ? 1 - share : share);
            run_value(r, e->arg[1 + side]);
        }
        r->weight = weight;
        return;
    }
    for (int i = 0; i < e->n; i++)
        run_value(r, e->arg[i]);
}

static inline void run_block(Run *r, const Block *block);

static inline void run_for(Run *r, const Stm *stm)
{
    const int64_t *local = r->kernel->local;
    int64_t extent = run_arith(r, stm->extent), d = stm->dim, first = 0, step = 1;
    int64_t groups = run_arith(r, r->kernel->global[d]) / local[d];
    if (stm->loop == LOOP_GLB) {
        first = r->group[d] * local[d] + r->item[d];
        step = groups * local[d];
    } else if (stm->loop == LOOP_WRG) {
        first = r->group[d];
        step = groups;
    } else if (stm->loop == LOOP_LCL) {
        first = r->item[d];
        step = local[d];
    }
    for (int64_t i = first; i < extent; i += step) {
        int names = r->nname;
        run_bind(r, stm->iter, i, true);
        if (r->on_body)
            r->on_body(r, stm);
        run_block(r, &stm->body);
        r->nname = names;
    }
}

static inline void run_if(Run *r, const Stm *stm)
{
    double share = run_cond(r, stm->value), weight = r->weight;
    run_value(r, stm->value);
    r->weight = weight * share;
    if (share > 0)
        run_block(r, &stm->body);
    r->weight = weight * (1 - share);
    if (share < 1)
        run_block(r, &stm->other);
    r->weight = weight;
}

static inline void run_block(Run *r, const Block *block)
{
    int names = r->nname;
    for (int i = 0; i < block->len && r->steps++ < r->most_steps; i++) {
        const Stm *stm = block->at[i];
        if (r->on_stm)
            r->on_stm(r, stm);
        if (stm->value && stm->kind != ST_IF)
            run_value(r, stm->value);
        if (stm->kind == ST_INT) {
            int64_t value = 0;
            bool known = !stm->value && arith_eval(stm->index, run_lookup, r, &value);
            run_bind(r, stm->iter, value, known);
        } else if (stm->kind == ST_FOR) {
            run_for(r, stm);
        } else if (stm->kind == ST_IF) {
            run_if(r, stm);
        }
    }
    r->nname = names;
}

static inline void run_group(Run *r)
{
    const int64_t *local = r->kernel->local;
    for (r->item[2] = 0; r->item[2] < local[2]; r->item[2]++)
        for (r->item[1] = 0; r->item[1] < local[1]; r->item[1]++)
            for (r->item[0] = 0; r->item[0] < local[0]; r->item[0]++) {
                r->weight = 1;
                run_block(r, &r->kernel->body);
            }
}

// Every group of the kernel; returns how many there are.
static inline int64_t run_kernel(Run *r)
{
    int64_t groups[3];
    for (int d = 0; d < 3; d++)
        groups[d] = run_arith(r, r->kernel->global[d]) / r->kernel->local[d];
    for (r->group[2] = 0; r->group[2] < groups[2]; r->group[2]++)
        for (r->group[1] = 0; r->group[1] < groups[1]; r->group[1]++)
            for (r->group[0] = 0; r->group[0] < groups[0]; r->group[0]++)
                run_group(r);
    return groups[0] * groups[1] * groups[2];
}

#endif
