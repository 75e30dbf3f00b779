# --sandbox: what a problem file of somebody else tries is refused, and tuning works as it
# does without. That every attempt succeeds without it shows that they are attempts.
. test/cli/common
stores "$tmp/j.db" "$tmp/t.db" "$tmp/host.db"
if ! "$FOREWARP" run examples/dot.fw -s N=64 -d host --sandbox >"$tmp/stdout" 2>"$tmp/stderr"; then
    if grep -q "this system has no" "$tmp/stderr"; then
        echo "skip the sandbox: $(sed 's/.*--sandbox: //;q' "$tmp/stderr")"
        ok "what the system lacks is said"
    else
        not_ok "a run in the sandbox" "$(cat "$tmp/stderr")"
    fi
    finish
fi
version=$(sed -n 's/.*landlock \([0-9]*\),.*/\1/p' "$tmp/stdout")
signals=$((${version:-0} >= 6)) # the first version that keeps them in

# A system without: its answer to the first question is that there is no such call.
cat >"$tmp/none.c" <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
long syscall(long n, long a, long b, long c, long d, long e, long f)
{
    errno = ENOSYS;
    return n == MISSING ? -1 : ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(n, a, b, c, d, e, f);
}
EOF
lacks() {
    "${CC:-cc}" -shared -fPIC "-DMISSING=$1" -include sys/syscall.h -o "$tmp/none.so" "$tmp/none.c" -ldl || return
    fails 1 "$2" env LD_PRELOAD="$tmp/none.so" "$FOREWARP" run examples/dot.fw -s N=64 -d host --sandbox
}
lacks 444 "this system has no Landlock"
lacks SYS_seccomp "this system has no filter of system calls"
fails 2 "--sandbox" "$FOREWARP" check examples/dot.fw --sandbox
mkdir "$tmp/attack" "$tmp/elsewhere"
cd "$tmp/attack" || exit 1
echo secret >"$HOME/secret"
echo victim >"$tmp/elsewhere/victim"

# Attempt i writes 1 to out[i] if it succeeds.
cat >attack.c <<EOF
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
static int opened(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    return fd >= 0;
}
static int connected(int family, const void *to, socklen_t size)
{
    int fd = socket(family, SOCK_STREAM, 0);
    return fd >= 0 && (connect(fd, to, size) == 0 || errno == ECONNREFUSED || errno == ENOENT);
}
static int attempt(int i)
{
    struct sockaddr_in net = {AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}, {0}};
    struct sockaddr_un local = {AF_UNIX, "$tmp/elsewhere/none"};
    const char *home = getenv("HOME");
    switch (i) {
    case 0: return opened("$HOME/secret", O_RDONLY);
    case 1: return opened("$tmp/elsewhere/new", O_WRONLY | O_CREAT);
    case 2: return opened("$tmp/elsewhere/victim", O_WRONLY | O_TRUNC);
    case 3: return truncate("$tmp/elsewhere/victim", 3) == 0;
    case 4: return chmod("$tmp/elsewhere/victim", 0666) == 0;
    case 5: return connected(AF_INET, &net, sizeof net);
    case 6: return connected(AF_UNIX, &local, sizeof local);
    case 7: {
        void *p = mmap(NULL, 64L << 30, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return 0;
        munmap(p, 64L << 30);
        return 1;
    }
    case 8: return getenv("A_PASSWORD") != NULL;
    case 9: return home && strcmp(home, "$HOME") == 0;
    case 10: return system("cat $HOME/secret >/dev/null 2>&1") == 0;
    case 11: return opened("$tmp/attack/made", O_WRONLY | O_CREAT);
    case 12: return $signals ? kill(getppid(), 0) == 0 : opened("$HOME/secret", O_RDONLY);
    case 13: {
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
        return fd >= 0 && (sendto(fd, "x", 1, 0, (const struct sockaddr *)&local, sizeof local) >= 0 ||
                           errno == ENOENT || errno == ECONNREFUSED);
    }
    case 14: return rename("$tmp/elsewhere/victim", "$tmp/elsewhere/moved") == 0;
    }
    return 0;
}
void reference(int *out)
{
    for (int i = 0; i < 15; i++)
        out[i] = attempt(i);
}
EOF
cat >attack.cl <<EOF
kernel void probe(global int *out) { out[get_global_id(0)] = EXPECT; }
EOF
cat >attack.json <<EOF
{"files": "attack.cl", "parameters": {"EXPECT": [0, 1]},
 "arguments": [{"name": "out", "type": "int", "shape": [15], "access": "out"}],
 "launch": {"kernel": "probe", "global": ["15"], "local": ["1"]},
 "reference": {"c": "attack.c", "function": "reference"}}
EOF
export A_PASSWORD=secret
check() { timeout 120 "$FOREWARP" run attack.json -d opencl:0 --check -p "EXPECT=$1" ${2:+"$2"}; }
passes "a reference reads, writes, connects and allocates" check 1
mv "$tmp/elsewhere/moved" "$tmp/elsewhere/victim"
rm -f made "$tmp/elsewhere/new"
echo victim >"$tmp/elsewhere/victim"
chmod 600 "$tmp/elsewhere/victim"
passes "in the sandbox it is refused each of it" check 0 --sandbox
[ "$(cat "$tmp/elsewhere/victim")" = victim ] && [ ! -e made ] && [ ! -e "$tmp/elsewhere/new" ] &&
    ok "nothing was changed" || not_ok "nothing was changed" "$(ls -l . "$tmp/elsewhere")"

# The same from a kernel on the host.
cat >host.fw <<EOF
size N
fun probe(x: float): float = c"extern int open(const char *, int, ...), socket(int, int, int); return (x > 0 ? open(\"$HOME/secret\", 0) : socket(2, 1, 0)) >= 0;" flops 1
def host(x: [N]float): [N]float = x |> map(\\v -> probe(v))
EOF
"$PYTHON" -c 'import numpy
numpy.save("x.npy", numpy.arange(16, dtype="float32") % 2)'
reached() { "$PYTHON" -c 'import numpy, sys
sys.exit(int((numpy.load("out.npy") != float(sys.argv[1])).any()))' "$1"; }
passes "a kernel of the host" "$FOREWARP" run host.fw -s N=16 -d host --in x=x.npy -o out.npy
passes "reads and makes a socket" reached 1
passes "in the sandbox" "$FOREWARP" run host.fw -s N=16 -d host --in x=x.npy -o out.npy --sandbox
passes "it does not" reached 0

cd "$OLDPWD" || exit 1
for device in host opencl:0; do
    passes "jacobi2d is tuned on $device" "$FOREWARP" tune examples/jacobi2d.fw -s N=64,M=64 -q -b 3t \
        -d $device --sandbox --store "$tmp/j.db" -o "$tmp/out" --json "$tmp/j.json"
    holds "and its trials are ok" "$tmp/j.json" 'j["trials"]["ok"] >= 3 and "no network" in j["sandbox"]'
done
holds "the record says what was in force" "$tmp/out/jacobi2d.run.json" '"landlock" in j["sandbox"]'
# In a cache of its own: other tests have their folders in the one that all share.
export XDG_CACHE_HOME="$tmp/cache-own"
passes "a template is tuned" "$FOREWARP" tune templates/transpose.json -s H=64,W=64 -q -b 3t --sandbox \
    --store "$tmp/t.db" -o "$tmp/out" --json "$tmp/t.json"
holds "and its trials are ok too" "$tmp/t.json" 'j["trials"]["ok"] >= 3'
[ -z "$(find "$XDG_CACHE_HOME/forewarp" -name 'run-*')" ] && ok "nothing of it stays" ||
    not_ok "nothing of it stays" "$(find "$XDG_CACHE_HOME/forewarp")"
finish
