#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Fused kernels on GPUs, beside what others reach: bench/fusion.py [FOREWARP] [NAME ...].
# Tunes the eleven BLAS sequences and the worked example of examples/fusion and the programs
# of bench/fusion (of the first twelve also without fusions), and each cover of the pipelines
# PIPELINES, each for so many SECONDS (6). PyTorch's calls (cuBLAS) and
# torch.compile of the twelve are timed by fusion_rivals.py where PyTorch is.
#   DEVICE="cuda:0 cuda:1"  what to run on (cuda:0): a task at a time each, in order of weight
#   MINUTES=7     no task is begun later than that, and none lasts longer than 90 s more
#   OUT=out       keeps what was found: rows.jsonl a line a task, written when it is done,
#                 what `tune --json` wrote, stores of trials
#   SMALL=1       few instances: does it run?  (DEVICE="opencl:0 opencl:0" is a dry run)
# Then, or when it is interrupted, tables: what each reaches, as a share of a copy of as many
# bytes as must be moved (of gemvt 2n^2 words, of gemver 3n^2: two passes), against the best
# without fusions and against the rivals; covers of pipelines; what was to be reached.
# `OUT=out bench/fusion.py tables` prints them of what an earlier run left.
# Exit status 1 if something could not be tuned.
import glob
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

here = os.path.dirname(os.path.abspath(__file__))
only_tables = sys.argv[1:] == ["tables"]
forewarp = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/forewarp")
wanted = sys.argv[2:]
devices = os.environ.get("DEVICE", "cuda:0").replace(",", " ").split()
small = os.environ.get("SMALL")
stopped = threading.Event()  # no task is begun any more
minutes = float(os.environ.get("MINUTES", "60"))
N = 1000 if small else 1 << 26  # of vectors
M = 320 if small else 8192  # rows, and words of a row
T = 1000 if small else 1 << 20  # small matrices
SIDE = 61 if small else 8192  # of pipelines' arrays

VECTORS = ["axpydot", "vadd", "waxpby", "sscal", "madd"]
ROWS = ["sgemv", "atax", "bicgk", "gemvt", "gesummv", "gemver"]
PIPELINES = ["blur", "srad", "harris"]
PASSES = {"gemvt": 2, "gemver": 1.5}  # by how much that is more than each list once
SECONDS = os.environ.get("SECONDS", "6")
BUDGET = "4t" if small else SECONDS + "s"
LAST_S = 900 if small else 90  # that a task may take
# What is wanted (doc/fusion.md): shares of copy in per cent, instances a second, factors.
SHARES = {"axpydot": 95, "vadd": 95, "waxpby": 95, "bicgk": 90, "atax": 80, "gemver": 90}


def scripts():
    """Name, path, instances, of all; those that rivals have first."""
    examples = os.path.join(here, "..", "examples", "fusion")
    for name in ["paper"] + VECTORS + ROWS:
        instances = T if small else 4 * T
        instances = N if name in VECTORS else M if name in ROWS else instances
        yield name, os.path.join(examples, name + ".fws"), instances
    for path in sorted(glob.glob(os.path.join(here, "fusion", "*.fws"))):
        flat = "MATRIX" not in open(path).read()
        yield os.path.basename(path)[:-4], path, N // 4 if flat else T


# Tasks -----------------------------------------------------------------------------------
# Each gives a row, {"what", "name", ...}, or raises; what must hold for all is in work().


def call(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True,
                          timeout=more.pop("timeout", LAST_S), **more).stdout


def tune(place, path, sizes, name, *options):
    out = os.path.join(folder, name + ".json")
    call([forewarp, "tune", path, "-s", sizes, "-d", place, "-q", "--json", out, "-o", folder,
          "--store", os.path.join(folder, f"trials-{place.replace(':', '')}.db"), *options])
    with open(out) as file:
        return json.load(file)


def sizes_of(name, instances):
    return f"T={instances}" + (f",N={M}" if name in ROWS else "")


def run_script(place, name, path, instances):
    r = tune(place, path, sizes_of(name, instances), name, "--budget", BUDGET)
    return {"instances": instances, "ns": r["best"]["time_ns"], "bytes": r["bytes"],
            "copy_ns": r["copy_ns"], "solution": r["best"]["point"],
            "wrong": r["trials"]["wrong-result"]}


def run_unfused(place, name, path, instances):
    """The best of a search among solutions without fusions."""
    covers = json.loads(call([forewarp, "fuse", path, *(["-s", f"N={M}"] if name in ROWS
                                                        else []), "-n", "1000", "--json",
                              "-"]))["covers"]
    kernels = max((c["kernels"] for c in covers), key=len)
    apart = "|".join("+".join(map(str, k)) for k in kernels)
    r = tune(place, path, sizes_of(name, instances), name + "-unfused", "--where",
             f"cover == '{apart}'", "--budget", BUDGET)
    return {"ns": r["best"]["time_ns"], "solution": r["best"]["point"]}


def run_rival(place, name, instances):
    env = dict(os.environ, CUDA_VISIBLE_DEVICES=place.split(":")[1],
               TORCHINDUCTOR_COMPILE_THREADS="1")
    text = call([sys.executable, os.path.join(here, "fusion_rivals.py"),
                 f"{name}={instances}"], env=env, timeout=2 * LAST_S)
    return json.loads(text) if text else {}


def run_cover(place, name, path, cover, predicted):
    r = tune(place, path, f"N={SIDE},M={SIDE}", f"{name}-{cover}".replace("|", "-"),
             "--budget", BUDGET, "--where", f"cover == '{cover}'")
    return {"cover": cover, "predicted_ns": predicted, "ns": r["best"]["time_ns"],
            "copy_ns": r["copy_ns"], "point": r["best"]["point"]}


def covers(path):
    """The covers of a program's space, and their times, in the order of prediction."""
    text = call([forewarp, "fuse", path, "-s", f"N={SIDE},M={SIDE}", "-n", "12", "--json", "-"])
    return [(c["cover"], c["predicted_ns"]) for c in json.loads(text)["covers"]]


def has_torch():
    found = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    return subprocess.run([sys.executable, "-c", found]).returncode == 0


def plan():
    """What to run, as (what, name, function, arguments), the most wanted first."""
    chosen = [s for s in scripts() if not wanted or s[0] in wanted]
    first = [s for s in chosen if s[0] in VECTORS + ROWS + ["paper"]]
    for s in first:
        yield "script", s[0], run_script, s
    for name, _, instances in first if has_torch() else []:
        yield "rival", name, run_rival, (name, instances)
    for s in chosen:
        if s not in first:
            yield "script", s[0], run_script, s
    for s in first:
        yield "unfused", s[0], run_unfused, s
    for name in PIPELINES:
        path = os.path.join(here, "..", "examples", name + ".fw")
        for cover, predicted in covers(path) if not wanted or name in wanted else []:
            yield "cover", name, run_cover, (name, path, cover, predicted)


def said(row):
    if "failed" in row:
        return "FAILED " + row["failed"]
    if row["what"] == "rival":
        return "  ".join(f"{k} {row[k] or 0:.1f} us" for k in ("eager", "compile") if k in row)
    return f"{row['ns'] / 1e3:10.1f} us  {row.get('cover') or row['solution']}"


def work(place, tasks, rows, end, lock):
    """Runs tasks on a device until there is none, or no time."""
    while time.time() < end and not stopped.is_set():
        try:
            what, name, function, arguments = tasks.get_nowait()
        except queue.Empty:
            return
        start = time.time()
        row = {"what": what, "name": name, "device": place}
        try:
            row.update(function(place, *arguments))
        except subprocess.CalledProcessError as error:
            row["failed"] = (error.stderr or "").strip()[-300:]
        except Exception as error:  # one task's trouble is no other's
            row["failed"] = f"{type(error).__name__}: {error}"[:300]
        if "failed" in row and stopped.is_set():
            return  # ended with everything else
        row["seconds"] = round(time.time() - start, 1)
        with lock, open(os.path.join(folder, "rows.jsonl"), "a") as file:
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            print(f"{row['seconds']:6.1f} s {place} {what:7} {name:10} {said(row)}", flush=True)


def run_all(rows):
    tasks, lock, end = queue.Queue(), threading.Lock(), time.time() + 60 * minutes
    for task in plan():
        tasks.put(task)
    # Daemons: an interruption does not wait for them.
    thread = [threading.Thread(target=work, args=(d, tasks, rows, end, lock), daemon=True)
              for d in devices]
    for t in thread:
        t.start()
    for t in thread:
        t.join()
    if not tasks.empty():
        print(f"{tasks.qsize()} tasks were not begun: {minutes:g} minutes were up")


# Tables ----------------------------------------------------------------------------------


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = [0.0] * len(values)
    i = 0
    while i < len(order):
        k = i
        while k + 1 < len(order) and values[order[k + 1]] == values[order[i]]:
            k += 1
        for j in range(i, k + 1):
            rank[order[j]] = (i + k) / 2
        i = k + 1
    return rank


def correlation(pairs):
    a, b = ranks([p for p, _ in pairs]), ranks([t for _, t in pairs])
    mean = (len(pairs) - 1) / 2
    cov = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    norm = (sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)) ** 0.5
    return cov / norm if norm else float("nan")


def place_within(times, best, share):
    """The place, from 1, of the first within a share of the best; None: none is."""
    return next((i + 1 for i, ns in enumerate(times) if ns and ns <= share * best), None)


def share_of(row):
    return 100 * PASSES.get(row["name"], 1) * row["copy_ns"] / row["ns"]


class Found:
    """Rows by what they are of."""

    def __init__(self, rows):
        kept = [r for r in rows if "failed" not in r]
        self.script = {r["name"]: r for r in kept if r["what"] == "script"}
        self.rival = {r["name"]: r for r in kept if r["what"] == "rival" and "eager" in r}
        self.unfused = {r["name"]: r["ns"] for r in kept if r["what"] == "unfused"}
        self.cover = [r for r in kept if r["what"] == "cover"]
        order = [name for name, _, _ in scripts()]
        self.names = sorted(self.script, key=lambda n: order.index(n) if n in order else 99)

    def factor_unfused(self, name):
        ns = self.unfused.get(name)
        return ns / self.script[name]["ns"] if ns else None

    def factor_rival(self, name, key):
        us = self.rival.get(name, {}).get(key)
        return 1e3 * us / self.script[name]["ns"] if us else None

    def factor_better(self, name):
        factors = [f for k in ("eager", "compile") if (f := self.factor_rival(name, k))]
        return min(factors, default=None)


def times(value, width=8):
    return f"{value:{width - 1}.2f}x" if value else f"{'-':>{width}}"


def table_reached(f):
    print(f"\n{'script':10} {'instances':>9} {'time us':>9} {'GB/s':>7} {'of copy':>7} "
          f"{'G inst/s':>8} {'unfused':>8} {'cuBLAS us':>9} {'compile us':>10} {'cuBLAS':>8} "
          f"{'compile':>8} {'better':>8}  solution")
    for name in f.names:
        r, rival = f.script[name], f.rival.get(name, {})
        us = [f"{rival[k]:.1f}" if rival.get(k) else "-" for k in ("eager", "compile")]
        print(f"{name:10} {r['instances']:9} {r['ns'] / 1e3:9.1f} "
              f"{PASSES.get(name, 1) * r['bytes'] / r['ns']:7.0f} {share_of(r):6.1f}% "
              f"{r['instances'] / r['ns']:8.3f} {times(f.factor_unfused(name))} {us[0]:>9} "
              f"{us[1]:>10} {times(f.factor_rival(name, 'eager'))} "
              f"{times(f.factor_rival(name, 'compile'))} {times(f.factor_better(name))}  "
              f"{r['solution']}")


def table_covers(f):
    for name in PIPELINES:
        own = sorted((r for r in f.cover if r["name"] == name),
                     key=lambda r: r["predicted_ns"])
        if not own:
            continue
        print(f"\n{name} {SIDE} x {SIDE}\n{'predicted us':>12} {'time us':>9} {'of copy':>7}"
              "  cover, point")
        for r in own:
            copy = f"{100 * r['copy_ns'] / r['ns']:6.1f}%" if r["copy_ns"] else f"{'-':>7}"
            print(f"{r['predicted_ns'] / 1e3:12.1f} {r['ns'] / 1e3:9.1f} {copy}  {r['cover']}  "
                  f"{r['point']}")
        ns = [r["ns"] for r in own]
        apart = max(own, key=lambda r: r["cover"].count("|"))["ns"]
        print(f"first within 3 %: {place_within(ns, min(ns), 1.03)} of {len(ns)}, "
              f"{apart / min(ns):.2f}x against most kernels")


def table_wanted(f):
    print(f"\n{'wanted':52} {'reached':>9} {'at least':>9}")

    def line(what, value, least, unit=""):
        if value is not None:
            print(f"{what:52} {value:8.2f}{unit:1} {least:8.2f}{unit:1}  "
                  f"{'yes' if value >= least else 'NO'}")

    for name, least in SHARES.items():
        if name in f.script:
            line(f"{name}: share of copy", share_of(f.script[name]), least, "%")
    for name in f.names:
        line(f"{name}: against the better rival", f.factor_better(name), 0.98, "x")
    if "paper" in f.script:
        row = f.script["paper"]
        line("worked example: G instances/s", row["instances"] / row["ns"], 9)
        line("worked example: against our best unfused", f.factor_unfused("paper"), 2.3, "x")


def tables(rows):
    f = Found(rows)
    table_reached(f)
    table_covers(f)
    table_wanted(f)
    return any("failed" in r or r.get("wrong") for r in rows)


def interrupted(signal_number, frame):
    signal.signal(signal_number, signal.SIG_IGN)  # once: then tables are printed
    stopped.set()
    raise KeyboardInterrupt


def main():
    rows = []
    path = os.path.join(folder, "rows.jsonl")
    if only_tables:
        rows = [json.loads(line) for line in open(path)]
        return tables(rows)
    open(path, "w").close()
    for end in (signal.SIGTERM, signal.SIGINT):
        signal.signal(end, interrupted)
    print(time.strftime("%F"), call([forewarp, "--version"]).strip(), *devices, flush=True)
    try:
        run_all(rows)
    except KeyboardInterrupt:
        print("interrupted: what is known so far")
    return tables(list(rows))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temp:
        folder = os.path.abspath(os.environ.get("OUT", temp))
        os.makedirs(folder, exist_ok=True)
        sys.exit(main())
