#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs at many points on several devices with --math strict: how many results differ in a bit.

Every point's outputs are compared with those of the plain kernel on the host, for equality. A zero may have
either sign, and what is no number any payload. Programs that say why they cannot be equal (`not to the
bit, because of exp`) are named and not counted. The last line is `N passed, N failed`: points whose
results are the same, and others.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
import alarms  # noqa: E402
import programs  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="points that differ with --math strict")
    parser.add_argument("--devices", "-d", default="opencl:0,host", help="separated by commas")
    parser.add_argument("--points", type=int, default=200, help="of each program on each device")
    parser.add_argument("--size", type=int, default=75)
    parser.add_argument("--share", default="1/1", metavar="I/N", help="every N-th program, from the I-th on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", metavar="HASH", help="the seed is this number instead, in base 16")
    parser.add_argument("--population", type=int, default=0, metavar="N", help="and N random programs, a class after another")
    parser.add_argument("--jobs", type=int, default=1, help="tunings at a time")
    parser.add_argument("programs", nargs="*", help="the examples and the programs beside this file if none is named")
    o = parser.parse_args()
    seed = int(o.commit[:7], 16) if o.commit else o.seed
    first, step = (int(n) for n in o.share.split("/"))
    files = o.programs or sorted(glob.glob(f"{alarms.HERE}/../../examples/*.fw")) + sorted(glob.glob(f"{alarms.HERE}/*.fw"))
    same = other = 0
    # One store: what a device reaches is measured once.
    folder = tempfile.TemporaryDirectory(prefix="forewarp-strict-")
    sized = []
    for file in files[first - 1 :: step]:
        with open(file, encoding="utf-8") as f:
            one = "," not in re.search(r"^size (.*)", f.read(), re.M)[1]  # it needs more for as many elements
        sized.append((file, alarms.sizes(file, o.size * (30 if one else 1))))
    sized += programs.write(seed, o.population, folder.name)
    runs = [(file, device, fit) for file, fit in sized for device in o.devices.split(",")]

    def one(run):
        return run, alarms.tune(*run, o.points, seed, folder.name, "--math", "strict")

    with alarms.pool(o.jobs) as pool:
        done = concurrent.futures.as_completed([pool.submit(one, run) for run in runs])
        for (file, device, fit), text in (future.result() for future in done):
            count = {status: int(n) for n, status in alarms.COUNTS.findall(text)}
            why = re.search(r"not to the bit, because of (\w+)", text)
            strict = "every point must give its bits" in text
            print(f"{os.path.basename(file)} on {device}: {count}{'; not promised because of ' + why[1] if why else ''}"
                  f"{'' if strict or why else '; ' + text}", flush=True)
            if not why:
                same += count.get("ok", 0)
                other += count.get("wrong-result", 0) + (not strict or not count.get("ok"))
    print(f"seed {seed}")
    print(f"{same} passed, {other} failed")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
