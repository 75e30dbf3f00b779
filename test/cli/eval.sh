# forewarp eval: the tables, the figures and the JSON of an exploration, and its mistakes.
. test/cli/common

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

passes "eval" "$FOREWARP" eval knn "$tmp/data.csv" --json "$tmp/j" --svg "$tmp/figures"
cp "$tmp/stdout" "$tmp/plain"
for figure in 2 3 4 5 6 7; do
    grep -q "^Figure $figure:" "$tmp/stdout" && ok "figure $figure" || not_ok "figure $figure"
    [ -s "$tmp/figures/figure$figure.svg" ] && ok "svg $figure" || not_ok "svg $figure"
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
fails 2 "a whole number above 0" "$FOREWARP" eval knn "$tmp/data.csv" --random-repeat 0
fails 1 "cannot read $tmp/none" "$FOREWARP" eval knn "$tmp/none"
sed 's/,ok$/,ok,/' "$tmp/data.csv" >"$tmp/wrong.csv"
fails 2 "wrong.csv:3:1: error M016" "$FOREWARP" eval knn "$tmp/wrong.csv"
grep -v '^p[23]' "$tmp/data.csv" >"$tmp/one.csv"
fails 2 "at least two programs" "$FOREWARP" eval knn "$tmp/one.csv"
fails 1 "cannot make" "$FOREWARP" eval knn "$tmp/data.csv" --svg "$tmp/data.csv/figures"

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
passes "eval of records" "$FOREWARP" eval ann "$tmp/one.json" "$tmp/two.json" --repeat 1 --json "$tmp/j" --svg "$tmp/stages"
grep -q "^Figures 4 to 7" "$tmp/stdout" && grep -q "^Figure 1:" "$tmp/stdout" && ok "tables" || not_ok "tables"
grep -q "^noise: two measurements of a point are 10.0 % apart (2[0-9]* points)" "$tmp/stdout" && ok "noise" || not_ok "noise"
for svg in one-error one-scatter two-slowdown; do
    [ -s "$tmp/stages/$svg.svg" ] && ok "$svg" || not_ok "$svg"
done
holds "json: errors" "$tmp/j" 'len(j) == 2 and all(f["error"] < 0.2 for f in j[0]["first_stages"])'
holds "json: more points, less error" "$tmp/j" 'j[0]["first_stages"][-1]["error"] < j[0]["first_stages"][0]["error"]'
holds "json: second stage" "$tmp/j" 'j[0]["first_stages"][-1]["second"][0]["failed"] < 0.2'
passes "eval stages" "$FOREWARP" eval stages "$tmp/one.json" --repeat 1 --json "$tmp/j"
holds "json: all models" "$tmp/j" '{s["model"] for s in j} == {"knn", "boost", "ann", "deep", "forest"}'
echo '{"tune_params_keys": ["x"], "cache": {"1": {"x": 1, "time": 1.0}}}' >"$tmp/tiny.json"
fails 2 "too few to train on" "$FOREWARP" eval ann "$tmp/tiny.json"
fails 2 "there is no model" "$FOREWARP" eval crystal "$tmp/one.json"
finish
