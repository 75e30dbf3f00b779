#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Trials a second, forewarp and Kernel Tuner, on the same kernel at the same points, both
# with checked outputs: templates/convolution_cuda.json on cuda:0, or convolution.json without
# images and padding on opencl:0.
#
#   bench/beside_kernel_tuner.py FOREWARP POINTS OUT.json [cuda:0 | opencl:0 [SIZE [FIRST]]]
#
# forewarp picks the points and writes them with --cache; its time is the whole run, the
# reference and the final measurements included. Kernel Tuner's time is what it says it
# spent on the trials (compiling, verifying, timing, framework), without building its space.
# Kernel Tuner times 7 runs of each, forewarp 2 to warm up and 5 (1 and 1 of those that are slow).
# With FIRST, Kernel Tuner is given only so many of the points: its rate does not depend on how
# many they are, and it would take minutes. On cuda:0 it runs through cuda-python: its CuPy back end
# fails with CuPy 14.
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np


# What differs between the two: forewarp's options; Kernel Tuner's language and its kernel.
DEVICES = {
    "cuda:0": (["templates/convolution_cuda.json"], "NVCUDA", "templates/convolution.cu"),
    "opencl:0": (["templates/convolution.json", "--where", "IMAGE == 0 and PADDING == 0 and 32 <= WX * WY <= 1024 and "
                  "PX <= 8 and PY <= 8 and (LOCAL == 0 or (WX * PX + 4) * (WY * PY + 4) * 4 <= 49152)"],
                 "OPENCL", "templates/convolution.cl"),
}


def tune_with_forewarp(forewarp, points, folder, device, size):
    out, cache = folder + "/result.json", folder + "/cache.json"
    start = time.time()
    subprocess.check_call([forewarp, "tune", *DEVICES[device][0], "-d", device, "-s", f"H={size},W={size}",
                           "--strategy", "random", "--budget", f"{points}t", "--store", folder + "/trials.db", "--out", folder, "--cache", cache,
                           "--json", out, "-q"])
    seconds = time.time() - start
    result = json.load(open(out))
    return {"seconds": seconds, "trials": result["trials"], "best_ns": result["best"]["time_ns"],
            "best": result["best"]["point"]}, json.load(open(cache))


def expected(image, weights):
    padded = np.pad(image.astype(np.float64), 2)
    h, w = image.shape
    return sum(weights[j, i] * padded[j:j + h, i:i + w] for j in range(5) for i in range(5)).astype(np.float32)


def tune_with_kernel_tuner(cache, device, first):
    from kernel_tuner import tune_kernel
    keys = cache["tune_params_keys"]
    wanted = {tuple(entry[k] for k in keys) for entry in list(cache["cache"].values())[:first]}
    h, w = cache["problem_size"]
    rng = np.random.default_rng(1)
    image, weights = rng.random((h, w), np.float32), rng.random((5, 5), np.float32)
    params = dict(cache["tune_params"], H=[h], W=[w])

    def chosen(*values):  # a dictionary, or all parameters in order, the sizes last
        by_name = isinstance(values[0], dict)
        return (tuple(values[0][k] for k in keys) if by_name else values[:len(keys)]) in wanted

    start = time.time()
    results, _ = tune_kernel(
        "convolution", DEVICES[device][2], (w, h), [image, weights, np.zeros_like(image)], params,
        grid_div_x=["WX", "PX"], grid_div_y=["WY", "PY"], block_size_names=["WX", "WY"], lang=DEVICES[device][1],
        restrictions=[chosen], answer=[None, None, expected(image, weights)],
        atol=1e-3, quiet=True)
    wall = time.time() - start
    parts = ("compile_time", "verification_time", "benchmark_time", "framework_time", "strategy_time")
    seconds = sum(r.get(part, 0) for r in results for part in parts) / 1e3
    ok = [r for r in results if isinstance(r.get("time"), float)]
    best = min(ok, key=lambda r: r["time"])
    return {"seconds": seconds, "wall_s": wall, "trials": len(results), "ok": len(ok), "best_ns": float(best["time"]) * 1e6,
            "parts_s": {part: sum(r.get(part, 0) for r in results) / 1e3 for part in parts},
            "best": " ".join(f"{k}={best[k]}" for k in keys)}


def main():
    forewarp, points, out = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    device = sys.argv[4] if len(sys.argv) > 4 else "cuda:0"
    size = int(sys.argv[5]) if len(sys.argv) > 5 else 2048
    first = int(sys.argv[6]) if len(sys.argv) > 6 else points
    with tempfile.TemporaryDirectory() as folder:
        mine, cache = tune_with_forewarp(forewarp, points, folder, device, size)
    n = sum(mine["trials"].values())
    print(f"forewarp      {n} trials in {mine['seconds']:.1f} s: {n / mine['seconds']:.2f} a second", flush=True)
    theirs = tune_with_kernel_tuner(cache, device, first)
    print(f"Kernel Tuner  {theirs['trials']} trials in {theirs['seconds']:.1f} s: "
          f"{theirs['trials'] / theirs['seconds']:.2f} a second")
    ratio = (n / mine["seconds"]) / (theirs["trials"] / theirs["seconds"])
    print(f"ratio         {ratio:.1f}")
    json.dump({"forewarp": mine, "kernel_tuner": theirs, "ratio": ratio}, open(out, "w"), indent=1)


main()
