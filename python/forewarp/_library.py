# SPDX-License-Identifier: Apache-2.0
"""The library (forewarp.h) for the rest of the package: texts, errors, the worker program."""

from __future__ import annotations

import os
import pathlib
import warnings
from typing import Any

from forewarp._forewarp import ffi, lib

__all__ = ["Error", "ForewarpWarning", "call", "ffi", "lib", "own", "packed", "text", "version"]

# The program that candidates run in, where the package has brought one.
PROGRAM = pathlib.Path(__file__).parent / "root" / "bin" / "forewarp"


class Error(Exception):
    """The library could not do what was asked; the text says why, with the place if there is one."""


class ForewarpWarning(UserWarning):
    """The library did what was asked, and has something to say about it."""


def text(value: Any) -> str | None:
    """A text that belongs to the library."""
    return None if value == ffi.NULL else ffi.string(value).decode("utf-8", "replace")


def packed(value: str | os.PathLike[str] | None) -> Any:
    """A text or a path for the library; None is NULL."""
    if value is None:
        return ffi.NULL
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError("a source, a path or another text holds a null character")
    return ffi.new("char[]", encoded)


def taken(value: Any) -> str | None:
    """A text that the library gave away."""
    made = text(value)
    lib.fw_free_text(value)
    return made


def call(function: Any, *arguments: Any, failed: Any = None) -> Any:
    """Calls a function whose last parameter is the message; raises Error if it returns `failed`.

    Without `failed` that is NULL for a pointer, 0 for a number.
    """
    message = ffi.new("char **")
    result = function(*arguments, message)
    said = (taken(message[0]) or "").rstrip("\n")
    wrong = (not result) if failed is None else result == failed
    if wrong:
        raise Error(said or f"{function.__name__} failed")
    if said:
        warnings.warn(said, ForewarpWarning, stacklevel=3)
    return result


def own(pointer: Any, free: Any, *keep: Any) -> Any:
    """The pointer, freed when nothing refers to it; what is in keep outlives it."""

    def release(p: Any, keep: tuple[Any, ...] = keep) -> None:
        free(p)

    return ffi.gc(pointer, release)


def worker() -> Any:
    return packed(str(PROGRAM)) if PROGRAM.exists() else ffi.NULL


def version() -> str:
    """Of the library, "0.2.0"."""
    return text(lib.fw_version()) or ""
