# Programs drawn at random by class (bench/programs.py), small: twelve of a seed that stays are
# well-typed and right on the host; the same seed draws the same; what fails is found and kept.
# Changes of the examples (bench/cliffs) are programs too. Nothing is timed here.
. test/cli/common
stores -
passes "drawn programs are right" \
    "$PYTHON" bench/population 3 12 -d host --small --points 0 --keep "$tmp/kept" --json "$tmp/rows.json"
holds "twelve rows of all classes" "$tmp/rows.json" \
    'len(j) == 12 and len({r["class"] for r in j}) == 12 and {r["status"] for r in j} == {"ok"}'

"$PYTHON" bench/population 3 90 --text >"$tmp/first"
"$PYTHON" bench/population 3 90 --text >"$tmp/second"
"$PYTHON" bench/population 4 90 --text >"$tmp/third"
passes "a seed draws the same programs" cmp "$tmp/first" "$tmp/second"
grep -v '^//' "$tmp/first" >"$tmp/first.code"
grep -v '^//' "$tmp/third" >"$tmp/third.code"
if cmp -s "$tmp/first.code" "$tmp/third.code"; then
    not_ok "another seed draws others"
else
    ok "another seed draws others"
fi

# Ninety programs, each well-typed at its small sizes.
"$PYTHON" - "$FOREWARP" "$tmp/p.fw" <<'END' && ok "ninety are well-typed" || not_ok "ninety are well-typed"
import subprocess, sys
sys.path.insert(0, "bench")
sys.dont_write_bytecode = True
import programs
classes = list(programs.CLASSES)
bad = 0
for i in range(90):
    program = programs.draw(5, i // len(classes), classes[i % len(classes)])
    open(sys.argv[2], "w").write(program.text)
    bad |= subprocess.run([sys.argv[1], "check", sys.argv[2], "-s",
                           programs.sizes_text(program.small())], stdout=subprocess.DEVNULL).returncode
sys.exit(bad)
END

# A program under test that gives wrong results, for everything but `devices`.
cat >"$tmp/wrong" <<END
#!/bin/sh
[ "\$1" = devices ] && exec "$FOREWARP" "\$@"
echo "the kernel did not run: wrong-result" >&2
exit 1
END
chmod +x "$tmp/wrong"
"$PYTHON" bench/population 3 1 folds --forewarp "$tmp/wrong" -d host --small \
    --keep "$tmp/kept" --json "$tmp/rows.json" >"$tmp/stdout"
is_1=$?
[ $is_1 = 1 ] && ok "a wrong program ends in status 1" || not_ok "a wrong program ends in status $is_1"
holds "what is wrong is found" "$tmp/rows.json" 'j[0]["status"] == "wrong"'
passes "what is wrong is kept" grep -q wrong-result "$tmp"/kept/folds-3-0-host.txt
fails 2 "no class nothing" "$PYTHON" bench/population 3 1 nothing

passes "cliffs changes an example" "$PYTHON" bench/cliffs --text jacobi2d
cp "$tmp/stdout" "$tmp/changes"
for words in 'a: \[N\]\[M\]half' 'pad2(1, 1, mirror)' 'pad2(2, 2, clamp) |> slide2(5, 1)' \
    'p\[0\]\[2\], p\[2\]\[0\], p\[2\]\[2\]' 'def epilogue(a: \[N\]\[M\]float)' \
    'a: \[BATCH\]\[N\]\[M\]float'; do
    passes "cliffs: $words" grep -q "$words" "$tmp/changes"
done
finish
