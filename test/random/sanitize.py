#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random programs as C, with exact buffers under sanitizers, against NumPy.

Draws programs (programs.py), prints each as C for the default point and for points at random of
the spaces of a processor and of a GPU, compiles many of them at once under the address and
undefined-behaviour sanitizers, and runs each in a process of its own with buffers of exactly
the bytes that it needs. A finding is a program that is not printed, is not compiled, reads or
writes where it must not, or gives other values than NumPy; it is shown with its seed, point and
text. `--seed S --programs 1`, with the same --points, repeats the finding of seed S. The last line is
`N passed, N failed`, a program and point each. Needs FOREWARP or build/forewarp, and gcc.

Not tried are kernels whose work-items wait for each other in a way that C cannot express, and
texts so long that the sanitizers take minutes. Nor are programs measured or searched: other
tests do that.
"""

import argparse
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

sys.dont_write_bytecode = True  # beside the sources
import programs  # noqa: E402
from arrays import np  # noqa: E402

FOREWARP = os.path.abspath(os.environ.get("FOREWARP", "build/forewarp"))
SANITIZE = [
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-sanitize=signed-integer-overflow,float-cast-overflow",
    "-fwrapv",
]
COMPILE = ["gcc", "-O0", "-g1", "-w", "-pipe", *SANITIZE]
SPACES = {"processor": ["-d", "host"], "gpu": ["--device-model", "nvidia-h200"]}
BATCH = 6  # programs that are compiled together
BYTES_MAX = 200000  # of a text
# What random points run into that is no fault.
NO_POINT = ("breaks the constraint", "C033")
DRIVER = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *taken(const char *name, size_t n)
{
    void *p = malloc(n);
    FILE *f = fopen(name, "rb");
    if (!p || !f || fread(p, 1, n, f) != n)
        exit(97);
    fclose(f);
    return p;
}
static void *empty(size_t n)
{
    return memset(malloc(n), 0xa5, n);
}
static void given(const char *name, const void *p, size_t n)
{
    FILE *f = fopen(name, "wb");
    if (!f || fwrite(p, 1, n, f) != n)
        exit(96);
    fclose(f);
}
"""


@dataclass
class Case:
    program: programs.Program
    space: str
    point: str  # "": the default
    finding: str = ""
    skipped: bool = False

    def arguments(self):
        sizes = ",".join(f"{n}={v}" for n, v in self.program.sizes.items())
        return [
            *SPACES[self.space],
            *(["-s", sizes] if sizes else []),
            *(["-p", self.point] if self.point else []),
        ]


def run(command, folder, timeout=120):
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env={**os.environ, "HOME": folder, "ASAN_OPTIONS": "detect_leaks=0"},
            check=False,
        )
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return None, f"no end after {timeout} s"


# Points ----------------------------------------------------------------------------------


def choices(case, folder, file):
    """Parameters and their values, as the messages about wrong ones say them."""

    def said(parameter, pattern):
        probe = Case(case.program, case.space, parameter)
        _, text = run([FOREWARP, "emit", file, "-t", "c", *probe.arguments()], folder)
        found = re.search(pattern, text)
        return found[1].strip().split(", ") if found else []

    return {name: said(f"{name}=zz", r"it can (?:only )?be (.*)") for name in said("zz=1", r"there are (.*)")}


def points(case, folder, file, number, rng):
    values = choices(case, folder, file)
    drawn = {" ".join(f"{n}={rng.choice(v)}" for n, v in values.items() if v) for _ in range(4 * number)}
    return rng.sample(sorted(drawn - {""}), len(drawn - {""}))


def emit(case, folder, file, stem):
    """True if the point is one of the space, and the program printed or a finding."""
    status, text = run(
        [FOREWARP, "emit", file, "-t", "c", "--host", "-o", f"{stem}.c", *case.arguments()], folder
    )
    if status and case.point and any(reason in text for reason in NO_POINT):
        return False
    case.skipped = (
        status == 2 and "C033" in text or status == 0 and os.path.getsize(f"{folder}/{stem}.c") > BYTES_MAX
    )
    if status != 0 and not case.skipped:
        case.finding = f"not printed: {text}"
    return True


def cases_of(program, number, folder, rng):
    """The cases of a program, printed as C: pairs of a case and the stem of its files."""
    file = f"{folder}/p{program.seed}.fw"
    with open(file, "w", encoding="ascii") as f:
        f.write(program.text)
    found = []
    for space in SPACES:
        default = Case(program, space, "")
        left = number + 1
        for point in ["", *points(default, folder, file, number, rng)]:
            case, stem = Case(program, space, point), f"k{program.seed}_{len(found)}"
            if left and emit(case, folder, file, stem):
                found.append((case, stem))
                left -= 1
    return found


# Running -----------------------------------------------------------------------------------


def caller(case, folder, stem):
    """A function in C that runs the case on files."""
    with open(f"{folder}/{stem}.h", encoding="ascii") as f:
        parameters = re.search(rf"int {stem}_run\(([^)]*)\)", f.read())[1].split(",")
    inputs, before, after, args, outputs = dict(case.program.inputs), [], [], [], 0
    for parameter in map(str.strip, parameters):
        name = parameter.split()[-1].lstrip("*")
        args.append(name)
        if name in inputs:
            size, file = inputs[name].nbytes, f"{folder}/{case.program.seed}_{name}.bin"
            inputs[name].tofile(file)
            if "*" in parameter:
                before.append(f'void *{name} = taken("{file}", {size});')
                after.append(f"free({name});")
            else:
                type_ = parameter[: parameter.rindex(name)].replace("const", "").strip()
                before.append(f'{type_} {name} = *({type_} *)taken("{file}", {size});')
        else:
            size = case.program.outputs[outputs].nbytes
            before.append(f"void *{name} = empty({size});")
            after.append(f'given("{folder}/{stem}_{outputs}.bin", {name}, {size}); free({name});')
            outputs += 1
    if outputs != len(case.program.outputs):
        raise RuntimeError(f"{stem}_run({parameters})")
    body = "\n    ".join(
        [*before, f"int done = {stem}_run({', '.join(args)});", *after, "return done ? 0 : 95;"]
    )
    return f'#include "{stem}.h"\nstatic int run_{stem}(void)\n{{\n    {body}\n}}\n'


def build(folder, cases):
    """Compiles the cases into one program, or each alone to find those that are at fault."""
    main = f"{folder}/main.c"
    with open(main, "w", encoding="ascii") as f:
        f.write(DRIVER + "".join(caller(case, folder, stem) for case, stem in cases))
        f.write("int main(int argc, char **argv)\n{\n    (void)argc;\n")
        f.write(
            "".join(
                f'    if (strcmp(argv[1], "{stem}") == 0)\n        return run_{stem}();\n' for _, stem in cases
            )
        )
        f.write("    return 94;\n}\n")
    status, text = run(
        [*COMPILE, "-o", "all", "main.c", *[f"{stem}.c" for _, stem in cases], "-lm"], folder, 600
    )
    if status != 0 and len(cases) == 1:
        cases[0][0].finding = f"not compiled: {text}"
    return status == 0


def difference(case, folder, stem):
    for k, wanted in enumerate(case.program.outputs):
        got = np.fromfile(f"{folder}/{stem}_{k}.bin", dtype=wanted.dtype).reshape(wanted.shape)
        wrong = np.argwhere(got != wanted)
        if len(wrong):
            at = tuple(int(i) for i in wrong[0])
            return (
                f"output {k}: {len(wrong)} of {wanted.size} values differ, the first at {at}: "
                f"{got[at]}, not {wanted[at]}"
            )
    return ""


def execute(case, folder, stem):
    status, text = run([f"{folder}/all", stem], folder, 60)
    if status == 0:
        case.finding = difference(case, folder, stem)
    else:
        summary = re.search(r"ERROR: AddressSanitizer.*\n.*\n\s*#0.*|.*runtime error.*", text)
        case.finding = f"status {status}: {summary[0] if summary else text[:2000]}"


def run_cases(folder, cases):
    if build(folder, cases):
        for case, stem in cases:
            execute(case, folder, stem)
    elif len(cases) > 1:
        for case in cases:
            run_cases(folder, [case])


def batch(task):
    """All cases of some seeds."""
    seeds, number = task
    with tempfile.TemporaryDirectory(prefix="forewarp-random-") as folder:
        found = []
        for seed in seeds:
            found += cases_of(programs.draw(seed), number, folder, random.Random(seed))
        ready = [(case, stem) for case, stem in found if not case.finding and not case.skipped]
        if ready:
            run_cases(folder, ready)
    return [case for case, _ in found]


def show(case):
    sizes = "".join(f" {n}={v}" for n, v in case.program.sizes.items())
    print(
        f"== seed {case.program.seed}, {case.space}, {case.point or 'default point'}:{sizes}\n{case.program.text}"
        f"{case.finding}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description="random programs as C under sanitizers, against NumPy")
    parser.add_argument("--seed", type=int, default=1, help="of the first program; the next ones follow")
    parser.add_argument("--commit", metavar="HASH", help="the seed is this number instead, in base 16")
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--points", type=int, default=2, help="at random of each space, besides the default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    o = parser.parse_args()
    if o.commit:
        o.seed = int(o.commit[:7], 16)
        print(f"seed {o.seed}, from commit {o.commit}", flush=True)
    seeds = range(o.seed, o.seed + o.programs)
    tasks = [(seeds[i : i + BATCH], o.points) for i in range(0, len(seeds), BATCH)]
    passed = failed = skipped = 0
    with multiprocessing.Pool(o.jobs) as pool:
        for cases in pool.imap(batch, tasks):
            for case in cases:
                skipped += case.skipped
                failed += bool(case.finding)
                passed += not case.finding and not case.skipped
                if case.finding:
                    show(case)
    print(f"{o.programs} programs from seed {o.seed}, {skipped} points not tried")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
