// SPDX-License-Identifier: Apache-2.0
//
// .npy files: every type there and back, the bytes of a known file, and every way in which
// a file can be wrong.
#include "measure/measure.h"
#include "problem/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    Ir *ir;
    Arena *arena;
    Diags diags;
    char dir[32], path[64];
} Fixture;

static int set_up(void **state)
{
    Fixture *f = xcalloc(1, sizeof *f);
    f->ir = ir_new();
    f->arena = arena_new();
    f->diags = (Diags){.arena = f->arena};
    strcpy(f->dir, "/tmp/test_npy.XXXXXX");
    if (!mkdtemp(f->dir))
        return 1;
    snprintf(f->path, sizeof f->path, "%s/a.npy", f->dir);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    unlink(f->path);
    rmdir(f->dir);
    arena_free(f->arena);
    ir_free(f->ir);
    free(f);
    return 0;
}

static const Type *array(Fixture *f, int64_t len, const Type *elem)
{
    return type_array(f->arena, arith_const(f->ir->arith, len), elem);
}

static bool write_plane(Fixture *f, const Value *value, int plane)
{
    Scalar scalar = value->scalar[plane];
    int64_t n = value->count[plane];
    void *raw = arena_raw(f->arena, (size_t)MAX(n, 1) * scalar_device_bytes(scalar));
    scalar_pack(scalar, value->plane[plane], n, raw);
    return npy_write(f->path, value->type, plane, raw, &f->diags);
}

static bool read_value(Fixture *f, const Type *type, Value **value)
{
    *value = value_new(f->arena, type);
    Scalar scalar = (*value)->scalar[0];
    int64_t n = (*value)->count[0];
    void *raw = arena_raw(f->arena, (size_t)MAX(n, 1) * scalar_device_bytes(scalar));
    bool ok = npy_read(f->path, type, raw, &f->diags);
    scalar_unpack(scalar, raw, ok ? n : 0, (*value)->plane[0]);
    return ok;
}

// There and back --------------------------------------------------------------------

static void round_trip(Fixture *f, const Type *type)
{
    Value *value = value_new(f->arena, type), *back;
    value_random(value, 3);
    assert_true(write_plane(f, value, 0));
    assert_true(read_value(f, type, &back));
    assert_int_equal(back->count[0], value->count[0]);
    assert_memory_equal(back->plane[0], value->plane[0],
                        (size_t)value->count[0] * sizeof(double));
}

static void test_round_trips(void **state)
{
    Fixture *f = *state;
    for (int s = 0; s < SCALARS; s++) {
        const Type *scalar = type_scalar((Scalar)s);
        round_trip(f, scalar);
        round_trip(f, array(f, 7, scalar));
        round_trip(f, array(f, 0, scalar));
        round_trip(f, array(f, 2, array(f, 3, array(f, 5, scalar))));
        round_trip(f, array(f, 3, type_vector((Scalar)s, 4)));
    }
}

static void test_special_numbers(void **state)
{
    Fixture *f = *state;
    const double x[] = {0,       -0.0,    1,         -2,       65504, -65504,
                        0x1p-24, 0x1p-14, 0x3ffp-24, INFINITY, -0.1,  NAN};
    for (int s = S_INT; s < SCALARS; s++) {
        const Type *type = array(f, COUNTOF(x), type_scalar((Scalar)s));
        Value *value = value_new(f->arena, type), *back;
        for (int i = 0; i < COUNTOF(x); i++)
            value->plane[0][i] = scalar_round((Scalar)s, x[i]);
        assert_true(write_plane(f, value, 0));
        assert_true(read_value(f, type, &back));
        for (int i = 0; i < COUNTOF(x); i++) {
            double want = value->plane[0][i], got = back->plane[0][i];
            assert_true(isnan(want) ? isnan(got)
                                    : want == got && !signbit(want) == !signbit(got));
        }
    }
}

static void test_known_bytes(void **state)
{
    Fixture *f = *state;
    Value *value = value_new(f->arena, array(f, 1, array(f, 2, type_scalar(S_FLOAT))));
    value->plane[0][0] = 1;
    value->plane[0][1] = -2;
    assert_true(write_plane(f, value, 0));
    Buf file = buf_new();
    assert_true(file_read(f->path, FILE_DATA_MOST, &file));
    static const char head[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': "
                               "False, 'shape': (1, 2), }";
    assert_int_equal(file.len, 128 + 8);
    assert_memory_equal(file.text, head, sizeof head - 1);
    assert_int_equal(file.text[127], '\n');
    assert_memory_equal(file.text + 128, "\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);
    buf_release(&file);
}

// Through a double they would lose their last digits.
static void test_long_numbers(void **state)
{
    Fixture *f = *state;
    const uint64_t x[] = {(1ull << 53) + 1, (1ull << 63) - 1, ~0ull - 1};
    uint64_t back[COUNTOF(x)];
    for (int s = S_LONG; s <= S_ULONG; s++) {
        const Type *type = array(f, COUNTOF(x), type_scalar((Scalar)s));
        assert_true(npy_write(f->path, type, 0, x, &f->diags));
        assert_true(npy_read(f->path, type, back, &f->diags));
        assert_memory_equal(back, x, sizeof x);
    }
}

// Each plane of a tuple is a file; its shape is that of the arrays on the way to it.
static void test_planes(void **state)
{
    Fixture *f = *state;
    const Type *inner = array(f, 3, type_scalar(S_INT));
    const Type *item[] = {type_scalar(S_FLOAT), inner};
    Value *value = value_new(f->arena, array(f, 2, type_tuple(f->arena, item, 2)));
    value_random(value, 1);
    assert_true(write_plane(f, value, 1));
    Value *back;
    assert_true(read_value(f, array(f, 2, inner), &back));
    assert_memory_equal(back->plane[0], value->plane[1], 6 * sizeof(double));
    assert_true(write_plane(f, value, 0));
    assert_true(read_value(f, array(f, 2, type_scalar(S_FLOAT)), &back));
}

// What can be wrong ----------------------------------------------------------------------

// A file with this dictionary, a version, and some bytes of numbers.
static void write_file(Fixture *f, int version, const char *dict, size_t numbers)
{
    Buf file = buf_new();
    size_t len = strlen(dict);
    buf_write(&file, "\x93NUMPY", 6);
    buf_putc(&file, (char)version);
    buf_putc(&file, 0);
    buf_putc(&file, (char)(len & 255));
    buf_putc(&file, (char)(len >> 8));
    if (version > 1)
        buf_write(&file, "\0\0", 2);
    buf_puts(&file, dict);
    for (size_t i = 0; i < numbers; i++)
        buf_putc(&file, 0);
    assert_true(file_write(f->path, file.text, file.len));
    buf_release(&file);
}

static bool read_floats(Fixture *f)
{
    Value *value;
    const Type *type = array(f, 2, array(f, 3, type_scalar(S_FLOAT)));
    return read_value(f, type, &value);
}

static const struct {
    int version;
    const char *dict;
    size_t bytes;
    const char *code, *says; // NULL: it is right
} files[] = {
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24, NULL, NULL},
    {2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 24, NULL, NULL},
    {3, "{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"<f4\"}\n", 24, NULL, NULL},
    {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", 48, "N003",
     "elements of type '<f8', but '<f4' (float)"},
    {1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", 24, "N003", "'>f4'"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 24, "N004",
     "has shape (3, 2), but (2, 3) is needed"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", 24, "N004", "(6,)"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, "N004", "()"},
    {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24, "N005",
     "Fortran"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 23, "N006",
     "truncated: 23 bytes of numbers, 24 are needed"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 25, "N006",
     "too long"},
    {4, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24, "N002", "not a"},
    {1, "{'descr': '<f4', 'shape': (2, 3), }", 24, "N002", "not a"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }", 24, "N002",
     "not a"},
    {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3", 0, "N002", "not a"},
    {1, "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,)}", 24, "N002",
     "not a"},
    {1, "", 0, "N002", "not a"},
};

static void test_headers(void **state)
{
    Fixture *f = *state;
    for (int i = 0; i < COUNTOF(files); i++) {
        f->diags.list.len = 0;
        write_file(f, files[i].version, files[i].dict, files[i].bytes);
        bool ok = read_floats(f);
        assert_int_equal(ok, files[i].code == NULL);
        if (ok)
            continue;
        const Diag *diag = &f->diags.list.at[0];
        if (strcmp(diag->code, files[i].code) != 0 || !strstr(diag->message, files[i].says))
            fail_msg("%s: %s %s", files[i].dict, diag->code, diag->message);
    }
}

// No prefix of a good file is read as one, and none crashes.
static void test_prefixes(void **state)
{
    Fixture *f = *state;
    write_file(f, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24);
    Buf file = buf_new();
    assert_true(file_read(f->path, FILE_DATA_MOST, &file));
    for (size_t n = 0; n < file.len; n++) {
        FILE *out = fopen(f->path, "wb");
        fwrite(file.text, 1, n, out);
        fclose(out);
        assert_false(read_floats(f));
    }
    buf_release(&file);
}

static void test_world(void **state)
{
    Fixture *f = *state;
    assert_false(read_floats(f)); // there is no file
    assert_int_equal(f->diags.world, 1);
    snprintf(f->path, sizeof f->path, "%s/no/a.npy", f->dir);
    assert_false(write_plane(f, value_new(f->arena, type_scalar(S_INT)), 0));
    assert_int_equal(f->diags.world, 2);
    assert_string_equal(f->diags.list.at[1].code, "N001");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_round_trips),  TEST(test_special_numbers), TEST(test_known_bytes),
        TEST(test_long_numbers), TEST(test_planes),          TEST(test_headers),
        TEST(test_prefixes),     TEST(test_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
