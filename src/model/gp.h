// SPDX-License-Identifier: Apache-2.0
//
// A Gaussian process on a few hundred rows, with a length scale a group of columns, and a
// pool of candidates whose posterior follows as rows are added.

#ifndef FW_MODEL_GP_H
#define FW_MODEL_GP_H

#include "base/base.h"

enum { GP_GROUPS_MOST = 128 };

typedef struct {
    int d, ngroup, n, most;
    int *group;    // of each column
    double *x;     // n by d
    double *y, *z; // as given; whitened
    double *u;     // the Cholesky factor of the correlations, most by most, upper
    double rate[GP_GROUPS_MOST];     // logarithm of what differences in a group count
    double noise;                    // logarithm of the noise's share of the variance
    double mean, variance;           // of y
    double *own, *trial_z, *trial_u; // of the work at hand
} Gp;

// Columns are numbers between 0 and 1. Owner: the caller, gp_free.
Gp *gp_new(int d, const int *group, int ngroup, int most);
void gp_free(Gp *gp); // accepts NULL
// Replaces the rows; at most `most`.
void gp_set(Gp *gp, const double *x, const double *y, int n);
// Improves rates and noise, by the posterior density of the rows, in some sweeps over them;
// returns its logarithm.
double gp_tune(Gp *gp, int sweeps);
// One more row; mean and variance of y stay.
void gp_add(Gp *gp, const double *x, double y);

typedef struct {
    int n, cap, d, most;
    double *x;              // cap by d
    float *v;               // most by cap: the whitened correlations with each row
    float *mean, *variance; // posterior of what y would be without noise
} GpPool;

GpPool *gp_pool_new(const Gp *gp, int cap);
void gp_pool_free(GpPool *pool); // accepts NULL
void gp_pool_clear(GpPool *pool);
// Adds candidates up to the capacity; returns how many were taken.
int gp_pool_push(GpPool *pool, const Gp *gp, const double *x, int n);
void gp_pool_follow(GpPool *pool, const Gp *gp); // after gp_add
void gp_pool_swap(GpPool *pool, int i); // removes candidate i; the last one takes its place

#endif
