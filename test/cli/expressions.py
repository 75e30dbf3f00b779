"""Constraints as Python writes them: how many points of a space hold, by forewarp and by Python's own eval."""
import itertools
import json
import math
import os
import random
import subprocess
import sys

PARAMETERS = {"bx": [1, 2, 3, 8, 16, 33], "by": [1, 2, 4, 5], "f": [0.5, 1.0, 2.5], "w": ["on", "off"], "z": [0, 1]}
WRITTEN = """
bx * by <= 32 if z else bx > 2
(bx if z == 0 else by) % 2 == 0
(1 if f > 1 else 2 if f < 1 else 3) != 2
bx & 1 == 1
(bx & by) == 1 or bx ^ by == 3
bx | 1 in (3, 9)
(bx << by) >> 1 < 40
~bx + 9 > 0
abs(bx - by * 2) < 3
int(f) + int(-f) == 0
round(f) == 2 or round(bx / 2) % 2 == 0
math.ceil(bx / by) * by - bx < 2
ceil(f) - floor(f) == 1
sqrt(bx) == int(sqrt(bx))
math.log2(bx) == int(math.log2(bx))
pow(by, 2) < bx
len([bx, by, z]) == 3 and z
sum([bx, by, z]) < 10
sum((bx, by)) % 2
any([bx == 3, by == 5])
all((bx > 2, by > 2, z))
max([bx, by]) <= 8
min((bx, by)) > 1
max(bx, by, 4) == 4
min((bx + 1) * 2, by) == 4
bx in {1, 3, 16}
by not in [2, 4]
bx in range(1, 17, 3)
by in range(5)
w is 'on'
w is not 'on'
w == "on" and z is 1 or f == 2.5
(z == True) != (w in ("off",))
all(bx % k == 0 for k in (1, 2, 4))
any(bx == k * by for k in range(1, 9))
sum(k for k in [bx, by] if k > 2) > 5
sum([k * k for k in (bx, by, z)]) < 100
len([k for k in (1, 2, 3)]) == 3 or z
max([k + by for k in (1, z)]) > 4
all(bx * k < 100 for k in (by, 4) if k > 3)
lambda bx, by: bx * by <= 16
lambda p: p["bx"] * p['by'] <= 16 and p["w"] == "on"
lambda p: max(p["bx"], 4) in (4, 8)
not (bx > 4) and bx == by == 1
1 < bx <= 16 > by
not z
bool(z) and float(bx) / by > 1
-bx // 3 == -1 or -bx % 3 == 0
bx % f == 0
(z or by) * 2 < 9
(bx and by) == 4 or -(z and bx) < -2
max(z or bx, by) < 8
(bx if z or f > 1 else z and by) % 2
bx in list(range(1, 20, 5)) + [8]
bx in set([1, 3]) or by in tuple([1, 2]) + (5,)
len({bx, by}) == 2 and len(set([z, 1, bx])) < 3
math.log(bx, 2) == int(math.log(bx, 2))
any(x in (bx, by) for x in sorted([3, 5]))
bx / z > 1 if z else True
2 ** by > bx and -2 ** 2 < 0
"""


def scope(values):
    names = dict(zip(PARAMETERS, values), math=math, **{n: getattr(math, n) for n in ("ceil", "floor", "sqrt", "log2")})
    return names


def count(text):
    n = 0
    for values in itertools.product(*PARAMETERS.values()):
        names = scope(values)
        if text.startswith("lambda p"):
            value = eval(text, names)(dict(zip(PARAMETERS, values)))
        elif text.startswith("lambda"):
            value = eval(text, names)(names["bx"], names["by"])
        else:
            value = eval(text, names)
        n += bool(value)
    return n


def ours(text, folder):
    path = os.path.join(folder, "expression.json")
    with open(path, "w") as file:
        json.dump({"files": "expression.cl", "parameters": PARAMETERS, "constraints": [text],
                   "arguments": [{"name": "x", "type": "int", "shape": 1, "access": "out"}],
                   "launch": {"kernel": "k", "global": 1, "local": 1}}, file)
    done = subprocess.run([os.environ["FOREWARP"], "check", path, "--json", "-"], capture_output=True, text=True)
    if "no point satisfies" in done.stderr:
        return 0
    return json.loads(done.stdout)["points"] if done.returncode == 0 else done.stderr


def expression(rng, depth):
    """A random expression of whole numbers."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(["bx", "by", "z", "bx", "by", str(rng.randint(1, 9))])
    e = lambda: expression(rng, depth - 1)
    return rng.choice([
        lambda: f"({e()} {rng.choice(['+', '-', '*', '&', '|', '^'])} {e()})",
        lambda: f"({e()} if {test(rng, depth - 1)} else {e()})",
        lambda: f"({e()} // {rng.randint(1, 7)})", lambda: f"({e()} % {rng.randint(2, 7)})",
        lambda: f"abs({e()})", lambda: f"{rng.choice(['min', 'max'])}({e()}, {e()})",
        lambda: f"sum([{e()}, {e()}])", lambda: f"round({e()} / 2)", lambda: f"ceil({e()} / 3)",
        lambda: f"({e()} << {rng.randint(0, 3)})", lambda: f"~{e()}", lambda: f"int({e()} / 4)"])()


def test(rng, depth):
    e = lambda: expression(rng, depth)
    return rng.choice([
        lambda: f"{e()} {rng.choice(['<', '<=', '==', '!=', '>', '>='])} {e()}",
        lambda: f"{e()} in ({e()}, {e()})", lambda: f"any(k == {e()} for k in range({rng.randint(1, 6)}))",
        lambda: f"not {e()} < {e()}", lambda: f"w == 'on' or {e()} > 4", lambda: f"{e()} < {e()} <= {e()}"])()


def main():
    folder, n = sys.argv[1], int(sys.argv[2])
    with open(os.path.join(folder, "expression.cl"), "w") as file:
        file.write("kernel void k(global int *x) { x[0] = 1; }\n")
    rng = random.Random(int(os.environ.get("SEED", "1")))
    texts = [text for text in WRITTEN.splitlines() if text] + [test(rng, 3) for _ in range(n)]
    wrong = 0
    for text in texts:
        want, got = count(text), ours(text, folder)
        if want != got:
            wrong += 1
            print(f"{text}: {got}, Python has {want}")
    print(f"{len(texts)} expressions, {wrong} wrong")
    sys.exit(wrong > 0)


main()
