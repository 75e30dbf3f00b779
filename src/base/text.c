// SPDX-License-Identifier: Apache-2.0
//
// Text of others (names of files, excerpts, logs of compilers) on its way to people.
#include "base/base.h"

// The code point that starts here and its bytes; 0 bytes if it is no UTF-8: cut short,
// longer than need be, a surrogate, or out of range.
static uint32_t decode(const unsigned char *at, size_t len, size_t *n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = at[0];
    *n = first < 0x80             ? 1
         : (first & 0xe0) == 0xc0 ? 2
         : (first & 0xf0) == 0xe0 ? 3
         : (first & 0xf8) == 0xf0 ? 4
                                  : 0;
    if (*n == 0 || *n > len)
        return *n = 0;
    uint32_t code = *n == 1 ? first : first & (0x7fu >> *n);
    for (size_t i = 1; i < *n; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return *n = 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    if (code < least[*n] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff)
        return *n = 0;
    return code;
}

// Control characters, and marks that turn the direction of what follows or end a line.
static bool is_plain(uint32_t code)
{
    static const uint32_t out[][2] = {{0x00, 0x08},    {0x0b, 0x1f},     {0x7f, 0x9f},
                                      {0x61c, 0x61c},  {0x200e, 0x200f}, {0x2028, 0x202e},
                                      {0x2066, 0x2069}};
    for (int i = 0; i < COUNTOF(out); i++)
        if (code >= out[i][0] && code <= out[i][1])
            return false;
    return true;
}

size_t text_step(const char *text, size_t len, bool *plain)
{
    size_t n;
    uint32_t code = decode((const unsigned char *)text, len, &n);
    *plain = n > 0 && is_plain(code);
    return MAX(n, 1);
}

void buf_shown(Buf *buf, const char *text, size_t len)
{
    bool plain;
    for (size_t i = 0, n; i < len; i += n) {
        n = text_step(text + i, len - i, &plain);
        if (plain)
            buf_write(buf, text + i, n);
        else
            buf_putc(buf, '?');
    }
}
