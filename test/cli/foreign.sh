#!/bin/sh
# Kernels as others write them: CUDA without extern "C", templates, variables of a module,
# dynamic shared memory, structs, vectors of three, files that are included. What needs a
# GPU is not run here.
. test/cli/common
stores "$tmp/rows.db"
foreign=test/programs/foreign

for kernel in bodies filter histogram scale; do
    passes "check $kernel" "$FOREWARP" check $foreign/$kernel.json
    passes "emit $kernel, without a device" "$FOREWARP" emit $foreign/$kernel.json -o "$tmp/$kernel.cu"
done
grep -q "^//   histogram .* shared 1024 bytes" "$tmp/histogram.cu" && ok "with shared memory" ||
    not_ok "with shared memory" "$(head "$tmp/histogram.cu")"
grep -q "^//   place::scale<T, EACH> " "$tmp/scale.cu" && ok "with an instance" || not_ok "with an instance"
fails 2 "written in cuda, not in opencl" "$FOREWARP" emit $foreign/scale.json --target opencl

passes "local memory, structs and vectors of three as arguments" "$FOREWARP" tune $foreign/rows.json \
    --strategy exhaustive --budget 20t --store "$tmp/rows.db" --out "$tmp/out" --json "$tmp/rows.json" -q
holds "all are right" "$tmp/rows.json" 'j["trials"]["ok"] + j["trials"]["timed-out"] == 12'

# Launches that are repeated, within each other, conditional, with arrays that change places.
for kernel in sort passes; do
    passes "$kernel is tuned" "$FOREWARP" tune $foreign/$kernel.json --strategy exhaustive --budget 20t \
        --store "$tmp/rows.db" --out "$tmp/out" --json "$tmp/$kernel.json" -q
done
holds "sorts are right" "$tmp/sort.json" 'j["trials"]["ok"] + j["trials"]["timed-out"] == 4'
holds "passes are right" "$tmp/passes.json" 'j["trials"]["ok"] + j["trials"]["timed-out"] == 4'
"$FOREWARP" emit $foreign/sort.json -p 'WG=8 JOINED=1' >"$tmp/sort.cl"
[ "$(grep -c '^//   single' "$tmp/sort.cl")" = 10 ] && [ "$(grep -c '^//   joined' "$tmp/sort.cl")" = 8 ] &&
    ok "so many launches" || not_ok "so many launches" "$(grep -c '^//   ' "$tmp/sort.cl")"
grep -q '^// Options: -DJOINED_1=1 -DHALF=256/2$' "$tmp/sort.cl" && ok "options of the point" ||
    not_ok "options of the point" "$(grep Options "$tmp/sort.cl")"

# A size is no macro where a template has a parameter of its name.
cat >"$tmp/named.cu" <<'END2'
template <int N> struct Tuple { float at[N]; };
__global__ void fill(float *out) { Tuple<4> t = {{1, 2, 3, 4}}; out[threadIdx.x] = t.at[threadIdx.x % 4]; }
END2
cat >"$tmp/named.json" <<'END2'
{"files": "named.cu", "language": "cuda", "sizes": {"N": 64}, "parameters": {"WG": [64]},
 "arguments": [{"name": "out", "type": "float", "shape": "N", "access": "out"}],
 "launch": {"kernel": "fill", "groups": 1, "local": "WG"}}
END2
"$FOREWARP" emit "$tmp/named.json" >"$tmp/named.out"
grep -q "define WG 64" "$tmp/named.out" && ! grep -q "define N " "$tmp/named.out" &&
    ok "a template's parameter is no size" || not_ok "a template's parameter is no size" "$(head -20 "$tmp/named.out")"

# Atomic counters in local memory whose length depends on a parameter; the rate is best.
passes "counts are tuned" "$FOREWARP" tune $foreign/counts.json --strategy exhaustive --budget 20t \
    --store "$tmp/rows.db" --out "$tmp/out" --json "$tmp/counts.json" -q
holds "counts are right" "$tmp/counts.json" 'j["trials"]["ok"] + j["trials"]["timed-out"] == 12'

# A file beside the problem file is included, and what is in it counts.
cat >"$tmp/beside.h" <<'END2'
#define ADD 1
END2
cat >"$tmp/beside.cl" <<'END2'
#include "beside.h"
kernel void fill(global int *out) { out[get_global_id(0)] = get_global_id(0) + ADD; }
END2
cat >"$tmp/beside.c" <<'END2'
#include "beside.h"
void expect(int *out)
{
    for (int i = 0; i < 64; i++)
        out[i] = i + ADD;
}
END2
problem() {
    cat >"$tmp/beside.json" <<END2
{"files": "beside.cl", "parameters": {"WG": [1, 2]}, "arguments": [$1],
 "launch": {"kernel": "$2", "global": 64, "local": "WG"}, "reference": {"c": "beside.c", "function": "expect"}}
END2
}
out='{"name": "out", "type": "int", "shape": 64, "access": "out"}'
problem "$out" fill
passes "a file is included" "$FOREWARP" run "$tmp/beside.json" --check
echo '#define ADD 2' >"$tmp/beside.h"
passes "and read again" "$FOREWARP" run "$tmp/beside.json" --check

# Constraints have the meaning that Python gives them: points are counted by its eval.
passes "expressions as Python has them" "$PYTHON" -W ignore test/cli/expressions.py "$tmp" 25

# The point that is the reference may be one that --where leaves out.
cat >"$tmp/where.cl" <<'END2'
kernel void fill(global int *out) { out[get_global_id(0)] = get_global_id(0) * VALUE; }
END2
cat >"$tmp/where.json" <<'END2'
{"files": "where.cl", "parameters": {"VALUE": [1], "WG": [1, 2, 4]},
 "arguments": [{"name": "out", "type": "int", "shape": 64, "access": "out"}],
 "launch": {"kernel": "fill", "global": 64, "local": "WG"}}
END2
passes "--where without a reference" "$FOREWARP" tune "$tmp/where.json" --where 'WG in {2, 4} and not WG & 1' \
    --strategy exhaustive --budget 9t --store "$tmp/rows.db" --out "$tmp/out" --json "$tmp/where.out" -q
holds "two points are right" "$tmp/where.out" 'j["trials"]["ok"] + j["trials"]["timed-out"] == 2'

# Contents by expression and from bytes; nothing compared, on request.
"$PYTHON" -c 'import sys; open(sys.argv[1], "wb").write(bytes(range(64)))' "$tmp/bytes"
cat >"$tmp/fills.cl" <<'END2'
kernel void fills(global const int *a, global const uchar *b, global int *out)
{
    int i = get_global_id(0);
    out[i] = a[i] + b[i];
}
END2
fills() { # EXPRESSION [REFERENCE]
    cat >"$tmp/fills.json" <<END2
{"files": "fills.cl", "parameters": {"WG": [1, 2]},
 "arguments": [{"name": "a", "type": "int", "shape": 64, "fill": {"expression": "$1"}},
               {"name": "b", "type": "uchar", "shape": 64, "fill": {"raw": "bytes"}},
               {"name": "out", "type": "int", "shape": 64, "access": "out"}],
 "launch": {"kernel": "fills", "global": 64, "local": "WG"}, "reference": ${2:-"\"none\""}}
END2
}
fills "i // 2 if i % 2 == 0 else -i"
passes "contents by expression, unchecked" "$FOREWARP" tune "$tmp/fills.json" --strategy exhaustive --budget 9t \
    --store "$tmp/rows.db" --out "$tmp/out" --json "$tmp/fills.out" -q
holds "which the result says" "$tmp/fills.out" '"NOT checked" in j["reference"]'
passes "and as an array" "$FOREWARP" run "$tmp/fills.json" -o "$tmp/fills.npy"
passes "with the right numbers" "$PYTHON" -c 'import sys, numpy as np
want = [i + (i // 2 if i % 2 == 0 else -i) for i in range(64)]
assert np.load(sys.argv[1]).tolist() == want' "$tmp/fills.npy"
fills "i +"
fails 2 "arguments[0].fill.expression" "$FOREWARP" run "$tmp/fills.json"
fills "i" '{"values": {"out": {"expression": "2 * i"}}}'
passes "a reference by expression" "$FOREWARP" run "$tmp/fills.json" --check
fills "i" '{"values": {"out": {"expression": "2 * i + (i == 63)"}}}'
fails 1 "element 63 is 126, must be 127" "$FOREWARP" run "$tmp/fills.json" --check
sed 's/"access": "out"/&, "tolerance": {"elements": 1}/' "$tmp/fills.json" >"$tmp/spared.json"
passes "of which an element may be wrong" "$FOREWARP" tune "$tmp/spared.json" --strategy exhaustive --budget 9t \
    --store "$tmp/rows.db" --out "$tmp/out" --json "$tmp/spared.out" -q
holds "which the result says" "$tmp/spared.out" '"1 of 64 elements of `out` may be wrong" in j["reference"]'
fills "i" '{"values": {"out": {"expression": "2 * i + (i > 61)"}}}'
sed 's/"access": "out"/&, "tolerance": {"elements": 1}/' "$tmp/fills.json" >"$tmp/spared.json"
fails 1 "so are 2; 1 may be" "$FOREWARP" run "$tmp/spared.json" --check
fills "-i" '{"values": {"out": 0}}'
passes "a reference by a number" "$FOREWARP" run "$tmp/fills.json" --check
fills "-i" '{"values": {"out": "random"}}'
fails 2 "reference.values.out: expected a number" "$FOREWARP" run "$tmp/fills.json" --check
fills "-i" '{"values": {"a": 0}}'
fails 2 'reference.values.a: there is no output `a`' "$FOREWARP" run "$tmp/fills.json" --check

# T1 says what outputs hold, and how far they may be off, in its reference arguments.
expected() { # EXPRESSION THRESHOLD METHOD TARGET
    "$PYTHON" - "$@" >"$tmp/expected.json" <<'END2'
import json, os, sys
expression, threshold, method, target = sys.argv[1:]
problem = json.load(open("test/programs/templates/t1.json"))
kernel = problem["KernelSpecification"]
kernel["KernelFile"] = os.path.abspath("test/programs/templates/t1.cl")
kernel["Arguments"][1].update(FillType="Generator", DataSource="i % 7")
kernel["ReferenceArguments"] = [
    {"Name": "expected", "TargetName": target, "FillType": "Generator", "DataSource": expression,
     "ValidationMethod": method, "ValidationThreshold": float(threshold)}]
print(json.dumps(problem))
END2
}
sized() { # SIZE
    "$PYTHON" - "$1" >"$tmp/sized.json" <<'END2'
import json, os, sys
problem = json.load(open("test/programs/templates/t1.json"))
kernel = problem["KernelSpecification"]
kernel["KernelFile"] = os.path.abspath("test/programs/templates/t1.cl")
kernel["ProblemSize"] = [sys.argv[1]]
print(json.dumps(problem))
END2
}
sized "2**10 - 24"
passes "the size of a T1 problem by a text" "$FOREWARP" check "$tmp/sized.json"
sized "1000 / 3"
fails 2 "ProblemSize[0]: expected a whole number" "$FOREWARP" check "$tmp/sized.json"
sized "nothing * 2"
fails 2 "nothing" "$FOREWARP" check "$tmp/sized.json"
expected "(i % 7) * 2.5" 0 SideBySideComparison out
passes "T1 with the expected numbers" "$FOREWARP" run "$tmp/expected.json" --check
expected "(i % 7) * 2.5 + 0.01" 0.02 SideBySideComparison out
passes "that may be off by an absolute bound" "$FOREWARP" run "$tmp/expected.json" --check
expected "(i % 7) * 2.5 + 0.01" 0.02 SideBySideRelativeComparison out
fails 1 "element 0 is 0, must be 0.00999" "$FOREWARP" run "$tmp/expected.json" --check
expected "(i % 7) * 2.5 + (i < 3)" 0 SideBySideComparison out
fails 1 "element 0 is 0, must be 1" "$FOREWARP" run "$tmp/expected.json" --check
sed 's/"Name": "out"/"tolerance": {"elements": 3}, &/' "$tmp/expected.json" >"$tmp/spared.json"
passes "of which some may be wrong" "$FOREWARP" run "$tmp/spared.json" --check
expected "i" 0 SideBySideComparison in
fails 2 'ReferenceArguments[0]: TargetName: there is no output `in`' "$FOREWARP" check "$tmp/expected.json"

# A kernel that takes other arguments than it is passed does not run.
number='{"name": "n", "type": "int", "value": 1}'
problem "$out, $number" fill
fails 1 "fill: the kernel takes 1 arguments, but 2 are passed" "$FOREWARP" run "$tmp/beside.json"
problem "$number" fill
fails 1 "fill: argument 1 is not of the kernel's type" "$FOREWARP" run "$tmp/beside.json"

# Structs of numbers of one type are compared as numbers: order decides their rounding. Of
# an output whose length depends on a parameter a part is compared.
cat >"$tmp/complex.cl" <<'END2'
typedef struct { float re, im; } Complex;
kernel void sums(global const Complex *in, global Complex *out)
{
    for (int k = 0; k < EACH; k++)
        out[k].re = out[k].im = 0;
    for (int i = 0; i < N; i++) {
        out[i % EACH].re += in[i].re;
        out[i % EACH].im += in[i].im;
    }
    for (int k = 1; k < EACH; k++) {
        out[0].re += out[k].re;
        out[0].im += out[k].im;
    }
}
END2
cat >"$tmp/complex.json" <<'END2'
{"files": "complex.cl", "sizes": {"N": 999}, "parameters": {"EACH": "[2**k for k in range(7) if k % 2 == 0]"},
 "constraints": "EACH < 64",
 "arguments": [{"name": "in", "type": ["float", "float"], "shape": "N"},
               {"name": "out", "type": ["float", "float"], "shape": "EACH", "access": "out", "check": "i < 2"}],
 "launch": {"kernel": "sums", "global": 1, "local": 1}}
END2
passes "a part of an output that grows" "$FOREWARP" tune "$tmp/complex.json" --strategy exhaustive --budget 9t \
    --store "$tmp/rows.db" --out "$tmp/out" --json "$tmp/complex.out" -q
holds "three are right" "$tmp/complex.out" 'j["trials"]["ok"] + j["trials"]["timed-out"] == 3'

# The shared memory of a T1 file may be an expression.
sed 's/"SharedMemory": 0/"SharedMemory": "4 * block_size_x"/; s/"Language": "OpenCL"/"Language": "CUDA"/
     s,"KernelFile": ",&'"$PWD"'/test/programs/templates/,' test/programs/templates/t1.json >"$tmp/shared.json"
"$FOREWARP" emit "$tmp/shared.json" -p block_size_x=32 2>"$tmp/stderr" | grep -q "^//   .* shared 128 bytes" &&
    ok "shared memory by an expression" || not_ok "shared memory by an expression" "$(cat "$tmp/stderr")"

# What is wrong is said when the file is read.
sed -i 1d "$tmp/beside.cl"
problem "$out" fil
fails 2 'launch.kernel: the files have no kernel `fil`; did you mean `fill`' "$FOREWARP" check "$tmp/beside.json"
problem "$out" 'fill<int>'
fails 2 'cannot name a function' "$FOREWARP" check "$tmp/beside.json"
sed 's/"symbol": "[a-z]*"/"symbol": "nothing"/' $foreign/filter.json >"$tmp/filter.json"
cp $foreign/filter*.c* "$tmp"
fails 2 'the files have no variable `nothing`' "$FOREWARP" check "$tmp/filter.json"
cp $foreign/sort* "$tmp"
sed -i 's/{JOINED}/{XJOINED}/' "$tmp/sort.json"
fails 2 'options: there is no parameter or size `XJOINED`' "$FOREWARP" check "$tmp/sort.json"
problem '{"name": "p", "type": ["float", "int"], "value": [1]}' fill
fails 2 'arguments[0].value: expected 2 values, for `(float, int)`' "$FOREWARP" check "$tmp/beside.json"
problem '{"name": "p", "type": "float3", "shape": 3, "access": "out"}' fill
fails 2 'the fourth place' "$FOREWARP" check "$tmp/beside.json"
problem '{"name": "p", "type": "float", "shape": 3, "symbol": "p"}' fill
fails 2 "only CUDA has variables of a module" "$FOREWARP" check "$tmp/beside.json"
finish
