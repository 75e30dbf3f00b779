# What others compile: the header as strict C99 and as C++, the libraries that show no more
# than it declares, and the programs in examples/embed against an installation.
. test/cli/common
stores -
build=$(dirname "$FOREWARP")
root=$tmp/fw

passes "the header is C99" cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c include/forewarp.h
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || { echo "skip the header with $cxx: it is not there" && continue; }
    passes "the header is C++ for $cxx" $cxx -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only \
        -x c++-header include/forewarp.h
done
if nm "$FOREWARP" | grep -q __asan_init; then
    echo "skip the libraries: they are built with sanitizers"
    finish
fi
passes "install" "${MAKE:-make}" --no-print-directory B="$build" PREFIX="$root" install
declared=$(grep -o '\bfw_[a-z_]*(' include/forewarp.h | tr -d '(' | sort -u)
shown=$(nm -g --defined-only "$root/lib/libforewarp.a" | awk 'NF == 3 { print $3 }' | sort -u)
[ "$(echo "$shown" | grep -vxF "$declared")" = "" ] && ok "the static library shows what is declared" ||
    not_ok "the static library shows what is declared" "$(echo "$shown" | grep -vxF "$declared" | head)"
shared=$(nm -D --defined-only "$root/lib/libforewarp.so" | awk '{ print $3 }' | sort -u)
[ "$shared" = "$(echo "$shown" | sort -u)" ] && ok "and the shared one the same" || not_ok "and the shared one the same" "$shared"
for name in $declared; do
    echo "$shared" | grep -qx "$name" || echo "$name"
done >"$tmp/missing"
[ -s "$tmp/missing" ] && not_ok "all that is declared is there" "$(cat "$tmp/missing")" || ok "all that is declared is there"

for name in $declared; do
    cat test/api/*.c | grep -q "\<$name(" || echo "$name"
done >"$tmp/missing"
[ -s "$tmp/missing" ] && not_ok "all that is declared is tested" "$(cat "$tmp/missing")" || ok "all that is declared is tested"

# A program of CUDA's, on two libraries that play a GPU.
mkdir -p "$tmp/gpu/lib64"
cc -std=c11 -D_GNU_SOURCE -shared -fPIC -O1 -o "$tmp/gpu/lib64/libnvrtc.so" test/measure/fake_cuda.c -ldl
ln -s libnvrtc.so "$tmp/gpu/lib64/libcuda.so.1"
passes "a CUDA guest compiles" cc -std=c99 -Wall -Wextra -pedantic -Werror -Iinclude -o "$tmp/guest" \
    test/host/guest_cuda.c -L"$root/lib" -lforewarp
guest() { LD_LIBRARY_PATH="$tmp/gpu/lib64:$root/lib" CUDA_HOME="$tmp/gpu" PATH=/usr/bin:/bin "$tmp/guest" "$@"; }
passes "it runs" guest

cp -r examples/embed "$tmp/embed"
cd "$tmp/embed" || exit 1
export PKG_CONFIG_PATH="$root/lib/pkgconfig" LD_LIBRARY_PATH="$root/lib" PATH="$root/bin:$PATH"
unset FOREWARP MAKEFLAGS B # the installed one is meant
passes "the examples build without warnings" make CFLAGS="-O1 -Wall -Wextra -pedantic -Werror"
if [ -f "${CUDA_HOME:-/usr/local/cuda}/include/cuda_runtime_api.h" ]; then
    passes "and that for CUDA" make CUDA="${CUDA_HOME:-/usr/local/cuda}" cuda
else
    echo "skip that for CUDA: no cuda_runtime_api.h"
fi
passes "and that of the driver interface, without the toolkit" make CFLAGS="-O1 -Wall -Wextra -pedantic -Werror" driver
passes "which runs" env LD_LIBRARY_PATH="$tmp/gpu/lib64:$root/lib" CUDA_HOME="$tmp/gpu" PATH=/usr/bin:/bin ./driver 64
if ./ahead >"$tmp/out" 2>&1; then
    ok "ahead: $(cat "$tmp/out")"
elif grep -q "clGetPlatformIDs failed: -1001" "$tmp/out"; then
    echo "skip the OpenCL examples: no device"
    finish
else
    not_ok "ahead" "$(cat "$tmp/out")"
fi
passes "opencl, estimated" ./opencl estimate 64
fails 1 "no wisdom" ./opencl wisdom 100
passes "the program tunes" forewarp tune smooth.fw -s N=96,M=96 -q -b 6t -o "$tmp/kernel"
passes "opencl, with its wisdom" ./opencl wisdom 96
grep -q "  wisdom, " "$tmp/stdout" && ok "is found" || not_ok "is found" "$(cat "$tmp/stdout")"
passes "opencl, of another size" ./opencl wisdom 128
grep -q "not measured" "$tmp/stderr" && ok "is said to be so" || not_ok "is said to be so" "$(cat "$tmp/stderr")"
passes "its own worker" ./opencl measure 48
grep -q "measured now" "$tmp/stdout" && ok "measures" || not_ok "measures" "$(cat "$tmp/stdout")"
finish
