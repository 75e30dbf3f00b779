// SPDX-License-Identifier: Apache-2.0
//
// The public interface (include/forewarp.h) over plan.

#include "forewarp.h"

#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fw_problem {
    Problem *problem;
};

struct fw_plan {
    Arena *arena;
    TuneResult result;
    const char *source;
};

const char *fw_version(void)
{
    return FW_VERSION;
}

void fw_free_text(char *text)
{
    free(text);
}

static void give_message(const Diags *diags, char **message)
{
    Buf text;
    buf_init(&text);
    diags_print(&text, diags);
    if (message)
        *message = text.len ? xstrdup(text.text) : NULL;
    buf_release(&text);
}

// Reads "N=1,M=2"; false with a diagnostic.
static bool parse_sizes(const char *sizes, Arena *arena, Binding *binding, int most, int *n,
                        Diags *diags)
{
    char *save = NULL, *text = arena_strdup(arena, sizes ? sizes : "");
    for (char *item = strtok_r(text, ", ", &save); item;
         item = strtok_r(NULL, ", ", &save)) {
        char *eq = strchr(item, '='), *end = NULL;
        long long value = eq ? strtoll(eq + 1, &end, 10) : 0;
        if (!eq || eq == item || end == eq + 1 || *end || *n == most)
            return diag_error(diags, span_none, "C002", "sizes are NAME=VALUE,...: `%s`",
                              item);
        *eq = 0;
        binding[(*n)++] = (Binding){item, value};
    }
    return true;
}

static fw_problem *bound(Problem *problem, const char *sizes, Diags *diags, char **message)
{
    Binding binding[64];
    int n = 0;
    bool ok = problem->kind &&
              parse_sizes(sizes, problem->arena, binding, COUNTOF(binding), &n, diags) &&
              problem_bind(problem, binding, n, diags);
    give_message(diags, message);
    arena_free(diags->arena);
    if (!ok) {
        problem_free(problem);
        return NULL;
    }
    fw_problem *made = xcalloc(1, sizeof *made);
    made->problem = problem;
    return made;
}

fw_problem *fw_problem_load(const char *path, const char *sizes, char **message)
{
    Diags diags;
    diags_init(&diags, arena_new());
    return bound(problem_load(path, &diags), sizes, &diags, message);
}

fw_problem *fw_problem_parse(const char *name, const char *text, const char *sizes,
                             char **message)
{
    Diags diags;
    diags_init(&diags, arena_new());
    return bound(problem_parse(name, text, &diags), sizes, &diags, message);
}

void fw_problem_free(fw_problem *problem)
{
    if (problem)
        problem_free(problem->problem);
    free(problem);
}

double fw_problem_bytes(const fw_problem *problem)
{
    return problem_bytes(problem->problem);
}

static const char *or_else(const char *text, const char *otherwise)
{
    return text && text[0] ? text : otherwise;
}

// The first `forewarp` on PATH; NULL if there is none.
static const char *find_worker(Arena *arena)
{
    const char *path = getenv("PATH");
    char *save = NULL, *copy = arena_strdup(arena, path ? path : "");
    for (char *dir = strtok_r(copy, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
        const char *file = arena_printf(arena, "%s/forewarp", dir);
        if (access(file, X_OK) == 0)
            return file;
    }
    return NULL;
}

static bool make_plan(fw_plan *plan, const Problem *problem, const fw_tune_options *o,
                      Diags *diags)
{
    Buf store;
    buf_init(&store);
    store_default_path(&store);
    bool unbounded = !(o->budget_s > 0) && o->budget_trials <= 0;
    TuneOptions options = {
        .device = or_else(o->device, "opencl:0"),
        .strategy = or_else(o->strategy, "auto"),
        .seed = o->seed ? o->seed : 1,
        .budget_s = o->budget_s > 0 ? o->budget_s
                    : unbounded     ? 30
                                    : INFINITY,
        .budget_trials = MAX(o->budget_trials, 0),
        .store = or_else(o->store, arena_strdup(plan->arena, store.text)),
        .out = or_else(o->out, "forewarp-out"),
        .place = {.folder = plan_cache_folder(plan->arena),
                  .worker = or_else(o->worker, find_worker(plan->arena))}};
    buf_release(&store);
    if (!options.place.worker)
        return diag_world(diags, "C014", "the forewarp program is not on PATH");
    Buf text;
    buf_init(&text);
    bool ok = tune(problem, &options, plan->arena, &plan->result, diags) &&
              file_read(plan->result.kernel_path, &text);
    plan->source = ok ? arena_strdup(plan->arena, text.text) : NULL;
    buf_release(&text);
    return ok;
}

fw_plan *fw_plan_make(const fw_problem *problem, const fw_tune_options *options,
                      char **message)
{
    fw_tune_options defaults = {0};
    fw_plan *plan = xcalloc(1, sizeof *plan);
    plan->arena = arena_new();
    Diags diags;
    diags_init(&diags, plan->arena);
    bool ok = make_plan(plan, problem->problem, options ? options : &defaults, &diags);
    give_message(&diags, message);
    if (ok)
        return plan;
    fw_plan_free(plan);
    return NULL;
}

void fw_plan_free(fw_plan *plan)
{
    if (plan)
        arena_free(plan->arena);
    free(plan);
}

const char *fw_plan_source(const fw_plan *plan)
{
    return plan->source;
}

const char *fw_plan_target(const fw_plan *plan)
{
    return plan->result.target;
}

const char *fw_plan_point(const fw_plan *plan)
{
    return plan->result.point;
}

double fw_plan_time(const fw_plan *plan)
{
    return plan->result.best_ns * 1e-9;
}

double fw_plan_baseline(const fw_plan *plan)
{
    return plan->result.baseline_ns * 1e-9;
}
