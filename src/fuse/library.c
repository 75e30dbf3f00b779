// SPDX-License-Identifier: Apache-2.0
//
// The elementary functions that are shipped, in the library format (doc/fusion.md). They
// are definitions of the language; the implementations by one thread, by a row, and by an
// element follow from the shape of the result (paper 004, section 4.1: mmul33 by 1, 3 or 9
// threads, mvmul33 by 1 or 3, mmul55, madd55 and smmul55 by 1, 5 or 25).

#include "fuse/fuse.h"

const char *const fuse_library =
    "// The elementary functions of paper 004's example, and a few like them.\n"
    "type SCALAR   = float;\n"
    "type VECTOR3  = [3]float;\n"
    "type VECTOR5  = [5]float;\n"
    "type MATRIX33 = [3][3]float;\n"
    "type MATRIX55 = [5][5]float;\n"
    "\n"
    "def mmul33(a: [3][3]float, b: [3][3]float): [3][3]float =\n"
    "  a |> map(\\row -> transpose(b) |> map(\\column ->\n"
    "    zip(row, column) |> reduce(\\sum t -> sum + t.0 * t.1, 0)));\n"
    "def mvmul33(a: [3][3]float, x: [3]float): [3]float =\n"
    "  a |> map(\\row -> zip(row, x) |> reduce(\\sum t -> sum + t.0 * t.1, 0));\n"
    "def madd33(a: [3][3]float, b: [3][3]float): [3][3]float =\n"
    "  zip2(a, b) |> map2(\\t -> t.0 + t.1);\n"
    "def vnorm3(x: [3]float): float =\n"
    "  sqrt(x |> reduce(\\sum w -> sum + w * w, 0));\n"
    "\n"
    "def mmul55(a: [5][5]float, b: [5][5]float): [5][5]float =\n"
    "  a |> map(\\row -> transpose(b) |> map(\\column ->\n"
    "    zip(row, column) |> reduce(\\sum t -> sum + t.0 * t.1, 0)));\n"
    "def mvmul55(a: [5][5]float, x: [5]float): [5]float =\n"
    "  a |> map(\\row -> zip(row, x) |> reduce(\\sum t -> sum + t.0 * t.1, 0));\n"
    "def madd55(a: [5][5]float, b: [5][5]float): [5][5]float =\n"
    "  zip2(a, b) |> map2(\\t -> t.0 + t.1);\n"
    "def smmul55(s: float, a: [5][5]float): [5][5]float =\n"
    "  a |> map2(\\w -> s * w);\n"
    "def vnorm5(x: [5]float): float =\n"
    "  sqrt(x |> reduce(\\sum w -> sum + w * w, 0));\n"
    "\n"
    "def add(x: float, y: float): float = x + y;\n"
    "def mul(x: float, y: float): float = x * y;\n"
    "def axpy(a: float, x: float, y: float): float = a * x + y;\n"
    "def axpby(a: float, x: float, b: float, y: float): float = a * x + b * y;\n";
