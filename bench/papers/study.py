# SPDX-License-Identifier: Apache-2.0
"""A study: many stencils recorded on one device, and what the strategy of paper 001 would have
found in each (sections 5 and 8). A folder of cache files, which data/stencils/record.sh makes,
with an index.csv that says what each stencil is.

The product follows the heuristics (forewarp replay --strategy FILE.fwh) on the part of a record
that one way to load data has, and its forest predicts the ways (forewarp eval loading)."""

import math
import os
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field

from common import FILES_MOST, ROOT, Record, fail, forewarp, read_bytes

HEADER = "file,sample,parts,kernel,points,dims,density,unique,adds,muls"
# The heuristics: their files, recorded as part, as the tables have them.
STUDIED = {
    "dimension": ("dimension", "by dimension"),
    "optimisation": ("optimisation", "by optimisation"),
    "hybrid": ("hybrid", "hybrid"),
    "restricted": ("hybrid", "hybrid, restricted"),
    "variable": ("variable", "hybrid, any work-group"),
    "expert": ("expert", "ExpS"),
}
LOADS = ("global", "vector", "local", "image")
ANY = "any"
SHAPE = ("lx", "ly", "lz")
LOADING_KEYS = ("scheme", "vec", "bx")  # one optimisation


@dataclass
class Found:
    """What a strategy came to; done: it could be followed."""

    done: bool = False
    ns: float = math.inf
    best: int = -1  # its place in the record
    configs: int = 0
    kernels: int = 0  # those for work-groups of any shape are built once
    build_s: float = 0.0
    run_s: float = 0.0
    cost_s: float = 0.0


class Stencil:
    def __init__(self, folder, cells, wrong):
        self.file, sample, parts, self.kernel = cells[:4]
        try:
            self.sample, self.points, self.dims = int(sample), float(cells[4]), int(cells[5])
            self.adds, self.muls = int(cells[8]), int(cells[9])
            ok = float(cells[6]) > 0 and cells[7] in ("none", "x", "y", "z")
        except ValueError:
            ok = False
        if not ok or self.sample < 1 or self.points < 0 or min(self.dims, self.adds, self.muls) < 1:
            wrong("a value is not what its column wants")
        self.parts, self.density, self.unique = parts.split("+"), cells[6], cells[7]
        self.folder = folder
        self.record = Record(os.path.join(folder, self.file))
        size = self.record.size if isinstance(self.record.size, list) else []
        if self.is_stencil and len(size) < 3:
            fail(2, f"{self.file} does not say three sizes")
        self.size = tuple((size + [1, 1, 1])[:3])
        # The first point of a record is the plain one; Rand begins with the second.
        self.rand = range(1, min(self.sample + 1, len(self.record.point)))
        self.random = self.follow(self.rand)
        if math.isinf(self.random.ns):
            fail(2, f"{self.file}: nothing of Rand ran")
        self.found = {h: {} for h in STUDIED}
        self.passes = {}
        self.best = {}  # the loading that turned out best; none: there is none
        self.picked = {}  # by a forest that has not seen this stencil

    @property
    def is_stencil(self):
        return self.points > 0

    @property
    def is_cube(self):
        return len(set(self.size)) == 1

    @property
    def is_dense(self):
        return self.adds + self.muls > 2

    # Its space ---------------------------------------------------------------------------

    def loading(self, i):
        scheme = self.record.value(i, "scheme", "global")
        if scheme in ("tiled", "padded"):
            return "local"
        if scheme == "image":
            return "image"
        return "vector" if self.record.value(i, "vec") > 1 else "global"

    def is_papers(self, i):
        """Is it of the space of section 4.7? Outputs are merged in x only, as far as a vector
        covers them, and vectors are of global memory."""
        value = self.record.value
        vec = value(i, "vec")
        return (value(i, "by") == 1 and value(i, "bz") == 1 and value(i, "walk") == 1 and
                value(i, "bx") == vec and (vec == 1 or self.loading(i) == "vector") and
                value(i, "border", "inline") != "split")

    def any_group(self, i):
        return self.record.value(i, "group", "fixed") == "any"

    def all_loads(self, i):
        return self.record.value(i, "loads", "once") == "all"

    def is_plain(self, i):
        return self.is_papers(i) and not self.any_group(i) and not self.all_loads(i)

    def part(self, load, any_group):
        """The points that a heuristic searches. A program that is no stencil has one part."""
        if not self.is_stencil:
            return self.record.numbered if load == ANY else []
        return [i for i in self.record.numbered
                if self.is_papers(i) and not self.all_loads(i) and
                (any_group or not self.any_group(i)) and load in (ANY, self.loading(i))]

    def changed(self, i, **values):
        """The place of a point that differs in some values; None: that was not recorded."""
        known = {key: {point[k] for point in self.record.point}
                 for k, key in enumerate(self.record.keys) if key in values}
        point = tuple(values[key] if key in known and values[key] in known[key] else old
                      for key, old in zip(self.record.keys, self.record.point[i]))
        return self.record.at.get(point)

    def translate(self, other, point):
        """The place here of a point of another record; None: it was not recorded. Records of
        different days differ in parameters: where one lacks a parameter, its kernels are those
        of the plain point's value in the other."""
        plain = dict(zip(other.record.keys, other.record.point[0]))
        own = dict(self.record.values(0))
        for key, value in zip(other.record.keys, point):
            if key in own:
                own[key] = value
            elif value != plain[key]:
                return None
        return self.record.at.get(tuple(own[key] for key in self.record.keys))

    # Strategies --------------------------------------------------------------------------

    def follow(self, asked):
        found, built, record = Found(done=True), set(), self.record
        for i in asked:
            kernel = tuple(v for key, v in zip(record.keys, record.point[i]) if key not in SHAPE)
            known = self.any_group(i) and kernel in built
            built.add(kernel)
            build_s = 0.0 if known else record.build_s[i]
            found.configs += 1
            found.kernels += not known
            found.build_s += build_s
            found.run_s += record.run_s[i]
            found.cost_s += build_s + record.run_s[i]
            if record.ns[i] < found.ns:
                found.ns, found.best = record.ns[i], i
        return found

    def loads(self, studied):
        """Those that a heuristic is followed with."""
        if STUDIED[studied][0] not in self.parts:
            return []
        if studied == "expert" or not self.is_stencil:
            return [ANY]
        # A tile has the shape of its group.
        return [l for l in LOADS if f"without_{l}" not in self.parts and
                (studied != "variable" or l != "local")]

    def find_best(self):
        for studied, found in self.found.items():
            ran = [l for l in LOADS if l in found and math.isfinite(found[l].ns)]
            if not self.is_stencil and ANY in found:
                self.best[studied] = self.picked[studied] = ANY
            elif ran:
                self.best[studied] = min(ran, key=lambda l: found[l].ns)

    def by_picked(self, studied):
        return self.found[studied].get(self.picked.get(studied), Found())

    def by_best(self, studied):
        """With the best of all, at the costs of trying all."""
        found = self.found[studied]
        if self.best.get(studied) == ANY:
            return found[ANY]
        total = Found()
        for one in (found[l] for l in LOADS if l in found):
            total.done = True
            for cost in "configs", "kernels", "build_s", "run_s", "cost_s":
                setattr(total, cost, getattr(total, cost) + getattr(one, cost))
            if one.ns < total.ns:
                total.ns, total.best = one.ns, one.best
        return total

    # Questions ---------------------------------------------------------------------------

    def gflops(self, ns):
        return math.prod(self.size) * self.points * (self.adds + self.muls) / ns

    def expected(self, n):
        """Rand as if it had stopped after n: the mean of the best over all choices of n of its
        points, and their standard deviation. The best of n of m points is the k-th fastest with
        probability C(m - k, n - 1) / C(m, n). Choices of failures alone are left out."""
        times = sorted(self.record.ns[i] for i in self.rand)
        m = len(times)
        share, total, squares, weight = n / m, 0.0, 0.0, 0.0
        for k in range(m - n + 1):
            if math.isinf(times[k]):
                break
            weight += share
            total += share * times[k]
            squares += share * times[k] ** 2
            share *= (m - k - n) / (m - k - 1) if m - k > 1 else 0
        mean = total / weight
        return mean, math.sqrt(max(squares / weight - mean * mean, 0))

    def independent(self):
        """The best point of Rand with each optimisation set to the value that is best while the
        others stay (section 5.5)."""
        record, base = self.record, self.record.point[self.random.best]
        best, point = {}, list(base)
        for i in record.numbered:
            other = record.point[i]
            differs = [k for k in range(len(base)) if base[k] != other[k]]
            kinds = {"loading" if record.keys[k] in LOADING_KEYS else k for k in differs}
            if len(kinds) != 1 or not self.is_plain(i):
                continue
            kind = kinds.pop()
            if record.ns[i] >= best.get(kind, self.random.ns):
                continue
            best[kind] = record.ns[i]
            for k, key in enumerate(record.keys):
                if k == kind or (kind == "loading" and key in LOADING_KEYS):
                    point[k] = other[k]
        return tuple(point)

    def merged(self):
        """The fastest point with by or bz above 1: its place, and the time of the same point
        without over its own."""
        record, least, gain, place = self.record, math.inf, math.nan, None
        for i in record.numbered:
            if max(record.value(i, "by"), record.value(i, "bz")) <= 1 or record.ns[i] >= least or \
                    self.any_group(i) or self.all_loads(i):
                continue
            base = self.changed(i, by=1, bz=1)
            if base is not None:
                least, place = record.ns[i], i
                gain = record.ns[base] / least
        return place, gain

    def removal(self, i):
        """What removing equal loads gains at a point: the time of the same kernel with all
        loads over its own."""
        other = self.changed(i, loads="all") if "loads" in self.record.keys else None
        return math.nan if other is None or other == i else self.record.ns[other] / self.record.ns[i]

    def predicted_ns(self):
        """By place in the record, from the weights of a device (NAME.predicted.gz beside the
        record, which data/stencils/predict.sh makes), nan: not predicted. None: no such file."""
        path = os.path.join(self.folder, self.file.split(".")[0] + ".predicted.gz")
        if not os.path.exists(path):
            return None
        lines, n = read_bytes(path).decode("utf-8", "replace").split("\n"), len(self.record.point)
        try:
            ns = [float(line) if line else math.nan for line in lines[:-1]]
            ok = len(ns) == n and not lines[-1] and not any(x <= 0 for x in ns)
        except ValueError:
            ok = False
        if not ok:
            fail(2, f"{path}: it wants a line for each of {n} points, with a time in nanoseconds "
                    "or nothing")
        return dict(zip(self.record.numbered, ns))


@dataclass
class Study:
    folder: str
    stencils: list = field(default_factory=list)

    def __post_init__(self):
        path = os.path.join(self.folder, "index.csv")
        lines = read_bytes(path).decode().splitlines()
        if not lines or lines[0] != HEADER:
            fail(2, f"{path}:1: the first line must name the columns")
        for number, line in enumerate(lines[1:], 2):
            def wrong(what, number=number):
                fail(2, f"{path}:{number}: {what}")
            cells = line.split(",")
            if len(cells) != HEADER.count(",") + 1:
                wrong("ten columns are wanted")
            self.stencils.append(Stencil(self.folder, cells, wrong))
        if not self.stencils:
            fail(2, f"{path}: there are no stencils")
        self.size = Counter(s.size for s in self.stencils).most_common(1)[0][0]
        self.device = self.stencils[0].record.device

    def is_main(self, s):
        """Is it of those that models are fitted to: of the size most are of, with one addition
        and one multiplication a point?"""
        return s.adds == s.muls == 1 and (not s.is_stencil or s.size == self.size)

    @property
    def main(self):
        return [s for s in self.stencils if self.is_main(s)]

    # Heuristics --------------------------------------------------------------------------

    def follow(self, studied=STUDIED, passes=()):
        """Follows heuristics; by dimension also with so many passes at most, over the loading
        that is best of all (section 8.3.1)."""
        with tempfile.TemporaryDirectory() as folder:
            parts = {}
            for h in studied:
                tasks = [(s, l) for s in self.stencils for l in s.loads(h)]
                steps = os.path.join(ROOT, "heuristics", h + ".fwh")
                for s, l, found in self.replay(folder, parts, steps, tasks, h == "variable"):
                    s.found[h][l] = found
            for s in self.stencils:
                s.find_best()
            text = open(os.path.join(ROOT, "heuristics/dimension.fwh"), encoding="utf-8").read()
            for n in passes:
                steps = os.path.join(folder, f"{n}.fwh")
                with open(steps, "w", encoding="utf-8") as file:
                    file.write(re.sub(r"(?m)^( *repeat) \d+", rf"\1 {n}", text))
                tasks = [(s, s.best["dimension"]) for s in self.main if "dimension" in s.best]
                for s, _, found in self.replay(folder, parts, steps, tasks, False):
                    s.passes[n] = found

    def replay(self, folder, parts, steps, tasks, any_group):
        """Yields what the product finds, for each stencil and loading that has points."""
        wanted = []
        for s, l in tasks:
            key = (s.file, l, any_group)
            if key not in parts:
                points = s.part(l, any_group)
                parts[key] = (os.path.join(folder, f"{len(parts)}.json"), points)
                if points:
                    s.record.write_part(*parts[key])
            if parts[key][1]:
                wanted.append((s, l, *parts[key]))
        for at in range(0, len(wanted), FILES_MOST):
            some = wanted[at:at + FILES_MOST]
            result = forewarp("replay", *(path for _, _, path, _ in some), "--strategy", steps)
            for (s, l, _, points), run in zip(some, result["runs"]):
                yield s, l, s.follow(points[k] for k in run["asked"])

    # The forest --------------------------------------------------------------------------

    def write_loadings(self, path, studied, rows, fitted):
        """What the product reads: how stencils load their data, and what that comes to."""
        with open(path, "w", encoding="utf-8") as file:
            print(f"# device: {self.device}", file=file)
            print("stencil,points,dims,density,unique,adds,muls,fitted", *LOADS, sep=",", file=file)
            for s in rows:
                found = (s.found[studied].get(l, Found()).ns for l in LOADS)
                print(s.kernel, int(s.points), s.dims, s.density, s.unique, s.adds, s.muls,
                      int(fitted(s)), *(repr(ns) if math.isfinite(ns) else "" for ns in found),
                      sep=",", file=file)

    def rows(self, studied):
        return [s for s in self.stencils if s.is_stencil and studied in s.best]

    def predict(self, studied=STUDIED):
        """The loading of each stencil, by a forest fitted to the others of the main set. Those
        of higher arithmetic have a model of their own, fitted to them and the main set."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "loading.csv")
            for h in studied:
                rows = self.rows(h)
                for size in {None} | {s.size for s in rows if s.is_dense}:
                    asked = [s for s in rows if (s.size if s.is_dense else None) == size]
                    if not asked:
                        continue
                    self.write_loadings(path, h, rows, lambda s, size=size:
                                        self.is_main(s) or s.is_dense and s.size == size)
                    result = forewarp("eval", "loading", path)["stencils"]
                    for s, row in zip(rows, result):
                        if s in asked and row["picked"]:
                            s.picked[h] = row["picked"]
