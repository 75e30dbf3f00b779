#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Time loops over stencils, found by the tuner from the plain programs and verified, against
# AN5D's tuned code (CGO 2020; its figures measured on an H200, float, 16384 x 16384 and
# 512 x 512 x 512, 480 steps, without transfers): a table on standard output.
#
#   bench/an5d.sh [DEVICES [BUDGET]]       cuda:0, 15s of search; FOREWARP names the program,
#                                          ROWS: PROGRAM THEIRS SIZES a line, instead of all
#
# DEVICES: one, or several with commas between, which share the rows. Fewer steps than AN5D's,
# because the reference on the host does all of them: as many as the steps that a kernel may
# do divide. `seconds` is the whole run; exit status 1 if a program was not tuned.
set -u
devices=${1:-cuda:0}
export budget=${2:-15s}
forewarp=$(realpath "${FOREWARP:-build/forewarp}")
cd "$(dirname "$0")/.." || exit 2
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
export forewarp out
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

tune() { # device, program, G points/s of AN5D, sizes
    "$forewarp" tune -q "examples/an5d/$2.fw" -s "$4" -d "$1" -b "$budget" \
        --store "$out/trials.db" -o "$out/$2" --json "$out/$2.json" >"$out/$2.log" 2>&1 ||
        { echo "$2: not tuned: $(tail -n 1 "$out/$2.log")"; return 1; }
    python3 - "$out/$2.json" "$2" "$3" "$4" <<'END'
import json, math, sys
row, program, theirs = json.load(open(sys.argv[1])), sys.argv[2], float(sys.argv[3])
size = dict(s.split("=") for s in sys.argv[4].split(","))
steps = int(size.pop("T"))
rate = math.prod(map(int, size.values())) * steps / row["best"]["time_ns"]
shown = ("lx", "ly", "bx", "by", "walk", "fuse", "cols", "rows", "warps")
point = " ".join(w for w in row["best"]["point"].split() if w.split("=")[0] in shown)
print(f"{program:18} {rate:12.0f} {theirs:12.0f} {rate / theirs:6.2f} {steps:5} "
      f"{row['elapsed_s']:9.1f} {sum(row['trials'].values()):6}  {point}")
END
}
export -f tune

printf '%-18s %12s %12s %6s %5s %9s %6s  %s\n' program 'G points/s' 'AN5D' ratio steps \
    seconds trials point
bench/deal "$devices" bash -c 'tune "$@"' tune <<<"$rows"
status=$?
device=${devices%%,*}
"$forewarp" devices --measure -d "$device" --store "$out/trials.db" 2>/dev/null |
    sed -n "s|.*measured: |$device: |p"
exit $status
