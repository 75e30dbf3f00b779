// SPDX-License-Identifier: Apache-2.0
//
// Programs of several stages: what may be one kernel, counted by hand (blur, srad) and by
// an enumeration written apart from this program (harris: all 511 sets of its nine stages);
// every cover of the space with every placement, built, run on OpenCL and compared with the
// interpreter at odd sizes, with every kind of border, and one of them with doubles.

#include "../problem/bed.h"
#include "derive/derive_parts.h"
#include "emit/emit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static DeviceInfo a_device(const char *target)
{
    DeviceInfo device = {.has_double = true,
                         .warp = 32,
                         .max_group = 1024,
                         .max_item = {1024, 1024, 64},
                         .local_bytes = 49152};
    snprintf(device.target, sizeof device.target, "%s", target);
    return device;
}

static Problem *bound(const char *name, const char *text, Diags *diags)
{
    static const Binding size[] = {{"N", 37}, {"M", 29}};
    Problem *problem = text ? problem_parse(name, text, diags) : problem_load(name, diags);
    if (!problem->program || !problem_bind(problem, size, 2, diags)) {
        Buf out = buf_new();
        diags_print(&out, diags);
        fail_msg("%s: %s", name, out.text);
    }
    return problem;
}

// A program and the kernels of its plain point.
typedef struct {
    Arena *arena;
    Diags diags;
    Problem *problem;
    Derivation *d;
    const Unit *unit;
} Plain;

static void plain_open(Plain *p, const char *name, const char *text)
{
    const DeviceInfo device = a_device("opencl");
    Point point;
    p->arena = arena_new();
    p->diags = (Diags){.arena = p->arena};
    p->problem = bound(name, text, &p->diags);
    p->d = derive_new(p->problem->bound, &device, &p->diags);
    derive_plain(p->d, &point);
    p->unit = derive_unit(p->d, &point, false, p->arena, &p->diags);
    assert_non_null(p->unit);
}

static void plain_close(Plain *p)
{
    derive_free(p->d);
    problem_free(p->problem);
    arena_free(p->arena);
}

// A program's stages as calls, with at most so many covers.
typedef struct {
    Arena *arena;
    Diags diags;
    Problem *problem;
    Pipeline *p;
} Staged;

static void staged_open(Staged *s, const char *name, const char *text, int covers)
{
    s->arena = arena_new();
    s->diags = (Diags){.arena = s->arena};
    s->problem = bound(name, text, &s->diags);
    const Function *main = s->problem->bound->main;
    s->p = pipeline_new(s->problem->ir, main->body, main->params, main->nparam,
                        &stage_rates, covers, 0, false);
    assert_non_null(s->p);
}

static void staged_close(Staged *s)
{
    pipeline_free(s->p);
    problem_free(s->problem);
    arena_free(s->arena);
}

// Counts --------------------------------------------------------------------------------

typedef struct {
    const char *file;
    int stages, inputs;
    double subsets, convex, connected, fusions, placements, covers, cover_placements;
} Counts;

// blur: x and what looks at it. srad: differences d, the coefficient k of them, and what
// looks at both: d and that without k is not convex; where k is not stored it or, where it
// is not stored either, d may be a tile, but not both.
static const Counts counts[] = {
    {"examples/blur.fw", 2, 1, 3, 3, 3, 1, 2, 2, 3},
    {"examples/srad.fw", 3, 1, 7, 6, 6, 3, 6, 4, 7},
    {"examples/harris.fw", 9, 1, 511, 196, 128, 119, 362, 1280, 3220},
};

static void test_counts(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTOF(counts); i++) {
        const Counts *c = &counts[i];
        Staged s;
        staged_open(&s, c->file, NULL, 2000);
        const Pipeline *p = s.p;
        assert_int_equal(p->script.ncall, c->stages);
        assert_int_equal(p->script.ninput, c->inputs);
        assert_true(p->space->subsets == c->subsets);
        assert_true(p->space->convex == c->convex);
        assert_true(p->space->connected == c->connected);
        assert_true(p->space->fusions == c->fusions);
        assert_true(p->space->impls == c->placements);
        assert_true(p->space->covers == c->covers);
        assert_true(p->space->cover_impls == c->cover_placements);
        assert_int_equal(p->ncover, c->covers);
        for (int k = 1; k < p->ncover; k++) // but for rounding of sums
            assert_true(p->cover[k - 1].cost <= p->cover[k].cost * (1 + 1e-9));
        staged_close(&s);
    }
}

// What a stage reads, in the middle of a chain: through names, windows and borders.
static void test_reads(void **state)
{
    (void)state;
    Staged s;
    staged_open(&s, "examples/srad.fw", NULL, 4);
    const Pipeline *p = s.p;
    assert_string_equal(p->stage[0].name, "d");
    assert_string_equal(p->stage[1].name, "k");
    assert_string_equal(p->stage[2].name, "out");
    assert_true(pipeline_reads(p, 1, 0, READ_POINT));
    assert_true(pipeline_reads(p, 2, 0, READ_POINT));
    assert_true(pipeline_reads(p, 2, 1, READ_WINDOW));
    assert_false(pipeline_reads(p, 2, 1, READ_POINT));
    assert_int_equal(pipeline_bytes(p, 0), 16); // a tuple of four floats
    assert_true(pipeline_stores(p, (Calls){0, 3}, 0) &&
                pipeline_stores(p, (Calls){0, 3}, 1));
    assert_false(pipeline_stores(p, (Calls){0, 7}, 0) ||
                 pipeline_stores(p, (Calls){0, 7}, 1));
    assert_true(pipeline_tiles(p, (Calls){0, 7}, 1));
    assert_true(pipeline_tiles(p, (Calls){0, 7}, 0)); // windows of k are windows of it
    assert_false(pipeline_tiles(p, (Calls){0, 6}, 0) ||
                 pipeline_tiles(p, (Calls){0, 5}, 0));
    assert_false(pipeline_tiles(p, (Calls){0, 3}, 1)); // it is stored
    staged_close(&s);
}

// Two stages read the same array through one name, which is no stage: both read it.
static void test_reads_through(void **state)
{
    (void)state;
    Staged s;
    staged_open(&s, "through",
                "size N, M\ndef through(a: [N][M]float) =\n"
                "let t = (map2(\\e -> 2 * e, a), map2(\\e -> e + 1, a)) in\n"
                "let u = map2(\\e -> e * e, t.0) in let v = map2(\\e -> e - 1, t.0) in\n"
                "(u, v)\n",
                4);
    const Pipeline *p = s.p;
    assert_int_equal(p->script.ncall, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(p->stage[i].nread, 1);
        assert_int_equal(p->stage[i].read[0].elem, p->stage[0].read[0].elem);
    }
    staged_close(&s);
}

// What nobody uses is no stage, nor is what only that uses.
static void test_unused(void **state)
{
    (void)state;
    Staged s;
    staged_open(&s, "unused",
                "size N, M\ndef unused(a: [N][M]float) = let x = map2(\\e -> 2 * e, a) in\n"
                "let y = map2(\\e -> e + 1, a) in let z = map2(\\e -> e * e, y) in\n"
                "map2(\\e -> e - 1, x)\n",
                4);
    const Pipeline *p = s.p;
    assert_int_equal(p->script.ncall, 2);
    assert_string_equal(p->stage[0].name, "x");
    staged_close(&s);
}

// A box of a box of a box ..: of four, the first is computed 729 times for each point of
// the last, so that no kernel has so many.
static void test_copies(void **state)
{
    (void)state;
    Staged s;
    Buf text = buf_new();
    buf_puts(&text, "size N, M\ndef boxes(b0: [N][M]float) =\n");
    for (int i = 0; i < 8; i++)
        buf_printf(&text,
                   "let b%d = b%d |> pad2(1, 1, clamp) |> slide2(3, 1)\n"
                   "  |> map2(\\p -> p[0][0] + p[1][1] + p[2][2]) in\n",
                   i + 1, i);
    buf_puts(&text, "b8\n");
    staged_open(&s, "boxes", text.text, 1000);
    const Pipeline *p = s.p;
    assert_int_equal(p->script.ncall, 8);
    assert_int_equal(p->ncover, 81); // 8 as a sum of ones, twos and threes, in order
    for (int i = 0; i < p->ncover; i++)
        for (int k = 0; k < p->cover[i].n; k++)
            assert_true(__builtin_popcountll(pipeline_set(p, &p->cover[i], k).set) <= 3);
    staged_close(&s);
    buf_release(&text);
}

// Seven times eight blurs and what looks at windows of them: more places than a space has
// parameters.
static void test_many_places(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags;
    Buf text;
    diags = (Diags){.arena = arena};
    text = buf_new();
    buf_puts(&text, "size N, M\ndef many(a0, a1, a2, a3, a4, a5, a6: [N][M]float) =\n");
    for (int i = 0; i < 56; i++)
        buf_printf(&text,
                   "let b%d = a%d |> pad2(1, 1, clamp) |> slide2(3, 1)\n"
                   "  |> map2(\\p -> p[0][1] + %d * p[2][1]) in\n",
                   i, i / 8, i);
    for (int k = 0; k < 7; k++) {
        buf_printf(&text, "let c%d = zip2(", k);
        for (int i = 8 * k; i < 8 * k + 8; i++)
            buf_printf(&text, "%sb%d |> pad2(1, 1, clamp) |> slide2(3, 1)",
                       i > 8 * k ? ", " : "", i);
        buf_puts(&text, ") |> map2(\\p q r s t u v w -> p[1][0] + q[1][2] + r[1][0] +\n"
                        "  s[1][2] + t[1][0] + u[1][2] + v[1][0] + w[1][2]) in\n");
    }
    buf_puts(&text, "(c0, c1, c2, c3, c4, c5, c6)\n");
    Problem *problem = bound("many", text.text, &diags);
    DeviceInfo info = a_device("cuda");
    Derivation *d = derive_new(problem->bound, &info, &diags);
    assert_non_null(d);
    assert_int_equal(d->pipeline->script.ncall, 63);
    Point point;
    derive_plain(d, &point);
    assert_true(cover_choose(d, &point, 0, true) && space_valid(derive_space(d), &point));
    assert_non_null(derive_unit(d, &point, false, arena, &diags));
    derive_free(d);
    problem_free(problem);
    buf_release(&text);
    arena_free(arena);
}

// Kernels -------------------------------------------------------------------------------

// Tiles of the first stages that can have some, where cover_choose takes the last.
static bool place_first(const Derivation *d, Point *point)
{
    const Space *space = derive_space(d);
    bool any = false;
    for (int i = 0; i < space_params(space); i++) {
        if (strncmp(space_param(space, i)->name, "place", 5) != 0)
            continue;
        point->choice[i] = 1;
        bool ok = space_valid(space, point);
        point->choice[i] = ok;
        any |= ok;
    }
    return any;
}

// Points of all covers: without tiles, with the last ones that can be, and with the first.
// Large kernels, of one output an item, where there are many covers.
static int all_points(const Derivation *d, Point *point, int max)
{
    bool few = d->pipeline->ncover < 8;
    const Space *space = derive_space(d);
    int n = 0;
    for (int cover = 0; cover < d->pipeline->ncover; cover++)
        for (int way = 0; way < 3 && n < max; way++) {
            memset(&point[n], 0, sizeof *point);
            set_number(d, &point[n], "lx", 8);
            set_number(d, &point[n], "ly", 4);
            set_number(d, &point[n], "bx", few ? 1 + cover % 2 : 1);
            set_number(d, &point[n], "by", few ? 1 + way % 2 : 1);
            space_set(space, &point[n], "border", few && way ? "split" : "inline");
            bool any = cover_choose(d, &point[n], cover, way == 1);
            if (way == 2)
                any = place_first(d, &point[n]) &&
                      (n == 0 || !point_equal(space, &point[n], &point[n - 1]));
            assert_true(space_valid(space, &point[n]));
            n += any;
        }
    return n;
}

typedef struct {
    const char *what;
    const Candidate *candidate;
    const Derivation *derivation;
    int wrong;
} Report;

static double on_done(void *user, int job, Trial *trial)
{
    Report *r = user;
    Buf text;
    if (trial->status == TRIAL_OK)
        return INFINITY;
    text = buf_new();
    point_print(&text, derive_space(r->derivation), r->candidate[job].point);
    print_message("%s: %s: %s\n%s\n", r->what, trial_status_name[trial->status], text.text,
                  trial->log ? trial->log : "");
    buf_release(&text);
    r->wrong++;
    return INFINITY;
}

enum { POINTS_MOST = 64 };

// As many kernels as the cover has units, and a tile where one is asked for.
static void check_kernels(const Derivation *d, const Point *point, const Candidate *c)
{
    const Space *space = derive_space(d);
    int cover = point->choice[space_find(space, "cover")];
    bool local = false, has = false;
    for (int i = 0; i < space_params(space); i++)
        local |= strncmp(space_param(space, i)->name, "place", 5) == 0 && point->choice[i];
    for (int i = 0; i < c->unit->kernels.len; i++)
        has |= c->unit->kernels.at[i]->locals.len > 0;
    assert_int_equal(c->unit->launches.len, d->pipeline->cover[cover].n);
    assert_int_equal(local, has);
}

static int try_program(const char *what, const char *text, Bed *bed, int *npoints)
{
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = bound(what, text, &diags);
    assert_non_null(bed_expect(bed, problem, arena, &diags));
    DeviceInfo info = a_device("opencl");
    Derivation *d = derive_new(problem->bound, &info, &diags);
    assert_non_null(d);
    const Target *target = target_find("opencl");
    Buf prelude = buf_new();
    emit_prelude(&prelude, target, problem->bound);
    Point point[POINTS_MOST];
    Candidate candidate[POINTS_MOST];
    Job job[POINTS_MOST];
    int n = *npoints = all_points(d, point, POINTS_MOST);
    for (int i = 0; i < n; i++) {
        assert_true(candidate_make(problem, d, &point[i], arena_printf(arena, "c%d", i),
                                   target, prelude.text, arena, &candidate[i], &diags));
        check_kernels(d, &point[i], &candidate[i]);
        job[i] = candidate[i].job;
    }
    Report report = {what, candidate, d, 0};
    assert_true(runner_run(bed->runner, job, n, INFINITY, on_done, &report, &diags));
    for (int i = 0; i < n; i++)
        candidate_release(&candidate[i]);
    buf_release(&prelude);
    derive_free(d);
    problem_free(problem);
    arena_free(arena);
    return report.wrong;
}

// The text of a file with words replaced.
static char *edited(Arena *arena, const char *path, const char *const (*word)[2], int n)
{
    Buf whole = buf_new();
    assert_true(file_read(path, FILE_DATA_MOST, &whole));
    char *text = arena_strdup(arena, whole.text);
    buf_release(&whole);
    for (int i = 0; i < n; i++) {
        Buf out = buf_new();
        const char *from = text, *at;
        for (; (at = strstr(from, word[i][0])) != NULL; from = at + strlen(word[i][0]))
            buf_printf(&out, "%.*s%s", (int)(at - from), from, word[i][1]);
        buf_puts(&out, from);
        text = arena_strdup(arena, out.text);
        buf_release(&out);
    }
    return text;
}

static const char *const borders[] = {"clamp", "mirror", "wrap", "0.5"};

static void try_borders(const char *path, int first, int last, int types, int least)
{
    Arena *arena = arena_new();
    Bed bed;
    bed_open(&bed,
             (RunnerConfig){.device = "opencl:0", .run_limit_s = 60, .build_limit_s = 600});
    for (int b = first; b < last; b++)
        for (int wide = 0; wide < (b == 0 ? types : 1); wide++) {
            const char *const word[][2] = {
                {"clamp", borders[b]},
                {"float", "double"},
                {"q0 = 0.053787220269", "q0 = double(0.053787220269)"}};
            char *text = edited(arena, path, word, wide ? 3 : 1);
            int n;
            const char *what =
                arena_printf(arena, "%s %s %s", path, borders[b], wide ? "double" : "");
            assert_int_equal(try_program(what, text, &bed, &n), 0);
            assert_true(n >= least);
        }
    bed_close(&bed);
    arena_free(arena);
}

static void test_blur(void **state)
{
    (void)state;
    try_borders("examples/blur.fw", 0, COUNTOF(borders), 2, 3);
}

static void test_srad(void **state)
{
    (void)state;
    try_borders("examples/srad.fw", 0, COUNTOF(borders), 2, 6);
}

static void test_harris(void **state)
{
    (void)state;
    try_borders("examples/harris.fw", 0, 1, 1, 28);
}

// What follows a result by name, stages without one, several results, and an iterate.
static void test_shapes(void **state)
{
    (void)state;
    static const char *const text[] = {
        "size N, M\n"
        "def unnamed(a: [N][M]float) = a |> pad2(1, 1, wrap) |> slide2(3, 1)\n"
        "  |> map2(\\p -> p[0][0] + p[2][2]) |> pad2(1, 1, mirror) |> slide2(3, 1)\n"
        "  |> map2(\\p -> p[0][2] - p[2][0])\n",
        "size N, M\n"
        "def results(a: [N][M]float) = let x = map2(\\e -> 2 * e, a) in\n"
        "  let y = x |> pad2(0, 1, clamp) |> slide2(2, 1) |> map2(\\p -> p[0][0] * "
        "p[1][1])\n"
        "  in let z = zip2(a, y) |> map2(\\u v -> u - v) in\n"
        "  (zip2(x, z) |> map2(\\u v -> u + v),\n"
        "   z |> pad2(1, 0, wrap) |> slide2(2, 1) |> map2(\\p -> p[0][1] + p[1][0]))\n",
        "size N, M\n" // the border of a constant is not that of what it is computed of
        "def chain(a: [N][M]float) = let x = a |> pad2(1, 1, 2) |> slide2(3, 1)\n"
        "    |> map2(\\p -> p[0][1] - p[2][1]) in let y = zip2(x, a) |> map2(\\u v -> u + "
        "v)\n"
        "  in y |> pad2(1, 1, 0.5) |> slide2(3, 1) |> map2(\\p -> p[1][0] * p[1][2])\n",
        "size N, M\n"
        "def steps(a: [N][M]float) = iterate(3, \\u ->\n"
        "  let x = u |> pad2(0, 0, 1, 1, clamp) |> slide2(1, 1, 3, 1)\n"
        "            |> map2(\\p -> (p[0][0] + p[0][2]) / 2) in\n"
        "  x |> pad2(1, 1, 0, 0, clamp) |> slide2(3, 1, 1, 1)\n"
        "    |> map2(\\p -> (p[0][0] + p[2][0]) / 2), a)\n",
    };
    for (int i = 0; i < COUNTOF(text); i++) {
        Arena *arena = arena_new();
        Diags diags = {.arena = arena};
        Problem *problem = bound("shape", text[i], &diags);
        DeviceInfo info = a_device("opencl");
        Derivation *d = derive_new(problem->bound, &info, &diags);
        assert_non_null(d);
        assert_non_null(d->pipeline);
        assert_true(d->pipeline->ncover >= 2);
        Value **inputs = problem_inputs(problem, 1, arena), *expect;
        assert_true(ir_eval(problem->bound, inputs, arena, &expect, 0, &diags));
        for (int c = 0; c < d->pipeline->ncover; c++)
            for (int local = 0; local < 2; local++) {
                Point point = {0};
                if (!cover_choose(d, &point, c, local))
                    continue;
                Expr *body = derive_body(d, &point, &diags);
                assert_non_null(body);
                Function main = *problem->bound->main;
                Program with = *problem->bound;
                Value *value;
                main.body = body;
                with.main = &main;
                assert_true(ir_eval(&with, inputs, arena, &value, 0, &diags));
                for (int k = 0; k < value->nplane; k++)
                    assert_memory_equal(value->plane[k], expect->plane[k],
                                        (size_t)value->count[k] * sizeof(double));
                assert_non_null(derive_unit(d, &point, false, arena, &diags));
            }
        derive_free(d);
        problem_free(problem);
        arena_free(arena);
    }
}

// Stages that are results are written where they go: every cover has as many launches as
// kernels, and each is right.
static void test_results(void **state)
{
    (void)state;
    Bed bed;
    int n;
    bed_open(&bed,
             (RunnerConfig){.device = "opencl:0", .run_limit_s = 60, .build_limit_s = 600});
    assert_int_equal(
        try_program("results",
                    "size N, M\n"
                    "def stages(a: [N][M]float) = let x = map2(\\e -> 2 * e, a) in\n"
                    "  let y = zip2(a, x) |> map2(\\u v -> u * v) in\n"
                    "  (y, x, zip2(x, y) |> pad2(1, 1, clamp) |> slide2(3, 1)\n"
                    "           |> map2(\\p -> p[0][0].0 + p[2][2].1))\n",
                    &bed, &n),
        0);
    assert_true(n >= 2);
    bed_close(&bed);
}

// So are components of a stage. What is asked for twice is stored once and copied once.
static void test_placed(void **state)
{
    (void)state;
    static const char *const text[] = {
        "size N, M\n"
        "def parts(a: [N][M]float) =\n"
        "  let p = map2(\\e -> (e + 1, (2 * e, e)), a) in\n"
        "  let y = p |> pad2(1, 1, wrap) |> slide2(3, 1)\n"
        "    |> map2(\\w -> w[0][1].0 + w[2][1].1.0) in\n"
        "  (map2(\\t -> t.1, p), y, y |> pad2(0, 1, mirror) |> slide2(2, 1)\n"
        "    |> map2(\\w -> w[0][0] - w[1][1]))\n",
        "size N, M\n"
        "def twice(a: [N][M]float) = let x = map2(\\e -> 2 * e, a) in\n"
        "  (x, x |> pad2(1, 1, wrap) |> slide2(3, 1)\n"
        "    |> map2(\\p -> p[0][0] + p[2][2]), x)\n",
    };
    for (int i = 0; i < COUNTOF(text); i++) {
        Plain p;
        plain_open(&p, "placed", text[i]);
        assert_int_equal(p.unit->launches.len, 3);
        plain_close(&p);
    }
}

// The most iterations of a nest of loops, those of threads with them.
static double most_iterations(const Stm *const *stm, int n)
{
    double most = 1;
    for (int i = 0; i < n; i++) {
        const Stm *s = stm[i];
        double inside =
            fmax(most_iterations((const Stm *const *)s->body.at, s->body.len),
                 most_iterations((const Stm *const *)s->other.at, s->other.len));
        int64_t extent = 1;
        if (s->kind == ST_FOR)
            assert_true(arith_is_const(s->extent, &extent));
        most = fmax(most, inside * (double)extent);
    }
    return most;
}

#define STEPS_OF(stage)                                                                    \
    "let k = a |> map2(\\v -> " stage ") in iterate(4, \\x -> let u = zip2(x, k) |> "      \
    "map2(\\x k -> 0.5 * x + k) in u |> pad2(1, 1, clamp) |> slide2(3, 1) |> "             \
    "map2(\\w -> w[0][1] + w[2][1]), a)"

// What the steps of a loop read is made once, before them; a product is done in each.
// Results of a step share a kernel, also by index and if they read nothing in common.
static void test_steps(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int kernels, launches;
    } loops[] = {
        {STEPS_OF("exp(v) * v / (v + 1)"), 3, 9},
        {STEPS_OF("2 * v"), 2, 8},
        {"iterate(4, \\x y -> let u = map2(\\e -> 2 * e, x) in let v = map2(\\e -> 3 * e, "
         "y) "
         "in let p = pad2(0, 1, 0.0, u) in let q = pad2(0, 1, 0.0, v) in "
         "(array2(N, M, \\i j -> x[i][j] + p[i + 1][j]), "
         "array2(N, M, \\i j -> y[i][j] - q[i][j + 1])), (a, a))",
         3, 12},
    };
    for (int k = 0; k < COUNTOF(loops); k++) {
        AutoArena *arena = arena_new();
        Plain p;
        plain_open(
            &p, "steps.fw",
            arena_printf(arena, "size N, M\ndef p(a: [N][M]float) = %s\n", loops[k].text));
        assert_int_equal(p.unit->kernels.len, loops[k].kernels);
        assert_int_equal(p.unit->launches.len, loops[k].launches);
        plain_close(&p);
    }
}

// Two maps, a fold of the second, two maps that read its sum, and one that reads none of
// them: folds that compute again are tried and refused. The units of a cover must still be
// those of the program that the kernels come from, or each element finds the sum anew.
static void test_fold_once(void **state)
{
    (void)state;
#define LONG "1048576"
    static const char text[] = "size N, M\n"
                               "def once(a: [" LONG "]float, b: [" LONG "]float) =\n"
                               "  let x = map(\\e -> 2 * e + 1, b) in\n"
                               "  let y = zip(b, a) |> map(\\e f -> e * f + 1) in\n"
                               "  let s = reduce(+, 0, y) in\n"
                               "  let u = zip(x, b) |> map(\\e f -> e * f + s) in\n"
                               "  let v = map(\\e -> 2 * e * s, u) in\n"
                               "  (v, x, s, map(\\e -> 3 * e, b))\n";
#undef LONG
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Problem *problem = bound("once", text, &diags);
    DeviceInfo info = a_device("opencl");
    Derivation *d = derive_new(problem->bound, &info, &diags);
    assert_true(d->pipeline->ncover > 1);
    for (int c = 0; c < d->pipeline->ncover; c++) {
        Point point = {0};
        cover_choose(d, &point, c, false);
        const Unit *unit = derive_unit(d, &point, false, arena, &diags);
        assert_non_null(unit);
        for (int k = 0; k < unit->kernels.len; k++) {
            const Block *body = &unit->kernels.at[k]->body;
            double most = most_iterations((const Stm *const *)body->at, body->len);
            if (most > 2 * 1048576.0)
                fail_msg("cover %d: %g iterations", c, most);
        }
    }
    derive_free(d);
    problem_free(problem);
    arena_free(arena);
}

// A fold goes through a map's points if all that it joins has the map's axes.
static void test_joined_axes(void **state)
{
    (void)state;
    static const struct {
        const char *other;
        int covers;
    } with[] = {{"x", 2}, {"y", 1}, {"transpose(y)", 2}};
    for (int i = 0; i < COUNTOF(with); i++) {
        Staged s;
        AutoArena *arena = arena_new();
        staged_open(&s, "joined.fw",
                    arena_printf(arena,
                                 "size N, M\ndef p(x: [N][M]float, y: [M][N]float) = let q "
                                 "= map2(\\v -> 2 * v + 1, x) in let s = reduce(+, 0, "
                                 "map(*, zip(join(q), join(%s)))) in (q, s)",
                                 with[i].other),
                    9);
        assert_int_equal(s.p->ncover, with[i].covers);
        staged_close(&s);
    }
}

// Many names ------------------------------------------------------------------------------

// n maps that each read two of the three arrays before, and a result of the last two.
static void draw_chain(Buf *out, int n, unsigned seed, bool rows)
{
    buf_puts(out, rows
                      ? "size N, M\ndef c(x: [N][M]double, y: [N][M]double) = map(\\a b -> "
                      : "size N, M\ndef c(a: [N][M]double, b: [N][M]double) = ");
    const char *dims = rows ? "" : "2";
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        const int first = i - 1 - (int)(seed >> 8) % 3;
        char of[2][8];
        for (int k = 0; k < 2; k++) {
            const int from = k ? i - 1 : MAX(first, -2);
            if (from < 0)
                snprintf(of[k], sizeof of[k], "%c", from < -1 ? 'a' : 'b');
            else
                snprintf(of[k], sizeof of[k], "t%d", from);
        }
        buf_printf(out, "let t%d = zip%s(%s, %s) |> map%s(\\p q -> 0.5 * p - q * q) in ", i,
                   dims, of[0], of[1], dims);
    }
    buf_printf(out, "(t%d, t%d)%s\n", n - 2, n - 1, rows ? ", zip(x, y))" : "");
}

// The text of its plain kernels.
static int64_t text_of_chain(int n, unsigned seed, bool rows, int *kernels)
{
    Plain p;
    Buf text = buf_new(), code = buf_new();
    draw_chain(&text, n, seed, rows);
    plain_open(&p, "chain", text.text);
    *kernels = p.unit->kernels.len;
    emit_unit(&code, target_find("opencl"), p.unit);
    int64_t length = code.len;
    buf_release(&text);
    buf_release(&code);
    plain_close(&p);
    return length;
}

// However many arrays are read more than once, each element of them is computed once, in
// one kernel: texts grow by a line for each.
static void test_chains(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 24; seed++)
        for (int n = 8; n <= 96; n *= 3) {
            int kernels;
            bool rows = seed % 2;
            int64_t length = text_of_chain(n, seed, rows, &kernels);
            assert_int_equal(kernels, 1);
            assert_in_range(length, 20 * n, 1500 + 120 * n);
        }
}

// Names of tuples of arrays: each is looked through once for each reader.
static void test_tuples(void **state)
{
    (void)state;
    for (int n = 8; n <= 64; n *= 2) {
        Buf text = buf_new();
        buf_puts(
            &text,
            "size N, M\ndef c(x: [N][M]float) =\n  let t0 = (x, map(\\r -> r[0], x)) in\n");
        for (int i = 1; i < n; i++)
            buf_printf(
                &text,
                "  let t%d = unzip(t%d.0 |> map(\\r -> (map(\\v -> v + 1, r), r[0]))) in\n",
                i, i - 1);
        buf_printf(&text, "  t%d\n", n - 1);
        Plain p;
        plain_open(&p, "tuples", text.text);
        assert_in_range(p.unit->launches.len, 1, 3 * n);
        buf_release(&text);
        plain_close(&p);
    }
}

static void test_rates(void **state)
{
    (void)state;
    const StageRates h200 = cover_rates(&(DeviceInfo){.name = "NVIDIA H200"});
    assert_memory_equal(&h200, &stage_rates, sizeof h200);
    const StageRates none = cover_rates(&(DeviceInfo){.name = "of nobody"});
    assert_memory_equal(&none, &stage_rates, sizeof none);
    const StageRates a100 = cover_rates(&(DeviceInfo){.name = "NVIDIA A100-SXM4-40GB"});
    assert_true(fabs(a100.gbs - 4000 * 1555 / 4800.0) < 1 &&
                a100.ops < stage_rates.ops / 3);
    const StageRates cpu =
        cover_rates(&(DeviceInfo){.is_cpu = true, .compute_units = 2, .warp = 16});
    assert_true(cpu.gbs == 20 && cpu.ops == 96);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], WORKER_COMMAND) == 0)
        return worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_reads_through), cmocka_unit_test(test_unused),
        cmocka_unit_test(test_many_places),   cmocka_unit_test(test_copies),
        cmocka_unit_test(test_shapes),        cmocka_unit_test(test_blur),
        cmocka_unit_test(test_srad),          cmocka_unit_test(test_harris),
        cmocka_unit_test(test_results),       cmocka_unit_test(test_placed),
        cmocka_unit_test(test_steps),         cmocka_unit_test(test_fold_once),
        cmocka_unit_test(test_joined_axes),   cmocka_unit_test(test_chains),
        cmocka_unit_test(test_tuples),        cmocka_unit_test(test_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
