# SPDX-License-Identifier: Apache-2.0
"""Programs whose elements are written by index, `array2(N, M, \\i j -> ...)`, as loops would be.

A class of bench/programs.py: contractions of operands whose axes are in any order, rows, folds and
prefixes along either axis, windows with a guard, a clamp or a turn around, convolutions.
"""
import programs as p


def lambda_of(names):
    return "\\" + " ".join(names)


def over(sizes, names, body):
    """The array over all sizes, as one pattern or one in another."""
    return f"{'array' if len(sizes) == 1 else f'array{len(sizes)}'}({', '.join(sizes)}, " \
           f"{lambda_of(names)} -> {body})"


def fold(kind, size, name, value):
    start = p.zero(kind)
    return f"reduce(+, {start}, array({size}, \\{name} -> {value}))"


def lifted(kind, value):
    return f"float({value})" if kind == "half" else value


def operand(d, name, axes, lengths, kind):
    """An array over these axes in some order: its parameter, and an element of it."""
    order = list(axes)
    d.rng.shuffle(order)
    element = name + "".join(f"[{a}]" for a in order)
    return (name, p.array([lengths[a] for a in order], kind)), lifted(kind, element)


def contraction(d, kind):
    d.terms = 1
    d.odd = d.often(0.4)
    lengths = {a: d.size(n, d.pick(5, 7, 17, 33), d.pick(0.5, 1, 1, 2))
               for a, n in zip("ijk", "NMK")}
    batch = d.often(0.3)
    if batch:
        lengths["g"] = d.size("B", d.pick(2, 3), fixed=d.pick(4, 16))
    out = list("gij" if batch else "ij")
    left, x = operand(d, "a", "gik" if batch else "ik", lengths, kind)
    right, y = operand(d, "b", "gkj" if batch and d.often(0.6) else "kj", lengths, kind)
    params, value = [left, right], d.pick(f"{x} * {y}", f"{x} * {y}", f"({x} - {y}) * ({x} - {y})")
    up = p.wide(kind)
    value = fold(kind, lengths["k"], "k", value)
    if d.often(0.4):
        params.append(("c", p.array([lengths["j"]], up)))
        value = f"{d.pick('max', 'min')}({value} + c[j], 0)" if kind != "int" else f"{value} + c[j]"
    apart = d.often(0.5)
    text = over([lengths[a] for a in out], out, value)
    if apart and batch:
        text = over([lengths["g"]], "g", over([lengths["i"], lengths["j"]], "ij", value))
    elif apart:
        text = over([lengths["i"]], "i", over([lengths["j"]], "j", value))
    return params, text, "contraction"


def rows(d, kind):
    n, m = d.size("N", d.pick(5, 9)), d.size("M", d.pick(9, 67), fixed=d.pick(255, 1024, 4096, 5000))
    up = "float" if kind in ("half", "int") else kind
    x = f"{up}(a[i][k])" if up != kind else "a[i][k]"
    here = x.replace("[k]", "[j]")
    first = d.pick(f"reduce(max, {p.LEAST[up]}, array({m}, \\k -> {x}))",
                   f"{fold(up, m, 'k', x)} / {up}({m})")
    second = fold(up, m, "k", d.pick(f"exp({x} - s)", f"({x} - s) * ({x} - s)", f"abs({x} - s)"))
    last = d.pick(f"({here} - s) / (1 + t)", f"exp({here} - s) / t", f"({here} - s) * rsqrt(t + 1)")
    let = f"let s = {first} in\n    let t = {second} in\n    "
    whole = d.often(0.5)
    body = over([n, m], "ij", let + last) if whole else over([n], "i", let + over([m], "j", last))
    return [("a", p.array([n, m], kind))], body, "rows"


def columns(d, kind):
    n, m = d.grid(2)
    up = p.wide(kind)
    x = lifted(kind, "a[i][j]")
    if d.often(0.5):
        value = fold(kind, n, "i", p.binary(d, kind if kind == "int" else up, x, x))
        return [("a", p.array([n, m], kind))], over([m], "j", value), "folds of columns"
    scan = f"scan(+, {p.zero(kind)}, array({n}, \\i -> {x}))"
    text = f"transpose({over([m], 'j', scan)})"
    if d.often(0.5):
        scan = f"scan(+, {p.zero(kind)}, array({m}, \\j -> {x}))"
        text = over([n], "i", scan)
    return [("a", p.array([n, m], kind))], text, "prefixes"


def window(d, kind):
    n, m = d.grid(2)
    reach = d.pick(1, 2)
    way = d.pick("clamp", "wrap", "guard")
    terms = []
    for dy, dx in d.pick([(-1, 0), (1, 0), (0, -1), (0, 1), (0, 0)], [(0, -1), (0, 1)],
                         [(-1, -1), (-1, 1), (1, -1), (1, 1), (0, 0)]):
        y, x = f"i + {dy * reach}", f"j + {dx * reach}"
        if way == "clamp":
            terms.append(f"a[min(max({y}, 0), {n} - 1)][min(max({x}, 0), {m} - 1)]")
        elif way == "wrap":
            terms.append(f"a[({y} + {n}) % {n}][({x} + {m}) % {m}]")
        else:
            inside = f"{y} >= 0 && {y} < {n} && {x} >= 0 && {x} < {m}"
            terms.append(f"(if {inside} then a[{y}][{x}] else {kind}(0))")
    body = over([n, m], "ij", "\n    + ".join(terms))
    return [("a", p.array([n, m], kind))], body, f"window, {way}"


def convolution(d, kind):
    c, o = d.size("C", d.pick(3, 5), fixed=d.pick(3, 16, 32)), d.size("O", 3, fixed=d.pick(8, 32))
    n, m = d.size("N", d.pick(5, 7)), d.size("M", d.pick(5, 9))
    w = d.pick(1, 3, 3, 5)
    d.terms = w * w
    params = [("x", p.array([c, n, m], kind)), ("f", p.array([o, c, w, w], kind))]
    if d.often(0.5):
        r = w // 2
        inside = f"i + u >= {r} && i + u < {n} + {r} && j + v >= {r} && j + v < {m} + {r}"
        value = lifted(kind, f"f[o][c][u][v] * x[c][i + u - {r}][j + v - {r}]")
        value = f"if {inside} then {value} else {p.zero(kind)}"
        for size, name in ((w, "v"), (w, "u"), (c, "c")):
            value = fold(kind, size, name, value)
        return params, over([o, n, m], "oij", value), f"convolution, {w} x {w}, guarded"
    both = "\\a b -> a * b" if kind != "half" else "\\a b -> float(a) * float(b)"
    inner = f"reduce(+, {p.zero(kind)}, map({both}, zip(join(g[c]), join(w[c][i][j]))))"
    text = f"let w = x |> map(\\q -> q |> pad2({w // 2}, {w // 2}, {d.pick('0', 'clamp')}) " \
           f"|> slide2({w}, 1)) in\n  " \
           f"f |> map(\\g -> {over([n, m], 'ij', fold(kind, c, 'c', inner))})"
    return params, text, f"convolution, {w} x {w}, of windows"


def indexed(d):
    kind = d.type()
    params, text, way = d.pick(contraction, contraction, rows, columns, window, convolution)(d, kind)
    d.note = f"{way}, {kind}"
    d.define("indexed", params, text)
