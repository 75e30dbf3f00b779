# Scripts of calls: the worked example's counts, and what is said of wrong scripts.
. test/cli/common
stores -
paper=examples/fusion/paper.fws

passes "fuse" "$FOREWARP" fuse $paper --json "$tmp/f.json" -n 40
holds "counts" "$tmp/f.json" "j['counts'] == dict(subsets=63, convex=39, connected=21, fusions=15,
    implementations=410, covers=32, cover_implementations=5184, covers_cut=False)"
holds "the best covers" "$tmp/f.json" "[(c['words'], c['kernels']) for c in j['covers'][:3]] == [
    (96, [[1, 2, 3, 4, 5, 6]]), (98, [[1, 2, 3], [4, 5, 6]]), (102, [[1, 2], [3, 4, 5, 6]])]"
holds "all covers" "$tmp/f.json" "len(j['covers']) == 32 and j['covers'][-1]['words'] == 247"
holds "ten orders" "$tmp/f.json" "[(f['orders'], f['need'], f['order'], f['allocated'])
    for f in j['fusions'] if len(f['calls']) == 6] == [(10, [75, 84], [4, 5, 1, 2, 3, 6], 75)]"
passes "the library" "$FOREWARP" fuse --print library $paper
grep -q "def mmul33" "$tmp/stdout" && ok "the library's text" || not_ok "the library's text"

script() { printf '%s\n' "$2" >"$tmp/$1.fws"; }
script cycle 'MATRIX33 A, X, Y, Z; input A;
X = mmul33(A, Y); Y = madd33(A, Z); Z = madd33(X, A);
return X;'
fails 2 'the calls form a cycle: `X` needs `Y`, which needs `Z`, which needs `X`' \
    "$FOREWARP" fuse "$tmp/cycle.fws"
grep -q '^  *^' "$tmp/stderr" && ok "a caret" || not_ok "a caret"
script undeclared 'MATRIX33 A, X; input A;
X = mmul34(A, A); return X;'
fails 2 'undeclared.fws:2:5: error F008: there is no function `mmul34`' \
    "$FOREWARP" fuse "$tmp/undeclared.fws"
script mismatch 'MATRIX33 A, X; VECTOR3 v; input A, v;
X = mmul33(A, v); return X;'
fails 2 'mismatch.fws:2:15: error F009: `v` is a VECTOR3, [3]float; the parameter `b` of mmul33 is [3][3]float' \
    "$FOREWARP" fuse "$tmp/mismatch.fws"
script arity 'MATRIX33 A, X; input A; X = mmul33(A); return X;'
fails 2 'takes 2 arguments, not 1' "$FOREWARP" fuse "$tmp/arity.fws"
script twice 'SCALAR x, y; input x; y = add(x, x); y = mul(x, x); return y;'
fails 2 'each variable gets one' "$FOREWARP" fuse "$tmp/twice.fws"
script novalue 'SCALAR x, y, z; input x; y = add(x, z); return y;'
fails 2 '`z` has no value' "$FOREWARP" fuse "$tmp/novalue.fws"
script nothing 'SCALAR x, y; input x; y = add(x, x);'
fails 2 'returns nothing' "$FOREWARP" fuse "$tmp/nothing.fws"
script syntax 'SCALAR x y; input x; return x;'
fails 2 'syntax.fws:1:10: error F001: expected ;, found `y`' "$FOREWARP" fuse "$tmp/syntax.fws"
passes "as a program" "$FOREWARP" fuse --print program examples/fusion/bicgk.fws -s N=64
cp "$tmp/stdout" "$tmp/bicgk.fw"
passes "which is one" "$FOREWARP" run "$tmp/bicgk.fw" -s T=37 -d host --check
fails 2 'fuse --print takes library, or program of a script' "$FOREWARP" fuse --print covers $paper
echo "SCALAR x$(seq -f ', x%g' -s '' 20000); input x; return x;" >"$tmp/names.fws"
fails 2 'names.fws:1:68890: error F039: the text has more than 10000 names' "$FOREWARP" check "$tmp/names.fws"
script huge 'type BIG = [1000][1000]float; BIG x; input x; return x;'
fails 2 'huge.fws:1:12: error F002: an element has 1 to 131072 words' "$FOREWARP" fuse "$tmp/huge.fws"
script lengths 'type A = [301]float; type B = [300]float; A x; B y; SCALAR t; input x, y;
t = dot(x, y); return t;'
fails 2 'lengths.fws:2:5: error F009: argument 2 of `dot` is of another type or length' \
    "$FOREWARP" fuse "$tmp/lengths.fws"
{
    for i in $(seq 48); do echo "def f$i(x: float): float = x + $i.5;"; done
    echo "SCALAR x$(seq -f ', y%g' -s '' 48); input x;"
    for i in $(seq 48); do echo "y$i = f$i(x);"; done
    echo "return $(seq -f 'y%g' -s ', ' 48);"
} >"$tmp/shared.fws"
passes "48 calls with one input" "$FOREWARP" fuse "$tmp/shared.fws" --json "$tmp/s.json"
grep -q 'warning F035: there are too many sets of up to 16 calls' "$tmp/stderr" &&
    ok "said" || not_ok "said"
holds "with a lower limit" "$tmp/s.json" "j['limit'] == 3"
# Dense graphs, most of whose sets wait for each other: there is an answer all the same.
for calls in 48 63; do
    "$PYTHON" -c 'import random, sys
n = int(sys.argv[1])
random.seed(3)
v = ["x"]
print("SCALAR x, " + ", ".join(f"y{i}" for i in range(n)) + "; input x;")
for i in range(n):
    print(f"y{i} = {{}}({random.choice(v[-6:])}, {random.choice(v)});".format(random.choice(["add", "mul"])))
    v.append(f"y{i}")
print("return " + ", ".join(v[-4:]) + ";")' $calls >"$tmp/dense.fws"
    passes "a dense graph of $calls calls" "$FOREWARP" fuse "$tmp/dense.fws" --json "$tmp/d.json"
    holds "each call once" "$tmp/d.json" "j['covers'] and all(
        sorted(c for k in cover['kernels'] for c in k) == list(range(1, len(j['calls']) + 1)) for cover in j['covers'])"
done
fails 2 'there is nothing to launch' "$FOREWARP" tune $paper -s T=0
fails 2 'size T has no value' "$FOREWARP" tune $paper
fails 2 'there is no size `N`' "$FOREWARP" tune $paper -s N=4
passes "rows of another length" "$FOREWARP" fuse examples/fusion/atax.fws -s N=64 --json "$tmp/n.json"
holds "are moved" "$tmp/n.json" "j['covers'][0]['words'] == 64"
script nosize 'type ROW = [K]float; ROW x; input x; return x;'
fails 2 'nosize.fws:1:13: error F036: the size `K` has no value' "$FOREWARP" fuse "$tmp/nosize.fws"
head -c 4096 /dev/urandom >"$tmp/noise.fws"
fails 2 "error" "$FOREWARP" fuse "$tmp/noise.fws"
: >"$tmp/empty.fws"
fails 2 "returns nothing" "$FOREWARP" fuse "$tmp/empty.fws"
fails 2 "No such file" "$FOREWARP" fuse "$tmp/absent.fws"
script unused 'SCALAR x, y, z, w; input x;
y = add(x, x); z = mul(x, x); w = add(x, x); return y;'
passes "unused calls" "$FOREWARP" fuse "$tmp/unused.fws"
grep -q 'no output needs `z`' "$tmp/stderr" && ok "said" || not_ok "said"

# A small run: what is found is right, and is stored.
tune() { "$FOREWARP" tune "$tmp/small.fws" -s T=1003 --budget 4t -q -o "$tmp/out" "$@"; }
script small 'VECTOR3 x; SCALAR n, y; input x; n = vnorm3(x); y = mul(n, n); return n, y;'
passes "tune a script" tune --json "$tmp/t.json"
holds "the best is right" "$tmp/t.json" "(j['best']['checked'] and j['best']['max_error'] < 1e-4
    and j['trials']['ok'] >= 2 and j['trials']['wrong-result'] == 0)"
[ -s "$tmp/out/small.cl" ] && ok "kernels written" || not_ok "kernels written"
script once 'SCALAR a, b, c, d; uniform a, b; c = mul(a, b); d = add(c, a); return d;'
passes "calls of what is the same for all" "$FOREWARP" tune "$tmp/once.fws" -s T=7 \
    --budget 2t -q -o "$tmp/out"
passes "tune it again" tune --json "$tmp/u.json"
holds "from the store" "$tmp/u.json" "j['reused'] >= 2"
# Programs of several stages: counts by hand, covers in order, and what is none.
passes "the stages of a program" "$FOREWARP" fuse examples/srad.fw -s N=64,M=96 --json "$tmp/srad.json"
holds "counts of stages" "$tmp/srad.json" "j['counts'] == dict(subsets=7, convex=6, connected=6, fusions=3,
    placements=6, covers=4, cover_placements=7, covers_cut=False)"
holds "fusions of stages" "$tmp/srad.json" "([f['stages'] for f in j['fusions']] == [[1, 2], [2, 3], [1, 2, 3]]
    and [f['tiles'] for f in j['fusions']] == [[], [2], [1, 2]] and j['stages'][2]['reads'][1] ==
    dict(array='k', how='window', window=[2, 2]))"
holds "covers in order" "$tmp/srad.json" "([c['predicted_ns'] for c in j['covers']] ==
    sorted(c['predicted_ns'] for c in j['covers']) and {c['cover'] for c in j['covers']} ==
    {'1|2|3', '1+2|3', '1|2+3', '1+2+3'})"
# The kernel that keeps a stage as a tile and its halo: 6 rows for 4, clamped twice, as a row
# beyond the edge is that at the edge.
"$FOREWARP" emit examples/blur.fw -s N=37,M=29 --device-model nvidia-h200 \
    -p 'lx=8 ly=4 cover=1+2 place1=local border=inline' | sed -n '/local float/,$p' >"$tmp/tile.cl"
cat >"$tmp/golden.cl" <<'END'
    local float tile[48];

    const int wy = get_group_id(1);
    const int wx = get_group_id(0);
    for (int ly = get_local_id(1); ly < 6; ly += 4) {
        const int lx = get_local_id(0);
        tile[8*ly + lx] = mean(a[29*min(max(min(4*wy + ly, 38), 1), 37) + max(min(8*wx + lx, 28), 1)
                - 30], a[29*min(max(min(4*wy + ly, 38), 1), 37) + min(8*wx + lx, 28) - 29],
            a[29*min(max(min(4*wy + ly, 38), 1), 37) + min(8*wx + lx, 27) - 28]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int ly_1 = get_local_id(1);
    const int lx = get_local_id(0);
    if (4*wy + ly_1 <= 36) {
        if (8*wx + lx <= 28) {
            const int i0 = 8*ly_1 + lx;
            out[116*wy + 29*ly_1 + 8*wx + lx] = mean(tile[i0], tile[i0 + 8], tile[i0 + 16]);
        }
    }
}
END
cmp -s "$tmp/tile.cl" "$tmp/golden.cl" && ok "a tile of a stage" ||
    not_ok "a tile of a stage" "$(diff "$tmp/golden.cl" "$tmp/tile.cl")"
# All of Harris's stages in one kernel: two tiles, and the image is read to fill them only.
"$FOREWARP" emit examples/harris.fw -s N=37,M=29 -d opencl:0 \
    -p 'lx=8 ly=4 cover=1+2+3+4+5+6+7+8+9 place1=local place2=local' >"$tmp/harris.cl"
[ "$(grep -c 'local float tile' "$tmp/harris.cl")" = 2 ] &&
    [ "$(grep -c '^kernel' "$tmp/harris.cl")" = 1 ] &&
    ! sed '1,/barrier/d' "$tmp/harris.cl" | grep -q 'image\[' &&
    ok "nine stages, two tiles" || not_ok "nine stages, two tiles" "$(cat "$tmp/harris.cl")"
fails 2 "error C077: jacobi2d has fewer than two stages, or more than 1000" \
    "$FOREWARP" fuse examples/jacobi2d.fw -s N=8,M=8
fails 2 "error C078" "$FOREWARP" fuse examples/blur.fw -s N=8,M=8 --device-model nvidia-h200
"$FOREWARP" fuse examples/harris.fw -s N=8,M=8 --limit 3 | grep -q 'fusions of at most 3' &&
    ok "a limit" || not_ok "a limit"
fails 2 "size M has no value" "$FOREWARP" fuse examples/blur.fw -s N=8
passes "a pipeline is tuned" "$FOREWARP" tune examples/srad.fw -s N=61,M=47 -d opencl:0 --budget 6t -q \
    --where "cover == '1|2+3' and place2 == 'local' and lx * ly <= 64" -o "$tmp/out" \
    --json "$tmp/tuned.json"
holds "what it was tuned to" "$tmp/tuned.json" "(j['trials']['ok'] >= 1 and j['trials']['wrong-result'] == 0 and
    'place2=local' in j['best']['point'])"

# Paper 004's own kernels: fusions of routines in shared memory are right, and the figures come from their times.
export FOREWARP
paper="$PYTHON bench/papers/fusions.py"
passes "kernels" $paper kernels "$tmp/kernels"
for point in "123456:T1=9 T2=3 T4=5 T5=25 T6=1" "23456:T2=1 T4=1 T5=5 T6=25" "123:T1=3 T2=3" "4:T4=5"; do
    passes "${point%:*}" "$FOREWARP" run "$tmp/kernels/f${point%:*}.json" -s N=256 -p "INST=16 ${point#*:}" --check
done
passes "figures" $paper figures data/fusions/pocl.csv.gz
grep -q "^Figure 4: the 560 implementations" "$tmp/stdout" && grep -q "the first 300 of 5184 .* of equation3" "$tmp/stdout" &&
    grep -q "the best is 123/1.1.1 | 456/5.1.1" "$tmp/stdout" &&
    [ "$(grep -c '^  \(equation3\|words\|stages\)  *0\.[0-9]' "$tmp/stdout")" = 3 ] && ok "Figures 4 and 5" ||
    not_ok "Figures 4 and 5" "$(cat "$tmp/stdout")"
gzip -dc data/fusions/pocl.csv.gz | sed '2d' >"$tmp/fusions.csv"
fails 2 "no times of fusions" $paper figures "$tmp/fusions.csv"
finish
