// SPDX-License-Identifier: Apache-2.0
//
// The controller's files: FOLDER/run-XXXXXX (data of one controller, removed when it
// ends) and FOLDER/cache-N (what devices compiled, kept).
//
// Locks (flock) say who is alive, since they end with their process however it ends: a
// run folder without a locked `lock` is a killed controller's and is removed; a cache
// that is locked is passed over for the next number. A cache without its `clean` mark was
// not closed in good order and may hold half-written files: it is emptied. So is one
// that has grown large, since PoCL removes nothing from its cache. Nothing is mapped for
// writing: a full disk is an error here, not a signal.
#include "measure/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { CACHES_MAX = 64, CACHE_JOBS_MAX = 10000 }; // about 65 kB a job with PoCL

static char *path_join(const char *folder, const char *name)
{
    Buf path;
    buf_init(&path);
    buf_printf(&path, "%s/%s", folder, name);
    return path.text;
}

// A file locked for this process; -1: not made. *taken: another process holds it. Where
// the file system knows no locks, the file alone has to do.
static int lock_file(const char *path, int how, bool *taken)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), result;
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

static void sweep_one(const char *folder, const char *name)
{
    char *path = path_join(folder, name), *lock = path_join(path, "lock");
    bool taken;
    int fd = lock_file(lock, LOCK_EX | LOCK_NB, &taken);
    if (!taken)
        remove_tree(path);
    if (fd >= 0)
        close(fd);
    free(lock);
    free(path);
}

static void sweep(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (strncmp(entry->d_name, "run-", 4) == 0)
            sweep_one(folder, entry->d_name);
    if (dir)
        closedir(dir);
}

static bool make_data(Folder *folder)
{
    bool taken;
    folder->data = path_join(folder->path, "run-XXXXXX");
    if (!mkdtemp(folder->data)) {
        free(folder->data);
        folder->data = NULL;
        return false;
    }
    char *lock = path_join(folder->data, "lock");
    folder->lock = lock_file(lock, LOCK_EX | LOCK_NB, &taken);
    free(lock);
    return folder->lock >= 0;
}

static bool open_in_turn(Folder *folder)
{
    bool taken;
    char *gate = path_join(folder->path, "lock");
    int fd = lock_file(gate, LOCK_EX, &taken);
    free(gate);
    if (fd < 0)
        return false;
    sweep(folder->path);
    bool ok = make_data(folder);
    int saved = errno;
    close(fd);
    errno = saved;
    return ok;
}

bool folder_open(Folder *folder, const char *path, Diags *diags)
{
    *folder = (Folder){.lock = -1};
    json_t *name = json_string(path); // workers are told of files in JSON
    json_decref(name);
    if (!name)
        return diag_world(diags, "", "the folder's name is not UTF-8: '%s'", path);
    if (file_mkdirs(path) && (folder->path = realpath(path, NULL)) && open_in_turn(folder))
        return true;
    return diag_world(diags, "", "cannot use the folder '%s': %s; name another one", path,
                      strerror(errno));
}

void folder_close(Folder *folder)
{
    if (folder->data)
        remove_tree(folder->data);
    if (folder->lock >= 0)
        close(folder->lock);
    free(folder->data);
    free(folder->path);
    *folder = (Folder){.lock = -1};
}

static bool write_whole(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

bool folder_write(const Folder *folder, const char *name, const void *bytes, size_t len,
                  Diags *diags)
{
    char *path = path_join(folder->data, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_whole(fd, bytes, len);
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
    free(path);
    return ok;
}

char *folder_turn_path(const Folder *folder, const char *device)
{
    Buf path;
    buf_init(&path);
    buf_printf(&path, "%s/%s.turn", folder->path, device);
    for (char *p = path.text + strlen(folder->path) + 1; *p; p++)
        if (*p == ':' || *p == '/')
            *p = '-';
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
    Buf path;
    buf_init(&path);
    buf_printf(&path, "%s.clean", cache->path);
    return path.text;
}

// Takes the mark away while the cache is in use.
static void claim(Cache *cache)
{
    Buf text;
    buf_init(&text);
    char *mark = mark_path(cache);
    cache->jobs = file_read(mark, FILE_TEXT_MOST, &text) ? atoi(text.text) : CACHE_JOBS_MAX;
    unlink(mark);
    if (cache->jobs >= CACHE_JOBS_MAX) {
        remove_tree(cache->path);
        cache->jobs = 0;
    }
    free(mark);
    buf_release(&text);
}

bool cache_open(Cache *cache, const Folder *folder, Diags *diags)
{
    char name[32];
    bool taken = true;
    *cache = (Cache){.lock = -1};
    for (int i = 0; i < CACHES_MAX && taken; i++) {
        snprintf(name, sizeof name, "cache-%d.lock", i);
        char *lock = path_join(folder->path, name);
        cache->lock = lock_file(lock, LOCK_EX | LOCK_NB, &taken);
        free(lock);
        snprintf(name, sizeof name, "cache-%d", i);
    }
    if (cache->lock >= 0) {
        cache->path = path_join(folder->path, name);
        claim(cache);
        if (file_mkdirs(cache->path))
            return true;
    }
    return diag_world(diags, "", "cannot open a compile cache in '%s': %s", folder->path,
                      taken ? "all are in use" : strerror(errno));
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
