#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Time loops over stencils, found by the tuner from the plain programs and verified, against
# AN5D's tuned code (CGO 2020; its figures measured on an H200, float, 16384 x 16384, 480
# steps, without transfers): a table on standard output.
#
#   bench/an5d.sh [DEVICE [BUDGET]]        cuda:0, 25s of search; FOREWARP names the program
set -e
device=${1:-cuda:0}
budget=${2:-25s}
forewarp=${FOREWARP:-build/forewarp}
size=16384
steps=48
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

printf '%-18s %12s %12s %6s %9s  %s\n' program 'G points/s' 'AN5D' ratio seconds point
while read -r program theirs; do
    start=$(date +%s)
    "$forewarp" tune "${EXAMPLES:-examples}/an5d/$program.fw" -s N=$size,M=$size,T=$steps \
        -d "$device" -b "$budget" --store "$out/trials.db" -o "$out/$program" >"$out/log"
    seconds=$(($(date +%s) - start))
    point=$(sed -n 's/^  point *//p' "$out/log" | tr ' ' '\n' |
        grep -E '^(lx|fuse|cols|rows|warps)=' | tr '\n' ' ')
    sed -n 's/^  best *\([0-9.]*\) ms.*/\1/p' "$out/log" |
        awk -v p="$program" -v a="$theirs" -v n=$size -v t=$steps -v s="$seconds" -v at="$point" \
            '{ g = n * n * t / $1 / 1e6
               printf "%-18s %12.0f %12d %6.2f %9d  %s\n", p, g, a, g / a, s, at }'
done <<END
j2d5pt 1548
star2d1r 1576
box2d1r 736
gradient2d_steps 1044
j2d9pt_gol 761
END
"$forewarp" devices --measure -d "$device" 2>/dev/null | sed -n "s|.*measured: ||p"
