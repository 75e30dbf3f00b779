// SPDX-License-Identifier: Apache-2.0
//
// Where patterns of work-items may stand: items of a group inside mapWrg, those of no group
// in no other, no two loops over the same items inside each other.
//
// Codes: T026 a pattern of work-items where it cannot stand.

#include "ir/internal.h"

// The loops around: a bit for each dimension.
typedef struct {
    unsigned groups, items, global;
} Around;

typedef struct {
    Diags *diags;
    bool ok;
} Nesting;

static void refuse(Nesting *n, const Expr *e, const char *why)
{
    AutoBuf name = buf_new();
    buf_puts(&name, pattern_info[e->pattern].text);
    if (pattern_info[e->pattern].suffix == SUFFIX_PAR)
        buf_printf(&name, "%d", e->par);
    n->ok = diag_error(n->diags, e->span, "T026", "`%s` %s", name.text, why);
}

// The same loops and that of a map, which is refused where it cannot stand.
static Around inside(Nesting *n, const Expr *e, Around around)
{
    static const char *const twice = "is inside a loop over the same work-items";
    const unsigned bit = 1u << e->par;
    if (e->pattern == P_MAPGLB) {
        if (around.groups || around.items)
            refuse(n, e,
                   "is inside mapWrg, whose work-items are those of groups: mapLcl goes "
                   "over them");
        else if (around.global & bit)
            refuse(n, e, twice);
        around.global |= bit;
    } else if (e->pattern == P_MAPWRG) {
        if (around.global)
            refuse(n, e,
                   "is inside mapGlb, whose work-items are in no groups of their own");
        else if (around.groups & bit)
            refuse(n, e, "is inside a loop over the same groups");
        around.groups |= bit;
    } else if (e->pattern == P_MAPLCL) {
        if (!around.groups)
            refuse(n, e, "is outside mapWrg: it goes over the work-items of a group");
        else if (around.items & bit)
            refuse(n, e, twice);
        around.items |= bit;
    }
    return around;
}

static void check(Nesting *n, const Expr *e, Around around)
{
    if (!n->ok)
        return;
    if (expr_is(e, P_TOLOCAL) && !around.groups)
        refuse(n, e, "is outside mapWrg: local memory belongs to a group");
    if (expr_is(e, P_TOLOCAL)) // all items fill it together, also for one of them each
        around.items = 0;
    if (e->fun)
        check(n, e->fun, e->kind == E_PATTERN ? inside(n, e, around) : around);
    for (int i = 0; i < e->narg; i++)
        check(n, e->arg[i], around);
}

bool ir_check_nesting(const Function *main, Diags *diags)
{
    Nesting n = {diags, true};
    if (main->body)
        check(&n, main->body, (Around){0});
    return n.ok;
}
