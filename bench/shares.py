# SPDX-License-Identifier: Apache-2.0
"""Runs forewarp for bench/population and bench/cliffs, and takes shares of the roofline from it.

Every command has a limit of time, after which its whole process group is ended; nothing that
it does ends the caller. A share is forewarp's own: the roofline that `tune --json` names over the
time of a point. The plain point, the first one picked (`first_pick` of `tune --json`: the
point tried first after the plain one, whichever trial ends first) and the best come from one
`tune` without stored trials.
"""
import argparse
import fractions
import glob
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time

import programs

ERRORS = ("wrong-result", "build-failed", "crashed", "failed", "timed-out")

class Forewarp:
    """The program under test, with a store and folder of its own. limit_s: of a command, for
    data, the reference, the device's rates and compilers; a search may take four budgets more."""

    def __init__(self, path, folder, limit_s):
        self.path, self.folder, self.limit_s = os.path.abspath(path), folder, limit_s
        self.store = os.path.join(folder, "trials.db")
        self.copies = set()  # (device, bytes) of copies whose rate is known
        os.makedirs(folder, exist_ok=True)

    def call(self, *args, more=0):
        """Exit status (None: out of time), standard output, standard error."""
        p = subprocess.Popen([self.path, *map(str, args)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, errors="replace",
                             stdin=subprocess.DEVNULL, start_new_session=True)
        limit = self.limit_s + more
        try:
            out, err = p.communicate(timeout=limit)
            return p.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()
            return None, "", f"no end after {limit:g} s"
        except BaseException:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            raise

    def devices(self, wanted):
        """What `devices` says of those wanted that are present, in their order."""
        status, out, err = self.call("devices", "--json", "-")
        if status != 0:
            raise SystemExit(f"{self.path} devices: {err}")
        present = {d["id"]: d for d in json.loads(out)}
        for name in wanted:
            if name not in present:
                print(f"no device {name} here")
        return [present[name] for name in wanted if name in present]

    def shapes(self, path):
        """What `check --json` says of a program, or None."""
        status, out, _ = self.call("check", path, "--json", "-")
        return json.loads(out) if status == 0 else None

    def work(self, path, sizes):
        """Bytes and operations of the plain kernel at sizes; None where it cannot count."""
        status, out, _ = self.call("count", path, "-s", programs.sizes_text(sizes), "--json",
                                   "-")
        if status != 0:
            return None
        moved = operations = 0
        for count in json.loads(out)["counts"]:
            value = float(fractions.Fraction(count["value"].removeprefix("about ")))
            moved += value if count["property"] == "arrays" else 0
            operations += value if count["unit"] == "operations" else 0
        return moved, operations


def kind_of_failure(status, message):
    """refused, crashed, wrong or no result, of a command that did not succeed."""
    if status is None:
        return "no result"
    if status == 2:
        return "refused"
    if status < 0 or status > 2:
        return "crashed"
    if "wrong-result" in message:
        return "wrong"
    return "crashed" if "crashed" in message else "no result"


def elements(shape, sizes):
    count = 1
    for length in shape:
        count *= eval(str(length).replace("/", "//"), {"min": min, "max": max}, dict(sizes))
    return count


def bytes_of(shapes, sizes):
    """Of inputs and outputs."""
    width = {"bool": 1, "half": 2, "double": 8}
    return sum(elements(a["shape"], sizes) * width.get(a["element"], 4)
               for a in shapes["inputs"] + shapes["outputs"])


def fit_sizes(fw, path, sizes_at, most_bytes, most_operations, operations_at=None):
    """The sizes of the largest scale at which the program moves and computes no more: by
    operations_at(sizes), or what its plain kernel does."""
    shapes = fw.shapes(path)
    if not shapes:
        return None

    def fits(scale):
        sizes = sizes_at(scale)
        if max(sizes.values()) > 2**30 or bytes_of(shapes, sizes) > most_bytes:
            return False
        moved, operations = fw.work(path, sizes) or (0, 0)
        if operations_at:
            operations = operations_at(sizes)
        return moved <= most_bytes and operations <= most_operations

    low, high = 0.0, 31.0  # log2
    for _ in range(9):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(2**middle) else (low, middle)
    return sizes_at(2**low)


def point_text(run, trial):
    return " ".join(f"{p['name']}={p['values'][c]}"
                    for p, c in zip(run["parameters"], trial[0]))


def read_json(path):
    """None of a file that is not there, or was not written to its end."""
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def tune(fw, path, sizes, device, budget, *options):
    """Tunes without stored trials: (failure, message), result, record; these may be None."""
    out = os.path.join(fw.folder, "out")
    result = os.path.join(fw.folder, "result.json")
    shutil.rmtree(out, ignore_errors=True)
    if os.path.exists(result):
        os.remove(result)
    seconds = float(budget[:-1]) * {"s": 1, "m": 60, "t": 1}[budget[-1]]
    status, _, err = fw.call("tune", path, "-s", programs.sizes_text(sizes), "-d", device["id"],
                             "--budget", budget, "--fresh", "-q", "--json", result, "-o", out,
                             "--store", fw.store, *options, more=4 * seconds)
    records = glob.glob(os.path.join(out, "*.run.json"))
    record = read_json(records[0]) if records else None
    failure = (None, "") if status == 0 else (kind_of_failure(status, err), err.strip())
    return failure, read_json(result), record


def know_copy(fw, path, sizes, device):
    """Has the copy that bounds a program, of as many bytes as its inputs and outputs, measured once
    for each power of two, by tunings that have no limit in time: a short budget leaves no time for it."""
    shapes = fw.shapes(path)
    size = 1 << max(16, round(math.log2(max(bytes_of(shapes, sizes) if shapes else 1, 1))))
    key = device["id"], size
    if key in fw.copies:
        return
    fw.copies.add(key)
    copy = os.path.join(fw.folder, "copy.fw")
    with open(copy, "w") as f:
        f.write("size N\ndef copy(a: [N]float): [N]float = map(\\x -> x, a)\n")
    tune(fw, copy, {"N": size // 8}, device, "1t")


def shares(fw, path, sizes, device, budget):
    """Shares of the roofline of the plain, first and best point (None: no result), the points,
    the statuses of trials, what failed."""
    know_copy(fw, path, sizes, device)
    began = time.time()
    (failure, message), result, record = tune(fw, path, sizes, device, budget)
    row = {"plain": None, "first": None, "best": None, "first_point": None, "point": None,
           "failure": failure, "message": message, "failed_points": [], "trials": {}}
    row["seconds"] = round(time.time() - began, 1)
    if record:
        row["failed_points"] = failed_points(record)
    if not result:
        row["failure"] = failure or "no result"
        return row
    roofline = (result.get("roofline") or {}).get("ns")
    row["trials"], row["bytes"] = result["trials"], result["bytes"]
    row["plain_ns"], row["roofline_ns"] = result["baseline_ns"], roofline
    best = result["best"]
    row["point"], row["best_ns"] = best["point"], best["time_ns"]
    if not roofline:
        row["failure"], row["message"] = row["failure"] or "no roofline", message or "no roofline"
        return row

    def share(ns):
        return roofline / ns if ns and math.isfinite(ns) else None

    row["plain"], row["best"] = share(result["baseline_ns"]), share(best["time_ns"])
    row["first_point"] = result["first_pick"]
    for trial in record["trials"] if record else []:  # in the order in which they ended
        if trial[1] == "ok" and point_text(record, trial) == row["first_point"]:
            row["first"] = share(trial[2])
    return row


def predicted(fw, path, sizes, options):
    """Shares as `predict --shares` has them, as the rows of shares()."""
    began = time.time()
    row = {"plain": None, "first": None, "best": None, "first_point": None, "point": None,
           "failure": "refused", "message": "no sizes"}
    if not sizes:
        return row
    status, out, err = fw.call("predict", path, "-s", programs.sizes_text(sizes), "--shares",
                               "--device-model", options.predict, "-t", "cuda", "--budget",
                               options.budget or "3s", "--json", "-")
    row["failure"] = kind_of_failure(status, err) if status != 0 else None
    row["message"], row["seconds"] = err.strip(), round(time.time() - began, 1)
    said = json.loads(out) if status == 0 else {}
    for what, point in (("plain", "plain_point"), ("first", "first_point"), ("best", "point")):
        if said.get(what):
            row[what], row[point] = said[what]["share"], said[what]["point"]
    return row


def failed_points(record):
    """Points of a record whose kernels are wrong, or do not build or run: status, log."""
    return [{"point": point_text(record, t), "status": t[1], "message": t[9]}
            for t in record["trials"] if t[1] in ERRORS]


def limits_of(device, options):
    """Bytes and operations at full size, seconds of search."""
    cpu = device.get("cpu", False)
    most = options.bytes or (8 << 20 if cpu else 256 << 20)
    budget = options.budget or ("6s" if cpu else "20s")
    return most, (1e9 if cpu else 2e11), budget


def budget_of(text):
    if not re.fullmatch(r"\d+(\.\d+)?[smt]", text):
        raise argparse.ArgumentTypeError(f"{text}: 10s, 1m or 50t is meant")
    return text


def parse_bytes(text):
    match = re.fullmatch(r"([\d.]+)\s*([kMG]?)B?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text}: a number with k, M or G is meant")
    return int(float(match[1]) * {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}[match[2]])


def save(rows, path):
    """After every row: what ends the run from outside does not take the others with it."""
    if path:
        with open(path, "w") as f:
            json.dump(rows, f, indent=1)


def percent(share):
    return "-" if share is None else f"{100 * share:.1f}"


def options_common(parser):
    parser.add_argument("-d", "--device", action="append", default=[],
                        help="opencl:0 (default), host, cuda:0, ...; repeated for more")
    parser.add_argument("--forewarp", default=os.environ.get("FOREWARP", "build/forewarp"),
                        help="the program (build/forewarp)")
    parser.add_argument("--budget", type=budget_of, help="of each tuning, its reference included: 20s on GPUs, 6s on processors; or 50t")
    parser.add_argument("--bytes", type=parse_bytes, help="to move at full size: 256M on GPUs, 8M on processors")
    parser.add_argument("--limit", type=float, default=60,
                        help="seconds that a command may take, a search four budgets more (60)")
    parser.add_argument("--json", help="write all rows there, as they come")
    parser.add_argument("--minutes", type=float, default=0,
                        help="no program is begun later than that (0: all are)")
