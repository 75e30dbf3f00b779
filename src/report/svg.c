// SPDX-License-Identifier: Apache-2.0
//
// Plots as SVG. Axes get round ticks (1, 2 or 5 times a power of ten) or decades; the
// palette is that of Okabe and Ito (2008), which colour-blind readers can tell apart.
#include "report/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TICKS_MAX = 16 };

static const char *const palette[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#8c6d31"};

static const char *colour_of(int i)
{
    return palette[i % COUNTOF(palette)];
}

// Elements ------------------------------------------------------------------------------

void svg_open(Buf *out, int width, int height)
{
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
               "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
               "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
               width, height, width, height, width, height);
}

void svg_close(Buf *out)
{
    buf_puts(out, "</svg>\n");
}

// Control characters have no place in XML, even escaped.
void svg_escape(Buf *out, const char *text)
{
    bool plain;
    size_t len = strlen(text);
    for (size_t i = 0, n; i < len; i += n) {
        n = text_step(text + i, len - i, &plain);
        switch (text[i]) {
        case '&': buf_puts(out, "&amp;"); break;
        case '<': buf_puts(out, "&lt;"); break;
        case '>': buf_puts(out, "&gt;"); break;
        case '"': buf_puts(out, "&quot;"); break;
        case '\t':
        case '\n': buf_putc(out, ' '); break;
        default: plain ? buf_write(out, text + i, n) : buf_putc(out, '?');
        }
    }
}

// anchor: start, middle or end; turn: degrees.
static void put_text(Buf *out, double x, double y, const char *anchor, double turn,
                     const char *extra, const char *text)
{
    if (!text || !text[0])
        return;
    buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s", x, y, anchor,
               extra);
    if (turn != 0)
        buf_printf(out, " transform=\"rotate(%g %.1f %.1f)\"", turn, x, y);
    buf_putc(out, '>');
    svg_escape(out, text);
    buf_puts(out, "</text>\n");
}

static void put_line(Buf *out, double x1, double y1, double x2, double y2,
                     const char *colour)
{
    buf_printf(out,
               "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
               x1, y1, x2, y2, colour);
}

static void put_rect(Buf *out, double x, double y, double width, double height,
                     const char *colour)
{
    buf_printf(out,
               "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
               x, y, fmax(width, 0), fmax(height, 0), colour);
}

// Axes ----------------------------------------------------------------------------------

typedef struct {
    double low, high; // values
    bool log;
    double from, to; // pixels of low and high
} Axis;

typedef struct {
    Axis x, y;
} Area;

static bool fits(const Axis *axis, double v)
{
    return isfinite(v) && (!axis->log || v > 0);
}

static double place(const Axis *axis, double v)
{
    double low = axis->low, high = axis->high;
    if (axis->log) {
        v = log10(v);
        low = log10(low);
        high = log10(high);
    }
    double share = fmin(fmax((v - low) / (high - low), 0), 1);
    return axis->from + share * (axis->to - axis->from);
}

static void stretch(Axis *axis, double v)
{
    if (!fits(axis, v))
        return;
    axis->low = fmin(axis->low, v);
    axis->high = fmax(axis->high, v);
}

static double round_step(double range)
{
    double raw = range / 6, power = pow(10, floor(log10(raw)));
    double lead = raw / power;
    return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

// The next of 1, 2 and 5 times a power of ten, upwards or downwards.
static double log_round(double v, bool up)
{
    static const double lead[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(v) + 1e-9));
    double best = power;
    for (int i = 0; i < COUNTOF(lead); i++) {
        if (up && lead[i] * power >= v * (1 - 1e-9))
            return lead[i] * power;
        if (!up && lead[i] * power <= v * (1 + 1e-9))
            best = lead[i] * power;
    }
    return best;
}

// Ticks of an axis of few decades at 1, 2 and 5 times powers of ten.
static int log_ticks(const Axis *axis, double tick[TICKS_MAX])
{
    int n = 0;
    for (double v = log_round(axis->low, true);
         v <= axis->high * (1 + 1e-9) && n < TICKS_MAX; v = log_round(v * 1.5, true))
        tick[n++] = v;
    return n;
}

// Makes the ends of an axis ticks; a degenerate range becomes one that can be drawn.
static void settle(Axis *axis)
{
    if (!(axis->low <= axis->high)) {
        axis->low = axis->log ? 1 : 0;
        axis->high = axis->log ? 10 : 1;
    }
    if (axis->log) {
        axis->low = log_round(axis->low, false);
        axis->high = log_round(axis->high, true);
        if (axis->high <= axis->low)
            axis->high = 10 * axis->low;
        return;
    }
    if (axis->high - axis->low <= 1e-12 * fmax(fabs(axis->low), fabs(axis->high)))
        axis->high = axis->low + fmax(fabs(axis->low), 1);
    double step = round_step(axis->high - axis->low);
    axis->low = step * floor(axis->low / step + 1e-9);
    axis->high = step * ceil(axis->high / step - 1e-9);
}

static int ticks_of(const Axis *axis, double tick[TICKS_MAX])
{
    int n = 0;
    if (axis->log) {
        double decades = log10(axis->high) - log10(axis->low);
        if (decades < 3)
            return log_ticks(axis, tick);
        double every = ceil(decades / (TICKS_MAX - 2));
        for (double e = ceil(log10(axis->low) - 1e-9); e <= log10(axis->high) + 1e-9;
             e += every)
            if (n < TICKS_MAX)
                tick[n++] = pow(10, e);
        return n;
    }
    double step = round_step(axis->high - axis->low);
    double first = ceil(axis->low / step - 1e-9);
    while (n < TICKS_MAX && (first + n) * step <= axis->high + 1e-9 * step) {
        tick[n] = (first + n) * step;
        n++;
    }
    return n;
}

static void put_y_axis(Buf *out, const Area *area)
{
    double tick[TICKS_MAX];
    int n = ticks_of(&area->y, tick);
    for (int i = 0; i < n; i++) {
        double y = place(&area->y, tick[i]);
        char text[32];
        snprintf(text, sizeof text, "%g", tick[i]);
        put_line(out, area->x.from, y, area->x.to, y, "#e0e0e0");
        put_text(out, area->x.from - 5, y + 4, "end", 0, "", text);
    }
    put_line(out, area->x.from, area->y.from, area->x.from, area->y.to, "#404040");
}

static void put_x_axis(Buf *out, const Area *area)
{
    double tick[TICKS_MAX];
    int n = ticks_of(&area->x, tick);
    for (int i = 0; i < n; i++) {
        double x = place(&area->x, tick[i]);
        char text[32];
        snprintf(text, sizeof text, "%g", tick[i]);
        put_line(out, x, area->y.from, x, area->y.from + 4, "#404040");
        put_text(out, x, area->y.from + 16, "middle", 0, "", text);
    }
    put_line(out, area->x.from, area->y.from, area->x.to, area->y.from, "#404040");
}

static void put_titles(Buf *out, const SvgPlot *plot, const Area *area)
{
    double middle = (area->x.from + area->x.to) / 2;
    double side = (area->y.from + area->y.to) / 2;
    put_text(out, middle, plot->y + 16, "middle", 0,
             " font-size=\"13\" font-weight=\"bold\"", plot->title);
    put_text(out, middle, plot->y + plot->height - 6, "middle", 0, "", plot->x_label);
    put_text(out, plot->x + 13, side, "middle", -90, "", plot->y_label);
}

// The room for text left of, right of and below the plot.
static Area make_area(const SvgPlot *plot, double left, double right, double below)
{
    Area area = {.x = {INFINITY, -INFINITY, plot->x_log, plot->x + left,
                       plot->x + plot->width - right},
                 .y = {INFINITY, -INFINITY, plot->y_log, plot->y + plot->height - below,
                       plot->y + 28}};
    if (plot->y_low < plot->y_high) {
        area.y.low = plot->y_low;
        area.y.high = plot->y_high;
    }
    return area;
}

// The y axis that the plot asks for is kept as it is.
static void settle_area(const SvgPlot *plot, Area *area)
{
    settle(&area->x);
    if (!(plot->y_low < plot->y_high))
        settle(&area->y);
}

static void put_key(Buf *out, double x, double y, const char *colour, bool dashed,
                    const char *name)
{
    buf_printf(out,
               "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
               "stroke-width=\"4\"%s/>\n",
               x, y, x + 18, y, colour, dashed ? " stroke-dasharray=\"5 3\"" : "");
    put_text(out, x + 23, y + 4, "start", 0, "", name);
}

// Roughly: an average character of the 11-pixel font is 6.2 wide.
static double text_width(const char *text)
{
    return text ? 6.2 * (double)strlen(text) : 0;
}

static double widest(const char *const *text, int n)
{
    double width = 0;
    for (int i = 0; i < n; i++)
        width = fmax(width, text_width(text[i]));
    return width;
}

// Columns -------------------------------------------------------------------------------

static void put_column_labels(Buf *out, const Area *area, const char *const *label, int n)
{
    double step = (area->x.to - area->x.from) / MAX(n, 1);
    bool turned = widest(label, n) > step - 4;
    for (int i = 0; i < n; i++) {
        double x = area->x.from + (i + 0.5) * step;
        put_text(out, x + (turned ? 4 : 0), area->y.from + 14, turned ? "end" : "middle",
                 turned ? -35 : 0, "", label[i]);
    }
}

static double room_below(const SvgPlot *plot, const char *const *label, int n,
                         double inside)
{
    double width = widest(label, n);
    bool turned = width > inside / MAX(n, 1) - 4;
    return 24 + (turned ? 0.58 * width : 0) + (plot->x_label ? 16 : 0);
}

// Series --------------------------------------------------------------------------------

static Area make_series_area(const SvgPlot *plot, const SvgSeries *series, int n)
{
    double right = 0;
    for (int s = 0; s < n; s++)
        right = fmax(right, series[s].name ? text_width(series[s].name) + 40 : 0);
    Area area = make_area(plot, 60, fmax(right, 24), plot->x_label ? 44 : 28);
    for (int s = 0; s < n; s++)
        for (int i = 0; i < series[s].n; i++) {
            stretch(&area.x, series[s].x[i]);
            stretch(&area.y, series[s].y[i]);
        }
    settle_area(plot, &area);
    return area;
}

static void put_series_frame(Buf *out, const SvgPlot *plot, const Area *area,
                             const SvgSeries *series, int n)
{
    put_y_axis(out, area);
    put_x_axis(out, area);
    put_titles(out, plot, area);
    for (int s = 0, k = 0; s < n; s++)
        if (series[s].name)
            put_key(out, area->x.to + 10, area->y.to + 8 + 18 * k++,
                    colour_of(series[s].colour), series[s].dashed, series[s].name);
}

static void put_path(Buf *out, const Area *area, const SvgSeries *s)
{
    bool drawn = false;
    buf_printf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"%s d=\"",
               colour_of(s->colour), s->dashed ? " stroke-dasharray=\"5 3\"" : "");
    for (int i = 0; i < s->n; i++) {
        if (!fits(&area->x, s->x[i]) || !fits(&area->y, s->y[i]))
            continue;
        double x = place(&area->x, s->x[i]), y = place(&area->y, s->y[i]);
        if (drawn && s->step)
            buf_printf(out, "H%.1f", x);
        buf_printf(out, "%c%.1f %.1f", drawn ? 'L' : 'M', x, y);
        drawn = true;
    }
    buf_puts(out, "\"/>\n");
}

static void put_dots(Buf *out, const Area *area, const SvgSeries *s)
{
    const char *colour = colour_of(s->colour);
    double radius = s->radius > 0 ? s->radius : 1.8;
    for (int i = 0; i < s->n; i++) {
        if (!fits(&area->x, s->x[i]) || !fits(&area->y, s->y[i]))
            continue;
        buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" ",
                   place(&area->x, s->x[i]), place(&area->y, s->y[i]), radius);
        if (s->hollow)
            buf_printf(out, "fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"", colour);
        else
            buf_printf(out, "fill=\"%s\" fill-opacity=\"%s\"", colour,
                       s->tip ? "0.65" : "0.5");
        if (!s->tip || !s->tip[i]) {
            buf_puts(out, "/>\n");
            continue;
        }
        buf_puts(out, "><title>");
        svg_escape(out, s->tip[i]);
        buf_puts(out, "</title></circle>\n");
    }
}

void svg_lines(Buf *out, const SvgPlot *plot, const SvgSeries *series, int nseries)
{
    Area area = make_series_area(plot, series, nseries);
    put_series_frame(out, plot, &area, series, nseries);
    for (int s = 0; s < nseries; s++)
        (series[s].dots ? put_dots : put_path)(out, &area, &series[s]);
}

// Histograms, rows and ranges -----------------------------------------------------------

void svg_histogram(Buf *out, const SvgPlot *plot, const double *value, int n, int nbin)
{
    int *count = xcalloc((size_t)nbin, sizeof *count), most = 0;
    Area area = make_area(plot, 60, 24, plot->x_label ? 44 : 28);
    for (int i = 0; i < n; i++)
        stretch(&area.x, value[i]);
    settle_area(plot, &area);
    double width = (area.x.to - area.x.from) / nbin;
    for (int i = 0; i < n; i++)
        if (fits(&area.x, value[i])) {
            int bin = (int)((place(&area.x, value[i]) - area.x.from) / width);
            most = MAX(most, ++count[MIN(MAX(bin, 0), nbin - 1)]);
        }
    area.y.low = 0;
    area.y.high = MAX(most, 1);
    settle(&area.y);
    put_y_axis(out, &area);
    for (int b = 0; b < nbin; b++) {
        double y = place(&area.y, count[b]);
        put_rect(out, area.x.from + b * width + 0.5, y, width - 1, area.y.from - y,
                 colour_of(0));
    }
    put_x_axis(out, &area);
    put_titles(out, plot, &area);
    free(count);
}

void svg_rows(Buf *out, const SvgPlot *plot, const char *const *label, int n,
              const double *value, int decimals)
{
    Area area = make_area(plot, widest(label, n) + 14, 52, plot->x_label ? 44 : 28);
    area.x.low = 0;
    for (int i = 0; i < n; i++)
        stretch(&area.x, value[i]);
    settle(&area.x);
    double step = (area.y.from - area.y.to) / MAX(n, 1);
    put_x_axis(out, &area);
    for (int i = 0; i < n; i++) {
        double y = area.y.to + i * step, v = fits(&area.x, value[i]) ? value[i] : 0;
        double x = place(&area.x, fmax(v, 0));
        char text[40];
        snprintf(text, sizeof text, "%.*f", decimals, value[i]);
        put_text(out, area.x.from - 6, y + step / 2 + 4, "end", 0, "", label[i]);
        put_rect(out, area.x.from, y + 0.2 * step, x - area.x.from, 0.6 * step,
                 colour_of(0));
        put_text(out, x + 5, y + step / 2 + 4, "start", 0, "",
                 isfinite(value[i]) ? text : "-");
    }
    put_line(out, area.x.from, area.y.from, area.x.from, area.y.to, "#404040");
    put_titles(out, plot, &area);
}

// The half of the values as a box, the middle one as a line, the least as a dot.
static void put_range(Buf *out, const Area *area, const SvgRange *r, double x, double width)
{
    double low = place(&area->y, r->low), high = place(&area->y, r->high);
    double median = place(&area->y, r->median), least = place(&area->y, r->least);
    buf_puts(out, "<g><title>");
    svg_escape(out, r->label);
    buf_printf(out, ": %d trials, best %.6g, median %.6g</title>\n", r->n, r->least,
               r->median);
    put_rect(out, x, high, width, fmax(low - high, 1), "#c3d9ea");
    put_line(out, x, median, x + width, median, "#0072b2");
    buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#d55e00\"/></g>\n",
               x + width / 2, least);
}

void svg_ranges(Buf *out, const SvgPlot *plot, const SvgRange *range, int n)
{
    const char **label = xcalloc((size_t)n + 1, sizeof *label);
    for (int i = 0; i < n; i++)
        label[i] = range[i].label;
    Area area = make_area(plot, 52, 10, room_below(plot, label, n, plot->width - 62));
    for (int i = 0; i < n; i++) {
        stretch(&area.y, range[i].least);
        stretch(&area.y, range[i].high);
    }
    settle_area(plot, &area);
    put_y_axis(out, &area);
    double step = (area.x.to - area.x.from) / MAX(n, 1);
    for (int i = 0; i < n; i++)
        if (range[i].n && fits(&area.y, range[i].least))
            put_range(out, &area, &range[i], area.x.from + (i + 0.2) * step, 0.6 * step);
    put_line(out, area.x.from, area.y.from, area.x.to, area.y.from, "#404040");
    put_column_labels(out, &area, label, n);
    put_titles(out, plot, &area);
    free(label);
}

// Heat maps -----------------------------------------------------------------------------

// share 0: almost white; 1: dark blue.
static void put_cell(Buf *out, double x, double y, double width, double height,
                     double share, const char *text)
{
    static const double light[] = {237, 244, 250}, dark[] = {8, 64, 129};
    char colour[8];
    int part[3];
    for (int i = 0; i < 3; i++)
        part[i] = (int)lround(light[i] + share * (dark[i] - light[i]));
    snprintf(colour, sizeof colour, "#%02x%02x%02x", part[0] & 255, part[1] & 255,
             part[2] & 255);
    put_rect(out, x, y, width, height, colour);
    put_text(out, x + width / 2, y + height / 2 + 4, "middle", 0,
             share > 0.5 ? " fill=\"white\"" : "", text);
}

void svg_heat(Buf *out, const SvgPlot *plot, const char *const *row, int nrow,
              const char *const *column, int ncolumn, const double *value, int decimals)
{
    double left = widest(row, nrow) + (plot->y_label ? 34 : 14);
    double below = room_below(plot, column, ncolumn, plot->width - left - 12);
    Area area = make_area(plot, left, 12, below);
    for (int i = 0; i < nrow * ncolumn; i++)
        stretch(&area.y, value[i]);
    Axis shade = area.y;
    if (!(shade.low < shade.high))
        settle(&shade);
    shade.from = 0;
    shade.to = 1;
    double width = (area.x.to - area.x.from) / MAX(ncolumn, 1);
    double height = (area.y.from - area.y.to) / MAX(nrow, 1);
    for (int r = 0; r < nrow; r++) {
        double y = area.y.to + r * height;
        put_text(out, area.x.from - 6, y + height / 2 + 4, "end", 0, "", row[r]);
        for (int c = 0; c < ncolumn; c++) {
            double v = value[r * ncolumn + c], x = area.x.from + c * width;
            char text[40];
            snprintf(text, sizeof text, "%.*f", decimals, v);
            if (fits(&shade, v))
                put_cell(out, x, y, width - 1, height - 1, place(&shade, v), text);
            else
                put_rect(out, x, y, width - 1, height - 1, "#d0d0d0");
        }
    }
    put_column_labels(out, &area, column, ncolumn);
    put_titles(out, plot, &area);
}
