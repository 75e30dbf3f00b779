# A tuning run killed at random moments, then the same command again: no finished trial is
# lost, none is repeated, and in the end the points are those of a run left alone. No worker
# and no compiler outlives its tuner.
. test/cli/common
export XDG_CACHE_HOME="$tmp/cache" # what a killed tuner had open is emptied: not the one that all share
stores "$tmp/killed.db" "$tmp/alone.db"

tune() {
    exec "$FOREWARP" tune examples/jacobi2d.fw -s N=64,M=64 -q --strategy random --budget 24t \
        --seed 9 --store "$1" -o "$tmp/out" --json "$2"
}
points() { rows "$1" | cut -d '|' -f 2 | sort; }

# Trials without their times: the best few are measured again.
trials() { rows "$1" | cut -d '|' -f 1-3,5; }
# kept BEFORE AFTER: every line of the one is a line of the other.
kept() { [ "$(sort "$1" "$2" | uniq -d | wc -l)" = "$(wc -l <"$1")" ]; }

: >"$tmp/before"
round=0
for wait in $("$PYTHON" -c 'import random
print(*(round(random.uniform(0.8, 2.2), 2) for _ in range(4)))'); do
    round=$((round + 1))
    (tune "$tmp/killed.db" "$tmp/j") >/dev/null 2>"$tmp/stderr" &
    pid=$!
    sleep "$wait"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    if [ ! -e "$tmp/killed.db" ]; then
        ok "round $round: killed after $wait s, before the store"
        continue
    fi
    # A transaction of the dead is rolled back by whoever opens the file next.
    if trials "$tmp/killed.db" >"$tmp/after" 2>/dev/null && kept "$tmp/before" "$tmp/after"; then
        ok "round $round: killed after $wait s with $(wc -l <"$tmp/after") trials"
        cp "$tmp/after" "$tmp/before"
    elif [ -s "$tmp/before" ]; then
        not_ok "round $round: killed after $wait s, trials lost"
    fi
done
passes "the same command to its end" sh -c "exec $FOREWARP tune examples/jacobi2d.fw \
    -s N=64,M=64 -q --strategy random --budget 24t --seed 9 --store $tmp/killed.db -o $tmp/out --json $tmp/j"
trials "$tmp/killed.db" >"$tmp/after"
kept "$tmp/before" "$tmp/after" && ok "no trial lost or repeated" ||
    not_ok "no trial lost or repeated"
holds "reused are those stored before" "$tmp/j" "j['reused'] == $(wc -l <"$tmp/before")"
holds "all trials" "$tmp/j" 'sum(j["trials"].values()) == 24'
(tune "$tmp/alone.db" "$tmp/j2") >/dev/null 2>&1
points "$tmp/alone.db" >"$tmp/pa"
points "$tmp/killed.db" | cmp -s - "$tmp/pa" && ok "the points of a run left alone" ||
    not_ok "the points of a run left alone"
[ "$(wc -l <"$tmp/pa")" = 24 ] && ok "each point once" || not_ok "each point once"
# eventually COMMAND...: it succeeds sooner or later.
eventually() {
    for _ in $(seq 600); do
        "$@" && return
        sleep 0.1
    done
    return 1
}
no_worker() {
    "$PYTHON" -c 'import glob, os, sys
for folder in glob.glob("/proc/[0-9]*"):
    try:
        argv = open(folder + "/cmdline", "rb").read().split(b"\0")
        home = b"HOME=" + os.environb[b"HOME"]
        if b"--worker" in argv and home in open(folder + "/environ", "rb").read().split(b"\0"):
            sys.exit(1)
    except OSError:
        pass'
}
eventually no_worker && ok "no worker outlives its controller" || not_ok "no worker outlives its controller"

# Nor does a compiler, or what it starts, whoever of the others is killed with the tuner.
cat >"$tmp/compiler" <<END
#!/bin/sh
case \$1 in --version) exec cc --version ;; esac
sleep 3600 &
echo \$\$ \$! >$tmp/pids
wait
END
chmod +x "$tmp/compiler"
# Dead, though nobody may have asked after them.
gone() {
    for one; do
        if grep -q '^State:.[^XZ]' "/proc/$one/status" 2>/dev/null; then return 1; fi
    done
}
for also in "" workers; do
    rm -f "$tmp/pids"
    CC=$tmp/compiler XDG_CACHE_HOME=$tmp/c2 "$FOREWARP" tune examples/dot.fw -s N=64 -d host -q -b 1t \
        --store "$tmp/c.db" -o "$tmp/out" >/dev/null 2>&1 &
    pid=$!
    eventually [ -s "$tmp/pids" ]
    kill -9 $pid $([ "$also" ] && pgrep -P $pid)
    wait $pid 2>/dev/null
    eventually gone $(cat "$tmp/pids") && ok "no compiler outlives the tuner $also" ||
        not_ok "no compiler outlives the tuner $also"
done
passes "the next one" env XDG_CACHE_HOME="$tmp/c2" "$FOREWARP" tune examples/dot.fw -s N=64 -d host -q -b 1t --store "$tmp/c.db" \
    -o "$tmp/out"
[ -z "$(find "$tmp/c2" -name 'run-*')" ] && ok "removes what they left" || not_ok "removes what they left"
finish
