// SPDX-License-Identifier: Apache-2.0
//
// model: predicts a number from features. One vtable, ModelKind, with one file a kind
// (models.def), and what the kinds share: matrices, scaling, principal components,
// metrics, cross-validation. A kind never sees a kernel: only rows of numbers.
//
// Features are finite numbers; the caller keeps it so (dataset.h refuses others).

#ifndef FW_MODEL_H
#define FW_MODEL_H

#include "base/base.h"

#include <jansson.h>

// matrix.c: rows of numbers -----------------------------------------------------------

// Row-major; owner of at: the heap, unless said otherwise.
typedef struct {
    int n, d; // rows, columns; either may be 0
    double *at;
} Matrix;

Matrix matrix_new(int n, int d); // zeroed
void matrix_free(Matrix *matrix);
#define AutoMatrix __attribute__((cleanup(matrix_free))) Matrix
double *matrix_row(const Matrix *matrix, int i);
Matrix matrix_select(const Matrix *matrix, const int *row, int n); // a copy of n rows

// scale.c: centre and scale -----------------------------------------------------------

// Columns that never change are dropped: they say nothing, and cannot be scaled.
typedef struct {
    int from, d; // columns taken, columns kept
    int *column; // d: which are kept
    double *mean, *deviation;
} Scaler;

Scaler scaler_fit(const Matrix *x);
Matrix scaler_apply(const Scaler *scaler, const Matrix *x); // n by scaler->d
void scaler_free(Scaler *scaler);
// Sets the keys columns, mean and deviation of an object, and reads them back; false if it
// is not a scaler of d columns (free what it holds all the same).
void scaler_save(const Scaler *scaler, json_t *object);
bool scaler_load(Scaler *scaler, const json_t *object, int d);

// pca.c: principal components ------------------------------------------------------------

typedef struct {
    int from, d;
    double *axis;     // d by from, row-major: unit vectors, most variance first
    double *variance; // d: along each axis
    double total;     // variance of all the axes, dropped ones too
} Pca;

// The fewest components that hold the share of the variance. Needs: x is centred.
// Each axis points so that its largest entry is positive.
Pca pca_fit(const Matrix *x, double share);
Matrix pca_apply(const Pca *pca, const Matrix *x); // n by pca->d
void pca_free(Pca *pca);

// nearest.c: the nearest of many points -----------------------------------------------

typedef struct Nearest Nearest;

// Copies the points; those that coincide become one whose weight is their number and whose
// value is their mean, so that answers do not depend on the order of the rows. Weights are
// at least 1; NULL: all 1.
Nearest *nearest_new(const Matrix *points, const double *value, const double *weight);
// The mean value of the k nearest (Euclidean); ties in a fixed order. Needs: k >= 1, a
// point.
double nearest_mean(const Nearest *nearest, const double *at, int k);
// The distinct points as rows, with values and weights, in a fixed order; borrowed.
void nearest_points(const Nearest *nearest, Matrix *points, const double **value,
                    const double **weight);
void nearest_free(Nearest *nearest);

// models.def: kinds of model -------------------------------------------------------------

// Which columns of an exploration a kind sees unless told otherwise (columns.c).
typedef enum {
    COLUMNS_PAPER, // no feature beyond Table 1 of 000
    COLUMNS_ALL,   // every one, and ratios of some
    COLUMN_SETS
} ColumnSet;

typedef struct {
    const char *name, *doc;
    ColumnSet columns;
    void *(*fit)(const Matrix *x, const double *y, uint64_t seed); // x->n > 0
    void (*predict)(const void *fit, const Matrix *x, double *y);
    json_t *(*save)(const void *fit);
    void *(*load)(const json_t *json, int d); // NULL if it is not one over d features
    void (*free)(void *fit);
} ModelKind;

const ModelKind *const *model_all(int *n);
const ModelKind *model_find(const char *name); // NULL if there is none

// json.c: arrays of numbers, for save and load ----------------------------------------

json_t *json_numbers(const double *at, int64_t n);
// A new array of the n finite numbers under key; NULL if there are not exactly that many.
double *json_get_numbers(const json_t *json, const char *key, int64_t n);

// model.c: a fitted model, to keep ----------------------------------------------------

typedef struct {
    const ModelKind *kind;
    void *fit;
    int d;
    char **feature;    // d names
    char *fingerprint; // the device's
} Model;

Model *model_fit(const ModelKind *kind, const Matrix *x, const double *y, uint64_t seed,
                 const char *const *feature, const char *fingerprint);
void model_predict(const Model *model, const Matrix *x, double *y); // x->d == model->d
bool model_save(const Model *model, const char *path, Diags *diags);
// NULL with a diagnostic: no such file, not JSON, another version, not a model.
Model *model_load(const char *path, Diags *diags);
void model_free(Model *model); // accepts NULL

// crossval.c --------------------------------------------------------------------------

// predicted[i] comes from a model that has seen no row of i's group, nor any whose y is
// NAN; NAN where there is no such row. Needs: groups 0 to ngroup - 1.
void cross_validate(const ModelKind *kind, const Matrix *x, const double *y,
                    const int *group, int ngroup, uint64_t seed, double *predicted);

// metrics.c ---------------------------------------------------------------------------

// Both correlations are NAN where one of the two never changes.
double metric_pearson(const double *a, const double *b, int n);
double metric_spearman(const double *a, const double *b, int n); // ties: mean ranks
double metric_geomean(const double *a, int n); // all positive; NAN if n == 0
double metric_mean(const double *a, int n);    // NAN if n == 0
double metric_median(const double *a, int n);  // NAN if n == 0

// Mutual information is over bins: a variable of at most METRIC_BINS different values has
// one bin a value; any other is cut into METRIC_BINS runs of its sorted values that are as
// equal in length as they can be while equal values share a bin.
enum { METRIC_BINS = 16 };
int metric_bins(const double *a, int n, int *bin);      // how many bins were made
double metric_entropy(const int *bin, int nbin, int n); // bits
double metric_information(const int *a, int na, const int *b, int nb, int n); // bits
// R = I(X; Y) / (H(X) + H(Y)): 0 unrelated, 1/2 one tells the other. 0 if neither changes.
double metric_redundancy(const double *a, const double *b, int n);

#endif
