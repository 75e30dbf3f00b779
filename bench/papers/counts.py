#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of paper 003 from measured kernels, what calibrate --csv wrote.

  counts.py table KERNELS          Table 1: weights are fitted to the measurement kernels and predict
                                   the test kernels; errors, and their geometric means
  counts.py picks KERNELS POINTS   section 6.2: of the points of an exploration (explore --derived), how
                                   near to the best are those that such weights put first

FOREWARP names the program; default build/forewarp."""

import csv
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

from common import ROOT, fail, forewarp, number, print_table, program, read_bytes

PAPERS = ("finite_differences", "skinny_tiled", "n_body_tiled", "convolution")  # its own kernels, with tiles
MODELS = {"paper": "the paper's properties, added up", "counts": "properties by bytes, arrays, idle units",
          "demands": "demands that overlap"}
SHOWN = (1, 5, 10)
SIZES = 4  # of each test kernel


def cases_of(tests, used):
    """The four largest sizes of each kernel, of each the shape of group that was measured first; and how far each model is off."""
    first = {}
    for test in tests:
        first.setdefault((test["kernel"], test["n"]), test)
    for (kernel, n), test in first.items():
        if n in sorted({m for k, m in first if k == kernel})[-SIZES:]:
            errors = {key: abs(test[key] - test["measured_ms"]) / test["measured_ms"] for key in MODELS if key in test}
            yield {"kernel": kernel, "n": n, "predicted_ms": test[used], "measured_ms": test["measured_ms"], "error": errors[used], **errors}


def mean_error(cases, key):
    return 100 * math.exp(sum(math.log(max(c[key], 1e-4)) for c in cases) / len(cases))


def table(kernels):
    result = forewarp("eval", "linear", kernels)
    cases = list(cases_of(result["tests"], result["used"]))
    if not cases:
        fail(2, f"{kernels} has no test kernels")
    print(f"{result['device']}: {result['measurements']} measurements fitted, residuals {100 * result['residuals']:.1f} %")
    rows = [["kernel", "n", "predicted ms", "measured ms", "error"]]
    rows += [[c["kernel"], str(c["n"]), number(c["predicted_ms"], 4), number(c["measured_ms"], 4),
              f"{100 * c['error']:.1f} %"] for c in cases]
    print_table(rows, f"Table 1: all {len(cases)} cases, geometric mean of the relative error "
                      f"{mean_error(cases, 'error'):.1f} %")
    of = {kernel: [c for c in cases if c["kernel"] == kernel] for kernel in dict.fromkeys(c["kernel"] for c in cases)}
    own = [c for c in cases if c["kernel"] in PAPERS]
    has_own = {c["kernel"] for c in own} == set(PAPERS)
    rows = [["", *of, "all", *(["the paper's four"] if has_own else [])]]
    for key, name in MODELS.items():
        if key in cases[0]:
            rows.append([name, *(number(mean_error(some, key), 1) for some in [*of.values(), cases, *([own] if has_own else [])])])
    print_table(rows, "geometric means, %")


def read_groups(path):
    """Points that ran, and their times, by program and size; and the commands that made them."""
    groups, commands, names = {}, [], None
    for row in csv.reader(read_bytes(path).decode().splitlines()):
        if row and row[0].startswith("#"):
            commands += [",".join(row)[len("# command: "):]] if row[0].startswith("# command: ") else []
        elif row and row[0] == "program":
            names = row
        elif row and names:
            cells = dict(zip(names, row))
            group = groups.setdefault((cells["program"], cells["size"]), [])
            if cells["time_ns"]:
                group.append((cells["expression"], float(cells["time_ns"])))
    if not groups:
        fail(2, f"{path} has no points")
    return groups, commands


def named(size, sizes):
    """Whether the data call these sizes so: all the same are one number."""
    values = [item.split("=")[1] for item in sizes.split(",")]
    return size in (("x".join(values)), values[0] if len(set(values)) == 1 else None)


def predict(weights, of, size, points, commands):
    """Nanoseconds by the weights; None where the program has no such point any more."""
    for command in commands:
        found = re.search(r"explore (\S+) -s (\S+)", command)
        if found and os.path.basename(found[1]) == of + ".fw" and named(size, found[2]):
            break
    else:
        fail(2, f"no command in the data has the program {of} at {size}")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(point + "\n" for point, _ in points))
        file.flush()
        done = subprocess.run([program(), "predict", os.path.join(ROOT, found[1]), "-s", found[2], "--model", weights,
                               "--points", file.name], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return [float(line) if line else None for line in done.stdout.splitlines()]


def ranks(values):
    """Places in ascending order; equal values share the mean of theirs."""
    order = sorted(values)
    first, last = {}, {}
    for i, value in enumerate(order):
        first.setdefault(value, i)
        last[value] = i
    return [(first[v] + last[v]) / 2 for v in values]


def picks(kernels, path):
    groups, commands = read_groups(path)
    rows = [["program", "size", "points", "best us", "rank correlation", *(f"first {n}" for n in SHOWN)]]
    within = []
    with tempfile.TemporaryDirectory() as folder:
        weights = os.path.join(folder, "weights.json")
        if subprocess.run([program(), "fit", "linear", kernels, "-o", weights], stdout=subprocess.DEVNULL,
                          check=False).returncode:
            sys.exit(1)
        for (of, size), points in groups.items():
            predicted = predict(weights, of, size, points, commands)
            both = sorted((p, i, ns) for i, (p, (_, ns)) in enumerate(zip(predicted, points)) if p is not None)
            times = [ns for _, _, ns in both]
            within.append([min(times[:n]) / min(times) for n in SHOWN])
            rho = statistics.correlation(ranks([p for p, _, _ in both]), ranks(times)) if len(both) > 1 else math.nan
            rows.append([of, size, str(len(both)), number(min(times) * 1e-3, 1), number(rho, 2),
                         *(number(x, 3) for x in within[-1])])
    rows.append(["median", "", "", "", "", *(number(statistics.median(x), 3) for x in zip(*within))])
    print_table(rows, "Section 6.2: the best time of the first picks over the best of all")


def main(arguments):
    match arguments:
        case ["table", kernels]:
            table(kernels)
        case ["picks", kernels, points]:
            picks(kernels, points)
        case _:
            fail(2, __doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
