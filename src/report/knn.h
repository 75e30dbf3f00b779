// SPDX-License-Identifier: Apache-2.0
//
// How soon a model finds fast points (000, section 8: Figure 7, and means), as text tables.
// bench/papers/features.py has the other figures.

#ifndef FW_REPORT_KNN_H
#define FW_REPORT_KNN_H

#include "model/eval.h"

void report_knn(Buf *out, const Eval *eval);

#endif
