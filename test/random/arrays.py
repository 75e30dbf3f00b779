# SPDX-License-Identifier: Apache-2.0
"""NumPy as `np`, or the end with a sentence where it is missing."""
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(f"{sys.argv[0]}: error: {sys.executable} has no NumPy: install python3-numpy, or use another Python")

__all__ = ["np"]
