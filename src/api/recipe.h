// SPDX-License-Identifier: Apache-2.0
//
// recipe: what it takes to run a point in another program: the kernels' text, the arrays
// they work on, the launches. What the library loads, and what `emit --host` prints.

#ifndef FW_API_RECIPE_H
#define FW_API_RECIPE_H

#include "tune/tune.h"

// A number of a job or an argument that depends on generic sizes.
typedef enum { OPEN_GLOBAL, OPEN_LOCAL, OPEN_ARG, OPEN_SCRATCH, OPEN_SHAPE } OpenKind;
typedef struct {
    OpenKind kind;
    int i, k;         // of launch i: extent or argument k; scratch i; argument i: extent k
    const char *text; // as arith_print writes it; of scratch: elements
    int64_t scale;    // times this: bytes of an element of scratch; else 1
} OpenNumber;

// What a size must satisfy: the first is a multiple of the second, or, where that is NULL,
// not negative.
typedef struct {
    const char *lhs, *rhs, *why;
} OpenCondition;

typedef struct {
    const char *name, *c_name; // c_name: none of the arguments', and none of a word of C
    SizeRange range;
    int64_t value; // of the problem
} RecipeSize;

// The launches, and the scratch buffers, of one of the rule's points.
typedef struct {
    int first, n, first_scratch, nscratch;
} Variant;

typedef struct {
    const char *problem; // "jacobi2d N=4096 M=4096"
    const char *point;   // or the rule
    const Target *target;
    const char *source, *options;
    const Argument *argument; // in the order of a job's buffers
    int nargument;
    Job job; // its launches and scratch buffers; the texts are NULL
    // The generic sizes, which the caller gives with each call.
    const RecipeSize *size;
    int nsize;
    const OpenNumber *open;
    int nopen;
    const OpenCondition *condition;
    int ncondition;
    Rule rule;                  // of one row, where there is one point
    Variant variant[RULE_ROWS]; // of each row
    int nvariant;
} Recipe;

// All of it in arena; false with diagnostics. rule: as text, or NULL: the point alone.
bool recipe_make(const Variants *variants, const Point *point, const char *rule,
                 Arena *arena, Recipe *recipe, Diags *diags);

// Loaded: compiled for a queue of the caller's, in this process ------------------------

typedef struct Loaded Loaded;

// Compiles for the device of a queue (DeviceKind.adopt) and allocates scratch buffers; the
// recipe must live as long. NULL with a log. Owner: loaded_free.
Loaded *loaded_new(const Recipe *recipe, void *queue, Buf *log);
void loaded_free(Loaded *loaded); // accepts NULL
const DeviceInfo *loaded_device(const Loaded *loaded);
// Generic sizes of the calls that follow, in the order of the recipe's; before, they are
// those of the problem. False with a log: there are not so many, or one is not in its
// range.
bool loaded_resize(Loaded *loaded, const int64_t *size, int n, Buf *log);
// Puts the launches into the queue, and does not wait. buffer: a handle an argument
// (DeviceKind.lend). False with a log: nothing or not all was put there.
bool loaded_run(const Loaded *loaded, void *queue, void *const *buffer, int n, Buf *log);
// The same on arrays in this process's memory, and waits.
bool loaded_run_host(const Loaded *loaded, void *const *array, int n, Buf *log);

// Does a name mean something already in the programs of recipe_host?
bool recipe_reserved(const char *name);

// What is compiled of a recipe for one device of this machine (DeviceKind.image).
typedef struct {
    const Recipe *recipe;
    const char *device; // as its driver calls it; "": any
    Buf image, symbols; // empty: the kernels' text alone
} HostPart;

// Compiles a part's kernels for a device, in this process. Owner: host_part_release. False
// with a diagnostic.
bool host_part_compile(HostPart *part, const char *device_id, Diags *diags);
void host_part_release(HostPart *part);

// host_text.c: a program in C that runs recipes of one problem, for devices of one target,
// without forewarp: header and body. It takes the part that is for its device. stem: of the
// file names and, as C allows, of the functions: "jacobi2d". False with a diagnostic.
bool recipe_host(const HostPart *part, int n, const char *stem, Buf *header, Buf *body,
                 Diags *diags);

#endif
