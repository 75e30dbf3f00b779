// SPDX-License-Identifier: Apache-2.0
//
// How stencils load their data (paper 001, sections 4.7 and 6.1): a table of what a search
// came to with each way, from which a forest picks the way for a stencil that is not in it.
//
//   # device: NVIDIA H200
//   stencil,points,dims,density,unique,adds,muls,fitted,global,vector,local,image
//
// The last four are times in nanoseconds; nothing: it was not run, or failed. It is
// fitted to the rows that say so (1); all are judged. data/stencils/DEVICE/loading.csv is
// written by bench/papers/stencils.py.

#ifndef FW_EVALUATE_LOADING_H
#define FW_EVALUATE_LOADING_H

#include "evaluate/shape.h"
#include "model/model.h"

// Elements of global memory, vectors of it, copies in local memory, images.
typedef enum { LOAD_GLOBAL, LOAD_VECTOR, LOAD_LOCAL, LOAD_IMAGE, LOADS } Loading;
extern const char *const loading_name[LOADS];

typedef struct {
    const char *stencil;
    StencilShape shape;
    int adds, muls; // for each element
    bool fitted;
    double ns[LOADS]; // INFINITY: none
    Loading best;
    int picked; // a Loading, by loadings_forest; -1: it had nothing to fit to
} LoadingRow;

typedef struct {
    const char *device;
    VEC(LoadingRow) rows;
    Arena *arena;
} Loadings;

// NULL with a diagnostic; owner: arena.
Loadings *loadings_read(const char *path, Arena *arena, Diags *diags);
// What a forest of classes fitted to the table picks for a stencil; -1: nothing is fitted.
int loadings_pick(const Loadings *loadings, const StencilShape *shape, uint64_t seed);
// Picks for each row, by that forest fitted to all other stencils.
void loadings_forest(Loadings *loadings, uint64_t seed);

#endif
