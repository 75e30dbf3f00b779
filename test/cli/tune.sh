# forewarp tune: its JSON, its kernel, its store, its seed.
. test/cli/common
stores "$tmp/r.db" "$tmp/b.db" "$tmp/c.db" "$tmp/d.db" "$tmp/e.db" # a.db is of a new user

tune() {
    "$FOREWARP" tune examples/jacobi2d.fw -s N=96,M=64 -q --budget 8t "$@"
}

passes "tune" tune --store "$tmp/a.db" -o "$tmp/out" --json "$tmp/j" --seed 5
for fact in \
    'j["problem"] == "jacobi2d N=96 M=64"' \
    'j["device"]["name"] and len(j["device"]["fingerprint"]) == 16' \
    'j["strategy"] == "auto" and j["seed"] == 5' \
    'j["elapsed_s"] > 0 and j["reused"] == 0' \
    'set(j["trials"]) == {"ok", "build-failed", "out-of-resources", "crashed", "timed-out",
                          "wrong-result", "failed"}' \
    'sum(j["trials"].values()) == 8 and j["trials"]["ok"] > 0' \
    'j["trials"]["wrong-result"] == 0' \
    'j["best"]["point"].count("=") >= 4' \
    '0 < j["best"]["time_ns"] and 0 < j["baseline_ns"]' \
    'os.path.getsize(j["best"]["kernel"]) > 100' \
    'all(g % l == 0 for g, l in zip(j["best"]["launch"]["global"],
                                    j["best"]["launch"]["local"]))' \
    'len(j["best"]["launch"]["global"]) == 3' \
    'j["best"]["checked"] is True' \
    'j["first_pick"].count("=") >= 4' \
    'j["roofline"]["bytes"] == 2 * 4 * 96 * 64 and j["roofline"]["flops"] == 10 * 96 * 64' \
    'j["roofline"]["ns"] == max(j["roofline"]["memory_ns"], j["roofline"]["compute_ns"]) > 0' \
    'abs(j["roofline"]["share"] * j["best"]["time_ns"] - j["roofline"]["ns"]) < 1e-6 * j["roofline"]["ns"]'
do
    holds "json: $(echo "$fact" | head -n 1)" "$tmp/j" "$fact"
done
cp "$tmp/j" "$tmp/first"

rows "$tmp/a.db" >"$tmp/rows"
[ "$(wc -l <"$tmp/rows")" = 8 ] && ok "a row a trial" || not_ok "a row a trial"
passes "tune again" tune --store "$tmp/a.db" -o "$tmp/out" --json "$tmp/j" --seed 5
holds "all trials come from the store" "$tmp/j" 'j["reused"] == 8'
trials() { cut -d '|' -f 1-3,5; } # without times: the best few are measured again
trials <"$tmp/rows" >"$tmp/trials"
rows "$tmp/a.db" | trials | cmp -s - "$tmp/trials" && ok "no trial is new" || not_ok "no trial is new"
fastest() { rows "$1" | grep '|ok|' | sort -t '|' -k 4,4g | head -n 1 | cut -d '|' -f 2; }
holds "the fastest of the store is what was printed" "$tmp/j" "j['best']['point'] == '$(fastest "$tmp/a.db")'"

passes "tune at random" tune --strategy random --budget 12t --store "$tmp/r.db" -o "$tmp/out" --seed 5
passes "tune elsewhere" tune --strategy random --budget 12t --store "$tmp/b.db" -o "$tmp/out" --seed 5
points() { rows "$1" | cut -d '|' -f 2 | sort; }
points "$tmp/r.db" >"$tmp/pa"
points "$tmp/b.db" | cmp -s - "$tmp/pa" && ok "same seed, same points" ||
    not_ok "same seed, same points"
passes "tune with another seed" tune --strategy random --budget 12t --store "$tmp/c.db" -o "$tmp/out" --seed 6
points "$tmp/c.db" | cmp -s - "$tmp/pa" && not_ok "other seed, other points" ||
    ok "other seed, other points"

passes "tune --fresh" tune --store "$tmp/a.db" -o "$tmp/out" --json "$tmp/j" --fresh
holds "fresh forgets" "$tmp/j" 'j["reused"] == 0'

passes "devices" "$FOREWARP" devices --store "$tmp/b.db" --measure -d host --json "$tmp/j"
holds "one device" "$tmp/j" '[d["id"] for d in j] == ["host"]'
holds "ceilings" "$tmp/j" 'all(j[0]["measured"][k] > 0 for k in ("copy_gbs", "float_gflops", "double_gflops"))'
mv "$tmp/j" "$tmp/measured"
passes "devices again" "$FOREWARP" devices --store "$tmp/b.db" -d host --json "$tmp/j"
cmp -s "$tmp/j" "$tmp/measured" && ok "what was measured is kept" || not_ok "what was measured is kept"

passes "emit --best" "$FOREWARP" emit examples/jacobi2d.fw -s N=96,M=64 --best --store "$tmp/b.db"
passes "run --best --check" "$FOREWARP" run examples/jacobi2d.fw -s N=96,M=64 --best --check --store "$tmp/b.db"
passes "run --best of a size not seen" "$FOREWARP" run examples/jacobi2d.fw -s N=95,M=64 --best --check --store "$tmp/b.db"
grep -q "plan of jacobi2d N=96 M=64, predicted" "$tmp/stderr" && ok "says of which size" || not_ok "says of which size"
fails 1 "nothing is stored" "$FOREWARP" run examples/jacobi2d9.fw -s N=95,M=64 --best --store "$tmp/b.db"
for strategy in $("$FOREWARP" help strategies | awk '!/needs / {print $1}'); do
    passes "strategy $strategy" tune --strategy "$strategy" --store "$tmp/d.db" --fresh \
        -o "$tmp/out" --budget 3t
done
passes "tune on the host" "$FOREWARP" tune examples/dot.fw -s N=4096 -d host -q --budget 4t \
    --store "$tmp/d.db" -o "$tmp/host"
ls "$tmp"/host/*.c >/dev/null 2>&1 && ok "a C kernel" || not_ok "a C kernel"
# Too large for the interpreter, and for that also when the sizes are first made small.
passes "many steps in three dimensions have a reference" "$FOREWARP" tune \
    examples/an5d/star3d1r.fw -s N=55,M=55,K=55,T=26 -d host -q --budget 1t \
    --store "$tmp/d.db" -o "$tmp/host"

passes "a budget of 4 s" "$FOREWARP" tune examples/jacobi2d.fw -s N=64,M=64 -d host -q --budget 4s \
    --store "$tmp/e.db" -o "$tmp/out" --json "$tmp/j"
holds "ends the search" "$tmp/j" '0 < sum(j["trials"].values()) < j["space"]'
# What takes longer than the budget is ended, and said; nothing that was not done is stored.
cat >"$tmp/slow" <<'END'
#!/bin/sh
case $1 in --version) ;; *) sleep 600 ;; esac
exec cc "$@"
END
chmod +x "$tmp/slow"
fails 1 'within the budget of 0.5 s' env CC="$tmp/slow" XDG_CACHE_HOME="$tmp/c2" "$FOREWARP" \
    tune examples/dot.fw -s N=64 -d host -q -b 0.5s --store "$tmp/f.db" -o "$tmp/out"
[ -z "$(rows "$tmp/f.db" 2>/dev/null)" ] && ok "no trial of it" || not_ok "no trial of it"

# A budget that the reference takes all of ends with a kernel that was checked: here, or at small sizes.
cat >"$tmp/grow.fw" <<'EOF'
size N, M
def grow(u, v: [N][M]float): ([N][M]float, [N][M]float) =
  iterate(12, \u v -> (map2(\a b -> a + a * b * b, zip2(u, v)), map2(\a b -> b - 0.5 * b * a * a, zip2(u, v))), (u, v))
EOF
cat >"$tmp/heat.fw" <<'EOF'
size N, M, T
def heat(a: [N][M]float): [N][M]float =
  a |> iterate(T, \x -> x |> pad2(1, 1, clamp) |> slide2(3, 1)
    |> map2(\p -> p[1][1] + 0.2 * (p[0][1] + p[1][0] + p[1][2] + p[2][1] - 4 * p[1][1])))
EOF
for program in grow.fw,N=1024,M=1024 heat.fw,N=1024,M=1024,T=10; do
    passes "$program in less than its reference" "$FOREWARP" tune "$tmp/${program%%,*}" -s "${program#*,}" -d host -q \
        --budget 1s --fresh --store "$tmp/short.db" -o "$tmp/short" --json "$tmp/short.json"
    holds "a kernel of $program" "$tmp/short.json" "j['best']['point'] and j['trials']['wrong-result'] == 0"
done

# Its reference takes minutes. What was right at small sizes only is said to be, and is no trial.
heat() {
    "$FOREWARP" tune "$tmp/heat.fw" -s N=4096,M=4096,T=6000 -d host -q --budget 6s --store "$tmp/small.db" -o "$tmp/small" "$@"
}
passes "no time for any kernel" heat --json "$tmp/small.json"
holds "the plain kernel is not timed" "$tmp/small.json" "j['best']['time_ns'] is None and not j['best']['checked']"
holds "it says where it is right" "$tmp/small.json" "'is right at N=32 M=32 T=32,' in j['reference'] and not sum(j['trials'].values())"
[ -s "$tmp/small/heat.c" ] && ok "its text" || not_ok "its text"
[ -z "$(rows "$tmp/small.db")" ] && ok "nothing is stored" || not_ok "nothing is stored"
passes "a report of it" "$FOREWARP" report "$tmp/small/heat.run.json" -o "$tmp/small/heat.html"
cat >"$tmp/wrong" <<'END'
#!/bin/sh
case $* in *c++*) ;; *) for word; do case $word in *.c) sed -i 's/0\.2f/0.3f/g' "$word" ;; esac; done ;; esac
exec cc "$@"
END
chmod +x "$tmp/wrong"
fails 1 "no kernel was found" env CC="$tmp/wrong" XDG_CACHE_HOME="$tmp/c3" "$FOREWARP" tune "$tmp/heat.fw" -s N=4096,M=4096,T=6000 \
    -d host -q -b 6s --store "$tmp/small.db" -o "$tmp/small"

# What was compared within one tolerance, for want of time for bounds, is no trial of those who have it.
"$FOREWARP" tune examples/dot.fw -s N=64 -d host -q -b 0.1s --store "$tmp/lesser.db" -o "$tmp/out" >"$tmp/stdout" 2>&1
versions=$("$PYTHON" -c 'import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute("SELECT DISTINCT version FROM session JOIN trial ON session = session.id"))' "$tmp/lesser.db")
case $versions in '' | *-lesser*) ok "stored apart" ;; *) not_ok "stored apart" "$versions" ;; esac
passes "tune with time for bounds" "$FOREWARP" tune examples/dot.fw -s N=64 -d host -q -b 2t --store "$tmp/lesser.db" -o "$tmp/out" --json "$tmp/j"
holds "believes none of them" "$tmp/j" 'j["reused"] == 0 and "with bounds" in j["reference"]'
# Inputs from files: a sparse product, whose rows begin where random numbers do not. Trials on
# them serve no search on others.
cat >"$tmp/csr.fw" <<'END'
size R, Z
def csr(start: [R+1]int, column: [Z]int, value: [Z]float, x: [R]float): [R]float =
  array(R, \r -> (iterate(Z, \s k -> if k < start[r + 1] then (s + value[k] * x[column[k]], k + 1) else (s, k),
    (0.0, start[r]))).0)
END
if "$PYTHON" - "$tmp" <<'END'
import sys
try:
    import numpy as np
except ImportError:
    sys.exit(1)
rng = np.random.default_rng(1)
start = np.concatenate([[0], np.sort(rng.integers(0, 4000, 299)), [4000]])
np.save(f"{sys.argv[1]}/start.npy", start.astype(np.int32))
np.save(f"{sys.argv[1]}/column.npy", rng.integers(0, 300, 4000).astype(np.int32))
END
then
    csr() {
        "$FOREWARP" tune "$tmp/csr.fw" -s R=300,Z=4000 -d host -q --budget 4t --store "$tmp/e.db" -o "$tmp/csr" --json "$tmp/j" "$@"
    }
    given="--in start=$tmp/start.npy --in column=$tmp/column.npy"
    passes "tune on files" csr $given
    holds "on them alone" "$tmp/j" 'j["trials"]["ok"] == 4 and j["reused"] == 0 and "on the inputs given" in j["reference"]'
    passes "and again" csr $given
    holds "their trials" "$tmp/j" 'j["reused"] == 4'
    passes "on random inputs" csr
    holds "have others" "$tmp/j" 'j["reused"] == 0'
    fails 2 "there is no input \`rows\`; there are start, column, value, x" "$FOREWARP" tune "$tmp/csr.fw" -s R=300,Z=4000 \
        -d host --in rows="$tmp/start.npy"
    fails 2 "elements of type" "$FOREWARP" tune "$tmp/csr.fw" -s R=300,Z=4000 -d host --store "$tmp/e.db" --in x="$tmp/start.npy"
    fails 2 "--in is not for ranges of sizes" "$FOREWARP" tune "$tmp/csr.fw" -s R=300:600:100,Z=4000 -d host $given
else
    echo "skip inputs from files: NumPy is not installed"
fi
finish
