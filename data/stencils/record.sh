#!/bin/sh
# Records stencils on a device: follows heuristics for each of the four ways to load data,
# one after the other in one run of tune, and keeps all trials.
#
#   record.sh DEVICE FOLDER SAMPLE PARTS BUDGET ZxYxX NAME...
#
# SAMPLE  configurations of Rand
# PARTS   joined by +: heuristics (hybrid, dimension, optimisation, expert, variable, ...); alone:
#         each optimisation by itself around the best of Rand; merged: with hybrid, what merged
#         outputs and the removal of their equal loads gain
# BUDGET  of one stencil, as tune takes it
# NAME    as generate has it, _a2m1 and the like included
#
# Writes FOLDER/NAME-ZxYxX.json.gz and a line of FOLDER/index.csv. With MORE=OTHER in the
# environment, the steps in OTHER/NAME-ZxYxX.fwh follow: such as `bench/papers/stencils.py groups
# FOLDER -o OTHER` writes. WORK=FOLDER keeps the stores, so that nothing is run twice. No heuristic is
# followed with the ways to load data in WITHOUT=image,tiled; Rand has them, but for images
# with IMAGES=no. A stencil that was cut short is not written: no heuristic can be followed.
forewarp=${FOREWARP:-forewarp}
here=$(cd "$(dirname "$0")" && pwd)
generate=$here/../../examples/stencils/generate
heuristics=$here/../../heuristics
device=$1 folder=$2 sample=$3 parts=$4 budget=$5 size=$6
shift 6
sizes=$(echo "$size" | awk -Fx '{ print "Z=" $1 ",Y=" $2 ",X=" $3 }')
work=${WORK:-$(mktemp -d)}
mkdir -p "$folder" "$work"

extra=images,groups,loads
[ "$IMAGES" = no ] && extra=groups,loads

# The space of paper 001, section 4.7: outputs are merged in x as far as a vector covers
# them, not in y and z, and a work-group computes no more than there is.
space="bx == vec and by == 1 and bz == 1 and lx * bx * cx <= X and ly * cy <= Y and lz * cz <= Z"
all="$space and (scheme == 'global' or vec == 1)"

# A heuristic file, its steps in this space.
within() {
    sed -e '/^optional/d' -e '/^ *\(tune\|sample\) .* where /s/$/ and '"$2"'/' \
        -e '/^ *\(tune\|sample\) /{/ where /!s/$/ where '"$2"'/}' "$heuristics/$1.fwh"
}

study() {
    echo "optional ly, lz, bx, by, bz, cx, cy, cz, vec, scheme, walk = 1"
    echo "set by = 1, bz = 1, walk = 1, group = 'fixed', loads = 'once'"
    within random "$all" | sed "s/^sample 1000/sample $sample/"
    # Section 5.5: each optimisation by itself, around the best of those.
    case "+$parts+" in *+alone+*) echo "tune lx, ly, lz, bx, vec, cx, cy, cz, scheme where $all and (lx != best.lx) +" \
        "(ly != best.ly) + (lz != best.lz) + (cx != best.cx) + (cy != best.cy) +" \
        "(cz != best.cz) + (bx != best.bx or scheme != best.scheme) <= 1" ;;
    esac
    for part in $(echo "$parts" | tr + '\n' | grep -vx 'alone\|merged'); do
        if [ "$part" = expert ]; then
            within expert "$all"
            continue
        fi
        for way in "scheme = 'global', vec = 1, bx = 1" "scheme = 'global', vec = 2, bx = 2" \
            "scheme = 'tiled', vec = 1, bx = 1" "scheme = 'image', vec = 1, bx = 1"; do
            word=${way#*\'}
            case ",$WITHOUT," in *",${word%%\'*},"*) continue ;; esac
            case $way in *2) vec="vec > 1" ;; *) vec="vec == 1" ;; esac
            # Tiles have the shape of their group.
            [ "$part" = variable ] && case $way in *tiled*) continue ;; esac
            echo "set $way, group = 'fixed', loads = 'once', lx = 64, ly = 1, lz = 1, by = 1, bz = 1, cx = 1, cy = 1, cz = 1"
            within "$part" "$vec and $space"
            # Outputs merged in y and z, whose equal loads this compiler removes: what that
            # is worth.
            case "$part+$parts+" in hybrid+*+merged+*) ;; *) continue ;; esac
            echo "tune loads"
            echo "set loads = 'once'"
            echo "tune by, bz where ly * cy * by <= Y and lz * cz * bz <= Z"
            echo "tune loads"
        done
    done
}

left_out=$(echo "$WITHOUT" | tr , '\n' | sed -n 's/tiled/local/; /local\|image/s/^/+without_/p' | tr -d '\n')
for name; do
    adds=1 muls=1
    case $name in *_a2m?) adds=2 ;; esac
    case $name in *_a?m2) muls=2 ;; esac
    id=$name-$size
    sh "$generate" -a $adds -m $muls -o "$name" >"$work/$id.fw" || continue
    study >"$work/$id.fwh"
    [ -z "$MORE" ] || cat "$MORE/$id.fwh" >>"$work/$id.fwh"
    began=$(date +%s)
    rm -f "$work/$id.json"
    "$forewarp" tune "$work/$id.fw" -s "$sizes" -d "$device" --extra "$extra" -q -b "$budget" \
        --strategy "$work/$id.fwh" --store "$work/$id.db" -o "$work/out-$id" \
        --cache "$work/$id.json" || continue
    case $budget in
    *s) [ $(($(date +%s) - began)) -lt "${budget%s}" ] || { echo "$id was cut" >&2; continue; } ;;
    esac
    gzip -9nc "$work/$id.json" >"$folder/$id.json.gz"
    done=$parts$left_out
    [ -z "$MORE" ] || done=$done+more
    echo "$id.json.gz,$sample,$done,$(sh "$generate" -a $adds -m $muls -l | grep "^$name,")" \
        >"$work/$id.row"
done
# One line a file, whoever recorded it.
{
    echo "file,sample,parts,$(sh "$generate" -l | head -1)"
    for file in "$folder"/*.json.gz; do
        cat "$work/$(basename "$file" .json.gz).row" 2>/dev/null ||
            grep -s "^$(basename "$file")," "$folder/index.csv"
    done
} >"$work/index.$$" && mv "$work/index.$$" "$folder/index.csv"
