# Commands that are interrupted end soon, with the signal's status, and leave nothing: no process, no temporary folder.
. test/cli/common
export XDG_CACHE_HOME="$tmp/cache" TMPDIR="$tmp/T"
mkdir "$TMPDIR"
cat >"$tmp/interrupt.py" <<'END'
import glob, os, signal, subprocess, sys, time

tmp, name, *command = sys.argv[1:]


def eventually(done):  # a limit only against hanging
    end = time.monotonic() + 300
    while not done():  # asked once a round: a folder of the listing of devices is there for a moment only
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def left():
    return glob.glob(tmp + "/cache/forewarp/run-*") + glob.glob(tmp + "/T/*")


def processes():
    found = []
    for path in glob.glob("/proc/[0-9]*"):
        try:
            with open(path + "/environ", "rb") as f:
                if f"TMPDIR={tmp}/T".encode() in f.read().split(b"\0"):
                    with open(path + "/cmdline", "rb") as g:
                        words = g.read().split(b"\0")
                    if b"--worker" in words or words[0] == os.environb[b"FOREWARP"]:
                        found.append(words)
        except OSError:
            pass
    return found


bad = False
for number, wait in ((signal.SIGINT, 0.0), (signal.SIGTERM, 0.7), (signal.SIGHUP, 2.5)):
    signal.signal(number, signal.SIG_DFL)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    begun = eventually(lambda: left() or process.poll() is not None)
    time.sleep(wait)
    process.send_signal(number)
    said = process.communicate()[1].decode(errors="replace")
    status = process.returncode
    gone = eventually(lambda: not processes())
    ended = status in (128 + number, -number, 0)  # 0: it was done
    if not (begun and ended and gone) or left():
        bad = True
        print("not ok", name, signal.Signals(number).name, "status", status, left(), processes(), said)
    else:
        print("ok", name, signal.Signals(number).name)
sys.exit(bad)
END
interrupted() { "$PYTHON" "$tmp/interrupt.py" "$tmp" "$@" || failures=1; }
j="examples/jacobi2d.fw -s N=512,M=512"
# shellcheck disable=SC2086
{
    interrupted "tune" "$FOREWARP" tune $j -q -b 100000t --store "$tmp/t.db" -o "$tmp/out"
    interrupted "tune on the host" "$FOREWARP" tune $j -q -d host -b 100000t --store "$tmp/t.db" -o "$tmp/out"
    interrupted "run" "$FOREWARP" run examples/an5d/star3d1r.fw -s N=300,M=300,K=300,T=1000 --check
    interrupted "run on the host" "$FOREWARP" run examples/an5d/star3d1r.fw -s N=300,M=300,K=300,T=1000 -d host
    interrupted "explore" "$FOREWARP" explore $j -n 200 -d opencl:0 -q --csv "$tmp/x.csv"
    interrupted "calibrate" "$FOREWARP" calibrate -q -d host -o "$tmp/w.json"
    interrupted "devices" "$FOREWARP" devices --measure --store "$tmp/d.db"
    interrupted "two devices" "$FOREWARP" tune $j -q -d opencl:0,host -b 100000t --store "$tmp/t.db" -o "$tmp/out"
    interrupted "a range" "$FOREWARP" tune examples/jacobi2d.fw -s N=64:512:64,M=64:512:64 -q -b 100000t --store "$tmp/t.db" -o "$tmp/out"
    interrupted "a script" "$FOREWARP" tune examples/fusion/paper.fws -s T=10007 -q -b 100000t --store "$tmp/s.db" -o "$tmp/out"
}
finish
