# What a tuning is for (src/problem/goal.c): metrics, objectives and their front, energy by
# the counter of a card that test/measure/fake_cuda.c plays, and when a search has enough.
. test/cli/common
export LC_ALL=C
cat >"$tmp/scale.cl" <<'E'
kernel void scale(global const float *in, global float *out)
{
    local float tile[WG * PAD];
    tile[get_local_id(0)] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = 2 * tile[get_local_id(0)];
}
E
cat >"$tmp/scale.json" <<'E'
{"files": "scale.cl", "sizes": {"N": 4096},
 "parameters": {"WG": [8, 16, 32, 64], "PAD": [1, 2, 4]},
 "arguments": [{"name": "in", "type": "float", "shape": "N"},
               {"name": "out", "type": "float", "shape": "N", "access": "out"}],
 "launch": {"kernel": "scale", "global": "N", "local": "WG"},
 "metrics": {"GB/s": "bytes / time / 1e6", "words": "lambda p: p['shared'] / 4 + 0 * WG"},
 "objective": ["max words"],
 "reference": {"c": "scale.c", "function": "twice"}}
E
cat >"$tmp/scale.c" <<'E'
void twice(const float *in, float *out)
{
    for (int i = 0; i < N; i++)
        out[i] = 2 * in[i];
}
E
tune() {
    "$FOREWARP" tune "$tmp/scale.json" --strategy exhaustive -b 99t -q --store "$tmp/t.db" \
        -o "$tmp/out" --json "$tmp/j" "$@"
}

passes "the file's objective" tune
holds "the most local memory wins" "$tmp/j" \
    '(j["best"]["point"] == "WG=64 PAD=4" and j["best"]["metrics"]["words"] == 256 and
      j["best"]["objectives"] == {"max words": 256} and j["front"] == [])'
holds "a rate is told" "$tmp/j" \
    'abs(j["best"]["metrics"]["GB/s"] - 32768 / j["best"]["time_ns"]) < 1e-6'
passes "the command's objective" tune --objective 'shared + PAD'
holds "trials are the same" "$tmp/j" 'j["reused"] == 12 and j["best"]["point"] == "WG=8 PAD=1"'
passes "several objectives" tune --objective 'min shared' --objective 'max WG' --objective 'min PAD'
holds "the front" "$tmp/j" \
    '([f["point"] for f in j["front"]] == ["WG=%d PAD=1" % w for w in (8, 16, 32, 64)] and
      j["front"][3]["objectives"] == {"min shared": 256, "max WG": 64, "min PAD": 1})'
holds "is in the record" "$tmp/out/scale.run.json" \
    '(j["objectives"] == ["min shared", "max WG", "min PAD"] and
      sorted(t[10][-3:] for t in j["trials"])[0] == [32, 8, 1] and
      j["metrics"][-2:] == ["GB/s", "words"])'
holds "with its points" "$tmp/out/scale.run.json" 'sum(t[11] for t in j["trials"]) == 4'
"$FOREWARP" report "$tmp/out" -o "$tmp/r.html" &&
    grep -q '"max WG"' "$tmp/r.html" && ok "and in the report" || not_ok "and in the report"
passes "a front of all points" tune --fresh --objective 'min shared' --objective 'max shared'
holds "has no other" "$tmp/j" 'len(j["front"]) == 12'
times="SELECT min(length(samples) - length(replace(samples, ',', ''))) FROM trial WHERE point != 'WG=8 PAD=1'"
"$PYTHON" -c "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])" \
    "$tmp/t.db" "$times" | grep -qx 19 && ok "each is timed again" || not_ok "each is timed again"
emit="$FOREWARP emit $tmp/scale.json --best --store $tmp/t.db"
$emit | grep -q "WG 64" && ok "the stored best, by the file" || not_ok "the stored best, by the file"
$emit --objective shared | grep -q "WG 8" && ok "by another" || not_ok "by another"

refuses() {
    what=$1 text=$2
    shift 2
    "$FOREWARP" tune "$tmp/scale.json" -q --store "$tmp/t.db" -o "$tmp/out" "$@" >"$tmp/e" 2>&1 &&
        not_ok "$what" "it passed"
    grep -q "$text" "$tmp/e" && ok "$what" || not_ok "$what" "$(cat "$tmp/e")"
}
refuses "what no device tells" "has no value" --objective energy
refuses "an unknown name" "there is no parameter" --objective 'min nothing / time'
refuses "a metric twice" "given twice" --metric words=1
refuses "a metric that is told" "a number that trials report" --metric energy=1
refuses "a slip of a budget" "a budget is" -b 5t,90
refuses "a share in a quiet time" "a budget is" -b quiet:90%

# Whichever comes first ends it.
passes "no gain" tune --fresh --strategy random --where 'PAD == 1' --objective 'max 7 + 0 * time' \
    -b 1h,quiet:2t
holds "says so" "$tmp/j" '"brought no gain" in j["enough"]'
passes "share of the roofline" tune --fresh --strategy random --objective time -b 1h,0.0001%
holds "says what was reached" "$tmp/j" '"of the roofline" in j["enough"]'

# A card that counts: a millijoule for each thousand work-items, and 24 registers.
mkdir "$tmp/lib64"
cc -std=c11 -D_GNU_SOURCE -shared -fPIC -O1 -o "$tmp/lib64/libnvrtc.so" \
    test/measure/fake_cuda.c -ldl || { echo "skip energy: no compiler" && exit 0; }
ln -s libnvrtc.so "$tmp/lib64/libcuda.so.1"
ln -s libnvrtc.so "$tmp/lib64/libnvidia-ml.so.1"
export LD_LIBRARY_PATH="$tmp/lib64" CUDA_HOME="$tmp"
"$FOREWARP" devices -d cuda:0 | grep -q "1500 MHz, memory 2619 MHz, 700 W" &&
    ok "limits are reported" || not_ok "limits are reported" "$("$FOREWARP" devices -d cuda:0)"
cat >"$tmp/add.cu" <<'E'
extern "C" __global__ void add(float *__restrict__ x, const float *__restrict__ y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = i; k < N; k += N / EACH)
        x[k] = x[k] + y[k];
}
E
cat >"$tmp/add.json" <<'E'
{"files": "add.cu", "language": "cuda", "sizes": {"N": 4096},
 "parameters": {"EACH": [1, 2, 4], "REGISTERS": [16, 32]}, "options": ["-maxrregcount={REGISTERS}"],
 "arguments": [{"name": "x", "type": "float", "shape": "N", "access": "inout"},
               {"name": "y", "type": "float", "shape": "N"}],
 "launch": {"kernel": "add", "global": "N // EACH", "local": 64},
 "reference": {"c": "add.c", "function": "add_reference"}}
E
cat >"$tmp/add.c" <<'E'
void add_reference(float *x, const float *y)
{
    for (int i = 0; i < N; i++)
        x[i] += y[i];
}
E
passes "energy" "$FOREWARP" tune "$tmp/add.json" -d cuda:0 --objective 'min energy' -b 3t -q \
    --strategy random --where 'REGISTERS == 16' --store "$tmp/t.db" -o "$tmp/out" --json "$tmp/j"
holds "what a launch takes" "$tmp/j" \
    '(j["best"]["point"] == "EACH=4 REGISTERS=16" and j["best"]["metrics"]["registers"] == 24 and
      abs(j["best"]["metrics"]["energy"] * 1e6 - 1024) < 60 and j["best"]["metrics"]["power"] > 0)'

# A kernel that takes other arguments than it is passed does not run.
passed() { # ARGUMENTS
    cat >"$tmp/passed.json" <<E
{"files": "passed.cu", "language": "cuda", "parameters": {"WG": [64]}, "launch": {"kernel": "fill", "global": 64, "local": "WG"},
 "arguments": [{"name": "x", "type": "float", "shape": 64, "access": "out"}$1], "reference": "none"}
E
}
cat >"$tmp/passed.cu" <<'E'
extern "C" __global__ void fill(float *x, float y)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] = y;
}
E
passed ', {"name": "y", "type": "float", "value": 1}'
passes "arguments that fit" "$FOREWARP" run "$tmp/passed.json" -d cuda:0
passed ', {"name": "y", "type": "double", "value": 1}'
fails 1 "fill: argument 2 has 8 bytes, but the kernel takes 4" "$FOREWARP" run "$tmp/passed.json" -d cuda:0
passed ""
fails 1 "fill: the kernel takes more than the 1 arguments" "$FOREWARP" run "$tmp/passed.json" -d cuda:0
