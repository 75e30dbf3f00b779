#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Fused scripts on one GPU: bench/fusion.py [FOREWARP] [NAME ...]. Tunes the eleven BLAS
# sequences and the worked example of examples/fusion and the programs of bench/fusion, on
# DEVICE (cuda:0), and prints two tables: what each reaches, as a share of a copy of as many
# bytes as must be moved (of gemvt 2n^2 words, of gemver 3n^2: two passes), beside cuBLAS (PyTorch's eager calls) and torch.compile where
# PyTorch is; and how well times were predicted: the rank at which the first within 3 % of
# the best of all that were timed (20 ranked, 24 drawn at random) was found, and the rank
# correlation over all of them. OUT keeps what `tune --json` wrote. About 8 s a script.
# Then programs of several stages: each cover of the space (which stages are one kernel) tuned
# by itself, in predicted order, with the best, the ranks and the traffic of the best.
# Exit status 1 if a script could not be tuned.
import glob
import json
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
forewarp = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/forewarp")
wanted = sys.argv[2:]
device = os.environ.get("DEVICE", "cuda:0")
small = os.environ.get("SMALL")  # few instances: does it run?
N = 1000 if small else 1 << 26  # of vectors
M = 320 if small else 8192  # rows, and words of a row
T = 1000 if small else 1 << 20  # small matrices

VECTORS = ["axpydot", "vadd", "waxpby", "sscal", "madd"]
ROWS = ["sgemv", "atax", "bicgk", "gemvt", "gesummv", "gemver"]
PASSES = {"gemvt": 2, "gemver": 1.5}  # by how much that is more than each list once
RANKED, RANDOM = (3, 3) if small else (20, 24)


def tune(folder, name, path, instances, ranked, drawn):
    # Two more: the best without fusions and as one kernel, to compare with.
    out = os.path.join(folder, name + ".json")
    rows = ["-s", f"N={M}"] if name in ROWS else []
    done = subprocess.run(
        [forewarp, "tune", path, "-s", f"T={instances}", *rows, "-d", device, "-q", "--budget",
         f"{ranked + 2}t", "--sample", str(drawn), "--store", folder + "/trials.db", "--json", out,
         "-o", folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"{name}: {done.stderr.strip()[-300:]}", flush=True)
        return None
    with open(out) as file:
        return json.load(file)


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


def judge(r):
    """Rank of the first within 3 % of the best of all, correlation, median error."""
    timed = [s for s in r["solutions"] + r["random"] if s["time_ns"]]
    best = min(s["time_ns"] for s in timed)
    first = next((i for i, s in enumerate(r["solutions"])
                  if s["time_ns"] and s["time_ns"] <= 1.03 * best), None)
    error = sorted(abs(s["predicted_ns"] / s["time_ns"] - 1) for s in timed)
    return (first, correlation([(s["predicted_ns"], s["time_ns"]) for s in timed]),
            error[len(error) // 2], len(timed))


def scripts():
    """Name, path, instances, of all."""
    examples = os.path.join(here, "..", "examples", "fusion")
    for name in VECTORS:
        yield name, os.path.join(examples, name + ".fws"), N
    for name in ROWS:
        yield name, os.path.join(examples, name + ".fws"), M
    yield "paper", os.path.join(examples, "paper.fws"), T if small else 4 * T
    for path in sorted(glob.glob(os.path.join(here, "fusion", "*.fws"))):
        name = os.path.basename(path)[:-4]
        flat = "MATRIX" not in open(path).read()
        yield name, path, N // 4 if flat else T


def rivals(rows):
    """What fusion_rivals.py says; RIVALS names a file in which it was kept."""
    if "RIVALS" in os.environ:
        text = open(os.environ["RIVALS"]).read()
    else:
        text = subprocess.run([sys.executable, os.path.join(here, "fusion_rivals.py"),
                               *(f"{name}={n}" for name, n in rows)],
                              capture_output=True, text=True).stdout
    return {r["name"]: r for r in map(json.loads, text.splitlines())}


PIPELINES = ["blur", "srad", "harris"]
COVER_TRIALS = "3t" if small else "60t"


def covers(path, sizes):
    """The covers of a program's space, and their times, as predicted by its order."""
    text = subprocess.run([forewarp, "fuse", path, "-s", sizes, "-n", "12", "--json", "-"],
                          capture_output=True, text=True, check=True).stdout
    return [(c["cover"], c["predicted_ns"]) for c in json.loads(text)["covers"]]


def tune_cover(folder, name, path, sizes, cover):
    out = os.path.join(folder, name + ".json")
    done = subprocess.run(
        [forewarp, "tune", path, "-s", sizes, "-d", device, "-q", "--budget", COVER_TRIALS,
         "--where", f"cover == '{cover}'", "--store", folder + "/trials.db", "--json", out,
         "-o", folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"{name} {cover}: {done.stderr.strip()[-300:]}", flush=True)
        return None
    with open(out) as file:
        return json.load(file)


def pipelines(folder):
    """True if one could not be tuned."""
    failed, side = False, 61 if small else 8192
    sizes = f"N={side},M={side}"
    for name in PIPELINES:
        if wanted and name not in wanted:
            continue
        path = os.path.join(here, "..", "examples", name + ".fw")
        timed = []
        print(f"\n{name} {sizes}\n{'predicted us':>12} {'time us':>9} {'GB/s':>7} {'of copy':>7}"
              "  cover, point", flush=True)
        for cover, predicted in covers(path, sizes):
            r = tune_cover(folder, name, path, sizes, cover)
            ns = r and r["best"]["time_ns"]
            failed = failed or not ns
            if not ns:
                continue
            timed.append((predicted, ns))
            bytes_ = 8 * side * side  # read once, written once
            copy = f"{100 * r['copy_ns'] / ns:6.1f}%" if r["copy_ns"] else f"{'-':>7}"
            print(f"{predicted / 1e3:12.1f} {ns / 1e3:9.1f} {bytes_ / ns:7.0f} {copy}  {cover}  "
                  f"{r['best']['point']}", flush=True)
        if timed:
            best = min(ns for _, ns in timed)
            rank = next(i for i, (_, ns) in enumerate(timed) if ns <= 1.03 * best)
            print(f"first within 3 %: {rank + 1} of {len(timed)}, correlation "
                  f"{correlation(timed):.2f}, {max(ns for _, ns in timed) / best:.2f}x from the "
                  "slowest cover", flush=True)
    return failed


def main(folder):
    only = wanted and not set(wanted) - set(PIPELINES)
    failed = False if only else scripts_of(folder)
    return pipelines(folder) or failed


def scripts_of(folder):
    kept, failed = [], False
    chosen = [s for s in scripts() if not wanted or s[0] in wanted]
    chosen.sort(key=lambda s: wanted.index(s[0]) if wanted else 0)
    others = {} if small else rivals([(name, n) for name, _, n in chosen
                                      if name in VECTORS + ROWS + ["paper"]])
    print(f"{'script':10} {'instances':>9} {'time us':>9} {'GB/s':>7} {'of copy':>7} "
          f"{'unfused':>8} {'cuBLAS':>8} {'compile':>8}  solution", flush=True)
    for name, path, instances in chosen:
        r = tune(folder, name, path, instances, RANKED, RANDOM)
        failed = failed or not r
        if not r:
            continue
        ns, rival = r["best"]["time_ns"], others.get(name, {})
        ratio = [f"{ns / 1e3 and v * 1e3 / ns:7.2f}x" if (v := rival.get(k)) else f"{'-':>8}"
                 for k in ("eager", "compile")]
        apart = f"{r['unfused_ns'] / ns:7.2f}x" if r["unfused_ns"] else f"{'-':>8}"
        passes = PASSES.get(name, 1)
        print(f"{name:10} {instances:9} {ns / 1e3:9.1f} {passes * r['bytes'] / ns:7.0f} "
              f"{100 * passes * r['copy_ns'] / ns:6.1f}% {apart} {ratio[0]} {ratio[1]}  "
              f"{r['best']['solution']}", flush=True)
        kept.append((name, *judge(r)))
    print(f"\n{'script':10} {'first within 3 %':>16} {'correlation':>11} {'median error':>12} "
          f"{'timed':>5}")
    for name, first, rho, error, timed in kept:
        print(f"{name:10} {'none' if first is None else first + 1:>16} {rho:11.2f} "
              f"{100 * error:11.0f}% {timed:5}")
    among = sum(first is not None and first < 5 for _, first, _, _, _ in kept)
    rhos = sorted(rho for _, _, rho, _, _ in kept)
    print(f"{among} of {len(kept)} within 3 % among the first five; correlation at least 0.9 "
          f"on {sum(rho >= 0.9 for rho in rhos)}, median {rhos[len(rhos) // 2]:.2f}")
    return failed


if __name__ == "__main__":
    if "OUT" in os.environ:
        sys.exit(main(os.environ["OUT"]))
    with tempfile.TemporaryDirectory() as temp:
        sys.exit(main(temp))
