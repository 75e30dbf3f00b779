// SPDX-License-Identifier: Apache-2.0
//
// What forewarp tune says of a script besides what it says of any problem: its kernels, and
// how well their times were predicted (paper 004, Figures 4 and 5).

#include "cli/cli.h"

#include <math.h>

static json_t *rank_or_null(int rank)
{
    return rank >= 0 ? json_integer(rank) : json_null();
}

static json_t *trials_json(const FuseTrial *trial, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        const FuseTrial *t = &trial[i];
        json_t *kernels = json_array();
        for (int k = 0; k < t->n; k++)
            json_array_append_new(kernels, cli_set_json(t->set[k]));
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:f, s:o, s:s, s:i, s:b}", "solution", t->text,
                            "kernels", kernels, "predicted_ns", t->predicted_ns, "time_ns",
                            json_finite(t->outcome.time_ns), "status",
                            trial_status_name[t->outcome.status], "partition", t->partition,
                            "reused", t->outcome.reused));
    }
    return list;
}

void cli_fused_json(const Problem *problem, const TuneResult *result, json_t *json)
{
    const FuseResult *r = result->fused;
    json_t *best =
        json_pack("{s:s, s:o, s:o, s:o}", "solution", r->solution, "rank",
                  rank_or_null(r->best), "partition_rank", rank_or_null(r->best_partition),
                  "within_3_percent", rank_or_null(r->within));
    json_object_update(json_object_get(json, "best"), best);
    json_decref(best);
    json_t *own = json_pack(
        "{s:s, s:I, s:o, s:o, s:o, s:o, s:f, s:i, s:f, s:f}", "script", problem->name,
        "instances", (json_int_t)problem->instances, "solutions",
        trials_json(r->trial, r->ntrial), "random", trials_json(r->random, r->nrandom),
        "unfused_ns", json_finite(r->unfused_ns), "single_ns", json_finite(r->single_ns),
        "rank_correlation", r->correlation, "routines_timed", r->routines, "space_s",
        r->space_s, "cover_s", r->cover_s);
    json_object_update(json, own);
    json_decref(own);
}

static void print_row(const char *what, double ns, const Problem *problem)
{
    Buf time;
    if (!isfinite(ns))
        return;
    buf_init(&time);
    cli_time(&time, ns);
    printf("  %-10s %10s  %9.2f M instances/s\n", what, time.text,
           1e3 * (double)problem->instances / ns);
    buf_release(&time);
}

// Where in the order of prediction the best was found.
static void print_ranks(const TuneResult *result)
{
    const FuseResult *r = result->fused;
    double ns = r->trial[r->best].outcome.time_ns;
    if (r->is_fastest)
        printf("  the best was number %d by prediction, of partition %d;", r->best,
               r->best_partition);
    else
        printf("  of those predicted to be fast number %d, of partition %d, was the best, "
               "%.2f times as slow;",
               r->best, r->best_partition, ns / result->best_ns);
    if (r->within >= 0)
        printf(" number %d is within 3 %%", r->within);
    printf("\n  rank correlation of prediction and time %.2f over %d %s\n", r->correlation,
           r->nrandom ? r->nrandom : r->ntrial, r->nrandom ? "at random" : "solutions");
}

void cli_print_fused(const Problem *problem, const TuneResult *result)
{
    const FuseResult *r = result->fused;
    print_row("unfused", r->unfused_ns, problem);
    print_row("one kernel", r->single_ns, problem);
    print_row("fused", result->best_ns, problem);
    if (r->best >= 0)
        print_ranks(result);
    printf("  solution %s\n", r->solution);
}
