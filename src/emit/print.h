// SPDX-License-Identifier: Apache-2.0
//
// Shared by the files of emit: a target, the state of printing, and the printers of the
// parts of a statement.

#ifndef FW_EMIT_PRINT_H
#define FW_EMIT_PRINT_H

#include "emit/emit.h"

// What a target's vectors are: part of the language, a compiler's extension (arithmetic
// only), or structs of the prelude (infix arithmetic on whole ones, aligned in memory).
typedef enum { VECTORS_BUILTIN, VECTORS_EXTENSION, VECTORS_STRUCT } VectorForm;

typedef struct Printer Printer;

// Types of vectors: a bit for each width, and one for each of those that have arithmetic.
typedef struct {
    unsigned char of[SCALARS];
} VectorSet;

// What the kernels and functions of a program use of what may stand before them.
typedef struct {
    VectorSet vectors;
    const char *text; // theirs; NULL: not known yet, so everything is needed
} Uses;

struct Target {
    const char *name, *computes, *extension;
    bool threads, overloaded, c_scalars, doubts;
    VectorForm vectors;
    void (*put_head)(Buf *out, const Program *program, const Uses *uses);
    void (*put_start)(Printer *p, const Kernel *kernel);
    const char *function, *global, *local, *byte, *restricted, *barrier, *shuffle;
    const char *warp_barrier;
    const char *follow, *callee;
    const char *local_pointer, *align, *align_close;
    int align_least;
    int64_t declared_bytes;
    const char *id[4], *dim, *id_close, *group_size;
    const char *before, *open, *close, *lane, *lanes, *lane_close, *unaligned;
    const char *math[MATHS], *largest, *unroll, *rolled, *simd, *regroups;
    bool exact, resident, whole_local;
    int warp, units, unroll_most;
    const char *image, *image_read[2], *image_close;
    const char
        *over; // divides a double by a constant of which it knows the inverse, or NULL
};

// How tightly an expression binds, as in C.
typedef enum {
    PREC_ANY,
    PREC_SELECT,
    PREC_OR,
    PREC_AND,
    PREC_EQUAL,
    PREC_ORDER,
    PREC_SUM,
    PREC_PRODUCT,
    PREC_UNARY,
    PREC_POSTFIX,
} Prec;

struct Printer {
    Buf *out;
    Buf line; // the statement being put together
    int indent;
    const Target *target;
    const Program *program;
    ArithCtx *ctx;
    const Kernel *kernel;        // NULL in the prelude
    int lane;                    // print this component of vectors; -1: vectors whole
    Arena *arena;                // scratch, for the lists below
    VEC(const Arith *) ids;      // thread variables declared in the open blocks
    VEC(const Stm *) ints;       // ST_INT statements so far
    VEC(const Arith *) computed; // and those of values
    VEC(const Buffer *) arrays;  // local buffers declared in the open blocks
    bool parallel;               // inside an OpenMP loop
    const Stm *joined;           // the inner one of two that are shared out as one
    bool follows;                // launches of the unit follow each other
    bool wide_sums;              // as in DeviceInfo
    bool decides;                // the unit makes decisions that may be in doubt
};

// prelude.c
void put_prelude(Buf *out, const Target *target, const Program *program, const Uses *uses);

// head.c
// Adds a type, if it is one of vectors, to a set.
void vectors_add(VectorSet *set, const Type *type, bool arithmetic);
// All that kernels of any point of a program may use.
void vectors_of_program(VectorSet *set, const Program *program);
bool vector_arithmetic(Scalar scalar);
// A text; holes: the characters of it that others stand for, and those.
void put_with(Buf *out, const char *text, const char *holes, const char *const *with);
bool program_uses(const Program *program, Scalar scalar);
void put_scalar_helpers(Buf *out, const Target *target, const Program *program,
                        const Uses *uses);
// What stands before everything else.
void put_opencl_head(Buf *out, const Program *program, const Uses *uses);
void put_cuda_head(Buf *out, const Program *program, const Uses *uses);
void put_hip_head(Buf *out, const Program *program, const Uses *uses);
void put_c_head(Buf *out, const Program *program, const Uses *uses);
void put_doubt_head(Buf *out, const Program *program, const Uses *uses);

// update.c: a store that is atomic, and what the target lacks for such stores.
void put_update(Printer *p, const Stm *stm);
void put_updates(Buf *out, const Target *target, const Program *program, const Uses *uses);
// How groups tell each other numbers.
void put_words(Buf *out, const Target *target, const Program *program, const Uses *uses);

// print.c
void printer_init(Printer *p, Buf *out, const Target *target, const Program *program);
void printer_release(Printer *p);
// Writes the statement in p->line, indented and wrapped, and empties it.
void end_line(Printer *p);
void put_line(Printer *p, const char *format, ...) FW_PRINTF(2, 3); // a whole statement
void put(Printer *p, const char *format, ...) FW_PRINTF(2, 3);
// The same of text with holes: %s text, %d an int, %l an int64_t, %n a name, %t a type, %v
// a value and %i an index that nothing binds to, %e an element, of a buffer and an index.
// Ends the line where the text ends one.
void put_form(Printer *p, const char *form, ...);
void put_name(Printer *p, const char *name);          // of a variable or buffer
void put_function_name(Printer *p, const char *name); // of a function of the program
void put_type(Printer *p, const Type *type);
// Whether operations have the names that devices know, not those of C.
bool has_builtins(const Printer *p);
const char *scalar_text(const Printer *p, Scalar scalar); // the target's type

// index.c
void put_index(Printer *p, const Arith *a, Prec prec);
#define LEAST_INT "(-2147483647 - 1)" // 2147483648 would be a long
// The conjunction of cond[i] >= 0.
void put_conds(Printer *p, const Arith *const *cond, int n, Prec prec);
const char *index_type(const Printer *p); // int or long

// expr.c
// Is it a signed result that wraps around where it is too large?
bool value_wraps(const Printer *p, const KExpr *e);
void put_value(Printer *p, const KExpr *value, Prec prec);
void put_element(Printer *p, const Buffer *buffer, const Arith *index); // `a[i]`
bool by_value(const Printer *p, const Buffer *buffer); // then its name is the element
// A vector in memory, `*(global float4 *)&a[i]`; false, with nothing printed, if the target
// needs a function for it because it may not be aligned.
bool put_vector_element(Printer *p, const Buffer *buffer, const Arith *index,
                        const Type *type, bool is_const);

// stm.c
void put_opencl_start(Printer *p,
                      const Kernel *kernel); // what stands before a kernel's name
void put_cuda_start(Printer *p, const Kernel *kernel);
void put_c_start(Printer *p, const Kernel *kernel);
void put_kernel(Printer *p, const Kernel *kernel);

#endif
