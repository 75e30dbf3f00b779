// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static void buf_reserve(Buf *buf, size_t more)
{
    size_t need = buf->len + more + 1;
    if (need <= buf->cap)
        return;
    buf->cap = MAX(need, buf->cap * 2);
    buf->text = xrealloc(buf->text, buf->cap);
}

Buf buf_new(void)
{
    Buf buf = {0};
    buf_reserve(&buf, 63);
    buf.text[0] = 0;
    return buf;
}

void buf_release(Buf *buf)
{
    free(buf->text);
    *buf = (Buf){0};
}

void buf_clear(Buf *buf)
{
    buf->len = 0;
    buf->text[0] = 0;
}

void buf_write(Buf *buf, const void *bytes, size_t len)
{
    buf_reserve(buf, len);
    if (len)
        memcpy(buf->text + buf->len, bytes, len);
    buf->len += len;
    buf->text[buf->len] = 0;
}

void buf_putc(Buf *buf, char c)
{
    buf_write(buf, &c, 1);
}

void buf_puts(Buf *buf, const char *text)
{
    buf_write(buf, text, strlen(text));
}

// Generated text is mostly %s, %d and %lld, which are written here: LAPACK brings in
// libquadmath, whose printf hooks send every conversion of glibc down its slow path, half
// of the time of emitting a kernel.
static bool is_plain(const char *format)
{
    while ((format = strchr(format, '%'))) {
        format++;
        if (strncmp(format, "lld", 3) == 0)
            format += 3;
        else if (*format && strchr("sdc%", *format))
            format++;
        else
            return false;
    }
    return true;
}

static void put_text(Buf *buf, const char *text)
{
    buf_puts(buf, text ? text : "(null)"); // as glibc does
}

static void put_number(Buf *buf, long long number)
{
    char digits[24], *at = digits + sizeof digits;
    unsigned long long rest =
        number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--at = '-';
    buf_write(buf, at, (size_t)(digits + sizeof digits - at));
}

static void put_plain(Buf *buf, const char *format, va_list args)
{
    for (const char *mark; (mark = strchr(format, '%')); format = mark + 2) {
        buf_write(buf, format, (size_t)(mark - format));
        switch (mark[1]) {
        case 's': put_text(buf, va_arg(args, const char *)); break;
        case 'd': put_number(buf, va_arg(args, int)); break;
        case 'c': buf_putc(buf, (char)va_arg(args, int)); break;
        case '%': buf_putc(buf, '%'); break;
        default: put_number(buf, va_arg(args, long long)); mark += 2; // lld
        }
    }
    buf_puts(buf, format);
}

void buf_vprintf(Buf *buf, const char *format, va_list args)
{
    if (is_plain(format)) {
        put_plain(buf, format, args);
        return;
    }
    va_list again;
    va_copy(again, args);
    size_t room = buf->cap - buf->len;
    int n = vsnprintf(buf->text + buf->len, room, format, args);
    if ((size_t)n >= room) {
        buf_reserve(buf, (size_t)n);
        vsnprintf(buf->text + buf->len, (size_t)n + 1, format, again);
    }
    buf->len += (size_t)n;
    va_end(again);
}

void buf_printf(Buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vprintf(buf, format, args);
    va_end(args);
}

char *buf_keep(Buf *buf, Arena *arena)
{
    char *text = arena_strndup(arena, buf->text, buf->len);
    buf_release(buf);
    return text;
}
