#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# How the rate of trials grows with the devices of one host: bench/gpu_scaling.sh
# [FOREWARP] [TABLE]. One row a way of sharing (devices of one process; one rank of MPI each,
# where that is built in) and a number of devices: trials a second after the first second, times
# the rate of one device; the share of that time that a device was checking and timing (far
# below 100: it waited for compilers); seconds of a core to compile a trial; the best time found;
# trials by status. Each row searches the same program in so many seconds, and takes about 15
# more: `STRATEGIES=random BUDGET=20` is 4 minutes with two GPUs.
#   KIND=cuda       devices of this kind; PLACES="opencl:0 opencl:0" names them one by one
#                   (a dry run on PoCL: the same one several times shares its cores)
#   COUNTS="1 2 4"  numbers of devices; those that are not there are left out
#   BUDGET=40       seconds of search a row
#   PROGRAM, SIZES  examples/jacobi2d.fw, N=32768,M=32768: a trial takes a GPU (an H200) 35 ms,
#                   ten compilers as long
#   STRATEGIES      random (needs no answers), auto (learns, half a batch at a time)
#   RANKS=0         leaves out MPI
set -u
fw=$(realpath "${1:-build/forewarp}")
cd "$(dirname "$0")/.." || exit 2
[ -x "$fw" ] || { echo "there is no $fw: make" >&2; exit 2; }
table=${2:-bench/results/scaling.txt}
temp=$(mktemp -d) || exit 2
trap 'rm -rf "$temp"' EXIT
export XDG_CACHE_HOME=$temp/cache XDG_DATA_HOME=$temp/data
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
# Without this two ranks may use one core each.
export OMPI_MCA_hwloc_base_binding_policy=none
program=${PROGRAM:-examples/jacobi2d.fw} sizes=${SIZES:-N=32768,M=32768} budget=${BUDGET:-40}
kind=${KIND:-cuda}
# shellcheck disable=SC2206 # a word a device
places=(${PLACES:-$("$fw" devices 2>/dev/null | grep -o "^$kind:[0-9]*")})
[ ${#places[@]} -gt 0 ] || { echo "there is no $kind device (KIND, PLACES)" >&2; exit 1; }

# The first n devices, as -d takes them.
list() { local IFS=,; echo "${places[*]:0:$1}"; }

tune() { # seconds, store, then words before and options after
    local seconds=$1 store=$2
    shift 2
    timeout $((seconds + 90)) "$@" -q --fresh -b "${seconds}s" -s "$sizes" -o "$temp/out" \
        --store "$store" --json "$temp/row.json" --cache "$temp/row.cache" >"$temp/log" 2>&1 </dev/null ||
        { tail -n 2 "$temp/log"; return 1; }
}

row() { # one process or ranks, strategy, number of devices, command...
    local way=$1 strategy=$2 n=$3
    shift 3
    rm -f "$temp"/row.*
    cp "$temp/limits.db" "$temp/row.db"
    tune "$budget" "$temp/row.db" "$@" --strategy "$strategy" -d "$(list "$n")" || return 1
    python3 - "$temp" "$way" "$strategy" "$n" <<'EOF'
import json, os, sys
from datetime import datetime
temp, way, strategy, n = *sys.argv[1:4], int(sys.argv[4])
run = json.load(open(temp + "/row.json"))
trials = sorted(((datetime.fromisoformat(t["timestamp"]).timestamp(), t)
                 for t in json.load(open(temp + "/row.cache"))["cache"].values()), key=lambda t: t[0])
# What the first second brought had been compiled before counting begins.
begin = trials[0][0] + 1
counted = [t for when, t in trials if when > begin]
span = max(trials[-1][0] - begin, 1e-3)
rate = len(counted) / span
mean = lambda *keys: sum(t[k] for t in counted for k in keys) / 1e3 / max(len(counted), 1)
one = temp + "/one-" + strategy
if not os.path.exists(one):
    open(one, "w").write(repr(rate))
took = run["device"]["count"]
print("%-12s %-9s %d device%s %8.1f trials/s %6.2fx  busy %3.0f %%  compile %5.2f s  best %9.1f us  %s%s" % (
    way, strategy, n, " " if n == 1 else "s", rate, rate / max(float(open(one).read()), 1e-9),
    100 * rate * mean("verification_time", "benchmark_time") / n, mean("compile_time"), run["best"]["time_ns"] / 1e3,
    ", ".join("%d %s" % (v, k) for k, v in run["trials"].items() if v),
    "" if took == n else "  (only %d took part)" % took))
EOF
}

all() {
    echo "# $(date -u +%F), bench/gpu_scaling.sh: tune $program -s $sizes -b ${budget}s, $(nproc) cores"
    "$fw" devices 2>/dev/null | sed "s/^/# /"
    # What a device reaches is measured once, and the cubins of no row are those of another.
    tune 5 "$temp/limits.db" "$fw" tune "$program" --strategy random -d "${places[0]}" || return 1
    python3 -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db: db.execute("DELETE FROM trial")' "$temp/limits.db"
    local strategy n status=0 mpi=
    if [ "${RANKS:-1}" != 0 ] && ldd "$fw" | grep -q libmpi; then mpi=$(command -v mpirun); fi
    for strategy in ${STRATEGIES:-random auto}; do
        for n in ${COUNTS:-1 2 4}; do
            [ "$n" -le ${#places[@]} ] || continue
            rm -rf "$temp/cache"
            row "one process" "$strategy" "$n" "$fw" tune "$program" || status=1
            if [ "$n" = 1 ] || [ -z "$mpi" ]; then continue; fi
            rm -rf "$temp/cache"
            row "MPI ranks" "$strategy" "$n" mpirun -n "$n" "$fw" tune "$program" --mpi || status=1
        done
    done
    return $status
}
all | tee "$table"
exit "${PIPESTATUS[0]}"
