# SPDX-License-Identifier: Apache-2.0
"""forewarp run against NumPy: the 2D examples at 257 x 131, by way of .npy files.

Arguments: the program under test, a folder for files. Prints `ok NAME`, `not ok NAME`.
"""
import subprocess
import sys

import numpy as np

N, M = 257, 131
RNG = np.random.default_rng(7)
OTHER = "lx=8 ly=4 bx=2 by=4 border=split"


def windows(a, lo, hi, mode, **constant):
    """Windows of lo + 1 + hi elements a side: w(dy, dx) is the array shifted so far."""
    p = np.pad(a, ((lo, hi), (lo, hi)), mode=mode, **constant)
    return lambda y, x: p[lo + y : lo + y + a.shape[0], lo + x : lo + x + a.shape[1]]


def cross(a, mode="edge", **constant):
    w = windows(a, 1, 1, mode, **constant)
    return w(-1, 0), w(0, -1), w(0, 0), w(0, 1), w(1, 0)


def weighted(a, weight, mode="edge"):
    r = len(weight) // 2
    w = windows(a, r, r, mode)
    return sum(weight[y + r][x + r] * w(y, x)
               for y in range(-r, r + 1) for x in range(-r, r + 1))


def jacobi2d(a):
    n, w, c, e, s = cross(a)
    return (5 * n + 12 * w + 15 * c + 12 * e + 5 * s) / 118


def jacobi2d_steps(a):
    for _ in range(3):
        a = jacobi2d(a)
    return a


def jacobi2d9(a):
    return weighted(a, [[7, 5, 9], [12, 15, 12], [9, 5, 7]]) / 118


def gaussian(a):
    return weighted(a, [[2, 4, 5, 4, 2], [4, 9, 12, 9, 4], [5, 12, 15, 12, 5],
                        [4, 9, 12, 9, 4], [2, 4, 5, 4, 2]]) / 159


def gradient2d(a):
    n, w, c, e, s = cross(a)
    return c + 1 / np.sqrt(1e-4 + (c - n)**2 + (c - s)**2 + (c - w)**2 + (c - e)**2)


def hotspot2d(temp, power):
    n, w, c, e, s = cross(temp)
    return c + 0.341333 * (power + 0.1 * (n + s - 2 * c) + 0.1 * (e + w - 2 * c)
                           + 0.0001953125 * (80 - c))


def srad1(image):
    n, w, c, e, s = cross(image)
    dn, dw, de, ds = n - c, w - c, e - c, s - c
    g = (dn * dn + ds * ds + dw * dw + de * de) / (c * c)
    l = (dn + ds + dw + de) / c
    q = (0.5 * g - l * l / 16) / (1 + 0.25 * l)**2
    q0 = 0.053787220269
    return np.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1)


def srad2(image, k, dn, ds, de, dw):
    _, _, kc, ke, ks = cross(k)
    return image + 0.125 * (kc * dn + ks * ds + kc * dw + ke * de)


def stencil2d(a, weight):
    return weighted(a, weight)


def blur(a):
    w = windows(a, 1, 1, "edge")
    w = windows((w(0, -1) + w(0, 0) + w(0, 1)) / 3, 1, 1, "edge")
    return (w(-1, 0) + w(0, 0) + w(1, 0)) / 3


def life2d(a):
    around = weighted(a, [[1, 1, 1], [1, 0, 1], [1, 1, 1]], "wrap")
    return ((around == 3) | ((around == 2) & (a == 1))).astype(np.int32)


def advect2d(a):
    north, west, c, _, _ = cross(a, "wrap")
    return c - 0.3 * (c - west) - 0.2 * (c - north)


def blur_mirror(a):
    return weighted(a, [[1, 2, 1], [2, 4, 2], [1, 2, 1]], "symmetric") / 16


def heat2d_dirichlet(a):
    n, w, c, e, s = cross(a, "constant")
    return c + 0.2 * (n + w + e + s - 4 * c)


def wave2d(before, now):
    for _ in range(3):
        n, w, c, e, s = cross(now, "constant")
        before, now = now, 2 * c - before + 0.25 * (n + w + e + s - 4 * c)
    return before, now


def plane(shape=(N, M)):
    return RNG.uniform(0.5, 1.5, shape).astype(np.float32)


def cells():
    return RNG.integers(0, 2, (N, M)).astype(np.int32)


# The reference, its inputs in the program's order, and what they are.
CHECKS = [
    (jacobi2d, {"a": plane}),
    (jacobi2d9, {"a": plane}),
    (gaussian, {"a": plane}),
    (gradient2d, {"a": plane}),
    (hotspot2d, {"temp": plane, "power": plane}),
    (srad1, {"image": plane}),
    (srad2, dict.fromkeys(["image", "k", "dn", "ds", "de", "dw"], plane)),
    (stencil2d, {"a": plane, "weight": lambda: plane((3, 3))}),
    (blur, {"a": plane}),
    (life2d, {"a": cells}),
    (advect2d, {"a": plane}),
    (blur_mirror, {"a": plane}),
    (heat2d_dirichlet, {"a": plane}),
    (wave2d, {"before": plane, "now": plane}),
    (jacobi2d_steps, {"a": plane}),
]
# Also at a point far from the plain one, and as C.
VARIANTS = {jacobi2d: [["-p", OTHER], ["-d", "host"]], hotspot2d: [["-p", OTHER]],
            life2d: [["-p", OTHER]], blur_mirror: [["-p", OTHER]],
            heat2d_dirichlet: [["-p", OTHER]]}


def error(got, want):
    if got.shape != want.shape:
        return np.inf
    scale = np.maximum(np.abs(want), np.sqrt(np.mean(np.square(want))) + 1e-30)
    return float(np.max(np.abs(got - want) / scale))


def run(forewarp, folder, reference, inputs, options):
    """The worst relative error of the outputs; None, and a report, if it did not run."""
    name = reference.__name__
    sizes = f"N={N},M={M}" + (",T=3" if reference in (wave2d, jacobi2d_steps) else "")
    command = [forewarp, "run", f"examples/{name}.fw", "-s", sizes, *options]
    for key, value in inputs.items():
        np.save(f"{folder}/{key}.npy", value)
        command += ["--in", f"{key}={folder}/{key}.npy"]
    exact = [v if v.dtype == np.int32 else v.astype(np.float64) for v in inputs.values()]
    wants = reference(*exact)
    wants = wants if isinstance(wants, tuple) else (wants,)
    for k in range(len(wants)):
        command += ["-o", f"{folder}/out{k}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        print(done.stderr)
        return np.inf
    gots = [np.load(f"{folder}/out{k}.npy") for k in range(len(wants))]
    return max(error(got, want.astype(np.float64)) for got, want in zip(gots, wants))


def main(forewarp, folder):
    failed = False
    for reference, makers in CHECKS:
        inputs = {key: make() for key, make in makers.items()}
        for options in [[], *VARIANTS.get(reference, [])]:
            worst = run(forewarp, folder, reference, inputs, options)
            verdict = "ok" if worst < 1e-5 else "not ok"
            failed |= verdict != "ok"
            print(verdict, "numpy", reference.__name__, *options, f"({worst:.1e})")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
