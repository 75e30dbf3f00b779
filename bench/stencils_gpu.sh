#!/bin/sh
# Records on a device what paper 001 wants and data/stencils/h200 lacks (doc/stencils.md says
# what that is), as much as fits in so many minutes, and prints the tables of it.
#
#   stencils_gpu.sh [-n] [-j JOBS] DEVICE FOLDER MINUTES [STAGE...]
#
#   -n   a dry run: tiny arrays, a few points of each, to see that all of it works
#   -j   stencils tuned at a time (default 3: a GPU is idle while they compile)
#
# A stage is a line of the plan below; without any, all of them in this order, which begins
# with what matters most: dense stencils, where hybrid may reach 1.12 times Rand. MINUTES are
# those of the device; a stencil is begun only while they last. Data go to FOLDER/stencils,
# FOLDER/programs, FOLDER/templates, as in data/; what FOLDER/work holds is not run again.
#
#   FOREWARP=build/forewarp bench/stencils_gpu.sh -n opencl:0 out 10
#   FOREWARP=build/forewarp bench/stencils_gpu.sh cuda:0 out 28
dry= jobs=3
while getopts nj: option; do
    case $option in
    n) dry=1 ;;
    j) jobs=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 3 ] || { sed -n '2,/^dry/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
device=$1 out=$2 minutes=$3
shift 3
stages=${*:-dense seven sparse rest arithmetic sizes shapes programs templates}
export FOREWARP="${FOREWARP:-$root/build/forewarp}"
export WORK="$out/work"
again=60s
[ -z "$dry" ] || again=30t
end=$(($(date +%s) + minutes * 60))
mkdir -p "$WORK" "$out/stencils" "$out/programs" "$out/templates"

# stage: seconds of a stencil, sample of Rand, what is recorded, sizes, names.
all=hybrid+dimension+optimisation+expert+variable
seven="dense_3d_r2 star_3d_r2 diamond_3d_r2 nocorners_3d_r2 thumbtack_3d_x_r2 thumbtack_3d_y_r2 thumbtack_3d_z_r2"
three="dense_3d_r2 star_3d_r2 thumbtack_3d_z_r2"
others=$(sh "$root/examples/stencils/generate" -l | awk -F, 'NR > 1 && $2 <= 131 { print $1 }')
plan() {
    cat <<END
dense 180 1000 $all 256x256x256 dense_2d_xy_r3 dense_3d_r1 dense_2d_yz_r4 nocorners_3d_r2 dense_2d_xz_r5 dense_3d_r2
seven 150 1000 $all 256x256x256 $seven
sparse 90 1000 $all 256x256x256 star_3d_r5 diamond_3d_r3 star_2d_xz_r5 line_1d_x_r5 thumbtack_3d_y_r3 point_r0
arithmetic 90 300 hybrid+expert 256x256x256 $(for n in $three; do echo "${n}_a2m1" "${n}_a1m2" "${n}_a2m2"; done | xargs)
sizes 60 300 hybrid 64x64x64 $three
sizes 60 300 hybrid 128x128x128 $three
sizes 60 300 hybrid 512x512x512 $three
shapes 60 300 hybrid 8x1024x1024 $three
shapes 60 300 hybrid 32x1024x1024 $three
shapes 60 300 hybrid 128x1024x1024 $three
rest 60 1000 $all 256x256x256 $(echo "$others" | xargs)
END
}

# One stencil a line, each once: those of a cut study are run on by the next call.
stencils() {
    plan | awk -v stage="$1" -v dry="$dry" '$1 == stage {
        for (i = 6; i <= NF && (!dry || i == 6); i++) {
            name = $i
            if (dry) sub(/.*_r[0-9]/, "line_1d_x_r1", name)
            print dry ? "30t 6 " $4 " 8x16x32 " name : $2 "s " $3 " " $4 " " $5 " " name } }' |
        while read -r budget sample parts size name; do
            [ -e "$out/stencils/$name-$size.json.gz" ] && [ "$1" = rest ] && continue
            echo "$budget $sample $parts $size $name"
        done
}

# Compilers write caches: each stencil at a time has its own.
cat >"$WORK/one.sh" <<'END'
budget=$1 sample=$2 parts=$3 size=$4 name=$5
[ "$(date +%s)" -lt "$END" ] || exit 0
export XDG_CACHE_HOME="$WORK/cache-$name-$size"
sh "$ROOT/data/stencils/record.sh" "$DEVICE" "$OUT/stencils" "$sample" "$parts" "$budget" \
    "$size" "$name" >>"$WORK/log" 2>&1 || echo "$name failed: see $WORK/log" >&2
rm -rf "$XDG_CACHE_HOME"
END
export END="$end" ROOT="$root" DEVICE="$device" OUT="$out"

programs() {
    budget=60s sample=300
    set -- mm:N=2048,M=2048,K=2048 transpose:N=8192,M=8192 nbody:N=32768 dot:N=67108864
    [ -z "$dry" ] || { budget=20t sample=4; set -- nbody:N=256; }
    sh "$root/data/programs/record.sh" "$device" "$out/programs" "$sample" "$budget" "$@"
}

# Templates are OpenCL's.
templates() {
    budget=20s
    set -- gemm nbody reduction transpose
    [ -z "$dry" ] || { budget=6t; set -- "nbody -s N=256"; }
    for what; do
        name=${what%% *}
        # shellcheck disable=SC2086
        "$FOREWARP" tune "$root/templates/"${what%% *}.json ${what#"$name"} -d opencl:0 -q \
            --strategy random --seed 1 --budget $budget --store "$WORK/$name.db" \
            -o "$WORK/out-$name" --cache "$out/templates/$name.json.gz"
    done
}

for stage in $stages; do
    [ "$(date +%s)" -lt "$end" ] || break
    case $stage in
    programs | templates) $stage >>"$WORK/log" 2>&1 || echo "$stage failed: see $WORK/log" >&2 ;;
    *) stencils "$stage" | xargs -r -P "$jobs" -L 1 sh "$WORK/one.sh" ;;
    esac
    echo "$stage: $(ls "$out/stencils" | grep -c json) stencils recorded, $((end - $(date +%s))) s left"
done
# The index once more, when nobody else writes it; then what Figures 5 and 6 still want, by
# the same stores.
sh "$root/data/stencils/record.sh" "$device" "$out/stencils" 0 none 1t 1x1x1
if [ "$(date +%s)" -lt "$end" ]; then
    "$FOREWARP" eval groups "$out/stencils" -o "$WORK/more" >/dev/null
    MORE="$WORK/more" && export MORE
    for wanted in "$MORE"/*.fwh; do
        [ -e "$wanted" ] || continue
        id=$(basename "$wanted" .fwh)
        row=$(grep "^$id.json.gz," "$out/stencils/index.csv")
        parts=$(echo "$row" | cut -d, -f3 | sed 's/+alone//; s/+more//')
        case $parts in *cut*) continue ;; esac
        echo "$again $(echo "$row" | cut -d, -f2) $parts ${id##*-} ${id%-*}"
    done | xargs -r -P "$jobs" -L 1 sh "$WORK/one.sh"
    unset MORE
    sh "$root/data/stencils/record.sh" "$device" "$out/stencils" 0 none 1t 1x1x1
fi
"$FOREWARP" eval groups "$out/stencils"
