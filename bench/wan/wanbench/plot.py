# SPDX-License-Identifier: Apache-2.0
"""Figures to SVG, by gnuplot: for each rate and round trip the goodput over loss, the times of
messages over loss, and the bytes on the link, with a panel for each burst length. Colours are told
apart by everybody (Okabe and Ito's, Tol's muted); variants of one colour differ in shape and dash."""
import math
import os
import shutil

from svgpage import Page

from . import summary as s
from .grid import MTU, TCP_PAYLOAD, line_text, loss_text, rate_text, size_text, time_text

# family: colour; variants within it take shapes and dashes in turn
COLOURS = {"sdr": "#0072B2", "tcp-bbr": "#D55E00", "tcp-cubic": "#E69F00", "udt": "#009E73",
           "srt": "#CC79A7", "kcptun": "#332288", "uftp": "#999933", "rsync": "#882255",
           "scp": "#44AA99"}
GREY = "#8A8A8A"
SHAPES = (7, 5, 9, 13, 11, 6, 4, 8)
DASHES = ("solid", "'-'", "'.'", "'_-'", "'-..'", "'_'", "'_..'", "'--.'")
X_LABEL = "packets lost (logarithmic)"
LATE_TEXT = "△ late: over 20 T* (at least 5 s)"


class Style:
    """One for each name that is drawn, so that it looks the same in every plot."""

    def __init__(self, contenders):
        self.of, seen = {}, {}
        for name, contender in contenders.items():
            family = "shipped" if contender.shipped else contender.family
            i = seen[family] = seen.get(family, -1) + 1
            colour = GREY if contender.shipped else COLOURS[contender.family]
            self.of[name] = (f"lc rgb '{colour}' dt {DASHES[i % len(DASHES)]} "
                             f"pt {SHAPES[i % len(SHAPES)]} "
                             f"lw {2.6 if contender.ours and i == 0 else 1.7} ps 0.8")


def x_of(cell, losses):
    """log10 of the loss; the clean link stands left of it, behind a break."""
    lossy = [loss for loss in losses if loss]
    if cell.loss:
        return math.log10(cell.loss)
    return math.log10(min(lossy)) - 0.55 * max(1.0, (math.log10(max(lossy) / min(lossy)))) / 1.6 \
        if lossy else 0.0


def tic(loss):
    return "clean" if loss == 0 else loss_text(loss).replace(" %", "%%")


def x_axis(cells):
    """Tics, range and the break."""
    losses = sorted({cell.loss for cell in cells})
    at = sorted({(x_of(cell, losses), cell.loss) for cell in cells})
    tics = ", ".join(f"'{tic(loss)}' {x:.4f}" for x, loss in at)
    margin = 0.09 * max(at[-1][0] - at[0][0], 1)
    out = [f"set xtics ({tics}) nomirror offset 0,0.35 font ',11'", f"set xrange [{at[0][0] - margin:.4f}:{at[-1][0] + margin:.4f}]",
           "unset label 90"]
    if len(at) > 1 and at[0][1] == 0:
        out.append(f"set label 90 '//' at first {(at[0][0] + at[1][0]) / 2:.4f}, graph 0 center "
                   "font ',13' front")
    return out


def bursts_of(cells):
    return sorted({cell.burst for cell in cells if cell.loss}) or [1]


def panel_cells(cells, burst):
    return [cell for cell in cells if cell.is_clean or cell.burst == burst]


def burst_title(cells, burst):
    if not any(cell.loss for cell in cells):
        return "no loss"
    return "independent losses" if burst == 1 else f"bursts of {burst} on average"


# ---- what is drawn -------------------------------------------------------------------


def drawn(summary, cells, contenders):
    """([names to draw], [(name, clean share)] left out because they do not fill the clean link)."""
    names, out = [], []
    measured = {name for cell, name in summary if cell in cells}
    for name, contender in contenders.items():
        if name not in measured:
            continue
        if s.standing(summary, cells[0], contender) == "below":
            out.append((name, s.clean_share(summary, cells[0], name)))
        else:
            names.append(name)
    return names, out


def left_out_note(out):
    if not out:
        return []
    shares = ", ".join(f"{name} ({'not measured' if share is None else f'{share:.2f}'})"
                       for name, share in out)
    return [f"Not drawn, as they do not fill the clean link to {s.FILLS:g} of their limit: {shares}"]


def dodge(names, name, cells):
    """Points of several contenders stand beside each other."""
    losses = sorted({cell.loss for cell in cells})
    span = max((x_of(c, losses) for c in cells), default=0) - min((x_of(c, losses) for c in cells),
                                                                   default=0)
    return (names.index(name) - (len(names) - 1) / 2) * 0.011 * max(span, 1)


def shares(page, summary, cells, names, value):
    """Lines with the least and the most of the runs."""
    losses, plots = sorted({cell.loss for cell in cells}), []
    for name in names:
        rows = []
        for cell in cells:
            fig = summary.get((cell, name))
            spread = value(fig) if fig else None
            if spread:
                rows.append((x_of(cell, losses) + dodge(names, name, cells), spread["median"],
                             spread["min"], spread["max"]))
        if rows:
            block, style = page.data(sorted(rows)), page.style.of[name]
            bars = style.split(" dt ", maxsplit=1)[0]
            plots += [f"{block} using 1:2:3:4 with yerrorbars {bars} lw 1 pt -1 notitle",
                      f"{block} using 1:2 with linespoints {style} notitle"]
    return plots


def curve(page, cells, function):
    """Of something that depends on the loss alone, as a dotted grey line."""
    losses = sorted({cell.loss for cell in cells})
    rows = sorted((x_of(cell, losses), function(cell)) for cell in cells)
    return f"{page.data(rows)} using 1:2 with lines lc rgb '{GREY}' dt '.' lw 2 notitle"


def title_of(what, header, rate_bps, rtt_s):
    return f"{what}: link of {header['link']}, {line_text(rate_bps, rtt_s)}"


def goodput_page(header, summary, cells, contenders, style):
    names, out = drawn(summary, cells, contenders)
    note = ["Steady goodput: last third of a stream. Median, least and most of the runs. "
            "Dotted: what the link can carry.", *left_out_note(out)]
    bursts = bursts_of(cells)
    page = Page(title_of("Goodput", header, cells[0].rate_bps, cells[0].rtt_s), note, 1, len(bursts),
                names, style)
    for column, burst in enumerate(bursts):
        mine = panel_cells(cells, burst)
        plots = [curve(page, mine, lambda c: TCP_PAYLOAD / MTU * (1 - c.loss))]
        plots += shares(page, summary, mine, names, lambda f: f.steady_of_link)
        top = max([1.0] + [f.steady_of_link["max"] for (c, n), f in summary.items()
                           if c in mine and n in names and f.steady_of_link])
        page.panel(0, column, burst_title(cells, burst),
                   x_axis(mine) + [f"set yrange [0:{1.02 * top:.3f}]", "set ytics autofreq",
                                   "set ylabel 'share of the rate' offset 0.8,0"], plots, X_LABEL)
    return page


def bytes_page(header, summary, cells, contenders, style):
    names, out = drawn(summary, cells, contenders)
    note = ["Bytes of IP packets put on the link, headers and repairs included. Median, least and most. "
            "Dotted: full packets of TCP, each lost one sent again.", *left_out_note(out)]
    bursts = bursts_of(cells)
    page = Page(title_of("Bytes on the link for each delivered", header, cells[0].rate_bps,
                         cells[0].rtt_s), note, 1, len(bursts), names, style)
    values = [f.bytes_per_byte["max"] for (c, n), f in summary.items()
              if c in cells and n in names and f.bytes_per_byte]
    top = max([1.2] + values)
    for column, burst in enumerate(bursts):
        mine = panel_cells(cells, burst)
        plots = [curve(page, mine, lambda c: MTU / TCP_PAYLOAD / (1 - c.loss))]
        plots += shares(page, summary, mine, names, lambda f: f.bytes_per_byte)
        page.panel(0, column, burst_title(cells, burst),
                   x_axis(mine) + [f"set yrange [1:{1 + 1.06 * (top - 1):.3f}]", "set ytics autofreq",
                                   "set ylabel 'bytes per byte' offset 0.8,0"], plots, X_LABEL)
    return page


def times(page, summary, cells, names, kind, size, late_y):
    """Means with the least and the most of the runs' means; a thin mark for the longest."""
    losses, plots = sorted({cell.loss for cell in cells}), []
    for name in names:
        rows, late = [], []
        for cell in cells:
            fig = summary.get((cell, name))
            entry = getattr(fig, kind).get(size) if fig else None
            x = x_of(cell, losses) + dodge(names, name, cells)
            if entry and (entry["skipped"] or entry["late"]):
                late.append((x, late_y))
                rows.append(())
            elif entry:
                rows.append((x, entry["mean"], entry["low"], entry["high"], entry["tail"]))
        style = page.style.of[name]
        colour = style.split(" dt ", maxsplit=1)[0]
        if any(rows):
            block = page.data(rows)
            plots += [f"{block} using 1:2:3:4 with yerrorbars {colour} lw 1 pt -1 notitle",
                      f"{block} using 1:2 with linespoints {style} notitle",
                      f"{block} using 1:5 with points {colour} pt 1 ps 0.5 lw 1 notitle"]
        if late:
            plots.append(f"{page.data(late)} using 1:2 with points {colour} pt 8 ps 1 lw 1.6 notitle")
    return plots


def times_page(kind, header, summary, cells, contenders, style):
    names, out = drawn(summary, cells, contenders)
    names = [n for n in names if any(getattr(summary[c, n], kind) for c in cells if (c, n) in summary)]
    sizes = sorted({size for c in cells for n in names if (c, n) in summary
                    for size in getattr(summary[c, n], kind)})
    if not sizes:
        return None
    bursts = bursts_of(cells)
    meaning = {"cold": "fresh process and connection, until the sender knows that all of it has arrived",
               "warm": "one at a time on a connection that is fast already"}[kind]
    note = [f"{kind.capitalize()}: {meaning}. Mean of all; bars: least and most of the runs' means; "
            f"+ longest. {LATE_TEXT}",
            "T* = injection / (1 - loss) + round trip, with TCP's headers, for everybody.",
            *left_out_note(out)]
    page = Page(title_of(f"Time of a message over T*, {kind}", header, cells[0].rate_bps,
                         cells[0].rtt_s), note, len(bursts), len(sizes), names, style)
    most = max([3.0] + [e["tail"] for (c, n), f in summary.items() if c in cells and n in names
                        for e in getattr(f, kind).values() if not (e["late"] or e["skipped"])])
    late_y = 1.5 * max(most, 20)
    least = min([1.0] + [e["low"] for (c, n), f in summary.items() if c in cells and n in names
                         for e in getattr(f, kind).values() if "low" in e])
    for row, burst in enumerate(bursts):
        mine = panel_cells(cells, burst)
        for column, size in enumerate(sizes):
            plots = [f"1 with lines lc rgb '{GREY}' dt '.' lw 2 notitle"]
            plots += times(page, summary, mine, names, kind, size, late_y)
            page.panel(row, column, f"{size_text(size)}, {burst_title(cells, burst)}",
                       x_axis(mine) + ["set logscale y",
                                       f"set yrange [{0.85 * least:.3g}:{1.25 * late_y:.4g}]",
                                       "set ytics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)",
                                       "set ylabel 'time / T*' offset 0.3,0 noenhanced"], plots,
                       X_LABEL if row == len(bursts) - 1 else "")
    return page


def plots(directory, header, summary, contenders):
    """Writes them; returns {(rate, round trip): [(title, file name)]}."""
    if not shutil.which("gnuplot"):
        print("no plots: gnuplot not found (Debian: gnuplot-nox)")
        return {}
    style, out = Style(contenders), {}
    makers = (("goodput", goodput_page), ("cold", lambda *a: times_page("cold", *a)),
              ("warm", lambda *a: times_page("warm", *a)), ("bytes", bytes_page))
    for rate_bps, rtt_s in s.lines_of(summary):
        cells = s.cells_of(summary, rate_bps, rtt_s)
        names, _ = drawn(summary, cells, contenders)
        for title, make in makers:
            page = make(header, summary, cells, contenders, style) if names else None
            if page:
                name = f"{title}-{rate_text(rate_bps)}-{time_text(rtt_s)}.svg"
                page.write(os.path.join(directory, name))
                out.setdefault((rate_bps, rtt_s), []).append((title, name))
    return out
