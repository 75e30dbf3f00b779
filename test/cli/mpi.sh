# forewarp tune on several devices: by MPI, and in one process. Two ranks try every point of
# a small space on PoCL and find what one process finds; what a killed run had is not lost.
. test/cli/common
stores "$tmp/one.db"

# A kernel whose time is in REPEAT, so that the best point does not hang on the clock.
cat >"$tmp/k.cl" <<'END'
kernel void k(global const float *x, global float *out)
{
    int i = get_global_id(0);
    float sum = 0;
    for (volatile int r = 0; r < REPEAT; r++)
        sum = x[i] + 1;
    out[i] = sum;
}
END
cat >"$tmp/k.json" <<'END'
{
  "files": "k.cl", "sizes": {"N": 4096},
  "parameters": {"REPEAT": [900, 300, 90, 30, 1], "WG": [4, 8, 16, 32]},
  "arguments": [{"name": "x", "type": "float", "shape": ["N"]},
                {"name": "out", "type": "float", "shape": ["N"], "access": "out"}],
  "launch": {"kernel": "k", "global": ["N"], "local": ["WG"]}
}
END
tune() { "$FOREWARP" tune "$tmp/k.json" -q --strategy exhaustive -b 100t -o "$tmp/out" "$@"; }
points() { rows "$1" | cut -d '|' -f 2,3 | sort; }

passes "one process" tune --store "$tmp/one.db" --json "$tmp/one"
points "$tmp/one.db" >"$tmp/all"
[ "$(wc -l <"$tmp/all")" = 20 ] && ok "tries every point" || not_ok "tries every point"
# What the device reaches is measured once.
for store in two m mpi k; do
    cp "$tmp/one.db" "$tmp/$store.db"
done
passes "two devices of one process" tune --fresh --store "$tmp/two.db" --json "$tmp/two" -d opencl:0,opencl:0
holds "took part" "$tmp/two" 'j["device"]["count"] == 2 and "REPEAT=1 " in j["best"]["point"]'
points "$tmp/two.db" | cmp -s - "$tmp/all" && ok "and tried the same" || not_ok "and tried the same"
passes "one that is missing" tune -b 2t --store "$tmp/m.db" -d opencl:0,opencl:99
grep -q "takes no part" "$tmp/stderr" && ok "is said to be" || not_ok "is said to be"
fails 2 "a device is" "$FOREWARP" tune "$tmp/k.json" -d opencl:0,moon -o "$tmp/out"

if ! ldd "$FOREWARP" | grep -q libmpi; then
    echo "skip MPI: it was not found when this was built"
    fails 2 "built without MPI" "$FOREWARP" tune "$tmp/k.json" --mpi -o "$tmp/out"
    finish
fi
if ! command -v mpirun >/dev/null; then
    echo "skip MPI: there is no mpirun"
    finish
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
ranks() { timeout 1800 mpirun -n 2 "$FOREWARP" tune "$tmp/k.json" -q --strategy exhaustive --mpi -o "$tmp/out" "$@"; }
passes "two ranks" ranks --fresh -b 100t --store "$tmp/mpi.db" --json "$tmp/mpi"
holds "both take part" "$tmp/mpi" 'j["device"]["count"] == 2 and sum(j["trials"].values()) == 20'
points "$tmp/mpi.db" | cmp -s - "$tmp/all" && ok "they try the same" || not_ok "they try the same"
holds "and find the same" "$tmp/mpi" 'j["best"]["point"].startswith("REPEAT=1 ")'
holds "as one" "$tmp/one" 'j["best"]["point"].startswith("REPEAT=1 ")'

# A search that fails before it calls on the others, and a rank that has no device.
fails 2 "there is no parameter" mpirun -n 2 "$FOREWARP" tune "$tmp/k.json" -q --mpi -o "$tmp/out" --where "moon > 1"
passes "one of two with a device" timeout 1800 mpirun -n 1 "$FOREWARP" tune "$tmp/k.json" -q --mpi -b 3t -o "$tmp/out" \
    --store "$tmp/mpi.db" --json "$tmp/mpi" : -n 1 sh -c '"$0" "$@"; exit 0' "$FOREWARP" tune "$tmp/k.json" -q --mpi \
    -o "$tmp/out" -d opencl:99
grep -q "rank 1 takes no part: no worker can use the device opencl:99" "$tmp/stderr" && ok "the other says why" || not_ok "the other says why"
holds "one measures" "$tmp/mpi" 'j["device"]["count"] == 1'

# MPI ends all ranks when one is killed, whichever it is; the same command then goes on from the store.
rank_of() {
    pgrep -f -- "tune $tmp/k.json.*--store $tmp/k.db" | while read -r pid; do
        tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -q "^OMPI_COMM_WORLD_RANK=$1\$" &&
            [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = forewarp ] && echo "$pid"
    done | head -n 1
}
for killed in 1 0; do
    rm -f "$tmp"/k.db*
    passes "some points" ranks --fresh -b 7t --store "$tmp/k.db"
    before=$(rows "$tmp/k.db" | wc -l)
    ranks -b 100t --store "$tmp/k.db" >"$tmp/stdout" 2>&1 &
    mpi=$! rank=
    while kill -0 $mpi 2>/dev/null && [ -z "$rank" ]; do
        rank=$(rank_of $killed)
        [ "$rank" ] || sleep 0.1
    done
    [ "$rank" ] && kill -9 "$rank"
    # mpirun of Open MPI 4.1 may wait for ever for a rank that was killed as it began: it hung once with no rank left.
    gone=0
    while kill -0 $mpi 2>/dev/null && [ $gone -lt 600 ]; do
        [ "$(rank_of 0)$(rank_of 1)" ] && gone=0 || gone=$((gone + 1))
        sleep 0.1
    done
    pkill -9 -f "^mpirun .*--store $tmp/k.db" || :
    wait $mpi
    status=$?
    [ $status != 0 ] && [ $status != 124 ] && ok "rank $killed, killed, ends the run" || not_ok "rank $killed, killed, ends the run: $status"
    [ "$(rows "$tmp/k.db" | wc -l)" -ge "$before" ] && ok "what was tried is kept" || not_ok "what was tried is kept"
    passes "and the run goes on" ranks -b 100t --store "$tmp/k.db" --json "$tmp/mpi"
    holds "from there" "$tmp/mpi" "j['reused'] >= $before and sum(j['trials'].values()) == 20"
done
finish
