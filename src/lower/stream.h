// SPDX-License-Identifier: Apache-2.0
//
// Shared by the files of streams: what stream.c plans and walks along, and the cells of
// stream_cells.c.

#ifndef FW_LOWER_STREAM_H
#define FW_LOWER_STREAM_H

#include "lower/internal.h"

enum { REACH_MAX = 8, GRIDS_MAX = 8, COLS_MAX = 64, JAM_MAX = 16 };

// Where a row and its strip are: all within, columns near the border, anything. Of grids in
// three dimensions: a plane, and its strip or tile.
typedef enum { PART_INSIDE, PART_SIDE, PART_ANY } Part;

// Axes: 0 is the one that is walked along, dims - 1 that of the columns; in three
// dimensions 1 is that of a lane's rows. In two a lane has one row, and no neighbours in
// it.
typedef struct Stream Stream;
struct Stream {
    Lower *l;
    const Expr *f;
    const Env *env;
    const View *from, *to;
    int dims;
    int64_t size[DIMS_MAX]; // of the grid, by axis
    int64_t steps, cols, rows, lanes;
    int64_t jam;   // rows of a lane
    int64_t warps; // of a group: two dimensions: side by side along x; three: along y
    int64_t ncell;
    int64_t strips, tiles, streams;
    int64_t halo;   // columns at each end of a strip that are not written
    int64_t border; // rows at each end of a tile that are not written
    int64_t phases; // rows of a window, and of one iteration
    int ngrid;      // components of the state
    const Type *scalar[GRIDS_MAX];
    // Found by a first evaluation.
    bool probing, refused, padded;
    bool crosses; // cells beyond the grid are read
    PadMode mode;
    const View *fill;
    int64_t reach[DIMS_MAX];
    bool corners;           // neighbours are read in all windows' rows, not the middle one
    bool diagonal;          // neighbours that differ in row and column
    bool beside[GRIDS_MAX]; // neighbours' columns are read at all
    bool above[GRIDS_MAX];  // neighbours' rows
    // The cell being computed.
    int level;
    int64_t phase, j, c;
    const Arith *at[DIMS_MAX];
    // The code being made.
    Block *top;                  // declarations
    Var **cell, **ahead;         // windows; the row that comes next
    const char **names, **nexts; // of these, the same in each way
    const Arith *strip, *tile, *stream, *lane, *warp;
    const Arith *start, *x, *first; // column of the strip, of the lane; first row written
    const Arith *top_row, *y;       // three dimensions: row of the tile, of the lane
    const Buffer **shared;          // [level][grid], and one for exchanges at the border
};

static inline int64_t reach_x(const Stream *s)
{
    return s->reach[s->dims - 1];
}

static inline int64_t reach_y(const Stream *s)
{
    return s->dims == 3 ? s->reach[1] : 0;
}

static inline int64_t width_of(const Stream *s)
{
    return s->size[s->dims - 1];
}

static inline int64_t floor_mod(int64_t a, int64_t b)
{
    return (a % b + b) % b;
}

// stream_cells.c ------------------------------------------------------------------------

// The slot of the row that is so many below (negative: above) the newest.
int64_t slot_of(const Stream *s, int64_t from_newest);
// Declares a variable of a grid's type where statements go.
Var *stream_declare(Stream *s, const char *name, int grid, const KExpr *value);
void stream_assign(Stream *s, Var *var, const KExpr *value);
// A cell of the window of a level: row j of the lane, column c of it; r more on each side.
Var *cell_var(Stream *s, int level, int grid, int64_t slot, int64_t j, int64_t c);
// Local memory that the lanes meet in, if they have to.
void make_shared(Stream *s);
// Before a phase: what neighbours' rows are read of, for all levels.
void publish_phase(Stream *s);
// Cells of a row of the window that belong to neighbours, and those beyond the grid's rows.
void fetch_neighbours(Stream *s, int level, Part part);
// Columns beyond the grid of a new row.
void fix_columns(Stream *s, int level, int64_t slot);
// Rows above the grid are made when the window first has all that they repeat, rows below
// when they come; along the axis that is walked.
void fix_rows_above(Stream *s, int level, const Arith *newest);
void fix_rows_below(Stream *s, int level, const Arith *newest);

#endif
