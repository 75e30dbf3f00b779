#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Dot product, sum of magnitudes, scaling, matrix-vector and matrix product, tuned from the
# plain programs on one GPU: bench/blas.py [FOREWARP] [SECONDS]. A line each, as a share of the
# roofline measured in the same run (copy bandwidth, or the rate of multiply-adds in registers).
# Then products of other types, sizes and layouts, with what is fused around them, each beside
# PyTorch (cuBLAS, cuDNN, torch.compile; no TF32), where PyTorch is: the share is that of its rate.
# ONLY="half;half, odd" takes rows by their names.
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
only = [word for word in os.environ.get("ONLY", "").split(";") if word]
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


def plain(scalar):
    narrow = scalar in ("half", "bf16")
    return product(f"a: [M][K]{scalar}, b: [K][N]{scalar}", "a", "transpose(b)",
                   WIDE if narrow else OWN, scalar + "(%s)" if narrow else "%s")


BIAS = ("size M, N, K\ndef f(a: [M][K]half, b: [K][N]half, v: [N]half) =\n  a |> map(\\r -> "
        "zip(transpose(b), v) |> map(\\c -> half(max(0, float(c.1) + (zip(r, c.0) |> reduce("
        f"\\s t -> s + {WIDE}, float(0)))))))\n")
BATCH = ("size B, M, N, K\ndef f(a: [B][M][K]half, b: [B][K][N]half) =\n  zip(a, b) |> map(\\p -> "
         "p.0 |> map(\\r -> transpose(p.1) |> map(\\c -> half(zip(r, c) |> reduce(\\s t -> "
         f"s + {WIDE}, float(0))))))\n")
# Channels are innermost, as cuDNN has them fastest.
CONVOLUTION = ("size M, C, H, W\ndef f(a: [H][W][C]half, w: [M][3][3][C]half) =\n  a |> slide2(3, 1) "
               "|> map(\\row -> row |> map(\\p -> w |> map(\\o -> half(zip(join(join(p)), "
               f"join(join(o))) |> reduce(\\s t -> s + {WIDE}, float(0))))))\n")
INT8 = product("a: [M][K]char, b: [K][N]half", "a", "transpose(b)", WIDE, "half(%s)")
AB = "a, b = rand(M, K), rand(K, N)"
# Name, program, sizes, element type; PyTorch's arrays, and what it does with them, as it is
# and compiled.
PRODUCTS = [
    ("half", plain("half"), "M=4096,N=4096,K=4096", "half", AB, "a @ b"),
    ("half", plain("half"), "M=8192,N=8192,K=8192", "half", AB, "a @ b"),
    ("bf16", plain("bf16"), "M=4096,N=4096,K=4096", "bfloat16", AB, "a @ b"),
    ("bf16", plain("bf16"), "M=8192,N=8192,K=8192", "bfloat16", AB, "a @ b"),
    ("double", plain("double"), "M=4096,N=4096,K=4096", "double", AB, "a @ b"),
    ("float", plain("float"), "M=4096,N=4096,K=4096", "float", AB, "a @ b"),
    ("half, bias, relu", BIAS, "M=4096,N=4096,K=4096", "half", AB + "; v = rand(N)",
     "torch.relu(torch.addmm(v, a, b))"),
    ("half, odd", plain("half"), "M=4095,N=4097,K=4099", "half", AB, "a @ b"),
    ("double, odd", plain("double"), "M=4095,N=4097,K=4099", "double", AB, "a @ b"),
    ("half, a'", product("a: [K][M]half, b: [K][N]half", "transpose(a)", "transpose(b)", WIDE,
                         "half(%s)"), "M=4096,N=4096,K=4096", "half",
     "a, b = rand(K, M), rand(K, N)", "a.T @ b"),
    ("half, b'", product("a: [M][K]half, b: [N][K]half", "a", "b", WIDE, "half(%s)"),
     "M=4096,N=4096,K=4096", "half", "a, b = rand(M, K), rand(N, K)", "a @ b.T"),
    ("half, batch", BATCH, "M=512,N=512,K=512,B=64", "half",
     "a, b = rand(B, M, K), rand(B, K, N)", "torch.bmm(a, b)"),
    ("int8 x half", INT8, "M=4096,N=4096,K=4096", "half",
     "a, b = (rand(M, K)*100).to(torch.int8), rand(K, N)", "a.half() @ b"),
    ("half, 3x3", CONVOLUTION, "M=64,C=64,H=258,W=258", "half",
     "a = rand(1, C, H, W).contiguous(memory_format=torch.channels_last); "
     "w = rand(M, C, 3, 3).contiguous(memory_format=torch.channels_last)",
     "torch.nn.functional.conv2d(a, w)"),
]


def number_of(sizes):
    return {key: max(int(value) // shrink, 4)
            for key, value in (size.split("=") for size in sizes.split(","))}


def flops_of(size):
    if "C" in size:
        return 18.0 * size["M"] * size["C"] * (size["H"] - 2) * (size["W"] - 2)
    return 2.0 * size["M"] * size["N"] * size["K"] * size.get("B", 1)


def best_ns(torch, call):
    best = float("inf")
    for _ in range(20):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end))
    return best * 1e6


# The fastest of eager and compiled, where there is something to fuse.
def torch_ns(scalar, size, arrays, text):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    names = {"torch": torch, **size, "rand": lambda *shape: torch.rand(
        *shape, device="cuda").to(getattr(torch, scalar))}
    exec(arrays, names)
    call = eval(f"lambda: {text}", names)
    eager = best_ns(torch, call)
    fuses = "relu" in text or "half()" in text
    return min(eager, best_ns(torch, torch.compile(call))) if fuses else eager


def products(folder):
    print(f"\n{'product':18} {'sizes':22} {'time us':>9} {'Tflop/s':>8} {'torch us':>9} {'share':>7} "
          f"{'tuned in':>8}  point")
    failed = None
    for number, (name, text, full, scalar, arrays, rival) in enumerate(PRODUCTS):
        if only and not any(word == f"{name} {full}" or word == name for word in only):
            continue
        size = number_of(full)
        path = os.path.join(folder, f"product{number}.fw")
        with open(path, "w") as file:
            file.write(text)
        sizes = ",".join(f"{key}={value}" for key, value in size.items())
        try:
            r = run(folder, "tune", path, "-s", sizes, "-q", "-b", seconds + "s", "-o", folder)
        except subprocess.CalledProcessError as error:
            print(f"{name:18} {sizes:22} {error}", flush=True)
            failed = error
            continue
        ns, flops = r["best"]["time_ns"], flops_of(size)
        try:
            other = torch_ns(scalar, size, arrays, rival)
            beside = f"{other / 1e3:9.1f} {100 * other / ns:6.1f}%"
        except (ImportError, RuntimeError, AssertionError):
            beside = f"{'-':>9} {'-':>7}"
        print(f"{name:18} {sizes:22} {ns / 1e3:9.1f} {flops / ns / 1e3:8.1f} {beside} "
              f"{r['elapsed_s']:6.1f} s  {r['best']['point']}", flush=True)
    if failed:
        raise failed


def main(folder):
    found = run(folder, "devices", "--measure")[0]
    rates = found["measured"]
    print(f"{found['name']}: copy {rates['copy_gbs']:.0f} GB/s, float "
          f"{rates['float_gflops']:.0f} Gflop/s, double {rates['double_gflops']:.0f} Gflop/s")
    print(f"{'program':8} {'sizes':22} {'time us':>9} {'GB/s':>7} {'Gflop/s':>8} "
          f"{'of roofline':>8} {'plain':>7} {'tuned in':>8}  point")
    for name, full in ROWS:
        if only and name not in only:
            continue
        sizes = ",".join(f"{k}={int(v) // shrink}"
                         for k, v in (size.split("=") for size in full.split(",")))
        r = run(folder, "tune", os.path.join(examples, name + ".fw"), "-s", sizes, "-q",
                "-b", seconds + "s", "-o", folder)
        ns, roofline = r["best"]["time_ns"], r["roofline"]
        plain = roofline["ns"] / r["baseline_ns"] if r["baseline_ns"] else float("nan")
        print(f"{name:8} {sizes:22} {ns / 1e3:9.1f} {roofline['bytes'] / ns:7.0f} "
              f"{roofline['flops'] / ns:8.0f} {100 * roofline['share']:7.1f}% {100 * plain:6.1f}% "
              f"{r['elapsed_s']:6.1f} s  {r['best']['point']}", flush=True)
    products(folder)


with tempfile.TemporaryDirectory() as folder:
    try:
        main(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"blas.py: {error}")
