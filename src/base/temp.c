// SPDX-License-Identifier: Apache-2.0
//
// Temporary folders: PARENT/PREFIX-XXXXXX, for this user alone, with names nobody can
// foresee. Those of processes that are gone are removed by the next that makes one there.
//
//   method  a lock (flock) on a file in the folder says that its process is alive, since it
//           ends with the process however that ends. Whoever gets it removes the folder.
//
// An empty one is of a process that was killed before it had made the lock, or is about to:
// it is removed, too, and who is about to makes another. One on a file system that knows no
// locks stays. Those of other users are never touched.
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 100 };
static const char lock_name[] = "lock";

static int seize(int fd)
{
    int result;
    while ((result = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EINTR)
        ;
    return result;
}

// The lock last: whoever is killed before it is gone leaves a folder that others remove.
static void remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, lock_name) != 0) {
            AUTO_FREE char *inner = path_in(path, entry->d_name);
            remove_tree(inner);
        }
    if (dir)
        closedir(dir);
    remove_tree(path);
}

static void sweep_one(const char *path)
{
    struct stat about;
    if (lstat(path, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != geteuid())
        return;
    AUTO_FREE char *lock = path_in(path, lock_name);
    int fd = open(lock, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        rmdir(path); // if it is empty
    else if (seize(fd) == 0)
        remove_folder(path);
    if (fd >= 0)
        close(fd);
}

static void sweep(const char *parent, const char *prefix)
{
    size_t len = strlen(prefix);
    DIR *dir = opendir(parent);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (strncmp(entry->d_name, prefix, len) == 0 && entry->d_name[len] == '-' &&
            strlen(entry->d_name + len) == sizeof "-XXXXXX" - 1) {
            AUTO_FREE char *path = path_in(parent, entry->d_name);
            sweep_one(path);
        }
    if (dir)
        closedir(dir);
}

// Another process may take the folder for one that was left until the lock is held.
static bool is_kept(int fd)
{
    struct stat about;
    if (seize(fd) != 0)
        return errno != EWOULDBLOCK; // no locks here: then nobody else gets one either
    return fstat(fd, &about) == 0 && about.st_nlink > 0;
}

static bool make(TempFolder *folder, const char *parent, const char *prefix)
{
    Buf path = buf_new();
    buf_printf(&path, "%s/%s-XXXXXX", parent, prefix);
    folder->path = mkdtemp(path.text);
    if (!folder->path) {
        int saved = errno;
        buf_release(&path);
        errno = saved;
        return false;
    }
    char *lock = path_in(folder->path, lock_name);
    folder->lock = open(lock, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int saved = errno;
    free(lock);
    errno = saved;
    return folder->lock >= 0;
}

bool temp_open(TempFolder *folder, const char *parent, const char *prefix)
{
    sweep(parent, prefix);
    for (int i = 0; i < TRIES; i++) {
        *folder = (TempFolder){.lock = -1};
        bool made = make(folder, parent, prefix);
        int why = errno;
        if (made && is_kept(folder->lock))
            return true;
        bool again = folder->path && (made || why == ENOENT);
        temp_close(folder);
        errno = why;
        if (!again)
            return false;
    }
    errno = EBUSY;
    return false;
}

void temp_close(TempFolder *folder)
{
    if (folder->path)
        remove_folder(folder->path);
    if (folder->lock >= 0)
        close(folder->lock);
    free(folder->path);
    *folder = (TempFolder){.lock = -1};
}

const char *temp_parent(void)
{
    const char *parent = getenv("TMPDIR");
    return parent && *parent ? parent : "/tmp";
}
