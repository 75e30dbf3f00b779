#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Time loops over stencils in float and double, with exact borders, found by `tune` from the
# plain programs and verified: a table on standard output.
#
#   bench/time_loops.sh [DEVICES [BUDGET]]   cuda:0, 40s for the whole of each row; FOREWARP
#                                            names the program, ROWS: lines of the table below,
#                                            instead of all
#
# DEVICES: one, or several with commas between, which share the rows. A row: program, type,
# multiply-adds of a cell and step (0: only memory bounds it), bytes of a cell that a step
# reads and writes, sizes. `roof`: the share of the multiply-adds that the device reaches;
# `sweep`: times as fast as a step a kernel could be at the rate of a copy. Both ask the device
# (`devices --measure`). Others' programs are not run: their code is not here. Exit status 1 if
# a program was not tuned or not verified.
set -u
devices=${1:-cuda:0}
export budget=${2:-40s}
forewarp=$(realpath "${FOREWARP:-build/forewarp}")
cd "$(dirname "$0")/.." || exit 2
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
export forewarp out
flat=N=11616,M=11616,T=96
wide=N=8192,M=8192,T=48
deep=N=512,M=512,K=512,T=24
rows=${ROWS:-"an5d/star2d1r float 5 8 $flat
an5d/star2d1r double 5 16 $flat
an5d/j2d5pt float 6 8 $flat
an5d/j2d5pt double 6 16 $flat
an5d/box2d1r float 9 8 $flat
an5d/box2d1r double 9 16 $flat
loops/star13_periodic float 13 8 $wide
loops/star13_periodic double 13 16 $wide
an5d/star3d1r float 7 8 $deep
an5d/star3d1r double 7 16 $deep
an5d/star3d2r float 13 8 $deep
an5d/star3d2r double 13 16 $deep
an5d/j3d27pt float 28 8 $deep
an5d/j3d27pt double 28 16 $deep
loops/acoustic8 float 30 16 $deep
loops/acoustic8 double 30 32 $deep
loops/d3q19 float 0 152 N=256,M=256,K=256,T=8"}

find_program() { # FOLDER/NAME
    [ "${1%%/*}" = an5d ] && echo "examples/$1.fw" || echo "bench/$1.fw"
}

tune() { # device, program, type, multiply-adds, bytes, sizes
    local name=${2##*/}.$3
    sed "s/float/$3/g" "$(find_program "$2")" >"$out/$name.fw"
    "$forewarp" tune -q "$out/$name.fw" -s "$6" -d "$1" -b "$budget" \
        --store "$out/trials.db" -o "$out/$name" --json "$out/$name.json" >"$out/$name.log" 2>&1 ||
        { echo "$name: not tuned: $(tail -n 1 "$out/$name.log")"; return 1; }
    python3 - "$out/$name.json" "$@" "$(cat "$out/roofs")" <<'END'
import json, math, re, sys
row, program, scalar, slots, size = json.load(open(sys.argv[1])), *sys.argv[3:5], *sys.argv[5:8:2]
moved = int(sys.argv[6])
size = dict(s.split("=") for s in size.split(","))
steps = int(size.pop("T"))
roofs = {k: float(v) for k, v in re.findall(r"(copy|float|double) ([\d.]+)", sys.argv[8])}
rate = math.prod(map(int, size.values())) * steps / row["best"]["time_ns"]
roof = f"{200 * int(slots) * rate / roofs[scalar]:5.0f} %" if int(slots) else "      -"
shown = ("lx", "ly", "bx", "by", "walk", "fuse", "cols", "rows", "warps", "relay")
point = " ".join(w for w in row["best"]["point"].split() if w.split("=")[0] in shown)
print(f"{program.split('/')[-1]:16} {scalar:6} {rate:9.1f} {roof} {rate * moved / roofs['copy']:6.2f} "
      f"{steps:5} {row['elapsed_s']:8.1f} {sum(row['trials'].values()):6}  {point}")
wrong = row["trials"].get("wrong-result", 0)
if wrong or not row["best"].get("checked"):
    print(f"{program}: {wrong} wrong results, checked {row['best'].get('checked')}")
    sys.exit(1)
END
}
export -f tune find_program

device=${devices%%,*}
"$forewarp" devices --measure -d "$device" --store "$out/trials.db" 2>/dev/null |
    sed -n "s|.*measured: ||p" >"$out/roofs"
printf '%-16s %-6s %9s %7s %6s %5s %8s %6s  %s\n' program type 'Gpoints/s' roof sweep steps seconds \
    trials point
bench/deal "$devices" bash -c 'tune "$@"' tune <<<"$rows"
status=$?
echo "$device: $(cat "$out/roofs")"
exit $status
