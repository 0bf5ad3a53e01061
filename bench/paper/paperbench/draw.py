# SPDX-License-Identifier: Apache-2.0
"""Figures to SVG. Lines are the model's values, points with bars of 95 % the engine's. Colours are told
apart by everybody (Okabe and Ito's; viridis where they are ordered)."""
import math
import os
import shutil

from svgpage import Page

from .cells import ENGINE, KIB, MIB, MIXED, READING_TEXT, READINGS, SCHEME_TEXT, loss_text, size_text

LEGEND_W = 140
SCHEME_COLOURS = {"SR-RTO": "#D55E00", "SR-NACK": "#0072B2", "MDS(32,8)": "#009E73", "XOR(32,8)": "#CC79A7",
                  "MDS(32,2)": "#882255", "MDS(32,4)": "#E69F00", "MDS(32,16)": "#56B4E9", "MDS(32,32)": "#332288"}
ORDERED = ("#440154", "#414487", "#2A788E", "#22A884", "#6FBF3A", "#C2A500")
SHAPES, DASHES = (7, 5, 9, 13, 11, 15), ("solid", "'-'", "'_'", "'.'", "'_-'", "'-..'")
NO_POINT = "pt -1"
NOTE = "Lines: the model. Points: the engine, means with bars of 95 %."
# log2 of a speed-up: orange where the code is slower, blue where it is faster
PALETTE = ("set palette defined (-3.7 '#7F3B08', -1.5 '#E08214', -0.4 '#FDD49E', 0 '#F7F7F7', 0.4 '#D1E5F0', "
           "1.5 '#67A9CF', 2.6 '#2166AC', 3.7 '#053061')")
DARK = 1.9  # cells beyond have white figures


class Style:
    """A look for each series: colour and dash of its line, shape of its points."""

    def __init__(self, colours, pointed):
        self.of = {}
        for i, (name, colour) in enumerate(colours.items()):
            point = f"pt {SHAPES[i % 6]}" if name in pointed else NO_POINT
            self.of[name] = f"lc rgb '{colour}' dt {DASHES[i % 6]} {point} lw 2 ps 0.75"

    def line(self, name):
        return self.of[name].split(" pt ", maxsplit=1)[0]

    def bars(self, name):
        colour, rest = self.of[name].split(" dt ")
        return f"{colour} dt solid pt {rest.split(' pt ')[1].split()[0]} lw 1.2 ps 0.75"


def series_name(row):
    name = SCHEME_TEXT[row["scheme"]]
    return f"{name}({row['k']},{row['m']})" if row["k"] else name


def select(rows, **wanted):
    return [row for row in rows if all(row[name] in value if isinstance(value, tuple) else row[name] == value
                                       for name, value in wanted.items())]


def points(rows, x):
    """(x, value, lo, hi), sorted; a value without bounds is its own."""
    return sorted((float(row[x]), float(row["value"]), float(row["lo"] or row["value"]),
                   float(row["hi"] or row["value"])) for row in rows)


def is_engine(row):
    return row["source"] in (ENGINE, MIXED)


def curves(page, rows, x, name_of):
    """A line of the model and points of the engine for each series."""
    lines, marks = [], []
    for name in page.style.of:
        mine = [row for row in rows if name_of(row) == name]
        model = points([row for row in mine if not is_engine(row)], x)
        real = points([row for row in mine if is_engine(row)], x)
        if model:
            lines.append(f"{page.data(model)} using 1:2 with lines {page.style.line(name)} lw 2 notitle")
        if real:
            marks.append(f"{page.data(real)} using 1:2:3:4 with yerrorbars {page.style.bars(name)} notitle")
    return lines + marks


def log_axis(which, values, tics, margin=1.15):
    shown = ", ".join(f"'{text}' {value:.8g}" for value, text in tics)
    out = [f"set logscale {which}", f"set {which}range [{min(values) / margin:.8g}:{max(values) * margin:.8g}]",
           f"set {which}tics ({shown}) nomirror font ',11'"]
    return out + ([f"set {which}tics offset 0,0.3"] if which == "x" else [])


def size_tics(values, every=1):
    return [(v, size_text(v).replace(" ", "")) for v in sorted(values)[::every]]


def loss_tics(values):
    return [(v, loss_text(v)) for v in sorted(values) if abs(math.log10(v) - round(math.log10(v))) < 1e-9]


def slow_axis(rows, label):
    values = [float(row["value"]) for row in rows] + [float(row["hi"]) for row in rows if row["hi"]]
    top = max(values, default=2)
    coarse, fine = (0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30), (0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2)
    tics = [t for t in (fine if top < 2.2 else coarse) if t <= top * 1.1]
    return log_axis("y", [min([0.97, *values]), max(1.3, top)], [(t, f"{t:g}") for t in tics], 1.04) + \
        [f"set ylabel '{label}' offset 1,0"]


def rtt_text(rows):
    return f"{float(rows[0]['rtt_ms']):g} ms round trip"


def page_of(title, notes, shape, colours, rows, name_of):
    """A page with those series that are in rows."""
    seen = {name_of(row) for row in rows}
    pointed = {name_of(row) for row in rows if is_engine(row)}
    chosen = {name: colour for name, colour in colours.items() if name in seen}
    return Page(title, notes if not pointed else [*notes, NOTE], *shape, list(chosen),
                Style(chosen, pointed), LEGEND_W)


# ---- the figures -----------------------------------------------------------------------


def figure_3(rows):
    mean = select(rows, quantity="slowdown_mean")
    a, b, c = (select(mean, panel=panel) for panel in "abc")
    page = page_of("Figure 3: slowdown of a message over a lossless link, 400 Gbit/s", [], (1, 3),
                   SCHEME_COLOURS, mean, series_name)
    sizes = {row["bytes"] for row in a}
    page.panel(0, 0, f"(a) loss 1e-5, {rtt_text(a)}",
               log_axis("x", sizes, size_tics(sizes, 3)) + slow_axis(mean, "mean time / lossless"),
               curves(page, a, "bytes", series_name), "message")
    page.panel(0, 1, "(b) 8 GiB, loss 1e-5",
               ["unset logscale x", "set xrange [0:6300]", "set xtics auto", "set xtics 0,1500 nomirror"] +
               slow_axis(mean, "mean time / lossless"), curves(page, b, "km", series_name), "km, one way")
    losses = {float(row["loss"]) for row in c}
    page.panel(0, 2, f"(c) 128 MiB, {rtt_text(c)}",
               log_axis("x", losses, loss_tics(losses)) + slow_axis(mean, "mean time / lossless"),
               curves(page, c, "loss", series_name), "loss of a 4 KiB packet")
    return {"figure-3": page}


def heat(page, place, title, rows, losses, sizes):
    """Cells of log2(speed-up) with the speed-up in them."""
    at = [(losses.index(float(row["loss"])), sizes.index(row["bytes"]), float(row["value"])) for row in rows]
    data = page.data([(x, y, math.log2(value), value) for x, y, value in at])
    axis = ["unset logscale", f"set xrange [-0.5:{len(losses) - 0.5}]", f"set yrange [-0.5:{len(sizes) - 0.5}]",
            "set xtics (" + ", ".join(f"'{loss_text(v)}' {i}" for i, v in enumerate(losses)) + ") offset 0,0.3",
            "set ytics (" + ", ".join(f"'{size_text(v)}' {i}" for i, v in enumerate(sizes)) + ") font ',11'",
            "unset grid", "unset colorbox", "set cbrange [-3.7:3.7]", PALETTE, "unset ylabel",
            "set style fill solid 1 noborder"]
    label = "with labels font ',11' tc rgb"
    text = f'(abs($3)%s{DARK} ? sprintf("%%.2f", $4) : "")'
    plots = [f"{data} using 1:2:($1-.49):($1+.49):($2-.48):($2+.48):3 with boxxyerror fc palette notitle",
             f"{data} using 1:2:{text % '<='} {label} '#202020' notitle",
             f"{data} using 1:2:{text % '>'} {label} 'white' notitle"]
    page.panel(*place, title, axis, plots, "loss of a 4 KiB packet")


def heat_page(title, notes, panels, rows):
    """panels: (title, rows) in two columns; what has no rows is not drawn."""
    losses = sorted({float(row["loss"]) for row in rows})
    sizes = sorted({row["bytes"] for row in rows})
    panels = [panel for panel in panels if panel[1]]
    page = Page(title, notes, -(-len(panels) // 2), 2, [], None)
    for i, (name, mine) in enumerate(panels):
        heat(page, divmod(i, 2), name, mine, losses, sizes)
    return page


def figure_9(rows):
    grid = select(rows, panel="grid")
    pages, what = {}, (("mean", "speedup_mean"), ("p99.9", "speedup_p999"))
    note = "Blue: the code is faster; orange: slower."

    def pick(reading, quantity, real):
        return [row for row in select(grid, reading=reading, quantity=quantity) if is_engine(row) == real]

    title = f"Figure 9: MDS(32,8) over SR-RTO, speed-up, 400 Gbit/s, {rtt_text(grid)}"
    panels = [(f"model, {text}", pick("A", quantity, False)) for text, quantity in what]
    panels += [(f"SR by the engine, {text}", pick("A", quantity, True)) for text, quantity in what]
    pages["figure-9"] = heat_page(title, [f"Chunk: one packet. {note}",
                                          "SR by the engine: over the code by the model. Empty: not run, "
                                          "or too few runs for a p99.9."],
                                  panels, select(grid, reading="A"))
    panels = [(f"{READING_TEXT[reading]}: {text}", pick(reading, quantity, False))
              for reading in ("B", "C") for text, quantity in what]
    pages["figure-9-readings"] = heat_page(title + ", other readings", [note + " Model."], panels,
                                           select(grid, reading=("B", "C")))
    return pages


def figure_10(rows):
    page = page_of(f"Figure 10: the schemes at 400 Gbit/s, {rtt_text(rows)}",
                   ["(c)-(f): 128 MiB. (f): P(a submessage cannot be decoded); thin: 64 KiB chunks of which each "
                    "4 KiB packet can be lost."], (2, 3), SCHEME_COLOURS,
                   [row for row in rows if row["scheme"] in SCHEME_TEXT], series_name)
    a = [dict(row, value=str(float(row["value"]) * 1e3), lo=ms(row["lo"]), hi=ms(row["hi"]))
         for row in select(rows, panel="a", quantity=("mean_s", "p999_s"))]
    sizes = {row["bytes"] for row in a}
    x_size = log_axis("x", sizes, size_tics(sizes, 2))
    y_ms = log_axis("y", [float(row["value"]) for row in a], [(t, f"{t}") for t in (25, 50, 100, 200, 300)], 1.1) + \
        ["set ylabel 'time [ms]' offset 1,0"]
    for column, (quantity, name) in enumerate((("mean_s", "mean"), ("p999_s", "p99.9"))):
        page.panel(0, column, f"({'ab'[column]}) {name}, loss 1e-5", x_size + y_ms,
                   curves(page, select(a, quantity=quantity), "bytes", series_name), "message")
    slow_panels(page, rows)
    fallback_panel(page, rows)
    return {"figure-10": page}


def ms(text):
    return str(float(text) * 1e3) if text else ""


def slow_panels(page, rows):
    bc = select(rows, panel="bc", quantity=("slowdown_mean", "slowdown_p999"))
    losses = {float(row["loss"]) for row in bc}
    x = log_axis("x", losses, loss_tics(losses))
    for place, quantity, name in (((0, 2), "slowdown_mean", "(c) mean"), ((1, 0), "slowdown_p999", "(d) p99.9")):
        page.panel(*place, name + " by loss", x + slow_axis(bc, "time / lossless"),
                   curves(page, select(bc, quantity=quantity), "loss", series_name), "loss of a 4 KiB packet")
    d = select(rows, panel="d", quantity="slowdown_mean")
    losses = {float(row["loss"]) for row in d}
    page.panel(1, 1, "(e) mean, splits of a code", log_axis("x", losses, loss_tics(losses)) +
               slow_axis(d, "time / lossless"), curves(page, d, "loss", series_name), "loss of a 4 KiB packet")


def fallback_panel(page, rows):
    all_rows, plots = select(rows, panel="fallback", quantity="p_fallback"), []
    losses = {float(row["loss"]) for row in all_rows}
    for reading, width in (("A", 2), ("B", 0.8)):
        for scheme in ("ec", "ec-xor"):
            mine = points(select(all_rows, reading=reading, scheme=scheme), "loss")
            line = page.style.line(f"{SCHEME_TEXT[scheme]}(32,8)")
            plots.append(f"{page.data(mine)} using 1:2 with lines {line} lw {width} notitle")
    tics = [(v, loss_text(v)) for v in (1e-4, 1e-3, 1e-2)]
    page.panel(1, 2, "(f) fallback", log_axis("x", losses, tics) +
               log_axis("y", [1e-9, 1], [(10.0**-i, f"1e-{i}" if i else "1") for i in range(0, 10, 2)]) +
               ["set ylabel 'probability' offset 1,0"], plots, "loss of a 4 KiB packet")


def rate_name(row):
    return f"{row['bw_gbps']} Gbit/s"


def figure_12(rows):
    mean = select(rows, quantity="slowdown_mean")
    rates = sorted({float(row["bw_gbps"]) for row in mean})
    colours = {f"{rate:g} Gbit/s": ORDERED[i] for i, rate in enumerate(rates)}
    page = page_of("Figure 12: slowdown of 128 MiB by distance and bandwidth", [], (2, 3), colours, mean, rate_name)
    for r, panel in enumerate(("1e-05", "0.001")):
        for c, scheme in enumerate(("sr", "sr-nack", "ec")):
            mine = select(mean, panel=panel, scheme=scheme)
            name = series_name(mine[0])
            page.panel(r, c, f"{name}, loss {loss_text(float(panel))}",
                       ["unset logscale x", "set xrange [0:6300]", "set xtics auto", "set xtics 0,1500 nomirror"] +
                       slow_axis(select(mean, panel=panel), "mean time / lossless"),
                       curves(page, mine, "km", rate_name), "km, one way")
    return {"figure-12": page}


def loss_name(row):
    return f"loss {loss_text(float(row['loss']))}"


def loss_colours(rows):
    losses = sorted({float(row["loss"]) for row in rows})
    return {f"loss {loss_text(loss)}": ORDERED[i] for i, loss in enumerate(losses)}


def figure_13(rows):
    ratios = select(rows, quantity=("speedup_mean", "speedup_p999"))
    page = page_of(f"Figure 13: ring Allreduce, MDS(32,8) over SR-RTO, 400 Gbit/s, {rtt_text(rows)}",
                   ["Lines: the model, simulated."], (2, 2), loss_colours(ratios), ratios, loss_name)
    sizes = {row["bytes"] for row in select(ratios, panel="buffer")}
    x_nodes = ["unset logscale x", "set xrange [1:17]", "set xtics auto", "set xtics 2,2 nomirror"]
    for r, (quantity, text) in enumerate((("speedup_mean", "mean"), ("speedup_p999", "p99.9"))):
        y = slow_axis(select(ratios, quantity=quantity), "speed-up")
        for c, (panel, x, axis, title, label) in enumerate((
                ("nodes", "nodes", x_nodes, f"128 MiB, {text}", "datacentres"),
                ("buffer", "bytes", log_axis("x", sizes, size_tics(sizes)), f"4 datacentres, {text}", "buffer"))):
            mine = select(ratios, panel=panel, quantity=quantity)
            page.panel(r, c, title, axis + y, curves(page, mine, x, loss_name), label)
    return {"figure-13": page}


def figure_15(rows):
    page = page_of("Figure 15: drop rate of a chunk", ["Lines: the closed form, 1 - (1 - p)^n."], (1, 1),
                   loss_colours(rows), rows, loss_name)
    sizes = {row["chunk_bytes"] for row in rows}
    page.panel(0, 0, "packets of 4 KiB, lost independently", log_axis("x", sizes, size_tics(sizes)) +
               log_axis("y", [1e-6, 1], [(10.0**-i, f"1e-{i}" if i else "1") for i in range(7)]) +
               ["set ylabel 'drop rate of a chunk' offset 1,0"], curves(page, rows, "chunk_bytes", loss_name),
               "chunk")
    return {"figure-15": page}


PAGES = {"3": figure_3, "9": figure_9, "10": figure_10, "12": figure_12, "13": figure_13, "15": figure_15}


def draw(name, rows, directory):
    """Writes the SVGs of one figure; returns their paths. None without gnuplot."""
    if not shutil.which("gnuplot"):
        return None
    out = []
    for stem, page in PAGES[name](rows).items():
        out.append(os.path.join(directory, f"{stem}.svg"))
        page.write(out[-1])
    return out
