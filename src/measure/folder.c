// SPDX-License-Identifier: Apache-2.0
//
// The controller's files: FOLDER/run-XXXXXX (data of one controller, removed when it
// ends) and FOLDER/cache-N (what devices compiled, kept).
//
// Caches hold code that is loaded: they are the user's alone, and one that others could
// write to is emptied. Locks (flock) say which are in use, since they end with their
// process however it ends: a cache that is locked is passed over for the next number. A
// cache without its `clean` mark was not closed in good order and may hold half-written
// files: it is emptied. So is one that has grown large, since PoCL removes nothing from its
// cache. Nothing is mapped for writing: a full disk is an error here, not a signal.
#include "measure/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { CACHES_MAX = 64, CACHE_JOBS_MAX = 10000 }; // about 65 kB a job with PoCL
enum { FULL_BYTES = 1 << 20 };                    // less than a compiler needs

// A file locked for this process; -1: not made. *taken: another process holds it. Where
// the file system knows no locks, the file alone has to do.
static int lock_file(const char *path, int how, bool *taken)
{
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), result;
    *taken = false;
    if (fd < 0)
        return -1;
    while ((result = flock(fd, how)) != 0 && errno == EINTR)
        ;
    if (result != 0 && errno == EWOULDBLOCK) {
        *taken = true;
        close(fd);
        return -1;
    }
    return fd;
}

static bool make_parts(Folder *folder)
{
    AUTO_FREE char *turns = path_in(folder->path, TURNS);
    bool ok = file_mkdirs(turns);
    folder->own = path_in(folder->data.path, "own");
    return ok && file_mkdirs(folder->own);
}

bool folder_open(Folder *folder, const char *path, Diags *diags)
{
    *folder = (Folder){.data.lock = -1};
    json_t *name = json_string(path); // workers are told of files in JSON
    json_decref(name);
    if (!name)
        return diag_world(diags, "", "the folder's name is not UTF-8: '%s'", path);
    if (file_mkdir_private(path, &folder->was_open) &&
        (folder->path = realpath(path, NULL)) &&
        temp_open(&folder->data, folder->path, "run") && make_parts(folder))
        return true;
    return diag_world(diags, "", "cannot use the folder '%s': %s; name another one", path,
                      errno == EPERM ? "it is another user's" : strerror(errno));
}

void folder_close(Folder *folder)
{
    temp_close(&folder->data);
    free(folder->path);
    free(folder->own);
    *folder = (Folder){.data.lock = -1};
}

bool folder_write(const Folder *folder, const char *name, const void *bytes, size_t len,
                  Diags *diags)
{
    AUTO_FREE char *path = path_in(folder->data.path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && file_put(fd, bytes, len);
    int saved = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        saved = errno;
        ok = false;
    }
    if (!ok)
        diag_world(diags, "",
                   "cannot write %s (%zu bytes): %s; free space or name another "
                   "folder",
                   path, len, strerror(saved));
    return ok;
}

bool folder_is_full(const Folder *folder)
{
    struct statvfs fs;
    if (!folder->path || statvfs(folder->path, &fs) != 0)
        return false;
    return (double)fs.f_bavail * (double)fs.f_frsize < FULL_BYTES ||
           (fs.f_files > 0 && fs.f_favail == 0);
}

char *folder_turn_path(const Folder *folder, const char *device)
{
    Buf path = buf_new();
    buf_printf(&path, "%s/" TURNS, folder->path);
    file_mkdirs(path.text);
    size_t len = path.len + 1;
    buf_printf(&path, "/%s", device);
    for (char *p = path.text + len; *p; p++)
        if (*p == ':' || *p == '/')
            *p = '-';
    int fd = open(path.text, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return path.text;
}

int turn_take(const char *path)
{
    bool taken;
    return lock_file(path, LOCK_EX, &taken);
}

// Caches ------------------------------------------------------------------------------

static char *mark_path(const Cache *cache)
{
    Buf path = buf_new();
    buf_printf(&path, "%s.clean", cache->path);
    return path.text;
}

// Takes the mark away while the cache is in use.
static bool claim(Cache *cache, bool was_open)
{
    bool cache_was_open;
    AutoBuf text = buf_new();
    AUTO_FREE char *mark = mark_path(cache);
    cache->jobs = file_read(mark, FILE_TEXT_MOST, &text) ? atoi(text.text) : CACHE_JOBS_MAX;
    unlink(mark);
    bool ok = file_mkdir_private(cache->path, &cache_was_open);
    if (cache->jobs >= CACHE_JOBS_MAX || was_open || cache_was_open) {
        remove_tree(cache->path);
        cache->jobs = 0;
        ok = file_mkdir_private(cache->path, &cache_was_open);
    }
    return ok;
}

bool cache_open(Cache *cache, const Folder *folder, int number, Diags *diags)
{
    char name[32];
    bool taken = true;
    *cache = (Cache){.lock = -1};
    for (int i = 0; i < CACHES_MAX && taken; i++) {
        snprintf(name, sizeof name, "cache-%d.lock", i);
        char *lock = path_in(folder->path, name);
        cache->lock = lock_file(lock, LOCK_EX | LOCK_NB, &taken);
        free(lock);
        snprintf(name, sizeof name, "cache-%d", i);
    }
    if (cache->lock >= 0) {
        cache->path = path_in(folder->path, name);
        if (claim(cache, folder->was_open))
            return true;
    } else if (taken) {
        cache_open_own(cache, folder, number);
        return true;
    }
    return diag_world(diags, "", "cannot open a compile cache in '%s': %s", folder->path,
                      strerror(errno));
}

void cache_open_own(Cache *cache, const Folder *folder, int number)
{
    char name[32];
    snprintf(name, sizeof name, "cache-%d", number);
    *cache = (Cache){.lock = -1, .path = path_in(folder->own, name)};
    mkdir(cache->path, 0700); // where it fails, compiling will say so
}

void cache_close(Cache *cache)
{
    if (cache->lock >= 0) {
        char text[32], *mark = mark_path(cache);
        snprintf(text, sizeof text, "%d\n", cache->jobs);
        file_write(mark, text, strlen(text)); // without it the cache is emptied, no more
        free(mark);
        close(cache->lock);
    }
    free(cache->path);
    *cache = (Cache){.lock = -1};
}
