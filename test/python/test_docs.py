# SPDX-License-Identifier: Apache-2.0
"""The code in doc/python.md and python/README.md runs as it stands there."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["doc/python.md", "python/README.md"])
def test_page(page, opencl, tmp_path, monkeypatch):
    monkeypatch.setenv("FOREWARP_STORE", str(tmp_path / "trials.db"))
    names = {"__name__": page}
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text.replace("budget=10", "trials=3"), re.S | re.M)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
