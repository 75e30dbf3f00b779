# Scripts of calls through everything that tuning gives any problem: strategies, the store,
# constraints, records and reports, formats of others, several devices, plans at other sizes.
. test/cli/common
cat >"$tmp/small.fws" <<'EOF'
VECTOR3 x; SCALAR n, y; input x;
n = vnorm3(x);
y = mul(n, n);
return n, y;
EOF
tune() { "$FOREWARP" tune "$tmp/small.fws" -s T=1003 -q -o "$tmp/out" "$@"; }
right="j['best']['checked'] and j['trials']['ok'] > 0 and j['trials']['wrong-result'] == j['trials']['build-failed'] == 0"

for strategy in random local; do
    passes "tune by $strategy" tune --strategy $strategy --budget 5t --seed 4 \
        --store "$tmp/$strategy.db" --json "$tmp/$strategy.json" --t4 "$tmp/$strategy.t4.json" \
        --cache "$tmp/$strategy.cache.json"
    holds "all right by $strategy" "$tmp/$strategy.json" "($right and j['strategy'] == '$strategy' and
        sum(j['trials'].values()) == 5 and j['space'] > 1000 and j['routines_timed'] == 0)"
    holds "T4 of $strategy" "$tmp/$strategy.t4.json" "(len(j['results']) == 5 and
        {'cover', 'threads1', 'style1', 'block2'} <= set(j['results'][0]['configuration']))"
    holds "cache of $strategy" "$tmp/$strategy.cache.json" "len(j['cache']) == 5"
done

# Gone on with: nothing is run twice.
passes "resume" tune --strategy random --budget 7t --seed 4 --store "$tmp/random.db" --json "$tmp/more.json"
holds "from the store" "$tmp/more.json" "$right and j['reused'] == 5 and sum(j['trials'].values()) == 7"
holds "a row a trial" "$tmp/more.json" "$(rows "$tmp/random.db" | grep -c cover=) == 7"

passes "only some points" tune --strategy random --budget 3t --store "$tmp/where.db" \
    --where "cover == '12' and block1 >= 64" --json "$tmp/where.json"
holds "those" "$tmp/where.json" "($right and j['best']['solution'].startswith('12/') and
    int(j['best']['point'].split('block1=')[1].split()[0]) >= 64)"
echo "tune cover, threads1, style1, block1, threads2, style2, block2 where block1 == 16 and block2 in (0, 16)" >"$tmp/h.fwh"
passes "a heuristic file" tune --strategy "$tmp/h.fwh" --budget 4t --store "$tmp/h.db" --json "$tmp/h.json"
holds "followed" "$tmp/h.json" "$right and j['strategy'] == 'heuristic'"
[ "$(rows "$tmp/h.db" | grep -c 'block1=16 .*block2=\(0\|16\)|')" = 3 ] && ok "its step" || not_ok "its step"

# In the order of prediction, by default.
passes "tune" tune --budget 6t --sample 2 --store "$tmp/p.db" --json "$tmp/p.json"
holds "by prediction" "$tmp/p.json" "($right and j['strategy'] == 'predicted' and j['routines_timed'] > 0 and
    sum(j['trials'].values()) <= 8 and len(j['random']) == 2)"
holds "in order" "$tmp/p.json" "(4 <= len(j['solutions']) <= 6 and 0 <= j['best']['rank'] < len(j['solutions']) and
    [s['predicted_ns'] for s in j['solutions']] == sorted(s['predicted_ns'] for s in j['solutions']))"
holds "the rank of the best" "$tmp/p.json" "(j['best']['solution'] not in [s['solution'] for s in j['solutions']] or
    j['solutions'][j['best']['rank']]['solution'] == j['best']['solution'])"
holds "beside unfused and one kernel" "$tmp/p.json" "(j['unfused_ns'] > 0 and j['single_ns'] > 0 and
    min(j['unfused_ns'], j['single_ns']) >= 0.5 * j['best']['time_ns'])"
grep -q 'by prediction\|predicted to be fast' "$tmp/stdout" && ok "the rank" || not_ok "the rank"
passes "its record" "$FOREWARP" report "$tmp/out/small.run.json" --html "$tmp/p.html"
grep -q 'small T=1003' "$tmp/p.html" && grep -q 'cover' "$tmp/p.html" && grep -q 'small_k0' "$tmp/p.html" &&
    ok "as a page" || not_ok "as a page"
passes "two devices" "$FOREWARP" tune "$tmp/small.fws" -s T=1003 -q -o "$tmp/out" -d opencl:0,opencl:0 \
    --strategy random --budget 4t --seed 9 --store "$tmp/two.db" --json "$tmp/two.json"
holds "share the search" "$tmp/two.json" "$right and j['device']['count'] == 2"

# Its plan, elsewhere.
best="--best --store $tmp/random.db"
passes "run the best" "$FOREWARP" run "$tmp/small.fws" -s T=1003 $best --check -o "$tmp/n.npy" -o "$tmp/y.npy"
grep -q 'agrees with the reference' "$tmp/stdout" && ok "checked" || not_ok "checked"
passes "other inputs" "$PYTHON" -c "import numpy as np
np.save('$tmp/x.npy', np.random.default_rng(1).random((1003, 3), 'float32'))
n, y = np.load('$tmp/n.npy'), np.load('$tmp/y.npy')
assert n.shape == y.shape == (1003,) and np.allclose(n * n, y, 1e-5)"
passes "run on them" "$FOREWARP" run "$tmp/small.fws" -s T=1003 $best --in x="$tmp/x.npy" -o "$tmp/n.npy"
passes "right" "$PYTHON" -c "import numpy as np
assert np.allclose(np.linalg.norm(np.load('$tmp/x.npy'), axis=1), np.load('$tmp/n.npy'), 1e-5)"
passes "at another size" "$FOREWARP" run "$tmp/small.fws" -s T=2001 $best --check
grep -q 'warning C053' "$tmp/stderr" && ok "said" || not_ok "said"
passes "emit" "$FOREWARP" emit "$tmp/small.fws" -s T=1003 $best
grep -q 'small_k0(' "$tmp/stdout" && ok "kernels" || not_ok "kernels"
# What is not named is plain, and goes with what is.
passes "a cover" "$FOREWARP" emit "$tmp/small.fws" -s T=1003 -d opencl:0 -p "cover=12 block1=64"
[ "$(grep -c '^kernel' "$tmp/stdout")" = 1 ] && grep -q '12/[0-9.]* x64 ' "$tmp/stdout" &&
    ok "of one kernel" || not_ok "of one kernel"
fails 2 "threads2, style2, block2 are '-', '-', 0 where cover has no kernel from call 2 on" \
    "$FOREWARP" emit "$tmp/small.fws" -s T=1003 -d opencl:0 -p "cover=12 block2=64"
passes "check" "$FOREWARP" check "$tmp/small.fws" --json "$tmp/c.json"
holds "what it takes" "$tmp/c.json" "(j['calls'] == 2 and [i['name'] for i in j['inputs']] == ['x'] and
    [o['name'] for o in j['outputs']] == ['n', 'y'])"

# On another device: what fits its blocks.
big='451236/1.1.1.1.1.1 x256 words'
fails 2 'is no solution, or does not fit' "$FOREWARP" fuse examples/fusion/paper.fws -p "$big"
passes "more on chip" "$FOREWARP" fuse examples/fusion/paper.fws -d opencl:0 -p "$big"
fails 2 'is no solution, or does not fit' \
    "$FOREWARP" fuse examples/fusion/paper.fws --device-model amd-r9-295x2 -p "$big"

# What is wrong with it.
tune="$FOREWARP tune $tmp/small.fws -s T=1003 -q -o $tmp/out"
fails 2 "size T has no value" "$FOREWARP" tune "$tmp/small.fws" --strategy random
fails 2 'C019: strategy `ranked` asks a model' $tune --strategy ranked --budget 2t
fails 2 'C010: there is no strategy `nobody`' $tune --strategy nobody
fails 2 'C079: points at random besides' $tune --strategy random --sample 3
fails 2 "error S00" $tune --where 'cover == '
fails 2 'C042: no point of the space' $tune --where 'block1 == 3'
sed 's/vnorm3/vnorm4/' "$tmp/small.fws" >"$tmp/bad.fws"
fails 2 'bad.fws:2:5: error F008: there is no function `vnorm4`' "$FOREWARP" tune "$tmp/bad.fws" -s T=9
fails 2 'bad.fws:2:5: error F008' "$FOREWARP" check "$tmp/bad.fws"
fails 2 'bad.fws:2:5: error F008' "$FOREWARP" emit "$tmp/bad.fws" -s T=9
fails 2 'C032: forewarp count is for programs' "$FOREWARP" count "$tmp/small.fws" -s T=9
{
    echo "SCALAR x0; input x0;"
    for i in $(seq 24); do echo "SCALAR x$i; x$i = add(x$((i - 1)), x0);"; done
    echo "return x24;"
} >"$tmp/many.fws"
fails 2 'many.fws:23:13: error F037: 24 calls' "$FOREWARP" tune "$tmp/many.fws" -s T=9 --strategy random
finish
