// SPDX-License-Identifier: Apache-2.0
//
// Models and what they stand on: components of data of known rank, planted functions
// recovered, neighbours against brute force, metrics against values worked out by hand,
// cross-validation that never sees what it predicts, saved models that predict the same.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"
#include "model/trees.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEAR(a, b) assert_true(is_near(a, b))

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

static Matrix random_matrix(int n, int d, uint64_t seed)
{
    Rng rng;
    Matrix x = matrix_new(n, d);
    rng = rng_new(seed);
    for (int i = 0; i < n * d; i++)
        x.at[i] = rng_double(&rng);
    return x;
}

static void test_scaler(void **state)
{
    (void)state;
    Matrix x = matrix_new(4, 3);
    const double at[] = {1, 7.1, 10, 2, 7.1, 20, 3, 7.1, 30, 4, 7.1, 40};
    memcpy(x.at, at, sizeof at);
    Scaler s = scaler_fit(&x);
    assert_int_equal(s.d, 2); // the second column is constant
    assert_int_equal(s.column[1], 2);
    NEAR(s.mean[0], 2.5);
    NEAR(s.deviation[0], sqrt(1.25));
    Matrix z = scaler_apply(&s, &x);
    for (int c = 0; c < 2; c++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < 4; i++) {
            sum += matrix_row(&z, i)[c];
            squares += matrix_row(&z, i)[c] * matrix_row(&z, i)[c];
        }
        assert_true(fabs(sum) < 1e-12);
        NEAR(squares, 4);
    }
    scaler_free(&s);
    matrix_free(&x);
    matrix_free(&z);
}

// Six columns made of two hidden ones: two components hold everything.
static void test_pca_rank(void **state)
{
    (void)state;
    static const double mix[6][2] = {{1, 0}, {0, 1}, {1, 1}, {2, -1}, {-1, 3}, {0.5, 0.5}};
    Matrix hidden = random_matrix(300, 2, 1), x = matrix_new(300, 6);
    for (int i = 0; i < 300; i++)
        for (int c = 0; c < 6; c++)
            matrix_row(&x, i)[c] = mix[c][0] * (matrix_row(&hidden, i)[0] - 0.5) +
                                   mix[c][1] * (matrix_row(&hidden, i)[1] - 0.5);
    Pca pca = pca_fit(&x, 1 - 1e-9);
    assert_int_equal(pca.d, 2);
    assert_true(pca.variance[0] >= pca.variance[1]);
    NEAR(pca.variance[0] + pca.variance[1], pca.total);
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            double dot = 0;
            for (int c = 0; c < 6; c++)
                dot += pca.axis[a * 6 + c] * pca.axis[b * 6 + c];
            assert_true(fabs(dot - (a == b)) < 1e-12);
        }
    Matrix y = pca_apply(&pca, &x); // distances stay
    double before = 0, after = 0;
    for (int c = 0; c < 6; c++)
        before += pow(matrix_row(&x, 0)[c] - matrix_row(&x, 1)[c], 2);
    for (int c = 0; c < 2; c++)
        after += pow(matrix_row(&y, 0)[c] - matrix_row(&y, 1)[c], 2);
    NEAR(after, before);
    pca_free(&pca);
    matrix_free(&hidden);
    matrix_free(&x);
    matrix_free(&y);
}

// Variances 16, 3, 1: one holds 80 %, two hold 95 %.
static void test_pca_share(void **state)
{
    (void)state;
    static const struct {
        double share;
        int d;
    } cases[] = {{0.75, 1}, {0.8, 1}, {0.81, 2}, {0.95, 2}, {0.951, 3}, {1, 3}};
    Matrix x = matrix_new(6, 3);
    const double spread[] = {16, 3, 1};
    for (int c = 0; c < 3; c++) {
        matrix_row(&x, 2 * c)[c] = sqrt(3 * spread[c]);
        matrix_row(&x, 2 * c + 1)[c] = -sqrt(3 * spread[c]);
    }
    for (int i = 0; i < COUNTOF(cases); i++) {
        Pca pca = pca_fit(&x, cases[i].share);
        assert_int_equal(pca.d, cases[i].d);
        NEAR(pca.variance[0], 16);
        pca_free(&pca);
    }
    matrix_free(&x);
}

// The k nearest by sorting all distances; rows are distinct.
static double brute_mean(const Matrix *x, const double *y, const double *at, int k)
{
    bool *used = xcalloc((size_t)x->n, sizeof *used);
    double sum = 0;
    for (int turn = 0; turn < k; turn++) {
        int best = -1;
        double least = INFINITY;
        for (int i = 0; i < x->n; i++) {
            double d = 0;
            for (int c = 0; c < x->d; c++)
                d += (matrix_row(x, i)[c] - at[c]) * (matrix_row(x, i)[c] - at[c]);
            if (!used[i] && d < least) {
                least = d;
                best = i;
            }
        }
        used[best] = true;
        sum += y[best];
    }
    free(used);
    return sum / k;
}

static void test_nearest_is_exact(void **state)
{
    (void)state;
    for (int d = 1; d <= 7; d += 3) {
        Matrix x = random_matrix(700, d, 2), q = random_matrix(60, d, 3);
        Matrix y = random_matrix(700, 1, 4);
        Nearest *t = nearest_new(&x, y.at, NULL);
        for (int k = 1; k <= 9; k += 4)
            for (int i = 0; i < q.n; i++)
                NEAR(nearest_mean(t, matrix_row(&q, i), k),
                     brute_mean(&x, y.at, matrix_row(&q, i), k));
        nearest_free(t);
        matrix_free(&x);
        matrix_free(&q);
        matrix_free(&y);
    }
}

static void test_nearest_merges(void **state)
{
    (void)state;
    // Three at 0 (mean 2), one at 1, one at 5.
    Matrix x = matrix_new(5, 1);
    const double at[] = {0, 1, 0, 5, 0}, y[] = {1, 10, 2, 100, 3};
    memcpy(x.at, at, sizeof at);
    Nearest *t = nearest_new(&x, y, NULL);
    double zero = 0, four = 4;
    NEAR(nearest_mean(t, &zero, 1), 2);
    NEAR(nearest_mean(t, &zero, 3), 2);
    NEAR(nearest_mean(t, &zero, 4), (3 * 2 + 10) / 4.0);
    NEAR(nearest_mean(t, &four, 3), (100 + 10 + 2) / 3.0);
    NEAR(nearest_mean(t, &four, 9), 116 / 5.0); // there are only five
    nearest_free(t);
    matrix_free(&x);
}

// The same rows in another order give the same answers, bit for bit.
static void test_order_does_not_matter(void **state)
{
    (void)state;
    enum { N = 400 };
    Matrix x = random_matrix(N, 3, 5), q = random_matrix(50, 3, 6);
    for (int i = 0; i < N * 3; i++) // many ties and equal rows
        x.at[i] = floor(5 * x.at[i]);
    for (int i = 0; i < 50 * 3; i++)
        q.at[i] = floor(5 * q.at[i]) + 0.5;
    double y[N], z[N];
    int back[N];
    for (int i = 0; i < N; i++) {
        y[i] = sin(i);
        back[i] = N - 1 - i;
    }
    for (int i = 0; i < N; i++)
        z[i] = y[back[i]];
    Matrix turned = matrix_select(&x, back, N);
    Nearest *a = nearest_new(&x, y, NULL), *b = nearest_new(&turned, z, NULL);
    for (int i = 0; i < q.n; i++)
        assert_true(nearest_mean(a, matrix_row(&q, i), 5) ==
                    nearest_mean(b, matrix_row(&q, i), 5));
    nearest_free(a);
    nearest_free(b);
    matrix_free(&x);
    matrix_free(&turned);
    matrix_free(&q);
}

static double planted(const double *x)
{
    return sin(3 * x[0]) + x[1] * x[1];
}

// Two features that matter, copies of them, and a constant.
static Matrix planted_rows(int n, uint64_t seed, double *y)
{
    Matrix base = random_matrix(n, 2, seed), x = matrix_new(n, 5);
    for (int i = 0; i < n; i++) {
        const double *b = matrix_row(&base, i);
        const double row[] = {1000 * b[0], b[1], 7, -b[0], 1e-3 * b[1]};
        memcpy(matrix_row(&x, i), row, sizeof row);
        y[i] = planted(b);
    }
    matrix_free(&base);
    return x;
}

static void test_knn_recovers(void **state)
{
    (void)state;
    static double y[4000], want[300], got[300];
    Matrix train = planted_rows(4000, 7, y), test = planted_rows(300, 8, want);
    const ModelKind *knn = model_find("knn");
    assert_non_null(knn);
    void *fit = knn->fit(&train, y, 1);
    knn->predict(fit, &test, got);
    for (int i = 0; i < 300; i++)
        assert_true(fabs(got[i] - want[i]) < 0.15);
    assert_true(metric_pearson(got, want, 300) > 0.999);
    knn->free(fit);
    matrix_free(&train);
    matrix_free(&test);
}

// Half of the error of the mean's predictions is the least that is asked; far less is true.
static void test_boost_recovers(void **state)
{
    (void)state;
    static double y[4000], want[300], got[300], again[300];
    Matrix train = planted_rows(4000, 7, y), test = planted_rows(300, 8, want);
    const ModelKind *boost = model_find("boost");
    assert_non_null(boost);
    void *fit = boost->fit(&train, y, 1), *same = boost->fit(&train, y, 1);
    void *other = boost->fit(&train, y, 2);
    boost->predict(fit, &test, got);
    double mean = metric_mean(y, 4000), off = 0, off_mean = 0;
    for (int i = 0; i < 300; i++) {
        off += pow(got[i] - want[i], 2);
        off_mean += pow(mean - want[i], 2);
    }
    assert_true(off < 0.01 * off_mean);
    assert_true(metric_spearman(got, want, 300) > 0.99);
    boost->predict(same, &test, again);
    assert_memory_equal(again, got, sizeof got);
    boost->predict(other, &test, again);
    assert_memory_not_equal(again, got, sizeof got);
    boost->free(fit);
    boost->free(same);
    boost->free(other);
    matrix_free(&train);
    matrix_free(&test);
}

// What no single feature tells, and a failure wherever one is large.
static void test_boost_interaction(void **state)
{
    (void)state;
    enum { N = 3000 };
    static double y[N], got[N];
    Matrix x = random_matrix(N, 4, 11);
    for (int i = 0; i < N; i++) {
        const double *at = matrix_row(&x, i);
        y[i] = at[3] > 0.9 ? 0 : (at[0] > 0.5) == (at[1] > 0.5) ? 1 : 0.25;
    }
    const ModelKind *boost = model_find("boost");
    void *fit = boost->fit(&x, y, 1);
    boost->predict(fit, &x, got);
    for (int i = 0; i < N; i++)
        assert_true(got[i] >= 0 && got[i] <= 1);
    assert_true(metric_pearson(got, y, N) > 0.95);
    boost->free(fit);
    matrix_free(&x);
}

// More rows than are fitted, and fewer than a leaf usually has.
static void test_boost_any_number_of_rows(void **state)
{
    (void)state;
    static const int rows[] = {1, 2, 7, 60000};
    const ModelKind *boost = model_find("boost");
    double *y = xcalloc(60000, sizeof *y);
    for (int k = 0; k < COUNTOF(rows); k++) {
        Matrix x = random_matrix(rows[k], 2, 12);
        for (int i = 0; i < rows[k]; i++)
            y[i] = matrix_row(&x, i)[1];
        void *fit = boost->fit(&x, y, 1);
        double got;
        Matrix q = matrix_new(1, 2);
        q.at[1] = 0.75;
        boost->predict(fit, &q, &got);
        assert_true(rows[k] < 100 ? got >= 0 && got <= 1 : fabs(got - 0.75) < 0.02);
        boost->free(fit);
        matrix_free(&x);
        matrix_free(&q);
    }
    free(y);
}

static void test_knn_constant_features(void **state)
{
    (void)state;
    Matrix x = matrix_new(3, 2);
    const double y[] = {1, 2, 6};
    double got[3];
    const ModelKind *knn = model_find("knn");
    void *fit = knn->fit(&x, y, 1);
    knn->predict(fit, &x, got);
    NEAR(got[0], 3);
    knn->free(fit);
    matrix_free(&x);
}

// Numbers whose squares overflow, in training or only when asked, still get an answer.
static void test_huge_features(void **state)
{
    (void)state;
    const double at[] = {1e308, 1, 1e308, 2, -1e308, 3, 1e200, 4, 1e308, 5, 1e308, 6};
    const double ask[] = {0, 1e300, -1e308, -1e308};
    const double y[] = {1, 2, 3, 4, 5, 6};
    double got[2];
    Matrix x = matrix_new(6, 2), q = matrix_new(2, 2);
    memcpy(x.at, at, sizeof at);
    memcpy(q.at, ask, sizeof ask);
    Scaler scaler = scaler_fit(&x);
    assert_int_equal(scaler.d, 1); // the first column has no deviation
    scaler_free(&scaler);
    int n;
    const ModelKind *const *kind = model_all(&n);
    for (int k = 0; k < n; k++) {
        void *fit = kind[k]->fit(&x, y, 1);
        kind[k]->predict(fit, &q, got);
        for (int i = 0; i < 2; i++) // at most a range of the targets beyond them
            assert_true(got[i] >= 1 - 5 && got[i] <= 6 + 5);
        kind[k]->free(fit);
    }
    matrix_free(&x);
    matrix_free(&q);
}

static void test_every_kind_saves(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    static double y[500], want[100], got[100], ignored[100];
    Matrix train = planted_rows(500, 9, y), test = planted_rows(100, 10, ignored);
    char folder[] = "/tmp/fw_model_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.json", folder);
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    int n;
    const ModelKind *const *kind = model_all(&n);
    for (int k = 0; k < n; k++) {
        Model *model = model_fit(kind[k], &train, y, 1, names, "f00d");
        model_predict(model, &test, want);
        assert_true(model_save(model, path, &diags));
        Model *again = model_load(path, &diags);
        assert_non_null(again);
        assert_ptr_equal(again->kind, kind[k]);
        assert_string_equal(again->fingerprint, "f00d");
        assert_int_equal(again->d, 5);
        assert_string_equal(again->feature[4], "e");
        model_predict(again, &test, got);
        assert_memory_equal(got, want, sizeof got);
        model_free(model);
        model_free(again);
    }
    assert_int_equal(diags.errors, 0);
    unlink(path);
    rmdir(folder);
    arena_free(arena);
    matrix_free(&train);
    matrix_free(&test);
}

// Networks of one kind with units of another are not what was fitted.
static void test_other_units(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    static double y[20];
    Matrix x = planted_rows(20, 9, y);
    char path[] = "/tmp/fw_model_XXXXXX";
    close(mkstemp(path));
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    Model *model = model_fit(model_find("deep"), &x, y, 1, names, "f00d");
    assert_true(model_save(model, path, &diags));
    Buf text = buf_new();
    assert_true(file_read(path, FILE_DATA_MOST, &text));
    char *units = strstr(text.text, "\"rectified\": true");
    assert_non_null(units);
    units[1] = 'R';
    assert_true(file_write(path, text.text, text.len));
    assert_null(model_load(path, &diags));
    assert_non_null(strstr(diags.list.at[0].message, "damaged, or of another version"));
    unlink(path);
    buf_release(&text);
    model_free(model);
    matrix_free(&x);
    arena_free(arena);
}

#define BOOST(feature, left)                                                               \
    "{\"forewarp_model\": 1, \"kind\": \"boost\", \"fingerprint\": \"\", \"features\": "   \
    "[\"a\"], \"fit\": {\"base\": 0, \"low\": 0, \"high\": 1, \"trees\": {\"nodes\": 3, "  \
    "\"trees\": 1, \"root\": [0], \"feature\": " feature ", \"left\": " left               \
    ", \"threshold\": [0, 0, 0], \"value\": [0, 0, 0]}}}"

static void test_bad_model_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{", "expected"},
        {"{}", "not a saved model"},
        {"{\"forewarp_model\": 2}", "another version"},
        {"{\"forewarp_model\": 1, \"kind\": \"oracle\"}", "not known"},
        {"{\"forewarp_model\": 1, \"kind\": \"knn\"}", "missing"},
        {"{\"forewarp_model\": 1, \"kind\": \"knn\", \"fingerprint\": \"\", \"features\": "
         "[\"a\"], \"fit\": {}}",
         "damaged"},
        {"{\"forewarp_model\": 1, \"kind\": \"knn\", \"fingerprint\": \"\", \"features\": "
         "[\"a\"], \"fit\": {\"columns\": [1], \"mean\": [0], \"deviation\": [1]}}",
         "damaged"},
        {"{\"forewarp_model\": 1, \"kind\": \"knn\", \"fingerprint\": \"\", \"features\": "
         "[\"a\"], \"fit\": {\"columns\": [0], \"mean\": [0], \"deviation\": [1], "
         "\"components\": 1, \"axes\": [1], \"variance\": [1], \"total\": 1, \"rows\": 2, "
         "\"points\": [0], \"value\": [0, 1], \"weight\": [1, 1]}}",
         "damaged"},
        // A node that is its own child, and one that asks for a feature there is not.
        {BOOST("[0, 0, 0]", "[1, 1, 0]"), "damaged"},
        {BOOST("[0, 0, 0]", "[2, 0, 0]"), "damaged"},
        {BOOST("[1, 0, 0]", "[1, 0, 0]"), "damaged"},
    };
    char path[] = "/tmp/fw_model_XXXXXX";
    close(mkstemp(path));
    for (int i = 0; i < COUNTOF(cases); i++) {
        Arena *arena = arena_new();
        Diags diags = {.arena = arena};
        assert_true(file_write(path, cases[i].text, strlen(cases[i].text)));
        assert_null(model_load(path, &diags));
        assert_int_equal(diags_exit_status(&diags), 2);
        assert_non_null(strstr(diags.list.at[0].message, cases[i].message));
        arena_free(arena);
    }
    unlink(path);
    Arena *arena = arena_new();
    Diags diags = {.arena = arena};
    assert_null(model_load(path, &diags));
    assert_int_equal(diags_exit_status(&diags), 1);
    arena_free(arena);
}

static void test_correlations(void **state)
{
    (void)state;
    const double a[] = {1, 2, 3, 4}, b[] = {2, 4, 6, 8}, c[] = {1, 3, 2, 4};
    const double flat[] = {0.1, 0.1, 0.1, 0.1}, steep[] = {1, 10, 100, 1000};
    const double ties[] = {1, 1, 2, 3};
    NEAR(metric_pearson(a, b, 4), 1);
    NEAR(metric_pearson(a, c, 4), 0.8); // 4 / 5
    assert_true(isnan(metric_pearson(a, flat, 4)));
    assert_true(metric_pearson(a, steep, 4) < 0.9);
    NEAR(metric_spearman(a, steep, 4), 1);
    NEAR(metric_spearman(a, c, 4), 0.8);
    // Ranks 1.5 1.5 3 4 against 1 2 3 4: 4.5 / sqrt(4.5 * 5).
    NEAR(metric_spearman(ties, a, 4), sqrt(0.9));
}

static void test_means(void **state)
{
    (void)state;
    const double a[] = {1, 10, 100, 3};
    NEAR(metric_geomean(a, 3), 10);
    NEAR(metric_mean(a, 4), 28.5);
    NEAR(metric_median(a, 4), 6.5);
    NEAR(metric_median(a, 3), 10);
    assert_true(isnan(metric_geomean(a, 0)) && isnan(metric_median(a, 0)));
}

static void test_bins(void **state)
{
    (void)state;
    double few[] = {5, 1, 5, 2, 1}, many[160], heavy[160];
    int bin[160], count[METRIC_BINS] = {0};
    assert_int_equal(metric_bins(few, 5, bin), 3);
    assert_int_equal(bin[0], 2);
    assert_int_equal(bin[1], 0);
    assert_int_equal(bin[3], 1);
    for (int i = 0; i < 160; i++) {
        many[i] = (i * 37) % 160;
        heavy[i] = i < 100 ? 0 : i; // most values are equal, and share a bin
    }
    assert_int_equal(metric_bins(many, 160, bin), METRIC_BINS);
    for (int i = 0; i < 160; i++)
        count[bin[i]]++;
    for (int i = 0; i < METRIC_BINS; i++)
        assert_int_equal(count[i], 10);
    assert_true(metric_bins(heavy, 160, bin) <= METRIC_BINS);
    for (int i = 0; i < 100; i++)
        assert_int_equal(bin[i], 0);
    assert_true(bin[100] > 0);
}

static void test_information(void **state)
{
    (void)state;
    const int a[] = {0, 0, 1, 1}, b[] = {0, 1, 0, 1};
    NEAR(metric_entropy(a, 2, 4), 1);
    NEAR(metric_information(a, 2, a, 2, 4), 1);
    assert_true(fabs(metric_information(a, 2, b, 2, 4)) < 1e-12);
    // Joint 1/2 1/4 1/4: H = 1.5; margins 3/4 1/4 and 1/2 1/2: 0.8112781 and 1.
    const int c[] = {0, 0, 0, 1}, d[] = {0, 0, 1, 1};
    assert_true(fabs(metric_information(c, 2, d, 2, 4) - 0.3112781245) < 1e-9);
    const double x[] = {1, 2, 3, 4}, y[] = {10, 20, 30, 40}, flat[] = {1, 1, 1, 1};
    NEAR(metric_redundancy(x, y, 4), 0.5);
    NEAR(metric_redundancy(x, flat, 4), 0);
    NEAR(metric_redundancy(flat, flat, 4), 0);
}

// A kind that remembers its targets: predicts the largest it was shown.
static void *fit_largest(const Matrix *x, const double *y, uint64_t seed)
{
    (void)seed;
    double *most = xcalloc(1, sizeof *most);
    for (int i = 0; i < x->n; i++) {
        assert_true(matrix_row(x, i)[0] == y[i]); // rows and targets stay together
        *most = fmax(*most, y[i]);
    }
    return most;
}

static void predict_largest(const void *fit, const Matrix *x, double *y)
{
    for (int i = 0; i < x->n; i++)
        y[i] = *(const double *)fit;
}

static void test_leaves_out(void **state)
{
    (void)state;
    const ModelKind largest = {
        .name = "largest", .fit = fit_largest, .predict = predict_largest, .free = free};
    // Group 1 holds the largest target, so only groups 0 and 2 may ever see it.
    const int group[] = {0, 1, 2, 1, 0, 2};
    const double y[] = {1, 9, 3, 2, 4, 5};
    double got[6];
    Matrix x = matrix_new(6, 1);
    memcpy(x.at, y, sizeof y);
    cross_validate(&largest, &x, y, group, 3, 1, got);
    const double want[] = {9, 5, 9, 5, 9, 9};
    assert_memory_equal(got, want, sizeof want);
    matrix_free(&x);
}

// A surface with an interaction, over powers of two as a tuning space has them.
static double surface(const double *at)
{
    return 1 + 0.3 * (at[0] - 3) * (at[0] - 3) + 0.2 * fabs(at[0] + at[1] - 5) +
           (at[2] > 0.5 ? 0.7 * at[3] / 7 : 0);
}

static Matrix tuning_rows(int n, uint64_t seed, double *y)
{
    Rng rng;
    Matrix x = matrix_new(n, 5);
    rng = rng_new(seed);
    for (int i = 0; i < n; i++) {
        double *at = matrix_row(&x, i);
        for (int c = 0; c < 5; c++)
            at[c] = (double)rng_below(&rng, c == 2 ? 2 : 8);
        y[i] = surface(at);
    }
    return x;
}

// Against predicting the mean: how much of the variance is left.
static double left_over(const char *name, int rows)
{
    enum { TEST = 1000 };
    double y[TEST], truth[TEST], out[TEST], mean, error = 0, all = 0;
    double *train = xcalloc((size_t)rows, sizeof *train);
    Matrix x = tuning_rows(rows, 1, train), other = tuning_rows(TEST, 2, truth);
    const ModelKind *kind = model_find(name);
    void *fit = kind->fit(&x, train, 7), *again = kind->fit(&x, train, 7);
    kind->predict(fit, &other, out);
    kind->predict(again, &other, y);
    assert_memory_equal(out, y, sizeof y); // the seed decides
    mean = metric_mean(truth, TEST);
    for (int i = 0; i < TEST; i++) {
        error += (out[i] - truth[i]) * (out[i] - truth[i]);
        all += (truth[i] - mean) * (truth[i] - mean);
    }
    kind->free(fit);
    kind->free(again);
    matrix_free(&x);
    matrix_free(&other);
    free(train);
    return error / all;
}

static void test_ann(void **state)
{
    (void)state;
    assert_true(left_over("ann", 500) < 0.02);
    assert_true(left_over("ann", 5) < 3); // fewer rows than parts
}

static void test_forest(void **state)
{
    (void)state;
    assert_true(left_over("forest", 2000) < 0.1);
}

// Four classes that two of three features tell apart; a fifth never occurs.
static void test_classes(void **state)
{
    (void)state;
    enum { N = 400 };
    Matrix x = random_matrix(N, 3, 5), other = random_matrix(N, 3, 6);
    int class[N], right = 0;
    for (int i = 0; i < N; i++)
        class[i] = (matrix_row(&x, i)[0] > 0.5) + 2 * (matrix_row(&x, i)[2] > 0.3);
    Classes *classes = classes_fit(&x, class, 5, 1);
    for (int i = 0; i < N; i++) {
        double share[5], sum = 0;
        const double *at = matrix_row(&other, i);
        int c = classes_predict(classes, at, 3, share);
        right += c == (at[0] > 0.5) + 2 * (at[2] > 0.3);
        for (int k = 0; k < 5; k++)
            sum += share[k];
        assert_true(share[4] == 0 && sum > 0.5 && sum < 1.5);
    }
    assert_true(right > N * 95 / 100);
    classes_free(classes);
    matrix_free(&x);
    matrix_free(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scaler),
        cmocka_unit_test(test_pca_rank),
        cmocka_unit_test(test_pca_share),
        cmocka_unit_test(test_nearest_is_exact),
        cmocka_unit_test(test_nearest_merges),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_knn_recovers),
        cmocka_unit_test(test_boost_recovers),
        cmocka_unit_test(test_boost_interaction),
        cmocka_unit_test(test_boost_any_number_of_rows),
        cmocka_unit_test(test_knn_constant_features),
        cmocka_unit_test(test_huge_features),
        cmocka_unit_test(test_every_kind_saves),
        cmocka_unit_test(test_other_units),
        cmocka_unit_test(test_bad_model_files),
        cmocka_unit_test(test_correlations),
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_information),
        cmocka_unit_test(test_leaves_out),
        cmocka_unit_test(test_ann),
        cmocka_unit_test(test_forest),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
