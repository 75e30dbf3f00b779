# Problem files: tuned, run, checked and printed like programs; every fault of a kernel is
# a status, and every fault of a file is said with its place.
. test/cli/common
stores "$tmp/bad.db" "$tmp/t1.db" "$tmp/record.db" "$tmp/half.db" "$tmp/chaos.db" "$tmp/k.db"
bad=test/programs/templates/bad.json
convolution=templates/convolution.json

# A kernel with a fault a point: one is right, and nothing ends the run. A machine under
# load may be too late anywhere.
passes "a kernel with ten faults is tuned" timeout 1800 "$FOREWARP" tune $bad --strategy exhaustive \
    --budget 20t --store "$tmp/bad.db" --out "$tmp/out" --json "$tmp/bad.json" -q
holds "each point is a trial" "$tmp/bad.json" 'sum(j["trials"].values()) == 11'
holds "the right one wins" "$tmp/bad.json" 'j["best"]["point"] == "FAULT=0" and j["trials"]["ok"] == 1'
status_of() { rows "$tmp/bad.db" | sed -n "s/^[0-9]*|FAULT=$1|\([a-z-]*\)|.*/\1/p"; }
expect() {
    got=$(status_of "$1")
    case " $2 timed-out " in
    *" $got "*) ok "fault $1: $3" ;;
    *) not_ok "fault $1: $3" "its status is $got" ;;
    esac
}
expect 1 "wrong-result crashed failed" "divides an integer by zero"
expect 2 "crashed wrong-result failed" "reads far out of bounds"
expect 3 "timed-out" "never ends"
expect 4 "build-failed" "a syntax error"
expect 5 "wrong-result" "not-a-number"
expect 6 "out-of-resources" "a gigabyte of local memory"
expect 7 "wrong-result" "writes nothing"
expect 8 "crashed wrong-result failed" "writes far out of bounds"
expect 9 "out-of-resources" "a group larger than the device's"
expect 10 "wrong-result" "leaves every seventh element"
log=$("$PYTHON" -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT log FROM trial WHERE point = ?", ("FAULT=4",)).fetchone()[0])' "$tmp/bad.db")
case $log in
*bad.cl:28*) ok "the log names the user's file and line" ;;
*) not_ok "the log names the user's file and line" "$log" ;;
esac

sizes=H=70,W=45
passes "check" "$FOREWARP" check $convolution -s $sizes --json "$tmp/check.json"
holds "its space is the paper's" "$tmp/check.json" 'j["points"] == 131072 and j["sizes"]["W"] == 45'
passes "run with the reference" "$FOREWARP" run $convolution -s $sizes -p 'PX=2 PADDING=1 IMAGE=1 LOCAL=1' \
    --check -o "$tmp/out.npy"
passes "run gives what NumPy gives" "$PYTHON" - "$tmp" <<'END'
import subprocess, sys, os
import numpy as np
tmp = sys.argv[1]
rng = np.random.default_rng(1)
image = rng.random((70, 45), np.float32)
weights = rng.random((5, 5), np.float32)
np.save(tmp + "/image.npy", image)
np.save(tmp + "/filter.npy", weights)
subprocess.check_call([os.environ["FOREWARP"], "run", "templates/convolution.json", "-s", "H=70,W=45",
                       "--in", f"image={tmp}/image.npy", "--in", f"filter={tmp}/filter.npy",
                       "-p", "PY=4 PADDING=1 UNROLL=1", "-o", tmp + "/got.npy"])
padded = np.pad(image, 2)
want = sum(weights[j, i] * padded[j:j + 70, i:i + 45] for j in range(5) for i in range(5))
assert np.allclose(np.load(tmp + "/got.npy"), want, 1e-4)
END
passes "emit" "$FOREWARP" emit $convolution -p 'PX=8' -o "$tmp/emitted.cl"
grep -q '^#define PX 8$' "$tmp/emitted.cl" && ok "with the point's macros" || not_ok "with the point's macros"
fails 2 "written in opencl, not in cuda" "$FOREWARP" emit $convolution --target cuda
fails 2 "is for programs" "$FOREWARP" features $convolution

# What others read.
passes "a T1 file is tuned" "$FOREWARP" tune test/programs/templates/t1.json --budget 6t --store "$tmp/t1.db" \
    --out "$tmp/out" --t4 "$tmp/t4.json" --cache "$tmp/cache.json" --json "$tmp/t1.json" -q
holds "all its points are right" "$tmp/t1.json" 'j["trials"]["wrong-result"] == 0 and j["trials"]["ok"] > 0'
holds "its T4 results" "$tmp/t4.json" 'j["schema_version"] == "1.0.0" and len(j["results"]) == 6 and all(
    r["invalidity"] in ("correct", "timeout") and set(r["configuration"]) == {"block_size_x", "tile", "mirror"}
    and len(r["times"]["runtimes"]) >= (r["correctness"] == 1) for r in j["results"])'
holds "its cache file" "$tmp/cache.json" 'j["tune_params_keys"] == ["block_size_x", "tile", "mirror"] and all(
    k == ",".join(str(e[p]) for p in j["tune_params_keys"]) for k, e in j["cache"].items()) and len(j["cache"]) == 6'
tail -c 3 "$tmp/cache.json" | tr '\n' '.' | grep -q '^}.}$' && ok "that Kernel Tuner goes on with" ||
    not_ok "that Kernel Tuner goes on with"

passes "a record" "$FOREWARP" tune test/programs/templates/t1.json --strategy random --budget 3t --samples 3 \
    --store "$tmp/record.db" --out "$tmp/out" --cache "$tmp/record.json.gz" -q
gunzip "$tmp/record.json.gz"
holds "of as many runs a point" "$tmp/record.json" 'len(j["cache"]) == 3 and all(
    len(e["times"]) == 3 for e in j["cache"].values() if e["time"] != "RuntimeFailedConfig")'
holds "with their launches" "$tmp/record.json" 'all(
    len(e["groups"]) == 3 and e["local"] == [e["block_size_x"], 1, 1] for e in j["cache"].values())'
fails 2 "--samples takes a whole number from 1 to 32" "$FOREWARP" tune test/programs/templates/t1.json --samples 33

# Truth values and reals are written as Python writes them; in C reals stay reals.
echo 'kernel void f(global float *x) { x[get_global_id(0)] = TRUE ? 3 / REAL + SOME : 0; }' >"$tmp/forms.cl"
cat >"$tmp/forms.json" <<'END'
{"files": "forms.cl", "sizes": {"N": 64},
 "parameters": {"TRUE": [true, false], "REAL": [1.0, 2], "SOME": "[0.5 * i for i in range(3)]"},
 "arguments": [{"name": "x", "type": "float", "shape": "N", "access": "out"}],
 "launch": {"kernel": "f", "global": "N", "local": 8}, "reference": "none"}
END
passes "values of several forms" "$FOREWARP" tune "$tmp/forms.json" --strategy exhaustive --budget 12t \
    --store "$tmp/forms.db" --out "$tmp/out" --cache "$tmp/forms-cache.json" -q
holds "in the cache file" "$tmp/forms-cache.json" 'repr(j["tune_params"]) == (
    "{\x27TRUE\x27: [True, False], \x27REAL\x27: [1.0, 2], \x27SOME\x27: [0.0, 0.5, 1.0]}") and all(
    k == ",".join(str(e[p]) for p in j["tune_params_keys"]) for k, e in j["cache"].items()) and len(j["cache"]) == 12'
"$FOREWARP" emit "$tmp/forms.json" -p 'SOME=1 TRUE=1' | grep -A2 '^#define TRUE 1$' | tail -2 | tr '\n' ' ' |
    grep -qx '#define REAL 1.0 #define SOME 1.0 ' && ok "and as macros" || not_ok "and as macros"

# A function in C, its options parameters.
cat >"$tmp/sum.c" <<'END'
float sum(const float *x, float *out, int n)
{
    double all[LANES] = {0};
    for (int i = 0; i < n; i += LANES)
        for (int k = 0; k < LANES; k++)
            all[k] += x[i + k];
    *out = 0;
    for (int k = 0; k < LANES; k++)
        *out += all[k];
    return *out;
}
void add(float *out, float what) { *out += what * WHAT; }
END
cat >"$tmp/sum.json" <<'END'
{"language": "c", "files": "sum.c", "options": "-O{LEVEL}", "sizes": {"n": 4096},
 "parameters": {"LANES": [1, 8], "LEVEL": [1, 3], "WHAT": [0, 1]},
 "arguments": [{"name": "x", "type": "float", "shape": "n"}, {"name": "out", "type": "float", "shape": 1, "access": "out"},
               {"name": "n", "type": "int", "value": "n"}, {"name": "what", "type": "float", "value": 3}],
 "launch": [{"kernel": "sum", "arguments": ["x", "out", "n"]},
            {"kernel": "add", "repeat": 2, "arguments": ["out", "what"]}]}
END
passes "a function in C" "$FOREWARP" tune "$tmp/sum.json" --strategy exhaustive --budget 8t \
    --store "$tmp/sum.db" --out "$tmp/out" --json "$tmp/sum" --cache "$tmp/sum-cache.json" -q
holds "is checked" "$tmp/sum" 'j["trials"]["ok"] == 4 and j["trials"]["wrong-result"] == 4'
passes "on request it is not" "$FOREWARP" tune "$tmp/sum.json" --strategy exhaustive --budget 8t --unchecked \
    --store "$tmp/sum.db" --out "$tmp/out" --json "$tmp/sum" -q
holds "which is said" "$tmp/sum" 'j["trials"]["ok"] == 8 and "NOT checked" in j["reference"]'
fails 2 "is for problem files" "$FOREWARP" tune examples/scal.fw --unchecked
sed 's/"kernel": "add"/"global": 1, &/' "$tmp/sum.json" >"$tmp/sum2.json"
fails 2 "no work-items" "$FOREWARP" check "$tmp/sum2.json"
echo '{"ConfigurationSpace": {}, "kernelSpecification": {}}' >"$tmp/old.json"
fails 2 "KernelSpecification: it is missing" "$FOREWARP" check "$tmp/old.json"

# A syntax error in half of the points.
cat >"$tmp/half.cl" <<'END'
kernel void fill(global int *out) { out[get_global_id(0)] = VALUE
#if VALUE % 2 == 0
;
#endif
}
END
cat >"$tmp/half.json" <<'END'
{"files": "half.cl", "parameters": {"VALUE": {"values": "[4 for i in range(1)] + [1, 3]"}, "WG": [1, 2]},
 "arguments": [{"name": "out", "type": "int", "shape": 64, "access": "out"}],
 "launch": {"kernel": "fill", "global": 64, "local": "WG"}}
END
passes "an error in some points" "$FOREWARP" tune "$tmp/half.json" --budget 9t --store "$tmp/half.db" --out "$tmp/out" \
    --json "$tmp/half.out" -q
holds "others win" "$tmp/half.out" '(j["trials"]["build-failed"] > 1 and j["trials"]["ok"] > 0 and
    j["trials"]["build-failed"] + j["trials"]["ok"] + j["trials"]["timed-out"] == 6)'

# References of each kind; a buffer that is changed in place is restored before each run.
cat >"$tmp/inplace.cl" <<'END'
kernel void advance(global uchar *x, global float2 *y, long add)
{
    int i = get_global_id(0);
    x[i] = 2 * x[i] + add;
    if (i < N / 4)
        y[i] = (float2)(y[i].y + x[0], y[i].x);
}
END
cat >"$tmp/inplace.c" <<'END'
void step_c(unsigned char *x, float (*y)[2], long long add)
{
    for (int i = 0; i < N; i++)
        x[i] = 2 * x[i] + add;
    for (int i = 0; i < N / 4; i++) {
        float first = y[i][0];
        y[i][0] = y[i][1];
        y[i][1] = first;
    }
}
END
in_place() {
    cat >"$tmp/inplace.json" <<END
{"files": "inplace.cl", "sizes": {"N": 61}, "parameters": {"WG": [1, 61]},
 "arguments": [{"name": "x", "type": "uchar", "shape": "N", "access": "inout", "fill": {"random": [1, 99]}},
               {"name": "y", "type": "float2", "shape": "N // 4", "access": "inout", "check": $2},
               {"name": "add", "type": "long", "value": "3 + 0 * WG"}],
 "launch": {"kernel": "advance", "global": "N", "local": "WG"}, "reference": $3}
END
    passes "in place against $1" "$FOREWARP" run "$tmp/inplace.json" --check
    passes "at another point" "$FOREWARP" run "$tmp/inplace.json" --check -p WG=61
}
in_place "a C function" false '{"c": "inplace.c", "function": "step_c"}'
in_place "another kernel" false '{"file": "inplace.cl", "kernel": "advance", "groups": "N", "local": 1}'
passes "its outputs as files" "$FOREWARP" run "$tmp/inplace.json" -o "$tmp/x.npy" -o "$tmp/y.npy"
in_place "files" true '{"npy": {"x": "x.npy"}}'
"$PYTHON" -c 'import sys, numpy as np
x = np.load(sys.argv[1]); x[60] += 1; np.save(sys.argv[1], x)' "$tmp/x.npy"
fails 1 "x: element 60" "$FOREWARP" run "$tmp/inplace.json" --check

# Whatever is expected, what was not written is wrong; so is a write to any other place, and
# a run that only works once. Each point has its own fault, of every kind of element.
cat >"$tmp/judge.cl" <<'END'
kernel void judge(global T *in, global T *out, global T *both)
{
    int i = get_global_id(0);
    if (FAULT == 2 && i == N - 1)
        out[N] = 3;
    if (FAULT == 3 && i == 0)
        out[-1] = 3;
    if (FAULT == 4 && i == N - 1)
        in[7] = 3;
    if (FAULT == 5 && i == N - 1)
        both[N] = 3;
    both[i] += in[i];
    if (FAULT == 1 && i == 5)
        return;
    if (FAULT != 6 || out[i] != out[i] || out[i] == (T)-1)
        out[i] = VALUE;
}
END
judge() { # TYPE VALUE
    cat >"$tmp/judge.json" <<END
{"files": "judge.cl", "sizes": {"N": 61}, "options": ["-DT=$1", "-DVALUE=$2"],
 "parameters": {"FAULT": [0, 1, 2, 3, 4, 5, 6], "WG": [61, 1]},
 "arguments": [{"name": "in", "type": "$1", "shape": "N", "fill": {"random": [4, 9]}},
               {"name": "out", "type": "$1", "shape": "N", "access": "out"},
               {"name": "both", "type": "$1", "shape": "N", "access": "inout"}],
 "launch": {"kernel": "judge", "global": "N", "local": "WG"}, "reference": {"point": {"WG": 1}}}
END
    rm -f "$tmp/judge.db"
    stores "$tmp/judge.db"
    passes "seven faults with $1 of $2" "$FOREWARP" tune "$tmp/judge.json" --strategy exhaustive --budget 14t \
        --store "$tmp/judge.db" --out "$tmp/out" --json "$tmp/judge.out" -q
    holds "two are right" "$tmp/judge.out" 'j["trials"]["ok"] == 2 and j["trials"]["wrong-result"] == 12'
}
judge uchar 255
judge float NAN
judge short 0
judge int -1
said() { fails 1 "$2" "$FOREWARP" run "$tmp/judge.json" --check -p "FAULT=$1"; }
said 1 'run again, on outputs that held something else'
said 2 'writes past the end of `out`: element 61'
said 3 'writes before the start of `out`: element -1'
said 4 'writes into the input `in`: element 7'
said 5 'writes past the end of `both`: element 61'
fails 1 'writes past the end of `out`' "$FOREWARP" run "$tmp/judge.json" -p "FAULT=2" -o "$tmp/judge.npy"
# A reference that does not write all of its output: what it leaves stays zero.
sed 's/"point": {"WG": 1}/"point": {"FAULT": 1}/' "$tmp/judge.json" >"$tmp/gap.json"
passes "a reference with a gap" "$FOREWARP" run "$tmp/gap.json" --check -p FAULT=1

# One huge element makes no other small.
cat >"$tmp/huge.cl" <<'END'
kernel void huge(global float *out)
{
    int i = get_global_id(0);
    out[i] = i == 9 ? 1e10f : FAULT && i > N / 2 ? 0 : i + 1;
}
END
cat >"$tmp/huge.json" <<'END'
{"files": "huge.cl", "sizes": {"N": 4096}, "parameters": {"FAULT": [0, 1]},
 "arguments": [{"name": "out", "type": "float", "shape": "N", "access": "out"}],
 "launch": {"kernel": "huge", "global": "N", "local": 64}, "reference": {"point": {}}}
END
passes "beside one huge element" "$FOREWARP" run "$tmp/huge.json" --check
fails 1 "out: element 2049" "$FOREWARP" run "$tmp/huge.json" --check -p FAULT=1

# Launched for more than there is: the kernel of a larger problem.
cat >"$tmp/over.cl" <<'END'
kernel void over(global const float *in, global float *out)
{
    int i = get_global_id(0);
    out[i] = 2 * in[i % N];
}
END
cat >"$tmp/over.json" <<'END'
{"files": "over.cl", "sizes": {"N": 1024}, "parameters": {"WG": [64, 128]},
 "arguments": [{"name": "in", "type": "float", "shape": "N"},
               {"name": "out", "type": "float", "shape": "N", "access": "out"}],
 "launch": {"kernel": "over", "groups": "(N + WG - 1) // WG", "local": "WG"},
 "reference": {"c": "over.c", "function": "over_c"}}
END
echo 'void over_c(const float *in, float *out) { for (int i = 0; i < N; i++) out[i] = 2 * in[i]; }' >"$tmp/over.c"
passes "a kernel without a bound, where none is needed" "$FOREWARP" run "$tmp/over.json" --check
fails 1 'writes past the end of `out`: element 1000' "$FOREWARP" run "$tmp/over.json" -s N=1000 --check

# Steps that magnify what rounding does, in two ways that round differently: as far apart as
# rounding can put them they are right, unless the file says how far.
cat >"$tmp/chaos.fw" <<'END'
size N
def f(x: [N]float) = iterate(12, \a -> a |> map(\v -> 3.9*v*(1 - v)), x)
END
cat >"$tmp/chaos.cl" <<'END'
kernel void chaos(global const float *x, global float *z)
{
    float v = x[get_global_id(0)];
    for (int i = 0; i < 12; i++)
        v = 3.9f * v - 3.9f * v * v;
    z[get_global_id(0)] = v;
}
END
chaos() {
    cat >"$tmp/chaos.json" <<END
{"files": "chaos.cl", "sizes": {"N": 256}, "parameters": {"WG": [8, 64]}, $1
 "arguments": [{"name": "x", "type": "float", "shape": "N", "fill": {"random": [0.1, 0.9]}},
               {"name": "z", "type": "float", "shape": "N", "access": "out"}],
 "launch": {"kernel": "chaos", "global": "N", "local": "WG"}, "reference": {"fw": "chaos.fw"}}
END
}
chaos ''
passes "room for rounding" "$FOREWARP" tune "$tmp/chaos.json" --budget 2t --json "$tmp/chaos.out" --store "$tmp/chaos.db" --out "$tmp/out"
grep -q "bounds of its rounding" "$tmp/stdout" &&
    ok "that is said" || not_ok "that is said" "$(cat "$tmp/stdout")"
holds "both points are right" "$tmp/chaos.out" 'j["trials"]["ok"] == 2'
chaos '"tolerance": 1e-4,'
fails 1 "z: element" "$FOREWARP" run "$tmp/chaos.json" --check

# What cannot be read is refused.
sed 's/half.cl/absent.cl/' "$tmp/half.json" >"$tmp/absent.json"
fails 2 "cannot read $tmp/absent.cl" "$FOREWARP" tune "$tmp/absent.json"
sed 's/"shape": 64/"shape": 64,,/' "$tmp/half.json" >"$tmp/comma.json"
fails 2 "comma.json:2:" "$FOREWARP" tune "$tmp/comma.json"
sed 's/"local": "WG"/"local": "WGX"/' "$tmp/half.json" >"$tmp/name.json"
fails 2 'no parameter `WGX`' "$FOREWARP" tune "$tmp/name.json"
sed 's/"kernel": "fill"/"kernel": "absent"/' "$tmp/half.json" >"$tmp/kernel.json"
fails 2 "have no kernel" "$FOREWARP" tune "$tmp/kernel.json" --budget 3t --store "$tmp/k.db" --out "$tmp/out"
fails 2 'no size `Q`' "$FOREWARP" tune $convolution -s Q=3
fails 2 "no input" "$FOREWARP" run $convolution -s $sizes --in "nothing=$tmp/image.npy"
fails 2 "shape" "$FOREWARP" run $convolution -s H=71,W=45 --in "image=$tmp/image.npy"
fails 2 "written in opencl" "$FOREWARP" run $bad -d host
fails 2 "is written in opencl, not in c" "$FOREWARP" run $convolution -s $sizes -d host
finish
