# SPDX-License-Identifier: Apache-2.0
"""Cells as pictures: heat maps of size and loss, and lines over the loss. By gnuplot, see svgpage."""
import math
import os
import shutil

from svgpage import Page

from .grid import AUTO, BASE, CODE, MAIN, SCHEMES
from .words import loss_text, size_text

WHATS = (("mean", "mean"), ("p99", "99 %"), ("p999", "99.9 %"))
# Time over T*: a value's place on the colour bar, which has as much room for 1.00 to 1.05 as for 4 to 8.
LIMIT_TICS = (1, 1.02, 1.05, 1.10, 1.25, 1.5, 2, 4, 8)
LIMIT_PALETTE = ("set palette defined (0 '#F7FCF5', 1 '#D5EFCF', 2 '#A3D99B', 3 '#FFF7BC', 4 '#FEC44F', 5 '#F58518', "
                 "6 '#D9480F', 7 '#A50F15', 8 '#4A0010')")
LIMIT_DARK = 5.5
# Speed-ups: log2 of one. Orange is slower, blue faster.
SPEED_PALETTE = ("set palette defined (-3 '#7F3B08', -1.5 '#E08214', -0.4 '#FDD49E', 0 '#F7F7F7', 0.4 '#D1E5F0', "
                 "1.5 '#67A9CF', 2.6 '#2166AC', 4 '#053061')")
SPEED_TICS = {0.125: "1/8", 0.25: "1/4", 0.5: "1/2", 1: "1", 2: "2", 4: "4", 8: "8", 16: "16"}
SPEED_DARK = 1.9
KEY_ROOM = ["", "", ""]  # lines at the foot of a page for the colour bar
# Told apart by everybody (Okabe and Ito's).
COLOURS = ("#D55E00", "#0072B2", "#999999", "#CC79A7", "#009E73", "#E69F00", "#000000")
SHAPES, DASHES = (7, 5, 9, 13, 11, 15, 7), ("'-'", "'-'", "'.'", "'_-'", "'_'", "'-..'", "solid")


def limit_place(value):
    """Of a value on LIMIT_TICS, as a real number from 0 on."""
    for i, (low, high) in enumerate(zip(LIMIT_TICS, LIMIT_TICS[1:])):
        if value < high:
            return max(0.0, i + (value - low) / (high - low))
    return float(len(LIMIT_TICS) - 1)


class Scale:
    """Colours of a heat map: where a value stands, the bar, which cells are dark."""

    def __init__(self, place, palette, span, tics, dark, label):
        self.place, self.palette, self.span, self.tics, self.dark, self.label = place, palette, span, tics, dark, label

    def bar(self, page):
        """Commands for the one panel that draws it, at the foot of the page."""
        tics = ", ".join(f"'{text}' {place:.6g}" for place, text in self.tics)
        return [f"set colorbox horizontal user origin screen 0.3, screen {34 / page.height:.4f} "
                f"size screen 0.4, screen {12 / page.height:.4f}",
                f"set cbtics ({tics}) scale 0 font ',11' offset 0,0.6",
                f"set label 90 '{self.label}' at screen 0.29, screen {40 / page.height:.4f} right font ',11'"]


LIMIT = Scale(limit_place, LIMIT_PALETTE, (0, len(LIMIT_TICS) - 1),
              [(i, f"{v:g}") for i, v in enumerate(LIMIT_TICS)], lambda place: place > LIMIT_DARK, "time over T*")
SPEED = Scale(math.log2, SPEED_PALETTE, (-3, 4), [(math.log2(v), text) for v, text in SPEED_TICS.items()],
              lambda place: abs(place) > SPEED_DARK, "speed-up")


def value_text(value):
    return f"{value:.3f}" if value < 1.1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def heat(page, place, title, values, axes, scale, bar):
    """values: {(loss, size): value}."""
    losses, sizes = axes
    lines, light, dark = [], [], []
    for (loss, size), value in values.items():
        x, y, z = losses.index(loss), sizes.index(size), scale.place(value)
        lines.append((x, y, min(max(z, scale.span[0]), scale.span[1])))
        (dark if scale.dark(z) else light).append(f"{x} {y} {value_text(value)}")
    axis = ["unset logscale", f"set xrange [-0.5:{len(losses) - 0.5}]", f"set yrange [-0.5:{len(sizes) - 0.5}]",
            "set xtics (" + ", ".join(f"'{loss_text(v)}' {i}" for i, v in enumerate(losses)) +
            ") offset 0,0.3 font ',11'",
            "set ytics (" + ", ".join(f"'{size_text(v)}' {i}" for i, v in enumerate(sizes)) + ") font ',11'",
            "unset grid", "unset ylabel", "set style fill solid 1 noborder",
            f"set cbrange [{scale.span[0]}:{scale.span[1]}]", scale.palette,
            *(scale.bar(page) if bar else ["unset colorbox"])]
    plots = []
    if lines:
        plots.append(f"{page.data(lines)} using 1:2:($1-.49):($1+.49):($2-.48):($2+.48):3 with boxxyerror "
                     "fc palette notitle")
    for texts, colour in ((light, "#202020"), (dark, "white")):
        if texts:
            page.blocks += 1
            name = f"$d{page.blocks}"
            page.lines.append(f"{name} << EOD\n" + "\n".join(texts) + "\nEOD")
            plots.append(f"{name} using 1:2:(strcol(3)) with labels font ',10' tc rgb '{colour}' notitle")
    page.panel(*place, title, axis, plots or ["1/0 notitle"], "loss of a 4 KiB packet")


def heat_page(title, notes, panels, columns, scale):
    """panels: (title, {(loss, size): value})."""
    axes = (sorted({loss for _, values in panels for loss, _ in values}),
            sorted({size for _, values in panels for _, size in values}))
    page = Page(title, [*notes, *KEY_ROOM], -(-len(panels) // columns), columns, [], None)
    for i, (name, values) in enumerate(panels):
        heat(page, divmod(i, columns), name, values, axes, scale, i == len(panels) - 1)
    return page


def link_text(link):
    rtt, rate = link
    return f"{rate:g} Gbit/s, {rtt:g} ms round trip"


def values_of(points, link, burst, of):
    """{(loss, size): of(schemes of the point)}, where that is a number. Without losses bursts are all the same."""
    out = {}
    for point, schemes in points.items():
        if point.link != link or (point.loss and point.burst != burst):
            continue
        value = of(schemes)
        if value is not None and math.isfinite(value):
            out[point.loss, point.size] = value
    return out


def bursts_of(points, link):
    return sorted({point.burst for point in points if point.link == link and point.loss} or {1.0})


def burst_text(burst):
    return "losses one by one" if burst == 1 else f"bursts of {burst:g} packets"


def by_burst(points, link, of, title, notes, scale):
    """A page: a row for each burst length, a column for each of mean and tails."""
    whats = [(what, name) for what, name in WHATS
             if any(values_of(points, link, burst, of(what)) for burst in bursts_of(points, link))]
    panels = [(f"{name}, {burst_text(burst)}", values_of(points, link, burst, of(what)))
              for burst in bursts_of(points, link) for what, name in whats]
    return heat_page(title, notes, panels, len(whats), scale) if panels else None


def limit_of(scheme):
    return lambda what: lambda schemes: schemes[scheme].over_limit(what) if scheme in schemes else None


def speed_of(scheme, base):
    def of(what):
        name = f"{what}_s"
        return lambda schemes: (getattr(schemes[base], name) / getattr(schemes[scheme], name)
                                if scheme in schemes and base in schemes else None)
    return of


def file_word(scheme):
    return "".join(c if c.isalnum() else "-" for c in scheme).strip("-")


def scheme_order(name):
    """As in the grid; others before auto, by name."""
    known = {scheme: i for i, scheme in enumerate(SCHEMES)}
    return known.get(name, len(SCHEMES) - 1.5), name


def pages_of(points, by):
    """{file stem: page}."""
    links = sorted({point.link for point in points})
    main = (MAIN[0] / 1e6, MAIN[1] / 1e9)
    main = main if main in links else links[-1]
    schemes = sorted({name for all_ in points.values() for name in all_}, key=scheme_order)
    empty = "Empty: not run, or too few runs for a tail."
    star = "T* = injection / (1 - loss) + round trip."
    out = {}
    for scheme in schemes:
        out[f"limit-{file_word(scheme)}"] = by_burst(
            points, main, limit_of(scheme), f"{scheme}: time over T*, {link_text(main)}", [f"{by[scheme]} {star} {empty}"],
            LIMIT)
        if scheme in (AUTO, CODE) and BASE in schemes:
            out[f"speedup-{file_word(scheme)}"] = by_burst(
                points, main, speed_of(scheme, BASE), f"{scheme} over {BASE}: speed-up, {link_text(main)}",
                [f"{by[scheme]} Blue: faster than {BASE}; orange: slower. {empty}"], SPEED)
    if AUTO in schemes and len(links) > 1:
        for burst in sorted({point.burst for point in points if point.loss}):
            out[f"links-{burst:g}"] = links_page(points, links, burst, f"{by[AUTO]} {star}")
    out["schemes"] = lines_page(points, main, schemes)
    return {stem: page for stem, page in out.items() if page}


def links_page(points, links, burst, note):
    panels = [(link_text(link), values_of(points, link, burst, limit_of(AUTO)("mean"))) for link in links]
    panels = [panel for panel in panels if panel[1]]
    if not panels:
        return None
    return heat_page(f"{AUTO}: mean time over T*, {burst_text(burst)}", [note], panels, min(3, len(panels)), LIMIT)


# ---- lines -----------------------------------------------------------------------------


class Style:
    """Of a scheme's line and points."""

    def __init__(self, schemes):
        self.of = {name: f"lc rgb '{COLOURS[i % 7]}' dt {DASHES[i % 7]} pt {SHAPES[i % 7]} lw {3 if name == AUTO else 2} "
                   "ps 0.75" for i, name in enumerate(schemes)}


def line_axes(losses, top):
    tics = [t for t in (1, 1.1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64) if t <= top * 1.05]
    return ["set logscale x", f"set xrange [{min(losses) / 1.4:.8g}:{max(losses) * 1.4:.8g}]",
            "set xtics (" + ", ".join(f"'{loss_text(v)}' {v:.8g}" for v in losses
                                      if abs(math.log10(v) - round(math.log10(v))) < 1e-9) + ") nomirror font ',11'",
            "set logscale y", f"set yrange [0.97:{top * 1.1:.6g}]",
            "set ytics (" + ", ".join(f"'{t:g}' {t}" for t in tics) + ") nomirror font ',11'",
            "set ylabel 'mean time / T*' offset 1,0"]


def lines_page(points, link, schemes):
    """A panel for each size and burst: the mean over T* by loss, a line a scheme."""
    mine = {point: all_ for point, all_ in points.items() if point.link == link and point.loss}
    if not mine:
        return None
    sizes, bursts = sorted({p.size for p in mine}), bursts_of(points, link)
    losses = sorted({p.loss for p in mine})
    top = max((c.over_limit("mean") for all_ in mine.values() for c in all_.values() if c.mean_s > 0), default=2)
    page = Page(f"Mean time over T* by loss, {link_text(link)}", ["T* = injection / (1 - loss) + round trip."],
                len(sizes), len(bursts), schemes, Style(schemes), 210)
    for row, size in enumerate(sizes):
        for column, burst in enumerate(bursts):
            plots = []
            for name in schemes:
                line = sorted((p.loss, all_[name].over_limit("mean")) for p, all_ in mine.items()
                              if p.size == size and p.burst == burst and name in all_ and all_[name].mean_s > 0)
                if line:
                    plots.append(f"{page.data(line)} using 1:2 with linespoints {page.style.of[name]} notitle")
            if plots:
                page.panel(row, column, f"{size_text(size)}, {burst_text(burst)}", line_axes(losses, max(top, 1.3)),
                           plots, "loss of a 4 KiB packet")
    return page


def draw(points, by, directory):
    """Writes the SVGs; their paths. None without gnuplot."""
    if not shutil.which("gnuplot"):
        return None
    out = []
    for stem, page in pages_of(points, by).items():
        out.append(os.path.join(directory, f"{stem}.svg"))
        page.write(out[-1])
    return out
