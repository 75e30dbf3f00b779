# forewarp emit --host: the programs it writes compile without warnings, also as strict C99,
# and OpenCL on PoCL and plain C compute the same; for CUDA they are compiled where its
# headers are.
. test/cli/common
tests=$PWD/test/host
cd "$tmp" || exit 1
warn="-std=c99 -Wall -Wextra -pedantic -Werror -D_POSIX_C_SOURCE=200809L"
cuda=${CUDA_HOME:-/usr/local/cuda}

# host STEM FILE TARGET ARGS...
host() {
    stem=$1 file=$2 target=$3
    shift 3
    passes "emit --host $stem for $target" "$FOREWARP" emit "$file" --host -t "$target" \
        -o "$stem.c" "$@"
}

# arguments STEM OUTPUT: for a call of its run: b[i] for a buffer, a number for a value; and the
# first output among the buffers.
arguments() {
    "$PYTHON" -c 'import re, sys
call = re.search(r"_run\(([^;]*)\);", open(sys.argv[1]).read().split("_open", 1)[-1].split("/* Puts")[-1]).group(1)
given = [p for p in call.split(", ") if not re.search(r" \*self$|queue$|stream$", p)]
is_buffer = [bool(re.search(r"void \*|cl_mem |CUdeviceptr ", p)) for p in given]
at = [f"b[{sum(is_buffer[:i])}]" if b else "0.75f" for i, b in enumerate(is_buffer)]
print(",".join(at), sum(is_buffer[:int(sys.argv[2])]))' "$1.h" "$2"
}

# run STEM BUFFERS OUTPUT OPENCL FLAGS: runs it into STEM.out
run() {
    stem=$1 made=$(arguments "$1" "$3") opencl=$4
    shift 4
    bytes=$(sed -n 's/^#define \([A-Z0-9_]*_BYTES\).*/\1/p' "$stem.h" | paste -sd, -)
    # shellcheck disable=SC2086
    passes "$stem compiles" cc $warn "$@" -I. -DHEADER="\"$stem.h\"" -DBYTES="$bytes" \
        -DARGS="${made% *}" -DNAME="$stem" -DOUTPUT="${made#* }" -DOPENCL="$opencl" \
        -DCL_USE_DEPRECATED_OPENCL_1_2_APIS -o "$stem" "$stem.c" "$tests/run.c" $LINK -lm
    "./$stem" >"$stem.out" 2>"$stem.err"
    status=$?
    if [ $status = 77 ]; then
        echo "skip $stem: no OpenCL device"
    elif [ $status = 0 ]; then
        ok "$stem runs"
    else
        not_ok "$stem runs" "status $status: $(cat "$stem.err")"
    fi
}

# same A B: the floats in the two files agree to 1e-5.
same() {
    "$PYTHON" -c 'import array, sys
a, b = (array.array("f", open(f, "rb").read()) for f in sys.argv[1:])
sys.exit(not (len(a) == len(b) > 0 and all(abs(x - y) <= 1e-5 * max(abs(y), 1) for x, y in zip(a, b))
              and len(set(a)) > 1))' "$1.out" "$2.out" && ok "$1 and $2 agree" || not_ok "$1 and $2 agree"
}

# compare NAME FILE BUFFERS OUTPUT POINT SIZES...
compare() {
    what=$1 file=$2 n=$3 output=$4 point=$5 fake=
    shift 5
    [ "$1" != fake ] || { fake=fake && shift; }
    LINK=-lOpenCL
    host "${what}_cl" "$file" opencl -p "$point" "$@"
    run "${what}_cl" "$n" "$output" 1
    LINK=
    host "${what}_c" "$file" c "$@"
    run "${what}_c" "$n" "$output" 0 -fopenmp -Wno-unknown-pragmas
    same "${what}_cl" "${what}_c"
    host "${what}_cu" "$file" cuda "$@"
    # Two libraries that play a GPU, for kernels of one dimension.
    LINK="fake.so"
    if [ ! -f "$cuda/include/cuda.h" ]; then
        echo "skip ${what}_cu: no cuda.h"
    elif [ "$fake" ]; then
        run "${what}_cu" "$n" "$output" 2 -isystem "$cuda/include" -Wl,-rpath,"$tmp"
        same "${what}_cu" "${what}_c"
    else
        # shellcheck disable=SC2086
        passes "${what}_cu compiles" cc $warn -isystem "$cuda/include" -c "${what}_cu.c"
    fi
}
cc -std=c11 -D_GNU_SOURCE -shared -fPIC -O1 -Wl,-soname,fake.so -o fake.so "$tests/../measure/fake_cuda.c" -ldl

compare jacobi2d "$examples/jacobi2d.fw" 2 1 'lx=32 by=4' -s N=96,M=64
compare hotspot2d "$examples/hotspot2d.fw" 3 2 'lx=16 ly=4' -s N=40,M=72
compare jacobi2d_steps "$examples/jacobi2d_steps.fw" 2 1 'lx=16' -s N=48,M=64,T=5
compare nbody "$examples/nbody.fw" 7 4 'lx=32' -s N=96
compare normalise "$OLDPWD/test/programs/normalise.fw" 2 1 '' -s N=500
compare scal "$examples/scal.fw" 3 2 'lx=32 bx=2' fake -s N=1000
cat >steps.fw <<'END'
size N
def steps(x: [N]float): [N]float = x |> iterate(3, \s -> s |> map(\v -> v + 1))
END
compare steps "$tmp/steps.fw" 2 1 'lx=64' fake -s N=777
# Names that the programs have use for.
cat >names.fw <<'END'
size N
def names(error: [N]float, i: [N]float, caller: [N]float, free: [N]float): [N]float =
  zip(error, i, caller, free) |> map(\a b c d -> a + b * (c - d))
END
compare names "$tmp/names.fw" 5 4 'lx=32' -s N=99

# Two sizes of a program in one program; the functions are named after the file.
host small "$examples/scal.fw" c -s N=100
host 2-large "$examples/scal.fw" c -s N=200
cat >both.c <<'END'
#include "2-large.h"
#include "small.h"
int main(void)
{
    float x[200] = {0}, y[200];
    x[99] = x[199] = 3;
    return !(small_run(2, x, y) && y[99] == 6 && fw_2_large_run(2, x, y) && y[199] == 6);
}
END
passes "two sizes link" cc $warn -Wno-unknown-pragmas -o both both.c small.c 2-large.c -lm
passes "and run" ./both

# A part of an array, at a distance of rows and an offset that the call says.
cat >part.fw <<'END'
size N, M, LD generic 1..65536, AT generic 1..65536
def part(a: [N][LD]float): [N][M]float =
  a |> transpose |> drop(AT) |> take(M) |> transpose |> map2(\v -> 2*v)
END
host part "$tmp/part.fw" c -s N=3,M=8,LD=64,AT=1
cat >parts.c <<'END'
#include "part.h"
int main(void)
{
    float a[300], out[24];
    int i, ok;
    for (i = 0; i < 300; i++)
        a[i] = (float)i;
    ok = part_run(100, 4, a, out) && part_run(100, 92, a, out) && !part_run(100, 93, a, out);
    for (i = 0; i < 24; i++)
        ok = ok && out[i] == 2 * a[100 * (i / 8) + 92 + i % 8];
    return !ok;
}
END
passes "a part compiles" cc $warn -Wno-unknown-pragmas -o parts parts.c part.c -lm
passes "and is where the call says" ./parts

# Two devices in one file: each takes its own kernels, compiled; a device that none is for takes
# what runs on it. The text, which is spoilt, is then needed by none.
LINK=-lOpenCL
export POCL_DEVICES="basic pthread"
if "$FOREWARP" devices 2>/dev/null | grep -q "^opencl:1"; then
    host two "$examples/jacobi2d.fw" opencl -s N=96,M=64 --binary -d opencl:0 -d opencl:1
    grep -q '^ \*   pthread.*: lx=' two.h && ok "the header has the points" || not_ok "the header has the points" "$(cat two.h)"
    sed -i 's/^    "float j5(/    "no text: j5(/' two.c
    for POCL_DEVICES in basic pthread; do
        run two 2 1 1
        same two jacobi2d_c
    done
    sed -i 's/^    {"\(basic\|pthread\)/    {"other/' two.c
    run two 2 1 1
    same two jacobi2d_c
    sed -i 's/^    \(-\{0,1\}[0-9]*\),/    1,/' two.c
    bytes=$(sed -n 's/^#define \([A-Z0-9_]*_BYTES\).*/\1/p' two.h | paste -sd, -)
    # shellcheck disable=SC2086
    passes "two compiles without its binaries" cc $warn -I. -DHEADER='"two.h"' -DBYTES="$bytes" -DARGS="b[0],b[1]" -DNAME=two \
        -DOUTPUT=1 -DOPENCL=1 -DCL_USE_DEPRECATED_OPENCL_1_2_APIS -o two two.c "$tests/run.c" -lOpenCL -lm
    fails 1 "open: " ./two
else
    echo "skip two devices in one file: no second device of PoCL"
fi
unset POCL_DEVICES
fails 2 "have one target: opencl and c need a file each" "$FOREWARP" emit "$examples/dot.fw" -s N=64 --host -o x.c -d opencl:0,host
fails 2 "one device without --host" "$FOREWARP" emit "$examples/dot.fw" -s N=64 -d opencl:0,host
fails 2 "does not take the target c" "$FOREWARP" emit "$examples/dot.fw" -s N=64 --host --binary -t c -o x.c
fails 2 "is compiled with the host program" "$FOREWARP" emit "$examples/dot.fw" -s N=64 --host --binary -d host -o x.c

LINK=-lOpenCL
host transpose "$OLDPWD/templates/transpose.json" opencl -s H=64,W=32
run transpose 2 1 1
"$PYTHON" - <<'END' && ok "a template transposes" || not_ok "a template transposes"
import array, sys
x = [((k * 7) % 61 + 1) / 8 for k in range(64 * 32)]
y = array.array("f", open("transpose.out", "rb").read())
sys.exit([y[j * 64 + i] for i in range(64) for j in range(32)] != x)
END
# Options and a text with all that a literal must not hold as it is.
mkdir q && cp "$OLDPWD"/templates/transpose* q
"$PYTHON" - <<'END'
import json
d = json.load(open("q/transpose.json"))
json.dump({**d, "options": ['-DTEXT="a\\b"']}, open("q/transpose.json", "w"))
END
sed -i '1i // a ??= b ??/' q/transpose.cl
host quoted "$tmp/q/transpose.json" opencl -s H=64,W=32
run quoted 2 1 1
cmp -s quoted.out transpose.out && ok "the quoted one is the same" || not_ok "the quoted one is the same"
# Names that are none in C, that mean something there, or are the same as macros; a comment's end
# and a line's in the point.
"$PYTHON" - <<'END'
import json
d = json.load(open("q/transpose.json"))
d["arguments"][0]["name"], d["arguments"][1]["name"] = "class", "a*/b\"\\\n ??/\n"
d["parameters"]["NOTE"] = ["*/ int x;", "x"]
json.dump(d, open("q/names.json", "w"))
d["launch"]["kernel"] = 'k"), abort();'
json.dump(d, open("q/kernel.json", "w"))
d["launch"]["kernel"] = "transpose"
d["reference"]["function"] = "f(); g"
json.dump(d, open("q/function.json", "w"))
END
sed -i '1i #undef NOTE' q/transpose.cl
host evil "$tmp/q/names.json" opencl -s H=64,W=32
run evil 2 1 1
cmp -s evil.out transpose.out && ok "whatever its names are" || not_ok "whatever its names are"
fails 2 "kernel.json: launch.kernel: " "$FOREWARP" emit "$tmp/q/kernel.json" --host -o kernel.c
fails 2 "function.json: reference.function: " "$FOREWARP" run "$tmp/q/function.json" --check
# Functions that the C library has, arguments apart by their case, and a function of the stem's.
cat >clash.fw <<'END'
size N
fun powl(x: float): float = x + 1
fun strtok(x: float): float = 2 * x
fun clash_run(x: float): float = powl(strtok(x))
def clash(a: [N]float, A: [N]float, virtual: [N]float): [N]float =
  zip(a, A, virtual) |> map(\a b c -> a + b * clash_run(c))
END
host clash "$tmp/clash.fw" c -s N=99
# shellcheck disable=SC2086
passes "clashing names compile" cc $warn -Wno-unknown-pragmas -c clash.c
grep -q "define FW_CLASH_A__BYTES" clash.h && ok "each its macro" || not_ok "each its macro" "$(cat clash.h)"
# A length that is divided: the macro of its bytes needs nothing but the header.
cat >pairs.fw <<'END'
size N generic
def pairs(a: [N]float) = a |> slide(3, 2) |> map(reduce(+, 0))
END
host pairs "$tmp/pairs.fw" c -s N=9
cat >bytes.c <<'END'
#include "pairs.h"
int main(void) { return PAIRS_OUT_BYTES(33) != 64 || PAIRS_OUT_BYTES(3) != 4; }
END
# shellcheck disable=SC2086
passes "bytes of divided lengths" sh -c "cc $warn -I. -o bytes bytes.c && ./bytes"
printf 'size N generic\ndef roots(a: [N]float) = map(sqrt, a)\n' >roots.fw
host roots "$tmp/roots.fw" c # a generic size needs no value
# shellcheck disable=SC2086
passes "without a size" cc $warn -Wno-unknown-pragmas -c roots.c
host clash_cl "$tmp/clash.fw" opencl -s N=99
# shellcheck disable=SC2086
passes "and of OpenCL" cc $warn -DCL_USE_DEPRECATED_OPENCL_1_2_APIS -c clash_cl.c
fails 2 "cannot be the name of a C file" "$FOREWARP" emit "$examples/dot.fw" -s N=64 --host -o 'a"b.c'
fails 2 "-o FILE.c" "$FOREWARP" emit "$examples/dot.fw" -s N=64 --host
fails 2 "--host cannot be combined with" "$FOREWARP" emit "$examples/dot.fw" -s N=64 --host --print expression -o x.c
command -v g++ >/dev/null && { passes "the header is C++" g++ -std=c++98 -pedantic -Werror -Wall -fsyntax-only \
    -x c++ jacobi2d_cl.h || :; }
finish
