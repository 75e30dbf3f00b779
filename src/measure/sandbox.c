// SPDX-License-Identifier: Apache-2.0
//
// A worker that does not trust its jobs: what it may not do any more, nor anything that it
// starts, once it has gone in.
//
//   files    Landlock: it reads the system's folders and the data of this run, and writes
//            only in a folder of this run. So there is no home (the texts of kernels come
//            by message), and no cache is left that others would load code from.
//   network  a filter of system calls refuses sockets but those of this machine, and to
//            connect or send them anywhere. It refuses too what Landlock leaves open:
//            changing modes, owners and times of files, objects that processes share by a
//            number, and leaving the process group, which the controller ends as a whole.
//   memory   limits of the system: private memory, sizes and number of files, no core dump
//
// Landlock also keeps it from looking into processes outside, and from version 6 of its
// interface on from sending them signals. It does not limit time (the controller does), how
// many processes there are, the sum of the files written, or the memory of a GPU; a fault
// of the kernel or of a driver may let out what is inside. See doc/security.md.
#include "measure/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILES_MAX = 1024 };
// For compilers and drivers; and how many copies of the problem's arrays there may be.
static const double ROOM_BYTES = 4e9, COPIES = 4;

// Landlock -----------------------------------------------------------------------------

// Numbers of the kernel's interface, of which the C library's headers may know fewer.
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446 };
enum { ASK_VERSION = 1, RULE_PATH = 1 };
enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    ALL_FIRST = (1 << 13) - 1, // of the first version
    REFER = 1 << 13,           // from the second on: to another folder by rename and link
    TRUNCATE = 1 << 14,        // from the third on
    READ = EXECUTE | READ_FILE | READ_DIR,
    OF_FILES = EXECUTE | READ_FILE | WRITE_FILE | TRUNCATE,
    SCOPES = 3, // from the sixth on: abstract sockets, signals
    VERSION_LEAST = 2,
};

typedef struct {
    uint64_t files, net, scopes;
} LandlockRules;

typedef struct __attribute__((packed)) {
    uint64_t allowed;
    int32_t fd;
} LandlockPath;

static int landlock_version(void)
{
    return (int)syscall(LANDLOCK_CREATE, NULL, 0, ASK_VERSION);
}

static uint64_t rights(int version)
{
    return ALL_FIRST | REFER | (version >= 3 ? TRUNCATE : 0);
}

// What is not there needs no rule.
static bool allow(int rules, const char *path, uint64_t allowed)
{
    struct stat about;
    LandlockPath rule = {allowed, open(path, O_PATH | O_CLOEXEC)};
    if (rule.fd < 0)
        return true;
    if (fstat(rule.fd, &about) == 0 && !S_ISDIR(about.st_mode))
        rule.allowed &= OF_FILES;
    bool ok = syscall(LANDLOCK_ADD, rules, RULE_PATH, &rule, 0) == 0;
    close(rule.fd);
    return ok;
}

static bool allow_each(int rules, const char *const *pattern, int n, uint64_t allowed)
{
    bool ok = true;
    for (int i = 0; i < n; i++) {
        glob_t found;
        if (glob(pattern[i], GLOB_NOSORT, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc; k++)
            ok = allow(rules, found.gl_pathv[k], allowed) && ok;
        globfree(&found);
    }
    return ok;
}

// Of /etc, what loaders, compilers and drivers read: the rest is not for kernels.
static bool allow_system(int rules)
{
    static const char *const read[] = {"/usr",          "/bin",        "/sbin",
                                       "/lib*",         "/opt",        "/nix/store",
                                       "/gnu/store",    "/proc",       "/sys",
                                       "/etc/ld.so*",   "/etc/OpenCL", "/etc/nvidia*",
                                       "/etc/vulkan",   "/etc/glvnd",  "/etc/amd*",
                                       "/etc/rocm*",    "/etc/pocl*",  "/etc/localtime",
                                       "/etc/timezone", "/etc/clang*", "/etc/alternatives"};
    static const char *const use[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                      "/dev/random", "/dev/urandom", "/dev/nvidia*",
                                      "/dev/dri",    "/dev/kfd",     "/dev/dxg"};
    return allow_each(rules, read, COUNTOF(read), READ) &&
           allow_each(rules, use, COUNTOF(use), READ_FILE | WRITE_FILE | READ_DIR);
}

// CUDA's driver gives its threads names there. The file stays open: without it the system
// may forget what the rule is about.
static bool allow_own_threads(int rules, uint64_t every_right)
{
    return open("/proc/self/task", O_PATH | O_CLOEXEC) >= 0 &&
           allow(rules, "/proc/self/task", every_right & (OF_FILES | READ_DIR));
}

static bool restrict_files(const json_t *wanted)
{
    int version = landlock_version();
    LandlockRules rules = {rights(version), 0, version >= 6 ? SCOPES : 0};
    size_t size = version >= 6   ? sizeof rules
                  : version >= 4 ? offsetof(LandlockRules, scopes)
                                 : offsetof(LandlockRules, net);
    int fd = (int)syscall(LANDLOCK_CREATE, &rules, size, 0);
    if (fd < 0)
        return false;
    bool ok = allow_system(fd) && allow_own_threads(fd, rights(version)) &&
              allow(fd, json_text_of(wanted, "write"), rights(version)) &&
              allow(fd, json_text_of(wanted, "turns"), READ_FILE | WRITE_FILE) &&
              allow(fd, json_text_of(wanted, "data"), READ_FILE | READ_DIR) &&
              syscall(LANDLOCK_RESTRICT, fd, 0) == 0;
    int saved = errno;
    close(fd);
    errno = saved;
    return ok;
}

// System calls
// System calls ---------------------------------------------------------------------------

#if defined(__x86_64__)
enum { OUR_ARCH = (int)AUDIT_ARCH_X86_64, FOREIGN = 0x40000000 }; // numbers of the x32 mode
#elif defined(__aarch64__)
enum { OUR_ARCH = (int)AUDIT_ARCH_AARCH64, FOREIGN = 0x7fffffff };
#else
enum { OUR_ARCH = 0, FOREIGN = 0x7fffffff };
#endif

// clang-format off
static const int refused_calls[] = {
    SYS_connect, SYS_sendmsg, SYS_sendmmsg,
    SYS_truncate, SYS_fchmodat, SYS_fchownat, SYS_utimensat,
    SYS_setxattr, SYS_lsetxattr, SYS_removexattr, SYS_lremovexattr,
    SYS_setsid, SYS_setpgid,
    SYS_shmget, SYS_msgget, SYS_semget, SYS_mq_open,
    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_bpf, SYS_perf_event_open,
    425, 426, 427, // io_uring_setup, _enter, _register: it makes sockets too
    452, 463, 466, // fchmodat2, setxattrat, removexattrat
#ifdef SYS_chmod
    SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat,
#endif
};
// clang-format on

enum {
    LOAD = BPF_LD | BPF_W | BPF_ABS,
    IF_EQUAL = BPF_JMP | BPF_JEQ | BPF_K,
    IF_LEAST = BPF_JMP | BPF_JGE | BPF_K,
};

static bool filter_available(void)
{
    uint32_t action = SECCOMP_RET_ERRNO;
    return OUR_ARCH != 0 && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

// The operand of a jump is the number of instructions that it skips. CUDA's driver makes a
// socket of this machine, so sockets are allowed, but they must not reach anybody: sendto
// is allowed without an address only, as send calls it.
static bool restrict_calls(void)
{
    enum { N = COUNTOF(refused_calls), REST = N + 4, LEN = REST + 10, LOW = 0, HIGH = 4 };
    const uint32_t domain = offsetof(struct seccomp_data, args[0]);
    const uint32_t address = offsetof(struct seccomp_data, args[4]);
    struct sock_filter code[LEN] = {
        BPF_STMT(LOAD, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(IF_EQUAL, (uint32_t)OUR_ARCH, 0, LEN - 3),
        BPF_STMT(LOAD, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(IF_LEAST, FOREIGN, LEN - 5, 0),
        [REST] = BPF_JUMP(IF_EQUAL, SYS_socket, 0, 2),
        [REST + 1] = BPF_STMT(LOAD, domain + LOW),
        [REST + 2] = BPF_JUMP(IF_EQUAL, AF_UNIX, 5, 6),
        [REST + 3] = BPF_JUMP(IF_EQUAL, SYS_sendto, 0, 4),
        [REST + 4] = BPF_STMT(LOAD, address + LOW),
        [REST + 5] = BPF_JUMP(IF_EQUAL, 0, 0, 3),
        [REST + 6] = BPF_STMT(LOAD, address + HIGH),
        [REST + 7] = BPF_JUMP(IF_EQUAL, 0, 0, 1),
        [LEN - 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        [LEN - 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES)};
    for (int i = 0; i < N; i++)
        code[4 + i] = (struct sock_filter)BPF_JUMP(IF_EQUAL, (uint32_t)refused_calls[i],
                                                   (uint8_t)(LEN - 6 - i), 0);
    const struct sock_fprog program = {LEN, code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Limits ------------------------------------------------------------------------------

static bool limit(int what, double most)
{
    struct rlimit now;
    if (getrlimit(what, &now) != 0)
        return false;
    rlim_t least = (rlim_t)MIN(most, 9e18);
    struct rlimit new = {MIN(now.rlim_cur, least), MIN(now.rlim_max, least)};
    return setrlimit(what, &new) == 0;
}

// Private memory that the process has already: a sanitizer's shadow is large.
static double memory_now(void)
{
    AutoBuf text = buf_new();
    const char *at = file_read("/proc/self/status", FILE_TEXT_MOST, &text)
                         ? strstr(text.text, "VmData:")
                         : NULL;
    return at ? 1024 * strtod(at + strlen("VmData:"), NULL) : 0;
}

static bool set_limits(double bytes)
{
    return limit(RLIMIT_DATA, memory_now() + bytes) && limit(RLIMIT_FSIZE, bytes) &&
           limit(RLIMIT_NOFILE, FILES_MAX) && limit(RLIMIT_CORE, 0);
}

// In and out ---------------------------------------------------------------------------

bool sandbox_describe(double problem_bytes, Sandbox *sandbox, Arena *arena, Diags *diags)
{
    int version = landlock_version();
    if (version < VERSION_LEAST)
        return diag_world(
            diags, "C091",
            "--sandbox: this system has no Landlock%s, which keeps workers from "
            "files: Linux 5.19 or later, with landlock among its security "
            "modules (lsm=)",
            version == 1 ? " of version 2" : "");
    if (!filter_available())
        return diag_world(diags, "C091",
                          "--sandbox: this system has no filter of system calls (seccomp), "
                          "which keeps workers from the network");
    sandbox->bytes =
        ROOM_BYTES + COPIES * problem_bytes + (double)processors() * WORKER_STACK_BYTES;
    sandbox->says = arena_printf(arena, "landlock %d, no network, %.1f GB", version,
                                 sandbox->bytes * 1e-9);
    return true;
}

json_t *sandbox_to_json(const Sandbox *sandbox, const Folder *folder)
{
    AutoBuf turns = buf_new();
    buf_printf(&turns, "%s/" TURNS, folder->path);
    return json_pack("{s:o,s:o,s:o,s:f}", "data", json_text(folder->data.path), "write",
                     json_text(folder->own), "turns", json_text(turns.text), "bytes",
                     sandbox->bytes);
}

static bool close_others(int fd)
{
    return (fd <= 3 || syscall(SYS_close_range, 3, fd - 1, 0) == 0) &&
           syscall(SYS_close_range, fd + 1, ~0U, 0) == 0;
}

bool sandbox_enter(const json_t *wanted, int fd, Buf *log)
{
    bool ok = close_others(fd) && set_limits(json_number_of(wanted, "bytes", 0)) &&
              prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && restrict_files(wanted) &&
              restrict_calls();
    if (!ok)
        buf_printf(log, "cannot enter the sandbox: %s\n", strerror(errno));
    return ok;
}
