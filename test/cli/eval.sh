# forewarp eval: the tables, the figures and the JSON of an exploration, and its mistakes; the
# figures that bench/papers/features.py and two_stages.py make of them.
. test/cli/common
export FOREWARP
papers="$PYTHON bench/papers"
drawings() { # name, folder, how many
    if [ "$("$PYTHON" -c 'import sys, xml.dom.minidom
print(sum(len(xml.dom.minidom.parse(f).getElementsByTagName("text")) > 3 for f in sys.argv[1:]))' "$2"/*.svg)" = "$3" ]; then
        ok "$1"
    else
        not_ok "$1"
    fi
}

# Three programs alike but for a factor; time grows with `lines`; every tenth row fails.
awk 'BEGIN {
    print "# device: none"
    printf "program,size,expression,global0,global1,global2,local0,local1,local2,"
    print "lines,time_ns,status"
    for (p = 1; p <= 3; p++)
        for (size = 1024; size <= 4096; size *= 2)
            for (i = 0; i < 100; i++)
                printf "p%d,%d,e%d,%d,1,1,%d,1,1,%d,%s\n", p, size, i, size, 32 + i % 3, i % 20,
                    i % 10 == 9 ? ",crashed" : p * size * (1 + i % 20) + i ",ok"
}' >"$tmp/data.csv"
gzip -c "$tmp/data.csv" >"$tmp/data.csv.gz"

passes "eval" "$FOREWARP" eval knn "$tmp/data.csv" --json "$tmp/j"
cp "$tmp/stdout" "$tmp/plain"
awk '/^groups$/ { inside = 1 } inside && $1 == "p1" && $2 == 1024 && $3 == 100 { found = 1 } END { exit !found }' \
    "$tmp/stdout" && ok "the result as text" || not_ok "the result as text"
passes "figures" $papers/features.py knn "$tmp/data.csv" --svg "$tmp/figures"
for figure in 2 3 4 5 6 7; do
    grep -q "^Figure $figure:" "$tmp/stdout" && ok "figure $figure" || not_ok "figure $figure"
done
drawings "their plots" "$tmp/figures" 7
passes "committed" $papers/features.py knn data/h200-stencils.csv.gz
for row in "all  *165.6  *1.9  *8412.0  *95.5 " "loop_bodies  *0.0310$" "mean  *31.4  *416.6$" "jacobi2d9  *0.772 .* 0.807$" \
    "srad2, random  *0.416 .* 0.992$" "cache_lines  *0.11  .* 0.18$" \
    "stencil2d  *4096  *2500  *2500  *18  *9.0  *131.6  *14.6  *0.722  *0.779  *14.0$"; do
    grep -q "^  .*$row" "$tmp/stdout" && ok "row $row" || not_ok "row $row"
done
holds "json: groups" "$tmp/j" 'len(j["groups"]) == 9 and j["groups"][0]["points"] == 100'
holds "json: failures" "$tmp/j" 'all(g["ran"] == 90 for g in j["groups"])'
holds "json: few runs" "$tmp/j" 'all(g["model_runs"] < 3 < g["random_runs"] for g in j["groups"])'
holds "json: best first" "$tmp/j" 'j["features"][0]["feature"] == "lines"'
passes "gzipped" "$FOREWARP" eval knn "$tmp/data.csv.gz"
cmp -s "$tmp/stdout" "$tmp/plain" && ok "the same" || not_ok "the same"
passes "simulated" "$FOREWARP" eval knn "$tmp/data.csv" --random-repeat 200 --json -
cp "$tmp/stdout" "$tmp/k"
holds "json alone, near the expectation" "$tmp/k" \
    'abs(j["summary"]["random_runs"] / json.load(open(sys.argv[1][:-1] + "j"))["summary"]["random_runs"] - 1) < 0.1'
fails 2 "there is no model \`crystal\`" "$FOREWARP" eval crystal "$tmp/data.csv"
fails 2 "MODEL DATA" "$FOREWARP" eval knn
fails 2 "unexpected argument" "$FOREWARP" eval knn "$tmp/data.csv" more
fails 2 "a whole number from 1 to" "$FOREWARP" eval knn "$tmp/data.csv" --random-repeat 0
fails 1 "cannot read $tmp/none" "$FOREWARP" eval knn "$tmp/none"
sed 's/,ok$/,ok,/' "$tmp/data.csv" >"$tmp/wrong.csv"
fails 2 "wrong.csv:3:1: error M016" "$FOREWARP" eval knn "$tmp/wrong.csv"
grep -v '^p[23]' "$tmp/data.csv" >"$tmp/one.csv"
fails 2 "at least two programs" "$FOREWARP" eval knn "$tmp/one.csv"
fails 1 "cannot make" $papers/features.py knn "$tmp/data.csv" --svg "$tmp/data.csv/figures"
fails 2 "features.py MODEL DATA" $papers/features.py knn

# Recorded spaces: the two stages of paper 002.
"$PYTHON" - "$tmp" <<'END'
import json, sys
def record(name, slower):
    cache = {}
    for i in range(500):
        a, b, c = 1 << i % 8, 1 << i // 8 % 8, i // 64
        time = "RuntimeFailedConfig" if a * b > 1024 else slower * (8 + c) / (a * b) ** 0.5
        cache["%d,%d,%d" % (a, b, c)] = {"a": a, "b": b, "c": c, "time": time}
        if i % 2 and time != "RuntimeFailedConfig":
            cache["%d,%d,%d" % (a, b, c)]["passes"] = [1.1 * time, time]
    json.dump({"device_name": "none", "kernel_name": "k", "problem_size": 1, "objective": "time",
               "tune_params_keys": ["a", "b", "c"], "cache": cache}, open(f"{sys.argv[1]}/{name}.json", "w"))
record("one", 1)
record("two", 3)
END
passes "tables" $papers/two_stages.py tables ann "$tmp/one.json" "$tmp/two.json" --json "$tmp/j"
grep -q "^Figures 4 to 7: relative error of ann .*, 2 repetitions" "$tmp/stdout" &&
    [ "$(grep -c "^Figures 11 to 14: .*, failures" "$tmp/stdout")" = 4 ] && ok "figures" || not_ok "figures"
grep -q "^noise: two measurements of a point are 10.0 % apart (2[0-9]* points)" "$tmp/stdout" && ok "noise" || not_ok "noise"
passes "plots" $papers/two_stages.py plot knn "$tmp/stages" "$tmp/one.json" "$tmp/two.json"
drawings "of both" "$tmp/stages" 6
passes "best of others" $papers/two_stages.py best "$tmp/one.json" "$tmp/two.json"
grep -q "^  one  *1  *two  *1.00 " "$tmp/stdout" && ok "the same point" || not_ok "the same point"
passes "committed records" $papers/two_stages.py best data/templates/*-raycasting.json.gz data/templates/*-stereo.json.gz
for row in "h200-raycasting  *1  *pocl-raycasting  *2.23 " "pocl-raycasting  *1  *h200-raycasting  *fails " \
    "pocl-stereo  *1  *h200-stereo  *34.66 "; do
    grep -q "^  $row" "$tmp/stdout" && ok "row $row" || not_ok "row $row"
done
fails 1 "no two of the records" $papers/two_stages.py best "$tmp/one.json"
holds "json: errors" "$tmp/j" 'len(j) == 2 and all(f["error"] < 0.2 for f in j[0]["first_stages"])'
holds "json: more points, less error" "$tmp/j" 'j[0]["first_stages"][-1]["error"] < j[0]["first_stages"][0]["error"]'
holds "json: second stage" "$tmp/j" 'j[0]["first_stages"][-1]["second"][0]["failed"] < 0.2'
holds "json: failures are learnt" "$tmp/j" 'all(f["second"][0]["failed"] < 0.5 < f["second_ignoring_failures"][0]["failed"] for f in j[0]["first_stages"])'
passes "all models" $papers/two_stages.py pickers "$tmp/one.json" "$tmp/two.json"
for kind in knn boost ann deep forest; do
    grep -q "^  one  *$kind  *200 " "$tmp/stdout" && grep -q "^  mean of 2  *$kind " "$tmp/stdout" && ok "$kind" || not_ok "$kind"
done
echo '{"tune_params_keys": ["x"], "cache": {"1": {"x": 1, "time": 1.0}}}' >"$tmp/tiny.json"
fails 2 "too few to train" $papers/two_stages.py tables ann "$tmp/tiny.json"
fails 2 "there is no model" $papers/two_stages.py tables crystal "$tmp/one.json"
fails 2 "there is no model" "$FOREWARP" eval crystal "$tmp/data.csv"

# What weights miss, learnt from other classes: some runs of the sweep.
gzip -dc data/h100-judge.jsonl.gz | head -n 25 >"$tmp/sweep.jsonl"
passes "eval picks" "$FOREWARP" eval picks data/h200-kernels.csv "$tmp/sweep.jsonl" --json "$tmp/j"
holds "rankers, by class" "$tmp/j" 'len(j["rankers"]) == 7 and all(r["classes"][-1]["class"] == "all" for r in j["rankers"])'
holds "picks are near the best" "$tmp/j" \
    'all(1 <= r["classes"][-1]["five"] <= r["classes"][-1]["five_90"] for r in j["rankers"][2:])'
holds "how often the first pick is best" "$tmp/j" \
    'all(0 <= c["best"] <= c["near"] <= 1 for r in j["rankers"] for c in r["classes"]) and j["rankers"][3]["classes"][-1]["near"] > 0'
holds "weights know more than chance" "$tmp/j" 'j["rankers"][2]["classes"][-1]["rank"] > 0.4 > abs(j["rankers"][0]["classes"][-1]["rank"])'
# Times that only the shape of groups decides: who does not know it cannot learn them. Waits
# are known from demands alone, which the weights must do without.
head -n 13 "$tmp/sweep.jsonl" | "$PYTHON" -c '
import json, sys
for line in sys.stdin:
    run = json.loads(line)
    for trial in run.get("trials", []):
        trial[-1] = 1e6 * (1 + trial[run["names"].index("lx")].bit_length() * 3 % 7)
    print(json.dumps(run))' >"$tmp/shaped.jsonl"
passes "eval terms" "$FOREWARP" eval terms data/h200-kernels.csv "$tmp/shaped.jsonl" --json "$tmp/j"
holds "twelve subjects" "$tmp/j" 'len({r["without"] for r in j["left_out"]}) == 14'
holds "what decides is left out" "$tmp/j" \
    '(lambda rank: rank["nothing"] > 0.6 and rank["barriers"] > 0.6 and rank["groups and their shape"] < 0.3)({r["without"]: r["rank"] for r in j["left_out"]})'
holds "so are demands" "$tmp/j" \
    '(lambda rank: rank["waits for memory and operations"] != rank["nothing"])({r["without"]: r["rank"] for r in j["left_out"]})'
fails 2 "is not for" "$FOREWARP" eval terms data/h200-kernels.csv "$tmp/shaped.jsonl" --features all
passes "fit picks" "$FOREWARP" fit picks data/h200-kernels.csv "$tmp/sweep.jsonl" -o "$tmp/picks.json"
passes "fit picks, compressed" "$FOREWARP" fit picks data/h200-kernels.csv "$tmp/sweep.jsonl" -o "$tmp/picks.json.gz"
gzip -dc "$tmp/picks.json.gz" | cmp -s - "$tmp/picks.json" && ok "the same model" || not_ok "the same model"
holds "a model of terms" "$tmp/picks.json" '"far memory" in j["features"] and "occupancy" in j["features"]'
passes "points that it chooses" "$FOREWARP" explore examples/scal.fw -s N=4096 --derived -n 8 \
    --model "$tmp/picks.json" --device-model nvidia-h200 -q --csv "$tmp/chosen.csv"
[ "$(grep -c '^scal,' "$tmp/chosen.csv")" = 8 ] && ok "eight points" || not_ok "eight points"
sed '3s/"trials":\[\[/"trials":[[1,/' "$tmp/sweep.jsonl" >"$tmp/bad.jsonl"
fails 2 "line 3 is not a run" "$FOREWARP" eval picks data/h200-kernels.csv "$tmp/bad.jsonl"
fails 2 "name the measured kernels" "$FOREWARP" eval picks data/h200-kernels.csv
grep -e '"device"' -e '"class": *"rows"' "$tmp/sweep.jsonl" >"$tmp/rows.jsonl"
fails 2 "are of one class" "$FOREWARP" eval picks data/h200-kernels.csv "$tmp/rows.jsonl"
# Any table of numbers: the second part is 3 x + 1 of the first, whose last row nobody knows.
"$PYTHON" -c '
import json
print(json.dumps([[0, 3 * x + 1, x] for x in range(50)] + [[0, None, 7]] + [[1, 3 * x + 1, x] for x in range(10, 20)]))' >"$tmp/line.table"
passes "eval of a table" "$FOREWARP" eval boost "$tmp/line.table" --json "$tmp/j"
holds "parts by each other" "$tmp/j" 'len(j["predicted"]) == 61 and all(abs(p - 3 * x - 1) < 6 for x, p in zip(range(10, 20), j["predicted"][51:]))'
sed 's/\[1, /[0, /g' "$tmp/line.table" >"$tmp/one.table"
passes "one part" "$FOREWARP" eval boost "$tmp/one.table" --json "$tmp/j"
holds "which nothing predicts" "$tmp/j" 'set(j["predicted"]) == {None}'
for wrong in 's/\[0, 1,/[-1, 1,/' 's/, 7\]/]/' 's/\[0, 1,/[0, "1",/' 's/^\[/{/' 's/.*/[[0, 1]]/'; do
    sed "$wrong" "$tmp/line.table" >"$tmp/bad.table"
    fails 2 "no table of numbers" "$FOREWARP" eval boost "$tmp/bad.table"
done
fails 2 "is not for a table of numbers" "$FOREWARP" eval boost "$tmp/line.table" --features all
fails 2 "is not for" "$FOREWARP" explore examples/scal.fw -s N=64 --unchecked -n 2 -q --csv -
fails 2 "is not for" "$FOREWARP" explore examples/scal.fw -s N=64 --model "$tmp/picks.json" -n 2 -q --csv -
# The commands that end the pages of the papers name files that are there.
passes "commands of the papers" $papers/commands.py list
[ "$(grep -c '^  ' "$tmp/stdout")" -ge 30 ] && ok "thirty of them" || not_ok "thirty of them"
passes "one of them" $papers/commands.py run fusion/paper.fws
! grep -q "^not ok" "$tmp/stdout" && grep -q "^ok" "$tmp/stdout" && ok "it prints" || not_ok "it prints"
finish
