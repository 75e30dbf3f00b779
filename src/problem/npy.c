// SPDX-License-Identifier: Apache-2.0
//
// NumPy's .npy files: a magic word, a version, a Python dictionary as text (element type,
// order, shape), then the numbers.
//
//   source  NumPy Enhancement Proposal 1, format versions 1.0, 2.0 and 3.0
//
// Only what a Value can hold: the element types of ir/scalars.def; little endian; C order.
// Nothing is converted: another element type or shape is an error that names both.
//
// Codes: N001 cannot read or write, N002 not a .npy file, N003 another element type,
// N004 another shape, N005 Fortran order, N006 truncated or too long.
#include "problem/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NPY_DIMS_MAX = 32, MAGIC_BYTES = 6 };
static const char magic[] = "\x93NUMPY";

// Shapes -------------------------------------------------------------------------------

typedef struct {
    int n; // of a type it may be more than there is room for: see type_layout
    int64_t len[NPY_DIMS_MAX];
} NpyShape;

static void shape_push(NpyShape *shape, int64_t len)
{
    if (shape->n < NPY_DIMS_MAX)
        shape->len[shape->n] = len;
    shape->n++;
}

// Appends the dimensions of the plane-th plane and finds its scalar; counts plane down
// past the planes of the type, true once found.
static bool shape_of(const Type *type, int *plane, NpyShape *shape, Scalar *scalar)
{
    int outer = shape->n;
    switch (type->kind) {
    case T_ARRAY:
        shape_push(shape, type->len->value);
        if (shape_of(type->elem, plane, shape, scalar))
            return true;
        break;
    case T_TUPLE:
        for (int i = 0; i < type->n; i++)
            if (shape_of(type->item[i], plane, shape, scalar))
                return true;
        break;
    case T_VECTOR:
    case T_SCALAR:
        *scalar = type->scalar;
        if (type->kind == T_VECTOR && *plane == 0)
            shape_push(shape, type->width);
        return (*plane)-- == 0;
    }
    shape->n = outer;
    return false;
}

// How a plane that is there lies in a file: shape is to live as long. False with a
// diagnostic if NumPy has no such array.
static bool type_layout(const char *path, const Type *type, int plane, NpyShape *shape,
                        NpyLayout *layout, Diags *diags)
{
    int left = plane;
    Scalar scalar = S_FLOAT;
    if (!shape_of(type, &left, shape, &scalar))
        BUG("no plane %d", plane);
    *layout = (NpyLayout){.dtype = scalar_info[scalar].dtype,
                          .shape = shape->len,
                          .ndim = shape->n,
                          .bytes = scalar_info[scalar].bytes};
    return shape->n <= NPY_DIMS_MAX ||
           diag_error(diags, span_none, "N007",
                      "%s: an array of %d dimensions; a .npy file has at most %d", path,
                      shape->n, NPY_DIMS_MAX);
}

// As Python writes it: `(3, 4)`, `(3,)`, `()`.
static void print_shape(Buf *out, const NpyShape *shape)
{
    buf_putc(out, '(');
    for (int i = 0; i < shape->n; i++)
        buf_printf(out, "%s%" PRId64, i ? ", " : "", shape->len[i]);
    buf_puts(out, shape->n == 1 ? ",)" : ")");
}

static const char *shape_text(Arena *arena, const NpyShape *shape)
{
    Buf text = buf_new();
    print_shape(&text, shape);
    return buf_keep(&text, arena);
}

// The header ---------------------------------------------------------------------------

typedef struct {
    const char *descr; // element type, as written
    bool fortran;
    NpyShape shape;
    bool has_descr, has_order, has_shape;
} Header;

static void skip_space(const char **at)
{
    *at += strspn(*at, " \t\n");
}

static bool take_char(const char **at, char c)
{
    skip_space(at);
    if (**at != c)
        return false;
    ++*at;
    return true;
}

static bool take_word(const char **at, const char *word)
{
    skip_space(at);
    size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

static const char *take_string(Arena *arena, const char **at)
{
    skip_space(at);
    char quote = **at;
    if (quote != '\'' && quote != '"')
        return NULL;
    const char *start = *at + 1, *end = strchr(start, quote);
    if (!end)
        return NULL;
    *at = end + 1;
    return arena_strndup(arena, start, (size_t)(end - start));
}

static bool take_shape(const char **at, NpyShape *shape)
{
    if (!take_char(at, '('))
        return false;
    while (!take_char(at, ')')) {
        skip_space(at);
        size_t digits = strspn(*at, "0123456789");
        if (digits == 0 || digits > 18 || shape->n == NPY_DIMS_MAX)
            return false;
        int64_t len = 0;
        for (; digits > 0; digits--)
            len = 10 * len + *(*at)++ - '0';
        shape_push(shape, len);
        if (!take_char(at, ',') && **at != ')')
            return false;
    }
    return true;
}

static bool take_entry(Arena *arena, const char **at, Header *header)
{
    const char *key = take_string(arena, at);
    if (!key || !take_char(at, ':'))
        return false;
    if (!strcmp(key, "descr")) {
        header->descr = take_string(arena, at);
        return header->has_descr = header->descr != NULL;
    }
    if (!strcmp(key, "fortran_order")) {
        header->fortran = take_word(at, "True");
        return header->has_order = header->fortran || take_word(at, "False");
    }
    if (strcmp(key, "shape") != 0 || header->has_shape)
        return false;
    return header->has_shape = take_shape(at, &header->shape);
}

static bool parse_header(Arena *arena, const char *text, Header *header)
{
    if (!take_char(&text, '{'))
        return false;
    while (!take_char(&text, '}'))
        if (!take_entry(arena, &text, header) || (!take_char(&text, ',') && *text != '}'))
            return false;
    return header->has_descr && header->has_order && header->has_shape;
}

// The bytes that there are of those wanted, fewer only at the end; -1, with errno.
static int64_t take_bytes(int fd, void *to, int64_t want)
{
    int64_t have = 0;
    while (have < want) {
        ssize_t n = read(fd, (char *)to + have, (size_t)(want - have));
        if (n == 0 || (n < 0 && errno != EINTR))
            return n < 0 ? -1 : have;
        have += MAX(n, 0);
    }
    return have;
}

// Reads up to where the numbers begin; false if this is not a .npy file.
static bool read_header(Arena *arena, int fd, Header *header)
{
    enum { HEADER_MOST = 1 << 16 };
    unsigned char b[12] = {0};
    if (take_bytes(fd, b, 10) != 10 || memcmp(b, magic, MAGIC_BYTES) != 0 || b[6] < 1 ||
        b[6] > 3 || (b[6] > 1 && take_bytes(fd, b + 10, 2) != 2))
        return false;
    size_t len = b[8] | (size_t)b[9] << 8 | (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (len > HEADER_MOST)
        return false;
    char *text = NEW_ARRAY(arena, char, len + 1);
    return take_bytes(fd, text, (int64_t)len) == (int64_t)len &&
           parse_header(arena, text, header);
}

// Reading ------------------------------------------------------------------------------

static bool same_shape(const NpyShape *a, const NpyShape *b)
{
    return a->n == b->n && !memcmp(a->len, b->len, (size_t)a->n * sizeof a->len[0]);
}

// A word for an element type.
static const char *dtype_name(const char *dtype)
{
    int i = FIND(scalar_info, SCALARS, dtype, dtype);
    return i >= 0 ? scalar_info[i].name : dtype[1] == 'u' ? "unsigned integer" : "integer";
}

static bool check_header(const char *path, Arena *arena, const Header *header,
                         const NpyShape *shape, const char *want, Diags *diags)
{
    bool same = !strcmp(header->descr, want) ||
                (!strcmp(want, scalar_info[S_BOOL].dtype) && !strcmp(header->descr, "?")) ||
                (!strcmp(want, scalar_info[S_BF16].dtype) && !strcmp(header->descr, "|V2"));
    if (!same)
        return diag_error(diags, span_none, "N003",
                          "%s holds elements of type '%s', but '%s' (%s) is needed", path,
                          header->descr, want, dtype_name(want));
    if (!same_shape(&header->shape, shape))
        return diag_error(diags, span_none, "N004", "%s has shape %s, but %s is needed",
                          path, shape_text(arena, &header->shape),
                          shape_text(arena, shape));
    if (header->fortran && shape->n > 1)
        return diag_error(diags, span_none, "N005",
                          "%s is in Fortran order; save it with numpy.ascontiguousarray",
                          path);
    return true;
}

// A file of numbers, open where they begin.
typedef struct {
    const char *path;
    int fd;
    int64_t need; // bytes of numbers
    const char *shape;
    Diags *diags;
} NpyFile;

static bool wrong_length(const NpyFile *n, int64_t have, const char *more)
{
    return diag_error(
        n->diags, span_none, "N006",
        "%s is %s: %" PRId64 "%s bytes of numbers, %" PRId64 " are needed for shape %s",
        n->path, have < n->need ? "truncated" : "too long", have, more, n->need, n->shape);
}

// The length that a file has is compared before there is memory for its numbers.
static bool fits(const NpyFile *n)
{
    struct stat about;
    if (fstat(n->fd, &about) != 0 || !S_ISREG(about.st_mode))
        return true;
    int64_t have = about.st_size - lseek(n->fd, 0, SEEK_CUR);
    return have == n->need || wrong_length(n, have, "");
}

static bool open_numbers(NpyFile *n, Arena *arena, const NpyShape *shape, const char *dtype)
{
    Header header = {0};
    AutoBuf why = buf_new();
    n->shape = shape_text(arena, shape);
    n->fd = file_open(n->path, &why);
    if (n->fd < 0)
        diag_world(n->diags, "N001", "cannot read %s: %s", n->path, why.text);
    if (n->fd < 0)
        return false;
    if (!read_header(arena, n->fd, &header))
        return diag_error(n->diags, span_none, "N002", "%s is not a .npy file", n->path);
    return check_header(n->path, arena, &header, shape, dtype, n->diags) && fits(n);
}

// All is read: was it as much as there should be, and is there no more?
static bool close_numbers(NpyFile *n, bool ok, int64_t have)
{
    char more;
    if (ok && have < 0)
        ok = diag_world(n->diags, "N001", "cannot read %s: %s", n->path, strerror(errno));
    else if (ok && have < n->need)
        ok = wrong_length(n, have, "");
    else if (ok && take_bytes(n->fd, &more, 1) != 0)
        ok = wrong_length(n, have + 1, " or more");
    if (n->fd >= 0)
        close(n->fd);
    return ok;
}

static NpyShape layout_shape(const NpyLayout *layout, int64_t *bytes)
{
    NpyShape shape = {0};
    *bytes = layout->bytes;
    for (int i = 0; i < layout->ndim; i++) {
        shape_push(&shape, layout->shape[i]);
        *bytes *= layout->shape[i];
    }
    return shape;
}

bool npy_read_raw(const char *path, const NpyLayout *layout, void *to, Diags *diags)
{
    NpyFile n = {.path = path, .diags = diags};
    AutoArena *arena = arena_new();
    NpyShape shape = layout_shape(layout, &n.need);
    bool ok = open_numbers(&n, arena, &shape, layout->dtype);
    ok = close_numbers(&n, ok, ok ? take_bytes(n.fd, to, n.need) : 0);
    return ok;
}

bool npy_read(const char *path, const Type *expected, void *to, Diags *diags)
{
    NpyShape shape = {0};
    NpyLayout layout;
    if (!type_layout(path, expected, 0, &shape, &layout, diags) ||
        !npy_read_raw(path, &layout, to, diags))
        return false;
    int64_t bytes;
    layout_shape(&layout, &bytes);
    const bool truth = layout.dtype == scalar_info[S_BOOL].dtype;
    for (int64_t i = 0; truth && i < bytes; i++)
        ((char *)to)[i] = ((char *)to)[i] != 0;
    return true;
}

// Writing ------------------------------------------------------------------------------

// The dictionary, padded so that the numbers begin at a multiple of 64 bytes.
static void write_header(Buf *out, const NpyShape *shape, const char *dtype)
{
    AutoBuf text = buf_new();
    buf_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': ", dtype);
    print_shape(&text, shape);
    buf_puts(&text, ", }");
    while ((10 + text.len + 1) % 64)
        buf_putc(&text, ' ');
    buf_putc(&text, '\n');
    buf_write(out, magic, MAGIC_BYTES);
    const char rest[4] = {1, 0, (char)(text.len & 255), (char)(text.len >> 8)};
    buf_write(out, rest, sizeof rest);
    buf_write(out, text.text, text.len);
}

// Releases the text.
static bool write_file(const char *path, Buf *file, Diags *diags)
{
    bool ok = file_write(path, file->text, file->len);
    int saved = errno;
    buf_release(file);
    return ok || diag_world(diags, "N001", "cannot write %s: %s", path, strerror(saved));
}

void npy_header(const NpyLayout *layout, Buf *out)
{
    int64_t bytes;
    NpyShape shape = layout_shape(layout, &bytes);
    write_header(out, &shape, layout->dtype);
}

bool npy_write_raw(const char *path, const NpyLayout *layout, const void *from,
                   Diags *diags)
{
    int64_t bytes;
    layout_shape(layout, &bytes);
    Buf file = buf_new();
    npy_header(layout, &file);
    buf_write(&file, from, (size_t)bytes);
    return write_file(path, &file, diags);
}

bool npy_write(const char *path, const Type *type, int plane, const void *from,
               Diags *diags)
{
    NpyShape shape = {0};
    NpyLayout layout;
    return type_layout(path, type, plane, &shape, &layout, diags) &&
           npy_write_raw(path, &layout, from, diags);
}
