// SPDX-License-Identifier: Apache-2.0
//
// Points as rows of numbers, for strategies that model costs.

#ifndef FW_SEARCH_ENCODE_H
#define FW_SEARCH_ENCODE_H

#include "space/space.h"

// Columns are between 0 and 1; those of one parameter may share a group. Parameters of one
// value have none.
enum { ENCODE_WORDS_MOST = 8, ENCODE_COLUMNS_MOST = SPACE_PARAMS_MAX * ENCODE_WORDS_MOST };

// The first launch of a point: how many groups there are, and items in one.
typedef struct {
    double groups[3], local[3];
} LaunchShape;

// Where launches are known before a point is run. No shape: nowhere.
typedef struct {
    bool (*shape)(const void *user, const Point *point, LaunchShape *shape);
    const void *user;
} LaunchShapes;
enum { LAUNCH_COLUMNS = 9 };

typedef struct {
    const Space *space;
    int d, ngroup;
    int *group;                      // of each column
    int first[SPACE_PARAMS_MAX];     // column of each parameter
    int width[SPACE_PARAMS_MAX];     // its columns
    double *value[SPACE_PARAMS_MAX]; // width of them a value of its domain
    LaunchShapes launches;
} Encoding;

Encoding *encode_new(const Space *space);
// As many columns more: logarithms of groups and of items a group along each axis, and of
// all groups, items of a group, and items. Those between 0 and 1 are the others. Limits and
// waste lie along them: a group may have 1,024 items, a tile be larger than the image.
void encode_launches(Encoding *encoding, LaunchShapes launches);
void encode_free(Encoding *encoding); // accepts NULL
void encode_point(const Encoding *encoding, const Point *point, double *row);

#endif
