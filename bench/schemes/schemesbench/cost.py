# SPDX-License-Identifier: Apache-2.0
"""How often each cell is run: what a run of a scheme costs is measured here and now, and the time that there is gets
shared out."""
import dataclasses
import math
import resource

from .grid import MAIN, Group, packets
from .words import KIB, MIB

LEAST_RUNS = 2
LADDER = (1, 2, 3, 5, 7)
SMALL, LARGE = 64 * KIB, 32 * MIB
SMALL_RUNS, LARGE_RUNS = 100, 10
LEAST_RUN_S, LEAST_PACKET_S = 5e-4, 4e-7  # no less is believed of a machine that has other things to do
TRIED = (1e-3, 1e-2, 1e-1)  # losses


def ladder(runs):
    """The largest number of the kind 1, 2, 3, 5, 7, 10 ... that is no larger."""
    steps = [step * 10**exponent for exponent in range(7) for step in LADDER]
    return max((step for step in steps if step <= runs), default=LEAST_RUNS)


@dataclasses.dataclass(frozen=True)
class Cost:
    """CPU seconds of a scheme: of a run, and of a packet of it by loss."""
    run_s: float
    packet_s: dict

    def of(self, size, loss):
        nearest = min(self.packet_s, key=lambda tried: abs(math.log10(max(loss, 1e-9) / tried)))
        return self.run_s + self.packet_s[nearest] * packets(size)


def measure_one(engine, scheme):
    def used(size, losses, runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        engine.ask(Group(*MAIN, size, losses, (1.0,), (scheme,), runs, runs=runs), jobs=1, keep=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def cpu(size, losses, runs):
        """Of a run; the program's start is none of it."""
        return (used(size, losses, runs + 1) - used(size, losses, 1)) / runs

    run_s = max(cpu(SMALL, (TRIED[0],), SMALL_RUNS), LEAST_RUN_S)
    return Cost(run_s, {loss: max((cpu(LARGE, (loss,), LARGE_RUNS) - run_s) / packets(LARGE), LEAST_PACKET_S)
                        for loss in TRIED})


def measure(engine, schemes):
    return {scheme: measure_one(engine, scheme) for scheme in schemes}


def run_s(costs, group):
    """CPU seconds of one run of each of its cells."""
    return sum(costs[scheme].of(group.size, loss) for scheme in group.schemes for loss, _ in group.points)


def total_s(costs, groups):
    return sum(group.runs * run_s(costs, group) for group in groups)


def share(costs, groups, cpu_s):
    """The groups with their runs: each cell gets as much time as each other one of its weight, but no more runs than
    are wanted; in all about cpu_s."""
    def runs(cell_s):
        out = []
        for group in groups:
            wanted = cell_s * group.weight * group.cells / run_s(costs, group)
            out.append(group.with_runs(group.most if wanted >= group.most else max(ladder(wanted), LEAST_RUNS)))
        return out

    low, high = 0.0, cpu_s
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if total_s(costs, runs(middle)) <= cpu_s else (low, middle)
    return runs(low)
