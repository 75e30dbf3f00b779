#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs tuned by forewarp beside torch.compile(mode="max-autotune") on one GPU, in one run:
bench/beside_torch.py [NAME...]

For each row: the plain point, the best after a search, its share of the roofline bound, torch's
time, and the ratio (over 1: forewarp is faster). Times are medians of GPU events; every kernel
of forewarp's is checked against its reference. Without PyTorch only forewarp's are printed.
Exit status 1 if a program could not be tuned.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# name: program, sizes, the same in torch (a function, and the shapes of its arguments)
ROWS16 = {"N": 16384, "M": 4096}
CALLS = 20  # between two events
ODD = {"N": 2048, "M": 50257}


def torch_rows():
    import torch
    import torch.nn.functional as F

    def softmax_backward(y, dy):
        return y * (dy - (y * dy).sum(1, keepdim=True))

    def rms(x, g):
        return x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5) * g

    def layer(x, g, b):
        return F.layer_norm(x, x.shape[1:], g, b, 1e-5)

    def rms_backward(x, dy, g):
        inv = torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5)
        dot = (x * dy * g).mean(1, keepdim=True)
        return inv * (dy * g - x * inv * inv * dot)

    def layer_backward(x, dy, g):
        mean = x.mean(1, keepdim=True)
        inv = torch.rsqrt(((x - mean) ** 2).mean(1, keepdim=True) + 1e-5)
        h, e = (x - mean) * inv, dy * g
        return inv * (e - e.mean(1, keepdim=True) - h * (h * e).mean(1, keepdim=True))

    def adam(p, g, m, v):
        m1, v1 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 0.001 * (m1 / 0.271) / (torch.sqrt(v1 / 0.002997) + 1e-8), m1, v1

    def unsharp(a):
        k = torch.tensor([1, 4, 6, 4, 1], device=a.device) / 16
        p = F.pad(a[None, None], (2, 2, 0, 0), mode="replicate")[0, 0]
        h = sum(k[i] * p[:, i:i + a.shape[1]] for i in range(5))
        p = F.pad(h[None, None], (0, 0, 2, 2), mode="replicate")[0, 0]
        b = sum(k[i] * p[i:i + a.shape[0]] for i in range(5))
        return torch.clamp(a + 1.5 * (a - b), 0, 1)

    return {"softmax": lambda x: torch.softmax(x, 1),
            "softmax_backward": softmax_backward, "layer_norm": layer,
            "layer_norm_backward": layer_backward, "rms_norm": rms,
            "rms_norm_backward": rms_backward,
            "cross_entropy": lambda x, y: F.cross_entropy(x, y.long(), reduction="none"),
            "row_sums": lambda a: a.sum(1), "column_sums": lambda a: a.sum(0),
            "argmax_rows": lambda a: a.max(1), "cumsum_rows": lambda a: a.cumsum(1),
            "prefix": lambda a: a.cumsum(0),
            "product_bias_relu": lambda a, b, c: torch.relu(a @ b + c),
            "batched_product": torch.bmm, "adam": adam, "unsharp": unsharp,
            "convolution": lambda x, k: F.conv2d(x[None], k, padding=1)[0]}


ROWS = [("softmax", ROWS16), ("softmax", ODD), ("softmax_backward", ROWS16),
        ("layer_norm", ROWS16), ("layer_norm", ODD), ("layer_norm_backward", ROWS16),
        ("rms_norm", ROWS16), ("rms_norm", ODD), ("rms_norm_backward", ROWS16),
        ("cross_entropy", ROWS16), ("cross_entropy", ODD), ("row_sums", {"N": 16384, "M": 16384}),
        ("column_sums", {"N": 16384, "M": 16384}), ("argmax_rows", ROWS16),
        ("cumsum_rows", ROWS16), ("prefix", {"N": 1 << 26}),
        ("product_bias_relu", {"N": 4096, "M": 4096, "K": 4096}),
        ("batched_product", {"B": 64, "N": 512, "M": 512, "K": 512}),
        ("adam", {"N": 1 << 26}), ("unsharp", {"N": 8192, "M": 8192}),
        ("convolution", {"C": 64, "O": 64, "H": 256, "W": 256})]


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--forewarp", default=os.environ.get("FOREWARP", "build/forewarp"))
    parser.add_argument("-d", "--device", default="cuda:0")
    parser.add_argument("-b", "--budget", default="10s")
    parser.add_argument("--shrink", type=int, default=1, help="divide every size, for a dry run")
    parser.add_argument("--json", help="write the rows there")
    return parser.parse_args()


def path_of(name):
    own = os.path.join(HERE, "rivals", name + ".fw")
    return own if os.path.exists(own) else os.path.join(HERE, "..", "examples", name + ".fw")


def tune(opt, folder, name, sizes):
    out = os.path.join(folder, "result.json")
    text = ",".join(f"{k}={v}" for k, v in sizes.items())
    said = subprocess.run([opt.forewarp, "tune", path_of(name), "-s", text, "-d", opt.device,
                           "-b", opt.budget, "-q", "--fresh", "--store", folder + "/trials.db",
                           "-o", folder, "--json", out], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    if said.returncode:
        return {"error": said.stderr.strip().splitlines()[-1:]}
    with open(out) as f:
        r = json.load(f)
    return {"best_us": r["best"]["time_ns"] / 1e3, "plain_us": (r["baseline_ns"] or 0) / 1e3,
            "share": r["roofline"]["share"] if r["roofline"] else float("nan"), "seconds": r["elapsed_s"],
            "point": r["best"]["point"]}


def arguments(opt, folder, name, sizes):
    """Random arrays of the shapes that the program asks for."""
    import torch
    out = os.path.join(folder, "check.json")
    subprocess.run([opt.forewarp, "check", path_of(name), "--json", out], check=True,
                   stdout=subprocess.DEVNULL)
    with open(out) as f:
        inputs = json.load(f)["inputs"]
    made = []
    for i in inputs:
        shape = [eval(str(n), {}, dict(sizes)) for n in i["shape"]]
        made.append(torch.randint(0, min(sizes.values()), shape, device="cuda", dtype=torch.int32)
                    if i["element"] == "int" else torch.rand(shape, device="cuda"))
    return made


def torch_us(opt, folder, name, sizes):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch._dynamo.reset()
    call = torch.compile(torch_rows()[name], mode="max-autotune-no-cudagraphs")
    args = arguments(opt, folder, name, sizes)
    for _ in range(3):
        call(*args)
    times = []
    for _ in range(7):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The first call keeps the card busy while the others are queued: what Python costs
        # must not be counted as torch's.
        call(*args)
        start.record()
        for _ in range(CALLS):
            call(*args)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times)


def main(folder):
    opt = options()
    try:
        import torch
        rival = torch.cuda.is_available()
    except ImportError:
        rival = False
    rows = []
    print(f"{'program':20} {'sizes':28} {'plain':>9} {'best us':>9} {'bound':>7} {'torch':>9} ratio")
    for name, full in ROWS:
        if opt.names and name not in opt.names:
            continue
        sizes = {k: max(4, v // opt.shrink) for k, v in full.items()}
        row = {"name": name, "sizes": sizes, **tune(opt, folder, name, sizes)}
        try:
            row["torch_us"] = torch_us(opt, folder, name, sizes) if rival else None
        except Exception as error:  # a rival that fails is a row, not the end
            row["torch_us"], row["torch_error"] = None, str(error)[:200]
        rows.append(row)
        say(row)
        if opt.json:
            with open(opt.json, "w") as f:
                json.dump(rows, f, indent=1)
    return 1 if any("error" in r for r in rows) else 0


def say(row):
    sizes = ",".join(f"{k}={v}" for k, v in row["sizes"].items())
    theirs = row["torch_us"]
    if "error" in row:
        print(f"{row['name']:20} {sizes:28} {row['error']}", flush=True)
        return
    print(f"{row['name']:20} {sizes:28} {row['plain_us']:9.1f} {row['best_us']:9.1f} "
          f"{100 * row['share']:6.1f}% {theirs or float('nan'):9.1f} "
          f"{(theirs or float('nan')) / row['best_us']:5.2f}  {row['point']}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.exit(main(place))
