# Random scripts of calls against NumPy (test/random/scripts.py): six that stay, and four that
# change with the commit. One that fails is drawn again by its seed and number:
#   test/random/scripts.py build/forewarp FOLDER SEED NUMBER-NUMBER host opencl:0
. test/cli/common
stores -
draw() { "$PYTHON" test/random/scripts.py "$FOREWARP" "$tmp" "$@" || failures=1; }
draw fixed 6 host opencl:0
draw "$(git rev-parse HEAD 2>/dev/null || cksum <"$FOREWARP" | tr ' ' -)" 4 host=1
finish
