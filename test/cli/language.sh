# doc/language.md: every example in it is a program, or the body of one.
. test/cli/common

"$PYTHON" - "$tmp" <<'END'
import re
import sys
text = open("doc/language.md").read()
blocks = re.findall(r"^```\n(.*?)^```", text, re.S | re.M)
head = next(b for b in blocks if "def main(" in b).replace("...", "").rstrip()
bodies = []
for block in blocks:
    if re.match(r"\w+ +.*->.*\n {5,}", block):          # rules: name, type / doc / example
        for rule in re.split(r"\n\n", block.strip()):
            bodies.append(rule.splitlines()[-1].strip())
    elif block.startswith("+ "):                        # operations: text, types, doc, example
        bodies += [re.split(r"  +", line)[-1] for line in block.strip().splitlines()]
programs = [b for b in blocks if re.search(r"^def \w+\(", b, re.M) and "..." not in b]
for i, program in enumerate(programs + [f"{head}\n  {body}\n" for body in bodies]):
    open(f"{sys.argv[1]}/{i:03}.fw", "w").write(program)
END
count=0
for program in "$tmp"/[0-9]*.fw; do
    count=$((count + 1))
    body=$(tail -n 1 "$program")
    if "$FOREWARP" check "$program" >/dev/null 2>"$tmp/stderr"; then
        ok "example: $body"
    else
        not_ok "example: $body" "$(cat "$tmp/stderr")"
    fi
done
[ $count -gt 60 ] && ok "$count examples" || not_ok "only $count examples"

# What is out of bounds unless all conditions hold: each of them is lowered a few times only.
body='a[i - 1]'
for k in $(seq 40 -1 1); do body="(if i >= $k then $body + 1.0 else $k.0)"; done
printf 'size N\ndef f(a: [N]float): [N]float = array(N, \\i -> %s)\n' "$body" >"$tmp/deep.fw"
passes "forty ifs in one another" timeout 1800 "$FOREWARP" emit "$tmp/deep.fw" -s N=1024 --target cuda

# Eight elements of five a work-item: the conditions of the last ones hold nowhere.
cat >"$tmp/corners.fw" <<'END'
size N, M
def f(a: [N][M]float) =
  array2(N, M, \i j -> (if i >= 2 && j >= 2 then a[i - 2][j - 2] else 0.0)
    + (if i + 2 < N && j + 2 < M then a[i + 2][j + 2] else 0.0))
END
passes "accesses that no element meets" "$FOREWARP" run "$tmp/corners.fw" -s N=5,M=5 -d host --check \
    --point lx=16,ly=1,bx=8,by=4

# Components that hand on what others held before: all change at once.
cat >"$tmp/late.fw" <<'END'
size R, T
def f(a: [R][T]float) =
  let fold = map(\r -> reduce(\(p, q, o) x -> (x + 1.2 * p - 0.5 * q, p, q), (0.0, 0.0, 0.0), r), a) in
  let loop = map(\r -> iterate(50, \p q -> (r[0] + 1.2 * p - 0.5 * q, p), (0.0, 0.0)), a) in
  (map(\t -> t.2, fold), map(\t -> t.1, loop), map(\r -> r |> scan(\(p, q) x -> (q, p + x), (0.0, 1.0)) |> map(\y -> y.0), a))
END
for device in host opencl:0; do
    passes "components that change at once, on $device" "$FOREWARP" run "$tmp/late.fw" -s R=9,T=30 -d $device --check
done

# A recurrence of a row, and a map of what it gives: one item finds it, not one for each element.
printf 'size R, T\ndef f(a: [R][T]float) = map(\\r -> r |> scan(\\p x -> 0.9 * p + x, 0.0) |> map(\\y -> y * 2), a)\n' >"$tmp/row.fw"
"$FOREWARP" emit "$tmp/row.fw" -s R=64,T=100 >"$tmp/row.cl"
grep -q 'get_global_id(1)' "$tmp/row.cl" && not_ok "an item a row" "$(cat "$tmp/row.cl")" || ok "an item a row"

# Rows that a loop makes, folded by groups under two maps: what the loop makes has a place.
cat >"$tmp/rows.fw" <<'END'
def f(a: [303]float) =
  scan(+, 0, a) |> split(101)
    |> map(\x -> let s = iterate(1, \s -> s |> map2(\v -> v * 0.5), split(101, x)) in take(1, s))
    |> map2(\r -> reduce(+, 0, r))
END
passes "rows that a loop makes" "$FOREWARP" emit "$tmp/rows.fw" --target c --device-model nvidia-h200 \
    -o "$tmp/rows.c"
passes "their kernels compile" cc -std=c11 -fsyntax-only "$tmp/rows.c"

# Literals that have their type of a declared result keep it where that result is out of sight.
while IFS='|' read -r name program; do
    printf 'size N\n%s\n' "$program" | tr '~' '\n' >"$tmp/declared.fw"
    passes "declared type $name" "$FOREWARP" run "$tmp/declared.fw" -s N=300 -d host --check
done <<'END'
of a map|def f(a: [N]float): [N]uchar = map(\x -> if x > 0 then 255 else 0, a)
of a def that is called|def g(a: [N]float): [N]uchar = map(\x -> if x > 0 then 255 else 0, a)~def f(a: [N]float) = map(\x -> int(x), g(a))
of a number beyond int|def f(a: [N]float): [N]ulong = array(N, \i -> if a[i] > 0 then 3000000000 else 1)
of a fold|def f(a: [N]float): double = reduce(\s x -> s + (if x > 0 then 0.1 else 0), 0, a)
of tuples|def f(a: [N]float): [N](double, char) = map(\x -> (if x > 0 then 0.1 else 1, if x > 0 then -1 else 1), a)
of a tuple|def f(a: [N]float): ([N]double, [N]char) = unzip(map(\x -> (if x > 0 then 0.1 else 1, if x > 0 then -1 else 1), a))
behind views|def f(a: [3*N]float): [N + 1]uchar = pad(1, 0, clamp, drop(2*N, join(transpose(map2(\x -> if x > 0 then 255 else 0, split(3, a))))))
of a zip|def f(a: [N]float): [N](uint, double) = zip(map(\x -> if x > 0 then 3000000000 else 0, a), map(\x -> if x > 0 then 0.1 else 0, a))
of a state|def f(a: [N]double): [N]double = map(\v -> (iterate(40, \x e -> if abs(e) > 1e-12 then let y = (x + v*v/x) / 2 in (y, y - x) else (x, e), (v, 1.0))).0, a)
of what a step gives|fun next(x: uint): uint = x * 3 + 1~def f(a: [N]float): [N]uint = map(\x -> iterate(5, \v -> next(v), 1), a)
END

# What no inputs make right is found by check where sizes are known, and told with its place by
# run and tune; what some inputs make right passes.
while IFS='|' read -r says program; do
    printf 'size N\n%s\n' "$program" >"$tmp/refused.fw"
    for command in "check" "run --check -d host" "tune -d host --budget 1t -o $tmp/out"; do
        fails 2 "refused.fw:2:$says" "$FOREWARP" $command "$tmp/refused.fw" -s N=65
    done
    passes "check without sizes" "$FOREWARP" check "$tmp/refused.fw"
done <<'END'
53: error R001: index 65 is outside an array of 65|def f(x: [N]float): [N+5]float = array(N+5, \i -> x[i])
32: error R002: scatter puts two elements at place 0|def f(x: [N]float): [N]float = scatter(\i -> i / 2, x)
32: error R001: gather takes element 65 of an array of 65|def f(x: [N]float): [N]float = gather(\i -> i + 1, x)
50: error R003: division by zero|def f(x: [N]int): [N]int = array(N, \i -> x[i] + 5 / i)
END
while read -r program; do
    printf 'size N\n%s\n' "$program" >"$tmp/may.fw"
    passes "not refused: $program" "$FOREWARP" check "$tmp/may.fw" -s N=65
done <<'END'
def f(x: [N]float, at: [N]int): [N]float = array(N, \i -> x[at[i] - 1])
def f(x: [N]float, at: [N]int): [N]float = scatter(\i -> at[i], x)
def f(x: [N]int, k: int): [N]int = array(N, \i -> x[i] / k + x[k])
END
printf 'size N\ndef f(x: [N]float): [N+5]float = array(N+5, \\i -> x[i])\n' >"$tmp/large.fw"
fails 1 "cannot be checked at small sizes: f N=2304: index 2304 is outside an array of 2304" \
    "$FOREWARP" run "$tmp/large.fw" -s N=4000000 -d host --check

# C text is not interpreted: its plain kernel is the reference, which the summary says.
cat >"$tmp/text.fw" <<'END'
size N
fun root(x: float): float = c"float y = sqrt(x); if (y > 0.5f) y = fabs(y); return y * x;" flops 2
def f(x: [N]float): [N]float = map(root, x)
END
for n in 65 3000000; do
    "$FOREWARP" tune "$tmp/text.fw" -s N=$n -d host --budget 6t -o "$tmp/text" --json "$tmp/text.json" \
        >"$tmp/stdout" 2>&1
    if grep -q "by itself: the interpreter knows no C text (.root.)" "$tmp/stdout" "$tmp/text.json"; then
        ok "opaque, $n elements"
    else
        not_ok "opaque, $n elements" "$(cat "$tmp/stdout")"
    fi
done
# Sums and magnitudes of ints wrap, whatever a compiler concludes from their signs.
"$PYTHON" - "$tmp/extreme.npy" <<'END'
import struct, sys
with open(sys.argv[1], "wb") as f:
    head = "{'descr': '<i4', 'fortran_order': False, 'shape': (9, 2), }"
    f.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n")
    f.write(struct.pack("<18i", *[2**30, 2**30, -2**31, 5] * 4, 2**31 - 1, 1))
END
cat >"$tmp/wraps.fw" <<'END'
size N
def wraps(x: [N][2]int): ([N]bool, [N][2]int, [N]bool) =
  (x |> map(\r -> reduce(+, 0, map(\e -> max(e, 0), r)) >= 0),
   x |> map(\r -> r |> map(\e -> max(e, 0)) |> scan(+, 0) |> map(\e -> e / 2)),
   x |> map(\r -> abs(r[0]) >= 0))
END
for device in host opencl:0; do
    passes "ints wrap on $device" "$FOREWARP" run "$tmp/wraps.fw" -s N=9 --in x="$tmp/extreme.npy" -d $device --check
done

# The places of scattered elements are read within bounds by each item of several elements.
printf 'size N\ndef placed(a: [N]float, k: [N]int): [N]float = a |> scatter(\\i -> k[i]) |> map(\\e -> e + 0)\n' >"$tmp/placed.fw"
for place in "N=64 lx=32,cx=4" "N=64 lx=64,cx=2" "N=2000 lx=256,bx=4,cx=4"; do
    passes "places, $place" "$FOREWARP" emit "$tmp/placed.fw" -s "${place% *}" -t cuda --device-model nvidia-h200 \
        -p "${place#* }"
done

# Sizes take the types of their places; what is an int is rounded down before it is converted.
cat >"$tmp/sizes.fw" <<'END'
size N, M
fun f(x: float): float = x / N
def main(a: [N]float, d: [N]double) =
  (reduce(+, 0, a) / (N * M), N / 2 * d[0], map(f, a), map(\x -> if x > N - 1 then x else N, d), N / 2.0 * d[1], d[2] * sqrt(N - 1))
END
for device in host opencl:0; do
    passes "sizes as numbers, on $device" "$FOREWARP" run "$tmp/sizes.fw" -s N=37,M=3 -d $device --check
done

# Literals of a state take the types that their own components need, also inside arrays.
cat >"$tmp/state.fw" <<'END'
size N, K
def main(a: [N]double, d: [N][K]double) =
  let s = iterate(5, \q r j -> (map(\x -> x * 0.5 + r[j], q), map(\x -> x * 0.9 + q[j], r), (j + 1) % 4), (a, array(4, \k -> 0.0), 0)) in
  (s.0, map(\row -> let t = iterate(5, \q j -> (map(\x -> x * 0.5 + row[j], q), (j + 1) % 4), (array(4, \k -> 0.0), 0)) in t.0[1], d))
END
for device in host opencl:0; do
    passes "a state of doubles and an index, on $device" "$FOREWARP" run "$tmp/state.fw" -s N=37,K=5 -d $device --check
done
finish
