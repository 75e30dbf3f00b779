// SPDX-License-Identifier: Apache-2.0
//
// NVRTC, loaded at run time, and a cache of what it made: one file a text, named by the
// hash of everything the result depends on, that begins with the hash of the rest.
// It removes nothing from the cache: who owns the folder does.
#include "device/nvrtc.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { FLAGS_MAX = 32, KEY = 16 };

struct Nvrtc {
#define NVRTC(name, args) int(*name) args;
#include "device/cuda.def"
#undef NVRTC
    int major, minor;
    char include[512]; // option that names the toolkit's headers; empty: it has none here
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

// Only programs of halfs include a header: cuda_fp16.h.
static void find_headers(Nvrtc *nvrtc)
{
    const char *toolkit = default_toolkit;
    for (int i = COUNTOF(toolkit_variable) - 1; i >= 0; i--)
        if (getenv(toolkit_variable[i]) && *getenv(toolkit_variable[i]))
            toolkit = getenv(toolkit_variable[i]);
    snprintf(nvrtc->include, sizeof nvrtc->include, "-I%s/include", toolkit);
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

static void cache_path(const Nvrtc *nvrtc, const char *source, const char *arch,
                       const char *options, const char *cache, Buf *path)
{
    char text[128], hex[KEY + 1];
    snprintf(text, sizeof text, "%s|%d.%d|", arch, nvrtc->major, nvrtc->minor);
    uint64_t hash = hash_bytes(text, strlen(text), 0);
    hash = hash_bytes(options, strlen(options) + 1, hash);
    hash_hex(hash_bytes(source, strlen(source), hash), hex);
    buf_printf(path, "%s/%s.cubin", cache, hex);
}

static bool cache_read(const char *path, Buf *cubin)
{
    Buf file;
    char hex[KEY + 1] = "";
    buf_init(&file);
    bool ok = file_read(path, FILE_DATA_MOST, &file) && file.len > KEY;
    if (ok)
        hash_hex(hash_bytes(file.text + KEY, file.len - KEY, 0), hex);
    ok = ok && memcmp(file.text, hex, KEY) == 0;
    if (ok)
        buf_write(cubin, file.text + KEY, file.len - KEY);
    buf_release(&file);
    return ok;
}

// A cache that cannot be written is no cache, and no reason to fail.
static void cache_write(const char *path, const Buf *cubin)
{
    Buf file;
    char hex[KEY + 1];
    buf_init(&file);
    hash_hex(hash_bytes(cubin->text, cubin->len, 0), hex);
    buf_puts(&file, hex);
    buf_write(&file, cubin->text, cubin->len);
    file_write(path, file.text, file.len);
    buf_release(&file);
}

// Compiling ---------------------------------------------------------------------------

static int run_compiler(const Nvrtc *nvrtc, void *program, const char *arch,
                        const char *options)
{
    char *copy = xstrdup(options), *save = NULL, gpu[64];
    const char *argv[FLAGS_MAX + 2];
    int n = 0;
    snprintf(gpu, sizeof gpu, "--gpu-architecture=%s", arch);
    argv[n++] = gpu;
    argv[n++] = nvrtc->include;
    for (char *word = strtok_r(copy, " \t\n", &save); word && n < COUNTOF(argv);
         word = strtok_r(NULL, " \t\n", &save))
        argv[n++] = word;
    int error = nvrtc->nvrtcCompileProgram(program, n, argv);
    free(copy);
    return error;
}

static void append_log(const Nvrtc *nvrtc, void *program, Buf *log)
{
    size_t len = 0;
    if (nvrtc->nvrtcGetProgramLogSize(program, &len) != 0 || len <= 1)
        return;
    char *text = xcalloc(len + 1, 1);
    if (nvrtc->nvrtcGetProgramLog(program, text) == 0)
        buf_printf(log, "%s\n", text);
    free(text);
}

static bool take_cubin(const Nvrtc *nvrtc, void *program, Buf *cubin)
{
    size_t len = 0;
    if (nvrtc->nvrtcGetCUBINSize(program, &len) != 0 || len == 0)
        return false;
    char *bytes = xmalloc(len);
    bool ok = nvrtc->nvrtcGetCUBIN(program, bytes) == 0;
    if (ok)
        buf_write(cubin, bytes, len);
    free(bytes);
    return ok;
}

// The assembler checks shared memory itself, and has no error for it but these words.
static DeviceStatus failure(const Buf *log, size_t before)
{
    bool too_large = strstr(log->text + before, "uses too much shared data") != NULL;
    return too_large ? DEV_OUT_OF_RESOURCES : DEV_BUILD_FAILED;
}

static DeviceStatus compile(const Nvrtc *nvrtc, const char *source, const char *arch,
                            const char *options, Buf *cubin, Buf *log)
{
    void *program;
    size_t before = log->len;
    int error = nvrtc->nvrtcCreateProgram(&program, source, "kernel.cu", 0, NULL, NULL);
    if (error != 0) {
        buf_printf(log, "nvrtcCreateProgram failed: error %d\n", error);
        return DEV_FAILED;
    }
    error = run_compiler(nvrtc, program, arch, options);
    append_log(nvrtc, program, log);
    bool ok = error == 0 && take_cubin(nvrtc, program, cubin);
    nvrtc->nvrtcDestroyProgram(&program);
    if (!ok)
        buf_printf(log, "nvrtcCompileProgram failed for %s: error %d\n", arch, error);
    return ok ? DEV_OK : failure(log, before);
}

DeviceStatus nvrtc_compile(const Nvrtc *nvrtc, const char *source, const char *arch,
                           const char *options, const char *cache, Buf *cubin, Buf *log)
{
    if (!cache)
        return compile(nvrtc, source, arch, options, cubin, log);
    Buf path;
    DeviceStatus status = DEV_OK;
    buf_init(&path);
    cache_path(nvrtc, source, arch, options, cache, &path);
    if (!cache_read(path.text, cubin)) {
        status = compile(nvrtc, source, arch, options, cubin, log);
        if (status == DEV_OK)
            cache_write(path.text, cubin);
    }
    buf_release(&path);
    return status;
}
