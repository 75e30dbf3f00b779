# The recipes of HACKING.md: a layout, a strategy and a command are added to a copy of the
# sources, in the files that the recipes name and in no others; it builds without a warning,
# and they work.
. test/cli/common
stores -
copy=$tmp/copy
mkdir "$copy"
cp -r Makefile src include doc heuristics HACKING.md "$copy"

# add FILE LINE TEXT: TEXT before the first line of the file that contains LINE.
add() {
    awk -v line="$2" -v text="$3" '!done && index($0, line) { print text; done = 1 } { print }
        END { exit !done }' "$copy/$1" >"$tmp/added" || not_ok "$1" "it has no line $2"
    cp "$tmp/added" "$copy/$1"
    echo "$1" >>"$tmp/touched"
}
write() {
    cat >"$copy/$1"
    echo "$1" >>"$tmp/touched"
}
# recipe TITLE: HACKING.md's paragraph of that title names the files touched, and no
# others.
recipe() {
    awk -v title="**$1" 'index($0, title) { on = 1 } on && !NF { exit } on' HACKING.md >"$tmp/recipe"
    sort -u "$tmp/touched" | sed 's/backwards\|greet/NAME/' >"$tmp/files"
    grep -o '`\(src\|doc\)/[a-zA-Z_./0-9]*`' "$tmp/recipe" | tr -d '`' | sort -u >"$tmp/named"
    wrong=$(comm -3 "$tmp/files" "$tmp/named" | tr '\n\t' '  ')
    [ -z "$wrong" ] && ok "$1: $(grep -c . "$tmp/files") files" || not_ok "$1" "not both named and touched: $wrong"
    : >"$tmp/touched"
}

# A layout: element i of flip(a) is element n - 1 - i.
add src/ir/patterns.def "PATTERN(TRANSPOSE," \
    'PATTERN(FLIP, "flip", VIEW, 0, 0, 1, NONE, "the last element first")'
add src/ir/infer_pattern.c "case P_JOIN: return" 'case P_FLIP: return infer_expr(in, e->arg[0], want);'
add src/ir/interp_view.c "case P_GATHER: to[0]" 'case P_FLIP: to[0] = view->len[0] - 1 - index[0]; return 1;'
add src/lower/view.c "case P_JOIN: return at_join" 'case P_FLIP: return view_elem(l, v->src,
        arith_addc(l->ctx, arith_sub(l->ctx, v->src->type->len, v->index[0]), -1));'
add doc/language.md "gather     (int" 'flip       [n]T -> [n]T
           flip(a)'
recipe "A layout"

write src/search/backwards.c <<'EOF'
// SPDX-License-Identifier: Apache-2.0
//
// Every valid point, the last one first.
#include "search/search.h"

static bool ask_backwards(Search *search, Point *point)
{
    double left = space_count(search->space) - search->given;
    if (left > 0)
        space_point(search->space, (uint64_t)left - 1, point);
    return left > 0;
}

const SearchKind search_backwards = {
    .name = "backwards", .doc = "every valid point, in reverse", .ask = ask_backwards};
EOF
add src/search/searches.def "SEARCH(random)" "SEARCH(backwards)"
recipe "A search strategy"

add src/cli/commands.def "COMMAND(DEVICES," 'COMMAND(GREET, greet, "", "say who is there")'
write src/cli/cmd_greet.c <<'EOF'
// SPDX-License-Identifier: Apache-2.0
//
// forewarp greet.
#include "cli/cli.h"

int cmd_greet(Options *o)
{
    return printf("hello, %s\n", o->command->name) < 0;
}
EOF
add doc/forewarp.1 ".SH OPTIONS" ".TP
.B greet
says who is there."
recipe "A command"

passes "it builds" make -s -C "$copy" -j2 CFLAGS=-O0 WERROR=1 MPI= build/forewarp
new=$copy/build/forewarp
cat >"$tmp/flip.fw" <<'EOF'
size N
def last(a: [N]float): [N]float = map(\x -> 2 * x, flip(a))
EOF
passes "a program with the pattern" "$new" run "$tmp/flip.fw" -s N=100 -d host --check
"$new" emit "$tmp/flip.fw" -s N=100 -t c | grep -q 'a\[99 - ' && ok "its index" || not_ok "its index"
passes "help of the pattern" "$new" help flip
passes "a search with the strategy" "$new" tune "$tmp/flip.fw" -s N=100 -d host -b 3t --strategy backwards -o "$tmp/out"
passes "the command" "$new" greet
fails 2 "there is no command" "$FOREWARP" greet
finish
