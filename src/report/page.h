// SPDX-License-Identifier: Apache-2.0
//
// The page of one tuning, or of several side by side, from their records.

#ifndef FW_REPORT_PAGE_H
#define FW_REPORT_PAGE_H

#include "report/analysis.h"

// One file of HTML that draws itself (plot.js, verdict.js, page.js) and loads nothing else.
// of: one for each run, at least one; an analysis with no `ok` is left out. live: the run
// goes on, and the page loads itself again.
void report_page(Buf *out, const Analysis *const *of, int n, bool live);

#endif
