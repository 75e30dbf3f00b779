// SPDX-License-Identifier: Apache-2.0
//
// The public interface: a search of the caller's own, and wisdom.

#include "api/api.h"
#include "store/wisdom.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Searching ---------------------------------------------------------------------------

struct fw_search {
    const fw_problem *problem;
    fw_device device;
    TuneOptions options;
    TuneResult result;
    Arena *arena;
    Tune *tune;
    Buf text; // what was returned last
};

static bool open_search(fw_search *s, const fw_plan_options *o, Diags *diags)
{
    static const fw_plan_options defaults;
    o = o ? o : &defaults;
    // The caller's texts need not outlive the call.
    fw_plan_options copy = *o;
    const char **text[] = {&copy.strategy, &copy.where, &copy.store, &copy.worker,
                           &copy.models};
    for (int i = 0; i < COUNTOF(text); i++)
        *text[i] = *text[i] ? arena_strdup(s->arena, *text[i]) : NULL;
    if (!api_options(&copy, &s->device, s->arena, &s->options, diags))
        return false;
    s->tune = tune_open(s->problem->problem, &s->options, &s->device.info, s->arena,
                        &s->result, diags);
    return s->tune != NULL;
}

fw_search *fw_search_open(const fw_problem *problem, const fw_device *device,
                          const fw_plan_options *options, char **message)
{
    if (!api_given(problem, "problem", message) || !api_given(device, "device", message))
        return NULL;
    fw_search *s = xcalloc(1, sizeof *s);
    s->problem = problem;
    s->device = *device;
    s->arena = arena_new();
    s->text = buf_new();
    Diags diags = {.arena = arena_new()};
    bool ok = open_search(s, options, &diags);
    api_message(&diags, message);
    if (ok)
        return s;
    fw_search_free(s);
    return NULL;
}

void fw_search_free(fw_search *s)
{
    if (!s)
        return;
    tune_close(s->tune);
    buf_release(&s->text);
    arena_free(s->arena);
    free(s);
}

static const Space *space_of(const fw_search *s)
{
    return tune_variants(s->tune)->space;
}

double fw_search_points(const fw_search *s)
{
    return s ? space_count(space_of(s)) : 0;
}

int fw_search_parameters(const fw_search *s)
{
    return s ? space_params(space_of(s)) : 0;
}

const char *fw_search_parameter(const fw_search *s, int i, int *count)
{
    if (i < 0 || i >= fw_search_parameters(s))
        return NULL;
    const SpaceParam *param = space_param(space_of(s), i);
    if (count)
        *count = param->n;
    return param->name;
}

const char *fw_search_value(fw_search *s, int i, int k)
{
    if (i < 0 || i >= fw_search_parameters(s) || k < 0 ||
        k >= space_param(space_of(s), i)->n)
        return NULL;
    buf_clear(&s->text);
    space_value_print(&s->text, space_of(s), i, k);
    return s->text.text;
}

static bool read_point(const fw_search *s, const char *text, Point *point)
{
    return s && text && point_parse(space_of(s), text, point) &&
           space_valid(space_of(s), point);
}

int fw_search_valid(const fw_search *s, const char *point)
{
    Point parsed;
    return read_point(s, point, &parsed);
}

static const char *print_point(fw_search *s, const Point *point)
{
    buf_clear(&s->text);
    point_print(&s->text, space_of(s), point);
    return s->text.text;
}

const char *fw_search_plain(fw_search *s)
{
    Point point;
    if (!s)
        return NULL;
    variants_first(tune_variants(s->tune), &point, 1);
    return print_point(s, &point);
}

const char *fw_search_ask(fw_search *s)
{
    Point point;
    return s && tune_ask(s->tune, &point) ? print_point(s, &point) : NULL;
}

int fw_search_tell(fw_search *s, const char *text, double seconds)
{
    Point point;
    if (!read_point(s, text, &point))
        return 0;
    tune_tell(s->tune, &point, seconds > 0 ? seconds * 1e9 : INFINITY);
    return 1;
}

static bool measure(fw_search *s, const char *text, fw_trial *told, Diags *diags)
{
    Point point;
    Trial trial;
    if (!read_point(s, text, &point))
        return diag_error(diags, span_none, "C004", "`%s` is not a valid point", text);
    if (!s->options.place.worker &&
        !(s->options.place.worker = api_worker(NULL, s->arena, diags)))
        return false;
    if (!tune_measure(s->tune, &point, &trial, diags))
        return false;
    *told = api_trial(print_point(s, &point), &trial);
    return true;
}

int fw_search_measure(fw_search *s, const char *point, fw_trial *trial, char **message)
{
    if (!api_given(s, "search", message) || !api_given(point, "point", message) ||
        !api_given(trial, "trial", message))
        return 0;
    Diags diags = {.arena = arena_new()};
    bool ok = measure(s, point, trial, &diags);
    api_message(&diags, message);
    return ok;
}

static bool make_plan(fw_search *s, const char *text, fw_plan *plan, Diags *diags)
{
    Point point, best;
    double ns;
    bool any = tune_best(s->tune, &best, &ns);
    if (!text && !any)
        return diag_world(diags, "C056", "nothing was measured or told yet");
    if (text && !read_point(s, text, &point))
        return diag_error(diags, span_none, "C004", "`%s` is not a valid point", text);
    if (!text)
        point = best;
    plan->origin = tune_measured(s->tune, &point, &ns) ? FW_MEASURED : FW_PREDICTED;
    plan->time_ns = plan->origin == FW_MEASURED ? ns : 0;
    return recipe_make(tune_variants(s->tune), &point, NULL, plan->arena, &plan->recipe,
                       diags);
}

fw_plan *fw_search_plan(fw_search *s, const char *point, char **message)
{
    if (!api_given(s, "search", message))
        return NULL;
    Diags diags = {.arena = arena_new()};
    fw_plan *plan = api_plan(&s->device);
    bool ok = make_plan(s, point, plan, &diags);
    api_message(&diags, message);
    if (ok)
        return plan;
    fw_plan_free(plan);
    return NULL;
}

// Wisdom ------------------------------------------------------------------------------

char *fw_wisdom_export(const char *path, char **message)
{
    Wisdom wisdom = {0};
    Diags diags = {.arena = arena_new()};
    Store *store = store_open(api_store(path, diags.arena), &diags);
    bool ok = store && wisdom_load(store, diags.arena, &wisdom, &diags);
    AutoBuf text = buf_new();
    if (ok)
        wisdom_print(&text, &wisdom);
    store_close(store);
    api_message(&diags, message);
    return ok ? xstrdup(text.text) : NULL;
}

int fw_wisdom_import(const char *path, const char *name, const char *text, char **message)
{
    if (!api_given(name, "name", message) || !api_given(text, "text", message))
        return -1;
    Wisdom wisdom = {0};
    int changed = 0;
    Source source = {name, text, strlen(text)};
    Diags diags = {.arena = arena_new()};
    Store *store = NULL;
    bool ok = wisdom_parse(&source, diags.arena, &wisdom, &diags) &&
              (store = store_open(api_store(path, diags.arena), &diags)) &&
              wisdom_store(store, &wisdom, &changed, &diags);
    store_close(store);
    api_message(&diags, message);
    return ok ? changed : -1;
}

int fw_wisdom_forget(const char *path, const fw_problem *problem, const fw_device *device,
                     char **message)
{
    if (!api_given(problem, "problem", message) || !api_given(device, "device", message))
        return 0;
    Variants variants = {0};
    StoreKey key;
    Diags diags = {.arena = arena_new()};
    Store *store = store_open(api_store(path, diags.arena), &diags);
    bool opened =
        store && variants_open(&variants, problem->problem, &device->info, &diags);
    bool ok = opened;
    if (opened) {
        plan_key(problem->problem, space_hash(variants.space), &device->info, &key);
        int64_t session = store_session(store, &key, &diags);
        ok = session && store_forget(store, session, &diags);
    }
    variants_close(&variants);
    store_close(store);
    api_message(&diags, message);
    return ok;
}
