# forewarp tune on a GPU that test/measure/fake_cuda.c plays: points run as a stream while
# others are compiled (src/tune/tune_stream.c), and what the space has only there.
. test/cli/common
export LC_ALL=C
mkdir "$tmp/lib64"
cc -std=c11 -D_GNU_SOURCE -shared -fPIC -O1 -o "$tmp/lib64/libnvrtc.so" \
    test/measure/fake_cuda.c -ldl || { echo "skip stream: no compiler" && exit 0; }
ln -s libnvrtc.so "$tmp/lib64/libcuda.so.1"
export LD_LIBRARY_PATH="$tmp/lib64" CUDA_HOME="$tmp" FAKE_CUDA_LOG="$tmp/compilations"

# The fake knows no barriers.
tune() {
    "$FOREWARP" tune examples/jacobi2d.fw -s N=12,M=16 -d "${devices:-cuda:0}" -q --store "$tmp/t.db" \
        --where "scheme == 'global' and lx * ly <= 64" -o "$tmp/out" --json "$tmp/j" "$@"
}

passes "random" tune --strategy random --budget 20t --seed 3
holds "all ran" "$tmp/j" 'sum(j["trials"].values()) == j["trials"]["ok"] == 20 and j["reused"] == 0'
holds "checked" "$tmp/j" 'j["best"]["checked"] is True and j["device"]["name"] == "Fake GPU"'
[ "$(rows "$tmp/t.db" | wc -l)" = 20 ] && ok "stored" || not_ok "stored"
[ "$(cut -d' ' -f1 "$tmp/compilations" | sort -u | wc -l)" -gt 1 ] &&
    ok "several compile" || not_ok "several compile" "$(cat "$tmp/compilations")"

# What is stored is not run again, and the same search goes on behind it.
passes "again" tune --strategy random --budget 24t --seed 3
holds "four are new" "$tmp/j" 'sum(j["trials"].values()) == 24 and j["reused"] == 20'
[ "$(rows "$tmp/t.db" | wc -l)" = 24 ] && ok "four stored" || not_ok "four stored"

# A strategy that has nothing left ends; one that waits for its answers does not.
passes "exhaustive" tune --strategy exhaustive --budget 999t \
    --where "scheme == 'global' and lx == 8 and ly == 4 and by == 2 and cx == 1 and
             cy == 1 and bx == 1 and border == 'inline'"
holds "all of seven walks, and the plain point" "$tmp/j" \
    'sum(j["trials"].values()) <= 30 and j["trials"]["ok"] >= 7'
passes "steps" tune --strategy heuristics/dimension.fwh --budget 24t
holds "steps are followed" "$tmp/j" 'j["trials"]["ok"] == 24 and j["trials"]["wrong-result"] == 0'

# Several devices share one stream, also of a strategy that learns.
export FAKE_CUDA_DEVICES=3
devices=cuda:0,cuda:1,cuda:2
for strategy in random auto; do
    passes "three devices, $strategy" tune --fresh --strategy $strategy --budget 60t
    holds "all ran, $strategy" "$tmp/j" 'j["device"]["count"] == 3 and j["trials"]["ok"] == 60'
done
unset FAKE_CUDA_DEVICES devices

# Kernels for work-groups of any shape: strided outputs, sizes that do not divide.
run="$FOREWARP run examples/jacobi2d.fw -d cuda:0 --extra groups,loads --check"
for point in "lx=8 ly=2 bx=2 cx=2 cy=2 group=any" "lx=4 ly=4 bx=4 by=2 group=any loads=all" \
    "lx=8 ly=1 by=2 walk=2 group=any border=split" "lx=2 ly=2 bx=2 cx=4 cy=2 loads=all"; do
    passes "$point" $run -s N=16,M=32 -p "$point"
    passes "$point, odd" $run -s N=13,M=27 -p "$point"
done
emit="$FOREWARP emit examples/jacobi2d.fw -s N=64,M=64 --extra groups,loads -d cuda:0"
for shape in "lx=8 ly=2" "lx=64 ly=1"; do
    $emit -p "$shape bx=2 cx=2 group=any" | grep -v "local (" >"$tmp/${shape%% *}.cu"
done
cmp "$tmp/lx=8.cu" "$tmp/lx=64.cu" >/dev/null && ok "one text" || not_ok "one text"
grep -q "blockDim.x" "$tmp/lx=8.cu" && ok "the size is asked" || not_ok "the size is asked"
$emit -p "lx=8 bx=4 loads=all" | grep -q "float a_0" && not_ok "all loads" || ok "all loads"
$emit -p "lx=8 bx=4" | grep -q "float a_0" && ok "equal loads" || not_ok "equal loads"
fails 2 "breaks the constraint" $FOREWARP run examples/jacobi2d.fw -s N=16,M=16 -d cuda:0 --extra groups \
    -p "scheme=tiled group=any"
fails 2 "images, groups, loads and banks" $FOREWARP emit examples/jacobi2d.fw -s N=16,M=16 --extra group

# Kernels that are too long are left out, also those of several arrays: predicting them ends.
cat >"$tmp/levels.fw" <<'END'
size N, M, T
def steps(before: [N][M]float, now: [N][M]float) = iterate(T, \old new -> (new,
  zip2(old, new |> pad2(2, 2, clamp) |> slide2(5, 1)) |> map2(\b p -> 0.1*p[2][2] - 0.25*b
    + 0.03*(p[1][2] + p[3][2] + p[2][1] + p[2][3]) + 0.08*(p[0][2] + p[4][2] + p[2][0] + p[2][4]))),
  (before, now)).1
END
passes "kernels that are too long" "$FOREWARP" predict "$tmp/levels.fw" -s N=289,M=4615,T=16 --target cuda \
    --device-model nvidia-h100 --shares
finish
