# Sizes in ranges: one kernel for all of them, checked; tuning finds a few kernels and the rule
# that chooses; run, emit --host and wisdom know it.
. test/cli/common
store=$tmp/trials.db
cat >"$tmp/sums.fw" <<'END'
size N, M
def sums(a: [N][M]float): [N]float = a |> map(\row -> row |> reduce(+, 0))
END
sums=$tmp/sums.fw
range=N=8:512:4,M=16:256:16

passes "a kernel for a range" "$FOREWARP" emit "$sums" -s "$range" -o "$tmp/k.cl"
passes "takes its sizes" grep -q 'const int M' "$tmp/k.cl"
for at in N=8,M=16 N=508,M=240 N=44,M=256; do
    n=${at%,*} m=${at#*,}
    passes "is right at $at" "$FOREWARP" run "$sums" -s "$n@8:512:4,$m@16:256:16" --check
done
fails 2 "size N must be from 8 to 512 and a multiple of 4, not 10" \
    "$FOREWARP" run "$sums" -s N=10@8:512:4,M=16
fails 2 "size N must be from 8 to 512, not 513" "$FOREWARP" run "$sums" -s N=513@8:512,M=16
fails 2 "NAME=LOW:HIGH" "$FOREWARP" run "$sums" -s N=512:8,M=16

sed 's/^size.*/size N generic 4..4096 multiple 4, M/' "$sums" >"$tmp/declared.fw"
passes "a declared range" "$FOREWARP" run "$tmp/declared.fw" -s N=64,M=48 --check
fails 2 "declared.fw:1:6: error T022: size N must be from 4 to 4096 and a multiple of 4, not 6" \
    "$FOREWARP" run "$tmp/declared.fw" -s N=6,M=48
echo 'size N generic 5..7 multiple 4
def f(a: [N]float) = a' >"$tmp/none.fw"
fails 2 "none.fw:1:16: error P019" "$FOREWARP" check "$tmp/none.fw"

sed 's/^size.*/size N generic 4..4096, M generic 8..512/' "$sums" >"$tmp/both.fw"
passes "two declared ranges" "$FOREWARP" predict "$tmp/both.fw" --shares --device-model nvidia-h200 -t cuda -b 1s

passes "tuning for a range" "$FOREWARP" tune "$sums" -s N=16:64:4,M=16:64:16 -b 2t -q \
    --store "$store" -o "$tmp/out" --json="$tmp/range.json"
passes "finds a rule" grep -q '"rule"' "$tmp/range.json"
passes "writes a program with it" grep -q 'long long N, long long M, ' "$tmp/out/sums.h"
passes "which run uses" "$FOREWARP" run "$sums" -s N=20@16:64:4,M=48@16:64:16 --best --check \
    --store "$store"
passes "and emit --host" "$FOREWARP" emit "$sums" -s N=16:64:4,M=16:64:16 --best --host \
    --store "$store" -o "$tmp/sums_host.c"
passes "as parameters" grep -q 'long long N, long long M, ' "$tmp/sums_host.h"
"$FOREWARP" wisdom export --store "$store" >"$tmp/wisdom.txt"
passes "says what was checked" grep -q 'right for 9 more inputs at 3 small sizes' "$tmp/range.json"
passes "wisdom holds it" grep -q 'sums N=16:64:4 M=16:64:16' "$tmp/wisdom.txt"

# Compilers that spoil kernels: all, for rows of an odd length that no trial has; and those that
# add a row in one item, for long rows.
compiler() {
    printf '%s\n' '#!/bin/sh' 'for file; do case $file in *.c)' \
        "    grep -q 'float \*restrict out, const int' \"\$file\" && sed -i '$2' \"\$file\" ;;" \
        'esac; done' 'exec cc "$@"' >"$tmp/$1"
    chmod +x "$tmp/$1"
}
compiler odd 's/out\[\(.x\)\] = \(acc[_0-9]*\);/out[\1] = M == 304 ? 0.0f : \2;/'
compiler long 's/out\[gx\] = \(acc[_0-9]*\);/out[gx] = M > 500 ? 0.0f : \1;/'
fails 1 "no kernel is right for more inputs at small sizes" env CC="$tmp/odd" "$FOREWARP" tune "$sums" \
    -s N=16,M=16:1024:16 -d host -b 2t -q --store "$tmp/odd.db" -o "$tmp/out"
passes "a range with kernels that are wrong" env CC="$tmp/long" "$FOREWARP" tune "$sums" \
    -s N=16,M=16:1024:16 -d host -b 2t --store "$tmp/long.db" -o "$tmp/out"
cp "$tmp/stdout" "$tmp/long.txt"
passes "finds those of long rows" grep -q 'wrong-result' "$tmp/long.txt"
passes "at their size" grep -q 'M=1024 .* 100.0 %' "$tmp/long.txt"
passes "whose rule is right" env CC="$tmp/long" "$FOREWARP" run "$sums" -s N=16,M=1024@16:1024:16 \
    -d host --best --check --store "$tmp/long.db"
passes "a range to the bit" "$FOREWARP" tune "$sums" -s N=16,M=16:64 -d host -b 2t -q --math strict \
    --store "$tmp/strict.db" -o "$tmp/out"
# A product's largest sizes take a processor minutes; the range is tuned without them.
passes "a range that is too large for the budget" "$FOREWARP" tune examples/mm.fw \
    -s N=64:8192,M=64:8192,K=64:8192 -d host -b 45s -q --store "$tmp/large.db" -o "$tmp/out"
cp "$tmp/stderr" "$tmp/large.txt"
passes "says so" grep -q 'no size above .* is tried' "$tmp/large.txt"
large=N=1024:8192,M=1024:8192,K=1024:8192
passes "a budget in which nothing can be timed" "$FOREWARP" tune examples/mm.fw -s $large -d host -b 1s \
    --store "$tmp/little.db" -o "$tmp/out"
cp "$tmp/stderr" "$tmp/little.txt"
passes "gives one kernel" grep -q 'only one kernel was right in time' "$tmp/little.txt"
passes "which emit writes at once" timeout 5 "$FOREWARP" emit examples/mm.fw -s $large -d host --best --host \
    --store "$tmp/little.db" -o "$tmp/mm.c"

point='lx=64 ly=1 bx=1 cx=1 vec=1 lanes=1 fold=item hold=again'
sed -n "s/\"point\": \"[^\"]*\"/\"point\": \"1000*N*M: $point; 1000000*((N + 31)\/32) + 500: ${point#lx=64 }\"/; s/: ly=1/: lx=32 ly=1/; /N=16:64:4/p" \
    "$tmp/wisdom.txt" >"$tmp/costs.txt"
sed -n 1p "$tmp/wisdom.txt" | cat - "$tmp/costs.txt" >"$tmp/costs.w"
passes "a rule of costs" "$FOREWARP" wisdom import "$tmp/costs.w" --store "$tmp/p.db"
passes "chooses" "$FOREWARP" run "$sums" -s N=20@16:64:4,M=48@16:64:16 --best --check --store "$tmp/p.db"
passes "and is written as C" "$FOREWARP" emit "$sums" -s N=16:64:4,M=16:64:16 --best --host \
    --store "$tmp/p.db" -o "$tmp/costs.c"
passes "with what each costs" grep -q '^        0.001\*((N)\*(M)),' "$tmp/costs.c"
passes "and waves" grep -q '+ 1\*FW_DIV(((N) + 31), 32)' "$tmp/costs.c"
sed 's/1000\*N\*M/1000*Q/' "$tmp/costs.w" >"$tmp/damaged.w"
passes "a rule of what is no size" "$FOREWARP" wisdom import "$tmp/damaged.w" --store "$tmp/d.db"
fails 1 "is not used" "$FOREWARP" run "$sums" -s N=20@16:64:4,M=48@16:64:16 --best --store "$tmp/d.db"

# Rows that a group holds take as much shared memory as the sizes ask for.
cat >"$tmp/parts.fw" <<'END'
size N, M
def parts(a: [N][M]float) = a |> map(\row ->
  let most = row |> reduce(max, 0) in row |> map(\x -> x / most))
END
held="lx=64 ly=1 fold=group hold=local"
"$FOREWARP" emit "$tmp/parts.fw" -s N=16:64,M=16:8192 -t cuda -p "$held" >"$tmp/parts.cu"
passes "shared memory by the size" grep -q ', 4\*M + [0-9]* bytes of shared memory' "$tmp/parts.cu"
passes "is asked for by the launch" grep -q 'extern __shared__' "$tmp/parts.cu"
"$FOREWARP" emit "$tmp/parts.fw" -s N=16:64,M=16:8192 -t cuda -p "$held" --host -o "$tmp/parts.c"
passes "of a C program, too" grep -q 'self->local_bytes\[0\] = (size_t)((4\*(M) + ' "$tmp/parts.c"
for at in N=33,M=1001 N=64,M=16 N=17,M=63; do
    for point in "$held" "lx=16 ly=4 fold=group hold=again lanes=2" "lx=8 ly=4 fold=group hold=local"; do
        passes "rows of $at: $point" "$FOREWARP" run "$tmp/parts.fw" -s "${at%,*}@16:64,${at#*,}@16:1200" \
            -p "$point" --check
    done
done
finish
