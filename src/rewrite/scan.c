// SPDX-License-Identifier: Apache-2.0
//
// Prefixes in parts: each part has its own prefixes, and to these comes what all parts
// before it give, which is a shorter prefix.
//
//   source  Blelloch, "Prefix sums and their applications", 1990; Merrill and Garland,
//           "Single-pass parallel prefix scan with decoupled look-back", 2016 (the three
//           phases that it is compared with)

#include "rewrite/internal.h"

Expr *fold_like(Rewrite *rw, const Expr *scan, Pattern p, Expr *in)
{
    return make_reduce(rw, p, copy_of(rw, scan->fun), copy_of(rw, scan->arg[0]), in);
}

// What is before each part, from the prefixes of all parts, and one more at the end.
static Expr *before_parts(Rewrite *rw, const Expr *scan, Expr *prefixes)
{
    const Arith *both[] = {num(rw, 1), num(rw, 0)};
    return make_pad(rw, 1, both, start_value(rw, scan->arg[0]), prefixes);
}

// Whole arrays ----------------------------------------------------------------------------

const Expr *scan_read(const Expr *expr)
{
    const Expr *in = is_dims(expr, P_MAP, 1) ? expr->arg[0] : expr, *found = NULL;
    if (expr_is(in, P_SCAN))
        return in;
    for (int i = 0; in != expr && expr_is(in, P_ZIP) && i < in->narg; i++) {
        if (found && expr_is(in->arg[i], P_SCAN))
            return NULL;
        found = expr_is(in->arg[i], P_SCAN) ? in->arg[i] : found;
    }
    return found;
}

typedef Expr *Prefixes(Rewrite *rw, const Expr *scan, Expr *part, Expr *before);

// Prefixes of a part, each behind what is before the part.
static Expr *behind_value(Rewrite *rw, const Expr *scan, Expr *prefixes, Expr *before)
{
    Param *v = fresh(rw, "v");
    Expr *all[] = {before, use(rw, v)};
    Expr *f = call_all(rw, scan->fun, (const Expr *const *)all);
    return map_by(rw, 1, v, f, prefixes);
}

static Expr *behind(Rewrite *rw, const Expr *scan, Expr *part, Expr *before)
{
    return behind_value(rw, scan, fold_like(rw, scan, P_SCAN, part), before);
}

// The prefixes of a part begin with what is before it.
static Expr *going_on(Rewrite *rw, const Expr *scan, Expr *part, Expr *before)
{
    return make_reduce(rw, P_SCAN, copy_of(rw, scan->fun), before, part);
}

// What a map that reads the prefixes does with those of a part.
static Expr *read_part(Rewrite *rw, const Expr *at, const Expr *scan, Param *part,
                       Expr *prefixes)
{
    if (at == scan)
        return prefixes;
    const Expr *zip = at->arg[0];
    if (zip == scan)
        return make_map(rw, 1, copy_of(rw, at->fun), prefixes);
    Expr **arg = NEW_ARRAY(rw->ir->arena, Expr *, zip->narg);
    int other = 2;
    for (int i = 0; i < zip->narg; i++)
        arg[i] = zip->arg[i] == scan ? prefixes : get_of(rw, part, other++);
    return make_map(rw, 1, copy_of(rw, at->fun), make_zip(rw, 1, arg, zip->narg));
}

static Expr *totals_of(Rewrite *rw, const Expr *scan, int64_t n)
{
    Param *part = fresh(rw, "part");
    Expr *each = fold_like(rw, scan, P_REDUCE, use(rw, part));
    return map_by(rw, 1, part, each,
                  split_unread(rw, copy_of(rw, scan->arg[1]), len_of(scan, 0), n));
}

// Parts of n of what is folded, with an element of `second` each, and of what else a map
// that reads the prefixes reads.
static Expr *zip_parts(Rewrite *rw, const Expr *at, const Expr *scan, int64_t n,
                       Expr *second)
{
    const Arith *len = len_of(scan, 0);
    const Expr *in = at == scan ? scan : at->arg[0];
    Expr **all = NEW_ARRAY(rw->ir->arena, Expr *, in->narg + 2);
    int nall = 2;
    all[0] = split_unread(rw, copy_of(rw, scan->arg[1]), len, n);
    all[1] = second;
    for (int i = 0; in != scan && i < in->narg; i++)
        if (in->arg[i] != scan)
            all[nall++] = split_unread(rw, copy_of(rw, in->arg[i]), len, n);
    return make_zip(rw, 1, all, nall);
}

// What a map that reads the prefixes does with them in each part, joined.
static Expr *join_parts(Rewrite *rw, const Expr *at, const Expr *scan, int64_t n,
                        Param *own, Expr *prefixes, Expr *parts)
{
    const Arith *k = missing(rw, len_of(scan, 0), n);
    Expr *body = make_lambda(rw, own, read_part(rw, at, scan, own, prefixes));
    return cut(rw, at, &k, 1, make1(rw, P_JOIN, make_map(rw, 1, body, parts)));
}

// By parts of n: what each gives, what is before each, and the map that reads them all.
static Expr *by_parts(Rewrite *rw, const Expr *at, int64_t n, Prefixes *prefixes)
{
    const Expr *scan = scan_read(at);
    if (!scan || n < 1 || n > 1 << 20 || !folds_by_parts(scan))
        return NULL;
    const Arith *parts = arith_ceil_div(rw->ir->arith, len_of(scan, 0), num(rw, n));
    Param *total = fresh(rw, "total"), *before = fresh(rw, "before"),
          *own = fresh(rw, "part");
    Expr *second = make_sized(rw, P_TAKE, parts, before_parts(rw, scan, use(rw, before)));
    Expr *of_part = prefixes(rw, scan, get_of(rw, own, 0), get_of(rw, own, 1));
    Expr *out =
        join_parts(rw, at, scan, n, own, of_part, zip_parts(rw, at, scan, n, second));
    return expr_let(
        rw->ir, total, totals_of(rw, scan, n),
        expr_let(rw->ir, before, fold_like(rw, scan, P_SCAN, use(rw, total)), out));
}

// In one pass -----------------------------------------------------------------------------

enum { LEVELS_MOST = 16 };

// Words that are zero, for n rows each: those of each part, of each block of at least four
// parts, and so on (look_back.c). Turned where neighbours in memory are of neighbouring
// rows.
static Expr *room_for(Rewrite *rw, const Expr *scan, int64_t parts, const Arith *n,
                      bool turned)
{
    const Arith *words = num(rw, type_pieces(scan->type->elem)),
                *m = num(rw, parts + parts / 3 + LEVELS_MOST);
    const Arith *all = arith_mul(rw->ir->arith, arith_mul(rw->ir->arith, n, m), words);
    Expr *zero = cast_value(rw, S_LONG, S_INT, expr_literal(rw->ir, 0, false));
    Expr *room = map_by(rw, 1, fresh(rw, "i"), zero, counting(rw, all));
    room = make_sized(rw, P_SPLIT, turned ? n : m, make_sized(rw, P_SPLIT, words, room));
    return turned ? make1(rw, P_TRANSPOSE, room) : room;
}

typedef struct {
    Expr *totals, *room; // of the row
    int64_t n;
} OnePass;

static Expr *look_back(Rewrite *rw, const Expr *scan, const OnePass *pass, Param *part,
                       Expr *own)
{
    Expr *arg[] = {copy_of(rw, scan->arg[0]), pass->totals, own, get_of(rw, part, 1),
                   pass->room};
    return expr_pattern(rw->ir, P_LOOKBACK, 1, 0, NULL, copy_of(rw, scan->fun), arg,
                        COUNTOF(arg));
}

// The prefixes of a part behind what the groups before it tell: all are found first.
static Expr *behind_others(Rewrite *rw, const Expr *scan, const OnePass *pass, Param *part)
{
    Param *s = fresh(rw, "s"), *before = fresh(rw, "before");
    Expr *last = expr_at(rw->ir, use(rw, s), expr_num(rw->ir, num(rw, pass->n - 1)));
    Expr *look = look_back(rw, scan, pass, part, last);
    Expr *own = fold_like(rw, scan, P_SCAN, get_of(rw, part, 0));
    Expr *all = behind_value(rw, scan, use(rw, s), use(rw, before));
    return expr_let(rw->ir, s, own, expr_let(rw->ir, before, look, all));
}

// They begin with what the items before tell. An item reads its part twice, if it cannot
// hold it.
static Expr *from_others(Rewrite *rw, const Expr *scan, const OnePass *pass, Param *part)
{
    Param *own = fresh(rw, "own"), *before = fresh(rw, "before");
    Expr *look =
        look_back(rw, scan, pass, part, fold_like(rw, scan, P_REDUCE, use(rw, own)));
    Expr *all = going_on(rw, scan, use(rw, own), use(rw, before));
    return expr_let(rw->ir, own, get_of(rw, part, 0), expr_let(rw->ir, before, look, all));
}

static bool may_look_back(Rewrite *rw, const Expr *scan, int64_t n, int64_t *parts)
{
    return scan && n >= 1 && n <= 1 << 20 && at_host(rw) && folds_by_parts(scan) &&
           is_exchanged(scan->type->elem) &&
           arith_is_const(arith_ceil_div(rw->ir->arith, len_of(scan, 0), num(rw, n)),
                          parts);
}

static Expr *in_one_pass(Rewrite *rw, const Expr *at, const Expr *scan, const OnePass *pass,
                         int64_t parts, bool items)
{
    Param *part = fresh(rw, "part");
    Expr *prefixes = (items ? from_others : behind_others)(rw, scan, pass, part);
    Expr *all = zip_parts(rw, at, scan, pass->n, counting(rw, num(rw, parts)));
    return join_parts(rw, at, scan, pass->n, part, prefixes, all);
}

// With the prefixes of each row, by groups or by work-items.
static Expr *rows_in_one_pass(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t parts, n = args->at[0];
    const Expr *row = at->fun->arg[0], *scan = scan_read(row);
    const Param *of = at->fun->params[0];
    if (at->fun->nparam > 1 || !may_look_back(rw, scan, n, &parts) ||
        expr_mentions(scan->fun, of))
        return NULL;
    Param *totals = fresh(rw, "totals"), *room = fresh(rw, "room"), *t = fresh(rw, "row"),
          *v = fresh(rw, "row");
    Expr *total = expr_replace(rw->ir, totals_of(rw, scan, n), of, use(rw, v));
    Expr *in[] = {copy_of(rw, at->arg[0]), use(rw, totals), use(rw, room)};
    Expr *own[3];
    for (int i = 0; i < COUNTOF(own); i++)
        own[i] = get_of(rw, t, i);
    OnePass pass = {own[1], own[2], n};
    Expr *body = in_one_pass(rw, row, scan, &pass, parts, args->at[1] == 1);
    body = make_lambda(rw, t, expr_replace(rw->ir, body, of, own[0]));
    return expr_let(rw->ir, totals, map_by(rw, 1, v, total, copy_of(rw, at->arg[0])),
                    expr_let(rw->ir, room,
                             room_for(rw, scan, parts, len_of(at, 0), args->at[1] == 1),
                             make_map(rw, 1, body, make_zip(rw, 1, in, COUNTOF(in)))));
}

static Expr *whole_in_one_pass(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t parts, n = args->at[0];
    const Expr *scan = scan_read(at);
    if (!may_look_back(rw, scan, n, &parts) || args->at[1])
        return NULL;
    Param *totals = fresh(rw, "totals"), *room = fresh(rw, "room");
    Expr *words = expr_at(rw->ir, use(rw, room), expr_num(rw->ir, num(rw, 0)));
    OnePass pass = {use(rw, totals), words, n};
    return expr_let(rw->ir, totals, totals_of(rw, scan, n),
                    expr_let(rw->ir, room, room_for(rw, scan, parts, num(rw, 1), false),
                             in_one_pass(rw, at, scan, &pass, parts, false)));
}

Expr *rule_scanOnePass(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    NamedValues stages = {.n = 0};
    const bool rows = !scan_read(at) && is_dims(at, P_MAP, 1);
    const Expr *x = rows || scan_read(at) ? without_stages(rw, at, &stages) : NULL;
    Expr *passes = !x     ? NULL
                   : rows ? rows_in_one_pass(rw, x, args)
                          : whole_in_one_pass(rw, x, args);
    return passes ? with_names(rw, &stages, passes) : NULL;
}

Expr *rule_scanSplit(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return by_parts(rw, at, args->at[0], behind);
}

Expr *rule_scanResume(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    return by_parts(rw, at, args->at[0], going_on);
}

// Prefixes without the last, behind where they begin: a prefix of elements moved by one.
Expr *rule_scanShift(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    const Expr *take =
        is_dims(at, P_PAD, 1) && at->mode == PAD_CONSTANT ? at->arg[1] : NULL;
    const Expr *scan = take && is_dims(take, P_TAKE, 1) ? take->arg[0] : NULL;
    if (!scan || !expr_is(scan, P_SCAN) || at->num[0] != num(rw, 1) ||
        at->num[1] != num(rw, 0) || !expr_equal(at->arg[0], scan->arg[0]) ||
        !folds_by_parts(scan))
        return NULL;
    Expr *first = make_sized(rw, P_TAKE, take->num[0], copy_of(rw, scan->arg[1]));
    return fold_like(rw, scan, P_SCAN,
                     make_pad(rw, 1, at->num, copy_of(rw, at->arg[0]), first));
}

Expr *rule_scanAsMap(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    if (!expr_is(at, P_SCAN))
        return NULL;
    Param *part = fresh(rw, "part");
    Expr *each = fold_like(rw, at, P_SCAN, use(rw, part));
    Expr *whole = make_sized(rw, P_SPLIT, len_of(at, 0), copy_of(rw, at->arg[1]));
    return make1(rw, P_JOIN, map_by(rw, 1, part, each, whole));
}

// By the items of a group -----------------------------------------------------------------

// So few that one item takes them, and the parts into which more are split.
enum { ALONE = 16, FAN = 16 };

typedef struct {
    const Expr *scan;
    NamedValues names;
} Levels;

static Expr *level(Rewrite *rw, Levels *t, const char *name, Expr *value)
{
    return name_value(rw, &t->names, name, make1(rw, P_TOLOCAL, value));
}

// Each part of n by an item. An odd n keeps the items apart in the banks of local memory.
static Expr *own_prefixes(Rewrite *rw, Levels *t, Expr *in, int64_t len, int64_t n)
{
    Param *part = fresh(rw, "part");
    Expr *each = fold_like(rw, t->scan, P_SCANSEQ, use(rw, part));
    Expr *parts = split_unread(rw, in, num(rw, len), n);
    return level(rw, t, "own",
                 make(rw, P_MAPLCL, 1, NULL, make_lambda(rw, part, each), parts));
}

// The map that puts each part's own prefixes behind what is before the part.
static Expr *shifted(Rewrite *rw, const Expr *scan, Pattern p, Expr *own, Expr *prefixes,
                     int64_t len, int64_t n)
{
    Param *i = fresh(rw, "i");
    Expr *part = make_op(rw, OP_DIV, use(rw, i), expr_literal(rw->ir, (double)n, false));
    Expr *all[] = {expr_at(rw->ir, before_parts(rw, scan, prefixes), part),
                   expr_at(rw->ir, make1(rw, P_JOIN, own), use(rw, i))};
    Expr *f = call_all(rw, scan->fun, (const Expr *const *)all);
    return make(rw, p, 1, NULL, make_lambda(rw, i, f), counting(rw, num(rw, len)));
}

static Expr *prefixes_of(Rewrite *rw, Levels *t, Expr *in, int64_t len)
{
    if (len <= ALONE)
        return make1(rw, P_JOIN, own_prefixes(rw, t, in, len, len));
    int64_t n = FAN | 1;
    Expr *own = own_prefixes(rw, t, in, len, n);
    Param *part = fresh(rw, "part");
    Expr *last = expr_at(rw->ir, use(rw, part), expr_num(rw->ir, num(rw, n - 1)));
    Expr *totals = map_by(rw, 1, part, last, own);
    Expr *prefixes = prefixes_of(rw, t, totals, (len + n - 1) / n);
    return level(rw, t, "before",
                 shifted(rw, t->scan, P_MAPLCL, copy_of(rw, own), prefixes, len, n));
}

Expr *rule_scanLcl(Rewrite *rw, const Expr *at, const RuleArgs *args)
{
    int64_t l = args->at[0], len;
    if (!expr_is(at, P_SCAN) || l < 1 || l > 1 << 16 || !by_all_items(rw) ||
        !arith_is_const(len_of(at, 0), &len) || !folds_by_parts(at))
        return NULL;
    Levels t = {.scan = at};
    int64_t n = (len + l - 1) / l | 1;
    NamedValues in = {0};
    Param *part = fresh(rw, "part");
    Expr *own = own_prefixes(rw, &t, name_inputs(rw, &in, at->arg[1]), len, n);
    Expr *last = expr_at(rw->ir, use(rw, part), expr_num(rw->ir, num(rw, n - 1)));
    Expr *totals = map_by(rw, 1, part, last, own);
    Expr *prefixes = prefixes_of(rw, &t, totals, (len + n - 1) / n);
    Expr *body = shifted(rw, at, P_MAP, copy_of(rw, own), prefixes, len, n);
    return with_names(rw, &in, with_names(rw, &t.names, body));
}
