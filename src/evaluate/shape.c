// SPDX-License-Identifier: Apache-2.0
//
// The shape of a stencil: each access p[i][j] of the function that is mapped over windows
// marks an element of the window. Of a tuple of windows the first one counts.
#include "evaluate/shape.h"

#include "nest/nest.h"

#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_MOST = 1 << 16 };

typedef struct {
    const Expr *fun;        // of the map
    int dims;               // of the window
    int64_t size[DIMS_MAX]; // outermost first
    bool *read;             // an element each
} Window;

static bool window_of(const Expr *map, Window *w)
{
    const Expr *in = map->arg[0];
    if (is_zip(in, map->dims))
        in = in->arg[0];
    if (!is_window(in, map->dims))
        return false;
    int64_t all = 1;
    *w = (Window){.fun = map->fun, .dims = map->dims};
    for (int d = 0; d < w->dims; d++) {
        arith_is_const(in->num[2 * d], &w->size[d]);
        all *= w->size[d];
        if (all > ELEMENTS_MOST)
            return false;
    }
    w->read = xcalloc((size_t)all, sizeof *w->read);
    return true;
}

// The first of the elements of the function: of a tuple its first component.
static bool is_element(const Window *w, const Expr *e)
{
    if (e->kind == E_GET)
        return e->index == 0 && is_element(w, e->arg[0]);
    return expr_is_use(e, w->fun->params[0]);
}

// A constant index within the window; -1 if it is anything else.
static int64_t index_of(const Expr *e)
{
    int64_t value = -1;
    if (e->kind == E_LITERAL)
        return (int64_t)e->number;
    return e->kind == E_NUM && arith_is_const(e->num[0], &value) ? value : -1;
}

// Marks what the first n indices leave open; -1 is any.
static void mark(Window *w, const int64_t *index, int n, int d, int64_t at)
{
    if (d == w->dims) {
        w->read[at] = true;
        return;
    }
    bool any = d >= n || index[d] < 0 || index[d] >= w->size[d];
    for (int64_t i = any ? 0 : index[d]; i < (any ? w->size[d] : index[d] + 1); i++)
        mark(w, index, n, d + 1, at * w->size[d] + i);
}

static void visit(Window *w, const Expr *e)
{
    int64_t index[DIMS_MAX];
    const Expr *chain[DIMS_MAX];
    int n = 0;
    const Expr *base = e;
    for (; base->kind == E_AT && n < DIMS_MAX; base = base->arg[0])
        chain[n++] = base;
    if (is_element(w, base)) {
        for (int i = 0; i < n; i++)
            index[i] = index_of(chain[n - 1 - i]->arg[1]);
        mark(w, index, n, 0, 0);
        return;
    }
    for (int i = 0; i < e->narg; i++)
        visit(w, e->arg[i]);
    if (e->fun)
        visit(w, e->fun);
}

// The dimension unlike the two others, by how many elements lie off the middle along it.
static int unlike(const int off[DIMS_MAX])
{
    for (int x = 0; x < DIMS_MAX; x++) {
        int a = off[(x + 1) % DIMS_MAX], b = off[(x + 2) % DIMS_MAX];
        if (a == b && off[x] != a)
            return x + 1;
    }
    return 0;
}

static void measure(const Window *w, StencilShape *shape)
{
    int64_t low[DIMS_MAX] = {0}, high[DIMS_MAX] = {0}, all = 1;
    int off[DIMS_MAX] = {0}; // by x, y, z
    for (int d = 0; d < w->dims; d++)
        all *= w->size[d];
    *shape = (StencilShape){0};
    for (int64_t i = 0; i < all; i++) {
        int64_t rest = i;
        for (int x = 0; x < w->dims && w->read[i]; x++) {
            int64_t size = w->size[w->dims - 1 - x], at = rest % size;
            rest /= size;
            low[x] = shape->points ? MIN(low[x], at) : at;
            high[x] = shape->points ? MAX(high[x], at) : at;
            off[x] += at != size / 2;
        }
        shape->points += w->read[i];
    }
    double box = 1;
    for (int x = 0; x < w->dims; x++) {
        box *= (double)(high[x] - low[x] + 1);
        shape->dims += high[x] > low[x];
    }
    shape->dims = MAX(shape->dims, 1);
    shape->density = shape->points / box;
    shape->unique = unlike(off);
}

static bool find_map(const Expr *e, StencilShape *shape)
{
    Window window;
    if (is_map(e) && window_of(e, &window)) {
        visit(&window, window.fun->arg[0]);
        measure(&window, shape);
        free(window.read);
        return shape->points > 0;
    }
    for (int i = 0; i < e->narg; i++)
        if (find_map(e->arg[i], shape))
            return true;
    return e->fun && find_map(e->fun, shape);
}

bool stencil_shape(const Program *program, StencilShape *shape)
{
    return program->main && find_map(program->main->body, shape);
}
