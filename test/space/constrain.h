// SPDX-License-Identifier: Apache-2.0
//
// Constraints that a test gives a space and knows to be right.

#ifndef FW_TEST_CONSTRAIN_H
#define FW_TEST_CONSTRAIN_H

#include "space/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void constrain(Space *space, const char *text)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    if (!space_constrain(space, text, &diags))
        fail_msg("%s: %s", text, diags.list.at[0].message);
    arena_free(arena);
}

#endif
