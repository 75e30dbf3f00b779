// SPDX-License-Identifier: Apache-2.0
//
// Small programs on which the rules are tried: at least one for every rule.

#ifndef FW_TEST_REWRITE_INSTANCES_H
#define FW_TEST_REWRITE_INSTANCES_H

typedef struct {
    const char *rule;
    const char *def; // after `size N, M, K` and some funs
    const char *path;
    const char *args; // digits: each argument one of them, arguments separated by spaces
} Instance;

#define HEAD                                                                               \
    "size N, M, K\n"                                                                       \
    "fun twice(x: int): int = 2 * x + 1\n"                                                 \
    "fun add(a, b: int): int = b + a\n"                                                    \
    "fun mix(a, b: int): int = 3 * a - b\n"                                                \
    "fun soft(a, b: float): float = (a + 2*b) / 3\n"

// Of pairs of a count and a value: by parts only where counts are not negative.
#define LAST_VALUE "reduce(\\a b -> (a.0 + b.0, if b.0 > 0 then b.1 else a.1), (0, 0))"

static const Instance instances[] = {
    {"splitJoin", "def p(x: [N]int) = map(twice, x)", "root", "1234"},
    {"splitJoin", "def p(x: [N][M]int) = map2(twice, x)", "root", "123 245"},
    {"splitJoin", "def p(x: [N][M][K]int) = map3(twice, x)", "root", "123 24 13"},
    {"splitJoin",
     "def p(x: [N]int, y: [N]float) = map(\\a b -> soft(float(a), b), zip(x, y))", "root",
     "3457"},
    {"partialReduce", "def p(x: [N]int) = reduce(+, 0, x)", "root", "12345"},
    {"partialReduce", "def p(x: [N]float) = reduce(max, -100.0, x)", "root", "12345"},
    {"partialReduce", "def p(x: [N]int) = reduce(\\a b -> if b == 0 then a else b, 0, x)",
     "root", "12345"},
    {"partialReduceInto", "def p(x: [N]int) = reduce(+, 0, x)", "root", "12345 123"},
    {"partialReduceInto", "def p(x: [N]float) = reduce(max, -100.0, x)", "root", "123 124"},
    {"partialReduceTiles", "def p(x: [N][M]int) = reduce(+, 0, join(x))", "root",
     "1234 1234"},
    {"partialReduceTiles",
     "def p(x: [3][37]float) = reduce(max, -100.0, map(\\e -> 2 * e, join(x)))", "root",
     "1234 89"},
    {"partialReduceTiles",
     "def p(x: [N][M][K]int) = reduce(min, 100, map(twice, join(join(x))))", "root",
     "1235 124"},
    {"partialReduceStrided", "def p(x: [N]int) = reduce(add, 0, x)", "root", "12345"},
    {"partialReduceStrided", "def p(x: [N]int) = reduce(+, 0, x)", "root", "12345"},
    {"partialReduceStrided", "def p(x: [N]double) = reduce(min, 100, x)", "root", "12345"},
    {"foldSplit", "def p(x: [N][M]int) = map(reduce(+, 0), transpose(x))", "root", "12345"},
    {"foldSplit",
     "def p(x: [N][M]int, y: [M]int) = map(\\r v -> 2 * reduce(max, -9, map(mix, zip(r, "
     "y))) "
     "+ v, zip(x, array(N, \\i -> i)))",
     "root", "1235"},
    {"foldSplit",
     "def p(x: [N][M]int) = map(\\w -> reduce(+, 0, join(w)), "
     "slide(2, 1, pad(0, 1, clamp, toGlobal(map(\\r -> map(twice, r), x)))))",
     "root", "1235"},
    {"foldSplit",
     "def p(x: [N][M]int) = map(\\r -> reduce(+, 0, r), iterate(2, \\s -> map(\\r -> "
     "map(twice, r), s), x))",
     "root", "1235"},
    {"reduceMapInterchange",
     "def p(x: [N][M]int) = reduce(\\a r -> map(\\u v -> u + v, zip(a, r)), array(M, \\j "
     "-> "
     "0), x)",
     "root", ""},
    {"reduceMapInterchange",
     "def p(x: [N][M]int) = reduce(\\s t -> map(\\v w -> if w > v.0 then (w, t.1) else v, "
     "zip(s, t.0)), array(M, \\j -> (-100, 0)), zip(x, array(N, \\i -> i)))",
     "root", ""},
    {"reduceMapInterchange",
     "def p(x: [N][M]int, y: [N]int, z: [N][M]float) = reduce(\\(s, m) (r, q, w) -> "
     "(map(\\u v -> u + v * q, zip(s, r)), map(max, zip(m, w))), (array(M, \\j -> 0), "
     "array(M, \\j -> -9.0)), zip(x, y, z))",
     "root", ""},
    {"reduceByMapInterchange",
     "def p(x: [N]int, y: [N][M]int) = zip(x, y) |> map(\\k r -> (k % 4, r)) |> "
     "reduceBy(4, "
     "\\s r -> map(+, zip(s, r)), array(M, \\j -> int(0)))",
     "root", ""},
    {"reduceByElements",
     "def p(x: [N]int, y: [N][M]int) = zip(x, y) |> map(\\k r -> (k % 4, r)) |> "
     "reduceBy(4, "
     "\\s r -> map(+, zip(s, r)), array(M, \\j -> int(0)))",
     "root", ""},
    {"foldAgain",
     "def p(x: [N]int) = let a = map(twice, x) in let s = reduce(+, 0, a) in map(\\v -> v "
     "+ s, a)",
     "root", "12"},
    {"foldAgain",
     "def p(x: [5]int) = let a = map(twice, x) in let s = reduce(max, 0, map(\\w -> w[0] + "
     "w[1], slide(2, 1, a))) in map(\\v -> v + s, a)",
     "root", "2"},
    {"joinReduce", "def p(x: [N][M]int) = reduce(+, 0, map(reduce(+, 0), x))", "root", ""},
    {"joinReduce",
     "def p(x: [N][M]int) = reduce(max, -9, map(\\r -> reduce(max, -9, map(twice, r)), x))",
     "root", ""},
    {"reduceRows", "def p(x: [N][M]int) = reduce(mix, 3, join(x))", "root", ""},
    {"reduceRows",
     "def p(x: [N][M]int, y: [N][M]float) = reduce(\\s t -> 2 * s + t.1, 0, join(zip2(x, "
     "y)))",
     "root", ""},
    {"splitReduce", "def p(x: [12 * N]int) = reduce(mix, 3, x)", "root", "4"},
    {"splitReduce", "def p(x: [15]int) = reduceSeq(\\s v -> 2 * s + v, 1, x)", "root", "5"},
    {"reduceByParts", "def p(x: [N]int) = reduceBy(5, +, 0, map(\\v -> (v % 6, v), x))",
     "root", "123 124"},
    {"onlyElement", "def p(x: [N]int) = x[2 % N] + 1", "root", ""},
    {"elementsOf", "def p(x: [N][M]int) = x[2 % N]", "root", ""},
    {"elementsOf", "def p(x: [N][M][K]int) = x[0]", "root", ""},
    {"nameStart", "def p(x: [N]int) = reduce(max, 3 + N, x)", "root", ""},
    {"nameStart", "def p(x: [N]int) = scan(+, x[0], x)", "root", ""},
    {"nameStart",
     "def p(x: [N]int) = reduce(\\(a, b) v -> (max(a, v), min(b, v)), (x[0], 3), x)",
     "root", ""},
    {"foldChoice",
     "def p(x: [N]int) = reduce(\\s e -> if e > 0 then s + twice(e) else s, 5, x)", "root",
     ""},
    {"foldChoice",
     "def p(x: [N]int) = reduce(\\s e -> if e > 9 then s else if e % 2 == 0 then s * e "
     "else s * 3, 2, x)",
     "root", ""},
    {"foldChoice",
     "def p(x: [N]float) = reduce(\\s e -> let c = e > 0 in let m = if c then s.2 - 1 else "
     "s.2 in (if c && e > s.0 then e else s.0, if c || !(e < s.1) then s.1 else e, m), "
     "(-9.0, 9.0, 0), x)",
     "root", ""},
    {"foldChoice",
     "def p(x: [N]int) = reduce(\\s e -> (if e > 2 then true else s.0, if s.1 then e < 9 "
     "else false, if !(e > s.2) then s.2 else e), (false, true, -9), x)",
     "root", ""},
    {"foldChoice",
     "def p(x: [N]long, y: [N]int) = scan(\\s (u, v) -> if v % 3 == 0 then s else "
     "(s.0 + u, min(s.1, v)), (long(0), 100), zip(x, y))",
     "root", ""},
    {"foldChoice",
     "def p(x: [N][M]int) = reduce(\\s r -> let t = reduce(+, 0, r) in if t > 5 then "
     "(s.0 + t, s.1) else (s.0, s.1 + 1), (0, 2), x)",
     "root", ""},
    {"foldChoice",
     "def p(x: [N]int, y: [N]float) = reduceBy(4, \\m v -> if m > v then m else v, -9, "
     "zip(map(\\v -> v % 5, x), y))",
     "root", ""},
    {"startApart",
     "def p(x: [N]int, y: [N]int) = reduce(\\(s, m, q) (v, w) ->\n"
     "  (s + v * w, max(m, v), q * (1 + w % 2)), (7, -9, 3), zip(x, y))",
     "root", ""},
    {"startApart", "def p(x: [N]int) = scan(\\s v -> v % 3 + s, 5, x)", "root", ""},
    {"startApart", "def p(x: [N]int) = reduceBy(4, +, 2, map(\\v -> (v % 5, v), x))",
     "root", ""},
    {"reduceByParts",
     "def p(x: [N]int, y: [N]float) = zip(map(\\v -> v % 7 - 1, x), y)\n"
     "  |> reduceBy(M, \\s v -> s + float(int(v) % 3), 0)",
     "root", "134 12"},
    {"reduceByParts",
     "def p(x: [N]int) = reduceBy(K, \\(m, i) (v, j) -> if v > m then (v, j) else (m, i), "
     "(-1000, -1), zip(map(\\v -> v % 4, x), zip(x, array(N, \\i -> i))))",
     "root", "123 13"},
    {"reduceByWords",
     "def p(x: [N]int, y: [N]float) = zip(map(\\v -> v % 7, x), y)\n"
     "  |> reduceBy(6, \\m v -> max(half(v), m), half(-9))",
     "root", ""},
    {"reduceByWords",
     "def p(x: [N]int, y: [N]int) = zip(map(\\v -> v % 4, x), y) |> reduceBy(M, \\(s, m, "
     "n) v ->\n"
     "  (s + char(90 * v), min(v, m), n + 1), (char(0), 99, 0))",
     "root", ""},
    {"joinKeyed",
     "def p(x: [N][M]int) = map(\\r -> reduceBy(5, max, -9, map(\\v -> (v % 7 - 1, v), "
     "r)), x)",
     "root", "0"},
    {"joinKeyed",
     "def p(x: [N][M]int) = map(\\c -> reduceBy(5, max, -9, map(\\v -> (v % 7 - 1, v), "
     "c)), transpose(x))",
     "root", "1"},
    {"joinKeyed",
     "def p(x: [N][M]int) = map(\\r -> reduceBy(5, +, 0, map(\\v -> (v % 7 - 1, v), r)), "
     "x)",
     "root", "24"},
    {"reduceByGlb", "def p(x: [N]int) = reduceBy(M, +, 0, map(\\v -> (v % 6, v), x))",
     "root", "1247"},
    {"reduceByGlb",
     "def p(x: [N]int, y: [N]float) = zip(x, y)\n"
     "  |> reduceBy(M, \\(s, m) v -> (s + int(v), max(m, v)), (0, -1e9))",
     "root", "134"},
    {"reduceAsMap",
     "def p(x: [N]int, y: [N]float) = reduce(\\s t -> s + t.1, 0, zip(x, y))", "root", ""},
    {"reorder", "def p(x: [N]int) = map(twice, x)", "root", "0 1234 12"},
    {"reorder", "def p(x: [N][M]int) = map2(twice, x)", "root", "01 1234 123 04"},
    {"reorder", "def p(x: [N][M][K]int) = map3(twice, x)", "root", "012 123 12"},
    {"mapGather", "def p(x: [N]int) = map(twice, gather(\\i -> N - 1 - i, x))", "root", ""},
    {"mapScatter", "def p(x: [N]int) = map(twice, scatter(\\i -> (i + 1) % N, x))", "root",
     ""},
    {"joinZip", "def p(x: [N][M]int, y: [N][M]float) = join(zip2(x, y))", "root", ""},
    {"mapNest", "def p(x: [N][M]int) = map2(twice, x)", "root", ""},
    {"mapNest", "def p(x: [N][M][K]int) = map3(twice, x)", "root", ""},
    {"mapFlatten",
     "def p(x: [N][M][K]int, y: [N]int) = map(\\t -> map(\\c -> reduce(+, t.1, c), "
     "transpose(t.0)), zip(x, y))",
     "root", ""},
    {"mapFlatten", "def p(x: [N][M]int) = map(\\r -> map(twice, r), x)", "root", ""},
    {"mapFlatten",
     "def p(x: [N][M]int) = map(\\r -> map(\\w -> w[0] - 2 * w[2], slide(3, 1, pad(1, 1, "
     "mirror, r))), x)",
     "root", ""},
    {"mapFlatten",
     "def p(x: [N][M][K]int, c: [N]int) = map(\\p d -> map2(\\w -> w[0][1] - w[1][0] * d, "
     "slide2(2, 1, pad2(1, 0, 7, p))), zip(x, c))",
     "root", ""},
    {"mapFlatten",
     "def p(x, y: [N][M]int) = map(\\r s -> map(\\w a -> w[0] - 2 * w[1] * a, "
     "zip(slide(2, 1, pad(0, 1, wrap, r)), s)), zip(x, y))",
     "root", ""},
    {"mapFlatten", "def p(x: [N][M][K]int) = map(\\r -> map2(twice, r), x)", "root", ""},
    {"mapFlatten",
     "def p(x: [N][M]int, y: [M]int) = map(\\r -> map(\\a b -> a - b * b, zip(r, y)), x)",
     "root", ""},
    {"mapFlatten",
     "def p(x: [N][M]int, c: [N]int) = map(\\r d -> map(\\a -> a * d - d, r), zip(x, c))",
     "root", ""},
    {"mapFlatten",
     "def p(x, z: [N][M]int, y: [M]int, c: [N]int) =\n"
     "  map(\\r s d -> map(\\a b e -> a * d - b * e, zip(r, s, y)), zip(x, z, c))",
     "root", ""},
    {"mapFlatten",
     "def p(x: [N][M][K]int, y: [K]int, c: [N][M]int) =\n"
     "  map2(\\r d -> map(\\a b -> a * d - b, zip(r, y)), zip2(x, c))",
     "root", ""},
    {"mapFlatten",
     "def p(x: [N][M]int, c: [N]int) =\n"
     "  map(\\d -> map2(\\a -> a * d - d, x), c)",
     "root", ""},
    {"mapFusion", "def p(x: [N]int) = map(\\e -> e * e, map(twice, x))", "root", ""},
    {"mapFusion", "def p(x: [N][M]int) = map2(twice, map2(twice, x))", "root", ""},
    {"mapFusion", "def p(x: [N]int) = map(\\t -> t.0 - t.1, map(\\e -> (twice(e), e), x))",
     "root", ""},
    {"mapFusion",
     "def p(x: [N]int) = map(reduce(+, 0), map(\\w -> map(twice, w), slide(3, 1, x)))",
     "root", ""},
    {"mapZipFusion", "def p(x, y: [N]int) = map(mix, zip(x, map(twice, y)))", "root", "1"},
    {"mapZipFusion",
     "def p(x, y: [N][M]int) = map2(\\a b -> a * a + b, zip2(map2(twice, x), y))", "root",
     "0"},
    {"layoutOfMap", "def p(x: [N]int) = slide(3, 1, map(twice, x))", "root", ""},
    {"layoutOfMap", "def p(x: [N][M]int) = slide2(3, 1, 2, 1, map2(twice, x))", "root", ""},
    {"layoutOfMap", "def p(x: [N]int) = split(2, map(twice, x))", "root", ""},
    {"layoutOfMap", "def p(x: [N]int) = pad(1, 2, mirror, map(twice, x))", "root", ""},
    {"layoutOfMap", "def p(x: [N][M]int) = pad2(1, 2, clamp, map2(twice, x))", "root", ""},
    {"layoutOfMap", "def p(x: [N][M]int) = pad(1, 2, clamp, map2(twice, x))", "root", ""},
    {"layoutOfMap", "def p(x: [N][M]int) = join(map2(twice, x))", "root", ""},
    {"layoutOfMap", "def p(x: [N][M]int) = join(map(\\r -> map(twice, r), x))", "root", ""},
    {"layoutOfMap", "def p(x: [N][M]int) = transpose(map2(twice, x))", "root", ""},
    {"layoutOfMap", "def p(x: [N][M]int) = take2(1, 1, map2(twice, x))", "root", ""},
    {"layoutOfMap", "def p(x: [N]int) = drop(1, map(twice, x))", "root", ""},
    {"layoutOfMap", "def p(x: [N]int) = gather(\\i -> N - 1 - i, map(twice, x))", "root",
     ""},
    {"layoutOfMap", "def p(x: [N]int) = scatter(\\i -> N - 1 - i, map(twice, x))", "root",
     ""},
    {"layoutOfZip", "def p(x, y: [N]int) = slide(3, 1, zip(x, y))", "root", ""},
    {"layoutOfZip", "def p(x, y: [N][M]int) = slide2(3, 1, 2, 1, zip2(x, y))", "root", ""},
    {"layoutOfZip", "def p(x, y: [N]int) = split(2, zip(x, y, x))", "root", ""},
    {"layoutOfZip", "def p(x, y: [N][M]int) = pad2(1, 2, 2, 0, mirror, zip2(x, y))", "root",
     ""},
    {"layoutOfZip", "def p(x, y: [N]int) = take(1, zip(x, y))", "root", ""},
    {"layoutOfZip", "def p(x, y: [N]int) = drop(1, zip(x, y))", "root", ""},
    {"layoutOfZip", "def p(x, y: [N]int) = gather(\\i -> N - 1 - i, zip(x, y))", "root",
     ""},
    {"zipTurn", "def p(x, y: [N]int) = zip(x, gather(\\k -> N - 1 - k, y))", "root", "1"},
    {"zipTurn",
     "def p(x, y: [N]int) = zip(gather(\\k -> -k + N - 1, x), y, gather(\\k -> N - 1 - k, "
     "y))",
     "root", "0"},
    {"zipFlatten", "def p(x, y: [N]int) = map(mix, zip(x, x))", "root", ""},
    {"zipFlatten",
     "def p(x, y: [N][M]int) = map2(\\t u -> t.0 - u * t.1, zip2(zip2(x, y), y))", "root",
     ""},
    {"zipIndex", "def p(x, y: [N]int) = map(mix, zip(x, y))", "root", "01"},
    {"zipIndex", "def p(x: [N][M]int) = map(\\r -> map(mix, zip(r, r)), x)", "f", "01"},
    {"arrayView", "def p(x: [N][3][M]int) = array2(N, M, \\i j -> x[i][1][j])", "root", ""},
    {"arrayView", "def p(x: [3][N][2][K]int) = array(N, \\i -> x[2][i][1][0])", "root", ""},
    {"arrayView", "def p(x: [N][M]int) = array2(N, M, \\i j -> x[N - (i + 1)][j])", "root",
     ""},
    {"arrayMap", "def p(x: [N]int) = array(N, \\i -> 2 * x[i])", "root", ""},
    {"arrayMap", "def p(x: [N][M]int) = map(\\r -> array2(M, N, \\i j -> r[i] - j), x)",
     "f", ""},
    {"arrayWindows",
     "def p(x: [N + 2][M]int, y: [N][M]int) = array2(N, M, \\i j -> x[i + 2][j] - x[i][j] "
     "* y[i][j] + j)",
     "root", ""},
    {"arrayWindows",
     "def p(x: [N + 1]int) = array(N, \\i -> let a = x[1 + i] in if x[i] > i then a else "
     "x[i / 2])",
     "root", ""},
    {"arrayWindows",
     "def p(x: [N][4]int) = let t = unzip(map(\\r -> (reduce(+, 0, r), r[1]), x)) in "
     "array(N - 1, \\i -> array(3, \\k -> x[i + 1][k] * t.0[i]))",
     "1", ""},
    {"arrayWindows", "def p(x: [N + 1]int) = array(N, \\i -> x[i + 1])", "root", ""},
    {"indexZip", "def p(x, y: [N]int) = map(\\i -> x[i] - y[i], array(N, \\k -> k))",
     "root", ""},
    {"indexZip",
     "def p(x: [N][M]int, y: [N]int) = map(\\i -> reduce(+, i, map(\\j -> x[i][j] * y[i], "
     "array(M, \\k -> k))), "
     "array(N, \\k -> k))",
     "root", ""},
    {"indexZip",
     "def p(x: [N][M][K]int) = map(\\k -> reduce(+, 0, map(\\i -> x[i][0][k] - x[i][1][k], "
     "array(N, \\k -> k))), "
     "array(K, \\k -> k))",
     "root", ""},
    {"indexZip",
     "def p(x, y: [N]int) = reduce(\\s i -> s + x[i] * y[i], 0, array(N, \\k -> k))",
     "root", ""},
    {"indexZip",
     "def p(x: [N]int) = scan(\\s i -> s - x[N - 1 - i] + x[i], 0, array(N, \\k -> k))",
     "root", ""},
    {"indexZip", "def p(x: [N]int) = scan(\\s i -> s + i * x[i], 0, array(N, \\k -> k))",
     "root", ""},
    {"zipNest", "def p(x, y: [N][M]int) = map(\\r -> map(mix, r), zip2(x, y))", "root", ""},
    {"zipNest", "def p(x, y: [N][M][K]int) = map(\\r -> map2(mix, r), zip3(x, y))", "root",
     ""},
    {"mapReduceBlock",
     "def p(x: [N][M]int, y: [N]int) = map(\\r v -> 2 * reduce(+, 0, r) + v, zip(x, y))",
     "root", ""},
    {"letOut", "def p(x: [N]int) = let a = (let b = map(twice, x) in slide(2, 1, b)) in a",
     "root", ""},
    {"letOut",
     "def p(x: [N]int) = map(twice, drop(1, let b = map(twice, x) in map(mix, zip(b, b))))",
     "root", ""},
    {"letOut", "def p(x: [N]int) = map(\\e -> e + 2 * (let t = e * e in t - t * e), x)",
     "f", ""},
    {"letShare",
     "def p(x: [N]int) = let y = map(twice, x) in map(mix, zip(map(twice, x), y))", "root",
     ""},
    {"letSwap",
     "def p(x: [N]int) = let a = map(twice, x) in let b = drop(1, x) in (b, a, x)", "root",
     ""},
    {"letApart",
     "def p(x: [N]int) = let a = (map(twice, x), drop(1, x)) in (a.1, zip(a.0, a.0))",
     "root", ""},
    {"letApart",
     "def p(x: [N]int, y: [N]int) = let a = unzip(map(twice, x) |> map(\\e -> (e, e + 1))) "
     "in "
     "(a.1, zip(a.0, y))",
     "root", ""},
    {"letSplit",
     "def p(x: [N]int) = let a = split(2, map(twice, x)) in (join(a), map(reduce(+, 0), "
     "a))",
     "root", ""},
    {"letIn",
     "def p(x: [N]int, y: [N]int) = let a = map(twice, x) in let b = zip(a, y) |> map(+) "
     "in "
     "map(\\v -> v * v, b)",
     "root", ""},
    {"letTuple",
     "def p(x, y: [N]int) = let a = map(twice, x) in let b = map(mix, zip(x, y)) in\n"
     "  map(mix, zip(b, a))",
     "root", "2"},
    {"letTuple",
     "def p(x, y: [N]int) = let a = map(twice, x) in let b = map(mix, zip(a, y)) in\n"
     "  let c = map(mix, zip(b, a)) in (c, map(twice, b))",
     "root", "3"},
    {"letTuple",
     "def p(x: [N]int) = let a = map(\\v -> (v, twice(v)), x) in\n"
     "  let b = map(\\v t -> v + t.1, zip(x, a)) in map(twice, b)",
     "root", "2"},
    {"letTuple",
     "def p(x, y: [N]int) = let a = reduce(+, 0, map(mix, zip(x, y))) in let b = "
     "reduce(\\s v -> s * twice(v), 1, y) in let c = reduce(max, -9, x) in (b, a - c)",
     "root", "3"},
    {"letTuple",
     "def p(x: [N]int) = let a = map(\\v -> (v, twice(v)), x) in let b = map(twice, x) in\n"
     "  (map(\\t -> t.1, a), b, map(\\t -> t.0, a))",
     "root", "2"},
    {"letTuple",
     "def p(x: [N][M]int) = let a = map2(twice, x) in let b = map2(\\w -> w[0][0] - "
     "w[1][0],"
     " slide2(2, 1, 1, 1, pad2(0, 1, 0, 0, wrap, a))) in let c = map2(\\u v -> (u, v),"
     " zip2(a, b)) in (c, b, a)",
     "root", "23"},
    {"tileList", "def p(x: [N][3]int) = map(\\r -> map(\\e -> e + r[0], r), x)", "root",
     "1345 2"},
    {"tileList",
     "def p(x: [N][2][3]int, y: [N]int) = map(\\a b -> (transpose(a), b), zip(x, y))",
     "root", "13 14"},
    {"nameStage", "def p(x: [N]int) = reduce(+, 0, x)", "root", "0"},
    {"nameStage", "def p(x: [N]int) = (map(twice, x), reduce(+, 0, x))", "root", "01"},
    {"nameFolded", "def p(x: [N]int) = reduce(+, 0, x)", "root", "1"},
    {"nameFolded", "def p(x: [N]int) = reduce(\\s e -> s + twice(e), 0, x)", "root", "1"},
    {"nameFolded", "def p(x: [N][M]int) = reduce(\\s e -> s + twice(e), 0, join(x))",
     "root", "12"},
    {"nameFolded",
     "def p(x: [N][M]int) = reduce(\\s t -> s + t.0 * t.1, 0, zip(join(x), join(x)))",
     "root", "2"},
    {"foldTogether",
     "def p(x: [N]int) = let a = map(\\e -> (twice(e), e * e), x) in\n"
     "  (map(\\t -> t.0, a), reduce(+, 0, map(\\t -> t.1, a)))",
     "root", "13 03"},
    {"foldTogether",
     "def p(x: [N][M]int) = let a = map2(\\v w -> (twice(v), v * w[0][0]), zip2(x, "
     "slide2(1, "
     "1, x))) in\n  (map2(\\t -> t.0, a), reduce(+, 0, join(map2(\\t -> t.1, a))))",
     "root", "13 03"},
    {"foldTogether",
     "def p(x: [N][M]int, y: [N]int) = let a = map(\\r v -> (reduce(+, 0, r), map(\\e -> v "
     "* e, r)), zip(x, y)) in\n"
     "  (map(\\t -> t.0, a), reduce(\\u v -> map(+, zip(u, v)), array(M, \\j -> 0), "
     "map(\\t -> t.1, a)))",
     "root", "13 0"},
    {"foldTogether",
     "def p(x: [N][M]int) = let a = map(\\r -> map(\\e -> 2 * e, r), x) in\n"
     "  reduce(\\u v -> map(+, zip(u, v)), array(M, \\j -> 0), a)",
     "root", "13 0"},
    {"mapFissionLet",
     "def p(x: [N][M]int) = map(\\r -> let y = map(twice, r) in map(mix, zip(y, r)), x)",
     "root", ""},
    {"reduceFission", "def p(x: [N]int) = reduce(\\s e -> s + twice(e), 0, x)", "root", ""},
    {"reduceFission", "def p(x: [N]int) = reduce(\\s e -> e * e + s, 0, x)", "root", ""},
    {"scanFission", "def p(x: [N]int) = scan(\\s e -> s + twice(e), 0, x)", "root", ""},
    {"scanFission",
     "def p(x: [N]int) = scan(\\s e -> (max(s.0, e), s.1 + e * e), (0, 0), x)", "root", ""},
    {"reduceFission", "def p(x: [N]double) = reduce(\\s e -> s + 1, 0, x)", "root", ""},
    {"reduceFission",
     "def p(x, y: [N]int) = reduce(\\s t -> max(s, t.0 - t.1), -99, zip(x, y))", "root",
     ""},
    {"reduceFusion", "def p(x: [N]int) = reduce(+, 0, map(twice, x))", "root", ""},
    {"reduceFusion", "def p(x: [N]float) = reduceSeq(+, 0, map(\\e -> e * e, x))", "root",
     ""},
    {"mapFissionArg", "def p(x: [N]int, a: int) = map(\\e -> mix(a, twice(e)), x)", "root",
     "1"},
    {"mapFissionArg", "def p(x: [N][M]int) = map2(\\e -> 3 - twice(e), x)", "root", "1"},
    {"mapFissionArg", "def p(x: [N][M]int) = map(\\e -> split(M, map(twice, e)), x)",
     "root", "0"},
    {"mapFissionArg",
     "def p(x: [N][M]int) = map(\\e -> map(\\r -> transpose(r), array2(2, 1, \\i j -> e)), "
     "x)",
     "root", "0"},
    {"mapFissionArg",
     "def p(x: [N][M]int) = map(\\r -> gather(\\k -> M - 1 - k, scan(+, 0, r)), x)", "root",
     "0"},
    {"mapInterchange",
     "def p(x: [N]int, y: [M]int) = map(\\a -> map(\\b -> mix(a, b), y), x)", "root", ""},
    {"transposeBothSides", "def p(x: [N][M]int) = map2(twice, x)", "root", ""},
    {"transposeBothSides", "def p(x: [N][M]int) = map(\\r -> map(twice, r), x)", "root",
     ""},
    {"transposeTwice", "def p(x: [N][M]int) = transpose(transpose(x))", "root", ""},
    {"mapId", "def p(x: [N][M]int) = map2(\\e -> e, x)", "root", ""},
    {"mapId", "def p(x: [N]int, y: [N]float) = map(\\t -> t.1, zip(x, y))", "root", ""},
    {"unzipTuple", "def p(x: [N]int, y: [N]float) = (map(twice, x), y)", "root", ""},
    {"tupleApart", "def p(x: [N][M]int) = map(\\r -> (map(twice, r), reduce(+, 0, r)), x)",
     "root", ""},
    {"tupleApart", "def p(x: [N]int) = unzip(map(\\e -> let d = 2 * e in (d, d + e), x))",
     "root", ""},
    {"tupleApart", "def p(x: [N][M]int) = let y = map2(\\e -> (e, 2 * e), x) in unzip(y)",
     "1", ""},
    {"tupleApart",
     "def p(x: [N][M]int) = let y = map(\\r -> let s = reduce(+, 0, r) in (map(mix, zip(r, "
     "r)), s), x) in "
     "map(\\r s -> s + reduce(+, 0, r), y)",
     "root", ""},
    {"letInline", "def p(x: [N]int) = let y = map(twice, x) in map(mix, zip(y, y))", "root",
     ""},
    {"letInline", "def p(x: [N]float) = map(\\e -> let y = 1.5 in y * e, x)", "f", ""},
    {"reduceOne", "def p(x: [N]int) = reduce(max, -100, take(1, x))", "root", ""},
    {"mapGlb", "def p(x: [N]int) = map(twice, x)", "root", "012"},
    {"mapGlb", "def p(x: [N][M][K]int) = map3(twice, x)", "root", "2 01 01"},
    {"mapGlb", "def p(x: [N][M]int) = mapGlb1(\\r -> map(twice, r), x)", "f", "02"},
    {"mapWrg", "def p(x: [N][M][K]int) = map2(\\r -> map(twice, r), x)", "root", "12 0"},
    {"mapLcl", "def p(x: [N][M]int) = mapWrg0(\\r -> map(twice, r), x)", "f", "012"},
    {"mapLcl", "def p(x: [N][M][K]int) = mapWrg0(\\r -> map2(twice, r), x)", "f", "1 02"},
    {"mapSeq", "def p(x: [N][M]int) = map2(twice, x)", "root", ""},
    {"mapSeqUnroll", "def p(x: [N][M]int) = map2(twice, x)", "root", ""},
    {"mapSeqUnroll", "def p(x: [N]int) = mapSeq(twice, x)", "root", ""},
    {"reduceSeq", "def p(x: [N]float) = reduce(+, 0, x)", "root", ""},
    {"reduceSeqUnroll", "def p(x: [N]float) = reduceSeq(+, 0, x)", "root", ""},
    {"reduceSeqUnroll", "def p(x: [N]float) = reduce(+, 0, x)", "root", ""},
    {"scanSeq", "def p(x: [N]float) = scan(+, 0, x)", "root", ""},
    {"reduceWrg", "def p(x: [N][M]int) = map(reduce(+, 0), x)", "root", "1238 124"},
    {"reduceWrg",
     "def p(x: [N][M]int, y: [M]int) = map(\\r -> 3 * reduce(max, -9, map(mix, zip(r, y))) "
     "- 1, x)",
     "root", "1236 12"},
    {"reduceLcl", "def p(x: [N][M]int) = mapWrg0(\\r -> 2 * reduce(+, 0, r), x)", "f.1",
     "1238 124"},
    {"keyedSplit",
     "def p(x: [N][M]int) = map(\\r -> reduceBy(5, \\(s, m) v -> (s + v, min(m, v)), (0, "
     "999), "
     "map(\\v -> (v % 6, v), r)), x)",
     "root", "1347"},
    {"reduceByLcl",
     "def p(x: [N][M]int) = mapWrg0(\\r -> reduceBy(5, +, 0, map(\\v -> (v % 6, v), r)), "
     "x)",
     "f", "1248 124 12 8"},
    {"reduceByLcl",
     "def p(x: [N][M]int) = mapWrg0(\\r -> reduceBy(5, \\(s, m) v -> (s + v, min(m, v)), "
     "(0, "
     "999), map(\\v -> (v % 6, v), r)), x)",
     "f", "38 13 1 3"},
    {"reduceLanes", "def p(x: [N][M]int) = mapWrg0(\\r -> 2 * reduce(+, 0, r), x)", "f.1",
     "1238 124"},
    {"reduceLcl",
     "def p(x: [N][M]float) = mapWrg0(\\r -> let m = reduce(max, -9.0, map(\\v -> soft(2, "
     "v), r)) in "
     "mapLcl0(\\v -> v - m, r), x)",
     "f.0", "1236 12"},
    {"scanSplit", "def p(x: [N]int) = scan(+, 0, x)", "root", "12345"},
    {"scanSplit", "def p(x: [N]int) = scan(\\a b -> if b == 0 then a else b, 0, x)", "root",
     "12345"},
    {"scanSplit",
     "def p(x: [N]int, y: [N]int) = unzip(scan(\\a b -> if b.0 > a.0 then b else a, (-1, "
     "-1), zip(x, y)))",
     "0", "12345"},
    {"scanSplit", "def p(x: [N]float) = scan(max, 0, map(\\v -> v - 1, x))", "root",
     "12345"},
    {"scanSplit", "def p(x: [N]int) = map(twice, scan(+, 0, x))", "root", "12345"},
    {"scanSplit", "def p(x: [N]int, y: [N]int) = map(+, zip(y, scan(+, 0, x)))", "root",
     "12345"},
    {"scanResume", "def p(x: [N]int) = scan(+, 0, x)", "root", "12345"},
    {"scanResume", "def p(x: [N]int) = scan(\\a b -> if b == 0 then a else b, 0, x)",
     "root", "12345"},
    {"scanResume",
     "def p(x: [N]int, y: [N]int) = map(\\a b c -> a - b * c, zip(y, scan(+, 0, x), x))",
     "root", "12345"},
    {"scanOnePass", "def p(x: [N]int) = scan(+, 0, x)", "root", "12345 0"},
    {"scanOnePass",
     "def p(x: [N]int, y: [N]int) = unzip(scan(\\a b -> if b.0 > a.0 then b else a, (-1, "
     "-1), zip(x, y)))",
     "0", "134 0"},
    {"scanOnePass",
     "def p(x: [N]int, y: [N]int) = map(\\a b c -> a - b * c, zip(y, scan(+, 0, x), x))",
     "root", "134 0"},
    {"scanOnePass", "def p(x: [N][M]int) = map(\\r -> map(twice, scan(+, 0, r)), x)",
     "root", "123 01"},
    {"scanOnePass", "def p(x: [N][M]double) = map(scan(max, double(0)), transpose(x))",
     "root", "14 01"},
    {"scanShift", "def p(x: [N]int) = pad(1, 0, 0, take(N - 1, scan(+, 0, x)))", "root",
     ""},
    {"scanShift", "def p(x: [N]float) = pad(1, 0, -9.0, take(1, scan(max, -9.0, x)))",
     "root", ""},
    {"scanAffine", "def p(x: [N]int) = scan(\\h c -> h * 31 + c, 7, x)", "root", ""},
    {"scanAffine", "def p(x: [N]int) = scan(\\y v -> float(v) - y, 1, x)", "root", ""},
    {"scanAffine",
     "def p(x: [N]int) = scan(\\y v -> let k = double(v) * 2 in let d = k - y in y + d / "
     "2, "
     "0.5, x)",
     "root", ""},
    {"scanAffine",
     "def p(x, y: [N]int) = scan(\\s (u, v) -> if v % 3 == 0 then u else -(s - u) * v, 2, "
     "zip(x, y))",
     "root", ""},
    {"scanAffine",
     "def p(x: [N][M]int) = map(\\r -> scan(\\y v -> if v > 0 then float(v) - y else 2 * "
     "y, "
     "float(r[0]), r), x)",
     "f", ""},
    {"scanAffine",
     "def p(x: [N]int) = scan(\\s v -> let y = 2 * s.0 - s.1 + double(v) in (y, s.0), "
     "(1.0, "
     "0.0), x)",
     "root", ""},
    {"scanAffine", "def p(x: [N]int) = scan(\\s v -> (s.0 + s.1, mix(s.1, v)), (1, 2), x)",
     "root", ""},
    {"scanAsMap", "def p(x: [N]float) = scan(soft, 1, x)", "root", ""},
    {"scanLcl", "def p(x: [N][M]int) = mapWrg0(\\r -> scan(+, 0, r), x)", "f", "12358"},
    {"scanLcl", "def p(x: [3][300]int) = mapWrg0(\\r -> scan(+, 0, r), x)", "f", "789"},
    {"scanLcl",
     "def p(x, y: [N][M]int) = mapWrg0(\\r -> let s = scan(\\a b -> if b.0 > a.0 then b "
     "else a, (-1, -1), zip(r, array(M, \\k -> k))) in mapLcl0(\\t -> t.1, s), x)",
     "f.0", "12358"},
    {"partialReduceInto",
     "def p(x: [N]int) = reduce(\\a b -> if b.0 > a.0 then b else a, (-1, -1), zip(x, "
     "array(N, \\k -> k)))",
     "root", "123 124"},
    {"reduceWrg",
     "def p(x: [N][M]int) = map(reduce(\\a b -> if b == 0 then a else b, 0), x)", "root",
     "1238 124"},
    {"reduceLcl",
     "def p(x: [N][M]int) = mapWrg0(\\r -> reduce(\\a b -> if b.0 > a.0 then b else a, "
     "(-1, "
     "-1), zip(r, array(M, \\k -> k))).1, x)",
     "f.0", "1238 124"},
    // By parts for what a map makes, and not for any numbers of elements.
    {"reduceLcl",
     "def p(x: [N][M]int) = mapWrg0(\\r -> (map(\\v -> (1, v), r) |> " LAST_VALUE ").1, x)",
     "f.0", "1238 124"},
    {"reduceLcl",
     "def p(x: [N][M]int) = mapWrg0(\\r -> let ones = map(\\v -> 1, r) in "
     "(zip(ones, r) |> " LAST_VALUE ").1, x)",
     "f.1.0", "1238 124"},
    {"reduceLcl",
     "def p(x: [3][900]int) = mapWrg0(\\r -> reduce(\\a b -> if b.0 > a.0 then b else a, "
     "(-1, -1), zip(r, array(900, \\k -> k))).1, x)",
     "f.0", "89 124"},
    {"reduceLcl",
     "def p(x: [N][M]int) = mapWrg0(\\r -> reduce(\\a b -> (b.0 + a.0, max(a.1, b.1)), (0, "
     "0), zip(r, r)), x)",
     "f", "1238 124"},
    {"reduceFission",
     "def p(x: [N]int) = reduce(\\s e -> (s.0 + e, e * e + s.1), (0, 0), x)", "root", ""},
    {"onlyItem", "def p(x: [N][M]int) = mapWrg0(\\r -> reduceSeq(+, 0, r), x)", "f", ""},
    {"onlyItem", "def p(x: [N][M]int) = mapWrg0(\\r -> (r[0], float(r[0])), x)", "f", ""},
    {"nameFold",
     "def p(x: [M][N]int) = map(\\r -> 2 * iterate(3, \\s -> s + reduce(max, s, r), 0), x)",
     "f", "12 0"},
    {"nameFold",
     "def p(x: [N][M]int) = map(\\r -> map(\\v -> v - reduce(+, 0, r) + reduce(+, 0, r), "
     "r), x)",
     "f", "123 0"},
    {"nameFold",
     "def p(x: [N][M]int) = map(\\r -> let y = map(\\v -> v * reduce(max, 0, r), r) in y, "
     "x)",
     "f", "12 0"},
    {"nameFold",
     "def p(x: [N][M]int) = map(\\r -> map(\\v -> reduce(max, v, r) + reduce(+, 0, r), r), "
     "x)",
     "f", "12 0"},
    {"nameFold",
     "def p(x: [N][M]int) = map(\\r -> scan(+, 0, map(\\v -> v * v, scan(max, 0, "
     "scan(min, 7, r)))), x)",
     "f", "12 1"},
    {"nameArray",
     "def p(x: [N][M]int) = map(\\r -> r |> map(\\v -> v * v) |> slide(2, 1) |> map(\\w -> "
     "w[0] + w[1]), x)",
     "f", "0"},
    {"nameArray",
     "def p(x: [N][M]int) = map(\\r -> iterate(3, \\s -> map(\\v -> 2 * v, s), r), x)", "f",
     "1"},
    {"nameArray",
     "def p(x: [N][M]int) = map(\\r -> r |> map(\\v -> v + 1) |> scatter(\\i -> M - 1 - i) "
     "|> map(\\v -> 2 * v), x)",
     "f", "0"},
    {"hoistMap",
     "def p(x: [N][M]int) = map(\\r -> map(\\q -> reduce(+, 0, r) * reduce(+, 1, q), x), "
     "x)",
     "root", "12"},
    {"hoistMap",
     "def p(x: [N][M]int, y: [N]int) = map(\\v -> reduce(+, 0, map(\\t -> let s = "
     "reduce(max, "
     "0, t.0) + t.1 in s * t.1 - v, zip(x, y))), y)",
     "root", "12"},
    {"hoistMap",
     "def p(x: [N][M]int, y: [N]int) = map(\\c -> map(\\t -> t.1 * reduce(+, 0, t.0) + "
     "t.2, "
     "zip(x, y, c)), transpose(x))",
     "root", "12"},
    {"tableOfPlaces",
     "def p(x: [N][4]float) = map(\\r -> array(4, \\k -> reduce(+, 0, array(4, \\n -> "
     "r[n] * cos(0.25 * float(k * n))))), x)",
     "root", ""},
    {"hoistStage",
     "def p(x: [N][M]int) = map(\\r -> reduce(\\a v -> 3 * a + v, 0, "
     "scatter(\\i -> M - 1 - i, r)) - r[0], x)",
     "root", "12 01 0 01"},
    {"hoistStage",
     "def p(x: [N][M]int, y: [N][M]int) = map(\\t -> map(mix, zip("
     "scatter(\\i -> (i + t.1[0] * 0 + 1) % M, map(twice, t.0)), t.1)), zip(x, y))",
     "root", "1 0 0 0"},
    {"hoistStage",
     "def p(x: [N][M]int) = map(\\r -> map(twice, iterate(3, \\s -> map(twice, s), r)), x)",
     "root", "1 1 0 0"},
    {"hoistStage",
     "def p(x: [N][M]int) = map(\\r -> map(\\w -> w[0] * w[1], slide(2, 1, map(twice, "
     "r))), x)",
     "root", "9 1 1 0"},
    {"hoistStage",
     "def p(x: [N][M]int) = map(\\r -> let t = map(twice, r) in map(\\v -> v + t[1], r), "
     "x)",
     "root", "9 1 1 0"},
    {"iterateRows",
     "def p(x: [N][M][3]int, y: [N][3]int) = map(\\r s -> let z = map(\\v -> v + 1, s) in "
     "scan(\\a b -> let q = zip(a, b) |> map(*) in zip(q, s) |> map(\\u v -> u - v), z, "
     "r), zip(x, y))",
     "root", ""},
    {"iterateRows",
     "def p(x: [N][M]int) = map(\\r -> iterate(3, \\s -> map(\\v -> v + r[1], s), r), x)",
     "root", ""},
    {"iterateRows",
     "def p(x: [N][M]int, y: [N]int) = map(\\t -> iterate(2, \\a b -> (map(mix, zip(a, "
     "t.0)), "
     "b + a[0] + t.1), (map(twice, t.0), 1)), zip(x, y))",
     "root", ""},
    {"iterateRows",
     "def p(x: [N][M]int, y: [N]int) = map(\\t -> iterate(3, \\n a -> (n + 2, map(\\v -> v "
     "* "
     "n + t.1, a)), (5, t.0)), zip(x, y))",
     "root", ""},
    {"joinScatter",
     "def p(x: [N][M]int) = map(\\r -> scatter(\\i -> (i + 2) % M, map(twice, r)), x)",
     "root", ""},
    {"joinScatter",
     "def p(x: [N][M]int, y: [N][M]int) = map(\\t -> scatter(\\i -> (i + t.1[0] * 0) % M, "
     "t.0), zip(x, y))",
     "root", ""},
    {"mapJoin", "def p(x: [N][M]int) = map2(twice, x)", "root", ""},
    {"mapJoin",
     "def p(x: [N][M][4]int, y: [N][M][4]int) = map3(\\t -> t.0 - t.1, zip3(x, y))", "root",
     ""},
    {"separateFold",
     "def p(x: [N][M]int) = map2(\\w -> reduce(+, 0, join(w)) - w[0][1], slide2(3, 1, x))",
     "root", "1"},
    {"separateFold",
     "def p(x: [N][M]int, y: [N][M]int) = map2(\\w v -> v + reduce(\\s r -> max(s, r * r), "
     "0, join(w)), zip2(slide2(3, 1, pad2(1, 1, mirror, x)), y))",
     "root", "0"},
    {"separateFold",
     "def p(x: [N][M]int, c: int) = map2(\\w -> reduce(+, 0, map(\\v -> v * v, join(w))), "
     "slide2(4, 1, pad2(1, 2, c, x)))",
     "root", "1"},
    {"separateFold",
     "def p(x: [N][M]int) = map2(\\w -> reduce(min, 9, join(w)) + reduce(+, 0, join(w)), "
     "slide2(3, 1, pad2(2, 3, 7, x)))",
     "root", "0"},
    {"separateFold",
     "def p(x: [N]int) = map(\\w -> reduce(max, 0, w), slide(6, 1, pad(3, 2, 0, x)))",
     "root", "1"},
    {"separateFold",
     "def p(x: [N]int) = map(\\w -> w[3] - reduce(+, 0, map(\\v -> v * v, w)), "
     "slide(7, 1, pad(3, 3, clamp, x)))",
     "root", "0"},
    {"safeFold",
     "def p(x: [N][M]int, k: int) = if k >= 0 && k < N then reduce(+, 0, x[k]) else 0",
     "root", ""},
    {"safeFold",
     "def p(x: [N]int, k: [N]int) = map(\\i -> if i != 0 then reduce(\\s v -> s + v % i, "
     "0, "
     "x) else i, k)",
     "root", ""},
    {"safeFold",
     "def p(x: [N]int, k: [N]int) = map(\\i -> i > 0 && reduce(+, 0, gather(\\j -> (j + i) "
     "% N, x)) > i, k)",
     "root", ""},
    {"hoistFold",
     "def p(a: [N][M]int) = map(\\r o -> map(\\v -> v - o, r), zip(a, map(reduce(+, 0), "
     "a)))",
     "root", "0"},
    {"hoistFold",
     "def p(x: [N][M]int) = map(\\r -> map(\\v -> v - reduce(+, 0, r) + reduce(+, 0, r), "
     "r), x)",
     "f", "123"},
    {"hoistFold",
     "def p(x: [N][M]int) = map(\\r -> map(\\v -> let s = reduce(max, 0, r) + 1 in v * s, "
     "r), x)",
     "f", "12"},
    {"hoistFold",
     "def p(x: [N]int, y: [M]int) = map(\\v -> (if v > 0 then reduce(+, 0, y) else 0) + "
     "reduce(max, 0, y), x)",
     "root", "12"},
    {"hoistFold",
     "def p(x: [N][M]int) = map(\\r -> let a = array(3, \\i -> i * i) in let b = "
     "map(twice, a) "
     "in map(\\v -> v + b[1] + a[2], r), x)",
     "root", "0"},
    {"hoistMap",
     "def p(x: [N][4]float) = map(\\r -> let k = 2 in zip(r, array(4, \\i -> i)) |> "
     "map(\\v i -> "
     "let t = float(i * k) in v + sqrt(t)), x)",
     "root", "0"},
    {"toLocal", "def p(x: [N][M]int) = mapWrg0(\\r -> mapLcl0(twice, r), x)", "f.0", "012"},
    {"toLocal",
     "def p(x: [N][M]int, y: [N][M]float) = mapWrg0(\\r -> mapLcl0(\\t -> t, r), zip2(x, "
     "y))",
     "f.0", "0"},
    {"toPrivate", "def p(x: [N][3]int) = mapGlb0(\\r -> reduceSeq(+, 0, r), x)", "f.1", ""},
    {"toPrivate", "def p(x: [N]int) = mapGlb0(\\e -> e * e, x)", "f.0", ""},
    {"holdItem",
     "def p(x: [N][3]int) = mapGlb0(\\r -> let t = map(twice, r) in reduceSeq(+, t[0], t), "
     "x)",
     "f.0", ""},
    {"toGlobal", "def p(x: [N]int) = mapGlb0(twice, mapGlb0(twice, x))", "0", ""},
    {"copy", "def p(x: [N][M]int) = transpose(x)", "root", "12"},
    {"copyLocal", "def p(x: [N][M]int) = mapWrg0(\\r -> mapLcl0(twice, r), x)", "root",
     "01"},
    {"holdLocal", "def p(x: [N][M]int) = mapWrg0(\\r -> mapLcl0(twice, r), x)", "f", ""},
    {"holdOwn", "def p(x: [N][M]int) = mapWrg0(\\r -> mapLcl0(twice, r), x)", "f", ""},
    {"nameRows", "def p(x: [N][M]int) = map(\\r -> map(\\v -> v + r[0], r), x)", "root",
     ""},
    {"nameRows",
     "def p(x, y: [N][M]int) = mapWrg0(\\r s -> map(mix, zip(r, map(mix, zip(s, r)))), "
     "zip(x, "
     "y))",
     "root", ""},
    {"copyPrivate", "def p(x: [N][3]int) = mapGlb0(\\r -> r[0] * r[2], x)", "root", ""},
    {"tile", "def p(x: [N]int) = map(reduce(+, 0), slide(3, 1, pad(1, 1, wrap, x)))",
     "root", "12345"},
    {"tile", "def p(x: [N]int) = map(\\w -> w[0] - w[3], slide(4, 3, x))", "root", "123"},
    {"tile",
     "def p(x: [N][M]int) = map2(\\w -> w[0][1] - w[2][0], slide2(3, 1, pad2(1, 1, clamp, "
     "x)))",
     "root", "1245 1238"},
    {"tile",
     "def p(x: [N][M][K]int) = map3(\\w -> w[0][1][0] - w[2][0][1], "
     "slide3(3, 1, 2, 1, 2, 1, pad3(1, 1, 1, 0, 0, 1, 0, x)))",
     "root", "123 24 12"},
    {"tile",
     "def p(x, y: [N][M]int) = map2(\\w e -> w[0][1] - w[2][0] * e, "
     "zip2(slide2(3, 1, pad2(1, 1, mirror, x)), y))",
     "root", "124 123"},
    {"productTile", "def p(x: [N]int, y: [M]int) = map(\\a -> map(\\b -> mix(a, b), y), x)",
     "root", "1235 124"},
    {"productTile",
     "def p(x: [N][K]int, y: [K][M]int) = map(\\r -> map(\\c -> reduce(\\s t -> s + t.0 * "
     "t.1, 0, zip(r, c)), transpose(y)), x)",
     "root", "124 23"},
    {"productSplit",
     "def p(x: [N][K]int, y: [K][M]int) = map(\\r -> map(\\c -> reduce(+, 0, map(*, zip(r, "
     "c))), transpose(y)), x)",
     "root", "123"},
    {"productSplit",
     "def p(x: [N][K]int, y: [M][K]int, z: [M]int) = map(\\r -> map(\\c v -> 2 * "
     "reduce(max, -9, map(mix, zip(r, c))) + v, zip(y, z)), x)",
     "root", "123"},
    {"mapReduceBlock", "def p(x: [N][M]int) = map(reduce(+, 0), x)", "root", ""},
    {"mapReduceBlock",
     "def p(x: [N][M]float, y: [M]float) = map(\\r -> reduce(\\s t -> soft(s, t.0) * t.1, "
     "0.5, zip(r, map(\\e -> e * e, y))), x)",
     "root", ""},
    {"mapReduceBlock", "def p(x: [N][M][K]int) = map2(reduce(max, -9), x)", "root", ""},
    {"mapReduceBlock",
     "def p(x: [N][M]int, y: [N]int) = map(\\t -> reduce(\\s e -> s + e * t.1, 0, t.0), "
     "zip(x, y))",
     "root", ""},
    {"stageTiles",
     "def p(x: [N][4][6]int) = mapWrg0(\\r -> mapLcl1(\\j -> mapLcl0(\\i -> reduceSeq(\\a "
     "k "
     "-> a + r[i][k] * j + k, 0, array(6, \\k -> k)), array(2, \\i -> i)), array(2, \\j -> "
     "j)), x)",
     "f.f.f", "123456"},
    {"stageTiles",
     "def p(x: [N][6]float, y: [M][6]float) = mapWrg1(\\p -> mapWrg0(\\q -> mapLcl1(\\j -> "
     "mapLcl0(\\i -> reduceSeq(\\a k -> a + p[j + i][k] * q[i][k], 0.0, array(6, \\k -> "
     "k)), "
     "array(2, \\i -> i)), array(1, \\j -> j)), split(2, take(M/2*2, y))), split(2, "
     "take(N/2*2, x)))",
     "f.f.f.f", "123"},
    {"stageTiles",
     "def p(x: [N][9]int, y: [M][6]int) = mapWrg1(\\p -> mapWrg0(\\q -> mapLcl1(\\j -> "
     "mapLcl0(\\i -> reduceSeq(\\a k -> a + x[0][q[i] % 3 + k] * (p[j + i][k] + p[0][0]), "
     "0, array(6, \\k -> k)), array(2, \\i -> i)), array(1, \\j -> j)), split(2, array(4, "
     "\\k -> k))), split(2, take(M/2*2, y)))",
     "f.f.f.f", "123"},
    {"matrixTiles",
     "def p(x: [N][6]float, y: [M][6]float) = mapWrg1(\\p -> mapWrg0(\\q -> mapLcl1(\\j -> "
     "mapLcl0(\\i -> reduceSeq(\\acc k -> map2(\\t -> t.0 + p[t.1.0][k] * (q[t.1.1][k] + "
     "1.0), zip2(acc, array2(2, 2, \\a b -> (a, b)))), array2(2, 2, \\a b -> 0.0), "
     "array(6, "
     "\\k -> k)), array(2, \\i -> i)), array(1, \\j -> j)), split(2, take(M/2*2, y))), "
     "split(2, take(N/2*2, x)))",
     "f.f.f.f", "1234"},
    {"vectorize", "def p(x: [N]int) = map(twice, x)", "root", "24"},
    {"vectorize", "def p(x: [N]float, a: float) = map(\\e -> a * e + 1, x)", "root", "248"},
    {"vectorize", "def p(x, y: [N]float) = map(\\a b -> soft(a, b) - b, zip(x, y))", "root",
     "24"},
    {"mapSeqSlide", "def p(x: [N]int) = map(reduce(+, 0), slide(3, 1, x))", "root", ""},
    {"mapSeqSlide", "def p(x: [N]int) = map(\\w -> w[0] - w[1], slide(2, 2, x))", "root",
     ""},
    {"stream",
     "def p(x: [N][M]int) = map2(\\w -> w[0][1] - w[2][0], slide2(3, 1, 2, 1, x))", "root",
     ""},
    {"stream",
     "def p(x: [N][M][K]int) = map3(\\w -> w[0][1][0] - w[2][0][1], "
     "slide3(3, 1, 2, 1, 2, 1, x))",
     "root", ""},
    {"iterateOnce",
     "def p(x: [N][M]int) = x |> pad2(1, 1, clamp) |> slide2(3, 1) |> map2(\\w -> w[0][1] "
     "- w[2][0])",
     "root", ""},
    {"iterateOnce",
     "def p(x: [N][M]int, y: [N][M]int) = let t = x |> map2(twice) in "
     "zip2(t |> pad2(1, 0, wrap) |> slide2(2, 1), y) |> map2(\\w e -> (e - w[0][1], "
     "w[1][0]))",
     "1", ""},
    {"iterateStream",
     "def p(x: [N][M]int) = iterate(3, \\a -> a |> pad2(1, 1, clamp) |> slide2(3, 1) "
     "|> map2(\\w -> w[0][1] - w[2][0]), x)",
     "root", "12 14 8"},
    {"iterateStream",
     "def p(x, y: [N][M]int) = iterate(2, \\a b -> (b, zip2(a, b |> pad2(0, 1, 2) "
     "|> slide2(2, 1)) |> map2(\\e w -> mix(e, reduce(+, 0, join(w))))), (x, y))",
     "root", "2 2 9"},
};

#endif
