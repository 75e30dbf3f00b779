// SPDX-License-Identifier: Apache-2.0
//
// forewarp tune: from a program to a verified, fast kernel.

#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

// What is shown while it searches.
typedef struct {
    Screen screen;
    const char *folder; // of the live page
} Watch;

static void follow(void *user, const struct Run *run)
{
    cli_report_live(run, ((Watch *)user)->folder);
}

static void show(void *user, const Progress *p)
{
    Screen *screen = &((Watch *)user)->screen;
    bool search = strcmp(p->stage, "search") == 0;
    screen_show(screen, &(Moment){.stage = p->stage,
                                  .what = "trials",
                                  .done = p->trials,
                                  .of = search ? p->budget_trials : 0,
                                  .budget_s = search ? p->budget_s : INFINITY,
                                  .best_ns = p->best_ns});
}

static json_t *sizes_json(const int64_t size[3])
{
    return json_pack("[I, I, I]", (json_int_t)size[0], (json_int_t)size[1],
                     (json_int_t)size[2]);
}

static Limit limit_of(const TuneResult *r)
{
    return (Limit){{r->roofline_ns, r->copy_ns, r->compute_ns}, r->bytes, r->flops};
}

// Names and numbers; null where one is not known.
static json_t *numbers_json(const char *const *name, const double *value, int n)
{
    json_t *json = json_object();
    for (int i = 0; i < n; i++)
        json_object_set_new(json, name[i], json_finite(value[i]));
    return json;
}

static json_t *front_json(const TuneResult *r)
{
    json_t *list = json_array();
    ARRAY_EACH_REF(const TuneFront *, f, r->front, r->nfront)
        json_array_append_new(
            list,
            json_pack("{s:s, s:o, s:o, s:o}", "point", f->point, "time_ns",
                      json_finite(f->values.time_ns), "metrics",
                      numbers_json(r->metric, f->values.metric, r->nmetric), "objectives",
                      numbers_json(r->objective, f->values.objective, r->nobjective)));
    return list;
}

static json_t *result_json(const TuneResult *r)
{
    Limit limit = limit_of(r);
    json_t *trials = json_object();
    for (int i = 0; i < TRIAL_STATUS_COUNT; i++)
        json_object_set_new(trials, trial_status_name[i], json_integer(r->count[i]));
    json_t *best =
        json_pack("{s:s, s:o, s:s, s:{s:o, s:o}, s:i, s:b, s:f}", "point", r->point,
                  "time_ns", json_finite(r->best_ns), "kernel", r->kernel_path, "launch",
                  "global", sizes_json(r->global), "local", sizes_json(r->local),
                  "launches", r->nlaunch, "checked", r->checked, "max_error", r->max_error);
    json_object_set_new(best, "metrics",
                        numbers_json(r->metric, r->values.metric, r->nmetric));
    json_object_set_new(best, "objectives",
                        numbers_json(r->objective, r->values.objective, r->nobjective));
    json_t *ranking = r->ranked ? json_pack("{s:i, s:f, s:s}", "points", r->ranked,
                                            "seconds", r->ranking_s, "model", r->model)
                                : json_null();
    return json_pack("{s:s, s:{s:s, s:s, s:i}, s:s, s:I, s:f, s:f, s:f, s:I, s:s, s:o, "
                     "s:o, s:o, s:o, s:f, "
                     "s:o, s:o, s:s?, s:s?, s:s?, s:o}",
                     "problem", r->problem, "device", "name", r->device, "fingerprint",
                     r->fingerprint, "count", r->devices, "strategy", r->strategy, "seed",
                     (json_int_t)r->seed, "elapsed_s", r->elapsed_s, "grace_s", r->grace_s,
                     "space", r->space_points, "reused", (json_int_t)r->reused, "reference",
                     r->reference, "trials", trials, "best", best, "baseline_ns",
                     json_finite(r->baseline_ns), "copy_ns", json_finite(r->copy_ns),
                     "bytes", r->bytes, "ranking", ranking, "roofline",
                     cli_roofline_json(&limit, r->best_ns), "sandbox", r->sandbox, "enough",
                     r->enough, "first_pick", r->first_pick, "front", front_json(r));
}

static void print_row(const char *what, double ns, const TuneResult *r)
{
    AutoBuf time = buf_new();
    if (!isfinite(ns))
        buf_puts(&time, "-");
    else
        cli_time(&time, ns);
    printf("  %-8s %12s", what, time.text);
    if (isfinite(ns))
        printf("  %8.1f GB/s", r->bytes / ns);
    if (isfinite(ns) && r->roofline_ns > 0)
        printf("  %6.1f %% of roofline", 100 * r->roofline_ns / ns);
    putchar('\n');
}

// What is known of the best besides its time.
static void print_metrics(const TuneResult *r)
{
    int n = 0;
    for (int i = 0; i < r->nmetric; i++)
        if (!isnan(r->values.metric[i]))
            printf("%s%s %.6g%s%s", n++ ? ", " : "  metrics  ", r->metric[i],
                   r->values.metric[i], r->unit[i][0] ? " " : "", r->unit[i]);
    fputs(n ? "\n" : "", stdout);
}

static void print_front(const TuneResult *r)
{
    enum { SHOWN = 12 };
    if (!r->nfront)
        return;
    printf("  front    %d trials that no other beats in ", r->nfront);
    for (int i = 0; i < r->nobjective; i++)
        printf("%s%s", i ? ", " : "", r->objective[i]);
    puts(r->nfront > SHOWN ? "; the record has all" : "");
    for (int i = 0; i < MIN(r->nfront, SHOWN); i++) {
        printf("          ");
        for (int k = 0; k < r->nobjective; k++)
            printf(" %10.4g", r->front[i].values.objective[k]);
        printf("  %s\n", r->front[i].point);
    }
}

// What is made best, where that is not the time.
static void print_objectives(const TuneResult *r)
{
    if (r->nobjective == 1 && strcmp(r->objective[0], "min time") == 0)
        return;
    for (int i = 0; i < r->nobjective; i++)
        printf("  %-8s %s = %.4g\n", i ? "" : "goal", r->objective[i],
               r->values.objective[i]);
}

static void print_result(const TuneResult *r)
{
    AutoBuf counts = buf_new();
    trial_counts(&counts, r->count);
    printf("%s on %s", r->problem, r->device);
    if (r->devices > 1)
        printf(", %d of them", r->devices);
    putchar('\n');
    printf("  %lld trials (%lld from the store) of %.0f points in %.1f s:%s",
           (long long)r->trials, (long long)r->reused, r->space_points, r->elapsed_s,
           counts.text);
    if (r->grace_s > 0)
        printf("\n  the first right kernel came %.1f s after the end of the budget; "
               "the reference took %.1f s",
               r->grace_s, r->reference_s);
    if (r->signal)
        printf("\n  ended by a signal (%s); this is what was found before it",
               strsignal(r->signal));
    if (r->enough)
        printf("\n  ended early: %s", r->enough);
    if (r->ranked)
        printf("\n  ranked %d points in %.2f s by %s", r->ranked, r->ranking_s, r->model);
    if (r->sandbox)
        printf("\n  sandbox: %s", r->sandbox);
    printf("\n  reference: %s; largest relative error %.2g\n", r->reference, r->max_error);
    print_row("plain", r->baseline_ns, r);
    print_row("best", r->best_ns, r);
    print_objectives(r);
    print_metrics(r);
    print_front(r);
    Limit limit = limit_of(r);
    cli_print_roofline(&limit);
    if (r->in_flight_bytes > 0)
        printf("  in flight  %.1f KiB a multiprocessor, estimated\n",
               r->in_flight_bytes / 1024);
    printf("  point    %s\n  kernel   %s\n", r->point, r->kernel_path);
    printf("  record   %s  (`forewarp report` makes a page of it)\n", r->record_path);
}

// Ranges of sizes -----------------------------------------------------------------------

static json_t *range_json(const RangeResult *r)
{
    json_t *sizes = json_array(), *rows = json_array();
    for (int i = 0; i < r->nsize; i++)
        json_array_append_new(sizes,
                              json_pack("{s:s, s:o, s:o, s:o}", "problem", r->size[i].label,
                                        "best_ns", json_finite(r->size[i].best_ns),
                                        "chosen_ns", json_finite(r->size[i].chosen_ns),
                                        "plain_ns", json_finite(r->size[i].plain_ns)));
    ARRAY_EACH_REF(const RuleRow *, row, r->rule.row, r->rule.n)
        json_array_append_new(
            rows, json_pack("{s:s, s:s}", "cost_fs", row->cost, "point", row->point));
    return json_pack("{s:s, s:s, s:s, s:f, s:I, s:I, s:i, s:o, s:o}", "problem",
                     r->base.problem, "device", r->base.device, "reference",
                     r->base.reference, "elapsed_s", r->base.elapsed_s, "trials",
                     (json_int_t)r->base.trials, "reused", (json_int_t)r->base.reused,
                     "kernels", r->rule.n, "rule", rows, "sizes", sizes);
}

static void print_range_time(double ns)
{
    AutoBuf text = buf_new();
    if (isfinite(ns))
        cli_time(&text, ns);
    printf(" %12s", isfinite(ns) ? text.text : "not timed");
}

// Of "N=96@64:128" the size is enough: the ranges stand above.
static void print_range_row(const RangeSize *size)
{
    AutoBuf at = buf_new();
    for (const char *part = strchr(size->label, ' '); part; part = strchr(part + 1, ' '))
        buf_printf(&at, "%.*s", 1 + (int)strcspn(part + 1, "@ "), part);
    printf(" %-36s", at.text);
    print_range_time(size->best_ns);
    print_range_time(size->chosen_ns);
    if (isfinite(size->chosen_ns))
        printf(" %8.1f %%", 100 * size->best_ns / size->chosen_ns);
    printf("\n");
}

static void print_range(const RangeResult *r)
{
    AutoBuf counts = buf_new();
    trial_counts(&counts, r->base.count);
    printf("%s on %s\n  %lld trials (%lld from the store) in %.1f s:%s\n", r->base.problem,
           r->base.device, (long long)r->base.trials, (long long)r->base.reused,
           r->base.elapsed_s, counts.text);
    printf("  reference  %s\n", r->base.reference);
    printf("  %-35s   best of %2d  by the rule\n", "size", r->kernels);
    for (int i = 0; i < r->nsize; i++)
        print_range_row(&r->size[i]);
    printf("  %d kernel%s%s:\n", r->rule.n, r->rule.n == 1 ? "" : "s",
           r->rule.n == 1 ? "" : "; the one whose cost is least is run");
    ARRAY_EACH_REF(const RuleRow *, row, r->rule.row, r->rule.n) {
        AutoBuf text = buf_new();
        rule_print_row(&text, row);
        printf("    %s\n", text.text);
    }
}

// Before there is anything to tell: a device may take seconds to open.
static void show_start(Screen *screen)
{
    if (screen->terminal)
        screen_show(screen,
                    &(Moment){.stage = "start", .budget_s = INFINITY, .best_ns = INFINITY});
}

// All kernels and their rule, as `emit --best --host` writes them.
static bool write_program(Options *o, const char *path)
{
    Options emit = *o;
    emit.best = emit.host = true;
    emit.out[0] = path;
    emit.nout = 1;
    bool ok = cmd_emit(&emit) == 0;
    o->diags = emit.diags;
    return ok;
}

static bool lead_range(Options *o, const Problem *problem, const TuneOptions *options,
                       Screen *screen)
{
    RangeResult *result = NEW(o->arena, RangeResult);
    show_start(screen);
    bool ok = tune_range(problem, options, o->arena, result, &o->diags);
    screen_close(screen);
    const char *path = arena_printf(o->arena, "%s/%s.c", options->out, problem->name);
    ok = ok && write_program(o, path);
    if (ok && cli_prints(o)) {
        print_range(result);
        printf("  program  %s, and its header: a function that takes the sizes\n", path);
    }
    return ok && cli_json(o, range_json(result));
}

// What would only fail at the end, or after the reference was computed, is tried first.
static bool is_ready(Options *o, const char *out)
{
    const SearchKind *kind = search_find(o->strategy);
    if (!kind)
        return cli_no_strategy(o, o->strategy);
    if (kind->needs_ranking && !kind->by_weights && !o->model && !cli_models_folder(o))
        return diag_error(&o->diags, span_none, "C017",
                          "strategy `%s` needs --model FILE; make one with `forewarp fit "
                          "boost DATA -o FILE`, and DATA with `forewarp explore`",
                          o->strategy);
    if (kind->needs_ranking && !kind->by_weights && o->model) {
        Model *model = model_load(o->model, &o->diags);
        if (!model)
            return false;
        model_free(model);
    }
    if (!file_mkdirs(out) || access(arena_printf(o->arena, "%s/.", out), W_OK | X_OK) != 0)
        return diag_world(&o->diags, "C011", "cannot write in the folder %s: %s", out,
                          strerror(errno));
    return true;
}

// Who measures: this process on one device or several, or ranks of MPI on one each.
typedef struct {
    Mpi *mpi; // NULL: one process
    RunnerPeer peer[CLI_LIST_MAX];
} Team;

static bool find_team(Options *o, TuneOptions *options, Team *team)
{
    const char **device;
    if (o->mpi && !(team->mpi = mpi_open(o)))
        return false;
    int n = cli_devices(o, o->device, &device), share = n;
    if (n == 0)
        return false;
    if (team->mpi) {
        options->device = device[mpi_local(team->mpi, &share) % n];
        options->peer = mpi_peers(team->mpi, &options->npeer);
    } else {
        options->device = device[0];
        for (int i = 1; i < n; i++)
            team->peer[i - 1] = (RunnerPeer){.kind = &peer_local, .device = device[i]};
        options->peer = team->peer;
        options->npeer = n - 1;
    }
    options->share = share;
    return true;
}

static bool lead(Options *o, const Problem *problem, const TuneOptions *options,
                 Screen *screen)
{
    TuneResult result;
    show_start(screen);
    bool ok = tune(problem, options, o->arena, &result, &o->diags);
    screen_close(screen);
    if (o->live && result.record_path)
        ok &= cli_report(o, &result.record_path, 1, NULL) != NULL;
    if (ok) {
        if (cli_prints(o))
            print_result(&result);
        ok = cli_json(o, result_json(&result));
    }
    return ok;
}

int cmd_tune(Options *o)
{
    InputFiles inputs;
    const Steps *steps = NULL;
    const char *out = o->nout ? o->out[0] : "forewarp-out";
    Problem *problem = cli_problem(o, SIZES_ALL);
    if (problem && !o->strategy)
        o->strategy = problem->kind->strategy;
    if (!problem || !cli_steps(o, &steps) || !is_ready(o, out) ||
        (o->loading && !cli_loading(o, problem)) ||
        (problem_spans(problem) &&
         !cli_refuse(o, "ranges of sizes", GIVEN(LIVE) | GIVEN(IN))) ||
        (o->mpi && !cli_refuse(o, "--mpi", GIVEN(IN))) || !cli_inputs(o, problem, &inputs))
        return 2;
    Workplace place;
    if (!cli_place(o, problem, &place))
        return 1;
    Watch watch = {screen_open(o), out};
    bool unbounded = !isfinite(o->budget_s) && !o->budget_trials;
    TuneOptions options = {.device = o->device,
                           .strategy = o->strategy,
                           .model = o->model,
                           .models = cli_models_folder(o),
                           .steps = steps,
                           .where = o->where,
                           .stage = {o->stage[0], o->stage[1]},
                           .samples = (int)o->samples,
                           .seed = o->seed,
                           .inputs = inputs,
                           .budget_s = !unbounded               ? o->budget_s
                                       : problem_spans(problem) ? INFINITY
                                                                : 30,
                           .budget_trials = o->budget_trials,
                           .enough = o->share,
                           .quiet_trials = o->quiet_trials,
                           .quiet_s = o->quiet_s,
                           .store = cli_store(o),
                           .out = out,
                           .t4 = o->t4,
                           .cache = o->cache,
                           .command = o->line,
                           .place = place,
                           .fresh = o->fresh,
                           .progress = show,
                           .follow = o->live ? follow : NULL,
                           .user = &watch};
    Team team = {0};
    bool ok = find_team(o, &options, &team);
    if (mpi_rank(team.mpi) > 0)
        ok = ok ? tune_serve(problem, &options, mpi_leader(team.mpi), &o->diags)
                : remote_serve(NULL, NULL, mpi_leader(team.mpi), &o->diags);
    else if (ok)
        ok = (problem_spans(problem) ? lead_range : lead)(o, problem, &options,
                                                          &watch.screen);
    return mpi_close(team.mpi, ok ? 0 : 1);
}
