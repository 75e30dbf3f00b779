#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Right programs at many points: how many are called wrong.

Tunes each program beside this file (folds that cancel, decisions on computed values, chaos),
and with --population others drawn at random (bench/programs.py), over points drawn at random,
and counts the trials that are `wrong-result`: none may be. The last line is
`N passed, N failed`: trials that were right, and false alarms. A file without a right trial is one too.
"""

import argparse
import concurrent.futures
import itertools
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, f"{HERE}/../../bench")
import programs  # noqa: E402

FOREWARP = os.path.abspath(os.environ.get("FOREWARP", "build/forewarp"))
COUNTS = re.compile(r"(\d+) (ok|wrong-result|build-failed|crashed|timed-out|failed|out-of-resources)")


def sizes(file, number):
    with open(file, encoding="utf-8") as f:
        text = f.read()
    names = re.search(r"^size (.*)", text, re.M)[1].replace("generic", "").split(",")
    return ",".join(f"{name.strip()}={number + 7 * k}" for k, name in enumerate(names))


def tune(file, device, fit, trials, seed, folder, *more):
    with open(file, encoding="utf-8") as f:
        text = f.read()
    if re.search(r"\bhalf\b", text) and device.startswith("opencl"):
        device = "host"  # PoCL has no halfs
    done = subprocess.run(
        [FOREWARP, "tune", file, "-s", fit, "-d", device, "--budget", f"{trials}t",
         "--strategy", "random", "--seed", str(seed), "--samples", "1", "-o", folder, *more],
        capture_output=True, text=True, check=False,
        env={**os.environ, "XDG_DATA_HOME": folder},
    )
    return done.stdout + done.stderr


def pool(jobs):
    """Threads that have a share of the cores each: a tuning starts as many workers as it has cores."""
    cores = sorted(os.sched_getaffinity(0))
    share = max(len(cores) // jobs, 1)
    number = itertools.count()

    def settle():
        first = next(number) * share
        os.sched_setaffinity(0, {cores[(first + k) % len(cores)] for k in range(share)})

    return concurrent.futures.ThreadPoolExecutor(jobs, initializer=settle)


def main():
    parser = argparse.ArgumentParser(description="right programs that are called wrong")
    parser.add_argument("--device", "-d", default="opencl:0")
    parser.add_argument("--points", type=int, default=200, help="of each program")
    parser.add_argument("--size", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", metavar="HASH", help="the seed is this number instead, in base 16")
    parser.add_argument("--population", type=int, default=0, metavar="N", help="and N random programs, a class after another")
    parser.add_argument("--jobs", type=int, default=1, help="tunings at a time")
    parser.add_argument("programs", nargs="*", help="those beside this file if none is named")
    o = parser.parse_args()
    seed = int(o.commit[:7], 16) if o.commit else o.seed
    files = o.programs or sorted(f"{HERE}/{f}" for f in os.listdir(HERE) if f.endswith(".fw"))
    right = wrong = 0
    folder = tempfile.TemporaryDirectory(prefix="forewarp-alarms-")  # one store: what a device reaches is measured once
    sized = [*((file, sizes(file, o.size)) for file in files), *programs.write(seed, o.population, folder.name)]

    def one(run):
        return run[0], tune(run[0], o.device, run[1], o.points, seed, folder.name)

    for file, text in pool(o.jobs).map(one, sized):
        count = {status: int(n) for n, status in COUNTS.findall(text)}
        reference = re.search(r"reference: (.*)", text)
        print(f"{os.path.basename(file)}: {count}; {reference[1] if reference else text}", flush=True)
        right += count.get("ok", 0)
        wrong += count.get("wrong-result", 0) + (not count.get("ok"))
    print(f"seed {seed}")
    print(f"{right} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
