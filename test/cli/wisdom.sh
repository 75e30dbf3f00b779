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
fails 2 "export, import or merge" "$FOREWARP" wisdom forget
finish
