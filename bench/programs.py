# SPDX-License-Identifier: Apache-2.0
"""Random programs of the language by class, as a user would write them.

draw(seed, number, class) gives a Program: its text, odd sizes for a check against the
interpreter, and sizes that grow with a scale until the program moves as many bytes as wanted.
Each class is one function, which picks shapes, types, operations and ways to write them by a
generator that seed, number and class determine: the same three give the same program on every
machine. A program is well-typed by construction: each text is made for its shape, and no
expression is drawn whose type is not known. Values stay of moderate size (sums are weighted,
divisors are at least one), and no choice depends on a rounded value, so that a reference can
be compared with. Halves are summed as floats, as users do.
Nothing here runs a program or knows of a device.
"""
import itertools
import math
import random
import re

from indexed import indexed

MODES = ["clamp", "mirror", "wrap", "0"]
SMALL = {1: [5, 33, 67, 131, 257, 1023], 2: [5, 7, 9, 11, 17, 33], 3: [5, 7, 9, 11]}


class Size:
    """A size: its value in small checks, and at full size a weight or a fixed value."""

    def __init__(self, name, small, weight, fixed):
        self.name, self.small, self.weight, self.fixed = name, small, weight, fixed

    def full(self, scale, odd):
        if self.fixed is not None:
            return self.fixed
        value = max(1, int(self.weight * scale))
        step = 32 if value >= 128 else 1
        return max(5, value | 1) if odd else max(1, value // step * step)


class Program:
    """A drawn program. halves: it needs a device that has them."""

    def __init__(self, klass, seed, number, d):
        self.klass, self.seed, self.number = klass, seed, number
        self.name = d.defs[-1][0]
        self.sizes, self.odd, self.terms = d.sizes, d.odd, d.terms
        head = f"// {klass} {number} of seed {seed}: {d.note}\n"
        names = ", ".join(s.name for s in d.sizes)
        parts = [f"size {names}"] + d.funs + [text for _, text in d.defs]
        self.text = head + "\n\n".join(parts) + "\n"
        self.halves = re.search(r"\bhalf\b", self.text) is not None

    def small(self):
        return {s.name: s.small for s in self.sizes}

    def full(self, scale):
        return {s.name: s.full(scale, self.odd) for s in self.sizes}

    def operations(self, sizes):
        """Of a contraction, whose axes multiply; others are bound by what they move. (What a
        kernel does is no measure: it may compute much again.)"""
        return 2 * self.terms * math.prod(sizes.values()) if self.terms else 0


def sizes_text(sizes):
    return ",".join(f"{name}={value}" for name, value in sizes.items())


class Draw:
    """What one program is made of so far: sizes, funs, defs."""

    def __init__(self, rng):
        self.rng = rng
        self.sizes, self.funs, self.defs = [], [], []
        self.odd = rng.random() < 0.4
        self.note, self.terms = "", 0

    def pick(self, *options):
        return self.rng.choice(options)

    def often(self, share):
        return self.rng.random() < share

    def size(self, name, small, weight=1.0, fixed=None):
        self.sizes.append(Size(name, small, weight, fixed))
        return name

    def grid(self, rank):
        """Sizes N, M, K of a grid that grows along every axis, of some aspect."""
        aspect = self.pick([1, 1, 1], [1, 1, 1], [0.25, 4, 1], [8, 0.5, 1])
        small = SMALL[rank]
        return [self.size(n, self.rng.choice(small), w) for n, w in zip("NMK"[:rank], aspect)]

    def type(self, ints=0.12):
        if self.often(ints):
            return "int"
        return self.pick("float", "float", "float", "float", "double", "half")

    def fun(self, name, params, kind, body):
        name = self.free(name)
        self.funs.append(f"fun {name}({', '.join(params)}: {kind}): {kind} =\n  {body}")
        return name

    def free(self, name):
        taken = " ".join(self.funs) + " " + " ".join(n for n, _ in self.defs)
        numbered = (f"{name}{i}" for i in itertools.count(2))
        return next(n for n in itertools.chain([name], numbered)
                    if not re.search(rf"\b{n}\b", taken))

    def define(self, name, params, body):
        """A def; params are (name, type)."""
        name = self.free(name)
        text = ", ".join(f"{p}: {t}" for p, t in params)
        self.defs.append((name, f"def {name}({text}) =\n  {body}"))
        return name


# Scalars -------------------------------------------------------------------------------


def paren(e):
    """As an operand: in parentheses unless it is a name, a number, a call or an element."""
    if re.fullmatch(r"[\w.]+(\[\d+\])*|[a-z]\w*\([^()]*\)", e):
        return e
    return f"({e})"


def call(f, *arguments):
    return f"{f}({', '.join(arguments)})"


def unary(d, kind, x):
    p = paren(x)
    if kind == "int":
        return d.pick(f"{p} / 3", f"{p} % 17", f"abs({x})", f"min({x}, 100)", f"2 * {p} + 1",
                      f"if {p} % 2 == 0 then {p} / 2 else 3 * {p} + 1")
    return d.pick(f"max({x}, 0)", f"tanh({x})", f"exp(-abs({x}))", f"sqrt(abs({x}) + 1)",
                  f"{p} / (1 + abs({x}))", f"1 / (1 + exp(-{p}))", f"log(1 + {p} * {p})",
                  f"{p} * {p}", f"0.5 * {p}", f"if {p} > 0 then {x} else 0.125 * {p}",
                  f"min(max({x}, -1), 1)", f"sin({x})", f"{p} - 0.25", f"rsqrt({p} * {p} + 1)")


def binary(d, kind, x, y):
    p, q = paren(x), paren(y)
    if kind == "int":
        return d.pick(f"{p} + {q}", f"{p} - {q}", f"max({x}, {y})", f"min({x}, {y})",
                      f"({p} + 3 * {q}) % 1000", f"{p} % 8 * {q}")
    return d.pick(f"{p} + {q}", f"{p} - {q}", f"{p} * {q}", f"max({x}, {y})",
                  f"0.5 * ({p} + {q})", f"0.25 * {p} + {q}", f"{p} / (1 + {q} * {q})",
                  f"{p} + {q} * ({p} - {q})")


def mix(d, kind, names, more=0):
    """An expression that uses every name once or more, and `more` further operations."""
    terms = list(names)
    d.rng.shuffle(terms)
    terms += [d.rng.choice(names) for _ in range(more)]
    text = terms[0]
    for term in terms[1:]:
        if d.often(0.3) and len(text) < 120:
            text = unary(d, kind, text)
        text = binary(d, kind, text, term)
    return unary(d, kind, text) if d.often(0.6) or len(names) == 1 else text


def function(d, kind, n, name="f", more=None):
    """A fun of n scalars, of one or two lets at most; its name."""
    params = list("abcdefgh"[:n])
    more = d.rng.randint(0, 3) if more is None else more
    if n > 1 and d.often(0.3):
        inner = mix(d, kind, params, more)
        body = f"let u = {inner} in {mix(d, kind, ['u', d.rng.choice(params)])}"
    else:
        body = mix(d, kind, params, more)
    return d.fun(name, params, kind, body)


def activation(d, kind):
    name, body = d.pick(("relu", "max(x, 0)"), ("leaky", "if x > 0 then x else 0.125 * x"),
                        ("silu", "x / (1 + exp(-x))"), ("squash", "x / (1 + abs(x))"),
                        ("gelu", "0.5 * x * (1 + tanh(0.797885 * (x + 0.044715 * x * x * x)))"),
                        ("sigmoid", "1 / (1 + exp(-x))"))
    if kind == "int":
        name, body = "relu", "max(x, 0)"
    return d.fun(name, ["x"], kind, body)


# Arrays --------------------------------------------------------------------------------


def array(shape, kind):
    return "".join(f"[{n}]" for n in shape) + kind


def over(name, rank):
    """The form of a pattern for the outer dimensions: map, map2, map3."""
    return name if rank == 1 else f"{name}{rank}"


def zipped(names, rank=1):
    return names[0] if len(names) == 1 else f"{over('zip', rank)}({', '.join(names)})"


def sum_of(kind, value="x", tuples=False):
    """The arguments of a reduce that sums, in a type that can: of x, or an expression of it."""
    if value == "x" and kind != "half":
        return f"+, {zero(kind)}"
    if kind == "half":
        value = re.sub(r"\bx(\.\d)?(?![\w(])", lambda m: f"float({m.group()})", value)
    return f"\\s x -> s + {value}, {zero(kind)}"


def wide(kind):
    """What a sum of it is held in."""
    return "float" if kind == "half" else kind


def zero(kind):
    """Of that; of half with its type, since a literal would take that of the elements."""
    return {"int": "0", "half": "float(0)", "float": "0.0", "double": "double(0)"}[kind]


MOST = {"int": "1000000000", "half": "half(60000)", "float": "inf", "double": "double(1e30)"}
LEAST = {"int": "-1000000000", "half": "half(-60000)", "float": "-inf",
         "double": "double(-1e30)"}
NEUTRAL = {"max": LEAST, "min": MOST}


# Classes -------------------------------------------------------------------------------


def elementwise(d):
    rank = d.pick(1, 1, 2, 2, 3)
    shape, kind = d.grid(rank), d.type()
    names = ["x", "y", "z", "u", "v"][: d.rng.randint(1, 5)]
    params = [(n, array(shape, kind)) for n in names]
    scalars = [("alpha", kind)] if d.often(0.3) else []
    way = d.pick("plain", "plain", "stages", "outputs", "broadcast", "mask", "turned")
    d.note = f"{way}, {len(names)} of rank {rank}, {kind}"
    args = [s for s, _ in scalars]
    map_ = over("map", rank)
    if way == "broadcast" and rank > 1:
        f = function(d, kind, 2 + len(args))
        inner = call(f, "a", "b", *args)
        row = f"\\row -> zip(row, scale) |> map(\\a b -> {inner})"
        rows = f"x |> {over('map', rank - 1)}({row})"
        vector = [("scale", array(shape[-1:], kind))]
        d.define("scaled", params[:1] + vector + scalars, rows)
    elif way == "mask":
        f = function(d, kind, len(names) + len(args))
        lam = " ".join(f"{n}{n}" for n in names)
        value = call(f, *lam.split(), *args)
        first = lam.split()[0]
        d.define("masked", params + [("mask", array(shape, "int"))] + scalars,
                 f"{zipped(names + ['mask'], rank)}\n    |> {map_}(\\{lam} m -> "
                 f"if m % {d.rng.randint(2, 5)} == 0 then {value} else {first})")
    elif way == "turned" and rank == 2:
        f = function(d, kind, 2 + len(args))
        value = call(f, "a", "b", *args)
        d.define("turned", [params[0], ("w", array(shape[::-1], kind))] + scalars,
                 f"zip2(x, transpose(w)) |> map2(\\a b -> {value})")
    elif way == "stages":
        f = function(d, kind, len(names) + len(args))
        g = function(d, kind, 2, "g")
        lam = " ".join(n + "0" for n in names)
        d.define("staged", params + scalars,
                 f"let t = {zipped(names, rank)} |> {map_}(\\{lam} -> "
                 f"{call(f, *lam.split(), *args)}) in\n"
                 f"  {zipped(['t', names[0]], rank)} |> {map_}({g})")
    else:
        f = function(d, kind, len(names) + len(args))
        lam = " ".join(n + "0" for n in names)
        value = call(f, *lam.split(), *args)
        if way == "outputs":
            g = function(d, kind, len(names), "g")
            value = f"({value}, {call(g, *lam.split())})"
        d.define("combined", params + scalars,
                 f"{zipped(names, rank)} |> {map_}(\\{lam} -> {value})")


def around(mode, rank, lo, hi=None, axes=None):
    """`|> pad` by lo and hi along the axes, all by default."""
    hi = lo if hi is None else hi
    if axes is None:
        return f"|> {over('pad', rank)}({lo}, {hi}, {mode})"
    per = [f"{lo}, {hi}" if a in axes else "0, 0" for a in range(rank)]
    return f"|> {over('pad', rank)}({', '.join(per)}, {mode})"


def slide(rank, width, step=1, axes=None):
    if axes is None:
        return f"|> {over('slide', rank)}({width}, {step})"
    per = [f"{width}, {step}" if a in axes else "1, 1" for a in range(rank)]
    return f"|> {over('slide', rank)}({', '.join(per)})"


def at(point):
    return "p" + "".join(f"[{i}]" for i in point)


def star(rank, radius, axes):
    """The points of a star, its centre first, then each distance."""
    centre = [radius if a in axes else 0 for a in range(rank)]
    groups = [[at(centre)]]
    for distance in range(1, radius + 1):
        group = []
        for axis in axes:
            for sign in (-1, 1):
                point = list(centre)
                point[axis] += sign * distance
                group.append(at(point))
        groups.append(group)
    return groups


def weigh(d, kind, groups):
    """A sum of the points, one weight a group, whose weights sum to at most about one."""
    if kind == "int":
        terms = " + ".join(p for g in groups for p in g)
        return f"({terms}) {d.pick('/ 5', '% 256', '/ 2')}"
    total = sum(len(g) for g in groups)
    terms = []
    for group in groups:
        weight = round(d.rng.uniform(0.3, 1.2) / total, 4)
        inner = group[0] if len(group) == 1 else f"({' + '.join(group)})"
        terms.append(f"{weight}*{inner}")
    return "\n      + ".join(terms)


def flat(rank):
    return " |> join" * (rank - 1)


def dense(d, kind, rank):
    """A fold over a window, and the weights it takes as a parameter, if it does."""
    way = d.pick("weights", "weights", "max", "mean")
    if way == "weights":
        window = f"{over('zip', rank)}(p, w)" if rank > 1 else "zip(p, w)"
        return way, f"{window}{flat(rank)} |> reduce({sum_of(kind, 'x.0 * x.1')})"
    if way == "max":
        return way, f"p{flat(rank)} |> reduce(max, {LEAST[kind]})"
    return way, f"p{flat(rank)} |> reduce({sum_of(kind)})"


def windows(d):
    rank = d.pick(1, 2, 2, 2, 3, 3)
    kind = d.type()
    radius = d.pick(1, 1, 2, 3, 4) if rank < 3 else d.pick(1, 1, 2)
    axes = list(range(rank))
    if rank > 1 and d.often(0.2):
        axes = sorted(d.rng.sample(axes, d.rng.randint(1, rank - 1)))
    step = d.pick(1, 1, 1, 2, 3) if len(axes) == rank else 1
    mode = d.rng.choice(MODES)
    way = "pool" if step > 1 else d.pick("star", "star", "star", "dense", "field")
    width = max(2 * radius + 1, step)
    d.note = f"{way}, rank {rank}, radius {radius}, {mode}, step {step}, {kind}"
    shape = d.grid(rank)
    only = None if len(axes) == rank else axes
    if way in ("star", "field"):
        value = weigh(d, kind, star(rank, radius, axes))
        view = f"a {around(mode, rank, radius, axes=only)} {slide(rank, width, axes=only)}"
        params = [("a", array(shape, kind))]
        if way == "field":
            f = function(d, kind, 2, "relax", 0)
            body = f"zip{rank if rank > 1 else ''}({view}, k)\n" \
                   f"    |> {over('map', rank)}(\\p c -> {f}({value}, c))"
            params.append(("k", array(shape, kind)))
        else:
            body = f"{view}\n    |> {over('map', rank)}(\\p -> {value})"
        d.define("stencil", params, body)
        return
    fold, value = dense(d, kind, rank)
    left = (width - step + 1) // 2
    inside = [f"{step} * {n}" if step > 1 else n for n in shape]
    pad = around(mode, rank, left, width - step - left, only) + " " if width > step else ""
    params = [("a", array(inside, kind))]
    if fold == "weights":
        window = [width if a in axes else 1 for a in range(rank)]
        params.append(("w", array(window, kind)))
    if fold == "mean" and kind != "int":
        value = f"{1 / width ** len(axes):.6f} * ({value})"
    d.define("filter", params,
             f"a {pad}{slide(rank, width, step, only)}\n    |> {over('map', rank)}"
             f"(\\p -> {value})")


# Views that bring the kept axes of a grid to the front, and how many are folded after them.
FRONT = {
    (1, ()): "", (2, ()): "", (3, ()): "",
    (2, (0,)): "", (2, (1,)): " |> transpose",
    (3, (0,)): "", (3, (1,)): " |> transpose", (3, (2,)): " |> map(transpose) |> transpose",
    (3, (0, 1)): "", (3, (0, 2)): " |> map(transpose)",
    (3, (1, 2)): " |> transpose |> map(transpose)",
}


def fold_of(d, kind):
    """Arguments of a reduce over x (or a pair x.0, x.1), what follows it, its type."""
    way = d.pick("sum", "sum", "squares", "size", "max", "min", "span", "dot", "dot",
                 "moments")
    if way == "sum":
        return way, sum_of(kind), None
    if way == "squares":
        return way, sum_of(kind, "x * x"), None if kind == "int" else "sqrt(r)"
    if way == "size":
        return way, sum_of(kind, "abs(x)"), None
    if way in NEUTRAL:
        return way, f"{way}, {NEUTRAL[way][kind]}", None
    if way == "span":
        value = f"\\s x -> max(s, abs(x)), {kind}(0)"
        return way, value, None
    if way == "dot":
        return way, sum_of(kind, "x.0 * x.1"), None
    x = "float(x)" if kind == "half" else "x"
    return way, f"\\s x -> (s.0 + {x}, s.1 + {x} * {x}), ({zero(kind)}, {zero(kind)})", None


def folds(d):
    rank = d.pick(1, 2, 2, 3, 3)
    kind = d.type()
    shape = d.grid(rank)
    kept = d.rng.choice([k for r, k in FRONT if r == rank])
    way, fold, after = fold_of(d, kind)
    front = FRONT[rank, kept]
    params = [("a", array(shape, kind))]
    start = "a"
    if way == "dot":
        params.append(("b", array(shape, kind)))
        start = f"{over('zip', rank)}(a, b)"
    elif d.often(0.35):
        start = f"a |> {over('map', rank)}({function(d, kind, 1)})"
    d.note = f"{way} over all but axes {kept} of {rank}, {kind}"
    folded = rank - len(kept)
    if not kept:
        if way == "sum" and rank == 2 and d.often(0.5):
            body = f"{start} |> map(reduce({fold})) |> reduce(+, {fold.split(', ')[-1]})"
        else:
            body = f"{start}{flat(rank)} |> reduce({fold})"
        if after:
            body = f"let r = {body} in {after}"
        elif way == "sum" and kind != "int" and d.often(0.4):
            body = f"({body}) / {wide(kind)}({' * '.join(shape)})"
    else:
        inner = f"reduce({fold})" if folded == 1 else f"\\v -> v{flat(folded)} |> reduce({fold})"
        body = f"{start}{front} |> {over('map', len(kept))}({inner})"
        if after:
            body += f"\n    |> {over('map', len(kept))}(\\r -> {after})"
    d.define("fold", params, body)


LAST = {  # views that bring an axis to the end, and those that bring it back
    (1, 0): ("", ""), (2, 1): ("", ""), (2, 0): (" |> transpose", " |> transpose"),
    (3, 2): ("", ""), (3, 1): (" |> map(transpose)", " |> map(transpose)"),
    (3, 0): (" |> transpose |> map(transpose)", " |> map(transpose) |> transpose"),
}


def prefixes(d):
    rank = d.pick(1, 1, 2, 2, 2, 3)
    kind = d.type()
    axis = d.rng.randrange(rank)
    shape = d.grid(rank)
    to, back = LAST[rank, axis]
    way = d.pick("sum", "sum", "sum", "max", "min", "exclusive", "decay")
    d.note = f"{way} along axis {axis} of {rank}, {kind}"
    length = shape[axis]
    if way in NEUTRAL:
        scan = f"scan({way}, {NEUTRAL[way][kind]})"
    elif way == "exclusive":
        scan = f"\\v -> v |> scan({sum_of(kind)}) |> take({length} - 1) |> pad(1, 0, {zero(kind)})"
    elif way == "decay" and kind not in ("int", "half"):
        # y[i] = c[i] * y[i - 1] + x[i], as the composition of affine functions
        one = {"float": "1.0", "double": "double(1)"}[kind]
        scan = (f"\\v -> v |> map(\\x -> (0.5 * max(min(x, 1), -1), x))\n"
                f"      |> scan(\\f g -> (f.0 * g.0, g.0 * f.1 + g.1), ({one}, {zero(kind)})) "
                "|> map(\\f -> f.1)")
    else:
        scan = f"scan({sum_of(kind)})"
    change = d.often(0.3)
    start = f"a |> {over('map', rank)}({function(d, kind, 1, more=0)})" if change else "a"
    if rank == 1:
        body = f"{start} |> " + (scan if scan.startswith("scan") else
                                 scan.split("-> v |> ", 1)[1])
    elif rank == 2 and d.often(0.1) and way == "sum":
        body = f"{start} |> join |> {scan} |> split({shape[1]})"
    else:
        keep = back if d.often(0.8) else ""
        body = f"{start}{to} |> {over('map', rank - 1)}({scan}){keep}"
        back = back if keep else None
    if back is not None and kind not in ("int", "half") and d.often(0.35):
        f = function(d, kind, 2, "g", 0)
        body = f"{over('zip', rank)}(a, {body})\n    |> {over('map', rank)}({f})"
    d.define("prefix", [("a", array(shape, kind))], body)


def softmax(d, up):
    body = (f"let m = row |> reduce(max, {LEAST[up]}) in\n"
            "    let e = row |> map(\\x -> exp(x - m)) in\n"
            "    let s = e |> reduce(+, 0) in\n    ")
    way = d.pick("softmax", "softmax", "log", "sum")
    if way == "log":
        return way, body + "row |> map(\\x -> x - m - log(s))", ""
    if way == "sum":
        return way, body + "(e |> map(\\x -> x / s), m + log(s))", ""
    return way, body + "e |> map(\\x -> x / s)", ""


def norm(d, up):
    centred, affine = d.often(0.5), d.pick("", "g", "gb")
    m = f"{up}(M)"
    body = ""
    x = "x"
    if centred:
        body += f"let mu = (row |> reduce(+, 0)) / {m} in\n    "
        x = "(x - mu)"
    body += f"let q = row |> reduce(\\s x -> s + {x} * {x}, 0) in\n    " \
            f"let r = rsqrt(q / {m} + 0.00001) in\n    "
    value = f"{x} * r"
    if affine == "g":
        body += f"zip(row, g) |> map(\\x w -> {value} * w)"
    elif affine == "gb":
        body += f"zip(row, g, b) |> map(\\x w c -> {value} * w + c)"
    else:
        body += f"row |> map(\\x -> {value})"
    return ("layer" if centred else "root mean square") + affine, body, affine


def norm_backward(d, up):
    """The gradient of a norm by its input, from that by its output, both as rows."""
    m = f"{up}(M)"
    way = d.pick("softmax", "rms", "layer")
    if way == "softmax":
        return "softmax backward", (
            "let t = zip(row, dy) |> reduce(\\s p -> s + p.0 * p.1, 0) in\n"
            "    zip(row, dy) |> map(\\y e -> y * (e - t))"), "d"
    if way == "rms":
        return "root mean square backward", (
            "let q = row |> reduce(\\s x -> s + x * x, 0) in\n"
            f"    let r = rsqrt(q / {m} + 0.00001) in\n"
            "    let t = zip(row, dy, g) |> reduce(\\s p -> s + p.0 * p.1 * p.2, 0) in\n"
            f"    zip(row, dy, g) |> map(\\x e w -> r * (e * w - x * r * r * t / {m}))"), "dg"
    return "layer backward", (
        f"let mu = (row |> reduce(+, 0)) / {m} in\n"
        "    let q = row |> reduce(\\s x -> s + (x - mu) * (x - mu), 0) in\n"
        f"    let r = rsqrt(q / {m} + 0.00001) in\n"
        "    let t = zip(dy, g) |> reduce(\\s p -> s + p.0 * p.1, 0) in\n"
        "    let u = zip(row, dy, g)\n"
        "      |> reduce(\\s p -> s + (p.0 - mu) * r * p.1 * p.2, 0) in\n"
        "    zip(row, dy, g)\n"
        f"      |> map(\\x e w -> r * (e * w - t / {m} - (x - mu) * r * u / {m}))"), "dg"


def chain(d, up):
    """Folds and places one after another, each fold used by what follows."""
    body, known = "", []
    source = "row"
    for i in range(d.rng.randint(1, 3)):
        name = "stu"[i]
        value = mix(d, up, ["x"] + known[-1:], 0)
        op, init = d.pick(("+", "0"), ("+", "0"), ("max", LEAST[up]), ("min", MOST[up]))
        fold = f"s0 + {paren(value)}" if op == "+" else f"{op}(s0, {value})"
        scale = f" / {up}(M)" if op == "+" else ""
        body += f"let {name} = ({source} |> reduce(\\s0 x -> {fold}, {init})){scale} in\n    "
        known.append(name)
        if d.often(0.4) and i == 0:
            body += f"let v = row |> map(\\x -> {mix(d, up, ['x', name])}) in\n    "
            source = "v"
    value = mix(d, up, ["x"] + known)
    if d.often(0.4):
        return "chain", body + f"zip({source}, g) |> map(\\x w -> w * {paren(value)})", "g"
    return "chain", body + f"{source} |> map(\\x -> {value})", ""


def rows(d):
    kind = d.type(ints=0)
    up = wide(kind)
    n = d.size("N", d.pick(3, 5, 7, 9))
    m = d.size("M", d.pick(7, 9, 33, 67, 131),
               fixed=d.pick(64, 255, 1000, 1024, 4096, 4097, 16384))
    way, body, takes = d.pick(softmax, norm, norm, norm_backward, chain, chain)(d, up)
    params = [("x", array([n, m], kind))]
    row, names, lam = "x", ["x"], ["row"]
    if "d" in takes:
        params.append(("grad", array([n, m], kind)))
        names, lam = ["x", "grad"], ["row", "dy"]
    residual = "d" not in takes and way != "sum" and d.often(0.3)
    if residual:
        params.append(("residual", array([n, m], kind)))
    params += [(v, array([m], up)) for v in "gb" if v in takes]
    if residual and d.often(0.5):
        row = "zip2(x, residual) |> map2(+)"
        names = ["h"]
    text = f"{zipped(names)} |> map(\\{' '.join(lam)} ->\n    {body})"
    if kind == "half":
        for v in lam:
            lift = f"->\n    let {v} = {v}0 |> map(\\x -> float(x)) in\n    "
            text = text.replace("->\n    ", lift, 1)
        text = text.replace(f"\\{' '.join(lam)} ->", f"\\{' '.join(v + '0' for v in lam)} ->", 1)
    if names == ["h"]:
        text = f"let h = {row} in\n  {text}"
        way += " of a sum"
        if kind != "half" and d.often(0.5):
            text = text.replace("in\n  h |>", "in\n  (h, h |>", 1) + ")"
            way += ", both given"
    elif residual and kind != "half":
        text = f"zip2(residual, {text})\n    |> map2(+)"
        way += " added to another"
    elif residual:
        text = f"zip2(residual, {text})\n    |> map2(\\a y -> half(float(a) + y))"
    elif way != "sum" and d.often(0.3):
        text += f"\n    |> map2({activation(d, up)})"
    if kind == "half" and not residual and way not in ("sum",):
        text += "\n    |> map2(half)"
    d.note = f"{way}, {kind}"
    d.define("rows", params, text)


def product_sizes(d, rank=3):
    weights = {3: d.pick((1, 1, 1), (1, 1, 1), (4, 1, 0.25), (0.25, 1, 4), (1, 0.125, 1)),
               2: d.pick((1, 1), (4, 0.25), (0.25, 4))}[rank]
    names = "NMK" if rank == 3 else "NK"
    return [d.size(name, d.pick(5, 7, 9, 17, 33), w) for name, w in zip(names, weights)]


def finish_product(d, kind, params, result, n, m):
    """What follows a product `y` (an [n][m] of the wide type): a text that takes `result`."""
    up = wide(kind)
    way = d.pick("none", "none", "bias", "activation", "layer", "residual", "scale")
    if way == "none":
        return result, way
    if way == "activation":
        return f"{result} |> map2({activation(d, up)})", way
    if way in ("bias", "layer"):
        params.append(("bias", array([m], up)))
        value = "y + c"
        if way == "layer":
            value = f"{activation(d, up)}({value})"
        return f"{result}\n    |> map(\\row -> zip(row, bias) |> map(\\y c -> {value}))", way
    if way == "residual":
        params += [("c", array([n, m], up)), ("beta", up)]
        return f"zip2({result}, c)\n    |> map2(\\y e -> y + beta * e)", way
    params.append(("scale", array([n], up)))
    return f"zip({result}, scale)\n    |> map(\\row s -> row |> map(\\y -> s * y))", way


def matrix_product(d, kind):
    n, m, k = product_sizes(d)
    left, right = d.pick("row", "row", "turned"), d.pick("column", "column", "turned")
    params = [("a", array([n, k] if left == "row" else [k, n], kind)),
              ("b", array([k, m] if right == "column" else [m, k], kind))]
    a = "a" if left == "row" else "transpose(a)"
    b = "transpose(b)" if right == "column" else "b"
    value, before = "x.0 * x.1", ""
    if d.often(0.25):
        before = ", a changed first"
        f = function(d, kind, 1, "before", 0)
        value = f"{f}(x.0) * x.1" if kind != "half" else value
        a = a if kind != "half" else f"{a} |> map2({f})"
    elif d.often(0.15) and kind != "half":
        value, before = "(x.0 - x.1) * (x.0 - x.1)", ", squared distances"
    text = (f"{a} |> map(\\row -> {b} |> map(\\column ->\n"
            f"    zip(row, column) |> reduce({sum_of(kind, value)})))")
    d.define("product", params, text)
    calls, arguments = list(params), "a, b"
    out, way = finish_product(d, kind, calls, f"product({arguments})", n, m)
    d.note = f"product{before}, a {left}, b {right}, then {way}, {kind}"
    if way != "none":
        d.define("layer", calls, out)
    if d.often(0.3):
        batched(d, calls)


def batched(d, params):
    """Maps the last def over a batch of its first one or two matrices."""
    batch = d.size("B", d.pick(2, 3), fixed=d.pick(4, 16, 64))
    name = d.defs[-1][0]
    shared = d.often(0.3)
    many = params[:1] if shared else params[:2]
    rest = params[len(many):]
    lam = ["p", "q"][: len(many)]
    d.note += ", batched" + (" with one b" if shared else "")
    d.define("batch", [(p, f"[{batch}]{t}") for p, t in many] + rest,
             f"{zipped([p for p, _ in many])} |> map(\\{' '.join(lam)} -> "
             f"{call(name, *lam, *(p for p, _ in rest))})")


def matrix_vector(d, kind):
    n, k = product_sizes(d, 2)
    up = wide(kind)
    turned = d.often(0.4)
    params = [("a", array([k, n] if turned else [n, k], kind)), ("x", array([k], kind))]
    text = f"{'transpose(a)' if turned else 'a'} |> map(\\row -> " \
           f"zip(row, x) |> reduce({sum_of(kind, 'x.0 * x.1')}))"
    way = d.pick("none", "axpy", "activation", "bias")
    if way == "axpy":
        params += [("y", array([n], up)), ("alpha, beta", up)]
        text = f"zip({text}, y)\n    |> map(\\p e -> alpha * p + beta * e)"
    elif way == "activation":
        text += f" |> map({activation(d, up)})"
    elif way == "bias":
        params.append(("c", array([n], up)))
        text = f"zip({text}, c) |> map(+)"
    d.note = f"matrix{' turned' if turned else ''} times vector, then {way}, {kind}"
    d.define("times", params, text)


def channels(d, kind):
    c = d.size("C", d.pick(3, 5), fixed=d.pick(3, 16, 32, 64))
    o = d.size("O", d.pick(3, 5), fixed=d.pick(8, 16, 64))
    n, m = d.size("N", d.pick(5, 7)), d.size("M", d.pick(5, 9))
    w = d.pick(1, 3, 3, 5)
    pad = f"|> pad2({w // 2}, {w // 2}, {d.pick('0', '0', 'clamp')}) " if w > 1 else ""
    params = [("image", array([c, n, m], kind)), ("filters", array([o, c, w, w], kind))]
    value = sum_of(kind, "x.0 * x.1")
    text = (f"let windows = image |> map(\\plane -> plane {pad}|> slide2({w}, 1)) in\n"
            "  filters |> map(\\filter ->\n"
            "    windows |> transpose |> map(transpose)\n"
            f"      |> map2(\\v -> zip3(v, filter) |> join |> join |> reduce({value})))")
    if d.often(0.5):
        text += f"\n    |> map3({activation(d, wide(kind))})"
    d.note, d.terms = f"convolution of channels, {w} x {w}, {kind}", w * w
    d.define("convolution", params, text)


def contractions(d):
    kind, d.terms = d.type(ints=0.08), 1
    d.pick(matrix_product, matrix_product, matrix_product, matrix_vector, matrix_vector,
           channels)(d, kind)


def window_stage(d, kind, rank, source, shape=None):
    """A stencil of a grid of its own boundary, as a piped text."""
    radius = d.pick(1, 1, 1, 2)
    axes = list(range(rank))
    if rank > 1 and d.often(0.3):
        axes = [d.rng.randrange(rank)]
    only = None if len(axes) == rank else axes
    value = weigh(d, kind, star(rank, radius, axes))
    return (f"{source} {around(d.rng.choice(MODES), rank, radius, axes=only)} "
            f"{slide(rank, 2 * radius + 1, axes=only)}\n"
            f"    |> {over('map', rank)}(\\p -> {value})")


def pipelines(d):
    rank, kind = d.pick(1, 2, 2, 2, 3), d.type(ints=0.08)
    shape = d.grid(rank)
    count = d.rng.randint(2, 6)
    known, lets, says = ["image"], [], []
    map_ = over("map", rank)
    for i in range(count):
        last = known[-1]
        way = d.pick("window", "window", "window", "combine", "map", "scale")
        if way == "combine" and len(known) < 2:
            way = "window"
        if way == "scale" and (kind in ("int", "half") or "scale" in says):
            way = "map"
        name = f"t{i + 1}"
        if way == "window":
            text = window_stage(d, kind, rank, last)
        elif way == "combine":
            other = d.rng.choice(known[:-1])
            f = function(d, kind, 2, more=0)
            text = f"{over('zip', rank)}({last}, {other}) |> {map_}({f})"
        elif way == "map":
            text = f"{last} |> {map_}({function(d, kind, 1, more=0)})"
        else:
            lets.append(("peak", f"{last}{flat(rank)} |> reduce(\\s x -> max(s, abs(x)), 0)"))
            text = f"{last} |> {map_}(\\x -> x / (1 + peak))"
        says.append(way)
        lets.append((name, text))
        known.append(name)
    body = "".join(f"let {name} = {text} in\n  " for name, text in lets[:-1])
    last_name, last_text = lets[-1]
    if d.often(0.2) and len(known) > 3:
        body += f"let {last_name} = {last_text} in\n  ({last_name}, {known[-2]})"
    elif set(says) <= {"window", "map"} and d.often(0.5):
        says.append("in a chain")
        body = one_chain(lets)
    else:
        body += last_text
    d.note = f"{' '.join(says)}, rank {rank}, {kind}"
    d.define("pipeline", [("image", array(shape, kind))], body)


def one_chain(lets):
    """The same stages without names: each reads the one before it."""
    return "image" + "\n    ".join(text.removeprefix("image" if i == 0 else lets[i - 1][0])
                                    for i, (_, text) in enumerate(lets))


def timed(d, kind, t, rank, plain, step):
    """A loop from a; of a quarter of them with a source that knows the number of the step. step: of v."""
    if not d.often(0.25):  # the last that is drawn, so that the others are as they were before
        return f"a |> iterate({t}, {plain})"
    d.note += ", counted"
    source = d.pick(f"{kind}(n % 4)", f"{kind}(n % 4)", "s") if kind != "int" else "n % 4"
    let = f"let s = {kind}(sin(0.5 * float(n))) in\n    " if source == "s" else ""
    scaled = source if kind == "int" else f"0.125 * {source}"
    return (f"(iterate({t}, \\v n -> {let}({step}\n    |> {over('map', rank)}(\\x -> x + {scaled}), "
            "n + 1), (a, 0))).0")


def steps(d):
    rank, kind = d.pick(1, 2, 2, 2, 3, 3), d.type(ints=0.05)
    shape = d.grid(rank)
    t = d.size("T", d.pick(2, 3, 5), fixed=d.pick(8, 16, 32))
    radius = d.pick(1, 1, 1, 2) if rank > 1 else d.pick(1, 2, 4)
    mode = d.rng.choice(MODES)
    map_, zip_ = over("map", rank), over("zip", rank)
    grid = array(shape, kind)
    value = weigh(d, kind, star(rank, radius, list(range(rank))))
    view = f"{around(mode, rank, radius)} {slide(rank, 2 * radius + 1)}"
    way = d.pick("one", "one", "one", "field", "two", "two", "coupled")
    way = "one" if kind == "int" else way
    d.note = f"{way}, rank {rank}, radius {radius}, {mode}, {kind}"
    if way == "one":
        d.define("step", [("a", grid)], f"a {view}\n    |> {map_}(\\p -> {value})")
        d.define("steps", [("a", grid)], timed(d, kind, t, rank, "step", "step(v)"))
    elif way == "field":
        f = function(d, kind, 2, "relax", 0)
        step = f"{zip_}(v {view}, k)\n    |> {map_}(\\p c -> {f}({value}, c))"
        d.define("steps", [("a", grid), ("k", grid)],
                 timed(d, kind, t, rank, f"\\v -> {step}", step))
    elif way == "two":
        d.define("steps", [("before", grid), ("now", grid)],
                 f"iterate({t}, \\old new ->\n    (new, {zip_}(old, new {view})\n"
                 f"      |> {map_}(\\b p -> {value}\n      - 0.25*b)),\n    (before, now))"
                 + d.pick("", ".1"))
    else:
        f = function(d, kind, 2, "react", 0)
        d.define("steps", [("u", grid), ("v", grid)],
                 f"iterate({t}, \\c e ->\n    ({zip_}(c {view}, e) |> {map_}(\\p q -> "
                 f"{value} + 0.125*q),\n     {zip_}(c, e) |> {map_}({f})),\n    (u, v))")


def positions(d):
    """A table read at places that are computed: linearly, or the nearest."""
    kind = d.pick("float", "float", "double")
    n, k = d.size("N", d.pick(9, 33), 0.25), d.size("K", d.pick(17, 65))
    params = [("table", array([n], kind)), ("at", array([k], kind))]
    where = "let x = abs(t) * 3.5 in let i = min(int(x), N - 2) in"
    if d.often(0.5):
        value = f"let f = x - {kind}(i) in (1 - f) * table[i] + f * table[i + 1]"
    else:
        value = "table[i] * t"
    d.define("interpolate", params, f"at |> map(\\t -> {where}\n    {value})")
    return "interpolation", kind


def lookups(d):
    kind = d.type()
    way = d.pick("elements", "rows", "chosen", "sparse", "sum of rows")
    if way == "elements":
        n, k = d.size("N", d.pick(9, 33), d.pick(1, 0.001)), d.size("K", d.pick(17, 65))
        body = d.pick(f"index |> map(\\i -> x[i % {n}])",
                      f"array({k}, \\i -> x[index[i] % {n}])",
                      f"gather(\\i -> index[i % {k}] % {n}, x)")
        params = [("x", array([n], kind)), ("index", array([k], "int"))]
    elif way in ("rows", "sum of rows"):
        n = d.size("N", d.pick(9, 17))
        m = d.size("M", d.pick(5, 33), fixed=d.pick(32, 128, 1000))
        k = d.size("K", d.pick(7, 15), d.pick(0.25, 1, 2))
        params = [("x", array([n, m], kind)), ("index", array([k], "int"))]
        body = f"index |> map(\\i -> x[i % {n}])"
        if way == "sum of rows":
            params.append(("y", array([k, m], kind)))
            body = f"zip2({body}, y) |> map2({function(d, kind, 2, more=0)})"
    elif way == "chosen":
        n = d.size("N", d.pick(9, 17))
        m = d.size("M", d.pick(5, 33), fixed=d.pick(10, 100, 1024))
        params = [("x", array([n, m], kind)), ("label", array([n], "int"))]
        body = f"zip(x, label) |> map(\\row i -> row[i % {m}])"
    else:
        n, m = d.size("N", d.pick(9, 17)), d.size("M", d.pick(5, 33), d.pick(1, 0.05))
        w = d.size("W", d.pick(3, 5), fixed=d.pick(5, 8, 32))
        params = [("values", array([n, w], kind)), ("columns", array([n, w], "int")),
                  ("x", array([m], kind))]
        v, e = ("float(t.0)", f"float(x[t.1 % {m}])") if kind == "half" else \
               ("t.0", f"x[t.1 % {m}]")
        body = (f"zip(values, columns) |> map(\\v c ->\n"
                f"    zip(v, c) |> reduce(\\s t -> s + {v} * {e}, {zero(kind)}))")
    d.define("lookup", params, body)
    return f"lookup of {way}", kind


def moved(d):
    kind = d.type()
    rank = d.pick(1, 2, 2)
    shape = d.grid(rank)
    n, m = shape[0], shape[-1]
    shift = d.rng.randint(1, 9)
    params = [("a", array(shape, kind))]
    way = d.pick("reverse", "roll", "larger", "every other", "scatter")
    one = {"reverse": f"a |> gather(\\i -> {n} - 1 - i)",
           "roll": f"a |> gather(\\i -> (i + {shift}) % {n})",
           "larger": f"array({2 * shift} * {n}, \\i -> a[i / {2 * shift}])",
           "every other": f"array({n} / 2, \\i -> a[2 * i] - a[2 * i + 1])",
           "scatter": f"a |> scatter(\\i -> (i + {shift}) % {n})"}
    two = {"reverse": "a |> map(\\row -> row |> gather(\\j -> M - 1 - j))",
           "roll": f"array2({n}, {m}, \\i j -> a[(i + {shift}) % {n}][(j + 3) % {m}])",
           "larger": f"array2(2 * {n}, 2 * {m}, \\i j -> a[i / 2][j / 2])",
           "every other": f"array2({n} / 2, {m}, \\i j -> a[2 * i][{m} - 1 - j])",
           "scatter": f"a |> scatter(\\i -> (i + {shift}) % {n})"}
    body = (one if rank == 1 else two)[way]
    if d.often(0.4):
        body += f" |> {over('map', rank)}({function(d, kind, 1, more=0)})"
    d.define("moved", params, body)
    return f"{way}, rank {rank}", kind


def gathers(d):
    d.note = ", ".join(d.pick(positions, lookups, lookups, moved, moved)(d))


def keyed(d):
    """Histograms, sums and extremes by key, of whole arrays or of rows."""
    kind = d.type()
    rank = d.pick(1, 1, 1, 2)
    shape = d.grid(rank)
    keys = d.pick(5, 64, 256, 1000, 20000)
    way = d.pick("count", "sum", "max", "mean", "first")
    key = d.pick(f"abs(k) % {keys}", f"k % {keys}", f"(k * 7919) % {keys}", "k")
    added = "float(v)" if kind == "half" else "v"
    if rank == 2 and d.pick(False, True):
        keys = min(keys, 256)
        d.note = f"rows of {keys} keys, {kind}"
        d.define("keyed", [("k", array(shape[:1], "int")), ("a", array(shape, kind))],
                 f"zip(k, a)\n    |> map(\\k v -> (abs(k) % {keys}, v)) |> reduceBy({keys},"
                 f" \\s v -> zip(s, v) |> map(\\x v -> x + {added}), array({shape[1]}, \\i -> {zero(kind)}))")
        return
    d.note = f"{way} of {keys} keys in {rank} dimensions, {kind}"
    value = {"count": "1", "mean": "(v, 1)"}.get(way, "v")
    fold = {"count": "+, 0", "sum": f"{sum_of(kind)}", "max": f"max, {LEAST[kind]}",
            "mean": f"\\(s, n) (v, m) -> (s + {added}, n + m), ({zero(kind)}, 0)",
            "first": f"\\m v -> if m > v then m else v, {LEAST[kind]}"}[way]
    row = f"map(\\k v -> ({key}, {value})) |> reduceBy({keys}, {fold})"
    if rank == 1:
        body = f"zip(k, a)\n    |> {row}"
    else:
        body = f"zip2(k, a)\n    |> map(\\r -> r |> {row})"
    if way == "mean":
        body += f"\n    |> {over('map', rank)}(\\s n -> if n > 0 then s / {wide(kind)}(n) else s)"
    d.define("keyed", [("k", array(shape, "int")), ("a", array(shape, kind))], body)


# What a function does to a row and a number k of its own: text after the row's name.
def row_order(d, kind):
    place = d.pick("M - 1 - i", "(i + 5) % M", "(i + abs(k)) % M", "(i + M / 2) % M")
    return f"|> {d.pick('scatter', 'scatter', 'gather')}(\\i -> {place})"


def row_window(d, kind):
    radius = d.pick(1, 1, 2, 4)
    wide_ = 2 * radius + 1
    if d.often(0.3):
        what = f"reduce({d.pick('max', 'min')}, w[0], w)"
    else:
        what = " + ".join(f"{d.pick('0.125', '0.25', '0.5')}*w[{i}]"
                          for i in sorted({0, radius, 2 * radius}))
    return f"|> pad({radius}, {radius}, {d.rng.choice(MODES)}) |> slide({wide_}, 1)\n      |> map(\\w -> {what})"


def row_prefix(d, kind):
    return d.pick(f"|> map(\\e -> e / {kind}(M)) |> scan(+, {zero(kind)})",
                  f"|> scan(max, {LEAST[kind]})")


def row_fold(d, kind):
    fold, use = d.pick(("|> reduce(max, " + LEAST[kind] + ")", "e - m"),
                       ("|> map(\\e -> abs(e)) |> reduce(+, " + zero(kind) + ")", "e / (1 + m)"))
    return f"|> (\\v -> let m = v {fold} in v |> map(\\e -> {use}))"


def row_steps(d, kind):
    count = d.pick("4", "T")
    way = d.pick("one", "one", "two", "fold")
    if way == "fold":
        inner = row_fold(d, kind).removeprefix("|> (\\v -> ").removesuffix(")")
        return f"|> iterate({count}, \\v -> {inner})"
    view = f"pad(1, 1, {d.rng.choice(MODES)}) |> slide(3, 1)"
    value = "0.25*w[0] + 0.5*w[1] + 0.25*w[2]"
    if way == "one":
        return f"|> iterate({count}, \\u -> u |> {view}\n      |> map(\\w -> {value}))"
    return (f"|> (\\v -> iterate({count}, \\old new -> (new, zip(old, new |> {view})\n"
            f"      |> map(\\b w -> {value} - 0.25*b)), (v, v)).1)")


def nested(d):
    """Functions of rows that call one pattern after another."""
    kind = d.pick("float", "float", "float", "double")
    n = d.size("N", d.pick(3, 5, 9), d.pick(1, 1, 0.05, 8))
    m = d.size("M", d.pick(65, 67, 131), d.pick(1, 1, 8, 0.05))
    d.size("T", 3, fixed=d.pick(8, 20))
    ways = [d.rng.choice([row_order, row_window, row_prefix, row_fold, row_steps])
            for _ in range(d.pick(1, 2, 2, 3))]
    if not {row_order, row_steps} & set(ways):
        ways[0] = d.pick(row_order, row_steps)
    body, value = "", "r"
    for i, way in enumerate(ways):
        text = way(d, kind)
        if "|> (\\v -> " in text:
            text = f"let v = {value} in " + text.removeprefix("|> (\\v -> ").removesuffix(")")
        else:
            text = f"{value} {text}"
        body += f"let {'stu'[i]} = {text} in\n    "
        value = "stu"[i]
    end = d.pick(value, value, f"zip(r, {value}) |> map(\\x y -> x + 0.5*y)", f"{value} |> reduce(max, {LEAST[kind]})")
    d.note = " then ".join(w.__name__.removeprefix("row_") for w in ways) + f", {kind}"
    text = f"zip(a, shift) |> map(\\r k ->\n    {body}{end})"
    if d.often(0.3):  # an array and a number for each row
        text = f"zip(a, shift) |> map(\\r k ->\n    {body}({end}, {value} |> reduce(max, {LEAST[kind]})))"
        text = d.pick(text, f"{text} |> unzip", f"let both = {text} in unzip(both)")
    d.define("nested", [("a", array([n, m], kind)), ("shift", array([n], "int"))], text)


# Many names ----------------------------------------------------------------------------


def field_of(d, names):
    """An expression of numbers that keeps its size, however many follow one another."""
    a, b = names[0], names[-1]
    two = d.pick(f"0.5 * {a} + 0.25 * {b}", f"{a} - 0.25 * {b}", f"{a} / (1 + {b} * {b})",
                 f"{a} * tanh({b})", f"max({a}, {b})", f"0.125 * {a} * {b} + {b}")
    one = d.pick(f"sqrt({a} * {a} + 1)", f"0.5 * {a}", f"{a} / (1 + abs({a}))", f"{a} - 0.25")
    text = one if len(names) == 1 else two
    return f"{text} + 0.125 * {names[1]}" if len(names) > 2 else text


def fields(d):
    """A step of a simulation as it is written: many named fields, each of some before it."""
    rank, kind = d.pick(1, 2, 2, 2, 3), d.pick("float", "float", "double")
    grid = array(d.grid(rank), kind)
    known = ["u", "v", "w", "k"][:d.rng.randint(2, 4)]
    params, windows = list(known), 0
    map_, lets = over("map", rank), []
    for i in range(d.rng.randint(6, 24)):
        recent = known[-4:] if d.often(0.7) else known
        reads = d.rng.sample(recent, min(len(recent), d.pick(1, 2, 2, 2, 3)))
        names = list("abc"[:len(reads)])
        if windows < 3 and d.often(0.15):
            windows += 1
            axis = d.rng.randrange(rank)
            view = f"{around(d.rng.choice(MODES), rank, 1, axes=[axis])} {slide(rank, 3, axes=[axis])}"
            ends = [at([e if k == axis else 0 for k in range(rank)]) for e in (2, 0)]
            text = f"{reads[0]} {view}\n    |> {map_}(\\p -> 0.5 * ({' - '.join(ends)}))"
        else:
            text = f"{zipped(reads, rank)} |> {map_}(\\{' '.join(names)} -> {field_of(d, names)})"
        known.append(f"f{i + 1}")
        lets.append(f"let {known[-1]} = {text} in")
    read = " ".join(lets)
    unread = [f for f in known[len(params):] if not re.search(rf"\b{f}\b(?! =)", read)]
    results = unread[-d.pick(1, 1, 2, 3):]
    d.note = f"{len(lets)} fields, {windows} with neighbours, {len(results)} stored, rank {rank}, {kind}"
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    d.define("fields", [(p, grid) for p in params], "\n  ".join(lets + [result]))


# Small arrays --------------------------------------------------------------------------


def matrix_step(d, n):
    """A function of a small matrix m and of c, which all share, to another such matrix."""
    return d.pick(
        "mm(c, m)", "mm(mm(c, m), transpose(c))", "mm(transpose(m), m)",
        "zip2(m, transpose(m)) |> map2(\\x y -> 0.5 * (x + y))",
        f"array2({n}, {n}, \\i j -> 0.25 * m[i][j] + (if i == j then 1 else 0))",
        f"array2({n}, {n}, \\i j -> m[i][j] / (1 + m[i][i] * m[i][i]))",
        f"let t = array({n}, \\i -> m[i][i]) |> reduce(+, 0) in map2(\\v -> v / (1 + t * t), m)",
        f"iterate({n}, \\s k -> (array2({n}, {n}, \\i j -> if i == k then s[k][j] / (2 + s[k][k] * s[k][k])"
        " else s[i][j] - 0.125 * s[i][k] * s[k][j]), k + 1), (m, 0)).0")


def vector_step(d, n):
    """A function of a small vector v and of c, a matrix that all share, to another vector."""
    h = d.pick(*[k for k in (1, 2, 4, 8) if n % (2 * k) == 0] or [0])
    ways = [
        "c |> map(\\r -> zip(r, v) |> map(*) |> reduce(+, 0))",
        "c |> map(\\r -> tanh(zip(r, v) |> map(*) |> reduce(+, 0)))",
        f"array({n}, \\i -> 0.5 * v[i] + 0.25 * v[(i + 1) % {n}])",
        f"array({n}, \\i -> 0.5 * v[i] - 0.25 * v[{n} - 1 - i])",
        "let q = zip(v, v) |> map(*) |> reduce(+, 0) in map(\\x -> x / (1 + q), v)",
        f"v |> scan(+, 0) |> map(\\x -> x / {n})",
        "v |> pad(1, 1, clamp) |> slide(3, 1) |> map(\\w -> 0.25*w[0] + 0.5*w[1] + 0.25*w[2])",
        f"v |> scatter(\\i -> (i * {1 if n % 3 == 0 else 3} + 1) % {n})",
        f"iterate({d.pick(3, 8)}, \\u -> array({n}, \\i -> 0.75 * u[i] + 0.125 * u[(i + {n - 1}) % {n}]), v)",
        f"iterate({min(n, 32)}, \\u k -> (array({n}, \\i -> if (i + k) % 2 == 0 then min(u[i], u[min(i + 1, {n} - 1)])"
        " else max(u[max(i - 1, 0)], u[i])), k + 1), (v, 0)).0"]
    if h:
        ways.append(f"array({n}, \\i -> if i % {2 * h} < {h} then 0.5 * (v[i] + v[i + {h}])"
                    f" else 0.5 * (v[i - {h}] - v[i]))")
    return d.rng.choice(ways if n <= 128 else ways[2:])  # c is not to be most of the work


def instances(d):
    """A function of small arrays for each of many, as of cells, bodies or blocks."""
    rank = d.pick(1, 2)
    n = d.pick(2, 3, 4, 5, 6, 8) if rank == 2 else d.pick(3, 4, 6, 8, 12, 16, 32)
    each_of_many(d, "instances", rank, n, d.pick(5, 4099))


def blocks(d):
    """The same of arrays that are too large for one work-item, as boards, spectra or systems of equations."""
    rank = d.pick(1, 2)
    n = d.pick(9, 12, 16, 24, 32, 33) if rank == 2 else d.pick(65, 100, 128, 256, 500, 1024)
    each_of_many(d, "blocks", rank, n, d.pick(5, 1031))


def each_of_many(d, name_of_class, rank, n, count):
    kind = d.pick("float", "float", "float", "double")
    b = d.size("B", count)
    small, name = ([n, n], "m") if rank == 2 else ([n], "v")
    shared = array([n, n], kind)
    if rank == 2:
        d.define("mm", [("a", shared), ("b", shared)],
                 "a |> map(\\r -> transpose(b) |> map(\\q -> zip(r, q) |> map(*) |> reduce(+, 0)))")
    steps = [(matrix_step if rank == 2 else vector_step)(d, n) for _ in range(d.rng.randint(1, 4))]
    lets = [f"let {name} = {step} in" for step in steps]
    if d.often(0.3) and n <= 128:  # a table
        lets.insert(0, f"let c = array2({n}, {n}, \\i j -> cos({kind}(i * (2 * j + 1)) * 0.1) * 0.5) in")
    total = {1: f"reduce(+, 0, {name})", 2: f"{name} |> join |> reduce(max, {LEAST[kind]})"}[rank]
    first = name + "[0]" * rank
    end = d.pick(name, name, name, total, first, f"({name}, {total})")
    width = d.pick(4, 16)
    d.note = f"{len(steps)} steps of {'x'.join(map(str, small))}, {kind}"
    body = "\n    ".join(lets + [end])
    if d.often(0.3):  # blocks of an image, or of a signal
        split = f"split{'2' if rank == 2 else ''}({n}, a)"
        whole = f"{n}*B" if rank == 1 else f"{n}*B][{n}*{width}"
        apply_ = f"{split} |> map{'2' if rank == 2 else ''}(\\{name} ->\n    {body})"
        params = [("a", f"[{whole}]{kind}"), ("c", shared)]
    else:
        apply_ = f"a |> map(\\{name} ->\n    {body})"
        params = [("a", array([b] + small, kind)), ("c", shared)]
    d.define(name_of_class, params, apply_)


def made_rows(d, kind):
    """Rows that a function of numbers makes, and goes on with."""
    n, b = d.pick(129, 160, 257), d.size("B", d.pick(5, 1031))
    start = d.pick(f"max(k - s * {kind}(i), 0)", f"s + k * {kind}(i)", f"s / (1 + k * k * {kind}(i))")
    lets = [f"let v = array({n}, \\i -> {start}) in"]
    lets += [f"let v = {vector_step(d, n)} in" for _ in range(d.rng.randint(1, 2))]
    total = "reduce(+, 0, v)"
    end = d.pick("v[0]", total, f"({total}, v[1])", "v")
    d.note = f"rows of {n} made of numbers, {kind}"
    body = "\n    ".join(lets + [end])
    d.define("recurrences", [("a", array([b], kind)), ("e", array([b], kind))],
             f"zip(a, e) |> map(\\s k ->\n    {body})")


def rows_in_turn(d, kind):
    """Rows, each made of the one before, of many elements or of one."""
    n, many = d.pick(65, 96, 130, 257), d.often(0.7)
    t = d.size("T", d.pick(5, 33))
    after = d.pick(
        "zip(p, r) |> map(\\u v -> 0.5 * u + v)",
        "zip(r, p |> pad(1, 1, clamp) |> slide(3, 1)) |> map(\\v w -> v + min(w[0], min(w[1], w[2])))",
        "zip(r, p |> pad(1, 1, wrap) |> slide(3, 1)) |> map(\\v w -> 0.25 * (w[0] + w[1] + w[2]) + v)",
        "let q = zip(p, r) |> map(\\u v -> 0.5 * u + abs(v) + 1) in let s = reduce(+, 0, q) in map(\\x -> x / s, q)",
        f"array({n}, \\i -> r[i] + 0.5 * p[{n} - 1 - i])")
    rows = f"x |> scan(\\p r -> {after}, array({n}, \\i -> {kind}(i) * 0.125))"
    end = d.pick("c", "c", "map(\\r -> reduce(+, 0, r), c)", "(c, c[T - 1])")
    body = f"let c = {rows} in {end}"
    d.note = f"rows of {n} in turn, {'many' if many else 'one'}, {kind}"
    if many:
        b = d.size("B", d.pick(5, 37))
        d.define("recurrences", [("a", array([b, t, n], kind))], f"a |> map(\\x -> {body})")
    else:
        d.define("recurrences", [("x", array([t, n], kind))], body)


def numbers_in_turn(d, kind):
    """Numbers that are folds of a row, each of the one before."""
    b, n, k = d.size("B", d.pick(5, 131)), d.size("N", d.pick(67, 257, 1023)), d.rng.randint(2, 9)
    step, start = d.pick(
        (f"r |> map(\\x -> if x < s then x else {LEAST[kind]}) |> reduce(max, {LEAST[kind]})", "2.0"),
        (f"(r |> map(\\x -> x / (1 + (x - s) * (x - s))) |> reduce(+, 0)) / {kind}(N)", "0.0"),
        (f"0.5 * s + (r |> map(\\x -> abs(x - s)) |> reduce(+, 0)) / {kind}(N)", "0.25"))
    loop = f"iterate({k}, \\s -> {step}, {start})"
    body = d.pick(loop, f"let m = {loop} in map(\\x -> x - m, r)")
    d.note = f"{k} folds in turn, {kind}"
    d.define("recurrences", [("a", array([b, n], kind))], f"a |> map(\\r -> {body})")


def recurrences(d):
    """What goes on from what it was: of numbers, rows, or rows that are made of numbers."""
    d.pick(made_rows, rows_in_turn, numbers_in_turn)(d, d.pick("float", "float", "double"))


def backwards(d):
    """Rows or columns that are gone through from their end: sums of what follows, filters in both directions, and
    elimination with substitution; by pattern or by index."""
    kind = d.pick("float", "float", "double")
    n, m = d.grid(2)
    columns, by_index = d.often(0.4), d.often(0.4)
    length = n if columns else m

    def back(x):
        return (f"(let q = {x} in array({length}, \\i -> q[{length} - 1 - i]))" if by_index
                else f"gather(\\i -> {length} - 1 - i, {x})")

    zero, half = f"{kind}(0)", f"{kind}(0.5)"
    sweep = d.pick(f"scan(+, {zero}, %s)", f"scan(max, {LEAST[kind]}, %s)", f"scan(\\y x -> {half} * y + x, {zero}, %s)")
    whole = back(sweep % back("r"))
    centred = "map(\\x -> x - s, r)"
    way = d.pick("whole", "change", "both", "solve", "mean")
    body = {
        "whole": whole,
        "change": f"zip(r, {whole}) |> map(\\x y -> y - x)",
        "both": f"zip({sweep % 'r'}, {whole}) |> map(+)",
        "solve": (f"let e = scan(\\s x -> (1 / (4 - s.0), (x + s.1) / (4 - s.0)), ({zero}, {zero}), r) in\n    "
                  + back(f"scan(\\x e -> e.1 + e.0 * x, {zero}, {back('e')})")),
        "mean": f"let s = reduce(+, {zero}, r) in {back(sweep % back(centred))}",
    }[way]
    d.note = f"{way} along {'columns' if columns else 'rows'}{', by index' if by_index else ''}, {kind}"
    rows = f"{'transpose(a)' if columns else 'a'} |> map(\\r ->\n    {body})"
    d.define("backwards", [("a", array([n, m], kind))], rows + (" |> transpose" if columns and d.often(0.7) else ""))


CLASSES = {f.__name__: f for f in (elementwise, windows, folds, prefixes, rows, contractions,
                                   pipelines, steps, gathers, indexed, keyed, nested,
                                   fields, instances, blocks, recurrences, backwards)}


def write(seed, n, folder):
    """Draws n programs, a class after another from that of the seed; yields the path of each in the folder, and its small
    sizes as text."""
    names = list(CLASSES)
    for number in range(n):
        program = draw(seed, number, names[(seed + number) % len(names)])
        path = f"{folder}/{program.klass}-{number}.fw"
        with open(path, "w", encoding="utf-8") as f:
            f.write(program.text)
        yield path, sizes_text(program.small())


def draw(seed, number, klass):
    d = Draw(random.Random(f"{seed} {number} {klass}"))
    CLASSES[klass](d)
    return Program(klass, seed, number, d)
