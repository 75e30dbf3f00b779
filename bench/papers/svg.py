# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG text: bars, lines and dots, heat maps. Values that are not finite (or not above 0
on a logarithmic axis) are left out."""

import math
from html import escape

COLOURS = ("#3465a4", "#cc0000", "#4e9a06", "#f57900", "#75507b", "#c4a000", "#06989a", "#555753")
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 60


def text(x, y, words, anchor="middle", turned=False):
    turn = f' transform="rotate(-35 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{escape(str(words))}</text>'


class Plot:
    def __init__(self, width, height, title, x_label="", y_label="", x=0, y=0):
        self.width, self.height, self.x, self.y = width, height, x, y
        self.parts = [text(width / 2, 18, title), text(width / 2, height - 6, x_label),
                      text(8, TOP - 8, y_label, "start")]

    def scale(self, values, log, low, high, first, last):
        """Of an axis: the function from value to place, and values to write along it."""
        known = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
        low = min(known, default=0) if low is None else low
        high = max(known, default=1) if high is None else high
        of = (lambda v: math.log10(v)) if log else (lambda v: v)
        span = of(high) - of(low) or 1
        marks = [low + (high - low) * i / 4 for i in range(5)]
        if log:
            marks = [10.0 ** i for i in range(math.ceil(of(low)), math.floor(of(high)) + 1)] or [low, high]
        return lambda v: first + (last - first) * (of(v) - of(low)) / span, marks

    def frame(self, y_marks, y_place, x_marks=(), x_place=None):
        right, bottom = self.width - RIGHT, self.height - BOTTOM
        self.parts.append(f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#888"/>')
        self.parts += [text(LEFT - 6, y_place(v) + 4, f"{v:.3g}", "end") for v in y_marks]
        self.parts += [text(x_place(v), bottom + 16, f"{v:.4g}") for v in x_marks]

    def legend(self, names):
        for i, name in enumerate(names):
            self.parts.append(f'<rect x="{LEFT + 110 * i}" y="24" width="10" height="8" fill="{COLOURS[i % 8]}"/>')
            self.parts.append(text(LEFT + 14 + 110 * i, 32, name, "start"))

    def bars(self, labels, series, rows, stacked=False, log=False, high=None):
        """A group of bars a label: rows of a value for each series."""
        values = [v for row in rows for v in row if math.isfinite(v)]
        bottom = self.height - BOTTOM
        low = min([1.0, *(v for v in values if v > 0)]) if log else 0
        place, marks = self.scale(values, log, low, high, bottom, TOP)
        self.frame(marks, place)
        wide = (self.width - LEFT - RIGHT) / max(len(labels), 1)
        for i, (label, row) in enumerate(zip(labels, rows)):
            base, each = bottom, 0.8 * wide / (1 if stacked else len(series))
            for k, v in enumerate(row):
                if not math.isfinite(v) or (log and v <= 0):
                    continue
                top = place(v) - (bottom - base if stacked else 0)
                left = LEFT + wide * i + 0.1 * wide + (0 if stacked else each * k)
                self.parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" width="{each:.1f}" '
                                  f'height="{base - top:.1f}" fill="{COLOURS[k % 8]}"/>')
                base = top if stacked else base
            self.parts.append(text(LEFT + wide * (i + 0.5), bottom + 16, label, "end", True))
        if len(series) > 1:
            self.legend(series)
        return self

    def lines(self, series, x_log=False, y_log=False, y_range=(None, None), dots=False, step=False):
        """series: a name (None: not in the legend), places, values."""
        xs, ys = [v for _, x, _ in series for v in x], [v for *_, y in series for v in y]
        x_place, x_marks = self.scale(xs, x_log, None, None, LEFT, self.width - RIGHT)
        y_place, y_marks = self.scale(ys, y_log, *y_range, self.height - BOTTOM, TOP)
        self.frame(y_marks, y_place, x_marks, x_place)
        for k, (_, x, y) in enumerate(series):
            at = [(x_place(a), y_place(b)) for a, b in zip(x, y) if math.isfinite(a) and math.isfinite(b) and
                  (a > 0 or not x_log) and (b > 0 or not y_log)]
            if dots and k == 0:
                self.parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="1.8" fill="{COLOURS[k]}"/>' for a, b in at]
            elif at:
                path = f"M{at[0][0]:.1f} {at[0][1]:.1f}" + "".join(
                    f"H{a:.1f}V{b:.1f}" if step else f"L{a:.1f} {b:.1f}" for a, b in at[1:])
                self.parts.append(f'<path d="{path}" fill="none" stroke="{COLOURS[k % 8]}" stroke-width="1.5"/>')
        self.legend([name for name, *_ in series if name])
        return self

    def heat(self, rows, columns, values, decimals, log=False, high=None):
        """A list of values for each row; each cell also says its value."""
        of = (lambda v: math.log(v)) if log else (lambda v: v)
        known = [of(v) for row in values for v in row if math.isfinite(v) and (v > 0 or not log)]
        low = 0 if high else min(known, default=0)
        span = (high or max(known, default=1)) - low or 1
        left = 150
        wide = (self.width - left - RIGHT) / max(len(columns), 1)
        for i, (row, line) in enumerate(zip(rows, values)):
            y = TOP + 26 * i
            self.parts.append(text(left - 6, y + 17, row, "end"))
            for k, v in enumerate(line):
                if math.isfinite(v) and (v > 0 or not log):
                    dark = max(0, min(1, (of(v) - low) / span))
                    self.parts.append(f'<rect x="{left + wide * k:.1f}" y="{y}" width="{wide:.1f}" height="26" '
                                      f'fill="#3465a4" fill-opacity="{0.1 + 0.7 * dark:.2f}"/>')
                    self.parts.append(text(left + wide * (k + 0.5), y + 17, f"{v:.{decimals}f}"))
        for k, column in enumerate(columns):
            self.parts.append(text(left + wide * (k + 0.5), TOP + 26 * len(rows) + 16, column, "end", True))
        return self


def write(path, *plots):
    """Writes the file and prints its name."""
    width, height = (max(getattr(p, a) + getattr(p, b) for p in plots) for a, b in (("x", "width"), ("y", "height")))
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                   'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n')
        for p in plots:
            file.write(f'<g transform="translate({p.x} {p.y})">' + "\n".join(p.parts) + "</g>\n")
        file.write("</svg>\n")
    print(path, flush=True)
