#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A quick look at a machine with a GPU: bench/gpu_smoke.sh [FOREWARP]. Builds nothing.
# Lists the devices; runs and checks every example on cuda:0 and opencl:0, at odd sizes and
# at 2048 (256 in three dimensions); tunes jacobi2d at 8192 on both; and runs one kernel
# under compute-sanitizer where that is installed. One line each; exit status 1 if any
# line begins with FAIL. DEVICES names other devices, JOBS how many run at a time.
set -u
fw=$(realpath "${1:-build/forewarp}")
cd "$(dirname "$0")/.." || exit 2
[ -x "$fw" ] || { echo "there is no $fw: make" >&2; exit 2; }
devices=${DEVICES:-"cuda:0 opencl:0"}
jobs=${JOBS:-4}
temp=$(mktemp -d) || exit 2
trap 'rm -rf "$temp"' EXIT
export fw temp
export XDG_CACHE_HOME=$temp/cache XDG_DATA_HOME=$temp/data

# The sizes of an example as -s takes them: "odd", or "large".
sizes_of() {
    local names name value list=
    names=$(sed -n 's/^size *//p' "$1" | tr -d ' \r' | tr ',' ' ')
    for name in $names; do
        case $2-$name in
        *-T) value=3 ;;
        odd-N) value=37 ;;
        odd-M) value=29 ;;
        odd-*) value=23 ;;
        *) case $names in *K*) value=256 ;; *) value=2048 ;; esac ;;
        esac
        list=$list,$name=$value
    done
    echo "${list#,}"
}

try() { # device, example, sizes
    local out word=ok
    out=$(timeout 60 "$fw" run --check -d "$1" -s "$3" "$2" 2>&1 </dev/null) || word=FAIL
    out=$(tail -n 1 <<<"$out")
    printf '%-4s %-9s %-18s %s\n' "$word" "$1" "$(basename "$2" .fw)" "$out"
}
export -f try

tune() { # device
    local out word=ok
    out=$(timeout 90 "$fw" tune -q --fresh -b 20t -s N=8192,M=8192 -d "$1" \
        -o "$temp/out" --store "$temp/$1.db" examples/jacobi2d.fw 2>&1 </dev/null) ||
        word=FAIL
    if [ $word = FAIL ]; then
        out=$(tail -n 1 <<<"$out")
    else
        out=$(sed -n -E 's/^ *([0-9]+ trials).* in ([0-9.]+ s).*/\1 in \2,/p
            s/^ *(plain|best) +([0-9.]+ [a-z]+) +([0-9.]+ GB.s).*/\1 \2 (\3),/p' \
            <<<"$out" | tr '\n' ' ')
    fi
    printf '%-4s %-9s %-18s %s\n' "$word" "$1" "tune jacobi2d" "${out%, }"
}

# The tool prints errors as it finds them; a worker is ended before its summary.
sanitize() {
    local out word=ok n
    if ! command -v compute-sanitizer >/dev/null; then
        echo "skip compute-sanitizer is not here"
        return
    fi
    out=$(timeout 90 compute-sanitizer --tool memcheck --report-api-errors no --target-processes all \
        "$fw" run --check -d cuda:0 -s N=37,M=29 examples/jacobi2d.fw 2>&1 </dev/null) ||
        word=FAIL
    n=$(grep -c -E 'Invalid|Misaligned|Program hit' <<<"$out")
    [ "$n" = 0 ] || word=FAIL
    printf '%-4s %-9s %-18s %s errors; %s\n' $word cuda:0 memcheck "$n" \
        "$(grep -v '^=========' <<<"$out" | tail -n 1)"
}

{
    "$fw" devices
    for device in $devices; do
        for example in examples/*.fw; do
            for kind in odd large; do
                printf '%s\0%s\0%s\0' "$device" "$example" "$(sizes_of "$example" $kind)"
            done
        done
    done | xargs -0 -n 3 -P "$jobs" bash -c 'try "$@"' try
    for device in $devices; do
        tune "$device"
    done
    sanitize
    echo "$((SECONDS)) s"
} | tee "$temp/log"
! grep -q '^FAIL' "$temp/log"
