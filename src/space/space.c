// SPDX-License-Identifier: Apache-2.0
//
// Parameters, constraints, and the space as the product of its components: counts,
// numbers and uniform samples are those of the components, combined as digits of mixed
// radix; the last component varies fastest.
//
// Questions build the components when needed, so a space shared by threads must be built
// before.
#include "space/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Words are numbered from here, so that no number equals one.
#define FIRST_WORD 0x1p52

Space *space_new(void)
{
    Space *space = xcalloc(1, sizeof *space);
    space->arena = arena_new();
    space->words = (Map){.arena = space->arena};
    space->names = (Map){.arena = space->arena};
    return space;
}

static void unbuild(Space *space)
{
    for (int i = 0; i < space->ncomponent; i++)
        component_release(&space->component[i]);
    space->ncomponent = 0;
    space->built = false;
}

void space_free(Space *space)
{
    if (!space)
        return;
    unbuild(space);
    arena_free(space->arena);
    free(space);
}

double space_intern(Space *space, const char *word, bool *known)
{
    double *number = map_get(&space->words, word);
    *known = number;
    if (!number) {
        number = NEW(space->arena, double);
        *number = FIRST_WORD + space->word_texts.len;
        VEC_PUSH(space->arena, &space->word_texts, arena_strdup(space->arena, word));
        map_put(&space->words, space->word_texts.at[space->word_texts.len - 1], number);
    }
    return *number;
}

// Parameters ------------------------------------------------------------------------

static ValueRange range_of(const double *number, int n)
{
    ValueRange range = {INFINITY, -INFINITY, false};
    for (int i = 0; i < n; i++) {
        range.lo = MIN(range.lo, number[i]);
        range.hi = MAX(range.hi, number[i]);
    }
    return range;
}

// Takes arrays of the arena.
static int add_param(Space *space, const char *name, const double *value,
                     const char *const *label, const double *number, int n)
{
    if (space->nparam == SPACE_PARAMS_MAX)
        BUG("more than %d parameters", SPACE_PARAMS_MAX);
    if (n < 0 || n > INT16_MAX)
        BUG("%d values of parameter %s", n, name);
    unbuild(space);
    SpaceParam shown = {arena_strdup(space->arena, name), n, value, label, NULL};
    space->param[space->nparam] = (ParamRow){shown, number, range_of(number, n)};
    return space->nparam++;
}

int space_add(Space *space, const char *name, const double *value, int n)
{
    double *copy = COPY_ARRAY(space->arena, value, n);
    return add_param(space, name, copy, NULL, copy, n);
}

int space_add_ints(Space *space, const char *name, const int64_t *value, int n)
{
    double *copy = NEW_ARRAY(space->arena, double, MAX(n, 1));
    for (int i = 0; i < n; i++)
        copy[i] = (double)value[i];
    return add_param(space, name, copy, NULL, copy, n);
}

void space_write_as(Space *space, int param, const char *form)
{
    SpaceParam *p = &space->param[param].shown;
    p->form = COPY_ARRAY(space->arena, form, p->n);
}

int space_add_words(Space *space, const char *name, const char *const *word, int n)
{
    double *value = NEW_ARRAY(space->arena, double, MAX(n, 1));
    double *number = NEW_ARRAY(space->arena, double, MAX(n, 1));
    const char **label = NEW_ARRAY(space->arena, const char *, MAX(n, 1));
    bool known;
    for (int i = 0; i < n; i++) {
        value[i] = i;
        label[i] = arena_strdup(space->arena, word[i]);
        number[i] = space_intern(space, word[i], &known);
    }
    return add_param(space, name, value, label, number, n);
}

Space *space_like(const Space *space)
{
    Space *like = space_new();
    for (int i = 0; i < space_params(space); i++) {
        const SpaceParam *param = space_param(space, i);
        if (param->label)
            space_add_words(like, param->name, param->label, param->n);
        else
            space_add(like, param->name, param->value, param->n);
    }
    return like;
}

Constraint constraint_of(Space *space, const Code *code, int n)
{
    Code *copy = COPY_ARRAY(space->arena, code, n);
    Constraint constraint = {.code = copy, .ncode = n, .text = space->texts.len};
    for (int i = 0; i < n; i++)
        if (code[i].op == OP_PARAM)
            constraint.params |= (uint64_t)1 << code[i].param;
    return constraint;
}

void constraint_add(Space *space, const Code *code, int n)
{
    if (code[n - 1].op != OP_AND) {
        Constraint constraint = constraint_of(space, code, n);
        VEC_PUSH(space->arena, &space->constraints, constraint);
        return;
    }
    int right = constraint_operand(code, n - 1);
    constraint_add(space, code, right);
    constraint_add(space, code + right, n - 1 - right);
}

bool space_constrain_span(Space *space, Span span, Diags *diags)
{
    unbuild(space);
    if (!constraint_parse(space, span, NULL, diags))
        return false;
    const char *text = span.source->text + span.start;
    VEC_PUSH(space->arena, &space->texts,
             arena_strndup(space->arena, text, span.end - span.start));
    return true;
}

// A text as a source under a name, which lives as long as what is said about it.
static Span whole_text(const char *name, const char *text, const Diags *diags)
{
    Source *source = NEW_OF(diags->arena, Source, arena_strdup(diags->arena, name),
                            arena_strdup(diags->arena, text), strlen(text));
    return (Span){source, 0, (uint32_t)source->len};
}

bool space_constrain_at(Space *space, const char *where, const char *text, Diags *diags)
{
    return space_constrain_span(space, whole_text(where, text, diags), diags);
}

bool space_constrain(Space *space, const char *text, Diags *diags)
{
    return space_constrain_at(space, "<constraint>", text, diags);
}

void space_define(Space *space, const char *name, double value)
{
    double *number = arena_copy(space->arena, &value, sizeof(double));
    map_put(&space->names, arena_strdup(space->arena, name), number);
}

void space_define_word(Space *space, const char *name, const char *word)
{
    bool known;
    space_define(space, name,
                 space_intern(space, arena_strdup(space->arena, word), &known));
}

static int compare_numbers(const void *a, const void *b)
{
    const struct NumberedChoice *p = a, *q = b;
    return p->number < q->number ? -1 : p->number > q->number;
}

void space_relate(Space *space, const SpaceRelation *relation)
{
    Relation *own = NEW(space->arena, Relation);
    Code *code = NEW_ARRAY(space->arena, Code, MAX(relation->n, 1));
    Constraint constraint = {.code = code, .ncode = relation->n, .relation = own};
    own->is = *relation;
    own->is.text = arena_strdup(space->arena, relation->text);
    for (int i = 0; i < relation->n; i++) {
        const ParamRow *param = &space->param[relation->param[i]];
        int n = param->shown.n;
        struct NumberedChoice *choice =
            NEW_ARRAY(space->arena, struct NumberedChoice, MAX(n, 1));
        for (int k = 0; k < n; k++)
            choice[k] = (struct NumberedChoice){param->number[k], k};
        qsort(choice, (size_t)n, sizeof *choice, compare_numbers);
        own->choice[i] = choice;
        own->nchoice[i] = n;
        code[i] = (Code){.op = OP_PARAM, .param = relation->param[i]};
        constraint.params |= (uint64_t)1 << relation->param[i];
    }
    unbuild(space);
    VEC_PUSH(space->arena, &space->constraints, constraint);
    VEC_PUSH(space->arena, &space->relations, own);
}

int space_relations(const Space *space)
{
    return space->relations.len;
}

const SpaceRelation *space_relation(const Space *space, int i)
{
    return &space->relations.at[i]->is;
}

int space_constraints(const Space *space)
{
    return space->texts.len;
}

const char *space_constraint(const Space *space, int i)
{
    return space->texts.at[i];
}

const SpaceExpr *space_expression(Space *space, const char *where, const char *text,
                                  Diags *diags)
{
    SpaceExpr *expr = NEW(space->arena, SpaceExpr);
    Span span = whole_text(where, text, diags);
    return constraint_parse(space, span, &expr->code, diags) ? expr : NULL;
}

// A number, a truth value or a word as it is written, with a sign or without.
static bool is_written(const Snippet *item)
{
    return item->n == 1 || (item->n == 2 && item->code[1].op == OP_NEG);
}

static bool read_item(const Space *space, const Snippet *from, SpaceItem *item)
{
    const Constraint code = {.code = from->code, .ncode = from->n};
    for (int i = 0; i < from->n; i++)
        if (from->code[i].op == OP_PARAM)
            return false;
    constraint_eval(&code, NULL, -1, NULL, 1, &item->number);
    item->form = is_written(from) ? from->code[0].param : VALUE_WHOLE;
    if (item->form == VALUE_WORD && from->n == 1)
        item->word = space->word_texts.at[(int)(item->number - FIRST_WORD)];
    return isfinite(item->number) && (item->form != VALUE_WORD || item->word);
}

// As in Python, where one of what is computed is real, all are.
int space_items(Space *space, const char *where, const char *text, SpaceItem **item,
                Diags *diags)
{
    enum { TEXT_MOST = 1 << 16 };
    Snippet *from;
    bool real = false, ok = strlen(text) <= TEXT_MOST;
    int n = ok ? constraint_items(space, whole_text(where, text, diags), &from, diags) : 0;
    *item = NEW_ARRAY(space->arena, SpaceItem, MAX(n, 1));
    for (int i = 0; i < n && ok; i++) {
        ok = read_item(space, &from[i], &(*item)[i]);
        real |= !is_written(&from[i]) && (*item)[i].number != floor((*item)[i].number);
    }
    for (int i = 0; i < n && real; i++)
        if (!is_written(&from[i]))
            (*item)[i].form = VALUE_REAL;
    if (!ok)
        diag_error(diags, span_none, "S007",
                   "%s: an item of the list has no value, or the text is too long", where);
    return ok ? n : -1;
}

double space_evaluate(const Space *space, const SpaceExpr *expr, const Point *point)
{
    double value[SPACE_PARAMS_MAX] = {0}, result;
    if (point)
        space_numbers(space, point, value);
    constraint_eval(&expr->code, value, -1, NULL, 1, &result);
    return result;
}

double space_evaluate_numbers(const SpaceExpr *expr, const double *number)
{
    double result;
    constraint_eval(&expr->code, number, -1, NULL, 1, &result);
    return result;
}

bool space_reads(const SpaceExpr *expr, int param)
{
    return expr->code.params >> param & 1;
}

const SpaceExpr *space_read(Space *space, int param)
{
    SpaceExpr *expr = NEW(space->arena, SpaceExpr);
    Code *code = NEW_OF(space->arena, Code, .op = OP_PARAM, .param = param);
    expr->code = (Constraint){.code = code, .ncode = 1, .params = (uint64_t)1 << param};
    return expr;
}

void space_evaluate_many(const SpaceExpr *expr, const double *number, int n, double *out)
{
    constraint_eval(&expr->code, NULL, 0, number, n, out);
}

double space_most(const Space *space, const SpaceExpr *expr, bool *varies)
{
    ValueRange param[SPACE_PARAMS_MAX];
    *varies = expr->code.params != 0;
    for (int i = 0; i < space->nparam; i++)
        param[i] = space->param[i].range;
    return *varies ? constraint_range(&expr->code, param).hi
                   : space_evaluate(space, expr, NULL);
}

static int compare_points(const void *p, const void *q)
{
    const Point *a = p, *b = q;
    for (int i = 0; i < SPACE_PARAMS_MAX; i++)
        if (a->choice[i] != b->choice[i])
            return a->choice[i] < b->choice[i] ? -1 : 1;
    return 0;
}

void space_only(Space *space, const Point *point, int n)
{
    unbuild(space);
    Point *sorted = NEW_ARRAY(space->arena, Point, n + 1);
    for (int i = 0; i < n; i++)
        memcpy(sorted[i].choice, point[i].choice,
               sizeof *point->choice * (size_t)space->nparam);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_points);
    space->listed = true;
    space->list.at = sorted;
    space->list.len = 0;
    space->list.cap = n + 1;
    for (int i = 0; i < n; i++)
        if (i == 0 || compare_points(&sorted[i], &sorted[i - 1]) != 0)
            sorted[space->list.len++] = sorted[i];
}

int space_params(const Space *space)
{
    return space->nparam;
}

const SpaceParam *space_param(const Space *space, int i)
{
    return &space->param[i].shown;
}

int space_find(const Space *space, const char *name)
{
    return FIND(space->param, space->nparam, shown.name, name);
}

bool space_no_parameter(const Space *space, Span span, const char *code, const char *name,
                        Diags *diags)
{
    const char *known[SPACE_PARAMS_MAX];
    AutoBuf text = buf_new();
    for (int i = 0; i < space->nparam; i++)
        known[i] = space->param[i].shown.name;
    guess_print_known(&text, name, known, space->nparam);
    return diag_error(diags, span, code, "there is no parameter `%s`%s", name, text.text);
}

double space_raw_count(const Space *space)
{
    double count = 1;
    for (int i = 0; i < space->nparam; i++)
        count *= space->param[i].shown.n;
    return count;
}

void space_numbers(const Space *space, const Point *point, double *value)
{
    for (int i = 0; i < space->nparam; i++)
        value[i] = space->param[i].number[point->choice[i]];
}

static bool in_domains(const Space *space, const Point *point)
{
    for (int i = 0; i < space->nparam; i++)
        if (point->choice[i] < 0 || point->choice[i] >= space->param[i].shown.n)
            return false;
    return true;
}

// The first constraint that is broken; -1 if none is. The point is in the domains.
static int first_broken(const Space *space, const Point *point)
{
    double value[SPACE_PARAMS_MAX];
    space_numbers(space, point, value);
    for (int i = 0; i < space->constraints.len; i++)
        if (!constraint_holds(&space->constraints.at[i], value))
            return i;
    return -1;
}

static bool passes(const Space *space, const Point *point)
{
    return in_domains(space, point) && first_broken(space, point) < 0;
}

const char *space_broken(const Space *space, const Point *point)
{
    int i = in_domains(space, point) ? first_broken(space, point) : -1;
    const Constraint *broken = i < 0 ? NULL : &space->constraints.at[i];
    return !broken            ? NULL
           : broken->relation ? broken->relation->is.text
                              : space->texts.at[broken->text];
}

// Components ------------------------------------------------------------------------

// Sets of parameters that share constraints, in order of their first parameter.
static int group_params(const Space *space, uint64_t group[SPACE_PARAMS_MAX])
{
    uint64_t seen = 0;
    int n = 0;
    for (int i = 0; i < space->nparam; i++) {
        uint64_t mask = (uint64_t)1 << i;
        if (seen & mask)
            continue;
        for (uint64_t before = 0; before != mask;) {
            before = mask;
            for (int k = 0; k < space->constraints.len; k++)
                if (space->constraints.at[k].params & mask)
                    mask |= space->constraints.at[k].params;
        }
        seen |= mask;
        group[n++] = mask;
    }
    return n;
}

static bool has_false_constant(const Space *space)
{
    VEC_EACH_REF(const Constraint *, constraint, &space->constraints)
        if (!constraint->params && !constraint_holds(constraint, NULL))
            return true;
    return false;
}

// One component of the points listed that pass the constraints.
static bool build_listed(Space *space, Diags *diags)
{
    AUTO_FREE Point *kept = xmalloc(sizeof *kept * ((size_t)space->list.len + 1));
    int n = 0;
    for (int i = 0; i < space->list.len; i++)
        if (passes(space, &space->list.at[i]))
            kept[n++] = space->list.at[i];
    space->ncomponent = 1;
    space->built = component_build_list(&space->component[0], space, kept, n, diags);
    return space->built;
}

bool space_build(Space *space, Diags *diags)
{
    if (space->built)
        return true;
    unbuild(space);
    space->empty = has_false_constant(space);
    if (space->listed)
        return build_listed(space, diags);
    uint64_t group[SPACE_PARAMS_MAX];
    int n = group_params(space, group);
    for (int i = 0; i < n; i++) {
        Component *component = &space->component[space->ncomponent++];
        if (!component_build(component, space, group[i], diags))
            return false;
    }
    return space->built = true;
}

// The components are a cache of what the space is, so a const space may build them.
static void need_built(const Space *space)
{
    if (space->built)
        return;
    AutoArena *arena = arena_new();
    Diags diags = {.arena = arena};
    if (!space_build((Space *)space, &diags))
        BUG("space_build was not asked first: %s", diags.list.at[0].message);
}

double space_count(const Space *space)
{
    need_built(space);
    double count = space->empty ? 0 : 1;
    for (int i = 0; i < space->ncomponent; i++)
        count *= space->component[i].count;
    return count;
}

bool space_valid(const Space *space, const Point *point)
{
    if (!space->listed)
        return passes(space, point);
    need_built(space);
    return in_domains(space, point) && component_has(&space->component[0], point);
}

// How many of its points have numbers.
static uint64_t numbered(const Component *component)
{
    return (uint64_t)fmin(component->count, COUNT_EXACT);
}

void space_point(const Space *space, uint64_t number, Point *point)
{
    if (space_count(space) == 0)
        BUG("the space is empty");
    *point = (Point){0};
    for (int i = space->ncomponent - 1; i >= 0; i--) {
        const Component *component = &space->component[i];
        component_point(component, number % numbered(component), point);
        number /= numbered(component);
    }
    if (number)
        BUG("the number is beyond the last point");
}

uint64_t space_number(const Space *space, const Point *point)
{
    need_built(space);
    uint64_t number = 0;
    ARRAY_EACH_REF(const Component *, component, space->component, space->ncomponent)
        number = number * numbered(component) + component_number(component, point);
    return number;
}

void space_sample(const Space *space, Rng *rng, Point *point)
{
    if (space_count(space) == 0)
        BUG("the space is empty");
    *point = (Point){0};
    for (int i = 0; i < space->ncomponent; i++)
        component_sample(&space->component[i], rng, point);
}
