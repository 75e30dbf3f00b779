# SPDX-License-Identifier: Apache-2.0
"""Builds the Python package: make builds the program and the library, cffi the module on it.

What pyproject.toml cannot say: the version, which the Makefile has, and what make builds.
"""

import os
import pathlib
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
BUILD = os.environ.get("FOREWARP_BUILD", "build")  # where make puts what it builds
VERSION = re.search(r"^VERSION *:= *(\S+)", (ROOT / "Makefile").read_text(), re.M).group(1)


def make(*targets):
    command = ["make", "--no-print-directory", f"B={BUILD}", *targets]
    if "MAKEFLAGS" not in os.environ:
        command.insert(1, f"-j{os.cpu_count() or 1}")
    subprocess.run(command, cwd=ROOT, check=True)


class BuildExtension(build_ext):
    """The module, after the library that it is linked with."""

    def run(self):
        make("lib")
        super().run()


class BuildPackage(build_py):
    """The Python files, and beside them the program, its models and heuristics."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        make("all")
        at = pathlib.Path(self.build_lib, "forewarp", "root")
        (at / "bin").mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / BUILD / "forewarp", at / "bin")
        for folder, share in (("data/models", "models"), ("heuristics", "heuristics")):
            shutil.copytree(ROOT / folder, at / "share/forewarp" / share, dirs_exist_ok=True)


setup(
    version=VERSION,
    packages=["forewarp"],
    package_dir={"": "python"},
    package_data={"forewarp": ["py.typed"]},
    cffi_modules=["python/build_module.py:builder"],
    cmdclass={"build_ext": BuildExtension, "build_py": BuildPackage},
    # One module for all versions of Python from this one on.
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
)
