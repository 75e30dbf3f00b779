# forewarp features: of a program at a point, of a lowered program as it stands, on GPUs that
# are not there.
. test/cli/common

passes "features" "$FOREWARP" features examples/jacobi2d.fw -s N=4096,M=4096 \
    --device-model nvidia-h200 --json "$tmp/j"
grep -q 'global_loads  *5  *5  per thread' "$tmp/stdout" && ok "loads" || not_ok "loads"
holds "json: both" "$tmp/j" 'j["expression"]["global_loads"] == j["kernels"]["global_loads"] == 5'
holds "json: more of the kernels" "$tmp/j" '"occupancy" in j["kernels"] and "occupancy" not in j["expression"]'
passes "at a point" "$FOREWARP" features examples/jacobi2d.fw -s N=4096,M=4096 \
    --device-model amd-r9-295x2 -p "lx=64 ly=4 by=4" --json "$tmp/j"
holds "json: fewer loads" "$tmp/j" 'j["kernels"]["global_loads"] < j["expression"]["global_loads"] == 20'
passes "on a device present" "$FOREWARP" features examples/dot.fw -s N=4096 -d host

cat >"$tmp/l3.fw" <<'EOF'
size N
fun add(x, y: float): float = x + y
fun multByTwo(x: float): float = 2 * x
def example(a, b: [N]float) =
  join(mapWrg0(\x -> mapLcl0(multByTwo,
    toLocal(mapLcl0(\t -> add(t.0, t.1), x))), split(64, zip(a, b))))
EOF
passes "a lowered program" "$FOREWARP" features "$tmp/l3.fw" -s N=8192 \
    --device-model nvidia-titan-black --json "$tmp/j"
for kind in expression kernels; do
    holds "$kind: paper 000, Listing 3" "$tmp/j" "[j['$kind'][k] for k in ('global_loads', 'local_stores', 'local_loads', 'global_stores', 'local_size_0')] == [2, 1, 1, 1, 64]"
done
# With 32 words a line and 32 lanes; the paper's 8 lines for 4 are by its own list 4.
for pair in 1:1 4:4 32:32 64:32; do
    cat >"$tmp/l4.fw" <<EOF
size N
fun f(x: float): float = x + 1
def example(a: [N]float) = join(mapGlb0(\\r -> mapSeq(f, r), split(${pair%:*}, a)))
EOF
    passes "Listing 4, ${pair%:*}" "$FOREWARP" features "$tmp/l4.fw" -s N=262144 \
        --device-model nvidia-titan-black --json "$tmp/j"
    holds "Listing 4: ${pair#*:} lines" "$tmp/j" \
        "all(j[k]['cache_lines'] == ${pair#*:} for k in ('expression', 'kernels'))"
done
passes "emit a lowered program" "$FOREWARP" emit "$tmp/l3.fw" -s N=8192 -p lx=32 -t opencl \
    --device-model nvidia-titan-black
grep -q 'fw_k < 2' "$tmp/stdout" && ok "its loop" || not_ok "its loop"
passes "run a lowered program" "$FOREWARP" run "$tmp/l3.fw" -s N=8192 -d host --check
fails 2 "there is no device model" "$FOREWARP" features examples/jacobi2d.fw -s N=64,M=64 \
    --device-model nvidia
# Sizes that are open, and groups that find nothing to do.
printf 'size N generic\ndef sums(a: [3][N]float): [3]float = map(reduce(+, 0), a)\n' >"$tmp/sums.fw"
passes "a generic size" "$FOREWARP" features "$tmp/sums.fw" -s N=17 -d host
printf 'size N\ndef sum(a: [N]float): float = reduce(+, 0, a)\n' >"$tmp/sum.fw"
for size in 1 17 1000 100000; do
    passes "a sum of $size" "$FOREWARP" features "$tmp/sum.fw" -s N=$size -d host --json "$tmp/j"
    holds "counts of $size" "$tmp/j" "all(x >= 0 for x in j['kernels'].values())"
done
passes "help features" "$FOREWARP" help features
finish
