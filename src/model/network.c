// SPDX-License-Identifier: Apache-2.0
//
// A neural network of one or two hidden layers.
//
//   source  30 logistic hidden units, squared error: paper 002, section 5.2, which does not
//           say how it trains; the second layer is ours
//   method  Adam (Kingma and Ba, 2015) over batches of 16 rows, with a rate that falls to 0
//           as half a cosine. On 2,000 points of 002's kind of space this has a fifth less
//           error than 1,000 rounds of resilient propagation, in a fifth of the time.
//
// Weights may decay, apart from their slopes (AdamW: Loshchilov and Hutter, 2019).
//
// Single precision, in an order that does not depend on the machine: the same seed gives
// the same network.
#include "model/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, EPOCHS_LEAST = 40, EPOCHS_MOST = 800 };
// Where more rows want more steps: as many passes as 2,000 have, up to twice the steps.
enum { PASSES = 240, GROWN = 2 };
static const float mean_decay = 0.9F, square_decay = 0.999F;

// Where the parameters of a network lie in one array: in, those of the second layer, out,
// bias.
enum { SECOND_SIZE = (HIDDEN_SLOTS + 1) * HIDDEN_SLOTS };

static int first_size(int d)
{
    return (d + 1) * HIDDEN_SLOTS;
}

static int inputs_size(int d, int layers)
{
    return first_size(d) + (layers - 1) * SECOND_SIZE;
}

static int size(int d, int layers)
{
    return inputs_size(d, layers) + HIDDEN_SLOTS + 1;
}

// A copy for each width of vectors, all with the same results: ISO C contracts no products
// and sums, and each sum has one order.
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__ &&                        \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define WIDE __attribute__((flatten, target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

typedef struct {
    int d, layers, steps;
    bool rectified, grows;
    float rate, decay;
    float *weight, *slope, *mean, *square; // each of size(d, layers)
    float *x, *y;                          // all rows in single precision, x by d
    double mean_power, square_power;       // the decays to the power of the steps so far
    Rng rng;
} Training;

// e^x for x in [-30, 30], to 2e-7 relative: 2^n by its bits, 2^f by a polynomial; a form
// that compilers turn into vectors.
static inline float fast_exp(float x)
{
    float t = x * 1.44269504F;
    int32_t n = (int32_t)(t + 1000.5F) - 1000;
    float f = (t - (float)n) * 0.693147181F;
    float p =
        1 + f * (1 + f * (0.5F + f * (0.166666667F +
                                      f * (0.0416666667F +
                                           f * (0.00833333333F + f * 0.00138888889F)))));
    union {
        int32_t bits;
        float value;
    } power = {(n + 127) << 23};
    return p * power.value;
}

static inline float logistic(float x)
{
    x = x < -30 ? -30 : x > 30 ? 30 : x;
    return 1 / (1 + fast_exp(-x));
}

// A unit that is off still learns.
static const float LEAK = 0.01F;

// Adds to 32 sums what d numbers times their rows of weights are; two numbers at a time, so
// that sums are loaded and stored half as often. Their order is that of the numbers.
static inline void add_products(const float *restrict weight, int d,
                                const float *restrict x, float *restrict to)
{
    int c = 0;
    for (; c + 2 <= d; c += 2)
        for (int h = 0; h < HIDDEN_SLOTS; h++)
            to[h] = to[h] + x[c] * weight[c * HIDDEN_SLOTS + h] +
                    x[c + 1] * weight[(c + 1) * HIDDEN_SLOTS + h];
    for (; c < d; c++)
        for (int h = 0; h < HIDDEN_SLOTS; h++)
            to[h] += x[c] * weight[c * HIDDEN_SLOTS + h];
}

// Activations of a layer of d inputs.
static inline void activate(const float *in, int d, bool rectified, const float *x,
                            float *restrict hidden)
{
    memcpy(hidden, in + d * HIDDEN_SLOTS, HIDDEN_SLOTS * sizeof *hidden);
    add_products(in, d, x, hidden);
    for (int h = 0; h < HIDDEN_SLOTS && rectified; h++)
        hidden[h] = hidden[h] > 0 ? hidden[h] : LEAK * hidden[h];
    for (int h = 0; h < HIDDEN_SLOTS && !rectified; h++)
        hidden[h] = logistic(hidden[h]);
}

// How fast an activation grows with what goes into it, by the activation.
static inline float growth(float hidden, bool rectified)
{
    return !rectified ? hidden * (1 - hidden) : hidden > 0 ? 1 : LEAK;
}

// Computes all layers; the last is what the output sees.
static inline void forward(const float *in, int d, int layers, bool rectified,
                           const float *x, float (*restrict hidden)[HIDDEN_SLOTS])
{
    activate(in, d, rectified, x, hidden[0]);
    if (layers > 1)
        activate(in + first_size(d), HIDDEN_SLOTS, rectified, hidden[0], hidden[1]);
}

static float dot_hidden(const float *out, const float *hidden)
{
    float part[4] = {0};
    for (int h = 0; h < HIDDEN_SLOTS; h += 4)
        for (int k = 0; k < 4; k++)
            part[k] += out[h + k] * hidden[h + k];
    return part[0] + part[1] + part[2] + part[3];
}

// What goes into the layers for the rows of a batch, last 1 for the biases, and the slopes
// of what it sums up to.
typedef struct {
    float x[NETWORK_INPUTS_MOST + 1][BATCH], hidden[HIDDEN_SLOTS + 1][BATCH];
    float delta[2][BATCH * HIDDEN_SLOTS];      // a row after the other
    float turned[HIDDEN_SLOTS * HIDDEN_SLOTS]; // the second layer's weights, by its units
} BatchLayers;

// Adds to the slopes of a layer's parameters, from those of its activations' inputs.
static inline void add_slopes(float *restrict slope, int d, float (*in)[BATCH],
                              const float *delta, int rows)
{
    for (int c = 0; c <= d; c++)
        add_products(delta, rows, in[c], slope + c * HIDDEN_SLOTS);
}

// By its units in place of its inputs.
static inline void turn(const float *second, float *restrict turned)
{
    for (int c = 0; c < HIDDEN_SLOTS; c++)
        for (int h = 0; h < HIDDEN_SLOTS; h++)
            turned[h * HIDDEN_SLOTS + c] = second[c * HIDDEN_SLOTS + h];
}

// A row's slopes of half the squared error; adds those of the output's parameters.
static inline void backward(Training *t, BatchLayers *b, int r, int row)
{
    int d = t->d, last = t->layers - 1;
    const float *x = t->x + (size_t)row * (size_t)d;
    const float *out = t->weight + inputs_size(d, t->layers);
    float *slope = t->slope + inputs_size(d, t->layers);
    float hidden[2][HIDDEN_SLOTS], before[HIDDEN_SLOTS] = {0};
    float *delta[2] = {b->delta[0] + r * HIDDEN_SLOTS, b->delta[1] + r * HIDDEN_SLOTS};
    forward(t->weight, d, t->layers, t->rectified, x, hidden);
    float error = dot_hidden(out, hidden[last]) + out[HIDDEN_SLOTS] - t->y[row];
    for (int h = 0; h < HIDDEN_SLOTS; h++)
        delta[last][h] = error * out[h] * growth(hidden[last][h], t->rectified);
    for (int h = 0; h < HIDDEN; h++)
        slope[h] += error * hidden[last][h];
    slope[HIDDEN_SLOTS] += error;
    for (int c = 0; c < d; c++)
        b->x[c][r] = x[c];
    b->x[d][r] = 1;
    if (last == 0)
        return;
    add_products(b->turned, HIDDEN_SLOTS, delta[1], before);
    for (int h = 0; h < HIDDEN_SLOTS; h++) {
        b->hidden[h][r] = hidden[0][h];
        delta[0][h] = before[h] * growth(hidden[0][h], t->rectified);
    }
    b->hidden[HIDDEN_SLOTS][r] = 1;
}

// Adds the slopes of a batch.
static inline void add_batch(Training *t, BatchLayers *b, const int *row, int rows)
{
    float *second = t->slope + first_size(t->d);
    if (t->layers > 1)
        turn(t->weight + first_size(t->d), b->turned);
    for (int r = 0; r < rows; r++)
        backward(t, b, r, row[r]);
    add_slopes(t->slope, t->d, b->x, b->delta[0], rows);
    if (t->layers > 1)
        add_slopes(second, HIDDEN_SLOTS, b->hidden, b->delta[1], rows);
}

static void step(Training *t, float rate, int rows)
{
    t->mean_power *= (double)mean_decay;
    t->square_power *= (double)square_decay;
    float scale = 1 / (float)rows;
    float mean_fix = 1 / (float)(1 - t->mean_power);
    float square_fix = 1 / (float)(1 - t->square_power);
    float *restrict weight = t->weight, *restrict mean = t->mean;
    float *restrict square = t->square, *restrict slope = t->slope;
    int n = size(t->d, t->layers);
    float keep = 1 - rate * t->decay;
    for (int i = 0; i < n; i++) {
        float g = slope[i] * scale;
        slope[i] = 0;
        mean[i] += (1 - mean_decay) * (g - mean[i]);
        square[i] += (1 - square_decay) * (g * g - square[i]);
        float down = rate * mean[i] * mean_fix / (sqrtf(square[i] * square_fix) + 1e-8F);
        weight[i] = keep * weight[i] - down;
    }
}

WIDE static void train(Training *t, int *row, int n)
{
    int batches = (n + BATCH - 1) / BATCH;
    int steps = t->steps;
    if (t->grows)
        steps = MIN(MAX(steps, PASSES * batches), GROWN * steps);
    BatchLayers batch;
    int epochs = MIN(MAX(steps / MAX(batches, 1), EPOCHS_LEAST), EPOCHS_MOST);
    for (int e = 0, done = 0; e < epochs; e++) {
        rng_shuffle(&t->rng, row, n);
        for (int from = 0; from < n; from += BATCH, done++) {
            int to = MIN(from + BATCH, n);
            add_batch(t, &batch, row + from, to - from);
            double part = (double)done / (double)(epochs * batches);
            step(t, t->rate * (float)(0.5 + 0.5 * cos(3.14159265 * part)), to - from);
        }
    }
}

static void set_layer(Training *t, float *weight, int d, int used)
{
    // So that variances stay as they are from layer to layer (He et al., 2015).
    float wide = (t->rectified ? sqrtf(2) : 2) / sqrtf((float)used + 1);
    for (int c = 0; c <= d; c++)
        for (int h = 0; h < HIDDEN && (c < used || c == d); h++)
            weight[c * HIDDEN_SLOTS + h] = (float)rng_normal(&t->rng) * wide;
}

static void set_weights(Training *t)
{
    set_layer(t, t->weight, t->d, t->d);
    if (t->layers > 1)
        set_layer(t, t->weight + first_size(t->d), HIDDEN_SLOTS, HIDDEN);
    for (int h = 0; h < HIDDEN; h++)
        t->weight[inputs_size(t->d, t->layers) + h] = (float)rng_normal(&t->rng) * 0.2F;
}

static void set_rows(Training *t, const Matrix *x, const double *y)
{
    t->x = xcalloc((size_t)x->n * (size_t)x->d + 1, sizeof(float));
    t->y = xcalloc((size_t)x->n + 1, sizeof(float));
    for (size_t i = 0; i < (size_t)x->n * (size_t)x->d; i++)
        t->x[i] = (float)x->at[i];
    for (int i = 0; i < x->n; i++)
        t->y[i] = (float)y[i];
}

Network network_fit(const Matrix *x, const double *y, const int *row, int n,
                    const NetworkStyle *style, uint64_t seed)
{
    if (x->d > NETWORK_INPUTS_MOST)
        BUG("a network of %d inputs", x->d);
    int layers = style->layers;
    size_t count = (size_t)size(x->d, layers);
    float *memory = xcalloc(4 * count, sizeof *memory);
    Training t = {.d = x->d,
                  .layers = layers,
                  .steps = style->steps,
                  .rectified = style->rectified,
                  .grows = style->rows > 0,
                  .rate = style->rate,
                  .decay = style->decay,
                  .weight = memory,
                  .slope = memory + count,
                  .mean = memory + 2 * count,
                  .square = memory + 3 * count,
                  .mean_power = 1,
                  .square_power = 1};
    if (style->rows && n > style->rows)
        t.rate *= sqrtf((float)style->rows / (float)n);
    t.rng = rng_new(seed);
    set_rows(&t, x, y);
    set_weights(&t);
    AUTO_FREE int *order = xcalloc((size_t)n + 1, sizeof *order);
    memcpy(order, row, (size_t)n * sizeof *order);
    train(&t, order, n);
    Network network = {
        .d = x->d, .layers = layers, .rectified = style->rectified, .in = memory};
    const float *out = memory + inputs_size(x->d, layers);
    memcpy(network.out, out, sizeof network.out);
    network.bias = out[HIDDEN_SLOTS];
    free(t.x);
    free(t.y);
    return network;
}

WIDE double network_value(const Network *network, const double *at)
{
    float hidden[2][HIDDEN_SLOTS], x[NETWORK_INPUTS_MOST];
    for (int c = 0; c < network->d; c++)
        x[c] = (float)at[c];
    forward(network->in, network->d, network->layers, network->rectified, x, hidden);
    return (double)(dot_hidden(network->out, hidden[network->layers - 1]) + network->bias);
}

void network_free(Network *network)
{
    free(network->in);
    network->in = NULL;
}

json_t *network_save(const Network *network)
{
    json_t *weights = json_array();
    for (int i = 0; i < inputs_size(network->d, network->layers); i++)
        json_array_append_new(weights, json_real((double)network->in[i]));
    for (int h = 0; h < HIDDEN; h++)
        json_array_append_new(weights, json_real((double)network->out[h]));
    json_array_append_new(weights, json_real((double)network->bias));
    return json_pack("{s:o, s:b}", "weights", weights, "rectified", network->rectified);
}

bool network_load(Network *network, const json_t *json, int d, const NetworkStyle *style)
{
    int n = inputs_size(d, style->layers);
    *network = (Network){.d = d, .layers = style->layers, .rectified = style->rectified};
    AUTO_FREE double *weight = json_get_numbers(json, "weights", n + HIDDEN + 1);
    bool same = json_is_true(json_object_get(json, "rectified")) == style->rectified;
    if (!weight || !same || d > NETWORK_INPUTS_MOST)
        return false;
    network->in = xcalloc((size_t)n, sizeof *network->in);
    for (int i = 0; i < n; i++)
        network->in[i] = (float)weight[i];
    for (int h = 0; h < HIDDEN; h++)
        network->out[h] = (float)weight[n + h];
    network->bias = (float)weight[n + HIDDEN];
    return true;
}
