// SPDX-License-Identifier: Apache-2.0
//
// The host as a device: the C target is compiled by the system compiler into a shared
// object and loaded. Needs no driver at all.
//
// A kernel NAME defines `void NAME_entry(void *const *arg)`; arg[i] points to a buffer's
// data or to a scalar's value. Parallelism is in the text (OpenMP), so the global and
// local sizes of a launch are ignored. Each build has a folder of its own under $TMPDIR:
// the loader takes a file of a name that it has loaded before for that one, and others may
// write to $TMPDIR. It does not protect this process from what it loads: that is what
// workers are for.
#include "device/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALIGN = 128, ARGS_MAX = 256, FLAGS_MAX = 32 };

struct Device {
    DeviceInfo info;
    char compiler[128];
    bool openmp, native; // flags the compiler is taken to know
    bool flags_known;    // they have been tried
};

struct Mem {
    void *data;
    bool is_part;
};

struct Module {
    void *handle;
};

typedef void HostEntry(void *const *arg);

// Running the compiler ----------------------------------------------------------------

static void exec_child(char *const *argv, int out)
{
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execvp(argv[0], argv);
    _exit(127);
}

static void end_group(int signal)
{
    kill(0, SIGKILL);
}

static pid_t wait_for(pid_t pid, int *status)
{
    pid_t ended;
    while ((ended = waitpid(pid, status, 0)) < 0 && errno == EINTR)
        ;
    return ended;
}

// A compiler starts others, which would outlive it and this process. So a guard leads a
// process group of all of them: the kernel tells it when this thread ends, however that
// happens, and it ends the group. Between fork and exec: only calls that are safe there.
static void guard(char *const *argv, int out, pid_t parent)
{
    int status = 0;
    struct sigaction ends = {.sa_handler = end_group};
    setpgid(0, 0);
    sigaction(SIGTERM, &ends, NULL);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    pid_t pid = fork();
    if (pid == 0)
        exec_child(argv, out);
    if (pid < 0 || wait_for(pid, &status) < 0)
        _exit(127);
    if (WIFSIGNALED(status))
        raise(WTERMSIG(status)); // as the compiler ended
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 127);
}

// The exit status of a program (127: not found), what it prints appended to out.
static int run_program(char *const *argv, Buf *out)
{
    int fd[2], status = 0;
    if (pipe2(fd, O_CLOEXEC) != 0)
        return 127;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        guard(argv, fd[1], parent);
    close(fd[1]);
    char chunk[4096];
    ssize_t n;
    while (pid > 0 &&
           ((n = read(fd[0], chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR)))
        buf_write(out, chunk, n > 0 ? (size_t)n : 0);
    close(fd[0]);
    if (pid < 0 || wait_for(pid, &status) < 0) {
        buf_printf(out, "%s cannot be started: %s\n", argv[0], strerror(errno));
        return 127;
    }
    if (WIFSIGNALED(status))
        buf_printf(out, "%s was ended by signal %d (%s)\n", argv[0], WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

static bool answers(const char *compiler, Buf *version)
{
    char *argv[] = {(char *)(uintptr_t)compiler, (char[]){"--version"}, NULL};
    buf_clear(version);
    return run_program(argv, version) == 0;
}

// $CC, or the first of the usual names that answers; version gets what it says.
static const char *find_compiler(Buf *version)
{
    static const char *const usual[] = {"cc", "gcc", "clang"};
    const char *chosen = getenv("CC");
    if (chosen && *chosen)
        return answers(chosen, version) ? chosen : NULL;
    for (int i = 0; i < COUNTOF(usual); i++)
        if (answers(usual[i], version))
            return usual[i];
    return NULL;
}

static int host_count(void)
{
    AutoBuf version = buf_new();
    return find_compiler(&version) ? 1 : 0;
}

// What the host is --------------------------------------------------------------------

static int simd_floats(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return 16;
    return __builtin_cpu_supports("avx") ? 8 : 4;
#else
    return 4;
#endif
}

// The value of the first line of /proc/cpuinfo that begins with key.
static void cpu_field(const char *key, char *out, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (f)
        fclose(f);
}

// musl does not know the caches.
#ifndef _SC_LEVEL1_DCACHE_LINESIZE
#define _SC_LEVEL1_DCACHE_LINESIZE (-1)
#define _SC_LEVEL2_CACHE_SIZE      (-1)
#endif

static int64_t system_value(int name, int64_t otherwise)
{
    long value = sysconf(name);
    return value > 0 ? value : otherwise;
}

static void describe(DeviceInfo *info, const char *version)
{
    char mhz[32] = "0";
    snprintf(info->id, sizeof info->id, "host");
    snprintf(info->target, sizeof info->target, "%s", language_name[LANGUAGE_C]);
    snprintf(info->name, sizeof info->name, "CPU");
    snprintf(info->platform, sizeof info->platform, "C compiler");
    snprintf(info->driver, sizeof info->driver, "%.*s", (int)strcspn(version, "\n"),
             version);
    cpu_field("model name", info->name, sizeof info->name);
    cpu_field("cpu MHz", mhz, sizeof mhz);
    info->is_cpu = info->has_double = info->has_half = true;
    info->compute_units = (int)system_value(_SC_NPROCESSORS_ONLN, 1);
    info->clock_mhz = atoi(mhz);
    info->warp = simd_floats();
    info->line_bytes = (int)system_value(_SC_LEVEL1_DCACHE_LINESIZE, 64);
    info->max_group = 4096;
    for (int i = 0; i < 3; i++)
        info->max_item[i] = info->max_group;
    info->local_bytes = system_value(_SC_LEVEL2_CACHE_SIZE, 256 * 1024);
    info->global_bytes =
        system_value(_SC_PHYS_PAGES, 1 << 18) * system_value(_SC_PAGESIZE, 4096);
    info->alloc_bytes = info->global_bytes;
    device_set_fingerprint(info, "host");
}

static Device *host_open(int index, Buf *log)
{
    Device *device = NULL;
    AutoBuf version = buf_new();
    const char *compiler = find_compiler(&version);
    if (index != 0)
        buf_puts(log, "there is only one host device: 'host'\n");
    else if (!compiler)
        buf_printf(log, "no C compiler: '%s' does not run; install gcc or set CC\n",
                   getenv("CC") && *getenv("CC") ? getenv("CC") : "cc");
    else {
        device = xcalloc(1, sizeof *device);
        device->openmp = device->native = true;
        snprintf(device->compiler, sizeof device->compiler, "%s", compiler);
        describe(&device->info, version.text);
    }
    return device;
}

static void host_close(Device *device)
{
    free(device);
}

static const DeviceInfo *host_info(const Device *device)
{
    return &device->info;
}

// Buffers -----------------------------------------------------------------------------

static Mem *host_mem_new(Device *device, size_t bytes, Buf *log)
{
    size_t whole = (MAX(bytes, 1) + ALIGN - 1) / ALIGN * ALIGN;
    void *data = whole >= bytes ? aligned_alloc(ALIGN, whole) : NULL;
    if (!data) {
        buf_printf(log, "no memory for a buffer of %zu bytes\n", bytes);
        return NULL;
    }
    Mem *mem = xmalloc(sizeof *mem);
    *mem = (Mem){.data = data};
    return mem;
}

static Mem *host_part_new(Device *device, Mem *of, size_t offset, size_t bytes, Buf *log)
{
    Mem *mem = xmalloc(sizeof *mem);
    *mem = (Mem){.data = (char *)of->data + offset, .is_part = true};
    return mem;
}

static Mem *host_mem_wrap(Device *device, void *data, size_t bytes, Buf *log)
{
    Mem *mem = xmalloc(sizeof *mem);
    *mem = (Mem){.data = data, .is_part = true};
    return mem;
}

static void host_mem_free(Device *device, Mem *mem)
{
    if (!mem->is_part)
        free(mem->data);
    free(mem);
}

static DeviceStatus host_write(Device *device, Mem *mem, const void *data, size_t bytes,
                               Buf *log)
{
    memcpy(mem->data, data, bytes);
    return DEV_OK;
}

static DeviceStatus host_read(Device *device, Mem *mem, void *data, size_t bytes, Buf *log)
{
    memcpy(data, mem->data, bytes);
    return DEV_OK;
}

static const void *host_map(Device *device, Mem *mem, size_t bytes, Buf *log)
{
    return mem->data;
}

static void host_unmap(Device *device, Mem *mem, const void *data)
{
}

static DeviceStatus host_fill(Device *device, Mem *mem, unsigned char byte, size_t offset,
                              size_t bytes, Buf *log)
{
    memset((char *)mem->data + offset, byte, bytes);
    return DEV_OK;
}

// Modules -----------------------------------------------------------------------------

typedef struct {
    TempFolder folder;
    char *c, *so;
} Files;

static void close_files(Files *files)
{
    temp_close(&files->folder);
    free(files->c);
    free(files->so);
}

// Writes the text to be compiled; false, with a log: it cannot, and nothing is open.
static bool open_files(Files *files, const char *text, Buf *log)
{
    *files = (Files){0};
    if (!temp_open(&files->folder, temp_parent(), "forewarp-host")) {
        buf_printf(log, "cannot make a folder in %s: %s\n", temp_parent(), strerror(errno));
        return false;
    }
    files->c = path_in(files->folder.path, "kernel.c");
    files->so = path_in(files->folder.path, "kernel.so");
    if (file_write(files->c, text, strlen(text)))
        return true;
    buf_printf(log, "cannot write %s: %s\n", files->c, strerror(errno));
    close_files(files);
    return false;
}

// The options are split at blanks: nothing passes through a shell. -Bsymbolic: a user's
// function named like one of the C library's (`times`) is the user's. Nobody asks for errno
// or for traps of floating point, which would keep roots and quotients out of vectors;
// results are the same to the bit.
static bool compile(const Device *device, const char *options, const Files *files, Buf *log)
{
    char *copy = xstrdup(options ? options : ""), *save = NULL;
    const char *standard = strstr(copy, "-std=") ? "-O3" : "-std=c11"; // theirs, or C
    const char *argv[FLAGS_MAX + 16] = {device->compiler,
                                        standard,
                                        "-O3",
                                        "-fPIC",
                                        "-shared",
                                        "-Wl,-Bsymbolic",
                                        "-fno-math-errno",
                                        "-fno-trapping-math"};
    int n = 8;
    if (device->native)
        argv[n++] = "-march=native";
    if (device->openmp)
        argv[n++] = "-fopenmp";
    for (char *word = strtok_r(copy, " \t\n", &save); word && n < FLAGS_MAX;
         word = strtok_r(NULL, " \t\n", &save))
        argv[n++] = word;
    argv[n++] = "-o";
    argv[n++] = files->so;
    argv[n++] = files->c;
    argv[n++] = "-lm";
    int status = run_program((char *const *)(uintptr_t)argv, log);
    free(copy);
    return status == 0;
}

// Finds which of the two optional flags the compiler takes, on an empty program.
static void try_flags(Device *device)
{
    static const char text[] = "int fw_nothing; int fw_nothing = 0;\n";
    Files files;
    AutoBuf ignored = buf_new();
    device->flags_known = true;
    bool written = open_files(&files, text, &ignored);
    for (int drop = 0; written && drop < 4; drop++) {
        device->openmp = !(drop & 1);
        device->native = !(drop & 2);
        if (compile(device, NULL, &files, &ignored))
            break;
    }
    if (written)
        close_files(&files);
}

static bool compile_adapting(Device *device, const char *options, const Files *files,
                             Buf *log)
{
    bool openmp = device->openmp, native = device->native;
    AutoBuf said = buf_new();
    bool ok = compile(device, options, files, &said);
    if (!ok && !device->flags_known) {
        try_flags(device);
        if (device->openmp != openmp || device->native != native) {
            buf_clear(&said);
            ok = compile(device, options, files, &said);
        }
    }
    buf_write(log, said.text, said.len);
    return ok;
}

// Threads of the OpenMP run-time outlive the module that started them, so its code must
// not be unloaded with it.
static void pin_openmp(void)
{
    static const char *const name[] = {"libgomp.so.1", "libomp.so.5", "libomp.so"};
    for (int i = 0; i < COUNTOF(name); i++)
        if (dlopen(name[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
            return;
}

static DeviceStatus load(const char *path, Module **module, Buf *log)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        buf_printf(log, "cannot load the compiled kernel: %s\n", why ? why : path);
        return DEV_FAILED;
    }
    pin_openmp();
    *module = xmalloc(sizeof **module);
    (*module)->handle = handle;
    return DEV_OK;
}

static DeviceStatus host_build(Device *device, const DeviceText *text, Module **module,
                               Buf *log)
{
    Files files;
    DeviceStatus status = DEV_BUILD_FAILED;
    if (!open_files(&files, text->source, log))
        return DEV_FAILED;
    if (compile_adapting(device, text->options, &files, log))
        status = load(files.so, module, log);
    close_files(&files);
    return status;
}

static void host_module_free(Device *device, Module *module)
{
    dlclose(module->handle);
    free(module);
}

static HostEntry *find_entry(Module *module, const char *kernel, Buf *log)
{
    char name[512];
    HostEntry *entry = NULL;
    snprintf(name, sizeof name, "%s_entry", kernel);
    void *symbol = dlsym(module->handle, name);
    if (!symbol)
        buf_printf(log, "the compiled text defines no function '%s'\n", name);
    memcpy(&entry, &symbol, sizeof entry);
    return entry;
}

static DeviceStatus call(const DeviceLaunch *launch, HostEntry *entry, Buf *log)
{
    void *arg[ARGS_MAX];
    if (launch->narg > ARGS_MAX) {
        buf_printf(log, "%s: more than %d arguments\n", launch->kernel, ARGS_MAX);
        return DEV_OUT_OF_RESOURCES;
    }
    for (int i = 0; i < launch->narg; i++)
        arg[i] = launch->arg[i].mem ? launch->arg[i].mem->data
                                    : (void *)(uintptr_t)launch->arg[i].data;
    entry(arg);
    return DEV_OK;
}

static DeviceStatus host_run(Device *device, Module *module, const DeviceLaunch *launch,
                             int n, double *time_ns, Buf *log)
{
    DeviceStatus status = DEV_OK;
    AUTO_FREE HostEntry **entry = xcalloc((size_t)n, sizeof *entry);
    for (int i = 0; i < n && status == DEV_OK; i++)
        if (!(entry[i] = find_entry(module, launch[i].kernel, log)))
            status = DEV_FAILED;
    int64_t start = clock_ns();
    for (int i = 0; i < n && status == DEV_OK; i++)
        status = call(&launch[i], entry[i], log);
    *time_ns = (double)MAX(clock_ns() - start, 1);
    return status;
}

// In a process of the caller's ---------------------------------------------------------

static void *host_queue(const Device *device)
{
    return NULL;
}

static Device *host_adopt(void *queue, Buf *log)
{
    return host_open(0, log);
}

// The size of what a pointer points to is not known.
static bool host_lend(Device *device, void *const *handle, size_t bytes, DeviceArg *arg,
                      Buf *log)
{
    *arg = (DeviceArg){.data = *handle, .bytes = sizeof *handle};
    if (!*handle)
        buf_puts(log, "the pointer is NULL\n");
    return *handle != NULL;
}

static DeviceStatus host_enqueue(Device *device, Module *module, void *queue,
                                 const DeviceLaunch *launch, int n, Buf *log)
{
    double time_ns;
    return host_run(device, module, launch, n, &time_ns, log);
}

extern const DeviceKind device_host;
const DeviceKind device_host = {
    .name = "host",
    .target = "c",
    .advice = "install a C compiler (gcc) or set CC",
    .count = host_count,
    .open = host_open,
    .close = host_close,
    .info = host_info,
    .mem_new = host_mem_new,
    .part_new = host_part_new,
    .mem_wrap = host_mem_wrap,
    .mem_free = host_mem_free,
    .write = host_write,
    .read = host_read,
    .map = host_map,
    .unmap = host_unmap,
    .fill = host_fill,
    .build = host_build,
    .module_free = host_module_free,
    .run = host_run,
    .queue = host_queue,
    .adopt = host_adopt,
    .lend = host_lend,
    .enqueue = host_enqueue,
};
