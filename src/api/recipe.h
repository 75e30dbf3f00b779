// SPDX-License-Identifier: Apache-2.0
//
// recipe: what it takes to run a point in another program: the kernels' text, the arrays
// they work on, the launches. What the library loads, and what `emit --host` prints.

#ifndef FW_API_RECIPE_H
#define FW_API_RECIPE_H

#include "tune/tune.h"

typedef struct {
    const char *problem; // "jacobi2d N=4096 M=4096"
    const char *point;
    const Target *target;
    const char *source, *options;
    const Argument *argument; // in the order of a job's buffers
    int nargument;
    Job job; // its launches and scratch buffers; the texts are NULL
} Recipe;

// All of it in arena; false with diagnostics.
bool recipe_make(const Ways *ways, const Point *point, Arena *arena, Recipe *recipe,
                 Diags *diags);

// Loaded: compiled for a queue of the caller's, in this process ------------------------

typedef struct Loaded Loaded;

// Compiles for the device of a queue (DeviceKind.adopt) and allocates scratch buffers; the
// recipe must live as long. NULL with a log. Owner: loaded_free.
Loaded *loaded_new(const Recipe *recipe, void *queue, Buf *log);
void loaded_free(Loaded *loaded); // accepts NULL
const DeviceInfo *loaded_device(const Loaded *loaded);
// Puts the launches into the queue, and does not wait. buffer: a handle an argument
// (DeviceKind.lend). False with a log: nothing or not all was put there.
bool loaded_run(const Loaded *loaded, void *queue, void *const *buffer, int n, Buf *log);
// The same on arrays in this process's memory, and waits.
bool loaded_run_host(const Loaded *loaded, void *const *array, int n, Buf *log);

// Does a name mean something already in the programs of recipe_host?
bool recipe_reserved(const char *name);
// host_text.c: a program in C that runs the recipe without forewarp: header and body. stem:
// of the file names and, as C allows, of the functions: "jacobi2d". False with a
// diagnostic.
bool recipe_host(const Recipe *recipe, const char *stem, Buf *header, Buf *body,
                 Diags *diags);

#endif
