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
if command -v man >/dev/null && [ -z "$(man --warnings -E UTF-8 -l -Tutf8 -Z $page 2>&1 >/dev/null)" ]; then
    ok "it formats"
else
    not_ok "it formats" "$(man --warnings -E UTF-8 -l -Tutf8 -Z $page 2>&1 >/dev/null | head -n 5)"
fi
finish
