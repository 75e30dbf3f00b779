#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sections 4.4 and 5 of paper 004 with kernels of the paper's form: every element of the worked example lies in
shared memory, every call loads, computes and stores by routines of its own, with 1 to 25 threads an instance.

  fusions.py kernels FOLDER                     writes the kernels as problem files
  fusions.py record DEVICE FILE [N [few]]       times all routines and fusions for N instances (31,744); few: two
                                                sizes of a block, and on a processor no further shared memory
  fusions.py figures FILE [ORDER]               Figures 4 and 5, section 5.2, and the orders beside each other: equation3,
                                                words (that are moved), stages (what forewarp predicts of its own kernels)

The fusions, their orders and places in shared memory are those of `forewarp fuse examples/fusion/paper.fws`. A
routine is timed alone, with so many instances a block and so much further shared memory (psi of section 4.4).
FOREWARP names the program; default build/forewarp."""

import concurrent.futures
import csv
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

from common import ROOT, Record, fail, forewarp, number, print_table, program, read_bytes
from counts import ranks

SCRIPT = os.path.join(ROOT, "examples", "fusion", "paper.fws")
WORDS = {"A": 9, "B": 9, "X1": 9, "v": 3, "X2": 3, "C": 25, "D": 25, "Y1": 25, "Y2": 25, "F": 25, "n": 1}
# Function, result, arguments, threads of an instance; in the order of the script.
CALLS = [("mmul33", "X1", "A B", (1, 3, 9)), ("mvmul33", "X2", "X1 v", (1, 3)), ("vnorm3", "n", "X2", (1,)),
         ("mmul55", "Y1", "C D", (1, 5, 25)), ("madd55", "Y2", "Y1 C", (1, 5, 25)), ("smmul55", "F", "n Y2", (1, 5, 25))]
CALLS = [(name, out, arguments.split(), threads) for name, out, arguments, threads in CALLS]
INSTANCES, EXTRA = (16, 32, 64, 128), (0, 16, 32, 48, 72)
REPEATS = 16  # of a compute routine that is timed
SHARED = 49152  # bytes a block

FUNCTIONS = {
    "mmul33": ("ON_CHIP a, ON_CHIP b", "return a[j / 3 * 3] * b[j % 3] + a[j / 3 * 3 + 1] * b[3 + j % 3] + a[j / 3 * 3 + 2] * b[6 + j % 3];"),
    "mvmul33": ("ON_CHIP a, ON_CHIP x", "return a[3 * j] * x[0] + a[3 * j + 1] * x[1] + a[3 * j + 2] * x[2];"),
    "vnorm3": ("ON_CHIP x, ON_CHIP unused", "return sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);"),
    "mmul55": ("ON_CHIP a, ON_CHIP b", "float s = 0; for (int k = 0; k < 5; k++) s += a[j / 5 * 5 + k] * b[5 * k + j % 5]; return s;"),
    "madd55": ("ON_CHIP a, ON_CHIP b", "return a[j] + b[j];"),
    "smmul55": ("ON_CHIP s, ON_CHIP a", "return s[0] * a[j];"),
}
SPELLING = {
    "opencl": "#define KERNEL kernel void\n#define IN global const float *\n#define OUT global float *\n#define SHARED local\n"
              "#define ON_CHIP local const float *\n#define ROUTINE float\n#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)\n"
              "#define ITEM (int)get_local_id(0)\n#define BLOCK (int)get_group_id(0)\n",
    "cuda": "#define KERNEL extern \"C\" __global__ void\n#define IN const float *\n#define OUT float *\n"
            "#define SHARED __shared__\n#define ON_CHIP const float *\n#define ROUTINE __device__ float\n"
            "#define BARRIER __syncthreads()\n#define ITEM (int)threadIdx.x\n#define BLOCK (int)blockIdx.x\n",
    "c": "#include <math.h>\n#define ON_CHIP const float *\n#define ROUTINE static float\n",
}


def functions(language):
    return SPELLING[language] + "".join(f"ROUTINE {name}({arguments}, int j) {{ {body} }}\n"
                                        for name, (arguments, body) in FUNCTIONS.items())


# Routines as text; an element lies at place words an instance, all instances of a block side by side. ----------------

def load(element, place, threads):
    return (f"    for (int k = ITEM; ITEM < INST * {threads} && k < INST * {WORDS[element]}; k += INST * {threads})\n"
            f"        chip[INST * {place} + k] = {element}[BLOCK * INST * {WORDS[element]} + k];\n")


def store(element, place, threads):
    return (f"    for (int k = ITEM; ITEM < INST * {threads} && k < INST * {WORDS[element]}; k += INST * {threads})\n"
            f"        {element}[BLOCK * INST * {WORDS[element]} + k] = chip[INST * {place} + k];\n")


def compute(call, places, threads):
    name, out, arguments, _ = call
    inputs = [f"chip + INST * {places[e]} + ITEM / {threads} * {WORDS[e]}" for e in (arguments * 2)[:2]]
    return (f"    if (ITEM < INST * {threads})\n        for (int j = ITEM % {threads} * ({WORDS[out]} / {threads}), end = j + "
            f"{WORDS[out]} / {threads}; j < end; j++)\n            chip[INST * {places[out]} + ITEM / {threads} * {WORDS[out]} + j] = "
            f"{name}({', '.join(inputs)}, j);\n")


BARRIER = "    BARRIER;\n"


def kernel(name, parameters, words, body):
    arguments = ", ".join(parameters)
    return f"KERNEL {name}({arguments})\n{{\n    SHARED float chip[INST * ({words})];\n{body}}}\n"


class Fusion:
    """A set of calls in one kernel, or one call alone; what it loads, stores and keeps on chip."""

    def __init__(self, calls, order=None, places=None, words=None, stores=None):
        self.calls, self.order = calls, order or calls
        made = [CALLS[c - 1][1] for c in calls]
        self.stores = stores or made
        self.loads = list(dict.fromkeys(e for c in calls for e in CALLS[c - 1][2] if e not in made))
        if places is None:
            places, at = {}, 0
            for e in self.loads + made:
                places[e] = at
                at += WORDS[e]
            words = at
        self.places, self.words = places, words
        self.name = "f" + "".join(str(c) for c in calls)

    def text(self):
        body, have = "", set()
        for c in self.order:
            call, threads = CALLS[c - 1], f"T{c}"
            loads = [e for e in call[2] if e in self.loads and e not in have]
            have.update(loads)
            body += "".join(load(e, self.places[e], threads) for e in loads) + (BARRIER if loads else "")
            body += compute(call, self.places, threads) + BARRIER
            if call[1] in self.stores:
                body += store(call[1], self.places[call[1]], threads) + BARRIER
        return kernel(self.name, [f"IN {e}" for e in self.loads] + [f"OUT {e}" for e in self.stores], self.words, body)

    def reference(self):
        body = "".join(f"    static float {CALLS[c - 1][1]}_[25];\n" for c in self.calls)
        body += "    for (long t = 0; t < N; t++) {\n"
        for c in self.order:
            name, out, arguments, _ = CALLS[c - 1]
            where = [f"{e} + t * {WORDS[e]}" if e in self.loads else f"{e}_" for e in (arguments * 2)[:2]]
            body += f"        for (int j = 0; j < {WORDS[out]}; j++)\n            {out}_[j] = {name}({', '.join(where)}, j);\n"
            if out in self.stores:
                body += f"        for (int j = 0; j < {WORDS[out]}; j++)\n            {out}[t * {WORDS[out]} + j] = {out}_[j];\n"
        arguments = [f"const float *{e}" for e in self.loads] + [f"float *{e}" for e in self.stores]
        return functions("c") + f"void {self.name}({', '.join(arguments)})\n{{\n{body}    }}\n}}\n"

    def problem(self, language, instances):
        threads = [f"T{c}" for c in self.calls]
        most = threads[0]
        for t in threads[1:]:
            most = f"max({most}, {t})"
        return {"files": f"{self.name}.cl", "language": language, "sizes": {"N": 31744},
                "parameters": {"INST": list(instances), **{f"T{c}": list(CALLS[c - 1][3]) for c in self.calls}},
                "constraints": [f"INST * {most} <= 1024", f"INST * {4 * self.words} <= {SHARED}"],
                "arguments": [{"name": e, "type": "float", "shape": f"N * {WORDS[e]}"} for e in self.loads] +
                             [{"name": e, "type": "float", "shape": f"N * {WORDS[e]}", "access": "out"} for e in self.stores],
                "launch": {"kernel": self.name, "groups": "N // INST", "local": f"INST * {most}"},
                "reference": {"c": f"{self.name}_reference.c", "function": self.name}}


class Routine:
    """One routine of a call, timed alone. `base`: what all but its own work takes."""

    def __init__(self, number_, call, what):
        self.number, self.call, self.what = number_, call, what
        self.name, self.words = f"r{number_}{what}", sum(WORDS[e] for e in [call[1], *call[2]])
        self.places, at = {}, 0
        for e in [*call[2], call[1]]:
            self.places[e] = at
            at += WORDS[e]

    def text(self):
        fill = "" if self.what.startswith("load") or self.what == "empty" else (
            f"    for (int k = ITEM; k < INST * {self.words}; k += INST * T)\n        chip[k] = k * 0.001f;\n" + BARRIER)
        body = fill
        if self.what.startswith("load"):
            body += load(self.element(), self.places[self.element()], "T") + BARRIER
        elif self.what == "compute":
            body += f"    for (int again = 0; again < {REPEATS}; again++) {{\n{compute(self.call, self.places, 'T')}{BARRIER}    }}\n"
        elif self.what == "store":
            body += store(self.call[1], self.places[self.call[1]], "T")
        value = "1.0f" if self.what == "empty" else f"chip[INST * {self.words} - 1] == 1e30f ? 2.0f : 1.0f"
        body += f"    if (ITEM == 0)\n        last[BLOCK] = {value};\n"
        return kernel(self.name, [*(f"IN {e}" for e in self.inputs()), *(f"OUT {e}" for e in self.outputs()), "OUT last"],
                      f"{self.words} + EXTRA", body)

    def element(self):
        return self.call[2][int(self.what[4:])]

    def inputs(self):
        return [self.element()] if self.what.startswith("load") else []

    def outputs(self):
        return [self.call[1]] if self.what == "store" else []

    def problem(self, language, instances, extra):
        unchecked = {"type": "float", "access": "out", "check": False}
        return {"files": f"{self.name}.cl", "language": language, "sizes": {"N": 31744},
                "parameters": {"INST": list(instances), "T": list(self.call[3]), "EXTRA": list(extra)},
                "constraints": ["INST * T <= 1024", f"INST * 4 * ({self.words} + EXTRA) <= {SHARED}"],
                "arguments": [{"name": e, "type": "float", "shape": f"N * {WORDS[e]}"} for e in self.inputs()] +
                             [{"name": e, "shape": f"N * {WORDS[e]}", **unchecked} for e in self.outputs()] +
                             [{"name": "last", "shape": "N", **unchecked, "check": f"i < N // {max(instances)}"}],
                "launch": {"kernel": self.name, "groups": "N // INST", "local": "INST * T"}}


def fusions():
    found = forewarp("fuse", SCRIPT)["fusions"]
    return [Fusion([c]) for c in range(1, 7)] + [
        Fusion(f["calls"], f["order"], f["places"], f["allocated"], f["stores"]) for f in found]


def routines():
    kinds = (["empty", "fill", "compute", "store", *(f"load{i}" for i in range(len(call[2])))] for call in CALLS)
    return [Routine(c, call, what) for c, (call, whats) in enumerate(zip(CALLS, kinds), 1) for what in whats]


def write_kernels(folder, language, instances, extra):
    """Problem files by name, and how many points each has."""
    os.makedirs(folder, exist_ok=True)
    for one in [*fusions(), *routines()]:
        problem = one.problem(language, instances, extra) if isinstance(one, Routine) else one.problem(language, instances)
        files = {".cl": functions(language) + one.text(), ".json": json.dumps(problem, indent=2)}
        if isinstance(one, Fusion):
            files["_reference.c"] = one.reference()
        for end, text in files.items():
            with open(os.path.join(folder, one.name + end), "w", encoding="utf-8") as file:
                file.write(text)
        yield one, os.path.join(folder, one.name + ".json")


# Recording -----------------------------------------------------------------------------------------------------------

def tuned(path, device, n):
    """All points of a problem file, as a record; none if none fits."""
    cache = path[:-5] + ".cache"
    done = subprocess.run([program(), "tune", path, "-d", device, "-s", f"N={n}", "--strategy", "random", "--seed", "1",
                           "--budget", "2000t", "-q", "--store", path[:-5] + ".db", "-o", path[:-5] + "-out", "--cache",
                           cache], stdout=subprocess.DEVNULL, check=False)
    return Record(cache) if done.returncode == 0 else None


def write_times(path, device, n, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(f"# device: {device}\n# instances: {n}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kernel", "threads", "instances", "extra", "time_ns"])
        writer.writerows(rows)


def row(one, point, keys, ns):
    at = dict(zip(keys, point))
    threads = [at["T"]] if isinstance(one, Routine) else [at[f"T{c}"] for c in one.calls]
    return [one.name, " ".join(f"{t:g}" for t in threads), f"{at['INST']:g}", f"{at.get('EXTRA', 0):g}",
            f"{ns:.0f}" if math.isfinite(ns) else ""]


def record(device, path, n, few):
    """Kernels for a GPU are compiled while others run; those that share a folder of caches take turns on it."""
    gpu = device.startswith("cuda")
    instances, extra = ((32, 64), (0, 32, 72)) if few and gpu else ((32, 128), (0,)) if few else (INSTANCES, EXTRA)
    rows = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(6 if gpu else 1) as pool:
        kernels = list(write_kernels(folder, "cuda" if gpu else "opencl", instances, extra))
        for (one, _), found in zip(kernels, pool.map(lambda kernel: tuned(kernel[1], device, n), kernels)):
            if found is None:
                fail(1, f"{one.name} was not timed on {device}")
            rows += [row(one, point, found.keys, ns) for point, ns in zip(found.point, found.ns)]
            write_times(path, found.device, n, rows)


# Figures -------------------------------------------------------------------------------------------------------------

class Times:
    """What was recorded, as numbers by kernel, threads, instances a block and further shared memory."""

    def __init__(self, path):
        lines = read_bytes(path).decode().splitlines()
        head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
        try:
            self.device, self.n = head["device"], int(head["instances"])
            self.ns = {}
            for row in csv.DictReader(line for line in lines if not line.startswith("#")):
                if row["time_ns"]:
                    key = row["kernel"], tuple(int(t) for t in row["threads"].split()), int(row["instances"]), int(row["extra"])
                    self.ns[key] = float(row["time_ns"])
        except (KeyError, ValueError) as error:
            fail(2, f"{path}: no times of fusions: {error!r}")
        self.extra = sorted({key[3] for key in self.ns})
        self.routine = {(r.number, r.what): r for r in routines()}

    def alone(self, routine, threads, i, extra):
        """Nanoseconds of the routine itself for all instances, or None."""
        base = ("empty" if routine.what.startswith("load") else "fill")
        keys = [(name, (threads,), i, extra) for name in (routine.name, f"r{routine.number}{base}")]
        if any(key not in self.ns for key in keys):
            return None
        return max(self.ns[keys[0]] - self.ns[keys[1]], 0) / (REPEATS if routine.what == "compute" else 1)

    def psi(self, number_, what, threads, i, extra):
        """Between the amounts of further shared memory that were timed; beyond the last one that ran: that."""
        known = [(e, self.alone(self.routine[number_, what], threads, i, e)) for e in self.extra]
        known = [(e, ns) for e, ns in known if ns is not None]
        return between(known, extra) if known else None

    def tau(self, fusion, threads, i):
        """Equation 3: the slower of all transfers and all computation. The recomputation of coordinates (t_md) is part of
        each compute routine here."""
        transfers = computes = 0.0
        for c, t in zip(fusion.calls, threads):
            _, out, arguments, _ = CALLS[c - 1]
            extra = fusion.words - self.routine[c, "compute"].words
            whats = [f"load{k}" for k, e in enumerate(arguments) if first_use(fusion, c, e)]
            whats += ["store"] if out in fusion.stores else []
            parts = [self.psi(c, what, t, i, extra) for what in whats]
            compute_ns = self.psi(c, "compute", t, i, extra)
            if compute_ns is None or None in parts:
                return None
            transfers += sum(parts)
            computes += compute_ns
        return max(transfers, computes)


def between(known, x):
    """Linear between the places that are known, constant beyond the outermost."""
    for (x0, y0), (x1, y1) in zip(known, known[1:]):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return known[0][1] if x < known[0][0] else known[-1][1]


def polynomial(values, degree):
    """The polynomial of least squares through values at 0, 1, 2, ..., at those places."""
    xs = [2 * i / max(len(values) - 1, 1) - 1 for i in range(len(values))]
    n = degree + 1
    rows = [[sum(x ** (r + c) for x in xs) for c in range(n)] + [sum(y * x ** r for x, y in zip(xs, values))] for r in range(n)]
    for k in range(n):
        pivot = max(range(k, n), key=lambda r, k=k: abs(rows[r][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for r in range(n):
            if r != k:
                factor = rows[r][k] / rows[k][k]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[k])]
    return [sum(rows[k][n] / rows[k][k] * x ** k for k in range(n)) for x in xs]


def first_use(fusion, c, element):
    users = [d for d in fusion.order if element in CALLS[d - 1][2]]
    return element in fusion.loads and users[0] == c


def moved(fusion):
    return sum(WORDS[e] for e in fusion.loads + fusion.stores)


ORDERS = ("equation3", "words", "stages")


def by_stages(n):
    """What forewarp predicts of each way to divide the calls, for its own kernels, by the rates of a large GPU."""
    with tempfile.NamedTemporaryFile("w", suffix=".fw") as file:
        done = subprocess.run([program(), "fuse", SCRIPT, "--print", "program"], stdout=file, check=False)
        found = forewarp("fuse", file.name, "-s", f"T={n}", "-n", "100") if done.returncode == 0 else fail(1, f"{SCRIPT} is no script")
    return {frozenset(tuple(kernel) for kernel in c["kernels"]): c["predicted_ns"] for c in found["covers"]}


def implementations(times):
    """Of each fusion, by threads: what equation 3 says, the words that are moved, the measured time and the threads, with the block that equation 3
    takes; and the same of all blocks."""
    chosen, every = {}, []
    for fusion in fusions():
        for threads in itertools.product(*(CALLS[c - 1][3] for c in fusion.calls)):
            blocks = []
            for i in INSTANCES:
                real = times.ns.get((fusion.name, threads, i, 0))
                predicted = times.tau(fusion, threads, i)
                if real is not None and predicted is not None:
                    blocks.append((predicted, real, i))
                    every.append((fusion, threads, i, predicted, real))
            if blocks:
                predicted, real, _ = min(blocks)
                chosen.setdefault(tuple(fusion.calls), []).append((predicted, moved(fusion), real, threads))
    return chosen, every


def covers(times, chosen, by):
    """All combinations of implementations that have every call once: (predicted, measured, kernels)."""
    def more(left):
        if not left:
            yield 0.0, 0.0, ()
            return
        for calls in chosen:
            if left[0] in calls and set(calls) <= set(left):
                rest = tuple(c for c in left if c not in calls)
                for predicted, real, kernels in more(rest):
                    for *p, r, threads in chosen[calls]:
                        yield predicted + p[by == "words"], real + r, ((calls, threads), *kernels)
    stages = by_stages(times.n) if by == "stages" else {}
    for predicted, real, kernels in more((1, 2, 3, 4, 5, 6)):
        sets = [calls for calls, _ in kernels]
        if acyclic(sets):
            yield stages.get(frozenset(sets), math.inf) if stages else predicted, real, kernels


def acyclic(sets):
    """Whether the kernels can run one after another."""
    done, left = set(), list(sets)
    while left:
        ready = [s for s in left if all(maker(e) in done | set(s) for c in s for e in CALLS[c - 1][2] if maker(e))]
        if not ready:
            return False
        done.update(c for s in ready for c in s)
        left = [s for s in left if s not in ready]
    return True


def maker(element):
    return next((c for c, call in enumerate(CALLS, 1) if call[1] == element), None)


def rank_correlation(x, y):
    return statistics.correlation(ranks(x), ranks(y))


FIRST = 300  # implementations of the whole that the paper generates


def threads_of(calls, threads):
    return "".join(map(str, calls)) + "/" + ".".join(map(str, threads))


def figure4(times, every):
    every = sorted(every, key=lambda row: row[4])
    real, predicted = ([1e3 * times.n / max(row[k], 1) for row in every] for k in (4, 3))
    rows = [["place", "calls/threads", "block", "measured", "predicted"]]
    for place in (round(k * (len(every) - 1) / 14) for k in range(15)):
        fusion, threads, i, *_ = every[place]
        rows.append([str(place), threads_of(fusion.calls, threads), str(i), number(real[place], 1),
                     number(predicted[place], 1)])
    print_table(rows, f"Figure 4: the {len(every)} implementations of fusions and single calls by measured performance, 10^6 "
                      "instances a second (15 of them)")
    low, half, high = statistics.quantiles([p / r for p, r in zip(predicted, real)], n=4)
    print(f"  rank correlation {rank_correlation(real, predicted):.2f}; predicted over measured performance: median "
          f"{half:.2f}, half of them {low:.2f} to {high:.2f}")


def figure5(times, chosen, by):
    found = sorted(covers(times, chosen, by), key=lambda cover: cover[0])
    real = [1e3 * times.n / cover[1] for cover in found]
    first = real[:FIRST]
    fit = polynomial(first, 5)
    rows = [["place", "measured", "fitted", "kernels"]]
    for place in sorted({0, 1, 2, 3, 4, *range(19, len(first), 20)}):
        kernels = " | ".join(threads_of(*one) for one in found[place][2])
        rows.append([str(place), number(first[place], 1), number(fit[place], 1), kernels])
    print_table(rows, f"Figure 5: the first {len(first)} of {len(found)} implementations of the whole in the order of {by}, 10^6 "
                      "instances a second, and the fitted polynomial of degree 5")
    best = sorted(range(len(real)), key=lambda k: -real[k])[:5]
    agreement = rank_correlation([-r for r in real], range(len(real)))
    print(f"  the best five of all are at places {', '.join(map(str, best))}; the paper: 0, 48, 1, 6, 28")
    print("  the best is " + " | ".join(threads_of(*one) for one in found[best[0]][2]))
    apart = max(r for r, cover in zip(real, found) if len(cover[2]) == 6)
    whole = max((r for r, cover in zip(real, found) if len(cover[2]) == 1), default=math.nan)
    print(f"  section 5.2: best {max(real):.1f}, {max(real) / apart:.2f} times the best without fusions ({apart:.1f}; the paper "
          f"2.49), {max(real) / whole:.2f} times the best in one kernel ({whole:.1f}; the paper 1.46)")
    return [by, number(agreement, 2), *(number(max(real) / max(real[:k]), 3) for k in SHOWN)]


SHOWN = (1, 5, 10, 50, FIRST)


def figures(path, by):
    times = Times(path)
    print(f"{times.device}, {times.n} instances: {len(times.ns)} times of routines and fusions")
    chosen, every = implementations(times)
    figure4(times, every)
    rows = [["order", "rank correlation", *(f"best of {k}" for k in SHOWN)]]
    rows += [figure5(times, chosen, kind) for kind in by]
    print_table(rows, "How many times longer than the best of all the best of the first implementations takes")


def main(arguments):
    match arguments:
        case ["kernels", folder]:
            for _ in write_kernels(folder, "opencl", INSTANCES, EXTRA):
                pass
        case ["record", device, path, *rest] if len(rest) <= 2 and rest[1:] in ([], ["few"]):
            record(device, path, int(rest[0]) if rest else 31744, rest[1:] == ["few"])
        case ["figures", path]:
            figures(path, ORDERS)
        case ["figures", path, by] if by in ORDERS:
            figures(path, [by])
        case _:
            fail(2, __doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
