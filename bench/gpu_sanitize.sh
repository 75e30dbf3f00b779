#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A sample of each family of kernels under compute-sanitizer, on a machine with an NVIDIA
# GPU: bench/gpu_sanitize.sh [-n] [FOREWARP]. Builds nothing. memcheck finds accesses out of
# bounds and misaligned ones, racecheck conflicting accesses of local memory, synccheck barriers
# that not all items reach. Prints one line for each kernel and tool, as soon as it is known, and
# then `N passed, N failed`; exit status 1 if any line begins with FAIL.
# JOBS: how many at a time.
# -n: only print the kernels, which needs no GPU and shows that the points are of the spaces.
set -u
tools="memcheck racecheck synccheck"
[ "${1:-}" != -n ] || { tools=emit; shift; }
fw=$(realpath "${1:-build/forewarp}")
cd "$(dirname "$0")/.." || exit 2
[ -x "$fw" ] || { echo "there is no $fw: make" >&2; exit 2; }
[ "$tools" = emit ] || command -v compute-sanitizer >/dev/null ||
    { echo "there is no compute-sanitizer: it is part of the CUDA toolkit" >&2; exit 2; }
temp=$(mktemp -d) || exit 2
trap 'rm -rf "$temp"' EXIT
export fw temp
export XDG_CACHE_HOME=$temp/cache XDG_DATA_HOME=$temp/data

# Family, program, sizes, point. Sizes that are no multiples of anything, and some that are,
# because only there accesses become vectors.
samples() {
    cat <<END
plain examples/jacobi2d.fw N=37,M=29
vectors examples/jacobi2d.fw N=64,M=256 lx=32 ly=4 bx=4 by=2 vec=4 border=split
vectors examples/gaussian.fw N=64,M=256 lx=32 ly=4 bx=4 by=4 vec=4 border=split
walk examples/gaussian.fw N=37,M=29 lx=8 ly=4 bx=2 by=2 walk=4 border=split
walk examples/j3d27pt.fw N=24,M=32,K=64 lx=16 ly=4 bx=4 by=2 vec=4 walk=4
walk examples/star3d2r.fw N=37,M=29,K=23 lx=16 ly=4 bx=2 by=2 walk=8
tiled examples/jacobi2d9.fw N=37,M=29 lx=8 ly=8 bx=2 by=2 scheme=tiled
tiled examples/heat3d.fw N=37,M=29,K=23 lx=8 ly=4 lz=2 by=2 scheme=tiled
several-inputs examples/srad2.fw N=37,M=29 lx=16 ly=4 by=2 walk=4
mirror examples/blur_mirror.fw N=37,M=29 lx=8 ly=4 bx=2 by=2 walk=4
wrap examples/advect2d.fw N=37,M=29 lx=8 ly=4 by=2 walk=4
constant examples/heat2d_dirichlet.fw N=37,M=29 lx=8 ly=4 bx=2 by=2 walk=4
reduction examples/dot.fw N=12347
reduction examples/gemv.fw N=37,M=29
reduction examples/dot.fw N=65536 lx=256 lanes=4 groups=16
reduction examples/gemv.fw N=37,M=4099 lx=256 lanes=4 fold=group
scan examples/prefix.fw N=37
matrix examples/mm.fw N=37,M=29,K=23
matrix examples/mm.fw N=256,M=384,K=64 product=blocks lx=16 ly=16 bx=4 by=4 cx=2 cy=2 vec=4 stage=16 load=ahead tiles=unroll resident=2
matrix examples/mm.fw N=200,M=130,K=48 product=blocks lx=16 ly=8 bx=4 by=4 cx=1 cy=1 vec=4 stage=8 load=now tiles=loop resident=0
layout examples/transpose.fw N=37,M=29 lx=8 ly=4 by=2
double test/programs/box2d_double.fw N=37,M=29 lx=8 ly=4 bx=2 by=2 walk=4
stream examples/an5d/j2d5pt.fw N=300,M=290,T=4 lx=32 ly=1 fuse=2 cols=4 rows=64 warps=16
stream examples/wave2d.fw N=150,M=170,T=6 lx=32 ly=1 fuse=3 cols=2 rows=64 warps=16
stream examples/an5d/star3d1r.fw N=30,M=41,K=140,T=4 lx=32 ly=8 lz=1 by=2 fuse=2 cols=2 rows=64 warps=16
stream examples/an5d/j3d27pt.fw N=30,M=41,K=140,T=4 lx=32 ly=8 lz=1 by=2 fuse=2 cols=2 rows=64 warps=16
keys test/programs/means_by_key.fw N=12347
keys test/programs/means_by_key.fw N=12347 lx=64 keys=group
half test/programs/cross2d_half.fw N=37,M=29 lx=8 ly=4 bx=2 by=2 walk=4
END
}

# A worker is ended before the tool's summary, so errors are counted as they are printed;
# the tool's first line shows that it ran.
try() { # tool, family, program, sizes, point
    local out word=ok n
    out=$(timeout 120 compute-sanitizer --tool "$1" --target-processes all --report-api-errors no \
        "$fw" run --check -d cuda:0 -s "$4" ${5:+-p "$5"} "$3" 2>&1 </dev/null) || word=FAIL
    n=$(grep -c -E 'Invalid|Misaligned|Program hit|Race reported|Barrier error|Divergent thread|[1-9][0-9]* hazard' <<<"$out")
    [ "$n" = 0 ] || word=FAIL
    grep -q 'COMPUTE-SANITIZER' <<<"$out" || word=FAIL
    printf '%-4s %-9s %-14s %s %s %s: %s reports; %s\n' $word "$1" "$2" \
        "$(basename "$3" .fw)" "$4" "${5:-(plain)}" "$n" \
        "$(grep -v '^=========' <<<"$out" | tail -n 1 | sed 's/.*us, //')"
}

only_emit() { # emit, family, program, sizes, point
    local word=ok
    "$fw" emit --target cuda -s "$4" ${5:+-p "$5"} "$3" >/dev/null 2>"$temp/$$" || word=FAIL
    printf '%-4s %-14s %s %s %s %s\n' $word "$2" "$(basename "$3" .fw)" "$4" "${5:-(plain)}" \
        "$(cat "$temp/$$")"
}
export -f try only_emit
[ "$tools" = emit ] && try=only_emit || try=try

samples | while read -r family program sizes point; do
    for tool in $tools; do
        printf '%s\0%s\0%s\0%s\0%s\0' $tool "$family" "$program" "$sizes" "$point"
    done
done | xargs -0 -n 5 -P "${JOBS:-8}" bash -c "$try"' "$@"' try | tee "$temp/log"
failed=$(grep -c '^FAIL' "$temp/log")
echo "$(grep -c '^ok' "$temp/log") passed, $failed failed"
[ "$failed" = 0 ]
