# SPDX-License-Identifier: Apache-2.0
"""Wrong values of options are Python's exceptions, and name the option."""

import math

import numpy
import pytest
from conftest import TWICE

import forewarp

# What each option refuses; any wrong type and value will do, so long as nothing crashes.
NUMBERS = [0, -1, 1.5, math.nan, math.inf, 10**30, True]
TEXTS = ["", "x", "8s", b"2s", "a\0b"]
OTHERS = [[], {}, (1, 2), object()]
WRONG = {
    "budget": ["", "x", "8", "8x", "0s", "-1s", "quiet:5%", "nans", "8s,", "0.5t", b"2s", "a\0b", True]
    + [0, -1, math.nan] + OTHERS,
    "trials": TEXTS + [0, -1, 1.5, math.nan, math.inf, 10**30, True] + OTHERS,
    "rigor": NUMBERS + TEXTS + OTHERS + [None],
    "progress": [1, "yes", b"2s", 1.5] + OTHERS,
    "verify": NUMBERS + TEXTS + OTHERS,
    "strategy": NUMBERS + ["x", "8s", b"2s", "a\0b"] + OTHERS,
    "where": NUMBERS + ["x", b"2s", "a\0b"] + OTHERS,
    "seed": ["", "x", "8s", b"2s", -1, 1.5, math.nan, 10**30, True] + OTHERS,
    "store": NUMBERS + ["", "-", "a\0b"] + OTHERS,
    "models": NUMBERS + ["", "no/such", "a\0b"] + OTHERS,
    "any_device": [1.5, 2, "yes", b"2s"] + OTHERS,
    "device": NUMBERS + ["", "x", b"host", "a\0b", None] + OTHERS,
}  # fmt: skip


@pytest.mark.parametrize("option", WRONG)
def test_wrong_values(twice, store, option):
    for value in WRONG[option]:
        with pytest.raises((TypeError, ValueError, forewarp.Error), match=option) as wrong:
            twice.tune(**{"device": "host", "trials": 2, "store": store, option: value})
        assert "initializer" not in str(wrong.value) and "cdata" not in str(wrong.value)


@pytest.mark.parametrize("budget", ["8s", "4t", "1m", "4t,quiet:3t", "quiet:2s,4t", 8, 2.5, math.inf, "1h,4t"])
def test_budgets(twice, store, budget):
    few = 4 if isinstance(budget, str) and "4t" in budget else 3
    assert twice.tune("host", budget=budget, trials=few, store=store).time > 0


def test_few_trials(twice, store):
    assert len(twice.tune("host", budget="3t", store=store).trials) <= 4


def test_share_of_the_floor(twice, store):
    """Any kernel has a millionth of the speed that the device allows."""
    plan = twice.tune("host", budget="0.0001%", trials=300, store=store)
    assert plan.time > 0 and len(plan.trials) < 100


def test_numbers_of_others(twice, store):
    trials, seed = numpy.int64(3), "7"
    assert twice.tune("host", budget=numpy.float32(9), trials=trials, seed=seed, store=store).time > 0
    assert forewarp.Problem(TWICE, N="8").inputs[0].shape == (8,)
    assert forewarp.Problem(TWICE, N=numpy.int32(8)).inputs[0].shape == (8,)


def refused(what, match):
    with pytest.raises((TypeError, ValueError, forewarp.Error), match=match):
        what()


@pytest.mark.parametrize("value", NUMBERS + TEXTS + OTHERS, ids=repr)
def test_other_calls(twice, store, value):
    search = forewarp.Search(twice, "host", store=store)
    plan = search.plan(search.plain)
    kernel = plan.load()
    x = numpy.ones(1000, "float32")
    refused(lambda: forewarp.Problem(value), "source|program")
    refused(lambda: forewarp.Search(value, "host"), "problem")
    refused(lambda: search.measure(value), "point")
    refused(lambda: search.tell(value, 1), "point")
    refused(lambda: search.plan(value), "point")
    refused(lambda: kernel(value), "x of twice")
    if not isinstance(value, int):
        refused(lambda: plan.load(value), "queue")
        refused(lambda: kernel(x, stream=value), "stream")
    if not isinstance(value, (int, float)):
        refused(lambda: search.tell(search.plain, value), "seconds")
    if not isinstance(value, str):
        refused(lambda: forewarp.Problem(TWICE, name=value, N=8), "name")
        refused(lambda: plan.host(value), "stem")
        refused(lambda: forewarp.import_wisdom(value, store), "wisdom")
        refused(lambda: forewarp.program(value), "program")
    if not isinstance(value, (str, bytes)):
        refused(lambda: forewarp.export_wisdom(value), "store")
        refused(lambda: twice.forget("host", value), "store")
    if value is True or value in (0, -1) or not isinstance(value, (int, tuple)):  # (1, 2) is a range
        refused(lambda: forewarp.Problem(TWICE, N=value), "N")
