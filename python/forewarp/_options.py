# SPDX-License-Identifier: Apache-2.0
"""What callers pass, as the library takes it: each value is read here, or refused by its name.

Texts are read as the command line reads them: budget="8s,95%". What is refused is a TypeError where
the type is wrong, else a ValueError; both begin with the name of the option.
"""

from __future__ import annotations

import math
import operator
import os
import re
from typing import Any

# Ends of a budget, and the field of fw_plan_options that each sets: seconds, trials, a share.
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_END = re.compile(r"(quiet:)?([0-9]+\.?[0-9]*|\.[0-9]+)([smht%])")
_BUDGET = 'budget is seconds above 0, or a text like "30s", "5m", "200t", "95%" or "quiet:50t", joined by commas'
_MOST = 1e9  # no clock and no search comes to such a number


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def wrong_type(wanted: str, value: Any) -> TypeError:
    return TypeError(f"{wanted}, not {_shown(value)} ({type(value).__name__})")


def number(name: str, value: Any, least: float = 0) -> float:
    """A number, and not less than `least`."""
    wanted = f"{name} is a number that is not below {least:g}"
    if isinstance(value, (str, bytes, bool)):
        raise wrong_type(wanted, value)
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise wrong_type(wanted, value) from None
    except OverflowError:
        found = math.inf
    if not found >= least:
        raise ValueError(f"{wanted}: {_shown(value)}")
    return found


def whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number; as a text, too."""
    wanted = f"{name} is a whole number from {least} to {most}"
    if isinstance(value, str) and re.fullmatch(r"[0-9]+", value):
        value = int(value[:40])
    if isinstance(value, bool):
        raise wrong_type(wanted, value)
    try:
        found = operator.index(value)
    except TypeError:
        raise wrong_type(wanted, value) from None
    if not least <= found <= most:
        raise ValueError(f"{wanted}: {_shown(value)}")
    return found


def words(name: str, value: Any) -> str:
    """A text that C can hold."""
    if not isinstance(value, str):
        raise wrong_type(f"{name} is a text", value)
    if "\0" in value:
        raise ValueError(f"{name} has a zero byte in it: {_shown(value)}")
    return value


def path(name: str, value: Any) -> str:
    """The name of a file or a folder, as the command line takes it."""
    wanted = f"{name} is the path of a file or a folder"
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise wrong_type(wanted, value)
    found = os.fsdecode(value)
    if found in ("", "-") or "\0" in found:
        raise ValueError(f"{wanted}: {_shown(value)}")
    return found


def store(value: Any) -> str | None:
    return None if value is None else path("store", value)


def folder(name: str, value: Any) -> str:
    found = path(name, value)
    if not os.path.isdir(found):
        raise ValueError(f"{name} is a folder, and there is no folder {found!r}")
    return found


def one_of(name: str, value: Any, known: Any) -> str:
    wanted = f"{name} is one of {', '.join(known)}"
    if not isinstance(value, str):
        raise wrong_type(wanted, value)
    if value not in known:
        raise ValueError(f"{wanted}: {_shown(value)}")
    return value


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, int) or value not in (0, 1):
        raise wrong_type(f"{name} is True or False", value)
    return bool(value)


def function(name: str, value: Any, others: str = "") -> Any:
    """What can be called; None is none."""
    if value is not None and not callable(value):
        raise wrong_type(f"{name} is {others}a function or None", value)
    return value


def _end(text: str) -> tuple[str, float]:
    """One end of a budget: the field of fw_plan_options, and its value."""
    match = _END.fullmatch(text.strip())
    if not match or not 0 < float(match[2]) <= _MOST:
        raise ValueError(f"{_BUDGET}: {_shown(text)}")
    quiet, amount, unit = match[1], float(match[2]), match[3]
    if (unit == "%" and quiet) or (unit == "t" and amount < 1):
        raise ValueError(f"{_BUDGET}: {_shown(text)}")
    if unit == "%":
        return "enough", amount / 100
    if unit == "t":
        return ("quiet_trials" if quiet else "budget_trials"), int(amount)
    return ("quiet_s" if quiet else "budget_s"), amount * _SECONDS[unit]


def budget(value: Any) -> dict[str, float]:
    """The fields of fw_plan_options that a budget sets: of seconds, or of a text."""
    if isinstance(value, str):
        return dict(_end(item) for item in value.split(","))
    if isinstance(value, (bytes, bool)):
        raise wrong_type(_BUDGET, value)
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        raise wrong_type(_BUDGET, value) from None
    except OverflowError:
        seconds = math.inf
    if not seconds > 0:
        raise ValueError(f"{_BUDGET}: {_shown(value)}")
    return {"budget_s": seconds}


def size(name: str, value: Any) -> str:
    """A size, or a range of one, as `-s NAME=` takes it: 64, (1, 64), (4, 64, 4), "4:64:4"."""
    wanted = f"the size {name} is a whole number, (low, high) or (low, high, multiple)"
    if isinstance(value, str) and re.fullmatch(r"[0-9]+(:[0-9]+){0,2}", value):
        return value
    parts = value if isinstance(value, (tuple, list)) else (value,)
    try:
        numbers = [operator.index(n) for n in parts if not isinstance(n, bool)]
    except TypeError:
        raise wrong_type(wanted, value) from None
    if len(numbers) != len(parts) or not 1 <= len(numbers) <= 3:
        raise wrong_type(wanted, value)
    return ":".join(map(str, numbers))
