# No function of ours may take a name of the C library's: a driver loaded into a worker, or
# we ourselves, would call the wrong one (a function named dup once crashed every driver).
. test/cli/common

libc=$(ldd "$FOREWARP" | awk '/libc\.so/ { print $3 }')
nm "$(dirname "$FOREWARP")/libforewarp.a" 2>/dev/null | awk '$2 == "T" { print $3 }' |
    sort -u >"$tmp/ours"
nm -D --defined-only "$libc" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u >"$tmp/libc"
shared=$(comm -12 "$tmp/ours" "$tmp/libc" | grep -vE '^(main|_init|_fini|_start)$' | tr '\n' ' ')
[ -z "$shared" ] && ok "no name shared with the C library" ||
    not_ok "no name shared with the C library" "$shared"
finish
