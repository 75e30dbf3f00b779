# SPDX-License-Identifier: Apache-2.0
"""The command `forewarp` of the package."""

import os
import sys

from forewarp._library import PROGRAM


def main() -> None:
    os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
