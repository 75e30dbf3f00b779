# SPDX-License-Identifier: Apache-2.0
"""The two stages of paper 002 on recorded spaces: how well a model that has seen N points predicts the others, and how slow
the best of the M points is that it would try next (section 6, Figures 4 to 14).

The record stands in for the space. A repetition puts its points in an order of chance: those before the N-th valid one are the
first stage, with the failing ones among them; the rest is what is predicted, and what the second stage is picked from. Besides
the times, whether a point runs is learnt (src/model/attempt.h): points that are doubted come last."""

import math
import os
import statistics
from concurrent.futures import ThreadPoolExecutor

from common import fail, forewarp, learn, seen
from counts import ranks

FIRSTS = (100, 200, 500, 1000, 2000, 3000, 4000)
SECONDS = (10, 50, 100, 150, 200)
UNSEEN_LEAST, SCATTER = 100, 100
TRUSTED = 0.5  # a point that is predicted to run by less is doubted
MASK = 2**64 - 1


class Rng:
    """The product's: xoshiro256** 1.0 seeded by splitmix64."""

    def __init__(self, seed):
        self.s = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & MASK
            z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            self.s.append(z ^ (z >> 31))

    def next(self):
        a, b, c, d = self.s
        x = (b * 5) & MASK
        result = (((x << 7 | x >> 57) & MASK) * 9) & MASK
        c, d = c ^ a, d ^ b
        self.s = [a ^ d, b ^ c, c ^ (b << 17) & MASK, (d << 45 | d >> 19) & MASK]
        return result

    def below(self, n):
        limit = MASK + 1 - n if n & (n - 1) == 0 else MASK - MASK % n
        while (x := self.next()) >= limit:
            pass
        return x % n

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            k = self.below(i + 1)
            items[i], items[k] = items[k], items[i]


def share(part, whole):
    return part / whole if whole else math.nan


def mean(values):
    return sum(values) / len(values) if values else math.nan


def ask(kind, seed, rows):
    """Predictions of the rows that are of part 1, and the processor time that this takes."""
    found = learn(kind, rows, seed)
    return [p for p, row in zip(found["predicted"], rows) if row[0] == 1], found["processor_s"]


class Training:
    """One repetition of one first stage."""

    def __init__(self, record, kind, first, seed):
        rng, order = Rng(seed), list(range(record["points"]))
        rng.shuffle(order)
        valid, tried = 0, 0
        while valid < first:
            valid += record["cost"][order[tried]] is not None
            tried += 1
        rows, seed = record["rows"], rng.next()
        rest = order[tried:]
        ran = [i for i in order[:tried] if record["cost"][i] is not None]
        unseen = [(1, None, rows[i]) for i in rest]
        self.time, self.spent = ask(kind, seed, [(0, math.log(record["cost"][i]), rows[i]) for i in ran] + unseen)
        doubt = [0] * len(rest)
        if valid < tried:
            table = [(0, int(record["cost"][i] is not None), rows[i]) for i in order[:tried]] + unseen
            runs, spent = ask("ann", (seed + 1) & MASK, table)
            doubt = [0 if p >= TRUSTED else 1 - p for p in runs]
            self.spent += spent
        self.tried, self.doubt, self.cost = tried, doubt, [record["cost"][i] for i in rest]

    def pairs(self):
        """Of the points that ran: what they cost, and what was predicted."""
        return [(c, math.exp(t)) for c, t in zip(self.cost, self.time) if c is not None]

    def numbers(self):
        actual, predicted = zip(*self.pairs())
        errors = [abs(p - a) / a for a, p in zip(actual, predicted)]
        good = [c is not None for c in self.cost]
        failed, n = good.count(False), len(good)
        missed = sum(not g and d <= 0 for g, d in zip(good, self.doubt))
        doubted = sum(g and d > 0 for g, d in zip(good, self.doubt))
        places = ranks(actual), ranks(predicted)
        rank = math.nan if any(len(set(p)) == 1 for p in places) else statistics.correlation(*places)
        return {"tried": self.tried, "error": mean(errors), "median": statistics.median(errors), "rank": rank,
                "training_s": self.spent, "failures_right": share(n - missed - doubted, n),
                "larger_kind": share(max(failed, n - failed), n), "missed": share(missed, failed),
                "doubted": share(doubted, n - failed)}

    def picks(self, doubt):
        """By the size of a second stage: its best point over the best not seen before (NaN: none ran), the share that fails."""
        order = sorted(range(len(self.cost)), key=lambda i: (doubt[i], self.time[i], i))
        cost = [math.inf if self.cost[i] is None else self.cost[i] for i in order]
        best, cells = min(cost), []
        for m in SECONDS:
            failed = cost[:m].count(math.inf)
            cells.append((math.nan if failed == len(cost[:m]) else min(cost[:m]) / best, share(failed, len(cost[:m]))))
        return cells


def cells(trainings, doubts):
    result = []
    for m, column in zip(SECONDS, zip(*(t.picks(t.doubt if doubts else [0] * len(t.cost)) for t in trainings))):
        slow = [s for s, _ in column if not math.isnan(s)]
        result.append({"second": m, "slowdown": mean(slow), "worst": max(slow, default=math.nan),
                       "failed": mean([f for _, f in column]), "empty": len(column) - len(slow)})
    return result


def first_stage(first, trainings):
    every = [t.numbers() for t in trainings]
    result = {"first": first, **{key: mean([one[key] for one in every]) for key in every[0]}}
    errors = [one["error"] for one in every]
    return {**result, "spread": statistics.stdev(errors) if len(errors) > 1 else math.nan,
            "second": cells(trainings, True), "second_ignoring_failures": cells(trainings, False)}


def evaluate(kind, files, most=None, repeat=2, seed=1):
    """A result a record; most: only the largest first stage of at most so many points."""
    results = []
    for record in forewarp("eval", "points", *files):
        record["rows"] = [seen(row) for row in record["rows"]]
        firsts = [f for f in FIRSTS if f + max(UNSEEN_LEAST, record["ran"] // 10) <= record["ran"]]
        if not firsts:
            fail(2, f"{record['record']}: {record['ran']} valid points are too few to train and to judge a model")
        if most:
            firsts = [max([f for f in firsts if f <= most] or firsts[:1])]
        tasks = [(first, seed + r) for first in reversed(firsts) for r in range(repeat)]  # those that take longest first
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = list(pool.map(lambda task: Training(record, kind, *task), tasks))  # pylint: disable=cell-var-from-loop
        of = {first: [t for (f, _), t in zip(tasks, done) if f == first] for first in firsts}
        results.append({**{k: v for k, v in record.items() if k not in ("cost", "rows")}, "model": kind, "repeat": repeat,
                        "first_stages": [first_stage(f, of[f]) for f in firsts],
                        "scatter": done[0].pairs()[:SCATTER]})
    return results
