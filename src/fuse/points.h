// SPDX-License-Identifier: Apache-2.0
//
// points: the ways to run a script as a space of parameters.
//
//   cover     the sets of calls that share a kernel, `123|456`; by the words they move
//   threadsV  of the kernel whose first call is V, the threads an instance of each of its
//             calls, in their order: `3.3.1`
//   styleV    how its elements move and are held: a row of the table in points.c
//   blockV    instances of a block at a time
//
// Where V is not the first call of a kernel, its parameters are `-`, `-` and 0. Every valid
// point is a solution (execute.h) that the device can hold, and no two are the same one.

#ifndef FW_FUSE_POINTS_H
#define FW_FUSE_POINTS_H

#include "fuse/execute.h"
#include "space/space.h"

// COVERS_MOST: of more, those that move the fewest words are in the space.
enum { COVERS_MOST = 500 };

typedef struct ScriptSpace ScriptSpace;

// limit as of fuse_space. NULL with a diagnostic: an element fits no kernel on the device,
// or the script has more calls than a space has parameters for. Owner: script_space_free.
ScriptSpace *script_space_new(const Script *script, int limit, int64_t instances,
                              const DeviceInfo *device, Diags *diags);
void script_space_free(ScriptSpace *s); // accepts NULL
Space *script_space_points(const ScriptSpace *s);
const FuseSpace *script_space_sets(const ScriptSpace *s);
const DeviceInfo *script_space_device(const ScriptSpace *s);

// The solution of a valid point.
void script_solution(const ScriptSpace *s, const Point *point, Solution *solution);
int script_kernels(const ScriptSpace *s, const Point *point); // how many it has
// The point of a solution; false: its cover is none of the space's.
bool script_point(const ScriptSpace *s, const Solution *solution, Point *point);
// Every call a kernel of its own, each the first way it can run.
void script_plain(const ScriptSpace *s, Point *point);
// The kernels of the point's cover, each the first way it can run that has what is named:
// parameters by bits. Where none has, the point stays invalid.
void script_complete(const ScriptSpace *s, uint64_t named, Point *point);

// Every kernel of the space; those that differ in `block` alone come one after another, and
// have the same family.
typedef void ScriptEach(void *user, const FusedKernel *kernel, int family);
void script_each_kernel(const ScriptSpace *s, ScriptEach *each, void *user);

#endif
