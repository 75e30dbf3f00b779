#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random programs ranked for a GPU that is only described, and their kernels printed.

Draws programs, of each class of bench/programs.py in turn and as programs.py beside this file
does. Of each, a thousand points and the neighbours of the best are derived, lowered and
ranked by the model of the repository (`explore --derived --model`), at sizes that a GPU is
given; then the plain point and the first ones are printed. A finding is a command that
crashes or does not end, a program that cannot be ranked, or one of which no point can be
printed, and a point whose kernel the GPU cannot launch at a size at which the program fills
its memory: too much local memory, too many work-items of a group, groups along y or z, or
bytes that an item keeps. Of each program random points are asked, and what is ranked. A
finding is shown with its command and text; `--seed S --programs 1` repeats the finding of seed
S. The last line is `N passed, N failed`, a program each. Needs NumPy, and FOREWARP or
build/forewarp.

A point that is refused with a message is counted, and no finding: the tuner goes on to the
next. A ranking ends after 5 s, so a busy machine ranks fewer points. Nothing is compiled or
run, so values are not looked at: sanitize.py does that.
"""

import argparse
import csv
import multiprocessing
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass

sys.dont_write_bytecode = True  # beside the sources
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import programs as exact  # noqa: E402

sys.modules.pop("programs")
sys.path[:0] = [f"{ROOT}/bench"]
import programs as population  # noqa: E402

FOREWARP = os.path.abspath(os.environ.get("FOREWARP", "build/forewarp"))
MODEL = f"{ROOT}/data/models/gpu.json.gz"
DEVICE = ["--device-model", "nvidia-a100"]
ELEMENTS = 2**22  # about as many as the sizes of a program of a class multiply to
LARGE = 2**24  # the same, for points that are to be launched
LAUNCHED = 12  # random points of each program
LOCAL, GROUP, GROUPS, KEPT = 163 << 10, 1024, 65535, 512 << 10  # the limits of the device, for a launch that asks
CLASSES = [*population.CLASSES, None]  # None: programs.py


@dataclass
class Drawn:
    seed: int
    klass: str
    text: str
    sizes: dict
    large: dict


def draw(seed):
    klass = CLASSES[seed % len(CLASSES)]
    if klass is None:
        program = exact.draw(seed)
        return Drawn(seed, "any", program.text, program.sizes, program.sizes)
    program = population.draw(seed, 0, klass)
    free = sum(size.fixed is None for size in program.sizes)
    return Drawn(seed, klass, program.text, program.full(ELEMENTS ** (1 / max(free, 1))),
                 program.full(LARGE ** (1 / max(free, 1))))


class Finding(Exception):
    pass


def forewarp(*arguments):
    """Its status, 0 or 2, and what it prints; any other end is a finding."""
    command = [FOREWARP, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              timeout=300, check=False)
    except subprocess.TimeoutExpired:
        raise Finding(f"{shlex.join(command)}: no end after 300 s") from None
    if done.returncode not in (0, 2):
        raise Finding(f"{shlex.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def sizes_of(sizes):
    return ["-s", ",".join(f"{n}={v}" for n, v in sizes.items())] if sizes else []


def explore(program, file, *options):
    """The rows of an exploration, each a point and the features of its largest kernel."""
    status, text = forewarp("explore", file, *options, *DEVICE, "--derived", "-q", "--seed",
                            str(program.seed), "--csv", "-")
    if status != 0:
        raise Finding(f"it cannot be ranked: {text}")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def judge_launches(rows, sizes):
    """A finding if the device cannot launch the kernel of a row."""
    for row in rows:
        groups = [float(row[f"global{d}"]) / float(row[f"local{d}"]) for d in (1, 2)]
        kept, local, group = (float(row[name]) for name in
                              ("private_bytes", "local_memory_bytes", "group_size"))
        if local > LOCAL or group > GROUP or max(groups) > GROUPS or kept > KEPT:
            raise Finding(f"it cannot be launched at {sizes}: {row['expression']}: "
                          f"{local:g} B, {group:g} items, {groups} groups, {kept:g} B an item")


def rank(program, file, points):
    """How many points were printed, and how many refused: the plain one, and the first ones."""
    large = sizes_of(program.large)
    judge_launches(explore(program, file, *large, "-n", str(LAUNCHED)), large)
    sizes = sizes_of(program.sizes)
    rows = explore(program, file, *sizes, "--model", MODEL, "-n", str(points))
    judge_launches(rows, sizes)
    printed = refused = 0
    for row in rows:
        status, text = forewarp("emit", file, *sizes, *DEVICE, "-p", row["expression"])
        printed += status == 0
        refused += status != 0
    if printed == 0:
        raise Finding(f"no point of {refused} can be printed: {text}")
    return printed, refused


def judge(task):
    """How many points of the program of a seed were printed and refused; the finding or an empty text."""
    seed, points = task
    program = draw(seed)
    with tempfile.TemporaryDirectory(prefix="forewarp-ranked-") as folder:
        file = f"{folder}/p{seed}.fw"
        with open(file, "w", encoding="ascii") as f:
            f.write(program.text)
        try:
            return *rank(program, file, points), ""
        except Finding as finding:
            return 0, 0, f"== seed {seed}, {program.klass}:\n{program.text}{finding}"


def main():
    parser = argparse.ArgumentParser(description="random programs ranked for a described GPU")
    parser.add_argument("--seed", type=int, default=1, help="of the first program; the next ones follow")
    parser.add_argument("--commit", metavar="HASH", help="the seed is this number instead, in base 16")
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--points", type=int, default=6, help="of each that are printed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    o = parser.parse_args()
    if o.commit:
        o.seed = int(o.commit[:7], 16)
        print(f"seed {o.seed}, from commit {o.commit}", flush=True)
    tasks = [(seed, o.points) for seed in range(o.seed, o.seed + o.programs)]
    printed = refused = failed = 0
    with multiprocessing.Pool(o.jobs) as pool:
        for good, bad, finding in pool.imap(judge, tasks):
            printed += good
            refused += bad
            failed += bool(finding)
            if finding:
                print(finding, flush=True)
    print(f"{o.programs} programs from seed {o.seed}: {printed} points printed, {refused} refused")
    print(f"{o.programs - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
