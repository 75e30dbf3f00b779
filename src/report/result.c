// SPDX-License-Identifier: Apache-2.0
//
// A value as lines and tables; see report.h.
#include "report/report.h"

#include <math.h>

enum { KEYS_MOST = 4 }; // lists within lists

// An object of a list, and what names the rows that it is within, outermost first.
typedef struct {
    json_t *object, *key[KEYS_MOST];
} ResultRow;

typedef struct {
    VEC(ResultRow) rows;
    const char *key_name[KEYS_MOST];
    int keys;
} ResultList;

static bool is_single(const json_t *value)
{
    return !json_is_array(value) && !json_is_object(value);
}

static bool is_list(const json_t *value)
{
    return json_is_object(json_array_get(value, 0));
}

static const char *cell(const json_t *value, Arena *arena)
{
    double number = json_number_value(value);
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "yes" : "no";
    if (json_is_integer(value))
        return arena_printf(arena, "%lld", (long long)json_integer_value(value));
    if (!json_is_real(value))
        return "-";
    return arena_printf(arena, fabs(number) < 1e3 ? "%.4g" : "%.0f", number);
}

static void print_list(Buf *out, const char *title, const ResultList *list, Arena *arena);

// The lists that rows have under a name, as one.
static void print_within(Buf *out, const char *name, const ResultList *list, Arena *arena)
{
    ResultList within = *list;
    within.rows.at = NULL;
    within.rows.len = within.rows.cap = 0;
    within.keys += list->keys < KEYS_MOST;
    for (int i = 0; i < list->rows.len; i++) {
        json_t *of = json_object_get(list->rows.at[i].object, name), *item;
        void *first = json_object_iter(list->rows.at[i].object);
        size_t k;
        json_array_foreach(of, k, item)
        {
            ResultRow row = list->rows.at[i];
            row.object = item;
            row.key[within.keys - 1] = json_object_iter_value(first);
            within.key_name[within.keys - 1] = json_object_iter_key(first);
            VEC_PUSH(arena, &within.rows, row);
        }
    }
    print_list(out, name, &within, arena);
}

static void print_list(Buf *out, const char *title, const ResultList *list, Arena *arena)
{
    json_t *model = list->rows.at[0].object, *value;
    const char *name;
    int columns = list->keys;
    json_object_foreach(model, name, value) columns += is_single(value);
    TextTable table = table_new(arena, columns);
    table_row(&table, list->key_name, list->keys);
    json_object_foreach(model, name, value) if (is_single(value))
        table_put(&table, "%s", name);
    VEC_EACH_REF(const ResultRow *, row, &list->rows) {
        for (int k = 0; k < list->keys; k++)
            table_put(&table, "%s", cell(row->key[k], arena));
        json_object_foreach(model, name, value) if (is_single(value))
            table_put(&table, "%s", cell(json_object_get(row->object, name), arena));
    }
    if (*title)
        buf_printf(out, "\n%s\n", title);
    table_print(out, &table);
    json_object_foreach(model, name, value) if (is_list(value))
        print_within(out, name, list, arena);
}

static void print_value(Buf *out, const char *name, json_t *value, Arena *arena)
{
    const char *member;
    json_t *of;
    size_t i;
    if (is_list(value)) {
        ResultList list = {0};
        json_array_foreach(value, i, of)
            VEC_PUSH(arena, &list.rows, (ResultRow){.object = of});
        print_list(out, name, &list, arena);
    }
    if (!json_is_object(value))
        return;
    if (*name)
        buf_printf(out, "\n%s\n", name);
    json_object_foreach(value, member, of) if (is_single(of))
        buf_printf(out, "  %s: %s\n", member, cell(of, arena));
    json_object_foreach(value, member, of) print_value(out, member, of, arena);
}

void report_result(Buf *out, json_t *result)
{
    AutoArena *arena = arena_new();
    print_value(out, "", result, arena);
}
