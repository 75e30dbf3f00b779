// SPDX-License-Identifier: Apache-2.0
//
// The figures and numbers of 000 (sections 2, 7 and 8) from an evaluation, as text tables
// and as SVG files. Figures keep the paper's numbers; its radar plots are heat maps here.

#ifndef FW_REPORT_KNN_H
#define FW_REPORT_KNN_H

#include "model/eval.h"

void report_knn(Buf *out, const Eval *eval);
// Writes figure2.svg to figure7.svg and correlation.svg; false with a diagnostic.
bool report_knn_svg(const Eval *eval, const char *folder, Diags *diags);

// What the figures are made of, for other writers -----------------------------------------

// The size that figures 3 and 5 show: the first that begins with 4096, else the largest.
int report_knn_size(const Dataset *data);

enum { KNN_STAGES = 3 };
extern const char *const knn_stage_name[KNN_STAGES];
// Seconds by stage, of a program, or of all if program is NULL; false if not recorded.
bool report_knn_stages(const Dataset *data, const char *program, double s[KNN_STAGES]);

// The features of the best point of a group, or their means over all rows of its size if
// group is negative, each from 0 (the least at that size) to 1 (the most).
void report_knn_shape(const Dataset *data, int size, int group, double *share);

#endif
