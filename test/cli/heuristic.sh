# Heuristic files and constraints of one's own, from the command line.
. test/cli/common
stores - "$tmp/two.db"
jacobi=examples/jacobi2d.fw
tune="$FOREWARP tune $jacobi -s N=64,M=64 -d host -q -o $tmp/out"

$tune --strategy heuristics/hybrid.fwh --budget 20t --json "$tmp/t.json" >/dev/null &&
    grep -q '"strategy": "heuristic"' "$tmp/t.json" && ok "a heuristic file is followed" ||
    not_ok "a heuristic file is followed"
printf 'set ly = 1\ntune lx, lq\n' >"$tmp/name.fwh"
fails 2 "name.fwh:2:10: error" $tune --strategy "$tmp/name.fwh" --budget 5t
printf 'tune lx in 1.. where\n' >"$tmp/syntax.fwh"
fails 2 "syntax.fwh:1:16: error" $tune --strategy "$tmp/syntax.fwh" --budget 5t
fails 2 "cannot read" $tune --strategy "$tmp/absent.fwh" --budget 5t
fails 2 "needs a FILE.fwh" $tune --strategy heuristic --budget 5t

$tune --where "lx == 8 and ly == 2" --budget 8t --json "$tmp/w.json" >/dev/null &&
    grep -q '"point": "lx=8 ly=2 ' "$tmp/w.json" && ok "--where holds" || not_ok "--where holds"
fails 2 "where:1:1: error" $tune --where "nn == 1" --budget 5t
fails 2 "leaves no point of the space" $tune --where "lx == 3" --budget 5t

# A step waits for the trials of the one before, and then goes on.
printf 'set lx = 8, ly = 8\ntune bx in 1..2\ntune by in 4..8\n' >"$tmp/two.fwh"
$tune --strategy "$tmp/two.fwh" --budget 40t --store "$tmp/two.db" >/dev/null
rows "$tmp/two.db" | grep -q '|lx=8 ly=8 .* by=8 ' && ok "the second step ran" ||
    not_ok "the second step ran"
