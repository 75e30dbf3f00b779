// SPDX-License-Identifier: Apache-2.0
//
// Standard output and standard error as streams on which text of others (names of files, of
// arguments, of parameters) cannot command a terminal: what printf, argp or perror write
// there goes through text_step. Text that must arrive byte by byte (a kernel in a pipe) and
// text with colours of forewarp do not go through these streams.
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { CHARACTER_MOST = 4 };

typedef struct {
    int file;
    char held[CHARACTER_MOST]; // a character whose end is in the next write
    size_t n;
} OutputGuard;

// The bytes at the end that may be the begin of a character.
static size_t unfinished(const char *text, size_t len)
{
    for (size_t n = 1; n < CHARACTER_MOST && n <= len; n++) {
        unsigned char c = (unsigned char)text[len - n];
        if ((c & 0xc0) != 0x80)
            return c >= (n == 1 ? 0xc0 : n == 2 ? 0xe0 : 0xf0) ? n : 0;
    }
    return 0;
}

static ssize_t write_guarded(void *cookie, const char *text, size_t len)
{
    OutputGuard *guard = cookie;
    AutoBuf all = buf_new(), shown = buf_new();
    buf_write(&all, guard->held, guard->n);
    buf_write(&all, text, len);
    guard->n = unfinished(all.text, all.len);
    memcpy(guard->held, all.text + all.len - guard->n, guard->n);
    buf_shown(&shown, all.text, all.len - guard->n);
    bool ok = file_put(guard->file, shown.text, shown.len);
    return ok ? (ssize_t)len : 0;
}

static FILE *guarded(FILE *plain, int file, int mode)
{
    OutputGuard *guard = xcalloc(1, sizeof *guard); // as long as the process
    guard->file = file;
    FILE *stream = fopencookie(guard, "w", (cookie_io_functions_t){.write = write_guarded});
    if (stream)
        setvbuf(stream, NULL, mode, BUFSIZ);
    return stream ? stream : plain;
}

void cli_guard(void)
{
#ifdef __GLIBC__
    stdout = guarded(stdout, STDOUT_FILENO, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
    stderr = guarded(stderr, STDERR_FILENO, _IONBF);
#else // musl's streams are constants: what is printed goes out as it is
    (void)guarded;
#endif
}

void cli_paint(const char *text)
{
    file_put(STDERR_FILENO, text, strlen(text));
}

bool cli_put(Options *o, const Buf *text)
{
    bool ok = fflush(stdout) == 0 &&
              (isatty(STDOUT_FILENO) ? fwrite(text->text, 1, text->len, stdout) > 0
                                     : file_put(STDOUT_FILENO, text->text, text->len));
    return ok || diag_world(&o->diags, "C003", "cannot write standard output: %s",
                            strerror(errno));
}
