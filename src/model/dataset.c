// SPDX-License-Identifier: Apache-2.0
//
// Reads explorations (dataset.h says the format). The whole text is kept, so that every
// diagnostic can show its line. It reads rows only as far as the first twenty mistakes.
#include "model/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MAX = 512, MISTAKES_MAX = 20, LAUNCH_SIZES = 6 };

static const char *const head_names[] = {"program", "size",    "expression",
                                         "global0", "global1", "global2",
                                         "local0",  "local1",  "local2"};
enum { HEAD = COUNTOF(head_names), FIRST_FEATURE = HEAD - LAUNCH_SIZES };

typedef struct {
    const char *text; // unquoted
    Span span;
} CsvField;

typedef VEC(const char *) CsvNames;

typedef struct {
    const Source *source;
    Arena *arena, *scratch; // of the dataset, of one line
    Diags *diags;
    Dataset *data;
    size_t at; // offset of the line to read next
    CsvField field[FIELDS_MAX];
    int nfield, columns;
    Span header;
    Map program_number, size_number, expression_text, status_text, point_row;
    CsvNames programs, sizes;
    VEC(int) row_program;
    VEC(int) row_size;
    VEC(double) row_time;
    VEC(double) cells;
    CsvNames row_expression, row_status;
} DatasetReader;

// Lines and fields ----------------------------------------------------------------------

static Span span_at(const DatasetReader *r, size_t from, size_t to)
{
    return (Span){r->source, (uint32_t)from, (uint32_t)to};
}

static size_t line_end(const DatasetReader *r)
{
    const char *text = r->source->text;
    const char *end = memchr(text + r->at, '\n', r->source->len - r->at);
    return end ? (size_t)(end - text) : r->source->len;
}

// A quoted field that starts at `at`: its text; the offset after its closing quote.
static const char *unquote(DatasetReader *r, size_t at, size_t end, size_t *next)
{
    const char *text = r->source->text;
    AutoBuf out = buf_new();
    size_t i = at + 1;
    for (; i < end && !(text[i] == '"' && !(i + 1 < end && text[i + 1] == '"')); i++) {
        i += text[i] == '"';
        buf_putc(&out, text[i]);
    }
    const char *copy = i < end ? arena_strndup(r->scratch, out.text, out.len) : NULL;
    *next = i + 1;
    return copy;
}

static bool read_field(DatasetReader *r, size_t *at, size_t end)
{
    const char *text = r->source->text;
    size_t from = *at, next = from;
    if (r->nfield == FIELDS_MAX)
        return diag_error(r->diags, span_at(r, from, end), "M010",
                          "a line has more than %d fields", FIELDS_MAX);
    CsvField *f = &r->field[r->nfield++];
    if (from < end && text[from] == '"') {
        f->text = unquote(r, from, end, &next);
        if (!f->text)
            return diag_error(r->diags, span_at(r, from, end), "M011",
                              "this quote is not closed on its line");
        if (next < end && text[next] != ',')
            return diag_error(r->diags, span_at(r, next, next + 1), "M011",
                              "a comma belongs after a closing quote");
    } else {
        while (next < end && text[next] != ',')
            next++;
        f->text = arena_strndup(r->scratch, text + from, next - from);
    }
    f->span = span_at(r, from, next);
    *at = next;
    return true;
}

// Splits the line at r->at, and goes to the next one.
static bool read_fields(DatasetReader *r)
{
    size_t next = line_end(r), at = r->at, end = next;
    if (end > at && r->source->text[end - 1] == '\r')
        end--;
    r->nfield = 0;
    bool ok = true;
    do {
        at += r->nfield > 0;
        ok = read_field(r, &at, end);
    } while (ok && at < end);
    r->at = MIN(next + 1, r->source->len);
    return ok;
}

static char *trimmed(Arena *arena, const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r", text[len - 1]))
        len--;
    while (len > 0 && strchr(" \t", *text)) {
        text++;
        len--;
    }
    return arena_strndup(arena, text, len);
}

// Lines of # at the top. One without a colon is only a remark.
static void read_meta(DatasetReader *r)
{
    const char *text = r->source->text;
    while (r->at < r->source->len && text[r->at] == '#') {
        size_t end = line_end(r);
        const char *line = text + r->at + 1, *stop = text + end;
        const char *colon = memchr(line, ':', (size_t)(stop - line));
        if (colon) {
            VEC_PUSH(
                r->arena, &r->data->meta,
                (DatasetMeta){trimmed(r->arena, line, (size_t)(colon - line)),
                              trimmed(r->arena, colon + 1, (size_t)(stop - colon - 1))});
        }
        r->at = MIN(end + 1, r->source->len);
    }
}

// The header ----------------------------------------------------------------------------

static bool check_name(DatasetReader *r, int column, const char *name)
{
    if (column < r->nfield && strcmp(r->field[column].text, name) == 0)
        return true;
    if (column >= r->nfield)
        return diag_error(r->diags, r->field[r->nfield - 1].span, "M012",
                          "the header ends before column `%s`", name);
    return diag_error(r->diags, r->field[column].span, "M012",
                      "column %d of the header must be `%s`, not `%s`", column + 1, name,
                      r->field[column].text);
}

static bool check_features(DatasetReader *r)
{
    Map seen = {.arena = r->arena};
    for (int i = 0; i < r->columns; i++) {
        const char *name = r->field[i].text;
        if (!name[0] || map_get(&seen, name))
            return diag_error(r->diags, r->field[i].span, "M013", "%s",
                              name[0] ? "two columns have this name"
                                      : "a column without a name");
        map_put(&seen, name, r);
    }
    return true;
}

static bool read_header(DatasetReader *r)
{
    if (r->at >= r->source->len)
        return diag_error(r->diags, span_at(r, r->at, r->at), "M012",
                          "there is no header line");
    r->header = span_at(r, r->at, line_end(r));
    if (!read_fields(r))
        return false;
    r->columns = r->nfield;
    for (int i = 0; i < HEAD; i++)
        if (!check_name(r, i, head_names[i]))
            return false;
    if (!check_name(r, MAX(r->columns - 2, HEAD), "time_ns") ||
        !check_name(r, r->columns - 1, "status") || !check_features(r))
        return false;
    Dataset *data = r->data;
    data->d = r->columns - 2 - FIRST_FEATURE;
    data->feature = NEW_ARRAY(r->arena, const char *, data->d);
    for (int i = 0; i < data->d; i++)
        data->feature[i] = arena_strdup(r->arena, r->field[FIRST_FEATURE + i].text);
    return true;
}

// Rows ----------------------------------------------------------------------------------

static int number_of(DatasetReader *r, Map *map, CsvNames *names, const char *name)
{
    int *number = map_get(map, name);
    if (!number) {
        number = NEW(r->arena, int);
        *number = names->len;
        map_put(map, name, number);
        VEC_PUSH(r->arena, names, arena_strdup(r->arena, name));
    }
    return *number;
}

// One copy of each different text.
static const char *shared(DatasetReader *r, Map *map, const char *text)
{
    char *copy = map_get(map, text);
    if (!copy)
        map_put(map, text, copy = arena_strdup(r->arena, text));
    return copy;
}

static bool read_number(DatasetReader *r, int column, double *value)
{
    const CsvField *f = &r->field[column];
    char *end;
    *value = strtod(f->text, &end);
    if (end != f->text && !*end && isfinite(*value))
        return true;
    return diag_error(r->diags, f->span, "M014", "column %d must be a number", column + 1);
}

static bool read_time(DatasetReader *r, const char *status, double *time)
{
    const CsvField *f = &r->field[r->columns - 2];
    *time = NAN;
    bool ok = strcmp(status, "ok") == 0;
    if (!ok && f->text[0])
        return diag_error(r->diags, f->span, "M015", "a row with status `%s` has no time",
                          status);
    if (!ok)
        return true;
    if (!read_number(r, r->columns - 2, time))
        return false;
    return *time > 0 || diag_error(r->diags, f->span, "M015", "a time must be above 0");
}

// The row of this program, size, expression and launch: a new one, or the one before it,
// which was measured again.
static int row_of_point(DatasetReader *r)
{
    size_t from = r->field[0].span.start, to = r->field[HEAD - 1].span.end;
    char *point = arena_strndup(r->arena, r->source->text + from, to - from);
    int *row = map_get(&r->point_row, point);
    if (!row) {
        row = NEW(r->arena, int);
        *row = r->row_time.len;
        map_put(&r->point_row, point, row);
    }
    return *row;
}

static void new_row(DatasetReader *r)
{
    Arena *arena = r->arena;
    for (int i = 0; i < r->data->d; i++)
        VEC_PUSH(arena, &r->cells, 0);
    VEC_PUSH(arena, &r->row_time, NAN);
    VEC_PUSH(arena, &r->row_program,
             number_of(r, &r->program_number, &r->programs, r->field[0].text));
    VEC_PUSH(arena, &r->row_size,
             number_of(r, &r->size_number, &r->sizes, r->field[1].text));
    VEC_PUSH(arena, &r->row_expression, shared(r, &r->expression_text, r->field[2].text));
    VEC_PUSH(arena, &r->row_status, NULL);
}

static void keep_row(DatasetReader *r, const double *cell, double time, const char *status)
{
    int row = row_of_point(r), d = r->data->d;
    if (row == r->row_time.len)
        new_row(r);
    memcpy(r->cells.at + (size_t)row * (size_t)d, cell, sizeof *cell * (size_t)d);
    r->row_time.at[row] = time;
    r->row_status.at[row] = shared(r, &r->status_text, status);
}

static bool read_row(DatasetReader *r)
{
    if (!read_fields(r))
        return false;
    if (r->nfield != r->columns)
        return diag_error(r->diags,
                          span_join(r->field[0].span, r->field[r->nfield - 1].span), "M016",
                          "the row has %d fields, the header %d", r->nfield, r->columns);
    const char *status = r->field[r->columns - 1].text;
    double time;
    for (int i = 0; i < 2; i++)
        if (!r->field[i].text[0])
            return diag_error(r->diags, r->field[i].span, "M017", "no %s", head_names[i]);
    if (!status[0])
        return diag_error(r->diags, r->field[r->columns - 1].span, "M017", "no status");
    if (!read_time(r, status, &time))
        return false;
    double *cell = NEW_ARRAY(r->scratch, double, r->data->d);
    for (int i = 0; i < r->data->d; i++)
        if (!read_number(r, FIRST_FEATURE + i, &cell[i]))
            return false;
    keep_row(r, cell, time, status);
    return true;
}

// Files may be joined end to end: keys and the same header again between their rows.
static bool read_joined(DatasetReader *r)
{
    read_meta(r);
    size_t len = r->header.end - r->header.start;
    const char *text = r->source->text;
    if (r->at + len > r->source->len ||
        memcmp(text + r->at, text + r->header.start, len) != 0)
        return diag_error(r->diags, span_at(r, r->at, line_end(r)), "M013",
                          "a file joined to another needs the same header");
    r->at = MIN(r->at + len + 1, r->source->len);
    return true;
}

static bool read_rows(DatasetReader *r)
{
    int mistakes = 0;
    ArenaMark empty = arena_mark(r->scratch);
    while (r->at < r->source->len && mistakes < MISTAKES_MAX) {
        size_t end = line_end(r);
        bool blank = end == r->at || (end == r->at + 1 && r->source->text[r->at] == '\r');
        if (blank)
            r->at = MIN(end + 1, r->source->len);
        else if (r->source->text[r->at] == '#')
            mistakes += !read_joined(r);
        else
            mistakes += !read_row(r);
        arena_reset(r->scratch, empty);
    }
    if (mistakes == 0 && r->row_time.len == 0)
        return diag_error(r->diags, span_at(r, r->at, r->at), "M018",
                          "there is no row below the header");
    return mistakes == 0;
}

// Groups --------------------------------------------------------------------------------

typedef struct {
    const char *name;
    int number;
} SizeName;

static int compare_sizes(const void *a, const void *b)
{
    const SizeName *p = a, *q = b;
    double u = strtod(p->name, NULL), v = strtod(q->name, NULL);
    return u != v ? (u > v) - (u < v) : strcmp(p->name, q->name);
}

static void sort_sizes(DatasetReader *r)
{
    Dataset *data = r->data;
    int n = data->nsize = r->sizes.len;
    SizeName *sorted = NEW_ARRAY(r->arena, SizeName, n);
    int *rank = NEW_ARRAY(r->arena, int, n);
    for (int i = 0; i < n; i++)
        sorted[i] = (SizeName){r->sizes.at[i], i};
    qsort(sorted, (size_t)n, sizeof *sorted, compare_sizes);
    data->size_name = NEW_ARRAY(r->arena, const char *, n);
    for (int i = 0; i < n; i++) {
        data->size_name[i] = sorted[i].name;
        rank[sorted[i].number] = i;
    }
    for (int i = 0; i < data->n; i++)
        data->size[i] = rank[data->size[i]];
}

static void number_groups(Dataset *data, Arena *arena)
{
    int cells = data->nprogram * data->nsize;
    int *count = NEW_ARRAY(arena, int, cells), *number = NEW_ARRAY(arena, int, cells);
    for (int i = 0; i < data->n; i++)
        count[data->program[i] * data->nsize + data->size[i]]++;
    data->group_at = NEW_ARRAY(arena, DatasetGroup, cells);
    for (int c = 0; c < cells; c++) {
        if (!count[c])
            continue;
        number[c] = data->ngroup;
        data->group_at[data->ngroup++] =
            (DatasetGroup){.program = c / data->nsize,
                           .size = c % data->nsize,
                           .row = NEW_ARRAY(arena, int, count[c]),
                           .best_ns = INFINITY};
    }
    for (int i = 0; i < data->n; i++) {
        data->group[i] = number[data->program[i] * data->nsize + data->size[i]];
        DatasetGroup *g = &data->group_at[data->group[i]];
        g->row[g->n++] = i;
    }
}

static void set_throughput(Dataset *data)
{
    for (int i = 0; i < data->n; i++) {
        DatasetGroup *g = &data->group_at[data->group[i]];
        g->ok += !isnan(data->time_ns[i]);
        g->best_ns = fmin(g->best_ns, data->time_ns[i]);
    }
    for (int i = 0; i < data->n; i++)
        if (!isnan(data->time_ns[i]))
            data->throughput[i] = data->group_at[data->group[i]].best_ns / data->time_ns[i];
}

static Dataset *finish(DatasetReader *r)
{
    Dataset *data = r->data;
    data->n = r->row_time.len;
    data->x = (Matrix){data->n, data->d, r->cells.at};
    data->program = r->row_program.at;
    data->size = r->row_size.at;
    data->expression = r->row_expression.at;
    data->status = r->row_status.at;
    data->time_ns = r->row_time.at;
    data->nprogram = r->programs.len;
    data->program_name = r->programs.at;
    data->group = NEW_ARRAY(r->arena, int, data->n);
    data->throughput = NEW_ARRAY(r->arena, double, data->n);
    sort_sizes(r);
    number_groups(data, r->arena);
    set_throughput(data);
    return data;
}

Dataset *dataset_parse(const Source *source, Arena *arena, Diags *diags)
{
    DatasetReader *r =
        NEW_OF(arena, DatasetReader, .source = source, .arena = arena, .diags = diags);
    r->scratch = arena_new();
    r->data = NEW(arena, Dataset);
    Map *const maps[] = {&r->program_number, &r->size_number, &r->expression_text,
                         &r->status_text, &r->point_row};
    for (int i = 0; i < COUNTOF(maps); i++)
        *maps[i] = (Map){.arena = arena};
    read_meta(r);
    bool ok = read_header(r) && read_rows(r);
    arena_free(r->scratch);
    return ok ? finish(r) : NULL;
}

// Files ---------------------------------------------------------------------------------

// Names end up in JSON and SVG, so the bytes must be UTF-8; jansson takes no other.
static bool is_text(const Buf *text)
{
    json_auto_t *probe = json_stringn(text->text, text->len);
    bool is_utf8 = probe != NULL;
    return is_utf8 && !memchr(text->text, 0, text->len);
}

bool dataset_text(const char *path, Buf *text, Diags *diags)
{
    return file_read(path, FILE_DATA_MOST, text) ||
           diag_world(diags, "M019", "cannot read %s: %s", path, text->text);
}

Dataset *dataset_read(const char *path, Arena *arena, Diags *diags)
{
    AutoBuf text = buf_new();
    Dataset *data = NULL;
    if (dataset_text(path, &text, diags)) {
        Source *source = NEW_OF(arena, Source, arena_strdup(arena, path),
                                arena_strndup(arena, text.text, text.len), text.len);
        if (!is_text(&text))
            diag_error(diags, span_none, "M020", "%s is not UTF-8 text", path);
        else
            data = dataset_parse(source, arena, diags);
    }
    return data;
}

const char *dataset_meta(const Dataset *data, const char *key)
{
    int i = FIND(data->meta.at, data->meta.len, key, key);
    return i < 0 ? NULL : data->meta.at[i].value;
}
