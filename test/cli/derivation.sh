# A point's derivation is text that leads to the same kernel, the lowered expression is a
# program, and wrong derivations are refused with their place.
. test/cli/common
emit() { "$FOREWARP" emit "$@" --device-model nvidia-h200; }

# round PROGRAM SIZES POINT: by the point, and by its derivation.
round() {
    emit "examples/$1.fw" -s "$2" -p "$3" --print derivation >"$tmp/steps" 2>"$tmp/stderr" &&
        emit "examples/$1.fw" -s "$2" -p "$3" >"$tmp/point.cl" &&
        emit "examples/$1.fw" -s "$2" -p "$3" --derivation "$tmp/steps" >"$tmp/steps.cl" &&
        cmp "$tmp/point.cl" "$tmp/steps.cl" 2>>"$tmp/stderr" &&
        emit "examples/$1.fw" -s "$2" -p "$3" --derivation "$tmp/steps" --print derivation |
        cmp - "$tmp/steps" 2>>"$tmp/stderr" &&
        emit "examples/$1.fw" -s "$2" -p "$3" --print expression >"$tmp/$1.fw" &&
        "$FOREWARP" check "$tmp/$1.fw" >/dev/null 2>>"$tmp/stderr"
    if [ $? = 0 ] && [ "$(grep -c @ "$tmp/steps")" -ge "$4" ]; then
        ok "round: $1 $3"
    else
        not_ok "round: $1 $3" "$(cat "$tmp/stderr" "$tmp/steps")"
    fi
}
round jacobi2d N=64,M=96 "" 1
round jacobi2d N=37,M=29 "lx=8 ly=4 bx=2 by=4 border=split" 4
round jacobi2d N=64,M=96 "lx=16 ly=4 bx=2 scheme=tiled" 6
round hotspot2d N=61,M=47 "lx=16 ly=2 by=2 scheme=tiled" 6
round heat3d N=8,M=16,K=32 "lx=8 ly=2 lz=2 scheme=tiled" 4
round jacobi2d N=61,M=47 "lx=16 ly=4 cx=4 bx=2 cy=2 scheme=tiled vec=2" 8
round jacobi2d N=64,M=512 "lx=16 ly=4 bx=4 cx=2 vec=4 border=split" 5
round blur N=33,M=65 "lx=32 ly=2 bx=2 cover=1|2" 8
round blur N=33,M=65 "lx=32 ly=2 cover=1+2" 1
round blur N=33,M=65 "lx=16 ly=4 cover=1+2 place1=local" 4
round srad N=33,M=65 "lx=16 ly=4 cover=1+2|3" 4
round srad N=33,M=65 "lx=16 ly=4 by=2 cover=1|2+3 place2=local" 8
round harris N=33,M=65 "lx=16 ly=4 cover=1+2+3+4+5+6+7+8+9 place1=local place2=local" 30
round stencil2d N=32,M=32 "inner=unroll" 2
round gemv N=32,M=48 "lx=16" 1
round mm N=32,M=48,K=16 "lx=16 ly=2 inner=unroll" 3
round dot N=1000 "lx=32 groups=16" 8
round dot N=1000 "lx=32 groups=1" 5
round asum N=1000 "lx=64 groups=4" 7
round transpose N=32,M=48 "lx=8 by=2" 3
round wave2d N=32,M=48,T=3 "lx=8 ly=4 by=2" 4
round prefix N=100 "" 7
round prefix N=100 "share=0 hold=again" 0
round prefix N=5000 "lx=32 share=8 hold=local" 15
round cumsum_rows N=5,M=300 "lx=32 fold=group hold=local lanes=4" 6
round cumsum_rows N=3,M=5000 "lx=32 share=8 hold=local" 15
round max_drawdown N=5,M=300 "lx=32 fold=group hold=again" 8
round argmax N=5000 "lx=32 groups=16 hold=local" 12
round argmax_rows N=5,M=300 "lx=32 fold=group hold=local" 5
round moments N=5000 "lx=32 groups=16" 7
round softmax_online N=5,M=300 "lx=32 ly=1 fold=group hold=local" 6
round column_sums N=300,M=40 "lx=8 fold=item parts=4" 4
round column_sums N=300,M=40 "lx=8 fold=group" 4

# steps PROGRAM SIZES POINT STEP...: the whole derivation.
steps() {
    emit "examples/$1.fw" -s "$2" -p "$3" --print derivation | grep @ >"$tmp/steps"
    title="steps: $1 $3"
    shift 3
    printf '%s\n' "$@" | cmp -s - "$tmp/steps" && ok "$title" || not_ok "$title" "$(cat "$tmp/steps")"
}
steps column_sums N=4096,M=64 "lx=32 fold=item parts=16" \
    "foldSplit(16) @ root" "mapGlb(1) @ 0" "mapGlb(0) @ 0.f" "mapGlb(0) @ 1"
steps cumsum_rows N=5,M=300 "lx=32 fold=group hold=local" \
    "mapWrg(0) @ root" "scanLcl(32) @ f" "copy(1) @ f.0" "mapLcl(0) @ f.0" "holdLocal() @ f.0" \
    "mapLcl(0) @ f.1.1.1.1.1"

# The work-group that the expression itself names.
point="lx=16 ly=2 bx=4 scheme=tiled"
emit examples/jacobi2d.fw -s N=64,M=128 -p "$point" >"$tmp/point.cl"
emit examples/jacobi2d.fw -s N=64,M=128 -p "$point" --print derivation >"$tmp/steps"
emit examples/jacobi2d.fw -s N=64,M=128 --derivation "$tmp/steps" >"$tmp/natural.cl"
cmp -s "$tmp/point.cl" "$tmp/natural.cl" && ok "natural work-group" ||
    not_ok "natural work-group" "$(head -n 5 "$tmp/natural.cl")"

# A lowered expression is a program with the same kernel.
emit examples/jacobi2d.fw -s N=64,M=128 -p "lx=16 ly=4" >"$tmp/point.cl"
emit examples/jacobi2d.fw -s N=64,M=128 -p "lx=16 ly=4" --print expression >"$tmp/lowered.fw"
emit "$tmp/lowered.fw" -p "lx=16 ly=4" >"$tmp/lowered.cl"
sed 1d "$tmp/point.cl" >"$tmp/a" && sed 1d "$tmp/lowered.cl" | cmp -s - "$tmp/a" &&
    ok "the expression is a program" ||
    not_ok "the expression is a program" "$(diff "$tmp/point.cl" "$tmp/lowered.cl" | head)"

# What the derivation leaves alone runs as it stands.
: >"$tmp/empty"
passes "no rules" emit examples/jacobi2d.fw -s N=8,M=8 --derivation "$tmp/empty"

wrong() {
    printf '%s\n' "$2" >"$tmp/wrong.rules"
    fails 2 "$1" "$FOREWARP" emit examples/jacobi2d.fw -s N=8,M=8 -d host \
        --derivation "$tmp/wrong.rules"
}
wrong "wrong.rules:1:1: error R002" "mapGlobal(1, 0) @ root"
wrong "wrong.rules:2:8: error R003" "// which
mapGlb(one) @ root"
wrong "wrong.rules:1:7: error R003" "mapGlb() @ root"
wrong "wrong.rules:1:17: error R004" "mapGlb(1, 0) @  up"
wrong "wrong.rules:2:1: error R005: step 1" "
mapGlb(1, 0) @ 0.0.0.0.0.0"
wrong "wrong.rules:2:1: error R006: step 2" "mapGlb(1, 0) @ root
mapGlb(1, 0) @ root"
wrong "wrong.rules:1:14: error R001" "mapGlb(1, 0) root"
fails 2 "cannot read" "$FOREWARP" emit examples/jacobi2d.fw -s N=8,M=8 -d host \
    --derivation "$tmp/absent"
fails 2 "--print takes" "$FOREWARP" emit examples/jacobi2d.fw -s N=8,M=8 -d host --print all
printf '\0\377(' >"$tmp/wrong.rules"
fails 2 "error R00" "$FOREWARP" emit examples/jacobi2d.fw -s N=8,M=8 -d host \
    --derivation "$tmp/wrong.rules"

# Rows that are folded by key: by elements where the folds have room in groups side by side.
printf 'size N, M\ndef sums(k: [N]int, a: [N][M]float) =\n  zip(k, a) |> reduceBy(7, \\s v -> map(+, zip(s, v)), array(M, \\j -> 0.0))\n' >"$tmp/sums.fw"
for rule in 300:reduceByElements 20000:reduceByMapInterchange; do
    emit "$tmp/sums.fw" -s "N=5000,M=${rule%:*}" --device-model nvidia-h200 --print derivation |
        grep -q "${rule#*:}() @ root" && ok "rows of ${rule%:*} by key" || not_ok "rows of ${rule%:*} by key"
done

# Short rows by key are of a group together; of many tiles, each item has one.
cat >"$tmp/rows.fw" <<'END'
size N
def main(k: [N][64]int, a: [N][64]float) = zip2(k, a) |> map(\r -> reduceBy(9, +, 0.0, r))
END
cat >"$tmp/tiles.fw" <<'END'
size N
def main(a: [8*N][8*N]uchar): [N][N][12]int = a |> split2(8) |> map2(\t -> reduceBy(12, +, 0, map(\v -> (int(v) / 22, 1), join(t))))
END
for rows in "rows:1000000:reduceByLcl(4, 16, 1, 256)" "tiles:512:joinKeyed(8)" "tiles:64:joinKeyed(0)"; do
    size=${rows#*:}
    emit "$tmp/${rows%%:*}.fw" -s "N=${size%%:*}" --device-model nvidia-h200 -t cuda --print derivation |
        grep -qF "${rows##*:}" && ok "$rows" || not_ok "$rows"
done

# The first of the least commutes if ties are decided; then items need not have neighbours.
for ties in " || (q.0 == p.0 && q.1 < p.1):" ":"; do
    printf 'size N\ndef main(x: [N]float) = zip(x, array(N, \\i -> i)) |> reduce(\\p q -> if q.0 < p.0%s then q else p, (1e30, 2147483647))\n' "${ties%%:*}" >"$tmp/least.fw"
    emit "$tmp/least.fw" -s N=1000000 --device-model nvidia-h200 -t cuda >"$tmp/least.cu"
    grep -q "256\*i + lx" "$tmp/least.cu" && found=yes || found=no
    [ "$found" = "$([ -n "${ties%%:*}" ] && echo yes || echo no)" ] && ok "least$ties" || not_ok "least$ties"
done

# The example in the manual.
sed -n '/^tile(4, 64) @ root/,/^```/{/^```/d;p}' doc/language.md >"$tmp/steps"
passes "the example of doc/language.md" emit examples/jacobi2d.fw -s N=64,M=512 \
    --derivation "$tmp/steps"
grep -q 'local (16, 4, 1)' "$tmp/stdout" && ok "its work-group" || not_ok "its work-group"

# The rules there are those of the program.
"$FOREWARP" help rules >"$tmp/rules"
awk '/^```/ {inside = !inside; if (inside) block = ""; else if (block ~ /^algorithmic\n/) printf "%s", block; next}
    inside {block = block $0 "\n"}' doc/language.md | cmp - "$tmp/rules" &&
    ok "doc/language.md has the rules" || not_ok "doc/language.md has the rules"
# Below lets, rules that were tried and taken back have left nothing.
cat >"$tmp/lets.fw" <<'END'
size N
def p(x: [N]float, y: [N]float): [N]float =
  let a = map(\v -> v * 2, x) in
  let s = reduce(\acc e -> acc + e * e, 0.0, y) in
  let b = map(\v -> v / s, a) in
  let q = reduce(\acc e -> acc + e.0 * e.1, 0.0, zip(a, b)) in
  map(\t -> t.0 * q + t.1, zip(a, b))
END
emit "$tmp/lets.fw" -s N=64 --print derivation >"$tmp/lets.rules"
emit "$tmp/lets.fw" -s N=64 >"$tmp/lets.cl"
passes "derivation below lets" emit "$tmp/lets.fw" -s N=64 --derivation "$tmp/lets.rules"
cmp -s "$tmp/stdout" "$tmp/lets.cl" && ok "the same kernel" || not_ok "the same kernel"
finish
