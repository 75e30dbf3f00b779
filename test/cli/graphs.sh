# Scripts of hundreds of calls, drawn at random: divided, covered, run.
. test/cli/common
stores -
draw() { "$PYTHON" test/random/graphs.py "$1" "$2" 7 >"$tmp/$1$2.fws"; }
each='j["covers"] and all(sorted(c for k in cover["kernels"] for c in k) == list(range(1, len(j["calls"]) + 1))
    for cover in j["covers"])'
for shape in chain dense wide; do
    for calls in 100 1000; do
        draw $shape $calls
        passes "fuse: $shape, $calls calls" "$FOREWARP" fuse "$tmp/$shape$calls.fws" --json "$tmp/g.json"
        holds "each call once" "$tmp/g.json" "$each"
        holds "in parts, and how good it is" "$tmp/g.json" \
            "j['parts'] >= $calls / 64 and 0 < j['least_words'] <= j['covers'][0]['words']"
        grep -q "divided into" "$tmp/stdout" && ok "said" || not_ok "said"
    done
    passes "emit: $shape" "$FOREWARP" emit "$tmp/${shape}1000.fws" -s T=37 -d host
    kernels=$(grep -c '_entry(' "$tmp/stdout")
    [ "$kernels" -ge 100 ] && [ "$kernels" -lt 1000 ] && ok "fewer kernels than calls" ||
        not_ok "fewer kernels than calls" "$kernels"
    passes "run: $shape, 100 calls" "$FOREWARP" run "$tmp/${shape}100.fws" -s T=37 -d host --check
done
passes "run: 1000 calls" "$FOREWARP" run "$tmp/dense1000.fws" -s T=37 -d host --check
grep -q 'agrees with the reference' "$tmp/stdout" && ok "right" || not_ok "right" "$(cat "$tmp/stdout")"
draw chain 1001
fails 2 'error F014: more than 1000 calls' "$FOREWARP" fuse "$tmp/chain1001.fws"
finish
