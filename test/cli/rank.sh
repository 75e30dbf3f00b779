# From explorations to a ranked search: explore two programs, fit a model, tune by it.
. test/cli/common
stores "$tmp/knn.db" "$tmp/boost.db" "$tmp/again.db" "$tmp/r.db" "$tmp/d.db"

explore() {
    "$FOREWARP" explore "examples/$1.fw" -s "$2" -n 20 --sample 16 -d opencl:0 -q \
        --csv "$tmp/$1.csv"
}
passes "explore scal" explore scal N=4096
passes "explore jacobi2d" explore jacobi2d N=64,M=64
cat "$tmp/scal.csv" "$tmp/jacobi2d.csv" >"$tmp/data.csv"

for kind in knn boost; do
    passes "fit $kind" "$FOREWARP" fit $kind "$tmp/data.csv" -o "$tmp/$kind.json"
    holds "$kind: a model" "$tmp/$kind.json" 'j["kind"] == "'$kind'" and len(j["fingerprint"]) == 16'
    passes "eval $kind" "$FOREWARP" eval $kind "$tmp/data.csv" --json "$tmp/j"
    holds "$kind: 90 and 95 %" "$tmp/j" \
        '[r["goal"] for r in j["summary"]["reach"]] == [0.9, 0.95] and all(1 <= r["geomean"] <= r["mean"] for r in j["summary"]["reach"])'
    holds "$kind: sizes" "$tmp/j" '[s["size"] for s in j["sizes"]] == ["64", "4096"]'
    cp "$tmp/j" "$tmp/$kind.eval"
done
holds "knn sees Table 1" "$tmp/knn.json" 'len(j["features"]) == 15 and "cache_lines" in j["features"]'
holds "boost sees all" "$tmp/boost.json" '"loads_per_output" in j["features"] and "loop_bodies/outputs" in j["features"]'
passes "fit again" "$FOREWARP" fit boost "$tmp/data.csv" -o "$tmp/again.json"
cmp -s "$tmp/boost.json" "$tmp/again.json" && ok "the same model" || not_ok "the same model"
passes "fit the paper's features" "$FOREWARP" fit boost "$tmp/data.csv" --features paper -o "$tmp/p.json"
holds "boost on Table 1" "$tmp/p.json" 'len(j["features"]) == 15'
passes "leave one out" "$FOREWARP" fit boost "$tmp/data.csv" --leave-out jacobi2d -o "$tmp/out.json"
grep -q "on 16 points" "$tmp/stdout" && ok "half of the rows" || not_ok "half of the rows"

tune="$FOREWARP tune examples/jacobi2d.fw -s N=96,M=64 -q --strategy ranked --budget 5t -o $tmp/tuned"
for kind in knn boost; do
    passes "tune by $kind" $tune --model "$tmp/$kind.json" --store "$tmp/$kind.db" --json "$tmp/j"
    for fact in \
        'j["strategy"] == "ranked" and j["best"]["checked"] is True' \
        'sum(j["trials"].values()) == 5 and j["best"]["time_ns"] > 0' \
        'j["ranking"]["model"] == "'$kind'"' \
        '100 < j["ranking"]["points"] <= 20000 and j["ranking"]["seconds"] > 0'
    do
        holds "json: $fact" "$tmp/j" "$fact"
    done
done
passes "tune again" $tune --model "$tmp/boost.json" --store "$tmp/again.db"
points() { rows "$1" | cut -d '|' -f 2; }
points "$tmp/boost.db" | sort >"$tmp/first"
points "$tmp/again.db" | sort | cmp -s - "$tmp/first" && ok "the same points" || not_ok "the same points"
passes "without a model" "$FOREWARP" tune examples/scal.fw -s N=4096 -q --budget 2t --json "$tmp/j" \
    --store "$tmp/r.db" -o "$tmp/tuned"
holds "no ranking" "$tmp/j" 'j["ranking"] is None'

passes "the model that comes along" $tune --store "$tmp/d.db" --json "$tmp/j"
holds "it is boost" "$tmp/j" 'j["ranking"]["model"] == "boost" and j["best"]["checked"] is True'
cp "$FOREWARP" "$tmp/alone"
fails 2 "needs --model FILE; make one with \`forewarp fit" "$tmp/alone" tune examples/scal.fw \
    -s N=4096 -q --strategy ranked --budget 2t --store "$tmp/r.db" -o "$tmp/tuned"
passes "points of the derivation" "$FOREWARP" explore examples/jacobi2d.fw -s N=64,M=64 -n 9 \
    --derived -d opencl:0 --sample 2 -q --csv "$tmp/points.csv"
grep -q '"lx=.*,ok$' "$tmp/points.csv" && ok "their times" || not_ok "their times"
passes "the best rows again" "$FOREWARP" explore examples/jacobi2d.fw -s N=64,M=64 -d opencl:0 -q \
    --again "$tmp/jacobi2d.csv" --csv "$tmp/again.csv"
point() { grep '^jacobi2d,' "$1" | sed 's/,[^,]*,ok$//' | sort; }
point "$tmp/jacobi2d.csv" >"$tmp/all"
point "$tmp/again.csv" >"$tmp/some"
[ -s "$tmp/some" ] && [ -z "$(comm -13 "$tmp/all" "$tmp/some")" ] && ok "they are what they were" ||
    not_ok "they are what they were"
passes "as written" "$FOREWARP" explore examples/jacobi2d.fw -s N=64,M=64 -q -d opencl:0 --written \
    --again "$tmp/jacobi2d.csv" --csv "$tmp/written.csv"
timed() { grep '^jacobi2d,' "$1" | sed 's/\("[^"]*"\).*,\([^,]*,ok\)$/\1,\2/' | sort; }
timed "$tmp/jacobi2d.csv" >"$tmp/all"
timed "$tmp/written.csv" >"$tmp/some"
[ "$(wc -l <"$tmp/some")" -gt 4 ] && [ -z "$(comm -13 "$tmp/all" "$tmp/some")" ] && ok "with the times that they had" ||
    not_ok "with the times that they had"
point "$tmp/written.csv" | sort -u >"$tmp/some"
point "$tmp/jacobi2d.csv" >"$tmp/all"
[ -n "$(comm -13 "$tmp/all" "$tmp/some")" ] && ok "other features" || not_ok "other features"
fails 2 "without --again" "$FOREWARP" explore examples/jacobi2d.fw -s N=64,M=64 --written
cat "$tmp/jacobi2d.csv" "$tmp/again.csv" >"$tmp/joined.csv"
passes "joined" "$FOREWARP" fit knn "$tmp/joined.csv" -o "$tmp/j.json"
grep -q "on 16 points" "$tmp/stdout" && ok "each point once" || not_ok "each point once"
fails 1 "no row of this program and size" "$FOREWARP" explore examples/jacobi2d.fw -s N=32,M=64 \
    --again "$tmp/jacobi2d.csv" -q
fails 1 "cannot read $tmp/none" $tune --store "$tmp/r.db" --model "$tmp/none"
fails 2 "expected" $tune --store "$tmp/r.db" --model "$tmp/data.csv"
sed 's/"loads_per_output"/"luck"/' "$tmp/boost.json" >"$tmp/luck.json"
fails 2 "\`luck\`" $tune --store "$tmp/r.db" --model "$tmp/luck.json"
fails 2 "no program \`mm\`" "$FOREWARP" fit boost "$tmp/data.csv" --leave-out mm -o "$tmp/m.json"
fails 2 "only the program \`scal\`" "$FOREWARP" fit boost "$tmp/scal.csv" --leave-out scal -o "$tmp/m.json"
fails 2 "with -o" "$FOREWARP" fit boost "$tmp/data.csv"
fails 2 "there is no model \`luck\`" "$FOREWARP" fit luck "$tmp/data.csv" -o "$tmp/m.json"
fails 2 "takes paper or all" "$FOREWARP" eval boost "$tmp/data.csv" --features some
finish
