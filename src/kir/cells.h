// SPDX-License-Identifier: Apache-2.0
//
// cells: which cells of arrays items load and store, and whether those of two meet.

#ifndef FW_KIR_CELLS_H
#define FW_KIR_CELLS_H

#include "kir/kir.h"

// A row-major array in a buffer.
typedef struct {
    const Buffer *buffer;
    const Arith *offset;
    const Type *type;
} CellArray;

enum { CELL_AXES_MAX = 6, NO_PART = -1 };

// One load or store, by a part of what is looked at. at: which one it is.
typedef struct {
    const CellArray *array;
    const Arith *index;
    const Side *side;
    const Kernel *kernel;
    const Stm *const *loops;
    int nloop, part, at;
} CellUse;
typedef VEC(CellUse) CellUses;

// A statement that belongs to a part, with all in it.
typedef struct {
    const Stm *stm;
    int part;
} PartStm;

// Whose variables: those that are there, or those of two items.
typedef enum { LOADS, STORES, ANY, NOBODY } CellItem;

typedef struct {
    ArithCtx *ctx;
    Arena *arena;
    const Kernel *kernel; // at hand
    bool in_rows;         // whose items along y have arrays of their own
    const Arith *number;  // of a step
    VEC(CellArray *) arrays;
    VEC(PartStm) parts;
    CellUses loads, stores;
    VEC(const Stm *) loops;     // around what is looked at
    VEC(const Arith *) own;     // variables that differ between items
    VEC(const Arith *) of[2];   // the same of one that loads and of one that stores
    VEC(const Arith *) facts;   // what is known to be at least 0
    VEC(const Arith *) unequal; // and what is known not to be 0
    int at, part, known;        // known: facts before
    bool unknown;               // there is something else than loads and stores
    int kernels;
    CellItem behind; // who does an earlier step
    int steps;       // by so many
} Cells;

const CellArray *cells_array(const Cells *k, const Buffer *buffer); // NULL: none
// Scalars that a part of a buffer takes: its rows may be longer than what is in them.
const Arith *mem_count(ArithCtx *ctx, const Buffer *buffer, const Type *type);
// Adds what a block does; after all blocks: makes two items of those that there are.
void cells_look(Cells *k, const Block *block);
void cells_items(Cells *k);
// Takes as known what an access says of its item, until that is forgotten.
void cells_assume(Cells *k, const CellUse *use, CellItem item);
void cells_forget(Cells *k);

// Where the cells of a load and of a store are the same: that cannot be, or it is one item
// that loads and then stores, or one may load what another stores.
typedef enum { CELLS_APART, CELLS_OWN, CELLS_MEET } Meeting;
Meeting cells_meeting(Cells *k, const CellUse *load, const CellUse *store);

#endif
