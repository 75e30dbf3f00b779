// SPDX-License-Identifier: Apache-2.0
//
// Plots as SVG text, over plain arrays: bars, lines and steps, scatter, heat maps. A
// drawing is opened, takes one or more plots at places of their own, and is closed.
//
// Values that are not finite (or not positive on a logarithmic axis) are left out. There
// is no script and no outside reference in the output, so it can stand in any page.

#ifndef FW_REPORT_SVG_H
#define FW_REPORT_SVG_H

#include "base/base.h"

void svg_open(Buf *out, int width, int height); // unit: pixels
void svg_close(Buf *out);

// Where a plot stands in its drawing, and what is written around it. Strings may be NULL.
typedef struct {
    double x, y, width, height; // legend and labels included
    const char *title, *x_label, *y_label;
    bool x_log, y_log;
    double y_low, y_high; // the y axis, where y_low < y_high; else from the values
} SvgPlot;

// nlabel groups of nseries bars side by side, or on one another if stacked.
// value[label * nseries + series]; one series has no legend.
void svg_bars(Buf *out, const SvgPlot *plot, const char *const *label, int nlabel,
              const char *const *series, int nseries, const double *value, bool stacked);

typedef struct {
    const char *name; // NULL: not in the legend
    const double *x, *y;
    int n;
    int colour; // number in the palette, taken modulo its length
    bool dashed, step;
} SvgSeries;

void svg_lines(Buf *out, const SvgPlot *plot, const SvgSeries *series, int nseries);
void svg_scatter(Buf *out, const SvgPlot *plot, const SvgSeries *series, int nseries);

// value[row * ncolumn + column], shaded from low (light) to high (dark), on a logarithmic
// scale if y_log; each cell also says its value, with so many decimals.
void svg_heat(Buf *out, const SvgPlot *plot, const char *const *row, int nrow,
              const char *const *column, int ncolumn, const double *value, int decimals);

#endif
