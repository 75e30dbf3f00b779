# SPDX-License-Identifier: Apache-2.0
"""Problems, devices, plans and wisdom in Python."""

import pathlib

import pytest
from conftest import TWICE

import forewarp

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_version():
    makefile = (ROOT / "Makefile").read_text()
    assert f"VERSION  := {forewarp.__version__}\n" in makefile


def test_arguments(twice):
    assert twice.label == "twice N=1000"
    assert twice.bytes == 8000
    x, out = twice.arguments
    assert x == forewarp.Argument("x", "float32", (1000,), 4000, True, False, False)
    assert (out.name, out.shape, out.output) == ("out", (1000,), True)
    assert twice.inputs == (x,) and twice.outputs == (out,)


def test_files():
    jacobi = forewarp.Problem(ROOT / "examples/jacobi2d.fw", N=64, M=32)
    assert jacobi.inputs[0].shape == (64, 32)
    assert forewarp.Problem(str(ROOT / "examples/jacobi2d.fw"), N=8, M=8).label == "jacobi2d N=8 M=8"
    transpose = forewarp.Problem(ROOT / "templates/transpose.json", H=64, W=32)
    assert [a.shape for a in transpose.arguments] == [(64, 32), (32, 64)]


def test_wrong_programs():
    with pytest.raises(forewarp.Error, match="bad:1:"):
        forewarp.Problem("def f(\n", name="bad")
    with pytest.raises(forewarp.Error, match="size N has no value"):
        forewarp.Problem(TWICE)
    with pytest.raises(forewarp.Error, match="no/such.fw"):
        forewarp.Problem("no/such.fw")
    with pytest.raises(TypeError):
        forewarp.Problem(TWICE, N=1.5)
    with pytest.raises(forewarp.Error, match="moon:0"):
        forewarp.Device("moon:0")


def test_program():
    @forewarp.program
    def scaled():
        """
        size N
        def scaled(x: [N]float): [N]float = x |> map(\\v -> 3*v)
        """

    assert scaled(N=8).inputs[0].shape == (8,)
    assert forewarp.program(TWICE)(N=4).outputs[0].shape == (4,)
    with pytest.raises(TypeError, match="docstring"):
        forewarp.program(lambda: None)


def test_tune(twice, store):
    told = []
    plan = twice.tune("host", trials=4, store=store, progress=told.append)
    assert plan.origin == "measured" and plan.time > 0 and plan.target == "c"
    assert list(plan.trials) == told and len(told) >= 2
    assert any(t.ok and t.point == plan.point for t in told)
    assert isinstance(plan.point.parameters["bx"], int)
    again = twice.tune("host", trials=4, store=store)
    assert again.origin == "wisdom" and again.point == plan.point and not again.trials
    with pytest.raises(ValueError, match="rigor"):
        twice.tune("host", rigor="hasty")
    with pytest.raises(forewarp.Error, match="strategy"):
        twice.tune("host", strategy="hasty", store=store)


def test_hooks(twice, store):
    seen = {}

    def verify(point, inputs, outputs):
        seen.update(point=point, x=inputs["x"], out=outputs["out"], right=(2 * inputs["x"] == outputs["out"]).all())
        return True

    plan = twice.tune("host", trials=3, store=store, verify=verify)
    assert seen["right"] and seen["point"] == plan.point and "out" in seen
    with pytest.raises(KeyboardInterrupt):
        twice.forget("host", store)
        twice.tune("host", trials=9, store=store, progress=interrupt)
    with pytest.raises(forewarp.Error):
        twice.forget("host", store)
        twice.tune("host", trials=3, store=store, verify=lambda point, inputs, outputs: False)


def interrupt(trial):
    raise KeyboardInterrupt


def test_host_program(twice, store):
    header, body = twice.tune("host", trials=2, store=store).host("twice")
    assert "twice_run" in header and '#include "twice.h"' in body


def test_wisdom(twice, store, tmp_path):
    plan = twice.tune("host", trials=1, store=store)
    wisdom = forewarp.export_wisdom(store)
    assert plan.point in wisdom
    other = tmp_path / "other.db"
    assert forewarp.import_wisdom(wisdom, other) == 1
    assert twice.tune("host", rigor="wisdom-only", store=other).point == plan.point
    with pytest.raises(forewarp.Error, match="nonsense"):
        forewarp.import_wisdom("{", other, name="nonsense")


def test_frame(twice, store):
    pytest.importorskip("pandas")
    frame = twice.tune("host", trials=3, store=store).frame()
    assert {"bx", "status", "time"} <= set(frame.columns) and len(frame) >= 2


def test_math(tmp_path):
    store = tmp_path / "trials.db"
    strict = forewarp.Problem(TWICE, N=1000, math="strict")
    strict.tune("host", trials=2, store=store)
    assert strict.tune("host", rigor="wisdom-only", store=store).origin == "wisdom"
    with pytest.raises(forewarp.Error):  # plans of another exactness are others
        forewarp.Problem(TWICE, N=1000).tune("host", rigor="wisdom-only", store=store)
    with pytest.raises(forewarp.Error, match="and not `loose`"):
        forewarp.Problem(TWICE, N=1000, math="loose")
