// SPDX-License-Identifier: Apache-2.0
//
// Counting the integer points of a parametric set: the result is a sum of guarded
// polynomials in the parameters and in floors of them, a piecewise quasi-polynomial.
//
//   source  paper 003, section 3.2, which takes barvinok; here symbolic summation
//           (Faulhaber) of one variable after the other, with isl for emptiness,
//           redundancy and what a context implies
//
// Everything lives in one flat space of columns: parameters, then the variables that are
// counted (live), then floors of affine forms of parameters. Numbers are 128 bits wide and
// checked; what does not fit, or does not end within its quota, is refused with a reason,
// never counted wrongly.

#ifndef FW_COST_COUNTS_SUM_H
#define FW_COST_COUNTS_SUM_H

#include "base/base.h"

__extension__ typedef __int128 Wide;

enum {
    SUM_PARAMS = 16,
    SUM_LIVE = 16, // first live column
    SUM_FLOOR = 40,
    SUM_COLS = 112
};

// coef[0..SUM_COLS) of the columns, and a constant at coef[SUM_COLS].
typedef struct {
    int64_t coef[SUM_COLS + 1];
} SumRow;
typedef VEC(SumRow) SumRows;

// Every eq is 0, every in at least 0.
typedef struct {
    SumRows eq, in;
} System;

typedef struct {
    Wide num, den; // den > 0, no common factor
} Ratio;

typedef struct {
    Ratio coef;
    uint8_t power[SUM_COLS];
} Term;
typedef VEC(Term) CountPoly;

// The polynomial where the guard holds, else 0. Neither mentions a live column.
typedef struct {
    System guard;
    CountPoly poly;
} Piece;
typedef VEC(Piece) Pieces;

typedef struct {
    SumRow row;
    int64_t den;
} FloorRow;

// A system counted before.
typedef struct {
    System system;
    uint32_t alive;
    Pieces pieces;
    const char *refused;
} Counted;

typedef struct {
    Arena *arena;
    struct isl_ctx *isl;
    int nparam, nlive;
    uint32_t alive;  // live columns in use while a system is read: bit i is SUM_LIVE + i
    SumRows context; // true of the parameters, taken as known
    VEC(FloorRow) floors; // column SUM_FLOOR + i is floor(row / den)
    VEC(Counted) counted; // parts of systems that share no variable with the rest
    int steps;            // taken, all systems together
    const char *refused;  // why the last system could not be counted, or NULL
} Sum;

// GMP, which isl counts with, takes its memory by xmalloc in this process; left to itself
// it aborts where there is none.
void sum_memory(void);
void sum_init(Sum *sum, Arena *arena);
void sum_release(Sum *sum);                 // gives isl's memory back
bool sum_refuse(Sum *sum, const char *why); // false
int sum_live(Sum *sum);                     // a new live column, or -1 when refused
// out := floor(row / den), where live columns have multiples of den. False when refused.
bool sum_floor(Sum *sum, const SumRow *row, int64_t den, SumRow *out);
void system_add(Sum *sum, System *system, const SumRow *row); // row >= 0

// Counts the points of the live columns in sum->alive; pieces are appended. False, with
// sum->refused, if it cannot be done. The live columns are free again afterwards.
bool sum_count(Sum *sum, const System *system, Pieces *pieces);

// counts_poly.c -----------------------------------------------------------------------

bool row_scale_add(SumRow *to, const SumRow *from, int64_t factor); // false on overflow
Ratio ratio_new(Wide num, Wide den);
bool ratio_add(Ratio *a, Ratio b);
bool ratio_mul(Ratio *a, Ratio b);
bool qpoly_add(Arena *arena, CountPoly *to, const CountPoly *from, Ratio factor);
bool qpoly_mul(Arena *arena, CountPoly *out, const CountPoly *a, const CountPoly *b);
bool qpoly_row(Arena *arena, CountPoly *out,
               const SumRow *row); // the affine form as a polynomial
void qpoly_constant(Arena *arena, CountPoly *out, Ratio value);
// The terms with column to that power, without it.
void qpoly_part(Arena *arena, CountPoly *out, const CountPoly *from, int column, int power);
int qpoly_degree(const CountPoly *poly, int column);
bool qpoly_substitute(Arena *arena, CountPoly *out, const CountPoly *from, int column,
                      const CountPoly *by);
// sum over i from 0 to x of i^k, at a polynomial x.
bool qpoly_faulhaber(Arena *arena, CountPoly *out, int k, const CountPoly *x);

#endif
