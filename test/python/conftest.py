# SPDX-License-Identifier: Apache-2.0
"""What the tests share: a store that is not the user's, and programs."""

import pytest

import forewarp

TWICE = "size N\ndef twice(x: [N]float): [N]float = x |> map(\\v -> 2*v)\n"


@pytest.fixture
def store(tmp_path):
    return tmp_path / "trials.db"


@pytest.fixture
def twice():
    return forewarp.Problem(TWICE, name="twice", N=1000)


@pytest.fixture(scope="session")
def opencl():
    try:
        return forewarp.Device("opencl:0")
    except forewarp.Error as error:
        pytest.skip(str(error))
