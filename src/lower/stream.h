// SPDX-License-Identifier: Apache-2.0
//
// Shared by the files of streams: what a step computes from what (stream_reads.c), when
// each row is there (stream_plan.c), the cells of a lane (stream_cells.c), and the walk
// (stream.c).

#ifndef FW_LOWER_STREAM_H
#define FW_LOWER_STREAM_H

#include "lower/internal.h"

enum {
    BATCH_MOST = 5,
    REACH_MAX = 8,
    GRIDS_MAX = 32,
    READS_MAX = 1024,
    STEPS_MAX = 64,
    COLS_MAX = 64,
    JAM_MAX = 16
};

// Where a row and its strip are: all within, columns near the border, anything. Of grids in
// three dimensions: a plane, and its strip or tile.
typedef enum { PART_INSIDE, PART_SIDE, PART_ANY } Part;

// A cell of a grid of the step that another is computed from, as seen from that one.
typedef struct {
    int grid;
    int64_t off[DIMS_MAX];
} Read;

// An array of a step: of the state, which it takes from one step to the next, or a stage,
// an array between them.
typedef struct {
    const Type *scalar;
    const View *value; // what it is computed as; of the state: in the step that follows
    int same;          // which grid of the step that value is as it stands; -1: none
    VEC(Read) reads;
    int64_t places; // cells that its reads may be of, all of which selects name
    bool picky;     // computing it may fail for what is no state of the program
} Grid;

// A grid after so many steps; a stage: in the step after so many.
typedef struct {
    int step, grid;
    int same;                    // the field that it is; -1: itself
    bool used;                   // somebody reads it
    int64_t delay;               // rows that its newest one is behind the newest of all
    int64_t depth;               // rows that are read
    int64_t lo[DIMS_MAX];        // cells before and after one's own that are read
    int64_t hi[DIMS_MAX];        // of it, along the axes
    int64_t beyond[2][DIMS_MAX]; // cells before and after those written that must be right
    bool diagonal;               // of those read some differ in row and column
    int64_t age;          // iterations after which neighbours' cells of a row are fetched
    int64_t oldest;       // and after which they are last read
    bool shared, fetched; // through local memory; in this iteration
    const Buffer *buffer;
} Field;

// A name for a place that is moved into the grid, and what it is.
typedef struct {
    const Arith *name, *place;
} MovedPlace;

// What a let calls a number that is another one in each step, and what it is in each.
typedef struct {
    const Param *param;
    const KExpr **value;
} Changing;

// Axes: 0 is the one that is walked along, dims - 1 that of the columns; in three
// dimensions 1 is that of a lane's rows. In two a lane has one row, and no neighbours in
// it. A grid in one dimension is one row of two; one in two is a plane of three where
// nothing is walked along.
typedef struct Stream Stream;
struct Stream {
    Lower *l;
    const Expr *f;
    const Env *env;
    const View *from, *to;
    int dims, shift;        // shift: axes that the grids do not have
    int64_t size[DIMS_MAX]; // of the grid, by axis
    int64_t steps, cols, rows, lanes;
    bool in_rows;  // windows are arrays of a group that is one thread
    bool flat;     // a group's warps hold all rows that it writes: it does not walk
    int64_t jam;   // rows of a lane
    int64_t warps; // of a group: two dimensions: side by side along x; three: along y
    int64_t ncell, nahead; // variables of windows, and of the rows that come next
    int64_t strips, tiles, streams;
    int64_t halo;         // columns at each end of a strip that are not written
    int64_t grain;        // the first column of a lane is a multiple of it
    int64_t border;       // rows at each end of a tile that are not written
    int64_t above, after; // rows read before the first written, newest after the last
    int64_t delay;        // of the last field
    int64_t relay;        // warps that do `steps` each, one after another; 1: one does all
    int64_t batch;        // rows from one barrier to the next
    bool copies;          // rows enter the first ring by themselves
    int64_t lag, behind;  // rows that one is behind the one before, and the last the first
    int64_t late[GRIDS_MAX]; // iterations from what a warp gives to when the next takes it
    const Buffer *ring[GRIDS_MAX];
    const Arith *turn;     // of the walk
    int64_t line;          // cells that are published of a field
    int64_t phases, times; // rows of an iteration, and how often it runs
    int nstate, ngrid;
    Grid grid[GRIDS_MAX];
    int nfield;
    Field *field;
    bool wrap[DIMS_MAX];  // cells beyond the grid are those of its other end
    int64_t lo[DIMS_MAX]; // the farthest that a cell reads along the axes
    int64_t hi[DIMS_MAX];
    // While it is found what a step reads.
    Grid *probing;
    bool trying;
    const char *refused; // why the steps cannot be done together; NULL: they can
    // The number of the first step: as the launch says it, and as any may be.
    const Arith *first_step, *any_step;
    VEC(Changing) changing;
    bool naming; // these, for a step after so many
    int64_t level;
    // The cell being computed.
    const Field *reader;
    int64_t phase, j, c;
    const Arith *line_at, *col_at; // in the arrays
    const Arith *at[DIMS_MAX];
    // The code being made.
    Block *top;                  // declarations
    Var **cell, **ahead;         // windows; the row that comes next
    const char **names, **nexts; // of these, the same in each way
    const Arith *strip, *tile, *stream, *lane, *warp;
    const Arith *start, *x, *first; // column of the strip, of the lane; first row written
    const Arith *top_row, *y;       // three dimensions: row of the tile, of the lane
    VEC(MovedPlace) moved;
};

static inline int64_t reach_of(const Stream *s, int axis)
{
    return MAX(s->lo[axis], s->hi[axis]);
}

static inline int64_t reach_x(const Stream *s)
{
    return reach_of(s, s->dims - 1);
}

static inline int64_t reach_y(const Stream *s)
{
    return s->dims == 3 ? reach_of(s, 1) : 0;
}

static inline int64_t width_of(const Stream *s)
{
    return s->size[s->dims - 1];
}

// Is it what a kernel begins with, not what its first step makes?
static inline bool is_input(const Stream *s, const Field *field)
{
    return field->step == 0 && field->grid < s->nstate;
}

// stream_reads.c ------------------------------------------------------------------------

// The element of an array at the cell; at: by axis.
const View *stream_element(Stream *s, const View *grid, const Arith *const *at);
// The array that part number k of a state is.
const View *stream_part(Stream *s, const View *state, int k);
// Evaluates the function, whose state is in registers, where statements go.
void stream_open(Stream *s);
// A value whose conditions ask for the places themselves, not for where they are moved to.
const KExpr *stream_unmoved(Stream *s, const KExpr *value);
// Learns what a step reads; false, and refused is set, if that is not near.
bool stream_probe(Stream *s, const Expr *loop);

// stream_plan.c -------------------------------------------------------------------------

// The field that a grid is in the step after so many.
Field *stream_field(const Stream *s, int64_t step, int grid);
// What is computed in a step, in order: stages, then the state after it.
Field *stream_computed(const Stream *s, int64_t step, int i);
// When each row is computed, and how many are kept.
void stream_schedule(Stream *s);
// Strips and tiles; false if nothing of one would be written.
bool stream_tiles(Stream *s);

// stream_relay.c: needs relay > 1 -------------------------------------------------------

// How far warps are apart; what is read before and after the rows written.
void relay_plan(Stream *s);
void make_rings(Stream *s);
int64_t ring_rows(const Stream *s, int g);
// Cells of a row that an item moves between a ring and memory, and which each is.
int64_t relay_pieces(const Stream *s);
const Arith *relay_cell(Stream *s, int64_t piece);
// A value in memory is copied, where copies are.
void relay_enter(Stream *s, int g, int64_t piece, const KExpr *value);
const KExpr *relay_left(Stream *s, int g, int64_t piece);
// The warp's rows from the one before it; a cell for the one after it.
void relay_take(Stream *s);
void relay_pass(Stream *s, int g, int64_t c, const KExpr *value);

// stream.c --------------------------------------------------------------------------------

// A cell of what the kernel begins with, in memory.
const KExpr *stream_input(Stream *s, int g);
// A place along an axis, by a name; inside: it is in the grid, and so is what it reads.
const Arith *stream_place(Stream *s, const char *name, const Arith *place, int axis,
                          bool inside);
// What a field is computed as at the cell.
const KExpr *stream_value(Stream *s, const Field *field);

// Opens an `if` for those of n conditions that are not known to hold.
void stream_if(Stream *s, const Arith *const *cond, int n);

// stream_real.c ---------------------------------------------------------------------------

// May what a cell is computed with fail for cells that are not those of a state?
bool stream_may_fail(const Stream *s, const Block *made, const KExpr *value);
// If so, these open an `if` for a row, which may be beyond the grid, and for a cell of it
// being computed from cells of a state; line (three dimensions) and col: in the group's.
void stream_real_row(Stream *s, const Field *field, const Arith *row, Part part);
void stream_real_place(Stream *s, const Field *field, const Arith *line, const Arith *col,
                       Part part);

// stream_rows.c: needs in_rows ------------------------------------------------------------

void make_windows(Stream *s);
// A cell of a window, as seen from the one computed.
const KExpr *window_load(Stream *s, const Field *field, int64_t age, int64_t j, int64_t c);
// Loops over a row: of the input, of a field, and from a field to an array of the result.
void rows_take(Stream *s, int g, const Arith *row, Part part);
void rows_compute(Stream *s, const Field *field, const Arith *row, Part part);
void rows_write(Stream *s, int g, const Field *field, const Arith *row, Part part);

// stream_cells.c ------------------------------------------------------------------------

// Declares a variable of a grid's type where statements go.
Var *stream_declare(Stream *s, const char *name, int grid, const KExpr *value);
// A cell of the window of a field, of the row computed so many iterations ago: row j of the
// lane, column c of it; as many more on each side as are reached.
Var *cell_var(Stream *s, const Field *field, int64_t age, int64_t j, int64_t c);
// Which fields have cells that lanes give each other, and the local memory that they need.
void make_shared(Stream *s);
// At the beginning of an iteration: what neighbours read is published, where it is known.
void exchange_older(Stream *s);
// After fields of the same row have been computed: what neighbours read at once.
void exchange_new(Stream *s, Field *const *field, int n);
// What a field is computed from is fetched from other lanes, where that has not been done.
void fetch_sources(Stream *s, const Field *reader);

#endif
