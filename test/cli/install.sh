# make install puts the files where they belong, the result works from there, and make
# uninstall takes all of them away.
. test/cli/common
build=$(dirname "$FOREWARP")
root=$tmp/root

install_it() { "${MAKE:-make}" --no-print-directory B="$build" DESTDIR="$root" PREFIX=/opt/fw "$1"; }
passes "install" install_it install
for file in bin/forewarp lib/libforewarp.a lib/libforewarp.so lib/libforewarp.so.0 include/forewarp.h \
    lib/pkgconfig/forewarp.pc lib/cmake/forewarp/forewarpConfig.cmake share/man/man1/forewarp.1 share/forewarp/examples/jacobi2d.fw \
    share/doc/forewarp/LICENSE share/doc/forewarp/doc/tutorial.md share/bash-completion/completions/forewarp \
    share/zsh/site-functions/_forewarp; do
    [ -s "$root/opt/fw/$file" ] && ok "$file" || not_ok "$file"
done
passes "the installed program" "$root/opt/fw/bin/forewarp" check "$root/opt/fw/share/forewarp/examples/jacobi2d.fw"
# A link of an installed page leads to something that is installed.
"$PYTHON" - "$root/opt/fw/share/doc/forewarp" >"$tmp/dead" <<'END'
import pathlib, re, sys
for page in pathlib.Path(sys.argv[1]).rglob("*.md"):
    for target in re.findall(r"\]\(([^)# ]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target and not (page.parent / target).exists():
            print(page.name, target)
END
[ -s "$tmp/dead" ] && not_ok "links of installed pages" "$(cat "$tmp/dead")" || ok "links of installed pages"
flags() {
    PKG_CONFIG_PATH="$root/opt/fw/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root" pkg-config "$@" forewarp
}
passes "pkg-config" flags --static --cflags --libs
cat >"$tmp/use.c" <<'END'
#include <forewarp.h>
#include <stdio.h>
int main(void)
{
    return puts(fw_version()) < 0;
}
END
# shellcheck disable=SC2046
if nm "$FOREWARP" | grep -q __asan_init; then
    echo "skip a program on the library: it is built with sanitizers"
else
    passes "a program on the library" cc -o "$tmp/use" "$tmp/use.c" $(flags --static --cflags --libs)
    passes "it runs" env LD_LIBRARY_PATH="$root/opt/fw/lib" "$tmp/use"
    if command -v cmake >/dev/null; then
        mkdir "$tmp/cmake"
        mv "$tmp/use.c" "$tmp/cmake"
        cat >"$tmp/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.18)
project(use C)
find_package(forewarp 0.2 REQUIRED)
add_executable(use use.c)
target_link_libraries(use forewarp::forewarp)
END
        passes "CMake finds it" cmake -S "$tmp/cmake" -B "$tmp/cmake/build" -DCMAKE_PREFIX_PATH="$root/opt/fw"
        passes "and builds with it" cmake --build "$tmp/cmake/build"
        passes "what runs" "$tmp/cmake/build/use"
    else
        echo "skip CMake: it is not there"
    fi
fi
passes "uninstall" install_it uninstall
[ -z "$(find "$root" ! -type d)" ] && ok "nothing is left" || not_ok "nothing is left" "$(find "$root" ! -type d)"
passes "install with LIBDIR" "${MAKE:-make}" --no-print-directory B="$build" DESTDIR="$tmp/lib64" PREFIX=/usr LIBDIR=/usr/lib64 install
[ -e "$tmp/lib64/usr/lib64/libforewarp.so.0" ] && [ ! -e "$tmp/lib64/usr/lib" ] && ok "libraries are in LIBDIR" || not_ok "libraries are in LIBDIR"
grep -q '^libdir=${prefix}/lib64$' "$tmp/lib64/usr/lib64/pkgconfig/forewarp.pc" && ok "and pkg-config says so" || not_ok "and pkg-config says so"
finish
