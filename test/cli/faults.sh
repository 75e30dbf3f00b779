# What fails, fails cleanly: an allocation, a write, a call of the device, a locked store, a
# killed worker. The message says what, the status is 1 (0 where the search goes on), the
# store keeps what it had, and the same command then succeeds. And what must never happen:
# files elsewhere, kernels in the tuner's process, names that reach a shell.
# FW_FAULTS=all tries every call (make soak).
. test/cli/common
export XDG_CACHE_HOME="$tmp/cache" # broken on purpose: of its own
if nm "$FOREWARP" | grep -q __asan_init; then
    echo "skip faults: the sanitizer has its own allocations"
    ok "nothing to do under a sanitizer"
    finish
fi
passes "the shim" "${CC:-cc}" -shared -fPIC -O1 -o "$tmp/shim.so" test/faults/shim.c -ldl
root=$PWD
store=$tmp/f.db
mkdir "$tmp/only"
stores "$store" "$tmp/locked.db" "$tmp/k.db" "$tmp/only/s.db"
tune() {
    timeout 1800 "$FOREWARP" tune "$root/examples/jacobi2d.fw" -s N=32,M=32 -q --strategy random --store "$store" -o "$tmp/out" "$@"
}
intact() {
    "$PYTHON" -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
have = set(db.execute("SELECT point, status FROM trial"))
assert set(tuple(l.rstrip("\n").split("|")) for l in open(sys.argv[2])) <= have' "$store" "$tmp/before"
}
# survives WHAT:N IN STATUSES COMMAND...: the call is made and fails; the command ends with one
# of the statuses, with a message if not 0, and the store is whole.
survives() {
    what=$1 in=$2 statuses=$3
    shift 3
    rm -f "$tmp/hit"
    (export FW_FAIL_HIT="$tmp/hit" FW_FAIL="$what" FW_FAIL_IN="$in" LD_PRELOAD="$tmp/shim.so" && "$@") >"$tmp/stdout" 2>"$tmp/stderr"
    status=$?
    if [ ! -e "$tmp/hit" ]; then
        [ "${FW_FAULTS:-}" = all ] && echo "skip $what in the $in: not called so often" ||
            not_ok "$what in the $in" "the call was never made"
        return
    fi
    case " $statuses " in
    *" $status "*) ;;
    *) not_ok "$what in the $in" "exit status $status: $(head -c 300 "$tmp/stderr")" && return ;;
    esac
    if [ $status != 0 ] && ! grep -q "^forewarp: " "$tmp/stderr"; then
        not_ok "$what in the $in" "no message: $(head -c 300 "$tmp/stderr")"
    elif grep -q "bug at" "$tmp/stderr"; then
        not_ok "$what in the $in" "$(cat "$tmp/stderr")"
    elif [ -e "$tmp/before" ] && ! intact 2>"$tmp/log"; then
        not_ok "$what in the $in" "the store is damaged: $(tail -n 1 "$tmp/log")"
    else
        ok "$what in the $in: status $status"
    fi
}

# Another process has the store.
cp /dev/null "$tmp/locked.out"
"$FOREWARP" tune examples/jacobi2d.fw -s N=32,M=32 -q -b 2t --store "$tmp/locked.db" -o "$tmp/locked" >/dev/null
"$PYTHON" -c 'import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
open(sys.argv[2], "w").write("locked")
time.sleep(300)' "$tmp/locked.db" "$tmp/is_locked" &
holder=$!
while [ ! -e "$tmp/is_locked" ] && kill -0 $holder; do sleep 0.1; done
("$FOREWARP" tune examples/jacobi2d.fw -s N=32,M=32 -q -b 9t --store "$tmp/locked.db" -o "$tmp/locked"
    echo "status $?") >"$tmp/locked.out" 2>&1 &
waiter=$!

# Allocations: the reading and compiling commands; TIMES of those they make, from the first to
# the last, or all. isl_ctx_alloc of isl 0.25 looks into a context that is not set up when two
# of its own fail: so many, ISL_CRASHES, may end by a signal.
many() {
    name=$1 times=$2 bad='' crashes=0
    shift 2
    rm -f "$tmp/count"
    FW_FAIL=malloc:0 FW_FAIL_COUNT=$tmp/count LD_PRELOAD=$tmp/shim.so "$@" >/dev/null 2>&1
    last=$(sed -n 's/^malloc //p' "$tmp/count")
    [ "${FW_FAULTS:-}" = all ] && times=$last
    for n in $(seq 1 $((last / times)) "$last"); do
        rm -f "$tmp/hit"
        FW_FAIL_HIT=$tmp/hit FW_FAIL=malloc:$n LD_PRELOAD=$tmp/shim.so timeout 1800 "$@" >/dev/null 2>"$tmp/stderr"
        status=$?
        [ -e "$tmp/hit" ] || bad="$bad $n (never made)"
        case $status in
        0) ;;
        1) grep -q "memory" "$tmp/stderr" || bad="$bad $n" ;;
        139) crashes=$((crashes + 1)) && [ $crashes -le "${ISL_CRASHES:-0}" ] || bad="$bad $n" ;;
        *) bad="$bad $n" ;;
        esac
    done
    [ -z "$bad" ] && ok "allocations of $name" || not_ok "allocations of $name" "of $last, number$bad"
}
many "check of a problem file" 18 "$FOREWARP" check templates/transpose.json
many "emit" 20 "$FOREWARP" emit examples/hotspot2d.fw -s N=64,M=64 --device-model nvidia-h200 -o "$tmp/k.cl"
ISL_CRASHES=2
many "count" 50 "$FOREWARP" count examples/jacobi2d.fw
ISL_CRASHES=0
many "report" 16 "$FOREWARP" report test/fuzz/seeds/jacobi2d.run.json -o "$tmp/p.html"
many "replay" 20 "$FOREWARP" replay test/fuzz/seeds/recorded-t4.json --repeat 2 -q

passes "a store" tune --budget 2t
"$PYTHON" -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute("SELECT point, status FROM trial"): print(*row, sep="|")' "$store" >"$tmp/before"
calls="clCreateBuffer clBuildProgram clCreateKernel clCreateSubBuffer clEnqueueMapBuffer"
places="write:8 sync:1 rename:1 mkdir:5"
allocations=2500
if [ "${FW_FAULTS:-}" = all ]; then
    calls=$(sed -n 's/^\(STATUS\|OBJECT\)(\(cl[A-Za-z]*\).*/\2/p' test/faults/shim.c)
    places="$places $(for n in 2 3 5 8 10 12 15 18 25 30 40 50; do echo write:$n; done) sync:2 sync:3 sync:4 sync:7 rename:2 rename:3 mkdir:1 mkdir:2 mkdir:9 mkdir:12"
    allocations=$(seq 1 211 6000)
fi
for n in $allocations; do survives "malloc:$n" controller "0 1" tune --budget 3t; done
for place in $places; do survives "$place" controller "0 1" tune --budget 4t --seed 2; done
seed=3
for call in $calls; do
    survives "$call:1" worker "0 1" tune --budget 3t --seed $seed
    [ "${FW_FAULTS:-}" = all ] && survives "$call:3" worker "0 1" tune --budget 3t --seed $seed
    seed=$((seed + 1))
done
passes "the same command without the faults" tune --budget 4t

# A compiler that finds the disk full, or is killed: the command fails, and succeeds when there
# is room again.
cat >"$tmp/compiler" <<END
#!/bin/sh
case \$1 in --version) exec cc --version ;; esac
[ -e "$tmp/room" ] || { cat "$tmp/trouble" && exit 1; }
exec cc "\$@"
END
chmod +x "$tmp/compiler"
on_host="env CC=$tmp/compiler $FOREWARP tune examples/dot.fw -s N=64 -d host -q -b 3t --store $tmp/h.db -o $tmp/out"
for trouble in "cc1: error: x.s: No space left on device" "gcc: fatal error: Killed signal terminated program cc1"; do
    rm -f "$tmp/room" "$tmp/h.db"
    stores "$tmp/h.db"
    echo "$trouble" >"$tmp/trouble"
    fails 1 "$trouble" $on_host
    : >"$tmp/room"
    passes "the same command, with room" $on_host --json "$tmp/j"
    holds "of which nothing was kept" "$tmp/j" 'j["reused"] == 0 and j["trials"]["ok"] == 3'
done

# A time-out counts for who has no more time; what an older version stored does not say how
# much it had.
for limit in 10:3 20:3 9.5:2 NULL:2; do
    "$PYTHON" -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    db.execute("UPDATE trial SET status = \"timed-out\", time_ns = NULL, limit_s = " + sys.argv[2] +
               " WHERE id = (SELECT max(id) FROM trial)")' "$tmp/h.db" "${limit%:*}"
    passes "after a time-out of ${limit%:*} s" $on_host --json "$tmp/j"
    holds "${limit#*:} are reused" "$tmp/j" "j['reused'] == ${limit#*:} and j['trials']['timed-out'] == ${limit#*:} - 2"
done

# Workers are killed at random, but those that still open their device, of which three in a row
# would be the device's fault: their jobs are tried again.
: >"$tmp/kills"
"$FOREWARP" tune examples/jacobi2d.fw -s N=256,M=256 -q -b 16t --fresh --store "$tmp/k.db" -o "$tmp/killed" --json "$tmp/j" \
    >"$tmp/stdout" 2>"$tmp/stderr" &
tuner=$!
(while kill -0 $tuner && [ "$(wc -l <"$tmp/kills")" -lt 3 ]; do
        worker=$("$PYTHON" -c 'import glob, os, random
found = []
for folder in glob.glob("/proc/[0-9]*"):
    try:
        argv = open(folder + "/cmdline", "rb").read().split(b"\0")
        home = b"HOME=" + os.environb[b"HOME"]
        took = sum(map(int, open(folder + "/stat").read().rsplit(")", 1)[1].split()[11:13]))
        if (b"--worker" in argv and home in open(folder + "/environ", "rb").read().split(b"\0")
                and took / os.sysconf("SC_CLK_TCK") > 0.3):
            found.append(folder[6:])
    except OSError:
        pass
print(random.choice(found) if found else "")')
        [ -n "$worker" ] && kill -9 "$worker" && echo "$worker" >>"$tmp/kills"
        sleep 0.7
    done) >/dev/null 2>&1 &
killer=$!
wait $tuner && ok "tune while workers are killed" || not_ok "tune while workers are killed" "$(cat "$tmp/stderr")"
holds "and it found a kernel" "$tmp/j" 'j["best"]["checked"] and j["trials"]["ok"] > 0'
wait $killer
[ -s "$tmp/kills" ] && ok "$(wc -l <"$tmp/kills") were killed" || not_ok "none was killed"

# Files: only in the output folder, the cache and the store; and the tuner makes no device
# call: its process never loads a driver.
mkdir "$tmp/cwd" "$tmp/T"
trace=
command -v strace >/dev/null && trace="strace -f -qq -e trace=open,openat,creat,mkdir,rename,link,symlink -e signal=none -o $tmp/trace"
[ -n "$trace" ] || echo "skip the trace of files: strace is not installed"
(cd "$tmp/cwd" && HOME=$tmp/elsewhere TMPDIR=$tmp/T XDG_CACHE_HOME=$tmp/c2 exec $trace "$FOREWARP" tune "$root/examples/jacobi2d.fw" \
    -s N=48,M=32 -q -b 3t --store "$tmp/only/s.db" -o "$tmp/only/out") >"$tmp/stdout" 2>"$tmp/stderr" && ok "tune elsewhere" ||
    not_ok "tune elsewhere" "$(cat "$tmp/stderr")"
[ -z "$(ls -A "$tmp/cwd" "$tmp/T" | grep -v :)" ] && [ ! -e "$tmp/elsewhere" ] && ok "no file elsewhere" ||
    not_ok "no file elsewhere" "$(find "$tmp/cwd" "$tmp/T" "$tmp/elsewhere" 2>/dev/null)"
if [ -n "$trace" ]; then
    "$PYTHON" - "$tmp" >"$tmp/stdout" 2>&1 <<'END'
import re, sys
tmp = sys.argv[1]
controller, bad = None, []
for line in open(tmp + "/trace", errors="replace"):
    m = re.match(r'(\d+) +(\w+)\((.*)\) += (\d+)', line)
    if not m:
        continue
    pid, call, args, _ = m.groups()
    controller = controller or pid
    path = re.search(r'"([^"]*)"', args).group(1)
    writes = call in ("creat", "mkdir", "rename", "link", "symlink") or re.search("O_WRONLY|O_RDWR|O_CREAT", args)
    if writes and not path.startswith((tmp + "/only", tmp + "/c2", tmp + "/T/", "/dev/", "/proc/")):
        bad.append(line.strip())
    if pid == controller and re.search(r"pocl|libLLVM|/OpenCL/vendors|libcuda|nvrtc", path):
        bad.append("the tuner itself: " + line.strip())
print(*bad[:5], sep="\n")
sys.exit(bool(bad))
END
    [ $? = 0 ] && ok "every file that is written is ours; the tuner loads no driver" ||
        not_ok "every file that is written is ours; the tuner loads no driver" "$(cat "$tmp/stdout")"
fi

# Names: of folders, files, kernels, devices; none is a command.
evil="$tmp/cwd/a b;touch pwned;\$(touch pwned)\`touch pwned\`'\"&|>pwned
x"
mkdir "$evil" && cp examples/dot.fw "$evil/-r.fw" && cp examples/dot.fw "$evil/x;touch pwned.fw"
cp templates/transpose.json "$evil/t;touch pwned.json"
cp templates/transpose.cl templates/transpose_reference.c "$evil"
(cd "$tmp/cwd" && TMPDIR=$evil XDG_CACHE_HOME=$evil/cache exec "$FOREWARP" tune "$evil/x;touch pwned.fw" -s N=64 -d host -q -b 2t --store "$evil/s.db" -o "$evil/o") >"$tmp/stdout" 2>"$tmp/stderr" &&
    ok "a program in a folder of that name, by the C compiler" || not_ok "a program in a folder of that name, by the C compiler" "$(cat "$tmp/stderr")"
(cd "$tmp/cwd" && exec "$FOREWARP" tune "$evil/t;touch pwned.json" -s H=32,W=32 -q -b 2t --store "$evil/s.db" -o "$evil/o" --t4 "$evil/t4" --cache "$evil/c") >"$tmp/stdout" 2>"$tmp/stderr" &&
    ok "a template there, with a reference in C" || not_ok "a template there, with a reference in C" "$(cat "$tmp/stderr")"
(cd "$evil" && exec "$FOREWARP" check ./-r.fw) >/dev/null 2>&1 && ok "a name that begins with -" || not_ok "a name that begins with -"
(cd "$evil" && exec "$FOREWARP" check -- -r.fw) >/dev/null 2>&1 && ok "after --" || not_ok "after --"
sed 's/"kernel": "transpose"/"kernel": "k;touch pwned"/; s/transpose.cl/$(touch pwned).cl/' templates/transpose.json >"$evil/k.json"
(cd "$tmp/cwd" && "$FOREWARP" check "$evil/k.json") >/dev/null 2>&1
(cd "$tmp/cwd" && "$FOREWARP" devices -d 'opencl:0;touch pwned') >/dev/null 2>&1
(cd "$tmp/cwd" && "$FOREWARP" tune "$root/examples/dot.fw" -s 'N=$(touch pwned)' -q -b 1t) >/dev/null 2>&1
[ -z "$(find "$tmp" -name pwned)" ] && ok "no name reached a shell" || not_ok "no name reached a shell" "$(find "$tmp" -name pwned)"
# The record's command, pasted into a shell, names the same file.
"$PYTHON" -c 'import json, shlex, sys
words = shlex.split(json.load(open(sys.argv[1]))["command"])
sys.exit(words[:2] != ["forewarp", "tune"] or words[2] != sys.argv[2])' "$evil/o/dot.run.json" "$evil/x;touch pwned.fw" &&
    ok "the record quotes its command" || not_ok "the record quotes its command"

wait $waiter
grep -q "status 1" "$tmp/locked.out" && grep -q "locked for more than 10 s" "$tmp/locked.out" && ok "a locked store" ||
    not_ok "a locked store" "$(cat "$tmp/locked.out")"
kill $holder 2>/dev/null
finish
