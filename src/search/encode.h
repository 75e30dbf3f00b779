// SPDX-License-Identifier: Apache-2.0
//
// Points as rows of numbers, for strategies that model costs.

#ifndef FW_SEARCH_ENCODE_H
#define FW_SEARCH_ENCODE_H

#include "space/space.h"

// Columns are between 0 and 1; those of one parameter may share a group. Parameters of one
// value have none.
enum { ENCODE_WORDS_MOST = 8, ENCODE_COLUMNS_MOST = SPACE_PARAMS_MAX * ENCODE_WORDS_MOST };

typedef struct {
    const Space *space;
    int d, ngroup;
    int *group;                      // of each column
    int first[SPACE_PARAMS_MAX];     // column of each parameter
    int width[SPACE_PARAMS_MAX];     // its columns
    double *value[SPACE_PARAMS_MAX]; // width of them a value of its domain
} Encoding;

Encoding *encode_new(const Space *space);
void encode_free(Encoding *encoding); // accepts NULL
void encode_point(const Encoding *encoding, const Point *point, double *row);

#endif
