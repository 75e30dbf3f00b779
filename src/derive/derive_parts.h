// SPDX-License-Identifier: Apache-2.0
//
// What the files of the derivation share: the shape of a program, and questions about its
// expressions.

#ifndef FW_DERIVE_DERIVE_PARTS_H
#define FW_DERIVE_DERIVE_PARTS_H

#include "derive/derive.h"
#include "nest/nest.h"
#include "nest/pipeline.h"

// Keyed folds, of all in a program the most.
typedef struct {
    int64_t keys, elements; // keys 0: there are none
    double bytes;           // of the array of one
    bool alone, wide;       // updates cannot be atomic; would be of 8 bytes
    bool whole;             // some are not in a map
    int64_t columns;        // so many in a map read neighbouring elements; 0: none do
    int64_t rows, length;   // so many others, elements of the longest; 0: there are none
    bool tiles;             // some of these are tiles
    int64_t row; // so many elements side by side have different keys; 0: not known
    bool shows;  // their bits show in which order they are done
    bool coarse; // and long sums lose digits that matter
} Keyed;

// What the program is made of, found once: it decides which parameters there are.
typedef struct {
    const Program *program;
    TextOf text_of;         // what a text for the device writes out
    bool lowered;           // it says itself which threads do what
    int dims;               // most dimensions of one nest
    bool rectangular;       // some nest is one map over all its dimensions
    bool window;            // some nest reads windows a step of 1 apart
    int64_t windows;        // elements of the longest that share what they fold; 0: none do
    bool reduction;         // a whole array is reduced
    int64_t whole;          // elements of the longest such fold, with those of folds in it
    double whole_work;      // operations of the fold that has most
    int64_t scan;           // bytes of an element of prefixes of whole arrays; 0: none
    bool whole_scan;        // a prefix is not one of rows alone
    int64_t scan_most;      // elements of the longest of these that adds up floats
    bool scan_columns;      // there are prefixes of columns
    int64_t order, ordered; // bytes of an element of folds that keep their order; how many
    bool rows;              // a chain of nests, of which some fold
    bool held;              // of arrays that a group keeps
    bool held_rows;         // an item folds a row of one
    int64_t fold;           // length of folds that are all that a chain does; 0: none
    int64_t folds;          // how many there are of them
    bool columns;           // what neighbouring ones read are neighbours
    bool same;              // they are one place, for each element folds all of one array
    bool lines;             // chains go along rows, whose elements are neighbours
    bool long_rows;         // prefixes of rows that a group cannot hold, or of few
    bool walks;             // an item may go through a row of its own
    bool alone;             // it does in some chain, as all items of a group would
    bool turned;            // or through a column, of which it makes a row
    int back;               // while the shape is found: transpositions around
    bool near;              // items of a chain read neighbours
    int64_t row, short_row; // elements of the longest of these, at usual sizes; at least
    int64_t room;           // bytes of local memory for rows
    int64_t steps_room;     // and for steps that are not launched
    int64_t row_bytes;      // what a group may hold of one, where that has room
    int64_t scan_bytes;     // what it must: of prefixes that its items share, of loops
    int64_t steps_words;    // more for steps by more than 256 items
    int64_t item_bytes;     // of the largest result of a fold that items share
    bool product;           // a fold over each pair of rows of two arrays
    int unit_bytes;         // of its factors on matrix units; 0: they do not do it
    int64_t tall, wide;     // how many rows of the one, and of the other, at usual sizes
    int64_t batch, depth;   // of such products; the length of the fold, at usual sizes
    int64_t split;          // its most, where the fold can have parts; 0: it cannot
    double least, most;     // outputs of the product, whatever the sizes
    int64_t common;         // divides the lengths of the folds of all products
    bool open_product;      // a length of one has no value
    bool integer;           // it is of integers
    int64_t taps; // its fold is of rows, the shortest so long, as windows are; 0: not
    bool staged;  // groups can copy its factors
    Keyed keyed;
    int64_t inner;          // longest short reduction inside a nest; 0: none
    double text, unrolled;  // most operations written out for one output; with short folds
    int64_t halo[DIMS_MAX]; // largest window size minus 1, outermost dimension first
    int64_t few[DIMS_MAX];  // elements along a short axis, for one item; 0: it is long
    TimeLoop steps;         // what all time loops have in common; count 0: there are none
    bool stream;            // stages are kernels in which warps walk along the first axis
    int64_t tile_bytes;     // bytes of one element of all windows, for local memory
} Shape;

// A parameter on which the order of folds depends, and its value where that is the
// program's.
enum { ORDER_MOST = SPACE_PARAMS_MAX };
typedef struct {
    char name[16], value[24];
} OrderParam;

enum { TILES_MOST = 17 };
enum { GROUPS_MOST = 65535 }; // along y and z, on CUDA

struct Derivation {
    const Program *program;
    DeviceInfo device;
    StageRates rates; // of the device
    Space *space;
    Shape shape;
    Rewriter normal;              // the form that all points begin with
    bool deep;                    // it is nested too deeply to be derived
    OrderParam order[ORDER_MOST]; // norder of them
    int norder;
    int64_t items, each; // for whom strict folds and prefixes of groups are, whoever does
                         // them; 0: as the point says
    Pipeline *pipeline;  // NULL: it has one stage
    bool items_list;     // it has lists of small arrays, of which items have one each
    Point plain;
    Point tiles[TILES_MOST]; // ntiles of them: of a product, the best by an estimate first
    int ntiles;
};

// derive_order.c: for --math strict, once the space is made.
void settle_order(Derivation *derivation, Diags *diags);
void order_plain(const Derivation *derivation, Point *point);
// Has some point that value, as far as the order of folds says?
bool order_has(const Derivation *derivation, const char *name, int64_t value);
// May a fold that can share the pass of a map do so? Not where the bits are the program's
// and show in which order it was.
bool may_share_pass(const Derivation *derivation, const Expr *fold);
// derive_space.c
bool sizes_are_known(const Derivation *derivation); // none is generic
// Does the compiler of a processor make vectors by itself? Where it knows the sizes.
bool cpu_makes_vectors(const Derivation *derivation);
// As derive_new, whatever the program's arithmetic.
Derivation *derive_open(const Program *program, const DeviceInfo *device, Diags *diags);
int64_t derive_number(const Derivation *derivation, const Point *point, const char *stem,
                      int x); // of lx, by, ...; 1 if there is no such parameter
int64_t derive_param(const Derivation *derivation, const Point *point, const char *name);
bool derive_word(const Derivation *derivation, const Point *point, const char *name,
                 const char *word);
// derive_fold.c: do the items of a group share rows, at least those that are no columns?
bool by_groups(const Derivation *d, const Point *point);
// Items of a group that has one dimension: beside a product all that a tile has.
int64_t line_items(const Derivation *d, const Point *point);

// derive_product.c: the parameters of products, and points to try first.
void add_product_params(Derivation *derivation, Diags *diags);
// Valid points to try first, the best by an estimate first; how many.
int product_first(const Derivation *derivation, Point *point, int max);
int64_t fold_room(const Derivation *derivation); // bytes of local memory for rows
// And of steps of prefixes that are rows; more are launched, but for a processor.
int64_t steps_room(const Derivation *derivation);
bool has_folds(const Shape *shape); // folds or prefixes, which have parameters
// Terms of a fold of that many that one accumulator of any point adds.
int64_t longest_chain(int64_t terms);
// Has a prefix of a whole array more terms than one accumulator should add? (Of floats near
// 1 it adds 2^24.)
bool has_long_scan(const Derivation *derivation);
// Parts of each fold or prefix, at least so long each and of so many elements together;
// what has some already keeps them.
void add_parts(Derivation *derivation);
// Beside a product folds and prefixes have parts of their own number, which fill a GPU.
bool own_parts(const Derivation *derivation);
int64_t parts_to_fill(const Shape *shape);
// Parameters of reductions and of folds of rows.
void add_fold_params(Derivation *derivation, Diags *diags);
// How many groups share a reduction. Needs: add_fold_params came before.
void add_group_params(Derivation *derivation, Diags *diags);
// On a GPU the items of a group share a chain: one item a row would leave most of it idle.
void fold_plain(const Derivation *derivation, Point *point);
bool derive_fold_first(const Derivation *derivation, int i, Point *point);
// Strips of rows that items go through; points to try first that have them.
void add_strip_params(Derivation *derivation, Diags *diags);
void strips_plain(const Derivation *derivation, Point *point);
bool strips_first(const Derivation *derivation, int i, Point *point);
// Prefixes of few floats one after the other, for the reference.
void order_prefixes(const Derivation *derivation, Point *point);
// derive_by_key.c: keyed folds, or maps of them; their parameters, the plain choice and
// those to try first.
void note_keyed(Shape *shape, const Expr *expr);
void add_keyed_params(Derivation *derivation, Diags *diags);
void add_keyed_groups(Derivation *derivation); // how many groups fold by key
void keyed_plain(const Derivation *derivation, Point *point);
bool keyed_first(const Derivation *derivation, int i, Point *point);
// Whether a product of the program can be done on matrix units is tried.
void settle_products(Derivation *derivation, Diags *diags);
void product_options(const Derivation *derivation, const Point *point,
                     KernelOptions *options);
bool set_number(const Derivation *derivation, Point *point, const char *name,
                int64_t value); // false where there is no such parameter or value
// Sets what a text says, "lx=4 fold=group", as far as there are such parameters and values.
void set_values(const Derivation *derivation, Point *point, const char *format, ...)
    FW_PRINTF(3, 4);
// The same, if the point is valid then; else it stays as it is.
bool try_values(const Derivation *derivation, Point *point, const char *format, ...)
    FW_PRINTF(3, 4);
void constrain(Derivation *derivation, Diags *diags, const char *format, ...)
    FW_PRINTF(3, 4);
// derive.c: an iterate as iterateStream, with all that is short written out; NULL: it is
// not of that form.
const Expr *derive_steps(Ir *ir, Expr *iterate);
// The kernels of a point that warps walk through, as time loops of one step; count 0: none.
void derive_passes(const Derivation *derivation, const Point *point, TimeLoop *passes);
// derive_stream.c
bool has_loop(const Expr *expr); // are there time loops, not in the functions below?
// What the time loops of a program are, of its expression at host level.
void note_steps(Derivation *derivation, Expr *expr);
bool has_stream(const Derivation *derivation);
// Are the stages of the pipeline those of a step of such a loop?
bool fuses_stages(const Derivation *derivation);
bool streams_rows(const Derivation *derivation);
// Do warps one below another keep a tile of rows?
bool has_tiles(const Derivation *derivation);
void add_stream_params(Derivation *derivation, Diags *diags);
// derive_stream.c: rows that an iteration of a stream's loop computes.
int64_t stream_rows(const TimeLoop *loop);
// derive_first.c: is point number n valid, and another one than the plain one and those
// before it?
bool is_new(const Derivation *derivation, const Point *point, int n);
// stream_first.c: valid points to try first, likely the fastest first; how many: after
// STREAMS_FEW only those that take no more than a share of the time of sweeps.
enum { STREAMS_FEW = 2 };
int stream_first(const Derivation *derivation, double share, Point *point, int max);
// The same of pipelines that stream.
int pass_first(const Derivation *derivation, Point *point, int max);
// May the stages of a program without time loops be kernels like those of one step?
bool may_stream(const Derivation *derivation);
void add_pass_params(Derivation *derivation, Diags *diags);
// Which covers have such kernels is tried; false: none has.
bool settle_passes(Derivation *derivation, Diags *diags);
// What is common to all and to another one.
void merge_loops(TimeLoop *all, const TimeLoop *found);

// derive_cover.c
// By which the covers of a space on this device are ordered.
StageRates cover_rates(const DeviceInfo *device);
// A stage that its kernel does not store, by the name that still holds it.
typedef struct {
    const Param *param;
    bool local; // it has a tile in local memory
} UnstoredStage;
// A let whose map makes parts of folds, and stores what is made with them.
typedef struct {
    const Param *param;
    bool group;         // a group does a part, else an item
    int64_t rows, near; // as of the rule foldTogether
} Together;
typedef struct {
    VEC(UnstoredStage) stages; // of each let
    VEC(Together) together;
} Unstored;
extern const char *const derive_axis[DIMS_MAX];              // what parameters call it
bool add_cover_params(Derivation *derivation, Diags *diags); // are there tiles?
// What must hold where there are tiles.
void constrain_placed(Derivation *derivation, const char *condition, Diags *diags);
void put_tile_bytes(const Derivation *derivation, Buf *text);
const char *derive_tiled(const Derivation *derivation); // holds where inputs have tiles
const char *cover_stored(const Derivation *derivation); // stores all stages; NULL: none
// All stages apart; or, as the plain point has it, joined where one goes on with what the
// other has point by point.
void cover_apart(const Derivation *derivation, Point *point);
void cover_plain(const Derivation *derivation, Point *point);
// Sets a cover by its number, with tiles where there can be some; false if there cannot.
bool cover_choose(const Derivation *derivation, Point *point, int cover, bool local);
// Rewrites the region so that what each kernel stores is a toGlobal of one map.
void cover_begin(const Derivation *derivation, const Point *point, Rewriter *r,
                 Unstored *unstored);
// Makes windows of tiles windows that the map at a position reads itself.
void cover_pull(Rewriter *r, Path at, const Unstored *unstored);
// The stage of a name that is not stored; NULL: it is no such.
const UnstoredStage *cover_unstored(const Unstored *unstored, const Param *param);
// Does a let name what the steps of a loop read, each of which would compute it again?
bool cover_before_steps(const Unstored *unstored, const Expr *let);
// Is what the windows look at copied to local memory? inputs: whether inputs are.
bool cover_copies(const Unstored *unstored, const Expr *window, bool inputs);

// Is it a map of which items have an element each, in any dimensions, but not of windows?
bool is_list(const Expr *map);
// Points to try first of lists of small arrays; likewise.
bool list_first(const Derivation *derivation, int i, Point *point);
// Items that keep small arrays of an element read it from local memory, as a plain point.
void list_plain(const Derivation *derivation, Point *point);
bool has_items(const Derivation *derivation); // of a group; else these are loops
// derive_together.c: how a point does folds together with the map that makes what they
// fold; false: it cannot.
bool together_parts(const Derivation *derivation, const Point *point, const Expr *map,
                    Together *parts);
bool together_first(const Derivation *derivation, int i, Point *point); // likewise

#endif
