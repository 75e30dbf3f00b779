# forewarp wisdom: out of a store, into another, together; another device's only when asked for.
. test/cli/common
stores "$tmp/a.db" "$tmp/b.db"

tune() { "$FOREWARP" tune "$1" -s "$2" -q -d host -b 3t -o "$tmp/out" --store "$3"; }
best() { "$FOREWARP" emit "$1" -s "$2" -d host --best --store "$3"; }
passes "tune one" tune examples/asum.fw N=4096 "$tmp/a.db"
passes "tune another" tune examples/scal.fw N=5000 "$tmp/b.db"
passes "export" "$FOREWARP" wisdom export "$tmp/a.w" --store "$tmp/a.db"
passes "export to standard output" "$FOREWARP" wisdom export --store "$tmp/b.db"
cp "$tmp/stdout" "$tmp/b.w"
fails 1 "error C083: there is no store $tmp/absent.db" "$FOREWARP" wisdom export --store "$tmp/absent.db"
[ ! -e "$tmp/absent.db" ] && ok "none is made" || not_ok "none is made"
[ "$(wc -l <"$tmp/a.w")" = 2 ] && ok "a head and a plan" || not_ok "a head and a plan" "$(cat "$tmp/a.w")"
sed -n 2p "$tmp/a.w" >"$tmp/plan"
holds "the plan" "$tmp/plan" 'j["problem"] == "asum N=4096" and j["trials"] == 3 and j["time_ns"] > 0 and j["rigor"] == "measure" and len(j["fingerprint"]) == 16 and "=" in j["point"]'
passes "merge" "$FOREWARP" wisdom merge "$tmp/a.w" "$tmp/b.w" "$tmp/a.w" -o "$tmp/all.w"
[ "$(wc -l <"$tmp/all.w")" = 3 ] && ok "each once" || not_ok "each once"
passes "import" "$FOREWARP" wisdom import "$tmp/all.w" --store "$tmp/c.db"
grep -q "2 plans, 2 of them new; 2 of this version" "$tmp/stdout" && ok "both are new" || not_ok "both are new"
passes "import again" "$FOREWARP" wisdom import "$tmp/all.w" --store "$tmp/c.db"
grep -q " 0 of them new" "$tmp/stdout" && ok "then none is" || not_ok "then none is"
passes "export what was imported" "$FOREWARP" wisdom export "$tmp/c.w" --store "$tmp/c.db"
point() { sed 's/.*"point": "\([^"]*\)".*/\1/' "$1"; }
[ "$(point "$tmp/c.w")" = "$(point "$tmp/all.w")" ] && ok "it is the same" || not_ok "it is the same"
best examples/asum.fw N=4096 "$tmp/a.db" >"$tmp/here" 2>&1
passes "its plan" best examples/asum.fw N=4096 "$tmp/c.db"
cmp -s "$tmp/here" "$tmp/stdout" && ok "is the same kernel" || not_ok "is the same kernel"

# A pipe, like a device, is written to and not replaced.
"$FOREWARP" wisdom export "$tmp/c.w" --store "$tmp/c.db" # what was imported is measured by now
mkfifo "$tmp/pipe"
cat "$tmp/pipe" >"$tmp/piped" &
passes "export into a pipe" timeout 1800 "$FOREWARP" wisdom export "$tmp/pipe" --store "$tmp/c.db"
[ -p "$tmp/pipe" ] && wait $! && cmp -s "$tmp/c.w" "$tmp/piped" && ok "it arrives" || not_ok "it arrives"

# The faster of two stays.
sed 's/"time_ns": [0-9.e+]*/"time_ns": 1.0/; s/"rigor": "measure"/"rigor": "patient"/' "$tmp/a.w" >"$tmp/fast.w"
"$FOREWARP" wisdom merge "$tmp/fast.w" "$tmp/a.w" >"$tmp/merged"
cmp -s "$tmp/fast.w" "$tmp/merged" && ok "merge keeps the faster" || not_ok "merge keeps the faster"

# Of another device.
fingerprint=$(sed -n 's/.*"fingerprint": "\([0-9a-f]*\)".*/\1/p' "$tmp/a.w")
sed "s/$fingerprint/00000000000000aa/; s/\"device\": \"[^\"]*\"/\"device\": \"Moon\"/" "$tmp/a.w" >"$tmp/moon.w"
passes "import of another device" "$FOREWARP" wisdom import "$tmp/moon.w" --store "$tmp/m.db"
fails 1 "nothing is stored" "$FOREWARP" emit examples/asum.fw -s N=4096 -d host --best --store "$tmp/m.db"
passes "--any-device" "$FOREWARP" run examples/asum.fw -s N=4096 -d host --check --best --any-device --store "$tmp/m.db"
grep -q "found on another device: Moon" "$tmp/stderr" && ok "is said to be so" || not_ok "is said to be so"
# The same with another driver: its name tells nothing.
sed "s/$fingerprint/00000000000000aa/" "$tmp/a.w" >"$tmp/driver.w"
passes "import of a namesake" "$FOREWARP" wisdom import "$tmp/driver.w" --store "$tmp/n.db"
passes "--any-device again" "$FOREWARP" run examples/asum.fw -s N=4096 -d host --best --any-device --store "$tmp/n.db"
grep -q "fingerprint 00000000000000aa, not .*, fingerprint $fingerprint" "$tmp/stderr" && ok "by fingerprints" || not_ok "by fingerprints"

echo '{"forewarp": "wisdom", "format": 1}
{"problem": "x"}' >"$tmp/bad.w"
fails 2 "bad.w:2:1: error W001: \"device\"" "$FOREWARP" wisdom import "$tmp/bad.w" --store "$tmp/c.db"
fails 2 "not wisdom" "$FOREWARP" wisdom import examples/asum.fw --store "$tmp/c.db"
fails 2 "cannot read" "$FOREWARP" wisdom import "$tmp/none" --store "$tmp/c.db"
fails 2 "takes files" "$FOREWARP" wisdom merge
fails 1 "add -d host" "$FOREWARP" emit examples/asum.fw -s N=4096 --best --store "$tmp/a.db"
fails 2 "export, import or merge" "$FOREWARP" wisdom forget

# A plan from outside is built, run and compared before it is used, once: here of a kernel
# that is right at A=1 and A=2, computes something else at A=3, and crashes at A=4.
trap=test/programs/templates/trap.json
stores "$tmp/trap.db"
passes "tune a trap" "$FOREWARP" tune $trap -b 1t -q -o "$tmp/out" --store "$tmp/trap.db"
"$FOREWARP" wisdom export "$tmp/trap.w" --store "$tmp/trap.db"
edited() { # edited WHAT BY: the wisdom with another text, in a store of its own
    sed "s/\"$1\": \(\"[^\"]*\"\|[-0-9.e+]*\)/\"$1\": $2/" "$tmp/trap.w" >"$tmp/edited.w"
    rm -f "$tmp/edited.db"*
    "$FOREWARP" wisdom import "$tmp/edited.w" --store "$tmp/edited.db" >/dev/null 2>&1
}
trials() { # trials SQL: in that store; the first row, if there is one
    "$PYTHON" -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(*(db.execute(sys.argv[2]).fetchone() or []))
db.commit()' "$tmp/edited.db" "$1"
}
trap_run() { fails 1 "$1" "$FOREWARP" run $trap --best --store "$tmp/edited.db"; }
for host in "" "--host -o $tmp/trap_host.c"; do
    edited point '"A=3"'
    # shellcheck disable=SC2086
    fails 1 "A=3 of trap N=64 is not used" "$FOREWARP" emit $trap --best $host --store "$tmp/edited.db"
done
trap_run "its kernel was wrong-result: x: element 0 is nan"
edited point '"A=4"'
trap_run "its kernel was crashed"
before=$(trials 'SELECT created, rowid FROM checked')
trap_run "its kernel was crashed"
[ -n "$before" ] && [ "$(trials 'SELECT created, rowid FROM checked')" = "$before" ] && ok "checked once" || not_ok "checked once" "$before"
edited point '"A=5"'
trap_run "A=5 of trap N=64 is not used: it is not a point of its space"
edited point '"B=1"'
trap_run "B=1 of trap N=64 is not used: it is not a point of its space"
edited point '"A=2"'
passes "one that is right" "$FOREWARP" run $trap --best --store "$tmp/edited.db"
[ "$(trials 'SELECT status FROM checked')" = ok ] && ok "is known to be" || not_ok "is known to be"
# What it claims to have taken is measured then, and a search does not believe it either.
edited time_ns 1e-3
passes "a plan that claims much" "$FOREWARP" run $trap --best --store "$tmp/edited.db"
[ "$(trials 'SELECT min(time_ns) > 1 FROM trial')" = 1 ] && ok "is measured" || not_ok "is measured"
edited time_ns 1e-3
stores "$tmp/claims.db"
"$FOREWARP" wisdom import "$tmp/edited.w" --store "$tmp/claims.db" >/dev/null
passes "a search after it" "$FOREWARP" tune $trap -b 2t -q -o "$tmp/out" --store "$tmp/claims.db"
grep -q "2 trials (0 from the store)" "$tmp/stdout" && ok "runs it again" || not_ok "runs it again" "$(cat "$tmp/stdout")"
# A store made by hand is a plan from outside too: its points, and what it says of them.
cp "$tmp/trap.db" "$tmp/edited.db"
trials "UPDATE trial SET point = 'A=3'" >/dev/null
trap_run "A=3 of trap N=64 is not used"
cp "$tmp/trap.db" "$tmp/edited.db"
trials "UPDATE trial SET time_ns = -5" >/dev/null
trap_run "nothing is stored"
fails 1 "an unreadable trial" "$FOREWARP" tune $trap -b 1t -q -o "$tmp/out" --store "$tmp/edited.db"
cp "$tmp/trap.db" "$tmp/edited.db"
trials "UPDATE session SET problem = problem || char(27), created = cast(x'ff' AS TEXT)" >/dev/null
passes "export of texts that are none" "$FOREWARP" wisdom export --store "$tmp/edited.db"
[ "$(wc -l <"$tmp/stdout")" = 1 ] && ok "leaves them out" || not_ok "leaves them out"
# The plan of another size, or of another device, is no other.
passes "a plan of N=64" "$FOREWARP" run $trap -s N=128 --best --store "$tmp/trap.db"
grep -q "predicted to be good here" "$tmp/stderr" && ok "serves N=128" || not_ok "serves N=128"
sed 's/"point": "[^"]*"/"point": "A=3"/' "$tmp/trap.w" >"$tmp/edited.w"
rm -f "$tmp/edited.db"* && "$FOREWARP" wisdom import "$tmp/edited.w" --store "$tmp/edited.db" >/dev/null
fails 1 "A=3 of trap N=128 is not used" "$FOREWARP" run $trap -s N=128 --best --store "$tmp/edited.db"
edited fingerprint '"00000000000000aa"'
trap_run "nothing is stored"
sed 's/"point": "[^"]*"/"point": "A=3"/' -i "$tmp/edited.w"
"$FOREWARP" wisdom import "$tmp/edited.w" --store "$tmp/edited.db" >/dev/null
passes "another device's, of which one is right" "$FOREWARP" run $trap --best --any-device --store "$tmp/edited.db"

# What cannot be a plan is not taken in, and the message says where.
refuses() { # refuses WHAT BY MESSAGE
    edited "$1" "$2"
    fails 2 "edited.w:2:1: error W001: $3" "$FOREWARP" wisdom import "$tmp/edited.w" --store "$tmp/edited.db"
}
refuses point '"A"' '"point" must be NAME=VALUE'
refuses point '"A=1 A=2"' '"point" must be NAME=VALUE'
refuses point '""' '"point" must be a text'
refuses device '"a\\u0007b"' '"device" must be a text'
refuses device '"a\\u009bb"' '"device" must be a text'
refuses time_ns -1 '"time_ns"'
refuses time_ns 0 '"time_ns"'
refuses time_ns 1e19 '"time_ns"'
refuses time_ns '"fast"' '"time_ns"'
refuses time_ns NaN ''
refuses trials -3 '"trials"'
refuses fingerprint '"xyz"' '"fingerprint" must be 16'
printf '%s\n' '{"forewarp": "wisdom", "format": 1}' "$(printf '{"problem": "\377"}')" >"$tmp/edited.w"
fails 2 "edited.w:2:1: error W001" "$FOREWARP" wisdom import "$tmp/edited.w" --store "$tmp/edited.db"
finish
