# SPDX-License-Identifier: Apache-2.0
"""Which cells of auto are good enough: beside the best fixed scheme, and beside T*. Why one is not is read from the
cell, as far as it tells. Pure."""
import dataclasses
import math

from .grid import AUTO, packets
from .words import MIB

NEAR_BEST = 1.05
# loss up to: mean, p99.9 over T*, of messages from 1 MiB on
AIMS = ((1e-2, 1.05, 1.10), (5e-2, 1.10, 1.25))
AIM_FROM = 1 * MIB
FEW_PACKETS = 16  # of a message that may have more parity than the budget
BUDGET = 0.30
CLEAN_LOSS, CLEAN_OVERHEAD = 1e-6, 0.01
RARE = 5e-4  # a write that loses anything less often gets no parity
TAIL_PART = 1e-3


@dataclasses.dataclass(frozen=True)
class Miss:
    cell: object
    what: str  # "best", "mean", "p99.9", "overhead"
    value: float
    aim: float
    against: str  # the scheme, or T*
    reason: str


def fixed(schemes):
    return [cell for name, cell in schemes.items() if name != AUTO and not math.isnan(cell.mean_s)]


def reason_of(cell, aim_s, lo_s, tail=False):
    """What of the cell explains that it takes longer than aim_s; lo_s: the lower bound of what it takes."""
    p = cell.point
    n = packets(p.size)
    burst_part = p.burst / n
    if cell.unfinished:
        return f"{cell.unfinished} of {cell.runs} runs did not end"
    if lo_s <= aim_s:
        return f"few runs: {cell.runs} of them say so, bounds of 95 % do not"
    if n <= FEW_PACKETS:
        return f"few packets: {n}"
    if 0 < p.hit < RARE and cell.overhead < 0.01:
        return f"rare: one write in {1 / p.hit:.0f} loses anything, too few for parity"
    if p.burst > 1 and burst_part > BUDGET:
        return f"burst: its mean is {burst_part:.0%} of the message, the budget of parity {BUDGET:.0%}"
    if cell.overhead - p.loss > 0.8 * BUDGET:
        return f"budget: parity is {cell.overhead - p.loss:.0%} of the message"
    if p.burst > 1 and burst_part * 8 > BUDGET:
        return "burst: one of eight times the mean, or several, are beyond the budget of parity"
    if tail and p.hit < 0.05:
        return f"rare: one write in {1 / p.hit:.0f} loses anything"
    return "not told by the cell"


def near_best(points):
    """Cells of auto that take longer than NEAR_BEST of the best fixed scheme."""
    for schemes in points.values():
        cell, others = schemes.get(AUTO), fixed(schemes)
        if cell is None or not others:
            continue
        best = min(others, key=lambda other: other.mean_s)
        value = cell.mean_s / best.mean_s
        if cell.unfinished or value > NEAR_BEST:
            # What is also missing of T* to the best one is its luck.
            lucky = max(best.mean_hi_s if best.mean_hi_s > 0 else 0, best.mean_s)
            yield Miss(cell, "best", value, NEAR_BEST, best.scheme,
                       reason_of(cell, NEAR_BEST * lucky, cell.mean_lo_s))


def aims_of(point):
    """(mean, p99.9) over T*, or None."""
    if point.size < AIM_FROM:
        return None
    return next(((mean, tail) for loss, mean, tail in AIMS if point.loss <= loss), None)


def beyond_aims(points):
    """Cells of auto that miss an aim."""
    for point, schemes in points.items():
        cell, aims = schemes.get(AUTO), aims_of(point)
        if cell is None:
            continue
        if aims:
            mean, tail = cell.over_limit("mean"), cell.over_limit("p999")
            if cell.unfinished or mean > aims[0]:
                yield Miss(cell, "mean", mean, aims[0], "T*", reason_of(cell, aims[0] * cell.limit_s, cell.mean_lo_s))
            if tail > aims[1]:
                yield Miss(cell, "p99.9", tail, aims[1], "T*",
                           reason_of(cell, aims[1] * cell.limit_s, cell.p999_s, tail=True))
        most = CLEAN_OVERHEAD if point.loss < CLEAN_LOSS else BUDGET
        if cell.overhead > most and packets(point.size) > FEW_PACKETS:
            reason = "resends on top of the budget" if point.loss else "not told by the cell"
            yield Miss(cell, "overhead", cell.overhead, most, "the message", reason)


def count_aims(points):
    """How many cells there are aims for, of the mean and of the p99.9."""
    cells = [schemes[AUTO] for point, schemes in points.items() if AUTO in schemes and aims_of(point)]
    return len(cells), sum(not math.isnan(cell.p999_s) for cell in cells)
