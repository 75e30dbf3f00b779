// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 100 }; // of names for a new file

bool file_read(const char *path, Buf *buf)
{
    char chunk[16384];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            buf_write(buf, chunk, (size_t)n);
    int saved = errno;
    close(fd);
    errno = saved;
    return n == 0;
}

Source *source_read(const char *path, Arena *arena)
{
    Buf text;
    buf_init(&text);
    Source *source = NULL;
    if (file_read(path, &text)) {
        source = NEW(arena, Source);
        *source = (Source){path, arena_strndup(arena, text.text, text.len), text.len};
    }
    int saved = errno;
    buf_release(&text);
    errno = saved;
    return source;
}

static bool write_all(FILE *f, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, f) == len && fflush(f) == 0 && fsync(fileno(f)) == 0;
}

// A pipe or a device is written to as it is: a rename would put a file in its place.
static bool is_special(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

static bool write_special(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(bytes, 1, len, f) == len;
    int saved = errno;
    if (f && fclose(f) != 0 && ok) {
        saved = errno;
        ok = false;
    }
    errno = saved;
    return ok;
}

// A new file beside path, by a name that nobody can foresee: in a folder that others may
// write to, one could have put a link there.
static FILE *open_beside(const char *path, Buf *temp)
{
    int fd = -1;
    for (int i = 0; i < TRIES && fd < 0 && (i == 0 || errno == EEXIST); i++) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            return NULL;
        buf_clear(temp);
        buf_printf(temp, "%s.%016llx.tmp", path, (unsigned long long)random);
        fd = open(temp->text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    return fd < 0 ? NULL : fdopen(fd, "wb");
}

bool file_write(const char *path, const void *bytes, size_t len)
{
    if (is_special(path))
        return write_special(path, bytes, len);
    Buf temp;
    buf_init(&temp);
    FILE *f = open_beside(path, &temp);
    bool ok = f && write_all(f, bytes, len);
    int saved = errno;
    if (f && fclose(f) != 0 && ok) {
        saved = errno;
        ok = false;
    }
    if (ok && rename(temp.text, path) != 0) {
        saved = errno;
        ok = false;
    }
    if (f && !ok)
        unlink(temp.text);
    buf_release(&temp);
    errno = saved;
    return ok;
}

bool file_mkdirs(const char *path)
{
    char *copy = xstrdup(path);
    bool ok = true;
    for (char *p = copy + 1; ok && *p; p++)
        if (*p == '/') {
            *p = 0;
            ok = mkdir(copy, 0777) == 0 || errno == EEXIST;
            *p = '/';
        }
    ok = ok && (mkdir(copy, 0777) == 0 || errno == EEXIST);
    int saved = errno;
    free(copy);
    errno = saved;
    return ok;
}

// A link that root made is the system's.
static bool is_own(const char *path, struct stat *about)
{
    struct stat link;
    if (lstat(path, &link) != 0 || stat(path, about) != 0)
        return false;
    bool own = about->st_uid == geteuid() &&
               (link.st_uid == geteuid() || (S_ISLNK(link.st_mode) && link.st_uid == 0));
    errno = own ? ENOTDIR : EPERM;
    return own && S_ISDIR(about->st_mode);
}

bool file_mkdir_private(const char *path, bool *was_open)
{
    struct stat about;
    char *copy = xstrdup(path), *slash = strrchr(copy, '/');
    bool made = !slash || slash == copy;
    *was_open = false;
    if (!made) {
        *slash = 0;
        made = file_mkdirs(copy);
    }
    made = made && (mkdir(path, 0700) == 0 || errno == EEXIST) && is_own(path, &about);
    *was_open = made && (about.st_mode & 022) != 0;
    made = made && ((about.st_mode & 077) == 0 || chmod(path, 0700) == 0);
    int saved = errno;
    free(copy);
    errno = saved;
    return made;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    remove(path);
    return 0;
}

void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool path_ends(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

static void put_home(Buf *out)
{
    const char *folder = getenv("HOME");
    char text[4096];
    struct passwd user, *found = NULL;
    if (folder && *folder)
        buf_puts(out, folder);
    else if (getpwuid_r(getuid(), &user, text, sizeof text, &found) == 0 && found)
        buf_puts(out, user.pw_dir);
    else
        buf_putc(out, '.');
}

void user_folder(Buf *out, const char *variable, const char *in_home)
{
    const char *folder = getenv(variable);
    if (folder && *folder) {
        buf_puts(out, folder);
    } else {
        put_home(out);
        buf_printf(out, "/%s", in_home);
    }
    buf_puts(out, "/forewarp");
}
