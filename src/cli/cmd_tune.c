// SPDX-License-Identifier: Apache-2.0
//
// forewarp tune: from a program to a verified, fast kernel.

#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

// One line that rewrites itself on a terminal; now and then a line in a log.
typedef struct {
    bool terminal, quiet;
    double last_s;
} Screen;

static void show(void *user, const Progress *p)
{
    Screen *screen = user;
    double every = screen->terminal ? 0.05 : 5;
    if (screen->quiet || p->elapsed_s - screen->last_s < every)
        return;
    screen->last_s = p->elapsed_s;
    Buf line;
    buf_init(&line);
    buf_printf(&line, "%6.1f s  %-10s %5d trials", p->elapsed_s, p->stage, p->trials);
    if (p->best_ns < INFINITY) {
        buf_puts(&line, "  best ");
        cli_time(&line, p->best_ns);
    }
    fprintf(stderr, screen->terminal ? "\r%s\033[K" : "%s\n", line.text);
    buf_release(&line);
}

static json_t *sizes_json(const int64_t size[3])
{
    return json_pack("[I, I, I]", (json_int_t)size[0], (json_int_t)size[1],
                     (json_int_t)size[2]);
}

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static Limit limit_of(const TuneResult *r)
{
    return (Limit){{r->floor_ns, r->copy_ns, r->compute_ns}, r->bytes, r->flops};
}

static json_t *result_json(const TuneResult *r)
{
    Limit limit = limit_of(r);
    json_t *trials = json_object();
    for (int i = 0; i < TRIAL_STATUS_COUNT; i++)
        json_object_set_new(trials, trial_status_name[i], json_integer(r->count[i]));
    json_t *best =
        json_pack("{s:s, s:o, s:s, s:{s:o, s:o}, s:i, s:b, s:f}", "point", r->point,
                  "time_ns", real_or_null(r->best_ns), "kernel", r->kernel_path, "launch",
                  "global", sizes_json(r->global), "local", sizes_json(r->local),
                  "launches", r->nlaunch, "checked", r->checked, "max_error", r->max_error);
    json_t *ranking = r->ranked ? json_pack("{s:i, s:f, s:s}", "points", r->ranked,
                                            "seconds", r->ranking_s, "model", r->model)
                                : json_null();
    return json_pack(
        "{s:s, s:{s:s, s:s}, s:s, s:I, s:f, s:f, s:I, s:s, s:o, s:o, s:o, s:o, s:f, s:o, "
        "s:o}",
        "problem", r->problem, "device", "name", r->device, "fingerprint", r->fingerprint,
        "strategy", r->strategy, "seed", (json_int_t)r->seed, "elapsed_s", r->elapsed_s,
        "space", r->space_points, "reused", (json_int_t)r->reused, "reference",
        r->reference, "trials", trials, "best", best, "baseline_ns",
        real_or_null(r->baseline_ns), "copy_ns", real_or_null(r->copy_ns), "bytes",
        r->bytes, "ranking", ranking, "floor", cli_floor_json(&limit, r->best_ns));
}

static void print_row(const char *what, double ns, const TuneResult *r)
{
    Buf time;
    buf_init(&time);
    if (!isfinite(ns))
        buf_puts(&time, "-");
    else
        cli_time(&time, ns);
    printf("  %-8s %12s", what, time.text);
    if (isfinite(ns))
        printf("  %8.1f GB/s", r->bytes / ns);
    if (isfinite(ns) && r->floor_ns > 0)
        printf("  %6.1f %% of floor", 100 * r->floor_ns / ns);
    putchar('\n');
    buf_release(&time);
}

static void print_result(const TuneResult *r)
{
    printf("%s on %s\n", r->problem, r->device);
    printf("  %lld trials (%lld from the store) of %.0f points in %.1f s:",
           (long long)r->trials, (long long)r->reused, r->space_points, r->elapsed_s);
    for (int i = 0; i < TRIAL_STATUS_COUNT; i++)
        if (r->count[i])
            printf(" %lld %s", (long long)r->count[i], trial_status_name[i]);
    if (r->ranked)
        printf("\n  ranked %d points in %.2f s by %s", r->ranked, r->ranking_s, r->model);
    printf("\n  reference: %s; largest relative error %.2g\n", r->reference, r->max_error);
    print_row("plain", r->baseline_ns, r);
    print_row("best", r->best_ns, r);
    Limit limit = limit_of(r);
    cli_print_floor(&limit);
    if (r->in_flight_bytes > 0)
        printf("  in flight  %.1f KiB a multiprocessor, estimated\n",
               r->in_flight_bytes / 1024);
    printf("  point    %s\n  kernel   %s\n", r->point, r->kernel_path);
}

// The models that come with the program: installed, or beside where it was built. NULL:
// not found.
static const char *models_folder(Options *o)
{
    static const char *const place[] = {"../share/forewarp/models", "../data/models"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self);
    while (n > 0 && n < (ssize_t)sizeof self && self[n - 1] != '/')
        n--;
    for (int i = 0; i < COUNTOF(place) && n > 0 && n < (ssize_t)sizeof self; i++) {
        const char *folder = arena_printf(o->arena, "%.*s%s", (int)n, self, place[i]);
        if (access(folder, R_OK) == 0)
            return folder;
    }
    return NULL;
}

// What would only fail at the end, or after the reference was computed, is tried first.
static bool is_ready(Options *o, const char *out)
{
    const SearchKind *kind = search_find(o->strategy);
    if (!kind)
        return diag_error(&o->diags, span_none, "C010", "there is no strategy `%s`",
                          o->strategy);
    if (kind->needs_ranking && !kind->by_weights && !o->model && !models_folder(o))
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
    if (!file_mkdirs(out) || access(out, W_OK | X_OK) != 0)
        return diag_world(&o->diags, "C011", "cannot write in the folder %s: %s", out,
                          strerror(errno));
    return true;
}

// A strategy that names a heuristic file is the one that follows it.
static bool read_steps(Options *o, const Steps **steps)
{
    size_t n = strlen(o->strategy);
    if (n < 5 || strcmp(o->strategy + n - 4, ".fwh") != 0)
        return true;
    Buf text;
    buf_init(&text);
    Source *source = NEW(o->arena, Source);
    bool ok = file_read(o->strategy, &text);
    if (ok) {
        *source =
            (Source){o->strategy, arena_strndup(o->arena, text.text, text.len), text.len};
        *steps = steps_parse(source, o->arena, &o->diags);
        o->strategy = "heuristic";
    } else {
        diag_error(&o->diags, span_none, "C043", "cannot read %s: %s", o->strategy,
                   strerror(errno));
    }
    buf_release(&text);
    return ok && *steps;
}

int cmd_tune(Options *o)
{
    const Steps *steps = NULL;
    const char *out = o->nout ? o->out[0] : "forewarp-out";
    if (cli_is_script(o->file))
        return cli_tune_script(o, out);
    Problem *problem = cli_problem(o, true);
    if (!problem || !read_steps(o, &steps) || !is_ready(o, out))
        return 2;
    Screen screen = {isatty(2), o->quiet, -INFINITY};
    bool unbounded = !isfinite(o->budget_s) && !o->budget_trials;
    TuneOptions options = {.device = o->device,
                           .strategy = o->strategy,
                           .model = o->model,
                           .models = models_folder(o),
                           .steps = steps,
                           .where = o->where,
                           .stage = {o->stage[0], o->stage[1]},
                           .seed = o->seed,
                           .budget_s = unbounded ? 30 : o->budget_s,
                           .budget_trials = o->budget_trials,
                           .store = cli_store(o),
                           .out = out,
                           .t4 = o->t4,
                           .cache = o->cache,
                           .place = cli_place(o),
                           .fresh = o->fresh,
                           .progress = show,
                           .user = &screen};
    TuneResult result;
    bool ok = tune(problem, &options, o->arena, &result, &o->diags);
    if (screen.terminal && !screen.quiet)
        fputs("\r\033[K", stderr);
    if (ok) {
        print_result(&result);
        ok = cli_json(o, result_json(&result));
    }
    return ok ? 0 : 1;
}
