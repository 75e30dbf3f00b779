# SPDX-License-Identifier: Apache-2.0
"""The code in the pages on Python and in the notebook runs as it stands there."""

import json
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


def test_notebook(opencl, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.setenv("FOREWARP_STORE", str(tmp_path / "trials.db"))
    names = {"__name__": "notebook"}
    for cell in cells("code"):
        exec(compile(cell, "notebook", "exec"), names)
    assert names["plan"].origin == "measured" and abs(names["b"] - names["right"]).max() < 1e-5


def test_rendered_notebook():
    """doc/notebook.md is the notebook: every cell stands there."""
    page = (ROOT / "doc/notebook.md").read_text()
    assert all(cell in page for cell in cells("code") + cells("markdown"))


def cells(kind):
    notebook = json.loads((ROOT / "examples/python/jacobi2d.ipynb").read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]
