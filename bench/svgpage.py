# SPDX-License-Identifier: Apache-2.0
"""A figure of several panels with one legend, drawn by gnuplot as SVG. Used by bench/wan/compare and
bench/paper/figures; knows nothing of what is drawn."""
import subprocess

PANEL_W, PANEL_H, HEAD, FOOT, LEGEND_W = 430, 330, 44, 34, 200


class PlotFailed(subprocess.SubprocessError):
    """gnuplot did not draw."""


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Page:
    """A gnuplot script: a head line, a grid of panels, a legend."""

    def __init__(self, title, note, rows, columns, names, style, legend_w=LEGEND_W):
        self.rows, self.columns, self.names, self.style = rows, columns, names, style
        # The legend: as many rows as it needs at a width that fits the longest name.
        self.width = max(860, columns * PANEL_W)
        self.per_row = self.width // legend_w
        self.legend_w = legend_w
        self.legend_rows = -(-len(names) // self.per_row)
        self.foot = FOOT + 22 * self.legend_rows + 18 * len(note)
        self.height = HEAD + rows * PANEL_H + self.foot
        self.lines = [
            f"set terminal svg size {self.width},{self.height} dynamic enhanced font "
            "'Helvetica,Arial,sans-serif,13' background rgb 'white' linewidth 1",
            "set encoding utf8", "set multiplot",
            f"set label 1 {quoted(title)} at screen 0.5, screen {1 - 22 / self.height:.4f} center "
            "font ',17' noenhanced",
            "set xtics offset 0,0.4", "set border 3 lc rgb '#606060'", "set tics nomirror out textcolor rgb '#303030'",
            "set grid ytics lc rgb '#E3E3E3' lw 1 dt solid", "unset key"]
        for i, text in enumerate(note):
            y = (18 * (len(note) - i) - 8) / self.height
            self.lines.append(f"set label {2 + i} {quoted(text)} at screen 0.5, screen {y:.4f} center "
                              "font ',11' textcolor rgb '#505050' noenhanced")
        self.blocks = 0

    def data(self, rows):
        self.blocks += 1
        name = f"$d{self.blocks}"
        body = "\n".join(" ".join(f"{v:.6g}" for v in row) for row in rows)  # (): a gap in the line
        self.lines.append(f"{name} << EOD\n{body}\nEOD")
        return name

    def panel(self, row, column, title, axis, plots, xlabel=""):
        wide = self.width / self.columns
        left, right = column * wide + 80, (column + 1) * wide - 14
        bottom = self.foot + (self.rows - 1 - row) * PANEL_H + 52
        top = self.foot + (self.rows - row) * PANEL_H - 26
        scale_x, scale_y = self.width, self.height
        self.lines += [f"set lmargin at screen {left / scale_x:.4f}",
                       f"set rmargin at screen {right / scale_x:.4f}",
                       f"set bmargin at screen {bottom / scale_y:.4f}",
                       f"set tmargin at screen {top / scale_y:.4f}",
                       f"set xlabel {quoted(xlabel)} offset 0,1.1 noenhanced",
                       f"set title {quoted(title)} offset 0,-0.4 font ',13' noenhanced", *axis,
                       "plot " + ", \\\n  ".join(plots)]
        self.lines += [f"unset label {i}" for i in range(1, 8)]  # the page's: once

    def legend(self):
        """A panel of its own, in pixels, y downwards: a short line with its mark, and the name."""
        height = 22 * self.legend_rows
        top = self.foot - 12
        self.lines += [
            "unset border", "unset tics", "unset xlabel", "unset ylabel", "unset title", "unset label",
            "unset grid", "unset logscale", "set lmargin at screen 0", "set rmargin at screen 1",
            f"set bmargin at screen {(top - height) / self.height:.4f}",
            f"set tmargin at screen {top / self.height:.4f}",
            f"set xrange [0:{self.width}]", f"set yrange [{height}:0]"]
        plots, used = [], min(self.per_row, len(self.names))
        first = (self.width - used * self.legend_w) / 2
        for i, name in enumerate(self.names):
            x, y = first + i % used * self.legend_w, 11 + 22 * (i // used)
            self.lines.append(f"set label {100 + i} {quoted(name)} at first {x + 46:.0f}, first {y} left "
                              "font ',12' noenhanced")
            style = self.style.of[name]
            plots += [f"{self.data([(x, y), (x + 38, y)])} using 1:2 with lines "
                      f"{style.split(' pt ', maxsplit=1)[0]} lw {style.split(' lw ')[1].split()[0]} notitle",
                      f"{self.data([(x + 19, y)])} using 1:2 with points {style} notitle"]
        self.lines.append("plot " + ", \\\n  ".join(plots))

    def write(self, path):
        if self.names:
            self.legend()
        script = "\n".join([*self.lines, "unset multiplot", ""])
        done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode or not done.stdout.startswith("<?xml"):
            raise PlotFailed(f"gnuplot did not draw {path}: {done.stderr.strip()[-300:]}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(done.stdout)
