// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { TRIES = 100 }; // of names for a new file

// Opens without waiting; then a pipe is waited for a moment, as one that nobody will ever
// write to says nothing at all.
int file_open(const char *path, Buf *why)
{
    enum { WAIT_MS = 2000 };
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &about) != 0) {
        buf_puts(why, strerror(errno));
    } else if (S_ISDIR(about.st_mode)) {
        buf_puts(why, strerror(EISDIR));
    } else if (S_ISFIFO(about.st_mode) &&
               poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, WAIT_MS) == 0) {
        buf_puts(why, "it is a pipe, and nothing comes out of it");
    } else {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static void put_size(Buf *out, size_t bytes)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB"};
    int u = 0;
    for (; u < COUNTOF(unit) - 1 && bytes % 1024 == 0; u++)
        bytes /= 1024;
    buf_printf(out, "%lld %s", (long long)bytes, unit[u]);
}

// zlib reads what is not gzipped as it is.
static bool read_all(gzFile file, size_t most, Buf *buf, Buf *why)
{
    enum { BLOCK = 1 << 16 };
    char *block = xmalloc(BLOCK);
    size_t before = buf->len;
    int got, error;
    gzbuffer(file, BLOCK);
    while ((got = gzread(file, block, BLOCK)) > 0 && buf->len - before <= most)
        buf_write(buf, block, (size_t)got);
    free(block);
    int saved = errno;
    const char *text = gzerror(file, &error), *colon = strchr(text, ' '); // "<fd:3>: what"
    if (error == Z_MEM_ERROR)
        out_of_memory(0);
    if (got < 0 || (error != Z_OK && error != Z_STREAM_END)) {
        buf_puts(why, error == Z_ERRNO ? strerror(saved) : colon ? colon + 1 : text);
    } else if (buf->len - before > most) {
        buf_puts(why, "it holds more than ");
        put_size(why, most);
        buf_puts(why, ", the most that is read of such a file");
    }
    return why->len == 0;
}

bool file_read(const char *path, size_t most, Buf *buf)
{
    AutoBuf why = buf_new();
    int fd = file_open(path, &why);
    gzFile file = fd < 0 ? NULL : gzdopen(fd, "rb");
    if (fd >= 0 && !file)
        out_of_memory(0);
    bool ok = file && read_all(file, most, buf, &why);
    if (file)
        gzclose(file);
    if (!ok) {
        buf_clear(buf);
        buf_puts(buf, why.text);
    }
    return ok;
}

Source *source_read(const char *path, Arena *arena, const char **why)
{
    Buf text = buf_new();
    bool ok = file_read(path, FILE_TEXT_MOST, &text);
    size_t len = text.len;
    const char *kept = buf_keep(&text, arena);
    if (!ok) {
        *why = kept;
        return NULL;
    }
    return NEW_OF(arena, Source, path, kept, len);
}

static bool write_all(FILE *f, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, f) == len && fflush(f) == 0 && fsync(fileno(f)) == 0;
}

bool file_move(int fd, char *bytes, size_t len, FileMove *move)
{
    while (len > 0) {
        ssize_t n = move(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static ssize_t write_some(int fd, char *bytes, size_t len)
{
    return write(fd, bytes, len);
}

bool file_put(int fd, const char *bytes, size_t len)
{
    return file_move(fd, (char *)(uintptr_t)bytes, len, write_some);
}

// A pipe or a device is written to as it is: a rename would put a file in its place.
static bool is_special(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

// Closes what was written, if it was opened. Returns whether all went well; errno is that
// of the first failure.
static bool close_written(FILE *f, bool ok)
{
    int saved = errno;
    if (f && fclose(f) != 0 && ok)
        return false;
    errno = saved;
    return ok;
}

static bool write_special(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    return close_written(f, f && fwrite(bytes, 1, len, f) == len);
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
    AutoBuf temp = buf_new();
    FILE *f = open_beside(path, &temp);
    bool ok =
        close_written(f, f && write_all(f, bytes, len)) && rename(temp.text, path) == 0;
    int saved = errno;
    if (f && !ok)
        unlink(temp.text);
    errno = saved;
    return ok;
}

bool file_pack(const char *path, const void *bytes, size_t len)
{
    if (!path_ends(path, ".gz"))
        return file_write(path, bytes, len);
    enum { GZIP = 16 + MAX_WBITS, MEMORY = 8 };
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)len};
    errno = EFBIG;
    if (compressBound(len) > UINT_MAX / 2 ||
        deflateInit2(&stream, 9, Z_DEFLATED, GZIP, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t most = deflateBound(&stream, len);
    AUTO_FREE char *packed = xmalloc(most);
    stream.next_out = (Bytef *)packed;
    stream.avail_out = (uInt)most;
    bool ok = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    deflateEnd(&stream);
    return ok && file_write(path, packed, stream.total_out);
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

char *path_in(const char *folder, const char *name)
{
    Buf path = buf_new();
    buf_printf(&path, "%s/%s", folder, name);
    return path.text;
}

const char *file_shared(const char *program, const char *name, const char *beside,
                        Arena *arena)
{
    const char *const place[] = {arena_printf(arena, "../share/forewarp/%s", name), beside};
    // Links may be relative, or in the middle.
    AUTO_FREE char *self = realpath(program, NULL);
    const char *found = NULL, *end = self ? strrchr(self, '/') : NULL;
    for (int i = 0; i < COUNTOF(place) && end && !found; i++) {
        const char *folder =
            arena_printf(arena, "%.*s%s", (int)(end + 1 - self), self, place[i]);
        found = access(folder, R_OK) == 0 ? folder : NULL;
    }
    return found;
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
