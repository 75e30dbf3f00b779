// SPDX-License-Identifier: Apache-2.0
//
// The score against numbers worked out by hand, and replays of a small recorded space.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "evaluate/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 19 };

// Losses 1 to 19, a second each: the median is 10. 1 % of the way down from it is 9.91,
// which the 9 reaches: 10 are worse, and random search needs 10/(20 - 10), 1 evaluation. 95
// % is 1.45, which only the best reaches; then the second best counts: 17/(20 - 17), 6
// evaluations.
static ScoreSpace *by_hand(void)
{
    static ScoreSpace space;
    double loss[VALUES + 1], cost[VALUES + 1];
    for (int i = 0; i < VALUES; i++) {
        loss[i] = (i * 7) % VALUES + 1;
        cost[i] = 1;
    }
    assert_true(score_space(&space, loss, cost, VALUES));
    return &space;
}

static void test_budget(void **state)
{
    (void)state;
    ScoreSpace *s = by_hand();
    assert_int_equal(s->start_evals, 1);
    assert_int_equal(s->end_evals, 6);
    assert_true(s->start_s == 1 && s->end_s == 6);
    assert_true(fabs(s->limit_s - 6.6) < 1e-12);
    assert_true(s->mean_s == 1);
    score_release(s);
}

// The best of k random draws is number k (19 + 1)/(k + 1) from the worst, counted from 0:
// 9, 6 (13.3), 4, 3, 2 (16.7) and 2 (17.1) for k from 1 to 6.
static void test_baseline(void **state)
{
    (void)state;
    ScoreSpace *s = by_hand();
    assert_true(s->baseline[0] == 9);
    assert_true(fabs(s->baseline[SCORE_POINTS - 1] - 2) < 1e-12);
    for (int i = 1; i < SCORE_POINTS; i++)
        assert_true(s->baseline[i] <= s->baseline[i - 1] + 1e-12);
    for (int k = 1; k <= 6; k++) { // nearly: no moment falls on it
        static const double best[] = {9, 6, 4, 3, 2, 2};
        int i = (int)rint((k - 1) / 5.0 * (SCORE_POINTS - 1));
        assert_true(fabs(s->baseline[i] - best[k - 1]) < 0.01);
    }
    score_release(s);
}

// Runs that have the optimum from the start score 1; runs that stay at the loss 6 score
// (6 - 9)/(1 - 9) at first and (6 - 2)/(1 - 2) in the end. The mean of the latter is what
// SciPy's interpolation gives.
static void test_curves(void **state)
{
    (void)state;
    ScoreSpace *s = by_hand();
    ScoreStep best[8], level[8];
    for (int i = 0; i < 8; i++) {
        best[i] = (ScoreStep){i + 1, 1};
        level[i] = (ScoreStep){i + 1, 6};
    }
    Score score;
    ScoreRun run[4];
    for (int i = 0; i < 4; i++)
        run[i] = (ScoreRun){best, 8};
    assert_true(score_runs(s, run, 4, 1, &score));
    assert_true(fabs(score.mean - 1) < 1e-12 && score.end == 1 && score.spread < 1e-9);
    for (int i = 0; i < 4; i++)
        run[i] = (ScoreRun){level, 8};
    assert_true(score_runs(s, run, 4, 1, &score));
    assert_true(fabs(score.at[0] - 0.375) < 1e-12);
    assert_true(fabs(score.end + 4) < 1e-9);
    assert_true(fabs(score.mean - -1.573146815873) < 1e-6);
    assert_false(score_runs(s, run, 0, 1, &score));
    score_release(s);
}

// Half of the runs have the best, half the seventh: the mean rank is 3, the loss 4.
static void test_mean_rank(void **state)
{
    (void)state;
    ScoreSpace *s = by_hand();
    enum { RUNS = 100, STEPS = 70 };
    static ScoreStep step[2][STEPS];
    ScoreRun run[RUNS];
    Score score;
    for (int i = 0; i < STEPS; i++)
        for (int k = 0; k < 2; k++)
            step[k][i] = (ScoreStep){(i + 1) / 10.0 + k * 1e-3, k ? 7 : 1};
    for (int i = 0; i < RUNS; i++)
        run[i] = (ScoreRun){step[i % 2], STEPS};
    assert_true(score_runs(s, run, RUNS, 1, &score));
    assert_true(fabs(score.at[0] - (4.0 - 9) / (1 - 9)) < 1e-9);
    score_release(s);
}

static void test_unscorable(void **state)
{
    (void)state;
    ScoreSpace s;
    double loss[8] = {3, 3, 3, 3, NAN, 3, 3, 3}, cost[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    assert_false(score_space(&s, loss, cost, 8));
    assert_null(s.sorted); // there is nothing to release
    loss[0] = 1;
    for (int i = 0; i < 8; i++)
        cost[i] = 0;
    assert_false(score_space(&s, loss, cost, 8));
    assert_null(s.sorted);
}

// A bowl over two parameters, one in ten of them failing.
static Recorded *bowl(Diags *diags)
{
    Buf text = buf_new();
    buf_puts(&text, "{\"tune_params_keys\": [\"x\", \"y\"], \"cache\": {");
    for (int x = 0; x < 20; x++)
        for (int y = 0; y < 20; y++) {
            double time = 1 + (x - 13) * (x - 13) + (y - 5) * (y - 5);
            buf_printf(&text, "%s\"%d,%d\": {\"x\": %d, \"y\": %d, ", x + y ? ", " : "", x,
                       y, x, y);
            buf_printf(&text, (3 * x + y) % 10 ? "\"time\": %g, " : "\"time\": \"no\", ",
                       time);
            buf_printf(&text, "\"compile_time\": %d}", 100 + x);
        }
    buf_puts(&text, "}}");
    Recorded *made = recorded_parse("bowl", text.text, text.len, diags);
    buf_release(&text);
    return made;
}

static void test_replay(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Recorded *recorded = bowl(&diags);
    ScoreSpace space;
    assert_non_null(recorded);
    assert_true(replay_space(recorded, &space, &diags));
    ReplayOptions options = {.budget_s = INFINITY, .repeats = 20, .seed = 3};
    int n;
    const SearchKind *const *kind = search_all(&n);
    for (int i = 0; i < n; i++) {
        if (kind[i]->needs_ranking || kind[i]->needs_steps)
            continue;
        Replay first, again;
        assert_true(replay(recorded, &space, kind[i], &options, &first, &diags));
        assert_true(replay(recorded, &space, kind[i], &options, &again, &diags));
        assert_true(first.score.mean == again.score.mean);
        assert_true(first.evaluations == again.evaluations && first.best == again.best);
        assert_true(first.score.mean <= 1 && first.best >= 1 && first.worst >= first.best);
        if (strcmp(kind[i]->name, "random") == 0)
            assert_true(fabs(first.score.mean) < 0.3);
    }
    options.budget_trials = 7;
    Replay few;
    assert_true(replay(recorded, &space, search_find("random"), &options, &few, &diags));
    assert_int_equal(few.evaluations % 7, 0);
    options.budget_trials = 0;
    options.budget_s = 1e-9;
    assert_false(replay(recorded, &space, search_find("random"), &options, &few, &diags));
    score_release(&space);
    recorded_free(recorded);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget),     cmocka_unit_test(test_baseline),
        cmocka_unit_test(test_curves),     cmocka_unit_test(test_mean_rank),
        cmocka_unit_test(test_unscorable), cmocka_unit_test(test_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
