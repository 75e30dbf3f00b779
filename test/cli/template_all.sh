# Every template that comes with forewarp: a few random points at a small size are all right.
. test/cli/common
try() {
    passes "$1 is tuned" timeout 1800 "$FOREWARP" tune "templates/$1.json" -s "$2" --budget 6t --seed 3 --strategy random \
        --store "$tmp/trials.db" --out "$tmp/out" --json "$tmp/$1.json" -q
    holds "$1 is right" "$tmp/$1.json" 'sum(j["trials"][s] for s in ("wrong-result", "build-failed", "crashed", "failed")) == 0'
}
try convolution H=50,W=70
try gemm M=128,N=128,K=32
try transpose H=50,W=70
try reduction N=50021
try nbody N=1024
try raycasting W=30,H=20,S=33
try stereo W=40,H=30,D=8,R=2
# The example of the manual.
"$PYTHON" - "$tmp" <<'END'
import re, sys
for name, text in re.findall(r"`(scale[\w.]*)`[^`]*?(?:`[^`]*`[^`]*?)*?\n```\n(.*?)```", open("doc/problems.md").read(), re.S):
    open(sys.argv[1] + "/" + name, "w").write(text)
END
passes "the example of doc/problems.md" "$FOREWARP" run "$tmp/scale.json" -s N=1000 -p EACH=4 --check
for file in templates/*.json; do
    grep -q "\`${file#templates/}\`" doc/problems.md && ok "$file is in the manual" || not_ok "$file is in the manual"
done
finish
