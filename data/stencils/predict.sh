#!/bin/sh
# Predicts every recorded point from counted demands (paper 003), without running it, for
# `bench/papers/stencils.py picks`: FOLDER/NAME-ZxYxX.predicted.gz, a line a point.
#
#   predict.sh FOLDER WEIGHTS
#
# WEIGHTS as `forewarp fit linear data/h200-kernels.csv -o WEIGHTS` or calibrate writes them.
forewarp=${FOREWARP:-forewarp}
generate=$(dirname "$0")/../../examples/stencils/generate
folder=$1 weights=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tail -n +2 "$folder/index.csv" | while IFS=, read -r file _ _ name _ _ _ _ adds muls; do
    id=${file%.json.gz}
    sizes=$(echo "${id##*-}" | awk -Fx '{ print "Z=" $1 ",Y=" $2 ",X=" $3 }')
    sh "$generate" -a "$adds" -m "$muls" -o "$name" >"$work/$name.fw" &&
        "$forewarp" predict "$work/$name.fw" -s "$sizes" --model "$weights" \
            --extra images,groups,loads --points "$folder/$file" >"$work/predicted" &&
        gzip -9nc "$work/predicted" >"$folder/$id.predicted.gz" || exit 1
done
