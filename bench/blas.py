#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Dot product, sum of magnitudes, scaling, matrix-vector and matrix product, tuned from the
# plain programs on one GPU: bench/blas.py [FOREWARP] [SECONDS]. A line each, as a share of the
# floor measured in the same run (copy bandwidth, or the rate of multiply-adds in registers);
# beside the matrix product cuBLAS in single precision without TF32, where PyTorch is.
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


def cublas(n):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (torch.rand(n, n, device="cuda") for _ in range(2))
    c, best = torch.empty_like(a), float("inf")
    for _ in range(20):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch.mm(a, b, out=c)
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end))
    return best * 1e6


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
    try:
        ns = cublas(4096)
        print(f"{'cuBLAS':8} {ROWS[-1][1]:22} {ns / 1e3:9.1f} {'':7} {2 * 4096**3 / ns:8.0f} "
              f"{100 * floor['compute_ns'] / ns:7.1f}%")
    except ImportError:
        print("cuBLAS   not measured: PyTorch is not installed")


with tempfile.TemporaryDirectory() as folder:
    try:
        main(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"blas.py: {error}")
