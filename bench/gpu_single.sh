#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Single sweeps of the stencils at the limit of a GPU's memory, found by tuning:
# bench/gpu_single.sh [FOREWARP] >TABLE. One row a program, size and device: the best time,
# its share of the copy kernel that the same run measured (both move each element once), G
# points a second, seconds of the whole run, its trials, the point.
#
#   GPUS     numbers of devices, with commas between, which share the rows (0); of OpenCL's
#            those count that are no PoCL, where there are any
#   KINDS    of devices: all rows of the first, some of the others ("cuda opencl")
#   BUDGET   seconds of search a row; reference and last measurements are added (12)
#   SIZES    in two dimensions (large: a second time; odd: rows that are never aligned) and in
#            three ("flat=8192 large=16384 odd=8191 deep=512")
#   ROWS     KIND PROGRAM SIZES a line, instead of those below; PROGRAM is an example or a file
#
# All 39 rows: 13 minutes of one H200, half of it on two. Without a GPU, to see that it works:
#   KINDS=opencl BUDGET=1 SIZES="flat=128 large=160 odd=99 deep=40" bench/gpu_single.sh
set -u
fw=$(realpath "${1:-build/forewarp}")
cd "$(dirname "$0")/.." || exit 2
[ -x "$fw" ] || { echo "there is no $fw: make" >&2; exit 2; }
budget=${BUDGET:-12} gpus=${GPUS:-0}
read -r first others <<<"${KINDS:-cuda opencl}"
flat=8192 large=16384 odd=8191 deep=512
for size in ${SIZES:-}; do declare "$size"; done
temp=$(mktemp -d) || exit 2
trap 'rm -rf "$temp"' EXIT
export fw budget temp XDG_CACHE_HOME=$temp/cache XDG_DATA_HOME=$temp/data
opencl=$("$fw" devices 2>/dev/null |
    awk '/^opencl/ { id = $1; getline; if (!/Portable Computing/) print id }' | xargs)
export opencl

planes="jacobi2d jacobi2d9 stencil2d srad1 srad2 hotspot2d gradient2d gaussian"
volumes="heat3d j3d7pt j3d27pt star3d1r star3d2r"
rows() {
    local kind p
    for p in $planes; do echo "$first $p N=$large,M=$large"; done
    for kind in $first $others; do
        for p in $volumes; do echo "$kind $p N=$deep,M=$deep,K=$deep"; done
        for p in $planes; do echo "$kind $p N=$flat,M=$flat"; done
    done
    for p in box2d_double cross2d_half; do
        echo "$first test/programs/$p.fw N=$flat,M=$flat"
    done
    echo "$first test/programs/star3d_double.fw N=$deep,M=$deep,K=$deep"
    for p in jacobi2d gaussian; do echo "$first $p N=$odd,M=$odd"; done
}

tune() { # number of the device, kind, program, sizes
    local device=$2:$1 name own gpus
    read -ra gpus <<<"$opencl"
    [ "$2" != opencl ] || device=${gpus[$1]:-$device}
    name=$(basename "$3" .fw) own=$temp/$2-$1
    [ -f "$3" ] || set -- "$1" "$2" "examples/$3.fw" "$4"
    timeout 120 "$fw" tune -q --fresh -b "${budget}s" -d "$device" -s "$4" -o "$own" \
        --store "$temp/store.db" --json "$own.json" "$3" >"$own.log" 2>&1 ||
        { echo "$device $name $4: not tuned: $(tail -n 1 "$own.log")"; return 1; }
    python3 - "$own.json" "$device" "$name" "$4" <<'END'
import json, math, sys
row, device, program, sizes = json.load(open(sys.argv[1])), *sys.argv[2:]
best = row["best"]["time_ns"]
points = math.prod(int(s.split("=")[1]) for s in sizes.split(","))
print("%-9s %-11s %-18s %8.1f us %5.1f %% of copy %6.1f G/s %5.1f s %5d trials  %s"
      % (device, program, sizes, best / 1e3, 100 * row["copy_ns"] / best, points / best,
         row["elapsed_s"], sum(row["trials"].values()), row["best"]["point"]))
END
}
export -f tune

echo "# $(date -u +%F), forewarp tune PROGRAM -s SIZES -d DEVICE -b ${budget}s"
"$fw" devices 2>/dev/null | sed "s/^/# /"
if [ -n "${ROWS:-}" ]; then echo "$ROWS"; else rows; fi |
    bench/deal "$gpus" bash -c 'tune "$@"' tune
