# SPDX-License-Identifier: Apache-2.0
"""forewarp: from a data-parallel program to a verified, fast kernel.

    import forewarp, numpy
    problem = forewarp.Problem("jacobi2d.fw", N=1024, M=1024)
    plan = problem.tune("opencl:0", budget=10)
    kernel = plan.load()
    b = kernel(numpy.ones((1024, 1024), "float32"))

The package is forewarp.h in Python's words: the library does all of it.
"""

from forewarp._library import Error, ForewarpWarning, version
from forewarp._problem import (
    Argument,
    Device,
    Kernel,
    Plan,
    Point,
    Problem,
    Program,
    Size,
    Trial,
    frame,
    program,
)
from forewarp._search import Search, export_wisdom, import_wisdom

__version__ = version()
__all__ = [
    "Argument",
    "Device",
    "Error",
    "ForewarpWarning",
    "Kernel",
    "Plan",
    "Point",
    "Problem",
    "Program",
    "Search",
    "Size",
    "Trial",
    "export_wisdom",
    "frame",
    "import_wisdom",
    "program",
]
