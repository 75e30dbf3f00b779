#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A random script of many calls.

    graphs.py SHAPE CALLS SEED

SHAPE: chain (each call uses the one before), dense (two of the last six and of all values), wide
(all calls use one input, and all are results). Values stay near their inputs however long
the way is, so that results can be compared.
"""
import random
import sys


def arguments(rng, shape, values):
    if shape == "chain":
        return [values[-1], "x1"]
    if shape == "dense":
        return [rng.choice(values[-6:]), rng.choice(values)]
    return ["x0", "x1"]


def main(shape, calls, seed):
    rng = random.Random(seed)
    inputs, lines, used = ["x0", "x1"], [], set()
    values = list(inputs)
    for i in range(calls):
        taken = arguments(rng, shape, values)
        used.update(taken)
        lines.append(f"y{i} = mix{rng.randrange(4) if shape != 'wide' else i}({', '.join(taken)});")
        values.append(f"y{i}")
    results = [v for v in values[2:] if v not in used]
    for k in range(calls if shape == "wide" else 4):
        print(f"def mix{k}(a: float, b: float): float = {1 / (k + 2)} * a + {1 - 1 / (k + 2)} * b;")
    print("SCALAR " + ", ".join(values) + "; input x0, x1;")
    print("\n".join(lines))
    print("return " + ", ".join(results) + ";")


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
