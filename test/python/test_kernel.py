# SPDX-License-Identifier: Apache-2.0
"""Kernels on arrays of NumPy, and of whatever else is installed."""

import array

import numpy
import pytest

import forewarp

JACOBI = """
size N, M
fun j5(n, w, c, e, s: float): float = (5*n + 12*w + 15*c + 12*e + 5*s) / 118
def jacobi2d(a: [N][M]float): [N][M]float =
  a |> pad2(1, 1, clamp) |> slide2(3, 1)
    |> map2(\\p -> j5(p[0][1], p[1][0], p[1][1], p[1][2], p[2][1]))
"""
SCALED = """
size N
def scaled(s: float, x: [N]float): [N]float = x |> map(\\v -> s*v)
"""
SHIFTED = """
size N
def shifted(k: int, x: [N]int): [N]int = x |> map(\\v -> v + k)
"""
PAIRS = """
size N
def pairs(x: [N]int): [N](int, float) = x |> map(\\v -> (v + 1, float(v)))
"""


def jacobi(a):
    p = numpy.pad(a, 1, mode="edge")
    n, w, c, e, s = p[:-2, 1:-1], p[1:-1, :-2], a, p[1:-1, 2:], p[2:, 1:-1]
    return (5 * n + 12 * w + 15 * c + 12 * e + 5 * s) / 118


def test_sizes_of_each_call(store):
    problem = forewarp.Problem(JACOBI, N=(16, 1024, 4), M=(8, 512))
    assert [(s.name, s.low, s.high, s.multiple) for s in problem.sizes] == [("N", 16, 1024, 4), ("M", 8, 512, 1)]
    kernel = problem.load("host", store=store)
    for n, m in (16, 8), (100, 333), (16, 8):
        a = numpy.random.rand(n, m).astype("float32")
        assert numpy.allclose(kernel(a), jacobi(a), rtol=1e-5)
    with pytest.raises(forewarp.Error, match="N must be from 16 to 1024 and a multiple of 4, not 18"):
        kernel(numpy.zeros((18, 8), "float32"))
    with pytest.raises(ValueError, match="dimensions"):
        kernel(numpy.zeros(16, "float32"))
    with pytest.raises(TypeError, match="float64"):
        kernel(numpy.zeros((16, 8)))
    with pytest.raises(ValueError, match="shape"):
        kernel(numpy.zeros((16, 8), "float32"), out=numpy.zeros((16, 9), "float32"))


@pytest.fixture(params=["host", "opencl:0"])
def device(request):
    try:
        return forewarp.Device(request.param)
    except forewarp.Error as error:
        pytest.skip(str(error))


def test_numpy(device, store):
    kernel = forewarp.Problem(JACOBI, N=96, M=64).tune(device, trials=3, store=store).load()
    a = numpy.random.default_rng(1).random((96, 64), "float32")
    numpy.testing.assert_allclose(kernel(a), jacobi(a), rtol=1e-5)
    out = numpy.empty_like(a)
    assert kernel(a, out=out) is out
    numpy.testing.assert_allclose(out, jacobi(a), rtol=1e-5)


def test_scalars_and_several_outputs(device, store):
    x = numpy.arange(100, dtype="float32")
    scaled = forewarp.Problem(SCALED, N=100).load(device, store=store)
    assert (scaled(2.5, x) == 2.5 * x).all()
    for half in (numpy.float32(0.5), numpy.array(0.5), numpy.array([0.5], "float64"), 0.5):
        assert (scaled(half, x) == 0.5 * x).all()
    with pytest.raises(TypeError, match="s of scaled N=100 is a number, not str"):
        scaled("2.5", x)
    with pytest.raises(TypeError, match="s of scaled N=100 is a number, not ndarray"):
        scaled(x, x)
    shifted = forewarp.Problem(SHIFTED, N=100).load(device, store=store)
    assert (shifted(numpy.int8(-3), x.astype("int32")) == x - 3).all()
    for wrong in (2.5, 1 << 31):
        with pytest.raises(TypeError, match=f"k of shifted N=100 is a number of type int32, not {wrong}"):
            shifted(wrong, x.astype("int32"))
    pairs = forewarp.Problem(PAIRS, N=100).load(device, store=store)
    first, second = pairs(x.astype("int32"))
    assert first.dtype == "int32" and (first == x + 1).all() and (second == x).all()


def test_in_place(store):
    """The very memory of the array is read and written: nothing else could be here."""
    kernel = forewarp.Problem(SCALED, N=4).load("host", store=store)
    x, out = array.array("f", [1, 2, 3, 4]), array.array("f", [0] * 4)
    kernel(3.0, x, out=out)
    assert list(out) == [3, 6, 9, 12]


def test_wrong_arrays(twice, store):
    kernel = twice.load("host", store=store)
    x = numpy.zeros(1000, "float32")
    with pytest.raises(TypeError, match=r"takes 1 input \(x\), not 2"):
        kernel(x, x)
    with pytest.raises(TypeError, match="x of twice N=1000 has elements of float32, not float64"):
        kernel(x.astype("float64"))
    with pytest.raises(ValueError, match=r"has shape \(1000,\), not \(999,\)"):
        kernel(x[1:])
    with pytest.raises(ValueError, match="not dense"):
        kernel(numpy.zeros(2000, "float32")[::2])
    with pytest.raises(TypeError, match="expected an array, not str"):
        kernel("x")
    with pytest.raises(TypeError, match="has 1 outputs"):
        kernel(x, out=(x, x))
    fixed = numpy.zeros(1000, "float32")
    fixed.flags.writeable = False
    assert (kernel(fixed) == 0).all()
    with pytest.raises(ValueError, match="read-only"):
        kernel(x, out=fixed)
    room = numpy.zeros(1500, "float32")
    with pytest.raises(forewarp.Error, match="x and out overlap, and kernels write out"):
        kernel(room[:1000], out=room[500:])


def test_dlpack(twice, store):
    """An array that is known by DLPack alone."""

    class Only:
        def __init__(self, of):
            self.of = of

        def __dlpack__(self, stream=None):
            return self.of.__dlpack__()

        def __dlpack_device__(self):
            return self.of.__dlpack_device__()

    kernel = twice.load("host", store=store)
    x, out = numpy.arange(1000, dtype="float32"), numpy.zeros(1000, "float32")
    kernel(Only(x), out=Only(out))
    assert (out == 2 * x).all()
    with pytest.raises(ValueError, match="not dense"):
        kernel(Only(numpy.zeros(2000, "float32")[::2]))


def test_torch(twice, store):
    torch = pytest.importorskip("torch")
    kernel = twice.load("host", store=store)
    x = torch.arange(1000, dtype=torch.float32)
    out = kernel(x)
    assert isinstance(out, torch.Tensor) and torch.equal(out, 2 * x)


def test_jax(twice, store):
    jax = pytest.importorskip("jax")
    kernel = twice.load("host", store=store)
    x = jax.numpy.arange(1000, dtype="float32")
    out = kernel(x)
    assert isinstance(out, jax.Array) and (out == 2 * x).all()


def test_pyopencl(twice, store):
    cl = pytest.importorskip("pyopencl")
    import pyopencl.array

    queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    kernel = twice.tune("opencl:0", trials=2, store=store).load(queue)
    x = pyopencl.array.to_device(queue, numpy.arange(1000, dtype="float32"))
    assert (kernel(x).get() == 2 * x.get()).all()
