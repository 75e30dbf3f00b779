#!/bin/sh
# Records programs that are no stencils on a device: follows the heuristics of paper 001, one
# after the other in one run of tune, and keeps all trials, for
# `bench/papers/stencils.py groups FOLDER`.
#
#   record.sh DEVICE FOLDER SAMPLE BUDGET PROGRAM:SIZES...
#
# SAMPLE  configurations of Rand
# BUDGET  of one program, as tune takes it
# PROGRAM of the folder examples; SIZES as tune takes them: mm:N=512,M=512,K=512
#
# Writes FOLDER/PROGRAM.json.gz and a line of FOLDER/index.csv, which says 0 points: no stencil.
# WORK=FOLDER keeps the stores, so that nothing is run twice.
forewarp=${FOREWARP:-forewarp}
here=$(cd "$(dirname "$0")" && pwd)
heuristics=$here/../../heuristics
device=$1 folder=$2 sample=$3 budget=$4
shift 4
work=${WORK:-$(mktemp -d)}
mkdir -p "$folder" "$work"
parts="dimension optimisation hybrid restricted"
plain="lx = 64, ly = 1, lz = 1, bx = 1, by = 1, bz = 1, cx = 1, cy = 1, cz = 1, vec = 1"

study() {
    echo "optional ly, lz, bx, by, bz, cx, cy, cz, vec, scheme, walk = 1"
    sed -e '/^optional/d' -e "s/^sample 1000/sample $sample/" "$heuristics/random.fwh"
    for part in $parts; do
        echo "set $plain"
        sed '/^optional/d' "$heuristics/$part.fwh"
    done
}

study >"$work/programs.fwh"
for what; do
    name=${what%%:*}
    "$forewarp" tune "$here/../../examples/$name.fw" -s "${what#*:}" -d "$device" -q -b "$budget" \
        --strategy "$work/programs.fwh" --store "$work/$name.db" -o "$work/out-$name" \
        --cache "$work/$name.json" || continue
    gzip -9nc "$work/$name.json" >"$folder/$name.json.gz"
    echo "$name.json.gz,$sample,$(echo "$parts" | tr ' ' +),$name,0,1,1,none,1,1" >"$work/$name.row"
done
{
    echo "file,sample,parts,kernel,points,dims,density,unique,adds,muls"
    for file in "$folder"/*.json.gz; do
        cat "$work/$(basename "$file" .json.gz).row" 2>/dev/null ||
            grep "^$(basename "$file")," "$folder/index.csv"
    done
} >"$work/index.$$" && mv "$work/index.$$" "$folder/index.csv"
