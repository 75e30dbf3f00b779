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

# Points of all sizes have fewer parameters than those of given ones: `parts` stays plain.
cat >"$tmp/sums.fw" <<'END'
size N, M generic 64..8192
def sums(a: [N][M]float) = a |> map(reduce(+, 0.0))
END
passes "a program with generic sizes is explored" "$FOREWARP" explore "$tmp/sums.fw" -s N=512,M=512 \
    --derived --device-model nvidia-a100 --model data/models/gpu.json.gz -n 12 -q --csv "$tmp/sums.csv"
[ "$(grep -c ' parts=1 ' "$tmp/sums.csv")" = 12 ] && ok "its points are those that were ranked" ||
    not_ok "its points are those that were ranked" "$(grep ^sums "$tmp/sums.csv" | cut -c1-90)"
finish
