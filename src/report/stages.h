// SPDX-License-Identifier: Apache-2.0
//
// The figures of paper 002 from evaluations of recorded spaces, as text tables and as SVG
// files. Each says which figure it is of.

#ifndef FW_REPORT_STAGES_H
#define FW_REPORT_STAGES_H

#include "evaluate/stages.h"

// A line on the record, the accuracy by training points (Figures 4 to 7), and slowdowns by
// the points of both stages (Figures 11 to 14).
void report_stages(Buf *out, const Stages *stages);
// Figure 1 over all pairs of records of the same parameters; nothing where there are none.
void report_foreign(Buf *out, const Recorded *const *recorded, int n);
// What each kind of model does with the same first stages; of the evaluations those of a
// record follow one another.
void report_pickers(Buf *out, const Stages *stages, int n, int first);

// Writes NAME-error.svg, NAME-scatter.svg (Figures 8 to 10) and NAME-slowdown.svg; false
// with a diagnostic.
bool report_stages_svg(const Stages *stages, const char *folder, Diags *diags);

#endif
