#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Single sweeps of the stencils at the limit of a GPU's memory, found by tuning:
# bench/gpu_single.sh [FOREWARP] >TABLE. One row a program, size and device: the best time,
# its share of the copy kernel that the same run measured (both move each element once), G
# points a second, seconds of the whole run, its trials, the point. BUDGET: seconds
# of search a row, the reference included (25); ROWS: DEVICE PROGRAM SIZES a line, instead
# of those below; PROGRAM is an example or a file.
set -u
fw=$(realpath "${1:-build/forewarp}")
cd "$(dirname "$0")/.." || exit 2
[ -x "$fw" ] || { echo "there is no $fw: make" >&2; exit 2; }
budget=${BUDGET:-25}
temp=$(mktemp -d) || exit 2
trap 'rm -rf "$temp"' EXIT
export XDG_CACHE_HOME=$temp/cache XDG_DATA_HOME=$temp/data

flat="jacobi2d jacobi2d9 stencil2d srad1 srad2 hotspot2d gradient2d gaussian"
deep="heat3d j3d7pt j3d27pt star3d1r star3d2r"
rows() {
    local device p
    for p in $flat; do echo "cuda:0 $p N=8192,M=8192"; done
    for p in $deep; do echo "cuda:0 $p N=512,M=512,K=512"; done
    for p in $flat; do echo "cuda:0 $p N=16384,M=16384"; done
    for p in $flat; do echo "${OPENCL:-opencl:0} $p N=8192,M=8192"; done
    for p in $deep; do echo "${OPENCL:-opencl:0} $p N=512,M=512,K=512"; done
}

tune() { # device, program, sizes
    local file=$2
    [ -f "$file" ] || file=examples/$2.fw
    timeout 120 "$fw" tune -q --fresh -b "${budget}s" -d "$1" -s "$3" -o "$temp/out" \
        --store "$temp/store.db" --json "$temp/row.json" "$file" \
        >"$temp/log" 2>&1 </dev/null || { tail -n 1 "$temp/log"; return 1; }
    python3 - "$temp/row.json" "$1" "$(basename "$2" .fw)" "$3" <<'END'
import json, math, sys
row, device, program, sizes = json.load(open(sys.argv[1])), *sys.argv[2:]
best = row["best"]["time_ns"]
points = math.prod(int(s.split("=")[1]) for s in sizes.split(","))
print("%-9s %-11s %-18s %8.1f us %5.1f %% of copy %6.1f G/s %5.1f s %5d trials  %s"
      % (device, program, sizes, best / 1e3, 100 * row["copy_ns"] / best, points / best,
         row["elapsed_s"], sum(row["trials"].values()), row["best"]["point"]))
END
}

echo "# $(date -u +%F), forewarp tune PROGRAM -s SIZES -d DEVICE -b ${budget}s"
"$fw" devices 2>/dev/null | sed "s/^/# /"
status=0
while read -r device program sizes; do
    tune "$device" "$program" "$sizes" || status=1
done < <(if [ -n "${ROWS:-}" ]; then echo "$ROWS"; else rows; fi)
exit $status
