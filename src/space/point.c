// SPDX-License-Identifier: Apache-2.0
//
// Single points: their values, neighbours, text and hash. Text is `name=value` with
// numbers in the fewest digits that read back the same, and words bare or, where they
// hold spaces or quotes, in single quotes with backslash escapes.
#include "space/internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const SpaceParam *param_named(const Space *space, const char *name, int *i)
{
    *i = space_find(space, name);
    if (*i < 0)
        BUG("there is no parameter named %s", name);
    return space_param(space, *i);
}

double space_value(const Space *space, const Point *point, int param)
{
    return space_param(space, param)->value[point->choice[param]];
}

int64_t space_int(const Space *space, const Point *point, const char *name)
{
    int i;
    const SpaceParam *param = param_named(space, name, &i);
    return llrint(param->value[point->choice[i]]);
}

const char *space_word(const Space *space, const Point *point, const char *name)
{
    int i;
    const SpaceParam *param = param_named(space, name, &i);
    if (!param->label)
        BUG("the values of parameter %s are not words", name);
    return param->label[point->choice[i]];
}

// Neighbours ------------------------------------------------------------------------

// The choice whose value is nearest above (direction 1) or below (-1); -1 if none.
static int next_choice(const SpaceParam *param, int from, int direction)
{
    int best = -1;
    for (int i = 0; i < param->n; i++) {
        double step = (param->value[i] - param->value[from]) * direction;
        if (step > 0 &&
            (best < 0 || step < (param->value[best] - param->value[from]) * direction))
            best = i;
    }
    return best;
}

typedef struct {
    const Space *space;
    Point point;
    Point *out;
    int n, max;
} Neighbours;

static void add_if_valid(Neighbours *found, int param, int choice)
{
    int16_t own = found->point.choice[param];
    if (choice < 0 || choice == own)
        return;
    found->point.choice[param] = (int16_t)choice;
    if (space_valid(found->space, &found->point)) {
        if (found->n < found->max)
            found->out[found->n] = found->point;
        found->n++;
    }
    found->point.choice[param] = own;
}

int space_neighbours(const Space *space, const Point *point, bool adjacent, Point *out,
                     int max)
{
    Neighbours found = {space, *point, out, 0, max};
    for (int i = 0; i < space_params(space); i++) {
        const SpaceParam *param = space_param(space, i);
        if (adjacent) {
            add_if_valid(&found, i, next_choice(param, point->choice[i], -1));
            add_if_valid(&found, i, next_choice(param, point->choice[i], 1));
        }
        for (int k = 0; !adjacent && k < param->n; k++)
            add_if_valid(&found, i, k);
    }
    return found.n;
}

// Text ------------------------------------------------------------------------------

static void print_number(Buf *out, double number)
{
    char text[32];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    if (number == floor(number) && fabs(number) < 0x1p53)
        snprintf(text, sizeof text, "%.0f", number);
    buf_puts(out, text);
}

static void print_word(Buf *out, const char *word)
{
    if (word[0] && !strpbrk(word, " \t\n\r\v\f'\\")) {
        buf_puts(out, word);
        return;
    }
    buf_putc(out, '\'');
    for (const char *c = word; *c; c++) {
        if (*c == '\'' || *c == '\\')
            buf_putc(out, '\\');
        buf_putc(out, *c);
    }
    buf_putc(out, '\'');
}

void space_value_print(Buf *out, const Space *space, int i, int choice)
{
    const SpaceParam *param = space_param(space, i);
    if (param->label)
        print_word(out, param->label[choice]);
    else
        print_number(out, param->value[choice]);
}

void point_print(Buf *out, const Space *space, const Point *point)
{
    for (int i = 0; i < space_params(space); i++) {
        buf_printf(out, "%s%s=", i ? " " : "", space_param(space, i)->name);
        space_value_print(out, space, i, point->choice[i]);
    }
}

const char *point_text(const Space *space, const Point *point, Arena *arena)
{
    Buf text = buf_new();
    point_print(&text, space, point);
    return buf_keep(&text, arena);
}

static int choice_of(const SpaceParam *param, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    bool is_number = end != text && !*end;
    for (int i = 0; i < param->n; i++)
        if (param->label ? strcmp(param->label[i], text) == 0
                         : is_number && param->value[i] == number)
            return i;
    return -1;
}

bool space_set(const Space *space, Point *point, const char *name, const char *text)
{
    int i = space_find(space, name);
    int choice = i < 0 ? -1 : choice_of(space_param(space, i), text);
    if (choice >= 0)
        point->choice[i] = (int16_t)choice;
    return choice >= 0;
}

bool point_move(const Space *to, Point *point, const Space *from, const Point *given)
{
    bool ok = true;
    AutoBuf value = buf_new();
    for (int i = 0; ok && i < space_params(from); i++) {
        const SpaceParam *param = space_param(from, i);
        buf_clear(&value);
        if (param->label)
            buf_puts(&value, param->label[given->choice[i]]);
        else
            print_number(&value, param->value[given->choice[i]]);
        ok = space_set(to, point, param->name, value.text);
    }
    return ok;
}

// A value up to white space, or in quotes; NULL if the end quote is missing.
static const char *read_value(const char *at, Buf *value)
{
    if (*at != '\'') {
        for (; *at && !isspace((unsigned char)*at); at++)
            buf_putc(value, *at);
        return at;
    }
    for (at++; *at && *at != '\''; at++) {
        if (*at == '\\' && at[1])
            at++;
        buf_putc(value, *at);
    }
    return *at ? at + 1 : NULL;
}

// NAME=VALUE; NULL if it is malformed.
static const char *read_pair(const char *at, Buf *name, Buf *value)
{
    size_t n = strcspn(at, "=' \t\n\r\v\f");
    buf_clear(name);
    buf_clear(value);
    buf_write(name, at, n);
    return n > 0 && at[n] == '=' ? read_value(at + n + 1, value) : NULL;
}

// One assignment; NULL if it is malformed, names no parameter, one that was named, or none
// of its values.
static const char *read_assignment(const Space *space, const char *at, Point *point,
                                   uint64_t *named)
{
    AutoBuf name = buf_new(), value = buf_new();
    at = read_pair(at, &name, &value);
    int i = at ? space_find(space, name.text) : -1;
    uint64_t bit = i < 0 ? 0 : (uint64_t)1 << i;
    if (!bit || *named & bit || !space_set(space, point, name.text, value.text))
        at = NULL;
    *named |= bit;
    return at;
}

static bool read_assignments(const Space *space, const char *at, Point *point,
                             uint64_t *named)
{
    for (;;) {
        while (isspace((unsigned char)*at))
            at++;
        if (!*at)
            return true;
        if (!(at = read_assignment(space, at, point, named)))
            return false;
    }
}

bool point_parse(const Space *space, const char *text, Point *point)
{
    int n = space_params(space);
    uint64_t named = 0, all = n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
    *point = (Point){0};
    return read_assignments(space, text, point, &named) && named == all;
}

bool point_change(const Space *space, const char *text, Point *point)
{
    uint64_t named = 0;
    return read_assignments(space, text, point, &named);
}

bool point_is_text(const char *text)
{
    AutoArena *arena = arena_new();
    bool ok = text[strspn(text, " ")] != 0;
    AutoBuf name = buf_new(), value = buf_new();
    Map seen = {.arena = arena};
    for (const char *at = text + strspn(text, " "); ok && *at; at += strspn(at, " ")) {
        const char *end = read_pair(at, &name, &value);
        ok = end && end > strchr(at, '=') + 1 && (!*end || *end == ' ') &&
             !map_get(&seen, name.text);
        map_put(&seen, arena_strdup(arena, name.text), &seen);
        at = ok ? end : at;
    }
    return ok;
}

// Identity --------------------------------------------------------------------------

static size_t choice_bytes(const Space *space)
{
    return sizeof(int16_t) * (size_t)space_params(space);
}

uint64_t point_hash(const Space *space, const Point *point)
{
    return hash_bytes(point->choice, choice_bytes(space), 0);
}

bool point_equal(const Space *space, const Point *a, const Point *b)
{
    return memcmp(a->choice, b->choice, choice_bytes(space)) == 0;
}

static uint64_t hash_text(const char *text, uint64_t hash)
{
    return hash_bytes(text, strlen(text) + 1, hash);
}

static uint64_t hash_param(const SpaceParam *param, uint64_t hash)
{
    hash = hash_mix(hash_text(param->name, hash), (uint64_t)param->n);
    if (!param->label)
        return hash_bytes(param->value, sizeof *param->value * (size_t)param->n, hash);
    for (int i = 0; i < param->n; i++)
        hash = hash_text(param->label[i], hash);
    return hash;
}

uint64_t space_hash(const Space *space)
{
    uint64_t hash = 0;
    for (int i = 0; i < space_params(space); i++)
        hash = hash_param(space_param(space, i), hash);
    for (int i = 0; i < space->texts.len; i++)
        hash = hash_text(space->texts.at[i], hash);
    for (int i = 0; i < space->relations.len; i++)
        hash = hash_text(space->relations.at[i]->is.text, hash);
    for (int i = 0; i < space->list.len; i++)
        hash = hash_bytes(space->list.at[i].choice, choice_bytes(space), hash);
    return hash;
}
