#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Records the three kernels of paper 002 on a GPU and on the same machine's PoCL, for data/templates; `two_stages.py tables` prints
# the tables of doc/two-stage.md from what comes out.
#
#   bench/templates_gpu.sh build/forewarp OUT [MINUTES]     MINUTES: of the whole (default 28)
#
# Of the time the GPU has a half, all of it with CPU= (none): convolution 3 parts of 5 (3,000 points a minute with 11
# cores that compile: 19,949 valid ones took 12.5 minutes), raycasting and stereo one each. Two GPUs and more halve the
# cores: the first records convolution, the second the other two, at the same time. Then the processor: two passes over the same
# points, so that noise shows, of convolution, stereo and raycasting, one thread, sizes that keep most kernels below 10 ms. All
# records are in OUT/templates.tar too.
#
#   GPU=opencl:0 CPU=opencl:1   the devices, where they are not the first OpenCL device that is no PoCL and the first
#                               that is; GPU=opencl:0,opencl:1 are two; GPU= leaves that half out, CPU= the other
#   KERNELS=convolution         those that one GPU records (all three)
#   POINTS=60                   points in place of minutes, for a dry run: POINTS=20 bench/templates_gpu.sh ...
#   SMALL=1                     the GPU's half with the processor's sizes too, for a dry run without a GPU
set -eu
FW=$(realpath "${1:?usage: bench/templates_gpu.sh FOREWARP OUT [MINUTES]}") OUT=${2:?} MINUTES=${3:-28}
cd "$(dirname "$0")/.."
mkdir -p "$OUT"
OUT=$(realpath "$OUT")
# first_device 0|1: the first OpenCL device that is PoCL (1) or is not (0).
first_device() {
    "$FW" devices | awk -v pocl="$1" '/^opencl/ { id = $1; getline; if (/Portable Computing/ == pocl) { print id; exit } }'
}
GPU=${GPU-$(first_device 0)} CPU=${CPU-$(first_device 1)} POINTS=${POINTS-} SMALL=${SMALL-}
KERNELS=${KERNELS:-convolution raycasting stereo}
export CUDA_CACHE_DISABLE=1 XDG_CACHE_HOME="$OUT/cache"
SMALL_CONVOLUTION=H=256,W=256 SMALL_STEREO=W=128,H=128,D=16,R=2 SMALL_RAYCASTING=W=128,H=128,S=32
FEW='PX * PY <= 1024' # the others leave so few work-items that one run takes up to seconds

# record DEVICE NAME KERNEL PERCENT [more options]: for PERCENT of the minutes, or POINTS.
record() {
    device=$1 name=$2 kernel=$3 budget=$(awk -v m="$MINUTES" -v p="$4" "BEGIN { print int(m * 60 * p / 100) }")s
    shift 4
    [ -z "$POINTS" ] || budget=${POINTS}t
    XDG_DATA_HOME="$OUT/data-$name" "$FW" tune "templates/$kernel.json" -d "$device" --strategy random --seed 1 \
        --budget "$budget" "$@" -q -o "$OUT/kernels-$name" --cache "$OUT/$name.json.gz"
}

echo "GPU: ${GPU:-none}, processor: ${CPU:-none}"
# gpu DEVICE PERCENT KERNEL...: shares so much of the minutes among them.
gpu() {
    device=$1 percent=$2 parts=0
    shift 2
    for kernel; do parts=$((parts + $(part "$kernel"))); done
    for kernel; do
        case $SMALL$kernel in
        1convolution) set_to="-s $SMALL_CONVOLUTION" ;;
        1raycasting) set_to="-s $SMALL_RAYCASTING" ;;
        1stereo) set_to="-s $SMALL_STEREO" ;;
        *) set_to= ;;
        esac
        where=$([ "$kernel" = convolution ] || echo "$FEW")
        # shellcheck disable=SC2086
        record "$device" "h200-$kernel" "$kernel" $((percent * $(part "$kernel") / parts)) $set_to ${where:+--where "$where"}
    done
}

part() { [ "$1" = convolution ] && echo 3 || echo 1; }

# The cores that this shell may use, one half or the other.
half() {
    taskset -cp $$ | sed 's/.*: //' | tr , '\n' | awk -v which="$1" -F- '
        { for (i = $1; i <= ($2 == "" ? $1 : $2); i++) core[++n] = i }
        END { for (i = 1; i <= n; i++) if ((i <= (n + 1) / 2) == (which == 1) || n == 1) print core[i] }' | xargs | tr ' ' ,
}

share=$([ -n "$CPU" ] && echo 50 || echo 100)
case $GPU in
'') ;;
*,*)
    one=${GPU%%,*} two=${GPU#*,} first=$(half 1) second=$(half 2)
    (taskset -cp "$first" "$(exec sh -c 'echo $PPID')" >/dev/null && gpu "$one" "$share" convolution) &
    (taskset -cp "$second" "$(exec sh -c 'echo $PPID')" >/dev/null && gpu "${two%%,*}" "$share" raycasting stereo)
    wait
    ;;
*)
    # shellcheck disable=SC2086
    gpu "$GPU" "$share" $KERNELS
    ;;
esac

# The second pass is as long as the first; what the first has not reached is in no pass twice.
if [ -n "$CPU" ]; then
    export POCL_MAX_PTHREAD_COUNT=1
    for pass in a b; do
        record "$CPU" pocl-convolution-$pass convolution 11 -s $SMALL_CONVOLUTION --samples 10
        record "$CPU" pocl-stereo-$pass stereo 6 -s $SMALL_STEREO --samples 10 --where "$FEW"
        record "$CPU" pocl-raycasting-$pass raycasting 6 -s $SMALL_RAYCASTING --samples 10 --where "$FEW"
    done
    for kernel in convolution stereo raycasting; do
        python3 bench/merge_records.py "$OUT/pocl-$kernel.json.gz" "$OUT/pocl-$kernel-a.json.gz" "$OUT/pocl-$kernel-b.json.gz"
        rm "$OUT/pocl-$kernel-a.json.gz" "$OUT/pocl-$kernel-b.json.gz"
    done
fi
rm -rf "$OUT/cache" "$OUT"/data-* "$OUT"/kernels-*
(cd "$OUT" && tar -cf templates.tar -- *.json.gz)
ls -l "$OUT"
