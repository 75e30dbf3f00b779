// SPDX-License-Identifier: Apache-2.0
//
// The parameters of reductions and folds of rows: who folds a row, and how many neighbours
// an item takes at a time.

#include "derive/derive_parts.h"

// Besides what is held, a group needs a word an item for its folds; and more where local
// memory is asked for by the launch, whose arrays begin at multiples of 1,024 bytes.
int64_t fold_room(const Derivation *d)
{
    enum { WORDS = 1024 * sizeof(double), DECLARED = 48 << 10, BETWEEN = 6 << 10 };
    int64_t room = d->device.local_bytes - WORDS;
    return room <= DECLARED ? room : room - BETWEEN;
}

int64_t steps_room(const Derivation *d)
{
    return d->device.is_cpu ? INT64_MAX : fold_room(d);
}

// What an item needs beyond that word: its elements, and an eighth of them at the next
// levels.
static int64_t fold_more(const Derivation *d)
{
    return MAX(d->shape.item_bytes * 9 / 8 - (int)sizeof(double), 0);
}

bool has_folds(const Shape *shape)
{
    return shape->reduction || shape->rows || shape->scan || shape->columns;
}

// The rows that a group does side by side have room in its local memory; together: all
// items do one row.
static void constrain_rows(Derivation *d, bool together, Diags *diags)
{
    AutoBuf bytes = buf_new(); // of a row
    buf_printf(&bytes, "%lld", (long long)d->shape.scan_bytes);
    if (d->shape.row_bytes)
        buf_printf(&bytes, " + (hold == 'local') * %lld", (long long)d->shape.row_bytes);
    if (fold_more(d))
        buf_printf(&bytes, " + lx * %s%lld", together ? "ly * " : "",
                   (long long)fold_more(d));
    constrain(d, diags, "fold == 'item' or %s(%s) <= %lld", together ? "" : "ly * ",
              bytes.text, (long long)fold_room(d));
}

// What a group has of a row at least, and with what it may hold beside that.
static void print_held(const Derivation *d, Buf *bytes)
{
    const int64_t must = d->shape.scan_bytes, more = d->shape.row_bytes - must;
    buf_printf(bytes, "%lld", (long long)must);
    if (more > 0)
        buf_printf(bytes, " + (hold == 'local') * %lld", (long long)more);
}

// Where steps of loops leave no room for what more items need, few share them.
static void constrain_steps(Derivation *d, Diags *diags)
{
    enum { FEW = 256 };
    AutoBuf bytes = buf_new();
    print_held(d, &bytes);
    if (d->shape.steps_words)
        constrain(d, diags, "fold == 'item' or lx * ly <= %d or ly * (%s) <= %lld", FEW,
                  bytes.text, (long long)(fold_room(d) - d->shape.steps_words));
}

static void add_row_params(Derivation *d, Diags *diags)
{
    const bool loops = language_is(d->device.target, LANGUAGE_C);
    const bool together = d->shape.product && !loops;
    // Items that are a loop cannot wait for each other.
    const bool threads = !together && !loops && d->shape.short_row < 2048;
    if (threads || fold_more(d))
        constrain_rows(d, together, diags);
    if (together)
        return;
    constrain_steps(d, diags);
    if (!threads)
        space_constrain(d->space, "fold == 'item' or ly == 1", diags);
    else if (d->shape.dims == 1)
        space_constrain(d->space, "fold != 'item' or ly == 1", diags);
    if (d->shape.dims > 2)
        space_constrain(d->space, "fold == 'item' or lz == 1", diags);
    if (d->shape.dims == 1 && d->shape.rectangular)
        space_constrain(d->space, "fold == 'item' or (bx == 1 and cx == 1)", diags);
}

int64_t line_items(const Derivation *d, const Point *point)
{
    int64_t items = derive_number(d, point, "l", 0);
    for (int x = 1; x < DIMS_MAX && d->shape.product; x++)
        items *= MAX(derive_number(d, point, "l", x), 1);
    return items;
}

bool by_groups(const Derivation *d, const Point *point)
{
    return derive_word(d, point, "fold", "group") || derive_word(d, point, "fold", "near");
}

// Parts of a product's fold fill a machine whose groups it leaves idle, as far as what they
// give is little; more of them leave each too little to do.
static bool has_part(const Shape *s, int64_t parts)
{
    enum { TERMS_LEAST = 128, OUTPUTS_MOST = 1 << 24 };
    return parts * (s->scan_columns ? 8 : 16) <= s->fold ||
           (parts * TERMS_LEAST <= s->split && (double)parts * s->least <= OUTPUTS_MOST &&
            (double)parts * s->most <= INT32_MAX);
}

// More than a few would be many for a kernel that joins them; but an item has each of a
// part's columns, and some thousand parts of 64 columns fill a machine.
static int64_t parts_most(const Shape *s)
{
    enum { MOST = 256, OF_PREFIXES = 1024, OF_FEW = 4096, FEW = 1024 };
    const bool few = s->columns && s->folds && s->folds < FEW;
    return few ? OF_FEW : s->scan_columns ? OF_PREFIXES : MOST;
}

void add_parts(Derivation *d)
{
    static const int64_t all[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
    const int64_t most = parts_most(&d->shape);
    int64_t parts[COUNTOF(all)];
    int n = 0;
    for (int i = 0; i < COUNTOF(all) && all[i] <= most; i += d->shape.product ? 1 : 2)
        if (!n || has_part(&d->shape, all[i]))
            parts[n++] = all[i];
    if (n > 1 && space_find(d->space, "parts") < 0)
        space_add_ints(d->space, "parts", parts, n);
}

static void add_prefix_param(Derivation *d, Diags *diags)
{
    const bool parts = space_find(d->space, "parts") >= 0;
    const bool share = space_find(d->space, "share") >= 0;
    if (!d->device.in_order || !has_items(d) || d->shape.product || !(parts || share))
        return;
    space_add_words(d->space, "prefix", (const char *const[]){"parts", "lookback"}, 2);
    constrain(d, diags, "prefix == 'parts'%s%s", share ? " or share > 0" : "",
              parts ? " or parts > 1" : "");
    for (int x = 1; x < d->shape.dims; x++) // a group that waits does not wait for itself
        constrain(d, diags, "prefix == 'parts' or l%c == 1", 'x' + x);
}

// A processor goes through a million elements about as fast as through parts of them. Of
// wide elements a group of some device cannot hold a part.
bool has_long_scan(const Derivation *d)
{
    enum { LONG = 1 << 15, LONG_CPU = 1 << 22, WIDE = 16 };
    return d->shape.scan_most > (d->device.is_cpu ? LONG_CPU : LONG) &&
           d->shape.scan <= WIDE;
}

// Both what a group reads and its own prefixes in local memory. Items share no part of
// fewer elements than SHARED_LEAST.
static void add_scan_params(Derivation *d, Diags *diags)
{
    space_add_ints(d->space, "share", (const int64_t[]){0, 4, 8, 16, 32}, 5);
    constrain(d, diags, "share == 0 or lx%s * share >= %d", d->shape.product ? " * ly" : "",
              SHARED_LEAST);
    constrain(d, diags,
              "share == 0 or (lx%s * share * (1 + (hold == 'local')) + %d) * %lld <= %lld",
              d->shape.product ? " * ly" : "", SCAN_MORE, (long long)d->shape.scan,
              (long long)fold_room(d));
    if (has_long_scan(d))
        space_constrain(d->space, "share > 0", diags);
}

static void add_turns(Derivation *d)
{
    static const int64_t turns[] = {1, 8, 16, 32, 64, 128, 256, 1024};
    const Pipeline *p = d->pipeline;
    bool folds = false;
    for (int v = 0; p && v < p->script.ncall && p->ncover > 1; v++)
        folds |= may_share_pass(d, p->stage[v].expr);
    if (folds)
        space_add_ints(d->space, "turns", turns, COUNTOF(turns));
}

static void add_join(Derivation *d, Diags *diags)
{
    space_add_words(d->space, "join", (const char *const[]){"tree", "lanes"}, 2);
    space_constrain(d->space, "join == 'tree' or (fold != 'item' and lx % 32 == 0)", diags);
}

// Rows of arrays that a group holds begin in different banks; a processor has none.
static void add_banks(Derivation *d, Diags *diags)
{
    enum { WORDS = 2 }; // of the shortest rows, to which one is added
    AutoBuf bytes = buf_new();
    if (d->device.is_cpu || !d->shape.held_rows)
        return;
    space_add_words(d->space, "banks", (const char *const[]){"dense", "apart"}, 2);
    print_held(d, &bytes);
    constrain(d, diags, "banks == 'dense' or ly * (%s) * %d <= %lld", bytes.text, WORDS + 1,
              (long long)fold_room(d) * WORDS);
}

void add_fold_params(Derivation *d, Diags *diags)
{
    const Shape *shape = &d->shape;
    add_turns(d);
    space_add_ints(d->space, "lanes", (const int64_t[]){1, 2, 4}, 3);
    bool fits = shape->row_bytes || !shape->long_rows;
    if (shape->rows)
        space_add_words(d->space, "fold", (const char *const[]){"item", "group", "near"},
                        2 + (shape->columns && shape->lines));
    if (shape->rows || shape->scan || shape->order || shape->columns) {
        add_parts(d);
        space_add_words(d->space, "hold", (const char *const[]){"again", "local"},
                        1 + (fits || shape->scan));
    }
    if (shape->rows)
        add_row_params(d, diags);
    // Rows beside a product may be in registers already.
    if (shape->rows && d->device.shuffle && d->device.lanes == 32 && !d->shape.product)
        add_join(d, diags);
    add_banks(d, diags);
    if (shape->scan)
        add_scan_params(d, diags);
    if (shape->scan || shape->scan_columns)
        add_prefix_param(d, diags);
    if (!shape->rows && !shape->scan && !shape->order)
        return;
    if (shape->scan && !fits)
        space_constrain(d->space, "share > 0 or hold == 'again'", diags);
    if (shape->order)
        return;
    // Who holds something, and who takes neighbours.
    const char *group = !shape->scan  ? "fold != 'item'"
                        : shape->rows ? "(fold != 'item' or share > 0)"
                                      : "share > 0";
    constrain(d, diags, "%s or hold == 'again'", group);
    if (!shape->reduction)
        constrain(d, diags, "%s or lanes == 1", group);
}

// In a single accumulator 2^26 floats near 1 stop growing at half of their sum.
int64_t longest_chain(int64_t terms)
{
    enum {
        CHAIN = 1 << 15,
        PLAIN_ITEMS = 64 * 64
    }; // those of the plain point on a processor
    return MAX(CHAIN, terms / PLAIN_ITEMS);
}

// A fold that keeps its order has its parts in local memory where there are enough of them.
void add_group_params(Derivation *d, Diags *diags)
{
    static const int64_t groups[] = {1, 4, 16, 64, 256, 1024, 2048, 4096, 16384, 65536};
    if (d->shape.keyed.keys && !d->shape.order)
        add_keyed_groups(d);
    else
        space_add_ints(d->space, "groups", groups, d->shape.order ? 10 : 8);
    if (d->shape.whole > longest_chain(d->shape.whole))
        constrain(d, diags, "groups * lx * lanes * %lld >= %lld",
                  (long long)longest_chain(d->shape.whole), (long long)d->shape.whole);
    if (fold_more(d))
        constrain(d, diags, "lx * %lld <= %lld", (long long)fold_more(d),
                  (long long)fold_room(d));
    if (!d->shape.order)
        return;
    constrain(d, diags, "hold == 'again' or (%lld // groups + lx * lanes) * %lld <= %lld",
              (long long)d->shape.ordered, (long long)d->shape.order,
              (long long)fold_room(d));
}

static void choose_groups(const Derivation *d, Point *point)
{
    for (int64_t groups = 1024; groups <= 65536; groups *= 4)
        if (set_number(d, point, "groups", groups) && space_valid(d->space, point))
            return;
    set_values(d, point, "groups=1024 hold=again");
}

// Where that is too much for a group, less is held, and then there are fewer items.
static void choose_share(const Derivation *d, Point *point, int64_t most)
{
    const Point before = *point;
    for (int way = 0; way < 4; way++) {
        if (way)
            set_values(d, point, "hold=again");
        if (way > 1)
            set_number(d, point, "lx", 256 >> way);
        for (int64_t share = most; share >= 4; share /= 2)
            if (set_number(d, point, "share", share) && space_valid(d->space, point))
                return;
    }
    *point = before;
    set_number(d, point, "share", 0);
}

enum { ROW_OF_WARP = 64 }; // elements that are worth a warp

static bool joins_lanes(const Derivation *d)
{
    return space_find(d->space, "join") >= 0 && d->shape.row >= ROW_OF_WARP;
}

static void set_join(const Derivation *d, Point *point)
{
    if (joins_lanes(d) && space_set(d->space, point, "join", "lanes") &&
        !space_valid(d->space, point))
        space_set(d->space, point, "join", "tree");
}

// As many items for a row as have so many elements of it each, and rows beside it that fill
// a group.
static void set_row_items(const Derivation *d, Point *point, int64_t each)
{
    int64_t items = joins_lanes(d) ? 32 : 8, most = MIN(d->device.max_group, 1024);
    while (items < most && items * each < d->shape.row)
        items *= 2;
    set_number(d, point, "lx", items);
    for (int64_t rows = 256 / MIN(items, 256); rows > 1; rows /= 2)
        if (set_number(d, point, "ly", rows) && space_valid(d->space, point))
            return;
    set_number(d, point, "ly", 1);
}

// What an item reads for several elements it reads once, and keeps what is theirs.
static void set_block(const Derivation *d, Point *point, int64_t block)
{
    if (!d->shape.same || d->device.is_cpu)
        return;
    set_values(d, point, "inner=unroll bx=%d vec=%d", (int)block, (int)MIN(block, 4));
    if (space_valid(d->space, point))
        return;
    set_values(d, point, "bx=1 vec=1");
    if (!space_valid(d->space, point))
        space_set(d->space, point, "inner", "loop");
}

// Groups of a whole fold: where its length is known, no more than have an element for each
// of 256 items, and one for what it does faster than another kernel joins parts. (H200, two
// folds that read a thousand to eight thousand elements: 11 to 14 us, in parts 18 to 19.)
static int groups_for(const Derivation *d, int most)
{
    enum { ONE_GROUP = 1 << 15 };
    const bool known = d->shape.whole && sizes_are_known(d);
    int64_t groups = known ? 1 : most;
    if (known && (double)d->shape.whole + d->shape.whole_work <= ONE_GROUP)
        return 1;
    while (groups < most && groups * 256 < d->shape.whole)
        groups *= 4;
    return (int)MIN(groups, most);
}

bool derive_fold_first(const Derivation *d, int i, Point *point)
{
    // Measured on an H200: reductions of 2^26 elements, rows of 2^14. Items of a row take
    // so many times their lanes of it.
    static const struct {
        int lx, lanes, groups, share, parts, times; // parts: of columns
        const char *hold;
    } first[] = {{256, 4, 1024, 16, 16, 4, "local"},
                 {256, 4, 2048, 16, 64, 1, "again"},
                 {128, 4, 4096, 32, 4, 2, "local"},
                 {512, 2, 2048, 16, 64, 4, "again"}};
    if (!has_folds(&d->shape) || i >= COUNTOF(first))
        return false;
    derive_single(d, point);
    set_values(d, point, "lx=%d ly=1 lanes=%d groups=%d fold=group hold=%s", first[i].lx,
               first[i].lanes, groups_for(d, first[i].groups), first[i].hold);
    if (d->shape.rows && !d->shape.columns)
        set_row_items(d, point, (int64_t)first[i].lanes * first[i].times);
    if (d->shape.columns) {
        set_values(d, point, "fold=%s hold=again lanes=1",
                   d->shape.lines ? "near" : "item");
        if (!d->shape.scan_columns) // their plain parts are the largest that items hold
            set_number(d, point, "parts", first[i].parts);
        set_block(d, point, i % 2 ? 8 : 4);
    }
    if (!d->shape.rows || d->shape.long_rows || d->shape.whole_scan)
        choose_share(d, point, first[i].share);
    set_join(d, point);
    if (d->shape.order && !space_valid(d->space, point))
        choose_groups(d, point);
    return true;
}

enum { HELD_MOST = 64 }; // elements of a part that an item can hold in registers

// Parts of a fold that fill a GPU: of items where these read neighbouring columns, else of
// groups, which have enough to do each.
int64_t parts_to_fill(const Shape *s)
{
    const int64_t wanted = s->columns ? 1 << 18 : 1 << 10, most = parts_most(s);
    const int64_t least = s->scan_columns ? 8 : s->columns ? 16 : 2048;
    // Beside a product no part of a prefix looks back: an item goes through all they give.
    const bool through = s->product && s->scan_columns;
    int64_t parts = 1;
    for (int64_t n = 4;
         n <= most && n * (through ? n : least) <= s->fold &&
         (s->folds * n < 4 * wanted || (s->scan_columns && s->fold > n * HELD_MOST / 8));
         n *= 4)
        parts = n;
    return parts;
}

bool own_parts(const Derivation *d)
{
    return d->shape.product && !d->device.is_cpu && d->program->math != MATH_STRICT;
}

static void choose_parts(const Derivation *d, Point *point)
{
    int64_t parts = parts_to_fill(&d->shape);
    while (parts > 1 && !set_number(d, point, "parts", parts))
        parts /= 4;
}

// Long prefixes that a group holds leave room for few groups, which have more items then.
// (By an estimate for an H200, prefixes of 4,096 rows of 24,000 ints: 530 us by 256 items,
// 288 by 1,024; of 5,000: 68 us by 256, 73 by 512.)
static void fill_group(const Derivation *d, Point *point)
{
    enum { EACH = 32 };
    const Point before = *point;
    const bool parts =
        space_find(d->space, "share") >= 0 && derive_param(d, point, "share");
    if (!d->shape.scan_bytes || d->shape.held || d->shape.steps_words || parts ||
        d->shape.row <= EACH * 256)
        return;
    set_row_items(d, point, EACH);
    if (!space_valid(d->space, point))
        *point = before;
}

static void fold_plain_parts(const Derivation *d, Point *point)
{
    const bool whole = has_long_scan(d);
    if (whole && (d->device.is_cpu || d->shape.product))
        choose_share(d, point, 16);
    if (!has_folds(&d->shape) || d->device.is_cpu)
        return;
    if (d->shape.product) { // its groups do the rows beside it, too
        set_number(d, point, "groups", MAX(groups_for(d, 1024), 64));
        space_set(d->space, point, "fold", d->shape.columns ? "near" : "group");
        if (!space_valid(d->space, point))
            space_set(d->space, point, "fold", "item");
        return;
    }
    set_values(d, point, "lx=%d ly=1 groups=%d", (int)MIN(256, d->device.max_group),
               groups_for(d, 1024));
    choose_parts(d, point);
    if (d->shape.whole_scan || (d->shape.columns && d->shape.long_rows))
        choose_share(d, point, 16);
    if (d->shape.columns) {
        if (d->shape.lines)
            space_set(d->space, point, "fold", "near");
        set_join(d, point);
        set_block(d, point, 4);
        return;
    }
    space_set(d->space, point, "fold", "group");
    // (H200, ten programs with elements of 512 to 1,024 numbers: with eight or sixteen an
    // item up to 2.1 times as fast as with four, with sixteen 1.7 times as slow for one. By
    // an estimate, loops of 24 to 64 states: with two an item 0.6 to 1.2 of the time.)
    space_set(d->space, point, "banks", "apart");
    if (d->shape.held)
        set_row_items(d, point, d->shape.row <= INNER_MOST ? 2 : 8);
    else if (d->shape.rows && d->shape.row < 512 && !d->shape.near)
        set_row_items(d, point, joins_lanes(d) ? 16 : 2);
    // An item reads neighbours, which lie far apart for the others.
    if (d->shape.near || d->shape.scan || d->shape.order)
        space_set(d->space, point, "hold", "local");
    if (!d->shape.rows || d->shape.long_rows || d->shape.whole_scan)
        choose_share(d, point, 16);
    if (d->shape.order)
        choose_groups(d, point);
    if (!space_valid(d->space, point))
        space_set(d->space, point, "hold", "again");
    for (int64_t items = 128; items > 0 && !space_valid(d->space, point); items /= 2)
        set_number(d, point, "lx", items);
    fill_group(d, point);
    set_join(d, point);
    // Who reads neighbours leaves most of a group idle where they are few.
    if (d->shape.near && d->shape.row <= INNER_MOST && space_find(d->space, "lists") >= 0)
        set_values(d, point, "lists=tiles lx=128");
}

void fold_plain(const Derivation *d, Point *point)
{
    fold_plain_parts(d, point);
    try_values(d, point, "prefix=lookback");
}

// Strips of the rows that items go through, one each, and when they are copied.
void add_strip_params(Derivation *d, Diags *diags)
{
    const Shape *shape = &d->shape;
    if (!shape->walks || !has_items(d) || shape->product || shape->lowered)
        return;
    space_add_ints(d->space, "strip", (const int64_t[]){0, 16, 32, 64}, 4);
    if (d->device.matrix > 0) // it copies to local memory asynchronously
        space_add_ints(d->space, "stages", (const int64_t[]){1, 2, 3, 4}, 4);
    else
        space_add_words(d->space, "load", (const char *const[]){"now", "ahead"}, 2);
    constrain(d, diags, "strip > 0 or %s",
              d->device.matrix > 0 ? "stages == 1" : "load == 'now'");
    for (int x = 1; x < shape->dims; x++)
        constrain(d, diags, "strip == 0 or l%c == 1", 'x' + x);
    if (shape->rectangular)
        constrain(d, diags, "strip == 0 or (bx == 1 and cx == 1)");
    if (shape->rows)
        constrain(d, diags, "strip == 0 or fold == 'item'");
    if (shape->scan)
        constrain(d, diags, "strip == 0 or share == 0");
}

// Columns that become rows, way i: whole ones, or in parts of at most PART elements, which
// large groups take. On an H100 sums of the columns of 8192 x 8000 floats take 241 us in
// the first way of parts, and 301 to 395 us in groups of 64 or in strips of 32; of 407 x
// 401 x 399 whole columns in strips of 16 take 570 us, of 32 400.
static void set_turned(const Derivation *d, int i, Point *point)
{
    enum { PART = 32 };
    static const struct {
        int lx, strip;
    } way[2][4] = {{{64, 32}, {64, 64}, {256, 32}, {32, 64}},
                   {{256, 16}, {512, 16}, {64, 32}, {128, 32}}};
    const bool parts = space_find(d->space, "parts") >= 0;
    set_values(d, point, "lx=%d strip=%d stages=1 load=now", way[parts][i].lx,
               way[parts][i].strip);
    for (int64_t n = 4; parts && n * PART < 4 * d->shape.fold; n *= 4)
        set_number(d, point, "parts", n);
    try_values(d, point, "prefix=lookback");
}

// Each line by one item, which holds nothing of it.
static void set_strip_items(const Derivation *d, Point *point)
{
    set_values(d, point, "ly=1 lz=1 lanes=1 fold=item join=tree hold=again share=0");
}

void strips_plain(const Derivation *d, Point *point)
{
    const Shape *shape = &d->shape;
    if (d->device.is_cpu || !shape->walks)
        return;
    if (!shape->turned && !shape->alone) {
        if (!has_folds(shape))
            set_values(d, point, "strip=32 stages=3 load=ahead lx=32 ly=1 lz=1");
        return;
    }
    const Point before = *point;
    set_values(d, point, "bx=1 cx=1 vec=1");
    set_strip_items(d, point);
    if (shape->turned)
        set_turned(d, 0, point);
    else
        set_values(d, point, "lx=64 strip=16 stages=1 load=now");
    if (!space_valid(d->space, point) || space_find(d->space, "strip") < 0)
        *point = before;
}

// So few items that each multiprocessor has some, whose rows are on their way far ahead.
bool strips_first(const Derivation *d, int i, Point *point)
{
    static const struct {
        int lx, strip, stages;
    } first[] = {{32, 32, 3}, {32, 64, 2}, {64, 32, 3}, {64, 16, 4}};
    if (space_find(d->space, "strip") < 0 || i >= COUNTOF(first))
        return false;
    derive_single(d, point);
    set_strip_items(d, point);
    if (d->shape.turned)
        set_turned(d, i, point);
    else
        set_values(d, point, "lx=%d strip=%d stages=%d load=ahead", first[i].lx,
                   first[i].strip, first[i].stages);
    return true;
}
