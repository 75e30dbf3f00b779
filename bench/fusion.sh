#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Fused scripts on a GPU: bench/fusion.sh [FOREWARP] >TABLE. Tunes the scripts of
# examples/fusion on DEVICE (cuda:0) and prints what each reaches; those of rows (atax,
# bicgk, ..) with rows of 32 x 33 words in place of 7 x 43, so that a warp has one. About 15 s a
# script, most of them for the routines' times, the reference and compiling.
set -u
fw=$(realpath "${1:-build/forewarp}")
cd "$(dirname "$0")/.." || exit 2
[ -x "$fw" ] || { echo "there is no $fw: make" >&2; exit 2; }
device=${DEVICE:-cuda:0}
temp=$(mktemp -d) || exit 2
trap 'rm -rf "$temp"' EXIT
export XDG_CACHE_HOME=$temp/cache XDG_DATA_HOME=$temp/data

run() { # script, instances, options
    script=$1 instances=$2
    shift 2
    echo "\$ forewarp tune $script -s T=$instances -d $device $*"
    (cd "$temp" && timeout 120 "$fw" tune "$script" -s T="$instances" -d "$device" -q "$@" 2>&1)
}

cp examples/fusion/*.fws "$temp"
sed -i 's/\[7\]/[32]/g; s/\[43\]/[33]/g' "$temp"/{sgemv,atax,bicgk,gesummv,gemvt,gemver}.fws
run paper.fws 1048576 --budget 40t --sample 60
run paper.fws 4194304 --budget 12t
for script in vadd waxpby sscal madd axpydot; do
    run $script.fws 67108864 --budget 12t
done
for script in sgemv atax bicgk gesummv gemvt gemver; do
    run $script.fws 131072 --budget 16t
done
