#!/bin/sh
# Records on GPUs what paper 001 wants and data/stencils/h200 lacks (doc/stencils.md says
# what that is), as much as fits in so many minutes.
#
#   stencils_gpu.sh [-n] [-c CORES] DEVICE,... FOLDER MINUTES [STAGE...]
#
#   -n   a dry run: tiny arrays, a few points of each, to see that all of it works
#   -c   cores a stencil, which compile for it (default: what its stage says)
#
# A stage is some lines of the plan below; without any, all of them in this order. Stencils are
# dealt over the devices, as many at a time as there are cores for (taskset says which these
# are): compiling is what takes long, a GPU is busy a hundredth of it, and those that share one
# take turns at each check and timing, so that no two kernels run on it at once (by a lock in
# the folder of caches: another call of this script beside this one, with a FOLDER of its own,
# joins in). Each is written as soon as it is done. None is begun that would not be done in time, by
# what it takes to compile its points; one that is cut leaves nothing. Interrupted, it ends in
# order, with all that was done.
#
# Data go to FOLDER/stencils, FOLDER/programs, FOLDER/templates, as in data/, and all of them
# every minute and at the end to FOLDER/data.tar, the one file to take away. What is there
# already, or in data/stencils/h200 (KNOWN in the environment) with as many parts, is not recorded
# again.
#
#   FOREWARP=build/forewarp bench/stencils_gpu.sh -n opencl:0,opencl:0 out 3
#   FOREWARP=build/forewarp bench/stencils_gpu.sh cuda:0,cuda:1,cuda:2 out 9 full rest
#
# Afterwards, in the repository: bench/stencils_gpu.sh -t FOLDER/data.tar takes them over into
# data/stencils/h200 (programs, templates likewise; CARD=h100: into h100) and prints the tables.
dry='' cores='' take=''
while getopts nc:t: option; do
    case $option in
    n) dry=1 ;;
    c) cores=$OPTARG ;;
    t) take=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 3 ] || [ "$take" ] || { sed -n '2,/^dry/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
export FOREWARP="${FOREWARP:-$root/build/forewarp}"
known=${KNOWN:-$root/data/stencils/h200}

if [ "$take" ]; then
    work=$(mktemp -d) card=${CARD:-h200}
    tar -C "$work" -xf "$take"
    for kind in stencils programs; do
        [ -e "$work/$kind/index.csv" ] || continue
        mkdir -p "$root/data/$kind/$card"
        python3 "$root/bench/merge_studies.py" "$root/data/$kind/$card" "$work/$kind"
        python3 "$root/bench/papers/stencils.py" loading "$root/data/$kind/$card"
        python3 "$root/bench/papers/stencils.py" groups "$root/data/$kind/$card"
    done
    for file in "$work"/templates/*.json.gz; do
        [ ! -e "$file" ] || cp "$file" "$root/data/templates/$card-$(basename "$file")"
    done
    rm -rf "$work"
    exit 0
fi

minutes=$3
mkdir -p "$2/work" "$2/stencils" "$2/programs" "$2/templates"
out=$(cd "$2" && pwd)
devices=$(echo "$1" | tr , ' ')
shift 3
stages=${*:-full rest arithmetic sizes shapes dense programs templates}
export WORK="$out/work" ROOT="$root" OUT="$out" DRY="$dry"
END=$(awk -v now="$(date +%s)" -v m="$minutes" 'BEGIN { print int(now + m * 60) }')
export END

# What is recorded, one part after the other; "/": then written, and more if there is time.
lean=alone+hybrid
all=alone+hybrid+merged/alone+hybrid+merged+dimension+optimisation+variable+expert
two="star_3d_r1 dense_3d_r1"
three="$two thumbtack_3d_z_r1"

# names LEAST MOST: the stencils of so many points, the largest first: the last to be begun are
# short then.
names() {
    sh "$root/examples/stencils/generate" -l | awk -F, -v a="$1" -v b="$2" \
        'NR > 1 && $2 >= a && $2 <= b { print $2, $1 }' | sort -rn | awk '{ print $2 }' | xargs
}

small=$(names 3 9) # 22 stencils, for Tables 8 to 11 on many; with 100 random points each

# stage: cores, sample of Rand, parts, ways that are left out, sizes, names. Images came to two
# thirds of Rand on the first ten stencils and take as long as any to compile.
plan() {
    cat <<END
full 7 1000 $all none 256x256x256 thumbtack_3d_y_r2 dense_3d_r1 dense_2d_xy_r2 star_3d_r3 line_1d_x_r2 star_2d_xz_r1
rest 3 1000 $lean image 256x256x256 $(names 1 31)
arithmetic 3 300 $lean+expert image 256x256x256 $(for n in $three; do echo "${n}_a2m1" "${n}_a1m2" "${n}_a2m2"; done | xargs)
sizes 3 300 $lean image 64x64x64 $two
sizes 3 300 $lean image 128x128x128 $two
sizes 3 300 $lean image 512x512x512 $two
shapes 3 300 $lean image 8x1024x1024 $two
shapes 3 300 $lean image 32x1024x1024 $two
shapes 3 300 $lean image 128x1024x1024 $two
dense 7 1000 $lean image 256x256x256 dense_3d_r2 thumbtack_3d_x_r4 diamond_3d_r3 dense_2d_yz_r4 nocorners_3d_r2
dense 7 1000 $lean image 256x256x256 diamond_2d_xz_r5 dense_2d_xz_r3 nocorners_2d_xy_r4 thumbtack_3d_z_r3
dense 7 1000 $lean image 256x256x256 $(names 41 131)
few 2 100 hybrid+variable image,tiled 256x256x256 $small
few 2 100 hybrid image,tiled 64x64x64 $small
few 2 100 hybrid image,tiled 8x1024x1024 $small
few 2 100 hybrid+expert image,tiled 256x256x256 $(for n in $small; do echo "${n}_a2m2"; done | xargs)
few 2 100 hybrid image,tiled 512x512x512 $small
few 2 100 hybrid image,tiled 32x1024x1024 $small
few 2 100 hybrid+expert image,tiled 256x256x256 $(for n in $small; do echo "${n}_a2m1" "${n}_a1m2"; done | xargs)
large 5 100 hybrid image,tiled 256x256x256 nocorners_2d_xy_r3 diamond_2d_yz_r4 dense_2d_xz_r3 thumbtack_3d_y_r3 diamond_3d_r3 dense_2d_xy_r4
large 5 100 hybrid image,tiled 256x256x256 $(names 41 131)
others 2 100 hybrid image,tiled 256x256x256 $(names 1 31)
END
}

# One stencil a line, each once: CORES SAMPLE PARTS WITHOUT SIZE NAME.
stencils() {
    plan | awk -v stage="$1" -v dry="$dry" '$1 == stage {
        for (i = 7; i <= NF && (!dry || i <= 8); i++) {
            name = $i
            if (dry) sub(/.*_r[0-9]/, "line_1d_" (i == 7 ? "x" : "z") "_r1", name)
            line = dry ? "1 6 " $4 " image,tiled 4x8x16 " name : $2 " " $3 " " $4 " " $5 " " $6 " " name
            if (!seen[line]++) print line } }' |
        while read -r line; do
            # shellcheck disable=SC2086
            set -- $line
            done=$out/stencils/index.csv
            [ "$dry" ] || done="$done $known/index.csv"
            # shellcheck disable=SC2086
            cat $done 2>/dev/null | awk -F, -v file="$6-$5.json.gz" -v sample="$2" -v want="${3##*/}" '
                $1 == file && $2 >= sample { have = "+" $3 "+" }
                END { n = split(want, part, "+")
                      for (i = 1; i <= n; i++) lacks += !index(have, "+" part[i] "+") && part[i] != "alone"
                      exit !have || lacks }' || echo "$line"
        done
}

# A slot of xargs has its device and its cores, one more than compile: for what runs there and
# for the tuner, which have little to do. A point takes 0.09 s and 0.01 for each point of the
# stencil to compile where all cores do (measured on an H200 host).
cat >"$WORK/one.sh" <<'END'
cores=$1 sample=$2 parts=$3 without=$4 size=$5 name=$6
number=$((${SLOT:-0} + 1))
device=$(echo "$DEVICES" | awk -v n="$number" '{ print $((n - 1) % NF + 1) }')
mine=$(echo "$CORES" | awk -v n="$number" -v c="$cores" '{
    for (i = 0; i <= c && i < NF; i++) printf "%s%s", i ? "," : "", $(((n - 1) * c + i) % NF + 1) }')
reads=$(sh "$ROOT/examples/stencils/generate" -l | awk -F, -v n="${name%_a?m?}" '$1 == n { print $2 }')
for steps in $(echo "$parts" | tr / ' '); do
    left=$((END - $(date +%s) - 5))
    points=$((sample + 700))
    case $steps in
    *optimisation*) points=3600 ;; # the others are in the store
    *expert* | *merged*) points=$((points + 300)) ;;
    esac
    case $without in *tiled*) points=$((points - 300)) ;; esac
    wanted=$(awk -v n=$points -v p="$reads" -v c="$cores" -v dry="$DRY" \
        'BEGIN { print dry ? 1 : int(12 + n * (0.09 + 0.01 * p) / c) }')
    [ "$left" -ge "$wanted" ] || break
    began=$(date +%s)
    budget=${left}s
    [ -z "$DRY" ] || budget=40t
    WITHOUT=$without $(command -v taskset >/dev/null && echo taskset -c "$mine") \
        sh "$ROOT/data/stencils/record.sh" "$device" "$OUT/stencils" "$sample" "$steps" "$budget" \
        "$size" "$name" >>"$WORK/log" 2>&1 || echo "$name failed: see $WORK/log" >&2
    echo "$name $size $steps on $device: $(($(date +%s) - began)) s of $wanted reckoned"
done
rm -f "$WORK/$name-$size.db"* "$WORK/$name-$size.json"
END

# Cores that this shell may use, and devices: "0 1 2 ...".
CORES=$(taskset -cp $$ 2>/dev/null | sed 's/.*: //' | tr , '\n' |
    awk -F- 'NF { for (i = $1; i <= ($2 == "" ? $1 : $2); i++) printf "%d ", i }')
[ "$CORES" ] || CORES=$(seq -s ' ' 0 $(($(nproc) - 1)))
export CORES DEVICES="$devices"

at_a_time() {
    each=${cores:-$(plan | awk -v stage="$1" '$1 == stage { print $2; exit }')}
    number=$(($(echo "$CORES" | wc -w) / each))
    least=$(echo "$devices" | wc -w)
    echo $((number > least ? number : least))
}

pack() { # a word that two at a time differ in
    tar -C "$out" -cf "$out/data.$1" stencils programs templates && mv "$out/data.$1" "$out/data.tar"
}

programs() {
    budget=60s sample=300
    set -- mm:N=2048,M=2048,K=2048 transpose:N=8192,M=8192 nbody:N=32768 dot:N=67108864
    [ -z "$dry" ] || { budget=20t sample=4; set -- nbody:N=256; }
    sh "$root/data/programs/record.sh" "${devices%% *}" "$out/programs" "$sample" "$budget" "$@"
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

# The index once more, when nobody else writes it.
finish() {
    kill $packer 2>/dev/null
    sh "$root/data/stencils/record.sh" "${devices%% *}" "$out/stencils" 0 none 1t 1x1x1
    pack end
    ls -l "$out/data.tar"
}

while sleep 60; do pack now; done >/dev/null 2>&1 &
packer=$!
trap 'finish; exit 1' INT TERM
for stage in $stages; do
    [ "$(date +%s)" -lt "$END" ] || break
    case $stage in
    programs | templates) $stage >>"$WORK/log" 2>&1 || echo "$stage failed: see $WORK/log" >&2 ;;
    *) stencils "$stage" | sed "s/^[0-9]*/${cores:-&}/" |
        xargs -r -P "$(at_a_time "$stage")" --process-slot-var=SLOT -L 1 sh "$WORK/one.sh" ;;
    esac
    echo "$stage: $(ls "$out/stencils" | grep -c json) stencils recorded, $((END - $(date +%s))) s left"
done
finish
