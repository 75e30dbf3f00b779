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

void buf_init(Buf *buf)
{
    *buf = (Buf){0};
    buf_reserve(buf, 63);
    buf->text[0] = 0;
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

void buf_vprintf(Buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    buf_reserve(buf, (size_t)n);
    vsnprintf(buf->text + buf->len, (size_t)n + 1, format, again);
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
