# The tutorial's commands work as printed: its files are written, its commands run one after
# another in an empty folder, and each printed line stands in what came out, whatever the
# numbers.
. test/cli/common
stores -
mkdir -p "$tmp/work"
cp -r examples "$tmp/work"
cat >"$tmp/tutorial.py" <<'END'
import os, re, subprocess, sys

def shape(line):
    line = re.sub(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", "#", line)
    line = re.sub(r"# (ns|us|ms|s)\b", "# t", line)
    line = re.sub(r": # ok.*", ": # ok", line)  # a busy machine times some trials out
    return re.sub(r"\s+", " ", line).strip()

def found(want, lines):
    if want.endswith("..."):
        return any(line.startswith(want[:-3]) for line in lines)
    return want in lines

def check(command, printed):
    run = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [shape(line) for line in run.stdout.split("\n")]
    missing = [w for w in printed if w.strip() != "..." and not found(shape(w), lines)]
    if run.returncode or missing:
        print("not ok", command)
        print("    exit status", run.returncode, *missing, run.stdout, run.stderr, sep="\n    ")
        return 1
    print("ok", command)
    return 0

text, bad = open(sys.argv[1]).read(), 0
os.chdir(sys.argv[2])
for name, kind, block in re.findall(r"(?:<!-- file: (\S+) -->\n)?```(\w*)\n(.*?)```\n", text, re.S):
    if name:
        open(name, "w").write(block)
    if kind != "console":
        continue
    parts = re.split(r"^\$ ", block, flags=re.M)
    assert parts[0] == "", "output before a command"
    for part in parts[1:]:
        command, *printed = part.rstrip("\n").split("\n")
        bad += check(command, printed)
sys.exit(bad > 0)
END
mkdir "$tmp/bin"
ln -s "$FOREWARP" "$tmp/bin/forewarp"
ln -s "$(command -v "$PYTHON")" "$tmp/bin/python3"
PATH=$tmp/bin:$PATH "$PYTHON" "$tmp/tutorial.py" doc/tutorial.md "$tmp/work" || failures=1
finish
