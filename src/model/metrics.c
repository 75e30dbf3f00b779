// SPDX-License-Identifier: Apache-2.0
//
// How well a prediction does, and how much a feature tells (000, section 7.1).
// The paper does not say how it estimates entropies; model.h says how this does.
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double metric_mean(const double *a, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i];
    return n ? sum / n : NAN;
}

double metric_geomean(const double *a, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += log(a[i]);
    return n ? exp(sum / n) : NAN;
}

static double *sorted(const double *a, int n)
{
    double *copy = xcalloc((size_t)n + 1, sizeof *copy);
    memcpy(copy, a, sizeof *copy * (size_t)n);
    sort_doubles(copy, n);
    return copy;
}

double metric_median(const double *a, int n)
{
    AUTO_FREE double *s = sorted(a, n);
    return n ? (s[(n - 1) / 2] + s[n / 2]) / 2 : NAN;
}

double metric_pearson(const double *a, const double *b, int n)
{
    double ma = metric_mean(a, n), mb = metric_mean(b, n), aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < n; i++) {
        aa += (a[i] - ma) * (a[i] - ma);
        bb += (b[i] - mb) * (b[i] - mb);
        ab += (a[i] - ma) * (b[i] - mb);
    }
    // A constant's mean is off by rounding, so its sum of squares need not be 0.
    double tiny = 1e-24 * n;
    if (aa <= tiny * ma * ma || bb <= tiny * mb * mb)
        return NAN;
    return ab / (sqrt(aa) * sqrt(bb));
}

static double *ranks(const double *a, int n)
{
    AUTO_FREE Numbered *r = xcalloc((size_t)n + 1, sizeof *r);
    double *rank = xcalloc((size_t)n + 1, sizeof *rank);
    for (int i = 0; i < n; i++)
        r[i] = (Numbered){a[i], i};
    sort_numbered(r, n);
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && r[end].value == r[i].value;)
            end++;
        for (int j = i; j < end; j++)
            rank[r[j].number] = (i + end + 1) / 2.0;
    }
    return rank;
}

double metric_spearman(const double *a, const double *b, int n)
{
    double *ra = ranks(a, n), *rb = ranks(b, n);
    double r = metric_pearson(ra, rb, n);
    free(ra);
    free(rb);
    return r;
}

// The first value of each bin, ascending; how many.
static int cut(const double *s, int n, double first[METRIC_BINS])
{
    int distinct = 0, bins = 0;
    for (int i = 0; i < n; i++)
        distinct += i == 0 || s[i] != s[i - 1];
    bool few = distinct <= METRIC_BINS;
    for (int i = 0; i < n; i++) {
        bool fresh = i == 0 || s[i] != s[i - 1];
        if (fresh && (few || (int64_t)i * METRIC_BINS >= (int64_t)bins * n))
            first[bins++] = s[i];
    }
    return bins;
}

int metric_bins(const double *a, int n, int *bin)
{
    double *s = sorted(a, n), first[METRIC_BINS];
    int bins = cut(s, n, first);
    free(s);
    for (int i = 0; i < n; i++) {
        bin[i] = 0;
        while (bin[i] + 1 < bins && a[i] >= first[bin[i] + 1])
            bin[i]++;
    }
    return bins;
}

static double entropy_of(const int *count, int ncount, int n)
{
    double h = 0;
    for (int i = 0; i < ncount; i++)
        if (count[i])
            h -= (double)count[i] / n * log2((double)count[i] / n);
    return h;
}

double metric_entropy(const int *bin, int nbin, int n)
{
    AUTO_FREE int *count = xcalloc((size_t)nbin + 1, sizeof *count);
    for (int i = 0; i < n; i++)
        count[bin[i]]++;
    return entropy_of(count, nbin, n);
}

double metric_information(const int *a, int na, const int *b, int nb, int n)
{
    AUTO_FREE int *count = xcalloc((size_t)na * (size_t)nb + 1, sizeof *count);
    for (int i = 0; i < n; i++)
        count[a[i] * nb + b[i]]++;
    double both = entropy_of(count, na * nb, n);
    return fmax(metric_entropy(a, na, n) + metric_entropy(b, nb, n) - both, 0);
}

double metric_redundancy(const double *a, const double *b, int n)
{
    int *p = xcalloc((size_t)n + 1, sizeof *p), *q = xcalloc((size_t)n + 1, sizeof *q);
    int np = metric_bins(a, n, p), nq = metric_bins(b, n, q);
    double h = metric_entropy(p, np, n) + metric_entropy(q, nq, n);
    double r = h > 0 ? metric_information(p, np, q, nq, n) / h : 0;
    free(p);
    free(q);
    return r;
}
