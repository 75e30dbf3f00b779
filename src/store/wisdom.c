// SPDX-License-Identifier: Apache-2.0
#include "store/wisdom.h"

#include "space/space.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Writing -----------------------------------------------------------------------------

static json_t *hash_json(uint64_t hash)
{
    char text[17];
    hash_hex(hash, text);
    return json_string(text);
}

static void put_line(Buf *out, json_t *json)
{
    AUTO_FREE char *text = json_dumps(json, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15));
    buf_printf(out, "%s\n", text ? text : "{}");
    json_decref(json);
}

void wisdom_print(Buf *out, const Wisdom *wisdom)
{
    put_line(out, json_pack("{s:s, s:i}", "forewarp", "wisdom", "format", WISDOM_FORMAT));
    VEC_EACH_REF(const StoreBest *, plan, wisdom)
        put_line(out, json_pack("{s:s, s:s, s:s, s:f, s:s, s:I, s:s, s:s, s:s, s:o, s:o}",
                                "problem", plan->key.problem, "device", plan->key.device,
                                "point", plan->point, "time_ns", plan->time_ns, "rigor",
                                rigor_name[plan->rigor], "trials", (json_int_t)plan->trials,
                                "when", plan->when, "version", plan->key.version,
                                "fingerprint", plan->key.fingerprint, "problem_hash",
                                hash_json(plan->key.problem_hash), "space_hash",
                                hash_json(plan->key.space_hash)));
}

// Reading -----------------------------------------------------------------------------

typedef struct {
    const Source *source;
    Span line;
    const json_t *json;
    Arena *arena;
    Diags *diags;
} WisdomLine;

static bool wrong(const WisdomLine *line, const char *what)
{
    return diag_error(line->diags, line->line, "W001", "%s", what);
}

enum { TEXT_MOST = 8192 };

// A text that a terminal and a database take as it is: UTF-8 without control characters,
// also those of two bytes.
static bool is_line(const char *text)
{
    size_t n = strnlen(text, TEXT_MOST + 1);
    json_auto_t *utf8 = n > 0 && n <= TEXT_MOST ? json_string(text) : NULL;
    bool ok = utf8 != NULL;
    for (const unsigned char *s = (const unsigned char *)text; ok && *s; s++)
        ok = *s >= ' ' && *s != 0x7f && !(*s == 0xc2 && s[1] < 0xa0);
    return ok;
}

bool wisdom_plausible(const StoreBest *plan)
{
    const char *const text[] = {plan->key.problem, plan->key.device, plan->key.fingerprint,
                                plan->key.version, plan->when};
    bool ok = plan->time_ns > 0 && plan->time_ns <= TRIAL_NS_MOST && plan->trials > 0;
    for (int i = 0; i < COUNTOF(text); i++)
        ok = ok && is_line(text[i]);
    return ok;
}

// A point, or a rule: points behind tests of sizes, "N < 64: lx=8; lx=16".
static bool is_plan(const char *text)
{
    char *copy = xstrdup(text), *save = NULL;
    bool ok = *text != 0;
    for (char *row = strtok_r(copy, ";", &save); row; row = strtok_r(NULL, ";", &save)) {
        const char *colon = strchr(row, ':'), *point = colon ? colon + 1 : row;
        ok = ok && point_is_text(point + strspn(point, " "));
    }
    free(copy);
    return ok;
}

static bool read_text(const WisdomLine *line, const char *key, const char **text)
{
    const json_t *value = json_object_get(line->json, key);
    const char *s = json_string_value(value);
    bool ok = s && strlen(s) == json_string_length(value) && is_line(s);
    *text = ok ? arena_strdup(line->arena, s) : NULL;
    return ok || wrong(line, arena_printf(line->diags->arena,
                                          "\"%s\" must be a text of one line", key));
}

static bool read_point(const WisdomLine *line, const char **point)
{
    return read_text(line, "point", point) &&
           (is_plan(*point) ||
            wrong(line, "\"point\" must be NAME=VALUE ..., each name once"));
}

static bool read_hex(const WisdomLine *line, const char *key, uint64_t *hash)
{
    const char *s = json_string_value(json_object_get(line->json, key));
    bool ok = s && strlen(s) == 16 && strspn(s, "0123456789abcdef") == 16;
    *hash = ok ? strtoull(s, NULL, 16) : 0;
    return ok || wrong(line, arena_printf(line->diags->arena,
                                          "\"%s\" must be 16 hexadecimal digits", key));
}

static bool read_numbers(const WisdomLine *line, StoreBest *plan)
{
    const json_t *time = json_object_get(line->json, "time_ns");
    const json_t *trials = json_object_get(line->json, "trials");
    const char *rigor = json_string_value(json_object_get(line->json, "rigor"));
    plan->time_ns = json_number_value(time);
    plan->trials = json_integer_value(trials);
    if (!(plan->time_ns > 0 && plan->time_ns <= TRIAL_NS_MOST))
        return wrong(line, "\"time_ns\" must be a number above 0, at most 1e18");
    if (!json_is_integer(trials) || plan->trials < 1)
        return wrong(line, "\"trials\" must be a whole number above 0");
    for (int i = 0; i < RIGORS; i++)
        if (rigor && strcmp(rigor, rigor_name[i]) == 0) {
            plan->rigor = (Rigor)i;
            return true;
        }
    return wrong(line, "\"rigor\" must be none, measure, patient or exhaustive");
}

static bool read_plan(const WisdomLine *line, StoreBest *plan)
{
    uint64_t fingerprint;
    *plan = (StoreBest){0};
    return read_text(line, "problem", &plan->key.problem) &&
           read_text(line, "device", &plan->key.device) && read_point(line, &plan->point) &&
           read_numbers(line, plan) && read_text(line, "when", &plan->when) &&
           read_text(line, "version", &plan->key.version) &&
           read_hex(line, "fingerprint", &fingerprint) &&
           read_text(line, "fingerprint", &plan->key.fingerprint) &&
           read_hex(line, "problem_hash", &plan->key.problem_hash) &&
           read_hex(line, "space_hash", &plan->key.space_hash) &&
           (json_object_size(line->json) == 11 || wrong(line, "an unknown key"));
}

static const char not_wisdom[] = "this is not wisdom: the first line must be "
                                 "{\"forewarp\": \"wisdom\", \"format\": 1}";

static bool read_head(const WisdomLine *line)
{
    const char *what = json_string_value(json_object_get(line->json, "forewarp"));
    const json_t *format = json_object_get(line->json, "format");
    if (!what || strcmp(what, "wisdom") != 0 || !json_is_integer(format))
        return wrong(line, not_wisdom);
    return json_integer_value(format) == WISDOM_FORMAT ||
           wrong(line, "wisdom of a format that this version does not read");
}

static bool read_line(WisdomLine *line, bool *head, Wisdom *wisdom)
{
    const char *text = line->source->text + line->line.start;
    json_error_t error;
    json_t *json =
        json_loadb(text, line->line.end - line->line.start, JSON_REJECT_DUPLICATES, &error);
    StoreBest plan;
    line->json = json;
    bool ok = json_is_object(json) ? *head || read_plan(line, &plan)
                                   : wrong(line, *head  ? not_wisdom
                                                 : json ? "expected a JSON object"
                                                        : error.text);
    if (ok && *head)
        ok = read_head(line);
    else if (ok)
        VEC_PUSH(line->arena, wisdom, plan);
    *head = false;
    json_decref(json);
    return ok;
}

bool wisdom_parse(const Source *source, Arena *arena, Wisdom *wisdom, Diags *diags)
{
    bool head = true, ok = true;
    WisdomLine line = {.source = source, .arena = arena, .diags = diags};
    for (size_t at = 0; ok && at < source->len;) {
        const char *text = source->text + at, *end = memchr(text, '\n', source->len - at);
        size_t n = end ? (size_t)(end - text) : source->len - at;
        line.line = (Span){source, (uint32_t)at, (uint32_t)(at + n)};
        if (strspn(text, " \t\r") < n)
            ok = read_line(&line, &head, wisdom);
        at += n + 1;
    }
    line.line = span_none;
    return ok && (!head || wrong(&line, "this is not wisdom: the text is empty"));
}

// Merging -----------------------------------------------------------------------------

static bool same_key(const StoreKey *a, const StoreKey *b)
{
    return a->problem_hash == b->problem_hash && a->space_hash == b->space_hash &&
           strcmp(a->problem, b->problem) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->fingerprint, b->fingerprint) == 0 &&
           strcmp(a->version, b->version) == 0;
}

static void merge_plan(StoreBest *into, const StoreBest *plan)
{
    Rigor rigor = MAX(into->rigor, plan->rigor);
    int64_t trials = MAX(into->trials, plan->trials);
    if (plan->time_ns < into->time_ns)
        *into = *plan;
    into->rigor = rigor;
    into->trials = trials;
}

void wisdom_merge(Arena *arena, Wisdom *into, const Wisdom *from)
{
    for (int i = 0; i < from->len; i++) {
        int k = 0;
        while (k < into->len && !same_key(&into->at[k].key, &from->at[i].key))
            k++;
        if (k < into->len)
            merge_plan(&into->at[k], &from->at[i]);
        else
            VEC_PUSH(arena, into, from->at[i]);
    }
}

// The store ---------------------------------------------------------------------------

typedef struct {
    Arena *arena;
    Wisdom *wisdom;
} WisdomLoad;

static void load_best(void *user, const StoreBest *best)
{
    const WisdomLoad *load = user;
    StoreBest copy = *best;
    // Times of routines are no plans; and what is damaged could not be read again.
    if (!wisdom_plausible(best) || !is_line(best->point) || !is_plan(best->point))
        return;
    copy.session = 0;
    copy.key.problem = arena_strdup(load->arena, best->key.problem);
    copy.key.fingerprint = arena_strdup(load->arena, best->key.fingerprint);
    copy.key.device = arena_strdup(load->arena, best->key.device);
    copy.key.version = arena_strdup(load->arena, best->key.version);
    copy.point = arena_strdup(load->arena, best->point);
    copy.when = arena_strdup(load->arena, best->when);
    VEC_PUSH(load->arena, load->wisdom, copy);
}

bool wisdom_load(Store *store, Arena *arena, Wisdom *wisdom, Diags *diags)
{
    WisdomLoad load = {arena, wisdom};
    return store_each_best(store, load_best, &load, diags);
}

static bool store_plan(Store *store, const StoreBest *plan, int *changed, Diags *diags)
{
    StoreTrial trial = {.point = plan->point,
                        .status = TRIAL_OK,
                        .time_ns = plan->time_ns,
                        .max_error = NAN,
                        .log = "from wisdom"};
    int64_t session = store_session(store, &plan->key, diags);
    bool added = false, right = false;
    if (!session || !store_add(store, session, &trial, &added, &right, diags))
        return false;
    // A plan that failed here is none: a search for a better one must not be left out.
    if (right && !store_put_rigor(store, session, plan->rigor, diags))
        return false;
    *changed += added;
    return true;
}

bool wisdom_store(Store *store, const Wisdom *wisdom, int *changed, Diags *diags)
{
    *changed = 0;
    if (!store_begin(store, diags))
        return false;
    bool ok = true;
    for (int i = 0; ok && i < wisdom->len; i++)
        ok = store_plan(store, &wisdom->at[i], changed, diags);
    return store_end(store, ok, diags) && ok;
}
