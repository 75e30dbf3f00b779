#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# What others take for sequences of bench/fusion.py: bench/fusion_rivals.py NAME=INSTANCES ..
# prints a line {"name": .., "eager": us, "compile": us} for each: PyTorch's calls one by one
# (its products are cuBLAS's), and the same through torch.compile, the better of matrix-vector
# products and of products and sums spelt out; null for what fails. The least of 20 times, by
# events, after warming up; the device is kept busy until all launches are queued, so that
# what Python takes to launch does not count. Nothing where there is no PyTorch.
import json
import sys

try:
    import torch
except ImportError:
    sys.exit(0)

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False


def rand(*shape):
    return torch.rand(*shape, device="cuda") + 0.5


def vectors(k, n):
    return [rand(n) for _ in range(k)]


def axpydot(w, v, u):
    z = torch.add(w, v, alpha=-0.7)
    return z, torch.dot(z, u)


def axpydot_sum(w, v, u):
    z = w - 0.7 * v
    return z, (z * u).sum()


def vadd(w, y, z):
    return (w + y) + z


def waxpby(x, y):
    return 0.7 * x + 1.3 * y


def sscal(x):
    return 0.7 * x


def madd(a, b):
    return a + b


def sgemv(A, x, y):
    return torch.addmv(y, A, x, beta=1.3, alpha=0.7)


def sgemv_sum(A, x, y):
    return 0.7 * (A * x).sum(1) + 1.3 * y


def atax(A, x):
    return torch.mv(A.T, torch.mv(A, x))


def atax_sum(A, x):
    t = (A * x).sum(1)
    return (A * t[:, None]).sum(0)


def bicgk(A, p, r):
    return torch.mv(A, p), torch.mv(A.T, r)


def bicgk_sum(A, p, r):
    return (A * p).sum(1), (A * r[:, None]).sum(0)


def gemvt(A, y, z):
    x = torch.addmv(z, A.T, y, alpha=1.3)
    return x, 0.7 * torch.mv(A, x)


def gemvt_sum(A, y, z):
    x = 1.3 * (A * y[:, None]).sum(0) + z
    return x, 0.7 * (A * x).sum(1)


def gesummv(A, B, x):
    return torch.addmv(0.7 * torch.mv(A, x), B, x, alpha=1.3)


def gesummv_sum(A, B, x):
    return 0.7 * (A * x).sum(1) + 1.3 * (B * x).sum(1)


def gemver(A, u1, v1, u2, v2, y, z):
    B = torch.addr(torch.addr(A, u1, v1), u2, v2)
    x = torch.addmv(z, B.T, y, alpha=1.3)
    return B, x, 0.7 * torch.mv(B, x)


def gemver_sum(A, u1, v1, u2, v2, y, z):
    B = A + u1[:, None] * v1 + u2[:, None] * v2
    x = 1.3 * (B * y[:, None]).sum(0) + z
    return B, x, 0.7 * (B * x).sum(1)


def paper(A, B, v, C, D):
    norm = torch.linalg.vector_norm(torch.bmm(torch.bmm(A, B), v), dim=(1, 2), keepdim=True)
    return norm * torch.baddbmm(C, C, D)


def paper_sum(A, B, v, C, D):
    X = (A[:, :, :, None] * B[:, None, :, :]).sum(2)
    x = (X * v[:, None, :, 0]).sum(2)
    norm = (x * x).sum(1).sqrt()[:, None, None]
    return norm * ((C[:, :, :, None] * D[:, None, :, :]).sum(2) + C)


VECTOR = {"axpydot": 3, "vadd": 3, "waxpby": 2, "sscal": 1, "madd": 2}
ARRAYS = {"sgemv": "Mvv", "atax": "Mv", "bicgk": "Mvv", "gemvt": "Mvv", "gesummv": "MMv",
          "gemver": "Mvvvvvv"}


def inputs(name, n):
    if name in VECTOR:
        return vectors(VECTOR[name], n)
    if name == "paper":
        return [rand(n, 3, 3), rand(n, 3, 3), rand(n, 3, 1), rand(n, 5, 5), rand(n, 5, 5)]
    return [rand(n, n) / n if c == "M" else rand(n) for c in ARRAYS[name]]


BUSY = 4_000_000  # cycles, about 2 ms


def clock(f, arg):
    for _ in range(3):
        f(*arg)
    best = float("inf")
    for _ in range(20):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(BUSY)
        start.record()
        f(*arg)
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end))
    return 1e3 * best


def least(functions, arg):
    found = []
    for f in functions:
        try:
            found.append(clock(f, arg))
        except Exception as error:  # of a compiler: the other spelling counts
            print(f"{f}: {error}", file=sys.stderr)
    return min(found, default=None)


for word in sys.argv[1:]:
    name, n = word.split("=")
    arg = inputs(name, int(n))
    spelt = [f for f in (globals()[name], globals().get(name + "_sum")) if f]
    compiled = [torch.compile(f, dynamic=False) for f in spelt]
    print(json.dumps({"name": name, "torch": torch.__version__, "eager": least(spelt[:1], arg),
                      "compile": least(compiled, arg)}), flush=True)
    torch._dynamo.reset()
