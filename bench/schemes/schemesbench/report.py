# SPDX-License-Identifier: Apache-2.0
"""The report: Markdown. Pure."""
import math

from . import article, judge
from .grid import AUTO
from .words import loss_text, size_text


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + " --- |" * len(head),
                      *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def words_of(point):
    return [f"{point.rtt_ms:g} ms", f"{point.bw_gbps:g}", size_text(point.size), loss_text(point.loss),
            f"{point.burst:g}"]


WHERE = ["RTT", "Gbit/s", "message", "loss", "burst"]


def best_table(points):
    rows = [[*words_of(miss.cell.point), f"{miss.value:.3f}", miss.against, f"{miss.cell.over_limit('mean'):.3f}",
             f"{miss.cell.overhead:.1%}", miss.cell.runs, miss.reason] for miss in judge.near_best(points)]
    return rows, table([*WHERE, "auto / best", "best", "auto / T*", "overhead", "runs", "reason"], rows)


def aims_table(points):
    rows = [[*words_of(miss.cell.point), miss.what, f"{miss.value:.3f}", f"{miss.aim:g}", f"{miss.cell.overhead:.1%}",
             miss.cell.runs, miss.reason] for miss in judge.beyond_aims(points)]
    return rows, table([*WHERE, "of auto", "is", "aim", "overhead", "runs", "reason"], rows)


def article_table(cells):
    rows = [[f"{c.km} km", loss_text(c.loss), c.name, f"{c.mean:g} / {c.tail:g}", mean, tail, span]
            for c, mean, tail, span in article.lines(cells)]
    return rows, table(["distance", "loss", "scheme", "article: mean / 99.9 %", "closest mean", "closest tail",
                        "means of all sizes"], rows)


def scheme_table(points):
    """Of each scheme over all cells: how far from T*."""
    cells = {}
    for schemes in points.values():
        for name, cell in schemes.items():
            cells.setdefault(name, []).append(cell)
    rows = []
    for name, mine in cells.items():
        means = sorted(c.over_limit("mean") for c in mine if not math.isnan(c.mean_s))
        tails = sorted(c.over_limit("p999") for c in mine if not math.isnan(c.p999_s))
        rows.append([f"`{name}`", len(mine), sum(c.unfinished for c in mine), *(quantiles(means)), *quantiles(tails),
                     f"{max(c.overhead for c in mine):.1%}", ", ".join(sorted({c.by for c in mine}))])
    return table(["scheme", "cells", "unfinished runs", "mean / T*: half up to", "nine in ten up to", "worst",
                  "99.9 % / T*: half up to", "nine in ten up to", "worst", "most overhead", "by"], rows)


def quantiles(values):
    if not values:
        return ["-", "-", "-"]
    return [f"{values[min(len(values) - 1, math.ceil(part * len(values)) - 1)]:.3f}" for part in (0.5, 0.9, 1)]


def summary(points, cells):
    """Lines for the terminal."""
    best, aims = best_table(points)[0], aims_table(points)[0]
    autos = sum(AUTO in schemes and len(schemes) > 1 for schemes in points.values())
    means, tails = judge.count_aims(points)
    yield f"{len(cells)} cells, {sum(c.unfinished for c in cells)} runs that did not end"
    yield f"auto is beyond {judge.NEAR_BEST} of the best fixed scheme in {len(best)} of {autos} cells"
    yield (f"auto misses an aim for the mean in {sum(row[5] == 'mean' for row in aims)} of {means} cells, for 99.9 % in "
           f"{sum(row[5] == 'p99.9' for row in aims)} of {tails}, of overhead in "
           f"{sum(row[5] == 'overhead' for row in aims)}")


def markdown(command, points, cells, claimed, files):
    best_rows, best = best_table(points)
    aim_rows, aims = aims_table(points)
    art_rows, art = article_table(claimed)
    parts = ["# Every scheme on every link", f"By `{command}`. All times are virtual. " + ". ".join(
        summary(points, cells)) + ".", "## The schemes", scheme_table(points),
             f"## Where auto is not within {judge.NEAR_BEST} of the best fixed scheme",
             best if best_rows else "Nowhere.", "## Where auto misses an aim",
             "Mean and 99.9 % over T*, of messages from 1 MiB on: " + "; ".join(
                 f"loss up to {loss_text(loss)}: {mean:g} and {tail:g}" for loss, mean, tail in judge.AIMS) +
             f". Overhead: {judge.CLEAN_OVERHEAD:.0%} below a loss of {judge.CLEAN_LOSS:g}, {judge.BUDGET:.0%} above.",
             aims if aim_rows else "Nowhere."]
    if art_rows:
        parts += ["## A published table", "Over the lossless time, 400 Gbit/s; the table names no message sizes: those "
                  "that come closest.", art]
    parts += ["## Files", "\n".join(f"- `{name}`" for name in files)]
    return "\n\n".join(parts) + "\n"
