// SPDX-License-Identifier: Apache-2.0
//
// Regression trees over binned features: one is grown at a time, to the residuals given.

#ifndef FW_MODEL_TREES_H
#define FW_MODEL_TREES_H

#include "model/model.h"

enum { TREE_BINS = 64, TREE_DEPTH_MOST = 16 };

// Columns cut at quantiles into at most TREE_BINS bins. A column of one value has one bin.
typedef struct {
    int n, d;
    uint8_t *bin;      // d by n: a column after the other
    double *threshold; // d by TREE_BINS: bin b holds values from threshold b - 1 on
    int *bins;         // d
} Binned;

Binned binned_new(const Matrix *x);
void binned_free(Binned *binned);

// An inner node sends a row to `left` if its feature is below the threshold, else to
// `left` + 1; a leaf has `left` 0. Children come after their parent. bin: the one that
// begins at the threshold, of the rows that the tree was grown on; not in files.
typedef struct {
    int feature, left, bin;
    double threshold, value;
} TreeNode;

// Several trees in one array. Owner of both: the heap.
typedef struct {
    TreeNode *node;
    int nnode, capacity;
    int *root, nroot;
} Trees;

typedef struct {
    int depth;      // at most TREE_DEPTH_MOST
    int least_rows; // of a leaf
    double ridge;   // rows of residual 0 that each leaf counts besides its own
    double rate;    // what the values of leaves are multiplied by
    int tries;      // features tried at a node, drawn from those given; 0: all of them
    Rng *rng;       // for tries
} TreeOptions;

// Grows one more tree on the rows given (reordered) and the features given; value: what it
// says of each row, in their new order.
void trees_grow(Trees *trees, const Binned *binned, const double *residual, int *row, int n,
                const int *feature, int nfeature, const TreeOptions *options,
                double *value);
// The value of one tree at a row of numbers, and at a row that was binned.
double tree_value(const Trees *trees, int tree, const double *at);
double tree_value_binned(const Trees *trees, int tree, const Binned *binned, int row);
void trees_free(Trees *trees);

json_t *trees_save(const Trees *trees);
// False if it is not trees over d features.
bool trees_load(Trees *trees, const json_t *json, int d);

// A forest that tells classes apart.

typedef struct {
    int n;
    void **forest; // n
} Classes;

// class[i] in [0, nclass) is that of row i. Owner: the caller, classes_free.
Classes *classes_fit(const Matrix *x, const int *class, int nclass, uint64_t seed);
// The likeliest class of a row of d features; share: nclass votes, each in [0, 1].
int classes_predict(const Classes *classes, const double *at, int d, double *share);
void classes_free(Classes *classes); // accepts NULL

#endif
