// SPDX-License-Identifier: Apache-2.0
//
// Every reader on files that it reads, which it must read without a diagnostic, or nothing
// behind what refuses them would be tried; then on mutations of them: a part of a minute
// altogether with `make check`, FW_FUZZ_SECONDS a reader otherwise. It needs no compiler of
// its own and finds most under the sanitizers (make SAN=1); `make fuzz` follows the
// coverage.
//
// The input at hand lies in a file mapped by both sides, so that whatever ends the reader's
// process leaves it: build/fuzz-READER.input is what to look at.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "readers.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES_MOST = 1 << 16, HANG_S = 30 };

// The last input, where a dead reader leaves it.
typedef struct {
    volatile uint64_t tried;
    volatile size_t size;
    uint8_t data[BYTES_MOST];
} Shared;

// Seeds -----------------------------------------------------------------------------------

typedef struct {
    Buf file[256];
    char *name[256];
    int n;
} Seeds;

static void add_pattern(Seeds *seeds, const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc && seeds->n < COUNTOF(seeds->file); i++) {
        Buf *file = &seeds->file[seeds->n];
        *file = buf_new();
        if (!file_read(found.gl_pathv[i], BYTES_MOST / 2, file))
            fail_msg("seed %s: %s", found.gl_pathv[i], file->text);
        seeds->name[seeds->n++] = xstrdup(found.gl_pathv[i]);
    }
    globfree(&found);
}

static void load_seeds(Seeds *seeds, const char *patterns)
{
    char *text = xstrdup(patterns), *save = NULL;
    seeds->n = 0;
    for (char *p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save))
        add_pattern(seeds, p);
    free(text);
}

static void free_seeds(Seeds *seeds)
{
    for (int i = 0; i < seeds->n; i++)
        buf_release(&seeds->file[i]), free(seeds->name[i]);
}

// Mutations -------------------------------------------------------------------------------

static const char *const tokens[] = {"0",
                                     "-1",
                                     "9223372036854775807",
                                     "99999999999999999999",
                                     "1e308",
                                     "-1e400",
                                     "nan",
                                     "[",
                                     "]",
                                     "{",
                                     "}",
                                     "(",
                                     ")",
                                     "\"",
                                     "'",
                                     "\\",
                                     ",",
                                     ":",
                                     "\n",
                                     "#",
                                     "null",
                                     "true",
                                     "[[[[[[[[[[[[[[[[",
                                     "((((((((((((((((",
                                     "{\"a\":{\"a\":{\"a\":",
                                     "\xff\xfe",
                                     "size ",
                                     "def ",
                                     "fun ",
                                     "map(",
                                     "|>",
                                     "->",
                                     "=",
                                     "//",
                                     "/*",
                                     "..",
                                     " in ",
                                     " and ",
                                     "0x"};

static size_t insert(uint8_t *data, size_t n, size_t at, const void *what, size_t len)
{
    if (n + len > BYTES_MOST)
        return n;
    memmove(data + at + len, data + at, n - at);
    memcpy(data + at, what, len);
    return n + len;
}

// len may be more than there is.
static size_t cut(uint8_t *data, size_t n, size_t at, size_t len)
{
    len = MIN(len, n - at);
    memmove(data + at, data + at + len, n - at - len);
    return n - len;
}

static size_t insert_copy(uint8_t *data, size_t n, size_t at, Rng *rng)
{
    uint8_t part[256];
    if (n == 0)
        return n;
    size_t from = rng_below(rng, n), len = 1 + rng_below(rng, sizeof part);
    len = MIN(len, n - from);
    memcpy(part, data + from, len);
    return insert(data, n, at, part, len);
}

// A run of digits becomes another number.
static size_t change_number(uint8_t *data, size_t n, size_t at, Rng *rng)
{
    while (at < n && (data[at] < '0' || data[at] > '9'))
        at++;
    size_t end = at;
    while (end < n && data[end] >= '0' && data[end] <= '9')
        end++;
    if (end == at)
        return n;
    char text[32];
    int bits = (int)rng_below(rng, 64);
    snprintf(text, sizeof text, "%s%llu", rng_below(rng, 4) ? "" : "-",
             (unsigned long long)(rng_next(rng) >> bits));
    return insert(data, cut(data, n, at, end - at), at, text, strlen(text));
}

static size_t mutate(uint8_t *data, size_t n, const Seeds *seeds, Rng *rng)
{
    size_t at = rng_below(rng, n + 1);
    const char *token = tokens[rng_below(rng, COUNTOF(tokens))];
    const Buf *other = &seeds->file[rng_below(rng, (uint64_t)seeds->n)];
    switch (rng_below(rng, 8)) {
    case 0:
        if (at < n)
            data[at] ^= (uint8_t)(1u << rng_below(rng, 8));
        return n;
    case 1:
        if (at < n)
            data[at] = (uint8_t)rng_below(rng, 256);
        return n;
    case 2: return cut(data, n, at, 1 + rng_below(rng, 16));
    case 3: return insert(data, n, at, token, strlen(token));
    case 4: return insert_copy(data, n, at, rng);
    case 5: return change_number(data, n, at, rng);
    case 6: return cut(data, n, at, rng_below(rng, n + 1));
    default: {
        size_t from = rng_below(rng, other->len + 1), len = rng_below(rng, 400);
        return insert(data, n, at, other->text + from, MIN(len, other->len - from));
    }
    }
}

static void make_input(Shared *shared, const Seeds *seeds, Rng *rng)
{
    const Buf *seed = &seeds->file[rng_below(rng, (uint64_t)seeds->n)];
    size_t n = seed->len;
    memcpy(shared->data, seed->text, n);
    for (uint64_t k = 1 + rng_below(rng, 6); k > 0; k--)
        n = mutate(shared->data, n, seeds, rng);
    shared->size = n;
}

// Runs ------------------------------------------------------------------------------------

static double seconds(void)
{
    const char *text = getenv("FW_FUZZ_SECONDS");
    return text ? atof(text) : 0.6;
}

// In a process of its own: the seeds as they are, then mutations until time is up.
static void fuzz(const ReaderRow *reader, Seeds *seeds, Shared *shared, uint64_t seed)
{
    double end = clock_s() + seconds();
    Rng rng = rng_new(seed);
    for (int i = 0; clock_s() < end || i < seeds->n; i++) {
        if (i < seeds->n) {
            shared->size = seeds->file[i].len;
            memcpy(shared->data, seeds->file[i].text, shared->size);
        } else {
            make_input(shared, seeds, &rng);
        }
        alarm(HANG_S);
        uint8_t *copy = malloc(shared->size + 1); // its end is watched
        memcpy(copy, shared->data, shared->size);
        bool good = reader->read(copy, shared->size);
        free(copy);
        if (i < seeds->n && !good) {
            fprintf(stderr, "%s is refused\n", seeds->name[i]);
            _exit(1);
        }
        shared->tried++;
    }
    reader_folder_remove();
}

static void keep(const ReaderRow *reader, const Shared *shared)
{
    char path[128];
    snprintf(path, sizeof path, "build/fuzz-%s.input", reader->name);
    file_write(path, shared->data, shared->size);
    print_message("the input is in %s, number %llu\n", path,
                  (unsigned long long)shared->tried);
}

static void test_reader(void **state)
{
    const ReaderRow *reader = *state;
    const char *seed = getenv("FW_FUZZ_SEED");
    Seeds *seeds = calloc(1, sizeof *seeds);
    Shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    load_seeds(seeds, reader->seeds);
    assert_true(seeds->n > 0);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        fuzz(reader, seeds, shared, seed ? strtoull(seed, NULL, 10) : 1);
        _exit(42); // a reader that calls exit does not get here
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 42;
    if (!good)
        keep(reader, shared);
    else
        print_message("%s: %llu inputs\n", reader->name, (unsigned long long)shared->tried);
    free_seeds(seeds);
    free(seeds);
    munmap(shared, sizeof *shared);
    assert_true(good);
}

int main(void)
{
    struct CMUnitTest test[READERS];
    for (int i = 0; i < READERS; i++)
        test[i] = (struct CMUnitTest){reader_row[i].name, test_reader, NULL, NULL,
                                      (void *)&reader_row[i]};
    return cmocka_run_group_tests(test, NULL, NULL);
}
