# Wrong commands and texts end with status 2, a failing world with 1, and the message says
# what and where. Nothing that was there is damaged.
. test/cli/common
jacobi=examples/jacobi2d.fw
sizes="-s N=32,M=32"

program() { printf '%s\n' "$2" >"$tmp/$1.fw"; }
program syntax 'size N
def f(a: [N]float): [N]float =
  map(\x -> x + , a)'
fails 2 "syntax.fw:3:17: error" "$FOREWARP" check "$tmp/syntax.fw"
grep -q '^  *^' "$tmp/stderr" && ok "a caret" || not_ok "a caret"
program type 'size N
def f(a: [N]float): [N]float = map(\x -> x + true, a)'
fails 2 "type.fw:2:42: error" "$FOREWARP" check "$tmp/type.fw"
program shape 'size N
def f(a: [N]float): [N]float = slide(3, 1, a)'
fails 2 "shape.fw:2:" "$FOREWARP" check "$tmp/shape.fw"
# What is no text is shown without its control characters, and carets stand below what they mean.
printf 'size N\r\ndef f(a: [N]float) = \033[31m\007\r\n' >"$tmp/control.fw"
fails 2 "control.fw:2:" "$FOREWARP" check "$tmp/control.fw"
LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" "$tmp/stderr" && not_ok "control characters" || ok "no control characters"
# Nor does what others named command the terminal: files, words of the command, JSON, C1
# controls, what turns the direction of writing, what is no UTF-8.
clean() {
    name=$1
    shift
    "$@" >"$tmp/stdout" 2>&1 </dev/null
    [ $? -le 2 ] && [ -s "$tmp/stdout" ] && ! LC_ALL=C grep -q "$dirt" "$tmp/stdout" &&
        ok "no commands in $name" || not_ok "no commands in $name" "$*"
}
dirt=$(printf '[\001-\010\013-\037\177]\\|\302\233\\|\342\200\256\\|\377')
bad=$(printf '\033[31m\302\233m\342\200\256\377')
printf 'size N\ndef f(a: [N]float) = map(sqrt, b)\n' >"$tmp/$bad.fw"
printf '%s\n' '{"cache": {}, "tune_params_keys": ["\u001b[31m\u202e"]}' >"$tmp/$bad.json"
clean "a name of a file" "$FOREWARP" check "$tmp/$bad.fw"
clean "a name of nothing" "$FOREWARP" tune "$tmp/$bad"
clean "a command" "$FOREWARP" "$bad"
clean "an argument" "$FOREWARP" check $jacobi "$bad"
clean "a parameter" "$FOREWARP" emit $jacobi -s N=8,M=8 -p "$bad=1"
clean "a problem" "$FOREWARP" check "$tmp/$bad.json"
clean "a recorded space" "$FOREWARP" replay "$tmp/$bad.json"
sed 's/"WX"/"W\\u001bX"/' templates/transpose.json >"$tmp/escape.json"
clean "a key" "$FOREWARP" check "$tmp/escape.json"
sed 's/"kernel": "transpose"/"kernel": "a\\u001b[1m\\n\\u202e"/; s|"transpose|"'"$PWD"'/templates/transpose|' templates/transpose.json >"$tmp/name.json"
clean "the head of a kernel" "$FOREWARP" emit "$tmp/name.json" -s H=64,W=64
program column 'size N
fun f(x: float): float = c"é" x'
fails 2 "column.fw:2:" "$FOREWARP" check "$tmp/column.fw"
[ "$(grep '^ *^' "$tmp/stderr")" = "$(printf '%34s^' '')" ] && ok "a caret after UTF-8" || not_ok "a caret after UTF-8"
program empty ''
fails 2 "error" "$FOREWARP" check "$tmp/empty.fw"
head -c 4096 /dev/urandom >"$tmp/noise.fw"
fails 2 "error" "$FOREWARP" check "$tmp/noise.fw"
fails 2 "No such file" "$FOREWARP" check "$tmp/absent.fw"
fails 2 "cannot read" "$FOREWARP" check "$tmp"

# Nothing is read or expanded without an end, and a small stack limits nothing.
printf '#!/bin/sh\nulimit -s 64\nexec "$@"\n' >"$tmp/shallow"
chmod +x "$tmp/shallow"
fails 2 "more than 16 MiB, the most that is read of such a file" "$FOREWARP" check /dev/zero
fails 2 "more than 16 MiB" "$FOREWARP" emit $jacobi -s N=8,M=8 --derivation /dev/zero
fails 2 "more than 16 MiB" "$FOREWARP" wisdom import /dev/zero
fails 1 "more than 256 MiB" "$FOREWARP" replay /dev/zero
fails 2 "not a .npy file" "$FOREWARP" run $jacobi -s N=32,M=32 --in a=/dev/zero
mkfifo "$tmp/pipe"
fails 2 "nothing comes out of it" "$FOREWARP" check "$tmp/pipe"
{
    echo "size N"
    echo "fun f0(x: float): float = x + x"
    i=0
    while [ $i -lt 40 ]; do
        i=$((i + 1))
        echo "fun f$i(x: float): float = f$((i - 1))(x) + f$((i - 1))(x)"
    done
    echo "def f(a: [N]float) = map(f40, a)"
} >"$tmp/doubled.fw"
fails 2 "error T025" "$FOREWARP" emit "$tmp/doubled.fw" -s N=8
views() {
    printf 'size N\ndef f(a: [N]float) = a'
    i=0
    while [ $i -lt "$1" ]; do
        i=$((i + 1))
        printf ' |> %s' "$2"
    done
    printf ' |> map(sqrt)\n'
}
views 40 'gather(\i -> (i*i + i) % N)' >"$tmp/gathers.fw"
fails 2 "error L022" "$FOREWARP" emit "$tmp/gathers.fw" -s N=64
views 100 'pad(1, 1, clamp)' >"$tmp/pads.fw"
passes "a hundred borders" timeout 60 "$FOREWARP" emit "$tmp/pads.fw" -s N=64
deep=$(printf '%0490d' 0)
program deep "size N
def f(a: [N]float) = map(\x -> $(echo "$deep" | tr 0 '(')x$(echo "$deep" | tr 0 ')'), a)"
passes "a small stack" "$tmp/shallow" "$FOREWARP" emit "$tmp/deep.fw" -s N=8
program deeper "def f(x: float) = $(echo "$deep$deep" | tr 0 '(')x"
fails 2 "error P010" "$tmp/shallow" "$FOREWARP" check "$tmp/deeper.fw"

fails 2 "size M has no value" "$FOREWARP" run $jacobi -s N=10
program deep "def f(x: $(printf '[1]%.0s' $(seq 40))float) = x"
fails 2 "40 dimensions; a .npy file has at most 32" "$FOREWARP" run "$tmp/deep.fw" -o "$tmp/deep.npy"
echo >"$tmp/no.npy"
fails 2 "40 dimensions; a .npy file has at most 32" "$FOREWARP" run "$tmp/deep.fw" --in "x=$tmp/no.npy"
# A generic size may stay open in the text of a kernel, and in a C program, only.
program generic 'size N, K generic
def f(a: [N][K]float): [N][K]float = map2(\x -> 2*x, a)'
for command in tune run features predict explore fuse "emit --best"; do
    # shellcheck disable=SC2086
    fails 2 "generic.fw:1:9: error T021: size K has no value" "$FOREWARP" $command "$tmp/generic.fw" -s N=8
done
passes "the text of a kernel with a size open" "$FOREWARP" emit "$tmp/generic.fw" -s N=8
passes "a C program with a size open" "$FOREWARP" emit --host -o "$tmp/generic.c" "$tmp/generic.fw" -s N=8
echo 'kernel void k(global float *out, global const float *a) { out[0] = a[0]; }' >"$tmp/generic.cl"
echo '{"files": "generic.cl", "parameters": {"A": [1]}, "launch": {"kernel": "k", "global": ["64"], "local": ["8"]},
"arguments": [{"name": "out", "type": "float", "shape": ["8", "8"], "access": "out"}, {"name": "a", "type": "float", "shape": ["8", "8"]}],
"reference": {"fw": "generic.fw"}}' >"$tmp/generic.json"
fails 2 "generic.fw:1:6: error T021: size N has no value" "$FOREWARP" run "$tmp/generic.json" --check
fails 2 "must be from 1" "$FOREWARP" run $jacobi -s N=0,M=4
fails 2 "not -3" "$FOREWARP" run $jacobi -s N=-3,M=4
fails 2 "2^40" "$FOREWARP" run $jacobi -s N=1000000000,M=1000000000
fails 1 "memory" "$FOREWARP" run $jacobi -s N=1000000,M=1000000
fails 2 "no size \`K\`" "$FOREWARP" run $jacobi -s N=4,M=4,K=4
fails 2 "given twice" "$FOREWARP" run $jacobi -s N=4,M=4,N=5
fails 2 "NAME=VALUE" "$FOREWARP" run $jacobi -s N=x
fails 2 "NAME=VALUE" "$FOREWARP" run $jacobi -s N
fails 2 "whole numbers: \`N=1e3\`" "$FOREWARP" run $jacobi -s N=1e3,M=4
passes "sizes apart by blanks" "$FOREWARP" emit $jacobi -s 'N=8, M=9'
grep -q "N = 8, M = 9" "$tmp/stdout" && ok "are all taken" || not_ok "are all taken"
program rows 'size N
def f(a: [N]float) = a |> split(4) |> map(map(sqrt)) |> join'
fails 2 "divisible by 4" "$FOREWARP" run "$tmp/rows.fw" -s N=10

# shellcheck disable=SC2086
fails_run() {
    status=$1 text=$2
    shift 2
    fails "$status" "$text" "$FOREWARP" run $jacobi $sizes "$@"
}
if "$PYTHON" - "$tmp" <<'END'
import sys
import numpy as np
folder = sys.argv[1]
np.save(folder + "/shape.npy", np.zeros((32, 31), np.float32))
np.save(folder + "/flat.npy", np.zeros(32 * 32, np.float32))
np.save(folder + "/type.npy", np.zeros((32, 32), np.int32))
np.save(folder + "/order.npy", np.asfortranarray(np.zeros((32, 32), np.float32)))
good = folder + "/good.npy"
np.save(good, np.zeros((32, 32), np.float32))
open(folder + "/short.npy", "wb").write(open(good, "rb").read()[:-4])
END
then
    for file in shape flat type short; do
        fails_run 2 "$file.npy" --in "a=$tmp/$file.npy"
    done
    fails_run 2 "no input \`b\`" --in "b=$tmp/good.npy"
    fails_run 2 "input \`a\` is given twice" --in "a=$tmp/good.npy" --in "a=$tmp/good.npy"
    fails_run 2 "in Fortran order" --in "a=$tmp/order.npy"
fi
printf 'not an array' >"$tmp/text.npy"
fails_run 2 "text.npy" --in "a=$tmp/text.npy"
fails_run 1 "absent.npy" --in "a=$tmp/absent.npy"
fails_run 1 "opencl:9" --device opencl:9
fails_run 2 "a device is opencl:N" --device abacus
fails_run 2 "no parameter \`q\`" --point q=1
fails_run 2 "cannot be" --point lx=13
fails_run 1 "/absent/out.npy" -o /absent/out.npy
fails_run 2 "files for 1 outputs" -o "$tmp/1.npy" -o "$tmp/2.npy"
fails 2 "no target" "$FOREWARP" emit $jacobi -s N=8,M=8 --target fortran
fails 1 "opencl:9" "$FOREWARP" emit $jacobi -s N=8,M=8 --device opencl:9
fails 2 "no command" "$FOREWARP" tuna
fails 2 "Usage" "$FOREWARP"
fails 2 "PROGRAM is missing" "$FOREWARP" tune
fails 2 "unexpected argument" "$FOREWARP" check $jacobi extra
fails 2 "unexpected argument \`cuda:0\`; did you mean \`-d cuda:0\`?" "$FOREWARP" tune $jacobi cuda:0
fails 2 "did you mean \`-s N=64,M=64\`?" "$FOREWARP" tune $jacobi N=64,M=64
fails 2 "no help on \`slid\`; did you mean \`slide\`?" "$FOREWARP" help slid
fails 2 "no help on \`qqqqqqq\`; \`forewarp help\` lists" "$FOREWARP" help qqqqqqq
fails 2 "there is no option \`--wings\`" "$FOREWARP" check $jacobi --wings
fails 2 "no help" "$FOREWARP" help nonsense
fails 2 "no help" "$FOREWARP" help slide4
fails 1 "try -d" "$FOREWARP" run $jacobi -s N=8,M=8 --device opencl:9

# shellcheck disable=SC2086
fails_tune() {
    status=$1 text=$2
    shift 2
    fails "$status" "$text" "$FOREWARP" tune $jacobi $sizes -q --budget 3t "$@"
}
fails 2 "is written in cuda" "$FOREWARP" tune templates/convolution_cuda.json -d opencl:0 -q --budget 1t --store "$tmp/s.db" -o "$tmp/out"
fails_tune 2 "no strategy" --strategy oracle9 --store "$tmp/s.db" -o "$tmp/out"
[ ! -e "$tmp/s.db" ] && ok "nothing was tried" || not_ok "nothing was tried"
for budget in 5parsecs 0t 0s -1s infs 1e30t nanm t ''; do
    fails_tune 2 "a budget is 30s, 5m, 1h, 200t, 95% or quiet:50t, above 0: \`$budget\`" --budget "$budget"
done
fails 2 "a budget of calibrate is 30s" "$FOREWARP" calibrate -b 5t
fails_tune 2 "--samples takes a whole number from 1 to 32" --samples 0
fails 2 "--number takes a whole number from 1 to 10000000" "$FOREWARP" explore $jacobi -n 20000000
fails_tune 2 "-o is given twice" -o "$tmp/out" -o "$tmp/out2"
fails_tune 2 "--store takes the name of a file" --store ""
fails_tune 2 "--t4 takes the name of a file: \`-\`" --t4 -
fails_tune 2 "--cache takes the name of a file: \`-\`" --cache -
fails_run 2 "--out takes a name here: \`-\`" -o -
fails_tune 2 "whole number" --seed x
fails_tune 1 "opencl:9" --device opencl:9 --store "$tmp/s.db" -o "$tmp/out"
fails 1 "error C084" "$FOREWARP" tune $jacobi -s N=1000000,M=1000000 --store "$tmp/big.db" -o "$tmp/out"
grep -q reference "$tmp/stderr" && not_ok "too large: after the reference" || ok "too large: before the reference"
if "$FOREWARP" devices | grep -A1 '^opencl:0' | grep -q half; then
    echo "skip half: opencl:0 has it"
else
    printf 'size N\ndef h(x: [N]float) = map(\\a -> float(half(a)), x)\n' >"$tmp/half.fw"
    fails 1 "h N=9 computes in half, which" "$FOREWARP" run "$tmp/half.fw" -s N=9 -d opencl:0
    fails 1 "h N=9 computes in half, which" "$FOREWARP" explore --derived "$tmp/half.fw" -s N=9 -d opencl:0 -n 2 --csv "$tmp/half.csv"
fi
: >"$tmp/file"
fails_tune 1 "$tmp/file: Not a directory" --store "$tmp/s.db" -o "$tmp/file"
fails_tune 1 "$tmp/file/deep" --store "$tmp/s.db" -o "$tmp/file/deep"
fails_tune 1 "/proc/nowhere" --store "$tmp/s.db" -o /proc/nowhere
[ ! -e "$tmp/s.db" ] && ok "told before tuning" || not_ok "told before tuning"
fails_tune 1 "/proc/nowhere" --store /proc/nowhere/s.db -o "$tmp/out"
if [ "$(id -u)" != 0 ]; then
    mkdir "$tmp/locked"
    chmod 555 "$tmp/locked"
    fails_tune 1 "$tmp/locked" --store "$tmp/s.db" -o "$tmp/locked"
fi

head -c 20000 /dev/urandom >"$tmp/noise.db"
cp "$tmp/noise.db" "$tmp/noise.copy"
fails_tune 1 "noise.db: the file is not a store" --store "$tmp/noise.db" -o "$tmp/out"
cmp -s "$tmp/noise.db" "$tmp/noise.copy" && ok "noise unchanged" || not_ok "noise unchanged"
passes "a good store" "$FOREWARP" tune $jacobi -s N=32,M=32 -q --budget 9t --store "$tmp/good.db" -o "$tmp/out"
"$PYTHON" - "$tmp/good.db" "$tmp/bad.db" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[4096:] = bytes(b ^ 0x5a for b in data[4096:])
open(sys.argv[2], "wb").write(data)
END
cp "$tmp/bad.db" "$tmp/bad.copy"
fails_tune 1 "damaged" --store "$tmp/bad.db" -o "$tmp/out"
cmp -s "$tmp/bad.db" "$tmp/bad.copy" && ok "damaged store unchanged" || not_ok "damaged store unchanged"

if (: >/dev/full) 2>/dev/null; then
    sh -c "$FOREWARP emit $jacobi $sizes >/dev/full" 2>"$tmp/stderr"
    [ $? = 1 ] && grep -q "cannot write standard output" "$tmp/stderr" &&
        ok "a full standard output" || not_ok "a full standard output"
    for word in --version --help help; do
        sh -c "$FOREWARP $word >/dev/full" 2>"$tmp/stderr"
        [ $? = 1 ] && grep -q "cannot write standard output" "$tmp/stderr" &&
            ok "a full standard output of $word" || not_ok "a full standard output of $word"
    done
    fails 1 "/dev/full" "$FOREWARP" check $jacobi --json /dev/full/j
fi
mkdir "$tmp/small"
if mount -t tmpfs -o size=64k none "$tmp/small" 2>/dev/null; then
    trap 'umount "$tmp/small"; rm -rf "$tmp"' EXIT
    fails_tune 1 "disk is full" --budget 200t --store "$tmp/small/s.db" -o "$tmp/out"
    dd if=/dev/zero of="$tmp/small/fill" 2>/dev/null
    fails 1 "No space left" "$FOREWARP" emit $jacobi -s N=8,M=8 -o "$tmp/small/k.cl"
    [ ! -e "$tmp/small/k.cl" ] && ok "no half a file" || not_ok "no half a file"
else
    echo "skip full disk: no tmpfs can be mounted here"
fi
# What needs no reference is said before one is computed, here by a kernel of another language.
echo 'extern "C" __global__ void k(float *x) { x[0] = 1; }' >"$tmp/k.cu"
cat >"$tmp/k.json" <<'END'
{"files": "k.cu", "language": "cuda", "sizes": {"N": 4}, "parameters": {"B": [32, 64]},
 "arguments": [{"name": "x", "type": "float", "shape": "N", "access": "out"}],
 "launch": {"kernel": "k", "global": 64, "local": "B"},
 "reference": {"file": "k.cu", "kernel": "k", "global": 32, "local": 32}}
END
fails 2 "error J009" "$FOREWARP" tune "$tmp/k.json" -d opencl:0 -q --store "$tmp/s.db" -o "$tmp/out"
fails 2 "error J009" "$FOREWARP" run "$tmp/k.json" -d opencl:0 --check
fails 2 "did you mean \`genetic\`" "$FOREWARP" tune $jacobi -s N=8,M=8 --strategy genetik -o "$tmp/out"
fails 2 "there are opencl, cuda, hip, c" "$FOREWARP" emit $jacobi -s N=8,M=8 --target fortran
fails 2 "it can be 1, 2" "$FOREWARP" emit $jacobi -s N=8,M=8 -p lx=13
# A kernel for a GPU with the limits of a processor: said, but not where the GPU is named.
"$FOREWARP" emit $jacobi -s N=8,M=8 -d host -t cuda >"$tmp/stdout" 2>"$tmp/stderr"
[ $? = 0 ] && [ "$(grep -c 'warning C100: .*--device-model' "$tmp/stderr")" = 1 ] && ok "whose limits" ||
    not_ok "whose limits" "$(cat "$tmp/stderr")"
for device in "-d host" "-d opencl:0" "--device-model nvidia-h200 -t cuda"; do
    "$FOREWARP" emit $jacobi -s N=8,M=8 $device >"$tmp/stdout" 2>"$tmp/stderr"
    [ $? = 0 ] && ! [ -s "$tmp/stderr" ] && ok "no warning, $device" || not_ok "no warning, $device" "$(cat "$tmp/stderr")"
done
for word in help lx; do
    fails 2 "--point takes NAME=VALUE, not \`$word\`; the parameters of this program: lx, ly, " "$FOREWARP" emit $jacobi -s N=8,M=8 -p $word
done
passes "a parameter explained" "$FOREWARP" help -p lx
fails 2 "lx is given twice" "$FOREWARP" emit $jacobi -s N=8,M=8 -p 'lx=1 lx=2'
fails 2 "breaks the constraint \`TX % WX == 0\`" "$FOREWARP" run templates/transpose.json -s H=64,W=64 -p 'TX=8 WX=16'
fails 2 "did you mean \`tune\`" "$FOREWARP" tun
# One device is used, so two are a mistake, but where tune measures on all of them or a host
# program is for all of them.
two="$FOREWARP count $jacobi -s N=8,M=8"
fails 2 "count takes one device, and this is another: \`opencl:0\`" $two -d host -d opencl:0
fails 2 "count takes one device, and this is a list: \`host,opencl:0\`" $two -d host,opencl:0
fails 2 "--binary is not for use without --host" "$FOREWARP" emit $jacobi -s N=8,M=8 --binary
fails 2 "run takes one device" "$FOREWARP" run $jacobi -s N=8,M=8 -d host -d host
fails 2 "not \`moon\`" "$FOREWARP" tune $jacobi -s N=8,M=8 -d host -d moon -o "$tmp/out"
# A long option: what was meant, or whose it is; values are no options, nor is what follows --.
fails 2 "there is no option \`--strategi\`; did you mean \`--strategy\`?" "$FOREWARP" tune $jacobi --strategi random
fails 2 "there is no option \`--stroe\`; did you mean \`--store\`?" "$FOREWARP" tune $jacobi --stroe=x
fails 2 "there is no option \`--budget\`; it is an option of tune, calibrate, predict and replay" "$FOREWARP" check $jacobi --budget 3s
fails 2 "\`forewarp help tune\` lists the options" "$FOREWARP" tune $jacobi -qb 3s --zzzzzzzzzz
grep -q "did you mean" "$tmp/stderr" && not_ok "nothing is near" || ok "nothing is near"
fails 2 "cannot read --nothing" "$FOREWARP" emit $jacobi -s N=8,M=8 --derivation --nothing
fails 2 "cannot read --nothing" "$FOREWARP" emit $jacobi -s N=8,M=8 --deriv --nothing
fails 2 "--nothing" "$FOREWARP" check -- --nothing
passes "help before what is unknown" "$FOREWARP" tune --help --nothing
# An option that this use of a command has nothing to do with.
fails 2 "error C078: --extra is not for templates" "$FOREWARP" run templates/transpose.json --extra images
fails 2 "error C078: --features is not for an evaluation of loadings" \
    "$FOREWARP" eval loading data/stencils/pocl/loading.csv --features all
fails 2 "error C078: --repeat is not for a heuristic file" "$FOREWARP" replay x.json --strategy x.fwh --repeat 3
fails 2 "error C078: --sizes is not for strategies other than" "$FOREWARP" replay x.json -s N=3
fails 2 "error C078: --json is not for predictions" "$FOREWARP" predict $jacobi -s N=8,M=8 --points x.json --json "$tmp/j"
fails 1 "cannot read $tmp/absent.json" "$FOREWARP" predict $jacobi -s N=8,M=8 --model "$tmp/absent.json"
refused() {
    option=$1
    shift
    fails 2 "error C078: $option is not for" "$FOREWARP" "$@"
}
refused --model tune $jacobi -s N=8,M=8 --model m.json
refused --model tune $jacobi -s N=8,M=8 --strategy heuristics/hybrid.fwh --model m.json
refused --stages tune $jacobi -s N=8,M=8 --strategy random --stages 5,5
refused --loading tune templates/transpose.json --loading local
refused --any-device emit $jacobi -s N=8,M=8 --any-device
refused --store emit $jacobi -s N=8,M=8 --store s.db
refused --device emit $jacobi -s N=8,M=8 -d host --device-model nvidia-h200
refused --json fuse examples/fusion/vadd.fws --print library --json j
refused --device fuse examples/fusion/vadd.fws -d host
refused --sample explore $jacobi -s N=8,M=8 --sample 3
refused --number explore $jacobi -s N=8,M=8 -d host --again rows.csv -n 3
refused --device predict $jacobi -s N=8,M=8 --model w.json -d host
refused --seed fit linear rows.csv -o w.json --seed 3
for strategy in ranked predicted; do
    fails 2 "error C019" "$FOREWARP" tune templates/transpose.json --strategy $strategy --store "$tmp/s.db" -o "$tmp/out"
    grep -q reference "$tmp/stderr" && not_ok "$strategy: after the reference" || ok "$strategy: before the reference"
done
fails 2 "error C078: --out is not for export" "$FOREWARP" wisdom export -o "$tmp/w"
fails 2 "takes library, or program of a script: \`kernel\`" "$FOREWARP" fuse examples/fusion/paper.fws --print kernel
fails 1 "no worker can use the device opencl:99: the last OpenCL device is" "$FOREWARP" run $jacobi -s N=8,M=8 -d opencl:99
finish
