# Random programs ranked by the model for a GPU that is only described, and printed: one of
# each class, which change with each commit (test/random/ranked.py).
. test/cli/common
stores -

if ! "$PYTHON" -c 'import numpy' 2>/dev/null; then
    echo "skip ranked programs: NumPy is not installed"
    finish
fi
commit=$(git rev-parse --verify --short=7 HEAD 2>/dev/null) || commit=0

if "$PYTHON" test/random/ranked.py --commit "$commit" --programs 10 --points 4 >"$tmp/found" 2>&1; then
    ok "ranked programs of commit $commit"
else
    not_ok "ranked programs of commit $commit"
    cat "$tmp/found"
fi

# A program under test that dies where it prints a kernel.
cat >"$tmp/dying" <<END
#!/bin/sh
[ "\$1" = emit ] && kill -ABRT \$\$
exec "$FOREWARP" "\$@"
END
chmod +x "$tmp/dying"
FOREWARP="$tmp/dying" "$PYTHON" test/random/ranked.py --seed 3 --programs 1 >"$tmp/found" 2>&1
is=$?
if [ $is = 1 ] && grep -q 'emit .* status -6' "$tmp/found" && grep -q '^== seed 3' "$tmp/found"; then
    ok "a crash is found"
else
    not_ok "a crash is found" "exit status $is"
    cat "$tmp/found"
fi
finish
