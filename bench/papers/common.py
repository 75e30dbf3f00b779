# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder share: the product's program, recorded spaces, tables."""

import gzip
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILES_MOST = 63  # that forewarp takes in one command, with a word before them


def program():
    return os.environ.get("FOREWARP") or os.path.join(ROOT, "build", "forewarp")


def fail(status, message):
    print(message, file=sys.stderr)
    sys.exit(status)


def forewarp(*arguments):
    """The JSON that a command of the product writes; ends as the product does if that fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        command = [program(), *arguments, "--json", path]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            sys.exit(done.returncode)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def seen(numbers):
    """What a model sees of a row, as learn takes it: once for the many tables that a row is part of."""
    return json.dumps(numbers)[1:]


def learn(kind, rows, seed=1):
    """What models of a kind predict of each row, and how long that takes. Rows are a part from 0, a target or None, and what is
    seen: rows of a part are predicted by a model fitted to the targets of other parts."""
    with tempfile.NamedTemporaryFile("w", suffix=".table") as file:
        file.write("[" + ",".join(f"[{part}, {json.dumps(target)}, {text}" for part, target, text in rows) + "]")
        file.flush()
        return forewarp("eval", kind, file.name, "--seed", str(seed))


def kinds_of_models():
    """As `forewarp help models` lists them."""
    text = subprocess.run([program(), "help", "models"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split()[0] for line in text.splitlines() if line.startswith("  ")]


def read_bytes(path):
    """A file, unpacked if it is gzipped."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError) as error:
        return fail(1, f"cannot read {path}: {error}")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def seconds(value):
    """Milliseconds of a cache file, or a list of them."""
    items = value if isinstance(value, list) else [value]
    return sum(max(x, 0) for x in items if is_number(x)) * 1e-3


class Record:
    """A Kernel Tuner cache file: its points in the order in which they were run."""

    def __init__(self, path):
        try:
            root = json.loads(read_bytes(path))
            self.keys = root["tune_params_keys"]
            entries = list(root["cache"].values())
            self.point = [tuple(entry[key] for key in self.keys) for entry in entries]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            fail(2, f"{path}: no cache file: {error!r}")
        self.path, self.entries = path, entries
        self.name = os.path.basename(path).split(".json")[0]
        self.device = root.get("device_name") or ""
        self.size = root.get("problem_size")
        self.ns = [self.time_of(entry) for entry in entries]
        self.build_s = [seconds(entry.get("compile_time")) for entry in entries]
        self.run_s = [seconds(entry.get("times", entry.get("benchmark_time"))) for entry in entries]
        self.at = {point: i for i, point in enumerate(self.point)}
        # Numbered as the product does: by the places of their values in ascending order.
        self.numbered = sorted(self.at.values(), key=self.point.__getitem__)
        if not any(math.isfinite(ns) for ns in self.ns):
            fail(2, f"{path}: every configuration failed")

    @staticmethod
    def time_of(entry):
        value = entry.get("time")
        ran = is_number(value) and math.isfinite(value) and value < 1e20 and "__error__" not in entry
        return value * 1e6 if ran else math.inf

    def value(self, i, name, otherwise=1):
        return self.point[i][self.keys.index(name)] if name in self.keys else otherwise

    def values(self, i):
        return dict(zip(self.keys, self.point[i]))

    def write_part(self, path, points):
        """A record of some of the points, for the product."""
        cache = {}
        for k, i in enumerate(points):
            cache[str(k)] = dict(self.values(i), time=self.entries[i].get("time", "failed"))
            if "__error__" in self.entries[i]:
                cache[str(k)]["__error__"] = self.entries[i]["__error__"]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"tune_params_keys": self.keys, "objective": "time", "cache": cache}, file)


class Mean:
    """Numbers that are above 0 and finite; others are left out."""

    def __init__(self):
        self.x = []

    def add(self, x):
        if math.isfinite(x) and x > 0:
            self.x.append(x)

    @property
    def n(self):
        return len(self.x)

    def geometric(self):
        return math.exp(sum(math.log(x) for x in self.x) / self.n) if self.x else math.nan

    def plain(self):
        return sum(self.x) / self.n if self.x else math.nan


def ratio(a, b):
    """a / b, where b may be 0."""
    return a / b if b else math.nan


def number(value, decimals):
    return "-" if value is None or math.isnan(value) else f"{value:.{decimals}f}"


def print_table(rows, title=None):
    """The first row is the head; the first column is flush left."""
    if title:
        print(f"\n{title}")
    width = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    for i, row in enumerate(rows):
        cells = [cell.rjust(w) if c else cell.ljust(w if len(row) > 1 else 0)
                 for c, (cell, w) in enumerate(zip(row, width))]
        print("  " + "  ".join(cells))
        if i == 0:
            print("  " + "-" * (sum(width) + 2 * (len(width) - 1)))
