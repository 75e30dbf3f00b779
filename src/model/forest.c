// SPDX-License-Identifier: Apache-2.0
//
// A random forest (Breiman 2001): each of 100 trees is grown deep on a bootstrap sample of
// the rows and tries a third of the features at a node; the prediction is their mean.
//
// For classes (paper 001, section 6.1, where the class is the data-loading technique) there
// is one forest a class that predicts 1 for its rows and 0 for others: that is the share of
// trees that vote for it, and splits so found are those of Gini's impurity for the class.
#include "model/trees.h"

#include <stdlib.h>
#include <string.h>

enum { TREES = 100, ROWS_MOST = 20000 };

typedef struct {
    Trees trees;
} Forest;

static int draw_rows(int *row, int n, Rng *rng)
{
    int most = MIN(n, ROWS_MOST);
    for (int i = 0; i < most; i++)
        row[i] = (int)rng_below(rng, (uint64_t)n);
    return most;
}

static void *fit(const Matrix *x, const double *y, uint64_t seed)
{
    Rng rng = rng_new(seed);
    Forest *forest = xcalloc(1, sizeof *forest);
    Binned binned = binned_new(x);
    AUTO_FREE int *row = xcalloc((size_t)x->n + 1, sizeof *row);
    AUTO_FREE int *feature = xcalloc((size_t)x->d + 1, sizeof *feature);
    AUTO_FREE double *value = xcalloc((size_t)x->n + 1, sizeof *value);
    for (int c = 0; c < x->d; c++)
        feature[c] = c;
    TreeOptions options = {.depth = TREE_DEPTH_MOST,
                           .least_rows = 1,
                           .rate = 1,
                           .tries = MAX((x->d + 2) / 3, 1),
                           .rng = &rng};
    for (int t = 0; t < TREES; t++) {
        int n = draw_rows(row, x->n, &rng);
        trees_grow(&forest->trees, &binned, y, row, n, feature, x->d, &options, value);
    }
    binned_free(&binned);
    return forest;
}

static void predict(const void *p, const Matrix *x, double *y)
{
    const Forest *forest = p;
    for (int i = 0; i < x->n; i++) {
        y[i] = 0;
        for (int t = 0; t < forest->trees.nroot; t++)
            y[i] += tree_value(&forest->trees, t, matrix_row(x, i)) / forest->trees.nroot;
    }
}

static void drop(void *p)
{
    AUTO_FREE Forest *forest = p;
    trees_free(&forest->trees);
}

static json_t *save(const void *p)
{
    const Forest *forest = p;
    return json_pack("{s:o}", "trees", trees_save(&forest->trees));
}

static void *load(const json_t *json, int d)
{
    Forest *forest = xcalloc(1, sizeof *forest);
    if (trees_load(&forest->trees, json_object_get(json, "trees"), d))
        return forest;
    drop(forest);
    return NULL;
}

const ModelKind model_forest = {
    .name = "forest",
    .doc = "mean of 100 regression trees, each of a part of the rows and features",
    .columns = COLUMNS_ALL,
    .fit = fit,
    .predict = predict,
    .save = save,
    .load = load,
    .free = drop,
};

// Classes -----------------------------------------------------------------------------

Classes *classes_fit(const Matrix *x, const int *class, int nclass, uint64_t seed)
{
    Classes *classes = xcalloc(1, sizeof *classes);
    classes->n = nclass;
    classes->forest = xcalloc((size_t)nclass, sizeof(void *));
    AUTO_FREE double *is = xcalloc((size_t)x->n + 1, sizeof *is);
    for (int c = 0; c < nclass; c++) {
        for (int i = 0; i < x->n; i++)
            is[i] = class[i] == c;
        classes->forest[c] = fit(x, is, seed + (uint64_t)c);
    }
    return classes;
}

int classes_predict(const Classes *classes, const double *at, int d, double *share)
{
    Matrix x = {1, d, (double *)at};
    int best = 0;
    for (int c = 0; c < classes->n; c++) {
        predict(classes->forest[c], &x, &share[c]);
        if (share[c] > share[best])
            best = c;
    }
    return best;
}

void classes_free(Classes *classes)
{
    if (!classes)
        return;
    for (int c = 0; c < classes->n; c++)
        drop(classes->forest[c]);
    free(classes->forest);
    free(classes);
}
