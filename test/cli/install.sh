# make install puts the files where they belong, the result works from there, and make
# uninstall takes all of them away.
. test/cli/common
build=$(dirname "$FOREWARP")
root=$tmp/root

install_it() { "${MAKE:-make}" --no-print-directory B="$build" DESTDIR="$root" PREFIX=/opt/fw "$1"; }
passes "install" install_it install
for file in bin/forewarp lib/libforewarp.a lib/libforewarp.so lib/libforewarp.so.0 include/forewarp.h \
    lib/pkgconfig/forewarp.pc share/man/man1/forewarp.1 share/forewarp/examples/jacobi2d.fw \
    share/doc/forewarp/LICENSE share/doc/forewarp/doc/tutorial.md share/bash-completion/completions/forewarp \
    share/zsh/site-functions/_forewarp; do
    [ -s "$root/opt/fw/$file" ] && ok "$file" || not_ok "$file"
done
passes "the installed program" "$root/opt/fw/bin/forewarp" check "$root/opt/fw/share/forewarp/examples/jacobi2d.fw"
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
fi
passes "uninstall" install_it uninstall
[ -z "$(find "$root" ! -type d)" ] && ok "nothing is left" || not_ok "nothing is left" "$(find "$root" ! -type d)"
finish
