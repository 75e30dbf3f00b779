// SPDX-License-Identifier: Apache-2.0
//
// The report of a tuning, from its record: plots, and a page of them.

#ifndef FW_REPORT_RUN_H
#define FW_REPORT_RUN_H

#include "report/analysis.h"

// One drawing: svg is false where the record has nothing for it.
typedef struct {
    const char *name;  // of its file
    const char *about; // what it shows and how to read it
    bool (*svg)(Buf *out, const Analysis *analysis, Arena *arena);
} RunPlot;

enum { RUN_PLOTS = 9 };
extern const RunPlot run_plot[RUN_PLOTS];

// A page of HTML that needs nothing else: no script, no other file, no network.
void report_run_page(Buf *out, const Analysis *analysis, Arena *arena);
// NAME.svg a plot into a folder, made if missing; false with a diagnostic.
bool report_run_svg(const Analysis *analysis, const char *folder, Arena *arena,
                    Diags *diags);

// highlight.c: text of C, OpenCL C or CUDA as HTML, its tokens in <span class="...">:
// k keywords and types, b built-in functions, n numbers, s strings, c comments,
// p preprocessor.
void highlight_c(Buf *out, const char *text);

#endif
