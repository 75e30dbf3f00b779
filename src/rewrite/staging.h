// SPDX-License-Identifier: Apache-2.0
//
// What the rules share that copy operands of products to local memory (product.c).

#ifndef FW_REWRITE_STAGING_H
#define FW_REWRITE_STAGING_H

#include "rewrite/internal.h"

enum { OPERANDS_MAX = 8, STAGED_LANES = 4 };

// What a work-group reads together: scalars that are made of k and one row, an element of a
// parameter of its mapWrg.
typedef struct {
    Rewrite *rw;
    const Param *k;
    int64_t step; // elements of each row that are copied at once
    int64_t items[2];
    Param *row;               // stands for the row in what is read
    VEC(const Param *) bound; // what differs between items
    struct {
        const Param *array;
        Expr *from; // of k and the row
        Param *tile;
        bool turned; // neighbours in memory are the same element of neighbouring rows
        bool odd;    // they are copied one by one
        int64_t rows;
    } operand[OPERANDS_MAX];
    int n;
    bool ok;
} Staging;

// The items of the work-group, if all of them run what is at this place.
bool find_items(Staging *s);
// What a parameter of a mapWrg around runs over; NULL if it is none.
const Expr *group_source(const Rewrite *rw, const Param *param);
// neighbours.c: are neighbours in memory, as far as one can see, the same element of
// neighbouring rows of the source? So they are of a transposed array, and of windows.
// value: what is made of a row and k. odd: these begin where no vector may.
bool is_turned(const Rewrite *rw, const Expr *source, const Expr *value, const Param *row,
               const Param *k, bool *odd);
// As many neighbours, at most so many, as divide the side and leave all items work; 0: no
// number does.
int64_t lanes_of(const Staging *s, int64_t count, int64_t side, int64_t most);
// All items together copy an array, neighbours by neighbours.
Expr *copied_together(Staging *s, Expr *flat, int64_t lanes);
// Element number step * part + within.
Expr *number_of(Rewrite *rw, Param *part, int64_t step, Expr *within);

#endif
