// SPDX-License-Identifier: Apache-2.0
//
// The figures of paper 002 from evaluations of recorded spaces, as text tables. Each says
// which figure it is of; bench/papers/two_stages.py has Figure 1, the plots, and kinds of
// models beside one another.

#ifndef FW_REPORT_STAGES_H
#define FW_REPORT_STAGES_H

#include "evaluate/stages.h"

// A line on the record, the accuracy by training points (Figures 4 to 7), and slowdowns by
// the points of both stages (Figures 11 to 14).
void report_stages(Buf *out, const Stages *stages);

#endif
