# forewarp check: what it says of a program, in text and as JSON.
. test/cli/common

passes "check prints the program" "$FOREWARP" check examples/hotspot2d.fw --json "$tmp/j"
grep -q 'in *power: \[N\]\[M\]float' "$tmp/stdout" && ok "inputs" || not_ok "inputs"
grep -q 'out *\[N\]\[M\]float' "$tmp/stdout" && ok "output" || not_ok "output"
holds "json: name" "$tmp/j" 'j["name"] == "hotspot2d"'
holds "json: sizes" "$tmp/j" '[s["name"] for s in j["sizes"]] == ["N", "M"]'
holds "json: inputs" "$tmp/j" '[i["name"] for i in j["inputs"]] == ["temp", "power"]'
holds "json: shape" "$tmp/j" 'j["outputs"][0]["shape"] == ["N", "M"]'
holds "json: element" "$tmp/j" 'j["outputs"][0]["element"] == "float"'
passes "check with sizes" "$FOREWARP" check examples/wave2d.fw -s N=20,M=30,T=4 --json "$tmp/j"
holds "json: values" "$tmp/j" '[s["value"] for s in j["sizes"]] == [20, 30, 4]'
holds "json: two outputs" "$tmp/j" '[o["shape"] for o in j["outputs"]] == [[20, 30]] * 2'
passes "json alone on standard output" "$FOREWARP" check examples/jacobi2d.fw --json -
cp "$tmp/stdout" "$tmp/j"
holds "json: it parses" "$tmp/j" 'j["name"] == "jacobi2d"'
alone() {
    passes "alone: $1" "$FOREWARP" "$@"
    cp "$tmp/stdout" "$tmp/j"
    holds "it parses" "$tmp/j" 'j'
}
alone devices --json -
alone tune examples/asum.fw -s N=64 -d host -b 1t -q --store "$tmp/a.db" -o "$tmp/out" --json -
passes "a table alone" "$FOREWARP" explore examples/asum.fw -s N=64 --derived -n 2 -q --csv -
head -n 1 "$tmp/stdout" | grep -q '^# device' && ok "it is one" || not_ok "it is one" "$(head -n 1 "$tmp/stdout")"
for program in examples/*.fw; do
    passes "check $program" "$FOREWARP" check "$program"
done
passes "devices" "$FOREWARP" devices --json "$tmp/j"
holds "json: devices" "$tmp/j" '{"opencl:0", "host"} <= {d["id"] for d in j}'
holds "json: fingerprints" "$tmp/j" 'all(len(d["fingerprint"]) == 16 for d in j)'
for topic in '' check tune patterns operations strategies parameters words generic slide2 lx place2 min random compare budget '-p lx'; do
    # shellcheck disable=SC2086
    passes "help $topic" "$FOREWARP" help $topic
done
passes "emit" "$FOREWARP" emit examples/jacobi2d.fw -s N=64,M=64
grep -q 'void jacobi2d' "$tmp/stdout" && ok "a kernel" || not_ok "a kernel"
passes "emit c" "$FOREWARP" emit examples/jacobi2d.fw -s N=64,M=64 --target c -o "$tmp/k.c"
grep -q 'static void' "$tmp/k.c" && ok "a C function" || not_ok "a C function"
finish
