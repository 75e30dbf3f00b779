#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables and figures of paper 001 from the recorded stencils of a folder (study.py).

  stencils.py groups FOLDER [-o OTHER]   sections 5 and 8; OTHER: the steps still wanted
  stencils.py forest FOLDER              the loading for hybrid, and what a forest picks
  stencils.py loading FOLDER             writes FOLDER/loading.csv, which forewarp tune
                                         --loading predicted and forewarp eval loading read
  stencils.py picks FOLDER [RECORD...]   which model picks best, also on recorded spaces of
                                         other programs

Speedups are over the best of Rand, and are averaged by the geometric mean, as in the paper.
Whatever the record lacks is left out, and how many stencils a number is of stands beside it.
FOREWARP names the program; default build/forewarp."""

import math
import os
import sys

from common import FILES_MOST, Mean, Record, fail, kinds_of_models, learn, number, print_table, ratio, seen
from study import ANY, LOADS, STUDIED, Found, Study
from stages import evaluate

# Section 5 ---------------------------------------------------------------------------------

TENTHS = 10


def of_figure2(study, s):
    """Those of three dimensions and radius 2, as in the paper; all, where there are few."""
    return len(study.main) <= TENTHS or (s.dims == 3 and s.kernel.endswith("_r2"))


def figure2(study):
    if study.main:
        rows = [["stencil", "of", *(f"{100 * i // TENTHS} %" for i in range(1, 11))]]
        for s in study.main:
            if of_figure2(study, s):
                of = (s.expected(max(len(s.rand) * i // TENTHS, 1)) for i in range(1, 11))
                rows.append([s.kernel, str(len(s.rand)), *(f"{ns * 1e-3:.1f} +-{100 * off / ns:.1f}" for ns, off in of)])
        print_table(rows, "Figure 2: the best of parts of the random points, us (+- the standard "
                          "deviation over choices of them, %)")


def figure3(study):
    speedups = [s.random.ns / s.record.ns[i] for s in study.main for i in s.rand]
    bins = [0] * TENTHS
    for x in speedups:
        bins[min(int(x * TENTHS), TENTHS - 1)] += x > 0
    failed, n = speedups.count(0), len(speedups)
    rows = [["speedup", "points", "%"], ["did not run", str(failed), number(ratio(100 * failed, n), 1)]]
    for i, count in enumerate(bins):
        rows.append([f"{i / 10:.1f} to {(i + 1) / 10:.1f}", str(count), number(ratio(100 * count, n), 1)])
    print_table(rows, "Figure 3: speedups of random points over the best of them")
    good, slow = sum(x > 0.9 for x in speedups), sum(0 < x < 0.1 for x in speedups)
    print(f"  within 10 % of the best: {ratio(100 * good, n):.1f} %; more than 10 times slower: "
          f"{ratio(100 * slow, n):.1f} %")


VALUES = ("lx", "ly", "lz", "bx", "cx", "cy", "cz")


def figure4(study):
    print("\nFigure 4: how many stencils have their best random point at a value")
    for name in VALUES:
        if study.main and name in study.main[0].record.keys:
            have = [s.record.value(s.random.best, name) for s in study.main]
            print(f"  {name:<8s}" + "".join(f"  {v:g}: {have.count(v)}" for v in sorted(set(have))))
    have = [s.loading(s.random.best) for s in study.main]
    print("  loading " + "".join(f"  {l}: {have.count(l)}" for l in LOADS))


def histogram(title, speedups):
    """Of speedups; None: the record lacks the point."""
    print(f"\n{title}")
    known = [x for x in speedups if x is not None]
    if not known:
        print("  it was not recorded")
        return
    if len(known) < len(speedups):
        print(f"  of {len(speedups) - len(known)} more that point was not recorded")
    ran, bins = Mean(), [0] * (TENTHS + 1)
    for x in known:
        ran.add(x)
        bins[min(int(x * TENTHS), TENTHS)] += x > 0
    print(f"  did not run: {known.count(0)};" +
          "".join(f"  {i / 10:.1f}: {bins[i]}" for i in range(TENTHS)) + f"  above 1: {bins[TENTHS]}")
    print(f"  mean of those that ran: {ran.plain():.2f}; 0 for the others: {sum(ran.x) / len(known):.2f}")


def speedup_at(s, other, point):
    place = s.translate(other, point)
    return None if place is None else s.random.ns / s.record.ns[place]


def best_of_rand(s):
    return s.record.point[s.random.best]


def figures56(study):
    histogram("Figure 5: speedup over the best random point when each optimisation is set to its "
              "own best value",
              [speedup_at(s, s, s.independent()) for s in study.main if "alone" in s.parts])
    histogram("Figure 6: speedup of the best random point of each stencil on all others",
              [speedup_at(s, k, best_of_rand(k)) for s in study.main if "more" in s.parts
               for k in study.main if k is not s])


# Section 8 ---------------------------------------------------------------------------------

PASSES = (1, 2, 3)
RANDOM, EXPERT = ("random", None), ("expert", None)
STRATEGIES = [RANDOM, EXPERT] + [(kind, h) for kind in ("predicted", "oracle")
                                 for h in ("dimension", "optimisation", "hybrid", "restricted")]


def found_by(s, strategy):
    kind, studied = strategy
    if kind == "random":
        return s.random
    if kind == "expert":
        return s.found["expert"].get(ANY, Found())
    return s.by_best(studied) if kind == "oracle" else s.by_picked(studied)


class Summary:
    """A strategy over stencils where it could be followed; Rand's cost over the same ones."""

    def __init__(self, stencils, strategy):
        self.speedup, self.best = Mean(), 0
        self.followed = [(s, found_by(s, strategy)) for s in stencils]
        self.followed = [(s, f) for s, f in self.followed if f.done]
        self.n = len(self.followed)
        for s, f in self.followed:
            self.speedup.add(s.random.ns / f.ns)
            others = (found_by(s, other) for other in STRATEGIES)
            self.best += math.isfinite(f.ns) and not any(o.done and o.ns < f.ns for o in others)
        self.random_s = sum(s.random.cost_s for s, _ in self.followed)

    def total(self, what):
        return sum(getattr(f, what) for _, f in self.followed)

    def mean(self, what, decimals):
        return number(self.total(what) / self.n, decimals)

    def costs(self):
        return [self.mean("build_s", 2), self.mean("run_s", 2), self.mean("cost_s", 2),
                number(100 * (1 - ratio(self.total("cost_s"), self.random_s)), 0)]


COSTS = ["build s", "run s", "all s", "less time than Rand, %"]


def passes(study):
    rows = [["passes", "stencils", "speedup", "points"]]
    for n in PASSES:
        speedup, configs = Mean(), Mean()
        for s in study.main:
            if n in s.passes:
                speedup.add(s.random.ns / s.passes[n].ns)
                configs.add(s.passes[n].configs)
        rows.append([str(n), str(speedup.n), number(speedup.geometric(), 3), number(configs.plain(), 0)])
    print_table(rows, "Section 8.3.1: by dimension, so many passes, the best loading")


def strategies(study):
    rows = [["strategy", "stencils", "speedup", "best", "points", *COSTS]]
    for strategy in STRATEGIES:
        total = Summary(study.main, strategy)
        if total.n:
            kind, studied = strategy
            name = {"random": "Rand", "expert": "ExpS"}.get(kind) or f"{STUDIED[studied][1]}, {kind}"
            rows.append([name, str(total.n), number(total.speedup.geometric(), 3), str(total.best),
                         total.mean("configs", 0), *total.costs()])
    print_table(rows, "Tables 3 and 7: strategies; best: no other found a faster point")
    hybrid = Summary(study.main, ("predicted", "hybrid"))
    if hybrid.n:
        print(f"  hybrid with the predicted loading takes {ratio(hybrid.total('cost_s'), hybrid.random_s):.2f} times Rand's time "
              f"for {ratio(hybrid.total('configs'), sum(s.random.configs for s, _ in hybrid.followed)):.2f} times as many points")


def table4(study):
    rows = [["heuristic", "loading", "stencils", "speedup", "best"]]
    for h, (_, text) in STUDIED.items():
        for l in LOADS:
            have = [s for s in study.main if l in s.found[h]]
            speedup = Mean()
            for s in have:
                speedup.add(s.random.ns / s.found[h][l].ns)
            if have:
                rows.append([text, l, str(len(have)), number(speedup.geometric(), 3),
                             str(sum(s.best.get(h) == l for s in have))])
    print_table(rows, "Tables 4 and 5: each loading alone; best: it is the best of the four")


class Accuracy:
    """Of loadings that are picked; weighted: the best time over that of the one picked."""

    def __init__(self, stencils, studied, pick):
        judged = [s for s in stencils if s.is_stencil and studied in s.best and pick(s)]
        self.n = len(judged)
        self.right = ratio(sum(pick(s) == s.best[studied] for s in judged), self.n)
        self.weighted = ratio(sum(self.share(s, studied, pick(s)) for s in judged), self.n)

    @staticmethod
    def share(s, studied, picked):
        found = s.found[studied]
        return found[s.best[studied]].ns / found[picked].ns if picked in found else 0

    def cells(self):
        return [number(self.right, 2), number(self.weighted, 3)]


def by_forest(stencils, studied):
    return Accuracy(stencils, studied, lambda s: s.picked.get(studied))


def commonest(study, studied, without):
    """The loading that is best of most others: what a forest has to beat."""
    best = [s.best[studied] for s in study.main
            if s is not without and s.is_stencil and studied in s.best]
    return max(LOADS, key=best.count)


def table6(study):
    rows = [["heuristic", "stencils", "absolute", "penalty-weighted", "always the commonest",
             "penalty-weighted"]]
    for h, (_, text) in STUDIED.items():
        forest = by_forest(study.main, h)
        if forest.n:
            most = Accuracy(study.main, h, lambda s, h=h: commonest(study, h, s))
            rows.append([text, str(forest.n), *forest.cells(), *most.cells()])
    print_table(rows, "Table 6: accuracy of the forest, the stencil itself left out")


def figure8(study):
    first, last, bins, speedup, below = 7, 20, {}, Mean(), 0
    for s in study.main:
        f = s.by_picked("hybrid")
        if f.done:
            x = s.random.ns / f.ns
            tenth = max(first, min(last, math.floor(x * 10)))
            bins[tenth] = bins.get(tenth, 0) + 1
            below += x < 1
            speedup.add(x)
    print("\nFigure 8: speedup of hybrid with the predicted loading over Rand, from the number given")
    print(" " + "".join(f"  {i / 10:.1f}: {bins[i]}" for i in sorted(bins)))
    print(f"  below 1: {below} of {speedup.n}; least {min(speedup.x, default=0):.2f}, "
          f"most {max(speedup.x, default=0):.2f}")


def vectors(study):
    rows = [["best with", "stencils", "local", "vector"]]
    for best in "local", "vector":
        got = {"local": Mean(), "vector": Mean()}
        for s in study.main:
            for l, mean in got.items():
                if s.best.get("hybrid") == best and l in s.found["hybrid"]:
                    mean.add(s.random.ns / s.found["hybrid"][l].ns)
        rows.append([best, str(got[best].n), *(number(mean.geometric(), 2) for mean in got.values())])
    print_table(rows, "Section 8.3.2: hybrid with local memory and with vectors, on those where one "
                      "of them is best")


def rates(stencils):
    """Operations in a second with the predicted loading, in 10^9, and the stencil."""
    found = ((s, s.by_picked("hybrid")) for s in stencils)
    every = ((s.gflops(f.ns), s.kernel) for s, f in found if f.done)
    return [rate for rate in every if rate[0] > 0]


def throughput(study):
    have = rates(study.main)
    if have:
        least, most = (of(have, key=lambda rate: rate[0]) for of in (min, max))
        print(f"\nSection 8.3.3: hybrid reaches {least[0]:.0f} GFLOPS ({least[1]}) to {most[0]:.0f} "
              f"({most[1]}), {sum(rate for rate, _ in have) / len(have):.0f} on average of {len(have)}")


def merged(study):
    """What the paper expected of it (section 4.7: 41 % on a line along y)."""
    rows, gains, removals = [["stencil", "points", "loading", "merging gains", "removal gains"]], Mean(), Mean()
    for s in study.main:
        place, gain = s.merged()
        if place is not None:
            removal = s.removal(place)
            gains.add(gain)
            removals.add(removal)
            rows.append([s.kernel, number(s.points, 0), s.loading(place), number(gain, 2), number(removal, 2)])
    print_table(rows, "Section 4.7: what merging in y and z gains at the best such point, and what "
                      "removing equal loads gains there")
    print(f"  mean {gains.geometric():.2f}" +
          (f"; removal, of {removals.n}: {removals.geometric():.2f}" if removals.n else ""))


def table8(study):
    """The last point is run with the shape fixed, which ends the heuristic."""
    rows = [["work-group", "stencils", "speedup", "points", "kernels", *COSTS]]
    have = [s for s in study.main if "variable" in s.parts]
    for kind in "predicted", "oracle":
        for studied, name in ("hybrid", "fixed"), ("variable", "any"):
            total = Summary(have, (kind, studied))
            if total.n:
                rows.append([f"{name}, {kind}", str(total.n), number(total.speedup.geometric(), 3),
                             total.mean("configs", 0), total.mean("kernels", 0), *total.costs()])
    print_table(rows, "Table 8: hybrid with the shape of the work-group fixed in each kernel, and with "
                      "kernels that take any")
    if not have:
        print("  the latter were not recorded")


def alike(study):
    """Stencils by size and arithmetic, in the order in which these are first met."""
    groups = {}
    for s in study.stencils:
        groups.setdefault((s.size, s.adds, s.muls), []).append(s)
    return groups.values()


def sizes(study, cubes, title):
    rows = [["z, y, x", "stencils", "predicted", "oracle", "Rand", "absolute", "penalty-weighted"]]
    for group in alike(study):
        s = group[0]
        if s.is_dense or (not study.is_main(s) and s.is_cube != cubes):
            continue
        predicted, oracle = (Summary(group, (kind, "hybrid")) for kind in ("predicted", "oracle"))
        rows.append(["{:d} x {:d} x {:d}".format(*s.size), str(max(predicted.n, oracle.n)),
                     number(predicted.speedup.geometric(), 3), number(oracle.speedup.geometric(), 3),
                     "1", *by_forest(group, "hybrid").cells()])
    print_table(rows, title)
    if len(rows) < 3:
        print("  no others were recorded")


def table11(study):
    rows = [["adds", "muls", "stencils", "ExpS", "oracle", "predicted", "GFLOPS", "absolute",
             "penalty-weighted"]]
    for group in alike(study):
        s = group[0]
        if s.size != study.size:
            continue
        expert, oracle, predicted = (Summary(group, strategy) for strategy in
                                     (EXPERT, ("oracle", "hybrid"), ("predicted", "hybrid")))
        rate = Mean()
        for r, _ in rates(group):
            rate.add(r)
        rows.append([str(s.adds), str(s.muls), str(max(predicted.n, oracle.n)),
                     *(number(x.speedup.geometric(), 3) for x in (expert, oracle, predicted)),
                     number(rate.plain(), 0), *by_forest(group, "hybrid").cells()])
    print_table(rows, "Table 11: arithmetic for each element read, speedups over Rand")
    have = rates(study.stencils)
    if have:
        most = max(have, key=lambda rate: rate[0])
        print(f"  of all {len(have)}: {sum(rate for rate, _ in have) / len(have):.0f} GFLOPS on average, "
              f"at most {most[0]:.0f} ({most[1]})")


def table12(study):
    rows = [["stencil", "points", "loading", *VALUES, "us", "speedup", "removal gains"]]
    for s in study.main:
        f = s.by_best("hybrid")
        if f.best >= 0:
            rows.append([s.kernel, number(s.points, 0), s.loading(f.best),
                         *(number(s.record.value(f.best, name), 0) for name in VALUES),
                         number(f.ns * 1e-3, 1), number(s.random.ns / f.ns, 2),
                         number(s.removal(f.best), 2)])
    print_table(rows, "Tables 12 and 13: the best configurations that hybrid finds")


# What is still to be run -------------------------------------------------------------------


def step(s, other, point):
    """A step of a heuristic file that runs a point, unless it was recorded."""
    if s.translate(other, point) is not None:
        return ""
    items = (f"{key} = '{v}'" if isinstance(v, str) else f"{key} = {v:g}"
             for key, v in zip(other.record.keys, point))
    return "tune " + ", ".join(items) + "\n"


def write_wanted(study, folder):
    os.makedirs(folder, exist_ok=True)
    for s in study.main:
        text = step(s, s, s.independent()) if "alone" in s.parts else ""
        text += "".join(step(s, k, best_of_rand(k)) for k in study.main if k is not s)
        with open(os.path.join(folder, s.file[:-len(".json.gz")] + ".fwh"), "w", encoding="utf-8") as file:
            file.write(text)


# Which model picks best --------------------------------------------------------------------

TAKEN = (10, 50)
FIRST = 200  # training points; of more, networks take most of a minute for ten stencils
FOLDS = 10  # of stencils, each predicted from the others
UNIQUE = ("none", "x", "y", "z")


def geometric(values):
    return math.exp(sum(math.log(x) for x in values) / len(values))


def best_of_taken(record, by, m):
    """The best of the m that are predicted to be fastest, over the best of all."""
    order = sorted(record.numbered, key=lambda i: math.inf if math.isnan(by[i]) else by[i])
    return min(record.ns[i] for i in order[:m]) / min(record.ns)


def at_random(record, m):
    """What m points at random are expected to come to: see Stencil.expected."""
    times, n = sorted(record.ns), len(record.ns)
    share, total, weight = m / n, 0.0, 0.0
    for k in range(n - m + 1):
        if math.isinf(times[k]):
            break
        total += share * times[k]
        weight += share
        share *= (n - m - k) / (n - k - 1) if n - k > 1 else 0
    return total / weight / times[0]


def by_weights(s, predicted):
    """The loading of the point that the weights say is fastest, of the paper's space."""
    least, picked = math.inf, LOADS[0]
    for l, f in s.found["hybrid"].items():
        for i in s.part(l, False):
            if predicted[i] < least and math.isfinite(f.ns):
                least, picked = predicted[i], l
    return picked


def by_times(model, stencils):
    """By file: the loading that a model of the times picks for a stencil when it is fitted to nine tenths of the others."""
    rows, at, picked = [], [], {}
    for i, s in enumerate(stencils):
        ns = {l: s.found["hybrid"][l].ns for l in LOADS if l in s.found["hybrid"] and math.isfinite(s.found["hybrid"][l].ns)}
        for l, x in ns.items():
            numbers = [int(s.points), int(s.dims), float(s.density), UNIQUE.index(s.unique), int(s.adds), int(s.muls)]
            rows.append((i % FOLDS, math.log(x / min(ns.values())), seen(numbers + [int(l == k) for k in LOADS])))
            at.append((s.file, l))
    for x, (file, l) in zip(learn(model, rows)["predicted"], at):
        picked[file] = min(picked.get(file, (math.inf, "")), (x, l), key=lambda pair: pair[0])
    return {file: l for file, (_, l) in picked.items()}


def second_stages(stencils, records):
    """By model: for each of TAKEN the geometric mean over stencils, then each record."""
    files, slowdown = [s.record.path for s in stencils] + [r.path for r in records], {}
    for model in kinds_of_models():
        for at in range(0, len(files), FILES_MOST):
            for run in evaluate(model, files[at:at + FILES_MOST], FIRST):
                cells = {cell["second"]: cell["slowdown"] for cell in run["first_stages"][0]["second"]}
                slowdown.setdefault(model, []).append([cells[m] for m in TAKEN])
    n = len(stencils)
    return {model: [[geometric(column) for column in zip(*rows[:n])], *rows[n:]]
            for model, rows in slowdown.items()}


def picks(folder, files):
    study, records = Study(folder), [Record(path) for path in files]
    predicted = {s.file: s.predicted_ns() for s in study.stencils}
    study.follow(["hybrid"])
    stencils = [s for s in study.rows("hybrid") if study.is_main(s)]
    if len(stencils) < 2:
        fail(2, f"hybrid was recorded for {len(stencils)} stencils: two are wanted")
    study.predict(["hybrid"])
    rows, sets = [], 1 + len(records)

    def add(name, accuracy, stages=None):
        cells = [x for one in stages or [[math.nan] * len(TAKEN)] * sets for x in one]
        rows.append([name, *(accuracy.cells() if accuracy else "--"), *(number(x, 3) for x in cells)])

    def judged(pick):
        return Accuracy(stencils, "hybrid", pick)

    for model, stages in second_stages(stencils, records).items():
        add(model, judged(lambda s, by=by_times(model, stencils): by[s.file]), stages)
    blank = [[math.nan] * len(TAKEN)] * len(records)
    if all(predicted[s.file] for s in stencils):
        taken = [geometric([best_of_taken(s.record, predicted[s.file], m) for s in stencils]) for m in TAKEN]
        add("counted demands (003)", judged(lambda s: by_weights(s, predicted[s.file])), [taken, *blank])
    add("forest of classes (001)", judged(lambda s: s.picked.get("hybrid", LOADS[0])))
    add("always the commonest", judged(lambda s: commonest(study, "hybrid", s)))
    add("chance", None, [[geometric([at_random(s.record, m) for s in stencils]) for m in TAKEN],
                         *([at_random(r, m) for m in TAKEN] for r in records)])
    print(f"Which model picks best, on {study.device}: the loading of {len(stencils)} stencils (share "
          "that is the best; mean of the best time over the picked one's), and of points not seen the "
          f"fastest, after at most {FIRST} training points (the best of so many picks over the best "
          "there was)")
    names = ["stencils", *(r.name for r in records)]
    print_table([["model", "loading", "weighted",
                  *(str(m) if k else f"{name} {m}" for name in names for k, m in enumerate(TAKEN))], *rows])


# Commands ----------------------------------------------------------------------------------


def head(study):
    print(f"{len(study.stencils)} stencils on {study.device}, "
          f"{sum(len(s.record.point) for s in study.stencils)} points; {len(study.main)} of them at "
          "{:d} x {:d} x {:d}, the main set".format(*study.size))


def groups(folder, wanted=None):
    study = Study(folder)
    study.follow(passes=PASSES)
    study.predict()
    head(study)
    for part in figure2, figure3, figure4, figures56, passes, strategies, table4, table6, figure8, \
            vectors, throughput, merged, table8:
        part(study)
    sizes(study, True, "Table 9: hybrid on other sizes, speedups over Rand")
    sizes(study, False, "Table 10: hybrid on other shapes, speedups over Rand")
    table11(study)
    table12(study)
    if wanted:
        write_wanted(study, wanted)


def forest(folder):
    study = Study(folder)
    study.follow()
    study.predict()
    head(study)
    rows = [["stencil", "points", "dims", "density", "unique", "best", "predicted", "of the best"]]
    for s in study.stencils:
        if "hybrid" in s.best:
            f = s.by_picked("hybrid")
            rows.append([s.file, number(s.points, 0), str(s.dims), number(float(s.density), 2), s.unique,
                         s.best["hybrid"], s.picked.get("hybrid", LOADS[0]),
                         number(s.by_best("hybrid").ns / f.ns if f.done else 0, 3)])
    print_table(rows, "The loading for hybrid: the best, and what a forest fitted to all other "
                      "stencils picks")
    table6(study)


def loading(folder):
    study = Study(folder)
    study.follow(["hybrid"])
    rows = [s for s in study.rows("hybrid") if study.is_main(s)]
    study.write_loadings(os.path.join(folder, "loading.csv"), "hybrid", rows, lambda s: True)


def main(arguments):
    match arguments:
        case ["groups", folder]:
            groups(folder)
        case ["groups", folder, "-o", wanted]:
            groups(folder, wanted)
        case ["forest", folder]:
            forest(folder)
        case ["loading", folder]:
            loading(folder)
        case ["picks", folder, *records]:
            picks(folder, records)
        case _:
            fail(2, __doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
