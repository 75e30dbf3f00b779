// SPDX-License-Identifier: Apache-2.0
//
// Spaces that somebody has measured from end to end, as others publish them: results in the
// T4 format (FAIR auto-tuning results, JSON), cache files of Kernel Tuner and results of
// KTT, gzipped or not. A recorded space stands in for a device: every point has its time
// and what measuring it took.

#ifndef FW_STORE_RECORDED_H
#define FW_STORE_RECORDED_H

#include "search/encode.h"

#include <jansson.h>

typedef struct {
    double value;          // of the objective, as recorded; NAN: the configuration failed
    double cost_s;         // building and running it, as recorded
    double build_s, run_s; // parts of it: compilation, and all runs
    double twice[2]; // measured two times over: of the two halves of its runs the least, or
                     // what `passes` has; NAN: no more than one run
    LaunchShape launch; // all 0 where the file has none
    int order;          // its place among the points of the file, from 0
} RecordedPoint;

typedef struct {
    Space *space;          // valid are exactly the recorded points
    const char *name;      // the file's, without folders and endings
    const char *device;    // "" where the file does not say
    const char *objective; // "time", "GFLOP/s", ...
    bool launches;         // some points have their launch
    bool maximise;         // the objective is better when it is higher
    int n, nvalid;
    double least, most; // of the valid values
    RecordedPoint *at;  // by space_number
    Arena *arena;
} Recorded;

// NULL with a diagnostic: the world's if the file cannot be read, else the user's, which
// says where the text is wrong. A cache file that was not closed, since the tuner that
// wrote it was killed, is read up to its last whole line. objective: "max GB/s", the number
// of each point that counts; NULL: what the file says. Owner: the caller.
Recorded *recorded_read(const char *path, const char *objective, Diags *diags);
Recorded *recorded_parse(const char *name, const char *text, size_t len, Diags *diags);
void recorded_free(Recorded *recorded); // accepts NULL

// A file of JSON as Python and Kernel Tuner write it: with NaN, or without its end. NULL
// with a diagnostic. text is changed.
json_t *recorded_load(const char *name, char *text, size_t len, Diags *diags);
// As much of a cache file as are whole lines, without its end.
size_t recorded_body(const char *text, size_t len);

// How far two measurements of a point are apart, relative to the lesser: the mean over
// those that have two, n of them; NAN: none. No prediction can be nearer than that to
// either.
double recorded_noise(const Recorded *recorded, int *n);

// Is an objective of this name to be high? A rate ("GB/s") or a score.
bool recorded_is_rate(const char *objective);
// What "max GB/s" is about, and whether it is to be high: as it says, else as its name
// does.
const char *recorded_objective(const char *text, bool *most);

// For search->launches and encode_launches.
LaunchShapes recorded_launches(const Recorded *recorded);

// The cost that a strategy is told, least for the best; INFINITY if the point failed.
double recorded_cost(const Recorded *recorded, const RecordedPoint *point);
// The numbers of all points in order of cost, of equal ones the first first. Owner: the
// caller, free.
int *recorded_order(const Recorded *recorded);

#endif
