# forewarp replay: the score of strategies on a recorded space, as text and JSON, and what is
# wrong with files and commands.
. test/cli/common

"$PYTHON" - "$tmp" <<'END'
import gzip, json, sys
folder = sys.argv[1]
cache, results = {}, []
for x in range(24):
    for y in range(24):
        time = 1 + (x - 17) ** 2 + (y - 5) ** 2 if (x + 2 * y) % 9 else "RuntimeFailedConfig"
        entry = {"x": x, "y": y, "time": time, "compile_time": 100 + x, "framework_time": 1}
        if time != "RuntimeFailedConfig":
            entry["times"] = [time, time]
        cache["%d,%d" % (x, y)] = entry
        results.append({"configuration": {"x": x, "y": y},
            "times": {"compilation": 100 + x, "framework": 1, "runtimes": entry.get("times", [])},
            "invalidity": "runtime" if time == "RuntimeFailedConfig" else "correct",
            "correctness": 1, "objectives": ["time"],
            "measurements": [{"name": "time", "value": time, "unit": ""}]})
head = {"device_name": "", "kernel_name": "k", "problem_size": 1,
        "tune_params_keys": ["x", "y"], "objective": "time", "cache": cache}
json.dump(head, gzip.open(folder + "/bowl.json.gz", "wt"))
json.dump({"metadata": {"timeunit": "miliseconds"}, "results": results,
           "schema_version": "1.0.0"}, open(folder + "/bowl-T4.json", "w"))
open(folder + "/cut.gz", "wb").write(open(folder + "/bowl.json.gz", "rb").read()[:900])
open(folder + "/line.json", "w").write('{\n"cache": {\n"1": x')
END
replay() { "$FOREWARP" replay "$@"; }
bowl=$tmp/bowl.json.gz
passes "replay" replay "$bowl" --repeat 10 --json "$tmp/j"
for fact in \
    'j["repeat"] == 10 and j["seed"] == 1 and len(j["spaces"]) == 1' \
    'j["spaces"][0]["configurations"] == 576 and j["spaces"][0]["valid"] == 512' \
    'j["spaces"][0]["optimum"] == 2' \
    'j["strategies"][0]["strategy"] == "auto"' \
    '0 < j["strategies"][0]["score"] <= 1' \
    'j["strategies"][0]["score"] == j["strategies"][0]["results"][0]["score"]' \
    'len(j["strategies"][0]["results"][0]["performance"]) == 1000'
do
    holds "json: $fact" "$tmp/j" "$fact"
done
passes "both formats" replay "$bowl" "$tmp/bowl-T4.json" --repeat 10 --json "$tmp/j2" --strategy genetic
holds "the same space in both" "$tmp/j2" \
    'len({(r["score"], r["evaluations"]) for r in j["strategies"][0]["results"]}) == 1'
passes "again" replay "$bowl" --repeat 10 --json "$tmp/j3"
holds "the same score again" "$tmp/j3" \
    "j['strategies'][0]['score'] == json.load(open('$tmp/j'))['strategies'][0]['score']"
passes "a table of all strategies" replay "$bowl" --strategy all --repeat 2 --json "$tmp/j"
holds "all of them" "$tmp/j" '{"auto", "random", "local", "annealing", "genetic",
    "differential"} <= {s["strategy"] for s in j["strategies"]}'
passes "a prior" replay "$bowl" --prior "$tmp/bowl-T4.json" --repeat 4 --json "$tmp/j"
holds "the best at once" "$tmp/j" 'j["prior"] == "bowl-T4" and j["strategies"][0]["score"] > 0.99'
passes "a budget of trials" replay "$bowl" --strategy random --budget 50t --repeat 4 --json "$tmp/j"
holds "50 evaluations" "$tmp/j" 'j["strategies"][0]["results"][0]["evaluations"] == 50'

# A heuristic file, followed to its end: both parameters in turn, from the first point.
printf 'repeat 2\n  tune x\n  tune y where y <= N\nend\n' >"$tmp/turns.fwh"
passes "a heuristic file" replay "$bowl" "$tmp/bowl-T4.json" --strategy "$tmp/turns.fwh" -s N=20 --json "$tmp/j"
holds "its points" "$tmp/j" '[r["asked"] for r in j["runs"]] == 2 * [
    [24 * x for x in range(24)] + j["runs"][0]["asked"][24:]] and j["runs"][1]["tried"] == len(set(j["runs"][0]["asked"]))'
holds "what it found" "$tmp/j" 'j["runs"][0]["optimum"] == 2 <= j["runs"][0]["best"] < 4 and j["runs"][0]["cost_s"] > 0'
passes "a budget" replay "$bowl" --strategy "$tmp/turns.fwh" -s N=20 --budget 7t --json "$tmp/j"
holds "7 points" "$tmp/j" 'j["runs"][0]["tried"] == 7'
passes "no time" replay "$bowl" --strategy "$tmp/turns.fwh" -s N=20 --budget 0.2s
grep -q "bowl: [1-9] of 576 configurations tried" "$tmp/stdout" && ok "few" || not_ok "few"
fails 2 "turns.fwh:3:" "$FOREWARP" replay "$bowl" --strategy "$tmp/turns.fwh"
fails 2 "cannot read" "$FOREWARP" replay "$bowl" --strategy "$tmp/absent.fwh"
fails 1 "No such file" "$FOREWARP" replay "$tmp/absent.json" --strategy "$tmp/turns.fwh"

fails 2 "FILE... is missing" "$FOREWARP" replay
fails 1 "No such file" "$FOREWARP" replay "$tmp/absent.json"
fails 1 "cut.gz" "$FOREWARP" replay "$tmp/cut.gz"
fails 2 "line.json:3:" "$FOREWARP" replay "$tmp/line.json"
fails 2 "no strategy \`luck\`" "$FOREWARP" replay "$bowl" --strategy luck
fails 2 "needs more" "$FOREWARP" replay "$bowl" --strategy ranked
finish
