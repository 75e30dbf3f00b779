// SPDX-License-Identifier: Apache-2.0
//
// predict: counts of a program's points, symbolic or at its sizes, and what they cost.
//
//   source  paper 003

#ifndef FW_CALIBRATE_PREDICT_H
#define FW_CALIBRATE_PREDICT_H

#include "cost/demand.h"
#include "model/linear.h"
#include "model/overlap.h"
#include "problem/problem.h"

// Leaves all sizes open but those that say how often an iterate goes round: these take
// their value from binding. False with diagnostics.
bool problem_open(Problem *problem, const Binding *binding, int n, Diags *diags);
// The sizes of an opened problem: those of binding, and OPEN_SAMPLE where it says nothing.
enum { OPEN_SAMPLE = 1000 };
int problem_sample(const Problem *problem, const Binding *binding, int n, Binding *out,
                   int max);

// Weights of a device ------------------------------------------------------------------

typedef struct Weights {
    DeviceInfo device; // the fields that a derivation asks, name and fingerprint
    int rows;          // measurements behind the weights
    double rms;        // of their relative residuals
    double weight[PROPERTIES], error[PROPERTIES]; // seconds an operation
    int support[PROPERTIES]; // measurements in which the property is not 0
    Overlap overlap;         // of demands; no columns: the measurements had none
    char from[256];          // the device that was measured, if it is another one
} Weights;

bool weights_save(const Weights *weights, const char *path, Diags *diags);
// NULL path: those stored for the device: its id, its fingerprint, or part of its name.
bool weights_load(Weights *weights, const char *path, const char *device, Diags *diags);
// Where the weights of a device are stored: under the user's data folder.
const char *weights_path(Arena *arena, const char *fingerprint);

// The same for a device that was not measured: what a part of it does for a demand takes as
// many times longer as the published rate of that part is lower. Weights of properties, and
// what depends on no rate (a launch, the latency of memory), stay.
void weights_scale(Weights *weights, const DeviceInfo *to);

// How many times the counts are charged: a launch of fewer groups than the device has units
// takes as long as if it filled them (the mean launch stands for several). It holds for all
// but arrays, groups and launches.
double weights_share(const DeviceInfo *device, const double count[PROPERTIES],
                     int property);
// The cost of each property in seconds; returns their sum. A property without support is
// charged like the one most like it that has some (weights_stand_in).
double weights_predict(const Weights *weights, const double count[PROPERTIES],
                       double cost[PROPERTIES]);
// By demands: the sum over kernels and their launches, in seconds, and the cost of each
// demand, which add up to it.
double weights_overlap(const Weights *weights, const Demand *demand, int n,
                       double cost[DEMANDS]);
// In seconds, by demands if the weights have them, else by counts; false if a size has no
// value. The setting names the weights' device.
bool predict_unit(const Weights *weights, const Unit *unit, const FeatureSetting *setting,
                  Arena *arena, double *seconds);
// How much of a launch lies at its end, when not all units are busy any more.
double demand_idle(const Demand *demand);
// No weights yet: which part of the model each demand belongs to.
void weights_parts(Overlap *overlap);
// The property whose weight is charged for this one, and how many times; itself if it has
// support; -1 if nothing is charged.
int weights_stand_in(const Weights *weights, int property, double *factor);

// terms: what a model of slowness sees of a candidate. A device's weights predict a time
// from counted demands (predict.h); how many times longer the candidate takes is learnt
// from what that time is made of: the share of each part of the device and of each demand,
// and the features of the kernels. Shares, unlike counts, mean the same on another device
// of other weights.

enum { TERMS = RESOURCES + DEMANDS + FEATURES };
const char *terms_name(int term);   // of a column
bool terms_are(const Model *model); // whether they are what the model was fitted to

// The predicted time in seconds, and the terms but for the features, which come last, of n
// kernels together. False if the weights have no demands, or predict no time.
bool terms_demands(const Weights *weights, const Demand *demand, int n, double term[TERMS],
                   double *seconds);
// All of that of a unit. False also if a size has no value.
bool terms_unit(const Weights *weights, const Unit *unit, const FeatureSetting *setting,
                Arena *arena, double term[TERMS], double *seconds);

#endif
