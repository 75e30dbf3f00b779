// SPDX-License-Identifier: Apache-2.0
//
// Tables of loadings, and what a forest picks from them: see loading.h.
#include "evaluate/loading.h"

#include "model/dataset.h"
#include "model/trees.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const loading_name[LOADS] = {"global", "vector", "local", "image"};

enum { FEATURES_SEEN = 6, COLUMNS = 8 + LOADS };

// The table -------------------------------------------------------------------------------

static const char before[] = "# device: ";
static const char header[] =
    "stencil,points,dims,density,unique,adds,muls,fitted,global,vector,local,image";

static bool wrong(Diags *diags, const char *path, int line, const char *what)
{
    return diag_error(diags, span_none, "X010", "%s:%d: %s", path, line, what);
}

static int unique_of(const char *word)
{
    static const char *const known[] = {"none", "x", "y", "z"};
    return FIND_TEXT(known, COUNTOF(known), word);
}

// A time above 0, or nothing.
static bool read_ns(const char *cell, double *ns)
{
    char *end;
    *ns = *cell ? strtod(cell, &end) : INFINITY;
    return !*cell || (!*end && *ns > 0 && isfinite(*ns));
}

static bool read_row(Loadings *table, const char *path, int line, char *text, Diags *diags)
{
    char *cell[COLUMNS];
    int n = 0;
    for (char *at; n < COLUMNS && (at = strsep(&text, ",")); n++)
        cell[n] = at;
    if (n < COLUMNS || text)
        return wrong(diags, path, line, "expected twelve columns");
    LoadingRow row = {.stencil = arena_strdup(table->arena, cell[0]),
                      .shape = {.points = atoi(cell[1]),
                                .dims = atoi(cell[2]),
                                .density = atof(cell[3]),
                                .unique = unique_of(cell[4])},
                      .adds = atoi(cell[5]),
                      .muls = atoi(cell[6]),
                      .fitted = strcmp(cell[7], "1") == 0,
                      .picked = -1};
    bool ok = row.shape.points > 0 && row.shape.dims > 0 && row.shape.density > 0 &&
              row.shape.unique >= 0 && row.adds > 0 && row.muls > 0;
    for (int l = 0; l < LOADS; l++) {
        ok = ok && read_ns(cell[8 + l], &row.ns[l]);
        row.best = row.ns[l] < row.ns[row.best] ? (Loading)l : row.best;
    }
    if (!ok || !isfinite(row.ns[row.best]))
        return wrong(diags, path, line, "a value does not fit its column");
    VEC_PUSH(table->arena, &table->rows, row);
    return true;
}

Loadings *loadings_read(const char *path, Arena *arena, Diags *diags)
{
    Loadings *table = NEW_OF(arena, Loadings, .device = "", .arena = arena);
    AutoBuf text = buf_new();
    bool ok = dataset_text(path, &text, diags);
    char *save = NULL;
    int number = 0;
    for (char *line = ok ? strtok_r(text.text, "\n", &save) : NULL; ok && line;
         line = strtok_r(NULL, "\n", &save)) {
        number++;
        if (number == 1 && strncmp(line, before, strlen(before)) == 0)
            table->device = arena_strdup(arena, line + strlen(before));
        else if (number == 2)
            ok = strcmp(line, header) == 0 ||
                 wrong(diags, path, 2, "the second line must name the columns");
        else
            ok = number == 1 ? wrong(diags, path, 1, "the first line must name the device")
                             : read_row(table, path, number, line, diags);
    }
    ok = ok && (table->rows.len > 0 || wrong(diags, path, number, "there are no stencils"));
    return ok ? table : NULL;
}

// The forest ------------------------------------------------------------------------------

static void put_features(const LoadingRow *row, double x[FEATURES_SEEN])
{
    x[0] = row->shape.points;
    x[1] = row->shape.dims;
    x[2] = row->shape.density;
    x[3] = row->shape.unique;
    x[4] = row->adds;
    x[5] = row->muls;
}

// The same stencil, of whatever size and arithmetic.
static bool same_shape(const StencilShape *a, const StencilShape *b)
{
    return a->points == b->points && a->dims == b->dims && a->unique == b->unique &&
           a->density == b->density;
}

// without: rows of this shape are left out.
static int pick(const Loadings *table, const LoadingRow *of, const StencilShape *without,
                uint64_t seed)
{
    AutoMatrix x = matrix_new(table->rows.len, FEATURES_SEEN);
    AUTO_FREE int *class = xcalloc((size_t)table->rows.len, sizeof *class);
    int n = 0, picked = -1;
    VEC_EACH_REF(const LoadingRow *, row, &table->rows) {
        if (!row->fitted || (without && same_shape(&row->shape, without)))
            continue;
        put_features(row, matrix_row(&x, n));
        class[n++] = (int)row->best;
    }
    x.n = n;
    if (n > 0) {
        double at[FEATURES_SEEN], share[LOADS];
        Classes *classes = classes_fit(&x, class, LOADS, seed);
        put_features(of, at);
        picked = classes_predict(classes, at, FEATURES_SEEN, share);
        classes_free(classes);
    }
    return picked;
}

int loadings_pick(const Loadings *table, const StencilShape *shape, uint64_t seed)
{
    LoadingRow of = {.shape = *shape, .adds = 1, .muls = 1};
    return pick(table, &of, NULL, seed);
}

void loadings_forest(Loadings *table, uint64_t seed)
{
    VEC_EACH_REF(LoadingRow *, row, &table->rows)
        row->picked = pick(table, row, &row->shape, seed);
}
