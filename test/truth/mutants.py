#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong kernels of random programs: how many are taken for right.

Takes programs of three sources in turn (classes of bench/programs.py, test/random/programs.py, the examples and
the files beside this one), and for each lets test_mutants spoil kernels of random points and judge them as
a tuning judges its best. A mutant that passes and is wrong for inputs drawn anew has escaped: there may be
none. The last line is `N passed, N failed`: mutants caught, and escaped. Needs build/test/tune/test_mutants.
"""

import argparse
import concurrent.futures
import glob
import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

sys.path.insert(0, f"{ROOT}/bench")
import programs as classes  # noqa: E402


def module(name, path):
    """The other generator is called programs too."""
    spec = importlib.util.spec_from_file_location(name, f"{ROOT}/{path}")
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


patterns = module("patterns", "test/random/programs.py")
FILES = sorted(glob.glob(f"{ROOT}/examples/*.fw") + glob.glob(f"{HERE}/*.fw"))
FOUND = re.compile(r": (\d+) mutants caught, (\d+) right for all inputs, (\d+) not built, (\d+) escaped")


def of_class(seed, number, _):
    names = list(classes.CLASSES)
    program = classes.draw(seed, number // len(names), names[number % len(names)])
    return program.text, program.small(), f"{program.klass} {program.number}"


def of_patterns(seed, number, _):
    program = patterns.draw(seed + number)
    return program.text, program.sizes, f"patterns {seed + number}"


def of_files(_, number, rng):
    file = FILES[number % len(FILES)]
    with open(file, encoding="utf-8") as f:
        text = f.read()
    names = [name.split()[0] for name in re.search(r"^size (.*)", text, re.M)[1].split(",")]
    sizes = [5, 7, 9, 11] if len(names) > 2 else [17, 19, 23, 33, 37] if len(names) > 1 else [67, 131, 257, 1023]
    return text, {name: rng.choice(sizes) for name in names}, os.path.basename(file)


SOURCES = {"classes": of_class, "patterns": of_patterns, "files": of_files}


def judged(text, sizes, o, seed, folder):
    """Caught, right for all inputs, escaped; None: no mutant could be judged."""
    file = f"{folder}/{seed}.fw"
    with open(file, "w", encoding="utf-8") as f:
        f.write(text)
    bound = ",".join(f"{name}={value}" for name, value in sizes.items())
    done = subprocess.run([f"{ROOT}/build/test/tune/test_mutants", file, bound, o.device, str(seed), str(o.mutants), o.way],
                          capture_output=True, text=True, check=False)
    found = FOUND.search(done.stdout)
    if done.returncode or not found:
        print(f"{text}\n{bound}\n{done.stdout}{done.stderr}", flush=True)
    return found and (int(found[1]), int(found[2]), int(found[4]))


def main():
    parser = argparse.ArgumentParser(description="wrong kernels that are taken for right")
    parser.add_argument("--device", "-d", default="host")
    parser.add_argument("--mutants", type=int, default=20, help="of each program")
    parser.add_argument("--programs", type=int, default=22)
    parser.add_argument("--sources", default=",".join(SOURCES), help="separated by commas, in turn")
    parser.add_argument("--way", default="", help="only what is spoilt in this way, a beginning of a name in test_mutants.c")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", metavar="HASH", help="the seed is this number instead, in base 16")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    o = parser.parse_args()
    seed = int(o.commit[:7], 16) if o.commit else o.seed
    sources = [SOURCES[name] for name in o.sources.split(",")]
    first = random.Random(seed).randrange(1000)  # a few programs are not the same classes and files each time
    caught = same = escaped = broken = 0
    with tempfile.TemporaryDirectory(prefix="forewarp-mutants-") as folder, concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:

        def one(i):
            draw = sources[(first + i) % len(sources)]
            text, sizes, name = draw(seed, first + i // len(sources), random.Random(seed + i))
            return name, judged(text, sizes, o, seed + i, folder)

        for name, found in pool.map(one, range(o.programs)):
            print(f"{name}: " + ("%d caught, %d right for all inputs, %d escaped" % found if found else "not judged"), flush=True)
            broken += not found
            caught, same, escaped = (sum(x) for x in zip((caught, same, escaped), found or (0, 0, 0)))
    print(f"seed {seed}: {same} mutants were right for all inputs")
    print(f"{caught} passed, {escaped + broken} failed")
    return 1 if escaped or broken or not caught else 0


if __name__ == "__main__":
    sys.exit(main())
