#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of paper 002 from recorded spaces: what the best configuration of one device costs on
another, and tables and plots of how well models do in two stages (stages.py).

  two_stages.py best RECORD...                 Figure 1; records are cache files
  two_stages.py tables MODEL RECORD...         Figures 4 to 7 and 11 to 14: errors, slowdowns
  two_stages.py pickers RECORD...              what each kind of model does with the same first
                                               stages, of the most points up to 2,000
  two_stages.py plot MODEL FOLDER RECORD...    Figures 4 to 14: errors, predicted and actual
                                               times, slowdowns

--repeat R: first stages of each size (default 2); --seed N: the first of them; --json FILE: all numbers of tables and plot.
FOREWARP names the program; default build/forewarp."""

import argparse
import json
import math
import os

import svg
from common import Record, fail, kinds_of_models, number, print_table
from stages import evaluate


def foreign(of, on):
    """Of a record's best point that was tried on another device too: its place among those of its
    own, the slowdown over the best there, and what it is; None: there is none such."""
    order = sorted((i for i in of.numbered if math.isfinite(of.ns[i])), key=lambda i: of.ns[i])
    for place, i in enumerate(order, 1):
        other = on.at.get(tuple(of.values(i)[key] for key in on.keys))
        if other is not None:
            slowdown = on.ns[other] / min(on.ns)
            words = " ".join(f"{key}={v:g}" if isinstance(v, (int, float)) else f"{key}={v}"
                             for key, v in of.values(i).items())
            return str(place), f"{slowdown:.2f}" if math.isfinite(slowdown) else "fails", words
    return None


def best(files):
    records = [Record(path) for path in files]
    rows = [["best of", "its place there", "tried for", "slowdown", "point"]]
    for a in records:
        for b in records:
            found = foreign(a, b) if a is not b and set(a.keys) == set(b.keys) else None
            if found:
                rows.append([a.name, found[0], b.name, *found[1:]])
    if len(rows) == 1:
        fail(1, "no two of the records are of the same parameters")
    print_table(rows, "Figure 1: what the best configuration of one device costs on another")


def percent(share):
    return number(None if share is None else 100 * share, 1)


def picked(run):
    """Of the only first stage of an evaluation: what a table shows."""
    first = run["first_stages"][0]
    second = first["second"]
    slow = [second[i]["slowdown"] for i in (0, 1, 2, -1)]
    return [100 * first["error"], first["rank"], *slow, 100 * second[-1]["failed"],
            100 * first["failures_right"], first["training_s"]]


def pickers(o, files):
    """A row a record and kind; then the means of each kind."""
    digits = [1, 3, 3, 3, 3, 3, 1, 1, 2]
    kinds = kinds_of_models()
    runs = [(kind, evaluate(kind, files, 2000, o.repeat, o.seed)) for kind in kinds]
    rows = [["record", "model", "training points", "mean error %", "rank", "M = 10", "M = 50", "M = 100", "M = 200",
             "failing %", "failures right %", "training s"]]

    def add(name, kind, points, values):
        rows.append([name, kind, points, *(f"{v:.{d}f}" for v, d in zip(values, digits))])

    for i, record in enumerate(runs[0][1]):
        for kind, all_of_kind in runs:
            run = all_of_kind[i]
            add(record["record"], kind, str(run["first_stages"][0]["first"]),
                picked(run))
    if len(runs[0][1]) > 1:
        for kind, all_of_kind in runs:
            columns = zip(*map(picked, all_of_kind))
            add(f"mean of {len(all_of_kind)}", kind, "", [sum(c) / len(all_of_kind) for c in columns])
    print_table(rows, "second stages of M points picked by each model: the best point over the best not seen before")


def slowdown(cell, repeats):
    """Behind it the share of failing points, where there are any."""
    if cell["empty"] == repeats:
        return "none ran"
    behind = f" ({100 * cell['failed']:.1f} % fail)" if cell["failed"] >= 0.0005 else ""
    return f"{cell['slowdown']:.3f}" + (f" ({cell['empty']} of {repeats} none)" if cell["empty"] else behind)


def slowdowns(run, key, title):
    firsts = run["first_stages"]
    rows = [["training points", *(f"M = {c['second']}" for c in firsts[0][key])]]
    rows += [[str(f["first"]), *(slowdown(c, run["repeat"]) for c in f[key])] for f in firsts]
    print_table(rows, f"Figures 11 to 14: best of the second stage over the best point not seen before, {title}")


def judged(o, model, files):
    runs = evaluate(model, files, None, o.repeat, o.seed)
    if o.json:
        with open(o.json, "w", encoding="utf-8") as file:
            json.dump(json.loads(json.dumps(runs), parse_constant=lambda _: None), file)
    return runs


def tables(o, model, files):
    shares = ("failures_right", "larger_kind", "missed", "doubted")
    for run in judged(o, model, files):
        where = f" on {run['device']}" if run["device"] else ""
        print(f"{run['record']}{where}: {run['points']} points tried, {run['ran']} ran, the best of them in "
              f"{run['best_ns'] * 1e-3:.4g} us")
        if run["noise_points"]:
            print(f"noise: two measurements of a point are {100 * run['noise']:.1f} % apart "
                  f"({run['noise_points']} points)")
        rows = [["training points", "tried", "mean error %", "+-", "median %", "rank", "training s",
                 "failures: right %", "larger kind %", "missed %", "doubted %"]]
        for f in run["first_stages"]:
            rows.append([str(f["first"]), number(f["tried"], 0), *(percent(f[k]) for k in ("error", "spread", "median")),
                         number(f["rank"], 3), number(f["training_s"], 2), *(percent(f[k]) for k in shares)])
        print_table(rows, f"Figures 4 to 7: relative error of {run['model']} on points not seen, {run['repeat']} "
                          "repetitions")
        slowdowns(run, "second", "failures learnt")
        if run["ran"] < run["points"]:
            slowdowns(run, "second_ignoring_failures", "failures ignored as in the paper")
        print()


def plot(o, model, folder, files):
    runs = judged(o, model, files)
    os.makedirs(folder, exist_ok=True)
    for run in runs:
        firsts = run["first_stages"]
        sizes = [f["first"] for f in firsts]
        path = os.path.join(folder, run["record"])
        svg.write(f"{path}-error.svg", svg.Plot(480, 320, run["record"], "training points", "mean relative error, %")
                  .lines([(None, sizes, [100 * f["error"] for f in firsts])]))
        actual, predicted = zip(*run["scatter"])
        ends = [min(actual), max(actual)]
        svg.write(f"{path}-scatter.svg", svg.Plot(480, 420, run["record"], "actual, ns", "predicted, ns").lines(
            [(None, actual, predicted), (None, ends, ends)], x_log=True, y_log=True, dots=True))
        cells = [[c["slowdown"] for c in f["second"]] for f in firsts]
        svg.write(f"{path}-slowdown.svg", svg.Plot(520, 360, f"{run['record']}: slowdown", y_label="training points")
                  .heat(sizes, [f"M = {c['second']}" for c in firsts[0]["second"]], cells, 3))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", nargs="+")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    o = parser.parse_args()
    match o.arguments:
        case ["best", *records] if records:
            best(records)
        case ["tables", model, *records] if records:
            tables(o, model, records)
        case ["pickers", *records] if records:
            pickers(o, records)
        case ["plot", model, folder, *records] if records:
            plot(o, model, folder, records)
        case _:
            fail(2, __doc__)


if __name__ == "__main__":
    main()
