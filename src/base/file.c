// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_read(const char *path, Buf *buf)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    char chunk[16384];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        buf_write(buf, chunk, n);
    bool ok = !ferror(f);
    int saved = errno;
    fclose(f);
    errno = saved;
    return ok;
}

static bool write_all(FILE *f, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, f) == len && fflush(f) == 0 && fsync(fileno(f)) == 0;
}

bool file_write(const char *path, const void *bytes, size_t len)
{
    Buf temp;
    buf_init(&temp);
    buf_printf(&temp, "%s.%ld.tmp", path, (long)getpid());
    FILE *f = fopen(temp.text, "wb");
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
