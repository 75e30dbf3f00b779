# The Python package: its tests, and that a wheel holds what it needs.
. test/cli/common
build=$(dirname "$FOREWARP")
if nm "$FOREWARP" | grep -q __asan_init; then
    echo "skip the Python package: the library is built with sanitizers"
    exit 0
fi
for module in cffi pytest numpy; do
    "$PYTHON" -c "import $module" 2>/dev/null || { echo "skip the Python package: no module $module" && exit 0; }
done
export PYTHONPATH="$build/python" PYTHONDONTWRITEBYTECODE=1
# -rA names each test with its outcome at the end: `PASSED test/python/test_kernel.py::test_numpy[host]`.
"$PYTHON" -m pytest -q -rA -p no:cacheprovider test/python >"$tmp/out" 2>&1
sed -n -e 's/^PASSED /ok /p' -e 's/^SKIPPED /skip /p' -e 's/^\(FAILED\|ERROR\) /not ok /p' "$tmp/out"
if grep -q '^\(FAILED\|ERROR\)' "$tmp/out" || ! grep -q '^PASSED' "$tmp/out"; then
    not_ok "pytest" "$(grep -v '^PASSED' "$tmp/out" | tail -n 60)"
fi
for file in py.typed root/bin/forewarp root/share/forewarp/models/cpu.json.gz; do
    [ -e "$build/python/forewarp/$file" ] && ok "$file" || not_ok "$file"
done
passes "its program" "$build/python/forewarp/root/bin/forewarp" --version
finish
