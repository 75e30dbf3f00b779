# The manual has every command and option of the tables, and formats without warnings.
. test/cli/common
page=doc/forewarp.1
tr -d '\\' <$page >"$tmp/page"

for name in $(sed -n 's/^OPTION([^"]*"\([a-z-]*\)".*/\1/p' src/cli/options.def); do
    grep -q -e " --$name\b" "$tmp/page" && ok "option $name" || not_ok "option $name"
done
for letter in $(sed -n "s/^OPTION([A-Z_0-9]*, *'\(.\)'.*/\1/p" src/cli/options.def); do
    grep -q -e "^.BR -$letter " "$tmp/page" && ok "option $letter" || not_ok "option $letter"
done
for command in $(sed -n 's/^COMMAND([A-Z]*, *\([a-z]*\),.*/\1/p' src/cli/commands.def); do
    grep -q "^\.B forewarp $command\b" "$tmp/page" && ok "command $command" || not_ok "command $command"
done
# Where what the page says of an option begins with the commands that it is of, all are there.
cat >"$tmp/lists.py" <<'END'
import re, sys

rows = re.findall(r'^OPTION\([^"]*"([a-z0-9-]+)".*?((?:FOR_\w+(?: \| )?)+)', open("src/cli/options.def").read(), re.M)
commands = set(re.findall(r"^COMMAND\(\w+, *(\w+)", open("src/cli/commands.def").read(), re.M))
parts = re.sub(r"\n\.[BIR]+ ?", "\n", open(sys.argv[1]).read()).split(".SH OPTIONS")[1].split("\n.TP")
bad = 0
for name, takes in rows:
    text = [part.split("\n", 2)[2] for part in parts if re.match(r"\n[^\n]*--" + name + r"(?![\w-])", part)]
    words = set(re.findall(r"[a-z]+", "".join(text)))
    first = re.match(r"[a-z]+(?=[a-z, \n]*:)", "".join(text))
    missing = {word[4:].lower() for word in takes.split(" | ")} - words
    if len(text) != 1 or (first and first[0] in commands and missing):
        bad = 1
        print("not ok option", name, *missing)
sys.exit(bad)
END
"$PYTHON" "$tmp/lists.py" "$tmp/page" && ok "commands of options" || failures=1
if command -v man >/dev/null && [ -z "$(man --warnings -E UTF-8 -l -Tutf8 -Z $page 2>&1 >/dev/null)" ]; then
    ok "it formats"
else
    not_ok "it formats" "$(man --warnings -E UTF-8 -l -Tutf8 -Z $page 2>&1 >/dev/null | head -n 5)"
fi
finish
