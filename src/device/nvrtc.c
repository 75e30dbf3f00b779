// SPDX-License-Identifier: Apache-2.0
//
// NVRTC, loaded at run time, and a cache of what it made: one file a text, named by the
// hash of everything the result depends on, that begins with the hash of the rest.
// It removes nothing from the cache: who owns the folder does.
#include "device/nvidia.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLAGS_MAX = 32, KEY = 16 };

struct Nvrtc {
#define NVRTC(name, args) int(*name) args;
#include "device/cuda.def"
#undef NVRTC
    int major, minor;
    // Options that name the toolkit's headers; empty: it has none here.
    char include[512], cccl[512];
};

// Loading -----------------------------------------------------------------------------

static const char *const toolkit_variable[] = {"CUDA_HOME", "CUDA_PATH"};
static const char default_toolkit[] = "/usr/local/cuda";

static void *open_in(const char *toolkit)
{
    char path[512];
    if (!toolkit || !*toolkit)
        return NULL;
    snprintf(path, sizeof path, "%s/lib64/libnvrtc.so", toolkit);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_library(void)
{
    static const char *const usual[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                        "libnvrtc.so.11.2", "libnvrtc.so"};
    void *library = NULL;
    for (int i = 0; i < COUNTOF(toolkit_variable) && !library; i++)
        library = open_in(getenv(toolkit_variable[i]));
    for (int i = 0; i < COUNTOF(usual) && !library; i++)
        library = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
    return library ? library : open_in(default_toolkit);
}

static bool is_there(const char *folder, const char *name)
{
    AUTO_FREE char *path = path_in(folder, name);
    return access(path, R_OK) == 0;
}

// Takes root/part for the toolkit's headers if they are there.
static bool try_headers(Nvrtc *nvrtc, const char *root, const char *part)
{
    AutoBuf folder = buf_new();
    buf_printf(&folder, "%s/%s", root, part);
    bool found = root[0] && is_there(folder.text, "cuda_runtime.h") &&
                 folder.len < COUNTOF(nvrtc->include) - sizeof "-I/cccl";
    if (found) {
        memcpy(nvrtc->include, "-I", 2);
        memcpy(nvrtc->include + 2, folder.text, folder.len + 1);
        memcpy(nvrtc->cccl, nvrtc->include, folder.len + 2);
        memcpy(nvrtc->cccl + folder.len + 2, "/cccl", sizeof "/cccl");
    }
    return found;
}

// What the environment names, else what lies beside the library, as in the toolkit's tree
// or in that of Python's packages. CUDA 13 has C++'s headers and CUB's in a folder of their
// own.
static void find_headers(Nvrtc *nvrtc)
{
    static const char *const part[] = {"include", "../include",
                                       "../../cuda_runtime/include"};
    char beside[512] = "";
    Dl_info info;
    if (dladdr((void *)(uintptr_t)nvrtc->nvrtcVersion, &info) && info.dli_fname)
        snprintf(beside, sizeof beside, "%s", info.dli_fname);
    char *name = strrchr(beside, '/');
    *(name ? name : beside) = 0;
    const char *root[] = {getenv(toolkit_variable[0]), getenv(toolkit_variable[1]), beside,
                          default_toolkit, "/usr"};
    for (int i = 0; i < COUNTOF(root); i++)
        for (int k = 0; root[i] && k < COUNTOF(part); k++)
            if (try_headers(nvrtc, root[i], part[k]))
                return;
}

bool library_find(void *library, const char *name, const char *what, void *slot, Buf *log)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        buf_printf(log, "%s has no function %s: it is too old\n", what, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_symbols(Nvrtc *nvrtc, void *library, Buf *log)
{
#define NVRTC(name, args)                                                                  \
    if (!library_find(library, #name, "libnvrtc", &nvrtc->name, log))                      \
        return false;
#include "device/cuda.def"
#undef NVRTC
    return true;
}

Nvrtc *nvrtc_open(Buf *log)
{
    void *library = open_library();
    if (!library) {
        buf_puts(log, "no libnvrtc, which compiles CUDA: install the CUDA toolkit, or set "
                      "CUDA_HOME to where it is\n");
        return NULL;
    }
    Nvrtc *nvrtc = xcalloc(1, sizeof *nvrtc);
    if (find_symbols(nvrtc, library, log) &&
        nvrtc->nvrtcVersion(&nvrtc->major, &nvrtc->minor) == 0) {
        find_headers(nvrtc);
        return nvrtc;
    }
    free(nvrtc);
    return NULL;
}

// The library stays loaded: it starts threads that outlive what is asked of it.
void nvrtc_close(Nvrtc *nvrtc)
{
    free(nvrtc);
}

void nvrtc_version(const Nvrtc *nvrtc, int *major, int *minor)
{
    *major = nvrtc->major;
    *minor = nvrtc->minor;
}

// The cache ---------------------------------------------------------------------------

static void cache_path(const Nvrtc *nvrtc, const DeviceText *text, const char *arch,
                       const char *cache, Buf *path)
{
    char how[128], hex[KEY + 1];
    snprintf(how, sizeof how, "%s|%d.%d|", arch, nvrtc->major, nvrtc->minor);
    uint64_t hash = hash_bytes(how, strlen(how), 0);
    hash = hash_bytes(text->options, strlen(text->options) + 1, hash);
    for (int i = 0; i < text->nname; i++)
        hash = hash_bytes(text->name[i], strlen(text->name[i]) + 1, hash);
    hash_hex(hash_bytes(text->source, strlen(text->source), hash), hex);
    buf_printf(path, "%s/%s.cubin", cache, hex);
}

// The symbols, n of them, come before the cubin.
static bool cache_read(const char *path, int n, Buf *cubin, Buf *symbols)
{
    char hex[KEY + 1] = "";
    size_t start = KEY;
    AutoBuf file = buf_new();
    bool ok = file_read(path, FILE_DATA_MOST, &file) && file.len > KEY;
    if (ok)
        hash_hex(hash_bytes(file.text + KEY, file.len - KEY, 0), hex);
    ok = ok && memcmp(file.text, hex, KEY) == 0;
    for (int i = 0; ok && i < n && start < file.len; i++)
        start += strlen(file.text + start) + 1;
    ok = ok && start < file.len;
    if (ok) {
        buf_write(symbols, file.text + KEY, start - KEY);
        buf_write(cubin, file.text + start, file.len - start);
    }
    return ok;
}

// A cache that cannot be written is no cache, and no reason to fail.
static void cache_write(const char *path, const Buf *cubin, const Buf *symbols)
{
    char hex[KEY + 1];
    AutoBuf file = buf_new(), body = buf_new();
    buf_write(&body, symbols->text, symbols->len);
    buf_write(&body, cubin->text, cubin->len);
    hash_hex(hash_bytes(body.text, body.len, 0), hex);
    buf_puts(&file, hex);
    buf_write(&file, body.text, body.len);
    file_write(path, file.text, file.len);
}

// Compiling ---------------------------------------------------------------------------

// The next option, in place, without its quotes; NULL: there is none.
static char *next_option(char **text)
{
    char *from = *text + strspn(*text, " \t\n"), *start = from, *to = from;
    bool quoted = false;
    for (; *from && (quoted || !strchr(" \t\n", *from)); from++)
        if (*from == '"')
            quoted = !quoted;
        else
            *to++ = *from;
    *text = from + (*from != 0);
    bool any = from > start;
    *to = 0;
    return any ? start : NULL;
}

static int run_compiler(const Nvrtc *nvrtc, void *program, const char *arch,
                        const char *options)
{
    char *copy = xstrdup(options), *rest = copy, gpu[64], *word;
    const char *argv[FLAGS_MAX + 3];
    int n = 0;
    snprintf(gpu, sizeof gpu, "--gpu-architecture=%s", arch);
    argv[n++] = gpu;
    if (nvrtc->include[0]) {
        argv[n++] = nvrtc->include;
        argv[n++] = nvrtc->cccl;
    }
    while (n < COUNTOF(argv) && (word = next_option(&rest)))
        argv[n++] = word;
    int error = nvrtc->nvrtcCompileProgram(program, n, argv);
    free(copy);
    return error;
}

static int create(const Nvrtc *nvrtc, const char *source, void **program)
{
    static const struct {
        const char *name;
        bool of_toolkit;
        const char *text;
    } header[] = {
#define HEADER(name, of_toolkit, text) {name, of_toolkit, text},
#include "device/nvrtc_headers.def"
    };
    const char *name[COUNTOF(header)], *text[COUNTOF(header)];
    int n = 0;
    for (int i = 0; i < COUNTOF(header); i++)
        if (!header[i].of_toolkit || !nvrtc->include[0]) {
            name[n] = header[i].name;
            text[n++] = header[i].text;
        }
    return nvrtc->nvrtcCreateProgram(program, source, "kernel.cu", n, text, name);
}

// The names must be said before the text is compiled.
static int add_names(const Nvrtc *nvrtc, void *program, const DeviceText *text)
{
    int error = 0;
    for (int i = 0; i < text->nname && error == 0; i++)
        error = nvrtc->nvrtcAddNameExpression(program, text->name[i]);
    return error;
}

static bool take_symbols(const Nvrtc *nvrtc, void *program, const DeviceText *text,
                         Buf *symbols)
{
    for (int i = 0; i < text->nname; i++) {
        const char *symbol = NULL;
        if (nvrtc->nvrtcGetLoweredName(program, text->name[i], &symbol) != 0 || !symbol)
            return false;
        buf_write(symbols, symbol, strlen(symbol) + 1);
    }
    return true;
}

static void append_log(const Nvrtc *nvrtc, void *program, Buf *log)
{
    size_t len = 0;
    if (nvrtc->nvrtcGetProgramLogSize(program, &len) != 0 || len <= 1)
        return;
    AUTO_FREE char *text = xcalloc(len + 1, 1);
    if (nvrtc->nvrtcGetProgramLog(program, text) == 0)
        buf_printf(log, "%s\n", text);
}

static bool take_cubin(const Nvrtc *nvrtc, void *program, Buf *cubin)
{
    size_t len = 0;
    if (nvrtc->nvrtcGetCUBINSize(program, &len) != 0 || len == 0)
        return false;
    AUTO_FREE char *bytes = xmalloc(len);
    bool ok = nvrtc->nvrtcGetCUBIN(program, bytes) == 0;
    if (ok)
        buf_write(cubin, bytes, len);
    return ok;
}

// The assembler checks shared memory itself, and has no error for it but these words.
static DeviceStatus failure(const Buf *log, size_t before)
{
    bool too_large = strstr(log->text + before, "uses too much shared data") != NULL;
    return too_large ? DEV_OUT_OF_RESOURCES : DEV_BUILD_FAILED;
}

static DeviceStatus compile(const Nvrtc *nvrtc, const DeviceText *text, const char *arch,
                            Buf *cubin, Buf *symbols, Buf *log)
{
    void *program;
    size_t before = log->len;
    int error = create(nvrtc, text->source, &program);
    if (error != 0) {
        buf_printf(log, "nvrtcCreateProgram failed: error %d\n", error);
        return DEV_FAILED;
    }
    error = add_names(nvrtc, program, text);
    if (error == 0)
        error = run_compiler(nvrtc, program, arch, text->options);
    append_log(nvrtc, program, log);
    bool ok = error == 0 && take_symbols(nvrtc, program, text, symbols) &&
              take_cubin(nvrtc, program, cubin);
    nvrtc->nvrtcDestroyProgram(&program);
    if (!ok)
        buf_printf(log, "nvrtcCompileProgram failed for %s: error %d\n", arch, error);
    return ok ? DEV_OK : failure(log, before);
}

DeviceStatus nvrtc_compile(const Nvrtc *nvrtc, const DeviceText *text, const char *arch,
                           const char *cache, Buf *cubin, Buf *symbols, Buf *log)
{
    if (!cache)
        return compile(nvrtc, text, arch, cubin, symbols, log);
    DeviceStatus status = DEV_OK;
    AutoBuf path = buf_new();
    cache_path(nvrtc, text, arch, cache, &path);
    if (!cache_read(path.text, text->nname, cubin, symbols)) {
        status = compile(nvrtc, text, arch, cubin, symbols, log);
        if (status == DEV_OK)
            cache_write(path.text, cubin, symbols);
    }
    return status;
}
