#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Dot product, sum of magnitudes, scaling, matrix-vector and matrix product, tuned from the
# plain programs on one GPU: bench/blas.py [FOREWARP] [SECONDS]. A line each, as a share of the
# floor measured in the same run (copy bandwidth, or the rate of multiply-adds in registers).
# Then products of other types, sizes and layouts, with what is fused around them, each beside
# PyTorch's eager calls (cuBLAS; no TF32), where PyTorch is: the share is that of its rate.
# DEVICE names another device; SHRINK divides every size, to see that all of it works (without
# a GPU: DEVICE=opencl:0 SHRINK=64 bench/blas.py build/forewarp 1). Exit status 1 if a program
# could not be tuned.
import json
import os
import subprocess
import sys
import tempfile

forewarp = sys.argv[1] if len(sys.argv) > 1 else "build/forewarp"
seconds = sys.argv[2] if len(sys.argv) > 2 else "10"
device = os.environ.get("DEVICE", "cuda:0")
examples = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples")
shrink = int(os.environ.get("SHRINK", "1"))
ROWS = [("dot", "N=67108864"), ("asum", "N=67108864"), ("scal", "N=67108864"),
        ("gemv", "N=16384,M=16384"), ("mm", "N=4096,M=4096,K=4096")]


def run(folder, *command):
    out = os.path.join(folder, "out.json")
    subprocess.run([forewarp, *command, "-d", device, "--store", folder + "/trials.db",
                    "--json", out], check=True, stdout=subprocess.DEVNULL)
    with open(out) as file:
        return json.load(file)


# A product of K terms for each of M x N outputs, with what stands around it: the program's
# parameters, where its rows and columns are, the sum's terms, and what follows the sum.
def product(params, rows, columns, term, after="%s", sizes="size M, N, K"):
    fold = after % f"(zip(r, c) |> reduce(\\s t -> s + {term}, {ZERO[term]}))"
    return f"{sizes}\ndef f({params}) = {rows} |> map(\\r -> {columns} |> map(\\c -> {fold}))\n"


WIDE, OWN = "float(t.0)*float(t.1)", "t.0*t.1"
ZERO = {WIDE: "float(0)", OWN: "0"}


def plain(scalar, term, after="%s"):
    return product(f"a: [M][K]{scalar}, b: [K][N]{scalar}", "a", "transpose(b)", term, after)


BIAS = ("size M, N, K\ndef f(a: [M][K]half, b: [K][N]half, v: [N]half) =\n  a |> map(\\r -> "
        "zip(transpose(b), v) |> map(\\c -> half(max(0, float(c.1) + (zip(r, c.0) |> reduce("
        f"\\s t -> s + {WIDE}, float(0)))))))\n")
BATCH = ("size B, M, N, K\ndef f(a: [B][M][K]half, b: [B][K][N]half) =\n  zip(a, b) |> map(\\p -> "
         "p.0 |> map(\\r -> transpose(p.1) |> map(\\c -> half(zip(r, c) |> reduce(\\s t -> "
         f"s + {WIDE}, float(0))))))\n")
# Name, program, sizes M, N, K and perhaps B, element type, what PyTorch does with a, b and v.
PRODUCTS = [
    ("half", plain("half", WIDE, "half(%s)"), (4096, 4096, 4096), "half", "a @ b"),
    ("half", plain("half", WIDE, "half(%s)"), (8192, 8192, 8192), "half", "a @ b"),
    ("double", plain("double", OWN), (4096, 4096, 4096), "double", "a @ b"),
    ("float", plain("float", OWN), (4096, 4096, 4096), "float", "a @ b"),
    ("half, odd", plain("half", WIDE, "half(%s)"), (4095, 4097, 4099), "half", "a @ b"),
    ("double, odd", plain("double", OWN), (4095, 4097, 4099), "double", "a @ b"),
    ("half, a'", product("a: [K][M]half, b: [K][N]half", "transpose(a)", "transpose(b)", WIDE,
                         "half(%s)"), (4096, 4096, 4096), "half", "a.T @ b"),
    ("half, b'", product("a: [M][K]half, b: [N][K]half", "a", "b", WIDE, "half(%s)"),
     (4096, 4096, 4096), "half", "a @ b.T"),
    ("half, bias, relu", BIAS, (4096, 4096, 4096), "half", "torch.relu(torch.addmm(v, a, b))"),
    ("half, batch", BATCH, (512, 512, 512, 64), "half", "torch.bmm(a, b)"),
]


def torch_ns(scalar, sizes, text):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = False
    m, n, k = sizes[:3]
    batch = sizes[3:]
    def array(*shape):
        return torch.rand(*batch, *shape, device="cuda").to(getattr(torch, scalar))
    a = array(k, m) if "a.T" in text else array(m, k)
    b = array(n, k) if "b.T" in text else array(k, n)
    v, best = array(n), float("inf")
    run_it = eval(f"lambda: {text}", {"torch": torch, "a": a, "b": b, "v": v})
    for _ in range(20):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run_it()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end))
    return best * 1e6


def products(folder):
    print(f"\n{'product':18} {'sizes':22} {'time us':>9} {'Tflop/s':>8} {'torch us':>9} {'share':>7} "
          f"{'tuned in':>8}  point")
    for number, (name, text, full, scalar, rival) in enumerate(PRODUCTS):
        shape = [max(size // shrink, 1) for size in full]
        path = os.path.join(folder, f"product{number}.fw")
        with open(path, "w") as file:
            file.write(text)
        sizes = ",".join(f"{key}={size}" for key, size in zip("MNKB", shape))
        r = run(folder, "tune", path, "-s", sizes, "-q", "-b", seconds + "s", "-o", folder)
        ns, flops = r["best"]["time_ns"], 2.0
        for size in shape:
            flops *= size
        try:
            other = torch_ns(scalar, shape, rival)
            beside = f"{other / 1e3:9.1f} {100 * other / ns:6.1f}%"
        except (ImportError, RuntimeError, AssertionError):
            beside = f"{'-':>9} {'-':>7}"
        print(f"{name:18} {sizes:22} {ns / 1e3:9.1f} {flops / ns / 1e3:8.1f} {beside} "
              f"{r['elapsed_s']:6.1f} s  {r['best']['point']}", flush=True)


def main(folder):
    found = run(folder, "devices", "--measure")[0]
    rates = found["measured"]
    print(f"{found['name']}: copy {rates['copy_gbs']:.0f} GB/s, float "
          f"{rates['float_gflops']:.0f} Gflop/s, double {rates['double_gflops']:.0f} Gflop/s")
    print(f"{'program':8} {'sizes':22} {'time us':>9} {'GB/s':>7} {'Gflop/s':>8} "
          f"{'of floor':>8} {'plain':>7} {'tuned in':>8}  point")
    for name, full in ROWS:
        sizes = ",".join(f"{k}={int(v) // shrink}"
                         for k, v in (size.split("=") for size in full.split(",")))
        r = run(folder, "tune", os.path.join(examples, name + ".fw"), "-s", sizes, "-q",
                "-b", seconds + "s", "-o", folder)
        ns, floor = r["best"]["time_ns"], r["floor"]
        plain = floor["ns"] / r["baseline_ns"] if r["baseline_ns"] else float("nan")
        print(f"{name:8} {sizes:22} {ns / 1e3:9.1f} {floor['bytes'] / ns:7.0f} "
              f"{floor['flops'] / ns:8.0f} {100 * floor['share']:7.1f}% {100 * plain:6.1f}% "
              f"{r['elapsed_s']:6.1f} s  {r['best']['point']}", flush=True)
    products(folder)


with tempfile.TemporaryDirectory() as folder:
    try:
        main(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"blas.py: {error}")
