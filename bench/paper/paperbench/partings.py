# SPDX-License-Identifier: Apache-2.0
"""Where the engine and the model part: cell by cell, and what one loss costs in each."""
import dataclasses
import statistics

from .cells import Cell, loss_text, size_text


@dataclasses.dataclass(frozen=True)
class Parting:
    cell: Cell
    runs: int
    engine: float  # mean time over lossless
    model: float
    within: bool  # the model's mean lies in the engine's bounds of 95 %

    @property
    def part(self):
        return self.engine / self.model - 1


def partings(model, engine):
    out = []
    for cell, answer in engine.answers.items():
        mean = model.ask(cell).mean_s
        within = answer.mean_lo_s is not None and answer.mean_lo_s <= mean <= answer.mean_hi_s
        out.append(Parting(cell, answer.runs, answer.slowdown, mean / answer.lossless_s, within))
    return out


def cell_text(cell):
    return (f"{size_text(cell.bytes)}, {cell.bw_bps / 1e9:g} Gbit/s, {cell.rtt_s * 1e3:g} ms, "
            f"loss {loss_text(cell.loss)}")


def lines(model, engine):
    """For each scheme: how far the means are apart, the cells furthest apart, and the cost of a loss."""
    found = partings(model, engine)
    for scheme in sorted({parting.cell.scheme for parting in found}):
        mine = [parting for parting in found if parting.cell.scheme == scheme]
        median = statistics.median(parting.part for parting in mine)
        yield (f"{scheme}: {len(mine)} cells, engine over model in the median {median:+.2%}; "
               f"{sum(parting.within for parting in mine)} have the model inside their bounds of 95 %")
        for parting in sorted(mine, key=lambda p: -abs(p.part))[:3]:
            yield (f"  {cell_text(parting.cell)}: {parting.engine:.3f} against {parting.model:.3f} "
                   f"({parting.part:+.1%}, {parting.runs} runs)")
        cost = one_loss(model, engine, scheme)
        if cost:
            yield cost


def one_loss(model, engine, scheme):
    """What the first loss adds, from a p99 that stands on it: few enough packets that two losses, or a
    resend that is lost, are rarer than 1 in 100, and one loss is not."""
    for cell, answer in engine.answers.items():
        once = cell.packets * cell.loss
        if cell.scheme == scheme and 0.012 < once < 0.09 and answer.p99_s and answer.runs >= 500:
            trips = [(got.p99_s - got.lossless_s) / cell.rtt_s for got in (answer, model.ask(cell))]
            return (f"  one loss costs {trips[0]:.3f} round trips, in the model {trips[1]:.3f} "
                    f"(p99 of {cell_text(cell)})")
    return None
