# The checks themselves: those of the source pass here, and find what is planted elsewhere;
# tools/check counts, and runs what ran out of time again.
. test/cli/common

passes "depcheck" tools/depcheck
passes "sizecheck" tools/sizecheck
mkdir -p "$tmp/tree/tools" "$tmp/tree/src/base" "$tmp/tree/src/ir" "$tmp/tree/test/ir"
cp tools/depcheck tools/sizecheck "$tmp/tree/tools"

# finds TOOL FILE TEXT: with this text in the file, the tool fails and names the file.
finds() {
    file="$tmp/tree/$2"
    for f in src/base/a.c src/base/a.h src/ir/a.def test/ir/test_a.c; do
        echo '// SPDX-License-Identifier: Apache-2.0' >"$tmp/tree/$f"
    done
    "$tmp/tree/tools/$1" >"$tmp/stdout" 2>&1 || not_ok "$1 on nothing" "$(cat "$tmp/stdout")"
    printf '%b' "$3" >>"$file"
    "$tmp/tree/tools/$1" >"$tmp/stdout" 2>&1
    [ $? = 1 ] && grep -q "$2" "$tmp/stdout" && ok "$1 finds $4" || not_ok "$1 finds $4"
    rm "$file"
}

finds depcheck src/base/a.c '#include "ir/ir.h"\n' "a later module"
finds depcheck src/base/a.h '#include "nothing/of.h"\n' "an unknown module"
finds depcheck src/ir/b.c '// SPDX-License-Identifier: Apache-2.0\n#include "arith/internal.h"\n' "a private header"
finds depcheck src/ir/b.c '// SPDX-License-Identifier: Apache-2.0\n#include <sqlite3.h>\n' "a library of another's"
finds depcheck src/ir/b.c 'int x;\n' "no licence"
finds depcheck src/ir/b.c '// SPDX-License-Identifier: Apache-2.0\nvoid f(void)\n{\n    puts("x");\n}\n' "printing"
mkdir "$tmp/tree/src/derive"
printf 'PARAMETER("l", "xy", NONE, "items")\nPARAMETER("vec", "", NONE, "width")\n' >"$tmp/tree/src/derive/parameters.def"
licence='// SPDX-License-Identifier: Apache-2.0\n'
printf "$licence"'    int x = space_find(s, "ly"), y = derive_param(d, point, "vec");\n' >"$tmp/tree/src/derive/a.c"
finds depcheck src/derive/b.c "$licence"'    int x = space_find(space, "lz");\n' "a parameter without a row"
finds depcheck src/derive/b.c "$licence"'    set_number(d, point, "l", 4);\n' "part of a name"
printf "$licence"'typedef struct {\n    int x;\n} Twice;\n' >"$tmp/tree/src/base/type.c"
finds depcheck src/ir/b.c "$licence"'typedef struct {\n    int y;\n} Twice;\n' "a type with two meanings"
mkdir "$tmp/tree/src/other"
finds depcheck src/other/a.c '// SPDX-License-Identifier: Apache-2.0\n' "a module without a place"
long() { awk -v n="$1" 'BEGIN {for (i = 0; i < n; i++) printf "\\n"}'; }
finds sizecheck src/base/b.c "int f(void)\n{$(long 125)}\n" "a long function"
finds sizecheck src/base/b.c "$(long 901)" "a long file"

# deps MANAGER WANTED NEED...: beside this package manager alone, where nothing is found, tools/deps has it install that.
deps() {
    manager=$1 want=$2
    shift 2
    rm -rf "$tmp/bin" && mkdir "$tmp/bin"
    for command in sh awk tr id grep ls echo env; do ln -s "$(command -v $command)" "$tmp/bin"; done
    printf '#!/bin/sh\necho "$@"\n' | tee "$tmp/bin/$manager" "$tmp/bin/sudo" >/dev/null
    chmod +x "$tmp/bin/$manager" "$tmp/bin/sudo"
    PATH="$tmp/bin" PYTHON=/none "$tmp/bin/sh" tools/deps "$@" >"$tmp/stdout" 2>"$tmp/stderr"
    grep -q -- "$want" "$tmp/stdout" && ok "deps by $manager" || not_ok "deps by $manager" "$(cat "$tmp/stdout" "$tmp/stderr")"
}

deps apt-get '-qy install --no-install-recommends libisl-dev$' isl
deps dnf '-y install sqlite-devel lapack-devel$' sqlite lapacke
deps pacman '-S --needed --noconfirm ocl-icd opencl-headers$' OpenCL
deps apk 'add isl-dev gmp-dev$' isl gmp
deps brew 'install jansson$' jansson
rm "$tmp/bin/brew"
PATH="$tmp/bin" "$tmp/bin/sh" tools/deps isl 2>"$tmp/stderr"
grep -q 'missing: isl. There is no apt-get' "$tmp/stderr" && ok "deps without a package manager" || not_ok "deps without a package manager"
fails 2 'there is no row `moon`' tools/deps moon

# check COUNTS TEXT NAME: with this text as a test, and little time, tools/check counts so.
check() {
    printf '%b' "$2" >"$tmp/t.sh"
    rm -f "$tmp/ran"
    TEST_LIMIT=1 tools/check "$tmp/t.sh" >"$tmp/stdout" 2>&1
    [ "$(tail -n 1 "$tmp/stdout")" = "$1" ] && ok "check: $3" || not_ok "check: $3" "$(cat "$tmp/stdout")"
}
check "2 passed, 1 failed" 'echo ok 1; echo ok 2; echo not ok 3\n' "counts"
check "1 passed, 1 failed" 'echo ok 1; while :; do :; done\n' "a test that spins"
check "2 passed, 0 failed" "echo ok 1; [ -e $tmp/ran ] || { : >$tmp/ran; while :; do :; done; }; echo ok 2\\n" "a test that spins once"
check "1 passed, 1 failed" 'echo ok 1; exit 3\n' "a status"
finish
