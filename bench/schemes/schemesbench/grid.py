# SPDX-License-Identifier: Apache-2.0
"""What is run: groups of cells that one call of `sdr sim` does, and how often each cell at most. Pure."""
import dataclasses

from .words import GIB, KIB, MIB, loss_text, size_text

PACKET = 4096
SIZES = (64 * KIB, 1 * MIB, 16 * MIB, 128 * MIB, 1 * GIB, 8 * GIB)
LOSSES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2, 1e-1)
BURSTS = (1.0, 8.0, 64.0)
RTTS = (1_000_000, 25_000_000, 100_000_000)
RATES = (10 * 10**9, 100 * 10**9, 400 * 10**9)
SCHEMES = ("sr:rto=3", "sr-nack", "gbn", "ec-xor:32,8", "ec:32,8", "hybrid:k=128,m=16,depth=64", "auto")
BASE, CODE, AUTO = "sr:rto=3", "ec:32,8", "auto"
MAIN = (25_000_000, 400 * 10**9)  # the link of which everything is shown
TAIL_RUNS = 2000  # below so many sdr sim tells no p99.9
MOST_RUNS = {1 * GIB: 100, 8 * GIB: 10}  # of sizes from there on
# Interrupts are held back for so much of a round trip: a run takes half the time, a write 2/2500 RTT longer.
COALESCE = 2500


def packets(size):
    return -(-size // PACKET)


def most_runs(size):
    """As many as any grid has."""
    return min([runs for least, runs in MOST_RUNS.items() if size >= least], default=TAIL_RUNS)


@dataclasses.dataclass(frozen=True)
class Group:
    """Cells of one link and size that are run equally often."""
    rtt_ns: int
    bw_bps: int
    size: int
    losses: tuple
    bursts: tuple
    schemes: tuple
    most: int  # runs of a cell
    weight: float = 1.0  # of its cells, where time is short
    runs: int = 0

    @property
    def points(self):
        """(loss, burst): without losses there are no bursts."""
        return [(loss, burst) for loss in self.losses for burst in (self.bursts if loss else (1.0,))]

    @property
    def cells(self):
        return len(self.points) * len(self.schemes)

    @property
    def name(self):
        return f"{size_text(self.size)}, {self.bw_bps / 1e9:g} Gbit/s, {self.rtt_ns / 1e6:g} ms".replace("  ", " ")

    @property
    def text(self):
        bursts = "/".join(f"{b:g}" for b in self.bursts)
        return (f"{self.name}: loss {','.join(map(loss_text, self.losses))}, bursts {bursts}, "
                f"{', '.join(self.schemes) if len(self.schemes) == 1 else f'{len(self.schemes)} schemes'}")

    def with_runs(self, runs):
        return dataclasses.replace(self, runs=runs)


@dataclasses.dataclass(frozen=True)
class Choice:
    """What a user leaves of the grid."""
    rtts: tuple = RTTS
    rates: tuple = RATES
    sizes: tuple = SIZES
    losses: tuple = LOSSES
    bursts: tuple = BURSTS
    schemes: tuple = SCHEMES

    def links(self):
        return [(rtt, rate) for rtt in self.rtts for rate in self.rates]

    def only(self, group):
        """The group without what was not chosen; None: nothing is left."""
        if (group.rtt_ns, group.bw_bps) not in self.links() or group.size not in self.sizes:
            return None
        cut = dataclasses.replace(group, losses=tuple(v for v in group.losses if v in self.losses),
                                  bursts=tuple(v for v in group.bursts if v in self.bursts))
        return cut if cut.losses and cut.bursts else None


def chosen(groups, choice):
    return [kept for kept in map(choice.only, groups) if kept]


def full(choice):
    """Everything that was chosen, also what no grid has."""
    return [Group(*link, size, choice.losses, choice.bursts, choice.schemes, most_runs(size))
            for link in choice.links() for size in choice.sizes]


def default(choice):
    """Of the main link every cell, up to 16 MiB with a p99.9 as far as time allows; of the others some."""
    weights = {64 * KIB: 4, 1 * MIB: 6, 16 * MIB: 6, 128 * MIB: 3, 1 * GIB: 2, 8 * GIB: 1}
    out = [Group(*MAIN, size, LOSSES, BURSTS, choice.schemes, most_runs(size), weights[size]) for size in SIZES]
    for link in Choice().links():
        if link != MAIN:
            out += [Group(*link, size, (1e-5, 1e-3, 1e-2, 5e-2), (1.0, 64.0), choice.schemes, 500, 0.5)
                    for size in (1 * MIB, 16 * MIB, 128 * MIB)]
    return chosen(out, choice)


def quick(choice):
    """The main link, few runs of each cell."""
    out = [Group(*MAIN, size, (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2), (1.0, 64.0), choice.schemes, 200)
           for size in (64 * KIB, 1 * MIB, 16 * MIB, 128 * MIB)]
    return chosen(out, choice)
