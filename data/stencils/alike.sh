#!/bin/sh
# Sorts the recorded stencils of a folder into folders whose stencils at one size have samples
# alike, for those tables of bench/papers/stencils.py that compare with Rand:
#
#   alike.sh FOLDER INTO
#
# INTO/many   more than 100 random points
# INTO/few    100 random points, stencils of at most 31 points
# INTO/large  stencils of more than 31 points
folder=$1 into=$2
[ $# = 2 ] || { sed -n '2,/^folder/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
alike() {
    mkdir -p "$into/$1" && awk -F, "NR == 1 || $2" "$folder/index.csv" >"$into/$1/index.csv" || exit 1
    tail -n +2 "$into/$1/index.csv" | while IFS=, read -r file _; do
        cp "$folder/${file%.json.gz}".*.gz "$into/$1" || exit 1
    done || exit 1
    echo "$into/$1: $(($(wc -l <"$into/$1/index.csv") - 1)) of $folder"
}
# shellcheck disable=SC2016 # awk's columns
{
    alike many '$2 > 100'
    alike few '$2 <= 100 && $5 <= 31'
    alike large '$5 > 31'
}
