// SPDX-License-Identifier: Apache-2.0
//
// A small neural network: one or two hidden layers of logistic or rectified units and a
// linear output.

#ifndef FW_MODEL_NETWORK_H
#define FW_MODEL_NETWORK_H

#include "model/model.h"

// Hidden units lie in vectors of 4: two of the 32 are always 0.
enum { HIDDEN = 30, HIDDEN_SLOTS = 32, NETWORK_INPUTS_MOST = 512 };

typedef struct {
    int layers;     // hidden ones: 1 or 2
    bool rectified; // max(x, x / 100) in place of the logistic function
    int steps;      // of training, about
    float rate;     // at the first step
    int rows;       // of more rows it is less, by the root of how many more, and they get
                    // more steps than these; 0: neither
    float decay;    // what a step of rate 1 takes off a weight, as a part of it
} NetworkStyle;

typedef struct {
    int d, layers;
    bool rectified;
    float *in; // (d + 1) by HIDDEN_SLOTS: weights of an input, last the biases; then, with
               // two layers, as much for the first layer's units as inputs of the second
    float out[HIDDEN_SLOTS]; // weights of the output
    float bias;              // of the output
} Network;

// Trains on rows of inputs of mean 0 and deviation 1, towards targets of mean 0 and
// deviation about 1; row[i]: which to use. Owner: the caller, network_free.
Network network_fit(const Matrix *x, const double *y, const int *row, int n,
                    const NetworkStyle *style, uint64_t seed);
double network_value(const Network *network, const double *at);
void network_free(Network *network);

json_t *network_save(const Network *network);
bool network_load(Network *network, const json_t *json, int d, const NetworkStyle *style);

// A bag of small networks, for the kinds of model that are one.

// The functions of a ModelKind, for networks of a style.
void *bag_fit(const Matrix *x, const double *y, const NetworkStyle *style, uint64_t seed);
void bag_predict(const void *bag, const Matrix *x, double *y);
json_t *bag_save(const void *bag);
void *bag_load(const json_t *json, int d, const NetworkStyle *style);
void bag_free(void *bag);

#endif
