// SPDX-License-Identifier: Apache-2.0
//
// base: what every module stands on: arenas, growable text, vectors, hash maps,
// random numbers, and diagnostics with source spans.
//
// It knows nothing of programs or kernels. Memory belongs to arenas named by
// lifetime (context, program, candidate, scratch); nothing in an arena is freed
// alone. Running out of memory ends the process with a message.

#ifndef FW_BASE_H
#define FW_BASE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__GNUC__)
#define FW_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define FW_NORETURN     __attribute__((noreturn))
#else
#define FW_PRINTF(f, a)
#define FW_NORETURN
#endif

#define COUNTOF(a) ((int)(sizeof(a) / sizeof((a)[0])))
// These evaluate the chosen side twice: no side may call its own function.
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

// Division that rounds down, and what is left of it; b is not 0.
static inline int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t floor_mod(int64_t a, int64_t b)
{
    return a - floor_div(a, b) * b;
}

// Division that rounds up, of numbers that are not negative.
static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// bug.c: we are wrong ---------------------------------------------------------

// Ends the process: an invariant of ours is broken, never the user's fault.
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
FW_NORETURN void bug_at(const char *file, int line, const char *format, ...)
    FW_PRINTF(3, 4);

// arena.c: memory by lifetime ---------------------------------------------------

typedef struct Arena Arena;
typedef struct SharedBlock SharedBlock;

typedef struct {
    void *block;
    size_t used;
    SharedBlock *shared;
} ArenaMark;

// Marks of locals, which give back what they hold at the end of their block, however it is
// left. Of JSON: json_auto_t.
#define AutoArena __attribute__((cleanup(arena_free_local))) Arena
#define AutoBuf   __attribute__((cleanup(buf_release))) Buf
#define AUTO_FREE __attribute__((cleanup(free_local)))
void arena_free_local(Arena **arena);
void free_local(void *pointer); // pointer: to the local, of any type

Arena *arena_new(void);
void arena_free(Arena *arena); // accepts NULL

// Zeroed storage, aligned for any type; owner: the arena.
void *arena_alloc(Arena *arena, size_t size);
void *arena_raw(Arena *arena, size_t size); // not zeroed
// The same for an array that workers are to read or write: shared.c, if it is large.
void *arena_shared(Arena *arena, size_t size);
void *arena_copy(Arena *arena, const void *from, size_t size);
char *arena_strdup(Arena *arena, const char *text);
char *arena_strndup(Arena *arena, const char *text, size_t len);
char *arena_printf(Arena *arena, const char *format, ...) FW_PRINTF(2, 3);
char *arena_vprintf(Arena *arena, const char *format, va_list args) FW_PRINTF(2, 0);

// arena_reset gives back everything allocated after the mark.
ArenaMark arena_mark(const Arena *arena);
void arena_reset(Arena *arena, ArenaMark mark);

// shared.c: an arena's arrays that other processes can map; lists of them, from the last to
// the first. NULL: the system gives none.
SharedBlock *shared_new(size_t bytes, SharedBlock *below);
SharedBlock *shared_free(SharedBlock *shared); // the one below it
void *shared_at(const SharedBlock *shared);
// The path by which another process of this user opens the array that is there as a file,
// to read or to write; NULL: it cannot, or no shared array begins there. Owner: arena.
char *shared_path(const void *at, Arena *arena);

#define NEW(arena, T)              ((T *)arena_alloc((arena), sizeof(T)))
#define NEW_ARRAY(arena, T, n)     ((T *)arena_alloc((arena), sizeof(T) * (size_t)(n)))
#define NEW_RAW(arena, T, n)       ((T *)arena_raw((arena), sizeof(T) * (size_t)(n)))
#define COPY_ARRAY(arena, from, n) arena_copy((arena), (from), sizeof *(from) * (size_t)(n))
// A new object with initial values: NEW_OF(arena, Var, .name = name, .type = type).
#define NEW_OF(arena, T, ...) ((T *)arena_copy((arena), &(T){__VA_ARGS__}, sizeof(T)))

// Heap allocation that cannot return NULL: out_of_memory ends the process.
// size: what was asked for; 0: not known.
FW_NORETURN void out_of_memory(size_t size);
void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *text);

// Typed growable arrays in an arena: `VEC(int) v = {0}; VEC_PUSH(arena, &v, 3);`, and
// `VEC_PUSH(arena, &lives, (Life){.first = 3, .last = 5})`. Without
// one (NULL) they are in memory of their own; owner: who has v, free(v.at).
#define VEC(T)                                                                             \
    struct {                                                                               \
        T *at;                                                                             \
        int len, cap;                                                                      \
    }
#define VEC_PUSH(arena, v, ...)                                                            \
    ((v)->len == (v)->cap ? (void)((v)->at = vec_grow((arena), (v)->at, sizeof *(v)->at,   \
                                                      (v)->len, &(v)->cap))                \
                          : (void)0,                                                       \
     (v)->at[(v)->len++] = (__VA_ARGS__))
void *vec_grow(Arena *arena, void *at, size_t item, int len, int *cap);

// Loops over an array or a VEC: x is a copy of each element in turn, or with _REF a pointer
// to it. A body that pushes makes the loop longer, and pointers into a VEC invalid.
#define ARRAY_EACH_IS(T, x, value, n)                                                      \
    for (int x##_i = 0, x##_on = 1; x##_on && x##_i < (n); x##_i++)                        \
        for (T x = (x##_on = 0, (value)); !x##_on; x##_on = 1)
#define ARRAY_EACH(T, x, at, n)     ARRAY_EACH_IS(T, x, (at)[x##_i], n)
#define ARRAY_EACH_REF(T, x, at, n) ARRAY_EACH_IS(T, x, &(at)[x##_i], n)
#define VEC_EACH(T, x, v)           ARRAY_EACH(T, x, (v)->at, (v)->len)
#define VEC_EACH_REF(T, x, v)       ARRAY_EACH_REF(T, x, (v)->at, (v)->len)

// buf.c: growable text -----------------------------------------------------------

typedef struct {
    char *text; // always NUL-terminated
    size_t len, cap;
} Buf;

Buf buf_new(void); // empty; owner: the caller, buf_release or buf_keep
void buf_release(Buf *buf);
void buf_clear(Buf *buf);
void buf_putc(Buf *buf, char c);
void buf_puts(Buf *buf, const char *text);
void buf_write(Buf *buf, const void *bytes, size_t len);
void buf_printf(Buf *buf, const char *format, ...) FW_PRINTF(2, 3);
void buf_vprintf(Buf *buf, const char *format, va_list args) FW_PRINTF(2, 0);
char *buf_keep(Buf *buf, Arena *arena); // its text; owner: the arena; buf is released

// find.c: texts in lists -----------------------------------------------------------

// The first of n items whose member, or that itself, is that text; -1: none is.
#define FIND(at, n, member, text)                                                          \
    find_text((n) > 0 ? &(at)[0].member : NULL, sizeof *(at), (n), (text))
#define FIND_TEXT(at, n, text) find_text((at), sizeof *(at), (n), (text))
int find_text(const char *const *first, size_t step, int n, const char *text);

// text.c: text of others ---------------------------------------------------------

// The bytes of the next character of UTF-8 (len > 0). *plain: it may go to a terminal as it
// is; not so are bytes that are no UTF-8, control characters but tab and the end of a line,
// and what turns the direction of writing.
size_t text_step(const char *text, size_t len, bool *plain);
// Appends text of others for people to read: a `?` stands for each character that is not
// plain.
void buf_shown(Buf *buf, const char *text, size_t len);

// thread.c -----------------------------------------------------------------------

// A thread with a stack for deep expressions, whatever `ulimit -s` says; false: there is
// none.
bool thread_start(pthread_t *thread, void *(*work)(void *), void *user);
// Threads that libraries make later have the stack of a usual one at least.
void thread_defaults(void);
// Calls work where the stack is deep enough for any expression that the parser takes: here,
// or in a thread of that kind, for which it waits.
void deep_call(void (*work)(void *), void *user);
// Calls work for each task from 0 to n - 1, in as many threads as there are processors,
// this one among them; returns when all are done. thread: which of them, less than
// THREADS_MOST.
enum { THREADS_MOST = 16 };
typedef void TaskWork(void *user, int thread, int task);
void tasks_call(int n, TaskWork *work, void *user);
// Calls work for parts of 0 to n, which begin at multiples of grain, in as many threads as
// there are processors if n is large; returns when all are done.
typedef void PartWork(void *user, int64_t from, int64_t to);
void parts_call(int64_t n, int64_t grain, PartWork *work, void *user);

// file.c: whole files ------------------------------------------------------------

// The most bytes that are read of a text that people write, and of data.
enum { FILE_TEXT_MOST = 1 << 24, FILE_DATA_MOST = 1 << 28 };
// Reads a whole file into buf (appending), unpacked if it is gzipped. False if it cannot be
// read, holds more than `most` bytes, or is a pipe that nobody writes to: then buf holds
// why, and nothing else.
bool file_read(const char *path, size_t most, Buf *buf);
// Opens a file or a pipe for reading; -1 with why (appended).
int file_open(const char *path, Buf *why);
// Writes a temporary beside path, flushes it, and renames it over path, so that a
// full disk or a crash leaves the old file; a pipe or a device is written to as it is.
// False with errno set on failure.
bool file_write(const char *path, const void *bytes, size_t len);
// The same, gzipped if the path ends with .gz.
bool file_pack(const char *path, const void *bytes, size_t len);
bool file_put(int fd, const char *bytes, size_t len); // all of them, into an open file
// All of them by a function that moves some, as write and recv do.
typedef ssize_t FileMove(int fd, char *bytes, size_t len);
bool file_move(int fd, char *bytes, size_t len, FileMove *move);
// Makes a directory and its parents; false with errno set on failure.
bool file_mkdirs(const char *path);
// As file_mkdirs, for this user alone. *was_open: it was there, and others could write to
// it until now. One of another user is refused (EPERM).
bool file_mkdir_private(const char *path, bool *was_open);
// Removes a folder and all in it; what cannot be removed stays.
void remove_tree(const char *path);
char *path_in(const char *folder, const char *name); // FOLDER/NAME; owner: caller, free
// Whether a path ends with `ending` and is longer than it.
bool path_ends(const char *path, const char *ending);
// What comes with the program at `program`: installed, or `beside` where it was built, from
// there. NULL: not found.
const char *file_shared(const char *program, const char *name, const char *beside,
                        Arena *arena);
// Appends the folder `forewarp` in $variable, or in a folder of the user's home (".cache").
void user_folder(Buf *out, const char *variable, const char *in_home);

// temp.c: temporary folders --------------------------------------------------------

// A folder of this process, which is removed with all in it when it is closed. If the
// process is killed, the next that opens one of this prefix there removes it.
typedef struct {
    char *path;
    int lock; // held while the process lives
} TempFolder;

// PARENT/PREFIX-XXXXXX, for this user alone; false with errno set on failure.
bool temp_open(TempFolder *folder, const char *parent, const char *prefix);
void temp_close(TempFolder *folder);
const char *temp_parent(void); // $TMPDIR or /tmp

// map.c: strings to pointers -------------------------------------------------------

// All 0 but for the arena: empty.
typedef struct {
    struct MapSlot *slot;
    int len, cap;
    Arena *arena;
} Map;

void *map_get(const Map *map, const char *key); // NULL if absent
void map_put(Map *map, const char *key, void *value);

uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed);
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 29);
}
void hash_hex(uint64_t hash, char out[17]);

// rng.c: seeded, the same on every machine (xoshiro256**, Blackman and Vigna 2018) ---

typedef struct {
    uint64_t s[4];
} Rng;

Rng rng_new(uint64_t seed);
uint64_t rng_next(Rng *rng);
uint64_t rng_below(Rng *rng, uint64_t n);   // uniform in [0, n), unbiased; n > 0
double rng_double(Rng *rng);                // uniform in [0, 1)
double rng_normal(Rng *rng);                // mean 0, variance 1
void rng_shuffle(Rng *rng, int *at, int n); // all orders are equally likely
// The first m of n things of this size become a sample of them in random order; m <= n.
void rng_sample(Rng *rng, void *at, size_t size, int n, int m);

// sort.c ---------------------------------------------------------------------------

int compare_doubles(const void *a, const void *b); // for qsort and bsearch
void sort_doubles(double *at, int n);              // rising

// A value and the number of what it is of.
typedef struct {
    double value;
    int number;
} Numbered;
void sort_numbered(Numbered *at, int n); // rising, equal values by their numbers

// Is a pointer one of n?
bool list_has(const void *list, int n, const void *pointer);

// clock.c --------------------------------------------------------------------------

int64_t clock_ns(void);           // monotonic
double clock_s(void);             // monotonic
int64_t clock_processor_ns(void); // that this process has used, all threads together

// The processors that this process may use (taskset and the like), at least 1.
int processors(void);

// diag.c: what we tell the user is wrong -----------------------------------------------

typedef struct {
    const char *name; // as shown: a path, or "<text>"
    const char *text; // NUL-terminated
    size_t len;
} Source;

// A file of at most FILE_TEXT_MOST bytes as a text that diagnostics point into; else NULL,
// and *why. Owner: arena; path is kept as its name.
Source *source_read(const char *path, Arena *arena, const char **why);

typedef struct {
    const Source *source; // NULL: no place in a text
    uint32_t start, end;  // byte offsets
} Span;

typedef enum {
    DIAG_NOTE,
    DIAG_WARNING,
    DIAG_ERROR, // the user's text or command is wrong: exit status 2
    DIAG_WORLD, // a device, a file or the store failed: exit status 1
} DiagKind;

typedef struct {
    DiagKind kind;
    const char *code; // "T003", or "" where there is none
    Span span;
    const char *message;
} Diag;

// The first 20 diagnostics are kept; later ones, and those that say the same of the same
// place of a text, are only counted. All 0 but for the arena: none.
typedef struct {
    Arena *arena;
    VEC(Diag) list;
    int errors; // DIAG_ERROR and DIAG_WORLD together
    int world;  // DIAG_WORLD alone
} Diags;

// Each returns false, so that a failing function can end with `return diag_error(...)`.
bool diag_error(Diags *diags, Span span, const char *code, const char *format, ...)
    FW_PRINTF(4, 5);
bool diag_verror(Diags *diags, Span span, const char *code, const char *format,
                 va_list args) FW_PRINTF(4, 0);
// An error too, of a function that returns a pointer: NULL.
void *diag_null(Diags *diags, Span span, const char *code, const char *format, ...)
    FW_PRINTF(4, 5);
bool diag_world(Diags *diags, const char *code, const char *format, ...) FW_PRINTF(3, 4);
void diag_warning(Diags *diags, Span span, const char *code, const char *format, ...)
    FW_PRINTF(4, 5);
// Adds what others say. Their places in a text that was read again are places of this one;
// those elsewhere, or with NULL all, are left out.
void diags_add(Diags *diags, const Diags *others, const Source *text);
// `name:line:col: error T003: message`, then the source line and a caret.
void diags_print(Buf *out, const Diags *diags);
void diags_paint(Buf *out, const Diags *diags);     // with a terminal's colours
int diags_exit_status(const Diags *diags);          // 0, 1 or 2
void span_line_col(Span span, int *line, int *col); // both from 1
Span span_join(Span a, Span b);
extern const Span span_none;

// guess.c: the nearest of the names offered, for "did you mean" -----------------------
typedef struct {
    const char *name;
    char best[32];
    int distance;
} Guess;
Guess guess_new(const char *name);
void guess_offer(Guess *guess, const char *candidate);
// ``; did you mean `x`?``, or nothing when no name offered is near.
void guess_print(Buf *out, const Guess *guess);
// The same among n known names; all of them, where none is near.
void guess_print_known(Buf *out, const char *name, const char *const *known, int n);

// language.c: languages of kernels, by the names that they have everywhere.
typedef enum {
#define LANGUAGE(id, name) LANGUAGE_##id,
#include "base/languages.def"
#undef LANGUAGE
    LANGUAGES
} Language;
extern const char *const language_name[LANGUAGES];
bool language_is(const char *name, Language language);

#endif
