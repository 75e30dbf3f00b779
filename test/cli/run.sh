# forewarp run: on NumPy's arrays, against NumPy; and on its own.
. test/cli/common

if "$PYTHON" -c 'import numpy' 2>/dev/null; then
    "$PYTHON" test/cli/numpy_check.py "$FOREWARP" "$tmp" || failures=1
else
    echo "skip against NumPy: it is not installed"
fi
passes "run --check" "$FOREWARP" run examples/jacobi2d.fw -s N=100,M=70 --check --json "$tmp/j"
holds "json: time" "$tmp/j" 'j["time_ns"] > 0'
holds "json: error" "$tmp/j" '0 <= j["max_error"] < 1e-5'
passes "run" "$FOREWARP" run examples/jacobi2d.fw -s N=100,M=70 --json "$tmp/k"
holds "json: no error unasked" "$tmp/k" 'j["max_error"] is None'
holds "json: problem" "$tmp/j" 'j["problem"] == "jacobi2d N=100 M=70"'
# Inputs may be called what the output is.
for name in out out_ out_0; do
    echo "size N def f(x: [N]float, $name: [N]float) = zip(x, $name) |> map(\\p -> (p.0 + p.1, p.0))" >"$tmp/out.fw"
    passes "an input $name" "$FOREWARP" run "$tmp/out.fw" -s N=8 -d host --check
done
for seed in 1 1 2; do
    "$FOREWARP" run examples/jacobi2d.fw -s N=20,M=20 --seed $seed -o "$tmp/$seed.npy" >/dev/null
    mv "$tmp/$seed.npy" "$tmp/last$seed.npy.$(ls "$tmp" | wc -l)"
done
[ "$(cat "$tmp"/last1* | cksum)" != "$(cat "$tmp"/last2* | cksum)" ] &&
    [ "$(ls "$tmp"/last1* | while read -r f; do cksum <"$f"; done | uniq | wc -l)" = 1 ] &&
    ok "inputs follow the seed" || not_ok "inputs follow the seed"
finish
