// SPDX-License-Identifier: Apache-2.0
//
// Programs opened for tests of their derivations.

#ifndef FW_TEST_DERIVE_OPENED_H
#define FW_TEST_DERIVE_OPENED_H

#include "tune/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const DeviceInfo gpu = {
    .max_group = 1024, .max_item = {1024, 1024, 64}, .local_bytes = 49152, .warp = 32};

typedef struct {
    Arena *arena;
    Diags diags;
    Problem *problem;
    Derivation *derivation;
} Opened;

static void fail_with(const Opened *x, const char *what)
{
    Buf text = buf_new();
    diags_print(&text, &x->diags);
    fail_msg("%s: %s", what, text.text);
}

static void open_bound(Opened *x, const char *what, const DeviceInfo *device)
{
    Binding binding[8];
    int n = 0;
    if (!x->problem)
        fail_with(x, what);
    for (; n < x->problem->program->sizes.len; n++)
        binding[n] = (Binding){x->problem->program->sizes.at[n].name, n == 0 ? 37 : 48};
    if (!problem_bind(x->problem, binding, n, &x->diags) ||
        !(x->derivation = derive_new(x->problem->bound, device, &x->diags)))
        fail_with(x, what);
}

static void open_on(Opened *x, const char *text, const DeviceInfo *device)
{
    x->arena = arena_new();
    x->diags = (Diags){.arena = x->arena};
    x->problem = problem_parse("test", text, &x->diags);
    open_bound(x, text, device);
}

static void open_text(Opened *x, const char *text)
{
    open_on(x, text, &gpu);
}

static void close_all(Opened *x)
{
    derive_free(x->derivation);
    problem_free(x->problem);
    arena_free(x->arena);
}

#endif
