// SPDX-License-Identifier: Apache-2.0
//
// Regression trees by histograms: a split is looked for among at most 64 bins a feature,
// cut once at quantiles, so that a node costs one pass over its rows.
//
// It does not know what the trees are for; the caller that adds them up does.
#include "model/trees.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Quantiles are those of at most this many rows, evenly spaced.
enum { QUANTILE_ROWS = 20000 };

// Bins ----------------------------------------------------------------------------------

// The first values of all bins but the lowest; returns how many bins.
static int cut(const double *sorted, int n, double threshold[TREE_BINS])
{
    int distinct = 0, bins = 1;
    for (int i = 0; i < n; i++)
        distinct += i == 0 || sorted[i] != sorted[i - 1];
    bool few = distinct <= TREE_BINS;
    for (int i = 1; i < n && bins < TREE_BINS; i++)
        if (sorted[i] != sorted[i - 1] &&
            (few || (int64_t)i * TREE_BINS >= (int64_t)bins * n))
            threshold[bins++ - 1] = sorted[i];
    return bins;
}

static int bin_of(const double *threshold, int bins, double value)
{
    int low = 0, high = bins - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (value < threshold[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool is_constant(const double *x, int n)
{
    int i = 1;
    while (i < n && x[i] == x[0])
        i++;
    return i >= n;
}

Binned binned_new(const Matrix *x)
{
    size_t n = (size_t)x->n, d = (size_t)x->d;
    Binned b = {.n = x->n,
                .d = x->d,
                .bin = xcalloc(n * d + 1, 1),
                .threshold = xcalloc(d * TREE_BINS + 1, sizeof(double)),
                .bins = xcalloc(d + 1, sizeof(int))};
    int rows = MIN(x->n, QUANTILE_ROWS);
    AUTO_FREE double *sorted = xcalloc((size_t)rows + 1, sizeof *sorted);
    for (int c = 0; c < x->d; c++) {
        double *threshold = b.threshold + (size_t)c * TREE_BINS;
        for (int i = 0; i < rows; i++)
            sorted[i] = matrix_row(x, (int)((int64_t)i * x->n / rows))[c];
        b.bins[c] = 1; // and every row is in bin 0
        if (is_constant(sorted, rows))
            continue;
        sort_doubles(sorted, rows);
        b.bins[c] = cut(sorted, rows, threshold);
        for (int i = 0; i < x->n; i++)
            b.bin[(size_t)c * n + (size_t)i] =
                (uint8_t)bin_of(threshold, b.bins[c], matrix_row(x, i)[c]);
    }
    return b;
}

void binned_free(Binned *b)
{
    free(b->bin);
    free(b->threshold);
    free(b->bins);
    *b = (Binned){0};
}

// Growing -------------------------------------------------------------------------------

typedef struct {
    Trees *trees;
    const Binned *binned;
    const double *residual;
    int *row;
    double *value; // of rows, in their order: the residual; in a leaf, what the tree says
    const int *feature;
    int nfeature;
    const TreeOptions *options;
} Grower;

enum { TOGETHER = 8 };

// Rows of a bin, a node or a side of it: the sum of their residuals, and how many they are.
typedef double Part __attribute__((vector_size(16)));

typedef struct {
    int feature, bin; // rows of bins below it go left
    double gain;      // 0: none is worth it
} Split;

static int add_nodes(Trees *t, int n)
{
    if (t->nnode + n > t->capacity) {
        t->capacity = MAX(2 * t->capacity, t->nnode + n + 64);
        t->node = xrealloc(t->node, sizeof *t->node * (size_t)t->capacity);
    }
    int first = t->nnode;
    memset(t->node + first, 0, sizeof *t->node * (size_t)n);
    t->nnode += n;
    return first;
}

static double score(const Grower *g, Part part)
{
    return part[0] * part[0] / (part[1] + g->options->ridge);
}

// Fills the bins of several features at once, because additions to one bin wait for each
// other.
static void fill_parts(const Grower *g, const int feature[TOGETHER], int from, int to,
                       Part part[TOGETHER][TREE_BINS])
{
    const uint8_t *bin[TOGETHER];
    for (int k = 0; k < TOGETHER; k++)
        bin[k] = g->binned->bin + (size_t)feature[k] * (size_t)g->binned->n;
    memset(part, 0, sizeof(Part) * TOGETHER * TREE_BINS);
    for (int i = from; i < to; i++) {
        int row = g->row[i];
        for (int k = 0; k < TOGETHER; k++)
            part[k][bin[k][row]] += (Part){g->value[i], 1};
    }
}

static void best_of_feature(const Grower *g, int feature, const Part *part, Part all,
                            Split *best)
{
    Part left = {0};
    double whole = score(g, all);
    for (int b = 1; b < g->binned->bins[feature]; b++) {
        const Part *next = &part[b - 1];
        left += *next;
        Part right = all - left;
        if (!(*next)[1] || MIN(left[1], right[1]) < g->options->least_rows)
            continue;
        Part sums = {left[0], right[0]}, rows = {left[1], right[1]};
        Part scores = sums * sums / (rows + g->options->ridge); // both at once, as score
        double gain = scores[0] + scores[1] - whole;
        if (gain > best->gain)
            *best = (Split){feature, b, gain};
    }
}

// A feature may be drawn twice: then another is not tried.
static void best_of_features(const Grower *g, int from, int to, Part all, Split *best)
{
    const TreeOptions *o = g->options;
    int feature[TOGETHER] = {0}, n = 0, tries = o->tries ? o->tries : g->nfeature;
    Part part[TOGETHER][TREE_BINS];
    for (int i = 0; i < tries; i++) {
        int k = o->tries ? (int)rng_below(o->rng, (uint64_t)g->nfeature) : i;
        if (g->binned->bins[g->feature[k]] > 1)
            feature[n++] = g->feature[k];
        if (n < TOGETHER && i < tries - 1)
            continue;
        if (n)
            fill_parts(g, feature, from, to, part);
        for (k = 0; k < n; k++)
            best_of_feature(g, feature[k], part[k], all, best);
        n = 0;
    }
}

// Moves rows that go left to the front; returns where the others begin.
static int partition(const Grower *g, const Split *split, int from, int to)
{
    const uint8_t *bin = g->binned->bin + (size_t)split->feature * (size_t)g->binned->n;
    int middle = from;
    for (int i = from; i < to; i++)
        if (bin[g->row[i]] < split->bin) {
            int swap = g->row[middle];
            g->row[middle++] = g->row[i];
            g->row[i] = swap;
        }
    return middle;
}

static void grow(Grower *g, int node, int from, int to, int depth)
{
    const TreeOptions *o = g->options;
    Part all = {0, to - from};
    for (int i = from; i < to; i++)
        all[0] += g->value[i] = g->residual[g->row[i]];
    Split best = {0};
    best.gain = 1e-12 * (1 + score(g, all)); // less is rounding
    double least = best.gain;
    if (depth < o->depth && to - from >= 2 * o->least_rows)
        best_of_features(g, from, to, all, &best);
    if (best.gain == least) {
        double value = o->rate * all[0] / (all[1] + o->ridge);
        g->trees->node[node].value = value;
        for (int i = from; i < to; i++)
            g->value[i] = value;
        return;
    }
    int middle = partition(g, &best, from, to), left = add_nodes(g->trees, 2);
    TreeNode *inner = &g->trees->node[node];
    inner->feature = best.feature;
    inner->bin = best.bin;
    inner->left = left;
    inner->threshold =
        g->binned->threshold[(size_t)best.feature * TREE_BINS + (size_t)best.bin - 1];
    grow(g, left, from, middle, depth + 1);
    grow(g, left + 1, middle, to, depth + 1);
}

void trees_grow(Trees *trees, const Binned *binned, const double *residual, int *row, int n,
                const int *feature, int nfeature, const TreeOptions *options, double *value)
{
    trees->root = xrealloc(trees->root, sizeof(int) * ((size_t)trees->nroot + 1));
    int root = trees->root[trees->nroot++] = add_nodes(trees, 1);
    Grower g = {trees, binned, residual, row, value, feature, nfeature, options};
    grow(&g, root, 0, n, 0);
}

// Asking --------------------------------------------------------------------------------

double tree_value(const Trees *trees, int tree, const double *at)
{
    const TreeNode *node = &trees->node[trees->root[tree]];
    while (node->left)
        node = &trees->node[node->left + !(at[node->feature] < node->threshold)];
    return node->value;
}

double tree_value_binned(const Trees *trees, int tree, const Binned *b, int row)
{
    const TreeNode *node = &trees->node[trees->root[tree]];
    const uint8_t *bin = b->bin + row;
    while (node->left)
        node = &trees->node[node->left +
                            (bin[(size_t)node->feature * (size_t)b->n] >= node->bin)];
    return node->value;
}

void trees_free(Trees *trees)
{
    free(trees->node);
    free(trees->root);
    *trees = (Trees){0};
}

// Files ---------------------------------------------------------------------------------

json_t *trees_save(const Trees *trees)
{
    json_t *roots = json_array(), *features = json_array(), *lefts = json_array();
    json_t *thresholds = json_array(), *values = json_array();
    for (int i = 0; i < trees->nroot; i++)
        json_array_append_new(roots, json_integer(trees->root[i]));
    ARRAY_EACH_REF(const TreeNode *, node, trees->node, trees->nnode) {
        json_array_append_new(features, json_integer(node->feature));
        json_array_append_new(lefts, json_integer(node->left));
        json_array_append_new(thresholds, json_real(node->threshold));
        json_array_append_new(values, json_real(node->value));
    }
    return json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "nodes", trees->nnode, "trees",
                     trees->nroot, "root", roots, "feature", features, "left", lefts,
                     "threshold", thresholds, "value", values);
}

static bool is_whole(double value, int from, int to)
{
    return value >= from && value < to && value == floor(value);
}

// Children after their parent: a walk always ends.
static bool load_nodes(Trees *t, const double *feature, const double *left, int d)
{
    for (int i = 0; i < t->nnode; i++) {
        bool leaf = left[i] == 0;
        if (!leaf &&
            (!is_whole(left[i], i + 1, t->nnode - 1) || !is_whole(feature[i], 0, d)))
            return false;
        t->node[i].left = (int)left[i];
        t->node[i].feature = leaf ? 0 : (int)feature[i];
    }
    return true;
}

bool trees_load(Trees *t, const json_t *json, int d)
{
    json_int_t nodes = json_integer_value(json_object_get(json, "nodes"));
    json_int_t roots = json_integer_value(json_object_get(json, "trees"));
    *t = (Trees){0};
    if (nodes < 1 || nodes > INT32_MAX / 2 || roots < 1 || roots > nodes)
        return false;
    double *column[5];
    static const char *const key[] = {"feature", "left", "threshold", "value", "root"};
    bool ok = true;
    for (int i = 0; i < COUNTOF(key); i++)
        ok &= (column[i] = json_get_numbers(json, key[i], i < 4 ? nodes : roots)) != NULL;
    if (ok) {
        t->nnode = (int)nodes;
        t->nroot = (int)roots;
        t->node = xcalloc((size_t)nodes, sizeof *t->node);
        t->root = xcalloc((size_t)roots, sizeof *t->root);
        ok = load_nodes(t, column[0], column[1], d);
        for (int i = 0; i < t->nnode; i++) {
            t->node[i].threshold = column[2][i];
            t->node[i].value = column[3][i];
        }
        for (int i = 0; ok && i < t->nroot; i++) {
            ok = is_whole(column[4][i], 0, t->nnode);
            t->root[i] = ok ? (int)column[4][i] : 0;
        }
    }
    for (int i = 0; i < COUNTOF(key); i++)
        free(column[i]);
    return ok;
}
