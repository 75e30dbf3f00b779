// SPDX-License-Identifier: Apache-2.0
//
// Plots as SVG text, over plain arrays: lines and steps, dots, bars of rows, heat maps. A
// drawing is opened, takes one or more plots at places of their own, and is closed.
//
// Values that are not finite (or not positive on a logarithmic axis) are left out. There
// is no script and no outside reference in the output, so it can stand in any page.

#ifndef FW_REPORT_SVG_H
#define FW_REPORT_SVG_H

#include "base/base.h"

void svg_open(Buf *out, int width, int height); // unit: pixels
void svg_close(Buf *out);
// Text where XML or HTML stands: & < > " escaped, control characters as spaces.
void svg_escape(Buf *out, const char *text);

// Where a plot stands in its drawing, and what is written around it. Strings may be NULL.
typedef struct {
    double x, y, width, height; // legend and labels included
    const char *title, *x_label, *y_label;
    bool x_log, y_log;
    double y_low, y_high; // the y axis, where y_low < y_high; else from the values
} SvgPlot;

typedef struct {
    const char *name; // NULL: not in the legend
    const double *x, *y;
    int n;
    int colour; // number in the palette, taken modulo its length
    bool dashed, step;
    bool dots;     // no line
    bool hollow;   // rings, not dots
    double radius; // of dots; 0: 1.8
    const char *const
        *tip; // shown when a pointer rests on a dot, or NULL; each may be NULL
} SvgSeries;

// Lines, and dots of the series that have none.
void svg_lines(Buf *out, const SvgPlot *plot, const SvgSeries *series, int nseries);

// How many values lie in each of nbin equal parts of the axis; the axis is x.
void svg_histogram(Buf *out, const SvgPlot *plot, const double *value, int n, int nbin);

// A row a label: a bar from 0 to its value, which is written behind it.
void svg_rows(Buf *out, const SvgPlot *plot, const char *const *label, int n,
              const double *value, int decimals);

// What became of the values that share a label: the least and the middle one, and the half
// of all values around it. NAN: there are none.
typedef struct {
    const char *label;
    double least, low, median, high;
    int n;
} SvgRange;

// A column a range, on a common y axis.
void svg_ranges(Buf *out, const SvgPlot *plot, const SvgRange *range, int n);

// value[row * ncolumn + column], shaded from low (light) to high (dark), on a logarithmic
// scale if y_log; each cell also says its value, with so many decimals.
void svg_heat(Buf *out, const SvgPlot *plot, const char *const *row, int nrow,
              const char *const *column, int ncolumn, const double *value, int decimals);

#endif
