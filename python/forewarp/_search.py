# SPDX-License-Identifier: Apache-2.0
"""A search of the caller's own, and wisdom as text."""

from __future__ import annotations

from typing import Any, Mapping, Union

from forewarp import _options
from forewarp._library import call, ffi, lib, own, packed, taken, text
from forewarp._problem import AnyPath, Device, Plan, Point, Problem, Trial, plan_options, trial_of

AnyPoint = Union[str, Mapping[str, Any]]


class Search:
    """The points of a problem on a device: choose points oneself and have them measured (a
    strategy or a model in Python), or ask a strategy for points and time them oneself.

    One thread at a time. strategy, where, seed, store, models: as for Problem.tune.
    """

    def __init__(
        self,
        problem: Problem,
        device: Union[str, Device] = "opencl:0",
        *,
        strategy: str | None = None,
        where: str | None = None,
        seed: int | None = None,
        store: AnyPath = None,
        models: AnyPath = None,
    ):
        if not isinstance(problem, Problem):
            raise _options.wrong_type("problem is a forewarp.Problem", problem)
        self.problem = problem
        self.device = Device.of(device)
        options, keep = plan_options(strategy=strategy, where=where, seed=seed, store=store,
                                     models=models)  # fmt: skip
        made = call(lib.fw_search_open, problem._c, self.device._c, options)
        del keep
        self._c = own(made, lib.fw_search_free, problem._c)
        self.parameters = dict(self._parameter(i) for i in range(lib.fw_search_parameters(made)))

    def _parameter(self, i: int) -> tuple[str, tuple[str, ...]]:
        count = ffi.new("int *")
        name = text(lib.fw_search_parameter(self._c, i, count)) or ""
        return name, tuple(text(lib.fw_search_value(self._c, i, k)) or "" for k in range(count[0]))

    def __len__(self) -> int:
        """How many points are valid."""
        return int(lib.fw_search_points(self._c))

    def valid(self, point: AnyPoint) -> bool:
        """Does it name all parameters, with values they can have, and break no constraint?"""
        return bool(lib.fw_search_valid(self._c, packed(Point.of(point))))

    @property
    def plain(self) -> Point:
        """What anyone would write first."""
        return Point(text(lib.fw_search_plain(self._c)))

    def ask(self) -> Point | None:
        """The next point of the strategy; None: it has none left, or waits to be told."""
        point = text(lib.fw_search_ask(self._c))
        return None if point is None else Point(point)

    def tell(self, point: AnyPoint, seconds: float) -> None:
        """What a point took; 0: it cannot be used. ValueError: it is not valid."""
        if not lib.fw_search_tell(self._c, packed(Point.of(point)), _options.number("seconds", seconds)):
            raise ValueError(f"`{Point.of(point)}` is not a valid point")

    def measure(self, point: AnyPoint) -> Trial:
        """Builds, checks and times a point in a worker. It is not told to the strategy."""
        trial = ffi.new("fw_trial *")
        call(lib.fw_search_measure, self._c, packed(Point.of(point)), trial)
        return trial_of(trial)

    def plan(self, point: AnyPoint | None = None) -> Plan:
        """The plan of a point; without one, of the fastest that was measured or told."""
        wanted = None if point is None else Point.of(point)
        made = call(lib.fw_search_plan, self._c, packed(wanted))
        return Plan(own(made, lib.fw_plan_free), self.problem, self.device)


def export_wisdom(store: AnyPath = None) -> str:
    """The best plan of each problem and device in a store: a JSON object a line."""
    return taken(call(lib.fw_wisdom_export, packed(_options.store(store)))) or ""


def import_wisdom(wisdom: str, store: AnyPath = None, name: str = "wisdom") -> int:
    """Adds such a text to a store, all of it or nothing; returns how many plans were news."""
    texts = [packed(_options.store(store)), packed(_options.words("name", name)),
             packed(_options.words("wisdom", wisdom))]  # fmt: skip
    return int(call(lib.fw_wisdom_import, *texts, failed=-1))
