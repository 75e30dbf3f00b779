# Random scripts of calls against NumPy (test/random/scripts.py): six that stay, and four that
# change with the commit; and scripts of 24 to 100 calls and pipelines of 20 stages (large.py). One that fails is drawn again by its seed and number:
#   test/random/scripts.py build/forewarp FOLDER SEED NUMBER-NUMBER host opencl:0
. test/cli/common
stores -
draw() { "$PYTHON" test/random/scripts.py "$FOREWARP" "$tmp" "$@" || failures=1; }
draw fixed 6 host opencl:0
seed=$(git rev-parse HEAD 2>/dev/null || cksum <"$FOREWARP" | tr ' ' -)
draw "$seed" 4 host=1
large() { "$PYTHON" test/random/large.py "$FOREWARP" "$tmp" "$@" || failures=1; }
large fixed opencl:0 calls:40 stages:20
large "$seed" host calls:24 calls:40 calls:100 stages:20
finish
