# SPDX-License-Identifier: Apache-2.0
"""A table that an article about SDR-RDMA gives without saying for which messages: mean and p99.9 of two links as
multiples of "the base". Looked for here is the message size at which ours come closest. Pure."""
import dataclasses
import math

from .grid import Group
from .words import GIB, MIB, size_text

RATE = 400 * 10**9
SIZES = tuple(n * MIB for n in (4, 8, 12, 16, 32, 64, 256, 512)) + (1 * GIB, 2 * GIB, 8 * GIB)
QUICK_SIZES = (4 * MIB, 12 * MIB, 64 * MIB)


@dataclasses.dataclass(frozen=True)
class Claim:
    km: int
    loss: float
    scheme: str
    name: str
    mean: float
    tail: float

    @property
    def rtt_ns(self):
        return round(self.km / 150e3 * 1e9)  # 150 km a millisecond of round trip, as sdr sim counts


CLAIMS = (Claim(2000, 1e-4, "sr:rto=3", "SR", 1.8, 5.2), Claim(2000, 1e-4, "ec:16,4", "EC(16,4)", 1.1, 1.3),
          Claim(5000, 1e-5, "sr:rto=3", "SR", 1.2, 2.7), Claim(5000, 1e-5, "ec:32,8", "EC(32,8)", 1.5, 1.8))


def groups(sizes, most):
    return [Group(claim.rtt_ns, RATE, size, (claim.loss,), (1.0,), (claim.scheme,), most(size), 1.5)
            for claim in CLAIMS for size in sizes]


def claim_of(cell):
    return next((claim for claim in CLAIMS if claim.scheme == cell.scheme and claim.loss == cell.point.loss and
                 abs(claim.rtt_ns / 1e6 - cell.point.rtt_ms) < 1e-5), None)


def is_claimed(cell):
    return cell.point.bw_gbps * 1e9 == RATE and cell.point.burst == 1 and claim_of(cell) is not None


def over_lossless(cell, what):
    return getattr(cell, f"{what}_s") / cell.lossless_s


def tail_of(cell):
    """p99.9, or p99 where there are too few runs, and which of them it is."""
    return ("p999", "p99.9") if not math.isnan(cell.p999_s) else ("p99", "p99")


def at(cell):
    tail, name = tail_of(cell)
    return (f"{size_text(cell.point.size)}: {over_lossless(cell, 'mean'):.2f}, "
            f"{name} {over_lossless(cell, tail):.2f}")


def lines(cells):
    """(claim, closest by mean, closest by tail, range of the means) as text, one a claim that was asked."""
    for claim in CLAIMS:
        mine = sorted((c for c in cells if is_claimed(c) and claim_of(c) is claim), key=lambda c: c.point.size)
        mine = [c for c in mine if not math.isnan(c.mean_s)]
        if not mine:
            continue
        mean = min(mine, key=lambda c: abs(math.log(over_lossless(c, "mean") / claim.mean)))
        tail = min(mine, key=lambda c: abs(math.log(over_lossless(c, tail_of(c)[0]) / claim.tail)))
        means = [over_lossless(c, "mean") for c in mine]
        yield claim, at(mean), at(tail), f"{min(means):.2f}–{max(means):.2f}"
