# Random programs as C under sanitizers, against NumPy: always the same ones, and some that
# change with each commit (test/random/sanitize.py; .ci/run tries more).
. test/cli/common

if ! "$PYTHON" -c 'import numpy' 2>/dev/null; then
    echo "skip random programs: NumPy is not installed"
    finish
fi

# programs NAME OPTIONS...: what it finds is shown as it stands.
programs() {
    name=$1
    shift
    if "$PYTHON" test/random/sanitize.py --points 1 "$@" >"$tmp/found" 2>&1; then
        ok "$name"
    else
        not_ok "$name"
        cat "$tmp/found"
    fi
}

programs "random programs" --seed 3030 --programs 20
if commit=$(git rev-parse --verify --short=7 HEAD 2>/dev/null); then
    programs "random programs of commit $commit" --commit "$commit" --programs 10
else
    echo "skip random programs of the commit: this is no repository"
fi
finish
