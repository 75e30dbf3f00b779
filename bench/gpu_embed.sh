#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The CUDA doors of the library on a machine with a GPU and CUDA's toolkit: bench/gpu_embed.sh.
# Programs by `emit --host` against the same as plain C; the embedding example estimated,
# measured, by wisdom. One line each; exit status 1 if any begins with FAIL. What `make
# install PREFIX=..` put elsewhere is taken from the folder PREFIX; without it, it is made
# here. (Several GPUs: bench/gpu_scaling.sh.)
set -u
cd "$(dirname "$0")/.." || exit 2
cuda=${CUDA_HOME:-/usr/local/cuda}
temp=$(mktemp -d) || exit 2
trap 'rm -rf "$temp"' EXIT
prefix=${PREFIX:-$temp/fw}
[ -n "${PREFIX-}" ] || make install PREFIX="$prefix" >"$temp/log" 2>&1 || { tail -n 3 "$temp/log" >&2; exit 2; }
prefix=$(realpath "$prefix")
fw=$prefix/bin/forewarp
[ -x "$fw" ] || { echo "there is no $fw (PREFIX)" >&2; exit 2; }
export XDG_CACHE_HOME=$temp/cache XDG_DATA_HOME=$temp/data
export PATH=$prefix/bin:$PATH LD_LIBRARY_PATH=$prefix/lib:$cuda/lib64:${LD_LIBRARY_PATH-}

# host NAME FILE BUFFERS OUTPUT ARGS...
host() {
    local name=$1 file=$2 n=$3 output=$4 target bytes args flags
    shift 4
    args=$(seq -f 'b[%g]' 0 $((n - 1)) | paste -sd, -)
    for target in cuda c; do
        "$fw" emit "$file" --host -t $target -o "$temp/${name}_$target.c" "$@" || return 1
        bytes=$(sed -n 's/^#define \([A-Z0-9_]*_BYTES\).*/\1/p' "$temp/${name}_$target.h" | paste -sd, -)
        flags="-DOPENCL=0 -fopenmp"
        [ $target = c ] || flags="-DOPENCL=2 -isystem $cuda/include -L$cuda/lib64 -L$cuda/lib64/stubs -L$cuda/lib -L$cuda/lib/stubs -lcuda -lnvrtc"
        # shellcheck disable=SC2086
        cc -O2 -std=c99 -D_POSIX_C_SOURCE=200809L -I"$temp" -DHEADER="\"${name}_$target.h\"" \
            -DBYTES="$bytes" -DARGS="$args" -DNAME="${name}_$target" -DOUTPUT="$output" -o "$temp/${name}_$target" \
            "$temp/${name}_$target.c" test/host/run.c $flags -lm || return 1
        "$temp/${name}_$target" >"$temp/${name}_$target.out" || return 1
    done
    python3 -c 'import array, sys
a, b = (array.array("f", open(f, "rb").read()) for f in sys.argv[1:])
worst = max(abs(x - y) / max(abs(y), 1) for x, y in zip(a, b))
print("%d floats, largest relative difference %.2g" % (len(a), worst))
sys.exit(len(a) != len(b) or worst > 1e-5)' "$temp/${name}_cuda.out" "$temp/${name}_c.out"
}

try() { # NAME COMMAND...
    local name=$1 out word=ok
    shift
    out=$("$@" 2>&1 </dev/null) || word=FAIL
    printf '%-4s %-28s %s\n' $word "$name" "$(tr '\n' ' ' <<<"$out")"
}

# Without pkg-config, which would want the headers of all that the library is made with.
embed() {
    cp -r examples/embed "$temp/" || return 1
    make -s -C "$temp/embed" CUDA="$cuda" FLAGS="-I$prefix/include" LIBS="-L$prefix/lib -lforewarp" \
        cuda driver 2>"$temp/made" || { cat "$temp/made"; return 1; }
}

{
    try "host jacobi2d" host jacobi2d examples/jacobi2d.fw 2 1 -s N=517,M=300 -p 'lx=32 by=4'
    try "host jacobi2d_steps" host jacobi2d_steps examples/jacobi2d_steps.fw 2 1 -s N=256,M=256,T=7
    try "host nbody" host nbody examples/nbody.fw 7 4 -s N=1000
    try "host normalise" host normalise test/programs/normalise.fw 2 1 -s N=5000
    try "embedding builds" embed
    cd "$temp/embed" || exit 2
    for what in "estimate 8192" "measure 8192" "wisdom 8192" "wisdom 4096"; do
        # shellcheck disable=SC2086
        try "embedded, $what" ./cuda $what
    done
    try "embedded, CUDA's driver" ./driver 4096
    cd - >/dev/null || exit 2
    echo "$((SECONDS)) s"
} | tee "$temp/log"
! grep -q '^FAIL' "$temp/log"
