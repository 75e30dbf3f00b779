# SPDX-License-Identifier: Apache-2.0
"""Random scripts of calls (.fws) against NumPy.

    scripts.py FOREWARP FOLDER SEED COUNT [DEVICE[=TRIALS]...]

Draws COUNT scripts: graphs of 3 to 12 calls over scalars, vectors and matrices, per instance
and the same for all, of definitions that use sizes and of functions of the library. Names are those that generated kernels have themselves, lengths are
odd, values are taken twice by a call or used by none, and outputs are returned in any order.
Each runs on every DEVICE (host, opencl:0) at the plain point, and must give what NumPy does, in
the order of `return`; TRIALS points drawn at random besides must agree with the reference.

Prints `ok NAME`, `not ok NAME` with the script and what was wrong.
"""
import json
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True  # beside the sources
from arrays import np  # noqa: E402

# Names of generated kernels and host programs, and words of their languages.
NAMES = """n i N t lane warp x get_global_id kernel global local private float4_ int_ char_ long_
unsigned signed for while do return_ static inline restrict volatile struct union sm lid base
block step inst on k r c s m p q w0 s0 t0 s1 x_x g_x u_x a_x p_x part_x in out in_ out_ from to
left words threads threadIdx blockIdx blockDim __shared__ __global__ __syncthreads barrier
fw_load fw_store fw_load4 fw_get4 main queue stream buffer self arg error I NULL R d e half_
get_local_id fmin fmax native_exp M_PI printf memcpy lid_ y_x v first fours k0 void_ default
switch case goto sizeof typedef const extern register auto break continue enum y z u1_x all
word float_ reference reference0 main_k0 errno stdin assert u32 uchar_ size_t ptrdiff_t bool_
cl_mem CUstream bytes scratch caller ok free malloc""".split()
TAKEN = set("""bool int half float double type input uniform return function def fun size sum
threads flops let in if then else true false generic min max abs sqrt rsqrt exp log pow sin cos
tan tanh erf floor ceil fma map zip reduce scan transpose split join slide pad array iterate
gather scatter take drop rotate reverse T constant clamp mirror wrap""".split())
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 31, 33, 64, 65, 68, 96, 130, 132]


class Refused(Exception):
    """The script cannot have such a call."""


class Draw:
    """A script that is being drawn: its text, and what each value is."""

    def __init__(self, seed, index):
        self.rng = random.Random(f"{seed}/{index}")
        self.numbers = np.random.default_rng(self.rng.randrange(2**32))
        self.names = [w for w in NAMES if w not in TAKEN]
        self.rng.shuffle(self.names)
        self.count = self.rng.choice([1, 3, 17, 37, 64, 101])
        self.defs, self.calls, self.values = [], [], []
        self.serial, self.unnamed, self.written = 0, 0, {}
        self.types, self.declared = {}, {}
        self.sizes = {}
        for _ in range(self.rng.randint(1, 4)):
            self.sizes[self.name()] = self.rng.choice(LENGTHS)
        self.given = {s: v for s, v in self.sizes.items() if self.rng.random() < 0.4}
        self.open = [self.name()] if self.rng.random() < 0.5 else []

    def name(self):
        """One that is new; the same words are variables, sizes and parameters."""
        if self.names and self.rng.random() < 0.8:
            return self.names.pop()
        self.unnamed += 1
        return f"v{self.unnamed}"

    def size(self):
        """A size, and its value."""
        return self.rng.choice(list(self.sizes.items()))

    def length(self, value):
        """A length of a type: a size of that value, or the number; the same in all of a definition."""
        same = [s for s, v in self.sizes.items() if v == value]
        return self.written.setdefault(value, self.rng.choice(same + [str(value)]))

    def type(self, shape):
        """A name of the type of a shape, which is declared."""
        if shape not in self.types:
            self.types[shape] = f"TYPE{len(self.types)}"
        return self.types[shape]

    def text_type(self, shape):
        return "".join(f"[{self.length(n)}]" for n in shape) + "float"

    def params(self, count):
        """Names of parameters of a definition: any but sizes, also those of variables."""
        words = [w for w in NAMES if w not in TAKEN and w not in self.sizes]
        words = [w for w in words if w not in self.open]
        return self.rng.sample(words, count)


def squash(a):
    return a / (1 + np.abs(a))


def pointwise(draw, w):
    """An expression of one float w, and what it is."""
    size, value = draw.size()
    return draw.rng.choice(
        [
            (f"{w} / (1.0 + abs({w}))", squash),
            (f"tanh({w}) - float({size}) / float({size} + 3)", lambda a: np.tanh(a) - value / (value + 3)),
            (f"{w} * 0.5 + float(({size} - 7) / 2) / 64.0", lambda a: a * 0.5 + ((value - 7) // 2) / 64),
            (f"if {w} > 0.0 then {w} else 0.25 * {w}", lambda a: np.where(a > 0, a, 0.25 * a)),
            (f"min({w}, float(min({size}, 2)))", lambda a: np.minimum(a, min(value, 2))),
            (f"max({w}, -1e-1) - 0.5", lambda a: np.maximum(a, -0.1) - 0.5),
            (f"let square = {w} * {w} in square / (1.0 + square)", lambda a: a * a / (1 + a * a)),
            (f"-(-{w}) * rsqrt(float({size}))", lambda a: a / np.sqrt(value)),
            (f"helper({w}) - helper({w} - 1.0)", lambda a: helper(a, draw) - helper(a - 1, draw)),
            (f"{w} / sqrt({size}) - {w}", lambda a: a / np.sqrt(value) - a),
        ]
    )


def helper(a, draw):
    return np.abs(a) / draw.helper_value


def some_value(draw, test=lambda shape: True):
    found = [v for v in draw.values if test(v["shape"])]
    if not found:
        raise Refused
    return draw.rng.choice(found)


def add_def(draw, params, shapes, result, body):
    """A definition, whose name is returned."""
    draw.serial += 1
    name = f"f{draw.serial}"
    typed = ", ".join(f"{p}: {draw.text_type(s)}" for p, s in zip(params, shapes))
    said = f": {draw.text_type(result)}" if draw.rng.random() < 0.7 else ""
    draw.defs.append(f"def {name}({typed}){said} = {body};")
    return name


def call_unary(draw):
    v = some_value(draw)
    (p,) = draw.params(1)
    dims = len(v["shape"])
    text, f = pointwise(draw, "w_" if dims else p)
    body = f"{p} |> map{dims if dims > 1 else ''}(\\w_ -> {text})" if dims else text
    return add_def(draw, [p], [v["shape"]], v["shape"], body), [v], v["shape"], f


def call_binary(draw):
    v = some_value(draw)
    w = some_value(draw, lambda s: s == v["shape"])
    a, b = draw.params(2)
    dims = len(v["shape"])
    size, value = draw.size()
    kind = draw.rng.randrange(3)
    what = ["{0} * {1} - {0}", "({0} + {1}) / float(%s + 1)" % size, "min({0}, {1}) + 0.5 * max({1}, {0})"][kind]
    f = [lambda x, y: x * y - x, lambda x, y: (x + y) / (value + 1), lambda x, y: np.minimum(x, y) + 0.5 * np.maximum(x, y)][kind]
    if dims:
        d = dims if dims > 1 else ""
        body = f"zip{d}({a}, {b}) |> map{d}(\\w_ -> {what.format('w_.0', 'w_.1')})"
    else:
        body = what.format(a, b)
    return add_def(draw, [a, b], [v["shape"]] * 2, v["shape"], body), [v, w], v["shape"], f


def call_scaled(draw):
    v, s = some_value(draw, len), some_value(draw, lambda shape: not shape)
    a, b = draw.params(2)
    d = len(v["shape"]) if len(v["shape"]) > 1 else ""
    body = f"{b} |> map{d}(\\w_ -> {a} * w_ / (1.0 + abs({a})))"
    return add_def(draw, [a, b], [(), v["shape"]], v["shape"], body), [s, v], v["shape"], lambda x, y: squash(x) * y


def call_reduced(draw):
    v = some_value(draw, lambda s: len(s) == 1)
    (p,) = draw.params(1)
    n = v["shape"][0]
    kind = draw.rng.randrange(3)
    length = draw.length(n)
    body = [
        f"({p} |> reduce(\\m_ w_ -> m_ + w_ * w_, 0)) / float({length})",
        f"{p} |> reduce(\\m_ w_ -> max(m_, w_), -100.0)",
        f"(map(\\w_ -> w_ - 0.5, {p}) |> reduce(\\m_ w_ -> m_ + w_, 0)) / float({length} + 0)",
    ][kind]
    f = [lambda x: np.mean(x * x), lambda x: max(np.max(x), -100), lambda x: np.mean(x - 0.5)][kind]
    return add_def(draw, [p], [v["shape"]], (), body), [v], (), f


def call_open(draw):
    """Of any length, which is a size that only calls say."""
    if not draw.open:
        raise Refused
    v = some_value(draw, lambda s: len(s) == 1)
    (p,), length = draw.params(1), draw.open[0]
    size, value = draw.size()
    draw.serial += 1
    name = f"f{draw.serial}"
    body = f"array({length}, \\j_ -> {p}[{length} - 1 - j_] * float(j_ % {size}) / float({length} * {size}))"
    draw.defs.append(f"def {name}({p}: [{length}]float): [{length}]float = {body};")
    n = v["shape"][0]
    return name, [v], v["shape"], lambda x: x[::-1] * (np.arange(n) % value) / (n * value)


def call_matrix(draw):
    v = some_value(draw, lambda s: len(s) == 2)
    rows, columns = v["shape"]
    a, b = draw.params(2)
    kind = draw.rng.randrange(5)
    if kind == 0:
        return add_def(draw, [a], [v["shape"]], (columns, rows), f"transpose({a})"), [v], (columns, rows), np.transpose
    if kind == 1:
        body = f"{a} |> map(\\r_ -> (r_ |> reduce(\\m_ w_ -> m_ + w_, 0)) / float({draw.length(columns)}))"
        return add_def(draw, [a], [v["shape"]], (rows,), body), [v], (rows,), lambda x: np.mean(x, axis=1)
    if kind == 2:
        if rows * columns > 400:
            raise Refused
        draw.written = {n: str(n) for n in (rows, columns, rows * columns)}
        return add_def(draw, [a], [v["shape"]], (rows * columns,), f"join({a})"), [v], (rows * columns,), lambda x: x.reshape(-1)
    if kind == 3:
        body = f"array({draw.length(rows)}, \\j_ -> {a}[j_][{draw.length(columns)} - 1])"
        return add_def(draw, [a], [v["shape"]], (rows,), body), [v], (rows,), lambda x: x[:, -1]
    w = some_value(draw, lambda s: s == (columns,))
    body = f"{a} |> map(\\r_ -> (zip(r_, {b}) |> reduce(\\m_ w_ -> m_ + w_.0 * w_.1, 0)) / float({draw.length(columns)}))"
    return add_def(draw, [a, b], [v["shape"], (columns,)], (rows,), body), [v, w], (rows,), lambda x, y: x @ y / columns


def call_product(draw):
    v = some_value(draw, lambda s: len(s) == 2)
    w = some_value(draw, lambda s: len(s) == 2 and s[0] == v["shape"][1])
    inner, result = v["shape"][1], (v["shape"][0], w["shape"][1])
    if result[0] * result[1] * inner > 8000:
        raise Refused
    a, b = draw.params(2)
    body = f"{a} |> map(\\r_ -> transpose({b}) |> map(\\c_ -> (zip(r_, c_) |> reduce(\\m_ w_ -> m_ + w_.0 * w_.1, 0)) / float({draw.length(inner)})))"
    return add_def(draw, [a, b], [v["shape"], w["shape"]], result, body), [v, w], result, lambda x, y: x @ y / inner


def call_outer(draw):
    v, w = (some_value(draw, lambda s: len(s) == 1) for _ in range(2))
    result = (v["shape"][0], w["shape"][0])
    if result[0] * result[1] > 400:
        raise Refused
    a, b = draw.params(2)
    body = f"array({draw.length(result[0])}, \\j_ -> array({draw.length(result[1])}, \\k_ -> {a}[j_] * {b}[k_]))"
    return add_def(draw, [a, b], [v["shape"], w["shape"]], result, body), [v, w], result, np.outer


def call_ramp(draw):
    """An array as long as a size, of a scalar."""
    v = some_value(draw, lambda s: not s)
    size, value = draw.size()
    (p,) = draw.params(1)
    draw.written[value] = size
    body = f"array({size}, \\j_ -> {p} * float(j_ - {size} / 2) / float({size}))"
    return add_def(draw, [p], [()], (value,), body), [v], (value,), lambda x: x * (np.arange(value) - value // 2) / value


def call_split(draw):
    v = some_value(draw, lambda s: len(s) == 1 and s[0] > 3)
    n = v["shape"][0]
    parts = [d for d in range(2, n) if n % d == 0]
    if not parts:
        raise Refused
    part = draw.rng.choice(parts)
    draw.written = {m: str(m) for m in (n, part, n // part)}
    (p,) = draw.params(1)
    return add_def(draw, [p], [v["shape"]], (n // part, part), f"split({draw.length(part)}, {p})"), [v], (n // part, part), lambda x: x.reshape(-1, part)


def call_window(draw):
    """Sums of neighbours, with each border that there is."""
    v = some_value(draw, lambda s: len(s) == 1)
    n = v["shape"][0]
    (p,) = draw.params(1)
    mode, numpy_mode = draw.rng.choice([("clamp", "edge"), ("wrap", "wrap"), ("mirror", "symmetric"), ("0.0", "constant")])
    body = f"{p} |> pad(1, 1, {mode}) |> slide(3, 1) |> map(\\r_ -> (r_ |> reduce(\\m_ w_ -> m_ + w_, 0)) / 3.0)"
    return add_def(draw, [p], [v["shape"]], (n,), body), [v], (n,), lambda x: np.convolve(np.pad(x, 1, mode=numpy_mode), np.ones(3), "valid") / 3


def call_folded(draw):
    """Two folds in one, of a tuple."""
    v = some_value(draw, lambda s: len(s) == 1)
    (p,) = draw.params(1)
    fold = f"{p} |> reduce(\\m_ w_ -> (m_.0 + w_, max(m_.1, w_)), (0.0, -100.0))"
    body = f"let both_ = {fold} in both_.1 - both_.0 / float({draw.length(v['shape'][0])})"
    return add_def(draw, [p], [v["shape"]], (), body), [v], (), lambda x: max(np.max(x), -100) - np.mean(x)


def call_library(draw):
    v = some_value(draw, lambda s: len(s) == 1)
    w = some_value(draw, lambda s: s == v["shape"])
    s = some_value(draw, lambda shape: not shape)
    kind = draw.rng.randrange(4)
    if kind == 0:
        return "nrm2", [v], (), lambda x: np.sqrt(np.sum(x * x))
    if kind == 1:
        return "axpyrow", [s, v, w], v["shape"], lambda a, x, y: a * x + y
    if kind == 2:
        return "addrow", [v, w], v["shape"], lambda x, y: x + y
    return "rank1row", [v, s, w], v["shape"], lambda x, a, y: x + a * y


def call_sum(draw):
    found = [v for v in draw.values if not v["uniform"] and len(v["shape"]) < 3]
    if not found:
        raise Refused
    v = draw.rng.choice(found)
    return "sum", [v], v["shape"], None


CALLS = [call_unary, call_unary, call_binary, call_binary, call_scaled, call_reduced, call_open, call_matrix, call_matrix]
CALLS += [call_product, call_outer, call_ramp, call_split, call_window, call_folded, call_library, call_library, call_sum]


def add_value(draw, shape, uniform, value):
    v = {"name": draw.name(), "shape": shape, "uniform": uniform, "value": value}
    draw.values.append(v)
    draw.declared.setdefault(draw.type(shape), []).append(v["name"])
    return v


def add_inputs(draw):
    lengths = list(draw.sizes.values()) + [draw.rng.choice(LENGTHS[:9])]
    for i in range(draw.rng.randint(2, 5)):
        dims = [0, 1, 1, 2][draw.rng.randrange(4)] if i else 1
        shape = tuple(draw.rng.choice(lengths) for _ in range(dims))
        while np.prod(shape) > 400:
            shape = shape[1:]
        uniform = i > 0 and draw.rng.random() < 0.3
        full = shape if uniform else (draw.count,) + shape
        add_value(draw, shape, uniform, draw.numbers.uniform(-1, 1, full).astype("f4"))
    draw.inputs = list(draw.values)


def compute(draw, f, args):
    if f is None:
        return args[0]["value"].astype("f8").sum(axis=0)
    at = lambda t: f(*(a["value"].astype("f8") if a["uniform"] else a["value"][t].astype("f8") for a in args))
    if all(a["uniform"] for a in args):
        return np.asarray(at(0))
    return np.stack([np.asarray(at(t)) for t in range(draw.count)])


def add_call(draw):
    """One call of any kind; values stay small, so that sums of them are exact enough."""
    draw.written = {}
    name, args, shape, f = draw.rng.choice(CALLS)(draw)
    value = compute(draw, f, args)
    if np.abs(value).max() > 500:
        raise Refused
    uniform = f is None or all(a["uniform"] for a in args)
    v = add_value(draw, shape, uniform, value)
    draw.calls.append(f"{v['name']} = {name}({', '.join(a['name'] for a in args)});")


def draw_script(seed, index):
    draw = Draw(seed, index)
    add_inputs(draw)
    size, draw.helper_value = draw.size()
    draw.defs.append(f"def helper(w: float): float = abs(w) / float({size});")
    wanted, tries = draw.rng.randint(3, 12), 0
    while len(draw.calls) < wanted and tries < 300:
        tries += 1
        try:
            add_call(draw)
        except Refused:
            pass
    made = draw.values[len(draw.inputs) :]
    draw.outputs = draw.rng.sample(made, draw.rng.randint(1, min(len(made), 5)))
    return draw


def script_text(draw):
    sizes = [f"{s} = {v + 1 if s in draw.given else v}" for s, v in draw.sizes.items()] + draw.open
    draw.rng.shuffle(sizes)
    lines = [f"size {', '.join(sizes)};"] if draw.rng.random() < 0.5 else [f"size {s};" for s in sizes]
    draw.written = {}
    lines += [f"type {name} = {draw.text_type(shape)};" for shape, name in draw.types.items()]
    lines += draw.defs
    lines += [f"{kind} {', '.join(names)};" for kind, names in draw.declared.items()]
    for word, uniform in ("input", False), ("uniform", True):
        names = [v["name"] for v in draw.inputs if v["uniform"] == uniform]
        lines += [f"{word} {', '.join(names)};"] if names else []
    draw.rng.shuffle(draw.calls)
    lines += draw.calls + [f"return {', '.join(v['name'] for v in draw.outputs)};"]
    return "\n".join(lines) + "\n"


# Running ---------------------------------------------------------------------------------


def forewarp(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


def check_outputs(draw, files):
    for v, file in zip(draw.outputs, files):
        got, want = np.load(file), v["value"]
        if got.shape != want.shape:
            return f"{v['name']} has shape {got.shape}, not {want.shape}"
        error = np.abs(got - want) / (1 + np.abs(want))
        if not error.max() < 5e-4:
            at = np.unravel_index(np.nanargmax(error), error.shape) if error.shape else ()
            return f"{v['name']}{list(at)} is {got[at]}, not {want[at]}"
    return None


def run_script(program, folder, draw, path, device, trials):
    """What is wrong; None: nothing."""
    sizes = ",".join([f"T={draw.count}"] + [f"{s}={v}" for s, v in draw.given.items()])
    common = [path, "-s", sizes, "-d", device]
    words, files = [], []
    for i, v in enumerate(draw.inputs):
        np.save(f"{folder}/in{i}.npy", v["value"])
        words += ["--in", f"{v['name']}={folder}/in{i}.npy"]
    for i, _ in enumerate(draw.outputs):
        files.append(f"{folder}/out{i}.npy")
        words += ["-o", files[-1]]
    status, said = forewarp(program, "run", *common, *words)
    wrong = said if status else check_outputs(draw, files)
    if wrong or not trials:
        return wrong
    store, result = f"{folder}/store.db", f"{folder}/tune.json"
    if os.path.exists(store):
        os.remove(store)
    status, said = forewarp(program, "tune", *common, "-q", "--strategy", "random", "--budget", f"{trials}t",
                            "--seed", "5", "--store", store, "-o", f"{folder}/out", "--json", result)  # fmt: skip
    if status:
        return f"tune: {said}"
    with open(result, encoding="utf-8") as file:
        counts = json.load(file)["trials"]
    bad = {s: n for s, n in counts.items() if n and s != "ok"}
    return f"points at random: {bad}" if bad else None


def main():
    program, folder, seed, count = sys.argv[1:5]
    devices = [word.partition("=") for word in sys.argv[5:]] or [("host", "", "")]
    first, _, last = count.partition("-")
    numbers = range(int(first), int(last) + 1) if last else range(int(first))
    failed = False
    for index in numbers:
        draw = draw_script(seed, index)
        text, path = script_text(draw), f"{folder}/script{index}.fws"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        for device, _, trials in devices:
            wrong = run_script(program, folder, draw, path, device, int(trials or 0))
            print(f"{'not ok' if wrong else 'ok'} script {index} of seed {seed} on {device}", flush=True)
            if wrong:
                failed = True
                print("\n".join("    " + line for line in (wrong + "\n" + text).splitlines()), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
