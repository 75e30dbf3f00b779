# What the documentation prints works as printed: of its `console` blocks the files are
# written, the commands run one after another in one folder, and each printed line stands in
# what came out, whatever the numbers. Of all other commands the options are those that the
# command takes.
. test/cli/common
stores -
mkdir -p "$tmp/work"
cp -r examples templates "$tmp/work"
cat >"$tmp/docs.py" <<'END'
import itertools, json, os, re, subprocess, sys, types

DIGITS = str.maketrans("0123456789", "abcdefghij")

# How many points a space has is no matter of the machine, so these numbers stay.
def shape(line):
    line = re.sub(r"(space +|of )(\d+)( points)( of (\d+))?", lambda m: m[0].translate(DIGITS), line)
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

def options(command, known={}):
    if command not in known:
        help = subprocess.run(["forewarp", "help", command], stdout=subprocess.PIPE, text=True).stdout
        known[command] = set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", help))
    return known[command]

def check_options(file, block):
    bad = 0
    for line in re.findall(r"^ *(?:\$ )?forewarp (.*)", block.replace("\\\n", " "), re.M):
        command, *rest = re.sub(r"'[^']*'|\"[^\"]*\"|[ (]# .*|  +\w.*", " ", line + " ").split() or [""]
        for word in rest:
            if re.match(r"--?[a-z]", word) and word.split("=")[0] not in options(command):
                print("not ok", file + ": forewarp", command, "takes no", word)
                bad += 1
    return bad

def run_blocks(text):
    bad = 0
    for name, kind, block in re.findall(r"(?:<!-- file: (\S+) -->\n)?```(\w*)\n(.*?)```\n", text, re.S):
        if name:
            open(name, "w").write(block)
        if kind != "console":
            continue
        parts = re.split(r"^\$ ", block, flags=re.M)
        assert parts[0] == "", "output before a command"
        for part in parts[1:]:
            command, *printed = part.rstrip("\n").split("\n")
            bad += check(command.split("  # ")[0], printed)
    return bad

# The kernel as other tuners have it: the same parameters and as many points as in forewarp.
def check_others(text):
    ours = json.load(open("scale.json"))["parameters"]
    ours = {name: p["values"] if isinstance(p, dict) else p for name, p in ours.items()}
    blocks = re.findall(r"```(python|cpp)\n(.*?)```", text, re.S)
    bad, calls = len(blocks) != 3, []
    for kind, block in blocks:
        for name, values in ours.items():
            found = re.search(rf'"{name}"[^\[{{"]*[[{{]([0-9, ]*)', block)
            bad += not found or [int(v) for v in found[1].split(",")] != values
        bad += not re.search(r"(WG \* EACH|v\[0\] \* v\[1\]) <= 1024", block)
    scope = {"np": types.SimpleNamespace(float32=float), "x": 1, "y": 0, "tune_kernel": lambda *a, **k: calls.append((a, k))}
    exec(blocks[0][1], scope)
    (arguments, keys), = calls
    points = [dict(zip(arguments[4], v)) for v in itertools.product(*arguments[4].values())]
    points = [p for p in points if all(eval(r, {}, p) for r in keys["restrictions"])]
    check = subprocess.run(["forewarp", "check", "scale.json", "--json", "-"], stdout=subprocess.PIPE, text=True)
    bad += json.loads(check.stdout)["points"] != len(points)
    print("not ok" if bad else "ok", "the kernel of other tuners")
    return bad

texts = {file: open(file).read() for file in sys.argv[2:]}
os.chdir(sys.argv[1])
bad = 0
for file, text in texts.items():
    for block in re.findall(r"```\w*\n(.*?)```\n", text, re.S) + re.findall(r"(?:^    .*\n)+", text, re.M):
        bad += check_options(file, block)
    print("ok", file)
    bad += run_blocks(text)
    if file == "doc/problems.md":
        bad += check_others(text)
sys.exit(bad > 0)
END
mkdir "$tmp/bin"
ln -s "$FOREWARP" "$tmp/bin/forewarp"
ln -s "$(command -v "$PYTHON")" "$tmp/bin/python3"
PATH=$tmp/bin:$PATH "$PYTHON" "$tmp/docs.py" "$tmp/work" doc/tutorial.md README.md doc/[!t]*.md doc/two-stage.md || failures=1
finish
