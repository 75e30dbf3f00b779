#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random graphs of many calls and pipelines of many stages against NumPy.

    large.py FOREWARP FOLDER SEED DEVICE KIND:NUMBER...

KIND: calls, a script of so many results of calls over scalars of three types, vectors, matrices and sums over all instances; stages, a program of
so many stages, each a window or a map of earlier ones. Each call or stage takes values that are near in half of the
cases, and any others else, so that graphs are chains in parts and dense in parts. `fuse` must end within
its steps with an answer, in which every call is in one kernel; `run` must give what NumPy does. Values stay near
their inputs however long the way is.

Prints `ok NAME`, or `not ok NAME` with what was wrong, the seed and the text.
"""
import json
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True  # beside the sources
from arrays import np  # noqa: E402

INSTANCES, ROWS, COLUMNS = 37, 19, 33
BORDERS = {"clamp": "edge", "mirror": "symmetric", "wrap": "wrap"}


def pick(rng, values):
    return rng.choice(values[-5:] if rng.random() < 0.5 else values)


# Scripts -------------------------------------------------------------------------------------------------------------

# Name, text, types of the arguments, types of the results, meaning over all instances (the first axis).
V, M = "[5]float", "[3][3]float"
CALLS = [
    ("mix", "def mix(a: float, b: float): float = 0.25 * a + 0.75 * b", "ss", "s", lambda a, b: 0.25 * a + 0.75 * b),
    ("most", "def most(a: float, b: float): float = max(a, b) * 0.5 + min(a, b) * 0.5 + (a - b) * 0.125", "ss", "s",
     lambda a, b: np.maximum(a, b) * 0.5 + np.minimum(a, b) * 0.5 + (a - b) * 0.125),
    ("turn", f"def turn(x: {V}, y: {V}): {V} = array(5, \\i -> 0.5 * x[4 - i] + 0.5 * y[i])", "vv", "v",
     lambda x, y: 0.5 * x[:, ::-1] + 0.5 * y),
    ("mean", f"def mean(x: {V}): float = 0.2 * (x |> reduce(+, 0))", "v", "s", lambda x: x.mean(1)),
    ("scaled", f"def scaled(a: float, x: {V}): {V} = x |> map(\\w -> 0.5 * (a + w))", "sv", "v",
     lambda a, x: 0.5 * (a[:, None] + x)),
    ("product", f"def product(a: {M}, b: {M}): {M} = a |> map(\\r -> transpose(b) |> map(\\c ->\n"
                "  (zip(r, c) |> reduce(\\s t -> s + t.0 * t.1, 0)) * 0.3))", "mm", "m", lambda a, b: 0.3 * (a @ b)),
    ("sides", f"def sides(a: {M}, s: float): {M} = transpose(a) |> map2(\\w -> 0.5 * w + 0.5 * s)", "ms", "m",
     lambda a, s: 0.5 * a.transpose(0, 2, 1) + 0.5 * s[:, None, None]),
    ("trace", f"def trace(a: {M}): float = (a[0][0] + a[1][1] + a[2][2]) * 0.3333", "m", "s",
     lambda a: (a[:, 0, 0] + a[:, 1, 1] + a[:, 2, 2]) * 0.3333),
    ("less", "def less(s: float, a: float): float = a - s * 0.01", "us", "s", lambda s, a: a - s * 0.01),
    ("count", "def count(i: int, j: int): int = (i * 3 + j) % 101", "ii", "i", lambda i, j: (i * 3 + j) % 101),
    ("weigh", "def weigh(i: int, a: float): float = 0.5 * a + float(i) * 0.005", "is", "s", lambda i, a: 0.5 * a + i * 0.005),
    ("wide", "def wide(d: double, a: float): double = 0.5 * d + 0.5 * double(a)", "ds", "d", lambda d, a: 0.5 * d + 0.5 * a),
    ("apart", f"def apart(x: {V}): (float, {V}) = let s = 0.2 * (x |> reduce(+, 0)) in (s, x |> map(\\w -> 0.5 * w + 0.5 * s))",
     "v", "sv", lambda x: (x.mean(1), 0.5 * x + 0.5 * x.mean(1, keepdims=True))),
    ("three", "def three(i: int, d: double) = (i % 7 + 3, 0.5 * d, float(d) * 0.5 + float(i) * 0.005)", "id", "ids",
     lambda i, d: (i % 7 + 3, 0.5 * d, d * 0.5 + i * 0.005)),
]
SHAPES = {"s": (), "v": (5,), "m": (3, 3), "i": (), "d": ()}
NAMES = {"s": "SCALAR", "v": "VECTOR5", "m": "MATRIX33", "i": "INT", "d": "DOUBLE"}
KINDS = {"i": np.int32, "d": float}  # float32 for all others


def script(rng, numbers, count):
    """Text, inputs by name, outputs in the order of `return`."""
    values = {kind: [] for kind in "svmidu"}
    known, used, lines, declared = {}, set(), [], {kind: [] for kind in NAMES}
    for i, kind in enumerate("ssvvmmiidd"):
        shape = (INSTANCES, *SHAPES[kind])
        known[f"in{i}"] = numbers.integers(0, 100, shape) if kind == "i" else numbers.random(shape, np.float32).astype(float)
        values[kind].append(f"in{i}")
        declared[kind].append(f"in{i}")
    inputs = {v: kind for kind in NAMES for v in values[kind]}
    while len(known) < len(inputs) + count:
        if rng.random() < 0.04:
            taken, made, name = [pick(rng, values["s"])], "u", "sum"
            found = known[taken[0]].sum(0)
        else:
            name, _, kinds, made, meaning = rng.choice([c for c in CALLS if "u" not in c[2] or values["u"]])
            taken = [pick(rng, values[k]) for k in kinds]
            found = meaning(*(known[v] for v in taken))
        out = [f"y{len(known) + i}" for i in range(len(made))]
        known.update(zip(out, found if len(out) > 1 else [found]))
        used.update(taken)
        for v, kind in zip(out, made):
            values[kind].append(v)
            declared["s" if kind == "u" else kind].append(v)
        lines.append(f"{', '.join(out)} = {name}({', '.join(taken)});")
    results = [v for v in known if v not in used and v not in inputs]
    rng.shuffle(results)
    given = [v for v in inputs if v in used]
    rng.shuffle(lines)
    names = {kind: [v for v in of if v not in inputs or v in given] for kind, of in declared.items()}
    text = "type INT = int;\ntype DOUBLE = double;\n" + "".join(text + ";\n" for _, text, *_ in CALLS)
    text += "".join(f"{NAMES[kind]} {', '.join(of)};\n" for kind, of in names.items() if of)
    text += f"input {', '.join(given)};\n" + "\n".join(lines) + f"\nreturn {', '.join(results)};\n"
    return text, {v: known[v].astype(KINDS.get(inputs[v], np.float32)) for v in given}, [known[v] for v in results]


# Pipelines -----------------------------------------------------------------------------------------------------------

def window(rng, x, name):
    """Text and value of three taps of a window around each point."""
    border, reach = rng.choice(list(BORDERS)), rng.choice([1, 1, 2])
    taps = [(rng.randrange(2 * reach + 1), rng.randrange(2 * reach + 1)) for _ in range(3)]
    padded = np.pad(x, reach, mode=BORDERS[border])
    value = sum(w * padded[r:r + ROWS, c:c + COLUMNS] for w, (r, c) in zip((0.5, 0.25, 0.25), taps))
    body = " + ".join(f"{w} * p[{r}][{c}]" for w, (r, c) in zip((0.5, 0.25, 0.25), taps))
    return f"{name} |> pad2({reach}, {reach}, {border}) |> slide2({2 * reach + 1}, 1) |> map2(\\p -> {body})", value


def pipeline(rng, numbers, count):
    known = {f"a{i}": numbers.random((ROWS, COLUMNS)).astype(np.float32).astype(float) for i in range(2)}
    inputs, used, lines = dict(known), set(), []
    for i in range(count):
        names = list(known)
        if rng.random() < 0.6:
            name = pick(rng, names)
            text, value = window(rng, known[name], name)
            used.add(name)
        else:
            x, y = pick(rng, names), pick(rng, names)
            text, value = f"zip2({x}, {y}) |> map2(\\t -> 0.5 * t.0 + 0.5 * max(t.0, t.1))", 0.5 * known[x] + 0.5 * np.maximum(known[x], known[y])
            used.update((x, y))
        known[f"s{i}"] = value
        lines.append(f"  let s{i} = {text} in\n")
    results = [v for v in known if v not in used and v not in inputs] or [f"s{count - 1}"]
    given = {v: x.astype(np.float32) for v, x in inputs.items() if v in used}
    text = f"size N, M\n\ndef pipeline({', '.join(given)}: [N][M]float) =\n" + "".join(lines)
    return text + f"  ({', '.join(results)})\n", given, [known[v] for v in results]


# Checks --------------------------------------------------------------------------------------------------------------

def call(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def fused(program, path, sizes, folder, count, of):
    status, said = call(program, "fuse", path, *([] if of == "calls" else ["-s", sizes]), "--json", f"{folder}/fuse.json")
    if status:
        return said
    with open(f"{folder}/fuse.json", encoding="utf-8") as file:
        found = json.load(file)
    calls = range(1, len(found[of]) + 1)
    if not found["covers"] or len(calls) > count + 2:  # a call makes up to three results
        return f"fuse: {len(found['covers'])} covers of {len(calls)} {of}"
    wrong = [c for c in found["covers"] if sorted(v for kernel in c["kernels"] for v in kernel) != list(calls)]
    least, cost = ("least_words", "words") if of == "calls" else ("least_ns", "predicted_ns")
    good = 0 < found[least] <= found["covers"][0][cost] * (1 + 1e-9)
    return f"fuse: not each once: {wrong[0]}" if wrong else None if good else "fuse: better than the least"


def ran(program, path, sizes, folder, device, inputs, outputs):
    words, files = [], [f"{folder}/out{i}.npy" for i in range(len(outputs))]
    for name, value in inputs.items():
        np.save(f"{folder}/{name}.npy", value)
        words += ["--in", f"{name}={folder}/{name}.npy"]
    status, said = call(program, "run", path, "-s", sizes, "-d", device, *words, *(w for f in files for w in ("-o", f)))
    if status:
        return said
    for i, (file, wanted) in enumerate(zip(files, outputs)):
        got = np.load(file).reshape(wanted.shape)
        off = np.abs(got - wanted) / np.maximum(np.abs(wanted), 0.1)
        if not off.max() < 1e-4:
            return f"output {i} is {off.max():.2g} off"
    return None


def main():
    program, folder, seed, device = sys.argv[1:5]
    failed = False
    for what in sys.argv[5:]:
        kind, _, count = what.partition(":")
        rng = random.Random(f"{seed}/{what}")
        draw = script if kind == "calls" else pipeline
        text, inputs, outputs = draw(rng, np.random.default_rng(rng.randrange(2**32)), int(count))
        path = os.path.join(folder, f"{kind}{count}.{'fws' if kind == 'calls' else 'fw'}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        sizes = f"T={INSTANCES}" if kind == "calls" else f"N={ROWS},M={COLUMNS}"
        wrong = fused(program, path, sizes, folder, int(count), kind) or ran(program, path, sizes, folder, device, inputs, outputs)
        print(f"{'not ok' if wrong else 'ok'} {count} {kind} of seed {seed} on {device}", flush=True)
        if wrong:
            failed = True
            print("\n".join("    " + line for line in (wrong + "\n" + text).splitlines()), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
