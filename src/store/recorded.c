// SPDX-License-Identifier: Apache-2.0
//
// Reads recorded spaces (recorded.h). All formats become the same table first: a row a
// configuration, a column a parameter; then the columns become domains in ascending order,
// so that a space is the same in whichever format it came.
//
// What evaluating a point cost is what the methodology of Willemsen et al. (2024) counts:
// building, all runs, and what tuner, search and validation took. Times are milliseconds in
// cache files, and in T4 what metadata.timeunit says.
//
// It writes neither format, and guesses no constraints: the points are the space.
#include "store/recorded.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 1 << 24 };

// What old cache files hold as the time of a failure.
#define FAILED_TIME 1e20

typedef struct {
    bool is_number;
    double number;
    const char *text;
} Cell;

typedef struct {
    const char *file, *wanted; // wanted: an objective, NULL: the file's own
    Arena *arena;              // of the reading
    Diags *diags;
    Recorded *made;
    int nparam;
    const char *param[SPACE_PARAMS_MAX];
    VEC(Cell) cells; // nparam a row
    VEC(RecordedPoint) rows;
    double unit_s; // of the file's times
} RecordedReader;

static bool wrong(const RecordedReader *r, const char *what)
{
    return diag_error(r->diags, span_none, "X001", "%s: %s", r->file, what);
}

static bool wrong_at(const RecordedReader *r, const char *what, const char *where)
{
    return diag_error(r->diags, span_none, "X001", "%s: %s `%s`", r->file, what, where);
}

// The table ---------------------------------------------------------------------------

static bool add_param(RecordedReader *r, const char *name)
{
    if (FIND_TEXT(r->param, r->nparam, name) >= 0)
        return wrong_at(r, "two parameters are named", name);
    if (r->nparam == SPACE_PARAMS_MAX)
        return wrong(r, "more than 64 parameters");
    r->param[r->nparam++] = name;
    return true;
}

static bool add_cell(RecordedReader *r, const json_t *value, const char *where)
{
    Cell cell = {json_is_number(value), json_number_value(value), NULL};
    if (json_is_string(value))
        cell.text = json_string_value(value);
    else if (json_is_boolean(value))
        cell.text = json_is_true(value) ? "True" : "False";
    else if (!cell.is_number)
        return wrong_at(r, "a value of a parameter is neither number, word nor truth in",
                        where);
    VEC_PUSH(r->arena, &r->cells, cell);
    return true;
}

// The cells of one configuration, in the order of the parameters.
static bool add_cells(RecordedReader *r, const json_t *values, const char *where)
{
    for (int i = 0; i < r->nparam; i++) {
        const json_t *value = json_object_get(values, r->param[i]);
        if (!value)
            return wrong_at(r, "a parameter has no value in", where);
        if (!add_cell(r, value, where))
            return false;
    }
    return true;
}

static double number_or(const json_t *value, double otherwise)
{
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

// Lists are summed; what is no time counts nothing.
static double seconds(const RecordedReader *r, const json_t *value)
{
    double sum = fmax(number_or(value, 0), 0);
    for (size_t i = 0; i < json_array_size(value); i++)
        sum += fmax(number_or(json_array_get(value, i), 0), 0);
    return sum * r->unit_s;
}

static double mean_of(const json_t *list)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        sum += number_or(json_array_get(list, i), NAN);
    return sum / (double)json_array_size(list);
}

// A point whose evaluation took the runs, the building, and what the keys of `from` say.
static RecordedPoint costed(const RecordedReader *r, double value, const json_t *runs,
                            const json_t *building, const json_t *from,
                            const char *const *key)
{
    RecordedPoint row = {.value = value,
                         .twice = {NAN, NAN},
                         .run_s = seconds(r, runs),
                         .build_s = seconds(r, building)};
    row.cost_s = row.run_s + row.build_s;
    for (; *key; key++)
        row.cost_s += seconds(r, json_object_get(from, *key));
    return row;
}

static bool add_row(RecordedReader *r, RecordedPoint row)
{
    if (!isfinite(row.value) || row.value >= FAILED_TIME)
        row.value = NAN;
    if (r->rows.len == ROWS_MOST)
        return wrong(r, "too many configurations");
    row.order = r->rows.len;
    VEC_PUSH(r->arena, &r->rows, row);
    return true;
}

// As the units and the names of Kernel Tuner's metrics have it: rates are to be high.
bool recorded_is_rate(const char *objective)
{
    size_t n = strlen(objective);
    const char *end = n > 2 ? objective + n - 2 : "";
    return strcmp(end, "/s") == 0 || strcmp(end, "/W") == 0 || strcmp(end, "/J") == 0 ||
           strcmp(objective, "score") == 0;
}

const char *recorded_objective(const char *text, bool *most)
{
    static const struct {
        const char *word;
        bool most;
    } words[] = {{"minimise ", false}, {"minimize ", false}, {"min ", false},
                 {"maximise ", true},  {"maximize ", true},  {"max ", true}};
    text += strspn(text, " ");
    for (int i = 0; i < COUNTOF(words); i++)
        if (strncmp(text, words[i].word, strlen(words[i].word)) == 0) {
            *most = words[i].most;
            return text + strlen(words[i].word);
        }
    *most = recorded_is_rate(text);
    return text;
}

// A name, or a list of which the first counts; "time" where nothing is said.
static void set_objective(RecordedReader *r, const json_t *objective)
{
    if (json_is_array(objective))
        objective = json_array_get(objective, 0);
    const char *name = json_string_value(objective);
    if (r->wanted) {
        const char *what = recorded_objective(r->wanted, &r->made->maximise);
        r->made->objective = arena_strdup(r->made->arena, what);
        return;
    }
    r->made->objective = arena_strdup(r->made->arena, name && *name ? name : "time");
    r->made->maximise = recorded_is_rate(r->made->objective);
}

// forewarp's own key of cache files, where the name does not say it.
static void set_direction(RecordedReader *r, const json_t *higher)
{
    if (json_is_array(higher))
        higher = json_array_get(higher, 0);
    if (json_is_boolean(higher) && !r->wanted)
        r->made->maximise = json_is_true(higher);
}

// Kernel Tuner's cache files -------------------------------------------------------------

// forewarp's own key `passes` has the times of several recordings.
static void read_twice(const json_t *entry, double twice[2])
{
    const json_t *list = json_object_get(entry, "passes");
    if (!list)
        list = json_object_get(entry, "times");
    twice[0] = twice[1] = NAN;
    for (size_t i = 0; i < json_array_size(list); i++)
        twice[i % 2] = fmin(twice[i % 2], number_or(json_array_get(list, i), NAN));
}

// forewarp's own keys: what a point is launched with.
static bool read_extents(const json_t *entry, const char *key, double extent[3])
{
    const json_t *list = json_object_get(entry, key);
    for (size_t d = 0; d < 3; d++)
        extent[d] = number_or(json_array_get(list, d), 0);
    return extent[0] >= 1 && extent[1] >= 1 && extent[2] >= 1;
}

static RecordedPoint entry_row(const RecordedReader *r, const json_t *entry)
{
    static const char *const key[] = {"framework_time", "strategy_time",
                                      "verification_time", NULL};
    const json_t *times = json_object_get(entry, "times");
    double value = json_object_get(entry, "__error__")
                       ? NAN
                       : number_or(json_object_get(entry, r->made->objective), NAN);
    RecordedPoint row =
        costed(r, value, times ? times : json_object_get(entry, "benchmark_time"),
               json_object_get(entry, "compile_time"), entry, key);
    read_twice(entry, row.twice);
    if (read_extents(entry, "groups", row.launch.groups) &&
        read_extents(entry, "local", row.launch.local))
        r->made->launches = true;
    else
        row.launch = (LaunchShape){0};
    return row;
}

static bool read_cache(RecordedReader *r, json_t *root)
{
    const json_t *keys = json_object_get(root, "tune_params_keys");
    json_t *cache = json_object_get(root, "cache"), *entry;
    const char *device = json_string_value(json_object_get(root, "device_name")), *key;
    if (!json_is_array(keys) || !json_is_object(cache))
        return wrong(r, "a cache file needs `tune_params_keys` and `cache`");
    r->unit_s = 1e-3;
    r->made->device = arena_strdup(r->made->arena, device ? device : "");
    set_objective(r, json_object_get(root, "objective"));
    set_direction(r, json_object_get(root, "objective_higher_is_better"));
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *name = json_string_value(json_array_get(keys, i));
        if (!name)
            return wrong(r, "`tune_params_keys` is not a list of names");
        if (!add_param(r, name))
            return false;
    }
    json_object_foreach(cache, key, entry) if (!json_is_object(entry) ||
                                               !add_cells(r, entry, key) ||
                                               !add_row(r, entry_row(r, entry)))
    {
        return json_is_object(entry) ? false : wrong_at(r, "not an object:", key);
    }
    return true;
}

// T4 -------------------------------------------------------------------------------------

static const struct {
    const char *name;
    double seconds;
} units[] = {
    {"seconds", 1},         {"s", 1},
    {"milliseconds", 1e-3}, {"miliseconds", 1e-3},
    {"ms", 1e-3},           {"microseconds", 1e-6},
    {"us", 1e-6},           {"nanoseconds", 1e-9},
    {"ns", 1e-9},
};

static bool set_unit(RecordedReader *r, const json_t *unit)
{
    const char *name = json_string_value(unit);
    r->unit_s = 1;
    for (int i = 0; name && i < COUNTOF(units); i++)
        if (strcasecmp(units[i].name, name) == 0) {
            r->unit_s = units[i].seconds;
            return true;
        }
    return !unit || wrong_at(r, "unknown unit of time", name ? name : "(no word)");
}

typedef bool ReadResult(RecordedReader *r, json_t *result, size_t number);

static bool read_results(RecordedReader *r, json_t *root, const char *key,
                         const json_t *unit, ReadResult *read)
{
    json_t *results = json_object_get(root, key);
    if (!json_is_array(results))
        return wrong(r, arena_printf(r->arena, "`%s` is not a list", key));
    if (!set_unit(r, unit))
        return false;
    for (size_t i = 0; i < json_array_size(results); i++)
        if (!read(r, json_array_get(results, i), i))
            return false;
    return true;
}

static double result_value(const RecordedReader *r, const json_t *result)
{
    const char *invalidity = json_string_value(json_object_get(result, "invalidity"));
    const json_t *list = json_object_get(result, "measurements");
    if (invalidity && strcmp(invalidity, "correct") != 0)
        return NAN;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *measured = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(measured, "name"));
        if (name && strcmp(name, r->made->objective) == 0)
            return number_or(json_object_get(measured, "value"), NAN);
    }
    return strcmp(r->made->objective, "time") == 0
               ? mean_of(json_object_get(json_object_get(result, "times"), "runtimes"))
               : NAN;
}

static RecordedPoint result_row(const RecordedReader *r, const json_t *result)
{
    static const char *const key[] = {"framework", "search_algorithm", "validation", NULL};
    const json_t *times = json_object_get(result, "times");
    const json_t *compilation = json_object_get(times, "compilation");
    return costed(r, result_value(r, result), json_object_get(times, "runtimes"),
                  compilation ? compilation : json_object_get(times, "compilation_time"),
                  times, key);
}

static bool read_result(RecordedReader *r, json_t *result, size_t number)
{
    json_t *configuration = json_object_get(result, "configuration"), *value;
    const char *invalidity = json_string_value(json_object_get(result, "invalidity"));
    const char *where = arena_printf(r->arena, "result %zu", number), *name;
    if (!json_is_object(configuration))
        return wrong_at(r, "no configuration in", where);
    if (invalidity && strcmp(invalidity, "constraints") == 0)
        return true; // not a point of the space
    if (!r->nparam) {
        set_objective(r, json_object_get(result, "objectives"));
        json_object_foreach(configuration, name,
                            value) if (!add_param(r, name)) return false;
        if (!r->nparam)
            return wrong_at(r, "no parameters in", where);
    }
    if (json_object_size(configuration) != (size_t)r->nparam)
        return wrong_at(r, "other parameters than before in", where);
    return add_cells(r, configuration, where) && add_row(r, result_row(r, result));
}

static bool read_t4(RecordedReader *r, json_t *root)
{
    const json_t *unit = json_object_get(json_object_get(root, "metadata"), "timeunit");
    r->made->device = "";
    return read_results(r, root, "results", unit, read_result);
}

// KTT's own results --------------------------------------------------------------------

static json_t *ktt_value(const json_t *configuration, const char *name)
{
    for (size_t i = 0; i < json_array_size(configuration); i++) {
        const json_t *item = json_array_get(configuration, i);
        const char *known = json_string_value(json_object_get(item, "Name"));
        if (known && strcmp(known, name) == 0)
            return json_object_get(item, "Value");
    }
    return NULL;
}

static RecordedPoint ktt_row(const RecordedReader *r, const json_t *result)
{
    static const char *const key[] = {"TotalOverhead",    "DataMovementOverhead",
                                      "SearcherOverhead", "ValidationOverhead",
                                      "ExtraDuration",    NULL};
    const char *status = json_string_value(json_object_get(result, "Status"));
    const json_t *duration = json_object_get(result, "TotalDuration");
    bool ok = status && strcmp(status, "Ok") == 0;
    return costed(r, ok ? number_or(duration, NAN) * r->unit_s * 1e3 : NAN, duration, NULL,
                  result, key);
}

static bool read_ktt_result(RecordedReader *r, json_t *result, size_t number)
{
    const json_t *configuration = json_object_get(result, "Configuration");
    const char *where = arena_printf(r->arena, "result %zu", number);
    size_t n = json_array_size(configuration);
    if (n == 0)
        return wrong_at(r, "no Configuration in", where);
    for (size_t i = 0; i < n && number == 0; i++) {
        const json_t *item = json_array_get(configuration, i);
        const char *name = json_string_value(json_object_get(item, "Name"));
        if (!name || !add_param(r, name))
            return name ? false : wrong_at(r, "a parameter without a Name in", where);
    }
    if (n != (size_t)r->nparam)
        return wrong_at(r, "other parameters than before in", where);
    for (int i = 0; i < r->nparam; i++) {
        const json_t *value = ktt_value(configuration, r->param[i]);
        if (!value)
            return wrong_at(r, "a parameter has no value in", where);
        if (!add_cell(r, value, where))
            return false;
    }
    return add_row(r, ktt_row(r, result));
}

static bool read_ktt(RecordedReader *r, json_t *root)
{
    const json_t *metadata = json_object_get(root, "Metadata");
    const char *device = json_string_value(json_object_get(metadata, "Device"));
    r->made->device = arena_strdup(r->made->arena, device ? device : "");
    set_objective(r, NULL);
    return read_results(r, root, "Results", json_object_get(metadata, "TimeUnit"),
                        read_ktt_result);
}

// The space -----------------------------------------------------------------------------

// Both cells are of one column, whose cells are all numbers, or all texts.
static int compare_cells(const void *p, const void *q)
{
    const Cell *a = p, *b = q;
    return a->text ? strcmp(a->text, b->text) : compare_doubles(&a->number, &b->number);
}

// The different ones in order; how many.
static int sort_cells(Cell *at, int n)
{
    int kept = 0;
    qsort(at, (size_t)n, sizeof *at, compare_cells);
    for (int i = 0; i < n; i++)
        if (i == 0 || compare_cells(&at[i], &at[kept - 1]) != 0)
            at[kept++] = at[i];
    return kept;
}

static bool is_number_column(const RecordedReader *r, int param)
{
    for (int i = 0; i < r->rows.len; i++)
        if (!r->cells.at[(size_t)i * (size_t)r->nparam + (size_t)param].is_number)
            return false;
    return true;
}

static bool make_column(RecordedReader *r, int param, Point *point)
{
    int n = r->rows.len;
    bool numbers = is_number_column(r, param);
    Cell *own = NEW_ARRAY(r->arena, Cell, n + 1), *value = NEW_ARRAY(r->arena, Cell, n + 1);
    for (int i = 0; i < n; i++) {
        own[i] = r->cells.at[(size_t)i * (size_t)r->nparam + (size_t)param];
        if (!numbers && !own[i].text)
            own[i].text = arena_printf(r->arena, "%.17g", own[i].number);
        value[i] = own[i];
    }
    int values = sort_cells(value, n);
    if (values > INT16_MAX)
        return wrong_at(r, "too many values of parameter", r->param[param]);
    double *number = NEW_ARRAY(r->arena, double, values + 1);
    const char **word = NEW_ARRAY(r->arena, const char *, values + 1);
    for (int i = 0; i < values; i++) {
        number[i] = value[i].number;
        word[i] = value[i].text;
    }
    if (numbers)
        space_add(r->made->space, r->param[param], number, values);
    else
        space_add_words(r->made->space, r->param[param], word, values);
    for (int i = 0; i < n; i++) {
        const Cell *at =
            bsearch(&own[i], value, (size_t)values, sizeof *value, compare_cells);
        point[i].choice[param] = (int16_t)(at - value);
    }
    return true;
}

// A configuration that is there twice is what it was last.
static bool make_space(RecordedReader *r)
{
    Recorded *made = r->made;
    if (!r->nparam || !r->rows.len)
        return wrong(r, "no configurations");
    Point *point = NEW_ARRAY(r->arena, Point, r->rows.len);
    made->space = space_new();
    for (int i = 0; i < r->nparam; i++)
        if (!make_column(r, i, point))
            return false;
    space_only(made->space, point, r->rows.len);
    if (!space_build(made->space, r->diags))
        return false;
    made->n = (int)space_count(made->space);
    made->at = NEW_ARRAY(made->arena, RecordedPoint, made->n);
    for (int i = 0; i < r->rows.len; i++)
        made->at[space_number(made->space, &point[i])] = r->rows.at[i];
    made->least = INFINITY;
    made->most = -INFINITY;
    for (int i = 0; i < made->n; i++) {
        made->nvalid += !isnan(made->at[i].value);
        made->least = fmin(made->least, made->at[i].value);
        made->most = fmax(made->most, made->at[i].value);
    }
    return made->nvalid > 0 || wrong(r, "every configuration failed");
}

// Text ----------------------------------------------------------------------------------

// Python's json writes words that JSON lacks: they become empty texts, which are no
// numbers.
static void replace_words(char *text, size_t len)
{
    static const char *const word[] = {"NaN", "-Infinity", "Infinity"};
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (quoted && text[i] == '\\')
            i++;
        for (int w = 0; !quoted && w < COUNTOF(word); w++) {
            size_t n = strlen(word[w]);
            if (len - i < n || memcmp(text + i, word[w], n) != 0)
                continue;
            memset(text + i, ' ', n);
            memcpy(text + i, "\"\"", 2);
            i += n - 1;
        }
    }
}

// The last place at which an entry of a cache file, on a line of its own, ends.
static size_t whole_lines(const char *text, size_t len)
{
    for (size_t i = len; i > 2; i--)
        if (text[i - 1] == '\n' || i == len) {
            size_t end = i;
            while (end > 0 && strchr(" \t\r\n,", text[end - 1]))
                end--;
            if (end > 0 && text[end - 1] == '}')
                return end;
        }
    return 0;
}

// A cache file grows by lines and is closed at the end: closes it after its last whole one.
static json_t *load_unclosed(const char *text, size_t len)
{
    AutoBuf closed = buf_new();
    buf_write(&closed, text, whole_lines(text, len));
    buf_puts(&closed, "\n}}");
    return json_loadb(closed.text, closed.len, 0, NULL);
}

// Braces that are open at the end.
static int depth(const char *text, size_t len)
{
    bool quoted = false;
    int n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (quoted && text[i] == '\\')
            i++;
        else if (!quoted)
            n += (text[i] == '{') - (text[i] == '}');
    }
    return n;
}

static size_t without_blanks(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        len--;
    return len;
}

size_t recorded_body(const char *text, size_t len)
{
    len = without_blanks(text, len);
    if (depth(text, len) != 0)
        return len && text[len - 1] == '{' ? len : whole_lines(text, len);
    for (int i = 0; i < 2 && len > 0; i++) // of the file, and of the cache before it
        len = without_blanks(text, without_blanks(text, len) - 1);
    return len;
}

json_t *recorded_load(const char *name, char *text, size_t len, Diags *diags)
{
    json_error_t error;
    replace_words(text, len);
    json_t *root = json_loadb(text, len, 0, &error);
    if (!root && json_error_code(&error) == json_error_premature_end_of_input)
        root = load_unclosed(text, len);
    if (!root)
        diag_error(diags, span_none, "X001", "%s:%d:%d: %s", name, error.line, error.column,
                   error.text);
    return root;
}

static bool read_root(RecordedReader *r, json_t *root)
{
    if (json_object_get(root, "cache"))
        return read_cache(r, root) && make_space(r);
    if (json_object_get(root, "results"))
        return read_t4(r, root) && make_space(r);
    if (json_object_get(root, "Results"))
        return read_ktt(r, root) && make_space(r);
    if (json_object_get(root, "ConfigurationSpace"))
        return wrong(
            r, "a T1 file, which describes a search but records none: use forewarp tune");
    return wrong(r, "neither T4 results (`results`), nor a cache file (`cache`), nor "
                    "results of KTT (`Results`)");
}

static const char *plain_name(Arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    Buf shown = buf_new(); // it stands in tables and JSON
    path = slash ? slash + 1 : path;
    buf_shown(&shown, path, strlen(path));
    char *name = buf_keep(&shown, arena);
    static const char *const ending[] = {".gz", ".json"};
    for (int i = 0; i < COUNTOF(ending); i++)
        if (path_ends(name, ending[i]))
            name[strlen(name) - strlen(ending[i])] = 0;
    return name;
}

static Recorded *parse(const char *name, char *text, size_t len, const char *objective,
                       Diags *diags)
{
    Recorded *made = xcalloc(1, sizeof *made);
    made->arena = arena_new();
    made->name = plain_name(made->arena, name);
    RecordedReader r = {.file = name,
                        .wanted = objective,
                        .arena = arena_new(),
                        .diags = diags,
                        .made = made};
    json_auto_t *root = recorded_load(r.file, text, len, diags);
    bool ok = root && read_root(&r, root);
    arena_free(r.arena);
    if (ok)
        return made;
    recorded_free(made);
    return NULL;
}

Recorded *recorded_parse(const char *name, const char *text, size_t len, Diags *diags)
{
    AutoBuf copy = buf_new();
    buf_write(&copy, text, len);
    return parse(name, copy.text, copy.len, NULL, diags);
}

Recorded *recorded_read(const char *path, const char *objective, Diags *diags)
{
    AutoBuf text = buf_new();
    Recorded *made = NULL;
    if (file_read(path, FILE_DATA_MOST, &text))
        made = parse(path, text.text, text.len, objective, diags);
    else
        diag_world(diags, "X002", "cannot read %s: %s", path, text.text);
    return made;
}

void recorded_free(Recorded *recorded)
{
    if (!recorded)
        return;
    space_free(recorded->space);
    arena_free(recorded->arena);
    free(recorded);
}

double recorded_noise(const Recorded *recorded, int *n)
{
    double sum = 0;
    *n = 0;
    for (int i = 0; i < recorded->n; i++) {
        const double *twice = recorded->at[i].twice;
        if (!(twice[0] > 0 && twice[1] > 0))
            continue;
        sum += fabs(twice[0] - twice[1]) / fmin(twice[0], twice[1]);
        ++*n;
    }
    return *n ? sum / *n : NAN;
}

static bool recorded_shape(const void *user, const Point *point, LaunchShape *shape)
{
    const Recorded *recorded = user;
    *shape = recorded->at[space_number(recorded->space, point)].launch;
    return shape->groups[0] > 0;
}

LaunchShapes recorded_launches(const Recorded *recorded)
{
    return (LaunchShapes){recorded->launches ? recorded_shape : NULL, recorded};
}

// Rates turn round; scores that may be negative are told by how far they are from the best.
double recorded_cost(const Recorded *recorded, const RecordedPoint *point)
{
    if (isnan(point->value))
        return INFINITY;
    if (!recorded->maximise)
        return point->value * 1e6;
    if (recorded->least <= 0)
        return 1e6 * (1 + recorded->most - point->value);
    return 1e9 / point->value;
}

int *recorded_order(const Recorded *recorded)
{
    size_t n = (size_t)recorded->n;
    AUTO_FREE Numbered *at = xcalloc(n + 1, sizeof *at);
    int *order = xcalloc(n + 1, sizeof *order);
    for (int i = 0; i < recorded->n; i++)
        at[i] = (Numbered){recorded_cost(recorded, &recorded->at[i]), i};
    sort_numbered(at, recorded->n);
    for (int i = 0; i < recorded->n; i++)
        order[i] = at[i].number;
    return order;
}
