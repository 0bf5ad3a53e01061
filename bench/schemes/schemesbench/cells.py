# SPDX-License-Identifier: Apache-2.0
"""Cells: what sdr sim said of a point, over T*, the time that nobody beats; and the CSV of them. Pure but for files."""
import csv
import dataclasses
import math

from .grid import packets

COLUMNS = ("scheme", "bytes", "rtt_ms", "bw_gbps", "loss", "burst_pkts", "runs", "unfinished", "by", "mean_s",
           "mean_lo_s", "mean_hi_s", "p99_s", "p999_s", "lossless_s", "limit_s", "mean_over_limit", "p99_over_limit",
           "p999_over_limit", "overhead", "model_mean_s")


@dataclasses.dataclass(frozen=True, order=True)
class Point:
    rtt_ms: float
    bw_gbps: float
    size: int
    burst: float
    loss: float

    @property
    def link(self):
        return self.rtt_ms, self.bw_gbps

    @property
    def hit(self):
        """P(a write loses anything): bursts come independently."""
        return -math.expm1(-packets(self.size) * self.loss / self.burst)


@dataclasses.dataclass(frozen=True)
class Cell:
    """Times in s; NaN: not known."""
    point: Point
    scheme: str
    runs: int
    unfinished: int
    by: str  # engine, model
    mean_s: float
    mean_lo_s: float
    mean_hi_s: float
    p99_s: float
    p999_s: float
    lossless_s: float
    limit_s: float
    overhead: float
    model_mean_s: float

    def over_limit(self, what):
        """mean, p99, p999: over T*."""
        return getattr(self, f"{what}_s") / self.limit_s


def number(text):
    return float(text) if text else math.nan


def cell_of(row):
    """Of a row of sdr sim's CSV."""
    point = Point(round(float(row["rtt_s"]) * 1e3, 6), float(row["bw_bps"]) / 1e9, int(row["bytes"]),
                  float(row["burst_pkts"]), float(row["loss"]))
    times = {name: number(row[name]) for name in ("mean_s", "mean_lo_s", "mean_hi_s", "p99_s", "p999_s", "lossless_s",
                                                  "limit_s", "overhead", "model_mean_s")}
    return Cell(point, row["scheme"], int(row["runs"]), int(row["unfinished"]), row["engine"], **times)


def text(value):
    return "" if math.isnan(value) else f"{value:.7g}"


def row_of(cell):
    p = cell.point
    out = {"scheme": cell.scheme, "bytes": p.size, "rtt_ms": f"{p.rtt_ms:g}", "bw_gbps": f"{p.bw_gbps:g}",
           "loss": f"{p.loss:g}", "burst_pkts": f"{p.burst:g}", "runs": cell.runs, "unfinished": cell.unfinished,
           "by": cell.by}
    for name in COLUMNS:
        if name.endswith("_over_limit"):
            out[name] = text(cell.over_limit(name.removesuffix("_over_limit")))
        elif name not in out:
            out[name] = text(getattr(cell, name))
    return out


def write(path, cells):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(row_of, cells))


def by_point(cells):
    """{point: {scheme: cell}}, in order."""
    out = {}
    for cell in sorted(cells, key=lambda cell: cell.point):
        out.setdefault(cell.point, {})[cell.scheme] = cell
    return out
