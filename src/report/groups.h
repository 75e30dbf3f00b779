// SPDX-License-Identifier: Apache-2.0
//
// The figures and tables of paper 001 from a study. It only arranges numbers:
// evaluate/study.c makes them.

#ifndef FW_REPORT_GROUPS_H
#define FW_REPORT_GROUPS_H

#include "evaluate/study.h"

void report_groups(Buf *out, const Study *study); // all of sections 5 and 8, and appendix A
// The loading that forests pick, stencil by stencil, and Table 6.
void report_forest(Buf *out, const Study *study);
// Steps of a heuristic file for what sections 5.5 and 5.6 still want of a stencil: its
// optimisations combined, and the best points of all others. False if it has all of them.
bool report_wanted(Buf *out, const Study *study, const StudyStencil *stencil);

#endif
