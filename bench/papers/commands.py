#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands behind the tables and figures of the five papers, from the tables `Item by item` that end their pages.

  commands.py list          the commands, by page; ends with 1 if a file that one names is missing
  commands.py run [WORD]    runs those that contain the word (default: all), and prints how long each took, also in processor
                            time, and how many lines it printed; ends with 1 if one failed or printed nothing

A command is what stands in backticks in the third column and begins with forewarp, bench/, build/test/, tools/ or sh. FOLDER is
replaced by a temporary folder. FOREWARP names the program; default build/forewarp."""

import glob
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

from common import ROOT, fail, program

PAGES = ("features", "stencils", "two-stage", "counts", "fusion")
BEGINS = ("forewarp ", "bench/", "build/test/", "tools/", "sh ")


def commands(page):
    with open(os.path.join(ROOT, "doc", page + ".md"), encoding="utf-8") as file:
        text = file.read()
    _, _, table = text.partition("\n## Item by item\n")
    found = []
    for line in table.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if line.startswith("| ") and len(cells) == 4:
            found += [word for word in re.findall(r"`([^`]+)`", cells[2]) if word.startswith(BEGINS) and word not in found]
    if not found:
        fail(1, f"doc/{page}.md has no table of commands")
    return found


def missing(command):
    """Files of the repository that it names and that are not there; what was built is no matter."""
    words = [word for word in command.split() if word.startswith(("bench/", "data/", "examples/", "templates/", "test/", "tools/"))]
    return [word for word in words if not glob.glob(os.path.join(ROOT, word))]


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command, folder):
    if command.startswith("build/test/"):
        subprocess.run(["make", "-s", command], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    words = " ".join(program() if word == "forewarp" else word for word in command.replace("FOLDER", folder).split())
    began, used = time.monotonic(), processor_time()
    done = subprocess.run(words, shell=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=dict(os.environ, FOREWARP=program()))
    lines = done.stdout.count("\n")
    good = done.returncode == 0 and lines > 0
    print(f"{'ok    ' if good else 'not ok'} {time.monotonic() - began:6.1f} s, {processor_time() - used:5.1f} s of CPU {lines:5d} lines  {command}", flush=True)
    return good or print("\n".join("    " + line for line in done.stdout.splitlines()[-5:]))


def main(arguments):
    match arguments:
        case ["list"]:
            lost = []
            for page in PAGES:
                print(page)
                for command in commands(page):
                    print("  " + command)
                    lost += missing(command)
            if lost:
                fail(1, "missing: " + ", ".join(lost))
        case ["run", *word] if len(word) < 2:
            with tempfile.TemporaryDirectory() as folder:
                good = [run(c, folder) for page in PAGES for c in commands(page) if not word or word[0] in c]
            sys.exit(not all(good))
        case _:
            fail(2, __doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
