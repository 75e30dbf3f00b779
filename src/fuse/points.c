// SPDX-License-Identifier: Apache-2.0
//
// The space of a script (points.h). Which threads, styles and blocks a kernel may have is
// worked out once for each set of calls; the one constraint for each call looks it up.
//
// Choices that make the same kernel as others, or one that cannot be launched, are no
// points: several instances one after another are for kernels of registers only, strips
// for arrays that have them, copies by fours for blocks of a multiple of four.

#include "fuse/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SERIAL = 8, COMBINATIONS = 20000, PLAIN_BLOCK = 32, PARAMS_A_CALL = 3 };

// Few are for large elements.
static const int block_choice[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
enum { BLOCKS = COUNTOF(block_choice) };

// How words move, as a solution says it. `:8`, eight times one after another; of strips
// `:4`, in four blocks for each unit of the device, which stay; else in a block for each
// few instances.
typedef struct {
    const char *name;
    Choice choice;
    int each; // blocks a unit
} Style;

#define STRIPS(n)                                                                          \
    {"strips:" #n, {.copy = COPY_STRIPS}, n},                                              \
    {                                                                                      \
        "strips+:" #n, {.early = true, .copy = COPY_STRIPS}, n                             \
    }
static const Style style[] = {
    {"words", {.copy = COPY_WORDS}, 0}, // the paper's
    {"fours+", {.early = true, .copy = COPY_FOURS}, 0},
    {"words+*", {.early = true, .registers = true, .copy = COPY_WORDS}, 0},
    {"words+*:8",
     {.early = true, .registers = true, .copy = COPY_WORDS, .serial = SERIAL},
     0},
    {"fours+*", {.early = true, .registers = true, .copy = COPY_FOURS}, 0},
    {"async+*", {.early = true, .registers = true, .copy = COPY_ASYNC}, 0},
    {"strips", {.copy = COPY_STRIPS}, 0},
    STRIPS(1),
    STRIPS(2),
    STRIPS(4),
    STRIPS(8),
    STRIPS(16)};
#undef STRIPS
enum { STYLES = COUNTOF(style), STYLES_ON_CHIP = 6 };

// Implementations of a kernel's calls that are said by the same threads: those that share
// elements on chip, and those by strips.
typedef struct {
    const char *threads;
    bool has[2]; // by is_strips
    uint8_t impl[2][MEMBERS_MAX];
    uint16_t blocks[STYLES]; // bits: those of block_choice that are valid
} Option;

typedef struct {
    const Fusion *fusion;
    bool sums;
    VEC(Option) option;
    uint16_t blocks[STYLES]; // of any option
    int16_t *option_of;      // by the choice of threads; -1: none
} Kernels;

// The parameters of the kernel whose first call is this.
typedef struct {
    int threads, style, block; // parameters
    VEC(const char *) text;    // domain of threads
    int *kernels;              // by cover; -1: it is no kernel's first call
    Kernels *all;
} Lead;

struct ScriptSpace {
    Arena *arena;
    const Script *script;
    FuseSpace *sets;
    DeviceInfo device;
    int64_t instances;
    Kernels *kernels; // of sets->fusion
    VEC(Cover) cover;
    Lead lead[CALLS_MAX];
    Space *space;
};

static int lowest(Set set)
{
    return __builtin_ctzll(set);
}

static const Elementary *function_at(const ScriptSpace *s, const Fusion *f, int step)
{
    return s->script->call[f->order[step]].function;
}

static bool has_sum(const ScriptSpace *s, const Fusion *f)
{
    for (int i = 0; i < f->ncall; i++)
        if (function_at(s, f, i)->kind == FUNCTION_SUM)
            return true;
    return false;
}

// Choices -----------------------------------------------------------------------------

// Blocks that sum should be few, for each stores its part, but a few for every unit.
static int serial_of_sum(const ScriptSpace *s, int instances)
{
    double units = 8.0 * s->device.compute_units;
    double serial = (double)s->instances / (instances * units);
    return (int)fmin(fmax(serial, 1), 64);
}

static int lanes_of(const ScriptSpace *s, const Fusion *f, const uint8_t *impl)
{
    int lanes = 1;
    for (int i = 0; i < f->ncall; i++)
        lanes = MAX(lanes, function_at(s, f, i)->impl[impl[i]].lanes);
    return lanes;
}

// Enough threads for each unit, and no more than it has at a time.
static bool fills_unit(int threads, int each)
{
    return threads * each <= 2048 && (threads * each >= 512 || each >= 16);
}

static int strips_serial(const ScriptSpace *s, const Fusion *f, int block, int each)
{
    int64_t count = fused_count(s->script, f, s->instances);
    int64_t at_once = (int64_t)block * s->device.compute_units * each;
    return (int)((count + at_once - 1) / at_once);
}

static bool choose_strips(const ScriptSpace *s, const Kernels *k, const Style *way,
                          Choice *c)
{
    int lanes = lanes_of(s, k->fusion, c->impl), threads = c->instances * lanes;
    if (strcmp(s->device.target, "c") == 0 || c->instances > MAX(256 / lanes, 1))
        return false;
    if (!way->each)
        return !k->sums;
    c->serial = strips_serial(s, k->fusion, c->instances, way->each);
    bool same = way->each > 1 && fills_unit(threads, way->each / 2) &&
                strips_serial(s, k->fusion, c->instances, way->each / 2) == c->serial;
    return fills_unit(threads, way->each) && !same &&
           (c->serial > 1 || (k->sums && !c->early));
}

// False where the style is not for the kernel; limits of the device are not asked.
static bool choose(const ScriptSpace *s, const Kernels *k, const Option *option, int way,
                   int block, Choice *c)
{
    bool strips = style[way].choice.copy == COPY_STRIPS;
    *c = style[way].choice;
    c->instances = block;
    memcpy(c->impl, option->impl[strips], sizeof c->impl);
    if (!option->has[strips])
        return false;
    if (strips)
        return choose_strips(s, k, &style[way], c);
    if (c->copy == COPY_ASYNC && strcmp(s->device.target, "cuda") != 0)
        return false;
    if (k->sums && c->serial)
        return false; // as without
    if (k->sums)
        c->serial = serial_of_sum(s, block);
    return true;
}

static bool make(const ScriptSpace *s, const Kernels *k, const Option *option, int way,
                 int block, FusedKernel *kernel)
{
    Choice c;
    return choose(s, k, option, way, block, &c) &&
           fused_make(s->script, k->fusion, &c, fused_local_bytes(&s->device),
                      s->device.max_group, kernel) &&
           !(style[way].choice.serial && kernel->top);
}

// What fits on chip for many instances fits for fewer.
static void find_blocks(const ScriptSpace *s, Kernels *k, Option *option, int way)
{
    bool strips = style[way].choice.copy == COPY_STRIPS, fits = false;
    FusedKernel kernel;
    for (int b = BLOCKS - 1; b >= 0; b--) {
        bool whole = style[way].choice.copy == COPY_WORDS || block_choice[b] % 4 == 0;
        fits = (fits && !strips) || make(s, k, option, way, block_choice[b], &kernel);
        if (fits && (whole || strips))
            option->blocks[way] |= (uint16_t)(1 << b);
    }
    k->blocks[way] |= option->blocks[way];
}

// Implementations ---------------------------------------------------------------------

static bool next_impls(const ScriptSpace *s, const Fusion *f, uint8_t *impl, bool together)
{
    bool more = false;
    for (int i = 0; i < f->ncall; i++) {
        int n = function_at(s, f, i)->nimpl;
        if (together) {
            more = more || impl[i] + 1 < n;
            impl[i] = (uint8_t)MIN(impl[i] + 1, n - 1);
        } else if (++impl[i] < n) {
            return true;
        } else {
            impl[i] = 0;
        }
    }
    return more;
}

static bool any_strips(const ScriptSpace *s, const Fusion *f, const uint8_t *impl)
{
    for (int i = 0; i < f->ncall; i++)
        if (function_at(s, f, i)->impl[impl[i]].strip)
            return true;
    return false;
}

// The implementation of each call by so many threads, in strips; scalars have one.
static bool strip_impls(const ScriptSpace *s, const Fusion *f, int lanes, uint8_t *impl)
{
    for (int i = 0; i < f->ncall; i++) {
        const Elementary *e = function_at(s, f, i);
        int k = 0;
        while (k < e->nimpl && (!e->impl[k].strip || e->impl[k].lanes != lanes))
            k++;
        impl[i] = (uint8_t)(k < e->nimpl ? k : 0);
    }
    return any_strips(s, f, impl);
}

static void add_option(ScriptSpace *s, Kernels *k, const uint8_t *impl, bool strips)
{
    Buf text;
    buf_init(&text);
    for (int i = 0; i < k->fusion->ncall; i++)
        buf_printf(&text, "%s%d", i ? "." : "",
                   function_at(s, k->fusion, i)->impl[impl[i]].lanes);
    Option *own = NULL;
    for (int i = 0; i < k->option.len && !own; i++)
        if (strcmp(k->option.at[i].threads, text.text) == 0)
            own = &k->option.at[i];
    if (!own) {
        const Option fresh = {.threads = arena_strdup(s->arena, text.text)};
        VEC_PUSH(s->arena, &k->option, fresh);
        own = &k->option.at[k->option.len - 1];
    }
    if (!own->has[strips])
        memcpy(own->impl[strips], impl, sizeof own->impl[strips]);
    own->has[strips] = true;
    buf_release(&text);
}

static void find_options(ScriptSpace *s, Kernels *k, bool together)
{
    uint8_t impl[MEMBERS_MAX] = {0};
    do
        if (!any_strips(s, k->fusion, impl))
            add_option(s, k, impl, false);
    while (next_impls(s, k->fusion, impl, together));
    for (int lanes = 32; lanes <= THREADS_MAX; lanes *= 2)
        if (strip_impls(s, k->fusion, lanes, impl))
            add_option(s, k, impl, true);
    for (int i = 0; i < k->option.len; i++)
        for (int way = 0; way < STYLES; way++)
            find_blocks(s, k, &k->option.at[i], way);
}

static bool is_possible(const Kernels *k)
{
    for (int way = 0; way < STYLES; way++)
        if (k->blocks[way])
            return true;
    return false;
}

static void find_kernels(ScriptSpace *s)
{
    int n = s->sets->fusion.len;
    double most = fmax(IMPLS_MAX, COMBINATIONS / (double)n);
    s->kernels = NEW_ARRAY(s->arena, Kernels, n);
    for (int i = 0; i < n; i++) {
        Kernels *k = &s->kernels[i];
        k->fusion = &s->sets->fusion.at[i];
        k->sums = has_sum(s, k->fusion);
        find_options(s, k, k->fusion->impls * STYLES_ON_CHIP > most);
    }
}

// Covers ------------------------------------------------------------------------------

// The kernel in a cover that begins with the call; -1: none does.
static int kernel_at(const Cover *cover, const ScriptSpace *s, int call)
{
    for (int i = 0; i < cover->n; i++)
        if (lowest(s->kernels[cover->unit[i]].fusion->set) == call)
            return cover->unit[i];
    return -1;
}

static bool same_cover(const ScriptSpace *s, const Cover *a, const Cover *b)
{
    for (int v = 0; v < s->script->ncall; v++)
        if (kernel_at(a, s, v) != kernel_at(b, s, v))
            return false;
    return true;
}

static void add_cover(ScriptSpace *s, const Cover *cover)
{
    for (int i = 0; i < s->cover.len; i++)
        if (same_cover(s, &s->cover.at[i], cover))
            return;
    VEC_PUSH(s->arena, &s->cover, *cover);
}

// The cheapest covers of sets of a number of calls (0: any) that have a kernel.
static void find_covers(ScriptSpace *s, int calls, int most)
{
    int n = 0;
    CoverUnit *unit = NEW_ARRAY(s->arena, CoverUnit, s->sets->fusion.len + 1);
    int *number = NEW_ARRAY(s->arena, int, s->sets->fusion.len + 1);
    for (int i = 0; i < s->sets->fusion.len; i++) {
        const Fusion *f = s->kernels[i].fusion;
        if (is_possible(&s->kernels[i]) && (!calls || f->ncall == calls)) {
            number[n] = i;
            unit[n++] = (CoverUnit){f->set, f->moved, i};
        }
    }
    Cover *cover = NULL;
    int found = n ? cover_best(&s->sets->graph, unit, n, most, s->arena, &cover) : 0;
    for (int i = 0; i < found; i++) {
        for (int k = 0; k < cover[i].n; k++)
            cover[i].unit[k] = number[cover[i].unit[k]];
        add_cover(s, &cover[i]);
    }
}

static void print_cover(const ScriptSpace *s, const Cover *cover, Buf *out)
{
    const char *separator = s->script->ncall > 9 ? "." : "";
    for (int i = 0; i < cover->n; i++) {
        buf_puts(out, i ? "|" : "");
        for (Set set = s->kernels[cover->unit[i]].fusion->set; set; set &= set - 1)
            buf_printf(out, "%d%s", lowest(set) + 1, set & (set - 1) ? separator : "");
    }
}

// Parameters --------------------------------------------------------------------------

static void add_covers(ScriptSpace *s)
{
    const char **word = NEW_ARRAY(s->arena, const char *, s->cover.len + 1);
    Buf text;
    buf_init(&text);
    for (int i = 0; i < s->cover.len; i++) {
        buf_clear(&text);
        print_cover(s, &s->cover.at[i], &text);
        word[i] = arena_strdup(s->arena, text.text);
    }
    space_add_words(s->space, "cover", word, s->cover.len);
    buf_release(&text);
}

static int text_of(ScriptSpace *s, Lead *lead, const char *text)
{
    for (int i = 0; i < lead->text.len; i++)
        if (strcmp(lead->text.at[i], text) == 0)
            return i;
    VEC_PUSH(s->arena, &lead->text, text);
    return lead->text.len - 1;
}

// Threads of the kernels that begin with a call; the choice 0 is of none.
static void find_threads(ScriptSpace *s, int call)
{
    Lead *lead = &s->lead[call];
    text_of(s, lead, "-");
    lead->all = s->kernels;
    lead->kernels = NEW_ARRAY(s->arena, int, s->cover.len + 1);
    for (int c = 0; c < s->cover.len; c++) {
        int k = lead->kernels[c] = kernel_at(&s->cover.at[c], s, call);
        for (int i = 0; k >= 0 && i < s->kernels[k].option.len; i++)
            text_of(s, lead, s->kernels[k].option.at[i].threads);
    }
    for (int c = 0; c < s->cover.len; c++) {
        Kernels *k = lead->kernels[c] < 0 ? NULL : &s->kernels[lead->kernels[c]];
        if (!k || k->option_of)
            continue;
        k->option_of = NEW_ARRAY(s->arena, int16_t, lead->text.len);
        for (int i = 0; i < lead->text.len; i++)
            k->option_of[i] = -1;
        for (int i = 0; i < k->option.len; i++)
            k->option_of[text_of(s, lead, k->option.at[i].threads)] = (int16_t)i;
    }
}

// Of a cover, threads, a style and a block.
static bool has_kernel(const void *user, const int *choice)
{
    const Lead *lead = user;
    int threads = choice[1], way = choice[2], block = choice[3];
    if (choice[0] < 0)
        return true;
    if (lead->kernels[choice[0]] < 0)
        return threads <= 0 && way <= 0 && block <= 0;
    const Kernels *k = &lead->all[lead->kernels[choice[0]]];
    if (threads == 0 || way == 0 || block == 0 ||
        (threads > 0 && k->option_of[threads] < 0))
        return false;
    if (way < 0)
        return true;
    uint16_t blocks = threads < 0 ? k->blocks[way - 1]
                                  : k->option.at[k->option_of[threads]].blocks[way - 1];
    return block < 0 ? blocks != 0 : blocks >> (block - 1) & 1;
}

static void add_lead(ScriptSpace *s, int call)
{
    const char *way[STYLES + 1] = {"-"};
    int64_t block[BLOCKS + 1] = {0};
    Lead *lead = &s->lead[call];
    for (int i = 0; i < STYLES; i++)
        way[i + 1] = style[i].name;
    for (int i = 0; i < BLOCKS; i++)
        block[i + 1] = block_choice[i];
    find_threads(s, call);
    const char *name = arena_printf(s->arena, "threads%d", call + 1);
    lead->threads = space_add_words(s->space, name, lead->text.at, lead->text.len);
    name = arena_printf(s->arena, "style%d", call + 1);
    lead->style = space_add_words(s->space, name, way, STYLES + 1);
    name = arena_printf(s->arena, "block%d", call + 1);
    lead->block = space_add_ints(s->space, name, block, BLOCKS + 1);
    const char *says = arena_printf(
        s->arena,
        "threads%d, style%d, block%d are '-', '-', 0 where cover has no kernel "
        "from call %d on, else of one that fits %lld bytes (T=%lld)",
        call + 1, call + 1, call + 1, call + 1, (long long)fused_local_bytes(&s->device),
        (long long)s->instances);
    const SpaceRelation relation = {
        4, {0, lead->threads, lead->style, lead->block}, has_kernel, lead, says};
    space_relate(s->space, &relation);
}

static bool can_be_space(const Script *script, Diags *diags)
{
    int most = (SPACE_PARAMS_MAX - 1) / PARAMS_A_CALL;
    return script->ncall <= most ||
           diag_error(diags, script->call[most].span, "F037",
                      "%d calls: the ways to run a script have %d parameters a call, so "
                      "that %d can be tuned at a time; divide it",
                      script->ncall, PARAMS_A_CALL, most);
}

ScriptSpace *script_space_new(const Script *script, int limit, int64_t instances,
                              const DeviceInfo *device, Diags *diags)
{
    if (!can_be_space(script, diags))
        return NULL;
    Arena *arena = arena_new();
    ScriptSpace *s = NEW(arena, ScriptSpace);
    *s = (ScriptSpace){.arena = arena,
                       .script = script,
                       .device = *device,
                       .instances = instances,
                       .sets = fuse_space(script, limit, arena),
                       .space = space_new()};
    bool ok = fused_fits(s->sets, fused_local_bytes(device), device->max_group, diags);
    if (ok) {
        find_kernels(s);
        find_covers(s, 0, COVERS_MOST);
        find_covers(s, 1, 1);
        find_covers(s, script->ncall, 1);
        add_covers(s);
        space_spread(s->space, 0);
        for (int v = 0; v < script->ncall; v++)
            add_lead(s, v);
        ok = space_build(s->space, diags);
    }
    if (ok)
        return s;
    script_space_free(s);
    return NULL;
}

void script_space_free(ScriptSpace *s)
{
    if (!s)
        return;
    space_free(s->space);
    arena_free(s->arena);
}

Space *script_space_points(const ScriptSpace *s)
{
    return s->space;
}

const FuseSpace *script_space_sets(const ScriptSpace *s)
{
    return s->sets;
}

const DeviceInfo *script_space_device(const ScriptSpace *s)
{
    return &s->device;
}

// Points and solutions ------------------------------------------------------------------

void script_solution(const ScriptSpace *s, const Point *point, Solution *solution)
{
    const Cover *cover = &s->cover.at[point->choice[0]];
    solution->n = 0;
    solution->predicted_ns = 0;
    for (int i = 0; i < cover->n; i++) {
        const Kernels *k = &s->kernels[cover->unit[i]];
        const Lead *lead = &s->lead[lowest(k->fusion->set)];
        int option = k->option_of[point->choice[lead->threads]];
        if (!make(s, k, &k->option.at[option], point->choice[lead->style] - 1,
                  block_choice[point->choice[lead->block] - 1],
                  &solution->kernel[solution->n++]))
            BUG("a point of the space is no kernel");
    }
}

int script_kernels(const ScriptSpace *s, const Point *point)
{
    return s->cover.at[point->choice[0]].n;
}

static bool same_choice(const Choice *a, const Choice *b, int ncall)
{
    return a->instances == b->instances && MAX(a->serial, 1) == MAX(b->serial, 1) &&
           a->early == b->early && a->registers == b->registers && a->copy == b->copy &&
           memcmp(a->impl, b->impl, (size_t)ncall) == 0;
}

static bool place_kernel(const ScriptSpace *s, const Kernels *k, const FusedKernel *kernel,
                         Point *point)
{
    const Lead *lead = &s->lead[lowest(k->fusion->set)];
    Choice c;
    for (int threads = 1; threads < lead->text.len; threads++) {
        const Option *option =
            k->option_of[threads] < 0 ? NULL : &k->option.at[k->option_of[threads]];
        for (int way = 0; option && way < STYLES; way++)
            for (int b = 0; b < BLOCKS; b++)
                if ((option->blocks[way] >> b & 1) &&
                    choose(s, k, option, way, block_choice[b], &c) &&
                    same_choice(&c, &kernel->choice, k->fusion->ncall)) {
                    point->choice[lead->threads] = (int16_t)threads;
                    point->choice[lead->style] = (int16_t)(way + 1);
                    point->choice[lead->block] = (int16_t)(b + 1);
                    return true;
                }
    }
    return false;
}

static bool find_cover(const ScriptSpace *s, const Solution *solution, int *number)
{
    for (int c = 0; c < s->cover.len; c++) {
        bool same = s->cover.at[c].n == solution->n;
        for (int i = 0; i < solution->n && same; i++) {
            Set set = solution->kernel[i].fusion->set;
            int k = s->lead[lowest(set)].kernels[c];
            same = k >= 0 && s->kernels[k].fusion->set == set;
        }
        *number = c;
        if (same)
            return true;
    }
    return false;
}

bool script_point(const ScriptSpace *s, const Solution *solution, Point *point)
{
    int cover;
    *point = (Point){0};
    if (!find_cover(s, solution, &cover))
        return false;
    point->choice[0] = (int16_t)cover;
    for (int i = 0; i < solution->n; i++) {
        const FusedKernel *kernel = &solution->kernel[i];
        int k = s->lead[lowest(kernel->fusion->set)].kernels[cover];
        if (!place_kernel(s, &s->kernels[k], kernel, point))
            return false;
    }
    return true;
}

// The block nearest to PLAIN_BLOCK from below, else the smallest.
static int plain_block(uint16_t blocks)
{
    int best = -1;
    for (int b = 0; b < BLOCKS; b++)
        if ((blocks >> b & 1) && (best < 0 || block_choice[b] <= PLAIN_BLOCK))
            best = b;
    return best;
}

// Is another value named for the parameter?
static bool differs(uint64_t named, const Point *point, int param, int choice)
{
    return (named >> param & 1) && point->choice[param] != choice;
}

// The first way to run a kernel that has what is named, if there is one.
static void place_first(const ScriptSpace *s, const Kernels *k, uint64_t named,
                        Point *point)
{
    const Lead *lead = &s->lead[lowest(k->fusion->set)];
    for (int way = 0; way < STYLES; way++)
        for (int threads = 1; threads < lead->text.len; threads++) {
            int option = k->option_of[threads];
            uint16_t blocks = option < 0 ? 0 : k->option.at[option].blocks[way];
            for (int b = 0; b < BLOCKS; b++)
                if (differs(named, point, lead->block, b + 1))
                    blocks &= (uint16_t) ~(1 << b);
            if (!blocks || differs(named, point, lead->threads, threads) ||
                differs(named, point, lead->style, way + 1))
                continue;
            point->choice[lead->threads] = (int16_t)threads;
            point->choice[lead->style] = (int16_t)(way + 1);
            point->choice[lead->block] = (int16_t)(plain_block(blocks) + 1);
            return;
        }
}

void script_complete(const ScriptSpace *s, uint64_t named, Point *point)
{
    for (int v = 0; v < s->script->ncall; v++) {
        const Lead *lead = &s->lead[v];
        int k = lead->kernels[point->choice[0]];
        if (k >= 0)
            place_first(s, &s->kernels[k], named, point);
        for (int i = lead->threads; k < 0 && i < lead->threads + PARAMS_A_CALL; i++)
            if (!(named >> i & 1))
                point->choice[i] = 0;
    }
}

void script_plain(const ScriptSpace *s, Point *point)
{
    *point = (Point){0};
    for (int c = 0; c < s->cover.len; c++)
        if (s->cover.at[c].n == s->script->ncall)
            point->choice[0] = (int16_t)c;
    script_complete(s, 0, point);
}

void script_each_kernel(const ScriptSpace *s, ScriptEach *each, void *user)
{
    FusedKernel kernel;
    int family = 0;
    for (int i = 0; i < s->sets->fusion.len; i++)
        for (int o = 0; o < s->kernels[i].option.len; o++)
            for (int way = 0; way < STYLES; way++, family++)
                for (int b = 0; b < BLOCKS; b++) {
                    const Option *option = &s->kernels[i].option.at[o];
                    if ((option->blocks[way] >> b & 1) &&
                        make(s, &s->kernels[i], option, way, block_choice[b], &kernel))
                        each(user, &kernel, family);
                }
}
