# --math strict: the results of random points on PoCL and the host are the same to the bit, for prefixes and for products;
# where a function is not rounded correctly that is said.
. test/cli/common
stores -
passes "points have the same bits" "$PYTHON" test/truth/strict.py --points 3 --size 20 examples/cumsum_rows.fw examples/mm.fw
cp "$tmp/stdout" "$tmp/said"
passes "none differs" grep -q "^1[0-2] passed, 0 failed" "$tmp/said"
passes "exp is an exception" "$FOREWARP" tune examples/softmax_online.fw -s N=5,M=40 --math strict -d host -b 1t -q -o "$tmp/out"
cp "$tmp/stdout" "$tmp/said"
passes "which is said" grep -q "not to the bit, because of exp" "$tmp/said"
passes "a kernel" "$FOREWARP" emit examples/jacobi2d.fw -s N=8,M=8 --math strict -o "$tmp/k.cl"
passes "is not contracted" grep -q "FP_CONTRACT OFF" "$tmp/k.cl"
passes "of CUDA" "$FOREWARP" emit examples/asum.fw -s N=4096 --math strict -t cuda --device-model nvidia-h200 -o "$tmp/k.cu"
passes "neither" grep -q -- "--fmad=false" "$tmp/k.cu"
finish
