# HIP is a row of targets.def: every example is printed in it, and hipcc takes the text.
. test/cli/common

compiles() {
    hipcc --cuda-device-only --offload-arch=gfx90a -nogpulib -w -S -o /dev/null -x hip "$1"
}
emits() { # PROGRAM SIZES OPTIONS...
    file=$1 sizes=$2
    shift 2
    kernel=$(basename "$file" .fw)$(echo "$*" | tr -dc 'a-z0-9=')
    passes "emit $kernel" "$FOREWARP" emit "$file" -s "$sizes" -t hip -o "$tmp/$kernel.hip" "$@"
    grep -q -e 'asm volatile' -e 'cuda' "$tmp/$kernel.hip" && not_ok "no CUDA in $kernel" || ok "no CUDA in $kernel"
    command -v hipcc >/dev/null && passes "hipcc takes $kernel" compiles "$tmp/$kernel.hip"
}

command -v hipcc >/dev/null || echo "skip compiling HIP: hipcc is not installed"
emits examples/jacobi2d.fw N=256,M=256
emits examples/jacobi2d.fw N=256,M=256 -p 'lx=32 ly=4 bx=4 by=2 vec=4'
emits examples/jacobi2d.fw N=256,M=256 --math strict
emits examples/mm.fw N=128,M=128,K=128 -p 'lx=8 ly=8 bx=4 by=4 product=blocks'
emits examples/dot.fw N=65536 -p 'lx=64 lanes=4'
for file in argmax blackscholes column_sums cumsum_rows gemv harris heat3d life2d mandelbrot moments nbody \
    prefix reverse softmax_online srad; do
    sizes=$("$FOREWARP" check examples/$file.fw --json - | "$PYTHON" -c 'import json, sys
print(",".join(s["name"] + "=128" for s in json.load(sys.stdin)["sizes"]))')
    emits examples/$file.fw "$sizes"
done

# Host programs: C that HIP's headers take, and its library has what they call.
cd "$tmp" || exit 1
emits_host() { # PROGRAM SIZES
    stem=$(basename "$1" .fw)_host
    passes "emit $stem" "$FOREWARP" emit "$1" -s "$2" -t hip --device-model amd-r9-295x2 --host -o "$stem.c"
    [ ! -f /usr/include/hip/hip_runtime_api.h ] && echo "skip compiling $stem: no headers of HIP" && return
    printf '#include "%s.h"\nint main(void)\n{\n    hipError_t error;\n    %s_close(%s_open(NULL, 0, &error));\n    return error == hipSuccess;\n}\n' \
        "$stem" "$stem" "$stem" >main.c
    passes "$stem compiles and links" cc -std=c99 -Wall -Wextra -Wpedantic -Werror -o main main.c "$stem.c" -lamdhip64
    passes "$stem as C++" c++ -fsyntax-only -x c++ "$stem.h"
}
cp "$examples"/jacobi2d.fw "$examples"/softmax_online.fw "$examples"/scal.fw .
emits_host jacobi2d.fw N=256,M=256
emits_host softmax_online.fw N=1:4096,M=1:4096
emits_host scal.fw N=1000
finish
