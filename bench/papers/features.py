#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures 2 to 7 and section 7.3 of paper 000 from an exploration; forewarp eval MODEL DATA is asked
for what is not in the data.

  features.py MODEL DATA [--svg FOLDER]   FOLDER: the figures as plots too
  features.py expressions DATA SIZE       the paper's chain from end to end, for programs of examples/ at one
                                          size: features of the expressions as they are written, principal
                                          components, neighbours, ranking; beside features of the kernels

FOREWARP names the program; default build/forewarp."""

import csv
import io
import math
import os
import subprocess
import sys
import tempfile

import svg
from common import ROOT, fail, forewarp, number, print_table, program, read_bytes

STAGES = ("generation", "compilation", "execution")
RUNS = (1, 2, 5, 10, 30, 100, 300)


def nan(value):
    return math.nan if value is None else value


class Exploration:
    def __init__(self, model, path):
        self.result = forewarp("eval", model, path)
        lines = read_bytes(path).decode().splitlines()
        head = [line[2:].split(": ", 1) for line in lines if line.startswith("# ")]
        self.seconds, of = {}, None
        for key, value in (pair for pair in head if len(pair) == 2):
            if key == "command":
                of = os.path.basename(value.split()[2]).split(".fw")[0]
            if "_s" in key:
                for name in (key, f"{key}.{of}"):
                    self.seconds[name] = self.seconds.get(name, 0) + float(value)
        table = csv.DictReader(io.StringIO("\n".join(line for line in lines if not line.startswith("#"))))
        seen = {f["feature"] for f in self.result["features"]}
        names = table.fieldnames[3:-2]
        self.features = [f for f in names if f in seen] + sorted(f for f in seen if f not in names)
        self.programs = [p["program"] for p in self.result["programs"]]
        self.sizes = [s["size"] for s in self.result["sizes"]]
        self.groups = {(g["program"], g["size"]): g for g in self.result["groups"]}
        self.size = next((s for s in self.sizes if s.startswith("4096")), self.sizes[-1])
        self.rows = [row for row in table if row["size"] == self.size]

    def shown(self):
        """The programs that ran at the size of the figures."""
        return [p for p in self.programs if (p, self.size) in self.groups]

    def value(self, row, feature):
        above, _, below = feature.partition("/")
        if feature in row or not below:
            return float(row[feature])
        return float(row[above]) / float(row[below]) if float(row[below]) > 0 else float(row[above])

    def stages(self):
        """Seconds of each stage of exploring, by program and of all, where the data say so."""
        for program in [*self.programs, None]:
            keys = [f"{stage}_s" + (f".{program}" if program else "") for stage in STAGES]
            spent = [self.seconds.get(key, math.nan) for key in keys]
            if sum(spent) > 0:
                yield program or "all", spent

    def shape(self):
        """Features of the best points, and the mean of all points: least 0, most 1."""
        best, columns = {}, {}
        for row in self.rows:
            if row["time_ns"] and float(row["time_ns"]) < best.get(row["program"], (math.inf,))[0]:
                best[row["program"]] = float(row["time_ns"]), row
        for feature in self.features:
            values = [self.value(row, feature) for row in self.rows]
            low, high = min(values), max(values)
            own = [self.value(best[p][1], feature) for p in self.shown()] + [sum(values) / len(values)]
            columns[feature] = [(v - low) / (high - low) if high > low else 0 for v in own]
        return columns


def figure2(x):
    rows = [["program", "generation s", "%", "compilation s", "%", "execution s", "%"]]
    for name, spent in x.stages():
        rows.append([name, *(cell for s in spent for cell in (number(s, 1), number(100 * s / sum(spent), 1)))])
    if len(rows) > 1:
        print_table(rows, "Figure 2: where the time of exploring goes")
    else:
        print("\nFigure 2: where the time of exploring goes\n  the data do not say")


def figure3(x):
    rows = [["feature", *x.shown(), "mean of all"]]
    rows += [[feature, *(number(v, 2) for v in values)] for feature, values in x.shape().items()]
    print_table(rows, f"Figure 3: features of the best points at size {x.size}, from the least (0) to the most "
                      "(1) of all points")


def figure4(x):
    rows = [["feature", "redundancy"]]
    rows += [[f["feature"], number(nan(f["redundancy"]), 4)] for f in x.result["features"]]
    print_table(rows, "Figure 4: redundancy between each feature and throughput (0 unrelated, 0.5 one tells "
                      "the other)")


def pairs(x, what):
    """A value for each program and size."""
    return [[nan(x.groups[p, s][what]) if (p, s) in x.groups else math.nan for s in x.sizes] for p in x.programs]


def correlation(x):
    rows = [["program", *x.sizes]]
    rows += [[p, *(number(v, 3) for v in row)] for p, row in zip(x.programs, pairs(x, "pearson"))]
    print_table(rows, "Section 7.3: correlation of predicted and measured throughput, the program left out of "
                      "training")


def figure5(x):
    rows = [["program, order", *(str(n) for n in RUNS)]]
    for p in x.shown():
        for order in "model", "random":
            best = x.groups[p, x.size][order + "_best"]
            rows.append([f"{p}, {order}", *(number(best[n - 1] if n <= len(best) else math.nan, 3) for n in RUNS)])
    print_table(rows, f"Figure 5: best throughput after so many runs, size {x.size}")


def less(x):
    named = [*x.result["programs"], dict(x.result["summary"], program="geometric mean")]
    return [(p["program"], nan(p["fewer_runs"]), nan(p["less_time"])) for p in named]


def figure6(x):
    rows = [["program", "fewer runs", "less time"], *([p, number(a, 1), number(b, 1)] for p, a, b in less(x))]
    print_table(rows, f"Figure 6: to reach {100 * x.result['goal']:.0f} % of the best, times fewer runs than "
                      "random and times less kernel time")


def figure7(x):
    rows = [["program", "size", "points", "ran", "good", "model", "random", "fewer", "pearson", "spearman", "to 95 %"]]
    for g in x.result["groups"]:
        model, random = nan(g["model_runs"]), nan(g["random_runs"])
        rows.append([g["program"], g["size"], str(g["points"]), str(g["ran"]), str(g["good"]), number(model, 1),
                     number(random, 1), number(random / model, 1), number(g["pearson"], 3), number(g["spearman"], 3),
                     number(g["model_runs_95"], 1)])
    print_table(rows, f"Figure 7: runs to reach {100 * x.result['goal']:.0f} % of the best")


def draw(x, folder):
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        fail(1, f"cannot make {folder}: {error}")

    def plot(name, *plots):
        svg.write(os.path.join(folder, name + ".svg"), *plots)

    spent = [(name, [100 * s / sum(of) for s in of]) for name, of in x.stages()]
    plot("figure2", svg.Plot(760, 380, "Where the time of exploring goes", y_label="% of time").bars(
        [name for name, _ in spent], STAGES, [of for _, of in spent], stacked=True, high=100))
    columns = x.shape()
    plot("figure3", svg.Plot(190 + 48 * len(columns), 160 + 26 * (len(x.shown()) + 1),
                             f"Features of the best points, size {x.size}: least 0, most 1").heat(
        [*x.shown(), "mean of all"], list(columns), list(zip(*columns.values())), 2, high=1))
    plot("figure4", svg.Plot(760, 380, "Redundancy between each feature and throughput",
                             y_label="I(X;Y) / (H(X) + H(Y))").bars(
        [f["feature"] for f in x.result["features"]], ["redundancy"],
        [[nan(f["redundancy"])] for f in x.result["features"]]))
    plot("figure5", *(svg.Plot(390, 240, p, "runs", "best throughput", 390 * (i % 2), 240 * (i // 2)).lines(
        [(order, range(1, len(best) + 1), best) for order in ("model", "random")
         for best in [x.groups[p, x.size][order + "_best"]]], x_log=True, y_range=(0, 1), step=True)
        for i, p in enumerate(x.shown())))
    plot("figure6", svg.Plot(760, 380, "Times less than random search", y_label="random / model").bars(
        [p for p, *_ in less(x)], ["runs", "time"], [of for _, *of in less(x)], log=True))
    high = 120 + 26 * len(x.programs)

    def heat(title, what, y, decimals, log=False, most=None):
        return svg.Plot(560, high, title, "size", y=y).heat(x.programs, x.sizes, pairs(x, what), decimals, log, most)

    plot("figure7", heat("Runs needed with the model", "model_runs", 0, 1, True),
         heat("Runs needed at random", "random_runs", high, 1, True))
    plot("correlation", heat("Correlation of predicted and measured throughput", "pearson", 0, 2, most=1))


def as_written(data, size, folder):
    """The rows of the data at the size whose expressions today's rules still make, in two files: with features of kernels,
    as they were, and with those of expressions as they are written."""
    lines = read_bytes(data).decode().splitlines(keepends=True)
    table = list(csv.reader(line for line in lines if not line.startswith("#")))
    programs = list(dict.fromkeys(row[0] for row in table[1:] if row[1] == size))
    paths = [os.path.join(folder, name) for name in ("kernels.csv", "expressions.csv")]
    made = {p: subprocess.Popen([program(), "explore", os.path.join(ROOT, "examples", p + ".fw"), "-s",
                                 f"N={size},M={size}", "--again", data, "--written", "-q", "--csv",
                                 os.path.join(folder, p + ".csv")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for p in programs}
    kept = set()
    with open(paths[1], "w", encoding="utf-8", newline="") as file:
        for p, process in made.items():
            if process.wait():
                fail(1, f"the rows of {p} at {size} cannot be lowered")
            text = read_bytes(os.path.join(folder, p + ".csv")).decode()
            kept.update(tuple(row[:9]) for row in csv.reader(text.splitlines()) if row and row[0] == p)
            file.write(text)
    with open(paths[0], "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([table[0], *(row for row in table[1:] if tuple(row[:9]) in kept)])
    return paths, len(kept), sum(row[1] == size for row in table[1:])


def expressions(data, size):
    rows = [["features of", "correlation", "runs to 90 %", "median", "at random", "fewer", "place of cache_lines"]]
    with tempfile.TemporaryDirectory() as folder:
        paths, kept, of = as_written(data, size, folder)
        for name, path in zip(("kernels", "expressions"), paths):
            result = forewarp("eval", "knn", path, "--features", "paper")
            s, told = result["summary"], [f["feature"] for f in result["features"]]
            rows.append([name, number(nan(s["pearson"]), 3), number(nan(s["model_runs"]), 1),
                         number(nan(s["median_model_runs"]), 1), number(nan(s["random_runs"]), 1),
                         number(nan(s["fewer_runs"]), 1), f"{told.index('cache_lines') + 1} of {len(told)}"])
    print_table(rows, f"Size {size}: {kept} of {of} rows, each program left out of training" +
                ("; of the others the rules make another expression today" if kept < of else ""))


def main(arguments):
    match arguments:
        case ["expressions", data, size]:
            return expressions(data, size)
        case [model, data]:
            folder = None
        case [model, data, "--svg", folder]:
            pass
        case _:
            fail(2, __doc__)
    x = Exploration(model, data)
    for part in figure2, figure3, figure4, correlation, figure5, figure6, figure7:
        part(x)
    if folder:
        draw(x, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
