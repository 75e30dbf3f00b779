// SPDX-License-Identifier: Apache-2.0
//
// Follows a heuristic file (paper 001, sections 6.2 and 7.3): each step tries every
// combination of the parameters it names, all others fixed, and keeps the best.
//
// A step is a space of its own: the parameters with the values they may take there, the
// constraints of the whole space, and those of the step; so counting, pruning and sampling
// are those of space.h. A step waits until all its points were told.
#include "search/search.h"
#include "search/steps.h"

#include "search/moves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_MOST = 1 << 24 };

// A repetition under way.
typedef struct {
    int64_t left;    // passes after this one
    Point base;      // when this pass began
    int given, idle; // idle: passes in a row, just before, that tried nothing new
} HeuristicPass;

// A relation of the whole space among a step's choices.
typedef struct {
    const SpaceRelation *whole;
    int16_t *const *from;
} StepRelation;

typedef struct {
    bool started;
    Point base; // what parameters that a step does not name are
    int at;     // the step being done, or next
    HeuristicPass pass[REPEAT_DEPTH];
    int depth;
    Space *space;                    // of the step; NULL between steps
    int16_t *from[SPACE_PARAMS_MAX]; // its choices as those of the whole space
    StepRelation *relation;
    uint64_t *number; // of the points of a sample; NULL: all
    uint64_t next, count;
} HeuristicWalk;

static void end_step(HeuristicWalk *walk)
{
    space_free(walk->space);
    walk->space = NULL;
    free(walk->number);
    walk->number = NULL;
    free(walk->relation);
    walk->relation = NULL;
    for (int i = 0; i < SPACE_PARAMS_MAX; i++) {
        free(walk->from[i]);
        walk->from[i] = NULL;
    }
}

static void close_walk(Search *search)
{
    end_step(search->state);
}

// Expressions as constraints --------------------------------------------------------------

static void put_span(Buf *text, const char *before, Span span, const char *after)
{
    buf_printf(text, "%s%.*s%s", before, (int)(span.end - span.start),
               span.source->text + span.start, after);
}

// The constraint that an item of a step means; false if it means none.
static bool put_vary(Buf *text, const Vary *vary)
{
    buf_clear(text);
    buf_puts(text, vary->name);
    switch (vary->kind) {
    case VARY_ALL: return false;
    case VARY_EQUAL: put_span(text, " == (", vary->a, ")"); return true;
    case VARY_LIST: put_span(text, " in ", vary->a, ""); return true;
    case VARY_RANGE:
        put_span(text, " >= (", vary->a, ") && ");
        buf_puts(text, vary->name);
        put_span(text, " <= (", vary->b, ")");
        return true;
    }
    BUG("item of kind %d", (int)vary->kind);
}

// The script was checked: what goes wrong now is a value that nothing can take.
static bool add_constraint(Space *space, const char *text)
{
    AutoArena *arena = arena_new();
    Diags quiet = {.arena = arena};
    return space_constrain(space, text, &quiet);
}

static bool is_built(Space *space)
{
    AutoArena *arena = arena_new();
    Diags quiet = {.arena = arena};
    return space_build(space, &quiet);
}

// Adds a parameter with some of its values: choice[0 .. n - 1].
static void add_some(Space *to, const SpaceParam *param, const int16_t *choice, int n)
{
    AUTO_FREE double *value = xcalloc((size_t)n + 1, sizeof *value);
    AUTO_FREE const char **label = xcalloc((size_t)n + 1, sizeof *label);
    for (int i = 0; i < n; i++) {
        value[i] = param->value[choice[i]];
        label[i] = param->label ? param->label[choice[i]] : NULL;
    }
    if (param->label)
        space_add_words(to, param->name, label, n);
    else
        space_add(to, param->name, value, n);
}

static int16_t *all_choices(int n)
{
    int16_t *choice = xcalloc((size_t)n + 1, sizeof *choice);
    for (int i = 0; i < n; i++)
        choice[i] = (int16_t)i;
    return choice;
}

// Values of one parameter that its item allows while all others stand as they are.
static int some_choices(Search *search, const Vary *vary, int p, int16_t *choice)
{
    HeuristicWalk *walk = search->state;
    const SpaceParam *param = space_param(search->space, p);
    Space *alone = space_new();
    add_some(alone, param, choice, param->n);
    for (int i = 0; i < space_params(search->space); i++)
        if (i != p && space_param(search->space, i)->label)
            add_some(alone, space_param(search->space, i), &walk->base.choice[i], 1);
    steps_define(alone, search->steps, search->space, search->size, search->nsize,
                 &walk->base);
    for (int i = 0; i < space_params(search->space); i++)
        if (i != p && !space_param(search->space, i)->label)
            space_define(alone, space_param(search->space, i)->name,
                         space_value(search->space, &walk->base, i));
    AutoBuf text = buf_new();
    int n = 0;
    if (!put_vary(&text, vary) || add_constraint(alone, text.text))
        for (int i = 0; i < param->n; i++) {
            Point point = {{(int16_t)i}};
            if (space_valid(alone, &point))
                choice[n++] = (int16_t)i;
        }
    if (vary->sample) {
        rng_sample(&search->rng, choice, sizeof *choice, n, MIN(n, vary->sample));
        n = MIN(n, vary->sample);
    }
    space_free(alone);
    return n;
}

// Steps -----------------------------------------------------------------------------------

static const Vary *find_vary(const Step *step, const char *name)
{
    int i = FIND(step->vary.at, step->vary.len, name, name);
    return i < 0 ? NULL : &step->vary.at[i];
}

// A value that the parameter lacks leaves it as it is.
static void do_set(Search *search, const Step *step)
{
    HeuristicWalk *walk = search->state;
    for (int i = 0; i < step->vary.len; i++) {
        int p = space_find(search->space, step->vary.at[i].name);
        if (p < 0)
            continue;
        AUTO_FREE int16_t *choice = all_choices(space_param(search->space, p)->n);
        if (some_choices(search, &step->vary.at[i], p, choice))
            walk->base.choice[p] = choice[0];
    }
}

static void add_step_params(Search *search, const Step *step)
{
    HeuristicWalk *walk = search->state;
    for (int p = 0; p < space_params(search->space); p++) {
        const SpaceParam *param = space_param(search->space, p);
        const Vary *vary = find_vary(step, param->name);
        int n = param->n;
        walk->from[p] = all_choices(n);
        if (!vary) {
            walk->from[p][0] = walk->base.choice[p];
            n = 1;
        } else if (vary->sample) {
            n = some_choices(search, vary, p, walk->from[p]);
        }
        add_some(walk->space, param, walk->from[p], n);
    }
}

static bool holds_in_step(const void *user, const int *choice)
{
    const StepRelation *r = user;
    int whole[COUNTOF(r->whole->param)];
    for (int i = 0; i < r->whole->n; i++)
        whole[i] = choice[i] < 0 ? -1 : r->from[r->whole->param[i]][choice[i]];
    return r->whole->holds(r->whole->user, whole);
}

static void relate_step(Search *search)
{
    HeuristicWalk *walk = search->state;
    int n = space_relations(search->space);
    free(walk->relation);
    walk->relation = xcalloc((size_t)n + 1, sizeof *walk->relation);
    for (int i = 0; i < n; i++) {
        SpaceRelation relation = *space_relation(search->space, i);
        walk->relation[i] = (StepRelation){space_relation(search->space, i), walk->from};
        relation.holds = holds_in_step;
        relation.user = &walk->relation[i];
        space_relate(walk->space, &relation);
    }
}

static bool constrain_step(Search *search, const Step *step)
{
    HeuristicWalk *walk = search->state;
    relate_step(search);
    AutoBuf text = buf_new();
    bool ok = true;
    for (int i = 0; ok && i < space_constraints(search->space); i++)
        ok = add_constraint(walk->space, space_constraint(search->space, i));
    for (int i = 0; ok && i < step->vary.len; i++) {
        const Vary *vary = &step->vary.at[i];
        if (!vary->sample && space_find(search->space, vary->name) >= 0 &&
            put_vary(&text, vary))
            ok = add_constraint(walk->space, text.text);
    }
    if (ok && step->where.source) {
        buf_clear(&text);
        put_span(&text, "", step->where, "");
        ok = add_constraint(walk->space, text.text);
    }
    return ok;
}

static void draw_sample(HeuristicWalk *walk, uint64_t n, Rng *rng)
{
    Numbers seen = {0};
    walk->number = xcalloc((size_t)n, sizeof *walk->number);
    for (uint64_t i = 0; i < n;) {
        uint64_t number = rng_below(rng, walk->count);
        if (numbers_put(&seen, number, 0))
            walk->number[i++] = number;
    }
    numbers_release(&seen);
    walk->count = n;
}

static bool begin_step(Search *search, const Step *step)
{
    HeuristicWalk *walk = search->state;
    walk->space = space_new();
    add_step_params(search, step);
    steps_define(walk->space, search->steps, search->space, search->size, search->nsize,
                 &walk->base);
    bool ok = constrain_step(search, step) && is_built(walk->space);
    double count = ok ? space_count(walk->space) : 0;
    walk->next = 0;
    walk->count = (uint64_t)fmin(count, 0x1p53);
    if (step->n && (uint64_t)step->n < walk->count)
        draw_sample(walk, (uint64_t)step->n, &search->rng);
    walk->count = MIN(walk->count, STEP_MOST);
    return walk->count > 0;
}

static void step_point(const Search *search, uint64_t i, Point *point)
{
    const HeuristicWalk *walk = search->state;
    Point own;
    space_point(walk->space, walk->number ? walk->number[i] : i, &own);
    *point = (Point){0};
    for (int p = 0; p < space_params(search->space); p++)
        point->choice[p] = walk->from[p][own.choice[p]];
}

// The point that stands stays if another is only as good; else the first in the order of
// choices: the numbers of points depend on constraints, and records have none.
static bool comes_before(const Search *search, const Point *a, const Point *b)
{
    const HeuristicWalk *walk = search->state;
    for (int p = 0; p < space_params(search->space); p++)
        if (a->choice[p] != b->choice[p])
            return point_equal(search->space, a, &walk->base) ||
                   (!point_equal(search->space, b, &walk->base) &&
                    a->choice[p] < b->choice[p]);
    return false;
}

static void keep_best(Search *search)
{
    HeuristicWalk *walk = search->state;
    double least = INFINITY;
    Point best = walk->base;
    for (uint64_t i = 0; i < walk->count; i++) {
        Point point;
        step_point(search, i, &point);
        double cost = INFINITY;
        search_known(search, &point, &cost);
        if (cost < least ||
            (cost == least && isfinite(cost) && comes_before(search, &point, &best))) {
            least = cost;
            best = point;
        }
    }
    walk->base = best;
    end_step(walk);
}

static void begin_pass(Search *search, int64_t left, int idle)
{
    HeuristicWalk *walk = search->state;
    walk->pass[walk->depth++] = (HeuristicPass){left, walk->base, search->given, idle};
}

// A pass that tried nothing new and changed nothing is the last; so is the second in a row
// that tried nothing new.
static void end_pass(Search *search, int repeat)
{
    HeuristicWalk *walk = search->state;
    HeuristicPass pass = walk->pass[--walk->depth];
    bool idle = pass.given == search->given;
    bool still = point_equal(search->space, &pass.base, &walk->base);
    if (pass.left == 0 || (idle && (still || pass.idle)))
        return;
    begin_pass(search, pass.left - 1, idle);
    walk->at = repeat + 1;
}

// Goes on to the next step with points; false at the end of the script.
static bool advance(Search *search)
{
    HeuristicWalk *walk = search->state;
    const Steps *script = search->steps;
    while (walk->at < script->steps.len) {
        const Step *step = &script->steps.at[walk->at++];
        switch (step->kind) {
        case STEP_SET: do_set(search, step); break;
        case STEP_TUNE:
            if (begin_step(search, step))
                return true;
            end_step(walk);
            break;
        case STEP_REPEAT: begin_pass(search, step->n - 1, 0); break;
        case STEP_END: end_pass(search, step->partner); break;
        }
    }
    return false;
}

static void start(Search *search)
{
    HeuristicWalk *walk = search->state;
    walk->started = true;
    if (search->best_ns < INFINITY)
        walk->base = search->best;
    else if (search->start)
        walk->base = *search->start;
    else
        space_point(search->space, 0, &walk->base);
}

static bool ask_walk(Search *search, Point *point)
{
    HeuristicWalk *walk = search->state;
    if (!walk->started)
        start(search);
    for (;;) {
        while (walk->space && walk->next < walk->count) {
            step_point(search, walk->next++, point);
            if (space_valid(search->space, point)) // one of a recorded space
                return true;
        }
        if (search->given > search->told)
            return false; // until the points on their way are told
        if (walk->space)
            keep_best(search);
        if (!advance(search))
            return false;
    }
}

const SearchKind search_heuristic = {
    .name = "heuristic",
    .doc = "the steps of a heuristic file (needs --strategy FILE.fwh)",
    .needs_steps = true,
    .state = sizeof(HeuristicWalk),
    .ask = ask_walk,
    .close = close_walk,
};
