# SPDX-License-Identifier: Apache-2.0
"""Answers as rows of CSV, a value a row: what it is of, the value, bounds of 95 % where it is sampled,
and where it comes from."""
import csv
import math

from .cells import ENGINE, EXACT, MIXED, SIMULATED

COLUMNS = ("figure", "panel", "reading", "quantity", "scheme", "k", "m", "bytes", "bw_gbps", "rtt_ms", "km",
           "loss", "chunk_bytes", "nodes", "value", "lo", "hi", "source", "runs")
CODES = ("ec", "ec-xor")
RTO_RTTS = 3


def row(figure, panel, quantity, cell, value, bounds, source, runs, scheme=None):
    lo, hi = bounds
    coded = cell.scheme in CODES
    return {"figure": figure, "panel": panel, "reading": cell.reading, "quantity": quantity,
            "scheme": scheme or cell.scheme, "k": cell.k if coded else "", "m": cell.m if coded else "",
            "bytes": cell.bytes, "bw_gbps": f"{cell.bw_bps / 1e9:g}", "rtt_ms": f"{cell.rtt_s * 1e3:g}",
            "km": f"{cell.km:g}", "loss": f"{cell.loss:g}", "chunk_bytes": cell.chunk_bytes,
            "nodes": cell.nodes or "", "value": text(value), "lo": text(lo), "hi": text(hi), "source": source,
            "runs": runs}


def text(value):
    return "" if value is None else f"{value:.7g}"


def times(figure, panel, cell, answer):
    """Rows of one answer to a write or an Allreduce."""
    mean = (answer.mean_lo_s, answer.mean_hi_s)
    tail = (answer.p999_lo_s, answer.p999_hi_s)
    out = []
    for name, value, bounds in (("mean", answer.mean_s, mean), ("p999", answer.p999_s, tail)):
        if value is None:
            continue
        out.append(row(figure, panel, f"{name}_s", cell, value, bounds, answer.source, answer.runs))
        if answer.lossless_s:
            out.append(row(figure, panel, f"slowdown_{name}", cell, value / answer.lossless_s,
                           [b if b is None else b / answer.lossless_s for b in bounds], answer.source,
                           answer.runs))
    if cell.scheme == "sr" and cell.kind == "write":
        rto = RTO_RTTS * cell.rtt_s
        out.append(row(figure, panel, "rtos_exposed", cell, (answer.mean_s - answer.lossless_s) / rto,
                       [b if b is None else (b - answer.lossless_s) / rto for b in mean], answer.source,
                       answer.runs))
    if cell.scheme in CODES and cell.kind == "write":
        out.append(row(figure, panel, "p_fallback", cell, answer.p_fallback, (None, None), answer.source,
                       answer.runs))
    return out


def ratio_source(over, under):
    """What the ratio of two answers is: as exact as the worse of them."""
    if ENGINE in (over.source, under.source):
        return ENGINE if over.source == under.source else MIXED
    return SIMULATED if SIMULATED in (over.source, under.source) else EXACT


def ratio_bounds(over, under):
    """Of the ratio of two means: errors of both, as parts, in quadrature."""
    def side(sign):
        parts = [(answer.mean_hi_s - answer.mean_s) / answer.mean_s if up else
                 (answer.mean_s - answer.mean_lo_s) / answer.mean_s
                 for answer, up in ((over, sign > 0), (under, sign < 0)) if answer.mean_lo_s is not None]
        return None if not parts else over.mean_s / under.mean_s * (1 + sign * math.hypot(*parts))
    return side(-1), side(1)


def ratio(figure, item, over, under):
    """Rows of one ratio: of means, and of p99.9 where both have one."""
    source, runs = ratio_source(over, under), over.runs or under.runs
    scheme = f"{item.over.scheme} / {item.under.scheme}"
    out = [row(figure, item.panel, f"{item.name}_mean", item.under, over.mean_s / under.mean_s,
               ratio_bounds(over, under), source, runs, scheme)]
    if over.p999_s is not None and under.p999_s is not None:
        bounds = [None if a is None else a / (b or under.p999_s)
                  for a, b in ((over.p999_lo_s, under.p999_hi_s), (over.p999_hi_s, under.p999_lo_s))]
        out.append(row(figure, item.panel, f"{item.name}_p999", item.under, over.p999_s / under.p999_s, bounds,
                       source, runs, scheme))
    return out


def rows(figure, model, engine):
    """All rows: model(cell) is an Answer; engine(cell) too, or None where the engine was not asked."""
    out = []
    for panel, cell in figure.cells:
        answer = model(cell)
        if cell.kind == "chunk":
            out.append(row(figure.name, panel, "chunk_loss", cell, answer.unit_loss, (None, None),
                           answer.source, 0, scheme="-"))
            continue
        out += times(figure.name, panel, cell, answer)
        real = engine(cell)
        if real:
            out += times(figure.name, panel, cell, real)
    for item in figure.ratios:
        under = model(item.under)
        out += ratio(figure.name, item, model(item.over), under)
        real = engine(item.over)
        if real:
            out += ratio(figure.name, item, real, engine(item.under) or under)
    return out


def write(path, all_rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(all_rows)
