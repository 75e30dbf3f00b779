# SPDX-License-Identifier: Apache-2.0
"""Kernels as operations of PyTorch (2.0 or later), which torch.compile keeps as one call."""

from __future__ import annotations

from typing import Any

import torch

from forewarp._problem import Argument, Kernel

_libraries: list[Any] = []  # an operation lives as long as the object that defined it


def _schema(name: str, kernel: Kernel) -> str:
    def of(argument: Argument) -> str:
        return f"{'Tensor' if argument.shape else 'Scalar'} {argument.name}"

    inputs = ", ".join(of(a) for a in kernel.problem.inputs)
    outputs = ", ".join(["Tensor"] * len(kernel.problem.outputs))
    return f"{name}({inputs}) -> ({outputs})"


def register(name: str, kernel: Kernel) -> Any:
    """Registers a kernel as the operation "namespace::name", and returns that.

    It has no gradient, and its shapes are those of the kernel. ValueError: the name is none, or the
    kernel writes an input in place.
    """
    namespace, separator, own = name.partition("::")
    if not separator or not namespace or not own.isidentifier():
        raise ValueError(f"a name is namespace::name: {name!r}")
    if any(a.input and a.output for a in kernel.problem.arguments):
        raise ValueError(f"{kernel.problem.label} writes an input in place")

    def run(*arrays: Any) -> Any:
        return kernel(*(a.contiguous() if isinstance(a, torch.Tensor) else a for a in arrays))

    def shapes(*arrays: Any) -> Any:
        like = next(a for a in arrays if isinstance(a, torch.Tensor))
        problem = kernel.problem
        sizes = problem.sizes_of([getattr(a, "shape", ()) for a in arrays])
        shape = dict(zip(problem.arguments, problem.shapes(*sizes)))
        made = [like.new_empty(shape[a], dtype=getattr(torch, a.dtype)) for a in problem.outputs]
        return made[0] if len(made) == 1 else tuple(made)

    library = torch.library.Library(namespace, "FRAGMENT")
    library.define(_schema(own, kernel))
    library.impl(own, run, "CPU")
    library.impl(own, run, "CUDA")
    library.impl(own, shapes, "Meta")
    _libraries.append(library)
    return getattr(getattr(torch.ops, namespace), own)
