# SPDX-License-Identifier: Apache-2.0
"""The paper's headline numbers beside the model's and the engine's, and why they part."""
import dataclasses
import math

from .cells import GIB, KIB, KM_PER_S, MIB, PACKET, READING_TEXT, READINGS, Cell, loss_text, size_text, time_text
from .figures import (CODE_UNITS, LOSSES_10, LOSSES_13, LOSSES_LARGEST, NODES_13, SIZES_LARGEST, with_scheme)

PAPER_SAMPLES = 1000  # of each of its simulated points
NONE = "-"


@dataclasses.dataclass(frozen=True)
class Headline:
    figure: str
    what: str
    paper: str
    model: str
    engine: str
    why: str


class Asker:
    """The model, the engine where it has been asked, and the round trip."""

    def __init__(self, model, engine, rtt_s):
        self.model, self.engine, self.rtt_s = model, engine, rtt_s

    def cell(self, scheme, size, loss, **more):
        return Cell(scheme, size, self.rtt_s, loss, **more)

    def mean(self, cell):
        return self.model.ask(cell).mean_s


def bisect(low, high, is_high, steps=60, logarithmic=True):
    """Where is_high(x) turns true between low (false) and high (true)."""
    for _ in range(steps):
        middle = math.sqrt(low * high) if logarithmic else (low + high) / 2
        low, high = (low, middle) if is_high(middle) else (middle, high)
    return high


def times(value):
    return f"{value:.2f}x"


# ---- figure 9 --------------------------------------------------------------------------


def largest(ask, reading, losses, name):
    """(speed-up, size, loss) of the largest one of MDS(32,8) over SR-RTO."""
    def speedup(size, loss):
        sr, ec = (getattr(ask.model.ask(ask.cell(scheme, size, loss).read_as(reading)), name)
                  for scheme in ("sr", "ec"))
        return sr / ec
    return max((speedup(size, loss), size, loss) for loss in losses for size in SIZES_LARGEST
               if size >= CODE_UNITS * READINGS[reading][1])


def largest_text(ask, reading, name):
    parts = []
    for losses in ((1e-2,), (2e-2,), LOSSES_LARGEST):
        value, size, loss = largest(ask, reading, losses, name)
        parts.append(f"{times(value)} at loss {loss_text(loss)} ({size_text(size)})")
    return f"{', '.join(dict.fromkeys(parts))} [{READING_TEXT[reading]}]"


def measured_speedups(ask, name):
    """[(speed-up, cell)] of the engine's SR-RTO over the code by the model."""
    out = []
    for cell, answer in ask.engine.answers.items():
        if cell.scheme == "sr" and cell.rtt_s == ask.rtt_s and cell.bw_bps == 400e9 and getattr(answer, name):
            out.append((getattr(answer, name) / getattr(ask.model.ask(with_scheme(cell, "ec")), name), cell))
    return out


def largest_measured(ask, name):
    found = measured_speedups(ask, name)
    if not found:
        return NONE
    value, cell = max(found, key=lambda pair: pair[0])
    return (f"{times(value)} at loss {loss_text(cell.loss)} ({size_text(cell.bytes)}), of {len(found)} cells; "
            "SR by the engine over the code by the model")


def beta_quantile(part, samples):
    """u: with this probability the second largest of `samples` lies below the u-quantile."""
    return bisect(0.9, 1, lambda u: u**samples + samples * u**(samples - 1) * (1 - u) >= part, logarithmic=False)


def estimates(ask, size, loss):
    """The p99.9 speed-up, and what 1000 samples give instead: at 5 and 95 % of such estimates."""
    sr = ask.cell("sr", size, loss)
    ec = ask.model.ask(with_scheme(sr, "ec")).p999_s
    spread = [ask.model.ask(sr, quantile=beta_quantile(part, PAPER_SAMPLES)).quantile_s / ec for part in (0.05, 0.95)]
    return (f"{size_text(size)}, loss {loss_text(loss)}: exactly {times(ask.model.ask(sr).p999_s / ec)}, "
            f"estimated {times(spread[0])} to {times(spread[1])}")


def headlines_9(ask):
    yield Headline("9", "largest mean speed-up of a code over SR-RTO, 128 KiB to 1 GiB",
                   "6.5x (elsewhere 5x)", "; ".join(largest_text(ask, reading, "mean_s") for reading in READINGS),
                   largest_measured(ask, "mean_s"),
                   "The paper's value lies between those for drop rates of 1e-2 and 2e-2 with chunks of one packet. "
                   "With 64 KiB chunks that lose 4 KiB packets the code is lost at 1e-2: 15 % of its chunks are. "
                   "So: code packets.")
    yield Headline("9", "largest p99.9 speed-up", "12.2x",
                   "; ".join(largest_text(ask, reading, "p999_s") for reading in READINGS),
                   largest_measured(ask, "p999_s"),
                   "It moves in steps of one RTO with the drop rate and the size: which step a figure shows depends "
                   "on its grid.")
    yield Headline("9", f"a p99.9 from {PAPER_SAMPLES} samples (their second largest)", "12.2x",
                   "; ".join(estimates(ask, size, loss) for size, loss in
                             ((64 * MIB, 1e-2), (64 * MIB, 1.6e-2), (64 * MIB, 2e-2))), NONE,
                   f"Of {PAPER_SAMPLES} samples the p99.9 is often a whole RTO off; ours is exact, or from 2000 runs "
                   "and more, with bounds.")


# ---- figures 3, 10, 12 -----------------------------------------------------------------


def measured(ask, cell, name="slowdown"):
    """The engine's value with its bounds, or '-'."""
    answer = ask.engine.get(cell)
    if not answer:
        return NONE
    if name == "p999":
        return NONE if answer.p999_s is None else f"{answer.p999_s / answer.lossless_s:.2f}"
    bound = "" if answer.mean_lo_s is None else \
        f" ({answer.mean_lo_s / answer.lossless_s:.2f}-{answer.mean_hi_s / answer.lossless_s:.2f})"
    return f"{answer.slowdown:.2f}{bound}"


def crossing_size(ask, scheme):
    """The size from which on the scheme is faster than MDS(32,8), in the mean at loss 1e-5."""
    def faster(units):
        size = int(units) * CODE_UNITS * PACKET
        return ask.mean(ask.cell(scheme, size, 1e-5)) < ask.mean(ask.cell("ec", size, 1e-5))
    return bisect(512 * MIB // (CODE_UNITS * PACKET), 512 * GIB // (CODE_UNITS * PACKET), faster) * CODE_UNITS * PACKET


def crossing_km(ask, scheme):
    """The distance from which on MDS(32,8) is faster than the scheme, 8 GiB at loss 1e-5; None: never."""
    def slower(km):
        cell = Cell(scheme, 8 * GIB, km / KM_PER_S, 1e-5)
        return ask.mean(cell) > ask.mean(with_scheme(cell, "ec"))
    return bisect(75, 20000, slower) if slower(20000) else None


def km_text(ask, scheme):
    km = crossing_km(ask, scheme)
    return "never" if km is None else f"from {km:.0f} km"


def slow_pair(ask, loss):
    answer = ask.model.ask(ask.cell("sr", 128 * MIB, loss))
    return f"{answer.slowdown:.2f} / {answer.p999_s / answer.lossless_s:.2f} at loss {loss_text(loss)}"


def headlines_3(ask):
    losses = (1e-2, 2e-2)
    yield Headline("3", "SR-RTO over lossless, 128 MiB: mean / p99.9", "6.5 / 12.2",
                   ", ".join(slow_pair(ask, loss) for loss in losses),
                   ", ".join(f"{measured(ask, ask.cell('sr', 128 * MIB, loss))} / "
                             f"{measured(ask, ask.cell('sr', 128 * MIB, loss), 'p999')} at loss {loss_text(loss)}"
                             for loss in losses),
                   "Each RTO of three round trips that shows is 2.7 of the lossless time; at 1e-2 two of them show.")
    nack, rto = crossing_size(ask, "sr-nack"), crossing_size(ask, "sr")
    yield Headline("3", "size from which SR beats MDS(32,8) in the mean, loss 1e-5", "above the bandwidth-delay product",
                   f"SR-NACK from {size_text(nack)}, SR-RTO from {size_text(rto)}; the product is "
                   f"{size_text(400e9 * ask.rtt_s / 8)}",
                   ", ".join(f"{scheme} {size_text(size)}: {measured(ask, ask.cell(scheme, size, 1e-5))} against "
                             f"{ask.model.ask(ask.cell('ec', size, 1e-5)).slowdown:.2f} of the code"
                             for scheme, size in (("sr", 128 * MIB), ("sr", 8 * GIB), ("sr-nack", 8 * GIB))
                             if ask.engine.get(ask.cell(scheme, size, 1e-5))) or NONE,
                   "A code adds 25 % of the injection whatever happens (20 % is its share of what is sent); resends "
                   "hide behind the rest of a long injection.")
    yield Headline("3", "distance from which MDS(32,8) beats SR, 8 GiB, loss 1e-5", "8 GiB turns small with distance",
                   f"SR-RTO {km_text(ask, 'sr')}, SR-NACK {km_text(ask, 'sr-nack')}", NONE,
                   "8 GiB is 6.9 times the bandwidth-delay product of 3750 km.")


def gain(ask, name, losses=LOSSES_10):
    def ratio(loss):
        pair = [getattr(ask.model.ask(ask.cell(scheme, 128 * MIB, loss)), name) for scheme in ("sr", "sr-nack")]
        return pair[0] / pair[1]
    return max((ratio(loss), loss) for loss in losses)


def gain_measured(ask, name):
    found = []
    for loss in LOSSES_10:
        pair = [ask.engine.get(ask.cell(scheme, 128 * MIB, loss)) for scheme in ("sr", "sr-nack")]
        if all(pair) and all(getattr(answer, name) for answer in pair):
            found.append((getattr(pair[0], name) / getattr(pair[1], name), loss))
    if not found:
        return NONE
    value, loss = max(found)
    return f"{times(value)} at loss {loss_text(loss)}"


def fallback_at(ask, scheme, reading, part):
    """The drop rate from which on more than `part` of the messages fall back."""
    def above(loss):
        return ask.model.ask(ask.cell(scheme, 128 * MIB, loss).read_as(reading)).p_fallback > part
    return bisect(1e-7, 0.15, above)


def bound_423(ask, loss):
    """(section 4.2.3's bound, exact mean) of MDS(32,8), 128 MiB. The bound takes the mean number of chunks
    that go again as if it were that number; between whole numbers of chunks it is interpolated."""
    cell = ask.cell("ec", 128 * MIB, loss)
    exact = ask.model.ask(cell)
    blocks = cell.packets // cell.k
    block_fails = -math.expm1(math.log1p(-exact.p_fallback) / blocks)
    again = blocks * block_fails * cell.k
    below = max(1, math.floor(again))
    sr = [ask.mean(ask.cell("sr", units * PACKET, loss)) - ask.rtt_s for units in (below, below + 1)]
    resent = sr[0] + (again - below) * (sr[1] - sr[0]) if again >= 1 else again * sr[0]
    inject = cell.inject_s * (1 + cell.m / cell.k)
    return inject + ask.rtt_s + exact.p_fallback * 2 * ask.rtt_s + resent, exact.mean_s


def headlines_10(ask):
    mean, tail = gain(ask, "mean_s"), gain(ask, "p999_s")
    yield Headline("10", "SR-RTO over SR-NACK, largest gain, 128 MiB", "up to 4x",
                   f"{times(mean[0])} in the mean (loss {loss_text(mean[1])}), {times(tail[0])} at p99.9",
                   f"mean {gain_measured(ask, 'mean_s')}",
                   "A loss costs 3 round trips against 1, and the last flight is the same: the gain stays below 3 in "
                   "this model, whatever the loss.")
    yield Headline("10", "128 MiB falls back: XOR(32,8) / MDS(32,8)", "XOR near 1e-3, MDS beyond 1e-2",
                   "; ".join(f"1 % of messages from {loss_text(fallback_at(ask, 'ec-xor', reading, 0.01))} / "
                             f"{loss_text(fallback_at(ask, 'ec', reading, 0.01))} [{READING_TEXT[reading]}]"
                             for reading in READINGS), NONE,
                   "With chunks of one packet 8 % of messages fall back with XOR at 1e-3, and 2e-7 with MDS at 1e-2: "
                   "as the paper says.")
    bound, exact = bound_423(ask, 0.05)
    yield Headline("10", "section 4.2.3's lower bound, MDS(32,8), 128 MiB, loss 0.05", "a lower bound",
                   f"the formula gives {time_text(bound)}, the exact mean is {time_text(exact)}", NONE,
                   "Near the cliff the time of the mean number of failed chunks is no bound of the mean time: most "
                   "messages have none, few have some.")
    printed, exact = (ask.mean(Cell(kind=kind, bytes=128 * KIB, rtt_s=ask.rtt_s)) for kind in ("printed", "write"))
    yield Headline("10", "appendix A's mean of SR-RTO, 128 KiB, loss 1e-5", "its formula",
                   f"as printed {time_text(printed)}, exact {time_text(exact)}", NONE,
                   "As printed the number of resends is not rounded up to a whole one, so that every message pays part "
                   "of an RTO though nothing was lost.")


def headlines_12(ask):
    def corner(scheme, rate, km):
        cell = Cell(scheme, 128 * MIB, km / KM_PER_S, 1e-5, rate * 1e9)
        return f"{ask.model.ask(cell).slowdown:.2f}", measured(ask, cell)
    corners = ((100, 75), (400, 3750), (3200, 6000))
    texts = [[", ".join(f"{corner(scheme, rate, km)[side]}" for rate, km in corners) for scheme in ("sr", "sr-nack")]
             for side in (0, 1)]
    yield Headline("12", "slowdown of SR-RTO and SR-NACK, 128 MiB, loss 1e-5, at 100 Gbit/s and 75 km, 400 and 3750, "
                   "3200 and 6000", "codes gain with bandwidth and distance", f"{texts[0][0]}; {texts[0][1]}",
                   f"{texts[1][0]}; {texts[1][1]}",
                   "Both make the same message smaller against the bandwidth-delay product.")


# ---- figures 13, 15 --------------------------------------------------------------------


def headlines_13(ask):
    def speedup(nodes, loss, name):
        sr, ec = (getattr(ask.model.ask(ask.cell(scheme, 128 * MIB, loss, nodes=nodes, kind="allreduce")), name)
                  for scheme in ("sr", "ec"))
        return sr / ec
    parts = []
    for loss in LOSSES_13[1:]:
        values = [speedup(nodes, loss, "p999_s") for nodes in NODES_13]
        parts.append(f"{min(values):.1f}-{max(values):.1f}x at loss {loss_text(loss)}")
    yield Headline("13", "ring Allreduce of 128 MiB, 2 to 16 datacentres: p99.9 speed-up of MDS(32,8) over SR-RTO",
                   "3x to more than 6x", ", ".join(parts), NONE,
                   "The largest are with few datacentres and at 1e-2. With more of them each round is smaller, and "
                   "rounds add up: one RTO weighs less. Simulated: the p99.9 may be one RTO off.")


def headlines_15(ask):
    def chunk(loss):
        return ask.model.ask(Cell(kind="chunk", loss=loss, bytes=16 * PACKET, chunk_bytes=16 * PACKET)).unit_loss
    yield Headline("15", "drop rate of a 64 KiB chunk of 4 KiB packets", "1 - (1 - p)^16",
                   ", ".join(f"{chunk(loss):.3g} at {loss_text(loss)}" for loss in (1e-4, 1e-3, 1e-2)), NONE,
                   "One lost packet loses its chunk: what is coded should be a packet.")


HEADLINES = {"3": headlines_3, "9": headlines_9, "10": headlines_10, "12": headlines_12, "13": headlines_13,
             "15": headlines_15}
