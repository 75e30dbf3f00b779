# Scripts of calls through everything that tuning gives any problem: strategies, the store,
# constraints, records and reports, formats of others, several devices, plans at other sizes.
. test/cli/common
cat >"$tmp/small.fws" <<'EOF'
VECTOR3 x; SCALAR n, y; input x;
n = vnorm3(x);
y = mul(n, n);
return n, y;
EOF
tune() { "$FOREWARP" tune "$tmp/small.fws" -s T=1003 -q -o "$tmp/out" "$@"; }
right="j['best']['checked'] and j['trials']['ok'] > 0 and j['trials']['wrong-result'] == j['trials']['build-failed'] == 0"

for strategy in random local; do
    passes "tune by $strategy" tune --strategy $strategy --budget 5t --seed 4 \
        --store "$tmp/$strategy.db" --json "$tmp/$strategy.json" --t4 "$tmp/$strategy.t4.json" \
        --cache "$tmp/$strategy.cache.json"
    holds "all right by $strategy" "$tmp/$strategy.json" "($right and j['strategy'] == '$strategy' and
        sum(j['trials'].values()) == 5 and j['space'] > 20)"
    holds "T4 of $strategy" "$tmp/$strategy.t4.json" "(len(j['results']) == 5 and
        {'cover', 'lx'} <= set(j['results'][0]['configuration']))"
    holds "cache of $strategy" "$tmp/$strategy.cache.json" "len(j['cache']) == 5"
done

# Gone on with: nothing is run twice.
passes "resume" tune --strategy random --budget 7t --seed 4 --store "$tmp/random.db" --json "$tmp/more.json"
holds "from the store" "$tmp/more.json" "$right and j['reused'] == 5 and sum(j['trials'].values()) == 7"
holds "a row a trial" "$tmp/more.json" "$(rows "$tmp/random.db" | grep -c cover=) == 7"

passes "only some points" tune --strategy random --budget 3t --store "$tmp/where.db" \
    --where "cover == '1+2' and lx >= 64" --json "$tmp/where.json"
holds "those" "$tmp/where.json" "($right and 'cover=1+2' in j['best']['point'] and
    int(j['best']['point'].split('lx=')[1].split()[0]) >= 64)"
passes "tune" tune --budget 6t --store "$tmp/p.db" --json "$tmp/p.json"
holds "as a program" "$tmp/p.json" "$right and j['strategy'] == 'auto' and sum(j['trials'].values()) <= 6"
passes "its record" "$FOREWARP" report "$tmp/out/small.run.json" -o "$tmp/p.html"
grep -q 'small T=1003' "$tmp/p.html" && grep -q 'cover' "$tmp/p.html" && grep -q 'small' "$tmp/p.html" &&
    ok "as a page" || not_ok "as a page"
passes "two devices" "$FOREWARP" tune "$tmp/small.fws" -s T=1003 -q -o "$tmp/out" -d opencl:0,opencl:0 \
    --strategy random --budget 4t --seed 9 --store "$tmp/two.db" --json "$tmp/two.json"
holds "share the search" "$tmp/two.json" "$right and j['device']['count'] == 2"

# Its plan, elsewhere.
best="--best --store $tmp/random.db"
passes "run the best" "$FOREWARP" run "$tmp/small.fws" -s T=1003 $best --check -o "$tmp/n.npy" -o "$tmp/y.npy"
grep -q 'agrees with the reference' "$tmp/stdout" && ok "checked" || not_ok "checked"
passes "other inputs" "$PYTHON" -c "import numpy as np
np.save('$tmp/x.npy', np.random.default_rng(1).random((1003, 3), 'float32'))
n, y = np.load('$tmp/n.npy'), np.load('$tmp/y.npy')
assert n.shape == y.shape == (1003,) and np.allclose(n * n, y, 1e-5)"
passes "run on them" "$FOREWARP" run "$tmp/small.fws" -s T=1003 $best --in x="$tmp/x.npy" -o "$tmp/n.npy"
passes "right" "$PYTHON" -c "import numpy as np
assert np.allclose(np.linalg.norm(np.load('$tmp/x.npy'), axis=1), np.load('$tmp/n.npy'), 1e-5)"
passes "at another size" "$FOREWARP" run "$tmp/small.fws" -s T=2001 $best --check
grep -q 'warning C053' "$tmp/stderr" && ok "said" || not_ok "said"
passes "emit" "$FOREWARP" emit "$tmp/small.fws" -s T=1003 $best
grep -q 'void small_k0(' "$tmp/stdout" && ok "kernels" || not_ok "kernels"
passes "a cover" "$FOREWARP" emit "$tmp/small.fws" -s T=1003 -d opencl:0 -p "cover=1+2 lx=64"
[ "$(grep -c '^kernel' "$tmp/stdout")" = 1 ] && ok "of one kernel" || not_ok "of one kernel"
passes "check" "$FOREWARP" check "$tmp/small.fws" --json "$tmp/c.json"
holds "what it takes" "$tmp/c.json" "(j['calls'] == 2 and [i['name'] for i in j['inputs']] == ['x'] and
    [o['name'] for o in j['outputs']] == ['n', 'y'])"

# Sizes and names are the script's, whatever generated kernels call their own; outputs go in
# the order of return.
cat >"$tmp/order.fws" <<'EOF'
size N = 16, lid, errno = 3, errno_ = 7;
type ROW = [N]float;
def rms(queue: float): float = rsqrt(queue / float(N * errno));
def mean(sm: [lid]float): float = (sm |> reduce(\n base -> n + base, 0)) / float(lid + N - 16);
def back(T: [N]float): [N]float = array(N, \i -> T[N - 1 - i] - float((i - N) / 3));
def over(n: [N]float, sm: float): [N]float = n |> map(\v -> v / (sm * float(errno_)));
ROW x_x, pn, g_x; SCALAR d, vn, mn; input x_x;
d = dot(x_x, x_x);
vn = rms(d);
mn = mean(x_x);
g_x = back(x_x);
pn = over(g_x, d);
return pn, mn, vn;
EOF
passes "its input" "$PYTHON" -c "import numpy as np
np.save('$tmp/rows.npy', np.random.default_rng(2).random((67, 16), 'float32'))"
for device in host opencl:0; do
    for point in "cover=1|2|3|4|5" "lx=64"; do
        passes "sizes and names" "$FOREWARP" run "$tmp/order.fws" -s T=67,errno_=5 -d $device -p "$point" \
            --in x_x="$tmp/rows.npy" -o "$tmp/1.npy" -o "$tmp/2.npy" -o "$tmp/3.npy" --check
        passes "$device: $point" "$PYTHON" -c "import numpy as np
x = np.load('$tmp/rows.npy').astype('f8')
pn, mn, vn = (np.load(f'$tmp/{i}.npy') for i in (1, 2, 3))
d = (x * x).sum(axis=1)
assert np.allclose(vn, 1 / np.sqrt(d / 48), 1e-4) and np.allclose(mn, x.mean(axis=1), 1e-4)
assert np.allclose(pn, (x[:, ::-1] - (np.arange(16) - 16) // 3) / (5 * d[:, None]), 1e-4)"
    done
done
# A sum takes values that a map makes beside others, which are written where they belong.
cat >"$tmp/beside.fws" <<'EOF'
def most(a: float, b: float): float = max(a, b) * 0.5 + min(a, b) * 0.5 + (a - b) * 0.125;
def product(a: [3][3]float, b: [3][3]float): [3][3]float = a |> map(\r -> transpose(b) |> map(\c ->
  (zip(r, c) |> reduce(\s t -> s + t.0 * t.1, 0)) * 0.3));
def sides(a: [3][3]float, s: float): [3][3]float = transpose(a) |> map2(\w -> 0.5 * w + 0.5 * s);
SCALAR scale, x, y, total, larger;
MATRIX33 a, b, c, turned;
input a, b, scale, x, y;
c = product(b, a);
turned = sides(c, scale);
total = sum(y);
larger = most(x, y);
return total, larger, turned;
EOF
for device in host opencl:0; do
    passes "$device: a sum beside a map" "$FOREWARP" run "$tmp/beside.fws" -s T=37 -d $device --check
    grep -q "agrees with the reference" "$tmp/stdout" && ok "right" || not_ok "right" "$(cat "$tmp/stdout")"
done
passes "the paper's two kernels" "$FOREWARP" emit "$examples/fusion/paper.fws" -s T=3001 -t cuda \
    --device-model nvidia-h200 -p "cover=1+2+3|4+5+6 lx=64"
[ "$(grep -c __global__ "$tmp/stdout")" = 2 ] && ok "are two" || not_ok "are two"

# Elements of any scalar type, and functions of several results.
cat >"$tmp/kinds.fws" <<'EOF'
type V = [33]float; type INT = int; type DOUBLE = double; type INTS = [4]int; type FOUR = float4; type BOOL = bool;
def unit(x: [33]float): (float, [33]float) =
  let s = sqrt(x |> reduce(\s w -> s + w * w, 0)) in (s, x |> map(\w -> w / s));
def least(x: [33]float) =
  zip(x, array(33, \i -> i)) |> reduce(\a b -> if a.0 <= b.0 then a else b, (inf, -1));
def widen(n: float, k: int): double = double(n) * 0.1 + double(k);
def turn(k: [4]int, c: int): [4]int = array(4, \i -> k[3 - i] + c % 7);
def dot4(a: float4, n: float): float4 = a * n;
def flip(n: float, c: int): (bool, float) = (c > 9, if c > 9 then n else -n);
V x, y; SCALAR n, lo, z; INT c; DOUBLE d, ds; INTS k, kt, ks; FOUR q, p; BOOL b;
input x, k, q;
n, y = unit(x);
lo, c = least(y);
d = widen(n, c);
ds = sum(d);
kt = turn(k, c);
ks = sum(kt);
p = dot4(q, lo);
b, z = flip(n, c);
return y, n, c, d, ds, ks, p, b, z;
EOF
for device in host opencl:0; do
    passes "$device: types and results" "$PYTHON" -c "import subprocess, numpy as np
r = np.random.default_rng(5)
x, k, q = r.random((67, 33), 'f4'), r.integers(-50, 50, (67, 4)).astype('i4'), r.random((67, 4), 'f4')
words = ['$FOREWARP', 'run', '$tmp/kinds.fws', '-s', 'T=67', '-d', '$device', '--check']
for name, value in (('x', x), ('k', k), ('q', q)):
    np.save(f'$tmp/{name}.npy', value)
    words += ['--in', f'{name}=$tmp/{name}.npy']
n = np.sqrt((x.astype(float) ** 2).sum(1))
y = x / n[:, None]
c = y.argmin(1)
d, ks = n * 0.1 + c, (k + (c % 7)[:, None]).sum(0)[::-1]
want = [y, n, c.astype('i4'), d, d.sum(), ks.astype('i4'), q * y.min(1)[:, None], c > 9, np.where(c > 9, n, -n)]
subprocess.run(words + [w for i in range(len(want)) for w in ('-o', f'$tmp/o{i}.npy')], check=True)
for i, w in enumerate(want):
    got = np.load(f'$tmp/o{i}.npy').reshape(np.shape(w))
    assert np.allclose(got, w, 1e-5), i
    assert got.dtype.kind == np.asarray(w).dtype.kind, i"
done
passes "emit --host" "$FOREWARP" emit "$tmp/kinds.fws" -s T=67 --host -t opencl -o "$tmp/kinds.c"
cc -std=c99 -DCL_TARGET_OPENCL_VERSION=120 -fsyntax-only "$tmp/kinds.c" 2>"$tmp/stderr" && ok "the host program" ||
    not_ok "the host program" "$(cat "$tmp/stderr")"
kinds() { # SED MESSAGE: what is wrong with that script once it is changed so
    sed "$1" "$tmp/kinds.fws" >"$tmp/wrong.fws"
    fails 2 "$2" "$FOREWARP" check "$tmp/wrong.fws"
}
kinds 's/type INT = int/type INT = real/' 'error F003: elements consist of scalars such as `float` or `int`'
kinds 's/^n, y = unit/n = unit/' 'error F009: `unit` has 2 results, not 1'
kinds 's/^n, y = unit/y, n = unit/' 'the result of unit is float'
kinds 's/^d = widen/d, ds = widen/' 'error F009: `widen` has 1 result, not 2'
kinds 's/^ds = sum(d)/ds = sum(b)/' 'error F018: there is no sum of bool'
cat >"$tmp/open.fws" <<'EOF'
size n;
type F4 = float4;
type ROW = [4]float4;
ROW x; F4 y;
input x;
def last(v: [n]float4): float4 = v[n - 1];
y = last(x);
return y;
EOF
passes "an open length of vectors" "$FOREWARP" check "$tmp/open.fws"
for target in opencl c cuda; do
    passes "emit --host" "$FOREWARP" emit "$tmp/order.fws" -s T=67 --host -t $target -o "$tmp/order.c" \
        --device-model nvidia-h200
    sed -n 's/^#define ORDER_\([A-Z_]*\)_BYTES.* \(in\|out\),.*/\1/p' "$tmp/order.h" | xargs >"$tmp/names"
    [ "$(cat "$tmp/names")" = "X_X PN MN VN" ] && ok "$target: in order" || not_ok "$target: in order" "$(cat "$tmp/names")"
    cc -std=c99 -fsyntax-only -x c -I/usr/include "$tmp/order.h" 2>"$tmp/stderr" || [ $target = cuda ] &&
        ok "$target: the header" || not_ok "$target: the header" "$(cat "$tmp/stderr")"
done
passes "check" "$FOREWARP" check "$tmp/order.fws" --json "$tmp/c.json"
holds "its order" "$tmp/c.json" "[o['name'] for o in j['outputs']] == ['pn', 'mn', 'vn']"
order="$FOREWARP check $tmp/wrong.fws"
wrong() { # SED MESSAGE ARGUMENTS...: what is wrong with the script once it is changed so
    sed "$1" "$tmp/order.fws" >"$tmp/wrong.fws"
    want=$2
    shift 2
    fails 2 "$want" $order "$@"
}
wrong 's/N = 16/N = 0/' 'wrong.fws:1:6: error F002: the size `N` must be from 1'
wrong 's/N = 16/N/' 'wrong.fws:2:13: error F036: the size `N` has no value'
wrong 's/lid, //' 'wrong.fws:4:15: error P006: no size named `lid`'
wrong 's/errno = 3/errno/' 'errno'
wrong 's/errno = 3/N = 3/' 'wrong.fws:1:19: error F004: the size `N` is already declared'
wrong 's/return pn,/return mn,/' 'wrong.fws:13:12: error F010: `mn` is returned already'
wrong 's/return pn/return x_x/' 'wrong.fws:13:8: error F011: `x_x` is an input'
wrong '' 'size N is given twice' -s N=16,N=8
wrong '' 'wrong.fws:1:6: error F002: the size `N` must be from 1 to 2147483647, not 0' -s N=0

# What is wrong with it.
tune="$FOREWARP tune $tmp/small.fws -s T=1003 -q -o $tmp/out"
fails 2 "size T has no value" "$FOREWARP" tune "$tmp/small.fws" --strategy random
fails 2 'C010: there is no strategy `nobody`' $tune --strategy nobody
fails 2 "error S00" $tune --where 'cover == '
fails 2 'leaves no point of the space' $tune --where 'lx == 3'
sed 's/vnorm3/vnorm4/' "$tmp/small.fws" >"$tmp/bad.fws"
fails 2 'bad.fws:2:5: error F008: there is no function `vnorm4`' "$FOREWARP" tune "$tmp/bad.fws" -s T=9
fails 2 'bad.fws:2:5: error F008' "$FOREWARP" check "$tmp/bad.fws"
fails 2 'bad.fws:2:5: error F008' "$FOREWARP" emit "$tmp/bad.fws" -s T=9
finish
