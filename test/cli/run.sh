# forewarp run: on NumPy's arrays, against NumPy; and on its own.
. test/cli/common

if "$PYTHON" -c 'import numpy' 2>/dev/null; then
    "$PYTHON" test/cli/numpy_check.py "$FOREWARP" "$tmp" || failures=1
else
    echo "skip against NumPy: it is not installed"
fi
# right WHAT FILE SIZES OPTION...: the program is right on each device.
right() {
    what=$1 file=$2 sizes=$3
    shift 3
    for device in host opencl:0; do
        passes "$what on $device" "$FOREWARP" run "$file" -s "$sizes" -d $device --check "$@"
    done
}

# Folds and prefixes of sizes that take several groups, at points that share them.
shared() {
    right "shared: $1 $2 $3" "examples/$1.fw" "$2" -p "$3"
}
shared prefix N=9001 "lx=16 share=8 hold=local lanes=4"
shared cumsum_rows N=3,M=5001 "lx=8 share=4 hold=local"
shared cumsum_rows N=3,M=999 "lx=16 fold=group hold=local lanes=2"
shared max_drawdown N=3,M=999 "lx=16 fold=group hold=again"
shared argmax N=9001 "lx=16 groups=64 hold=local"
shared argmax_rows N=3,M=999 "lx=16 fold=group hold=local"
shared softmax_online N=3,M=999 "lx=16 ly=1 fold=group hold=local"
shared moments N=9001 "lx=16 groups=16 lanes=4"
shared column_sums N=999,M=7 "lx=4 fold=item parts=16"
shared column_sums N=999,M=7 "lx=4 fold=group parts=16"

# A prefix of what its own function computes of an element is shared as well.
cat >"$tmp/halves.fw" <<'END'
size N
def main(a: [N]int) = a |> scan(\s x -> s + 0.5 * float(x), float(0))
END
right "prefix of a map" "$tmp/halves.fw" N=9001 -p "lx=16 share=8 hold=local lanes=4"

# A loop of one step that may give back its state is a branch.
cat >"$tmp/once.fw" <<'END'
size N, Z
def main(a: [N]int, v: [Z]int): [N]int =
  map(\x -> (iterate(Z, \s i -> if s < 0 && i < Z then (s + v[i], i + 1) else (s, i), (x, 0))).0, a)
END
for z in 1 2 5; do
    right "a loop of $z steps" "$tmp/once.fw" N=999,Z=$z
done

# Indices that only sizes of many powers of two keep within: it is checked at such sizes, too.
cat >"$tmp/butterfly.fw" <<'END'
size N
def main(a: [N]float): [N]float =
  (iterate(14, \v m -> (array(N, \i -> v[i ^ m] + v[i]), 2 * m), (a, 1))).0
END
right "a butterfly" "$tmp/butterfly.fw" N=131072

# Many sums in one loop: the directive that names them goes on over lines.
cat >"$tmp/sums.fw" <<'END'
size M, N, K
def main(a: [M][K]float, b: [N][K]float, c: [M][K]float, d: [N][K]float): [M][N]float =
  array2(M, N, \i j -> reduce(+, 0, array(K, \k -> a[i][k] * b[j][k])) + reduce(+, 0, array(K, \k -> c[i][k] * d[j][k])))
END
passes "many sums" "$FOREWARP" run "$tmp/sums.fw" -s M=64,N=64,K=32 -d host --check -p "lx=64 ly=1 bx=1 by=4 product=blocks"

# A border around a border: the interior of the outer one knows what the inner one asks.
cat >"$tmp/borders.fw" <<'END'
size N
def main(a: [N][6]double) =
  let s = pad2(2, 1, 4, 4, 0.0, a |> pad2(1, 1, 1, 1, -1.5) |> slide2(3, 1) |> map2(\x -> x[2][1]*x[1][1]))
  in pad(4, 4, wrap, s)
END
right "borders in borders" "$tmp/borders.fw" N=131 -p "lx=64 ly=4 by=4 scheme=global walk=1 border=split"

# A condition within a condition that is written twice, each in its interior.
cat >"$tmp/twice.fw" <<'END'
def main(b: [31]float) =
  zip(array(31, \i -> if bool(i) && bool(i)
                      then (if i - 3 >= 0 && i - 3 < 31 then b[i - 3] else float(i))
                      else 1.0), b)
    |> slide(1, 1) |> map(\r -> (r[0].0, r[0].1)) |> slide(4, 1)
    |> map(\x -> min(reduce(\a v -> a + (if v.0 > 0 then v.1 else v.0), 0.0, x),
                     reduce(\a v -> a + (if v.0 > 0 then v.1 else v.0), 0.0, x)))
END
for scheme in global tiled; do
    passes "a condition written twice, $scheme" "$FOREWARP" run "$tmp/twice.fw" -d host \
        -p "lx=8 bx=2 scheme=$scheme border=split" --check
done

# A fold that begins with an element whose place another fold finds, and a third that needs neither.
cat >"$tmp/found.fw" <<'END'
size N
def main(a: [N][5]int) =
  a |> map(\r -> let s = reduce(+, 0, r) in let t = r[(s % 5 + 5) % 5]
                 in (reduce(max, t, r) - s, reduce(min, 0, r)))
END
passes "folds of one row that need each other" "$FOREWARP" run "$tmp/found.fw" -s N=33 -d host \
    -p inner=loop --check

# What precedes a place in a prefix, in a loop whose first iteration decides for all.
cat >"$tmp/before.fw" <<'END'
def main(c: [67]bool) =
  map(\r -> slide(1, 1, r), zip2(c |> scan(&&, true) |> slide(2, 1), array2(66, 2, \i j -> i + j)))
END
passes "windows of a prefix" "$FOREWARP" emit "$tmp/before.fw" --device-model nvidia-h200 -t opencl \
    -p "lx=2 bx=4 cx=1 vec=4 lanes=4 hold=again share=8"

# Maps in maps are one: blocks of items over rows and columns, what the row alone has beside.
cat >"$tmp/rows.fw" <<'END'
size N, M
def main(x: [N][M]float, g: [M]float, c: [N]float) =
  zip(x, c) |> map(\r d -> zip(r, g) |> map(\v w -> v * w + d))
END
right "maps in maps" "$tmp/rows.fw" N=13,M=67 -p "lx=8 ly=2 bx=4 by=2"
# Vectors at a length that they do not divide: the last elements are alone.
"$FOREWARP" emit "$tmp/rows.fw" -s N=13,M=68 --target cuda -p "lx=8 ly=2 bx=4 by=2 vec=4" >"$tmp/rows.cu"
passes "vectors of maps in maps" grep -q "(const float4 \*)&g" "$tmp/rows.cu"
"$FOREWARP" emit examples/scal.fw -s N=1003 --target cuda -p "lx=8 bx=4 vec=4" >"$tmp/scal.cu"
passes "vectors at an odd length" grep -q "(float4 \*)&out" "$tmp/scal.cu"

# Scalars that are looked up by data outside of maps, an array no longer than the work of one task, and folds by key
# whose order no bit shows, in strict arithmetic.
while read -r sizes options program; do
    printf '%s\n' "$program" >"$tmp/small.fw"
    right "$program" "$tmp/small.fw" "$sizes" $options
done <<'END'
N=9 --math=standard size N def f(k: [N]int, x: [N]float) = let q = x[k[0] % N] + 1 in let r = q * x[k[1] % N] in map(\e -> e * r + q, x)
N=9,T=5 --math=standard size N, T def f(a: [T]float, x: [N]float) = iterate(T, \i v -> (i + 1, let q = a[i] in map(\e -> e + q, v)), (0, x)).1
N=9,T=5 --math=standard size N, T def f(a: [T][N]float, x: [N]float) = iterate(T, \i v -> (i + 1, let q = a[i] in zip(q, v) |> map(\a b -> a + b * q[0])), (0, x)).1
N=9,M=5 --math=standard size N, M def f(x: [N][M]float, k: [3]int) = x[k[0] % N][k[1] % M]
N=9 --math=standard size N def f(x, y: [N]float, k: [3]int) = let z = zip(x, y) in let t = z[k[0] % N] in map(\e -> e + t.0 + t.1, x)
N=400 --math=standard size N def f(k: [N]int, a: [N]int) = reduceBy(8, \x y -> if y > 1000 then 0 else x + y, 7, zip(k, map(\v -> v * 150, a)))
N=300 --math=standard size N def f(f: [N]int, a: [N]float) = scan(\p q -> (max(p.0, q.0), if q.0 != 0 then q.1 else p.1 + q.1), (0, 5.0), zip(map(\v -> v % 2, f), a))
K=5 --math=standard size K generic 1..100 def f(y: [K]float) = map(\v -> v + 1, y)
N=50 --math=strict size N def f(k: [N]int) = reduceBy(5, max, 0, zip(k, k))
END

# Strips of rows, for whose copies items wait for each other; sums by key of columns, in any order.
echo 'size N, M def f(a: [M][N]int): [N][M]int = map(scan(+, 0), transpose(a))' >"$tmp/strips.fw"
passes "strips of few items" "$FOREWARP" run "$tmp/strips.fw" -s N=400,M=50 -d opencl:0 -p 'lx=2 strip=16 load=now' --check
printf '%s\n' 'size N, M, K def f(k: [N][M]int, a: [N][M]float): [M][K]float = map(\c -> reduceBy(K, +, 0, c), transpose(zip2(k, a)))' \
    >"$tmp/columns.fw"
passes "sums by key in any order" "$FOREWARP" run "$tmp/columns.fw" -s N=300,M=37,K=200 -d opencl:0 --check -p 'lx=256 keys=all groups=16'

# Parts that do not divide an array are filled up with what loads as vectors.
echo 'size N def prefix(a: [N]float) = scan(+, 0, a)' >"$tmp/prefix.fw"
"$FOREWARP" emit "$tmp/prefix.fw" -s N=1000004 --target cuda --device-model nvidia-h200 -p "lanes=4 hold=local" >"$tmp/prefix.cu"
passes "vectors of parts" grep -q "(const float4 \*)&a\[min(4096\*wx + 4\*lx, 1000000)\]" "$tmp/prefix.cu"
"$FOREWARP" emit examples/mm.fw -s N=1000,M=1000,K=1000 --target cuda --device-model nvidia-h200 \
    -p "product=blocks lx=16 ly=16 bx=4 by=4 cx=2 vec=4 stage=8" >"$tmp/mm.cu"
passes "vectors of tiles" grep -A1 "(const float4 \*)&b" "$tmp/mm.cu"

# Keyed folds whose values are arrays: added up, in a tuple, and read in another order than written.
for fold in 'map(\k v -> (k % 4, v)) |> reduceBy(4, \s v -> zip(s, v) |> map(+), array(M, \i -> 0.0))' \
    'map(\k v -> (k % 4, (v, 1))) |> reduceBy(4, \s v -> (zip(s.0, v.0) |> map(max), s.1 + v.1), (array(M, \i -> 0.0), 0))' \
    'map(\k v -> (k % 7, v)) |> reduceBy(7, \s v -> array(M, \i -> 0.5 * s[M - 1 - i] + v[i]), array(M, \i -> 1.0))'; do
    printf 'size N, M\ndef main(k: [N]int, a: [N][M]float) =\n  zip(k, a) |> %s\n' "$fold" >"$tmp/keyed.fw"
    right "$fold" "$tmp/keyed.fw" N=101,M=13
done

# Those of many columns, whose array is too large for a group: one column or several a group, or all together.
cat >"$tmp/keyed.fw" <<'END'
size N, M
def main(k: [N]int, a: [N][M]int) = zip(k, a) |> map(\k v -> (k % 1000, v))
  |> reduceBy(1000, \s v -> zip(s, v) |> map(\x e -> max(x, e)), array(M, \i -> -9))
END
for way in "keys=group beside=1" "keys=group beside=8 lanes=2" "keys=group beside=8 copies=2 lx=32" "keys=all lanes=4"; do
    passes "columns by key, $way" "$FOREWARP" run "$tmp/keyed.fw" -s N=53,M=1003 -d opencl:0 --check -p "$way"
done

# Those of short rows, several a group or one an item, of tiles, and with a function that no update can do.
printf '%s\n' 'size N, M' 'def main(k: [N][M]int, a: [N][M]float) = zip2(k, a) |> map(\r -> reduceBy(9, +, 0.0, map(\k v -> (k % 9, v), r)))' >"$tmp/rows.fw"
printf '%s\n' 'size N, M' 'def main(a: [4*N][8*M]int) = a |> split(4) |> map(\r -> transpose(r) |> split(8) |> map(\t -> transpose(t)))' \
    '  |> map2(\t -> reduceBy(5, \s v -> (s.0 + v, max(s.1, v)), (0, 0), map(\v -> (v % 6, v), join(t))))' >"$tmp/tiles.fw"
printf '%s\n' 'size N, M' 'def main(k: [N][M]int, a: [N][M]float) = zip2(k, a) |> map(\r -> map(\k v i -> (k % 4, (v, i)), zip(map(\t -> t.0, r),' \
    '  map(\t -> t.1, r), array(M, \i -> i))) |> reduceBy(4, \s v -> if v.0 > s.0 then v else s, (-1e30, -1)))' >"$tmp/most.fw"
for way in "keys=group lx=32 beside=8 lanes=4 copies=8" "keys=group lx=64 beside=2 lanes=8 copies=1" "keys=item lx=16 beside=16 lanes=4" "keys=item lx=2 beside=2" "keys=group lx=2 copies=2"; do
    for rows in rows:N=37,M=32 rows:N=5,M=17 tiles:N=3,M=5 most:N=19,M=23; do
        [ "${rows%:*}:${way%% *}" = most:keys=group ] && continue
        passes "${rows%:*} by key, $way" "$FOREWARP" run "$tmp/${rows%:*}.fw" -s "${rows#*:}" -d opencl:0 --check -p "$way"
    done
done

# Folds that begin with another value than 0 or 1, and prefixes that are cut off far from what inputs are.
for fold in 'reduce(+, 1, a)' 'map(\i -> reduce(\s v -> s + v*v, a[i], a), array(3, \i -> i))' 'scan(*, 3, map(\v -> 1 + 1e-6*v, a))' \
    'zip(map(\v -> int(v * 9), a), a) |> reduceBy(5, \(s, n) v -> (s + v, n + 1), (2.5, 1))' \
    'reduce(\(s, m) v -> (s + v, max(m, v)), (-4, 0), a)' 'scan(\s v -> min(s + v, 30000), 0, map(\v -> 5 * v + 1, a))'; do
    printf 'size N\ndef main(a: [N]float) = %s\n' "$fold" >"$tmp/start.fw"
    right "$fold" "$tmp/start.fw" N=20011
done

# Maps of prefixes of rows of any length: no array of an item holds a row.
for map in 'a |> map(scan(+, 0)) |> map2(\x -> x + x)' 'a |> map(\r -> let s = scan(+, 0, r) in zip(r, s) |> map(*))' \
    'a |> map(\r -> let m = reduce(max, 0, r) in scan(+, 0, r) |> map(\x -> x / (1 + m)))' \
    'a |> map(\r -> zip(scan(max, 0, r), r, r) |> map(\m x y -> m - x * y))'; do
    printf 'size A, B generic\ndef main(a: [A][B]float) = %s\n' "$map" >"$tmp/prefix.fw"
    right "$map" "$tmp/prefix.fw" A=7,B=1031
done

# Integers of 64 bits, which no double holds: files keep them, and the plain kernel is the reference.
printf '%s\n' 'size N def main(a: [N]long) = map(\v -> (v * 6364136223846793 + 1442695040888963) >> 3, a)' >"$tmp/long.fw"
"$PYTHON" - "$tmp/long.npy" <<'END'
import struct, sys
with open(sys.argv[1], "wb") as f:
    head = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"
    f.write(b"\x93NUMPY\x01\x00\x76\x00" + head.ljust(117).encode() + b"\n")
    f.write(struct.pack("<3q", 2**62 + 1, -(2**63) + 1, 3))
END
for device in host opencl:0; do
    passes "long on $device" "$FOREWARP" run "$tmp/long.fw" -s N=3 --in a="$tmp/long.npy" -d $device --check -o "$tmp/longer.npy"
    "$PYTHON" - "$tmp/longer.npy" <<'END' && ok "its bits on $device" || not_ok "its bits on $device"
import struct, sys
wrap = lambda x: (x + 2**63) % 2**64 - 2**63
got = struct.unpack("<3q", open(sys.argv[1], "rb").read()[-24:])
assert got == tuple(wrap(v * 6364136223846793 + 1442695040888963) >> 3 for v in (2**62 + 1, -(2**63) + 1, 3)), got
END
done

passes "run --check" "$FOREWARP" run examples/jacobi2d.fw -s N=100,M=70 --check --json "$tmp/j"
holds "json: time" "$tmp/j" 'j["time_ns"] > 0'
holds "json: error" "$tmp/j" '0 <= j["max_error"] < 1e-5'
passes "run" "$FOREWARP" run examples/jacobi2d.fw -s N=100,M=70 --json "$tmp/k"
holds "json: no error unasked" "$tmp/k" 'j["max_error"] is None'
holds "json: problem" "$tmp/j" 'j["problem"] == "jacobi2d N=100 M=70"'
# Inputs may be called what the output is.
for name in out out_ out_0; do
    echo "size N def f(x: [N]float, $name: [N]float) = zip(x, $name) |> map(\\p -> (p.0 + p.1, p.0))" >"$tmp/out.fw"
    passes "an input $name" "$FOREWARP" run "$tmp/out.fw" -s N=8 -d host --check
done
for seed in 1 1 2; do
    "$FOREWARP" run examples/jacobi2d.fw -s N=20,M=20 --seed $seed -o "$tmp/$seed.npy" >/dev/null
    mv "$tmp/$seed.npy" "$tmp/last$seed.npy.$(ls "$tmp" | wc -l)"
done
[ "$(cat "$tmp"/last1* | cksum)" != "$(cat "$tmp"/last2* | cksum)" ] &&
    [ "$(ls "$tmp"/last1* | while read -r f; do cksum <"$f"; done | uniq | wc -l)" = 1 ] &&
    ok "inputs follow the seed" || not_ok "inputs follow the seed"
# A kernel whose items know no group has its items in order, however the groups of another one are numbered.
cat >"$tmp/gram.fw" <<'END'
size K, N
def gram(a: [K][N]float) =
  transpose(a) |> map(\r -> transpose(a) |> map(\c -> zip(r, c) |> reduce(\s t -> s + t.0*t.1, 0)))
END
passes "a product in bands and parts" "$FOREWARP" emit "$tmp/gram.fw" -s K=9999,N=500 --target cuda \
    -p 'lx=8 ly=8 bx=4 by=8 product=blocks stage=8 band=16 parts=16'
grep -q 'min(16, 8' "$tmp/stdout" && grep -q 'gy = 8\*blockIdx.y + threadIdx.y;' "$tmp/stdout" &&
    ok "only groups are numbered in bands" || not_ok "only groups are numbered in bands"
# NVRTC makes loops endless that compare an index with the largest int as a constant (src/emit/head.c).
passes "the least of equal indices" "$FOREWARP" emit test/truth/argmax_ties.fw -s N=75,M=82 --target cuda
[ "$(grep -c 'int x = 2147483647;' "$tmp/stdout")" = 1 ] && [ "$(grep -c 2147483647 "$tmp/stdout")" = 1 ] &&
    ok "CUDA's compiler does not see the largest int" || not_ok "CUDA's compiler does not see the largest int"
# A prefix of more floats than one accumulator can add has parts on every device.
cat >"$tmp/long.fw" <<'END'
size N
def prefix(a: [N]float) = a |> scan(+, 0.0)
END
passes "a short prefix goes on" "$FOREWARP" emit "$tmp/long.fw" -s N=100000 -d host -p share=0
fails 2 "share > 0" "$FOREWARP" emit "$tmp/long.fw" -s N=5000000 -d host -p share=0
passes "its plain point has parts" "$FOREWARP" emit "$tmp/long.fw" -s N=5000000 -d host -p lanes=1
# C in opaque functions: literals of any type, changes in place, names of C; what numbers with
# bounds cannot be is compared within a tolerance.
cat >"$tmp/texts.fw" <<'END'
size N
fun relu(x: float): float = c"return fmax(x, 0) + fmin(0.5, x);" flops 2
fun steps(x: float): float = c"float y = x; for (int k = 0; k < 3; k++) { y += k; y *= 0.5f; y -= x; y /= 3; } return y;" flops 12
fun mixed(x: float): float = c"return pow(2.0f, x) + fma(x, 2, 1.0f) + hypot(x, 3) - fmod(x, 1.0f);" flops 9
fun named(x: float): float = c"const float w[2] = {0.5f, 2}; float s = 0; for (int i = 0; i < 2; i++) s += w[i]*fabsf(x); return expf(-s);" flops 9
def texts(a: [N]float): [N]float = a |> map(\x -> relu(x) + steps(x) * mixed(x) - named(x))
END
passes "tune C text" "$FOREWARP" tune "$tmp/texts.fw" -s N=1000 -d host -b 3t -q --store "$tmp/texts.db" -o "$tmp/texts"
grep -q 'plain kernel with bounds' "$tmp/stdout" && ok "with bounds" || not_ok "with bounds" "$(cat "$tmp/stdout")"
cat >"$tmp/union.fw" <<'END'
size N
fun plus(x: float): float = c"union { float f; int i; } u; u.f = x; u.i &= 0x7fffffff; return u.f;" flops 1
def union_of(a: [N]float): [N]float = map(plus, a)
END
passes "tune C text without bounds" "$FOREWARP" tune "$tmp/union.fw" -s N=1000 -d host -b 3t -q --store "$tmp/texts.db" -o "$tmp/texts"
grep -q 'its C text may not know numbers with bounds' "$tmp/stdout" && ok "says so" || not_ok "says so" "$(cat "$tmp/stdout")"
finish
