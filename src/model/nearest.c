// SPDX-License-Identifier: Apache-2.0
//
// Nearest neighbours by a k-d tree (Friedman, Bentley, Finkel 1977): the points are sorted
// into boxes of a few by halving along the widest side, and a query leaves out every box
// farther off than the k-th nearest found so far. Exact, not approximate.
//
// Many candidates have the same features. They are merged first: one point, with a weight.
// So the tree has no equal points, and a query that falls on a crowd of them takes their
// mean and not the first k in the file.
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAF_MAX = 12, NEIGHBOURS_MAX = 64 };

typedef struct {
    int from, to;     // points of the box
    int right;        // the left child follows its parent; 0: a leaf
    int axis;         // halved along
    double low, high; // last coordinate left of the cut, first right of it
} Box;

struct Nearest {
    Matrix points; // in tree order
    double *value, *weight;
    Box *box;
    int nbox;
};

// Merging -------------------------------------------------------------------------------

typedef struct {
    const double *at;
    double value, weight;
    int d;
} Row;

static int compare_points(const Row *p, const Row *q)
{
    for (int c = 0; c < p->d; c++)
        if (p->at[c] != q->at[c])
            return p->at[c] < q->at[c] ? -1 : 1;
    return 0;
}

// By value last, so that the values of equal points are added in the same order always.
static int compare_rows(const void *a, const void *b)
{
    const Row *p = a, *q = b;
    int order = compare_points(p, q);
    return order ? order : compare_doubles(&p->value, &q->value);
}

static void add_point(Nearest *t, const Row *row, int n)
{
    int i = t->points.n++;
    double sum = 0, weight = 0;
    for (int k = 0; k < n; k++) {
        sum += row[k].weight * row[k].value;
        weight += row[k].weight;
    }
    memcpy(matrix_row(&t->points, i), row->at, sizeof(double) * (size_t)t->points.d);
    t->value[i] = n == 1 ? row->value : sum / weight;
    t->weight[i] = weight;
}

static Nearest *merge(const Matrix *x, const double *value, const double *weight)
{
    Nearest *t = xcalloc(1, sizeof *t);
    t->points = matrix_new(x->n, x->d);
    t->points.n = 0;
    t->value = xcalloc((size_t)x->n + 1, sizeof(double));
    t->weight = xcalloc((size_t)x->n + 1, sizeof(double));
    AUTO_FREE Row *row = xcalloc((size_t)x->n + 1, sizeof *row);
    for (int i = 0; i < x->n; i++)
        row[i] = (Row){matrix_row(x, i), value[i], weight ? weight[i] : 1, x->d};
    qsort(row, (size_t)x->n, sizeof *row, compare_rows);
    for (int i = 0, n; i < x->n; i += n) {
        for (n = 1; i + n < x->n && compare_points(&row[i], &row[i + n]) == 0;)
            n++;
        add_point(t, &row[i], n);
    }
    return t;
}

// Building ------------------------------------------------------------------------------

typedef struct {
    const Matrix *x;
    int *order; // points, permuted into boxes
    Box *box;
    int nbox;
} BoxBuild;

static int widest_axis(const BoxBuild *b, int from, int to)
{
    int widest = 0;
    double most = -1;
    for (int c = 0; c < b->x->d; c++) {
        double low = INFINITY, high = -INFINITY;
        for (int i = from; i < to; i++) {
            double v = matrix_row(b->x, b->order[i])[c];
            low = fmin(low, v);
            high = fmax(high, v);
        }
        if (high - low > most) {
            most = high - low;
            widest = c;
        }
    }
    return widest;
}

// Ties by number, so that the tree is the same however the selection swaps.
static bool is_before(const BoxBuild *b, int p, int q, int axis)
{
    double u = matrix_row(b->x, p)[axis], v = matrix_row(b->x, q)[axis];
    return u != v ? u < v : p < q;
}

// Hoare's selection: what belongs before `middle` along the axis is moved before it.
static void halve(BoxBuild *b, int from, int to, int middle, int axis)
{
    int *o = b->order;
    while (to - from > 1) {
        int pivot = o[from + (to - from) / 2], i = from, j = to - 1;
        while (i <= j) {
            while (is_before(b, o[i], pivot, axis))
                i++;
            while (is_before(b, pivot, o[j], axis))
                j--;
            if (i <= j) {
                int swap = o[i];
                o[i++] = o[j];
                o[j--] = swap;
            }
        }
        if (middle <= j)
            to = j + 1;
        else if (middle >= i)
            from = i;
        else
            return;
    }
}

static void build(BoxBuild *b, int from, int to)
{
    Box *box = &b->box[b->nbox++];
    *box = (Box){.from = from, .to = to};
    if (to - from <= LEAF_MAX)
        return;
    int axis = widest_axis(b, from, to), middle = from + (to - from) / 2;
    halve(b, from, to, middle, axis);
    box->axis = axis;
    box->low = -INFINITY;
    box->high = INFINITY;
    for (int i = from; i < middle; i++)
        box->low = fmax(box->low, matrix_row(b->x, b->order[i])[axis]);
    for (int i = middle; i < to; i++)
        box->high = fmin(box->high, matrix_row(b->x, b->order[i])[axis]);
    build(b, from, middle);
    box->right = b->nbox;
    build(b, middle, to);
}

static void permute(double *at, const int *order, int n)
{
    AUTO_FREE double *old = xcalloc((size_t)n + 1, sizeof *old);
    memcpy(old, at, sizeof *old * (size_t)n);
    for (int i = 0; i < n; i++)
        at[i] = old[order[i]];
}

static void build_tree(Nearest *t)
{
    int n = t->points.n;
    BoxBuild b = {.x = &t->points, .order = xcalloc((size_t)n + 1, sizeof(int))};
    b.box = xcalloc(2 * (size_t)n / (LEAF_MAX / 2) + 2, sizeof *b.box);
    for (int i = 0; i < n; i++)
        b.order[i] = i;
    build(&b, 0, n);
    Matrix sorted = matrix_select(&t->points, b.order, n);
    matrix_free(&t->points);
    t->points = sorted;
    permute(t->value, b.order, n);
    permute(t->weight, b.order, n);
    t->box = b.box;
    t->nbox = b.nbox;
    free(b.order);
}

Nearest *nearest_new(const Matrix *points, const double *value, const double *weight)
{
    Nearest *t = merge(points, value, weight);
    build_tree(t);
    return t;
}

// Asking --------------------------------------------------------------------------------

// The nearest points found so far, nearest first: as few as weigh k together.
typedef struct {
    const Nearest *t;
    const double *at;
    int k, n;
    double weight, reach; // of all found; squared distance beyond which none is wanted
    double distance[NEIGHBOURS_MAX + 1];
    int point[NEIGHBOURS_MAX + 1];
} Query;

static void keep(Query *q, int point, double distance)
{
    int i = q->n++;
    for (; i > 0 && q->distance[i - 1] > distance; i--) {
        q->distance[i] = q->distance[i - 1];
        q->point[i] = q->point[i - 1];
    }
    q->distance[i] = distance;
    q->point[i] = point;
    q->weight += q->t->weight[point];
    while (q->weight - q->t->weight[q->point[q->n - 1]] >= q->k)
        q->weight -= q->t->weight[q->point[--q->n]];
    if (q->weight >= q->k)
        q->reach = q->distance[q->n - 1];
}

static void scan_leaf(Query *q, const Box *box)
{
    int d = q->t->points.d;
    const double *row = matrix_row(&q->t->points, box->from);
    for (int i = box->from; i < box->to; i++, row += d) {
        double sum = 0;
        for (int c = 0; c < d; c++)
            sum += (row[c] - q->at[c]) * (row[c] - q->at[c]);
        if (sum < q->reach)
            keep(q, i, sum);
    }
}

// off[c] is the distance to the box along c, and bound the sum of their squares.
static void search(Query *q, const Box *box, double bound, double *off)
{
    if (bound >= q->reach)
        return;
    if (!box->right) {
        scan_leaf(q, box);
        return;
    }
    const Box *left = box + 1, *right = q->t->box + box->right;
    double at = q->at[box->axis], was = off[box->axis];
    double to_left = fmax(at - box->low, 0), to_right = fmax(box->high - at, 0);
    bool left_first = to_left <= to_right;
    for (int turn = 0; turn < 2; turn++) {
        bool go_left = left_first == (turn == 0);
        double away = fmax(was, go_left ? to_left : to_right);
        off[box->axis] = away;
        search(q, go_left ? left : right, bound + away * away - was * was, off);
    }
    off[box->axis] = was;
}

double nearest_mean(const Nearest *t, const double *at, int k)
{
    if (k < 1 || k > NEIGHBOURS_MAX || t->points.n == 0)
        BUG("%d of %d neighbours", k, t->points.n);
    Query q = {.t = t, .at = at, .k = k, .reach = INFINITY};
    AUTO_FREE double *off = xcalloc((size_t)t->points.d + 1, sizeof *off);
    search(&q, t->box, 0, off);
    double sum = 0, taken = 0;
    for (int i = 0; i < q.n; i++) {
        double part = fmin(t->weight[q.point[i]], k - taken);
        sum += part * t->value[q.point[i]];
        taken += part;
    }
    return sum / taken;
}

void nearest_points(const Nearest *t, Matrix *points, const double **value,
                    const double **weight)
{
    *points = t->points;
    *value = t->value;
    *weight = t->weight;
}

void nearest_free(Nearest *t)
{
    if (!t)
        return;
    matrix_free(&t->points);
    free(t->value);
    free(t->weight);
    free(t->box);
    free(t);
}
