#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Time loops over stencils, found by the tuner from the plain programs and verified, against
# AN5D's tuned code (CGO 2020; its figures measured on an H200, float, 16384 x 16384 and
# 512 x 512 x 512, 480 steps, without transfers): a table on standard output.
#
#   bench/an5d.sh [DEVICE [BUDGET]]        cuda:0, 15s of search; FOREWARP names the program,
#                                          ROWS: PROGRAM THEIRS SIZES a line, instead of all
#
# Fewer steps than AN5D's, because the reference on the host does all of them: as many as
# the steps that a kernel may do divide. `seconds` is the whole run.
set -e
device=${1:-cuda:0}
budget=${2:-15s}
forewarp=${FOREWARP:-build/forewarp}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flat=N=16384,M=16384
deep=N=512,M=512,K=512
rows=${ROWS:-"j2d5pt 1548 $flat,T=40
star2d1r 1576 $flat,T=40
box2d1r 736 $flat,T=24
gradient2d_steps 1044 $flat,T=24
j2d9pt_gol 761 $flat,T=24
star3d1r 480 $deep,T=24
star3d2r 266 $deep,T=24
j3d27pt 285 $deep,T=24"}

printf '%-18s %12s %12s %6s %5s %9s  %s\n' program 'G points/s' 'AN5D' ratio steps seconds point
echo "$rows" | while read -r program theirs sizes; do
    start=$(date +%s)
    "$forewarp" tune "${EXAMPLES:-examples}/an5d/$program.fw" -s "$sizes" \
        -d "$device" -b "$budget" --store "$out/trials.db" -o "$out/$program" \
        >"$out/log" || { echo "$program: not tuned"; continue; }
    seconds=$(($(date +%s) - start))
    steps=${sizes##*T=}
    points=$(echo "$sizes" | tr , '\n' | sed 's/.*=//' | awk '{ n = NR == 1 ? $1 : n * $1 }
        END { printf "%.0f", n }')
    point=$(sed -n 's/^  point *//p' "$out/log" | tr ' ' '\n' |
        grep -E '^(lx|ly|by|fuse|cols|rows|warps)=' | tr '\n' ' ')
    sed -n 's/^  best *\([0-9.]*\) \([mu]*\)s .*/\1 \2/p' "$out/log" |
        awk -v p="$program" -v a="$theirs" -v n="$points" -v t="$steps" -v s="$seconds" \
            -v at="$point" \
            '{ g = n / $1 / ($2 == "m" ? 1e6 : $2 == "u" ? 1e3 : 1e9)
               printf "%-18s %12.0f %12d %6.2f %5d %9d  %s\n", p, g, a, g / a, t, s, at }'
done
"$forewarp" devices --measure -d "$device" 2>/dev/null | sed -n "s|.*measured: ||p"
