# What a problem file says of checking: a part of an output, bounds, a C function or a command
# that judges (src/problem/template_check.c, src/measure/judge.c).
. test/cli/common
export LC_ALL=C
cat >"$tmp/rank.cl" <<'E'
kernel void rank(global const int *in, global int *out, global float *noise)
{
    int i = get_global_id(0), r = 0;
    for (int k = 0; k < N; k++)
        r += in[k] < in[i] || (in[k] == in[i] && k < i);
    out[BAD && i == 3 ? 0 : r] = in[i];
    noise[i] = i < 10 ? 1.0f + 1e-3f * OFF : (float)OFF;
}
E
cat >"$tmp/judge.c" <<'E'
int sorted(const int *in, const int *out)
{
    long sum = 0;
    for (int i = 0; i < N; i++) {
        sum += in[i] - out[i];
        if (i && out[i] < out[i - 1])
            return 7;
    }
    return sum != 0;
}
E
cat >"$tmp/judge.py" <<'E'
import sys, numpy as np
a, b = map(np.load, sys.argv[1:])
sys.exit(0 if a.shape == (8, 16) and (np.sort(a.ravel()) == b).all() else 3)
E
tune() {
    cat >"$tmp/rank.json" <<E
{"files": "rank.cl", "sizes": {"N": 128}, "parameters": {"BAD": [0, 1], "OFF": [0, 1, 3]},
 "arguments": [{"name": "in", "type": "int", "shape": [8, "N // 8"]},
               {"name": "out", "type": "int", "shape": "N", "access": "out"},
               {"name": "noise", "type": "float", "shape": "N", "access": "out" $2}],
 "launch": {"kernel": "rank", "global": "N", "local": 16}, "reference": $1}
E
    rm -f "$tmp/t.db" "$tmp/j"
    "$FOREWARP" tune "$tmp/rank.json" --strategy exhaustive -b 99t -q --store "$tmp/t.db" \
        -o "$tmp/out" --json "$tmp/j" --where "$3"
}
right() {
    holds "$1" "$tmp/j" "j['trials']['ok'] == $2 and j['trials']['wrong-result'] == $3"
}
passes "a function judges" tune '{"judge": "sorted", "c": "judge.c", "arguments": ["in", "out"]}' '' 'OFF < 3'
right "and finds the wrong ones" 2 2
holds "which is said" "$tmp/j" '"C function sorted judges" in j["reference"]'
passes "a command judges" tune '{"command": "'"$PYTHON"' judge.py", "arguments": ["in", "out"]}' '' 'OFF == 0'
right "and finds the wrong one" 1 1
point='{"point": {"OFF": 0}}'
passes "a part, within an absolute bound" tune "$point" ', "check": "i < 10", "tolerance": {"absolute": 0.002}' 'BAD == 0'
right "what is off by more is wrong" 2 1
passes "a relative bound" tune "$point" ', "check": "i < 10", "tolerance": 1e-4' 'BAD == 0'
right "is narrower" 1 2
passes "the whole" tune "$point" ', "tolerance": {"absolute": 1, "relative": 0}' 'BAD == 0'
right "has more elements" 2 1

refuses() {
    what=$1 text=$2
    shift 2
    tune "$@" >"$tmp/e" 2>&1 && not_ok "$what" "it passed"
    grep -q "$text" "$tmp/e" && ok "$what" || not_ok "$what" "$(cat "$tmp/e")"
}
refuses "a bound below 0" "at least 0" "$point" ', "tolerance": -1' BAD==0
refuses "an unknown bound" "no such key" "$point" ', "tolerance": {"abs": 1}' BAD==0
refuses "another name in a part" "there is no parameter" "$point" ', "check": "k < 3"' BAD==0
refuses "no such function" "there is no .nope" '{"judge": "nope", "c": "judge.c"}' '' BAD==0

# Integers that rounding decides; the reference and the kernel call a size as they like.
cat >"$tmp/cut.cl" <<'E'
kernel void cut(global const float *x, global int *out, int n)
{
    int i = get_global_id(0);
    if (i < n)
        out[i] = (int)(FORM ? x[i] / SEVEN * 3e5f : x[i] * 3e5f / SEVEN) + (BAD && i == 77);
}
E
cat >"$tmp/cut.c" <<'E'
void cut(const float *x, int *out, int len)
{
    for (int i = 0; i < len; i++)
        out[i] = (int)(x[i] * 3e5f / SEVEN);
}
E
cut() {
    cat >"$tmp/cut.json" <<E
{"files": "cut.cl", "sizes": {"n": 4096, "len": 4096, "SEVEN": 7}, "parameters": {"FORM": [0, 1], "BAD": [0, 1]},
 "arguments": [{"name": "x", "type": "float", "shape": "n"},
               {"name": "out", "type": "int", "shape": "len", "access": "out" $1},
               {"name": "n", "type": "int", "value": "n"}],
 "launch": {"kernel": "cut", "global": "n", "local": 64}, "reference": {"c": "cut.c", "function": "cut"}}
E
    "$FOREWARP" tune "$tmp/cut.json" --strategy exhaustive -b 99t -q --store "$tmp/cut.db" \
        -o "$tmp/out" --json "$tmp/j"
}
passes "integers are equal" cut ''
right "or wrong" 1 3
holds "which is said" "$tmp/j" '"`out` must be equal" in j["reference"]'
passes "but those that rounding decides" cut ', "tolerance": {"rounding": 4}'
right "and no others" 2 2
holds "that many" "$tmp/j" '0 < int(j["reference"].split("decides ")[1].split()[0]) < 400'

# Kernel Tuner's cache there and back.
cat >"$tmp/cache.py" <<'E'
import json, sys
text = open(sys.argv[1]).read()
head = json.loads(text)
cache = head.pop("cache")
head["cache"] = {}
made = json.dumps(head, indent="")[:-3]          # as its process_cache and store_cache do
for key, entry in cache.items():
    made += "\n" + json.dumps({key: entry})[1:-1] + ","
assert made[:-1] + "}\n}" == text, "not as Kernel Tuner writes it"
assert head["kernel_name"] == "rank" and head["problem_size"] == [128]
lines = made.split("\n")
del lines[-2:]                                     # a run that was killed
open(sys.argv[2], "w").write("\n".join(lines))
E
passes "a cache is written" tune "$point" '' "OFF < 3" --fresh
run="$FOREWARP tune $tmp/rank.json --strategy exhaustive -b 99t -q -o $tmp/out --json $tmp/j"
passes "with all" $run --store "$tmp/t.db" --cache "$tmp/c.json"
"$PYTHON" "$tmp/cache.py" "$tmp/c.json" "$tmp/d.json" >"$tmp/e" 2>&1 && ok "to the byte" || not_ok "to the byte" "$(cat "$tmp/e")"
cp "$tmp/d.json" "$tmp/before"
passes "and gone on with" $run --store "$tmp/u.db" --cache "$tmp/d.json"
holds "four of six are known" "$tmp/j" 'j["reused"] == 4 and sum(j["trials"].values()) == 6'
"$PYTHON" -c "import json, sys; a, b = (open(f).read() for f in sys.argv[1:])
assert b.startswith(a[:-1]) and len(json.loads(b)['cache']) == 6" "$tmp/before" "$tmp/d.json" &&
    ok "what was there stays" || not_ok "what was there stays"
sed 's/"rank"/"other"/' "$tmp/c.json" >"$tmp/x.json"
$run --store "$tmp/u.db" --cache "$tmp/x.json" 2>&1 | grep -q "of another kernel" &&
    ok "another kernel's is refused" || not_ok "another kernel's is refused"

# A score below 0 keeps its sign, and the direction can be said.
"$PYTHON" - "$tmp/neg.json" <<'E'
import json, sys
cache = {str(a): {"a": a, "score": -1 - 0.1 * a, "GB/s": 5.0 + a, "time": 9.0 - a, "times": [1]} for a in range(9)}
json.dump({"device_name": "", "kernel_name": "h", "problem_size": 1, "tune_params_keys": ["a"], "tune_params": {"a": list(range(9))},
           "objective": ["score"], "cache": cache}, open(sys.argv[1], "w"))
E
replay="$FOREWARP replay $tmp/neg.json -b 3t --repeat 2 -q"
$replay | grep -q "score -1 to -1.4" && ok "signs" || not_ok "signs" "$($replay)"
$replay --objective 'min score' | grep -q "score -1.8 to -1.4" && ok "said to be low" || not_ok "said to be low"
$replay --objective 'GB/s' | grep -q "GB/s 13 to 9" && ok "another number" || not_ok "another number"
