#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong kernels of random programs: how many are taken for right.

Draws programs (bench/programs.py), and for each lets test_mutants spoil kernels of random points
and judge them as a tuning judges its best. A mutant that passes and is wrong for inputs drawn
anew has escaped: there may be none. The last line is `N passed, N failed`: mutants caught, and
escaped. Needs build/test/tune/test_mutants.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, f"{ROOT}/bench")
import programs  # noqa: E402

FOUND = re.compile(r": (\d+) mutants caught, (\d+) right for all inputs, (\d+) not built, (\d+) escaped")


def main():
    parser = argparse.ArgumentParser(description="wrong kernels that are taken for right")
    parser.add_argument("--device", "-d", default="host")
    parser.add_argument("--mutants", type=int, default=20, help="of each program")
    parser.add_argument("--programs", type=int, default=22)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", metavar="HASH", help="the seed is this number instead, in base 16")
    o = parser.parse_args()
    seed = int(o.commit[:7], 16) if o.commit else o.seed
    classes = list(programs.CLASSES)
    caught = same = escaped = broken = 0
    with tempfile.TemporaryDirectory(prefix="forewarp-mutants-") as folder:
        for i in range(o.programs):
            program = programs.draw(seed, i // len(classes), classes[i % len(classes)])
            file = f"{folder}/p{i}.fw"
            with open(file, "w", encoding="utf-8") as f:
                f.write(program.text)
            done = subprocess.run(
                [f"{ROOT}/build/test/tune/test_mutants", file, programs.sizes_text(program.small()),
                 o.device, str(seed + i), str(o.mutants)],
                capture_output=True, text=True, check=False,
            )
            found = FOUND.search(done.stdout)
            if done.returncode or not found:
                print(f"{program.text}\n{done.stdout}{done.stderr}", flush=True)
            broken += not found
            caught += int(found[1]) if found else 0
            same += int(found[2]) if found else 0
            escaped += int(found[4]) if found else 0
    print(f"seed {seed}: {same} mutants were right for all inputs")
    print(f"{caught} passed, {escaped + broken} failed")
    return 1 if escaped or broken or not caught else 0


if __name__ == "__main__":
    sys.exit(main())
