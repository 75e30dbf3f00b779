# SPDX-License-Identifier: Apache-2.0
"""A strategy in Python, and one of the library's that is asked and told."""

import pathlib
import random
import re
import subprocess

import pytest

import forewarp
from forewarp._library import PROGRAM

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_points(twice, store):
    search = forewarp.Search(twice, "host", store=store)
    plain = search.plain
    assert search.valid(plain) and search.valid(plain.parameters)
    assert not search.valid("bx=1") and len(search) > 1
    for name, value in plain.parameters.items():
        assert str(value) in search.parameters[name]


def test_strategy_in_python(twice, store):
    search = forewarp.Search(twice, "host", store=store)
    rng = random.Random(1)
    points = {search.plain}
    while len(points) < 3:
        point = {name: rng.choice(values) for name, values in search.parameters.items()}
        if search.valid(point):
            points.add(forewarp.Point.of(point))
    trials = [search.measure(point) for point in points]
    best = min((t for t in trials if t.ok), key=lambda t: t.time)
    plan = search.plan()
    assert plan.point == best.point and plan.origin == "measured"
    with pytest.raises(forewarp.Error, match="not a valid point"):
        search.measure("bx=nothing")


def test_ask_and_tell(twice, store):
    search = forewarp.Search(twice, "host", strategy="random", store=store)
    told = {}
    while len(told) < 5:
        point = search.ask()
        told[point] = 1e-6 * (len(told) + 1)
        search.tell(point, told[point])
    assert search.plan().point == min(told, key=told.get)
    with pytest.raises(ValueError, match="not a valid point"):
        search.tell("bx=nothing", 1)


def test_help_knows_parameters(opencl):
    """`forewarp help` explains each parameter that a program of examples/ has."""
    used = set()
    for path in sorted((ROOT / "examples").glob("*.fw")):
        sizes = re.findall(r"^size (.*)$", path.read_text(), re.M)
        names = {word.strip() for line in sizes for word in line.split("//")[0].split(",")}
        try:
            problem = forewarp.Problem(path, **{n: 64 for n in names if n.isidentifier()})
        except forewarp.Error:  # sizes that it does not allow
            continue
        used |= set(forewarp.Search(problem, opencl).parameters)
    assert {"lx", "ly", "vec"} <= used
    unknown = {n for n in used if subprocess.run([PROGRAM, "help", n], capture_output=True).returncode}
    assert not unknown
