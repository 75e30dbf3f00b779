# Counts, weights and predictions as users meet them.
. test/cli/common
mm=examples/mm.fw

"$FOREWARP" count $mm >"$tmp/mm" 2>&1
grep -q '^  global loads, 32 bits, stride 1 *N\*M\*K$' "$tmp/mm" && ok "counts are formulas" ||
    not_ok "counts are formulas" "$(cat "$tmp/mm")"
for sizes in "37 29 23" "64 48 16" "101 1 7"; do
    set -- $sizes
    "$FOREWARP" count $mm -s N=$1,M=$2,K=$3 --json "$tmp/json" >/dev/null 2>&1
    got=$(sed -n '/"multiplications, float"/,/unit/s/.*"value": "\([0-9]*\)".*/\1/p' "$tmp/json")
    [ "$got" = $(($1 * $2 * $3)) ] && ok "mm at $sizes" || not_ok "mm at $sizes" "$got"
done

# Rows laid end to end, their border in conditions: an index divided by a size.
cat >"$tmp/odd.fw" <<'END'
size N, P
def odd(a: [N][P]float): [(N + 2)*(P + 2)]float = a |> pad2(1, 1, 0.0) |> join |> map(\x -> 2*x)
END
"$FOREWARP" count "$tmp/odd.fw" -s N=30,P=20 >"$tmp/odd" 2>&1
grep -q 'not counted for all sizes: an index is divided by a size' "$tmp/odd" &&
    grep -q '= about 600$' "$tmp/odd" && ok "what is not counted is said" ||
    not_ok "what is not counted is said" "$(cat "$tmp/odd")"

export FOREWARP
paper="$PYTHON bench/papers/counts.py"
passes "table" $paper table data/h200-kernels.csv
cp "$tmp/stdout" "$tmp/table"
grep -q '^Table 1: all 16 cases, geometric mean .* 4\.[0-9] %$' "$tmp/table" &&
    grep -q '^  demands that overlap  *7\.0  *3\.2  *6\.4  *2\.2  *4\.2$' "$tmp/table" && ok "the table of measured kernels" ||
    not_ok "the table of measured kernels" "$(cat "$tmp/table")"
"$FOREWARP" fit linear data/h200-kernels.csv -o "$tmp/w.json" >/dev/null 2>&1 &&
    "$FOREWARP" predict examples/jacobi2d.fw -s N=2048,M=2048 --model "$tmp/w.json" \
        --json "$tmp/p.json" >"$tmp/p" 2>&1
sum=$(sed -n 's/^.*"us": \([-0-9.e]*\).*/\1/p' "$tmp/p.json" | awk '{ s += $1 } END { printf "%.3f", s }')
all=$(sed -n 's/^.*"predicted_us": \([0-9.]*\).*/\1/p' "$tmp/p.json" | awk '{ printf "%.3f", $1 }')
[ -n "$all" ] && [ "$sum" = "$all" ] && ok "a prediction is the sum of its parts" ||
    not_ok "a prediction is the sum of its parts" "$sum $all $(cat "$tmp/p")"

# A number that no count and no time is.
n=$(grep -n '^test,n_body' data/h200-kernels.csv | sed -n 's/:.*//p;q')
for number in 1e308 -1e308 1e31 nan inf x; do
    sed "${n}s/,[-0-9.e+]*\$/,$number/" data/h200-kernels.csv >"$tmp/large.csv"
    fails 2 "line $n is wrong" "$FOREWARP" fit linear "$tmp/large.csv" -o "$tmp/large.json"
done
sed "${n}s/^\(test,n_body,[0-9]*,[^,]*\),[0-9]*/\1,1e-200/" data/h200-kernels.csv >"$tmp/large.csv"
fails 2 "line $n is wrong" "$FOREWARP" eval linear "$tmp/large.csv"

for k in finite_differences skinny_product n_body convolution; do
    "$FOREWARP" predict examples/performance/$k.fw -s N=256 --model "$tmp/w.json" >"$tmp/p" 2>&1 &&
        grep -q '^  predicted  *[0-9.]* us$' "$tmp/p" && ok "predict $k" ||
        not_ok "predict $k" "$(cat "$tmp/p")"
done

# Forty of the measured points: the best of the first ten cannot be far off.
gzip -dc data/h200-picks.csv.gz | awk '/^#/ || /^program/ { print; next }
    /^jacobi2d,/ && n++ < 40' >"$tmp/points.csv"
passes "picks" $paper picks data/h200-kernels.csv "$tmp/points.csv"
awk '$1 == "jacobi2d" && $2 == 4096 && $3 == 40 { found = $8 >= 1 && $8 < 1.2 } END { exit !found }' "$tmp/stdout" &&
    ok "picks among measured points" || not_ok "picks among measured points" "$(cat "$tmp/stdout")"
echo "program,size,expression,time_ns,status" >"$tmp/no.csv"
fails 2 "has no points" $paper picks data/h200-kernels.csv "$tmp/no.csv"
fails 2 "counts.py picks KERNELS POINTS" $paper picks

# Points as a text: what the space has not is an empty line.
printf '%s\n' 'lx=32 ly=1' 'lx=31 ly=1' '' "$(sed -n 's/^jacobi2d,4096,"\([^"]*\)".*/\1/p;' "$tmp/points.csv" | head -n 1)" \
    >"$tmp/points.txt"
passes "a text of points" "$FOREWARP" predict examples/jacobi2d.fw -s N=4096,M=4096 --model "$tmp/w.json" \
    --points "$tmp/points.txt"
[ "$(wc -l <"$tmp/stdout")" = 4 ] && sed -n 4p "$tmp/stdout" | grep -q '^[1-9]' && [ -z "$(sed -n 2,3p "$tmp/stdout" | tr -d '\n')" ] &&
    ok "a line each" || not_ok "a line each" "$(cat "$tmp/stdout")"

# Shares of the roofline of a GPU that is only described.
shares="$FOREWARP predict examples/jacobi2d.fw -s N=4096,M=4096 --shares"
passes "shares" $shares --device-model nvidia-h200 -t cuda -b 1s --json "$tmp/shares.json"
holds "in order" "$tmp/shares.json" '(0 < j["plain"]["share"] <= j["first"]["share"] < 1.2 and
    abs(j["roofline_us"] / j["plain"]["predicted_us"] - j["plain"]["share"]) < 1e-9 and "lx=" in j["best"]["point"])'
passes "another device" "$FOREWARP" predict examples/jacobi2d.fw -s N=8192,M=8192 --shares --device-model nvidia-a100 \
    -t cuda -b 1s --json "$tmp/a100.json"
holds "by its own rates" "$tmp/a100.json" '0.5 < j["best"]["share"] < 1.3'
fails 2 "there is no target" $shares --device-model nvidia-h200 -t pascal
fails 2 "there is no device model" $shares --device-model h3
fails 2 "C078: --point is not for --shares" $shares --device-model nvidia-h200 -p lx=32
fails 2 "C078: --device-model is not for" "$FOREWARP" predict $mm -s N=64,M=64,K=64 --device-model nvidia-h200
"$FOREWARP" predict $mm -s N=64,M=64,K=64 --device nowhere:0 >"$tmp/none" 2>&1
[ $? -eq 1 ] && grep -q 'forewarp calibrate' "$tmp/none" && ok "no weights" ||
    not_ok "no weights" "$(cat "$tmp/none")"
"$FOREWARP" predict $mm -s N=64,M=64,K=64 --model $mm >"$tmp/none" 2>&1
[ $? -eq 2 ] && ok "not weights" || not_ok "not weights" "$(cat "$tmp/none")"
finish
