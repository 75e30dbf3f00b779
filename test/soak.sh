#!/bin/sh
# A long search: neither memory nor files grow with the number of trials beyond what is kept
# of each. Arguments: the number of trials (default 10000). Needs FOREWARP. It samples the
# resident memory of the tuner and of its workers, and counts the files of the cache; the
# second half of the search may not take more than KEPT bytes a trial of the tuner, nor make
# the workers grow by more than a tenth: PoCL's compiler keeps memory of each job, so a worker
# grows until it has built BUILDS_MAX (src/measure/runner.c) and another takes its place. The
# device is the processor by way of PoCL, whose compiler takes nearly all of the time: a sixth
# of a second of a core a trial, so the kernel is as small as one can be.
set -u
: "${FOREWARP:?the path of the program}"
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export HOME="$tmp/home" XDG_CACHE_HOME="$tmp/cache" XDG_DATA_HOME="$tmp/data" TMPDIR="$tmp/T"
mkdir -p "$HOME" "$TMPDIR"
cat >"$tmp/k.cl" <<'END'
kernel void k(global const float *x, global float *out)
{
    int i = get_global_id(0);
    out[i] = i < A + B ? x[i] + 1 : 1 + x[i];
}
END
cat >"$tmp/k.json" <<'END'
{
  "files": "k.cl", "sizes": {"N": 256},
  "parameters": {"A": "list(range(128))", "B": "list(range(128))"},
  "arguments": [{"name": "x", "type": "float", "shape": ["N"]},
                {"name": "out", "type": "float", "shape": ["N"], "access": "out"}],
  "launch": {"kernel": "k", "global": ["N"], "local": [16]}
}
END
exec "${PYTHON:-python3}" - "$FOREWARP" "$tmp" "${1:-10000}" <<'END'
import glob, os, re, sqlite3, subprocess, sys, time
KEPT = 4096
program, tmp, trials = sys.argv[1], sys.argv[2], int(sys.argv[3])

def resident(pid):
    try:
        return int(re.search(r"VmRSS:\s*(\d+)", open(f"/proc/{pid}/status").read()).group(1)) * 1024
    except (OSError, AttributeError):
        return 0

def children(pid):
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            if open(folder + "/stat").read().rsplit(")", 1)[1].split()[1] == str(pid):
                found.append(int(folder[6:]))
        except OSError:
            pass
    return found

def done():
    try:
        db = sqlite3.connect(f"file:{tmp}/s.db?mode=ro", uri=True)
        return db.execute("SELECT count(*) FROM trial").fetchone()[0]
    except sqlite3.Error:
        return 0

run = subprocess.Popen([program, "tune", f"{tmp}/k.json", "-q", "--strategy", "random", "--budget", f"{trials}t", "--store", f"{tmp}/s.db", "-o", f"{tmp}/out"],
                       stdout=subprocess.DEVNULL)
samples = []
while run.poll() is None:
    time.sleep(0.5)
    n = done()
    if n:
        files = sum(len(f) for _, _, f in os.walk(tmp + "/cache"))
        samples.append((n, resident(run.pid), sum(map(resident, children(run.pid))), files))
        if len(samples) % 120 == 0:
            print("%d trials, tuner %.1f MB, workers %.1f MB, %d files" % (n, samples[-1][1] / 1e6, samples[-1][2] / 1e6, files), flush=True)
assert run.returncode == 0, run.returncode
# The last batch is followed by other work: the final measurements, the record.
late = [s for s in samples if s[1] and s[2] and trials / 2 < s[0] < trials]
assert len(late) > 1, "too few samples"
middle, end = late[0], late[-1]
per_trial = (end[1] - middle[1]) / max(end[0] - middle[0], 1)
first_peak = max(s[2] for s in samples if s[2] and s[0] <= trials / 2)
last_peak = max(s[2] for s in late)
left = sum(len(f) for _, _, f in os.walk(tmp + "/T"))
print("%d trials: %.0f bytes of the tuner a trial; workers %.1f MB, then %.1f MB; %d files in the cache at most, %d temporary files left, store %.1f MB"
      % (end[0], per_trial, first_peak / 1e6, last_peak / 1e6, max(s[3] for s in samples), left, os.path.getsize(tmp + "/s.db") / 1e6))
bad = []
if per_trial > KEPT:
    bad.append("the tuner grows")
if last_peak > 1.1 * first_peak + 8e6:
    bad.append("the workers grow")
if left:
    bad.append("temporary files are left")
print("ok" if not bad else "not ok: " + "; ".join(bad))
sys.exit(bool(bad))
END
